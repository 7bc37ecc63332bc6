/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys between endpoints: who has the same key is let in and lets itself in,
 * who has another, or none, or somebody else's proof, is not. The key itself is never
 * sent, and is nowhere when all is closed.
 */
#include "auth/auth.h"
#include "base/log.h"
#include "base/param.h"
#include "raw.h"
#include "secret.h"

#define OTHER "Open, wheat"

static struct pair p;
static struct raw raw;
static struct unit_capture cap;

/* --- what is sent ------------------------------------------------------------------- */

static atomic_uint told; /* how often the key was on the wire */
static atomic_uint seen; /* how often anything was */

static void look(const uint8_t *data, size_t len)
{
	atomic_fetch_add(&seen, 1);
	if (has_secret(data, len))
		atomic_fetch_add(&told, 1);
}

static enum fake_fate look_at_message(uint8_t *msg, size_t *len, bool from_target)
{
	(void)from_target;
	look(msg, *len);
	return FAKE_DELIVER;
}

static void setup(void)
{
	fixture_setup();
	atomic_store(&told, 0);
	atomic_store(&seen, 0);
	atomic_store(&secrets_freed, 0);
	fake.on_send = look_at_message;
	fake.on_private = look;
	memset(&raw, 0, sizeof(raw));
}

static void teardown(void)
{
	fixture_teardown();
	ck_assert_uint_gt(seen, 0);
	ck_assert_uint_eq(told, 0);
	ck_assert_uint_eq(secrets_freed, 0);
}

/* --- pairs -------------------------------------------------------------------------- */

/* Keys of the initiator and of the target; p.mr has the target's. */
static void open_keys(const char *a, const char *b, int mr_mode)
{
	struct node_opt target = { .mr_mode = mr_mode, .auth_key = b };
	struct node_opt initiator = { .mr_mode = mr_mode, .auth_key = a };

	memset(&p, 0, sizeof(p));
	node_open(&p.a, &initiator);
	node_open(&p.b, &target);
	p.to = node_insert(&p.a, &p.b);
	p.src = pages(PAIR_LEN);
	p.dst = pages(PAIR_LEN);
	fill(p.src, PAIR_LEN, 1);
	pair_reg(&p, REMOTE_RW);
}

static void reaches(fi_addr_t to, uint64_t key, size_t at)
{
	memset(p.dst + at, 0, 100);
	ck_assert_int_eq(fi_write(p.a.ep, p.src + at, 100, NULL, to, p.base + at, key, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_mem_eq(p.dst + at, p.src + at, 100);
}

static void fails(fi_addr_t to, uint64_t key, int err, int code, const char *text)
{
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, NULL, to, p.base, key, &p), 0);
	ck_assert_int_eq(want_err(&p.a, &p, err, text), code);
	ck_assert(!filled(p.dst, 100, 1));
}

START_TEST(same_key_reaches)
{
	open_keys(SECRET, SECRET, _i ? 0 : FI_MR_ALLOCATED);
	reaches(p.to, p.key, 0);
	reaches(p.to, p.key, 5000);
	/* One challenge, one connection, however many accesses. */
	ck_assert_uint_eq(fake_connects(), 1);
	pair_close(&p);
}
END_TEST

START_TEST(another_key_is_not_let_in)
{
	open_keys(OTHER, SECRET, 0);
	fails(p.to, p.key, FI_EACCES, 4203, "another authorization key");
	fails(p.to, 4711, FI_EACCES, 4203, "another authorization key");
	ck_assert_uint_eq(fake_connects(), 0);
	ck_assert_uint_eq(fake_asks(), 0);
	pair_close(&p);
}
END_TEST

START_TEST(without_a_key_nobody_is_let_in_where_there_is_one)
{
	open_keys(NULL, SECRET, 0);
	fails(p.to, p.key, FI_EACCES, 4202, "this one has none");
	fails(p.to, 4711, FI_EACCES, 4202, "this one has none");
	ck_assert_uint_eq(fake_connects(), 0);
	ck_assert_uint_eq(fake_asks(), 0);
	pair_close(&p);
}
END_TEST

