/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation ends once, when nothing of it is out any more, whatever is out and in whatever order
 * it comes back; and what is told to the target is told once: ep/model/account.h. Operations on a
 * peer's device memory are out in more ways than others, so they are what most of these tests use.
 */
#include <pthread.h>
#include "ep/model/account.h"
#include "ep/tx/settle.h"
#include "aborts.h"
#include "far_fixture.h"

#define CAPS_EVENT (CAPS | FI_RMA_EVENT)

/* --- what the first node is told --------------------------------------------------------------- */

/* Connected, and the key of the device's region is known. */
static void open_warm(void)
{
	open_all(0, FI_MR_ALLOCATED);
	/* So many that there is a pair, too. */
	ck_assert_int_eq(write_far(0, 5000), 0);
	want_ok(&p.a, &p);
	want_soon(is_idle());
}

/* The next completion's error, 0 for success. */
static int next_end(void)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS);

	if (ret == 1)
		return 0;
	ck_assert_int_eq(ret, -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
	return err.err;
}

/* All operations have ended, and there was one completion for each. */
static void want_no_more(void)
{
	struct fi_cq_data_entry entry;

	want_idle(&p.a);
	ck_assert_int_eq(fi_cq_read(p.a.cq, &entry, 1), -FI_EAGAIN);
}

/* --- what is in doubt --------------------------------------------------------------------------- */

static int cut_off(ssize_t ret)
{
	ck_assert_int_eq(ret, 0);
	return next_end();
}

/*
 * The packets of requests for device memory count, so that the target's word about an operation that
 * was cut off later is understood.
 */
START_TEST(account_packets_of_requests_are_counted)
{
	uint64_t one = 1, word = 0;

	fake.packets = true;
	open_warm();
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_int_eq(write_far(0, (size_t)_i * 50000 + 1), 0);
	want_ok(&p.a, &p);
	want_soon(is_idle());
	fake_break(1, 1, MRF_WC_FLUSHED, false);
	memset(p.src + 4096, 0x77, 64);
	if (!cut_off(fi_write(p.a.ep, p.src + 4096, 64, NULL, p.to, p.base + 4096, p.key, &p)))
		ck_assert_uint_eq(p.dst[4096], 0x77);
	fake_break(1, 1, MRF_WC_FLUSHED, false);
	if (!cut_off(fi_atomic(p.a.ep, &one, 1, NULL, p.to, p.base + 8192, p.key, FI_UINT64, FI_SUM,
			       &p))) {
		fake_copy(&word, p.dst + 8192, sizeof(word));
		ck_assert_uint_eq(word, 1);
	}
	close_all();
}
END_TEST

/* --- while replies are awaited ------------------------------------------------------------------- */

/*
 * From one device to another: copying the next chunk fails while the peer is at the one before. The
 * reply is nobody's then, whoever has the operation's structure.
 */
START_TEST(account_reply_after_the_operation_has_failed_is_nobodys)
{
	struct fid_mr *near_mr;
	uint8_t *near;

	open_warm();
	near = rig->make(RT_DEVICE, 0, LEN);
	near_mr = reg_device(&p.a, near, LEN, FI_READ | FI_WRITE, 9);
	hold(1);
	control.fail_next(rig->get_call, 2, rig->lost);
	ck_assert_int_eq(fi_write(p.a.ep, near, 2 * MRF_STAGE_PIECE, fi_mr_desc(near_mr), p.to,
				  base, key, &p),
			 0);
	/* Nobody reads the queue meanwhile, so nobody copies the next chunk. */
	want_soon(atomic_load(&inside));
	want_err(&p.a, &p, FI_EIO, "cannot be read");
	control.fail_next("*", 0, 0);
	memcpy(mem, want, 100000);
	if (_i)
		ck_assert_int_eq(write_far(0, 100000), 0);
	let_go();
	if (_i) {
		want_ok(&p.a, &p);
		rig->get(got, dev, 100000);
		ck_assert(!memcmp(got, want, 100000));
	}
	want_no_more();
	must_close(&near_mr->fid);
	rig->unmake(RT_DEVICE, near);
	close_all();
}
END_TEST

static ssize_t access_far(bool write, size_t len)
{
	return write ? fi_write(p.a.ep, mem, len, desc, p.to, base, key, &p)
		     : fi_read(p.a.ep, mem, len, desc, p.to, base, key, &p);
}

