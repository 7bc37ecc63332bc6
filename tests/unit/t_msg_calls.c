/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_msg(3) down to the transport, which is stood in for: what they refuse, and what of
 * their arguments arrives there. With the bindings and the capabilities that they depend on.
 */
#include <ctype.h>
#include "base/log.h"
#include "ep/ep_ops.h"
#include "ep/msg/recv.h"
#include "ep/tx/chores.h"
#include "ep/tx/entry.h"
#include "ep/tx/peers.h"
#include "ep/tx/send_op.h"
#include "ep_fixture.h"
#include "unit.h"

#define MESSAGES (FI_MSG | FI_SEND | FI_RECV)
#define TO 7 /* nobody looks at it here */
#define DATA 0x12345678u

static struct pair p;
static struct unit_capture cap;
static char buf[MRF_SEND_MAX + 1];
static int context;

/* --- what stands in for the transport --------------------------------------------------- */

static struct {
	struct mrf_req send;
	struct mrf_recv_req recv;
	unsigned sends, recvs;
	struct iovec iov[MRF_LIMIT_IOV];
	void *desc; /* the first */
	size_t posted;
	const void *canceled; /* a receive that waits has this context */
	unsigned cancels;
} got;

static void take_buffers(const struct iovec *iov, void **desc, size_t count)
{
	if (count)
		memcpy(got.iov, iov, count * sizeof(*iov));
	got.desc = desc && count ? desc[0] : NULL;
}

int __wrap_mrf_send_submit(struct mrf_ep *ep, const struct mrf_req *req);
int __wrap_mrf_recv_post(struct mrf_ep *ep, const struct mrf_recv_req *req);
int __wrap_mrf_recv_cancel_locked(struct mrf_ep *ep, const void *what);
size_t __wrap_mrf_recv_posted_locked(const struct mrf_ep *ep);

int __wrap_mrf_send_submit(struct mrf_ep *ep, const struct mrf_req *req)
{
	ck_assert(ep->enabled);
	got.send = *req;
	got.sends++;
	take_buffers(req->iov, req->desc, req->count);
	return 0;
}

int __wrap_mrf_recv_post(struct mrf_ep *ep, const struct mrf_recv_req *req)
{
	ck_assert(ep->enabled);
	got.recv = *req;
	got.recvs++;
	take_buffers(req->iov, req->desc, req->count);
	return 0;
}

int __wrap_mrf_recv_cancel_locked(struct mrf_ep *ep, const void *what)
{
	mrf_lock_held(&ep->lock);
	got.cancels++;
	return what == got.canceled ? 0 : -FI_ENOENT;
}

size_t __wrap_mrf_recv_posted_locked(const struct mrf_ep *ep)
{
	mrf_lock_held(&ep->lock);
	return got.posted;
}

/* --- calls ------------------------------------------------------------------------------ */

/* What a call is tried with. */
static struct args {
	struct iovec *iov;
	size_t count;
	void **desc;
	uint64_t flags; /* of fi_sendmsg and fi_recvmsg */
} args;

static struct fi_msg msg(void)
{
	return (struct fi_msg){ .msg_iov = args.iov,
				.desc = args.desc,
				.iov_count = args.count,
				.addr = TO,
				.context = &context,
				.data = DATA };
}

#define FIRST args.iov[0].iov_base, args.iov[0].iov_len
#define DESC (args.desc ? args.desc[0] : NULL)
#define CALL(name, ...)                              \
	static ssize_t try_##name(struct fid_ep *ep) \
	{                                            \
		__VA_ARGS__                          \
	}

CALL(send, return fi_send(ep, FIRST, DESC, TO, &context);)
CALL(sendv, return fi_sendv(ep, args.iov, args.desc, args.count, TO, &context);)
CALL(sendmsg, struct fi_msg m = msg(); return fi_sendmsg(ep, &m, args.flags);)
CALL(inject, return fi_inject(ep, FIRST, TO);)
CALL(senddata, return fi_senddata(ep, FIRST, DESC, DATA, TO, &context);)
CALL(injectdata, return fi_injectdata(ep, FIRST, DATA, TO);)
CALL(recv, return fi_recv(ep, FIRST, DESC, TO, &context);)
CALL(recvv, return fi_recvv(ep, args.iov, args.desc, args.count, TO, &context);)
CALL(recvmsg, struct fi_msg m = msg(); return fi_recvmsg(ep, &m, args.flags);)

enum { SEND, SENDV, SENDMSG, INJECT, SENDDATA, INJECTDATA, RECV, RECVV, RECVMSG, CALLS };

static const struct {
	const char *name;
	ssize_t (*try)(struct fid_ep *ep);
} calls[CALLS] = {
	[SEND] = { "fi_send", try_send },
	[SENDV] = { "fi_sendv", try_sendv },
	[SENDMSG] = { "fi_sendmsg", try_sendmsg },
	[INJECT] = { "fi_inject", try_inject },
	[SENDDATA] = { "fi_senddata", try_senddata },
	[INJECTDATA] = { "fi_injectdata", try_injectdata },
	[RECV] = { "fi_recv", try_recv },
	[RECVV] = { "fi_recvv", try_recvv },
	[RECVMSG] = { "fi_recvmsg", try_recvmsg },
};

static bool sends(int call)
{
	return call < RECV;
}

static bool injects(int call)
{
	return call == INJECT || call == INJECTDATA;
}

/* The whole name: that of fi_send is in those of others. */
static bool says_name(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	while (at && isalnum((unsigned char)at[strlen(name)]))
		at = strstr(at + 1, name);
	return at;
}

