/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queue: reading entries and errors, with and without waiting. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/cq_int.h"

/* The formats are prefixes of one another, and of struct mrf_comp. */
_Static_assert(offsetof(struct mrf_comp, flags) == offsetof(struct fi_cq_tagged_entry, flags) &&
		       offsetof(struct mrf_comp, len) == offsetof(struct fi_cq_tagged_entry, len) &&
		       offsetof(struct mrf_comp, buf) == offsetof(struct fi_cq_tagged_entry, buf) &&
		       offsetof(struct mrf_comp, data) ==
			       offsetof(struct fi_cq_tagged_entry, data) &&
		       offsetof(struct mrf_comp, tag) == offsetof(struct fi_cq_tagged_entry, tag),
	       "entries are copied as prefixes of struct mrf_comp");

void mrf_cq_spare_locked(struct mrf_cq *cq, struct mrf_comp_err *err)
{
	mrf_lock_held(&cq->lock);
	if (cq->spare)
		free(err);
	else
		cq->spare = err;
}

static bool is_empty(struct mrf_cq *cq)
{
	return !atomic_load_explicit(&cq->pending, memory_order_acquire);
}

static void copy_entry(const struct mrf_cq *cq, void *buf, size_t i, const struct mrf_comp *comp)
{
	/* Constant sizes let the compiler copy in registers. */
	switch (cq->entry_size) {
	case sizeof(struct fi_cq_entry):
		memcpy((struct fi_cq_entry *)buf + i, comp, sizeof(struct fi_cq_entry));
		break;
	case sizeof(struct fi_cq_msg_entry):
		memcpy((struct fi_cq_msg_entry *)buf + i, comp, sizeof(struct fi_cq_msg_entry));
		break;
	case sizeof(struct fi_cq_data_entry):
		memcpy((struct fi_cq_data_entry *)buf + i, comp, sizeof(struct fi_cq_data_entry));
		break;
	default:
		memcpy((struct fi_cq_tagged_entry *)buf + i, comp,
		       sizeof(struct fi_cq_tagged_entry));
	}
}

static inline ssize_t take_locked(struct mrf_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	size_t head = cq->head, most = mrf_min(count, mrf_cq_used_locked(cq)), n;

	mrf_lock_held(&cq->lock);
	if (head == cq->tail)
		return cq->lost ? -FI_EAVAIL : -FI_EAGAIN;
	for (n = 0; n < most; n++, head++) {
		struct mrf_cq_slot *slot = mrf_cq_slot_at(cq, head);

		if (mrf_unlikely(slot->err))
			break;
		copy_entry(cq, buf, n, &slot->comp);
		if (src_addr)
			src_addr[n] = slot->comp.src_addr;
	}
	if (!n)
		return count ? -FI_EAVAIL : 0;
	cq->head = head;
	mrf_cq_publish_locked(cq);
	return (ssize_t)n;
}

static int check_buf(const void *buf, size_t count)
{
	if (mrf_likely(buf || !count))
		return 0;
	return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2021,
			  "reading completions: buf must not be NULL, because count is %zu", count);
}

static MRF_ALWAYS_INLINE ssize_t read_some(struct fid_cq *fid, void *buf, size_t count,
					   fi_addr_t *src_addr)
{
	struct mrf_cq *cq = mrf_cq_of(fid);
	ssize_t ret = mrf_obj_check(&cq->obj, "fi_cq_read");

	if (mrf_likely(!ret))
		ret = check_buf(buf, count);
	if (mrf_unlikely(ret))
		return ret;
	/* An application reads 0 entries to make progress. */
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

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr)
{
	return read_some(fid, buf, count, src_addr);
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return read_some(fid, buf, count, NULL);
}

struct sread {
	struct mrf_cq *cq;
	void *buf;
	size_t count;
	fi_addr_t *src_addr;
	size_t want;	  /* entries to wait for; an error or an overrun ends it as well */
	unsigned signals; /* when the read began */
};

