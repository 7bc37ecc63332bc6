/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an endpoint that was opened with FI_MSG has for messages: the receives that the application
 * has posted and the messages that none of them takes (match/match.h); the ends of the lines that
 * peers have dialled (inlets), and what is known of these peers (origins); the queue on which all
 * that comes over lines completes, also what comes back over the lines of this side.
 *
 * It costs no queue and no pinned byte before the first line. The agent opens and closes; the rest
 * is guarded by ep->lock, and done by whoever polls the endpoint's queues or counters. The agent
 * takes that over where nobody polls (duty.h).
 */
#ifndef MRF_EP_MSG_INBOX_H
#define MRF_EP_MSG_INBOX_H

#include <stdatomic.h>
#include "base/addr.h"
#include "base/idmap.h"
#include "ep/msg/copies.h"
#include "ep/msg/message.h"
#include "ep/msg/shared.h"
#include "loop/agent.h"
#include "obj/cq.h"
#include "proto/frame.h"
#include "proto/proto.h"
#include "verbs/vpair.h"

struct mrf_ep;
struct mrf_intake;
struct mrf_landing;
struct mrf_peer;
struct mrf_pull;
struct mrf_vconn;
struct mrf_wc;

/*
 * Completions that the queue holds at first, and at most: of all slots, and of so many lines. rxe
 * makes it one less than a power of two.
 */
#define MRF_INBOX_CQ_FIRST 63
#define MRF_INBOX_CQ 16383
/* ... of which a line takes, at either end. */
#define MRF_LINE_PLACES (MRF_LINE_NOTES + 2)

/*
 * The work request of a note, of which a line has one at a time; its queue pair says which. And those
 * by which the bytes of long messages are asked for, and in which they come.
 */
enum { MRF_NOTE_ID, MRF_GRANT_ID, MRF_PIECE_ID };

/* What is known of a sender, as long as it may come again. */
struct mrf_origin {
	struct mrf_list node;	 /* in inbox->origins: the one that was used last is the last */
	struct mrf_inlet *inlet; /* NULL: it has no line now */
	struct mrf_inbox *inbox;
	uint64_t ticket;
	union mrf_addr addr; /* where its endpoint listens, as it says, */
	uint64_t source;     /* and what the address vector has for that: label.h */
	uint64_t next;	     /* frames that have come: the number of the next one */
	uint64_t limit;	     /* it may not send that one yet */
	uint64_t told;	     /* how many were taken, when it was last told */
	uint64_t wanted;     /* how many it wants to be told of at once: tx/delivery.h */
	unsigned held;	     /* of those that have come, whose slot is not posted again */
	unsigned kept;	     /* messages of it that are unexpected, claimed, late or offered */
	size_t bytes;	     /* its share of mrf_inbox.kept */
	uint32_t window;
	bool shut;	  /* it may send nothing before it is told otherwise */
	bool offers_only; /* it was told to send no bytes with its frames, but for a few */
	int64_t barred; /* mrf_now_ms() until which it gets no line, because it broke the protocol */
	bool smaller;	/* its window has become smaller, and it was not told yet */
	bool unsure;	/* frames that have said how much was taken of it may be lost */
	bool used_up;	/* it has sent all that it may, since it was told */
	/* Long messages: pull.h. */
	struct mrf_list offers;	 /* struct mrf_message.offer.node, by their numbers */
	struct mrf_list waiting; /* struct mrf_pull.node: the receive has to wait for its turn; */
	struct mrf_list turns;	 /* or has it: bytes are asked for */
	unsigned pulls;		 /* that do not wait for their turn */
	uint64_t begun;		 /* it offers these on this line; it asks about those before it, */
	uint64_t asked;		 /* and has asked about these */
	int64_t lost;		 /* mrf_now_ms() when its line was lost */
	struct mrf_landing *landing; /* for bytes that go on to devices; NULL: none had to */
};

