/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_PROFILE: what mistakes with regions are answered with, in which order regions and what they are
 * bound to close, and when a key is known. On the fake fabric; t_profile has which calls there are.
 */
#include <rdma/fi_eq.h>
#include "contract/mr_offer.h"
#include "contract/profile.h"
#include "ep_fixture.h"
#include "mr/region.h"

#define VAR "FI_MRFAB_PROFILE"
#define PROFILES 25
#define KEY 7
/* Of cxi; and all that bind counters. */
static const char *const cxi[] = { "cxi-client", "cxi-prov", "cxi-odp" };
static const char *const counting[] = { "cxi-client", "cxi-prov", "cxi-odp",
					"sockets",    "psm2",	  "psm3" };

static struct node n;
static struct unit_capture cap;
static const struct mrf_profile *profile;
static uint8_t *memory;

static void setup(void)
{
	fixture_setup();
	fixture_log();
	memset(&n, 0, sizeof(n));
	ck_assert_int_eq(posix_memalign((void **)&memory, PAGE, PAGE), 0);
	memset(memory, 0, PAGE);
}

static void teardown(void)
{
	node_close(&n);
	free(memory);
	unsetenv(VAR);
	fixture_teardown();
}

/* A domain in the profile's modes, with these capabilities if the provider has them. */
static void open_caps(const char *name, uint64_t caps)
{
	struct node_opt opt = { 0 };
	char why[192];

	ck_assert_int_eq(setenv(VAR, name, 1), 0);
	profile = mrf_profile_find(name, why, sizeof(why));
	ck_assert_ptr_nonnull(profile);
	opt.mr_mode = (int)(profile->table & MRF_MR_REQUIRABLE);
	opt.caps = caps & profile->promise->caps;
	node_open(&n, &opt);
}

/* One that counts peers' writes if the provider can. */
static void open_with(const char *name)
{
	open_caps(name, MRF_CAPS | FI_RMA_EVENT);
}

static struct fid_mr *reg(uint64_t access, uint64_t flags)
{
	struct fid_mr *mr;

	ck_assert_int_eq(fi_mr_reg(n.domain, memory, PAGE, access, 0, KEY, flags, &mr, NULL), 0);
	return mr;
}

static void refused(int ret, int err, const char *code, const char *part)
{
	const char *text = unit_captured(&cap);

	ck_assert_msg(ret == -err && strstr(text, code) && strstr(text, part), "%s: %d: %s",
		      profile->name, ret, text);
}

#define REFUSED(call, ...)                  \
	do {                                \
		int ret_;                   \
                                            \
		unit_capture(&cap);         \
		ret_ = (call);              \
		refused(ret_, __VA_ARGS__); \
	} while (0)

static struct fid_cntr *cntr_open(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	ck_assert_int_eq(fi_cntr_open(n.domain, &attr, &cntr, NULL), 0);
	return cntr;
}

/* --- registering --------------------------------------------------------------------------- */

static bool is_one_of(const char *const *names, size_t count)
{
	size_t i;

	for (i = 0; i < count && strcmp(profile->name, names[i]) != 0; i++)
		;
	return i < count;
}

static int flag_error(void)
{
	static const char *const einval[] = { "opx", "bgq", "lpp", "netdir" };

	return is_one_of(einval, MRF_ARRAY_SIZE(einval)) ? FI_EINVAL : FI_EBADFLAGS;
}

START_TEST(unknown_flags_have_the_error_of_the_provider)
{
	struct fid_mr *mr;
	int err;

	open_with(mrf_profile_at((size_t)_i)->name);
	err = flag_error();
	REFUSED(fi_mr_reg(n.domain, memory, PAGE, FI_SEND, 0, KEY, 1ull << 60, &mr, NULL), err,
		"MRF-E3009", "no such registration flag");
}
END_TEST

