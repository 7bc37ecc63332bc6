/*MODE(0) | SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions without FI_MR_ALLOCATED are address ranges: what is mapped there may come, go
 * and change while the region is registered. A peer reaches what is there at that moment,
 * never what was there before.
 *
 * Each case runs against four targets: one that is told of changes in the usual way, one
 * where nobody tells, one without any privilege, and one that has userfaultfd alone.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "harness.h"

#define SIZE (64 * PAGE)
#define KINDS 4
#define NOBODY 65534

struct scene {
	struct env *e;
	struct peer *p;
	struct buf *b;
	uint64_t seed; /* a new one for each content */
};

static const char *const kinds[KINDS] = { "hooks and userfaultfd", "no monitor", "unprivileged",
					  "userfaultfd" };
static const char *const monitors[KINDS] = { "", "disabled", "", "userfaultfd" };

/* --- the targets ------------------------------------------------------------------- */

static const char *const nodes[] = { "/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm" };
static mode_t node_modes[2];

static void nodes_restore(void)
{
	for (int i = 0; i < 2; i++)
		chmod(nodes[i], node_modes[i]);
}

/* Where udev gives these to root only, the case lends them. */
static void nodes_lend(void)
{
	struct stat st;

	for (int i = 0; i < 2; i++) {
		must(!stat(nodes[i], &st), "%s: no such device", nodes[i]);
		node_modes[i] = st.st_mode & 07777;
	}
	for (int i = 0; i < 2; i++)
		must(!chmod(nodes[i], 0666), "%s cannot be lent", nodes[i]);
}

static struct peer *kind(struct env *e, int i)
{
	struct fab_opt opt = { 0 };
	struct peer *p = &e->peer[i];

	if (p->up)
		return p;
	snprintf(opt.monitor, sizeof(opt.monitor), "%s", monitors[i]);
	opt.uid = i == 2 ? NOBODY : 0;
	me(e);
	if (opt.uid)
		nodes_lend();
	peer_start(p, e->mode, &opt);
	if (opt.uid)
		nodes_restore();
	peer_case(p, e->timeout);
	p->addr = fab_insert(me(e), p->name);
	p->mapper = me(e);
	return p;
}

static void each_kind(struct env *e, void (*run)(struct scene *s))
{
	struct scene s = { .e = e, .seed = 100 };

	s.b = buf(e, SIZE + 2 * PAGE, 1);
	for (int i = 0; i < KINDS; i++) {
		s.p = kind(e, i);
		case_note(kinds[i]);
		run(&s);
	}
}

/* --- parts of cases ---------------------------------------------------------------- */

static struct region whole(struct scene *s, uint64_t at)
{
	return far_reg(s->p, at, SIZE, REMOTE_RW, 1);
}

/* New bytes at addr: a peer reads these, and what it writes is there. */
static void reached(struct scene *s, const struct region *r, uint64_t start, uint64_t addr,
		    size_t len)
{
	uint64_t at = addr - start;

	far_poke(s->p, addr, len, ++s->seed, 0);
	far_brings(s->e, s->b, PAGE, len, r, at, s->seed, 0);
	far_lands(s->e, s->b, PAGE + 5, len, r, at, addr);
}

static void not_reached(struct scene *s, const struct region *r, uint64_t start, uint64_t addr,
			size_t len)
{
	uint64_t at = addr - start;

	far_refused(s->e, WRITE, s->b, len, r, at, FI_EFAULT, "no memory");
	far_refused(s->e, READ, s->b, len, r, at, FI_EFAULT, "no memory");
}

static uint64_t key_now(struct scene *s, const struct region *r)
{
	return s->p->bits & FI_MR_RAW ? r->key : far_key(r, NULL);
}

IN_MODES(MODE(0) | MODE(2) | MODE(MODE_RAW))

/* --- memory that comes and goes ---------------------------------------------------- */

static void comes_and_goes(struct scene *s)
{
	uint64_t at = far_hole(SIZE);
	struct region r = whole(s, at);
	uint64_t key = key_now(s, &r);

	not_reached(s, &r, at, at + 100, 50);
	for (int i = 0; i < 3; i++) {
		far_map(s->p, at, SIZE, RW, ANON);
		reached(s, &r, at, at + 100, 5000);
		reached(s, &r, at, at + SIZE - 77, 77);
		far_unmap(s->p, at, SIZE);
		not_reached(s, &r, at, at + 100, 50);
		not_reached(s, &r, at, at + SIZE - 77, 77);
	}
	must(key_now(s, &r) == key, "the key changed");
	peer_unreg(&r);
}

