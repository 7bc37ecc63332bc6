/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles: what other providers make of fi_mr(3). With FI_MRFAB_PROFILE the library keeps to the
 * contract of one of them: the registration modes, the size of keys and how great an application's key
 * may be, how many segments a region has, which calls there are, with the error that the others return,
 * and what endpoints can do (promise.h). What such a provider leaves unchecked is checked nevertheless.
 *
 * One table of constants. Pure; any thread.
 */
#ifndef MRF_CONTRACT_PROFILE_H
#define MRF_CONTRACT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "contract/form.h"
#include "contract/mr_offer.h"
#include "contract/promise.h"

/* Calls that not every provider has. */
enum mrf_profile_call {
	MRF_PROFILE_RAW_ATTR,
	MRF_PROFILE_MAP_RAW, /* and fi_mr_unmap_key */
	MRF_PROFILE_BIND_CNTR,
	MRF_PROFILE_BIND_EP,
	MRF_PROFILE_ENABLE,
	MRF_PROFILE_REFRESH,
	MRF_PROFILE_REG_MR, /* fi_domain_bind of an event queue with FI_REG_MR */
	MRF_PROFILE_REGV,   /* fi_mr_regv and fi_mr_regattr */
	MRF_PROFILE_CALLS
};

/* Mistakes that not every provider answers alike. */
enum mrf_profile_wrong {
	MRF_PROFILE_FLAG,   /* a registration flag that does not exist */
	MRF_PROFILE_BIND,   /* fi_mr_bind: the flags, or a state or object that does not allow it */
	MRF_PROFILE_SECOND, /* fi_mr_bind: another counter is bound already */
	MRF_PROFILE_WRONGS
};

/* What a provider does that this library does not do without a profile. Bits. */
enum mrf_profile_habit {
	/* Regions close before the endpoints and counters that they are bound to. */
	MRF_HABIT_REGION_FIRST = 1 << 0,
	/* A region is bound to one endpoint, which is enabled by then. */
	MRF_HABIT_ONE_EP = 1 << 1,
	MRF_HABIT_ONE_CNTR = 1 << 2, /* ... and to one counter */
	/* fi_mr_key has the application's key before the region is enabled. */
	MRF_HABIT_KEY_AT_ONCE = 1 << 3,
	/* A registration needs a right and an address, and a refresh needs ranges. */
	MRF_HABIT_RIGHT_NEEDED = 1 << 4,
	/* It does without FI_MR_LOCAL if that is not offered. */
	MRF_HABIT_LOCAL_IF_OFFERED = 1 << 5,
	/* Registrations have no flags, not even those of capabilities. */
	MRF_HABIT_NO_FLAGS = 1 << 6,
	/* fi_mr_bind takes an endpoint, to no effect, and a counter without a flag. */
	MRF_HABIT_LOOSE_BIND = 1 << 7,
	/* Registrations are not reported to the event queue that is bound for them. */
	MRF_HABIT_NO_REPORTS = 1 << 8,
	/* There are no accesses, so regions have no keys: whatever is requested, fi_mr_key is 0. */
	MRF_HABIT_NO_KEYS = 1 << 9,
};

/* Which type an address vector has. */
enum mrf_profile_av {
	MRF_AV_ASKED,	  /* what fi_av_open asks for */
	MRF_AV_HINTED,	  /* that, but it has to be what fi_getinfo was asked for, if anything */
	MRF_AV_DOMAIN,	  /* what fi_getinfo was asked for, or else FI_AV_TABLE */
	MRF_AV_TABLES,	  /* FI_AV_TABLE; fi_getinfo says so, whatever it was asked for */
	MRF_AV_MAPS,	  /* FI_AV_MAP; FI_AV_TABLE is refused */
	MRF_AV_MAPS_ONLY, /* that, and fi_getinfo refuses FI_AV_TABLE, too */
};

/*
 * What a provider leaves unchecked, if accepting it neither grants a right nor changes what a region is.
 * Bits. In force if the profile's name ends in +lenient; refused otherwise.
 */
enum mrf_profile_lax {
	MRF_LAX_FLAG = 1 << 0,	 /* registration flags that do not exist */
	MRF_LAX_OFFSET = 1 << 1, /* fi_mr_attr.offset, which has no effect there */
	MRF_LAX_ACCESS = 1 << 2, /* access bits that do not exist */
	MRF_LAX_LEN = 1 << 3,	 /* regions of no bytes */
	MRF_LAX_BIND = 1 << 4,	 /* flags of fi_mr_bind of an endpoint */
};

struct mrf_profile {
	const char *name;  /* in FI_MRFAB_PROFILE */
	const char *what;  /* whose contract it is */
	uint64_t table;	   /* of modes: struct mrf_mr_offer.table */
	uint64_t max_key;  /* an application's key is not greater */
	size_t mr_cnt;	   /* 0: the provider says so, and a hint of any is refused */
	unsigned key_size; /* mr_key_size, if FI_MR_RAW is not in force */
	unsigned iov_limit;
	int iov_error; /* FI_E*, for more segments than iov_limit */
	/* FI_E*, of the calls that it does not have; 0: it has it, or the mode decides that. */
	int error[MRF_PROFILE_CALLS];
	int wrong[MRF_PROFILE_WRONGS];	   /* FI_E*; 0: as without a profile */
	unsigned habits;		   /* enum mrf_profile_habit */
	unsigned lax;			   /* enum mrf_profile_lax */
	const struct mrf_promise *promise; /* all the rest that fi_getinfo says */
	const struct mrf_form *form;	   /* of addresses; NULL: socket addresses */
	enum mrf_profile_av av;
	int no_tables;		 /* FI_E*, with MRF_AV_MAPS and MRF_AV_MAPS_ONLY */
	enum fi_av_type av_type; /* in the answer of fi_getinfo, if none was asked for */
	int by_name; /* FI_E*, of fi_av_insertsvc and fi_av_insertsym; 0: as without a profile */
};

/* In the order in which they are listed. NULL: there is none with this number. */
const struct mrf_profile *mrf_profile_at(size_t i);
/*
 * By its name, in any case, with +lenient or not; or custom (contract/custom.h). NULL: there is none, and
 * why says more.
 */
const struct mrf_profile *mrf_profile_find(const char *name, char *why, size_t len);
/* Is what the profile with this name leaves unchecked to be accepted? */
bool mrf_profile_lenient(const char *name);
/*
 * What it requires of applications, and keeps in force. local: the application registers its local
 * buffers (mrf_mr_mode_is_local), or has no hints.
 */
struct mrf_mr_offer mrf_profile_offer(const struct mrf_profile *profile, bool local);
/* How it writes addresses, if the fi_info of a domain has this addr_format. NULL: no profile. */
const struct mrf_form *mrf_profile_form(const struct mrf_profile *profile, uint32_t format);
/* The name of a call, as an application calls it. */
const char *mrf_profile_call_name(enum mrf_profile_call call);

#endif