/* Nothing is said of a limit that is not this profile's. */
START_TEST(counts_of_segments_are_the_profiles)
{
	struct iovec iov[MRF_LIMIT_MR_IOV + 1];
	struct fi_mr_attr attr = { .mr_iov = iov, .access = FI_SEND };
	struct fid_mr *mr;
	char range[40];
	size_t i;

	open_with(mrf_profile_at((size_t)_i)->name);
	if (profile->error[MRF_PROFILE_REGV])
		return;
	for (i = 0; i < MRF_ARRAY_SIZE(iov); i++)
		iov[i] = (struct iovec){ memory, 1 };
	snprintf(range, sizeof(range), "must be %s%u (mr_iov_limit)",
		 profile->iov_limit > 1 ? "from 1 to " : "", profile->iov_limit);
	REFUSED(fi_mr_regattr(n.domain, &attr, 0, &mr), FI_EINVAL, "MRF-E3002", range);
	snprintf(range, sizeof(range), "mr_iov_limit is %u with", profile->iov_limit);
	attr.iov_count = MRF_ARRAY_SIZE(iov);
	REFUSED(fi_mr_regattr(n.domain, &attr, 0, &mr), profile->iov_error, "MRF-E3027", range);
}
END_TEST

/* FI_RMA_EVENT is a flag where the capability is, and where flags are looked at nowhere else. */
START_TEST(event_flag_goes_with_the_capability)
{
	static const char *const have[] = { "cxi-client", "cxi-prov", "cxi-odp",  "tcp",
					    "sockets",	  "rxd",      "shm",	  "shm-fast",
					    "psm2",	  "psm3",     "rma-event" };
	struct fid_mr *mr;

	open_with(mrf_profile_at((size_t)_i)->name);
	if (is_one_of(have, MRF_ARRAY_SIZE(have))) {
		must_close(&reg(REMOTE_RW, FI_RMA_EVENT)->fid);
		return;
	}
	REFUSED(fi_mr_reg(n.domain, memory, PAGE, REMOTE_RW, 0, KEY, FI_RMA_EVENT, &mr, NULL),
		flag_error(), "MRF-E3013", "no such registration flag with FI_MRFAB_PROFILE=");
}
END_TEST

START_TEST(provider_keys_fit_into_mr_key_size)
{
	unsigned size;
	struct fid_mr *mr;

	open_with(mrf_profile_at((size_t)_i)->name);
	size = profile->key_size;
	if (!(profile->table & FI_MR_PROV_KEY) || profile->table & FI_MR_RAW || !size)
		return;
	mr = reg(REMOTE_RW, 0);
	ck_assert_msg(size == 8 || !(fi_mr_key(mr) >> 8 * size), "%s: %#lx", profile->name,
		      fi_mr_key(mr));
	must_close(&mr->fid);
}
END_TEST

/* A flag that is ignored makes no region that counts, whose keys are longer. */
START_TEST(event_flag_that_is_ignored_has_no_effect)
{
	struct fid_mr *mr;

	open_with("verbs+lenient");
	mr = reg(REMOTE_RW, FI_RMA_EVENT);
	ck_assert_ptr_null(mrf_mr_from_fid(&mr->fid)->event);
	ck_assert_uint_le(fi_mr_key(mr), UINT32_MAX);
	must_close(&mr->fid);
}
END_TEST

/* Programs of usnic request the same key again and again. */
START_TEST(usnic_has_no_keys)
{
	struct fid_mr *mr, *second;

	open_with("usnic");
	mr = reg(FI_SEND | FI_RECV | REMOTE_RW, 0);
	second = reg(REMOTE_RW, 0);
	ck_assert_uint_eq(fi_mr_key(mr), 0);
	ck_assert_uint_eq(fi_mr_key(second), 0);
	must_close(&second->fid);
	ck_assert_int_eq(
		fi_mr_reg(n.domain, memory, PAGE, REMOTE_RW, 0, FI_KEY_NOTAVAIL, 0, &second, NULL),
		0);
	ck_assert_uint_eq(fi_mr_key(second), 0);
	ck_assert_uint_eq(mrf_mr_from_fid(&mr->fid)->access, FI_SEND | FI_RECV);
	must_close(&mr->fid);
	must_close(&second->fid);
}
END_TEST

