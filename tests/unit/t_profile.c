/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_PROFILE: each profile is what fi_getinfo says of it, and what the calls of its domain do,
 * on one fake device.
 */
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "contract/mr_offer.h"
#include "contract/profile.h"
#include "proto/rawkey.h"
#include "../fake/fake_verbs.h"
#include "one_device.h"
#include "unit.h"

#define VAR "FI_MRFAB_PROFILE"
#define MODES "FI_MRFAB_MR_MODE"
#define V17 FI_VERSION(1, 17)
#define ALL ((int)MRF_MR_REQUIRABLE)
#define LEGACY ((uint64_t)(FI_MR_BASIC | FI_MR_SCALABLE))
#define PROFILES 25
#define SEGMENTS 16

static struct unit_capture cap;
static const char *text; /* what the last fi_getinfo logged */
static struct fi_info *hints, *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static uint8_t *memory;

static void setup(void)
{
	fake_verbs_reset();
	one_device_use();
	unsetenv(VAR);
	unsetenv(MODES);
	hints = fi_allocinfo();
	ck_assert_ptr_nonnull(hints);
	hints->caps = FI_RMA;
	info = NULL;
	fabric = NULL;
	domain = NULL;
	memory = NULL;
}

static void teardown(void)
{
	if (domain)
		ck_assert_int_eq(fi_close(&domain->fid), 0);
	if (fabric)
		ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	free(memory);
	unsetenv(VAR);
	unsetenv(MODES);
}

static int get(int mr_mode)
{
	int ret;

	fi_freeinfo(info);
	info = NULL;
	hints->domain_attr->mr_mode = mr_mode;
	unit_capture(&cap);
	ret = fi_getinfo(V17, NULL, NULL, 0, hints, &info);
	text = unit_captured(&cap);
	return ret;
}

static void open_answer(void)
{
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert_int_eq(posix_memalign((void **)&memory, 4096, SEGMENTS * 4096ul), 0);
	memset(memory, 0, SEGMENTS * 4096ul);
}

static const struct mrf_profile *use(size_t at)
{
	const struct mrf_profile *profile = mrf_profile_at(at);

	ck_assert_ptr_nonnull(profile);
	ck_assert_int_eq(setenv(VAR, profile->name, 1), 0);
	hints->caps = (FI_MSG | FI_RMA) & profile->promise->caps;
	return profile;
}

/* A domain of this profile, for a program that offers everything. */
static const struct mrf_profile *open_profile(size_t at)
{
	const struct mrf_profile *profile = use(at);

	ck_assert_int_eq(get(ALL), 0);
	open_answer();
	return profile;
}

static int reg(size_t segments, uint64_t access, uint64_t key, struct fid_mr **mr)
{
	struct iovec iov[SEGMENTS];
	size_t i;

	if (segments == 1)
		return fi_mr_reg(domain, memory, 4096, access, 0, key, 0, mr, NULL);
	for (i = 0; i < segments; i++)
		iov[i] = (struct iovec){ memory + i * 4096, 4096 };
	return fi_mr_regv(domain, iov, segments, access, 0, key, 0, mr, NULL);
}

static char why[192];

static const struct mrf_profile *find(const char *name)
{
	return mrf_profile_find(name, why, sizeof(why));
}

/* --- the table ------------------------------------------------------------------------- */

START_TEST(profiles_have_names_that_find_them)
{
	const struct mrf_profile *profile;
	size_t i;
	int call;

	for (i = 0; (profile = mrf_profile_at(i)); i++) {
		ck_assert_ptr_eq(find(profile->name), profile);
		ck_assert_uint_gt(strlen(profile->what), 0);
		/* Modes that a domain can run. */
		ck_assert(mrf_mr_mode_known(profile->table & ~LEGACY));
		ck_assert_int_gt(profile->iov_error, 0);
	}
	ck_assert_uint_eq(i, PROFILES);
	ck_assert_ptr_eq(find("CXI-Client"), find("cxi-client"));
	ck_assert_ptr_eq(find("TCP+LENIENT"), find("tcp"));
	ck_assert(mrf_profile_lenient("tcp+lenient") && !mrf_profile_lenient("tcp"));
	ck_assert_ptr_null(find("+lenient"));
	ck_assert_ptr_null(find("tcp+lenien"));
	ck_assert_ptr_null(find("cxi"));
	ck_assert_ptr_null(find(""));
	for (call = 0; call < MRF_PROFILE_CALLS; call++)
		ck_assert_ptr_nonnull(mrf_profile_call_name((enum mrf_profile_call)call));
}
END_TEST

