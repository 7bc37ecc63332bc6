/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that reach memory of a device: by requests to the target's agent whose bytes go over a pair
 * (ep/tx/far_op.h, ep/rx/staging.h, ep/rx/device_parts.h), or, few bytes, by requests alone
 * (ep/tx/few_op.h).
 */
#include <pthread.h>
#include <time.h>
#include "base/env.h"
#include "loop/agent_calls.h"
#include "far_fixture.h"

/* --- regions that are left late ------------------------------------------------------------- */

static unsigned linger_us; /* behind that, for whoever leaves */

void __real_mrf_mr_hold_end(struct mrf_mr_hold *hold);
void __wrap_mrf_mr_hold_end(struct mrf_mr_hold *hold);
void __wrap_mrf_mr_hold_end(struct mrf_mr_hold *hold)
{
	__real_mrf_mr_hold_end(hold);
	usleep(linger_us);
}

/* --- time that passes ----------------------------------------------------------------------- */

static _Atomic int64_t ahead; /* ms */

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int ret = __real_clock_gettime(clock, ts);
	int64_t ns = ts->tv_nsec + atomic_load(&ahead) % 1000 * 1000000;

	ts->tv_sec += atomic_load(&ahead) / 1000 + ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return ret;
}

/* The target's agent has something to do then, and looks at its timers. */
static void later(int64_t ms)
{
	atomic_fetch_add(&ahead, ms);
	node_heard(&p.b);
}

static const int modes[] = { 0, FI_MR_ALLOCATED, FI_MR_ALLOCATED | FI_MR_LOCAL,
			     FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY,
			     FI_MR_PROV_KEY | FI_MR_ALLOCATED };
#define MODES ((int)(sizeof(modes) / sizeof(modes[0])))

/* Something else is there then. */
static ssize_t change_far(void)
{
	memset(mem, 0xff, 8);
	return fi_atomic(p.a.ep, mem, 1, desc, p.to, base, key, FI_UINT64, FI_BOR, &p);
}

/* --- bytes ---------------------------------------------------------------------------------- */

static const size_t lens[] = { 1,
			       7,
			       64,
			       65,
			       MRF_PROTO_REPLY_BODY,
			       MRF_PROTO_REPLY_BODY + 1,
			       MRF_PROTO_REQUEST_BODY,
			       MRF_PROTO_REQUEST_BODY + 1,
			       4096,
			       16385,
			       131072,
			       131073,
			       PLACES,
			       PLACES + 3,
			       LEN - 13 };

/* All of it. */
static void want_written(void)
{
	want_ok(&p.a, &p);
	rig->get(got, dev, LEN);
	ck_assert(!memcmp(got, want, LEN));
}

static void there_and_back(size_t len)
{
	memset(got, 0, len);
	rig->put(dev + 13, got, len);
	memcpy(mem + 13, want, len);
	ck_assert_int_eq(write_far(13, len), 0);
	want_ok(&p.a, &p);
	rig->get(got, dev + 13, len);
	ck_assert_msg(!memcmp(got, want, len), "%zu bytes were written", len);
	memset(mem, 0, LEN);
	ck_assert_int_eq(read_far(13, len), 0);
	want_ok(&p.a, &p);
	ck_assert_msg(!memcmp(mem + 13, want, len), "%zu bytes were read", len);
}

START_TEST(far_device_bytes_are_written_and_read)
{
	for (int i = 0; i < RIGS; i++) {
		open_all(i, modes[_i]);
		for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++)
			there_and_back(lens[k]);
		want_soon(is_idle());
		close_all();
	}
}
END_TEST

/* The first request's bytes are there. */
static bool first_have_come(void)
{
	static uint8_t seen[MRF_PROTO_STAGE];

	fake_copy(seen, mem, sizeof(seen));
	return !memcmp(seen, want, sizeof(seen));
}

/* What has come is read while the peer's device is at what comes next. */
START_TEST(far_device_is_read_while_more_is_copied)
{
	open_all(_i, FI_MR_ALLOCATED);
	rig->put(dev, want, LEN);
	memset(mem, 0, LEN);
	hold(2);
	ck_assert_int_eq(read_far(0, LEN), 0);
	want_soon(is_inside() && first_have_come());
	let_go();
	want_ok(&p.a, &p);
	ck_assert(!memcmp(mem, want, LEN));
	close_all();
}
END_TEST

