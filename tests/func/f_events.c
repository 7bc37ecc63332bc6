/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters bound to regions, and the order in which things close. The driver owns region and
 * counters; two peers write. What the harness cannot have a peer do the driver does to
 * itself, through its own endpoint.
 */
#include "harness.h"

#define SIZE (1024 * 1024ul)
#define SRC 65536ul /* of a peer: what it writes from, again and again */
#define WRITERS 2

struct scene {
	struct env *e;
	struct fab *f;
	struct peer *p[WRITERS];
	fi_addr_t to[WRITERS]; /* the driver's endpoint, as they call it */
	struct buf mem;
	struct fid_mr *mr;
	struct fid_cntr *cntr;
	struct fid_ep *ep; /* that the region is bound to, if it is to one */
};

static struct fid_cntr *open_cntr(struct scene *s)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;

	must_ok(fi_cntr_open(s->f->domain, &attr, &cntr, NULL));
	return cntr;
}

/* In the same domain, with the same queues; the writers write to this one. */
static void open_second(struct scene *s)
{
	char name[NAME_LEN];
	size_t len = sizeof(name);

	must_ok(fi_endpoint(s->f->domain, s->f->info, &s->ep, NULL));
	must_ok(fi_ep_bind(s->ep, &s->f->av->fid, 0));
	must_ok(fi_ep_bind(s->ep, &s->f->cq->fid, FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(s->ep));
	must_ok(fi_getname(&s->ep->fid, name, &len));
	for (int i = 0; i < WRITERS; i++)
		s->to[i] = peer_insert(s->p[i], name, len);
}

static struct fid_mr *reg(struct scene *s, uint8_t *at, size_t len, uint64_t key)
{
	uint64_t flags = s->f->bits & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0;
	struct fid_mr *mr;

	must_ok(fi_mr_reg(s->f->domain, at, len, REMOTE_RW, 0, key, flags, &mr, NULL));
	return mr;
}

/* What the mode demands after the counters were bound. */
static void ready(struct scene *s, struct fid_mr *mr)
{
	if (s->f->bits & FI_MR_ENDPOINT)
		must_ok(fi_mr_bind(mr, &s->ep->fid, 0));
	if (s->f->bits & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT))
		must_ok(fi_mr_enable(mr));
	if (s->f->bits & FI_MR_MMU_NOTIFY)
		must_ok(fi_mr_refresh(mr, NULL, 0, 0));
}

static void counted(struct scene *s)
{
	s->mr = reg(s, s->mem.mem, s->mem.size, 1);
	s->cntr = open_cntr(s);
	must_ok(fi_mr_bind(s->mr, &s->cntr->fid, FI_REMOTE_WRITE));
	ready(s, s->mr);
}

static void scene_open(struct scene *s, struct env *e, size_t size)
{
	*s = (struct scene){ .e = e, .f = me(e) };
	for (unsigned i = 0; i < WRITERS; i++) {
		s->p[i] = peer(e, i);
		s->to[i] = peer_insert(s->p[i], s->f->name, s->f->name_len);
		peer_alloc(s->p[i], 0, SRC, 5 + i);
	}
	if (s->f->bits & FI_MR_ENDPOINT)
		open_second(s);
	buf_open(&s->mem, size, 1);
	counted(s);
}

static void close_fid(struct fid *fid)
{
	if (fid)
		must_ok(fi_close(fid));
}

/* In the order that the version wants. */
static void counted_close(struct scene *s)
{
	bool region_first = FI_VERSION_GE(s->f->mode->api, FI_VERSION(2, 3));

	if (region_first)
		close_fid(&s->mr->fid);
	close_fid(&s->cntr->fid);
	if (s->ep)
		close_fid(&s->ep->fid);
	if (!region_first)
		close_fid(&s->mr->fid);
	s->ep = NULL;
}

static void scene_close(struct scene *s)
{
	counted_close(s);
	buf_close(&s->mem);
}

static uint64_t addr_of(const struct scene *s, size_t off)
{
	return (s->f->virt ? (uint64_t)(uintptr_t)s->mem.mem : 0) + off;
}

