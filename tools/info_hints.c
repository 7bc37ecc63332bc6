/* SPDX-License-Identifier: BSD-2-Clause */
#include "info_hints.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "contract/limits.h"
#include "info_words.h"

enum section {
	INFO,
	TX,
	RX,
	EP,
	DOMAIN,
	FABRIC,
	OTHER, /* such as nic: not for hints */
	SECTIONS
};

static const char *const section_names[SECTIONS] = {
	[INFO] = "fi_info",  [TX] = "fi_tx_attr",	  [RX] = "fi_rx_attr",
	[EP] = "fi_ep_attr", [DOMAIN] = "fi_domain_attr", [FABRIC] = "fi_fabric_attr",
	[OTHER] = "nic",
};

enum kind { SET, WORD, NUMBER, STRING, HANDLING };

struct field {
	enum section section;
	const char *name;
	enum kind kind;
	size_t offset, size;
	enum fi_type type; /* of SET and WORD */
};

#define FIELD(section, structure, name, kind, type)                     \
	{                                                               \
		section, #name, kind, offsetof(struct structure, name), \
			sizeof(((struct structure *)0)->name), type     \
	}
#define COUNT(section, structure, name) FIELD(section, structure, name, NUMBER, FI_TYPE_INFO)
#define TEXT(section, structure, name) FIELD(section, structure, name, STRING, FI_TYPE_INFO)

static const struct field fields[] = {
	FIELD(INFO, fi_info, caps, SET, FI_TYPE_CAPS),
	FIELD(INFO, fi_info, mode, SET, FI_TYPE_MODE),
	FIELD(INFO, fi_info, addr_format, WORD, FI_TYPE_ADDR_FORMAT),
	FIELD(TX, fi_tx_attr, caps, SET, FI_TYPE_CAPS),
	FIELD(TX, fi_tx_attr, mode, SET, FI_TYPE_MODE),
	FIELD(TX, fi_tx_attr, op_flags, SET, FI_TYPE_OP_FLAGS),
	FIELD(TX, fi_tx_attr, msg_order, SET, FI_TYPE_MSG_ORDER),
	COUNT(TX, fi_tx_attr, inject_size),
	COUNT(TX, fi_tx_attr, size),
	COUNT(TX, fi_tx_attr, iov_limit),
	COUNT(TX, fi_tx_attr, rma_iov_limit),
	FIELD(RX, fi_rx_attr, caps, SET, FI_TYPE_CAPS),
	FIELD(RX, fi_rx_attr, mode, SET, FI_TYPE_MODE),
	FIELD(RX, fi_rx_attr, op_flags, SET, FI_TYPE_OP_FLAGS),
	FIELD(RX, fi_rx_attr, msg_order, SET, FI_TYPE_MSG_ORDER),
	COUNT(RX, fi_rx_attr, total_buffered_recv),
	COUNT(RX, fi_rx_attr, size),
	COUNT(RX, fi_rx_attr, iov_limit),
	FIELD(EP, fi_ep_attr, type, WORD, FI_TYPE_EP_TYPE),
	FIELD(EP, fi_ep_attr, protocol, WORD, FI_TYPE_PROTOCOL),
	COUNT(EP, fi_ep_attr, protocol_version),
	COUNT(EP, fi_ep_attr, max_msg_size),
	COUNT(EP, fi_ep_attr, msg_prefix_size),
	COUNT(EP, fi_ep_attr, max_order_raw_size),
	COUNT(EP, fi_ep_attr, max_order_war_size),
	COUNT(EP, fi_ep_attr, max_order_waw_size),
	COUNT(EP, fi_ep_attr, mem_tag_format),
	COUNT(EP, fi_ep_attr, tx_ctx_cnt),
	COUNT(EP, fi_ep_attr, rx_ctx_cnt),
	TEXT(DOMAIN, fi_domain_attr, name),
	FIELD(DOMAIN, fi_domain_attr, threading, WORD, FI_TYPE_THREADING),
	FIELD(DOMAIN, fi_domain_attr, control_progress, WORD, FI_TYPE_PROGRESS),
	FIELD(DOMAIN, fi_domain_attr, data_progress, WORD, FI_TYPE_PROGRESS),
	FIELD(DOMAIN, fi_domain_attr, resource_mgmt, HANDLING, FI_TYPE_DOMAIN_ATTR),
	FIELD(DOMAIN, fi_domain_attr, av_type, WORD, FI_TYPE_AV_TYPE),
	FIELD(DOMAIN, fi_domain_attr, mr_mode, SET, FI_TYPE_MR_MODE),
	COUNT(DOMAIN, fi_domain_attr, mr_key_size),
	COUNT(DOMAIN, fi_domain_attr, cq_data_size),
	COUNT(DOMAIN, fi_domain_attr, cq_cnt),
	COUNT(DOMAIN, fi_domain_attr, ep_cnt),
	COUNT(DOMAIN, fi_domain_attr, tx_ctx_cnt),
	COUNT(DOMAIN, fi_domain_attr, rx_ctx_cnt),
	COUNT(DOMAIN, fi_domain_attr, max_ep_tx_ctx),
	COUNT(DOMAIN, fi_domain_attr, max_ep_rx_ctx),
	COUNT(DOMAIN, fi_domain_attr, max_ep_stx_ctx),
	COUNT(DOMAIN, fi_domain_attr, max_ep_srx_ctx),
	COUNT(DOMAIN, fi_domain_attr, cntr_cnt),
	COUNT(DOMAIN, fi_domain_attr, mr_iov_limit),
	FIELD(DOMAIN, fi_domain_attr, caps, SET, FI_TYPE_CAPS),
	FIELD(DOMAIN, fi_domain_attr, mode, SET, FI_TYPE_MODE),
	COUNT(DOMAIN, fi_domain_attr, max_err_data),
	COUNT(DOMAIN, fi_domain_attr, mr_cnt),
	TEXT(FABRIC, fi_fabric_attr, name),
	TEXT(FABRIC, fi_fabric_attr, prov_name),
};

