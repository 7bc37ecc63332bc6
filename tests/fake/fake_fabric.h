/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An RDMA fabric inside the test program: everything that lib/verbs offers to the rest of
 * the library, linked instead of it. Endpoints of one process talk to each other through
 * it, with real threads and real file descriptors. It keeps rxe's rules: keys, bounds (as
 * iova), rights and protection domains are checked, an access of no bytes is not; a
 * refusal breaks the queue pairs of both ends; what waits on a broken one is flushed, but
 * not shared receives (verbs/vsrq.h); sends and immediate data wait for a RECV; private data
 * comes padded with zeros. What is sent over a pair (verbs/vpair.h) whose other end is broken or gone
 * times out at once.
 * Whatever can run does so within the call that posts it, unless it is held.
 *
 * It counts what is alive, remembers the accesses that were carried out, and fails on
 * order. All of it is guarded by one lock inside; the struct below is read and set by
 * tests while nothing moves, but for what says otherwise.
 */
#ifndef FAKE_FABRIC_H
#define FAKE_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "verbs/vloop.h"
#include "verbs/vpair.h"
#include "verbs/vqp.h"
#include "verbs/vsrq.h"

#define FAKE_DEVICE "rxe0"

enum fake_call {
	FAKE_VDEV_OPEN,
	FAKE_VPD_ALLOC,
	FAKE_VMR_REG,
	FAKE_VMR_DEREG,
	FAKE_VCQ_OPEN,
	FAKE_VCQ_GROW,
	FAKE_VCM_OPEN,
	FAKE_VCONN_OPEN,
	FAKE_BIND,
	FAKE_LISTEN,
	FAKE_RESOLVE,
	FAKE_ROUTE,
	FAKE_VSRQ_OPEN,
	FAKE_VSRQ_POST,
	FAKE_CREATE_QP,
	FAKE_CONNECT,
	FAKE_ACCEPT,
	FAKE_ESTABLISH,
	FAKE_TUNE,
	FAKE_POST,
	FAKE_POST_RECV,
	FAKE_VLOOP_OPEN,
	FAKE_VLOOP_RUN,
	FAKE_VPAIR_OPEN,
	FAKE_VPAIR_CONNECT,
	FAKE_VPAIR_SEND,
	FAKE_VPAIR_RECV,
	FAKE_CALLS
};

/* What becomes of a message; see fake.on_send. */
enum fake_fate { FAKE_DELIVER, FAKE_DROP, FAKE_TWICE, FAKE_KEEP, FAKE_REFUSE };

/* One access or message that was carried out. */
struct fake_done {
	enum mrf_vwr_op op;
	uint64_t addr; /* at the target, in its process */
	size_t len;
	uint32_t imm;
	uint8_t first; /* byte of it; 0 when there is none */
};

#define FAKE_LOG 8192
#define FAKE_MTU 4096u

struct fake_fabric {
	/* How it behaves. */
	size_t max_msg_size;	  /* 8 MiB */
	bool packets;		  /* a queue pair tells how far it came */
	int overtaken;		  /* it came so many packets further than it seems */
	bool flush_local;	  /* as 6.12: a bad local buffer completes as a flush, and so does
			     everything that was in flight with it, done or not */
	bool loses_recvs;	  /* as 6.12: a shared receive that was begun never completes */
	bool loses_confirmations; /* targets do not hear that their connections are used */
	/*
	 * Looks at every SEND of a connection, from whichever side, may change it (in place, *len <= 512)
	 * and decides its fate. from_target: sent by the side that accepted. Runs under
	 * the lock: it must call nothing of the fabric. May be NULL.
	 */
	enum fake_fate (*on_send)(uint8_t *msg, size_t *len, bool from_target);
	/* Meanwhile: the immediate value, which it may change, too; NULL: it has none. */
	uint32_t *imm;
	/* Sees all private data, as it was given; the rest as on_send. */
	void (*on_private)(const uint8_t *data, size_t len);
	/* What a target says while it accepts, which may be changed; likewise. */
	void (*on_accept)(uint8_t *data, size_t len);
	/*
	 * Called when a completion queue is polled: while it says so, what has completed there
	 * does not show. As on_send otherwise.
	 */
	bool (*is_late)(const struct mrf_vcq *cq);
	/* Whether these bytes are there to be pinned; NULL: all are. Any thread. */
	bool (*is_there)(const void *addr, size_t len);
	/* Called before a registration ends, without the lock. May be NULL. */
	void (*on_dereg)(void);

	/*
	 * Called before a work request of a loop is carried out: op, and what is at the
	 * remote end, or NULL where that is out of reach. As on_send otherwise.
	 */
	void (*on_loop)(enum mrf_vwr_op op, void *remote);
	/* The same for atomic operations of peers. */
	void (*on_atomic)(enum mrf_vwr_op op, void *remote);

	/* What it saw. */
	struct fake_done log[FAKE_LOG]; /* the first ones since the last reset */
	size_t nlog;
	unsigned overflows;   /* completions that found their queue full */
	unsigned connects;    /* connections made */
	unsigned denied;      /* posts that ended in EACCES */
	unsigned loops;	      /* work requests of loops carried out */
	unsigned retries;     /* work requests that were sent again */
	bool retries_unknown; /* ... and nobody tells (to be set) */
	unsigned asks;	      /* SENDs of connections carried out that did not come from a target */
	unsigned stops;	      /* queue pairs of targets that were asked how far they came */
};

extern struct fake_fabric fake;

/* Forgets orders and records; nothing may be alive. */
void fake_reset(void);
/* Things alive of any kind. */
unsigned fake_live(void);
/* ... of one kind, named by the call that makes it. */
unsigned fake_live_of(enum fake_call call);
/* Copies of these records; any time. */
size_t fake_nlog(void);
unsigned fake_connects(void);
unsigned fake_asks(void);
unsigned fake_stops(void);

