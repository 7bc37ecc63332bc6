/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A world runs in a process that is forked for it, so that a crash, a hang or a
 * sanitizer's report is a failure like any other. With threads or asynchronous
 * registrations a seed draws the same worlds, but what is drawn later depends on what was
 * met; what failed is kept as it was done.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "run.h"
#include "trace.h"

uint64_t plan_seed(uint64_t otherwise)
{
	const char *text = getenv("MRFAB_SEED");

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

unsigned plan_number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text && *text ? (unsigned)strtoul(text, NULL, 0) : otherwise;
}

/* --- in the process of a world ------------------------------------------------------ */

static struct trace *trace_now;
static _Thread_local unsigned step_index;

void model_fail(const char *kind, const char *fmt, ...)
{
	struct failure *failure = &trace_now->failure;
	va_list ap;

	if (!atomic_exchange(&failure->taken, 1)) {
		failure->step = step_index;
		snprintf(failure->kind, sizeof(failure->kind), "%s", kind);
		va_start(ap, fmt);
		vsnprintf(failure->text, sizeof(failure->text), fmt, ap);
		va_end(ap);
		_exit(1);
	}
	/* Another thread, or process, is about to end all of it. */
	sleep(5);
	_exit(1);
}

void model_count(enum kind kind, int rc)
{
	atomic_fetch_add(&trace_now->counts[kind][rc != 0], 1);
}

struct body {
	struct world world;
	struct side side;
	struct actor actor[THREADS];
	struct limb limb[THREADS];
};

static struct body body;

bool model_memory_there(const void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr, end = start + len;
	bool device = body.world.conf.device;

	for (unsigned i = 0; i < body.world.conf.threads; i++) {
		uintptr_t mem = (uintptr_t)body.limb[i].mem;
		uintptr_t from = device ? mem : mem + HOLE * PAGE;
		uintptr_t to = device ? mem + MEM : from + PAGE;

		if (start < to && end > from)
			return false;
	}
	return true;
}

static void body_open(const struct backend *backend)
{
	struct world *world = &body.world;

	world->conf = trace_now->conf;
	world->side = &body.side;
	/* Peers first: they may be processes of their own. */
	body.side.backend = backend;
	for (unsigned i = 0; i < world->conf.threads; i++) {
		body.actor[i].limb = &body.limb[i];
		actor_open(&body.actor[i], world, i);
	}
	for (unsigned i = 0; i < world->conf.threads; i++)
		memory_open(&body.actor[i], backend->memory);
	side_open(&body.side, backend, &world->conf, SHARED_EPS);
	for (unsigned i = 0; i < world->conf.threads; i++)
		actor_hand(&body.actor[i]);
}

static void body_close(void)
{
	struct world *world = &body.world;
	const char *left;

	step_index = trace_now->n;
	for (unsigned i = 0; i < world->conf.threads; i++)
		actor_leave(&body.actor[i]);
	for (unsigned i = 0; i < SHARED_CNTRS; i++) {
		cntr_check(body.side.cntrs[i], &world->tallies[i]);
		must(fi_close(&body.side.cntrs[i]->fid));
		body.side.cntrs[i] = NULL;
	}
	for (unsigned i = 0; i < SHARED_EPS; i++)
		endpoint_close(&body.side.shared[i]);
	for (unsigned i = 0; i < world->conf.threads; i++)
		actor_close(&body.actor[i]);
	side_close(&body.side);
	left = body.side.backend->leftovers();
	if (left)
		model_fail("leak", "%s", left);
}

static void *record(void *arg)
{
	struct actor *a = arg;

	for (;;) {
		unsigned i = atomic_fetch_add(&trace_now->next, 1);

		if (i >= trace_now->conf.steps)
			return NULL;
		step_index = i;
		step_make(a, &trace_now->steps[i]);
		step_run(a, &trace_now->steps[i]);
	}
}

