/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the bytes of an operation are on this side. In this order:
 *
 * 1. the descriptors, if they are given and fit (with FI_MR_LOCAL they must);
 * 2. a copy in the work request, of writes up to MRF_OP_INLINE bytes;
 * 3. a registered slot of the endpoint, up to MRF_BOUNCE_SIZE bytes;
 * 4. a registration for this operation alone, without any remote right;
 * 5. a copy, for sources that can be read but not pinned.
 *
 * Unregistered memory may not be there, and other threads may unmap it meanwhile. So the
 * kernel copies it (base/user.h) and answers EFAULT where a load would end in a SIGSEGV;
 * in the same way it copies back what a read or an atomic operation brings.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "base/page.h"
#include "base/user.h"
#include "ep/model/ep.h"
#include "ep/tx/op_local.h"
#include "mr/demand/backs.h"
#include "mr/desc.h"

/* --- local buffers that the application registered ------------------------------------ */

/*
 * Appends the pieces of one buffer; false when it is not (wholly) inside the region. *pinned
 * becomes false when the region is pinned on demand.
 */
static bool add_desc(struct mrf_op *op, const struct mrf_desc *desc, const struct iovec *iov,
		     bool *pinned)
{
	const struct mrf_mr_seg *segs = desc->nseg > 1 ? desc->segs : &desc->seg;
	uint64_t addr = (uintptr_t)iov->iov_base, left = iov->iov_len;

	while (left) {
		unsigned i;
		uint64_t offset, n;

		n = mrf_mr_locate(segs, desc->nseg, true, addr, left, &i, &offset);
		if (!n || op->nsge == MRF_OP_SGE)
			return false;
		if (!segs[i].lkey)
			*pinned = false;
		n = mrf_min(n, UINT32_MAX & ~0xfffu);
		op->sge[op->nsge++] = (struct mrf_sge){ .addr = segs[i].iova + offset,
							.len = (uint32_t)n,
							.lkey = segs[i].lkey };
		addr += n;
		left -= n;
	}
	return true;
}

/*
 * Takes the descriptors when all of them fit. strict (FI_MR_LOCAL): each that does not is an
 * error; otherwise the page says that they are ignored, so anything may stand there. Returns 1
 * when they are not usable, or in order but of regions that are pinned on demand: then the
 * operation registers the buffers like any others.
 */
static int use_desc(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op, bool strict)
{
	uint64_t right = req->type->kind == MRF_OP_READ ? FI_READ : FI_WRITE;
	bool pinned = true;
	size_t i;

	op->nsge = 0;
	op->ndesc = 0;
	for (i = 0; i < req->count; i++) {
		void *value = req->desc ? req->desc[i] : NULL;
		struct mrf_desc desc;

		if (!req->iov[i].iov_len)
			continue;
		if (!value || !mrf_desc_get(&ep->domain->space, value, &desc))
			return !strict ? 1
				       : mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4010,
						    "desc %p of buffer %zu is %s: the "
						    "domain has "
						    "FI_MR_LOCAL, so each local buffer "
						    "needs the "
						    "fi_mr_desc of an open region of this "
						    "domain",
						    value, i,
						    value ? "not a descriptor of this domain"
							  : "missing");
		if (!(desc.access & right))
			return !strict ? 1
				       : mrf_refuse(
						 FI_EACCES, FI_LOG_EP_DATA, 4011,
						 "buffer %zu: its region was registered without %s",
						 i, right == FI_READ ? "FI_READ" : "FI_WRITE");
		if (!add_desc(op, &desc, &req->iov[i], &pinned))
			return !strict ? 1
				       : mrf_refuse(FI_EINVAL, FI_LOG_EP_DATA, 4012,
						    "buffer %zu (%p, %zu byte%s) is not "
						    "inside the region of its desc",
						    i, req->iov[i].iov_base, req->iov[i].iov_len,
						    MRF_S(req->iov[i].iov_len));
		op->desc[op->ndesc++] = value;
	}
	op->local = MRF_LOCAL_DESC;
	return pinned ? 0 : 1;
}

/* --- local buffers that nobody registered --------------------------------------------- */

#define SLAB_SLOTS 32
#define MAX_SLABS 8

struct slab {
	struct mrf_list node;
	struct mrf_vmr mr;
	void *memory;
};

/* Behind the data of a slot, so that the data stays page-aligned. */
struct slot {
	char data[MRF_BOUNCE_SIZE];
	struct slab *slab;
	struct slot *next;
};

void mrf_bounce_init(struct mrf_bounce_pool *pool)
{
	mrf_lock_init(&pool->lock, MRF_RANK_BOUNCE);
	mrf_list_init(&pool->slabs);
	pool->free = NULL;
	pool->nslabs = 0;
}

void mrf_bounce_fini(struct mrf_bounce_pool *pool)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&pool->slabs))) {
		struct slab *slab = mrf_list_entry(node, struct slab, node);

		mrf_vmr_drop(&slab->mr);
		free(slab->memory);
		free(slab);
	}
	mrf_lock_fini(&pool->lock);
}