/* Buffers that nobody has registered, short ones and long ones; and what is injected. */
START_TEST(far_device_takes_bytes_of_any_buffer)
{
	open_all(_i, FI_MR_ALLOCATED);
	desc = NULL;
	for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++)
		there_and_back(lens[k]);
	ck_assert_int_eq(fi_inject_write(p.a.ep, want + 50, 100, p.to, base, key), 0);
	ck_assert_int_eq(read_far(0, 100), 0);
	want_ok(&p.a, &p);
	ck_assert(!memcmp(mem, want + 50, 100));
	close_all();
}
END_TEST

static atomic_uint few; /* messages of such requests */

static enum fake_fate count_few(uint8_t *msg, size_t *len, bool from_target)
{
	(void)len;
	if (!from_target && msg[0] == MRF_MSG_BYTES)
		atomic_fetch_add(&few, 1);
	return FAKE_DELIVER;
}

/* What has gathered while one is on the way goes together, and nothing but requests goes. */
START_TEST(far_device_few_bytes_go_in_requests)
{
	const unsigned n = MRF_REQUESTS;
	unsigned i;

	open_all(_i % RIGS,
		 _i / RIGS ? FI_MR_ALLOCATED | FI_MR_LOCAL | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR
			   : FI_MR_ALLOCATED);
	there_and_back(8);
	atomic_store(&few, 0);
	fake.on_send = count_few;
	memcpy(mem, want, LEN);
	hold(1);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(write_far(i * 8, 8), 0);
	want_soon(is_inside());
	let_go();
	for (i = 0; i < n; i++)
		want_ok(&p.a, &p);
	rig->get(got, dev, n * 8);
	ck_assert(!memcmp(got, want, n * 8));
	ck_assert_msg(atomic_load(&few) == 2, "%u messages", atomic_load(&few));
	memset(mem, 0, LEN);
	hold(1);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(read_far(i * 8, 8), 0);
	want_soon(is_inside());
	let_go();
	for (i = 0; i < n; i++)
		want_ok(&p.a, &p);
	ck_assert(!memcmp(mem, want, n * 8));
	ck_assert_msg(atomic_load(&few) == 4, "%u messages", atomic_load(&few));
	fake.on_send = NULL;
	close_all();
}
END_TEST

/* Leaves one completion unread. */
static void leave_one(void)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		ck_assert_int_eq(write_far(i * 8, 8), 0);
	/* The second and the third have gone together. */
	want_ok(&p.a, &p);
	want_ok(&p.a, &p);
}

/*
 * An application that has completions to read starts several: in one message, unless the timer fires
 * meanwhile, which it does on a slow machine.
 */
START_TEST(far_device_few_bytes_go_together_when_completions_are_unread)
{
	unsigned i, turns = 50, before;

	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(8);
	fake.on_send = count_few;
	do {
		leave_one();
		before = atomic_load(&few);
		for (i = 0; i < 4; i++)
			ck_assert_int_eq(write_far(i * 8, 8), 0);
		for (i = 0; i < 5; i++)
			want_ok(&p.a, &p);
	} while (atomic_load(&few) != before + 1 && --turns);
	ck_assert_uint_gt(turns, 0);
	fake.on_send = NULL;
	close_all();
}
END_TEST

/* Nothing that waits for them holds them up. The timer may fire first; the agent then sends a little later. */
START_TEST(far_device_few_bytes_go_when_others_wait_for_them)
{
	unsigned turns = 50, before;
	bool at_once;

	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(8);
	fake.on_send = count_few;
	do {
		leave_one();
		before = atomic_load(&few);
		ck_assert_int_eq(write_far(64, 8), 0);
		ck_assert_int_eq(fi_inject_writedata(p.a.ep, want, 8, 1, p.to, base, key), 0);
		at_once = atomic_load(&few) == before + 1;
		want_ok(&p.a, &p);
		want_ok(&p.a, &p);
	} while (!at_once && --turns);
	ck_assert(at_once);
	fake.on_send = NULL;
	close_all();
}
END_TEST

