/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/profile.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/names.h"
#include "contract/custom.h"
#include "contract/limits.h"
#include "contract/promises.h"

#define VAK (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define LEGACY ((uint64_t)(FI_MR_BASIC | FI_MR_SCALABLE))
#define EVERY_KEY UINT64_MAX

/* Calls, in the order of enum mrf_profile_call. */
#define CALLS_V(raw, map, cntr, ep, enable, refresh, reg_mr, regv)                  \
	{                                                                           \
		[MRF_PROFILE_RAW_ATTR] = (raw), [MRF_PROFILE_MAP_RAW] = (map),      \
		[MRF_PROFILE_BIND_CNTR] = (cntr), [MRF_PROFILE_BIND_EP] = (ep),     \
		[MRF_PROFILE_ENABLE] = (enable), [MRF_PROFILE_REFRESH] = (refresh), \
		[MRF_PROFILE_REG_MR] = (reg_mr), [MRF_PROFILE_REGV] = (regv),       \
	}
#define CALLS(...) CALLS_V(__VA_ARGS__, 0)
#define NO FI_ENOSYS
#define NONE_OF_THEM CALLS(NO, NO, NO, NO, NO, NO, NO)
#define ALL_OF_THEM CALLS(0, 0, 0, 0, 0, 0, 0)
#define OF_CXI CALLS(FI_EINVAL, NO, 0, 0, 0, FI_EINVAL, 0)
#define OF_GNI(refresh) CALLS(FI_EOPNOTSUPP, FI_EOPNOTSUPP, NO, NO, FI_EOPNOTSUPP, refresh, NO)

/* What mistakes are answered with, and habits. */
#define FLAG(err) .wrong = { [MRF_PROFILE_FLAG] = (err) }
#define BIND(err, second) .wrong = { [MRF_PROFILE_BIND] = (err), [MRF_PROFILE_SECOND] = (second) }
#define HABITS(...) .habits = (__VA_ARGS__)
#define HABITS_OF_CXI \
	MRF_HABIT_REGION_FIRST | MRF_HABIT_ONE_EP | MRF_HABIT_ONE_CNTR | MRF_HABIT_NO_REPORTS
#define HABITS_OF_PSM MRF_HABIT_REGION_FIRST | MRF_HABIT_ONE_CNTR | MRF_HABIT_LOOSE_BIND
#define HABITS_OF_GNI MRF_HABIT_RIGHT_NEEDED | MRF_HABIT_NO_FLAGS

/* What is left unchecked. */
#define LAX(...) .lax = (__VA_ARGS__)
#define LAX_LIKE_TCP MRF_LAX_FLAG | MRF_LAX_OFFSET | MRF_LAX_ACCESS | MRF_LAX_LEN
#define LAX_LIKE_CXI MRF_LAX_FLAG | MRF_LAX_OFFSET | MRF_LAX_LEN | MRF_LAX_BIND

/* Addresses: their form, and that they are not looked up by name. */
#define ADDR(form_) .form = &mrf_form_##form_, NO_NAMES
#define NO_NAMES .by_name = NO
#define AV(kind) .av = MRF_AV_##kind
#define NO_TABLES(kind, err) AV(kind), .no_tables = (err)

/*
 * As libfabric's releases 1.17 to 2.x have them. opx and bgq take counters that never count: here there is
 * no such call. mr_iov_limit is this library's where the provider's is greater. What is said of address
 * vectors was measured for ofi_rxm, sockets, rxd, shm and mrail; of psm2, psm3 and opx it is from
 * general knowledge, and of efa, cxi, ucx, lpp and usnic from the source of release 2.1. An address of bgq has no
 * room for host and port; those of ucx have no name in libfabric 1.17, and those of gni are left out.
 */
