/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a peer's question waits while others keep the same target busy. As root:
 *
 *	scripts/with-rxe --icount --kernel 6.1 build/main/tests/func/late
 *
 * Time is that of the guest, where an instruction takes 1 ns. A question is a write to a key that
 * the target does not have: its agent is asked each time. They are asked first while the target
 * has nothing else to do, then while two peers fight for a word (one adds to it by the device, the
 * other changes its bytes, which the target's agent does), then while a third one has 1 GiB of a
 * file flushed, then while a fourth one writes and reads memory of a device there, 1 GiB in all. No
 * question may take 1 ms longer than most do at first.
 *
 * All processes share one processor, as they would not in life. So the one who asks and the one who
 * adds get it at once, the others when nobody else wants it, and what is left to compete is the
 * target: its agent, the threads that flush and copy, and the kernel.
 *
 * The file is in the guest's memory, because to write 1 GiB to the machine takes minutes there.
 * It is slow because its msync(2), which this program has in the place of the C library's, first
 * writes 1 MiB, page by page, to a file in the working directory, which is the machine's. The flush
 * is asked for by hand (foreign.c): the write before it would take most of a minute, too.
 *
 * The device is a stand-in (tests/runtime) that takes longer to copy a part than a question may
 * take; meanwhile the processor is free.
 *
 * Linux 6.1, since later ones pin no files for writing. Prints "ok NAME" or "not ok NAME".
 */
#define CASE_HELPER
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include "fab.h"
#include "runtime/rig.h"
#include "stranger.h"

#define MIB (1ul << 20)
#define FILE_LEN (1024 * MIB)
#define SLOW_LEN MIB /* is written before each part of the file */
#define FILE_KEY 7
#define WORD_KEY 8
#define NO_KEY 9
#define DEVICE_KEY 10
#define DEVICE_LEN (16 * MIB)
#define DEVICE_TIMES 64u       /* that is read or written */
#define DEVICE_US_PER_MIB 6000 /* what is copied at a time takes more than BOUND */

#define BOUND 1000000l /* ns */
#define QUESTIONS 400u
#define QUESTIONS_MAX 20000u
#define QUESTIONS_LONG 300u /* at least, while one thing is under way */
#define DEPTH 16	    /* changes of the word that are under way */
#define PAUSE 50	    /* us, between additions */

/* What is waited for: the target is ready; go; it is over. */
enum { READY, FIGHT, FLUSH, FLUSHED, COPY, COPIED, END, SEMS };

static struct shared {
	char name[NAME_LEN];
	sem_t sem[SEMS];
	atomic_bool stop;	  /* the fight */
	atomic_uint adds, looks;  /* at the word, since it began; see process_vm_readv */
	atomic_uint begun, ended; /* parts of the flush */
	atomic_uint copied;	  /* how often all of the device's was */
} * shared;

/* --- what fab.c wants of the runner of cases (case.h) ------------------------------- */

void case_at(const char *file, int line)
{
	(void)file;
	(void)line;
}

void case_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("not ok late: ", stdout);
	vprintf(fmt, ap);
	putchar('\n');
	fflush(stdout);
	kill(0, SIGTERM); /* the others wait for this process */
	_exit(1);
}

void case_expect(const char *call, long got, long expected)
{
	if (got != expected)
		case_fail("%s: %ld (%s), expected %ld", call, got,
			  got < 0 ? fi_strerror((int)-got) : "", expected);
}

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

long now_ms(void)
{
	return now_ns() / 1000000;
}

/* --- all processes ------------------------------------------------------------------- */

static const struct mode mode = { .name = "late",
				  .api = FI_VERSION(1, 17),
				  .hint = FI_MR_ALLOCATED,
				  .caps = FI_RMA_PMEM | FI_ATOMIC };
static const struct fab_opt sleeps = { .wait = FI_WAIT_UNSPEC };

/* To be called before there are threads, which take over what it says. */
static void be_scheduled(int policy, int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	must(!sched_setscheduler(0, policy, &param), "sched_setscheduler: %s", strerror(errno));
}

/* Returns 0 or the error of the next operation that completes. */
static int next_done(struct fab *f, struct done *d)
{
	struct fi_cq_data_entry entry;
	ssize_t n;

	do
		n = fi_cq_sread(f->cq, &entry, 1, NULL, 1000);
	while (n == -FI_EAGAIN);
	if (n == 1)
		return 0;
	must(n == -FI_EAVAIL && fab_poll(f, d), "fi_cq_sread: %zd", n);
	return d->err;
}

