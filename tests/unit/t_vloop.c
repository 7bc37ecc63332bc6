/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop: two queue pairs of the process, connected with each other, on a fake of the
 * kernel's calls; and what lib/verbs makes of work requests and their completions.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include "verbs/verbs_int.h"
#include "verbs/verbs_int.h"
#include "verbs/vloop.h"
#include "../fake/fake_loop.h"
#include "unit.h"

static struct mrf_vdev dev;
static struct mrf_vpd pd;
static struct ibv_pd ibpd;
static struct mrf_vloop *loop;

static union {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
} addr;

static void set_addr(const char *text)
{
	memset(&addr, 0, sizeof(addr));
	if (strchr(text, ':')) {
		addr.in6.sin6_family = AF_INET6;
		ck_assert_int_eq(inet_pton(AF_INET6, text, &addr.in6.sin6_addr), 1);
	} else {
		addr.in.sin_family = AF_INET;
		ck_assert_int_eq(inet_pton(AF_INET, text, &addr.in.sin_addr), 1);
	}
}

static void set_gid(unsigned port, unsigned index, const char *text)
{
	ck_assert_int_eq(inet_pton(AF_INET6, text, &fake_loop.gid[port - 1][index]), 1);
}

static void setup(void)
{
	fake_loop_reset();
	dev.ctx = &fake_loop.ctx;
	pd = (struct mrf_vpd){ .dev = &dev, .pd = &ibpd };
	fake_loop.mtu[0] = IBV_MTU_1024;
	fake_loop.mtu[1] = IBV_MTU_4096;
	set_gid(1, 0, "fe80::1");
	set_gid(1, 1, "::ffff:10.99.1.1");
	set_gid(2, 2, "fd00:99::1");
	set_addr("10.99.1.1");
}

static int try_open(void)
{
	loop = NULL;
	return mrf_vloop_open(&dev, &addr.sa, &pd, &loop);
}

static void must_open(void)
{
	ck_assert_int_eq(try_open(), 0);
}

static void must_close(void)
{
	mrf_vloop_close(loop);
	ck_assert_uint_eq(fake_loop.live, 0);
}

/* --- work requests ---------------------------------------------------------------------- */

static uint64_t here[3], there[3];
static struct mrf_sge sge[3];
static struct mrf_vwr wr;

static int run(enum mrf_vwr_op op, int nsge)
{
	int i;

	for (i = 0; i < nsge; i++)
		sge[i] = (struct mrf_sge){ (uintptr_t)&here[i], 8, FAKE_LOOP_LKEY };
	wr.op = op;
	wr.nsge = nsge;
	wr.sge = sge;
	wr.remote_addr = (uintptr_t)there;
	wr.rkey = FAKE_LOOP_RKEY;
	return mrf_vloop_run(loop, &wr);
}

/* As after all that may go wrong: it works. */
static void want_works(void)
{
	there[0] = 40;
	wr.operand = 2;
	ck_assert_int_eq(run(MRF_VWR_FETCH_ADD, 1), 0);
	ck_assert_uint_eq(here[0], 40);
	ck_assert_uint_eq(there[0], 42);
}

/* --- opening ---------------------------------------------------------------------------- */