static void *replay_own(void *arg)
{
	struct actor *a = arg;

	for (unsigned i = 0; i < trace_now->n; i++) {
		step_index = i;
		if (trace_now->steps[i].thread == a->number)
			step_run(a, &trace_now->steps[i]);
	}
	return NULL;
}

static void in_threads(void *(*run)(void *arg))
{
	pthread_t thread[THREADS];
	unsigned i, n = body.world.conf.threads;

	for (i = 0; i < n; i++)
		must(pthread_create(&thread[i], NULL, run, &body.actor[i]));
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

static void in_order(void)
{
	for (unsigned i = 0; i < trace_now->n; i++) {
		step_index = i;
		step_run(&body.actor[trace_now->steps[i].thread], &trace_now->steps[i]);
	}
}

static void __attribute__((noreturn)) child(const struct backend *backend, enum how how)
{
	body_open(backend);
	if (how == RECORD) {
		in_threads(record);
		trace_now->n = trace_now->conf.steps;
	} else if (how == IN_THREADS) {
		in_threads(replay_own);
	} else {
		in_order();
	}
	body_close();
	exit(0);
}

/* --- in the caller ------------------------------------------------------------------ */

static void died(struct failure *failure, int status)
{
	if (failure->kind[0])
		return;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(failure->kind, sizeof(failure->kind), "it hangs");
	else if (WIFSIGNALED(status))
		snprintf(failure->kind, sizeof(failure->kind), "it dies of signal %d",
			 WTERMSIG(status));
	else
		snprintf(failure->kind, sizeof(failure->kind), "it ends with status %d",
			 WEXITSTATUS(status));
	snprintf(failure->text, sizeof(failure->text), "%s", failure->kind);
	failure->step = trace_now->n;
}

bool trace_do(struct trace *trace, const struct backend *backend, enum how how, unsigned seconds)
{
	int status;
	pid_t pid;

	trace_now = trace;
	memset(&trace->failure, 0, sizeof(trace->failure));
	atomic_store(&trace->next, 0);
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid) {
		alarm(seconds);
		/* What a shortening does again need not be told again. */
		if (how != RECORD && !freopen("/dev/null", "w", stderr))
			_exit(2);
		patience_ms = how == RECORD ? SOON_MS : HASTY_MS;
		child(backend, how);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!status)
		return true;
	if (how == RECORD) {
		unsigned n = atomic_load(&trace->next);

		trace->n = n < trace->conf.steps ? n : trace->conf.steps;
	}
	died(&trace->failure, status);
	return false;
}

static void conf_make(const struct plan *plan, unsigned number, struct conf *conf)
{
	static const uint32_t apis[] = { FI_VERSION(1, 12), FI_VERSION(1, 17), FI_VERSION(2, 2),
					 FI_VERSION(2, 3) };
	static const uint64_t bits[] = { FI_MR_LOCAL,	  FI_MR_RAW,	  FI_MR_VIRT_ADDR,
					 FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_MMU_NOTIFY,
					 FI_MR_RMA_EVENT, FI_MR_ENDPOINT };
	uint64_t state = plan->seed * 7919 + number;

	*conf = (struct conf){ .seed = plan->seed + number,
			       .threads = plan->threads,
			       .files = plan->files,
			       .steps = plan->steps };
	conf->api = apis[dice(&state) % (sizeof(apis) / sizeof(apis[0]))];
	conf->event = dice(&state) % 4;
	for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		conf->mode |= dice(&state) % 2 ? bits[i] : 0;
	conf->async = dice(&state) % 3 == 0;
	conf->auth = dice(&state) % 4 == 0;
	conf->device = dice(&state) % 4 == 0;
	conf->far = conf->device && dice(&state) % 2;
	conf->files &= !conf->device;
	if (!plan->messages)
		return;
	conf->messages = true;
	conf->async = false;
	conf->directed = dice(&state) % 2;
	conf->source = dice(&state) % 2;
}

