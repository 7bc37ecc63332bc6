/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues and connections (an rdma_cm id with its RC queue pair), in neutral
 * terms. A connection belongs to whoever created or was handed it; its calls are serialised by
 * that owner. Polling a vcq is serialised by its owner as well.
 */
#ifndef MRF_VERBS_VQP_H
#define MRF_VERBS_VQP_H

#include <stdbool.h>
#include <stdint.h>
#include "verbs/verbs.h"

/* --- vcq: kernel completion queues -------------------------------------------------- */

enum mrf_wc_status {
	MRF_WC_OK,
	MRF_WC_FLUSHED, /* never ran, the queue pair was in error before it */
	MRF_WC_REFUSED, /* the target's kernel said no: key, bounds or right */
	MRF_WC_LOCAL,	/* the local buffer's registration did not fit */
	MRF_WC_UNSENT,	/* the device could not send: no route, a link that is down; or LOCAL */
	MRF_WC_TIMEOUT, /* no answer after all retries: may or may not have run */
	MRF_WC_DENIED,	/* of no completion: a post ended in -FI_EACCES */
	MRF_WC_OTHER
};

enum mrf_wc_kind { MRF_WC_SENT, MRF_WC_RECV, MRF_WC_RECV_IMM };

struct mrf_wc {
	uint64_t wr_id;
	enum mrf_wc_status status;
	enum mrf_wc_kind kind; /* valid with status OK only */
	int raw_status;	       /* enum ibv_wc_status, for messages */
	uint32_t byte_len;     /* of a RECV or RECV_IMM */
	uint32_t imm;	       /* host order */
};

struct mrf_vcq;

/* depth: completions that may be outstanding; the queue is never overcommitted. */
int mrf_vcq_open(struct mrf_vdev *dev, size_t depth, struct mrf_vcq **cq);
void mrf_vcq_close(struct mrf_vcq *cq);
/* Number of completions written to wc, at most n; -FI_EIO when the queue is broken. */
int mrf_vcq_poll(struct mrf_vcq *cq, struct mrf_wc *wc, int n);
/* The next completion makes fd readable; those already there do not. */
void mrf_vcq_arm(struct mrf_vcq *cq);
/* Takes the events off fd after it was readable, so that it can be armed anew. */
void mrf_vcq_ack(struct mrf_vcq *cq);
/* Only one: for whoever is told again if there is another. */
void mrf_vcq_ack_one(struct mrf_vcq *cq);
int mrf_vcq_fd(const struct mrf_vcq *cq);
/* Name of a raw_status for messages. */
const char *mrf_wc_status_text(int raw_status);

/* --- vconn: a connection -------------------------------------------------------------- */

#define MRF_CM_DATA 196 /* private data that can come with an event, bytes */

enum mrf_cm_type {
	MRF_CM_ADDR_RESOLVED,
	MRF_CM_UNRESOLVED,  /* not in time: mrf_vconn_resolve may be called again */
	MRF_CM_ROUTE_RESOLVED,
	MRF_CM_REQUEST,	    /* conn is the listener, incoming the new connection */
	MRF_CM_RESPONSE,    /* the target accepts: mrf_vconn_establish, or mrf_vconn_close */
	MRF_CM_ESTABLISHED, /* the initiator has */
	MRF_CM_REJECTED,
	MRF_CM_FAILED,	    /* no address, no route, unreachable: err tells */
	MRF_CM_DISCONNECTED,
	MRF_CM_REMOVED,	    /* the device goes away */
	MRF_CM_OTHER
};

struct mrf_vconn;
struct mrf_vcm; /* channel on which the events of its connections come in */

struct mrf_cm_event {
	enum mrf_cm_type type;
	struct mrf_vconn *conn;
	struct mrf_vconn *incoming; /* type REQUEST: owned by the receiver of the event */
	int err;		    /* positive FI_E*: type FAILED */
	int status;		    /* as rdma_cm gave it, for messages */
	uint32_t qpn;		    /* types REQUEST, RESPONSE: the remote queue pair */
	size_t len;		    /* of data; rdma_cm pads it with zeros */
	uint8_t data[MRF_CM_DATA];
};

int mrf_vcm_open(struct mrf_vcm **cm);
void mrf_vcm_close(struct mrf_vcm *cm);
int mrf_vcm_fd(const struct mrf_vcm *cm);
/*
 * Takes and acknowledges one event. -FI_EAGAIN when there is none. -FI_EACCES, as from all
 * that talks to rdma_cm: the process has changed its credentials.
 */
int mrf_vcm_next(struct mrf_vcm *cm, struct mrf_cm_event *event);
/*
 * After a change of credentials, when every call ends in -FI_EACCES: lets go of what the
 * kernel has. It ends all connections and listeners of cm and tells their peers, as it does
 * when a process dies. Nothing but closing is to be done with cm and its connections then.
 */
void mrf_vcm_abandon(struct mrf_vcm *cm);

