/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is behind a peer's key. A good answer is kept until the kernel contradicts it; a refusal is
 * only ever decided by an answer to a question that was asked after the operation was, so that a
 * region registered (again) in the meantime is found.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/iov.h"
#include "base/log.h"
#include "ep/peer.h"

static bool peer_virt(const struct mrf_peer *peer)
{
	return peer->mr_mode & FI_MR_VIRT_ADDR;
}

static void drop_answer(struct mrf_remote *remote)
{
	if (remote->segs != &remote->one)
		free(remote->segs);
	remote->segs = &remote->one;
	remote->nseg = 0;
	remote->known = false;
}

static struct mrf_remote *find(const struct mrf_peer *peer, uint64_t key)
{
	return mrf_idmap_find(&peer->remotes, key);
}

/* Keys that a peer is remembered by; applications that use up keys must not use up memory. */
#define MAX_REMOTES 16384

static void list_idle(void *value, void *arg)
{
	struct mrf_remote *remote = value;

	if (!remote->asking && !remote->wanted)
		mrf_list_add_tail(&remote->node, arg);
}

/* Whoever still needs one of them asks again. */
static void make_room(struct mrf_peer *peer)
{
	struct mrf_list idle, *node;

	mrf_list_init(&idle);
	mrf_idmap_each(&peer->remotes, list_idle, &idle);
	while ((node = mrf_list_pop(&idle))) {
		struct mrf_remote *remote = mrf_list_entry(node, struct mrf_remote, node);

		mrf_idmap_remove(&peer->remotes, remote->key);
		drop_answer(remote);
		free(remote);
	}
}

static struct mrf_remote *find_or_add(struct mrf_peer *peer, uint64_t key)
{
	struct mrf_remote *remote = find(peer, key);

	if (remote)
		return remote;
	if (peer->remotes.count >= MAX_REMOTES)
		make_room(peer);
	remote = calloc(1, sizeof(*remote));
	if (!remote)
		return NULL;
	remote->key = key;
	remote->segs = &remote->one;
	mrf_list_init(&remote->node);
	if (mrf_idmap_insert(&peer->remotes, key, remote)) {
		free(remote);
		return NULL;
	}
	return remote;
}

static void want(struct mrf_peer *peer, struct mrf_remote *remote)
{
	if (remote->wanted || remote->asking)
		return;
	remote->wanted = true;
	mrf_list_add_tail(&remote->node, &peer->to_ask);
}

/* --- may it be? ------------------------------------------------------------------------- */

#define FAIL(why, e, c, ...)                                                             \
	({                                                                               \
		(why)->err = (e);                                                        \
		(why)->code = (c);                                                       \
		snprintf((why)->text, sizeof((why)->text), __VA_ARGS__);                 \
		false;                                                                   \
	})

static bool status_ok(const struct mrf_remote *remote, struct mrf_why *why)
{
	switch (remote->status) {
	case MRF_MR_OK:
		return true;
	case MRF_MR_CLOSED:
		return FAIL(why, FI_EKEYREJECTED, 4102,
			    "key 0x%" PRIx64 ": its region was closed", remote->key);
	case MRF_MR_DISABLED:
		return FAIL(why, FI_EACCES, 4103,
			    "key 0x%" PRIx64 ": its region is not enabled", remote->key);
	default:
		return FAIL(why, FI_EKEYREJECTED, 4101,
			    "key 0x%" PRIx64 " is unknown: the peer has no such region",
			    remote->key);
	}
}

