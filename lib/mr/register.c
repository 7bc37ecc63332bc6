/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "contract/rules.h"
#include "mr/demand/back.h"
#include "mr/face.h"
#include "mr/worker.h"
#include "mr/pool.h"
#include "mr/demand/backs.h"

/* --- closing ---------------------------------------------------------------------- */

static void hold_domain_locked(struct mrf_mr *mr)
{
	mrf_list_add_tail(&mr->held, &mr->space->regions.holds);
}

/*
 * Lets no peer find the region and no operation use its descriptor any more. Before the
 * kernel regions go: the kernel may hand out their numbers again at once. The domain is
 * held until nothing of the region is left. The caller holds space->lock.
 */
static MRF_ALWAYS_INLINE void withdraw_locked(struct mrf_mr *mr)
{
	mrf_mr_key_release(mr);
	mrf_mr_set_dead(mr);
	mrf_mr_move(mr, MRF_STATE_CLOSED);
}

/*
 * When it returns nobody is inside the region any more. -FI_EBUSY (logged): an endpoint
 * is in the way, nothing changed; or it is closed already.
 */
static int withdraw(struct mrf_mr *mr)
{
	struct mrf_mr_space *space = mr->space;
	int ret;

	mrf_lock_take(&space->lock);
	if (mr->state == MRF_STATE_CLOSED)
		ret = mrf_mr_state_refuse(mr, MRF_STATE_CLOSED, MRF_CALL_CLOSE);
	else
		ret = mrf_mr_bound(mr);
	if (!ret) {
		withdraw_locked(mr);
		mrf_mr_job_drop_locked(mr);
	}
	mrf_lock_release(&space->lock);
	if (!ret)
		mrf_mr_wait_left(mr);
	return ret;
}

static MRF_ALWAYS_INLINE int unpin_one(const struct mrf_mr_seg *seg, struct mrf_vmr *vmr)
{
	int ret = mrf_vmr_dereg(vmr);

	if (mrf_likely(!ret))
		return 0;
	return mrf_refuse(-ret, FI_LOG_MR, 3030,
			  "%#llx + %llu bytes: the kernel keeps the region",
			  (unsigned long long)seg->addr, (unsigned long long)seg->len);
}

static int unpin(const struct mrf_mr_seg *seg, struct mrf_vmr *vmr, unsigned nseg)
{
	int first = 0, ret;
	unsigned i;

	for (i = 0; i < nseg; i++) {
		ret = unpin_one(&seg[i], &vmr[i]);
		first = first ? first : ret;
	}
	return first;
}

/* And frees what the region has allocated, but for what its counters need. */
static int unpin_all(struct mrf_mr *mr)
{
	int ret = mrf_mr_faces_drop(&mr->faces);

	if (!ret && mr->back)
		ret = mrf_mr_back_close(mr->back);
	else if (!ret)
		ret = unpin(mr->segs, mrf_mr_vmrs(mr), mr->nseg);
	if (ret)
		return ret;
	if (mr->nseg > 1)
		free(mr->segs);
	if (mr->back) {
		mrf_mr_back_put(mr->back);
		mr->back = NULL;
	}
	if (mr->job)
		mrf_mr_job_free(mr);
	return 0;
}

/*
 * If the kernel keeps it, the region stays as a failed one and may be closed again. Else this
 * is the end of its hold on the domain, which another thread may be waiting to close: with
 * the lock all use of the space ends.
 */
static MRF_ALWAYS_INLINE int finish(struct mrf_mr *mr, int ret)
{
	struct mrf_mr_space *space = mr->space;

	mrf_debug(FI_LOG_MR, "region %p: closed (%d)", (void *)mr, ret);
	mrf_lock_take(&space->lock);
	if (mrf_likely(!ret)) {
		mr->fid.fid.fclass = FI_CLASS_UNSPEC;
		mrf_list_del(&mr->held);
		mrf_mr_pool_put(space->pool, mr);
	} else {
		mrf_mr_move(mr, MRF_STATE_FAILED);
	}
	mrf_lock_release(&space->lock);
	return ret;
}

