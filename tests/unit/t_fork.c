/* SPDX-License-Identifier: BSD-2-Clause */
/* A forked child, what it inherits, and what it opens itself. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <rdma/fi_atomic.h>
#include "base/fork.h"
#include "base/log.h"
#include "base/renew.h"
#include "child.h"
#include "ep_fixture.h"

/* --- which process this is -------------------------------------------------------- */

/* True when it was. The child leaves without Check hearing of it. */
static bool child_says(bool (*child)(void), pid_t pid)
{
	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(!child());
	return child_succeeded(pid);
}

static uint64_t mine;

static bool not_mine(void)
{
	return !mrf_fork_ours(mine);
}

static bool not_mine_when_something_is_opened(void)
{
	return mrf_fork_here() != mine && not_mine() && mrf_fork_ours(mrf_fork_here());
}

static bool nor_is_a_child_of_it(void)
{
	uint64_t own = mrf_fork_here();
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(mrf_fork_ours(own) || mrf_fork_here() == own || !not_mine());
	return waitpid(pid, &status, 0) == pid && !status;
}

START_TEST(process_keeps_its_number)
{
	mine = mrf_fork_here();
	ck_assert_uint_ne(mine, 0);
	ck_assert_uint_eq(mrf_fork_here(), mine);
	ck_assert(mrf_fork_ours(mine));
	ck_assert_uint_eq(mrf_fork_pid(mine), getpid());
}
END_TEST

START_TEST(child_has_another_number_and_so_has_its_child)
{
	mine = mrf_fork_here();
	ck_assert(child_says(not_mine, fork()));
	ck_assert(child_says(not_mine_when_something_is_opened, fork()));
	ck_assert(child_says(nor_is_a_child_of_it, fork()));
	ck_assert(mrf_fork_ours(mine));
}
END_TEST

