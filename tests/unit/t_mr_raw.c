/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_mr_raw_attr, fi_mr_map_raw, fi_mr_unmap_key: what regions tell, what is taken. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include "mr/map.h"
#include "mr/mr_calls.h"
#include "mr/region.h"
#include "mr_fixture.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define PLAIN FI_MR_ALLOCATED
#define BIG 600

static struct unit_capture cap;
static uint8_t buf[BIG];
static size_t size;
static uint64_t base;

static void open_plain(void)
{
	env_open(PLAIN);
}

static int raw_attr(struct fid_mr *mr, size_t room)
{
	memset(buf, 0xee, sizeof(buf));
	size = room;
	base = 42;
	return fi_mr_raw_attr(mr, &base, buf, &size, 0);
}

/* The region's raw key, as a peer reads it. */
static struct mrf_rawkey must_tell(struct fid_mr *mr)
{
	struct mrf_rawkey raw;
	const char *why;

	ck_assert_int_eq(raw_attr(mr, MRF_RAWKEY_MAX), 0);
	ck_assert_int_eq(mrf_rawkey_decode(buf, size, &raw, &why), 0);
	ck_assert_uint_eq(size, mrf_rawkey_size(raw.nseg));
	ck_assert_uint_eq(raw.base, base);
	return raw;
}

static int map_raw(const void *key, size_t len, uint64_t addr, uint64_t *mapped)
{
	struct fi_mr_map_raw arg = {
		.base_addr = addr, .raw_key = (uint8_t *)key, .key_size = len, .key = mapped
	};
	int ret;

	library_enter();
	ret = mrf_mr_map_raw(&env.space, &arg);
	library_leave();
	return ret;
}

static uint32_t mapped(void)
{
	struct mrf_rawkey raw;
	uint64_t key;

	return mrf_map_count(env.space.map, &key, &raw);
}

/* One line, with this code. */
#define refuses(err, code, call)                                           \
	do {                                                               \
		const char *text_;                                         \
		int ret_;                                                  \
                                                                           \
		unit_capture(&cap);                                        \
		ret_ = (call);                                             \
		text_ = unit_captured(&cap);                               \
		ck_assert_int_eq(ret_, err);                               \
		ck_assert_msg(strstr(text_, code), "%s: %s", code, text_); \
		ck_assert_uint_eq(unit_lines(text_), 1);                   \
	} while (0)

/* --- fi_mr_raw_attr --------------------------------------------------------------- */

