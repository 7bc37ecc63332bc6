/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an application may do at any moment, in any thread, without the library waiting for it or
 * the other way round. Few local registrations are kept, so that they come and go all the time.
 * A case that hangs is ended by its alarm.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "harness.h"

#define LEN (32ul << 10) /* more than is copied */
#define PARTS 8u
#define THREADS 8u
#define WORK_MS 2000

static atomic_bool stop;

static void __attribute__((constructor)) keep_few(void)
{
	setenv("FI_MR_CACHE_MAX_COUNT", "4", 0);
}

struct scene {
	struct env *e;
	struct region there;
	uint8_t *mem; /* PARTS of LEN, which nobody registers */
	unsigned done;
};

static void scene_open(struct scene *s, struct env *e)
{
	struct peer *p = peer(e, 0);

	*s = (struct scene){ .e = e };
	s->there = far_reg(p, far_map(p, 0, LEN, RW, ANON | MAP_POPULATE), LEN, REMOTE_RW, 1);
	s->mem = mmap(NULL, PARTS * LEN, RW, ANON, -1, 0);
	must(s->mem != MAP_FAILED, "no memory");
	atomic_store(&stop, false);
}

static void scene_close(struct scene *s)
{
	must(s->done, "nothing was transferred");
	munmap(s->mem, PARTS * LEN);
}

/* Writes one of the buffers and reads it back into another. */
static void transfer(struct scene *s, uint8_t *from, uint8_t *to)
{
	const struct region *r = &s->there;
	struct fid_ep *ep = me(s->e)->ep;

	memset(from, (int)(s->done + 1), LEN);
	must_ok((int)fi_write(ep, from, LEN, NULL, r->peer->addr, r->base, r->key, s));
	fab_wait_ok(me(s->e), 1);
	memset(to, 0, LEN);
	must_ok((int)fi_read(ep, to, LEN, NULL, r->peer->addr, r->base, r->key, s));
	fab_wait_ok(me(s->e), 1);
	s->done++;
	must(to[0] == (uint8_t)s->done && !memcmp(to, to + 1, LEN - 1), "other bytes came back");
}

static void work(struct scene *s, long ms)
{
	long end = now_ms() + ms;

	for (unsigned i = 0; now_ms() < end || i < 8; i++)
		transfer(s, s->mem + i % PARTS * LEN, s->mem + (i + 3) % PARTS * LEN);
}

static void begin(pthread_t *thread, unsigned n, void *(*run)(void *), void *arg)
{
	for (unsigned i = 0; i < n; i++)
		must(!pthread_create(&thread[i], NULL, run, arg), "no thread");
}

static void finish(pthread_t *thread, unsigned n)
{
	atomic_store(&stop, true);
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

/* Maps and unmaps, and does nothing else: what it interrupts is never malloc itself. */
static void *map_and_unmap(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		void *p = mmap(NULL, LEN, RW, ANON | MAP_POPULATE, -1, 0);

		if (p != MAP_FAILED)
			munmap(p, LEN);
	}
	return NULL;
}

IN_MODES(MODE(0))

/* --- signals ----------------------------------------------------------------------- */

static atomic_uint handled;

static void allocate(int sig)
{
	void *small = malloc(100), *large = malloc(1ul << 20);

	(void)sig;
	free(small);
	free(large);
	atomic_fetch_add(&handled, 1);
}

CASE(handler_that_allocates_may_interrupt_a_thread_that_unmaps)
{
	struct sigaction action = { .sa_handler = allocate, .sa_flags = SA_RESTART };
	long end = now_ms() + WORK_MS;
	struct scene s;
	pthread_t thread;

	scene_open(&s, e);
	must(!sigaction(SIGUSR2, &action, NULL), "sigaction");
	begin(&thread, 1, map_and_unmap, NULL);
	for (unsigned i = 0; now_ms() < end; i++) {
		pthread_kill(thread, SIGUSR2);
		transfer(&s, s.mem + i % PARTS * LEN, s.mem + (i + 1) % PARTS * LEN);
	}
	finish(&thread, 1);
	must(atomic_load(&handled), "no signal came");
	scene_close(&s);
}

