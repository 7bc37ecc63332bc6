/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers from and to memory of devices: chunk by chunk by way of registered memory of the host
 * (buf/stage.h), while connections break, regions are closed, and copies fail.
 */
#include <rdma/fi_ext_mrfab.h>
#include "buf/local.h"
#include "buf/stage.h"
#include "device_fixture.h"
#include "proto/proto.h"

#define LEN ((MRF_STAGE_CHUNKS + 1) * MRF_STAGE_CHUNK + 1000) /* longer than a ring */
#define FAR 5

static uint8_t *dev; /* LEN bytes of device 0, */
static struct fid_mr *dev_mr;
static void *desc;
static uint8_t *far; /* and as many of the second node */
static struct fid_mr *far_mr;
static uint8_t want[LEN], got[LEN];

int __real_mrf_mr_device_get(const struct mrf_mr_space *space, const void *desc, void *to,
			     uint64_t addr, uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_get(const struct mrf_mr_space *space, const void *desc, void *to,
			     uint64_t addr, uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_get(const struct mrf_mr_space *space, const void *desc_, void *to,
			     uint64_t addr, uint64_t len, struct mrf_hmem_why *why)
{
	pass();
	return __real_mrf_mr_device_get(space, desc_, to, addr, len, why);
}

int __real_mrf_mr_device_put(const struct mrf_mr_space *space, const void *desc, uint64_t addr,
			     const void *from, uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_put(const struct mrf_mr_space *space, const void *desc, uint64_t addr,
			     const void *from, uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_put(const struct mrf_mr_space *space, const void *desc_, uint64_t addr,
			     const void *from, uint64_t len, struct mrf_hmem_why *why)
{
	pass();
	return __real_mrf_mr_device_put(space, desc_, addr, from, len, why);
}

static const int modes[] = { 0, FI_MR_ALLOCATED, FI_MR_ALLOCATED | FI_MR_LOCAL,
			     FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY };
#define MODES ((int)(sizeof(modes) / sizeof(modes[0])))

static uint64_t key, base;

static void open_all(int i, int mode)
{
	open_pair(i, mode, CAPS);
	dev = rig->make(RT_DEVICE, 0, LEN);
	dev_mr = reg_device(&p.a, dev, LEN, FI_READ | FI_WRITE, 1000);
	desc = fi_mr_desc(dev_mr);
	far = pages(LEN);
	far_mr = node_reg(&p.b, far, LEN, REMOTE_RW, FAR);
	if (mode & FI_MR_MMU_NOTIFY)
		ck_assert_int_eq(fi_mr_refresh(far_mr, NULL, 0, 0), 0);
	key = fi_mr_key(far_mr);
	base = mode & FI_MR_VIRT_ADDR ? (uintptr_t)far : 0;
	fill(want, LEN, 7);
}

static void close_all(void)
{
	if (dev_mr)
		must_close(&dev_mr->fid);
	if (far_mr)
		must_close(&far_mr->fid);
	if (dev)
		rig->unmake(RT_DEVICE, dev);
	pair_close(&p);
}

static ssize_t write_dev(size_t at, size_t len)
{
	return fi_write(p.a.ep, dev + at, len, desc, p.to, base + at, key, &p);
}

static ssize_t read_dev(size_t at, size_t len)
{
	return fi_read(p.a.ep, dev + at, len, desc, p.to, base + at, key, &p);
}

/* --- bytes ---------------------------------------------------------------------------------- */

static const size_t lens[] = { 1,
			       7,
			       64,
			       65,
			       4096,
			       16384,
			       16385,
			       MRF_STAGE_CHUNK,
			       MRF_STAGE_CHUNK + 1,
			       MRF_STAGE_RING,
			       MRF_STAGE_RING + 3,
			       LEN - 13 };

static void there_and_back(size_t len)
{
	memset(far, 0, LEN);
	rig->put(dev + 13, want, len);
	ck_assert_int_eq(write_dev(13, len), 0);
	want_ok(&p.a, &p);
	ck_assert_msg(!memcmp(far + 13, want, len), "%zu bytes were written", len);
	memset(got, 0, len);
	rig->put(dev + 13, got, len);
	ck_assert_int_eq(read_dev(13, len), 0);
	want_ok(&p.a, &p);
	rig->get(got, dev + 13, len);
	ck_assert_msg(!memcmp(got, want, len), "%zu bytes were read", len);
}

START_TEST(staged_bytes_are_written_and_read)
{
	for (int i = 0; i < RIGS; i++) {
		open_all(i, modes[_i]);
		for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++)
			there_and_back(lens[k]);
		want_soon(is_idle());
		close_all();
	}
}
END_TEST

/* Memory of a device, of the host with a descriptor, and without one where that is allowed. */
START_TEST(staged_buffers_of_all_kinds_make_one_transfer)
{
	bool local = modes[_i] & FI_MR_LOCAL;
	uint8_t *host, out[3000];
	struct fid_mr *host_mr;
	struct iovec iov[3];
	void *descs[3];

	open_all(0, modes[_i]);
	host = pages(2 * PAGE);
	host_mr = node_reg(&p.a, host, 2 * PAGE, FI_READ | FI_WRITE, 8);
	iov[0] = (struct iovec){ host + 5, 1000 };
	iov[1] = (struct iovec){ dev + 3, 1000 };
	iov[2] = (struct iovec){ host + PAGE, 1000 };
	descs[0] = fi_mr_desc(host_mr);
	descs[1] = desc;
	descs[2] = local ? descs[0] : NULL;
	memcpy(iov[0].iov_base, want, 1000);
	rig->put(iov[1].iov_base, want + 1000, 1000);
	memcpy(iov[2].iov_base, want + 2000, 1000);
	ck_assert_int_eq(fi_writev(p.a.ep, iov, descs, 3, p.to, base, key, &p), 0);
	want_ok(&p.a, &p);
	ck_assert(!memcmp(far, want, 3000));
	fill(far, 3000, 9);
	ck_assert_int_eq(fi_readv(p.a.ep, iov, descs, 3, p.to, base, key, &p), 0);
	want_ok(&p.a, &p);
	memcpy(out, iov[0].iov_base, 1000);
	rig->get(out + 1000, iov[1].iov_base, 1000);
	memcpy(out + 2000, iov[2].iov_base, 1000);
	ck_assert(filled(out, 3000, 9));
	must_close(&host_mr->fid);
	close_all();
}
END_TEST

/* The buffer may change when the call has returned. */
START_TEST(staged_bytes_are_injected)
{
	struct iovec iov;
	struct fi_rma_iov rma;
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .rma_iov = &rma, .rma_iov_count = 1
	};

	open_all(_i, FI_MR_ALLOCATED);
	iov = (struct iovec){ dev + 1, 50 };
	rma = (struct fi_rma_iov){ .addr = base, .len = 50, .key = key };
	msg.addr = p.to;
	msg.context = &p;
	rig->put(dev + 1, want, 50);
	ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, FI_INJECT), 0);
	rig->put(dev + 1, want + 100, 50);
	want_ok(&p.a, &p);
	ck_assert(!memcmp(far, want, 50));
	close_all();
}
END_TEST

