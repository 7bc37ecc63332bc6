/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_mr_reg, fi_mr_regv and fi_mr_regattr: arguments (attr.c), rights (access.h), pinning
 * (pins.c), key (key.c), descriptor (pool.h). From then on the region is the application's. If
 * a step fails, the steps before it are undone.
 *
 * With FI_MR_VIRT_ADDR the iova of a segment is its address. Otherwise it is the buffer's
 * offset in its page, the value nearest to 0 that the kernel takes, because it wants iova
 * and address congruent modulo the page; the initiator adds that offset to 0-based
 * addresses.
 */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "contract/rules.h"
#include "mr/access.h"
#include "mr/attr.h"
#include "mr/class.h"
#include "mr/demand/back.h"
#include "mr/device.h"
#include "mr/event.h"
#include "mr/key.h"
#include "mr/pins.h"
#include "mr/pool.h"
#include "mr/profiled.h"
#include "mr/region.h"
#include "mr/mr_calls.h"
#include "mr/seg.h"
#include "mr/space.h"
#include "mr/region_state.h"
#include "mr/worker.h"

static void hold_domain_locked(struct mrf_mr *mr)
{
	mrf_list_add_tail(&mr->held, &mr->space->regions.holds);
}

static void enter_in_ledger_locked(const struct mrf_mr *mr)
{
	struct mrf_ledger_entry *entry = mr->entry;

	mrf_lock_held(&mr->space->lock);
	entry->addr = mr->seg.addr;
	entry->len = mr->len;
	entry->key = mr->keyed ? mr->key : FI_KEY_NOTAVAIL;
	entry->access = mr->access;
	mrf_ledger_set_caller(entry, NULL);
	entry->since = mrf_now_tick();
	entry->segments = mr->nseg;
	atomic_store_explicit(&entry->uses, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->serial, mr->serial, memory_order_release);
}

static void plan_seg(const struct mrf_mr_space *space, const struct iovec *iov,
		     struct mrf_mr_seg *seg)
{
	seg->addr = (uintptr_t)iov->iov_base;
	seg->len = iov->iov_len;
	/* The kernel wants iova and address congruent modulo the page. */
	seg->iova = seg->addr;
	if (!(space->mode & FI_MR_VIRT_ADDR))
		seg->iova &= space->page_mask;
}

/*
 * Fills in where the segments are. Empty ones are left out, unless all are empty; with cut, one
 * that is longer than the kernel takes at a time becomes several. The keys are set later.
 * False: there are too many.
 */
static bool plan_segs(const struct mrf_mr_space *space, const struct fi_mr_attr *attr, bool cut,
		      struct mrf_mr_pins *pins)
{
	struct iovec rest, piece;
	size_t i;

	pins->nseg = 0;
	for (i = 0; i < attr->iov_count; i++) {
		rest = piece = attr->mr_iov[i];
		while (cut ? mrf_vmr_piece(&rest, &piece) : rest.iov_len) {
			if (pins->nseg == MRF_MR_IOV_LIMIT)
				return false;
			plan_seg(space, &piece, &pins->seg[pins->nseg++]);
			if (!cut)
				break;
		}
	}
	if (!pins->nseg)
		plan_seg(space, attr->mr_iov, &pins->seg[pins->nseg++]);
	return true;
}

/* Sets what stays the same however often the pool hands the region out. */
static void set_up(struct mrf_mr *mr, struct mrf_mr_space *space)
{
	mr->fid.fid.ops = space->region_ops;
	mr->space = space;
	mrf_list_init(&mr->bindings);
	mr->faces = NULL;
	mr->group = NULL;
	mr->device = NULL;
}

/*
 * Segments and kernel regions of a region that has several, as struct mrf_mr wants
 * them.
 */
static struct mrf_mr_seg *copy_pins(const struct mrf_mr_pins *pins)
{
	size_t seg_size = pins->nseg * sizeof(pins->seg[0]);
	size_t vmr_size = pins->nseg * sizeof(pins->vmr[0]);
	struct mrf_mr_seg *segs = malloc(seg_size + vmr_size);

	if (!segs)
		return NULL;
	memcpy(segs, pins->seg, seg_size);
	memcpy(segs + pins->nseg, pins->vmr, vmr_size);
	return segs;
}

static struct mrf_mr *enter_locked(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
				   const struct mrf_mr_plan *plan, const struct mrf_mr_pins *pins,
				   struct mrf_mr_seg *segs)
{
	struct mrf_mr *mr = mrf_mr_pool_get_locked(space);

