/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions that are pinned on demand: what is pinned when a peer asks, and until when. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "base/log.h"
#include "base/maps.h"
#include "monitor/change.h"
#include "mr/class.h"
#include "mr/demand/gone.h"
#include "mr/desc.h"
#include "back_fixture.h"

static struct unit_capture cap;

static struct fid_mr *must_regv(const struct iovec *iov, size_t count, uint64_t access)
{
	return env_must_regv(iov, count, access, KEY);
}

/* --- registering ------------------------------------------------------------------ */

START_TEST(registering_pins_nothing_and_needs_no_memory)
{
	static const uint64_t modes[] = { 0, FI_MR_VIRT_ADDR, FI_MR_MMU_NOTIFY };
	struct iovec iov[16];
	struct mrf_desc desc;
	struct fid_mr *mr;
	unsigned i, m;

	for (m = 0; m < 3; m++) {
		back_open(modes[m]);
		mr = env_must_reg(NULL, UINT64_MAX, RW, KEY);
		ck_assert_uint_eq(fi_mr_key(mr), KEY);
		ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &desc));
		ck_assert_uint_eq(desc.seg.lkey, 0);
		ck_assert_uint_eq(desc.seg.len, UINT64_MAX);
		env_must_close(mr);
		for (i = 0; i < 16; i++)
			iov[i] = (struct iovec){ (void *)(16 + 100ul * i), 10 };
		env_must_close(must_regv(iov, 16, RW));
		ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 0);
		back_close();
	}
}
END_TEST

START_TEST(registering_everything_brings_no_page_in)
{
	unsigned char there[64];
	unsigned i;

	back_open(0);
	env_must_close(env_must_reg(NULL, UINT64_MAX, RW, KEY));
	ck_assert_int_eq(mincore(mem, 64 * PAGE, there), 0);
	for (i = 0; i < 64; i++)
		ck_assert_uint_eq(there[i] & 1, 0);
	back_close();
}
END_TEST

START_TEST(a_descriptor_that_is_not_pinned_goes_the_long_way)
{
	struct fid_mr *mr;
	uint64_t iova;
	uint32_t lkey;

	back_open(0);
	mr = env_must_reg(mem, PAGE, FI_READ | FI_WRITE, KEY);
	ck_assert(!mrf_desc_local(&env.space, fi_mr_desc(mr), FI_READ, (uintptr_t)mem, 8, &iova,
				  &lkey));
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(provider_keys_of_regions_pinned_on_demand_carry_no_rkey)
{
	struct mrf_key_direct direct;
	struct fid_mr *mr;

	back_open(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_uint_ne(fi_mr_key(mr), 0);
	ck_assert_uint_eq(fi_mr_key(mr) >> 62, 2);
	ck_assert(!mrf_key_unpack(env.space.mode, fi_mr_key(mr), &direct));
	must_reach(fi_mr_key(mr), (uintptr_t)mem, PAGE);
	env_must_close(mr);
	back_close();
}
END_TEST

static bool all_said(uint64_t access, void *at, size_t len, const char *words)
{
	static struct unit_capture cap;
	struct fid_mr *mr;

	unit_capture(&cap);
	mr = env_must_reg(at, len, access, KEY);
	env_must_close(mr);
	unit_captured(&cap);
	return words ? strstr(cap.text, words) && unit_lines(cap.text) == 1 : !*cap.text;
}

/* It is in order, and yet a newcomer's mistake. */
START_TEST(registering_what_no_peer_can_reach_is_said)
{
	back_open(0);
	ck_assert(all_said(FI_READ | FI_WRITE, NULL, PAGE, NULL));
	ck_assert(all_said(RW, NULL, UINT64_MAX, NULL));
	ck_assert(all_said(RW, NULL, PAGE, "MRF-W3010"));
	ck_assert(all_said(RW, NULL, PAGE, NULL));
	back_close();
	back_open(FI_MR_MMU_NOTIFY);
	ck_assert(all_said(FI_REMOTE_READ, NULL, PAGE, "MRF-W3010"));
	back_close();
}
END_TEST

/* At level info, because looking it up takes long. */
START_TEST(registering_read_only_memory_for_writing_is_said)
{
	back_open(0);
	ck_assert_int_eq(mprotect(mem, PAGE, PROT_READ), 0);
	ck_assert(all_said(RW, mem, PAGE, NULL));
	back_close();
	setenv("FI_LOG_LEVEL", "info", 1);
	mrf_log_reload();
	back_open(0);
	ck_assert_int_eq(mprotect(mem, PAGE, PROT_READ), 0);
	ck_assert(all_said(FI_REMOTE_READ, mem, PAGE, NULL));
	ck_assert(all_said(RW, mem, PAGE, "mapped without PROT_WRITE"));
	ck_assert(all_said(RW, mem + PAGE, PAGE, NULL));
	back_close();
	unsetenv("FI_LOG_LEVEL");
	mrf_log_reload();
}
END_TEST

/* --- reaching --------------------------------------------------------------------- */

START_TEST(an_access_pins_with_the_regions_rights_and_the_next_one_nothing)
{
	struct fid_mr *mr;

	back_open(0);
	mr = env_must_reg(mem, 64 * PAGE, FI_REMOTE_READ, KEY);
	must_reach(KEY, 5, 10);
	ck_assert_int_eq(view.once, !keeps());
	ck_assert_uint_eq(view.access, FI_REMOTE_READ);
	ck_assert_uint_eq(view.len, 64 * PAGE);
	ck_assert_uint_eq(view.base, (uintptr_t)mem);
	ck_assert_uint_ne(view.serial, 0);
	ck_assert_uint_eq(fake_verbs.last.access, IBV_ACCESS_REMOTE_READ);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	must_reach(KEY, 100, 10);
	ck_assert_uint_eq(fake_verbs.live_mrs, keeps() ? 1 : 2);
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	back_close();
}
END_TEST

static struct rlimit files;

/* No file can be opened any more. */
static void use_up_files(void)
{
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, files.rlim_max }), 0);
}

static void give_files_back(void)
{
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
}

/*
 * Nor is looked up what is mapped there, which takes long. The space has had no descriptor for it.
 */
START_TEST(what_is_kept_is_answered_without_a_look_at_the_process)
{
	struct fid_mr *mr;
	enum mrf_mr_status kept, other;
	const char *text;

	use_up_files();
	back_open(0);
	give_files_back();
	mr = env_must_reg(mem, 4096 * PAGE, FI_REMOTE_READ, KEY);
	must_reach(KEY, 5, 10);
	unit_capture(&cap);
	use_up_files();
	kept = reach(KEY, 100, 10);
	other = reach(KEY, 4095 * PAGE, 10);
	give_files_back();
	/* Without a monitor it may be leased, which takes no look, either. */
	ck_assert(kept == MRF_MR_OK || (!keeps() && kept == MRF_MR_NO_ROOM));
	ck_assert_int_eq(other, MRF_MR_NO_ROOM);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3066"));
	ck_assert_ptr_nonnull(strstr(text, strerror(EMFILE)));
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_process_without_a_free_descriptor_is_reached_still)
{
	struct fid_mr *mr, *before;
	enum mrf_mr_status there, gone;

	back_open(0);
	before = env_must_reg(mem + 32 * PAGE, PAGE, RW, KEY + 1);
	must_reach(KEY + 1, 0, PAGE);
	mr = env_must_reg(mem, 4096 * PAGE, FI_REMOTE_READ, KEY);
	use_up_files();
	there = reach(KEY, 5 * PAGE, 3 * PAGE);
	ck_assert_uint_ge(reached(5 * PAGE), 3 * PAGE);
	gone = reach(KEY, 4095 * PAGE, 10);
	give_files_back();
	ck_assert_int_eq(there, MRF_MR_OK);
	ck_assert_int_eq(gone, MRF_MR_NOT_MAPPED);
	env_must_close(mr);
	env_must_close(before);
	back_close();
}
END_TEST

