/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages from p.a to p.b, whose bytes are in memory of a device at one end or both. Each file includes
 * it once.
 */
#ifndef MSG_DEVICE_H
#define MSG_DEVICE_H

#include <rdma/fi_tagged.h>
#include "buf/stage_ring.h"
#include "device_fixture.h"
#include "ep/msg/inbox.h"

#define MSG_CAPS (FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_RMA | FI_HMEM)
#define SHORT 16384u
#define LEN ((MRF_STAGE_CHUNKS + 1) * MRF_STAGE_CHUNK + 1000) /* longer than the places of a line */
#define ROOM (4 * LEN)

/* Memory of one end. */
struct end {
	struct node *node;
	bool device;
	uint8_t *mem;
	struct fid_mr *mr; /* NULL: it needs none */
};

static struct end out = { .node = &p.a }, in = { .node = &p.b };
static uint8_t *want, *got;

int __real_mrf_mr_device_get(const struct mrf_mr_space *space, const void *desc, void *to,
			     uint64_t addr, uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_get(const struct mrf_mr_space *space, const void *desc, void *to,
			     uint64_t addr, uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_get(const struct mrf_mr_space *space, const void *desc, void *to,
			     uint64_t addr, uint64_t len, struct mrf_hmem_why *why)
{
	pass();
	return __real_mrf_mr_device_get(space, desc, to, addr, len, why);
}

int __real_mrf_mr_device_put(const struct mrf_mr_space *space, const void *desc, uint64_t addr,
			     const void *from, uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_put(const struct mrf_mr_space *space, const void *desc, uint64_t addr,
			     const void *from, uint64_t len, struct mrf_hmem_why *why);
int __wrap_mrf_mr_device_put(const struct mrf_mr_space *space, const void *desc, uint64_t addr,
			     const void *from, uint64_t len, struct mrf_hmem_why *why)
{
	pass();
	return __real_mrf_mr_device_put(space, desc, addr, from, len, why);
}

/* --- the two ends ------------------------------------------------------------------------- */

static void end_open(struct end *end, bool device, bool local, uint64_t access)
{
	end->device = device;
	end->mem = device ? rig->make(RT_DEVICE, 0, ROOM) : pages(ROOM);
	end->mr = NULL;
	if (device)
		end->mr = reg_device(end->node, end->mem, ROOM, access, 1000);
	else if (local)
		end->mr = node_reg(end->node, end->mem, ROOM, access, 1001);
}

static void end_mr_close(struct end *end)
{
	if (end->mr)
		must_close(&end->mr->fid);
	end->mr = NULL;
}

static void end_close(struct end *end)
{
	end_mr_close(end);
	if (end->device)
		rig->unmake(RT_DEVICE, end->mem);
}

static inline void *desc_of(const struct end *end)
{
	return end->mr ? fi_mr_desc(end->mr) : NULL;
}

static void end_put(struct end *end, size_t at, const void *from, size_t len)
{
	if (end->device)
		rig->put(end->mem + at, from, len);
	else
		memcpy(end->mem + at, from, len);
}

static inline void end_get(const struct end *end, size_t at, void *to, size_t len)
{
	if (end->device)
		rig->get(to, end->mem + at, len);
	else
		memcpy(to, end->mem + at, len);
}

/* Which of them are devices. */
enum ends { SENDER = 1, RECEIVER, BOTH };
#define ENDS 3

static void open_ends(int runtime, enum ends ends, int mode)
{
	open_pair(runtime, mode, MSG_CAPS);
	want = pages(ROOM);
	got = pages(ROOM);
	end_open(&out, ends & SENDER, mode & FI_MR_LOCAL, FI_SEND);
	end_open(&in, ends & RECEIVER, mode & FI_MR_LOCAL, FI_RECV);
	fill(want, ROOM, 7);
	end_put(&out, 0, want, ROOM);
	end_put(&in, 0, got, ROOM);
}

static void close_ends(void)
{
	end_close(&out);
	end_close(&in);
	pair_close(&p);
}

/* --- messages ----------------------------------------------------------------------------- */

static ssize_t send_at(size_t at, size_t len)
{
	return fi_send(p.a.ep, out.mem + at, len, desc_of(&out), p.to, out.mem + at);
}

static ssize_t recv_at(size_t at, size_t len)
{
	return fi_recv(p.b.ep, in.mem + at, len, desc_of(&in), FI_ADDR_UNSPEC, in.mem + at);
}

/* What was sent from there is where it was received. */
static inline bool is_there(size_t from, size_t at, size_t len)
{
	end_get(&in, at, got + at, len);
	return !memcmp(got + at, want + from, len);
}

static inline void want_got(size_t at, size_t len)
{
	struct fi_cq_data_entry entry = want_ok(&p.b, in.mem + at);

	ck_assert_uint_eq(entry.flags, FI_MSG | FI_RECV);
	ck_assert_uint_eq(entry.len, len);
	ck_assert_msg(is_there(at, at, len), "%zu bytes", len);
}

static inline void want_sent(size_t at)
{
	struct fi_cq_data_entry entry = want_ok(&p.a, out.mem + at);

	ck_assert_uint_eq(entry.flags, FI_MSG | FI_SEND);
}

/* How many messages p.b has for which there was no receive. */
static inline unsigned unexpected(void)
{
	struct mrf_ep *ep = node_ep(&p.b);
	unsigned n;

	mrf_lock_take(&ep->lock);
	n = ep->inbox->messages;
	mrf_lock_release(&ep->lock);
	return n;
}

static inline void erase(void)
{
	memset(got, 0, ROOM);
	end_put(&in, 0, got, ROOM);
}

static inline void one_arrives(size_t at, size_t len)
{
	erase();
	ck_assert_int_eq(recv_at(at, len), 0);
	ck_assert_int_eq(send_at(at, len), 0);
	want_got(at, len);
	want_sent(at);
}

#endif