START_TEST(with_a_key_nobody_is_talked_to_who_has_none)
{
	open_keys(SECRET, NULL, 0);
	fails(p.to, p.key, FI_EACCES, 4205, "has no authorization key");
	ck_assert_uint_eq(fake_connects(), 0);
	ck_assert_uint_eq(fake_asks(), 0);
	pair_close(&p);
}
END_TEST

START_TEST(a_target_says_who_had_another_key)
{
	const char *text;

	setenv("FI_LOG_LEVEL", "warn", 1);
	mrf_env_reload();
	mrf_log_reload();
	open_keys(OTHER, SECRET, 0);
	unit_capture(&cap);
	fails(p.to, p.key, FI_EACCES, 4203, NULL);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-W4210"));
	ck_assert(!has_secret(text, strlen(text)));
	pair_close(&p);
}
END_TEST

/* --- several keys in one domain ----------------------------------------------------- */

static struct fid_mr *reg_keyed(struct node *n, void *buf, uint64_t key, const char *auth)
{
	struct iovec iov = { buf, PAIR_LEN };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = REMOTE_RW,
				   .requested_key = key,
				   .auth_key = (uint8_t *)auth,
				   .auth_key_size = auth ? strlen(auth) : 0 };
	struct fid_mr *mr = NULL;

	ck_assert_int_eq(fi_mr_regattr(n->domain, &attr, 0, &mr), 0);
	return mr;
}

/* The second endpoint of a node, with a key of its own. */
static struct fid_ep *open_ep(struct node *n, const char *key)
{
	struct fid_ep *ep = NULL;

	ck_assert_int_eq(node_try_ep(n, &(struct node_opt){ .ep_key = key }, &ep), 0);
	return ep;
}

static fi_addr_t insert_ep(struct node *from, struct fid_ep *ep)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	ck_assert_int_eq(fi_getname(&ep->fid, &name, &len), 0);
	return node_insert_port(from, ntohs(name.sin_port));
}

START_TEST(regions_and_endpoints_of_a_domain_may_have_keys_of_their_own)
{
	struct fid_mr *own;
	struct fid_ep *keyed;
	fi_addr_t to;

	open_keys(SECRET, NULL, _i ? 0 : FI_MR_ALLOCATED);
	own = reg_keyed(&p.b, p.dst, 99, SECRET);
	keyed = open_ep(&p.b, SECRET);
	to = insert_ep(&p.a, keyed);
	reaches(to, 99, 0);
	/* The region of those without a key is no business of those with one. */
	memset(p.dst, 0, PAIR_LEN);
	fails(to, PAIR_KEY, FI_EKEYREJECTED, 4101, "unknown");
	fails(to, 4711, FI_EKEYREJECTED, 4101, "unknown");
	must_close(&own->fid);
	/* Who might have known it learns that it is closed. */
	fails(to, 99, FI_EKEYREJECTED, 4102, "closed");
	must_close(&keyed->fid);
	pair_close(&p);
}
END_TEST

/* Knowing a region's key is of no use, whatever endpoint is addressed. */
START_TEST(a_region_of_another_key_is_as_unknown_as_one_that_is_not_there)
{
	struct fid_mr *own;

	open_keys(NULL, NULL, 0);
	own = reg_keyed(&p.b, p.dst, 99, SECRET);
	fails(p.to, 99, FI_EKEYREJECTED, 4101, "unknown");
	fails(p.to, FI_KEY_NOTAVAIL, FI_EKEYREJECTED, 4101, "until the region is enabled");
	fails(p.to, 4711, FI_EKEYREJECTED, 4101, "unknown");
	must_close(&own->fid);
	fails(p.to, 99, FI_EKEYREJECTED, 4101, "unknown");
	reaches(p.to, p.key, 0);
	pair_close(&p);
}
END_TEST

