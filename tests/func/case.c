/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "env.h"
#include "placed.h"

#define MAX_CASES 320
#define API FI_VERSION(1, 17)
#define L FI_MR_LOCAL
#define V FI_MR_VIRT_ADDR
#define A FI_MR_ALLOCATED
#define K FI_MR_PROV_KEY
#define N FI_MR_MMU_NOTIFY

const struct mode modes[NMODES] = {
	{ "mode0", API, 0, NULL, 0 },
	{ "L", API, L, NULL, 0 },
	{ "V", API, V, NULL, 0 },
	{ "LV", API, L | V, NULL, 0 },
	{ "A", API, A, NULL, 0 },
	{ "LA", API, L | A, NULL, 0 },
	{ "VA", API, V | A, NULL, 0 },
	{ "LVA", API, L | V | A, NULL, 0 },
	{ "K", API, K, NULL, 0 },
	{ "LK", API, L | K, NULL, 0 },
	{ "VK", API, V | K, NULL, 0 },
	{ "LVK", API, L | V | K, NULL, 0 },
	{ "AK", API, A | K, NULL, 0 },
	{ "LAK", API, L | A | K, NULL, 0 },
	{ "VAK", API, V | A | K, NULL, 0 },
	{ "native", API, L | V | A | K, NULL, 0 },
	{ "basic", FI_VERSION(1, 4), FI_MR_BASIC, NULL, 0 },
	{ "scalable", FI_VERSION(1, 4), FI_MR_SCALABLE, NULL, 0 },
	[MODE_RAW] = { "raw", API, MR_BITS, "RAW", 0 },
	[MODE_RAW_NATIVE] = { "raw-native", API, MR_BITS, "RAW+LOCAL+VIRT_ADDR+ALLOCATED+PROV_KEY",
			      0 },
	[MODE_NOTIFY] = { "notify", API, MR_BITS, "MMU_NOTIFY", 0 },
	[MODE_NOTIFY_VIRT] = { "notify-virt", API, MR_BITS, "MMU_NOTIFY+VIRT_ADDR+PROV_KEY", 0 },
	[MODE_NOTIFY_ALLOC] = { "notify-alloc", API, MR_BITS, "MMU_NOTIFY+ALLOCATED", 0 },
	[MODE_ENDPOINT] = { "endpoint", API, MR_BITS, "ENDPOINT+VIRT_ADDR+ALLOCATED+PROV_KEY", 0 },
	[MODE_EVERYTHING] = { "everything", API, MR_BITS,
			      "LOCAL+RAW+VIRT_ADDR+ALLOCATED+PROV_KEY+MMU_NOTIFY+RMA_EVENT"
			      "+ENDPOINT",
			      0 },
	[MODE_EVENT] = { "event", API, 0, NULL, FI_RMA_EVENT },
	[MODE_EVENT_NATIVE] = { "event-native", API, L | V | A | K, NULL, FI_RMA_EVENT },
	[MODE_EVENT_FLAG] = { "event-flag", API, MR_BITS, "RMA_EVENT+ALLOCATED+PROV_KEY",
			      FI_RMA_EVENT },
	[MODE_EVENT_NOTIFY] = { "event-notify", API, MR_BITS, "RMA_EVENT+MMU_NOTIFY",
				FI_RMA_EVENT },
	[MODE_EVENT_ENDPOINT] = { "event-endpoint", API, MR_BITS, "ENDPOINT+ALLOCATED",
				  FI_RMA_EVENT },
	[MODE_EVENT_2_3] = { "event-2.3", FI_VERSION(2, 3), MR_BITS, "ENDPOINT+ALLOCATED",
			     FI_RMA_EVENT },
};

enum outcome { OUT_START, OUT_OK, OUT_FAIL, OUT_SKIP };

struct report {
	enum outcome outcome;
	int run; /* index into the runs of the mode */
	long ms;
	char text[1024];
};

struct tcase {
	const char *name;
	const char *file;
	void (*run)(struct env *e);
	unsigned modes;
	unsigned number;
	unsigned group;
};

struct options {
	const char *only[32];
	int nonly;
	const char *except;
	const char *mode;
	int timeout;
	bool verbose;
};

static struct tcase cases[MAX_CASES];
static int ncases;
static unsigned modes_now = MODES_TWO;
static unsigned group_now;
static struct options options = { .timeout = 120 };
static int counts[4];

