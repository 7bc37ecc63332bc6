/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_STRICT: what other providers do not take is named with warn, ends the process with abort, and
 * is nobody's business with on and off.
 */
#include <sys/wait.h>
#include "aborts.h"
#include "base/env.h"
#include "base/strict.h"
#include "contract/rules.h"
#include "ep_fixture.h"

#define VAR "FI_MRFAB_STRICT"
#define LONG_KEY 0x500000004full

static struct unit_capture cap;
static struct pair p;

static void set_strict(const char *value)
{
	ck_assert_int_eq(setenv(VAR, value, 1), 0);
	fixture_setup();
	fixture_log();
}

static void setup(void)
{
	fixture_setup();
}

static void teardown(void)
{
	unsetenv(VAR);
	fixture_teardown();
}

static void must_say(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part), "\"%s\" is not in: %s", part, text);
}

static const struct node_opt plain = { .mr_mode = FI_MR_ALLOCATED };
static const struct node_opt provider_keys = { .mr_mode = FI_MR_ALLOCATED | FI_MR_PROV_KEY |
							  FI_MR_VIRT_ADDR };

/* --- values ---------------------------------------------------------------------------- */

START_TEST(each_value_is_stricter_than_the_one_before)
{
	static const struct {
		const char *value;
		bool strict, careful;
	} rows[] = { { "off", false, false }, { "Off", false, false }, { "on", true, false },
		     { "", true, false },     { "warn", true, true },  { "ABORT", true, true } };
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set_strict(rows[i].value);
		ck_assert_int_eq(mrf_rule_strict(), rows[i].strict);
		ck_assert_int_eq(mrf_strict_careful(), rows[i].careful);
	}
}
END_TEST

START_TEST(other_values_are_named_and_stand_for_on)
{
	if (!unit_forks())
		return;
	set_strict("yes");
	unit_capture(&cap);
	ck_assert(mrf_rule_strict());
	ck_assert(mrf_rule_strict());
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 1);
	must_say(cap.text,
		 "MRF-W5904: FI_MRFAB_STRICT=\"yes\": the value must be off, on, warn or abort");
	ck_assert(!mrf_strict_careful());
}
END_TEST

START_TEST(getinfo_names_a_value_that_is_none)
{
	struct fi_info *info = NULL;

	if (!unit_forks())
		return;
	set_strict("abrot");
	unit_capture(&cap);
	fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
	fi_freeinfo(info);
	must_say(unit_captured(&cap), "MRF-W5904: FI_MRFAB_STRICT=\"abrot\"");
}
END_TEST

/* --- keys ------------------------------------------------------------------------------ */

/* What is said when a region gets this key. */
static const char *key_says(uint64_t key, uint64_t access)
{
	static uint8_t memory[64];
	struct fid_mr *mr;
	struct node n;

	node_open(&n, &plain);
	unit_capture(&cap);
	mr = node_reg(&n, memory, sizeof(memory), access, key);
	unit_captured(&cap);
	must_close(&mr->fid);
	node_close(&n);
	return cap.text;
}

START_TEST(key_of_more_than_4_bytes_is_named)
{
	set_strict("warn");
	must_say(key_says(1ull << 32, REMOTE_RW), "MRF-W3082: requested_key=0x100000000");
	must_say(cap.text, "keys have 4 bytes");
	ck_assert_str_eq(key_says(UINT32_MAX, REMOTE_RW), "");
	ck_assert_str_eq(key_says(1ull << 32, FI_SEND), "");
	set_strict("on");
	ck_assert_str_eq(key_says(1ull << 32, REMOTE_RW), "");
}
END_TEST

START_TEST(key_that_was_cut_to_32_bits_is_named_at_both_ends)
{
	set_strict("warn");
	pair_open(&p, &plain);
	must_close(&p.mr->fid);
	p.mr = node_reg(&p.b, p.dst, PAIR_LEN, REMOTE_RW, LONG_KEY);
	p.key = (uint32_t)LONG_KEY;
	unit_capture(&cap);
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_EKEYREJECTED, "is unknown");
	unit_captured(&cap);
	must_say(cap.text, "MRF-W3084: a peer asks for key 0x4f, which no region has, but one has "
			   "0x500000004f: the key was kept in 32 bits");
	must_say(cap.text, "MRF-E4101");
	/* Another one is just wrong. */
	p.key = 0x50;
	unit_capture(&cap);
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_EKEYREJECTED, "is unknown");
	ck_assert_ptr_null(strstr(unit_captured(&cap), "MRF-W3084"));
	pair_close(&p);
}
END_TEST