START_TEST(account_operation_that_breaks_each_connection_fails_once)
{
	open_warm();
	fake_break_pair(1, 1000, MRF_WC_TIMEOUT, false);
	ck_assert_int_eq(access_far(_i & 1, _i & 2 ? LEN : 1000), 0);
	/* It is the target that sends what is read, and that hangs up. */
	if (_i & 1)
		want_err(&p.a, &p, FI_ETIMEDOUT, "no answer");
	else
		want_err(&p.a, &p, FI_ECONNRESET, "broke each time");
	want_no_more();
	fake_break_pair(0, 0, 0, false);
	fake_heal();
	close_all();
}
END_TEST

/* As the application does it: it closes the region of a buffer that is in use. */
START_TEST(account_local_region_closed_gives_one_completion)
{
	fake.flush_local = _i & 2;
	open_warm();
	fake_hold_pairs(true);
	ck_assert_int_eq(access_far(_i & 1, 100000), 0);
	must_close(&mem_mr->fid);
	fake_hold_pairs(false);
	ck_assert_int_eq(next_end(), FI_EFAULT);
	want_no_more();
	mem_mr = node_reg(&p.a, mem, LEN, FI_READ | FI_WRITE, 8);
	desc = fi_mr_desc(mem_mr);
	ck_assert_int_eq(write_far(0, 100), 0);
	want_ok(&p.a, &p);
	close_all();
}
END_TEST

static atomic_uint stages;

static enum fake_fate keep_second(uint8_t *msg, size_t *len, bool from_target)
{
	(void)len;
	return !from_target && msg[0] == MRF_MSG_STAGE && atomic_fetch_add(&stages, 1) == 1
		       ? FAKE_KEEP
		       : FAKE_DELIVER;
}

static struct mrf_vcq *late_cq;
static atomic_bool late;

static bool is_late(const struct mrf_vcq *cq)
{
	return atomic_load(&late) && cq == late_cq;
}

static bool awaits_nothing(void)
{
	struct mrf_ep *ep = node_ep(&p.a);
	bool none;

	mrf_lock_take(&ep->lock);
	none = !mrf_list_entry(mrf_list_first(&ep->peers[MRF_CONN_ACCESS].of[p.to]->queue),
			       struct mrf_op, node)
			->awaiting;
	mrf_lock_release(&ep->lock);
	return none;
}

/* A request is refused while bytes of those before it are still on their way. */
START_TEST(account_operation_is_rewound_when_nothing_is_in_flight)
{
	open_warm();
	rig->put(dev, want, LEN);
	memset(mem, 0, LEN);
	atomic_store(&stages, 0);
	late_cq = node_ep(&p.a)->scq;
	fake_freeze(true);
	fake.is_late = is_late;
	fake.on_send = keep_second;
	fake_freeze(false);
	atomic_store(&late, true);
	ck_assert_int_eq(read_far(0, LEN), 0);
	want_soon(atomic_load(&stages) >= 2);
	/* The request meant the registration that was there before. */
	must_close(&dev_mr->fid);
	reg_target(REMOTE_RW, FI_MR_ALLOCATED);
	fake_deliver();
	want_soon(awaits_nothing());
	atomic_store(&late, false);
	want_ok(&p.a, &p);
	ck_assert(!memcmp(mem, want, LEN));
	fake_freeze(true);
	fake.is_late = NULL;
	fake.on_send = NULL;
	fake_freeze(false);
	close_all();
}
END_TEST

/* --- what is told ------------------------------------------------------------------------------ */

#define DATA 4711

static unsigned data_that_came(void)
{
	struct fi_cq_data_entry entry;
	unsigned n = 0;

	while (fi_cq_sread(p.b.cq, &entry, 1, NULL, 100) == 1)
		n += entry.flags & FI_REMOTE_CQ_DATA && entry.data == DATA;
	return n;
}

