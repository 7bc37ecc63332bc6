/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <rdma/fi_eq.h>
#include "obj/cq.h"
#include "fail_alloc.h"
#include "obj_fixture.h"

static struct parent parent;
static struct fid_cq *cq;

static void open_cq(enum fi_cq_format format, enum fi_wait_obj wait_obj, size_t size)
{
	struct fi_cq_attr attr = { .format = format, .wait_obj = wait_obj, .size = size };

	parent_init(&parent, 0);
	ck_quiet(0, mrf_cq_open(&parent.obj, &attr, &cq, &parent));
}

static void close_cq(void)
{
	ck_quiet(0, fi_close(&cq->fid));
	parent_fini(&parent);
}

static struct mrf_comp comp_nr(uintptr_t n)
{
	return (struct mrf_comp){
		.op_context = (void *)n,
		.flags = FI_RMA | FI_WRITE,
		.len = n + 1,
		.buf = (void *)(n + 2),
		.data = n + 3,
		.tag = n + 4,
		.src_addr = n + 5,
	};
}

static void put(uintptr_t n)
{
	struct mrf_comp comp = comp_nr(n);

	mrf_cq_write(mrf_cq_from_fid(&cq->fid), &comp);
}

/* Of an operation of the endpoint's own, whose completion says no more than this. */
static void put_own(uintptr_t n)
{
	mrf_cq_write_own(mrf_cq_from_fid(&cq->fid), (void *)n, FI_RMA | FI_WRITE, n + 1);
}

static void put_err(uintptr_t n, int err, int prov_errno, const char *text)
{
	struct mrf_comp_err e = {
		.comp = comp_nr(n), .olen = 9, .err = err, .prov_errno = prov_errno
	};

	snprintf(e.text, sizeof(e.text), "%s", text);
	mrf_cq_write_err(mrf_cq_from_fid(&cq->fid), &e);
}

/*
 * --- opening -------------------------------------------------------------------------
 */

START_TEST(cq_open_refuses_bad_attributes)
{
	struct fi_cq_attr attr = { 0 };
	struct fid_cq *none = (struct fid_cq *)&attr;
	struct fid_wait set;

	parent_init(&parent, 0);
#define OPEN() mrf_cq_open(&parent.obj, &attr, &none, NULL)
	ck_refused(FI_EINVAL, 2024, mrf_cq_open(&parent.obj, NULL, &none, NULL));
	ck_refused(FI_EINVAL, 2024, mrf_cq_open(&parent.obj, &attr, NULL, NULL));
	attr.flags = FI_WRITE;
	ck_refused(FI_EBADFLAGS, 2025, OPEN());
	attr.flags = FI_PEER;
	ck_refused(FI_EBADFLAGS, 2025, OPEN());
	attr.flags = 0;
	attr.format = (enum fi_cq_format)(FI_CQ_FORMAT_TAGGED + 1);
	ck_refused(FI_EINVAL, 2026, OPEN());
	attr.format = (enum fi_cq_format) - 1;
	ck_refused(FI_EINVAL, 2026, OPEN());
	attr.format = FI_CQ_FORMAT_MSG;
	attr.wait_obj = FI_WAIT_SET;
	ck_refused(FI_EINVAL, 2027, OPEN());
	attr.wait_set = &set;
	ck_refused(FI_ENOSYS, 2011, OPEN());
	attr.wait_obj = FI_WAIT_YIELD;
	ck_refused(FI_ENOSYS, 2011, OPEN());
	attr.wait_obj = FI_WAIT_MUTEX_COND;
	ck_refused(FI_ENOSYS, 2011, OPEN());
	attr.wait_obj = (enum fi_wait_obj)50;
	ck_refused(FI_EINVAL, 2010, OPEN());
	attr.wait_obj = FI_WAIT_UNSPEC;
	attr.wait_cond = (enum fi_cq_wait_cond)5;
	ck_refused(FI_EINVAL, 2028, OPEN());
	ck_assert_ptr_eq(none, (void *)&attr);
#undef OPEN
	parent_fini(&parent);
}
END_TEST

START_TEST(cq_open_takes_every_format_any_size_and_affinity)
{
	static const size_t sizes[] = { 0, 1, 17, 32768, 65536, (size_t)1 << 40, SIZE_MAX };
	struct fi_cq_attr attr = { .flags = FI_AFFINITY, .signaling_vector = 3 };
	size_t i;
	int f;

	parent_init(&parent, 0);
	for (f = FI_CQ_FORMAT_UNSPEC; f <= FI_CQ_FORMAT_TAGGED; f++) {
		for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++) {
			attr.format = (enum fi_cq_format)f;
			attr.size = sizes[i];
			/* Ignored without a wait object: fi_cq(3) "wait_cond". */
			attr.wait_cond = (enum fi_cq_wait_cond)9;
			ck_quiet(0, mrf_cq_open(&parent.obj, &attr, &cq, &i));
			ck_assert_ptr_eq(cq->fid.context, &i);
			ck_assert_uint_eq(cq->fid.fclass, FI_CLASS_CQ);
			ck_quiet(0, fi_close(&cq->fid));
		}
	}
	parent_fini(&parent);
}
END_TEST

