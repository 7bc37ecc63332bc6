/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queue: an ordered ring of completions and errors. It grows when it is full,
 * so nothing is ever lost, unless it was fixed; attr->size is its initial size. It supports all formats and
 * the wait objects NONE, UNSPEC and FD. Endpoints bind themselves as progress sources and
 * write into it; the application reads. Thread-safe; lock of rank CQ.
 */
#ifndef MRF_OBJ_CQ_H
#define MRF_OBJ_CQ_H

#include <rdma/fi_eq.h>
#include "obj/obj.h"
#include "obj/wait.h"

/* One completion, in a neutral form that every FI_CQ_FORMAT_* is made from. */
struct mrf_comp {
	void *op_context;
	uint64_t flags; /* FI_RMA | FI_WRITE, FI_REMOTE_CQ_DATA ... as in fi_cq(3) */
	size_t len;	/* bytes */
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src_addr; /* FI_ADDR_NOTAVAIL when unknown */
};

/*
 * Length of the longest error text, with its NUL: a reason of 140 bytes after the longest
 * address, and how many bytes of the longest message were done. No text is cut.
 */
#define MRF_ERR_TEXT 256
/* The prov_errno of an entry whose err_data is the address of a sender (FI_SOURCE_ERR). */
#define MRF_UNKNOWN_SOURCE 4329

struct mrf_comp_err {
	struct mrf_comp comp;
	size_t olen;
	int err;		 /* positive FI_E* */
	int prov_errno;		 /* stable reason code, see fi_cq_strerror */
	char text[MRF_ERR_TEXT]; /* why, for people; becomes err_data */
	/* Not 0: text holds so many bytes of an address instead (MRF_UNKNOWN_SOURCE). */
	size_t addr_len;
	/*
	 * For the queue, once the error has been read: the thread that has the text lent
	 * (mrf_obj_reader), and the node in cq->lent.
	 */
	const void *reader;
	struct mrf_list lent;
};

struct mrf_cq;

/*
 * domain: the parent that the CQ holds. Returns the errors of fi_cq(3); sets *cq on
 * success only.
 */
int mrf_cq_open(struct mrf_obj *domain, const struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context);

/*
 * Of a queue that was just opened: it will not grow, as that of other providers, and holds no more
 * entries than it was opened for, or than most, rounded up to a power of two.
 */
void mrf_cq_fix(struct mrf_cq *cq, size_t most);

/* The number of unread completions and errors. Any thread, no lock. */
size_t mrf_cq_unread(const struct mrf_cq *cq);
/* How many the application has read so far. Any thread; takes the queue's lock. */
size_t mrf_cq_taken(struct mrf_cq *cq);
/* The CQ behind a fid, or NULL when the fid is of another class. */
struct mrf_cq *mrf_cq_from_fid(struct fid *fid);
struct mrf_obj *mrf_cq_obj(struct mrf_cq *cq);

/*
 * fi_trywait: 0 when it is safe to block on the CQ's fd, -FI_EAGAIN when there is something to
 * read, -FI_EINVAL (logged) when the CQ has no wait object.
 */
int mrf_cq_trywait(struct mrf_cq *cq);

/*
 * Appends a completion and wakes waiters. If the ring is full and cannot grow, this
 * completion and every later one are counted as lost; once everything before them has
 * been read, the CQ answers -FI_EAVAIL with FI_EOVERRUN for ever, as in fi_cq(3) "NOTES".
 * No loss is silent.
 */
void mrf_cq_write(struct mrf_cq *cq, const struct mrf_comp *comp);
/*
 * As mrf_cq_write, in fewer instructions, for an operation that the endpoint itself
 * started: the other fields of its completion are empty.
 */
void mrf_cq_write_own(struct mrf_cq *cq, void *op_context, uint64_t flags, size_t len);
void mrf_cq_write_err(struct mrf_cq *cq, const struct mrf_comp_err *err);

#endif
