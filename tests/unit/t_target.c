/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes over the wire from something that is not this library, or not well:
 * hand-made initiators against an endpoint of ours, hand-made targets that it connects
 * to.
 */
#include "contract/limits.h"
#include "ep/rx/job_serve.h"
#include "ep/tx/rpc.h"
#include "raw.h"
#include <limits.h>

#define OWN_TYPE MRF_MSG_FLUSH /* of requests that own_serve serves, if it is not NULL */

static struct pair p;
static struct unit_capture cap;

static struct raw raw;

typedef int serve_call(struct mrf_work *work, const struct mrf_request *request);

serve_call __real_mrf_job_serve, __wrap_mrf_job_serve;

static serve_call *_Atomic own_serve;

int __wrap_mrf_job_serve(struct mrf_work *work, const struct mrf_request *request)
{
	serve_call *serve = own_serve;

	return (serve ? serve : __real_mrf_job_serve)(work, request);
}

static size_t ask_for(uint64_t key, uint8_t *msg)
{
	struct mrf_ask ask = { .cookie = 42, .key = key, .len = 8 };

	return mrf_ask_encode(&ask, msg);
}

static void target_works(void)
{
	memset(p.dst, 0, 100);
	pair_write(&p, 0, 100);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert(filled(p.dst, 100, 1));
}

static void setup(void)
{
	fixture_setup();
	fixture_log();
	pair_open(&p, NULL);
	raw_open(&raw);
}

static void teardown(void)
{
	raw_close(&raw);
	pair_close(&p);
	fixture_teardown();
}

/* --- hand-made initiators
 * ----------------------------------------------------------------- */

START_TEST(target_greets_and_answers_by_the_book)
{
	struct mrf_cm_event event = raw_greet(&raw, node_port(&p.b));
	struct mrf_welcome welcome;
	struct mrf_answer answer;
	uint8_t msg[MRF_PROTO_ASK_LEN];
	struct mrf_wc wc;

	must_close(&p.mr->fid);
	ck_assert_int_eq(fi_mr_reg(p.b.domain, p.dst, PAIR_LEN, REMOTE_RW, 0, PAIR_KEY,
				   FI_RMA_EVENT, &p.mr, NULL),
			 0);
	ck_assert_int_eq(event.type, MRF_CM_RESPONSE);
	ck_assert_int_eq(mrf_welcome_decode(event.data, event.len, &welcome), 0);
	ck_assert_uint_eq(welcome.instance, node_ep(&p.b)->instance);
	ck_assert_uint_eq(welcome.mr_mode, 0);
	ck_assert_uint_eq(welcome.asks, 8);
	ck_assert_int_eq(raw_send(&raw, msg, ask_for(PAIR_KEY, msg)), 0);
	wc = raw_recv(&raw);
	ck_assert_int_eq(wc.status, MRF_WC_OK);
	ck_assert_int_eq(mrf_answer_decode(raw.slots[wc.wr_id], wc.byte_len, &answer), 0);
	ck_assert(answer.cookie == 42 && answer.key == PAIR_KEY && answer.nseg == 1);
	ck_assert_uint_eq(answer.status, MRF_MR_OK);
	/* The region has a number, but this endpoint does not count. */
	ck_assert_uint_eq(answer.event, 0);
	ck_assert_uint_eq(welcome.flags, 0);
	ck_assert_uint_eq(answer.access, REMOTE_RW | FI_ATOMIC);
	ck_assert_uint_eq(answer.len, PAIR_LEN);
	ck_assert_int_eq(raw_send(&raw, msg, ask_for(4711, msg)), 0);
	wc = raw_recv(&raw);
	ck_assert_int_eq(mrf_answer_decode(raw.slots[wc.wr_id], wc.byte_len, &answer), 0);
	ck_assert_uint_eq(answer.status, MRF_MR_UNKNOWN);
	ck_assert_uint_eq(answer.nseg, 0);
}
END_TEST

START_TEST(target_rejects_a_greeting_that_is_not_ours)
{
	struct mrf_hello hello = { .ticket = 1 };
	uint8_t data[56] = { 0 };
	struct mrf_cm_event event;
	const char *text;
	uint32_t reason = 0;

	mrf_hello_encode(&hello, data);
	switch (_i) {
	case 0:
		memset(data, 0, sizeof(data));
		break;
	case 1:
		data[5]++; /* version */
		break;
	case 2:
		data[4] = MRF_MSG_WELCOME;
		break;
	default:
		data[6] = 200; /* longer than can be */
	}
	unit_capture(&cap);
	event = raw_connect(&raw, node_port(&p.b), data, _i ? sizeof(data) : 0);
	text = unit_captured(&cap);
	ck_assert_int_eq(event.type, MRF_CM_REJECTED);
	ck_assert_int_eq(mrf_refuse_decode(event.data, event.len, &reason), 0);
	ck_assert_uint_eq(reason, MRF_REFUSE_VERSION);
	ck_assert_msg(strstr(text, "4022") && unit_lines(text) == 1, "%s", text);
	target_works();
}
END_TEST

static size_t bad_message(int which, uint8_t *msg)
{
	struct mrf_request request = { .type = MRF_MSG_FLUSH, .key = PAIR_KEY, .len = 8 };
	const struct mrf_data data = { .len = 1 };
	size_t len = ask_for(PAIR_KEY, msg);

	switch (which) {
	case 0:
		return 0;
	case 1:
		return 3;
	case 2:
		return len - 1;
	case 3:
		msg[1] = 99; /* version */
		return len;
	case 4:
		msg[0] = MRF_MSG_ANSWER;
		return len;
	case 5:
		msg[0] = 0xff;
		return len;
	case 6:
		msg[2] = 0xff; /* says it is longer than it is */
		msg[3] = 0xff;
		return len;
	case 7:
		msg[2] = 4; /* says it is shorter than a question */
		return len;
	case 8:
		memset(msg, 0xaa, SLOT);
		return SLOT; /* all that the target's slots take */
	case 9:
		return mrf_data_encode(&data, msg) - 1;
	case 10:
		return mrf_reply_encode(&(struct mrf_reply){ .number = 1 }, msg);
	case 11:
		request.len = 0;
		return mrf_request_encode(&request, msg);
	case 12:
		request.what = MRF_FLUSH_DO + 1;
		return mrf_request_encode(&request, msg);
	case 13:
		request.addr = UINT64_MAX;
		return mrf_request_encode(&request, msg);
	case 14:
		len = mrf_request_encode(&request, msg);
		msg[40] = 1; /* a body, which there is not */
		return len;
	case 15:
		request.type = MRF_MSG_ATOMIC; /* an operation that has operands */
		return mrf_request_encode(&request, msg);
	case 16:
		request.type = MRF_MSG_SYNC; /* which has the length 1 */
		return mrf_request_encode(&request, msg);
	case 17:
		return mrf_data_encode(&data, msg); /* to one that takes immediate data */
	default:
		return SLOT + 1; /* more than they take: its kernel says no */
	}
}
#define BAD_MESSAGES 19

