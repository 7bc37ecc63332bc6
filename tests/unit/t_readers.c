/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What threads that read from one queue do to each other, and what is left when one is cancelled.
 */
#include <pthread.h>
#include <rdma/fi_eq.h>
#include "obj/cntr.h"
#include "obj/cq_int.h"
#include "obj/eq.h"
#include "obj_fixture.h"

#define ERRORS 300

static struct parent domain, fabric;
static struct fid_cq *cq;
static struct fid_eq *eq;
static struct fid_cntr *cntr;

static void setup(void)
{
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_UNSPEC };

	parent_init(&domain, 0);
	parent_init(&fabric, FI_VERSION(1, 17));
	ck_quiet(0, mrf_cq_open(&domain.obj, &cq_attr, &cq, NULL));
	ck_quiet(0, mrf_eq_open(&fabric.obj, &eq_attr, &eq, NULL));
	ck_quiet(0, mrf_cntr_open(&domain.obj, &cntr_attr, &cntr, NULL));
}

static void teardown(void)
{
	ck_quiet(0, fi_close(&cq->fid));
	ck_quiet(0, fi_close(&eq->fid));
	ck_quiet(0, fi_close(&cntr->fid));
	parent_fini(&domain);
	parent_fini(&fabric);
}

static void put_errors(unsigned from, unsigned count)
{
	struct mrf_comp_err err = { .err = FI_EIO, .prov_errno = 1 };
	struct fi_eq_err_entry entry = { .err = FI_EIO, .prov_errno = 1 };

	for (; count--; from++) {
		snprintf(err.text, sizeof(err.text), "reason %u", from);
		mrf_cq_write_err(mrf_cq_from_fid(&cq->fid), &err);
		ck_assert_int_eq(mrf_eq_write_err(mrf_eq_from_fid(&eq->fid), &entry, err.text), 0);
	}
}

/* --- texts of errors -------------------------------------------------------------- */

static const char *cq_text(void)
{
	struct fi_cq_err_entry err = { 0 };

	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	return fi_cq_strerror(cq, err.prov_errno, err.err_data, NULL, 0);
}

static const char *eq_text(void)
{
	struct fi_eq_err_entry err = { 0 };

	ck_assert_int_eq(fi_eq_readerr(eq, &err, 0), sizeof(err));
	return fi_eq_strerror(eq, err.prov_errno, err.err_data, NULL, 0);
}

static void *read_all(void *arg)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_eq_err_entry eq_err = { 0 };

	(void)arg;
	while (fi_cq_readerr(cq, &err, 0) == 1)
		err = (struct fi_cq_err_entry){ 0 };
	while (fi_eq_readerr(eq, &eq_err, 0) > 0)
		eq_err = (struct fi_eq_err_entry){ 0 };
	return NULL;
}

START_TEST(a_text_stays_while_other_threads_read)
{
	const char *of_cq, *of_eq;
	pthread_t thread;

	put_errors(0, ERRORS);
	of_cq = cq_text();
	of_eq = eq_text();
	ck_assert_int_eq(pthread_create(&thread, NULL, read_all, NULL), 0);
	pthread_join(thread, NULL);
	/* What was given back is used again. */
	put_errors(1000, ERRORS);
	ck_assert_str_eq(of_cq, "reason 0");
	ck_assert_str_eq(of_eq, "reason 0");
	ck_assert_str_eq(cq_text(), "reason 1000");
	ck_assert_str_eq(eq_text(), "reason 1000");
	read_all(NULL);
}
END_TEST

static void *read_texts(void *arg)
{
	struct fi_cq_err_entry err;
	unsigned *read = arg;

	while (atomic_load(&mrf_cq_of(cq)->pending)) {
		err = (struct fi_cq_err_entry){ 0 };
		if (fi_cq_readerr(cq, &err, 0) != 1)
			continue;
		sched_yield();
		*read += !strncmp(fi_cq_strerror(cq, 1, err.err_data, NULL, 0), "reason ", 7);
	}
	return NULL;
}

START_TEST(two_threads_read_errors_and_their_texts)
{
	unsigned read[2] = { 0, 0 };
	pthread_t thread[2];
	int i;

	put_errors(0, ERRORS);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, read_texts, &read[i]), 0);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(read[0] + read[1], ERRORS);
	read_all(NULL);
}
END_TEST

/* --- cancelling ------------------------------------------------------------------- */

static void *sleep_on_cq(void *arg)
{
	struct fi_cq_entry entry;

	(void)arg;
	fi_cq_sread(cq, &entry, 1, NULL, -1);
	return NULL;
}

static void *sleep_on_eq(void *arg)
{
	struct fi_eq_entry entry;
	uint32_t event;

	(void)arg;
	fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0);
	return NULL;
}

static void *sleep_on_cntr(void *arg)
{
	(void)arg;
	fi_cntr_wait(cntr, 1000, -1);
	return NULL;
}

static void *(*const sleeps[])(void *arg) = { sleep_on_cq, sleep_on_eq, sleep_on_cntr };

START_TEST(a_thread_that_is_cancelled_while_it_sleeps_leaves_nothing)
{
	pthread_t thread;
	void *ret;
	int early;

	for (early = 0; early < 2; early++) {
		ck_assert_int_eq(pthread_create(&thread, NULL, sleeps[_i], NULL), 0);
		/* Asleep, most of the time, or just about to be. */
		if (!early)
			sleep_ms(30);
		ck_assert_int_eq(pthread_cancel(thread), 0);
		ck_assert_int_eq(pthread_join(thread, &ret), 0);
		ck_assert_ptr_eq(ret, PTHREAD_CANCELED);
	}
	/* Teardown closes all. */
}
END_TEST

START_TEST(a_thread_that_is_not_to_be_cancelled_is_not)
{
	struct fi_cq_entry entry;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	ck_assert_int_eq(fi_cq_sread(cq, &entry, 1, NULL, 5), -FI_EAGAIN);
	ck_assert_int_eq(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state), 0);
	ck_assert_int_eq(state, PTHREAD_CANCEL_DISABLE);
}
END_TEST

START_TEST(a_thread_on_its_way_out_of_a_read_holds_the_queue)
{
	mrf_cq_of(cq)->sreads = 1;
	ck_refused(FI_EBUSY, 2013, fi_close(&cq->fid));
	mrf_cq_of(cq)->sreads = 0;
}
END_TEST

static TCase *tcase_readers(void)
{
	TCase *tc = tcase_create("readers");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_text_stays_while_other_threads_read);
	tcase_add_test(tc, two_threads_read_errors_and_their_texts);
	tcase_add_loop_test(tc, a_thread_that_is_cancelled_while_it_sleeps_leaves_nothing, 0, 3);
	tcase_add_test(tc, a_thread_that_is_not_to_be_cancelled_is_not);
	tcase_add_test(tc, a_thread_on_its_way_out_of_a_read_holds_the_queue);
	return tc;
}

UNIT_MAIN("readers", tcase_readers)
