/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Without libFuzzer: gives a corpus to the fuzz target that the test is linked with, as
 * it is and with a few thousand small changes to each file.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <dirent.h>
#include "fuzz.h"
#include "../unit/unit.h"

#define REPLAY_LONGEST 1024
#define REPLAY_ROUNDS 3000

static size_t replay_take(const char *dir, const char *name, uint8_t *buf)
{
	char path[1024];
	size_t len;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "rb");
	ck_assert_msg(file != NULL, "%s", path);
	len = fread(buf, 1, REPLAY_LONGEST, file);
	fclose(file);
	return len;
}

/* A few bytes changed, a few cut off. */
static size_t replay_change(const uint8_t *from, size_t len, uint8_t *to)
{
	int n = rand() % 6;

	memcpy(to, from, len);
	while (n-- > 0 && len)
		to[(size_t)rand() % len] = (uint8_t)(rand() % 3 ? rand() : 0xff);
	return rand() % 4 || !len ? len : (size_t)rand() % len;
}

static void replay_file(const char *dir, const char *name)
{
	uint8_t input[REPLAY_LONGEST], changed[REPLAY_LONGEST];
	size_t len = replay_take(dir, name, input);
	int i;

	ck_assert_int_eq(LLVMFuzzerTestOneInput(input, len), 0);
	for (i = 0; i < REPLAY_ROUNDS; i++)
		LLVMFuzzerTestOneInput(changed, replay_change(input, len, changed));
}

/* How many files there were in the directory of this name. */
static unsigned fuzz_replay(const char *corpus)
{
	const char *src = getenv("srcdir");
	struct dirent *entry;
	char dir[512];
	unsigned files = 0;
	DIR *list;

	snprintf(dir, sizeof(dir), "%s/tests/fuzz/%s", src ? src : ".", corpus);
	list = opendir(dir);
	ck_assert_msg(list != NULL, "%s", dir);
	srand(7);
	while ((entry = readdir(list))) {
		if (entry->d_name[0] == '.')
			continue;
		replay_file(dir, entry->d_name);
		files++;
	}
	closedir(list);
	return files;
}

#endif
