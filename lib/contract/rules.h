/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of fi_mr(3) that changed over the years: one table, queried through these
 * functions. The version is the one that the application passed to fi_getinfo, unless a
 * function says otherwise. Pure; nothing fails.
 */
#ifndef MRF_CONTRACT_RULES_H
#define MRF_CONTRACT_RULES_H

#include <stdbool.h>
#include <stdint.h>

enum mrf_rule {
	MRF_RULE_MR_MODE_BITS,	  /* mr_mode is a set of bits, not one of two models */
	MRF_RULE_AUTH_KEY,	  /* fi_mr_attr carries an authorization key */
	MRF_RULE_LEN_ZERO,	  /* a region of no bytes is refused */
	MRF_RULE_UNSPEC_ACCEPTED, /* mr_mode 0 is accepted though modes are required */
	MRF_RULE_REGION_FIRST,	  /* a region closes before the objects it is bound to */
	MRF_RULE_COUNT
};

/* Is the rule in force for that version? */
bool mrf_rule_holds(enum mrf_rule rule, uint32_t version);

static inline bool mrf_rule_mr_mode_bits(uint32_t api)
{
	return mrf_rule_holds(MRF_RULE_MR_MODE_BITS, api);
}

static inline bool mrf_rule_auth_key(uint32_t api)
{
	return mrf_rule_holds(MRF_RULE_AUTH_KEY, api);
}

static inline bool mrf_rule_len_zero_refused(uint32_t api)
{
	return mrf_rule_holds(MRF_RULE_LEN_ZERO, api);
}

/* Takes the version of the library that is emulated, not the application's version. */
static inline bool mrf_rule_unspec_accepted(uint32_t library)
{
	return mrf_rule_holds(MRF_RULE_UNSPEC_ACCEPTED, library);
}

/*
 * False: endpoints and counters close first; a bound one makes fi_close(mr) fail with
 * -FI_EBUSY.
 */
static inline bool mrf_rule_region_closes_first(uint32_t api)
{
	return mrf_rule_holds(MRF_RULE_REGION_FIRST, api);
}

/*
 * FI_MRFAB_STRICT: true unless it is "off". With "off" one violation only causes a
 * warning: closing a region before the counters and endpoints that it is bound to, where
 * the version demands the opposite order.
 */
bool mrf_rule_strict(void);

#endif
