/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application's side of a transfer: its buffers, brought within the device's reach. In
 * this order:
 *
 * 1. the descriptors, if they are given and fit (with FI_MR_LOCAL they must);
 * 2. a copy in the work request, of writes up to MRF_LIMIT_INJECT bytes;
 * 3. a registered slot of the endpoint, up to FI_MRFAB_BOUNCE_MAX bytes;
 * 4. a registration that is kept for the next transfers (buf/cache.h);
 * 5. one for this transfer alone, where nothing can be kept;
 * 6. a copy, for sources that can be read but not pinned.
 *
 * If a descriptor names memory of a device, all buffers are copied by buf/stage.h instead.
 *
 * Taking buffers may take long, because memory is pinned, or copied from pages that have to be
 * read in first; so may letting them go. Both are done without an endpoint's lock, by the one
 * thread that knows the transfer.
 *
 * A transfer with more buffers, or more pieces, than can be held at a time is brought within reach
 * part by part (mrf_local_reach), as it goes on.
 */
#ifndef MRF_BUF_LOCAL_H
#define MRF_BUF_LOCAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "buf/bounce.h"
#include "buf/stage.h"
#include "contract/limits.h"
#include "verbs/vqp.h"

/* Held at a time for one transfer: */
#define MRF_LOCAL_SGE 16 /* pieces of memory */
#define MRF_LOCAL_IOV 8	 /* buffers */
/*
 * Only one of the buffers, which have at most MRF_LIMIT_MSG_SIZE bytes together, can be longer
 * than a kernel MR, and then it is two pieces.
 */
#define MRF_LOCAL_PIECES (MRF_LOCAL_IOV + 1)

struct mrf_cache;
struct mrf_cached;
struct mrf_mr_space;

/* What the buffers of one endpoint need. */
struct mrf_buf {
	const struct mrf_mr_space *space;
	struct mrf_cache *cache; /* the domain's */
	uint64_t copy_max;	 /* FI_MRFAB_BOUNCE_MAX */
	struct mrf_bounce_pool bounce;
	struct mrf_stage_pool stage; /* rings of transfers, */
	/* and of lines (ep/msg/copies.h), whose messages go or come */
	struct mrf_stage_pool going, coming;
};

/* Where the bytes are. */
enum mrf_local_kind {
	MRF_LOCAL_DESC,	  /* registered by the application */
	MRF_LOCAL_INLINE, /* copied into the transfer */
	MRF_LOCAL_BOUNCE, /* copied to or from a registered slot of the endpoint */
	MRF_LOCAL_CACHED, /* registered by the cache, without remote rights */
	MRF_LOCAL_TEMP,	  /* registered for this transfer only, without remote rights */
	MRF_LOCAL_COPY,	  /* copied to memory of our own that is registered like TEMP */
	MRF_LOCAL_STAGED, /* copied to or from a ring, chunk by chunk: buf/stage.h */
	MRF_LOCAL_APART	  /* likewise, but the ring is the caller's: mrf_stage_part */
};

/* All buffers of a transfer that struct mrf_local has no room for, or that holds only a part. */
struct mrf_local_rest {
	uint64_t from, upto; /* these bytes of the transfer are held */
	bool arrives, message, whole;
	bool wide; /* STAGED, of bytes that arrive: mrf_stage_widen */
	/* STAGED: the ring, or a slot (ring is NULL), and its size */
	struct mrf_stage_ring *ring;
	void *memory;
	uint64_t size, total;
	uint32_t lkey;
	size_t count;
	void **desc; /* NULL, or one per iov */
	struct iovec iov[];
};

/* All zero up to sge: no bytes. */
struct mrf_local {
	enum mrf_local_kind kind;
	int ntemp;
	struct mrf_vmr *temp; /* TEMP or COPY: ntemp registrations */
	/* BOUNCE or COPY: the slot or the copy; CACHED, STAGED, APART, or with rest: not NULL */
	void *copy;
	struct mrf_local_rest *rest;
	int nsge;
	int ndesc;
	int nuser;
	int ncached;
	struct mrf_sge sge[MRF_LOCAL_SGE];
	union {
		void *desc[MRF_LOCAL_IOV];		     /* DESC: sge was made from these */
		struct mrf_cached *cached[MRF_LOCAL_PIECES]; /* CACHED: in use */
	};
	/* the buffers that bytes go to which arrive in a copy; if there are more: rest->iov */
	struct iovec user[MRF_LOCAL_IOV];
	uint8_t data[MRF_LIMIT_INJECT];
};

/* What was reset is the buffer at sge from now on, whose descriptor is that of a pinned region. */
static inline void mrf_local_describe(struct mrf_local *local, void *desc,
				      const struct mrf_sge *sge)
{
	local->kind = MRF_LOCAL_DESC;
	local->sge[0] = *sge;
	local->nsge = 1;
	local->desc[0] = desc;
	local->ndesc = 1;
}

/* Do its bytes go to or from a device, and are they more than a slot holds? */
static inline bool mrf_local_is_ring(const struct mrf_local *local)
{
	return local->kind == MRF_LOCAL_STAGED && local->rest->ring;
}

