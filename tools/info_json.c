/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "info_json.h"

#define INDENT 4 /* blanks of fi_tostr for each level */

void info_json_string(const char *text, size_t len)
{
	size_t i;

	putchar('"');
	for (i = 0; i < len; i++) {
		if (iscntrl((unsigned char)text[i]))
			printf("\\u%04x", text[i]);
		else if (text[i] == '"' || text[i] == '\\')
			printf("\\%c", text[i]);
		else
			putchar(text[i]);
	}
	putchar('"');
}

/* "FI_A, FI_B ]" */
void info_json_set(const char *text, size_t len)
{
	const char *end = text + len, *separator = "";
	size_t n;

	putchar('[');
	for (; text < end; text += n) {
		text += strspn(text, " ,]");
		n = strcspn(text, " ,]\n");
		if (text >= end || !n)
			break;
		fputs(separator, stdout);
		info_json_string(text, n);
		separator = ", ";
	}
	putchar(']');
}

static bool is(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && !strncmp(text, word, len);
}

static void print_value(const char *text, size_t len)
{
	if (len && *text == '[')
		info_json_set(text + 1, len - 1);
	else if (is(text, len, "(null)") || is(text, len, "(nil)"))
		fputs("null", stdout);
	else if (len && strspn(text, "0123456789") >= len)
		printf("%.*s", (int)len, text);
	else
		info_json_string(text, len);
}

/* "    name: value", or "    name:" before lines that are deeper. */
static void print_line(const char *line, size_t len, size_t *depth, bool *first)
{
	size_t blanks = strspn(line, " "), own = blanks / INDENT, name;

	for (; *depth > own; (*depth)--, *first = false)
		putchar('}');
	line += blanks;
	len -= blanks;
	name = strcspn(line, ":");
	fputs(*first ? "" : ", ", stdout);
	info_json_string(line, name);
	fputs(": ", stdout);
	*first = name + 1 >= len;
	if (*first) {
		putchar('{');
		*depth = own + 1;
	} else {
		print_value(line + name + 2, len - name - 2);
	}
}

/* Without its first line, which is the structure's name. */
static void print_one(const struct fi_info *info)
{
	const char *line = fi_tostr(info, FI_TYPE_INFO);
	size_t depth = 1, len;
	bool first = true;

	putchar('{');
	for (line += strcspn(line, "\n"); *line; line += len) {
		line++;
		len = strcspn(line, "\n");
		if (len)
			print_line(line, len, &depth, &first);
	}
	for (; depth; depth--)
		putchar('}');
}

void info_json_print(const struct fi_info *list)
{
	const struct fi_info *info;

	putchar('[');
	for (info = list; info; info = info->next) {
		print_one(info);
		fputs(info->next ? ",\n" : "", stdout);
	}
	puts("]");
}
