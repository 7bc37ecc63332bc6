/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of regions, from registration to closing, in which everything fails once: each
 * allocation, in whichever thread, and each call of the device. Whatever fails says so
 * with the error number of the manual, is done again, and then works; nothing is left in
 * the end.
 *
 * In 12 kinds of domain: each kind of mode, with synchronous and asynchronous
 * registration. Counters count what landed.
 */
#include <sys/mman.h>
#include "contract/limits.h"
#include "fail_walk.h"

#define REGIONS 3

static struct pair p;
static struct fid_eq *eq; /* of the target's domain; NULL: registration is synchronous */
static struct fid_cntr *cntr;
static struct fid_mr *mr[REGIONS];
static uint64_t mapped[REGIONS], base[REGIONS];
static int mode;
static unsigned landed, begun; /* writes that count */

/* --- registering ------------------------------------------------------------------- */

static uint64_t reg_flags(void)
{
	return mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0;
}

static int reg(unsigned i)
{
	struct iovec iov[3] = { { p.dst, 5000 }, { p.dst + 20480, 100 }, { p.dst + 28672, 9000 } };
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 1, .access = REMOTE_RW, .requested_key = PAIR_KEY + i
	};

	if (i == 2)
		return fi_mr_regattr(p.b.domain, &attr, reg_flags(), &mr[i]);
	if (i == 1)
		return fi_mr_regv(p.b.domain, iov, 3, REMOTE_RW, 0, PAIR_KEY + i, reg_flags(),
				  &mr[i], NULL);
	return fi_mr_reg(p.b.domain, p.dst, PAIR_LEN, REMOTE_RW, 0, PAIR_KEY, reg_flags(), &mr[i],
			 NULL);
}

/* False: the event says that it failed. */
static bool registered(unsigned i)
{
	struct fi_eq_entry entry;
	struct fi_eq_err_entry err = { 0 };
	uint32_t event;
	ssize_t ret;

	DO(ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), LONG_MS, 0));
	if (ret == sizeof(entry)) {
		ck_assert(event == FI_MR_COMPLETE && entry.fid == &mr[i]->fid);
		return true;
	}
	if (ret != -FI_EAVAIL)
		ck_abort_msg("failure %u: no event of a registration: %zd", nth, ret);
	ck_assert_int_gt(LIBRARY(fi_eq_readerr(eq, &err, 0)), 0);
	ck_assert_ptr_eq(err.fid, &mr[i]->fid);
	may_fail("FI_MR_COMPLETE", err.err);
	return false;
}

static void reg_all(void)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		DO(reg(i));
		if (!eq || registered(i))
			continue;
		DO(fi_close(&mr[i]->fid));
		DO(reg(i));
		if (!registered(i))
			ck_abort_msg("failure %u: registering failed twice", nth);
	}
}

static void configure(void)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		DO(fi_mr_bind(mr[i], &cntr->fid, FI_REMOTE_WRITE));
		if (mode & FI_MR_ENDPOINT)
			DO(fi_mr_bind(mr[i], &p.b.ep->fid, 0));
		DO(fi_mr_enable(mr[i]));
	}
}

static void refresh_all(void)
{
	struct iovec iov[2] = { { p.dst, 300 }, { p.dst + 1000, 8 } };

	if (mode & FI_MR_ALLOCATED && !(mode & FI_MR_MMU_NOTIFY))
		return;
	for (unsigned i = 0; i < REGIONS; i++) {
		DO(fi_mr_refresh(mr[i], NULL, 0, 0));
		DO(fi_mr_refresh(mr[i], iov, 2, 0));
	}
}

static void map_all(void)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		uint8_t raw[512];
		size_t size = sizeof(raw);

		DO(fi_mr_raw_attr(mr[i], &base[i], raw, &size, 0));
		DO(fi_mr_map_raw(p.a.domain, base[i], raw, size, &mapped[i], 0));
	}
}

/* --- accesses ---------------------------------------------------------------------- */

static void completion_failed(void)
{
	static const int known[] = { FI_ENOMEM,	    FI_EIO,	  FI_EINVAL,   FI_ECONNREFUSED,
				     FI_ECONNRESET, FI_ETIMEDOUT, FI_EREMOTEIO };
	struct fi_cq_err_entry err = { 0 };

	ck_assert_int_eq(LIBRARY(fi_cq_readerr(p.a.cq, &err, 0)), 1);
	if (!met())
		ck_abort_msg("%s, failure %u: a completion in error: %d, %s", where, nth, err.err,
			     err.err_data ? (char *)err.err_data : "");
	for (size_t i = 0; i < MRF_ARRAY_SIZE(known); i++) {
		if (err.err == known[i])
			return;
	}
	ck_abort_msg("%s, failure %u: completion: %d (%s), %s", where, nth, err.err,
		     fi_strerror(err.err), err.err_data ? (char *)err.err_data : "");
}

/* A write that failed may have been done; one of no bytes does not count. */
static void complete(bool counts)
{
	struct fi_cq_data_entry e;
	ssize_t ret;

	DO(ret = fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS));
	begun += counts;
	landed += counts && ret == 1;
	if (ret == -FI_EAVAIL)
		completion_failed();
	else if (ret != 1)
		ck_abort_msg("%s, failure %u: no completion: %zd", where, nth, ret);
}

static uint64_t key_of(unsigned i, uint64_t *addr)
{
	*addr = base[i];
	if (mode & FI_MR_RAW || i == 1)
		return mapped[i];
	return fi_mr_key(mr[i]);
}

