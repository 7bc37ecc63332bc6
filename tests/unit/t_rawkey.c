/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of raw keys: what goes in comes out, and nothing else is believed. */
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "proto/rawkey_one.h"
#include "every.h"
#include "unit.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define UNTOUCHED 0x5a

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
	while (bytes--) {
		*at++ = (uint8_t)value;
		value >>= 8;
	}
}

/* The checksum as docs/WIRE.md has it, for keys that are wrong in another way. */
static void sum(uint8_t *buf, size_t len)
{
	uint64_t total = 0, factor = 1;
	size_t i, j;

	for (i = 0; i < len; i += 8) {
		uint64_t word = 0;

		for (j = 0; j < 8 && i + j < len; j++)
			word |= (uint64_t)buf[i + j] << 8 * j;
		if (i == 8)
			continue;
		total += word * factor;
		if (i)
			factor = factor * 0x5851f42d & 0x7fffffff;
	}
	put(buf + 8, total, 8);
}

static struct mrf_rawkey sample(uint64_t mode, uint32_t nseg)
{
	bool virt = mode & FI_MR_VIRT_ADDR;
	struct mrf_rawkey raw = {
		.space_id = 0x1122334455667788,
		.key = 0xfedcba9876543210,
		.serial = 3,
		.mr_mode = mode,
		.access = RW,
		.base = virt ? 0x7f0000001010 : 0,
		.complete = nseg,
		.nseg = nseg,
	};
	uint32_t i;

	for (i = 0; i < nseg; i++) {
		raw.seg[i].pos = virt ? raw.base + 0x100000 * i : raw.len;
		raw.seg[i].len = 0x1000 + i;
		raw.seg[i].rkey = 0x1234 + i;
		raw.seg[i].iova_off = virt ? 0 : 0x10 + i;
		raw.len += raw.seg[i].len;
	}
	if (!nseg)
		raw.len = UINT64_MAX;
	return raw;
}

/* Memory of exactly that size, so that a sanitizer sees every byte read too many. */
static int decode(const uint8_t *buf, size_t len, struct mrf_rawkey *out)
{
	uint8_t *copy = malloc(len ? len : 1);
	const char *why = NULL;
	int ret;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, buf, len);
	ret = mrf_rawkey_decode(copy, len, out, &why);
	if (!ret) {
		ck_assert_uint_eq(mrf_rawkey_base(copy), out->base);
		ck_assert_uint_eq(mrf_rawkey_len(copy), mrf_rawkey_size(out->nseg));
	}
	free(copy);
	ck_assert(ret ? why && *why : !why);
	return ret;
}

/* Says something to Check only when it fails: it is called 100,000 times. */
static void refused(const uint8_t *buf, size_t len, int err)
{
	struct mrf_rawkey out, before;
	int is;

	memset(&before, UNTOUCHED, sizeof(before));
	memset(&out, UNTOUCHED, sizeof(out));
	is = decode(buf, len, &out);
	if (is != err || memcmp(&out, &before, sizeof(out)) != 0)
		ck_abort_msg("%zu bytes of a raw key give %d, not %d; or out is written to", len,
			     is, err);
}

static void same(const struct mrf_rawkey *a, const struct mrf_rawkey *b)
{
	ck_assert_uint_eq(a->space_id, b->space_id);
	ck_assert_uint_eq(a->key, b->key);
	ck_assert_uint_eq(a->serial, b->serial);
	ck_assert_uint_eq(a->mr_mode, b->mr_mode);
	ck_assert_uint_eq(a->access, b->access);
	ck_assert_uint_eq(a->base, b->base);
	ck_assert_uint_eq(a->len, b->len);
	ck_assert_int_eq(a->complete, b->complete);
	ck_assert_uint_eq(a->nseg, b->nseg);
	ck_assert_mem_eq(a->seg, b->seg, a->nseg * sizeof(a->seg[0]));
}

