/* SPDX-License-Identifier: BSD-2-Clause */
#include <complex.h>
#include <float.h>
#include <stdint.h>
#include <string.h>
#include "atomic/atomic.h"
#include "base/compiler.h"

/* gcc and clang on every 64-bit machine. */
__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* --- which there are -------------------------------------------------------------- */

enum { INTEGER = 1, REAL = 2, COMPLEX = 4, ORDERED = INTEGER | REAL, ALL = 7 };

#define BIT(family) (1u << MRF_ATOMIC_##family)

struct op {
	unsigned char families;
	unsigned char sorts;
};

static const struct op ops[] = {
	[FI_MIN] = { BIT(BASE) | BIT(FETCH), ORDERED },
	[FI_MAX] = { BIT(BASE) | BIT(FETCH), ORDERED },
	[FI_SUM] = { BIT(BASE) | BIT(FETCH), ALL },
	[FI_PROD] = { BIT(BASE) | BIT(FETCH), ALL },
	[FI_LOR] = { BIT(BASE) | BIT(FETCH), ALL },
	[FI_LAND] = { BIT(BASE) | BIT(FETCH), ALL },
	[FI_BOR] = { BIT(BASE) | BIT(FETCH), INTEGER },
	[FI_BAND] = { BIT(BASE) | BIT(FETCH), INTEGER },
	[FI_LXOR] = { BIT(BASE) | BIT(FETCH), ALL },
	[FI_BXOR] = { BIT(BASE) | BIT(FETCH), INTEGER },
	[FI_ATOMIC_READ] = { BIT(FETCH), ALL },
	[FI_ATOMIC_WRITE] = { BIT(BASE) | BIT(FETCH), ALL },
	[FI_CSWAP] = { BIT(COMPARE), ALL },
	[FI_CSWAP_NE] = { BIT(COMPARE), ALL },
	[FI_CSWAP_LE] = { BIT(COMPARE), ORDERED },
	[FI_CSWAP_LT] = { BIT(COMPARE), ORDERED },
	[FI_CSWAP_GE] = { BIT(COMPARE), ORDERED },
	[FI_CSWAP_GT] = { BIT(COMPARE), ORDERED },
	[FI_MSWAP] = { BIT(COMPARE), INTEGER },
};

/* --- what they do ----------------------------------------------------------------- */

#define LDBL_BYTES (LDBL_MANT_DIG == 64 ? 10u : (unsigned)sizeof(long double))

/* A value of several parts, each of which fills only some bytes of its place. */
static void store(void *to, const void *value, size_t size, size_t part, size_t fills)
{
	size_t i;

	for (i = 0; i < size; i += part)
		memcpy((char *)to + i, (const char *)value + i, fills);
}

/*
 * A function for each datatype. X has the operations that only some types have; W is a
 * type that is wide enough, and unsigned, so that integers wrap as defined. The CSWAPs
 * only decide here.
 */
#define DEFINE(name, type, W, part, fills, X)                                     \
	static bool apply_##name(unsigned op, const void *oldp, const void *srcp, \
				 const void *cmpp, void *out)                     \
	{                                                                         \
		type old, src, cmp, new;                                          \
                                                                                  \
		memcpy(&old, oldp, sizeof(old));                                  \
		memcpy(&src, srcp, sizeof(src));                                  \
		memcpy(&cmp, cmpp, sizeof(cmp));                                  \
		switch (op) {                                                     \
		case FI_SUM:                                                      \
			new = (type)((W)old + (W)src);                            \
			break;                                                    \
		case FI_PROD:                                                     \
			new = (type)((W)old * (W)src);                            \
			break;                                                    \
		case FI_LOR:                                                      \
			new = old != 0 || src != 0;                               \
			break;                                                    \
		case FI_LAND:                                                     \
			new = old != 0 && src != 0;                               \
			break;                                                    \
		case FI_LXOR:                                                     \
			new = (old != 0) != (src != 0);                           \
			break;                                                    \
		case FI_CSWAP:                                                    \
			return cmp == old;                                        \
		case FI_CSWAP_NE:                                                 \
			return cmp != old;                                        \
			X default : return false;                                 \
		}                                                                 \
		store(out, &new, sizeof(new), part, fills);                       \
		return true;                                                      \
	}

#define ORDERED_OPS                   \
	case FI_MIN:                  \
		if (!(src < old))     \
			return false; \
		new = src;            \
		break;                \
	case FI_MAX:                  \
		if (!(src > old))     \
			return false; \
		new = src;            \
		break;                \
	case FI_CSWAP_LE:             \
		return cmp <= old;    \
	case FI_CSWAP_LT:             \
		return cmp < old;     \
	case FI_CSWAP_GE:             \
		return cmp >= old;    \
	case FI_CSWAP_GT:             \
		return cmp > old;

