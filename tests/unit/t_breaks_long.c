/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines break at random, in every way, under long and short messages. Each arrives once and whole,
 * in a receive that was posted behind those of the messages before it; both ends complete with success.
 *
 * In a round, messages are started while the fabric holds what is posted, or not; something happens to
 * the line; some receives are posted before and some behind that. Then all of them have to complete.
 */
#include "breaks.h"
#include <sys/mman.h>
#include "contract/budget.h"
#include "ep/msg/inbox.h"
#include "proto/frame.h"

#define SHORT 16384u
#define MAX (MRF_GRANT_BYTES * 2 + SHORT)
#define MOST 6u /* messages in a round */
#define SETTINGS 30

static struct node s, r;
static fi_addr_t to;
static struct fid_mr *out_mr, *in_mr; /* with FI_MR_LOCAL */
static uint8_t *out, *in;	      /* MAX bytes per message */
static char setting[200];

/* Of this round, by the order of posting. */
static struct {
	size_t len;
	bool sent;
	unsigned into; /* the receive, from 1 on; 0: it has not come */
} msgs[MOST];
static unsigned nmsgs, sent, got, posted;

#define SAYS(cond, ...)                                                                         \
	do {                                                                                    \
		char text_[300];                                                                \
                                                                                                \
		if (!(cond)) {                                                                  \
			snprintf(text_, sizeof(text_), __VA_ARGS__);                            \
			ck_abort_msg("%s, round %u: %s (%s)", setting, round_no, text_, #cond); \
		}                                                                               \
	} while (0)

/* --- one setting ------------------------------------------------------------------------- */

static void setting_open(void)
{
	static const int modes[] = { 0, FI_MR_ALLOCATED, FI_MR_LOCAL | FI_MR_ALLOCATED };
	const struct node_opt opt = { .mr_mode = modes[any(3)] };

	fake.flush_local = one_in(3);
	fake.loses_recvs = fake.flush_local && one_in(2);
	fake.on_send = on_send;
	snprintf(setting, sizeof(setting), "seed %u (mode 0x%x, %s%s)", seed, opt.mr_mode,
		 fake.flush_local ? "6.12" : "6.1", fake.loses_recvs ? ", loses receives" : "");
	out = pages(MOST * MAX);
	in = pages(MOST * MAX);
	node_open(&r, &opt);
	node_open(&s, &opt);
	to = node_insert(&s, &r);
	out_mr = opt.mr_mode & FI_MR_LOCAL ? node_reg(&s, out, MOST * MAX, FI_SEND, 1) : NULL;
	in_mr = opt.mr_mode & FI_MR_LOCAL ? node_reg(&r, in, MOST * MAX, FI_RECV, 1) : NULL;
}

static void setting_close(void)
{
	if (out_mr)
		must_close(&out_mr->fid);
	if (in_mr)
		must_close(&in_mr->fid);
	node_close(&s);
	node_close(&r);
	munmap(out, MOST * MAX);
	munmap(in, MOST * MAX);
}

/* --- one round ---------------------------------------------------------------------------- */

static void post_upto(unsigned n)
{
	for (; posted < n; posted++)
		ck_assert_int_eq(fi_recv(r.ep, in + posted * MAX, MAX,
					 in_mr ? fi_mr_desc(in_mr) : NULL, FI_ADDR_UNSPEC,
					 in + posted * MAX),
				 0);
}

static size_t any_len(void)
{
	if (one_in(3))
		return 1 + any(SHORT);
	return SHORT + 1 + any(one_in(2) ? SHORT : (unsigned)(MAX - SHORT - 1));
}

static void start(unsigned i, uint64_t flags)
{
	struct iovec iov = { out + i * MAX, msgs[i].len };
	void *desc = out_mr ? fi_mr_desc(out_mr) : NULL;
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = out_mr ? &desc : NULL,
			      .iov_count = 1,
			      .addr = to,
			      .context = out + i * MAX,
			      .data = i };

	ck_assert_int_eq(fi_sendmsg(s.ep, &msg, flags | FI_REMOTE_CQ_DATA), 0);
}