START_TEST(cq_open_without_memory_leaves_nothing)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_FD };
	int before = open_fds(), n, ret;
	struct fid_cq *none = NULL;

	parent_init(&parent, 0);
	for (n = 0; n < 2; n++) {
		struct unit_capture cap;

		unit_capture(&cap);
		alloc_fail_after(n);
		ret = mrf_cq_open(&parent.obj, &attr, &none, NULL);
		alloc_heal();
		ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E2029"));
		ck_assert_int_eq(ret, -FI_ENOMEM);
		ck_assert_ptr_null(none);
	}
	ck_assert_int_eq(open_fds(), before);
	parent_fini(&parent);
}
END_TEST

START_TEST(cq_operation_tables_are_complete)
{
	open_cq(FI_CQ_FORMAT_MSG, FI_WAIT_NONE, 0);
	ck_assert_uint_eq(cq->fid.ops->size, sizeof(struct fi_ops));
	ck_assert_uint_eq(cq->ops->size, sizeof(struct fi_ops_cq));
	ck_assert(cq->fid.ops->close && cq->fid.ops->bind && cq->fid.ops->control &&
		  cq->fid.ops->ops_open && cq->fid.ops->tostr && cq->fid.ops->ops_set);
	ck_assert(cq->ops->read && cq->ops->readfrom && cq->ops->readerr && cq->ops->sread &&
		  cq->ops->sreadfrom && cq->ops->signal && cq->ops->strerror);
	ck_refused(FI_ENOSYS, 2002, cq->fid.ops->bind(&cq->fid, &cq->fid, 0));
	ck_refused(FI_ENOSYS, 2003, fi_control(&cq->fid, FI_ENABLE, NULL));
	close_cq();
}
END_TEST

START_TEST(cq_from_fid_knows_only_completion_queues)
{
	struct fid other = { .fclass = FI_CLASS_EQ };

	open_cq(FI_CQ_FORMAT_MSG, FI_WAIT_NONE, 0);
	ck_assert_ptr_null(mrf_cq_from_fid(NULL));
	ck_assert_ptr_null(mrf_cq_from_fid(&other));
	ck_assert_ptr_nonnull(mrf_cq_from_fid(&cq->fid));
	ck_assert_ptr_eq(mrf_cq_obj(mrf_cq_from_fid(&cq->fid))->parent.target, &parent.obj);
	ck_assert_int_eq(mrf_cq_obj(mrf_cq_from_fid(&cq->fid))->wait->kind, FI_WAIT_NONE);
	close_cq();
}
END_TEST

START_TEST(cq_close_is_refused_while_it_is_bound)
{
	struct fid ep = { .fclass = FI_CLASS_EP };
	struct mrf_hold hold;

	open_cq(FI_CQ_FORMAT_MSG, FI_WAIT_NONE, 0);
	mrf_obj_hold(&hold, mrf_cq_obj(mrf_cq_from_fid(&cq->fid)), &ep, NULL);
	put(1);
	ck_refused(FI_EBUSY, 2001, fi_close(&cq->fid));
	ck_refused(FI_EBUSY, 2001, mrf_obj_busy(&parent.obj));
	mrf_obj_drop(&hold);
	close_cq();
}
END_TEST

START_TEST(cq_close_frees_what_was_not_read)
{
	open_cq(FI_CQ_FORMAT_MSG, FI_WAIT_FD, 0);
	put(1);
	put_err(2, FI_EIO, 1, "x");
	put_err(3, FI_EIO, 1, "x");
	close_cq();
}
END_TEST

/*
 * --- reading -------------------------------------------------------------------------
 */

START_TEST(cq_formats_carry_their_fields_and_nothing_beyond)
{
	static const size_t size[] = { 8, 8, 24, 40, 48 };
	union {
		struct fi_cq_tagged_entry e[3];
		unsigned char raw[3 * sizeof(struct fi_cq_tagged_entry)];
	} got;
	struct fi_cq_tagged_entry want;
	size_t i;
	int f;

	for (f = FI_CQ_FORMAT_UNSPEC; f <= FI_CQ_FORMAT_TAGGED; f++) {
		open_cq((enum fi_cq_format)f, FI_WAIT_NONE, 0);
		put(100);
		put(200);
		memset(&got, 0xaa, sizeof(got));
		ck_assert_int_eq(fi_cq_read(cq, &got, 3), 2);
		for (i = 0; i < 2; i++) {
			uintptr_t n = (i + 1) * 100;

			want = (struct fi_cq_tagged_entry){ (void *)n, FI_RMA | FI_WRITE,
							    n + 1,     (void *)(n + 2),
							    n + 3,     n + 4 };
			ck_assert_mem_eq(got.raw + i * size[f], &want, size[f]);
		}
		for (i = 2 * size[f]; i < sizeof(got); i++)
			ck_assert_uint_eq(got.raw[i], 0xaa);
		close_cq();
	}
}
END_TEST

