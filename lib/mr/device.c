/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "base/names.h"
#include "base/user.h"
#include "hmem/hmem.h"
#include "mr/device.h"
#include "mr/pins.h"
#include "mr/region.h"
#include "mr/seg.h"

/* A registration whose memory is being looked up. */
struct look {
	const struct fi_mr_attr *attr;
	const struct mrf_hmem *hmem;
	uint64_t flags;
	struct mrf_mr_device *device; /* as far as it has been looked up */
	bool staged;		      /* some of it must not be pinned */
};

static const char *iface_name(enum fi_hmem_iface iface)
{
	return mrf_names_enum(&mrf_names_hmem_iface, iface);
}

/* --- memory that is not what the call says ---------------------------------------------- */

int mrf_mr_device_refuse(const void *addr, bool now, unsigned code, const char *what)
{
	struct mrf_hmem_alloc alloc;
	const struct mrf_hmem *hmem = mrf_hmem_whose((uintptr_t)addr, &alloc);

	if (!hmem || !mrf_hmem_is_copied(alloc.kind) || (now && alloc.kind == MRF_HMEM_MANAGED))
		return 0;
	return mrf_refuse(
		FI_EINVAL, FI_LOG_MR, code,
		"%s at %p is %s device %d of %s: it has to be registered by fi_mr_regattr "
		"with this iface and device, and used with the descriptor of that region",
		what, addr,
		alloc.kind == MRF_HMEM_MANAGED ? "memory that the host shares with" : "memory of",
		alloc.device, iface_name(hmem->iface));
}

static int check_host(const struct mrf_mr_pins *pins, uint64_t flags)
{
	unsigned i;
	int ret = 0;

	if (flags & FI_HMEM_DEVICE_ONLY)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3300,
				  "FI_HMEM_DEVICE_ONLY: iface=FI_HMEM_SYSTEM is host memory, "
				  "which the processor can also access");
	for (i = 0; i < pins->nseg && !ret; i++) {
		if (pins->seg[i].len)
			ret = mrf_mr_device_refuse((void *)(uintptr_t)pins->seg[i].addr, false,
						   3301, "the buffer");
	}
	return ret;
}

/* -1: the interface has no numbers. */
static int number_of(const struct fi_mr_attr *attr)
{
	switch (attr->iface) {
	case FI_HMEM_CUDA:
		return attr->device.cuda;
	case FI_HMEM_ZE:
		return attr->device.ze;
	default:
		return -1;
	}
}

static int check_number(const struct look *look)
{
	int number = number_of(look->attr), devices;
	struct mrf_hmem_why why;
	int ret = look->hmem->count(&devices, &why);

	if (ret)
		return mrf_refuse(-ret, FI_LOG_MR, 3302, "%s: %s", iface_name(look->attr->iface),
				  why.text);
	if (look->attr->iface == FI_HMEM_ROCR || (number >= 0 && number < devices))
		return 0;
	return mrf_refuse(FI_ENODEV, FI_LOG_MR, 3303, "device=%d: %s has %d device%s", number,
			  iface_name(look->attr->iface), devices, MRF_S(devices));
}

static int check_whose(const struct look *look, const struct mrf_mr_seg *seg,
		       const struct mrf_hmem_alloc *alloc)
{
	int number = number_of(look->attr);

	if (alloc->kind == MRF_HMEM_NONE)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3304,
				  "%#lx + %lu byte%s is not memory that %s knows", seg->addr,
				  seg->len, MRF_S(seg->len), iface_name(look->attr->iface));
	if (alloc->kind == MRF_HMEM_DEVICE && number >= 0 && number != alloc->device)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3305,
				  "device=%d: the memory at %#lx is of device %d", number,
				  seg->addr, alloc->device);
	if (alloc->kind != MRF_HMEM_DEVICE && look->flags & FI_HMEM_DEVICE_ONLY)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_MR, 3306,
			"FI_HMEM_DEVICE_ONLY: the memory at %#lx is %s, which the processor can also access",
			seg->addr,
			alloc->kind == MRF_HMEM_MANAGED ? "shared by host and device"
							: "the host's");
	return 0;
}