/* The nth such call from now on (1: the next) returns -err; every: and all after it. */
void fake_fail(enum fake_call call, unsigned nth, int err);
void fake_fail_always(enum fake_call call, int err);
/* The nth call of any kind fails. 0: take it back. Says whether the last order was met.
 */
void fake_fail_any(unsigned nth, int err);
/* Takes back fake_fail_any: has it been met? Afterwards it will not be. */
bool fake_fail_none(void);
bool fake_failed(void);
void fake_heal(void);
/* Copies bytes that the fake may be writing or reading, which it does not meanwhile. */
void fake_copy(void *to, const void *from, size_t len);
/* How often it was called since the last reset, failures included; and what it is called.
 */
unsigned fake_calls(enum fake_call call);
const char *fake_call_name(enum fake_call call);
/*
 * Registrations that the device did not let go of when it was told to, and nobody told it
 * again until it was closed, which ends them.
 */
unsigned fake_forgotten(void);

/*
 * The nth access from now on (messages and probes do not count) completes with status, and so
 * do those after it until there were times of them; ran: the target's memory sees it all the
 * same. The queue pair is broken then; after REFUSED both are.
 */
void fake_break(unsigned nth, unsigned times, enum mrf_wc_status status, bool ran);
/* The same for what an initiator sends over a line (ep/model/line.h), probes too. */
void fake_break_frame(unsigned nth, unsigned times, enum mrf_wc_status status, bool ran);
/* The same for SENDs of pairs (verbs/vpair.h), as soon as there is a receive for them. */
void fake_break_pair(unsigned nth, unsigned times, enum mrf_wc_status status, bool ran);
/*
 * The nth SEND of a connection from now on that is not inline breaks off behind its first packet, because its local
 * buffer is gone: it
 * completes with LOCAL, and its queue pair is broken. The receive that it has begun to fill comes
 * back FLUSHED when the queue pair at the other end is put into error; but see loses_recvs. (A SEND
 * whose buffer is not registered when it is carried out ends in the same way without beginning a
 * receive.)
 */
void fake_break_send(unsigned nth);
/*
 * Writes of no bytes, with which an initiator looks whether the peer is there, whenever an answer
 * takes a second: not logged. How many there were; the next one completes with status.
 */
unsigned fake_probes(void);
void fake_break_probe(enum mrf_wc_status status);
/* The next nth address resolution ends in MRF_CM_FAILED with err. */
void fake_unreachable(unsigned nth, int err);
/* So many connection requests from now on get lost. */
void fake_lose_requests(unsigned times);
/* So many address resolutions from now on end in MRF_CM_UNRESOLVED; UINT_MAX: they never end. */
void fake_unresolved(unsigned times);

/* Nothing lands anywhere between true and false: for a look at memory that it might move. */
void fake_freeze(bool freeze);
/* Posted work requests stay in their queues until released. Messages go on. */
void fake_hold(bool hold);
/* The same for messages, too: no question is asked and answered meanwhile. */
void fake_hold_all(bool hold);
/* What initiators send over lines stays; what comes back goes on. */
void fake_hold_frames(bool hold);
/* What is sent over pairs stays. */
void fake_hold_pairs(bool hold);
/* The next arming of a completion queue carries out one of those held for it, just after.
 */
void fake_run_on_arm(void);
/* The next disconnecting is too late for what its peer has in a queue: it is carried out.
 */
void fake_run_on_disconnect(void);
/*
 * What is held is carried out now, messages behind it too, but none of the acknowledgements
 * comes: the device sends it all again when it is released, and the target, which has done it,
 * only acknowledges; unless the local buffer is gone by then, or of a read the remote region.
 */
void fake_run_unacknowledged(void);
/* How many are in queues of connected queue pairs; any time. */
unsigned fake_queued(void);
/* Shared receives that are posted, in all queues; any time. */
unsigned fake_shared_recvs(void);
/* Messages whose fate was FAKE_KEEP arrive now, each as soon as there is a receive for it. */
void fake_deliver(void);

/* What a SIGKILL of the process that owns cm does: its peers are told, nothing answers.
 */
void fake_kill(struct mrf_vcm *cm);
/*
 * What a change of credentials of the process that owns cm does: the kernel refuses it all
 * that it is asked for, but what was posted before goes on. A single post that fails with
 * EACCES is one of a thread that changed its own.
 */
void fake_deny(struct mrf_vcm *cm);
/* How often its events were asked for; any time. */
unsigned fake_cm_asked(const struct mrf_vcm *cm);
/* How many completions the queue can hold. */
size_t fake_depth(const struct mrf_vcq *cq);
/* SIGSTOP and SIGCONT of the thread that polls these (or one): the kernel's part goes on.
 */
void fake_stop(struct mrf_vcm *cm, struct mrf_vcq *cq, bool stop);
/* It seems full, however often it is polled, of completions of nobody: its memory was spoilt. */
void fake_spoil(struct mrf_vcq *cq, bool spoilt);
/* The device that this completion queue is of tells something. text need not be given. */
void fake_tell(struct mrf_vcq *cq, struct mrf_vdev_event event);
/* Has it told something that its agent has not taken yet? */
bool fake_tells(const struct mrf_vcq *cq);
/* It tells that the queue pair that was accepted last is in error, if there is one. */
void fake_hang_up(struct mrf_vcq *cq);
/* The device is removed under the process that owns cm: each of its ids is told. */
void fake_remove(struct mrf_vcm *cm);
/* Nobody is woken by completions meanwhile; who polls finds them. */
void fake_deafen(struct mrf_vcq *cq, bool deaf);

#endif
