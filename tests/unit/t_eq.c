/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#include <signal.h>
#include <rdma/fi_eq.h>
#include "obj/eq.h"
#include "fail_alloc.h"
#include "obj_fixture.h"

static struct parent parent;
static struct fid_eq *eq;

static void open_eq(enum fi_wait_obj wait_obj, uint64_t flags)
{
	struct fi_eq_attr attr = { .wait_obj = wait_obj, .flags = flags };

	parent_init(&parent, 0);
	parent.obj.fid = &parent.fabric.fid;
	parent.fabric.api_version = FI_VERSION(1, 17);
	ck_quiet(0, mrf_eq_open(&parent.obj, &attr, &eq, &parent));
}

static void close_eq(void)
{
	ck_quiet(0, fi_close(&eq->fid));
	parent_fini(&parent);
}

static struct mrf_eq *inner(void)
{
	return mrf_eq_from_fid(&eq->fid);
}

static void put_err(int err, const char *text)
{
	struct fi_eq_err_entry e = {
		.fid = &eq->fid, .context = &parent, .data = 5, .err = err, .prov_errno = 2206
	};

	ck_assert_int_eq(mrf_eq_write_err(inner(), &e, text), 0);
}

START_TEST(eq_open_refuses_bad_attributes)
{
	struct fi_eq_attr attr = { 0 };
	struct fid_eq *none = NULL;
	struct fid_wait set;

	parent_init(&parent, 0);
	ck_refused(FI_EINVAL, 2069, mrf_eq_open(&parent.obj, NULL, &none, NULL));
	ck_refused(FI_EINVAL, 2069, mrf_eq_open(&parent.obj, &attr, NULL, NULL));
	attr.flags = FI_READ;
	ck_refused(FI_EBADFLAGS, 2070, mrf_eq_open(&parent.obj, &attr, &none, NULL));
	attr.flags = FI_AFFINITY | FI_WRITE;
	attr.wait_obj = FI_WAIT_SET;
	ck_refused(FI_EINVAL, 2071, mrf_eq_open(&parent.obj, &attr, &none, NULL));
	attr.wait_set = &set;
	ck_refused(FI_ENOSYS, 2011, mrf_eq_open(&parent.obj, &attr, &none, NULL));
	attr.wait_obj = FI_WAIT_MUTEX_COND;
	ck_refused(FI_ENOSYS, 2011, mrf_eq_open(&parent.obj, &attr, &none, NULL));
	attr.wait_obj = FI_WAIT_FD;
	ck_refused(FI_ENOMEM, 2072, failing_after(0, mrf_eq_open(&parent.obj, &attr, &none, NULL)));
	ck_assert_ptr_null(none);
	parent_fini(&parent);
}
END_TEST

START_TEST(eq_operation_tables_are_complete)
{
	struct fid other = { .fclass = FI_CLASS_CQ };

	open_eq(FI_WAIT_NONE, 0);
	ck_assert_uint_eq(eq->fid.ops->size, sizeof(struct fi_ops));
	ck_assert_uint_eq(eq->ops->size, sizeof(struct fi_ops_eq));
	ck_assert(eq->fid.ops->close && eq->fid.ops->bind && eq->fid.ops->control &&
		  eq->fid.ops->ops_open && eq->fid.ops->tostr && eq->fid.ops->ops_set);
	ck_assert(eq->ops->read && eq->ops->readerr && eq->ops->write && eq->ops->sread &&
		  eq->ops->strerror);
	ck_assert_uint_eq(eq->fid.fclass, FI_CLASS_EQ);
	ck_assert_ptr_eq(eq->fid.context, &parent);
	ck_assert_ptr_null(mrf_eq_from_fid(NULL));
	ck_assert_ptr_null(mrf_eq_from_fid(&other));
	ck_refused(FI_ENOSYS, 2002, eq->fid.ops->bind(&eq->fid, &other, 0));
	ck_refused(FI_ENOSYS, 2003, fi_control(&eq->fid, FI_ENABLE, NULL));
	close_eq();
}
END_TEST

