/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFO_WORDS_H
#define INFO_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>

/* The words of a field, which are the library's own: fi_tostr tells them. */
struct info_words {
	enum fi_type type;
	bool bits;   /* or values from 1 on */
	size_t size; /* of the field, as fi_tostr reads it */
};

/* NULL: the library has no name for bit i, or for the value i + 1. *value is that bit or value. */
const char *info_words_name(const struct info_words *words, unsigned i, uint64_t *value);
/*
 * The value of a word; registration modes may be without FI_MR_, and case does not matter. False: there is
 * no such word.
 */
bool info_words_find(const struct info_words *words, const char *text, size_t len, uint64_t *value);

#define INFO_WORDS_MAX 64

#endif
