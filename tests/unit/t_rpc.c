/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to a peer's agent: a type of request that the tests add, which stores bytes at
 * the target, and what becomes of it when others are in flight, when the peer goes, and
 * when what comes back makes no sense.
 */
#include "base/log.h"
#include "ep/ep_ops.h"
#include "ep/rx/job_serve.h"
#include "ep/tx/peer_queue.h"
#include "ep/tx/rpc.h"
#include "ep_fixture.h"

#define TYPE MRF_MSG_FLUSH
#define CHUNK 64u /* bytes of one request */

static struct pair p;

/* What the target's agent saw, and how it is to behave. */
static struct {
	atomic_uint served;
	atomic_uint status; /* of the next reply */
	atomic_uint err;
	atomic_uint most; /* bytes done at a time */
	atomic_bool malformed;
	atomic_bool refused;
} t;

/* What goes over the wire. */
static struct {
	atomic_uint requests, replies;
	atomic_bool keep_reply;
	void (*spoil)(uint8_t *reply, size_t *len);
	unsigned char type; /* not 0: what the requests' type becomes */
} wire;

/* A request of type FLUSH is served in the test's own way. */
int __wrap_mrf_job_serve(struct mrf_work *work, const struct mrf_request *request);

int __wrap_mrf_job_serve(struct mrf_work *work, const struct mrf_request *request)
{
	uint64_t n = mrf_min(request->len, atomic_load(&t.most));
	struct mrf_reply *reply = &work->reply;
	uint8_t *body = mrf_work_body(work);

	if (atomic_load(&t.malformed) || request->what != 7 || request->body_len != request->len)
		return -FI_EINVAL;
	atomic_fetch_add(&t.served, 1);
	if (atomic_load(&t.refused)) {
		reply->status = MRF_REPLY_RIGHT;
		return 0;
	}
	reply->status = atomic_exchange(&t.status, 0);
	reply->err = atomic_load(&t.err);
	if (reply->status && n == CHUNK)
		return 0;
	memcpy(p.dst + (request->addr - p.base), request->body, n);
	memcpy(body, request->body, n);
	reply->done = n;
	reply->body_len = (uint32_t)n;
	return 0;
}

static uint64_t fill_request(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
			     uint8_t *body)
{
	len = mrf_min(len, CHUNK);
	request->what = 7;
	request->body_len = (uint32_t)len;
	memcpy(body, op->local.data + op->pos, len);
	return len;
}

/* What comes back is what was sent. */
static bool take_reply(struct mrf_op *op, const struct mrf_reply *reply)
{
	return reply->body_len == reply->done &&
	       !memcmp(op->local.data + op->acked, reply->body, reply->done);
}

static const struct mrf_rpc message = { .type = TYPE, .fill = fill_request, .take = take_reply };
static const struct mrf_op_type type = { .kind = MRF_OP_RPC,
					 .rpc = &message,
					 .post = mrf_rpc_post_locked };

static enum fake_fate on_send(uint8_t *msg, size_t *len, bool from_target)
{
	int type = mrf_msg_type(msg, *len);

	if (type == TYPE && !from_target) {
		atomic_fetch_add(&wire.requests, 1);
		msg[0] = wire.type ? wire.type : msg[0];
	}
	if (type != MRF_MSG_REPLY || !from_target)
		return FAKE_DELIVER;
	atomic_fetch_add(&wire.replies, 1);
	if (wire.spoil)
		wire.spoil(msg, len);
	return atomic_load(&wire.keep_reply) ? FAKE_KEEP : FAKE_DELIVER;
}

static void setup(void)
{
	fixture_setup();
	memset(&t, 0, sizeof(t));
	memset(&wire, 0, sizeof(wire));
	atomic_store(&t.most, CHUNK);
	fake.on_send = on_send;
}