START_TEST(cq_own_completions_have_all_fields_set)
{
	const struct fi_cq_tagged_entry want = { (void *)7, FI_RMA | FI_WRITE, 8, NULL, 0, 0 };
	struct fi_cq_tagged_entry got;
	fi_addr_t src;
	int i;

	open_cq(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE, 16);
	/* Each slot had something else before. */
	for (i = 0; i < 16; i++)
		put(100);
	for (i = 0; i < 16; i++)
		ck_assert_int_eq(fi_cq_read(cq, &got, 1), 1);
	put_own(7);
	memset(&got, 0xaa, sizeof(got));
	src = 1;
	ck_assert_int_eq(fi_cq_readfrom(cq, &got, 1, &src), 1);
	ck_assert_mem_eq(&got, &want, sizeof(got));
	ck_assert_uint_eq(src, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fi_cq_read(cq, &got, 1), -FI_EAGAIN);
	close_cq();
}
END_TEST

START_TEST(cq_empty_queue_answers_eagain)
{
	struct fi_cq_entry e;
	struct fi_cq_err_entry err;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 0);
	ck_quiet(-FI_EAGAIN, fi_cq_read(cq, &e, 1));
	ck_quiet(-FI_EAGAIN, fi_cq_readfrom(cq, &e, 1, NULL));
	ck_quiet(-FI_EAGAIN, fi_cq_readerr(cq, &err, 0));
	close_cq();
}
END_TEST

START_TEST(cq_readfrom_reports_the_source)
{
	struct fi_cq_entry e[2];
	fi_addr_t src[3] = { 1, 1, 1 };

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 0);
	put(10);
	put(20);
	ck_assert_int_eq(fi_cq_readfrom(cq, e, 2, src), 2);
	ck_assert_uint_eq(src[0], 15);
	ck_assert_uint_eq(src[1], 25);
	ck_assert_uint_eq(src[2], 1);
	close_cq();
}
END_TEST

START_TEST(cq_bad_read_arguments_are_refused)
{
	struct fi_cq_err_entry err;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC, 0);
	put(1);
	ck_refused(FI_EINVAL, 2021, fi_cq_read(cq, NULL, 1));
	ck_refused(FI_EINVAL, 2021, fi_cq_sread(cq, NULL, 1, NULL, 0));
	ck_refused(FI_EINVAL, 2022, fi_cq_readerr(cq, NULL, 0));
	ck_refused(FI_EBADFLAGS, 2023, fi_cq_readerr(cq, &err, FI_PEEK));
	close_cq();
}
END_TEST

static int polls;
static int put_at_poll; /* the n-th poll writes a completion */

static void poll_counting(struct mrf_source *source)
{
	(void)source;
	if (++polls == put_at_poll)
		put(77);
}

static void arm_nothing(struct mrf_source *source, bool fired)
{
	(void)source;
	(void)fired;
}

static struct mrf_source counting = { .poll = poll_counting, .arm = arm_nothing, .fd = -1 };

START_TEST(cq_read_polls_sources_only_when_nothing_is_there)
{
	struct mrf_wait_link link = { .wait = NULL };
	struct fi_cq_entry e = { NULL };

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 0);
	polls = 0;
	put_at_poll = 2;
	ck_assert_int_eq(
		mrf_wait_link(mrf_cq_obj(mrf_cq_from_fid(&cq->fid))->wait, &link, &counting), 0);
	put(1);
	ck_assert_int_eq(fi_cq_read(cq, &e, 1), 1);
	ck_assert_int_eq(polls, 0);
	ck_assert_int_eq(fi_cq_read(cq, &e, 1), -FI_EAGAIN);
	ck_assert_int_eq(polls, 1);
	ck_assert_int_eq(fi_cq_read(cq, &e, 1), 1);
	ck_assert_int_eq(polls, 2);
	ck_assert_ptr_eq(e.op_context, (void *)77);
	mrf_wait_unlink(&link);
	close_cq();
}
END_TEST

START_TEST(cq_read_of_nothing_makes_progress)
{
	struct mrf_wait_link link = { .wait = NULL };
	struct fi_cq_entry e;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 0);
	polls = 0;
	put_at_poll = 2;
	ck_assert_int_eq(
		mrf_wait_link(mrf_cq_obj(mrf_cq_from_fid(&cq->fid))->wait, &link, &counting), 0);
	ck_quiet(-FI_EAGAIN, fi_cq_read(cq, NULL, 0));
	ck_quiet(0, fi_cq_read(cq, NULL, 0));
	ck_quiet(0, fi_cq_read(cq, NULL, 0));
	ck_assert_int_eq(polls, 3);
	ck_assert_int_eq(fi_cq_read(cq, &e, 1), 1);
	put_err(1, FI_EIO, 0, "");
	ck_quiet(0, fi_cq_read(cq, NULL, 0));
	mrf_wait_unlink(&link);
	close_cq();
}
END_TEST

/* With the shorter call in turn with the other, and alone. */
START_TEST(cq_grows_with_own_completions_and_keeps_the_order)
{
	enum { N = 1000 };
	struct fi_cq_entry e[64];
	uintptr_t written = 0, read = 0;
	ssize_t n, i;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 1);
	for (; written < 13; written++)
		put_own(written);
	read = (uintptr_t)fi_cq_read(cq, e, 11);
	ck_assert_uint_eq(read, 11);
	for (; written < N; written++) {
		if (_i && written % 2)
			put(written);
		else
			put_own(written);
	}
	while (read < N) {
		n = fi_cq_read(cq, e, 64);
		ck_assert_int_gt(n, 0);
		for (i = 0; i < n; i++, read++)
			ck_assert_ptr_eq(e[i].op_context, (void *)read);
	}
	ck_assert_int_eq(fi_cq_read(cq, e, 64), -FI_EAGAIN);
	close_cq();
}
END_TEST

