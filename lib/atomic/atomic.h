/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_atomic(3) on one element, without memory, peers or threads: the operations that
 * exist for each datatype, and their results for an old value. Pure; nothing fails.
 *
 * Integers wrap. MIN, MAX and the ordered comparisons treat floating point like C's < and
 * >: a value compared with a NaN is left unchanged. Logical operations take every value
 * except zero (also a NaN) as true and give 1 or 0. FI_CSWAP compares values, so -0.0
 * equals 0.0, and a NaN equals nothing.
 */
#ifndef MRF_ATOMIC_ATOMIC_H
#define MRF_ATOMIC_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <rdma/fi_domain.h>

/* The value that an operation returns, and the condition for storing. */
enum mrf_atomic_family {
	MRF_ATOMIC_BASE,   /* nothing */
	MRF_ATOMIC_FETCH,  /* the old value */
	MRF_ATOMIC_COMPARE /* the old value; stored only where a comparison holds */
};

#define MRF_ATOMIC_MAX_SIZE 32 /* of an element: FI_LONG_DOUBLE_COMPLEX */

/* Bytes of an element; 0: there is no such datatype. */
size_t mrf_atomic_size(unsigned datatype);

/*
 * Does the operation exist in this family for this datatype? Any numbers may be passed.
 */
bool mrf_atomic_valid(unsigned family, unsigned datatype, unsigned op);

/*
 * Applies a valid operation to an element. True: value has to be stored; false: old
 * stays. All elements are mrf_atomic_size bytes long, at any address; compare is read for
 * the family COMPARE only, and operand for all operations except FI_ATOMIC_READ. Padding
 * bytes of long double keep their old values, unless the whole element is replaced.
 */
bool mrf_atomic_apply(unsigned datatype, unsigned op, const void *old, const void *operand,
		      const void *compare, void *value);

#endif