/* What is kept of buffers is kept of the host's only. */
START_TEST(staged_memory_is_not_kept_in_the_cache)
{
	const struct fi_mrfab_cache_stats none = { 0 };
	struct fi_mrfab_cache_stats stats;
	struct fi_ops_mrfab_cache *ops;

	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(LEN - 13);
	ck_assert_int_eq(fi_open_ops(&p.a.domain->fid, FI_MRFAB_CACHE_OPS, 0, (void **)&ops, NULL),
			 0);
	ck_assert_int_eq(ops->stats(p.a.domain, &stats), 0);
	ck_assert(!memcmp(&stats, &none, sizeof(stats)));
	close_all();
}
END_TEST

/* --- what is not right ------------------------------------------------------------------------ */

START_TEST(staged_memory_needs_its_descriptor)
{
	uint64_t value = 1;

	open_all(_i, FI_MR_ALLOCATED);
	ck_assert_int_eq(fi_write(p.a.ep, dev, 8, NULL, p.to, base, key, &p), -FI_EINVAL);
	ck_assert_int_eq(fi_read(p.a.ep, dev, 8, NULL, p.to, base, key, &p), -FI_EINVAL);
	ck_assert_int_eq(fi_read(p.a.ep, dev, LEN, NULL, p.to, base, key, &p), -FI_EINVAL);
	ck_assert_int_eq(fi_inject_write(p.a.ep, dev, 8, p.to, base, key), -FI_EINVAL);
	ck_assert_int_eq(fi_write(p.a.ep, dev, 8, &p, p.to, base, key, &p), -FI_EINVAL);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, &p, p.to, base, key, &p), -FI_EINVAL);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, desc, p.to, base, key, &p), -FI_EINVAL);
	ck_assert_int_eq(fi_atomic(p.a.ep, dev, 1, NULL, p.to, base, key, FI_UINT64, FI_SUM, &p),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, &value, 1, NULL, dev, NULL, p.to, base, key,
					 FI_UINT64, FI_SUM, &p),
			 -FI_EINVAL);
	want_none(&p.a);
	there_and_back(100);
	close_all();
}
END_TEST

