/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp, ofi_rxm, sockets, rxd, shm and mrail were measured with libfabric 1.17; the others are in the source
 * of its release 2.1. Numbers that a device decides are those of common devices. The protocol of tcp is that of
 * its endpoints of type FI_EP_RDM; libfabric 1.17 has no names for those of ucx and lpp.
 */
#include "contract/promises.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "contract/limits.h"

#define NEAR_AND_FAR (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define MESSAGES (FI_MSG | MRF_CAPS_MSG_WAYS)
#define ACCESSES (FI_RMA | MRF_CAPS_RMA_WAYS)
/* Messages with tags, and receives that say from whom, or that hold several. */
#define MATCHING (FI_TAGGED | FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV)
#define EVERYTHING (MESSAGES | MATCHING | ACCESSES | FI_ATOMIC)

#define ORDER_RAR (FI_ORDER_RAR | FI_ORDER_RMA_RAR | FI_ORDER_ATOMIC_RAR)
#define ORDER_RAW (FI_ORDER_RAW | FI_ORDER_RMA_RAW | FI_ORDER_ATOMIC_RAW)
#define ORDER_WAW (FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_WAW)
#define ORDER_ATOMICS \
	(FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define ORDER_ACCESSES (ORDER_RAR | ORDER_RAW | ORDER_WAW)
#define ORDER_EVERY (MRF_MSG_ORDER | MRF_MSG_ORDER_EXTRA)
/* Of reliable connections: all but what overtakes a read. */
#define ORDER_CONNECTION \
	(ORDER_ACCESSES | FI_ORDER_SAS | FI_ORDER_RAS | FI_ORDER_WAS | FI_ORDER_SAW)

#define SIZES .msg_size = MRF_LIMIT_MSG_SIZE, .cq_data = MRF_LIMIT_CQ_DATA
#define IOV(tx, rx, rma) .tx_iov = (tx), .rx_iov = (rx), .rma_iov = (rma)

/* As enum mrf_atomic_family, whose layer is above this one. */
enum { BASE, FETCH, COMPARE };

/* Datatypes, as bits. */
#define TYPE(name) (1u << (name))
#define TO(last) (TYPE((last) + 1) - 1) /* from FI_INT8 on */
#define INTEGERS TO(FI_UINT64)
#define REALS TO(FI_DOUBLE)
#define COMPLEX TO(FI_DOUBLE_COMPLEX)
#define LONG_ONES (TYPE(FI_INT64) | TYPE(FI_UINT64) | TYPE(FI_DOUBLE) | TYPE(FI_FLOAT))

/* What the adapters have: one element of 8 bytes. */
static const struct mrf_promise_atomics of_verbs = {
	.elements = 1,
	.op_error = FI_ENOSYS,
	.type_error = FI_EINVAL,
	.types = { [BASE] = { [FI_ATOMIC_WRITE] = LONG_ONES },
		   [FETCH] = { [FI_ATOMIC_READ] = LONG_ONES, [FI_SUM] = LONG_ONES },
		   [COMPARE] = { [FI_CSWAP] = LONG_ONES } },
};

#define OF_CXI                                                                                 \
	[FI_MIN] = REALS, [FI_MAX] = REALS, [FI_SUM] = COMPLEX, [FI_LOR] = INTEGERS,           \
	[FI_LAND] = INTEGERS, [FI_LXOR] = INTEGERS, [FI_BOR] = INTEGERS, [FI_BAND] = INTEGERS, \
	[FI_BXOR] = INTEGERS, [FI_ATOMIC_WRITE] = COMPLEX

static const struct mrf_promise_atomics of_cxi = {
	.elements = 1,
	.op_error = FI_EOPNOTSUPP,
	.type_error = FI_EOPNOTSUPP,
	.types = { [BASE] = { OF_CXI },
		   [FETCH] = { OF_CXI, [FI_ATOMIC_READ] = COMPLEX },
		   [COMPARE] = { [FI_CSWAP] = COMPLEX,
				 [FI_CSWAP_NE] = COMPLEX,
				 [FI_CSWAP_LE] = REALS,
				 [FI_CSWAP_LT] = REALS,
				 [FI_CSWAP_GE] = REALS,
				 [FI_CSWAP_GT] = REALS,
				 [FI_MSWAP] = INTEGERS } },
};

/* Of elements that have at most 8 bytes. */
#define SHORT_ONES (TYPE(FI_FLOAT_COMPLEX) | REALS)
#define OF_RXM                                                                                    \
	[FI_MIN] = REALS, [FI_MAX] = REALS, [FI_SUM] = SHORT_ONES, [FI_PROD] = SHORT_ONES,        \
	[FI_LOR] = SHORT_ONES, [FI_LAND] = SHORT_ONES, [FI_BOR] = INTEGERS, [FI_BAND] = INTEGERS, \
	[FI_LXOR] = SHORT_ONES, [FI_BXOR] = INTEGERS, [FI_ATOMIC_WRITE] = SHORT_ONES

static const struct mrf_promise_atomics of_rxm = {
	.elements = SIZE_MAX,
	.op_error = FI_EOPNOTSUPP,
	.type_error = FI_EOPNOTSUPP,
	.types = { [BASE] = { OF_RXM },
		   [FETCH] = { OF_RXM, [FI_ATOMIC_READ] = SHORT_ONES },
		   [COMPARE] = { [FI_CSWAP] = SHORT_ONES,
				 [FI_CSWAP_NE] = SHORT_ONES,
				 [FI_CSWAP_LE] = REALS,
				 [FI_CSWAP_LT] = REALS,
				 [FI_CSWAP_GE] = REALS,
				 [FI_CSWAP_GT] = REALS,
				 [FI_MSWAP] = INTEGERS } },
};

const struct mrf_promise mrf_promise_verbs = {
	.protocol = FI_PROTO_RDMA_CM_IB_RC,
	.caps = MESSAGES | ACCESSES | FI_ATOMIC | FI_HMEM | NEAR_AND_FAR,
	.order = ORDER_CONNECTION,
	.order_size = MRF_LIMIT_ORDER_SIZE,
	.inject = MRF_LIMIT_INJECT,
	SIZES,
	IOV(4, 4, 1),
	.atomics = &of_verbs,
};

/* ofi_rxm sends atomic operations as messages, which keep to no order with reads and writes. */
#define RXM                                                                                      \
	.order = ORDER_CONNECTION, .order_size = MRF_LIMIT_ORDER_SIZE,                           \
	.order_atomic =                                                                          \
		ORDER_CONNECTION & ~(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW), \
	.atomics = &of_rxm

const struct mrf_promise mrf_promise_rxm = {
	.protocol = FI_PROTO_RXM,
	.caps = EVERYTHING | FI_HMEM | NEAR_AND_FAR,
	.inject = MRF_LIMIT_INJECT,
	RXM,
	SIZES,
	IOV(4, 4, 1),
};

const struct mrf_promise mrf_promise_tcp_rxm = {
	.protocol = FI_PROTO_RXM,
	.caps = EVERYTHING | NEAR_AND_FAR,
	.inject = 64,
	.inject_most = MRF_LIMIT_INJECT,
	RXM,
	SIZES,
	IOV(4, 4, 4),
};

/* Orders of accesses are those of atomic operations alone. */
const struct mrf_promise mrf_promise_efa = {
	.protocol = FI_PROTO_EFA,
	.caps = EVERYTHING | FI_HMEM | NEAR_AND_FAR,
	.order = FI_ORDER_SAS | ORDER_ATOMICS,
	.order_size = MRF_LIMIT_ATOMIC_SIZE,
	.inject = MRF_LIMIT_INJECT,
	SIZES,
	IOV(4, 4, 1),
};

const struct mrf_promise mrf_promise_efa_direct = {
	.protocol = FI_PROTO_EFA,
	.caps = MESSAGES | ACCESSES | FI_SOURCE | FI_HMEM | NEAR_AND_FAR,
	.inject = 32,
	SIZES,
	IOV(2, 2, 1),
};

const struct mrf_promise mrf_promise_cxi = {
	.protocol = FI_PROTO_CXI,
	.caps = EVERYTHING | FI_HMEM | FI_SOURCE_ERR | FI_RMA_EVENT | FI_FENCE | NEAR_AND_FAR,
	.order = FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAR |
		 FI_ORDER_ATOMIC_WAW | FI_ORDER_ATOMIC_RAR,
	.order_size = MRF_LIMIT_ORDER_SIZE,
	.inject = 192,
	SIZES,
	IOV(1, 1, 1),
	.atomics = &of_cxi,
};

const struct mrf_promise mrf_promise_ucx = {
	.caps = MESSAGES | FI_TAGGED | FI_MULTI_RECV | ACCESSES | FI_HMEM | NEAR_AND_FAR,
	.order = FI_ORDER_SAS,
	.msg_size = MRF_LIMIT_MSG_SIZE,
	.inject = MRF_LIMIT_INJECT,
	IOV(1, 4, 1),
};

/* Over rails of tcp. */
const struct mrf_promise mrf_promise_mrail = {
	.protocol = FI_PROTO_MRAIL,
	.caps = MESSAGES | MATCHING | ACCESSES | NEAR_AND_FAR,
	.order = ORDER_CONNECTION,
	.order_size = MRF_LIMIT_ORDER_SIZE,
	.inject = 48,
	SIZES,
	IOV(3, 3, 4),
};

const struct mrf_promise mrf_promise_tcp = {
	.protocol = FI_PROTO_XNET,
	.caps = MESSAGES | MATCHING | ACCESSES | FI_RMA_EVENT | FI_RMA_PMEM | NEAR_AND_FAR,
	.order = ORDER_CONNECTION,
	.order_size = MRF_LIMIT_ORDER_SIZE,
	.inject = 128,
	SIZES,
	IOV(4, 4, 4),
};

const struct mrf_promise mrf_promise_sockets = {
	.protocol = FI_PROTO_SOCK_TCP,
	.caps = EVERYTHING | FI_FENCE | FI_RMA_EVENT | FI_RMA_PMEM | NEAR_AND_FAR,
	.order = ORDER_EVERY,
	.order_size = MRF_LIMIT_ORDER_SIZE,
	.inject = 255,
	SIZES,
	IOV(8, 8, 8),
};

const struct mrf_promise mrf_promise_rxd = {
	.protocol = FI_PROTO_RXD,
	.caps = EVERYTHING | FI_RMA_EVENT | NEAR_AND_FAR,
	.order = ORDER_CONNECTION | FI_ORDER_ATOMIC_WAR,
	.order_size = MRF_LIMIT_ORDER_SIZE,
	.inject = MRF_LIMIT_INJECT,
	SIZES,
	IOV(4, 4, 4),
};

const struct mrf_promise mrf_promise_shm = {
	.protocol = FI_PROTO_SHM,
	.caps = EVERYTHING | FI_RMA_EVENT | FI_HMEM | FI_LOCAL_COMM,
	.order = ORDER_EVERY,
	.order_size = MRF_LIMIT_ORDER_SIZE,
	.inject = MRF_LIMIT_INJECT,
	SIZES,
	IOV(4, 4, 4),
};

/* It is not chosen by programs that ask for an order of accesses. */
const struct mrf_promise mrf_promise_shm_fast = {
	.protocol = FI_PROTO_SHM,
	.caps = EVERYTHING | FI_RMA_EVENT | FI_HMEM | FI_LOCAL_COMM,
	.order = FI_ORDER_SAS,
	.inject = MRF_LIMIT_INJECT,
	SIZES,
	IOV(4, 4, 4),
};

#define PSM_CAPS (EVERYTHING | FI_SOURCE_ERR | FI_RMA_EVENT | NEAR_AND_FAR)
#define PSM                                                                               \
	.order = FI_ORDER_SAS | ORDER_ACCESSES | FI_ORDER_ATOMIC_WAR, .order_size = 4096, \
	.inject = 64, SIZES, IOV(13, 1, 1)

const struct mrf_promise mrf_promise_psm2 = { .protocol = FI_PROTO_PSMX2, .caps = PSM_CAPS, PSM };
const struct mrf_promise mrf_promise_psm3 = { .protocol = FI_PROTO_PSMX3,
					      .caps = PSM_CAPS | FI_HMEM,
					      PSM };

/*
 * It names the orders of atomic operations, and does not look at what hints ask for. Open MPI, whose messages
 * run over it, asks for FI_ORDER_SAS; no more than that is granted here.
 */
const struct mrf_promise mrf_promise_opx = {
	.protocol = FI_PROTO_OPX,
	.caps = EVERYTHING | FI_HMEM | NEAR_AND_FAR,
	.order = FI_ORDER_SAS | ORDER_ATOMICS,
	.order_size = MRF_LIMIT_ORDER_SIZE,
	.inject = 16,
	SIZES,
	IOV(1, 1, 1),
};

const struct mrf_promise mrf_promise_lpp = {
	.caps = EVERYTHING | NEAR_AND_FAR,
	.order = FI_ORDER_SAS | ORDER_ACCESSES | FI_ORDER_ATOMIC_WAR,
	.inject = 64,
	SIZES,
	IOV(3, 1, 1),
};

/* Datagrams of one packet, to other hosts. */
const struct mrf_promise mrf_promise_usnic = {
	.protocol = FI_PROTO_UDP,
	.caps = MESSAGES | FI_SOURCE | FI_REMOTE_COMM,
	.msg_size = 1472,
	.inject = MRF_LIMIT_INJECT,
	IOV(4, 4, 0),
};