/* NULL: no memory, or it cannot be registered. */
static struct slab *slab_new(struct mrf_ep *ep)
{
	struct slab *slab = calloc(1, sizeof(*slab));

	if (!slab ||
	    posix_memalign(&slab->memory, mrf_page_size(), SLAB_SLOTS * sizeof(struct slot)))
		goto err_free;
	if (mrf_room_reg(ep->domain->pd, slab->memory, SLAB_SLOTS * sizeof(struct slot),
			 (uintptr_t)slab->memory, MRF_RIGHT_LOCAL_WRITE, &slab->mr))
		goto err_memory;
	return slab;

err_memory:
	free(slab->memory);
err_free:
	free(slab);
	return NULL;
}

static void add_slab_locked(struct mrf_bounce_pool *pool, struct slab *slab)
{
	struct slot *slots = slab->memory;
	int i;

	mrf_lock_held(&pool->lock);
	for (i = 0; i < SLAB_SLOTS; i++) {
		slots[i].slab = slab;
		slots[i].next = pool->free;
		pool->free = &slots[i];
	}
	mrf_list_add_tail(&slab->node, &pool->slabs);
}

static struct slot *pop_slot_locked(struct mrf_bounce_pool *pool)
{
	struct slot *slot = pool->free;

	mrf_lock_held(&pool->lock);
	if (slot)
		pool->free = slot->next;
	return slot;
}

/* NULL: all slots that may be are in use. Registers more of them without the lock. */
static struct slot *take_bounce_slot(struct mrf_ep *ep)
{
	struct mrf_bounce_pool *pool = &ep->bounce;
	struct slab *slab = NULL;
	struct slot *slot;
	bool more;

	mrf_lock_take(&pool->lock);
	slot = pop_slot_locked(pool);
	more = !slot && pool->nslabs < MAX_SLABS;
	pool->nslabs += more;
	mrf_lock_release(&pool->lock);
	if (!more)
		return slot;
	slab = slab_new(ep);
	mrf_lock_take(&pool->lock);
	if (slab)
		add_slab_locked(pool, slab);
	else
		pool->nslabs--;
	slot = pop_slot_locked(pool);
	mrf_lock_release(&pool->lock);
	return slot;
}

static void give_slot(struct mrf_ep *ep, struct slot *slot)
{
	mrf_lock_take(&ep->bounce.lock);
	slot->next = ep->bounce.free;
	ep->bounce.free = slot;
	mrf_lock_release(&ep->bounce.lock);
}

static void one_sge(struct mrf_op *op, const void *addr, uint32_t lkey)
{
	op->sge[0] = (struct mrf_sge){ .addr = (uintptr_t)addr,
				       .len = (uint32_t)op->total,
				       .lkey = lkey };
	op->nsge = 1;
}

static void keep_user(struct mrf_op *op, const struct mrf_req *req)
{
	op->nuser = (int)req->count;
	memcpy(op->user, req->iov, req->count * sizeof(*req->iov));
}

/* 1 when there is no slot (left); the caller has another way. -FI_EFAULT. */
static int use_bounce(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op)
{
	struct slot *slot = take_bounce_slot(ep);

	if (!slot)
		return 1;
	if (op->type->kind == MRF_OP_READ) {
		keep_user(op, req);
	} else if (mrf_user_get(slot->data, req->iov, req->count)) {
		give_slot(ep, slot);
		return -FI_EFAULT;
	}
	op->local = MRF_LOCAL_BOUNCE;
	op->bounce = slot;
	one_sge(op, slot->data, slot->slab->mr.lkey);
	return 0;
}

/* -FI_EFAULT. */
static int use_inline(const struct mrf_req *req, struct mrf_op *op)
{
	op->local = MRF_LOCAL_INLINE;
	one_sge(op, op->data, 0);
	return mrf_user_get(op->data, req->iov, req->count);
}

static void drop_temp(struct mrf_op *op)
{
	while (op->ntemp)
		mrf_vmr_drop(&op->temp[--op->ntemp]);
	free(op->temp);
	op->temp = NULL;
}

static int register_one(struct mrf_ep *ep, struct mrf_op *op, void *addr, size_t len)
{
	unsigned rights = op->type->kind == MRF_OP_READ ? MRF_RIGHT_LOCAL_WRITE : 0;
	struct mrf_vmr *mr = &op->temp[op->ntemp];
	int ret = mrf_room_reg(ep->domain->pd, addr, len, (uintptr_t)addr, rights, mr);

	if (ret)
		return ret;
	op->ntemp++;
	op->sge[op->nsge++] =
		(struct mrf_sge){ .addr = (uintptr_t)addr, .len = (uint32_t)len, .lkey = mr->lkey };
	return 0;
}

