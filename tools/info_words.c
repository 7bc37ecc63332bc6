/* SPDX-License-Identifier: BSD-2-Clause */
#include "info_words.h"

#include <string.h>
#include <strings.h>

/* Is text the name, or what follows "FI_MR_" in it (as in FI_MRFAB_MR_MODE)? */
static bool word_is(const char *name, const char *text, size_t len)
{
	if (strlen(name) == len && !strncasecmp(name, text, len))
		return true;
	return !strncmp(name, "FI_MR_", 6) && strlen(name + 6) == len &&
	       !strncasecmp(name + 6, text, len);
}

const char *info_words_name(const struct info_words *words, unsigned i, uint64_t *value)
{
	const char *name;
	uint32_t small;

	*value = words->bits ? 1ull << i : i + 1ull;
	small = (uint32_t)*value;
	name = fi_tostr(words->size == sizeof(small) ? (void *)&small : value, words->type);
	return name && !strncmp(name, "FI_", 3) ? name : NULL;
}

bool info_words_find(const struct info_words *words, const char *text, size_t len, uint64_t *value)
{
	const char *name;
	unsigned i;

	for (i = 0; i < INFO_WORDS_MAX; i++) {
		name = info_words_name(words, i, value);
		if (name && word_is(name, text, len))
			return true;
	}
	return false;
}
