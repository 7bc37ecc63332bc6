/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that the calls of fi_rma(3) and of fi_msg(3) have in common. Each refuses with one line; call
 * is the name in it. Inline, because operations of all sizes come through here.
 */
#ifndef MRF_EP_CHECKS_H
#define MRF_EP_CHECKS_H

#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "ep/model/ep.h"

static inline int mrf_check_enabled(const struct mrf_ep *ep, const char *call)
{
	if (mrf_likely(ep->enabled))
		return 0;
	return mrf_refuse(FI_EOPBADSTATE, FI_LOG_EP_DATA, 4015, "%s: the endpoint is not enabled",
			  call);
}

static inline int mrf_check_flags(const char *call, uint64_t flags, uint64_t known)
{
	if (mrf_likely(!(flags & ~known)))
		return 0;
	return mrf_refuse(FI_EBADFLAGS, FI_LOG_EP_DATA, 4009, "flags=%#lx: %#lx is not for %s",
			  (unsigned long)flags, (unsigned long)(flags & ~known), call);
}

/* The local buffers. limit: tx_iov or rx_iov of what the domain promises. */
static inline int mrf_check_iov(const char *call, const struct iovec *iov, size_t count,
				unsigned limit)
{
	if (mrf_likely(count <= limit && (iov || !count)))
		return 0;
	return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4003,
			  "%s: %zu local buffer%s at %p: there must be an array of at most %u",
			  call, count, MRF_S(count), (const void *)iov, limit);
}

static inline int mrf_check_injected(const struct mrf_ep *ep, const char *call, uint64_t flags,
				     size_t len)
{
	unsigned limit = ep->inject;

	if (mrf_likely(!(flags & FI_INJECT) || len <= limit))
		return 0;
	return mrf_refuse(FI_EMSGSIZE, FI_LOG_EP_DATA, 4008,
			  "%s: %zu byte%s, but inject_size is %u", call, len, MRF_S(len), limit);
}

/* Immediate data, which not every provider has. */
static inline int mrf_check_data(const struct mrf_ep *ep, const char *call, uint64_t flags)
{
	if (mrf_likely(!(flags & FI_REMOTE_CQ_DATA) || ep->domain->promise->cq_data))
		return 0;
	return mrf_refuse(FI_ENOSYS, FI_LOG_EP_DATA, 4082,
			  "%s: there are no immediate data: cq_data_size is 0 with "
			  "FI_MRFAB_PROFILE=%s",
			  call, ep->domain->space.profile->name);
}

/* The structure that a call gets its arguments in. */
static inline int mrf_check_msg(const char *call, const void *msg)
{
	if (mrf_likely(msg))
		return 0;
	return mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4017, "%s: msg is NULL", call);
}

#endif