START_TEST(lenient_is_refused_where_nothing_is_left_unchecked)
{
	const struct mrf_profile *profile;
	char name[64];
	size_t i;

	for (i = 0; (profile = mrf_profile_at(i)); i++) {
		snprintf(name, sizeof(name), "%s+lenient", profile->name);
		ck_assert_msg(find(name) == (profile->lax ? profile : NULL), "%s", name);
	}
	ck_assert_ptr_null(find("gni-basic+lenient"));
	ck_assert_str_eq(why,
			 "nothing that gni-basic leaves unchecked is accepted here, so there is "
			 "nothing for +lenient");
}
END_TEST

START_TEST(unknown_name_brings_those_that_are_like_it)
{
	ck_assert_ptr_null(find("CXI"));
	ck_assert_str_eq(why,
			 "there is no such profile; similar ones: cxi-client, cxi-prov, cxi-odp");
	ck_assert_ptr_null(find("verbs;ofi_rxm+lenient"));
	ck_assert_str_eq(why, "there is no such profile; similar ones: verbs-rxm");
	ck_assert_ptr_null(find("cxi-server"));
	ck_assert_str_eq(why, "there is no such profile; mrfab_run --profile=list names them");
	ck_assert_ptr_null(find("ofi_rxm"));
	ck_assert_str_eq(why, "there is no such profile; similar ones: verbs-rxm, tcp-rxm");
	ck_assert_ptr_null(find("client"));
	ck_assert_str_eq(why, "there is no such profile; similar ones: cxi-client");
	ck_assert_ptr_null(find(""));
	ck_assert_str_eq(why, "there is no such profile; mrfab_run --profile=list names them");
}
END_TEST

START_TEST(profile_that_is_named_in_part_is_not_called_unknown)
{
	static const char *const endings[] = { "verbs+foo", "verbs+", "tcp+av-map",
					       "TCP+x+lenient" };
	static const char *const bare[] = { "custom", "Custom+lenient", "file", "file+lenient" };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(endings); i++) {
		ck_assert_ptr_null(find(endings[i]));
		ck_assert_str_eq(why, "only +lenient can follow the name of a profile");
	}
	for (i = 0; i < MRF_ARRAY_SIZE(bare); i++) {
		ck_assert_ptr_null(find(bare[i]));
		ck_assert_ptr_nonnull(strstr(why, "words must follow behind a colon"));
	}
}
END_TEST

/* Lines of the log have it without the row before it. */
START_TEST(profiles_are_described_without_each_other)
{
	const struct mrf_profile *profile;
	size_t i, k;

	for (i = 0; (profile = mrf_profile_at(i)); i++) {
		ck_assert_msg(!strstr(profile->what, "the same"), "%s: %s", profile->name,
			      profile->what);
		for (k = 0; k < i; k++)
			ck_assert_str_ne(profile->what, mrf_profile_at(k)->what);
	}
}
END_TEST

/* --- fi_getinfo ------------------------------------------------------------------------ */

