/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local buffers that are not there, of every size and in every call, in a domain without
 * FI_MR_LOCAL: FI_EFAULT, and everything else goes on. But what the call itself reads raises SIGSEGV
 * there and then, unless it begins below 64 KiB.
 */
#include <pthread.h>
#include <signal.h>
#include <rdma/fi_atomic.h>
#include <sys/mman.h>
#include <time.h>
#include "apart.h"
#include "ep_fixture.h"
#include "monitor/monitor.h"

static struct pair p;
/* A page that is there, and behind it PAIR_LEN bytes where nothing is, nor will be mapped. */
static char *missing;
static char *read_only; /* PAIR_LEN bytes */

static const size_t sizes[] = { 1, 64, 256, 257, 3000, 8192, 16384, 16385, PAIR_LEN };

#define SIZES ((int)MRF_ARRAY_SIZE(sizes))

static void setup(void)
{
	fixture_setup();
	pair_open(&p, NULL);
	fill(p.dst, PAIR_LEN, 9);
	missing = mmap(NULL, PAGE + PAIR_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	ck_assert_ptr_ne(missing, MAP_FAILED);
	ck_assert_int_eq(mprotect(missing + PAGE, PAIR_LEN, PROT_NONE), 0);
	read_only = mmap(NULL, PAIR_LEN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(read_only, MAP_FAILED);
}

static bool kernel_says(const void *addr, size_t len)
{
	struct iovec here = { p.src, PAGE }, there = { (void *)addr, 1 };
	bool first = process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;

	there.iov_base = (char *)addr + len - 1;
	return first && (char *)addr != read_only &&
	       process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

/* Whoever was refused leaves nothing behind. */
static void teardown(void)
{
	fake.is_there = NULL;
	ck_assert(filled(p.dst, PAIR_LEN, 9));
	fill(p.src, PAIR_LEN, 1);
	pair_write(&p, 0, 100);
	want_ok(&p.a, pair_ctx(&p, 0));
	want_idle(&p.a);
	munmap(missing, PAGE + PAIR_LEN);
	munmap(read_only, PAIR_LEN);
	pair_close(&p);
	fixture_teardown();
}

/* Longer ones are pinned: FI_MRFAB_BOUNCE_MAX. */
#define COPIED 16384u

static ssize_t write_from(const void *buf, size_t len)
{
	return fi_write(p.a.ep, buf, len, NULL, p.to, p.base, p.key, &p);
}

START_TEST(a_source_that_is_not_there_is_refused)
{
	size_t len = sizes[_i];

	fake.is_there = kernel_says;
	ck_assert_int_eq(write_from(NULL, len), -FI_EFAULT);
	ck_assert_int_eq(write_from((void *)100, len), -FI_EFAULT);
	ck_assert_int_eq(write_from((void *)0x1000, len), -FI_EFAULT);
	if (len <= COPIED)
		return;
	ck_assert_int_eq(write_from(missing + PAGE, len), -FI_EFAULT);
	ck_assert_int_eq(write_from(missing + PAGE - 1, len), -FI_EFAULT);
	want_none(&p.a);
}
END_TEST

/* A write from three buffers, of which the second is this one. */
struct three {
	struct iovec iov[3];
	struct fi_rma_iov rma;
	struct fi_msg_rma msg;
};

static const struct fi_msg_rma *three_pieces(struct three *t, void *second)
{
	*t = (struct three){ .iov = { { p.src, 30 }, { second, 2 }, { p.src, 70 } },
			     .rma = { p.base, 102, p.key },
			     .msg = { .msg_iov = t->iov,
				      .iov_count = 3,
				      .addr = p.to,
				      .rma_iov = &t->rma,
				      .rma_iov_count = 1,
				      .context = &p } };
	return &t->msg;
}

START_TEST(one_missing_piece_of_a_vector_is_refused)
{
	struct three three;
	const struct fi_msg_rma *msg = three_pieces(&three, NULL);

	ck_assert_int_eq(fi_writev(p.a.ep, three.iov, NULL, 3, p.to, p.base, p.key, &p),
			 -FI_EFAULT);
	ck_assert_int_eq(fi_writemsg(p.a.ep, msg, 0), -FI_EFAULT);
	ck_assert_int_eq(fi_writemsg(p.a.ep, msg, FI_INJECT), -FI_EFAULT);
	want_none(&p.a);
}
END_TEST

START_TEST(what_is_injected_has_to_be_there)
{
	ck_assert_int_eq(fi_inject_write(p.a.ep, NULL, 64, p.to, p.base, p.key), -FI_EFAULT);
	ck_assert_int_eq(fi_inject_writedata(p.a.ep, NULL, 64, 7, p.to, p.base, p.key), -FI_EFAULT);
	ck_assert_int_eq(
		fi_inject_atomic(p.a.ep, (void *)8, 1, p.to, p.base, p.key, FI_UINT64, FI_SUM),
		-FI_EFAULT);
	want_none(&p.a);
}
END_TEST

/* Each reads something that is not mapped, in the thread that calls. */
static void crash(int nth)
{
	static uint64_t zero, result;
	struct three three;
	const struct fi_msg_rma *msg = three_pieces(&three, missing + PAGE - 1);
	char *bad = missing + PAGE;

	switch (nth) {
	case 0:
		write_from(bad, 1);
		break;
	case 1:
		write_from(bad - 1, 257);
		break;
	case 2:
		write_from(bad - PAGE, COPIED);
		break;
	case 3:
		fi_writev(p.a.ep, three.iov, NULL, 3, p.to, p.base, p.key, &p);
		break;
	case 4:
		fi_writemsg(p.a.ep, msg, FI_INJECT);
		break;
	case 5:
		fi_inject_writedata(p.a.ep, bad, 64, 7, p.to, p.base, p.key);
		break;
	case 6:
		fi_inject_atomic(p.a.ep, bad, 1, p.to, p.base, p.key, FI_UINT64, FI_SUM);
		break;
	case 7:
		fi_atomic(p.a.ep, bad, 1, NULL, p.to, p.base, p.key, FI_UINT64, FI_BOR, &p);
		break;
	case 8:
		fi_fetch_atomic(p.a.ep, bad, 1, NULL, &result, NULL, p.to, p.base, p.key, FI_UINT64,
				FI_SUM, &p);
		break;
	default:
		fi_compare_atomic(p.a.ep, &zero, 1, NULL, bad, NULL, &result, NULL, p.to, p.base,
				  p.key, FI_UINT64, FI_CSWAP, &p);
	}
}

#define CRASHES 10

START_TEST(what_a_call_reads_crashes_it_if_it_is_not_there)
{
	if (!unit_forks())
		return;
	/* A sanitizer has a handler of its own. */
	signal(SIGSEGV, SIG_DFL);
	crash(_i);
}
END_TEST

/* At once where the buffer is to be pinned, else with the completion. */
static void want_fault(ssize_t ret)
{
	if (ret == -FI_EFAULT)
		return;
	ck_assert_int_eq(ret, 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EFAULT, "cannot be stored"), 4261);
}

static ssize_t read_to(void *buf, size_t len)
{
	return fi_read(p.a.ep, buf, len, NULL, p.to, p.base, p.key, &p);
}

START_TEST(a_destination_that_is_not_there_is_refused)
{
	size_t len = sizes[_i];

	fake.is_there = kernel_says;
	want_fault(read_to(NULL, len));
	want_fault(read_to(missing + PAGE, len));
	want_fault(read_to(read_only, len));
	if (len > 1)
		want_fault(read_to(missing + PAGE - 1, len));
	want_none(&p.a);
}
END_TEST

START_TEST(a_destination_that_goes_while_it_is_read_is_refused)
{
	char *goes = pages(PAGE);

	fake_hold(true);
	ck_assert_int_eq(read_to(goes, 64), 0);
	/* Nothing else may come there, such as the stack of a thread. */
	ck_assert_ptr_eq(
		mmap(goes, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), goes);
	fake_hold(false);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EFAULT, "cannot be stored"), 4261);
}
END_TEST