static int close_unusual(struct mrf_mr *mr)
{
	int ret = withdraw(mr);

	if (ret)
		return ret;
	ret = unpin_all(mr);
	if (ret)
		return finish(mr, ret);
	if (mr->event)
		mrf_mr_event_close(mr);
	/* Last: what comes in late counts only if it comes from one of the group. */
	mrf_mr_group_put(mr->group);
	mr->group = NULL;
	mrf_mr_unbind(mr);
	return finish(mr, 0);
}

/* Enabled, nobody inside, one pin, nothing besides. The caller holds space->lock. */
static MRF_ALWAYS_INLINE bool closes_usually(const struct mrf_mr *mr)
{
	return mr->state == MRF_STATE_ENABLED && !mr->users && mr->nseg == 1 &&
	       !mr->back && !mr->job && !mr->event && !mr->group && !mr->faces &&
	       mrf_list_empty(&mr->bonds);
}

static int mr_close(struct fid *fid)
{
	struct mrf_mr *mr = mrf_mr_from_fid(fid);
	struct mrf_mr_space *space = mr->space;

	if (mrf_unlikely(!mrf_fork_ours(space->owner)))
		return mrf_obj_foreign(fid, space->owner, "fi_close");
	mrf_lock_take(&space->lock);
	if (mrf_unlikely(!closes_usually(mr))) {
		mrf_lock_release(&space->lock);
		return close_unusual(mr);
	}
	withdraw_locked(mr);
	mrf_lock_release(&space->lock);
	return finish(mr, unpin_one(&mr->seg, &mr->vmr));
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mrf_mr_bind,
	.control = mrf_mr_control,
	.ops_open = mrf_no_ops_open,
};

/* --- registering ------------------------------------------------------------------ */

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

static MRF_ALWAYS_INLINE int pin_one(const struct mrf_mr_space *space,
				     struct mrf_vpd *pd, unsigned rights,
				     struct mrf_mr_seg *seg, struct mrf_vmr *vmr)
{
	const void *addr = (const void *)(uintptr_t)seg->addr;
	int ret = 0;

	if (mrf_likely(seg->len)) {
		ret = mrf_room_reg(pd, addr, seg->len, seg->iova, rights, vmr);
		if (mrf_unlikely(ret))
			return mrf_mr_why(space, addr, seg->len, rights, ret);
	} else {
		*vmr = (struct mrf_vmr){ 0 };
	}
	seg->rkey = vmr->rkey;
	seg->lkey = vmr->lkey;
	return 0;
}

/* pins->seg says where. */
static int pin(const struct mrf_mr_space *space, struct mrf_vpd *pd, unsigned rights,
	       struct mrf_mr_pins *pins)
{
	unsigned n;
	int ret;

	for (n = 0; n < pins->nseg; n++) {
		ret = pin_one(space, pd, rights, &pins->seg[n], &pins->vmr[n]);
		if (mrf_unlikely(ret)) {
			unpin(pins->seg, pins->vmr, n);
			return ret;
		}
	}
	return 0;
}

int mrf_mr_pin(const struct mrf_mr_space *space, struct mrf_vpd *pd,
	       const struct mrf_mr_seg *segs, unsigned nseg, unsigned rights,
	       struct mrf_mr_pins *pins)
{
	pins->nseg = nseg;
	memcpy(pins->seg, segs, nseg * sizeof(*segs));
	return pin(space, pd, rights, pins);
}

void mrf_mr_unpin(struct mrf_mr_pins *pins)
{
	unpin(pins->seg, pins->vmr, pins->nseg);
}

/*
 * Where the segments are; empty ones are left out, unless there is nothing else. Keys are
 * left to be set.
 */
static void plan_segs(const struct mrf_mr_space *space, const struct iovec *iov,
		      const struct mrf_mr_plan *plan, struct mrf_mr_pins *pins)
{
	unsigned n;

	for (n = 0; n < plan->nseg; iov++) {
		if (iov->iov_len || !plan->len)
			plan_seg(space, iov, &pins->seg[n++]);
	}
	pins->nseg = n;
}

