/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every state of a connection of ours and everything that can happen in it:
 * ep/model/conn_state.h. First the tables alone; then a real connection is brought into each
 * state, in the agent's thread, so that nothing else happens to it meanwhile.
 */
#include <limits.h>
#include "ep/link/passive.h"
#include "loop/agent_calls.h"
#include "aborts.h"
#include "ep_fixture.h"

/* A letter per state, in their order; a lower-case x: there is no such peer any more. */
static const char names[] = "ILRAPYBDC";

_Static_assert(sizeof(names) - 1 == MRF_PEER_STATES, "a letter per state");

/* --- the tables ------------------------------------------------------------------------- */

/* By state: where the moves lead to; a dot where there is none. */
static const char *const moves[MRF_PEER_STATES] = {
	/*                      DIAL FOUND ASK PAUSE UP BREAK DRAIN TO_CUT END */
	[MRF_PEER_IDLE] = "L........",	  [MRF_PEER_LOOKING] = ".R......I",
	[MRF_PEER_ROUTING] = "..A.....I", [MRF_PEER_ASKING] = "...PY...I",
	[MRF_PEER_PAUSED] = "........I",  [MRF_PEER_READY] = ".....B..I",
	[MRF_PEER_BROKEN] = ".....BDCI",  [MRF_PEER_DRAINING] = ".....D.CI",
	[MRF_PEER_CUT] = ".....C..I",
};

/* By state: which of rdma_cm's events count. */
static const char *const hears[MRF_PEER_STATES] = {
	[MRF_PEER_IDLE] = "",
	[MRF_PEER_LOOKING] = "addr unresolved failed removed",
	[MRF_PEER_ROUTING] = "route failed removed",
	[MRF_PEER_ASKING] = "response rejected failed disconnected removed",
	[MRF_PEER_PAUSED] = "removed",
	[MRF_PEER_READY] = "rejected failed disconnected removed",
	[MRF_PEER_BROKEN] = "rejected failed disconnected removed",
	[MRF_PEER_DRAINING] = "rejected failed disconnected removed",
	[MRF_PEER_CUT] = "",
};

static const char *const events[] = {
	[MRF_CM_ADDR_RESOLVED] = "addr",
	[MRF_CM_UNRESOLVED] = "unresolved",
	[MRF_CM_ROUTE_RESOLVED] = "route",
	[MRF_CM_REQUEST] = "request",
	[MRF_CM_RESPONSE] = "response",
	[MRF_CM_ESTABLISHED] = "established",
	[MRF_CM_REJECTED] = "rejected",
	[MRF_CM_FAILED] = "failed",
	[MRF_CM_DISCONNECTED] = "disconnected",
	[MRF_CM_REMOVED] = "removed",
	[MRF_CM_OTHER] = "other",
};

static enum mrf_peer_state state_of(char name)
{
	const char *at = strchr(names, name);

	return at ? (enum mrf_peer_state)(at - names) : MRF_PEER_STATES;
}

/* A move that is not in the diagram is refused: it ends the process, or changes nothing. */
static struct mrf_peer *mover;
static enum mrf_peer_move refused;

static void move_nowhere(void)
{
	enum mrf_peer_state before = mover->state;

	mrf_peer_move_locked(mover, refused);
	if (mover->state != before)
		_exit(1);
}

START_TEST(moves_lead_where_the_diagram_says)
{
	static struct mrf_ep ep;
	static struct mrf_peer peer = { .ep = &ep };
	unsigned move;

	mrf_lock_init(&ep.lock, MRF_RANK_EP);
	mrf_lock_take(&ep.lock);
	for (move = 0; move < MRF_PEER_MOVES; move++) {
		enum mrf_peer_state want = state_of(moves[_i][move]);

		peer.state = (enum mrf_peer_state)_i;
		ck_assert_int_eq(mrf_peer_next(peer.state, (enum mrf_peer_move)move), want);
		if (want == MRF_PEER_STATES) {
			mover = &peer;
			refused = (enum mrf_peer_move)move;
			ck_assert_int_eq(aborts(move_nowhere), LIBRARY_CHECKS);
			continue;
		}
		mrf_peer_move_locked(&peer, (enum mrf_peer_move)move);
		ck_assert_int_eq(peer.state, want);
	}
	mrf_lock_release(&ep.lock);
}
END_TEST

START_TEST(events_count_where_the_table_says)
{
	unsigned type;

	for (type = 0; type < MRF_ARRAY_SIZE(events); type++) {
		bool want = strstr(hears[_i], events[type]) != NULL;

		/* No name is part of another. */
		ck_assert_msg(mrf_peer_hears((enum mrf_peer_state)_i, (enum mrf_cm_type)type) ==
				      want,
			      "state %c, %s", names[_i], events[type]);
	}
}
END_TEST