/* The end of a line that a peer has dialled. */
struct mrf_inlet {
	struct mrf_inbox *inbox;
	struct mrf_origin *origin;
	struct mrf_peer *reverse; /* the line the other way: reverse.h; NULL: unknown */
	struct mrf_vconn *vconn;  /* for notes; NULL: nothing is sent yet, or any more */
	uint32_t qpn;
	struct mrf_list node;	     /* in inbox->inlets */
	struct mrf_list due;	     /* in inbox->due: a note has to be sent; or in inbox->full */
	bool noting;		     /* one is on the way */
	bool in_full;		     /* it is in inbox->full, or was moved from there to due */
	bool later;		     /* it was in inbox->later */
	bool parting;		     /* its last one was sent: farewell.h */
	bool known;		     /* its initiator had a line before */
	bool heard;		     /* something has come over it */
	bool confirmed;		     /* ... or its initiator has said that it is there */
	struct mrf_frame_last said;  /* in frames that have come over it */
	uint64_t last;		     /* number of the slot that came back last over it: lost.h */
	uint64_t seen;		     /* last, when it was looked at: silent.h */
	bool silent;		     /* nothing had come since the look before */
	bool counts;		     /* its window is part of inbox->windows */
	void *owner;		     /* who has opened it, for calls->cut */
	struct mrf_intake *intake;   /* for the bytes of long messages: intake.h; NULL: none yet, */
	bool wants_intake;	     /* and the agent is to make it, */
	struct mrf_vpair_name other; /* with this at the other end; qpn 0: not known yet */
	unsigned granting;	     /* grants on the way */
	struct mrf_list ends;	     /* struct mrf_message.late.node: to be told that it is over */
	struct mrf_frame_grant answer; /* to a question */
	bool answers;		       /* it has to be sent */
	int wrong;    /* -FI_E*: its initiator breaks the protocol, and is cut off */
	bool closing; /* others need what it may hold, or it cannot be told anything more */
};

/* What others do for the inbox. Constant. */
struct mrf_inbox_calls {
	/* A completion of one of our own lines; ep->lock is held. */
	void (*heard)(struct mrf_ep *ep, const struct mrf_wc *wc);
	/* The target of one of our own lines says how much it has taken, mod 2^bits; likewise. */
	void (*told)(struct mrf_peer *peer, uint32_t taken, unsigned bits);
	/* Asks for the next part of a long message of the line's initiator. False: there is none now. */
	bool (*grant)(struct mrf_inlet *inlet);
	/* The line is to be cut off or closed; agent thread, no lock held. */
	void (*cut)(struct mrf_inlet *inlet);
};

/* What is known of slots that did not come back: lost.h. */
struct mrf_lost {
	uint64_t ended;		  /* the highest mrf_inlet.last of lines that have ended */
	uint64_t waits;		  /* number of the oldest slot that waits for a line, */
	struct mrf_inlet *holder; /* and a line that may hold it; NULL: none waits */
	uint64_t taken;		  /* the highest number that had come back */
	unsigned unheard;	  /* lines that have ended since */
	bool again;		  /* the agent is to look again after a while, */
	struct mrf_timer timer;	  /* which it does then */
};

struct mrf_inbox {
	struct mrf_ep *ep;
	const struct mrf_inbox_calls *calls;

	struct mrf_match untagged, tagged;
	unsigned multis;	 /* receives of many messages that are posted: multi.h */
	struct mrf_list claimed; /* struct mrf_message.late.node: those that FI_CLAIM set aside */
	struct mrf_list free_recvs;	 /* struct mrf_recv */
	unsigned messages, messages_max; /* that are unexpected */
	size_t kept;			 /* bytes of these, */
	size_t most; /* and how many there were since the lines in full were looked at */
	size_t keep_max;
	struct mrf_list late;  /* struct mrf_message.late.node: to be copied without the lock */
	struct mrf_list steps; /* struct mrf_pull.node: to be done without the lock, in any order */
	struct mrf_pull *spare_pull; /* for the next one; or NULL */
	bool stepping;		     /* step_job is at them */
	struct mrf_job step_job;
	struct mrf_copies copies; /* of long messages from and to memory of devices */
	struct mrf_timer orphans; /* when to give up offers whose senders have no line */
	bool copied;		  /* a thread is at them, in order: the others leave them alone */
	struct mrf_job job;	  /* the agent's, if it is that */
	unsigned copying;	  /* messages that threads are at, and that job */

	struct mrf_vcq *vcq; /* NULL before the first line, ours or a peer's */
	unsigned depth;	     /* of it; the agent alone reads and changes it */
	atomic_uint places;  /* in it, of lines; the agent alone changes it, any thread reads it */
	struct mrf_slots slots;
	bool growing; /* the agent is to make more */
	struct mrf_lost lost;
	int64_t looked;		 /* mrf_now_ms() when it was last looked which lines are silent, */
	int64_t taken_back;	 /* and the look after which these gave up their windows */
	struct mrf_idmap by_qpn; /* struct mrf_inlet */
	struct mrf_list inlets;
	struct mrf_inlet *last; /* of the last frame, and most likely of the next */
	unsigned windows;	/* the sum of those of lines that were not silent lately */
	struct mrf_list due;	/* struct mrf_inlet.due */
	struct mrf_list
		later;	      /* the same: those that may be told by a frame until somebody polls */
	struct mrf_list full; /* the same: those that get none before more has been received */
	struct mrf_list origins;
	struct mrf_idmap by_ticket; /* struct mrf_origin */
	uint64_t labelled;	    /* mrf_av_changes when the origins' labels were looked up */
	unsigned norigins;