static const struct mrf_profile profiles[] = {
	{ "verbs", "verbs, InfiniBand and RoCE adapters", VAK | FI_MR_LOCAL | FI_MR_BASIC,
	  EVERY_KEY, MRF_LIMIT_MR_CNT, 4, 1, FI_EINVAL, NONE_OF_THEM, .promise = &mrf_promise_verbs,
	  LAX(LAX_LIKE_TCP) },
	{ "verbs-rxm", "verbs;ofi_rxm, verbs with FI_EP_RDM", VAK | FI_MR_LOCAL | FI_MR_BASIC,
	  EVERY_KEY, 0, 4, 1, FI_EINVAL, NONE_OF_THEM, .promise = &mrf_promise_rxm,
	  HABITS(MRF_HABIT_LOCAL_IF_OFFERED), LAX(LAX_LIKE_TCP), AV(HINTED) },
	{ "efa", "efa, adapters of Amazon's cloud", VAK | FI_MR_BASIC, EVERY_KEY, MRF_LIMIT_MR_CNT,
	  4, 1, FI_EINVAL, NONE_OF_THEM, .promise = &mrf_promise_efa, LAX(MRF_LAX_OFFSET),
	  ADDR(efa), AV(TABLES), .av_type = FI_AV_TABLE },
	{ "efa-direct", "efa, adapters of Amazon's cloud, on the efa-direct fabric",
	  VAK | FI_MR_LOCAL | FI_MR_BASIC, EVERY_KEY, MRF_LIMIT_MR_CNT, 4, 1, FI_EINVAL,
	  NONE_OF_THEM, .promise = &mrf_promise_efa_direct, LAX(MRF_LAX_OFFSET), ADDR(efa),
	  AV(TABLES), .av_type = FI_AV_TABLE },
	{ "cxi-client", "cxi, Slingshot, from libfabric 1.21 on, with keys of the application",
	  FI_MR_ENDPOINT | FI_MR_ALLOCATED, UINT32_MAX, 100, 4, 1, FI_ENOSYS, OF_CXI,
	  .promise = &mrf_promise_cxi, BIND(FI_EINVAL, FI_EINVAL),
	  HABITS(HABITS_OF_CXI | MRF_HABIT_KEY_AT_ONCE), LAX(LAX_LIKE_CXI), ADDR(cxi) },
	{ "cxi-prov", "cxi, with provider keys", FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	  EVERY_KEY, 100, 8, 1, FI_ENOSYS, OF_CXI, .promise = &mrf_promise_cxi,
	  BIND(FI_EINVAL, FI_EINVAL), HABITS(HABITS_OF_CXI), LAX(LAX_LIKE_CXI), ADDR(cxi) },
	{ "cxi-odp", "cxi, with provider keys and paging on demand",
	  FI_MR_ENDPOINT | FI_MR_PROV_KEY, EVERY_KEY, 100, 8, 1, FI_ENOSYS, OF_CXI,
	  .promise = &mrf_promise_cxi, BIND(FI_EINVAL, FI_EINVAL), HABITS(HABITS_OF_CXI),
	  LAX(LAX_LIKE_CXI), ADDR(cxi) },
	{ "ucx", "ucx, over UCP", VAK | FI_MR_RAW | FI_MR_BASIC, EVERY_KEY, 65536, 8, 1, FI_EINVAL,
	  CALLS(0, 0, NO, NO, NO, NO, NO), .promise = &mrf_promise_ucx,
	  LAX(MRF_LAX_FLAG | MRF_LAX_OFFSET), NO_TABLES(MAPS, FI_EINVAL) },
	{ "mrail", "ofi_mrail, several rails", FI_MR_RAW, EVERY_KEY, 0, 8, 1, FI_EINVAL,
	  CALLS(0, 0, NO, NO, FI_EINVAL, FI_EINVAL, NO), .promise = &mrf_promise_mrail,
	  LAX(LAX_LIKE_TCP), NO_NAMES, AV(HINTED), .av_type = FI_AV_TABLE },
	{ "tcp", "tcp", LEGACY, EVERY_KEY, 0, 8, 1, FI_EINVAL,
	  CALLS(NO, NO, NO, NO, NO, NO, FI_EBADFLAGS), .promise = &mrf_promise_tcp,
	  LAX(LAX_LIKE_TCP) },
	{ "tcp-rxm", "tcp;ofi_rxm, tcp with FI_EP_RDM", LEGACY, EVERY_KEY, 0, 8, 1, FI_EINVAL,
	  NONE_OF_THEM, .promise = &mrf_promise_tcp_rxm, LAX(LAX_LIKE_TCP), AV(HINTED) },
	{ "sockets", "sockets", LEGACY, EVERY_KEY, 65535, 8, 8, FI_EINVAL,
	  CALLS(NO, NO, 0, FI_EINVAL, NO, NO, 0), .promise = &mrf_promise_sockets,
	  BIND(FI_EINVAL, 0), HABITS(MRF_HABIT_REGION_FIRST), LAX(LAX_LIKE_TCP), AV(HINTED) },
	{ "rxd", "udp;ofi_rxd", LEGACY, EVERY_KEY, 0, 8, 1, FI_EINVAL, NONE_OF_THEM,
	  .promise = &mrf_promise_rxd, LAX(LAX_LIKE_TCP), NO_NAMES, AV(DOMAIN) },
	{ "shm", "shm, processes on one host", LEGACY, EVERY_KEY, 0, 8, 4, FI_EINVAL, NONE_OF_THEM,
	  .promise = &mrf_promise_shm, LAX(LAX_LIKE_TCP), ADDR(shm), AV(HINTED) },
	{ "shm-fast", "shm, processes on one host, if FI_MR_VIRT_ADDR is offered", FI_MR_VIRT_ADDR,
	  EVERY_KEY, 0, 8, 4, FI_EINVAL, NONE_OF_THEM, .promise = &mrf_promise_shm_fast,
	  LAX(MRF_LAX_FLAG | MRF_LAX_ACCESS | MRF_LAX_LEN), ADDR(shm), AV(HINTED) },
	{ "psm2", "psm2, Omni-Path", LEGACY, EVERY_KEY, 65535, 8, MRF_LIMIT_MR_IOV, FI_EINVAL,
	  CALLS(0, 0, 0, 0, 0, 0, NO), .promise = &mrf_promise_psm2, BIND(FI_EINVAL, FI_EBUSY),
	  HABITS(HABITS_OF_PSM), LAX(MRF_LAX_FLAG), ADDR(psmx2) },
	{ "psm3", "psm3, Omni-Path and Ethernet", LEGACY, EVERY_KEY, 65535, 8, MRF_LIMIT_MR_IOV,
	  FI_EINVAL, CALLS(0, 0, 0, 0, 0, 0, NO), .promise = &mrf_promise_psm3,
	  BIND(FI_EINVAL, FI_EBUSY), HABITS(HABITS_OF_PSM), LAX(MRF_LAX_FLAG), ADDR(psmx3) },
	{ "opx", "opx, Omni-Path", FI_MR_SCALABLE, UINT64_MAX - 1, 0, 8, 1, FI_EINVAL, NONE_OF_THEM,
	  .promise = &mrf_promise_opx, FLAG(FI_EINVAL), LAX(MRF_LAX_OFFSET), ADDR(opx) },
	{ "gni", "gni, Aries, up to libfabric 1.20", FI_MR_MMU_NOTIFY, EVERY_KEY, 65535, 8, 1,
	  FI_EOPNOTSUPP, OF_GNI(0), .promise = &mrf_promise_all, HABITS(HABITS_OF_GNI) },
	{ "gni-basic", "gni, Aries, up to libfabric 1.20, if FI_MR_BASIC is offered",
	  VAK | FI_MR_BASIC, EVERY_KEY, 65535, 8, 1, FI_EOPNOTSUPP, OF_GNI(NO),
	  .promise = &mrf_promise_all, HABITS(HABITS_OF_GNI) },
	{ "bgq", "bgq, Blue Gene/Q, up to libfabric 1.20", FI_MR_SCALABLE, UINT16_MAX, 65536, 2, 1,
	  FI_EINVAL, CALLS_V(NO, NO, NO, NO, NO, NO, NO, NO), .promise = &mrf_promise_all,
	  FLAG(FI_EINVAL), HABITS(MRF_HABIT_NO_FLAGS), LAX(MRF_LAX_OFFSET) },
	{ "lpp", "lpp, from libfabric 2.0 on", VAK | FI_MR_BASIC, EVERY_KEY, 256, 8, 1, FI_EINVAL,
	  NONE_OF_THEM, .promise = &mrf_promise_lpp, FLAG(FI_EINVAL), NO_NAMES,
	  NO_TABLES(MAPS_ONLY, FI_EINVAL), .av_type = FI_AV_MAP },
	{ "usnic", "usnic, Cisco's adapters: datagrams, no RMA",
	  FI_MR_ALLOCATED | FI_MR_LOCAL | FI_MR_BASIC, EVERY_KEY, 65535, 0, 1, FI_EINVAL,
	  CALLS(NO, NO, NO, NO, NO, NO, FI_EOPNOTSUPP), .promise = &mrf_promise_usnic,
	  HABITS(MRF_HABIT_NO_KEYS), LAX(MRF_LAX_OFFSET), NO_TABLES(MAPS_ONLY, FI_ENOSYS) },
	{ "netdir", "netdir, Network Direct on Windows, up to libfabric 1.20",
	  VAK | FI_MR_LOCAL | FI_MR_BASIC, EVERY_KEY, MRF_LIMIT_MR_CNT, 0, 1, FI_EINVAL,
	  CALLS_V(NO, NO, NO, NO, NO, NO, 0, NO), .promise = &mrf_promise_all, FLAG(FI_EINVAL),
	  HABITS(MRF_HABIT_NO_FLAGS) },
	{ "rma-event", "a provider that requires FI_MR_RMA_EVENT; there is none yet",
	  FI_MR_RMA_EVENT, EVERY_KEY, MRF_LIMIT_MR_CNT, 8, MRF_LIMIT_MR_IOV, FI_EINVAL, ALL_OF_THEM,
	  .promise = &mrf_promise_all },
};

