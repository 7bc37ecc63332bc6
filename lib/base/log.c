/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/host.h"
#include "base/log.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/errtext.h"
#include "base/flood.h"
#include "base/names.h"
#include "base/strict.h"
#include "base/thread.h"
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define OUR_NAME "mrfab"
#define LINE_MAX_BYTES 1536 /* of our own lines, and of others' without an allocation */
#define SHORT_MAX_BYTES 384 /* of those that this file writes */
#define LEVEL_NONE (-1)

/* Written once (or by a test), read by every thread. */
static struct {
	pthread_once_t once;
	int level;
	unsigned subsys;   /* bit n: subsystem n is on */
	const char *provs; /* FI_LOG_PROV or NULL; belongs to env.c */
	bool ours;	   /* provs lets our own lines through */
} config = { .once = PTHREAD_ONCE_INIT };

struct line {
	char *buf;
	size_t size;
	size_t used; /* < size, the final newline not counted */
};

const struct mrf_host *mrf_host;
_Atomic int mrf_log_max = FI_LOG_DEBUG;

/* --- writing ---------------------------------------------------------------------- */

static void line_vadd(struct line *line, const char *fmt, va_list ap) MRF_PRINTF(2, 0);
static void line_add(struct line *line, const char *fmt, ...) MRF_PRINTF(2, 3);

static void line_vadd(struct line *line, const char *fmt, va_list ap)
{
	size_t room = line->size - line->used;
	int n = vsnprintf(line->buf + line->used, room, fmt, ap);

	if (n > 0)
		line->used += mrf_min((uint64_t)n, room - 1);
}

static void line_add(struct line *line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line_vadd(line, fmt, ap);
	va_end(ap);
}

/* One write(2), so that lines of several threads or processes do not mix. */
static void line_write(struct line *line)
{
	ssize_t n;

	while (line->used && line->buf[line->used - 1] == '\n')
		line->used--;
	line->buf[line->used++] = '\n';
	do
		n = write(STDERR_FILENO, line->buf, line->used);
	while (n < 0 && errno == EINTR);
}

/* Names that come from the user must not forge a line of their own. */
static void line_flatten(struct line *line)
{
	size_t i;

	for (i = 0; i < line->used; i++) {
		if (iscntrl((unsigned char)line->buf[i]))
			line->buf[i] = ' ';
	}
}

static void line_begin(struct line *line, enum fi_log_level level, enum fi_log_subsys subsys)
{
	line_add(line, "libmrfab:%ld::" OUR_NAME ":%s<%s> ", (long)getpid(),
		 mrf_names_enum(&mrf_names_log_subsys, subsys),
		 mrf_names_enum(&mrf_names_log_level, level));
}

/*
 * One of our own lines, in buf; what follows the head, if it has one, begins at line->used. There is
 * one buffer on the stack and no copy: threads of some programs have stacks of 16 KiB.
 */
static void own_begin(struct line *line, char *buf, size_t size, enum fi_log_level level,
		      enum fi_log_subsys subsys)
{
	*line = (struct line){ .buf = buf, .size = size };
	buf[0] = '\0';
	if (!mrf_host)
		line_begin(line, level, subsys);
}

static void own_write(struct line *line, enum fi_log_level level, enum fi_log_subsys subsys)
{
	line_flatten(line);
	if (mrf_host)
		mrf_host->log(level, subsys, line->buf);
	else
		line_write(line);
}

static void log_own(enum fi_log_level level, enum fi_log_subsys subsys, const char *fmt, ...)
	MRF_PRINTF(3, 4);

static void log_own(enum fi_log_level level, enum fi_log_subsys subsys, const char *fmt, ...)
{
	char buf[SHORT_MAX_BYTES];
	struct line line;
	va_list ap;

	own_begin(&line, buf, sizeof(buf), level, subsys);
	va_start(ap, fmt);
	line_vadd(&line, fmt, ap);
	va_end(ap);
	own_write(&line, level, subsys);
}

/* --- configuration ---------------------------------------------------------------- */

static unsigned subsys_from(const char *filter)
{
	unsigned mask = 0, i;

	for (i = 0; i < FI_LOG_SUBSYS_MAX; i++) {
		if (mrf_env_listed(filter, mrf_names_enum(&mrf_names_log_subsys, i)))
			mask |= 1u << i;
	}
	return mask;
}