/* Its pages must not be pinned; what the call itself copies is right. */
START_TEST(staged_memory_that_is_managed_needs_a_descriptor_too)
{
	uint8_t *shared;

	open_all(_i, FI_MR_ALLOCATED);
	if (rig->managed) {
		shared = rig->make(RT_MANAGED, 0, LEN);
		memset(shared, 0x77, LEN);
		ck_assert_int_eq(fi_write(p.a.ep, shared, 8, NULL, p.to, base, key, &p),
				 -FI_EINVAL);
		ck_assert_int_eq(fi_read(p.a.ep, shared, LEN, NULL, p.to, base, key, &p),
				 -FI_EINVAL);
		want_none(&p.a);
		ck_assert_int_eq(fi_inject_write(p.a.ep, shared, 8, p.to, base, key), 0);
		/* What follows it has ended: so has it. */
		pair_read(&p, 0, 8);
		want_ok(&p.a, NULL);
		there_and_back(100);
		rig->unmake(RT_MANAGED, shared);
	}
	close_all();
}
END_TEST

START_TEST(staged_memory_is_for_endpoints_of_domains_that_were_opened_for_it)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .caps = FI_RMA };
	struct fid_ep *ep;

	pair_open(&p, &opt);
	p.a.info->caps |= FI_HMEM;
	ck_assert_int_eq(fi_endpoint(p.a.domain, p.a.info, &ep, NULL), -FI_EINVAL);
	pair_close(&p);
}
END_TEST

START_TEST(staged_memory_has_the_rights_of_its_region)
{
	const struct iovec iov = { NULL, 100 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = FI_WRITE };
	struct iovec there;
	struct fid_mr *mr;

	open_all(_i, FI_MR_ALLOCATED);
	there = (struct iovec){ dev, 100 };
	attr.mr_iov = &there;
	attr.iface = rig->iface;
	ck_assert_int_eq(fi_mr_regattr(p.a.domain, &attr, 0, &mr), 0);
	ck_assert_int_eq(fi_read(p.a.ep, dev, 8, fi_mr_desc(mr), p.to, base, key, &p), -FI_EACCES);
	ck_assert_int_eq(fi_write(p.a.ep, dev, 101, fi_mr_desc(mr), p.to, base, key, &p),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_write(p.a.ep, dev, 100, fi_mr_desc(mr), p.to, base, key, &p), 0);
	want_ok(&p.a, &p);
	must_close(&mr->fid);
	close_all();
}
END_TEST

/* Memory that was freed under its region: by the call, or in the completion. */
START_TEST(staged_memory_that_was_freed_is_an_error)
{
	open_all(_i, FI_MR_ALLOCATED);
	rig->unmake(RT_DEVICE, dev);
	ck_assert_int_eq(write_dev(0, LEN), -FI_EFAULT);
	ck_assert_int_eq(write_dev(0, 8), -FI_EFAULT);
	ck_assert_int_eq(read_dev(0, 8), 0);
	want_err(&p.a, &p, FI_EFAULT, NULL);
	ck_assert_int_eq(read_dev(0, LEN), 0);
	want_err(&p.a, &p, FI_EFAULT, NULL);
	want_soon(is_idle());
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	dev = NULL;
	close_all();
}
END_TEST

/*
 * Every call that moves bytes fails once. How many there are differs: a chunk ends where room does.
 */
static void fail_each(bool write)
{
	const char *call = write ? rig->get_call : rig->put_call;
	unsigned nth = 0, left;
	ssize_t ret;

	do {
		control.fail_next(call, ++nth, rig->lost);
		ret = write ? write_dev(0, LEN) : read_dev(0, LEN);
		ck_assert_int_eq(ret, ret ? -FI_EIO : 0);
		if (!ret && !ends_well())
			want_err(&p.a, &p, FI_EIO, NULL);
		else if (!ret)
			ck_assert_uint_ge(control.fails_left(), 1);
		left = control.fails_left();
		control.fail_next(call, 0, 0);
	} while (!left);
	ck_assert_uint_ge(nth, 5);
}

START_TEST(staged_copies_that_fail_are_told)
{
	open_all(_i, FI_MR_ALLOCATED);
	fail_each(true);
	fail_each(false);
	want_soon(is_idle());
	there_and_back(LEN - 13);
	close_all();
}
END_TEST

/* --- rings ------------------------------------------------------------------------------------ */

