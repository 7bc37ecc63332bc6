/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/av_int.h"

/*
 * --- removing and asking -------------------------------------------------------------
 */

static int no_entry(const char *call, fi_addr_t fi_addr)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2216, "%s: fi_addr %#lx names no entry", call,
			  fi_addr);
}

void mrf_av_watch(struct mrf_av *av, struct mrf_av_watch *watch)
{
	mrf_lock_take(&av->lock);
	mrf_list_add_tail(&watch->node, &av->watches);
	mrf_lock_release(&av->lock);
}

void mrf_av_unwatch(struct mrf_av *av, struct mrf_av_watch *watch)
{
	mrf_lock_take(&av->lock);
	mrf_list_del(&watch->node);
	mrf_lock_release(&av->lock);
}

static void tell_watches_locked(struct mrf_av *av)
{
	mrf_lock_held(&av->lock);
	mrf_list_each (node, &av->watches) {
		struct mrf_av_watch *watch = mrf_list_entry(node, struct mrf_av_watch, node);

		watch->removed(watch);
	}
}

static void remove_one_locked(struct mrf_av *av, size_t i)
{
	mrf_lock_held(&av->lock);
	if (av->index)
		mrf_av_index_remove_locked(av, i);
	mrf_av_remove_locked(av, i);
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct mrf_av *av = mrf_av_of(fid);
	int ret = mrf_obj_check(&av->obj, "fi_av_remove");
	size_t i;

	if (ret)
		return ret;
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_AV, 2217,
				  "fi_av_remove: flags must be 0, not %#lx", flags);
	if (!fi_addr && count)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2218,
				  "fi_av_remove: fi_addr must not be NULL, because count is %zu",
				  count);
	mrf_lock_take(&av->lock);
	for (i = 0; i < count; i++) {
		if (mrf_av_gen(av, fi_addr[i]))
			remove_one_locked(av, fi_addr[i]);
		else
			ret = no_entry("fi_av_remove", fi_addr[i]);
	}
	tell_watches_locked(av);
	mrf_lock_release(&av->lock);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct mrf_av *av = mrf_av_of(fid);
	union mrf_addr found;
	int ret = mrf_obj_check(&av->obj, "fi_av_lookup");

	if (ret)
		return ret;
	if (!addrlen || (!addr && *addrlen))
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2219, "fi_av_lookup: %s is NULL",
				  addrlen ? "addr" : "addrlen");
	if (mrf_av_get(av, fi_addr, &found))
		return no_entry("fi_av_lookup", fi_addr);
	*addrlen = mrf_form_put(av->form, &found, addr, *addrlen);
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	const struct mrf_av *av = mrf_av_of(fid);
	char text[MRF_FORM_MAX];
	union mrf_addr one;
	int n;

	if (!addr || !len) {
		mrf_refuse(FI_EINVAL, FI_LOG_AV, 2220, "fi_av_straddr: %s is NULL",
			   addr ? "len" : "addr");
		return NULL;
	}
	if (mrf_av_read(av, addr, &one))
		mrf_form_text(av->form, &one, text);
	else
		mrf_addr_text(&one, text, sizeof(text));
	n = snprintf(buf, buf ? *len : 0, "%s", text);
	*len = (size_t)n + 1;
	return buf;
}

static int av_no_set(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **set,
		     void *context)
{
	(void)fid;
	(void)attr;
	(void)set;
	(void)context;
	return mrf_refuse(FI_ENOSYS, FI_LOG_AV, 2221,
			  "fi_av_set: address sets belong to collectives, which are not offered");
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = mrf_av_insert,
	.insertsvc = mrf_av_insertsvc,
	.insertsym = mrf_av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_no_set,
};

/*
 * --- opening, binding and closing ----------------------------------------------------
 */

static void av_describe(const struct fid *fid, char *buf, size_t len)
{
	struct mrf_av *av = mrf_container_of(fid, struct mrf_av, fid.fid);
	size_t count = atomic_load(&av->count);

	snprintf(buf, len, "%zu address%s", count, count == 1 ? "" : "es");
}