START_TEST(a_pin_is_widened_but_never_beyond_the_region)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	mr = env_must_reg(mem + 100, 5 * PAGE, RW, KEY);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	must_reach(KEY, 2 * PAGE, 1);
	ck_assert_uint_eq(view.nseg, 1);
	ck_assert_uint_eq(view.seg[0].addr, 0);
	ck_assert_uint_eq(view.seg[0].len, 5 * PAGE);
	ck_assert_uint_eq(view.seg[0].iova, (uintptr_t)(mem + 100) & (PAGE - 1));
	ck_assert_ptr_eq(fake_verbs.last.mr.addr, mem + 100);
	ck_assert_uint_eq(fake_verbs.last.mr.length, 5 * PAGE);
	env_must_close(mr);
	back_close();
}
END_TEST

/*
 * Four windows of address space, from the beginning of one on; never there as a whole by one use.
 */
static char *big_open(void)
{
	char *big = mmap(NULL, 5 * WINDOW, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(big, MAP_FAILED);
	/* -1: a kernel without huge pages. */
	(void)madvise(big, 5 * WINDOW, MADV_NOHUGEPAGE);
	return (char *)(((uintptr_t)big + WINDOW - 1) & ~(WINDOW - 1ul));
}

static void big_close(char *big)
{
	munmap(big, 4 * WINDOW);
}

START_TEST(a_pin_is_no_wider_than_the_window)
{
	char *big = big_open();
	struct fid_mr *mr;

	memset(big, 1, 4 * WINDOW);
	back_open(FI_MR_VIRT_ADDR);
	mr = env_must_reg(big, 4 * WINDOW, RW, KEY);
	must_reach(KEY, (uintptr_t)big + WINDOW + 7, 8);
	ck_assert_uint_eq(view.seg[0].len, keeps() ? WINDOW : PAGE);
	ck_assert_uint_eq(view.seg[0].addr, (uintptr_t)big + WINDOW);
	must_reach(KEY, (uintptr_t)big + 2 * WINDOW - 4, 8);
	ck_assert_uint_eq(view.nseg, keeps() ? 2 : 1);
	env_must_close(mr);
	back_close();
	big_close(big);
}
END_TEST

/* What is asked for, in pages of a window, and what else is there: first and last. */
static const struct {
	unsigned first, last, there_first, there_last, pinned_first, pinned_last;
} sparse[] = {
	{ 100, 100, 100, 100, 96, 111 },  /* nothing else: the block */
	{ 100, 130, 200, 255, 96, 143 },  /* a gap behind it */
	{ 100, 100, 80, 120, 80, 127 },	  /* in the middle: as much again as before the block */
	{ 112, 112, 96, 111, 96, 143 },	  /* goes on from there */
	{ 256, 256, 0, 255, 256, 511 },	  /* and in the next window */
	{ 100, 100, 0, 255, 0, 255 },	  /* all */
	{ 0, 255, 300, 300, 0, 255 },	  /* asked for is what is pinned, there or not */
	{ 250, 270, 200, 280, 200, 311 }, /* over the edge of the window */
};

START_TEST(what_is_pinned_beside_the_access_is_what_is_there)
{
	char *big = big_open();
	size_t at, there = sparse[_i].there_first * PAGE;
	struct fid_mr *mr;

	memset(big + there, 1, (sparse[_i].there_last + 1) * PAGE - there);
	back_open(_i & 1 ? FI_MR_MMU_NOTIFY : 0);
	mr = env_must_reg(big, 4 * WINDOW, RW, KEY);
	if (env.space.mode & FI_MR_MMU_NOTIFY)
		ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	at = sparse[_i].first * PAGE + 5;
	must_reach(KEY, at, sparse[_i].last * PAGE + 6 - at);
	if (keeps()) {
		ck_assert_uint_eq(view.nseg, 1);
		ck_assert_uint_eq(view.seg[0].addr, sparse[_i].pinned_first * PAGE);
		ck_assert_uint_eq(view.seg[0].len,
				  (sparse[_i].pinned_last + 1) * PAGE - view.seg[0].addr);
	}
	env_must_close(mr);
	back_close();
	big_close(big);
}
END_TEST

START_TEST(memory_used_from_the_beginning_to_the_end_is_soon_pinned_by_windows)
{
	char *big = big_open();
	struct fid_mr *mr;
	unsigned i;

	back_open(0);
	mr = env_must_reg(big, 4 * WINDOW, RW, KEY);
	for (i = 0; i < 4 * WINDOW / PAGE; i++) {
		must_reach(KEY, i * PAGE, PAGE);
		/* As the kernel does that pins it. */
		if (!view.once)
			memset(big + view.seg[0].addr, 1, view.seg[0].len);
	}
	if (keeps())
		ck_assert_uint_eq(fake_verbs.live_mrs, 5 + 3);
	env_must_close(mr);
	back_close();
	big_close(big);
}
END_TEST

/* mremap moves one mapping at a time, and the edge of what is watched parts one. */
START_TEST(a_mapping_can_be_moved_by_system_call_though_little_of_it_is_pinned)
{
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	char *from = big_open(), *to = from + 2 * WINDOW;
	struct fid_mr *mr;

	munmap(from + WINDOW, WINDOW);
	back_open(FI_MR_VIRT_ADDR);
	mr = env_must_reg(from, WINDOW, RW, KEY);
	must_reach(KEY, (uintptr_t)from + 100 * PAGE, 8);
	ck_assert_uint_eq(view.seg[0].len, keeps() ? MRF_PIN_BLOCK : PAGE);
	ck_assert_ptr_eq((void *)syscall(SYS_mremap, from, WINDOW, WINDOW, flags, to), to);
	settle();
	ck_assert_int_eq(reach(KEY, (uintptr_t)from + 100 * PAGE, 8), MRF_MR_NOT_MAPPED);
	env_must_close(mr);
	back_close();
	big_close(from);
}
END_TEST

static void *expected(const struct iovec *iov, unsigned count, uint64_t pos)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		if (pos < iov[i].iov_len)
			return (char *)iov[i].iov_base + pos;
		pos -= iov[i].iov_len;
	}
	return NULL;
}