START_TEST(staged_transfers_wait_for_rings)
{
	unsigned i, begun = 0, done = 0;

	open_all(_i, FI_MR_ALLOCATED);
	rig->put(dev, want, LEN);
	fake_hold(true);
	while (!write_dev(0, LEN))
		begun++;
	ck_assert_uint_eq(begun, MRF_STAGE_RINGS);
	ck_assert_int_eq(write_dev(0, LEN), -FI_EAGAIN);
	/* What is small needs none. */
	ck_assert_int_eq(write_dev(0, 100), 0);
	fake_hold(false);
	for (i = 0; i <= begun; i++)
		want_ok(&p.a, &p);
	for (; done < 2; done++) {
		ck_assert_int_eq(write_dev(0, LEN), 0);
		want_ok(&p.a, &p);
	}
	ck_assert(!memcmp(far, want, LEN));
	close_all();
}
END_TEST

/* Nothing can be registered. */
START_TEST(staged_transfers_without_a_ring_are_refused)
{
	open_all(_i, FI_MR_ALLOCATED);
	fake_fail_always(FAKE_VMR_REG, FI_ENOMEM);
	ck_assert_int_eq(write_dev(0, LEN), -FI_ENOMEM);
	fake_fail_always(FAKE_VMR_REG, 0);
	there_and_back(LEN - 13);
	close_all();
}
END_TEST

/*
 * --- while others do something ------------------------------------------------------------------
 */

/* The next chunks are copied while those before them are in flight. */
START_TEST(staged_chunks_are_copied_while_others_are_in_flight)
{
	open_all(_i, FI_MR_ALLOCATED);
	rig->put(dev, want, LEN);
	there_and_back(100);
	rig->put(dev, want, LEN);
	hold(0);
	fake_hold(true);
	ck_assert_int_eq(write_dev(0, LEN), 0);
	/* The first was copied by the call. */
	want_soon(atomic_load(&copies) == MRF_STAGE_CHUNKS);
	want_soon(fake_queued() == MRF_STAGE_CHUNKS);
	ck_assert_uint_eq(atomic_load(&copies), MRF_STAGE_CHUNKS);
	fake_hold(false);
	want_ok(&p.a, &p);
	ck_assert(!memcmp(far, want, LEN));
	close_all();
}
END_TEST

/* What is copied is posted while the next chunk is being copied. */
START_TEST(staged_chunks_are_posted_while_the_next_is_copied)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	rig->put(dev, want, LEN);
	hold(3);
	fake_hold(true);
	ck_assert_int_eq(write_dev(0, LEN), 0);
	want_soon(is_inside());
	want_soon(fake_queued() == 2);
	fake_hold(false);
	let_go();
	want_ok(&p.a, &p);
	ck_assert(!memcmp(far, want, LEN));
	close_all();
}
END_TEST

START_TEST(staged_transfers_survive_a_connection_that_breaks)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	rig->put(dev, want, LEN);
	for (unsigned nth = 1; nth <= 6; nth++) {
		memset(far, 0, LEN);
		fake_break(nth, 1, MRF_WC_REFUSED, false);
		ck_assert_int_eq(write_dev(0, LEN), 0);
		want_ok(&p.a, &p);
		ck_assert_msg(!memcmp(far, want, LEN), "access %u", nth);
		memset(got, 0, LEN);
		rig->put(dev, got, LEN);
		fake_break(nth, 1, MRF_WC_REFUSED, false);
		ck_assert_int_eq(read_dev(0, LEN), 0);
		want_ok(&p.a, &p);
		rig->get(got, dev, LEN);
		ck_assert_msg(!memcmp(got, want, LEN), "access %u", nth);
	}
	close_all();
}
END_TEST

/* The peer goes while a thread copies: the operation ends once, and not before it is back. */
START_TEST(staged_transfer_does_not_end_while_its_chunk_is_copied)
{
	size_t done;

	open_all(0, FI_MR_ALLOCATED);
	there_and_back(100);
	done = fake_nlog();
	hold((unsigned)_i);
	ck_assert_int_eq(write_dev(0, LEN), 0);
	want_soon(is_inside());
	/* What was copied before has been written: nothing is in doubt. */
	want_soon(fake_nlog() == done + (size_t)_i - 1);
	want_soon(is_inside() && !node_state(&p.a, 0).work_requests);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	usleep(50000);
	ck_assert(is_inside());
	let_go();
	want_err(&p.a, &p, FI_ECONNREFUSED, NULL);
	want_soon(is_idle());
	close_all();
}
END_TEST

START_TEST(staged_transfer_ends_when_its_region_is_closed)
{
	open_all(0, FI_MR_ALLOCATED);
	there_and_back(100);
	rig->put(dev, want, LEN);
	/* The second is copied by another thread; closing waits for that. */
	hold(2);
	ck_assert_int_eq(_i ? write_dev(0, LEN) : read_dev(0, LEN), 0);
	want_soon(is_inside());
	let_go();
	must_close(&dev_mr->fid);
	dev_mr = NULL;
	rig->unmake(RT_DEVICE, dev);
	dev = NULL;
	want_err(&p.a, &p, FI_ECANCELED, NULL);
	want_soon(is_idle());
	close_all();
}
END_TEST

