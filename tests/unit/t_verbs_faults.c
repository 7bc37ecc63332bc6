/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each call of libibverbs and librdmacm that the library makes fails once, and each
 * allocation around them: its own error is returned, all that was open can be closed, and
 * nothing is left but what the kernel does not let go of, which is said. The program is linked
 * without those libraries, so that a call that is not in the list below cannot be forgotten.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "base/param.h"
#include "verbs/verbs_int.h"
#include "verbs/vloop.h"
#include "verbs/vpair.h"
#include "verbs/vqp.h"
#include "verbs/vsrq.h"
#include "../fake/fake_verbs.h"
#include "fail_alloc.h"
#include "unit.h"

bool __real_mrf_random(void *buf, size_t len);
bool __wrap_mrf_random(void *buf, size_t len);

static bool no_random;

bool __wrap_mrf_random(void *buf, size_t len)
{
	return !no_random && __real_mrf_random(buf, len);
}

static struct sockaddr_in addr;
static uint64_t bytes[2];

static struct {
	struct mrf_vdev *dev;
	struct mrf_vpd *pd;
	struct mrf_vmr mr;
	struct mrf_vcq *cq;
	struct mrf_vcm *cm;
	struct mrf_vsrq *srq;
	struct mrf_vconn *listener, *to, *from, *line;
	struct mrf_vpair *pair;
	struct mrf_vloop *loop;
} all;

/* --- all that is done with a device ------------------------------------------------- */

static struct sockaddr *sa(void)
{
	addr = (struct sockaddr_in){ .sin_family = AF_INET };
	inet_pton(AF_INET, "10.99.1.1", &addr.sin_addr);
	return (struct sockaddr *)&addr;
}

static int open_device(void)
{
	int ret = mrf_vdev_open(sa(), &all.dev);

	if (!ret)
		ret = mrf_vpd_alloc(all.dev, &all.pd);
	if (!ret)
		ret = mrf_vmr_reg(all.pd, bytes, sizeof(bytes), (uintptr_t)bytes,
				  MRF_RIGHT_LOCAL_WRITE, &all.mr);
	if (!ret)
		ret = mrf_vcq_open(all.dev, 16, &all.cq);
	if (!ret)
		mrf_vcq_arm(all.cq);
	return ret ? ret : mrf_vcq_grow(all.cq, 32);
}

static int listen_there(void)
{
	int ret = mrf_vcm_open(&all.cm);

	if (!ret)
		ret = mrf_vconn_open(all.cm, NULL, &all.listener);
	if (!ret)
		ret = mrf_vconn_bind(all.listener, sa());
	return ret ? ret : mrf_vconn_listen(all.listener);
}

static int new_qp(struct mrf_vconn *conn, struct mrf_vsrq *srq)
{
	struct mrf_vqp_attr attr = { .pd = all.pd,
				     .send_cq = all.cq,
				     .recv_cq = all.cq,
				     .send_depth = 4,
				     .recv_depth = 4,
				     .send_sge = 1,
				     .srq = srq,
				     .sends_only = srq };

	return mrf_vconn_create_qp(conn, &attr);
}

static int connect_to(void)
{
	int ret = mrf_vconn_open(all.cm, NULL, &all.to);

	if (!ret)
		ret = mrf_vconn_resolve(all.to, sa(), sa(), 100, 14);
	if (!ret)
		ret = new_qp(all.to, NULL);
	if (!ret)
		ret = mrf_vconn_route(all.to, 100);
	if (!ret)
		ret = mrf_vconn_connect(all.to, "", 1, 6);
	return ret ? ret : mrf_vconn_establish(all.to);
}

static int take_in(void)
{
	struct mrf_cm_event event;
	int ret = mrf_vcm_next(all.cm, &event);
	uint32_t psn, mtu;

	if (!ret && event.type == MRF_CM_OTHER)
		ret = -FI_ENOMEM;
	if (!ret)
		all.from = event.incoming;
	if (!ret)
		ret = new_qp(all.from, NULL);
	if (!ret)
		ret = mrf_vconn_accept(all.from, "", 1);
	if (!ret)
		ret = mrf_vconn_tune(all.from);
	if (!ret)
		ret = mrf_vconn_psn(all.from, &psn, &mtu);
	if (!ret && (psn != 9 || mtu != 1024))
		abort();
	if (!ret)
		ret = mrf_vconn_stopped(all.from, &psn);
	if (!ret && psn != 7)
		abort();
	return ret;
}