START_TEST(positions_are_packed_over_the_segments)
{
	struct iovec iov[] = {
		{ mem + 3 * PAGE + 5, 100 }, { NULL, 0 }, { mem, PAGE + 1 }, { mem + 3 * PAGE, 200 }
	};
	uint64_t pos, total = 300 + PAGE + 1;
	struct fid_mr *mr;

	back_open(0);
	iov[0].iov_base = mem + 3 * PAGE + 5;
	iov[2].iov_base = mem;
	iov[3].iov_base = mem + 3 * PAGE;
	mr = must_regv(iov, 4, RW);
	must_reach(KEY, 0, total);
	for (pos = 0; pos < total; pos++)
		ck_assert_ptr_eq(byte_at(pos), expected(iov, 4, pos));
	ck_assert_int_eq(reach(KEY, 1, total), MRF_MR_OUTSIDE);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(with_addresses_each_byte_is_reached_at_its_own)
{
	struct iovec iov[4];
	struct fid_mr *mr;
	unsigned i;

	back_open(FI_MR_VIRT_ADDR);
	/* The second one overlaps the first, the third one is the first again. */
	iov[0] = (struct iovec){ mem + PAGE + 3, 2 * PAGE };
	iov[1] = (struct iovec){ mem + 2 * PAGE, 2 * PAGE };
	iov[2] = iov[0];
	iov[3] = (struct iovec){ mem + 8 * PAGE, 10 };
	mr = must_regv(iov, 4, RW);
	must_reach(KEY, (uintptr_t)mem + PAGE + 3, 3 * PAGE - 3);
	for (i = PAGE + 3; i < 4 * PAGE; i++)
		ck_assert_ptr_eq(byte_at((uintptr_t)mem + i), mem + i);
	ck_assert_ptr_null(byte_at((uintptr_t)mem + PAGE + 2));
	ck_assert_ptr_null(byte_at((uintptr_t)mem + 4 * PAGE));
	must_reach(KEY, (uintptr_t)mem + 8 * PAGE, 10);
	ck_assert_int_eq(reach(KEY, (uintptr_t)mem + PAGE + 2, 1), MRF_MR_OUTSIDE);
	ck_assert_int_eq(reach(KEY, (uintptr_t)mem + 4 * PAGE - 1, 2), MRF_MR_OUTSIDE);
	ck_assert_int_eq(reach(KEY, (uintptr_t)mem + 8 * PAGE, 11), MRF_MR_OUTSIDE);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(what_is_outside_is_said_to_be_and_pins_nothing)
{
	struct fid_mr *mr;

	back_open(0);
	mr = env_must_reg(mem, 1000, RW, KEY);
	ck_assert_int_eq(reach(KEY, 1000, 1), MRF_MR_OUTSIDE);
	ck_assert_uint_eq(view.len, 1000);
	ck_assert_uint_eq(view.base, (uintptr_t)mem);
	ck_assert_int_eq(reach(KEY, 999, 2), MRF_MR_OUTSIDE);
	ck_assert_int_eq(reach(KEY, 1, UINT64_MAX), MRF_MR_OUTSIDE);
	ck_assert_int_eq(reach(KEY, UINT64_MAX, 2), MRF_MR_OUTSIDE);
	ck_assert_int_eq(reach(KEY, 1001, 0), MRF_MR_OUTSIDE);
	ck_assert_int_eq(reach(KEY, 1000, 0), MRF_MR_OK);
	ck_assert_uint_eq(view.nseg, 0);
	ck_assert(!view.complete);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 0);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_region_of_no_bytes_has_an_end_and_nothing_else)
{
	struct fid_mr *mr;

	env_open_api(0, FI_VERSION(1, 12));
	mrf_mr_lease_init(&lease);
	mr = env_must_reg(mem + 5, 0, RW, KEY);
	ck_assert_int_eq(reach(KEY, 0, 0), MRF_MR_OK);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_OUTSIDE);
	ck_assert_int_eq(reach(KEY, 1, 0), MRF_MR_OUTSIDE);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(the_whole_address_space_is_reached_where_there_is_memory)
{
	struct fid_mr *mr;

	back_open(FI_MR_VIRT_ADDR);
	mr = env_must_reg(NULL, UINT64_MAX, RW, KEY);
	must_reach(KEY, (uintptr_t)mem + 5, 2 * PAGE);
	ck_assert_ptr_eq(byte_at((uintptr_t)mem + 5), mem + 5);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_NOT_MAPPED);
	ck_assert_int_eq(reach(KEY, UINT64_MAX - 1, 1), MRF_MR_NOT_MAPPED);
	ck_assert_int_eq(reach(KEY, UINT64_MAX, 0), MRF_MR_OK);
	ck_assert_int_eq(reach(KEY, UINT64_MAX, 1), MRF_MR_OUTSIDE);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(an_access_to_more_than_the_kernel_takes_pins_pieces)
{
	static const uint64_t mode[] = { 0, FI_MR_VIRT_ADDR, FI_MR_MMU_NOTIFY };
	unsigned char *there = env_reserve(GIB + 2 * WINDOW);
	struct iovec all = { there, GIB + 2 * WINDOW };
	struct fid_mr *mr;
	uint64_t pos, at;

	back_open(mode[_i % 3]);
	if (_i >= 3)
		use_no_monitor();
	mr = env_must_reg(there, GIB + 2 * WINDOW, RW, KEY);
	pos = WINDOW + 32 + (mode[_i % 3] == FI_MR_VIRT_ADDR ? (uintptr_t)there : 0);
	if (mode[_i % 3] == FI_MR_MMU_NOTIFY)
		ck_assert_int_eq(fi_mr_refresh(mr, &all, 1, 0), 0);
	for (at = pos; at < pos + GIB; at += reached(at))
		ck_assert_int_eq(reach(KEY, at, pos + GIB - at), MRF_MR_OK);
	ck_assert_ptr_eq(byte_at(pos + GIB - 1), there + WINDOW + 32 + GIB - 1);
	env_must_close(mr);
	back_close();
	munmap(there, GIB + 2 * WINDOW);
}
END_TEST

START_TEST(memory_that_is_not_there_is_not_tried)
{
	unsigned calls;
	struct fid_mr *mr;

	back_open(0);
	munmap(mem + PAGE, PAGE);
	mprotect(mem + 3 * PAGE, PAGE, PROT_READ);
	mprotect(mem + 4 * PAGE, PAGE, PROT_NONE);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	ck_assert_int_eq(reach(KEY, PAGE, 1), MRF_MR_NOT_MAPPED);
	ck_assert_int_eq(reach(KEY, 0, PAGE + 1), MRF_MR_NOT_MAPPED);
	ck_assert_int_eq(reach(KEY, 3 * PAGE, 1), MRF_MR_NOT_MAPPED);
	ck_assert_int_eq(reach(KEY, 4 * PAGE, 1), MRF_MR_NOT_MAPPED);
	ck_assert_uint_eq(view.nseg, 0);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 0);
	must_reach(KEY, 2 * PAGE, PAGE);
	must_reach(KEY, 0, PAGE);
	calls = fake_verbs.calls[FAKE_REG_MR];
	/* It comes later. */
	ck_assert_ptr_eq(mmap(mem + PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem + PAGE);
	must_reach(KEY, PAGE, PAGE);
	ck_assert_uint_gt(fake_verbs.calls[FAKE_REG_MR], calls);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(read_only_memory_is_reached_by_a_region_that_grants_reading)
{
	struct fid_mr *mr;

	back_open(0);
	mprotect(mem, 64 * PAGE, PROT_READ);
	mr = env_must_reg(mem, 8 * PAGE, FI_REMOTE_READ, KEY);
	must_reach(KEY, 0, PAGE);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(more_than_16_pins_come_in_several_answers)
{
	struct fid_mr *mr;
	uint64_t pos = 0;
	unsigned i, answers = 0;

	back_open(FI_MR_MMU_NOTIFY);
	for (i = 0; i < 40; i += 2)
		mprotect(mem + i * PAGE, PAGE, PROT_READ);
	mr = env_must_reg(mem, 40 * PAGE, FI_REMOTE_READ, KEY);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	for (; pos < 40 * PAGE; pos += reached(pos)) {
		ck_assert_int_eq(reach(KEY, pos, 40 * PAGE - pos), MRF_MR_OK);
		ck_assert_uint_gt(reached(pos), 0);
		ck_assert_uint_le(view.nseg, 16);
		answers++;
	}
	ck_assert_uint_eq(answers, 3);
	ck_assert_uint_eq(fake_verbs.live_mrs, 40);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(which_region_is_meant_is_checked)
{
	struct mrf_mr_query ask = { .key = KEY, .len = 1 };
	uint64_t serial;
	struct fid_mr *mr;

	back_open(0);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_UNKNOWN);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	must_reach(KEY, 0, 1);
	serial = view.serial;
	env_must_close(mr);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_CLOSED);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	must_reach(KEY, 0, 1);
	ck_assert_uint_ne(view.serial, serial);
	ask.serial = serial;
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	ck_assert_int_eq(view.status, MRF_MR_CLOSED);
	ask.serial = mrf_mr_from_fid(&mr->fid)->serial;
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	ck_assert_int_eq(view.status, MRF_MR_OK);
	env_must_close(mr);
	back_close();
}
END_TEST

/* --- changes ---------------------------------------------------------------------- */

static bool direct; /* around the C library */

static void change_unmap(void)
{
	ck_assert_int_eq(
		direct ? (int)syscall(SYS_munmap, mem + PAGE, PAGE) : munmap(mem + PAGE, PAGE), 0);
}

static void change_replace(void)
{
	int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	void *got = direct ? (void *)syscall(SYS_mmap, mem + PAGE, PAGE, prot, flags, -1, 0)
			   : mmap(mem + PAGE, PAGE, prot, flags, -1, 0);

	ck_assert_ptr_eq(got, mem + PAGE);
}

static void change_discard(void)
{
	ck_assert_int_eq(direct ? (int)syscall(SYS_madvise, mem + PAGE, PAGE, MADV_DONTNEED)
				: madvise(mem + PAGE, PAGE, MADV_DONTNEED),
			 0);
}

static void change_move(void)
{
	char *to = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	void *got = direct ? (void *)syscall(SYS_mremap, mem + PAGE, PAGE, PAGE, flags, to)
			   : mremap(mem + PAGE, PAGE, PAGE, flags, to);

	ck_assert_ptr_eq(got, to);
	munmap(to, PAGE);
}

static void (*const changes[])(void) = { change_unmap, change_replace, change_discard,
					 change_move };

START_TEST(no_kept_pin_outlives_a_change_of_the_memory)
{
	void (*change)(void) = changes[_i / 2];
	struct fid_mr *mr;

	direct = _i % 2;
	back_open(0);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	must_reach(KEY, 0, 8 * PAGE);
	ck_assert_uint_eq(fake_verbs_covering(mem + PAGE, PAGE), 1);
	change();
	settle();
	ck_assert_uint_eq(fake_verbs_covering(mem + PAGE, PAGE), keeps() ? 0 : 1);
	ck_assert_int_eq(atomic_load(&told) > 0, keeps());
	mrf_mr_lease_end(&lease);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	must_reach(KEY, 3 * PAGE, 10);
	if (change == change_replace || change == change_discard) {
		must_reach(KEY, PAGE, 10);
		/* Nobody tells when pages have gone that are discarded around the hooks. */
		ck_assert(view.once == (!keeps() || (direct && change == change_discard)));
	} else {
		ck_assert_int_eq(reach(KEY, PAGE, 10), MRF_MR_NOT_MAPPED);
	}
	env_must_close(mr);
	back_close();
}
END_TEST

/* --- what becomes of memory between the look and the watch -------------------------- */

static void (*_Atomic after_look)(void);

/* Stands before libc's for the library, which ends its look at the maps with it. */
int fclose(FILE *file)
{
	int (*libcs)(FILE *);
	void (*change)(void) = atomic_exchange(&after_look, NULL);
	int ret;

	*(void **)&libcs = dlsym(RTLD_NEXT, "fclose");
	ret = libcs(file);
	if (change)
		change();
	return ret;
}

static void map_shared_over(void)
{
	int fd = memfd_create("t_back", 0);

	ck_assert_int_eq(ftruncate(fd, 64 * PAGE), 0);
	ck_assert_ptr_eq(
		mmap(mem, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), mem);
	close(fd);
}

/* It could be truncated without a word. */
START_TEST(memory_that_becomes_shared_before_it_is_watched_is_not_kept)
{
	struct fid_mr *mr;

	back_open(0);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	after_look = map_shared_over;
	must_reach(KEY, PAGE, 10);
	/* Where there is no monitor, nothing was to be looked up for it. */
	if (!keeps())
		after_look = NULL;
	ck_assert_ptr_null(after_look);
	ck_assert(view.once);
	mrf_mr_lease_end(&lease);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	env_must_close(mr);
	back_close();
}
END_TEST

/* Between the drop and the kernel's doing it. */
START_TEST(nothing_is_kept_of_what_is_being_changed)
{
	struct fid_mr *mr;
	unsigned place;

	back_open(0);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	place = mrf_change_announce(mem + PAGE, PAGE);
	must_reach(KEY, 0, 8 * PAGE);
	ck_assert(view.once);
	mrf_change_end(place);
	mrf_mr_lease_end(&lease);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	must_reach(KEY, 0, 8 * PAGE);
	ck_assert(view.once == !keeps());
	mrf_mr_lease_end(&lease);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(the_monitor_gives_no_memory_back)
{
	struct fid_mr *mr;

	back_open(0);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	must_reach(KEY, 0, PAGE);
	if (keeps()) {
		change_unmap();
		settle();
		ck_assert_uint_eq(fake_verbs.calls[FAKE_REVOKE_MR], 1);
		ck_assert_uint_eq(fake_verbs.calls[FAKE_DEREG_MR], 0);
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
		/* A kernel that knows no such command: the usual way. */
		must_reach(KEY, 0, PAGE);
		fake_verbs_fail(FAKE_REVOKE_MR, 1, EINVAL);
		munmap(mem, PAGE);
		settle();
		ck_assert_uint_eq(fake_verbs.calls[FAKE_DEREG_MR], 1);
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
		/* And one that lets go only later. */
		must_reach(KEY, 4 * PAGE, PAGE);
		fake_verbs_fail(FAKE_REVOKE_MR, 1, EINVAL);
		fake_verbs_fail(FAKE_DEREG_MR, 1, EBUSY);
		munmap(mem + 4 * PAGE, PAGE);
		settle();
		ck_assert_uint_eq(fake_verbs.live_mrs, 1);
		must_reach(KEY, 2 * PAGE, PAGE);
		ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	}
	env_must_close(mr);
	back_close();
}
END_TEST

static void (*in_reg)(void);

static void once_in_reg(void *addr, size_t len)
{
	void (*change)(void) = in_reg;

	(void)addr;
	(void)len;
	in_reg = NULL;
	if (change)
		change();
}

START_TEST(memory_that_changes_while_it_is_pinned_is_pinned_anew)
{
	void (*change)(void) = changes[_i / 2];
	struct fid_mr *mr;

	direct = _i % 2;
	back_open(0);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	in_reg = change;
	fake_verbs.on_reg = once_in_reg;
	/* The fake kernel pins after the change, the real one might have before. */
	if (change == change_unmap || change == change_move) {
		ck_assert_int_eq(reach(KEY, 0, 2 * PAGE), MRF_MR_NOT_MAPPED);
		ck_assert_uint_eq(view.nseg, 0);
	} else {
		must_reach(KEY, 0, PAGE);
		ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR] - fake_verbs.live_mrs,
				  keeps() ? 1 : 0);
	}
	fake_verbs.on_reg = NULL;
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	back_close();
}
END_TEST

static void ask_too(void)
{
	ck_assert_int_eq(reach(KEY, PAGE, PAGE), MRF_MR_OK);
}

START_TEST(what_another_thread_has_pinned_meanwhile_is_not_pinned_twice)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	fi_mr_refresh(mr, NULL, 0, 0);
	in_reg = ask_too;
	fake_verbs.on_reg = once_in_reg;
	must_reach(KEY, 0, 2 * PAGE);
	ck_assert_uint_eq(view.nseg, 1);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 2);
	fake_verbs.on_reg = NULL;
	env_must_close(mr);
	back_close();
}
END_TEST

