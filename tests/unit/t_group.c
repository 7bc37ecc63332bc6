/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys of regions and endpoints: who has the same one meets the region in the
 * key's own protection domain, anybody else finds nothing at all.
 */
#include "auth/auth.h"
#include "back_fixture.h"
#include "contract/limits.h"
#include "mr/face.h"
#include "proto/rawkey.h"
#include "secret.h"

static struct unit_capture cap;

/* Endpoints as far as regions know them: of the domain's key, of one key, of another. */
static struct endpoint {
	struct fid fid;
	struct mrf_obj obj;
	struct mrf_mr_port port;
} plain, same, other;

static const char other_key[] = "Open, wheat";

#define PINNED FI_MR_ALLOCATED
static const uint64_t modes[] = { PINNED, 0, FI_MR_MMU_NOTIFY };

static void ep_open(struct endpoint *ep, const char *key)
{
	ep->fid.fclass = FI_CLASS_EP;
	mrf_obj_init(&ep->obj, &ep->fid, NULL);
	ck_assert_int_eq(
		mrf_mr_port_open(&env.space, &ep->port, &ep->obj, true, key, key ? strlen(key) : 0),
		0);
}

static void ep_close(struct endpoint *ep)
{
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &ep->port), 0);
	mrf_mr_port_free(&ep->port);
	mrf_obj_fini(&ep->obj);
}

static void open_mode(uint64_t mode)
{
	back_open(mode);
	ep_open(&plain, NULL);
	ep_open(&same, SECRET);
	ep_open(&other, other_key);
}

static void close_all(void)
{
	mrf_mr_lease_end(&lease);
	ep_close(&plain);
	ep_close(&same);
	ep_close(&other);
	ck_assert_uint_eq(fake_verbs.live_pds, 1);
	ck_assert(mrf_list_empty(&env.space.groups));
	back_close();
	ck_assert_uint_eq(secrets_freed, 0);
}

static int try_reg(uint64_t access, uint64_t key, const char *auth_key, struct fid_mr **mr)
{
	struct iovec iov = { mem, PAGE };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = access,
				   .requested_key = key,
				   .auth_key = (uint8_t *)auth_key,
				   .auth_key_size = auth_key ? strlen(auth_key) : 0 };
	int ret;

	library_enter();
	ret = fi_mr_regattr(&env.domain, &attr, 0, mr);
	library_leave();
	return ret;
}

static struct fid_mr *reg(uint64_t access, uint64_t key, const char *auth_key)
{
	struct fid_mr *mr = NULL;

	ck_assert_int_eq(try_reg(access, key, auth_key, &mr), 0);
	if (env.space.mode & FI_MR_MMU_NOTIFY && !(env.space.mode & FI_MR_ENDPOINT))
		ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	return mr;
}

static enum mrf_mr_status ask_for(const struct endpoint *ep, uint64_t key)
{
	struct mrf_mr_query ask = { .key = key, .len = PAGE, .port = &ep->port };

	memset(&view, 0xee, sizeof(view));
	library_enter();
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	library_leave();
	return view.status;
}

static const struct fake_mr *met_by(const struct endpoint *ep, uint64_t key)
{
	const struct fake_mr *met;

	ck_assert_int_eq(ask_for(ep, key), MRF_MR_OK);
	ck_assert_uint_eq(view.nseg, 1);
	met = fake_verbs_find(view.seg[0].rkey);
	ck_assert_ptr_nonnull(met);
	return met;
}

