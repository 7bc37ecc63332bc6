/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queue: opening and closing, and the ring as it is written. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/cq_int.h"

#define DEFAULT_SIZE 256
#define MIN_SIZE 16
#define MAX_FIRST_SIZE ((size_t)1 << 20) /* more is allocated when it is needed */
#define CACHE_LINE 64

/*
 * --- writing -------------------------------------------------------------------------
 */

static struct mrf_cq_slot *ring_new(size_t n)
{
	if (n > SIZE_MAX / sizeof(struct mrf_cq_slot))
		return NULL;
	return aligned_alloc(CACHE_LINE, n * sizeof(struct mrf_cq_slot));
}

static __attribute__((noinline)) bool grow_locked(struct mrf_cq *cq)
{
	size_t n = (cq->mask + 1) * 2, i;
	struct mrf_cq_slot *bigger = cq->fixed ? NULL : ring_new(n);

	if (!bigger)
		return false;
	for (i = cq->head; i != cq->tail; i++)
		bigger[i & (n - 1)] = *mrf_cq_slot_at(cq, i);
	free(cq->ring);
	cq->ring = bigger;
	cq->mask = n - 1;
	return true;
}

/* Room for one more, or NULL: overrun, which fi_cq(3) calls fatal. */
static inline struct mrf_cq_slot *append_locked(struct mrf_cq *cq)
{
	mrf_lock_held(&cq->lock);
	if (mrf_unlikely(cq->lost))
		return NULL;
	if (mrf_unlikely(mrf_cq_used_locked(cq) > cq->mask) && !grow_locked(cq))
		return NULL;
	return mrf_cq_slot_at(cq, cq->tail++);
}

static __attribute__((noinline)) void lose_locked(struct mrf_cq *cq)
{
	mrf_lock_held(&cq->lock);
	if (!cq->lost++)
		mrf_log(FI_LOG_WARN, FI_LOG_CQ,
			"MRF-E2020: completion queue %p was overrun: there is no %s for more "
			"than %zu entries",
			(void *)&cq->fid, cq->fixed ? "room" : "memory", mrf_cq_used_locked(cq));
}

void mrf_cq_write(struct mrf_cq *cq, const struct mrf_comp *comp)
{
	struct mrf_cq_slot *slot;

	mrf_lock_take(&cq->lock);
	slot = append_locked(cq);
	if (mrf_likely(slot)) {
		slot->comp = *comp;
		slot->err = NULL;
	} else {
		lose_locked(cq);
	}
	mrf_cq_publish_locked(cq);
	mrf_lock_release(&cq->lock);
	mrf_wait_signal(&cq->wait);
}

/* Handles every unusual case. Nothing is done yet, and the lock is not held. */
static __attribute__((noinline, cold)) void write_own_slow(struct mrf_cq *cq, void *op_context,
							   uint64_t flags, size_t len)
{
	struct mrf_comp comp = {
		.op_context = op_context, .flags = flags, .len = len, .src_addr = FI_ADDR_NOTAVAIL
	};

	mrf_cq_write(cq, &comp);
}

static __attribute__((noinline, cold)) void wake(struct mrf_cq *cq)
{
	mrf_lock_wake(&cq->lock);
	mrf_wait_signal(&cq->wait);
}

static __attribute__((noinline, cold)) void write_own_locked(struct mrf_cq *cq, void *op_context,
							     uint64_t flags, size_t len)
{
	mrf_lock_held(&cq->lock);
	mrf_lock_release(&cq->lock);
	write_own_slow(cq, op_context, flags, len);
}

/* It makes a call only as its last step, so that no register is saved. */
void mrf_cq_write_own(struct mrf_cq *cq, void *op_context, uint64_t flags, size_t len)
{
	struct mrf_cq_slot *slot;
	size_t used;

	if (mrf_unlikely(!mrf_lock_try(&cq->lock)))
		return write_own_slow(cq, op_context, flags, len);
	used = mrf_cq_used_locked(cq);
	if (mrf_unlikely(cq->lost || used > cq->mask))
		return write_own_locked(cq, op_context, flags, len);
	slot = mrf_cq_slot_at(cq, cq->tail++);
	slot->comp = (struct mrf_comp){
		.op_context = op_context, .flags = flags, .len = len, .src_addr = FI_ADDR_NOTAVAIL
	};
	slot->err = NULL;
	atomic_store_explicit(&cq->pending, used + 1, memory_order_release);
	if (mrf_unlikely(mrf_lock_leave(&cq->lock)))
		return wake(cq);
	if (mrf_unlikely(mrf_wait_heard(&cq->wait)))
		mrf_wait_signal(&cq->wait);
}