/* It may have other things to do, and never read them. */
START_TEST(far_device_few_bytes_go_even_if_completions_stay_unread)
{
	unsigned before;

	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(8);
	fake.on_send = count_few;
	leave_one();
	usleep(50000); /* the agent has nothing to do */
	before = atomic_load(&few);
	ck_assert_int_eq(write_far(64, 8), 0);
	want_soon(atomic_load(&few) == before + 1);
	want_ok(&p.a, &p);
	want_ok(&p.a, &p);
	fake.on_send = NULL;
	close_all();
}
END_TEST

/* One of those that are copied together fails, and those behind it are asked for again. */
START_TEST(far_device_few_bytes_that_fail_fail_alone)
{
	const unsigned n = MRF_REQUESTS, bad = 5;
	bool write = _i / RIGS;
	unsigned i;

	open_all(_i % RIGS, FI_MR_ALLOCATED);
	there_and_back(8);
	memcpy(mem, want, LEN);
	rig->put(dev, write ? got + 100000 : want, n * 8);
	memset(mem + LEN - n * 8, 0, n * 8);
	hold(1);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(write ? write_far(i * 8, 8) : read_far(i * 8, 8), 0);
	want_soon(is_inside());
	control.fail_next(write ? rig->put_call : rig->get_call, bad + 1, rig->lost);
	let_go();
	for (i = 0; i < n; i++) {
		if (i == bad)
			want_err(&p.a, &p, FI_EIO, NULL);
		else
			want_ok(&p.a, &p);
	}
	rig->get(got, dev, n * 8);
	if (write)
		memcpy(got + bad * 8, want + bad * 8, 8);
	ck_assert(!memcmp(write ? got : mem, want, n * 8));
	close_all();
}
END_TEST

static void *close_far(void *arg)
{
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	return arg;
}

/* The region is closed while one of them is copied: those behind it are not done. */
START_TEST(far_device_few_bytes_are_refused_when_the_region_is_closed)
{
	const unsigned n = MRF_REQUESTS;
	pthread_t thread;
	unsigned i;

	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(8);
	memcpy(mem, want, LEN);
	hold(2);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(write_far(i * 8, 8), 0);
	want_ok(&p.a, &p); /* it went alone */
	want_soon(is_inside());
	ck_assert_int_eq(pthread_create(&thread, NULL, close_far, NULL), 0);
	usleep(20000);
	let_go();
	pthread_join(thread, NULL);
	want_ok(&p.a, &p);
	for (i = 2; i < n; i++)
		want_err(&p.a, &p, FI_EKEYREJECTED, NULL);
	close_all();
}
END_TEST

/* From one device to another. */
START_TEST(far_device_takes_bytes_of_a_device)
{
	struct fid_mr *near_mr;
	uint8_t *near;

	open_all(_i, FI_MR_ALLOCATED);
	near = rig->make(RT_DEVICE, 0, LEN);
	near_mr = reg_device(&p.a, near, LEN, FI_READ | FI_WRITE, 9);
	rig->put(near, want, LEN);
	ck_assert_int_eq(
		fi_write(p.a.ep, near + 1, LEN - 1, fi_mr_desc(near_mr), p.to, base, key, &p), 0);
	want_ok(&p.a, &p);
	rig->get(got, dev, LEN - 1);
	ck_assert(!memcmp(got, want + 1, LEN - 1));
	ck_assert_int_eq(fi_read(p.a.ep, near, LEN - 1, fi_mr_desc(near_mr), p.to, base, key, &p),
			 0);
	want_ok(&p.a, &p);
	rig->get(got, near, LEN - 1);
	ck_assert(!memcmp(got, want + 1, LEN - 1));
	must_close(&near_mr->fid);
	rig->unmake(RT_DEVICE, near);
	close_all();
}
END_TEST