START_TEST(an_endpoint_of_the_initiator_may_have_a_key_of_its_own)
{
	struct fid_ep *mine;

	open_keys(NULL, SECRET, 0);
	mine = open_ep(&p.a, SECRET);
	ck_assert_int_eq(fi_write(mine, p.src, 100, NULL, p.to, p.base, p.key, &p), 0);
	want_ok(&p.a, &p);
	ck_assert(filled(p.dst, 100, 1));
	must_close(&mine->fid);
	pair_close(&p);
}
END_TEST

START_TEST(bad_keys_of_endpoints_are_refused)
{
	struct fi_ep_attr *attr;
	struct fid_ep *ep = NULL;

	open_keys(NULL, NULL, 0);
	attr = p.a.info->ep_attr;
	attr->auth_key_size = 4;
	ck_assert_int_eq(fi_endpoint(p.a.domain, p.a.info, &ep, NULL), -FI_EINVAL);
	attr->auth_key = calloc(1, 300);
	attr->auth_key_size = 300;
	ck_assert_int_eq(fi_endpoint(p.a.domain, p.a.info, &ep, NULL), -FI_EINVAL);
	ck_assert_ptr_null(ep);
	reaches(p.to, p.key, 0);
	pair_close(&p);
}
END_TEST

START_TEST(before_api_1_5_keys_are_not_looked_at)
{
	struct node_opt target = { .auth_key = SECRET, .ep_key = OTHER, .api = FI_VERSION(1, 4) };

	memset(&p, 0, sizeof(p));
	node_open(&p.a, NULL);
	node_open(&p.b, &target);
	p.to = node_insert(&p.a, &p.b);
	p.src = pages(PAIR_LEN);
	p.dst = pages(PAIR_LEN);
	fill(p.src, PAIR_LEN, 1);
	p.mr = reg_keyed(&p.b, p.dst, PAIR_KEY, OTHER);
	reaches(p.to, PAIR_KEY, 0);
	pair_close(&p);
}
END_TEST

START_TEST(connections_that_break_are_made_again_with_new_proofs)
{
	int i;

	open_keys(SECRET, SECRET, FI_MR_ALLOCATED);
	reaches(p.to, p.key, 0);
	for (i = 0; i < 6; i++) {
		fake_break(1, 1, MRF_WC_REFUSED, false);
		reaches(p.to, p.key, 300);
	}
	ck_assert_uint_eq(fake_connects(), 7);
	pair_close(&p);
}
END_TEST

/* --- by hand: initiators ------------------------------------------------------------ */

/* The challenge of p.b; it is turned away. */
static struct mrf_challenge get_challenge(void)
{
	struct mrf_challenge challenge;
	struct mrf_cm_event event = raw_greet(&raw, node_port(&p.b));
	struct mrf_wc wc;

	ck_assert_int_eq(event.type, MRF_CM_REJECTED);
	ck_assert_int_eq(mrf_challenge_decode(event.data, event.len, &challenge), 0);
	ck_assert_uint_eq(challenge.instance, node_ep(&p.b)->instance);
	raw_hang_up(&raw);
	while (mrf_vcq_poll(raw.cq, &wc, 1) == 1)
		;
	return challenge;
}

/* Of a hello; there is no such flag, so it is ignored, but it is proved like any other. */
#define HELLO_FLAGS (1u << 1)

/* What connecting to p.b with the next queue pair would have to prove. */
static struct mrf_auth_talk talk_of(const struct mrf_challenge *challenge)
{
	struct mrf_auth_talk talk = { .number = challenge->number,
				      .salt = 77,
				      .initiator = 5,
				      .target = challenge->instance,
				      .addr = { 10, 99, 1, 1 },
				      .port = node_port(&p.b),
				      .flags = HELLO_FLAGS };

