/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to a peer about its regions, answers, and the leases that some answers open. */
#include <inttypes.h>
#include "base/log.h"
#include "ep/link/conn.h"
#include "ep/resolve/ask.h"

void mrf_ask_want_locked(struct mrf_peer *peer, struct mrf_remote *remote, uint64_t addr,
			 uint64_t len, bool once)
{
	mrf_lock_held(&peer->ep->lock);
	if (remote->wanted || remote->asking)
		return;
	remote->wanted = true;
	remote->ask.addr = addr;
	remote->ask.len = len;
	remote->ask_once = once;
	mrf_list_add_tail(&remote->node, &peer->known.to_ask);
}

static void want_again_locked(struct mrf_peer *peer, struct mrf_remote *remote)
{
	remote->wanted = true;
	mrf_list_add_tail(&remote->node, &peer->known.to_ask);
}

static int post_message_locked(struct mrf_peer *peer, uint8_t *msg, size_t len)
{
	struct mrf_sge sge = { .addr = (uintptr_t)msg, .len = (uint32_t)len };
	struct mrf_vwr wr = { .op = MRF_VWR_SEND, .is_inline = true, .nsge = 1, .sge = &sge };

	return mrf_conn_send_locked(peer->conn, &wr);
}

/* Operations that wait use a lease only if they began before it was asked for. */
static bool leases_unused_locked(const struct mrf_peer *peer)
{
	const struct mrf_list *first = mrf_list_first(&peer->queue);

	return peer->conn->tail == peer->conn->head && mrf_list_empty(&peer->known.asked) &&
	       (mrf_list_empty(&peer->queue) ||
		mrf_list_entry(first, struct mrf_op, node)->stamp > peer->known.leased);
}

static void released_locked(struct mrf_peer *peer)
{
	peer->known.leases = 0;
	peer->known.lease_epoch++;
}

static int send_ask_locked(struct mrf_peer *peer, struct mrf_remote *remote)
{
	bool release = peer->known.leases && leases_unused_locked(peer);
	uint8_t msg[MRF_PROTO_ASK_LEN];
	struct mrf_ask ask = { .cookie = peer->ep->clock + 1,
			       .key = remote->peer_key,
			       .serial = remote->serial,
			       .addr = remote->ask.addr,
			       .len = remote->ask.len,
			       .flags = (remote->ask_once ? MRF_ASK_ONCE : 0) |
					(release ? MRF_ASK_RELEASE : 0) };
	int ret = post_message_locked(peer, msg, mrf_ask_encode(&ask, msg));

	if (ret)
		return ret;
	mrf_debug(FI_LOG_EP_DATA,
		  "asking the peer about key 0x%" PRIx64 ", 0x%" PRIx64 " + %" PRIu64, ask.key,
		  ask.addr, ask.len);
	if (release)
		released_locked(peer);
	remote->asked_at = ++peer->ep->clock;
	mrf_conn_probe_locked(peer->conn);
	return 0;
}

static void gather_locked(struct mrf_peer *peer)
{
	if (mrf_list_empty(&peer->gathered) && !mrf_list_empty(&peer->known.to_ask))
		mrf_list_add_tail(&peer->gathered, &peer->ep->gathered);
}

int mrf_ask_send_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	if (mrf_unlikely(peer->known.gathers)) {
		gather_locked(peer);
		return 0;
	}
	mrf_list_del(&peer->gathered);
	while (peer->state == MRF_PEER_READY && peer->known.asks < peer->known.max_asks &&
	       !mrf_list_empty(&peer->known.to_ask) && mrf_conn_room_locked(peer->conn)) {
		struct mrf_remote *remote = mrf_list_entry(mrf_list_first(&peer->known.to_ask),
							   struct mrf_remote, node);
		int ret = send_ask_locked(peer, remote);

		if (mrf_unlikely(ret))
			return ret;
		mrf_list_del(&remote->node);
		mrf_list_add_tail(&remote->node, &peer->known.asked);
		remote->wanted = false;
		remote->asking = true;
		/* What is known about other bytes of a region that is pinned on demand stays. */
		if (remote->complete)
			mrf_remote_drop_locked(remote);
		peer->known.asks++;
	}
	if (!mrf_list_empty(&peer->known.to_ask) && !mrf_conn_room_locked(peer->conn))
		mrf_conn_await_room_locked(peer);
	return 0;
}

