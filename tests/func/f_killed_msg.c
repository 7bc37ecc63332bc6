/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that are killed at some moment (victims.h) exchange messages with one that survives. Each
 * send of the survivor ends in time, and says why if it failed. All messages that arrive are whole,
 * and come in order and once; all that a victim knew to have come do. The survivor's receives stay
 * posted, and the next victim finds it in order, also if it has the address of the one before.
 *
 * On newer kernels a message that breaks off takes a receive with it that all lines of the endpoint
 * share (lib/ep/msg/lost.h). In the last case more messages break off than there are such receives.
 */
#include <arpa/inet.h>
#include <unistd.h>
#include "harness.h"
#include "victims.h"

#define MOST 26u /* victims of a case */
#define MAX 16384u
#define FLYING 8u	/* messages that one side has sent and that have not ended, for each line */
#define POSTED 16u	/* receives of one side */
#define OURS (1u << 31) /* messages of the survivor to a victim with that number */
#define HEAP_SLACK 131072 /* receives that all lines share may become more */
#define AT_LAST \
	100 /* messages of the last victim: three times the receives that there are at first */

#define SHARED 32 /* receives that all lines to the survivor share, when messages break off */
#define BREAKS \
	4 /* messages of a victim that do, before it sends others; of one of them SHARED more */

/* What is different in a part. */
enum { SAME_PLACE = 1, BROKEN = 2 };
static unsigned extra;

struct shared {
	struct victims v;
	char survivor[NAME_LEN], victim[NAME_LEN];
	/* By each victim: messages that it began to send, and what it had completions of. */
	atomic_uint begun[MOST + 1], known[MOST + 1];
};

static struct shared *sh;

/* --- messages --------------------------------------------------------------------------- */

/* All of a message follows from who sent it, and how many that one has sent before. */
static size_t make(uint8_t *at, uint32_t from, uint32_t seq)
{
	static const size_t sizes[] = { 8, 100, 300, 4096, 9000, MAX };
	uint64_t head = (uint64_t)from << 32 | seq, state = head;
	size_t len = sizes[rnd(&state) % 6];

	memcpy(at, &head, sizeof(head));
	pattern(at + sizeof(head), head, 0, len - sizeof(head));
	return len;
}

struct self {
	struct fab fab;
	uint32_t victim;    /* own number; 0: the survivor */
	struct buf out, in; /* FLYING and POSTED times MAX bytes */
	bool busy[FLYING];  /* being sent */
	bool *posted;	    /* POSTED of them: context of a receive */
	unsigned flying;
	uint32_t sent;		 /* messages to the current peer */
	uint32_t next[MOST + 1]; /* numbers of those that come next, by their victim */
};

static void post_recv(struct self *s, unsigned slot)
{
	static bool posted[POSTED];
	struct msg_part m = { .buf = &s->in,
			      .off = slot * MAX,
			      .len = MAX,
			      .to = FI_ADDR_UNSPEC,
			      .ctx = &posted[slot] };

	s->posted = posted;
	must_ok((int)msg_recv(&s->fab, &m));
	posted[slot] = true;
}

/* The next one of whoever sent it, with all that belongs to it. */
static void look_at(struct self *s, const uint8_t *got, size_t len)
{
	static uint8_t want[MAX];
	uint64_t head;
	uint32_t from, number, last = atomic_load(&sh->v.current);

	memcpy(&head, got, sizeof(head));
	from = (uint32_t)(head >> 32);
	number = s->victim ? s->victim : from;
	must(from == (s->victim ? OURS | number : number) && number && number <= last,
	     "of %zu bytes, the head is 0x%llx", len, (unsigned long long)head);
	must((uint32_t)head == s->next[number], "message %u of victim %u comes, not number %u",
	     (uint32_t)head, number, s->next[number]);
	must(len == make(want, from, (uint32_t)head) && !memcmp(got, want, len),
	     "message %u of victim %u is not what was sent, or its %zu bytes are not all",
	     (uint32_t)head, number, len);
	s->next[number]++;
}

static void came(struct self *s, const struct done *d)
{
	unsigned slot = (unsigned)((bool *)d->ctx - s->posted);

	must(!d->err, "a receive ends: err %d, %s", d->err, d->text);
	must(slot < POSTED && s->posted[slot], "a completion of no receive: %p", d->ctx);
	s->posted[slot] = false;
	look_at(s, s->in.mem + slot * MAX, d->len);
	post_recv(s, slot);
}

