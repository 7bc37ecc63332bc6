/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/obj: the structure of an address vector. The locks are those of av.h. */
#ifndef MRF_OBJ_AV_INT_H
#define MRF_OBJ_AV_INT_H

#include <limits.h>
#include <stdatomic.h>
#include "obj/av.h"
#include "obj/eq.h"

#define MRF_AV_FIRST_BITS 6 /* chunk n holds 2^(n + 6) entries */
#define MRF_AV_CHUNKS 26
#define MRF_AV_WORDS (sizeof(union mrf_addr) / sizeof(uint32_t))

_Static_assert(sizeof(union mrf_addr) % sizeof(uint32_t) == 0, "addresses are copied in words");

/*
 * Read without a lock: generation, words, generation again. Words are stored and loaded
 * in order (release, acquire), so a reader that sees a word of the next use also sees
 * that the generation has changed.
 */
struct mrf_av_entry {
	atomic_uint_fast64_t gen; /* 0: not in use */
	atomic_uint words[MRF_AV_WORDS];
	size_t next_free; /* guarded by av->lock */
};

struct mrf_av {
	struct fid_av fid;
	struct mrf_obj obj;
	sa_family_t family;		   /* immutable, like the next four */
	bool table;			   /* otherwise a map */
	bool async;			   /* FI_EVENT */
	const struct mrf_form *form;	   /* of addresses that come in and go out */
	const struct mrf_profile *profile; /* or NULL */
	_Atomic(struct mrf_av_entry *) chunks[MRF_AV_CHUNKS];
	atomic_size_t count; /* entries in use; changed under lock */
	/* Insertions and removals, and so the last generation; changed under lock. */
	atomic_uint_fast64_t changes;

	struct mrf_lock lock; /* rank AV: guards all below, and changes of entries */
	struct mrf_eq *eq;    /* bound, or NULL */
	struct mrf_hold eq_hold;
	struct mrf_list watches;    /* struct mrf_av_watch.node */
	struct mrf_av_index *index; /* NULL: nobody has asked; av_index.h */
	size_t used;		    /* indices handed out so far, and so the first fresh one */
	size_t lowest;		    /* no index below is free; tables only */
	size_t free_first;	    /* list of removed indices, oldest first; maps only */
	size_t free_last;
};

/* Index i lives in the chunk of the highest bit of i + 2^6, at the remaining bits. */
static inline size_t mrf_av_chunk_of(size_t i, size_t *offset)
{
	size_t n = i + ((size_t)1 << MRF_AV_FIRST_BITS);
	unsigned top = (unsigned)(sizeof(long) * CHAR_BIT - 1) - (unsigned)__builtin_clzl(n);

	*offset = n - ((size_t)1 << top);
	return top - MRF_AV_FIRST_BITS;
}

static inline struct mrf_av *mrf_av_of(struct fid_av *fid)
{
	return mrf_container_of(fid, struct mrf_av, fid);
}

/* The address at this place. False: it is none of this vector's form. */
static inline bool mrf_av_read(const struct mrf_av *av, const void *from, union mrf_addr *addr)
{
	return mrf_form_take(av->form, from, mrf_form_size(av->form, av->family, from, SIZE_MAX),
			     addr);
}

/* The calls of fi_av(3) that insert addresses, which documents their results: av_insert.c. */
int mrf_av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
		  uint64_t flags, void *context);
int mrf_av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr,
		     uint64_t flags, void *context);
int mrf_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
		     size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context);

#endif