static int use_temp(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op)
{
	size_t i;
	int ret;

	op->local = MRF_LOCAL_TEMP;
	op->nsge = 0;
	op->temp = calloc(req->count, sizeof(*op->temp));
	if (!op->temp)
		return -FI_ENOMEM;
	for (i = 0; i < req->count; i++) {
		if (!req->iov[i].iov_len)
			continue;
		ret = register_one(ep, op, req->iov[i].iov_base, req->iov[i].iov_len);
		if (ret) {
			drop_temp(op);
			return ret;
		}
	}
	return 0;
}

/*
 * A source that cannot be pinned may still be readable: Linux 6.1 does not pin a read-only
 * shared mapping. The kernel copies it for us, and says so instead of a SIGSEGV if it cannot.
 */
static int use_copy(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op)
{
	struct iovec to = { .iov_len = op->total };
	int ret = -FI_ENOMEM;

	to.iov_base = malloc(op->total);
	op->temp = calloc(1, sizeof(*op->temp));
	if (!to.iov_base || !op->temp)
		goto err_free;
	ret = -FI_EFAULT;
	if (process_vm_readv(getpid(), &to, 1, req->iov, req->count, 0) != (ssize_t)op->total)
		goto err_free;
	op->nsge = 0;
	ret = register_one(ep, op, to.iov_base, op->total);
	if (ret)
		goto err_free;
	op->local = MRF_LOCAL_COPY;
	op->bounce = to.iov_base;
	return 0;

err_free:
	free(op->temp);
	op->temp = NULL;
	free(to.iov_base);
	return ret;
}

static int explain_local(const struct mrf_req *req, int err)
{
	char why[160];
	size_t i, total = mrf_iov_total(req->iov, req->count);

	if (err != -FI_EFAULT) {
		mrf_page_explain_memlock(total, why, sizeof(why));
		return mrf_refuse(-err, FI_LOG_EP_DATA, 4014,
				  "local buffers of %zu byte%s cannot be pinned: %s", total,
				  MRF_S(total), why);
	}
	why[0] = '\0';
	for (i = 0; i < req->count && !why[0]; i++)
		mrf_page_explain(req->iov[i].iov_base, req->iov[i].iov_len,
				 req->type->kind == MRF_OP_READ, why, sizeof(why));
	return mrf_refuse(FI_EFAULT, FI_LOG_EP_DATA, 4013, "local buffer %p, %zu byte%s in all: %s",
			  req->iov[0].iov_base, total, MRF_S(total), why);
}

static int use_unregistered(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op)
{
	int ret = 1;

	if (op->total <= MRF_OP_INLINE && op->type->kind != MRF_OP_READ)
		ret = use_inline(req, op);
	else if (op->total <= MRF_BOUNCE_SIZE)
		ret = use_bounce(ep, req, op);
	if (ret == 1) {
		ret = use_temp(ep, req, op);
		if (ret == -FI_EFAULT && op->type->kind != MRF_OP_READ)
			ret = use_copy(ep, req, op);
	}
	return ret ? explain_local(req, ret) : 0;
}

int mrf_op_local_take(struct mrf_ep *ep, const struct mrf_req *req, struct mrf_op *op)
{
	bool strict = ep->domain->space.mode & FI_MR_LOCAL;
	int ret;

	op->nsge = 0;
	if (!op->total)
		return 0;
	/* What is injected is copied before the call returns: nothing to register. */
	if (req->flags & FI_INJECT)
		return use_unregistered(ep, req, op);
	if (strict || req->desc) {
		ret = use_desc(ep, req, op, strict);
		if (ret <= 0)
			return ret;
	}
	return use_unregistered(ep, req, op);
}

void mrf_op_local_drop(struct mrf_ep *ep, struct mrf_op *op)
{
	drop_temp(op);
	if (op->local == MRF_LOCAL_COPY)
		free(op->bounce);
	else if (op->local == MRF_LOCAL_BOUNCE)
		give_slot(ep, op->bounce);
	op->bounce = NULL;
}

bool mrf_op_local_open(const struct mrf_ep *ep, const struct mrf_op *op)
{
	struct mrf_desc desc;
	int i;

	if (op->local != MRF_LOCAL_DESC)
		return true;
	for (i = 0; i < op->ndesc; i++) {
		if (!mrf_desc_get(&ep->domain->space, op->desc[i], &desc))
			return false;
	}
	return true;
}

int mrf_op_sges(const struct mrf_op *op, uint64_t from, uint64_t *len, struct mrf_sge *sge, int max)
{
	uint64_t covered = 0, skip = from;
	int i, n = 0;

	for (i = 0; i < op->nsge && covered < *len && n < max; i++) {
		uint64_t take;

		if (skip >= op->sge[i].len) {
			skip -= op->sge[i].len;
			continue;
		}
		take = mrf_min(op->sge[i].len - skip, *len - covered);
		sge[n++] = (struct mrf_sge){ .addr = op->sge[i].addr + skip,
					     .len = (uint32_t)take,
					     .lkey = op->sge[i].lkey };
		covered += take;
		skip = 0;
	}
	*len = covered;
	return n;
}
