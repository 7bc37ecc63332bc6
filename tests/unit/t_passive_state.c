/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every state of a connection that a peer has opened and everything that can happen in it:
 * ep/model/conn_state.h. First the table alone; then a hand-made initiator's connection is
 * brought into each state, in the target's agent, so that nothing else happens to it
 * meanwhile.
 */
#include "ep/link/passive.h"
#include "loop/agent_calls.h"
#include "aborts.h"
#include "raw.h"

/* A letter per state, in their order; a lower-case x: the connection has been destroyed. */
static const char names[] = "NHUhBD";

_Static_assert(sizeof(names) - 1 == MRF_PASSIVE_STATES, "a letter per state");

/* --- the table -------------------------------------------------------------------------- */

/* By state: where the moves lead to; a dot where there is none. */
static const char *const moves[MRF_PASSIVE_STATES] = {
	/*                  ADMIT CONFIRM BREAK DISCONNECT */
	[MRF_PASSIVE_NEW] = "H...",    [MRF_PASSIVE_HALF] = ".UhD",
	[MRF_PASSIVE_UP] = ".UBD",     [MRF_PASSIVE_HALF_BROKEN] = ".BhD",
	[MRF_PASSIVE_BROKEN] = ".BBD", [MRF_PASSIVE_DISCONNECTED] = ".DDD",
};

static enum mrf_passive_state state_of(char name)
{
	const char *at = strchr(names, name);

	return at ? (enum mrf_passive_state)(at - names) : MRF_PASSIVE_STATES;
}

/* A move that is not in the diagram is refused: it ends the process, or changes nothing. */
static struct mrf_passive *mover;
static enum mrf_passive_move refused;

static void move_nowhere(void)
{
	enum mrf_passive_state before = mover->state;

	mrf_passive_move(mover, refused);
	if (mover->state != before)
		_exit(1);
}

START_TEST(moves_lead_where_the_diagram_says)
{
	static struct mrf_passive passive;
	unsigned move;

	for (move = 0; move < MRF_PASSIVE_MOVES; move++) {
		enum mrf_passive_state want = state_of(moves[_i][move]);

		passive.state = (enum mrf_passive_state)_i;
		ck_assert_int_eq(mrf_passive_next(passive.state, (enum mrf_passive_move)move),
				 want);
		if (want == MRF_PASSIVE_STATES) {
			mover = &passive;
			refused = (enum mrf_passive_move)move;
			ck_assert_int_eq(aborts(move_nowhere), LIBRARY_CHECKS);
			continue;
		}
		mrf_passive_move(&passive, (enum mrf_passive_move)move);
		ck_assert_int_eq(passive.state, want);
	}
}
END_TEST

/* --- what can happen -------------------------------------------------------------------- */

static struct node n;
static struct raw raw;
static struct mrf_passive *passive;
static uint64_t id; /* of the connection, which the agent never gives to another */
static enum mrf_passive_state wanted;

static const struct mrf_owner_calls *calls(void)
{
	return passive->owner.calls;
}

static const struct mrf_agent_guest *guest(void)
{
	return node_agent(&n)->guest;
}

static void tell(enum mrf_cm_type type)
{
	struct mrf_cm_event event = { .type = type, .conn = passive->vconn };

	calls()->event(&passive->owner, &event);
}

#define TELL(name, type)       \
	static void name(void) \
	{                      \
		tell(type);    \
	}

TELL(established, MRF_CM_ESTABLISHED)
TELL(rejected, MRF_CM_REJECTED)
TELL(failed, MRF_CM_FAILED)
TELL(disconnected, MRF_CM_DISCONNECTED)
TELL(removed, MRF_CM_REMOVED)
TELL(response, MRF_CM_RESPONSE)
TELL(other, MRF_CM_OTHER)

static void fire(struct mrf_timer *timer)
{
	mrf_timer_stop(passive->ep->agent, timer);
	timer->over(timer);
}

static void never_confirmed(void)
{
	fire(&passive->until);
}

static void look_at_slots(void)
{
	fire(&passive->look);
}

static void flush(void)
{
	struct mrf_wc wc = { .status = MRF_WC_FLUSHED, .kind = MRF_WC_RECV };

	calls()->message(&passive->owner, 0, &wc);
}

static void device_breaks_it(void)
{
	calls()->broke(&passive->owner);
}

static void credentials_are_lost(void)
{
	calls()->end(&passive->owner);
}

static void pins_are_gone(void)
{
	calls()->forget(&passive->owner);
}

static void take_messages(void)
{
	mrf_agent_poll(node_agent(&n));
}

static void take_and_serve(void)
{
	take_messages();
	guest()->serve(node_agent(&n));
}

static void turn_is_over(void)
{
	guest()->over(node_agent(&n));
}

static uint8_t question[MRF_PROTO_ASK_LEN];
static const uint8_t garbage[MRF_PROTO_ASK_LEN] = "nothing that this protocol knows";

