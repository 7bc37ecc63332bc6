/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a target does for peers that use its device memory: who has a ring and for how long
 * (ep/rx/ring.h), and what the jobs of its requests do to a region (ep/rx/job_serve.h). The peers
 * are mostly made by hand, because the library itself would not do what some of them do.
 */
#include <time.h>
#include "ep/link/passive.h"
#include "ep/model/atomics.h"
#include "ep/rx/ring.h"
#include "loop/agent_calls.h"
#include "mr/region.h"
#include "mr/space.h"
#include "device_fixture.h"
#include "held_copy.h"
#include "raw.h"

#define LEN MRF_PROTO_RING
#define KEY 5

static uint8_t *dev; /* LEN bytes of a device, of the second node */
static struct fid_mr *dev_mr;
static uint8_t want[LEN], got[LEN];

/* How often a request has looked at a region. */
static atomic_uint looks;

void __real_mrf_mr_hold_end(struct mrf_mr_hold *hold);
void __wrap_mrf_mr_hold_end(struct mrf_mr_hold *hold);
void __wrap_mrf_mr_hold_end(struct mrf_mr_hold *hold)
{
	atomic_fetch_add(&looks, 1);
	__real_mrf_mr_hold_end(hold);
}

/* --- memory that is freed ------------------------------------------------------------------- */

static void *_Atomic watched;
static atomic_bool freed; /* it was */

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
	if (memory && memory == atomic_load(&watched))
		atomic_store(&freed, true);
	__real_free(memory);
}

/* --- time --------------------------------------------------------------------------------- */

static _Atomic int64_t stands; /* ms; 0: the clock goes on */
static _Atomic int64_t ahead;  /* ms */

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int ret = __real_clock_gettime(clock, ts);
	int64_t ms = ts->tv_sec * 1000 + ts->tv_nsec / 1000000;

	if (atomic_load(&stands))
		ms = atomic_load(&stands);
	ms += atomic_load(&ahead);
	ts->tv_sec = ms / 1000;
	ts->tv_nsec = ms % 1000 * 1000000;
	return ret;
}

static void stop_clock(bool stop)
{
	atomic_store(&stands, 0);
	if (stop)
		atomic_store(&stands, mrf_now_ms() - atomic_load(&ahead));
}

/* The target's agent has something to do then, and looks at its timers. */
static void later(int64_t ms)
{
	atomic_fetch_add(&ahead, ms);
	node_heard(&p.b);
}

/* --- the target --------------------------------------------------------------------------- */

static void reg_target(void)
{
	dev_mr = reg_device(&p.b, dev, LEN, REMOTE_RW, KEY);
}

static void open_target(int runtime, uint64_t caps)
{
	open_pair(runtime, FI_MR_ALLOCATED, caps);
	dev = rig->make(RT_DEVICE, 0, LEN);
	reg_target();
	fill(want, LEN, 7);
	memset(got, 0, LEN);
	rig->put(dev, got, LEN);
}

static void close_target(void)
{
	if (dev_mr)
		must_close(&dev_mr->fid);
	rig->unmake(RT_DEVICE, dev);
	pair_close(&p);
}

/* --- its region is closed while a copy is held ---------------------------------------------- */

static bool is_closing(struct mrf_mr *mr)
{
	bool closing;

	mrf_lock_take(&mr->space->lock);
	closing = mr->state == MRF_STATE_CLOSED;
	mrf_lock_release(&mr->space->lock);
	return closing;
}

static void *close_region(void *region)
{
	must_close(region);
	return NULL;
}

/* The copy goes on when the region is being closed. */
static void close_meanwhile(void)
{
	pthread_t thread;

	want_soon(atomic_load(&inside));
	ck_assert_int_eq(pthread_create(&thread, NULL, close_region, &dev_mr->fid), 0);
	want_soon(is_closing(mrf_mr_from_fid(&dev_mr->fid)));
	let_go();
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	dev_mr = NULL;
}

