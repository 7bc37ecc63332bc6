/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk in which everything fails once: in round nth the nth allocation or the like
 * (fail_once.h), or the nth call of the device, fails. What is told must be the error
 * that it was, and a call that failed is done again, and then works. For the tests that
 * do so; each includes it once, sets where, nth and device_err, and begins each round
 * with order().
 */
#ifndef FAIL_WALK_H
#define FAIL_WALK_H

#include "ep_fixture.h"
#include "every.h"
#include "fail_once.h"

static unsigned nth;	  /* what fails in this round */
static int device_err;	  /* 0: an allocation or the like fails */
static bool healed;	  /* something has failed; nothing will any more */
static const char *where; /* what is walked, for messages */

static bool met(void)
{
	return healed || (device_err ? fake_failed() : alloc_met());
}

static void order(void)
{
	healed = false;
	if (device_err)
		fake_fail_any(nth, device_err);
	else
		alloc_order(nth);
}

/* First nothing fails any more: other threads go on meanwhile. */
static void heal(void)
{
	alloc_heal();
	healed |= device_err ? fake_fail_none() : alloc_met();
}

/* One thing fails, and it is told as what it is. */
static void may_fail(const char *what, long err)
{
	if (!met())
		ck_abort_msg("%s, failure %u: %s: %ld before anything failed", where, nth, what,
			     err);
	if (err != FI_ENOMEM && (!device_err || err != device_err))
		ck_abort_msg("%s, failure %u: %s: %ld (%s)", where, nth, what, err,
			     fi_strerror((int)err));
}

/* A call that fails is done again, and then succeeds. */
#define DO(call)                                                                                \
	do {                                                                                    \
		long ret_ = LIBRARY(call);                                                      \
                                                                                                \
		if (ret_ < 0 && ret_ != -FI_EAVAIL) {                                           \
			may_fail(#call, -ret_);                                                 \
			ret_ = LIBRARY(call);                                                   \
		}                                                                               \
		if (ret_ < 0 && ret_ != -FI_EAVAIL)                                             \
			ck_abort_msg("%s, failure %u: %s: %ld again", where, nth, #call, ret_); \
	} while (0)

#endif
