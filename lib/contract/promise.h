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

struct mrf_promise {
	uint64_t caps;	 /* of MRF_CAPS_ALL */
	uint64_t order;	 /* msg_order, of either side */
	size_t msg_size; /* max_msg_size */
	size_t order_size; /* max_order_raw_size and max_order_waw_size, where there is such an order */
	unsigned inject; /* inject_size */
	unsigned tx_iov, rx_iov,
		rma_iov;  /* local buffers that are sent, or received; remote ones */
	unsigned cq_data; /* cq_data_size; 0: no immediate data */
};

extern const struct mrf_promise mrf_promise_all;

#endif