	struct mrf_kick kick;	/* the agent is to look at: inlets to cut off or close, growing */
	struct mrf_timer watch; /* agent thread: duty.h */
	bool polled;		/* since the agent last looked */
	size_t read;		/* completions that had been read then */
	bool on_duty;		/* nobody does: the agent is told of messages */
};

static inline struct mrf_match *mrf_inbox_match(struct mrf_inbox *inbox, bool tagged)
{
	return tagged ? &inbox->tagged : &inbox->untagged;
}

/* All of them with ep->lock held. */

/* Somebody polls again: who was to be told by a frame is told by a note. */
void mrf_inbox_not_later_locked(struct mrf_inbox *inbox);

uint64_t mrf_origin_taken_upto(const struct mrf_origin *origin);

/*
 * So many of its frames have been taken, not always the first ones: some may have to be copied to
 * memory that is not there yet. But a sender that wants to be told reads it as the first ones.
 */
static inline uint64_t mrf_origin_taken(const struct mrf_origin *origin)
{
	if (mrf_unlikely(origin->held && (int64_t)(origin->wanted - origin->told) > 0))
		return mrf_origin_taken_upto(origin);
	return origin->next - origin->held;
}

/*
 * What it may be told. The welcome of its line counts frames as taken that have come, but whose slots
 * may be in use still; that is never taken back.
 */
static inline uint64_t mrf_origin_tells(const struct mrf_origin *origin)
{
	return mrf_max(mrf_origin_taken(origin), origin->told);
}

/* Has something been taken of which it wants to be told at once? */
static inline bool mrf_origin_owes(const struct mrf_origin *origin)
{
	uint64_t upto = mrf_min(mrf_origin_taken(origin), origin->wanted);

	return (int64_t)(upto - origin->told) > 0;
}

/* It has been told so: it may send a window more than that. */
static inline void mrf_origin_told(struct mrf_origin *origin)
{
	origin->told = mrf_origin_tells(origin);
	origin->limit = mrf_max(origin->limit, origin->told + origin->window);
}

/* May there be another unexpected message, however few bytes it has? */
static inline bool mrf_inbox_has_places_locked(const struct mrf_inbox *inbox)
{
	return inbox->messages < inbox->messages_max;
}

/*
 * Of what the other senders leave of the memory for unexpected messages, may this one have more? A
 * quarter of that is its share, so that one who floods the endpoint does not stop the others.
 */
bool mrf_inbox_has_room_locked(const struct mrf_inbox *inbox, const struct mrf_origin *origin);
/* Frees a message, or posts its slot again. */
void mrf_inbox_free_message_locked(struct mrf_inbox *inbox, struct mrf_message *message);
/* An unexpected message is taken out. */
void mrf_inbox_take_kept_locked(struct mrf_inbox *inbox, struct mrf_message *message);
/* The message is kept: its bytes count. */
void mrf_inbox_keep_locked(struct mrf_inbox *inbox, const struct mrf_message *message);

/* The message is no longer kept: its bytes do not count. */
void mrf_inbox_unkeep_locked(struct mrf_inbox *inbox, const struct mrf_message *message);
/*
 * Sends a note, with what the line's initiator may count on. None may be on the way. False: it
 * cannot be sent.
 */
bool mrf_inbox_note_locked(struct mrf_inlet *inlet, uint64_t taken, uint32_t window);
/* The agent closes the line; its initiator may make another one. */
void mrf_inbox_close_line_locked(struct mrf_inlet *inlet);
/* Tells peers what has been taken of theirs, unless too much of it is unexpected. */
void mrf_inbox_tell_locked(struct mrf_inbox *inbox);
/*
 * Looks again at lines that are told nothing because too much of theirs is unexpected, if something
 * has been received meanwhile. Are there any left?
 */
bool mrf_inbox_has_full_locked(struct mrf_inbox *inbox);
/* This one has to be told, as soon as half of its window has been taken. */
void mrf_inbox_owe_locked(struct mrf_inlet *inlet);
/* Is the window of the inlet part of the sum from now on? */
void mrf_inbox_count_window_locked(struct mrf_inlet *inlet, bool counts);
/* The agent makes more slots if windows need them. */
void mrf_inbox_ask_for_slots_locked(struct mrf_inbox *inbox);
/* The slot is no longer needed. */
void mrf_inbox_give_slot_locked(struct mrf_inbox *inbox, struct mrf_slot *slot);

/* --- the agent, no lock held ---------------------------------------------------------- */

/*
 * Takes n places in its queue, which is there. Returns the device's errors; -FI_ENOSPC: there are too
 * many lines.
 */
int mrf_inbox_count_places(struct mrf_inbox *inbox, unsigned n);
void mrf_inbox_give_places(struct mrf_inbox *inbox, unsigned n);
/* The queue has room for another chunk of slots from now on. Returns the device's errors. */
int mrf_inbox_expect_slots(struct mrf_inbox *inbox);

#endif