/* The call is refused with this error and one line, which has the code, its name and the text. */
static void refused_by(struct fid_ep *ep, int call, int err, const char *code, const char *text)
{
	unsigned before = got.sends + got.recvs;
	const char *name = calls[call].name;
	ssize_t ret;

	unit_capture(&cap);
	ret = calls[call].try(ep);
	unit_captured(&cap);
	ck_assert_msg(ret == -err, "%s: %zd, not %d: %s", name, ret, -err, cap.text);
	ck_assert_msg(strstr(cap.text, code) && says_name(cap.text, name) && strstr(cap.text, text),
		      "%s: no %s with \"%s\" in: %s", name, code, text, cap.text);
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	ck_assert_uint_eq(got.sends + got.recvs, before);
}

static void refused(int call, int err, const char *code, const char *text)
{
	refused_by(p.a.ep, call, err, code, text);
}

static void accepted(int call)
{
	unsigned sent = got.sends, posted = got.recvs;

	ssize_t ret;

	unit_capture(&cap);
	ret = calls[call].try(p.a.ep);
	unit_captured(&cap);
	ck_assert_msg(!ret, "%s: %zd: %s", calls[call].name, ret, cap.text);
	ck_assert_str_eq(cap.text, "");
	ck_assert_uint_eq(got.sends - sent, sends(call));
	ck_assert_uint_eq(got.recvs - posted, !sends(call));
}

/* One buffer of 8 bytes. */
static struct iovec one;

static void usual_args(void)
{
	one = (struct iovec){ buf, 8 };
	args = (struct args){ .iov = &one, .count = 1 };
}

static void setup(void)
{
	fixture_setup();
	fixture_log();
	memset(&got, 0, sizeof(got));
	usual_args();
}

static void open_with(const struct node_opt *opt)
{
	pair_open(&p, opt);
}

/* One more endpoint of a's, to which nothing is bound. */
static struct fid_ep *endpoint(uint64_t caps)
{
	struct fid_ep *ep;

	p.a.info->caps = caps;
	ck_assert_int_eq(fi_endpoint(p.a.domain, p.a.info, &ep, NULL), 0);
	return ep;
}

/* ... enabled. */
static struct fid_ep *enabled(uint64_t caps)
{
	struct fid_ep *ep = endpoint(caps);