START_TEST(target_hangs_up_on_a_malformed_message_and_serves_others)
{
	uint8_t *msg = raw.out;
	const char *text;
	size_t len = bad_message(_i, msg);

	target_works();
	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	unit_capture(&cap);
	ck_assert_int_eq(raw_send(&raw, msg, len), 0);
	/* A good one behind it is not answered. */
	ask_for(PAIR_KEY, msg);
	raw_send(&raw, msg, MRF_PROTO_ASK_LEN);
	if (_i < BAD_MESSAGES - 1)
		ck_assert_int_eq(raw_event(&raw).type, MRF_CM_DISCONNECTED);
	text = unit_captured(&cap);
	if (_i < BAD_MESSAGES - 1)
		ck_assert_msg(strstr(text, "4024") && unit_lines(text) == 1, "%s", text);
	target_works();
	raw_hang_up(&raw);
	/* Both ends of the raw connection are gone, those of a and b are there. */
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
}
END_TEST

/* As many as it allows are answered; one more, and it hangs up. */
START_TEST(target_hangs_up_on_more_questions_than_it_allows)
{
	struct mrf_agent *agent = node_agent(&p.b);
	uint8_t msg[MRF_PROTO_ASK_LEN];
	const char *text;
	int i;

	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	fake_stop(NULL, agent->cq, true);
	for (i = 0; i < MRF_ASKS; i++)
		ck_assert_int_eq(raw_send(&raw, msg, ask_for((uint64_t)i, msg)), 0);
	fake_stop(NULL, agent->cq, false);
	for (i = 0; i < MRF_ASKS; i++)
		ck_assert_int_eq(raw_recv(&raw).status, MRF_WC_OK);
	unit_capture(&cap);
	fake_stop(NULL, agent->cq, true);
	for (i = 0; i < MRF_ASKS + 1; i++)
		ck_assert_int_eq(raw_send(&raw, msg, ask_for((uint64_t)i, msg)), 0);
	fake_stop(NULL, agent->cq, false);
	ck_assert_int_eq(raw_event(&raw).type, MRF_CM_DISCONNECTED);
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, "4025") && unit_lines(text) == 1, "%s", text);
	target_works();
}
END_TEST

static size_t request_of(uint8_t *msg)
{
	struct mrf_request request = { .type = OWN_TYPE, .len = 1 };

	return mrf_request_encode(&request, msg);
}

static size_t requests_of(unsigned n, uint64_t len, uint8_t *msg)
{
	size_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct mrf_request request = { .type = OWN_TYPE, .number = i, .len = len };

		at += mrf_request_encode(&request, msg + at);
	}
	return at;
}

static int serve_nothing(struct mrf_work *work, const struct mrf_request *request)
{
	(void)request;
	work->reply.status = MRF_REPLY_FAILED;
	return 0;
}

/* The replies to two requests about so many bytes fit into a message, to more do not. */
#define FITTING (MRF_PROTO_MAX_REPLY / 2 - MRF_PROTO_REPLY_HEAD)

/* Several requests in one message, which the target allows: as many as their replies. */
START_TEST(target_hangs_up_on_a_message_of_requests_that_is_none)
{
	uint8_t *msg = raw.out;
	struct mrf_wc wc;
	size_t len;

	own_serve = serve_nothing;
	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	/* Nothing is done of the first one, so that it is the turn of the same ones again. */
	len = requests_of(2, FITTING, msg);
	ck_assert_int_eq(raw_send(&raw, msg, len), 0);
	ck_assert_uint_eq(raw_recv(&raw).byte_len, 2 * MRF_PROTO_REPLY_HEAD);
	len = requests_of(MRF_REQUESTS, 8, msg);
	ck_assert_int_eq(raw_send(&raw, msg, len), 0);
	wc = raw_recv(&raw);
	ck_assert_int_eq(wc.status, MRF_WC_OK);
	ck_assert_uint_eq(wc.byte_len, MRF_REQUESTS * MRF_PROTO_REPLY_HEAD);
	switch (_i) {
	case 0: /* more than may be on the way */
		len = requests_of(MRF_REQUESTS + 1, 1, msg);
		break;
	case 1: /* a tail that is none */
		len -= 1;
		break;
	case 2:
		memset(msg + len - MRF_PROTO_REQUEST_HEAD, 0, MRF_PROTO_REQUEST_HEAD);
		break;
	case 3: /* a question among them */
		len = requests_of(2, 8, msg);
		len += ask_for(PAIR_KEY, msg + len);
		break;
	case 4: /* replies that fit into no message */
		len = requests_of(2, MRF_PROTO_REPLY_BODY, msg);
		break;
	case 5:
		len = requests_of(2, FITTING + 1, msg);
		break;
	default:
		len = requests_of(2, UINT64_MAX - 8, msg);
	}
	ck_assert_int_eq(raw_send(&raw, msg, len), 0);
	ck_assert_int_eq(raw_event(&raw).type, MRF_CM_DISCONNECTED);
	own_serve = NULL;
	target_works();
}
END_TEST

START_TEST(target_hangs_up_on_more_requests_than_it_allows)
{
	struct mrf_agent *agent = node_agent(&p.b);
	uint8_t msg[SLOT];
	const char *text;
	int i;

	own_serve = serve_nothing;
	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	for (i = 0; i < MRF_REQUESTS; i++)
		ck_assert_int_eq(raw_send(&raw, msg, request_of(msg)), 0);
	for (i = 0; i < MRF_REQUESTS; i++)
		ck_assert_int_eq(raw_recv(&raw).status, MRF_WC_OK);
	unit_capture(&cap);
	fake_stop(NULL, agent->cq, true);
	for (i = 0; i < MRF_REQUESTS + 1; i++)
		ck_assert_int_eq(raw_send(&raw, msg, request_of(msg)), 0);
	fake_stop(NULL, agent->cq, false);
	ck_assert_int_eq(raw_event(&raw).type, MRF_CM_DISCONNECTED);
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, "4025") && unit_lines(text) == 1, "%s", text);
	own_serve = NULL;
	target_works();
}
END_TEST