START_TEST(child_that_no_handler_was_told_of_has_another_number)
{
	mine = mrf_fork_here();
	ck_assert(child_says(not_mine, (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
}
END_TEST

/* --- what is static ---------------------------------------------------------------- */

static int renewed;

static void renew_more(void)
{
	renewed++;
}

static struct mrf_static_lock taken = MRF_STATIC_LOCK(NULL);
static struct mrf_static_lock taken_too = MRF_STATIC_LOCK(renew_more);
static atomic_bool both_taken, may_end;

static void *hold_both(void *arg)
{
	mrf_static_take(&taken);
	mrf_static_take(&taken_too);
	atomic_store(&both_taken, true);
	while (!atomic_load(&may_end))
		usleep(1000);
	mrf_static_release(&taken_too);
	mrf_static_release(&taken);
	return arg;
}

static bool nobody_holds_them(void)
{
	mrf_static_take(&taken);
	mrf_static_take(&taken_too);
	mrf_static_release(&taken_too);
	mrf_static_release(&taken);
	return renewed == 1;
}

static bool nor_in_a_child_of_it(void)
{
	int status;
	pid_t pid = fork();

	renewed--;
	if (!pid)
		_exit(!nobody_holds_them());
	return waitpid(pid, &status, 0) == pid && !status;
}

START_TEST(nobody_holds_a_static_lock_in_a_child)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, hold_both, NULL), 0);
	while (!atomic_load(&both_taken))
		usleep(1000);
	ck_assert(child_says(nobody_holds_them, fork()));
	ck_assert(child_says(nor_in_a_child_of_it, fork()));
	ck_assert_int_eq(renewed, 0);
	atomic_store(&may_end, true);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

/* --- what a child inherits -------------------------------------------------------- */

static struct pair p;
static struct fid_eq *eq;
static struct fid_mr *got;
static uint8_t raw[4096];
static char text[4096];

static long closes(struct fid *fid)
{
	return fi_close(fid);
}

#define CALL(name, value)       \
	static long name(void)  \
	{                       \
		return (value); \
	}

CALL(close_region, closes(&p.mr->fid))
CALL(close_ep, closes(&p.a.ep->fid))
CALL(close_cq, closes(&p.a.cq->fid))
CALL(close_cntr, closes(&p.a.wr->fid))
CALL(close_av, closes(&p.a.av->fid))
CALL(close_eq, closes(&eq->fid))
CALL(close_domain, closes(&p.a.domain->fid))
CALL(close_fabric, closes(&p.a.fabric->fid))

CALL(reg, fi_mr_reg(p.b.domain, p.dst, 8, FI_REMOTE_READ, 0, 9, 0, &got, NULL))
CALL(bind_region, fi_mr_bind(p.mr, &p.b.ep->fid, 0))
CALL(enable_region, fi_mr_enable(p.mr))
CALL(refresh, fi_mr_refresh(p.mr, &(struct iovec){ p.dst, 8 }, 1, 0))

static long regv(void)
{
	struct iovec iov[2] = { { p.dst, 8 }, { p.dst + 100, 8 } };

	return fi_mr_regv(p.b.domain, iov, 2, FI_REMOTE_READ, 0, 9, 0, &got, NULL);
}

static long regattr(void)
{
	struct iovec iov = { p.dst, 8 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = FI_READ };

	return fi_mr_regattr(p.b.domain, &attr, 0, &got);
}

static long raw_attr(void)
{
	uint64_t base;
	size_t size = sizeof(raw);

	return fi_mr_raw_attr(p.mr, &base, raw, &size, 0);
}

/* As large as it is: what was told before the fork is remembered. */
static long raw_attr_again(void)
{
	uint64_t base;
	size_t size = 64;

	return fi_mr_raw_attr(p.mr, &base, raw, &size, 0);
}

static long map_raw(void)
{
	uint64_t key;

	return fi_mr_map_raw(p.a.domain, 0, raw, sizeof(raw), &key, 0);
}

CALL(unmap, fi_mr_unmap_key(p.a.domain, 1))

static long rma_msg(bool read)
{
	struct iovec iov = { p.src, 8 };
	struct fi_rma_iov there = { p.base, 8, p.key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &p.desc,
				  .iov_count = 1,
				  .addr = p.to,
				  .rma_iov = &there,
				  .rma_iov_count = 1 };

	return read ? fi_readmsg(p.a.ep, &msg, 0) : fi_writemsg(p.a.ep, &msg, 0);
}

CALL(do_read, fi_read(p.a.ep, p.src, 8, p.desc, p.to, p.base, p.key, NULL))
CALL(do_write, fi_write(p.a.ep, p.src, 8, p.desc, p.to, p.base, p.key, NULL))
CALL(do_readv, fi_readv(p.a.ep, &(struct iovec){ p.src, 8 }, &p.desc, 1, p.to, p.base, p.key, NULL))
CALL(do_writev,
     fi_writev(p.a.ep, &(struct iovec){ p.src, 8 }, &p.desc, 1, p.to, p.base, p.key, NULL))
CALL(do_readmsg, rma_msg(true))
CALL(do_writemsg, rma_msg(false))
CALL(do_inject, fi_inject_write(p.a.ep, p.src, 8, p.to, p.base, p.key))
CALL(do_writedata, fi_writedata(p.a.ep, p.src, 8, p.desc, 1, p.to, p.base, p.key, NULL))
CALL(do_injectdata, fi_inject_writedata(p.a.ep, p.src, 8, 1, p.to, p.base, p.key))

static long atomic_v(enum fi_op op, bool compare, bool fetch)
{
	struct fi_ioc ioc = { p.src, 1 }, result = { p.src + 8, 1 };

	if (compare)
		return fi_compare_atomicv(p.a.ep, &ioc, &p.desc, 1, &ioc, &p.desc, 1, &result,
					  &p.desc, 1, p.to, p.base, p.key, FI_UINT64, op, NULL);
	if (fetch)
		return fi_fetch_atomicv(p.a.ep, &ioc, &p.desc, 1, &result, &p.desc, 1, p.to, p.base,
					p.key, FI_UINT64, op, NULL);
	return fi_atomicv(p.a.ep, &ioc, &p.desc, 1, p.to, p.base, p.key, FI_UINT64, op, NULL);
}

static long atomic_msg(enum fi_op op, bool compare, bool fetch)
{
	struct fi_ioc ioc = { p.src, 1 }, result = { p.src + 8, 1 };
	struct fi_rma_ioc there = { p.base, 1, p.key };
	struct fi_msg_atomic msg = { .msg_iov = &ioc,
				     .desc = &p.desc,
				     .iov_count = 1,
				     .addr = p.to,
				     .rma_iov = &there,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = op };

	if (compare)
		return fi_compare_atomicmsg(p.a.ep, &msg, &ioc, &p.desc, 1, &result, &p.desc, 1, 0);
	if (fetch)
		return fi_fetch_atomicmsg(p.a.ep, &msg, &result, &p.desc, 1, 0);
	return fi_atomicmsg(p.a.ep, &msg, 0);
}

/* One that goes to the device, and one that goes to the peer's agent. */
CALL(do_atomic, fi_atomic(p.a.ep, p.src, 1, p.desc, p.to, p.base, p.key, FI_UINT64, FI_SUM, NULL))
CALL(do_atomic_min,
     fi_atomic(p.a.ep, p.src, 1, p.desc, p.to, p.base, p.key, FI_UINT64, FI_MIN, NULL))
CALL(do_atomicv, atomic_v(FI_SUM, false, false))
CALL(do_atomicmsg, atomic_msg(FI_SUM, false, false))
CALL(do_inject_atomic, fi_inject_atomic(p.a.ep, p.src, 1, p.to, p.base, p.key, FI_UINT64, FI_SUM))
CALL(do_fetch, fi_fetch_atomic(p.a.ep, p.src, 1, p.desc, p.src + 8, p.desc, p.to, p.base, p.key,
			       FI_UINT64, FI_SUM, NULL))
CALL(do_fetchv, atomic_v(FI_SUM, false, true))
CALL(do_fetchmsg, atomic_msg(FI_SUM, false, true))
CALL(do_compare, fi_compare_atomic(p.a.ep, p.src, 1, p.desc, p.src, p.desc, p.src + 8, p.desc, p.to,
				   p.base, p.key, FI_UINT64, FI_CSWAP, NULL))
CALL(do_comparev, atomic_v(FI_CSWAP, true, false))
CALL(do_comparemsg, atomic_msg(FI_CSWAP, true, false))
CALL(atomic_valid, fi_atomicvalid(p.a.ep, FI_UINT64, FI_SUM, &(size_t){ 0 }))
CALL(fetch_valid, fi_fetch_atomicvalid(p.a.ep, FI_UINT64, FI_SUM, &(size_t){ 0 }))
CALL(compare_valid, fi_compare_atomicvalid(p.a.ep, FI_UINT64, FI_CSWAP, &(size_t){ 0 }))
CALL(query_atomic, fi_query_atomic(p.a.domain, FI_UINT64, FI_SUM, (void *)text, 0))

CALL(cq_read, fi_cq_read(p.a.cq, text, 1))
CALL(cq_readfrom, fi_cq_readfrom(p.a.cq, text, 1, NULL))
CALL(cq_readerr, fi_cq_readerr(p.a.cq, (void *)text, 0))
CALL(cq_sread, fi_cq_sread(p.a.cq, text, 1, NULL, 0))
CALL(cq_sreadfrom, fi_cq_sreadfrom(p.a.cq, text, 1, NULL, NULL, 0))
CALL(cq_signal, fi_cq_signal(p.a.cq))
CALL(cq_getwait, fi_control(&p.a.cq->fid, FI_GETWAIT, text))

CALL(cntr_wait, fi_cntr_wait(p.a.wr, 1000, 0))
CALL(cntr_add, fi_cntr_add(p.a.wr, 1))
CALL(cntr_adderr, fi_cntr_adderr(p.a.wr, 1))
CALL(cntr_set, fi_cntr_set(p.a.wr, 7))
CALL(cntr_seterr, fi_cntr_seterr(p.a.wr, 7))
CALL(cntr_getwait, fi_control(&p.a.wr->fid, FI_GETWAIT, text))

CALL(eq_read, fi_eq_read(eq, (uint32_t *)raw, text, sizeof(text), 0))
CALL(eq_sread, fi_eq_sread(eq, (uint32_t *)raw, text, sizeof(text), 0, 0))
CALL(eq_readerr, fi_eq_readerr(eq, (void *)text, 0))
CALL(eq_write, fi_eq_write(eq, 1, text, 8, 0))
CALL(eq_getwait, fi_control(&eq->fid, FI_GETWAIT, text))

static long av_insert(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	fi_addr_t fi_addr;

	return fi_av_insert(p.a.av, &addr, 1, &fi_addr, 0, NULL);
}

CALL(av_insertsvc, fi_av_insertsvc(p.a.av, "10.99.1.1", "7", (fi_addr_t *)raw, 0, NULL))
CALL(av_insertsym, fi_av_insertsym(p.a.av, "10.99.1.1", 1, "7", 1, (fi_addr_t *)raw, 0, NULL))
CALL(av_remove, fi_av_remove(p.a.av, &p.to, 1, 0))
CALL(av_lookup, fi_av_lookup(p.a.av, p.to, text, &(size_t){ sizeof(text) }))
CALL(av_bind, fi_av_bind(p.a.av, &eq->fid, 0))

CALL(ep_bind, fi_ep_bind(p.a.ep, &p.a.cq->fid, FI_TRANSMIT))
CALL(ep_enable, fi_enable(p.a.ep))
CALL(ep_name, fi_getname(&p.a.ep->fid, text, &(size_t){ sizeof(text) }))
CALL(ep_left, p.a.ep->ops->tx_size_left(p.a.ep))
CALL(ep_cancel, fi_cancel(&p.a.ep->fid, NULL))

CALL(open_domain, fi_domain(p.a.fabric, p.a.info, (struct fid_domain **)raw, NULL))
CALL(open_ep, fi_endpoint(p.a.domain, p.a.info, (struct fid_ep **)raw, NULL))
CALL(open_av, fi_av_open(p.a.domain, &(struct fi_av_attr){ 0 }, (struct fid_av **)raw, NULL))
CALL(open_cq, fi_cq_open(p.a.domain, &(struct fi_cq_attr){ 0 }, (struct fid_cq **)raw, NULL))
CALL(open_cntr,
     fi_cntr_open(p.a.domain, &(struct fi_cntr_attr){ 0 }, (struct fid_cntr **)raw, NULL))
CALL(open_eq, fi_eq_open(p.a.fabric, &(struct fi_eq_attr){ 0 }, (struct fid_eq **)raw, NULL))
CALL(bind_domain, fi_domain_bind(p.a.domain, &eq->fid, FI_REG_MR))
CALL(trywait, fi_trywait(p.a.fabric, (struct fid *[]){ &p.a.cq->fid }, 1))

#define ROW(name)           \
	{                   \
#name, name \
	}
static const struct {
	const char *name;
	long (*call)(void);
} calls[] = {
	ROW(close_region),  ROW(close_ep),	 ROW(close_cq),
	ROW(close_cntr),    ROW(close_av),	 ROW(close_eq),
	ROW(close_domain),  ROW(close_fabric),	 ROW(reg),
	ROW(regv),	    ROW(regattr),	 ROW(bind_region),
	ROW(enable_region), ROW(refresh),	 ROW(raw_attr),
	ROW(map_raw),	    ROW(raw_attr_again), ROW(unmap),
	ROW(do_read),	    ROW(do_write),	 ROW(do_readv),
	ROW(do_writev),	    ROW(do_readmsg),	 ROW(do_writemsg),
	ROW(do_inject),	    ROW(do_writedata),	 ROW(do_injectdata),
	ROW(do_atomic),	    ROW(do_atomic_min),	 ROW(do_atomicv),
	ROW(do_atomicmsg),  ROW(do_fetch),	 ROW(do_inject_atomic),
	ROW(do_fetchv),	    ROW(do_fetchmsg),	 ROW(do_compare),
	ROW(do_comparev),   ROW(do_comparemsg),	 ROW(atomic_valid),
	ROW(fetch_valid),   ROW(compare_valid),	 ROW(query_atomic),
	ROW(cq_read),	    ROW(cq_readfrom),	 ROW(cq_readerr),
	ROW(cq_sread),	    ROW(cq_sreadfrom),	 ROW(cq_signal),
	ROW(cq_getwait),    ROW(cntr_wait),	 ROW(cntr_add),
	ROW(cntr_adderr),   ROW(cntr_set),	 ROW(cntr_seterr),
	ROW(cntr_getwait),  ROW(eq_read),	 ROW(eq_sread),
	ROW(eq_readerr),    ROW(eq_write),	 ROW(eq_getwait),
	ROW(av_insert),	    ROW(av_insertsvc),	 ROW(av_insertsym),
	ROW(av_remove),	    ROW(av_lookup),	 ROW(av_bind),
	ROW(ep_bind),	    ROW(ep_enable),	 ROW(ep_name),
	ROW(ep_left),	    ROW(ep_cancel),	 ROW(open_domain),
	ROW(open_ep),	    ROW(open_av),	 ROW(open_cq),
	ROW(open_cntr),	    ROW(open_eq),	 ROW(bind_domain),
	ROW(trywait),
};

/* What the call said on standard error. */
static const char *lines_of(long (*call)(void), long *ret)
{
	static struct unit_capture cap;

	unit_capture(&cap);
	*ret = call();
	return unit_captured(&cap);
}

static bool one_line(const char *lines)
{
	return unit_lines(lines) == 1 && strstr(lines, "MRF-E5202") &&
	       strstr(lines, "forked child");
}

static bool every_call_is_refused(void)
{
	bool good = true;
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		long ret;
		const char *lines = lines_of(calls[i].call, &ret);

		if (ret == -FI_EPERM && one_line(lines))
			continue;
		fprintf(stderr, "%s in a child: %ld, \"%s\"\n", calls[i].name, ret, lines);
		good = false;
	}
	return good;
}

