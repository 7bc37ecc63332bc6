/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of fi_atomic(3): every operation on every datatype, on values that are
 * known to make trouble, against another way of computing the same: integers of any size
 * in 128 bits, floating point in a wider format.
 */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include "atomic/atomic.h"
#include "unit.h"

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __float128 quad;

#define TYPES 16
/* Without telling the framework that all is well, a million times. */
#define MUST(cond, ...)                            \
	do {                                       \
		if (!(cond))                       \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)
#define OPS 19

/* --- which there are ------------------------------------------------------------------ */

static const char *const sorts = "iiiiiiiiffccfcii"; /* by datatype */
static const size_t sizes[] = { 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16, 32, 16, 16 };
/* By operation: families, and datatypes by their sort. */
static const char *const families[] = { "bf", "bf", "bf", "bf", "bf", "bf", "bf", "bf", "bf", "bf",
					"f",  "bf", "c",  "c",	"c",  "c",  "c",  "c",	"c" };
static const char *const on[] = { "if",	 "if",	"ifc", "ifc", "ifc", "ifc", "i",  "i",	"ifc", "i",
				  "ifc", "ifc", "ifc", "ifc", "if",  "if",  "if", "if", "i" };

START_TEST(atomic_there_is_what_makes_sense_and_nothing_else)
{
	unsigned type, op, family;

	for (family = 0; family < 5; family++) {
		for (type = 0; type < 300; type++) {
			for (op = 0; op < 300; op++) {
				bool want = family < 3 && type < TYPES && op < OPS &&
					    strchr(families[op], "bfc"[family]) &&
					    strchr(on[op], sorts[type]);

				MUST(mrf_atomic_valid(family, type, op) == want,
				     "family %u, datatype %u, op %u", family, type, op);
			}
		}
	}
	ck_assert(!mrf_atomic_valid(0, UINT32_MAX, FI_SUM));
	ck_assert(!mrf_atomic_valid(0, FI_INT8, UINT32_MAX));
	for (type = 0; type < 300; type++)
		ck_assert_uint_eq(mrf_atomic_size(type), type < TYPES ? sizes[type] : 0);
}
END_TEST

/* --- integers ------------------------------------------------------------------------- */

static bool is_signed(unsigned type)
{
	return type == FI_INT8 || type == FI_INT16 || type == FI_INT32 || type == FI_INT64 ||
	       type == FI_INT128;
}

/* Into 128 bits, with its sign. */
static u128 widen(unsigned type, const void *p)
{
	size_t bits = sizes[type] * 8;
	u128 v = 0;

	memcpy(&v, p, sizes[type]);
	if (is_signed(type) && bits < 128 && (v >> (bits - 1) & 1))
		v |= ~(u128)0 << bits;
	return v;
}

static bool less(unsigned type, u128 a, u128 b)
{
	return is_signed(type) ? (s128)a < (s128)b : a < b;
}

/* What is to be stored; false: nothing. */
static bool want_int(unsigned type, unsigned op, const void *oldp, const void *srcp,
		     const void *cmpp, u128 *new)
{
	u128 old = widen(type, oldp), src = widen(type, srcp), cmp = widen(type, cmpp);

	*new = src;
	switch (op) {
	case FI_MIN:
		return less(type, src, old);
	case FI_MAX:
		return less(type, old, src);
	case FI_SUM:
		*new = old + src;
		return true;
	case FI_PROD:
		*new = old *src;
		return true;
	case FI_LOR:
		*new = old || src;
		return true;
	case FI_LAND:
		*new = old &&src;
		return true;
	case FI_LXOR:
		*new = !old != !src;
		return true;
	case FI_BOR:
		*new = old | src;
		return true;
	case FI_BAND:
		*new = old &src;
		return true;
	case FI_BXOR:
		*new = old ^ src;
		return true;
	case FI_ATOMIC_READ:
		return false;
	case FI_ATOMIC_WRITE:
		return true;
	case FI_CSWAP:
		return old == cmp;
	case FI_CSWAP_NE:
		return old != cmp;
	case FI_CSWAP_LE:
		return !less(type, old, cmp);
	case FI_CSWAP_LT:
		return less(type, cmp, old);
	case FI_CSWAP_GE:
		return !less(type, cmp, old);
	case FI_CSWAP_GT:
		return less(type, old, cmp);
	case FI_MSWAP:
		*new = (old & ~cmp) | (src & cmp);
		return true;
	default:
		ck_abort_msg("op %u", op);
	}
}

