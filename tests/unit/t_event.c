/* SPDX-License-Identifier: BSD-2-Clause */
/* What regions are bound to, as endpoints see it: closing orders. */
#include "ep_fixture.h"

static struct pair p;
static struct unit_capture cap;

/* --- closing ---------------------------------------------------------------------- */

static void open_bound(uint32_t api)
{
	struct node_opt opt = { .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED, .api = api };

	fixture_log();
	pair_open(&p, &opt);
	ck_assert_int_eq(fi_mr_bind(p.mr, &p.b.ep->fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(p.mr), 0);
	p.key = fi_mr_key(p.mr);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
}

static void busy(struct fid *fid, const char *code, const void *culprit)
{
	const char *text;
	char name[32];

	unit_capture(&cap);
	ck_assert_int_eq(fi_close(fid), -FI_EBUSY);
	text = unit_captured(&cap);
	snprintf(name, sizeof(name), "%p", culprit);
	ck_assert_msg(strstr(text, code) && strstr(text, name) && unit_lines(text) == 1,
		      "no %s with %s in: %s", code, name, text);
	/* Nothing has changed. */
	pair_write(&p, 64, 8);
	want_ok(&p.a, pair_ctx(&p, 64));
}

START_TEST(close_before_api_2_3_goes_from_the_endpoint_to_the_region)
{
	open_bound(_i ? FI_VERSION(2, 2) : FI_VERSION(1, 17));
	busy(&p.mr->fid, "MRF-E3063", p.b.ep);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	pair_close(&p);
}
END_TEST

START_TEST(close_from_api_2_3_on_goes_from_the_region_to_the_endpoint)
{
	open_bound(FI_VERSION(2, 3));
	busy(&p.b.ep->fid, "MRF-E3230", p.mr);
	must_close(&p.mr->fid);
	p.mr = NULL;
	pair_write(&p, 0, 8);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 0), FI_EKEYREJECTED, "closed"), 4102);
	pair_close(&p);
}
END_TEST

static TCase *tcase_close(void)
{
	TCase *tc = tcase_create("close");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, close_before_api_2_3_goes_from_the_endpoint_to_the_region, 0,
			    2);
	tcase_add_test(tc, close_from_api_2_3_on_goes_from_the_region_to_the_endpoint);
	return tc;
}

UNIT_MAIN("event", tcase_close)