CALL(cntr_read, (long)fi_cntr_read(p.a.wr))
CALL(cntr_readerr, (long)fi_cntr_readerr(p.a.wr))

/* A completion is there, which a child that polled would take. */
static bool counters_stand_still(void)
{
	long value, err;

	return one_line(lines_of(cntr_read, &value)) && !value &&
	       one_line(lines_of(cntr_readerr, &err)) && !err;
}

static void open_all(void)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .counters = true };
	struct fi_eq_attr attr = { .flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC };

	fixture_log();
	pair_open(&p, &opt);
	ck_assert_int_eq(fi_eq_open(p.a.fabric, &attr, &eq, NULL), 0);
	pair_write(&p, 0, 8);
	want_ok(&p.a, NULL);
	ck_assert_int_eq(raw_attr_again(), 0);
}

static void close_all(void)
{
	must_close(&eq->fid);
	pair_close(&p);
}

START_TEST(child_is_refused_every_call_on_what_its_parent_opened)
{
	open_all();
	ck_assert(child_says(every_call_is_refused, fork()));
	ck_assert(
		child_says(every_call_is_refused, (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
	pair_write(&p, 100, 8);
	want_ok(&p.a, pair_ctx(&p, 100));
	ck_assert(!memcmp(p.dst + 100, p.src + 100, 8));
	close_all();
}
END_TEST

/* Was started like that, and has opened everything. */
static bool descriptors_0_to_2_stay_free(void)
{
	struct node_opt opt = { .counters = true };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	int fd;

	for (fd = 0; fd < 3; fd++)
		close(fd);
	pair_open(&p, &opt);
	if (fi_eq_open(p.a.fabric, &attr, &eq, NULL))
		return false;
	pair_write(&p, 0, PAIR_LEN);
	want_ok(&p.a, NULL);
	fi_cntr_wait(p.a.wr, 2, 10);
	for (fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			return false;
	}
	close_all();
	return true;
}

START_TEST(descriptors_of_the_library_are_above_2)
{
	ck_assert(child_says(descriptors_0_to_2_stay_free, fork()));
}
END_TEST

START_TEST(child_reads_no_news_from_its_parents_counter)
{
	open_all();
	ck_assert_int_eq(fi_cntr_set(p.a.wr, 0), 0);
	pair_write(&p, 0, 8);
	ck_assert(child_says(counters_stand_still, fork()));
	want_soon(fi_cntr_read(p.a.wr) == 1);
	want_ok(&p.a, NULL);
	close_all();
}
END_TEST

/* Arguments of a call on an object that the child opened itself. */
static bool parents_are_no_arguments_either(void)
{
	struct fi_fabric_attr attr = { .prov_name = (char *)"mrfab",
				       .api_version = FI_VERSION(1, 17) };
	struct fid *fids[] = { &p.a.cq->fid, &eq->fid, &p.a.wr->fid };
	struct fid_fabric *fabric;
	bool good = true;
	size_t i;

	if (fi_fabric(&attr, &fabric, NULL))
		return false;
	for (i = 0; i < 3; i++)
		good = good && fi_trywait(fabric, &fids[i], 1) == -FI_EPERM;
	return !fi_close(&fabric->fid) && good;
}

START_TEST(child_cannot_wait_on_its_parents_queues_through_its_own_fabric)
{
	open_all();
	ck_assert(child_says(parents_are_no_arguments_either, fork()));
	close_all();
}
END_TEST

/* --- what a child opens ----------------------------------------------------------- */

#ifndef __SANITIZE_THREAD__ /* which starts no thread after a fork of several */

static bool own_pair_works(void)
{
	/* Check's assertions would be the parent's. */
	struct pair own;

	pair_open(&own, PLAIN);
	pair_write(&own, 0, 5000);
	want_ok(&own.a, pair_ctx(&own, 0));
	if (!filled(own.dst, 5000, 1))
		return false;
	pair_close(&own);
	return closes(&p.mr->fid) == -FI_EPERM;
}

START_TEST(child_works_with_what_it_opens_itself)
{
	open_all();
	ck_assert(child_says(own_pair_works, fork()));
	pair_write(&p, 100, 8);
	want_ok(&p.a, pair_ctx(&p, 100));
	close_all();
}
END_TEST

#endif

static TCase *tcase_number(void)
{
	TCase *tc = tcase_create("number");

	tcase_add_test(tc, process_keeps_its_number);
	tcase_add_test(tc, child_has_another_number_and_so_has_its_child);
	tcase_add_test(tc, child_that_no_handler_was_told_of_has_another_number);
	tcase_add_test(tc, nobody_holds_a_static_lock_in_a_child);
	return tc;
}

static TCase *tcase_child(void)
{
	TCase *tc = tcase_create("child");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, child_is_refused_every_call_on_what_its_parent_opened);
	tcase_add_test(tc, descriptors_of_the_library_are_above_2);
	tcase_add_test(tc, child_reads_no_news_from_its_parents_counter);
	tcase_add_test(tc, child_cannot_wait_on_its_parents_queues_through_its_own_fabric);
#ifndef __SANITIZE_THREAD__
	tcase_add_test(tc, child_works_with_what_it_opens_itself);
#endif
	return tc;
}

UNIT_MAIN("fork", tcase_number, tcase_child)