/* In which order answers left: by the cookies of their questions. */
static struct {
	uint64_t cookies[2 * MRF_ASKS];
	atomic_uint n;
} answers;

static enum fake_fate note_answer(uint8_t *msg, size_t *len, bool from_target)
{
	unsigned n = atomic_load(&answers.n);
	struct mrf_answer answer;

	if (from_target && !mrf_answer_decode(msg, *len, &answer)) {
		answers.cookies[n % (2 * MRF_ASKS)] = answer.cookie;
		atomic_store(&answers.n, n + 1); /* for whoever reads it */
	}
	return FAKE_DELIVER;
}

static void send_ask(struct raw *from, uint64_t cookie)
{
	struct mrf_ask ask = { .cookie = cookie, .key = PAIR_KEY, .len = 8 };
	uint8_t msg[MRF_PROTO_ASK_LEN];

	ck_assert_int_eq(raw_send(from, msg, mrf_ask_encode(&ask, msg)), 0);
}

/* Two have come with all that they may ask before the third comes with one question. */
START_TEST(target_serves_connections_in_turn)
{
	struct raw *others = calloc(2, sizeof(*others));
	uint64_t i;

	raw_open(&others[0]);
	raw_open(&others[1]);
	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	ck_assert_int_eq(raw_greet(&others[0], node_port(&p.b)).type, MRF_CM_RESPONSE);
	ck_assert_int_eq(raw_greet(&others[1], node_port(&p.b)).type, MRF_CM_RESPONSE);
	answers.n = 0;
	fake.on_send = note_answer;
	fake_stop(NULL, node_agent(&p.b)->cq, true);
	for (i = 0; i < MRF_ASKS - 1; i++)
		send_ask(&raw, 100 + i);
	for (i = 0; i < MRF_ASKS - 1; i++)
		send_ask(&others[0], 200 + i);
	send_ask(&others[1], 300);
	fake_stop(NULL, node_agent(&p.b)->cq, false);
	want_soon(answers.n == 2 * MRF_ASKS - 1);
	fake.on_send = NULL;
	ck_assert_uint_eq(answers.cookies[0], 100);
	ck_assert_uint_eq(answers.cookies[1], 200);
	ck_assert_uint_eq(answers.cookies[2], 300);
	for (i = 1; i < MRF_ASKS - 1; i++) {
		ck_assert_uint_eq(answers.cookies[1 + 2 * i], 100 + i);
		ck_assert_uint_eq(answers.cookies[2 + 2 * i], 200 + i);
	}
	raw_close(&others[0]);
	raw_close(&others[1]);
	free(others);
}
END_TEST

/* As long as it lasts a request is there whenever the agent looks for one. */
static struct {
	struct raw *from;
	unsigned left; /* requests; agent thread */
	atomic_uint served;
	atomic_bool stop, stopped; /* the raw connection is the test's again */
} stream;

static int serve_and_send_another(struct mrf_work *work, const struct mrf_request *request)
{
	uint8_t msg[SLOT];
	struct mrf_wc wc;

	if (stream.stop) {
		stream.stopped = true;
		return serve_nothing(work, request);
	}
	while (mrf_vcq_poll(stream.from->cq, &wc, 1) == 1) {
		if (wc.wr_id < SLOTS && wc.status == MRF_WC_OK)
			raw_post_recv(stream.from, (unsigned)wc.wr_id);
	}
	stream.served++;
	if (stream.left && stream.left--)
		raw_send(stream.from, msg, request_of(msg));
	return serve_nothing(work, request);
}

START_TEST(commands_of_the_application_go_before_requests_of_peers)
{
	enum { MANY = 2000000 };
	struct fid_ep *ep = NULL;
	uint8_t msg[SLOT];
	unsigned before;

	own_serve = serve_and_send_another;
	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	stream.from = &raw;
	stream.left = MANY;
	stream.served = 0;
	stream.stop = stream.stopped = false;
	ck_assert_int_eq(raw_send(&raw, msg, request_of(msg)), 0);
	want_soon(stream.served > 100);
	before = stream.served;
	ck_assert_int_eq(node_try_ep(&p.b, PLAIN, &ep), 0);
	must_close(&ep->fid);
	/* Opening, enabling, closing: each waits for the request that is being served. */
	ck_assert_uint_lt(stream.served - before, MANY / 2);
	/* A new peer gets in, and its question is answered. */
	target_works();
	ck_assert_uint_lt(stream.served, MANY);
	stream.stop = true;
	want_soon(stream.stopped);
	raw_hang_up(&raw);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
	own_serve = NULL;
}
END_TEST

START_TEST(target_delivers_immediate_data_of_any_initiator_once)
{
	struct mrf_vwr wr = { .wr_id = SLOTS, .op = MRF_VWR_WRITE_IMM, .imm = 0x11223344 };
	struct fi_cq_data_entry e;

	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	ck_assert_int_eq(mrf_vconn_post(raw.conn, &wr), 0);
	e = want_ok(&p.b, NULL);
	ck_assert_uint_eq(e.data, 0x11223344);
	ck_assert_uint_eq(e.len, 0);
	want_none(&p.b);
}
END_TEST

static void raw_imm(uint32_t imm, uint8_t *from, uint32_t len, uint64_t at, uint32_t rkey)
{
	struct mrf_sge sge = { (uintptr_t)from, len, 0 };
	struct mrf_vwr wr = { .wr_id = SLOTS,
			      .op = MRF_VWR_WRITE_IMM,
			      .is_inline = true,
			      .nsge = len > 0,
			      .sge = &sge,
			      .remote_addr = at,
			      .rkey = rkey,
			      .imm = imm };

	ck_assert_int_eq(mrf_vconn_post(raw.conn, &wr), 0);
}

static struct mrf_answer raw_ask(uint64_t key)
{
	uint8_t msg[MRF_PROTO_ASK_LEN];
	struct mrf_answer answer = { .status = 99 };
	struct mrf_wc wc;

	ck_assert_int_eq(raw_send(&raw, msg, ask_for(key, msg)), 0);
	wc = raw_recv(&raw);
	ck_assert_int_eq(mrf_answer_decode(raw.slots[wc.wr_id], wc.byte_len, &answer), 0);
	return answer;
}