START_TEST(key_comes_out_as_it_went_in)
{
	static const uint64_t mode[] = { 0, FI_MR_RAW, FI_MR_VIRT_ADDR,
					 FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY,
					 FI_MR_RAW | FI_MR_ENDPOINT | FI_MR_HMEM };
	uint8_t buf[MRF_RAWKEY_MAX];
	struct mrf_rawkey in, out;
	uint32_t nseg;

	for (nseg = 0; nseg <= MRF_RAWKEY_MAX_SEG; nseg++) {
		in = sample(mode[_i], nseg);
		ck_assert_uint_eq(mrf_rawkey_encode(&in, buf), mrf_rawkey_size(nseg));
		ck_assert_int_eq(decode(buf, mrf_rawkey_size(nseg), &out), 0);
		same(&in, &out);
	}
	ck_assert_uint_eq(mrf_rawkey_size(MRF_RAWKEY_MAX_SEG), MRF_RAWKEY_MAX);
}
END_TEST

START_TEST(region_without_bytes_or_rights_has_a_key_too)
{
	struct mrf_rawkey in = sample(FI_MR_VIRT_ADDR, 1), out;
	uint8_t buf[MRF_RAWKEY_MAX];

	in.len = in.seg[0].len = 0;
	in.access = 0;
	in.seg[0].rkey = 0;
	ck_assert_int_eq(decode(buf, mrf_rawkey_encode(&in, buf), &out), 0);
	same(&in, &out);
}
END_TEST

START_TEST(layout_is_the_documented_one)
{
	/* clang-format off */
	static const uint8_t want[] = {
		'm', 'r', 'f', 'k', 4, 3, 64, 0, /* version, complete and compact, length */
		0, 0, 0, 0, 0, 0, 0, 0, /* checksum */
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* domain */
		0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, /* key */
		3, 0, 0, 0, 0, 0, 0, 0, /* serial */
		0, 0x10, 0, 0, 0, 0, 0, 0, /* length */
		0x10, 0, 0, 0, 0, 0, 0, 0, /* iova */
		0x08, 0, 0, 0x30, 0x34, 0x12, 0, 0 /* FI_MR_RAW, rights, rkey */
	};
	/* clang-format on */
	struct mrf_rawkey in = sample(FI_MR_RAW, 1);
	uint8_t buf[MRF_RAWKEY_MAX], expect[sizeof(want)];

	ck_assert_uint_eq(mrf_rawkey_encode(&in, buf), sizeof(want));
	memcpy(expect, want, sizeof(want));
	sum(expect, sizeof(expect));
	ck_assert_mem_eq(buf, expect, sizeof(want));
}
END_TEST

START_TEST(layout_of_several_segments_is_the_documented_one)
{
	/* clang-format off */
	static const uint8_t want[] = {
		'm', 'r', 'f', 'k', 4, 1, 112, 0, /* version, complete, length */
		0, 0, 0, 0, 0, 0, 0, 0, /* checksum */
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* domain */
		0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, /* key */
		3, 0, 0, 0, 0, 0, 0, 0, /* serial */
		1, 0x20, 0, 0, 0, 0, 0, 0, /* length of the region */
		0, 0, 0, 0, 0, 0, 0, 0, /* base */
		0x08, 0, 0, 0x30, 2, 0, 0, 0, /* FI_MR_RAW, rights, segments */
		0, 0, 0, 0, 0, 0, 0, 0, /* segment: position */
		0, 0x10, 0, 0, 0, 0, 0, 0, /* length */
		0x34, 0x12, 0, 0, 0x10, 0, 0, 0, /* rkey, iova */
		0, 0x10, 0, 0, 0, 0, 0, 0, /* the next one */
		1, 0x10, 0, 0, 0, 0, 0, 0,
		0x35, 0x12, 0, 0, 0x11, 0, 0, 0
	};
	/* clang-format on */
	struct mrf_rawkey in = sample(FI_MR_RAW, 2);
	uint8_t buf[MRF_RAWKEY_MAX], expect[sizeof(want)];

	ck_assert_uint_eq(mrf_rawkey_encode(&in, buf), sizeof(want));
	memcpy(expect, want, sizeof(want));
	sum(expect, sizeof(expect));
	ck_assert_mem_eq(buf, expect, sizeof(want));
}
END_TEST

START_TEST(every_flipped_bit_is_found)
{
	uint8_t buf[MRF_RAWKEY_MAX];
	struct mrf_rawkey in = sample(_i & 1 ? FI_MR_VIRT_ADDR : 0, (uint32_t)_i / 2 * 8);
	size_t len = mrf_rawkey_encode(&in, buf), i;
	unsigned value;

	for (i = 0; i < len; i++) {
		uint8_t right = buf[i];

		for (value = every_first(); value <= 0xff; value += every()) {
			buf[i] = (uint8_t)value;
			if (value != right)
				refused(buf, len, -FI_EINVAL);
		}
		buf[i] = right;
	}
}
END_TEST