START_TEST(eq_close_is_refused_while_it_is_bound_and_frees_the_rest)
{
	struct fid av = { .fclass = FI_CLASS_AV };
	struct mrf_hold hold;

	open_eq(FI_WAIT_NONE, FI_WRITE);
	mrf_obj_hold(&hold, mrf_eq_obj(inner()), &av, NULL);
	ck_refused(FI_EBUSY, 2001, fi_close(&eq->fid));
	mrf_obj_drop(&hold);
	ck_assert_int_eq(fi_eq_write(eq, 1, "x", 1, 0), 1);
	put_err(FI_EIO, "y");
	close_eq();
}
END_TEST

START_TEST(eq_write_needs_the_flag_it_was_opened_with)
{
	open_eq(FI_WAIT_NONE, 0);
	ck_refused(FI_EINVAL, 2061, fi_eq_write(eq, 1, "x", 1, 0));
	close_eq();
	open_eq(FI_WAIT_NONE, FI_WRITE);
	ck_refused(FI_EBADFLAGS, 2062, fi_eq_write(eq, 1, "x", 1, FI_PEEK));
	ck_refused(FI_EINVAL, 2063, fi_eq_write(eq, 1, NULL, 1, 0));
	ck_refused(FI_ENOMEM, 2060, fi_eq_write(eq, 1, "x", SIZE_MAX, 0));
	ck_quiet(0, fi_eq_write(eq, 1, NULL, 0, 0));
	close_eq();
}
END_TEST

