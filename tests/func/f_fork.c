/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver that forks. What it has open is not its child's to use: whatever the child
 * calls, the driver's regions are reached by its peer as before. What the child opens
 * itself works.
 */
#include <errno.h>
#include <grp.h>
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
	must_ok(fi_mr_reg(s->f->domain, s->mem.mem, SIZE, REMOTE_RW, 0, 1, 0, &s->mr, NULL));
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

#define REFUSED(call)                                                                      \
	do {                                                                               \
		log_mark();                                                                \
		must_be(call, -FI_EPERM);                                                  \
		must(log_has("MRF-E5202") && log_has("forked child"), "no line "           \
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
	must_ok(fi_mr_reg(f.domain, own.mem.mem, SIZE, REMOTE_RW, 0, 1, 0, &own.mr, NULL));
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

/* --- credentials --------------------------------------------------------------------- */

/*
 * A child of the driver, because what is changed cannot be used any more. It has its own
 * side of the fabric, and a region of the peer's to reach.
 */
struct changed {
	struct scene *s;
	struct fab f;
	struct buf b;
	fi_addr_t to;
};

static void changed_open(struct changed *c, struct env *e, struct scene *s)
{
	static const struct fab_opt usual;

	c->s = s;
	fab_open(&c->f, e->mode, &usual);
	fab_buf(&c->f, &c->b, SIZE, 2);
	c->to = fab_insert(&c->f, s->p->name);
}

static void changed_close(struct changed *c)
{
	fab_buf_close(&c->b);
	fab_close(&c->f);
}

static struct op changed_op(struct changed *c, struct env *e, bool read, size_t len)
{
	struct op op = op_make(e, read, &c->b, 500, len, &c->s->r, 500);

	op.to = c->to;
	return op;
}

static void works(struct changed *c, struct env *e)
{
	struct op op = changed_op(c, e, false, 50);
	struct done d;

	op_run(&c->f, &op, &d);
	must(!d.err, "err %d (%s), %s", d.err, fi_strerror(d.err), d.text);
}

static void fails(struct changed *c, const struct op *op)
{
	long begin = now_ms();
	struct done d;

	op_run(&c->f, op, &d);
	must(d.err == FI_EACCES && strstr(d.text, "credentials"), "err %d, %s", d.err, d.text);
	must(now_ms() - begin < 3000, "%ld ms", now_ms() - begin);
}

/* Regions are another matter: the kernel goes on taking and giving back those. */
static void regions_work(struct changed *c)
{
	struct fid_mr *mr;

	must_ok(fi_mr_reg(c->f.domain, c->b.mem, PAGE, REMOTE_RW, 0, 99, 0, &mr, NULL));
	must_ok(fi_close(&mr->fid));
}

static void everything_fails_and_closes(struct changed *c, struct env *e)
{
	struct op op = changed_op(c, e, false, 50);

	fails(c, &op);
	fails(c, &op);
	op = changed_op(c, e, true, 2000);
	fails(c, &op);
	op = changed_op(c, e, true, 8);
	fails(c, &op);
	regions_work(c);
	changed_close(c);
}

static void change_and_write(struct env *e, void *arg)
{
	struct changed c;

	changed_open(&c, e, arg);
	works(&c, e);
	must(!seteuid(65534), "seteuid: %s", strerror(errno));
	everything_fails_and_closes(&c, e);
	/* Who opens anew is taken as he is. */
	must(!seteuid(0), "seteuid: %s", strerror(errno));
	changed_open(&c, e, arg);
	works(&c, e);
	changed_close(&c);
}

static void change_back_and_write(struct env *e, void *arg)
{
	struct changed c;

	changed_open(&c, e, arg);
	works(&c, e);
	must(!seteuid(65534) && !seteuid(0), "seteuid: %s", strerror(errno));
	everything_fails_and_closes(&c, e);
}

/* Before the first access: nothing is connected. */
static void change_and_connect(struct env *e, void *arg)
{
	struct changed c;

	changed_open(&c, e, arg);
	must(!setgroups(0, NULL), "setgroups: %s", strerror(errno));
	everything_fails_and_closes(&c, e);
}

static void change_with_many_in_flight(struct env *e, void *arg)
{
	struct changed c;
	struct op op;
	struct done d;
	unsigned failed = 0;

	changed_open(&c, e, arg);
	op = changed_op(&c, e, true, 8192);
	for (int i = 0; i < 100; i++)
		must_ok(op_post(&c.f, &op));
	must(!seteuid(65534), "seteuid: %s", strerror(errno));
	for (int i = 0; i < 100; i++)
		must_ok(op_post(&c.f, &op));
	for (int i = 0; i < 200; i++) {
		must(fab_done(&c.f, &d, 5000), "%d of 200 completions", i);
		must(!d.err || d.err == FI_EACCES, "err %d, %s", d.err, d.text);
		failed += d.err != 0;
	}
	must(failed >= 100, "%u of 100 failed", failed);
	fab_quiet(&c.f);
	changed_close(&c);
}

/*
 * One thread only, as capset(2) does. The library's own goes on: what it posts, because it
 * had to wait for a connection, is done.
 */
static void change_a_thread(struct env *e, void *arg)
{
	struct changed c;
	struct done d;
	struct op op;

	changed_open(&c, e, arg);
	works(&c, e);
	op = changed_op(&c, e, false, 50);
	must(!syscall(SYS_setgroups, 0, NULL), "setgroups: %s", strerror(errno));
	fails(&c, &op);
	for (int i = 0; i < 10; i++) {
		op_run(&c.f, &op, &d);
		must(!d.err || d.err == FI_EACCES, "err %d, %s", d.err, d.text);
	}
	regions_work(&c);
	changed_close(&c);
}

IN_MODES(MODES_TWO | MODE(MODE_NOTIFY))

static void each_change(struct env *e, void (*change)(struct env *, void *))
{
	struct scene s;

	scene_open(&s, e);
	both_ways_work(e, &s, 300);
	in_child(e, change, &s);
	peer_want(s.p, 1, 100 + 500, 50, 2, 500);
	both_ways_work(e, &s, 2000);
	scene_close(&s);
}

CASE(after_a_change_of_user_operations_fail_with_the_reason)
{
	each_change(e, change_and_write);
}

CASE(changing_the_user_back_does_not_help)
{
	each_change(e, change_back_and_write);
}

CASE(after_a_change_of_groups_nothing_connects)
{
	struct scene s;

	scene_open(&s, e);
	in_child(e, change_and_connect, &s);
	both_ways_work(e, &s, 2000);
	scene_close(&s);
}

CASE(all_in_flight_at_a_change_of_user_complete)
{
	struct scene s;

	scene_open(&s, e);
	in_child(e, change_with_many_in_flight, &s);
	both_ways_work(e, &s, 2000);
	scene_close(&s);
}

CASE(thread_that_changes_its_credentials_gets_the_reason)
{
	each_change(e, change_a_thread);
}

/* What a target says when it has changed, on its standard output. */
struct target_told {
	char name[NAME_LEN];
	uint64_t key, addr;
};

static void be_a_target(struct env *e, void *arg)
{
	static const struct fab_opt usual;
	struct target_told told = { 0 };
	int *p = arg;
	struct fab f;
	struct buf b;
	struct fid_mr *mr;
	char go;

	fab_open(&f, e->mode, &usual);
	buf_open(&b, SIZE, 3);
	must_ok(fi_mr_reg(f.domain, b.mem, SIZE, REMOTE_RW, 0, 1, 0, &mr, NULL));
	fab_ready(&f, mr);
	memcpy(told.name, f.name, sizeof(told.name));
	told.key = fi_mr_key(mr);
	told.addr = f.virt ? (uintptr_t)b.mem : 0;
	must(write(p[1], &told, sizeof(told)) == sizeof(told), "write");
	must(read(p[2], &go, 1) == 1, "read");
	must(!seteuid(65534), "seteuid: %s", strerror(errno));
	must(write(p[1], &go, 1) == 1, "write");
	must(read(p[2], &go, 1) == 1, "read");
	must_ok(fab_mr_close(&f, mr));
	fab_close(&f);
	buf_close(&b);
}

static int end_in_time(struct env *e, struct buf *b, fi_addr_t to, const struct target_told *t,
		       uint64_t key)
{
	struct op op = { false, b, 0, 100, to, t->addr, key, b };
	long begin = now_ms();
	struct done d;

	op_run(me(e), &op, &d);
	must(now_ms() - begin < 10000, "%ld ms", now_ms() - begin);
	return d.err;
}

CASE(target_that_changes_its_user_lets_its_peers_know)
{
	struct buf *b = buf(e, PAGE, 1);
	struct target_told t;
	struct child c;
	fi_addr_t to;
	int up[2], down[2], p[3];
	char go = 0;

	must(!pipe(up) && !pipe(down), "pipe");
	p[1] = up[1];
	p[2] = down[0];
	c = child_start(e, be_a_target, p);
	must(read(up[0], &t, sizeof(t)) == sizeof(t), "the target does not come up");
	to = fab_insert(me(e), t.name);
	must_ok(end_in_time(e, b, to, &t, t.key));
	must(write(down[1], &go, 1) == 1 && read(up[0], &go, 1) == 1, "pipe");
	/* A key that nobody knows yet, so that the target would have to answer. */
	must(end_in_time(e, b, to, &t, t.key + 0x4711), "reached");
	must(end_in_time(e, b, to, &t, t.key), "reached");
	must(write(down[1], &go, 1) == 1, "pipe");
	child_end(c);
	for (int i = 0; i < 2; i++) {
		close(up[i]);
		close(down[i]);
	}
}
