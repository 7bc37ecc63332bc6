/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes over the wire from something that is not this library, or not well:
 * hand-made initiators against an endpoint of ours, hand-made targets that it connects
 * to.
 */
#include "contract/limits.h"
#include "ep/commit.h"
#include "raw.h"

static struct pair p;
static struct unit_capture cap;

static struct raw raw;

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
	struct mrf_hello hello = { .instance = 1 };
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
		return mrf_reply_encode(&(struct mrf_reply){ .cookie = 1 }, msg);
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
		msg[48] = 1; /* a body, which there is not */
		return len;
	case 15:
		request.type = MRF_MSG_ATOMIC; /* an operation that has operands */
		return mrf_request_encode(&request, msg);
	default:
		return SLOT + 1; /* more than they take: its kernel says no */
	}
}
#define BAD_MESSAGES 17

START_TEST(target_hangs_up_on_a_malformed_message_and_serves_others)
{
	uint8_t msg[SLOT] = { 0 };
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

START_TEST(target_survives_more_questions_than_it_allows)
{
	uint8_t msg[MRF_PROTO_ASK_LEN];
	int i;

	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	for (i = 0; i < SLOTS; i++)
		ck_assert_int_eq(raw_send(&raw, msg, ask_for((uint64_t)i, msg)), 0);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	for (i = 0; i < SLOTS; i++)
		ck_assert_int_eq(raw_recv(&raw).status, MRF_WC_OK);
	target_works();
}
END_TEST

START_TEST(target_delivers_immediate_data_of_any_initiator_once)
{
	struct mrf_vwr wr = { .wr_id = SLOTS,
			      .op = MRF_VWR_WRITE_IMM,
			      .imm = 0x11223344 };
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
	struct mrf_hello hello = { .instance = 1 };
	uint8_t data[MRF_PROTO_HELLO_LEN];

	raw_open(other);
	target_works();
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	ck_assert_int_eq(mrf_vconn_open(other->cm, NULL, &other->conn), 0);
	mrf_vconn_resolve(other->conn, (struct sockaddr *)&src, (struct sockaddr *)&dst,
			  1000, 14);
	raw_qp(other);
	ck_assert_int_eq(
		mrf_vconn_connect(other->conn, data, mrf_hello_encode(&hello, data), 6),
		0);
	raw_close(other);
	free(other);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
	target_works();
}
END_TEST

/* Completions of messages have room for so many connections. */
#define CROWD 250

START_TEST(target_rejects_those_that_it_has_no_room_for)
{
	static struct mrf_vconn *crowd[CROWD];
	struct mrf_cm_event event;
	const char *text;
	uint32_t reason = 0;
	int i, n = 0;

	target_works();
	unit_capture(&cap);
	do {
		event = raw_greet(&raw, node_port(&p.b));
		crowd[n++] = raw.conn;
	} while (event.type == MRF_CM_RESPONSE && n < CROWD);
	text = unit_captured(&cap);
	ck_assert_int_eq(event.type, MRF_CM_REJECTED);
	ck_assert_int_gt(n, 190);
	ck_assert_int_eq(mrf_refuse_decode(event.data, event.len, &reason), 0);
	ck_assert_uint_eq(reason, MRF_REFUSE_RESOURCES);
	ck_assert_msg(strstr(text, "4023") && unit_lines(text) == 1, "%s", text);
	target_works();
	for (i = 0; i < n; i++)
		mrf_vconn_close(crowd[i]);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
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
		want_err(&p.a, &raw, FI_EREMOTEIO, "does not speak our protocol");
		break;
	case 1:
		raw_accept(&raw, 0);
		want_err(&p.a, &raw, FI_EREMOTEIO, "does not speak our protocol");
		break;
	case 2:
		mrf_vconn_reject(raw.conn, data,
				 mrf_refuse_encode(MRF_REFUSE_VERSION, data));
		want_err(&p.a, &raw, FI_EREMOTEIO, "another version");
		break;
	case 3:
		/* As one of that other version says it. */
		mrf_refuse_encode(MRF_REFUSE_VERSION, data);
		data[5]++;
		mrf_vconn_reject(raw.conn, data, sizeof(data));
		want_err(&p.a, &raw, FI_EREMOTEIO, "another version");
		break;
	case 4:
		mrf_vconn_reject(raw.conn, data,
				 mrf_refuse_encode(MRF_REFUSE_RESOURCES, data));
		want_err(&p.a, &raw, FI_ECONNREFUSED, "no resources");
		break;
	default:
		mrf_vconn_reject(raw.conn, data,
				 mrf_refuse_encode(MRF_REFUSE_CLOSING, data));
		want_err(&p.a, &raw, FI_ECONNREFUSED, "closing");
	}
	target_works();
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
		ck_assert_int_eq(mrf_ask_decode(raw.slots[wc.wr_id], wc.byte_len, &ask),
				 0);
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
	tcase_add_loop_test(tc, target_rejects_a_greeting_that_is_not_ours, 0, 4);
	tcase_add_loop_test(tc, target_hangs_up_on_a_malformed_message_and_serves_others,
			    0, BAD_MESSAGES);
	tcase_add_test(tc, target_survives_more_questions_than_it_allows);
	tcase_add_test(tc, target_delivers_immediate_data_of_any_initiator_once);
	tcase_add_test(tc, target_counts_by_number_and_no_write_of_nothing);
	tcase_add_test(tc, target_forgets_an_initiator_that_dies);
	tcase_add_test(tc, target_forgets_an_initiator_that_dies_before_it_is_accepted);
	tcase_add_test(tc, target_rejects_those_that_it_has_no_room_for);
	return tc;
}

static TCase *tcase_initiator(void)
{
	TCase *tc = tcase_create("initiator");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, initiator_gives_up_on_a_target_of_another_kind, 0, 6);
	tcase_add_loop_test(tc, initiator_hangs_up_on_a_malformed_answer, 0, 4);
	tcase_add_test(tc, initiator_ignores_an_answer_before_there_is_a_question);
	tcase_add_test(tc, initiator_hangs_up_on_junk_that_was_sent_before_it_had_connected);
	tcase_add_loop_test(
		tc, initiator_that_was_let_in_and_then_rejected_completes_what_is_in_flight, 0,
		3);
	tcase_add_loop_test(tc, initiator_gives_up_on_a_target_that_hangs_up_each_time, 0,
			    2);
	tcase_add_test(tc, initiator_asks_no_more_at_a_time_than_the_target_allows);
	return tc;
}

UNIT_MAIN("target", tcase_target, tcase_initiator)