START_TEST(key_that_was_another_regions_is_named)
{
	static uint8_t memory[64];
	struct fid_mr *mr;
	struct node n;

	set_strict("warn");
	node_open(&n, &plain);
	unit_capture(&cap);
	must_close(&node_reg(&n, memory, sizeof(memory), REMOTE_RW, 7)->fid);
	mr = node_reg(&n, memory, sizeof(memory), REMOTE_RW, 8);
	ck_assert_str_eq(unit_captured(&cap), "");
	must_close(&mr->fid);
	unit_capture(&cap);
	must_close(&node_reg(&n, memory, sizeof(memory), REMOTE_RW, 7)->fid);
	must_close(&node_reg(&n, memory, sizeof(memory), REMOTE_RW, 8)->fid);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 1);
	must_say(cap.text, "MRF-W3085: requested_key=0x7 was the key of a region that was closed");
	node_close(&n);
}
END_TEST

START_TEST(provider_keys_use_all_their_bits)
{
	set_strict("on");
	pair_open(&p, &provider_keys);
	ck_assert_uint_le(fi_mr_key(p.mr), UINT32_MAX);
	pair_close(&p);
	set_strict("warn");
	pair_open(&p, &provider_keys);
	ck_assert_uint_gt(fi_mr_key(p.mr), UINT32_MAX);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	p.key = (uint32_t)p.key;
	unit_capture(&cap);
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_EKEYREJECTED, "pass on all 64 bits of fi_mr_key");
	must_say(unit_captured(&cap), "MRF-W3084");
	pair_close(&p);
}
END_TEST

/* --- descriptors ----------------------------------------------------------------------- */

/* What is said of a write of 8 bytes of a's memory with this descriptor, which is done. */
static const char *desc_says(void *desc)
{
	p.desc = desc;
	unit_capture(&cap);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	p.desc = NULL;
	return unit_captured(&cap);
}

START_TEST(descriptor_that_is_ignored_is_named)
{
	struct fid_mr *own, *other, *theirs, *reads;

	set_strict("warn");
	pair_open(&p, &plain);
	own = node_reg(&p.a, p.src, 4096, FI_WRITE, 0);
	other = node_reg(&p.a, p.src + 4096, 4096, FI_WRITE, 0);
	reads = node_reg(&p.a, p.src, 4096, FI_READ, 0);
	theirs = node_reg(&p.b, p.src, 4096, FI_WRITE, 0);
	ck_assert_str_eq(desc_says(NULL), "");
	ck_assert_str_eq(desc_says(fi_mr_desc(own)), "");
	must_say(desc_says(fi_mr_desc(theirs)), "MRF-W4033");
	must_say(cap.text, "is not a descriptor of this domain: it is ignored");
	must_say(desc_says(fi_mr_desc(other)), "is of a region that does not contain the buffer");
	must_say(desc_says(fi_mr_desc(reads)),
		 "is of a region without the right for this operation");
	must_close(&theirs->fid);
	must_close(&reads->fid);
	must_close(&other->fid);
	must_close(&own->fid);
	pair_close(&p);
	set_strict("on");
	pair_open(&p, &plain);
	ck_assert_str_eq(desc_says((void *)0x1234), "");
	pair_close(&p);
}
END_TEST

/* --- regions closed too early ---------------------------------------------------------- */

/* What fi_close of a region says while writes with its descriptor are in flight, and after them. */
static const char *close_says(unsigned writes, bool done)
{
	struct fid_mr *mr;
	unsigned i;

	pair_open(&p, &plain);
	mr = node_reg(&p.a, p.src, PAIR_LEN, FI_WRITE, 0);
	p.desc = fi_mr_desc(mr);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	fake_hold(!done);
	for (i = 0; i < writes; i++)
		pair_write(&p, i * 8, 8);
	for (i = 0; done && i < writes; i++)
		want_ok(&p.a, pair_ctx(&p, i * 8));
	unit_capture(&cap);
	must_close(&mr->fid);
	unit_captured(&cap);
	fake_hold(false);
	want_idle(&p.a);
	pair_close(&p);
	return cap.text;
}

