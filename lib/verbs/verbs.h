/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibverbs and librdmacm, as the rest of the library sees them. Only lib/verbs includes
 * their headers; each of their errors (NULL + errno, positive errno, -1 + errno) becomes
 * -FI_E* here. Errors are not logged here except where documented, because only the
 * caller knows the purpose of the call. Queues and connections: verbs/vqp.h.
 */
#ifndef MRF_VERBS_VERBS_H
#define MRF_VERBS_VERBS_H

#include <stdbool.h>
#include <stdint.h>
#include "verbs/vdev.h"
#include "verbs/vmr.h"

/*
 * mrf_vmr_dereg for the library's own memory. False: the kernel keeps the region, which is
 * logged (MRF-W3490); until the device is closed whoever may use it reads and writes what is
 * there, so memory that peers have a right to, or receives, is left and never freed. In a file of
 * its own (vmr_drop.c), so that tests with a simulated device still use the real function.
 */
bool mrf_vmr_drop(struct mrf_vmr *vmr);

/* --- has the device sent anything a second time? vagain.c --------------------------- */

/*
 * How often a device has sent packets a second time because no acknowledgement came; the
 * target may have carried them out already.
 */
struct mrf_vdev_retries {
	bool known;
	uint64_t count;
};

/*
 * Reads the device's count up to now; not known if the kernel does not tell it. A dozen
 * system calls on a netlink socket of its own, which wait for nobody: 65,000 instructions
 * on Linux 6.1 and 6.12, be there one queue pair on the device or 2,000. So it is no
 * mrf_slow_call, and a diagnosis (ep/tx/fail.c) asks under the endpoint's lock.
 */
void mrf_vdev_retries(struct mrf_vdev *dev, struct mrf_vdev_retries *now);
/* Has the device sent anything again since then? True also if that is not known. */
bool mrf_vdev_sent_again(struct mrf_vdev *dev, const struct mrf_vdev_retries *since);

/* --- asynchronous events of a device: vevent.c --------------------------------------- */

struct mrf_vcq;

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