START_TEST(only_endpoints_with_its_key_meet_a_region)
{
	struct fid_mr *mr;

	open_mode(modes[_i]);
	mr = reg(RW | FI_READ, KEY, SECRET);
	met_by(&same, KEY);
	ck_assert_int_eq(ask_for(&plain, KEY), MRF_MR_UNKNOWN);
	ck_assert_int_eq(ask_for(&other, KEY), MRF_MR_UNKNOWN);
	env_must_close(mr);
	mr = reg(RW | FI_READ, KEY + 1, NULL);
	met_by(&plain, KEY + 1);
	ck_assert_int_eq(ask_for(&same, KEY + 1), MRF_MR_UNKNOWN);
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(each_key_has_a_protection_domain_of_its_own)
{
	const struct fake_mr *met;
	struct fid_mr *mr, *mr2;
	struct mrf_desc desc;
	struct ibv_pd *own;

	back_open(modes[_i]);
	own = fake_verbs.last_pd;
	ep_open(&plain, NULL);
	ep_open(&same, SECRET);
	ep_open(&other, other_key);
	ck_assert_uint_eq(fake_verbs.live_pds, 3);
	mr = reg(FI_REMOTE_READ | FI_READ, KEY, SECRET);
	mr2 = reg(FI_REMOTE_READ | FI_READ, KEY + 1, SECRET);
	ck_assert_uint_eq(fake_verbs.live_pds, 3);
	met = met_by(&same, KEY);
	ck_assert_ptr_ne(met->mr.pd, own);
	ck_assert_uint_eq(met->access, IBV_ACCESS_REMOTE_READ);
	ck_assert_ptr_eq(met_by(&same, KEY + 1)->mr.pd, met->mr.pd);
	if (_i == 0) {
		ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &desc));
		ck_assert_ptr_eq(fake_verbs_by_lkey(desc.seg.lkey)->mr.pd, own);
		ck_assert_uint_eq(fake_verbs_by_lkey(desc.seg.lkey)->access,
				  IBV_ACCESS_LOCAL_WRITE);
	}
	env_must_close(mr);
	env_must_close(mr2);
	close_all();
}
END_TEST

/* Answers say the same in all but the key, which is the asker's own. */
static void must_look_the_same(const struct endpoint *ep, uint64_t key)
{
	struct mrf_mr_view nothing;

	ask_for(ep, 4711);
	nothing = view;
	ask_for(ep, key);
	ck_assert_mem_eq(&view, &nothing, sizeof(view));
	ck_assert_int_eq(view.status, MRF_MR_UNKNOWN);
}

START_TEST(others_are_told_of_a_region_what_they_are_told_of_none)
{
	struct fid_mr *mr;

	open_mode(modes[_i]);
	mr = reg(RW, KEY, SECRET);
	must_look_the_same(&other, KEY);
	must_look_the_same(&plain, KEY);
	env_must_close(mr);
	/* Nor when it is closed; who could have known is told. */
	must_look_the_same(&other, KEY);
	must_look_the_same(&plain, KEY);
	ck_assert_int_eq(ask_for(&same, KEY), MRF_MR_CLOSED);
	mr = reg(RW, KEY + 1, NULL);
	must_look_the_same(&other, KEY + 1);
	env_must_close(mr);
	must_look_the_same(&same, KEY + 1);
	ck_assert_int_eq(ask_for(&plain, KEY + 1), MRF_MR_CLOSED);
	/* The key is another's now: to those who had it, it was closed. */
	mr = reg(RW, KEY, other_key);
	ck_assert_int_eq(ask_for(&same, KEY), MRF_MR_CLOSED);
	met_by(&other, KEY);
	env_must_close(mr);
	close_all();
}
END_TEST

/* What a peer's flush finds. */
static enum mrf_mr_status flush(const struct mrf_mr_query *ask)
{
	struct mrf_mr_hold commit;
	enum mrf_mr_status status = mrf_mr_commit_begin(&env.space, ask, &commit);

	if (status == MRF_MR_OK)
		mrf_mr_hold_end(&commit);
	return status;
}

