/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints that work as they should: transfers of every shape, and coming and going. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <rdma/fi_atomic.h>
#include "base/log.h"
#include "ep_fixture.h"

static struct pair p;
static const char *traces; /* what was logged */

static const int modes[] = {
	0,
	FI_MR_BASIC,
	FI_MR_PROV_KEY,
	FI_MR_VIRT_ADDR,
	FI_MR_VIRT_ADDR | FI_MR_PROV_KEY,
	FI_MR_ALLOCATED,
	FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	FI_MR_LOCAL, /* from here on all have it */
	FI_MR_LOCAL | FI_MR_PROV_KEY,
	FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY,
	FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR,
	FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY,
};

/* One of each way that a local buffer takes: inline, bounce, registered for the
 * operation. */
static const size_t sizes[] = { 1, 256, 257, 16384, 16385, PAIR_LEN };

static struct node_opt mode_opt(int mode)
{
	return (struct node_opt){ .mr_mode = mode };
}

/* --- transfers
 * -------------------------------------------------------------------------- */

START_TEST(ep_write_lands_in_every_mode_and_size)
{
	struct node_opt opt = mode_opt(modes[_i]);
	size_t i;

	pair_open(&p, &opt);
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++) {
		struct fi_cq_data_entry e;

		memset(p.dst, 0, PAIR_LEN);
		pair_write(&p, 0, sizes[i]);
		e = want_ok(&p.a, pair_ctx(&p, 0));
		ck_assert_uint_eq(e.flags, FI_RMA | FI_WRITE);
		ck_assert_uint_eq(e.len, sizes[i]);
		ck_assert(filled(p.dst, sizes[i], 1));
		ck_assert(sizes[i] == PAIR_LEN || !p.dst[sizes[i]]);
	}
	pair_close(&p);
}
END_TEST

START_TEST(ep_read_brings_every_mode_and_size)
{
	struct node_opt opt = mode_opt(modes[_i]);
	size_t i;

	pair_open(&p, &opt);
	fill(p.dst, PAIR_LEN, 9);
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++) {
		struct fi_cq_data_entry e;

		memset(p.src, 0, PAIR_LEN);
		pair_read(&p, 0, sizes[i]);
		e = want_ok(&p.a, pair_ctx(&p, 0));
		ck_assert_uint_eq(e.flags, FI_RMA | FI_READ);
		ck_assert(filled(p.src, sizes[i], 9));
		ck_assert(sizes[i] == PAIR_LEN || !p.src[sizes[i]]);
	}
	pair_close(&p);
}
END_TEST

START_TEST(ep_provider_keys_need_no_question_and_others_one)
{
	/* Memory that is not there yet is asked about as often as it may change: t_ask. */
	bool basic = modes[_i] == FI_MR_BASIC;
	struct node_opt opt = mode_opt(basic ? FI_MR_BASIC : modes[_i] | FI_MR_ALLOCATED);
	bool direct = basic || (modes[_i] & FI_MR_PROV_KEY);
	int i;

	pair_open(&p, &opt);
	for (i = 0; i < 3; i++) {
		pair_write(&p, 0, 100);
		want_ok(&p.a, pair_ctx(&p, 0));
	}
	ck_assert_uint_eq(fake.asks, direct ? 0 : 1);
	pair_close(&p);
}
END_TEST

/* count pieces of different sizes that leave gaps; returns their total. */
static size_t cut(struct iovec *iov, size_t count, uint8_t *mem)
{
	size_t i, total = 0;

	for (i = 0; i < count; i++) {
		iov[i].iov_base = mem + i * 9000 + i;
		iov[i].iov_len = i == 2 ? 0 : 500 + i * 1000;
		total += iov[i].iov_len;
	}
	return total;
}

START_TEST(ep_vectors_gather_and_scatter)
{
	struct iovec iov[4];
	uint8_t all[PAIR_LEN];
	size_t total, i, at = 0;

	pair_open(&p, NULL);
	total = cut(iov, 4, p.src);
	for (i = 0; i < 4; at += iov[i++].iov_len)
		memcpy(all + at, iov[i].iov_base, iov[i].iov_len);
	ck_assert_int_eq(fi_writev(p.a.ep, iov, NULL, 4, p.to, p.base + 3, p.key, &p), 0);
	ck_assert_uint_eq(want_ok(&p.a, &p).len, total);
	ck_assert_int_eq(memcmp(p.dst + 3, all, total), 0);
	memset(p.src, 0, PAIR_LEN);
	ck_assert_int_eq(fi_readv(p.a.ep, iov, NULL, 4, p.to, p.base + 3, p.key, &p), 0);
	want_ok(&p.a, &p);
	for (i = at = 0; i < 4; at += iov[i++].iov_len)
		ck_assert_int_eq(memcmp(all + at, iov[i].iov_base, iov[i].iov_len), 0);
	pair_close(&p);
}
END_TEST

static ssize_t message(bool read, const struct iovec *iov, size_t n, const struct fi_rma_iov *rma,
		       size_t nrma, uint64_t flags, uint64_t data)
{
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .desc = &p.desc,
				  .iov_count = n,
				  .addr = p.to,
				  .rma_iov = rma,
				  .rma_iov_count = nrma,
				  .context = &p,
				  .data = data };

	return read ? fi_readmsg(p.a.ep, &msg, flags) : fi_writemsg(p.a.ep, &msg, flags);
}

START_TEST(ep_messages_cross_segments_and_remote_pieces)
{
	struct node_opt opt = mode_opt(modes[_i]);
	struct iovec seg[3], here = { .iov_len = 9000 };
	struct fi_rma_iov rma[3];
	struct fid_mr *mr;
	uint8_t *mem;
	bool virt;

	pair_open(&p, &opt);
	virt = p.base != 0;
	mem = pages(4 * PAGE);
	/* With addresses the segments touch, so that an access can go on in the next one.
	 */
	seg[0] = (struct iovec){ mem + 100, 3000 };
	seg[1] = (struct iovec){ mem + 3100, 2000 };
	seg[2] = (struct iovec){ mem + 5100, 5000 };
	mr = node_regv(&p.b, seg, 3, REMOTE_RW, 5);
	rma[0] = (struct fi_rma_iov){ (virt ? (uintptr_t)seg[0].iov_base : 0) + 10, 6000,
				      fi_mr_key(mr) };
	rma[1] = (struct fi_rma_iov){ p.base + 7, 1000, p.key };
	rma[2] = (struct fi_rma_iov){ rma[0].addr + 7000, 2000, fi_mr_key(mr) };
	here.iov_base = p.src + 1;
	ck_assert_int_eq(message(false, &here, 1, rma, 3, 0, 0), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(mem + 110, p.src + 1, 6000), 0);
	ck_assert_int_eq(memcmp(p.dst + 7, p.src + 6001, 1000), 0);
	ck_assert_int_eq(memcmp(mem + 7110, p.src + 7001, 2000), 0);
	memset(p.src, 0, PAIR_LEN);
	ck_assert_int_eq(message(true, &here, 1, rma, 3, 0, 0), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(mem + 110, p.src + 1, 6000), 0);
	ck_assert_int_eq(memcmp(mem + 7110, p.src + 7001, 2000), 0);
	must_close(&mr->fid);
	pair_close(&p);
	munmap(mem, 4 * PAGE);
}
END_TEST