static bool bounds_fail(const struct mrf_peer *peer, const struct mrf_remote *remote,
			const struct fi_rma_iov *rma, struct mrf_why *why)
{
	bool virt = peer_virt(peer);
	const char *hint = "";
	uint64_t base = virt ? remote->base : 0, end = base + remote->len;

	if (virt && mrf_range_inside(rma->addr, rma->len, 0, remote->len))
		hint = "; this looks like an offset, the peer's domain has FI_MR_VIRT_ADDR";
	else if (!virt && mrf_range_inside(rma->addr, rma->len, remote->base, remote->len))
		hint = "; this looks like an address, the peer's domain takes offsets";
	if (remote->nseg <= 1 && rma->addr >= base && rma->addr <= end)
		return FAIL(why, FI_EACCES, 4105,
			    "key 0x%" PRIx64 ": %" PRIu64 " bytes past the end: 0x%" PRIx64
			    " + %zu in a region of %" PRIu64 " bytes at 0x%" PRIx64 "%s",
			    remote->key, rma->len - (end - rma->addr), rma->addr, rma->len,
			    remote->len, base, hint);
	return FAIL(why, FI_EACCES, 4105,
		    "key 0x%" PRIx64 ": out of bounds: 0x%" PRIx64 " + %zu is outside the region "
		    "of %" PRIu64 " bytes at 0x%" PRIx64 "%s", remote->key, rma->addr, rma->len,
		    remote->len, base, hint);
}

static bool bounds_ok(const struct mrf_peer *peer, const struct mrf_remote *remote,
		      const struct fi_rma_iov *rma, struct mrf_why *why)
{
	uint64_t addr = rma->addr, left = rma->len, offset;
	unsigned seg;

	do {
		uint64_t n = mrf_mr_locate(remote->segs, remote->nseg, peer_virt(peer), addr,
					   left, &seg, &offset);

		if (!n || !mrf_range_ok(addr, left))
			return bounds_fail(peer, remote, rma, why);
		n = mrf_min(n, left);
		addr += n;
		left -= n;
	} while (left);
	return true;
}

static bool access_ok(const struct mrf_op *op, const struct mrf_remote *remote,
		      struct mrf_why *why)
{
	uint64_t right = op->kind == MRF_OP_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE;

	if (remote->access & right)
		return true;
	return FAIL(why, FI_EACCES, 4104, "key 0x%" PRIx64 ": its region was registered without %s",
		    remote->key, right == FI_REMOTE_READ ? "FI_REMOTE_READ" : "FI_REMOTE_WRITE");
}

static bool may_be(const struct mrf_op *op, const struct mrf_remote *remote,
		   const struct fi_rma_iov *rma, struct mrf_why *why)
{
	return status_ok(remote, why) && access_ok(op, remote, why) &&
	       bounds_ok(op->peer, remote, rma, why);
}

/*
 * An answer for another operation that came after this one was asked for: what waited behind
 * a refused access need not break a connection each to learn the same.
 */
static bool answered(const struct mrf_op *op, uint64_t key)
{
	const struct mrf_remote *remote = find(op->peer, key);

	return remote && remote->known && remote->cookie >= op->stamp;
}

/* The key carries its rkey, and one work request does it all: the kernel checks. */
static bool direct(const struct mrf_op *op, const struct fi_rma_iov *rma,
		   struct mrf_key_direct *key)
{
	return !op->ask_first && !answered(op, rma->key) && op->nrma == 1 && op->total &&
	       op->total <= mrf_vdev_limits(op->peer->ep->domain->vdev)->max_msg_size &&
	       mrf_key_unpack(op->peer->mr_mode, rma->key, key);
}

static enum mrf_resolved resolve_one(struct mrf_op *op, const struct fi_rma_iov *rma,
				     struct mrf_why *why)
{
	struct mrf_key_direct key;
	struct mrf_remote *remote;
	bool good, fresh;

	if (direct(op, rma, &key))
		return MRF_RESOLVED;
	remote = find_or_add(op->peer, rma->key);
	if (!remote) {
		FAIL(why, FI_ENOMEM, 4106, "no memory to resolve key 0x%" PRIx64, rma->key);
		return MRF_RESOLVE_FAIL;
	}
	fresh = remote->known && remote->cookie >= op->stamp;
	good = remote->known && may_be(op, remote, rma, why);
	/* The kernel checks bytes, not their absence: an empty access needs a fresh answer. */
	if (good && (fresh || rma->len))
		return MRF_RESOLVED;
	if (remote->known && !good && fresh)
		return MRF_RESOLVE_FAIL;
	want(op->peer, remote);
	return MRF_RESOLVE_WAIT;
}