	memcpy(talk.nonce, challenge->nonce, sizeof(talk.nonce));
	return talk;
}

/* Like raw_connect, but what is sent depends on the queue pair: a proof with this key. */
static struct mrf_cm_event prove(struct mrf_auth_talk *talk, const char *key)
{
	struct sockaddr_in src = at_port(0), dst = at_port(node_port(&p.b));
	struct mrf_hello hello = { .flags = HELLO_FLAGS,
				   .ticket = talk->initiator,
				   .number = talk->number,
				   .salt = talk->salt };
	uint8_t data[MRF_PROTO_HELLO_MAX], proof[MRF_AUTH_PROOF];
	struct mrf_auth *auth = NULL;
	struct mrf_cm_event event;

	ck_assert_int_eq(mrf_auth_new(key, strlen(key), &auth), 0);
	raw_hang_up(&raw);
	ck_assert_int_eq(mrf_vconn_open(raw.cm, NULL, &raw.conn), 0);
	mrf_vconn_resolve(raw.conn, (struct sockaddr *)&src, (struct sockaddr *)&dst, 1000, 14);
	ck_assert_int_eq(raw_event(&raw).type, MRF_CM_ADDR_RESOLVED);
	raw_qp(&raw);
	talk->initiator_qpn = mrf_vconn_qpn(raw.conn);
	mrf_auth_prove(auth, MRF_AUTH_INITIATOR, talk, proof);
	memcpy(hello.proof, proof, sizeof(hello.proof));
	ck_assert_int_eq(mrf_vconn_route(raw.conn, 1000), 0);
	ck_assert_int_eq(raw_event(&raw).type, MRF_CM_ROUTE_RESOLVED);
	ck_assert_int_eq(mrf_vconn_connect(raw.conn, data, mrf_hello_encode(&hello, data), 6), 0);
	event = raw_event(&raw);
	mrf_auth_free(auth);
	return event;
}

static uint32_t reason_of(const struct mrf_cm_event *event)
{
	uint32_t reason = 0;

	ck_assert_int_eq(event->type, MRF_CM_REJECTED);
	ck_assert_int_eq(mrf_refuse_decode(event->data, event->len, &reason), 0);
	return reason;
}

static void setup_raw(void)
{
	setup();
	open_keys(SECRET, SECRET, 0);
	raw_open(&raw);
}

static void teardown_raw(void)
{
	reaches(p.to, p.key, 0);
	raw_close(&raw);
	pair_close(&p);
	teardown();
}

START_TEST(challenge_and_proof_by_the_book)
{
	struct mrf_challenge challenge = get_challenge();
	struct mrf_auth_talk talk = talk_of(&challenge);
	struct mrf_cm_event event = prove(&talk, SECRET);
	struct mrf_welcome welcome;
	struct mrf_auth *auth = NULL;

	ck_assert_int_eq(event.type, MRF_CM_RESPONSE);
	ck_assert_int_eq(mrf_welcome_decode(event.data, event.len, &welcome), 0);
	ck_assert(welcome.flags & MRF_WELCOME_PROOF);
	talk.target_qpn = event.qpn;
	ck_assert_int_eq(mrf_auth_new(SECRET, SECRET_LEN, &auth), 0);
	ck_assert(mrf_auth_proves(auth, MRF_AUTH_TARGET, &talk, welcome.proof,
				  sizeof(welcome.proof)));
	mrf_auth_free(auth);
}
END_TEST

START_TEST(proof_is_good_once)
{
	struct mrf_challenge challenge = get_challenge();
	struct mrf_auth_talk talk = talk_of(&challenge);
	struct mrf_cm_event event = prove(&talk, SECRET);

	ck_assert_int_eq(event.type, MRF_CM_RESPONSE);
	/* Even with a proof for the new queue pair. */
	event = prove(&talk, SECRET);
	ck_assert_uint_eq(reason_of(&event), MRF_REFUSE_CHALLENGE);
}
END_TEST