static void send_len(size_t at, size_t len, uint64_t flags)
{
	struct iovec iov = { p.src + at, len };
	struct fi_rma_iov rma = { p.base + at, len, p.key };
	struct mrf_req req = { .type = &type,
			       .iov = &iov,
			       .count = 1,
			       .rma = &rma,
			       .rma_count = 1,
			       .addr = p.to,
			       .context = pair_ctx(&p, at),
			       .flags = flags };

	ck_assert_int_eq(mrf_rma_submit(node_ep(&p.a), &req), 0);
}

static void send_one(size_t at)
{
	send_len(at, CHUNK, 0);
}

static void want_done(size_t at)
{
	want_ok(&p.a, pair_ctx(&p, at));
	ck_assert_int_eq(memcmp(p.dst + at, p.src + at, CHUNK), 0);
}

static void warm_up(void)
{
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
}

static void want_nothing_left(void)
{
	want_none(&p.a);
	ck_assert_uint_eq(node_state(&p.a, p.to).ops, 0);
	want_idle(&p.a);
}

/* --- what a message is ---------------------------------------------------------------- */

START_TEST(msg_is_done_when_its_reply_comes_not_when_it_was_delivered)
{
	pair_open(&p, _i ? PLAIN : NULL);
	atomic_store(&wire.keep_reply, true);
	send_one(0);
	want_soon(atomic_load(&wire.replies) == 1);
	want_none(&p.a);
	atomic_store(&wire.keep_reply, false);
	fake_deliver();
	want_done(0);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

START_TEST(msg_nothing_is_posted_behind_one_that_has_no_reply)
{
	size_t done;
	int i;

	pair_open(&p, PLAIN);
	warm_up();
	done = fake_nlog();
	atomic_store(&wire.keep_reply, true);
	send_one(0);
	pair_write(&p, 1000, 8);
	send_one(2000);
	pair_read(&p, 3000, 8);
	want_soon(atomic_load(&wire.replies) == 1);
	want_none(&p.a);
	ck_assert_uint_eq(fake_nlog(), done);
	ck_assert_uint_eq(atomic_load(&wire.requests), 1);
	atomic_store(&wire.keep_reply, false);
	fake_deliver();
	/* Completions have no order. */
	for (i = 0; i < 4; i++)
		want_ok(&p.a, NULL);
	ck_assert_int_eq(memcmp(p.dst, p.src, CHUNK), 0);
	ck_assert_int_eq(memcmp(p.dst + 2000, p.src + 2000, CHUNK), 0);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

START_TEST(msg_waits_for_nothing_that_is_ahead_of_it)
{
	pair_open(&p, PLAIN);
	warm_up();
	fake_hold(true);
	pair_write(&p, 1000, 8);
	send_one(0);
	ck_assert_uint_eq(fake_queued(), 2);
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 1000));
	want_done(0);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

/* Of many bytes: one request after the other, each with its own part. */
START_TEST(msg_longer_than_a_request_goes_in_parts)
{
	pair_open(&p, PLAIN);
	atomic_store(&t.most, _i ? 24 : CHUNK);
	send_len(100, 3 * CHUNK + 10, 0);
	want_ok(&p.a, pair_ctx(&p, 100));
	ck_assert_int_eq(memcmp(p.dst + 100, p.src + 100, 3 * CHUNK + 10), 0);
	/* 24 + 24 + ...: what was not done is asked for again. */
	ck_assert_uint_eq(atomic_load(&t.served), _i ? 9 : 4);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

START_TEST(msg_fence_behind_one_waits_for_its_reply)
{
	pair_open(&p, PLAIN);
	warm_up();
	send_one(0);
	send_len(1000, CHUNK, FI_FENCE);
	want_done(0);
	want_done(1000);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

/* --- what the target says ------------------------------------------------------------- */

START_TEST(msg_refused_by_the_agent_is_asked_about_and_done_again)
{
	pair_open(&p, PLAIN);
	warm_up();
	atomic_store(&t.status, _i ? (unsigned)MRF_MR_CLOSED : (unsigned)MRF_REPLY_RIGHT);
	send_one(0);
	want_done(0);
	ck_assert_uint_eq(atomic_load(&t.served), 2);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

START_TEST(msg_of_a_region_that_was_closed_meanwhile_fails_with_the_reason)
{
	pair_open(&p, PLAIN);
	warm_up();
	/* The initiator knows the key still; the agent says so. */
	must_close(&p.mr->fid);
	p.mr = NULL;
	atomic_store(&t.status, MRF_MR_CLOSED);
	send_one(0);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EKEYREJECTED, "was closed"), 4102);
	ck_assert_uint_eq(atomic_load(&t.served), 1);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

START_TEST(msg_refused_again_and_again_fails_in_the_end)
{
	pair_open(&p, PLAIN);
	atomic_store(&t.refused, true);
	send_one(0);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "would allow"), 4107);
	ck_assert_uint_eq(atomic_load(&t.served), 9);
	want_nothing_left();
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(msg_that_failed_at_the_target_fails_here_with_its_error)
{
	pair_open(&p, PLAIN);
	warm_up();
	atomic_store(&t.status, MRF_REPLY_FAILED);
	atomic_store(&t.err, _i ? 0xfffffff0u : FI_ENOSPC);
	send_one(0);
	pair_write(&p, 1000, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), _i ? FI_EIO : FI_ENOSPC,
				  "could not carry out the operation"),
			 4240);
	want_ok(&p.a, pair_ctx(&p, 1000));
	ck_assert_uint_eq(fake_connects(), 1);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

/* --- others in flight ----------------------------------------------------------------- */

START_TEST(msg_behind_a_refused_access_is_done_exactly_once)
{
	struct fid_mr *other;

	pair_open(&p, PLAIN);
	other = node_reg(&p.b, p.dst + PAGE, PAGE, REMOTE_RW, 5);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 5, &p), 0);
	want_ok(&p.a, &p);
	warm_up();
	fake_hold(true);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 5, &p), 0);
	send_one(0);
	pair_write(&p, 1000, 8);
	must_close(&other->fid);
	fake_hold(false);
	want_err(&p.a, &p, FI_EKEYREJECTED, "closed");
	want_done(0);
	want_ok(&p.a, pair_ctx(&p, 1000));
	ck_assert_uint_eq(atomic_load(&t.served), 1);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

