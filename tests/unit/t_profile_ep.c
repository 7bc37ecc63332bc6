/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_PROFILE: endpoints keep to what the profile promises, on the fake fabric. t_profile has what
 * fi_getinfo says of it.
 */
#include <rdma/fi_atomic.h>
#include "atomic/atomic.h"
#include "contract/mr_offer.h"
#include "contract/profile.h"
#include "ep_fixture.h"

#define VAR "FI_MRFAB_PROFILE"
#define PROFILES 25
#define SHORT 8

static struct pair p;
static struct unit_capture cap;
static const struct mrf_profile *profile;

static void setup(void)
{
	fixture_setup();
	fixture_log();
	profile = NULL;
}

static void teardown(void)
{
	pair_close(&p);
	unsetenv(VAR);
	fixture_teardown();
}

/* Modes do not matter here, so they are the plain one's. */
static void open_with(const char *name)
{
	char why[192];

	ck_assert_int_eq(setenv(VAR, name, 1), 0);
	profile = mrf_profile_find(name, why, sizeof(why));
	ck_assert_ptr_nonnull(profile);
	pair_open(&p, PLAIN);
}

static void refused(ssize_t ret, int err, const char *code, const char *part)
{
	const char *text = unit_captured(&cap);

	ck_assert_msg(ret == -err && strstr(text, code) && strstr(text, part), "%s: %zd: %s",
		      profile->name, ret, text);
}

#define REFUSED(call, ...)                  \
	do {                                \
		ssize_t ret_;               \
                                            \
		unit_capture(&cap);         \
		ret_ = (call);              \
		refused(ret_, __VA_ARGS__); \
	} while (0)

/* --- keys ------------------------------------------------------------------------------- */

/* Whether they are rkeys or are asked about, peers reach the region with 4 bytes of key. */
START_TEST(short_provider_keys_lead_to_the_region)
{
	static const char *const custom[] = {
		"custom:key_size=4,mr_mode=LOCAL+PROV_KEY",
		"custom:key_size=4,mr_mode=ALLOCATED+PROV_KEY",
		"custom:key_size=4,mr_mode=PROV_KEY+ENDPOINT",
		"custom:key_size=4,mr_mode=ALLOCATED+PROV_KEY+VIRT_ADDR",
		"custom:key_size=4,mr_mode=LOCAL+ALLOCATED+PROV_KEY+RMA_EVENT",
	};
	struct node_opt opt = { 0 };
	char why[192];

	ck_assert_int_eq(setenv(VAR, custom[_i], 1), 0);
	profile = mrf_profile_find(custom[_i], why, sizeof(why));
	ck_assert_msg(profile, "%s", why);
	opt.mr_mode = (int)(profile->table & MRF_MR_REQUIRABLE);
	pair_open(&p, &opt);
	if (opt.mr_mode & FI_MR_ENDPOINT) {
		ck_assert_int_eq(fi_mr_bind(p.mr, &p.b.ep->fid, 0), 0);
		ck_assert_int_eq(fi_mr_enable(p.mr), 0);
		p.key = fi_mr_key(p.mr);
	}
	ck_assert_uint_le(p.key, UINT32_MAX);
	memset(p.src, 0x5a, SHORT);
	pair_write(&p, 0, SHORT);
	want_ok(&p.a, pair_ctx(&p, 0));
	ck_assert_mem_eq(p.dst, p.src, SHORT);
	if (opt.mr_mode & FI_MR_ENDPOINT) {
		/* The endpoint closes first. */
		must_close(&p.b.ep->fid);
		p.b.ep = NULL;
	}
}
END_TEST

/* Where keys are short, a small one is not taken for what is left of a longer one. */
START_TEST(unknown_short_key_is_not_called_cut)
{
	const char *text;

	ck_assert_int_eq(setenv(VAR, "custom:key_size=4,mr_mode=ALLOCATED+PROV_KEY", 1), 0);
	pair_open(&p, &(struct node_opt){ .mr_mode = FI_MR_ALLOCATED | FI_MR_PROV_KEY });
	p.key += 100;
	unit_capture(&cap);
	pair_write(&p, 0, SHORT);
	want_err(&p.a, pair_ctx(&p, 0), FI_EKEYREJECTED, "no such region");
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, "no such region") && !strstr(text, "so small"), "%s", text);
}
END_TEST

/* --- sizes ------------------------------------------------------------------------------ */

