/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What regions are bound to, as endpoints see it: writes that counters of regions count,
 * whatever happens to them on their way, and closing orders.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include "base/param.h"
#include "contract/limits.h"
#include "ep_fixture.h"
#include "proto/rawkey.h"

#define CAPS (MRF_CAPS | FI_RMA_EVENT)

static struct pair p;
static struct fid_cntr *cntr;
static struct unit_capture cap;

static struct fid_cntr *open_cntr(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *one = NULL;

	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &one, NULL), 0);
	return one;
}

/* A region of dst that counts, bound as the mode wants it. */
static void reg_counted(void)
{
	uint64_t mode = node_ep(&p.b)->domain->space.mode;
	uint64_t flags = mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0;

	ck_assert_int_eq(
		fi_mr_reg(p.b.domain, p.dst, PAIR_LEN, REMOTE_RW, 0, PAIR_KEY, flags, &p.mr, NULL),
		0);
	ck_assert_int_eq(fi_mr_bind(p.mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	if (mode & FI_MR_ENDPOINT)
		ck_assert_int_eq(fi_mr_bind(p.mr, &p.b.ep->fid, 0), 0);
	if (mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT))
		ck_assert_int_eq(fi_mr_enable(p.mr), 0);
	if (mode & FI_MR_MMU_NOTIFY)
		ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
	p.key = fi_mr_key(p.mr);
}

static void open_counted_api(int mode, uint32_t api)
{
	struct node_opt opt = { .mr_mode = mode, .api = api, .caps = CAPS };

	pair_open(&p, &opt);
	must_close(&p.mr->fid);
	cntr = open_cntr();
	reg_counted();
}

static void open_counted(int mode)
{
	open_counted_api(mode, 0);
}

/* Endpoints and counters first. */
static void close_counted(void)
{
	must_close(&cntr->fid);
	if (node_ep(&p.b)->domain->space.mode & FI_MR_ENDPOINT) {
		must_close(&p.b.ep->fid);
		p.b.ep = NULL;
	}
	pair_close(&p);
}

static void write_ok(size_t at, size_t len)
{
	pair_write(&p, at, len);
	want_ok(&p.a, pair_ctx(&p, at));
}

/* The count becomes n, and nothing else comes of it. */
static void want_count(uint64_t n)
{
	want_soon(fi_cntr_read(cntr) >= n);
	usleep(1000);
	ck_assert_uint_eq(fi_cntr_read(cntr), n);
	ck_assert_uint_eq(fi_cntr_readerr(cntr), 0);
}

static ssize_t write_msg(const struct fi_rma_iov *rma, size_t count, uint64_t flags, uint64_t data)
{
	struct iovec here = { .iov_base = p.src };
	struct fi_msg_rma msg = { .msg_iov = &here,
				  .desc = &p.desc,
				  .iov_count = 1,
				  .addr = p.to,
				  .rma_iov = rma,
				  .rma_iov_count = count,
				  .context = &p,
				  .data = data };
	size_t i;

	for (i = 0; i < count; i++)
		here.iov_len += rma[i].len;
	return fi_writemsg(p.a.ep, &msg, flags | FI_COMPLETION);
}

/* How many of the accesses since the log had `from` entries told a number. */
static unsigned told(size_t from)
{
	unsigned n = 0;

	for (; from < fake_nlog(); from++)
		n += fake.log[from].op == MRF_VWR_WRITE_IMM;
	return n;
}

/* --- counting --------------------------------------------------------------------- */

static const int modes[] = {
	0,
	FI_MR_BASIC,
	FI_MR_ALLOCATED,
	FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	FI_MR_LOCAL | FI_MR_ALLOCATED,
	FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	FI_MR_LOCAL | FI_MR_MMU_NOTIFY,
	FI_MR_RMA_EVENT,
	FI_MR_RMA_EVENT | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	FI_MR_ENDPOINT | FI_MR_ALLOCATED,
	FI_MR_ENDPOINT | FI_MR_RMA_EVENT | FI_MR_MMU_NOTIFY,
};
#define NMODES (int)MRF_ARRAY_SIZE(modes)

static const size_t sizes[] = { 1, 64, 65, 256, 257, 16384, 16385, PAIR_LEN };

START_TEST(event_every_write_counts_once_and_nothing_else_does)
{
	uint64_t n = 0;
	size_t i;

	open_counted(modes[_i]);
	for (i = 0; i < 2 * MRF_ARRAY_SIZE(sizes); i++) {
		size_t len = sizes[i / 2];

		memset(p.dst, 0, PAIR_LEN);
		write_ok(0, len);
		want_count(++n);
		ck_assert(filled(p.dst, len, 1));
	}
	ck_assert_int_eq(fi_inject_write(p.a.ep, p.src, 8, p.to, p.base, p.key), 0);
	want_count(++n);
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++) {
		pair_read(&p, 0, sizes[i]);
		want_ok(&p.a, pair_ctx(&p, 0));
	}
	pair_write(&p, 0, 0);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_int_eq(
		fi_write(p.a.ep, p.src, 100, p.desc, p.to, p.base + PAIR_LEN - 99, p.key, &p), 0);
	want_err(&p.a, &p, FI_EACCES, NULL);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, p.desc, p.to, p.base, p.key + 1, &p), 0);
	want_err(&p.a, &p, FI_EKEYREJECTED, NULL);
	want_count(n);
	/* Nothing came as the data of an application. */
	want_none(&p.b);
	close_counted();
}
END_TEST