/* --- what can happen -------------------------------------------------------------------- */

static struct pair p;
static struct mrf_peer *peer;
static enum mrf_peer_state wanted;

struct happening {
	const char *what;
	void (*happen)(void);
	/* By state, where the connection is then; a dot: it cannot happen there. */
	const char *after;
	/* What the target has sent before, while the connection was up; its length. */
	const uint8_t *message;
	size_t len;
	bool keyed; /* both ends have an authorization key */
};

static void tell(enum mrf_cm_type type, int err, const void *data, size_t len)
{
	struct mrf_conn *conn = peer->conn;
	struct mrf_cm_event event = {
		.type = type, .conn = conn->vconn, .err = err, .qpn = 5, .len = len
	};

	if (len)
		memcpy(event.data, data, len);
	conn->owner.calls->event(&conn->owner, &event);
}

#define TELL(name, type, err)             \
	static void name(void)            \
	{                                 \
		tell(type, err, NULL, 0); \
	}

TELL(address_resolved, MRF_CM_ADDR_RESOLVED, 0)
TELL(unresolved, MRF_CM_UNRESOLVED, 0)
TELL(route_resolved, MRF_CM_ROUTE_RESOLVED, 0)
TELL(established, MRF_CM_ESTABLISHED, 0)
TELL(rejected_by_nobody, MRF_CM_REJECTED, 0)
TELL(no_answer, MRF_CM_FAILED, FI_ETIMEDOUT)
TELL(unreachable, MRF_CM_FAILED, FI_EHOSTUNREACH)
TELL(disconnected, MRF_CM_DISCONNECTED, 0)
TELL(removed, MRF_CM_REMOVED, 0)
TELL(other, MRF_CM_OTHER, 0)

static void response(void)
{
	struct mrf_welcome welcome = { .mr_mode = FI_MR_ALLOCATED, .instance = 7, .asks = 1 };
	uint8_t data[MRF_PROTO_WELCOME_MAX];

	tell(MRF_CM_RESPONSE, 0, data, mrf_welcome_encode(&welcome, data));
}

static void response_of_a_stranger(void)
{
	tell(MRF_CM_RESPONSE, 0, "hello", 5);
}

static void reject(enum mrf_refuse_reason reason)
{
	uint8_t data[MRF_PROTO_REFUSE_LEN];

	tell(MRF_CM_REJECTED, 0, data, mrf_refuse_encode(reason, data));
}

#define REJECT(name, reason)    \
	static void name(void)  \
	{                       \
		reject(reason); \
	}

REJECT(rejected_version, MRF_REFUSE_VERSION)
REJECT(rejected_closing, MRF_REFUSE_CLOSING)
REJECT(rejected_full, MRF_REFUSE_RESOURCES)
REJECT(rejected_key, MRF_REFUSE_KEY)
REJECT(rejected_barred, MRF_REFUSE_BARRED)
REJECT(rejected_strangely, (enum mrf_refuse_reason)99)
REJECT(rejected_by_half_a_challenge, MRF_REFUSE_CHALLENGE)

static void challenged(void)
{
	struct mrf_challenge challenge = { .instance = 7, .number = 1 };
	uint8_t data[MRF_PROTO_CHALLENGE_LEN];

	tell(MRF_CM_REJECTED, 0, data, mrf_challenge_encode(&challenge, data));
}

static void deadline(void)
{
	struct mrf_timer *timer = &peer->conn->timer;

	mrf_timer_stop(peer->ep->agent, timer);
	timer->over(timer);
}

static void last_deadline(void)
{
	peer->dial.until = 1;
	deadline();
}

static void kick(void)
{
	peer->kick.look(&peer->kick);
}

static void device_breaks_it(void)
{
	peer->conn->owner.calls->broke(&peer->conn->owner);
}

static void credentials_are_lost(void)
{
	struct mrf_owner *owner = &peer->conn->owner;

	if (owner->calls->going(owner))
		owner->calls->end(owner);
}

static void flush(void)
{
	struct mrf_wc wc = { .status = MRF_WC_FLUSHED, .kind = MRF_WC_RECV };

	peer->conn->owner.calls->message(&peer->conn->owner, 0, &wc);
}

static void message(void)
{
	mrf_agent_poll(node_agent(&p.a));
}

static void write_more(void)
{
	pair_write(&p, 64, 8);
}

static void cancel(void)
{
	fi_cancel(&p.a.ep->fid, pair_ctx(&p, 8));
}

static void address_is_removed(void)
{
	fi_av_remove(p.a.av, &p.to, 1, 0);
	node_agent(&p.a)->guest->removed(node_agent(&p.a));
}