/* 30 pieces of a region, where a work request takes 16. */
START_TEST(ep_buffers_of_more_pieces_than_a_work_request_takes)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL };
	struct iovec seg[15], iov[2];
	struct fid_mr *mr;
	void *desc[2];
	int i;

	pair_open(&p, &opt);
	for (i = 0; i < 15; i++)
		seg[i] = (struct iovec){ p.src + 100 * i, 100 };
	mr = node_regv(&p.a, seg, 15, FI_READ | FI_WRITE, 0);
	desc[0] = desc[1] = fi_mr_desc(mr);
	iov[0] = (struct iovec){ p.src + 1, 1490 };
	iov[1] = (struct iovec){ p.src + 5, 1490 };
	ck_assert_int_eq(fi_writev(p.a.ep, iov, desc, 2, p.to, p.base, p.key, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(p.dst, p.src + 1, 1490), 0);
	ck_assert_int_eq(memcmp(p.dst + 1490, p.src + 5, 1490), 0);
	/* Its bytes still have to be in the region. */
	iov[1].iov_len = 1500;
	ck_assert_int_eq(fi_writev(p.a.ep, iov, desc, 2, p.to, p.base, p.key, &p), -FI_EINVAL);
	must_close(&mr->fid);
	pair_close(&p);
}
END_TEST

START_TEST(ep_messages_over_8_mib_are_split)
{
	const size_t len = (17u << 20) + 12345;
	uint8_t *from = pages(len), *to = pages(len);
	struct fid_mr *mr;
	size_t i, bytes = 0;

	pair_open(&p, NULL);
	fill(from, len, 3);
	mr = node_reg(&p.b, to, len, REMOTE_RW, 8);
	ck_assert_int_eq(fi_write(p.a.ep, from, len, NULL, p.to, 0, 8, &p), 0);
	ck_assert_uint_eq(want_ok(&p.a, &p).len, len);
	ck_assert(filled(to, len, 3));
	ck_assert_uint_eq(fake.nlog, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_le(fake.log[i].len, 8u << 20);
		bytes += fake.log[i].len;
	}
	ck_assert_uint_eq(bytes, len);
	memset(from, 0, len);
	ck_assert_int_eq(fi_read(p.a.ep, from, len, NULL, p.to, 0, 8, &p), 0);
	want_ok(&p.a, &p);
	ck_assert(filled(from, len, 3));
	must_close(&mr->fid);
	pair_close(&p);
	munmap(from, len);
	munmap(to, len);
}
END_TEST

START_TEST(ep_injected_bytes_are_taken_before_the_call_returns)
{
	uint8_t small[256];
	int i;

	pair_open(&p, PLAIN);
	fake_hold(true);
	for (i = 0; i < 10; i++) {
		memset(small, i + 1, sizeof(small));
		ck_assert_int_eq(fi_inject_write(p.a.ep, small, sizeof(small), p.to,
						 p.base + (size_t)i * 256, p.key),
				 0);
	}
	memset(small, 0xee, sizeof(small));
	fake_hold(false);
	want_soon(fake_nlog() == 10);
	want_none(&p.a);
	for (i = 0; i < 10; i++)
		ck_assert(p.dst[i * 256] == i + 1 && p.dst[i * 256 + 255] == i + 1);
	pair_close(&p);
}
END_TEST

static void want_imm(size_t len, uint64_t data)
{
	struct fi_cq_data_entry e = want_ok(&p.b, NULL);

	ck_assert_uint_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	ck_assert_uint_eq(e.data, data);
	ck_assert_uint_eq(e.len, len);
}

START_TEST(ep_immediate_data_reaches_the_target)
{
	uint32_t i;

	pair_open(&p, NULL);
	ck_assert_int_eq(
		fi_writedata(p.a.ep, p.src, 1000, NULL, 0xfeedbeef, p.to, p.base, p.key, &p), 0);
	want_ok(&p.a, &p);
	want_imm(1000, 0xfeedbeef);
	ck_assert(filled(p.dst, 1000, 1));
	ck_assert_int_eq(fi_writedata(p.a.ep, NULL, 0, NULL, 7, p.to, p.base, p.key, &p), 0);
	want_ok(&p.a, &p);
	want_imm(0, 7);
	ck_assert_int_eq(fi_inject_writedata(p.a.ep, p.src, 8, 9, p.to, p.base, p.key), 0);
	want_imm(8, 9);
	/* More than the target has RECVs: they wait for the agent there. */
	for (i = 0; i < 200; i++)
		ck_assert_int_eq(fi_writedata(p.a.ep, p.src, 16, NULL, i, p.to, p.base, p.key, &p),
				 0);
	for (i = 0; i < 200; i++)
		want_imm(16, i);
	for (i = 0; i < 200; i++)
		want_ok(&p.a, &p);
	pair_close(&p);
}
END_TEST

START_TEST(ep_split_message_carries_its_immediate_data_last)
{
	struct iovec here = { .iov_len = 10000 };
	struct fi_rma_iov rma;

	fake.max_msg_size = 4096;
	pair_open(&p, NULL);
	here.iov_base = p.src;
	rma = (struct fi_rma_iov){ p.base, 10000, p.key };
	ck_assert_int_eq(message(false, &here, 1, &rma, 1, FI_REMOTE_CQ_DATA, 3), 0);
	want_ok(&p.a, &p);
	want_imm(10000 - 2 * 4096, 3);
	ck_assert(filled(p.dst, 10000, 1));
	ck_assert_uint_eq(fake.nlog, 3);
	ck_assert_int_eq(fake.log[1].op, MRF_VWR_WRITE);
	ck_assert_int_eq(fake.log[2].op, MRF_VWR_WRITE_IMM);
	pair_close(&p);
}
END_TEST

START_TEST(ep_accesses_of_no_bytes_complete_without_touching_memory)
{
	struct fi_rma_iov rma;

	pair_open(&p, NULL);
	pair_write(&p, 5, 0);
	ck_assert_uint_eq(want_ok(&p.a, pair_ctx(&p, 5)).len, 0);
	pair_read(&p, PAIR_LEN, 0);
	want_ok(&p.a, pair_ctx(&p, PAIR_LEN));
	rma = (struct fi_rma_iov){ p.base, 0, p.key };
	ck_assert_int_eq(message(false, NULL, 0, &rma, 1, 0, 0), 0);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(fake.nlog, 0);
	/* What the kernel would let through: beyond the end, an unknown key. */
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 0, NULL, p.to, p.base + PAIR_LEN + 1, p.key, &p),
			 0);
	want_err(&p.a, &p, FI_EACCES, "outside the region");
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 0, NULL, p.to, p.base, 4711, &p), 0);
	want_err(&p.a, &p, FI_EKEYREJECTED, "unknown");
	pair_close(&p);
}
END_TEST

