/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of regions. */
#include "exec_int.h"

static struct fid_cntr **cntr_of(struct actor *a, unsigned cntr)
{
	return cntr < SHARED_CNTRS ? &a->world->side->cntrs[cntr]
				   : &a->limb->cntrs[cntr - SHARED_CNTRS];
}

void run_bind_cntr(struct actor *a, const struct step *step)
{
	struct fid *fid = &(*cntr_of(a, step->ep))->fid;
	uint64_t flags = FI_REMOTE_WRITE;
	struct want want = { 0 };
	int rc;

	want_bind_cntr(a, step, &want);
	if (step->fault == BAD_FLAG)
		flags = step->slot % 2 ? 0 : FI_REMOTE_WRITE | FI_REMOTE_READ;
	rc = fi_mr_bind(a->regions[step->slot].mr, fid, flags);
	check_answer(step, &want, rc, "");
	if (!rc)
		did_bind_cntr(a, step);
}

void run_cntr(struct actor *a, const struct step *step)
{
	struct fid_cntr **cntr = cntr_of(a, step->ep);
	struct want want = { 0 };
	int rc = 0;

	want_cntr(a, step, &want);
	if (a->cntr_open[step->ep])
		rc = fi_close(&(*cntr)->fid);
	else
		*cntr = cntr_open(a->world->side);
	check_answer(step, &want, rc, "");
	if (!rc)
		did_cntr(a, step);
}

void run_count(struct actor *a, const struct step *step)
{
	struct want want = { 1, { 0 } };

	cntr_check(*cntr_of(a, step->ep), tally_of(a, step->ep));
	check_answer(step, &want, 0, "");
}
