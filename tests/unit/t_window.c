/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several requests on their way to a peer's agent at a time: they are done in order, each once,
 * whichever of them is refused, done in part or lost.
 */
#include "base/log.h"
#include "ep/link/passive.h"
#include "ep/ep_ops.h"
#include "ep/rx/work.h"
#include "ep/rx/atomic_serve.h"
#include "ep/tx/peer_queue.h"
#include "ep/tx/rpc.h"
#include "ep_fixture.h"

#define TYPE MRF_MSG_ATOMIC
#define CHUNK 8u /* bytes of one request: MRF_REQUESTS of them go into a message */

static struct pair p;
static unsigned chunk;	/* CHUNK, but where a test says otherwise */
static unsigned copies; /* of it in a request's body: 1, but where a test says otherwise */

/* What the target's agent did, in order, and how it is to behave. */
static struct {
	_Atomic unsigned served;
	uint64_t at[64]; /* of the request that was served so-manieth, in p.dst */
	unsigned odd;	 /* the so-manieth, from 1 on, ends otherwise: */
	uint32_t status;
	uint64_t part; /* so many bytes of it are done */
} t;

/* What goes over the wire. */
static struct {
	atomic_uint messages, requests; /* to the target */
	atomic_uint replies;		/* messages with them */
	atomic_uint kept_from;		/* those from the so-manieth on wait for fake_deliver */
	atomic_uint skew;		/* added to the number of requests */
} wire;

/* A request of type ATOMIC is served in the test's own way. */
int __wrap_mrf_atomic_serve(struct mrf_work *work, const struct mrf_request *request);

int __wrap_mrf_atomic_serve(struct mrf_work *work, const struct mrf_request *request)
{
	struct mrf_reply *reply = &work->reply;
	unsigned nth = atomic_load(&t.served);
	uint64_t n = request->len;

	ck_assert_uint_eq(request->body_len, copies * n);
	t.at[nth] = request->addr - p.base;
	if (nth + 1 == t.odd) {
		reply->status = t.status;
		reply->err = FI_ENOSPC;
		n = t.part;
	}
	memcpy(p.dst + t.at[nth], request->body, n);
	reply->done = n;
	atomic_store(&t.served, nth + 1);
	return 0;
}

static uint64_t fill_request(const struct mrf_op *op, uint64_t len, struct mrf_request *request,
			     uint8_t *body)
{
	len = mrf_min(len, chunk);
	for (unsigned i = 0; i < copies; i++)
		memcpy(body + i * len, op->local.data + op->pos, len);
	request->body_len = (uint32_t)(copies * len);
	return len;
}

static const struct mrf_rpc message = { .type = TYPE, .fill = fill_request };
static const struct mrf_op_type type = { .kind = MRF_OP_RPC,
					 .rpc = &message,
					 .post = mrf_rpc_post_locked };

static enum fake_fate on_send(uint8_t *msg, size_t *len, bool from_target)
{
	int type = mrf_msg_type(msg, *len);
	unsigned kept_from;

	if (type == TYPE && !from_target) {
		atomic_fetch_add(&wire.messages, 1);
		for (size_t at = 0; at < *len; at += mrf_msg_len(msg + at))
			atomic_fetch_add(&wire.requests, 1);
		msg[44] = (uint8_t)(msg[44] + wire.skew);
	}
	if (type != MRF_MSG_REPLY || !from_target)
		return FAKE_DELIVER;
	kept_from = atomic_load(&wire.kept_from);
	return atomic_fetch_add(&wire.replies, 1) + 1 >= kept_from && kept_from ? FAKE_KEEP
										: FAKE_DELIVER;
}

static void setup(void)
{
	fixture_setup();
	memset(&t, 0, sizeof(t));
	memset(&wire, 0, sizeof(wire));
	chunk = CHUNK;
	copies = 1;
	fake.on_send = on_send;
	pair_open(&p, PLAIN);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
}