static void always_in_reg(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	change_replace();
}

START_TEST(memory_that_never_rests_is_leased)
{
	struct fid_mr *mr;

	back_open(0);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	fake_verbs.on_reg = always_in_reg;
	must_reach(KEY, 0, 2 * PAGE);
	ck_assert(view.once);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	fake_verbs.on_reg = NULL;
	env_must_close(mr);
	back_close();
}
END_TEST

static struct fid_mr *to_close;

static void close_it(void)
{
	env_must_close(to_close);
}

START_TEST(a_region_closed_while_it_is_pinned_leaves_nothing)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (i)
			use_no_monitor();
		back_open(0);
		if (i)
			use_no_monitor();
		to_close = env_must_reg(mem, 8 * PAGE, RW, KEY);
		in_reg = close_it;
		fake_verbs.on_reg = once_in_reg;
		ck_assert_int_eq(reach(KEY, 0, PAGE), MRF_MR_CLOSED);
		ck_assert_uint_eq(view.nseg, 0);
		fake_verbs.on_reg = NULL;
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
		back_close();
	}
}
END_TEST

/* --- leases ----------------------------------------------------------------------- */

START_TEST(without_a_monitor_each_access_is_leased)
{
	struct fid_mr *mr;

	back_open(0);
	use_no_monitor();
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	must_reach(KEY, PAGE + 5, 10);
	ck_assert(view.once);
	/* Exactly the pages asked for. */
	ck_assert_uint_eq(view.nseg, 1);
	ck_assert_uint_eq(view.seg[0].addr, PAGE);
	ck_assert_uint_eq(view.seg[0].len, PAGE);
	must_reach(KEY, PAGE + 5, 10);
	ck_assert_uint_eq(fake_verbs.live_mrs, 2);
	mrf_mr_lease_end(&lease);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	must_reach(KEY, 0, 8 * PAGE);
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ck_assert_uint_eq(atomic_load(&told), 0);
	back_close();
}
END_TEST

