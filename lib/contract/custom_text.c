/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/custom_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool fail_file(const char *path, const char *wrong, char *why, size_t len)
{
	snprintf(why, len, "%.64s cannot be read: %s", path, wrong);
	return false;
}

static bool read_open(FILE *file, const char *path, char *text, char *why, size_t len)
{
	size_t n = fread(text, 1, MRF_CUSTOM_TEXT, file);
	char wrong[64];

	if (ferror(file))
		return fail_file(path, strerror(errno), why, len);
	if (n < MRF_CUSTOM_TEXT && !memchr(text, '\0', n)) {
		text[n] = '\0';
		return true;
	}
	snprintf(wrong, sizeof(wrong), "it must be text of at most %d bytes", MRF_CUSTOM_TEXT - 1);
	return fail_file(path, wrong, why, len);
}

bool mrf_custom_text(const char *path, char *text, char *why, size_t len)
{
	FILE *file = fopen(path, "re");
	bool ok;

	if (!file) {
		snprintf(why, len, "%.64s cannot be opened: %s", path, strerror(errno));
		return false;
	}
	ok = read_open(file, path, text, why, len);
	fclose(file);
	return ok;
}
