/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#include <rdma/fi_eq.h>
#include "obj/cntr.h"
#include "fail_alloc.h"
#include "obj_fixture.h"

static struct parent parent;
static struct fid_cntr *cntr;

static void open_cntr(enum fi_wait_obj wait_obj)
{
	struct fi_cntr_attr attr = { .wait_obj = wait_obj };

	parent_init(&parent, 0);
	ck_quiet(0, mrf_cntr_open(&parent.obj, &attr, &cntr, &parent));
}

static void close_cntr(void)
{
	ck_quiet(0, fi_close(&cntr->fid));
	parent_fini(&parent);
}

static struct mrf_cntr *inner(void)
{
	return mrf_cntr_from_fid(&cntr->fid);
}

START_TEST(cntr_open_refuses_bad_attributes)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *none = NULL;
	struct fid_wait set;

	parent_init(&parent, 0);
#define OPEN() mrf_cntr_open(&parent.obj, &attr, &none, NULL)
	ck_refused(FI_EINVAL, 2042, mrf_cntr_open(&parent.obj, NULL, &none, NULL));
	ck_refused(FI_EINVAL, 2042, mrf_cntr_open(&parent.obj, &attr, NULL, NULL));
	attr.events = (enum fi_cntr_events)1; /* bytes, in later versions */
	ck_refused(FI_ENOSYS, 2043, OPEN());
	attr.events = FI_CNTR_EVENTS_COMP;
	attr.flags = FI_WRITE;
	ck_refused(FI_EBADFLAGS, 2044, OPEN());
	attr.flags = 0;
	attr.wait_obj = FI_WAIT_SET;
	ck_refused(FI_EINVAL, 2045, OPEN());
	attr.wait_set = &set;
	ck_refused(FI_ENOSYS, 2011, OPEN());
	attr.wait_obj = FI_WAIT_POLLFD;
	ck_refused(FI_ENOSYS, 2011, OPEN());
	attr.wait_obj = FI_WAIT_FD;
	ck_refused(FI_ENOMEM, 2046, failing_after(0, OPEN()));
	ck_assert_ptr_null(none);
#undef OPEN
	parent_fini(&parent);
}
END_TEST

START_TEST(cntr_operation_tables_are_complete)
{
	struct fid other = { .fclass = FI_CLASS_CQ };

	open_cntr(FI_WAIT_NONE);
	ck_assert_uint_eq(cntr->fid.ops->size, sizeof(struct fi_ops));
	ck_assert_uint_eq(cntr->ops->size, sizeof(struct fi_ops_cntr));
	ck_assert(cntr->fid.ops->close && cntr->fid.ops->bind && cntr->fid.ops->control &&
		  cntr->fid.ops->ops_open && cntr->fid.ops->tostr && cntr->fid.ops->ops_set);
	ck_assert(cntr->ops->read && cntr->ops->readerr && cntr->ops->add && cntr->ops->set &&
		  cntr->ops->wait && cntr->ops->adderr && cntr->ops->seterr);
	ck_assert_uint_eq(cntr->fid.fclass, FI_CLASS_CNTR);
	ck_assert_ptr_eq(cntr->fid.context, &parent);
	ck_assert_ptr_null(mrf_cntr_from_fid(NULL));
	ck_assert_ptr_null(mrf_cntr_from_fid(&other));
	ck_assert_ptr_eq(mrf_cntr_obj(inner())->parent.target, &parent.obj);
	ck_refused(FI_ENOSYS, 2002, cntr->fid.ops->bind(&cntr->fid, &other, 0));
	close_cntr();
}
END_TEST

START_TEST(cntr_close_is_refused_while_it_is_bound)
{
	struct fid mr = { .fclass = FI_CLASS_MR };
	struct mrf_hold hold;

	open_cntr(FI_WAIT_NONE);
	mrf_obj_hold(&hold, mrf_cntr_obj(inner()), &mr, NULL);
	ck_refused(FI_EBUSY, 2001, fi_close(&cntr->fid));
	mrf_obj_drop(&hold);
	close_cntr();
}
END_TEST

