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
#include "base/renew.h"
#include "contract/limits.h"
#include "contract/profile.h"

/* Domains point to them, so they are never freed; programs use few. */
struct custom {
	struct mrf_list node;
	struct mrf_profile profile;
	char *text;
};

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

/* "raw+refresh" */
static bool read_lacks(const char *text, struct mrf_profile *profile)
{
	static const char *const names[] = { "raw", "cntr", "ep", "enable", "refresh", "queue" };
	size_t len, i;

	do {
		len = strcspn(text, "+");
		for (i = 0; i < MRF_ARRAY_SIZE(names); i++) {
			if (strlen(names[i]) == len && !strncasecmp(names[i], text, len))
				break;
		}
		if (i == MRF_ARRAY_SIZE(names))
			return false;
		lack(profile, i);
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

static const char *read_limit(const char *word, const char *value, struct mrf_profile *profile)
{
	uint64_t n;

	if (!strncasecmp(word, "key_size=", 9)) {
		if (!read_value(value, 1, 8, &n))
			return "a key has 1 to 8 bytes";
		profile->key_size = (unsigned)n;
		if (n < 8 && profile->max_key >> (8 * n))
			profile->max_key = (1ull << (8 * n)) - 1;
	} else if (!strncasecmp(word, "max_key=", 8)) {
		if (!read_value(value, 1, UINT64_MAX - 1, &profile->max_key))
			return "it must be a number";
	} else if (!strncasecmp(word, "iov_limit=", 10)) {
		if (!read_value(value, 1, MRF_LIMIT_MR_IOV, &n))
			return "a region has 1 to 16 segments";
		profile->iov_limit = (unsigned)n;
	} else if (!strncasecmp(word, "mr_cnt=", 7)) {
		if (!read_value(value, 1, UINT32_MAX, &profile->mr_cnt))
			return "it must be a number";
	} else {
		return "it must be mr_mode=, key_size=, max_key=, iov_limit=, mr_cnt= or lacks=";
	}
	return NULL;
}

static bool read_word(const char *word, struct mrf_profile *profile, char *why, size_t len)
{
	const char *value = strchr(word, '='), *wrong;

	if (value && !strncasecmp(word, "mr_mode=", 8))
		return read_modes(value + 1, profile, why, len);
	if (value && !strncasecmp(word, "lacks=", 6))
		wrong = read_lacks(value + 1, profile)
				? NULL
				: "the calls are raw, cntr, ep, enable, refresh and queue";
	else
		wrong = read_limit(word, value ? value + 1 : "", profile);
	if (wrong)
		snprintf(why, len, "\"%s\": %s", word, wrong);
	return !wrong;
}

static bool parse_custom(const char *text, struct mrf_profile *profile, char *why, size_t len)
{
	char word[128];
	size_t n;

	*profile = (struct mrf_profile){ .name = "custom",
					 .what = "as its words say",
					 .max_key = UINT64_MAX,
					 .key_size = 8,
					 .iov_limit = MRF_LIMIT_MR_IOV,
					 .iov_error = FI_EINVAL,
					 .promise = &mrf_promise_all };
	for (; *text; text += n + (text[n] == ',')) {
		n = strcspn(text, ",");
		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		if (!read_word(word, profile, why, len))
			return false;
	}
	return true;
}

/* --- those that were asked for -------------------------------------------------------- */

static struct custom *custom_new(const char *text, char *why, size_t len)
{
	struct custom *custom = malloc(sizeof(*custom));

	snprintf(why, len, "there is no memory");
	if (!custom)
		return NULL;
	custom->text = strdup(text);
	if (custom->text && parse_custom(text, &custom->profile, why, len))
		return custom;
	free(custom->text);
	free(custom);
	return NULL;
}

static struct custom *find_custom(const char *text)
{
	mrf_list_each (node, &customs) {
		struct custom *custom = mrf_list_entry(node, struct custom, node);

		if (!strcmp(custom->text, text))
			return custom;
	}
	return NULL;
}

const struct mrf_profile *mrf_custom_profile(const char *text, char *why, size_t len)
{
	struct custom *custom;

	mrf_static_take(&customs_lock);
	custom = find_custom(text);
	if (!custom) {
		custom = custom_new(text, why, len);
		if (custom)
			mrf_list_add_tail(&custom->node, &customs);
	}
	mrf_static_release(&customs_lock);
	return custom ? &custom->profile : NULL;
}