void mrf_cq_write_err(struct mrf_cq *cq, const struct mrf_comp_err *err)
{
	struct mrf_comp_err *copy = malloc(sizeof(*copy));
	struct mrf_cq_slot *slot;

	mrf_lock_take(&cq->lock);
	/* The error to be reported may be the very lack of memory. */
	if (mrf_unlikely(!copy)) {
		copy = cq->spare;
		cq->spare = NULL;
	}
	slot = copy ? append_locked(cq) : NULL;
	if (slot) {
		*copy = *err;
		slot->comp = err->comp;
		slot->err = copy;
		cq->nerr++;
	} else {
		mrf_cq_spare_locked(cq, copy);
		lose_locked(cq);
	}
	mrf_cq_publish_locked(cq);
	mrf_lock_release(&cq->lock);
	mrf_wait_signal(&cq->wait);
}

/*
 * --- opening and closing -------------------------------------------------------------
 */

static void cq_describe(const struct fid *fid, char *buf, size_t len)
{
	struct mrf_cq *cq = mrf_container_of(fid, struct mrf_cq, fid.fid);

	snprintf(buf, len, "%zu unread", atomic_load(&cq->pending));
}

static void ring_free(struct mrf_cq *cq)
{
	struct mrf_list *node;
	size_t i;

	for (i = cq->head; i != cq->tail; i++)
		free(mrf_cq_slot_at(cq, i)->err);
	free(cq->ring);
	while ((node = mrf_list_pop(&cq->lent)))
		free(mrf_list_entry(node, struct mrf_comp_err, lent));
	free(cq->spare);
}

/* Threads in a blocking read, including those on their way out of it. */
static int read_busy(struct mrf_cq *cq)
{
	unsigned sreads;

	mrf_lock_take(&cq->lock);
	sreads = cq->sreads;
	mrf_lock_release(&cq->lock);
	return sreads ? mrf_wait_refuse_close(sreads) : 0;
}

static int cq_close(struct fid *fid)
{
	struct mrf_cq *cq = mrf_container_of(fid, struct mrf_cq, fid.fid);
	int ret = mrf_obj_busy(&cq->obj);

	if (!ret)
		ret = read_busy(cq);
	if (ret)
		return ret;
	mrf_wait_fini(&cq->wait);
	mrf_obj_fini(&cq->obj);
	mrf_lock_fini(&cq->lock);
	ring_free(cq);
	mrf_obj_drop(&cq->obj.parent);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct mrf_cq *cq = mrf_container_of(fid, struct mrf_cq, fid.fid);
	int ret = mrf_obj_check(&cq->obj, "fi_control");

	return ret ? ret : mrf_wait_control(&cq->wait, fid, command, arg);
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = mrf_no_bind,
	.control = cq_control,
	.ops_open = mrf_no_ops_open,
	.tostr = mrf_obj_tostr,
	.ops_set = mrf_no_ops_set,
};

/* Bytes of one entry; 0: no such format. */
static size_t format_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_UNSPEC:
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	}
	return 0;
}

static int check_cq_attr(const struct fi_cq_attr *attr)
{
	if (attr->flags & ~FI_AFFINITY)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_CQ, 2025,
				  "fi_cq_attr.flags=%#lx: only FI_AFFINITY is offered",
				  attr->flags);
	if (!format_size(attr->format))
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2026,
				  "fi_cq_attr.format=%d is not a format of fi_cq(3)",
				  (int)attr->format);
	if (attr->wait_obj == FI_WAIT_SET && !attr->wait_set)
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2027,
				  "fi_cq_attr.wait_obj=FI_WAIT_SET: wait_set must not be NULL");
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_cond != FI_CQ_COND_NONE &&
	    attr->wait_cond != FI_CQ_COND_THRESHOLD)
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2028,
				  "fi_cq_attr.wait_cond=%d is not a condition of fi_cq(3)",
				  (int)attr->wait_cond);
	return 0;
}