/* -2: not a level. */
static int level_from(const char *name)
{
	int level;

	if (!name || !*name)
		return FI_LOG_WARN;
	if (!strcasecmp(name, "none"))
		return LEVEL_NONE;
	for (level = FI_LOG_WARN; level < FI_LOG_MAX; level++) {
		if (!strcasecmp(name, mrf_names_enum(&mrf_names_log_level, level)))
			return level;
	}
	return -2;
}

/* Runs inside the once: must not come back here, hence log_own. */
static void configure(void)
{
	const char *level = mrf_env_str(MRF_PARAM_LOG_LEVEL);
	const char *subsys = mrf_env_str(MRF_PARAM_LOG_SUBSYS);
	const char *interval;

	config.provs = mrf_env_str(MRF_PARAM_LOG_PROV);
	config.ours = mrf_env_listed(config.provs, OUR_NAME);
	config.subsys = subsys_from(subsys);
	config.level = level_from(level);
	if (config.level < LEVEL_NONE) {
		config.level = FI_LOG_WARN;
		log_own(FI_LOG_WARN, FI_LOG_CORE,
			"MRF-W5901: FI_LOG_LEVEL=\"%s\": the level must be none, warn, trace, "
			"info or debug; warn is in force",
			level);
	}
	atomic_store(&mrf_log_max, config.level);
	interval = mrf_env_complaint(MRF_PARAM_LOG_INTERVAL);
	if (interval) {
		log_own(FI_LOG_WARN, FI_LOG_CORE,
			"MRF-W5903: FI_LOG_INTERVAL=\"%s\": the value must be a number of "
			"milliseconds; %ld is in force",
			interval, mrf_env_int(MRF_PARAM_LOG_INTERVAL));
	}
	if (subsys && !config.subsys) {
		log_own(FI_LOG_WARN, FI_LOG_CORE,
			"MRF-W5902: FI_LOG_SUBSYS=\"%s\" names no subsystem: "
			"nothing will be logged",
			subsys);
	}
}

void mrf_log_reload(void)
{
	static const pthread_once_t fresh = PTHREAD_ONCE_INIT;

	mrf_env_reload();
	mrf_flood_reset();
	atomic_store(&mrf_log_max, FI_LOG_DEBUG);
	config.once = fresh;
}

static bool is_wanted(enum fi_log_level level, enum fi_log_subsys subsys)
{
	pthread_once(&config.once, configure);
	return (int)level >= 0 && (int)level <= config.level &&
	       (unsigned)subsys < FI_LOG_SUBSYS_MAX && (config.subsys & 1u << subsys);
}

bool mrf_log_enabled(enum fi_log_level level, enum fi_log_subsys subsys)
{
	return mrf_host ? mrf_host->log_enabled(level, subsys)
			: is_wanted(level, subsys) && config.ours;
}

bool mrf_log_prov_enabled(const char *prov, enum fi_log_level level, enum fi_log_subsys subsys)
{
	return is_wanted(level, subsys) && mrf_env_listed(config.provs, prov);
}

/* --- our own lines ---------------------------------------------------------------- */

void mrf_log(enum fi_log_level level, enum fi_log_subsys subsys, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	int saved = errno;
	struct line line;
	va_list ap;

	if (mrf_log_enabled(level, subsys)) {
		own_begin(&line, text, sizeof(text), level, subsys);
		va_start(ap, fmt);
		line_vadd(&line, fmt, ap);
		va_end(ap);
		own_write(&line, level, subsys);
	}
	errno = saved;
}

static __thread struct mrf_refusal *catching;

void mrf_refuse_catch(struct mrf_refusal *refusal)
{
	catching = refusal;
	if (!refusal)
		return;
	refusal->code = 0;
	refusal->text[0] = '\0';
}

/* True: the text is wanted. */
static bool catches(unsigned code)
{
	if (!catching || catching->code)
		return false;
	catching->code = code;
	return true;
}

static void tell_left_out(struct mrf_flood_line line, unsigned left_out)
{
	if (mrf_log_enabled(FI_LOG_WARN, line.subsys))
		log_own(FI_LOG_WARN, line.subsys, "MRF-%c%04u: %u more line%s like it %s left out",
			line.kind, line.code, left_out, MRF_S(left_out),
			left_out == 1 ? "was" : "were");
}

__attribute__((destructor)) static void tell_the_rest(void)
{
	mrf_flood_rest(true, tell_left_out);
}

struct what {
	enum fi_log_level level;
	enum fi_log_subsys subsys;
	unsigned code;
	char kind;
};