/* Both nodes are of this process. */
START_TEST(a_large_buffer_takes_the_room_of_what_is_pinned_for_peers)
{
	ssize_t ret;

	fake_fail(FAKE_VMR_REG, 1, FI_ENOMEM);
	ck_assert_int_eq(write_from(p.src, PAIR_LEN), -FI_ENOMEM);
	pair_write(&p, 0, 100);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_fail(FAKE_VMR_REG, 1, FI_ENOMEM);
	ret = write_from(p.src, PAIR_LEN);
	if (mrf_monitor_usable()) {
		ck_assert_int_eq(ret, 0);
		want_ok(&p.a, &p);
		ck_assert(filled(p.dst, PAIR_LEN, 1));
	} else {
		ck_assert_int_eq(ret, -FI_ENOMEM);
	}
	fill(p.dst, PAIR_LEN, 9);
}
END_TEST

/* Native, and one that the peer's agent does; the first of an endpoint goes the long way. */
static const enum fi_op ops[] = { FI_SUM, FI_SUM, FI_BOR };

START_TEST(operands_that_are_not_there_are_refused)
{
	static uint64_t zero, result;
	enum fi_op op = ops[_i];

	if (_i) {
		ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &zero, 1, NULL, &result, NULL, p.to,
						 p.base, p.key, FI_UINT64, FI_SUM, &p),
				 0);
		want_ok(&p.a, &p);
	}
	ck_assert_int_eq(
		fi_atomic(p.a.ep, (void *)8, 1, NULL, p.to, p.base, p.key, FI_UINT64, op, &p),
		-FI_EFAULT);
	ck_assert_int_eq(fi_compare_atomic(p.a.ep, &zero, 1, NULL, (void *)8, NULL, &result, NULL,
					   p.to, p.base, p.key, FI_UINT64, FI_CSWAP, &p),
			 -FI_EFAULT);
	want_none(&p.a);
}
END_TEST