START_TEST(vloop_connects_two_queue_pairs_at_the_address)
{
	const struct ibv_ah_attr *ah = &fake_loop.here.ah_attr;

	must_open();
	ck_assert_uint_eq(fake_loop.live, 4);
	ck_assert_int_eq(fake_loop.here.qp_state, IBV_QPS_RTS);
	ck_assert_int_eq(fake_loop.there.qp_state, IBV_QPS_RTR);
	ck_assert_uint_eq(fake_loop.here.dest_qp_num, 2);
	ck_assert_uint_eq(fake_loop.there.dest_qp_num, 1);
	/* Only the end that answers lets anybody at memory. */
	ck_assert_uint_eq(fake_loop.here.qp_access_flags, 0);
	ck_assert_uint_eq(fake_loop.there.qp_access_flags, IBV_ACCESS_REMOTE_READ |
								   IBV_ACCESS_REMOTE_WRITE |
								   IBV_ACCESS_REMOTE_ATOMIC);
	/* As many as the one asks for the other answers, or it hangs; and none tries for ever. */
	ck_assert_uint_ge(fake_loop.here.max_rd_atomic, 1);
	ck_assert_uint_le(fake_loop.here.max_rd_atomic, fake_loop.there.max_dest_rd_atomic);
	ck_assert_uint_lt(fake_loop.here.retry_cnt, 7);
	ck_assert_uint_lt(fake_loop.here.rnr_retry, 7);
	ck_assert_uint_gt(fake_loop.here.timeout, 0);
	ck_assert_uint_eq(fake_loop.here.port_num, 1);
	ck_assert_uint_eq(ah->port_num, 1);
	ck_assert_uint_eq(ah->is_global, 1);
	ck_assert_uint_eq(ah->grh.sgid_index, 1);
	ck_assert_mem_eq(&ah->grh.dgid, &fake_loop.gid[0][1], sizeof(ah->grh.dgid));
	ck_assert_int_eq(fake_loop.here.path_mtu, IBV_MTU_1024);
	must_close();
}
END_TEST

START_TEST(vloop_finds_the_address_at_any_port_and_index)
{
	set_addr("fd00:99::1");
	must_open();
	ck_assert_uint_eq(fake_loop.here.port_num, 2);
	ck_assert_uint_eq(fake_loop.here.ah_attr.grh.sgid_index, 2);
	ck_assert_int_eq(fake_loop.there.path_mtu, IBV_MTU_4096);
	want_works();
	must_close();
	/* An index that cannot be read is not the one. */
	set_addr("10.99.1.1");
	fake_loop_fail(QP_QUERY_GID, 1, EIO);
	must_open();
	must_close();
}
END_TEST

START_TEST(vloop_without_its_address_is_refused)
{
	static const char *const others[] = { "10.99.1.2", "fd00:99::2", "::10.99.1.1" };
	unsigned i;

	for (i = 0; i < 3; i++) {
		set_addr(others[i]);
		ck_assert_int_eq(try_open(), -FI_EINVAL);
		ck_assert_ptr_null(loop);
		ck_assert_uint_eq(fake_loop.live, 0);
	}
}
END_TEST

/* The nth of each call, until opening does without so many; the next open works. */
START_TEST(vloop_open_fails_with_any_call_and_leaves_nothing)
{
	static const struct {
		enum fake_loop_call call;
		unsigned times;
	} calls[] = { { QP_QUERY_PORT, 1 },
		      { QP_CREATE_CHANNEL, 1 },
		      { QP_CREATE_CQ, 1 },
		      { QP_CREATE, 2 },
		      { QP_MODIFY, 5 } };
	static const int errors[] = { ENOMEM, EPERM, EIO };
	unsigned i, nth, e;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		for (nth = 1; nth <= calls[i].times; nth++) {
			for (e = 0; e < 3; e++) {
				fake_loop_fail(calls[i].call, nth, errors[e]);
				ck_assert_int_eq(try_open(), -errors[e]);
				ck_assert(fake_loop_failed());
				ck_assert_ptr_null(loop);
				ck_assert_uint_eq(fake_loop.live, 0);
				must_open();
				want_works();
				must_close();
			}
		}
		fake_loop_fail(calls[i].call, nth, EIO);
		must_open();
		ck_assert(!fake_loop_failed());
		fake_loop_fail(calls[i].call, 0, 0);
		must_close();
	}
}
END_TEST

/* --- running ---------------------------------------------------------------------------- */