START_TEST(eq_read_returns_events_in_order_with_their_bytes)
{
	struct fi_eq_entry in = { .fid = NULL, .context = &parent, .data = 9 }, out;
	char text[16];
	uint32_t event = 0;

	open_eq(FI_WAIT_NONE, FI_WRITE);
	ck_quiet(-FI_EAGAIN, fi_eq_read(eq, &event, &out, sizeof(out), 0));
	ck_assert_int_eq(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	ck_assert_int_eq(mrf_eq_write(inner(), 1234, "hello", 6), 0);
	ck_assert_int_eq(fi_eq_write(eq, 5, NULL, 0, 0), 0);
	ck_quiet(sizeof(in), fi_eq_read(eq, &event, &out, sizeof(out), 0));
	ck_assert_uint_eq(event, FI_NOTIFY);
	ck_assert_mem_eq(&in, &out, sizeof(in));
	ck_quiet(6, fi_eq_read(eq, &event, text, sizeof(text), 0));
	ck_assert_uint_eq(event, 1234);
	ck_assert_str_eq(text, "hello");
	ck_quiet(0, fi_eq_read(eq, &event, NULL, 0, 0));
	ck_assert_uint_eq(event, 5);
	ck_quiet(-FI_EAGAIN, fi_eq_read(eq, &event, &out, sizeof(out), 0));
	close_eq();
}
END_TEST

START_TEST(eq_peek_leaves_the_event)
{
	char text[8];
	uint32_t event;
	int i;

	open_eq(FI_WAIT_UNSPEC, FI_WRITE);
	ck_assert_int_eq(fi_eq_write(eq, 3, "abc", 4, 0), 4);
	for (i = 0; i < 2; i++) {
		ck_quiet(4, fi_eq_read(eq, &event, text, sizeof(text), FI_PEEK));
		ck_assert_str_eq(text, "abc");
	}
	ck_quiet(4, fi_eq_sread(eq, &event, text, sizeof(text), -1, FI_PEEK));
	ck_quiet(4, fi_eq_read(eq, &event, text, sizeof(text), 0));
	ck_quiet(-FI_EAGAIN, fi_eq_read(eq, &event, text, sizeof(text), FI_PEEK));
	close_eq();
}
END_TEST

START_TEST(eq_event_stays_when_the_buffer_is_too_small)
{
	char text[8] = "";
	uint32_t event = 77;

	open_eq(FI_WAIT_UNSPEC, FI_WRITE);
	ck_assert_int_eq(fi_eq_write(eq, 3, "abc", 4, 0), 4);
	ck_refused(FI_ETOOSMALL, 2066, fi_eq_read(eq, &event, text, 3, 0));
	ck_refused(FI_ETOOSMALL, 2066, fi_eq_sread(eq, &event, text, 3, -1, 0));
	ck_assert_uint_eq(event, 77);
	ck_assert_str_eq(text, "");
	ck_quiet(4, fi_eq_read(eq, &event, text, 4, 0));
	close_eq();
}
END_TEST

START_TEST(eq_bad_read_arguments_are_refused)
{
	struct fi_eq_err_entry err;
	uint32_t event;
	char text[8];

	open_eq(FI_WAIT_UNSPEC, 0);
	ck_refused(FI_EINVAL, 2064, fi_eq_read(eq, NULL, text, 8, 0));
	ck_refused(FI_EINVAL, 2064, fi_eq_read(eq, &event, NULL, 8, 0));
	ck_refused(FI_EINVAL, 2064, fi_eq_sread(eq, &event, NULL, 8, 0, 0));
	ck_refused(FI_EBADFLAGS, 2065, fi_eq_read(eq, &event, text, 8, FI_MORE));
	ck_refused(FI_EBADFLAGS, 2065, fi_eq_sread(eq, &event, text, 8, 0, FI_MORE));
	ck_refused(FI_EINVAL, 2067, fi_eq_readerr(eq, NULL, 0));
	ck_refused(FI_EBADFLAGS, 2068, fi_eq_readerr(eq, &err, FI_MORE));
	close_eq();
}
END_TEST

START_TEST(eq_error_is_reported_in_its_place_and_stays_until_taken)
{
	struct fi_eq_err_entry err = { 0 };
	uint32_t event;
	char text[8];

	open_eq(FI_WAIT_NONE, FI_WRITE);
	ck_assert_int_eq(fi_eq_write(eq, 3, "abc", 4, 0), 4);
	put_err(FI_EADDRNOTAVAIL, "no such host");
	ck_quiet(-FI_EAGAIN, fi_eq_readerr(eq, &err, 0));
	ck_quiet(4, fi_eq_read(eq, &event, text, 8, 0));
	ck_quiet(-FI_EAVAIL, fi_eq_read(eq, &event, text, 8, 0));
	ck_quiet(-FI_EAVAIL, fi_eq_read(eq, &event, text, 8, FI_PEEK));
	ck_quiet(sizeof(err), fi_eq_readerr(eq, &err, FI_PEEK));
	memset(&err, 0, sizeof(err));
	ck_quiet(sizeof(err), fi_eq_readerr(eq, &err, 0));
	ck_assert_ptr_eq(err.fid, &eq->fid);
	ck_assert_ptr_eq(err.context, &parent);
	ck_assert_uint_eq(err.data, 5);
	ck_assert_int_eq(err.err, FI_EADDRNOTAVAIL);
	ck_assert_int_eq(err.prov_errno, 2206);
	ck_assert_str_eq(err.err_data, "no such host");
	ck_assert_uint_eq(err.err_data_size, sizeof("no such host"));
	ck_assert_str_eq(fi_eq_strerror(eq, err.prov_errno, err.err_data, NULL, 0), "no such host");
	ck_quiet(-FI_EAGAIN, fi_eq_readerr(eq, &err, 0));
	ck_quiet(-FI_EAGAIN, fi_eq_read(eq, &event, text, 8, 0));
	close_eq();
}
END_TEST

/* --- events that are made before they happen -------------------------------------- */

static struct mrf_eq_event *slot[3];

static void make_events(void)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		ck_assert_ptr_nonnull(slot[i] = mrf_eq_event_new());
}