static void send_one(struct self *s, fi_addr_t to, uint32_t from)
{
	struct msg_part m = { .buf = &s->out, .to = to };
	unsigned slot = 0;

	while (s->busy[slot])
		slot++;
	m.off = slot * MAX;
	m.len = make(s->out.mem + m.off, from, s->sent++);
	m.ctx = &s->busy[slot];
	if (s->victim)
		atomic_fetch_add(&sh->begun[s->victim], 1);
	must_ok((int)msg_send(&s->fab, &m));
	s->busy[slot] = true;
	s->flying++;
}

/* A send has ended: true. */
static bool take(struct self *s, struct done *d)
{
	unsigned slot;

	if (!fab_poll(&s->fab, d)) {
		usleep(200);
		return false;
	}
	if (d->flags & FI_RECV) {
		came(s, d);
		return false;
	}
	slot = (unsigned)((bool *)d->ctx - s->busy);
	must(d->flags == (FI_MSG | FI_SEND), "flags 0x%llx", (unsigned long long)d->flags);
	must(slot < FLYING && s->busy[slot], "a completion of nothing: %p", d->ctx);
	s->busy[slot] = false;
	s->flying--;
	return true;
}

static void self_open(struct self *s, const struct mode *mode, const struct fab_opt *opt)
{
	fab_open(&s->fab, mode, opt);
	fab_buf(&s->fab, &s->out, FLYING * MAX, 1);
	fab_buf(&s->fab, &s->in, POSTED * MAX, 2);
	for (unsigned slot = 0; slot < POSTED; slot++)
		post_recv(s, slot);
}

/* --- the victim ------------------------------------------------------------------------- */

/* Where the one before was, if there was one. */
static struct fab_opt place(void)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sh->victim;
	struct fab_opt opt = { 0 };

	if (!(extra & SAME_PLACE) || !in->sin_port)
		return opt;
	inet_ntop(AF_INET, &in->sin_addr, opt.node, sizeof(opt.node));
	snprintf(opt.service, sizeof(opt.service), "%u", ntohs(in->sin_port));
	return opt;
}

/*
 * A message of which the device sends only the first half: the region of the other half is closed
 * while the line is being made.
 */
static void break_off(struct self *s, fi_addr_t to)
{
	struct iovec iov[2] = { { s->out.mem, MAX / 2 } };
	void *desc[2] = { s->out.desc };
	struct buf gone;
	struct done d;

	fab_buf(&s->fab, &gone, MAX / 2, 3);
	iov[1] = (struct iovec){ gone.mem, MAX / 2 };
	desc[1] = gone.desc;
	must_ok((int)fi_sendv(s->fab.ep, iov, desc, 2, to, &gone));
	fab_buf_close(&gone);
	must(fab_done(&s->fab, &d, SOON) && d.ctx == &gone, "no end of half a message");
	must(d.err == FI_EFAULT || d.err == FI_ECONNRESET, "half a message: err %d, %s", d.err,
	     d.text);
}

static unsigned breaks(unsigned number)
{
	if (!(extra & BROKEN))
		return 0;
	return number == WARM + 1 ? SHARED + BREAKS : BREAKS;
}

static void victim(const struct mode *mode, unsigned number)
{
	struct self s = { .victim = number };
	enum role role = atomic_load(&sh->v.role);
	struct fab_opt opt = place();
	struct done d;
	fi_addr_t to;

	self_open(&s, mode, &opt);
	memcpy(sh->victim, s.fab.name, sizeof(sh->victim));
	to = fab_insert(&s.fab, sh->survivor);
	for (unsigned i = 0; i < breaks(number); i++)
		break_off(&s, to);
	atomic_store(&sh->v.victim_there, true);
	for (;;) {
		while (role != SURVIVOR_ONLY && s.flying < FLYING)
			send_one(&s, to, number);
		if (!take(&s, &d))
			continue;
		must(!d.err, "victim %u: err %d (%s) while both were well", number, d.err, d.text);
		atomic_fetch_add(&sh->known[number], 1);
		atomic_fetch_add(&sh->v.served_by_victim, 1);
	}
}

/* --- the survivor ----------------------------------------------------------------------- */

static void ended(const struct done *d, unsigned number)
{
	if (!d->err) {
		atomic_fetch_add(&sh->v.served_by_survivor, 1);
		return;
	}
	victims_error(number, d->err);
	must(strlen(d->text) > strlen(" | "), "err %d (%s), and no word more", d->err,
	     fi_strerror(d->err));
}

static void finish_in_time(struct self *s, unsigned number)
{
	long killed = now_ms();
	struct done d;

	while (s->flying) {
		must(now_ms() - killed < IN_TIME, "victim %u: %u sends go on %ld ms after its end",
		     number, s->flying, now_ms() - killed);
		if (take(s, &d))
			ended(&d, number);
	}
	victims_ended(killed);
}

