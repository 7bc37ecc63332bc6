/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_msg(3): arguments become requests. All checks of them are here, except the address and the
 * descriptors of sends, which tx/entry.h and buf/local.h look at.
 */
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "base/iov.h"
#include "base/log.h"
#include "base/names.h"
#include "buf/local.h"
#include "ep/checks.h"
#include "ep/ep_ops.h"
#include "ep/msg/peek.h"
#include "ep/msg/recv.h"
#include "ep/msg_calls.h"
#include "ep/send_short.h"
#include "ep/tx/offer_op.h"
#include "ep/tx/send_op.h"
#include "mr/desc.h"

#define SEND_FLAGS                                                                         \
	(FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_REMOTE_CQ_DATA | FI_FENCE)
/* What fi_msg(3) has for sends, and what is not done yet. */
#define SEND_LATER FI_COMMIT_COMPLETE
/* Those of fi_trecvmsg that are about messages which have come. */
#define PEEK_FLAGS (FI_PEEK | FI_CLAIM | FI_DISCARD)
/* The data are where they belong when a receive completes, which is more than is asked for. */
#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_TRANSMIT_COMPLETE)

static int check_way(struct mrf_ep *ep, uint64_t way, const char *call)
{
	int ret = mrf_obj_check(&ep->obj, call);

	if (!ret)
		ret = mrf_check_enabled(ep, call);
	if (ret || ep->caps & way)
		return ret;
	return mrf_refuse(FI_EOPNOTSUPP, FI_LOG_EP_DATA, 4070,
			  "%s: the endpoint was opened without %s", call,
			  way == FI_SEND ? "FI_SEND" : "FI_RECV");
}

/* --- sends ------------------------------------------------------------------------------ */

/* A send that completed earlier than asked for would be worse than one that is refused. */
static int check_send_flags(const char *call, uint64_t flags)
{
	int ret = mrf_check_flags(call, flags, SEND_FLAGS | SEND_LATER);
	uint64_t later = flags & SEND_LATER;
	char names[128];

	if (ret || !later)
		return ret;
	return mrf_refuse(FI_EOPNOTSUPP, FI_LOG_EP_DATA, 4071,
			  "%s: %s is not offered for messages yet, neither by call nor among the "
			  "operation flags of the endpoint",
			  call, mrf_names_bits(&mrf_names_op_flags, later, names, sizeof(names)));
}

static int check_send_length(const struct mrf_ep *ep, const char *call, uint64_t flags, size_t len)
{
	size_t max = ep->domain->promise->msg_size;
	int ret = mrf_check_injected(ep, call, flags, len);

	if (!ret && len > max)
		return mrf_refuse(FI_EMSGSIZE, FI_LOG_EP_DATA, 4072,
				  "%s: %zu bytes: a message has at most max_msg_size, %zu", call,
				  len, max);
	return ret;
}

/* The bytes of an offer go when a receive has taken it, so its completion says that one has. */
static const struct mrf_op_type *send_type_of(const struct mrf_req *req, size_t len)
{
	return len > MRF_SEND_MAX || req->flags & FI_MATCH_COMPLETE ? &mrf_op_offer : &mrf_op_send;
}

ssize_t mrf_msg_submit_send(struct fid_ep *fid, const char *call, struct mrf_req *req)
{
	struct mrf_ep *ep = mrf_ep_of(&fid->fid);
	size_t len = 0;
	int ret = check_way(ep, FI_SEND, call);

	if (!ret)
		ret = check_send_flags(call, req->flags);
	if (!ret)
		ret = mrf_check_data(ep, call, req->flags);
	if (!ret)
		ret = mrf_check_iov(call, req->iov, req->count, ep->domain->promise->tx_iov);
	if (!ret) {
		len = mrf_iov_total(req->iov, req->count);
		ret = check_send_length(ep, call, req->flags, len);
	}
	if (ret)
		return ret;
	req->type = send_type_of(req, len);
	return mrf_send_submit(ep, req);
}

uint64_t mrf_msg_send_flags(struct fid_ep *fid)
{
	return mrf_ep_of(&fid->fid)->op_flags;
}

