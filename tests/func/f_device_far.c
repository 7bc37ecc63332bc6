/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that reach memory of devices: the driver has it, and ordinary peers read, write and change
 * it. Bytes at both ends are compared, here through the runtime.
 */
#include <signal.h>
#include <unistd.h>
#include "device.h"
#include "far.h"

IN_MODES(DEVICE_MODES)

struct far {
	struct env *e;
	struct fab *f;
	struct dev d;
	struct fid_mr *mr; /* with remote rights */
	uint64_t key, base;
	struct peer *p[2];
	fi_addr_t me[2]; /* in their address vectors */
};

/* The peers' buffers are as long, from MARGIN on. */
static void far_open(struct far *s, struct env *e, unsigned peers, size_t size, uint64_t access)
{
	*s = (struct far){ .e = e, .f = me(e) };
	dev_open(s->f, &s->d, RT_DEVICE, size, 1);
	must_ok(dev_reg(s->f, s->d.b.mem, size, access, 0, &s->mr));
	s->key = fi_mr_key(s->mr);
	s->base = s->f->virt ? (uintptr_t)s->d.b.mem : 0;
	for (unsigned i = 0; i < peers; i++) {
		s->p[i] = peer(e, i);
		peer_alloc(s->p[i], 0, size + 2 * MARGIN, 10 + i);
		s->me[i] = peer_insert(s->p[i], s->f->name, s->f->name_len);
	}
}

static void far_close(struct far *s)
{
	fab_quiet(s->f);
	if (s->mr)
		must_ok(fab_mr_close(s->f, s->mr));
	dev_close(&s->d);
}

static struct peer_rma far_rma(const struct far *s, unsigned who, bool read, size_t at, size_t len)
{
	return (struct peer_rma){ read, 0, MARGIN + at, len, s->me[who], s->base + at, s->key, 1 };
}

/* What peer `who` writes is from then on wanted here. */
static void far_write(struct far *s, unsigned who, size_t at, size_t len)
{
	struct peer_rma rma = far_rma(s, who, false, at, len);

	must_ok(peer_rma(s->p[who], &rma));
	pattern(s->d.b.want + at, 10 + who, MARGIN + at, len);
}

/* Bytes that nobody has written yet. */
static void far_read(struct far *s, unsigned who, size_t at, size_t len)
{
	struct peer_rma rma = far_rma(s, who, true, at, len);

	must_ok(peer_rma(s->p[who], &rma));
	peer_want(s->p[who], 0, MARGIN + at, len, s->d.b.seed, at);
}

/* --- what works --------------------------------------------------------------------------- */

static const size_t sizes[] = {
	1, 7, 64, 4 * KIB, 16 * KIB + 1, 256 * KIB, MIB + 13, 3 * MIB + 5, 0
};

DEVICE_CASE(peers_read_and_write_device_memory)
{
	struct far s;

	for (unsigned i = 0; sizes[i]; i++) {
		far_open(&s, e, 1, 2 * sizes[i] + 100, REMOTE_RW);
		far_read(&s, 0, 3, sizes[i]);
		far_write(&s, 0, sizes[i] + 50, sizes[i]);
		dev_same(&s.d);
		peer_same(s.p[0], 0);
		far_close(&s);
		peer_reset(s.p[0]);
	}
}

/* The one writes while the other reads. */
DEVICE_CASE(two_peers_share_device_memory)
{
	struct peer_rma write, read;
	struct far s;

	far_open(&s, e, 2, 4 * MIB, REMOTE_RW);
	write = far_rma(&s, 0, false, 2 * MIB, 2 * MIB);
	read = far_rma(&s, 1, true, 0, 2 * MIB);
	peer_rma_start(s.p[0], &write);
	peer_rma_start(s.p[1], &read);
	must_ok(peer_rma_end(s.p[0]));
	must_ok(peer_rma_end(s.p[1]));
	pattern(s.d.b.want + 2 * MIB, 10, MARGIN + 2 * MIB, 2 * MIB);
	peer_want(s.p[1], 0, MARGIN, 2 * MIB, 1, 0);
	dev_same(&s.d);
	peer_same(s.p[0], 0);
	peer_same(s.p[1], 0);
	far_close(&s);
}

