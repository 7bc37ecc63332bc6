/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "contract/rules.h"
#include "mr/bind.h"
#include "mr/binding.h"
#include "mr/class.h"
#include "mr/event.h"
#include "mr/face.h"
#include "mr/profiled.h"
#include "mr/region.h"
#include "mr/space.h"
#include "mr/region_state.h"

#define NAME_TEXT 128

/* --- endpoints -------------------------------------------------------------------- */

/* Sets group and class. */
static int port_place(struct mrf_mr_space *space, struct mrf_mr_port *port, const void *key,
		      size_t size)
{
	int ret = mrf_mr_group_get(space, key, size, &port->group);

	if (ret)
		return ret;
	port->class = NULL;
	if (space->mode & FI_MR_ENDPOINT) {
		ret = mrf_mr_class_new(space, &port->class);
		if (ret)
			mrf_mr_group_put(port->group);
	} else if (port->group) {
		port->class = port->group->class;
		mrf_lock_take(&space->lock);
		mrf_mr_class_get_locked(port->class);
		mrf_lock_release(&space->lock);
	}
	return ret;
}

int mrf_mr_port_open(struct mrf_mr_space *space, struct mrf_mr_port *port, struct mrf_obj *ep,
		     bool events, const void *key, size_t size)
{
	int ret = port_place(space, port, key, size);

	if (ret)
		return ret;
	port->ep = ep;
	port->writes = NULL;
	port->events = events;
	port->enabled = false;
	mrf_list_init(&port->bindings);
	mrf_lock_take(&space->lock);
	mrf_list_add_tail(&port->node, &space->ports);
	mrf_lock_release(&space->lock);
	return 0;
}

struct mrf_vpd *mrf_mr_port_pd(const struct mrf_mr_space *space, const struct mrf_mr_port *port)
{
	return mrf_mr_class_pd(space, port->class);
}

/* From API version 2.3 on: names a region that has to be closed before the endpoint. */
static int busy_locked(const struct mrf_mr_space *space, const struct mrf_mr_port *port, char *name,
		       size_t len)
{
	const struct mrf_mr_binding *binding;

	mrf_lock_held(&space->lock);
	if (mrf_list_empty(&port->bindings) || !mrf_mr_profiled_region_first(space))
		return 0;
	binding = mrf_list_entry(port->bindings.next, struct mrf_mr_binding, theirs);
	mrf_mr_name(binding->mr, name, len);
	return -FI_EBUSY;
}

static int refuse_port_close(const struct mrf_mr_port *port, const char *region)
{
	return mrf_refuse(FI_EBUSY, FI_LOG_MR, 3230,
			  "fi_close(endpoint %p): region %s is bound to it and has to be "
			  "closed first (from API version 2.3 on, or by FI_MRFAB_PROFILE)",
			  (void *)port->ep->fid, region);
}

/*
 * Unbinds the port's first region and ends its face, under the lock: a thread that closes
 * the region finds it unbound only when nothing of the face is left. False: no region is
 * bound.
 */
static bool unbind_first(struct mrf_mr_space *space, struct mrf_mr_port *port)
{
	struct mrf_mr_face *done = NULL;
	struct mrf_list *node;

	mrf_lock_take(&space->lock);
	node = mrf_list_first(&port->bindings);
	if (node) {
		struct mrf_mr_binding *binding =
			mrf_list_entry(node, struct mrf_mr_binding, theirs);

		mrf_mr_face_end_locked(binding->mr, port->class, &done);
		mrf_mr_binding_end_locked(binding);
	}
	mrf_lock_release(&space->lock);
	mrf_mr_faces_drop(&done);
	return node;
}

int mrf_mr_port_close(struct mrf_mr_space *space, struct mrf_mr_port *port)
{
	char region[NAME_TEXT];
	int ret;

	mrf_lock_take(&space->lock);
	ret = busy_locked(space, port, region, sizeof(region));
	/* Nothing can be bound to it any more. */
	if (!ret)
		mrf_list_del(&port->node);
	mrf_lock_release(&space->lock);
	if (ret)
		return refuse_port_close(port, region);
	while (unbind_first(space, port))
		;
	return 0;
}

void mrf_mr_port_enable(struct mrf_mr_space *space, struct mrf_mr_port *port)
{
	mrf_lock_take(&space->lock);
	port->enabled = true;
	mrf_lock_release(&space->lock);
}

void mrf_mr_port_free(struct mrf_mr_port *port)
{
	mrf_mr_class_put(port->class);
	mrf_mr_group_put(port->group);
}

const struct mrf_auth *mrf_mr_port_auth(const struct mrf_mr_space *space,
					const struct mrf_mr_port *port)
{
	return port->group ? port->group->auth : space->auth;
}