/* What stays the same however often the pool hands the region out. */
static void set_up(struct mrf_mr *mr, struct mrf_mr_space *space)
{
	mr->fid.fid.ops = &mr_fid_ops;
	mr->space = space;
	mrf_list_init(&mr->bonds);
	mr->faces = NULL;
	mr->group = NULL;
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

static MRF_ALWAYS_INLINE struct mrf_mr *enter_locked(struct mrf_mr_space *space,
						     const struct fi_mr_attr *attr,
						     const struct mrf_mr_plan *plan,
						     const struct mrf_mr_pins *pins,
						     struct mrf_mr_seg *segs)
{
	struct mrf_mr *mr = mrf_mr_pool_get(space->pool);

	if (mrf_unlikely(!mr))
		return NULL;
	if (mrf_unlikely(!mr->space))
		set_up(mr, space);
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->key = space->mode & FI_MR_PROV_KEY ? FI_KEY_NOTAVAIL : attr->requested_key;
	mr->serial = space->next_serial++;
	mr->vmr = pins->vmr[0];
	mr->len = plan->len;
	mr->keyed = false;
	mrf_mr_set(mr, plan->access, plan->nseg, pins->seg, segs);
	return mr;
}

static MRF_ALWAYS_INLINE enum mrf_mr_state first_state(const struct mrf_mr_plan *plan)
{
	if (plan->pending)
		return MRF_STATE_PENDING;
	return plan->deferred ? MRF_STATE_DISABLED : MRF_STATE_ENABLED;
}

/*
 * Gives the region its key and, if it is enabled from the start, its descriptor. A pending
 * one gets a provider key later, because that may have to carry the rkey.
 */
static MRF_ALWAYS_INLINE int publish_locked(struct mrf_mr *mr, uint64_t requested_key,
					    const struct mrf_mr_plan *plan,
					    struct mrf_mr_holder *holder)
{
	enum mrf_mr_state state = first_state(plan);
	int ret = 0;

	if (mrf_unlikely(plan->event))
		ret = mrf_mr_event_open(mr);
	if (mrf_likely(!ret) && mr->access & MRF_MR_REMOTE &&
	    (state != MRF_STATE_PENDING || !(mr->space->mode & FI_MR_PROV_KEY)))
		ret = mrf_mr_key_take(mr, requested_key, holder);
	if (mrf_unlikely(ret)) {
		mrf_mr_event_drop(mr);
		mr->fid.fid.fclass = FI_CLASS_UNSPEC;
		mrf_mr_pool_unget(mr->space->pool, mr);
		return ret;
	}
	hold_domain_locked(mr);
	mrf_mr_move(mr, state);
	if (mrf_likely(state == MRF_STATE_ENABLED)) {
		mrf_mr_key_show(mr);
		mrf_mr_set_live(mr);
	} else {
		mr->fid.key = FI_KEY_NOTAVAIL;
	}
	return 0;
}

static int why_unpublished(uint64_t key, const struct mrf_mr_holder *holder, int err)
{
	if (err == -FI_ENOKEY)
		return mrf_refuse(
			FI_ENOKEY, FI_LOG_MR, 3021,
			"requested_key=%#llx: is taken by the region at %#llx, %llu "
			"bytes",
			(unsigned long long)key, (unsigned long long)holder->addr,
			(unsigned long long)holder->len);
	return mrf_refuse(-err, FI_LOG_MR, 3022, "no memory for a region");
}

static MRF_ALWAYS_INLINE int publish(struct mrf_mr_space *space,
				     const struct fi_mr_attr *attr,
				     const struct mrf_mr_plan *plan,
				     const struct mrf_mr_pins *pins,
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
		/* NULL else; as it was left by the one before. */
		if (mrf_unlikely(plan->group != NULL))
			mr->group = plan->group;
	}
	mrf_lock_release(&space->lock);
	if (mrf_unlikely(ret)) {
		free(segs);
		return why_unpublished(attr->requested_key, &holder, ret);
	}
	mrf_debug(FI_LOG_MR,
		  "region %p: registered at 0x%llx, %llu bytes, access 0x%llx, key 0x%llx",
		  (void *)mr, (unsigned long long)(uintptr_t)attr->mr_iov->iov_base,
		  (unsigned long long)mr->len, (unsigned long long)mr->access,
		  (unsigned long long)mr->fid.key);
	*out = &mr->fid;
	return 0;
}

