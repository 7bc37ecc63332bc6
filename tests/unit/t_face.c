/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What keeps peers apart: the protection domains of endpoints, and the kernel regions that
 * a region has in them.
 */
#include "back_fixture.h"
#include "mr/face.h"
#include "proto/rawkey.h"

static struct unit_capture cap;

/* Endpoints as far as regions know them. */
static struct endpoint {
	struct fid fid;
	struct mrf_obj obj;
	struct mrf_mr_port port;
	bool open;
} one, two;

#define PLAIN (FI_MR_ALLOCATED | FI_MR_ENDPOINT)
#define DEMAND FI_MR_ENDPOINT
#define NOTIFY (FI_MR_MMU_NOTIFY | FI_MR_ENDPOINT)
static const uint64_t modes[] = { PLAIN, DEMAND, NOTIFY };

static void ep_open(struct endpoint *ep)
{
	ep->fid.fclass = FI_CLASS_EP;
	mrf_obj_init(&ep->obj, &ep->fid, NULL);
	ck_assert_int_eq(mrf_mr_port_open(&env.space, &ep->port, &ep->obj, true, NULL, 0), 0);
	ep->open = true;
}

static void ep_close(struct endpoint *ep)
{
	if (!ep->open)
		return;
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &ep->port), 0);
	mrf_mr_port_free(&ep->port);
	mrf_obj_fini(&ep->obj);
	ep->open = false;
}

static void open_mode(uint64_t mode)
{
	back_open(mode);
	ep_open(&one);
	ep_open(&two);
}

static void close_all(void)
{
	ep_close(&one);
	ep_close(&two);
	back_close();
}

/* Endpoints first, as their regions are bound to them. */
static void close_with(struct fid_mr *mr)
{
	mrf_mr_lease_end(&lease);
	ep_close(&one);
	ep_close(&two);
	ck_assert_uint_eq(fake_verbs.live_pds, 1);
	env_must_close(mr);
	close_all();
}

static enum mrf_mr_status reach_by(const struct endpoint *ep)
{
	struct mrf_mr_query ask = { .key = KEY, .len = PAGE, .port = &ep->port };

	memset(&view, 0xee, sizeof(view));
	library_enter();
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	library_leave();
	return view.status;
}

/* The kernel region that peers of this endpoint meet. */
static const struct fake_mr *met_by(const struct endpoint *ep)
{
	const struct fake_mr *met;

	ck_assert_int_eq(reach_by(ep), MRF_MR_OK);
	ck_assert_uint_eq(view.nseg, 1);
	met = fake_verbs_find(view.seg[0].rkey);
	ck_assert_ptr_nonnull(met);
	return met;
}

static int enable(struct fid_mr *mr)
{
	int ret;

	library_enter();
	ret = fi_mr_enable(mr);
	library_leave();
	if (!ret && env.space.mode & FI_MR_MMU_NOTIFY)
		ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	return ret;
}

static struct fid_mr *reg(uint64_t access)
{
	struct fid_mr *mr = env_must_reg(mem, PAGE, access, KEY);

	ck_assert_int_eq(fi_mr_bind(mr, &one.fid, 0), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &two.fid, 0), 0);
	return mr;
}

static struct fid_mr *reg_enabled(uint64_t access)
{
	struct fid_mr *mr = reg(access);

	ck_assert_int_eq(enable(mr), 0);
	return mr;
}

START_TEST(each_endpoint_meets_a_region_in_a_protection_domain_of_its_own)
{
	const struct fake_mr *by_one, *by_two;
	struct fid_mr *mr;

	open_mode(modes[_i]);
	ck_assert_uint_eq(fake_verbs.live_pds, 3);
	ck_assert_ptr_ne(mrf_mr_port_pd(&env.space, &one.port), env.space.pd);
	mr = reg_enabled(RW);
	by_one = met_by(&one);
	by_two = met_by(&two);
	ck_assert_ptr_ne(by_one, by_two);
	ck_assert_ptr_ne(by_one->mr.pd, by_two->mr.pd);
	ck_assert_uint_eq(by_one->access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
						  IBV_ACCESS_REMOTE_WRITE);
	ck_assert_uint_eq(by_two->access, by_one->access);
	/* Where neither the process itself nor peers of a third have any business. */
	ck_assert_uint_eq(fake_verbs.live_mrs, 2);
	close_with(mr);
}
END_TEST