START_TEST(gni_needs_a_right_and_an_address)
{
	struct fid_mr *mr;

	open_with(_i ? "gni-basic" : "gni");
	REFUSED(fi_mr_reg(n.domain, memory, PAGE, 0, 0, KEY, 0, &mr, NULL), FI_EINVAL, "MRF-E3029",
		"access=0");
	REFUSED(fi_mr_reg(n.domain, NULL, PAGE, FI_SEND, 0, KEY, 0, &mr, NULL), FI_EINVAL,
		"MRF-E3029", "both are needed with FI_MRFAB_PROFILE=gni");
	must_close(&reg(FI_SEND, 0)->fid);
}
END_TEST

START_TEST(gni_refreshes_ranges)
{
	struct iovec all = { .iov_len = PAGE };
	struct fid_mr *mr;

	open_with(_i ? "gni-basic" : "gni");
	mr = reg(REMOTE_RW, 0);
	all.iov_base = memory;
	if (_i) {
		REFUSED(fi_mr_refresh(mr, &all, 1, 0), FI_ENOSYS, "MRF-E3017", "does not exist");
	} else {
		REFUSED(fi_mr_refresh(mr, NULL, 0, 0), FI_EINVAL, "MRF-E3059",
			"must be ranges with FI_MRFAB_PROFILE=gni");
		ck_assert_int_eq(fi_mr_refresh(mr, &all, 1, 0), 0);
	}
	must_close(&mr->fid);
}
END_TEST

/* --- +lenient ------------------------------------------------------------------------------ */

#define LIKE_TCP (MRF_LAX_FLAG | MRF_LAX_OFFSET | MRF_LAX_ACCESS | MRF_LAX_LEN)
#define UNKNOWN_FLAG (1ull << 60)
#define UNKNOWN_ACCESS (1ull << 40)

/* What the provider with this name does not check, in other words than in lib/. */
static unsigned unchecked(const char *name)
{
	static const struct {
		const char *name;
		unsigned lax;
	} facts[] = {
		{ "verbs", LIKE_TCP },
		{ "verbs-rxm", LIKE_TCP },
		{ "efa", MRF_LAX_OFFSET },
		{ "efa-direct", MRF_LAX_OFFSET },
		{ "cxi-client", LIKE_TCP & ~(unsigned)MRF_LAX_ACCESS },
		{ "cxi-prov", LIKE_TCP & ~(unsigned)MRF_LAX_ACCESS },
		{ "cxi-odp", LIKE_TCP & ~(unsigned)MRF_LAX_ACCESS },
		{ "ucx", MRF_LAX_FLAG | MRF_LAX_OFFSET },
		{ "mrail", LIKE_TCP },
		{ "tcp", LIKE_TCP },
		{ "tcp-rxm", LIKE_TCP },
		{ "sockets", LIKE_TCP },
		{ "rxd", LIKE_TCP },
		{ "shm", LIKE_TCP },
		{ "shm-fast", LIKE_TCP & ~(unsigned)MRF_LAX_OFFSET },
		{ "psm2", MRF_LAX_FLAG },
		{ "psm3", MRF_LAX_FLAG },
		{ "opx", MRF_LAX_OFFSET },
		{ "bgq", MRF_LAX_OFFSET },
		{ "usnic", MRF_LAX_OFFSET },
	};
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(facts); i++) {
		if (!strcmp(facts[i].name, name))
			return facts[i].lax;
	}
	return 0;
}

static void want_lax(unsigned lax, enum mrf_profile_lax what, size_t len, uint64_t access,
		     uint64_t offset, uint64_t flags)
{
	struct fid_mr *mr;
	int ret = fi_mr_reg(n.domain, memory, len, access, offset, KEY, flags, &mr, NULL);

	ck_assert_msg(!ret == !!(lax & what), "%s: %u: %d", profile->name, what, ret);
	if (!ret)
		must_close(&mr->fid);
}