	ck_assert_int_eq(fi_ep_bind(ep, &p.a.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &p.a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	return ep;
}

static struct fid_cntr *cntr_open(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;

	ck_assert_int_eq(fi_cntr_open(p.a.domain, &attr, &cntr, NULL), 0);
	return cntr;
}

/* --- what arrives at the transport ------------------------------------------------------- */

START_TEST(msg_sends_arrive_as_they_were_asked_for)
{
	static const bool has_data[CALLS] = { [SENDDATA] = true, [INJECTDATA] = true };
	int call;

	open_with(PLAIN);
	args.desc = (void *[]){ &context };
	for (call = SEND; call < RECV; call++) {
		uint64_t flags =
			(injects(call) ? FI_INJECT : 0) | (has_data[call] ? FI_REMOTE_CQ_DATA : 0);

		accepted(call);
		ck_assert_ptr_eq(got.send.type, &mrf_op_send);
		ck_assert_uint_eq(got.send.count, 1);
		ck_assert_ptr_eq(got.iov[0].iov_base, buf);
		ck_assert_uint_eq(got.iov[0].iov_len, 8);
		ck_assert_uint_eq(got.send.rma_count, 0);
		ck_assert_uint_eq(got.send.addr, TO);
		ck_assert_uint_eq(got.send.flags, flags);
		ck_assert_int_eq(got.send.silent, injects(call));
		ck_assert_ptr_eq(got.send.context, injects(call) ? NULL : &context);
		ck_assert_ptr_eq(got.desc, injects(call) ? NULL : &context);
		if (has_data[call] || call == SENDMSG)
			ck_assert_uint_eq(got.send.data, DATA);
	}
	pair_close(&p);
}
END_TEST

START_TEST(msg_receives_arrive_as_they_were_asked_for)
{
	int call;

	open_with(PLAIN);
	args.desc = (void *[]){ &context };
	for (call = RECV; call < CALLS; call++) {
		accepted(call);
		ck_assert_uint_eq(got.recv.count, 1);
		ck_assert_ptr_eq(got.iov[0].iov_base, buf);
		ck_assert_uint_eq(got.iov[0].iov_len, 8);
		ck_assert_uint_eq(got.recv.from, TO);
		ck_assert_ptr_eq(got.recv.context, &context);
		ck_assert_ptr_eq(got.desc, &context);
		ck_assert(!got.recv.silent);
	}
	pair_close(&p);
}
END_TEST

static const int vectors[] = { SENDV, SENDMSG, RECVV, RECVMSG };

START_TEST(msg_takes_as_many_buffers_as_are_offered)
{
	struct iovec many[MRF_LIMIT_IOV + 1] = { { NULL, 0 } };
	int call = vectors[_i];

	open_with(PLAIN);
	many[MRF_LIMIT_IOV - 1] = (struct iovec){ buf, 5 };
	args.iov = many;
	args.count = MRF_LIMIT_IOV;
	accepted(call);
	ck_assert_uint_eq(got.iov[MRF_LIMIT_IOV - 1].iov_len, 5);
	args.iov = NULL;
	args.count = 0;
	accepted(call);
	args.iov = many;
	args.count = MRF_LIMIT_IOV + 1;
	refused(call, FI_EINVAL, "MRF-E4003", "129 local buffers");
	args.count = SIZE_MAX;
	refused(call, FI_EINVAL, "MRF-E4003", "at most 128");
	args.iov = NULL;
	args.count = 1;
	refused(call, FI_EINVAL, "MRF-E4003", "1 local buffer at");
	pair_close(&p);
}
END_TEST

START_TEST(msg_structure_has_to_be_there)
{
	open_with(PLAIN);
	unit_capture(&cap);
	ck_assert_int_eq(fi_sendmsg(p.a.ep, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_recvmsg(p.a.ep, NULL, 0), -FI_EINVAL);
	unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E4017: fi_sendmsg: msg is NULL"));
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E4017: fi_recvmsg: msg is NULL"));
	pair_close(&p);
}
END_TEST

/* --- the endpoint ------------------------------------------------------------------------ */

START_TEST(msg_needs_an_endpoint_that_is_enabled)
{
	struct fid_ep *ep;

	open_with(PLAIN);
	ep = endpoint(0);
	for (int call = 0; call < CALLS; call++)
		refused_by(ep, call, FI_EOPBADSTATE, "MRF-E4015", "is not enabled");
	must_close(&ep->fid);
	pair_close(&p);
}
END_TEST

START_TEST(msg_needs_the_direction)
{
	struct fid_ep *out, *in;

	open_with(PLAIN);
	out = enabled(FI_MSG | FI_SEND);
	in = enabled(FI_MSG | FI_RECV);
	for (int call = 0; call < CALLS; call++) {
		refused_by(sends(call) ? in : out, call, FI_EOPNOTSUPP, "MRF-E4070",
			   sends(call) ? "without FI_SEND" : "without FI_RECV");
		ck_assert_int_eq(calls[call].try(sends(call) ? out : in), 0);
	}
	must_close(&out->fid);
	must_close(&in->fid);
	pair_close(&p);
}
END_TEST

START_TEST(msg_needs_the_capability)
{
	struct fid_ep *ep;

	open_with(PLAIN);
	ep = enabled(FI_RMA | FI_SEND | FI_RECV);
	for (int call = 0; call < CALLS; call++)
		refused_by(ep, call, FI_ENOSYS, "MRF-E4090",
			   "needs FI_MSG, which this endpoint was not opened with");
	must_close(&ep->fid);
	pair_close(&p);
}
END_TEST

START_TEST(msg_capabilities_of_an_endpoint_are_those_asked_for)
{
	static const uint64_t asked[][2] = {
		{ FI_MSG, MESSAGES },
		{ FI_MSG | FI_SEND, FI_MSG | FI_SEND },
		{ FI_MSG | FI_RECV, FI_MSG | FI_RECV },
		{ FI_MSG | FI_RMA | FI_READ, MESSAGES | FI_RMA | FI_READ },
		{ FI_MSG | FI_SEND | FI_RMA, FI_MSG | FI_SEND | FI_RMA | MRF_CAPS_RMA_WAYS },
		{ FI_RMA | FI_WRITE | FI_RECV, FI_RMA | FI_WRITE },
		{ FI_RECV, MRF_CAPS },
		{ 0, MRF_CAPS },
	};
	struct fid_ep *ep;
	size_t i;

	open_with(PLAIN);
	for (i = 0; i < MRF_ARRAY_SIZE(asked); i++) {
		ep = endpoint(asked[i][0]);
		ck_assert_uint_eq(mrf_ep_of(&ep->fid)->caps, asked[i][1]);
		ck_assert_ptr_eq(ep->msg, asked[i][1] & FI_MSG ? &mrf_ep_msg_ops : &mrf_no_msg);
		must_close(&ep->fid);
	}
	p.a.info->caps = FI_MULTICAST;
	ck_assert_int_eq(fi_endpoint(p.a.domain, p.a.info, &ep, NULL), -FI_EINVAL);
	pair_close(&p);
}
END_TEST

/* --- lengths ----------------------------------------------------------------------------- */

START_TEST(msg_sends_have_a_greatest_length)
{
	struct iovec two[2] = { { buf, MRF_SEND_MAX }, { buf, 0 } };
	const char *why = "a message has at most max_msg_size, 1073741824";

	open_with(PLAIN);
	args.iov = two;
	args.count = 2;
	accepted(SEND);
	accepted(SENDV);
	accepted(SENDMSG);
	accepted(SENDDATA);
	two[1].iov_len = MRF_LIMIT_MSG_SIZE - MRF_SEND_MAX + 1;
	refused(SENDV, FI_EMSGSIZE, "MRF-E4072", "1073741825 bytes: a message");
	refused(SENDMSG, FI_EMSGSIZE, "MRF-E4072", why);
	two[0].iov_len = SIZE_MAX;
	refused(SEND, FI_EMSGSIZE, "MRF-E4072", why);
	refused(SENDDATA, FI_EMSGSIZE, "MRF-E4072", why);
	/* The sum passes the end of size_t. */
	refused(SENDV, FI_EMSGSIZE, "MRF-E4072", why);
	one.iov_len = 0;
	args.iov = &one;
	args.count = 1;
	for (int call = SEND; call < RECV; call++)
		accepted(call);
	pair_close(&p);
}
END_TEST

START_TEST(msg_injected_ones_have_a_greatest_length)
{
	open_with(PLAIN);
	one.iov_len = MRF_LIMIT_INJECT;
	args.flags = FI_INJECT;
	accepted(INJECT);
	accepted(INJECTDATA);
	accepted(SENDMSG);
	one.iov_len++;
	refused(INJECT, FI_EMSGSIZE, "MRF-E4008", "fi_inject: 257 bytes, but inject_size is 256");
	refused(INJECTDATA, FI_EMSGSIZE, "MRF-E4008", "inject_size");
	refused(SENDMSG, FI_EMSGSIZE, "MRF-E4008", "inject_size");
	args.flags = 0;
	accepted(SENDMSG);
	pair_close(&p);
}
END_TEST

START_TEST(msg_receives_have_any_length)
{
	static const size_t lengths[] = { 0, 1, MRF_SEND_MAX + 1, MRF_LIMIT_MSG_SIZE + 1 };

	open_with(PLAIN);
	for (size_t i = 0; i < MRF_ARRAY_SIZE(lengths); i++) {
		one.iov_len = lengths[i];
		for (int call = RECV; call < CALLS; call++)
			accepted(call);
	}
	one = (struct iovec){ NULL, 0 };
	accepted(RECV);
	pair_close(&p);
}
END_TEST

/* --- flags ------------------------------------------------------------------------------- */

#define LATER FI_COMMIT_COMPLETE

START_TEST(msg_sendmsg_takes_the_flags_that_are_for_it)
{
	const uint64_t taken = FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE |
			       FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE |
			       FI_REMOTE_CQ_DATA | FI_FENCE;

	open_with(PLAIN);
	for (args.flags = 1; args.flags; args.flags <<= 1) {
		if (args.flags & taken)
			accepted(SENDMSG);
		else if (args.flags & LATER)
			refused(SENDMSG, FI_EOPNOTSUPP, "MRF-E4071",
				"not offered for messages yet");
		else
			refused(SENDMSG, FI_EBADFLAGS, "MRF-E4009", "is not for fi_sendmsg");
	}
	args.flags = taken;
	accepted(SENDMSG);
	ck_assert_uint_eq(got.send.flags, taken);
	ck_assert(!got.send.silent);
	args.flags = FI_FENCE | FI_COMMIT_COMPLETE;
	refused(SENDMSG, FI_EOPNOTSUPP, "MRF-E4071", "FI_COMMIT_COMPLETE");
	pair_close(&p);
}
END_TEST

START_TEST(msg_recvmsg_takes_the_flags_that_are_for_it)
{
	open_with(PLAIN);
	for (args.flags = 1; args.flags; args.flags <<= 1) {
		if (args.flags & (FI_COMPLETION | FI_MORE | FI_TRANSMIT_COMPLETE | FI_MULTI_RECV)) {
			accepted(RECVMSG);
			ck_assert_int_eq(got.recv.multi, args.flags == FI_MULTI_RECV);
		} else {
			refused(RECVMSG, FI_EBADFLAGS, "MRF-E4009", "is not for fi_recvmsg");
		}
	}
	pair_close(&p);
}
END_TEST

static void set_flags(uint64_t flags)
{
	ck_assert_int_eq(fi_control(&p.a.ep->fid, FI_SETOPSFLAG, &flags), 0);
}

static const uint64_t later[] = { FI_COMMIT_COMPLETE, FI_COMMIT_COMPLETE | FI_DELIVERY_COMPLETE };

/* They would complete earlier than the application expects. */
START_TEST(msg_operation_flags_that_are_not_offered_refuse_plain_sends)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .op_flags = later[_i] };

	open_with(&opt);
	refused(SEND, FI_EOPNOTSUPP, "MRF-E4071", "among the operation flags of the endpoint");
	refused(SENDV, FI_EOPNOTSUPP, "MRF-E4071", "not offered for messages yet");
	refused(SENDDATA, FI_EOPNOTSUPP, "MRF-E4071", "not offered for messages yet");
	/* Their flags are not those of the endpoint. */
	accepted(SENDMSG);
	accepted(INJECT);
	accepted(INJECTDATA);
	set_flags(FI_TRANSMIT);
	accepted(SEND);
	set_flags(FI_TRANSMIT | later[_i]);
	refused(SEND, FI_EOPNOTSUPP, "MRF-E4071", "not offered for messages yet");
	/* Reads, for one, are not concerned. */
	pair_read(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
}
END_TEST

START_TEST(msg_operation_flags_are_those_of_plain_sends)
{
	open_with(PLAIN);
	set_flags(FI_TRANSMIT | FI_INJECT | FI_COMPLETION);
	accepted(SEND);
	ck_assert_uint_eq(got.send.flags, FI_INJECT | FI_COMPLETION);
	accepted(SENDV);
	ck_assert_uint_eq(got.send.flags, FI_INJECT | FI_COMPLETION);
	accepted(SENDDATA);
	ck_assert_uint_eq(got.send.flags, FI_INJECT | FI_COMPLETION | FI_REMOTE_CQ_DATA);
	accepted(INJECT);
	ck_assert_uint_eq(got.send.flags, FI_INJECT);
	accepted(SENDMSG);
	ck_assert_uint_eq(got.send.flags, 0);
	one.iov_len = MRF_LIMIT_INJECT + 1;
	refused(SEND, FI_EMSGSIZE, "MRF-E4008", "inject_size");
	pair_close(&p);
}
END_TEST

/* Those of receives: from the info, and set later. */
START_TEST(msg_receives_have_operation_flags_of_their_own)
{
	uint64_t flags = FI_RECV, bad = FI_RECV | FI_PEEK;
	struct fid_ep *ep;

	open_with(PLAIN);
	p.a.info->rx_attr->op_flags = FI_COMPLETION;
	ep = endpoint(0);
	ck_assert_int_eq(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	ck_assert_uint_eq(flags, FI_COMPLETION);
	flags = FI_RECV;
	ck_assert_int_eq(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), 0);
	ck_assert_int_eq(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	ck_assert_uint_eq(flags, 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_control(&ep->fid, FI_SETOPSFLAG, &bad), -FI_EBADFLAGS);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E4052"));
	flags = FI_TRANSMIT;
	ck_assert_int_eq(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	ck_assert_uint_eq(flags, 0);
	must_close(&ep->fid);
	pair_close(&p);
}
END_TEST

START_TEST(msg_receives_complete_as_their_queue_is_bound)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .selective = true };

	open_with(&opt);
	accepted(RECV);
	ck_assert(got.recv.silent);
	accepted(RECVV);
	ck_assert(got.recv.silent);
	accepted(RECVMSG);
	ck_assert(got.recv.silent);
	args.flags = FI_COMPLETION;
	accepted(RECVMSG);
	ck_assert(!got.recv.silent);
	args.flags = 0;
	/* Those of transmits are no matter. */
	set_flags(FI_TRANSMIT | FI_COMPLETION);
	accepted(RECV);
	ck_assert(got.recv.silent);
	set_flags(FI_RECV | FI_COMPLETION);
	accepted(RECV);
	ck_assert(!got.recv.silent);
	accepted(RECVV);
	ck_assert(!got.recv.silent);
	accepted(RECVMSG);
	ck_assert(got.recv.silent);
	pair_close(&p);
}
END_TEST

/* Selective for sends alone. */
START_TEST(msg_each_side_has_its_own_selection)
{
	struct fid_ep *ep;

	open_with(PLAIN);
	ep = endpoint(0);
	ck_assert_int_eq(fi_ep_bind(ep, &p.a.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &p.a.cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &p.a.cq->fid, FI_RECV), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_int_eq(try_recv(ep), 0);
	ck_assert(!got.recv.silent);
	ck_assert(mrf_ep_of(&ep->fid)->selective);
	must_close(&ep->fid);
	pair_close(&p);
}
END_TEST

/* --- descriptors -------------------------------------------------------------------------- */

#define LOCAL (FI_MR_ALLOCATED | FI_MR_LOCAL)

START_TEST(msg_receives_need_descriptors_that_grant_them)
{
	struct node_opt opt = { .mr_mode = LOCAL };
	struct fid_mr *good, *other;
	void *desc = NULL;
	int call;

	open_with(&opt);
	good = node_reg(&p.a, p.src, 4096, FI_RECV, 1);
	other = node_reg(&p.a, p.src, 4096, FI_SEND | FI_READ | FI_WRITE, 2);
	one.iov_base = p.src;
	args.desc = &desc;
	for (call = RECV; call < CALLS; call++) {
		one.iov_len = 8;
		desc = NULL;
		refused(call, FI_EINVAL, "MRF-E4010", "is missing");
		desc = &context;
		refused(call, FI_EINVAL, "MRF-E4010", "not a descriptor of this domain");
		desc = fi_mr_desc(other);
		refused(call, FI_EACCES, "MRF-E4011", "registered without FI_RECV");
		desc = fi_mr_desc(good);
		one.iov_len = 4096;
		accepted(call);
		ck_assert_ptr_eq(got.desc, desc);
		one.iov_len++;
		refused(call, FI_EINVAL, "MRF-E4012", "not inside the region");
		/* No bytes need none. */
		one.iov_len = 0;
		desc = NULL;
		accepted(call);
	}
	must_close(&good->fid);
	must_close(&other->fid);
	pair_close(&p);
}
END_TEST

/* Where none is needed, none is looked at. */
START_TEST(msg_receives_need_no_descriptors_without_fi_mr_local)
{
	void *desc = &context;

	open_with(PLAIN);
	args.desc = &desc;
	for (int call = RECV; call < CALLS; call++) {
		accepted(call);
		ck_assert_ptr_eq(got.desc, &context);
	}
	args.desc = NULL;
	accepted(RECV);
	pair_close(&p);
}
END_TEST

/* A send as an operation, as far as the transport has it made. What was said is in cap. */
static struct mrf_op *make_send(void *desc, int *ret)
{
	struct mrf_ep *ep = node_ep(&p.a);
	struct mrf_req req = { .type = &mrf_op_send,
			       .iov = &one,
			       .desc = &desc,
			       .count = 1,
			       .context = &context,
			       .addr = p.to };
	struct mrf_op *op;

	ck_assert_int_eq(mrf_entry_begin(ep, MRF_CONN_LINE, p.to, &op), 0);
	unit_capture(&cap);
	*ret = mrf_entry_fill(ep, &req, op);
	unit_captured(&cap);
	return op;
}

static int take_send(void *desc)
{
	int ret;

	mrf_chores_free(node_ep(&p.a), make_send(desc, &ret));
	return ret;
}

START_TEST(msg_sends_need_descriptors_that_grant_them)
{
	struct node_opt opt = { .mr_mode = LOCAL };
	struct fid_mr *good, *other;

	open_with(&opt);
	good = node_reg(&p.a, p.src, 4096, FI_SEND, 1);
	other = node_reg(&p.a, p.src, 4096, FI_RECV | FI_READ | FI_WRITE, 2);
	one = (struct iovec){ p.src, 4096 };
	ck_assert_int_eq(take_send(fi_mr_desc(good)), 0);
	ck_assert_int_eq(take_send(fi_mr_desc(other)), -FI_EACCES);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E4011"));
	ck_assert_ptr_nonnull(strstr(cap.text, "registered without FI_SEND"));
	ck_assert_int_eq(take_send(NULL), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E4010"));
	must_close(&good->fid);
	must_close(&other->fid);
	pair_close(&p);
}
END_TEST

START_TEST(msg_sends_need_no_descriptors_without_fi_mr_local)
{
	open_with(PLAIN);
	one = (struct iovec){ p.src, 8192 };
	ck_assert_int_eq(take_send(NULL), 0);
	ck_assert_int_eq(take_send(&context), 0);
	ck_assert_str_eq(cap.text, "");
	pair_close(&p);
}
END_TEST

/* What the application hears of a send that has ended. */
START_TEST(msg_sends_are_reported_and_counted_as_such)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .counters = true };
	struct fi_cq_data_entry entry;
	struct fid_cntr *sent;
	struct mrf_ep *ep;
	struct mrf_op *op;
	int ret;

	open_with(&opt);
	ep = node_ep(&p.a);
	sent = cntr_open();
	if (_i)
		ck_assert_int_eq(fi_ep_bind(p.a.ep, &sent->fid, FI_SEND), 0);
	op = make_send(NULL, &ret);
	ck_assert_int_eq(ret, 0);
	mrf_lock_take(&ep->lock);
	ck_assert_int_eq(mrf_peers_get_locked(ep, MRF_CONN_LINE, p.to, &op->peer), 0);
	mrf_chores_done_locked(ep, op);
	mrf_chores_unlock(ep);
	entry = want_ok(&p.a, &context);
	ck_assert_uint_eq(entry.flags, FI_MSG | FI_SEND);
	ck_assert_uint_eq(fi_cntr_read(sent), _i);
	ck_assert_uint_eq(fi_cntr_read(p.a.wr), 0);
	ck_assert_uint_eq(fi_cntr_read(p.a.rd), 0);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	must_close(&sent->fid);
	pair_close(&p);
}
END_TEST

/* --- queues and counters ------------------------------------------------------------------- */

/* Bindings, and whether the endpoint can be enabled with them. */
static const struct {
	uint64_t caps, cq, cntr;
	const char *lacks;
} bindings[] = {
	{ FI_MSG, 0, 0, "sends have nowhere to go: bind a CQ with FI_TRANSMIT" },
	{ FI_MSG, FI_TRANSMIT, 0, "receives have nowhere to go: bind a CQ with FI_RECV" },
	{ FI_MSG, FI_RECV, 0, "sends have nowhere to go" },
	{ FI_MSG, FI_TRANSMIT | FI_RECV, 0, NULL },
	{ FI_MSG, FI_TRANSMIT, FI_RECV, NULL },
	{ FI_MSG, FI_RECV, FI_SEND, NULL },
	{ FI_MSG, 0, FI_SEND | FI_RECV, NULL },
	{ FI_MSG, 0, FI_SEND | FI_WRITE, "receives have nowhere to go" },
	{ FI_MSG | FI_SEND, FI_TRANSMIT, 0, NULL },
	{ FI_MSG | FI_SEND, FI_RECV, 0, "sends have nowhere to go" },
	{ FI_MSG | FI_RECV, FI_RECV, 0, NULL },
	{ FI_MSG | FI_RECV, FI_TRANSMIT, 0, "receives have nowhere to go" },
	{ FI_MSG | FI_RMA, 0, FI_SEND | FI_RECV, "reads and writes have nowhere to go" },
	{ FI_MSG | FI_RMA, 0, FI_SEND | FI_RECV | FI_WRITE, NULL },
	{ FI_RMA, FI_TRANSMIT, 0, NULL },
};

START_TEST(msg_directions_need_a_queue_or_a_counter)
{
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	int ret;

	open_with(PLAIN);
	cntr = cntr_open();
	ep = endpoint(bindings[_i].caps);
	ck_assert_int_eq(fi_ep_bind(ep, &p.a.av->fid, 0), 0);
	if (bindings[_i].cq)
		ck_assert_int_eq(fi_ep_bind(ep, &p.a.cq->fid, bindings[_i].cq), 0);
	if (bindings[_i].cntr)
		ck_assert_int_eq(fi_ep_bind(ep, &cntr->fid, bindings[_i].cntr), 0);
	unit_capture(&cap);
	ret = fi_enable(ep);
	unit_captured(&cap);
	ck_assert_int_eq(ret, bindings[_i].lacks ? -FI_ENOCQ : 0);
	if (bindings[_i].lacks)
		ck_assert_msg(strstr(cap.text, "MRF-E4049") && strstr(cap.text, bindings[_i].lacks),
			      "%s", cap.text);
	must_close(&ep->fid);
	must_close(&cntr->fid);
	pair_close(&p);
}
END_TEST

/* How often reading the queue looks at the endpoint. */
static unsigned links(struct fid_cq *cq, struct fid_ep *ep)
{
	struct mrf_wait *wait = mrf_cq_obj(mrf_cq_from_fid(&cq->fid))->wait;
	unsigned n = 0;

	mrf_list_each (node, &wait->links)
		n += mrf_list_entry(node, struct mrf_wait_link, node)->source ==
		     &mrf_ep_of(&ep->fid)->source;
	return n;
}

START_TEST(msg_each_queue_moves_the_endpoint_once)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA };
	struct fid_cq *own;
	struct fid_ep *ep;