/* --- its rings ------------------------------------------------------------------------------ */

static int count_rings(struct mrf_agent *agent, void *count)
{
	*(unsigned *)count = mrf_eps_of(agent)->nrings;
	return 0;
}

static unsigned rings(void)
{
	unsigned count;

	ck_assert_int_eq(mrf_agent_command(node_agent(&p.b), &count, count_rings), 0);
	return count;
}

struct messages {
	unsigned came;
	bool served; /* as far as there is room for answers */
};

static int look_at_messages(struct mrf_agent *agent, void *arg)
{
	struct mrf_list *node = mrf_list_first(&node_ep(&p.b)->passive);
	const struct mrf_passive *passive = mrf_list_entry(node, struct mrf_passive, node);
	struct messages *messages = arg;

	(void)agent;
	messages->came = passive->last;
	messages->served = passive->first == passive->last || !mrf_passive_has_room(passive);
	return 0;
}

/* So many messages came over the only connection, and there is nothing to do for it. */
static bool served(unsigned came)
{
	struct messages messages;

	ck_assert_int_eq(mrf_agent_command(node_agent(&p.b), &messages, look_at_messages), 0);
	return messages.came == came && messages.served;
}

static int break_all(struct mrf_agent *agent, void *arg)
{
	(void)agent;
	mrf_list_each (node, &((struct mrf_ep *)arg)->passive)
		mrf_passive_broken(mrf_list_entry(node, struct mrf_passive, node));
	return 0;
}

/* As if the receives of the target's queue pairs had been flushed. */
static void break_connections(void)
{
	ck_assert_int_eq(mrf_agent_command(node_agent(&p.b), node_ep(&p.b), break_all), 0);
}

/* --- peers made by hand ------------------------------------------------------------------- */

static void connect_with(struct raw *r, uint64_t ticket)
{
	struct mrf_hello hello = { .ticket = ticket };
	uint8_t data[MRF_PROTO_HELLO_LEN];

	ck_assert_int_eq(raw_connect(r, node_port(&p.b), data, mrf_hello_encode(&hello, data)).type,
			 MRF_CM_RESPONSE);
}

static void ask(struct raw *r)
{
	const struct mrf_ask question = { .cookie = 1, .key = KEY, .len = 64 };
	uint8_t msg[MRF_PROTO_ASK_LEN];

	ck_assert_int_eq(raw_send(r, msg, mrf_ask_encode(&question, msg)), 0);
}

static struct mrf_answer answer(struct raw *r)
{
	struct mrf_answer got_back = { 0 };
	struct mrf_wc wc = raw_recv(r);

	ck_assert_int_eq(mrf_answer_decode(r->slots[wc.wr_id], wc.byte_len, &got_back), 0);
	raw_post_recv(r, (unsigned)wc.wr_id);
	return got_back;
}

/* Gets a ring, or (0) none. */
static uint32_t ring_of(struct raw *r)
{
	struct mrf_answer got_back;

	ask(r);
	got_back = answer(r);
	ck_assert_uint_eq(got_back.status, got_back.nseg ? MRF_MR_OK : MRF_MR_NO_ROOM);
	return got_back.nseg ? got_back.seg[0].rkey : 0;
}

static uint32_t join(struct raw *r, uint64_t ticket)
{
	raw_open(r);
	connect_with(r, ticket);
	return ring_of(r);
}

/* The first bytes of the ring are these. */
static void fill_ring(struct raw *r, uint32_t rkey, uint8_t byte, size_t len)
{
	size_t piece = len < SLOT ? len : SLOT;
	struct mrf_sge sge = { (uintptr_t)r->out, (uint32_t)piece, r->mr.lkey };
	struct mrf_vwr wr = {
		.wr_id = SLOTS, .op = MRF_VWR_WRITE, .nsge = 1, .sge = &sge, .rkey = rkey
	};

	memset(r->out, byte, piece);
	for (; wr.remote_addr < len; wr.remote_addr += piece)
		ck_assert_int_eq(mrf_vconn_post(r->conn, &wr), 0);
}