/* A connection whose receives are shared, and which gives its peer no right. */
static int take_in_line(void)
{
	struct mrf_sge sge = { (uintptr_t)bytes, 8, all.mr.lkey };
	struct mrf_cm_event event;
	int ret = mrf_vsrq_open(all.pd, 4, &all.srq);

	if (!ret)
		ret = mrf_vcm_next(all.cm, &event);
	if (!ret && event.type == MRF_CM_OTHER)
		ret = -FI_ENOMEM;
	if (!ret)
		all.line = event.incoming;
	if (!ret)
		ret = new_qp(all.line, all.srq);
	if (!ret)
		ret = mrf_vsrq_post(all.srq, 1, &sge);
	if (!ret)
		ret = mrf_vconn_accept(all.line, "", 1);
	if (!ret && (fake_verbs.access || all.line->id->qp))
		abort();
	return ret;
}

static int open_pair(struct mrf_vpair **pair)
{
	const struct mrf_vpair_attr attr = { .pd = all.pd,
					     .send_cq = all.cq,
					     .recv_cq = all.cq,
					     .send_depth = 4,
					     .recv_depth = 4,
					     .send_sge = 2,
					     .recv_sge = 2 };

	fake_verbs.access = 1;
	return mrf_vpair_open(all.from, &attr, pair);
}

/* Beside a connection whose peer has rights; the peer has none by the pair. */
static int join_pair(void)
{
	const struct mrf_vpair_name other = { .qpn = 79, .psn = 0xabcdef };
	struct mrf_sge sge[2] = { { (uintptr_t)bytes, 8, all.mr.lkey } };
	int ret = open_pair(&all.pair);

	if (!ret)
		ret = mrf_vpair_connect(all.pair, all.from, &other);
	if (!ret &&
	    (fake_verbs.access || fake_verbs.other.qpn != 79 || fake_verbs.other.psn != 0xabcdef ||
	     fake_verbs.sq_psn != mrf_vpair_name(all.pair).psn))
		abort();
	if (!ret)
		ret = mrf_vpair_recv(all.pair, 1, sge, 2);
	return ret ? ret : mrf_vpair_send(all.pair, 2, sge, 2, false);
}

static int turn_away(void)
{
	struct mrf_cm_event event;
	int ret = mrf_vcm_next(all.cm, &event);

	if (!ret && event.type == MRF_CM_OTHER)
		ret = -FI_ENOMEM;
	if (ret)
		return ret;
	mrf_vconn_reject(event.incoming, "", 1);
	mrf_vconn_close(event.incoming);
	return 0;
}

static int transfer(void)
{
	struct mrf_sge sge = { (uintptr_t)bytes, 8, all.mr.lkey };
	struct mrf_vwr wr = { .op = MRF_VWR_WRITE, .nsge = 1, .sge = &sge };
	struct mrf_wc wc;
	int ret = mrf_vconn_post(all.to, &wr);

	if (!ret)
		ret = mrf_vconn_access(all.to, 1, MRF_VWR_READ, false, &sge, 0, 1, 0);
	if (!ret)
		ret = mrf_vconn_access(all.to, 1, MRF_VWR_WRITE_IMM, false, &sge, 0, 1, 2);
	wr.op = MRF_VWR_CMP_SWP;
	if (!ret)
		ret = mrf_vconn_post(all.to, &wr);
	if (!ret)
		ret = mrf_vconn_post_recv(all.from, 1, &sge);
	if (!ret)
		ret = mrf_vcq_poll(all.cq, &wc, 1);
	if (ret >= 0)
		ret = mrf_vcq_poll_from(all.cq, &wc, 1);
	if (ret == 1 && wc.qpn != 78)
		abort();
	return ret < 0 ? ret : 0;
}

static int run_loop(void)
{
	struct mrf_sge sge = { (uintptr_t)bytes, 8, all.mr.lkey };
	struct mrf_vwr wr = { .op = MRF_VWR_FETCH_ADD, .nsge = 1, .sge = &sge };
	int ret = mrf_vloop_open(all.dev, sa(), all.pd, &all.loop);

	if (!ret)
		ret = mrf_vloop_run(all.loop, &wr);
	wr.op = MRF_VWR_WRITE;
	return ret ? ret : mrf_vloop_run(all.loop, &wr);
}

static int hear(void)
{
	struct mrf_vdev_event event;

	fake_verbs_tell((struct ibv_async_event){ .event_type = IBV_EVENT_PORT_ACTIVE });
	return mrf_vdev_next_event(all.dev, &event);
}

