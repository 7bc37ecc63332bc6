/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_PROFILE: what fi_getinfo says of endpoints (contract/promise.h), for each profile, on one fake
 * device. t_profile has registrations, and t_profile_ep what endpoints refuse.
 */
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "contract/limits.h"
#include "contract/mr_offer.h"
#include "contract/profile.h"
#include "one_device.h"
#include "unit.h"

#define VAR "FI_MRFAB_PROFILE"
#define V17 FI_VERSION(1, 17)
#define ALL ((int)MRF_MR_REQUIRABLE)
#define PROFILES 25

static struct unit_capture cap;
static const char *text; /* what the last fi_getinfo logged */
static struct fi_info *hints, *info;

static void setup(void)
{
	one_device_use();
	unsetenv(VAR);
	unsetenv("FI_MRFAB_MR_MODE");
	hints = fi_allocinfo();
	ck_assert_ptr_nonnull(hints);
	info = NULL;
}

static void teardown(void)
{
	fi_freeinfo(hints);
	fi_freeinfo(info);
	unsetenv(VAR);
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

static const struct mrf_profile *use(size_t at)
{
	const struct mrf_profile *profile = mrf_profile_at(at);

	ck_assert_ptr_nonnull(profile);
	ck_assert_int_eq(setenv(VAR, profile->name, 1), 0);
	return profile;
}

static const struct mrf_profile *find(const char *name)
{
	char why[192];
	const struct mrf_profile *profile = mrf_profile_find(name, why, sizeof(why));

	ck_assert_msg(profile, "%s: %s", name, why);
	return profile;
}

/* --- the tables ------------------------------------------------------------------------ */
START_TEST(profile_promises_what_the_library_has)
{
	const struct mrf_promise *promise = mrf_profile_at((size_t)_i)->promise;

	ck_assert_uint_eq(promise->caps & ~MRF_CAPS_ALL, 0);
	ck_assert_uint_eq(promise->order & ~(MRF_MSG_ORDER | MRF_MSG_ORDER_EXTRA), 0);
	ck_assert_uint_le(promise->msg_size, MRF_LIMIT_MSG_SIZE);
	ck_assert_uint_le(promise->order_size, MRF_LIMIT_ORDER_SIZE);
	ck_assert_uint_le(promise->inject, MRF_LIMIT_INJECT);
	ck_assert_uint_le(promise->tx_iov, MRF_LIMIT_IOV);
	ck_assert_uint_le(promise->rx_iov, MRF_LIMIT_IOV);
	ck_assert_uint_le(promise->rma_iov, MRF_LIMIT_RMA_IOV);
	ck_assert_uint_le(promise->cq_data, MRF_LIMIT_CQ_DATA);
}
END_TEST

/* Some facts about the providers, written down a second time. */
START_TEST(profiles_have_the_limits_of_their_providers)
{
	static const struct {
		const char *name;
		uint64_t has, lacks;
		unsigned inject;
	} facts[] = {
		{ "verbs", FI_ATOMIC, FI_TAGGED | FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT, 256 },
		{ "verbs-rxm", FI_TAGGED | FI_ATOMIC, FI_FENCE | FI_RMA_EVENT, 256 },
		{ "efa", FI_TAGGED | FI_ATOMIC | FI_HMEM, FI_RMA_EVENT | FI_FENCE, 256 },
		{ "efa-direct", FI_RMA | FI_SOURCE, FI_TAGGED | FI_ATOMIC | FI_MULTI_RECV, 32 },
		{ "cxi-client", FI_RMA_EVENT | FI_SOURCE_ERR | FI_FENCE, FI_RMA_PMEM, 192 },
		{ "ucx", FI_TAGGED | FI_MULTI_RECV, FI_ATOMIC | FI_SOURCE, 256 },
		{ "tcp", FI_TAGGED | FI_RMA_PMEM, FI_ATOMIC | FI_HMEM | FI_FENCE, 128 },
		{ "tcp-rxm", FI_TAGGED | FI_ATOMIC, FI_FENCE | FI_HMEM | FI_RMA_EVENT, 64 },
		{ "sockets", FI_ATOMIC | FI_FENCE | FI_RMA_EVENT, FI_HMEM | FI_SOURCE_ERR, 255 },
		{ "shm", FI_ATOMIC | FI_HMEM | FI_LOCAL_COMM, FI_REMOTE_COMM | FI_FENCE, 256 },
		{ "psm2", FI_SOURCE_ERR | FI_ATOMIC, FI_HMEM, 64 },
		{ "opx", FI_ATOMIC | FI_TAGGED, FI_RMA_EVENT, 16 },
		{ "mrail", FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV, FI_ATOMIC, 48 },
		{ "usnic", FI_MSG | FI_SOURCE, FI_RMA | FI_TAGGED | FI_ATOMIC | FI_LOCAL_COMM,
		  256 },
		{ "gni", MRF_CAPS_ALL, 0, 256 },
	};
	const struct mrf_promise *promise;
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(facts); i++) {
		promise = find(facts[i].name)->promise;
		ck_assert_msg((promise->caps & facts[i].has) == facts[i].has, "%s", facts[i].name);
		ck_assert_msg(!(promise->caps & facts[i].lacks), "%s", facts[i].name);
		ck_assert_uint_eq(promise->inject, facts[i].inject);
	}
}
END_TEST