START_TEST(more_bytes_than_inject_size_are_refused)
{
	unsigned limit;

	open_with(mrf_profile_at((size_t)_i)->name);
	limit = profile->promise->inject;
	if (profile->promise->caps & FI_RMA) {
		/* The fast path is open from here on, if it is at all. */
		pair_write(&p, 0, SHORT);
		want_ok(&p.a, pair_ctx(&p, 0));
	}
	ck_assert_int_eq(fi_inject(p.a.ep, p.src, limit, p.to), 0);
	REFUSED(fi_inject(p.a.ep, p.src, limit + 1, p.to), FI_EMSGSIZE, "MRF-E4008",
		"but inject_size is");
	if (!(profile->promise->caps & FI_RMA))
		return;
	ck_assert_int_eq(fi_inject_write(p.a.ep, p.src, limit, p.to, p.base, p.key), 0);
	REFUSED(fi_inject_write(p.a.ep, p.src, limit + 1, p.to, p.base, p.key), FI_EMSGSIZE,
		"MRF-E4008: fi_inject_write: ", "but inject_size is");
}
END_TEST

START_TEST(injected_atomics_keep_to_inject_size)
{
	open_with("opx");
	ck_assert_int_eq(fi_inject_atomic(p.a.ep, p.src, 2, p.to, p.base, p.key, FI_UINT64, FI_SUM),
			 0);
	REFUSED(fi_inject_atomic(p.a.ep, p.src, 3, p.to, p.base, p.key, FI_UINT64, FI_SUM),
		FI_EMSGSIZE, "MRF-E4253: fi_inject_atomic: 24 bytes", "inject_size is 16");
}
END_TEST

START_TEST(messages_longer_than_max_msg_size_are_refused)
{
	open_with("usnic");
	ck_assert_int_eq(fi_send(p.a.ep, p.src, 1472, NULL, p.to, NULL), 0);
	REFUSED(fi_send(p.a.ep, p.src, 1473, NULL, p.to, NULL), FI_EMSGSIZE, "MRF-E4072",
		"max_msg_size, 1472");
}
END_TEST

START_TEST(endpoints_inject_as_much_as_they_were_asked_for)
{
	struct fid_ep *ep;

	open_with("tcp-rxm");
	ck_assert_uint_eq(node_ep(&p.a)->inject, 64);
	ck_assert_int_eq(fi_close(&p.b.ep->fid), 0);
	p.b.info->tx_attr->inject_size = (size_t)_i;
	ck_assert_int_eq(fi_endpoint(p.b.domain, p.b.info, &ep, NULL), 0);
	p.b.ep = ep;
	ck_assert_uint_eq(node_ep(&p.b)->inject, _i < MRF_LIMIT_INJECT ? _i : MRF_LIMIT_INJECT);
}
END_TEST

/* --- numbers of buffers ----------------------------------------------------------------- */

static struct iovec iov[MRF_LIMIT_IOV + 1];

static void spread_buffers(void)
{
	size_t i;

	for (i = 0; i < MRF_LIMIT_IOV + 1; i++)
		iov[i] = (struct iovec){ p.src + i * SHORT, SHORT };
}

START_TEST(more_buffers_than_iov_limit_are_refused)
{
	const struct mrf_promise *promise;

	open_with(mrf_profile_at((size_t)_i)->name);
	promise = profile->promise;
	spread_buffers();
	ck_assert_int_eq(fi_sendv(p.a.ep, iov, NULL, promise->tx_iov, p.to, NULL), 0);
	REFUSED(fi_sendv(p.a.ep, iov, NULL, promise->tx_iov + 1, p.to, NULL), FI_EINVAL,
		"MRF-E4003", "local buffers");
	ck_assert_int_eq(fi_recvv(p.a.ep, iov, NULL, promise->rx_iov, FI_ADDR_UNSPEC, NULL), 0);
	REFUSED(fi_recvv(p.a.ep, iov, NULL, promise->rx_iov + 1, FI_ADDR_UNSPEC, NULL), FI_EINVAL,
		"MRF-E4003", "local buffers");
	if (promise->caps & FI_RMA)
		REFUSED(fi_writev(p.a.ep, iov, NULL, promise->tx_iov + 1, p.to, p.base, p.key,
				  NULL),
			FI_EINVAL, "MRF-E4003", "local buffers");
}
END_TEST