static void try_all_lax(unsigned lax)
{
	want_lax(lax, MRF_LAX_FLAG, PAGE, FI_SEND, 0, UNKNOWN_FLAG);
	want_lax(lax, MRF_LAX_OFFSET, PAGE, FI_SEND, 16, 0);
	want_lax(lax, MRF_LAX_ACCESS, PAGE, FI_SEND | UNKNOWN_ACCESS, 0, 0);
	want_lax(lax, MRF_LAX_LEN, 0, FI_SEND, 0, 0);
}

START_TEST(lenient_profile_takes_what_its_provider_leaves_unchecked)
{
	const char *name = mrf_profile_at((size_t)_i)->name;
	char lenient[64];

	open_with(name);
	try_all_lax(0);
	/* Without anything to accept the name is refused: t_profile. */
	if (!unchecked(name))
		return;
	node_close(&n);
	snprintf(lenient, sizeof(lenient), "%s+Lenient", name);
	open_with(lenient);
	try_all_lax(unchecked(name));
}
END_TEST

START_TEST(region_of_no_bytes_is_told_so)
{
	struct fid_mr *mr;

	open_with("tcp+lenient");
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_reg(n.domain, memory, 0, FI_SEND, 0, KEY, 0, &mr, NULL), 0);
	refused(-1, 1, "MRF-W3011: len=0", "leaves it unchecked; the region has no bytes");
	must_close(&mr->fid);
}
END_TEST

/* Rights and keys are what was asked for and no more; nothing that means something is ignored. */
START_TEST(lenient_profile_grants_nothing)
{
	struct fid_mr *mr, *other;

	open_with("tcp+lenient");
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_reg(n.domain, memory, PAGE, FI_REMOTE_READ | UNKNOWN_ACCESS, 0, KEY,
				   UNKNOWN_FLAG, &mr, NULL),
			 0);
	refused(-1, 1, "MRF-W3011", "FI_MRFAB_PROFILE=tcp+lenient leaves it unchecked; it has no");
	ck_assert_uint_eq(mrf_mr_from_fid(&mr->fid)->access, FI_REMOTE_READ);
	REFUSED(fi_mr_reg(n.domain, memory, PAGE, FI_REMOTE_READ, 0, KEY, 0, &other, NULL),
		FI_ENOKEY, "MRF-E3021", "already taken");
	REFUSED(fi_mr_reg(n.domain, memory, PAGE, FI_SEND, 0, 0, 1ull << 40, &other, NULL),
		FI_EBADFLAGS, "MRF-E3009", "0x10000000000");
	must_close(&mr->fid);
}
END_TEST

START_TEST(cxi_ignores_flags_of_bindings_to_endpoints)
{
	struct fid_mr *mr;

	open_with("cxi-prov+lenient");
	mr = reg(REMOTE_RW, 0);
	ck_assert_int_eq(fi_mr_bind(mr, &n.ep->fid, FI_REMOTE_WRITE), 0);
	must_close(&mr->fid);
}
END_TEST

/* --- keys ---------------------------------------------------------------------------------- */

