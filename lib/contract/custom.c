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
#include "contract/custom_text.h"
#include "contract/limits.h"
#include "contract/profile.h"

/* Domains point to them, so they are never freed; programs use few. */
struct custom {
	struct mrf_list node;
	struct mrf_profile profile;
	struct mrf_promise promise;
	char *name; /* of the profile, if it is from a file */
	char *text;
	char what[96];	/* of the profile: it stands in lines of the log */
	unsigned given; /* enum word, as bits */
};

enum word {
	KEY_SIZE,
	MAX_KEY,
	IOV_LIMIT,
	MR_CNT,
	INJECT_SIZE,
	MAX_MSG_SIZE,
	LIMITS,
	MR_MODE,
	LACKS
};

#define FILE_MAX 65536 /* bytes of a file */
#define BETWEEN ", \t\r\n"

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

/* "ATOMIC" or "FI_ATOMIC". 0: there is no such capability. */
static uint64_t read_cap(const char *text, size_t len)
{
	const struct mrf_name *row = mrf_names_caps.rows, *end = row + mrf_names_caps.count;

	for (; row < end; row++) {
		if (mrf_names_is(text, len, row->name) ||
		    mrf_names_is(text, len, row->name + strlen("FI_")))
			return row->value;
	}
	return 0;
}

/* NULL, or what is wrong with it. */
static const char *lack_cap(struct mrf_promise *promise, const char *text, size_t len)
{
	uint64_t cap = read_cap(text, len);

	if (!cap)
		return "it must be raw, cntr, ep, enable, refresh, queue, or a capability such as "
		       "ATOMIC, joined by +";
	if (cap & (MRF_CAPS_RMA_WAYS | MRF_CAPS_MSG_WAYS))
		return "directions go with RMA, ATOMIC, MSG or TAGGED: name these";
	if (!(cap & MRF_CAPS_ALL))
		return "a capability that libmrfab does not have is lacking already";
	drop_caps(&promise->caps, cap);
	return NULL;
}

/* "raw+refresh+ATOMIC" */
static const char *read_lacks(const char *text, struct custom *custom)
{
	const char *wrong;
	size_t len;

	custom->given |= 1u << LACKS;
	do {
		len = strcspn(text, "+");
		wrong = lack_call(&custom->profile, text, len)
				? NULL
				: lack_cap(&custom->promise, text, len);
		if (wrong)
			return wrong;
		text += len;
	} while (*text++ == '+');
	return NULL;
}

/* False: it was given before. */
static bool given_first(struct custom *custom, enum word word)
{
	unsigned before = custom->given;

	custom->given |= 1u << word;
	return before != custom->given;
}

/* buf, with what is wrong with it, or NULL. */
static const char *read_modes(const char *text, struct custom *custom, char *buf, size_t len)
{
	struct mrf_mr_offer offer;

	if (!given_first(custom, MR_MODE))
		return "it is given twice";
	if (!mrf_mr_offer_parse(text, &offer, buf, len))
		return buf;
	custom->profile.table = offer.table;
	return NULL;
}

static void set_limit(struct custom *custom, enum word limit, uint64_t n)
{
	switch (limit) {
	case KEY_SIZE:
		custom->profile.key_size = (unsigned)n;
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
	case MR_MODE:
	case LACKS:
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
		if (!given_first(custom, (enum word)i))
			return "it is given twice";
		if (read_value(value, rows[i].min, rows[i].max, &n)) {
			set_limit(custom, (enum word)i, n);
			return NULL;
		}
		snprintf(buf, len, "it must be a number from %lu to %lu", rows[i].min, rows[i].max);
		return buf;
	}
	return "it must be mr_mode=A+B, lacks=A+B, key_size=, max_key=, iov_limit=, mr_cnt=, "
	       "inject_size= or max_msg_size=";
}

static bool read_word(const char *word, struct custom *custom, char *why, size_t len)
{
	const char *value = strchr(word, '='), *wrong;
	char buf[160];

	if (value && !strncasecmp(word, "mr_mode=", 8))
		wrong = read_modes(value + 1, custom, buf, sizeof(buf));
	else if (value && !strncasecmp(word, "lacks=", 6))
		wrong = read_lacks(value + 1, custom);
	else
		wrong = read_limit(word, value ? value + 1 : "", custom, buf, sizeof(buf));
	if (wrong)
		snprintf(why, len, "\"%.60s\": %s", word, wrong);
	return !wrong;
}

/* Does the word go on behind these blanks, at rest? They are around its "=". */
static bool goes_on(const char *word, size_t used, const char *rest)
{
	return *rest == '=' || (used && word[used - 1] == '=' && !strchr(BETWEEN, *rest));
}

/* The first word of a text of most bytes, cut to its room. Returns how far it goes. */
static size_t take_word(const char *text, size_t most, char *word, size_t len)
{
	size_t n = 0, used = 0, blanks;

	for (;;) {
		for (; n < most && !strchr(BETWEEN, text[n]); n++) {
			if (used < len - 1)
				word[used++] = text[n];
		}
		blanks = strspn(text + n, " \t");
		if (n + blanks >= most || !goes_on(word, used, text + n + blanks))
			break;
		n += blanks;
	}
	word[used] = '\0';
	return n;
}