static struct mrf_remote *whose_locked(struct mrf_peer *peer, const struct mrf_answer *answer)
{
	mrf_list_each (node, &peer->known.asked) {
		struct mrf_remote *remote = mrf_list_entry(node, struct mrf_remote, node);

		if (remote->asked_at == answer->cookie && remote->peer_key == answer->key)
			return remote;
	}
	return NULL;
}

static void leased_locked(struct mrf_peer *peer, uint64_t cookie)
{
	peer->known.leases++;
	peer->known.leased = cookie;
	peer->known.lately = true;
	mrf_conn_soon_locked(peer->conn);
}

bool mrf_ask_answered_locked(struct mrf_peer *peer, const struct mrf_answer *answer)
{
	struct mrf_remote *remote = whose_locked(peer, answer);

	mrf_lock_held(&peer->ep->lock);
	if (!remote) {
		mrf_warn(FI_LOG_EP_DATA, 4020,
			 "a peer answered a question about key 0x%" PRIx64
			 " that was not asked: the answer is ignored",
			 answer->key);
		return false;
	}
	mrf_debug(FI_LOG_EP_DATA,
		  "answer about key 0x%" PRIx64 ": status %u, segments %u, access 0x%" PRIx64,
		  answer->key, answer->status, answer->nseg, answer->access);
	mrf_list_del(&remote->node);
	remote->asking = false;
	peer->known.asks--;
	peer->dial.losses = 0;
	if (mrf_remote_learn_locked(peer, remote, answer))
		want_again_locked(peer, remote);
	else if (remote->once)
		leased_locked(peer, answer->cookie);
	return true;
}

void mrf_ask_unwant_locked(struct mrf_peer *peer)
{
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	mrf_list_del(&peer->gathered);
	while ((node = mrf_list_pop(&peer->known.to_ask)))
		mrf_list_entry(node, struct mrf_remote, node)->wanted = false;
}

void mrf_ask_lost_locked(struct mrf_peer *peer)
{
	struct mrf_list *node;

	mrf_lock_held(&peer->ep->lock);
	while ((node = mrf_list_pop(&peer->known.asked))) {
		struct mrf_remote *remote = mrf_list_entry(node, struct mrf_remote, node);

		remote->asking = false;
		want_again_locked(peer, remote);
	}
	peer->known.asks = 0;
	mrf_list_del(&peer->gathered);
	/* The peer ended the leases with the connection; a FORGET may have been lost with it. */
	peer->known.epoch++;
	released_locked(peer);
}

static bool in_use_locked(const struct mrf_peer *peer)
{
	return peer->conn->tail != peer->conn->head || !mrf_list_empty(&peer->known.asked) ||
	       !mrf_list_empty(&peer->known.to_ask) ||
	       (mrf_peer_has_ops(peer) && peer->known.leases < MRF_LEASES);
}

bool mrf_ask_release_locked(struct mrf_peer *peer)
{
	uint8_t msg[MRF_PROTO_NOTE_LEN];

	mrf_lock_held(&peer->ep->lock);
	if (mrf_likely(!peer->known.leases) || in_use_locked(peer) ||
	    (peer->known.lately && !mrf_peer_has_ops(peer)))
		return false;
	if (!mrf_conn_room_locked(peer->conn) ||
	    post_message_locked(peer, msg, mrf_note_encode(MRF_MSG_RELEASE, msg))) {
		mrf_conn_await_room_locked(peer);
		return false;
	}
	released_locked(peer);
	return true;
}