START_TEST(without_fi_mr_endpoint_all_meet_in_the_domains_own)
{
	struct fid_mr *mr;

	open_mode(_i ? FI_MR_ALLOCATED : 0);
	ck_assert_uint_eq(fake_verbs.live_pds, 1);
	ck_assert_ptr_eq(mrf_mr_port_pd(&env.space, &one.port), env.space.pd);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	if (_i)
		ck_assert_ptr_eq(met_by(&one), met_by(&two));
	else
		ck_assert_ptr_eq(met_by(&one)->mr.pd, met_by(&two)->mr.pd);
	close_with(mr);
}
END_TEST

START_TEST(what_the_process_uses_itself_lets_no_peer_through)
{
	const struct fake_mr *local, *met;
	struct ibv_pd *own;
	struct mrf_desc desc;
	struct fid_mr *mr;

	back_open(PLAIN);
	own = fake_verbs.last_pd;
	ep_open(&one);
	ep_open(&two);
	mr = reg_enabled(FI_READ | FI_WRITE | FI_REMOTE_READ);
	ck_assert_uint_eq(fake_verbs.live_mrs, 3);
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &desc));
	local = fake_verbs_by_lkey(desc.seg.lkey);
	ck_assert_ptr_nonnull(local);
	ck_assert_ptr_eq(local->mr.pd, own);
	ck_assert_uint_eq(local->access, IBV_ACCESS_LOCAL_WRITE);
	ck_assert_uint_eq(desc.seg.rkey, 0);
	met = met_by(&two);
	ck_assert_ptr_ne(met->mr.pd, own);
	ck_assert_uint_eq(met->access, IBV_ACCESS_REMOTE_READ);
	close_with(mr);
}
END_TEST

START_TEST(a_region_without_remote_rights_is_in_no_endpoints_domain)
{
	struct mrf_desc desc;
	struct fid_mr *mr;

	open_mode(modes[_i]);
	mr = reg_enabled(FI_READ | FI_WRITE);
	ck_assert_uint_eq(fake_verbs.live_mrs, _i == 0);
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &desc));
	if (_i == 0)
		ck_assert_ptr_nonnull(fake_verbs_by_lkey(desc.seg.lkey));
	close_with(mr);
}
END_TEST

START_TEST(an_endpoint_that_closes_takes_its_kernel_regions_with_it)
{
	struct fid_mr *mr;
	uint32_t rkey;

	open_mode(modes[_i]);
	mr = reg_enabled(RW);
	rkey = met_by(&one)->mr.rkey;
	met_by(&two);
	mrf_mr_lease_end(&lease);
	met_by(&two);
	ep_close(&one);
	ck_assert_ptr_null(fake_verbs_find(rkey));
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_uint_eq(fake_verbs.live_pds, 2);
	met_by(&two);
	/* One that is opened at the same place is another one. */
	ep_open(&one);
	ck_assert_int_eq(reach_by(&one), MRF_MR_NOT_BOUND);
	close_with(mr);
}
END_TEST

START_TEST(a_region_that_closes_leaves_nothing_with_any_endpoint)
{
	struct fid_mr *mr;

	open_mode(modes[_i]);
	env.space.api_version = FI_VERSION(2, 3);
	mr = reg_enabled(RW | FI_READ);
	met_by(&one);
	met_by(&two);
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ck_assert_int_eq(reach_by(&one), MRF_MR_CLOSED);
	close_all();
}
END_TEST

START_TEST(refreshing_a_region_drops_what_every_endpoint_has_of_it)
{
	struct iovec half = { mem, 0 };
	struct fid_mr *mr;
	uint32_t rkeys[2];

	open_mode(NOTIFY);
	mr = reg_enabled(RW);
	rkeys[0] = met_by(&one)->mr.rkey;
	rkeys[1] = met_by(&two)->mr.rkey;
	half.iov_base = mem;
	half.iov_len = PAGE / 2;
	ck_assert_int_eq(fi_mr_refresh(mr, &half, 1, 0), 0);
	ck_assert_ptr_null(fake_verbs_find(rkeys[0]));
	ck_assert_ptr_null(fake_verbs_find(rkeys[1]));
	met_by(&one);
	met_by(&two);
	close_with(mr);
}
END_TEST