/* Bytes of another connection, which were never answered. */
START_TEST(proof_is_of_no_use_on_another_connection)
{
	struct mrf_challenge challenge = get_challenge();
	struct mrf_auth_talk talk = talk_of(&challenge);
	struct mrf_hello hello = {
		.flags = HELLO_FLAGS, .ticket = 5, .number = talk.number, .salt = 77
	};
	uint8_t data[MRF_PROTO_HELLO_MAX], proof[MRF_AUTH_PROOF];
	struct mrf_auth *auth = NULL;
	struct mrf_cm_event event;

	ck_assert_int_eq(mrf_auth_new(SECRET, SECRET_LEN, &auth), 0);
	talk.initiator_qpn = 4711;
	mrf_auth_prove(auth, MRF_AUTH_INITIATOR, &talk, proof);
	memcpy(hello.proof, proof, sizeof(hello.proof));
	event = raw_connect(&raw, node_port(&p.b), data, mrf_hello_encode(&hello, data));
	ck_assert_uint_eq(reason_of(&event), MRF_REFUSE_KEY);
	mrf_auth_free(auth);
}
END_TEST

/* What is wrong with the talk that is proved. */
static void spoil(struct mrf_auth_talk *talk, int how)
{
	switch (how) {
	case 0:
		talk->addr[3]++; /* a proof that somebody else was given */
		break;
	case 1:
		talk->port++;
		break;
	case 2:
		talk->target++;
		break;
	case 3:
		talk->nonce[0]++;
		break;
	case 4:
		talk->target_qpn++;
		break;
	case 5:
		talk->flags |= MRF_HELLO_MESSAGES; /* somebody has taken it from the hello */
		break;
	default:
		break;
	}
}

#define SPOILS 7

START_TEST(wrong_proof_is_refused_and_the_next_may_be_right)
{
	struct mrf_challenge challenge = get_challenge();
	struct mrf_auth_talk talk = talk_of(&challenge);
	struct mrf_cm_event event;

	spoil(&talk, _i);
	event = prove(&talk, _i == SPOILS - 1 ? OTHER : SECRET);
	ck_assert_uint_eq(reason_of(&event), MRF_REFUSE_KEY);
	talk = talk_of(&challenge);
	ck_assert_int_eq(prove(&talk, SECRET).type, MRF_CM_RESPONSE);
}
END_TEST

START_TEST(proof_for_a_challenge_that_never_was_is_none)
{
	struct mrf_challenge challenge = get_challenge();
	struct mrf_auth_talk talk;
	struct mrf_cm_event event;

	challenge.number += _i ? 1 : 1000000;
	talk = talk_of(&challenge);
	event = prove(&talk, SECRET);
	ck_assert_uint_eq(reason_of(&event), MRF_REFUSE_CHALLENGE);
}
END_TEST

START_TEST(malformed_proofs_are_turned_away)
{
	struct mrf_hello hello = { .ticket = 5, .number = 1 };
	uint8_t data[MRF_PROTO_HELLO_MAX];
	struct mrf_cm_event event;
	size_t len = mrf_hello_encode(&hello, data);

	/* rdma_cm pads what is cut off; the length tells. */
	data[6] = (uint8_t)(_i ? len - 1 : MRF_PROTO_HELLO_LEN);
	event = raw_connect(&raw, node_port(&p.b), data, _i ? len - 1 : len);
	ck_assert_uint_eq(reason_of(&event), MRF_REFUSE_VERSION);
}
END_TEST

START_TEST(challenges_use_up_nothing)
{
	struct mrf_challenge challenge = get_challenge();
	struct mrf_auth_talk talk;
	int i;

	for (i = 0; i < 300; i++)
		get_challenge();
	ck_assert_uint_eq(fake_live_of(FAKE_CREATE_QP), 0);
	/* The first is as good as the last. */
	talk = talk_of(&challenge);
	ck_assert_int_eq(prove(&talk, SECRET).type, MRF_CM_RESPONSE);
}
END_TEST