/* One call, to regions of a device and of the host. */
START_TEST(far_device_is_one_of_several_ranges)
{
	struct iovec iov;
	struct fi_rma_iov rma[3];
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &desc,
				  .iov_count = 1,
				  .rma_iov = rma,
				  .rma_iov_count = 3,
				  .context = &p };

	open_all(_i, FI_MR_ALLOCATED);
	iov = (struct iovec){ mem, 3000 };
	rma[0] = (struct fi_rma_iov){ p.base, 1000, p.key };
	rma[1] = (struct fi_rma_iov){ base + 7, 1000, key };
	rma[2] = (struct fi_rma_iov){ p.base + 5000, 1000, p.key };
	msg.addr = p.to;
	memcpy(mem, want, 3000);
	ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, FI_COMPLETION), 0);
	want_ok(&p.a, &p);
	rig->get(got, dev + 7, 1000);
	ck_assert(!memcmp(p.dst, want, 1000) && !memcmp(got, want + 1000, 1000) &&
		  !memcmp(p.dst + 5000, want + 2000, 1000));
	memset(mem, 0, 3000);
	ck_assert_int_eq(fi_readmsg(p.a.ep, &msg, FI_COMPLETION), 0);
	want_ok(&p.a, &p);
	ck_assert(!memcmp(mem, want, 3000));
	close_all();
}
END_TEST

START_TEST(far_device_write_brings_its_data)
{
	struct fi_cq_data_entry entry;

	open_all(_i, FI_MR_ALLOCATED);
	memcpy(mem, want, LEN);
	for (size_t len = LEN; len > 1; len /= 40) {
		ck_assert_int_eq(fi_writedata(p.a.ep, mem, len, desc, len, p.to, base, key, &p), 0);
		want_ok(&p.a, &p);
		entry = want_ok(&p.b, NULL);
		ck_assert_uint_eq(entry.data, len);
		rig->get(got, dev, len);
		ck_assert(!memcmp(got, want, len));
	}
	close_all();
}
END_TEST

/* Each operation counts once, whatever becomes of the connection. */
START_TEST(far_device_writes_are_counted_once)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	uint64_t n = 0;

	caps = CAPS | FI_RMA_EVENT;
	open_all(_i, FI_MR_ALLOCATED);
	caps = CAPS;
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_mr_bind(dev_mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	memcpy(mem, want, LEN);
	for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
		fake_break(k % 4 + 1, 1, MRF_WC_REFUSED, false);
		ck_assert_int_eq(write_far(0, lens[k]), 0);
		want_ok(&p.a, &p);
		ck_assert_uint_eq(fi_cntr_read(cntr), ++n);
		memset(mem, 0, 64);
		ck_assert_int_eq(
			fi_atomic(p.a.ep, mem, 8, desc, p.to, base, key, FI_UINT64, FI_BOR, &p), 0);
		want_ok(&p.a, &p);
		ck_assert_uint_eq(fi_cntr_read(cntr), ++n);
		ck_assert_int_eq(read_far(0, lens[k]), 0);
		want_ok(&p.a, &p);
		ck_assert_uint_eq(fi_cntr_read(cntr), n);
	}
	must_close(&cntr->fid);
	close_all();
}
END_TEST

/* As long as whoever leaves the region does nothing more, closing it goes on. */
START_TEST(far_device_write_counts_when_its_region_is_closed_meanwhile)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;

	caps = CAPS | FI_RMA_EVENT;
	api = FI_VERSION(2, 3);
	open_all(0, FI_MR_ALLOCATED);
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_mr_bind(dev_mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	there_and_back(100);
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	linger_us = 100000;
	hold(_i ? 2 : 1);
	ck_assert_int_eq(_i ? change_far() : write_far(0, 100), 0);
	want_soon(is_inside());
	let_go();
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	linger_us = 0;
	want_ok(&p.a, &p);
	ck_assert_uint_eq(fi_cntr_read(cntr), 2);
	must_close(&cntr->fid);
	close_all();
}
END_TEST

/* Of operations to one peer, the later ones come behind. */
START_TEST(far_device_keeps_the_order)
{
	open_all(_i, FI_MR_ALLOCATED);
	memcpy(mem, want, LEN);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(write_far(0, LEN), 0);
		ck_assert_int_eq(fi_inject_write(p.a.ep, "after", 5, p.to, base, key), 0);
		ck_assert_int_eq(fi_read(p.a.ep, p.src, 100, NULL, p.to, base, key, &p), 0);
		want_ok(&p.a, &p);
		want_ok(&p.a, &p);
		rig->get(got, dev, LEN);
		ck_assert(!memcmp(got, "after", 5) && !memcmp(got + 5, want + 5, LEN - 5));
		ck_assert(!memcmp(p.src, got, 100));
	}
	close_all();
}
END_TEST

