/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_mr_raw_attr, fi_mr_map_raw and fi_mr_unmap_key: between the application, the bytes
 * of a raw key (proto/rawkey.h) and the keys that are mapped (mr/map.h).
 */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/face.h"
#include "mr/map.h"
#include "mr/mr_calls.h"
#include "mr/region.h"
#include "mr/seg.h"
#include "mr/space.h"
#include "mr/region_state.h"
#include "proto/rawkey_one.h"

_Static_assert(MRF_RAWKEY_MAX_SEG == MRF_MR_IOV_LIMIT, "room for all segments");

/*
 * Each call does the usual thing first, in a function that calls nothing, so that no
 * register has to be saved. Everything else is a function of its own, which begins anew.
 *
 * The application's memory is touched without a lock: it may have to be read in first, or be
 * watched by a thread that calls the library.
 */
#define UNUSUAL __attribute__((noinline, cold))

/* Releases the lock at the end of a usual call, which succeeds. */
static inline int end_usual(struct mrf_lock *lock)
{
	return mrf_lock_leave(lock) ? mrf_lock_wake(lock), 0 : 0;
}

/* --- fi_mr_raw_attr --------------------------------------------------------------- */

static void take_segs_locked(const struct mrf_mr *mr, const struct mrf_mr_face *face, bool virt,
			     struct mrf_rawkey *raw)
{
	uint64_t offset = 0;
	unsigned i;

	raw->nseg = mr->nseg;
	for (i = 0; i < mr->nseg; i++) {
		const struct mrf_mr_seg *seg = &mr->segs[i];

		raw->seg[i].pos = virt ? seg->addr : offset;
		raw->seg[i].len = seg->len;
		/* Without a remote right, an rkey that the kernel gave is of no use. */
		raw->seg[i].rkey = !raw->access ? 0 : face ? face->vmr[i].rkey : seg->rkey;
		raw->seg[i].iova_off = virt ? 0 : (uint32_t)seg->iova;
		offset += seg->len;
	}
}

/* What peers may know of a region that is enabled. */
static void tell_locked(const struct mrf_mr *mr, struct mrf_rawkey *raw)
{
	const struct mrf_mr_space *space = mr->space;
	bool virt = space->mode & FI_MR_VIRT_ADDR;
	const struct mrf_mr_face *face;

	mrf_lock_held(&space->lock);
	raw->space_id = space->id;
	raw->key = mr->key;
	raw->serial = mr->serial;
	raw->mr_mode = space->mode;
	raw->access = mr->access & MRF_MR_REMOTE;
	raw->base = virt ? mr->seg.addr : 0;
	raw->len = mr->len;
	/*
	 * Only an answer can say which of several faces a peer meets, and which number a
	 * region has that counts writes.
	 */
	face = mrf_mr_faced(mr) ? mrf_mr_face_sole_locked(mr) : NULL;
	raw->complete = !mr->back && !mr->device && !mr->event &&
			(!mrf_mr_faced(mr) || face || !raw->access);
	raw->nseg = 0;
	if (raw->complete)
		take_segs_locked(mr, face, virt, raw);
}

/* Keeps the raw key for later calls, if it is valid until the region is closed. */
static void keep_locked(struct mrf_mr *mr, const struct mrf_rawkey *raw, const uint8_t *key)
{
	mrf_lock_held(&mr->space->lock);
	/* Faces come and go with endpoints; and more segments take more room. */
	if (raw->nseg > 1 || mrf_mr_faced(mr))
		return;
	if (!mr->raw)
		mr->raw = malloc(MRF_RAWKEY_ONE_LEN);
	if (mr->raw)
		memcpy(mr->raw, key, MRF_RAWKEY_ONE_LEN);
}

static bool is_kept_locked(const struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	return mr->raw && get64(mr->raw + MRF_RAWKEY_SERIAL_AT) == mr->serial;
}

/* key: filled in only if the state allows the call. */
static enum mrf_mr_state read_region(struct mrf_mr *mr, uint8_t *key)
{
	enum mrf_mr_state state;
	struct mrf_rawkey raw;

	mrf_lock_take(&mr->space->lock);
	state = mr->state;
	if (mrf_mr_state_lets(state, MRF_CALL_RAW_ATTR)) {
		tell_locked(mr, &raw);
		mrf_rawkey_encode(&raw, key);
		keep_locked(mr, &raw, key);
	}
	mrf_lock_release(&mr->space->lock);
	return state;
}

static int check_raw_attr(const struct fi_mr_raw_attr *attr)
{
	if (!attr || !attr->key_size)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3100, "fi_mr_raw_attr: %s must not be NULL",
				  attr ? "key_size" : "attr");
	if (attr->flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_MR, 3102,
				  "fi_mr_raw_attr: flags must be 0, not %#lx", attr->flags);
	return 0;
}

