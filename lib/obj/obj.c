/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/names.h"
#include "obj/obj.h"

#define NAMED_HOLDERS 4
#define NAME_TEXT 160

static const char *const class_names[] = {
	[FI_CLASS_FABRIC] = "fabric",
	[FI_CLASS_DOMAIN] = "domain",
	[FI_CLASS_EP] = "endpoint",
	[FI_CLASS_SEP] = "scalable endpoint",
	[FI_CLASS_RX_CTX] = "receive context",
	[FI_CLASS_SRX_CTX] = "shared receive context",
	[FI_CLASS_TX_CTX] = "transmit context",
	[FI_CLASS_STX_CTX] = "shared transmit context",
	[FI_CLASS_PEP] = "passive endpoint",
	[FI_CLASS_AV] = "address vector",
	[FI_CLASS_MR] = "memory region",
	[FI_CLASS_EQ] = "event queue",
	[FI_CLASS_CQ] = "completion queue",
	[FI_CLASS_CNTR] = "counter",
	[FI_CLASS_WAIT] = "wait set",
	[FI_CLASS_POLL] = "poll set",
};

const char *mrf_obj_class_name(size_t fclass)
{
	if (fclass < MRF_ARRAY_SIZE(class_names) && class_names[fclass])
		return class_names[fclass];
	return "object";
}

/* "memory region 0x55d0 (4096 bytes, key 0x7)" */
static void name_fid(const struct fid *fid, void (*describe)(const struct fid *, char *, size_t),
		     char *buf, size_t len)
{
	char detail[NAME_TEXT / 2] = "";

	if (describe)
		describe(fid, detail, sizeof(detail));
	snprintf(buf, len, "%s %p%s%s%s", mrf_obj_class_name(fid->fclass), (const void *)fid,
		 *detail ? " (" : "", detail, *detail ? ")" : "");
}

void mrf_obj_init(struct mrf_obj *obj, struct fid *fid,
		  void (*describe)(const struct fid *, char *, size_t))
{
	obj->fid = fid;
	obj->describe = describe;
	obj->holder = NULL;
	obj->api_version = 0;
	obj->parent.target = NULL;
	obj->wait = NULL;
	obj->owner = mrf_fork_here();
	mrf_lock_init(&obj->lock, MRF_RANK_OBJ);
	mrf_list_init(&obj->holds);
}

void mrf_obj_fini(struct mrf_obj *obj)
{
	mrf_lock_fini(&obj->lock);
}

void mrf_obj_hold(struct mrf_hold *hold, struct mrf_obj *target, const struct fid *holder,
		  void (*describe)(const struct fid *, char *, size_t))
{
	hold->target = target;
	hold->holder = holder;
	hold->describe = describe;
	hold->since = mrf_now_tick();
	mrf_lock_take(&target->lock);
	mrf_list_add_tail(&hold->node, &target->holds);
	mrf_lock_release(&target->lock);
}

void mrf_obj_drop(struct mrf_hold *hold)
{
	struct mrf_obj *target = hold->target;

	if (!target)
		return;
	mrf_lock_take(&target->lock);
	mrf_list_del(&hold->node);
	mrf_lock_release(&target->lock);
	hold->target = NULL;
}

/* Names the first holders in buf and returns how many there are. */
static unsigned name_holders_locked(const struct mrf_obj *obj, char *buf, size_t len)
{
	unsigned n = 0;
	size_t used = 0;

	mrf_lock_held(&obj->lock);
	*buf = '\0';
	mrf_list_each (node, &obj->holds) {
		struct mrf_hold hold;
		char name[NAME_TEXT];

		if (n++ >= NAMED_HOLDERS)
			continue;
		if (obj->holder)
			obj->holder(node, &hold);
		else
			hold = *mrf_list_entry(node, struct mrf_hold, node);
		name_fid(hold.holder, hold.describe, name, sizeof(name));
		used += (size_t)snprintf(buf + used, len - used, "%s%s", used ? ", " : "", name);
	}
	return n;
}

int mrf_obj_foreign(const struct fid *fid, uint64_t owner, const char *call)
{
	return mrf_refuse(FI_EPERM, FI_LOG_CORE, 5202,
			  "%s: %s %p was opened by process %u, and this is process %d: a "
			  "forked child uses only what it opened itself",
			  call, mrf_obj_class_name(fid->fclass), (const void *)fid,
			  mrf_fork_pid(owner), (int)getpid());
}

int mrf_obj_busy(struct mrf_obj *obj)
{
	return mrf_obj_busy_with(obj, "object");
}

