/* SPDX-License-Identifier: BSD-2-Clause */
/* See hammer.h; this is the program: options, the two processes, the report. */
#define CASE_HELPER
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "hammer.h"

static const char *const fault_names[FAULTS] = { "stale", "ghosts", "lost", "outside", "denied" };

/* --- what fab.c wants of the runner of cases (case.h) ------------------------------- */

void case_at(const char *file, int line)
{
	(void)file;
	(void)line;
}

/* Where the hammer itself speaks; the library's lines about refusals are too many. */
static FILE *say;

void case_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("# failed: ", say);
	vfprintf(say, fmt, ap);
	fputc('\n', say);
	fflush(say);
	_exit(1);
}

void case_expect(const char *call, long got, long expected)
{
	if (got != expected)
		case_fail("%s: %ld (%s), expected %ld", call, got,
			  got < 0 ? fi_strerror((int)-got) : "", expected);
}

long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

uint64_t rnd(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* ------------------------------------------------------------------------------------ */

unsigned hammer_cell(uint64_t *state, unsigned n)
{
	unsigned room = rnd(state) % 2 ? HOT : CELLS;

	return rnd(state) % (room - n + 1);
}

void hammer_window(uint64_t number, size_t *low, size_t *high)
{
	uint64_t state = number;
	size_t room = WRITE_HIGH - WRITE_LOW;

	*low = WRITE_LOW + rnd(&state) % (room - 8) / 8 * 8;
	*high = *low + 8 + rnd(&state) % (WRITE_HIGH - *low) / 8 * 8;
	if (*high > WRITE_HIGH)
		*high = WRITE_HIGH;
}

void hammer_fault(struct side *s, enum fault fault, const char *fmt, ...)
{
	unsigned long long n = atomic_fetch_add(&s->shared->counts.fault[fault], 1);
	char text[700];
	va_list ap;

	if (n >= 5)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(say, "# %s: %s\n", fault_names[fault], text);
	fflush(say);
}

static void await(struct side *s, atomic_int *flag)
{
	long end = now_ms() + SOON;

	while (!atomic_load(flag)) {
		if (now_ms() > end || atomic_load(&s->shared->stop) > 1)
			case_fail("the other side is not there");
		usleep(1000);
	}
}

static void lanes_start(struct side *s, struct owner *owner, pthread_t *thread)
{
	for (unsigned i = 0; i < LANES; i++) {
		owner[i] = (struct owner){ s, i };
		must(!pthread_create(&thread[i], NULL, hammer_lane, &owner[i]), "pthread_create");
	}
}

static void lanes_wait(pthread_t *thread)
{
	for (unsigned i = 0; i < LANES; i++)
		pthread_join(thread[i], NULL);
}

static void side_run(struct side *s, const struct mode *mode)
{
	struct owner owner[AREAS], lane[LANES];
	static const struct fab_opt usual;
	pthread_t thread[AREAS], lane_thread[LANES];
	bool lanes;

	fab_open(&s->fab, mode, &usual);
	must((s->fab.bits & (FI_MR_ALLOCATED | FI_MR_MMU_NOTIFY)) != FI_MR_ALLOCATED,
	     "in this mode the memory must not change");
	s->notify = s->fab.bits & FI_MR_MMU_NOTIFY;
	memcpy(s->own->name, s->fab.name, NAME_LEN);
	hammer_own(s);
	lanes = hammer_depot_open(s, mode);
	atomic_store(&s->own->ready, 1);
	await(s, &s->other->ready);
	for (unsigned i = 0; i < AREAS; i++) {
		owner[i] = (struct owner){ s, i };
		must(!pthread_create(&thread[i], NULL, hammer_change, &owner[i]), "pthread_create");
	}
	if (lanes)
		lanes_start(s, lane, lane_thread);
	hammer_access(s);
	if (lanes)
		lanes_wait(lane_thread);
	atomic_store(&s->own->finished, 1);
	for (unsigned i = 0; i < AREAS; i++)
		pthread_join(thread[i], NULL);
	hammer_disown(s);
	if (lanes)
		hammer_depot_close();
	fab_close(&s->fab);
	exit(0);
}

struct options {
	const char *modes[32];
	int nmodes;
	unsigned seconds, pace_us;
	uint64_t seed;
	bool verbose;
};

static pid_t side_start(struct shared *shared, int number, const struct mode *mode,
			const struct options *o)
{
	pid_t pid = fork();
	struct side s = { .shared = shared,
			  .own = &shared->side[number],
			  .other = &shared->side[!number],
			  .number = number,
			  .seed = o->seed,
			  .pace_us = o->pace_us };

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(o->seconds + 120);
	side_run(&s, mode);
	return 0;
}

/* True when both have ended well. When one has not, the other cannot. */
static bool sides_wait(struct shared *shared, const pid_t *pid)
{
	bool well = true;
	int status;

	for (int n = 0; n < 2; n++) {
		pid_t done = waitpid(-1, &status, 0);

		if (done < 0 || !status)
			continue;
		if (well)
			fprintf(say, "# side %d ended with status 0x%x\n", done == pid[1], status);
		well = false;
		atomic_store(&shared->stop, 2);
		kill(pid[done == pid[0]], SIGKILL);
	}
	return well;
}

static bool report(const struct shared *shared, const char *mode, bool well, long ms)
{
	const char *monitor = getenv("FI_MR_CACHE_MONITOR");
	const struct counts *c = &shared->counts;
	char name[200];
	bool good = well && atomic_load(&c->reads) && atomic_load(&c->writes) &&
		    atomic_load(&c->changes);

	snprintf(name, sizeof(name), "%s%s%s", mode, monitor ? ", monitor " : "",
		 monitor ? monitor : "");
	printf("# hammer %s: %llu reads, %llu writes, %llu refused, %llu cut, %llu changes, "
	       "%llu round trips from local buffers",
	       name, atomic_load(&c->reads), atomic_load(&c->writes), atomic_load(&c->refused),
	       atomic_load(&c->cut), atomic_load(&c->changes), atomic_load(&c->locals));
	for (int i = 0; i < FAULTS; i++) {
		printf(", %llu %s", atomic_load(&c->fault[i]), fault_names[i]);
		good = good && !atomic_load(&c->fault[i]);
	}
	printf("\n%s hammer[%s]", good ? "ok" : "not ok", name);
	printf(good ? " (%ld ms)\n" : ": see above, after %ld ms\n", ms);
	return good;
}

static bool anyone_ended(void)
{
	siginfo_t info = { 0 };

	return !waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | WNOHANG) && info.si_pid;
}

