/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kinds of operations, and what follows from the kind alone. Each function is a switch without
 * a default, so that the compiler names what a new kind has to decide. What differs within a kind
 * is in struct mrf_op_type (op.h); what becomes of a kind when its connection breaks, in fate.c.
 */
#ifndef MRF_EP_MODEL_KIND_H
#define MRF_EP_MODEL_KIND_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include "base/compiler.h"

enum mrf_op_kind {
	MRF_OP_READ,
	MRF_OP_WRITE,
	MRF_OP_RPC,    /* the peer's agent does it: tx/rpc.h */
	MRF_OP_ATOMIC, /* the device or the peer's agent: atomic.h */
	MRF_OP_SEND    /* a message of fi_msg(3), to whatever the peer has posted: tx/send_op.h */
};

/*
 * The right that the peer's region has to grant: FI_REMOTE_READ or FI_REMOTE_WRITE. Nobody asks about
 * messages, which need none.
 */
static MRF_ALWAYS_INLINE uint64_t mrf_kind_remote(enum mrf_op_kind kind)
{
	switch (kind) {
	case MRF_OP_READ:
		return FI_REMOTE_READ;
	case MRF_OP_WRITE:
	case MRF_OP_RPC:
	case MRF_OP_ATOMIC:
	case MRF_OP_SEND:
		break;
	}
	return FI_REMOTE_WRITE;
}

/*
 * FI_READ, FI_WRITE or FI_SEND: the capability and the counter of a transfer, and the right that the
 * region of its local buffer has to have. The family of an atomic operation decides that (atomic.h).
 */
static MRF_ALWAYS_INLINE uint64_t mrf_kind_flag(enum mrf_op_kind kind)
{
	switch (kind) {
	case MRF_OP_READ:
		return FI_READ;
	case MRF_OP_WRITE:
		return FI_WRITE;
	case MRF_OP_SEND:
		return FI_SEND;
	case MRF_OP_RPC:
	case MRF_OP_ATOMIC:
		break;
	}
	return 0;
}

/*
 * Does it change the peer's memory, so that it must not be done twice? A message must not, either, but
 * the peer counts messages, and so takes none twice.
 */
static inline bool mrf_kind_changes(enum mrf_op_kind kind)
{
	switch (kind) {
	case MRF_OP_WRITE:
	case MRF_OP_ATOMIC:
		return true;
	case MRF_OP_READ:
	case MRF_OP_RPC:
	case MRF_OP_SEND:
		break;
	}
	return false;
}

/* Do the device's transfers bring its bytes to the local buffer, which may be closed by then? */
static inline bool mrf_kind_arrives(enum mrf_op_kind kind)
{
	switch (kind) {
	case MRF_OP_READ:
		return true;
	case MRF_OP_WRITE:
	case MRF_OP_RPC:
	case MRF_OP_ATOMIC:
	case MRF_OP_SEND:
		break;
	}
	return false;
}

/* Does posting it look at the local buffers? Requests hold what they need. */
static inline bool mrf_kind_moves(enum mrf_op_kind kind)
{
	switch (kind) {
	case MRF_OP_READ:
	case MRF_OP_WRITE:
	case MRF_OP_ATOMIC:
	case MRF_OP_SEND:
		return true;
	case MRF_OP_RPC:
		break;
	}
	return false;
}

#endif
