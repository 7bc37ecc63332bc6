/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/eq.h"
#include "obj/wait.h"

struct mrf_eq_event {
	struct mrf_list node;	    /* in eq->events or eq->lent */
	const void *reader;	    /* once it is in lent: mrf_obj_reader */
	struct mrf_eq_event **slot; /* the pointer of its owner: eq.h; NULL: it has none */
	uint32_t type;
	bool error; /* data is a struct fi_eq_err_entry and its text */
	size_t len; /* of data */
	_Alignas(max_align_t) unsigned char data[];
};

struct mrf_eq {
	struct fid_eq fid;
	struct mrf_obj obj;
	struct mrf_wait wait; /* without sources */
	bool writable;	      /* FI_WRITE; immutable */
	uint32_t api_version; /* immutable */
	atomic_size_t count;  /* events in the list; changed under lock */
	struct mrf_lock lock; /* rank EQ: guards both below */
	struct mrf_list events;
	struct mrf_list lent; /* errors that were read, for their texts: <= 1 per thread */
};

static struct mrf_eq *to_eq(struct fid_eq *fid)
{
	return mrf_container_of(fid, struct mrf_eq, fid);
}

/*
 * --- writing -------------------------------------------------------------------------
 */

static struct mrf_eq_event *event_new(uint32_t type, size_t len)
{
	struct mrf_eq_event *event = NULL;

	if (len <= SIZE_MAX - sizeof(*event))
		event = malloc(sizeof(*event) + len);
	if (!event) {
		mrf_refuse(FI_ENOMEM, FI_LOG_EQ, 2060,
			   "there is no memory for an event of %zu byte%s", len, MRF_S(len));
		return NULL;
	}
	event->slot = NULL;
	event->type = type;
	event->error = false;
	event->len = len;
	return event;
}

static void unlink_locked(struct mrf_eq *eq, struct mrf_eq_event *event)
{
	mrf_lock_held(&eq->lock);
	mrf_list_del(&event->node);
	atomic_fetch_sub(&eq->count, 1);
	if (event->slot)
		*event->slot = NULL;
}

static void append_event(struct mrf_eq *eq, struct mrf_eq_event *event)
{
	mrf_lock_take(&eq->lock);
	mrf_list_add_tail(&event->node, &eq->events);
	atomic_fetch_add(&eq->count, 1);
	mrf_lock_release(&eq->lock);
	mrf_wait_signal(&eq->wait);
}

static void fill_event(struct mrf_eq_event *event, const void *buf, size_t len)
{
	event->len = len;
	if (len)
		memcpy(event->data, buf, len);
}

static void fill_err(struct mrf_eq_event *event, const struct fi_eq_err_entry *err,
		     const char *text, size_t len)
{
	event->error = true;
	event->len = sizeof(*err) + len + 1;
	memcpy(event->data, err, sizeof(*err));
	memcpy(event->data + sizeof(*err), text, len);
	event->data[sizeof(*err) + len] = '\0';
}

int mrf_eq_write(struct mrf_eq *eq, uint32_t type, const void *buf, size_t len)
{
	struct mrf_eq_event *event = event_new(type, len);

	if (!event)
		return -FI_ENOMEM;
	fill_event(event, buf, len);
	append_event(eq, event);
	return 0;
}

int mrf_eq_write_err(struct mrf_eq *eq, const struct fi_eq_err_entry *err, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	struct mrf_eq_event *event = event_new(0, sizeof(*err) + len + 1);

	if (!event)
		return -FI_ENOMEM;
	fill_err(event, err, text ? text : "", len);
	append_event(eq, event);
	return 0;
}

/* --- events that are made before they happen -------------------------------------- */

struct mrf_eq_event *mrf_eq_event_new(void)
{
	return event_new(0, sizeof(struct fi_eq_err_entry) + MRF_EQ_TEXT);
}

void mrf_eq_post(struct mrf_eq *eq, struct mrf_eq_event **slot, uint32_t type,
		 const struct fi_eq_entry *entry)
{
	struct mrf_eq_event *event = *slot;

	event->slot = slot;
	event->type = type;
	fill_event(event, entry, sizeof(*entry));
	append_event(eq, event);
}

void mrf_eq_post_err(struct mrf_eq *eq, struct mrf_eq_event **slot,
		     const struct fi_eq_err_entry *err, const char *text)
{
	struct mrf_eq_event *event = *slot;
	size_t len = strlen(text);

	event->slot = slot;
	fill_err(event, err, text, len < MRF_EQ_TEXT ? len : MRF_EQ_TEXT - 1);
	append_event(eq, event);
}