START_TEST(results_that_cannot_be_stored_are_said_to_be)
{
	static uint64_t zero, one = 1;
	int i;

	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &zero, 1, NULL, missing + PAGE, NULL, p.to,
						 p.base, p.key, FI_UINT64, ops[_i], &p),
				 0);
		ck_assert_int_eq(want_err(&p.a, &p, FI_EFAULT, "done, but"), 4261);
		ck_assert_int_eq(fi_compare_atomic(p.a.ep, &one, 1, NULL, &zero, NULL, read_only,
						   NULL, p.to, p.base, p.key, FI_UINT64, FI_CSWAP,
						   &p),
				 0);
		ck_assert_int_eq(want_err(&p.a, &p, FI_EFAULT, "cannot be stored"), 4261);
	}
	want_none(&p.a);
}
END_TEST

/* So many of its bytes lie behind the end of the address space, where it begins anew. */
static void *past_the_end(size_t len, size_t by)
{
	return (void *)(uintptr_t)(by - len);
}

START_TEST(a_buffer_that_passes_the_end_of_the_address_space_is_refused)
{
	size_t len = sizes[_i], by;
	struct fid_mr *mr = node_reg(&p.a, p.src, PAGE, FI_READ | FI_WRITE, 77);
	void *desc = fi_mr_desc(mr);

	/* Something that can be taken for it is kept. */
	fill(p.src, PAIR_LEN, 9);
	ck_assert_int_eq(write_from(p.src, PAIR_LEN), 0);
	want_ok(&p.a, &p);
	for (by = 0; by < len; by += mrf_max(len - 1 - by, 1u)) {
		char *buf = past_the_end(len, by);
		struct iovec iov[2] = { { p.src, 30 }, { buf, len } };
		void *descs[2] = { desc, desc };

		ck_assert_int_eq(write_from(buf, len), -FI_EFAULT);
		ck_assert_int_eq(read_to(buf, len), -FI_EFAULT);
		ck_assert_int_eq(fi_write(p.a.ep, buf, len, desc, p.to, p.base, p.key, &p),
				 -FI_EFAULT);
		ck_assert_int_eq(
			fi_writev(p.a.ep, iov, _i % 2 ? descs : NULL, 2, p.to, p.base, p.key, &p),
			-FI_EFAULT);
		ck_assert_int_eq(
			fi_readv(p.a.ep, iov, _i % 2 ? descs : NULL, 2, p.to, p.base, p.key, &p),
			-FI_EFAULT);
	}
	want_none(&p.a);
	must_close(&mr->fid);
}
END_TEST

