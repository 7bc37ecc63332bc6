/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/custom.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/list.h"
#include "base/names.h"
#include "base/renew.h"
#include "contract/limits.h"
#include "contract/profile.h"

/* Domains point to them, so they are never freed; programs use few. */
struct custom {
	struct mrf_list node;
	struct mrf_profile profile;
	struct mrf_promise promise;
	char *name; /* of the profile, if it is from a file */
	char *text;
	char what[96]; /* of the profile: it stands in lines of the log */
};

#define FILE_MAX 65536 /* bytes of a file */

static struct mrf_static_lock customs_lock = MRF_STATIC_LOCK(NULL);
static struct mrf_list customs = { &customs, &customs };

/* --- words ---------------------------------------------------------------------------- */

static bool read_value(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno && *value >= min && *value <= max;
}

static void lack(struct mrf_profile *profile, size_t which)
{
	static const enum mrf_profile_call calls[] = { MRF_PROFILE_RAW_ATTR, MRF_PROFILE_BIND_CNTR,
						       MRF_PROFILE_BIND_EP,  MRF_PROFILE_ENABLE,
						       MRF_PROFILE_REFRESH,  MRF_PROFILE_REG_MR };

	profile->error[calls[which]] = FI_ENOSYS;
	if (calls[which] == MRF_PROFILE_RAW_ATTR)
		profile->error[MRF_PROFILE_MAP_RAW] = FI_ENOSYS;
}

static bool lack_call(struct mrf_profile *profile, const char *text, size_t len)
{
	static const char *const names[] = { "raw", "cntr", "ep", "enable", "refresh", "queue" };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(names); i++) {
		if (!mrf_names_is(text, len, names[i]))
			continue;
		lack(profile, i);
		return true;
	}
	return false;
}

/* Directions go with the last thing that they are directions of. */
static void drop_caps(uint64_t *caps, uint64_t dropped)
{
	*caps &= ~dropped;
	if (!(*caps & (FI_RMA | FI_ATOMIC)))
		*caps &= ~(MRF_CAPS_RMA_WAYS | FI_RMA_EVENT | FI_RMA_PMEM);
	if (!(*caps & MRF_CAPS_MSG_WHATS))
		*caps &= ~(MRF_CAPS_MSG_WAYS | FI_MULTI_RECV | MRF_CAPS_RX_LABELS);
}

/* "ATOMIC" or "FI_ATOMIC" */
static bool lack_cap(struct mrf_promise *promise, const char *text, size_t len)
{
	const struct mrf_name *row = mrf_names_caps.rows;
	size_t i;

	for (i = 0; i < mrf_names_caps.count; i++) {
		if (!(row[i].value & MRF_CAPS_ALL & ~(MRF_CAPS_RMA_WAYS | MRF_CAPS_MSG_WAYS)) ||
		    !(mrf_names_is(text, len, row[i].name) ||
		      mrf_names_is(text, len, row[i].name + 3)))
			continue;
		drop_caps(&promise->caps, row[i].value);
		return true;
	}
	return false;
}

/* "raw+refresh+ATOMIC" */
static bool read_lacks(const char *text, struct custom *custom)
{
	size_t len;

	do {
		len = strcspn(text, "+");
		if (!lack_call(&custom->profile, text, len) &&
		    !lack_cap(&custom->promise, text, len))
			return false;
		text += len;
	} while (*text++ == '+');
	return true;
}

static bool read_modes(const char *text, struct mrf_profile *profile, char *why, size_t len)
{
	struct mrf_mr_offer offer;

	if (!mrf_mr_offer_parse(text, &offer, why, len))
		return false;
	profile->table = offer.table;
	return true;
}

enum limit { KEY_SIZE, MAX_KEY, IOV_LIMIT, MR_CNT, INJECT_SIZE, MAX_MSG_SIZE, LIMITS };