START_TEST(cq_grows_and_keeps_the_order)
{
	enum { N = 100000 };
	static struct fi_cq_data_entry e[64];
	uintptr_t written = 0, read = 0;
	ssize_t n, i;

	open_cq(FI_CQ_FORMAT_DATA, FI_WAIT_NONE, 1);
	/* Wrapped around before it grows for the first time. */
	for (; written < 13; written++)
		put(written);
	n = fi_cq_read(cq, e, 11);
	ck_assert_int_eq(n, 11);
	read += 11;
	for (; written < N; written++)
		put(written);
	while (read < N) {
		n = fi_cq_read(cq, e, 64);
		ck_assert_int_gt(n, 0);
		for (i = 0; i < n; i++, read++) {
			ck_assert_ptr_eq(e[i].op_context, (void *)read);
			ck_assert_uint_eq(e[i].data, read + 3);
		}
	}
	ck_assert_int_eq(fi_cq_read(cq, e, 64), -FI_EAGAIN);
	close_cq();
}
END_TEST

/*
 * --- errors --------------------------------------------------------------------------
 */

START_TEST(cq_read_returns_entries_before_the_error)
{
	struct fi_cq_msg_entry e[8];
	struct fi_cq_err_entry err = { 0 };

	open_cq(FI_CQ_FORMAT_MSG, FI_WAIT_NONE, 0);
	put(1);
	put(2);
	put_err(3, FI_EACCES, 4103, "outside by 8 bytes");
	put(4);
	ck_quiet(-FI_EAGAIN, fi_cq_readerr(cq, &err, 0));
	ck_assert_int_eq(fi_cq_read(cq, e, 8), 2);
	ck_assert_ptr_eq(e[1].op_context, (void *)2);
	ck_quiet(-FI_EAVAIL, fi_cq_read(cq, e, 8));
	ck_quiet(-FI_EAVAIL, fi_cq_read(cq, e, 1));
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	ck_assert_ptr_eq(err.op_context, (void *)3);
	ck_assert_uint_eq(err.flags, FI_RMA | FI_WRITE);
	ck_assert_uint_eq(err.len, 4);
	ck_assert_ptr_eq(err.buf, (void *)5);
	ck_assert_uint_eq(err.data, 6);
	ck_assert_uint_eq(err.tag, 7);
	ck_assert_uint_eq(err.olen, 9);
	ck_assert_int_eq(err.err, FI_EACCES);
	ck_assert_int_eq(err.prov_errno, 4103);
	ck_assert_str_eq(err.err_data, "outside by 8 bytes");
	ck_assert_uint_eq(err.err_data_size, sizeof("outside by 8 bytes"));
	ck_quiet(-FI_EAGAIN, fi_cq_readerr(cq, &err, 0));
	ck_assert_int_eq(fi_cq_read(cq, e, 8), 1);
	ck_assert_ptr_eq(e[0].op_context, (void *)4);
	close_cq();
}
END_TEST

START_TEST(cq_readerr_copies_the_reason_into_the_users_buffer)
{
	char text[8] = "xxxxxxx";
	struct fi_cq_err_entry err = { .err_data = text, .err_data_size = sizeof(text) };

	open_cq(FI_CQ_FORMAT_MSG, FI_WAIT_NONE, 0);
	put_err(1, FI_EIO, 1, "why");
	put_err(2, FI_EIO, 1, "a long reason");
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	ck_assert_ptr_eq(err.err_data, text);
	ck_assert_uint_eq(err.err_data_size, 4);
	ck_assert_str_eq(text, "why");
	err.err_data_size = sizeof(text);
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	ck_assert_uint_eq(err.err_data_size, sizeof(text));
	ck_assert_str_eq(text, "a long ");
	close_cq();
}
END_TEST

START_TEST(cq_readerr_lends_its_own_buffer_until_the_next_read)
{
	struct fi_cq_err_entry err = { 0 }, next = { 0 };

	open_cq(FI_CQ_FORMAT_MSG, FI_WAIT_NONE, 0);
	put_err(1, FI_EIO, 1, "first");
	put_err(2, FI_EIO, 1, "");
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	ck_assert_str_eq(err.err_data, "first");
	ck_assert_int_eq(fi_cq_readerr(cq, &next, 0), 1);
	ck_assert_ptr_null(next.err_data);
	ck_assert_uint_eq(next.err_data_size, 0);
	close_cq();
}
END_TEST

START_TEST(cq_readerr_before_api_1_5_ends_with_err_data)
{
	struct fi_cq_attr attr = { 0 };
	struct fi_cq_err_entry err;
	char text[8] = "old";

	parent_init(&parent, FI_VERSION(1, 4));
	ck_quiet(0, mrf_cq_open(&parent.obj, &attr, &cq, NULL));
	put_err(1, FI_EIO, 1, "reason");
	memset(&err, 0x5a, sizeof(err));
	err.err_data = text;
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	ck_assert_str_eq(err.err_data, "reason");
	ck_assert_str_eq(text, "old");
	ck_assert_uint_eq(err.err_data_size, (size_t)0x5a5a5a5a5a5a5a5a);
	close_cq();
}
END_TEST

