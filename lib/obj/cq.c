/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/cq.h"

#define DEFAULT_SIZE 256
#define MIN_SIZE 16
#define MAX_FIRST_SIZE ((size_t)1 << 20) /* more is allocated when it is needed */
#define CACHE_LINE 64

/* The formats are prefixes of one another, and of struct mrf_comp. */
_Static_assert(offsetof(struct mrf_comp, flags) ==
			       offsetof(struct fi_cq_tagged_entry, flags) &&
		       offsetof(struct mrf_comp, len) ==
			       offsetof(struct fi_cq_tagged_entry, len) &&
		       offsetof(struct mrf_comp, buf) ==
			       offsetof(struct fi_cq_tagged_entry, buf) &&
		       offsetof(struct mrf_comp, data) ==
			       offsetof(struct fi_cq_tagged_entry, data) &&
		       offsetof(struct mrf_comp, tag) ==
			       offsetof(struct fi_cq_tagged_entry, tag),
	       "entries are copied as prefixes of struct mrf_comp");

struct slot {
	struct mrf_comp comp;
	struct mrf_comp_err *err; /* owned; NULL: a completion */
};

struct mrf_cq {
	struct fid_cq fid;
	struct mrf_obj obj;
	struct mrf_hold parent;
	struct fid_domain *domain;
	struct mrf_wait wait;
	size_t entry_size;     /* of the format; immutable */
	bool threshold;	       /* FI_CQ_COND_THRESHOLD; immutable */
	uint32_t api_version;  /* immutable */
	atomic_size_t pending; /* what a read would find; changed under lock */

	struct mrf_lock lock; /* rank CQ: guards all below */
	struct slot *ring;
	size_t mask;		       /* slots - 1; a power of two minus one */
	size_t head;		       /* next to read; counts up for ever */
	size_t tail;		       /* next to write */
	size_t nerr;		       /* errors between head and tail */
	size_t lost;		       /* completions without memory; not 0: overrun */
	struct mrf_comp_err *last_err; /* owns the text of the last fi_cq_readerr */
	struct mrf_comp_err overrun;
	unsigned sreads;   /* threads in a blocking read */
	unsigned signals;  /* fi_cq_signal calls so far */
	bool signal_waits; /* one came while nobody was blocked: for the next read */
};

static struct mrf_cq *to_cq(struct fid_cq *fid)
{
	return mrf_container_of(fid, struct mrf_cq, fid);
}

static size_t used(const struct mrf_cq *cq)
{
	return cq->tail - cq->head;
}

static struct slot *slot_at(const struct mrf_cq *cq, size_t pos)
{
	return &cq->ring[pos & cq->mask];
}

static void publish_locked(struct mrf_cq *cq)
{
	atomic_store_explicit(&cq->pending, used(cq) + !!cq->lost, memory_order_release);
}

static bool is_empty(struct mrf_cq *cq)
{
	return !atomic_load_explicit(&cq->pending, memory_order_acquire);
}

/*
 * --- writing -------------------------------------------------------------------------
 */

static struct slot *ring_new(size_t n)
{
	if (n > SIZE_MAX / sizeof(struct slot))
		return NULL;
	return aligned_alloc(CACHE_LINE, n * sizeof(struct slot));
}

static __attribute__((noinline)) bool grow_locked(struct mrf_cq *cq)
{
	size_t n = (cq->mask + 1) * 2, i;
	struct slot *bigger = ring_new(n);

	if (!bigger)
		return false;
	for (i = cq->head; i != cq->tail; i++)
		bigger[i & (n - 1)] = *slot_at(cq, i);
	free(cq->ring);
	cq->ring = bigger;
	cq->mask = n - 1;
	return true;
}

/* Room for one more, or NULL: overrun, which fi_cq(3) calls fatal. */
static inline struct slot *append_locked(struct mrf_cq *cq)
{
	if (mrf_unlikely(cq->lost))
		return NULL;
	if (mrf_unlikely(used(cq) > cq->mask) && !grow_locked(cq))
		return NULL;
	return slot_at(cq, cq->tail++);
}

static __attribute__((noinline)) void lose_locked(struct mrf_cq *cq)
{
	if (!cq->lost++)
		mrf_log(FI_LOG_WARN, FI_LOG_CQ,
			"MRF-E2020: completion queue %p overrun: no memory for more than "
			"%zu "
			"entries",
			(void *)&cq->fid, used(cq));
}

