/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path of the most common message: one buffer, to a peer whose line is ready, with nothing
 * waiting. As rma_short.h for accesses, it leaves the same operation behind that tx/send_op.c would
 * have made, which handles every failure. tests/unit/t_short_msg.c compares the two.
 */
#ifndef MRF_EP_SEND_SHORT_H
#define MRF_EP_SEND_SHORT_H

#include "ep/model/ep.h"

struct mrf_send_one {
	const void *buf;
	size_t len;
	void *desc;
	fi_addr_t addr;
	void *context;
	uint64_t tag;
	uint64_t data;
	bool tagged;
	bool has_data; /* FI_REMOTE_CQ_DATA */
	bool inject;   /* no descriptor is needed, and there is no completion */
};

/* False: nothing was done; take the general path. No lock is held. */
bool mrf_send_short(struct mrf_ep *ep, const struct mrf_send_one *one);

#endif