void mrf_eq_retract(struct mrf_eq *eq, struct mrf_eq_event **slot)
{
	struct mrf_eq_event *event;

	mrf_lock_take(&eq->lock);
	event = *slot;
	if (event && event->slot)
		unlink_locked(eq, event);
	*slot = NULL;
	mrf_lock_release(&eq->lock);
	free(event);
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			uint64_t flags)
{
	struct mrf_eq *eq = to_eq(fid);
	int ret = mrf_obj_check(&eq->obj, "fi_eq_write");

	if (ret)
		return ret;
	if (!eq->writable)
		return mrf_refuse(FI_EINVAL, FI_LOG_EQ, 2061,
				  "fi_eq_write: the event queue was opened without FI_WRITE");
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EQ, 2062,
				  "fi_eq_write: flags must be 0, not %#lx", flags);
	if (!buf && len)
		return mrf_refuse(FI_EINVAL, FI_LOG_EQ, 2063,
				  "fi_eq_write: buf must not be NULL, because len is %zu", len);
	ret = mrf_eq_write(eq, event, buf, len);
	return ret ? ret : (ssize_t)len;
}

/*
 * --- reading -------------------------------------------------------------------------
 */

static struct mrf_eq_event *first_locked(const struct mrf_eq *eq)
{
	struct mrf_list *node = mrf_list_first(&eq->events);

	mrf_lock_held(&eq->lock);
	return node ? mrf_list_entry(node, struct mrf_eq_event, node) : NULL;
}

struct reading {
	struct mrf_eq *eq;
	uint32_t *event;
	void *buf;
	size_t len;
	uint64_t flags;
};

static ssize_t read_attempt(void *arg)
{
	struct reading *r = arg;
	struct mrf_eq_event *event, *done = NULL;
	ssize_t ret = -FI_EAGAIN;

	mrf_lock_take(&r->eq->lock);
	event = first_locked(r->eq);
	if (event && event->error) {
		ret = -FI_EAVAIL;
	} else if (event && event->len > r->len) {
		ret = -FI_ETOOSMALL;
	} else if (event) {
		*r->event = event->type;
		if (event->len)
			memcpy(r->buf, event->data, event->len);
		ret = (ssize_t)event->len;
		if (!(r->flags & FI_PEEK)) {
			unlink_locked(r->eq, event);
			done = event;
		}
	}
	mrf_lock_release(&r->eq->lock);
	free(done);
	return ret;
}

static int check_read(const struct reading *r)
{
	if (!r->event || (!r->buf && r->len))
		return mrf_refuse(FI_EINVAL, FI_LOG_EQ, 2064, "reading an event: %s is NULL",
				  r->event ? "buf" : "event");
	if (r->flags & ~FI_PEEK)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EQ, 2065,
				  "reading an event: flags=%#lx: only FI_PEEK is known", r->flags);
	return 0;
}

/* Logs that the event, which stays in the queue, does not fit into the buffer. */
static ssize_t read_result(const struct reading *r, ssize_t ret)
{
	if (ret == -FI_ETOOSMALL)
		return mrf_refuse(FI_ETOOSMALL, FI_LOG_EQ, 2066,
				  "the next event does not fit into a buffer of %zu byte%s", r->len,
				  MRF_S(r->len));
	return ret;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct reading r = {
		.eq = to_eq(fid), .event = event, .buf = buf, .len = len, .flags = flags
	};
	int ret = mrf_obj_check(&r.eq->obj, "fi_eq_read");

	if (!ret)
		ret = check_read(&r);
	return ret ? ret : read_result(&r, read_attempt(&r));
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct reading r = {
		.eq = to_eq(fid), .event = event, .buf = buf, .len = len, .flags = flags
	};
	ssize_t ret = mrf_obj_check(&r.eq->obj, "fi_eq_sread");

	if (!ret)
		ret = mrf_wait_may_block(&r.eq->wait, "fi_eq_sread");
	if (!ret)
		ret = check_read(&r);
	if (ret)
		return ret;
	ret = read_attempt(&r);
	if (ret == -FI_EAGAIN)
		ret = mrf_wait_until(&r.eq->wait, timeout, read_attempt, &r);
	if (ret == -FI_ETIMEDOUT || ret == -FI_EINTR)
		return -FI_EAGAIN;
	return read_result(&r, ret);
}

static void fill_eq_err_locked(const struct mrf_eq *eq, const struct mrf_eq_event *event,
			       struct fi_eq_err_entry *buf)
{
	void *data = buf->err_data;
	size_t size = buf->err_data_size;

	mrf_lock_held(&eq->lock);
	memcpy(buf, event->data, sizeof(*buf));
	mrf_obj_err_data(eq->api_version, (const char *)event->data + sizeof(*buf), &data, &size);
	buf->err_data = data;
	buf->err_data_size = size;
}

/* Lends the text as a completion queue does. Returns the event that is to be freed. */
static struct mrf_eq_event *lend_event_locked(struct mrf_eq *eq, struct mrf_eq_event *event)
{
	struct mrf_eq_event *before = NULL;

	mrf_lock_held(&eq->lock);
	event->reader = mrf_obj_reader();
	mrf_list_each (node, &eq->lent) {
		before = mrf_list_entry(node, struct mrf_eq_event, node);
		if (before->reader == event->reader)
			break;
		before = NULL;
	}
	if (before)
		mrf_list_del(&before->node);
	mrf_list_add_tail(&event->node, &eq->lent);
	return before;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct mrf_eq_event *event, *done = NULL;
	struct mrf_eq *eq = to_eq(fid);
	int ret = mrf_obj_check(&eq->obj, "fi_eq_readerr");

