/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests share that break connections at random (t_breaks, t_breaks_device): chance, which a
 * seed repeats; what happens to a connection; and which rounds are run. Each includes it once.
 *
 *	MRFAB_SEED	which rounds (1)
 *	MRFAB_SETTING	one of the settings alone
 *	MRFAB_ROUNDS	how many rounds, in all settings (1,000)
 */
#ifndef BREAKS_H
#define BREAKS_H

#include "ep_fixture.h"
#include "every.h"
#include "loop/agent.h"

static unsigned seed, round_no;

/* --- chance --------------------------------------------------------------------------- */

static uint64_t state;

static unsigned any(unsigned n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((state >> 33) % n);
}

static bool one_in(unsigned n)
{
	return !any(n);
}

/* --- what happens to a connection ----------------------------------------------------------- */

static unsigned refuse_send; /* the nth message from now on is refused, and not seen */
static bool of_target;

/* For fake.on_send. */
static enum fake_fate on_send(uint8_t *msg, size_t *len, bool from_target)
{
	(void)msg;
	(void)len;
	if (from_target != of_target || !refuse_send || --refuse_send)
		return FAKE_DELIVER;
	return FAKE_REFUSE;
}

static void refuse(unsigned nth)
{
	fake_freeze(true);
	refuse_send = nth;
	of_target = one_in(2);
	fake_freeze(false);
}

/* fake_break, or fake_break_frame. */
typedef void breaks_nth(unsigned nth, unsigned times, enum mrf_wc_status status, bool ran);

/*
 * One of the next `most` accesses or messages breaks its connection, or the target hangs up on its
 * last initiator (alone: its only one), or nothing.
 */
static void break_some(const struct node *target, bool alone, unsigned most, breaks_nth *breaks)
{
	static const enum mrf_wc_status statuses[] = { MRF_WC_FLUSHED, MRF_WC_TIMEOUT,
						       MRF_WC_REFUSED, MRF_WC_OTHER,
						       MRF_WC_UNSENT };
	enum mrf_wc_status status = statuses[any(5)];
	unsigned connects = fake_connects();

	if (one_in(3))
		fake_run_unacknowledged();
	refuse(one_in(5) ? 1 + any(4) : 0);
	switch (any(8)) {
	case 0:
		break;
	case 1:
	case 2:
		fake_hang_up(node_agent(target)->cq);
		/* Before what is held goes on, or at the same time. */
		if (one_in(2) && alone)
			want_soon(fake_connects() != connects || !fake_queued());
		break;
	default:
		breaks(1 + any(most), 1 + any(2), status, status != MRF_WC_REFUSED && one_in(2));
	}
}

/* --- rounds ------------------------------------------------------------------------------- */

static void forget_log(void)
{
	fake_freeze(true);
	fake.nlog = 0;
	fake_freeze(false);
}

static unsigned number_of(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)atoi(text) : otherwise;
}

/* Of each of so many settings. */
static unsigned rounds_of(unsigned settings)
{
	return number_of("MRFAB_ROUNDS", 1000 / every()) / settings + 1;
}

/* Begins setting i of so many, from its seed. False: it is not wanted. */
static bool setting_begin(unsigned i, unsigned settings)
{
	if (number_of("MRFAB_SETTING", i) != i)
		return false;
	seed = number_of("MRFAB_SEED", 1) * settings + i;
	state = seed * 2654435761ull + 1;
	any(2);
	return true;
}

#endif