START_TEST(staged_transfers_are_let_go_when_the_endpoint_closes)
{
	open_all(_i, FI_MR_ALLOCATED);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(i % 2 ? write_dev(0, LEN / 2) : read_dev(LEN / 2, LEN / 2), 0);
	must_close(&p.a.ep->fid);
	p.a.ep = NULL;
	close_all();
}
END_TEST

/* Writes and reads of the same bytes take turns in the order of their calls. */
START_TEST(staged_transfers_keep_the_order_of_their_peer)
{
	open_all(_i, FI_MR_ALLOCATED);
	rig->put(dev, want, LEN);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(write_dev(0, LEN), 0);
		ck_assert_int_eq(fi_inject_write(p.a.ep, "after", 5, p.to, base, key), 0);
		ck_assert_int_eq(read_dev(0, 100), 0);
		want_ok(&p.a, &p);
		want_ok(&p.a, &p);
		rig->get(got, dev, LEN);
		ck_assert(!memcmp(got, "after", 5) && !memcmp(got + 5, want + 5, LEN - 5));
		ck_assert(!memcmp(far + 5, want + 5, LEN - 5));
	}
	close_all();
}
END_TEST

/* Of what comes from a device, more may be under way than of other bytes that arrive. */
START_TEST(staged_bytes_of_a_device_of_the_peer_use_the_whole_ring)
{
	struct mrf_local_rest rest = { .arrives = true,
				       .size = MRF_STAGE_RING,
				       .total = 2 * MRF_STAGE_RING,
				       .upto = MRF_STAGE_UNDER_WAY };
	struct mrf_local local = { .kind = MRF_LOCAL_STAGED, .rest = &rest };

	mrf_stage_widen(&local);
	ck_assert_uint_eq(rest.upto, MRF_STAGE_RING);
	mrf_stage_end(&local, MRF_STAGE_CHUNK);
	ck_assert_uint_eq(rest.upto, MRF_STAGE_RING + MRF_STAGE_CHUNK);
	rest = (struct mrf_local_rest){ .size = MRF_STAGE_RING, .total = MRF_STAGE_RING };
	mrf_stage_widen(&local);
	ck_assert_uint_eq(rest.upto, 0);
}
END_TEST

/* --- writes behind others ---------------------------------------------------------------------- */

/* A long write whose ring is full, with nothing acknowledged: what comes behind it waits. */
static void write_and_stop(void)
{
	rig->put(dev, want, LEN);
	memset(far, 0, LEN);
	hold(0);
	fake_hold(true);
	ck_assert_int_eq(write_dev(0, LEN), 0);
	want_soon(atomic_load(&copies) == MRF_STAGE_CHUNKS);
	want_soon(fake_queued() == MRF_STAGE_CHUNKS);
}

static ssize_t write_chunks(size_t at, size_t count, uint64_t flags, void *context)
{
	const struct iovec iov = { dev + at * MRF_STAGE_CHUNK, count * MRF_STAGE_CHUNK };
	const struct fi_rma_iov rma = { .addr = base + at * MRF_STAGE_CHUNK,
					.len = count * MRF_STAGE_CHUNK,
					.key = key };
	const struct fi_msg_rma msg = { .msg_iov = &iov,
					.desc = &desc,
					.iov_count = 1,
					.addr = p.to,
					.rma_iov = &rma,
					.rma_iov_count = 1,
					.context = context };

	return fi_writemsg(p.a.ep, &msg, flags | FI_COMPLETION);
}

static int second, third;

/* What has to be copied is, and nothing more than that. */
static void want_copies(unsigned n)
{
	want_soon(atomic_load(&copies) == n);
	usleep(20000);
	ck_assert_uint_eq(atomic_load(&copies), n);
}

START_TEST(staged_writes_are_copied_before_their_turn)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	write_and_stop();
	ck_assert_int_eq(write_chunks(1, 2, 0, &second), 0);
	want_copies(MRF_STAGE_CHUNKS + 2);
	ck_assert_int_eq(write_chunks(3, 1, 0, &third), 0);
	want_copies(MRF_STAGE_CHUNKS + 3);
	/* Nothing of them was posted. */
	ck_assert_uint_eq(fake_queued(), MRF_STAGE_CHUNKS);
	fake_hold(false);
	want_ok(&p.a, &p);
	want_ok(&p.a, &second);
	want_ok(&p.a, &third);
	ck_assert(!memcmp(far, want, LEN));
	close_all();
}
END_TEST