/* Inside lib/buf: adds a piece, for which there is room. */
static inline void mrf_local_add(struct mrf_local *local, uint64_t addr, uint64_t len,
				 uint32_t lkey)
{
	local->sge[local->nsge++] =
		(struct mrf_sge){ .addr = addr, .len = (uint32_t)len, .lkey = lkey };
}

/* A transfer's buffers, as a call has them. */
struct mrf_local_req {
	const struct iovec *iov;
	void **desc; /* NULL, or one per iov */
	size_t count;
	const size_t *number; /* of each iov in the transfer, for messages; NULL: 0, 1, ... */
	uint64_t total;	      /* bytes of all iov */
	bool arrives;	      /* the device writes there */
	bool message; /* regions need the right FI_RECV or FI_SEND, not FI_READ or FI_WRITE */
	bool inject;  /* copied before the call returns */
	bool whole;   /* all bytes are needed at a time: more buffers than are held are copied */
	bool late;    /* an earlier transfer may change them: wait until that is done */
	bool behind;  /* others are under way: what takes a device long may be done in its turn */
	bool apart;   /* a message for whose staged bytes its line has memory */
};

/* cache lives longer than buf. */
void mrf_buf_init(struct mrf_buf *buf, const struct mrf_mr_space *space, struct mrf_cache *cache);
/* No transfer may hold anything. */
void mrf_buf_fini(struct mrf_buf *buf);

/*
 * Fills local, which is all zero up to sge. Each failure is logged, and local then holds
 * nothing: -FI_EINVAL or -FI_EACCES: FI_MR_LOCAL, and a descriptor is missing or does not
 * fit; -FI_EFAULT: a buffer is not mapped, or may not be read or written; -FI_ENOMEM or
 * another error of registering memory.
 */
int mrf_local_take(struct mrf_buf *buf, const struct mrf_local_req *req, struct mrf_local *local);
/*
 * Lets go of the bytes that are held, and brings those from `from` on within reach, at least one.
 * No endpoint's lock is held, and nothing of the transfer is in flight. Errors as above; nothing
 * is held then.
 */
int mrf_local_reach(struct mrf_buf *buf, struct mrf_local *local, uint64_t from);
/* Is the byte at pos of the transfer within reach? */
static inline bool mrf_local_reaches(const struct mrf_local *local, uint64_t pos)
{
	return !local->rest || (pos >= local->rest->from && pos < local->rest->upto);
}

/* Are the bytes where the application has them, or in the transfer itself? */
static inline bool mrf_local_is_bare(enum mrf_local_kind kind)
{
	switch (kind) {
	case MRF_LOCAL_DESC:
	case MRF_LOCAL_INLINE:
		return true;
	case MRF_LOCAL_BOUNCE:
	case MRF_LOCAL_CACHED:
	case MRF_LOCAL_TEMP:
	case MRF_LOCAL_COPY:
	case MRF_LOCAL_STAGED:
	case MRF_LOCAL_APART:
		break;
	}
	return false;
}

/* The buffers that results go to (buf/rest.h). */
static inline const struct iovec *mrf_local_user(const struct mrf_local *local)
{
	return local->rest ? local->rest->iov : local->user;
}

/* The descriptors of these buffers. */
static inline void *const *mrf_local_user_desc(const struct mrf_local *local)
{
	return local->rest ? local->rest->desc : local->desc;
}

/* Fast, and allowed under an endpoint's lock, without registrations (local->temp). */
void mrf_local_drop(struct mrf_buf *buf, struct mrf_local *local);
/* False when a region that local uses has been closed. */
bool mrf_local_open(const struct mrf_buf *buf, const struct mrf_local *local);

/*
 * Finds the pieces of bytes [from, from + *len), the first of which is within reach: fills at most
 * max entries of sge, returns their number and lowers *len to the bytes that they cover.
 */
int mrf_local_sges(const struct mrf_local *local, uint64_t from, uint64_t *len, struct mrf_sge *sge,
		   int max);

/*
 * Where the bytes of a short transfer are, in one piece that may be looked at and changed under a
 * lock. NULL: nowhere, or its region was closed.
 */
void *mrf_local_memory(const struct mrf_buf *buf, const struct mrf_local *local);

/* Codes of reads, writes and messages: the first of those that mrf_local_check describes. */
enum { MRF_LOCAL_MISSING = 4010, MRF_LOCAL_NO_RIGHT, MRF_LOCAL_OUTSIDE };

/*
 * Checks the buffers of a transfer that have bytes, before anything else is done with them. With
 * FI_MR_LOCAL each buffer that is not injected needs a descriptor, which gives the right to read
 * or write it. With FI_MR_HMEM memory of a device needs one, and every descriptor has to be good.
 * -FI_EINVAL or -FI_EACCES, logged as "a buffer of `what`" (NULL: "buffer 2") with code (no
 * descriptor), code + 1 (it lacks the right) or code + 2 (the buffer is not inside the region).
 */
int mrf_local_check(const struct mrf_buf *buf, const struct mrf_local_req *req, const char *what,
		    unsigned code);

#endif