int mrf_vconn_open(struct mrf_vcm *cm, void *owner, struct mrf_vconn **conn);
/* Destroys the queue pair, if any, and the id. No event of it comes after this. */
void mrf_vconn_close(struct mrf_vconn *conn);
void *mrf_vconn_owner(const struct mrf_vconn *conn);
void mrf_vconn_set_owner(struct mrf_vconn *conn, void *owner);

/* Binds only, so that the port is known before anybody listens; addr gets the port. */
int mrf_vconn_bind(struct mrf_vconn *conn, struct sockaddr *addr);
int mrf_vconn_listen(struct mrf_vconn *conn);

/*
 * ack_timeout: exponent n of 4.096 us * 2^n. Each step reports by event. While an address is
 * being resolved the kernel may miss that it was found; when timeout_ms is over it looks again.
 */
int mrf_vconn_resolve(struct mrf_vconn *conn, const struct sockaddr *src,
		      const struct sockaddr *dst, int timeout_ms, unsigned ack_timeout);
int mrf_vconn_route(struct mrf_vconn *conn, int timeout_ms);

struct mrf_vqp_attr {
	struct mrf_vpd *pd;
	struct mrf_vcq *send_cq;
	struct mrf_vcq *recv_cq;
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t send_sge;
	uint32_t max_inline; /* bytes */
};

/*
 * After ADDR_RESOLVED, or on an incoming connection. Only the queue pair of an incoming
 * one lets the peer access memory.
 */
int mrf_vconn_create_qp(struct mrf_vconn *conn, const struct mrf_vqp_attr *attr);
/* retry: 1..6 resends without an answer, then MRF_WC_TIMEOUT (rxe takes 7 as for ever). */
int mrf_vconn_connect(struct mrf_vconn *conn, const void *data, size_t len, unsigned retry);
int mrf_vconn_accept(struct mrf_vconn *conn, const void *data, size_t len);
/*
 * After RESPONSE: only from now on anything goes either way. -FI_ECONNRESET: the target has
 * gone since.
 */
int mrf_vconn_establish(struct mrf_vconn *conn);
void mrf_vconn_reject(struct mrf_vconn *conn, const void *data, size_t len);
/* After mrf_vconn_accept: see rxe's 655 ms otherwise. */
int mrf_vconn_tune(struct mrf_vconn *conn);
/* Tells the peer and puts the queue pair into error: all that is posted is flushed. */
void mrf_vconn_disconnect(struct mrf_vconn *conn);
/* The number of its queue pair. */
uint32_t mrf_vconn_qpn(const struct mrf_vconn *conn);
/* The remote end's address. */
void mrf_vconn_peer_addr(const struct mrf_vconn *conn, struct sockaddr_storage *addr);

struct mrf_sge { /* layout of ibv_sge */
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

enum mrf_vwr_op {
	MRF_VWR_READ,
	MRF_VWR_WRITE,
	MRF_VWR_WRITE_IMM,
	MRF_VWR_SEND,
	MRF_VWR_FETCH_ADD, /* on 8 bytes at an address divisible by 8, here: mrf_vconn_atomic */
	MRF_VWR_CMP_SWP
};

struct mrf_vwr {
	uint64_t wr_id;
	enum mrf_vwr_op op;
	bool is_inline;
	bool fence; /* wait for earlier reads */
	int nsge;
	struct mrf_sge *sge;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t imm;	  /* host order */
	uint64_t operand; /* FETCH_ADD: added; CMP_SWP: stored if compare is there */
	uint64_t compare;
};

/*
 * Always signalled. -FI_EAGAIN when the queue is full. -FI_EACCES after a change of
 * credentials: the kernel does not start it, but it lies in the queue, may run with what is
 * ahead of it, and has its completion as every other.
 */
int mrf_vconn_post(struct mrf_vconn *conn, const struct mrf_vwr *wr);
/* The same for FETCH_ADD and CMP_SWP: what was there comes into the one piece, of 8 bytes. */
int mrf_vconn_atomic(struct mrf_vconn *conn, const struct mrf_vwr *wr);
/*
 * The same for one piece and nothing special, in as few instructions as may be. is_inline: of a
 * write; sge is an address in this process and is read before the call returns.
 */
int mrf_vconn_access(struct mrf_vconn *conn, uint64_t wr_id, enum mrf_vwr_op op,
		     bool is_inline, struct mrf_sge *sge, uint64_t remote_addr,
		     uint32_t rkey);
/* The same, a write with immediate data. */
int mrf_vconn_write_imm(struct mrf_vconn *conn, uint64_t wr_id, bool is_inline,
			struct mrf_sge *sge, uint64_t remote_addr, uint32_t rkey,
			uint32_t imm);
/* FETCH_ADD; what was there comes into the piece, of 8 bytes. */
int mrf_vconn_fetch_add(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge,
			uint64_t remote_addr, uint32_t rkey, uint64_t add);
int mrf_vconn_post_recv(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge);

#endif