START_TEST(cntr_value_and_error_value_move_apart)
{
	open_cntr(FI_WAIT_NONE);
	ck_assert_uint_eq(fi_cntr_read(cntr), 0);
	ck_quiet(0, fi_cntr_add(cntr, 3));
	mrf_cntr_add(inner(), 4);
	ck_quiet(0, fi_cntr_adderr(cntr, 1));
	mrf_cntr_adderr(inner(), 1);
	ck_assert_uint_eq(fi_cntr_read(cntr), 7);
	ck_assert_uint_eq(fi_cntr_readerr(cntr), 2);
	ck_quiet(0, fi_cntr_set(cntr, 100));
	ck_quiet(0, fi_cntr_seterr(cntr, 50));
	ck_assert_uint_eq(fi_cntr_read(cntr), 100);
	ck_assert_uint_eq(fi_cntr_readerr(cntr), 50);
	ck_quiet(0, fi_cntr_set(cntr, UINT64_MAX));
	ck_assert_uint_eq(fi_cntr_read(cntr), UINT64_MAX);
	close_cntr();
}
END_TEST

static int polls;

static void poll_adds(struct mrf_source *source)
{
	(void)source;
	polls++;
	mrf_cntr_add(inner(), 1);
}

static void poll_fails(struct mrf_source *source)
{
	(void)source;
	mrf_cntr_adderr(inner(), 1);
}

static void arm_nothing(struct mrf_source *source, bool fired)
{
	(void)source;
	(void)fired;
}

START_TEST(cntr_reads_poll_the_sources)
{
	struct mrf_source source = { .poll = poll_adds, .arm = arm_nothing, .fd = -1 };
	struct mrf_wait_link link = { .wait = NULL };

	open_cntr(FI_WAIT_NONE);
	polls = 0;
	ck_assert_int_eq(mrf_wait_link(mrf_cntr_obj(inner())->wait, &link, &source), 0);
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	ck_assert_uint_eq(fi_cntr_readerr(cntr), 0);
	ck_assert_int_eq(polls, 2);
	ck_assert_uint_eq(fi_cntr_read(cntr), 3);
	mrf_wait_unlink(&link);
	close_cntr();
}
END_TEST

START_TEST(cntr_wait_drives_the_sources_to_the_threshold)
{
	struct mrf_source source = { .poll = poll_adds, .arm = arm_nothing, .fd = -1 };
	struct mrf_wait_link link = { .wait = NULL };

	open_cntr(FI_WAIT_UNSPEC);
	ck_assert_int_eq(mrf_wait_link(mrf_cntr_obj(inner())->wait, &link, &source), 0);
	ck_quiet(0, fi_cntr_wait(cntr, 1, 0));
	ck_quiet(0, fi_cntr_wait(cntr, 5, -1));
	mrf_wait_unlink(&link);
	close_cntr();
}
END_TEST

START_TEST(cntr_wait_needs_a_wait_object)
{
	open_cntr(FI_WAIT_NONE);
	ck_refused(FI_EINVAL, 2019, fi_cntr_wait(cntr, 0, 0));
	close_cntr();
}
END_TEST

static void *add_soon(void *arg)
{
	usleep(20000);
	ck_assert_int_eq(fi_cntr_add(cntr, 1), 0);
	return arg;
}

START_TEST(cntr_wait_without_a_wait_object_waits_when_not_strict)
{
	static struct unit_capture cap;
	pthread_t adds;

	if (!unit_forks())
		return;
	setenv("FI_MRFAB_STRICT", "off", 1);
	open_cntr(FI_WAIT_NONE);
	unit_capture(&cap);
	ck_assert_int_eq(fi_cntr_add(cntr, 3), 0);
	ck_assert_int_eq(fi_cntr_wait(cntr, 2, 1000), 0);
	ck_assert_int_eq(fi_cntr_wait(cntr, 4, 30), -FI_ETIMEDOUT);
	ck_assert_int_eq(pthread_create(&adds, NULL, add_soon, NULL), 0);
	ck_assert_int_eq(fi_cntr_wait(cntr, 4, -1), 0);
	pthread_join(adds, NULL);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 1);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W2047"));
	close_cntr();
	unsetenv("FI_MRFAB_STRICT");
}
END_TEST

START_TEST(cntr_wait_times_out_in_time)
{
	double start;

	open_cntr(FI_WAIT_UNSPEC);
	ck_quiet(0, fi_cntr_wait(cntr, 0, 0));
	ck_quiet(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 1, 0));
	start = now_ms();
	ck_quiet(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 1, 40));
	ck_took(start, 40);
	fi_cntr_add(cntr, 2);
	ck_quiet(0, fi_cntr_wait(cntr, 1, -1));
	ck_quiet(0, fi_cntr_wait(cntr, 2, -1));
	close_cntr();
}
END_TEST