static void request_at(struct raw *r, uint32_t number, uint32_t what, uint64_t addr, size_t len)
{
	const struct mrf_request copy = { .type = MRF_MSG_STAGE,
					  .number = number,
					  .what = what,
					  .key = KEY,
					  .addr = addr,
					  .len = len };
	uint8_t msg[MRF_PROTO_REQUEST_HEAD];

	ck_assert_int_eq(raw_send(r, msg, mrf_request_encode(&copy, msg)), 0);
}

static void request(struct raw *r, uint32_t number, uint32_t what, size_t len)
{
	request_at(r, number, what, 0, len);
}

static struct mrf_reply reply(struct raw *r)
{
	struct mrf_reply got_back = { 0 };
	struct mrf_wc wc = raw_recv(r);

	ck_assert_int_eq(wc.status, MRF_WC_OK);
	ck_assert_int_eq(mrf_reply_decode(r->slots[wc.wr_id], wc.byte_len, &got_back), 0);
	raw_post_recv(r, (unsigned)wc.wr_id);
	return got_back;
}

/* Bytes [0, len) of the device are all this. */
static void want_device(uint8_t byte, size_t len)
{
	rig->get(got, dev, len);
	ck_assert_uint_eq(got[0], byte);
	ck_assert(!memcmp(got, got + 1, len - 1));
}

/* --- who has a ring, and for how long ------------------------------------------------------- */

START_TEST(ring_of_a_broken_connection_is_given_up)
{
	static struct raw r;

	open_target(_i, CAPS);
	ck_assert(join(&r, 1));
	ck_assert_uint_eq(rings(), 1);
	break_connections();
	ck_assert_uint_eq(rings(), 1);
	later(MRF_RING_MS);
	want_soon(!rings());
	raw_close(&r);
	close_target();
}
END_TEST

/* What it has sent and nobody will ever serve is no reason to keep its ring. */
START_TEST(ring_of_a_broken_connection_with_requests_is_given_up)
{
	static struct raw r;

	open_target(_i, CAPS);
	ck_assert(join(&r, 1));
	hold(1);
	request(&r, 0, MRF_STAGE_PUT, 64);
	want_soon(atomic_load(&inside));
	request(&r, 1, MRF_STAGE_PUT, 64);
	node_heard(&p.b);
	break_connections();
	later(MRF_RING_MS);
	want_soon(!rings());
	let_go();
	raw_close(&r);
	close_target();
}
END_TEST

/* Its answers wait for ever, and so do its questions, for there is no room for more answers. */
START_TEST(ring_of_a_peer_without_receives_is_given_up)
{
	static struct raw r;

	open_target(_i, CAPS);
	raw_open(&r);
	r.receives = 1;
	connect_with(&r, 1);
	for (unsigned i = 1; i < MRF_PASSIVE_SENDS + 3; i++) {
		ask(&r);
		want_soon(served(i));
	}
	ck_assert_uint_eq(rings(), 1);
	later(MRF_RING_MS);
	want_soon(!rings());
	raw_close(&r);
	close_target();
}
END_TEST

/* A peer that waits for its device keeps its ring, and for another while when that is done. */
START_TEST(ring_is_kept_while_a_job_is_at_it)
{
	static struct raw r;

	open_target(_i, CAPS);
	ck_assert(join(&r, 1));
	hold(1);
	request(&r, 0, MRF_STAGE_PUT, 64);
	want_soon(atomic_load(&inside));
	for (unsigned i = 0; i < 3; i++)
		later(MRF_RING_MS);
	ck_assert_uint_eq(rings(), 1);
	let_go();
	ck_assert_uint_eq(reply(&r).status, MRF_REPLY_DONE);
	later(MRF_RING_MS - 1000);
	ck_assert_uint_eq(rings(), 1);
	later(1000);
	want_soon(!rings());
	raw_close(&r);
	close_target();
}
END_TEST