static const struct happening {
	const char *what;
	void (*happen)(void);
	/* By state, where the connection is then; a dot: it cannot happen there. */
	const char *after;
	const uint8_t *message; /* as long as a question; has arrived before, not taken in */
} happenings[] = {
	{ "established", established, ".UUBBD", NULL },
	{ "rejected", rejected, ".xxxxx", NULL },
	{ "failed", failed, ".xxxxx", NULL },
	{ "disconnected", disconnected, ".xxxxx", NULL },
	{ "the device is removed", removed, ".xxxxx", NULL },
	{ "a response", response, ".HUhBD", NULL },
	{ "nothing", other, ".HUhBD", NULL },
	{ "the deadline of the confirmation", never_confirmed, ".x.x..", NULL },
	{ "time to look at slots", look_at_slots, ".HUhBD", NULL },
	{ "a flush", flush, ".hBhBD", NULL },
	{ "the device breaks it", device_breaks_it, ".DDDDD", NULL },
	{ "credentials are lost", credentials_are_lost, ".xxxxx", NULL },
	{ "pins are gone", pins_are_gone, ".HUhBD", NULL },
	{ "a question", take_messages, ".UUBBD", question },
	{ "a question and its turn", take_and_serve, ".UUBBD", question },
	{ "garbage", take_messages, ".UUBBD", garbage },
	{ "garbage and its turn", take_and_serve, ".DDBBD", garbage },
	{ "the end of the agent's turn", turn_is_over, ".HUhBx", NULL },
};

/* --- the states ------------------------------------------------------------------------- */

/* From HALF, in which an initiator leaves it that does not confirm it. */
static void (*const ways[MRF_PASSIVE_STATES][2])(void) = {
	[MRF_PASSIVE_HALF] = { NULL },
	[MRF_PASSIVE_UP] = { established },
	[MRF_PASSIVE_HALF_BROKEN] = { flush },
	[MRF_PASSIVE_BROKEN] = { established, flush },
	[MRF_PASSIVE_DISCONNECTED] = { device_breaks_it },
};

/* Is the connection still there? If so, is it as its state says? */
static char look(void)
{
	if (!mrf_idmap_find(&node_agent(&n)->owners, id))
		return 'x';
	return mrf_passive_right(passive) ? names[passive->state] : '!';
}

/* The initiator confirms the connection and sends at once; its event is not read meanwhile. */
static int send_message(const uint8_t *message)
{
	int ret = mrf_vconn_establish(raw.conn);

	return ret ? ret : raw_send(&raw, message, sizeof(question));
}

static char seen[2]; /* in the state to be tested, and what came of it */

/* In the target's agent, which does nothing else meanwhile. No ck_assert here. */
static int happen(struct mrf_agent *agent, void *arg)
{
	const struct happening *h = arg;
	unsigned i;

	(void)agent;
	passive = mrf_list_entry(mrf_list_first(&node_ep(&n)->passive), struct mrf_passive, node);
	id = passive->owner.id;
	if (look() != 'H' || (h->message && send_message(h->message)))
		return -FI_EIO;
	for (i = 0; i < 2 && ways[wanted][i]; i++)
		ways[wanted][i]();
	seen[0] = look();
	h->happen();
	seen[1] = look();
	return 0;
}

static void walk_one(const struct happening *h)
{
	struct mrf_hello hello = { .ticket = 1 };
	uint8_t data[MRF_PROTO_HELLO_LEN];

	fixture_setup();
	node_open(&n, PLAIN);
	raw_open(&raw);
	ck_assert_int_eq(raw_dial(&raw, node_port(&n), data, mrf_hello_encode(&hello, data)).type,
			 MRF_CM_RESPONSE);
	ck_assert_int_eq(mrf_agent_command(node_agent(&n), (void *)(uintptr_t)h, happen), 0);
	ck_assert_msg(seen[0] == names[wanted], "brought to %c instead of %c", seen[0],
		      names[wanted]);
	ck_assert_msg(seen[1] == h->after[wanted], "%s in %c leads to %c instead of %c", h->what,
		      seen[0], seen[1], h->after[wanted]);
	/* Closing, in whichever state that is, leaves nothing behind. */
	node_close(&n);
	raw_close(&raw);
	fixture_teardown();
}

START_TEST(whatever_happens_in_whatever_state)
{
	const struct happening *h = &happenings[_i];
	struct mrf_ask ask = { .cookie = 42, .key = 5, .len = 8 };

	mrf_ask_encode(&ask, question);
	for (wanted = MRF_PASSIVE_HALF; wanted < MRF_PASSIVE_STATES; wanted++) {
		if (h->after[wanted] != '.')
			walk_one(h);
	}
}
END_TEST

static TCase *table(void)
{
	TCase *tc = tcase_create("table");

	tcase_add_loop_test(tc, moves_lead_where_the_diagram_says, 0, MRF_PASSIVE_STATES);
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

UNIT_MAIN("passive_state", table, walk)
