/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers from and to many buffers: some are within the device's reach at a time, and the
 * next ones take their place (buf/local.h, tx/chores.h).
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <rdma/fi_atomic.h>
#include "buf/local.h"
#include "ep_fixture.h"

#define MANY 100u

static struct pair p;

/* The most registrations that were alive at a time. */
static atomic_uint most;
static unsigned before;
/* Registering this address takes until may_go. */
static void *_Atomic held;
static atomic_bool inside, may_go;

int __real_mrf_vmr_reg(struct mrf_vpd *pd, const void *addr, size_t len, uint64_t iova,
		       unsigned rights, struct mrf_vmr *vmr);
int __wrap_mrf_vmr_reg(struct mrf_vpd *pd, const void *addr, size_t len, uint64_t iova,
		       unsigned rights, struct mrf_vmr *vmr);
int __wrap_mrf_vmr_reg(struct mrf_vpd *pd, const void *addr, size_t len, uint64_t iova,
		       unsigned rights, struct mrf_vmr *vmr)
{
	int64_t end = mrf_now_ms() + LONG_MS;
	bool hold = addr == atomic_load(&held);
	unsigned now;
	int ret;

	if (hold)
		atomic_store(&inside, true);
	while (hold && !atomic_load(&may_go) && mrf_now_ms() < end)
		usleep(200);
	ret = __real_mrf_vmr_reg(pd, addr, len, iova, rights, vmr);
	now = fake_live_of(FAKE_VMR_REG);

	if (now > atomic_load(&most))
		atomic_store(&most, now);
	return ret;
}

/* --- buffers ------------------------------------------------------------------------------ */

static uint8_t *mem;	  /* MANY pages of the first node, */
static struct fid_mr *mr; /* registered where descriptors are used */
static struct iovec iov[MRF_LIMIT_IOV];
static void *desc[MRF_LIMIT_IOV];
static uint8_t want[MANY * PAGE];

/* Each has len bytes, at another place of its page, not in order. */
static void cut(size_t len)
{
	for (unsigned i = 0; i < MANY; i++) {
		iov[i].iov_base = mem + (i * 37 % MANY) * PAGE + (len < PAGE ? i : 0);
		iov[i].iov_len = len;
	}
}

static void scatter(const uint8_t *from)
{
	for (unsigned i = 0; i < MANY; from += iov[i++].iov_len)
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
}

static bool is_scattered(const uint8_t *from)
{
	for (unsigned i = 0; i < MANY; from += iov[i++].iov_len) {
		if (memcmp(iov[i].iov_base, from, iov[i].iov_len))
			return false;
	}
	return true;
}

static struct fid_mr *there;
static uint8_t *dst;

static const struct {
	int mr_mode;
	bool kept; /* local buffers are remembered */
} modes[] = { { 0, true },
	      { 0, false },
	      { FI_MR_ALLOCATED, false },
	      { FI_MR_ALLOCATED | FI_MR_LOCAL, false },
	      { FI_MR_LOCAL, false } };
#define MODES ((int)MRF_ARRAY_SIZE(modes))

static void open_mode(int mode)
{
	setenv("FI_MR_CACHE_MONITOR", modes[mode].kept ? "" : "disabled", 1);
	if (modes[mode].kept)
		unsetenv("FI_MR_CACHE_MONITOR");
	pair_open(&p, &(struct node_opt){ .mr_mode = modes[mode].mr_mode });
	mem = pages(MANY * PAGE);
	dst = pages(MANY * PAGE);
	there = node_reg(&p.b, dst, MANY * PAGE, REMOTE_RW, 5);
	mr = modes[mode].mr_mode & FI_MR_LOCAL
		     ? node_reg(&p.a, mem, MANY * PAGE, FI_READ | FI_WRITE, 6)
		     : NULL;
	for (unsigned i = 0; i < MRF_LIMIT_IOV; i++)
		desc[i] = mr ? fi_mr_desc(mr) : NULL;
	fill(want, sizeof(want), 7);
	/* Connects; from now on only local buffers are registered. */
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	before = fake_live_of(FAKE_VMR_REG);
	atomic_store(&most, before);
}

