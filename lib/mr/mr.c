/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "mr/mr_int.h"

static struct mrf_mr *from_fid(const struct fid *fid)
{
	return mrf_container_of(fid, struct mrf_mr, fid.fid);
}

void mrf_mr_describe(const struct fid *fid, char *buf, size_t len)
{
	const struct mrf_mr *mr = from_fid(fid);
	int n;

	n = snprintf(buf, len, "%#llx, %llu bytes", (unsigned long long)mr->seg[0].addr,
		     (unsigned long long)mr->len);
	if (n > 0 && (size_t)n < len && (mr->access & MRF_MR_REMOTE))
		snprintf(buf + n, len - (size_t)n, ", key %#llx",
			 (unsigned long long)mr->fid.key);
}

static void hold_domain_locked(struct mrf_mr *mr)
{
	mr->parent.holder = &mr->fid.fid;
	mr->parent.describe = mrf_mr_describe;
	mrf_list_add_tail(&mr->parent.node, &mr->space->regions.holds);
}

/*
 * Lets no peer find the region and no operation use its descriptor any more. Before the
 * kernel regions go: the kernel may hand out their numbers again at once.
 */
static void withdraw(struct mrf_mr *mr)
{
	struct mrf_mr_space *space = mr->space;

	mrf_lock_take(&space->lock);
	mrf_list_del(&mr->parent.node);
	mrf_mr_key_release(mr);
	mrf_desc_del(space->descs, mr->fid.mem_desc);
	mr->fid.mem_desc = NULL;
	mrf_lock_release(&space->lock);
}

static int unpin(struct mrf_mr *mr)
{
	struct mrf_vmr *vmr = mrf_mr_vmr(mr);
	int first = 0, ret;
	unsigned i;

	for (i = 0; i < mr->nseg; i++) {
		ret = mrf_vmr_dereg(&vmr[i]);
		if (mrf_unlikely(ret)) {
			mrf_refuse(-ret, FI_LOG_MR, 3030,
				   "%#llx + %llu bytes: the kernel keeps the region",
				   (unsigned long long)mr->seg[i].addr,
				   (unsigned long long)mr->seg[i].len);
			first = first ? first : ret;
		}
	}
	return first;
}

/* On failure the region stays, without key and descriptor, and may be closed again. */
static int mr_close(struct fid *fid)
{
	struct mrf_mr *mr = from_fid(fid);
	int ret;

	withdraw(mr);
	ret = unpin(mr);
	if (mrf_unlikely(ret)) {
		mrf_lock_take(&mr->space->lock);
		hold_domain_locked(mr);
		mrf_lock_release(&mr->space->lock);
		return ret;
	}
	free(mr);
	return 0;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mrf_mr_bind,
	.control = mrf_mr_control,
	.ops_open = mrf_no_ops_open,
};

static void set_segment(struct mrf_mr *mr, unsigned n, const struct iovec *iov)
{
	struct mrf_mr_seg *seg = &mr->seg[n];

	seg->addr = (uintptr_t)iov->iov_base;
	seg->len = iov->iov_len;
	/* The kernel wants iova and address congruent modulo the page. */
	seg->iova = seg->addr;
	if (!(mr->space->mode & FI_MR_VIRT_ADDR))
		seg->iova &= mr->space->page_mask;
	seg->lkey = 0;
	seg->rkey = 0;
	mrf_mr_vmr(mr)[n].handle = NULL;
}

/*
 * NULL: no memory. The region is complete but for what pin() and publish() bring.
 * Fields are set one by one: calloc costs several times what malloc does here.
 */