int mrf_mr_publish(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		   const struct mrf_mr_plan *plan, const struct mrf_mr_pins *pins,
		   struct mrf_mr_back *back, struct fid_mr **out)
{
	return publish(space, attr, plan, pins, back, out);
}

/* What needs no lock: whether anybody could have this key. */
static int check_key(const struct mrf_mr_space *space, const struct fi_mr_attr *attr)
{
	if (mrf_likely(attr->requested_key != FI_KEY_NOTAVAIL) ||
	    !(attr->access & MRF_MR_REMOTE) || (space->mode & FI_MR_PROV_KEY))
		return 0;
	return mrf_refuse(FI_EKEYREJECTED, FI_LOG_MR, 3023,
			  "requested_key=%#llx: is FI_KEY_NOTAVAIL, which is no key",
			  (unsigned long long)attr->requested_key);
}

static int refuse_null(const char *which)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3001, "%s=NULL: must be given", which);
}

/* The short way of nearly every registration: what is known of it is left out. */
static int register_usual(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			  struct fid_mr **out)
{
	const struct mrf_mr_plan plan = { .access = attr->access,
					  .len = attr->mr_iov->iov_len,
					  .nseg = 1 };
	struct mrf_mr_pins pins;
	int ret = check_key(space, attr);

	if (mrf_unlikely(ret))
		return ret;
	pins.nseg = 1;
	plan_seg(space, attr->mr_iov, &pins.seg[0]);
	ret = pin_one(space, space->pd, mrf_mr_access_kernel(space, plan.access), &pins.seg[0],
		      &pins.vmr[0]);
	if (mrf_unlikely(ret))
		return ret;
	ret = publish(space, attr, &plan, &pins, NULL, out);
	if (mrf_unlikely(ret))
		unpin_one(&pins.seg[0], &pins.vmr[0]);
	return ret;
}

static int check(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		 uint64_t flags, struct mrf_mr_plan *plan)
{
	int ret;

	ret = mrf_mr_attr_check(space, attr, flags, plan);
	if (ret)
		return ret;
	ret = check_key(space, attr);
	if (ret)
		return ret;
	mrf_mr_access_warn(space, attr->access);
	return 0;
}

int mrf_mr_register_planned(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			    struct mrf_mr_plan *plan, struct mrf_mr_pins *pins,
			    struct fid_mr **out)
{
	int ret;

	if (mrf_unlikely(space->worker != NULL))
		return mrf_mr_register_async(space, attr, plan, pins, out);
	if (mrf_unlikely(plan->deferred || plan->demand))
		return mrf_mr_register_unpinned(space, attr, plan, pins, out);
	ret = pin(space, space->pd, mrf_mr_access_kernel(space, plan->access), pins);
	if (mrf_unlikely(ret))
		return ret;
	ret = publish(space, attr, plan, pins, NULL, out);
	if (mrf_unlikely(ret))
		unpin(pins->seg, pins->vmr, pins->nseg);
	return ret;
}

int mrf_mr_register(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		    uint64_t flags, struct fid_mr **out)
{
	struct mrf_mr_plan plan;
	struct mrf_mr_pins pins;
	int ret;

	if (mrf_unlikely(!space || !attr || !out))
		return refuse_null(!space ? "domain" : attr ? "mr" : "attr");
	if (mrf_unlikely(!mrf_fork_ours(space->owner)))
		return mrf_obj_foreign(space->obj->fid, space->owner, "fi_mr_reg");
	if (mrf_likely(mrf_mr_attr_usual(space, attr, flags)))
		return register_usual(space, attr, out);
	ret = check(space, attr, flags, &plan);
	if (ret)
		return ret;
	plan.group = NULL;
	plan.at_once = false;
	plan_segs(space, attr->mr_iov, &plan, &pins);
	plan.pending = false;
	if (mrf_unlikely(attr->auth_key_size && mrf_rule_auth_key(space->api_version)))
		return mrf_mr_register_keyed(space, attr, &plan, &pins, out);
	return mrf_mr_register_planned(space, attr, &plan, &pins, out);
}
