/* SPDX-License-Identifier: BSD-2-Clause */
/* "May this peer?": every combination of what the answer depends on. */
#include "base/compiler.h"
#include "mr/face.h"
#include "mr/serve.h"
#include "unit.h"

#define SERIAL 5
#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SEG 16ul

enum met { PLAIN, MET, BY_ANOTHER, DEAD, ASKED_BY_NOBODY, METS };
enum right { NONE, HAS, LACKS, LACKS_ONE, RIGHTS };
enum bytes { NO_BYTES, ALL, ACROSS, PAST, BEFORE, ENORMOUS, BYTES };

struct combination {
	bool there, same_group, grouped, virt;
	unsigned serial;
	unsigned state; /* enum mrf_mr_state */
	unsigned met, right, bytes;
};

/* What each of them says alone. Of several that are not OK the first in this order counts. */
static const enum mrf_mr_status by_serial[] = {
	[0] = MRF_MR_OK, [SERIAL] = MRF_MR_OK, [SERIAL + 1] = MRF_MR_CLOSED
};
static const unsigned serials[] = { 0, SERIAL, SERIAL + 1 };
static const enum mrf_mr_status by_state[MRF_STATES] = {
	[MRF_STATE_CLOSED] = MRF_MR_CLOSED,	[MRF_STATE_PENDING] = MRF_MR_DISABLED,
	[MRF_STATE_DISABLED] = MRF_MR_DISABLED, [MRF_STATE_ENABLED] = MRF_MR_OK,
	[MRF_STATE_REFRESHING] = MRF_MR_OK,	[MRF_STATE_FAILED] = MRF_MR_CLOSED,
};
static const enum mrf_mr_status by_met[METS] = {
	[PLAIN] = MRF_MR_OK,
	[MET] = MRF_MR_OK,
	[BY_ANOTHER] = MRF_MR_NOT_BOUND,
	[DEAD] = MRF_MR_NOT_BOUND,
	[ASKED_BY_NOBODY] = MRF_MR_NOT_BOUND,
};
static const enum mrf_mr_status by_right[RIGHTS] = { [NONE] = MRF_MR_OK,
						     [HAS] = MRF_MR_OK,
						     [LACKS] = MRF_MR_NO_RIGHT,
						     [LACKS_ONE] = MRF_MR_NO_RIGHT };
/* Who wants to be told the rights is told the bounds as well. */
static const enum mrf_mr_status by_bytes[BYTES] = {
	[NO_BYTES] = MRF_MR_OK,	 [ALL] = MRF_MR_OK,	    [ACROSS] = MRF_MR_OK,
	[PAST] = MRF_MR_OUTSIDE, [BEFORE] = MRF_MR_OUTSIDE, [ENORMOUS] = MRF_MR_OUTSIDE,
};

static enum mrf_mr_status expected(const struct combination *c)
{
	const enum mrf_mr_status verdicts[] = {
		c->there && c->same_group ? MRF_MR_OK : MRF_MR_UNKNOWN,
		by_serial[c->serial],
		by_state[c->state],
		by_met[c->met],
		by_right[c->right],
		c->right == NONE ? MRF_MR_OK : by_bytes[c->bytes],
	};
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(verdicts); i++) {
		if (verdicts[i] != MRF_MR_OK)
			return verdicts[i];
	}
	return MRF_MR_OK;
}

/* --- what is decided about --------------------------------------------------------- */

static struct mrf_mr_space space;
static struct mrf_mr_group own, others;
static struct mrf_mr_class class, another;
static struct mrf_mr_face face;
static struct mrf_mr_port port;
static struct mrf_mr_seg segs[2];
static struct mrf_mr region;

static void make_region(const struct combination *c)
{
	const uint64_t lacking[RIGHTS] = {
		[NONE] = FI_REMOTE_READ, [HAS] = RW, [LACKS] = FI_SEND, [LACKS_ONE] = FI_REMOTE_READ
	};

	segs[0] = (struct mrf_mr_seg){ .addr = 0x1000, .len = SEG };
	segs[1] = (struct mrf_mr_seg){ .addr = 0x1000 + SEG, .len = SEG };
	space.mode = c->virt ? FI_MR_VIRT_ADDR : 0;
	/* A group has faces, and so has what is bound to endpoints. */
	if (c->met != PLAIN && !c->grouped)
		space.mode |= FI_MR_ENDPOINT;
	face.class = c->met == BY_ANOTHER ? &another : &class;
	face.dead = c->met == DEAD;
	region.space = &space;
	region.serial = SERIAL;
	region.state = c->state;
	region.group = c->grouped ? &own : NULL;
	region.faces = c->met == PLAIN ? NULL : &face;
	region.access = lacking[c->right];
	region.nseg = 2;
	region.segs = segs;
	region.len = 2 * SEG;
}