START_TEST(event_split_write_counts_once_with_its_last_bytes)
{
	size_t from;

	fake.max_msg_size = 4096;
	open_counted(_i ? FI_MR_ALLOCATED : 0);
	write_ok(0, 8);
	from = fake_nlog();
	write_ok(0, 10000);
	want_count(2);
	ck_assert_uint_eq(told(from), 1);
	ck_assert_int_eq(fake.log[fake_nlog() - 1].op, MRF_VWR_WRITE_IMM);
	ck_assert_uint_eq(fake.log[fake_nlog() - 1].len, 10000 - 2 * 4096);
	ck_assert(filled(p.dst, 10000, 1));
	close_counted();
}
END_TEST

START_TEST(event_write_over_segments_counts_once)
{
	struct iovec iov[3];
	int i;

	open_counted(FI_MR_ALLOCATED);
	must_close(&cntr->fid);
	must_close(&p.mr->fid);
	cntr = open_cntr();
	for (i = 0; i < 3; i++)
		iov[i] = (struct iovec){ p.dst + i * 8192, 1000 };
	p.mr = node_regv(&p.b, iov, 3, REMOTE_RW, PAIR_KEY);
	ck_assert_int_eq(fi_mr_bind(p.mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	write_ok(0, 3000);
	want_count(1);
	ck_assert(filled(p.dst, 1000, 1));
	ck_assert_int_eq(memcmp(p.dst + 2 * 8192, p.src + 2000, 1000), 0);
	close_counted();
}
END_TEST

START_TEST(event_write_to_several_regions_counts_once_for_each)
{
	struct fid_cntr *second;
	struct fid_mr *other, *silent;
	struct fi_rma_iov rma[8];
	size_t from;
	int i;

	open_counted(FI_MR_ALLOCATED | (_i ? FI_MR_PROV_KEY : 0));
	second = open_cntr();
	other = node_reg(&p.b, p.dst + 20000, 1000, FI_REMOTE_WRITE, 1);
	silent = node_reg(&p.b, p.dst + 30000, 1000, FI_REMOTE_WRITE, 2);
	ck_assert_int_eq(fi_mr_bind(other, &second->fid, FI_REMOTE_WRITE), 0);
	for (i = 0; i < 8; i++)
		rma[i] = (struct fi_rma_iov){ (uint64_t)i * 100, 100, p.key };
	rma[3].key = rma[6].key = fi_mr_key(other);
	rma[4].key = fi_mr_key(silent);
	rma[6].len = 0;
	from = fake_nlog();
	ck_assert_int_eq(write_msg(rma, 8, 0, 0), 0);
	want_ok(&p.a, &p);
	want_count(1);
	want_soon(fi_cntr_read(second) == 1);
	/* silent has a number, too, but nobody who counts. */
	ck_assert_uint_eq(told(from), 3);
	/* Each with the last bytes that go there. */
	ck_assert_int_eq(fake.log[from + 3].op, MRF_VWR_WRITE_IMM);
	ck_assert_int_eq(fake.log[from + 4].op, MRF_VWR_WRITE_IMM);
	ck_assert_int_eq(fake.log[from + 6].op, MRF_VWR_WRITE_IMM);
	must_close(&second->fid);
	must_close(&other->fid);
	must_close(&silent->fid);
	close_counted();
}
END_TEST

/* Two keys, one region. */
START_TEST(event_write_by_two_raw_keys_of_a_region_counts_once)
{
	uint8_t raw[MRF_RAWKEY_MAX];
	size_t size = sizeof(raw);
	struct fi_rma_iov rma[2];
	uint64_t base, key[2];
	int i;

	open_counted(FI_MR_ALLOCATED | FI_MR_RAW);
	ck_assert_int_eq(fi_mr_raw_attr(p.mr, &base, raw, &size, 0), 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(fi_mr_map_raw(p.a.domain, base, raw, size, &key[i], 0), 0);
		rma[i] = (struct fi_rma_iov){ (uint64_t)i * 1000, 100, key[i] };
	}
	ck_assert_int_eq(write_msg(rma, 2, 0, 0), 0);
	want_ok(&p.a, &p);
	want_count(1);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(fi_mr_unmap_key(p.a.domain, key[i]), 0);
	close_counted();
}
END_TEST

START_TEST(event_endpoint_without_the_capability_counts_nothing)
{
	struct fi_cq_data_entry e;
	struct fid_ep *counts, *deaf;

	open_counted(FI_MR_ALLOCATED | (_i ? FI_MR_PROV_KEY : 0));
	counts = p.b.ep;
	p.b.info->caps = MRF_CAPS;
	ck_assert_int_eq(node_try_ep(&p.b, &(struct node_opt){ .caps = MRF_CAPS }, &deaf), 0);
	p.b.ep = deaf;
	p.to = node_insert(&p.a, &p.b);
	write_ok(0, 100);
	ck_assert_uint_eq(told(0), 0);
	ck_assert_int_eq(fi_writedata(p.a.ep, p.src, 10, NULL, 1, p.to, 0, p.key, &p), 0);
	want_ok(&p.a, &p);
	e = want_ok(&p.b, NULL);
	ck_assert_uint_eq(e.data, 1);
	want_count(0);
	must_close(&deaf->fid);
	p.b.ep = counts;
	close_counted();
}
END_TEST

static void write_by(fi_addr_t to)
{
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, to, p.base, p.key, &p), 0);
	want_ok(&p.a, &p);
}

