/* SPDX-License-Identifier: BSD-2-Clause */
/* What atomic operations do to one element, of integers and of floating point. */
#include <math.h>
#include <string.h>
#include "model_int.h"

bool is_atomic(const struct step *step)
{
	return step->kind == ATOMIC || step->kind == CHANGE || step->kind == INJECT ||
	       step->kind == COMPARE;
}

unsigned atomic_size(enum fi_datatype type)
{
	switch (type) {
	case FI_INT8:
	case FI_UINT8:
		return 1;
	case FI_INT16:
	case FI_UINT16:
		return 2;
	case FI_INT32:
	case FI_UINT32:
	case FI_FLOAT:
		return 4;
	default:
		return 8;
	}
}

static bool is_float(enum fi_datatype type)
{
	return type == FI_FLOAT || type == FI_DOUBLE;
}

static bool is_signed(enum fi_datatype type)
{
	return type == FI_INT8 || type == FI_INT16 || type == FI_INT32 || type == FI_INT64;
}

bool atomic_exists(enum kind kind, enum fi_datatype type, enum fi_op op)
{
	if (kind == COMPARE)
		return op >= FI_CSWAP && (op <= FI_CSWAP_GT || !is_float(type));
	if (op >= FI_CSWAP || (op == FI_ATOMIC_READ && kind != ATOMIC))
		return false;
	return !is_float(type) || (op != FI_BOR && op != FI_BAND && op != FI_BXOR);
}

/* --- values ------------------------------------------------------------------------- */

/* The machine is a little-endian one. A signed number has its sign in all 64 bits. */
static uint64_t integer_at(enum fi_datatype type, const uint8_t *at)
{
	unsigned bits = atomic_size(type) * 8;
	uint64_t value = 0;

	memcpy(&value, at, bits / 8);
	if (is_signed(type) && bits < 64 && value >> (bits - 1))
		value |= ~0ull << bits;
	return value;
}

static double float_at(enum fi_datatype type, const uint8_t *at)
{
	double value;
	float small;

	if (type == FI_DOUBLE) {
		memcpy(&value, at, sizeof(value));
		return value;
	}
	memcpy(&small, at, sizeof(small));
	return small;
}

static bool less(enum fi_datatype type, const uint8_t *a, const uint8_t *b)
{
	if (is_float(type))
		return float_at(type, a) < float_at(type, b);
	if (is_signed(type))
		return (int64_t)integer_at(type, a) < (int64_t)integer_at(type, b);
	return integer_at(type, a) < integer_at(type, b);
}

static bool equal(enum fi_datatype type, const uint8_t *a, const uint8_t *b)
{
	if (is_float(type))
		return float_at(type, a) == float_at(type, b);
	return integer_at(type, a) == integer_at(type, b);
}

static bool is_true(enum fi_datatype type, const uint8_t *at)
{
	return is_float(type) ? float_at(type, at) != 0 : integer_at(type, at) != 0;
}

bool atomic_is_nan(enum fi_datatype type, const uint8_t *at)
{
	return is_float(type) && isnan(float_at(type, at));
}

/* --- operations --------------------------------------------------------------------- */

/* Does the comparand let the operand take the place of what is there? */
static bool swaps(enum fi_op op, enum fi_datatype type, const uint8_t *compare, const uint8_t *old)
{
	bool same = equal(type, compare, old);

	switch (op) {
	case FI_CSWAP:
		return same;
	case FI_CSWAP_NE:
		return !same;
	case FI_CSWAP_LE:
		return same || less(type, compare, old);
	case FI_CSWAP_LT:
		return less(type, compare, old);
	case FI_CSWAP_GE:
		return same || less(type, old, compare);
	default:
		return less(type, old, compare);
	}
}

/* A sum or product of floats is the same when it is one of doubles first. */
static void put_float(enum fi_datatype type, uint8_t *at, double value)
{
	float small = (float)value;

	if (type == FI_DOUBLE)
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &small, sizeof(small));
}

static void calculate(enum fi_op op, enum fi_datatype type, uint8_t *at, const uint8_t *operand)
{
	uint64_t a = integer_at(type, at), b = integer_at(type, operand), c;

	if (is_float(type)) {
		double x = float_at(type, at), y = float_at(type, operand);

		put_float(type, at, op == FI_SUM ? x + y : x * y);
		return;
	}
	c = op == FI_SUM    ? a + b
	    : op == FI_PROD ? a * b
	    : op == FI_BOR  ? a | b
	    : op == FI_BAND ? a & b
			    : a ^ b;
	memcpy(at, &c, atomic_size(type));
}

static void put_bool(enum fi_datatype type, uint8_t *at, bool value)
{
	uint64_t integer = value;

	if (is_float(type))
		put_float(type, at, value);
	else
		memcpy(at, &integer, atomic_size(type));
}

static void combine(enum fi_op op, enum fi_datatype type, uint8_t *at, const uint8_t *operand)
{
	bool a = is_true(type, at), b = is_true(type, operand);

	switch (op) {
	case FI_MIN:
		if (less(type, operand, at))
			memcpy(at, operand, atomic_size(type));
		break;
	case FI_MAX:
		if (less(type, at, operand))
			memcpy(at, operand, atomic_size(type));
		break;
	case FI_LOR:
		put_bool(type, at, a || b);
		break;
	case FI_LAND:
		put_bool(type, at, a && b);
		break;
	case FI_LXOR:
		put_bool(type, at, a != b);
		break;
	case FI_ATOMIC_READ:
		break;
	case FI_ATOMIC_WRITE:
		memcpy(at, operand, atomic_size(type));
		break;
	default:
		calculate(op, type, at, operand);
		break;
	}
}

static void compare_and_swap(enum fi_op op, enum fi_datatype type, uint8_t *at,
			     const uint8_t *operand, const uint8_t *compare)
{
	if (op != FI_MSWAP) {
		if (swaps(op, type, compare, at))
			memcpy(at, operand, atomic_size(type));
		return;
	}
	for (unsigned i = 0; i < atomic_size(type); i++)
		at[i] = (uint8_t)((operand[i] & compare[i]) | (at[i] & ~compare[i]));
}

bool atomic_do(enum fi_op op, enum fi_datatype type, uint8_t *at, const uint8_t *operand,
	       const uint8_t *compare)
{
	unsigned size = atomic_size(type);
	uint8_t old[8];

	memcpy(old, at, size);
	if (op >= FI_CSWAP)
		compare_and_swap(op, type, at, operand, compare);
	else
		combine(op, type, at, operand);
	return memcmp(old, at, size) && !atomic_is_nan(type, at);
}