START_TEST(more_remote_buffers_than_rma_iov_limit_are_refused)
{
	struct fi_rma_iov rma[2] = { { 0, SHORT, PAIR_KEY }, { SHORT, SHORT, PAIR_KEY } };
	struct iovec here = { NULL, 2 * SHORT };
	struct fi_msg_rma msg = { .msg_iov = &here, .iov_count = 1, .rma_iov = rma };
	struct fi_rma_ioc ioc[2] = { { 0, 1, PAIR_KEY }, { SHORT, 1, PAIR_KEY } };
	struct fi_ioc values = { NULL, 2 };
	struct fi_msg_atomic atomic = { .msg_iov = &values,
					.iov_count = 1,
					.rma_iov = ioc,
					.rma_iov_count = 2,
					.datatype = FI_UINT64,
					.op = FI_ATOMIC_WRITE };

	open_with("verbs");
	here.iov_base = p.src;
	values.addr = p.src;
	msg.addr = atomic.addr = p.to;
	msg.rma_iov_count = 2;
	REFUSED(fi_writemsg(p.a.ep, &msg, 0), FI_EINVAL, "MRF-E4004", "an array of 1 to 1");
	REFUSED(fi_atomicmsg(p.a.ep, &atomic, 0), FI_EINVAL, "MRF-E4246", "an array of 1 to 1");
	msg.rma_iov_count = 1;
	here.iov_len = SHORT;
	ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, 0), 0);
}
END_TEST

/* --- what is not there ------------------------------------------------------------------ */

START_TEST(immediate_data_are_refused_if_there_are_none)
{
	open_with(_i ? "usnic" : "ucx");
	REFUSED(fi_senddata(p.a.ep, p.src, SHORT, NULL, 7, p.to, NULL), FI_ENOSYS, "MRF-E4082",
		"cq_data_size is 0");
	REFUSED(fi_injectdata(p.a.ep, p.src, SHORT, 7, p.to), FI_ENOSYS, "MRF-E4082",
		"cq_data_size is 0");
	if (_i)
		return;
	REFUSED(fi_writedata(p.a.ep, p.src, SHORT, NULL, 7, p.to, p.base, p.key, NULL), FI_ENOSYS,
		"MRF-E4082", "FI_MRFAB_PROFILE=ucx");
}
END_TEST

/* --- atomic operations ------------------------------------------------------------------- */

/* What the adapters have that the profiles verbs and cxi-* stand for, in other words than in lib/. */
static bool verbs_has(unsigned family, unsigned type, unsigned op)
{
	bool known = type == FI_INT64 || type == FI_UINT64 || type == FI_DOUBLE || type == FI_FLOAT;

	switch (op) {
	case FI_ATOMIC_WRITE:
		return known && family == MRF_ATOMIC_BASE;
	case FI_ATOMIC_READ:
	case FI_SUM:
		return known && family == MRF_ATOMIC_FETCH;
	case FI_CSWAP:
		return known && family == MRF_ATOMIC_COMPARE;
	default:
		return false;
	}
}

static bool cxi_has(unsigned type, unsigned op)
{
	bool integer = type <= FI_UINT64,
	     complex = type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX;

	switch (op) {
	case FI_PROD:
		return false;
	case FI_SUM:
	case FI_ATOMIC_READ:
	case FI_ATOMIC_WRITE:
	case FI_CSWAP:
	case FI_CSWAP_NE:
		return integer || complex || type == FI_FLOAT || type == FI_DOUBLE;
	case FI_MIN:
	case FI_MAX:
	case FI_CSWAP_LE:
	case FI_CSWAP_LT:
	case FI_CSWAP_GE:
	case FI_CSWAP_GT:
		return integer || type == FI_FLOAT || type == FI_DOUBLE;
	default:
		return integer;
	}
}

static bool provider_has(unsigned family, unsigned type, unsigned op)
{
	if (!mrf_atomic_valid(family, type, op))
		return false;
	if (!strcmp(profile->name, "verbs"))
		return verbs_has(family, type, op);
	if (strstr(profile->name, "rxm"))
		return mrf_atomic_size(type) <= 8;
	return strncmp(profile->name, "cxi-", 4) || cxi_has(type, op);
}

static int valid(unsigned family, unsigned type, unsigned op, size_t *count)
{
	switch (family) {
	case MRF_ATOMIC_BASE:
		return fi_atomicvalid(p.a.ep, (enum fi_datatype)type, (enum fi_op)op, count);
	case MRF_ATOMIC_FETCH:
		return fi_fetch_atomicvalid(p.a.ep, (enum fi_datatype)type, (enum fi_op)op, count);
	default:
		return fi_compare_atomicvalid(p.a.ep, (enum fi_datatype)type, (enum fi_op)op,
					      count);
	}
}