/* Of the worker. */
static int report_fd = -1;
static int log_fd = -1;
static off_t log_from;
static struct report now;
static const char *at_file = "?";
static int at_line;
static const char *at_note;
static jmp_buf skipped;
void (*case_fail_hook)(const char *text);
void (*at_failure)(void);
unsigned case_number;

int mode_bits(const struct mode *mode)
{
	if (mode->hint == FI_MR_BASIC)
		return V | A | K;
	return mode->hint == FI_MR_SCALABLE ? 0 : mode->hint;
}

unsigned modes_with(int bits)
{
	unsigned set = 0;

	for (int i = 0; i < NASKED; i++) {
		if ((mode_bits(&modes[i]) & bits) == bits)
			set |= 1u << i;
	}
	return set;
}

unsigned modes_without(int bits)
{
	unsigned set = 0;

	for (int i = 0; i < NASKED; i++) {
		if (!(mode_bits(&modes[i]) & bits))
			set |= 1u << i;
	}
	return set;
}

unsigned case_modes(unsigned set)
{
	unsigned before = modes_now;

	modes_now = set;
	return before;
}

void case_group(unsigned group)
{
	if (group >= CASE_GROUPS)
		abort();
	group_now = group;
}

void case_add(const char *name, const char *file, void (*run)(struct env *))
{
	if (ncases == MAX_CASES)
		abort();
	cases[ncases++] = (struct tcase){ name, file, run, modes_now, 0, group_now };
}

void case_add_number(const char *name, const char *file, void (*run)(struct env *), unsigned number)
{
	case_add(name, file, run);
	cases[ncases - 1].number = number;
}

long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

void nap(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

void case_at(const char *file, int line)
{
	at_file = file;
	at_line = line;
}

void case_note(const char *note)
{
	at_note = note;
}

static void report(enum outcome outcome)
{
	now.outcome = outcome;
	if (report_fd >= 0 && write(report_fd, &now, sizeof(now)) != sizeof(now))
		_exit(2);
}

void case_fail(const char *fmt, ...)
{
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (case_fail_hook)
		case_fail_hook(text);
	if (at_failure)
		at_failure();
	snprintf(now.text, sizeof(now.text), "%s:%d: %s%s%s", at_file, at_line,
		 at_note ? at_note : "", at_note ? ": " : "", text);
	report(OUT_FAIL);
	_exit(1);
}

void case_child(void)
{
	close(report_fd);
	report_fd = -1;
}

void case_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(now.text, sizeof(now.text), fmt, ap);
	va_end(ap);
	longjmp(skipped, 1);
}

static const char *code_text(long code)
{
	return code < 0 ? fi_strerror((int)-code) : code ? "not an error" : "success";
}

void case_expect(const char *call, long got, long expected)
{
	if (got == expected)
		return;
	case_fail("%s: %ld (%s), expected %ld (%s)", call, got, code_text(got), expected,
		  code_text(expected));
}

void log_mark(void)
{
	log_from = log_fd < 0 ? 0 : lseek(log_fd, 0, SEEK_END);
}

static char *log_read(int fd, off_t from)
{
	off_t end = lseek(fd, 0, SEEK_END);
	size_t len = end > from ? (size_t)(end - from) : 0;
	char *text = calloc(1, len + 1);
	ssize_t n = text ? pread(fd, text, len, from) : 0;

	if (text && n >= 0)
		text[n] = 0;
	return text;
}

bool log_has(const char *text)
{
	char *log;
	bool has;

	if (log_fd < 0)
		return true; /* --verbose: it went to the terminal */
	log = log_read(log_fd, log_from);
	has = log && strstr(log, text);
	free(log);
	return has;
}

/* The end of what a failed case logged, for people. */
static void log_show(int fd, off_t from)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char *log = log_read(fd, end - from > 4000 ? end - 4000 : from);
	char *save = NULL;

	for (char *l = log ? strtok_r(log, "\n", &save) : NULL; l; l = strtok_r(NULL, "\n", &save))
		fprintf(stderr, "#   %s\n", l);
	free(log);
}

/* Is name one of the names in list, which are parted by commas? */
static bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *at;

	for (at = list; *at; at += *at == ',') {
		size_t n = strcspn(at, ",");

		if (n == len && !strncmp(at, name, len))
			return true;
		at += n;
	}
	return false;
}

