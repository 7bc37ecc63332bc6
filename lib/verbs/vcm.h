/* SPDX-License-Identifier: BSD-2-Clause */
/* Bodies of struct mrf_vconn and struct mrf_vcq, for vcm.c, vqp.c and vcq.c only. */
#ifndef MRF_VERBS_VCM_H
#define MRF_VERBS_VCM_H

#include <rdma/rdma_cma.h>
#include "verbs/vqp.h"

struct mrf_vconn {
	struct rdma_cm_id *id; /* its context points back here */
	struct ibv_qp *qp;     /* id->qp of one that was adopted; else ours alone */
	void *owner;
	bool incoming;
};

struct mrf_vcq {
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel; /* does not block */
	bool deaf; /* it could not be armed the last time; guarded as arming is */
};

/* For ever: what the kernel keeps of it is said, and forgotten. */
void mrf_qp_destroy(struct ibv_qp *qp);
/* mrf_vconn_post and mrf_vconn_atomic, of any queue pair. */
int mrf_qp_post(struct ibv_qp *qp, const struct mrf_vwr *wr);
int mrf_qp_atomic(struct ibv_qp *qp, const struct mrf_vwr *wr);

#endif