/* Writer i writes count times len bytes from off of the region on, one after the other. */
static struct peer_rma rma(const struct scene *s, int i, size_t off, size_t len, uint64_t count)
{
	return (struct peer_rma){ .len = len,
				  .to = s->to[i],
				  .addr = addr_of(s, off),
				  .key = fi_mr_key(s->mr),
				  .count = count };
}

/* What the first count of these leave behind. */
static void want_writes(struct scene *s, int i, size_t off, size_t len, uint64_t count)
{
	size_t from = 0;

	for (uint64_t n = 0; n < count; n++) {
		buf_want(&s->mem, off, len, 5 + (uint64_t)i, from);
		off += len;
		from = from + 2 * len > SRC ? 0 : from + len;
	}
}

static void same(const struct scene *s)
{
	must(!buf_diff(&s->mem), "own memory: %s", buf_diff(&s->mem));
}

static int writes(struct scene *s, int i, size_t off, size_t len, uint64_t count)
{
	struct peer_rma r = rma(s, i, off, len, count);
	int err = peer_rma(s->p[i], &r);

	if (!err)
		want_writes(s, i, off, len, count);
	return err;
}

/* The counter gets there, and stays there. */
static void must_count(struct scene *s, struct fid_cntr *cntr, uint64_t n)
{
	(void)s;
	must_ok(fi_cntr_wait(cntr, n, SOON));
	nap(20);
	must(fi_cntr_read(cntr) == n, "counted %lu instead of %lu",
	     (unsigned long)fi_cntr_read(cntr), (unsigned long)n);
	must(fi_cntr_readerr(cntr) == 0, "errors are counted");
}

/* --- counting ---------------------------------------------------------------------- */

IN_MODES(MODE(MODE_EVENT) | MODE(MODE_EVENT_NATIVE) | MODE(MODE_EVENT_FLAG))

CASE(ten_thousand_writes_of_two_peers_count_ten_thousand)
{
	struct peer_rma r;
	struct scene s;

	scene_open(&s, e, SIZE);
	for (int i = 0; i < WRITERS; i++) {
		r = rma(&s, i, (size_t)i * SIZE / 2, 64, 5000);
		peer_rma_start(s.p[i], &r);
	}
	for (int i = 0; i < WRITERS; i++) {
		must_ok(peer_rma_end(s.p[i]));
		want_writes(&s, i, (size_t)i * SIZE / 2, 64, 5000);
	}
	must_count(&s, s.cntr, 10000);
	same(&s);
	fab_quiet(s.f);
	scene_close(&s);
}

#define ALL_EVENT                                                             \
	(MODE(MODE_EVENT) | MODE(MODE_EVENT_NATIVE) | MODE(MODE_EVENT_FLAG) | \
	 MODE(MODE_EVENT_NOTIFY) | MODE(MODE_EVENT_ENDPOINT) | MODE(MODE_EVENT_2_3))

IN_MODES(ALL_EVENT)

CASE(reads_refused_and_empty_accesses_do_not_count)
{
	struct peer_rma r;
	struct scene s;

	scene_open(&s, e, SIZE);
	must_ok(writes(&s, 0, 100, 1000, 1));
	must_count(&s, s.cntr, 1);
	r = rma(&s, 0, 0, 500, 20);
	r.read = true;
	must_ok(peer_rma(s.p[0], &r));
	peer_fill(s.p[0], 0, 5);
	r = rma(&s, 0, 10, 0, 3);
	must_ok(peer_rma(s.p[0], &r));
	r = rma(&s, 0, SIZE - 99, 100, 1);
	must_be(peer_rma(s.p[0], &r), FI_EACCES);
	r = rma(&s, 1, 0, 100, 1);
	r.key += 1;
	must_be(peer_rma(s.p[1], &r), FI_EKEYREJECTED);
	must_count(&s, s.cntr, 1);
	must_ok(writes(&s, 1, 4096, 1, 1));
	must_count(&s, s.cntr, 2);
	same(&s);
	scene_close(&s);
}