struct reading {
	const char *path;
	unsigned line;
	enum section section;
	bool begun; /* a fi_info */
	bool found; /* a structure */
	struct fi_info *hints;
};

static int fail_line(const struct reading *r, const char *what, const char *text)
{
	fprintf(stderr, "mrfab_info: %s:%u: %s: %s\n", r->path, r->line, what, text);
	return -EINVAL;
}

static void *structure_of(struct fi_info *hints, enum section section)
{
	void *const all[SECTIONS] = {
		[INFO] = hints,	       [TX] = hints->tx_attr,	      [RX] = hints->rx_attr,
		[EP] = hints->ep_attr, [DOMAIN] = hints->domain_attr, [FABRIC] = hints->fabric_attr
	};

	return all[section];
}

/* --- values --------------------------------------------------------------------------- */

static void put(const struct reading *r, const struct field *field, uint64_t value)
{
	char *at = (char *)structure_of(r->hints, field->section) + field->offset;
	uint32_t small = (uint32_t)value;

	memcpy(at, field->size == sizeof(small) ? (void *)&small : (void *)&value, field->size);
}

/* "[ FI_A, FI_B ]" */
static int read_set(const struct reading *r, const struct field *field, const char *text)
{
	struct info_words words = { field->type, true, field->size };
	uint64_t bit, all = 0;
	size_t len;

	for (text += strspn(text, " ,[]"); *text; text += strspn(text, " ,[]")) {
		len = strcspn(text, " ,[]");
		if (info_words_find(&words, text, len, &bit))
			all |= bit;
		else if (len < 5 || strncmp(text + len - 5, "_NONE", 5))
			return fail_line(r, "unknown word", text);
		text += len;
	}
	put(r, field, all);
	return 0;
}

/* What fi_tostr prints of every protocol that has no name; the library's own is one. */
static bool is_own_protocol(const struct field *field, const char *text)
{
	return field->type == FI_TYPE_PROTOCOL && !strcmp(text, "Provider specific");
}

static int read_word(const struct reading *r, const struct field *field, const char *text)
{
	struct info_words words = { field->type, false, field->size };
	size_t len = strlen(text);
	uint64_t value = 0;

	if (is_own_protocol(field, text))
		value = MRF_PROTOCOL;
	else if ((len < 6 || strcmp(text + len - 6, "UNSPEC")) &&
		 !info_words_find(&words, text, len, &value))
		return fail_line(r, "unknown word", text);
	put(r, field, value);
	return 0;
}