START_TEST(memory_that_cannot_be_watched_is_leased)
{
	char *shared =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FILE *file = tmpfile();
	struct fid_mr *mr;
	char *text;

	ck_assert_int_eq(ftruncate(fileno(file), PAGE), 0);
	text = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
	back_open(FI_MR_VIRT_ADDR);
	mr = env_must_reg(NULL, UINT64_MAX, RW, KEY);
	must_reach(KEY, (uintptr_t)shared + 5, PAGE);
	ck_assert(view.once);
	must_reach(KEY, (uintptr_t)text, 10);
	ck_assert(view.once);
	must_reach(KEY, (uintptr_t)mem, 10);
	ck_assert_int_eq(view.once, !keeps());
	env_must_close(mr);
	back_close();
	munmap(shared, 8 * PAGE);
	munmap(text, PAGE);
	fclose(file);
}
END_TEST

/* Around the hooks: nobody says when the page has gone. */
START_TEST(a_discarded_page_is_leased_and_its_neighbours_are_kept)
{
	char *big = big_open();
	struct fid_mr *mr;
	uint64_t at;

	memset(big, 1, WINDOW);
	back_open(0);
	mr = env_must_reg(big, WINDOW, RW, KEY);
	must_reach(KEY, 0, 8);
	ck_assert_int_eq(syscall(SYS_madvise, big + 200 * PAGE, PAGE, MADV_DONTNEED), 0);
	settle();
	big[200 * PAGE] = 1;
	for (at = 0; at < WINDOW; at += 7 * PAGE) {
		must_reach(KEY, at + 9, 8);
		ck_assert_int_eq(view.once, !keeps() || at / PAGE == 200);
	}
	must_reach(KEY, 200 * PAGE + 9, 8);
	ck_assert(view.once);
	ck_assert_uint_eq(view.seg[0].len, PAGE);
	/* Not in more pieces than need be. */
	must_reach(KEY, 9, 8);
	ck_assert_uint_eq(view.seg[0].len, keeps() ? WINDOW / 4 : PAGE);
	must_reach(KEY, 199 * PAGE, 8);
	ck_assert_uint_eq(view.seg[0].len, keeps() ? 4 * PAGE : PAGE);
	env_must_close(mr);
	back_close();
	big_close(big);
}
END_TEST

/* --- how many mappings there may be -------------------------------------------------- */

static char few[32];	  /* vm.max_map_count, if not the kernel's */
static atomic_uint looks; /* at mappings */

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (*few && !strcmp(path, "/proc/sys/vm/max_map_count"))
		return fmemopen(few, strlen(few), "r");
	return __real_fopen(path, mode);
}

int __real_mrf_maps_look(struct mrf_maps *maps, uint64_t start, uint64_t end);
int __wrap_mrf_maps_look(struct mrf_maps *maps, uint64_t start, uint64_t end);

int __wrap_mrf_maps_look(struct mrf_maps *maps, uint64_t start, uint64_t end)
{
	looks++;
	return __real_mrf_maps_look(maps, start, end);
}

/* How many looks at mappings the first access takes, and how many failed pins. */
static void reach_first(void *addr, size_t len, uint64_t access, enum mrf_mr_status status,
			unsigned max)
{
	struct fid_mr *mr = env_must_reg(addr, len, access, KEY);
	unsigned calls = fake_verbs.calls[FAKE_REG_MR], live = fake_verbs.live_mrs;

	looks = 0;
	ck_assert_int_eq(reach(KEY, 0, len), status);
	ck_assert_uint_le(looks, max);
	/* Without a monitor the kernel is asked about these bytes alone, if it can be. */
	ck_assert(looks || !max || status == MRF_MR_OK);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR] - calls, fake_verbs.live_mrs - live);
	env_must_close(mr);
	mrf_mr_lease_end(&lease);
	mrf_mr_lease_init(&lease);
}

START_TEST(private_memory_is_reached_without_a_look_at_the_mappings)
{
	unsigned some;

	back_open(0);
	some = keeps() ? 0 : 1;
	reach_first(mem, 64 * PAGE, RW, MRF_MR_OK, some);
	reach_first(mem + 5, 1, FI_REMOTE_READ, MRF_MR_OK, some);
	/* What lies around in the same window is another mapping, or none. */
	mprotect(mem + 8 * PAGE, 8 * PAGE, PROT_READ);
	munmap(mem + 32 * PAGE, PAGE);
	reach_first(mem, 8 * PAGE, RW, MRF_MR_OK, some);
	reach_first(mem + 8 * PAGE, PAGE, FI_REMOTE_READ, MRF_MR_OK, some);
	/* These need a reason. */
	reach_first(mem + 8 * PAGE, PAGE, RW, MRF_MR_NOT_MAPPED, 1);
	reach_first(mem + 32 * PAGE, PAGE, FI_REMOTE_READ, MRF_MR_NOT_MAPPED, 1);
	reach_first(mem, 64 * PAGE, FI_REMOTE_READ, MRF_MR_NOT_MAPPED, 1);
	back_close();
}
END_TEST