static void close_mode(void)
{
	if (mr)
		must_close(&mr->fid);
	must_close(&there->fid);
	pair_close(&p);
	unsetenv("FI_MR_CACHE_MONITOR");
}

static ssize_t write_many(unsigned count)
{
	return fi_writev(p.a.ep, iov, mr ? desc : NULL, count, p.to, 0, 5, &p);
}

static ssize_t read_many(unsigned count)
{
	return fi_readv(p.a.ep, iov, mr ? desc : NULL, count, p.to, 0, 5, &p);
}

/* No more than the first ones and their successors, one after the other. */
static bool few_were_held(void)
{
	return atomic_load(&most) - before <= MRF_LOCAL_PIECES;
}

/* Nothing is left, not even of leases that were given back. */
static bool is_idle(void)
{
	struct fi_cq_data_entry entry;

	ck_assert_int_eq(fi_cq_read(p.a.cq, &entry, 1), -FI_EAGAIN);
	return node_idle(&p.a);
}

/* --- all of them ---------------------------------------------------------------------------- */

static const size_t lens[] = { 1, 8, 160, 1000, PAGE };

START_TEST(many_buffers_are_written_and_read)
{
	size_t i, n;

	open_mode(_i);
	for (i = 0; i < MRF_ARRAY_SIZE(lens); i++) {
		n = MANY * lens[i];
		cut(lens[i]);
		scatter(want);
		ck_assert_int_eq(write_many(MANY), 0);
		want_ok(&p.a, &p);
		ck_assert_msg(!memcmp(dst, want, n), "%zu bytes were written", n);
		memset(mem, 0, MANY * PAGE);
		ck_assert_int_eq(read_many(MANY), 0);
		want_ok(&p.a, &p);
		ck_assert_msg(is_scattered(want), "%zu bytes were read", n);
		memset(dst, 0, MANY * PAGE);
	}
	/* Elsewhere the target registers, too, when it is asked. */
	ck_assert(!(modes[_i].mr_mode & FI_MR_ALLOCATED) || few_were_held());
	want_soon(is_idle());
	close_mode();
}
END_TEST

/* Those behind it do not overtake, and those ahead are not kept back. */
START_TEST(many_buffers_keep_the_order_of_their_peer)
{
	open_mode(_i);
	cut(PAGE);
	scatter(want);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(fi_write(p.a.ep, want, 8, NULL, p.to, 8 * i, p.key, &want[i]),
				 _i >= 3 ? -FI_EINVAL : 0);
		ck_assert_int_eq(write_many(MANY), 0);
		ck_assert_int_eq(fi_inject_write(p.a.ep, "after", 5, p.to, 0, 5), 0);
		if (_i < 3)
			want_ok(&p.a, &want[i]);
		want_ok(&p.a, &p);
		want_soon(is_idle());
		ck_assert(!memcmp(dst, "after", 5) && !memcmp(dst + 5, want + 5, MANY * PAGE - 5));
	}
	close_mode();
}
END_TEST

/* --- one that is not there ------------------------------------------------------------------ */

static const void *gone;

static bool kernel_says(const void *addr, size_t len)
{
	(void)len;
	return addr != gone;
}

static void lose(unsigned nth)
{
	gone = iov[nth].iov_base;
	munmap((void *)((uintptr_t)gone & ~(uintptr_t)(PAGE - 1)), PAGE);
	fake.is_there = kernel_says;
}

START_TEST(first_buffers_that_are_not_there_are_refused_by_the_call)
{
	open_mode(_i);
	cut(PAGE);
	lose(3);
	ck_assert_int_eq(write_many(MANY), -FI_EFAULT);
	ck_assert_int_eq(read_many(MANY), -FI_EFAULT);
	want_none(&p.a);
	ck_assert(is_idle());
	fake.is_there = NULL;
	close_mode();
}
END_TEST