/* Two endpoints of a domain, and an initiator that need not have the capability. */
START_TEST(event_is_counted_by_what_the_endpoint_that_is_reached_was_opened_with)
{
	struct node_opt plain = { .mr_mode = FI_MR_ALLOCATED }, with = plain;
	struct fid_ep *silent;
	struct sockaddr_in name;
	size_t len = sizeof(name), from;

	with.caps = CAPS;
	open_counted(FI_MR_ALLOCATED);
	if (_i) {
		node_close(&p.a);
		node_open(&p.a, &plain);
		p.to = node_insert(&p.a, &p.b);
	}
	p.b.info->caps = MRF_CAPS;
	ck_assert_int_eq(node_try_ep(&p.b, &with, &silent), 0);
	ck_assert_int_eq(fi_getname(&silent->fid, &name, &len), 0);
	write_by(p.to);
	want_count(1);
	from = fake_nlog();
	write_by(node_insert_port(&p.a, ntohs(name.sin_port)));
	ck_assert_uint_eq(told(from), 0);
	want_count(1);
	write_by(p.to);
	want_count(2);
	must_close(&silent->fid);
	close_counted();
}
END_TEST

/* --- data of the application ------------------------------------------------------ */

static void want_data(size_t len, uint64_t data)
{
	struct fi_cq_data_entry e = want_ok(&p.b, NULL);

	ck_assert_uint_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	ck_assert_uint_eq(e.data, data);
	ck_assert_uint_eq(e.len, len);
}

START_TEST(event_data_of_the_application_come_beside_the_count)
{
	struct fi_rma_iov rma = { p.base, 10000, 0 };
	uint32_t i;

	fake.max_msg_size = 4096;
	open_counted(modes[_i]);
	ck_assert_int_eq(
		fi_writedata(p.a.ep, p.src, 1000, p.desc, 0xfeedbeef, p.to, p.base, p.key, &p), 0);
	want_ok(&p.a, &p);
	want_data(1000, 0xfeedbeef);
	/* What is reported has been counted. */
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	ck_assert(filled(p.dst, 1000, 1));
	ck_assert_int_eq(fi_writedata(p.a.ep, NULL, 0, NULL, 7, p.to, p.base, p.key, &p), 0);
	want_ok(&p.a, &p);
	want_data(0, 7);
	want_count(1);
	ck_assert_int_eq(fi_inject_writedata(p.a.ep, p.src, 8, 9, p.to, p.base, p.key), 0);
	want_data(8, 9);
	want_count(2);
	rma.addr = p.base;
	rma.key = p.key;
	ck_assert_int_eq(write_msg(&rma, 1, FI_REMOTE_CQ_DATA, 11), 0);
	want_ok(&p.a, &p);
	want_data(10000, 11);
	want_count(3);
	for (i = 0; i < 200; i++)
		ck_assert_int_eq(
			fi_writedata(p.a.ep, p.src, 16, p.desc, i, p.to, p.base, p.key, &p), 0);
	for (i = 0; i < 200; i++)
		want_data(16, i);
	for (i = 0; i < 200; i++)
		want_ok(&p.a, &p);
	want_count(203);
	close_counted();
}
END_TEST

START_TEST(event_data_that_were_flushed_are_sent_again_and_once)
{
	open_counted(FI_MR_ALLOCATED);
	write_ok(0, 8);
	fake_hold(true);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(fi_writedata(p.a.ep, p.src, 16, NULL, 5, p.to, p.base, p.key, &p), 0);
	/* The first is refused, or the writedata itself. */
	fake_break((unsigned)_i + 1, 1, MRF_WC_REFUSED, false);
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 0));
	want_ok(&p.a, &p);
	want_data(16, 5);
	want_count(3);
	want_none(&p.b);
	ck_assert_uint_eq(fake_connects(), 2);
	close_counted();
}
END_TEST

/* --- what may come in between ----------------------------------------------------- */