/* Nor does asking for it to be flushed tell more, or do anything. */
START_TEST(others_flush_nothing_and_learn_nothing_by_it)
{
	struct mrf_mr_query ask = { .key = KEY, .len = PAGE };
	struct fid_mr *mr, *mr2;

	open_mode(modes[_i]);
	mr = reg(RW, KEY, SECRET);
	mr2 = reg(RW, KEY + 1, NULL);
	ask.port = &same.port;
	ck_assert_int_eq(flush(&ask), MRF_MR_OK);
	ask.port = &other.port;
	ck_assert_int_eq(flush(&ask), MRF_MR_UNKNOWN);
	ask.port = &plain.port;
	ck_assert_int_eq(flush(&ask), MRF_MR_UNKNOWN);
	ask.serial = 4711;
	ck_assert_int_eq(flush(&ask), MRF_MR_UNKNOWN);
	ask.serial = 0;
	ask.key = KEY + 1;
	ck_assert_int_eq(flush(&ask), MRF_MR_OK);
	ask.port = &same.port;
	ck_assert_int_eq(flush(&ask), MRF_MR_UNKNOWN);
	env_must_close(mr);
	env_must_close(mr2);
	close_all();
}
END_TEST

START_TEST(who_flushes_a_closed_region_is_told_so_as_who_asks_for_it)
{
	struct mrf_mr_query ask = { .key = KEY, .len = PAGE };
	struct fid_mr *mr;

	open_mode(modes[_i]);
	mr = reg(RW, KEY, SECRET);
	env_must_close(mr);
	ask.port = &same.port;
	ck_assert_int_eq(ask_for(&same, KEY), MRF_MR_CLOSED);
	ck_assert_int_eq(flush(&ask), MRF_MR_CLOSED);
	ask.port = &other.port;
	ck_assert_int_eq(ask_for(&other, KEY), MRF_MR_UNKNOWN);
	ck_assert_int_eq(flush(&ask), MRF_MR_UNKNOWN);
	close_all();
}
END_TEST

START_TEST(who_may_not_write_flushes_nothing)
{
	struct mrf_mr_query ask = { .key = KEY, .len = PAGE, .port = &same.port };
	struct fid_mr *mr;

	open_mode(modes[_i]);
	mr = reg(FI_REMOTE_READ, KEY, SECRET);
	ck_assert_int_eq(flush(&ask), MRF_MR_NO_RIGHT);
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(the_domains_key_is_that_of_whoever_says_none)
{
	struct mrf_auth *auth = NULL;
	struct fid_mr *mr[2];
	unsigned i;

	back_open(modes[_i]);
	ck_assert_int_eq(mrf_auth_new(SECRET, SECRET_LEN, &auth), 0);
	env.space.auth = auth;
	ep_open(&plain, NULL);
	ep_open(&same, SECRET);
	ep_open(&other, other_key);
	ck_assert_ptr_eq(mrf_mr_port_auth(&env.space, &plain.port), auth);
	ck_assert_ptr_eq(mrf_mr_port_auth(&env.space, &same.port), auth);
	ck_assert_ptr_ne(mrf_mr_port_auth(&env.space, &other.port), auth);
	/* Said or not: neither needs more than the domain has. */
	ck_assert_uint_eq(fake_verbs.live_pds, 2);
	mr[0] = reg(RW, KEY, NULL);
	mr[1] = reg(RW, KEY + 1, SECRET);
	ck_assert_uint_eq(fake_verbs.live_mrs, _i ? 0 : 2);
	for (i = 0; i < 2; i++) {
		met_by(&plain, KEY + i);
		met_by(&same, KEY + i);
		must_look_the_same(&other, KEY + i);
		env_must_close(mr[i]);
	}
	close_all();
	mrf_auth_free(auth);
}
END_TEST

static struct fid_mr *reg_bytes(uint64_t key, const char *bytes, size_t size)
{
	struct iovec iov = { mem, PAGE };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = RW,
				   .requested_key = key,
				   .auth_key = (uint8_t *)bytes,
				   .auth_key_size = size };
	struct fid_mr *mr = NULL;

	ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, 0, &mr), 0);
	return mr;
}

