/* SPDX-License-Identifier: BSD-2-Clause */
/* What atomic operations do to unsigned integers. */
#include <string.h>
#include "model_int.h"

unsigned atomic_size(enum fi_datatype type)
{
	switch (type) {
	case FI_UINT8:
		return 1;
	case FI_UINT16:
		return 2;
	case FI_UINT32:
		return 4;
	default:
		return 8;
	}
}

static uint64_t combine(enum fi_op op, uint64_t old, uint64_t operand)
{
	switch (op) {
	case FI_SUM:
		return old + operand;
	case FI_BXOR:
		return old ^ operand;
	case FI_MAX:
		return old > operand ? old : operand;
	case FI_LAND:
		return old && operand;
	case FI_ATOMIC_WRITE:
		return operand;
	default:
		return old;
	}
}

bool atomic_do(enum fi_op op, unsigned size, uint8_t *at, const uint8_t *operand)
{
	uint64_t old = 0, with = 0, new;

	/* The machine is a little-endian one. */
	memcpy(&old, at, size);
	memcpy(&with, operand, size);
	new = combine(op, old, with);
	memcpy(&with, &new, size);
	memcpy(at, &with, size);
	with = 0;
	memcpy(&with, at, size);
	return with != old;
}