/* The words between text and end. */
static bool read_words(const char *text, const char *end, struct custom *custom, char *why,
		       size_t len)
{
	char word[320];

	for (;;) {
		text += strspn(text, BETWEEN);
		if (text >= end)
			return true;
		text += take_word(text, (size_t)(end - text), word, sizeof(word));
		if (strlen(word) == sizeof(word) - 1) {
			snprintf(why, len, "\"%.32s...\": it is too long", word);
			return false;
		}
		if (!read_word(word, custom, why, len))
			return false;
	}
}

/* With these the key of a region is known late, or its rkey changes. */
#define LATE_KEYS ((uint64_t)(FI_MR_ENDPOINT | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT))

/*
 * A provider key of 4 bytes is an rkey, or peers ask about it. With FI_MR_VIRT_ADDR they cannot tell which, so
 * it has to be an rkey always: of one segment that stays where it is, whose writes are not counted.
 */
static const char *check_short_keys(struct custom *custom)
{
	struct mrf_profile *profile = &custom->profile;
	uint64_t table = profile->table;

	if (profile->key_size == 8 || !(table & FI_MR_PROV_KEY) || table & FI_MR_RAW)
		return NULL;
	if (profile->key_size != 4)
		return "keys that FI_MR_PROV_KEY leaves to the provider have 4 or 8 bytes: key_size= "
		       "must be one of them";
	if (!(table & FI_MR_VIRT_ADDR))
		return NULL;
	if (!(table & FI_MR_ALLOCATED) || table & LATE_KEYS)
		return "key_size=4 with FI_MR_PROV_KEY and FI_MR_VIRT_ADDR needs FI_MR_ALLOCATED, and no "
		       "FI_MR_ENDPOINT, FI_MR_MMU_NOTIFY or FI_MR_RMA_EVENT";
	if (!(custom->given & 1u << IOV_LIMIT))
		profile->iov_limit = 1;
	if (profile->iov_limit != 1)
		return "key_size=4 with FI_MR_PROV_KEY and FI_MR_VIRT_ADDR needs iov_limit=1";
	custom->promise.caps &= ~(uint64_t)FI_RMA_EVENT;
	return NULL;
}

/* A mode that obliges programs to a call which there is not. NULL: there is none. */
static const char *check_calls(const struct mrf_profile *profile)
{
	const int *error = profile->error;

	if (profile->table & FI_MR_RAW && error[MRF_PROFILE_RAW_ATTR])
		return "lacks=raw contradicts FI_MR_RAW: no program could get a key";
	if (profile->table & FI_MR_MMU_NOTIFY && error[MRF_PROFILE_REFRESH])
		return "lacks=refresh contradicts FI_MR_MMU_NOTIFY: no program could say what changed";
	if (profile->table & FI_MR_ENDPOINT &&
	    (error[MRF_PROFILE_BIND_EP] || error[MRF_PROFILE_ENABLE]))
		return "lacks=ep or lacks=enable contradicts FI_MR_ENDPOINT: no region could be enabled";
	return NULL;
}

/* All of them together. NULL: each of them has an effect. */
static const char *check_words(struct custom *custom)
{
	struct mrf_profile *profile = &custom->profile;
	const char *wrong = check_calls(profile);

	if (!custom->given)
		return "there are no words, such as key_size=4";
	if (custom->given & 1u << KEY_SIZE && profile->table & FI_MR_RAW)
		return "key_size= has no effect with FI_MR_RAW, whose keys are longer";
	if (custom->given & 1u << MAX_KEY && profile->table & FI_MR_PROV_KEY)
		return "max_key= has no effect with FI_MR_PROV_KEY: applications choose no keys";
	if (!(custom->promise.caps & (FI_RMA | FI_ATOMIC | MRF_CAPS_MSG_WHATS)))
		return "lacks= leaves neither messages nor accesses";
	if (profile->key_size < 8) {
		uint64_t fits = (1ull << (8 * profile->key_size)) - 1;

		if (custom->given & 1u << MAX_KEY && profile->max_key > fits)
			return "max_key= has no effect: such a key has more bytes than key_size=";
		profile->max_key = mrf_min(profile->max_key, fits);
	}
	return wrong ? wrong : check_short_keys(custom);
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

static bool check_custom(struct custom *custom, const char *path, char *why, size_t len)
{
	const char *wrong = check_words(custom);

	if (wrong)
		snprintf(why, len, "%.64s%s%s", path ? path : "", path ? ": " : "", wrong);
	return !wrong;
}

static struct custom *custom_new(const char *path, const char *text, char *why, size_t len)
{
	struct custom *custom = calloc(1, sizeof(*custom));

	snprintf(why, len, "there is no memory");
	if (!custom ||
	    (fill_custom(custom, path, text, why, len) && check_custom(custom, path, why, len)))
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

const struct mrf_profile *mrf_custom_file(const char *path, char *why, size_t len)
{
	const struct mrf_profile *profile = NULL;
	char *text = malloc(MRF_CUSTOM_TEXT);

	if (!text)
		snprintf(why, len, "there is no memory");
	else if (!*path)
		snprintf(why, len, "the name of a file must follow");
	else if (mrf_custom_text(path, text, why, len))
		profile = get_custom(path, text, why, len);
	free(text);
	return profile;
}