void mrf_cq_write(struct mrf_cq *cq, const struct mrf_comp *comp)
{
	struct slot *slot;

	mrf_lock_take(&cq->lock);
	slot = append_locked(cq);
	if (mrf_likely(slot)) {
		slot->comp = *comp;
		slot->err = NULL;
	} else {
		lose_locked(cq);
	}
	publish_locked(cq);
	mrf_lock_release(&cq->lock);
	mrf_wait_signal(&cq->wait);
}

void mrf_cq_write_err(struct mrf_cq *cq, const struct mrf_comp_err *err)
{
	struct mrf_comp_err *copy = malloc(sizeof(*copy));
	struct slot *slot;

	if (copy)
		*copy = *err;
	mrf_lock_take(&cq->lock);
	slot = copy ? append_locked(cq) : NULL;
	if (slot) {
		slot->comp = err->comp;
		slot->err = copy;
		cq->nerr++;
		copy = NULL;
	} else {
		lose_locked(cq);
	}
	publish_locked(cq);
	mrf_lock_release(&cq->lock);
	free(copy);
	mrf_wait_signal(&cq->wait);
}

/*
 * --- reading -------------------------------------------------------------------------
 */

static void copy_entry(const struct mrf_cq *cq, void *buf, size_t i,
		       const struct mrf_comp *comp)
{
	/* Constant sizes let the compiler copy in registers. */
	switch (cq->entry_size) {
	case sizeof(struct fi_cq_entry):
		memcpy((struct fi_cq_entry *)buf + i, comp, sizeof(struct fi_cq_entry));
		break;
	case sizeof(struct fi_cq_msg_entry):
		memcpy((struct fi_cq_msg_entry *)buf + i, comp,
		       sizeof(struct fi_cq_msg_entry));
		break;
	case sizeof(struct fi_cq_data_entry):
		memcpy((struct fi_cq_data_entry *)buf + i, comp,
		       sizeof(struct fi_cq_data_entry));
		break;
	default:
		memcpy((struct fi_cq_tagged_entry *)buf + i, comp,
		       sizeof(struct fi_cq_tagged_entry));
	}
}

static inline ssize_t take_locked(struct mrf_cq *cq, void *buf, size_t count,
			   fi_addr_t *src_addr)
{
	ssize_t n = 0;

	if (cq->head == cq->tail)
		return cq->lost ? -FI_EAVAIL : -FI_EAGAIN;
	while ((size_t)n < count && cq->head != cq->tail) {
		struct slot *slot = slot_at(cq, cq->head);

		if (mrf_unlikely(slot->err))
			break;
		copy_entry(cq, buf, (size_t)n, &slot->comp);
		if (src_addr)
			src_addr[n] = slot->comp.src_addr;
		cq->head++;
		n++;
	}
	if (!n)
		return count ? -FI_EAVAIL : 0;
	publish_locked(cq);
	return n;
}