START_TEST(eq_event_made_before_is_read_like_any_other)
{
	struct fi_eq_entry entry = { .context = &parent }, got;
	struct fi_eq_err_entry err = { .context = slot, .err = FI_EIO }, got_err = { 0 };
	char longer[2 * MRF_EQ_TEXT];
	uint32_t event;

	memset(longer, 'z', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	open_eq(FI_WAIT_UNSPEC, 0);
	make_events();
	mrf_eq_post(inner(), &slot[0], FI_MR_COMPLETE, &entry);
	mrf_eq_post_err(inner(), &slot[1], &err, "why");
	mrf_eq_post_err(inner(), &slot[2], &err, longer);
	ck_quiet(sizeof(got), fi_eq_read(eq, &event, &got, sizeof(got), FI_PEEK));
	ck_assert_ptr_nonnull(slot[0]);
	ck_quiet(sizeof(got), fi_eq_read(eq, &event, &got, sizeof(got), 0));
	ck_assert_ptr_null(slot[0]);
	ck_assert_uint_eq(event, FI_MR_COMPLETE);
	ck_assert_ptr_eq(got.context, &parent);
	ck_quiet(sizeof(err), fi_eq_readerr(eq, &got_err, 0));
	ck_assert_ptr_null(slot[1]);
	ck_assert_ptr_eq(got_err.context, slot);
	ck_assert_str_eq(got_err.err_data, "why");
	got_err.err_data = NULL;
	ck_quiet(sizeof(err), fi_eq_readerr(eq, &got_err, 0));
	ck_assert_uint_eq(got_err.err_data_size, MRF_EQ_TEXT);
	ck_assert_uint_eq(strlen(got_err.err_data), MRF_EQ_TEXT - 1);
	close_eq();
}
END_TEST

START_TEST(eq_event_can_be_taken_back_until_it_is_read)
{
	struct fi_eq_entry entry = { 0 }, got;
	uint32_t event;
	unsigned i;

	open_eq(FI_WAIT_UNSPEC, 0);
	make_events();
	/* One that was read, one that was not, one that was never posted. */
	mrf_eq_post(inner(), &slot[0], FI_MR_COMPLETE, &entry);
	ck_quiet(sizeof(got), fi_eq_read(eq, &event, &got, sizeof(got), 0));
	mrf_eq_post(inner(), &slot[1], FI_MR_COMPLETE, &entry);
	for (i = 0; i < 3; i++) {
		mrf_eq_retract(inner(), &slot[i]);
		ck_assert_ptr_null(slot[i]);
	}
	ck_quiet(-FI_EAGAIN, fi_eq_read(eq, &event, &got, sizeof(got), 0));
	close_eq();
}
END_TEST

START_TEST(eq_event_made_before_may_find_no_memory)
{
	struct mrf_eq_event *made = NULL;

	ck_refused(0, 2060, (made = failing_after(0, mrf_eq_event_new()), 0));
	ck_assert_ptr_null(made);
}
END_TEST

START_TEST(eq_readerr_copies_the_reason_into_the_users_buffer)
{
	char text[8];
	struct fi_eq_err_entry err = { .err_data = text, .err_data_size = sizeof(text) };

	open_eq(FI_WAIT_NONE, 0);
	put_err(FI_EIO, "because of it");
	put_err(FI_EIO, NULL);
	ck_quiet(sizeof(err), fi_eq_readerr(eq, &err, 0));
	ck_assert_ptr_eq(err.err_data, text);
	ck_assert_uint_eq(err.err_data_size, 8);
	ck_assert_str_eq(text, "because");
	ck_quiet(sizeof(err), fi_eq_readerr(eq, &err, 0));
	ck_assert_uint_eq(err.err_data_size, 0);
	ck_assert_str_eq(text, "");
	close_eq();
}
END_TEST

START_TEST(eq_readerr_before_api_1_5_lends_its_own_buffer)
{
	char text[8] = "old";
	struct fi_eq_err_entry err = { .err_data = text, .err_data_size = sizeof(text) };
	struct fi_eq_attr attr = { 0 };

	parent_init(&parent, 0);
	parent.obj.fid = &parent.fabric.fid;
	parent.fabric.api_version = FI_VERSION(1, 4);
	ck_quiet(0, mrf_eq_open(&parent.obj, &attr, &eq, NULL));
	put_err(FI_EIO, "why");
	ck_quiet(sizeof(err), fi_eq_readerr(eq, &err, 0));
	ck_assert_str_eq(err.err_data, "why");
	ck_assert_uint_eq(err.err_data_size, 4);
	ck_assert_str_eq(text, "old");
	close_eq();
}
END_TEST

START_TEST(eq_write_without_memory_is_refused)
{
	struct fi_eq_err_entry err = { 0 };

	open_eq(FI_WAIT_NONE, FI_WRITE);
	ck_refused(FI_ENOMEM, 2060, failing_after(0, fi_eq_write(eq, 1, "x", 1, 0)));
	ck_refused(FI_ENOMEM, 2060, failing_after(0, mrf_eq_write_err(inner(), &err, "x")));
	ck_quiet(-FI_EAGAIN, fi_eq_readerr(eq, &err, 0));
	close_eq();
}
END_TEST

START_TEST(eq_sread_needs_a_wait_object)
{
	uint32_t event;
	char text[8];
	int fd;

	open_eq(FI_WAIT_NONE, 0);
	ck_refused(FI_EINVAL, 2019, fi_eq_sread(eq, &event, text, 8, 0, 0));
	ck_refused(FI_EINVAL, 2016, mrf_eq_trywait(inner()));
	ck_refused(FI_ENODATA, 2017, fi_control(&eq->fid, FI_GETWAIT, &fd));
	close_eq();
}
END_TEST

START_TEST(eq_sread_times_out_in_time)
{
	uint32_t event;
	char text[8];
	double start;

	open_eq(FI_WAIT_UNSPEC, 0);
	ck_quiet(-FI_EAGAIN, fi_eq_sread(eq, &event, text, 8, 0, 0));
	start = now_ms();
	ck_quiet(-FI_EAGAIN, fi_eq_sread(eq, &event, text, 8, 40, 0));
	ck_took(start, 40);
	close_eq();
}
END_TEST

struct sreader {
	ssize_t ret;
	uint32_t event;
	char text[8];
};

static void *sread_thread(void *arg)
{
	struct sreader *r = arg;

	r->ret = fi_eq_sread(eq, &r->event, r->text, sizeof(r->text), 30000, 0);
	return NULL;
}

START_TEST(eq_sread_is_woken_by_an_event_and_by_an_error)
{
	struct fi_eq_err_entry err = { 0 };
	struct sreader r = { .ret = 0 };
	pthread_t thread;

	open_eq(FI_WAIT_UNSPEC, FI_WRITE);
	ck_assert_int_eq(pthread_create(&thread, NULL, sread_thread, &r), 0);
	sleep_ms(50);
	ck_assert_int_eq(fi_eq_write(eq, 8, "hi", 3, 0), 3);
	pthread_join(thread, NULL);
	ck_assert_int_eq(r.ret, 3);
	ck_assert_uint_eq(r.event, 8);
	ck_assert_str_eq(r.text, "hi");
	ck_assert_int_eq(pthread_create(&thread, NULL, sread_thread, &r), 0);
	sleep_ms(50);
	put_err(FI_EIO, NULL);
	pthread_join(thread, NULL);
	ck_assert_int_eq(r.ret, -FI_EAVAIL);
	ck_quiet(sizeof(err), fi_eq_readerr(eq, &err, 0));
	close_eq();
}
END_TEST

static void on_signal(int sig)
{
	(void)sig;
}

static atomic_bool sread_done;

static void *sread_noted(void *arg)
{
	sread_thread(arg);
	atomic_store(&sread_done, true);
	return NULL;
}

START_TEST(eq_sread_interrupted_by_a_handler_answers_eagain)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct sreader r = { .ret = 0 };
	pthread_t thread;

	ck_assert_int_eq(sigaction(SIGUSR1, &act, NULL), 0);
	open_eq(FI_WAIT_UNSPEC, 0);
	atomic_store(&sread_done, false);
	ck_assert_int_eq(pthread_create(&thread, NULL, sread_noted, &r), 0);
	while (!atomic_load(&sread_done)) {
		sleep_ms(5);
		pthread_kill(thread, SIGUSR1);
	}
	pthread_join(thread, NULL);
	ck_assert_int_eq(r.ret, -FI_EAGAIN);
	close_eq();
}
END_TEST