START_TEST(profile_is_what_getinfo_says)
{
	const struct mrf_profile *profile = open_profile((size_t)_i);
	const struct fi_domain_attr *attr = info->domain_attr;

	ck_assert_uint_eq((uint64_t)(unsigned)attr->mr_mode, profile->table & ~LEGACY);
	ck_assert_uint_eq(attr->mr_iov_limit, profile->iov_limit);
	ck_assert_uint_eq(attr->mr_key_size,
			  profile->table & FI_MR_RAW ? MRF_RAWKEY_MAX : profile->key_size);
	ck_assert_uint_eq(attr->mr_cnt, profile->mr_cnt);
	/* Who wants more gets nothing. */
	hints->domain_attr->mr_iov_limit = profile->iov_limit + 1;
	ck_assert_int_eq(get(ALL), -FI_ENODATA);
	hints->domain_attr->mr_iov_limit = 0;
	hints->domain_attr->mr_cnt = profile->mr_cnt + 1;
	ck_assert_int_eq(get(ALL), -FI_ENODATA);
}
END_TEST

START_TEST(custom_profile_is_in_force)
{
	struct fid_mr *mr;

	ck_assert_int_eq(
		setenv(VAR, "custom:mr_mode=ALLOCATED,key_size=2,iov_limit=2,lacks=refresh", 1), 0);
	ck_assert_int_eq(get(0), -FI_ENODATA);
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_ALLOCATED);
	ck_assert_uint_eq(info->domain_attr->mr_key_size, 2);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert_int_eq(posix_memalign((void **)&memory, 4096, SEGMENTS * 4096ul), 0);
	memset(memory, 0, SEGMENTS * 4096ul);
	unit_capture(&cap);
	ck_assert_int_eq(reg(1, FI_REMOTE_READ, 0x10000, &mr), -FI_EKEYREJECTED);
	ck_assert_int_eq(reg(3, FI_REMOTE_READ, 1, &mr), -FI_EINVAL);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "the greatest key is 0xffff with " VAR "=custom"));
	ck_assert_ptr_nonnull(strstr(text, "mr_iov_limit is 2 with " VAR "=custom"));
	ck_assert_int_eq(reg(2, FI_REMOTE_READ, 0xffff, &mr), 0);
	/* What is said does not name a variable that cannot be set beside this one. */
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_bind(mr, &(struct fid){ .fclass = FI_CLASS_EP }, 0), -FI_ENOSYS);
	ck_assert_ptr_nonnull(
		strstr(unit_captured(&cap), "FI_MR_ENDPOINT is no mode of " VAR "=custom"));
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_refresh(mr, &(struct iovec){ memory, 4096 }, 1, 0), -FI_ENOSYS);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3017"));
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	/* A wrong word is named here, too, and so is a file that is not there. */
	ck_assert_int_eq(setenv(VAR, "file:/nonexistent", 1), 0);
	ck_assert_int_eq(get(ALL), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E1035"));
	ck_assert_ptr_nonnull(strstr(text, "/nonexistent cannot be opened"));
	ck_assert_int_eq(setenv(VAR, "custom:key_size=0", 1), 0);
	ck_assert_int_eq(get(ALL), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "\"key_size=0\": it must be a number from 1 to 8"));
}
END_TEST

START_TEST(program_that_offers_less_is_told_what_is_missing)
{
	ck_assert_int_eq(setenv(VAR, "cxi-client", 1), 0);
	ck_assert_int_eq(get(FI_MR_ALLOCATED), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E1032"));
	ck_assert_ptr_nonnull(strstr(text, VAR "=cxi-client requires FI_MR_ALLOCATED, "
					       "FI_MR_ENDPOINT"));
	ck_assert_ptr_nonnull(strstr(text, "missing: FI_MR_ENDPOINT"));
}
END_TEST

/* ofi_rxm copies or registers the local buffers of programs that do not. */
START_TEST(local_registration_is_only_required_where_it_is_offered)
{
	const int rest = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

	ck_assert_int_eq(setenv(VAR, "verbs-rxm", 1), 0);
	ck_assert_int_eq(get(rest), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, rest);
	ck_assert_int_eq(get(rest | FI_MR_LOCAL), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, rest | FI_MR_LOCAL);
	ck_assert_int_eq(get(FI_MR_BASIC), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_BASIC);
	ck_assert_uint_eq(info->mode & FI_LOCAL_MR, 0);
	ck_assert_int_eq(get(FI_MR_VIRT_ADDR), -FI_ENODATA);
	ck_assert_int_eq(setenv(VAR, "verbs", 1), 0);
	ck_assert_int_eq(get(rest), -FI_ENODATA);
}
END_TEST

/* The older modes are accepted where the table has them, and each is the one in force. */
START_TEST(older_modes_are_in_force_where_they_are_accepted)
{
	const struct mrf_profile *profile = use((size_t)_i);
	struct fid_mr *mr;

	hints->mode = FI_LOCAL_MR;
	ck_assert_int_eq(get(FI_MR_SCALABLE), profile->table & FI_MR_SCALABLE ? 0 : -FI_ENODATA);
	ck_assert_int_eq(get(FI_MR_BASIC), profile->table & FI_MR_BASIC ? 0 : -FI_ENODATA);
	if (!info || !(profile->table & FI_MR_SCALABLE))
		return;
	/* Otherwise the key would be the application's there. */
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_BASIC);
	open_answer();
	ck_assert_int_eq(reg(1, FI_REMOTE_READ, 7, &mr), 0);
	ck_assert_uint_ne(fi_mr_key(mr), 7);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
}
END_TEST

