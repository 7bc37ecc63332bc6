/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between two ends in this process and thread, carried in different ways. For
 * cost_message.c.
 */
#ifndef BENCH_MESSAGE_H
#define BENCH_MESSAGE_H

#include "bench.h"
#include "fab.h"

#define MESSAGE_MAX ((size_t)4 << 20) /* bytes of the longest */
#define MESSAGE_DEPTH 64	      /* in flight at most */

/*
 * An end. Every receive and every send uses the same buffer, as only time is measured. The calls
 * end the process if something fails.
 */
struct message_end {
	void *of; /* of the way that carries them */
	void (*post)(struct message_end *end, size_t len);
	int (*send)(struct message_end *end, size_t len); /* 0: there is no room just now */
	unsigned (*poll)(struct message_end *end);	  /* so many have come */
	uint64_t tag; /* of libraries: 0, not tagged; otherwise of what is sent and received */
};

/* The first call, because it starts a thread for a moment. */
void message_open_raw(struct message_end end[2]);
/* Two endpoints that know each other. A negative FI_E*: the library has no such endpoint. */
int message_open_fab(struct message_end end[2], const struct fab_lib *lib, int mr_mode);
/* So many receives more at this end, of tags from `first` on. */
void message_post_others(struct message_end *end, uint64_t first, unsigned n);

#endif
