/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/mr_mode.h"

#include <rdma/fabric.h>
#include "contract/rules.h"

#define LEGACY ((uint64_t)(FI_MR_BASIC | FI_MR_SCALABLE))
/* What FI_MR_BASIC stands for. */
#define BASIC_BITS ((uint64_t)(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY))
/* Bits that matter only to an application that is a target. */
#define TARGET_BITS ((uint64_t)(FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_RMA_EVENT))

static const char *const verdict_texts[MRF_MR_VERDICTS] = {
	[MRF_MR_ACCEPTED] = "accepted",
	[MRF_MR_LOCAL_NEEDED] = "local buffers have to be registered: offer FI_MR_LOCAL "
				"or mode FI_LOCAL_MR",
	[MRF_MR_NO_LEGACY] = "before version 1.5 there are only FI_MR_BASIC and "
			     "FI_MR_SCALABLE, and neither is offered here",
	[MRF_MR_NO_BASIC] = "FI_MR_BASIC is not offered here",
	[MRF_MR_NO_SCALABLE] = "FI_MR_SCALABLE is not offered here",
	[MRF_MR_NOT_LEGACY] = "before version 1.5 mr_mode is FI_MR_UNSPEC, FI_MR_BASIC or "
			      "FI_MR_SCALABLE, alone",
	[MRF_MR_BASIC_NOT_ALONE] = "FI_MR_BASIC must be set alone",
	[MRF_MR_SCALABLE_NOT_ALONE] = "FI_MR_SCALABLE must be set alone",
	[MRF_MR_UNSPEC] = "mr_mode 0 offers none of the required bits",
	[MRF_MR_BITS_MISSING] = "not all required bits are offered",
	[MRF_MR_HMEM_MISSING] = "the capability FI_HMEM needs FI_MR_HMEM: set it in mr_mode",
	[MRF_MR_HMEM_NOT_LEGACY] = "the capability FI_HMEM needs FI_MR_HMEM, which FI_MR_BASIC and "
				   "FI_MR_SCALABLE do not include: set bits in mr_mode instead",
	[MRF_MR_HMEM_TOO_OLD] = "the capability FI_HMEM needs FI_MR_HMEM, which cannot be set "
				"before version 1.5: ask for a later version",
};

const char *mrf_mr_mode_verdict_text(enum mrf_mr_mode_verdict verdict)
{
	return verdict_texts[verdict];
}

bool mrf_mr_mode_is_target(uint64_t caps)
{
	if (!(caps & (FI_RMA | FI_ATOMIC)))
		return false;
	if (caps & (FI_REMOTE_READ | FI_REMOTE_WRITE))
		return true;
	return !(caps & (FI_READ | FI_WRITE));
}

uint64_t mrf_mr_mode_for(uint64_t caps, uint64_t mr_mode)
{
	if (!(caps & FI_HMEM))
		mr_mode &= ~(uint64_t)FI_MR_HMEM;
	if (!mrf_mr_mode_is_target(caps)) {
		if (!(mr_mode & (FI_MR_LOCAL | FI_MR_HMEM)))
			return 0;
		mr_mode &= ~TARGET_BITS;
	}
	return mr_mode & ~LEGACY;
}

bool mrf_mr_mode_is_local(const struct mrf_mr_mode_hints *ask)
{
	if (ask->domain_attr && (ask->mr_mode & FI_MR_LOCAL))
		return true;
	if (ask->domain_attr && (ask->mr_mode & ~LEGACY))
		return false;
	return ask->mode & FI_LOCAL_MR;
}

uint64_t mrf_mr_mode_flag_needed(uint64_t table, const struct mrf_mr_mode_hints *ask)
{
	if (!(table & FI_MR_LOCAL))
		return 0;
	if (!mrf_rule_mr_mode_bits(ask->api))
		return FI_LOCAL_MR;
	return ask->domain_attr && !(ask->mr_mode & FI_MR_LOCAL) ? FI_LOCAL_MR : 0;
}

static enum mrf_mr_mode_verdict check_legacy(uint64_t table, uint64_t mr_mode)
{
	switch (mr_mode) {
	case FI_MR_UNSPEC:
		return table & LEGACY ? MRF_MR_ACCEPTED : MRF_MR_NO_LEGACY;
	case FI_MR_BASIC:
		return table & FI_MR_BASIC ? MRF_MR_ACCEPTED : MRF_MR_NO_BASIC;
	case FI_MR_SCALABLE:
		return table & FI_MR_SCALABLE ? MRF_MR_ACCEPTED : MRF_MR_NO_SCALABLE;
	default:
		return MRF_MR_NOT_LEGACY;
	}
}