START_TEST(ep_access_of_no_bytes_sees_that_the_region_was_closed)
{
	pair_open(&p, NULL);
	pair_write(&p, 0, 0);
	want_ok(&p.a, pair_ctx(&p, 0));
	must_close(&p.mr->fid);
	pair_write(&p, 0, 0);
	want_err(&p.a, pair_ctx(&p, 0), FI_EKEYREJECTED, "closed");
	pair_reg(&p, FI_REMOTE_READ);
	pair_write(&p, 0, 0);
	want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "FI_REMOTE_WRITE");
	pair_close(&p);
}
END_TEST

/* Whether its buffer is copied or registered. */
START_TEST(ep_fenced_write_sends_what_the_read_before_it_brought)
{
	static const size_t lens[] = { 1, 64, 160, 161, 4096, PAIR_LEN / 2 };
	struct node_opt opt = mode_opt(modes[_i]);
	struct iovec here;
	struct fi_rma_iov rma;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		pair_open(&p, &opt);
		fill(p.dst, lens[i], 5);
		here = (struct iovec){ p.src, lens[i] };
		rma = (struct fi_rma_iov){ p.base + PAIR_LEN / 2, lens[i], p.key };
		pair_read(&p, 0, lens[i]);
		ck_assert_int_eq(message(false, &here, 1, &rma, 1, FI_FENCE, 0), 0);
		want_ok(&p.a, pair_ctx(&p, 0));
		want_ok(&p.a, &p);
		ck_assert_msg(filled(p.dst + PAIR_LEN / 2, lens[i], 5), "%zu bytes", lens[i]);
		pair_close(&p);
	}
}
END_TEST

START_TEST(ep_fenced_operation_waits_for_those_before_it)
{
	struct iovec here = { .iov_len = 100 };
	struct fi_rma_iov rma;

	pair_open(&p, PLAIN);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	pair_read(&p, 1000, 100);
	pair_read(&p, 2000, 100);
	here.iov_base = p.src;
	rma = (struct fi_rma_iov){ p.base, 100, p.key };
	ck_assert_int_eq(message(false, &here, 1, &rma, 1, FI_FENCE, 0), 0);
	ck_assert_uint_eq(fake_queued(), 2);
	/* Automatic progress: nobody reads the CQ while this comes true. */
	fake_hold(false);
	want_soon(fake_nlog() == 4);
	ck_assert_int_eq(fake.log[3].op, MRF_VWR_WRITE);
	want_ok(&p.a, pair_ctx(&p, 1000));
	want_ok(&p.a, pair_ctx(&p, 2000));
	want_ok(&p.a, &p);
	pair_close(&p);
}
END_TEST

START_TEST(ep_counters_count_each_kind_and_injected_ones_too)
{
	struct node_opt opt = { .counters = true, .no_cq = _i };
	int i;

	pair_open(&p, &opt);
	for (i = 0; i < 5; i++)
		pair_write(&p, 0, 64);
	ck_assert_int_eq(fi_inject_write(p.a.ep, p.src, 8, p.to, p.base, p.key), 0);
	for (i = 0; i < 3; i++)
		pair_read(&p, 0, 64);
	ck_assert_int_eq(fi_cntr_wait(p.a.wr, 6, LONG_MS), 0);
	ck_assert_int_eq(fi_cntr_wait(p.a.rd, 3, LONG_MS), 0);
	ck_assert_uint_eq(fi_cntr_read(p.a.wr), 6);
	ck_assert_uint_eq(fi_cntr_read(p.a.rd), 3);
	ck_assert_int_eq(fi_read(p.a.ep, p.src, 8, NULL, p.to, p.base + PAIR_LEN, p.key, &p), 0);
	want_soon(fi_cntr_readerr(p.a.rd) == 1);
	ck_assert_uint_eq(fi_cntr_readerr(p.a.wr), 0);
	pair_close(&p);
}
END_TEST

START_TEST(ep_selective_completion_reports_what_was_asked_for_and_errors)
{
	struct node_opt opt = { .selective = true };
	struct iovec here = { .iov_len = 10 };
	struct fi_rma_iov rma;

	pair_open(&p, &opt);
	here.iov_base = p.src;
	rma = (struct fi_rma_iov){ p.base, 10, p.key };
	pair_write(&p, 0, 10);
	ck_assert_int_eq(message(false, &here, 1, &rma, 1, 0, 0), 0);
	ck_assert_int_eq(message(false, &here, 1, &rma, 1, FI_COMPLETION, 0), 0);
	want_ok(&p.a, &p);
	want_none(&p.a);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, p.base, 4711, p.src), 0);
	want_err(&p.a, p.src, FI_EKEYREJECTED, NULL);
	pair_close(&p);
}
END_TEST

START_TEST(ep_default_flags_apply_to_plain_calls)
{
	struct node_opt opt = { .selective = true, .op_flags = FI_COMPLETION };

	pair_open(&p, &opt);
	pair_write(&p, 0, 10);
	want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
	opt = (struct node_opt){ .op_flags = FI_INJECT };
	pair_open(&p, &opt);
	pair_read(&p, 0, 10);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 257, NULL, p.to, p.base, p.key, &p), -FI_EMSGSIZE);
	pair_close(&p);
}
END_TEST

static void set_flags(uint64_t flags)
{
	flags |= FI_TRANSMIT;
	ck_assert_int_eq(fi_control(&p.a.ep->fid, FI_SETOPSFLAG, &flags), 0);
}

START_TEST(ep_default_flags_that_change_apply_to_the_next_call)
{
	pair_open(&p, &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL,
					  .selective = true,
					  .op_flags = FI_COMPLETION });
	pair_write(&p, 0, 10);
	want_ok(&p.a, pair_ctx(&p, 0));
	set_flags(0);
	pair_write(&p, 0, 10);
	pair_read(&p, 0, 10);
	want_none(&p.a);
	set_flags(FI_COMPLETION | FI_INJECT);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 257, p.desc, p.to, p.base, p.key, &p),
			 -FI_EMSGSIZE);
	pair_write(&p, 0, 10);
	want_ok(&p.a, pair_ctx(&p, 0));
	set_flags(FI_COMPLETION);
	pair_write(&p, 0, 257);
	want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
}
END_TEST

START_TEST(ep_reaches_its_own_memory)
{
	struct node n;
	struct fid_mr *mr;
	uint8_t *mem = pages(2 * PAGE);
	fi_addr_t self;

	node_open(&n, NULL);
	self = node_insert(&n, &n);
	mr = node_reg(&n, mem, PAGE, REMOTE_RW, 1);
	fill(mem + PAGE, PAGE, 4);
	ck_assert_int_eq(fi_write(n.ep, mem + PAGE, PAGE, NULL, self, 0, 1, mem), 0);
	want_ok(&n, mem);
	ck_assert(filled(mem, PAGE, 4));
	memset(mem + PAGE, 0, PAGE);
	ck_assert_int_eq(fi_read(n.ep, mem + PAGE, PAGE, NULL, self, 0, 1, mem), 0);
	want_ok(&n, mem);
	ck_assert(filled(mem + PAGE, PAGE, 4));
	ck_assert_int_eq(fi_write(n.ep, mem, 8, NULL, self, PAGE, 1, mem), 0);
	want_err(&n, mem, FI_EACCES, NULL);
	must_close(&mr->fid);
	node_close(&n);
	munmap(mem, 2 * PAGE);
}
END_TEST

