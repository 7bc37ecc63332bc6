/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/mr_offer.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <rdma/fabric.h>
#include "base/compiler.h"
#include "base/names.h"
#include "contract/rules.h"

#define LEGACY ((uint64_t)(FI_MR_BASIC | FI_MR_SCALABLE))
#define PREFIX "FI_MR_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define QUOTED 40 /* characters of a word that a reason repeats */

/* Needs nothing, runs both legacy models. */
const struct mrf_mr_offer mrf_mr_offer_default = { .exact = false, .table = LEGACY };

/* --- the value of FI_MRFAB_MR_MODE -------------------------------------------- */

/*
 * A part of the value, without the white space around it, and the place for the reason of
 * a refusal.
 */
struct parse {
	const char *word;
	size_t len;
	char *why;
	size_t why_len;
};

static bool fail_parse(const struct parse *p, const char *fmt, ...) MRF_PRINTF(2, 3);

/* Always false. */
static bool fail_parse(const struct parse *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_len, fmt, ap);
	va_end(ap);
	return false;
}

static int quoted(const struct parse *p)
{
	return p->len < QUOTED ? (int)p->len : QUOTED;
}

static void trim(struct parse *p)
{
	for (; p->len && isspace((unsigned char)*p->word); p->len--)
		p->word++;
	while (p->len && isspace((unsigned char)p->word[p->len - 1]))
		p->len--;
}

/* name begins with FI_MR_, the word may. */
static bool is_name(const struct parse *p, const char *name)
{
	const char *word = p->word;
	size_t len = p->len;

	if (len > PREFIX_LEN && !strncasecmp(word, PREFIX, PREFIX_LEN)) {
		word += PREFIX_LEN;
		len -= PREFIX_LEN;
	}
	name += PREFIX_LEN;
	return mrf_names_is(word, len, name);
}

static bool parse_name(const struct parse *p, uint64_t *value)
{
	const struct mrf_name *row = mrf_names_mr_mode.rows;
	size_t i;

	*value = FI_MR_UNSPEC;
	if (is_name(p, "FI_MR_UNSPEC"))
		return true;
	for (i = 0; i < mrf_names_mr_mode.count; i++) {
		*value = row[i].value;
		if (is_name(p, row[i].name))
			return true;
	}
	if (!p->len)
		return fail_parse(p, "a name is missing");
	return fail_parse(p, "\"%.*s\" is not the name of a registration mode", quoted(p), p->word);
}

/* The whole value is one number. strtoull would take signs, and 010 for 8. */
static bool parse_number(const struct parse *p, uint64_t *set)
{
	bool hex = p->len > 2 && p->word[0] == '0' && (p->word[1] | 0x20) == 'x';
	int saved = errno;
	char *end;
	bool ok;

	errno = 0;
	*set = strtoull(p->word, &end, hex ? 16 : 10);
	ok = !errno && end == p->word + p->len;
	errno = saved;
	return ok || fail_parse(p, "\"%.*s\" is not a number", quoted(p), p->word);
}

/* "A+B,C" */
static bool parse_names(struct parse *p, uint64_t *set)
{
	const char *at = p->word, *end = at + p->len;
	bool unspec = false;
	uint64_t value;

	for (*set = 0;; at++) {
		p->word = at;
		p->len = strcspn(at, "+,");
		if (p->word + p->len > end)
			p->len = (size_t)(end - p->word);
		at += p->len;
		trim(p);
		if (!parse_name(p, &value))
			return false;
		unspec = unspec || !value;
		*set |= value;
		if (at == end)
			break;
	}
	if (unspec && *set)
		return fail_parse(p, "FI_MR_UNSPEC must be set alone");
	return true;
}

/* Is it a mode that a domain can run? */
static bool check_set(const struct parse *p, uint64_t set)
{
	uint64_t strange = set & ~(MRF_MR_REQUIRABLE | LEGACY);
	char names[128];

	if (set & FI_MR_HMEM)
		return fail_parse(p, "FI_MR_HMEM cannot be named: it is required "
				     "whenever an application asks for FI_HMEM");
	if (strange)
		return fail_parse(
			p, "not offered: %s",
			mrf_names_bits(&mrf_names_mr_mode, strange, names, sizeof(names)));
	if (mrf_mr_mode_known(set))
		return true;
	return fail_parse(p, "%s must be set alone",
			  set & FI_MR_BASIC ? "FI_MR_BASIC" : "FI_MR_SCALABLE");
}

/* A set that a legacy model stands for can be had under its name, too. */
static uint64_t table_for(uint64_t set)
{
	uint64_t bits = mrf_mr_mode_resolve(set);
	uint64_t remote = bits & ~(uint64_t)FI_MR_LOCAL;

	if (!remote)
		return bits | FI_MR_SCALABLE;
	return remote == mrf_mr_mode_resolve(FI_MR_BASIC) ? bits | FI_MR_BASIC : bits;
}