START_TEST(plain_region_tells_all_that_an_access_needs)
{
	struct fid_mr *mr = env_must_reg(mem + 100, 5000, RW, 0x77);
	struct mrf_rawkey raw = must_tell(mr);

	ck_assert_uint_ne(env.space.id, 0);
	ck_assert_uint_eq(raw.space_id, env.space.id);
	ck_assert_uint_eq(raw.key, 0x77);
	ck_assert_uint_ne(raw.serial, 0);
	ck_assert_uint_eq(raw.mr_mode, PLAIN);
	ck_assert_uint_eq(raw.access, RW);
	ck_assert_uint_eq(base, 0);
	ck_assert_uint_eq(raw.len, 5000);
	ck_assert(raw.complete);
	ck_assert_uint_eq(raw.nseg, 1);
	ck_assert_uint_eq(raw.seg[0].pos, 0);
	ck_assert_uint_eq(raw.seg[0].len, 5000);
	ck_assert_uint_eq(raw.seg[0].rkey, fake_verbs.last.mr.rkey);
	ck_assert_uint_eq(raw.seg[0].iova_off, 100);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(base_address_is_that_of_the_first_segment_with_virt_addr)
{
	struct mrf_rawkey raw;
	struct iovec iov[2];
	struct fid_mr *mr;

	env_open(PLAIN | FI_MR_VIRT_ADDR);
	iov[0] = (struct iovec){ mem + PAGE, 300 };
	iov[1] = (struct iovec){ mem + 7, 200 };
	mr = env_must_regv(iov, 2, FI_REMOTE_READ, 1);
	raw = must_tell(mr);
	ck_assert_uint_eq(base, (uintptr_t)mem + PAGE);
	ck_assert_uint_eq(raw.nseg, 2);
	ck_assert_uint_eq(raw.seg[0].pos, base);
	ck_assert_uint_eq(raw.seg[1].pos, (uintptr_t)mem + 7);
	ck_assert_uint_eq(raw.seg[1].iova_off, 0);
	ck_assert_uint_eq(raw.access, FI_REMOTE_READ);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(sixteen_segments_are_packed_one_after_the_other)
{
	struct iovec iov[MRF_MR_IOV_LIMIT];
	struct mrf_rawkey raw;
	struct fid_mr *mr;
	uint64_t pos = 0;
	unsigned i;

	for (i = 0; i < MRF_MR_IOV_LIMIT; i++)
		iov[i] = (struct iovec){ mem + 2 * i * PAGE + i, 10 + i };
	mr = env_must_regv(iov, MRF_MR_IOV_LIMIT, RW, 1);
	raw = must_tell(mr);
	ck_assert_uint_eq(size, MRF_RAWKEY_MAX);
	ck_assert_uint_eq(raw.nseg, MRF_MR_IOV_LIMIT);
	for (i = 0; i < MRF_MR_IOV_LIMIT; i++) {
		ck_assert_uint_eq(raw.seg[i].pos, pos);
		ck_assert_uint_eq(raw.seg[i].iova_off, i);
		pos += 10 + i;
	}
	ck_assert_uint_eq(raw.len, pos);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(every_mode_has_raw_keys)
{
	static const uint64_t bit[] = { FI_MR_LOCAL,	 FI_MR_RAW,	 FI_MR_VIRT_ADDR,
					FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_MMU_NOTIFY };
	bool plain, virt;
	struct mrf_rawkey raw;
	struct fid_mr *mr;
	uint64_t mode = 0;
	unsigned i;

	for (i = 0; i < 6; i++)
		mode |= _i >> i & 1 ? bit[i] : 0;
	plain = (mode & (FI_MR_ALLOCATED | FI_MR_MMU_NOTIFY)) == FI_MR_ALLOCATED;
	virt = mode & FI_MR_VIRT_ADDR;
	env_open(mode);
	mr = env_must_reg(mem, 100, RW, 0x5);
	raw = must_tell(mr);
	ck_assert_uint_eq(base, virt ? (uintptr_t)mem : 0);
	ck_assert_int_eq(raw.complete, plain);
	ck_assert_uint_eq(raw.nseg, plain);
	ck_assert_uint_eq(raw.mr_mode, mode);
	ck_assert_uint_eq(raw.len, 100);
	if (mode & FI_MR_RAW)
		ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	else
		ck_assert_uint_eq(raw.key, fi_mr_key(mr));
	ck_assert_uint_ne(raw.key, FI_KEY_NOTAVAIL);
	env_must_close(mr);
	env_close();
}
END_TEST

/* What is asked for again is remembered: into whatever room, and wherever it is. */
START_TEST(region_tells_the_same_each_time)
{
	uint8_t first[BIG], cleared[MRF_RAWKEY_MAX - MRF_RAWKEY_ONE_LEN] = { 0 };
	uint64_t first_base;
	struct fid_mr *mr;
	size_t room;

	env_open(_i & 1 ? PLAIN | FI_MR_VIRT_ADDR : PLAIN);
	mr = env_must_reg(mem + 100, 5000, _i & 2 ? RW : FI_RECV, 0x77);
	ck_assert_int_eq(raw_attr(mr, MRF_RAWKEY_ONE_LEN), 0);
	first_base = base;
	memcpy(first, buf, sizeof(first));
	for (room = MRF_RAWKEY_ONE_LEN; room <= MRF_RAWKEY_MAX; room += 32) {
		ck_assert_int_eq(raw_attr(mr, room), 0);
		ck_assert_uint_eq(size, MRF_RAWKEY_ONE_LEN);
		ck_assert_uint_eq(base, first_base);
		ck_assert_mem_eq(buf, first, MRF_RAWKEY_ONE_LEN);
		ck_assert_mem_eq(buf + MRF_RAWKEY_ONE_LEN, cleared, room - MRF_RAWKEY_ONE_LEN);
		ck_assert_uint_eq(buf[room], 0xee);
	}
	ck_assert_int_eq(fi_mr_raw_attr(mr, NULL, buf + 1, &size, 0), 0);
	ck_assert_mem_eq(buf + 1, first, MRF_RAWKEY_ONE_LEN);
	env_must_close(mr);
	env_close();
}
END_TEST

/* Its body may be that of the region which was asked before. */
START_TEST(what_was_told_of_a_closed_region_is_not_told_of_the_next)
{
	struct fid_mr *mr = env_must_reg(mem, 100, RW, 1), *next;
	struct mrf_rawkey raw;
	const char *why;

	must_tell(mr);
	env_must_close(mr);
	refuses(-FI_EINVAL, "MRF-E3101", raw_attr(mr, MRF_RAWKEY_ONE_LEN));
	next = env_must_reg(mem + 4096, 200, FI_REMOTE_READ, 2);
	ck_assert_ptr_eq(next, mr);
	ck_assert_int_eq(raw_attr(next, MRF_RAWKEY_ONE_LEN), 0);
	ck_assert_int_eq(mrf_rawkey_decode(buf, size, &raw, &why), 0);
	ck_assert_uint_eq(raw.key, 2);
	ck_assert_uint_eq(raw.len, 200);
	raw = must_tell(next);
	ck_assert_uint_eq(raw.key, 2);
	ck_assert_uint_eq(raw.len, 200);
	ck_assert_uint_eq(raw.access, FI_REMOTE_READ);
	ck_assert_uint_eq(raw.seg[0].rkey, fake_verbs.last.mr.rkey);
	env_must_close(next);
	env_close();
}
END_TEST

START_TEST(size_is_told_without_a_complaint)
{
	struct fid_mr *mr = env_must_reg(mem, 100, RW, 1);
	size_t need = mrf_rawkey_size(1), room;
	uint8_t before[BIG];

	unit_capture(&cap);
	size = 0;
	ck_assert_int_eq(fi_mr_raw_attr(mr, NULL, NULL, &size, 0), -FI_ETOOSMALL);
	ck_assert_uint_eq(size, need);
	size = BIG;
	ck_assert_int_eq(fi_mr_raw_attr(mr, &base, NULL, &size, 0), -FI_ETOOSMALL);
	ck_assert_uint_eq(size, need);
	memset(before, 0xee, sizeof(before));
	for (room = 0; room < need; room++) {
		ck_assert_int_eq(raw_attr(mr, room), -FI_ETOOSMALL);
		ck_assert_uint_eq(size, need);
		ck_assert_uint_eq(base, 42);
		ck_assert_mem_eq(buf, before, sizeof(buf));
	}
	ck_assert_str_eq(unit_captured(&cap), "");
	ck_assert_int_eq(raw_attr(mr, need), 0);
	ck_assert_uint_eq(size, need);
	ck_assert_uint_eq(buf[need], 0xee);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(room_beyond_the_key_is_cleared_so_that_it_may_travel_along)
{
	struct fid_mr *mr = env_must_reg(mem, 100, RW, 1);
	uint64_t key;
	size_t i;

	ck_assert_int_eq(raw_attr(mr, BIG), 0);
	for (i = size; i < MRF_RAWKEY_MAX; i++)
		ck_assert_uint_eq(buf[i], 0);
	ck_assert_uint_eq(buf[MRF_RAWKEY_MAX], 0xee);
	/* As an application does that sends mr_key_size bytes. */
	ck_assert_int_eq(map_raw(buf, MRF_RAWKEY_MAX, 0, &key), 0);
	ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &key), 0);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(raw_attr_refuses_what_makes_no_sense)
{
	struct fid_mr *mr = env_must_reg(mem, 100, RW, 1);

	size = BIG;
	refuses(-FI_EINVAL, "MRF-E3100", fi_mr_raw_attr(mr, &base, buf, NULL, 0));
	refuses(-FI_EINVAL, "MRF-E3100", fi_control(&mr->fid, FI_GET_RAW_MR, NULL));
	refuses(-FI_EBADFLAGS, "MRF-E3102", fi_mr_raw_attr(mr, &base, buf, &size, 1));
	ck_assert_uint_eq(size, BIG);
	ck_assert_int_eq(fi_mr_raw_attr(mr, NULL, buf, &size, 0), 0);
	env_must_close(mr);
	refuses(-FI_EINVAL, "MRF-E3101", raw_attr(mr, BIG));
	ck_assert_uint_eq(size, BIG);
	env_close();
}
END_TEST

START_TEST(region_that_is_not_enabled_has_no_raw_key)
{
	struct fid_mr *mr;

	env_open(PLAIN | FI_MR_ENDPOINT | FI_MR_RAW);
	mr = env_must_reg(mem, 100, RW, 1);
	refuses(-FI_EOPBADSTATE, "MRF-E3103", raw_attr(mr, BIG));
	ck_assert_uint_eq(size, BIG);
	ck_assert_uint_eq(base, 42);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(region_that_is_bound_to_endpoints_has_to_be_asked_about)
{
	struct mrf_rawkey raw;
	struct fid_mr *mr;

	env_open(PLAIN | FI_MR_ENDPOINT);
	mr = env_must_reg(mem, 100, RW, 1);
	mrf_container_of(mr, struct mrf_mr, fid)->state = MRF_STATE_ENABLED;
	raw = must_tell(mr);
	ck_assert(!raw.complete);
	ck_assert_uint_eq(raw.nseg, 0);
	mrf_container_of(mr, struct mrf_mr, fid)->state = MRF_STATE_DISABLED;
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(region_without_a_remote_right_tells_that_it_grants_none)
{
	struct fid_mr *mr = env_must_reg(mem, 100, FI_SEND | FI_RECV, 1);
	struct mrf_rawkey raw;

	/* Some kernels give one to every region. */
	mrf_container_of(mr, struct mrf_mr, fid)->seg.rkey = 99;
	raw = must_tell(mr);
	ck_assert_uint_eq(raw.access, 0);
	ck_assert(raw.complete);
	ck_assert_uint_eq(raw.seg[0].rkey, 0);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(next_region_with_the_key_has_another_raw_key)
{
	struct fid_mr *mr = env_must_reg(mem, 100, RW, 1);
	struct mrf_rawkey first = must_tell(mr), second;

	env_must_close(mr);
	mr = env_must_reg(mem, 100, RW, 1);
	second = must_tell(mr);
	ck_assert_uint_eq(first.key, second.key);
	ck_assert_uint_ne(first.serial, second.serial);
	env_must_close(mr);
	env_close();
}
END_TEST

/* --- fi_mr_map_raw, fi_mr_unmap_key ----------------------------------------------- */

static struct fid_mr *own;

static void open_with_key(void)
{
	env_open(PLAIN | FI_MR_VIRT_ADDR);
	own = env_must_reg(mem, 100, RW, 7);
	ck_assert_int_eq(raw_attr(own, BIG), 0);
}

static void close_with_key(void)
{
	env_must_close(own);
	env_close();
}

START_TEST(mapped_key_stands_for_the_raw_key)
{
	struct mrf_rawkey out;
	uint64_t key = 0;

	ck_assert_int_eq(map_raw(buf, size, base, &key), 0);
	ck_assert(mrf_map_live(env.space.map, key));
	ck_assert(mrf_map_get(env.space.map, key, &out));
	ck_assert_uint_eq(out.key, 7);
	ck_assert_uint_eq(out.space_id, env.space.id);
	ck_assert_uint_eq(out.seg[0].rkey, fake_verbs.last.mr.rkey);
	ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &key), 0);
	ck_assert(!mrf_map_live(env.space.map, key));
	close_with_key();
}
END_TEST

START_TEST(each_mapping_is_a_key_of_its_own)
{
	uint64_t one = 0, two = 0;

	ck_assert_int_eq(map_raw(buf, size, base, &one), 0);
	ck_assert_int_eq(map_raw(buf, size, base, &two), 0);
	ck_assert_uint_ne(one, two);
	ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &one), 0);
	ck_assert(mrf_map_live(env.space.map, two));
	ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &two), 0);
	close_with_key();
}
END_TEST

