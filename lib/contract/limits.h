/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers that fi_getinfo promises, in one place: endpoints and regions have to keep
 * what discovery offers. Constants only.
 */
#ifndef MRF_CONTRACT_LIMITS_H
#define MRF_CONTRACT_LIMITS_H

#include <rdma/fabric.h>

#define MRF_PROV_NAME "mrfab"

/*
 * The libfabric release whose rules apply where the application's own version does not
 * matter.
 */
#define MRF_API_VERSION FI_VERSION(1, 17)
/*
 * The newest version that an application may ask for: its rules are implemented, while
 * structures and calls remain those of MRF_API_VERSION.
 */
#define MRF_API_RULES FI_VERSION(2, 3)

/* Endpoint. */
/* Bytes; operations longer than the device's own limit are split. */
#define MRF_LIMIT_MSG_SIZE ((size_t)1 << 30)
#define MRF_LIMIT_ORDER_SIZE MRF_LIMIT_MSG_SIZE
#define MRF_LIMIT_CTX_CNT 1 /* transmit and receive contexts of one endpoint */
#define MRF_PROTOCOL (FI_PROV_SPECIFIC | 0x6d7266)

/* Transmit and receive. */
#define MRF_LIMIT_INJECT 256		     /* bytes */
#define MRF_LIMIT_ATOMIC_SIZE ((size_t)4096) /* bytes of all elements of one operation */
#define MRF_LIMIT_TX_SIZE 2048 /* operations that an endpoint takes, if no more are asked for */
#define MRF_LIMIT_RX_SIZE 2048
#define MRF_LIMIT_SIZE 65536 /* the most that may be asked for */
/* All bits of a tag count; fi_getinfo(3) has them as one field each. */
#define MRF_LIMIT_TAG_FORMAT 0xaaaaaaaaaaaaaaaaull
#define MRF_LIMIT_IOV 128 /* local buffers; a few are held at a time (buf/local.h) */
#define MRF_LIMIT_RMA_IOV 8

/*
 * Domain. The counts are sensible for one process; they are not promised to the last one.
 */
#define MRF_LIMIT_KEY_SIZE 8
#define MRF_LIMIT_AUTH_KEY 256 /* bytes of an authorization key */
#define MRF_LIMIT_MR_IOV 16
#define MRF_LIMIT_MR_CNT 524287 /* rxe's limit; the kernel uses two of them itself */
#define MRF_LIMIT_CQ_DATA 4	/* bytes of immediate data */
#define MRF_LIMIT_ERR_DATA 256	/* bytes of text that explain a failed operation */
#define MRF_LIMIT_CQ_CNT 65536
#define MRF_LIMIT_EP_CNT 32768
#define MRF_LIMIT_CNTR_CNT 65536

/* Messages, and their directions, which ask for nothing without messages. */
#define MRF_CAPS_MSG_WHATS (FI_MSG | FI_TAGGED)
#define MRF_CAPS_MSG_WAYS (FI_SEND | FI_RECV)
/* Directions of reads, writes and atomic operations. */
#define MRF_CAPS_RMA_WAYS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MRF_CAPS_PRIMARY                                                                   \
	(MRF_CAPS_MSG_WHATS | FI_RMA | FI_ATOMIC | MRF_CAPS_MSG_WAYS | MRF_CAPS_RMA_WAYS | \
	 FI_MULTI_RECV)
#define MRF_CAPS_SECONDARY (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define MRF_CAPS (MRF_CAPS_PRIMARY | MRF_CAPS_SECONDARY)
/* Granted only to applications that name them, because they have a cost (FI_FENCE has none). */
#define MRF_CAPS_TARGET_EXTRA (FI_RMA_EVENT | FI_RMA_PMEM)
/* Who sent a message: the first changes what the address of a receive means. */
#define MRF_CAPS_RX_LABELS (FI_DIRECTED_RECV | FI_SOURCE | FI_SOURCE_ERR)
#define MRF_CAPS_EXTRA (MRF_CAPS_TARGET_EXTRA | FI_HMEM | MRF_CAPS_RX_LABELS | FI_FENCE)
#define MRF_CAPS_ALL (MRF_CAPS | MRF_CAPS_EXTRA)
#define MRF_CAPS_TX (MRF_CAPS_MSG_WHATS | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE)
#define MRF_CAPS_RX                                                                             \
	(MRF_CAPS_MSG_WHATS | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | \
	 FI_MULTI_RECV)
#define MRF_CAPS_TX_EXTRA (FI_HMEM | FI_FENCE)
#define MRF_CAPS_RX_EXTRA (FI_RMA_EVENT | FI_HMEM | MRF_CAPS_RX_LABELS)

#define MRF_OP_FLAGS_TX                                                          \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE)
#define MRF_OP_FLAGS_RX (FI_COMPLETION | FI_MULTI_RECV)

/*
 * One reliable connection per pair of endpoints keeps every order of accesses except
 * write-after-read, and another one keeps the order of messages.
 */
#define MRF_MSG_ORDER                                                                      \
	(FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_RMA_RAR |    \
	 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | \
	 FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
/*
 * Between the two, there is an order only if it is asked for, because operations then wait for those of
 * the other connection: for messages that were sent before, and for accesses.
 */
#define MRF_ORDER_AFTER_SENDS (FI_ORDER_RAS | FI_ORDER_WAS)
#define MRF_ORDER_OF_SENDS (FI_ORDER_SAR | FI_ORDER_SAW)
#define MRF_MSG_ORDER_EXTRA (MRF_ORDER_AFTER_SENDS | MRF_ORDER_OF_SENDS)
#define MRF_COMP_ORDER FI_ORDER_NONE

#endif