/* A busy ring is in front of the one that nobody uses. */
START_TEST(ring_that_nobody_uses_is_found_behind_others)
{
	static struct raw busy, idle, late;

	open_target(_i, CAPS);
	ck_assert(join(&busy, 1));
	hold(1);
	request(&busy, 0, MRF_STAGE_PUT, 64);
	want_soon(atomic_load(&inside));
	ck_assert(join(&idle, 2));
	mrf_eps_of(node_agent(&p.b))->nrings = MRF_RINGS;
	later(MRF_RING_GRACE_MS);
	ck_assert(join(&late, 3));
	mrf_eps_of(node_agent(&p.b))->nrings = 2;
	let_go();
	ck_assert_uint_eq(reply(&busy).status, MRF_REPLY_DONE);
	raw_close(&late);
	raw_close(&idle);
	raw_close(&busy);
	close_target();
}
END_TEST

/* One host has as many as it may; another one gets a ring all the same. */
START_TEST(rings_are_for_more_than_one_host)
{
	static struct raw r[MRF_RINGS_PER_ADDR + 1], other;
	unsigned i;

	open_target(_i, CAPS);
	stop_clock(true);
	for (i = 0; i < MRF_RINGS_PER_ADDR; i++)
		ck_assert(join(&r[i], i + 1));
	ck_assert(!join(&r[i], i + 1));
	raw_open(&other);
	other.host = 2;
	connect_with(&other, MRF_RINGS_PER_ADDR + 2);
	ck_assert(ring_of(&other));
	ck_assert_uint_eq(rings(), MRF_RINGS_PER_ADDR + 1);
	/* One that its own host has left alone gives way; that of another host does not. */
	later(MRF_RING_GRACE_MS);
	ck_assert(ring_of(&r[i]));
	ck_assert_uint_eq(rings(), MRF_RINGS_PER_ADDR + 1);
	ck_assert(ring_of(&other));
	stop_clock(false);
	raw_close(&other);
	for (i = 0; i <= MRF_RINGS_PER_ADDR; i++)
		raw_close(&r[i]);
	close_target();
}
END_TEST

/* --- what the kernel keeps ------------------------------------------------------------------- */

/* Peers could still reach it: the memory must not become anybody else's. */
START_TEST(ring_that_the_kernel_keeps_is_not_freed)
{
	static struct raw r;
	struct mrf_list *node;

	open_target(0, CAPS);
	ck_assert(join(&r, 1));
	node = mrf_list_first(&mrf_eps_of(node_agent(&p.b))->rings);
	atomic_store(&watched, mrf_list_entry(node, struct mrf_ring, node)->memory);
	fake_fail(FAKE_VMR_DEREG, 1, _i ? EBUSY : 0);
	later(MRF_RING_MS);
	want_soon(!rings());
	fake_heal();
	raw_close(&r);
	close_target();
	ck_assert_int_eq(atomic_load(&freed), !_i);
}
END_TEST

/* The elements of atomic operations on memory of the host go through it. */
START_TEST(loop_that_the_kernel_keeps_is_not_freed)
{
	open_target(0, CAPS);
	ck_assert_int_eq(
		fi_atomic(p.a.ep, p.src, 1, NULL, p.to, p.base, p.key, FI_UINT8, FI_BOR, &p), 0);
	want_ok(&p.a, &p);
	atomic_store(&watched, node_ep(&p.b)->loop);
	ck_assert(atomic_load(&watched));
	if (_i)
		fake_fail_always(FAKE_VMR_DEREG, EBUSY);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	fake_heal();
	close_target();
	ck_assert_int_eq(atomic_load(&freed), !_i);
}
END_TEST

/* --- regions that are closed meanwhile, and copies that fail -------------------------------- */