/* --- what the device tells ------------------------------------------------------------ */

static struct mrf_vdev_event tells(enum ibv_event_type type, struct ibv_cq *cq, struct ibv_qp *qp)
{
	struct ibv_async_event event = { .event_type = type };
	struct mrf_vdev_event got = { .type = MRF_VDEV_OTHER };
	unsigned acked = fake_verbs.acked;

	if (cq)
		event.element.cq = cq;
	else
		event.element.qp = qp;
	fake_verbs_tell(event);
	ck_assert_int_eq(mrf_vdev_next_event(all.dev, &got), 0);
	ck_assert_uint_eq(fake_verbs.acked, acked + 1);
	ck_assert_ptr_nonnull(got.text);
	ck_assert_int_eq(mrf_vdev_next_event(all.dev, &got), -FI_EAGAIN);
	return got;
}

static int use_all(void);
static int close_all(void);

START_TEST(what_a_device_tells_is_named_with_what_it_is_of)
{
	struct mrf_vdev_event event;
	struct ibv_qp qp = { 0 };
	int me;

	ck_assert_int_eq(use_all(), 0);
	ck_assert_int_eq(mrf_vdev_next_event(all.dev, &event), -FI_EAGAIN);
	event = tells(IBV_EVENT_CQ_ERR, all.cq->cq, NULL);
	ck_assert(event.type == MRF_VDEV_CQ_ERR && event.cq == all.cq);
	mrf_vconn_set_owner(all.to, &me);
	event = tells(IBV_EVENT_QP_FATAL, NULL, all.to->qp);
	ck_assert(event.type == MRF_VDEV_QP_ERR && event.owner == &me);
	/* Refusals: the initiator's completion says more, and must come first. */
	ck_assert_int_eq(tells(IBV_EVENT_QP_ACCESS_ERR, NULL, all.to->qp).type, MRF_VDEV_OTHER);
	ck_assert_int_eq(tells(IBV_EVENT_QP_REQ_ERR, NULL, all.to->qp).type, MRF_VDEV_OTHER);
	/* One that is no connection's. */
	event = tells(IBV_EVENT_QP_FATAL, NULL, &qp);
	ck_assert(event.type == MRF_VDEV_QP_ERR && !event.owner);
	ck_assert_int_eq(tells(IBV_EVENT_DEVICE_FATAL, NULL, NULL).type, MRF_VDEV_GONE);
	ck_assert_int_eq(tells(IBV_EVENT_PORT_ERR, NULL, NULL).type, MRF_VDEV_PORT_DOWN);
	ck_assert_int_eq(tells(IBV_EVENT_GID_CHANGE, NULL, NULL).type, MRF_VDEV_OTHER);
	fake_verbs_tell((struct ibv_async_event){ .event_type = IBV_EVENT_PORT_ERR });
	fake_verbs_fail(FAKE_GET_ASYNC_EVENT, 1, EIO);
	ck_assert_int_eq(mrf_vdev_next_event(all.dev, &event), -FI_EIO);
	ck_assert_int_eq(close_all(), 0);
}
END_TEST

static int err_of(enum rdma_cm_event_type type, int status, int err)
{
	struct mrf_cm_event event;

	fake_verbs.cm_event = (struct fake_cm_event){ type, status, err };
	ck_assert_int_eq(mrf_vcm_next(all.cm, &event), 0);
	fake_verbs.cm_event = (struct fake_cm_event){ 0 };
	ck_assert_int_eq(event.type, MRF_CM_FAILED);
	return event.err;
}

/* By librdmacm's own questions, to an address or a route that the kernel has found. */
START_TEST(what_the_kernel_does_not_say_any_more_is_no_missing_route)
{
	ck_assert_int_eq(use_all(), 0);
	errno = EACCES;
	ck_assert_int_eq(err_of(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, 0), FI_EHOSTUNREACH);
	ck_assert_int_eq(err_of(RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, 0), FI_ETIMEDOUT);
	ck_assert_int_eq(err_of(RDMA_CM_EVENT_ADDR_ERROR, -1, EACCES), FI_EACCES);
	ck_assert_int_eq(err_of(RDMA_CM_EVENT_ROUTE_ERROR, -1, EACCES), FI_EACCES);
	ck_assert_int_eq(close_all(), 0);
}
END_TEST