	open_with(PLAIN);
	ck_assert_int_eq(fi_cq_open(p.a.domain, &attr, &own, NULL), 0);
	ck_assert_uint_eq(links(p.a.cq, p.a.ep), 1); /* bound for both */
	ep = endpoint(FI_MSG);
	ck_assert_int_eq(fi_ep_bind(ep, &own->fid, FI_RECV), 0);
	ck_assert_uint_eq(links(own, ep), 1);
	ck_assert_int_eq(fi_ep_bind(ep, &own->fid, FI_TRANSMIT), 0);
	ck_assert_uint_eq(links(own, ep), 1);
	must_close(&ep->fid);
	ep = endpoint(FI_MSG);
	ck_assert_int_eq(fi_ep_bind(ep, &p.a.cq->fid, FI_TRANSMIT), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &own->fid, FI_RECV), 0);
	ck_assert_uint_eq(links(p.a.cq, ep), 1);
	ck_assert_uint_eq(links(own, ep), 1);
	ck_assert_int_eq(fi_close(&own->fid), -FI_EBUSY);
	must_close(&ep->fid);
	ck_assert_uint_eq(links(own, p.a.ep), 0);
	/* Without messages the agent alone writes there. */
	ep = endpoint(FI_RMA);
	ck_assert_int_eq(fi_ep_bind(ep, &own->fid, FI_RECV), 0);
	ck_assert_uint_eq(links(own, ep), 0);
	must_close(&ep->fid);
	must_close(&own->fid);
	pair_close(&p);
}
END_TEST