START_TEST(event_refused_and_flushed_writes_count_once_when_they_are_done)
{
	int i;

	fake.max_msg_size = 300;
	open_counted(_i < 4 ? FI_MR_ALLOCATED : FI_MR_LOCAL | FI_MR_ALLOCATED);
	write_ok(0, 8);
	fake_hold(true);
	for (i = 0; i < 6; i++)
		pair_write(&p, (size_t)i * 1000, 700);
	/* In the middle of a write, or with its last bytes. */
	fake_break(4 + (unsigned)_i % 4, 1, MRF_WC_REFUSED, false);
	fake_hold(false);
	for (i = 0; i < 6; i++)
		want_ok(&p.a, pair_ctx(&p, (size_t)i * 1000));
	want_count(7);
	ck_assert_uint_eq(fake_connects(), 2);
	close_counted();
}
END_TEST

/* The bytes of a read find out that they have no place when what is behind it has run. */
START_TEST(event_write_behind_a_read_to_a_closed_buffer_is_not_repeated)
{
	struct fid_mr *doomed;
	int i, failed = 0;

	open_counted(FI_MR_ALLOCATED);
	write_ok(0, 8);
	pair_read(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	doomed = node_reg(&p.a, p.src, PAIR_LEN, FI_READ, 2);
	fake.flush_local = _i & 1;
	fake_hold(true);
	ck_assert_int_eq(fi_read(p.a.ep, p.src, 400, fi_mr_desc(doomed), p.to, p.base, p.key, &p),
			 0);
	/* The short way, and the long one. */
	if (_i & 2) {
		pair_write(&p, 1000, 8);
	} else {
		struct fi_rma_iov rma = { p.base + 1000, 8, p.key };

		ck_assert_int_eq(write_msg(&rma, 1, 0, 0), 0);
	}
	must_close(&doomed->fid);
	fake_hold(false);
	for (i = 0; i < 2; i++) {
		struct fi_cq_data_entry e;
		struct fi_cq_err_entry got = { 0 };

		if (fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS) != -FI_EAVAIL)
			continue;
		ck_assert_int_eq(fi_cq_readerr(p.a.cq, &got, 0), 1);
		failed += got.err == (got.flags & FI_READ ? FI_EFAULT : FI_EIO);
	}
	ck_assert_int_eq(failed, 2);
	want_count(1);
	write_ok(0, 8);
	want_count(2);
	close_counted();
}
END_TEST

START_TEST(event_write_that_was_never_done_counts_nothing)
{
	open_counted(FI_MR_ALLOCATED);
	write_ok(0, 8);
	fake_break(1, 1, MRF_WC_TIMEOUT, _i);
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_ETIMEDOUT, NULL);
	/* Nobody there knows whether it was done; here it is known. */
	want_count(1 + (uint64_t)_i);
	write_ok(0, 8);
	want_count(2 + (uint64_t)_i);
	close_counted();
}
END_TEST

START_TEST(event_count_goes_on_over_refreshes_and_new_registrations)
{
	uint64_t n = 0;
	int i;

	open_counted(_i ? FI_MR_MMU_NOTIFY : 0);
	for (i = 0; i < 20; i++) {
		write_ok(0, 100);
		ck_assert_int_eq(fi_mr_refresh(p.mr, NULL, 0, 0), 0);
		write_ok(0, 5000);
		n += 2;
		if (i % 5 != 4)
			continue;
		/* The same key, another region and another number. */
		want_count(n);
		must_close(&cntr->fid);
		must_close(&p.mr->fid);
		cntr = open_cntr();
		reg_counted();
		n = 0;
	}
	want_count(n);
	close_counted();
}
END_TEST

START_TEST(event_what_was_acknowledged_counts_though_the_initiator_is_gone)
{
	struct mrf_agent *agent;
	int i, n = 20;

	open_counted(FI_MR_ALLOCATED);
	write_ok(0, 8);
	agent = node_agent(&p.b);
	fake_stop(agent->cm, agent->cq, true);
	for (i = 0; i < n; i++)
		write_ok((size_t)i * 100, 100);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	/* Now it finds both: what was written, and that the peer has gone. */
	fake_stop(agent->cm, agent->cq, false);
	want_count((uint64_t)n + 1);
	close_counted();
}
END_TEST

/* --- many ------------------------------------------------------------------------- */

#define EACH 1000

static struct node third;
static fi_addr_t third_to;

static void *write_many(void *arg)
{
	struct node *n = arg;
	fi_addr_t to = n == &third ? third_to : p.to;
	struct fi_cq_data_entry e;
	int i, done = 0;

	for (i = 0; i < EACH;) {
		if (!fi_write(n->ep, p.src, 1 + (size_t)i % 600, p.desc, to, p.base, p.key, n))
			i++;
		while (fi_cq_read(n->cq, &e, 1) == 1)
			done++;
	}
	for (; done < EACH; done++)
		want_ok(n, n);
	return NULL;
}

START_TEST(event_writes_of_two_peers_count_exactly)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .caps = CAPS };
	pthread_t one, two;
	int i;

	open_counted(FI_MR_ALLOCATED);
	node_open(&third, &opt);
	third_to = node_insert(&third, &p.b);
	ck_assert_int_eq(pthread_create(&one, NULL, write_many, &p.a), 0);
	ck_assert_int_eq(pthread_create(&two, NULL, write_many, &third), 0);
	for (i = 0; _i && i < 10; i++) {
		usleep(2000);
		fake_break(1, 1, MRF_WC_REFUSED, false);
	}
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	want_count(2 * EACH);
	node_close(&third);
	close_counted();
}
END_TEST