static void wait_for(int sem)
{
	while (sem_wait(&shared->sem[sem]) && errno == EINTR)
		;
}

static void post(int sem)
{
	sem_post(&shared->sem[sem]);
}

static pid_t start(void (*role)(void))
{
	pid_t pid = fork();

	must(pid >= 0, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	role();
	_exit(0);
}

static void end(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid && !status, "a process ended with status 0x%x",
	     (unsigned)status);
}

/* --- the target ------------------------------------------------------------------------ */

/* A new file; its name is in path, a template of mkstemp's. */
static int make_file(char *path)
{
	int fd = mkstemp(path);

	must(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

static void *map_file(char *path, size_t len)
{
	int fd = make_file(path);
	void *mem;

	must(!ftruncate(fd, (off_t)len), "%s: %s", path, strerror(errno));
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(mem != MAP_FAILED, "%s: mmap: %s", path, strerror(errno));
	close(fd);
	return mem;
}

static int slow_fd = -1; /* -1: this is no target */

static int write_slow_file(void)
{
	static const uint8_t page[4096];
	size_t at;

	for (at = 0; at < SLOW_LEN; at += sizeof(page)) {
		if (pwrite(slow_fd, page, sizeof(page), (off_t)at) != sizeof(page))
			return -1;
	}
	return fdatasync(slow_fd);
}

__attribute__((visibility("default"))) int msync(void *mem, size_t len, int flags)
{
	int ret = 0;

	if (slow_fd >= 0) {
		atomic_fetch_add(&shared->begun, 1);
		ret = write_slow_file();
	}
	if (!ret)
		ret = (int)syscall(SYS_msync, mem, len, flags);
	if (slow_fd >= 0)
		atomic_fetch_add(&shared->ended, 1);
	return ret;
}

/*
 * The library looks so at what is in a word before it swaps it, unless it knows: it has swapped
 * the same word just before, and was not overtaken then. So all looks at one word but the first
 * come of swaps that were overtaken.
 */
__attribute__((visibility("default"))) ssize_t
process_vm_readv(pid_t pid, const struct iovec *here, unsigned long nhere,
		 const struct iovec *there, unsigned long nthere, unsigned long flags)
{
	if (slow_fd >= 0)
		atomic_fetch_add(&shared->looks, 1);
	return syscall(SYS_process_vm_readv, pid, here, nhere, there, nthere, flags);
}

static struct fid_mr *register_it(struct fab *f, void *mem, size_t len, uint64_t key,
				  uint64_t flags)
{
	struct iovec iov = { mem, len };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				   .requested_key = key };
	struct fid_mr *mr;

	must_ok(fi_mr_regattr(f->domain, &attr, flags, &mr));
	return mr;
}

static struct fid_mr *register_device(struct fab *f)
{
	struct rig_control control;
	const struct rig *rig = rig_load(0, &control);
	struct iovec iov = { rig->make(RT_DEVICE, 0, DEVICE_LEN), DEVICE_LEN };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				   .requested_key = DEVICE_KEY };
	struct fid_mr *mr;
	char us[16];

	snprintf(us, sizeof(us), "%d", DEVICE_US_PER_MIB);
	setenv("MRFAB_RUNTIME_US_PER_MIB", us, 1);
	rig_attr(rig, 0, &attr);
	must_ok(fi_mr_regattr(f->domain, &attr, 0, &mr));
	return mr;
}

/* It has nothing to do itself. */
static void be_target(void)
{
	static uint64_t word[512] __attribute__((aligned(4096)));
	char path[] = "/tmp/late.XXXXXX", slow_path[] = "late.XXXXXX";
	static const struct fab_opt opt = { .wait = FI_WAIT_UNSPEC, .hmem = true };
	struct fid_mr *file_mr, *word_mr, *device_mr;
	struct fab f;

	fab_open(&f, &mode, &opt);
	device_mr = register_device(&f);
	file_mr = register_it(&f, map_file(path, FILE_LEN), FILE_LEN, FILE_KEY, FI_RMA_PMEM);
	word_mr = register_it(&f, word, sizeof(word), WORD_KEY, 0);
	slow_fd = make_file(slow_path);
	unlink(slow_path);
	memcpy(shared->name, f.name, sizeof(f.name));
	post(READY);
	wait_for(END);
	unlink(path);
	must_ok(fi_close(&file_mr->fid));
	must_ok(fi_close(&word_mr->fid));
	must_ok(fi_close(&device_mr->fid));
	fab_close(&f);
}

