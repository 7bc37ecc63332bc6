/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines break at random, in every way, under messages of every kind and length from one or two
 * senders. A message whose send succeeded arrives once, one whose send failed at most once; what
 * arrives is whole and in the order sent, and the receives complete in the order posted.
 *
 * In a round, messages are started while the fabric holds what is posted; something happens to
 * their lines; and then all sends have to end. Some receives are posted before and some behind that;
 * what none takes is received in a later round. After some rounds all has to be there, and nothing
 * may be left over.
 */
#include <sys/mman.h>
#include "breaks.h"
#include "ep/msg/inbox.h"
#include "proto/frame.h"

#define MAX 16384u
#define SETTINGS 50 /* each with its share of the rounds */
#define MSGS 256    /* places; a message's place is its first byte */
#define MOST 24	    /* messages in a round, */
#define ROUNDS 8    /* and rounds until all have to be there */
#define RECVS 512

enum kind { SEND, SENDV, SEND_DATA, INJECT, INJECT_DATA, KINDS };

static const char *const names[KINDS] = { "send", "sendv", "senddata", "inject", "injectdata" };

struct sender {
	struct node n;
	fi_addr_t to;
	struct fid_mr *mr; /* of out, in a domain with FI_MR_LOCAL; else NULL */
	unsigned left;	   /* sends that will be told of */
	unsigned unnamed;  /* errors of injected messages in this round */
	unsigned last;	   /* number of its message that arrived last */
};

static struct msg {
	enum kind kind;
	struct sender *from;
	unsigned number; /* from 1 on; its place is this modulo MSGS */
	unsigned round;
	size_t len;
	bool ended;
	int err;
	unsigned came;
	char text[200];
} msgs[MSGS];

static struct recv {
	uint8_t *buf;
	size_t len;
} recvs[RECVS];

static struct sender senders[2];
static unsigned nsenders;
static struct node r;
static struct fid_mr *in_mr; /* with FI_MR_LOCAL */
static uint8_t *out, *in;    /* MAX bytes per place of msgs and recvs */
static unsigned started;     /* messages so far */
static unsigned settled;     /* those up to this number have ended and come, or never will */
static unsigned posted;	     /* receives so far, */
static unsigned got;	     /* and of these completed */
static char setting[200];    /* what failures say of it */