START_TEST(cq_strerror_writes_the_reason)
{
	struct fi_cq_err_entry err = { 0 };
	char buf[64];

	open_cq(FI_CQ_FORMAT_MSG, FI_WAIT_NONE, 0);
	put_err(1, FI_EACCES, 4103, "outside by 8 bytes");
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	ck_assert_ptr_eq(fi_cq_strerror(cq, err.prov_errno, err.err_data, buf, sizeof(buf)), buf);
	ck_assert_str_eq(buf, "outside by 8 bytes");
	ck_assert_ptr_nonnull(strstr(fi_cq_strerror(cq, 4103, NULL, NULL, 0), "4103"));
	close_cq();
}
END_TEST

static void check_overrun(size_t kept, const char *lost)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry e;
	size_t i;
	int round;

	for (i = 0; i < kept; i++)
		ck_assert_int_eq(fi_cq_read(cq, &e, 1), 1);
	/* For ever: fi_cq(3) calls it fatal. */
	for (round = 0; round < 2; round++) {
		ck_quiet(-FI_EAVAIL, fi_cq_read(cq, &e, 1));
		ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
		ck_assert_int_eq(err.err, FI_EOVERRUN);
		ck_assert_ptr_nonnull(strstr(err.err_data, lost));
		err = (struct fi_cq_err_entry){ 0 };
	}
}

START_TEST(cq_overrun_for_want_of_memory_is_told_after_what_was_kept)
{
	struct unit_capture cap;
	struct fi_cq_entry e;
	int i;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 16);
	for (i = 0; i < 16; i++)
		(_i ? put_own : put)(1);
	unit_capture(&cap);
	alloc_fail_after(0);
	(_i ? put_own : put)(2);
	(_i ? put_own : put)(3);
	alloc_heal();
	ck_assert_int_eq(fi_cq_read(cq, &e, 1), 1);
	(_i ? put_own : put)(4); /* room again, but the order has a hole */
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 1);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E2020"));
	check_overrun(15, " 3 completion");
	close_cq();
}
END_TEST

/* One always finds some, and leaves it to the next when it has been read. */
START_TEST(cq_error_without_memory_is_told_when_it_is_the_only_one)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry e;
	int i;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 16);
	for (i = 0; i < 4; i++) {
		alloc_fail_after(0);
		put_err(2, FI_EIO, 4, "four");
		alloc_heal();
		put(1);
		ck_quiet(-FI_EAVAIL, fi_cq_read(cq, &e, 1));
		ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
		ck_assert_int_eq(err.err, FI_EIO);
		ck_assert_int_eq(err.prov_errno, 4);
		ck_assert_str_eq(err.err_data, "four");
		err = (struct fi_cq_err_entry){ 0 };
		ck_assert_int_eq(fi_cq_read(cq, &e, 1), 1);
		/* Its text is the reader's until the next one; only then it is free again. */
		put_err(2, FI_EIO, 5, "five");
		ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
		ck_assert_str_eq(err.err_data, "five");
		err = (struct fi_cq_err_entry){ 0 };
	}
	close_cq();
}
END_TEST

START_TEST(cq_second_error_without_memory_is_an_overrun)
{
	struct fi_cq_err_entry err = { 0 };
	struct unit_capture cap;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 16);
	put_err(2, FI_EIO, 0, "");
	unit_capture(&cap);
	alloc_fail_after(0);
	put_err(2, FI_EIO, 0, "");
	put_err(2, FI_EIO, 0, "");
	alloc_heal();
	unit_captured(&cap);
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	check_overrun(0, " 1 completion");
	close_cq();
}
END_TEST

/*
 * --- blocking ------------------------------------------------------------------------
 */

START_TEST(cq_sread_and_signal_need_a_wait_object)
{
	struct fi_cq_entry e;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 0);
	put(1);
	ck_refused(FI_EINVAL, 2019, fi_cq_sread(cq, &e, 1, NULL, 0));
	ck_refused(FI_EINVAL, 2019, fi_cq_sreadfrom(cq, &e, 1, NULL, NULL, 0));
	ck_refused(FI_EINVAL, 2019, fi_cq_signal(cq));
	close_cq();
}
END_TEST

START_TEST(cq_sread_times_out_in_time)
{
	struct fi_cq_entry e;
	double start;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC, 0);
	ck_quiet(-FI_EAGAIN, fi_cq_sread(cq, &e, 1, NULL, 0));
	start = now_ms();
	ck_quiet(-FI_EAGAIN, fi_cq_sread(cq, &e, 1, NULL, 50));
	ck_took(start, 50);
	close_cq();
}
END_TEST

START_TEST(cq_sread_returns_what_is_there_at_once)
{
	struct fi_cq_entry e[4];
	fi_addr_t src[4];

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC, 0);
	put(1);
	put(2);
	ck_assert_int_eq(fi_cq_sreadfrom(cq, e, 4, src, NULL, -1), 2);
	ck_assert_uint_eq(src[1], 7);
	put_err(3, FI_EIO, 0, "");
	ck_quiet(-FI_EAVAIL, fi_cq_sread(cq, e, 4, NULL, -1));
	close_cq();
}
END_TEST