/* Without one, mapping goes the long way. */
static void leave_a_spare_slot(void)
{
	uint64_t key;

	ck_assert_int_eq(map_raw(buf, size, base, &key), 0);
	ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &key), 0);
}

START_TEST(map_raw_refuses_what_makes_no_sense)
{
	struct fi_mr_map_raw arg = { .base_addr = base, .raw_key = buf, .key_size = size };
	uint64_t key = 42;

	if (_i)
		leave_a_spare_slot();
	refuses(-FI_EINVAL, "MRF-E3110", mrf_mr_map_raw(&env.space, NULL));
	refuses(-FI_EINVAL, "MRF-E3110", mrf_mr_map_raw(&env.space, &arg));
	refuses(-FI_EINVAL, "MRF-E3110", map_raw(NULL, size, base, &key));
	arg.key = &key;
	arg.flags = 1;
	refuses(-FI_EBADFLAGS, "MRF-E3111", mrf_mr_map_raw(&env.space, &arg));
	refuses(-FI_EINVAL, "MRF-E3114", map_raw(buf, size, base + 1, &key));
	refuses(-FI_EINVAL, "MRF-E3114", map_raw(buf, size, 0, &key));
	ck_assert_uint_eq(key, 42);
	ck_assert_uint_eq(mapped(), 0);
	close_with_key();
}
END_TEST

