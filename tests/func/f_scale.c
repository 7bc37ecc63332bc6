/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Very many peers: endpoints by the hundred in one process, hundreds of connections to
 * one domain and from one endpoint, more than one completion queue has room for. Each
 * moves bytes of its own. MRFAB_SCALE=2000 in the environment makes them thousands, which
 * takes minutes in an emulated guest of 4 GiB. How long the last of them is waited for is not the
 * subject; the machine may be slow.
 */
#include "harness.h"
#include <sys/resource.h>
#include <unistd.h>

#define DOMAINS 10
#define EACH 200 /* at most */
#define MANY (DOMAINS * EACH)
#define USUAL 100
#define LEN 8

static __attribute__((constructor)) void patience(void)
{
	func_caps = FI_MSG;
	setenv("FI_MRFAB_CONN_TIMEOUT", "60000", 0);
}

static int each; /* endpoints of a domain */
static int many; /* of all */

/* A domain of this process with many endpoints, which share CQ and AV. */
struct hall {
	struct fab f;
	struct fid_ep *ep[EACH];
	char name[EACH][NAME_LEN];
	fi_addr_t to; /* where they write to */
	uint8_t mem[EACH * LEN];
	struct fid_mr *mr;
};

static struct hall hall[DOMAINS];

static struct fid_ep *ep_open(struct fab *f, char *name)
{
	size_t len = NAME_LEN;
	struct fid_ep *ep;

	must_ok(fi_endpoint(f->domain, f->info, &ep, NULL));
	must_ok(fi_ep_bind(ep, &f->av->fid, 0));
	must_ok(fi_ep_bind(ep, &f->cq->fid, FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(ep));
	must_ok(fi_getname(&ep->fid, name, &len));
	return ep;
}

static void hall_open(struct hall *h, struct env *e)
{
	static const struct fab_opt opt;

	fab_open(&h->f, e->mode, &opt);
	for (int i = 0; i < each; i++)
		h->ep[i] = ep_open(&h->f, h->name[i]);
}

static void hall_close(struct hall *h)
{
	for (int i = 0; i < each; i++)
		must_ok(fi_close(&h->ep[i]->fid));
	if (h->mr)
		must_ok(fi_close(&h->mr->fid));
	h->mr = NULL;
	fab_close(&h->f);
}

static void halls_open(struct env *e)
{
	const char *scale = getenv("MRFAB_SCALE");

	each = (scale ? atoi(scale) : USUAL) / DOMAINS;
	must(each >= 1 && each <= EACH, "MRFAB_SCALE=%s: %d to %d", scale, DOMAINS, MANY);
	many = each * DOMAINS;
	for (int i = 0; i < DOMAINS; i++)
		hall_open(&hall[i], e);
}

static void halls_close(void)
{
	for (int i = 0; i < DOMAINS; i++)
		hall_close(&hall[i]);
}

/* --- memory -------------------------------------------------------------------------------- */

/*
 * In KiB, for each: queues of the device, and the process. mrfab(7) has the sizes ("MEMORY"); these
 * are up to 8 % more.
 */
static const struct each {
	double queues, heap;
} endpoint = { 138, 15.3 }, accessed = { 75, 20.9 }, accesses = { 32, 35.5 },
  sender = { 88, 16.1 },     /* an endpoint's first line, with the queue for all of them */
	sends = { 12, 5.4 }; /* a line from a peer, and of that queue its share */

/* All receives that an endpoint has for messages, of however many peers (FI_MRFAB_RX_SLOTS). */
#define SLOTS_BYTES (512 * 16448)

/* The sizes of the device's queues that a process has mapped, in KiB. */
static long queues_kib(uint64_t pid)
{
	char path[64], line[512];
	unsigned long from, to, all = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%lu/maps", (unsigned long)pid);
	f = fopen(path, "re");
	must(f, "%s cannot be read", path);
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, "/uverbs") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			all += to - from;
	}
	fclose(f);
	return (long)(all >> 10);
}

static uint64_t heap_of(struct peer *t)
{
	struct ctl m = { .cmd = CTL_HEAP };

	if (!t)
		return heap_used();
	peer_ask(t, &m);
	return m.a[0];
}