CASE(a_thread_that_waits_for_the_count_wakes)
{
	struct peer_rma r;
	struct scene s;
	long start;

	scene_open(&s, e, SIZE);
	must_be(fi_cntr_wait(s.cntr, 1, 50), -FI_ETIMEDOUT);
	r = rma(&s, 0, 0, 100, 20);
	start = now_ms();
	peer_rma_start(s.p[0], &r);
	/* Nothing else is called meanwhile. */
	must_ok(fi_cntr_wait(s.cntr, 20, SOON));
	must(now_ms() - start < SOON / 2, "woke after %ld ms", now_ms() - start);
	must_ok(peer_rma_end(s.p[0]));
	want_writes(&s, 0, 0, 100, 20);
	must_count(&s, s.cntr, 20);
	same(&s);
	scene_close(&s);
}

IN_MODES(MODE(MODE_EVENT) | MODE(MODE_EVENT_NATIVE) | MODE(MODE_EVENT_FLAG))

CASE(several_counters_on_a_region_and_several_regions_on_a_counter)
{
	struct fid_cntr *both, *own;
	struct fid_mr *other;
	struct peer_rma r;
	struct scene s;

	scene_open(&s, e, SIZE);
	counted_close(&s);
	both = open_cntr(&s);
	own = open_cntr(&s);
	s.cntr = open_cntr(&s);
	s.mr = reg(&s, s.mem.mem, SIZE / 2, 1);
	must_ok(fi_mr_bind(s.mr, &s.cntr->fid, FI_REMOTE_WRITE));
	must_ok(fi_mr_bind(s.mr, &both->fid, FI_REMOTE_WRITE));
	ready(&s, s.mr);
	/* The same bytes may be in both. */
	other = reg(&s, s.mem.mem + 4096, SIZE / 2, 2);
	must_ok(fi_mr_bind(other, &own->fid, FI_REMOTE_WRITE));
	must_ok(fi_mr_bind(other, &both->fid, FI_REMOTE_WRITE));
	ready(&s, other);
	must_ok(writes(&s, 0, 0, 100, 7));
	r = rma(&s, 1, SIZE / 4, 100, 5);
	r.key = fi_mr_key(other);
	r.addr = addr_of(&s, SIZE / 4) - (s.f->virt ? 0 : 4096);
	must_ok(peer_rma(s.p[1], &r));
	want_writes(&s, 1, SIZE / 4, 100, 5);
	must_count(&s, s.cntr, 7);
	must_count(&s, own, 5);
	must_count(&s, both, 12);
	same(&s);
	must_ok(fi_close(&own->fid));
	must_ok(fi_close(&both->fid));
	must_ok(fi_close(&other->fid));
	scene_close(&s);
}

CASE(wrong_bindings_of_counters_are_refused)
{
	struct fid_cntr *late;
	struct scene s;

	scene_open(&s, e, SIZE);
	late = open_cntr(&s);
	log_mark();
	must_be(fi_mr_bind(s.mr, &late->fid, 0), -FI_EBADFLAGS);
	must_be(fi_mr_bind(s.mr, &late->fid, FI_REMOTE_READ), -FI_EBADFLAGS);
	must_be(fi_mr_bind(s.mr, &late->fid, FI_REMOTE_WRITE | FI_REMOTE_READ), -FI_EBADFLAGS);
	must(log_has("FI_REMOTE_WRITE"), "the line does not say which flag it takes");
	must(fi_mr_bind(s.mr, &s.cntr->fid, FI_REMOTE_WRITE) < 0, "bound twice");
	if (s.f->bits & FI_MR_RMA_EVENT)
		must_be(fi_mr_bind(s.mr, &late->fid, FI_REMOTE_WRITE), -FI_EOPBADSTATE);
	else
		must_ok(fi_mr_bind(s.mr, &late->fid, FI_REMOTE_WRITE));
	must_ok(writes(&s, 0, 0, 100, 3));
	must_count(&s, s.cntr, 3);
	must_count(&s, late, s.f->bits & FI_MR_RMA_EVENT ? 0 : 3);
	must_ok(fi_close(&late->fid));
	scene_close(&s);
}

CASE(write_that_is_split_counts_once)
{
	size_t len = 20 * 1024 * 1024; /* the device takes 8 MiB at a time */
	struct scene s;

	scene_open(&s, e, len);
	for (int i = 0; i < WRITERS; i++)
		peer_alloc(s.p[i], 0, len, 5 + (uint64_t)i);
	for (int i = 0; i < 2; i++) {
		struct peer_rma r = rma(&s, i, 0, len, 1);

		must_ok(peer_rma(s.p[i], &r));
		buf_want(&s.mem, 0, len, 5 + (uint64_t)i, 0);
		must_count(&s, s.cntr, 1 + (uint64_t)i);
	}
	same(&s);
	scene_close(&s);
}