static int check_buf(const void *buf, size_t count)
{
	if (mrf_likely(buf || !count))
		return 0;
	return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2021,
			  "reading %zu completions into a NULL buffer", count);
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
			   fi_addr_t *src_addr)
{
	struct mrf_cq *cq = to_cq(fid);
	ssize_t ret = check_buf(buf, count);

	if (mrf_unlikely(ret))
		return ret;
	/* A read of nothing is there to make progress. */
	if (!count || is_empty(cq)) {
		mrf_wait_poll(&cq->wait);
		if (is_empty(cq))
			return -FI_EAGAIN;
	}
	mrf_lock_take(&cq->lock);
	ret = take_locked(cq, buf, count, src_addr);
	mrf_lock_release(&cq->lock);
	return ret;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

struct sread {
	struct mrf_cq *cq;
	void *buf;
	size_t count;
	fi_addr_t *src_addr;
	size_t want; /* entries to wait for; an error or an overrun ends it as well */
	unsigned signals; /* when the read began */
};

static ssize_t sread_locked(struct sread *s)
{
	struct mrf_cq *cq = s->cq;

	if (used(cq) < s->want && !cq->nerr && !cq->lost)
		return -FI_EAGAIN;
	return take_locked(cq, s->buf, s->count, s->src_addr);
}

static ssize_t sread_attempt(void *arg)
{
	struct sread *s = arg;
	ssize_t ret;

	mrf_lock_take(&s->cq->lock);
	ret = sread_locked(s);
	if (ret == -FI_EAGAIN && s->cq->signals != s->signals)
		ret = -FI_ECANCELED;
	mrf_lock_release(&s->cq->lock);
	return ret;
}

/* -FI_EAGAIN: the thread has to block, and is counted in sreads. */
static ssize_t sread_begin(struct sread *s)
{
	struct mrf_cq *cq = s->cq;
	ssize_t ret;

	mrf_lock_take(&cq->lock);
	ret = sread_locked(s);
	if (ret == -FI_EAGAIN && cq->signal_waits) {
		cq->signal_waits = false;
		ret = -FI_ECANCELED;
	} else if (ret == -FI_EAGAIN) {
		s->signals = cq->signals;
		cq->sreads++;
	}
	mrf_lock_release(&cq->lock);
	return ret;
}

/* Out of time, signalled or interrupted: what is there, however little, or -FI_EAGAIN. */
static ssize_t sread_end(struct sread *s, ssize_t ret, bool counted)
{
	struct mrf_cq *cq = s->cq;

	mrf_lock_take(&cq->lock);
	cq->sreads -= counted;
	if (ret == -FI_ETIMEDOUT || ret == -FI_ECANCELED || ret == -FI_EINTR)
		ret = take_locked(cq, s->buf, s->count, s->src_addr);
	mrf_lock_release(&cq->lock);
	return ret;
}

static size_t entries_wanted(const struct mrf_cq *cq, const void *cond, size_t count)
{
	if (!cq->threshold || !count)
		return 1;
	/* fi_cq(3): cond is the number itself. Waiting for more than fits would be for
	 * ever. */
	return mrf_max(1, mrf_min((uintptr_t)cond, count));
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
			    fi_addr_t *src_addr, const void *cond, int timeout)
{
	struct mrf_cq *cq = to_cq(fid);
	struct sread s = { .cq = cq, .buf = buf, .count = count, .src_addr = src_addr };
	ssize_t ret = mrf_wait_may_block(&cq->wait, "fi_cq_sread");

	if (!ret)
		ret = check_buf(buf, count);
	if (ret)
		return ret;
	s.want = entries_wanted(cq, cond, count);
	if (is_empty(cq))
		mrf_wait_poll(&cq->wait);
	ret = sread_begin(&s);
	if (ret == -FI_ECANCELED)
		return sread_end(&s, ret, false);
	if (ret != -FI_EAGAIN)
		return ret;
	ret = mrf_wait_until(&cq->wait, timeout, sread_attempt, &s);
	return sread_end(&s, ret, true);
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond,
			int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct mrf_cq *cq = to_cq(fid);
	int ret = mrf_wait_may_block(&cq->wait, "fi_cq_signal");

	if (ret)
		return ret;
	mrf_lock_take(&cq->lock);
	cq->signals++;
	cq->signal_waits = !cq->sreads;
	mrf_lock_release(&cq->lock);
	mrf_wait_signal(&cq->wait);
	return 0;
}

/*
 * --- errors --------------------------------------------------------------------------
 */

static struct mrf_comp_err *overrun_locked(struct mrf_cq *cq)
{
	struct mrf_comp_err *err = &cq->overrun;

	memset(err, 0, sizeof(*err));
	err->err = FI_EOVERRUN;
	err->prov_errno = 2020;
	snprintf(err->text, sizeof(err->text),
		 "MRF-E2020: completion queue overrun, %zu completion(s) lost for want "
		 "of memory",
		 cq->lost);
	return err;
}

/* The error that is next, or NULL. */
static struct mrf_comp_err *take_err_locked(struct mrf_cq *cq)
{
	struct mrf_comp_err *err;

	if (cq->head == cq->tail)
		return cq->lost ? overrun_locked(cq) : NULL;
	err = slot_at(cq, cq->head)->err;
	if (!err)
		return NULL;
	cq->head++;
	cq->nerr--;
	publish_locked(cq);
	free(cq->last_err);
	cq->last_err = err;
	return err;
}

static void fill_err_entry(const struct mrf_cq *cq, const struct mrf_comp_err *err,
			   struct fi_cq_err_entry *buf)
{
	bool old = FI_VERSION_LT(cq->api_version, FI_VERSION(1, 5));
	size_t size = old ? 0 : buf->err_data_size;

	buf->op_context = err->comp.op_context;
	buf->flags = err->comp.flags;
	buf->len = err->comp.len;
	buf->buf = err->comp.buf;
	buf->data = err->comp.data;
	buf->tag = err->comp.tag;
	buf->olen = err->olen;
	buf->err = err->err;
	buf->prov_errno = err->prov_errno;
	mrf_obj_err_data(cq->api_version, err->text, &buf->err_data, &size);
	/* Before 1.5 the structure ended with err_data. */
	if (!old)
		buf->err_data_size = size;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct mrf_cq *cq = to_cq(fid);
	struct mrf_comp_err *err;

	if (!buf)
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2022,
				  "fi_cq_readerr into a NULL buffer");
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_CQ, 2023,
				  "fi_cq_readerr flags=%#llx: must be 0",
				  (unsigned long long)flags);
	mrf_lock_take(&cq->lock);
	err = take_err_locked(cq);
	if (err)
		fill_err_entry(cq, err, buf);
	mrf_lock_release(&cq->lock);
	return err ? 1 : -FI_EAGAIN;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data,
			       char *buf, size_t len)
{
	(void)fid;
	return mrf_obj_strerror(prov_errno, err_data, buf, len);
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

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
	size_t i;

	for (i = cq->head; i != cq->tail; i++)
		free(slot_at(cq, i)->err);
	free(cq->ring);
	free(cq->last_err);
}

