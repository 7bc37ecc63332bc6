/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "ep/model/ep.h"
#include "ep/msg/arrive.h"
#include "ep/msg/deliver.h"
#include "ep/msg/peek.h"
#include "ep/msg/pull_step.h"
#include "ep/msg/report.h"

#define NO_MESSAGE "no message has come that such a receive would take"

static struct mrf_comp comp_of(const struct mrf_ep *ep, const struct mrf_recv_req *req,
			       const struct mrf_message *message, uint64_t flags)
{
	struct mrf_comp comp = { .op_context = req->context,
				 .flags = (req->tagged ? FI_TAGGED : FI_MSG) | FI_RECV | flags,
				 .src_addr = FI_ADDR_NOTAVAIL };

	if (!message) {
		comp.tag = req->tag;
		return comp;
	}
	comp.src_addr = mrf_report_source(ep, message);
	comp.len = message->len;
	comp.tag = message->tag;
	comp.data = message->cq_data;
	comp.flags |= message->has_cq_data ? FI_REMOTE_CQ_DATA : 0;
	return comp;
}

static void tell_none_locked(struct mrf_ep *ep, const struct mrf_recv_req *req)
{
	struct mrf_comp_err entry = { .comp = comp_of(ep, req, NULL, FI_PEEK),
				      .err = FI_ENOMSG,
				      .prov_errno = 4328 };

	snprintf(entry.text, sizeof(entry.text), "%s", NO_MESSAGE);
	if (ep->rx_cq)
		mrf_cq_write_err(ep->rx_cq, &entry);
}

static void tell_seen_locked(struct mrf_ep *ep, const struct mrf_recv_req *req,
			     const struct mrf_message *message, uint64_t flags)
{
	struct mrf_comp comp = comp_of(ep, req, message, flags);

	if (ep->rx_cq && !req->silent)
		mrf_cq_write(ep->rx_cq, &comp);
}

static void peek_locked(struct mrf_ep *ep, const struct mrf_recv_req *req, uint64_t flags)
{
	struct mrf_inbox *inbox = ep->inbox;
	struct mrf_message *message = mrf_recv_find_locked(inbox, req);

	if (!message) {
		tell_none_locked(ep, req);
		return;
	}
	tell_seen_locked(ep, req, message, flags & (FI_PEEK | FI_CLAIM));
	if (flags & FI_CLAIM)
		mrf_recv_claim_locked(inbox, message, req->context);
	if (flags & FI_DISCARD) {
		mrf_inbox_take_kept_locked(inbox, message);
		mrf_deliver_drop_locked(inbox, message);
		mrf_inbox_tell_locked(inbox);
	}
}

/*
 * A program that peeks in a loop finds an entry whenever it reads the queue, and reading polls only
 * when the queue is empty. So peeking has to take in what has come.
 */
static void catch_up_locked(struct mrf_ep *ep)
{
	if (!ep->lines)
		return;
	ep->lines->polled = true;
	mrf_arrive_poll_locked(ep->lines);
}

void mrf_peek(struct mrf_ep *ep, const struct mrf_recv_req *req, uint64_t flags)
{
	mrf_lock_take(&ep->lock);
	catch_up_locked(ep);
	peek_locked(ep, req, flags);
	if (mrf_pull_step_has_late_locked(ep->inbox))
		mrf_pull_step_late_locked(ep->inbox);
	mrf_lock_release(&ep->lock);
}

int mrf_peek_discard(struct mrf_ep *ep, const struct mrf_recv_req *req)
{
	struct mrf_message *message;

	mrf_lock_take(&ep->lock);
	message = mrf_recv_claimed_locked(ep->inbox, req->context);
	if (message) {
		tell_seen_locked(ep, req, message, FI_CLAIM);
		mrf_deliver_drop_locked(ep->inbox, message);
		mrf_inbox_tell_locked(ep->inbox);
	}
	mrf_lock_release(&ep->lock);
	return message ? 0 : -FI_EINVAL;
}