static int check_bind(const struct mrf_av *av, const struct mrf_eq *eq, uint64_t flags)
{
	if (!eq)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2222,
				  "fi_av_bind: only an event queue can be bound to an address "
				  "vector");
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_AV, 2223,
				  "fi_av_bind: flags must be 0, not %#lx", flags);
	if (!av->async)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2224,
				  "fi_av_bind: the address vector was opened without "
				  "FI_EVENT, so it reports nothing");
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrf_av *av = mrf_container_of(fid, struct mrf_av, fid.fid);
	struct mrf_eq *eq = mrf_eq_from_fid(bfid);
	int ret = mrf_obj_check(&av->obj, "fi_av_bind");

	if (!ret)
		ret = check_bind(av, eq, flags);
	if (!ret)
		ret = mrf_obj_check(mrf_eq_obj(eq), "fi_av_bind");
	if (ret)
		return ret;
	mrf_lock_take(&av->lock);
	if (av->eq) {
		ret = mrf_refuse(FI_EINVAL, FI_LOG_AV, 2225,
				 "fi_av_bind: an event queue is bound already");
	} else {
		av->eq = eq;
		mrf_obj_hold(&av->eq_hold, mrf_eq_obj(eq), fid, av_describe);
	}
	mrf_lock_release(&av->lock);
	return ret;
}

static int av_close(struct fid *fid)
{
	struct mrf_av *av = mrf_container_of(fid, struct mrf_av, fid.fid);
	int ret = mrf_obj_busy(&av->obj);

	if (ret)
		return ret;
	mrf_obj_fini(&av->obj);
	mrf_lock_fini(&av->lock);
	mrf_av_index_drop(av);
	mrf_av_table_fini(av);
	mrf_obj_drop(&av->eq_hold);
	mrf_obj_drop(&av->obj.parent);
	free(av);
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = mrf_no_control,
	.ops_open = mrf_no_ops_open,
	.tostr = mrf_obj_tostr,
	.ops_set = mrf_no_ops_set,
};

static int check_av_attr(const struct fi_av_attr *attr)
{
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2227,
				  "fi_av_attr.type=%d is not a type of fi_av(3)", (int)attr->type);
	if (attr->rx_ctx_bits)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2228,
				  "fi_av_attr.rx_ctx_bits=%d, but must be 0, because "
				  "endpoints have one receive context",
				  attr->rx_ctx_bits);
	if (attr->name || (attr->flags & FI_READ))
		return mrf_refuse(FI_ENOSYS, FI_LOG_AV, 2229,
				  "fi_av_attr.%s: address vectors shared between processes are "
				  "not offered",
				  attr->name ? "name" : "flags has FI_READ");
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_AV, 2230,
				  "fi_av_attr.flags=%#lx: only FI_EVENT and FI_SYMMETRIC are "
				  "offered",
				  attr->flags);
	return 0;
}

static struct mrf_av *av_new(uint32_t addr_format, const struct fi_av_attr *attr, void *context)
{
	struct mrf_av *av = calloc(1, sizeof(*av));

	if (!av)
		return NULL;
	av->family = addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	av->form = &mrf_form_socket;
	av->table = attr->type != FI_AV_MAP;
	av->async = attr->flags & FI_EVENT;
	mrf_av_table_init(av);
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &av_fid_ops;
	av->fid.ops = &av_ops;
	mrf_lock_init(&av->lock, MRF_RANK_AV);
	mrf_obj_init(&av->obj, &av->fid.fid, av_describe);
	return av;
}

int mrf_av_open(struct mrf_obj *domain, uint32_t addr_format, struct fi_av_attr *attr,
		struct fid_av **av_fid, void *context)
{
	struct mrf_av *av;
	int ret;

	if (!attr || !av_fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2226, "fi_av_open: %s is NULL",
				  attr ? "av" : "attr");
	if (addr_format != FI_SOCKADDR_IN && addr_format != FI_SOCKADDR_IN6)
		return mrf_refuse(FI_EINVAL, FI_LOG_AV, 2231,
				  "fi_av_open: addresses of format %u are not offered",
				  addr_format);
	ret = check_av_attr(attr);
	if (ret)
		return ret;
	av = av_new(addr_format, attr, context);
	if (!av)
		return mrf_refuse(FI_ENOMEM, FI_LOG_AV, 2232,
				  "there is no memory for an address vector");
	mrf_obj_hold(&av->obj.parent, domain, &av->fid.fid, av_describe);
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	*av_fid = &av->fid;
	return 0;
}

void mrf_av_take_profile(struct fid_av *fid, const struct mrf_form *form,
			 const struct mrf_profile *profile)
{
	struct mrf_av *av = mrf_av_of(fid);

	av->form = form;
	av->profile = profile;
}

struct mrf_av *mrf_av_from_fid(struct fid *fid)
{
	if (!fid || fid->fclass != FI_CLASS_AV)
		return NULL;
	return mrf_container_of(fid, struct mrf_av, fid.fid);
}

struct mrf_obj *mrf_av_obj(struct mrf_av *av)
{
	return &av->obj;
}