/* --- to itself, for calls that peers of this harness do not make -------------------- */

/* So many completions of writes, and so many of data that have come; no more. */
static void self_done(struct scene *s, unsigned n, unsigned data)
{
	struct done d;

	while (n || data) {
		must(fab_done(s->f, &d, SOON), "%u writes and %u data are missing", n, data);
		must(!d.err, "err %d (%s), %s", d.err, fi_strerror(d.err), d.text);
		if (!(d.flags & FI_REMOTE_CQ_DATA)) {
			must(n--, "a completion too many");
			continue;
		}
		must(d.data == 7 && d.flags & FI_REMOTE_WRITE, "data %lx, flags %lx",
		     (unsigned long)d.data, (unsigned long)d.flags);
		must(data--, "more data than were sent");
	}
	fab_quiet(s->f);
}

CASE(write_to_several_places_counts_once_for_each_region)
{
	struct fid_cntr *second;
	struct fid_mr *other;
	struct fi_rma_iov to[6];
	struct iovec from;
	struct fi_msg_rma msg = {
		.msg_iov = &from, .iov_count = 1, .rma_iov = to, .rma_iov_count = 6, .context = to
	};
	struct scene s;
	struct buf *b;
	void *desc;

	scene_open(&s, e, SIZE);
	b = buf(e, 65536, 3);
	second = open_cntr(&s);
	other = reg(&s, s.mem.mem + SIZE / 2, SIZE / 2, 2);
	must_ok(fi_mr_bind(other, &second->fid, FI_REMOTE_WRITE));
	ready(&s, other);
	from = (struct iovec){ b->mem, 6000 };
	desc = b->desc;
	msg.desc = &desc;
	msg.addr = fab_insert(s.f, s.f->name);
	for (int i = 0; i < 6; i++) {
		to[i] = (struct fi_rma_iov){ addr_of(&s, (size_t)i * 2000), 1000, fi_mr_key(s.mr) };
		buf_want(&s.mem, (size_t)i * 2000, 1000, 3, (uint64_t)i * 1000);
	}
	must_ok(fi_writemsg(s.f->ep, &msg, FI_COMPLETION));
	fab_wait_ok(s.f, 1);
	must_count(&s, s.cntr, 1);
	/* Two of them elsewhere. */
	for (int i = 1; i < 4; i += 2) {
		size_t at = (size_t)i * 2000;

		to[i].key = fi_mr_key(other);
		to[i].addr = addr_of(&s, at) + (s.f->virt ? SIZE / 2 : 0);
		buf_want(&s.mem, SIZE / 2 + at, 1000, 3, (uint64_t)i * 1000);
	}
	must_ok(fi_writemsg(s.f->ep, &msg, FI_COMPLETION));
	fab_wait_ok(s.f, 1);
	must_count(&s, s.cntr, 2);
	must_count(&s, second, 1);
	same(&s);
	must_ok(fi_close(&second->fid));
	must_ok(fi_close(&other->fid));
	scene_close(&s);
}

CASE(data_of_the_application_come_with_the_count)
{
	struct scene s;
	struct buf *b;
	fi_addr_t to;
	unsigned i;

	scene_open(&s, e, SIZE);
	b = buf(e, 65536, 3);
	to = fab_insert(s.f, s.f->name);
	for (i = 0; i < 20; i++)
		must_ok(fi_writedata(s.f->ep, b->mem, 3000, b->desc, 7, to, addr_of(&s, 0),
				     fi_mr_key(s.mr), b));
	for (i = 0; i < 10; i++)
		must_ok(fi_inject_writedata(s.f->ep, b->mem, 100, 7, to, addr_of(&s, 0),
					    fi_mr_key(s.mr)));
	for (i = 0; i < 10; i++)
		must_ok(fi_inject_write(s.f->ep, b->mem, 100, to, addr_of(&s, 0), fi_mr_key(s.mr)));
	buf_want(&s.mem, 0, 3000, 3, 0);
	self_done(&s, 20, 30);
	must_count(&s, s.cntr, 40);
	/* Data without bytes: nothing was modified. */
	must_ok(fi_writedata(s.f->ep, b->mem, 0, NULL, 7, to, addr_of(&s, 0), fi_mr_key(s.mr), b));
	self_done(&s, 1, 1);
	must_count(&s, s.cntr, 40);
	same(&s);
	scene_close(&s);
}