START_TEST(every_truncated_key_is_refused)
{
	struct mrf_rawkey in = sample(0, (uint32_t)_i);
	uint8_t buf[MRF_RAWKEY_MAX];
	size_t len = mrf_rawkey_encode(&in, buf), cut;
	const char *why;

	for (cut = 0; cut < len; cut++)
		refused(buf, cut, -FI_EINVAL);
	ck_assert_int_eq(mrf_rawkey_decode(NULL, 0, &in, &why), -FI_EINVAL);
	ck_assert_int_eq(mrf_rawkey_decode(NULL, len, &in, &why), -FI_EINVAL);
}
END_TEST

START_TEST(key_that_says_to_be_longer_is_refused)
{
	struct mrf_rawkey in = sample(0, (uint32_t)_i);
	uint8_t buf[MRF_RAWKEY_MAX] = { 0 };
	size_t len = mrf_rawkey_encode(&in, buf), more;

	for (more = len + 1; more <= MRF_RAWKEY_MAX; more++) {
		put(buf + 6, more, 2);
		sum(buf, more);
		refused(buf, more, -FI_EINVAL);
	}
}
END_TEST

START_TEST(bytes_of_another_kind_are_no_raw_key)
{
	struct mrf_rawkey in = sample(0, 1);
	uint8_t buf[MRF_RAWKEY_MAX];
	size_t len = mrf_rawkey_encode(&in, buf), i;

	for (i = 0; i < 4; i++) {
		buf[i] ^= 1;
		sum(buf, len);
		refused(buf, len, -FI_EINVAL);
		buf[i] ^= 1;
	}
}
END_TEST

START_TEST(truncated_key_that_says_so_is_refused)
{
	struct mrf_rawkey in = sample(0, 2);
	uint8_t buf[MRF_RAWKEY_MAX];
	size_t len = mrf_rawkey_encode(&in, buf), cut;

	for (cut = 16; cut < len; cut++) {
		mrf_rawkey_encode(&in, buf);
		put(buf + 6, cut, 2);
		sum(buf, cut);
		refused(buf, cut, -FI_EINVAL);
	}
}
END_TEST

START_TEST(zeros_may_follow_and_nothing_else)
{
	uint8_t buf[2 * MRF_RAWKEY_MAX] = { 0 };
	struct mrf_rawkey in = sample(0, 2), out;
	size_t len = mrf_rawkey_encode(&in, buf), i;

	for (i = len; i <= sizeof(buf); i++)
		ck_assert_int_eq(decode(buf, i, &out), 0);
	for (i = len; i < sizeof(buf); i++) {
		buf[i] = 1;
		refused(buf, i + 1, -FI_EINVAL);
		refused(buf, sizeof(buf), -FI_EINVAL);
		buf[i] = 0;
	}
}
END_TEST

START_TEST(other_version_is_told_apart_from_damage)
{
	struct mrf_rawkey in = sample(0, 1);
	uint8_t buf[MRF_RAWKEY_MAX] = { 0 };
	size_t len = mrf_rawkey_encode(&in, buf);

	buf[4] = MRF_RAWKEY_VERSION + 1;
	refused(buf, len, -FI_EINVAL);
	sum(buf, len);
	refused(buf, len, -FI_ENOSYS);
	/* Whatever that version means by the rest, and however long it is. */
	memset(buf + 16, 0xee, len - 16);
	for (len = 16; len <= 64; len++) {
		put(buf + 6, len, 2);
		sum(buf, len);
		refused(buf, len, -FI_ENOSYS);
	}
}
END_TEST

