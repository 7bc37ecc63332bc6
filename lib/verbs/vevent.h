/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of a device. */
#ifndef MRF_VERBS_VEVENT_H
#define MRF_VERBS_VEVENT_H

struct mrf_vcq;
struct mrf_vdev;

enum mrf_vdev_event_type {
	MRF_VDEV_CQ_ERR, /* completions are lost */
	MRF_VDEV_QP_ERR, /* a queue pair is in error */
	MRF_VDEV_GONE,	 /* the device does not work any more */
	MRF_VDEV_PORT_DOWN,
	MRF_VDEV_OTHER /* of interest to people only */
};

struct mrf_vdev_event {
	enum mrf_vdev_event_type type;
	const char *text;	  /* for people; constant */
	const struct mrf_vcq *cq; /* CQ_ERR; the queue may have been closed since */
	void *owner;		  /* QP_ERR: the connection's owner, or NULL */
};

/* Readable when the device has an event. */
int mrf_vdev_event_fd(const struct mrf_vdev *dev);
/*
 * -FI_EAGAIN: there is no event. Called only by the thread that closes connections;
 * event->owner is valid until that thread closes the connection.
 */
int mrf_vdev_next_event(struct mrf_vdev *dev, struct mrf_vdev_event *event);

#endif