struct sreader {
	const void *cond;
	size_t count;
	int timeout;
	ssize_t ret;
	struct fi_cq_entry e[8];
};

static void *sread_thread(void *arg)
{
	struct sreader *r = arg;

	r->ret = fi_cq_sread(cq, r->e, r->count, r->cond, r->timeout);
	return NULL;
}

static void await_blocked(int n)
{
	while (atomic_load(&mrf_cq_obj(mrf_cq_from_fid(&cq->fid))->wait->waiters) < n)
		sleep_ms(1);
	sleep_ms(20);
}

START_TEST(cq_sread_is_woken_by_a_completion_and_by_an_error)
{
	struct sreader r = { .count = 8, .timeout = -1 };
	struct fi_cq_err_entry err;
	pthread_t thread;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, sread_thread, &r), 0);
	await_blocked(1);
	ck_refused(FI_EBUSY, 2013, fi_close(&cq->fid));
	(_i ? put_own : put)(5);
	pthread_join(thread, NULL);
	ck_assert_int_eq(r.ret, 1);
	ck_assert_ptr_eq(r.e[0].op_context, (void *)5);
	ck_assert_int_eq(pthread_create(&thread, NULL, sread_thread, &r), 0);
	await_blocked(1);
	put_err(6, FI_EIO, 0, "");
	pthread_join(thread, NULL);
	ck_assert_int_eq(r.ret, -FI_EAVAIL);
	memset(&err, 0, sizeof(err));
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	close_cq();
}
END_TEST

START_TEST(cq_signal_unblocks_every_sread_with_eagain)
{
	struct sreader r[3];
	pthread_t thread[3];
	int i;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_FD, 0);
	for (i = 0; i < 3; i++) {
		r[i] = (struct sreader){ .count = 1, .timeout = -1 };
		ck_assert_int_eq(pthread_create(&thread[i], NULL, sread_thread, &r[i]), 0);
	}
	await_blocked(3);
	ck_quiet(0, fi_cq_signal(cq));
	for (i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_int_eq(r[i].ret, -FI_EAGAIN);
	}
	close_cq();
}
END_TEST

START_TEST(cq_signal_that_comes_first_ends_the_next_sread_only)
{
	struct fi_cq_entry e;
	double start;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC, 0);
	ck_quiet(0, fi_cq_signal(cq));
	ck_quiet(0, fi_cq_signal(cq));
	ck_quiet(-FI_EAGAIN, fi_cq_sread(cq, &e, 1, NULL, -1));
	start = now_ms();
	ck_quiet(-FI_EAGAIN, fi_cq_sread(cq, &e, 1, NULL, 30));
	ck_took(start, 30);
	ck_quiet(0, fi_cq_signal(cq));
	put(1);
	ck_quiet(1, fi_cq_sread(cq, &e, 1, NULL, -1));
	close_cq();
}
END_TEST

static void on_signal(int sig)
{
	(void)sig;
}

START_TEST(cq_sread_interrupted_by_a_handler_answers_eagain)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct sreader r = { .count = 1, .timeout = -1 };
	struct mrf_wait *wait;
	pthread_t thread;

	ck_assert_int_eq(sigaction(SIGUSR1, &act, NULL), 0);
	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC, 0);
	wait = mrf_cq_obj(mrf_cq_from_fid(&cq->fid))->wait;
	ck_assert_int_eq(pthread_create(&thread, NULL, sread_thread, &r), 0);
	await_blocked(1);
	while (atomic_load(&wait->waiters)) {
		pthread_kill(thread, SIGUSR1);
		sleep_ms(5);
	}
	pthread_join(thread, NULL);
	ck_assert_int_eq(r.ret, -FI_EAGAIN);
	close_cq();
}
END_TEST

static void open_threshold_cq(void)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_UNSPEC, .wait_cond = FI_CQ_COND_THRESHOLD };

	parent_init(&parent, 0);
	ck_quiet(0, mrf_cq_open(&parent.obj, &attr, &cq, NULL));
}

START_TEST(cq_threshold_waits_for_that_many)
{
	struct sreader r = { .count = 8, .timeout = -1, .cond = (const void *)3 };
	pthread_t thread;

	open_threshold_cq();
	ck_assert_int_eq(pthread_create(&thread, NULL, sread_thread, &r), 0);
	await_blocked(1);
	put(1);
	put(2);
	sleep_ms(30);
	ck_assert_int_eq(atomic_load(&mrf_cq_obj(mrf_cq_from_fid(&cq->fid))->wait->waiters), 1);
	put(3);
	pthread_join(thread, NULL);
	ck_assert_int_eq(r.ret, 3);
	close_cq();
}
END_TEST