START_TEST(vloop_carries_out_what_it_is_given)
{
	must_open();
	there[0] = 1, there[1] = 2, there[2] = 3;
	ck_assert_int_eq(run(MRF_VWR_READ, 3), 0);
	ck_assert_uint_eq(here[0] + 10 * here[1] + 100 * here[2], 321);
	here[0] = 7, here[1] = 8;
	ck_assert_int_eq(run(MRF_VWR_WRITE, 2), 0);
	ck_assert_uint_eq(there[0] + 10 * there[1] + 100 * there[2], 387);
	ck_assert_uint_eq(fake_loop.last.send_flags, IBV_SEND_SIGNALED);
	wr.operand = 5;
	ck_assert_int_eq(run(MRF_VWR_FETCH_ADD, 1), 0);
	ck_assert_uint_eq(here[0], 7);
	ck_assert_uint_eq(there[0], 12);
	wr.compare = 11;
	wr.operand = 99;
	ck_assert_int_eq(run(MRF_VWR_CMP_SWP, 1), 0);
	ck_assert_uint_eq(here[0], 12);
	ck_assert_uint_eq(there[0], 12);
	wr.compare = 12;
	ck_assert_int_eq(run(MRF_VWR_CMP_SWP, 1), 0);
	ck_assert_uint_eq(here[0], 12);
	ck_assert_uint_eq(there[0], 99);
	must_close();
}
END_TEST

START_TEST(vloop_that_cannot_post_says_why_and_does_nothing)
{
	static const int errors[] = { EINVAL, EACCES, ENOMEM };
	static const int fi[] = { -FI_EINVAL, -FI_EACCES, -FI_EAGAIN };
	unsigned e;

	for (e = 0; e < 6; e++) {
		must_open();
		there[0] = 1;
		wr.operand = 1;
		fake_loop_fail(QP_POST, 1, errors[e % 3]);
		ck_assert_int_eq(run(e < 3 ? MRF_VWR_FETCH_ADD : MRF_VWR_WRITE, 1), fi[e % 3]);
		ck_assert(fake_loop_failed());
		ck_assert_uint_eq(there[0], 1);
		/* Nothing is awaited that was never posted. */
		ck_assert_uint_eq(fake_loop.sleeps, 0);
		must_close();
		must_open();
		want_works();
		must_close();
	}
}
END_TEST

START_TEST(vloop_refusals_are_told_from_what_may_have_been_done)
{
	static const struct {
		enum ibv_wc_status status;
		int one, several; /* pieces that are read */
		int swap;
	} ends[] = { { IBV_WC_REM_ACCESS_ERR, -FI_EACCES, -FI_EACCES, -FI_EACCES },
		     { IBV_WC_REM_INV_REQ_ERR, -FI_EACCES, -FI_EACCES, -FI_EACCES },
		     { IBV_WC_REM_OP_ERR, -FI_EACCES, -FI_EACCES, -FI_EACCES },
		     { IBV_WC_LOC_PROT_ERR, -FI_EACCES, -FI_EIO, -FI_EIO },
		     { IBV_WC_LOC_LEN_ERR, -FI_EACCES, -FI_EIO, -FI_EIO },
		     { IBV_WC_LOC_QP_OP_ERR, -FI_EACCES, -FI_EIO, -FI_EIO },
		     { IBV_WC_LOC_ACCESS_ERR, -FI_EACCES, -FI_EIO, -FI_EIO },
		     { IBV_WC_WR_FLUSH_ERR, -FI_EACCES, -FI_EIO, -FI_EIO },
		     { IBV_WC_RETRY_EXC_ERR, -FI_EIO, -FI_EIO, -FI_EIO },
		     { IBV_WC_RNR_RETRY_EXC_ERR, -FI_EIO, -FI_EIO, -FI_EIO },
		     { IBV_WC_RESP_TIMEOUT_ERR, -FI_EIO, -FI_EIO, -FI_EIO },
		     { IBV_WC_GENERAL_ERR, -FI_EIO, -FI_EIO, -FI_EIO } };
	unsigned i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		must_open();
		fake_loop.status = ends[i].status;
		ck_assert_int_eq(run(MRF_VWR_READ, 1), ends[i].one);
		ck_assert_int_eq(run(MRF_VWR_READ, 2), ends[i].several);
		/* Of what is written nothing is filled. */
		ck_assert_int_eq(run(MRF_VWR_WRITE, 2), ends[i].one);
		/* What came back of an atomic operation may have got lost. */
		ck_assert_int_eq(run(MRF_VWR_CMP_SWP, 1), ends[i].swap);
		ck_assert_int_eq(run(MRF_VWR_FETCH_ADD, 1), ends[i].swap);
		fake_loop.status = IBV_WC_SUCCESS;
		must_close();
	}
}
END_TEST

