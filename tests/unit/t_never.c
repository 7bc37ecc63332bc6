/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on objects that are not able to do what is asked, for want of a capability, a mode, a flag, a
 * binding or the right order. None of them is accepted in silence: it is refused with a sentence, or
 * accepted and said. A row for each.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_collective.h>
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
static struct fid_ep *bare;  /* nothing is bound to it */
static struct fid_ep *talks; /* it sends messages, and receives none */
static char long_text[16385];
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

static uint8_t nowhere[64];

static int av_open(uint64_t flags, const char *name)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = flags, .name = name };
	struct fid_av *av;
	int ret = fi_av_open(p.b.domain, &attr, &av, NULL);

	if (!ret)
		must_close(&av->fid);
	return ret;
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
CALL(count_writes_and_messages, return fi_ep_bind(bare, &waits->fid, FI_SEND | FI_WRITE);)
CALL(bind_queue_to_enabled, return fi_ep_bind(p.b.ep, &polled_cq->fid, FI_RECV);)
CALL(bind_event_queue, return fi_ep_bind(bare, &eq->fid, 0);)
CALL(bind_region_to_the_endpoint, reg(REMOTE_RW, 0); return fi_ep_bind(bare, &mr->fid, 0);)
/* Address vectors. */
CALL(open_av_by_name, return av_open(0, "name");)
CALL(open_av_to_read, return av_open(FI_READ, NULL);)
CALL(insert_before_events, struct fi_av_attr a = { .type = FI_AV_TABLE, .flags = FI_EVENT };
     struct fid_av * av; int ret; ck_assert_int_eq(fi_av_open(p.b.domain, &a, &av, NULL), 0);
     ret = fi_av_insert(av, nowhere, 1, NULL, 0, NULL); must_close(&av->fid); return ret;)
CALL(bind_av_to_event_queue, return fi_av_bind(p.b.av, &eq->fid, 0);)
CALL(bind_second_av,
     return fi_ep_bind(bare, &p.b.av->fid, 0) ? 0 : fi_ep_bind(bare, &p.b.av->fid, 0);)
CALL(bind_av_of_another_domain, return fi_ep_bind(bare, &p.a.av->fid, 0);)
CALL(insert_with_flags, return fi_av_insert(p.b.av, nowhere, 1, NULL, FI_SYNC_ERR, NULL);)
CALL(insert_what_is_no_address,
     return fi_av_insert(p.b.av, "no address, but long enough", 1, NULL, 0, NULL);)
CALL(look_up_what_is_not_there, size_t len = sizeof(nowhere);
     return fi_av_lookup(p.b.av, 77, nowhere, &len);)
CALL(remove_what_is_not_there, fi_addr_t addr = 77; return fi_av_remove(p.b.av, &addr, 1, 0);)
CALL(write_to_nobody, return (int)fi_write(p.a.ep, p.src, 8, NULL, 77, 0, 5, NULL);)
CALL(write_to_unspecified,
     return (int)fi_write(p.a.ep, p.src, 8, NULL, FI_ADDR_UNSPEC, 0, 5, NULL);)
/* Event queues. */
CALL(write_to_closed_queue, struct fi_eq_entry e = { .data = 1 };
     return (int)fi_eq_write(eq, FI_NOTIFY, &e, sizeof(e), 0);)
CALL(wait_for_polled_events, uint32_t event; struct fi_eq_entry e;
     return (int)fi_eq_sread(eq, &event, &e, sizeof(e), 1, 0);)
CALL(descriptor_of_polled_events, int fd; return fi_control(&eq->fid, FI_GETWAIT, &fd);)
CALL(bind_domain_to_events_late, return fi_domain_bind(p.b.domain, &eq->fid, FI_REG_MR);)
CALL(bind_domain_to_events_in_vain, struct fid_domain *domain;
     int ret = fi_domain(p.b.fabric, p.b.info, &domain, NULL); if (ret) return ret;
     ret = fi_domain_bind(domain, &eq->fid, 0); must_close(&domain->fid); return ret;)
CALL(open_event_queue_in_a_set, struct fi_eq_attr a = { .wait_obj = FI_WAIT_SET };
     struct fid_eq * q; return fi_eq_open(p.b.fabric, &a, &q, NULL);)
/* Queues and counters. */
CALL(open_queue_in_a_set, struct fi_cq_attr a = { .wait_obj = FI_WAIT_SET }; struct fid_cq * q;
     return fi_cq_open(p.b.domain, &a, &q, NULL);)
CALL(count_bytes, struct fi_cntr_attr a = { .events = (enum fi_cntr_events)7 }; struct fid_cntr * c;
     return fi_cntr_open(p.b.domain, &a, &c, NULL);)