/* Compares addresses alone, because ep may be an object of any kind. */
static struct mrf_mr_port *find_port_locked(struct mrf_mr_space *space, const struct fid *ep)
{
	mrf_list_each (node, &space->ports) {
		struct mrf_mr_port *port = mrf_list_entry(node, struct mrf_mr_port, node);

		if (port->ep->fid == ep)
			return port;
	}
	return NULL;
}

static struct mrf_mr_binding *find_binding_locked(const struct mrf_mr *mr, const struct fid *ep)
{
	mrf_list_each (node, &mr->bindings) {
		struct mrf_mr_binding *binding = mrf_list_entry(node, struct mrf_mr_binding, mine);

		if (binding->port->ep->fid == ep)
			return binding;
	}
	return NULL;
}

static void name_endpoint(const struct mrf_mr_port *port, char *buf, size_t len)
{
	char detail[NAME_TEXT / 2] = "";

	if (port->ep->describe)
		port->ep->describe(port->ep->fid, detail, sizeof(detail));
	snprintf(buf, len, "%p%s%s%s", (void *)port->ep->fid, *detail ? " (" : "", detail,
		 *detail ? ")" : "");
}

static int refuse_close_locked(const struct mrf_mr *mr, const struct mrf_mr_port *port)
{
	char name[NAME_TEXT];

	name_endpoint(port, name, sizeof(name));
	return mrf_refuse(FI_EBUSY, FI_LOG_MR, 3063,
			  "fi_close(region %p): the region is bound to endpoint %s, which has to "
			  "be closed first (before API version 2.3; FI_MRFAB_STRICT=off allows it)",
			  (const void *)mr, name);
}

int mrf_mr_bound_locked(struct mrf_mr *mr)
{
	const struct mrf_mr_binding *binding;
	int ret = mrf_mr_event_busy_locked(mr);

	mrf_lock_held(&mr->space->lock);
	if (ret || mrf_list_empty(&mr->bindings) || mrf_mr_profiled_region_first(mr->space) ||
	    mrf_mr_lets_go(mr, "endpoint"))
		return ret;
	binding = mrf_list_entry(mr->bindings.next, struct mrf_mr_binding, mine);
	return refuse_close_locked(mr, binding->port);
}

void mrf_mr_unbind(struct mrf_mr *mr)
{
	struct mrf_list *node;

	mrf_lock_take(&mr->space->lock);
	while ((node = mrf_list_first(&mr->bindings)))
		mrf_mr_binding_end_locked(mrf_list_entry(node, struct mrf_mr_binding, mine));
	mrf_lock_release(&mr->space->lock);
}

/* --- fi_mr_bind ------------------------------------------------------------------- */

/* -FI_EOPBADSTATE: the region's state, *state, does not allow it. */
static int bind_port_locked(struct mrf_mr *mr, const struct fid *ep, enum mrf_mr_state *state)
{
	struct mrf_mr_port *port = find_port_locked(mr->space, ep);
	struct mrf_mr_binding *binding;

	mrf_lock_held(&mr->space->lock);
	if (!port)
		return -FI_EDOMAIN;
	*state = mr->state;
	if (!mrf_mr_state_lets(*state, MRF_CALL_BIND))
		return -FI_EOPBADSTATE;
	if (find_binding_locked(mr, ep))
		return -FI_EINVAL;
	if (mrf_mr_profiled_habit(mr->space, MRF_HABIT_ONE_EP)) {
		if (!port->enabled)
			return -FI_EAGAIN;
		if (!mrf_list_empty(&mr->bindings))
			return -FI_EBUSY;
	}
	if (mr->group != port->group)
		return -FI_EACCES;
	if (mr->event && !mrf_list_empty(&mr->event->counters) && !port->events)
		return -FI_EBADFLAGS;
	binding = mrf_mr_binding_new_locked(mr, &mr->bindings, &port->bindings);
	if (!binding)
		return -FI_ENOMEM;
	binding->port = port;
	return 0;
}

/* What the profile has against it. */
static int refuse_by_profile(const struct mrf_mr *mr, const struct fid *ep, int err)
{
	return mrf_refuse(
		mrf_mr_profiled_error(mr->space, MRF_PROFILE_BIND, FI_EINVAL), FI_LOG_MR, 3056,
		"fi_mr_bind(region %p, endpoint %p): %s with FI_MRFAB_PROFILE=%s (%s)",
		(const void *)mr, (const void *)ep,
		err == -FI_EAGAIN
			? "the endpoint has to be enabled first"
			: "the region is bound to another endpoint already, and to one only",
		mr->space->profile->name, mr->space->profile->what);
}

