/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of rdma_cm, in neutral terms, and the channel on which their events arrive.
 * A connection has one owner, which created it or received it with an event, and which
 * serialises calls on it. Its queue pair: verbs/vqp.h.
 */
#ifndef MRF_VERBS_VCM_H
#define MRF_VERBS_VCM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define MRF_CM_DATA 196 /* most bytes of private data with an event */

enum mrf_cm_type {
	MRF_CM_ADDR_RESOLVED,
	MRF_CM_UNRESOLVED, /* not in time: mrf_vconn_resolve may be repeated */
	MRF_CM_ROUTE_RESOLVED,
	MRF_CM_REQUEST,	    /* conn is the listener, incoming the new connection */
	MRF_CM_RESPONSE,    /* the target accepts: mrf_vconn_establish or _close */
	MRF_CM_ESTABLISHED, /* the initiator has established it */
	MRF_CM_REJECTED,
	MRF_CM_FAILED, /* no address, no route, unreachable: see err */
	MRF_CM_DISCONNECTED,
	MRF_CM_REMOVED, /* the device goes away */
	MRF_CM_OTHER
};

struct mrf_vconn;
union mrf_addr;
struct mrf_vcm; /* channel on which the events of its connections arrive */

struct mrf_cm_event {
	enum mrf_cm_type type;
	struct mrf_vconn *conn;
	struct mrf_vconn *incoming; /* type REQUEST: owned by the receiver of the event */
	int err;		    /* positive FI_E*: type FAILED */
	int status;		    /* as rdma_cm gave it, for messages */
	uint32_t qpn;		    /* types REQUEST, RESPONSE: the remote queue pair */
	size_t len;		    /* length of data, which rdma_cm pads with zeros */
	uint8_t data[MRF_CM_DATA];
};

int mrf_vcm_open(struct mrf_vcm **cm);
void mrf_vcm_close(struct mrf_vcm *cm);
int mrf_vcm_fd(const struct mrf_vcm *cm);
/*
 * Takes and acknowledges one event. -FI_EAGAIN if there is none. -FI_EACCES, here and
 * from every call that talks to rdma_cm: the process has changed its credentials.
 */
int mrf_vcm_next(struct mrf_vcm *cm, struct mrf_cm_event *event);
/*
 * For use after a change of credentials, when every call ends in -FI_EACCES: closes the
 * kernel's side of cm. The kernel then ends all connections and listeners of cm and tells
 * their peers, as it does when a process dies. Afterwards cm and its connections may only
 * be closed.
 */
void mrf_vcm_abandon(struct mrf_vcm *cm);

int mrf_vconn_open(struct mrf_vcm *cm, void *owner, struct mrf_vconn **conn);
/*
 * Destroys the queue pair, if any, and the id. No event of the connection comes after
 * this.
 */
void mrf_vconn_close(struct mrf_vconn *conn);
void *mrf_vconn_owner(const struct mrf_vconn *conn);
void mrf_vconn_set_owner(struct mrf_vconn *conn, void *owner);

/* Binds without listening, so that the port is known before; addr gets the port. */
int mrf_vconn_bind(struct mrf_vconn *conn, struct sockaddr *addr);
int mrf_vconn_listen(struct mrf_vconn *conn);

/*
 * ack_timeout: exponent n of 4.096 us * 2^n. Each step reports its end by an event. While
 * an address is being resolved, the kernel may miss that it was found; it looks again
 * when timeout_ms is over.
 */
int mrf_vconn_resolve(struct mrf_vconn *conn, const struct sockaddr *src,
		      const struct sockaddr *dst, int timeout_ms, unsigned ack_timeout);
int mrf_vconn_route(struct mrf_vconn *conn, int timeout_ms);

/*
 * retry: after 1..6 resends without an answer comes MRF_WC_TIMEOUT (rxe takes 7 as
 * endless).
 */
int mrf_vconn_connect(struct mrf_vconn *conn, const void *data, size_t len, unsigned retry);
int mrf_vconn_accept(struct mrf_vconn *conn, const void *data, size_t len);
void mrf_vconn_reject(struct mrf_vconn *conn, const void *data, size_t len);
/*
 * Tells the peer and puts the queue pair into error: everything posted is flushed, unless the device
 * refuses that, whose error is returned.
 */
int mrf_vconn_disconnect(struct mrf_vconn *conn);
/* The remote end's address. */
void mrf_vconn_peer_addr(const struct mrf_vconn *conn, union mrf_addr *addr);

#endif
