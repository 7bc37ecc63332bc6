/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Little lockable memory: what is kept pinned for peers gives way to whatever has to be
 * registered, in whichever domain, and to what leaves no choice nothing does.
 */
#include <sys/wait.h>
#include <unistd.h>
#include "mr/demand/backs.h"
#include "back_fixture.h"

#define SECOND_KEY 8

static struct unit_capture cap;
static const uint64_t modes[] = { 0, FI_MR_MMU_NOTIFY };

/* All that may be pinned is pinned for peers, if it is kept. */
static struct fid_mr *fill_up(uint64_t mode)
{
	struct fid_mr *mr;

	back_open(mode);
	fake_verbs.max_bytes = 8 * PAGE;
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	ck_assert_int_eq(mode & FI_MR_MMU_NOTIFY ? fi_mr_refresh(mr, NULL, 0, 0) : 0, 0);
	must_reach(KEY, 0, 8 * PAGE);
	ck_assert_uint_eq(fake_verbs.live_bytes, 8 * PAGE);
	return mr;
}

static int reg_second(size_t len, struct fid_mr **mr)
{
	unsigned char *from = mem + 16 * PAGE;

	return fi_mr_reg(&second.domain, from, len, RW, 0, SECOND_KEY, 0, mr, NULL);
}

static enum mrf_mr_status reach_second(uint64_t pos, uint64_t len)
{
	struct mrf_mr_query ask = { .key = SECOND_KEY, .addr = pos, .len = len };

	memset(&view, 0xee, sizeof(view));
	mrf_mr_reach(&second.space, &ask, &lease, &view);
	return view.status;
}

START_TEST(pins_for_peers_give_way_to_a_region_of_another_domain)
{
	struct fid_mr *mr = fill_up(modes[_i]), *own;

	env_second_open(FI_MR_ALLOCATED);
	if (keeps()) {
		ck_assert_int_eq(reg_second(4 * PAGE, &own), 0);
		ck_assert_uint_eq(fake_verbs.live_bytes, 4 * PAGE);
		ck_assert_uint_eq(atomic_load(&told), 1);
		/* The peer comes back, and gets what there is. */
		must_reach(KEY, 0, PAGE);
		ck_assert_uint_eq(fake_verbs_covering(mem + 16 * PAGE, PAGE), 1);
		env_must_close(own);
	}
	env_must_close(mr);
	env_second_close();
	back_close();
}
END_TEST

START_TEST(two_domains_do_not_starve_each_other)
{
	struct fid_mr *mr = fill_up(modes[_i]), *other;
	unsigned i;

	env_second_open(modes[_i]);
	ck_assert_int_eq(reg_second(8 * PAGE, &other), 0);
	if (_i)
		ck_assert_int_eq(fi_mr_refresh(other, NULL, 0, 0), 0);
	for (i = 0; i < 3 && keeps(); i++) {
		ck_assert_int_eq(reach_second(0, 8 * PAGE), MRF_MR_OK);
		ck_assert_uint_ge(reached(0), 8 * PAGE);
		ck_assert_uint_eq(fake_verbs.live_bytes, 8 * PAGE);
		must_reach(KEY, 0, 8 * PAGE);
		ck_assert_uint_eq(fake_verbs.live_bytes, 8 * PAGE);
	}
	env_must_close(other);
	env_must_close(mr);
	env_second_close();
	back_close();
}
END_TEST

static const int lacks[] = { ENOMEM, EPERM, ENOSPC };

START_TEST(where_nothing_is_kept_the_first_error_comes_out)
{
	struct fid_mr *mr;

	back_open(0);
	env_second_open(FI_MR_ALLOCATED);
	unit_capture(&cap);
	fake_verbs_fail(FAKE_REG_MR, 1, lacks[_i]);
	ck_assert_int_eq(reg_second(PAGE, &mr), -lacks[_i]);
	unit_captured(&cap);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 1);
	env_second_close();
	back_close();
}
END_TEST