static enum mrf_mr_mode_verdict check_bits(uint64_t table, const struct mrf_mr_mode_hints *ask)
{
	uint64_t need = mrf_mr_mode_for(ask->caps, table);

	if (ask->mr_mode & FI_MR_BASIC)
		return ask->mr_mode == FI_MR_BASIC ? check_legacy(table, FI_MR_BASIC)
						   : MRF_MR_BASIC_NOT_ALONE;
	if (ask->mr_mode & FI_MR_SCALABLE)
		return ask->mr_mode == FI_MR_SCALABLE ? check_legacy(table, FI_MR_SCALABLE)
						      : MRF_MR_SCALABLE_NOT_ALONE;
	if (!ask->mr_mode) {
		if (!need || mrf_rule_unspec_accepted(ask->library))
			return MRF_MR_ACCEPTED;
		return MRF_MR_UNSPEC;
	}
	return (ask->mr_mode & need) == need ? MRF_MR_ACCEPTED : MRF_MR_BITS_MISSING;
}

enum mrf_mr_mode_verdict mrf_mr_mode_check(uint64_t table, const struct mrf_mr_mode_hints *ask)
{
	if (!ask->domain_attr)
		return MRF_MR_ACCEPTED;
	if ((table & FI_MR_LOCAL) && !(ask->mode & FI_LOCAL_MR) && !(ask->mr_mode & FI_MR_LOCAL))
		return MRF_MR_LOCAL_NEEDED;
	if (!mrf_rule_mr_mode_bits(ask->api))
		return check_legacy(table, ask->mr_mode);
	return check_bits(table, ask);
}

uint64_t mrf_mr_mode_answer_caps(uint64_t table, const struct mrf_mr_mode_hints *ask,
				 uint64_t caps_in)
{
	uint64_t need = table & TARGET_BITS;

	if (!ask->hints || !need || !mrf_mr_mode_is_target(caps_in))
		return caps_in;
	if (ask->domain_attr) {
		if (!mrf_rule_mr_mode_bits(ask->api) && !ask->mr_mode)
			return caps_in;
		if (ask->mr_mode == FI_MR_BASIC || (ask->mr_mode & need) == need)
			return caps_in;
	}
	return caps_in & ~(FI_REMOTE_READ | FI_REMOTE_WRITE);
}

uint64_t mrf_mr_mode_answer(uint64_t table, const struct mrf_mr_mode_hints *ask, uint64_t caps)
{
	uint64_t bits = table & ~LEGACY;

	if (ask->domain_attr && (ask->mr_mode & LEGACY))
		return ask->mr_mode;
	if (!mrf_rule_mr_mode_bits(ask->api))
		return table && table != FI_MR_SCALABLE ? FI_MR_BASIC : FI_MR_SCALABLE;
	if (ask->domain_attr && (ask->mr_mode & bits) != bits)
		return mrf_mr_mode_for(caps, bits & ask->mr_mode);
	return bits;
}

uint64_t mrf_mr_mode_answer_flag(uint64_t table, const struct mrf_mr_mode_hints *ask)
{
	if (!(table & FI_MR_LOCAL))
		return 0;
	if (!mrf_rule_mr_mode_bits(ask->api))
		return FI_LOCAL_MR;
	return ask->domain_attr && (ask->mr_mode & LEGACY) ? FI_LOCAL_MR : 0;
}

bool mrf_mr_mode_known(uint64_t mr_mode)
{
	return mr_mode == FI_MR_BASIC || mr_mode == FI_MR_SCALABLE ||
	       !(mr_mode & ~(uint64_t)MRF_MR_MODES);
}

uint64_t mrf_mr_mode_resolve(uint64_t mr_mode)
{
	uint64_t bits = mr_mode & ~LEGACY;

	return mr_mode & FI_MR_BASIC ? bits | BASIC_BITS : bits;
}

uint64_t mrf_mr_mode_runs(uint64_t mr_mode, uint64_t mode)
{
	const struct mrf_mr_mode_hints ask = { .domain_attr = true,
					       .mr_mode = mr_mode,
					       .mode = mode };
	uint64_t bits = mrf_mr_mode_resolve(mr_mode);

	return mrf_mr_mode_is_local(&ask) ? bits | FI_MR_LOCAL : bits;
}