/* By either way. */
START_TEST(damaged_raw_key_is_refused)
{
	uint64_t key = 42;
	size_t i;

	if (_i)
		leave_a_spare_slot();
	for (i = 0; i < size; i++) {
		buf[i] ^= 0x10;
		refuses(-FI_EINVAL, "MRF-E3112", map_raw(buf, size, base, &key));
		buf[i] ^= 0x10;
		refuses(-FI_EINVAL, "MRF-E3112", map_raw(buf, i, base, &key));
	}
	buf[size] = 1;
	refuses(-FI_EINVAL, "MRF-E3112", map_raw(buf, size + 1, base, &key));
	ck_assert_uint_eq(key, 42);
	ck_assert_uint_eq(mapped(), 0);
	close_with_key();
}
END_TEST

START_TEST(raw_key_of_another_version_is_told_apart)
{
	/* Nothing but what all versions have: magic, version, length, checksum. */
	uint8_t other[16] = { 'm', 'r', 'f', 'k', MRF_RAWKEY_VERSION + 1, 0, 16 };
	uint64_t key = 42;

	/* There is no other word to be summed up. */
	memcpy(other + 8, other, 8);
	refuses(-FI_ENOSYS, "MRF-E3113", map_raw(other, sizeof(other), 0, &key));
	ck_assert_uint_eq(key, 42);
	close_with_key();
}
END_TEST