/* --- what may come in between ------------------------------------------------------- */

IN_MODES(MODE(MODE_EVENT) | MODE(MODE_EVENT_NOTIFY))

/* Each refresh makes the kernel refuse what is on its way: it is written again. */
CASE(refreshes_in_between_neither_lose_nor_double_a_count)
{
	struct peer_rma r;
	struct scene s;
	int refreshes = 0;

	scene_open(&s, e, SIZE);
	for (int i = 0; i < WRITERS; i++) {
		r = rma(&s, i, (size_t)i * SIZE / 2, 64, 6000);
		peer_rma_start(s.p[i], &r);
	}
	while (fi_cntr_read(s.cntr) < 11900) {
		uint64_t before = fi_cntr_read(s.cntr);

		must_ok(fi_mr_refresh(s.mr, NULL, 0, 0));
		refreshes++;
		/* They get on in between. */
		must_ok(fi_cntr_wait(s.cntr, before + 100, SOON));
	}
	for (int i = 0; i < WRITERS; i++) {
		must_ok(peer_rma_end(s.p[i]));
		want_writes(&s, i, (size_t)i * SIZE / 2, 64, 6000);
	}
	must(refreshes > 10, "only %d refreshes", refreshes);
	must_count(&s, s.cntr, 12000);
	same(&s);
	scene_close(&s);
}

IN_MODES(MODE(MODE_EVENT) | MODE(MODE_EVENT_FLAG))

/* A region anew behind the same key, or another key: both ends the writers have to learn. */
CASE(new_registrations_and_reconnections_in_between_count_exactly)
{
	struct scene s;

	scene_open(&s, e, SIZE);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < WRITERS; i++)
			must_ok(writes(&s, i, (size_t)i * SIZE / 2, 100, 50));
		must_count(&s, s.cntr, 50 * WRITERS);
		must_be(writes(&s, round % WRITERS, SIZE, 100, 1), FI_EACCES);
		must_ok(writes(&s, round % WRITERS, 0, 100, 1));
		must_count(&s, s.cntr, 50 * WRITERS + 1);
		counted_close(&s);
		if (!s.f->prov_key) {
			struct peer_rma r = { .len = 8, .to = s.to[0], .key = 1, .count = 1 };

			must_be(peer_rma(s.p[0], &r), FI_EKEYREJECTED);
		}
		counted(&s);
	}
	same(&s);
	scene_close(&s);
}

/* What was acknowledged counts, though whoever wrote it is gone at once. */
CASE(writers_that_leave_have_left_their_counts)
{
	static const struct fab_opt usual;
	struct scene s;

	scene_open(&s, e, SIZE);
	for (int round = 1; round <= 5; round++) {
		struct peer_rma r = rma(&s, 0, 0, 100, 60);

		must_ok(peer_rma(s.p[0], &r));
		if (round == 5)
			peer_kill(s.p[0]);
		else
			peer_reopen(s.p[0], e->mode, &usual);
		must_count(&s, s.cntr, 60 * (uint64_t)round);
		if (round == 5)
			break;
		s.to[0] = peer_insert(s.p[0], s.f->name, s.f->name_len);
		peer_alloc(s.p[0], 0, SRC, 5);
		s.p[0]->addr = fab_insert(s.f, s.p[0]->name);
	}
	scene_close(&s);
}

/* --- closing ----------------------------------------------------------------------- */

/* Refused, and the line names what is in the way. */
static void busy(struct fid *fid, const void *culprit)
{
	char name[32];

	snprintf(name, sizeof(name), "%p", culprit);
	log_mark();
	must_be(fi_close(fid), -FI_EBUSY);
	must(log_has(name), "the line does not name %s", name);
}