/* --- by hand: targets --------------------------------------------------------------- */

static void begin(fi_addr_t to)
{
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, to, 0, 1, &raw), 0);
}

static struct mrf_hello take_hello(void)
{
	struct mrf_cm_event event;
	struct mrf_hello hello = { 0 };

	do {
		event = raw_event(&raw);
	} while (event.type != MRF_CM_REQUEST);
	ck_assert_int_eq(mrf_hello_decode(event.data, event.len, &hello), 0);
	raw_hang_up(&raw);
	raw.conn = event.incoming;
	return hello;
}

static void send_challenge(const struct mrf_challenge *challenge)
{
	uint8_t data[MRF_PROTO_CHALLENGE_LEN];

	mrf_vconn_reject(raw.conn, data, mrf_challenge_encode(challenge, data));
}

static void welcome(const uint8_t *proof)
{
	struct mrf_welcome welcome = { .instance = 9, .asks = 1 };
	uint8_t data[MRF_PROTO_WELCOME_MAX];

	if (proof) {
		welcome.flags = MRF_WELCOME_PROOF;
		memcpy(welcome.proof, proof, sizeof(welcome.proof));
	}
	raw_qp(&raw);
	ck_assert_int_eq(mrf_vconn_accept(raw.conn, data, mrf_welcome_encode(&welcome, data)), 0);
}

/* Nothing was sent to it, and it could send nothing. */
static void was_left(void)
{
	ck_assert_uint_eq(fake_connects(), 0);
	ck_assert_uint_eq(fake_asks(), 0);
}

START_TEST(target_without_a_key_is_left_before_anything_is_said)
{
	fi_addr_t to = raw_listen(&raw, &p.a);

	begin(to);
	ck_assert_uint_eq(take_hello().number, 0);
	welcome(NULL);
	want_err(&p.a, &raw, FI_EACCES, "has no authorization key");
	was_left();
}
END_TEST

/* 0: welcomes at once with some proof; 1: after a challenge; 2: with no proof after it. */
START_TEST(target_with_another_key_is_left_before_anything_is_said)
{
	struct mrf_challenge challenge = { .number = 1, .instance = 9 };
	fi_addr_t to = raw_listen(&raw, &p.a);
	uint8_t proof[MRF_AUTH_PROOF] = { 1, 2, 3 };
	struct mrf_hello hello;

	begin(to);
	take_hello();
	if (_i) {
		send_challenge(&challenge);
		hello = take_hello();
		ck_assert_uint_eq(hello.number, 1);
	}
	welcome(_i == 2 ? NULL : proof);
	want_err(&p.a, &raw, FI_EACCES,
		 _i == 1 ? "another authorization key" : "has no authorization key");
	was_left();
}
END_TEST