START_TEST(values_that_pass_the_end_of_the_address_space_are_refused)
{
	void *bad = past_the_end(sizeof(uint64_t), 4);
	static uint64_t zero, one = 1, result;
	enum fi_op op = ops[_i];

	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &zero, 1, NULL, &result, NULL, p.to, p.base, p.key,
					 FI_UINT64, op, &p),
			 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(fi_atomic(p.a.ep, bad, 1, NULL, p.to, p.base, p.key, FI_UINT64, op, &p),
			 -FI_EFAULT);
	ck_assert_int_eq(fi_inject_atomic(p.a.ep, bad, 1, p.to, p.base, p.key, FI_UINT64, op),
			 -FI_EFAULT);
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &one, 1, NULL, bad, NULL, p.to, p.base, p.key,
					 FI_UINT64, op, &p),
			 -FI_EFAULT);
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, NULL, 1, NULL, bad, NULL, p.to, p.base, p.key,
					 FI_UINT64, FI_ATOMIC_READ, &p),
			 -FI_EFAULT);
	ck_assert_int_eq(fi_compare_atomic(p.a.ep, &one, 1, NULL, bad, NULL, &result, NULL, p.to,
					   p.base, p.key, FI_UINT64, FI_CSWAP, &p),
			 -FI_EFAULT);
	ck_assert_int_eq(fi_compare_atomic(p.a.ep, &one, 1, NULL, &zero, NULL, bad, NULL, p.to,
					   p.base, p.key, FI_UINT64, FI_CSWAP, &p),
			 -FI_EFAULT);
	want_none(&p.a);
}
END_TEST

/* Memory that comes and goes meanwhile: each call ends in one way or the other. */
static atomic_bool stop;

static void *come_and_go(void *arg)
{
	while (!atomic_load(&stop)) {
		ck_assert_ptr_eq(map_apart(PAGE), APART);
		munmap(APART, PAGE);
	}
	return arg;
}

START_TEST(buffers_that_another_thread_unmaps_do_no_harm)
{
	static uint64_t zero;
	char *goes = (char *)APART;
	time_t end = time(NULL) + 10; /* under valgrind */
	pthread_t thread;
	int i;

	atomic_store(&stop, false);
	ck_assert_int_eq(pthread_create(&thread, NULL, come_and_go, NULL), 0);
	for (i = 0; i < 2000 && time(NULL) < end; i++) {
		struct fi_cq_data_entry entry;
		struct fi_cq_err_entry err = { 0 };
		ssize_t ret = i % 2 ? read_to(goes, 1 + i % 500)
				    : fi_fetch_atomic(p.a.ep, i % 4 ? (void *)goes : &zero, 1, NULL,
						      goes, NULL, p.to, p.base, p.key, FI_UINT64,
						      i % 4 ? FI_ATOMIC_READ : FI_SUM, &p);

		if (ret == -FI_EFAULT)
			continue;
		ck_assert_int_eq(ret, 0);
		ret = fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS);
		ck_assert(ret == 1 || ret == -FI_EAVAIL);
		if (ret == 1)
			continue;
		ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
		ck_assert_int_eq(err.err, FI_EFAULT);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert_int_gt(i, 20);
}
END_TEST

static TCase *tcase_local(void)
{
	TCase *tc = tcase_create("local");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, a_source_that_is_not_there_is_refused, 0, SIZES);
	tcase_add_test(tc, one_missing_piece_of_a_vector_is_refused);
	tcase_add_test(tc, what_is_injected_has_to_be_there);
	tcase_add_loop_test_raise_signal(tc, what_a_call_reads_crashes_it_if_it_is_not_there,
					 SIGSEGV, 0, CRASHES);
	tcase_add_loop_test(tc, a_destination_that_is_not_there_is_refused, 0, SIZES);
	tcase_add_test(tc, a_destination_that_goes_while_it_is_read_is_refused);
	tcase_add_test(tc, a_large_buffer_takes_the_room_of_what_is_pinned_for_peers);
	tcase_add_loop_test(tc, operands_that_are_not_there_are_refused, 0, 3);
	tcase_add_loop_test(tc, results_that_cannot_be_stored_are_said_to_be, 0, 3);
	tcase_add_loop_test(tc, a_buffer_that_passes_the_end_of_the_address_space_is_refused, 0,
			    SIZES);
	tcase_add_loop_test(tc, values_that_pass_the_end_of_the_address_space_are_refused, 0, 3);
	tcase_add_test(tc, buffers_that_another_thread_unmaps_do_no_harm);
	return tc;
}

UNIT_MAIN("local", tcase_local)