START_TEST(map_raw_without_memory_leaves_nothing)
{
	uint64_t key = 42;

	/* A key of one segment needs a slot, and nothing else. */
	fail_alloc(1);
	refuses(-FI_ENOMEM, "MRF-E3115", map_raw(buf, size, base, &key));
	fail_alloc(0);
	ck_assert_uint_eq(key, 42);
	ck_assert_uint_eq(mapped(), 0);
	close_with_key();
}
END_TEST

START_TEST(map_raw_says_when_no_key_is_left)
{
	uint64_t key = 42;

	env.space.map->used = MRF_MAP_SLOTS;
	refuses(-FI_ENOSPC, "MRF-E3116", map_raw(buf, size, base, &key));
	refuses(-FI_ENOSPC, "at most 4294705152 in its life", map_raw(buf, size, base, &key));
	env.space.map->used = 0;
	ck_assert_uint_eq(key, 42);
	close_with_key();
}
END_TEST

START_TEST(unmapping_twice_is_found_out)
{
	uint64_t key;

	ck_assert_int_eq(map_raw(buf, size, base, &key), 0);
	ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &key), 0);
	refuses(-FI_ENOKEY, "MRF-E3122", mrf_mr_unmap_key(&env.space, &key));
	close_with_key();
}
END_TEST

