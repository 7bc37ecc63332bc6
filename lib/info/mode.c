/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/names.h"
#include "base/env.h"
#include "contract/limits.h"
#include "contract/mr_remedy.h"
#include "info/decline.h"
#include "info/offer.h"

/* --- what the application and the environment say ------------------------------ */

static void set_ask(struct mrf_info_query *query)
{
	const struct fi_info *hints = query->hints;
	struct mrf_mr_mode_hints *ask = &query->mr;

	ask->api = query->version;
	ask->library = MRF_API_VERSION;
	if (!hints)
		return;
	ask->hints = true;
	ask->caps = hints->caps;
	ask->mode = hints->mode;
	if (!hints->domain_attr)
		return;
	ask->domain_attr = true;
	ask->mr_mode = (uint32_t)hints->domain_attr->mr_mode;
}

/* What is offered of a domain is the profile's. */
static void take_profile_attrs(struct fi_domain_attr *domain, const struct mrf_profile *profile)
{
	domain->mr_key_size = profile->key_size;
	domain->mr_iov_limit = profile->iov_limit;
	domain->mr_cnt = profile->mr_cnt;
	domain->cq_data_size = profile->promise->cq_data;
	domain->caps &= profile->promise->caps;
}

static size_t ordered(const struct mrf_promise *promise, uint64_t orders)
{
	return promise->order & orders ? promise->order_size : 0;
}

static void take_orders(struct mrf_info_offer *has, const struct mrf_promise *promise)
{
	has->tx.msg_order &= promise->order;
	has->rx.msg_order &= promise->order;
	has->ep.max_order_raw_size =
		ordered(promise, FI_ORDER_RAW | FI_ORDER_RMA_RAW | FI_ORDER_ATOMIC_RAW);
	has->ep.max_order_waw_size =
		ordered(promise, FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_WAW);
}

static void take_promise(struct mrf_info_offer *has, const struct mrf_promise *promise)
{
	has->caps &= promise->caps;
	has->tx.caps &= promise->caps;
	has->tx.inject_size = promise->inject;
	has->tx.iov_limit = promise->tx_iov;
	has->tx.rma_iov_limit = promise->rma_iov;
	has->rx.caps &= promise->caps;
	has->rx.iov_limit = promise->rx_iov;
	has->ep.max_msg_size = promise->msg_size;
	take_orders(has, promise);
}

/* What depends on the hints. */
static void take_promise_to(struct mrf_info_offer *has, const struct mrf_promise *promise,
			    const struct fi_info *hints)
{
	const struct fi_tx_attr *tx = hints ? hints->tx_attr : NULL;
	bool atomic = hints && hints->caps & FI_ATOMIC;

	if (tx && tx->inject_size > promise->inject && promise->inject_most)
		has->tx.inject_size = promise->inject_most;
	if (!promise->order_atomic)
		return;
	if (!atomic) {
		has->caps &= ~(uint64_t)FI_ATOMIC;
		return;
	}
	has->tx.msg_order &= promise->order_atomic;
	has->rx.msg_order &= promise->order_atomic;
	has->ep.max_order_raw_size = has->ep.max_order_waw_size = 0;
}

static int set_profile(struct mrf_info_query *query, const char *name)
{
	const char *mode = mrf_env_str(MRF_PARAM_MR_MODE);
	char why[192];

	if (mode)
		return mrf_refuse(
			FI_ENODATA, FI_LOG_FABRIC, 1036,
			"FI_MRFAB_PROFILE=%.64s%s and FI_MRFAB_MR_MODE=%.64s%s are both set: a "
			"profile has its own modes, so unset one of the two",
			name, MRF_CUT(name, 64), mode, MRF_CUT(mode, 64));
	query->profile = mrf_profile_find(name, why, sizeof(why));
	if (!query->profile)
		return mrf_refuse(FI_ENODATA, FI_LOG_FABRIC, 1035,
				  "FI_MRFAB_PROFILE=\"%.64s%s\": %s", name, MRF_CUT(name, 64), why);
	if (query->profile->form)
		query->form = query->profile->form;
	query->variable = "FI_MRFAB_PROFILE";
	query->required = name;
	query->offer = mrf_profile_offer(query->profile,
					 !query->hints || mrf_mr_mode_is_local(&query->mr));
	/* Not in the query, which is on stacks of 16 KiB. */
	query->own = malloc(sizeof(*query->own));
	if (!query->own)
		return mrf_refuse(FI_ENOMEM, FI_LOG_FABRIC, 1060,
				  "there is no memory for what FI_MRFAB_PROFILE=%.64s offers",
				  name);
	*query->own = mrf_info_offer;
	take_profile_attrs(&query->own->domain, query->profile);
	take_promise(query->own, query->profile->promise);
	take_promise_to(query->own, query->profile->promise, query->hints);
	query->has = query->own;
	return 0;
}