START_TEST(msg_counters_of_each_direction_are_bound_once_and_held)
{
	struct fid_cntr *sent, *received;
	struct fid_ep *ep;

	open_with(PLAIN);
	sent = cntr_open();
	received = cntr_open();
	ep = enabled(FI_MSG);
	ck_assert_int_eq(fi_ep_bind(ep, &sent->fid, FI_SEND), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &received->fid, FI_RECV), 0);
	ck_assert_ptr_eq(mrf_ep_of(&ep->fid)->snd_cntr, mrf_cntr_from_fid(&sent->fid));
	ck_assert_ptr_eq(mrf_ep_of(&ep->fid)->rcv_cntr, mrf_cntr_from_fid(&received->fid));
	ck_assert_ptr_null(mrf_ep_of(&ep->fid)->wr_cntr);
	unit_capture(&cap);
	ck_assert_int_eq(fi_ep_bind(ep, &sent->fid, FI_SEND), -FI_EINVAL);
	ck_assert_int_eq(fi_ep_bind(ep, &sent->fid, FI_RECV), -FI_EINVAL);
	ck_assert_int_eq(fi_close(&sent->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&received->fid), -FI_EBUSY);
	unit_captured(&cap);
	must_close(&ep->fid);
	must_close(&sent->fid);
	must_close(&received->fid);
	pair_close(&p);
}
END_TEST

