/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of a peer's device memory over a pair (ep/tx/far_op.h): buffers while their bytes are on
 * the way, operations that fail meanwhile, and targets that send what they should not.
 */
#include <pthread.h>
#include <time.h>
#include "base/env.h"
#include "loop/agent_calls.h"
#include "far_fixture.h"

/* What becomes of SENDs over pairs. */
enum { TRUE_SENDS, EMPTY_SENDS, LOST_SENDS };

static atomic_int sends;

int __real_mrf_vpair_send(struct mrf_vpair *pair, uint64_t id, struct mrf_sge *sge, int n, bool i);
int __wrap_mrf_vpair_send(struct mrf_vpair *pair, uint64_t id, struct mrf_sge *sge, int n, bool i);
int __wrap_mrf_vpair_send(struct mrf_vpair *pair, uint64_t id, struct mrf_sge *sge, int n, bool i)
{
	if (atomic_load(&sends) == LOST_SENDS)
		return 0;
	return __real_mrf_vpair_send(pair, id, sge, atomic_load(&sends) == EMPTY_SENDS ? 0 : n, i);
}

#define BUFS 64
#define BUF 400
#define VLEN ((size_t)BUFS * BUF)

static struct iovec iov[BUFS];

static void make_iov(void)
{
	for (unsigned i = 0; i < BUFS; i++)
		iov[i] = (struct iovec){ mem + i * 2 * BUF, BUF };
	for (unsigned i = 0; i < BUFS; i++)
		memcpy(iov[i].iov_base, want + i * BUF, BUF);
}

static void first(void)
{
	memcpy(mem, want, 4096);
	ck_assert_int_eq(write_far(0, 4096), 0);
	want_ok(&p.a, &p);
}

/* More buffers than are held at a time; the bytes lie in the queue pair for a while. */
START_TEST(far_buffers_stay_held_while_their_bytes_are_on_the_way)
{
	open_all(_i, FI_MR_ALLOCATED);
	first();
	make_iov();
	fake_hold_pairs(true);
	ck_assert_int_eq(fi_writev(p.a.ep, iov, NULL, BUFS, p.to, base, key, &p), 0);
	for (unsigned i = 0; i < 50; i++) {
		nothing_completed();
		usleep(1000);
	}
	fake_hold_pairs(false);
	want_ok(&p.a, &p);
	rig->get(got, dev, VLEN);
	ck_assert_msg(!memcmp(got, want, VLEN), "wrong bytes");
	ck_assert_uint_eq(fake_connects(), 1);
	close_all();
}
END_TEST

/* They gather while two messages are on the way. */
START_TEST(far_buffers_stay_held_while_requests_gather)
{
	bool read = _i;

	open_all(0, FI_MR_ALLOCATED);
	first();
	make_iov();
	hold(1);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(read ? read_far(PLACES, 4096) : write_far(PLACES, 4096), 0);
	want_soon(is_inside());
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(read ? read_far(PLACES, 4096) : write_far(PLACES, 4096), 0);
	if (read)
		ck_assert_int_eq(fi_readv(p.a.ep, iov, NULL, BUFS, p.to, base, key, &p), 0);
	else
		ck_assert_int_eq(fi_writev(p.a.ep, iov, NULL, BUFS, p.to, base, key, &p), 0);
	for (unsigned i = 0; i < 50; i++) {
		nothing_completed();
		usleep(1000);
	}
	let_go();
	for (unsigned i = 0; i < 5; i++)
		want_ok(&p.a, &p);
	ck_assert_msg(fake_connects() == 1, "%u connections", fake_connects());
	close_all();
}
END_TEST

/* The target says that all is done, and has sent no bytes. */
START_TEST(far_read_ends_although_nothing_came)
{
	open_all(0, FI_MR_ALLOCATED);
	first();
	atomic_store(&sends, EMPTY_SENDS);
	ck_assert_int_eq(read_far(0, 4096), 0);
	for (unsigned i = 0; i < 3000; i++) {
		struct fi_cq_data_entry entry;

		if (fi_cq_read(p.a.cq, &entry, 1) != -FI_EAGAIN)
			break;
		usleep(1000);
		ck_assert_msg(i < 2999, "never ends: queued ops %u", node_state(&p.a, p.to).ops);
	}
	close_all();
}
END_TEST