/* By the book, and what an initiator makes up. */
START_TEST(target_counts_by_number_and_no_write_of_nothing)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .caps = MRF_CAPS | FI_RMA_EVENT };
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr = NULL;
	struct mrf_cm_event event;
	struct mrf_welcome welcome;
	struct mrf_answer answer;
	uint8_t byte = 1;

	pair_close(&p);
	pair_open(&p, &opt);
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_mr_bind(p.mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	event = raw_greet(&raw, node_port(&p.b));
	ck_assert_int_eq(mrf_welcome_decode(event.data, event.len, &welcome), 0);
	ck_assert_uint_eq(welcome.flags, MRF_WELCOME_EVENTS);
	answer = raw_ask(PAIR_KEY);
	ck_assert_uint_ne(answer.event, 0);
	raw_imm(answer.event, NULL, 0, 0, 0);
	raw_imm(answer.event + 1, &byte, 1, answer.seg[0].iova_off, answer.seg[0].rkey);
	raw_imm(0, &byte, 1, answer.seg[0].iova_off, answer.seg[0].rkey);
	raw_ask(PAIR_KEY);
	ck_assert_uint_eq(fi_cntr_read(cntr), 0);
	raw_imm(answer.event, &byte, 1, answer.seg[0].iova_off, answer.seg[0].rkey);
	raw_ask(PAIR_KEY);
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	want_none(&p.b);
	must_close(&cntr->fid);
}
END_TEST

START_TEST(target_forgets_an_initiator_that_dies)
{
	struct raw *other = calloc(1, sizeof(*other));
	uint8_t msg[MRF_PROTO_ASK_LEN];

	raw_open(other);
	target_works();
	ck_assert_int_eq(raw_greet(other, node_port(&p.b)).type, MRF_CM_RESPONSE);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	ck_assert_int_eq(raw_send(other, msg, ask_for(1, msg)), 0);
	fake_kill(other->cm);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	raw_close(other);
	free(other);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
	target_works();
}
END_TEST

START_TEST(target_forgets_an_initiator_that_dies_before_it_is_accepted)
{
	struct raw *other = calloc(1, sizeof(*other));
	struct sockaddr_in src = at_port(0), dst = at_port(node_port(&p.b));
	struct mrf_hello hello = { .ticket = 1 };
	uint8_t data[MRF_PROTO_HELLO_LEN];

	raw_open(other);
	target_works();
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	ck_assert_int_eq(mrf_vconn_open(other->cm, NULL, &other->conn), 0);
	mrf_vconn_resolve(other->conn, (struct sockaddr *)&src, (struct sockaddr *)&dst, 1000, 14);
	raw_qp(other);
	ck_assert_int_eq(mrf_vconn_connect(other->conn, data, mrf_hello_encode(&hello, data), 6),
			 0);
	raw_close(other);
	free(other);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
	target_works();
}
END_TEST

/* More connections than one completion queue has room for, and more than INBOUND. */
#define CROWD 350
#define INBOUND 300

static struct mrf_vconn *crowd[CROWD];

static void setup_few(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", INBOUND);
	ck_assert_int_eq(setenv("FI_MRFAB_INBOUND", text, 1), 0);
	setup();
}

static void teardown_few(void)
{
	unsetenv("FI_MRFAB_INBOUND");
	teardown();
}

/* How many of at most CROWD are let in; raw.conn is the last one tried. */
static int let_in(struct mrf_cm_event *event)
{
	int n = 0;

	do {
		*event = raw_greet(&raw, node_port(&p.b));
		crowd[n++] = raw.conn;
	} while (event->type == MRF_CM_RESPONSE && n < CROWD);
	return n;
}

static void leave(int n)
{
	while (n--)
		mrf_vconn_close(crowd[n]);
	raw.conn = NULL;
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
}

static void want_answer(void)
{
	struct mrf_answer answer;
	uint8_t msg[MRF_PROTO_ASK_LEN];
	struct mrf_wc wc;

	ck_assert_int_eq(raw_send(&raw, msg, ask_for(PAIR_KEY, msg)), 0);
	/* Connections that are gone have left their RECVs in the queue. */
	do {
		wc = raw_recv(&raw);
	} while (wc.status == MRF_WC_FLUSHED);
	ck_assert_int_eq(wc.status, MRF_WC_OK);
	ck_assert_int_eq(mrf_answer_decode(raw.slots[wc.wr_id], wc.byte_len, &answer), 0);
	ck_assert_uint_eq(answer.status, MRF_MR_OK);
}

/*
 * The limit is named at both ends, and those who are connected go on. One who leaves makes
 * room for another.
 */
START_TEST(target_rejects_those_that_it_has_no_room_for)
{
	struct mrf_cm_event event;
	const char *text;
	uint32_t reason = 0;
	int n;

	target_works();
	unit_capture(&cap);
	n = let_in(&event);
	text = unit_captured(&cap);
	ck_assert_int_eq(event.type, MRF_CM_REJECTED);
	ck_assert_int_eq(n, INBOUND);
	ck_assert_int_eq(mrf_refuse_decode(event.data, event.len, &reason), 0);
	ck_assert_uint_eq(reason, MRF_REFUSE_RESOURCES);
	ck_assert_uint_eq(mrf_full_decode(event.data, event.len), MRF_FULL_INBOUND);
	ck_assert_msg(strstr(text, "4023") && strstr(text, "FI_MRFAB_INBOUND") &&
			      unit_lines(text) == 1,
		      "%s", text);
	target_works();
	leave(n);
	target_works();
	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	want_answer();
}
END_TEST

/* The queue that was opened for them goes with them. (That none overflows, the fixture sees to.) */
START_TEST(target_has_as_many_completion_queues_as_its_connections_need)
{
	struct mrf_cm_event event;
	unsigned queues;
	int n;

	target_works();
	queues = fake_live_of(FAKE_VCQ_OPEN);
	n = let_in(&event);
	ck_assert_int_eq(n, CROWD);
	want_answer();
	ck_assert_uint_gt(fake_live_of(FAKE_VCQ_OPEN), queues);
	raw.conn = crowd[0];
	want_answer();
	target_works();
	leave(n);
	target_works();
	ck_assert_uint_le(fake_live_of(FAKE_VCQ_OPEN), queues + 1);
	n = let_in(&event);
	ck_assert_int_eq(n, CROWD);
	want_answer();
	leave(n);
}
END_TEST

/* What a connection needs is not to be had: the limit has a name at both ends. */
static const struct {
	enum fake_call call;
	int err;
	enum mrf_full full;
	const char *name;
} limits[] = {
	{ FAKE_CREATE_QP, FI_ENOMEM, MRF_FULL_QP, "queue pairs" },
	{ FAKE_VMR_REG, FI_ENOMEM, MRF_FULL_LOCKED, "RLIMIT_MEMLOCK" },
	{ FAKE_VMR_REG, FI_EPERM, MRF_FULL_LOCKED, "RLIMIT_MEMLOCK" },
	{ FAKE_VMR_REG, FI_EMFILE, MRF_FULL_FD, "RLIMIT_NOFILE" },
};