START_TEST(later_buffers_that_are_not_there_end_the_transfer)
{
	open_mode(_i);
	cut(PAGE);
	scatter(want);
	lose(60);
	ck_assert_int_eq(write_many(MANY), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EFAULT,
				  "229376 of 409600 bytes were done, then: "
				  "local buffer"),
			 4013);
	ck_assert(!memcmp(dst, want, 56 * PAGE));
	ck_assert_uint_eq(dst[56 * PAGE], 0);
	ck_assert_int_eq(read_many(MANY), 0);
	ck_assert_int_eq(want_err(&p.a, &p, FI_EFAULT, "local buffer"), 4013);
	want_soon(is_idle());
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake.is_there = NULL;
	close_mode();
}
END_TEST

/* Parts that go through a slot, before and behind one that is not there. */
START_TEST(later_buffers_that_are_not_there_leave_the_slots_alone)
{
	open_mode(_i);
	cut(2000);
	lose(60);
	ck_assert_int_eq(write_many(MANY), 0);
	want_err(&p.a, &p, FI_EFAULT, "local buffer");
	fake.is_there = NULL;
	for (unsigned i = 0; i < 100; i++) {
		memset(p.dst, 0, 1000);
		pair_write(&p, 0, 1000);
		want_ok(&p.a, pair_ctx(&p, 0));
		ck_assert(!memcmp(p.dst, p.src, 1000));
	}
	want_soon(is_idle());
	close_mode();
}
END_TEST

/* FI_MR_LOCAL: whatever is wrong with any of them, the call says it. */
START_TEST(descriptors_of_all_buffers_are_checked_by_the_call)
{
	struct fid_mr *other;

	open_mode(3);
	cut(PAGE);
	other = node_reg(&p.a, p.src, PAGE, FI_READ | FI_WRITE, 8);
	desc[90] = NULL;
	ck_assert_int_eq(write_many(MANY), -FI_EINVAL);
	desc[90] = fi_mr_desc(other);
	ck_assert_int_eq(write_many(MANY), -FI_EINVAL);
	must_close(&other->fid);
	want_none(&p.a);
	close_mode();
}
END_TEST

/* --- regions of many segments ----------------------------------------------------------------- */

/* 8 buffers of 16 segments each: 128 pieces. */
START_TEST(pieces_of_registered_buffers_are_used_as_they_are)
{
	struct iovec seg[16], whole[8];
	struct fid_mr *mrs[8];
	void *descs[8];
	unsigned i, k;

	open_mode(3);
	for (i = 0; i < 6; i++) {
		for (k = 0; k < 16; k++)
			seg[k] = (struct iovec){ mem + (16 * i + k) * PAGE, PAGE };
		mrs[i] = node_regv(&p.a, seg, 16, FI_READ | FI_WRITE, 100 + i);
		descs[i] = fi_mr_desc(mrs[i]);
		whole[i] = (struct iovec){ mem + 16 * i * PAGE, 16 * PAGE };
	}
	memcpy(mem, want, sizeof(want));
	before = fake_live_of(FAKE_VMR_REG);
	atomic_store(&most, before);
	ck_assert_int_eq(fi_writev(p.a.ep, whole, descs, 6, p.to, 0, 5, &p), 0);
	want_ok(&p.a, &p);
	ck_assert(!memcmp(dst, want, 96 * PAGE));
	memset(mem, 0, MANY * PAGE);
	ck_assert_int_eq(fi_readv(p.a.ep, whole, descs, 6, p.to, 0, 5, &p), 0);
	want_ok(&p.a, &p);
	ck_assert(!memcmp(mem, want, 96 * PAGE));
	/* Nothing was registered for it. */
	ck_assert_uint_eq(atomic_load(&most), before);
	for (i = 0; i < 6; i++)
		must_close(&mrs[i]->fid);
	close_mode();
}
END_TEST

