/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a target does for peers that use its device memory: who has staging memory and for how long
 * (ep/rx/staging.h), and what the jobs of its requests do to a region (ep/rx/device_parts.h,
 * ep/rx/job_serve.h). The peers are mostly made by hand, because the library itself would not do what
 * some of them do.
 */
#include <time.h>
#include "ep/link/passive.h"
#include "ep/model/atomics.h"
#include "ep/rx/staging.h"
#include "loop/agent_calls.h"
#include "mr/region.h"
#include "mr/space.h"
#include "verbs/vpair.h"
#include "device_fixture.h"
#include "held_copy.h"
#include "raw.h"

#define LEN MRF_PROTO_STAGE
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

/* Of two segments, each of which is copied by itself. */
static void reg_target(void)
{
	const struct iovec iov[] = { { dev, LEN / 2 }, { dev + LEN / 2, LEN / 2 } };
	const struct fi_mr_attr attr = { .mr_iov = iov,
					 .iov_count = 2,
					 .access = REMOTE_RW,
					 .requested_key = KEY,
					 .iface = rig->iface };

	ck_assert_int_eq(fi_mr_regattr(p.b.domain, &attr, 0, &dev_mr), 0);
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

/* --- what it has for peers ------------------------------------------------------------------ */

static int count_stagings(struct mrf_agent *agent, void *count)
{
	*(unsigned *)count = mrf_eps_of(agent)->nstagings;
	return 0;
}

static unsigned stagings(void)
{
	unsigned count;

	ck_assert_int_eq(mrf_agent_command(node_agent(&p.b), &count, count_stagings), 0);
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

/* With an end of a pair. */
struct hand {
	struct raw raw;
	struct mrf_vcq *cq; /* of the pair; NULL: none */
	struct mrf_vpair *pair;
	struct mrf_vmr mr; /* of part */
	uint8_t part[LEN];
};

static void connect_with(struct hand *h, uint64_t ticket)
{
	struct mrf_hello hello = { .ticket = ticket };
	uint8_t data[MRF_PROTO_HELLO_LEN];

	ck_assert_int_eq(
		raw_connect(&h->raw, node_port(&p.b), data, mrf_hello_encode(&hello, data)).type,
		MRF_CM_RESPONSE);
}

static void ask(struct hand *h)
{
	const struct mrf_ask question = { .cookie = 1, .key = KEY, .len = 64 };
	uint8_t msg[MRF_PROTO_ASK_LEN];

	ck_assert_int_eq(raw_send(&h->raw, msg, mrf_ask_encode(&question, msg)), 0);
}

static struct mrf_answer answer(struct hand *h)
{
	struct mrf_answer got_back = { 0 };
	struct mrf_wc wc = raw_recv(&h->raw);

	ck_assert_int_eq(mrf_answer_decode(h->raw.slots[wc.wr_id], wc.byte_len, &got_back), 0);
	raw_post_recv(&h->raw, (unsigned)wc.wr_id);
	return got_back;
}

/* Gets staging memory, or none. */
static bool gets_staging(struct hand *h)
{
	struct mrf_answer got_back;

	ask(h);
	got_back = answer(h);
	ck_assert_uint_eq(got_back.status, got_back.nseg ? MRF_MR_OK : MRF_MR_NO_ROOM);
	return got_back.nseg;
}

static bool join(struct hand *h, uint64_t ticket)
{
	raw_open(&h->raw);
	h->cq = NULL;
	connect_with(h, ticket);
	return gets_staging(h);
}

static void part_with(struct hand *h)
{
	if (!h->cq)
		return;
	mrf_vpair_close(h->pair);
	mrf_vmr_dereg(&h->mr);
	mrf_vcq_close(h->cq);
	h->cq = NULL;
}

static void hand_hang_up(struct hand *h)
{
	part_with(h);
	raw_hang_up(&h->raw);
}

static void hand_close(struct hand *h)
{
	part_with(h);
	raw_close(&h->raw);
}

static void request_at(struct hand *h, uint32_t number, uint32_t what, uint64_t addr, size_t len)
{
	const struct mrf_request copy = { .type = MRF_MSG_STAGE,
					  .number = number,
					  .what = what,
					  .key = KEY,
					  .addr = addr,
					  .len = len };
	uint8_t msg[MRF_PROTO_REQUEST_HEAD];

	ck_assert_int_eq(raw_send(&h->raw, msg, mrf_request_encode(&copy, msg)), 0);
}

static void request(struct hand *h, uint32_t number, uint32_t what, size_t len)
{
	request_at(h, number, what, 0, len);
}

static struct mrf_reply reply(struct hand *h)
{
	struct mrf_reply got_back = { 0 };
	struct mrf_wc wc = raw_recv(&h->raw);

	ck_assert_int_eq(wc.status, MRF_WC_OK);
	ck_assert_int_eq(mrf_reply_decode(h->raw.slots[wc.wr_id], wc.byte_len, &got_back), 0);
	raw_post_recv(&h->raw, (unsigned)wc.wr_id);
	return got_back;
}

static struct mrf_vpair_name open_end(struct hand *h)
{
	struct mrf_vpair_attr attr = { .pd = h->raw.pd,
				       .send_depth = SLOTS,
				       .recv_depth = SLOTS,
				       .send_sge = 1,
				       .recv_sge = 1 };

	ck_assert_int_eq(mrf_vcq_open(h->raw.dev, 4096, &h->cq), 0);
	attr.send_cq = attr.recv_cq = h->cq;
	ck_assert_int_eq(mrf_vpair_open(h->raw.conn, &attr, &h->pair), 0);
	ck_assert_int_eq(mrf_vmr_reg(h->raw.pd, h->part, LEN, (uintptr_t)h->part,
				     MRF_RIGHT_LOCAL_WRITE, &h->mr),
			 0);
	return mrf_vpair_name(h->pair);
}

static void name_end(struct hand *h, struct mrf_vpair_name end)
{
	const struct mrf_pair_name name = { end.qpn, end.psn };
	uint8_t body[MRF_PROTO_PAIR_NAME], msg[MRF_PROTO_REQUEST_HEAD + sizeof(body)];
	const struct mrf_request naming = {
		.type = MRF_MSG_STAGE, .key = KEY, .len = 1, .body_len = sizeof(body), .body = body
	};

	mrf_pair_name_encode(&name, body);
	ck_assert_int_eq(raw_send(&h->raw, msg, mrf_request_encode(&naming, msg)), 0);
}

static void pair_up(struct hand *h)
{
	struct mrf_reply got_back;
	struct mrf_vpair_name other;
	struct mrf_pair_name name;

	name_end(h, open_end(h));
	got_back = reply(h);
	ck_assert_uint_eq(got_back.status, MRF_REPLY_DONE);
	ck_assert_uint_eq(got_back.done, 0);
	ck_assert_int_eq(mrf_pair_name_decode(got_back.body, got_back.body_len, &name), 0);
	other = (struct mrf_vpair_name){ name.qpn, name.psn };
	ck_assert_int_eq(mrf_vpair_connect(h->pair, h->raw.conn, &other), 0);
}

static void join_pair(struct hand *h, uint64_t ticket)
{
	ck_assert(join(h, ticket));
	pair_up(h);
}

/* So many bytes that are all this go over the pair. */
static void send_part(struct hand *h, uint8_t byte, size_t len)
{
	struct mrf_sge sge = { (uintptr_t)h->part, (uint32_t)len, h->mr.lkey };

	memset(h->part, byte, len);
	ck_assert_int_eq(mrf_vpair_send(h->pair, 1, &sge, 1, false), 0);
}

static void put(struct hand *h, uint8_t byte, size_t len)
{
	send_part(h, byte, len);
	request(h, 0, MRF_STAGE_PUT, len);
}

static void await_part(struct hand *h)
{
	struct mrf_sge sge = { (uintptr_t)h->part, LEN, h->mr.lkey };

	ck_assert_int_eq(mrf_vpair_recv(h->pair, 2, &sge, 1), 0);
}

/* How many bytes came. */
static size_t part_of(struct hand *h)
{
	struct mrf_wc wc = { 0 };

	do {
		want_soon(mrf_vcq_poll(h->cq, &wc, 1) == 1);
	} while (wc.wr_id != 2);
	ck_assert_int_eq(wc.status, MRF_WC_OK);
	return wc.byte_len;
}

/* Bytes [0, len) of the device are all this. */
static void want_device(uint8_t byte, size_t len)
{
	rig->get(got, dev, len);
	ck_assert_uint_eq(got[0], byte);
	ck_assert(!memcmp(got, got + 1, len - 1));
}

/* --- who has it, and for how long ------------------------------------------------------- */

START_TEST(staging_of_a_broken_connection_is_given_up)
{
	static struct hand r;

	open_target(_i, CAPS);
	ck_assert(join(&r, 1));
	ck_assert_uint_eq(stagings(), 1);
	break_connections();
	ck_assert_uint_eq(stagings(), 1);
	later(MRF_STAGING_MS);
	want_soon(!stagings());
	hand_close(&r);
	close_target();
}
END_TEST

/* What it has sent and nobody will ever serve is no reason to keep its memory. */
START_TEST(staging_of_a_broken_connection_with_requests_is_given_up)
{
	static struct hand r;

	open_target(_i, CAPS);
	join_pair(&r, 1);
	hold(1);
	put(&r, 'N', 64);
	want_soon(atomic_load(&inside));
	request(&r, 1, MRF_STAGE_PUT, 64);
	node_heard(&p.b);
	break_connections();
	later(MRF_STAGING_MS);
	want_soon(!stagings());
	let_go();
	hand_close(&r);
	close_target();
}
END_TEST

#define MANY_ASKS (MRF_PASSIVE_SENDS + 2)

/* Its answers wait, and so do its last questions, for there is no room for more answers. */
static void ask_without_receives(struct hand *r)
{
	raw_open(&r->raw);
	r->raw.receives = 1;
	connect_with(r, 1);
	for (unsigned i = 1; i <= MANY_ASKS; i++) {
		ask(r);
		want_soon(served(i));
	}
	ck_assert_uint_eq(stagings(), 1);
}

/* It waits for ever. */
START_TEST(staging_of_a_peer_without_receives_is_given_up)
{
	static struct hand r;

	open_target(_i, CAPS);
	ask_without_receives(&r);
	later(MRF_STAGING_MS);
	want_soon(!stagings());
	hand_close(&r);
	close_target();
}
END_TEST

/* The agent hears that its answers have gone, though nothing else happens. */
START_TEST(questions_of_a_peer_without_receives_are_answered_when_it_has_some)
{
	static struct hand r;

	open_target(0, CAPS);
	ask_without_receives(&r);
	for (unsigned i = 1; i < SLOTS; i++)
		raw_post_recv(&r.raw, i);
	for (unsigned i = 0; i < MANY_ASKS; i++)
		ck_assert_uint_eq(answer(&r).status, MRF_MR_OK);
	hand_close(&r);
	close_target();
}
END_TEST

/* A peer that waits for its device keeps its memory, and for another while when that is done. */
START_TEST(staging_is_kept_while_a_job_is_at_it)
{
	static struct hand r;

	open_target(_i, CAPS);
	join_pair(&r, 1);
	hold(1);
	put(&r, 'N', 64);
	want_soon(atomic_load(&inside));
	for (unsigned i = 0; i < 3; i++)
		later(MRF_STAGING_MS);
	ck_assert_uint_eq(stagings(), 1);
	let_go();
	ck_assert_uint_eq(reply(&r).status, MRF_REPLY_DONE);
	later(MRF_STAGING_MS - 1000);
	ck_assert_uint_eq(stagings(), 1);
	later(1000);
	want_soon(!stagings());
	hand_close(&r);
	close_target();
}
END_TEST

/* A busy one is in front of the one that nobody uses. */
START_TEST(staging_that_nobody_uses_is_found_behind_others)
{
	static struct hand busy, idle, late;

	open_target(_i, CAPS);
	join_pair(&busy, 1);
	hold(1);
	put(&busy, 'N', 64);
	want_soon(atomic_load(&inside));
	ck_assert(join(&idle, 2));
	mrf_eps_of(node_agent(&p.b))->nstagings = MRF_STAGINGS;
	later(MRF_STAGING_GRACE_MS);
	ck_assert(join(&late, 3));
	mrf_eps_of(node_agent(&p.b))->nstagings = 2;
	let_go();
	ck_assert_uint_eq(reply(&busy).status, MRF_REPLY_DONE);
	hand_close(&late);
	hand_close(&idle);
	hand_close(&busy);
	close_target();
}
END_TEST

/* One host has as many as it may; another one gets some all the same. */
START_TEST(staging_is_for_more_than_one_host)
{
	static struct hand r[MRF_STAGINGS_PER_ADDR + 1], other;
	unsigned i;

	open_target(_i, CAPS);
	stop_clock(true);
	for (i = 0; i < MRF_STAGINGS_PER_ADDR; i++)
		ck_assert(join(&r[i], i + 1));
	ck_assert(!join(&r[i], i + 1));
	raw_open(&other.raw);
	other.raw.host = 2;
	connect_with(&other, MRF_STAGINGS_PER_ADDR + 2);
	ck_assert(gets_staging(&other));
	ck_assert_uint_eq(stagings(), MRF_STAGINGS_PER_ADDR + 1);
	/* One that its own host has left alone gives way; that of another host does not. */
	later(MRF_STAGING_GRACE_MS);
	ck_assert(gets_staging(&r[i]));
	ck_assert_uint_eq(stagings(), MRF_STAGINGS_PER_ADDR + 1);
	ck_assert(gets_staging(&other));
	stop_clock(false);
	hand_close(&other);
	for (i = 0; i <= MRF_STAGINGS_PER_ADDR; i++)
		hand_close(&r[i]);
	close_target();
}
END_TEST

/* --- what the kernel keeps ------------------------------------------------------------------- */

/* What a peer has sent could still arrive there: the memory must not become anybody else's. */
START_TEST(staging_that_the_kernel_keeps_is_not_freed)
{
	static struct hand r;
	struct mrf_list *node;

	open_target(0, CAPS);
	ck_assert(join(&r, 1));
	node = mrf_list_first(&mrf_eps_of(node_agent(&p.b))->stagings);
	atomic_store(&watched, mrf_list_entry(node, struct mrf_staging, node)->memory);
	fake_fail(FAKE_VMR_DEREG, 1, _i ? EBUSY : 0);
	later(MRF_STAGING_MS);
	want_soon(!stagings());
	fake_heal();
	hand_close(&r);
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

static void add_one(struct hand *r)
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

	ck_assert_int_eq(raw_send(&r->raw, msg, mrf_request_encode(&add, msg)), 0);
}

/* By the copy that is held: get, get, put, put. What has begun to be stored is stored. */
START_TEST(atomic_operation_is_done_wholly_or_not_when_its_region_is_closed)
{
	bool stores = _i >= 3;
	static struct hand r;
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
	hand_close(&r);
	close_target();
}
END_TEST

/*
 * Of an operation that is stored in part nobody may think that it was not done. The memory of the
 * second word is freed when both have been read.
 */
START_TEST(atomic_operation_that_is_stored_in_part_has_failed)
{
	static struct hand r;
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
	hand_close(&r);
	close_target();
}
END_TEST

START_TEST(put_is_done_wholly_when_its_region_is_closed)
{
	static struct hand r;
	struct mrf_reply got_back;

	open_target(_i, CAPS);
	join_pair(&r, 1);
	hold(1);
	put(&r, 'N', LEN);
	close_meanwhile();
	got_back = reply(&r);
	ck_assert_uint_eq(got_back.status, MRF_REPLY_DONE);
	ck_assert_uint_eq(got_back.done, LEN);
	want_device('N', LEN);
	hand_close(&r);
	close_target();
}
END_TEST

/* It changes nothing, so nobody has to wait for it. */
START_TEST(get_is_left_when_its_region_is_closed)
{
	static struct hand r;

	open_target(_i, CAPS);
	join_pair(&r, 1);
	await_part(&r);
	hold(1);
	request(&r, 0, 0, LEN);
	close_meanwhile();
	ck_assert_uint_eq(reply(&r).status, MRF_MR_CLOSED);
	ck_assert_uint_eq(part_of(&r), 0);
	ck_assert_uint_eq(atomic_load(&copies), 1);
	hand_close(&r);
	close_target();
}
END_TEST

/* --- jobs that are late ----------------------------------------------------------------------- */

/* The job of r is at its first copy, of 'O'. */
static void begin_old(struct hand *r, uint64_t ticket)
{
	join_pair(r, ticket);
	hold(1);
	put(r, 'O', 64);
	want_soon(atomic_load(&inside));
}

/* That the first connection was given up got lost: nothing comes over it when there is a new one. */
START_TEST(put_of_a_connection_that_has_a_successor_comes_before_what_that_one_puts)
{
	static struct hand old, new;

	open_target(_i, CAPS);
	begin_old(&old, 5);
	join_pair(&new, 5);
	put(&new, 'N', 64);
	node_heard(&p.b);
	usleep(20000);
	let_go();
	ck_assert_uint_eq(reply(&new).status, MRF_REPLY_DONE);
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	want_device('N', 64);
	ck_assert_uint_eq(stagings(), 1);
	hand_close(&new);
	hand_close(&old);
	close_target();
}
END_TEST

/* Two endpoints of a host; and two that show no ticket, so that nobody knows who they are. */
START_TEST(put_of_another_initiator_is_not_waited_for)
{
	static struct hand old, new;

	open_target(0, CAPS);
	begin_old(&old, _i ? 0 : 5);
	join_pair(&new, _i ? 0 : 6);
	put(&new, 'N', 64);
	ck_assert_uint_eq(reply(&new).status, MRF_REPLY_DONE);
	want_device('N', 64);
	let_go();
	ck_assert_uint_eq(reply(&old).status, MRF_REPLY_DONE);
	hand_close(&new);
	hand_close(&old);
	close_target();
}
END_TEST

/* What waits for it is looked at when it is over, and not again and again. */
START_TEST(request_that_waits_for_a_late_job_does_not_keep_the_agent_busy)
{
	static struct hand old, new, third;

	open_target(_i, CAPS);
	begin_old(&old, 5);
	hand_hang_up(&old);
	join_pair(&new, 5);
	join_pair(&third, 6);
	await_part(&third);
	atomic_store(&looks, 0);
	put(&new, 'N', 64);
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
	hand_close(&third);
	hand_close(&new);
	hand_close(&old);
	close_target();
}
END_TEST

/* It goes while it waits. */
START_TEST(request_that_waits_for_a_late_job_may_be_given_up)
{
	static struct hand old, new;

	open_target(_i, CAPS);
	begin_old(&old, 5);
	hand_hang_up(&old);
	join_pair(&new, 5);
	put(&new, 'N', 64);
	node_heard(&p.b);
	hand_hang_up(&new);
	want_soon(!stagings());
	let_go();
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	want_device('O', 64);
	hand_close(&new);
	hand_close(&old);
	close_target();
}
END_TEST

/* --- what goes over the pair -------------------------------------------------------------------- */

/* n requests for adjacent parts of len bytes, in one message. */
static void request_all(struct hand *h, uint32_t number, uint32_t what, size_t len, unsigned n)
{
	struct mrf_request copy = {
		.type = MRF_MSG_STAGE, .number = number, .what = what, .key = KEY, .len = len
	};
	uint8_t msg[INLINE];
	size_t at = 0;

	for (; n--; copy.number++, copy.addr += len)
		at += mrf_request_encode(&copy, msg + at);
	ck_assert_int_eq(raw_send(&h->raw, msg, at), 0);
}

/* Replies to a message with n requests. */
static void replies(struct hand *h, struct mrf_reply *got_back, unsigned n)
{
	struct mrf_wc wc = raw_recv(&h->raw);
	const uint8_t *msg = h->raw.slots[wc.wr_id];
	size_t len = wc.byte_len;

	for (; n--; got_back++) {
		ck_assert_int_eq(mrf_reply_decode(msg, len, got_back), 0);
		len -= mrf_msg_len(msg);
		msg += mrf_msg_len(msg);
	}
	ck_assert_uint_eq(len, 0);
	raw_post_recv(&h->raw, (unsigned)wc.wr_id);
}

/* Parts that do not fill their places are not together in memory, though they are in the region. */
START_TEST(adjacent_parts_are_put_where_they_belong)
{
	static struct hand h;
	struct mrf_reply got_back[3];
	unsigned i;

	open_target(_i, CAPS);
	join_pair(&h, 1);
	for (i = 0; i < 3; i++)
		send_part(&h, (uint8_t)('a' + i), 1000);
	request_all(&h, 0, MRF_STAGE_PUT, 1000, 3);
	replies(&h, got_back, 3);
	rig->get(got, dev, 3000);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(got_back[i].status, MRF_REPLY_DONE);
		ck_assert_uint_eq(got_back[i].done, 1000);
		ck_assert_uint_eq(got[1000 * i], 'a' + i);
		ck_assert(!memcmp(got + 1000 * i, got + 1000 * i + 1, 999));
	}
	hand_close(&h);
	close_target();
}
END_TEST

/* The request comes first; and after it, what breaks the protocol. */
START_TEST(put_waits_for_its_bytes)
{
	static struct hand h;

	open_target(_i, CAPS);
	join_pair(&h, 1);
	request(&h, 0, MRF_STAGE_PUT, 64);
	node_heard(&p.b);
	usleep(20000);
	ck_assert_uint_eq(stagings(), 1);
	send_part(&h, 'N', 64);
	ck_assert_uint_eq(reply(&h).status, MRF_REPLY_DONE);
	want_device('N', 64);
	hand_close(&h);
	close_target();
}
END_TEST

/* Who promises bytes and does not send them keeps no memory. */
START_TEST(put_whose_bytes_do_not_come_is_given_up)
{
	static struct hand h;

	open_target(_i, CAPS);
	join_pair(&h, 1);
	request(&h, 0, MRF_STAGE_PUT, 64);
	node_heard(&p.b);
	later(MRF_STAGING_MS);
	want_soon(!stagings());
	want_device(0, 64);
	hand_close(&h);
	close_target();
}
END_TEST

/* The connection ends when that is known, though nobody waits for it. */
START_TEST(get_whose_bytes_do_not_arrive_is_hung_up_on)
{
	static struct hand h;

	open_target(_i, CAPS);
	join_pair(&h, 1);
	request(&h, 0, 0, 64);
	ck_assert_uint_eq(reply(&h).status, MRF_REPLY_DONE);
	stop_clock(true);
	part_with(&h);
	ck_assert_int_eq(raw_event(&h.raw).type, MRF_CM_DISCONNECTED);
	stop_clock(false);
	ck_assert_uint_eq(stagings(), 0);
	hand_close(&h);
	close_target();
}
END_TEST

/* One that is refused, and one behind it: what came for them is not put anywhere later. */
START_TEST(parts_of_requests_that_are_not_done_are_dropped)
{
	static struct hand h;
	struct mrf_reply got_back[2];

	open_target(_i, CAPS);
	join_pair(&h, 1);
	send_part(&h, 'x', LEN);
	send_part(&h, 'y', LEN);
	/* The second one's bytes are behind the region, and so are those of both together. */
	request_all(&h, 0, MRF_STAGE_PUT, LEN, 2);
	replies(&h, got_back, 2);
	ck_assert_uint_eq(got_back[0].status, MRF_REPLY_DONE);
	ck_assert_uint_eq(got_back[1].status, MRF_MR_OUTSIDE);
	want_device('x', LEN);
	send_part(&h, 'z', 64);
	request(&h, 2, MRF_STAGE_PUT, 64);
	ck_assert_uint_eq(reply(&h).status, MRF_REPLY_NOT_NEXT);
	send_part(&h, 'N', 64);
	request(&h, 1, MRF_STAGE_PUT, 64);
	ck_assert_uint_eq(reply(&h).status, MRF_REPLY_DONE);
	want_device('N', 64);
	hand_close(&h);
	close_target();
}
END_TEST

/* Each has its SEND, which is empty if it brings nothing. */
START_TEST(requests_that_bring_nothing_send_nothing)
{
	static struct hand h;

	open_target(_i, CAPS);
	rig->put(dev, want, LEN);
	join_pair(&h, 1);
	await_part(&h);
	await_part(&h);
	request_at(&h, 0, 0, LEN - 32, 64);
	request(&h, 0, 0, LEN);
	ck_assert_uint_eq(reply(&h).status, MRF_MR_OUTSIDE);
	ck_assert_uint_eq(part_of(&h), 0);
	ck_assert_uint_eq(reply(&h).status, MRF_REPLY_DONE);
	ck_assert_uint_eq(part_of(&h), LEN);
	ck_assert(!memcmp(h.part, want, LEN));
	hand_close(&h);
	close_target();
}
END_TEST

static const struct {
	const char *what;
	bool twice; /* names an end a second time */
	uint32_t bits;
	size_t sent, said;
} lies[] = {
	{ "a second pair", .twice = true },
	{ "other bytes than it says", .bits = MRF_STAGE_PUT, .sent = 64, .said = 65 },
	{ "more than a part has", .bits = MRF_STAGE_PUT, .sent = LEN, .said = LEN + 1 },
	{ "a bit that means nothing", .bits = 1, .said = 64 },
};

START_TEST(who_breaks_the_protocol_is_hung_up_on)
{
	static struct hand h;

	open_target(0, CAPS);
	join_pair(&h, 1);
	if (lies[_i].sent)
		send_part(&h, 'N', lies[_i].sent);
	if (lies[_i].twice)
		name_end(&h, mrf_vpair_name(h.pair));
	else
		request(&h, 0, lies[_i].bits, lies[_i].said);
	want_soon(!stagings());
	want_device(0, 64);
	hand_close(&h);
	close_target();
}
END_TEST

/* --- counts ----------------------------------------------------------------------------------- */

/* Over the endpoint that p.b has at the moment. */
static void put_counted(struct hand *r)
{
	join_pair(r, 1);
	send_part(r, 'N', 64);
	request(r, 0, MRF_STAGE_PUT | MRF_STAGE_COUNT, 64);
	ck_assert_uint_eq(reply(r).status, MRF_REPLY_DONE);
}

START_TEST(put_is_counted_by_endpoints_that_count)
{
	static struct hand counted, not_counted;
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
	hand_close(&not_counted);
	hand_close(&counted);
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

static TCase *stagings_of_peers(void)
{
	TCase *tc = tcase_of("staging");

	tcase_add_loop_test(tc, staging_of_a_broken_connection_is_given_up, 0, RIGS);
	tcase_add_loop_test(tc, staging_of_a_broken_connection_with_requests_is_given_up, 0, RIGS);
	tcase_add_test(tc, staging_of_a_peer_without_receives_is_given_up);
	tcase_add_test(tc, questions_of_a_peer_without_receives_are_answered_when_it_has_some);
	tcase_add_loop_test(tc, staging_is_kept_while_a_job_is_at_it, 0, RIGS);
	tcase_add_test(tc, staging_that_nobody_uses_is_found_behind_others);
	tcase_add_test(tc, staging_is_for_more_than_one_host);
	return tc;
}

static TCase *kept(void)
{
	TCase *tc = tcase_of("kept");

	tcase_add_loop_test(tc, staging_that_the_kernel_keeps_is_not_freed, 0, 2);
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

static TCase *over_the_pair(void)
{
	TCase *tc = tcase_of("pair");

	tcase_add_loop_test(tc, adjacent_parts_are_put_where_they_belong, 0, RIGS);
	tcase_add_loop_test(tc, put_waits_for_its_bytes, 0, RIGS);
	tcase_add_loop_test(tc, get_whose_bytes_do_not_arrive_is_hung_up_on, 0, RIGS);
	tcase_add_test(tc, put_whose_bytes_do_not_come_is_given_up);
	tcase_add_loop_test(tc, parts_of_requests_that_are_not_done_are_dropped, 0, RIGS);
	tcase_add_loop_test(tc, requests_that_bring_nothing_send_nothing, 0, RIGS);
	tcase_add_loop_test(tc, who_breaks_the_protocol_is_hung_up_on, 0, MRF_ARRAY_SIZE(lies));
	return tc;
}

static TCase *counting(void)
{
	TCase *tc = tcase_of("counting");

	tcase_add_loop_test(tc, put_is_counted_by_endpoints_that_count, 0, RIGS);
	return tc;
}

UNIT_MAIN("staging", stagings_of_peers, kept, closing, late_jobs, over_the_pair, counting)
