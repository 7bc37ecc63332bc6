/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fi_getinfo promises of endpoints beyond registrations: capabilities, orders and numbers. Without a
 * profile it is all that this library has; with one (contract/profile.h) it is what both the library and
 * the other provider have. Endpoints refuse what is not promised. Constants only.
 */
#ifndef MRF_CONTRACT_PROMISE_H
#define MRF_CONTRACT_PROMISE_H

#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_domain.h>

/* Atomic operations that a provider has. */
struct mrf_promise_atomics {
	size_t elements;		 /* of one operation */
	int op_error, type_error;	 /* FI_E*: no such operation, or not on this datatype */
	uint16_t types[3][FI_MSWAP + 1]; /* bits of datatypes, by family and operation */
};

struct mrf_promise {
	uint64_t caps;	/* of MRF_CAPS_ALL */
	uint64_t order; /* msg_order, of either side */
	/* ... if FI_ATOMIC is asked for, which is not offered otherwise; 0: the same, in any case */
	uint64_t order_atomic;
	size_t msg_size;      /* max_msg_size */
	size_t order_size;    /* max_order_raw_size and _waw_size, where there is such an order */
	unsigned inject;      /* inject_size */
	unsigned inject_most; /* ... if more is asked for; 0: there is not more */
	unsigned tx_iov;      /* local buffers that are sent */
	unsigned rx_iov;      /* ... and those that are received into */
	unsigned rma_iov;     /* remote buffers */
	unsigned cq_data;     /* cq_data_size; 0: no immediate data */
	uint32_t protocol;    /* FI_PROTO_*, under the provider's name; 0: the library's own */
	const struct mrf_promise_atomics *atomics; /* NULL: all of the library's */
};

extern const struct mrf_promise mrf_promise_all;

/* The inject_size of an endpoint with these attributes, or NULL. */
unsigned mrf_promise_inject(const struct mrf_promise *promise, const struct fi_tx_attr *tx);

/*
 * Does the provider have this one of the library's atomic operations? 0, or FI_E*. family: an enum
 * mrf_atomic_family.
 */
int mrf_promise_atomic(const struct mrf_promise *promise, unsigned family, unsigned datatype,
		       unsigned op);
/* The most elements that an operation may have, if the library takes this many. */
size_t mrf_promise_elements(const struct mrf_promise *promise, size_t most);

#endif