/* A runtime may know memory of the host by another address that is good for its device only. */
static int check_extent(const struct mrf_mr_seg *seg, const struct mrf_mr_seg *whole,
			const struct mrf_hmem_alloc *alloc)
{
	if (mrf_range_inside(seg->addr, alloc->more ? 1 : seg->len, alloc->start, alloc->len))
		return 0;
	if (!mrf_range_inside(seg->addr, 1, alloc->start, alloc->len))
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3307,
				  "%#lx is the device's address of host memory: register the "
				  "host's address, which is in %#zx + %zu byte%s",
				  seg->addr, (size_t)alloc->start, alloc->len, MRF_S(alloc->len));
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3308,
			  "%#lx + %lu byte%s passes the end of its allocation, %#zx + %zu byte%s",
			  whole->addr, whole->len, MRF_S(whole->len), (size_t)alloc->start,
			  alloc->len, MRF_S(alloc->len));
}

/* --- what it is --------------------------------------------------------------------------- */

/* What seg begins with, which is left of the whole one. */
static int look_at(struct look *look, const struct mrf_mr_seg *seg, const struct mrf_mr_seg *whole,
		   struct mrf_hmem_alloc *alloc)
{
	struct mrf_hmem_why why;
	int ret = look->hmem->find(seg->addr, alloc, &why);

	if (ret)
		return mrf_refuse(-ret, FI_LOG_MR, 3309, "%#lx + %lu byte%s: %s", seg->addr,
				  seg->len, MRF_S(seg->len), why.text);
	ret = check_whose(look, seg, alloc);
	if (!ret)
		ret = check_extent(seg, whole, alloc);
	if (!ret)
		look->staged |= mrf_hmem_is_copied(alloc->kind);
	return ret;
}

static int add_part(struct look *look, unsigned seg, const struct mrf_hmem_alloc *alloc)
{
	struct mrf_mr_device *device = look->device;

	device = realloc(device, sizeof(*device) + (device->nparts + 1) * sizeof(device->part[0]));
	if (!device)
		return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "there is no memory for a region");
	device->part[device->nparts++] = (struct mrf_mr_part){ seg, *alloc };
	look->device = device;
	return 0;
}

static int look_at_all(struct look *look, const struct mrf_mr_pins *pins, unsigned i)
{
	struct mrf_mr_seg left = pins->seg[i];
	struct mrf_hmem_alloc alloc;
	uint64_t here;
	int ret;

	for (; left.len; left.addr += here, left.len -= here) {
		ret = look_at(look, &left, &pins->seg[i], &alloc);
		if (!ret)
			ret = add_part(look, i, &alloc);
		if (ret)
			return ret;
		here = mrf_min(left.len, alloc.start + alloc.len - left.addr);
	}
	return 0;
}

/* What was found is in look->device. */
static int look_up(struct look *look, const struct mrf_mr_pins *pins)
{
	unsigned i;
	int ret = 0;

	look->device = malloc(sizeof(*look->device));
	if (!look->device)
		return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "there is no memory for a region");
	look->device->hmem = look->hmem;
	look->device->nparts = 0;
	for (i = 0; i < pins->nseg && !ret; i++)
		ret = look_at_all(look, pins, i);
	return ret;
}

int mrf_mr_device_find(const struct fi_mr_attr *attr, uint64_t flags,
		       const struct mrf_mr_pins *pins, struct mrf_mr_device **device)
{
	struct look look = { .attr = attr, .flags = flags };
	int ret;

	*device = NULL;
	if (attr->iface == FI_HMEM_SYSTEM)
		return check_host(pins, flags);
	ret = mrf_hmem_open(attr->iface, &look.hmem);
	if (!ret)
		ret = check_number(&look);
	if (!ret)
		ret = look_up(&look, pins);
	if (!ret && look.staged)
		*device = look.device;
	else
		free(look.device);
	return ret;
}

/* --- copies ------------------------------------------------------------------------------- */

struct copy {
	bool in; /* to the device */
	uint64_t addr;
	uint8_t *host;
	uint64_t len;
};

