/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_FAULT: calls that fail on purpose, so that programs can try what they do then. A plan is a
 * list of these, separated by commas, with blanks around them or not:
 *
 *	CALL:N=ERROR	the Nth call fails with this error, and nothing is done
 *	CALL:N-M=ERROR	the Nth to the Mth; CALL:N-=ERROR: all from the Nth on
 *	CALL:1/N=ERROR	one call of N, at random
 *	CALL:late=TIME	each call takes that much longer: 5ms, 300us or 1s
 *	cq:full		a completion queue has the size that it was opened with, and is overrun
 *	cq:full=N	as cq:full, and it holds no more than N entries
 *	mr_cnt=N	no more than N regions are open at a time
 *	key_bits=N	keys that the application chooses have no more bits
 *	seed=N		of what is random; the same seed chooses the same calls
 *
 * Each domain has a plan of its own, and counts its calls from 1. Any thread.
 */
#ifndef MRF_BASE_FAULT_H
#define MRF_BASE_FAULT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "base/log.h"

enum mrf_fault_call {
	MRF_FAULT_REG,	   /* fi_mr_reg, fi_mr_regv, fi_mr_regattr */
	MRF_FAULT_BIND,	   /* fi_mr_bind */
	MRF_FAULT_ENABLE,  /* fi_mr_enable */
	MRF_FAULT_REFRESH, /* fi_mr_refresh */
	MRF_FAULT_RAW,	   /* fi_mr_raw_attr */
	MRF_FAULT_CQ,	   /* reading a completion queue */
	MRF_FAULT_TX,	   /* calls that start an access or send a message */
	MRF_FAULT_CALLS
};

#define MRF_FAULT_RULES 16

struct mrf_fault_rule {
	enum mrf_fault_call call;
	uint64_t first, last; /* which calls */
	uint64_t one_in;      /* of these, at random; 1: each of them */
	int err;	      /* FI_E*; 0: they are only late */
	uint64_t late_us;
};

/* Immutable, but for the counts. */
struct mrf_fault_plan {
	struct mrf_fault_rule rule[MRF_FAULT_RULES];
	unsigned nrules;
	uint64_t mr_cnt;   /* UINT64_MAX: no limit */
	uint64_t cq_full;  /* the most entries of a completion queue; 0: queues grow */
	unsigned key_bits; /* 64: no limit */
	uint64_t seed;
	_Atomic uint64_t calls[MRF_FAULT_CALLS];
};

/*
 * -FI_EINVAL: why names the word that is wrong, and what it may be. -FI_EIO: no seed is given, and there
 * are no random bytes. Pure otherwise.
 */
int mrf_fault_parse(const char *text, struct mrf_fault_plan *plan, char *why, size_t len);
/*
 * Counts a call, and waits if it is to be late. 0, or the error (negative) with which it has to fail;
 * *n is its number. No lock is held.
 */
int mrf_fault_now(struct mrf_fault_plan *plan, enum mrf_fault_call call, uint64_t *n);
/*
 * As mrf_fault_now, and says that the call fails, so that nobody takes it for a real error. Of -FI_EAGAIN only
 * level info hears: a program tries again, as often as it can. name: the call's.
 */
int mrf_fault_refuse(struct mrf_fault_plan *plan, enum mrf_fault_call call,
		     enum fi_log_subsys subsys, const char *name);

#endif