const struct mrf_profile *mrf_profile_at(size_t i)
{
	return i < MRF_ARRAY_SIZE(profiles) ? &profiles[i] : NULL;
}

#define CUSTOM "custom:"
#define IN_FILE "file:"
#define LENIENT "+lenient"

/* Of a name without its ending. */
static size_t bare_len(const char *name)
{
	size_t len = strlen(name), ending = strlen(LENIENT);

	if (len < ending || strcasecmp(name + len - ending, LENIENT) != 0)
		return len;
	return len - ending;
}

bool mrf_profile_lenient(const char *name)
{
	return name[bare_len(name)];
}

static const struct mrf_profile *find_custom_profile(const char *name, char *why, size_t len)
{
	bool is_file = !strncasecmp(name, IN_FILE, strlen(IN_FILE));

	if (!mrf_profile_lenient(name) && is_file)
		return mrf_custom_file(name + strlen(IN_FILE), why, len);
	if (!mrf_profile_lenient(name))
		return mrf_custom_profile(name + strlen(CUSTOM), why, len);
	snprintf(why, len, "no provider is behind it, so there is nothing for " LENIENT);
	return NULL;
}

/* Does a part of the name begin so, or the whole? Behind a comma it is no longer the name. */
static bool has_part(const char *full, const char *name, size_t bare)
{
	const char *at;

	for (at = full; *at && *at != ','; at++) {
		if ((at == full || strchr("-_;", at[-1])) && !strncasecmp(name, at, bare))
			return true;
	}
	return false;
}