START_TEST(cntr_wait_ends_with_an_error_that_came_before_it)
{
	open_cntr(FI_WAIT_UNSPEC);
	mrf_cntr_adderr(inner(), 1);
	ck_quiet(-FI_EAVAIL, fi_cntr_wait(cntr, 1, 0));
	ck_quiet(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 1, 0));
	mrf_cntr_adderr(inner(), 1);
	ck_quiet(-FI_EAVAIL, fi_cntr_wait(cntr, 1, -1));
	ck_quiet(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 1, 20));
	close_cntr();
}
END_TEST

START_TEST(cntr_wait_ends_with_an_error_that_its_own_progress_finds)
{
	struct mrf_source source = { .poll = poll_fails, .arm = arm_nothing, .fd = -1 };
	struct mrf_wait_link link = { .wait = NULL };

	open_cntr(FI_WAIT_UNSPEC);
	ck_assert_int_eq(mrf_wait_link(mrf_cntr_obj(inner())->wait, &link, &source), 0);
	ck_quiet(-FI_EAVAIL, fi_cntr_wait(cntr, 1, 0));
	fi_cntr_read(cntr);
	ck_quiet(-FI_EAVAIL, fi_cntr_wait(cntr, 1, -1));
	mrf_wait_unlink(&link);
	close_cntr();
}
END_TEST

START_TEST(cntr_wait_says_no_error_that_the_application_knows)
{
	open_cntr(FI_WAIT_UNSPEC);
	mrf_cntr_adderr(inner(), 1);
	ck_assert_uint_eq(fi_cntr_readerr(cntr), 1);
	ck_quiet(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 1, 0));
	mrf_cntr_adderr(inner(), 1);
	ck_quiet(0, fi_cntr_seterr(cntr, 7));
	ck_quiet(-FI_ETIMEDOUT, fi_cntr_wait(cntr, 1, 0));
	ck_quiet(0, fi_cntr_adderr(cntr, 1));
	ck_assert_uint_eq(fi_cntr_read(cntr), 0);
	ck_quiet(0, fi_cntr_wait(cntr, 0, 0));
	ck_quiet(-FI_EAVAIL, fi_cntr_wait(cntr, 1, 0));
	close_cntr();
}
END_TEST

struct waiter {
	uint64_t threshold;
	int ret;
};

static void *wait_thread(void *arg)
{
	struct waiter *w = arg;

	w->ret = fi_cntr_wait(cntr, w->threshold, -1);
	return NULL;
}

static void await_blocked(int n)
{
	while (atomic_load(&mrf_cntr_obj(inner())->wait->waiters) < n)
		sleep_ms(1);
	sleep_ms(20);
}

START_TEST(cntr_wait_is_woken_at_its_threshold)
{
	struct waiter w[2] = { { .threshold = 2 }, { .threshold = 1000 } };
	pthread_t thread[2];
	int i;

	open_cntr(FI_WAIT_UNSPEC);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, wait_thread, &w[i]), 0);
	await_blocked(2);
	ck_refused(FI_EBUSY, 2013, fi_close(&cntr->fid));
	mrf_cntr_add(inner(), 1);
	mrf_cntr_add(inner(), 1);
	pthread_join(thread[0], NULL);
	ck_assert_int_eq(w[0].ret, 0);
	await_blocked(1);
	fi_cntr_set(cntr, 1000);
	pthread_join(thread[1], NULL);
	ck_assert_int_eq(w[1].ret, 0);
	close_cntr();
}
END_TEST

START_TEST(cntr_wait_of_every_thread_ends_when_the_error_value_changes)
{
	struct waiter w[2] = { { .threshold = 2 }, { .threshold = 3 } };
	pthread_t thread[2];
	int i, round;

	open_cntr(FI_WAIT_UNSPEC);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 2; i++)
			ck_assert_int_eq(pthread_create(&thread[i], NULL, wait_thread, &w[i]), 0);
		await_blocked(2);
		if (round)
			fi_cntr_seterr(cntr, 0);
		else
			mrf_cntr_adderr(inner(), 1);
		for (i = 0; i < 2; i++) {
			pthread_join(thread[i], NULL);
			ck_assert_int_eq(w[i].ret, -FI_EAVAIL);
		}
	}
	close_cntr();
}
END_TEST