struct memory {
	long queues;
	uint64_t heap;
};

/* Of this process (NULL), or of a peer on this host. */
static struct memory memory_of(struct peer *t)
{
	return (struct memory){ queues_kib(t ? t->os_pid : (uint64_t)getpid()), heap_of(t) };
}

/*
 * What came between for each of n is no more than that, with the kernel's objects left out.
 */
static void memory_at_most(const char *what, long n, const struct memory *before, struct peer *t,
			   const struct each *most)
{
	struct memory now = memory_of(t);
	double queues = (double)(now.queues - before->queues) / (double)n;
	double heap = ((double)now.heap - (double)before->heap) / 1024 / (double)n;

	dprintf(STDOUT_FILENO, "# memory per %s: %.1f KiB (queues %.1f, process %.1f)\n", what,
		queues + heap, queues, heap);
	must(queues <= most->queues || sysconf(_SC_PAGESIZE) > 4096, "queues of %.1f KiB per %s",
	     queues, what);
	must(heap <= most->heap, "%.1f KiB of the process per %s", heap, what);
}

/* --- many ---------------------------------------------------------------------------------- */

/* False: it has no place for another operation before some are done. */
static bool post_write(struct fid_ep *ep, const void *src, fi_addr_t to, uint64_t addr,
		       uint64_t key)
{
	ssize_t rc = fi_write(ep, src, LEN, NULL, to, addr, key, NULL);

	if (rc != -FI_EAGAIN)
		must_ok(rc);
	return !rc;
}

/* Takes in what has completed; returns how many, all of them without an error. */
static int completed(struct fab *f)
{
	struct done d;
	int n = 0;

	while (fab_poll(f, &d)) {
		must(!d.err, "err %d: %s", d.err, d.text);
		n++;
	}
	return n;
}

/* Each endpoint of the halls writes its LEN bytes of the pattern to its place. */
static void all_write(const struct region *r, uint64_t seed)
{
	static uint8_t src[MANY * LEN];
	int posted = 0, done = 0;

	pattern(src, seed, 0, sizeof(src));
	while (done < many) {
		/* A hall after the other, so that all agents are busy. */
		for (; posted < many; posted++) {
			struct hall *h = &hall[posted % DOMAINS];
			size_t at = (size_t)posted * LEN;

			if (!post_write(h->ep[posted / DOMAINS], src + at, h->to, r->base + at,
					r->key))
				break;
		}
		for (int i = 0; i < DOMAINS; i++)
			done += completed(&hall[i].f);
	}
	peer_want(r->peer, r->slot, r->off, (size_t)many * LEN, seed, 0);
	peer_same(r->peer, r->slot);
}

IN_MODES(MODES_ONE)

/* They are connected at the same time, so in the second round no connection is made. */
CASE(many_peers_access_one_domain)
{
	struct peer *t = target(e);
	struct memory mine, its;
	struct region r;
	int qps;

	peer_alloc(t, 0, MANY * LEN + 2 * BUF_GUARD, 1);
	r = peer_reg(t, 0, BUF_GUARD, MANY * LEN, FI_REMOTE_WRITE, 4);
	halls_open(e);
	for (int i = 0; i < DOMAINS; i++)
		hall[i].to = fab_insert(&hall[i].f, t->name);
	mine = memory_of(NULL);
	if (t->os_pid)
		its = memory_of(t);
	all_write(&r, 2);
	memory_at_most("peer that is accessed", many, &mine, NULL, &accessed);
	if (t->os_pid)
		memory_at_most("peer that accesses", many, &its, t, &accesses);
	qps = kernel_objects(t->os_pid, "qp");
	must(qps < 0 || qps >= many, "%d queue pairs for %d peers", qps, many);
	all_write(&r, 3);
	halls_close();
}

/* Endpoint i of all is number i / DOMAINS of hall i % DOMAINS; its place there is as in
 * src. */