static uint64_t far_word(const struct far *s, size_t at)
{
	uint64_t word;

	rig->get(&word, s->d.b.mem + at, sizeof(word));
	return word;
}

/* None of 2 times 50 additions is lost, at a place of 8 bytes and beside one. */
DEVICE_CASE(peers_change_the_same_word_of_device_memory)
{
	const uint64_t zero = 0;
	struct far s;

	far_open(&s, e, 2, 64 * KIB, REMOTE_RW);
	for (size_t at = 64; at < 66; at++) {
		struct peer_atomic add = { .family = FETCH,
					   .datatype = FI_UINT64,
					   .op = FI_SUM,
					   .count = 1,
					   .addr = s.base + at,
					   .key = s.key,
					   .operand = 3,
					   .times = 50 };
		uint64_t sum = 300;

		dev_put(&s.d, at, &zero, 8);
		for (unsigned i = 0; i < 2; i++) {
			add.to = s.me[i];
			peer_atomic_start(s.p[i], &add);
		}
		for (unsigned i = 0; i < 2; i++)
			must_ok(peer_atomic_end(s.p[i], NULL, NULL));
		must(far_word(&s, at) == sum, "%llu instead of %llu",
		     (unsigned long long)far_word(&s, at), (unsigned long long)sum);
		memcpy(s.d.b.want + at, &sum, 8);
	}
	dev_same(&s.d);
	far_close(&s);
}

/* --- what goes wrong ------------------------------------------------------------------------ */

/*
 * Another peer goes on, in the other half: what the killed one had asked for last may still be
 * written.
 */
DEVICE_CASE(a_killed_peer_holds_no_device_memory)
{
	struct peer_rma rma;
	struct fab_opt opt = { 0 };
	struct peer victim = { 0 };
	struct far s;

	far_open(&s, e, 1, 8 * MIB, REMOTE_RW);
	peer_start(&victim, e->mode, &opt);
	peer_alloc(&victim, 0, 8 * MIB + 2 * MARGIN, 77);
	rma = far_rma(&s, 0, false, 0, 4 * MIB);
	rma.to = peer_insert(&victim, s.f->name, s.f->name_len);
	peer_rma_start(&victim, &rma);
	usleep(20000);
	peer_kill(&victim);
	far_read(&s, 0, 4 * MIB, MIB);
	far_write(&s, 0, 6 * MIB, MIB);
	dev_same_outside(&s.d, 0, 4 * MIB);
	peer_same(s.p[0], 0);
	far_close(&s);
}

/* A process of this machine: that is where kernel objects can be counted. */
static void stop_for_good(struct far *s, struct peer *victim, uint64_t len)
{
	struct fab_opt opt = { 0 };
	struct peer_rma rma;

	peer_start(victim, s->e->mode, &opt);
	peer_alloc(victim, 0, len + 2 * MARGIN, 77);
	rma = far_rma(s, 0, false, 0, 100);
	rma.to = peer_insert(victim, s->f->name, s->f->name_len);
	must_ok(peer_rma(victim, &rma));
	rma.len = len;
	peer_rma_start(victim, &rma);
	usleep(20000);
	must(!kill(victim->pid, SIGSTOP), "it is not there");
}

static void __attribute__((constructor)) first_group(void)
{
	case_group(0);
}

IN_MODES(MODE(15))

/* Its connection goes after 10 s, and with it what it has here; when it goes on, all is done. */
CASE(stopped_peer_holds_no_device_memory)
{
	struct peer victim = { 0 };
	struct far s;
	int before, then;

	device_load();
	far_open(&s, e, 1, 8 * MIB, REMOTE_RW);
	far_read(&s, 0, 4 * MIB, MIB);
	before = kernel_objects((uint64_t)getpid(), "mr qp");
	stop_for_good(&s, &victim, 4 * MIB);
	for (unsigned i = 0; i < 20; i++) {
		usleep(700000);
		far_read(&s, 0, 4 * MIB + i * 64 * KIB, 64 * KIB);
	}
	then = kernel_objects((uint64_t)getpid(), "mr qp");
	/* Fewer, if of another one that was killed before not everything was gone. */
	must(then > 0 && then <= before, "%d kernel objects, after %d", then, before);
	must(!kill(victim.pid, SIGCONT), "it is not there");
	must_ok(peer_rma_end(&victim));
	pattern(s.d.b.want, 77, MARGIN, 4 * MIB);
	dev_same(&s.d);
	peer_stop(&victim);
	far_close(&s);
}