static unsigned int_values(u128 *v)
{
	unsigned n = 0, bit, i;

	for (bit = 0; bit < 128; bit += bit < 8 ? 1 : bit % 8 ? 1 : 7) {
		v[n++] = (u128)1 << bit;
		v[n++] = ((u128)1 << bit) - 1;
		v[n++] = ~((u128)1 << bit);
	}
	for (i = 0; i < 20; i++)
		v[n++] = (u128)(unsigned)rand() << 64 | (u128)(unsigned)rand() << 31 |
			 (unsigned)rand();
	return n;
}

/* With bytes around the value that are not its business, at an odd address. */
static bool apply(unsigned type, unsigned op, const void *old, const void *src, const void *cmp,
		  void *new)
{
	uint8_t buf[4][48];
	size_t size = mrf_atomic_size(type);
	bool stored;

	memset(buf, 0x5a, sizeof(buf));
	memcpy(buf[0] + 1, old, size);
	memcpy(buf[1] + 3, src, size);
	memcpy(buf[2] + 5, cmp, size);
	stored = mrf_atomic_apply(type, op, buf[0] + 1, buf[1] + 3, buf[2] + 5, buf[3] + 7);
	MUST(!memcmp(buf[0] + 1, old, size), "old was changed");
	MUST(buf[3][6] == 0x5a && buf[3][7 + size] == 0x5a, "written beside the element");
	memcpy(new, buf[3] + 7, size);
	return stored;
}

static void check_int(unsigned type, unsigned op, u128 old, u128 src, u128 cmp)
{
	u128 want, got = 0;
	bool stored = want_int(type, op, &old, &src, &cmp, &want);

	MUST(apply(type, op, &old, &src, &cmp, &got) == stored, "datatype %u, op %u: stored or not",
	     type, op);
	MUST(!stored || !memcmp(&got, &want, sizes[type]), "datatype %u, op %u: %llx", type, op,
	     (unsigned long long)got);
}

START_TEST(atomic_integers_of_every_size_wrap_and_compare_as_they_should)
{
	unsigned type = (unsigned)_i, op, n, i, j;
	u128 v[200];

	if (sorts[type] != 'i')
		return;
	srand(7);
	n = int_values(v);
	ck_assert_uint_le(n, 200);
	for (op = 0; op < OPS; op++) {
		for (i = 0; i < n; i++) {
			for (j = 0; j < n; j++)
				check_int(type, op, v[i], v[j], v[(i * 7 + j * 3) % n]);
			check_int(type, op, v[i], v[0], v[i]);
		}
	}
}
END_TEST

/* --- floating point ------------------------------------------------------------------- */

static long double fp_values[] = { 0.0L,   -0.0L, 1, -1, 1.5L, -2.25L, 3, 1e30L, -1e30L,
				   1e-30L, 0,	  0, 0,	 0,    0,      0, 0 };
#define NFP (sizeof(fp_values) / sizeof(fp_values[0]))

static void init_fp(long double max, long double tiny)
{
	fp_values[10] = (long double)INFINITY;
	fp_values[11] = (long double)-INFINITY;
	fp_values[12] = (long double)NAN;
	fp_values[13] = max;
	fp_values[14] = -max;
	fp_values[15] = tiny;
	fp_values[16] = max / 2;
}

/* One real value of a datatype. */
static void put_fp(unsigned type, long double v, void *p)
{
	float f = (float)v;
	double d = (double)v;

	memset(p, 0xee, sizes[type]);
	if (type == FI_FLOAT)
		memcpy(p, &f, sizeof(f));
	else if (type == FI_DOUBLE)
		memcpy(p, &d, sizeof(d));
	else
		memcpy(p, &v, LDBL_MANT_DIG == 64 ? 10 : sizeof(v));
}

