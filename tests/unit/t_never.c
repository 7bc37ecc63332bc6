/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on objects that are not able to do what is asked, for want of a capability, a mode, a flag, a
 * binding or the right order. None of them is accepted in silence: it is refused with a sentence, or
 * accepted and said. A row for each.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "base/log.h"
#include "ep_fixture.h"
#include "unit.h"

static struct pair p;
static struct unit_capture cap;
static struct fid_cntr *waits, *polled; /* FI_WAIT_UNSPEC, FI_WAIT_NONE */
static struct fid_cq *polled_cq;
static struct fid_eq *eq;
static struct fid_mr *mr;
static struct fid_ep *bare; /* nothing is bound to it */
static uint64_t word;

static struct fid_cntr *cntr_open(enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .wait_obj = wait };
	struct fid_cntr *cntr = NULL;

	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	return cntr;
}

static int reg(uint64_t access, uint64_t flags)
{
	if (mr)
		must_close(&mr->fid);
	mr = NULL;
	return fi_mr_reg(p.b.domain, p.dst, 4096, access, 0, 5, flags, &mr, NULL);
}

#define CALL(name, ...)       \
	static int name(void) \
	{                     \
		__VA_ARGS__   \
	}

/* Counters of regions. */
CALL(count_without_flag, reg(REMOTE_RW, 0); return fi_mr_bind(mr, &waits->fid, FI_REMOTE_WRITE);)
CALL(count_without_capability, reg(REMOTE_RW, FI_RMA_EVENT);
     return fi_mr_bind(mr, &waits->fid, FI_REMOTE_WRITE);)
CALL(count_reads, reg(REMOTE_RW, FI_RMA_EVENT); return fi_mr_bind(mr, &waits->fid, FI_REMOTE_READ);)
CALL(count_what_is_not_written, reg(FI_REMOTE_READ, 0);
     return fi_mr_bind(mr, &waits->fid, FI_REMOTE_WRITE);)
/* Other bindings of regions. */
CALL(bind_region_to_endpoint, reg(REMOTE_RW, 0); return fi_mr_bind(mr, &p.b.ep->fid, 0);)
CALL(bind_region_to_queue, reg(REMOTE_RW, 0); return fi_mr_bind(mr, &p.b.cq->fid, 0);)
CALL(refresh_what_is_pinned, reg(REMOTE_RW, 0); return fi_mr_refresh(mr, NULL, 0, 0);)
CALL(register_without_right, return reg(0, 0);)
CALL(register_with_capabilities, return reg(FI_RMA | REMOTE_RW, 0);)
CALL(bind_domain_without_events, return fi_domain_bind(p.b.domain, &p.b.cq->fid, FI_REG_MR);)
/* Counters and queues of endpoints. */
CALL(count_writes_by_peers, return fi_ep_bind(p.b.ep, &waits->fid, FI_REMOTE_WRITE);)
CALL(count_reads_by_peers, return fi_ep_bind(p.b.ep, &waits->fid, FI_REMOTE_READ);)
CALL(count_messages, return fi_ep_bind(p.b.ep, &waits->fid, FI_SEND | FI_RECV);)
CALL(bind_queue_to_enabled, return fi_ep_bind(p.b.ep, &polled_cq->fid, FI_RECV);)
CALL(bind_event_queue, return fi_ep_bind(bare, &eq->fid, 0);)
CALL(bind_region_to_the_endpoint, reg(REMOTE_RW, 0); return fi_ep_bind(bare, &mr->fid, 0);)
/* Order. */
CALL(enable_without_addresses, return fi_enable(bare);)
CALL(write_before_enabling, return (int)fi_write(bare, p.dst, 8, NULL, 0, 0, 5, NULL);)
CALL(enable_twice, return fi_enable(p.b.ep);)
/* Waiting. */
CALL(wait_for_polled_counter, return fi_cntr_wait(polled, 1, 1);)
CALL(wait_for_polled_queue, struct fi_cq_data_entry e;
     return (int)fi_cq_sread(polled_cq, &e, 1, NULL, 1);)
CALL(wake_polled_queue, return fi_cq_signal(polled_cq);)
CALL(descriptor_of_polled_queue, int fd; return fi_control(&polled_cq->fid, FI_GETWAIT, &fd);)
CALL(try_to_wait_for_polled, struct fid *fid = &polled->fid;
     return fi_trywait(p.b.fabric, &fid, 1);)
/* What the endpoint has no capability for, or nobody offers. */
CALL(send_message, return (int)fi_send(p.a.ep, p.src, 8, NULL, p.to, NULL);)
CALL(send_tagged, return (int)fi_tsend(p.a.ep, p.src, 8, NULL, p.to, 1, NULL);)
CALL(operate_without_atomics,
     return (int)fi_atomic(p.a.ep, &word, 1, NULL, p.to, p.base, p.key, FI_UINT64, FI_SUM, NULL);)