static void teardown(void)
{
	want_none(&p.a);
	ck_assert_uint_eq(node_state(&p.a, p.to).ops, 0);
	want_idle(&p.a);
	pair_close(&p);
	fixture_teardown();
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

/* Operation i's place. */
static size_t place(unsigned i)
{
	return 1000 + 100ul * i;
}

static void send_many(unsigned from, unsigned n)
{
	for (; n--; from++)
		send_len(place(from), CHUNK, 0);
}

static void want_done(unsigned i)
{
	want_ok(&p.a, pair_ctx(&p, place(i)));
	ck_assert_int_eq(memcmp(p.dst + place(i), p.src + place(i), CHUNK), 0);
}

static void want_served(unsigned n, const unsigned *order)
{
	ck_assert_uint_eq(atomic_load(&t.served), n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(t.at[i], place(order[i]));
}

static void deliver(void)
{
	wire.kept_from = 0;
	fake_deliver();
}

/* Makes that the replies from the nth on are kept back. */
static void keep_from(unsigned nth)
{
	wire.kept_from = atomic_load(&wire.replies) + nth;
}

static struct mrf_window window_of(void)
{
	struct mrf_ep *ep = node_ep(&p.a);
	struct mrf_window window;

	mrf_lock_take(&ep->lock);
	window = ep->peers[MRF_CONN_ACCESS].of[p.to]->conn->window;
	mrf_lock_release(&ep->lock);
	return window;
}

/* --- in order --------------------------------------------------------------------------- */

START_TEST(window_gathers_what_is_asked_for_until_the_replies_are_there)
{
	unsigned order[MRF_REQUESTS + 4];

	for (unsigned i = 0; i < MRF_REQUESTS + 4; i++)
		order[i] = i;
	copies = 1 + (unsigned)_i; /* as a compare-and-swap has */
	keep_from(1);
	send_many(0, MRF_REQUESTS + 4);
	want_soon(atomic_load(&wire.replies) == 1);
	want_none(&p.a);
	ck_assert_uint_eq(atomic_load(&wire.requests), 1);
	deliver();
	for (unsigned i = 0; i < MRF_REQUESTS + 4; i++)
		want_done(i);
	want_served(MRF_REQUESTS + 4, order);
	ck_assert_uint_eq(atomic_load(&wire.requests), MRF_REQUESTS + 4);
	/* One, then as many as may be, then the rest. */
	ck_assert_uint_eq(atomic_load(&wire.messages), 3);
}
END_TEST

START_TEST(window_takes_the_requests_of_one_operation_at_once)
{
	send_len(place(0), 3 * CHUNK + 5, 0);
	want_ok(&p.a, pair_ctx(&p, place(0)));
	ck_assert_int_eq(memcmp(p.dst + place(0), p.src + place(0), 3 * CHUNK + 5), 0);
	ck_assert_uint_eq(atomic_load(&wire.requests), 4);
	ck_assert_uint_eq(atomic_load(&wire.messages), 1);
}
END_TEST

/* Of five operations: two fit into a message, just so, or each has to go on its own. */
static const struct {
	unsigned chunk, copies, messages;
} holds[] = {
	/* Their replies fit, */
	{ MRF_PROTO_MAX_REPLY / 2 - MRF_PROTO_REPLY_HEAD, 1, 3 },
	{ MRF_PROTO_MAX_REPLY / 2 - MRF_PROTO_REPLY_HEAD + 1, 1, 5 },
	/* or the requests do. */
	{ (MRF_PROTO_MAX_REQUEST / 2 - MRF_PROTO_REQUEST_HEAD) / 4, 4, 3 },
	{ (MRF_PROTO_MAX_REQUEST / 2 - MRF_PROTO_REQUEST_HEAD) / 4 + 1, 4, 5 },
};

START_TEST(window_takes_no_more_than_a_message_holds)
{
	chunk = holds[_i].chunk;
	copies = holds[_i].copies;
	keep_from(1);
	for (unsigned i = 0; i < 5; i++)
		send_len(i * chunk, chunk, 0);
	want_soon(atomic_load(&wire.replies) == 1);
	deliver();
	for (unsigned i = 0; i < 5; i++)
		want_ok(&p.a, pair_ctx(&p, i * chunk));
	ck_assert_int_eq(memcmp(p.dst, p.src, 5ul * chunk), 0);
	ck_assert_uint_eq(atomic_load(&wire.messages), holds[_i].messages);
}
END_TEST

/* What the peer's kernel might refuse would break the connection under them. */
START_TEST(window_lets_no_access_and_no_fence_in)
{
	size_t log = fake_nlog();

	keep_from(1);
	send_many(0, 2);
	if (_i)
		send_len(place(2), CHUNK, FI_FENCE);
	else
		pair_write(&p, place(2), CHUNK);
	send_many(3, 1);
	want_soon(atomic_load(&wire.replies) == 1);
	want_none(&p.a);
	ck_assert_uint_eq(atomic_load(&wire.requests), 1);
	ck_assert_uint_eq(fake_nlog(), log);
	deliver();
	for (unsigned i = 0; i < 4; i++)
		want_ok(&p.a, NULL);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(memcmp(p.dst + place(i), p.src + place(i), CHUNK), 0);
	ck_assert_uint_eq(t.at[atomic_load(&t.served) - 1], place(3));
}
END_TEST

/* What it writes later must not come behind what was asked for later. */
START_TEST(window_lets_nothing_in_behind_a_write_that_is_to_be_persistent)
{
	struct iovec iov = { p.src, 8 };
	struct fi_rma_iov rma = { p.base, 8, p.key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = p.to,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = &p };

	keep_from(1);
	send_many(0, _i);
	ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, FI_COMMIT_COMPLETE), 0);
	send_many(1, 2);
	want_soon(atomic_load(&wire.replies) == 1);
	want_none(&p.a);
	ck_assert_uint_eq(atomic_load(&wire.requests), _i);
	keep_from(1);
	fake_deliver();
	if (_i) {
		want_done(0);
		want_soon(atomic_load(&wire.replies) == 2);
		ck_assert_uint_eq(atomic_load(&wire.requests), _i);
	}
	deliver();
	/* There is no such memory, and nothing is written. */
	ck_assert_int_eq(want_err(&p.a, &p, FI_EOPNOTSUPP, NULL), 4270);
	want_done(1);
	want_done(2);
}
END_TEST