/* The call does not wait for the device, which is busy. */
START_TEST(staged_writes_behind_others_are_not_copied_by_the_call)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	write_and_stop();
	hold(1);
	ck_assert_int_eq(write_chunks(1, 1, 0, &second), 0);
	want_soon(is_inside());
	let_go();
	fake_hold(false);
	want_ok(&p.a, &p);
	want_ok(&p.a, &second);
	close_all();
}
END_TEST

/* What comes before it may change its bytes, if it is fenced; and nothing is copied behind it. */
START_TEST(staged_writes_are_not_copied_before_a_fence)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	write_and_stop();
	ck_assert_int_eq(write_chunks(1, 1, FI_FENCE, &second), 0);
	ck_assert_int_eq(write_chunks(2, 1, 0, &third), 0);
	want_copies(MRF_STAGE_CHUNKS);
	fake_hold(false);
	want_ok(&p.a, &p);
	want_ok(&p.a, &second);
	want_ok(&p.a, &third);
	close_all();
}
END_TEST

/* n operations end; returns how many of them fail, and puts the context of the last of these in *who. */
static int want_ends(int n, void **who)
{
	int failed = 0;

	while (n--) {
		struct fi_cq_err_entry err = { 0 };

		if (ends_well())
			continue;
		ck_assert_int_eq(fi_cq_readerr(p.a.cq, &err, 0), 1);
		*who = err.op_context;
		failed++;
	}
	return failed;
}

/* A copy that fails before its turn is tried again; one that fails then is told. */
START_TEST(staged_writes_that_cannot_be_copied_are_told_in_their_turn)
{
	void *who = NULL;

	open_all(_i / 2, FI_MR_ALLOCATED);
	there_and_back(100);
	write_and_stop();
	control.fail_next(rig->get_call, 1, rig->lost);
	ck_assert_int_eq(write_chunks(1, 1, 0, &second), 0);
	ck_assert_int_eq(write_chunks(2, 1, 0, &third), 0);
	want_copies(MRF_STAGE_CHUNKS + 1);
	/* Two chunks of the first are left. */
	control.fail_next(rig->get_call, _i % 2 ? 3 : 0, rig->lost);
	fake_hold(false);
	ck_assert_int_eq(want_ends(3, &who), _i % 2);
	ck_assert_ptr_eq(who, _i % 2 ? &second : NULL);
	want_soon(is_idle());
	close_all();
}
END_TEST

START_TEST(staged_writes_are_not_canceled_while_they_are_copied)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	write_and_stop();
	hold(1);
	ck_assert_int_eq(write_chunks(1, 2, 0, &second), 0);
	ck_assert_int_eq(write_chunks(3, 1, 0, &third), 0);
	want_soon(is_inside());
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &second), -FI_ENOENT);
	ck_assert_int_eq(fi_cancel(&p.a.ep->fid, &third), 0);
	want_err(&p.a, &third, FI_ECANCELED, NULL);
	let_go();
	fake_hold(false);
	want_ok(&p.a, &p);
	want_ok(&p.a, &second);
	want_soon(is_idle());
	close_all();
}
END_TEST

START_TEST(staged_writes_behind_others_survive_a_connection_that_breaks)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	rig->put(dev, want, LEN);
	for (unsigned nth = 1; nth <= 5; nth++) {
		memset(far, 0, LEN);
		fake_break(nth, 1, MRF_WC_REFUSED, false);
		ck_assert_int_eq(write_chunks(0, 2, 0, &p), 0);
		ck_assert_int_eq(write_chunks(2, 1, 0, &second), 0);
		ck_assert_int_eq(write_chunks(3, 2, 0, &third), 0);
		want_ok(&p.a, &p);
		want_ok(&p.a, &second);
		want_ok(&p.a, &third);
		ck_assert_msg(!memcmp(far, want, 5 * MRF_STAGE_CHUNK), "access %u", nth);
	}
	close_all();
}
END_TEST

static atomic_uint nkept;

/* The first of them. */
static enum fake_fate keep_answer(uint8_t *msg, size_t *len, bool from_target)
{
	if (!from_target || mrf_msg_type(msg, *len) != MRF_MSG_ANSWER ||
	    atomic_fetch_add(&nkept, 1))
		return FAKE_DELIVER;
	return FAKE_KEEP;
}

/*
 * The first is refused, and waits for an answer; the second is to be posted again, and the copy of its
 * next chunk fails: it goes on when its turn comes.
 */