/* cxi knows the application's key at once, and its own only then. */
START_TEST(key_is_known_when_the_provider_knows_it)
{
	struct fid_mr *mr;
	bool own;

	open_with(cxi[_i]);
	own = !(profile->table & FI_MR_PROV_KEY);
	mr = reg(REMOTE_RW, 0);
	ck_assert_uint_eq(fi_mr_key(mr), own ? KEY : FI_KEY_NOTAVAIL);
	ck_assert_int_eq(fi_mr_bind(mr, &n.ep->fid, 0), 0);
	ck_assert_uint_eq(fi_mr_key(mr), own ? KEY : FI_KEY_NOTAVAIL);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	ck_assert_uint_ne(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert(!own || fi_mr_key(mr) == KEY);
	must_close(&mr->fid);
	/* No peer reaches this one. */
	mr = reg(FI_SEND, 0);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	must_close(&mr->fid);
}
END_TEST

/* --- binding ------------------------------------------------------------------------------- */

START_TEST(region_is_bound_to_one_enabled_endpoint)
{
	struct fid_ep *second;
	struct fid_mr *mr;

	open_with(cxi[_i]);
	mr = reg(REMOTE_RW, 0);
	ck_assert_int_eq(fi_endpoint(n.domain, n.info, &second, NULL), 0);
	REFUSED(fi_mr_bind(mr, &second->fid, 0), FI_EINVAL, "MRF-E3056",
		"the endpoint has to be enabled first");
	ck_assert_int_eq(fi_mr_bind(mr, &n.ep->fid, 0), 0);
	must_close(&second->fid);
	ck_assert_int_eq(node_try_ep(&n, &(struct node_opt){ 0 }, &second), 0);
	REFUSED(fi_mr_bind(mr, &second->fid, 0), FI_EINVAL, "MRF-E3056", "to one only");
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	/* It is enabled now. */
	REFUSED(fi_mr_bind(mr, &second->fid, 0), FI_EINVAL, "MRF-E3054", "enabled already");
	must_close(&mr->fid);
	must_close(&second->fid);
}
END_TEST

START_TEST(wrong_bindings_have_the_error_of_the_provider)
{
	bool is_cxi = _i < 3, is_psm = strncmp(counting[_i], "psm", 3) == 0;
	int flags = is_cxi || is_psm || !strcmp(counting[_i], "sockets") ? FI_EINVAL : FI_EBADFLAGS;
	struct fid_cntr *cntr, *second;
	struct fid_mr *mr;

	open_with(counting[_i]);
	cntr = cntr_open();
	second = cntr_open();
	mr = reg(REMOTE_RW, FI_RMA_EVENT);
	REFUSED(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_READ), flags, "MRF-E3234", "FI_REMOTE_WRITE");
	if (is_cxi)
		REFUSED(fi_mr_bind(mr, &n.ep->fid, FI_REMOTE_READ), FI_EINVAL, "MRF-E3052",
			"flags must be 0");
	if (profile->promise->caps & FI_RMA_EVENT) {
		ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
		if (is_cxi || is_psm)
			REFUSED(fi_mr_bind(mr, &second->fid, FI_REMOTE_WRITE),
				is_cxi ? FI_EINVAL : FI_EBUSY, "MRF-E3244",
				"the region has another counter");
		else
			ck_assert_int_eq(fi_mr_bind(mr, &second->fid, FI_REMOTE_WRITE), 0);
	}
	must_close(&mr->fid);
	must_close(&cntr->fid);
	must_close(&second->fid);
}
END_TEST

START_TEST(psm_binds_endpoints_to_no_effect_and_counters_without_a_flag)
{
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	open_with(_i ? "psm3" : "psm2");
	mr = reg(REMOTE_RW, FI_RMA_EVENT);
	cntr = cntr_open();
	ck_assert_int_eq(fi_mr_bind(mr, &n.ep->fid, 0), 0);
	ck_assert_ptr_null(mrf_list_first(&mrf_mr_from_fid(&mr->fid)->bindings));
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, 0), 0);
	ck_assert_ptr_nonnull(mrf_list_first(&mrf_mr_from_fid(&mr->fid)->event->counters));
	REFUSED(fi_mr_bind(mr, &mr->fid, 0), FI_EINVAL, "MRF-E3043", "only counters and endpoints");
	must_close(&mr->fid);
	must_close(&cntr->fid);
}
END_TEST

START_TEST(counter_that_would_count_nothing_has_the_error_of_the_provider)
{
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	open_caps("sockets", MRF_CAPS);
	mr = reg(REMOTE_RW, 0);
	cntr = cntr_open();
	REFUSED(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), FI_EINVAL, "MRF-E3041",
		"writes to it are not counted");
	must_close(&mr->fid);
	must_close(&cntr->fid);
}
END_TEST

