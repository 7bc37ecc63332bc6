/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A JSON array of objects in a file, each {"kind": {"name": value, ...}}, as `mrfab_info --pid --json`
 * prints it. Without a file nothing is written, so that callers need not ask. One thread.
 */
#ifndef MRF_BASE_JSON_H
#define MRF_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/names.h"

struct mrf_json {
	FILE *file; /* NULL: there is none */
	unsigned items;
	unsigned fields; /* of the object that was begun last */
};

/* An empty array, in place of what the file had. False, and errno: it cannot be written. */
bool mrf_json_open(struct mrf_json *json, const char *path);
/* Ends the array. False, and errno: not all of it was written. */
bool mrf_json_close(struct mrf_json *json);

/* An object, with its fields between the two calls. */
void mrf_json_begin(struct mrf_json *json, const char *kind);
void mrf_json_end(struct mrf_json *json);

void mrf_json_text(struct mrf_json *json, const char *name, const char *value);
void mrf_json_number(struct mrf_json *json, const char *name, uint64_t value);
/* "0x1f", because addresses and keys do not fit into what many readers have for a number. */
void mrf_json_hex(struct mrf_json *json, const char *name, uint64_t value);
void mrf_json_null(struct mrf_json *json, const char *name);
/* The names of the bits, as an array. */
void mrf_json_set(struct mrf_json *json, const char *name, const struct mrf_names *names,
		  uint64_t bits);

#endif
