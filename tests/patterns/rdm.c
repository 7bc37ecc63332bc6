/* SPDX-License-Identifier: BSD-2-Clause */
/* One message at a time: what the shortest tests do, and ping-pong in all its forms. */
#include <sys/mman.h>
#include "side.h"

static const size_t sizes[] = { 1, 64, 256, 1024, 4096, 8192, LARGEST };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define ROUNDS 5

static void ping(struct side *s, size_t len, unsigned seed)
{
	fill(s->out, len, seed);
	if (len < s->info->tx_attr->inject_size)
		inject(s, len);
	else
		tx(s, len);
}

static void pong(struct side *s, size_t len, unsigned seed)
{
	queue_wait(s, &s->rx, s->rx.posted);
	same(s->in, len, seed);
	post_recv(s, LARGEST);
}

static void rounds(struct side *s)
{
	for (unsigned i = 0; i < SIZES * ROUNDS; i++) {
		size_t len = sizes[i / ROUNDS];

		if (i % ROUNDS == 0)
			sync_sides(s);
		if (s->client)
			ping(s, len, i);
		pong(s, len, i + s->client);
		if (!s->client)
			ping(s, len, i + 1);
	}
}

static void pingpong(struct side *s)
{
	side_start(s, FI_MSG);
	rounds(s);
	side_end(s);
}

static void tagged_pingpong(struct side *s)
{
	side_start(s, FI_TAGGED);
	rounds(s);
	side_end(s);
}

static void pingpong_asleep(struct side *s)
{
	s->wait = FI_WAIT_UNSPEC;
	pingpong(s);
}

static void pingpong_by_descriptor(struct side *s)
{
	s->wait = FI_WAIT_FD;
	pingpong(s);
}

static void cntr_pingpong(struct side *s)
{
	s->by_counter = true;
	side_start(s, FI_MSG);
	rounds(s);
	side_end(s);
}

static void cntr_pingpong_asleep(struct side *s)
{
	s->wait = FI_WAIT_UNSPEC;
	cntr_pingpong(s);
}

static void tagged_cntr_pingpong(struct side *s)
{
	s->by_counter = true;
	side_start(s, FI_TAGGED);
	rounds(s);
	side_end(s);
}

/* Counters beside completions: each has counted what the other has written. */
static void both_count(struct side *s)
{
	s->counted = true;
	pingpong_asleep(s);
}

static void greeting(struct side *s)
{
	static const char hello[] = "Hello from Client!";

	if (s->client) {
		memcpy(s->out, hello, sizeof(hello));
		tx(s, sizeof(hello));
		return;
	}
	queue_wait(s, &s->rx, s->rx.posted);
	must(!strcmp(s->in, hello), "another greeting");
	post_recv(s, LARGEST);
}

static void rdm(struct side *s)
{
	side_start(s, FI_MSG);
	greeting(s);
	side_end(s);
}

/* The server does not ask for the address that it inserts. */
static void rdm_table(struct side *s)
{
	side_hints(s, FI_MSG);
	s->hints->domain_attr->av_type = FI_AV_TABLE;
	rdm(s);
}

/* Without local registration, as programs that were written for sockets. */
static void rdm_plain(struct side *s)
{
	side_hints(s, FI_MSG);
	s->hints->domain_attr->mr_mode = 0;
	rdm(s);
}

/*
 * fi_pingpong and others close the region in which they have a receive posted, before the endpoint
 * and before the last message.
 */
static void region_closed_first(struct side *s)
{
	side_start(s, FI_MSG);
	greeting(s);
	sync_sides(s);
	if (s->mr)
		must_ok(fi_close(&s->mr->fid));
	s->mr = NULL;
	side_close(s);
}

/* --- fi_unmap_mem ----------------------------------------------------------------------------------------- */

static char *pages_new(void)
{
	char *mem =
		mmap(NULL, 2 * LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(mem != MAP_FAILED, "mmap");
	return mem;
}

/* Each message has pages of its own, at addresses that others had before. */
static void unmap_one(struct side *s, unsigned i)
{
	char *out = pages_new(), *in = pages_new();

	POST(s, &s->rx, fi_recv(s->ep, in, LARGEST, NULL, 0, &s->rx.ctx));
	oob_sync(s);
	fill(out, LARGEST, i);
	POST(s, &s->tx, fi_send(s->ep, out, LARGEST, NULL, s->peer, &s->tx.ctx));
	queue_wait(s, &s->tx, s->tx.posted);
	munmap(out, 2 * LARGEST);
	queue_wait(s, &s->rx, s->rx.posted);
	same(in, LARGEST, i);
	munmap(in, 2 * LARGEST);
}

static void unmap_mem(struct side *s)
{
	s->nothing_posted = true;
	side_hints(s, FI_MSG);
	s->hints->domain_attr->mr_mode = BASIC | FI_MR_ENDPOINT;
	side_open(s);
	side_meet_oob(s);
	for (unsigned i = 0; i < 20; i++)
		unmap_one(s, i);
	side_close(s);
}

/* The name in too small a buffer, as much of it as has room there. */
static void name_in_parts(struct side *s)
{
	char whole[64], part[64] = { 0 };
	size_t len = 0, full;

	side_hints(s, FI_MSG);
	side_open(s);
	must(fi_getname(&s->ep->fid, NULL, &len) == -FI_ETOOSMALL && len, "no room at all");
	full = len;
	must_ok(fi_getname(&s->ep->fid, whole, &len));
	must(len == full, "%zu bytes, then %zu", full, len);
	len = 4;
	must(fi_getname(&s->ep->fid, part, &len) == -FI_ETOOSMALL && len == full,
	     "4 bytes of room");
	must(!memcmp(part, whole, 4) && !part[4] && !part[5], "another part of the name");
	side_close(s);
}

const struct pattern rdm_patterns[] = {
	{ "rdm", rdm, rdm, false },
	{ "rdm_table", rdm_table, rdm_table, false },
	{ "rdm_plain", rdm_plain, rdm_plain, false },
	{ "rdm_pingpong", pingpong, pingpong, true },
	{ "rdm_pingpong_asleep", pingpong_asleep, pingpong_asleep, false },
	{ "rdm_pingpong_by_descriptor", pingpong_by_descriptor, pingpong_by_descriptor, false },
	{ "rdm_tagged_pingpong", tagged_pingpong, tagged_pingpong, false },
	{ "rdm_cntr_pingpong", cntr_pingpong, cntr_pingpong, true },
	{ "rdm_cntr_pingpong_asleep", cntr_pingpong_asleep, cntr_pingpong_asleep, false },
	{ "rdm_tagged_cntr_pingpong", tagged_cntr_pingpong, tagged_cntr_pingpong, false },
	{ "rdm_pingpong_counted", both_count, both_count, false },
	{ "region_closed_first", region_closed_first, region_closed_first, true },
	{ "unmap_mem", unmap_mem, unmap_mem, false },
	{ "name_in_parts", name_in_parts, NULL, false },
	{ NULL, NULL, NULL, false },
};