static void try_kind(unsigned family, unsigned type, unsigned op, bool one)
{
	static const uint64_t flags[] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };
	size_t count = 0, most = one ? 1 : 4096 / mrf_atomic_size(type);
	struct fi_atomic_attr attr = { 0 };
	bool has = provider_has(family, type, op);
	int ret = fi_query_atomic(p.a.domain, (enum fi_datatype)type, (enum fi_op)op, &attr,
				  flags[family]);

	ck_assert_msg(!ret == has, "%s: family %u, type %u, op %u: %d", profile->name, family, type,
		      op, ret);
	ck_assert_int_eq(valid(family, type, op, &count), ret);
	ck_assert_uint_eq(attr.count, has ? most : 0);
	ck_assert_uint_eq(count, has ? most : 0);
}

START_TEST(atomic_operations_are_those_of_the_provider)
{
	unsigned family, type, op;
	bool one;

	open_with(mrf_profile_at((size_t)_i)->name);
	if (!(profile->promise->caps & FI_ATOMIC))
		return;
	one = !strcmp(profile->name, "verbs") || !strncmp(profile->name, "cxi-", 4);
	for (family = 0; family < 3; family++) {
		for (type = 0; type <= FI_LONG_DOUBLE_COMPLEX; type++) {
			for (op = 0; op <= FI_MSWAP; op++)
				try_kind(family, type, op, one);
		}
	}
}
END_TEST

START_TEST(atomic_operations_that_a_provider_lacks_are_refused)
{
	open_with("verbs");
	REFUSED(fi_atomic(p.a.ep, p.src, 1, NULL, p.to, p.base, p.key, FI_UINT64, FI_SUM, NULL),
		FI_ENOSYS, "MRF-E4241", "with FI_MRFAB_PROFILE=verbs");
	REFUSED(fi_fetch_atomic(p.a.ep, p.src, 1, NULL, p.src, NULL, p.to, p.base, p.key, FI_UINT32,
				FI_SUM, NULL),
		FI_EINVAL, "MRF-E4241", "with FI_MRFAB_PROFILE=verbs");
	REFUSED(fi_fetch_atomic(p.a.ep, p.src, 2, NULL, p.src, NULL, p.to, p.base, p.key, FI_UINT64,
				FI_SUM, NULL),
		FI_EMSGSIZE, "MRF-E4247", "at most 1");
	ck_assert_int_eq(fi_fetch_atomic(p.a.ep, p.src, 1, NULL, p.src, NULL, p.to, p.base, p.key,
					 FI_UINT64, FI_SUM, NULL),
			 0);
}
END_TEST

START_TEST(endpoints_have_the_capabilities_of_the_profile_only)
{
	struct fid_ep *ep;

	open_with(mrf_profile_at((size_t)_i)->name);
	ck_assert_uint_eq(node_ep(&p.a)->caps, MRF_CAPS & profile->promise->caps);
	if (!(MRF_CAPS_ALL & ~profile->promise->caps & ~FI_HMEM))
		return;
	p.a.info->caps = MRF_CAPS_ALL & ~profile->promise->caps & ~FI_HMEM;
	REFUSED(fi_endpoint(p.a.domain, p.a.info, &ep, NULL), FI_EINVAL, "MRF-E4059",
		"is not offered");
}
END_TEST

static TCase *tcase_profile_ep(void)
{
	TCase *tc = tcase_create("profile_ep");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, short_provider_keys_lead_to_the_region, 0, 5);
	tcase_add_test(tc, unknown_short_key_is_not_called_cut);
	tcase_add_loop_test(tc, more_bytes_than_inject_size_are_refused, 0, PROFILES);
	tcase_add_test(tc, injected_atomics_keep_to_inject_size);
	tcase_add_loop_test(tc, endpoints_inject_as_much_as_they_were_asked_for, 255, 258);
	tcase_add_test(tc, messages_longer_than_max_msg_size_are_refused);
	tcase_add_loop_test(tc, more_buffers_than_iov_limit_are_refused, 0, PROFILES);
	tcase_add_test(tc, more_remote_buffers_than_rma_iov_limit_are_refused);
	tcase_add_loop_test(tc, immediate_data_are_refused_if_there_are_none, 0, 2);
	tcase_add_loop_test(tc, atomic_operations_are_those_of_the_provider, 0, PROFILES);
	tcase_add_test(tc, atomic_operations_that_a_provider_lacks_are_refused);
	tcase_add_loop_test(tc, endpoints_have_the_capabilities_of_the_profile_only, 0, PROFILES);
	return tc;
}

UNIT_MAIN("profile_ep", tcase_profile_ep)
