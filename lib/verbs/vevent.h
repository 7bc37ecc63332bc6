/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device tells of itself without being asked. */
#ifndef MRF_VERBS_VEVENT_H
#define MRF_VERBS_VEVENT_H

struct mrf_vcq;
struct mrf_vdev;

enum mrf_vdev_event_type {
	MRF_VDEV_CQ_ERR,    /* completions are lost */
	MRF_VDEV_QP_ERR,    /* a queue pair is in error */
	MRF_VDEV_GONE,	    /* the device works no longer */
	MRF_VDEV_PORT_DOWN,
	MRF_VDEV_OTHER	    /* to be told to people only */
};

struct mrf_vdev_event {
	enum mrf_vdev_event_type type;
	const char *text;	  /* for people; constant */
	const struct mrf_vcq *cq; /* CQ_ERR; it may have been closed since */
	void *owner;		  /* QP_ERR: the connection's, or NULL */
};

/* Readable when the device has something to tell. */
int mrf_vdev_event_fd(const struct mrf_vdev *dev);
/*
 * -FI_EAGAIN: there is nothing. One thread only, which is the one that closes connections: the
 * owner is good until it does.
 */
int mrf_vdev_next_event(struct mrf_vdev *dev, struct mrf_vdev_event *event);

#endif