/* The first n writes of len bytes are there as a whole, and nothing behind the next. */
static void whole(struct scene *s, size_t len, uint64_t n)
{
	size_t behind = (n + 1) * len;

	want_writes(s, 0, 0, len, n);
	must(!memcmp(s->mem.mem, s->mem.want, n * len), "of %lu writes not all is there",
	     (unsigned long)n);
	must(!memcmp(s->mem.mem + behind, s->mem.want + behind, SIZE - behind),
	     "something is there that nobody was told of");
}

/* At once: nobody waits for what is gone. */
static void gone(struct scene *s, uint64_t key, const char *what)
{
	struct peer_rma r = {
		.len = 8, .to = s->to[0], .addr = addr_of(s, 0), .key = key, .count = 1
	};
	long start = now_ms();
	int err = peer_rma(s->p[0], &r);

	must(err != 0, "a write after the %s was closed went through", what);
	must(now_ms() - start < SOON / 2, "refused after %ld ms", now_ms() - start);
}

/* One writer, in order: what is in its counter is what is in memory. */
static uint64_t writing(struct scene *s, size_t len)
{
	struct peer_rma r = rma(s, 0, 0, len, SIZE / len);

	peer_rma_start(s->p[0], &r);
	must_ok(fi_cntr_wait(s->cntr, 50, SOON));
	return r.key;
}

IN_MODES(MODE(MODE_EVENT_ENDPOINT))

CASE(before_api_2_3_endpoint_and_counter_close_under_way_and_then_the_region)
{
	size_t len = 32; /* so many writes that there are some left */
	struct scene s;
	uint64_t key, n;

	scene_open(&s, e, SIZE);
	must_ok(writes(&s, 0, 0, len, 1));
	busy(&s.mr->fid, s.cntr);
	key = writing(&s, len);
	busy(&s.mr->fid, s.cntr);
	must_ok(fi_close(&s.ep->fid));
	s.ep = NULL;
	n = fi_cntr_read(s.cntr) - 1;
	must(peer_rma_end(s.p[0]) != 0, "all writes went through a closed endpoint");
	whole(&s, len, n);
	busy(&s.mr->fid, s.cntr);
	must_ok(fi_close(&s.cntr->fid));
	s.cntr = NULL;
	must_ok(fi_close(&s.mr->fid));
	gone(&s, key, "endpoint");
	whole(&s, len, n);
	buf_close(&s.mem);
}

/* The counter first; the region counts no more, and works. */
CASE(counter_closed_under_way_leaves_the_region_to_its_peers)
{
	struct scene s;

	scene_open(&s, e, SIZE);
	writing(&s, 512);
	must_ok(fi_close(&s.cntr->fid));
	must_ok(peer_rma_end(s.p[0]));
	want_writes(&s, 0, 0, 512, SIZE / 512);
	same(&s);
	must_ok(writes(&s, 1, 0, 512, 10));
	same(&s);
	must_ok(fi_close(&s.ep->fid));
	s.ep = NULL;
	must_ok(fi_close(&s.mr->fid));
	buf_close(&s.mem);
}

IN_MODES(MODE(MODE_EVENT_2_3))

CASE(from_api_2_3_the_region_closes_under_way_and_then_endpoint_and_counter)
{
	size_t len = 32; /* so many writes that there are some left */
	struct scene s;
	uint64_t key, n;

	scene_open(&s, e, SIZE);
	must_ok(writes(&s, 0, 0, len, 1));
	busy(&s.ep->fid, s.mr);
	busy(&s.cntr->fid, s.mr);
	key = writing(&s, len);
	busy(&s.ep->fid, s.mr);
	busy(&s.cntr->fid, s.mr);
	must_ok(fi_close(&s.mr->fid));
	/* All that was written has been counted when the region is closed. */
	n = fi_cntr_read(s.cntr) - 1;
	must(peer_rma_end(s.p[0]) == FI_EKEYREJECTED, "not told that the region is closed");
	whole(&s, len, n);
	gone(&s, key, "region");
	must(fi_cntr_read(s.cntr) == n + 1, "counted after the region was closed");
	must_ok(fi_close(&s.cntr->fid));
	must_ok(fi_close(&s.ep->fid));
	s.ep = NULL;
	gone(&s, key, "endpoint");
	whole(&s, len, n);
	buf_close(&s.mem);
}
