/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair beside that of a connection (verbs/vcm.h): for bytes that go the same way, between the
 * same two endpoints, into receives of their own. Nobody dials it: each end makes one, tells the other
 * its number and the number of its first packet over the connection, and connects it to the other's.
 * It takes its route from the connection. Nothing but SENDs goes over it, and no end has a right to
 * the memory of the other.
 *
 * The opener owns the pair, and closes it before the queues that it completes on. It serialises the
 * calls for one pair, but for mrf_vpair_close, during which completions may be polled.
 */
#ifndef MRF_VERBS_VPAIR_H
#define MRF_VERBS_VPAIR_H

#include <stdbool.h>
#include <stdint.h>

struct mrf_sge;
struct mrf_vconn;
struct mrf_vcq;
struct mrf_vpair;
struct mrf_vpd;

struct mrf_vpair_attr {
	struct mrf_vpd *pd;
	struct mrf_vcq *send_cq;
	struct mrf_vcq *recv_cq;
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t send_sge;
	uint32_t recv_sge;
	uint32_t max_inline; /* bytes */
};

/* How one end calls a pair. Both are numbers of 24 bits. */
struct mrf_vpair_name {
	uint32_t qpn; /* not 0 */
	uint32_t psn; /* of its first packet */
};

/*
 * Makes this end, on the device of a connection that is established (at the initiator) or accepted
 * (at the target). Receives may be posted from now on. Returns the device's errors; -FI_ECONNRESET:
 * the connection is gone.
 */
int mrf_vpair_open(struct mrf_vconn *conn, const struct mrf_vpair_attr *attr,
		   struct mrf_vpair **pair);
struct mrf_vpair_name mrf_vpair_name(const struct mrf_vpair *pair);
/*
 * Connects it to the other end, over the route of the same connection: SENDs may be posted from now
 * on, and may come, once the other end has done so, too. Errors as mrf_vpair_open.
 */
int mrf_vpair_connect(struct mrf_vpair *pair, struct mrf_vconn *conn,
		      const struct mrf_vpair_name *other);
/*
 * When this returns, the device reads and writes nothing for the pair any more. Completions that
 * were there before can be polled still; others never come. At the other end, SENDs that have not
 * completed, and later ones, end in MRF_WC_TIMEOUT after the retries of the connection.
 */
void mrf_vpair_close(struct mrf_vpair *pair);

/* Posts a SEND, always signalled. Errors as mrf_vconn_post. is_inline: lkeys do not count. */
int mrf_vpair_send(struct mrf_vpair *pair, uint64_t wr_id, struct mrf_sge *sge, int nsge,
		   bool is_inline);
/*
 * Posts a receive of several pieces. A SEND that is longer than it breaks both ends. On rxe, a
 * receive that is posted after that never completes; those posted before are flushed. -FI_EAGAIN:
 * the queue is full.
 */
int mrf_vpair_recv(struct mrf_vpair *pair, uint64_t wr_id, struct mrf_sge *sge, int nsge);

#endif
