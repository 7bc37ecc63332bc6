/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fault.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/names.h"
#include "base/random.h"

static const char *const call_names[MRF_FAULT_CALLS] = {
	[MRF_FAULT_REG] = "reg",       [MRF_FAULT_BIND] = "bind",
	[MRF_FAULT_ENABLE] = "enable", [MRF_FAULT_REFRESH] = "refresh",
	[MRF_FAULT_RAW] = "raw_attr",  [MRF_FAULT_CQ] = "cq",
	[MRF_FAULT_TX] = "tx",
};

#define FULL "cq:full"
#define BLANKS " \t"

/* --- words ---------------------------------------------------------------------------- */

/* A decimal number, not 0, that text begins with; *end is behind it. False: it does not. */
static bool read_number(const char *text, uint64_t *value, const char **end)
{
	char *rest;

	errno = 0;
	*value = *text >= '0' && *text <= '9' ? strtoull(text, &rest, 10) : 0;
	if (!*value || errno)
		return false;
	*end = rest;
	return true;
}

/* The text is nothing but such a number. */
static bool read_all(const char *text, uint64_t *value)
{
	const char *end;

	return read_number(text, value, &end) && !*end;
}

static bool read_error(const char *text, int *err)
{
	const struct mrf_name *row = mrf_names_errno.rows, *end = row + mrf_names_errno.count;

	for (; row < end; row++) {
		if (strcasecmp(row->name, text) && strcasecmp(row->name + strlen("FI_"), text))
			continue;
		*err = (int)row->value;
		return true;
	}
	return false;
}

static bool read_time(const char *text, uint64_t *us)
{
	const char *unit;

	if (!read_number(text, us, &unit) || *us > 1000000)
		return false;
	if (!strcmp(unit, "us"))
		return true;
	*us *= 1000;
	if (!strcmp(unit, "ms"))
		return true;
	*us *= 1000;
	return !strcmp(unit, "s") && *us <= 100000000;
}

/* "N", "N-M", "N-" or "1/N"; *end is behind it. */
static bool read_range(const char *text, struct mrf_fault_rule *rule, const char **end)
{
	rule->one_in = 1;
	if (!read_number(text, &rule->first, end))
		return false;
	rule->last = rule->first;
	if (**end == '/') {
		rule->last = UINT64_MAX;
		return rule->first == 1 && read_number(*end + 1, &rule->one_in, end);
	}
	if (**end != '-')
		return true;
	if ((*end)[1] != '=')
		return read_number(*end + 1, &rule->last, end) && rule->last >= rule->first;
	rule->last = UINT64_MAX;
	++*end;
	return true;
}

static bool read_call(const char *text, size_t len, enum mrf_fault_call *call)
{
	int i;

	for (i = 0; i < MRF_FAULT_CALLS; i++) {
		if (mrf_names_is(text, len, call_names[i])) {
			*call = (enum mrf_fault_call)i;
			return true;
		}
	}
	return false;
}

/* --- a plan --------------------------------------------------------------------------- */

/* What stands behind the colon. NULL: it is right; otherwise what it should be. */
static const char *parse_rule(const char *text, struct mrf_fault_rule *rule)
{
	const char *end;

	if (!strncasecmp(text, "late=", 5)) {
		*rule = (struct mrf_fault_rule){ rule->call, 1, UINT64_MAX, 1, 0, 0 };
		return read_time(text + 5, &rule->late_us)
			       ? NULL
			       : "a time is a number with us, ms or s, at most 100s";
	}
	if (!read_range(text, rule, &end) || *end != '=')
		return "which calls fail is N, N-M, N- or 1/N, and then =ERROR";
	if (!read_error(end + 1, &rule->err))
		return "fi_errno(3) has no such error";
	/* The entry that it speaks of would not be there. */
	if (rule->call == MRF_FAULT_CQ && rule->err == FI_EAVAIL)
		return "there would be no entry in error; cq:full makes one";
	return NULL;
}

/* What follows "cq:full", which is about queues, not calls. */
static const char *parse_full(const char *rest, struct mrf_fault_plan *plan)
{
	const char *end = rest;

	plan->cq_full = UINT64_MAX;
	if (*rest && (*rest != '=' || !read_number(rest + 1, &plan->cq_full, &end) || *end))
		return "a full queue is cq:full, or cq:full=N with a number greater than 0";
	return NULL;
}

static const char *parse_count(const char *text, uint64_t *number)
{
	return read_all(text, number) ? NULL : "its value must be a number greater than 0";
}

static const char *parse_bits(const char *text, unsigned *bits)
{
	uint64_t number;

	if (!read_all(text, &number) || number > 64)
		return "its value must be a number from 1 to 64";
	*bits = (unsigned)number;
	return NULL;
}

static const char *parse_setting(const char *word, struct mrf_fault_plan *plan)
{
	size_t len = strcspn(word, "=");

	if (word[len] && mrf_names_is(word, len, "mr_cnt"))
		return parse_count(word + len + 1, &plan->mr_cnt);
	if (word[len] && mrf_names_is(word, len, "seed"))
		return parse_count(word + len + 1, &plan->seed);
	if (word[len] && mrf_names_is(word, len, "key_bits"))
		return parse_bits(word + len + 1, &plan->key_bits);
	return "it must be CALL:N=ERROR, CALL:late=TIME, cq:full, mr_cnt=N, key_bits=N or seed=N";
}