START_TEST(unmapping_what_was_not_mapped_here_is_refused)
{
	struct mrf_map *other = mrf_map_new(~env.space.id);
	uint64_t foreign, real = 7;

	ck_assert_int_eq(mrf_map_add(other, buf, sizeof(buf), &foreign), 0);
	refuses(-FI_ENOKEY, "MRF-E3121", mrf_mr_unmap_key(&env.space, &foreign));
	refuses(-FI_ENOKEY, "MRF-E3121", mrf_mr_unmap_key(&env.space, &real));
	refuses(-FI_EINVAL, "MRF-E3120", mrf_mr_unmap_key(&env.space, NULL));
	mrf_map_free(other);
	close_with_key();
}
END_TEST

START_TEST(space_says_how_many_keys_are_mapped_and_names_one)
{
	uint64_t key[3];
	char name[32];
	int i;

	ck_assert_int_eq(mrf_mr_space_mapped(&env.space), 0);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(map_raw(buf, size, base, &key[i]), 0);
	refuses(-FI_EBUSY, "MRF-E3123", mrf_mr_space_mapped(&env.space));
	snprintf(name, sizeof(name), "%#llx", (unsigned long long)key[0]);
	ck_assert_ptr_nonnull(strstr(cap.text, name));
	ck_assert_ptr_nonnull(strstr(cap.text, "3 raw keys are still mapped"));
	ck_assert_ptr_nonnull(strstr(cap.text, "100 bytes, key 0x7"));
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &key[i]), 0);
	refuses(-FI_EBUSY, "MRF-E3123", mrf_mr_space_mapped(&env.space));
	ck_assert_ptr_nonnull(strstr(cap.text, "1 raw key is still mapped"));
	ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &key[2]), 0);
	ck_assert_int_eq(mrf_mr_space_mapped(&env.space), 0);
	close_with_key();
}
END_TEST

/* More often than a slot has generations. */
START_TEST(slot_that_was_used_before_stands_for_what_is_mapped_now)
{
	struct fid_mr *mr[] = { own, env_must_reg(mem + 300, 55, FI_REMOTE_READ, 8) };
	uint64_t key = 0, last = 0;
	struct mrf_rawkey out;
	unsigned i;

	for (i = 0; i < 2 * (MRF_MAP_GEN_MAX + 1) + 3; i++) {
		struct mrf_rawkey want = must_tell(mr[i % 2]);

		ck_assert_int_eq(map_raw(buf, size, base, &key), 0);
		ck_assert_uint_ne(key, last);
		ck_assert(mrf_map_get(env.space.map, key, &out));
		ck_assert_uint_eq(out.space_id, want.space_id);
		ck_assert_uint_eq(out.key, want.key);
		ck_assert_uint_eq(out.serial, want.serial);
		ck_assert_uint_eq(out.mr_mode, want.mr_mode);
		ck_assert_uint_eq(out.access, want.access);
		ck_assert_uint_eq(out.base, want.base);
		ck_assert_uint_eq(out.len, want.len);
		ck_assert_mem_eq(&out.seg[0], &want.seg[0], sizeof(out.seg[0]));
		ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &key), 0);
		ck_assert(mrf_map_was(env.space.map, key));
		ck_assert_uint_eq(mapped(), 0);
		last = key;
	}
	/* Two slots have been used up. */
	ck_assert_uint_eq((uint32_t)key & MRF_MAP_INDEX_MASK, 2);
	env_must_close(mr[1]);
	close_with_key();
}
END_TEST

