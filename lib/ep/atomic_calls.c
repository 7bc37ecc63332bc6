/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_atomic(3): arguments become a request; all checks of them but descriptors are here. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "base/names.h"
#include "base/user.h"
#include "contract/limits.h"
#include "ep/atomic_short.h"
#include "ep/ep_ops.h"
#include "ep/tx/atomic_op.h"

#define MSG_FLAGS                                                                          \
	(FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_FENCE)

static const char *const family_name[] = { "fi_atomic", "fi_fetch_atomic", "fi_compare_atomic" };

/* --- which there are ------------------------------------------------------------------ */

/* level: of the line; a call that only asks whether it is offered makes no mistake. */
static int check_kind(const struct mrf_ep *ep, enum mrf_atomic_family family, unsigned datatype,
		      unsigned op, enum fi_log_level level)
{
	int err;

	if (!mrf_atomic_valid(family, datatype, op))
		return mrf_refuse_as(level, NULL, 0, FI_EOPNOTSUPP, FI_LOG_EP_DATA, 4241,
				     "%s: %s on %s: there is no such operation",
				     family_name[family], mrf_names_enum(&mrf_names_atomic_op, op),
				     mrf_names_enum(&mrf_names_atomic_type, datatype));
	err = mrf_promise_atomic(ep->domain->promise, family, datatype, op);
	if (!err)
		return 0;
	return mrf_refuse_as(level, NULL, 0, err, FI_LOG_EP_DATA, 4241,
			     "%s: %s on %s: there is no such operation with FI_MRFAB_PROFILE=%s",
			     family_name[family], mrf_names_enum(&mrf_names_atomic_op, op),
			     mrf_names_enum(&mrf_names_atomic_type, datatype),
			     ep->domain->space.profile->name);
}

/* Elements of one operation. */
static size_t most_elements(const struct mrf_ep *ep, enum fi_datatype datatype)
{
	return mrf_promise_elements(ep->domain->promise,
				    MRF_LIMIT_ATOMIC_SIZE / mrf_atomic_size(datatype));
}

static int valid(struct fid_ep *fid, enum mrf_atomic_family family, enum fi_datatype datatype,
		 enum fi_op op, size_t *count)
{
	const struct mrf_ep *ep = mrf_ep_of(&fid->fid);
	int ret = mrf_obj_check(&ep->obj, family_name[family]);

	if (!ret && !count)
		ret = mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4242, "%svalid: count is NULL",
				 family_name[family]);
	if (!ret)
		ret = check_kind(ep, family, datatype, op, FI_LOG_INFO);
	if (!ret)
		*count = most_elements(ep, datatype);
	return ret;
}

static int ep_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return valid(ep, MRF_ATOMIC_BASE, datatype, op, count);
}

static int ep_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	return valid(ep, MRF_ATOMIC_FETCH, datatype, op, count);
}

static int ep_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	return valid(ep, MRF_ATOMIC_COMPARE, datatype, op, count);
}

/* --- checks --------------------------------------------------------------------------- */

static int check_atomic_state(struct mrf_ep *ep, const struct mrf_atomic_req *req)
{
	/* Does the operation store anything, and does it return anything? */
	bool writes = req->op != FI_ATOMIC_READ, reads = req->family != MRF_ATOMIC_BASE;
	uint64_t lacks = ((writes ? FI_WRITE : 0) | (reads ? FI_READ : 0)) & ~ep->caps;

	if (!ep->enabled)
		return mrf_refuse(FI_EOPBADSTATE, FI_LOG_EP_DATA, 4243,
				  "%s: the endpoint is not enabled", family_name[req->family]);
	if (lacks)
		return mrf_refuse(FI_EOPNOTSUPP, FI_LOG_EP_DATA, 4244,
				  "%s: the endpoint was opened without %s",
				  family_name[req->family],
				  lacks & FI_WRITE ? "FI_WRITE" : "FI_READ");
	return 0;
}

static int check_atomic_flags(const struct mrf_atomic_req *req)
{
	if (!(req->flags & ~MSG_FLAGS))
		return 0;
	return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_DATA, 4245,
			  "%s: flags=%#lx: %#lx is not for an atomic operation",
			  family_name[req->family], (unsigned long)req->flags,
			  (unsigned long)(req->flags & ~MSG_FLAGS));
}