CASE(memory_comes_and_goes_under_a_region)
{
	each_kind(e, comes_and_goes);
}

/* The pages that went are seen to be gone by a peer that has used them just before. */
static void discarded(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, SIZE, RW, ANON);
	struct region r = whole(s, at);

	for (int i = 0; i < 3; i++) {
		reached(s, &r, at, at, 3 * PAGE);
		far_advise(s->p, at + PAGE, PAGE, MADV_DONTNEED);
		far_brings(s->e, s->b, PAGE, PAGE, &r, PAGE, 0, 0);
		far_peek(s->p, at + PAGE, PAGE, 0, 0);
		far_lands(s->e, s->b, 7, PAGE, &r, PAGE, at + PAGE);
	}
	peer_unreg(&r);
	far_unmap(s->p, at, SIZE);
}

CASE(discarded_pages_are_replaced)
{
	each_kind(e, discarded);
}

/* MADV_FREE: old bytes or zeros, as the kernel likes, until the next write of the owner. */
static void freed(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, SIZE, RW, ANON);
	struct region r = whole(s, at);

	for (int i = 0; i < 3; i++) {
		reached(s, &r, at, at, 3 * PAGE);
		far_advise(s->p, at, 2 * PAGE, MADV_FREE);
		reached(s, &r, at, at, 3 * PAGE);
		far_lands(s->e, s->b, 9, PAGE, &r, 0, at);
	}
	peer_unreg(&r);
	far_unmap(s->p, at, SIZE);
}

CASE(pages_that_may_be_freed_are_followed)
{
	each_kind(e, freed);
}

static void moved(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, SIZE, RW, ANON);
	uint64_t other = far_hole(SIZE);
	struct region r = whole(s, at);

	for (int i = 0; i < 3; i++) {
		reached(s, &r, at, at + 10, 2 * PAGE);
		far_move(s->p, at, SIZE, other);
		not_reached(s, &r, at, at + 10, 2 * PAGE);
		far_poke(s->p, other, SIZE, ++s->seed, 0);
		far_move(s->p, other, SIZE, at);
		far_brings(s->e, s->b, PAGE, 2 * PAGE, &r, 10, s->seed, 10);
	}
	peer_unreg(&r);
	far_unmap(s->p, at, SIZE);
}

CASE(memory_moved_away_and_back_is_followed)
{
	each_kind(e, moved);
}

/* The memory that was moved stays what it was: nothing lands in it by the old address. */
static void replaced(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, SIZE, RW, ANON);
	uint64_t other = far_hole(SIZE);
	struct region r = whole(s, at);
	uint64_t kept;

	reached(s, &r, at, at, 3 * PAGE);
	kept = ++s->seed;
	far_poke(s->p, at, SIZE, kept, 0);
	far_move(s->p, at, SIZE, other);
	far_map(s->p, at, SIZE, RW, ANON);
	far_lands(s->e, s->b, 3, 3 * PAGE, &r, 0, at);
	far_peek(s->p, other, SIZE, kept, 0);
	for (int i = 0; i < 5; i++) {
		far_map(s->p, at + PAGE, 2 * PAGE, RW, ANON);
		far_brings(s->e, s->b, PAGE, 2 * PAGE, &r, PAGE, 0, 0);
		reached(s, &r, at, at, 4 * PAGE);
	}
	far_peek(s->p, other, SIZE, kept, 0);
	peer_unreg(&r);
	far_unmap(s->p, at, SIZE);
	far_unmap(s->p, other, SIZE);
}

CASE(memory_mapped_over_the_old_is_reached)
{
	each_kind(e, replaced);
}

/* --- kinds of memory --------------------------------------------------------------- */