static void start_all(void)
{
	unsigned i;

	for (i = 0; i < nmsgs; i++) {
		msgs[i].len = any_len();
		msgs[i].sent = false;
		msgs[i].into = 0;
		fill(out + i * MAX, msgs[i].len, round_no + i);
		start(i,
		      (one_in(3) ? FI_DELIVERY_COMPLETE : 0) | (one_in(3) ? FI_MATCH_COMPLETE : 0));
	}
}

static void failed(struct node *n, const char *what)
{
	struct fi_cq_err_entry e = { 0 };

	fi_cq_readerr(n->cq, &e, 0);
	SAYS(false, "a %s fails: %d: %s", what, e.err, e.err_data ? (char *)e.err_data : "");
}

/* Takes a completion. False: there is none in time. */
static bool take(struct node *n, const char *what, struct fi_cq_data_entry *entry, int ms)
{
	ssize_t ret = fi_cq_sread(n->cq, entry, 1, NULL, ms);

	if (ret == -FI_EAVAIL)
		failed(n, what);
	return ret == 1;
}

static void take_sent(int ms)
{
	struct fi_cq_data_entry entry;
	size_t i;

	while (sent < nmsgs && take(&s, "send", &entry, ms)) {
		i = (size_t)((uint8_t *)entry.op_context - out) / MAX;
		SAYS(!msgs[i].sent, "send %zu ends twice", i);
		msgs[i].sent = true;
		sent++;
	}
}

static void take_got(int ms)
{
	struct fi_cq_data_entry entry;
	size_t at;

	while (got < nmsgs && take(&r, "receive", &entry, ms)) {
		at = (size_t)((uint8_t *)entry.op_context - in) / MAX;
		SAYS(entry.data < nmsgs && !msgs[entry.data].into, "message %lu comes twice",
		     (unsigned long)entry.data);
		SAYS(entry.len == msgs[entry.data].len, "message %lu has %zu bytes of %zu",
		     (unsigned long)entry.data, entry.len, msgs[entry.data].len);
		SAYS(filled(entry.op_context, entry.len, round_no + (unsigned)entry.data),
		     "message %lu has other bytes", (unsigned long)entry.data);
		msgs[entry.data].into = (unsigned)at + 1;
		got++;
	}
}

static void in_order(void)
{
	unsigned i;

	for (i = 0; i < nmsgs; i++)
		SAYS(msgs[i].into == i + 1, "message %u is in receive %u", i, msgs[i].into - 1);
}

static void happens(void)
{
	break_some(&r, true, one_in(2) ? nmsgs : 4 * nmsgs,
		   one_in(3) ? fake_break_frame : fake_break_pair);
}

static void round_run(void)
{
	bool held = one_in(2);

	nmsgs = one_in(3) ? 1 : 1 + any(MOST);
	sent = got = posted = 0;
	post_upto(any(nmsgs + 1));
	fake_hold_all(held);
	if (!held)
		happens();
	start_all();
	if (held)
		happens();
	if (one_in(3))
		take_got(0);
	if (one_in(3))
		take_sent(0);
	fake_hold_all(false);
	if (one_in(2))
		usleep(any(3000));
	post_upto(nmsgs);
	take_got(LONG_MS);
	SAYS(got == nmsgs, "%u of %u never come; %u of their sends end", nmsgs - got, nmsgs, sent);
	take_sent(LONG_MS);
	SAYS(sent == nmsgs, "%u of %u never end, and have come", nmsgs - sent, nmsgs);
	in_order();
	fake_heal();
	refuse(0);
}

START_TEST(what_breaks_arrives_once_and_whole)
{
	if (!setting_begin((unsigned)_i, SETTINGS))
		return;
	setting_open();
	for (round_no = 1; round_no <= rounds_of(SETTINGS); round_no++) {
		forget_log();
		round_run();
	}
	want_none(&s);
	want_none(&r);
	want_idle(&s);
	setting_close();
}
END_TEST

static TCase *tcase_breaks(void)
{
	TCase *tc = tcase_create("breaks");

	tcase_set_timeout(tc, 600);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, what_breaks_arrives_once_and_whole, 0, SETTINGS);
	return tc;
}

UNIT_MAIN("breaks of lines with long messages", tcase_breaks)
