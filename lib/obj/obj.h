/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all fi objects share: who holds whom. A child holds its parent (a region its
 * domain), a user holds what it is bound to (an endpoint its CQ). An object that is held
 * cannot be closed: mrf_obj_busy answers -FI_EBUSY and the log names the holders.
 *
 * Another thread may be closing what is held again and again until it is free to go. So a hold
 * ends as the last step of closing its holder, when only the holder's own memory is left.
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

struct mrf_hold;

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
	 * NULL, or: the nodes of holds are in no struct mrf_hold, and this makes one of a
	 * node, for messages. Set after mrf_obj_init by who manages holds itself.
	 */
	void (*holder)(const struct mrf_list *node, struct mrf_hold *hold);
	/*
	 * What the application asked for in fi_getinfo; 0: not set, see
	 * mrf_obj_api_version. Set by fabric and domain after mrf_obj_init, immutable
	 * then.
	 */
	uint32_t api_version;
};

struct mrf_hold {
	struct mrf_list node;	/* in target->holds; guarded by target->lock */
	struct mrf_obj *target; /* NULL: holds nothing */
	const struct fid *holder;
	void (*describe)(const struct fid *fid, char *buf, size_t len);
};

void mrf_obj_init(struct mrf_obj *obj, struct fid *fid,
		  void (*describe)(const struct fid *, char *, size_t));
void mrf_obj_fini(struct mrf_obj *obj);

/*
 * 0, or -FI_EPERM after one line when a forked child calls on what its parent opened.
 * Before anything else is done with the object: what it consists of may be changing in
 * the parent at the time of the fork, and its locks taken by threads that the child has
 * not.
 */
int mrf_obj_foreign(const struct fid *fid, uint64_t owner, const char *call);
static inline int mrf_obj_check(const struct mrf_obj *obj, const char *call)
{
	return mrf_likely(mrf_fork_ours(obj->owner)) ?
		       0 :
		       mrf_obj_foreign(obj->fid, obj->owner, call);
}

/* describe (may be NULL) tells about the holder in the message of mrf_obj_busy. */
void mrf_obj_hold(struct mrf_hold *hold, struct mrf_obj *target, const struct fid *holder,
		  void (*describe)(const struct fid *, char *, size_t));
/* Harmless on a hold that holds nothing. */
void mrf_obj_drop(struct mrf_hold *hold);

/*
 * May it be closed? -FI_EBUSY after one line that names what is held, by whom and by how
 * many; -FI_EPERM as mrf_obj_check.
 */
int mrf_obj_busy(struct mrf_obj *obj);

/*
 * API version in force for what is opened on this fabric or domain: the object's own,
 * else the fid's when it is a fabric, else the version of our headers.
 */
uint32_t mrf_obj_api_version(const struct mrf_obj *obj);

/* "memory region", "endpoint", ... for a FI_CLASS_* value. */
const char *mrf_obj_class_name(size_t fclass);

/* fi_tostr of an object that has no more to say than its class and its address. */
int mrf_obj_tostr(const struct fid *fid, char *buf, size_t len);

/*
 * Operations that answer -FI_ENOSYS with one line, for the slots of an ops table that an
 * object does not offer.
 */
int mrf_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int mrf_no_control(struct fid *fid, int command, void *arg);
int mrf_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		    void *context);
int mrf_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops,
		   void *context);

/*
 * Copies a reason into the error entry of a queue, as fi_cq(3) and fi_eq(3) have it for
 * err_data. On input *data and *size are the application's; with api_version >= 1.5 and a
 * buffer given, as much of text as fits is copied there and always terminated; otherwise
 * *data becomes text itself, which the caller keeps alive. *size: bytes in *data.
 */
void mrf_obj_err_data(uint32_t api_version, const char *text, void **data, size_t *size);

/*
 * Stands for the calling thread as long as it lives. A queue keeps the text that it has lent to a
 * thread until that thread takes the next error: what others read meanwhile must not free it.
 */
const void *mrf_obj_reader(void);

/*
 * fi_cq_strerror and fi_eq_strerror: err_data is the text that mrf_obj_err_data handed
 * out, or NULL. Returns buf, or without one a text that lasts until the thread's next
 * call.
 */
const char *mrf_obj_strerror(int prov_errno, const void *err_data, char *buf, size_t len);

#endif