/* Two words of two segments, of which each is put by itself. */
static void reg_two_words(void *second)
{
	const struct iovec iov[] = { { dev, 8 }, { second, 8 } };
	const struct fi_mr_attr attr = { .mr_iov = iov,
					 .iov_count = 2,
					 .access = REMOTE_RW,
					 .requested_key = KEY,
					 .iface = rig->iface };

	must_close(&dev_mr->fid);
	ck_assert_int_eq(fi_mr_regattr(p.b.domain, &attr, 0, &dev_mr), 0);
}

static void want_words(uint64_t first, uint64_t second)
{
	uint64_t word[2];

	rig->get(&word[0], dev, 8);
	rig->get(&word[1], dev + 4096, 8);
	ck_assert_uint_eq(word[0], first);
	ck_assert_uint_eq(word[1], second);
}

static void add_one(struct raw *r)
{
	const uint64_t ones[] = { 1, 1 };
	const struct mrf_request add = { .type = MRF_MSG_ATOMIC,
					 .what = MRF_ATOMIC_WHAT(MRF_ATOMIC_BASE, FI_UINT64,
								 FI_SUM) |
						 MRF_ATOMIC_WHAT_STAGED,
					 .key = KEY,
					 .len = sizeof(ones),
					 .body_len = sizeof(ones),
					 .body = (const uint8_t *)ones };
	uint8_t msg[MRF_PROTO_REQUEST_HEAD + sizeof(ones)];

	ck_assert_int_eq(raw_send(r, msg, mrf_request_encode(&add, msg)), 0);
}

/* By the copy that is held: get, get, put, put. What has begun to be stored is stored. */
START_TEST(atomic_operation_is_done_wholly_or_not_when_its_region_is_closed)
{
	bool stores = _i >= 3;
	static struct raw r;
	struct mrf_reply got_back;

	open_target(0, CAPS);
	reg_two_words(dev + 4096);
	ck_assert(join(&r, 1));
	hold((unsigned)_i);
	add_one(&r);
	close_meanwhile();
	got_back = reply(&r);
	ck_assert_uint_eq(got_back.status, stores ? MRF_REPLY_DONE : MRF_MR_CLOSED);
	ck_assert_uint_eq(got_back.done, stores ? 16 : 0);
	want_words(stores, stores);
	raw_close(&r);
	close_target();
}
END_TEST

/*
 * Of an operation that is stored in part nobody may think that it was not done. The memory of the
 * second word is freed when both have been read.
 */
START_TEST(atomic_operation_that_is_stored_in_part_has_failed)
{
	static struct raw r;
	struct mrf_reply got_back;
	uint64_t word;
	void *other;

	open_target(_i, CAPS);
	other = rig->make(RT_DEVICE, 0, 8);
	rig->put(other, got, 8);
	reg_two_words(other);
	ck_assert(join(&r, 1));
	hold(4);
	add_one(&r);
	want_soon(atomic_load(&inside));
	rig->unmake(RT_DEVICE, other);
	let_go();
	got_back = reply(&r);
	ck_assert_uint_eq(got_back.status, MRF_REPLY_FAILED);
	ck_assert_uint_eq(got_back.err, FI_EIO);
	rig->get(&word, dev, 8);
	ck_assert_uint_eq(word, 1);
	raw_close(&r);
	close_target();
}
END_TEST

START_TEST(put_is_done_wholly_when_its_region_is_closed)
{
	static struct raw r;
	uint32_t rkey;
	struct mrf_reply got_back;

	open_target(_i, CAPS);
	rkey = join(&r, 1);
	fill_ring(&r, rkey, 'N', LEN);
	hold(1);
	request(&r, 0, MRF_STAGE_PUT, LEN);
	close_meanwhile();
	got_back = reply(&r);
	ck_assert_uint_eq(got_back.status, MRF_REPLY_DONE);
	ck_assert_uint_eq(got_back.done, LEN);
	want_device('N', LEN);
	raw_close(&r);
	close_target();
}
END_TEST