/* --- regions that are closed before their endpoint -------------------------------------------- */

IN_MODES(MODE(0) | MODE(15))

DEVICE_CASE(device_memory_has_exactly_its_rights)
{
	struct peer_rma rma;
	struct far s;

	far_open(&s, e, 1, 64 * KIB, FI_REMOTE_READ);
	rma = far_rma(&s, 0, false, 0, 100);
	must(peer_rma(s.p[0], &rma) == FI_EACCES, "a write without the right");
	rma = far_rma(&s, 0, true, 64 * KIB - 99, 100);
	must(peer_rma(s.p[0], &rma) == FI_EACCES, "a read past the end");
	far_read(&s, 0, 0, 100);
	dev_same(&s.d);
	peer_same(s.p[0], 0);
	must_ok(fab_mr_close(s.f, s.mr));
	s.mr = NULL;
	rma = far_rma(&s, 0, true, 0, 100);
	must(peer_rma(s.p[0], &rma) == FI_EKEYREJECTED, "a read from a closed region");
	far_close(&s);
}

/* Nothing is copied when fi_close has returned: the memory may go. */
DEVICE_CASE(closing_ends_what_peers_do_to_device_memory)
{
	struct peer_rma rma;
	struct far s;
	int err;

	far_open(&s, e, 1, 8 * MIB, REMOTE_RW);
	rma = far_rma(&s, 0, false, 0, 8 * MIB);
	peer_rma_start(s.p[0], &rma);
	usleep(20000);
	must_ok(fab_mr_close(s.f, s.mr));
	s.mr = NULL;
	rig->unmake(RT_DEVICE, s.d.b.mem);
	s.d.b.mem = NULL;
	err = peer_rma_end(s.p[0]);
	must(!err || err == FI_EKEYREJECTED, "it ends with %d", err);
	far_close(&s);
}

/* --- local regions that are closed early: where their descriptors are what is used ------------- */

IN_MODES(MODE(15))

/* What is written from there, to the driver's own device, is on its way when the region is closed. */
static int close_under_a_write(const struct far *s, struct buf *b, fi_addr_t to, unsigned us)
{
	const struct iovec all = { b->mem, b->size };
	struct fid_mr *mr;
	struct done d;

	must_ok(fab_reg(s->f, b, &all, FI_READ | FI_WRITE, 0x1234, &mr));
	must_ok((int)fi_write(s->f->ep, b->mem, b->size, fi_mr_desc(mr), to, s->base, s->key, b));
	usleep(us);
	must_ok(fi_close(&mr->fid));
	must(fab_done(s->f, &d, SOON), "no completion");
	must(d.ctx == b, "another operation's completion");
	fab_quiet(s->f);
	return d.err;
}

/* As often as there are places in the transfer where that can meet it. */
DEVICE_CASE(local_region_closed_under_a_write_to_a_device_gives_one_completion)
{
	struct op op = { WRITE, buf(e, MIB, 5), 0, MIB, 0, 0, 0, &op };
	unsigned met = 0;
	struct far s;
	struct done d;

	far_open(&s, e, 0, MIB, REMOTE_RW);
	op.to = fab_insert(s.f, s.f->name);
	for (unsigned i = 0; i < 12; i++) {
		int err = close_under_a_write(&s, op.buf, op.to, i * 1500);

		must(!err || err == FI_EFAULT, "it ends with %d (%s)", err, fi_strerror(err));
		met += err == FI_EFAULT;
	}
	must(met, "each write was done before its region was closed");
	op.addr = s.base;
	op.key = s.key;
	op_run(s.f, &op, &d);
	must(!d.err, "err %d, %s", d.err, d.text);
	pattern(s.d.b.want, 5, 0, MIB);
	dev_same(&s.d);
	far_close(&s);
}