START_TEST(staged_writes_that_are_posted_again_survive_a_copy_that_fails)
{
	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	rig->put(dev, want, LEN);
	hold(3);
	fake_hold(true);
	ck_assert_int_eq(write_chunks(0, 1, 0, &p), 0);
	ck_assert_int_eq(write_chunks(1, 3, 0, &second), 0);
	want_soon(is_inside());
	want_soon(fake_queued() == 2);
	fake_break(1, 1, MRF_WC_REFUSED, false);
	atomic_store(&nkept, 0);
	fake.on_send = keep_answer;
	fake_hold(false);
	want_soon(atomic_load(&nkept));
	control.fail_next(rig->get_call, 1, rig->lost);
	let_go();
	want_soon(!control.fails_left());
	usleep(20000);
	fake.on_send = NULL;
	fake_deliver();
	want_ok(&p.a, &p);
	want_ok(&p.a, &second);
	ck_assert(!memcmp(far, want, 4 * MRF_STAGE_CHUNK));
	close_all();
}
END_TEST

/* The peer goes while the second is copied: each of them fails once. */
START_TEST(staged_writes_behind_others_fail_with_their_peer)
{
	void *who;

	open_all(_i, FI_MR_ALLOCATED);
	there_and_back(100);
	write_and_stop();
	hold(1);
	ck_assert_int_eq(write_chunks(1, 2, 0, &second), 0);
	want_soon(is_inside());
	fake_hold(false);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	usleep(50000);
	let_go();
	ck_assert_int_eq(want_ends(2, &who), 2);
	want_soon(is_idle());
	close_all();
}
END_TEST

/* A fenced write sends what the read before it brings. */
START_TEST(staged_bytes_are_fetched_when_the_turn_comes)
{
	struct iovec iov;
	struct fi_rma_iov rma = { .len = 1, .key = key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &desc,
				  .iov_count = 1,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = &p };

	for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
		size_t len = lens[k] / 2 + 1;

		open_all(_i, FI_MR_ALLOCATED);
		memcpy(far, want, len);
		iov = (struct iovec){ dev, len };
		rma = (struct fi_rma_iov){ .addr = base + LEN / 2, .len = len, .key = key };
		msg.addr = p.to;
		ck_assert_int_eq(read_dev(0, len), 0);
		ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, FI_FENCE | FI_COMPLETION), 0);
		want_ok(&p.a, &p);
		want_ok(&p.a, &p);
		ck_assert_msg(!memcmp(far + LEN / 2, want, len), "%zu bytes", len);
		close_all();
	}
}
END_TEST

/*
 * --- atomic operations
 * ----------------------------------------------------------------------------
 */

static uint64_t word_at(const void *addr)
{
	uint64_t word;

	memcpy(&word, addr, sizeof(word));
	return word;
}

static uint64_t device_word(size_t at)
{
	uint64_t word;

	rig->get(&word, dev + at, sizeof(word));
	return word;
}

static void atomics(enum fi_datatype type, enum fi_op op)
{
	const uint64_t words[] = { 5, 0, 0, 3 }; /* operand, comparand, result */

	memset(far, 0, 64);
	rig->put(dev, words, sizeof(words));
	ck_assert_int_eq(fi_atomic(p.a.ep, dev, 1, desc, p.to, base, key, type, FI_SUM, &p), 0);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(word_at(far), 5);
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, dev + 24, 1, desc, dev + 16, desc, p.to, base, key,
					 type, op, &p),
			 0);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(device_word(16), 5);
	ck_assert_uint_eq(word_at(far), op == FI_SUM ? 8 : 15);
	rig->put(dev + 8, far, 8);
	ck_assert_int_eq(fi_compare_atomic(p.a.ep, dev + 24, 1, desc, dev + 8, desc, dev + 16, desc,
					   p.to, base, key, type, FI_CSWAP, &p),
			 0);
	want_ok(&p.a, &p);
	ck_assert_uint_eq(device_word(16), op == FI_SUM ? 8 : 15);
	ck_assert_uint_eq(word_at(far), 3);
}

START_TEST(staged_values_and_results)
{
	for (int i = 0; i < RIGS; i++) {
		open_all(i, modes[_i]);
		atomics(FI_UINT64, FI_SUM);
		atomics(FI_UINT64, FI_PROD);
		atomics(FI_UINT32, FI_SUM);
		want_soon(is_idle());
		close_all();
	}
}
END_TEST

START_TEST(staged_results_that_cannot_be_stored_are_an_error)
{
	uint64_t one = 1, *host;

	open_all(_i, FI_MR_ALLOCATED);
	host = pages(PAGE);
	*host = one;
	control.fail_next(rig->put_call, 1, rig->lost);
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, host, 1, NULL, dev, desc, p.to, base, key,
					 FI_UINT64, FI_SUM, &p),
			 0);
	want_err(&p.a, &p, FI_EFAULT, NULL);
	ck_assert_uint_eq(word_at(far), 1);
	want_soon(is_idle());
	close_all();
}
END_TEST