static void shared(struct scene *s)
{
	int fd = far_memfd(s->p, SIZE, 0);
	uint64_t at = far_map_fd(s->p, 0, SIZE, RW, MAP_SHARED, fd);
	uint64_t mirror = far_map_fd(s->p, 0, SIZE, RW, MAP_SHARED, fd);
	struct region r = whole(s, at);

	reached(s, &r, at, at + 5, 3 * PAGE);
	far_peek(s->p, mirror + 5, 3 * PAGE, s->b->seed, PAGE + 5);
	far_poke(s->p, mirror, SIZE, ++s->seed, 0);
	far_brings(s->e, s->b, PAGE, 3 * PAGE, &r, 50, s->seed, 50);
	/* The file loses its pages: nobody tells of that, and yet. */
	far_call(s->p, SYS_ftruncate, (uint64_t)fd, 0);
	not_reached(s, &r, at, at + 5, PAGE);
	far_call(s->p, SYS_ftruncate, (uint64_t)fd, SIZE);
	far_brings(s->e, s->b, PAGE, 3 * PAGE, &r, 0, 0, 0);
	reached(s, &r, at, at + 5, 3 * PAGE);
	far_peek(s->p, mirror + 5, 3 * PAGE, s->b->seed, PAGE + 5);
	far_call(s->p, SYS_close, (uint64_t)fd);
	far_unmap(s->p, at, SIZE);
	not_reached(s, &r, at, at + 5, PAGE);
	peer_unreg(&r);
	far_unmap(s->p, mirror, SIZE);
}

CASE(shared_memory_is_followed)
{
	each_kind(e, shared);
}

/* This process maps the target's file, too: it is the one that changes it. */
struct file {
	int far, fd; /* the descriptors there and here */
	uint8_t *mem;
};

static struct file file_of(struct peer *p)
{
	struct file f = { .far = far_memfd(p, SIZE, 0) };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%lu/fd/%d", (unsigned long)p->os_pid, f.far);
	f.fd = open(path, O_RDWR | O_CLOEXEC);
	must(f.fd >= 0, "%s cannot be opened", path);
	f.mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	must(f.mem != MAP_FAILED, "%s cannot be mapped", path);
	return f;
}

static void file_close(struct peer *p, struct file *f)
{
	far_call(p, SYS_close, (uint64_t)f->far);
	munmap(f->mem, SIZE);
	close(f->fd);
}

static void has_bytes(const struct file *f, uint64_t at, size_t len, uint64_t seed, uint64_t from)
{
	static uint8_t want[SIZE];

	pattern(want, seed, from, len);
	must(!memcmp(f->mem + at, want, len), "the bytes were written to old pages");
}

/* Nothing but accesses of the peer lies between a change and the next one. */
static void changed_outside(struct scene *s)
{
	struct file f = file_of(s->p), g = file_of(s->p);
	uint64_t at = far_map_fd(s->p, 0, SIZE, RW, MAP_SHARED, f.far);
	struct region r = whole(s, at);

	for (int i = 0; i < 5; i++) {
		pattern(f.mem, ++s->seed, 0, SIZE);
		far_brings(s->e, s->b, PAGE, 3 * PAGE, &r, 50, s->seed, 50);
		must(!ftruncate(f.fd, 0), "the file cannot be made shorter");
		not_reached(s, &r, at, at + 5, 8);
		must(!ftruncate(f.fd, SIZE), "the file cannot be made longer");
		far_brings(s->e, s->b, PAGE, 3 * PAGE, &r, 0, 0, 0);
		far_lands(s->e, s->b, 5, PAGE, &r, 50, at + 50);
		has_bytes(&f, 50, PAGE, s->b->seed, 5);
		must(!fallocate(f.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * PAGE),
		     "no hole can be made in the file");
		far_brings(s->e, s->b, PAGE, 2 * PAGE, &r, 0, 0, 0);
		far_lands(s->e, s->b, 9, 8, &r, 50, at + 50);
		has_bytes(&f, 50, 8, s->b->seed, 9);
	}
	pattern(f.mem, ++s->seed, 0, SIZE);
	far_brings(s->e, s->b, PAGE, PAGE, &r, 0, s->seed, 0);
	far_map_fd(s->p, at, SIZE, RW, MAP_SHARED | MAP_FIXED, g.far);
	far_lands(s->e, s->b, 7, PAGE, &r, 50, at + 50);
	has_bytes(&g, 50, PAGE, s->b->seed, 7);
	has_bytes(&f, 0, SIZE, s->seed, 0);
	peer_unreg(&r);
	far_unmap(s->p, at, SIZE);
	file_close(s->p, &f);
	file_close(s->p, &g);
}