/*
 * An operation that the kernel keeps refusing although each answer said that it may be: the
 * region comes and goes faster than we ask, or answer and kernel disagree.
 */
#define MAX_REFUSED 8

enum mrf_resolved mrf_resolve_op(struct mrf_op *op, struct mrf_why *why)
{
	enum mrf_resolved all = MRF_RESOLVED;
	int i;

	if (op->resolved)
		return MRF_RESOLVED;
	if (op->refused > MAX_REFUSED) {
		FAIL(why, FI_EACCES, 4107,
		     "key 0x%" PRIx64 ": refused %u times by the peer's kernel although the "
		     "peer's library would allow it", op->rma[0].key, op->refused);
		return MRF_RESOLVE_FAIL;
	}
	for (i = 0; i < op->nrma; i++) {
		enum mrf_resolved one = resolve_one(op, &op->rma[i], why);

		if (one == MRF_RESOLVE_FAIL)
			return one;
		if (one == MRF_RESOLVE_WAIT)
			all = one;
	}
	op->resolved = all == MRF_RESOLVED;
	return all;
}

bool mrf_resolve_piece(const struct mrf_op *op, uint64_t from, uint32_t *rkey,
		       uint64_t *remote_addr, uint64_t *len)
{
	const struct fi_rma_iov *rma = op->rma;
	struct mrf_key_direct key;
	struct mrf_remote *remote;
	uint64_t offset;
	unsigned seg;

	while (from >= rma->len && rma < &op->rma[op->nrma - 1])
		from -= (rma++)->len;
	if (direct(op, rma, &key)) {
		*rkey = key.rkey;
		*remote_addr = key.iova_base + rma->addr + from;
		*len = rma->len - from;
		return true;
	}
	remote = find(op->peer, rma->key);
	if (!remote || !remote->known || remote->status != MRF_MR_OK)
		return false;
	*len = mrf_mr_locate(remote->segs, remote->nseg, peer_virt(op->peer), rma->addr + from,
			     rma->len - from, &seg, &offset);
	if (!*len)
		return false;
	*rkey = remote->segs[seg].rkey;
	*remote_addr = remote->segs[seg].iova + offset;
	return true;
}

bool mrf_resolve_cached(const struct mrf_peer *peer, uint64_t key, enum mrf_op_kind kind,
			uint64_t addr, uint64_t len, uint32_t *rkey, uint64_t *remote_addr)
{
	const struct mrf_remote *remote = find(peer, key);
	uint64_t start;

	if (!remote || !remote->known || remote->status != MRF_MR_OK || remote->nseg != 1 ||
	    !(remote->access & (kind == MRF_OP_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE)))
		return false;
	start = peer_virt(peer) ? remote->one.addr : 0;
	if (!mrf_range_inside(addr, len, start, remote->one.len))
		return false;
	*rkey = remote->one.rkey;
	*remote_addr = remote->one.iova + (addr - start);
	return true;
}

/* --- forgetting --------------------------------------------------------------------------- */

void mrf_resolve_forget(struct mrf_op *op)
{
	int i;

	for (i = 0; i < op->nrma; i++) {
		struct mrf_remote *remote = find(op->peer, op->rma[i].key);

		if (remote)
			drop_answer(remote);
	}
}

static void forget_one(void *value, void *arg)
{
	(void)arg;
	drop_answer(value);
}

void mrf_resolve_forget_all(struct mrf_peer *peer)
{
	mrf_idmap_each(&peer->remotes, forget_one, NULL);
}