static void set_key_size(struct mrf_profile *profile, uint64_t n)
{
	profile->key_size = (unsigned)n;
	if (n < 8 && profile->max_key >> (8 * n))
		profile->max_key = (1ull << (8 * n)) - 1;
}

static void set_limit(struct custom *custom, enum limit limit, uint64_t n)
{
	switch (limit) {
	case KEY_SIZE:
		set_key_size(&custom->profile, n);
		break;
	case MAX_KEY:
		custom->profile.max_key = n;
		break;
	case IOV_LIMIT:
		custom->profile.iov_limit = (unsigned)n;
		break;
	case MR_CNT:
		custom->profile.mr_cnt = n;
		break;
	case INJECT_SIZE:
		custom->promise.inject = (unsigned)n;
		break;
	case MAX_MSG_SIZE:
		custom->promise.msg_size = n;
		break;
	case LIMITS:
		break;
	}
}

/* A word with a number; buf, with what is wrong with it, or NULL. */
static const char *read_limit(const char *word, const char *value, struct custom *custom, char *buf,
			      size_t len)
{
	static const struct {
		const char *name;
		uint64_t min, max;
	} rows[LIMITS] = {
		[KEY_SIZE] = { "key_size=", 1, 8 },
		[MAX_KEY] = { "max_key=", 1, UINT64_MAX - 1 },
		[IOV_LIMIT] = { "iov_limit=", 1, MRF_LIMIT_MR_IOV },
		[MR_CNT] = { "mr_cnt=", 1, UINT32_MAX },
		[INJECT_SIZE] = { "inject_size=", 0, MRF_LIMIT_INJECT },
		[MAX_MSG_SIZE] = { "max_msg_size=", 1, MRF_LIMIT_MSG_SIZE },
	};
	uint64_t n = 0;
	int i;

	for (i = 0; i < LIMITS; i++) {
		if (strncasecmp(word, rows[i].name, strlen(rows[i].name)) != 0)
			continue;
		if (read_value(value, rows[i].min, rows[i].max, &n)) {
			set_limit(custom, (enum limit)i, n);
			return NULL;
		}
		snprintf(buf, len, "it must be a number from %lu to %lu", rows[i].min, rows[i].max);
		return buf;
	}
	return "it must be mr_mode=, key_size=, max_key=, iov_limit=, mr_cnt=, inject_size=, "
	       "max_msg_size= or lacks=";
}

static bool read_word(const char *word, struct custom *custom, char *why, size_t len)
{
	const char *value = strchr(word, '='), *wrong;
	char buf[96];

	if (value && !strncasecmp(word, "mr_mode=", 8))
		return read_modes(value + 1, &custom->profile, why, len);
	if (value && !strncasecmp(word, "lacks=", 6))
		wrong = read_lacks(value + 1, custom)
				? NULL
				: "it must be raw, cntr, ep, enable, refresh, queue, or a "
				  "capability, joined by +";
	else
		wrong = read_limit(word, value ? value + 1 : "", custom, buf, sizeof(buf));
	if (wrong)
		snprintf(why, len, "\"%s\": %s", word, wrong);
	return !wrong;
}

/* The words between text and end. */
static bool read_words(const char *text, const char *end, struct custom *custom, char *why,
		       size_t len)
{
	char word[128];
	size_t n;

	for (; text < end; text += n) {
		n = strspn(text, ", \t\r");
		if (!n) {
			n = strcspn(text, ", \t\r\n");
			snprintf(word, sizeof(word), "%.*s", (int)n, text);
			if (!read_word(word, custom, why, len))
				return false;
		}
	}
	return true;
}