static void close_local_ahead(bool flush, bool read, int err, unsigned served)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED };
	struct fid_mr *doomed;
	int i;

	pair_open(&p, &opt);
	warm_up();
	doomed = node_reg(&p.a, p.src, PAIR_LEN, FI_READ | FI_WRITE, 2);
	fake.flush_local = flush;
	fake_hold(true);
	if (read)
		ck_assert_int_eq(
			fi_read(p.a.ep, p.src, 400, fi_mr_desc(doomed), p.to, p.base, p.key, &p),
			0);
	else
		ck_assert_int_eq(
			fi_write(p.a.ep, p.src, 400, fi_mr_desc(doomed), p.to, p.base, p.key, &p),
			0);
	send_one(1000);
	must_close(&doomed->fid);
	fake_hold(false);
	for (i = 0; i < 2; i++) {
		struct fi_cq_data_entry e = { 0 };
		struct fi_cq_err_entry got = { 0 };
		ssize_t ret = fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS);

		if (ret == -FI_EAVAIL)
			ck_assert_int_eq(fi_cq_readerr(p.a.cq, &got, 0), 1);
		if (got.op_context == &p)
			ck_assert_int_eq(got.err, FI_EFAULT);
		else
			ck_assert_msg(got.err == err, "%d: %s", got.err, (char *)got.err_data);
	}
	ck_assert_uint_eq(atomic_load(&t.served), served);
	want_nothing_left();
	warm_up();
	pair_close(&p);
}

START_TEST(msg_behind_a_write_from_a_closed_buffer_is_done_exactly_once)
{
	close_local_ahead(_i, false, 0, 1);
}
END_TEST

/* The bytes of a read find that out after what was behind it has run. The peer is still there. */
START_TEST(msg_behind_a_read_to_a_closed_buffer_is_not_repeated)
{
	close_local_ahead(_i, true, FI_EIO, 0);
}
END_TEST