START_TEST(vloop_whose_queue_is_broken_says_so)
{
	unsigned late;

	/* While it spins, and while it sleeps. */
	for (late = 1; late <= 401; late += 200) {
		must_open();
		fake_loop.late = -1;
		fake_loop_fail(QP_POLL, late, EIO);
		ck_assert_int_eq(run(MRF_VWR_READ, 1), -FI_EIO);
		fake_loop_fail(QP_POLL, 0, 0);
		fake_loop.late = 0;
		must_close();
	}
}
END_TEST

/* Whenever it comes: while it spins, just before it sleeps, or in its sleep. */
START_TEST(vloop_waits_for_what_comes_late)
{
	unsigned most = 0;
	int late;

	must_open();
	for (late = 0; late < 260; late++) {
		fake_loop.late = late;
		fake_loop.sleeps = 0;
		want_works();
		most = fake_loop.sleeps > most ? fake_loop.sleeps : most;
	}
	ck_assert_uint_gt(most, 0);
	fake_loop.by_event = true;
	fake_loop.bad_sleeps = 0;
	for (late = 0; late < 20; late++) {
		fake_loop.late = late;
		fake_loop.sleeps = 0;
		want_works();
		ck_assert_uint_eq(fake_loop.sleeps, (unsigned)late);
	}
	/* Armed, and with no event left from before. */
	ck_assert_uint_eq(fake_loop.bad_sleeps, 0);
	must_close();
}
END_TEST

START_TEST(vloop_does_not_wait_for_ever)
{
	must_open();
	fake_loop.late = -1;
	fake_loop.by_event = true;
	ck_assert_int_eq(run(MRF_VWR_READ, 1), -FI_EIO);
	ck_assert_uint_gt(fake_loop.sleeps, 10);
	/* All that can be done with it then. */
	must_close();
}
END_TEST

/* --- completions and posts of any connection ------------------------------------------------ */

START_TEST(vcq_says_what_came_in_and_what_was_sent)
{
	static const struct {
		enum ibv_wc_opcode opcode;
		enum mrf_wc_kind kind;
	} kinds[] = { { IBV_WC_RDMA_WRITE, MRF_WC_SENT },
		      { IBV_WC_FETCH_ADD, MRF_WC_SENT },
		      { IBV_WC_SEND, MRF_WC_SENT },
		      { IBV_WC_RECV, MRF_WC_RECV },
		      { IBV_WC_RECV_RDMA_WITH_IMM, MRF_WC_RECV_IMM } };
	struct mrf_vcq *cq;
	struct mrf_wc wc;
	unsigned i;

	ck_assert_int_eq(mrf_vcq_open(&dev, 8, &cq), 0);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		fake_loop.extra = (struct ibv_wc){ .wr_id = 7 + i,
						   .opcode = kinds[i].opcode,
						   .byte_len = 99,
						   .imm_data = htonl(0x12345678) };
		fake_loop.has_extra = true;
		memset(&wc, 0xaa, sizeof(wc));
		ck_assert_int_eq(mrf_vcq_poll(cq, &wc, 4), 1);
		ck_assert_uint_eq(wc.wr_id, 7 + i);
		ck_assert_int_eq(wc.status, MRF_WC_OK);
		ck_assert_int_eq(wc.raw_status, 0);
		ck_assert_int_eq(wc.kind, kinds[i].kind);
		if (wc.kind == MRF_WC_SENT)
			continue;
		ck_assert_uint_eq(wc.byte_len, 99);
		ck_assert_uint_eq(wc.imm, 0x12345678);
	}
	ck_assert_int_eq(mrf_vcq_poll(cq, &wc, 4), 0);
	fake_loop.extra = (struct ibv_wc){ .wr_id = 1, .status = IBV_WC_WR_FLUSH_ERR };
	fake_loop.has_extra = true;
	ck_assert_int_eq(mrf_vcq_poll(cq, &wc, 4), 1);
	ck_assert_int_eq(wc.status, MRF_WC_FLUSHED);
	ck_assert_int_eq(wc.raw_status, IBV_WC_WR_FLUSH_ERR);
	mrf_vcq_close(cq);
	ck_assert_uint_eq(fake_loop.live, 0);
}
END_TEST