static int check_remote_ioc(const struct mrf_ep *ep, const struct mrf_atomic_req *req,
			    size_t *count)
{
	unsigned limit = ep->domain->promise->rma_iov;
	size_t size = mrf_atomic_size(req->datatype), i;

	if (!req->rma || !req->rma_count || req->rma_count > limit)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_EP_DATA, 4246,
			"%s: %zu remote buffer%s at %p: there must be an array of 1 to %u",
			family_name[req->family], req->rma_count, MRF_S(req->rma_count),
			(const void *)req->rma, limit);
	*count = 0;
	for (i = 0; i < req->rma_count; i++) {
		const struct fi_rma_ioc *ioc = &req->rma[i];

		if (ioc->count > MRF_LIMIT_ATOMIC_SIZE)
			return mrf_refuse(FI_EMSGSIZE, FI_LOG_EP_DATA, 4247,
					  "%s: %zu elements are too many: one call may "
					  "have at most %zu",
					  family_name[req->family], ioc->count,
					  MRF_LIMIT_ATOMIC_SIZE / size);
		if (!mrf_range_ok(ioc->addr, ioc->count * size))
			return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4248,
					  "%s: remote buffer %zu: %#lx + %zu byte%s "
					  "passes the end of the address space",
					  family_name[req->family], i, (unsigned long)ioc->addr,
					  ioc->count * size, MRF_S(ioc->count * size));
		*count += ioc->count;
	}
	return 0;
}

static int check_values_end(const struct mrf_atomic_req *req, const struct mrf_atomic_iov *iov,
			    const char *what)
{
	size_t size = mrf_atomic_size(req->datatype), i;

	for (i = 0; i < iov->count; i++) {
		const struct fi_ioc *ioc = &iov->iov[i];

		if (!mrf_range_ok((uintptr_t)ioc->addr, ioc->count * size))
			return mrf_refuse(FI_EFAULT, FI_LOG_EP_DATA, 4264,
					  "%s: buffer %zu of %s: %p + %zu byte%s passes the end "
					  "of the address space",
					  family_name[req->family], i, what, ioc->addr,
					  ioc->count * size, MRF_S(ioc->count * size));
	}
	return 0;
}

/* The buffers of each kind have as many elements together as the target's. */
static int check_local(const struct mrf_ep *ep, const struct mrf_atomic_req *req,
		       const struct mrf_atomic_iov *iov, size_t want, const char *what)
{
	unsigned limit = ep->domain->promise->tx_iov;
	const char *name = family_name[req->family];
	size_t have = 0, i;

	if (!iov->iov || !iov->count || iov->count > limit)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4249,
				  "%s: %zu buffer%s of %s at %p: there must be an array of 1 to %u",
				  name, iov->count, MRF_S(iov->count), what, (const void *)iov->iov,
				  limit);
	for (i = 0; i < iov->count; i++) {
		if (iov->iov[i].count && !iov->iov[i].addr)
			return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4250,
					  "%s: buffer %zu of %s is NULL", name, i, what);
		if (__builtin_add_overflow(have, iov->iov[i].count, &have))
			have = SIZE_MAX;
	}
	if (have == want)
		return check_values_end(req, iov, what);
	return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4251,
			  "%s: %zu element%s in the buffers of %s, %zu at the target: "
			  "these numbers must be equal",
			  name, have, MRF_S(have), what, want);
}

static int check_buffers(const struct mrf_ep *ep, const struct mrf_atomic_req *req, size_t count)
{
	int ret = 0;

	if (req->op != FI_ATOMIC_READ)
		ret = check_local(ep, req, &req->operand, count, "operands");
	if (!ret && req->family == MRF_ATOMIC_COMPARE)
		ret = check_local(ep, req, &req->compare, count, "comparands");
	if (!ret && req->family != MRF_ATOMIC_BASE)
		ret = check_local(ep, req, &req->result, count, "results");
	return ret;
}

static int check_size(const struct mrf_ep *ep, const struct mrf_atomic_req *req, size_t count)
{
	size_t size = mrf_atomic_size(req->datatype);
	size_t most = most_elements(ep, req->datatype);
	unsigned inject = ep->inject;

	if (!count)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4252, "%s: there are no elements",
				  family_name[req->family]);
	if (count > most)
		return mrf_refuse(FI_EMSGSIZE, FI_LOG_EP_DATA, 4247,
				  "%s: %zu elements are too many: one call may have at most %zu",
				  family_name[req->family], count, most);
	if ((req->flags & FI_INJECT) && count * size > inject)
		return mrf_refuse(FI_EMSGSIZE, FI_LOG_EP_DATA, 4253,
				  "%s: %zu byte%s, but inject_size is %u",
				  req->silent ? "fi_inject_atomic" : family_name[req->family],
				  count * size, MRF_S(count * size), inject);
	return 0;
}

static int check_atomic(struct mrf_ep *ep, const struct mrf_atomic_req *req)
{
	size_t count = 0;
	int ret = mrf_obj_check(&ep->obj, family_name[req->family]);

	if (!ret)
		ret = check_atomic_state(ep, req);
	if (!ret)
		ret = check_kind(ep, req->family, req->datatype, req->op, FI_LOG_WARN);
	if (!ret)
		ret = check_atomic_flags(req);
	if (!ret)
		ret = check_remote_ioc(ep, req, &count);
	if (!ret)
		ret = check_size(ep, req, count);
	return ret ? ret : check_buffers(ep, req, count);
}