/* It changes nothing, so nobody has to wait for it. */
START_TEST(get_is_left_when_its_region_is_closed)
{
	static struct raw r;

	open_target(_i, CAPS);
	ck_assert(join(&r, 1));
	hold(1);
	request(&r, 0, 0, LEN);
	close_meanwhile();
	ck_assert_uint_eq(reply(&r).status, MRF_MR_CLOSED);
	ck_assert_uint_eq(atomic_load(&copies), 1);
	raw_close(&r);
	close_target();
}
END_TEST

/* --- jobs that are late ----------------------------------------------------------------------- */

/* The job of r is at its first copy, of 'O'. */
static void begin_old(struct raw *r, uint64_t ticket)
{
	fill_ring(r, join(r, ticket), 'O', 64);
	hold(1);
	request(r, 0, MRF_STAGE_PUT, 64);
	want_soon(atomic_load(&inside));
}

/* That the first connection was given up got lost: nothing comes over it when there is a new one. */
START_TEST(put_of_a_connection_that_has_a_successor_comes_before_what_that_one_puts)
{
	static struct raw old, new;

	open_target(_i, CAPS);
	begin_old(&old, 5);
	fill_ring(&new, join(&new, 5), 'N', 64);
	request(&new, 0, MRF_STAGE_PUT, 64);
	node_heard(&p.b);
	usleep(20000);
	let_go();
	ck_assert_uint_eq(reply(&new).status, MRF_REPLY_DONE);
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	want_device('N', 64);
	ck_assert_uint_eq(rings(), 1);
	raw_close(&new);
	raw_close(&old);
	close_target();
}
END_TEST

/* Two endpoints of a host; and two that show no ticket, so that nobody knows who they are. */
START_TEST(put_of_another_initiator_is_not_waited_for)
{
	static struct raw old, new;

	open_target(0, CAPS);
	begin_old(&old, _i ? 0 : 5);
	fill_ring(&new, join(&new, _i ? 0 : 6), 'N', 64);
	request(&new, 0, MRF_STAGE_PUT, 64);
	ck_assert_uint_eq(reply(&new).status, MRF_REPLY_DONE);
	want_device('N', 64);
	let_go();
	ck_assert_uint_eq(reply(&old).status, MRF_REPLY_DONE);
	raw_close(&new);
	raw_close(&old);
	close_target();
}
END_TEST

/* What waits for it is looked at when it is over, and not again and again. */
START_TEST(request_that_waits_for_a_late_job_does_not_keep_the_agent_busy)
{
	static struct raw old, new, third;

	open_target(_i, CAPS);
	begin_old(&old, 5);
	raw_hang_up(&old);
	fill_ring(&new, join(&new, 5), 'N', 64);
	ck_assert(join(&third, 6));
	atomic_store(&looks, 0);
	request(&new, 0, MRF_STAGE_PUT, 64);
	/* Other bytes: nothing keeps apart what two peers do with the same ones. */
	request_at(&third, 0, 0, 4096, 64);
	node_heard(&p.b);
	usleep(100000);
	ck_assert_uint_eq(atomic_load(&copies), 1);
	ck_assert_uint_le(atomic_load(&looks), 2);
	let_go();
	ck_assert_uint_eq(reply(&new).status, MRF_REPLY_DONE);
	ck_assert_uint_eq(reply(&third).status, MRF_REPLY_DONE);
	want_device('N', 64);
	raw_close(&third);
	raw_close(&new);
	raw_close(&old);
	close_target();
}
END_TEST

/* It goes while it waits. */
START_TEST(request_that_waits_for_a_late_job_may_be_given_up)
{
	static struct raw old, new;

	open_target(_i, CAPS);
	begin_old(&old, 5);
	raw_hang_up(&old);
	fill_ring(&new, join(&new, 5), 'N', 64);
	request(&new, 0, MRF_STAGE_PUT, 64);
	node_heard(&p.b);
	raw_hang_up(&new);
	want_soon(!rings());
	let_go();
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	want_device('O', 64);
	raw_close(&new);
	raw_close(&old);
	close_target();
}
END_TEST