ssize_t mrf_msg_send_one(struct fid_ep *fid, const char *call, const struct mrf_send_one *one)
{
	struct mrf_ep *ep = mrf_ep_of(&fid->fid);
	struct iovec iov = { (void *)(uintptr_t)one->buf, one->len };
	void *desc = one->desc;
	struct mrf_req req;

	if (mrf_likely(mrf_send_short(ep, one)))
		return 0;
	req = (struct mrf_req){ .iov = &iov,
				.desc = &desc,
				.count = 1,
				.addr = one->addr,
				.context = one->context,
				.tagged = one->tagged,
				.tag = one->tag,
				.data = one->data,
				.flags = (one->inject ? FI_INJECT : ep->op_flags) |
					 (one->has_data ? FI_REMOTE_CQ_DATA : 0),
				.silent = one->inject };
	return mrf_msg_submit_send(fid, call, &req);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t addr,
			void *context)
{
	const struct mrf_send_one one = {
		.buf = buf, .len = len, .desc = desc, .addr = addr, .context = context
	};

	return mrf_msg_send_one(ep, "fi_send", &one);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t addr, void *context)
{
	struct mrf_req req = { .iov = iov,
			       .desc = desc,
			       .count = count,
			       .addr = addr,
			       .context = context,
			       .flags = mrf_msg_send_flags(ep) };

	return mrf_msg_submit_send(ep, "fi_sendv", &req);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct mrf_req req = { .flags = flags };
	int ret = mrf_check_msg("fi_sendmsg", msg);

	if (ret)
		return ret;
	req.iov = msg->msg_iov;
	req.desc = msg->desc;
	req.count = msg->iov_count;
	req.addr = msg->addr;
	req.context = msg->context;
	req.data = msg->data;
	return mrf_msg_submit_send(ep, "fi_sendmsg", &req);
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t addr)
{
	const struct mrf_send_one one = { .buf = buf, .len = len, .addr = addr, .inject = true };

	return mrf_msg_send_one(ep, "fi_inject", &one);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t addr, void *context)
{
	const struct mrf_send_one one = { .buf = buf,
					  .len = len,
					  .desc = desc,
					  .addr = addr,
					  .context = context,
					  .data = data,
					  .has_data = true };

	return mrf_msg_send_one(ep, "fi_senddata", &one);
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t addr)
{
	const struct mrf_send_one one = {
		.buf = buf, .len = len, .addr = addr, .data = data, .has_data = true, .inject = true
	};

	return mrf_msg_send_one(ep, "fi_injectdata", &one);
}

/* --- receives --------------------------------------------------------------------------- */

static int check_recv_descs(struct mrf_ep *ep, const char *call, const struct mrf_recv_req *req)
{
	const struct mrf_local_req local = { .iov = req->iov,
					     .desc = req->desc,
					     .count = req->count,
					     .arrives = true,
					     .message = true };

	return mrf_local_check(&ep->buf, &local, call, MRF_LOCAL_MISSING);
}

static int check_multi(const char *call, const struct mrf_recv_req *req)
{
	if (req->count == 1 && req->iov[0].iov_len)
		return 0;
	return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4079,
			  "%s: FI_MULTI_RECV needs one buffer, of at least one byte", call);
}

static int check_recv_buffers(struct mrf_ep *ep, const char *call, const struct mrf_recv_req *req)
{
	int ret = mrf_check_iov(call, req->iov, req->count, ep->domain->promise->rx_iov);

	if (!ret && req->multi)
		ret = check_multi(call, req);
	return ret ? ret : check_recv_descs(ep, call, req);
}

/* What other receives may have, in addition to RECV_FLAGS. */
static uint64_t more_recv_flags(const struct mrf_ep *ep, const struct mrf_recv_req *req)
{
	return req->tagged ? PEEK_FLAGS : ep->caps & FI_MULTI_RECV;
}

static int check_peek_flags(const char *call, const struct mrf_recv_req *req, uint64_t flags)
{
	uint64_t peek = flags & PEEK_FLAGS;

	if (peek == FI_DISCARD || peek == PEEK_FLAGS)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_DATA, 4073,
				  "%s: FI_DISCARD needs one of FI_PEEK and FI_CLAIM", call);
	if (peek & FI_CLAIM && !req->context)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_EP_DATA, 4074,
			"%s: FI_CLAIM needs a context, by which the message is found again", call);
	return 0;
}

/* A call about a message that has come. */
static ssize_t about_come(struct mrf_ep *ep, const char *call, const struct mrf_recv_req *req,
			  uint64_t flags)
{
	int ret;

	if (flags & FI_PEEK) {
		mrf_peek(ep, req, flags);
		return 0;
	}
	ret = flags & FI_DISCARD ? mrf_peek_discard(ep, req) : mrf_recv_post_claimed(ep, req);
	if (ret != -FI_EINVAL)
		return ret;
	return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4075,
			  "%s: no message was claimed with the context %p", call, req->context);
}