bool mrf_mr_offer_parse(const char *text, struct mrf_mr_offer *offer, char *why, size_t len)
{
	struct parse p = { .word = text, .len = strlen(text), .why = why, .why_len = len };
	uint64_t set = 0;
	bool ok;

	trim(&p);
	ok = p.len && isdigit((unsigned char)*p.word) ? parse_number(&p, &set)
						      : parse_names(&p, &set);
	if (!ok || !check_set(&p, set))
		return false;
	offer->exact = true;
	offer->table = table_for(set);
	return true;
}

/* --- negotiation ----------------------------------------------------------------- */

/* The legacy models do not have the bit. */
void mrf_mr_offer_need_hmem(struct mrf_mr_offer *offer)
{
	offer->table = (offer->table & ~LEGACY) | FI_MR_HMEM;
}

/*
 * By libfabric's rules mr_mode 0 would do from its release 1.16 on, and so would anything before
 * version 1.5 without attributes. Either would come back without FI_MR_HMEM, and the
 * application could not use the capability that it was granted.
 */
static enum mrf_mr_mode_verdict check_hmem_bit(const struct mrf_mr_mode_hints *ask)
{
	if (!mrf_rule_mr_mode_bits(ask->api))
		return MRF_MR_HMEM_TOO_OLD;
	if (ask->mr_mode & LEGACY)
		return MRF_MR_HMEM_NOT_LEGACY;
	if (ask->domain_attr && !(ask->mr_mode & FI_MR_HMEM))
		return MRF_MR_HMEM_MISSING;
	return MRF_MR_ACCEPTED;
}

/*
 * From its release 1.16 on libfabric accepts mr_mode 0 whatever is needed, and 0 comes back. Then
 * nothing of what the variable names would be in force, and whoever set it would have tested nothing:
 * so where it is set, the rule of the releases before holds.
 */
static enum mrf_mr_mode_verdict check_zero(const struct mrf_mr_offer *offer,
					   const struct mrf_mr_mode_hints *ask)
{
	struct mrf_mr_mode_hints strict = *ask;

	strict.library = FI_VERSION(1, 15);
	return mrf_mr_mode_check(offer->table, &strict) == MRF_MR_ACCEPTED ? MRF_MR_ACCEPTED
									   : MRF_MR_UNSPEC;
}

/*
 * By libfabric's rules anything would do before version 1.5 if there are no attributes. It would come back
 * as FI_MR_BASIC, and the bits that are needed would not be in force.
 */
static bool is_too_old(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask)
{
	return offer->exact && !ask->domain_attr && !mrf_rule_mr_mode_bits(ask->api) &&
	       offer->table && !(offer->table & LEGACY);
}

static enum mrf_mr_mode_verdict check_rules(const struct mrf_mr_offer *offer,
					    const struct mrf_mr_mode_hints *ask)
{
	if (offer->exact && ask->domain_attr && !ask->mr_mode && mrf_rule_mr_mode_bits(ask->api))
		return check_zero(offer, ask);
	if (is_too_old(offer, ask))
		return MRF_MR_NO_LEGACY;
	return mrf_mr_mode_check(offer->table, ask);
}

enum mrf_mr_mode_verdict mrf_mr_offer_check(const struct mrf_mr_offer *offer,
					    const struct mrf_mr_mode_hints *ask)
{
	enum mrf_mr_mode_verdict verdict = MRF_MR_ACCEPTED;

	if (offer->table & FI_MR_HMEM)
		verdict = check_hmem_bit(ask);
	if (verdict == MRF_MR_ACCEPTED)
		verdict = check_rules(offer, ask);
	if (verdict != MRF_MR_ACCEPTED || !ask->hints)
		return verdict;
	/*
	 * The check of fi_info.mode, which libfabric makes separately from that of
	 * mr_mode.
	 */
	if (mrf_mr_mode_flag_needed(offer->table, ask) & ~ask->mode)
		return MRF_MR_LOCAL_NEEDED;
	return MRF_MR_ACCEPTED;
}

uint64_t mrf_mr_offer_missing(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask)
{
	uint64_t have = mrf_mr_mode_resolve(ask->mr_mode);

	if (mrf_mr_mode_is_local(ask))
		have |= FI_MR_LOCAL;
	return mrf_mr_mode_for(ask->caps, offer->table) & ~have;
}

uint64_t mrf_mr_offer_answer(const struct mrf_mr_offer *offer, const struct mrf_mr_mode_hints *ask,
			     uint64_t caps)
{
	uint64_t answer = mrf_mr_mode_answer(offer->table, ask, caps);
	uint64_t kept = ask->domain_attr ? ask->mr_mode & MRF_MR_KEPT : 0;

	if (offer->exact || answer & LEGACY)
		return answer;
	return kept | (offer->table & FI_MR_HMEM);
}
