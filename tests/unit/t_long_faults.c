/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything fails once, on the paths of long messages. In round n the nth call of one kind -
 * allocations and the like, or what is asked of the device - fails, in whichever thread. Each send and
 * each receive that has met a message ends once; what is told to have arrived is there; what was sent
 * with success has reached its receive, which may have failed; then messages arrive again, and nothing
 * is left.
 */
#include "contract/budget.h"
#include "fail_walk.h"
#include "two_ends.h"

#define LEN (MRF_GRANT_BYTES + 1)
#define MSGS 4u
#define BUFS 20u /* more than are held at a time */

enum end { NOT_YET, SUCCEEDED, FAILED };
static enum end sent[MSGS], got[MSGS];

#define SAYS(cond, ...)                                                                    \
	do {                                                                               \
		char text_[200];                                                           \
                                                                                           \
		if (!(cond)) {                                                             \
			snprintf(text_, sizeof(text_), __VA_ARGS__);                       \
			ck_abort_msg("%s, failure %u: %s (%s)", where, nth, text_, #cond); \
		}                                                                          \
	} while (0)

/* A call that fails is done again; programs are told to do so where there is no memory. */
#define AGAIN(call)                                         \
	do {                                                \
		long ret_ = LIBRARY(call);                  \
                                                            \
		if (ret_ && (ret_ != -FI_EAGAIN || !met())) \
			may_fail(#call, -ret_);             \
		if (ret_)                                   \
			ret_ = LIBRARY(call);               \
		SAYS(!ret_, "%ld again", ret_);             \
	} while (0)

static void nodes_open(int mr_mode)
{
	ends_open(&(struct node_opt){ .mr_mode = mr_mode }, MSGS * LEN);
	memset(sent, 0, sizeof(sent));
	memset(got, 0, sizeof(got));
}

/* Message 1 has many buffers at both ends; and of message 2 not all has room. */
static size_t cut(unsigned i, uint8_t *mem, struct fid_mr *mr, struct iovec *iov, void **desc)
{
	size_t k, n = i == 1 ? BUFS : 1, part = LEN / n;

	for (k = 0; k < n; k++) {
		iov[k] = (struct iovec){ mem + i * LEN + k * part, part };
		desc[k] = mr ? fi_mr_desc(mr) : NULL;
	}
	iov[n - 1].iov_len = LEN - (n - 1) * part;
	return n;
}

static void recv_one(unsigned i)
{
	struct iovec iov[BUFS];
	void *desc[BUFS];
	size_t n = cut(i, in, in_mr, iov, desc);

	if (i == 2)
		iov[0].iov_len = LEN / 2;
	AGAIN(fi_recvv(b.ep, iov, in_mr ? desc : NULL, n, FI_ADDR_UNSPEC, &got[i]));
}

static void send_one(unsigned i)
{
	struct iovec iov[BUFS];
	void *desc[BUFS];
	struct fi_msg msg = { .msg_iov = iov, .addr = to, .context = &sent[i] };

	msg.iov_count = cut(i, out, out_mr, iov, desc);
	msg.desc = out_mr ? desc : NULL;
	AGAIN(fi_sendmsg(a.ep, &msg, i == 0 ? FI_DELIVERY_COMPLETE : 0));
}

/* --- completions -------------------------------------------------------------------------- */

static void ended(enum end *what, enum end how)
{
	SAYS(*what == NOT_YET, "it ends twice");
	*what = how;
}

static void failed(struct node *n)
{
	struct fi_cq_err_entry e = { 0 };

	SAYS(LIBRARY(fi_cq_readerr(n->cq, &e, 0)) == 1, "there is no error");
	if (e.op_context == &got[2] && e.err == FI_ETRUNC) {
		ended(e.op_context, SUCCEEDED);
		return;
	}
	SAYS(met() || e.err == FI_ECANCELED, "%d before anything failed: %s", e.err,
	     e.err_data ? (char *)e.err_data : "");
	ended(e.op_context, FAILED);
}

/* False: there is none now. */
static bool take(struct node *n)
{
	struct fi_cq_data_entry entry;
	ssize_t ret = LIBRARY(fi_cq_read(n->cq, &entry, 1));

	if (ret == -FI_EAVAIL)
		failed(n);
	else if (ret == 1)
		ended(entry.op_context, SUCCEEDED);
	else
		SAYS(ret == -FI_EAGAIN || met(), "fi_cq_read: %zd", ret);
	return ret != -FI_EAGAIN;
}

static void take_all(void)
{
	while (take(&a) || take(&b))
		;
}

static bool all_ended(const enum end *ends)
{
	unsigned i;

	take_all();
	for (i = 0; i < MSGS; i++) {
		if (ends[i] == NOT_YET)
			return false;
	}
	return true;
}

/* Receives that no message has met are canceled: where a send failed, there may be some. */
static void end_receives(void)
{
	unsigned i, sends = 0;

	for (i = 0; i < MSGS; i++)
		sends += sent[i] == FAILED;
	for (i = MSGS; i-- && sends;) {
		take_all();
		if (got[i] == NOT_YET)
			fi_cancel(&b.ep->fid, &got[i]);
	}
	want_soon(all_ended(got));
}

/* Message i is in receive i, if nothing failed. */
static void what_arrived_is_there(void)
{
	unsigned i;

	for (i = 0; i < MSGS; i++) {
		SAYS(met() || (sent[i] == SUCCEEDED && got[i] == SUCCEEDED), "message %u", i);
		if (got[i] == SUCCEEDED && !met())
			SAYS(!memcmp(in + i * LEN, out + i * LEN, i == 2 ? LEN / 2 : LEN),
			     "message %u has other bytes", i);
	}
}

/* --- rounds ------------------------------------------------------------------------------- */

static void works(void)
{
	memset(in, 0, LEN);
	ck_assert_int_eq(
		fi_recv(b.ep, in, LEN, in_mr ? fi_mr_desc(in_mr) : NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_send(a.ep, out, LEN, out_mr ? fi_mr_desc(out_mr) : NULL, to, out), 0);
	want_ok(&a, out);
	want_ok(&b, in);
	ck_assert(!memcmp(in, out, LEN));
	want_none(&a);
	want_none(&b);
}

/* Has something failed? */
static bool round_run(int mr_mode)
{
	bool failed;

	nodes_open(mr_mode);
	order();
	recv_one(0);
	send_one(0);
	recv_one(1);
	send_one(1);
	send_one(2);
	send_one(3);
	recv_one(2);
	recv_one(3);
	want_soon(all_ended(sent));
	failed = met();
	heal();
	end_receives();
	what_arrived_is_there();
	works();
	ends_close();
	return failed;
}

static void walk(const char *name, int mr_mode, int err)
{
	where = name;
	device_err = err;
	outside = 1;
	/* Each round takes long, because some failures are waited for. */
	for (nth = 1 + every_first(); round_run(mr_mode);)
		nth += every_number("MRFAB_TEST_EVERY", 5);
	ck_assert_uint_gt(nth, 10);
}

START_TEST(each_allocation_may_fail)
{
	walk("allocations", modes[_i], 0);
}
END_TEST

START_TEST(each_call_of_the_device_may_fail)
{
	walk("calls of the device", modes[_i / 2], _i % 2 ? FI_EIO : FI_ENOMEM);
}
END_TEST

static TCase *tcase_faults(void)
{
	TCase *tc = tcase_create("faults");

	tcase_set_timeout(tc, 300);
	tcase_add_checked_fixture(tc, fixture_setup_impatient, fixture_teardown);
	tcase_add_loop_test(tc, each_allocation_may_fail, 0, MODES);
	tcase_add_loop_test(tc, each_call_of_the_device_may_fail, 0, 2 * MODES);
	return tc;
}

UNIT_MAIN("faults of long messages", tcase_faults)
