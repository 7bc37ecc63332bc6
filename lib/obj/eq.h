/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queue: an unbounded list of control events (fi_eq(3)); the application may add
 * its own with fi_eq_write. An event queue belongs to a fabric. Thread-safe; lock of rank
 * EQ.
 */
#ifndef MRF_OBJ_EQ_H
#define MRF_OBJ_EQ_H

#include <rdma/fi_eq.h>
#include "obj/obj.h"

struct mrf_eq;

int mrf_eq_open(struct mrf_obj *fabric, const struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);

struct mrf_eq *mrf_eq_from_fid(struct fid *fid);
struct mrf_obj *mrf_eq_obj(struct mrf_eq *eq);

/* fi_trywait, as mrf_cq_trywait. */
int mrf_eq_trywait(struct mrf_eq *eq);

/* Appends an event of len bytes (fi_eq_entry, fi_eq_cm_entry, ...). -FI_ENOMEM. */
int mrf_eq_write(struct mrf_eq *eq, uint32_t event, const void *buf, size_t len);
/* Appends an error; text (may be NULL) becomes its err_data. -FI_ENOMEM. */
int mrf_eq_write_err(struct mrf_eq *eq, const struct fi_eq_err_entry *err, const char *text);

/* --- events that are allocated in advance ----------------------------------------- */

/*
 * Posting such an event cannot fail, and it can be taken back. The caller keeps a pointer
 * to it, passes that pointer's address as slot, and leaves it in place until
 * mrf_eq_retract; the queue sets the pointer to NULL, under its lock, when the event is
 * read.
 */
struct mrf_eq_event;

#define MRF_EQ_TEXT 512 /* room for err_data; longer texts are cut */

struct mrf_eq_event *mrf_eq_event_new(void); /* NULL: no memory (logged) */
void mrf_eq_post(struct mrf_eq *eq, struct mrf_eq_event **slot, uint32_t type,
		 const struct fi_eq_entry *entry);
void mrf_eq_post_err(struct mrf_eq *eq, struct mrf_eq_event **slot,
		     const struct fi_eq_err_entry *err, const char *text);
/* Frees an event that was not posted, or takes one back that was not read. */
void mrf_eq_retract(struct mrf_eq *eq, struct mrf_eq_event **slot);

#endif