START_TEST(unknown_profiles_and_two_contracts_are_refused)
{
	ck_assert_int_eq(setenv(VAR, "cxy", 1), 0);
	ck_assert_int_eq(get(ALL), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E1035"));
	ck_assert_ptr_nonnull(strstr(text, "\"cxy\""));
	/* What is too long to be repeated is not shown as if it were the whole. */
	ck_assert_int_eq(
		setenv(VAR,
		       "custom:mr_mode=ALLOCATED+VIRT_ADDR+PROV_KEY,key_size=8,iov_limit=1,mr_cnt=0",
		       1),
		0);
	ck_assert_int_eq(get(ALL), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "...\": \"mr_cnt=0\": it must"));
	ck_assert_int_eq(setenv(VAR, "verbs", 1), 0);
	ck_assert_int_eq(setenv(MODES, "RAW", 1), 0);
	ck_assert_int_eq(get(ALL), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E1036"));
	/* Set to nothing, neither is. */
	ck_assert_int_eq(setenv(MODES, "", 1), 0);
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_int_eq(setenv(VAR, "", 1), 0);
	ck_assert_int_eq(get(ALL), 0);
	unsetenv(MODES);
	ck_assert_int_eq(setenv(VAR, "verbs", 1), 0);
	ck_assert_int_eq(get(ALL), 0);
	/* It was known when fi_getinfo was called. */
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(setenv(VAR, "cxy", 1), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), -FI_EINVAL);
	domain = NULL;
}
END_TEST

/* Before version 1.5 only the two legacy models can be asked for, whatever the hints. */
START_TEST(old_program_gets_no_profile_without_a_legacy_model)
{
	const struct mrf_profile *profile = mrf_profile_at((size_t)_i);
	int ret;

	ck_assert_int_eq(setenv(VAR, profile->name, 1), 0);
	unit_capture(&cap);
	ret = fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, NULL, &info);
	text = unit_captured(&cap);
	if (profile->table & LEGACY) {
		ck_assert_int_eq(ret, 0);
		ck_assert_uint_ne(info->domain_attr->mr_mode & LEGACY, 0);
		return;
	}
	ck_assert_msg(ret == -FI_ENODATA, "%s: %d", profile->name, ret);
	ck_assert_msg(strstr(text, "MRF-E1032: no hints->domain_attr with version 1.4: ") &&
			      strstr(text, "neither is offered here"),
		      "%s", text);
}
END_TEST

/* --- registrations ---------------------------------------------------------------------- */