/* As mrf_note_encode has it; made before the tests. */
static uint8_t forget[MRF_PROTO_NOTE_LEN];
static const uint8_t garbage[] = "nothing that this protocol knows";

static const struct happening happenings[] = {
	{ "nothing", other, ".LRAPYBDC", NULL, 0, false },
	{ "address resolved", address_resolved, ".RRAPYBDC", NULL, 0, false },
	{ "address not resolved in time", unresolved, ".LRAPYBDC", NULL, 0, false },
	{ "route resolved", route_resolved, ".LAAPYBDC", NULL, 0, false },
	{ "response", response, ".LRYPYBDC", NULL, 0, false },
	{ "response of a stranger", response_of_a_stranger, ".LRIPYBDC", NULL, 0, false },
	{ "response without the key", response, ".LRIPYBDC", NULL, 0, true },
	{ "established", established, ".LRAPYBDC", NULL, 0, false },
	{ "nobody listens", rejected_by_nobody, ".LRPPCCCC", NULL, 0, false },
	{ "another version", rejected_version, ".LRIPCCCC", NULL, 0, false },
	{ "the target closes", rejected_closing, ".LRIPCCCC", NULL, 0, false },
	{ "no room", rejected_full, ".LRPPCCCC", NULL, 0, false },
	{ "another key", rejected_key, ".LRIPCCCC", NULL, 0, false },
	{ "barred", rejected_barred, ".LRIPCCCC", NULL, 0, false },
	{ "a reason from the future", rejected_strangely, ".LRIPCCCC", NULL, 0, false },
	{ "half a challenge", rejected_by_half_a_challenge, ".LRIPCCCC", NULL, 0, true },
	{ "a challenge", challenged, ".LRLPCCCC", NULL, 0, true },
	{ "a challenge without a key", challenged, ".LRIPCCCC", NULL, 0, false },
	{ "no answer", no_answer, ".IIIPCCCC", NULL, 0, false },
	{ "unreachable", unreachable, ".IIIPCCCC", NULL, 0, false },
	{ "disconnected", disconnected, ".LRPPCCCC", NULL, 0, false },
	{ "the device is removed", removed, ".IIIICCCC", NULL, 0, false },
	{ "its deadline", deadline, ".ILLLYBDC", NULL, 0, false },
	{ "its last deadline", last_deadline, ".IIILYBDC", NULL, 0, false },
	{ "a kick", kick, "ILRAPYDDI", NULL, 0, false },
	{ "the device breaks it", device_breaks_it, ".LRAPCBDC", NULL, 0, false },
	{ "credentials are lost", credentials_are_lost, ".IIIIBBDC", NULL, 0, false },
	{ "a flush", flush, ".LRAPBBDC", NULL, 0, false },
	{ "a malformed message", message, ".....CCCC", garbage, sizeof(garbage), false },
	{ "pins are gone", message, ".....YBDC", forget, sizeof(forget), false },
	{ "another operation", write_more, "ILRAPYBDC", NULL, 0, false },
	{ "fi_cancel", cancel, "ILRAPYBDC", NULL, 0, false },
	{ "fi_av_remove", address_is_removed, "xLRAPYDDx", NULL, 0, false },
};

/* --- the states ------------------------------------------------------------------------- */

/* The operation that waits for the connection, or is in flight. */
static void write_it(void)
{
	pair_write(&p, 8, 8);
}

static void fail_one(void)
{
	fake_unreachable(1, FI_EHOSTUNREACH);
	write_it();
	want_err(&p.a, pair_ctx(&p, 8), FI_EHOSTUNREACH, NULL);
}

static void resolve_for_ever(void)
{
	fake_unresolved(UINT_MAX);
	write_it();
}

static void ask_for_ever(void)
{
	fake_lose_requests(UINT_MAX);
	write_it();
}

/* One of its attempts is in the state that the others begin with, too. */
static void connect_and_hold(void)
{
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	write_it();
}

/*
 * How it is brought about that the connection stays in the state base, and goes on to the one
 * that is wanted. The deadline of one that is READY ends its probes, so that it has none.
 */