/* A window of the whole address space ends where the mapping does. */
START_TEST(a_window_that_ends_in_another_mapping_is_made_smaller)
{
	struct fid_mr *mr;

	back_open(FI_MR_VIRT_ADDR);
	mprotect(mem + 32 * PAGE, 32 * PAGE, PROT_READ);
	mr = env_must_reg(NULL, SIZE_MAX, RW, KEY);
	looks = 0;
	must_reach(KEY, (uintptr_t)mem + 20 * PAGE, 8);
	ck_assert_uint_le(looks, keeps() ? 0 : 1);
	if (keeps()) {
		ck_assert_uint_le(view.seg[0].addr + view.seg[0].len, (uintptr_t)mem + 32 * PAGE);
		ck_assert_uint_ge(view.seg[0].len, 16 * PAGE);
	}
	ck_assert_int_eq(reach(KEY, (uintptr_t)mem + 40 * PAGE, 8), MRF_MR_NOT_MAPPED);
	env_must_close(mr);
	back_close();
}
END_TEST

/* Many small regions far from each other: each part that is watched is a mapping. */
START_TEST(watching_leaves_the_application_half_of_its_mappings)
{
	enum { MANY = 200 };
	char *big = mmap(NULL, (size_t)MANY * MRF_MONITOR_PART, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct fid_mr *mr[MANY];
	unsigned i, leases = 0, before;

	ck_assert_ptr_ne(big, MAP_FAILED);
	(void)madvise(big, (size_t)MANY * MRF_MONITOR_PART, MADV_NOHUGEPAGE);
	back_open(0);
	if (_i) {
		setenv("FI_MR_CACHE_MONITOR", "memhooks", 1);
		mrf_env_reload();
	}
	before = mrf_maps_count();
	snprintf(few, sizeof(few), "%u\n", 2 * (before + 100));
	for (i = 0; i < MANY; i++) {
		mr[i] = env_must_reg(big + i * MRF_MONITOR_PART, 64, FI_REMOTE_READ, KEY + i);
		must_reach(KEY + i, 0, 8);
		leases += view.once;
		mrf_mr_lease_end(&lease);
		mrf_mr_lease_init(&lease);
	}
	ck_assert_uint_lt(mrf_maps_count(), before + 100 + 20);
	if (keeps()) {
		ck_assert_uint_eq(leases > MANY / 4, !_i);
		ck_assert_uint_lt(leases, MANY - 30);
	}
	for (i = 0; i < MANY; i++)
		env_must_close(mr[i]);
	back_close();
	munmap(big, (size_t)MANY * MRF_MONITOR_PART);
	*few = 0;
}
END_TEST

static void renew(struct fid_mr *const mr[], unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		must_reach(KEY + i, 0, 8);
		ck_assert_int_eq(fi_mr_refresh(mr[i], NULL, 0, 0), 0);
	}
}

/* To whoever else they do not exist. */
START_TEST(what_is_gone_is_told_to_those_who_could_reach_it)
{
	enum { N = MRF_MR_GONE + 1 };
	struct mrf_mr_gone gone[MRF_MR_GONE];
	struct mrf_mr_class other;
	struct fid_mr *mr[N];
	uint64_t told, told_other;
	unsigned i;

	back_open(FI_MR_MMU_NOTIFY);
	for (i = 0; i < N; i++) {
		mr[i] = env_must_reg(mem + i * PAGE, PAGE, RW, KEY + i);
		ck_assert_int_eq(fi_mr_refresh(mr[i], NULL, 0, 0), 0);
	}
	told = told_other = mrf_mr_gone_so_far(&env.space);
	renew(mr, 2);
	ck_assert_uint_eq(mrf_mr_gone_since(&env.space, &other, &told_other, gone), 0);
	ck_assert_uint_eq(told_other, told + 2);
	ck_assert_uint_eq(mrf_mr_gone_since(&env.space, NULL, &told, gone), 2);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(gone[i].key, KEY + i);
		ck_assert_uint_eq(gone[i].pos, 0);
		ck_assert_uint_eq(gone[i].len, PAGE);
	}
	renew(mr, MRF_MR_GONE);
	ck_assert_uint_eq(mrf_mr_gone_since(&env.space, NULL, &told, gone), MRF_MR_GONE);
	ck_assert_uint_eq(gone[MRF_MR_GONE - 1].key, KEY + MRF_MR_GONE - 1);
	renew(mr, N);
	ck_assert_uint_eq(mrf_mr_gone_since(&env.space, NULL, &told, gone), MRF_MR_GONE_ALL);
	ck_assert_uint_eq(mrf_mr_gone_since(&env.space, NULL, &told, gone), 0);
	/* Those of a closed region need not be told. */
	for (i = 0; i < N; i++) {
		must_reach(KEY + i, 0, 8);
		env_must_close(mr[i]);
	}
	ck_assert_uint_eq(mrf_mr_gone_since(&env.space, NULL, &told, gone), 0);
	back_close();
}
END_TEST

/* More than are leased without a look at the mappings. */
#define SOME (20 * PAGE)