#define THREADS 4
#define TURNS 5000

static void *get_map_unmap(void *arg)
{
	uint8_t raw[MRF_RAWKEY_ONE_LEN];
	uint64_t at, key;
	unsigned i;

	(void)arg;
	for (i = 0; i < TURNS; i++) {
		struct mrf_rawkey out;
		size_t room = sizeof(raw);
		struct fi_mr_map_raw map = { .raw_key = raw, .key = &key };

		if (fi_mr_raw_attr(own, &at, raw, &room, 0))
			return (void *)"raw_attr";
		map.base_addr = at;
		map.key_size = room;
		if (mrf_mr_map_raw(&env.space, &map))
			return (void *)"map_raw";
		if (!mrf_map_get(env.space.map, key, &out) || out.key != 7)
			return (void *)"get";
		if (mrf_mr_unmap_key(&env.space, &key))
			return (void *)"unmap_key";
	}
	return NULL;
}

START_TEST(threads_get_map_and_unmap_side_by_side)
{
	pthread_t thread[THREADS];
	void *failed;
	int i;

	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, get_map_unmap, NULL), 0);
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &failed);
		ck_assert_msg(!failed, "%s", (const char *)failed);
	}
	ck_assert_uint_eq(mapped(), 0);
	close_with_key();
}
END_TEST

/* --- the application's memory ----------------------------------------------------- */

/*
 * It may have to be read in from a disk, or be watched by another thread, which may call the
 * library itself: a call that waits for it keeps nobody waiting for a lock. Here a call meets
 * a page that is not there, is left at that place, and finds the page when it comes again.
 */
static struct {
	uint8_t *page;
	sigjmp_buf back;
	bool held;
} away;

static bool is_held(const struct mrf_lock *lock)
{
	return atomic_load(&lock->state);
}

static void leave(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if ((uint8_t *)info->si_addr - away.page >= PAGE) {
		signal(sig, SIG_DFL);
		return;
	}
	away.held = is_held(&env.space.lock) || is_held(&env.space.map->lock);
	siglongjmp(away.back, 1);
}