START_TEST(target_names_the_limit_that_it_has_met)
{
	struct mrf_cm_event event;
	const char *text;

	target_works();
	unit_capture(&cap);
	/* Room is made for a registration, again and again; of queue pairs the first is ours. */
	if (limits[_i].call == FAKE_VMR_REG)
		fake_fail_always(FAKE_VMR_REG, limits[_i].err);
	else
		fake_fail(FAKE_CREATE_QP, 2, limits[_i].err);
	event = raw_greet(&raw, node_port(&p.b));
	fake_fail_always(FAKE_VMR_REG, 0);
	text = unit_captured(&cap);
	ck_assert_int_eq(event.type, MRF_CM_REJECTED);
	ck_assert_uint_eq(mrf_full_decode(event.data, event.len), limits[_i].full);
	ck_assert_msg(strstr(text, "4023") && strstr(text, limits[_i].name) &&
			      unit_lines(text) == 1,
		      "%s", text);
	target_works();
}
END_TEST

/* A second queue is needed, and not to be had. */
START_TEST(target_without_another_completion_queue_keeps_those_it_has)
{
	struct mrf_cm_event event;
	int n;

	target_works();
	fake_fail(FAKE_VCQ_OPEN, 1, FI_ENOMEM);
	n = let_in(&event);
	ck_assert_int_lt(n, CROWD);
	ck_assert_int_eq(event.type, MRF_CM_REJECTED);
	ck_assert_uint_eq(mrf_full_decode(event.data, event.len), MRF_FULL_CQ);
	raw.conn = crowd[n - 2];
	want_answer();
	target_works();
	leave(n);
}
END_TEST

static struct mrf_cm_event dial_half(void)
{
	struct mrf_hello hello = { .ticket = raw_ticket() };
	uint8_t data[MRF_PROTO_HELLO_LEN];

	return raw_dial(&raw, node_port(&p.b), data, mrf_hello_encode(&hello, data));
}

/* They hold no others back for long, and end when their time is over. */
START_TEST(target_lets_half_open_connections_take_no_more_than_their_part)
{
	enum { MANY = MRF_HALF_PER_ADDR + 8 };
	struct mrf_vconn *crowd[MANY];
	uint32_t reason = 0;
	int64_t since = mrf_now_ms();
	int i, in = 0;

	for (i = 0; i < MANY; i++) {
		struct mrf_cm_event event = dial_half();

		crowd[i] = raw.conn;
		in += event.type == MRF_CM_RESPONSE;
		if (event.type == MRF_CM_RESPONSE)
			continue;
		ck_assert_int_eq(mrf_refuse_decode(event.data, event.len, &reason), 0);
		ck_assert_uint_eq(reason, MRF_REFUSE_RESOURCES);
	}
	if (mrf_now_ms() - since < MRF_HALF_GRACE_MS)
		ck_assert_int_eq(in, MRF_HALF_PER_ADDR);
	raw.conn = NULL;
	/* One of them gives way to a peer of the same address, which comes again until then. */
	target_works();
	/* The raw ends of all, and both ends of the pair's connection. */
	want_soon(fake_live_of(FAKE_CREATE_QP) == MANY + 2);
	for (i = 0; i < MANY; i++)
		mrf_vconn_close(crowd[i]);
	target_works();
}
END_TEST

/* The oldest half-open connection gives way then, and what was made for the peer is made anew. */
START_TEST(target_tries_twice_to_post_and_leaves_nothing_behind)
{
	static struct raw second;

	ck_assert_int_eq(dial_half().type, MRF_CM_RESPONSE);
	usleep((MRF_HALF_GRACE_MS + 100) * 1000);
	raw_open(&second);
	/* Those of the initiator come first. */
	fake_fail(FAKE_POST_RECV, SLOTS + 1, FI_ENOMEM);
	ck_assert_int_eq(raw_greet(&second, node_port(&p.b)).type, MRF_CM_RESPONSE);
	ck_assert(fake_failed());
	/* The raw end of each, and the target's end of the second. */
	want_soon(fake_live_of(FAKE_CREATE_QP) == 3);
	raw_close(&second);
	raw_hang_up(&raw);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 0);
	target_works();
}
END_TEST

/*
 * All at once: many leave, whose RECVs are flushed into the queue, and as many come that do not
 * stay either. The fixture sees to it that the queue never overflows.
 */
START_TEST(target_has_room_for_what_those_that_left_have_left_behind)
{
	enum { MANY = 190 };
	static struct mrf_vconn *crowd[MANY];
	struct sockaddr_in src = at_port(0), dst = at_port(node_port(&p.b));
	struct mrf_hello hello = { .ticket = 1 };
	uint8_t data[MRF_PROTO_HELLO_LEN];
	size_t len = mrf_hello_encode(&hello, data);
	int i;

	for (i = 0; i < MANY; i++) {
		ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
		crowd[i] = raw.conn;
	}
	fake_stop(node_agent(&p.b)->cm, NULL, true);
	for (i = 0; i < MANY; i++)
		mrf_vconn_close(crowd[i]);
	for (i = 0; i < MANY; i++) {
		ck_assert_int_eq(mrf_vconn_open(raw.cm, NULL, &crowd[i]), 0);
		raw.conn = crowd[i];
		mrf_vconn_resolve(raw.conn, (struct sockaddr *)&src, (struct sockaddr *)&dst, 1000,
				  14);
		raw_qp(&raw);
		ck_assert_int_eq(mrf_vconn_connect(raw.conn, data, len, 6), 0);
		mrf_vconn_close(raw.conn);
	}
	raw.conn = NULL;
	fake_stop(node_agent(&p.b)->cm, NULL, false);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 0);
	target_works();
}
END_TEST

/* --- data that nobody reads ----------------------------------------------------------------- */

#define SURPLUS 1000

/*
 * Writes of no bytes, which need no key, with data. Takes what has completed, posts what there is
 * room for.
 */
static void pour(unsigned *posted, unsigned *acked, unsigned total)
{
	struct mrf_vwr wr = { .wr_id = SLOTS, .op = MRF_VWR_WRITE_IMM, .imm = 7 };
	struct mrf_wc wc[64];
	int i, n;

	while ((n = mrf_vcq_poll(raw.cq, wc, 64)) > 0) {
		for (i = 0; i < n; i++)
			ck_assert_int_eq(wc[i].status, MRF_WC_OK);
		*acked += (unsigned)n;
	}
	for (; *posted < total && *posted - *acked < SLOTS - 1; ++*posted)
		ck_assert_int_eq(mrf_vconn_post(raw.conn, &wr), 0);
}

