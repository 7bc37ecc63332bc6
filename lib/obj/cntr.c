/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "contract/rules.h"
#include "obj/cntr.h"

struct mrf_cntr {
	struct fid_cntr fid;
	struct mrf_obj obj;
	struct mrf_wait wait;
	struct mrf_cntr_bindings bindings;
	atomic_uint_fast64_t value;
	atomic_uint_fast64_t err;
	atomic_uint_fast64_t known_err;	 /* as the application has last read or set it */
	atomic_uint_fast64_t told_value; /* at the last -FI_EAGAIN of fi_trywait */
	atomic_uint_fast64_t told_err;
};

static struct mrf_cntr *to_cntr(struct fid_cntr *fid)
{
	return mrf_container_of(fid, struct mrf_cntr, fid);
}

void mrf_cntr_add(struct mrf_cntr *cntr, uint64_t n)
{
	atomic_fetch_add(&cntr->value, n);
	mrf_wait_signal(&cntr->wait);
}

void mrf_cntr_adderr(struct mrf_cntr *cntr, uint64_t n)
{
	atomic_fetch_add(&cntr->err, n);
	mrf_wait_signal(&cntr->wait);
}

/* These calls cannot fail: in a forked child the parent's counter stands still. */
static void make_progress(struct mrf_cntr *cntr, const char *call)
{
	if (!mrf_obj_check(&cntr->obj, call))
		mrf_wait_poll(&cntr->wait);
}