static int submit(struct mrf_ep *ep, const struct mrf_atomic_req *req)
{
	int ret = check_atomic(ep, req);

	return mrf_unlikely(ret) ? ret : mrf_atomic_submit(ep, req);
}

/* --- one buffer of each --------------------------------------------------------------- */

/*
 * The flags of calls without flags; an operation that only reads cannot be injected, and none is
 * matched with anything.
 */
static uint64_t default_flags(const struct mrf_ep *ep, enum fi_op op)
{
	uint64_t without = FI_MATCH_COMPLETE | (op == FI_ATOMIC_READ ? FI_INJECT : 0);

	return ep->op_flags & ~without;
}

static int submit_one(struct mrf_ep *ep, const struct mrf_atomic_one *one, size_t count,
		      uint64_t flags, bool silent)
{
	struct fi_ioc operand = { (void *)(uintptr_t)one->operand, count };
	struct fi_ioc compare = { (void *)(uintptr_t)one->compare, count };
	struct fi_ioc result = { one->result, count };
	struct fi_rma_ioc rma = { one->remote, count, one->key };
	struct mrf_atomic_req req = {
		.family = one->family,
		.datatype = one->datatype,
		.op = one->op,
		.operand = { &operand, (void **)(uintptr_t)&one->operand_desc, 1 },
		.compare = { &compare, (void **)(uintptr_t)&one->compare_desc, 1 },
		.result = { &result, (void **)(uintptr_t)&one->result_desc, 1 },
		.rma = &rma,
		.rma_count = 1,
		.addr = one->addr,
		.context = one->context,
		.flags = flags,
		.silent = silent,
	};

	return submit(ep, &req);
}

__attribute__((noinline)) bool mrf_one_copy(const void *operand, const void *compare,
					    uint64_t copy[2])
{
	const struct iovec from[2] = { { .iov_base = (void *)operand, .iov_len = sizeof(uint64_t) },
				       { .iov_base = (void *)compare,
					 .iov_len = compare ? sizeof(uint64_t) : 0 } };

	return !mrf_user_take(copy, from, compare ? 2 : 1);
}

static __attribute__((noinline)) ssize_t long_one(struct mrf_ep *ep,
						  const struct mrf_atomic_one *one, size_t count)
{
	return submit_one(ep, one, count, default_flags(ep, one->op), false);
}

/* The long way gets a copy, so that the short way keeps the original in registers. */
static MRF_ALWAYS_INLINE ssize_t start_one(struct mrf_ep *ep, const struct mrf_atomic_one *one,
					   size_t count)
{
	struct mrf_atomic_one copy;

	if (mrf_likely(count == 1 && mrf_atomic_short(ep, one)))
		return 0;
	copy = *one;
	return long_one(ep, &copy, count);
}

static ssize_t ep_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			 fi_addr_t addr, uint64_t remote, uint64_t key, enum fi_datatype datatype,
			 enum fi_op op, void *context)
{
	const struct mrf_atomic_one one = {
		MRF_ATOMIC_BASE, datatype, op,	   buf, NULL, NULL, desc, NULL, NULL, addr,
		remote,		 key,	   context
	};

	return start_one(mrf_ep_of(&ep->fid), &one, count);
}

static ssize_t ep_inject_atomic(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t addr,
				uint64_t remote, uint64_t key, enum fi_datatype datatype,
				enum fi_op op)
{
	const struct mrf_atomic_one one = {
		MRF_ATOMIC_BASE, datatype, op,	buf, NULL, NULL, NULL, NULL, NULL, addr,
		remote,		 key,	   NULL
	};

	return submit_one(mrf_ep_of(&ep->fid), &one, count, FI_INJECT, true);
}

static ssize_t ep_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    void *result, void *result_desc, fi_addr_t addr, uint64_t remote,
			    uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct mrf_atomic_one one = { MRF_ATOMIC_FETCH, datatype, op,	buf,	     NULL,
					    result,	      desc,	NULL,	result_desc, addr,
					    remote,	      key,	context };

	return start_one(mrf_ep_of(&ep->fid), &one, count);
}

static ssize_t ep_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    const void *compare, void *compare_desc, void *result,
			    void *result_desc, fi_addr_t addr, uint64_t remote, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct mrf_atomic_one one = {
		MRF_ATOMIC_COMPARE, datatype,	 op,   buf,    compare, result, desc,
		compare_desc,	    result_desc, addr, remote, key,	context
	};

	return start_one(mrf_ep_of(&ep->fid), &one, count);
}

/* --- vectors -------------------------------------------------------------------------- */