CASE(shared_memory_that_another_process_changes_is_followed)
{
	each_kind(e, changed_outside);
}

/* Over a private mapping of a file: the pages are the process's own once written to. */
static void of_file(struct scene *s)
{
	int fd = far_memfd(s->p, SIZE, 0);
	uint64_t mirror = far_map_fd(s->p, 0, SIZE, RW, MAP_SHARED, fd);
	uint64_t at;
	struct region r;

	far_poke(s->p, mirror, SIZE, ++s->seed, 0);
	at = far_map_fd(s->p, 0, SIZE, RW, MAP_PRIVATE, fd);
	r = whole(s, at);
	far_brings(s->e, s->b, PAGE, 3 * PAGE, &r, 5, s->seed, 5);
	far_lands(s->e, s->b, 9, PAGE, &r, 50, at + 50);
	far_peek(s->p, mirror, SIZE, s->seed, 0);
	/* Back to what the file has. */
	far_advise(s->p, at, SIZE, MADV_DONTNEED);
	far_brings(s->e, s->b, PAGE, 3 * PAGE, &r, 0, s->seed, 0);
	peer_unreg(&r);
	far_unmap(s->p, at, SIZE);
	far_unmap(s->p, mirror, SIZE);
	far_call(s->p, SYS_close, (uint64_t)fd);
}

CASE(private_mappings_of_files_are_followed)
{
	each_kind(e, of_file);
}

static void on_stack_and_heap(struct scene *s)
{
	size_t size;
	uint64_t stack = far_stack(s->p, &size);
	uint64_t brk = far_call(s->p, SYS_brk, 0);
	struct region r = far_reg(s->p, stack, size, REMOTE_RW, 1);

	reached(s, &r, stack, stack + 11, 3 * PAGE);
	reached(s, &r, stack, stack + 11 + 5 * PAGE, 3 * PAGE);
	peer_unreg(&r);
	brk = (brk + PAGE - 1) & ~(PAGE - 1);
	r = whole(s, brk);
	for (int i = 0; i < 2; i++) {
		must(far_call(s->p, SYS_brk, brk + SIZE) == brk + SIZE, "brk");
		reached(s, &r, brk, brk + 11, 3 * PAGE);
		must(far_call(s->p, SYS_brk, brk) == brk, "brk back");
		not_reached(s, &r, brk, brk + PAGE, PAGE);
	}
	peer_unreg(&r);
}

CASE(stack_and_heap_are_followed)
{
	each_kind(e, on_stack_and_heap);
}

#define HUGE (2ul << 20)

static void hugetlb_pages(bool lend)
{
	static char before[32];
	int fd = open("/proc/sys/vm/nr_hugepages", O_RDWR | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : lend ? pread(fd, before, sizeof(before) - 1, 0) : 1;

	if (n <= 0 || pwrite(fd, lend ? "8" : before, lend ? 1 : strlen(before), 0) <= 0)
		case_skip("no hugetlb pages can be had here");
	close(fd);
}

static void huge(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, HUGE, RW, ANON | MAP_HUGETLB);
	struct region r = far_reg(s->p, at, HUGE, REMOTE_RW, 1);

	reached(s, &r, at, at + 11, 3 * PAGE);
	reached(s, &r, at, at + HUGE - 3 * PAGE, 3 * PAGE);
	far_unmap(s->p, at, HUGE);
	not_reached(s, &r, at, at + 11, PAGE);
	far_map(s->p, at, HUGE, RW, ANON | MAP_HUGETLB);
	far_brings(s->e, s->b, PAGE, PAGE, &r, 11, 0, 0);
	far_unmap(s->p, at, HUGE);
	peer_unreg(&r);
}

CASE(hugetlb_pages_are_followed)
{
	hugetlb_pages(true);
	each_kind(e, huge);
	hugetlb_pages(false);
}