/* What it knew to have come may still be on its way to the queue. */
static void all_have_come(struct self *s, unsigned number)
{
	unsigned begun = atomic_load(&sh->begun[number]), known = atomic_load(&sh->known[number]);
	long end = now_ms() + IN_TIME;
	struct done d;

	while (s->next[number] < known && now_ms() < end)
		must(!take(s, &d), "a completion too many");
	must(s->next[number] >= known && s->next[number] <= begun,
	     "%u messages of victim %u came, of %u that it began and %u that it knew to have come",
	     s->next[number], number, begun, known);
}

/*
 * As long as it lives, and, if the survivor sends at all, once after that. Every other time the
 * survivor looks away meanwhile, and messages wait in the queue of a line that ends.
 */
static void deal_with(struct self *s, unsigned number)
{
	enum role role = atomic_load(&sh->v.role);
	struct done d;
	fi_addr_t to;

	if (!victims_met())
		return;
	to = fab_insert(&s->fab, sh->victim);
	s->sent = 0;
	while (!atomic_load(&sh->v.killed)) {
		if (number % 2 && atomic_load(&sh->v.dying)) {
			usleep(200);
			continue;
		}
		while (role != VICTIM_ONLY && s->flying < FLYING)
			send_one(s, to, OURS | number);
		if (take(s, &d))
			ended(&d, number);
	}
	if (role != VICTIM_ONLY && s->flying < FLYING)
		send_one(s, to, OURS | number);
	finish_in_time(s, number);
	if (!(extra & SAME_PLACE))
		must_ok(fi_av_remove(s->fab.av, &to, 1, 0));
}

/* All receives are there still. */
static void self_close(struct self *s)
{
	struct done d;

	for (unsigned slot = 0; slot < POSTED; slot++) {
		must_ok((int)fi_cancel(&s->fab.ep->fid, &s->posted[slot]));
		must(fab_done(&s->fab, &d, SOON) && d.err == FI_ECANCELED &&
			     d.ctx == &s->posted[slot],
		     "receive %u is not posted: err %d, %s", slot, d.err, d.text);
	}
	fab_buf_close(&s->out);
	fab_buf_close(&s->in);
	fab_close(&s->fab);
}

static void survivor(const struct mode *mode)
{
	struct self s = { 0 };
	struct fab_opt opt = { 0 };
	unsigned number = 0;
	char slots[8];

	snprintf(slots, sizeof(slots), "%u", SHARED);
	if (extra & BROKEN)
		setenv("FI_MRFAB_RX_SLOTS", slots, 1);
	self_open(&s, mode, &opt);
	memcpy(sh->survivor, s.fab.name, sizeof(sh->survivor));
	atomic_store(&sh->v.survivor_there, true);
	while ((number = victims_next(number))) {
		deal_with(&s, number);
		for (unsigned i = 1; i <= number; i++)
			all_have_come(&s, i);
		victims_done(number);
	}
	self_close(&s);
}

/* --- the worker ------------------------------------------------------------------------- */

/* Fewer, where kernels and other suites share the work. */
static unsigned moments(void)
{
	const char *share = getenv("MRFAB_FUNC_SHARE");

	return extra & BROKEN ? 8 : !share || !strcmp(share, "all") ? 26 : WARM + 4;
}

static void survivor_outlives(struct env *e, unsigned part, unsigned what)
{
	struct plan plan = { .survivor = survivor,
			     .victim = victim,
			     .part = part,
			     .at_work = what & BROKEN,
			     .last = AT_LAST,
			     .slack = HEAP_SLACK,
			     .counted = WARM };
	unsigned begun = 0, known = 0;

	sh = victims_open(sizeof(*sh));
	extra = what;
	func_caps = FI_MSG;
	plan.moments = moments();
	victims_run(e, &plan);
	for (unsigned i = 1; i <= plan.moments; i++) {
		begun += atomic_load(&sh->begun[i]);
		known += atomic_load(&sh->known[i]);
	}
	printf("# killed: victims sent %u messages and knew of %u\n", begun, known);
	victims_close();
}

IN_MODES(MODE(0))

CASE(messages_to_and_of_peers_that_are_killed_come_once_or_fail)
{
	survivor_outlives(e, 1, 0);
}

IN_MODES(MODE(15))

CASE(messages_to_an_address_where_peers_are_killed_come_once_or_fail)
{
	survivor_outlives(e, 2, SAME_PLACE);
}

CASE(messages_that_break_off_leave_receives_for_others)
{
	survivor_outlives(e, 3, BROKEN);
}