/*
 * --- connections that break, and ends -----------------------------------------------------------
 */

/* At each access of the transfer, one after the other. */
START_TEST(many_buffers_survive_a_connection_that_breaks)
{
	unsigned nth;

	open_mode(_i);
	cut(PAGE);
	scatter(want);
	for (nth = 1; nth <= MANY / MRF_LOCAL_IOV; nth += 3) {
		memset(dst, 0, MANY * PAGE);
		fake_break(nth, 1, MRF_WC_REFUSED, false);
		ck_assert_int_eq(write_many(MANY), 0);
		want_ok(&p.a, &p);
		ck_assert_msg(!memcmp(dst, want, MANY * PAGE), "access %u", nth);
	}
	close_mode();
}
END_TEST

START_TEST(many_buffers_are_let_go_when_the_endpoint_closes)
{
	open_mode(_i);
	cut(PAGE);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(write_many(MANY), 0);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	ck_assert(!(modes[_i].mr_mode & FI_MR_ALLOCATED) || fake_live_of(FAKE_VMR_REG) <= before);
	close_mode();
}
END_TEST

/* --- while a thread brings buffers within reach ---------------------------------------------- */

static bool is_preparing(void)
{
	struct fi_cq_data_entry entry;

	ck_assert_int_eq(fi_cq_read(p.a.cq, &entry, 1), -FI_EAGAIN);
	return atomic_load(&inside);
}

/* A write of many buffers, whose second part is being registered. */
static void hold_up(void)
{
	cut(PAGE);
	scatter(want);
	atomic_store(&inside, false);
	atomic_store(&may_go, false);
	atomic_store(&held, iov[MRF_LOCAL_IOV].iov_base);
	ck_assert_int_eq(write_many(MANY), 0);
	want_soon(is_preparing());
}

static void let_go(void)
{
	atomic_store(&may_go, true);
	atomic_store(&held, NULL);
}

/* Its region goes, and the connection; still it ends once, and not before the thread is done. */
START_TEST(an_operation_does_not_end_while_its_buffers_are_prepared)
{
	open_mode(_i);
	hold_up();
	must_close(&there->fid);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	ck_assert_int_eq(fi_inject_write(p.a.ep, "next", 4, p.to, p.base, p.key), 0);
	usleep(50000);
	ck_assert(is_preparing());
	ck_assert_uint_eq(node_state(&p.a, p.to).ops, 2);
	let_go();
	want_err(&p.a, NULL, FI_ECONNREFUSED, NULL);
	want_soon(node_state(&p.a, p.to).ops <= 1);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	there = node_reg(&p.b, dst, MANY * PAGE, REMOTE_RW, 5);
	close_mode();
}
END_TEST

static void reopen_target(void)
{
	struct sockaddr_in *addr = p.b.info->src_addr;
	uint16_t port = node_port(&p.b);

	must_close(&p.b.ep->fid);
	addr->sin_port = htons(port);
	ck_assert_int_eq(node_try_ep(&p.b, PLAIN, &p.b.ep), 0);
	ck_assert_uint_eq(node_port(&p.b), port);
}

/* Nor when its key turns out to be closed meanwhile. */
START_TEST(an_operation_is_not_refused_while_its_buffers_are_prepared)
{
	open_mode(_i);
	hold_up();
	must_close(&there->fid);
	reopen_target();
	for (unsigned i = 0; i < 100; i++) {
		usleep(1000);
		ck_assert(is_preparing());
	}
	ck_assert_uint_eq(node_state(&p.a, p.to).ops, 1);
	let_go();
	want_err(&p.a, &p, FI_EKEYREJECTED, NULL);
	want_soon(is_idle());
	there = node_reg(&p.b, dst, MANY * PAGE, REMOTE_RW, 5);
	close_mode();
}
END_TEST