START_TEST(eq_trywait_says_when_it_is_safe_to_block)
{
	struct pollfd p = { .events = POLLIN };
	uint32_t event;
	char text[8];

	open_eq(FI_WAIT_FD, FI_WRITE);
	ck_quiet(0, fi_control(&eq->fid, FI_GETWAIT, &p.fd));
	ck_quiet(0, mrf_eq_trywait(inner()));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	ck_assert_int_eq(fi_eq_write(eq, 8, "hi", 3, 0), 3);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	ck_quiet(-FI_EAGAIN, mrf_eq_trywait(inner()));
	ck_quiet(3, fi_eq_read(eq, &event, text, 8, 0));
	ck_quiet(0, mrf_eq_trywait(inner()));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	close_eq();
}
END_TEST

enum { WRITERS = 4, EACH = 5000 };

static void *write_many(void *arg)
{
	uint32_t base = (uint32_t)(uintptr_t)arg, i;

	for (i = 0; i < EACH; i++)
		ck_assert_int_eq(fi_eq_write(eq, base, &i, sizeof(i), 0), sizeof(i));
	return NULL;
}

START_TEST(eq_four_writers_and_one_sleeping_reader_keep_every_event_in_order)
{
	uint32_t next[WRITERS] = { 0 }, event, i;
	pthread_t thread[WRITERS];
	uintptr_t w;
	int n;

	open_eq(FI_WAIT_UNSPEC, FI_WRITE);
	for (w = 0; w < WRITERS; w++)
		ck_assert_int_eq(pthread_create(&thread[w], NULL, write_many, (void *)w), 0);
	for (n = 0; n < WRITERS * EACH; n++) {
		ck_assert_int_eq(fi_eq_sread(eq, &event, &i, sizeof(i), 30000, 0), sizeof(i));
		ck_assert_uint_lt(event, WRITERS);
		ck_assert_uint_eq(i, next[event]++);
	}
	for (w = 0; w < WRITERS; w++)
		pthread_join(thread[w], NULL);
	close_eq();
}
END_TEST