CALL(wrong_flag, struct fi_msg_rma msg = { .data = 0 };
     return (int)fi_writemsg(p.a.ep, &msg, FI_MULTICAST);)

#define REFUSED(call, code)                       \
	{                                         \
		call, #call, "MRF-E" #code, false \
	}
#define SAID(call, code)                \
	{                               \
		call, #call, code, true \
	}

static const struct {
	int (*call)(void);
	const char *name;
	const char *says;
	bool accepted;
} rows[] = {
	REFUSED(count_without_flag, 3041),
	REFUSED(count_without_capability, 3240),
	REFUSED(count_reads, 3234),
	SAID(count_what_is_not_written, "MRF-W3242"),
	REFUSED(bind_region_to_endpoint, 3042),
	REFUSED(bind_region_to_queue, 3043),
	REFUSED(refresh_what_is_pinned, 304),
	SAID(register_without_right, "MRF-W3006"),
	SAID(register_with_capabilities, "MRF-W3008"),
	REFUSED(bind_domain_without_events, 21),
	REFUSED(count_writes_by_peers, 4064),
	SAID(count_reads_by_peers, "MRF-W4063"),
	SAID(count_messages, "MRF-W4068"),
	REFUSED(bind_queue_to_enabled, 4045),
	SAID(bind_event_queue, "no event is ever written to it"),
	REFUSED(bind_region_to_the_endpoint, 4046),
	REFUSED(enable_without_addresses, 4048),
	REFUSED(write_before_enabling, 40),
	REFUSED(enable_twice, 4047),
	REFUSED(wait_for_polled_counter, 2019),
	REFUSED(wait_for_polled_queue, 2019),
	REFUSED(wake_polled_queue, 2019),
	REFUSED(descriptor_of_polled_queue, 2017),
	REFUSED(try_to_wait_for_polled, 2016),
	REFUSED(send_message, 4090),
	REFUSED(send_tagged, 4091),
	REFUSED(operate_without_atomics, 4092),
	REFUSED(wrong_flag, 40),
};

static void setup(void)
{
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED,
				.caps = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ |
					FI_REMOTE_WRITE };

	fixture_setup();
	fixture_log();
	setenv("FI_LOG_LEVEL", "info", 1);
	mrf_log_reload();
	pair_open(&p, &opt);
	waits = cntr_open(FI_WAIT_UNSPEC);
	polled = cntr_open(FI_WAIT_NONE);
	ck_assert_int_eq(fi_cq_open(p.b.domain, &cq_attr, &polled_cq, NULL), 0);
	ck_assert_int_eq(fi_eq_open(p.b.fabric, &eq_attr, &eq, NULL), 0);
	ck_assert_int_eq(fi_endpoint(p.b.domain, p.b.info, &bare, NULL), 0);
}

static void teardown(void)
{
	if (mr)
		must_close(&mr->fid);
	must_close(&bare->fid);
	must_close(&eq->fid);
	must_close(&polled_cq->fid);
	must_close(&polled->fid);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	must_close(&waits->fid);
	pair_close(&p);
	fixture_teardown();
}

START_TEST(never_accepted_in_silence)
{
	int ret;

	unit_capture(&cap);
	ret = rows[_i].call();
	unit_captured(&cap);
	ck_assert_msg(rows[_i].accepted == !ret, "%s: %d", rows[_i].name, ret);
	ck_assert_msg(strstr(cap.text, rows[_i].says), "%s: no %s in \"%s\"", rows[_i].name,
		      rows[_i].says, cap.text);
}
END_TEST

/* That is accepted at the initiator, and the target's application never sees it. */
START_TEST(never_dropped_in_silence)
{
	struct fid_ep *deaf;

	p.b.info->caps = FI_RMA;
	ck_assert_int_eq(fi_endpoint(p.b.domain, p.b.info, &deaf, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(deaf, &p.b.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(deaf, &p.b.cq->fid, FI_TRANSMIT), 0);
	ck_assert_int_eq(fi_enable(deaf), 0);
	must_close(&p.b.ep->fid);
	p.b.ep = deaf;
	p.to = node_insert(&p.a, &p.b);
	unit_capture(&cap);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(fi_writedata(p.a.ep, p.src, 8, NULL, 1, p.to, p.base, p.key, &p),
				 0);
		want_ok(&p.a, &p);
	}
	node_heard(&p.b);
	unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W4069"));
	ck_assert_ptr_null(strstr(strstr(cap.text, "MRF-W4069") + 1, "MRF-W4069"));
}
END_TEST

static TCase *never(void)
{
	TCase *tc = tcase_create("never");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, never_accepted_in_silence, 0, MRF_ARRAY_SIZE(rows));
	tcase_add_test(tc, never_dropped_in_silence);
	return tc;
}

UNIT_MAIN("never", never)