static void unask_one(void *value, void *arg)
{
	struct mrf_remote *remote = value;

	if (!remote->asking)
		return;
	remote->asking = false;
	want(arg, remote);
}

void mrf_resolve_unask(struct mrf_peer *peer)
{
	peer->asks = 0;
	mrf_idmap_each(&peer->remotes, unask_one, peer);
}

static void free_one(void *value, void *arg)
{
	struct mrf_remote *remote = value;

	(void)arg;
	drop_answer(remote);
	free(remote);
}

void mrf_resolve_fini(struct mrf_peer *peer)
{
	mrf_idmap_each(&peer->remotes, free_one, NULL);
	mrf_idmap_fini(&peer->remotes);
}

/* --- asking --------------------------------------------------------------------------------- */

static int send_ask(struct mrf_peer *peer, struct mrf_remote *remote)
{
	uint8_t msg[MRF_PROTO_ASK_LEN];
	struct mrf_ask ask = { .cookie = peer->ep->clock, .key = remote->key };
	struct mrf_sge sge = { .addr = (uintptr_t)msg };
	struct mrf_vwr wr = { .op = MRF_VWR_SEND, .is_inline = true, .nsge = 1, .sge = &sge };
	int ret;

	sge.len = (uint32_t)mrf_ask_encode(&ask, msg);
	ret = mrf_conn_post(peer->conn, &wr, NULL, 0);
	if (!ret)
		remote->cookie = ask.cookie;
	return ret;
}

void mrf_resolve_ask(struct mrf_peer *peer)
{
	int ret;

	while (peer->asks < peer->max_asks && !mrf_list_empty(&peer->to_ask) &&
	       mrf_conn_room(peer->conn)) {
		struct mrf_remote *remote = mrf_list_entry(mrf_list_first(&peer->to_ask),
							   struct mrf_remote, node);

		ret = send_ask(peer, remote);
		if (mrf_unlikely(ret)) {
			mrf_peer_no_ask(peer, ret);
			return;
		}
		mrf_list_del(&remote->node);
		remote->wanted = false;
		remote->asking = true;
		drop_answer(remote);
		peer->asks++;
	}
	if (!mrf_list_empty(&peer->to_ask) && !mrf_conn_room(peer->conn))
		mrf_agent_watch(peer);
}

static int keep_segs(struct mrf_peer *peer, struct mrf_remote *remote,
		     const struct mrf_answer *answer)
{
	uint32_t i;

	if (answer->nseg > 1) {
		remote->segs = calloc(answer->nseg, sizeof(*remote->segs));
		if (!remote->segs) {
			remote->segs = &remote->one;
			return -FI_ENOMEM;
		}
	}
	for (i = 0; i < answer->nseg; i++) {
		const struct mrf_answer_seg *seg = &answer->seg[i];

		remote->segs[i] = (struct mrf_mr_seg){
			.addr = seg->addr,
			.len = seg->len,
			.iova = peer_virt(peer) ? seg->addr : seg->iova_off,
			.rkey = seg->rkey,
		};
	}
	remote->nseg = answer->nseg;
	return 0;
}

void mrf_resolve_answer(struct mrf_peer *peer, const struct mrf_answer *answer)
{
	struct mrf_remote *remote = find(peer, answer->key);

	if (!remote || !remote->asking || remote->cookie != answer->cookie) {
		mrf_warn(FI_LOG_EP_DATA, 4020, "answer for key 0x%" PRIx64
			 " that nobody asked for: ignored", answer->key);
		return;
	}
	remote->asking = false;
	peer->asks--;
	peer->losses = 0;
	drop_answer(remote);
	if (keep_segs(peer, remote, answer)) {
		want(peer, remote);
	} else {
		remote->status = answer->status;
		remote->access = answer->access;
		remote->base = answer->base;
		remote->len = answer->len;
		remote->known = true;
	}
	mrf_peer_advance(peer);
}