/* --- descriptors where they are needed
 * ---------------------------------------------------- */

static ssize_t write_desc(void *buf, size_t len, void *desc)
{
	return fi_write(p.a.ep, buf, len, desc, p.to, p.base, p.key, &p);
}

START_TEST(ep_local_mode_wants_the_descriptor_of_an_open_region)
{
	struct node_opt opt = mode_opt(modes[_i]);
	struct fid_mr *ours, *theirs, *wrong;
	void *stale;

	pair_open(&p, &opt);
	ours = node_reg(&p.a, p.src, 8192, FI_WRITE, 1);
	wrong = node_reg(&p.a, p.src, 8192, FI_READ, 2);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	theirs = node_reg(&p.b, p.src, 8192, FI_WRITE, 3);
	ck_assert_int_eq(write_desc(p.src + 1, 8191, fi_mr_desc(ours)), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(p.dst, p.src + 1, 8191), 0);
	ck_assert_int_eq(write_desc(p.src, 8193, fi_mr_desc(ours)), -FI_EINVAL);
	ck_assert_int_eq(write_desc(p.src, 100, NULL), -FI_EINVAL);
	ck_assert_int_eq(write_desc(p.src, 100, &p), -FI_EINVAL);
	ck_assert_int_eq(write_desc(p.src, 100, fi_mr_desc(theirs)), -FI_EINVAL);
	ck_assert_int_eq(write_desc(p.src, 100, fi_mr_desc(wrong)), -FI_EACCES);
	/* Neither bytes that are not there nor injected ones need it. */
	ck_assert_int_eq(write_desc(p.src, 0, NULL), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(fi_inject_write(p.a.ep, p.src, 100, p.to, p.base, p.key), 0);
	stale = fi_mr_desc(ours);
	must_close(&ours->fid);
	ck_assert_int_eq(write_desc(p.src, 100, stale), -FI_EINVAL);
	must_close(&wrong->fid);
	must_close(&theirs->fid);
	pair_close(&p);
}
END_TEST

START_TEST(ep_ignores_any_descriptor_where_none_is_needed)
{
	struct fid_mr *ours, *wrong;
	void *stale;

	pair_open(&p, NULL);
	ours = node_reg(&p.a, p.src, 8192, FI_WRITE, 1);
	wrong = node_reg(&p.a, p.src, 8192, FI_READ, 2);
	stale = fi_mr_desc(ours);
	ck_assert_int_eq(write_desc(p.src, 8192, stale), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(write_desc(p.src, 8193, stale), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(write_desc(p.src, 8192, fi_mr_desc(wrong)), 0);
	want_ok(&p.a, &p);
	must_close(&ours->fid);
	ck_assert_int_eq(write_desc(p.src, 8192, stale), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(write_desc(p.src, 8192, (void *)1), 0);
	want_ok(&p.a, &p);
	ck_assert(filled(p.dst, 8193, 1));
	must_close(&wrong->fid);
	pair_close(&p);
}
END_TEST

/* --- arguments
 * ----------------------------------------------------------------------------- */

START_TEST(ep_bad_arguments_are_refused_by_the_call)
{
	struct iovec here[MRF_LIMIT_IOV + 1] = { { NULL, 0 } };
	struct fi_rma_iov rma[9] = { { 0, 0, 0 } };

	pair_open(&p, NULL);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to + 1, 0, p.key, &p),
			 -FI_EADDRNOTAVAIL);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, FI_ADDR_UNSPEC, 0, p.key, &p),
			 -FI_EADDRNOTAVAIL);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, UINT64_MAX, p.key, &p), -FI_EINVAL);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, ((size_t)1 << 30) + 1, NULL, p.to, 0, p.key, &p),
			 -FI_EMSGSIZE);
	ck_assert_int_eq(fi_inject_write(p.a.ep, p.src, 257, p.to, 0, p.key), -FI_EMSGSIZE);
	ck_assert_int_eq(fi_writev(p.a.ep, here, NULL, MRF_LIMIT_IOV + 1, p.to, 0, p.key, &p),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_writev(p.a.ep, here, NULL, SIZE_MAX, p.to, 0, p.key, &p), -FI_EINVAL);
	ck_assert_int_eq(fi_writev(p.a.ep, NULL, NULL, 1, p.to, 0, p.key, &p), -FI_EINVAL);
	ck_assert_int_eq(message(false, here, 1, rma, 0, 0, 0), -FI_EINVAL);
	ck_assert_int_eq(message(false, here, 1, rma, 9, 0, 0), -FI_EINVAL);
	ck_assert_int_eq(message(false, here, 1, NULL, 1, 0, 0), -FI_EINVAL);
	here[0] = (struct iovec){ p.src, 8 };
	rma[0] = (struct fi_rma_iov){ 0, 7, p.key };
	ck_assert_int_eq(message(false, here, 1, rma, 1, 0, 0), -FI_EINVAL);
	rma[0].len = 8;
	ck_assert_int_eq(message(false, here, 1, rma, 1, FI_ATOMIC, 0), -FI_EBADFLAGS);
	ck_assert_int_eq(message(true, here, 1, rma, 1, FI_INJECT, 0), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_writemsg(p.a.ep, NULL, 0), -FI_EINVAL);
	want_none(&p.a);
	ck_assert_uint_eq(node_ep(&p.a)->nops, 0);
	pair_close(&p);
}
END_TEST

START_TEST(ep_ends_a_look_at_a_queue_that_never_gets_empty)
{
	struct fi_cq_data_entry entry;

	pair_open(&p, NULL);
	fake_spoil(node_ep(&p.a)->scq, true);
	ck_assert_int_eq(fi_cq_read(p.a.cq, &entry, 1), -FI_EAGAIN);
	pair_write(&p, 0, 100);
	fake_spoil(node_ep(&p.a)->scq, false);
	want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
}
END_TEST