START_TEST(an_answer_is_kept_or_leased_and_never_both)
{
	struct fid_mr *mr;
	uint64_t got;

	back_open(0);
	ck_assert_ptr_eq(mmap(mem + SOME, SOME, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem + SOME);
	mr = env_must_reg(mem, 3 * SOME, RW, KEY);
	if (keeps()) {
		ck_assert_int_eq(reach(KEY, 0, 3 * SOME), MRF_MR_OK);
		ck_assert(!view.once);
		ck_assert_uint_eq(reached(0), SOME);
		ck_assert_int_eq(reach(KEY, SOME, 2 * SOME), MRF_MR_OK);
		ck_assert(view.once);
		got = reached(SOME);
		ck_assert_uint_eq(got, SOME);
		must_reach(KEY, 2 * SOME, SOME);
		ck_assert(!view.once);
	}
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_lease_is_given_to_who_asks_for_one)
{
	struct mrf_mr_query ask = { .key = KEY, .len = PAGE, .lease = true };
	struct fid_mr *mr;

	back_open(_i ? FI_MR_MMU_NOTIFY : 0);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	fi_mr_refresh(mr, NULL, 0, 0);
	must_reach(KEY, 0, PAGE);
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	ck_assert_int_eq(view.status, MRF_MR_OK);
	/* Where the application tells of changes there is nothing to be had from it. */
	ck_assert_int_eq(view.once, !_i);
	ck_assert_uint_ge(reached(0), PAGE);
	ck_assert_uint_eq(fake_verbs.live_mrs, _i ? 1 : 2);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_lease_may_end_after_its_region)
{
	struct mrf_mr_lease other;
	struct fid_mr *mr;

	back_open(0);
	use_no_monitor();
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	must_reach(KEY, 0, PAGE);
	other = (struct mrf_mr_lease){ 0 };
	mrf_mr_lease_init(&other);
	mrf_mr_lease_end(&other);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	mrf_mr_lease_end(&lease);
	mrf_mr_lease_end(&lease);
	back_close();
}
END_TEST

/* --- failures --------------------------------------------------------------------- */

START_TEST(if_the_window_cannot_be_pinned_the_pages_are)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	fi_mr_refresh(mr, NULL, 0, 0);
	fake_verbs_fail(FAKE_REG_MR, 1, ENOMEM);
	must_reach(KEY, 2 * PAGE + 1, PAGE);
	ck_assert_uint_eq(view.seg[0].addr, 2 * PAGE);
	ck_assert_uint_eq(view.seg[0].len, 2 * PAGE);
	/* The next one ends where that begins. */
	must_reach(KEY, 0, 1);
	ck_assert_uint_eq(view.seg[0].len, 2 * PAGE);
	must_reach(KEY, 0, 8 * PAGE);
	ck_assert_uint_eq(view.nseg, 3);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(room_is_made_by_unpinning_the_rest)
{
	struct fid_mr *mr[3];
	unsigned i;

	back_open(FI_MR_MMU_NOTIFY);
	fake_verbs.max_mr = 2;
	for (i = 0; i < 3; i++) {
		mr[i] = env_must_reg(mem + i * PAGE, PAGE, RW, i);
		fi_mr_refresh(mr[i], NULL, 0, 0);
		must_reach(i, 0, PAGE);
	}
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_uint_eq(atomic_load(&told), 1);
	must_reach(0, 0, PAGE);
	for (i = 0; i < 3; i++)
		env_must_close(mr[i]);
	back_close();
}
END_TEST

START_TEST(if_there_is_no_room_the_answer_and_the_log_say_so)
{
	struct fid_mr *mr;
	const char *text;

	back_open(_i ? FI_MR_MMU_NOTIFY : 0);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	if (_i)
		fi_mr_refresh(mr, NULL, 0, 0);
	fake_verbs.max_mr = 0;
	unit_capture(&cap);
	ck_assert_int_eq(reach(KEY, 0, 10), MRF_MR_NO_ROOM);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3018"));
	ck_assert_uint_eq(view.nseg, 0);
	fake_verbs.max_mr = 10;
	must_reach(KEY, 0, 10);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(what_there_is_room_for_is_answered_first)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	mprotect(mem + PAGE, PAGE, PROT_READ);
	mr = env_must_reg(mem, 4 * PAGE, FI_REMOTE_READ, KEY);
	fi_mr_refresh(mr, NULL, 0, 0);
	fake_verbs.max_mr = 1;
	ck_assert_int_eq(reach(KEY, 0, 2 * PAGE), MRF_MR_OK);
	ck_assert_uint_eq(reached(0), PAGE);
	ck_assert_int_eq(reach(KEY, PAGE, PAGE), MRF_MR_OK);
	ck_assert_uint_eq(reached(PAGE), PAGE);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_kernel_that_finds_no_memory_there_is_believed)
{
	struct fid_mr *mr;

	back_open(FI_MR_MMU_NOTIFY);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	fi_mr_refresh(mr, NULL, 0, 0);
	munmap(mem, PAGE);
	ck_assert_int_eq(reach(KEY, 0, 10), MRF_MR_NOT_MAPPED);
	change_replace();
	env_must_close(mr);
	mr = env_must_reg(mem + PAGE, PAGE, RW, KEY);
	fi_mr_refresh(mr, NULL, 0, 0);
	fake_verbs_fail(FAKE_REG_MR, 1, EFAULT);
	must_reach(KEY, 0, 10);
	env_must_close(mr);
	mr = env_must_reg(mem + PAGE, PAGE, RW, KEY);
	fi_mr_refresh(mr, NULL, 0, 0);
	fake_verbs.on_reg = once_in_reg;
	in_reg = change_unmap;
	ck_assert_int_eq(reach(KEY, 0, 10), MRF_MR_NOT_MAPPED);
	fake_verbs.on_reg = NULL;
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_region_that_the_kernel_keeps_can_be_closed_again)
{
	struct fid_mr *mr;
	const char *text;

	back_open(_i ? FI_MR_MMU_NOTIFY : 0);
	if (!_i)
		use_no_monitor();
	mr = env_must_reg(mem, PAGE, RW, KEY);
	if (_i)
		fi_mr_refresh(mr, NULL, 0, 0);
	must_reach(KEY, 0, 10);
	fake_verbs_fail_always(FAKE_REVOKE_MR, EBUSY);
	fake_verbs_fail_always(FAKE_DEREG_MR, EBUSY);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&mr->fid), -FI_EBUSY);
	text = unit_captured(&cap);
	fake_verbs_fail(FAKE_REVOKE_MR, 0, 0);
	fake_verbs_fail(FAKE_DEREG_MR, 0, 0);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3030"));
	ck_assert_int_eq(reach(KEY, 0, 10), MRF_MR_CLOSED);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	back_close();
}
END_TEST

