/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver that forks. What it has open is not its child's to use: whatever the child
 * calls, the driver's regions are reached by its peer as before. What the child opens
 * itself works.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define SIZE (4 * PAGE)
#define CHILD_MS 60000

/* --- a child ------------------------------------------------------------------------ */

static int report = -1;

static void tell_parent(const char *text)
{
	ssize_t n = write(report, text, strlen(text));

	(void)n;
	_exit(1);
}

struct child {
	pid_t pid;
	int text;
};

static struct child child_start(struct env *e, void (*run)(struct env *, void *), void *arg)
{
	struct child c;
	int p[2];

	must(!pipe(p), "pipe");
	fflush(NULL);
	c.pid = fork();
	must(c.pid >= 0, "fork");
	if (!c.pid) {
		close(p[0]);
		report = p[1];
		case_child();
		case_fail_hook = tell_parent;
		alarm(CHILD_MS / 1000);
		run(e, arg);
		_exit(0);
	}
	close(p[1]);
	c.text = p[0];
	return c;
}

static void child_end(struct child c)
{
	char text[600];
	ssize_t n = read(c.text, text, sizeof(text) - 1);
	int status;

	text[n > 0 ? n : 0] = '\0';
	close(c.text);
	must(waitpid(c.pid, &status, 0) == c.pid, "waitpid");
	must(!status, "the child ended with status 0x%x: %s", (unsigned)status, text);
}

static void in_child(struct env *e, void (*run)(struct env *, void *), void *arg)
{
	child_end(child_start(e, run, arg));
}

/* --- the driver's region ------------------------------------------------------------ */

struct scene {
	struct fab *f;
	struct peer *p; /* writes to mem from its slot 0, which is filled with 5 */
	fi_addr_t back; /* the driver, as the peer calls it */
	struct buf mem;
	struct fid_mr *mr;
	uint64_t key;
	struct region r; /* 100 bytes of the peer's slot 1 on */
	struct buf *b;	 /* the driver's, for accesses to r */
};

static void scene_open(struct scene *s, struct env *e)
{
	*s = (struct scene){ .f = me(e), .p = target(e), .b = buf(e, SIZE, 2) };
	s->back = peer_insert(s->p, s->f->name, s->f->name_len);
	peer_alloc(s->p, 0, PAGE, 5);
	peer_alloc(s->p, 1, SIZE, 6);
	s->r = peer_reg(s->p, 1, 100, 3 * PAGE, REMOTE_RW, 7);
	buf_open(&s->mem, SIZE, 1);
	must_ok(fi_mr_reg(s->f->domain, s->mem.mem, SIZE, REMOTE_RW, 0, 1, 0, &s->mr,
			  NULL));
	fab_ready(s->f, s->mr);
	s->key = fi_mr_key(s->mr);
}

static void scene_close(struct scene *s)
{
	must_ok(fab_mr_close(s->f, s->mr));
	buf_close(&s->mem);
}

/* The peer writes to the driver's region and reads from it. */
static int reached(struct scene *s, size_t off)
{
	struct peer_rma rma = { false, 0, 0, 100, s->back, 0, s->key, 1 };
	int err;

	rma.addr = (s->f->virt ? (uint64_t)(uintptr_t)s->mem.mem : 0) + off;
	err = peer_rma(s->p, &rma);
	if (!err)
		buf_want(&s->mem, off, 100, 5, 0);
	must(!buf_diff(&s->mem), "own memory: %s", buf_diff(&s->mem));
	return err;
}

static void both_ways_work(struct env *e, struct scene *s, size_t off)
{
	must_ok(reached(s, off));
	access_ok(e, WRITE, s->b, off, 50, &s->r, off);
	access_ok(e, READ, s->b, off + 200, 50, &s->r, off + 1000);
	peer_same(s->p, 1);
	buf_same(s->b);
}

/* --- what the child inherits -------------------------------------------------------- */

#define REFUSED(call)                                                            \
	do {                                                                     \
		log_mark();                                                      \
		must_be(call, -FI_EPERM);                                        \
		must(log_has("MRF-E5202") && log_has("forked child"), "no line " \
								      "says why: " #call); \
	} while (0)

static void call_objects(struct scene *s)
{
	struct fab *f = s->f;

	REFUSED(fi_close(&s->mr->fid));
	REFUSED(fi_close(&f->ep->fid));
	REFUSED(fi_close(&f->cq->fid));
	REFUSED(fi_close(&f->av->fid));
	REFUSED(fi_close(&f->domain->fid));
	REFUSED(fi_close(&f->fabric->fid));
	REFUSED(fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT));
	REFUSED(fi_enable(f->ep));
	REFUSED(fi_av_remove(f->av, &s->p->addr, 1, 0));
}

static void call_regions(struct scene *s)
{
	struct fab *f = s->f;
	uint8_t raw[1024];
	size_t size = sizeof(raw);
	struct fid_mr *mr;
	uint64_t base;

	REFUSED(fi_mr_reg(f->domain, s->mem.mem, PAGE, REMOTE_RW, 0, 77, 0, &mr, NULL));
	REFUSED(fi_mr_refresh(s->mr, NULL, 0, 0));
	REFUSED(fi_mr_enable(s->mr));
	REFUSED(fi_mr_bind(s->mr, &f->ep->fid, 0));
	REFUSED(fi_mr_raw_attr(s->mr, &base, raw, &size, 0));
	REFUSED(fi_mr_unmap_key(f->domain, 1));
}