START_TEST(ep_is_not_opened_without_a_place_for_it)
{
	struct fid_ep *ep = NULL;
	struct node n;

	node_open(&n, NULL);
	ck_assert_int_eq(fi_endpoint(n.domain, n.info, NULL, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_endpoint2(n.domain, n.info, NULL, 0, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_endpoint(n.domain, NULL, &ep, NULL), -FI_EINVAL);
	ck_assert_ptr_null(ep);
	node_close(&n);
}
END_TEST

START_TEST(ep_is_not_usable_before_it_is_enabled)
{
	struct node n;
	struct fid_ep *ep;

	node_open(&n, NULL);
	ck_assert_int_eq(fi_endpoint(n.domain, n.info, &ep, NULL), 0);
	ck_assert_int_eq(fi_write(ep, "x", 1, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_enable(ep), -FI_ENOAV);
	ck_assert_int_eq(fi_ep_bind(ep, &n.av->fid, 0), 0);
	ck_assert_int_eq(fi_enable(ep), -FI_ENOCQ);
	ck_assert_int_eq(fi_ep_bind(ep, &n.cq->fid, FI_TRANSMIT), 0);
	ck_assert_int_eq(fi_enable(ep), -FI_ENOCQ);
	ck_assert_int_eq(fi_ep_bind(ep, &n.cq->fid, FI_RECV), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_int_eq(fi_enable(ep), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_ep_bind(ep, &n.cq->fid, FI_RECV), -FI_EOPBADSTATE);
	must_close(&ep->fid);
	node_close(&n);
}
END_TEST

/* Named by programs that want a queue for receives to make progress. */
START_TEST(ep_directions_of_messages_alone_ask_for_nothing)
{
	static const uint64_t more[] = { FI_RECV, FI_SEND, FI_SEND | FI_RECV };
	struct fid_ep *ep;
	struct node n;
	size_t i;

	node_open(&n, NULL);
	for (i = 0; i < MRF_ARRAY_SIZE(more); i++) {
		n.info->caps = FI_RMA | more[i];
		n.info->tx_attr->caps |= more[i];
		n.info->rx_attr->caps |= more[i];
		ck_assert_int_eq(fi_endpoint(n.domain, n.info, &ep, NULL), 0);
		ck_assert_uint_eq(mrf_ep_of(&ep->fid)->caps & more[i], 0);
		must_close(&ep->fid);
	}
	node_close(&n);
}
END_TEST

START_TEST(ep_counter_can_be_bound_when_it_is_enabled_and_nothing_is_under_way)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *wr, *rd;

	pair_open(&p, PLAIN);
	ck_assert_int_eq(fi_cntr_open(p.a.domain, &attr, &wr, NULL), 0);
	ck_assert_int_eq(fi_cntr_open(p.a.domain, &attr, &rd, NULL), 0);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	pair_write(&p, 0, 8);
	ck_assert_int_eq(fi_ep_bind(p.a.ep, &wr->fid, FI_WRITE), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_ep_bind(p.a.ep, &wr->fid, FI_WRITE | FI_READ), -FI_EOPBADSTATE);
	fake_hold(false);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_int_eq(fi_ep_bind(p.a.ep, &wr->fid, FI_WRITE), 0);
	ck_assert_int_eq(fi_ep_bind(p.a.ep, &wr->fid, FI_WRITE), -FI_EINVAL);
	ck_assert_int_eq(fi_ep_bind(p.a.ep, &rd->fid, FI_READ), 0);
	pair_write(&p, 0, 8);
	pair_write(&p, 8, 8);
	pair_read(&p, 16, 8);
	/* The counter alone moves the endpoint. */
	ck_assert_int_eq(fi_cntr_wait(wr, 2, LONG_MS), 0);
	ck_assert_int_eq(fi_cntr_wait(rd, 1, LONG_MS), 0);
	ck_assert_uint_eq(fi_cntr_read(wr), 2);
	ck_assert_uint_eq(fi_cntr_read(rd), 1);
	ck_assert_int_eq(fi_close(&wr->fid), -FI_EBUSY);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	must_close(&wr->fid);
	must_close(&rd->fid);
	pair_close(&p);
}
END_TEST

static void log_level(const char *level)
{
	setenv("FI_LOG_LEVEL", level, 1);
	mrf_log_reload();
}

/* One write, and what of it is to be seen at this level. */
static void traced(const char *level)
{
	static struct unit_capture cap;

	log_level(level);
	unit_capture(&cap);
	pair_open(&p, PLAIN);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
	traces = unit_captured(&cap);
	log_level("warn");
}

START_TEST(ep_traces_connections_at_info_and_single_things_at_debug)
{
	static const char *const info[] = { "<info> peer 10.99.1.1:", ": connecting\n",
					    ": connected\n" };
	static const char *const debug[] = { "registered at 0x",
					     "asking the peer about key 0x4d, 0x0 + 8",
					     "a peer asks for key 0x4d", "answer about key 0x4d",
					     "<debug> region " };
	size_t i;

	traced("warn");
	ck_assert_str_eq(traces, "");
	traced("info");
	for (i = 0; i < MRF_ARRAY_SIZE(info); i++)
		ck_assert_msg(strstr(traces, info[i]) != NULL, "no %s in: %s", info[i], traces);
	ck_assert_ptr_null(strstr(traces, "<debug>"));
	traced("debug");
	for (i = 0; i < MRF_ARRAY_SIZE(debug); i++)
		ck_assert_msg(strstr(traces, debug[i]) != NULL, "no %s in: %s", debug[i], traces);
}
END_TEST

START_TEST(ep_counter_that_cannot_count_all_of_it_counts_nothing)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *one = NULL, *other = NULL;
	struct fid_ep *ep;
	struct node n;

	node_open(&n, NULL);
	ck_assert_int_eq(fi_endpoint(n.domain, n.info, &ep, NULL), 0);
	ck_assert_int_eq(fi_cntr_open(n.domain, &attr, &one, NULL), 0);
	ck_assert_int_eq(fi_cntr_open(n.domain, &attr, &other, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &one->fid, FI_READ), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &other->fid, FI_READ | FI_WRITE), -FI_EINVAL);
	must_close(&other->fid);
	ck_assert_int_eq(fi_ep_bind(ep, &one->fid, FI_WRITE), 0);
	must_close(&ep->fid);
	must_close(&one->fid);
	node_close(&n);
}
END_TEST

static void *change_flags(void *arg)
{
	const uint64_t silent = FI_TRANSMIT, usual = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	int i;

	for (i = 0; i < 1000; i++) {
		uint64_t flags = i & 1 ? usual : silent;

		ck_assert_int_eq(fi_control(arg, FI_SETOPSFLAG, &flags), 0);
	}
	return NULL;
}

/* All of it is safe for threads; a sanitizer would say if not. */
START_TEST(ep_flags_may_change_while_others_write)
{
	pthread_t thread;
	int i;

	pair_open(&p, PLAIN);
	ck_assert_int_eq(pthread_create(&thread, NULL, change_flags, &p.a.ep->fid), 0);
	for (i = 0; i < 100; i++) {
		pair_write(&p, 0, 8);
		want_ok(&p.a, pair_ctx(&p, 0));
	}
	pthread_join(thread, NULL);
	pair_close(&p);
}
END_TEST

struct setter {
	struct node *n;
	struct fid_ep *ep;
	pthread_barrier_t *start;
	int got[3]; /* of each step */
};

static void *set_up(void *arg)
{
	struct setter *s = arg;

	pthread_barrier_wait(s->start);
	s->got[0] = fi_ep_bind(s->ep, &s->n->av->fid, 0);
	s->got[1] = fi_ep_bind(s->ep, &s->n->cq->fid, FI_TRANSMIT | FI_RECV);
	s->got[2] = fi_enable(s->ep);
	return NULL;
}

/* Two threads set up the same endpoint: of each step, one of them does it. */
START_TEST(ep_is_bound_and_enabled_once_however_many_try)
{
	pthread_barrier_t start;
	struct node n;
	int round, i;

	node_open(&n, PLAIN);
	pthread_barrier_init(&start, NULL, 2);
	for (round = 0; round < 50; round++) {
		struct setter a = { .n = &n, .start = &start }, b;
		pthread_t thread;

		ck_assert_int_eq(fi_endpoint(n.domain, n.info, &a.ep, NULL), 0);
		b = a;
		ck_assert_int_eq(pthread_create(&thread, NULL, set_up, &b), 0);
		set_up(&a);
		pthread_join(thread, NULL);
		for (i = 0; i < 3; i++)
			ck_assert_msg(!a.got[i] != !b.got[i], "step %d: %d and %d", i, a.got[i],
				      b.got[i]);
		must_close(&a.ep->fid);
	}
	pthread_barrier_destroy(&start);
	node_close(&n);
}
END_TEST

START_TEST(ep_port_that_is_taken_is_refused)
{
	struct node_opt opt = { .port = 4711 };
	struct node one, two;

	node_open(&one, &opt);
	ck_assert_uint_eq(node_port(&one), 4711);
	ck_assert_int_eq(node_try_open(&two, &opt), -FI_EADDRINUSE);
	node_close(&one);
	node_open(&two, &opt);
	node_close(&two);
}
END_TEST

/* --- many
 * ------------------------------------------------------------------------------------ */

START_TEST(ep_full_queue_says_again_and_moves_without_the_cq_being_read)
{
	struct node_opt opt = mode_opt(modes[_i]);
	int i, n = 0;

	pair_open(&p, &opt);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	while (!fi_write(p.a.ep, p.src, 8, p.desc, p.to, p.base, p.key, &p))
		n++;
	ck_assert_int_eq(n, MRF_EP_OPS);
	ck_assert_int_ge(MRF_EP_OPS, MRF_LIMIT_TX_SIZE);
	ck_assert_int_ge(MRF_EP_OPS, 2048);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, p.desc, p.to, p.base, p.key, &p), -FI_EAGAIN);
	ck_assert_int_eq(p.a.ep->ops->tx_size_left(p.a.ep), 0);
	/* No more is in flight than the connection takes. */
	ck_assert_uint_lt(fake_queued(), MRF_CONN_RING);
	fake_hold(false);
	want_soon(fake_nlog() == 1 + MRF_EP_OPS);
	for (i = 0; i < n; i++)
		want_ok(&p.a, &p);
	want_none(&p.a);
	ck_assert_int_eq(p.a.ep->ops->tx_size_left(p.a.ep), MRF_EP_OPS);
	pair_close(&p);
}
END_TEST