/* Who reads the queue does not wait for the device, and can have more transferred. */
START_TEST(staged_results_of_several_are_stored_by_another_thread)
{
	open_all(_i, FI_MR_ALLOCATED);
	memcpy(far, want, LEN);
	hold(1);
	ck_assert_int_eq(read_dev(0, MRF_STAGE_CHUNK), 0);
	ck_assert_int_eq(read_dev(MRF_STAGE_CHUNK, MRF_STAGE_CHUNK), 0);
	want_soon(is_inside());
	nothing_completed();
	ck_assert_int_eq(read_dev(2 * MRF_STAGE_CHUNK, MRF_STAGE_CHUNK), 0);
	nothing_completed();
	let_go();
	for (int i = 0; i < 3; i++)
		want_ok(&p.a, &p);
	rig->get(got, dev, 3 * MRF_STAGE_CHUNK);
	ck_assert(!memcmp(got, want, 3 * MRF_STAGE_CHUNK));
	want_soon(is_idle());
	close_all();
}
END_TEST

static TCase *staged(void)
{
	TCase *tc = tcase_create("staged");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, staged_bytes_are_written_and_read, 0, MODES);
	tcase_add_loop_test(tc, staged_buffers_of_all_kinds_make_one_transfer, 0, MODES);
	tcase_add_loop_test(tc, staged_bytes_are_injected, 0, RIGS);
	tcase_add_loop_test(tc, staged_memory_is_not_kept_in_the_cache, 0, RIGS);
	tcase_add_loop_test(tc, staged_memory_needs_its_descriptor, 0, RIGS);
	tcase_add_loop_test(tc, staged_memory_that_is_managed_needs_a_descriptor_too, 0, RIGS);
	tcase_add_test(tc, staged_memory_is_for_endpoints_of_domains_that_were_opened_for_it);
	tcase_add_loop_test(tc, staged_memory_has_the_rights_of_its_region, 0, RIGS);
	tcase_add_loop_test(tc, staged_memory_that_was_freed_is_an_error, 0, RIGS);
	tcase_add_loop_test(tc, staged_copies_that_fail_are_told, 0, RIGS);
	tcase_add_loop_test(tc, staged_transfers_wait_for_rings, 0, RIGS);
	tcase_add_loop_test(tc, staged_transfers_without_a_ring_are_refused, 0, RIGS);
	tcase_add_loop_test(tc, staged_chunks_are_copied_while_others_are_in_flight, 0, RIGS);
	tcase_add_loop_test(tc, staged_chunks_are_posted_while_the_next_is_copied, 0, RIGS);
	tcase_add_loop_test(tc, staged_transfers_survive_a_connection_that_breaks, 0, RIGS);
	tcase_add_loop_test(tc, staged_transfer_does_not_end_while_its_chunk_is_copied, 2, 5);
	tcase_add_loop_test(tc, staged_transfer_ends_when_its_region_is_closed, 0, 2);
	tcase_add_loop_test(tc, staged_transfers_are_let_go_when_the_endpoint_closes, 0, RIGS);
	tcase_add_loop_test(tc, staged_transfers_keep_the_order_of_their_peer, 0, RIGS);
	tcase_add_test(tc, staged_bytes_of_a_device_of_the_peer_use_the_whole_ring);
	tcase_add_loop_test(tc, staged_writes_are_copied_before_their_turn, 0, RIGS);
	tcase_add_loop_test(tc, staged_writes_behind_others_are_not_copied_by_the_call, 0, RIGS);
	tcase_add_loop_test(tc, staged_writes_are_not_copied_before_a_fence, 0, RIGS);
	tcase_add_loop_test(tc, staged_writes_that_cannot_be_copied_are_told_in_their_turn, 0,
			    2 * RIGS);
	tcase_add_loop_test(tc, staged_writes_are_not_canceled_while_they_are_copied, 0, RIGS);
	tcase_add_loop_test(tc, staged_writes_behind_others_survive_a_connection_that_breaks, 0,
			    RIGS);
	tcase_add_loop_test(tc, staged_writes_that_are_posted_again_survive_a_copy_that_fails, 0,
			    RIGS);
	tcase_add_loop_test(tc, staged_writes_behind_others_fail_with_their_peer, 0, RIGS);
	tcase_add_loop_test(tc, staged_bytes_are_fetched_when_the_turn_comes, 0, RIGS);
	tcase_add_loop_test(tc, staged_results_of_several_are_stored_by_another_thread, 0, RIGS);
	tcase_add_loop_test(tc, staged_values_and_results, 0, MODES);
	tcase_add_loop_test(tc, staged_results_that_cannot_be_stored_are_an_error, 0, RIGS);
	return tc;
}

UNIT_MAIN("staged", staged)