/* Keys with the right checksum that no library would make. */
static const struct {
	uint64_t mode;
	unsigned nseg, at, bytes;
	uint64_t value;
} nonsense[] = {
	{ 0, 2, 5, 1, 5 },	     /* a flag that is none */
	{ 0, 2, 5, 1, 0 },	     /* segments, but not complete */
	{ 0, 0, 5, 1, 1 },	     /* complete, but no segments */
	{ 0, 2, 60, 4, 1 },	     /* fewer segments than bytes */
	{ 0, 2, 60, 4, 3 },	     /* more */
	{ 0, 16, 60, 4, 17 },	     /* more than there may be */
	{ 0, 2, 60, 4, 0x20000002 }, /* times 24 it is 48 again, in 32 bits */
	{ 0, 2, 16, 8, 0 },	     /* no domain */
	{ 0, 0, 32, 8, 0 },	     /* no registration */
	{ 0, 2, 58, 2, RW | 1 },     /* a right that is none */
	{ 0, 0, 58, 2, FI_REMOTE_READ | FI_READ },
	{ 0, 2, 48, 8, 0x1000 }, /* base without FI_MR_VIRT_ADDR */
	{ 0, 0, 48, 8, 1 },
	{ 0, 2, 40, 8, 0x2002 },			    /* longer than its segments */
	{ 0, 2, 40, 8, 0x1000 },			    /* shorter */
	{ 0, 2, 64, 8, 1 },				    /* does not begin at 0 */
	{ 0, 2, 88, 8, 0x1001 },			    /* hole */
	{ 0, 2, 88, 8, 0xfff },				    /* overlap */
	{ 0, 2, 72, 8, 0 },				    /* empty one among others */
	{ 0, 2, 72, 8, UINT64_MAX },			    /* iova wraps, and the sum is wrong */
	{ 0, 2, 84, 4, 0x10000 },			    /* not within a page */
	{ FI_MR_VIRT_ADDR, 2, 84, 4, 1 },		    /* iova apart from the address */
	{ FI_MR_VIRT_ADDR, 2, 64, 8, 0 },		    /* does not begin at base */
	{ FI_MR_VIRT_ADDR, 2, 88, 8, UINT64_MAX - 0x1000 }, /* wraps */
	{ FI_MR_VIRT_ADDR, 2, 96, 8, UINT64_MAX - 0xfff },  /* sum wraps */
	/* The compact form. */
	{ 0, 1, 5, 1, 0 },
	{ 0, 1, 5, 1, 1 },	  /* not compact, but as short */
	{ 0, 1, 5, 1, 2 },	  /* compact, but not complete */
	{ 0, 1, 5, 1, 7 },	  /* a flag that is none */
	{ 0, 2, 5, 1, 3 },	  /* compact, but longer */
	{ 0, 1, 16, 8, 0 },	  /* no domain */
	{ 0, 1, 32, 8, 0 },	  /* no registration */
	{ 0, 1, 48, 8, 0x10000 }, /* iova not within a page */
	{ 0, 1, 48, 8, 1ull << 32 },
	{ 0, 1, 48, 8, UINT64_MAX },
	{ 0, 1, 40, 8, UINT64_MAX },			   /* iova wraps */
	{ 0, 1, 58, 2, RW | 1 },			   /* a right that is none */
	{ 0, 1, 58, 2, 0x8000 },			   /* another one */
	{ FI_MR_VIRT_ADDR, 1, 48, 8, UINT64_MAX - 0xffe }, /* wraps */
	{ FI_MR_VIRT_ADDR, 1, 56, 2, 0 },		   /* base, and the bit is gone */
};

START_TEST(nonsense_is_refused)
{
	struct mrf_rawkey in = sample(nonsense[_i].mode, nonsense[_i].nseg), out;
	uint8_t buf[MRF_RAWKEY_MAX] = { 0 };
	size_t len = mrf_rawkey_encode(&in, buf);

	ck_assert_int_eq(decode(buf, len, &out), 0);
	put(buf + nonsense[_i].at, nonsense[_i].value, nonsense[_i].bytes);
	sum(buf, len);
	refused(buf, len, -FI_EINVAL);
}
END_TEST

/* Else there were two ways to say the same. */
START_TEST(one_segment_is_only_taken_in_the_compact_form)
{
	struct mrf_rawkey in = sample(0, 2);
	uint8_t buf[MRF_RAWKEY_MAX] = { 0 };

	mrf_rawkey_encode(&in, buf);
	put(buf + 6, 88, 2);
	put(buf + 60, 1, 4);
	put(buf + 40, in.seg[0].len, 8);
	sum(buf, 88);
	refused(buf, 88, -FI_EINVAL);
}
END_TEST

