/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the target flushes by msync(2) and not by the device: ep/tx/commit.c. */
#include <rdma/fi_errno.h>
#include "ep/rx/commit_serve.h"

int mrf_commit_serve(struct mrf_ep *ep, const struct mrf_request *request, struct mrf_reply *reply,
		     uint8_t *body)
{
	struct mrf_mr_ask ask = { .key = request->key,
				  .serial = request->serial,
				  .addr = request->addr,
				  .len = request->len,
				  .port = &ep->port };
	enum mrf_mr_status status;
	int err = 0;

	(void)body;
	if (!request->len || request->what > MRF_FLUSH_DO)
		return -FI_EINVAL;
	status = mrf_mr_commit(&ep->domain->space, &ask, request->what == MRF_FLUSH_DO, &err);
	if (status != MRF_MR_OK) {
		reply->status = status == MRF_MR_NO_RIGHT ? MRF_REPLY_RIGHT : (uint32_t)status;
		return 0;
	}
	reply->status = err ? MRF_REPLY_FAILED : MRF_REPLY_DONE;
	reply->err = (uint32_t)err;
	reply->done = err ? 0 : request->len;
	return 0;
}