static void set_numbers(uint32_t number)
{
	struct mrf_ep *a = node_ep(&p.a), *b = node_ep(&p.b);

	mrf_lock_take(&a->lock);
	a->peers[MRF_CONN_ACCESS].of[p.to]->conn->window.number = number;
	mrf_lock_release(&a->lock);
	/* Its agent has nothing to do and will not look before it gets a message. */
	mrf_list_entry(mrf_list_first(&b->passive), struct mrf_passive, node)->number = number;
}

START_TEST(window_goes_on_where_the_number_of_requests_wraps)
{
	set_numbers(UINT32_MAX - 1);
	t.odd = _i ? 2 : 0;
	t.status = MRF_REPLY_RIGHT;
	send_many(0, 6);
	for (unsigned i = 0; i < 6; i++)
		want_done(i);
	if (!_i)
		ck_assert_uint_eq(atomic_load(&t.served), 6);
	else
		want_served(7, (const unsigned[]){ 0, 1, 1, 2, 3, 4, 5 });
	ck_assert_uint_eq(window_of().number, 4);
}
END_TEST

/* --- one is not done -------------------------------------------------------------------- */

START_TEST(window_of_a_refused_request_is_done_behind_it)
{
	t.odd = 2;
	t.status = _i ? (uint32_t)MRF_MR_CLOSED : (uint32_t)MRF_REPLY_RIGHT;
	keep_from(1);
	send_many(0, 5);
	want_soon(atomic_load(&wire.replies) == 1);
	deliver();
	for (unsigned i = 0; i < 5; i++)
		want_done(i);
	want_served(6, (const unsigned[]){ 0, 1, 1, 2, 3, 4 });
	/* Those behind it went out twice, and were done once. */
	ck_assert_uint_eq(atomic_load(&wire.requests), 9);
}
END_TEST