/* The nth access is done, and its acknowledgement is lost. */
START_TEST(account_data_come_once_however_acknowledgements_are_lost)
{
	unsigned nth = (unsigned)_i / 2 + 1, came;
	int err;

	caps = _i % 2 ? CAPS_EVENT : CAPS;
	open_warm();
	fake_break(nth, 1, MRF_WC_TIMEOUT, true);
	ck_assert_int_eq(fi_writedata(p.a.ep, mem, 100, desc, DATA, p.to, base, key, &p), 0);
	err = next_end();
	came = data_that_came();
	ck_assert_msg(came == 1 || (err && !came), "access %u, error %d: the data came %u times",
		      nth, err, came);
	fake_break(0, 0, 0, false);
	close_all();
}
END_TEST

static ssize_t write_both(void)
{
	const struct iovec iov = { mem, 2000 };
	const struct fi_rma_iov rma[] = { { base, 1000, key }, { p.base, 1000, p.key } };
	const struct fi_msg_rma msg = { .msg_iov = &iov,
					.desc = &desc,
					.iov_count = 1,
					.addr = p.to,
					.rma_iov = rma,
					.rma_iov_count = 2,
					.context = &p };

	return fi_writemsg(p.a.ep, &msg, FI_COMPLETION);
}

/* One write to a region of a device and to one of the host's; _i & 1: which of them counts. */
START_TEST(account_write_counts_once_however_acknowledgements_are_lost)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	int err;

	caps = CAPS_EVENT;
	open_all(0, FI_MR_ALLOCATED);
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_mr_bind(_i & 1 ? dev_mr : p.mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(write_both(), 0);
	want_ok(&p.a, &p);
	want_soon(fi_cntr_read(cntr) == 1);
	fake_break((unsigned)_i / 2 + 1, 1, MRF_WC_TIMEOUT, true);
	ck_assert_int_eq(write_both(), 0);
	err = next_end();
	if (!err)
		want_soon(fi_cntr_read(cntr) == 2);
	usleep(50000);
	ck_assert_uint_le(fi_cntr_read(cntr), 2);
	fake_break(0, 0, 0, false);
	must_close(&cntr->fid);
	close_all();
}
END_TEST

/* --- the account itself -------------------------------------------------------------------------- */

static struct mrf_op *first_op(void)
{
	return mrf_list_entry(
		mrf_list_first(&node_ep(&p.a)->peers[MRF_CONN_ACCESS].of[p.to]->queue),
		struct mrf_op, node);
}

static void close_account(void)
{
	mrf_account_close_locked(first_op());
}

static const struct mrf_why reason = { .err = FI_EIO, .code = 4113, .text = "for a test" };

/* An operation is out, whichever way it is: it cannot end, and what follows waits for it. */
START_TEST(account_nothing_follows_while_something_is_out)
{
	struct mrf_ep *ep;
	struct mrf_op *op;

	open_warm();
	hold(1);
	ck_assert_int_eq(write_far(0, 100), 0);
	want_soon(is_inside());
	ep = node_ep(&p.a);
	mrf_lock_take(&ep->lock);
	op = first_op();
	ck_assert_uint_eq(op->awaiting, 1);
	ck_assert_int_eq(aborts(close_account), LIBRARY_CHECKS);
	mrf_settle_again_locked(op);
	ck_assert(op->again && op->pos);
	mrf_settle_fail_locked(op, &reason);
	/* Nobody awaits its reply any more, and the work request has long been completed. */
	mrf_lock_release(&ep->lock);
	want_err(&p.a, &p, FI_EIO, "for a test");
	let_go();
	want_no_more();
	close_all();
}
END_TEST

static TCase *tcase_account(void)
{
	TCase *tc = tcase_create("account");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, account_packets_of_requests_are_counted, 0, 4);
	tcase_add_loop_test(tc, account_reply_after_the_operation_has_failed_is_nobodys, 0, 2);
	tcase_add_loop_test(tc, account_operation_that_breaks_each_connection_fails_once, 0, 4);
	tcase_add_loop_test(tc, account_local_region_closed_gives_one_completion, 0, 4);
	tcase_add_test(tc, account_operation_is_rewound_when_nothing_is_in_flight);
	tcase_add_loop_test(tc, account_data_come_once_however_acknowledgements_are_lost, 0, 8);
	tcase_add_loop_test(tc, account_write_counts_once_however_acknowledgements_are_lost, 0, 8);
	tcase_add_test(tc, account_nothing_follows_while_something_is_out);
	return tc;
}

UNIT_MAIN("account", tcase_account)