/* --- the peer goes -------------------------------------------------------------------- */

START_TEST(msg_without_a_reply_fails_when_the_peer_goes)
{
	int64_t begin;

	pair_open(&p, PLAIN);
	warm_up();
	atomic_store(&wire.keep_reply, true);
	send_one(0);
	pair_write(&p, 1000, 8);
	want_soon(atomic_load(&wire.replies) == 1);
	begin = mrf_now_ms();
	fake_kill(node_agent(&p.b)->cm);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_ECONNRESET, "may or may not"), 4112);
	/* That one was never sent. */
	want_err(&p.a, pair_ctx(&p, 1000), FI_ECONNREFUSED, NULL);
	ck_assert_int_lt(mrf_now_ms() - begin, 5000);
	ck_assert_uint_eq(atomic_load(&t.served), 1);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

/* Its kernel took the request, then its machine stopped: nobody tells, so we have to ask.
 */
START_TEST(msg_without_a_reply_says_what_the_probe_has_met)
{
	static const struct {
		enum mrf_wc_status status;
		int err, code;
	} met[] = { { MRF_WC_TIMEOUT, FI_ETIMEDOUT, 4111 },
		    { MRF_WC_UNSENT, FI_ENETDOWN, 4114 },
		    { MRF_WC_OTHER, FI_EIO, 4113 } };

	pair_open(&p, PLAIN);
	warm_up();
	atomic_store(&wire.keep_reply, true);
	send_one(0);
	want_soon(atomic_load(&wire.replies) == 1);
	want_soon(node_state(&p.a, p.to).work_requests == 0);
	fake_break_probe(met[_i].status);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), met[_i].err, "may or may not"),
			 met[_i].code);
	ck_assert_uint_eq(atomic_load(&t.served), 1);
	atomic_store(&wire.keep_reply, false);
	send_one(1000);
	want_done(1000);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

START_TEST(msg_question_without_an_answer_fails_when_the_peers_machine_goes)
{
	fixture_impatient();
	pair_open(&p, NULL);
	warm_up();
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 4711, &p), 0);
	fake_break_probe(MRF_WC_TIMEOUT);
	/* It is asked again, over a new connection, which nobody takes either. */
	ck_assert_int_eq(want_err(&p.a, &p, FI_ETIMEDOUT, NULL), 4129);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	warm_up();
	pair_close(&p);
}
END_TEST