/* Every one of them may be an atomic operation, which has cells of its own. */
START_TEST(ep_takes_as_many_operations_as_were_asked_for)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .tx_size = _i ? 100 : 5000 };
	int i, n = 0, want = _i ? MRF_EP_OPS : 5000;
	uint64_t one = 1;

	pair_open(&p, &opt);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	while (!fi_atomic(p.a.ep, &one, 1, NULL, p.to, p.base, p.key, FI_UINT64, FI_SUM, &p))
		n++;
	ck_assert_int_eq(n, want);
	ck_assert_int_eq(p.a.ep->ops->tx_size_left(p.a.ep), 0);
	fake_hold(false);
	for (i = 0; i < n; i++)
		want_ok(&p.a, &p);
	ck_assert_int_eq(p.a.ep->ops->tx_size_left(p.a.ep), want);
	pair_close(&p);
}
END_TEST

START_TEST(ep_full_queue_moves_though_the_cq_was_read_in_vain)
{
	struct fi_cq_data_entry entry;
	int i;

	pair_open(&p, PLAIN);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	for (i = 0; i < MRF_EP_OPS; i++)
		pair_write(&p, 0, 8);
	for (i = 0; i < 10; i++)
		ck_assert_int_eq(fi_cq_read(p.a.cq, &entry, 1), -FI_EAGAIN);
	fake_hold(false);
	want_soon(fake_nlog() == 1 + MRF_EP_OPS);
	pair_close(&p);
}
END_TEST

/* As many targets as it takes to fill the endpoint's queue, and one more. */
#define CROWD (MRF_EP_SCQ / (MRF_CONN_RING - 1) + 2)

/*
 * The last one waits for room with nothing of its own in flight. The application takes in what
 * makes room, and with it the event that the agent waits for.
 */
START_TEST(ep_peer_that_waits_for_others_goes_on_when_the_application_has_made_room)
{
	struct fid_ep *ep[CROWD];
	fi_addr_t to[CROWD];
	struct fi_cq_data_entry entry;
	unsigned i, n = 0;

	fake.max_msg_size = 8;
	pair_open(&p, PLAIN);
	for (i = 0; i < CROWD; i++) {
		struct sockaddr_in addr;
		size_t len = sizeof(addr);

		ck_assert_int_eq(node_try_ep(&p.b, PLAIN, &ep[i]), 0);
		ck_assert_int_eq(fi_getname(&ep[i]->fid, &addr, &len), 0);
		to[i] = node_insert_port(&p.a, ntohs(addr.sin_port));
		ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, to[i], p.base, p.key, &p), 0);
		want_ok(&p.a, &p);
	}
	fake_hold(true);
	for (i = 0; i < CROWD - 1; i++)
		ck_assert_int_eq(fi_write(p.a.ep, p.src, 8 * (MRF_CONN_RING - 1), NULL, to[i],
					  p.base, p.key, &p),
				 0);
	ck_assert_uint_eq(node_state(&p.a, to[0]).work_requests, MRF_EP_SCQ);
	fake_deafen(node_ep(&p.a)->scq, true);
	/* Through the agent's kick, too, the queue is full. */
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, to[CROWD - 1], p.base, p.key, &p), 0);
	usleep(20000);
	fake_hold(false);
	for (i = 0; i < 1000 && n < CROWD; i++)
		n += fi_cq_sread(p.a.cq, &entry, 1, NULL, 10) == 1;
	ck_assert_uint_eq(n, CROWD);
	fake_deafen(node_ep(&p.a)->scq, false);
	for (i = 0; i < CROWD; i++)
		must_close(&ep[i]->fid);
	pair_close(&p);
}
END_TEST

/* A queue that cannot move must not keep the agent from its other work. */
START_TEST(ep_stuck_queue_leaves_the_agent_to_others)
{
	struct fid_mr *mr;
	uint8_t mem[64] = { 0 };
	fi_addr_t back;
	int i;

	pair_open(&p, PLAIN);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	for (i = 0; i < MRF_EP_OPS; i++)
		pair_write(&p, 0, 8);
	/* b asks a's agent, and connects to it, though a's own queue is stuck. */
	mr = node_reg(&p.a, mem, sizeof(mem), REMOTE_RW, 5);
	back = node_insert(&p.b, &p.a);
	ck_assert_int_eq(fi_write(p.b.ep, p.src, 0, NULL, back, 0, 5, mem), 0);
	want_ok(&p.b, mem);
	must_close(&mr->fid);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	fake_hold(false);
	pair_close(&p);
}
END_TEST

static void *release_later(void *arg)
{
	(void)arg;
	usleep(50000);
	fake_hold(false);
	return NULL;
}

/* The completion of the first, which nobody is told of, must not use up the wakeup. */
START_TEST(ep_sleeper_wakes_though_another_completion_came_as_it_went_to_sleep)
{
	struct fi_cq_data_entry e;
	pthread_t releaser;
	int64_t begin;

	pair_open(&p, PLAIN);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	ck_assert_int_eq(fi_inject_write(p.a.ep, p.src, 8, p.to, p.base, p.key), 0);
	pair_write(&p, 8, 8);
	fake_run_on_arm();
	ck_assert_int_eq(pthread_create(&releaser, NULL, release_later, NULL), 0);
	begin = mrf_now_ms();
	ck_assert_int_eq(fi_cq_sread(p.a.cq, &e, 1, NULL, 5000), 1);
	ck_assert_int_lt(mrf_now_ms() - begin, 4000);
	pthread_join(releaser, NULL);
	pair_close(&p);
}
END_TEST