/* --- what is not allowed ---------------------------------------------------------------------- */

START_TEST(far_device_rights_are_the_registered_ones)
{
	open_all(_i, FI_MR_ALLOCATED);
	must_close(&dev_mr->fid);
	reg_target(FI_REMOTE_READ, FI_MR_ALLOCATED);
	ck_assert_int_eq(write_far(0, 8), 0);
	want_err(&p.a, &p, FI_EACCES, "FI_REMOTE_WRITE");
	ck_assert_int_eq(read_far(0, 8), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(fi_read(p.a.ep, mem, 8, desc, p.to, base + LEN - 7, key, &p), 0);
	want_err(&p.a, &p, FI_EACCES, "past the end");
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	ck_assert_int_eq(read_far(0, 8), 0);
	want_err(&p.a, &p, FI_EKEYREJECTED, "closed");
	want_soon(is_idle());
	close_all();
}
END_TEST

/* The peer has been told what it may do; then that changes. */
START_TEST(far_device_rights_may_change)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	must_close(&dev_mr->fid);
	reg_target(FI_REMOTE_READ, FI_MR_ALLOCATED);
	ck_assert_int_eq(write_far(0, 8), 0);
	want_err(&p.a, &p, FI_EACCES, "FI_REMOTE_WRITE");
	must_close(&dev_mr->fid);
	dev_mr = node_reg(&p.b, p.dst, LEN < PAIR_LEN ? LEN : PAIR_LEN, REMOTE_RW, KEY);
	ck_assert_int_eq(write_far(0, 8), 0);
	want_ok(&p.a, &p);
	ck_assert(!memcmp(p.dst, mem, 8));
	close_all();
}
END_TEST

static uint64_t far_word(size_t at)
{
	uint64_t word;

	rig->get(&word, dev + at, sizeof(word));
	return word;
}

/* At places that a device of the host's could reach, and others. */
static void change_words(size_t at, enum fi_datatype type, enum fi_op op)
{
	uint64_t *word = (uint64_t *)(void *)mem, zero = 0;

	rig->put(dev + at, &zero, 8);
	word[0] = 5;
	ck_assert_int_eq(
		fi_atomic(p.a.ep, &word[0], 1, desc, p.to, base + at, key, type, FI_SUM, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(far_word(at), 5);
	word[0] = 3;
	word[2] = 0;
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &word[0], 1, desc, &word[2], desc, p.to, base + at,
					 key, type, op, &p),
			 0);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(word[2], 5);
	ck_assert_uint_eq(far_word(at), op == FI_SUM ? 8 : 15);
	word[1] = far_word(at);
	ck_assert_int_eq(fi_compare_atomic(p.a.ep, &word[0], 1, desc, &word[1], desc, &word[2],
					   desc, p.to, base + at, key, type, FI_CSWAP, &p),
			 0);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(word[2], word[1]);
	ck_assert_uint_eq(far_word(at), 3);
}

START_TEST(far_device_words_are_changed)
{
	for (int i = 0; i < RIGS; i++) {
		open_all(i, modes[_i]);
		for (size_t at = 8; at < 10; at++) {
			change_words(at, FI_UINT64, FI_SUM);
			change_words(at, FI_UINT64, FI_PROD);
			change_words(at, FI_UINT32, FI_SUM);
		}
		want_soon(is_idle());
		close_all();
	}
}
END_TEST

/* Many elements: several requests. */
START_TEST(far_device_elements_are_changed)
{
	uint32_t *element, *there = (uint32_t *)(void *)got;
	const size_t n = 1000;

	open_all(_i, FI_MR_ALLOCATED);
	element = (uint32_t *)(void *)mem;
	memset(got, 0, 4 * n);
	rig->put(dev, got, 4 * n);
	for (uint32_t i = 0; i < n; i++)
		element[i] = i;
	for (uint32_t k = 0; k < 3; k++) {
		ck_assert_int_eq(fi_fetch_atomic(p.a.ep, element, n, desc, element + n, desc, p.to,
						 base, key, FI_UINT32, FI_SUM, &p),
				 0);
		want_ok(&p.a, &p);
		for (uint32_t i = 0; i < n; i++)
			ck_assert_uint_eq(element[n + i], k * i);
	}
	rig->get(got, dev, 4 * n);
	for (uint32_t i = 0; i < n; i++)
		ck_assert_uint_eq(there[i], 3 * i);
	close_all();
}
END_TEST