START_TEST(region_that_is_closed_under_operations_is_named)
{
	set_strict("warn");
	must_say(close_says(3, false), "MRF-W3083: fi_close(region");
	must_say(cap.text, "3 operations of this process still use its descriptor");
	must_say(close_says(1, false), "1 operation of this process still uses its descriptor");
	ck_assert_str_eq(close_says(3, true), "");
	set_strict("on");
	ck_assert_str_eq(close_says(3, false), "");
}
END_TEST

/* --- failures -------------------------------------------------------------------------- */

START_TEST(offset_and_address_are_told_apart)
{
	set_strict("warn");
	pair_open(&p, &plain);
	p.base = (uintptr_t)p.dst;
	unit_capture(&cap);
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "this looks like an address");
	must_say(unit_captured(&cap),
		 "this looks like an address, but the peer's domain takes offsets");
	pair_close(&p);
	set_strict("warn");
	pair_open(&p, &provider_keys);
	p.base = 0;
	unit_capture(&cap);
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, "this looks like an offset");
	must_say(unit_captured(&cap),
		 "this looks like an offset, but the peer's domain takes virtual");
	pair_close(&p);
}
END_TEST

/* --- abort ----------------------------------------------------------------------------- */

static void long_key(void)
{
	key_says(1ull << 32, REMOTE_RW);
}

static void foreign_desc(void)
{
	pair_open(&p, &plain);
	desc_says((void *)0x1234);
}

static void early_close(void)
{
	close_says(1, false);
}

static void bad_offset(void)
{
	struct fi_mr_attr attr = { .iov_count = 1 };
	struct fid_mr *mr;
	struct node n;

	node_open(&n, &plain);
	fi_mr_regattr(n.domain, &attr, 0, &mr);
}

static void bad_access(void)
{
	pair_open(&p, &plain);
	p.base = (uintptr_t)p.dst;
	pair_write(&p, 0, 8);
	want_err(&p.a, pair_ctx(&p, 0), FI_EACCES, NULL);
}

/* Not offered is not wrong, and neither is what is in order. */
static void no_mistake(void)
{
	struct fi_info *none = NULL, *hints = fi_allocinfo();
	void *ops;

	hints->caps = FI_MULTICAST;
	fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &none);
	fi_freeinfo(hints);
	pair_open(&p, &plain);
	fi_open_ops(&p.a.domain->fid, "others", 0, &ops, NULL);
	desc_says(NULL);
	pair_close(&p);
}

START_TEST(abort_ends_the_process_at_a_mistake)
{
	if (!unit_forks())
		return;
	set_strict("abort");
	ck_assert(aborts(long_key));
	ck_assert(aborts(foreign_desc));
	ck_assert(aborts(early_close));
	ck_assert(aborts(bad_offset));
	ck_assert(aborts(bad_access));
	ck_assert(!aborts(no_mistake));
	set_strict("warn");
	ck_assert(!aborts(long_key));
	ck_assert(!aborts(bad_offset));
	ck_assert(!aborts(bad_access));
}
END_TEST

static TCase *tcase_values(void)
{
	TCase *tc = tcase_create("values");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, each_value_is_stricter_than_the_one_before);
	tcase_add_test(tc, other_values_are_named_and_stand_for_on);
	tcase_add_test(tc, getinfo_names_a_value_that_is_none);
	return tc;
}

static TCase *tcase_mistakes(void)
{
	TCase *tc = tcase_create("mistakes");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, key_of_more_than_4_bytes_is_named);
	tcase_add_test(tc, key_that_was_cut_to_32_bits_is_named_at_both_ends);
	tcase_add_test(tc, key_that_was_another_regions_is_named);
	tcase_add_test(tc, provider_keys_use_all_their_bits);
	tcase_add_test(tc, descriptor_that_is_ignored_is_named);
	tcase_add_test(tc, region_that_is_closed_under_operations_is_named);
	tcase_add_test(tc, offset_and_address_are_told_apart);
	tcase_add_test(tc, abort_ends_the_process_at_a_mistake);
	return tc;
}

UNIT_MAIN("strict", tcase_values, tcase_mistakes)