START_TEST(ep_one_stuck_peer_does_not_stop_another)
{
	struct node third;
	struct fid_mr *mr;
	uint8_t mem[64] = { 0 };
	fi_addr_t other;
	int i;

	pair_open(&p, NULL);
	node_open(&third, NULL);
	mr = node_reg(&third, mem, sizeof(mem), REMOTE_RW, 5);
	other = node_insert(&p.a, &third);
	/* b's agent does not answer: everything for b waits. */
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	for (i = 0; i < 100; i++)
		pair_write(&p, 0, 8);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 64, NULL, other, 0, 5, mem), 0);
	want_ok(&p.a, mem);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	for (i = 0; i < 100; i++)
		want_ok(&p.a, pair_ctx(&p, 0));
	must_close(&mr->fid);
	pair_close(&p);
	node_close(&third);
}
END_TEST

struct writer {
	pthread_t thread;
	size_t at;
	int count;
};

static void *write_many(void *arg)
{
	struct writer *w = arg;
	int i;

	for (i = 0; i < w->count; i++) {
		ssize_t ret;

		do {
			ret = fi_write(p.a.ep, p.src + w->at, 512, p.desc, p.to, p.base + w->at,
				       p.key, w);
		} while (ret == -FI_EAGAIN);
		ck_assert_int_eq(ret, 0);
	}
	return NULL;
}

START_TEST(ep_two_threads_write_through_one_endpoint)
{
	struct writer w[2] = { { .at = 0, .count = 1500 }, { .at = 8192, .count = 1500 } };
	struct node_opt opt = mode_opt(modes[_i]);
	int i, n[2] = { 0, 0 };

	pair_open(&p, &opt);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL, write_many, &w[i]), 0);
	for (i = 0; i < 3000; i++)
		n[want_ok(&p.a, NULL).op_context == &w[1]]++;
	for (i = 0; i < 2; i++)
		pthread_join(w[i].thread, NULL);
	ck_assert_int_eq(n[0], 1500);
	ck_assert_int_eq(n[1], 1500);
	ck_assert(filled(p.dst, 512, 1));
	ck_assert_int_eq(memcmp(p.dst + 8192, p.src + 8192, 512), 0);
	pair_close(&p);
}
END_TEST

/* --- going
 * --------------------------------------------------------------------------------------
 */

static void close_a(void)
{
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
}

START_TEST(ep_closes_with_operations_in_flight)
{
	pair_open(&p, PLAIN);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	pair_write(&p, 0, 8);
	pair_write(&p, 0, 5000);
	pair_read(&p, 0, PAIR_LEN);
	close_a();
	fake_hold(false);
	want_none(&p.a);
	ck_assert_uint_eq(fake.nlog, 1);
	pair_close(&p);
}
END_TEST

START_TEST(ep_closes_while_operations_wait_for_an_answer)
{
	pair_open(&p, NULL);
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	pair_write(&p, 0, 8);
	pair_read(&p, 0, PAIR_LEN);
	/* Connecting: the request is not even seen. */
	usleep(2000);
	close_a();
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	ck_assert_int_eq(node_try_ep(&p.a, &(struct node_opt){ 0 }, &p.a.ep), 0);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, true);
	/* Connected, but nobody answers. */
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 4711, &p), 0);
	close_a();
	fake_stop(node_agent(&p.b)->cm, node_agent(&p.b)->cq, false);
	want_none(&p.a);
	pair_close(&p);
}
END_TEST

START_TEST(ep_closes_at_any_point_of_connecting)
{
	int i;

	pair_open(&p, NULL);
	for (i = 0; i < 100; i++) {
		pair_write(&p, 0, 5000);
		if (i % 4)
			usleep((useconds_t)i * 5);
		close_a();
		ck_assert_int_eq(node_try_ep(&p.a, &(struct node_opt){ 0 }, &p.a.ep), 0);
	}
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
}
END_TEST

static void *close_target(void *arg)
{
	(void)arg;
	usleep(3000);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	return NULL;
}

static int lost_one(void)
{
	struct fi_cq_err_entry err = { 0 };

	ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
	ck_assert_msg(err.err == FI_ECONNRESET || err.err == FI_ECONNREFUSED, "err %d: %s", err.err,
		      (char *)err.err_data);
	return 1;
}

/* Every operation completes once, whatever becomes of it. */
START_TEST(ep_target_closes_under_load)
{
	struct fi_cq_data_entry e;
	pthread_t closer;
	int begun = 0, done = 0;
	int64_t end;

	pair_open(&p, NULL);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_int_eq(pthread_create(&closer, NULL, close_target, NULL), 0);
	end = mrf_now_ms() + 1000;
	while (mrf_now_ms() < end) {
		ssize_t ret = begun - done < 300 ? 0 : -FI_EAGAIN;

		if (!ret)
			ret = fi_write(p.a.ep, p.src, 64, NULL, p.to, p.base, p.key, &p);
		begun += !ret;
		ret = fi_cq_read(p.a.cq, &e, 1);
		done += ret == 1;
		if (ret != -FI_EAVAIL)
			continue;
		done += lost_one();
		end = 0;
	}
	for (end = mrf_now_ms() + LONG_MS; done < begun && mrf_now_ms() < end;) {
		ssize_t ret = fi_cq_read(p.a.cq, &e, 1);

		done += ret == -FI_EAVAIL ? lost_one() : ret == 1;
	}
	pthread_join(closer, NULL);
	ck_assert_int_eq(done, begun);
	want_none(&p.a);
	pair_close(&p);
}
END_TEST