START_TEST(msg_slow_agent_is_waited_for)
{
	unsigned before, looked;
	int64_t begin;

	pair_open(&p, PLAIN);
	warm_up();
	begin = mrf_now_ms();
	before = fake_probes();
	fake_stop(NULL, node_agent(&p.b)->cq, true);
	send_one(0);
	/* We look every second whether it is there, */
	want_soon(fake_probes() >= before + 2);
	looked = fake_probes() - before;
	ck_assert_int_ge(mrf_now_ms() - begin, (looked - 1) * 1000 - 10);
	fake_stop(NULL, node_agent(&p.b)->cq, false);
	want_done(0);
	/* and no more when it has answered. */
	before = fake_probes();
	usleep(1200000);
	ck_assert_uint_eq(fake_probes(), before);
	ck_assert_uint_eq(fake_connects(), 1);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

START_TEST(msg_without_a_reply_goes_with_its_endpoint)
{
	pair_open(&p, PLAIN);
	atomic_store(&wire.keep_reply, true);
	send_one(0);
	want_soon(atomic_load(&wire.replies) == 1);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	want_none(&p.a);
	pair_close(&p);
}
END_TEST

START_TEST(msg_of_a_removed_address_is_waited_for)
{
	pair_open(&p, PLAIN);
	atomic_store(&wire.keep_reply, true);
	send_one(0);
	want_soon(atomic_load(&wire.replies) == 1);
	ck_assert_int_eq(fi_av_remove(p.a.av, &p.to, 1, 0), 0);
	p.to = node_insert(&p.a, &p.b);
	/* So that it is noticed. */
	warm_up();
	usleep(20000);
	atomic_store(&wire.keep_reply, false);
	fake_deliver();
	want_done(0);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

/* --- what makes no sense -------------------------------------------------------------- */

static void other_turn(uint8_t *reply, size_t *len)
{
	(void)len;
	reply[8] ^= 1;
}

/* With what would be right for the next request. */
static void done_too_much(uint8_t *reply, size_t *len)
{
	reply[16] = reply[12] = CHUNK + 8;
	*len += 8;
	reply[2] = (uint8_t)*len;
	memcpy(reply + MRF_PROTO_REPLY_HEAD + CHUNK, p.src + CHUNK, 8);
}

static void done_more_than_it_brings(uint8_t *reply, size_t *len)
{
	(void)len;
	reply[16] = CHUNK - 1;
}

static void done_nothing(uint8_t *reply, size_t *len)
{
	(void)len;
	reply[16] = 0;
}

static void other_body(uint8_t *reply, size_t *len)
{
	(void)len;
	reply[MRF_PROTO_REPLY_HEAD] ^= 1;
}

static void cut_off(uint8_t *reply, size_t *len)
{
	(void)reply;
	(*len)--;
}

/* Then nothing would be left to be done again, and nobody to complete it. */
static void done_and_refused(uint8_t *reply, size_t *len)
{
	(void)len;
	reply[4] = MRF_REPLY_RIGHT;
}

static void (*const spoilers[])(uint8_t *, size_t *) = {
	other_turn, done_too_much, done_more_than_it_brings, done_nothing,
	other_body, cut_off,	   done_and_refused
};

START_TEST(msg_reply_that_makes_no_sense_ends_the_connection_and_is_not_believed)
{
	unsigned chunks = spoilers[_i] == done_too_much ? 2 : 1;

	pair_open(&p, PLAIN);
	warm_up();
	wire.spoil = spoilers[_i];
	send_len(0, chunks * CHUNK, 0);
	want_err(&p.a, pair_ctx(&p, 0), FI_ECONNRESET, "may or may not");
	/* The second one is on its way meanwhile. */
	ck_assert_uint_ge(atomic_load(&t.served), 1);
	ck_assert_uint_le(atomic_load(&t.served), chunks);
	wire.spoil = NULL;
	send_one(1000);
	want_done(1000);
	ck_assert_uint_eq(fake_connects(), 2);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

START_TEST(msg_that_the_target_does_not_understand_fails_and_harms_nobody)
{
	pair_open(&p, PLAIN);
	warm_up();
	if (_i)
		atomic_store(&t.malformed, true);
	else
		wire.type = 14;
	send_one(0);
	want_err(&p.a, pair_ctx(&p, 0), FI_ECONNRESET, "may or may not");
	ck_assert_uint_eq(atomic_load(&t.served), 0);
	atomic_store(&t.malformed, false);
	wire.type = 0;
	send_one(1000);
	want_done(1000);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

/* --- the device ----------------------------------------------------------------------- */

START_TEST(msg_that_the_device_does_not_take_fails_or_waits)
{
	pair_open(&p, PLAIN);
	warm_up();
	fake_fail(FAKE_POST, 1, FI_EIO);
	send_one(0);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EIO, "rejected the work"), 4108);
	fake_hold(true);
	pair_write(&p, 1000, 8);
	fake_fail(FAKE_POST, 1, FI_EAGAIN);
	send_one(2000);
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 1000));
	want_done(2000);
	ck_assert_uint_eq(atomic_load(&t.served), 1);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

/* A question that cannot be sent fails who waits in the queue, but not who has been sent.
 */
START_TEST(msg_that_was_sent_outlives_a_device_that_takes_no_question)
{
	pair_open(&p, PLAIN);
	warm_up();
	atomic_store(&wire.keep_reply, true);
	send_one(0);
	want_soon(atomic_load(&wire.replies) == 1);
	fake_fail_always(FAKE_POST, FI_EIO);
	pair_write(&p, 1000, 8);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 4711, &p), 0);
	/* Looks at the queue, as anything does that comes in. */
	mrf_lock_take(&node_ep(&p.a)->lock);
	mrf_peer_no_ask_locked(node_ep(&p.a)->peers[MRF_CONN_ACCESS].of[p.to], -FI_EIO);
	mrf_lock_release(&node_ep(&p.a)->lock);
	want_err(&p.a, pair_ctx(&p, 1000), FI_EIO, NULL);
	want_err(&p.a, &p, FI_EIO, NULL);
	fake_heal();
	atomic_store(&wire.keep_reply, false);
	fake_deliver();
	want_done(0);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