CALL(bind_queue_of_another_domain, return fi_ep_bind(bare, &p.a.cq->fid, FI_TRANSMIT);)
CALL(bind_queue_without_flags, return fi_ep_bind(bare, &polled_cq->fid, 0);)
CALL(bind_counter_without_flags, return fi_ep_bind(bare, &waits->fid, 0);)
/* Keys. */
CALL(ask_for_raw_key, uint64_t base; uint8_t key[256]; size_t len = sizeof(key); reg(REMOTE_RW, 0);
     return fi_mr_raw_attr(mr, &base, key, &len, 1);)
CALL(map_what_is_no_key, uint64_t key;
     return fi_mr_map_raw(p.b.domain, 0, (uint8_t *)"garbage, garbage, garbage", 24, &key, 0);)
CALL(map_with_flags, uint64_t key;
     return fi_mr_map_raw(p.b.domain, 0, (uint8_t *)"garbage, garbage, garbage", 24, &key, 1);)
CALL(unmap_what_is_not_mapped, return fi_mr_unmap_key(p.b.domain, 5);)
CALL(register_at_an_offset, struct fid_mr *m;
     return fi_mr_reg(p.b.domain, p.dst, 8, REMOTE_RW, 8, 9, 0, &m, NULL);)
CALL(register_a_key_twice, struct fid_mr *m; reg(REMOTE_RW, 0);
     return fi_mr_reg(p.b.domain, p.dst, 8, REMOTE_RW, 0, 5, 0, &m, NULL);)
CALL(register_to_be_persistent, return reg(REMOTE_RW, FI_RMA_PMEM);)
/* Other objects, which nobody offers. */
CALL(open_scalable, struct fid_ep *e; return fi_scalable_ep(p.b.domain, p.b.info, &e, NULL);)
CALL(open_shared_receive, struct fi_rx_attr a = { 0 }; struct fid_ep * e;
     return fi_srx_context(p.b.domain, &a, &e, NULL);)
CALL(open_shared_transmit, struct fi_tx_attr a = { 0 }; struct fid_stx * e;
     return fi_stx_context(p.b.domain, &a, &e, NULL);)
CALL(open_passive, struct fid_pep *e; return fi_passive_ep(p.b.fabric, p.b.info, &e, NULL);)
CALL(open_wait_set, struct fi_wait_attr a = { .wait_obj = FI_WAIT_FD }; struct fid_wait * w;
     return fi_wait_open(p.b.fabric, &a, &w);)
CALL(open_poll_set, struct fi_poll_attr a = { 0 }; struct fid_poll * w;
     return fi_poll_open(p.b.domain, &a, &w);)
CALL(listen_for_peers, return fi_connect(bare, nowhere, NULL, 0);)
CALL(accept_a_peer, return fi_accept(bare, NULL, 0);)
CALL(shut_down, return fi_shutdown(bare, 0);)
CALL(look_at_peer, size_t len = sizeof(nowhere); return fi_getpeer(bare, nowhere, &len);)
CALL(ask_for_extension, void *ops; return fi_open_ops(&p.b.domain->fid, "no such", 0, &ops, NULL);)
CALL(make_an_alias, struct fid_ep *e; return fi_ep_alias(p.b.ep, &e, FI_TRANSMIT);)
CALL(set_an_option, size_t v = 5;
     return fi_setopt(&bare->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &v, sizeof(v));)
CALL(receive_a_message, return (int)fi_recv(p.a.ep, p.src, 8, NULL, p.to, NULL);)
CALL(trigger, struct fi_msg_rma msg = { .addr = p.to };
     return (int)fi_writemsg(p.a.ep, &msg, FI_TRIGGER);)
CALL(join_a_group, struct fid_mc *mc; return fi_join(bare, nowhere, 0, &mc, NULL);)
CALL(enable_without_queue, fi_ep_bind(bare, &p.b.av->fid, 0); return fi_enable(bare);)
CALL(enable_with_queue_for_data_only, fi_ep_bind(bare, &p.b.av->fid, 0);
     fi_ep_bind(bare, &polled_cq->fid, FI_RECV); return fi_enable(bare);)
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
CALL(send_before_enabling, p.b.info->caps = FI_MSG; struct fid_ep * ep;
     int ret = fi_endpoint(p.b.domain, p.b.info, &ep, NULL); ck_assert_int_eq(ret, 0);
     ret = (int)fi_send(ep, "x", 1, NULL, 0, NULL); must_close(&ep->fid); return ret;)
CALL(receive_at_one_that_sends, return (int)fi_recv(talks, p.dst, 8, NULL, 0, NULL);)
CALL(send_long_message,
     return (int)fi_send(talks, long_text, MRF_LIMIT_MSG_SIZE + 1, NULL, 0, NULL);)
CALL(inject_long_message, return (int)fi_inject(talks, long_text, 257, 0);)
CALL(send_to_be_persistent, struct fi_msg msg = { .addr = 0 };
     return (int)fi_sendmsg(talks, &msg, FI_COMMIT_COMPLETE);)
CALL(send_to_a_group, struct fi_msg msg = { .addr = 0 };
     return (int)fi_sendmsg(talks, &msg, FI_MULTICAST);)