static void call_transfers(struct env *e, struct scene *s)
{
	struct op op = op_make(e, WRITE, s->b, 0, 100, &s->r, 0);
	struct fi_cq_tagged_entry c;

	for (int i = 0; i < 300; i++)
		must_be(op_post(s->f, &op), -FI_EPERM);
	op.read = true;
	REFUSED(op_post(s->f, &op));
	op.len = 8;
	REFUSED(op_post(s->f, &op));
	REFUSED(fi_cq_read(s->f->cq, &c, 1));
	REFUSED(fi_cq_readerr(s->f->cq, (void *)&c, 0));
}

static void call_everything(struct env *e, void *arg)
{
	struct scene *s = arg;

	call_objects(s);
	call_regions(s);
	call_transfers(e, s);
	/* What it changes in its copy of the memory is nobody else's. */
	memset(s->mem.mem, 0xee, SIZE);
	/* And the handlers of exit(3), which a test's child would leave out. */
	exit(0);
}

IN_MODES(MODES_TWO | MODE(MODE_NOTIFY) | MODE(MODE_ENDPOINT))

CASE(child_harms_nothing_that_its_parent_opened)
{
	struct scene s;

	scene_open(&s, e);
	both_ways_work(e, &s, 300);
	in_child(e, call_everything, &s);
	both_ways_work(e, &s, 2000);
	scene_close(&s);
}

CASE(child_takes_no_completion_of_its_parents)
{
	struct scene s;

	scene_open(&s, e);
	for (size_t i = 0; i < 50; i++)
		start(e, WRITE, s.b, i * 10, 10, &s.r, i * 10);
	in_child(e, call_everything, &s);
	fab_wait_ok(me(e), 50);
	peer_same(s.p, 1);
	both_ways_work(e, &s, 2000);
	scene_close(&s);
}

/* --- what the child opens itself ---------------------------------------------------- */

static void open_and_work(struct env *e, void *arg)
{
	static const struct fab_opt usual;
	struct scene *s = arg, own = { .p = s->p };
	struct buf b;
	struct op op;
	struct done d;
	struct fab f;

	fab_open(&f, e->mode, &usual);
	fab_buf(&f, &b, SIZE, 2);
	op = op_make(e, WRITE, &b, 500, 50, &s->r, 500);
	op.to = fab_insert(&f, s->p->name);
	op_run(&f, &op, &d);
	must(!d.err, "err %d (%s), %s", d.err, fi_strerror(d.err), d.text);
	own.f = &f;
	own.back = peer_insert(s->p, f.name, f.name_len);
	buf_open(&own.mem, SIZE, 1);
	must_ok(fi_mr_reg(f.domain, own.mem.mem, SIZE, REMOTE_RW, 0, 1, 0, &own.mr,
			  NULL));
	fab_ready(&f, own.mr);
	own.key = fi_mr_key(own.mr);
	must_ok(reached(&own, 300));
	must_ok(reached(&own, 3000));
	REFUSED(fi_close(&s->mr->fid));
	scene_close(&own);
	fab_buf_close(&b);
	fab_close(&f);
}

CASE(child_works_with_what_it_opens_itself)
{
	struct scene s;

	scene_open(&s, e);
	both_ways_work(e, &s, 300);
	in_child(e, open_and_work, &s);
	peer_want(s.p, 1, 100 + 500, 50, 2, 500);
	both_ways_work(e, &s, 2000);
	in_child(e, open_and_work, &s);
	both_ways_work(e, &s, 2600);
	scene_close(&s);
}

static void open_in_a_child(struct env *e, void *arg)
{
	in_child(e, open_and_work, arg);
}

CASE(child_of_a_child_works_with_what_it_opens_itself)
{
	struct scene s;

	scene_open(&s, e);
	in_child(e, open_in_a_child, &s);
	peer_want(s.p, 1, 100 + 500, 50, 2, 500);
	both_ways_work(e, &s, 2000);
	scene_close(&s);
}

static void sleep_long(struct env *e, void *arg)
{
	(void)e;
	(void)arg;
	nap(CHILD_MS);
}

IN_MODES(MODES_TWO | MODE(MODE_NOTIFY))

/* A child that does not end keeps the parent's kernel objects open, but not the region. */
CASE(closed_region_is_closed_though_a_child_lives)
{
	struct scene s;
	struct child c;

	scene_open(&s, e);
	must_ok(reached(&s, 300));
	c = child_start(e, sleep_long, NULL);
	must_ok(reached(&s, 700));
	must_ok(fi_close(&s.mr->fid));
	must_be(reached(&s, 900), FI_EKEYREJECTED);
	kill(c.pid, SIGKILL);
	must(waitpid(c.pid, NULL, 0) == c.pid, "waitpid");
	close(c.text);
	buf_close(&s.mem);
}
