/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

bool mrf_json_open(struct mrf_json *json, const char *path)
{
	*json = (struct mrf_json){ .file = fopen(path, "we") };
	return json->file && fputc('[', json->file) != EOF;
}

bool mrf_json_close(struct mrf_json *json)
{
	bool whole;

	if (!json->file)
		return true;
	fputs("\n]\n", json->file);
	whole = !ferror(json->file);
	/* Both, whatever the first one says. */
	whole = !fclose(json->file) && whole;
	json->file = NULL;
	return whole;
}

static void write_string(FILE *file, const char *text, size_t len)
{
	size_t i;

	fputc('"', file);
	for (i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ')
			fprintf(file, "\\u%04x", text[i]);
		else if (text[i] == '"' || text[i] == '\\')
			fprintf(file, "\\%c", text[i]);
		else
			fputc(text[i], file);
	}
	fputc('"', file);
}

void mrf_json_begin(struct mrf_json *json, const char *kind)
{
	if (!json->file)
		return;
	fputs(json->items++ ? ",\n  {" : "\n  {", json->file);
	write_string(json->file, kind, strlen(kind));
	fputs(": {", json->file);
	json->fields = 0;
}

void mrf_json_end(struct mrf_json *json)
{
	if (json->file)
		fputs("}}", json->file);
}

/* Before each value. False: there is no file. */
static bool name_field(struct mrf_json *json, const char *name)
{
	if (!json->file)
		return false;
	fputs(json->fields++ ? ", " : "", json->file);
	write_string(json->file, name, strlen(name));
	fputs(": ", json->file);
	return true;
}

void mrf_json_text(struct mrf_json *json, const char *name, const char *value)
{
	if (name_field(json, name))
		write_string(json->file, value, strlen(value));
}

void mrf_json_number(struct mrf_json *json, const char *name, uint64_t value)
{
	if (name_field(json, name))
		fprintf(json->file, "%" PRIu64, value);
}

void mrf_json_hex(struct mrf_json *json, const char *name, uint64_t value)
{
	if (name_field(json, name))
		fprintf(json->file, "\"0x%" PRIx64 "\"", value);
}

void mrf_json_null(struct mrf_json *json, const char *name)
{
	if (name_field(json, name))
		fputs("null", json->file);
}

void mrf_json_set(struct mrf_json *json, const char *name, const struct mrf_names *names,
		  uint64_t bits)
{
	char text[512], *at = text;
	const char *separator = "";
	size_t n;

	if (!name_field(json, name))
		return;
	fputc('[', json->file);
	mrf_names_bits(names, bits, text, sizeof(text));
	for (; bits && *at; at += n + strspn(at + n, ", ")) {
		n = strcspn(at, ",");
		fputs(separator, json->file);
		write_string(json->file, at, n);
		separator = ", ";
	}
	fputc(']', json->file);
}