/* By the name of the provider, too, as libfabric has it: "cxi", "ofi_rxm" or "verbs;ofi_rxm". */
static bool is_similar(const struct mrf_profile *profile, const char *name, size_t bare)
{
	return bare > 1 &&
	       (has_part(profile->name, name, bare) || has_part(profile->what, name, bare));
}

/* "tcp+av-map" and "custom" name something, but not all of it. */
static bool say_ending(const char *name, char *why, size_t len)
{
	size_t i, bare = strcspn(name, "+");

	if (mrf_names_is(name, bare, "custom") || mrf_names_is(name, bare, "file")) {
		snprintf(
			why, len,
			"words must follow behind a colon, as in custom:key_size=4, or the name of "
			"a file, as in file:/tmp/nic");
		return true;
	}
	for (i = 0; name[bare] && i < MRF_ARRAY_SIZE(profiles); i++) {
		if (!mrf_names_is(name, bare, profiles[i].name))
			continue;
		snprintf(why, len, "only " LENIENT " can follow the name of a profile");
		return true;
	}
	return false;
}

static void say_similar(const char *name, size_t bare, char *why, size_t len)
{
	char names[96] = "";
	size_t i, at = 0;

	for (i = 0; i < MRF_ARRAY_SIZE(profiles); i++) {
		if (is_similar(&profiles[i], name, bare) && at < sizeof(names))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       at ? ", " : "", profiles[i].name);
	}
	if (at)
		snprintf(why, len, "there is no such profile; similar ones: %s", names);
	else
		snprintf(why, len, "there is no such profile; mrfab_run --profile=list names them");
}