START_TEST(a_failed_refresh_changes_nothing_at_any_endpoint)
{
	struct fid_mr *mr;
	uint32_t rkeys[2];
	unsigned nth;
	int ret = -1;

	open_mode(NOTIFY);
	mr = reg_enabled(RW);
	rkeys[0] = met_by(&one)->mr.rkey;
	rkeys[1] = met_by(&two)->mr.rkey;
	for (nth = 1; ret; nth++) {
		ck_assert_ptr_nonnull(fake_verbs_find(rkeys[0]));
		ck_assert_ptr_nonnull(fake_verbs_find(rkeys[1]));
		fail_alloc(nth);
		library_enter();
		ret = fi_mr_refresh(mr, NULL, 0, 0);
		library_leave();
		fail_alloc(0);
		ck_assert(!ret || ret == -FI_ENOMEM);
	}
	ck_assert_uint_gt(nth, 3);
	close_with(mr);
}
END_TEST

START_TEST(memory_that_changes_is_gone_for_every_endpoint)
{
	struct fid_mr *mr;

	open_mode(DEMAND);
	mr = reg_enabled(RW);
	met_by(&one);
	met_by(&two);
	mrf_mr_lease_end(&lease);
	munmap(mem, PAGE);
	settle();
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ck_assert_int_eq(reach_by(&one), MRF_MR_NOT_MAPPED);
	ck_assert_int_eq(reach_by(&two), MRF_MR_NOT_MAPPED);
	close_with(mr);
}
END_TEST

START_TEST(enabling_that_fails_leaves_nothing)
{
	struct fid_mr *mr;
	unsigned nth, i;
	int ret = -1;

	open_mode(modes[_i]);
	mr = reg(RW | FI_READ);
	for (nth = 1; ret; nth++) {
		fail_alloc(nth);
		unit_capture(&cap);
		ret = enable(mr);
		fail_alloc(0);
		ck_assert(!ret == !strstr(unit_captured(&cap), "MRF-E3022"));
		ck_assert(!ret || ret == -FI_ENOMEM);
		if (ret)
			ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	}
	ck_assert_uint_gt(nth, 3);
	met_by(&one);
	met_by(&two);
	close_with(mr);
	/* Of one region for itself and one for each endpoint any may fail. */
	open_mode(PLAIN);
	mr = reg(RW | FI_READ);
	for (i = 1; i <= 3; i++) {
		fake_verbs_fail(FAKE_REG_MR, i, ENOMEM);
		unit_capture(&cap);
		ck_assert_int_eq(enable(mr), -FI_ENOMEM);
		ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3018"));
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	}
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 3);
	close_with(mr);
}
END_TEST

static void close_one_once(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	fake_verbs.on_reg = NULL;
	library_leave();
	ep_close(&one);
	library_enter();
}

START_TEST(an_endpoint_that_closes_while_its_region_is_enabled_is_left_out)
{
	struct fid_mr *mr;

	open_mode(PLAIN);
	mr = reg(RW);
	fake_verbs.on_reg = close_one_once;
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_uint_eq(fake_verbs.live_pds, 2);
	met_by(&two);
	close_with(mr);
}
END_TEST

static struct fid_mr *to_bind;

static void bind_two_once(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	fake_verbs.on_reg = NULL;
	ck_assert_int_eq(fi_mr_bind(to_bind, &two.fid, 0), 0);
}

START_TEST(an_endpoint_that_is_bound_while_its_region_is_enabled_is_served)
{
	struct fid_mr *mr;

	open_mode(PLAIN);
	mr = to_bind = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_int_eq(fi_mr_bind(mr, &one.fid, 0), 0);
	fake_verbs.on_reg = bind_two_once;
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 2);
	met_by(&one);
	met_by(&two);
	close_with(mr);
}
END_TEST

START_TEST(an_endpoint_closes_though_the_kernel_keeps_a_region_which_goes_with_its_own)
{
	struct fid_mr *mr;

	open_mode(PLAIN);
	mr = reg_enabled(RW);
	fake_verbs_fail(FAKE_DEREG_MR, 1, EBUSY);
	unit_capture(&cap);
	ep_close(&one);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3030"));
	ck_assert_uint_eq(fake_verbs.live_mrs, 2);
	/* Its protection domain stays as long. */
	ck_assert_uint_eq(fake_verbs.live_pds, 3);
	met_by(&two);
	ep_close(&two);
	fake_verbs_fail(FAKE_DEREG_MR, 1, EBUSY);
	ck_assert_int_eq(fi_close(&mr->fid), -FI_EBUSY);
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_pds, 1);
	close_all();
}
END_TEST