int mrf_obj_busy_with(struct mrf_obj *obj, const char *kind)
{
	char holders[NAMED_HOLDERS * (NAME_TEXT + 2) + 1];
	char name[NAME_TEXT], more[32] = "";
	unsigned n;
	int ret = mrf_obj_check(obj, "fi_close");

	if (ret)
		return ret;
	mrf_lock_take(&obj->lock);
	n = name_holders_locked(obj, holders, sizeof(holders));
	mrf_lock_release(&obj->lock);
	if (!n)
		return 0;
	name_fid(obj->fid, obj->describe, name, sizeof(name));
	if (n > NAMED_HOLDERS)
		snprintf(more, sizeof(more), " and %u more", n - NAMED_HOLDERS);
	return mrf_refuse(FI_EBUSY, FI_LOG_FABRIC, 2001, "%s cannot be closed: %u %s%s it: %s%s",
			  name, n, kind, n == 1 ? " uses" : "s use", holders, more);
}

static void write_holder(const char *name, int64_t age, struct mrf_json *json)
{
	mrf_json_begin(json, "object");
	mrf_json_text(json, "name", name);
	mrf_json_number(json, "age_ms", (uint64_t)age);
	mrf_json_end(json);
}

unsigned mrf_obj_tell_holders(struct mrf_obj *obj, struct mrf_json *json)
{
	char name[NAME_TEXT];
	unsigned n = 0;

	mrf_lock_take(&obj->lock);
	mrf_list_each (node, &obj->holds) {
		const struct mrf_hold *hold = mrf_list_entry(node, struct mrf_hold, node);
		int64_t age = mrf_now_ms() - hold->since;

		name_fid(hold->holder, hold->describe, name, sizeof(name));
		mrf_log(FI_LOG_WARN, FI_LOG_FABRIC, "MRF-W2048: still open: %s, %ld.%ld s old",
			name, age / 1000, age / 100 % 10);
		write_holder(name, age, json);
		n++;
	}
	mrf_lock_release(&obj->lock);
	return n;
}

uint32_t mrf_obj_api_version(const struct mrf_obj *obj)
{
	if (obj->api_version)
		return obj->api_version;
	if (obj->fid->fclass == FI_CLASS_FABRIC)
		return mrf_container_of(obj->fid, struct fid_fabric, fid)->api_version;
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

int mrf_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return mrf_refuse(FI_ENOSYS, FI_LOG_FABRIC, 2002,
			  "nothing can be bound to this %s (tried: %s, flags %#lx)",
			  mrf_obj_class_name(fid->fclass),
			  bfid ? mrf_obj_class_name(bfid->fclass) : "NULL", flags);
}

int mrf_no_control(struct fid *fid, int command, void *arg)
{
	(void)arg;
	return mrf_refuse(FI_ENOSYS, FI_LOG_FABRIC, 2003,
			  "fi_control command %d is not offered by this %s", command,
			  mrf_obj_class_name(fid->fclass));
}

int mrf_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)flags;
	(void)ops;
	(void)context;
	return mrf_refuse(FI_ENOSYS, FI_LOG_FABRIC, 2004,
			  "fi_open_ops: this %s has no operations named \"%s\"",
			  mrf_obj_class_name(fid->fclass), name ? name : "");
}

int mrf_obj_tostr(const struct fid *fid, char *buf, size_t len)
{
	snprintf(buf, len, "%s %p", mrf_names_enum(&mrf_names_class, fid->fclass),
		 (const void *)fid);
	return 0;
}

int mrf_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	(void)flags;
	(void)ops;
	(void)context;
	return mrf_refuse(FI_ENOSYS, FI_LOG_FABRIC, 2006,
			  "fi_set_ops: this %s takes no operations named \"%s\"",
			  mrf_obj_class_name(fid->fclass), name ? name : "");
}

void mrf_obj_err_data(uint32_t api_version, const char *text, void **data, size_t *size)
{
	size_t len = *text ? strlen(text) + 1 : 0;

	if (FI_VERSION_LT(api_version, FI_VERSION(1, 5)) || !*data || !*size) {
		*data = len ? (void *)text : NULL;
		*size = len;
		return;
	}
	/*
	 * The terminator is written even if there is no text: fi_cq_strerror may get
	 * this.
	 */
	snprintf(*data, *size, "%s", text);
	if (*size > len)
		*size = len;
}

const void *mrf_obj_reader(void)
{
	static __thread char reader;

	return &reader;
}

const char *mrf_obj_strerror(int prov_errno, const void *err_data, char *buf, size_t len)
{
	static __thread char own[64];
	const char *text = err_data;

	if (!text || !*text) {
		snprintf(own, sizeof(own), prov_errno ? "MRF-E%d, see mrfab(7)" : "no reason known",
			 prov_errno);
		text = own;
	}
	if (!buf || !len)
		return text;
	snprintf(buf, len, "%s", text);
	return buf;
}