/* The target says that all is done, and sends nothing. */
START_TEST(far_read_ends_although_nothing_comes)
{
	ck_assert_int_eq(setenv("FI_MRFAB_ANSWER_TIMEOUT", "2000", 1), 0);
	mrf_env_reload();
	open_all(0, FI_MR_ALLOCATED);
	first();
	atomic_store(&sends, LOST_SENDS);
	ck_assert_int_eq(read_far(0, 4096), 0);
	for (unsigned i = 0; i < 8000; i++) {
		struct fi_cq_data_entry entry;

		if (fi_cq_read(p.a.cq, &entry, 1) != -FI_EAGAIN)
			break;
		usleep(1000);
		ck_assert_msg(i < 7999, "never ends");
	}
	close_all();
}
END_TEST

static atomic_bool keep_replies;

static enum fake_fate on_send(uint8_t *msg, size_t *len, bool from_target)
{
	(void)len;
	return from_target && msg[0] == MRF_MSG_REPLY && atomic_load(&keep_replies) ? FAKE_KEEP
										    : FAKE_DELIVER;
}

/* An operation fails on this side while its request that names the pair has no reply. */
START_TEST(far_pair_is_known_although_who_named_it_has_failed)
{
	struct fid_mr *near_mr;
	uint8_t *near;

	open_all(_i, FI_MR_ALLOCATED);
	near = rig->make(RT_DEVICE, 0, LEN);
	near_mr = reg_device(&p.a, near, LEN, FI_READ | FI_WRITE, 9);
	rig->put(near, want, LEN);
	atomic_store(&keep_replies, true);
	fake.on_send = on_send;
	control.fail_next(rig->get_call, 2, rig->lost);
	ck_assert_int_eq(fi_write(p.a.ep, near, LEN, fi_mr_desc(near_mr), p.to, base, key, &p), 0);
	ck_assert(!ends_well());
	want_err(&p.a, &p, FI_EIO, NULL);
	control.fail_next("*", 0, 0);
	atomic_store(&keep_replies, false);
	fake_deliver();
	memcpy(mem, want, 4096);
	ck_assert_int_eq(write_far(0, 4096), 0);
	want_ok(&p.a, &p);
	fake.on_send = NULL;
	ck_assert_msg(fake_connects() == 1, "%u connections", fake_connects());
	must_close(&near_mr->fid);
	rig->unmake(RT_DEVICE, near);
	close_all();
}
END_TEST

/* An operation fails on this side while its requests have gathered: others go on. */
START_TEST(far_others_go_on_when_one_that_has_gathered_fails)
{
	static uint32_t one = 1;
	struct fid_mr *near_mr;
	uint8_t *near;

	open_all(0, FI_MR_ALLOCATED);
	first();
	near = rig->make(RT_DEVICE, 0, LEN);
	near_mr = reg_device(&p.a, near, LEN, FI_READ | FI_WRITE, 9);
	rig->put(near, want, LEN);
	hold(1);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(write_far(PLACES, 4096), 0);
		if (!i)
			want_soon(is_inside());
	}
	/* The third gathers: its first chunk is copied, its second one is not. */
	control.fail_next(rig->get_call, 2, rig->lost);
	ck_assert_int_eq(fi_write(p.a.ep, near, LEN, fi_mr_desc(near_mr), p.to, base, key, near),
			 0);
	ck_assert_int_eq(fi_atomic(p.a.ep, &one, 1, NULL, p.to, base + LEN - 8 - (LEN % 8), key,
				   FI_UINT32, FI_SUM, &one),
			 0);
	ck_assert(!ends_well());
	want_err(&p.a, near, FI_EIO, NULL);
	control.fail_next("*", 0, 0);
	let_go();
	want_ok(&p.a, &p);
	want_ok(&p.a, &p);
	want_ok(&p.a, &one);
	ck_assert_msg(fake_connects() == 1, "%u connections", fake_connects());
	must_close(&near_mr->fid);
	rig->unmake(RT_DEVICE, near);
	close_all();
}
END_TEST

static TCase *far_pair(void)
{
	TCase *tc = tcase_create("far_pair");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, far_buffers_stay_held_while_their_bytes_are_on_the_way, 0, 1);
	tcase_add_loop_test(tc, far_buffers_stay_held_while_requests_gather, 0, 2);
	tcase_add_test(tc, far_read_ends_although_nothing_came);
	tcase_add_test(tc, far_read_ends_although_nothing_comes);
	tcase_add_loop_test(tc, far_pair_is_known_although_who_named_it_has_failed, 0, 1);
	tcase_add_test(tc, far_others_go_on_when_one_that_has_gathered_fails);
	return tc;
}

UNIT_MAIN("far_pair", far_pair)