/* --- threads ----------------------------------------------------------------------- */

CASE(eight_threads_unmap_while_registrations_give_way_to_each_other)
{
	pthread_t thread[THREADS];
	struct scene s;

	scene_open(&s, e);
	begin(thread, THREADS, map_and_unmap, NULL);
	work(&s, WORK_MS);
	finish(thread, THREADS);
	scene_close(&s);
}

static void *reg_and_close(void *arg)
{
	struct scene *s = arg;

	while (!atomic_load(&stop)) {
		struct fid_mr *mr;

		if (!fi_mr_reg(me(s->e)->domain, s->mem, LEN, FI_WRITE, 0, 77, 0, &mr, NULL))
			fi_close(&mr->fid);
	}
	return NULL;
}

CASE(forks_while_memory_is_registered)
{
	pthread_t thread;
	struct scene s;
	int status;

	scene_open(&s, e);
	begin(&thread, 1, reg_and_close, &s);
	for (unsigned i = 0; i < 20; i++) {
		pid_t child = fork();

		if (!child) {
			free(malloc(1ul << 20));
			munmap(s.mem, LEN);
			_exit(0);
		}
		transfer(&s, s.mem + LEN, s.mem + 2 * LEN);
		must(child > 0 && waitpid(child, &status, 0) == child && !status,
		     "a child ended with status 0x%x", status);
	}
	finish(&thread, 1);
	scene_close(&s);
}

/* --- the end of the process and of the library ------------------------------------- */

/* In a child of its own, which opens what it uses: no endpoint of this process. */
static void leave_in_the_middle(const struct mode *mode, const char *name, const struct region *r)
{
	static const struct fab_opt usual;
	uint8_t *mem = mmap(NULL, 64 * LEN, RW, ANON, -1, 0);
	struct fab f;
	fi_addr_t to;
	pthread_t thread;

	alarm(30);
	fab_open(&f, mode, &usual);
	to = fab_insert(&f, name);
	begin(&thread, 1, map_and_unmap, NULL);
	for (unsigned i = 0; i < 64; i++)
		fi_write(f.ep, mem + i * LEN, LEN, NULL, to, r->base, r->key, NULL);
	usleep(300000);
	for (unsigned i = 0; i < 64; i++)
		fi_read(f.ep, mem + i * LEN, LEN, NULL, to, r->base, r->key, NULL);
	exit(7);
}

CASE(process_may_end_while_transfers_are_on_their_way)
{
	struct peer *p = peer(e, 0);
	uint64_t at = far_map(p, 0, LEN, RW, ANON | MAP_POPULATE);
	struct region r = far_reg(p, at, LEN, REMOTE_RW, 1);
	int status = 0;

	for (unsigned i = 0; i < 3; i++) {
		pid_t child = fork();

		if (!child)
			leave_in_the_middle(e->mode, p->name, &r);
		must(waitpid(child, &status, 0) == child, "waitpid");
		must(WIFEXITED(status) && WEXITSTATUS(status) == 7, "it ended with status 0x%x",
		     status);
	}
}

/* closer stands beside this program, or above where libtool puts it. */
static void exec_closer(const char *lib)
{
	static const char *const where[] = { "closer", "../closer" };
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *name;

	if (len < 0)
		_exit(2);
	path[len] = 0;
	name = strrchr(path, '/') + 1;
	for (unsigned i = 0; i < 2; i++) {
		strcpy(name, where[i]);
		execl(path, path, lib, NULL);
	}
	_exit(3);
}

CASE(library_may_be_closed_by_dlclose_and_opened_again)
{
	Dl_info lib;
	int status;
	pid_t child;

	(void)e;
	must(dladdr((void *)(uintptr_t)fi_getinfo, &lib), "where the library is, nobody knows");
	child = fork();
	if (!child)
		exec_closer(lib.dli_fname);
	must(waitpid(child, &status, 0) == child && !status, "it ended with status 0x%x", status);
}

/* --- an application with userfaultfd of its own ------------------------------------ */