static int cq_close(struct fid *fid)
{
	struct mrf_cq *cq = mrf_container_of(fid, struct mrf_cq, fid.fid);
	int ret = mrf_obj_busy(&cq->obj);

	if (!ret)
		ret = mrf_wait_busy(&cq->wait);
	if (ret)
		return ret;
	mrf_obj_drop(&cq->parent);
	mrf_wait_fini(&cq->wait);
	mrf_obj_fini(&cq->obj);
	mrf_lock_fini(&cq->lock);
	ring_free(cq);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct mrf_cq *cq = mrf_container_of(fid, struct mrf_cq, fid.fid);

	return mrf_wait_control(&cq->wait, fid, command, arg);
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = mrf_no_bind,
	.control = cq_control,
	.ops_open = mrf_no_ops_open,
	.tostr = mrf_no_tostr,
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

static int check_attr(const struct fi_cq_attr *attr)
{
	if (attr->flags & ~FI_AFFINITY)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_CQ, 2025,
				  "fi_cq_attr.flags=%#llx: only FI_AFFINITY is offered",
				  (unsigned long long)attr->flags);
	if (!format_size(attr->format))
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2026,
				  "fi_cq_attr.format=%d is no format of fi_cq(3)",
				  (int)attr->format);
	if (attr->wait_obj == FI_WAIT_SET && !attr->wait_set)
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2027,
				  "fi_cq_attr.wait_obj=FI_WAIT_SET with a NULL wait_set");
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_cond != FI_CQ_COND_NONE &&
	    attr->wait_cond != FI_CQ_COND_THRESHOLD)
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2028,
				  "fi_cq_attr.wait_cond=%d is no condition of fi_cq(3)",
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
	cq->ring = ring_new(n);
	if (!cq->ring) {
		free(cq);
		return NULL;
	}
	cq->mask = n - 1;
	cq->entry_size = format_size(attr->format);
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->fid.ops = &cq_ops;
	return cq;
}

int mrf_cq_open(struct mrf_obj *domain, struct fid_domain *domain_fid,
		const struct fi_cq_attr *attr, struct fid_cq **cq_fid, void *context)
{
	struct mrf_cq *cq;
	int ret;

	if (!attr || !cq_fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2024, "fi_cq_open: %s is NULL",
				  attr ? "cq" : "attr");
	ret = check_attr(attr);
	if (ret)
		return ret;
	cq = cq_new(attr, context);
	if (!cq)
		return mrf_refuse(FI_ENOMEM, FI_LOG_CQ, 2029,
				  "no memory for a completion queue of %zu entries",
				  attr->size);
	ret = mrf_wait_init(&cq->wait, attr->wait_obj);
	if (ret)
		goto err_new;
	mrf_lock_init(&cq->lock, MRF_RANK_CQ);
	mrf_obj_init(&cq->obj, &cq->fid.fid, cq_describe);
	cq->domain = domain_fid;
	cq->api_version = mrf_obj_api_version(domain);
	mrf_obj_hold(&cq->parent, domain, &cq->fid.fid, cq_describe);
	*cq_fid = &cq->fid;
	return 0;

err_new:
	ring_free(cq);
	free(cq);
	return ret;
}

int mrf_cq_trywait(struct mrf_cq *cq)
{
	bool something;
	int ret = mrf_wait_try(&cq->wait);

	if (ret)
		return ret;
	/* Under the lock, so that a write not seen here saw that someone watches. */
	mrf_lock_take(&cq->lock);
	something = used(cq) || cq->lost;
	mrf_lock_release(&cq->lock);
	return something ? -FI_EAGAIN : 0;
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

struct fid_domain *mrf_cq_domain(struct mrf_cq *cq)
{
	return cq->domain;
}

struct mrf_wait *mrf_cq_wait(struct mrf_cq *cq)
{
	return &cq->wait;
}