START_TEST(msg_counter_is_not_bound_while_what_it_counts_is_under_way)
{
	struct fid_cntr *cntr;

	open_with(PLAIN);
	cntr = cntr_open();
	got.posted = 1;
	unit_capture(&cap);
	ck_assert_int_eq(fi_ep_bind(p.a.ep, &cntr->fid, FI_RECV), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_ep_bind(p.a.ep, &cntr->fid, FI_SEND | FI_RECV), -FI_EOPBADSTATE);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E4062"));
	ck_assert_ptr_null(node_ep(&p.a)->snd_cntr);
	/* Receives that are posted are no sends. */
	ck_assert_int_eq(fi_ep_bind(p.a.ep, &cntr->fid, FI_SEND), 0);
	got.posted = 0;
	fake_hold(true);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(fi_ep_bind(p.a.ep, &cntr->fid, FI_RECV), 0);
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 0));
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	must_close(&cntr->fid);
	pair_close(&p);
}
END_TEST

static void bind_says(uint64_t caps, uint64_t flags, const char *text)
{
	struct fid_cntr *cntr = cntr_open();
	struct fid_ep *ep = endpoint(caps);

	unit_capture(&cap);
	ck_assert_int_eq(fi_ep_bind(ep, &cntr->fid, flags), 0);
	unit_captured(&cap);
	ck_assert_msg(text ? strstr(cap.text, text) != NULL : !*cap.text, "%s", cap.text);
	must_close(&ep->fid);
	must_close(&cntr->fid);
}