START_TEST(closing_waits_for_the_thread_that_prepares)
{
	struct fid_ep *ep;

	open_mode(_i);
	hold_up();
	ep = p.a.ep;
	p.a.ep = NULL;
	let_go();
	must_close(&ep->fid);
	close_mode();
}
END_TEST

/* The agent makes all the progress there is. */
START_TEST(many_buffers_need_nobody_who_looks)
{
	static uint8_t seen[MANY * PAGE];
	int64_t end;

	open_mode(_i);
	cut(PAGE);
	scatter(want);
	for (unsigned i = 0; i < 20; i++) {
		memset(dst, 0, MANY * PAGE);
		ck_assert_int_eq(write_many(MANY), 0);
		end = mrf_now_ms() + LONG_MS;
		do {
			usleep(500);
			fake_copy(seen, dst, sizeof(seen));
		} while (memcmp(seen, want, sizeof(seen)) != 0 && mrf_now_ms() < end);
		ck_assert(!memcmp(seen, want, sizeof(seen)));
		want_ok(&p.a, &p);
	}
	close_mode();
}
END_TEST

/*
 * --- atomic operations --------------------------------------------------------------------------
 */

/* Each element in a buffer of its own, results too. */
START_TEST(many_buffers_of_values_and_results)
{
	struct fi_ioc values[MANY], results[MANY];
	unsigned i;

	open_mode(_i);
	for (i = 0; i < MANY; i++) {
		values[i] = (struct fi_ioc){ mem + i * PAGE, 1 };
		results[i] = (struct fi_ioc){ mem + (MANY - 1 - i) * PAGE + 64, 1 };
		memcpy(values[i].addr, &(uint32_t){ i + 1 }, 4);
	}
	for (uint32_t k = 0; k < 2; k++) {
		ck_assert_int_eq(fi_fetch_atomicv(p.a.ep, values, mr ? desc : NULL, MANY, results,
						  mr ? desc : NULL, MANY, p.to, 0, 5, FI_UINT32,
						  FI_SUM, &p),
				 0);
		want_ok(&p.a, &p);
		for (i = 0; i < MANY; i++)
			ck_assert(!memcmp(results[i].addr, &(uint32_t){ k * (i + 1) }, 4));
	}
	for (i = 0; i < MANY; i++)
		ck_assert(!memcmp(dst + 4 * i, &(uint32_t){ 2 * (i + 1) }, 4));
	close_mode();
}
END_TEST

static TCase *many(void)
{
	TCase *tc = tcase_create("many");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, many_buffers_are_written_and_read, 0, MODES);
	tcase_add_loop_test(tc, many_buffers_keep_the_order_of_their_peer, 0, MODES);
	tcase_add_loop_test(tc, first_buffers_that_are_not_there_are_refused_by_the_call, 0, 3);
	tcase_add_loop_test(tc, later_buffers_that_are_not_there_end_the_transfer, 0, 3);
	tcase_add_loop_test(tc, later_buffers_that_are_not_there_leave_the_slots_alone, 0, 3);
	tcase_add_loop_test(tc, an_operation_does_not_end_while_its_buffers_are_prepared, 1, 3);
	tcase_add_loop_test(tc, an_operation_is_not_refused_while_its_buffers_are_prepared, 1, 3);
	tcase_add_loop_test(tc, closing_waits_for_the_thread_that_prepares, 1, 3);
	tcase_add_loop_test(tc, many_buffers_need_nobody_who_looks, 0, MODES);
	tcase_add_test(tc, descriptors_of_all_buffers_are_checked_by_the_call);
	tcase_add_test(tc, pieces_of_registered_buffers_are_used_as_they_are);
	tcase_add_loop_test(tc, many_buffers_survive_a_connection_that_breaks, 0, MODES);
	tcase_add_loop_test(tc, many_buffers_are_let_go_when_the_endpoint_closes, 0, MODES);
	tcase_add_loop_test(tc, many_buffers_of_values_and_results, 0, MODES);
	return tc;
}

UNIT_MAIN("many", many)