/* --- closing ------------------------------------------------------------------------------- */

/* Whatever the API version: this one, 1.17, would have it the other way round. */
START_TEST(region_closes_before_its_endpoint)
{
	struct fid_mr *mr;

	open_with(cxi[_i]);
	mr = reg(REMOTE_RW, 0);
	ck_assert_int_eq(fi_mr_bind(mr, &n.ep->fid, 0), 0);
	REFUSED(fi_close(&n.ep->fid), FI_EBUSY, "MRF-E3230", "has to be closed first");
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	REFUSED(fi_close(&n.ep->fid), FI_EBUSY, "MRF-E3230", "by FI_MRFAB_PROFILE");
	must_close(&mr->fid);
	must_close(&n.ep->fid);
	n.ep = NULL;
}
END_TEST

START_TEST(region_closes_before_its_counter)
{
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	open_with(counting[_i]);
	if (!(profile->promise->caps & FI_RMA_EVENT))
		return; /* nothing counts with it */
	cntr = cntr_open();
	mr = reg(REMOTE_RW, FI_RMA_EVENT);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	REFUSED(fi_close(&cntr->fid), FI_EBUSY, "MRF-E3231", "by FI_MRFAB_PROFILE");
	must_close(&mr->fid);
	must_close(&cntr->fid);
}
END_TEST

/* The page's own order holds where no provider shows another one. */
START_TEST(without_such_a_provider_the_version_decides)
{
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	open_with("rma-event");
	cntr = cntr_open();
	mr = reg(REMOTE_RW, FI_RMA_EVENT);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	REFUSED(fi_close(&mr->fid), FI_EBUSY, "MRF-E3239", "closed first");
	must_close(&cntr->fid);
	must_close(&mr->fid);
}
END_TEST

static TCase *tcase_profile_mr(void)
{
	TCase *tc = tcase_create("profile_mr");
	int all = (int)MRF_ARRAY_SIZE(counting);

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, unknown_flags_have_the_error_of_the_provider, 0, PROFILES);
	tcase_add_loop_test(tc, counts_of_segments_are_the_profiles, 0, PROFILES);
	tcase_add_loop_test(tc, event_flag_goes_with_the_capability, 0, PROFILES);
	tcase_add_loop_test(tc, provider_keys_fit_into_mr_key_size, 0, PROFILES);
	tcase_add_test(tc, event_flag_that_is_ignored_has_no_effect);
	tcase_add_test(tc, usnic_has_no_keys);
	tcase_add_loop_test(tc, gni_needs_a_right_and_an_address, 0, 2);
	tcase_add_loop_test(tc, gni_refreshes_ranges, 0, 2);
	tcase_add_loop_test(tc, lenient_profile_takes_what_its_provider_leaves_unchecked, 0,
			    PROFILES);
	tcase_add_test(tc, region_of_no_bytes_is_told_so);
	tcase_add_test(tc, lenient_profile_grants_nothing);
	tcase_add_test(tc, cxi_ignores_flags_of_bindings_to_endpoints);
	tcase_add_loop_test(tc, key_is_known_when_the_provider_knows_it, 0, 3);
	tcase_add_loop_test(tc, region_is_bound_to_one_enabled_endpoint, 0, 3);
	tcase_add_loop_test(tc, wrong_bindings_have_the_error_of_the_provider, 0, all);
	tcase_add_loop_test(tc, psm_binds_endpoints_to_no_effect_and_counters_without_a_flag, 0, 2);
	tcase_add_test(tc, counter_that_would_count_nothing_has_the_error_of_the_provider);
	tcase_add_loop_test(tc, region_closes_before_its_endpoint, 0, 3);
	tcase_add_loop_test(tc, region_closes_before_its_counter, 0, all);
	tcase_add_test(tc, without_such_a_provider_the_version_decides);
	return tc;
}

UNIT_MAIN("profile_mr", tcase_profile_mr)
