/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations that an event tells of. The queue is the domain's: whichever thread waits
 * reads the events of all.
 */
#include <pthread.h>
#include "exec_int.h"

/* Held while events are read, and while it is noted that one may not come any more. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

void async_open(struct side *side)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	if (!side->conf->async)
		return;
	must(fi_eq_open(side->fabric, &attr, &side->eq, NULL));
	must(fi_domain_bind(side->domain, &side->eq->fid, FI_REG_MR));
}

/* Regions are closed, and with them their events are gone. */
void async_close(struct side *side)
{
	struct fi_eq_entry entry;
	uint32_t event;

	if (!side->eq)
		return;
	must_be(fi_eq_read(side->eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	must(fi_close(&side->eq->fid));
}

/* --- tickets ------------------------------------------------------------------------ */

struct ticket *ticket_new(const struct actor *a)
{
	struct ticket *ticket = &a->limb->tickets[a->clock];

	ticket->owner = a;
	ticket->number = a->clock;
	return ticket;
}

void ticket_end(struct ticket *ticket)
{
	pthread_mutex_lock(&reading);
	ticket->over = true;
	pthread_mutex_unlock(&reading);
}

/* Events come in the order of the calls; of a thread's, that is the order of its steps.
 */
static void note(struct ticket *ticket, struct fid *fid, int rc)
{
	struct limb *limb = ticket->owner->limb;

	if (ticket->over)
		model_fail("event late", "an event of a region that is closed, or none");
	if (ticket->fid)
		model_fail("event twice", "a second event of a region");
	if (ticket->number <= limb->last_ticket)
		model_fail("event order", "an event of a region before one that was "
					  "registered earlier");
	limb->last_ticket = ticket->number;
	ticket->fid = fid;
	ticket->rc = rc;
}

static void note_error(struct fid_eq *eq)
{
	struct fi_eq_err_entry err = { 0 };
	ssize_t rc = fi_eq_readerr(eq, &err, 0);

	/* Its region was closed just now. */
	if (rc == -FI_EAGAIN)
		return;
	must_be(rc, sizeof(err));
	if (!err.prov_errno || !err.err_data || !*(const char *)err.err_data)
		model_fail("event's reason", "an event of a failure without a reason");
	note(err.context, err.fid, -err.err);
}

/* One event, whoever's it is. */
static void read_event(struct fid_eq *eq)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event = 0;
	ssize_t rc = fi_eq_sread(eq, &event, &entry, sizeof(entry), 20, 0);

	if (rc == -FI_EAVAIL) {
		note_error(eq);
	} else if (rc == sizeof(entry)) {
		must_be(event, FI_MR_COMPLETE);
		note(entry.context, entry.fid, 0);
	} else {
		must_be(rc, -FI_EAGAIN);
	}
}

static bool told(struct fid_eq *eq, const struct ticket *ticket)
{
	bool known;

	pthread_mutex_lock(&reading);
	if (!ticket->fid)
		read_event(eq);
	known = ticket->fid;
	pthread_mutex_unlock(&reading);
	return known;
}

void run_await(struct actor *a, const struct step *step)
{
	struct region *r = &a->regions[step->slot];
	struct want want = { 0 };
	unsigned tries = 0;

	want_await(a, step, &want);
	while (!told(a->world->side->eq, r->ticket)) {
		if (++tries > patience_ms / 20)
			model_fail("no event", "no event tells of a registration");
	}
	check_answer(step, &want, r->ticket->rc, "");
	if (r->ticket->fid != &r->mr->fid)
		model_fail("event's region", "an event names another region");
	r->unread = false;
	did_register(r);
	if (r->state == FAILED)
		shared_leave(a, r);
}