CALL(send_nothing, return (int)fi_sendmsg(talks, NULL, 0);)
CALL(count_receives_of_one_that_sends, return fi_ep_bind(talks, &waits->fid, FI_RECV);)
CALL(count_sends_and_receives_of_one_that_sends,
     return fi_ep_bind(talks, &waits->fid, FI_SEND | FI_RECV);)
CALL(ask_how_many_can_be_posted, return (int)talks->ops->rx_size_left(talks);)
CALL(set_flags_of_receives, uint64_t flags = FI_RECV | FI_MULTI_RECV;
     return fi_control(&talks->fid, FI_SETOPSFLAG, &flags);)
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
	REFUSED(send_before_enabling, 4015),
	REFUSED(receive_at_one_that_sends, 4070),
	REFUSED(send_long_message, 4072),
	REFUSED(inject_long_message, 4008),
	REFUSED(send_to_be_persistent, 4071),
	REFUSED(send_to_a_group, 4009),
	REFUSED(send_nothing, 4017),
	SAID(count_receives_of_one_that_sends, "MRF-W4068"),
	SAID(count_sends_and_receives_of_one_that_sends, "it counts no receives"),
	REFUSED(ask_how_many_can_be_posted, 4090),
	REFUSED(set_flags_of_receives, 4052),
	REFUSED(send_tagged, 4091),
	REFUSED(operate_without_atomics, 4092),
	REFUSED(wrong_flag, 40),
	SAID(count_writes_and_messages, "it counts no messages"),
	REFUSED(insert_before_events, 22),
	REFUSED(open_av_by_name, 2229),
	REFUSED(open_av_to_read, 2229),
	REFUSED(bind_av_to_event_queue, 2224),
	REFUSED(bind_second_av, 4041),
	REFUSED(bind_av_of_another_domain, 4040),
	REFUSED(insert_with_flags, 2202),
	SAID(insert_what_is_no_address, "MRF-E2206"),
	REFUSED(look_up_what_is_not_there, 2216),
	REFUSED(remove_what_is_not_there, 2216),
	REFUSED(write_to_nobody, 4002),
	REFUSED(write_to_unspecified, 4002),
	REFUSED(write_to_closed_queue, 2061),
	REFUSED(wait_for_polled_events, 2019),
	REFUSED(descriptor_of_polled_events, 2017),
	REFUSED(bind_domain_to_events_late, 2162),
	SAID(bind_domain_to_events_in_vain, "no event is ever written to it"),
	REFUSED(open_event_queue_in_a_set, 2071),
	REFUSED(open_queue_in_a_set, 2027),
	REFUSED(count_bytes, 2043),
	REFUSED(bind_queue_of_another_domain, 4040),
	REFUSED(bind_queue_without_flags, 4042),
	REFUSED(bind_counter_without_flags, 4043),
	REFUSED(ask_for_raw_key, 3102),
	REFUSED(map_what_is_no_key, 3112),
	REFUSED(map_with_flags, 3111),
	REFUSED(unmap_what_is_not_mapped, 3121),
	REFUSED(register_at_an_offset, 3007),
	REFUSED(register_a_key_twice, 3021),
	REFUSED(register_to_be_persistent, 3280),
	REFUSED(open_scalable, 2134),
	REFUSED(open_shared_receive, 2137),
	REFUSED(open_shared_transmit, 2136),
	REFUSED(open_passive, 2103),
	REFUSED(open_wait_set, 2104),
	REFUSED(open_poll_set, 2135),
	REFUSED(listen_for_peers, 4053),
	REFUSED(accept_a_peer, 4053),
	REFUSED(shut_down, 4053),
	REFUSED(look_at_peer, 4053),
	REFUSED(ask_for_extension, 2004),
	REFUSED(make_an_alias, 2003),
	REFUSED(set_an_option, 4054),
	REFUSED(receive_a_message, 4090),
	REFUSED(trigger, 4009),
	REFUSED(join_a_group, 4053),
	REFUSED(enable_without_queue, 4049),
	REFUSED(enable_with_queue_for_data_only, 4049),
};

static void open_talker(void)
{
	uint64_t caps = p.b.info->caps;

	p.b.info->caps = FI_MSG | FI_SEND;
	ck_assert_int_eq(fi_endpoint(p.b.domain, p.b.info, &talks, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(talks, &p.b.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(talks, &p.b.cq->fid, FI_TRANSMIT), 0);
	ck_assert_int_eq(fi_enable(talks), 0);
	p.b.info->caps = caps;
}

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
	open_talker();
}

static void teardown(void)
{
	if (mr)
		must_close(&mr->fid);
	must_close(&bare->fid);
	must_close(&talks->fid);
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
	if (getenv("SHOW")) {
		fprintf(stdout, "ROW %s: %d | %s\n", rows[_i].name, ret, cap.text);
		fflush(stdout);
	}
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