static void *wait_for_three(void *arg)
{
	(void)arg;
	return fi_cntr_wait(cntr, 3, LONG_MS) ? NULL : cntr;
}

START_TEST(event_wakes_who_waits_for_the_counter)
{
	pthread_t waiter;
	void *woke = NULL;

	open_counted(FI_MR_ALLOCATED);
	ck_assert_int_eq(pthread_create(&waiter, NULL, wait_for_three, NULL), 0);
	write_ok(0, 8);
	write_ok(0, 8);
	want_count(2);
	write_ok(0, 8);
	pthread_join(waiter, &woke);
	ck_assert_ptr_eq(woke, cntr);
	close_counted();
}
END_TEST

/* --- counters of endpoints --------------------------------------------------------- */

/* As many as regions of the domain count, whatever region it is. */
START_TEST(event_counter_of_the_endpoint_counts_every_write_by_peers)
{
	struct fid_cntr *all = NULL;
	uint64_t n = 0;
	size_t i;

	open_counted(modes[_i]);
	all = open_cntr();
	ck_assert_int_eq(fi_ep_bind(p.b.ep, &all->fid, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(fi_ep_bind(p.b.ep, &all->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++) {
		write_ok(0, sizes[i]);
		n++;
	}
	pair_read(&p, 0, 64);
	want_ok(&p.a, pair_ctx(&p, 0));
	want_count(n);
	ck_assert_uint_eq(fi_cntr_read(all), n);
	ck_assert_int_eq(fi_cntr_wait(all, n, LONG_MS), 0);
	ck_assert_int_eq(fi_close(&all->fid), -FI_EBUSY);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	must_close(&all->fid);
	must_close(&cntr->fid);
	pair_close(&p);
}
END_TEST

/* No counter is bound to the region: what is known to be written counts though it closes. */
START_TEST(event_counter_of_the_endpoint_has_all_when_the_region_is_closed)
{
	struct node_opt opt = { .mr_mode = _i ? FI_MR_ALLOCATED : 0, .caps = CAPS };
	struct fid_cntr *all;

	pair_open(&p, &opt);
	all = open_cntr();
	ck_assert_int_eq(fi_ep_bind(p.b.ep, &all->fid, FI_REMOTE_WRITE), 0);
	write_ok(0, 64);
	write_ok(64, 64);
	must_close(&p.mr->fid);
	p.mr = NULL;
	ck_assert_uint_eq(fi_cntr_read(all), 2);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	must_close(&all->fid);
	pair_close(&p);
}
END_TEST

START_TEST(event_counter_of_the_endpoint_needs_the_capability)
{
	struct fid_cntr *all;

	fixture_log();
	pair_open(&p, PLAIN);
	all = open_cntr();
	unit_capture(&cap);
	ck_assert_int_eq(fi_ep_bind(p.b.ep, &all->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E4064"));
	ck_assert_ptr_nonnull(strstr(cap.text, "FI_RMA_EVENT"));
	must_close(&all->fid);
	pair_close(&p);
}
END_TEST

/* Where the rules are not strict it is taken like one of reads, and that is said. */
START_TEST(event_counter_of_the_endpoint_without_the_capability_is_taken_when_not_strict)
{
	struct fid_cntr *all;

	setenv("FI_MRFAB_STRICT", "off", 1);
	fixture_log();
	pair_open(&p, PLAIN);
	all = open_cntr();
	unit_capture(&cap);
	ck_assert_int_eq(fi_ep_bind(p.b.ep, &all->fid, FI_RECV | FI_REMOTE_WRITE | FI_REMOTE_READ),
			 0);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-W4067"));
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W4063"));
	write_ok(0, 64);
	ck_assert_int_eq(fi_cntr_wait(all, 1, 100), -FI_ETIMEDOUT);
	/* Until then it counts messages. */
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	must_close(&all->fid);
	pair_close(&p);
	unsetenv("FI_MRFAB_STRICT");
}
END_TEST

/* Said once: others of the domain's endpoints may be the targets. */
START_TEST(event_of_an_endpoint_without_the_capability_of_its_domain_is_said_once)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .caps = CAPS };
	struct fid_ep *more[3];
	size_t i;

	fixture_log();
	pair_open(&p, &opt);
	p.b.info->caps = _i ? FI_RMA | FI_WRITE | FI_READ : CAPS & ~FI_RMA_EVENT;
	unit_capture(&cap);
	for (i = 0; i < MRF_ARRAY_SIZE(more); i++)
		ck_assert_int_eq(node_try_ep(&p.b, &opt, &more[i]), 0);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), _i ? 0 : 1);
	ck_assert(_i || strstr(cap.text, "MRF-W4066"));
	for (i = 0; i < MRF_ARRAY_SIZE(more); i++)
		must_close(&more[i]->fid);
	pair_close(&p);
}
END_TEST

/* Taken, and never counts; that is said. */
START_TEST(event_counter_of_the_endpoint_does_not_see_reads_and_says_so)
{
	struct fid_cntr *all;

	fixture_log();
	open_counted(FI_MR_ALLOCATED);
	all = open_cntr();
	unit_capture(&cap);
	ck_assert_int_eq(
		fi_ep_bind(p.b.ep, &all->fid, FI_REMOTE_READ | FI_REMOTE_WRITE | FI_SEND | FI_RECV),
		0);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-W4063"));
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	pair_read(&p, 0, 64);
	want_ok(&p.a, pair_ctx(&p, 0));
	write_ok(0, 64);
	want_count(1);
	ck_assert_uint_eq(fi_cntr_read(all), 1);
	ck_assert_int_eq(fi_ep_bind(p.b.ep, &all->fid, FI_MULTI_RECV), -FI_EBADFLAGS);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	must_close(&all->fid);
	must_close(&cntr->fid);
	pair_close(&p);
}
END_TEST

/* --- closing ---------------------------------------------------------------------- */

static void open_bound(uint32_t api)
{
	fixture_log();
	open_counted_api(FI_MR_ENDPOINT | FI_MR_ALLOCATED, api);
	write_ok(0, 8);
}

static void busy(struct fid *fid, const char *code, const void *culprit)
{
	const char *text;
	char name[32];

	unit_capture(&cap);
	ck_assert_int_eq(fi_close(fid), -FI_EBUSY);
	text = unit_captured(&cap);
	snprintf(name, sizeof(name), "%p", culprit);
	ck_assert_msg(strstr(text, code) && strstr(text, name) && unit_lines(text) == 1,
		      "no %s with %s in: %s", code, name, text);
	/* Nothing has changed. */
	write_ok(64, 8);
}

START_TEST(close_before_api_2_3_goes_from_the_endpoint_to_the_region)
{
	open_bound(_i ? FI_VERSION(2, 2) : FI_VERSION(1, 17));
	busy(&p.mr->fid, "MRF-E3239", cntr);
	must_close(&cntr->fid);
	busy(&p.mr->fid, "MRF-E3063", p.b.ep);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	pair_close(&p);
}
END_TEST

START_TEST(close_from_api_2_3_on_goes_from_the_region_to_the_endpoint)
{
	open_bound(FI_VERSION(2, 3));
	busy(&p.b.ep->fid, "MRF-E3230", p.mr);
	busy(&cntr->fid, "MRF-E3231", p.mr);
	must_close(&p.mr->fid);
	p.mr = NULL;
	/* All three were counted by then. */
	ck_assert_uint_eq(fi_cntr_read(cntr), 3);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EKEYREJECTED, "closed"), 4102);
	ck_assert_uint_eq(fi_cntr_read(cntr), 3);
	must_close(&cntr->fid);
	pair_close(&p);
}
END_TEST