START_TEST(far_device_memory_that_was_freed_is_an_error)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	rig->unmake(RT_DEVICE, dev);
	dev = NULL;
	ck_assert_int_eq(write_far(0, LEN), 0);
	want_err(&p.a, &p, FI_EFAULT, "freed");
	ck_assert_int_eq(read_far(0, 8), 0);
	want_err(&p.a, &p, FI_EFAULT, "freed");
	want_soon(is_idle());
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	close_all();
}
END_TEST

START_TEST(far_device_copies_that_fail_are_told)
{
	unsigned nth, failed = 0;

	open_all(_i, FI_MR_ALLOCATED);
	for (nth = 1; nth < 16; nth++) {
		control.fail_next(nth % 2 ? rig->put_call : rig->get_call, nth / 2 + 1, rig->lost);
		ck_assert_int_eq(nth % 2 ? write_far(0, LEN) : read_far(0, LEN), 0);
		if (ends_well()) {
			ck_assert_uint_eq(control.fails_left(), 1);
		} else {
			want_err(&p.a, &p, FI_EIO, "could not copy");
			failed++;
		}
		control.fail_next("*", 0, 0);
	}
	ck_assert_uint_ge(failed, 10);
	want_soon(is_idle());
	there_and_back(LEN - 13);
	close_all();
}
END_TEST

/*
 * --- connections and ends ------------------------------------------------------------------------
 */

START_TEST(far_device_survives_a_connection_that_breaks)
{
	open_all(_i, FI_MR_ALLOCATED);
	for (unsigned nth = 1; nth <= 12; nth++) {
		memset(got, 0, LEN);
		rig->put(dev, got, LEN);
		memcpy(mem, want, LEN);
		fake_break(nth, 1, nth % 2 ? MRF_WC_REFUSED : MRF_WC_FLUSHED, nth % 3 == 0);
		ck_assert_int_eq(write_far(0, LEN), 0);
		want_ok(&p.a, &p);
		rig->get(got, dev, LEN);
		ck_assert_msg(!memcmp(got, want, LEN), "write, access %u", nth);
		memset(mem, 0, LEN);
		fake_break(nth, 1, nth % 2 ? MRF_WC_REFUSED : MRF_WC_FLUSHED, nth % 3 == 0);
		ck_assert_int_eq(read_far(0, LEN), 0);
		want_ok(&p.a, &p);
		ck_assert_msg(!memcmp(mem, want, LEN), "read, access %u", nth);
	}
	close_all();
}
END_TEST

static _Atomic unsigned replies;
static _Atomic bool refuse_next;

/* For fake.on_send. */
static enum fake_fate on_send(uint8_t *msg, size_t *len, bool from_target)
{
	(void)msg;
	(void)len;
	replies += from_target;
	return !from_target && atomic_exchange(&refuse_next, false) ? FAKE_REFUSE : FAKE_DELIVER;
}

static _Atomic bool may_go_on;

static int rest(struct mrf_agent *agent, void *arg)
{
	(void)agent;
	(void)arg;
	while (!atomic_load(&may_go_on))
		usleep(1000);
	return 0;
}

static void *have_agent_rest(void *arg)
{
	(void)arg;
	mrf_agent_command(node_agent(&p.a), NULL, rest);
	return NULL;
}

/*
 * The peer replies, and before that is heard the connection breaks, and its pair with it.
 */
START_TEST(far_device_bytes_are_asked_for_again_when_they_did_not_come)
{
	pthread_t thread;
	unsigned heard;

	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	rig->put(dev, want, 100);
	memset(mem, 0, 100);
	fake_freeze(true);
	fake.on_send = on_send;
	fake_freeze(false);
	atomic_store(&may_go_on, false);
	ck_assert_int_eq(pthread_create(&thread, NULL, have_agent_rest, NULL), 0);
	usleep(20000);
	heard = replies;
	ck_assert_int_eq(read_far(0, 100), 0);
	want_soon(replies > heard);
	/* A question breaks the connection, which this thread sees first. */
	atomic_store(&refuse_next, true);
	pair_write(&p, 0, 100);
	ck_assert(!refuse_next);
	ck_assert_int_eq(fi_cq_read(p.a.cq, got, 1), -FI_EAGAIN);
	atomic_store(&may_go_on, true);
	pthread_join(thread, NULL);
	want_ok(&p.a, &p);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert(!memcmp(mem, want, 100));
	fake_freeze(true);
	fake.on_send = NULL;
	fake_freeze(false);
	close_all();
}
END_TEST