#define SAYS(cond, ...)                                                                         \
	do {                                                                                    \
		char text_[300];                                                                \
                                                                                                \
		if (!(cond)) {                                                                  \
			snprintf(text_, sizeof(text_), __VA_ARGS__);                            \
			ck_abort_msg("%s, round %u: %s (%s)", setting, round_no, text_, #cond); \
		}                                                                               \
	} while (0)

/* As want_soon, and says which setting it was. */
#define SOON(cond)                                               \
	do {                                                     \
		int64_t end_ = mrf_now_ms() + LONG_MS;           \
		bool true_;                                      \
                                                                 \
		while (!(true_ = (cond)) && mrf_now_ms() < end_) \
			usleep(500);                             \
		SAYS(true_, "never came true: %s", #cond);       \
	} while (0)

/* --- one setting ------------------------------------------------------------------------- */

static unsigned spoil_note; /* the nth from now on */
static unsigned spoil_how;

/* A type, a flag and a count that cannot be. */
static const struct {
	size_t at;
	uint8_t with;
} spoilt[] = { { 0, MRF_FRAME_GRANT }, { 4, 0x80 }, { 8, 200 } };

/* For fake.on_send. */
static enum fake_fate on_frame(uint8_t *msg, size_t *len, bool from_target)
{
	if (from_target && spoil_note && !--spoil_note)
		msg[spoilt[spoil_how].at] ^= spoilt[spoil_how].with;
	return on_send(msg, len, from_target);
}

static void spoil(unsigned note)
{
	fake_freeze(true);
	spoil_note = note;
	spoil_how = any(MRF_ARRAY_SIZE(spoilt));
	fake_freeze(false);
}

static void sender_reg(struct sender *s)
{
	if (node_ep(&s->n)->domain->space.mode & FI_MR_LOCAL)
		s->mr = node_reg(&s->n, out, MSGS * MAX, FI_SEND, 1);
}

static void sender_open(struct sender *s, const struct node_opt *opt)
{
	*s = (struct sender){ 0 };
	node_open(&s->n, opt);
	s->to = node_insert(&s->n, &r);
	sender_reg(s);
}

static void setting_open(void)
{
	static const int modes[] = { 0, FI_MR_ALLOCATED, FI_MR_LOCAL,
				     FI_MR_LOCAL | FI_MR_ALLOCATED };
	struct node_opt opt = { .mr_mode = modes[any(4)] };
	unsigned i;

	fake.flush_local = one_in(3);
	fake.loses_recvs = fake.flush_local && one_in(2);
	fake.on_send = on_frame;
	nsenders = 1 + any(2);
	snprintf(setting, sizeof(setting), "seed %u (mode 0x%x, %u sender%s, %s%s)", seed,
		 opt.mr_mode, nsenders, nsenders == 1 ? "" : "s", fake.flush_local ? "6.12" : "6.1",
		 fake.loses_recvs ? ", loses receives" : "");
	out = pages((size_t)MSGS * MAX);
	in = pages((size_t)RECVS * MAX);
	/* Pages that are there: what has to wait for its page may complete later. */
	memset(in, 0, (size_t)RECVS * MAX);
	node_open(&r, &opt);
	in_mr = opt.mr_mode & FI_MR_LOCAL ? node_reg(&r, in, (size_t)RECVS * MAX, FI_RECV, 1)
					  : NULL;
	for (i = 0; i < nsenders; i++)
		sender_open(&senders[i], &opt);
	started = settled = posted = got = 0;
}

static unsigned slots_missing(void)
{
	struct mrf_ep *ep = node_ep(&r);
	unsigned count;

	mrf_lock_take(&ep->lock);
	count = ep->inbox->slots.count;
	mrf_lock_release(&ep->lock);
	return count - fake_shared_recvs();
}

static void sender_close(struct sender *s)
{
	if (s->mr)
		must_close(&s->mr->fid);
	node_close(&s->n);
}

static void setting_close(void)
{
	unsigned i;

	for (i = 0; i < nsenders; i++)
		sender_close(&senders[i]);
	/* No line may hold any now. */
	SOON(!slots_missing());
	if (in_mr)
		must_close(&in_mr->fid);
	node_close(&r);
	munmap(out, (size_t)MSGS * MAX);
	munmap(in, (size_t)RECVS * MAX);
}

/* --- receives ---------------------------------------------------------------------------- */

static struct msg *msg_at(unsigned number)
{
	return &msgs[number % MSGS];
}

/* One buffer, or two. */
static void post_recv(void)
{
	struct recv *recv = &recvs[posted % RECVS];
	void *desc = in_mr ? fi_mr_desc(in_mr) : NULL, *descs[] = { desc, desc };
	size_t half = any(MAX);
	struct iovec iov[2];
	ssize_t ret;

	ck_assert_uint_lt(posted - got, RECVS);
	recv->buf = in + (size_t)(posted++ % RECVS) * MAX;
	recv->len = one_in(10) ? any(MAX) : MAX;
	memset(recv->buf, 0, 32);
	if (one_in(4) && recv->len > half) {
		iov[0] = (struct iovec){ recv->buf, half };
		iov[1] = (struct iovec){ recv->buf + half, recv->len - half };
		ret = fi_recvv(r.ep, iov, descs, 2, FI_ADDR_UNSPEC, recv);
	} else {
		ret = fi_recv(r.ep, recv->buf, recv->len, desc, FI_ADDR_UNSPEC, recv);
	}
	SAYS(!ret, "fi_recv: %zd", ret);
}

static bool has_data(const struct msg *m)
{
	return m->kind == SEND_DATA || m->kind == INJECT_DATA;
}

/*
 * Of a message of no bytes its data are the name, or there is only one at a time. One that came to a receive
 * of no bytes has at least its length.
 */
static struct msg *named(const struct recv *recv, size_t len, uint64_t flags, uint64_t data)
{
	unsigned i;

	if (flags & FI_REMOTE_CQ_DATA)
		return msg_at((unsigned)data);
	if (len && recv->len)
		return msg_at(recv->buf[0]);
	for (i = settled + 1; i <= started; i++) {
		if (!has_data(msg_at(i)) && msg_at(i)->len == len && !msg_at(i)->came)
			return msg_at(i);
	}
	return msg_at(started);
}

/* fits: how many of its bytes. */
static void arrived(const struct recv *recv, size_t fits, size_t len, uint64_t flags, uint64_t data)
{
	struct msg *m = named(recv, len, flags, data);

	SAYS(recv == &recvs[got % RECVS], "receive %zu instead of %u", recv - recvs, got % RECVS);
	got++;
	SAYS(m->number > settled && m->number <= started, "message %u comes late, or never was",
	     m->number);
	SAYS(!m->came++, "%s %u of round %u comes twice; its send ended with %d: %s",
	     names[m->kind], m->number, m->round, m->err, m->text);
	SAYS(m->number > m->from->last, "message %u of round %u comes behind %u: %d: %s", m->number,
	     m->round, m->from->last, m->err, m->text);
	m->from->last = m->number;
	SAYS(len == m->len, "%s %u has %zu bytes of %zu", names[m->kind], m->number, len, m->len);
	SAYS(has_data(m) == !!(flags & FI_REMOTE_CQ_DATA) && (!has_data(m) || data == m->number),
	     "%s %u comes with data %lu", names[m->kind], m->number, (unsigned long)data);
	SAYS(filled(recv->buf, fits, m->number % MSGS), "%s %u of %zu bytes: other bytes",
	     names[m->kind], m->number, len);
}

static void arrived_cut(void)
{
	struct fi_cq_err_entry e = { 0 };
	const struct recv *recv;

	ck_assert_int_eq(fi_cq_readerr(r.cq, &e, 0), 1);
	recv = e.op_context;
	SAYS(e.err == FI_ETRUNC && e.len == recv->len && e.olen, "a receive ended with %d: %s",
	     e.err, e.err_data ? (char *)e.err_data : "");
	arrived(recv, recv->len, e.len + e.olen, e.flags, e.data);
}

/* Takes what has arrived, or waits for one. */
static unsigned take_arrived(bool wait)
{
	struct fi_cq_data_entry entry;
	const struct recv *recv;
	unsigned n = 0;
	ssize_t ret;

	do {
		ret = wait && !n ? fi_cq_sread(r.cq, &entry, 1, NULL, LONG_MS)
				 : fi_cq_read(r.cq, &entry, 1);
		if (ret == 1) {
			recv = entry.op_context;
			SAYS(entry.len <= recv->len, "too many bytes");
			arrived(recv, entry.len, entry.len, entry.flags, entry.data);
		} else if (ret == -FI_EAVAIL) {
			arrived_cut();
		}
		n++;
	} while (ret != -FI_EAGAIN);
	return n - 1;
}

/* Messages that have to arrive and have not. */
static unsigned missing(void)
{
	unsigned i, n = 0;

	for (i = settled + 1; i <= started; i++) {
		const struct msg *m = msg_at(i);

		n += m->ended && !m->err && !m->came;
	}
	return n;
}

static void take_all_arrived(void)
{
	while (missing() && posted != got)
		SAYS(take_arrived(true), "%u messages never arrive, %u receives are posted",
		     missing(), posted - got);
}

/* --- sends -------------------------------------------------------------------------------- */

static bool may_be_nameless(void)
{
	unsigned i;

	for (i = settled + 1; i < started; i++) {
		if (!has_data(msg_at(i)) && !msg_at(i)->len)
			return false;
	}
	return true;
}

static size_t any_len(enum kind kind)
{
	size_t most = kind == INJECT || kind == INJECT_DATA ? 257 : one_in(2) ? 300 : MAX + 1;
	size_t len = one_in(10) ? most - 1 : one_in(10) ? 0 : any((unsigned)most);

	return len || kind == SEND_DATA || kind == INJECT_DATA || may_be_nameless() ? len : 1;
}

static ssize_t start_msg(struct msg *m, uint8_t *buf)
{
	struct sender *s = m->from;
	void *desc = s->mr ? fi_mr_desc(s->mr) : NULL, *descs[] = { desc, desc };
	size_t half = m->len / 2;
	const struct iovec iov[] = { { buf, half }, { buf + half, m->len - half } };

	switch (m->kind) {
	case SEND:
		return fi_send(s->n.ep, buf, m->len, desc, s->to, m);
	case SENDV:
		return fi_sendv(s->n.ep, iov, descs, 2, s->to, m);
	case SEND_DATA:
		return fi_senddata(s->n.ep, buf, m->len, desc, m->number, s->to, m);
	case INJECT:
		return fi_inject(s->n.ep, buf, m->len, s->to);
	case INJECT_DATA:
		return fi_injectdata(s->n.ep, buf, m->len, m->number, s->to);
	case KINDS:
		break;
	}
	return -FI_EINVAL;
}

static bool is_injected(const struct msg *m)
{
	return m->kind == INJECT || m->kind == INJECT_DATA;
}

static void start(enum kind kind, struct sender *s)
{
	struct msg *m = msg_at(++started);
	uint8_t *buf = out + (size_t)(started % MSGS) * MAX;
	ssize_t ret;

	ck_assert_uint_lt(started - settled, MSGS);
	*m = (struct msg){
		.kind = kind, .from = s, .number = started, .round = round_no, .len = 1
	};
	m->len = any_len(kind);
	fill(buf, m->len, started % MSGS);
	ret = start_msg(m, buf);
	SAYS(!ret, "%s of %zu bytes: %zd", names[kind], m->len, ret);
	s->left += !is_injected(m);
}

static void take_error(struct sender *s)
{
	struct fi_cq_err_entry e = { 0 };
	struct msg *m;

	ck_assert_int_eq(fi_cq_readerr(s->n.cq, &e, 0), 1);
	m = e.op_context;
	s->unnamed += !m;
	if (!m)
		return;
	SAYS(!m->ended && m->from == s, "%s %u ends twice", names[m->kind], m->number);
	m->ended = true;
	m->err = e.err;
	s->left--;
	snprintf(m->text, sizeof(m->text), "%s", e.err_data ? (char *)e.err_data : "");
}

static bool drained(struct sender *s)
{
	bool idle = node_idle(&s->n);
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(s->n.cq, &entry, 1)) == -FI_EAVAIL)
		take_error(s);
	ck_assert_int_eq(ret, -FI_EAGAIN);
	return idle;
}