/* Each of these errors is a reason, and room is made once. */
START_TEST(room_is_made_once)
{
	struct fid_mr *mr, *own;
	unsigned calls;

	mr = fill_up(FI_MR_MMU_NOTIFY);
	env_second_open(FI_MR_ALLOCATED);
	fake_verbs_fail(FAKE_REG_MR, 1, lacks[_i]);
	ck_assert_int_eq(reg_second(PAGE, &own), 0);
	env_must_close(own);
	must_reach(KEY, 0, 8 * PAGE);
	unit_capture(&cap);
	calls = fake_verbs.calls[FAKE_REG_MR];
	fake_verbs_fail_always(FAKE_REG_MR, lacks[_i]);
	ck_assert_int_eq(reg_second(PAGE, &own), -lacks[_i]);
	unit_captured(&cap);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR] - calls, 2);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	env_must_close(mr);
	env_second_close();
	back_close();
}
END_TEST

START_TEST(other_errors_take_nothing_from_peers)
{
	struct fid_mr *mr = fill_up(FI_MR_MMU_NOTIFY), *own;

	env_second_open(FI_MR_ALLOCATED);
	unit_capture(&cap);
	fake_verbs_fail(FAKE_REG_MR, 1, EINVAL);
	ck_assert_int_eq(reg_second(PAGE, &own), -FI_EINVAL);
	unit_captured(&cap);
	ck_assert_uint_eq(fake_verbs.live_bytes, 8 * PAGE);
	ck_assert_uint_eq(atomic_load(&told), 0);
	env_must_close(mr);
	env_second_close();
	back_close();
}
END_TEST

START_TEST(accesses_that_are_under_way_keep_their_pins)
{
	struct fid_mr *mr, *own;

	back_open(0);
	use_no_monitor();
	fake_verbs.max_bytes = 8 * PAGE;
	mr = env_must_reg(mem, 8 * PAGE, RW, KEY);
	must_reach(KEY, 0, 8 * PAGE);
	ck_assert(view.once);
	env_second_open(FI_MR_ALLOCATED);
	unit_capture(&cap);
	ck_assert_int_eq(reg_second(PAGE, &own), -FI_ENOMEM);
	unit_captured(&cap);
	ck_assert_uint_eq(fake_verbs.live_bytes, 8 * PAGE);
	env_must_close(mr);
	env_second_close();
	back_close();
}
END_TEST

/* The kernel regions that it would end are its parent's. */
START_TEST(a_child_takes_nothing_from_its_parents_peers)
{
	struct fid_mr *mr = fill_up(FI_MR_MMU_NOTIFY);
	int status;
	pid_t pid = fork();

	if (!pid) {
		bool none = !mrf_room_make();

		env_second_open(0);
		none &= !mrf_room_make() && !fake_verbs.calls[FAKE_REVOKE_MR];
		env_second_close();
		_exit(none ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(mrf_room_make());
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REVOKE_MR], 1);
	ck_assert(!mrf_room_make());
	env_must_close(mr);
	back_close();
}
END_TEST

static TCase *room(void)
{
	TCase *tc = tcase_create("room");

	tcase_add_loop_test(tc, pins_for_peers_give_way_to_a_region_of_another_domain, 0, 2);
	tcase_add_loop_test(tc, two_domains_do_not_starve_each_other, 0, 2);
	tcase_add_loop_test(tc, where_nothing_is_kept_the_first_error_comes_out, 0, 3);
	tcase_add_loop_test(tc, room_is_made_once, 0, 3);
	tcase_add_test(tc, other_errors_take_nothing_from_peers);
	tcase_add_test(tc, accesses_that_are_under_way_keep_their_pins);
	tcase_add_test(tc, a_child_takes_nothing_from_its_parents_peers);
	return tc;
}

UNIT_MAIN("room", room)