static unsigned read_all(void)
{
	struct fi_cq_data_entry e[64];
	unsigned sum = 0;
	ssize_t n;

	for (; (n = fi_cq_read(p.b.cq, e, 64)) > 0; sum += (unsigned)n)
		ck_assert(e[0].data == 7 && !e[0].len);
	return sum;
}

START_TEST(target_takes_in_no_more_data_than_it_may_keep_unread)
{
	const unsigned total = MRF_UNREAD_MAX + SURPLUS;
	unsigned posted = 0, acked = 0, got = 0, was = 0;
	const struct mrf_cq *cq = node_ep(&p.b)->rx_cq;
	struct mrf_ask ask = { .cookie = 1, .key = PAIR_KEY };
	uint8_t msg[MRF_PROTO_ASK_LEN];
	int i;

	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	for (i = 0; i < 40; i = acked == was ? i + 1 : 0) {
		was = acked;
		pour(&posted, &acked, total);
		usleep(acked == was ? 5000 : 0);
	}
	ck_assert_uint_ge(mrf_cq_unread(cq), MRF_UNREAD_MAX);
	ck_assert_uint_lt(mrf_cq_unread(cq), MRF_UNREAD_MAX + 64 + 1);
	ck_assert_uint_lt(acked, total);
	/* Others are served meanwhile. */
	target_works();
	for (i = 0; i < 20000 && got < total; i++) {
		got += read_all();
		pour(&posted, &acked, total);
		usleep(1000);
	}
	ck_assert_uint_eq(got, total);
	/* And so is it, again. */
	ck_assert_int_eq(raw_send(&raw, msg, mrf_ask_encode(&ask, msg)), 0);
	ck_assert_int_eq(mrf_msg_type(raw.slots[raw_recv(&raw).wr_id], SLOT), MRF_MSG_ANSWER);
}
END_TEST

/* --- hand-made targets
 * ---------------------------------------------------------------------- */

static void begin(fi_addr_t to)
{
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, to, 0, 1, &raw), 0);
}

START_TEST(initiator_gives_up_on_a_target_of_another_kind)
{
	static const uint8_t junk[196] = { 'h', 'e', 'l', 'l', 'o' };
	uint8_t data[MRF_PROTO_REFUSE_LEN];
	fi_addr_t to = raw_listen(&raw, &p.a);

	begin(to);
	raw_take_request(&raw);
	switch (_i) {
	case 0:
		mrf_vconn_accept(raw.conn, junk, sizeof(junk));
		want_err(&p.a, &raw, FI_EREMOTEIO, "does not speak this protocol");
		break;
	case 1:
		raw_accept(&raw, 0);
		want_err(&p.a, &raw, FI_EREMOTEIO, "does not speak this protocol");
		break;
	case 2:
		mrf_vconn_reject(raw.conn, data, mrf_refuse_encode(MRF_REFUSE_VERSION, data));
		want_err(&p.a, &raw, FI_EREMOTEIO, "another version");
		break;
	case 3:
		/* As one of that other version says it. */
		mrf_refuse_encode(MRF_REFUSE_VERSION, data);
		data[5]++;
		mrf_vconn_reject(raw.conn, data, sizeof(data));
		want_err(&p.a, &raw, FI_EREMOTEIO, "another version");
		break;
	default:
		mrf_vconn_reject(raw.conn, data, mrf_refuse_encode(MRF_REFUSE_CLOSING, data));
		want_err(&p.a, &raw, FI_ECONNREFUSED, "closing");
	}
	target_works();
}
END_TEST

static void raw_has_no_room(void)
{
	uint8_t data[MRF_PROTO_REFUSE_LEN];

	raw_take_request(&raw);
	mrf_vconn_reject(raw.conn, data, mrf_refuse_encode(MRF_REFUSE_RESOURCES, data));
}

START_TEST(initiator_comes_again_to_a_target_that_has_no_room)
{
	uint8_t msg[MRF_PROTO_MAX_MSG];
	struct mrf_answer answer = { .status = MRF_MR_CLOSED };
	fi_addr_t to = raw_listen(&raw, &p.a);
	struct mrf_ask ask;
	struct mrf_wc wc;
	int i;

	begin(to);
	/* More often than to an address where nobody listens. */
	for (i = 0; i < 2 * MRF_REFUSALS; i++)
		raw_has_no_room();
	raw_take_request(&raw);
	raw_accept(&raw, 1);
	do {
		wc = raw_recv(&raw);
	} while (wc.status != MRF_WC_OK);
	ck_assert_int_eq(mrf_ask_decode(raw.slots[wc.wr_id], wc.byte_len, &ask), 0);
	answer.cookie = ask.cookie;
	answer.key = ask.key;
	ck_assert_int_eq(raw_send(&raw, msg, mrf_answer_encode(&answer, msg)), 0);
	want_err(&p.a, &raw, FI_EKEYREJECTED, "closed");
	target_works();
}
END_TEST

/*
 * The target has no room, and then nothing is heard of it, or its address is not found any
 * more, until the time is over: what it said is the reason.
 */
START_TEST(initiator_reports_the_limit_though_the_target_does_not_say_it_again)
{
	uint8_t data[MRF_PROTO_FULL_LEN];
	fi_addr_t to;

	pair_close(&p);
	fixture_impatient();
	pair_open(&p, NULL);
	to = raw_listen(&raw, &p.a);
	begin(to);
	raw_take_request(&raw);
	fake_unresolved(_i ? UINT_MAX : 0);
	mrf_vconn_reject(raw.conn, data, mrf_full_encode(MRF_FULL_INBOUND, data));
	ck_assert_int_eq(want_err(&p.a, &raw, FI_ECONNREFUSED,
				  "no resources for another connection: it is out of "
				  "connections from peers (FI_MRFAB_INBOUND)"),
			 4125);
	fake_unresolved(0);
	target_works();
}
END_TEST

/* What asks for a connection now is turned away. */
static void raw_turns_all_away(void)
{
	struct mrf_hello hello;
	uint8_t data[MRF_PROTO_REFUSE_LEN];
	struct mrf_cm_event event;

	while (!mrf_vcm_next(raw.cm, &event)) {
		if (event.type != MRF_CM_REQUEST)
			continue;
		ck_assert_int_eq(mrf_hello_decode(event.data, event.len, &hello), 0);
		mrf_vconn_reject(event.incoming, data,
				 mrf_refuse_encode(MRF_REFUSE_RESOURCES, data));
		mrf_vconn_close(event.incoming);
	}
}