static int use_all(void)
{
	static int (*const step[])(void) = { open_device,  listen_there, connect_to, take_in,
					     take_in_line, join_pair,	 turn_away,  transfer,
					     run_loop,	   hear };
	int ret = 0;

	memset(&all, 0, sizeof(all));
	for (size_t i = 0; !ret && i < MRF_ARRAY_SIZE(step); i++)
		ret = step[i]();
	return ret;
}

static void close_conn(struct mrf_vconn *conn)
{
	if (!conn)
		return;
	mrf_vconn_disconnect(conn);
	mrf_vconn_close(conn);
}

/* The error of the one that has one. */
static int close_all(void)
{
	int ret;

	if (all.loop)
		mrf_vloop_close(all.loop);
	if (all.pair)
		mrf_vpair_close(all.pair);
	close_conn(all.from);
	close_conn(all.line);
	close_conn(all.to);
	close_conn(all.listener);
	if (all.cm)
		mrf_vcm_close(all.cm);
	if (all.srq)
		mrf_vsrq_close(all.srq);
	if (all.cq)
		mrf_vcq_close(all.cq);
	ret = mrf_vmr_dereg(&all.mr);
	if (ret)
		ck_assert_int_eq(mrf_vmr_dereg(&all.mr), 0);
	if (all.pd)
		mrf_vpd_free(all.pd);
	if (all.dev)
		mrf_vdev_close(all.dev);
	return ret;
}

/* --- what comes of a failure -------------------------------------------------------- */

static const struct {
	enum fake_call call;
	const char *warning; /* NULL: nothing is said, and nobody has to know */
	unsigned kept;	     /* objects that stay */
} ends[] = {
	{ FAKE_DEALLOC_PD, "MRF-W5201", 1 },  { FAKE_DESTROY_QP, "MRF-W3491", 1 },
	{ FAKE_DESTROY_CQ, "MRF-W3492", 1 },  { FAKE_CLOSE_DEVICE, "MRF-W3493", 1 },
	{ FAKE_DESTROY_ID, NULL, 1 },	      { FAKE_REJECT, NULL, 0 },
	{ FAKE_DISCONNECT, NULL, 0 },	      { FAKE_REQ_NOTIFY_CQ, "MRF-W3495", 0 },
	{ FAKE_DESTROY_SRQ, "MRF-W3496", 1 },
};

/* Index in ends, or -1: its error is returned. */
static int end_of(enum fake_call call)
{
	for (size_t i = 0; i < MRF_ARRAY_SIZE(ends); i++) {
		if (ends[i].call == call)
			return (int)i;
	}
	return -1;
}

/* What a caller is told of a call that failed with err. */
static int told(enum fake_call call, int err)
{
	switch (call) {
	case FAKE_POST_SEND:
	case FAKE_POST_RECV:
	case FAKE_POST_SRQ_RECV:
		return err == ENOMEM ? -FI_EAGAIN : -err;
	case FAKE_INIT_QP_ATTR:
	case FAKE_ESTABLISH:
		return err == EINVAL ? -FI_ECONNRESET : -err;
	case FAKE_POLL_CQ:
		return -FI_EIO;
	case FAKE_QUERY_GID: /* then the address is not there */
		return -FI_EINVAL;
	default:
		return -err;
	}
}

static struct unit_capture cap;

static void setup(void)
{
	setenv("FI_LOG_LEVEL", "warn", 1);
	mrf_env_reload();
	mrf_log_reload();
	fake_verbs_reset();
}

static bool in_use; /* it failed while all was used, not when it was closed */

static int use_and_close(int *closed)
{
	int ret;

	unit_capture(&cap);
	ret = use_all();
	in_use = fake_verbs_failed() != FAKE_CALLS;
	*closed = close_all();
	unit_captured(&cap);
	return ret;
}

static void check(unsigned nth, int err, int ret, int closed)
{
	enum fake_call call = fake_verbs_failed();
	int end = end_of(call);
	const char *warning = end < 0 ? NULL : ends[end].warning;

	if (end < 0 && in_use)
		ck_assert_msg(ret == told(call, err), "call %u, %s: %d", nth, fake_verbs_name(call),
			      ret);
	else
		ck_assert_msg(!ret, "call %u, %s: %d", nth, fake_verbs_name(call), ret);
	ck_assert_int_eq(closed, call == FAKE_DEREG_MR ? -err : 0);
	ck_assert_msg(unit_lines(cap.text) == (warning != NULL), "call %u, %s: %s", nth,
		      fake_verbs_name(call), cap.text);
	ck_assert(!warning || strstr(cap.text, warning));
	ck_assert_msg(fake_verbs_live() == (end < 0 ? 0 : ends[end].kept), "call %u, %s: %u left",
		      nth, fake_verbs_name(call), fake_verbs_live());
}

