/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many peers at one host, dialled at once: a few have permits, the others wait, and
 * none fails because of that.
 */
#include <limits.h>
#include "contract/budget.h"
#include "ep_fixture.h"

#define MANY 40

static struct node a, b;
static struct fid_ep *ep[MANY]; /* of b */
static fi_addr_t to[MANY];
static struct fid_mr *mr;
static uint8_t src[MANY], dst[MANY];
static int64_t since;

/* Addresses that were compared, which is what looking for a host costs. */
static atomic_uint compared;

bool __real_mrf_addr_same_host(const struct sockaddr *x, const struct sockaddr *y);
bool __wrap_mrf_addr_same_host(const struct sockaddr *x, const struct sockaddr *y);

bool __wrap_mrf_addr_same_host(const struct sockaddr *x, const struct sockaddr *y)
{
	atomic_fetch_add(&compared, 1);
	return __real_mrf_addr_same_host(x, y);
}

static void setup(void)
{
	fixture_setup();
	node_open(&a, PLAIN);
	node_open(&b, PLAIN);
	fill(src, sizeof(src), 1);
	memset(dst, 0, sizeof(dst));
	mr = node_reg(&b, dst, sizeof(dst), FI_REMOTE_WRITE, 7);
	for (int i = 0; i < MANY; i++) {
		size_t len = sizeof(union mrf_addr);
		union mrf_addr addr;

		ck_assert_int_eq(node_try_ep(&b, PLAIN, &ep[i]), 0);
		ck_assert_int_eq(fi_getname(&ep[i]->fid, &addr, &len), 0);
		to[i] = node_insert_port(&a, mrf_addr_port(&addr));
	}
}

static void teardown(void)
{
	for (int i = 0; i < MANY; i++)
		must_close(&ep[i]->fid);
	must_close(&mr->fid);
	node_close(&a);
	node_close(&b);
	fixture_teardown();
}

static void target_stop(bool stop)
{
	fake_stop(node_agent(&b)->cm, node_agent(&b)->cq, stop);
}

/* A byte to each, while the target's agent does not answer. */
static void write_to_all(void)
{
	target_stop(true);
	since = mrf_now_ms();
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(fi_write(a.ep, src + i, 1, NULL, to[i], (uint64_t)i, 7, src + i),
				 0);
	want_soon(fake_calls(FAKE_CONNECT) >= MRF_PERMITS);
}

/* Any time that matters here would be over only on a machine that stood still. */
static bool in_time(void)
{
	return mrf_now_ms() - since < MRF_PERMIT_SILENT_MS;
}

START_TEST(permits_are_taken_by_a_few_and_by_all_in_the_end)
{
	write_to_all();
	usleep(20000);
	if (fake_calls(FAKE_CONNECT) != MRF_PERMITS)
		ck_assert(!in_time());
	target_stop(false);
	for (int i = 0; i < MANY; i++)
		want_ok(&a, NULL);
	ck_assert(filled(dst, sizeof(dst), 1));
	if (in_time())
		ck_assert_uint_eq(fake_calls(FAKE_CONNECT), MANY);
}
END_TEST

START_TEST(permits_of_operations_that_were_canceled_go_to_others)
{
	int i, ok = 0, canceled = 0;

	write_to_all();
	for (i = 0; i < MANY - 1; i++)
		canceled += !fi_cancel(&a.ep->fid, src + i);
	ck_assert_int_ge(canceled, MANY - 1 - MRF_PERMITS);
	target_stop(false);
	for (i = 0; i < MANY; i++) {
		struct fi_cq_err_entry err = { 0 };
		struct fi_cq_data_entry e;
		ssize_t ret;

		want_soon((ret = fi_cq_read(a.cq, &e, 1)) != -FI_EAGAIN);
		ok += ret == 1;
		if (ret == -FI_EAVAIL) {
			ck_assert_int_eq(fi_cq_readerr(a.cq, &err, 0), 1);
			ck_assert_int_eq(err.err, FI_ECANCELED);
		}
	}
	ck_assert_int_eq(ok, MANY - canceled);
	fake_copy(src, dst + MANY - 1, 1);
	ck_assert(src[0] != 0);
}
END_TEST

START_TEST(permits_are_not_waited_for_at_a_host_that_is_silent)
{
	write_to_all();
	want_soon(fake_calls(FAKE_CONNECT) >= MANY);
	target_stop(false);
	for (int i = 0; i < MANY; i++)
		want_ok(&a, NULL);
}
END_TEST

static void setup_nowhere(void)
{
	fixture_setup_impatient();
	node_open(&a, PLAIN);
}

static void teardown_nowhere(void)
{
	node_close(&a);
	fixture_teardown();
}

START_TEST(permits_end_at_a_host_that_is_not_found)
{
	int i;

	compared = 0;
	fake_unresolved(UINT_MAX);
	for (i = 0; i < MANY; i++)
		to[i] = node_insert_port(&a, (uint16_t)(20000 + i));
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(fi_write(a.ep, src, 1, NULL, to[i], 0, 7, NULL), 0);
	for (i = 0; i < MANY; i++) {
		struct fi_cq_err_entry err = { 0 };

		want_soon(fi_cq_readerr(a.cq, &err, 0) == 1);
		ck_assert_int_eq(err.err, FI_ETIMEDOUT);
	}
	/* All are at one host: what a peer costs does not depend on how many wait there. */
	ck_assert_uint_le(compared, 2 * MANY);
}
END_TEST

static TCase *tcase_permits(void)
{
	TCase *tc = tcase_create("permits");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, permits_are_taken_by_a_few_and_by_all_in_the_end);
	tcase_add_test(tc, permits_of_operations_that_were_canceled_go_to_others);
	tcase_add_test(tc, permits_are_not_waited_for_at_a_host_that_is_silent);
	return tc;
}

static TCase *tcase_nowhere(void)
{
	TCase *tc = tcase_create("nowhere");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup_nowhere, teardown_nowhere);
	tcase_add_test(tc, permits_end_at_a_host_that_is_not_found);
	return tc;
}

UNIT_MAIN("permits", tcase_permits, tcase_nowhere)