	if (ret)
		return ret;
	if (!buf)
		return mrf_refuse(FI_EINVAL, FI_LOG_EQ, 2067,
				  "fi_eq_readerr: buf must not be NULL");
	if (flags & ~FI_PEEK)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EQ, 2068,
				  "fi_eq_readerr: flags=%#lx: only FI_PEEK is known", flags);
	mrf_lock_take(&eq->lock);
	event = first_locked(eq);
	if (event && !event->error)
		event = NULL;
	if (event)
		fill_eq_err_locked(eq, event, buf);
	if (event && !(flags & FI_PEEK)) {
		unlink_locked(eq, event);
		done = lend_event_locked(eq, event);
	}
	mrf_lock_release(&eq->lock);
	free(done);
	return event ? (ssize_t)sizeof(*buf) : -FI_EAGAIN;
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	(void)fid;
	return mrf_obj_strerror(prov_errno, err_data, buf, len);
}

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

/*
 * --- opening and closing -------------------------------------------------------------
 */

static void eq_describe(const struct fid *fid, char *buf, size_t len)
{
	struct mrf_eq *eq = mrf_container_of(fid, struct mrf_eq, fid.fid);

	snprintf(buf, len, "%zu unread", atomic_load(&eq->count));
}

static int eq_close(struct fid *fid)
{
	struct mrf_eq *eq = mrf_container_of(fid, struct mrf_eq, fid.fid);
	struct mrf_list *node;
	int ret = mrf_obj_busy(&eq->obj);

	if (!ret)
		ret = mrf_wait_busy(&eq->wait);
	if (ret)
		return ret;
	while ((node = mrf_list_pop(&eq->events)))
		free(mrf_list_entry(node, struct mrf_eq_event, node));
	while ((node = mrf_list_pop(&eq->lent)))
		free(mrf_list_entry(node, struct mrf_eq_event, node));
	mrf_wait_fini(&eq->wait);
	mrf_obj_fini(&eq->obj);
	mrf_lock_fini(&eq->lock);
	mrf_obj_drop(&eq->obj.parent);
	free(eq);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct mrf_eq *eq = mrf_container_of(fid, struct mrf_eq, fid.fid);
	int ret = mrf_obj_check(&eq->obj, "fi_control");

	return ret ? ret : mrf_wait_control(&eq->wait, fid, command, arg);
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = mrf_no_bind,
	.control = eq_control,
	.ops_open = mrf_no_ops_open,
	.tostr = mrf_obj_tostr,
	.ops_set = mrf_no_ops_set,
};

static int check_eq_attr(const struct fi_eq_attr *attr)
{
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_EQ, 2070,
				  "fi_eq_attr.flags=%#lx: only FI_WRITE and FI_AFFINITY are known",
				  attr->flags);
	if (attr->wait_obj == FI_WAIT_SET && !attr->wait_set)
		return mrf_refuse(FI_EINVAL, FI_LOG_EQ, 2071,
				  "fi_eq_attr.wait_obj=FI_WAIT_SET: wait_set must not be NULL");
	return 0;
}

int mrf_eq_open(struct mrf_obj *fabric, const struct fi_eq_attr *attr, struct fid_eq **eq_fid,
		void *context)
{
	struct mrf_eq *eq;
	int ret;

	if (!attr || !eq_fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_EQ, 2069, "fi_eq_open: %s is NULL",
				  attr ? "eq" : "attr");
	ret = check_eq_attr(attr);
	if (ret)
		return ret;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return mrf_refuse(FI_ENOMEM, FI_LOG_EQ, 2072,
				  "there is no memory for an event queue");
	ret = mrf_wait_init(&eq->wait, attr->wait_obj);
	if (ret)
		goto err_alloc;
	mrf_list_init(&eq->events);
	mrf_list_init(&eq->lent);
	mrf_lock_init(&eq->lock, MRF_RANK_EQ);
	eq->writable = attr->flags & FI_WRITE;
	eq->api_version = mrf_obj_api_version(fabric);
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &eq_fid_ops;
	eq->fid.ops = &eq_ops;
	mrf_obj_init(&eq->obj, &eq->fid.fid, eq_describe);
	mrf_obj_hold(&eq->obj.parent, fabric, &eq->fid.fid, eq_describe);
	*eq_fid = &eq->fid;
	return 0;

err_alloc:
	free(eq);
	return ret;
}

int mrf_eq_trywait(struct mrf_eq *eq)
{
	bool something;
	int ret = mrf_obj_check(&eq->obj, "fi_trywait");

	if (!ret)
		ret = mrf_wait_try(&eq->wait);
	if (ret)
		return ret;
	mrf_lock_take(&eq->lock);
	something = !mrf_list_empty(&eq->events);
	mrf_lock_release(&eq->lock);
	return something ? -FI_EAGAIN : 0;
}

struct mrf_eq *mrf_eq_from_fid(struct fid *fid)
{
	if (!fid || fid->fclass != FI_CLASS_EQ)
		return NULL;
	return mrf_container_of(fid, struct mrf_eq, fid.fid);
}

struct mrf_obj *mrf_eq_obj(struct mrf_eq *eq)
{
	return &eq->obj;
}