START_TEST(seventeen_segments_are_refused_though_all_else_is_right)
{
	struct mrf_rawkey in = sample(0, MRF_RAWKEY_MAX_SEG);
	uint8_t buf[MRF_RAWKEY_MAX + MRF_WIRE_SEG_LEN] = { 0 };

	mrf_rawkey_encode(&in, buf);
	put(buf + MRF_RAWKEY_MAX, in.len, 8);
	put(buf + MRF_RAWKEY_MAX + 8, 1, 8);
	put(buf + 6, sizeof(buf), 2);
	put(buf + 60, MRF_RAWKEY_MAX_SEG + 1, 4);
	put(buf + 40, in.len + 1, 8);
	sum(buf, sizeof(buf));
	refused(buf, sizeof(buf), -FI_EINVAL);
}
END_TEST

START_TEST(empty_segment_among_others_is_refused)
{
	struct mrf_rawkey in = sample(_i ? FI_MR_VIRT_ADDR : 0, 3);
	uint8_t buf[MRF_RAWKEY_MAX];

	/* The rest adds up. */
	in.len -= in.seg[1].len;
	if (!_i)
		in.seg[2].pos -= in.seg[1].len;
	in.seg[1].len = 0;
	refused(buf, mrf_rawkey_encode(&in, buf), -FI_EINVAL);
}
END_TEST

START_TEST(lengths_that_add_up_beyond_64_bits_are_refused)
{
	struct mrf_rawkey in = sample(FI_MR_VIRT_ADDR, 2);
	uint8_t buf[MRF_RAWKEY_MAX];

	/* Each of them is fine, and their sum is 0. */
	in.base = in.seg[0].pos = in.seg[1].pos = 0;
	in.seg[0].len = in.seg[1].len = 1ull << 63;
	in.len = 0;
	refused(buf, mrf_rawkey_encode(&in, buf), -FI_EINVAL);
}
END_TEST

START_TEST(iova_that_wraps_is_refused)
{
	struct mrf_rawkey in = sample(0, 1), out;
	uint8_t buf[MRF_RAWKEY_MAX];

	in.seg[0].len = in.len = UINT64_MAX - in.seg[0].iova_off;
	ck_assert_int_eq(decode(buf, mrf_rawkey_encode(&in, buf), &out), 0);
	in.seg[0].len = ++in.len;
	refused(buf, mrf_rawkey_encode(&in, buf), -FI_EINVAL);
}
END_TEST

static TCase *tcase_good(void)
{
	TCase *tc = tcase_create("good");

	tcase_add_loop_test(tc, key_comes_out_as_it_went_in, 0, 5);
	tcase_add_test(tc, region_without_bytes_or_rights_has_a_key_too);
	tcase_add_test(tc, layout_is_the_documented_one);
	tcase_add_test(tc, layout_of_several_segments_is_the_documented_one);
	tcase_add_test(tc, zeros_may_follow_and_nothing_else);
	return tc;
}

static TCase *tcase_bad(void)
{
	TCase *tc = tcase_create("bad");

	tcase_add_loop_test(tc, every_flipped_bit_is_found, 0, 6);
	tcase_add_loop_test(tc, every_truncated_key_is_refused, 0, MRF_RAWKEY_MAX_SEG + 1);
	tcase_add_test(tc, truncated_key_that_says_so_is_refused);
	tcase_add_loop_test(tc, key_that_says_to_be_longer_is_refused, 0, 3);
	tcase_add_test(tc, bytes_of_another_kind_are_no_raw_key);
	tcase_add_test(tc, other_version_is_told_apart_from_damage);
	tcase_add_loop_test(tc, nonsense_is_refused, 0,
			    (int)(sizeof(nonsense) / sizeof(nonsense[0])));
	tcase_add_test(tc, one_segment_is_only_taken_in_the_compact_form);
	tcase_add_test(tc, seventeen_segments_are_refused_though_all_else_is_right);
	tcase_add_loop_test(tc, empty_segment_among_others_is_refused, 0, 2);
	tcase_add_test(tc, lengths_that_add_up_beyond_64_bits_are_refused);
	tcase_add_test(tc, iova_that_wraps_is_refused);
	tcase_set_timeout(tc, 120);
	return tc;
}

UNIT_MAIN("rawkey", tcase_good, tcase_bad)