/* No waiting: what was acknowledged is in the count when fi_close returns. */
START_TEST(close_returns_when_all_is_counted)
{
	int i, j;

	open_counted_api(FI_MR_ALLOCATED, FI_VERSION(2, 3));
	for (i = 0; i < 30; i++) {
		uint64_t before = fi_cntr_read(cntr);

		for (j = 0; j < 30; j++)
			pair_write(&p, 0, 8);
		for (j = 0; j < 30; j++)
			want_ok(&p.a, NULL);
		must_close(&p.mr->fid);
		ck_assert_uint_eq(fi_cntr_read(cntr), before + 30);
		reg_counted();
	}
	must_close(&p.mr->fid);
	p.mr = NULL;
	must_close(&cntr->fid);
	pair_close(&p);
}
END_TEST

/* Likewise of the endpoint. */
START_TEST(close_of_the_endpoint_returns_when_all_is_counted)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .caps = CAPS };
	int i, j;

	open_counted(FI_MR_ALLOCATED | (_i ? FI_MR_ENDPOINT : 0));
	for (i = 0; i < 20; i++) {
		uint64_t before = fi_cntr_read(cntr);

		for (j = 0; j < 30; j++)
			pair_write(&p, 0, 8);
		for (j = 0; j < 30; j++)
			want_ok(&p.a, NULL);
		must_close(&p.b.ep->fid);
		p.b.ep = NULL;
		ck_assert_uint_eq(fi_cntr_read(cntr), before + 30);
		ck_assert_int_eq(node_try_ep(&p.b, &opt, &p.b.ep), 0);
		p.to = node_insert(&p.a, &p.b);
		if (!_i)
			continue;
		must_close(&cntr->fid);
		must_close(&p.mr->fid);
		cntr = open_cntr();
		reg_counted();
	}
	close_counted();
}
END_TEST

