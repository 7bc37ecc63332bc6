/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_tagged(3): as fi_msg(3), with a tag. */
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "ep/checks.h"
#include "ep/ep_ops.h"
#include "ep/msg_calls.h"
#include "ep/send_short.h"

/* --- sends ------------------------------------------------------------------------------ */

static ssize_t tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   fi_addr_t addr, uint64_t tag, void *context)
{
	const struct mrf_send_one one = { .buf = buf,
					  .len = len,
					  .desc = desc,
					  .addr = addr,
					  .context = context,
					  .tagged = true,
					  .tag = tag };

	return mrf_msg_send_one(ep, "fi_tsend", &one);
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t addr, uint64_t tag, void *context)
{
	struct mrf_req req = { .iov = iov,
			       .desc = desc,
			       .count = count,
			       .addr = addr,
			       .tagged = true,
			       .tag = tag,
			       .context = context,
			       .flags = mrf_msg_send_flags(ep) };

	return mrf_msg_submit_send(ep, "fi_tsendv", &req);
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct mrf_req req = { .tagged = true, .flags = flags };
	int ret = mrf_check_msg("fi_tsendmsg", msg);

	if (ret)
		return ret;
	req.iov = msg->msg_iov;
	req.desc = msg->desc;
	req.count = msg->iov_count;
	req.addr = msg->addr;
	req.tag = msg->tag;
	req.context = msg->context;
	req.data = msg->data;
	return mrf_msg_submit_send(ep, "fi_tsendmsg", &req);
}

static ssize_t tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t addr,
			     uint64_t tag)
{
	const struct mrf_send_one one = {
		.buf = buf, .len = len, .addr = addr, .tagged = true, .tag = tag, .inject = true
	};

	return mrf_msg_send_one(ep, "fi_tinject", &one);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t addr, uint64_t tag, void *context)
{
	const struct mrf_send_one one = { .buf = buf,
					  .len = len,
					  .desc = desc,
					  .addr = addr,
					  .context = context,
					  .tagged = true,
					  .tag = tag,
					  .data = data,
					  .has_data = true };

	return mrf_msg_send_one(ep, "fi_tsenddata", &one);
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				 fi_addr_t addr, uint64_t tag)
{
	const struct mrf_send_one one = { .buf = buf,
					  .len = len,
					  .addr = addr,
					  .tagged = true,
					  .tag = tag,
					  .data = data,
					  .has_data = true,
					  .inject = true };

	return mrf_msg_send_one(ep, "fi_tinjectdata", &one);
}

/* --- receives --------------------------------------------------------------------------- */

/* FI_MULTI_RECV among the flags of the endpoint is for untagged messages. */
static uint64_t recv_flags(struct fid_ep *ep)
{
	return mrf_msg_recv_flags(ep) & ~FI_MULTI_RECV;
}

static ssize_t tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
			   uint64_t tag, uint64_t ignore, void *context)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct mrf_recv_req req = { .iov = &iov,
				    .desc = &desc,
				    .count = 1,
				    .from = from,
				    .tagged = true,
				    .tag = tag,
				    .ignore = ignore,
				    .context = context };

	return mrf_msg_submit_recv(ep, "fi_trecv", &req, recv_flags(ep));
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	struct mrf_recv_req req = { .iov = iov,
				    .desc = desc,
				    .count = count,
				    .from = from,
				    .tagged = true,
				    .tag = tag,
				    .ignore = ignore,
				    .context = context };

	return mrf_msg_submit_recv(ep, "fi_trecvv", &req, recv_flags(ep));
}

static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct mrf_recv_req req;
	int ret = mrf_check_msg("fi_trecvmsg", msg);

	if (ret)
		return ret;
	req = (struct mrf_recv_req){ .iov = msg->msg_iov,
				     .desc = msg->desc,
				     .count = msg->iov_count,
				     .from = msg->addr,
				     .tagged = true,
				     .tag = msg->tag,
				     .ignore = msg->ignore,
				     .context = msg->context };
	return mrf_msg_submit_recv(ep, "fi_trecvmsg", &req, flags);
}

struct fi_ops_tagged mrf_ep_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};