static int set_modes(struct mrf_info_query *query)
{
	char why[MRF_INFO_WHY];

	query->variable = "FI_MRFAB_MR_MODE";
	query->required = mrf_env_str(MRF_PARAM_MR_MODE);
	/*
	 * The default is not used instead: a test that was to run in one mode must not
	 * pass in another.
	 */
	if (query->required &&
	    !mrf_mr_offer_parse(query->required, &query->offer, why, sizeof(why)))
		return mrf_refuse(
			FI_ENODATA, FI_LOG_FABRIC, 1031,
			"FI_MRFAB_MR_MODE=\"%.128s%s\": %s; the value must be names such as "
			"LOCAL+PROV_KEY, or a number",
			query->required, MRF_CUT(query->required, 128), why);
	return 0;
}

int mrf_info_mode_set(struct mrf_info_query *query)
{
	const char *profile = mrf_env_str(MRF_PARAM_PROFILE);
	int ret;

	set_ask(query);
	query->offer = mrf_mr_offer_default;
	query->has = &mrf_info_offer;
	query->form = &mrf_form_socket;
	ret = profile ? set_profile(query, profile) : set_modes(query);
	if (!ret && query->mr.caps & FI_HMEM)
		mrf_mr_offer_need_hmem(&query->offer);
	return ret;
}

void mrf_info_mode_fini(struct mrf_info_query *query)
{
	free(query->own);
	query->own = NULL;
}

/* --- check ---------------------------------------------------------------------- */

static const char *mode_text(uint64_t set, const char *none, char *buf, size_t len)
{
	return set ? mrf_names_bits(&mrf_names_mr_mode, set, buf, len) : none;
}

static bool lacks_hmem(enum mrf_mr_mode_verdict verdict)
{
	return verdict == MRF_MR_HMEM_MISSING || verdict == MRF_MR_HMEM_NOT_LEGACY ||
	       verdict == MRF_MR_HMEM_TOO_OLD;
}

/* These would be refused without the variable as well. */
static bool breaks_rule(enum mrf_mr_mode_verdict verdict, uint64_t missing)
{
	if (lacks_hmem(verdict))
		return !(missing & MRF_MR_REQUIRABLE);
	return verdict == MRF_MR_NOT_LEGACY || verdict == MRF_MR_BASIC_NOT_ALONE ||
	       verdict == MRF_MR_SCALABLE_NOT_ALONE;
}

static void ask_text(const struct mrf_info_query *query, char *buf, size_t len)
{
	uint64_t asked = query->mr.mr_mode;
	char names[200];

	if (query->mr.domain_attr)
		snprintf(buf, len, "hints->domain_attr->mr_mode=%#lx (%s)", asked,
			 mode_text(asked, "FI_MR_UNSPEC", names, sizeof(names)));
	else
		snprintf(buf, len, "no hints->domain_attr");
}

static int refuse_mode(const struct mrf_info_query *query, enum mrf_mr_mode_verdict verdict)
{
	uint64_t needed = query->offer.table & MRF_MR_REQUIRABLE;
	uint64_t missing = mrf_mr_offer_missing(&query->offer, &query->mr);
	unsigned code = lacks_hmem(verdict) ? 1033 : 1030;
	char asked_text[256], needed_text[256], missing_text[256], line[480], remedy[384];

	ask_text(query, asked_text, sizeof(asked_text));
	snprintf(line, sizeof(line), "%s with version %u.%u: %s", asked_text,
		 FI_MAJOR(query->version), FI_MINOR(query->version),
		 mrf_mr_mode_verdict_text(verdict));
	mrf_mr_remedy_text(&query->offer, &query->mr, remedy, sizeof(remedy));
	if (!query->offer.exact)
		return mrf_info_decline(code, NULL, "%s; to pass, %s", line, remedy);
	/*
	 * A user who sets the variable tests a program, and this is the result of the
	 * test.
	 */
	if (breaks_rule(verdict, missing))
		return mrf_refuse(FI_ENODATA, FI_LOG_FABRIC, code, "%s; to pass, %s", line, remedy);
	mode_text(missing, "", missing_text, sizeof(missing_text));
	return mrf_refuse(FI_ENODATA, FI_LOG_FABRIC, 1032,
			  "%s; %s=%.128s requires %s%s%s; to pass, %s", line, query->variable,
			  query->required,
			  mode_text(needed, "no bit at all", needed_text, sizeof(needed_text)),
			  missing ? "; missing: " : "", missing ? missing_text : "", remedy);
}

int mrf_info_mode_check(const struct mrf_info_query *query)
{
	enum mrf_mr_mode_verdict verdict = mrf_mr_offer_check(&query->offer, &query->mr);

	return verdict == MRF_MR_ACCEPTED ? 0 : refuse_mode(query, verdict);
}