static bool case_wanted(const struct tcase *c, int mode, char *label, size_t len)
{
	if (c->modes == MODES_ONE)
		snprintf(label, len, "%s", c->name);
	else
		snprintf(label, len, "%s[%s]", c->name, modes[mode].name);
	if (c->modes == MODES_ONE ? mode != 0 : !(c->modes >> mode & 1))
		return false;
	if (options.mode && !listed(options.mode, modes[mode].name))
		return false;
	if (options.except && listed(options.except, c->name))
		return false;
	for (int i = 0; i < options.nonly; i++) {
		if (!strcmp(options.only[i], c->name) || !strcmp(options.only[i], label))
			return true;
	}
	return !options.nonly;
}

static void show(const struct report *r, const char *label)
{
	counts[r->outcome]++;
	if (r->outcome == OUT_OK)
		printf("ok %s (%ld ms)\n", label, r->ms);
	else if (r->outcome == OUT_SKIP)
		printf("skip %s: %s\n", label, r->text);
	else
		printf("not ok %s: %s\n", label, r->text);
}

/* --- the worker
 * ------------------------------------------------------------------------- */

static void case_run(struct env *e, const struct tcase *c, int index)
{
	long start = now_ms();

	now = (struct report){ .run = index };
	report(OUT_START);
	log_mark();
	case_at(c->file, 0);
	case_note(NULL);
	case_number = c->number;
	alarm((unsigned)options.timeout);
	if (setjmp(skipped)) {
		env_reset(e);
		alarm(0);
		report(OUT_SKIP);
		return;
	}
	env_case(e, options.timeout);
	c->run(e);
	case_at(c->file, 0);
	env_reset(e);
	alarm(0);
	now.ms = now_ms() - start;
	report(OUT_OK);
}

static void worker(int mode, const int *run, int first, int n, int fd, int log)
{
	struct env *e = env_new(&modes[mode]);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	report_fd = fd;
	if (!options.verbose) {
		log_fd = log;
		dup2(log, STDERR_FILENO);
	}
	peers_prepare(PEERS);
	placed_open(false);
	for (int i = first; i < n; i++)
		case_run(e, &cases[run[i]], i);
	/* Closing everything must work too: that is the run -1. */
	now = (struct report){ .run = -1 };
	report(OUT_START);
	case_at("closing", 0);
	alarm((unsigned)options.timeout);
	env_free(e);
	exit(0);
}

/* --- the parent
 * ------------------------------------------------------------------------- */

static void died_text(int status, char *text, size_t len)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(text, len, "not done after %d s", options.timeout);
	else if (WIFSIGNALED(status))
		snprintf(text, len, "killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, len, "exited with %d", WEXITSTATUS(status));
}

/* One report, or false when the worker is gone; one that is stuck is killed. */
static bool report_read(int fd, pid_t pid, struct report *r)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, (options.timeout + 15) * 1000) == 0)
		kill(pid, SIGKILL);
	return read(fd, r, sizeof(*r)) == (ssize_t)sizeof(*r);
}

/* Run -1 is the closing of everything; its label comes after the others. */
static const char *label_of(char labels[][160], int run)
{
	return labels[run < 0 ? MAX_CASES : run];
}

/* Follows one worker to its end; returns the first run that is still to do. */
static int worker_follow(int fd, pid_t pid, int log, char labels[][160], int next)
{
	struct report r, cur = { .outcome = OUT_OK, .run = -1 };
	off_t from = 0;
	int status;

	while (report_read(fd, pid, &r)) {
		if (r.outcome == OUT_START) {
			from = lseek(log, 0, SEEK_END);
		} else {
			show(&r, label_of(labels, r.run));
			if (r.outcome == OUT_FAIL)
				log_show(log, from);
		}
		cur = r;
		if (r.run >= 0)
			next = r.run + 1;
	}
	waitpid(pid, &status, 0);
	if (cur.outcome != OUT_FAIL && (status || (cur.outcome == OUT_START && cur.run >= 0))) {
		died_text(status, cur.text, sizeof(cur.text));
		cur.outcome = OUT_FAIL;
		show(&cur, label_of(labels, cur.run));
		log_show(log, from);
	}
	return cur.run < 0 ? MAX_CASES : next;
}

static int worker_start(int mode, const int *run, int first, int n, char labels[][160])
{
	int log = memfd_create("log", MFD_CLOEXEC);
	int p[2], next;
	pid_t pid;

	if (log < 0 || pipe2(p, O_CLOEXEC))
		abort();
	fcntl(log, F_SETFL, O_APPEND);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		close(p[0]);
		worker(mode, run, first, n, p[1], log);
	}
	close(p[1]);
	next = worker_follow(p[0], pid, log, labels, first);
	close(p[0]);
	close(log);
	return next;
}