/* Does rule fail the nth call whenever of, which is about the same calls, would? What is drawn is the same for both. */
static bool fails_with(const struct mrf_fault_rule *rule, const struct mrf_fault_rule *of,
		       uint64_t n)
{
	return rule->call == of->call && rule->err && of->one_in % rule->one_in == 0 &&
	       rule->first <= n && n <= rule->last;
}

/* Each call has one error, which is that of the first rule. */
static bool is_in_vain(const struct mrf_fault_plan *plan, const struct mrf_fault_rule *of)
{
	uint64_t n = of->first;
	unsigned i = 0;

	while (of->err && i < plan->nrules) {
		const struct mrf_fault_rule *rule = &plan->rule[i++];

		if (!fails_with(rule, of, n))
			continue;
		if (rule->last >= of->last)
			return true;
		n = rule->last + 1;
		i = 0;
	}
	return false;
}

static const char *parse_word(const char *word, struct mrf_fault_plan *plan)
{
	struct mrf_fault_rule *rule = &plan->rule[plan->nrules];
	const char *colon = strchr(word, ':');
	const char *wrong;

	if (!colon)
		return parse_setting(word, plan);
	if (plan->nrules == MRF_FAULT_RULES)
		return "there are more than 16 rules";
	if (!strncasecmp(word, FULL, strlen(FULL)))
		return parse_full(word + strlen(FULL), plan);
	*rule = (struct mrf_fault_rule){ .one_in = 1 };
	if (!read_call(word, (size_t)(colon - word), &rule->call))
		return "the call must be reg, bind, enable, refresh, raw_attr, cq or tx";
	wrong = parse_rule(colon + 1, rule);
	if (!wrong && is_in_vain(plan, rule))
		wrong = "rules before it fail all these calls already";
	plan->nrules += !wrong;
	return wrong;
}

/* The first n bytes of text, and why they are wrong. NULL: they are right. */
static const char *parse_part(const char *text, size_t n, struct mrf_fault_plan *plan, char *word,
			      size_t len)
{
	const char *from = text + strspn(text, BLANKS);

	n = from < text + n ? n - (size_t)(from - text) : 0;
	while (n && strchr(BLANKS, from[n - 1]))
		n--;
	snprintf(word, len, "%.*s", (int)n, from);
	if (!n)
		return "a word is missing";
	return n < len ? parse_word(word, plan) : "it is too long";
}

int mrf_fault_parse(const char *text, struct mrf_fault_plan *plan, char *why, size_t len)
{
	char word[64];
	const char *wrong;
	size_t n;

	*plan = (struct mrf_fault_plan){ .mr_cnt = UINT64_MAX, .key_bits = 64 };
	for (; text[strspn(text, BLANKS)]; text += n + (text[n] == ',')) {
		n = strcspn(text, ",");
		wrong = parse_part(text, n, plan, word, sizeof(word));
		if (!wrong)
			continue;
		snprintf(why, len, "\"%s\": %s", *word ? word : ",", wrong);
		return -FI_EINVAL;
	}
	/* Short enough to be typed again. */
	if (!plan->seed && !mrf_random(&plan->seed, sizeof(uint16_t)))
		return -FI_EIO;
	plan->seed += !plan->seed;
	return 0;
}

/* --- a call --------------------------------------------------------------------------- */

/* The same number for the same call of the same plan, however threads take turns. */
static uint64_t draw(const struct mrf_fault_plan *plan, enum mrf_fault_call call, uint64_t n)
{
	uint64_t x = (plan->seed * MRF_FAULT_CALLS + call) * 0x9e3779b97f4a7c15ull + n;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

int mrf_fault_now(struct mrf_fault_plan *plan, enum mrf_fault_call call, uint64_t *n)
{
	uint64_t late = 0;
	unsigned i;
	int err = 0;

	*n = atomic_fetch_add(&plan->calls[call], 1) + 1;
	for (i = 0; i < plan->nrules; i++) {
		const struct mrf_fault_rule *rule = &plan->rule[i];

		if (rule->call != call || *n < rule->first || *n > rule->last ||
		    draw(plan, call, *n) % rule->one_in)
			continue;
		late += rule->late_us;
		err = err ? err : rule->err;
	}
	if (late)
		usleep((useconds_t)late);
	return -err;
}

#define FAILS "%s: call %lu fails as FI_MRFAB_FAULT says"

int mrf_fault_refuse(struct mrf_fault_plan *plan, enum mrf_fault_call call,
		     enum fi_log_subsys subsys, const char *name)
{
	uint64_t n;
	int ret = mrf_fault_now(plan, call, &n);

	if (ret == -FI_EAGAIN)
		return mrf_decline(FI_EAGAIN, subsys, 3090, FAILS, name, (unsigned long)n);
	return ret ? mrf_refuse(-ret, subsys, 3090, FAILS, name, (unsigned long)n) : 0;
}
