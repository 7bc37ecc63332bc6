/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much stack the calls need that programs make from user-level threads, whose stacks have 16 KiB
 * (Argobots): the library's part, because verbs are a fake here.
 */
#include <ucontext.h>
#include <sys/mman.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "ep_fixture.h"
#include "unit.h"

#define MOST 6144
#define ROOM (256u << 10)
#define PAINT 0xa5

static struct pair p;
static ucontext_t back, there;
static uint8_t *stack;
static struct unit_capture cap;
static long result;
static struct fid_mr *mr;
static uint64_t word;

/* Sanitizers and compilers that do not optimise need more. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS 1
#else
#define COUNTS 0
#endif

static size_t used_by(void (*call)(void))
{
	size_t i = 0;

	memset(stack, PAINT, ROOM);
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = ROOM;
	there.uc_link = &back;
	makecontext(&there, call, 0);
	swapcontext(&back, &there);
	while (i < ROOM && stack[i] == PAINT)
		i++;
	return ROOM - i;
}

static void reg(void)
{
	result = fi_mr_reg(p.b.domain, p.dst, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 99, 0, &mr,
			   NULL);
}

static void close_region(void)
{
	result = fi_close(&mr->fid);
}

static void reg_refused(void)
{
	result = fi_mr_reg(p.b.domain, p.dst, 4096, 1ull << 60, 0, 98, 0, &mr, NULL);
}

static void write_small(void)
{
	result = fi_write(p.a.ep, p.src, 64, NULL, p.to, p.base, p.key, &p);
}

static void write_copied(void)
{
	result = fi_write(p.a.ep, p.src, 16000, NULL, p.to, p.base, p.key, &p);
}

static void write_registered(void)
{
	result = fi_write(p.a.ep, p.src, PAIR_LEN, NULL, p.to, p.base, p.key, &p);
}

static void read_registered(void)
{
	result = fi_read(p.a.ep, p.src, PAIR_LEN, NULL, p.to, p.base, p.key, &p);
}

static void write_refused(void)
{
	result = fi_write(p.a.ep, p.src, 64, NULL, 12345, p.base, p.key, &p);
}

static void write_of_nothing_there(void)
{
	result = fi_write(p.a.ep, NULL, 8000, NULL, p.to, p.base, p.key, &p);
}

static void fetch(void)
{
	result = fi_fetch_atomic(p.a.ep, &word, 1, NULL, &word, NULL, p.to, p.base, p.key,
				 FI_UINT64, FI_SUM, &p);
}

static void read_queue(void)
{
	struct fi_cq_data_entry e;

	result = fi_cq_sread(p.a.cq, &e, 1, NULL, 10000) == 1 ? 0 : -1;
}

static void read_error(void)
{
	struct fi_cq_err_entry e = { 0 };

	result = fi_cq_readerr(p.a.cq, &e, 0) == 1 ? 0 : -1;
}

static void ask_for_what_is_not_offered(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->caps = FI_COLLECTIVE;
	result = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
}

static void must_need_little(void (*call)(void), const char *name, long expected)
{
	size_t used;

	unit_capture(&cap);
	used = used_by(call);
	unit_captured(&cap);
	ck_assert_msg(result == expected, "%s: %ld instead of %ld", name, result, expected);
	ck_assert_msg(used > 100, "%s: nothing is measured", name);
	ck_assert_msg(!COUNTS || used <= MOST, "%s needs %zu bytes of stack, more than %d", name,
		      used, MOST);
}

#define needs_little(call, expected) must_need_little(call, #call, expected)

static void open_all(void)
{
	stack = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(stack, MAP_FAILED);
	fixture_log();
	pair_open(&p, PLAIN);
}

static void close_all(void)
{
	pair_close(&p);
	munmap(stack, ROOM);
}

START_TEST(stack_of_16_kib_is_enough_for_calls_that_work)
{
	open_all();
	needs_little(reg, 0);
	needs_little(close_region, 0);
	needs_little(write_small, 0);
	needs_little(read_queue, 0);
	needs_little(write_copied, 0);
	needs_little(read_queue, 0);
	needs_little(write_registered, 0);
	needs_little(read_queue, 0);
	needs_little(read_registered, 0);
	needs_little(read_queue, 0);
	needs_little(fetch, 0);
	needs_little(read_queue, 0);
	close_all();
}
END_TEST

START_TEST(stack_of_16_kib_is_enough_for_refusals)
{
	struct fi_cq_data_entry e;

	open_all();
	needs_little(reg_refused, -FI_EINVAL);
	needs_little(write_refused, -FI_EADDRNOTAVAIL);
	needs_little(write_of_nothing_there, -FI_EFAULT);
	needs_little(ask_for_what_is_not_offered, -FI_ENODATA);
	p.key++;
	needs_little(write_small, 0);
	want_soon(fi_cq_read(p.a.cq, &e, 1) == -FI_EAVAIL);
	needs_little(read_error, 0);
	close_all();
}
END_TEST

static TCase *calls(void)
{
	TCase *tc = tcase_create("calls");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_test(tc, stack_of_16_kib_is_enough_for_calls_that_work);
	tcase_add_test(tc, stack_of_16_kib_is_enough_for_refusals);
	return tc;
}

UNIT_MAIN("stack", calls)