static void make_ask(const struct combination *c, struct mrf_mr_query *ask)
{
	uint64_t base = c->virt ? 0x1000 : 0;

	port.class = c->met == PLAIN ? NULL : &class;
	port.group = c->same_group ? region.group : c->grouped ? NULL : &others;
	ask->serial = c->serial;
	ask->port = c->met == ASKED_BY_NOBODY ? NULL : &port;
	ask->addr = base;
	ask->len = 2 * SEG;
	if (c->bytes == NO_BYTES)
		ask->len = 0;
	else if (c->bytes == ACROSS)
		ask->addr = base + SEG - 1, ask->len = 2;
	else if (c->bytes == PAST)
		ask->addr = base + SEG, ask->len = SEG + 1;
	else if (c->bytes == BEFORE)
		ask->addr = base - 1;
	else if (c->bytes == ENORMOUS)
		ask->addr = base + 1, ask->len = UINT64_MAX;
}

/* Who names no endpoint is of the default group; a region of another is not plain. */
static bool makes_sense(const struct combination *c)
{
	if (c->met == ASKED_BY_NOBODY)
		return c->same_group && !c->grouped;
	return c->met != PLAIN || !c->grouped;
}

static void look_at(const struct combination *c)
{
	const struct mrf_mr_face *by = &face;
	struct mrf_mr_query ask = { .key = 1 };
	enum mrf_mr_status status;

	make_region(c);
	make_ask(c, &ask);
	mrf_lock_take(&space.lock);
	status = mrf_mr_may_locked(c->there ? &region : NULL, &ask, c->right == NONE ? 0 : RW, &by);
	mrf_lock_release(&space.lock);
	ck_assert_msg(status == expected(c),
		      "there %d group %d grouped %d virt %d serial %u state %u met %u right %u "
		      "bytes %u: is %d, not %d",
		      c->there, c->same_group, c->grouped, c->virt, c->serial, c->state, c->met,
		      c->right, c->bytes, (int)status, (int)expected(c));
	if (status == MRF_MR_OK)
		ck_assert_ptr_eq(by, c->met == PLAIN ? NULL : &face);
}

/* --- all of them -------------------------------------------------------------------- */

/* The nth combination, as a number with a digit for each; n is what is left of it. */
static struct combination nth(unsigned *n)
{
	struct combination c;

#define DIGIT(base)                           \
	({                                    \
		unsigned digit = *n % (base); \
		*n /= (base);                 \
		digit;                        \
	})
	c.there = DIGIT(2);
	c.same_group = DIGIT(2);
	c.grouped = DIGIT(2);
	c.virt = DIGIT(2);
	c.serial = serials[DIGIT(MRF_ARRAY_SIZE(serials))];
	c.state = DIGIT(MRF_STATES);
	c.met = DIGIT(METS);
	c.right = DIGIT(RIGHTS);
	c.bytes = DIGIT(BYTES);
#undef DIGIT
	return c;
}

START_TEST(every_combination_has_one_answer)
{
	unsigned met[MRF_MR_NO_RIGHT + 1] = { 0 };
	unsigned i, rest;

	mrf_lock_init(&space.lock, MRF_RANK_MR);
	for (i = 0;; i++) {
		struct combination c;

		rest = i;
		c = nth(&rest);
		if (rest)
			break;
		if (!makes_sense(&c))
			continue;
		look_at(&c);
		met[expected(&c)]++;
	}
	ck_assert_uint_eq(i, 2 * 2 * 2 * 2 * 3 * MRF_STATES * METS * RIGHTS * BYTES);
	/* Each answer is one of some combination. */
	ck_assert_uint_gt(met[MRF_MR_OK], 0);
	ck_assert_uint_gt(met[MRF_MR_UNKNOWN], 0);
	ck_assert_uint_gt(met[MRF_MR_CLOSED], 0);
	ck_assert_uint_gt(met[MRF_MR_DISABLED], 0);
	ck_assert_uint_gt(met[MRF_MR_NOT_BOUND], 0);
	ck_assert_uint_gt(met[MRF_MR_OUTSIDE], 0);
	ck_assert_uint_gt(met[MRF_MR_NO_RIGHT], 0);
}
END_TEST

static TCase *serve(void)
{
	TCase *tc = tcase_create("serve");

	tcase_add_test(tc, every_combination_has_one_answer);
	return tc;
}

UNIT_MAIN("serve", serve)