/* Or who has it lets somebody else's name stand in the welcome. */
START_TEST(target_is_the_one_that_asked_for_the_proof)
{
	struct mrf_challenge challenge = { .number = 1, .instance = 9 };
	struct mrf_welcome welcome = { .instance = 9 + (uint64_t)_i,
				       .asks = 1,
				       .flags = MRF_WELCOME_PROOF };
	struct mrf_auth_talk talk = { .number = 1, .target = 9, .addr = { 10, 99, 1, 1 } };
	fi_addr_t to = raw_listen(&raw, &p.a);
	uint8_t data[MRF_PROTO_WELCOME_MAX];
	struct mrf_cm_event event;
	struct sockaddr_in addr;
	struct mrf_auth *auth = NULL;
	struct mrf_hello hello;
	size_t len = sizeof(addr);

	ck_assert_int_eq(fi_av_lookup(p.a.av, to, &addr, &len), 0);
	talk.port = ntohs(addr.sin_port);
	begin(to);
	take_hello();
	send_challenge(&challenge);
	do {
		event = raw_event(&raw);
	} while (event.type != MRF_CM_REQUEST);
	ck_assert_int_eq(mrf_hello_decode(event.data, event.len, &hello), 0);
	raw_hang_up(&raw);
	raw.conn = event.incoming;
	raw_qp(&raw);
	talk.salt = hello.salt;
	talk.initiator = hello.ticket;
	talk.flags = hello.flags;
	talk.initiator_qpn = event.qpn;
	talk.target_qpn = mrf_vconn_qpn(raw.conn);
	ck_assert_int_eq(mrf_auth_new(SECRET, SECRET_LEN, &auth), 0);
	mrf_auth_prove(auth, MRF_AUTH_TARGET, &talk, welcome.proof);
	mrf_auth_free(auth);
	ck_assert_int_eq(mrf_vconn_accept(raw.conn, data, mrf_welcome_encode(&welcome, data)), 0);
	if (_i == 0) {
		want_soon(fake_connects() == 1);
		return;
	}
	want_err(&p.a, &raw, FI_EACCES, "another authorization key");
	was_left();
}
END_TEST

/* It asks for a proof only to show it to somebody else, and his answer to us. */
START_TEST(go_between_gets_nothing_out_of_two_who_have_the_key)
{
	fi_addr_t to = raw_listen(&raw, &p.a);
	struct mrf_challenge challenge;
	struct raw *other = calloc(1, sizeof(*other));
	struct mrf_cm_event event;
	struct mrf_hello hello;
	uint8_t data[MRF_PROTO_HELLO_MAX];

	raw_open(other);
	event = raw_greet(other, node_port(&p.b));
	ck_assert_int_eq(mrf_challenge_decode(event.data, event.len, &challenge), 0);
	raw_hang_up(other);
	begin(to);
	take_hello();
	send_challenge(&challenge);
	hello = take_hello();
	ck_assert_uint_eq(hello.number, challenge.number);
	event = raw_connect(other, node_port(&p.b), data, mrf_hello_encode(&hello, data));
	ck_assert_uint_eq(reason_of(&event), MRF_REFUSE_KEY);
	mrf_vconn_reject(raw.conn, data, mrf_refuse_encode(MRF_REFUSE_CLOSING, data));
	want_err(&p.a, &raw, FI_ECONNREFUSED, "closing");
	was_left();
	raw_close(other);
	free(other);
}
END_TEST

/* The salt is new each time, so an answer that was good once is not again. */
START_TEST(old_answer_of_the_target_is_of_no_use)
{
	struct mrf_challenge challenge = { .number = 1, .instance = 9 };
	fi_addr_t to = raw_listen(&raw, &p.a);
	struct mrf_hello first, second;

	begin(to);
	take_hello();
	send_challenge(&challenge);
	first = take_hello();
	send_challenge(&challenge);
	second = take_hello();
	ck_assert_uint_ne(first.salt, second.salt);
	ck_assert_int_ne(memcmp(first.proof, second.proof, sizeof(first.proof)), 0);
	send_challenge(&challenge);
	take_hello();
	send_challenge(&challenge);
	ck_assert_int_eq(want_err(&p.a, &raw, FI_EACCES, "another proof each time"), 4204);
	was_left();
}
END_TEST

/* Each time it is full once it has the proof, and asks for another one the next time. */
START_TEST(target_that_is_full_may_ask_for_more_proofs)
{
	struct mrf_challenge challenge = { .number = 1, .instance = 9 };
	fi_addr_t to = raw_listen(&raw, &p.a);
	uint8_t data[MRF_PROTO_FULL_LEN];
	int i;

	begin(to);
	for (i = 0; i < 6; i++) {
		ck_assert_uint_eq(take_hello().number, 0);
		send_challenge(&challenge);
		ck_assert_uint_eq(take_hello().number, 1);
		mrf_vconn_reject(raw.conn, data, mrf_full_encode(MRF_FULL_INBOUND, data));
	}
	take_hello();
	mrf_vconn_reject(raw.conn, data, mrf_refuse_encode(MRF_REFUSE_CLOSING, data));
	want_err(&p.a, &raw, FI_ECONNREFUSED, "closing");
	was_left();
}
END_TEST