/* The agent, before it was told of the completions: whoever closes has it look for them. */
START_TEST(close_counts_what_the_agent_was_not_woken_for)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED };
	struct fid_ep *ep;
	int i, n = 20;

	open_counted_api(FI_MR_ALLOCATED, FI_VERSION(2, 3));
	write_ok(0, 8);
	want_count(1);
	fake_deafen(node_agent(&p.b)->cq, true);
	/* What the agent was busy with is over when it has done this. */
	ck_assert_int_eq(node_try_ep(&p.b, &opt, &ep), 0);
	must_close(&ep->fid);
	for (i = 0; i < n; i++)
		write_ok((size_t)i * 100, 100);
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	ep = p.b.ep;
	if (_i)
		must_close(&p.mr->fid);
	else
		must_close(&ep->fid);
	ck_assert_uint_eq(fi_cntr_read(cntr), (uint64_t)n + 1);
	p.mr = _i ? NULL : p.mr;
	p.b.ep = _i ? ep : NULL;
	fake_deafen(node_agent(&p.b)->cq, false);
	if (p.mr)
		must_close(&p.mr->fid);
	p.mr = NULL;
	must_close(&cntr->fid);
	pair_close(&p);
}
END_TEST

/* What comes while it is being closed is done for its peer, and so it counts. */
START_TEST(close_of_the_endpoint_counts_what_was_faster)
{
	open_counted(FI_MR_ALLOCATED);
	write_ok(0, 8);
	fake_hold(true);
	pair_write(&p, 0, 8);
	fake_run_on_disconnect();
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_uint_eq(fi_cntr_read(cntr), 2);
	must_close(&cntr->fid);
	pair_close(&p);
}
END_TEST

/* --- a target that is not honest -------------------------------------------------------- */

static atomic_uint refusals;

static enum fake_fate refuse_data(uint8_t *msg, size_t *len, bool from_target)
{
	if (from_target || mrf_msg_type(msg, *len) != MRF_MSG_DATA)
		return FAKE_DELIVER;
	refusals++;
	return FAKE_REFUSE;
}

static enum fake_fate exaggerate(uint8_t *msg, size_t *len, bool from_target)
{
	struct mrf_data data;

	if (!from_target && !mrf_data_decode(msg, *len, &data)) {
		data.len = (size_t)1 << 60;
		*len = mrf_data_encode(&data, msg);
	}
	return FAKE_DELIVER;
}

/* More than an operation may be: whoever says so is disconnected, and the application not told. */
START_TEST(event_data_of_more_bytes_than_there_can_be_are_not_told)
{
	struct fi_cq_data_entry e;

	open_counted(FI_MR_ALLOCATED);
	write_ok(0, 8);
	fake.on_send = exaggerate;
	ck_assert_int_eq(fi_writedata(p.a.ep, p.src, 10, NULL, 1, p.to, 0, p.key, &p), 0);
	want_soon(!node_state(&p.a, p.to).ops);
	ck_assert_int_eq(fi_cq_sread(p.b.cq, &e, 1, NULL, 100), -FI_EAGAIN);
	fi_cq_sread(p.a.cq, &e, 1, NULL, 0);
	fake.on_send = NULL;
	ck_assert_int_eq(fi_writedata(p.a.ep, p.src, 10, NULL, 1, p.to, 0, p.key, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(want_ok(&p.b, NULL).data, 1);
	want_soon(fake_connects() == 2);
	close_counted();
}
END_TEST

/* It welcomes an old acquaintance as an endpoint without FI_RMA_EVENT. */
static void without_events(uint8_t *data, size_t len)
{
	(void)len;
	if (refusals)
		data[28] &= (uint8_t)~MRF_WELCOME_EVENTS;
}

START_TEST(event_target_that_refuses_data_and_takes_none_any_more_is_done_with)
{
	struct fi_cq_data_entry e;

	refusals = 0;
	open_counted(FI_MR_ALLOCATED);
	write_ok(0, 8);
	fake.on_send = refuse_data;
	fake.on_accept = without_events;
	ck_assert_int_eq(fi_writedata(p.a.ep, p.src, 10, NULL, 1, p.to, 0, p.key, &p), 0);
	/* The bytes are there and counted; what was missing comes with no bytes. */
	want_ok(&p.a, &p);
	ck_assert_uint_eq(refusals, 1);
	ck_assert_int_eq(fi_cq_sread(p.b.cq, &e, 1, NULL, 100), -FI_EAGAIN);
	want_count(2);
	fake.on_send = NULL;
	fake.on_accept = NULL;
	close_counted();
}
END_TEST

/* Region, endpoint, counter: up to API version 2.2 only where FI_MRFAB_STRICT says so. */
START_TEST(close_in_any_order_is_warned_of_when_it_is_not_strict)
{
	static bool said;

	fixture_log();
	setenv("FI_MRFAB_STRICT", "OFF", 1);
	mrf_env_reload();
	open_counted(FI_MR_ENDPOINT | FI_MR_RMA_EVENT | (_i ? FI_MR_ALLOCATED : 0));
	write_ok(0, 64);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&p.mr->fid), 0);
	reg_counted();
	ck_assert_int_eq(fi_close(&p.mr->fid), 0);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), !said);
	ck_assert_int_eq(!strstr(cap.text, "<warn> MRF-W3065"), said);
	said = true; /* the process has */
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	/* Closed it is, for peers and for what it was bound to. */
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, p.desc, p.to, p.base, p.key, &p), 0);
	want_err(&p.a, &p, FI_EKEYREJECTED, NULL);
	p.mr = NULL;
	must_close(&cntr->fid);
	pair_close(&p);
	unsetenv("FI_MRFAB_STRICT");
	mrf_env_reload();
}
END_TEST

