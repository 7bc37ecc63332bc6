/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local buffers that nobody registers and whose mappings come and go. Each lane, a thread, has a
 * place in the other side's depot to itself, which stays as it is; so what comes back must be what
 * was sent: the words of this very round. Words of an earlier round were sent from memory that
 * is not there any more, or the new ones went where nobody looks.
 */
#define CASE_HELPER
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>
#include "hammer.h"

#define HUGE ((size_t)2 << 20)
/* Where the kernel puts nothing by itself while a place is a hole; each may be huge. */
#define PLACES (6ull << 44)
#define LEFT 0xeeeeeeeeeeeeeeeeull /* in a destination, where nothing has come */

enum { MAPPED_ANON, MAPPED_FILE, ATTACHED, HEAP, HUGE_PAGES, KINDS };

struct place {
	int kind;
	uint8_t *home; /* its address, which it keeps; HEAP: what malloc said last */
	size_t size;
	int fd;
};

struct lane {
	struct side *s;
	unsigned number;
	uint64_t state, round;
	fi_addr_t to;
	uint64_t key, at; /* its place in the depot */
	struct place from[KINDS], back[KINDS];
	pid_t child;
};

/* One operation on its way. */
struct flight {
	atomic_bool done;
	struct done how;
};

static struct fab fab;
static struct fid_mr *depot_mr;
static uint8_t *depot;
static pthread_mutex_t cq_lock = PTHREAD_MUTEX_INITIALIZER;
static bool around; /* what goes around the C library is noticed, too */

/* By the C library, or around it. */
static void unmap(void *at, size_t len)
{
	int ret;

	if (around && (uintptr_t)at >> 17 & 1)
		ret = (int)syscall(SYS_munmap, at, len);
	else
		ret = munmap(at, len);
	must(!ret, "munmap of %zu bytes failed", len);
}

static void *map(void *at, size_t len, int flags, int fd)
{
	void *p;

	flags |= at ? MAP_FIXED : 0;
	if (around && at && !((uintptr_t)at >> 16 & 1))
		p = (void *)syscall(SYS_mmap, at, len, RW, flags, fd, 0);
	else
		p = mmap(at, len, RW, flags, fd, 0);
	must(p != MAP_FAILED, "mmap of %zu bytes failed", len);
	return p;
}

/* --- places ------------------------------------------------------------------------ */

static void attach(struct place *p)
{
	int id = shmget(IPC_PRIVATE, p->size, IPC_CREAT | 0600);

	must(id >= 0, "no shared memory segment");
	must(shmat(id, p->home, SHM_REMAP) == p->home, "shmat failed");
	shmctl(id, IPC_RMID, NULL);
}

static void place_open(struct place *p, int kind)
{
	static atomic_uint opened;

	*p = (struct place){ .kind = kind, .size = LOCAL_MAX, .fd = -1 };
	if (kind == HUGE_PAGES)
		p->size = HUGE;
	if (kind == HEAP)
		return;
	p->home =
		map((void *)(PLACES + atomic_fetch_add(&opened, 1) * 2 * HUGE), p->size, ANON, -1);
	if (kind == MAPPED_FILE) {
		p->fd = memfd_create("hammer", MFD_CLOEXEC);
		must(p->fd >= 0 && !ftruncate(p->fd, (off_t)p->size), "memfd");
		map(p->home, p->size, MAP_SHARED, p->fd);
	} else if (kind == ATTACHED) {
		attach(p);
	} else if (kind == HUGE_PAGES) {
		madvise(p->home, p->size, MADV_HUGEPAGE);
	}
}

/*
 * Its pages go elsewhere, and are no more. A range that userfaultfd watches in part cannot always
 * be moved (mrfab(7)).
 */