START_TEST(ep_address_that_was_removed_is_refused_and_its_number_used_again)
{
	struct node third;
	struct fid_mr *mr;
	uint8_t mem[64] = { 0 };

	pair_open(&p, NULL);
	node_open(&third, NULL);
	mr = node_reg(&third, mem, sizeof(mem), REMOTE_RW, PAIR_KEY);
	pair_write(&p, 0, 64);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_int_eq(fi_av_remove(p.a.av, &p.to, 1, 0), 0);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, PAIR_KEY, &p),
			 -FI_EADDRNOTAVAIL);
	/* The connection is not kept for whoever gets the number. */
	want_soon(!fake_live_of(FAKE_CREATE_QP));
	ck_assert_uint_eq(node_insert(&p.a, &third), p.to);
	ck_assert_int_eq(fi_write(p.a.ep, p.src + 1, 8, NULL, p.to, 0, PAIR_KEY, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_int_eq(memcmp(mem, p.src + 1, 8), 0);
	ck_assert_int_eq(memcmp(p.dst, p.src, 8), 0);
	/* Nothing is left of the old one. */
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
	must_close(&mr->fid);
	pair_close(&p);
	node_close(&third);
}
END_TEST

START_TEST(ep_address_removed_under_operations_lets_them_finish)
{
	const int many = _i ? 300 : 3;
	struct node third;
	struct fid_mr *mr;
	uint8_t mem[64] = { 0 };
	int i;

	pair_open(&p, PLAIN);
	node_open(&third, NULL);
	mr = node_reg(&third, mem, sizeof(mem), REMOTE_RW, PAIR_KEY);
	pair_write(&p, 0, 64);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(true);
	for (i = 0; i < many; i++)
		pair_write(&p, 0, 64);
	ck_assert_int_eq(fi_av_remove(p.a.av, &p.to, 1, 0), 0);
	ck_assert_uint_eq(node_insert(&p.a, &third), p.to);
	ck_assert_int_eq(fi_write(p.a.ep, p.src + 1, 8, NULL, p.to, 0, PAIR_KEY, mem), 0);
	fake_hold(false);
	for (i = 0; i < many + 1; i++)
		want_ok(&p.a, NULL);
	ck_assert_uint_eq(fake.nlog, (size_t)many + 2);
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
	must_close(&mr->fid);
	pair_close(&p);
	node_close(&third);
}
END_TEST

/* Those under way end first; others of the endpoint, and other addresses, notice nothing. */
START_TEST(ep_address_that_was_removed_has_no_connection_any_more)
{
	struct node third;
	struct fid_mr *mr;
	uint8_t mem[64] = { 0 };
	fi_addr_t other;
	int i;

	pair_open(&p, PLAIN);
	node_open(&third, NULL);
	mr = node_reg(&third, mem, sizeof(mem), REMOTE_RW, PAIR_KEY);
	other = node_insert(&p.a, &third);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, other, 0, PAIR_KEY, mem), 0);
	want_ok(&p.a, mem);
	pair_write(&p, 0, 64);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_uint_eq(fake_live_of(FAKE_CREATE_QP), 4);
	fake_hold(true);
	for (i = 0; i < 300; i++)
		pair_write(&p, 0, 64);
	ck_assert_int_eq(fi_av_remove(p.a.av, &p.to, 1, 0), 0);
	fake_hold(false);
	for (i = 0; i < 300; i++)
		want_ok(&p.a, pair_ctx(&p, 0));
	want_soon(fake_live_of(FAKE_CREATE_QP) == 2);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, other, 0, PAIR_KEY, mem), 0);
	want_ok(&p.a, mem);
	must_close(&mr->fid);
	pair_close(&p);
	node_close(&third);
}
END_TEST

#define NMODES ((int)MRF_ARRAY_SIZE(modes))

static TCase *tcase_transfer(void)
{
	TCase *tc = tcase_create("transfer");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, ep_write_lands_in_every_mode_and_size, 0, NMODES);
	tcase_add_loop_test(tc, ep_read_brings_every_mode_and_size, 0, NMODES);
	tcase_add_loop_test(tc, ep_provider_keys_need_no_question_and_others_one, 0, NMODES);
	tcase_add_test(tc, ep_vectors_gather_and_scatter);
	tcase_add_loop_test(tc, ep_messages_cross_segments_and_remote_pieces, 0, NMODES);
	tcase_add_test(tc, ep_buffers_of_more_pieces_than_a_work_request_takes);
	tcase_add_test(tc, ep_messages_over_8_mib_are_split);
	tcase_add_test(tc, ep_injected_bytes_are_taken_before_the_call_returns);
	tcase_add_test(tc, ep_immediate_data_reaches_the_target);
	tcase_add_test(tc, ep_split_message_carries_its_immediate_data_last);
	tcase_add_test(tc, ep_accesses_of_no_bytes_complete_without_touching_memory);
	tcase_add_test(tc, ep_access_of_no_bytes_sees_that_the_region_was_closed);
	tcase_add_loop_test(tc, ep_fenced_write_sends_what_the_read_before_it_brought, 0, NMODES);
	tcase_add_test(tc, ep_fenced_operation_waits_for_those_before_it);
	tcase_add_loop_test(tc, ep_counters_count_each_kind_and_injected_ones_too, 0, 2);
	tcase_add_test(tc, ep_selective_completion_reports_what_was_asked_for_and_errors);
	tcase_add_test(tc, ep_default_flags_apply_to_plain_calls);
	tcase_add_test(tc, ep_default_flags_that_change_apply_to_the_next_call);
	tcase_add_test(tc, ep_reaches_its_own_memory);
	tcase_add_loop_test(tc, ep_local_mode_wants_the_descriptor_of_an_open_region, NMODES - 5,
			    NMODES);
	tcase_add_test(tc, ep_ignores_any_descriptor_where_none_is_needed);
	tcase_add_test(tc, ep_bad_arguments_are_refused_by_the_call);
	tcase_add_test(tc, ep_ends_a_look_at_a_queue_that_never_gets_empty);
	tcase_add_test(tc, ep_is_not_opened_without_a_place_for_it);
	tcase_add_test(tc, ep_is_not_usable_before_it_is_enabled);
	tcase_add_test(tc, ep_directions_of_messages_alone_ask_for_nothing);
	tcase_add_test(tc, ep_counter_can_be_bound_when_it_is_enabled_and_nothing_is_under_way);
	tcase_add_test(tc, ep_counter_that_cannot_count_all_of_it_counts_nothing);
	tcase_add_test(tc, ep_traces_connections_at_info_and_single_things_at_debug);
	tcase_add_test(tc, ep_flags_may_change_while_others_write);
	tcase_add_test(tc, ep_is_bound_and_enabled_once_however_many_try);
	tcase_add_test(tc, ep_port_that_is_taken_is_refused);
	return tc;
}

static TCase *tcase_many(void)
{
	TCase *tc = tcase_create("many");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, ep_full_queue_says_again_and_moves_without_the_cq_being_read, 0,
			    NMODES);
	tcase_add_test(tc, ep_full_queue_moves_though_the_cq_was_read_in_vain);
	tcase_add_loop_test(tc, ep_takes_as_many_operations_as_were_asked_for, 0, 2);
	tcase_add_test(tc,
		       ep_peer_that_waits_for_others_goes_on_when_the_application_has_made_room);
	tcase_add_test(tc, ep_stuck_queue_leaves_the_agent_to_others);
	tcase_add_test(tc, ep_sleeper_wakes_though_another_completion_came_as_it_went_to_sleep);
	tcase_add_test(tc, ep_one_stuck_peer_does_not_stop_another);
	tcase_add_loop_test(tc, ep_two_threads_write_through_one_endpoint, NMODES - 2, NMODES);
	return tc;
}

static TCase *tcase_going(void)
{
	TCase *tc = tcase_create("going");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, ep_closes_with_operations_in_flight);
	tcase_add_test(tc, ep_closes_while_operations_wait_for_an_answer);
	tcase_add_test(tc, ep_closes_at_any_point_of_connecting);
	tcase_add_test(tc, ep_target_closes_under_load);
	tcase_add_test(tc, ep_address_that_was_removed_is_refused_and_its_number_used_again);
	tcase_add_loop_test(tc, ep_address_removed_under_operations_lets_them_finish, 0, 2);
	tcase_add_test(tc, ep_address_that_was_removed_has_no_connection_any_more);
	return tc;
}

UNIT_MAIN("ep", tcase_transfer, tcase_many, tcase_going)
