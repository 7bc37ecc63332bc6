/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_atomic(3) on one element, without memory, peers or threads: which operation there is
 * for which datatype, and what it makes of an old value. Pure; nothing fails.
 *
 * Integers wrap. MIN, MAX and the ordered comparisons take floating point as C's < and >
 * do: what is compared with a NaN stays as it is. Logical operations take anything but
 * zero (a NaN, too) for true and give 1 or 0. FI_CSWAP compares values, so -0.0 equals
 * 0.0 and a NaN nothing.
 */
#ifndef MRF_ATOMIC_ATOMIC_H
#define MRF_ATOMIC_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <rdma/fi_domain.h>

/* What comes back, and what decides. */
enum mrf_atomic_family {
	MRF_ATOMIC_BASE,   /* nothing */
	MRF_ATOMIC_FETCH,  /* the old value */
	MRF_ATOMIC_COMPARE /* the old value; stored only where a comparison holds */
};

#define MRF_ATOMIC_MAX_SIZE 32 /* of an element: FI_LONG_DOUBLE_COMPLEX */

/* Bytes of an element; 0: there is no such datatype. */
size_t mrf_atomic_size(unsigned datatype);

/* Does the operation exist, in this family, for this datatype? Any numbers may be given.
 */
bool mrf_atomic_valid(unsigned family, unsigned datatype, unsigned op);

/*
 * What a valid operation makes of an element: true, value is to be stored; false, old
 * stays. All are mrf_atomic_size bytes, at any address; compare is read by the family
 * COMPARE only, and operand by all but FI_ATOMIC_READ. Padding bytes of long double stay
 * as they were, unless the whole element is replaced.
 */
bool mrf_atomic_apply(unsigned datatype, unsigned op, const void *old,
		      const void *operand, const void *compare, void *value);

#endif