START_TEST(window_of_a_request_that_was_done_in_part_is_done_behind_it)
{
	t.odd = 1;
	t.part = 3;
	send_many(0, 3);
	for (unsigned i = 0; i < 3; i++)
		want_done(i);
	ck_assert_uint_eq(atomic_load(&t.served), 4);
	ck_assert_uint_eq(t.at[1], place(0) + 3);
	ck_assert_uint_eq(t.at[2], place(1));
	ck_assert_uint_eq(t.at[3], place(2));
}
END_TEST

/* With nothing of what is left of its operation, and all of the others. */
START_TEST(window_of_a_failed_request_is_done)
{
	t.odd = 2;
	t.status = MRF_REPLY_FAILED;
	send_many(0, 1);
	send_len(place(1), 3 * CHUNK, 0);
	send_many(4, 3);
	want_done(0);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, place(1)), FI_ENOSPC, "could not"), 4240);
	for (unsigned i = 4; i < 7; i++)
		want_done(i);
	want_served(5, (const unsigned[]){ 0, 1, 4, 5, 6 });
}
END_TEST

/* Its region was closed: it fails, and those behind it do not. */
START_TEST(window_of_a_request_that_is_not_sent_again_is_done)
{
	struct fid_mr *other = node_reg(&p.b, p.dst, PAIR_LEN, REMOTE_RW, 5);
	uint64_t key = p.key;

	t.odd = 1;
	t.status = MRF_MR_CLOSED;
	p.key = 5;
	keep_from(1);
	send_many(0, 1);
	p.key = key;
	send_many(1, 3);
	want_soon(atomic_load(&wire.replies) > 0);
	must_close(&other->fid);
	deliver();
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, place(0)), FI_EKEYREJECTED, "was closed"),
			 4102);
	for (unsigned i = 1; i < 4; i++)
		want_done(i);
	want_served(4, (const unsigned[]){ 0, 1, 2, 3 });
}
END_TEST

/* Other peers' work requests take all the room there is, until they are done. */
START_TEST(window_waits_for_room_in_the_endpoints_queue)
{
	struct mrf_ep *ep = node_ep(&p.a);

	keep_from(1);
	send_many(0, 2);
	want_soon(atomic_load(&wire.replies) == 1);
	mrf_lock_take(&ep->lock);
	ep->scq_used += MRF_EP_SCQ;
	mrf_lock_release(&ep->lock);
	deliver();
	want_done(0);
	want_none(&p.a);
	mrf_lock_take(&ep->lock);
	ep->scq_used -= MRF_EP_SCQ;
	mrf_peer_progress_locked(ep);
	mrf_lock_release(&ep->lock);
	want_done(1);
}
END_TEST

/* All that has gathered fails, and what comes later does not. */
START_TEST(window_that_the_device_does_not_take_fails)
{
	/* So that the next posts are the reply and what has gathered. */
	fake_stop(NULL, node_agent(&p.b)->cq, true);
	send_many(0, 1);
	send_len(place(1), 2 * CHUNK, 0);
	send_many(3, 1);
	fake_fail(FAKE_POST, 2, FI_EIO);
	fake_stop(NULL, node_agent(&p.b)->cq, false);
	want_done(0);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(want_err(&p.a, NULL, FI_EIO, "rejected the work"), 4108);
	send_many(4, 2);
	want_done(4);
	want_done(5);
	want_served(3, (const unsigned[]){ 0, 4, 5 });
}
END_TEST

/* --- the connection is lost ------------------------------------------------------------- */

