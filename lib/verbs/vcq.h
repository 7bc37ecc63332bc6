/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues of the kernel. The owner of a queue ensures that one thread at a time
 * polls it.
 */
#ifndef MRF_VERBS_VCQ_H
#define MRF_VERBS_VCQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrf_vdev;

enum mrf_wc_status {
	MRF_WC_OK,
	MRF_WC_FLUSHED, /* never ran: the queue pair was in error before */
	MRF_WC_REFUSED, /* refused by the target's kernel: key, bounds or right */
	MRF_WC_LOCAL,	/* the local buffer's registration did not fit */
	MRF_WC_UNSENT,	/* the device could not send: no route, link down; or LOCAL */
	MRF_WC_TIMEOUT, /* no answer after all retries: may or may not have run */
	MRF_WC_DENIED,	/* not from a completion: a post ended in -FI_EACCES */
	MRF_WC_OTHER
};

enum mrf_wc_kind {
	MRF_WC_SENT,
	MRF_WC_RECV,	      /* a SEND has come, */
	MRF_WC_RECV_SEND_IMM, /* one with an immediate value, */
	MRF_WC_RECV_IMM	      /* or a write with one */
};

struct mrf_wc {
	uint64_t wr_id;
	enum mrf_wc_status status;
	enum mrf_wc_kind kind; /* valid with status OK only */
	int raw_status;	       /* enum ibv_wc_status, for messages */
	uint32_t byte_len;     /* of what has come */
	uint32_t imm;	       /* host order */
	uint32_t qpn;	       /* of its queue pair; set by mrf_vcq_poll_from only */
};

struct mrf_vcq;

/* depth: the most completions that may be outstanding; the owner never exceeds it. */
int mrf_vcq_open(struct mrf_vdev *dev, size_t depth, struct mrf_vcq **cq);
/*
 * As mrf_vcq_open, on the device of another queue: the new one shares the descriptor of
 * first, which is closed last. Each of them is armed for itself, and mrf_vcq_ack takes the events
 * of all: whoever sleeps on the descriptor calls it once, arms each, and then looks into each.
 * first may be polled and armed by another thread meanwhile.
 */
int mrf_vcq_open_beside(struct mrf_vcq *first, size_t depth, struct mrf_vcq **cq);
void mrf_vcq_close(struct mrf_vcq *cq);
/*
 * Makes it longer; what has completed stays, in order. Another thread may poll and arm it meanwhile,
 * and waits. Returns the device's errors: the queue is as it was.
 */
int mrf_vcq_grow(struct mrf_vcq *cq, size_t depth);
/*
 * Returns the number of completions written to wc, at most n; -FI_EIO: the queue is
 * broken.
 */
int mrf_vcq_poll(struct mrf_vcq *cq, struct mrf_wc *wc, int n);
/*
 * As mrf_vcq_poll, for a queue on which the receives of shared queues complete: also says of
 * which queue pair each completion is, whatever its status. That queue pair may be gone already.
 */
int mrf_vcq_poll_from(struct mrf_vcq *cq, struct mrf_wc *wc, int n);
/*
 * Arms the queue: the next completion makes fd readable; completions already there do
 * not.
 */
void mrf_vcq_arm(struct mrf_vcq *cq);
/*
 * Takes the events off fd and arms the queue, unless it is armed still and nothing was taken out of
 * it since, which costs no system call. fired: fd is readable, so that both have to be done. The
 * caller serialises this with polling.
 */
void mrf_vcq_rearm(struct mrf_vcq *cq, bool fired);
/* Takes the events off fd after it was readable, so that the queue can be armed again. */
void mrf_vcq_ack(struct mrf_vcq *cq);
/*
 * Takes one event only, for a caller that is notified again if there is another. Returns
 * the queue that has to be armed again, cq or one opened beside it; NULL: no event.
 */
struct mrf_vcq *mrf_vcq_ack_one(struct mrf_vcq *cq);
int mrf_vcq_fd(const struct mrf_vcq *cq);
/* Name of a raw_status for messages. */
const char *mrf_wc_status_text(int raw_status);

#endif