static int uffd_over(uint8_t *mem, size_t len)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .range = { (uintptr_t)mem, len },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		case_skip("no userfaultfd here");
	must(!ioctl(fd, UFFDIO_API, &api), "UFFDIO_API");
	must(!ioctl(fd, UFFDIO_REGISTER, &reg), "UFFDIO_REGISTER");
	return fd;
}

static uint8_t filling[PAGE] __attribute__((aligned(4096)));

/* Brings a page if one is missed. False: none was. */
static bool bring_one(int fd)
{
	struct uffd_msg msg;
	struct uffdio_copy copy = { .src = (uintptr_t)filling, .len = PAGE };

	if (read(fd, &msg, sizeof(msg)) != sizeof(msg) || msg.event != UFFD_EVENT_PAGEFAULT)
		return false;
	copy.dst = msg.arg.pagefault.address & -PAGE;
	return !ioctl(fd, UFFDIO_COPY, &copy);
}

/* Brings each page when it is missed. */
static void *bring(void *arg)
{
	int fd = *(int *)arg;
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	while (!atomic_load(&stop)) {
		if (poll(&poll_fd, 1, 50) == 1)
			bring_one(fd);
	}
	return NULL;
}

CASE(application_may_use_userfaultfd_itself)
{
	const struct region *r;
	struct scene s;
	pthread_t thread;
	int fd;

	scene_open(&s, e);
	r = &s.there;
	memset(filling, 0x5a, PAGE);
	fd = uffd_over(s.mem, PARTS * LEN);
	begin(&thread, 1, bring, &fd);
	for (unsigned i = 0; i < PARTS; i++) {
		uint8_t *mem = s.mem + i * LEN, first;

		/* None of its pages is there: pinning waits for the application's thread. */
		must_ok((int)fi_write(me(e)->ep, mem, LEN, NULL, r->peer->addr, r->base, r->key,
				      &s));
		fab_wait_ok(me(e), 1);
		must_ok((int)fi_read(me(e)->ep, &first, 1, NULL, r->peer->addr, r->base + LEN - 1,
				     r->key, &s));
		fab_wait_ok(me(e), 1);
		must(first == 0x5a, "0x%x was sent", first);
		madvise(mem, LEN, MADV_DONTNEED);
	}
	work(&s, 500);
	finish(&thread, 1);
	close(fd);
	scene_close(&s);
}

/*
 * One thread reads the queue, and provides the memory that results are for. It gets its
 * completion, although the first looks at the queue find the results and no memory.
 */
CASE(thread_that_reads_a_queue_may_provide_the_memory_for_results)
{
	static const size_t lens[] = { 1, 64, PAGE, 4 * PAGE };
	uint8_t from[4 * PAGE];
	const struct region *r;
	unsigned brought = 0;
	struct done d;
	struct scene s;
	int fd;

	scene_open(&s, e);
	r = &s.there;
	memset(filling, 0x5a, PAGE);
	memset(from, 0xa5, sizeof(from));
	must_ok((int)fi_write(me(e)->ep, from, sizeof(from), NULL, r->peer->addr, r->base, r->key,
			      &s));
	fab_wait_ok(me(e), 1);
	fd = uffd_over(s.mem, PARTS * LEN);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		uint8_t *mem = s.mem + i * LEN;
		long end = now_ms() + SOON;

		must_ok((int)fi_read(me(e)->ep, mem, lens[i], NULL, r->peer->addr, r->base, r->key,
				     &s));
		while (!fab_done(me(e), &d, 0)) {
			brought += bring_one(fd);
			must(now_ms() < end, "no completion of a read of %zu bytes", lens[i]);
		}
		must(!d.err, "a read of %zu bytes: %s", lens[i], d.text);
		must(!memcmp(mem, from, lens[i]), "%zu bytes came wrong", lens[i]);
		must(lens[i] % PAGE == 0 || mem[lens[i]] == 0x5a, "a page came from elsewhere");
	}
	must(brought >= 4, "%u pages were missed", brought);
	s.done = 1;
	close(fd);
	scene_close(&s);
}