static const struct way {
	void (*begin)(void);
	enum mrf_peer_state base;
	void (*go_on[3])(void);
} ways[MRF_PEER_STATES] = {
	[MRF_PEER_IDLE] = { fail_one, MRF_PEER_IDLE, { NULL } },
	[MRF_PEER_LOOKING] = { resolve_for_ever, MRF_PEER_LOOKING, { NULL } },
	[MRF_PEER_ROUTING] = { resolve_for_ever, MRF_PEER_LOOKING, { address_resolved } },
	[MRF_PEER_ASKING] = { ask_for_ever, MRF_PEER_ASKING, { NULL } },
	[MRF_PEER_PAUSED] = { ask_for_ever, MRF_PEER_ASKING, { rejected_by_nobody } },
	[MRF_PEER_READY] = { connect_and_hold, MRF_PEER_READY, { deadline } },
	[MRF_PEER_BROKEN] = { connect_and_hold, MRF_PEER_READY, { deadline, flush } },
	[MRF_PEER_DRAINING] = { connect_and_hold, MRF_PEER_READY, { deadline, flush, kick } },
	[MRF_PEER_CUT] = { connect_and_hold, MRF_PEER_READY, { deadline, disconnected } },
};

/* Is the peer still there? If so, is it as its state says? */
static char look(void)
{
	struct mrf_ep *ep = node_ep(&p.a);
	char found = 'x';

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->all_peers) {
		if (mrf_list_entry(node, struct mrf_peer, node) == peer)
			found = mrf_peer_right_locked(peer) ? names[peer->state] : '!';
	}
	mrf_lock_release(&ep->lock);
	return found;
}

static char seen[4]; /* in the state to be tested, and what came of it */

/* In the target's agent: sends a message to the only peer. */
static int send_message(struct mrf_agent *agent, void *arg)
{
	const struct happening *h = arg;
	struct mrf_passive *passive =
		mrf_list_entry(mrf_list_first(&node_ep(&p.b)->passive), struct mrf_passive, node);
	struct mrf_sge sge = { .addr = (uintptr_t)h->message, .len = (uint32_t)h->len };
	struct mrf_vwr wr = { .wr_id = MRF_WR_ID(passive->owner.id, MRF_PASSIVE_SLOTS),
			      .op = MRF_VWR_SEND,
			      .is_inline = true,
			      .nsge = 1,
			      .sge = &sge };

	(void)agent;
	passive->sending++;
	return mrf_vconn_post(passive->vconn, &wr);
}

/* In the initiator's agent, which does nothing else meanwhile. No ck_assert here. */
static int happen(struct mrf_agent *agent, void *arg)
{
	const struct happening *h = arg;
	const struct way *way = &ways[wanted];
	unsigned i;

	(void)agent;
	peer = node_ep(&p.a)->peers[MRF_CONN_ACCESS].n
		       ? node_ep(&p.a)->peers[MRF_CONN_ACCESS].of[p.to]
		       : NULL;
	if (!peer || look() != names[way->base])
		return -FI_EAGAIN;
	if (h->message && mrf_agent_command(node_agent(&p.b), arg, send_message))
		return -FI_EIO;
	for (i = 0; i < MRF_ARRAY_SIZE(way->go_on) && way->go_on[i]; i++)
		way->go_on[i]();
	seen[0] = look();
	h->happen();
	seen[1] = look();
	return 0;
}

static void walk_one(const struct happening *h)
{
	struct node_opt opt = *PLAIN;
	void *arg = (void *)(uintptr_t)h;
	int ret;

	opt.auth_key = h->keyed ? "a key" : NULL;
	fixture_setup();
	pair_open(&p, &opt);
	ways[wanted].begin();
	want_soon((ret = mrf_agent_command(node_agent(&p.a), arg, happen)) != -FI_EAGAIN);
	ck_assert_int_eq(ret, 0);
	ck_assert_msg(seen[0] == names[wanted], "brought to %c instead of %c", seen[0],
		      names[wanted]);
	ck_assert_msg(seen[1] == h->after[wanted], "%s in %c leads to %c instead of %c", h->what,
		      seen[0], seen[1], h->after[wanted]);
	/* Closing, in whichever state that is, leaves nothing behind. */
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	fake_heal();
	fake_hold(false);
	pair_close(&p);
	fixture_teardown();
}

START_TEST(whatever_happens_in_whatever_state)
{
	const struct happening *h = &happenings[_i];

	mrf_note_encode(MRF_MSG_FORGET, forget);
	for (wanted = MRF_PEER_IDLE; wanted < MRF_PEER_STATES; wanted++) {
		if (h->after[wanted] != '.')
			walk_one(h);
	}
}
END_TEST

static TCase *tables(void)
{
	TCase *tc = tcase_create("tables");

	tcase_add_loop_test(tc, moves_lead_where_the_diagram_says, 0, MRF_PEER_STATES);
	tcase_add_loop_test(tc, events_count_where_the_table_says, 0, MRF_PEER_STATES);
	return tc;
}

static TCase *walk(void)
{
	TCase *tc = tcase_create("walk");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, whatever_happens_in_whatever_state, 0,
			    (int)MRF_ARRAY_SIZE(happenings));
	return tc;
}

UNIT_MAIN("conn_state", tables, walk)