	mrf_lock_held(&space->lock);
	if (mrf_unlikely(!mr))
		return NULL;
	if (mrf_unlikely(!mr->space))
		set_up(mr, space);
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->key = space->mode & FI_MR_PROV_KEY ? FI_KEY_NOTAVAIL : attr->requested_key;
	if (mrf_mr_profiled_habit(space, MRF_HABIT_NO_KEYS))
		mr->key = 0;
	mr->serial = space->next_serial++;
	mr->vmr = pins->vmr[0];
	mr->len = plan->len;
	mr->keyed = false;
	/* Otherwise it is NULL, as the region that was here before left it. */
	if (mrf_unlikely(plan->device != NULL))
		MRF_MR_PUT(mr->device, plan->device);
	mrf_mr_set(mr, plan->access, pins->nseg, pins->seg, segs);
	return mr;
}

/* Some providers show the application its own key before the region is enabled. */
static bool key_at_once(const struct mrf_mr *mr, enum mrf_mr_state state)
{
	return state == MRF_STATE_DISABLED && mr->access & MRF_MR_REMOTE &&
	       mrf_mr_profiled_habit(mr->space, MRF_HABIT_KEY_AT_ONCE);
}

/*
 * Gives the region its key and, if it is enabled from the start, its descriptor. A
 * pending region gets a provider key later, because that may have to carry the rkey.
 */
static int publish_locked(struct mrf_mr *mr, uint64_t requested_key, const struct mrf_mr_plan *plan,
			  struct mrf_mr_holder *holder)
{
	enum mrf_mr_state state = plan->begins;
	int ret = 0;

	mrf_lock_held(&mr->space->lock);
	if (mrf_unlikely(plan->event))
		ret = mrf_mr_event_open_locked(mr);
	if (mrf_likely(!ret) && mr->access & MRF_MR_REMOTE &&
	    (state != MRF_STATE_PENDING || !(mr->space->mode & FI_MR_PROV_KEY)))
		ret = mrf_mr_key_take_locked(mr, requested_key, holder);
	if (mrf_unlikely(ret)) {
		mrf_mr_event_drop_locked(mr);
		mr->device = NULL;
		mr->fid.fid.fclass = FI_CLASS_UNSPEC;
		mrf_mr_pool_unget_locked(mr->space, mr);
		return ret;
	}
	hold_domain_locked(mr);
	enter_in_ledger_locked(mr);
	mrf_mr_move_locked(mr, state);
	if (mrf_likely(state == MRF_STATE_ENABLED)) {
		mrf_mr_key_show_locked(mr);
		mrf_mr_set_live_locked(mr);
	} else {
		mr->fid.key = key_at_once(mr, state) ? mr->key : FI_KEY_NOTAVAIL;
	}
	return 0;
}

static int why_unpublished(uint64_t key, const struct mrf_mr_holder *holder, int err)
{
	if (err == -FI_ENOKEY)
		return mrf_refuse(
			FI_ENOKEY, FI_LOG_MR, 3021,
			"requested_key=%#lx is already taken by the region at %#lx, %lu byte%s",
			key, holder->addr, holder->len, MRF_S(holder->len));
	return mrf_refuse(-err, FI_LOG_MR, 3022, "there is no memory for a region");
}

static int publish_region(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			  const struct mrf_mr_plan *plan, const struct mrf_mr_pins *pins,
			  struct mrf_mr_back *back, struct fid_mr **out)
{
	struct mrf_mr_seg *segs = NULL;
	struct mrf_mr_holder holder;
	int ret = -FI_ENOMEM;
	struct mrf_mr *mr;

	if (mrf_unlikely(pins->nseg > 1)) {
		segs = copy_pins(pins);
		if (!segs)
			return why_unpublished(0, NULL, ret);
	}
	mrf_lock_take(&space->lock);
	mr = enter_locked(space, attr, plan, pins, segs);
	if (mrf_likely(mr))
		ret = publish_locked(mr, attr->requested_key, plan, &holder);
	if (mrf_likely(!ret)) {
		mr->back = back;
		/* As for the device. */
		if (mrf_unlikely(plan->group != NULL))
			mr->group = plan->group;
	}
	mrf_lock_release(&space->lock);
	if (mrf_unlikely(ret)) {
		free(segs);
		return why_unpublished(attr->requested_key, &holder, ret);
	}
	mrf_debug(FI_LOG_MR, "region %p: registered at 0x%lx, %lu byte%s, access 0x%lx, key 0x%lx",
		  (void *)mr, (uintptr_t)attr->mr_iov->iov_base, mr->len, MRF_S(mr->len),
		  mr->access, mr->fid.key);
	*out = &mr->fid;
	return 0;
}

/* Nearly every key is less, and needs no look. */
static int check_requested_key(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			       uint64_t access)
{
	if (mrf_likely(attr->requested_key <= UINT32_MAX) || !(access & MRF_MR_REMOTE) ||
	    space->mode & FI_MR_PROV_KEY)
		return 0;
	return mrf_mr_attr_key(space, attr->requested_key);
}