/* Clears the rest of the buffer, which may be sent with the key: see mrf_rawkey_check. */
static void clear_rest(uint8_t *buf, size_t len, size_t room)
{
	if (room > MRF_RAWKEY_MAX)
		room = MRF_RAWKEY_MAX;
	if (room > len)
		memset(buf + len, 0, room - len);
}

static uint64_t base_of(const struct mrf_mr *mr)
{
	return mr->space->mode & FI_MR_VIRT_ADDR ? mr->seg.addr : 0;
}

/* The unusual cases: any region, and a buffer of any size. */
static UNUSUAL int raw_attr(struct mrf_mr *mr, struct fi_mr_raw_attr *attr)
{
	uint8_t key[MRF_RAWKEY_MAX];
	enum mrf_mr_state state;
	size_t room, need;
	int ret = check_raw_attr(attr);

	if (ret)
		return ret;
	state = read_region(mr, key);
	if (!mrf_mr_state_lets(state, MRF_CALL_RAW_ATTR))
		return mrf_mr_state_refuse(mr, state, MRF_CALL_RAW_ATTR);
	room = *attr->key_size;
	need = mrf_rawkey_len(key);
	*attr->key_size = need;
	if (!attr->raw_key || room < need) {
		/* Applications ask for the size in this way, so it is no fault. */
		mrf_debug(FI_LOG_MR,
			  "fi_mr_raw_attr(region %p): the key takes %zu bytes, there "
			  "is room for %zu",
			  (void *)&mr->fid, need, attr->raw_key ? room : 0);
		return -FI_ETOOSMALL;
	}
	memcpy(attr->raw_key, key, need);
	clear_rest(attr->raw_key, need, room);
	if (attr->base_addr)
		*attr->base_addr = base_of(mr);
	return 0;
}

static UNUSUAL int raw_attr_after(struct mrf_lock *lock, struct mrf_mr *mr,
				  struct fi_mr_raw_attr *attr)
{
	mrf_lock_release(lock);
	return raw_attr(mr, attr);
}

static UNUSUAL int raw_attr_woken(struct mrf_lock *lock, struct mrf_mr *mr,
				  struct fi_mr_raw_attr *attr)
{
	mrf_lock_wake(lock);
	return raw_attr(mr, attr);
}

/* Usually: a key that was asked for before, and there is enough room. */
int mrf_mr_raw_attr(struct mrf_mr *mr, struct fi_mr_raw_attr *attr)
{
	struct mrf_lock *lock = &mr->space->lock;
	uint8_t key[MRF_RAWKEY_ONE_LEN];

	if (!attr || !attr->raw_key || !attr->key_size || *attr->key_size < MRF_RAWKEY_ONE_LEN ||
	    attr->flags || !mrf_lock_try(lock))
		return raw_attr(mr, attr);
	if (!mrf_mr_state_lets(mr->state, MRF_CALL_RAW_ATTR) || !is_kept_locked(mr))
		return raw_attr_after(lock, mr, attr);
	memcpy(key, mr->raw, sizeof(key));
	if (mrf_unlikely(mrf_lock_leave(lock)))
		return raw_attr_woken(lock, mr, attr);
	memcpy(attr->raw_key, key, sizeof(key));
	clear_rest(attr->raw_key, sizeof(key), *attr->key_size);
	*attr->key_size = sizeof(key);
	if (attr->base_addr)
		*attr->base_addr = base_of(mr);
	return 0;
}

/* --- fi_mr_map_raw ---------------------------------------------------------------- */

static int check_map(const struct fi_mr_map_raw *attr)
{
	const char *null = NULL;

	if (!attr)
		null = "attr";
	else if (!attr->raw_key)
		null = "raw_key";
	else if (!attr->key)
		null = "key";
	if (null)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3110, "fi_mr_map_raw: %s must not be NULL",
				  null);
	if (attr->flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_MR, 3111,
				  "fi_mr_map_raw: flags must be 0, not %#lx", attr->flags);
	return 0;
}

static int check_key(const struct fi_mr_map_raw *attr)
{
	uint64_t base;
	const char *why;
	int ret = mrf_rawkey_check(attr->raw_key, attr->key_size, &why);

	if (ret)
		return mrf_refuse(-ret, FI_LOG_MR, ret == -FI_ENOSYS ? 3113 : 3112,
				  "fi_mr_map_raw: the raw key of %zu byte%s %s", attr->key_size,
				  MRF_S(attr->key_size), why);
	base = mrf_rawkey_base(attr->raw_key);
	if (attr->base_addr != base)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_MR, 3114,
			"fi_mr_map_raw: base_addr=%#lx: the raw key is of a region at %#lx",
			attr->base_addr, base);
	return 0;
}