static void take_ends(struct sender *s)
{
	struct fi_cq_data_entry entry;
	struct msg *m;
	ssize_t ret;

	while (s->left) {
		ret = fi_cq_sread(s->n.cq, &entry, 1, NULL, LONG_MS);
		SAYS(ret == 1 || ret == -FI_EAVAIL, "%u sends never end (%zd)", s->left, ret);
		if (ret != 1) {
			take_error(s);
			continue;
		}
		m = entry.op_context;
		SAYS(!m->ended && m->from == s, "%s %u ends twice", names[m->kind], m->number);
		m->ended = true;
		s->left--;
	}
	SOON(drained(s));
}

/* Of injected messages only errors are told: if there are none, all have to come. */
static void end_injected(void)
{
	unsigned i;

	for (i = settled + 1; i <= started; i++) {
		struct msg *m = msg_at(i);

		if (m->ended || !is_injected(m))
			continue;
		m->ended = true;
		m->err = m->from->unnamed ? -1 : 0;
	}
}

/* --- what is left at the end --------------------------------------------------------------- */

static unsigned places_of(const struct node *n, bool sends)
{
	struct mrf_ep *ep = node_ep(n);
	unsigned lines = 0;

	if (sends) {
		mrf_list_each (node, &ep->all_peers)
			lines += mrf_list_entry(node, struct mrf_peer, node)->conn != NULL;
	} else {
		mrf_list_each (node, &ep->inbox->inlets)
			lines++;
	}
	return lines * MRF_LINE_PLACES;
}