/* Returns the number of elements; more than any call takes if the sum overflows. */
static size_t elements(const struct fi_ioc *iov, size_t count)
{
	size_t n = 0, i;

	for (i = 0; iov && i < count && count <= MRF_LIMIT_IOV; i++) {
		if (__builtin_add_overflow(n, iov[i].count, &n))
			return SIZE_MAX;
	}
	return n;
}

/* Several local buffers, one remote buffer. */
static ssize_t vector(struct fid_ep *fid, struct mrf_atomic_req *req, uint64_t remote, uint64_t key)
{
	const struct mrf_atomic_iov *iov = req->op == FI_ATOMIC_READ ? &req->result : &req->operand;
	struct fi_rma_ioc rma = { remote, elements(iov->iov, iov->count), key };

	req->rma = &rma;
	req->rma_count = 1;
	req->flags = default_flags(mrf_ep_of(&fid->fid), req->op);
	return submit(mrf_ep_of(&fid->fid), req);
}

static ssize_t ep_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			  fi_addr_t addr, uint64_t remote, uint64_t key, enum fi_datatype datatype,
			  enum fi_op op, void *context)
{
	struct mrf_atomic_req req = { .family = MRF_ATOMIC_BASE,
				      .datatype = datatype,
				      .op = op,
				      .operand = { iov, desc, count },
				      .addr = addr,
				      .context = context };

	return vector(ep, &req, remote, key);
}

static ssize_t ep_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			     struct fi_ioc *resultv, void **result_desc, size_t result_count,
			     fi_addr_t addr, uint64_t remote, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct mrf_atomic_req req = { .family = MRF_ATOMIC_FETCH,
				      .datatype = datatype,
				      .op = op,
				      .operand = { iov, desc, count },
				      .result = { resultv, result_desc, result_count },
				      .addr = addr,
				      .context = context };

	return vector(ep, &req, remote, key);
}

static ssize_t ep_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			     const struct fi_ioc *comparev, void **compare_desc,
			     size_t compare_count, struct fi_ioc *resultv, void **result_desc,
			     size_t result_count, fi_addr_t addr, uint64_t remote, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct mrf_atomic_req req = { .family = MRF_ATOMIC_COMPARE,
				      .datatype = datatype,
				      .op = op,
				      .operand = { iov, desc, count },
				      .compare = { comparev, compare_desc, compare_count },
				      .result = { resultv, result_desc, result_count },
				      .addr = addr,
				      .context = context };

	return vector(ep, &req, remote, key);
}

static ssize_t atomic_message(struct fid_ep *ep, struct mrf_atomic_req *req,
			      const struct fi_msg_atomic *msg)
{
	if (!msg)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4259, "%smsg: msg is NULL",
				  family_name[req->family]);
	req->datatype = msg->datatype;
	req->op = msg->op;
	req->operand = (struct mrf_atomic_iov){ msg->msg_iov, msg->desc, msg->iov_count };
	req->rma = msg->rma_iov;
	req->rma_count = msg->rma_iov_count;
	req->addr = msg->addr;
	req->context = msg->context;
	return submit(mrf_ep_of(&ep->fid), req);
}

static ssize_t ep_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct mrf_atomic_req req = { .family = MRF_ATOMIC_BASE, .flags = flags };

	return atomic_message(ep, &req, msg);
}

static ssize_t ep_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			       struct fi_ioc *resultv, void **result_desc, size_t result_count,
			       uint64_t flags)
{
	struct mrf_atomic_req req = { .family = MRF_ATOMIC_FETCH,
				      .result = { resultv, result_desc, result_count },
				      .flags = flags };

	return atomic_message(ep, &req, msg);
}

static ssize_t ep_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			       const struct fi_ioc *comparev, void **compare_desc,
			       size_t compare_count, struct fi_ioc *resultv, void **result_desc,
			       size_t result_count, uint64_t flags)
{
	struct mrf_atomic_req req = { .family = MRF_ATOMIC_COMPARE,
				      .compare = { comparev, compare_desc, compare_count },
				      .result = { resultv, result_desc, result_count },
				      .flags = flags };

	return atomic_message(ep, &req, msg);
}

struct fi_ops_atomic mrf_ep_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = ep_atomic,
	.writev = ep_atomicv,
	.writemsg = ep_atomicmsg,
	.inject = ep_inject_atomic,
	.readwrite = ep_readwrite,
	.readwritev = ep_readwritev,
	.readwritemsg = ep_readwritemsg,
	.compwrite = ep_compwrite,
	.compwritev = ep_compwritev,
	.compwritemsg = ep_compwritemsg,
	.writevalid = ep_writevalid,
	.readwritevalid = ep_readwritevalid,
	.compwritevalid = ep_compwritevalid,
};
