/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "ep/link/greet.h"

_Static_assert(MRF_PROTO_NONCE == MRF_AUTH_NONCE && MRF_PROTO_PROOF == MRF_AUTH_PROOF,
	       "as it is on the wire");

static void set_addr(struct mrf_auth_talk *talk, const union mrf_addr *addr)
{
	size_t len;
	const uint8_t *host = mrf_addr_host(&addr->sa, &len);

	memset(talk->addr, 0, sizeof(talk->addr));
	memcpy(talk->addr, host, len);
	talk->port = mrf_addr_port(addr);
}

const char *mrf_full_text(enum mrf_full full)
{
	static const char *const text[] = {
		[MRF_FULL_UNKNOWN] = "a limit that it does not name",
		[MRF_FULL_INBOUND] = "connections from peers (FI_MRFAB_INBOUND)",
		[MRF_FULL_HALF] = "connections from one address that it has not confirmed",
		[MRF_FULL_LOCKED] = "locked memory (RLIMIT_MEMLOCK) or regions of the device",
		[MRF_FULL_QP] = "queue pairs of the device, or memory for them",
		[MRF_FULL_CQ] = "completion queues of the device, or memory for them",
		[MRF_FULL_FD] = "file descriptors (RLIMIT_NOFILE)",
		[MRF_FULL_MEMORY] = "memory",
		[MRF_FULL_RECEIVES] = "receives for messages",
	};

	return text[full];
}

/* --- the target -------------------------------------------------------------------------- */

enum mrf_greeted mrf_greet_check(struct mrf_ep *ep, const struct mrf_hello *hello, uint32_t qpn,
				 struct mrf_auth_talk *talk)
{
	const struct mrf_auth *auth = mrf_greet_auth(ep);

	if (!auth)
		return MRF_GREET_OK;
	*talk = (struct mrf_auth_talk){ .number = hello->number,
					.salt = hello->salt,
					.initiator = hello->ticket,
					.target = ep->instance,
					.initiator_qpn = qpn,
					.flags = hello->flags };
	if (!mrf_nonce_get(&ep->nonces, hello->number, talk->nonce))
		return MRF_GREET_CHALLENGE;
	set_addr(talk, &ep->addr);
	if (!mrf_auth_proves(auth, MRF_AUTH_INITIATOR, talk, hello->proof, sizeof(hello->proof)))
		return MRF_GREET_KEY;
	/*
	 * Only a valid proof uses up the number: otherwise anybody could use up the numbers of
	 * others.
	 */
	mrf_nonce_use(&ep->nonces, hello->number);
	return MRF_GREET_OK;
}

size_t mrf_greet_challenge(struct mrf_ep *ep, uint8_t buf[MRF_PROTO_CHALLENGE_LEN])
{
	struct mrf_challenge challenge = { .instance = ep->instance };

	challenge.number = mrf_nonce_next(&ep->nonces, challenge.nonce);
	return mrf_challenge_encode(&challenge, buf);
}

void mrf_greet_welcome(const struct mrf_ep *ep, struct mrf_auth_talk *talk, uint32_t own_qpn,
		       struct mrf_welcome *welcome)
{
	const struct mrf_auth *auth = mrf_greet_auth(ep);

	if (!auth)
		return;
	talk->target_qpn = own_qpn;
	mrf_auth_prove(auth, MRF_AUTH_TARGET, talk, welcome->proof);
	welcome->flags |= MRF_WELCOME_PROOF;
}

/* --- the initiator ------------------------------------------------------------------------- */

static void why_refused(uint32_t reason, struct mrf_why *why)
{
	switch ((enum mrf_refuse_reason)reason) {
	case MRF_REFUSE_KEY:
		mrf_why_set(why, FI_EACCES, 4203,
			    "the endpoint there has another authorization key");
		return;
	case MRF_REFUSE_VERSION:
		mrf_why_set(why, FI_EREMOTEIO, 4125,
			    "the endpoint there speaks another version of the protocol");
		return;
	case MRF_REFUSE_CLOSING:
		mrf_why_set(why, FI_ECONNREFUSED, 4125, "the endpoint there is closing");
		return;
	case MRF_REFUSE_MESSAGES:
		mrf_why_set(why, FI_EOPNOTSUPP, 4324,
			    "the endpoint there takes no messages: it was opened without FI_MSG or "
			    "FI_RECV");
		return;
	case MRF_REFUSE_BARRED:
		mrf_why_set(why, FI_ECONNABORTED, 4330,
			    "the endpoint there has closed the last connection, because what came "
			    "over it was no message, not the next one, or one too many");
		return;
	case MRF_REFUSE_RESOURCES: /* whoever gets these two acts on them first */
	case MRF_REFUSE_CHALLENGE:
		break;
	}
	mrf_why_set(why, FI_EREMOTEIO, 4125,
		    "the endpoint there refuses for a reason that is unknown here");
}

void mrf_greet_no_room_locked(const struct mrf_peer *peer, struct mrf_why *why)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_why_set(why, FI_ECONNREFUSED, 4125,
		    "the endpoint there has no resources for another connection: it is out of %s",
		    mrf_full_text(peer->dial.full));
}

bool mrf_greet_again_locked(struct mrf_peer *peer, const void *data, size_t len,
			    struct mrf_why *why)
{
	uint32_t reason = 0;