static void mode_run(int mode, unsigned group)
{
	static char labels[MAX_CASES + 1][160];
	int run[MAX_CASES];
	int n = 0;

	for (int i = 0; i < ncases; i++) {
		if (cases[i].group == group &&
		    case_wanted(&cases[i], mode, labels[n], sizeof(labels[n])))
			run[n++] = i;
	}
	snprintf(labels[MAX_CASES], sizeof(labels[0]), "everything_closes[%s]", modes[mode].name);
	for (int next = 0; next < n;)
		next = worker_start(mode, run, next, n, labels);
}

/* --- options
 * ---------------------------------------------------------------------------- */

static int list(void)
{
	char label[160];

	for (int m = 0; m < NMODES; m++) {
		for (int i = 0; i < ncases; i++) {
			if (case_wanted(&cases[i], m, label, sizeof(label)))
				puts(label);
		}
	}
	return 0;
}

static int list_modes(void)
{
	for (int m = 0; m < NMODES; m++)
		puts(modes[m].name);
	return 0;
}

static int usage(FILE *out)
{
	fputs("options:\n"
	      "  --list             names of the cases\n"
	      "  --modes            names of the modes\n"
	      "  --case NAME        this case only, with or without [MODE]; repeatable\n"
	      "  --except NAME,...  not these cases\n"
	      "  --mode MODE,...    in these modes only\n"
	      "  --timeout SECONDS  for each case (120)\n"
	      "  --verbose          do not capture stderr\n"
	      "  --control ADDRESS  targets are started by the --role target there, "
	      "HOST:PORT\n"
	      "  --role target --control ADDRESS  listen there and start targets\n",
	      out);
	return out == stderr ? 2 : 0;
}

struct roles {
	const char *role, *control;
	int control_fd;
	bool list;
	int status; /* >= 0: nothing else to do */
};

static void option_take(struct roles *r, int c)
{
	switch (c) {
	case 'l':
		r->list = true;
		break;
	case 'M':
		r->status = list_modes();
		break;
	case 'c':
		if (options.nonly < 32)
			options.only[options.nonly++] = optarg;
		break;
	case 'x':
		options.except = optarg;
		break;
	case 'm':
		options.mode = optarg;
		break;
	case 't':
		options.timeout = atoi(optarg);
		break;
	case 'v':
		options.verbose = true;
		break;
	case 'C':
		r->control = optarg;
		break;
	case 'F':
		r->control_fd = atoi(optarg);
		break;
	case 'r':
		r->role = optarg;
		break;
	default:
		r->status = usage(c == 'h' ? stdout : stderr);
	}
}

static void options_read(struct roles *r, int argc, char **argv)
{
	static const struct option longs[] = { { "list", no_argument, NULL, 'l' },
					       { "modes", no_argument, NULL, 'M' },
					       { "case", required_argument, NULL, 'c' },
					       { "except", required_argument, NULL, 'x' },
					       { "mode", required_argument, NULL, 'm' },
					       { "timeout", required_argument, NULL, 't' },
					       { "verbose", no_argument, NULL, 'v' },
					       { "control", required_argument, NULL, 'C' },
					       { "control-fd", required_argument, NULL, 'F' },
					       { "role", required_argument, NULL, 'r' },
					       { "help", no_argument, NULL, 'h' },
					       { NULL, 0, NULL, 0 } };
	int c;

	while (r->status < 0 && (c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		option_take(r, c);
	if (optind < argc && r->status < 0)
		r->status = usage(stderr);
	if (r->list && r->status < 0)
		r->status = list();
}

static int driver(void)
{
	for (unsigned i = 0; i < NMODES * CASE_GROUPS; i++)
		mode_run((int)(i / CASE_GROUPS), i % CASE_GROUPS);
	printf("# %d passed, %d failed, %d skipped\n", counts[OUT_OK], counts[OUT_FAIL],
	       counts[OUT_SKIP]);
	return counts[OUT_FAIL] || !(counts[OUT_OK] + counts[OUT_SKIP]);
}

int main(int argc, char **argv)
{
	struct roles r = { .control_fd = -1, .status = -1 };

	options_read(&r, argc, argv);
	if (r.status >= 0)
		return r.status;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	/* What a case looks for in a log must not be thinned out. */
	setenv("FI_LOG_INTERVAL", "0", 0);
	if (r.control_fd >= 0)
		return serve(r.control_fd);
	if (r.role && !strcmp(r.role, "target") && r.control)
		return serve_at(r.control);
	if (r.role)
		return usage(stderr);
	peer_control = r.control;
	return driver();
}