/* Whoever asks for it where there is nothing of the kind would think that it is in force. */
static const struct mrf_profile *check_lenient(const struct mrf_profile *profile, const char *name,
					       char *why, size_t len)
{
	if (profile->lax || !mrf_profile_lenient(name))
		return profile;
	snprintf(why, len,
		 "nothing that %s leaves unchecked is accepted here, so there is nothing "
		 "for " LENIENT,
		 profile->name);
	return NULL;
}

const struct mrf_profile *mrf_profile_find(const char *name, char *why, size_t len)
{
	size_t i, bare = bare_len(name);

	if (!strncasecmp(name, CUSTOM, strlen(CUSTOM)) ||
	    !strncasecmp(name, IN_FILE, strlen(IN_FILE)))
		return find_custom_profile(name, why, len);
	for (i = 0; i < MRF_ARRAY_SIZE(profiles); i++) {
		if (mrf_names_is(name, bare, profiles[i].name))
			return check_lenient(&profiles[i], name, why, len);
	}
	if (!say_ending(name, why, len))
		say_similar(name, bare, why, len);
	return NULL;
}

struct mrf_mr_offer mrf_profile_offer(const struct mrf_profile *profile, bool local)
{
	struct mrf_mr_offer offer = { .exact = true, .table = profile->table };

	if (profile->habits & MRF_HABIT_LOCAL_IF_OFFERED && !local)
		offer.table &= ~(uint64_t)FI_MR_LOCAL;
	return offer;
}

const struct mrf_form *mrf_profile_form(const struct mrf_profile *profile, uint32_t format)
{
	const struct mrf_form *form = profile ? profile->form : NULL;

	/* A program that has made its fi_info itself may have socket addresses in it. */
	if (form && (format == form->format || format == FI_FORMAT_UNSPEC))
		return form;
	return &mrf_form_socket;
}

const char *mrf_profile_call_name(enum mrf_profile_call call)
{
	static const char *const names[MRF_PROFILE_CALLS] = {
		[MRF_PROFILE_RAW_ATTR] = "fi_mr_raw_attr",
		[MRF_PROFILE_MAP_RAW] = "fi_mr_map_raw",
		[MRF_PROFILE_BIND_CNTR] = "fi_mr_bind of a counter",
		[MRF_PROFILE_BIND_EP] = "fi_mr_bind of an endpoint",
		[MRF_PROFILE_ENABLE] = "fi_mr_enable",
		[MRF_PROFILE_REFRESH] = "fi_mr_refresh",
		[MRF_PROFILE_REG_MR] = "fi_domain_bind with FI_REG_MR",
		[MRF_PROFILE_REGV] = "fi_mr_regv and fi_mr_regattr",
	};

	return names[call];
}