/* --- the load ---------------------------------------------------------------------------- */

static void must_be_done(struct fab *f)
{
	struct done d;
	int err = next_done(f, &d);

	must(!err, "error %d: %s", err, d.text);
}

/* Changes the word until it is told to stop. Returns how often. */
static void fight(const void *operand, size_t count, enum fi_datatype datatype, enum fi_op op,
		  unsigned depth, unsigned pause, atomic_uint *times)
{
	unsigned started = 0, done;
	struct fab f;
	fi_addr_t to;

	wait_for(FIGHT);
	fab_open(&f, &mode, &sleeps);
	to = fab_insert(&f, shared->name);
	for (done = 0; !atomic_load(&shared->stop) || done < started; done++) {
		for (; !atomic_load(&shared->stop) && started < done + depth; started++)
			must_ok((int)fi_atomic(f.ep, operand, count, NULL, to, 0, WORD_KEY,
					       datatype, op, NULL));
		must_be_done(&f);
		if (pause)
			usleep(pause);
		atomic_fetch_add(times, 1);
	}
	fab_close(&f);
}

/* By the device. */
static void be_adder(void)
{
	static const uint64_t operand = 256;

	be_scheduled(SCHED_FIFO, 1);
	fight(&operand, 1, FI_UINT64, FI_SUM, 1, PAUSE, &shared->adds);
}