#define INTEGER_OPS                               \
	ORDERED_OPS                               \
	case FI_BOR:                              \
		new = old | src;                  \
		break;                            \
	case FI_BAND:                             \
		new = old &src;                   \
		break;                            \
	case FI_BXOR:                             \
		new = old ^ src;                  \
		break;                            \
	case FI_MSWAP:                            \
		new = (src & cmp) | (old & ~cmp); \
		break;

#define INT(name, type, W) DEFINE(name, type, W, sizeof(type), sizeof(type), INTEGER_OPS)
#define FLOAT(name, type, fills) DEFINE(name, type, type, sizeof(type), fills, ORDERED_OPS)
#define CPLX(name, type, fills) DEFINE(name, type complex, type complex, sizeof(type), fills, )

#pragma GCC diagnostic push
/* The == of floating point is meant; the header says so. */
#pragma GCC diagnostic ignored "-Wfloat-equal"
INT(int8, int8_t, uint64_t)
INT(uint8, uint8_t, uint64_t)
INT(int16, int16_t, uint64_t)
INT(uint16, uint16_t, uint64_t)
INT(int32, int32_t, uint64_t)
INT(uint32, uint32_t, uint64_t)
INT(int64, int64_t, uint64_t)
INT(uint64, uint64_t, uint64_t)
INT(int128, int128, uint128)
INT(uint128, uint128, uint128)
FLOAT(float, float, sizeof(float))
FLOAT(double, double, sizeof(double))
FLOAT(long_double, long double, LDBL_BYTES)
CPLX(float_complex, float, sizeof(float))
CPLX(double_complex, double, sizeof(double))
CPLX(long_double_complex, long double, LDBL_BYTES)
#pragma GCC diagnostic pop

static const struct type {
	unsigned char size;
	unsigned char sort;
	bool (*apply)(unsigned op, const void *old, const void *operand, const void *compare,
		      void *value);
} types[] = {
	[FI_INT8] = { 1, INTEGER, apply_int8 },
	[FI_UINT8] = { 1, INTEGER, apply_uint8 },
	[FI_INT16] = { 2, INTEGER, apply_int16 },
	[FI_UINT16] = { 2, INTEGER, apply_uint16 },
	[FI_INT32] = { 4, INTEGER, apply_int32 },
	[FI_UINT32] = { 4, INTEGER, apply_uint32 },
	[FI_INT64] = { 8, INTEGER, apply_int64 },
	[FI_UINT64] = { 8, INTEGER, apply_uint64 },
	[FI_FLOAT] = { sizeof(float), REAL, apply_float },
	[FI_DOUBLE] = { sizeof(double), REAL, apply_double },
	[FI_FLOAT_COMPLEX] = { sizeof(float complex), COMPLEX, apply_float_complex },
	[FI_DOUBLE_COMPLEX] = { sizeof(double complex), COMPLEX, apply_double_complex },
	[FI_LONG_DOUBLE] = { sizeof(long double), REAL, apply_long_double },
	[FI_LONG_DOUBLE_COMPLEX] = { sizeof(long double complex), COMPLEX,
				     apply_long_double_complex },
	[FI_INT128] = { 16, INTEGER, apply_int128 },
	[FI_UINT128] = { 16, INTEGER, apply_uint128 },
};

_Static_assert(sizeof(long double complex) <= MRF_ATOMIC_MAX_SIZE, "the largest of all");

size_t mrf_atomic_size(unsigned datatype)
{
	return datatype < MRF_ARRAY_SIZE(types) ? types[datatype].size : 0;
}

bool mrf_atomic_valid(unsigned family, unsigned datatype, unsigned op)
{
	return family <= MRF_ATOMIC_COMPARE && datatype < MRF_ARRAY_SIZE(types) &&
	       op < MRF_ARRAY_SIZE(ops) && (ops[op].families >> family & 1) &&
	       (ops[op].sorts & types[datatype].sort);
}

bool mrf_atomic_apply(unsigned datatype, unsigned op, const void *old, const void *operand,
		      const void *compare, void *value)
{
	size_t size = mrf_atomic_size(datatype);

	if (op == FI_ATOMIC_READ)
		return false;
	if (op == FI_ATOMIC_WRITE) {
		memcpy(value, operand, size);
		return true;
	}
	memcpy(value, old, size);
	if (!types[datatype].apply(op, old, operand, compare ? compare : old, value))
		return false;
	if (op >= FI_CSWAP && op <= FI_CSWAP_GT)
		memcpy(value, operand, size);
	return true;
}