START_TEST(profile_limits_the_segments_of_a_region)
{
	const struct mrf_profile *profile = open_profile((size_t)_i);
	struct fid_mr *mr;

	ck_assert_int_eq(reg(profile->iov_limit, FI_SEND, 1, &mr), 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	if (profile->iov_limit < SEGMENTS)
		ck_assert_int_eq(reg(profile->iov_limit + 1, FI_SEND, 1, &mr),
				 profile->error[MRF_PROFILE_REGV] ? -FI_ENOSYS
								  : -profile->iov_error);
}
END_TEST

/* A provider that chooses keys itself takes any, and so does each for regions without peers. */
START_TEST(profile_limits_the_keys_of_the_application)
{
	const struct mrf_profile *profile = open_profile((size_t)_i);
	bool own = !(profile->table & FI_MR_PROV_KEY);
	struct fid_mr *mr;

	ck_assert_int_eq(reg(1, FI_REMOTE_WRITE, profile->max_key - own, &mr), 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	if (profile->max_key == UINT64_MAX)
		return;
	ck_assert_int_eq(reg(1, FI_REMOTE_WRITE, profile->max_key, &mr), 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_int_eq(reg(1, FI_REMOTE_WRITE, profile->max_key + 1, &mr), -FI_EKEYREJECTED);
	ck_assert_int_eq(reg(1, FI_SEND, profile->max_key + 1, &mr), 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
}
END_TEST

/* They are finished when they return. cxi takes the queue, and no event is written. */
START_TEST(cxi_reports_no_registration)
{
	struct fi_eq_attr attr = { .size = 8, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_entry entry;
	struct fid_mr *mr, *other;
	struct fid_eq *eq;
	uint32_t event;
	size_t i = 0;

	while (strcmp(mrf_profile_at(i)->name, "cxi-prov") != 0)
		i++;
	open_profile(i);
	ck_assert_int_eq(fi_eq_open(fabric, &attr, &eq, NULL), 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_domain_bind(domain, &eq->fid, FI_REG_MR), 0);
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, "MRF-W2167") && strstr(text, "no event is ever written"), "%s",
		      text);
	ck_assert_int_eq(reg(1, FI_REMOTE_WRITE, 1, &mr), 0);
	ck_assert_int_eq(reg(1, FI_SEND, 2, &other), 0);
	ck_assert_int_eq((int)fi_eq_sread(eq, &event, &entry, sizeof(entry), 50, 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	domain = NULL;
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

/* --- calls ------------------------------------------------------------------------------ */

/* Where the profile has the call, the mode and the arguments decide. */
static void want(const struct mrf_profile *profile, enum mrf_profile_call call, int ret)
{
	if (profile->error[call])
		ck_assert_msg(ret == -profile->error[call], "%s: %s: %d", profile->name,
			      mrf_profile_call_name(call), ret);
}

/* Exactly the calls that it does not have were refused because of it. */
static void want_refusals(const struct mrf_profile *profile)
{
	char line[160];
	int call;

	for (call = 0; call < MRF_PROFILE_CALLS; call++) {
		snprintf(line, sizeof(line),
			 "MRF-E3017: %s: ", mrf_profile_call_name((enum mrf_profile_call)call));
		ck_assert_msg(!strstr(text, line) == !profile->error[call], "%s: %s in: %s",
			      profile->name, line, text);
	}
	ck_assert(!strstr(text, "MRF-E3017") || strstr(text, profile->what));
}

static void try_calls_of_region(const struct mrf_profile *profile, struct fid_mr *mr)
{
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct iovec iov = { memory, 4096 };
	uint64_t base, key;
	uint8_t raw[MRF_RAWKEY_MAX];
	size_t size = sizeof(raw);
	struct fid_cntr *cntr;
	struct fid ep = { .fclass = FI_CLASS_EP };
	int ret;

	ret = fi_mr_raw_attr(mr, &base, raw, &size, 0);
	want(profile, MRF_PROFILE_RAW_ATTR, ret);
	if (profile->error[MRF_PROFILE_MAP_RAW])
		want(profile, MRF_PROFILE_MAP_RAW, fi_mr_map_raw(domain, 0, raw, size, &key, 0));
	ck_assert_int_eq(fi_cntr_open(domain, &cntr_attr, &cntr, NULL), 0);
	want(profile, MRF_PROFILE_BIND_CNTR, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
	want(profile, MRF_PROFILE_BIND_EP, fi_mr_bind(mr, &ep, 0));
	want(profile, MRF_PROFILE_ENABLE, fi_mr_enable(mr));
	want(profile, MRF_PROFILE_REFRESH, fi_mr_refresh(mr, &iov, 1, 0));
	ret = fi_close(&mr->fid);
	if (ret == -FI_EBUSY) {
		ck_assert_int_eq(fi_close(&cntr->fid), 0);
		ck_assert_int_eq(fi_close(&mr->fid), 0);
	} else {
		ck_assert_int_eq(ret, 0);
		ck_assert_int_eq(fi_close(&cntr->fid), 0);
	}
}

/* One segment is enough for every provider. */
static void try_vector(const struct mrf_profile *profile)
{
	const struct iovec iov = { memory, 4096 };
	struct fid_mr *mr;
	int ret = fi_mr_regv(domain, &iov, 1, FI_SEND, 0, 0, 0, &mr, NULL);

	want(profile, MRF_PROFILE_REGV, ret);
	if (!ret)
		ck_assert_int_eq(fi_close(&mr->fid), 0);
}

static void try_report(const struct mrf_profile *profile)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_eq *eq;

	ck_assert_int_eq(fi_eq_open(fabric, &attr, &eq, NULL), 0);
	want(profile, MRF_PROFILE_REG_MR, fi_domain_bind(domain, &eq->fid, FI_REG_MR));
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	domain = NULL;
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}

START_TEST(profile_has_its_calls_and_no_others)
{
	const struct mrf_profile *profile = open_profile((size_t)_i);
	struct fid_mr *mr;

	ck_assert_int_eq(reg(1, FI_REMOTE_READ | FI_REMOTE_WRITE, 7, &mr), 0);
	unit_capture(&cap);
	try_calls_of_region(profile, mr);
	try_vector(profile);
	try_report(profile);
	text = unit_captured(&cap);
	want_refusals(profile);
}
END_TEST

/* Without one, nothing of this is in force. */
START_TEST(without_a_profile_nothing_is_limited)
{
	struct fid_mr *mr;

	open_profile(0);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	unsetenv(VAR);
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert_int_eq(reg(SEGMENTS, FI_REMOTE_READ, UINT64_MAX - 1, &mr), 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
}
END_TEST

static TCase *tcase_profile(void)
{
	TCase *tc = tcase_create("profile");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, profiles_have_names_that_find_them);
	tcase_add_test(tc, lenient_is_refused_where_nothing_is_left_unchecked);
	tcase_add_test(tc, unknown_name_brings_those_that_are_like_it);
	tcase_add_test(tc, profile_that_is_named_in_part_is_not_called_unknown);
	tcase_add_test(tc, profiles_are_described_without_each_other);
	tcase_add_test(tc, custom_profile_is_in_force);
	tcase_add_loop_test(tc, profile_is_what_getinfo_says, 0, PROFILES);
	tcase_add_test(tc, program_that_offers_less_is_told_what_is_missing);
	tcase_add_test(tc, local_registration_is_only_required_where_it_is_offered);
	tcase_add_loop_test(tc, older_modes_are_in_force_where_they_are_accepted, 0, PROFILES);
	tcase_add_test(tc, unknown_profiles_and_two_contracts_are_refused);
	tcase_add_loop_test(tc, old_program_gets_no_profile_without_a_legacy_model, 0, PROFILES);
	tcase_add_loop_test(tc, profile_limits_the_segments_of_a_region, 0, PROFILES);
	tcase_add_loop_test(tc, profile_limits_the_keys_of_the_application, 0, PROFILES);
	tcase_add_test(tc, cxi_reports_no_registration);
	tcase_add_loop_test(tc, profile_has_its_calls_and_no_others, 0, PROFILES);
	tcase_add_test(tc, without_a_profile_nothing_is_limited);
	return tc;
}

UNIT_MAIN("profile", tcase_profile)