static ssize_t sread_locked(struct sread *s)
{
	struct mrf_cq *cq = s->cq;

	mrf_lock_held(&s->cq->lock);
	if (mrf_cq_used_locked(cq) < s->want && !cq->nerr && !cq->lost)
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

/*
 * The wait was timed out, signalled or interrupted: returns the completions that are
 * there, however few, or -FI_EAGAIN.
 */
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

static void sread_cancelled(void *arg)
{
	struct mrf_cq *cq = ((struct sread *)arg)->cq;

	mrf_lock_take(&cq->lock);
	cq->sreads--;
	mrf_lock_release(&cq->lock);
}

static __attribute__((noinline)) ssize_t sread_asleep(struct sread *s, int timeout)
{
	ssize_t ret;

	pthread_cleanup_push(sread_cancelled, s);
	ret = mrf_wait_until(&s->cq->wait, timeout, sread_attempt, s);
	pthread_cleanup_pop(0);
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

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr,
			    const void *cond, int timeout)
{
	struct mrf_cq *cq = mrf_cq_of(fid);
	struct sread s = { .cq = cq, .buf = buf, .count = count, .src_addr = src_addr };
	ssize_t ret = mrf_obj_check(&cq->obj, "fi_cq_sread");

	if (!ret)
		ret = mrf_wait_may_block(&cq->wait, "fi_cq_sread");
	if (!ret)
		ret = check_buf(buf, count);
	if (ret)
		return ret;
	s.want = entries_wanted(cq, cond, count);
	if (is_empty(cq))
		mrf_wait_poll_first(&cq->wait);
	ret = sread_begin(&s);
	if (ret == -FI_ECANCELED)
		return sread_end(&s, ret, false);
	if (ret != -FI_EAGAIN)
		return ret;
	ret = sread_asleep(&s, timeout);
	return sread_end(&s, ret, true);
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct mrf_cq *cq = mrf_cq_of(fid);
	int ret = mrf_obj_check(&cq->obj, "fi_cq_signal");

	if (!ret)
		ret = mrf_wait_may_block(&cq->wait, "fi_cq_signal");
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

/* It is made once, because threads look at its text without the lock. */
static struct mrf_comp_err *overrun_locked(struct mrf_cq *cq)
{
	struct mrf_comp_err *err = &cq->overrun;

	if (err->err)
		return err;
	err->err = FI_EOVERRUN;
	err->prov_errno = 2020;
	snprintf(err->text, sizeof(err->text),
		 "MRF-E2020: the completion queue was overrun: %zu completion%s lost for "
		 "want of %s",
		 cq->lost, MRF_S(cq->lost), cq->fixed ? "room" : "memory");
	return err;
}

/*
 * The thread may use the text until it reads the next error; the text of the one before
 * is freed.
 */
static void lend_err_locked(struct mrf_cq *cq, struct mrf_comp_err *err)
{
	struct mrf_comp_err *before;

	err->reader = mrf_obj_reader();
	mrf_list_each (node, &cq->lent) {
		before = mrf_list_entry(node, struct mrf_comp_err, lent);
		if (before->reader != err->reader)
			continue;
		mrf_list_del(node);
		mrf_cq_spare_locked(cq, before);
		break;
	}
	mrf_list_add_tail(&err->lent, &cq->lent);
}

/* The next error in the queue, or NULL. */
static struct mrf_comp_err *take_err_locked(struct mrf_cq *cq)
{
	struct mrf_comp_err *err;

	mrf_lock_held(&cq->lock);
	if (cq->head == cq->tail)
		return cq->lost ? overrun_locked(cq) : NULL;
	err = mrf_cq_slot_at(cq, cq->head)->err;
	if (!err)
		return NULL;
	cq->head++;
	cq->nerr--;
	mrf_cq_publish_locked(cq);
	lend_err_locked(cq, err);
	return err;
}

/* In place of a text, by the same rules. */
static void give_addr(const struct mrf_comp_err *err, void **data, size_t *size)
{
	if (!*data || !*size) {
		*data = (void *)err->text;
		*size = err->addr_len;
		return;
	}
	*size = mrf_min(*size, err->addr_len);
	memcpy(*data, err->text, *size);
}

static void fill_cq_err(const struct mrf_cq *cq, const struct mrf_comp_err *err,
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
	if (err->addr_len)
		give_addr(err, &buf->err_data, &size);
	else
		mrf_obj_err_data(cq->api_version, err->text, &buf->err_data, &size);
	/* Before 1.5 the structure ended with err_data. */
	if (!old)
		buf->err_data_size = size;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct mrf_cq *cq = mrf_cq_of(fid);
	struct mrf_comp_err *err;
	int ret = mrf_obj_check(&cq->obj, "fi_cq_readerr");

	if (ret)
		return ret;
	if (!buf)
		return mrf_refuse(FI_EINVAL, FI_LOG_CQ, 2022,
				  "fi_cq_readerr: buf must not be NULL");
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_CQ, 2023,
				  "fi_cq_readerr: flags must be 0, not %#lx", flags);
	mrf_lock_take(&cq->lock);
	err = take_err_locked(cq);
	if (err)
		fill_cq_err(cq, err, buf);
	mrf_lock_release(&cq->lock);
	return err ? 1 : -FI_EAGAIN;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	(void)fid;
	/* An address is no text. */
	if (prov_errno == MRF_UNKNOWN_SOURCE)
		err_data = "the sender is not in the address vector: err_data is its address";
	return mrf_obj_strerror(prov_errno, err_data, buf, len);
}

struct fi_ops_cq mrf_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};