/* A line at a time; # begins a comment. */
static bool read_lines(const char *path, const char *text, struct custom *custom, char *why,
		       size_t len)
{
	char wrong[192];
	unsigned line;

	for (line = 1; *text; line++) {
		if (!read_words(text, text + strcspn(text, "#\n"), custom, wrong, sizeof(wrong))) {
			snprintf(why, len, "%.64s, line %u: %s", path, line, wrong);
			return false;
		}
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return true;
}

/* --- those that were asked for -------------------------------------------------------- */

static void custom_free(struct custom *custom)
{
	free(custom->name);
	free(custom->text);
	free(custom);
}

/* A file has its name in the profile's. Of many words the first ones are enough to know it again. */
static void set_what(struct custom *custom, const char *path, const char *text)
{
	size_t most = sizeof(custom->what) - 1;

	snprintf(custom->what, sizeof(custom->what), "%s", path ? "words in a file" : text);
	if (!path && strlen(text) > most)
		strcpy(custom->what + most - 3, "...");
}

/* path: of the file that the text is from; NULL: of none. */
static bool fill_custom(struct custom *custom, const char *path, const char *text, char *why,
			size_t len)
{
	custom->promise = mrf_promise_all;
	set_what(custom, path, text);
	custom->profile = (struct mrf_profile){ .name = "custom",
						.what = custom->what,
						.max_key = UINT64_MAX,
						.mr_cnt = MRF_LIMIT_MR_CNT,
						.key_size = 8,
						.iov_limit = MRF_LIMIT_MR_IOV,
						.iov_error = FI_EINVAL,
						.promise = &custom->promise };
	custom->text = strdup(text);
	if (!custom->text || (path && asprintf(&custom->name, "file:%s", path) < 0)) {
		snprintf(why, len, "there is no memory");
		return false;
	}
	if (!path)
		return read_words(text, text + strlen(text), custom, why, len);
	custom->profile.name = custom->name;
	return read_lines(path, text, custom, why, len);
}

static struct custom *custom_new(const char *path, const char *text, char *why, size_t len)
{
	struct custom *custom = calloc(1, sizeof(*custom));

	snprintf(why, len, "there is no memory");
	if (!custom || fill_custom(custom, path, text, why, len))
		return custom;
	custom_free(custom);
	return NULL;
}

static bool same_file(const struct custom *custom, const char *path)
{
	if (!custom->name || !path)
		return !custom->name && !path;
	return !strcmp(custom->profile.name + strlen("file:"), path);
}

static struct custom *find_custom(const char *path, const char *text)
{
	mrf_list_each (node, &customs) {
		struct custom *custom = mrf_list_entry(node, struct custom, node);

		if (same_file(custom, path) && !strcmp(custom->text, text))
			return custom;
	}
	return NULL;
}

static const struct mrf_profile *get_custom(const char *path, const char *text, char *why,
					    size_t len)
{
	struct custom *custom;

	mrf_static_take(&customs_lock);
	custom = find_custom(path, text);
	if (!custom) {
		custom = custom_new(path, text, why, len);
		if (custom)
			mrf_list_add_tail(&custom->node, &customs);
	}
	mrf_static_release(&customs_lock);
	return custom ? &custom->profile : NULL;
}

const struct mrf_profile *mrf_custom_profile(const char *text, char *why, size_t len)
{
	return get_custom(NULL, text, why, len);
}

/* text: FILE_MAX + 1 bytes. */
static bool read_file(const char *path, char *text, char *why, size_t len)
{
	FILE *file = fopen(path, "re");
	size_t n;

	if (!file) {
		snprintf(why, len, "%.64s cannot be opened: %s", path, strerror(errno));
		return false;
	}
	n = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file) || n > FILE_MAX || memchr(text, '\0', n)) {
		snprintf(why, len, "%.64s cannot be read: it must be text of at most %d bytes",
			 path, FILE_MAX);
		fclose(file);
		return false;
	}
	fclose(file);
	text[n] = '\0';
	return true;
}

const struct mrf_profile *mrf_custom_file(const char *path, char *why, size_t len)
{
	const struct mrf_profile *profile = NULL;
	char *text = malloc(FILE_MAX + 1);

	if (!text)
		snprintf(why, len, "there is no memory");
	else if (read_file(path, text, why, len))
		profile = get_custom(path, text, why, len);
	free(text);
	return profile;
}