static TCase *tcase_eq(void)
{
	TCase *tc = tcase_create("eq");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, eq_open_refuses_bad_attributes);
	tcase_add_test(tc, eq_operation_tables_are_complete);
	tcase_add_test(tc, eq_close_is_refused_while_it_is_bound_and_frees_the_rest);
	tcase_add_test(tc, eq_write_needs_the_flag_it_was_opened_with);
	tcase_add_test(tc, eq_read_returns_events_in_order_with_their_bytes);
	tcase_add_test(tc, eq_peek_leaves_the_event);
	tcase_add_test(tc, eq_event_stays_when_the_buffer_is_too_small);
	tcase_add_test(tc, eq_bad_read_arguments_are_refused);
	tcase_add_test(tc, eq_error_is_reported_in_its_place_and_stays_until_taken);
	tcase_add_test(tc, eq_event_made_before_is_read_like_any_other);
	tcase_add_test(tc, eq_event_can_be_taken_back_until_it_is_read);
	tcase_add_test(tc, eq_event_made_before_may_find_no_memory);
	tcase_add_test(tc, eq_readerr_copies_the_reason_into_the_users_buffer);
	tcase_add_test(tc, eq_readerr_before_api_1_5_lends_its_own_buffer);
	tcase_add_test(tc, eq_write_without_memory_is_refused);
	tcase_add_test(tc, eq_sread_needs_a_wait_object);
	tcase_add_test(tc, eq_sread_times_out_in_time);
	tcase_add_test(tc, eq_sread_is_woken_by_an_event_and_by_an_error);
	tcase_add_test(tc, eq_sread_interrupted_by_a_handler_answers_eagain);
	tcase_add_test(tc, eq_trywait_says_when_it_is_safe_to_block);
	tcase_add_test(tc, eq_four_writers_and_one_sleeping_reader_keep_every_event_in_order);
	return tc;
}

UNIT_MAIN("eq", tcase_eq)