static int refuse_missing(const char *which)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3001, "%s must not be NULL", which);
}

/* The short way of nearly every registration: steps that it cannot need are left out. */
static int register_usual(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			  struct fid_mr **out)
{
	const struct mrf_mr_plan plan = { .access = attr->access,
					  .len = attr->mr_iov->iov_len,
					  .begins = MRF_STATE_ENABLED };
	struct mrf_mr_pins pins;
	int ret = check_requested_key(space, attr, attr->access);

	if (mrf_unlikely(ret))
		return ret;
	pins.nseg = 1;
	plan_seg(space, attr->mr_iov, &pins.seg[0]);
	ret = mrf_mr_pin_one(space, space->pd, mrf_mr_access_kernel(space, plan.access),
			     &pins.seg[0], &pins.vmr[0]);
	if (mrf_unlikely(ret))
		return ret;
	ret = publish_region(space, attr, &plan, &pins, NULL, out);
	if (mrf_unlikely(ret))
		mrf_mr_unpin_one(&pins.seg[0], &pins.vmr[0]);
	return ret;
}

static int check_request(struct mrf_mr_space *space, const struct fi_mr_attr *attr, uint64_t flags,
			 struct mrf_mr_plan *plan)
{
	int ret = mrf_mr_attr_check(space, attr, flags, plan);

	if (ret)
		return ret;
	ret = check_requested_key(space, attr, plan->access);
	if (!ret)
		ret = mrf_mr_profiled_attr(space, attr);
	if (ret)
		return ret;
	mrf_mr_access_warn(space, attr->access);
	if (!(space->mode & FI_MR_ALLOCATED) && plan->access & MRF_MR_REMOTE &&
	    !(space->mode & FI_MR_HMEM && attr->iface != FI_HMEM_SYSTEM))
		mrf_mr_demand_tell(space, attr);
	return 0;
}

/* Makes the backing that will hold the peers' pins. NULL: no memory. */
static struct mrf_mr_back *new_back(struct mrf_mr_space *space, const struct mrf_mr_plan *plan,
				    const struct mrf_mr_pins *pins)
{
	struct mrf_mr_back *back = mrf_mr_back_new(space, mrf_mr_access_kernel(space, plan->access),
						   pins->seg, pins->nseg);

	if (!back || !mrf_mr_back_present(back))
		return back;
	mrf_mr_back_put(back);
	return NULL;
}

/*
 * Prepares a region that is pinned on demand, or disabled until fi_mr_enable. Where FI_MR_ALLOCATED
 * requires that its memory exists, it is pinned and unpinned at once, so that the refusal comes
 * where fi_mr(3) says. *back: the backing that will hold peers' pins; NULL: the region is not
 * pinned on demand, or is a device's.
 */
static int prepare_unpinned(struct mrf_mr_space *space, const struct mrf_mr_plan *plan,
			    struct mrf_mr_pins *pins, struct mrf_mr_back **back)
{
	unsigned i;
	int ret;

	/* Otherwise pinning follows in a moment and checks the same, unless there is no right. */
	if (!plan->device && plan->begins != MRF_STATE_PENDING &&
	    !(plan->next && !plan->demand && plan->access)) {
		ret = mrf_mr_check_memory(space, pins->seg, pins->nseg, plan->access);
		if (ret)
			return ret;
	}
	for (i = 0; i < pins->nseg; i++) {
		pins->vmr[i] = (struct mrf_vmr){ 0 };
		pins->seg[i].rkey = pins->seg[i].lkey = 0;
	}
	*back = NULL;
	if (!plan->demand || plan->device)
		return 0;
	*back = new_back(space, plan, pins);
	return *back ? 0
		     : mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "there is no memory for a region");
}

static int register_unpinned(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			     const struct mrf_mr_plan *plan, struct mrf_mr_pins *pins,
			     struct fid_mr **out)
{
	struct mrf_mr_back *back;
	int ret = prepare_unpinned(space, plan, pins, &back);

	if (ret)
		return ret;
	ret = publish_region(space, attr, plan, pins, back, out);
	if (ret && back)
		mrf_mr_back_put(back);
	return ret;
}

/* Makes a pending region and leaves the rest to the worker. */
static int register_async(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			  struct mrf_mr_plan *plan, struct mrf_mr_pins *pins, struct fid_mr **out)
{
	struct mrf_mr_task *job = mrf_mr_task_new(plan->begins == MRF_STATE_DISABLED);
	int ret;

	if (!job)
		return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "there is no memory for a region");
	plan->begins = MRF_STATE_PENDING;
	ret = register_unpinned(space, attr, plan, pins, out);
	if (ret)
		mrf_mr_task_free(space, job);
	else
		mrf_mr_task_start(mrf_mr_from_fid(&(*out)->fid), job);
	return ret;
}

