/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two nodes of the fixture for messages from a to b: memory to send from, with a pattern, and as much
 * to receive into, which is zero; with FI_MR_LOCAL, a region of each.
 */
#ifndef TWO_ENDS_H
#define TWO_ENDS_H

#include <string.h>
#include "ep_fixture.h"
#include "ep/msg/inbox.h"

static struct node a, b;
static fi_addr_t to;
static uint8_t *out, *in;
static struct fid_mr *out_mr, *in_mr;

/* In which buffers are copied, may be pinned on demand, or have to be registered. */
static const int modes[] = { 0, FI_MR_ALLOCATED, FI_MR_LOCAL | FI_MR_ALLOCATED };
#define MODES ((int)MRF_ARRAY_SIZE(modes))

static inline void regs_open(size_t room)
{
	out_mr = node_reg(&a, out, room, FI_SEND, 1);
	in_mr = node_reg(&b, in, room, FI_RECV, 2);
}

static inline void ends_open(const struct node_opt *opt, size_t room)
{
	node_open(&a, opt);
	node_open(&b, opt);
	to = node_insert(&a, &b);
	out = pages(room);
	in = pages(room);
	out_mr = in_mr = NULL;
	fill(out, room, 3);
	/* Pages that are there: what has to wait for its page may complete later. */
	memset(in, 0, room);
	if (opt && opt->mr_mode & FI_MR_LOCAL)
		regs_open(room);
}

static inline void mr_close(struct fid_mr **mr)
{
	if (*mr)
		must_close(&(*mr)->fid);
	*mr = NULL;
}

static inline void a_close(void)
{
	mr_close(&out_mr);
	node_close(&a);
}

static inline void b_close(void)
{
	mr_close(&in_mr);
	node_close(&b);
}

static inline void ends_close(void)
{
	a_close();
	b_close();
}

static inline void *desc_of(struct fid_mr *mr)
{
	return mr ? fi_mr_desc(mr) : NULL;
}

/* How many offers b has that are not over. */
static inline unsigned offers(void)
{
	struct mrf_inbox *inbox = node_ep(&b)->inbox;
	unsigned n = 0;

	mrf_lock_take(&inbox->ep->lock);
	mrf_list_each (node, &inbox->origins) {
		mrf_list_each (pos, &mrf_list_entry(node, struct mrf_origin, node)->offers)
			n++;
	}
	mrf_lock_release(&inbox->ep->lock);
	return n;
}

#endif