/* --- fi_getinfo ------------------------------------------------------------------------ */

/* Without hints, what a provider has is what it says; programs read it and go by it. */
START_TEST(profile_is_what_getinfo_says_of_endpoints)
{
	const struct mrf_profile *profile = use((size_t)_i);
	const struct mrf_promise *promise = profile->promise;
	uint64_t caps = promise->caps & ~(promise->order_atomic ? FI_ATOMIC : 0ull);

	hints->caps = 0;
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_uint_eq(info->caps, MRF_CAPS & caps);
	ck_assert_uint_eq(info->tx_attr->caps, MRF_CAPS_TX & caps);
	ck_assert_uint_eq(info->rx_attr->caps, MRF_CAPS_RX & caps);
	ck_assert_uint_eq(info->domain_attr->caps, MRF_CAPS_SECONDARY & promise->caps);
	ck_assert_uint_eq(info->tx_attr->msg_order, MRF_MSG_ORDER & promise->order);
	ck_assert_uint_eq(info->rx_attr->msg_order, MRF_MSG_ORDER & promise->order);
	ck_assert_uint_eq(info->tx_attr->inject_size, promise->inject);
	ck_assert_uint_eq(info->tx_attr->iov_limit, promise->tx_iov);
	ck_assert_uint_eq(info->tx_attr->rma_iov_limit, promise->rma_iov);
	ck_assert_uint_eq(info->rx_attr->iov_limit, promise->rx_iov);
	ck_assert_uint_eq(info->ep_attr->max_msg_size, promise->msg_size);
	ck_assert_uint_eq(info->ep_attr->max_order_raw_size,
			  promise->order & FI_ORDER_ATOMIC_RAW ? promise->order_size : 0);
	ck_assert_uint_eq(info->ep_attr->max_order_waw_size,
			  promise->order & FI_ORDER_ATOMIC_WAW ? promise->order_size : 0);
	ck_assert_uint_eq(info->domain_attr->cq_data_size, promise->cq_data);
}
END_TEST

/* Each capability that this library has and the provider has not. */
START_TEST(profile_refuses_capabilities_that_it_lacks)
{
	const struct mrf_profile *profile = use((size_t)_i);
	uint64_t lacks = MRF_CAPS_ALL & ~profile->promise->caps, bit;
	char line[64];

	snprintf(line, sizeof(line), "MRF-E1037: hints->caps=");
	for (bit = 1; bit; bit <<= 1) {
		if (!(lacks & bit))
			continue;
		hints->caps = FI_MSG | bit;
		ck_assert_int_eq(get(ALL | (bit == FI_HMEM ? FI_MR_HMEM : 0)), -FI_ENODATA);
		ck_assert_msg(strstr(text, line) && strstr(text, profile->name), "%s: %#lx in: %s",
			      profile->name, bit, text);
	}
}
END_TEST

static void want_no_more(const struct mrf_profile *profile, size_t *hint, size_t limit, size_t all)
{
	if (limit == all)
		return;
	*hint = limit + 1;
	ck_assert_int_eq(get(ALL), -FI_ENODATA);
	ck_assert_msg(strstr(text, "MRF-E1037") && strstr(text, "does not offer more than"),
		      "%s: %s", profile->name, text);
	*hint = limit;
	ck_assert_int_eq(get(ALL), 0);
}