/* FI_MRFAB_CONN_TIMEOUT is 1000. */
START_TEST(initiator_gives_up_on_a_target_that_has_no_room_for_long)
{
	int64_t since;
	fi_addr_t to;

	pair_close(&p);
	fixture_impatient();
	pair_open(&p, NULL);
	to = raw_listen(&raw, &p.a);
	since = mrf_now_ms();
	begin(to);
	for (; node_state(&p.a, to).ops; usleep(1000))
		raw_turns_all_away();
	ck_assert_int_eq(
		want_err(&p.a, &raw, FI_ECONNREFUSED, "no resources for another connection"), 4125);
	ck_assert_int_ge(mrf_now_ms() - since, 1000 - 2 * MRF_RETRY_MS);
	target_works();
}
END_TEST

/*
 * What time the canceled attempt had left is nothing to the next one. FI_MRFAB_CONN_TIMEOUT is
 * 1000.
 */
START_TEST(initiator_begins_anew_when_what_it_connected_for_was_canceled)
{
	uint8_t data[MRF_PROTO_REFUSE_LEN];
	int64_t end;
	fi_addr_t to;

	pair_close(&p);
	fixture_impatient();
	pair_open(&p, NULL);
	to = raw_listen(&raw, &p.a);
	begin(to);
	raw_has_no_room();
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &raw), 0);
	want_err(&p.a, &raw, FI_ECANCELED, NULL);
	for (end = mrf_now_ms() + 1200; mrf_now_ms() < end; usleep(5000))
		raw_turns_all_away();
	begin(to);
	raw_hang_up(&raw);
	raw_take_request(&raw);
	mrf_vconn_reject(raw.conn, data, mrf_refuse_encode(MRF_REFUSE_CLOSING, data));
	want_err(&p.a, &raw, FI_ECONNREFUSED, "closing");
	target_works();
}
END_TEST

/* FI_MRFAB_CONN_TIMEOUT is 15000, and the kernel would repeat it after 4300. */
START_TEST(initiator_asks_again_when_a_request_for_a_connection_may_be_lost)
{
	int64_t since = mrf_now_ms();

	fake_lose_requests(1);
	target_works();
	ck_assert_int_ge(mrf_now_ms() - since, MRF_DIAL_MS);
	ck_assert_int_lt(mrf_now_ms() - since, 4000);
}
END_TEST

START_TEST(initiator_hangs_up_on_a_malformed_answer)
{
	uint8_t msg[SLOT] = { 0 };
	struct mrf_answer answer = { .cookie = 1, .key = 1, .nseg = 1 };
	fi_addr_t to = raw_listen(&raw, &p.a);
	size_t len = mrf_answer_encode(&answer, msg);
	int i;

	switch (_i) {
	case 0:
		len = 0;
		break;
	case 1:
		len--;
		break;
	case 2:
		msg[48] = MRF_PROTO_MAX_SEG + 1;
		break;
	default:
		msg[0] = MRF_MSG_ASK;
	}
	begin(to);
	for (i = 0; i < 5; i++) {
		raw_take_request(&raw);
		raw_accept(&raw, 1);
		ck_assert_int_eq(raw_recv(&raw).status, MRF_WC_OK); /* the question */
		ck_assert_int_eq(raw_send(&raw, msg, len), 0);
	}
	want_err(&p.a, &raw, FI_ECONNRESET, "drops");
	target_works();
}
END_TEST

/* Sent before the initiator has seen that it was accepted. */
static void early_message(const void *msg, size_t len)
{
	struct mrf_agent *agent = node_agent(&p.a);

	raw_take_request(&raw);
	fake_stop(agent->cm, agent->cq, true);
	raw_accept(&raw, 1);
	ck_assert_int_eq(raw_send(&raw, msg, len), 0);
	fake_stop(NULL, agent->cq, false);
	usleep(5000);
	fake_stop(agent->cm, NULL, false);
}

START_TEST(initiator_ignores_an_answer_before_there_is_a_question)
{
	uint8_t msg[MRF_PROTO_MAX_MSG];
	struct mrf_answer answer = { .cookie = 1, .key = 1, .status = MRF_MR_DISABLED };
	fi_addr_t to = raw_listen(&raw, &p.a);
	struct mrf_ask ask;
	struct mrf_wc wc;

	begin(to);
	early_message(msg, mrf_answer_encode(&answer, msg));
	wc = raw_recv(&raw);
	ck_assert_int_eq(mrf_ask_decode(raw.slots[wc.wr_id], wc.byte_len, &ask), 0);
	answer.cookie = ask.cookie;
	answer.status = MRF_MR_CLOSED;
	ck_assert_int_eq(raw_send(&raw, msg, mrf_answer_encode(&answer, msg)), 0);
	want_err(&p.a, &raw, FI_EKEYREJECTED, "closed");
	target_works();
}
END_TEST

START_TEST(initiator_hangs_up_on_junk_that_was_sent_before_it_had_connected)
{
	uint8_t msg[MRF_PROTO_MAX_MSG];
	struct mrf_answer answer = { .key = 1, .status = MRF_MR_CLOSED };
	fi_addr_t to = raw_listen(&raw, &p.a);
	struct mrf_ask ask;
	struct mrf_wc wc;

	begin(to);
	early_message("junk", 5);
	raw_take_request(&raw);
	/* What came of the first connection, a question perhaps. */
	while (mrf_vcq_poll(raw.cq, &wc, 1) == 1)
		;
	raw_accept(&raw, 1);
	wc = raw_recv(&raw);
	ck_assert_int_eq(mrf_ask_decode(raw.slots[wc.wr_id], wc.byte_len, &ask), 0);
	answer.cookie = ask.cookie;
	ck_assert_int_eq(raw_send(&raw, msg, mrf_answer_encode(&answer, msg)), 0);
	want_err(&p.a, &raw, FI_EKEYREJECTED, "closed");
	target_works();
}
END_TEST

