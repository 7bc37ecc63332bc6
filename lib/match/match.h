/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching: which posted receive takes an incoming message, by fi_tagged(3). One struct
 * mrf_match holds the posted receives and the unexpected messages of an endpoint, for
 * tagged messages or for untagged ones (which all have the same tag). It knows no
 * endpoint, no buffer and no connection.
 *
 * A receive and a message are members of structures of the owner, who allocates and frees
 * them; between post and removal, and between keep and take, they stay where they are.
 * Here, only arrays of hash tables are allocated, and if one cannot be, matching becomes
 * slower: past the start, nothing fails. The caller serialises all calls on one struct
 * mrf_match (ep->lock).
 *
 * - A message matches a receive if their tags are the same in all bits that the receive
 *   does not ignore, and if the receive takes messages from any source, or from this one.
 * - Of the receives that a message matches, the one that was posted first takes it,
 *   whatever kinds of receives there are.
 * - Of the messages that a receive matches, it takes the one that came first. So the
 *   messages of one source are taken in the order in which they came.
 *
 * The owner matches at two moments: a receive is posted only after mrf_match_find has
 * found no message for it, and a message is kept only if mrf_match_arrive has found no
 * receive.
 *
 * Time does not grow with what is posted or kept, with two exceptions. The receives that ignore
 * the same bits, and all or none of which take any source, are a *family*: there are at most
 * MRF_MATCH_FAMILIES at a time, and the receives that are in none of them are walked. And a receive
 * that ignores bits walks the messages of its source, or all, until one matches. If as many have
 * been walked as there are, a *view* is made of them, in which one that matches such receives is
 * found at once. There are at most MRF_MATCH_VIEWS, and none once no message is left.
 */
#ifndef MRF_MATCH_MATCH_H
#define MRF_MATCH_MATCH_H

#include "match/queues.h"

#define MRF_MATCH_FAMILIES 8
#define MRF_MATCH_VIEWS 2
/* No view is made before so many messages were walked. */
#define MRF_MATCH_WALK 256

/*
 * A source is any number that the owner gives to a sender, but this one: as the source of
 * a receive, all of them; of a message, one that has no number (yet), which matches only
 * receives from any. Both are what libfabric has for them: FI_ADDR_UNSPEC,
 * FI_ADDR_NOTAVAIL.
 */
#define MRF_MATCH_ANY UINT64_MAX
#define MRF_MATCH_UNKNOWN UINT64_MAX

/* All members are private. */
struct mrf_match_recv {
	struct mrf_queues_item item; /* its tag without the bits that are ignored */
	uint64_t ignore;
	struct mrf_match_family *family; /* NULL: one of the rest */
	struct mrf_list all;
	struct mrf_queues_node at; /* in its family; or only at.line, in the rest */
};

/* The owner may read item.source and item.tag of a message that it keeps. */
struct mrf_match_msg {
	struct mrf_queues_item item;
	struct mrf_list all;
	struct mrf_queues_node exact;	  /* by source and tag; not if the source is unknown */
	struct mrf_queues_node of_source; /* likewise */
	struct mrf_queues_node of_tag;
	struct mrf_queues_node
		in_view[MRF_MATCH_VIEWS]; /* directed: not if the source is unknown */
};

struct mrf_match_family {
	uint64_t ignore;
	bool directed;		  /* its receives name a source */
	struct mrf_queues queues; /* empty: another family may take over */
};

/* All messages, by their tags without the bits that are ignored. */
struct mrf_match_view {
	uint64_t ignore;
	bool directed;		  /* and by their sources */
	uint64_t used;		  /* match->serial of that time */
	struct mrf_queues queues; /* nothing, if the view is not in use */
};

/* All members are private, except that recvs and msgs may be read. */
struct mrf_match {
	size_t recvs; /* that are posted */
	size_t msgs;  /* that are kept */
	uint64_t serial;
	struct mrf_list all_recvs; /* in the order of posting */
	struct mrf_list rest;	   /* likewise: those that are in no family */
	struct mrf_list all_msgs;  /* in the order of coming */
	struct mrf_queues exact, of_source, of_tag;
	unsigned views;	 /* in use */
	uint64_t walked; /* messages, since the last view was made */
	struct mrf_match_view view[MRF_MATCH_VIEWS];
	unsigned used; /* of the families; the others were never needed */
	struct mrf_match_family family[MRF_MATCH_FAMILIES];
	struct mrf_queues_salt salt;
};

/* Empty; it does not move from now on. -FI_EIO: there are no random numbers. */
int mrf_match_init(struct mrf_match *match);
/* Nothing is posted, and nothing kept. */
void mrf_match_fini(struct mrf_match *match);

/* --- receives ----------------------------------------------------------------------- */

/*
 * The owner has asked mrf_match_find. The bits of tag that are ignored may be anything.
 */
void mrf_match_post(struct mrf_match *match, struct mrf_match_recv *recv, uint64_t tag,
		    uint64_t ignore, uint64_t source);
/* Removes a receive that is posted. */
void mrf_match_cancel(struct mrf_match *match, struct mrf_match_recv *recv);
/*
 * The receive that takes a message of this source and tag: no longer posted. NULL: there
 * is none, and the owner keeps the message.
 */
struct mrf_match_recv *mrf_match_arrive(struct mrf_match *match, uint64_t source, uint64_t tag);
/*
 * The same, but it stays posted (FI_MULTI_RECV); mrf_match_cancel removes it when it is
 * full.
 */
struct mrf_match_recv *mrf_match_meet(const struct mrf_match *match, uint64_t source, uint64_t tag);

/*
 * The one that was posted first, and the one that was posted after recv; NULL: there is
 * none.
 */
struct mrf_match_recv *mrf_match_first_recv(const struct mrf_match *match);
struct mrf_match_recv *mrf_match_next_recv(const struct mrf_match *match,
					   const struct mrf_match_recv *recv);

/* --- messages ----------------------------------------------------------------------- */

/* The message came after all that are kept. */
void mrf_match_keep(struct mrf_match *match, struct mrf_match_msg *msg, uint64_t source,
		    uint64_t tag);
/* The message that such a receive takes; it stays kept (FI_PEEK). NULL: there is none. */
struct mrf_match_msg *mrf_match_find(struct mrf_match *match, uint64_t tag, uint64_t ignore,
				     uint64_t source);
/*
 * Removes a message that is kept: received, claimed, discarded, or withdrawn by its
 * sender.
 */
void mrf_match_take(struct mrf_match *match, struct mrf_match_msg *msg);
/*
 * A message that is kept has another source now: its sender was inserted into the address
 * vector, or removed from there (MRF_MATCH_UNKNOWN). Its age stays the same, and with it
 * its place among the messages of that source, and among all. Of several, the oldest goes
 * first: the time that this takes grows with the number of younger messages that the
 * source has already. It may be one now that a posted receive takes: the owner looks
 * (mrf_match_arrive).
 */
void mrf_match_relabel(struct mrf_match *match, struct mrf_match_msg *msg, uint64_t source);

/* The one that came first, and the one that came after msg; NULL: there is none. */
struct mrf_match_msg *mrf_match_first_msg(const struct mrf_match *match);
struct mrf_match_msg *mrf_match_next_msg(const struct mrf_match *match,
					 const struct mrf_match_msg *msg);

#endif