/* got: the mr_mode that came back. */
static void tell_mr_mode(const struct mrf_info_query *query, uint64_t got)
{
	uint64_t asked = query->mr.mr_mode, cleared = asked & ~got;
	char names[256];

	if (cleared)
		mrf_info(FI_LOG_FABRIC, "mr_mode bits that are not needed and are cleared: %s",
			 mrf_names_bits(&mrf_names_mr_mode, cleared, names, sizeof(names)));
	else if (!asked && !got)
		mrf_info(FI_LOG_FABRIC,
			 "hints->domain_attr->mr_mode=0 (FI_MR_UNSPEC): accepted; the "
			 "domain will run without any registration mode");
	else if (!asked)
		mrf_info(FI_LOG_FABRIC,
			 "hints->domain_attr->mr_mode=0 (FI_MR_UNSPEC) with version %u.%u comes "
			 "back as %s",
			 FI_MAJOR(query->version), FI_MINOR(query->version),
			 mrf_names_bits(&mrf_names_mr_mode, got, names, sizeof(names)));
}

void mrf_info_mode_tell(const struct mrf_info_query *query, const struct fi_info *info)
{
	uint64_t caps = query->mr.caps & ~mrf_info_mode_caps(query);
	char names[256];

	if (query->mr.domain_attr)
		tell_mr_mode(query, (uint32_t)info->domain_attr->mr_mode);
	if (info->mode & FI_LOCAL_MR)
		mrf_info(FI_LOG_FABRIC,
			 "mode comes back with FI_LOCAL_MR, because %s=%.128s requires "
			 "FI_MR_LOCAL and hints->domain_attr->mr_mode does not have it",
			 query->variable, query->required);
	if (query->mr.hints && mrf_info_mode_withheld(query))
		mrf_warn(FI_LOG_FABRIC, 1034,
			 "hints without domain_attr do not offer what %s=%.128s "
			 "requires of targets: the answer is without remote access%s%s",
			 query->variable, query->required, caps ? ", and without " : "",
			 caps ? mrf_names_bits(&mrf_names_caps, caps, names, sizeof(names)) : "");
}

/* --- answer --------------------------------------------------------------------- */

#define WHATS (FI_RMA | FI_ATOMIC)

uint64_t mrf_info_asked_caps(uint64_t caps)
{
	return caps & MRF_CAPS_MSG_WHATS ? caps : caps & ~MRF_CAPS_MSG_WAYS;
}

/* Those of the directions that are meant without being named. */
static uint64_t meant(uint64_t caps, uint64_t whats, uint64_t directions)
{
	return caps & whats && !(caps & directions) ? directions : 0;
}

uint64_t mrf_info_with_directions(uint64_t caps, uint64_t offered)
{
	return caps | meant(caps, WHATS, offered & MRF_CAPS_RMA_WAYS) |
	       meant(caps, MRF_CAPS_MSG_WHATS, offered & MRF_CAPS_MSG_WAYS);
}

/*
 * Returns what is asked for and nothing else. But communication inside a node and between
 * nodes both work at no cost, so both are returned unless the application named one.
 */
static uint64_t caps_granted(const struct mrf_info_query *query)
{
	uint64_t asked = query->hints ? query->hints->caps : 0;
	uint64_t offered = MRF_CAPS_PRIMARY & query->has->caps;
	uint64_t primary = asked ? mrf_info_asked_caps(asked) & MRF_CAPS_PRIMARY : offered;
	uint64_t secondary = asked & MRF_CAPS_SECONDARY;

	return mrf_info_with_directions(primary, offered) |
	       (secondary ? secondary : MRF_CAPS_SECONDARY & query->has->caps) |
	       (asked & MRF_CAPS_EXTRA);
}

bool mrf_info_mode_withheld(const struct mrf_info_query *query)
{
	uint64_t granted = caps_granted(query);

	return mrf_mr_mode_answer_caps(query->offer.table, &query->mr, granted) != granted;
}

uint64_t mrf_info_mode_caps(const struct mrf_info_query *query)
{
	uint64_t caps = caps_granted(query);

	if (!mrf_info_mode_withheld(query))
		return caps;
	caps &= ~(FI_REMOTE_READ | FI_REMOTE_WRITE | MRF_CAPS_TARGET_EXTRA);
	/*
	 * The endpoint would only be a target: a capability that is left without a
	 * direction would mean all directions.
	 */
	return caps & (FI_READ | FI_WRITE) ? caps : caps & ~(uint64_t)WHATS;
}

uint64_t mrf_info_mode_answer(const struct mrf_info_query *query)
{
	return mrf_mr_offer_answer(&query->offer, &query->mr, mrf_info_mode_caps(query));
}