static void write_all(struct fab *f, const fi_addr_t *to, const uint8_t *src)
{
	int posted = 0, done = 0;

	for (; done < many; done += completed(f)) {
		for (; posted < many; posted++) {
			struct hall *h = &hall[posted % DOMAINS];
			size_t at = (size_t)(posted / DOMAINS) * LEN;

			if (!post_write(f->ep, src + (size_t)posted * LEN, to[posted],
					(f->virt ? (uintptr_t)h->mem : 0) + at, 4))
				break;
		}
	}
}

static void want_all(const uint8_t *src)
{
	for (int i = 0; i < many; i++)
		must(!memcmp(hall[i % DOMAINS].mem + i / DOMAINS * LEN, src + i * LEN, LEN),
		     "other bytes at endpoint %d", i);
}

CASE(one_endpoint_accesses_many)
{
	static uint8_t src[MANY * LEN];
	static fi_addr_t to[MANY];
	struct fab *f = me(e);
	uint64_t seed;
	int i;

	halls_open(e);
	for (i = 0; i < DOMAINS; i++)
		must_ok(fi_mr_reg(hall[i].f.domain, hall[i].mem, sizeof(hall[i].mem),
				  FI_REMOTE_WRITE, 0, 4, 0, &hall[i].mr, NULL));
	for (i = 0; i < many; i++)
		to[i] = fab_insert(f, hall[i % DOMAINS].name[i / DOMAINS]);
	for (seed = 5; seed < 7; seed++) {
		pattern(src, seed, 0, sizeof(src));
		write_all(f, to, src);
		want_all(src);
	}
	halls_close();
}

/* --- messages ------------------------------------------------------------------------------ */

/* False: it has no place for another operation before some are done. */
static bool post_send(struct fid_ep *ep, const void *src, fi_addr_t to)
{
	ssize_t rc = fi_send(ep, src, LEN, NULL, to, NULL);

	if (rc != -FI_EAGAIN)
		must_ok(rc);
	return !rc;
}

static void all_send(const uint8_t *src)
{
	int posted = 0, done = 0;

	while (done < many) {
		for (; posted < many; posted++) {
			struct hall *h = &hall[posted % DOMAINS];

			if (!post_send(h->ep[posted / DOMAINS], src + posted * LEN, h->to))
				break;
		}
		for (int i = 0; i < DOMAINS; i++)
			done += completed(&hall[i].f);
	}
}

/* Once over new lines, and once over those that are there. */
CASE(many_peers_send_to_one_endpoint)
{
	static uint8_t src[MANY * LEN];
	struct peer *t = target(e);
	struct memory mine, its;
	struct done d;

	peer_alloc(t, 0, 2 * MANY * LEN + 2 * BUF_GUARD, 1);
	halls_open(e);
	for (int i = 0; i < DOMAINS; i++)
		hall[i].to = fab_insert(&hall[i].f, t->name);
	pattern(src, 2, 0, sizeof(src));
	mine = memory_of(NULL);
	if (t->os_pid)
		its = memory_of(t);
	all_send(src);
	memory_at_most("endpoint that sends", many, &mine, NULL, &sender);
	if (t->os_pid) {
		its.heap += SLOTS_BYTES;
		memory_at_most("peer that sends", many, &its, t, &sends);
	}
	all_send(src);
	peer_recv(t, 0, BUF_GUARD, LEN, 2 * (uint64_t)many);
	for (int i = 0; i < 2 * many; i++)
		must(peer_done(t, &d, SOON) && !d.err && d.len == LEN, "message %d", i);
	halls_close();
}

static void recv_all(int n)
{
	for (int i = 0; i < n; i++) {
		struct hall *h = &hall[i % DOMAINS];

		must_ok((int)fi_recv(h->ep[i / DOMAINS], h->mem + i / DOMAINS * LEN, LEN, NULL,
				     FI_ADDR_UNSPEC, NULL));
	}
}

static void send_all(struct fab *f, const fi_addr_t *to, const uint8_t *src)
{
	int posted = 0, done = 0, got = 0;

	while (done < many || got < many) {
		while (posted < many && post_send(f->ep, src + posted * LEN, to[posted]))
			posted++;
		done += completed(f);
		for (int i = 0; i < DOMAINS; i++)
			got += completed(&hall[i].f);
	}
}