	mrf_lock_held(&peer->ep->lock);
	mrf_refuse_decode(data, len, &reason);
	if (reason == MRF_REFUSE_RESOURCES) {
		mrf_greet_no_room_locked(peer, why);
		return false;
	}
	if (reason != MRF_REFUSE_CHALLENGE) {
		why_refused(reason, why);
		return false;
	}
	if (mrf_challenge_decode(data, len, &peer->dial.challenge)) {
		mrf_why_set(why, FI_EREMOTEIO, 4124,
			    "the program that listens there does not speak this protocol");
		return false;
	}
	if (!mrf_greet_auth(peer->ep)) {
		mrf_why_set(why, FI_EACCES, 4202,
			    "the endpoint there has an authorization key, but this one has none");
		return false;
	}
	if (++peer->dial.challenges > MRF_CHALLENGES) {
		mrf_why_set(why, FI_EACCES, 4204,
			    "the endpoint there asks for another proof each time");
		return false;
	}
	peer->dial.challenged = true;
	return true;
}

void mrf_greet_hello_locked(struct mrf_conn *conn, struct mrf_hello *hello)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_auth_talk *talk = &conn->talk;
	uint8_t proof[MRF_AUTH_PROOF];

	mrf_lock_held(&conn->peer->ep->lock);
	if (!peer->dial.challenged)
		return;
	peer->dial.challenged = false;
	*talk = (struct mrf_auth_talk){ .number = peer->dial.challenge.number,
					.initiator = hello->ticket,
					.target = peer->dial.challenge.instance,
					.initiator_qpn = mrf_vconn_qpn(conn->vconn),
					.flags = hello->flags };
	memcpy(talk->nonce, peer->dial.challenge.nonce, sizeof(talk->nonce));
	mrf_auth_random(&talk->salt, sizeof(talk->salt));
	set_addr(talk, &peer->addr);
	mrf_auth_prove(mrf_greet_auth(peer->ep), MRF_AUTH_INITIATOR, talk, proof);
	hello->number = talk->number;
	hello->salt = talk->salt;
	memcpy(hello->proof, proof, sizeof(hello->proof));
}

/* Has the target proved that it has our key? False: why says what is wrong. */
static bool trusts_locked(struct mrf_conn *conn, const struct mrf_welcome *welcome, uint32_t qpn,
			  struct mrf_why *why)
{
	const struct mrf_auth *auth = mrf_greet_auth(conn->peer->ep);

	if (!auth)
		return true;
	if (!(welcome->flags & MRF_WELCOME_PROOF) || !conn->talk.number) {
		mrf_why_set(why, FI_EACCES, 4205,
			    "the endpoint there has no authorization key, but this one has one");
		return false;
	}
	conn->talk.target_qpn = qpn;
	if (welcome->instance == conn->talk.target &&
	    mrf_auth_proves(auth, MRF_AUTH_TARGET, &conn->talk, welcome->proof,
			    sizeof(welcome->proof)))
		return true;
	why_refused(MRF_REFUSE_KEY, why);
	return false;
}

/* Is it a welcome of the kind of connection that was asked for? */
static bool fits_locked(const struct mrf_peer *peer, const struct mrf_welcome *welcome,
			struct mrf_why *why)
{
	bool line = welcome->flags & MRF_WELCOME_LINE;

	if (line != (peer->kind == MRF_CONN_LINE)) {
		mrf_why_set(why, FI_EREMOTEIO, 4124,
			    "the program that listens there does not speak this protocol");
		return false;
	}
	if (line && !(welcome->line.kinds & (MRF_LINE_MSG | MRF_LINE_TAGGED))) {
		why_refused(MRF_REFUSE_MESSAGES, why);
		return false;
	}
	return true;
}

/* What the target knows of the connection that was lost. */
static void take_told_locked(struct mrf_conn *conn, const struct mrf_welcome *welcome)
{
	const struct mrf_target *target = &conn->peer->target;
	bool same = target->instance == welcome->instance;

	switch (conn->peer->kind) {
	case MRF_CONN_ACCESS:
		conn->told = same && target->lost && welcome->flags & MRF_WELCOME_STOPPED;
		conn->told_psn = welcome->flags >> MRF_WELCOME_PSN_SHIFT;
		return;
	case MRF_CONN_LINE:
		conn->told = same && welcome->flags & MRF_WELCOME_KNOWN;
		conn->told_psn = (uint32_t)welcome->line.taken;
		conn->line = welcome->line;
		return;
	case MRF_CONN_KINDS:
		break;
	}
}

bool mrf_greet_welcomed_locked(struct mrf_conn *conn, const struct mrf_cm_event *event,
			       struct mrf_why *why)
{
	struct mrf_peer *peer = conn->peer;
	struct mrf_welcome welcome;

	mrf_lock_held(&conn->peer->ep->lock);
	if (mrf_welcome_decode(event->data, event->len, &welcome)) {
		mrf_why_set(why, FI_EREMOTEIO, 4124,
			    "the program that listens there does not speak this protocol");
		return false;
	}
	if (!trusts_locked(conn, &welcome, event->qpn, why))
		return false;
	if (!fits_locked(peer, &welcome, why))
		return false;
	conn->target_qpn = event->qpn;
	take_told_locked(conn, &welcome);
	peer->dial.challenges = 0;
	peer->target.instance = welcome.instance;
	peer->target.space_id = welcome.space_id;
	peer->target.mr_mode = welcome.mr_mode;
	peer->target.key_form = mrf_key_form(welcome.mr_mode);
	peer->target.events = welcome.flags & MRF_WELCOME_EVENTS;
	peer->known.max_asks = (unsigned)mrf_min(welcome.asks, MRF_ASKS);
	return true;
}