static void begin_away(void)
{
	struct sigaction action = { .sa_sigaction = leave, .sa_flags = SA_SIGINFO };
	const int prot = PROT_READ | PROT_WRITE;

	/* The page before it is always there. */
	away.page = mmap(NULL, 2ul * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(away.page, MAP_FAILED);
	away.page += PAGE;
	ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
}

static void end_away(void)
{
	signal(SIGSEGV, SIG_DFL);
	munmap(away.page - PAGE, 2ul * PAGE);
}

static void set_away(bool on)
{
	ck_assert_int_eq(mprotect(away.page, PAGE, on ? PROT_NONE : PROT_READ | PROT_WRITE), 0);
}

/* The call meets the page with no lock held. */
#define meets_page(call)                                                       \
	do {                                                                   \
		set_away(true);                                                \
		if (!sigsetjmp(away.back, 1))                                  \
			ck_abort_msg("not met: %s is %d", #call, (int)(call)); \
		set_away(false);                                               \
		ck_assert_msg(!away.held, "a lock is held: %s", #call);        \
	} while (0)

/* Twice: the key is made, and is there already. */
START_TEST(raw_attr_holds_no_lock_while_it_touches_what_it_fills_in)
{
	uint64_t *there;
	size_t room = MRF_RAWKEY_ONE_LEN;

	begin_away();
	there = (void *)away.page;
	for (int i = 0; i < 2; i++) {
		meets_page(fi_mr_raw_attr(own, &base, away.page, &room, 0));
		meets_page(fi_mr_raw_attr(own, there, buf, &room, 0));
	}
	ck_assert_int_eq(fi_mr_raw_attr(own, &base, away.page, &room, 0), 0);
	ck_assert_int_eq(memcmp(away.page, buf, MRF_RAWKEY_ONE_LEN), 0);
	end_away();
	close_with_key();
}
END_TEST

/* By either way. */
START_TEST(map_raw_and_unmap_key_hold_no_lock_while_they_touch_keys)
{
	struct mrf_map *map = env.space.map;
	struct mrf_rawkey raw;
	uint64_t *there, key;

	begin_away();
	there = (void *)away.page;
	if (_i)
		leave_a_spare_slot();
	meets_page(map_raw(buf, size, base, there));
	library_leave();
	/* It was mapped, and the caller does not know to what. */
	ck_assert_uint_eq(mrf_map_count(map, there, &raw), 1);
	meets_page(mrf_mr_unmap_key(&env.space, there));
	ck_assert_int_eq(mrf_mr_unmap_key(&env.space, there), 0);
	/* Its length is known before the rest is there. */
	memcpy(away.page - 16, buf, MRF_RAWKEY_ONE_LEN);
	meets_page(mrf_map_add(map, away.page - 16, size, &key));
	ck_assert_int_eq(mrf_map_add(map, away.page - 16, size, &key), 0);
	ck_assert_int_eq(mrf_mr_unmap_key(&env.space, &key), 0);
	end_away();
	close_with_key();
}
END_TEST

static TCase *tcase_attr(void)
{
	TCase *tc = tcase_create("attr");

	tcase_add_checked_fixture(tc, open_plain, NULL);
	tcase_add_test(tc, plain_region_tells_all_that_an_access_needs);
	tcase_add_test(tc, sixteen_segments_are_packed_one_after_the_other);
	tcase_add_test(tc, what_was_told_of_a_closed_region_is_not_told_of_the_next);
	tcase_add_test(tc, size_is_told_without_a_complaint);
	tcase_add_test(tc, room_beyond_the_key_is_cleared_so_that_it_may_travel_along);
	tcase_add_test(tc, raw_attr_refuses_what_makes_no_sense);
	tcase_add_test(tc, region_without_a_remote_right_tells_that_it_grants_none);
	tcase_add_test(tc, next_region_with_the_key_has_another_raw_key);
	return tc;
}

static TCase *tcase_modes(void)
{
	TCase *tc = tcase_create("modes");

	tcase_add_test(tc, base_address_is_that_of_the_first_segment_with_virt_addr);
	tcase_add_loop_test(tc, every_mode_has_raw_keys, 0, 64);
	tcase_add_loop_test(tc, region_tells_the_same_each_time, 0, 4);
	tcase_add_test(tc, region_that_is_not_enabled_has_no_raw_key);
	tcase_add_test(tc, region_that_is_bound_to_endpoints_has_to_be_asked_about);
	return tc;
}

static TCase *tcase_map(void)
{
	TCase *tc = tcase_create("map");

	tcase_add_checked_fixture(tc, open_with_key, NULL);
	tcase_add_test(tc, mapped_key_stands_for_the_raw_key);
	tcase_add_test(tc, each_mapping_is_a_key_of_its_own);
	tcase_add_loop_test(tc, map_raw_refuses_what_makes_no_sense, 0, 2);
	tcase_add_loop_test(tc, damaged_raw_key_is_refused, 0, 2);
	tcase_add_test(tc, raw_key_of_another_version_is_told_apart);
	tcase_add_test(tc, map_raw_without_memory_leaves_nothing);
	tcase_add_test(tc, map_raw_says_when_no_key_is_left);
	tcase_add_test(tc, unmapping_twice_is_found_out);
	tcase_add_test(tc, unmapping_what_was_not_mapped_here_is_refused);
	tcase_add_test(tc, slot_that_was_used_before_stands_for_what_is_mapped_now);
	tcase_add_test(tc, threads_get_map_and_unmap_side_by_side);
	tcase_add_test(tc, raw_attr_holds_no_lock_while_it_touches_what_it_fills_in);
	tcase_add_loop_test(tc, map_raw_and_unmap_key_hold_no_lock_while_they_touch_keys, 0, 2);
	tcase_add_test(tc, space_says_how_many_keys_are_mapped_and_names_one);
	return tc;
}

UNIT_MAIN("mr_raw", tcase_attr, tcase_modes, tcase_map)