/* An access that touches a hole fails whole; beside it all is well. */
static void partly_mapped(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, SIZE, RW, ANON);
	struct region r;

	far_unmap(s->p, at + 4 * PAGE, PAGE);
	r = whole(s, at);
	reached(s, &r, at, at, 4 * PAGE);
	reached(s, &r, at, at + 5 * PAGE, 4 * PAGE);
	far_poke(s->p, at, 4 * PAGE, ++s->seed, 0);
	not_reached(s, &r, at, at + 3 * PAGE, 3 * PAGE);
	not_reached(s, &r, at, at + 5 * PAGE - 1, 1);
	not_reached(s, &r, at, at + 4 * PAGE, 1);
	far_peek(s->p, at, 4 * PAGE, s->seed, 0);
	far_map(s->p, at + 4 * PAGE, PAGE, RW, ANON);
	reached(s, &r, at, at + 3 * PAGE, 3 * PAGE);
	peer_unreg(&r);
	far_unmap(s->p, at, SIZE);
}

CASE(hole_in_a_region_is_not_reached_and_harms_nothing_else)
{
	each_kind(e, partly_mapped);
}

static void read_only(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, SIZE, RW, ANON);
	struct region r, rw;

	far_poke(s->p, at, SIZE, ++s->seed, 0);
	far_call(s->p, SYS_mprotect, at, SIZE, PROT_READ);
	r = far_reg(s->p, at, SIZE, FI_REMOTE_READ, 1);
	rw = far_reg(s->p, at, SIZE, REMOTE_RW, 2);
	far_brings(s->e, s->b, PAGE, 3 * PAGE, &r, 9, s->seed, 9);
	far_refused(s->e, WRITE, s->b, 100, &r, 0, FI_EACCES, "FI_REMOTE_WRITE");
	far_refused(s->e, WRITE, s->b, 100, &rw, 0, FI_EFAULT, "no memory");
	far_peek(s->p, at, SIZE, s->seed, 0);
	far_call(s->p, SYS_mprotect, at, SIZE, RW);
	reached(s, &rw, at, at + 9, 3 * PAGE);
	peer_unreg(&r);
	peer_unreg(&rw);
	far_unmap(s->p, at, SIZE);
}

CASE(memory_that_may_only_be_read_is_read)
{
	each_kind(e, read_only);
}

/* --- ranges ------------------------------------------------------------------------ */

/* All there is, reached piece by piece: by address in both kinds of mode. */
static void everything(struct scene *s)
{
	uint64_t a = far_map(s->p, 0, SIZE, RW, ANON);
	uint64_t b = far_map(s->p, 0, SIZE, RW, ANON);
	uint64_t hole = far_hole(SIZE);
	struct region r = far_reg(s->p, 0, UINT64_MAX, REMOTE_RW, 1);

	must(r.base == 0, "base 0x%lx", (unsigned long)r.base);
	reached(s, &r, 0, a + 5, 3 * PAGE);
	reached(s, &r, 0, b + 5, 3 * PAGE);
	not_reached(s, &r, 0, hole, 100);
	not_reached(s, &r, 0, 0, 100);
	not_reached(s, &r, 0, UINT64_MAX - 5000, 100);
	far_map(s->p, a, SIZE, RW, ANON);
	far_brings(s->e, s->b, PAGE, PAGE, &r, a + 5, 0, 0);
	peer_unreg(&r);
	far_unmap(s->p, a, SIZE);
	far_unmap(s->p, b, SIZE);
}

CASE(whole_address_space_is_one_region)
{
	each_kind(e, everything);
}

#define BLOCK 64 /* kB: so much around an access may be pinned though nothing was there yet */