START_TEST(malformed_challenges_end_it)
{
	struct mrf_challenge challenge = { .number = 1, .instance = 9 };
	fi_addr_t to = raw_listen(&raw, &p.a);
	uint8_t data[MRF_PROTO_CHALLENGE_LEN];
	size_t len = mrf_challenge_encode(&challenge, data);

	if (_i == 0)
		data[6] = MRF_PROTO_REFUSE_LEN;
	else
		memset(data + 16, 0, 8);
	begin(to);
	take_hello();
	mrf_vconn_reject(raw.conn, data, len);
	want_err(&p.a, &raw, FI_EREMOTEIO, "does not speak this protocol");
	was_left();
}
END_TEST

static TCase *tcase_pairs(void)
{
	TCase *tc = tcase_create("pairs");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, same_key_reaches, 0, 2);
	tcase_add_test(tc, another_key_is_not_let_in);
	tcase_add_test(tc, without_a_key_nobody_is_let_in_where_there_is_one);
	tcase_add_test(tc, with_a_key_nobody_is_talked_to_who_has_none);
	tcase_add_test(tc, a_target_says_who_had_another_key);
	tcase_add_loop_test(tc, regions_and_endpoints_of_a_domain_may_have_keys_of_their_own, 0, 2);
	tcase_add_test(tc, a_region_of_another_key_is_as_unknown_as_one_that_is_not_there);
	tcase_add_test(tc, an_endpoint_of_the_initiator_may_have_a_key_of_its_own);
	tcase_add_test(tc, bad_keys_of_endpoints_are_refused);
	tcase_add_test(tc, before_api_1_5_keys_are_not_looked_at);
	tcase_add_test(tc, connections_that_break_are_made_again_with_new_proofs);
	return tc;
}

static TCase *tcase_initiators(void)
{
	TCase *tc = tcase_create("initiators");

	tcase_add_checked_fixture(tc, setup_raw, teardown_raw);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, challenge_and_proof_by_the_book);
	tcase_add_test(tc, proof_is_good_once);
	tcase_add_test(tc, proof_is_of_no_use_on_another_connection);
	tcase_add_loop_test(tc, wrong_proof_is_refused_and_the_next_may_be_right, 0, SPOILS);
	tcase_add_loop_test(tc, proof_for_a_challenge_that_never_was_is_none, 0, 2);
	tcase_add_loop_test(tc, malformed_proofs_are_turned_away, 0, 2);
	tcase_add_test(tc, challenges_use_up_nothing);
	return tc;
}

static TCase *tcase_targets(void)
{
	TCase *tc = tcase_create("targets");

	tcase_add_checked_fixture(tc, setup_raw, teardown_raw);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, target_without_a_key_is_left_before_anything_is_said);
	tcase_add_loop_test(tc, target_with_another_key_is_left_before_anything_is_said, 0, 3);
	tcase_add_loop_test(tc, target_is_the_one_that_asked_for_the_proof, 0, 2);
	tcase_add_test(tc, go_between_gets_nothing_out_of_two_who_have_the_key);
	tcase_add_test(tc, old_answer_of_the_target_is_of_no_use);
	tcase_add_test(tc, target_that_is_full_may_ask_for_more_proofs);
	tcase_add_loop_test(tc, malformed_challenges_end_it, 0, 2);
	return tc;
}

UNIT_MAIN("keyed", tcase_pairs, tcase_initiators, tcase_targets)