/* The shorter call is the longer one. */
START_TEST(vconn_fetch_add_posts_what_any_atomic_does)
{
	struct mrf_sge to = { (uintptr_t)here, 8, FAKE_LOOP_LKEY };
	struct mrf_vwr any = { .wr_id = 77,
			       .op = MRF_VWR_FETCH_ADD,
			       .nsge = 1,
			       .sge = &to,
			       .remote_addr = (uintptr_t)there,
			       .rkey = FAKE_LOOP_RKEY,
			       .operand = 5 };
	struct ibv_qp qp = { .context = &fake_loop.ctx };
	struct mrf_vconn conn = { .qp = &qp };
	struct ibv_send_wr want;

	/* Not connected; what it was asked for is remembered. */
	ck_assert_int_eq(mrf_vconn_post(&conn, &any), -FI_EINVAL);
	want = fake_loop.last;
	ck_assert_int_eq(want.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
	ck_assert_uint_eq(want.wr.atomic.compare_add, 5);
	memset(&fake_loop.last, 0, sizeof(fake_loop.last));
	memset(fake_loop.last_sge, 0, sizeof(fake_loop.last_sge));
	ck_assert_int_eq(mrf_vconn_fetch_add(&conn, 77, &to, (uintptr_t)there, FAKE_LOOP_RKEY, 6),
			 -FI_EINVAL);
	ck_assert_uint_eq(fake_loop.last.wr_id, want.wr_id);
	ck_assert_ptr_null(fake_loop.last.next);
	ck_assert_int_eq(fake_loop.last.opcode, want.opcode);
	ck_assert_uint_eq(fake_loop.last.send_flags, want.send_flags);
	ck_assert_int_eq(fake_loop.last.num_sge, 1);
	ck_assert_uint_eq(fake_loop.last.wr.atomic.remote_addr, want.wr.atomic.remote_addr);
	ck_assert_uint_eq(fake_loop.last.wr.atomic.rkey, want.wr.atomic.rkey);
	ck_assert_uint_eq(fake_loop.last.wr.atomic.compare_add, 6);
	ck_assert_mem_eq(fake_loop.last_sge, &to, sizeof(to));
	fake_loop_fail(QP_POST, 1, ENOMEM);
	ck_assert_int_eq(mrf_vconn_fetch_add(&conn, 77, &to, (uintptr_t)there, FAKE_LOOP_RKEY, 5),
			 -FI_EAGAIN);
}
END_TEST

static TCase *opening(void)
{
	TCase *tc = tcase_create("opening");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, vloop_connects_two_queue_pairs_at_the_address);
	tcase_add_test(tc, vloop_finds_the_address_at_any_port_and_index);
	tcase_add_test(tc, vloop_without_its_address_is_refused);
	tcase_add_test(tc, vloop_open_fails_with_any_call_and_leaves_nothing);
	return tc;
}

static TCase *running(void)
{
	TCase *tc = tcase_create("running");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, vloop_carries_out_what_it_is_given);
	tcase_add_test(tc, vloop_that_cannot_post_says_why_and_does_nothing);
	tcase_add_test(tc, vloop_refusals_are_told_from_what_may_have_been_done);
	tcase_add_test(tc, vloop_whose_queue_is_broken_says_so);
	tcase_add_test(tc, vloop_waits_for_what_comes_late);
	tcase_add_test(tc, vloop_does_not_wait_for_ever);
	return tc;
}

static TCase *queue(void)
{
	TCase *tc = tcase_create("queue");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, vcq_says_what_came_in_and_what_was_sent);
	tcase_add_test(tc, vconn_fetch_add_posts_what_any_atomic_does);
	return tc;
}

UNIT_MAIN("vloop", opening, running, queue)