START_TEST(cq_threshold_yields_to_timeout_errors_and_the_buffer)
{
	struct fi_cq_entry e[8];
	struct fi_cq_err_entry err = { 0 };

	open_threshold_cq();
	put(1);
	ck_quiet(1, fi_cq_sread(cq, e, 8, (const void *)5, 20));
	ck_quiet(-FI_EAGAIN, fi_cq_sread(cq, e, 8, (const void *)5, 20));
	put(1);
	put(2);
	/* No more than fit into the buffer can be waited for. */
	ck_quiet(2, fi_cq_sread(cq, e, 2, (const void *)5, -1));
	put(3);
	ck_quiet(1, fi_cq_sread(cq, e, 8, NULL, -1));
	put(4);
	put_err(5, FI_EIO, 0, "");
	ck_quiet(1, fi_cq_sread(cq, e, 8, (const void *)5, -1));
	ck_quiet(-FI_EAVAIL, fi_cq_sread(cq, e, 8, (const void *)5, -1));
	ck_assert_int_eq(fi_cq_readerr(cq, &err, 0), 1);
	close_cq();
}
END_TEST

enum { WRITERS = 4, EACH = 20000 };

static void *write_many(void *arg)
{
	uintptr_t base = (uintptr_t)arg * EACH, i;

	for (i = 0; i < EACH; i++)
		(i % 3 ? put_own : put)(base + i);
	return NULL;
}

START_TEST(cq_four_writers_and_one_sleeping_reader_keep_every_entry_in_order)
{
	static uintptr_t next[WRITERS];
	pthread_t thread[WRITERS];
	struct fi_cq_entry e[32];
	uintptr_t w, n;
	size_t got = 0;
	ssize_t ret, i;

	memset(next, 0, sizeof(next));
	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC, 1);
	for (w = 0; w < WRITERS; w++)
		ck_assert_int_eq(pthread_create(&thread[w], NULL, write_many, (void *)w), 0);
	while (got < WRITERS * EACH) {
		ret = fi_cq_sread(cq, e, 32, NULL, 30000);
		ck_assert_int_gt(ret, 0);
		for (i = 0; i < ret; i++) {
			n = (uintptr_t)e[i].op_context;
			ck_assert_uint_eq(n % EACH, next[n / EACH]++);
		}
		got += (size_t)ret;
	}
	for (w = 0; w < WRITERS; w++)
		pthread_join(thread[w], NULL);
	ck_assert_int_eq(fi_cq_read(cq, e, 32), -FI_EAGAIN);
	close_cq();
}
END_TEST

static atomic_int eaten;

static void *read_many(void *arg)
{
	struct fi_cq_entry e;

	(void)arg;
	while (atomic_load(&eaten) < WRITERS * EACH) {
		if (fi_cq_sread(cq, &e, 1, NULL, 50) == 1)
			atomic_fetch_add(&eaten, 1);
	}
	return NULL;
}

START_TEST(cq_several_readers_share_every_entry_once)
{
	pthread_t writer[WRITERS], reader[2];
	uintptr_t w;

	atomic_store(&eaten, 0);
	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC, 1);
	for (w = 0; w < 2; w++)
		ck_assert_int_eq(pthread_create(&reader[w], NULL, read_many, NULL), 0);
	for (w = 0; w < WRITERS; w++)
		ck_assert_int_eq(pthread_create(&writer[w], NULL, write_many, (void *)w), 0);
	for (w = 0; w < WRITERS; w++)
		pthread_join(writer[w], NULL);
	for (w = 0; w < 2; w++)
		pthread_join(reader[w], NULL);
	ck_assert_int_eq(atomic_load(&eaten), WRITERS * EACH);
	close_cq();
}
END_TEST

/*
 * --- the descriptor ------------------------------------------------------------------
 */

START_TEST(cq_trywait_says_when_it_is_safe_to_block)
{
	struct fi_cq_entry e;
	struct pollfd p = { .events = POLLIN };

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_FD, 0);
	ck_quiet(0, fi_control(&cq->fid, FI_GETWAIT, &p.fd));
	put(1);
	ck_quiet(-FI_EAGAIN, mrf_cq_trywait(mrf_cq_from_fid(&cq->fid)));
	ck_quiet(-FI_EAGAIN, mrf_cq_trywait(mrf_cq_from_fid(&cq->fid)));
	ck_assert_int_eq(fi_cq_read(cq, &e, 1), 1);
	ck_quiet(0, mrf_cq_trywait(mrf_cq_from_fid(&cq->fid)));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	put(2);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	ck_assert_int_eq(fi_cq_read(cq, &e, 1), 1);
	ck_quiet(0, mrf_cq_trywait(mrf_cq_from_fid(&cq->fid)));
	put_err(3, FI_EIO, 0, "");
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	close_cq();
}
END_TEST

START_TEST(cq_trywait_polls_the_sources)
{
	struct mrf_wait_link link = { .wait = NULL };

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_FD, 0);
	polls = 0;
	put_at_poll = 1;
	ck_assert_int_eq(
		mrf_wait_link(mrf_cq_obj(mrf_cq_from_fid(&cq->fid))->wait, &link, &counting), 0);
	ck_quiet(-FI_EAGAIN, mrf_cq_trywait(mrf_cq_from_fid(&cq->fid)));
	mrf_wait_unlink(&link);
	close_cq();
}
END_TEST

