/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of fi_mr(3) that changed over the years, each with the first version that has it. The
 * version is the one that the application passed to fi_getinfo, unless a
 * function says otherwise. Pure; nothing fails.
 */
#ifndef MRF_CONTRACT_RULES_H
#define MRF_CONTRACT_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>

/* mr_mode is a set of bits, not one of two models. */
static inline bool mrf_rule_mr_mode_bits(uint32_t api)
{
	return FI_VERSION_GE(api, FI_VERSION(1, 5));
}

/* fi_mr_attr carries an authorization key. */
static inline bool mrf_rule_auth_key(uint32_t api)
{
	return FI_VERSION_GE(api, FI_VERSION(1, 5));
}

/* A region of no bytes is refused. */
static inline bool mrf_rule_len_zero_refused(uint32_t api)
{
	return FI_VERSION_GE(api, FI_VERSION(1, 13));
}

/*
 * mr_mode 0 is accepted though modes are required. Takes the version of the library that is
 * emulated, not the application's version.
 */
static inline bool mrf_rule_unspec_accepted(uint32_t library)
{
	return FI_VERSION_GE(library, FI_VERSION(1, 16));
}

/*
 * A region closes before the objects it is bound to. False: endpoints and counters close
 * first; a bound one makes fi_close(mr) fail with -FI_EBUSY.
 */
static inline bool mrf_rule_region_closes_first(uint32_t api)
{
	return FI_VERSION_GE(api, FI_VERSION(2, 3));
}

/*
 * FI_MRFAB_STRICT has four values, each of which is stricter than the one before. "on" is the rule, and
 * "off" under another libfabric. With "warn" the log also says what works here and breaks with other
 * providers (mrf_strict_careful): a descriptor that is not of this domain, or not of its buffer, where
 * none is required; a region closed under operations; keys that are too long for some, or were cut. With
 * "abort" the process ends at the first call that is refused or warned of so.
 *
 * True unless it is "off". With "off" three violations only cause a warning:
 * - closing a region before the counters and endpoints that it is bound to, where the version demands
 *   the opposite order;
 * - fi_cntr_wait on a counter with FI_WAIT_NONE;
 * - fi_ep_bind of a counter with FI_REMOTE_WRITE to an endpoint that is not told of writes.
 */
bool mrf_rule_strict(void);

#endif