static void terabyte(struct scene *s)
{
	uint64_t at = far_map(s->p, 0, 1ul << 40, RW, ANON | MAP_NORESERVE);
	struct region r = far_reg(s->p, at, PAGE, REMOTE_RW, 1);
	uint64_t before, used;
	int objects;

	/* Huge pages would be there as a whole. */
	far_advise(s->p, at, 1ul << 40, MADV_NOHUGEPAGE);
	/* What the connection itself needs is not counted. */
	reached(s, &r, at, at, PAGE);
	peer_unreg(&r);
	before = far_pinned(s->p);
	objects = kernel_objects(s->p->os_pid, "mr");
	r = far_reg(s->p, at, 1ul << 40, REMOTE_RW, 1);
	must(far_pinned(s->p) <= before, "registering pinned %lu kB",
	     (unsigned long)(far_pinned(s->p) - before));
	if (objects >= 0)
		must(kernel_objects(s->p->os_pid, "mr") <= objects,
		     "registering made kernel regions");
	reached(s, &r, at, at + 5, 2 * PAGE);
	reached(s, &r, at, at + (1ul << 40) - 3 * PAGE, 2 * PAGE);
	used = far_pinned(s->p) - before;
	must((int64_t)used <= 2 * BLOCK, "two accesses pinned %lu kB", (unsigned long)used);
	for (unsigned i = 1; i < 20; i++)
		reached(s, &r, at, at + i * (33ul << 20) + i * 5000, 1);
	used = far_pinned(s->p) - before;
	must((int64_t)used <= 21 * BLOCK, "21 accesses pinned %lu kB", (unsigned long)used);
	peer_unreg(&r);
	must(far_pinned(s->p) <= before, "fi_close left %lu kB pinned",
	     (unsigned long)(far_pinned(s->p) - before));
	far_unmap(s->p, at, 1ul << 40);
}

IN_MODES(MODE(0) | MODE(MODE_RAW) | MODE(MODE_NOTIFY))

CASE(registering_a_terabyte_pins_nothing)
{
	each_kind(e, terabyte);
}

IN_MODES(MODE(0))

/* One target is enough: nothing is mapped or watched. */
CASE(ten_thousand_regions_pin_nothing)
{
	enum { MANY = 10000, STEP = 256 };
	static struct region r[MANY];
	struct region first = { .len = 200, .key = 1000 };
	struct buf *b = buf(e, PAGE, 1);
	struct peer *p = kind(e, 0);
	uint64_t before;
	int objects;

	peer_alloc(p, 0, MANY * STEP, 2);
	*r = peer_reg(p, 0, 0, 200, REMOTE_RW, 1);
	access_ok(e, WRITE, b, 0, 100, r, 0);
	peer_unreg(r);
	before = far_pinned(p);
	objects = kernel_objects(p->os_pid, "mr");
	peer_reg_many(p, &first, STEP, REMOTE_RW, r, MANY);
	must(far_pinned(p) <= before, "registering pinned");
	if (objects >= 0)
		must(kernel_objects(p->os_pid, "mr") <= objects, "registering made kernel regions");
	for (unsigned i = 7; i < MANY; i += MANY / 7)
		access_ok(e, WRITE, b, i % 3000, 150, &r[i], 50);
	peer_same(p, 0);
	peer_reset(p);
	must(far_pinned(p) <= before, "fi_close left something pinned");
}

/* --- limits ------------------------------------------------------------------------ */

#define POOR (3ul << 20) /* bytes that it may have pinned */

/* A target with a region of 32 MiB from *at on. */
static struct region poor_open(struct scene *s, struct env *e, struct peer *p, uint64_t *at)
{
	struct fab_opt opt = { .uid = NOBODY, .memlock = POOR };

	*s = (struct scene){ .e = e, .seed = 100, .p = p };
	s->b = buf(e, SIZE + 2 * PAGE, 1);
	me(e);
	nodes_lend();
	peer_start(p, e->mode, &opt);
	nodes_restore();
	p->addr = fab_insert(me(e), p->name);
	p->mapper = me(e);
	/* All of it is there, so that it is pinned in large pieces. */
	*at = far_map(p, 0, 32ul << 20, RW, ANON | MAP_POPULATE);
	return far_reg(p, *at, 32ul << 20, REMOTE_RW, 1);
}

/* Pins of before make room for what is asked for now. */
CASE(little_lockable_memory_is_enough_for_a_large_region)
{
	struct scene s;
	struct peer p;
	uint64_t at;
	struct region r = poor_open(&s, e, &p, &at);

	for (unsigned i = 0; i < 16; i++)
		reached(&s, &r, at, at + i * (2ul << 20) + 100, 3 * PAGE);
	for (unsigned i = 0; i < 16; i++)
		reached(&s, &r, at, at + (15 - i) * (2ul << 20) + PAGE, PAGE);
	peer_unreg(&r);
	peer_stop(&p);
}