static size_t first_size(size_t asked)
{
	size_t want = asked ? mrf_min(asked, MAX_FIRST_SIZE) : DEFAULT_SIZE, n = MIN_SIZE;

	while (n < want)
		n *= 2;
	return n;
}

static struct mrf_cq *cq_new(const struct fi_cq_attr *attr, void *context)
{
	struct mrf_cq *cq = calloc(1, sizeof(*cq));
	size_t n = first_size(attr->size);

	if (!cq)
		return NULL;
	mrf_list_init(&cq->lent);
	cq->ring = ring_new(n);
	cq->spare = malloc(sizeof(*cq->spare));
	if (!cq->ring || !cq->spare) {
		ring_free(cq);
		free(cq);
		return NULL;
	}
	cq->mask = n - 1;
	cq->entry_size = format_size(attr->format);
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->fid.ops = &mrf_cq_ops;
	return cq;
}

int mrf_cq_open(struct mrf_obj *domain, const struct fi_cq_attr *attr, struct fid_cq **cq_fid,
		void *context)
{
	struct mrf_cq *cq;
	int ret;

	if (!attr || !cq_fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2024, "fi_cq_open: %s is NULL",
				  attr ? "cq" : "attr");
	ret = check_cq_attr(attr);
	if (ret)
		return ret;
	cq = cq_new(attr, context);
	if (!cq)
		return mrf_refuse(FI_ENOMEM, FI_LOG_CQ, 2029,
				  "there is no memory for a completion queue of %zu %s", attr->size,
				  attr->size == 1 ? "entry" : "entries");
	ret = mrf_wait_init(&cq->wait, attr->wait_obj);
	if (ret)
		goto err_new;
	mrf_lock_init(&cq->lock, MRF_RANK_CQ);
	mrf_obj_init(&cq->obj, &cq->fid.fid, cq_describe);
	cq->obj.wait = &cq->wait;
	cq->api_version = mrf_obj_api_version(domain);
	mrf_obj_hold(&cq->obj.parent, domain, &cq->fid.fid, cq_describe);
	*cq_fid = &cq->fid;
	return 0;

err_new:
	ring_free(cq);
	free(cq);
	return ret;
}

/* Nothing is in the ring yet, so that any part of it will do. */
void mrf_cq_fix(struct mrf_cq *cq, size_t most)
{
	size_t n = 1;

	while (n < most && n <= cq->mask)
		n *= 2;
	mrf_lock_take(&cq->lock);
	cq->fixed = true;
	cq->mask = n - 1;
	mrf_lock_release(&cq->lock);
}

int mrf_cq_trywait(struct mrf_cq *cq)
{
	bool something;
	int ret = mrf_obj_check(&cq->obj, "fi_trywait");

	if (!ret)
		ret = mrf_wait_try(&cq->wait);
	if (ret)
		return ret;
	/*
	 * Under the lock, so that a write that is not seen here has seen that a thread
	 * watches.
	 */
	mrf_lock_take(&cq->lock);
	something = mrf_cq_used_locked(cq) || cq->lost;
	mrf_lock_release(&cq->lock);
	return something ? -FI_EAGAIN : 0;
}

size_t mrf_cq_unread(const struct mrf_cq *cq)
{
	return atomic_load_explicit(&cq->pending, memory_order_relaxed);
}

size_t mrf_cq_taken(struct mrf_cq *cq)
{
	size_t taken;

	mrf_lock_take(&cq->lock);
	taken = cq->head;
	mrf_lock_release(&cq->lock);
	return taken;
}

struct mrf_cq *mrf_cq_from_fid(struct fid *fid)
{
	if (!fid || fid->fclass != FI_CLASS_CQ)
		return NULL;
	return mrf_container_of(fid, struct mrf_cq, fid.fid);
}

struct mrf_obj *mrf_cq_obj(struct mrf_cq *cq)
{
	return &cq->obj;
}