/* By the target's agent. */
static void be_changer(void)
{
	static const uint8_t operand[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	atomic_uint times = 0;

	be_scheduled(SCHED_IDLE, 0);
	fight(operand, sizeof(operand), FI_UINT8, FI_BXOR, DEPTH, 0, &times);
}

static void be_flusher(void)
{
	struct stranger s;
	char all[32];

	be_scheduled(SCHED_IDLE, 0);
	wait_for(FLUSH);
	stranger_start(&s);
	stranger_do(&s, "connect 0 %s -", stranger_addr(shared->name));
	stranger_do(&s, "flush 0 %d 0 %lu", FILE_KEY, FILE_LEN);
	snprintf(all, sizeof(all), "reply 0 %lu", FILE_LEN);
	must(!strcmp(s.said, all), "the flush: %s", s.said);
	post(FLUSHED);
	stranger_stop(&s);
}

/* All of the device's memory, again and again. */
static void copy_all(struct fab *f, fi_addr_t to, void *mem)
{
	unsigned i;
	ssize_t rc;

	for (i = 0; i < DEVICE_TIMES; i++) {
		rc = i % 2 ? fi_read(f->ep, mem, DEVICE_LEN, NULL, to, 0, DEVICE_KEY, NULL)
			   : fi_write(f->ep, mem, DEVICE_LEN, NULL, to, 0, DEVICE_KEY, NULL);
		must_ok((int)rc);
		must_be_done(f);
		atomic_fetch_add(&shared->copied, 1);
	}
}

static void be_copier(void)
{
	void *mem = calloc(1, DEVICE_LEN);
	struct fab f;

	must(mem, "no memory");
	be_scheduled(SCHED_IDLE, 0);
	wait_for(COPY);
	fab_open(&f, &mode, &sleeps);
	copy_all(&f, fab_insert(&f, shared->name), mem);
	post(COPIED);
	fab_close(&f);
	free(mem);
}

/* --- questions --------------------------------------------------------------------------- */

struct asker {
	struct fab f;
	fi_addr_t to;
	long took[QUESTIONS_MAX]; /* ns */
	unsigned n;
};

/* Not all at the same point of what the others do. */
static void ask(struct asker *a)
{
	static uint64_t what;
	struct done d;
	long since;

	usleep(50 + a->n * 377 % 500);
	since = now_ns();
	must_ok((int)fi_write(a->f.ep, &what, sizeof(what), NULL, a->to, 0, NO_KEY, NULL));
	must_be(next_done(&a->f, &d), FI_EKEYREJECTED);
	a->took[a->n++ % QUESTIONS_MAX] = now_ns() - since;
}

static void ask_times(struct asker *a, unsigned n)
{
	for (a->n = 0; a->n < n;)
		ask(a);
}

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

struct times {
	double middle, longest; /* us */
};

static struct times times_of(struct asker *a)
{
	must(a->n && a->n <= QUESTIONS_MAX, "%u questions", a->n);
	qsort(a->took, a->n, sizeof(*a->took), compare);
	return (struct times){ (double)a->took[a->n / 2] / 1e3, (double)a->took[a->n - 1] / 1e3 };
}

/* busy: the load was there. */
static int judge(struct asker *a, const char *name, const struct times *alone, bool busy,
		 const char *load)
{
	struct times t = times_of(a);
	bool ok = busy && (t.longest - alone->middle) * 1e3 < BOUND;

	printf("%sok %s (us: alone %.1f, longest %.1f; beside it %.1f, longest %.1f; %u questions, "
	       "%s)\n",
	       ok ? "" : "not ", name, alone->middle, alone->longest, t.middle, t.longest, a->n,
	       load);
	fflush(stdout);
	return !ok;
}

static int beside_fight(struct asker *a, const pid_t fighter[2], const struct times *alone)
{
	unsigned looks, adds;
	char load[80];

	post(FIGHT);
	post(FIGHT);
	while (shared->adds < DEPTH || shared->looks < DEPTH)
		usleep(1000);
	looks = shared->looks;
	adds = shared->adds;
	ask_times(a, QUESTIONS);
	looks = shared->looks - looks;
	adds = shared->adds - adds;
	atomic_store(&shared->stop, true);
	end(fighter[0]);
	end(fighter[1]);
	snprintf(load, sizeof(load), "%u swaps were overtaken, of %u times added", looks, adds);
	return judge(a, "question_beside_a_word_that_is_fought_for", alone, looks > QUESTIONS,
		     load);
}

/* Until that is over. */
static void ask_until(struct asker *a, int sem)
{
	for (a->n = 0; a->n < QUESTIONS_MAX && sem_trywait(&shared->sem[sem]);)
		ask(a);
}

static int beside_flush(struct asker *a, pid_t flusher, const struct times *alone)
{
	char load[80];

	post(FLUSH);
	while (!shared->begun)
		usleep(1000);
	ask_until(a, FLUSHED);
	end(flusher);
	snprintf(load, sizeof(load), "%u parts were flushed", shared->ended);
	return judge(a, "question_beside_a_flush_of_1_GiB", alone,
		     a->n >= QUESTIONS_LONG && shared->begun == shared->ended, load);
}

static int beside_copies(struct asker *a, pid_t copier, const struct times *alone)
{
	char load[80];

	post(COPY);
	while (!shared->copied)
		usleep(1000);
	ask_until(a, COPIED);
	end(copier);
	snprintf(load, sizeof(load), "%lu MiB of a device were copied",
		 shared->copied * DEVICE_LEN / MIB);
	return judge(a, "question_beside_1_GiB_of_a_device", alone,
		     a->n >= QUESTIONS_LONG && shared->copied == DEVICE_TIMES, load);
}

/* --- all together ------------------------------------------------------------------------ */

static void share(void)
{
	unsigned i;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	must(shared != MAP_FAILED, "mmap: %s", strerror(errno));
	for (i = 0; i < SEMS; i++)
		sem_init(&shared->sem[i], 1, 0);
}

static int ask_all(struct asker *a, const pid_t load[4])
{
	struct times alone;
	int bad;

	ask_times(a, 20); /* the first ones connect */
	ask_times(a, QUESTIONS);
	alone = times_of(a);
	bad = beside_fight(a, load, &alone);
	bad += beside_flush(a, load[2], &alone);
	return bad + beside_copies(a, load[3], &alone);
}

int main(void)
{
	static struct asker a;
	pid_t target, load[4];
	int bad;

	setpgid(0, 0);
	/* Each question is refused. */
	setenv("FI_LOG_LEVEL", "none", 1);
	share();
	target = start(be_target);
	load[0] = start(be_adder);
	load[1] = start(be_changer);
	load[2] = start(be_flusher);
	load[3] = start(be_copier);
	wait_for(READY);
	be_scheduled(SCHED_FIFO, 1);
	fab_open(&a.f, &mode, &sleeps);
	a.to = fab_insert(&a.f, shared->name);
	bad = ask_all(&a, load);
	post(END);
	end(target);
	fab_close(&a.f);
	return bad != 0;
}
