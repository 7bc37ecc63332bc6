/* SPDX-License-Identifier: BSD-2-Clause */
/* The corpus of tests/fuzz, as it is and with a few thousand small changes, without
 * libFuzzer. */
#include <dirent.h>
#include "../fuzz/fuzz_proto.h"
#include "unit.h"

#define LONGEST 1024
#define ROUNDS 3000

static size_t take_file(const char *dir, const char *name, uint8_t *buf)
{
	char path[1024];
	size_t len;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "rb");
	ck_assert_msg(file != NULL, "%s", path);
	len = fread(buf, 1, LONGEST, file);
	fclose(file);
	return len;
}

/* A few bytes changed, a few cut off. */
static size_t change(const uint8_t *from, size_t len, uint8_t *to)
{
	int n = rand() % 6;

	memcpy(to, from, len);
	while (n-- > 0 && len)
		to[(size_t)rand() % len] = (uint8_t)(rand() % 3 ? rand() : 0xff);
	return rand() % 4 || !len ? len : (size_t)rand() % len;
}

START_TEST(proto_corpus_and_its_neighbours_break_no_decoder)
{
	const char *src = getenv("srcdir");
	uint8_t input[LONGEST], changed[LONGEST];
	struct dirent *entry;
	char dir[512];
	unsigned files = 0;
	DIR *list;
	int i;

	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus", src ? src : ".");
	list = opendir(dir);
	ck_assert_msg(list != NULL, "%s", dir);
	srand(7);
	while ((entry = readdir(list))) {
		size_t len;

		if (entry->d_name[0] == '.')
			continue;
		len = take_file(dir, entry->d_name, input);
		ck_assert_int_eq(LLVMFuzzerTestOneInput(input, len), 0);
		for (i = 0; i < ROUNDS; i++)
			LLVMFuzzerTestOneInput(changed, change(input, len, changed));
		files++;
	}
	closedir(list);
	ck_assert_uint_ge(files, 15);
}
END_TEST

static TCase *tcase_corpus(void)
{
	TCase *tc = tcase_create("corpus");

	tcase_add_test(tc, proto_corpus_and_its_neighbours_break_no_decoder);
	tcase_set_timeout(tc, 60);
	return tc;
}

UNIT_MAIN("fuzz_proto", tcase_corpus)