START_TEST(msg_counter_that_can_count_none_is_said)
{
	open_with(PLAIN);
	setenv("FI_LOG_LEVEL", "info", 1);
	mrf_log_reload();
	bind_says(FI_MSG, FI_SEND | FI_RECV, NULL);
	bind_says(FI_RMA, FI_SEND | FI_RECV,
		  "counts nothing: the endpoint was opened without FI_MSG");
	bind_says(FI_RMA, FI_SEND | FI_WRITE,
		  "counts no messages, because the endpoint was opened "
		  "without FI_MSG");
	bind_says(FI_MSG | FI_SEND, FI_RECV, "MRF-W4068");
	bind_says(FI_MSG | FI_SEND, FI_SEND | FI_RECV, "counts no receives");
	bind_says(FI_MSG | FI_RECV, FI_SEND | FI_RECV, "counts no sends");
	pair_close(&p);
}
END_TEST

/* --- cancelling, and how many can be posted -------------------------------------------------- */

START_TEST(msg_cancel_looks_at_operations_and_then_at_receives)
{
	struct fid_ep *ep;

	open_with(PLAIN);
	got.canceled = &context;
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &context), 0);
	ck_assert_uint_eq(got.cancels, 1);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &got), -FI_ENOENT);
	ck_assert_uint_eq(got.cancels, 2);
	/* An endpoint that receives nothing has none. */
	ep = enabled(FI_MSG | FI_SEND);
	ck_assert_int_eq(fi_cancel(&ep->fid, &context), -FI_ENOENT);
	ck_assert_uint_eq(got.cancels, 2);
	must_close(&ep->fid);
	pair_close(&p);
}
END_TEST