static bool inbox_right_locked(const struct mrf_inbox *inbox)
{
	unsigned windows = 0, origins = 0;

	mrf_list_each (node, &inbox->inlets) {
		const struct mrf_inlet *inlet = mrf_list_entry(node, struct mrf_inlet, node);

		windows += inlet->counts ? inlet->origin->window : 0;
	}
	mrf_list_each (node, &inbox->origins) {
		if (mrf_list_entry(node, struct mrf_origin, node)->held)
			return false;
		origins++;
	}
	return windows == inbox->windows && origins == inbox->norigins && origins == nsenders &&
	       !inbox->kept && !inbox->untagged.msgs && inbox->untagged.recvs == posted - got &&
	       mrf_list_empty(&inbox->late) && !inbox->copying &&
	       inbox->places == places_of(&r, false);
}

static bool receiver_right(void)
{
	struct mrf_ep *ep = node_ep(&r);
	bool right;

	mrf_lock_take(&ep->lock);
	right = inbox_right_locked(ep->inbox);
	mrf_lock_release(&ep->lock);
	return right;
}

static bool sender_right(const struct node *n)
{
	struct mrf_ep *ep = node_ep(n);
	bool right;

	mrf_lock_take(&ep->lock);
	right = ep->inbox->places == places_of(n, true);
	mrf_lock_release(&ep->lock);
	return right && node_idle(n);
}