static bool both_ready(struct shared *shared)
{
	return atomic_load(&shared->side[0].ready) && atomic_load(&shared->side[1].ready);
}

static bool mode_run(const char *name, const struct options *o)
{
	struct mode mode = { name, FI_VERSION(1, 17), MR_BITS, name, 0 };
	struct shared *shared = mmap(NULL, sizeof(*shared), RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long start = now_ms(), begin;
	pid_t pid[2];
	bool good;

	if (shared == MAP_FAILED)
		return false;
	fflush(stdout);
	for (int i = 0; i < 2; i++)
		pid[i] = side_start(shared, i, &mode, o);
	while (!both_ready(shared) && !anyone_ended())
		usleep(20000);
	begin = now_ms();
	while (now_ms() < begin + o->seconds * 1000L && !anyone_ended())
		usleep(20000);
	atomic_store(&shared->stop, 1);
	good = report(shared, name, sides_wait(shared, pid), now_ms() - start);
	munmap(shared, sizeof(*shared));
	return good;
}

static int usage(FILE *out)
{
	fputs("hammer [OPTION...]: changes mappings under regions that peers access\n"
	      "  --mode SET     what is required, as in FI_MRFAB_MR_MODE; repeatable (0)\n"
	      "  --seconds N    for each mode (10)\n"
	      "  --seed N       of all that is random (1)\n"
	      "  --pace US      microseconds between two changes of an area, on average "
	      "(40000)\n"
	      "  --verbose      the library's lines, too\n",
	      out);
	return out == stderr ? 2 : 0;
}

static bool option_take(struct options *o, int c)
{
	switch (c) {
	case 'm':
		if (o->nmodes < 32)
			o->modes[o->nmodes++] = optarg;
		return true;
	case 's':
		o->seconds = (unsigned)strtoul(optarg, NULL, 0);
		return o->seconds > 0;
	case 'S':
		o->seed = strtoull(optarg, NULL, 0);
		return true;
	case 'p':
		o->pace_us = (unsigned)strtoul(optarg, NULL, 0);
		return true;
	case 'v':
		o->verbose = true;
		return true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "mode", required_argument, NULL, 'm' },
					       { "seconds", required_argument, NULL, 's' },
					       { "seed", required_argument, NULL, 'S' },
					       { "pace", required_argument, NULL, 'p' },
					       { "verbose", no_argument, NULL, 'v' },
					       { "help", no_argument, NULL, 'h' },
					       { NULL, 0, NULL, 0 } };
	struct options o = { .seconds = 10, .seed = 1, .pace_us = 40000 };
	bool good = true;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (!option_take(&o, c))
			return usage(c == 'h' ? stdout : stderr);
	}
	if (!o.nmodes)
		o.modes[o.nmodes++] = "0";
	setvbuf(stdout, NULL, _IOLBF, 0);
	say = stdout;
	if (!o.verbose && !freopen("/dev/null", "w", stderr))
		return 1;
	for (int i = 0; i < o.nmodes; i++)
		good = mode_run(o.modes[i], &o) && good;
	return !good;
}