/* The initiator goes while the target copies for it; the region can be closed afterwards. */
START_TEST(far_device_copy_is_finished_for_nobody)
{
	struct fid_ep *ep;

	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	hold(2);
	ck_assert_int_eq(write_far(0, LEN), 0);
	want_soon(is_inside());
	ep = p.a.ep;
	p.a.ep = NULL;
	must_close(&ep->fid);
	usleep(20000);
	let_go();
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	rig->unmake(RT_DEVICE, dev);
	dev = NULL;
	close_all();
}
END_TEST

/*
 * The connection breaks while a job of the target copies, and the bytes come again over the next
 * one: they wait for that job, which would otherwise put the old ones over what comes later.
 */
START_TEST(far_device_is_not_written_by_a_job_that_is_late)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	memcpy(mem, want, LEN);
	hold(2);
	fake_break(3, 1, MRF_WC_FLUSHED, false);
	ck_assert_int_eq(write_far(0, LEN), 0);
	want_soon(is_inside());
	for (unsigned i = 0; i < 50; i++) {
		usleep(1000);
		ck_assert(is_inside());
	}
	ck_assert_uint_eq(atomic_load(&copies), 2);
	let_go();
	want_written();
	close_all();
}
END_TEST

START_TEST(far_device_region_is_closed_in_the_middle)
{
	open_all(0, FI_MR_ALLOCATED);
	there_and_back(100);
	hold(2);
	ck_assert_int_eq(_i ? write_far(0, LEN) : read_far(0, LEN), 0);
	want_soon(is_inside());
	let_go();
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	rig->unmake(RT_DEVICE, dev);
	dev = NULL;
	want_err(&p.a, &p, FI_EKEYREJECTED, NULL);
	want_soon(is_idle());
	close_all();
}
END_TEST

/* The target's endpoint goes while its job is at the device. */
START_TEST(far_device_endpoint_is_closed_in_the_middle)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	hold(2);
	ck_assert_int_eq(write_far(0, LEN), 0);
	want_soon(is_inside());
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	let_go();
	want_err(&p.a, &p, FI_ECONNREFUSED, NULL);
	close_all();
}
END_TEST

/*
 * --- staging memory --------------------------------------------------------------------------------------
 */

static bool is_connected(void)
{
	return node_state(&p.a, p.to).connection;
}

/* A peer that has stopped for good keeps neither memory nor a place. */
START_TEST(far_device_peer_that_does_nothing_loses_its_memory)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	later(MRF_STAGING_MS - 1000);
	ck_assert_int_eq(read_far(0, 8), 0);
	want_ok(&p.a, &p);
	later(1000);
	usleep(20000);
	ck_assert(is_connected());
	later(MRF_STAGING_MS - 1000);
	want_soon(!is_connected());
	there_and_back(LEN - 13);
	close_all();
}
END_TEST

/* It is not one that waits for its device; nor does that peer give up when the clock moves. */
START_TEST(far_device_peer_that_waits_keeps_its_memory)
{
	ck_assert_int_eq(setenv("FI_MRFAB_ANSWER_TIMEOUT", "1000000", 1), 0);
	mrf_env_reload();
	open_all(_i, FI_MR_ALLOCATED);
	memcpy(mem, want, LEN);
	hold(3);
	ck_assert_int_eq(write_far(0, LEN), 0);
	want_soon(is_inside());
	for (unsigned i = 0; i < 3; i++)
		later(MRF_STAGING_MS);
	usleep(20000);
	ck_assert(is_connected());
	let_go();
	want_written();
	close_all();
}
END_TEST

/*
 * The one of two endpoints that the memory is taken from gets it back when the other one leaves it
 * alone.
 */