/* Those that were sent may have been done, the others have not. */
START_TEST(window_that_is_lost_fails_and_is_done_once_at_most)
{
	fake_stop(NULL, node_agent(&p.b)->cq, true);
	send_many(0, 3);
	keep_from(2);
	fake_stop(NULL, node_agent(&p.b)->cq, false);
	want_done(0);
	want_soon(atomic_load(&wire.replies) == 2);
	send_many(3, 1);
	fake_kill(node_agent(&p.b)->cm);
	for (unsigned i = 1; i < 3; i++)
		ck_assert_int_eq(
			want_err(&p.a, pair_ctx(&p, place(i)), FI_ECONNRESET, "may or may not"),
			4112);
	want_err(&p.a, pair_ctx(&p, place(3)), FI_ECONNREFUSED, NULL);
	ck_assert_uint_eq(atomic_load(&t.served), 3);
}
END_TEST

START_TEST(window_behind_a_refused_access_is_done_exactly_once)
{
	struct fid_mr *other = node_reg(&p.b, p.dst + PAGE, PAGE, REMOTE_RW, 5);

	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 5, &p), 0);
	want_ok(&p.a, &p);
	fake_hold(true);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 5, &p), 0);
	send_many(0, 3);
	must_close(&other->fid);
	fake_hold(false);
	want_err(&p.a, &p, FI_EKEYREJECTED, "closed");
	for (unsigned i = 0; i < 3; i++)
		want_done(i);
	want_served(3, (const unsigned[]){ 0, 1, 2 });
	ck_assert_uint_eq(window_of().number, 3);
}
END_TEST

/* --- who keeps to no order ---------------------------------------------------------------- */

/*
 * A number that is over, one that is further off than there can be requests, and one for which
 * another was left out.
 */
START_TEST(window_of_an_initiator_that_keeps_to_no_order_is_not_served)
{
	send_many(0, 2);
	want_done(0);
	want_done(1);
	wire.skew = ((const uint32_t[]){ UINT32_MAX, MRF_REQUESTS, 1 })[_i];
	send_many(2, 1);
	want_err(&p.a, pair_ctx(&p, place(2)), FI_ECONNRESET, "may or may not");
	ck_assert_uint_eq(atomic_load(&t.served), 2);
	wire.skew = 0;
	send_many(3, 1);
	want_done(3);
	ck_assert_uint_eq(fake_connects(), 2);
}
END_TEST

static TCase *tcase_new(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	return tc;
}

static TCase *tcase_order(void)
{
	TCase *tc = tcase_new("order");

	tcase_add_loop_test(tc, window_gathers_what_is_asked_for_until_the_replies_are_there, 0, 2);
	tcase_add_test(tc, window_takes_the_requests_of_one_operation_at_once);
	tcase_add_loop_test(tc, window_takes_no_more_than_a_message_holds, 0,
			    (int)MRF_ARRAY_SIZE(holds));
	tcase_add_loop_test(tc, window_lets_no_access_and_no_fence_in, 0, 2);
	tcase_add_loop_test(tc, window_lets_nothing_in_behind_a_write_that_is_to_be_persistent, 0,
			    2);
	tcase_add_loop_test(tc, window_goes_on_where_the_number_of_requests_wraps, 0, 2);
	tcase_add_loop_test(tc, window_of_a_refused_request_is_done_behind_it, 0, 2);
	tcase_add_test(tc, window_of_a_request_that_was_done_in_part_is_done_behind_it);
	tcase_add_test(tc, window_of_a_failed_request_is_done);
	tcase_add_test(tc, window_of_a_request_that_is_not_sent_again_is_done);
	tcase_add_test(tc, window_waits_for_room_in_the_endpoints_queue);
	tcase_add_test(tc, window_that_the_device_does_not_take_fails);
	return tc;
}

static TCase *tcase_faults(void)
{
	TCase *tc = tcase_new("faults");

	tcase_add_test(tc, window_that_is_lost_fails_and_is_done_once_at_most);
	tcase_add_test(tc, window_behind_a_refused_access_is_done_exactly_once);
	tcase_add_loop_test(tc, window_of_an_initiator_that_keeps_to_no_order_is_not_served, 0, 3);
	return tc;
}

UNIT_MAIN("window", tcase_order, tcase_faults)