static void conf_tell(FILE *out, const struct conf *conf)
{
	char mode[128];

	mode_print(conf->mode, mode, sizeof(mode));
	fprintf(out, "mr_mode %s, API %u.%u%s%s%s%s%s%s%s, %u threads", mode, FI_MAJOR(conf->api),
		FI_MINOR(conf->api), conf->event ? ", FI_RMA_EVENT" : "",
		conf->async ? ", FI_REG_MR" : "", conf->auth ? ", authorization key 1" : "",
		conf->far      ? ", memory of devices on both sides"
		: conf->device ? ", memory of a device"
			       : "",
		conf->messages ? ", FI_MSG" : "", conf->directed ? ", FI_DIRECTED_RECV" : "",
		conf->source ? ", FI_SOURCE" : "", conf->threads);
}

static void tell(const struct plan *plan, unsigned world, const struct trace *trace)
{
	fprintf(plan->out, "# model failed: seed %llu, world %u (", (unsigned long long)plan->seed,
		world);
	conf_tell(plan->out, &trace->conf);
	fprintf(plan->out, ")\n#   after %u steps: %s\n", trace->failure.step + 1,
		trace->failure.text);
	fflush(plan->out);
}

static void tell_short(const struct plan *plan, const struct trace *trace, enum how how)
{
	char line[400];

	fprintf(plan->out, "#   these %u steps are enough%s (", trace->n,
		how == IN_THREADS ? ", though not always, and only in threads" : "");
	conf_tell(plan->out, &trace->conf);
	fprintf(plan->out, "):\n");
	for (unsigned i = 0; i < trace->n; i++) {
		step_print(&trace->steps[i], line, sizeof(line));
		fprintf(plan->out, "#   %3u. %s\n", i + 1, line);
	}
	fprintf(plan->out, "#   -> %s\n#   MRFAB_SEED=%llu does all of it again\n",
		trace->failure.text, (unsigned long long)plan->seed);
	fflush(plan->out);
}

static void explain(const struct plan *plan, unsigned world, struct trace *trace)
{
	enum how how;

	tell(plan, world, trace);
	if (trace_shorten(trace, plan->backend, plan->seconds, plan->budget, &how))
		tell_short(plan, trace, how);
	else
		fprintf(plan->out, "#   the same steps did not fail again\n");
	fflush(plan->out);
}

#define ENOUGH 20000 /* so many steps meet everything */

/* What was done, and refused. A run that comes to do nothing shows nothing. */
static bool tell_counts(const struct plan *plan, struct trace *trace)
{
	bool all = true;

	fprintf(plan->out,
		"# model: seed %llu, %u worlds of %u steps:", (unsigned long long)plan->seed,
		plan->worlds, plan->steps);
	for (unsigned kind = 0; kind < (plan->messages ? KINDS : SEND); kind++) {
		unsigned done = atomic_load(&trace->counts[kind][0]);
		unsigned refused = atomic_load(&trace->counts[kind][1]);

		fprintf(plan->out, "%s %u %s (%u refused)", kind ? "," : "", done, kind_names[kind],
			refused);
		done |= kind == COMMIT && !plan->files;
		if ((kind >= SEND) == plan->messages)
			all = all && (done || kind == SHOW || kind == DOMAIN) &&
			      (refused || kind == SHOW || kind == COUNT || kind == COLLECT);
	}
	all = all || plan->worlds * plan->steps < ENOUGH;
	fprintf(plan->out, "%s\n", all ? "" : ": not all of it was met");
	fflush(plan->out);
	return all;
}

bool model_run(const struct plan *plan)
{
	size_t size = sizeof(struct trace) + plan->steps * sizeof(struct step);
	struct trace *trace =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good = true;

	if (trace == MAP_FAILED)
		return false;
	for (unsigned i = plan->first; i < plan->first + plan->worlds && good; i++) {
		conf_make(plan, i, &trace->conf);
		good = trace_do(trace, plan->backend, RECORD, plan->seconds);
		if (!good)
			explain(plan, i, trace);
	}
	good = good && tell_counts(plan, trace);
	munmap(trace, size);
	return good;
}