START_TEST(far_device_staging_goes_to_those_who_use_them)
{
	struct fid_ep *eps[2];

	open_all(_i, FI_MR_ALLOCATED);
	eps[0] = p.a.ep;
	ck_assert_int_eq(node_try_ep(&p.a, &(struct node_opt){ .caps = CAPS }, &eps[1]), 0);
	mrf_eps_of(node_agent(&p.b))->nstagings = MRF_STAGINGS - 1;
	there_and_back(100);
	for (unsigned i = 1; i < 5; i++) {
		p.a.ep = eps[i % 2];
		ck_assert_int_eq(write_far(0, 100), 0);
		want_err(&p.a, &p, FI_ENOMEM, "too many peers");
		later(MRF_STAGING_GRACE_MS);
		there_and_back(LEN - 13);
	}
	p.a.ep = eps[0];
	must_close(&eps[1]->fid);
	close_all();
}
END_TEST

static TCase *far_device(void)
{
	TCase *tc = tcase_create("far_device");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, far_device_bytes_are_written_and_read, 0, MODES);
	tcase_add_loop_test(tc, far_device_is_read_while_more_is_copied, 0, RIGS);
	tcase_add_loop_test(tc, far_device_takes_bytes_of_any_buffer, 0, RIGS);
	tcase_add_loop_test(tc, far_device_few_bytes_go_in_requests, 0, 2 * RIGS);
	tcase_add_loop_test(tc, far_device_few_bytes_go_together_when_completions_are_unread, 0,
			    RIGS);
	tcase_add_loop_test(tc, far_device_few_bytes_go_when_others_wait_for_them, 0, RIGS);
	tcase_add_loop_test(tc, far_device_few_bytes_go_even_if_completions_stay_unread, 0, RIGS);
	tcase_add_loop_test(tc, far_device_few_bytes_that_fail_fail_alone, 0, 2 * RIGS);
	tcase_add_loop_test(tc, far_device_few_bytes_are_refused_when_the_region_is_closed, 0,
			    RIGS);
	tcase_add_loop_test(tc, far_device_takes_bytes_of_a_device, 0, RIGS);
	tcase_add_loop_test(tc, far_device_is_one_of_several_ranges, 0, RIGS);
	tcase_add_loop_test(tc, far_device_write_brings_its_data, 0, RIGS);
	tcase_add_loop_test(tc, far_device_writes_are_counted_once, 0, RIGS);
	tcase_add_loop_test(tc, far_device_keeps_the_order, 0, RIGS);
	tcase_add_loop_test(tc, far_device_rights_are_the_registered_ones, 0, RIGS);
	tcase_add_loop_test(tc, far_device_rights_may_change, 0, RIGS);
	tcase_add_loop_test(tc, far_device_words_are_changed, 0, MODES);
	tcase_add_loop_test(tc, far_device_elements_are_changed, 0, RIGS);
	tcase_add_loop_test(tc, far_device_memory_that_was_freed_is_an_error, 0, RIGS);
	tcase_add_loop_test(tc, far_device_copies_that_fail_are_told, 0, RIGS);
	tcase_add_loop_test(tc, far_device_survives_a_connection_that_breaks, 0, RIGS);
	tcase_add_loop_test(tc, far_device_bytes_are_asked_for_again_when_they_did_not_come, 0,
			    RIGS);
	tcase_add_loop_test(tc, far_device_copy_is_finished_for_nobody, 0, RIGS);
	tcase_add_loop_test(tc, far_device_is_not_written_by_a_job_that_is_late, 0, RIGS);
	tcase_add_loop_test(tc, far_device_write_counts_when_its_region_is_closed_meanwhile, 0, 2);
	tcase_add_loop_test(tc, far_device_region_is_closed_in_the_middle, 0, 2);
	tcase_add_loop_test(tc, far_device_endpoint_is_closed_in_the_middle, 0, RIGS);
	tcase_add_loop_test(tc, far_device_peer_that_does_nothing_loses_its_memory, 0, RIGS);
	tcase_add_loop_test(tc, far_device_peer_that_waits_keeps_its_memory, 0, RIGS);
	tcase_add_loop_test(tc, far_device_staging_goes_to_those_who_use_them, 0, RIGS);
	return tc;
}

UNIT_MAIN("far_device", far_device)