/* With FI_DIRECTED_RECV: the source has to be there, and gets the name by which senders are known. */
static int check_source(const struct mrf_ep *ep, const char *call, struct mrf_recv_req *req)
{
	fi_addr_t name = FI_ADDR_NOTAVAIL;
	union mrf_addr addr;

	if (mrf_likely(!(ep->caps & FI_DIRECTED_RECV) || req->from == FI_ADDR_UNSPEC))
		return 0;
	if (!mrf_av_get(ep->av, req->from, &addr))
		name = mrf_av_find(ep->av, &addr);
	/* It may have been removed in between; that value would mean any source. */
	if (name == FI_ADDR_NOTAVAIL)
		return mrf_refuse(FI_EADDRNOTAVAIL, FI_LOG_EP_DATA, 4002,
				  "%s: fi_addr %#lx is not in the endpoint's address vector (any "
				  "more)",
				  call, (unsigned long)req->from);
	req->from = name;
	return 0;
}

/* The most common receive: all the checks below, and what they would say does not matter. */
static bool is_right(const struct mrf_ep *ep, const struct mrf_recv_req *req, uint64_t flags)
{
	const struct mrf_mr_space *space = &ep->domain->space;

	if (!ep->short_recv || !mrf_fork_ours(ep->obj.owner) || req->count != 1 || !req->iov ||
	    !req->desc || flags & ~RECV_FLAGS ||
	    (req->from != FI_ADDR_UNSPEC && ep->caps & FI_DIRECTED_RECV))
		return false;
	return !(space->mode & FI_MR_LOCAL) || !req->iov->iov_len ||
	       mrf_desc_covers(space, req->desc[0], FI_RECV, (uintptr_t)req->iov->iov_base,
			       req->iov->iov_len);
}

static ssize_t submit_checked(struct mrf_ep *ep, const char *call, struct mrf_recv_req *req,
			      uint64_t flags)
{
	int ret = check_way(ep, FI_RECV, call);

	if (!ret)
		ret = mrf_check_flags(call, flags, RECV_FLAGS | more_recv_flags(ep, req));
	if (!ret)
		ret = check_peek_flags(call, req, flags);
	if (!ret)
		ret = check_source(ep, call, req);
	/* Buffers of others are not looked at. */
	if (!ret && !(flags & (FI_PEEK | FI_DISCARD)))
		ret = check_recv_buffers(ep, call, req);
	if (ret)
		return ret;
	return flags & PEEK_FLAGS ? about_come(ep, call, req, flags) : mrf_recv_post(ep, req);
}

ssize_t mrf_msg_submit_recv(struct fid_ep *fid, const char *call, struct mrf_recv_req *req,
			    uint64_t flags)
{
	struct mrf_ep *ep = mrf_ep_of(&fid->fid);

	req->silent = ep->rx_selective && !(flags & FI_COMPLETION);
	if (mrf_likely(is_right(ep, req, flags)))
		return mrf_recv_post(ep, req);
	req->multi = flags & FI_MULTI_RECV;
	return submit_checked(ep, call, req, flags);
}

uint64_t mrf_msg_recv_flags(struct fid_ep *fid)
{
	return mrf_ep_of(&fid->fid)->rx_flags;
}

static ssize_t msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
			void *context)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct mrf_recv_req req = {
		.iov = &iov, .desc = &desc, .count = 1, .from = from, .context = context
	};

	return mrf_msg_submit_recv(ep, "fi_recv", &req, mrf_msg_recv_flags(ep));
}

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t from, void *context)
{
	struct mrf_recv_req req = {
		.iov = iov, .desc = desc, .count = count, .from = from, .context = context
	};

	return mrf_msg_submit_recv(ep, "fi_recvv", &req, mrf_msg_recv_flags(ep));
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct mrf_recv_req req;
	int ret = mrf_check_msg("fi_recvmsg", msg);

	if (ret)
		return ret;
	req = (struct mrf_recv_req){ .iov = msg->msg_iov,
				     .desc = msg->desc,
				     .count = msg->iov_count,
				     .from = msg->addr,
				     .context = msg->context };
	return mrf_msg_submit_recv(ep, "fi_recvmsg", &req, flags);
}

struct fi_ops_msg mrf_ep_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