START_TEST(msg_reply_that_cannot_be_sent_ends_the_connection)
{
	pair_open(&p, PLAIN);
	warm_up();
	fake_fail(FAKE_POST, 2, FI_EIO);
	send_one(0);
	want_err(&p.a, pair_ctx(&p, 0), FI_ECONNRESET, "may or may not");
	ck_assert_uint_eq(atomic_load(&t.served), 1);
	send_one(1000);
	want_done(1000);
	want_nothing_left();
	pair_close(&p);
}
END_TEST

static TCase *tcase_new(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	return tc;
}

static TCase *tcase_what(void)
{
	TCase *tc = tcase_new("what");

	tcase_add_loop_test(tc, msg_is_done_when_its_reply_comes_not_when_it_was_delivered, 0, 2);
	tcase_add_test(tc, msg_nothing_is_posted_behind_one_that_has_no_reply);
	tcase_add_test(tc, msg_waits_for_nothing_that_is_ahead_of_it);
	tcase_add_loop_test(tc, msg_longer_than_a_request_goes_in_parts, 0, 2);
	tcase_add_test(tc, msg_fence_behind_one_waits_for_its_reply);
	tcase_add_loop_test(tc, msg_refused_by_the_agent_is_asked_about_and_done_again, 0, 2);
	tcase_add_test(tc, msg_of_a_region_that_was_closed_meanwhile_fails_with_the_reason);
	tcase_add_test(tc, msg_refused_again_and_again_fails_in_the_end);
	tcase_add_loop_test(tc, msg_that_failed_at_the_target_fails_here_with_its_error, 0, 2);
	return tc;
}

static TCase *tcase_faults(void)
{
	TCase *tc = tcase_new("faults");

	tcase_add_test(tc, msg_behind_a_refused_access_is_done_exactly_once);
	tcase_add_loop_test(tc, msg_behind_a_write_from_a_closed_buffer_is_done_exactly_once, 0, 2);
	tcase_add_loop_test(tc, msg_behind_a_read_to_a_closed_buffer_is_not_repeated, 0, 2);
	tcase_add_test(tc, msg_without_a_reply_fails_when_the_peer_goes);
	tcase_add_loop_test(tc, msg_without_a_reply_says_what_the_probe_has_met, 0, 3);
	tcase_add_test(tc, msg_question_without_an_answer_fails_when_the_peers_machine_goes);
	tcase_add_test(tc, msg_slow_agent_is_waited_for);
	tcase_add_test(tc, msg_without_a_reply_goes_with_its_endpoint);
	tcase_add_test(tc, msg_of_a_removed_address_is_waited_for);
	tcase_add_loop_test(tc,
			    msg_reply_that_makes_no_sense_ends_the_connection_and_is_not_believed,
			    0, sizeof(spoilers) / sizeof(spoilers[0]));
	tcase_add_loop_test(tc, msg_that_the_target_does_not_understand_fails_and_harms_nobody, 0,
			    2);
	tcase_add_test(tc, msg_that_the_device_does_not_take_fails_or_waits);
	tcase_add_test(tc, msg_that_was_sent_outlives_a_device_that_takes_no_question);
	tcase_add_test(tc, msg_reply_that_cannot_be_sent_ends_the_connection);
	return tc;
}

UNIT_MAIN("rpc", tcase_what, tcase_faults)