/* NULL: it has been closed. */
static struct mrf_mr *hold_region(const struct mrf_mr_space *space, const void *desc)
{
	const struct mrf_mr *found = mrf_desc_find(space->pool, desc);
	struct mrf_mr *mr = (struct mrf_mr *)(uintptr_t)found;
	struct mrf_lock *lock;

	if (!mr)
		return NULL;
	lock = &mr->space->lock;
	mrf_lock_take(lock);
	if (mrf_desc_still(mr, desc) && mr->device)
		mrf_mr_enter_locked(mr);
	else
		mr = NULL;
	mrf_lock_release(lock);
	return mr;
}

/* Copies from or to memory of the host, which may be gone. */
static int copy_shared(const struct copy *copy, struct mrf_hmem_why *why)
{
	struct iovec there = { (void *)(uintptr_t)copy->addr, copy->len };
	int ret = copy->in ? mrf_user_put(&there, 1, copy->host, true)
			   : mrf_user_get(copy->host, &there, 1);

	if (ret)
		snprintf(why->text, sizeof(why->text), "%#lx + %lu byte%s is not mapped",
			 copy->addr, copy->len, MRF_S(copy->len));
	return ret;
}

/* Where the byte at addr is, in a segment that has it. */
static const struct mrf_hmem_alloc *find_part(const struct mrf_mr_device *device, unsigned seg,
					      uint64_t addr)
{
	unsigned low = 0, high = device->nparts, middle;

	while (high - low > 1) {
		const struct mrf_mr_part *part = &device->part[middle = low + (high - low) / 2];

		if (part->seg < seg || (part->seg == seg && part->alloc.start <= addr))
			low = middle;
		else
			high = middle;
	}
	return &device->part[low].alloc;
}

/* As much as is in one allocation. */
static int copy_part(const struct mrf_mr_device *device, unsigned seg, struct copy *copy,
		     struct mrf_hmem_why *why)
{
	const struct mrf_hmem_alloc *alloc = find_part(device, seg, copy->addr);

	copy->len = mrf_min(copy->len, alloc->start + alloc->len - copy->addr);
	if (!mrf_hmem_is_copied(alloc->kind))
		return copy_shared(copy, why);
	if (copy->in)
		return device->hmem->put(alloc, copy->addr, copy->host, copy->len, why);
	return device->hmem->get(alloc, copy->host, copy->addr, copy->len, why);
}

static int copy_held(const struct mrf_mr *mr, struct copy copy, struct mrf_hmem_why *why)
{
	uint64_t left = copy.len, offset;
	unsigned i;
	int ret = 0;

	for (; left && !ret; copy.addr += copy.len, copy.host += copy.len, left -= copy.len) {
		copy.len = mrf_mr_locate(mr->segs, mr->nseg, true, copy.addr, left, &i, &offset);
		if (!copy.len) {
			snprintf(why->text, sizeof(why->text), "it is outside of its region");
			return -FI_EINVAL;
		}
		ret = copy_part(mr->device, i, &copy, why);
	}
	return ret;
}

int mrf_mr_device_copy(const struct mrf_mr *mr, bool in, uint64_t addr, void *host, uint64_t len,
		       struct mrf_hmem_why *why)
{
	return copy_held(mr, (struct copy){ in, addr, host, len }, why);
}

static int copy_of(const struct mrf_mr_space *space, const void *desc, const struct copy *copy,
		   struct mrf_hmem_why *why)
{
	struct mrf_mr *mr = hold_region(space, desc);
	int ret;

	if (!mr)
		return -FI_ECANCELED;
	ret = copy_held(mr, *copy, why);
	mrf_mr_leave(mr);
	return ret;
}

int mrf_mr_device_get(const struct mrf_mr_space *space, const void *desc, void *to, uint64_t addr,
		      uint64_t len, struct mrf_hmem_why *why)
{
	return copy_of(space, desc, &(struct copy){ false, addr, to, len }, why);
}

int mrf_mr_device_put(const struct mrf_mr_space *space, const void *desc, uint64_t addr,
		      const void *from, uint64_t len, struct mrf_hmem_why *why)
{
	return copy_of(space, desc, &(struct copy){ true, addr, (void *)(uintptr_t)from, len },
		       why);
}