static int refuse_ep_binding(const struct mrf_mr *mr, const struct fid *ep, int err)
{
	const struct mrf_mr_space *space = mr->space;
	const void *region = mr, *endpoint = ep;

	switch (err) {
	case -FI_EAGAIN:
	case -FI_EBUSY:
		return refuse_by_profile(mr, ep, err);
	case -FI_EDOMAIN:
		return mrf_refuse(mrf_mr_profiled_error(space, MRF_PROFILE_BIND, FI_EDOMAIN),
				  FI_LOG_MR, 3053,
				  "fi_mr_bind(region %p, endpoint %p): the endpoint does "
				  "not belong to the region's domain",
				  region, endpoint);
	case -FI_EINVAL:
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3055,
				  "fi_mr_bind(region %p, endpoint %p): the two are bound already",
				  region, endpoint);
	case -FI_EBADFLAGS:
		return mrf_refuse(
			FI_EINVAL, FI_LOG_MR, 3243,
			"fi_mr_bind(region %p, endpoint %p): the region has a counter, and "
			"the endpoint was opened without FI_RMA_EVENT, so it is not told of "
			"writes by peers: ask for it in hints->caps",
			region, endpoint);
	case -FI_EACCES:
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3202,
				  "fi_mr_bind(region %p, endpoint %p): the two have "
				  "different authorization keys",
				  region, endpoint);
	default:
		return mrf_refuse(-err, FI_LOG_MR, 3022, "there is no memory for a region");
	}
}

static int bind_to_no_effect(struct mrf_mr *mr, const struct fid *ep)
{
	bool ours;

	mrf_lock_take(&mr->space->lock);
	ours = find_port_locked(mr->space, ep);
	mrf_lock_release(&mr->space->lock);
	return ours ? 0 : refuse_ep_binding(mr, ep, -FI_EDOMAIN);
}

static int refuse_unbound(const struct mrf_mr *mr, const struct fid *ep, uint64_t flags)
{
	const struct mrf_profile *profile = mr->space->profile;
	char how[128] = "not in force (FI_MRFAB_MR_MODE=ENDPOINT requires it)";

	if (profile)
		snprintf(how, sizeof(how), "no mode of FI_MRFAB_PROFILE=%.80s", profile->name);
	return mrf_refuse(FI_ENOSYS, FI_LOG_MR, 3042,
			  "fi_mr_bind(region %p, endpoint %p, flags %#lx): regions belong to the "
			  "domain, because FI_MR_ENDPOINT is %s",
			  (const void *)mr, (const void *)ep, flags, how);
}

static int bind_endpoint(struct mrf_mr *mr, const struct fid *ep, uint64_t flags)
{
	enum mrf_mr_state state;
	int ret;

	if (mrf_mr_profiled_habit(mr->space, MRF_HABIT_LOOSE_BIND))
		return bind_to_no_effect(mr, ep);
	if (!(mr->space->mode & FI_MR_ENDPOINT))
		return refuse_unbound(mr, ep, flags);
	if (flags && !mrf_mr_profiled_lax(mr->space, MRF_LAX_BIND, "flags", flags))
		return mrf_refuse(mrf_mr_profiled_error(mr->space, MRF_PROFILE_BIND, FI_EBADFLAGS),
				  FI_LOG_MR, 3052,
				  "fi_mr_bind(region %p, endpoint %p): flags must be 0, not %#lx",
				  (void *)mr, (const void *)ep, flags);
	mrf_lock_take(&mr->space->lock);
	ret = bind_port_locked(mr, ep, &state);
	mrf_lock_release(&mr->space->lock);
	if (ret == -FI_EOPBADSTATE)
		return mrf_mr_state_refuse(mr, state, MRF_CALL_BIND);
	return ret ? refuse_ep_binding(mr, ep, ret) : 0;
}

int mrf_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrf_mr *mr = mrf_mr_from_fid(fid);
	int ret = mrf_mr_check(mr, "fi_mr_bind");

	if (ret)
		return ret;
	if (!bfid)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3040,
				  "fi_mr_bind: bfid must be a counter or an endpoint, not NULL");
	switch (bfid->fclass) {
	case FI_CLASS_EP:
		ret = mrf_mr_profiled_call(mr->space, MRF_PROFILE_BIND_EP);
		return ret ? ret : bind_endpoint(mr, bfid, flags);
	case FI_CLASS_CNTR:
		ret = mrf_mr_profiled_call(mr->space, MRF_PROFILE_BIND_CNTR);
		return ret ? ret : mrf_mr_bind_cntr(mr, bfid, flags);
	default:
		return mrf_refuse(mrf_mr_profiled_error(mr->space, MRF_PROFILE_BIND, FI_ENOSYS),
				  FI_LOG_MR, 3043,
				  "fi_mr_bind(region %p, %s %p): only counters and endpoints "
				  "can be bound to a region",
				  (void *)fid, mrf_obj_class_name(bfid->fclass), (void *)bfid);
	}
}