START_TEST(msg_cancel_of_an_operation_leaves_receives_alone)
{
	open_with(PLAIN);
	/* It waits for a connection to a port where nobody listens. */
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	p.to = node_insert_port(&p.a, 4712);
	pair_write(&p, 0, 8);
	got.canceled = pair_ctx(&p, 0);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, pair_ctx(&p, 0)), 0);
	want_err(&p.a, pair_ctx(&p, 0), FI_ECANCELED, NULL);
	ck_assert_uint_eq(got.cancels, 0);
	pair_close(&p);
}
END_TEST

static ssize_t size_left(uint64_t caps, size_t size)
{
	struct fid_ep *ep;
	ssize_t left;

	p.a.info->rx_attr->size = size;
	ep = endpoint(caps);
	unit_capture(&cap);
	left = ep->ops->rx_size_left(ep);
	unit_captured(&cap);
	must_close(&ep->fid);
	return left;
}

START_TEST(msg_size_left_is_what_is_not_posted_of_the_size)
{
	open_with(PLAIN);
	ck_assert_int_eq(size_left(FI_MSG, 0), 2048);
	ck_assert_int_eq(size_left(FI_MSG, 5), 5);
	ck_assert_int_eq(size_left(FI_MSG, SIZE_MAX), MRF_LIMIT_SIZE);
	got.posted = 3;
	ck_assert_int_eq(size_left(FI_MSG, 5), 2);
	got.posted = 5;
	ck_assert_int_eq(size_left(FI_MSG, 5), 0);
	/* More are accepted. */
	got.posted = 6;
	ck_assert_int_eq(size_left(FI_MSG, 5), 0);
	ck_assert_int_eq(size_left(FI_RMA, 5), -FI_ENOSYS);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E4090: fi_rx_size_left needs FI_MSG"));
	ck_assert_int_eq(size_left(FI_MSG | FI_SEND, 5), -FI_ENOSYS);
	ck_assert_ptr_nonnull(strstr(cap.text, "fi_rx_size_left needs FI_RECV"));
	pair_close(&p);
}
END_TEST

static TCase *arguments(void)
{
	TCase *tc = tcase_create("arguments");

	tcase_add_checked_fixture(tc, setup, fixture_teardown);
	tcase_add_test(tc, msg_sends_arrive_as_they_were_asked_for);
	tcase_add_test(tc, msg_receives_arrive_as_they_were_asked_for);
	tcase_add_loop_test(tc, msg_takes_as_many_buffers_as_are_offered, 0,
			    MRF_ARRAY_SIZE(vectors));
	tcase_add_test(tc, msg_structure_has_to_be_there);
	tcase_add_test(tc, msg_sends_have_a_greatest_length);
	tcase_add_test(tc, msg_injected_ones_have_a_greatest_length);
	tcase_add_test(tc, msg_receives_have_any_length);
	tcase_add_test(tc, msg_receives_need_descriptors_that_grant_them);
	tcase_add_test(tc, msg_receives_need_no_descriptors_without_fi_mr_local);
	tcase_add_test(tc, msg_sends_need_descriptors_that_grant_them);
	tcase_add_test(tc, msg_sends_need_no_descriptors_without_fi_mr_local);
	tcase_add_loop_test(tc, msg_sends_are_reported_and_counted_as_such, 0, 2);
	return tc;
}

static TCase *flags(void)
{
	TCase *tc = tcase_create("flags");

	tcase_add_checked_fixture(tc, setup, fixture_teardown);
	tcase_add_test(tc, msg_sendmsg_takes_the_flags_that_are_for_it);
	tcase_add_test(tc, msg_recvmsg_takes_the_flags_that_are_for_it);
	tcase_add_loop_test(tc, msg_operation_flags_that_are_not_offered_refuse_plain_sends, 0,
			    MRF_ARRAY_SIZE(later));
	tcase_add_test(tc, msg_operation_flags_are_those_of_plain_sends);
	tcase_add_test(tc, msg_receives_have_operation_flags_of_their_own);
	tcase_add_test(tc, msg_receives_complete_as_their_queue_is_bound);
	tcase_add_test(tc, msg_each_side_has_its_own_selection);
	return tc;
}

static TCase *endpoints(void)
{
	TCase *tc = tcase_create("endpoints");

	tcase_add_checked_fixture(tc, setup, fixture_teardown);
	tcase_add_test(tc, msg_needs_an_endpoint_that_is_enabled);
	tcase_add_test(tc, msg_needs_the_direction);
	tcase_add_test(tc, msg_needs_the_capability);
	tcase_add_test(tc, msg_capabilities_of_an_endpoint_are_those_asked_for);
	tcase_add_loop_test(tc, msg_directions_need_a_queue_or_a_counter, 0,
			    MRF_ARRAY_SIZE(bindings));
	tcase_add_test(tc, msg_each_queue_moves_the_endpoint_once);
	tcase_add_test(tc, msg_counters_of_each_direction_are_bound_once_and_held);
	tcase_add_test(tc, msg_counter_is_not_bound_while_what_it_counts_is_under_way);
	tcase_add_test(tc, msg_counter_that_can_count_none_is_said);
	tcase_add_test(tc, msg_cancel_looks_at_operations_and_then_at_receives);
	tcase_add_test(tc, msg_cancel_of_an_operation_leaves_receives_alone);
	tcase_add_test(tc, msg_size_left_is_what_is_not_posted_of_the_size);
	return tc;
}

UNIT_MAIN("msg_calls", arguments, flags, endpoints)