/* What rdma_reject does between the acceptance and its confirmation. */
START_TEST(initiator_that_was_let_in_and_then_rejected_completes_what_is_in_flight)
{
	struct mrf_answer answer = { .status = MRF_MR_OK,
				     .flags = MRF_ANSWER_COMPLETE,
				     .access = FI_REMOTE_WRITE,
				     .len = SLOT,
				     .nseg = 1,
				     .seg = { { .len = SLOT, .rkey = raw.mr.rkey } } };
	uint8_t msg[MRF_PROTO_MAX_MSG], data[MRF_PROTO_CHALLENGE_LEN];
	fi_addr_t to = raw_listen(&raw, &p.a);
	struct mrf_challenge challenge = { .number = 1 };
	struct mrf_ask ask;
	size_t len;

	fake_hold(true);
	begin(to);
	raw_take_request(&raw);
	raw_accept(&raw, 8);
	raw_recv(&raw);
	ck_assert_int_eq(mrf_ask_decode(raw.slots[0], SLOT, &ask), 0);
	answer.cookie = ask.cookie;
	answer.key = ask.key;
	ck_assert_int_eq(raw_send(&raw, msg, mrf_answer_encode(&answer, msg)), 0);
	want_soon(fake_queued());
	if (_i == 0)
		len = mrf_refuse_encode(MRF_REFUSE_VERSION, data);
	else
		len = mrf_challenge_encode(&challenge, data);
	mrf_vconn_reject(raw.conn, data, _i == 2 ? 0 : len);
	/* Nobody knows what the kernel there has done by then. */
	want_err(&p.a, &raw, FI_ECONNRESET, "may or may not");
	want_none(&p.a);
	fake_hold(false);
	target_works();
}
END_TEST

START_TEST(initiator_gives_up_on_a_target_that_hangs_up_each_time)
{
	fi_addr_t to = raw_listen(&raw, &p.a);
	int i;

	begin(to);
	for (i = 0; i < 5; i++) {
		raw_take_request(&raw);
		raw_accept(&raw, 8);
		if (_i)
			raw_recv(&raw);
		mrf_vconn_disconnect(raw.conn);
	}
	want_err(&p.a, &raw, FI_ECONNRESET, NULL);
	target_works();
}
END_TEST

START_TEST(initiator_asks_no_more_at_a_time_than_the_target_allows)
{
	fi_addr_t to = raw_listen(&raw, &p.a);
	struct mrf_wc wc;
	uint64_t key;

	for (key = 0; key < 6; key++)
		ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, to, 0, key, &raw), 0);
	raw_take_request(&raw);
	raw_accept(&raw, 2);
	for (key = 0; key < 6; key++) {
		uint8_t msg[MRF_PROTO_MAX_MSG];
		struct mrf_answer answer = { .status = MRF_MR_DISABLED };
		struct mrf_ask ask;

		usleep(2000);
		ck_assert_uint_le(fake_asks(), 2 + key);
		wc = raw_recv(&raw);
		ck_assert_int_eq(mrf_ask_decode(raw.slots[wc.wr_id], wc.byte_len, &ask), 0);
		answer.cookie = ask.cookie;
		answer.key = ask.key;
		ck_assert_int_eq(raw_send(&raw, msg, mrf_answer_encode(&answer, msg)), 0);
		ck_assert_int_eq(want_err(&p.a, &raw, FI_EACCES, "not enabled"), 4103);
	}
}
END_TEST

static TCase *tcase_target(void)
{
	TCase *tc = tcase_create("target");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, target_greets_and_answers_by_the_book);
	tcase_add_test(tc, target_takes_in_no_more_data_than_it_may_keep_unread);
	tcase_add_loop_test(tc, target_rejects_a_greeting_that_is_not_ours, 0, 4);
	tcase_add_loop_test(tc, target_hangs_up_on_a_malformed_message_and_serves_others, 0,
			    BAD_MESSAGES);
	tcase_add_test(tc, target_hangs_up_on_more_questions_than_it_allows);
	tcase_add_test(tc, target_hangs_up_on_more_requests_than_it_allows);
	tcase_add_loop_test(tc, target_hangs_up_on_a_message_of_requests_that_is_none, 0, 7);
	tcase_add_test(tc, target_serves_connections_in_turn);
	tcase_add_test(tc, commands_of_the_application_go_before_requests_of_peers);
	tcase_add_test(tc, target_delivers_immediate_data_of_any_initiator_once);
	tcase_add_test(tc, target_counts_by_number_and_no_write_of_nothing);
	tcase_add_test(tc, target_forgets_an_initiator_that_dies);
	tcase_add_test(tc, target_forgets_an_initiator_that_dies_before_it_is_accepted);
	tcase_add_test(tc, target_has_as_many_completion_queues_as_its_connections_need);
	tcase_add_loop_test(tc, target_names_the_limit_that_it_has_met, 0, MRF_ARRAY_SIZE(limits));
	tcase_add_test(tc, target_without_another_completion_queue_keeps_those_it_has);
	tcase_add_test(tc, target_lets_half_open_connections_take_no_more_than_their_part);
	tcase_add_test(tc, target_tries_twice_to_post_and_leaves_nothing_behind);
	tcase_add_test(tc, target_has_room_for_what_those_that_left_have_left_behind);
	return tc;
}

/* A limit that is met early. */
static TCase *tcase_full(void)
{
	TCase *tc = tcase_create("full");

	tcase_add_checked_fixture(tc, setup_few, teardown_few);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, target_rejects_those_that_it_has_no_room_for);
	return tc;
}

static TCase *tcase_initiator(void)
{
	TCase *tc = tcase_create("initiator");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, initiator_gives_up_on_a_target_of_another_kind, 0, 5);
	tcase_add_test(tc, initiator_comes_again_to_a_target_that_has_no_room);
	tcase_add_test(tc, initiator_gives_up_on_a_target_that_has_no_room_for_long);
	tcase_add_loop_test(tc, initiator_reports_the_limit_though_the_target_does_not_say_it_again,
			    0, 2);
	tcase_add_test(tc, initiator_begins_anew_when_what_it_connected_for_was_canceled);
	tcase_add_test(tc, initiator_asks_again_when_a_request_for_a_connection_may_be_lost);
	tcase_add_loop_test(tc, initiator_hangs_up_on_a_malformed_answer, 0, 4);
	tcase_add_test(tc, initiator_ignores_an_answer_before_there_is_a_question);
	tcase_add_test(tc, initiator_hangs_up_on_junk_that_was_sent_before_it_had_connected);
	tcase_add_loop_test(
		tc, initiator_that_was_let_in_and_then_rejected_completes_what_is_in_flight, 0, 3);
	tcase_add_loop_test(tc, initiator_gives_up_on_a_target_that_hangs_up_each_time, 0, 2);
	tcase_add_test(tc, initiator_asks_no_more_at_a_time_than_the_target_allows);
	return tc;
}

UNIT_MAIN("target", tcase_target, tcase_full, tcase_initiator)