static void access_all(void)
{
	static const size_t len[] = { 8, 400, 4500, 0 };
	uint64_t addr, key;

	for (unsigned i = 0; i < REGIONS; i++) {
		key = key_of(i, &addr);
		for (size_t j = 0; j < MRF_ARRAY_SIZE(len); j++) {
			DO(fi_write(p.a.ep, p.src, len[j], p.desc, p.to, addr, key, &p));
			complete(len[j]);
			DO(fi_read(p.a.ep, p.src, len[j], p.desc, p.to, addr, key, &p));
			complete(false);
		}
		DO(fi_writedata(p.a.ep, p.src, 16, p.desc, 5, p.to, addr, key, &p));
		complete(true);
	}
}

/* Once more, when nothing fails any more: all of it works. What broke may show now. */
static void still_works(void)
{
	struct fi_cq_data_entry e;
	uint64_t addr, key;

	for (unsigned i = 0; i < REGIONS; i++) {
		ssize_t ret = 0;

		key = key_of(i, &addr);
		for (int tries = 0; tries < 4 && ret != 1; tries++) {
			ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, p.desc, p.to, addr, key, &p),
					 0);
			begun++;
			ret = fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS);
			if (ret == -FI_EAVAIL)
				completion_failed();
		}
		if (ret != 1)
			ck_abort_msg("%s, failure %u: region %u is not usable", where, nth, i);
		landed++;
		ck_assert(!memcmp(p.dst, p.src, 100));
	}
}

static void counted(void)
{
	int64_t end = mrf_now_ms() + LONG_MS;
	uint64_t count;

	do
		count = fi_cntr_read(cntr);
	while (count < landed && mrf_now_ms() < end);
	if (count < landed || count > begun)
		ck_abort_msg("%s, failure %u: %u of %u writes landed, counted %lu", where, nth,
			     landed, begun, (unsigned long)count);
}

/* --- one life ---------------------------------------------------------------------- */

/* By the rules of which regions are closed before, or after what they are bound to. */
static uint32_t api(void)
{
	return mode & FI_MR_LOCAL ? FI_VERSION(2, 3) : FI_VERSION(1, 17);
}

/* The source's region, which the fixture has registered only. */
static void use_source(void)
{
	if (!p.src_mr || !(mode & FI_MR_ENDPOINT))
		return;
	ck_assert_int_eq(fi_mr_bind(p.src_mr, &p.a.ep->fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(p.src_mr), 0);
	p.desc = fi_mr_desc(p.src_mr);
}

static void open_all(bool async)
{
	struct node_opt opt = { .mr_mode = mode, .caps = MRF_CAPS | FI_RMA_EVENT, .api = api() };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

	pair_open(&p, &opt);
	must_close(&p.mr->fid);
	p.mr = NULL;
	eq = NULL;
	use_source();
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &cntr_attr, &cntr, NULL), 0);
	if (!async)
		return;
	ck_assert_int_eq(fi_eq_open(p.b.fabric, &eq_attr, &eq, NULL), 0);
	ck_assert_int_eq(fi_domain_bind(p.b.domain, &eq->fid, FI_REG_MR), 0);
}

static void close_regions(void)
{
	for (unsigned i = 0; i < REGIONS; i++)
		DO(fi_close(&mr[i]->fid));
}

static void close_all(void)
{
	struct fid_fabric *fabric = p.b.fabric;

	for (unsigned i = 0; i < REGIONS; i++)
		DO(fi_mr_unmap_key(p.a.domain, mapped[i]));
	if (api() == FI_VERSION(2, 3))
		close_regions();
	DO(fi_close(&cntr->fid));
	DO(fi_close(&p.b.ep->fid));
	p.b.ep = NULL;
	if (api() != FI_VERSION(2, 3))
		close_regions();
	if (!eq) {
		pair_close(&p);
		return;
	}
	p.b.fabric = NULL; /* the queue goes after the domain and before the fabric */
	pair_close(&p);
	must_close(&eq->fid);
	must_close(&fabric->fid);
}

/* False: there are not so many things that could fail. */
static bool live(bool async)
{
	bool failed;

	open_all(async);
	landed = begun = 0;
	order();
	reg_all();
	configure();
	refresh_all();
	map_all();
	access_all();
	failed = met();
	heal();
	still_works();
	counted();
	close_all();
	if (fake_live())
		ck_abort_msg("%s, failure %u: %u things of the device are left", where, nth,
			     fake_live());
	return failed;
}

static const int modes[] = {
	FI_MR_ALLOCATED,
	0,
	FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	FI_MR_RAW | FI_MR_MMU_NOTIFY,
	FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
		FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT,
};

#define MODES ((int)MRF_ARRAY_SIZE(modes))

/* In each mode, and when registration is asynchronous. */
static void walk(int i, int err)
{
	static char name[32];
	bool async = i >= MODES;

	mode = modes[i % MODES] & ~(async ? FI_MR_LOCAL : 0);
	snprintf(name, sizeof(name), "mode %#x%s", mode, async ? ", by the worker" : "");
	where = name;
	device_err = err;
	outside = 1;
	nth = 1 + every_first();
	while (live(async))
		nth += every();
	ck_assert_uint_gt(nth, err ? 4u : 8u);
}

START_TEST(life_each_allocation_may_fail_once)
{
	walk(_i, 0);
}
END_TEST

START_TEST(life_each_call_of_the_device_may_fail_once)
{
	walk(_i, _i % 2 ? FI_EIO : FI_ENOMEM);
}
END_TEST

static TCase *tcase_life(void)
{
	TCase *tc = tcase_create("life");

	tcase_add_checked_fixture(tc, fixture_setup_impatient, fixture_teardown);
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, life_each_allocation_may_fail_once, 0, 2 * MODES);
	tcase_add_loop_test(tc, life_each_call_of_the_device_may_fail_once, 0, 2 * MODES);
	return tc;
}

UNIT_MAIN("life_faults", tcase_life)