static int read_count(const struct reading *r, const struct field *field, const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (end == text || *end)
		return fail_line(r, "not a number", text);
	put(r, field, value);
	return 0;
}

static int read_text(const struct reading *r, const struct field *field, const char *text)
{
	char **at = (char **)((char *)structure_of(r->hints, field->section) + field->offset);

	if (!strcmp(text, "(null)"))
		return 0;
	free(*at);
	*at = strdup(text);
	return *at ? 0 : -ENOMEM;
}

/* resource_mgmt, whose words fi_tostr has no type for. */
static int read_handling(const struct reading *r, const struct field *field, const char *text)
{
	static const char *const names[] = { [FI_RM_UNSPEC] = "FI_RM_UNSPEC",
					     [FI_RM_DISABLED] = "FI_RM_DISABLED",
					     [FI_RM_ENABLED] = "FI_RM_ENABLED" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], text) != 0)
			continue;
		put(r, field, i);
		return 0;
	}
	return fail_line(r, "unknown word", text);
}

static int read_value(const struct reading *r, const struct field *field, const char *text)
{
	switch (field->kind) {
	case SET:
		return read_set(r, field, text);
	case WORD:
		return read_word(r, field, text);
	case NUMBER:
		return read_count(r, field, text);
	case STRING:
		return read_text(r, field, text);
	case HANDLING:
		return read_handling(r, field, text);
	}
	return -EINVAL;
}

/* --- lines ---------------------------------------------------------------------------- */

static bool begins_section(struct reading *r, const char *name)
{
	int i;

	for (i = 0; i < SECTIONS; i++) {
		if (strcmp(section_names[i], name) != 0)
			continue;
		r->section = (enum section)i;
		r->found = true;
		return true;
	}
	return false;
}

/* The fields of two answers would be mixed. */
static int begin_section(struct reading *r)
{
	if (r->section != INFO)
		return 0;
	if (r->begun)
		return fail_line(r, "a second structure, of which only one can be the hints",
				 section_names[INFO]);
	r->begun = true;
	return 0;
}

/* Nothing is lost if such a field is not set. */
static bool is_empty(const char *value)
{
	static const char *const nothing[] = {
		"0", "0.0", "0x0", "(null)", "(nil)", "[  ]", "[ FI_ORDER_NONE ]"
	};
	size_t i;

	for (i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
		if (!strcmp(nothing[i], value))
			return true;
	}
	return false;
}

static int read_field(const struct reading *r, const char *name, const char *value)
{
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (fields[i].section == r->section && !strcmp(fields[i].name, name))
			return read_value(r, &fields[i], value);
	}
	if (r->section != OTHER && !is_empty(value))
		fprintf(stderr, "mrfab_info: %s:%u: %s is left out\n", r->path, r->line, name);
	return 0;
}

static int read_line(struct reading *r, char *line)
{
	char *name = line + strspn(line, " \t"), *colon, *value;
	size_t len = strlen(name);

	while (len && isspace((unsigned char)name[len - 1]))
		name[--len] = '\0';
	if (!len || !strcmp(name, "---"))
		return 0;
	colon = strchr(name, ':');
	if (!colon)
		return fail_line(r, "not a line of fi_tostr", name);
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " ");
	if (!*value && begins_section(r, name))
		return begin_section(r);
	return read_field(r, name, value);
}

int info_hints_read(const char *path, struct fi_info *hints)
{
	struct reading r = { .path = path, .hints = hints };
	bool is_stdin = !strcmp(path, "-");
	FILE *file = is_stdin ? stdin : fopen(path, "re");
	char line[4096];
	int ret = 0;

	if (!file) {
		fprintf(stderr, "mrfab_info: %s: %s\n", path, strerror(errno));
		return -errno;
	}
	while (!ret && fgets(line, sizeof(line), file)) {
		r.line++;
		ret = read_line(&r, line);
	}
	if (!ret && ferror(file)) {
		ret = -errno;
		fprintf(stderr, "mrfab_info: %s: %s\n", path, strerror(-ret));
	} else if (!ret && !r.found) {
		ret = -EINVAL;
		fprintf(stderr, "mrfab_info: %s: it has none of the lines that fi_tostr prints\n",
			path);
	}
	if (!is_stdin)
		fclose(file);
	return ret;
}