enum { ADDERS = 4, EACH = 20000 };

static void *add_many(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < EACH; i++)
		mrf_cntr_add(inner(), 1);
	return NULL;
}

START_TEST(cntr_counts_every_add_of_many_threads)
{
	pthread_t thread[ADDERS];
	int i;

	open_cntr(FI_WAIT_UNSPEC);
	for (i = 0; i < ADDERS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, add_many, NULL), 0);
	ck_quiet(0, fi_cntr_wait(cntr, ADDERS * EACH, 60000));
	for (i = 0; i < ADDERS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(fi_cntr_read(cntr), ADDERS * EACH);
	close_cntr();
}
END_TEST

START_TEST(cntr_trywait_tells_of_each_change_once)
{
	struct pollfd p = { .events = POLLIN };

	open_cntr(FI_WAIT_FD);
	ck_quiet(0, fi_control(&cntr->fid, FI_GETWAIT, &p.fd));
	ck_quiet(0, mrf_cntr_trywait(inner()));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	fi_cntr_add(cntr, 1);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	ck_quiet(-FI_EAGAIN, mrf_cntr_trywait(inner()));
	ck_quiet(0, mrf_cntr_trywait(inner()));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	fi_cntr_adderr(cntr, 1);
	ck_quiet(-FI_EAGAIN, mrf_cntr_trywait(inner()));
	ck_quiet(0, mrf_cntr_trywait(inner()));
	close_cntr();
}
END_TEST

START_TEST(cntr_control_answers_wait_object_and_flags)
{
	uint64_t flags = 77;
	int fd;

	open_cntr(FI_WAIT_NONE);
	ck_refused(FI_ENODATA, 2017, fi_control(&cntr->fid, FI_GETWAIT, &fd));
	ck_refused(FI_EINVAL, 2016, mrf_cntr_trywait(inner()));
	ck_quiet(0, fi_control(&cntr->fid, FI_GETOPSFLAG, &flags));
	ck_assert_uint_eq(flags, 0);
	ck_quiet(0, fi_control(&cntr->fid, FI_SETOPSFLAG, &flags));
	flags = 1;
	ck_refused(FI_EBADFLAGS, 2041, fi_control(&cntr->fid, FI_SETOPSFLAG, &flags));
	ck_refused(FI_EINVAL, 2040, fi_control(&cntr->fid, FI_GETOPSFLAG, NULL));
	ck_refused(FI_ENOSYS, 2003, fi_control(&cntr->fid, FI_ALIAS, &flags));
	close_cntr();
}
END_TEST

static TCase *tcase_cntr(void)
{
	TCase *tc = tcase_create("cntr");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, cntr_open_refuses_bad_attributes);
	tcase_add_test(tc, cntr_operation_tables_are_complete);
	tcase_add_test(tc, cntr_close_is_refused_while_it_is_bound);
	tcase_add_test(tc, cntr_value_and_error_value_move_apart);
	tcase_add_test(tc, cntr_reads_poll_the_sources);
	tcase_add_test(tc, cntr_wait_drives_the_sources_to_the_threshold);
	tcase_add_test(tc, cntr_wait_needs_a_wait_object);
	tcase_add_test(tc, cntr_wait_without_a_wait_object_waits_when_not_strict);
	tcase_add_test(tc, cntr_wait_times_out_in_time);
	tcase_add_test(tc, cntr_wait_ends_with_an_error_that_came_before_it);
	tcase_add_test(tc, cntr_wait_ends_with_an_error_that_its_own_progress_finds);
	tcase_add_test(tc, cntr_wait_says_no_error_that_the_application_knows);
	tcase_add_test(tc, cntr_wait_is_woken_at_its_threshold);
	tcase_add_test(tc, cntr_wait_of_every_thread_ends_when_the_error_value_changes);
	tcase_add_test(tc, cntr_counts_every_add_of_many_threads);
	tcase_add_test(tc, cntr_trywait_tells_of_each_change_once);
	tcase_add_test(tc, cntr_control_answers_wait_object_and_flags);
	return tc;
}

UNIT_MAIN("cntr", tcase_cntr)