START_TEST(profile_refuses_more_than_it_has)
{
	const struct mrf_profile *profile = use((size_t)_i);
	const struct mrf_promise *promise = profile->promise;

	want_no_more(profile, &hints->tx_attr->inject_size,
		     promise->inject_most ? promise->inject_most : promise->inject,
		     MRF_LIMIT_INJECT);
	want_no_more(profile, &hints->tx_attr->iov_limit, promise->tx_iov, MRF_LIMIT_IOV);
	want_no_more(profile, &hints->rx_attr->iov_limit, promise->rx_iov, MRF_LIMIT_IOV);
	want_no_more(profile, &hints->tx_attr->rma_iov_limit, promise->rma_iov, MRF_LIMIT_RMA_IOV);
	want_no_more(profile, &hints->ep_attr->max_msg_size, promise->msg_size, MRF_LIMIT_MSG_SIZE);
	want_no_more(profile, &hints->domain_attr->cq_data_size, promise->cq_data,
		     MRF_LIMIT_CQ_DATA);
	hints->tx_attr->inject_size = promise->inject - 1;
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_uint_eq(info->tx_attr->inject_size, promise->inject - 1);
	hints->tx_attr->msg_order = FI_ORDER_WAS;
	ck_assert_int_eq(get(ALL), promise->order & FI_ORDER_WAS ? 0 : -FI_ENODATA);
}
END_TEST

/* In their place there are messages. */
START_TEST(atomics_of_rxm_are_asked_for_and_come_without_orders)
{
	const uint64_t lost = FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW;
	const uint64_t kept = FI_ORDER_SAS | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_WAW | FI_ORDER_WAS;
	uint64_t bit;

	ck_assert_int_eq(setenv(VAR, _i ? "verbs-rxm" : "tcp-rxm", 1), 0);
	hints->caps = FI_RMA;
	hints->tx_attr->msg_order = lost | kept;
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_uint_eq(info->caps & FI_ATOMIC, 0);
	ck_assert_uint_gt(info->ep_attr->max_order_waw_size, 0);
	hints->caps = FI_RMA | FI_ATOMIC;
	hints->tx_attr->msg_order = kept;
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_uint_eq(info->caps & FI_ATOMIC, FI_ATOMIC);
	ck_assert_uint_eq(info->tx_attr->msg_order & lost, 0);
	ck_assert_uint_eq(info->rx_attr->msg_order & lost, 0);
	ck_assert_uint_eq(info->ep_attr->max_order_raw_size, 0);
	ck_assert_uint_eq(info->ep_attr->max_order_waw_size, 0);
	for (bit = 1; bit <= lost; bit <<= 1) {
		hints->tx_attr->msg_order = kept | (bit & lost);
		ck_assert_int_eq(get(ALL), bit & lost ? -FI_ENODATA : 0);
	}
	ck_assert_ptr_nonnull(strstr(text, "does not offer FI_ORDER_SAW"));
}
END_TEST

START_TEST(more_may_be_injected_where_it_is_asked_for)
{
	ck_assert_int_eq(setenv(VAR, "tcp-rxm", 1), 0);
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_uint_eq(info->tx_attr->inject_size, 64);
	hints->tx_attr->inject_size = 100;
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_uint_eq(info->tx_attr->inject_size, 100);
	hints->tx_attr->inject_size = 10;
	ck_assert_int_eq(get(ALL), 0);
	ck_assert_uint_eq(info->tx_attr->inject_size, 10);
}
END_TEST

static TCase *tcase_promise(void)
{
	TCase *tc = tcase_create("promise");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, profile_promises_what_the_library_has, 0, PROFILES);
	tcase_add_loop_test(tc, profile_is_what_getinfo_says_of_endpoints, 0, PROFILES);
	tcase_add_loop_test(tc, profile_refuses_capabilities_that_it_lacks, 0, PROFILES);
	tcase_add_loop_test(tc, profile_refuses_more_than_it_has, 0, PROFILES);
	tcase_add_test(tc, profiles_have_the_limits_of_their_providers);
	tcase_add_loop_test(tc, atomics_of_rxm_are_asked_for_and_come_without_orders, 0, 2);
	tcase_add_test(tc, more_may_be_injected_where_it_is_asked_for);
	return tc;
}

UNIT_MAIN("promise", tcase_promise)