static struct mrf_mr *mr_new(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
			     const struct mrf_mr_plan *plan)
{
	struct mrf_mr *mr;
	unsigned n = 0;
	size_t i;

	mr = malloc(sizeof(*mr) +
		    plan->nseg * (sizeof(mr->seg[0]) + sizeof(struct mrf_vmr)));
	if (!mr)
		return NULL;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->fid.mem_desc = NULL;
	mr->fid.key =
		space->mode & FI_MR_PROV_KEY ? FI_KEY_NOTAVAIL : attr->requested_key;
	mr->space = space;
	mr->access = plan->access;
	mr->len = plan->len;
	mr->nseg = plan->nseg;
	mr->keyed = false;
	for (i = 0; i < attr->iov_count && n < plan->nseg; i++) {
		if (attr->mr_iov[i].iov_len || !plan->len)
			set_segment(mr, n++, &attr->mr_iov[i]);
	}
	return mr;
}

static int pin(struct mrf_mr *mr)
{
	unsigned rights = mrf_mr_access_kernel(mr->access);
	struct mrf_vmr *vmr = mrf_mr_vmr(mr);
	unsigned i;
	int ret;

	for (i = 0; i < mr->nseg; i++) {
		struct mrf_mr_seg *seg = &mr->seg[i];
		const void *addr = (const void *)(uintptr_t)seg->addr;

		if (!seg->len)
			continue;
		ret = mrf_vmr_reg(mr->space->pd, addr, seg->len, seg->iova, rights,
				  &vmr[i]);
		if (mrf_unlikely(ret)) {
			mrf_mr_why(mr->space, addr, seg->len, rights, ret);
			unpin(mr);
			return ret;
		}
		seg->lkey = vmr[i].lkey;
		seg->rkey = vmr[i].rkey;
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
	return mrf_refuse(-err, FI_LOG_MR, 3022, "no memory to enter the region");
}

static int publish_locked(struct mrf_mr *mr, uint64_t requested_key,
			  struct mrf_mr_holder *holder)
{
	struct mrf_mr_space *space = mr->space;
	int ret;

	ret = mrf_desc_add(space->descs, mr, &mr->fid.mem_desc);
	if (ret)
		return ret;
	if (mr->access & MRF_MR_REMOTE) {
		ret = mrf_mr_key_take(mr, requested_key, holder);
		if (ret)
			goto err_desc;
	}
	hold_domain_locked(mr);
	return 0;

err_desc:
	mrf_desc_del(space->descs, mr->fid.mem_desc);
	return ret;
}

/* Gives the region its descriptor and, when peers may use it, its key. */
static int publish(struct mrf_mr *mr, uint64_t requested_key)
{
	struct mrf_mr_holder holder;
	int ret;

	mrf_lock_take(&mr->space->lock);
	ret = publish_locked(mr, requested_key, &holder);
	mrf_lock_release(&mr->space->lock);
	return mrf_unlikely(ret) ? why_unpublished(requested_key, &holder, ret) : 0;
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

static int check(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		 uint64_t flags, struct fid_mr **out, struct mrf_mr_plan *plan)
{
	int ret;

	if (mrf_unlikely(!space || !attr || !out))
		return refuse_null(!space ? "domain" : attr ? "mr" : "attr");
	ret = mrf_mr_attr_check(space->api_version, attr, flags, plan);
	if (ret)
		return ret;
	ret = check_key(space, attr);
	if (ret)
		return ret;
	if (mrf_unlikely(attr->access != plan->access || !plan->access))
		mrf_mr_access_warn(space, attr->access);
	return 0;
}

int mrf_mr_register(struct mrf_mr_space *space, const struct fi_mr_attr *attr,
		    uint64_t flags, struct fid_mr **out)
{
	struct mrf_mr_plan plan;
	struct mrf_mr *mr;
	int ret;

	ret = check(space, attr, flags, out, &plan);
	if (ret)
		return ret;
	mr = mr_new(space, attr, &plan);
	if (!mr)
		return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "no memory for a region");
	ret = pin(mr);
	if (ret)
		goto err_free;
	ret = publish(mr, attr->requested_key);
	if (ret)
		goto err_unpin;
	*out = &mr->fid;
	return 0;

err_unpin:
	unpin(mr);
err_free:
	free(mr);
	return ret;
}