static uint64_t know_err(struct mrf_cntr *cntr)
{
	uint64_t err = atomic_load(&cntr->err);

	atomic_store(&cntr->known_err, err);
	return err;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct mrf_cntr *cntr = to_cntr(fid);

	make_progress(cntr, "fi_cntr_read");
	return atomic_load(&cntr->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct mrf_cntr *cntr = to_cntr(fid);

	make_progress(cntr, "fi_cntr_readerr");
	return know_err(cntr);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	int ret = mrf_obj_check(&to_cntr(fid)->obj, "fi_cntr_add");

	if (!ret)
		mrf_cntr_add(to_cntr(fid), value);
	return ret;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	int ret = mrf_obj_check(&to_cntr(fid)->obj, "fi_cntr_adderr");

	if (!ret)
		mrf_cntr_adderr(to_cntr(fid), value);
	return ret;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct mrf_cntr *cntr = to_cntr(fid);
	int ret = mrf_obj_check(&cntr->obj, "fi_cntr_set");

	if (ret)
		return ret;
	atomic_store(&cntr->value, value);
	mrf_wait_signal(&cntr->wait);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct mrf_cntr *cntr = to_cntr(fid);
	int ret = mrf_obj_check(&cntr->obj, "fi_cntr_seterr");

	if (ret)
		return ret;
	atomic_store(&cntr->known_err, value);
	atomic_store(&cntr->err, value);
	mrf_wait_signal(&cntr->wait);
	return 0;
}

struct waiting {
	struct mrf_cntr *cntr;
	uint64_t threshold;
	uint64_t known_err; /* when the wait began: each thread that waits is told */
};

static ssize_t wait_attempt(void *arg)
{
	struct waiting *w = arg;

	if (atomic_load(&w->cntr->value) >= w->threshold)
		return 0;
	if (atomic_load(&w->cntr->err) == w->known_err)
		return -FI_EAGAIN;
	know_err(w->cntr);
	return -FI_EAVAIL;
}

/*
 * Other providers let a thread wait that polls a counter otherwise, and programs do it, so only strict
 * rules forbid it.
 */
static int may_block(const struct mrf_cntr *cntr)
{
	static atomic_bool said;

	if (cntr->wait.kind != FI_WAIT_NONE || mrf_rule_strict())
		return mrf_wait_may_block(&cntr->wait, "fi_cntr_wait");
	if (!atomic_exchange(&said, true))
		mrf_warn(FI_LOG_CNTR, 2047,
			 "fi_cntr_wait on a counter opened with FI_WAIT_NONE waits, although "
			 "fi_cntr(3) forbids it (FI_MRFAB_STRICT=off; said once)");
	return 0;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct mrf_cntr *cntr = to_cntr(fid);
	struct waiting w = { .cntr = cntr, .threshold = threshold };
	ssize_t ret = mrf_obj_check(&cntr->obj, "fi_cntr_wait");

	if (!ret)
		ret = may_block(cntr);
	if (ret)
		return (int)ret;
	w.known_err = atomic_load(&cntr->known_err);
	ret = wait_attempt(&w);
	if (ret == -FI_EAGAIN) {
		mrf_wait_poll_first(&cntr->wait);
		ret = wait_attempt(&w);
	}
	if (ret == -FI_EAGAIN)
		ret = mrf_wait_until(&cntr->wait, timeout, wait_attempt, &w);
	return (int)ret;
}

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

static void cntr_describe(const struct fid *fid, char *buf, size_t len)
{
	struct mrf_cntr *cntr = mrf_container_of(fid, struct mrf_cntr, fid.fid);

	snprintf(buf, len, "value %lu, errors %lu", atomic_load(&cntr->value),
		 atomic_load(&cntr->err));
}

static int cntr_close(struct fid *fid)
{
	struct mrf_cntr *cntr = mrf_container_of(fid, struct mrf_cntr, fid.fid);
	int ret = mrf_obj_busy(&cntr->obj);

	if (!ret)
		ret = mrf_wait_busy(&cntr->wait);
	if (!ret && cntr->bindings.closing)
		ret = cntr->bindings.closing(cntr, cntr->bindings.arg);
	if (ret)
		return ret;
	mrf_wait_fini(&cntr->wait);
	mrf_obj_fini(&cntr->obj);
	mrf_obj_drop(&cntr->obj.parent);
	free(cntr);
	return 0;
}

/* A counter has no operational flags: fi_cntr(3) reserves them all. */
static int ops_flags(int command, uint64_t *flags)
{
	if (!flags)
		return mrf_refuse(FI_EINVAL, FI_LOG_CNTR, 2040,
				  "fi_control on the flags of a counter: arg is NULL");
	if (command == FI_GETOPSFLAG)
		*flags = 0;
	else if (*flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_CNTR, 2041,
				  "fi_control(FI_SETOPSFLAG): flags must be 0, not %#lx", *flags);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct mrf_cntr *cntr = mrf_container_of(fid, struct mrf_cntr, fid.fid);
	int ret = mrf_obj_check(&cntr->obj, "fi_control");

	if (ret)
		return ret;
	if (command == FI_GETOPSFLAG || command == FI_SETOPSFLAG)
		return ops_flags(command, arg);
	return mrf_wait_control(&cntr->wait, fid, command, arg);
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = mrf_no_bind,
	.control = cntr_control,
	.ops_open = mrf_no_ops_open,
	.tostr = mrf_obj_tostr,
	.ops_set = mrf_no_ops_set,
};

static int check_cntr_attr(const struct fi_cntr_attr *attr)
{
	if (attr->events != FI_CNTR_EVENTS_COMP)
		return mrf_refuse(FI_ENOSYS, FI_LOG_CNTR, 2043,
				  "fi_cntr_attr.events=%d: only FI_CNTR_EVENTS_COMP is offered",
				  (int)attr->events);
	if (attr->flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_CNTR, 2044,
				  "fi_cntr_attr.flags must be 0, not %#lx", attr->flags);
	if (attr->wait_obj == FI_WAIT_SET && !attr->wait_set)
		return mrf_refuse(FI_EINVAL, FI_LOG_CNTR, 2045,
				  "fi_cntr_attr.wait_obj=FI_WAIT_SET: wait_set must not be NULL");
	return 0;
}

int mrf_cntr_open(struct mrf_obj *domain, const struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr_fid, void *context)
{
	struct mrf_cntr *cntr;
	int ret;

	if (!attr || !cntr_fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_CNTR, 2042, "fi_cntr_open: %s is NULL",
				  attr ? "cntr" : "attr");
	ret = check_cntr_attr(attr);
	if (ret)
		return ret;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return mrf_refuse(FI_ENOMEM, FI_LOG_CNTR, 2046, "there is no memory for a counter");
	ret = mrf_wait_init(&cntr->wait, attr->wait_obj);
	if (ret)
		goto err_alloc;
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &cntr_fid_ops;
	cntr->fid.ops = &cntr_ops;
	mrf_list_init(&cntr->bindings.list);
	mrf_obj_init(&cntr->obj, &cntr->fid.fid, cntr_describe);
	cntr->obj.wait = &cntr->wait;
	mrf_obj_hold(&cntr->obj.parent, domain, &cntr->fid.fid, cntr_describe);
	*cntr_fid = &cntr->fid;
	return 0;

err_alloc:
	free(cntr);
	return ret;
}

int mrf_cntr_trywait(struct mrf_cntr *cntr)
{
	uint64_t value, err;
	int ret = mrf_obj_check(&cntr->obj, "fi_trywait");

	if (!ret)
		ret = mrf_wait_try(&cntr->wait);
	if (ret)
		return ret;
	/*
	 * A counter has no queue that could be empty: news is a change that no thread was
	 * told of yet.
	 */
	value = atomic_load(&cntr->value);
	err = atomic_load(&cntr->err);
	if (atomic_exchange(&cntr->told_value, value) != value)
		ret = -FI_EAGAIN;
	if (atomic_exchange(&cntr->told_err, err) != err)
		ret = -FI_EAGAIN;
	return ret;
}

struct mrf_cntr *mrf_cntr_from_fid(struct fid *fid)
{
	if (!fid || fid->fclass != FI_CLASS_CNTR)
		return NULL;
	return mrf_container_of(fid, struct mrf_cntr, fid.fid);
}

struct mrf_obj *mrf_cntr_obj(struct mrf_cntr *cntr)
{
	return &cntr->obj;
}

struct mrf_cntr_bindings *mrf_cntr_bindings(struct mrf_cntr *cntr)
{
	return &cntr->bindings;
}
