/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "base/compiler.h"
#include "buf/rest.h"

static struct mrf_local_rest *rest_new(size_t count)
{
	size_t len = sizeof(struct mrf_local_rest) + count * sizeof(struct iovec);
	struct mrf_local_rest *rest = malloc(len + count * sizeof(void *));

	if (!rest)
		return NULL;
	rest->from = 0;
	rest->upto = UINT64_MAX; /* all are held */
	rest->ring = NULL;
	rest->memory = NULL;
	rest->count = count;
	rest->desc = (void **)(void *)(rest->iov + count);
	return rest;
}

struct iovec *mrf_local_user_room(struct mrf_local *local, size_t count, void ***desc)
{
	*desc = local->desc;
	if (mrf_likely(count <= MRF_LOCAL_IOV))
		return local->user;
	local->rest = rest_new(count);
	if (!local->rest)
		return NULL;
	*desc = local->rest->desc;
	return local->rest->iov;
}

struct mrf_local_rest *mrf_local_rest_new(const struct mrf_local_req *req, uint64_t upto)
{
	struct mrf_local_rest *rest = rest_new(req->count);

	if (!rest)
		return NULL;
	rest->upto = upto;
	rest->total = req->total;
	rest->arrives = req->arrives;
	rest->message = req->message;
	rest->whole = req->whole;
	rest->wide = false;
	memcpy(rest->iov, req->iov, req->count * sizeof(*req->iov));
	if (req->desc)
		memcpy(rest->desc, req->desc, req->count * sizeof(*req->desc));
	else
		rest->desc = NULL;
	return rest;
}