START_TEST(close_order_is_strict_unless_it_is_off)
{
	static const char *const values[] = { "on", "", "no", "2" };
	size_t i;

	fixture_log();
	for (i = 0; i < MRF_ARRAY_SIZE(values); i++) {
		setenv("FI_MRFAB_STRICT", values[i], 1);
		mrf_env_reload();
		open_counted(0);
		unit_capture(&cap);
		ck_assert_int_eq(fi_close(&p.mr->fid), -FI_EBUSY);
		unit_captured(&cap);
		ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E3239"));
		ck_assert_int_eq(i == 2, !!strstr(cap.text, "MRF-W5904")); /* said once */
		close_counted();
	}
	unsetenv("FI_MRFAB_STRICT");
	mrf_env_reload();
}
END_TEST

static TCase *tcase_count(void)
{
	TCase *tc = tcase_create("count");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, event_every_write_counts_once_and_nothing_else_does, 0, NMODES);
	tcase_add_loop_test(tc, event_split_write_counts_once_with_its_last_bytes, 0, 2);
	tcase_add_test(tc, event_write_over_segments_counts_once);
	tcase_add_loop_test(tc, event_write_to_several_regions_counts_once_for_each, 0, 2);
	tcase_add_test(tc, event_write_by_two_raw_keys_of_a_region_counts_once);
	tcase_add_loop_test(tc, event_endpoint_without_the_capability_counts_nothing, 0, 2);
	tcase_add_loop_test(
		tc, event_is_counted_by_what_the_endpoint_that_is_reached_was_opened_with, 0, 2);
	tcase_add_loop_test(tc, event_data_of_the_application_come_beside_the_count, 0, NMODES);
	tcase_add_loop_test(tc, event_counter_of_the_endpoint_counts_every_write_by_peers, 0,
			    NMODES);
	tcase_add_loop_test(tc, event_counter_of_the_endpoint_has_all_when_the_region_is_closed, 0,
			    2);
	tcase_add_test(tc, event_counter_of_the_endpoint_needs_the_capability);
	tcase_add_test(
		tc, event_counter_of_the_endpoint_without_the_capability_is_taken_when_not_strict);
	tcase_add_loop_test(
		tc, event_of_an_endpoint_without_the_capability_of_its_domain_is_said_once, 0, 2);
	tcase_add_test(tc, event_counter_of_the_endpoint_does_not_see_reads_and_says_so);
	return tc;
}

static TCase *tcase_between(void)
{
	TCase *tc = tcase_create("between");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, event_data_that_were_flushed_are_sent_again_and_once, 0, 2);
	tcase_add_loop_test(tc, event_refused_and_flushed_writes_count_once_when_they_are_done, 0,
			    8);
	tcase_add_loop_test(tc, event_write_behind_a_read_to_a_closed_buffer_is_not_repeated, 0, 4);
	tcase_add_loop_test(tc, event_write_that_was_never_done_counts_nothing, 0, 2);
	tcase_add_loop_test(tc, event_count_goes_on_over_refreshes_and_new_registrations, 0, 2);
	tcase_add_test(tc, event_what_was_acknowledged_counts_though_the_initiator_is_gone);
	tcase_add_loop_test(tc, event_writes_of_two_peers_count_exactly, 0, 2);
	tcase_add_test(tc, event_wakes_who_waits_for_the_counter);
	return tc;
}

static TCase *tcase_close(void)
{
	TCase *tc = tcase_create("close");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, close_before_api_2_3_goes_from_the_endpoint_to_the_region, 0, 2);
	tcase_add_test(tc, close_from_api_2_3_on_goes_from_the_region_to_the_endpoint);
	tcase_add_loop_test(tc, close_in_any_order_is_warned_of_when_it_is_not_strict, 0, 2);
	tcase_add_test(tc, close_order_is_strict_unless_it_is_off);
	tcase_add_test(tc, close_returns_when_all_is_counted);
	tcase_add_loop_test(tc, close_of_the_endpoint_returns_when_all_is_counted, 0, 2);
	tcase_add_loop_test(tc, close_counts_what_the_agent_was_not_woken_for, 0, 2);
	tcase_add_test(tc, close_of_the_endpoint_counts_what_was_faster);
	tcase_add_test(tc, event_target_that_refuses_data_and_takes_none_any_more_is_done_with);
	tcase_add_test(tc, event_data_of_more_bytes_than_there_can_be_are_not_told);
	return tc;
}

UNIT_MAIN("event", tcase_count, tcase_between, tcase_close)