/* Wherever the key points: none of it is the key, some of it, or a zero in the middle. */
START_TEST(the_size_says_which_bytes_are_the_key)
{
	static const char zeros[] = "a\0b", others[] = "a\0c";
	struct fid_mr *mr;

	open_mode(PINNED);
	mr = reg_bytes(KEY, SECRET, 0);
	met_by(&plain, KEY);
	ck_assert_int_eq(ask_for(&same, KEY), MRF_MR_UNKNOWN);
	env_must_close(mr);
	mr = reg_bytes(KEY + 1, SECRET, SECRET_LEN - 1);
	ck_assert_int_eq(ask_for(&same, KEY + 1), MRF_MR_UNKNOWN);
	ck_assert_int_eq(ask_for(&plain, KEY + 1), MRF_MR_UNKNOWN);
	env_must_close(mr);
	ep_close(&other);
	other.fid.fclass = FI_CLASS_EP;
	mrf_obj_init(&other.obj, &other.fid, NULL);
	ck_assert_int_eq(mrf_mr_port_open(&env.space, &other.port, &other.obj, true, zeros, 3), 0);
	mr = reg_bytes(KEY + 2, others, 3);
	ck_assert_int_eq(ask_for(&other, KEY + 2), MRF_MR_UNKNOWN);
	env_must_close(mr);
	mr = reg_bytes(KEY + 3, zeros, 3);
	met_by(&other, KEY + 3);
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(a_key_and_its_protection_domain_go_with_the_last_that_has_it)
{
	struct fid_mr *mr;

	open_mode(modes[_i]);
	ep_close(&same);
	ck_assert_uint_eq(fake_verbs.live_pds, 2);
	mr = reg(RW, KEY, SECRET);
	ck_assert_uint_eq(fake_verbs.live_pds, 3);
	must_look_the_same(&other, KEY);
	/* An endpoint that comes later is as good. */
	ep_open(&same, SECRET);
	met_by(&same, KEY);
	ck_assert_uint_eq(fake_verbs.live_pds, 3);
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_pds, 3);
	mr = reg(RW, KEY, SECRET);
	mrf_mr_lease_end(&lease);
	ep_close(&same);
	ck_assert_uint_eq(fake_verbs.live_pds, 3);
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_pds, 2);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ep_open(&same, SECRET);
	close_all();
}
END_TEST

START_TEST(the_slot_of_a_region_with_a_key_is_used_again_without_it)
{
	struct fid_mr *mr, *again;

	open_mode(PINNED);
	mr = reg(RW, KEY, SECRET);
	env_must_close(mr);
	again = reg(RW, KEY, NULL);
	ck_assert_ptr_eq(again, mr);
	met_by(&plain, KEY);
	env_must_close(again);
	close_all();
}
END_TEST

/* --- keys of regions with a key --------------------------------------------------- */