static void move_away(struct place *p)
{
	uint8_t *to = p->home + HUGE;

	if (mremap(p->home, p->size, p->size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		must(errno == EFAULT && hammer_watched(), "mremap: %s", strerror(errno));
	munmap(to, p->size);
	map(p->home, p->size, ANON, -1);
}

static void change_anon(struct place *p, uint64_t what)
{
	switch (what % 5) {
	case 0:
		unmap(p->home, p->size);
		map(p->home, p->size, ANON, -1);
		break;
	case 1:
		map(p->home, p->size, ANON, -1);
		break;
	case 2:
		madvise(p->home, p->size, MADV_DONTNEED);
		break;
	case 3:
		madvise(p->home, p->size, MADV_FREE);
		break;
	default:
		move_away(p);
	}
	if (p->kind == HUGE_PAGES)
		madvise(p->home, p->size, MADV_HUGEPAGE);
}

static void change_file(struct place *p, uint64_t what)
{
	switch (what % 3) {
	case 0:
		must(!ftruncate(p->fd, 0) && !ftruncate(p->fd, (off_t)p->size), "ftruncate");
		break;
	case 1:
		must(!fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				(off_t)p->size),
		     "no hole in the file");
		break;
	default:
		unmap(p->home, p->size);
		map(p->home, p->size, MAP_SHARED, p->fd);
	}
}

/* What is freed last is at the end of the heap more often than not. */
static void change_heap(struct place *p, uint64_t what)
{
	free(p->home);
	if (what % 3 == 0)
		malloc_trim(0);
	p->home = malloc(p->size);
	must(p->home, "no memory");
}

static void place_change(struct place *p, uint64_t what)
{
	switch (p->kind) {
	case MAPPED_FILE:
		change_file(p, what);
		break;
	case ATTACHED:
		shmdt(p->home);
		attach(p);
		break;
	case HEAP:
		change_heap(p, what);
		break;
	default:
		change_anon(p, what);
	}
}

/* A buffer at some offset of some place, changed before or, every third time, as it was. */
static uint8_t *take_place(struct lane *l, struct place *of, struct place **p, size_t len)
{
	uint64_t r = rnd(&l->state);

	*p = &of[r % KINDS];
	if ((r >> 8) % 3 || !(*p)->home)
		place_change(*p, r >> 16);
	return (*p)->home + (r >> 32) % ((*p)->size - len + 1) / 8 * 8;
}

/* --- transfers --------------------------------------------------------------------- */

static void poll_one(void)
{
	struct done d;
	bool got;

	pthread_mutex_lock(&cq_lock);
	got = fab_poll(&fab, &d);
	pthread_mutex_unlock(&cq_lock);
	if (!got)
		return;
	((struct flight *)d.ctx)->how = d;
	atomic_store(&((struct flight *)d.ctx)->done, true);
}

static void post(struct lane *l, bool read, uint8_t *mem, size_t len, struct flight *f)
{
	ssize_t ret;

	atomic_store(&f->done, false);
	do {
		ret = read ? fi_read(fab.ep, mem, len, NULL, l->to, l->at, l->key, f)
			   : fi_write(fab.ep, mem, len, NULL, l->to, l->at, l->key, f);
		if (ret == -FI_EAGAIN)
			poll_one();
	} while (ret == -FI_EAGAIN);
	must(!ret, "%s of %zu bytes: %zd", read ? "fi_read" : "fi_write", len, ret);
}

static bool end(struct lane *l, const char *what, const struct place *p, struct flight *f)
{
	long until = now_ms() + SOON;

	while (!atomic_load(&f->done)) {
		must(now_ms() < until, "a %s has no completion after %d ms", what, SOON);
		poll_one();
	}
	if (!f->how.err)
		return true;
	hammer_fault(l->s, DENIED, "lane %u: %s, place of kind %d: err %d, %s", l->number, what,
		     p->kind, f->how.err, f->how.text);
	return false;
}

static uint64_t word_of(const struct lane *l, size_t i)
{
	return (uint64_t)(l->number + 1) << 56 | l->round << 16 | i;
}

/* flown: the source's pages changed under way. */
static void judge(struct lane *l, const struct place *from, const struct place *back,
		  const uint64_t *got, size_t n, bool flown)
{
	for (size_t i = 0; i < n; i++) {
		if (got[i] == word_of(l, i) || (flown && !got[i]))
			continue;
		hammer_fault(l->s, got[i] == LEFT ? LOST : STALE,
			     "lane %u, round %lu: from a place of kind %d to one of kind %d, word "
			     "%zu of %zu is 0x%lx",
			     l->number, l->round, from->kind, back->kind, i, n, got[i]);
		return;
	}
}

/* A child shares all pages until one of the two writes. */
static void maybe_fork(struct lane *l)
{
	if (rnd(&l->state) % 16)
		return;
	l->child = fork();
	must(l->child >= 0, "fork failed");
	if (!l->child) {
		usleep(3000);
		_exit(0);
	}
}

static bool send_words(struct lane *l, size_t n, struct place **from, bool *flown)
{
	uint64_t *mem = (uint64_t *)(void *)take_place(l, l->from, from, n * 8);
	struct flight f;

	maybe_fork(l);
	for (size_t i = 0; i < n; i++)
		mem[i] = word_of(l, i);
	post(l, false, (uint8_t *)mem, n * 8, &f);
	*flown = rnd(&l->state) % 4 == 0;
	if (*flown && (*from)->kind == MAPPED_ANON)
		place_change(*from, 1);
	else
		*flown = false;
	return end(l, "write", *from, &f);
}

static void round_trip(struct lane *l)
{
	size_t n = (LOCAL_MIN + rnd(&l->state) % (LOCAL_MAX - LOCAL_MIN)) / 8;
	struct place *from, *back;
	struct flight f;
	uint64_t *mem;
	bool flown;

	if (rnd(&l->state) % 8 == 0)
		n = 1 + rnd(&l->state) % (LOCAL_MIN / 8);
	l->round++;
	if (!send_words(l, n, &from, &flown))
		return;
	mem = (uint64_t *)(void *)take_place(l, l->back, &back, n * 8);
	for (size_t i = 0; i < n; i++)
		mem[i] = LEFT;
	post(l, true, (uint8_t *)mem, n * 8, &f);
	if (end(l, "read", back, &f))
		judge(l, from, back, mem, n, flown);
	atomic_fetch_add(&l->s->shared->counts.locals, 1);
	if (l->child)
		waitpid(l->child, NULL, 0);
	l->child = 0;
}

void *hammer_lane(void *arg)
{
	static struct lane lanes[LANES];
	const struct owner *me = arg;
	struct lane *l = &lanes[me->area];
	struct side *s = me->side;

	*l = (struct lane){ .s = s,
			    .number = me->area,
			    .state = s->seed * 101 + (uint64_t)s->number * 17 + me->area };
	pthread_mutex_lock(&cq_lock);
	l->to = fab_insert(&fab, s->other->depot_name);
	l->key = s->other->depot.key;
	if (fab.bits & FI_MR_RAW)
		l->key = fab_map(&fab, s->other->depot.raw.base, s->other->depot.raw.bytes,
				 s->other->depot.raw.size);
	pthread_mutex_unlock(&cq_lock);
	l->at = s->other->depot.base + l->number * LOCAL_MAX;
	for (int i = 0; i < KINDS; i++) {
		place_open(&l->from[i], i);
		place_open(&l->back[i], i);
	}
	while (!atomic_load(&s->shared->stop))
		round_trip(l);
	return NULL;
}

/* --- the depot --------------------------------------------------------------------- */

bool hammer_depot_open(struct side *s, const struct mode *mode)
{
	static const struct fab_opt usual;
	const char *monitor = getenv("FI_MR_CACHE_MONITOR");
	struct region_key *k = &s->own->depot;

	/* Nothing is local there without a descriptor. */
	if (s->fab.local)
		return false;
	around = !monitor || strcmp(monitor, "memhooks") != 0;
	mallopt(M_MMAP_THRESHOLD, (int)LOCAL_MAX * 4);
	mallopt(M_TRIM_THRESHOLD, (int)LOCAL_MAX / 2);
	fab_open(&fab, mode, &usual);
	depot = map(NULL, LANES * LOCAL_MAX, ANON | MAP_POPULATE, -1);
	must_ok(fi_mr_reg(fab.domain, depot, LANES * LOCAL_MAX, REMOTE_RW, 0, 1, 0, &depot_mr,
			  NULL));
	fab_ready(&fab, depot_mr);
	k->key = fi_mr_key(depot_mr);
	k->base = fab.virt ? (uint64_t)(uintptr_t)depot : 0;
	k->raw.size = sizeof(k->raw.bytes);
	must_ok(fi_mr_raw_attr(depot_mr, &k->raw.base, k->raw.bytes, &k->raw.size, 0));
	memcpy(s->own->depot_name, fab.name, NAME_LEN);
	return true;
}

void hammer_depot_close(void)
{
	fab_unmap_all(&fab);
	must_ok(fab_mr_close(&fab, depot_mr));
	fab_close(&fab);
	munmap(depot, LANES * LOCAL_MAX);
}