static int refuse_add(int ret)
{
	if (ret == -FI_ENOSPC)
		return mrf_refuse(FI_ENOSPC, FI_LOG_MR, 3116,
				  "fi_mr_map_raw: there is no key left: at most %u are "
				  "mapped at a time, and a domain gives out at most %lu "
				  "in its lifetime, none of them twice",
				  MRF_MAP_SLOTS, (uint64_t)MRF_MAP_SLOTS * (MRF_MAP_GEN_MAX + 1));
	return mrf_refuse(-ret, FI_LOG_MR, 3115,
			  "fi_mr_map_raw: there is no memory for a mapped key");
}

/* The unusual cases: raw keys of any form, with or without faults. */
static UNUSUAL int map_raw(struct mrf_mr_space *space, const struct fi_mr_map_raw *attr)
{
	int ret = check_map(attr);

	if (ret)
		return ret;
	ret = check_key(attr);
	if (ret)
		return ret;
	ret = mrf_map_add(space->map, attr->raw_key, attr->key_size, attr->key);
	return ret ? refuse_add(ret) : 0;
}

/* Is it one of the short forms, without a fault? */
static inline bool is_short(const struct fi_mr_map_raw *attr)
{
	return attr && attr->raw_key && attr->key && !attr->flags &&
	       attr->key_size == MRF_RAWKEY_ONE_LEN && mrf_rawkey_is_short_well(attr->raw_key) &&
	       mrf_rawkey_base(attr->raw_key) == attr->base_addr;
}

static UNUSUAL int map_raw_after(struct mrf_lock *lock, struct mrf_mr_space *space,
				 const struct fi_mr_map_raw *attr)
{
	mrf_lock_release(lock);
	return map_raw(space, attr);
}

static inline int finish_map(struct mrf_map_slot *slot, uint64_t key,
			     const struct fi_mr_map_raw *attr)
{
	mrf_map_fill(slot, attr->raw_key, key);
	*attr->key = key;
	return 0;
}

static UNUSUAL int finish_map_woken(struct mrf_lock *lock, struct mrf_map_slot *slot, uint64_t key,
				    const struct fi_mr_map_raw *attr)
{
	mrf_lock_wake(lock);
	return finish_map(slot, key, attr);
}

int mrf_mr_map_raw(struct mrf_mr_space *space, const struct fi_mr_map_raw *attr)
{
	struct mrf_map *map = space->map;
	struct mrf_map_slot *slot;
	uint64_t key;

	if (!is_short(attr) || !mrf_lock_try(&map->lock))
		return map_raw(space, attr);
	if (!map->spare)
		return map_raw_after(&map->lock, space, attr);
	slot = mrf_map_take_locked(map, &key);
	if (mrf_unlikely(mrf_lock_leave(&map->lock)))
		return finish_map_woken(&map->lock, slot, key, attr);
	return finish_map(slot, key, attr);
}

/* --- fi_mr_unmap_key -------------------------------------------------------------- */

static UNUSUAL int unmap_key(struct mrf_mr_space *space, const uint64_t *key)
{
	if (key && mrf_map_remove(space->map, *key))
		return 0;
	if (!key)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3120,
				  "fi_mr_unmap_key: key must not be NULL");
	if (mrf_map_was(space->map, *key))
		return mrf_refuse(FI_ENOKEY, FI_LOG_MR, 3122,
				  "fi_mr_unmap_key: key %#lx has already been unmapped", *key);
	return mrf_refuse(
		FI_ENOKEY, FI_LOG_MR, 3121,
		"fi_mr_unmap_key: key %#lx did not come from fi_mr_map_raw on this domain", *key);
}

static UNUSUAL int unmap_key_after(struct mrf_lock *lock, struct mrf_mr_space *space,
				   const uint64_t *key)
{
	mrf_lock_release(lock);
	return unmap_key(space, key);
}

int mrf_mr_unmap_key(struct mrf_mr_space *space, const uint64_t *key)
{
	struct mrf_map *map = space->map;
	uint64_t mapped;

	if (!key)
		return unmap_key(space, key);
	mapped = *key;
	if (!mrf_lock_try(&map->lock))
		return unmap_key(space, key);
	if (!mrf_map_remove_locked(map, mapped))
		return unmap_key_after(&map->lock, space, key);
	return end_usual(&map->lock);
}

int mrf_mr_space_mapped(struct mrf_mr_space *space)
{
	struct mrf_rawkey raw;
	uint32_t count;
	uint64_t key;

	count = mrf_map_count(space->map, &key, &raw);
	if (!count)
		return 0;
	return mrf_refuse(FI_EBUSY, FI_LOG_MR, 3123,
			  "the domain cannot be closed: %u raw key%s still mapped, e.g. to %#lx "
			  "(a peer's region of %lu bytes, key %#lx)",
			  count, count == 1 ? " is" : "s are", key, raw.len, raw.key);
}