/* All but the ioctl, which t_vmr sees. */
static void must_have_met_all(void)
{
	for (int i = 0; i < FAKE_CALLS; i++)
		ck_assert_msg((fake_verbs.calls[i] > 0) == (i != FAKE_REVOKE_MR), "%s was %scalled",
			      fake_verbs_name(i), fake_verbs.calls[i] ? "" : "not ");
}

START_TEST(verbs_each_call_may_fail_once)
{
	static const int errs[] = { EIO, ENOMEM, EINVAL };
	int err = errs[_i], ret, closed;
	unsigned nth;

	for (nth = 1;; nth++) {
		fake_verbs_reset();
		fake_verbs_fail_any(nth, err);
		ret = use_and_close(&closed);
		if (fake_verbs_failed() == FAKE_CALLS)
			break;
		check(nth, err, ret, closed);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(fake_verbs_live(), 0);
	must_have_met_all();
	ck_assert_uint_gt(nth, 50);
	fake_verbs_reset();
}
END_TEST

/* A call that fails without saying why has failed all the same. */
START_TEST(verbs_failure_without_a_reason_is_no_success)
{
	unsigned nth, calls = 0, failed = 0;
	int i, ret, closed;

	ck_assert_int_eq(use_and_close(&closed), 0);
	for (i = 0; i < FAKE_CALLS; i++)
		calls += fake_verbs.calls[i];
	for (nth = 1; nth <= calls; nth++) {
		enum fake_call call;

		fake_verbs_reset();
		fake_verbs_fail_any(nth, 0);
		ret = use_and_close(&closed);
		call = fake_verbs_failed();
		if (call == FAKE_CALLS || end_of(call) >= 0)
			continue;
		ck_assert_msg(ret == -FI_EIO, "call %u, %s: %d", nth, fake_verbs_name(call), ret);
		ck_assert_uint_eq(fake_verbs_live(), 0);
		failed++;
	}
	ck_assert_uint_gt(failed, 10);
	fake_verbs_reset();
}
END_TEST

/* Numbers of 24 bits of 256 pairs: each bit is set in some, and not in others. */
START_TEST(pair_begins_with_a_random_packet)
{
	uint32_t set = 0, clear = 0;
	struct mrf_vpair *pair = NULL;

	ck_assert_int_eq(use_all(), 0);
	for (int i = 0; i < 256; i++) {
		ck_assert_int_eq(open_pair(&pair), 0);
		set |= mrf_vpair_name(pair).psn;
		clear |= ~mrf_vpair_name(pair).psn;
		ck_assert_uint_eq(mrf_vpair_name(pair).qpn, 77);
		mrf_vpair_close(pair);
	}
	ck_assert_uint_eq(set, 0xffffff);
	ck_assert_uint_eq(clear, 0xffffffff);
	no_random = true;
	pair = NULL;
	ck_assert_int_eq(open_pair(&pair), -FI_EIO);
	ck_assert_ptr_null(pair);
	no_random = false;
	ck_assert_int_eq(close_all(), 0);
	ck_assert_uint_eq(fake_verbs_live(), 0);
}
END_TEST

START_TEST(verbs_each_allocation_may_fail)
{
	int n, ret = -1;

	for (n = 0; ret; n++) {
		fake_verbs_reset();
		alloc_fail_after(n);
		ret = use_all();
		alloc_heal();
		ck_assert(!ret || ret == -FI_ENOMEM);
		ck_assert_int_eq(close_all(), 0);
		ck_assert_uint_eq(fake_verbs_live(), 0);
	}
	ck_assert_int_gt(n, 8);
}
END_TEST

static TCase *tcase_faults(void)
{
	TCase *tc = tcase_create("faults");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, verbs_each_call_may_fail_once, 0, 3);
	tcase_add_test(tc, verbs_failure_without_a_reason_is_no_success);
	tcase_add_test(tc, verbs_each_allocation_may_fail);
	tcase_add_test(tc, pair_begins_with_a_random_packet);
	tcase_add_test(tc, what_a_device_tells_is_named_with_what_it_is_of);
	tcase_add_test(tc, what_the_kernel_does_not_say_any_more_is_no_missing_route);
	return tc;
}

UNIT_MAIN("verbs_faults", tcase_faults)