static long double get_fp(unsigned type, const void *p)
{
	long double v;
	float f;
	double d;

	memcpy(&f, p, sizeof(f));
	if (type == FI_FLOAT)
		return f;
	memcpy(&d, p, sizeof(d));
	if (type == FI_DOUBLE)
		return d;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* In a format so wide that rounding twice is rounding once; long double has none. */
static long double exact(unsigned type, unsigned op, long double a, long double b)
{
	volatile long double sum = a + b, prod = a * b;
	quad q = op == FI_SUM ? (quad)a + (quad)b : (quad)a * (quad)b;

	if (type == FI_FLOAT)
		return (float)q;
	if (type == FI_DOUBLE)
		return (double)q;
	return op == FI_SUM ? sum : prod;
}

static bool want_fp(unsigned type, unsigned op, long double old, long double src, long double cmp,
		    long double *new)
{
	bool unordered = isnan(old) || isnan(cmp), o = !(old == 0), s = !(src == 0);

	*new = src;
	switch (op) {
	case FI_MIN:
		return isless(src, old);
	case FI_MAX:
		return isgreater(src, old);
	case FI_SUM:
	case FI_PROD:
		*new = exact(type, op, old, src);
		return true;
	case FI_LOR:
		*new = o | s;
		return true;
	case FI_LAND:
		*new = o &s;
		return true;
	case FI_LXOR:
		*new = o ^ s;
		return true;
	case FI_ATOMIC_READ:
		return false;
	case FI_ATOMIC_WRITE:
		return true;
	case FI_CSWAP:
		return !unordered && !islessgreater(old, cmp);
	case FI_CSWAP_NE:
		return unordered || islessgreater(old, cmp);
	case FI_CSWAP_LE:
		return !unordered && !isgreater(cmp, old);
	case FI_CSWAP_LT:
		return isless(cmp, old);
	case FI_CSWAP_GE:
		return !unordered && !isless(cmp, old);
	case FI_CSWAP_GT:
		return isgreater(cmp, old);
	default:
		ck_abort_msg("op %u", op);
	}
}

static bool same_fp(long double a, long double b)
{
	return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void check_fp(unsigned type, unsigned op, long double old, long double src, long double cmp)
{
	uint8_t b[4][16] = { { 0 } };
	long double want;
	bool stored;

	put_fp(type, old, b[0]);
	put_fp(type, src, b[1]);
	put_fp(type, cmp, b[2]);
	stored = want_fp(type, op, get_fp(type, b[0]), get_fp(type, b[1]), get_fp(type, b[2]),
			 &want);
	MUST(apply(type, op, b[0], b[1], b[2], b[3]) == stored,
	     "datatype %u, op %u, old %Lg, src %Lg, cmp %Lg: stored or not", type, op, old, src,
	     cmp);
	MUST(!stored || same_fp(get_fp(type, b[3]), want),
	     "datatype %u, op %u, old %Lg, src %Lg: %Lg instead of %Lg", type, op, old, src,
	     get_fp(type, b[3]), want);
}

START_TEST(atomic_floating_point_keeps_its_rules_for_nan_and_infinity)
{
	static const unsigned types[] = { FI_FLOAT, FI_DOUBLE, FI_LONG_DOUBLE };
	static const long double max[] = { FLT_MAX, DBL_MAX, LDBL_MAX },
				 tiny[] = { FLT_TRUE_MIN, DBL_TRUE_MIN, LDBL_TRUE_MIN };
	unsigned type = types[_i], op;
	size_t i, j, k;

	init_fp(max[_i], tiny[_i]);
	for (op = 0; op < OPS; op++) {
		if (!strchr(on[op], 'f'))
			continue;
		for (i = 0; i < NFP; i++)
			for (j = 0; j < NFP; j++)
				for (k = 0; k < NFP; k++)
					check_fp(type, op, fp_values[i], fp_values[j],
						 fp_values[k]);
	}
}
END_TEST

/* What a long double does not use of its 16 bytes: only replacing all of it replaces
 * them. */
START_TEST(atomic_padding_of_long_double_stays_unless_all_is_replaced)
{
	uint8_t old[16], src[16], new[16];

	put_fp(FI_LONG_DOUBLE, 2, old);
	put_fp(FI_LONG_DOUBLE, 1, src);
	memset(src + 10, 0x11, 6);
	ck_assert(apply(FI_LONG_DOUBLE, FI_SUM, old, src, src, new));
	ck_assert(get_fp(FI_LONG_DOUBLE, new) == 3);
	ck_assert_int_eq(memcmp(new + 10, old + 10, 6), 0);
	ck_assert(apply(FI_LONG_DOUBLE, FI_MIN, old, src, src, new));
	ck_assert_int_eq(memcmp(new + 10, old + 10, 6), 0);
	ck_assert(apply(FI_LONG_DOUBLE, FI_ATOMIC_WRITE, old, src, src, new));
	ck_assert_int_eq(memcmp(new, src, 16), 0);
	/* Compared are values. */
	ck_assert(apply(FI_LONG_DOUBLE, FI_CSWAP, src, old, src, new));
	memset(src + 10, 0x22, 6);
	ck_assert(apply(FI_LONG_DOUBLE, FI_CSWAP, src, old, src, new));
	ck_assert_int_eq(memcmp(new, old, 16), 0);
}
END_TEST

/* --- complex
 * --------------------------------------------------------------------------------------
 */

/* Two real values side by side. */
static void put_complex(unsigned part, long double re, long double im, uint8_t *p)
{
	put_fp(part, re, p);
	put_fp(part, im, p + sizes[part]);
}

START_TEST(atomic_complex_numbers_are_added_multiplied_and_compared)
{
	static const unsigned types[] = { FI_FLOAT_COMPLEX, FI_DOUBLE_COMPLEX,
					  FI_LONG_DOUBLE_COMPLEX },
			      parts[] = { FI_FLOAT, FI_DOUBLE, FI_LONG_DOUBLE };
	static const int v[] = { 0, 1, -1, 2, 7, -13 };
	unsigned type = types[_i], part = parts[_i], a, b, c, d;
	uint8_t old[32], src[32], new[32];

	for (a = 0; a < 6; a++)
		for (b = 0; b < 6; b++)
			for (c = 0; c < 6; c++)
				for (d = 0; d < 6; d++) {
					bool o = v[a] || v[b], s = v[c] || v[d],
					     eq = a == c && b == d;

					put_complex(part, v[a], v[b], old);
					put_complex(part, v[c], v[d], src);
#define RE get_fp(part, new)
#define IM get_fp(part, new + sizes[part])
					ck_assert(apply(type, FI_SUM, old, src, src, new));
					ck_assert(RE == v[a] + v[c] && IM == v[b] + v[d]);
					ck_assert(apply(type, FI_PROD, old, src, src, new));
					ck_assert(RE == v[a] * v[c] - v[b] * v[d] &&
						  IM == v[a] * v[d] + v[b] * v[c]);
					ck_assert(apply(type, FI_LOR, old, src, src, new));
					ck_assert(RE == (o || s) && IM == 0);
					ck_assert(apply(type, FI_LAND, old, src, src, new));
					ck_assert(RE == (o && s) && IM == 0);
					ck_assert(apply(type, FI_LXOR, old, src, src, new));
					ck_assert(RE == (o != s) && IM == 0);
					ck_assert(apply(type, FI_CSWAP, old, old, src, new) == eq);
					ck_assert(apply(type, FI_CSWAP_NE, old, src, src, new) ==
						  !eq);
					ck_assert(eq || !memcmp(new, src, sizes[type]));
					ck_assert(!apply(type, FI_ATOMIC_READ, old, src, src, new));
					ck_assert(apply(type, FI_ATOMIC_WRITE, old, src, src, new));
					ck_assert_int_eq(memcmp(new, src, sizes[type]), 0);
				}
	put_complex(part, (long double)NAN, 0, old);
	ck_assert(!apply(type, FI_CSWAP, old, src, old, new));
	ck_assert(apply(type, FI_CSWAP_NE, old, src, old, new));
}
END_TEST

static TCase *tcase_atomic(void)
{
	TCase *tc = tcase_create("atomic");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, atomic_there_is_what_makes_sense_and_nothing_else);
	tcase_add_loop_test(tc, atomic_integers_of_every_size_wrap_and_compare_as_they_should, 0,
			    TYPES);
	tcase_add_loop_test(tc, atomic_floating_point_keeps_its_rules_for_nan_and_infinity, 0, 3);
	tcase_add_test(tc, atomic_padding_of_long_double_stays_unless_all_is_replaced);
	tcase_add_loop_test(tc, atomic_complex_numbers_are_added_multiplied_and_compared, 0, 3);
	return tc;
}

UNIT_MAIN("atomic", tcase_atomic)
