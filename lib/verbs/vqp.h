/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pair of a connection (verbs/vcm.h): creating it, bringing it up, posting to
 * it. The connection's owner serialises the calls.
 */
#ifndef MRF_VERBS_VQP_H
#define MRF_VERBS_VQP_H

#include <stdbool.h>
#include <stdint.h>
#include "verbs/vcm.h"
#include "verbs/vcq.h"
#include "verbs/verbs.h"

struct mrf_vsrq;

struct mrf_vqp_attr {
	struct mrf_vpd *pd;
	struct mrf_vcq *send_cq;
	struct mrf_vcq *recv_cq;
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t send_sge;
	uint32_t max_inline; /* bytes */
	/* Its receives come from here; recv_depth does not count then. NULL: it has its own. */
	struct mrf_vsrq *srq;
	/* The peer may only SEND: whatever else it tries breaks both ends, even without a byte. */
	bool sends_only;
};

/*
 * Called after ADDR_RESOLVED, or on an incoming connection. Only the queue pair of an
 * incoming connection lets the peer access memory, and not even that with sends_only.
 */
int mrf_vconn_create_qp(struct mrf_vconn *conn, const struct mrf_vqp_attr *attr);
/*
 * Undoes mrf_vconn_create_qp before the connection is accepted or requested; another queue
 * pair may be created then. mrf_vconn_close includes it.
 */
void mrf_vconn_destroy_qp(struct mrf_vconn *conn);
/*
 * Called after RESPONSE; no data can flow in either direction before. -FI_ECONNRESET: the
 * target has gone meanwhile.
 */
int mrf_vconn_establish(struct mrf_vconn *conn);
/*
 * Called after mrf_vconn_accept: sets the RNR timer, which would otherwise be 655 ms. Not needed
 * with sends_only.
 */
int mrf_vconn_tune(struct mrf_vconn *conn);
/*
 * What the packets of an initiator's queue pair, to which nothing has been posted yet, begin
 * with (PSN, of 24 bits), and how many bytes fit into one.
 */
int mrf_vconn_psn(const struct mrf_vconn *conn, uint32_t *psn, uint32_t *mtu);
/*
 * How far a target's queue pair came, after mrf_vconn_disconnect, when one of its receives has come back
 * FLUSHED: from then on nothing lands over it any more. *psn: the first packet that it has not carried
 * out.
 */
int mrf_vconn_stopped(const struct mrf_vconn *conn, uint32_t *psn);
/* The number of its queue pair. */
uint32_t mrf_vconn_qpn(const struct mrf_vconn *conn);
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
	MRF_VWR_SEND_IMM,
	/* 8 bytes at an address divisible by 8; the old value is written to the only piece */
	MRF_VWR_FETCH_ADD,
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
	uint32_t imm;	  /* of WRITE_IMM and SEND_IMM; host order */
	uint64_t operand; /* FETCH_ADD: added; CMP_SWP: stored on a match */
	uint64_t compare;
};

/*
 * Posts a work request, which is always signalled. -FI_EAGAIN: the queue is full.
 * -FI_EACCES, after a change of credentials: the kernel does not start the request, but
 * it stays in the queue, may run together with those ahead of it, and completes like any
 * other.
 */
int mrf_vconn_post(struct mrf_vconn *conn, const struct mrf_vwr *wr);
/*
 * As mrf_vconn_post, in as few instructions as possible, for a read or write of one
 * piece. is_inline: only for a write; sge is then an address in this process, read before
 * the call returns. imm: for WRITE_IMM only.
 */
int mrf_vconn_access(struct mrf_vconn *conn, uint64_t wr_id, enum mrf_vwr_op op, bool is_inline,
		     struct mrf_sge *sge, uint64_t remote_addr, uint32_t rkey, uint32_t imm);
/* As mrf_vconn_access, for FETCH_ADD. */
int mrf_vconn_fetch_add(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge,
			uint64_t remote_addr, uint32_t rkey, uint64_t add);
/* As mrf_vconn_post, in as few instructions as possible, for a SEND or, with imm, a SEND_IMM. */
int mrf_vconn_send(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
		   bool is_inline);
int mrf_vconn_send_imm(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
		       bool is_inline, uint32_t imm);
int mrf_vconn_post_recv(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge);

/* --- for lib/verbs only: of any queue pair ------------------------------------------ */

struct ibv_qp;
struct ibv_qp_attr;

/* Destroys a queue pair; if the kernel keeps it, logs that and forgets it. */
void mrf_qp_destroy(struct ibv_qp *qp);
/*
 * What the connection manager says for attr->qp_state of a queue pair of the connection: with all
 * rights, which are the caller's to take away. -FI_ECONNRESET: the connection is gone.
 */
int mrf_qp_attr(struct mrf_vconn *conn, struct ibv_qp_attr *attr, int *mask);
/* From INIT to where it receives and sends, by what the connection manager says. */
int mrf_qp_get_ready(struct mrf_vconn *conn);
/* The work of mrf_vconn_post. */
int mrf_qp_post(struct ibv_qp *qp, const struct mrf_vwr *wr);
/* That of mrf_vconn_post_recv, for several pieces. */
int mrf_qp_post_recv(struct ibv_qp *qp, uint64_t wr_id, struct mrf_sge *sge, int nsge);

#endif