static int refuse(const struct what *what, char *buf, size_t len, int err, const char *fmt,
		  va_list ap) MRF_PRINTF(5, 0);

static int refuse(const struct what *what, char *buf, size_t len, int err, const char *fmt,
		  va_list ap)
{
	struct mrf_flood_line flood = { what->kind, (unsigned char)what->subsys, what->code };
	char text[LINE_MAX_BYTES], *sentence = text;
	struct line line;
	bool refusal = what->kind == 'E', caught = refusal && catches(what->code), logged;
	int saved = errno;
	unsigned left_out;

	if (err > 0)
		err = -err;
	logged = mrf_log_enabled(what->level, what->subsys) && mrf_flood_passes(flood, &left_out);
	if (buf || caught || logged) {
		own_begin(&line, text, sizeof(text), what->level, what->subsys);
		sentence = text + line.used;
		line_add(&line, "MRF-%c%04u: ", what->kind, what->code);
		line_vadd(&line, fmt, ap);
		line_flatten(&line);
	}
	if (buf && len)
		snprintf(buf, len, "%s", sentence);
	if (caught)
		snprintf(catching->text, sizeof(catching->text), "%.*s",
			 (int)sizeof(catching->text) - 1, sentence);
	if (logged && refusal)
		line_add(&line, " (%d, %s)", err, mrf_errtext(err));
	if (logged && left_out)
		line_add(&line, "; %u more line%s like it %s left out before", left_out,
			 MRF_S(left_out), left_out == 1 ? "was" : "were");
	if (logged) {
		own_write(&line, what->level, what->subsys);
		mrf_flood_rest(false, tell_left_out);
	}
	errno = saved;
	return err;
}

int mrf_refuse_as(enum fi_log_level level, char *buf, size_t len, int err,
		  enum fi_log_subsys subsys, unsigned code, const char *fmt, ...)
{
	struct what what = { level, subsys, code, 'E' };
	va_list ap;
	int ret;

	va_start(ap, fmt);
	ret = refuse(&what, buf, len, err, fmt, ap);
	va_end(ap);
	/* A query is no mistake, and what a queue will report is no longer on its caller's stack. */
	if (level == FI_LOG_WARN && !buf && !catching && !mrf_thread_is_own())
		mrf_strict_stop(-ret);
	return ret;
}

void mrf_warn(enum fi_log_subsys subsys, unsigned code, const char *fmt, ...)
{
	struct what what = { FI_LOG_WARN, subsys, code, 'W' };
	va_list ap;

	va_start(ap, fmt);
	refuse(&what, NULL, 0, 0, fmt, ap);
	va_end(ap);
}

void mrf_misuse(enum fi_log_subsys subsys, unsigned code, const char *fmt, ...)
{
	struct what what = { FI_LOG_WARN, subsys, code, 'W' };
	va_list ap;

	va_start(ap, fmt);
	refuse(&what, NULL, 0, 0, fmt, ap);
	va_end(ap);
	if (!mrf_thread_is_own())
		mrf_strict_stop(0);
}

/* --- lines of others -------------------------------------------------------------- */

void mrf_log_prov(const char *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		  const char *func, int line, const char *fmt, va_list ap)
{
	char small[LINE_MAX_BYTES], *big = NULL;
	struct line out = { .buf = small, .size = sizeof(small) };
	int saved = errno, need;
	va_list again;

	va_copy(again, ap);
	need = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	/* A dump of several pages must not be cut while memory lasts. */
	if (need > LINE_MAX_BYTES / 2)
		big = malloc((size_t)need + LINE_MAX_BYTES / 2);
	if (big) {
		out.buf = big;
		out.size = (size_t)need + LINE_MAX_BYTES / 2;
	}
	line_add(&out, "libmrfab:%ld:%lld::%s:%s:%s():%d<%s> ", (long)getpid(),
		 (long long)time(NULL), prov, mrf_names_enum(&mrf_names_log_subsys, subsys),
		 func ? func : "?", line, mrf_names_enum(&mrf_names_log_level, level));
	line_vadd(&out, fmt, ap);
	line_write(&out);
	free(big);
	errno = saved;
}

bool mrf_log_due(uint64_t *showtime)
{
	uint64_t then = __atomic_load_n(showtime, __ATOMIC_RELAXED);
	uint64_t now = (uint64_t)mrf_now_ms();

	if (now < then)
		return false;
	return __atomic_compare_exchange_n(showtime, &then,
					   now + (uint64_t)mrf_env_int(MRF_PARAM_LOG_INTERVAL),
					   false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
