/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "info_code.h"

#define COLUMNS 78

static const struct {
	const char *code; /* "E4105" */
	const char *text; /* sentences; \n begins a new paragraph */
} messages[] = {
/* Made of the page by messages.awk. */
#include "tools/messages.inc" /* in the build folder */
};

/* One paragraph, up to the end or a newline. Returns what follows. */
static const char *print_paragraph(const char *text)
{
	size_t column = 0, n;

	while (*text && *text != '\n') {
		n = strcspn(text, " \n");
		if (column && column + 1 + n > COLUMNS) {
			putchar('\n');
			column = 0;
		}
		column += (size_t)printf("%s%.*s", column ? " " : "", (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
	putchar('\n');
	return *text ? text + 1 : text;
}

bool info_code_print(const char *code)
{
	const char *bare = strncasecmp(code, "MRF-", 4) ? code : code + 4, *text;
	size_t i;

	for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		if (strcasecmp(messages[i].code, bare) && strcmp(messages[i].code + 1, bare))
			continue;
		printf("MRF-%s\n", messages[i].code);
		for (text = messages[i].text; *text;)
			text = print_paragraph(text);
		return true;
	}
	fprintf(stderr, "mrfab_info: %s is not the code of a message, such as MRF-E4105\n", code);
	return false;
}