/* The target's own writes and reads, for which it pins its buffer each time. */
CASE(what_is_pinned_for_peers_gives_way_to_the_targets_own_accesses)
{
	struct peer_rma rma = { .len = POOR / 2, .key = 3, .count = 1 };
	struct fid_mr *mr;
	struct buf mine;
	struct scene s;
	struct peer p;
	uint64_t at;
	struct region r = poor_open(&s, e, &p, &at);

	peer_alloc(&p, 0, rma.len, 5);
	buf_open(&mine, rma.len, 1);
	must_ok(fi_mr_reg(me(e)->domain, mine.mem, rma.len, REMOTE_RW, 0, 3, 0, &mr, NULL));
	rma.to = peer_insert(&p, me(e)->name, me(e)->name_len);
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned j = 0; j < 8; j++)
			reached(&s, &r, at, at + j * (2ul << 20) + 100, PAGE);
		must(far_pinned(&p) << 10 > POOR / 2, "there was room: the case shows nothing");
		rma.read = i % 2;
		must_ok(peer_rma(&p, &rma));
	}
	buf_want(&mine, 0, rma.len, 5, 0);
	must(!buf_diff(&mine), "own memory: %s", buf_diff(&mine));
	peer_same(&p, 0);
	must_ok(fi_close(&mr->fid));
	buf_close(&mine);
	peer_unreg(&r);
	peer_stop(&p);
}

/* --- the kernel's log -------------------------------------------------------------- */

static int kernel_log(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	must(fd >= 0, "/dev/kmsg cannot be read");
	lseek(fd, 0, SEEK_END);
	return fd;
}

static unsigned failed_pins(int fd)
{
	unsigned lines = 0;
	char record[4096];
	ssize_t n;

	while ((n = read(fd, record, sizeof(record) - 1)) > 0) {
		record[n] = 0;
		lines += strstr(record, "pin memory") != NULL;
	}
	close(fd);
	return lines;
}

/* Where the n-th queue of a device is in the target's address space; 0: it has fewer. */
static uint64_t queue_of(const struct peer *p, unsigned n)
{
	char path[64], line[512];
	unsigned long at = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%lu/maps", (unsigned long)p->os_pid);
	maps = fopen(path, "r");
	must(maps, "%s cannot be read", path);
	do {
		if (!fgets(line, sizeof(line), maps))
			at = 0;
		else if (strstr(line, "/dev/infiniband/") && !n--)
			sscanf(line, "%lx", &at);
	} while (!feof(maps) && !at);
	fclose(maps);
	return at;
}

static void queues(struct scene *s)
{
	struct region r = far_reg(s->p, 0, UINT64_MAX, REMOTE_RW, 1);
	uint64_t at;
	unsigned n;

	for (n = 0; (at = queue_of(s->p, n)); n++) {
		far_refused(s->e, READ, s->b, 64, &r, at, FI_EFAULT, "no memory");
		far_refused(s->e, WRITE, s->b, 64, &r, at + 128, FI_EFAULT, "no memory");
	}
	must(n, "the target has no queue");
	peer_unreg(&r);
}

/* With a region over everything a peer would have them, too. */
CASE(queues_of_the_device_are_never_reached)
{
	each_kind(e, queues);
}

/* Every pin that fails makes a line there, and a peer could write as many as it likes. */
CASE(refused_accesses_do_not_fill_the_kernel_log)
{
	struct scene s = { .e = e, .seed = 100 };
	uint64_t hole, ro, at;
	struct region r;
	int log = kernel_log();
	unsigned lines;

	s.b = buf(e, SIZE + 2 * PAGE, 1);
	s.p = kind(e, 0);
	at = far_map(s.p, 0, SIZE, RW, ANON);
	ro = far_map(s.p, 0, SIZE, PROT_READ, ANON);
	hole = far_hole(SIZE);
	r = far_reg(s.p, 0, UINT64_MAX, REMOTE_RW, 1);
	for (unsigned i = 0; i < 50; i++) {
		far_refused(e, WRITE, s.b, 100, &r, hole + i, FI_EFAULT, "no memory");
		far_refused(e, WRITE, s.b, 100, &r, ro + i, FI_EFAULT, "no memory");
		if (i % 10 == 0)
			reached(&s, &r, 0, at + 5, 3 * PAGE);
	}
	lines = failed_pins(log);
	must(lines <= 3, "%u lines about failed pins for 100 refused accesses", lines);
	peer_unreg(&r);
}