CASE(one_endpoint_sends_to_many)
{
	static uint8_t src[MANY * LEN];
	static fi_addr_t to[MANY];
	struct fab *f = me(e);

	halls_open(e);
	for (int i = 0; i < many; i++)
		to[i] = fab_insert(f, hall[i % DOMAINS].name[i / DOMAINS]);
	for (uint64_t seed = 5; seed < 7; seed++) {
		pattern(src, seed, 0, sizeof(src));
		recv_all(many);
		send_all(f, to, src);
		want_all(src);
	}
	halls_close();
}

/* Most of them idle, as those of a program are that keeps one for each of its threads. */
CASE(two_hundred_endpoints_in_one_process)
{
	struct peer *t = target(e);
	struct hall *h = &hall[0];
	static const struct fab_opt opt;
	struct memory before;
	struct region r;
	uint8_t src[LEN];

	peer_alloc(t, 0, LEN + 2 * BUF_GUARD, 1);
	r = peer_reg(t, 0, BUF_GUARD, LEN, FI_REMOTE_WRITE, 4);
	fab_open(&h->f, e->mode, &opt);
	before = memory_of(NULL);
	for (each = 0; each < EACH; each++)
		h->ep[each] = ep_open(&h->f, h->name[each]);
	memory_at_most("endpoint", EACH, &before, NULL, &endpoint);
	h->to = fab_insert(&h->f, t->name);
	pattern(src, 8, 0, LEN);
	must(post_write(h->ep[EACH - 1], src, h->to, r.base, r.key), "no place in the last one");
	while (!completed(&h->f))
		;
	peer_want(t, 0, r.off, LEN, 8, 0);
	peer_same(t, 0);
	hall_close(h);
}

/* --- the limit of descriptors ---------------------------------------------------------------- */

static struct rlimit limit_full(void)
{
	struct rlimit was;
	int next = dup(STDIN_FILENO);

	must(next >= 0 && !getrlimit(RLIMIT_NOFILE, &was), "errno %d", errno);
	close(next);
	must(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)next, was.rlim_max }), "errno %d",
	     errno);
	return was;
}

static void one_write(struct fab *f, struct fid_ep *ep, fi_addr_t to, struct region *r)
{
	static uint8_t src[LEN];

	must(post_write(ep, src, to, r->base, r->key), "no place for one write");
	while (!completed(f))
		;
}

/*
 * No more descriptors: no more endpoints. Those that there are make and accept connections,
 * and go on with what they have.
 */
CASE(limit_of_descriptors_is_named_and_harms_no_peer)
{
	struct peer *t = target(e);
	struct fab *f = me(e);
	struct hall *h = &hall[0];
	uint8_t *at = h->mem;
	fi_addr_t to = fab_insert(f, t->name);
	struct region r, here = { .key = 4 };
	struct rlimit was;
	struct fid_ep *ep;

	peer_alloc(t, 0, LEN + 2 * BUF_GUARD, 1);
	r = peer_reg(t, 0, BUF_GUARD, LEN, FI_REMOTE_WRITE, 4);
	each = 1;
	hall_open(h, e);
	h->to = fab_insert(&h->f, t->name);
	must_ok(fi_mr_reg(h->f.domain, at, LEN, FI_REMOTE_WRITE, 0, 4, 0, &h->mr, NULL));
	here.base = f->virt ? (uintptr_t)at : 0;
	one_write(f, f->ep, to, &r);

	was = limit_full();
	log_mark();
	must_be(fi_endpoint(f->domain, f->info, &ep, NULL), -FI_EMFILE);
	must(log_has("RLIMIT_NOFILE"), "the limit is not named");
	one_write(f, f->ep, to, &r);
	one_write(&h->f, h->ep[0], h->to, &r);
	one_write(f, f->ep, fab_insert(f, h->name[0]), &here);

	must(!setrlimit(RLIMIT_NOFILE, &was), "errno %d", errno);
	must_ok(fi_endpoint(f->domain, f->info, &ep, NULL));
	must_ok(fi_close(&ep->fid));
	hall_close(h);
}
