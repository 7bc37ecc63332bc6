/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that carry out steps do for each other. */
#ifndef MODEL_EXEC_INT_H
#define MODEL_EXEC_INT_H

#include "exec.h"

/* Counts the answer, and fails unless it is wanted; text: more of it, or "". */
void check_answer(const struct step *step, const struct want *want, int rc, const char *text);
void memory_close(struct actor *a);
/* What is in the memory; of a device's, a copy that the next call overwrites. */
const uint8_t *memory_bytes(const struct actor *a);
/* iface and device of the memory, if it is a device's. */
void memory_attr(const struct actor *a, struct fi_mr_attr *attr);
/* The memory is as the model has it. */
void check_memory(const struct actor *a);

/* The registration that this step is; its event comes with that context. */
struct ticket *ticket_new(const struct actor *a);
/* No event speaks of it from now on: refused, or closed. */
void ticket_end(struct ticket *ticket);
/* Takes the region's key from those that several threads want, if it has one. */
void shared_leave(struct actor *a, struct region *r);

struct fid_domain *domain_of(const struct actor *a);
struct endpoint *endpoint_of(const struct actor *a, unsigned ep);
/* The key of the region if all threads want it, else NULL. */
struct shared_key *shared_of(const struct actor *a, const struct region *r);
void peer_call(struct actor *a, const struct peer_ask *ask, struct peer_answer *answer);

void run_reg(struct actor *a, const struct step *step);
void run_bind(struct actor *a, const struct step *step);
void run_enable(struct actor *a, const struct step *step);
void run_refresh(struct actor *a, const struct step *step);
void run_close(struct actor *a, const struct step *step);
void run_bind_cntr(struct actor *a, const struct step *step);
void run_cntr(struct actor *a, const struct step *step);
void run_count(struct actor *a, const struct step *step);
void run_await(struct actor *a, const struct step *step);
void run_ep(struct actor *a, const struct step *step);
void run_domain(struct actor *a, const struct step *step);
void run_raw(struct actor *a, const struct step *step);
void run_map(struct actor *a, const struct step *step);
void run_unmap(struct actor *a, const struct step *step);
void run_access(struct actor *a, const struct step *step);
void run_message(struct actor *a, const struct step *step);
/* The thread's part of messages; the endpoints are there. */
void messages_open(struct actor *a);
/* An endpoint is about to be closed: what it has sent has arrived, and has been looked at. */
void messages_settle(struct actor *a, unsigned ep);
/* The peer does not know it yet. */
void messages_forget(struct actor *a, unsigned ep);
/* At the end: there is what there has to be, and nothing else. */
void messages_finish(struct actor *a);
void run_local(struct actor *a, const struct step *step);
/* Ends the access that is under way, if there is one. */
void land(struct actor *a);

#endif
