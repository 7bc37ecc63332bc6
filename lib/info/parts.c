/* SPDX-License-Identifier: BSD-2-Clause */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include "auth/auth.h"
#include "base/compiler.h"
#include "info/query.h"

void *mrf_info_copy(const void *from, size_t len)
{
	void *copy = from && len ? malloc(len) : NULL;

	if (copy)
		memcpy(copy, from, len);
	return copy;
}

bool mrf_info_own(void **at, size_t len)
{
	const void *from = *at;

	*at = mrf_info_copy(from, len);
	return *at || !from || !len;
}

static void **pointer_at(const void *structure, size_t at)
{
	return (void **)(void *)((char *)(uintptr_t)structure + at);
}

static size_t key_size(const struct mrf_info_part *part, const void *structure)
{
	return *(const size_t *)(const void *)pointer_at(structure, part->key_size);
}

bool mrf_info_part_new(const struct mrf_info_part *part, void *owner)
{
	void **at = pointer_at(owner, part->at);

	if (!*at)
		*at = calloc(1, part->size);
	return *at;
}

bool mrf_info_part_copy(const struct mrf_info_part *part, void *owner, const void *from)
{
	void **at = pointer_at(owner, part->at), *to;
	bool ok = true;
	unsigned i;

	*at = *pointer_at(from, part->at);
	if (!*at)
		return true;
	if (!mrf_info_own(at, part->size))
		return false;
	to = *at;
	for (i = 0; i < part->nstrings; i++) {
		void **string = pointer_at(to, part->string[i]);

		ok &= mrf_info_own(string, *string ? strlen(*string) + 1 : 0);
	}
	if (part->key)
		ok &= mrf_info_own(pointer_at(to, part->key), key_size(part, to));
	return ok;
}

/*
 * Overwrites the key before it is freed; a size that is larger than the key does no harm.
 */
static void free_key(void *key, size_t size)
{
	if (key)
		mrf_auth_wipe(key, mrf_min(size, malloc_usable_size(key)));
	free(key);
}

void mrf_info_part_free(const struct mrf_info_part *part, void *owner)
{
	void *structure = *pointer_at(owner, part->at);
	unsigned i;

	if (!structure)
		return;
	for (i = 0; i < part->nstrings; i++)
		free(*pointer_at(structure, part->string[i]));
	if (part->key)
		free_key(*pointer_at(structure, part->key), key_size(part, structure));
	free(structure);
}