/* --- counts ----------------------------------------------------------------------------------- */

/* Over the endpoint that p.b has at the moment. */
static void put_counted(struct raw *r)
{
	fill_ring(r, join(r, 1), 'N', 64);
	request(r, 0, MRF_STAGE_PUT | MRF_STAGE_COUNT, 64);
	ck_assert_uint_eq(reply(r).status, MRF_REPLY_DONE);
}

START_TEST(put_is_counted_by_endpoints_that_count)
{
	static struct raw counted, not_counted;
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_ep *counts, *other;
	struct fid_cntr *cntr;

	open_target(_i, CAPS | FI_RMA_EVENT);
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_mr_bind(dev_mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	put_counted(&counted);
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	counts = p.b.ep;
	p.b.info->caps &= ~FI_RMA_EVENT;
	p.b.info->rx_attr->caps &= ~FI_RMA_EVENT;
	ck_assert_int_eq(node_try_ep(&p.b, &(struct node_opt){ .caps = CAPS }, &other), 0);
	p.b.ep = other;
	put_counted(&not_counted);
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	p.b.ep = counts;
	raw_close(&not_counted);
	raw_close(&counted);
	must_close(&other->fid);
	must_close(&cntr->fid);
	close_target();
}
END_TEST

static TCase *tcase_of(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	return tc;
}

static TCase *rings_of_peers(void)
{
	TCase *tc = tcase_of("rings");

	tcase_add_loop_test(tc, ring_of_a_broken_connection_is_given_up, 0, RIGS);
	tcase_add_loop_test(tc, ring_of_a_broken_connection_with_requests_is_given_up, 0, RIGS);
	tcase_add_test(tc, ring_of_a_peer_without_receives_is_given_up);
	tcase_add_loop_test(tc, ring_is_kept_while_a_job_is_at_it, 0, RIGS);
	tcase_add_test(tc, ring_that_nobody_uses_is_found_behind_others);
	tcase_add_test(tc, rings_are_for_more_than_one_host);
	return tc;
}

static TCase *kept(void)
{
	TCase *tc = tcase_of("kept");

	tcase_add_loop_test(tc, ring_that_the_kernel_keeps_is_not_freed, 0, 2);
	tcase_add_loop_test(tc, loop_that_the_kernel_keeps_is_not_freed, 0, 2);
	return tc;
}

static TCase *closing(void)
{
	TCase *tc = tcase_of("closing");

	tcase_add_loop_test(tc, atomic_operation_is_done_wholly_or_not_when_its_region_is_closed, 1,
			    5);
	tcase_add_loop_test(tc, atomic_operation_that_is_stored_in_part_has_failed, 0, RIGS);
	tcase_add_loop_test(tc, put_is_done_wholly_when_its_region_is_closed, 0, RIGS);
	tcase_add_loop_test(tc, get_is_left_when_its_region_is_closed, 0, RIGS);
	return tc;
}

static TCase *late_jobs(void)
{
	TCase *tc = tcase_of("late");

	tcase_add_loop_test(
		tc, put_of_a_connection_that_has_a_successor_comes_before_what_that_one_puts, 0,
		RIGS);
	tcase_add_loop_test(tc, put_of_another_initiator_is_not_waited_for, 0, 2);
	tcase_add_loop_test(tc, request_that_waits_for_a_late_job_does_not_keep_the_agent_busy, 0,
			    RIGS);
	tcase_add_loop_test(tc, request_that_waits_for_a_late_job_may_be_given_up, 0, RIGS);
	return tc;
}

static TCase *counting(void)
{
	TCase *tc = tcase_of("counting");

	tcase_add_loop_test(tc, put_is_counted_by_endpoints_that_count, 0, RIGS);
	return tc;
}

UNIT_MAIN("ring", rings_of_peers, kept, closing, late_jobs, counting)