/* Messages to which nothing happens: what has not come before them will not come. */
static void send_last(void)
{
	unsigned i;

	for (i = 0; i < nsenders; i++) {
		start(SEND_DATA, &senders[i]);
		take_ends(&senders[i]);
		SAYS(!msg_at(started)->err, "the last message fails: %s", msg_at(started)->text);
	}
}

static void all_is_there(void)
{
	unsigned i;

	send_last();
	while (missing() > posted - got)
		post_recv();
	/* Those that have failed may come, too, and take a receive. */
	while (missing()) {
		if (posted == got)
			post_recv();
		take_all_arrived();
	}
	settled = started;
	SOON(receiver_right());
	for (i = 0; i < nsenders; i++)
		SOON(sender_right(&senders[i].n));
	if (!fake.loses_recvs)
		SOON(!slots_missing());
}

/* --- rounds ------------------------------------------------------------------------------- */

static void close_region(struct sender *s)
{
	if (!s->mr)
		return;
	must_close(&s->mr->fid);
	s->mr = NULL;
}

/* Behind what the fabric holds. */
static void happens(unsigned n)
{
	switch (any(8)) {
	case 0:
		fake_break_send(1 + any(n));
		return;
	case 1:
		if (one_in(2))
			fake_run_unacknowledged();
		close_region(&senders[any(nsenders)]);
		return;
	case 2:
		spoil(1 + any(2));
		return;
	default:
		break_some(&r, nsenders == 1, n + 1, fake_break_frame);
	}
}

static void start_some(unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		start(any(KINDS), &senders[any(nsenders)]);
}

static void post_some(void)
{
	unsigned n = one_in(3) ? 0 : any(MOST);

	/* Not so many that they run out of buffers. */
	while (n-- && posted - got < RECVS / 2)
		post_recv();
}

static void round_run(void)
{
	unsigned i, n = one_in(3) ? 1 : 1 + any(MOST);

	post_some();
	fake_hold_all(!one_in(6));
	start_some(n);
	happens(n);
	if (one_in(3))
		take_arrived(false);
	fake_hold_all(false);
	for (i = 0; i < nsenders; i++)
		take_ends(&senders[i]);
	end_injected();
	fake_heal();
	refuse(0);
	spoil(0);
	for (i = 0; i < nsenders; i++) {
		senders[i].unnamed = 0;
		if (!senders[i].mr)
			sender_reg(&senders[i]);
	}
	post_some();
	take_all_arrived();
	if (round_no % ROUNDS == 0)
		all_is_there();
}

START_TEST(what_breaks_arrives_once_and_in_order)
{
	if (!setting_begin((unsigned)_i, SETTINGS))
		return;
	setting_open();
	for (round_no = 1; round_no <= rounds_of(SETTINGS); round_no++) {
		forget_log();
		round_run();
	}
	all_is_there();
	setting_close();
}
END_TEST

static TCase *tcase_breaks(void)
{
	TCase *tc = tcase_create("breaks");

	tcase_set_timeout(tc, 600);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, what_breaks_arrives_once_and_in_order, 0, SETTINGS);
	return tc;
}

UNIT_MAIN("breaks of lines", tcase_breaks)