START_TEST(a_lease_that_the_kernel_keeps_is_ended_later)
{
	struct fid_mr *mr;

	back_open(0);
	use_no_monitor();
	mr = env_must_reg(mem, PAGE, RW, KEY);
	must_reach(KEY, 0, 10);
	fake_verbs_fail_always(FAKE_REVOKE_MR, EBUSY);
	fake_verbs_fail_always(FAKE_DEREG_MR, EBUSY);
	unit_capture(&cap);
	mrf_mr_lease_end(&lease);
	unit_captured(&cap);
	fake_verbs_fail(FAKE_REVOKE_MR, 0, 0);
	fake_verbs_fail(FAKE_DEREG_MR, 0, 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	must_reach(KEY, 0, 10);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(without_memory_nothing_is_lost)
{
	static const uint64_t modes[] = { 0, FI_MR_MMU_NOTIFY };
	enum mrf_mr_status status = MRF_MR_NO_ROOM;
	struct fid_mr *mr = NULL;
	unsigned nth;

	back_open(modes[_i]);
	unit_capture(&cap);
	for (nth = 1; !mr; nth++) {
		fail_alloc(nth);
		if (env_reg(mem, 8 * PAGE, RW, KEY, &mr))
			ck_assert_uint_eq(env.space.keys.count, 0);
	}
	ck_assert_uint_gt(nth, 2);
	fail_alloc(0);
	if (_i)
		fi_mr_refresh(mr, NULL, 0, 0);
	for (nth = 1; status != MRF_MR_OK; nth++) {
		fail_alloc(nth);
		status = reach(KEY, 0, 8 * PAGE);
		ck_assert(status == MRF_MR_OK || status == MRF_MR_NO_ROOM);
		ck_assert_uint_lt(nth, 20);
	}
	fail_alloc(0);
	unit_captured(&cap);
	env_must_close(mr);
	back_close();
}
END_TEST

/* --- storm ------------------------------------------------------------------------ */

static atomic_bool stopping;
static struct fid_mr *storm_mr;

/* Is some of it pinned to stay, by a pin with a key before this one? */
static bool kept(const void *addr, size_t len, uint32_t key)
{
	struct mrf_span span = { (uintptr_t)addr, (uintptr_t)addr + len };
	struct mrf_spans spans = { 1, &span };
	const struct mrf_itree *pins = &mrf_mr_from_fid(&storm_mr->fid)->back->pins;
	const struct mrf_itree_node *node;
	bool any = false;

	mrf_monitor_lock();
	for (node = mrf_itree_first(pins, 0, UINT64_MAX); node;
	     node = mrf_itree_next(pins, node, 0, UINT64_MAX)) {
		const struct mrf_pin *pin = mrf_itree_value(node);

		any |= pin->vmr.rkey < key &&
		       mrf_spans_meet(&spans, pin->addr, pin->addr + pin->len);
	}
	mrf_monitor_unlock();
	return any;
}

/*
 * Replaces its own page; when the call has returned, nothing of the old one is pinned.
 * There is never a hole: another thread's memory might come there.
 */
static void *change_pages(void *arg)
{
	char *mine = arg;
	uint32_t key;
	unsigned i;

	for (i = 0; i < 300; i++) {
		key = fake_verbs_next_key();
		ck_assert_ptr_eq(mmap(mine, PAGE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 mine);
		ck_assert(!kept(mine, PAGE, key));
	}
	return NULL;
}

static void *register_others(void *arg)
{
	struct fid_mr *mr;

	(void)arg;
	while (!atomic_load(&stopping)) {
		ck_assert_int_eq(
			fi_mr_reg(&env.domain, mem, 32 * PAGE, RW, 0, KEY + 1, 0, &mr, NULL), 0);
		fi_mr_refresh(mr, NULL, 0, 0);
		ck_assert_int_eq(fi_close(&mr->fid), 0);
	}
	return NULL;
}

static void *ask(void *arg)
{
	struct mrf_mr_query ask = { .key = KEY + (arg != NULL) };
	struct mrf_mr_lease my_lease;
	struct mrf_mr_view my_view;
	unsigned i = 0;

	mrf_mr_lease_init(&my_lease);
	while (!atomic_load(&stopping)) {
		ask.addr = i++ % 30 * PAGE;
		ask.len = 2 * PAGE;
		mrf_mr_reach(&env.space, &ask, &my_lease, &my_view);
		if (i % 3 == 0)
			mrf_mr_lease_end(&my_lease);
	}
	mrf_mr_lease_end(&my_lease);
	return NULL;
}

START_TEST(a_storm_of_changes_and_questions_leaves_no_stale_pin)
{
	pthread_t thread[5];
	unsigned i;

	back_open(0);
	if (_i)
		use_no_monitor();
	storm_mr = env_must_reg(mem, 32 * PAGE, RW, KEY);
	atomic_store(&stopping, false);
	pthread_create(&thread[0], NULL, change_pages, mem);
	pthread_create(&thread[1], NULL, change_pages, mem + 7 * PAGE);
	pthread_create(&thread[2], NULL, register_others, NULL);
	pthread_create(&thread[3], NULL, ask, NULL);
	pthread_create(&thread[4], NULL, ask, mem);
	for (i = 0; i < 5; i++) {
		pthread_join(thread[i], NULL);
		if (i == 1)
			atomic_store(&stopping, true);
	}
	env_must_close(storm_mr);
	back_close();
}
END_TEST

/* ---------------------------------------------------------------------------------- */

static TCase *registering(void)
{
	TCase *tc = tcase_create("registering");

	tcase_add_test(tc, registering_pins_nothing_and_needs_no_memory);
	tcase_add_test(tc, registering_everything_brings_no_page_in);
	tcase_add_test(tc, registering_what_no_peer_can_reach_is_said);
	tcase_add_test(tc, registering_read_only_memory_for_writing_is_said);
	tcase_add_test(tc, a_descriptor_that_is_not_pinned_goes_the_long_way);
	tcase_add_test(tc, provider_keys_of_regions_pinned_on_demand_carry_no_rkey);
	return tc;
}

static TCase *reaching(void)
{
	TCase *tc = tcase_create("reaching");

	tcase_add_test(tc, an_access_pins_with_the_regions_rights_and_the_next_one_nothing);
	tcase_add_test(tc, what_is_kept_is_answered_without_a_look_at_the_process);
	tcase_add_test(tc, a_process_without_a_free_descriptor_is_reached_still);
	tcase_add_test(tc, a_pin_is_widened_but_never_beyond_the_region);
	tcase_add_test(tc, a_pin_is_no_wider_than_the_window);
	tcase_add_test(tc, memory_used_from_the_beginning_to_the_end_is_soon_pinned_by_windows);
	tcase_add_test(tc, a_mapping_can_be_moved_by_system_call_though_little_of_it_is_pinned);
	tcase_add_loop_test(tc, what_is_pinned_beside_the_access_is_what_is_there, 0,
			    (int)MRF_ARRAY_SIZE(sparse));
	tcase_add_test(tc, positions_are_packed_over_the_segments);
	tcase_add_test(tc, with_addresses_each_byte_is_reached_at_its_own);
	tcase_add_test(tc, what_is_outside_is_said_to_be_and_pins_nothing);
	tcase_add_test(tc, a_region_of_no_bytes_has_an_end_and_nothing_else);
	tcase_add_test(tc, the_whole_address_space_is_reached_where_there_is_memory);
	tcase_add_test(tc, memory_that_is_not_there_is_not_tried);
	tcase_add_test(tc, read_only_memory_is_reached_by_a_region_that_grants_reading);
	tcase_add_test(tc, more_than_16_pins_come_in_several_answers);
	tcase_add_test(tc, which_region_is_meant_is_checked);
	return tc;
}

/* What takes long, and is the same on each kernel, where pages are dear: CK_EXCLUDE_TAGS. */
static TCase *large(void)
{
	TCase *tc = tcase_create("large");

	tcase_set_tags(tc, "large");
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, an_access_to_more_than_the_kernel_takes_pins_pieces, 0, 6);
	return tc;
}

static TCase *changing(void)
{
	TCase *tc = tcase_create("changing");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, no_kept_pin_outlives_a_change_of_the_memory, 0, 8);
	tcase_add_test(tc, memory_that_becomes_shared_before_it_is_watched_is_not_kept);
	tcase_add_test(tc, nothing_is_kept_of_what_is_being_changed);
	tcase_add_test(tc, the_monitor_gives_no_memory_back);
	tcase_add_loop_test(tc, memory_that_changes_while_it_is_pinned_is_pinned_anew, 0, 8);
	tcase_add_test(tc, what_another_thread_has_pinned_meanwhile_is_not_pinned_twice);
	tcase_add_test(tc, memory_that_never_rests_is_leased);
	tcase_add_test(tc, a_region_closed_while_it_is_pinned_leaves_nothing);
	tcase_add_loop_test(tc, a_storm_of_changes_and_questions_leaves_no_stale_pin, 0, 2);
	return tc;
}

static TCase *leases(void)
{
	TCase *tc = tcase_create("leases");

	tcase_add_test(tc, without_a_monitor_each_access_is_leased);
	tcase_add_test(tc, memory_that_cannot_be_watched_is_leased);
	tcase_add_test(tc, a_discarded_page_is_leased_and_its_neighbours_are_kept);
	tcase_add_test(tc, private_memory_is_reached_without_a_look_at_the_mappings);
	tcase_add_test(tc, a_window_that_ends_in_another_mapping_is_made_smaller);
	tcase_add_loop_test(tc, watching_leaves_the_application_half_of_its_mappings, 0, 2);
	tcase_add_test(tc, what_is_gone_is_told_to_those_who_could_reach_it);
	tcase_add_test(tc, an_answer_is_kept_or_leased_and_never_both);
	tcase_add_loop_test(tc, a_lease_is_given_to_who_asks_for_one, 0, 2);
	tcase_add_test(tc, a_lease_may_end_after_its_region);
	return tc;
}

static TCase *failures(void)
{
	TCase *tc = tcase_create("failures");

	tcase_add_test(tc, if_the_window_cannot_be_pinned_the_pages_are);
	tcase_add_test(tc, room_is_made_by_unpinning_the_rest);
	tcase_add_loop_test(tc, if_there_is_no_room_the_answer_and_the_log_say_so, 0, 2);
	tcase_add_test(tc, what_there_is_room_for_is_answered_first);
	tcase_add_test(tc, a_kernel_that_finds_no_memory_there_is_believed);
	tcase_add_loop_test(tc, a_region_that_the_kernel_keeps_can_be_closed_again, 0, 2);
	tcase_add_test(tc, a_lease_that_the_kernel_keeps_is_ended_later);
	tcase_add_loop_test(tc, without_memory_nothing_is_lost, 0, 2);
	return tc;
}

UNIT_MAIN("back", registering, reaching, large, changing, leases, failures)