/* Registers what has been checked; pins->seg holds the segments. */
static int register_planned(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			    struct mrf_mr_plan *plan, struct mrf_mr_pins *pins, struct fid_mr **out)
{
	int ret;

	if (mrf_unlikely(space->worker != NULL))
		return register_async(space, attr, plan, pins, out);
	if (mrf_unlikely(plan->begins != MRF_STATE_ENABLED || plan->demand || plan->device))
		return register_unpinned(space, attr, plan, pins, out);
	ret = mrf_mr_pin_segs(space, space->pd, mrf_mr_access_kernel(space, plan->access), pins);
	if (mrf_unlikely(ret))
		return ret;
	ret = publish_region(space, attr, plan, pins, NULL, out);
	if (mrf_unlikely(ret))
		mrf_mr_unpin_segs(pins->seg, pins->vmr, pins->nseg);
	return ret;
}

/* --- with an authorization key ---------------------------------------------------- */

static int find_group(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		      struct mrf_mr_group **group)
{
	int ret = mrf_mr_group_get(space, attr->auth_key, attr->auth_key_size, group);

	if (!ret)
		return 0;
	return mrf_refuse(-ret, FI_LOG_MR, 3203,
			  "there is no memory or no protection domain for another "
			  "authorization key");
}

/* Enables a region that the application does not know yet, or closes it. */
static int enable_or_close(struct fid_mr *fid)
{
	int ret = mrf_mr_enable(mrf_mr_from_fid(&fid->fid));

	if (ret)
		fi_close(&fid->fid);
	return ret;
}

static int register_keyed(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			  struct mrf_mr_plan *plan, struct mrf_mr_pins *pins, struct fid_mr **out)
{
	struct fid_mr *fid = NULL;
	int ret = find_group(space, attr, &plan->group);

	if (ret)
		return ret;
	/* The kernel regions in other protection domains are made when it is enabled. */
	plan->next = plan->group && plan->begins == MRF_STATE_ENABLED && !space->worker;
	if (plan->next)
		plan->begins = MRF_STATE_DISABLED;
	ret = register_planned(space, attr, plan, pins, plan->next ? &fid : out);
	if (ret)
		mrf_mr_group_put(plan->group);
	else
		plan->device = NULL;
	if (ret || !plan->next)
		return ret;
	ret = enable_or_close(fid);
	if (!ret)
		*out = fid;
	return ret;
}

/* --- the call --------------------------------------------------------------------- */

/* If there would be too many pieces, the kernel decides about each segment as it is. */
static void lay_out(const struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		    const struct mrf_mr_plan *plan, struct mrf_mr_pins *pins)
{
	if (plan->demand || plan->device || !plan_segs(space, attr, true, pins))
		plan_segs(space, attr, false, pins);
}

/* Is there memory of devices in it? plan->device says so, until it is the region's. */
static __attribute__((noinline)) int find_device(const struct mrf_mr_space *space,
						 const struct fi_mr_attr *attr, uint64_t flags,
						 struct mrf_mr_plan *plan)
{
	struct mrf_mr_pins pins;

	plan_segs(space, attr, false, &pins);
	return mrf_mr_device_find(attr, flags, &pins, &plan->device);
}

/* Inline, because a call more would be felt. */
static MRF_ALWAYS_INLINE int register_checked(struct mrf_mr_space *space,
					      const struct fi_mr_attr *attr,
					      struct mrf_mr_plan *plan, struct fid_mr **out)
{
	struct mrf_mr_pins pins;

	plan->group = NULL;
	lay_out(space, attr, plan, &pins);
	if (mrf_unlikely(attr->auth_key_size && mrf_rule_auth_key(space->api_version)))
		return register_keyed(space, attr, plan, &pins, out);
	return register_planned(space, attr, plan, &pins, out);
}

int mrf_mr_register(struct mrf_mr_space *space, const struct fi_mr_attr *attr, uint64_t flags,
		    struct fid_mr **out)
{
	struct mrf_mr_plan plan;
	int ret;

	if (mrf_unlikely(!space || !attr || !out))
		return refuse_missing(!space ? "domain" : attr ? "mr" : "attr");
	if (mrf_unlikely(!mrf_fork_ours(space->owner)))
		return mrf_obj_foreign(space->obj->fid, space->owner, "fi_mr_reg");
	if (mrf_likely(mrf_mr_attr_usual(space, attr, flags)))
		return register_usual(space, attr, out);
	ret = check_request(space, attr, flags, &plan);
	plan.device = NULL;
	if (!ret && mrf_unlikely(space->mode & FI_MR_HMEM))
		ret = find_device(space, attr, flags, &plan);
	if (ret)
		return ret;
	ret = register_checked(space, attr, &plan, out);
	if (ret)
		free(plan.device);
	return ret;
}