START_TEST(an_endpoint_without_a_protection_domain_does_not_open)
{
	struct mrf_mr_port port;
	int ret;

	open_mode(PLAIN);
	fake_verbs_fail(FAKE_ALLOC_PD, 1, ENOMEM);
	ck_assert_int_eq(mrf_mr_port_open(&env.space, &port, &one.obj, true, NULL, 0), -FI_ENOMEM);
	fail_alloc(1);
	library_enter();
	ret = mrf_mr_port_open(&env.space, &port, &one.obj, true, NULL, 0);
	library_leave();
	fail_alloc(0);
	ck_assert_int_eq(ret, -FI_ENOMEM);
	ck_assert_uint_eq(fake_verbs.live_pds, 3);
	close_all();
}
END_TEST

/* --- raw keys --------------------------------------------------------------------- */

static struct mrf_rawkey raw_of(struct fid_mr *mr)
{
	uint8_t buf[MRF_RAWKEY_MAX];
	struct mrf_rawkey raw = { 0 };
	size_t size = sizeof(buf);
	const char *why = NULL;
	uint64_t base;

	ck_assert_int_eq(fi_mr_raw_attr(mr, &base, buf, &size, 0), 0);
	ck_assert_int_eq(mrf_rawkey_decode(buf, size, &raw, &why), 0);
	return raw;
}

START_TEST(a_raw_key_carries_the_rkeys_of_the_only_endpoint)
{
	struct mrf_rawkey raw;
	struct fid_mr *mr;

	open_mode(PLAIN);
	mr = reg_enabled(RW | FI_READ);
	raw = raw_of(mr);
	ck_assert(!raw.complete && raw.nseg == 0);
	ep_close(&two);
	raw = raw_of(mr);
	ck_assert(raw.complete && raw.nseg == 1);
	ck_assert_uint_eq(raw.seg[0].rkey, met_by(&one)->mr.rkey);
	/* With none there is nothing to reach, and nothing to tell. */
	ep_close(&one);
	raw = raw_of(mr);
	ck_assert(!raw.complete && raw.nseg == 0);
	close_with(mr);
}
END_TEST

static TCase *domains(void)
{
	TCase *tc = tcase_create("domains");

	tcase_add_loop_test(tc, each_endpoint_meets_a_region_in_a_protection_domain_of_its_own, 0,
			    3);
	tcase_add_loop_test(tc, without_fi_mr_endpoint_all_meet_in_the_domains_own, 0, 2);
	tcase_add_test(tc, what_the_process_uses_itself_lets_no_peer_through);
	tcase_add_loop_test(tc, a_region_without_remote_rights_is_in_no_endpoints_domain, 0, 3);
	tcase_add_test(tc, an_endpoint_without_a_protection_domain_does_not_open);
	tcase_add_test(tc, a_raw_key_carries_the_rkeys_of_the_only_endpoint);
	return tc;
}

static TCase *changes(void)
{
	TCase *tc = tcase_create("changes");

	tcase_add_loop_test(tc, an_endpoint_that_closes_takes_its_kernel_regions_with_it, 0, 3);
	tcase_add_loop_test(tc, a_region_that_closes_leaves_nothing_with_any_endpoint, 0, 3);
	tcase_add_test(tc, refreshing_a_region_drops_what_every_endpoint_has_of_it);
	tcase_add_test(tc, a_failed_refresh_changes_nothing_at_any_endpoint);
	tcase_add_test(tc, memory_that_changes_is_gone_for_every_endpoint);
	tcase_add_loop_test(tc, enabling_that_fails_leaves_nothing, 0, 3);
	tcase_add_test(tc, an_endpoint_that_closes_while_its_region_is_enabled_is_left_out);
	tcase_add_test(tc, an_endpoint_that_is_bound_while_its_region_is_enabled_is_served);
	tcase_add_test(tc,
		       an_endpoint_closes_though_the_kernel_keeps_a_region_which_goes_with_its_own);
	return tc;
}

UNIT_MAIN("face", domains, changes)