START_TEST(provider_keys_of_regions_with_a_key_say_nothing)
{
	struct mrf_key_direct direct;
	struct fid_mr *mr;

	open_mode(PINNED | FI_MR_PROV_KEY | (_i ? FI_MR_VIRT_ADDR : 0));
	mr = reg(RW, 0, SECRET);
	ck_assert_uint_ne(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert(!mrf_key_unpack(env.space.mode, fi_mr_key(mr), &direct));
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(raw_keys_of_regions_with_a_key_carry_the_rkeys_of_its_group)
{
	uint8_t buf[MRF_RAWKEY_MAX];
	struct mrf_rawkey raw = { 0 };
	size_t size = sizeof(buf);
	const char *why = NULL;
	struct fid_mr *mr;
	uint64_t base;

	open_mode(PINNED | FI_MR_RAW);
	mr = reg(RW | FI_READ, KEY, SECRET);
	ck_assert_int_eq(fi_mr_raw_attr(mr, &base, buf, &size, 0), 0);
	ck_assert_int_eq(mrf_rawkey_decode(buf, size, &raw, &why), 0);
	ck_assert(raw.complete && raw.nseg == 1);
	ck_assert_uint_eq(raw.seg[0].rkey, met_by(&same, raw.key)->mr.rkey);
	env_must_close(mr);
	close_all();
}
END_TEST

/* --- endpoints -------------------------------------------------------------------- */

START_TEST(a_region_is_bound_to_endpoints_with_its_key_only)
{
	struct fid_mr *mr;

	open_mode(FI_MR_ENDPOINT | modes[_i]);
	mr = reg(RW, KEY, SECRET);
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_bind(mr, &other.fid, 0), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3202"));
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_bind(mr, &plain.fid, 0), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3202"));
	ck_assert_int_eq(fi_mr_bind(mr, &same.fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	if (modes[_i] & FI_MR_MMU_NOTIFY)
		ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	met_by(&same, KEY);
	/* Not even that it is bound elsewhere. */
	must_look_the_same(&other, KEY);
	must_look_the_same(&plain, KEY);
	mrf_mr_lease_end(&lease);
	ep_close(&same);
	env_must_close(mr);
	ep_open(&same, SECRET);
	close_all();
}
END_TEST

/* --- what goes wrong -------------------------------------------------------------- */

static void must_refuse(int ret, int err, const char *code)
{
	const char *text = unit_captured(&cap);

	ck_assert_int_eq(ret, err);
	ck_assert_msg(strstr(text, code) != NULL, "%s not in %s", code, text);
	ck_assert_ptr_null(strstr(text, SECRET));
}

START_TEST(keys_that_are_none_are_refused)
{
	struct iovec iov;
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = RW };
	uint8_t key[MRF_LIMIT_AUTH_KEY + 1] = { 1 };
	struct fid_mr *mr = NULL;

	open_mode(PINNED);
	iov = (struct iovec){ mem, PAGE };
	attr.auth_key_size = 1;
	unit_capture(&cap);
	must_refuse(fi_mr_regattr(&env.domain, &attr, 0, &mr), -FI_EINVAL, "MRF-E3200");
	attr.auth_key = key;
	attr.auth_key_size = sizeof(key);
	unit_capture(&cap);
	must_refuse(fi_mr_regattr(&env.domain, &attr, 0, &mr), -FI_EINVAL, "MRF-E3201");
	attr.auth_key_size = SIZE_MAX;
	unit_capture(&cap);
	must_refuse(fi_mr_regattr(&env.domain, &attr, 0, &mr), -FI_EINVAL, "MRF-E3201");
	ck_assert_ptr_null(mr);
	attr.auth_key_size = MRF_LIMIT_AUTH_KEY;
	ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, 0, &mr), 0);
	env_must_close(mr);
	close_all();
}
END_TEST

/* With FI_MR_ENDPOINT the protection domain is the endpoint's, and the key's group is new. */
START_TEST(an_endpoint_that_does_not_open_leaves_no_group)
{
	struct mrf_mr_port port;

	open_mode(_i ? PINNED | FI_MR_ENDPOINT : PINNED);
	ep_close(&same);
	fake_verbs_fail(FAKE_ALLOC_PD, 1, ENOMEM);
	ck_assert_int_eq(
		mrf_mr_port_open(&env.space, &port, &same.obj, true, SECRET, strlen(SECRET)),
		-FI_ENOMEM);
	ep_open(&same, SECRET);
	close_all();
}
END_TEST

START_TEST(registering_that_fails_leaves_nothing)
{
	struct fid_mr *mr = NULL;
	unsigned nth;
	int ret = -1;

	open_mode(modes[_i]);
	ep_close(&same);
	for (nth = 1; ret; nth++) {
		fail_alloc(nth);
		unit_capture(&cap);
		ret = try_reg(RW | FI_READ, KEY, SECRET, &mr);
		fail_alloc(0);
		unit_captured(&cap);
		ck_assert(!ret || ret == -FI_ENOMEM);
		ck_assert(!ret || strstr(cap.text, "MRF-E3"));
		if (!ret)
			break;
		ck_assert_ptr_null(mr);
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
		ck_assert_uint_eq(fake_verbs.live_pds, 2);
	}
	ck_assert_uint_gt(nth, 4);
	env_must_close(mr);
	ep_open(&same, SECRET);
	close_all();
}
END_TEST

START_TEST(registering_that_the_kernel_refuses_leaves_nothing)
{
	struct fid_mr *mr = NULL, *taken;
	unsigned nth;

	open_mode(PINNED);
	ep_close(&same);
	fake_verbs_fail(FAKE_ALLOC_PD, 1, ENOMEM);
	unit_capture(&cap);
	must_refuse(try_reg(RW, KEY, SECRET, &mr), -FI_ENOMEM, "MRF-E3203");
	for (nth = 1; nth <= 2; nth++) {
		fake_verbs_fail(FAKE_REG_MR, nth, ENOMEM);
		unit_capture(&cap);
		must_refuse(try_reg(RW | FI_READ, KEY, SECRET, &mr), -FI_ENOMEM, "MRF-E3018");
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
		ck_assert_uint_eq(fake_verbs.live_pds, 2);
	}
	taken = reg(RW, KEY, NULL);
	unit_capture(&cap);
	must_refuse(try_reg(RW, KEY, SECRET, &mr), -FI_ENOKEY, "MRF-E3021");
	ck_assert_uint_eq(fake_verbs.live_pds, 2);
	ck_assert_ptr_null(mr);
	env_must_close(taken);
	ep_open(&same, SECRET);
	close_all();
}
END_TEST

START_TEST(a_region_that_the_kernel_keeps_is_closed_in_the_end)
{
	struct fid_mr *mr;

	open_mode(PINNED);
	mr = reg(RW | FI_READ, KEY, SECRET);
	fake_verbs_fail(FAKE_DEREG_MR, 1, EBUSY);
	unit_capture(&cap);
	must_refuse(fi_close(&mr->fid), -FI_EBUSY, "MRF-E3030");
	ck_assert_int_eq(ask_for(&same, KEY), MRF_MR_CLOSED);
	fake_verbs_fail(FAKE_DEREG_MR, 2, EBUSY);
	unit_capture(&cap);
	must_refuse(fi_close(&mr->fid), -FI_EBUSY, "MRF-E3030");
	env_must_close(mr);
	close_all();
}
END_TEST

static TCase *groups(void)
{
	TCase *tc = tcase_create("groups");

	tcase_add_loop_test(tc, only_endpoints_with_its_key_meet_a_region, 0, 3);
	tcase_add_loop_test(tc, each_key_has_a_protection_domain_of_its_own, 0, 3);
	tcase_add_loop_test(tc, others_are_told_of_a_region_what_they_are_told_of_none, 0, 3);
	tcase_add_loop_test(tc, others_flush_nothing_and_learn_nothing_by_it, 0, 3);
	tcase_add_loop_test(tc, who_flushes_a_closed_region_is_told_so_as_who_asks_for_it, 0, 3);
	tcase_add_loop_test(tc, who_may_not_write_flushes_nothing, 0, 3);
	tcase_add_loop_test(tc, the_domains_key_is_that_of_whoever_says_none, 0, 3);
	tcase_add_test(tc, the_size_says_which_bytes_are_the_key);
	tcase_add_loop_test(tc, a_key_and_its_protection_domain_go_with_the_last_that_has_it, 0, 3);
	tcase_add_test(tc, the_slot_of_a_region_with_a_key_is_used_again_without_it);
	tcase_add_loop_test(tc, provider_keys_of_regions_with_a_key_say_nothing, 0, 2);
	tcase_add_test(tc, raw_keys_of_regions_with_a_key_carry_the_rkeys_of_its_group);
	tcase_add_loop_test(tc, a_region_is_bound_to_endpoints_with_its_key_only, 0, 3);
	return tc;
}

static TCase *failures(void)
{
	TCase *tc = tcase_create("failures");

	tcase_add_test(tc, keys_that_are_none_are_refused);
	tcase_add_loop_test(tc, an_endpoint_that_does_not_open_leaves_no_group, 0, 2);
	tcase_add_loop_test(tc, registering_that_fails_leaves_nothing, 0, 3);
	tcase_add_test(tc, registering_that_the_kernel_refuses_leaves_nothing);
	tcase_add_test(tc, a_region_that_the_kernel_keeps_is_closed_in_the_end);
	return tc;
}

UNIT_MAIN("group", groups, failures)
