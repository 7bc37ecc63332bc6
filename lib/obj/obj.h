/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that all fi objects share: the holds between them. A child holds its parent (a
 * region its domain), and a user holds the object that it is bound to (an endpoint its
 * CQ). An object that is held cannot be closed: mrf_obj_busy returns -FI_EBUSY and the
 * log names the holders.
 *
 * Another thread may try to close a held object again and again until that succeeds. So
 * dropping the hold is the last step of closing the holder, when only the holder's own
 * memory is left.
 *
 * An object and its holds live inside the structures that embed them and own nothing.
 * Any thread may hold and drop; obj->lock guards the list.
 */
#ifndef MRF_OBJ_OBJ_H
#define MRF_OBJ_OBJ_H

#include <rdma/fabric.h>
#include "base/compiler.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/lock.h"

struct mrf_json;
struct mrf_obj;
struct mrf_wait;

struct mrf_hold {
	struct mrf_list node;	/* in target->holds; guarded by target->lock */
	struct mrf_obj *target; /* NULL: holds nothing */
	const struct fid *holder;
	void (*describe)(const struct fid *fid, char *buf, size_t len);
	int64_t since; /* mrf_now_tick */
};

struct mrf_obj {
	struct fid *fid;       /* immutable; its class names the object in messages */
	uint64_t owner;	       /* immutable; the process that opened it: base/fork.h */
	struct mrf_lock lock;  /* rank OBJ */
	struct mrf_list holds; /* struct mrf_hold.node of every holder; guarded by lock */
	/*
	 * Adds detail to the name in messages ("0x7f..., 4096 bytes, key 0x7"); may be
	 * NULL. Runs under the lock of a held object, so it takes no lock of its own.
	 */
	void (*describe)(const struct fid *fid, char *buf, size_t len);
	/*
	 * Set after mrf_obj_init if the nodes in holds are not part of a struct mrf_hold:
	 * makes a struct mrf_hold from such a node, for messages. Otherwise NULL.
	 */
	void (*holder)(const struct mrf_list *node, struct mrf_hold *hold);
	/*
	 * The version that the application asked for in fi_getinfo; 0: not set, see
	 * mrf_obj_api_version. Set by fabric and domain after mrf_obj_init, then
	 * immutable.
	 */
	uint32_t api_version;
	/* Both set after mrf_obj_init by the layer of the object, or not at all. */
	struct mrf_hold parent; /* on the domain or fabric that a queue, say, was opened on */
	struct mrf_wait *wait;	/* of a queue or counter */
};

void mrf_obj_init(struct mrf_obj *obj, struct fid *fid,
		  void (*describe)(const struct fid *, char *, size_t));
void mrf_obj_fini(struct mrf_obj *obj);

/*
 * Logs that a forked child may not use an object which its parent opened, and returns
 * -FI_EPERM. mrf_obj_check returns 0 or that error. It comes before any other use of the
 * object: at the time of the fork the parent may have been changing the object, and its
 * locks may have been held by threads that do not exist in the child.
 */
int mrf_obj_foreign(const struct fid *fid, uint64_t owner, const char *call);
static inline int mrf_obj_check(const struct mrf_obj *obj, const char *call)
{
	return mrf_likely(mrf_fork_ours(obj->owner)) ? 0
						     : mrf_obj_foreign(obj->fid, obj->owner, call);
}

/* describe (may be NULL) describes the holder in the message of mrf_obj_busy. */
void mrf_obj_hold(struct mrf_hold *hold, struct mrf_obj *target, const struct fid *holder,
		  void (*describe)(const struct fid *, char *, size_t));
/* Harmless on a hold that holds nothing. */
void mrf_obj_drop(struct mrf_hold *hold);

/*
 * May the object be closed? 0, or -FI_EBUSY after a line that names the object, its
 * holders and their number; or -FI_EPERM like mrf_obj_check.
 */
int mrf_obj_busy(struct mrf_obj *obj);
/* The same, with what the line calls the holders, for an object about which there are several lines. */
int mrf_obj_busy_with(struct mrf_obj *obj, const char *kind);
/*
 * A line of the log, and an object of *json, for each of its holders, with its age. Returns how many there
 * are. Not for an object whose holds are not part of a struct mrf_hold.
 */
unsigned mrf_obj_tell_holders(struct mrf_obj *obj, struct mrf_json *json);

/*
 * The API version for objects opened on this fabric or domain: the object's own, or the
 * fid's if that is a fabric, or the version of the headers that this library was built
 * with.
 */
uint32_t mrf_obj_api_version(const struct mrf_obj *obj);

/* "memory region", "endpoint", ... for a FI_CLASS_* value. */
const char *mrf_obj_class_name(size_t fclass);

/* fi_tostr of an object of which only class and address are shown. */
int mrf_obj_tostr(const struct fid *fid, char *buf, size_t len);

/*
 * Operations that return -FI_ENOSYS after one line, for entries of an ops table that an
 * object does not implement.
 */
int mrf_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int mrf_no_control(struct fid *fid, int command, void *arg);
int mrf_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int mrf_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

/*
 * Copies a reason into the error entry of a queue, as fi_cq(3) and fi_eq(3) describe for
 * err_data. On input *data and *size are the application's; with api_version >= 1.5 and a
 * buffer given, as much of text as fits is copied there and always terminated; otherwise
 * *data becomes text itself, which the caller keeps alive. *size: bytes in *data.
 */
void mrf_obj_err_data(uint32_t api_version, const char *text, void **data, size_t *size);

/*
 * Returns a pointer that identifies the calling thread while it lives. A queue keeps the
 * text that it has lent to a thread until that thread reads the next error, so that other
 * threads' reads do not free it.
 */
const void *mrf_obj_reader(void);

/*
 * fi_cq_strerror and fi_eq_strerror: err_data is the text that mrf_obj_err_data returned,
 * or NULL. Returns buf, or, if buf is NULL, a text that is valid until the thread's next
 * call.
 */
const char *mrf_obj_strerror(int prov_errno, const void *err_data, char *buf, size_t len);

#endif