START_TEST(cq_without_wait_object_has_no_descriptor)
{
	enum fi_wait_obj kind = FI_WAIT_SET;
	int fd = -2;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 0);
	ck_refused(FI_ENODATA, 2017, fi_control(&cq->fid, FI_GETWAIT, &fd));
	ck_refused(FI_EINVAL, 2016, mrf_cq_trywait(mrf_cq_from_fid(&cq->fid)));
	ck_quiet(0, fi_control(&cq->fid, FI_GETWAITOBJ, &kind));
	ck_assert_int_eq(kind, FI_WAIT_NONE);
	close_cq();
}
END_TEST

static void *wait_on_fd(void *arg)
{
	struct pollfd p = { .events = POLLIN };
	struct fi_cq_entry e;
	int *got = arg;

	if (fi_control(&cq->fid, FI_GETWAIT, &p.fd))
		return NULL;
	while (*got < EACH) {
		if (!mrf_cq_trywait(mrf_cq_from_fid(&cq->fid)) && poll(&p, 1, 30000) != 1)
			break;
		while (fi_cq_read(cq, &e, 1) == 1)
			++*got;
	}
	return NULL;
}

START_TEST(cq_descriptor_never_misses_a_completion)
{
	pthread_t reader;
	int got = 0;

	open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_FD, 1);
	ck_assert_int_eq(pthread_create(&reader, NULL, wait_on_fd, &got), 0);
	write_many(NULL);
	pthread_join(reader, NULL);
	ck_assert_int_eq(got, EACH);
	close_cq();
}
END_TEST

static TCase *tcase_open(void)
{
	TCase *tc = tcase_create("open");

	tcase_add_test(tc, cq_open_refuses_bad_attributes);
	tcase_add_test(tc, cq_open_takes_every_format_any_size_and_affinity);
	tcase_add_test(tc, cq_open_without_memory_leaves_nothing);
	tcase_add_test(tc, cq_operation_tables_are_complete);
	tcase_add_test(tc, cq_from_fid_knows_only_completion_queues);
	tcase_add_test(tc, cq_close_is_refused_while_it_is_bound);
	tcase_add_test(tc, cq_close_frees_what_was_not_read);
	return tc;
}

static TCase *tcase_read(void)
{
	TCase *tc = tcase_create("read");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, cq_formats_carry_their_fields_and_nothing_beyond);
	tcase_add_test(tc, cq_empty_queue_answers_eagain);
	tcase_add_test(tc, cq_readfrom_reports_the_source);
	tcase_add_test(tc, cq_bad_read_arguments_are_refused);
	tcase_add_test(tc, cq_read_polls_sources_only_when_nothing_is_there);
	tcase_add_test(tc, cq_read_of_nothing_makes_progress);
	tcase_add_test(tc, cq_grows_and_keeps_the_order);
	tcase_add_loop_test(tc, cq_grows_with_own_completions_and_keeps_the_order, 0, 2);
	tcase_add_test(tc, cq_own_completions_have_all_fields_set);
	return tc;
}

static TCase *tcase_errors(void)
{
	TCase *tc = tcase_create("errors");

	tcase_add_test(tc, cq_read_returns_entries_before_the_error);
	tcase_add_test(tc, cq_readerr_copies_the_reason_into_the_users_buffer);
	tcase_add_test(tc, cq_readerr_lends_its_own_buffer_until_the_next_read);
	tcase_add_test(tc, cq_readerr_before_api_1_5_ends_with_err_data);
	tcase_add_test(tc, cq_strerror_writes_the_reason);
	tcase_add_loop_test(tc, cq_overrun_for_want_of_memory_is_told_after_what_was_kept, 0, 2);
	tcase_add_test(tc, cq_error_without_memory_is_told_when_it_is_the_only_one);
	tcase_add_test(tc, cq_second_error_without_memory_is_an_overrun);
	return tc;
}

static TCase *tcase_block(void)
{
	TCase *tc = tcase_create("block");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, cq_sread_and_signal_need_a_wait_object);
	tcase_add_test(tc, cq_sread_times_out_in_time);
	tcase_add_test(tc, cq_sread_returns_what_is_there_at_once);
	tcase_add_loop_test(tc, cq_sread_is_woken_by_a_completion_and_by_an_error, 0, 2);
	tcase_add_test(tc, cq_signal_unblocks_every_sread_with_eagain);
	tcase_add_test(tc, cq_signal_that_comes_first_ends_the_next_sread_only);
	tcase_add_test(tc, cq_sread_interrupted_by_a_handler_answers_eagain);
	tcase_add_test(tc, cq_threshold_waits_for_that_many);
	tcase_add_test(tc, cq_threshold_yields_to_timeout_errors_and_the_buffer);
	tcase_add_test(tc, cq_four_writers_and_one_sleeping_reader_keep_every_entry_in_order);
	tcase_add_test(tc, cq_several_readers_share_every_entry_once);
	return tc;
}

static TCase *tcase_fd(void)
{
	TCase *tc = tcase_create("fd");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, cq_trywait_says_when_it_is_safe_to_block);
	tcase_add_test(tc, cq_trywait_polls_the_sources);
	tcase_add_test(tc, cq_without_wait_object_has_no_descriptor);
	tcase_add_test(tc, cq_descriptor_never_misses_a_completion);
	return tc;
}

UNIT_MAIN("cq", tcase_open, tcase_read, tcase_errors, tcase_block, tcase_fd)
