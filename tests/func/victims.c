/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "victims.h"

#define SPARE_PINS 4   /* pins that were made on demand are kept: their number may vary */
#define SPARE_QUEUES 1 /* likewise a completion queue for peers to come (loop/agent_cq.h) */

static struct victims *sh;
static size_t shared_size;

static void tell_failure(const char *text)
{
	snprintf(sh->text, sizeof(sh->text), "%s: %s", getpid() == getpgrp() ? "worker" : "child",
		 text);
	_exit(3);
}

void *victims_open(size_t size)
{
	shared_size = size;
	sh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(sh != MAP_FAILED, "no memory");
	return sh;
}

void victims_close(void)
{
	munmap(sh, shared_size);
}

/* --- the survivor ------------------------------------------------------------------- */

unsigned victims_next(unsigned number)
{
	unsigned next;

	while ((next = atomic_load(&sh->current)) == number || (!next && !number))
		usleep(200);
	return next;
}

bool victims_met(void)
{
	while (!atomic_load(&sh->victim_there)) {
		if (atomic_load(&sh->killed))
			return false;
		usleep(200);
	}
	return true;
}

void victims_error(unsigned number, int err)
{
	must(atomic_load(&sh->dying), "with victim %u: err %d (%s) while both were well", number,
	     err, fi_strerror(err));
	must(err == FI_ECONNRESET || err == FI_ECONNREFUSED || err == FI_ETIMEDOUT ||
		     err == FI_ECONNABORTED || err == FI_EHOSTUNREACH,
	     "victim %u: err %d (%s) is none of a peer that goes", number, err, fi_strerror(err));
	sh->errors++;
}

void victims_ended(long killed)
{
	if (now_ms() - killed > sh->worst_ms)
		sh->worst_ms = now_ms() - killed;
}

void victims_done(unsigned number)
{
	sh->finished++;
	*(number <= WARM ? &sh->heap_early : &sh->heap_late) = mallinfo2().uordblks;
	atomic_store(&sh->done, number);
}

/* --- the worker --------------------------------------------------------------------- */

static pid_t child_start(struct env *e, const struct plan *plan, unsigned number)
{
	pid_t pid = fork();

	must(pid >= 0, "fork failed");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	case_child();
	case_fail_hook = tell_failure;
	if (number)
		plan->victim(e->mode, number);
	else
		plan->survivor(e->mode);
	exit(0);
}

static void must_be_well(pid_t pid)
{
	int status = 0;

	if (sh->text[0] || waitpid(pid, &status, WNOHANG) == pid)
		case_fail("%s (status 0x%x)", sh->text[0] ? sh->text : "a process died", status);
}

static void await(atomic_uint *value, unsigned wanted, pid_t survivor, pid_t other)
{
	long end = now_ms() + 2 * IN_TIME;

	while (atomic_load(value) < wanted) {
		must_be_well(survivor);
		if (other)
			must_be_well(other);
		must(now_ms() < end, "nothing happens any more");
		usleep(500);
	}
}

struct moment {
	unsigned number;
	enum role role;
	bool early;	 /* dies while it opens and connects, not when it has been at work */
	unsigned served; /* transfers before it dies */
	uint64_t *state;
};

static void wait_for_moment(const struct moment *m, pid_t survivor, pid_t victim)
{
	if (!m->early && m->role != VICTIM_ONLY)
		await(&sh->served_by_survivor, m->served, survivor, victim);
	if (!m->early && m->role != SURVIVOR_ONLY)
		await(&sh->served_by_victim, m->served, survivor, victim);
	usleep(rnd(m->state) % (m->early ? 150000 : 30000));
}

static void have_moment(struct env *e, const struct plan *plan, const struct moment *m,
			pid_t survivor)
{
	pid_t pid;

	atomic_store(&sh->victim_there, false);
	atomic_store(&sh->dying, false);
	atomic_store(&sh->killed, false);
	atomic_store(&sh->role, m->role);
	atomic_store(&sh->served_by_victim, 0);
	atomic_store(&sh->served_by_survivor, 0);
	atomic_store(&sh->current, m->number);
	pid = child_start(e, plan, m->number);
	wait_for_moment(m, survivor, pid);
	atomic_store(&sh->dying, true);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	atomic_store(&sh->killed, true);
	await(&sh->done, m->number, survivor, 0);
}

/* The first ones make the survivor allocate what it keeps. */
static struct moment choose(const struct plan *plan, unsigned number, uint64_t *state)
{
	struct moment m = { .number = number, .served = 1, .state = state };

	if (number == plan->moments && plan->last) {
		m.served = plan->last;
	} else if (plan->at_work) {
		m.role = VICTIM_ONLY;
	} else if (number >= WARM) {
		m.role = rnd(state) % ROLES;
		m.early = rnd(state) % 3 == 0;
	}
	return m;
}

struct objects {
	int mrs, cqs, others;
};

static struct objects count(uint64_t pid)
{
	struct objects o = { kernel_objects(pid, "mr"), kernel_objects(pid, "cq"),
			     kernel_objects(pid, "qp pd cm_id") };

	return o;
}

static void leaves_nothing(uint64_t pid, struct objects before)
{
	long end = now_ms() + IN_TIME;
	struct objects now = count(pid);

	while (now.mrs > before.mrs + SPARE_PINS || now.cqs > before.cqs + SPARE_QUEUES ||
	       now.others > before.others) {
		must(now_ms() < end,
		     "the survivor had %d regions, %d completion queues and %d other kernel "
		     "objects, and has %d, %d and %d",
		     before.mrs, before.cqs, before.others, now.mrs, now.cqs, now.others);
		nap(100);
		now = count(pid);
	}
}

static uint64_t seed_of_run(void)
{
	const char *text = getenv("MRFAB_SEED");

	return text && *text ? strtoull(text, NULL, 0) : 1;
}

static pid_t survivor_start(struct env *e, const struct plan *plan)
{
	pid_t pid = child_start(e, plan, 0);

	while (!atomic_load(&sh->survivor_there)) {
		must_be_well(pid);
		usleep(500);
	}
	return pid;
}

static void survivor_end(const struct plan *plan, pid_t pid)
{
	int status = 0;

	atomic_store(&sh->current, 0);
	must(waitpid(pid, &status, 0) == pid && !status && !sh->text[0],
	     "the survivor ended with status 0x%x %s", status, sh->text);
	must(sh->heap_late < sh->heap_early + plan->slack,
	     "the survivor had %zu bytes in use, and has %zu", sh->heap_early, sh->heap_late);
}

void victims_run(struct env *e, const struct plan *plan)
{
	uint64_t seed = seed_of_run();
	uint64_t state = seed * 1000 + plan->part;
	struct objects before = { -1, -1, -1 };
	pid_t pid = survivor_start(e, plan);

	for (unsigned i = 0; i <= plan->moments; i++) {
		struct moment m = i ? choose(plan, i, &state) : (struct moment){ 0 };

		if (i)
			have_moment(e, plan, &m, pid);
		if (i == plan->counted)
			before = count((uint64_t)pid);
	}
	if (before.mrs >= 0)
		leaves_nothing((uint64_t)pid, before);
	survivor_end(plan, pid);
	printf("# killed: seed %llu, part %u, %s: %u moments, %u errors, the last of them after "
	       "%ld ms at most\n",
	       (unsigned long long)seed, plan->part, e->mode->name, sh->finished, sh->errors,
	       sh->worst_ms);
}
