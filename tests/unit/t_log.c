/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"
#include "base/clock.h"
#include "base/log.h"
#include <rdma/fi_errno.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

static struct unit_capture cap;
static const struct fi_provider other = { .name = "Other" };

/* --- the library's clock, which a test may stop ------------------------------------------ */

static int64_t stopped_at; /* in ns; 0: it goes */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (!stopped_at)
		return __real_clock_gettime(id, ts);
	*ts = (struct timespec){ .tv_sec = stopped_at / 1000000000,
				 .tv_nsec = stopped_at % 1000000000 };
	return 0;
}

static void stop_clock(void)
{
	stopped_at = mrf_now_ns();
}

static void later(int64_t ms)
{
	stopped_at += ms * 1000000;
}

/* NULL: not set. */
static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void configure_with(const char *level, const char *prov, const char *subsys)
{
	set("FI_LOG_LEVEL", level);
	set("FI_LOG_PROV", prov);
	set("FI_LOG_SUBSYS", subsys);
	mrf_log_reload();
}

static void setup(void)
{
	stopped_at = 0;
	unsetenv("FI_LOG_INTERVAL");
	configure_with(NULL, NULL, NULL);
}

static void interval(const char *ms)
{
	setenv("FI_LOG_INTERVAL", ms, 1);
	mrf_log_reload();
}

/* The greatest level that is on for our own lines; -1: none. */
static int level_on(enum fi_log_subsys subsys)
{
	int level = -1, l;

	for (l = FI_LOG_WARN; l < FI_LOG_MAX; l++) {
		if (!mrf_log_enabled((enum fi_log_level)l, subsys))
			continue;
		ck_assert_int_eq(level, l - 1); /* no gaps */
		level = l;
	}
	return level;
}

START_TEST(log_level_is_warn_unless_set)
{
	ck_assert_int_eq(level_on(FI_LOG_MR), FI_LOG_WARN);
	configure_with("", NULL, NULL);
	ck_assert_int_eq(level_on(FI_LOG_MR), FI_LOG_WARN);
}
END_TEST

START_TEST(log_level_follows_the_environment_whatever_the_case)
{
	static const struct {
		const char *text;
		int level;
	} rows[] = { { "none", -1 },	       { "None", -1 },
		     { "warn", FI_LOG_WARN },  { "trace", FI_LOG_TRACE },
		     { "info", FI_LOG_INFO },  { "INFO", FI_LOG_INFO },
		     { "debug", FI_LOG_DEBUG } };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(rows); i++) {
		configure_with(rows[i].text, NULL, NULL);
		unit_capture(&cap);
		ck_assert_int_eq(level_on(FI_LOG_MR), rows[i].level);
		ck_assert_str_eq(unit_captured(&cap), "");
	}
}
END_TEST

START_TEST(log_level_that_is_none_says_so_once_and_stays_warn)
{
	const char *text;

	configure_with("loud", NULL, NULL);
	unit_capture(&cap);
	ck_assert_int_eq(level_on(FI_LOG_MR), FI_LOG_WARN);
	ck_assert_int_eq(level_on(FI_LOG_CQ), FI_LOG_WARN);
	text = unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_ptr_nonnull(strstr(text, "MRF-W5901"));
	ck_assert_ptr_nonnull(strstr(text, "\"loud\""));
}
END_TEST

START_TEST(log_subsys_is_a_list_or_its_contrary)
{
	static const struct {
		const char *text;
		unsigned mask;
	} rows[] = {
		{ NULL, 0x3ff },
		{ "", 0 },
		{ "mr", 1u << FI_LOG_MR },
		{ "MR", 1u << FI_LOG_MR },
		{ "cq,mr", 1u << FI_LOG_MR | 1u << FI_LOG_CQ },
		{ "mr,bogus", 1u << FI_LOG_MR },
		{ "^mr", 0x3ffu & ~(1u << FI_LOG_MR) },
		{ "^mr,cq", 0x3ffu & ~(1u << FI_LOG_MR | 1u << FI_LOG_CQ) },
		{ "^", 0x3ff },
	};
	unsigned mask, s;
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(rows); i++) {
		configure_with(NULL, NULL, rows[i].text);
		for (mask = s = 0; s < FI_LOG_SUBSYS_MAX; s++)
			mask |= (unsigned)mrf_log_enabled(FI_LOG_WARN, s) << s;
		ck_assert_uint_eq(mask, rows[i].mask);
	}
}
END_TEST

START_TEST(log_subsys_that_names_none_says_so)
{
	const char *text;

	configure_with(NULL, NULL, "m");
	unit_capture(&cap);
	ck_assert_int_eq(level_on(FI_LOG_MR), -1);
	text = unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_ptr_nonnull(strstr(text, "MRF-W5902"));
}
END_TEST

START_TEST(log_interval_that_is_wrong_is_said_once_and_not_used)
{
	unit_capture(&cap);
	interval("often");
	ck_assert_int_eq(level_on(FI_LOG_MR), FI_LOG_WARN);
	ck_assert_int_eq(level_on(FI_LOG_CQ), FI_LOG_WARN);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W5903: FI_LOG_INTERVAL=\"often\""));
	ck_assert_ptr_nonnull(strstr(cap.text, "2000 is in force"));
	unsetenv("FI_LOG_INTERVAL");
}
END_TEST

START_TEST(log_prov_filters_by_name)
{
	static const struct {
		const char *text;
		bool ours, others;
	} rows[] = { { NULL, true, true },
		     { "mrfab", true, false },
		     { "MRFAB", true, false },
		     { "other", false, true },
		     { "x,other,mrfab", true, true },
		     { "^mrfab", false, true },
		     { "^other,x", true, false },
		     { "mrf", false, false } };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(rows); i++) {
		configure_with(NULL, rows[i].text, NULL);
		ck_assert_int_eq(mrf_log_enabled(FI_LOG_WARN, FI_LOG_MR), rows[i].ours);
		ck_assert_int_eq(fi_log_enabled(&other, FI_LOG_WARN, FI_LOG_MR), rows[i].others);
	}
	configure_with(NULL, "core", NULL);
	ck_assert(fi_log_enabled(NULL, FI_LOG_WARN, FI_LOG_MR));
}
END_TEST

START_TEST(log_enabled_refuses_what_is_no_level_or_subsystem)
{
	configure_with("debug", NULL, NULL);
	ck_assert(fi_log_enabled(&other, FI_LOG_DEBUG, FI_LOG_CNTR));
	ck_assert(!fi_log_enabled(&other, FI_LOG_MAX, FI_LOG_MR));
	ck_assert(!fi_log_enabled(&other, (enum fi_log_level) - 1, FI_LOG_MR));
	ck_assert(!fi_log_enabled(&other, FI_LOG_WARN, FI_LOG_SUBSYS_MAX));
	ck_assert(!fi_log_enabled(&other, FI_LOG_WARN, (enum fi_log_subsys)77));
}
END_TEST

START_TEST(log_refuse_writes_one_line_and_returns_the_error)
{
	char want[256];

	snprintf(want, sizeof(want),
		 "libmrfab:%ld::mrfab:mr<warn> MRF-E3007: offset=0x10: must be 0 "
		 "(-22, Invalid argument)\n",
		 (long)getpid());
	unit_capture(&cap);
	ck_assert_int_eq(mrf_refuse(FI_EINVAL, FI_LOG_MR, 3007, "offset=%#x: must be 0", 16),
			 -FI_EINVAL);
	ck_assert_str_eq(unit_captured(&cap), want);
	unit_capture(&cap);
	ck_assert_int_eq(mrf_refuse(-FI_ENOKEY, FI_LOG_MR, 77, "x"), -FI_ENOKEY);
	unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E0077: x (-266, "));
}
END_TEST

START_TEST(log_refuse_that_is_off_returns_the_error_in_silence)
{
	char buf[32];

	configure_with("none", NULL, NULL);
	unit_capture(&cap);
	ck_assert_int_eq(mrf_refuse(FI_EBUSY, FI_LOG_MR, 1, "x"), -FI_EBUSY);
	ck_assert_int_eq(mrf_refuse_text(buf, sizeof(buf), FI_EBUSY, FI_LOG_MR, 2, "y%d", 1),
			 -FI_EBUSY);
	mrf_warn(FI_LOG_MR, 3, "z");
	ck_assert_str_eq(unit_captured(&cap), "");
	ck_assert_str_eq(buf, "MRF-E0002: y1");
}
END_TEST

START_TEST(log_refuse_text_leaves_the_text_cut_to_the_buffer)
{
	char buf[20];

	memset(buf, 'x', sizeof(buf));
	unit_capture(&cap);
	ck_assert_int_eq(
		mrf_refuse_text(buf, 16, FI_EACCES, FI_LOG_EP_DATA, 4001, "no right to write"),
		-FI_EACCES);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	ck_assert_ptr_nonnull(strstr(cap.text, "no right to write (-13"));
	ck_assert_str_eq(buf, "MRF-E4001: no r");
	ck_assert_int_eq(buf[16], 'x');
	ck_assert_int_eq(mrf_refuse_text(buf, 0, FI_EACCES, FI_LOG_EP_DATA, 1, "gone"), -FI_EACCES);
	ck_assert_str_eq(buf, "MRF-E4001: no r");
}
END_TEST

START_TEST(log_keeps_the_first_refusal_for_who_catches_it)
{
	struct mrf_refusal caught;
	char longer[2 * sizeof(caught.text)];

	/* Also when nobody wants to read it. */
	configure_with("none", NULL, NULL);
	mrf_refuse_catch(&caught);
	ck_assert_uint_eq(caught.code, 0);
	ck_assert_str_eq(caught.text, "");
	ck_assert_int_eq(mrf_refuse(FI_EBUSY, FI_LOG_MR, 17, "x%d", 1), -FI_EBUSY);
	ck_assert_int_eq(mrf_refuse(FI_EBUSY, FI_LOG_MR, 18, "y"), -FI_EBUSY);
	ck_assert_uint_eq(caught.code, 17);
	ck_assert_str_eq(caught.text, "MRF-E0017: x1");
	memset(longer, 'z', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	mrf_refuse_catch(&caught);
	mrf_refuse(FI_EBUSY, FI_LOG_MR, 19, "%s", longer);
	mrf_refuse_catch(NULL);
	mrf_refuse(FI_EBUSY, FI_LOG_MR, 20, "not caught");
	ck_assert_uint_eq(caught.code, 19);
	ck_assert_uint_eq(strlen(caught.text), sizeof(caught.text) - 1);
}
END_TEST

START_TEST(log_leaves_errno_alone)
{
	struct fi_provider prov = { .name = "x" };

	configure_with("debug", NULL, NULL);
	unit_capture(&cap);
	close(STDERR_FILENO); /* so that write fails */
	errno = ENOTTY;
	mrf_refuse(FI_EINVAL, FI_LOG_MR, 1, "a");
	ck_assert_int_eq(errno, ENOTTY);
	mrf_warn(FI_LOG_MR, 1, "a");
	ck_assert_int_eq(errno, ENOTTY);
	mrf_log(FI_LOG_INFO, FI_LOG_MR, "a");
	ck_assert_int_eq(errno, ENOTTY);
	fi_log(&prov, FI_LOG_INFO, FI_LOG_MR, "f", 1, "a");
	ck_assert_int_eq(errno, ENOTTY);
	unit_captured(&cap);
}
END_TEST

START_TEST(log_of_a_text_with_newlines_stays_one_line)
{
	unit_capture(&cap);
	mrf_refuse(FI_EINVAL, FI_LOG_CORE, 1001, "name=\"%s\"", "a\nlibmrfab: forged\033[2J");
	mrf_warn(FI_LOG_CORE, 1002, "b\nc\n");
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 2);
	ck_assert_ptr_nonnull(strstr(cap.text, "a libmrfab: forged [2J"));
	ck_assert_ptr_nonnull(strstr(cap.text, "core<warn> MRF-W1002: b c"));
}
END_TEST

START_TEST(log_of_an_endless_text_is_cut_and_ends_its_line)
{
	static char big[10000];

	memset(big, 'a', sizeof(big) - 1);
	unit_capture(&cap);
	mrf_refuse(FI_EINVAL, FI_LOG_CORE, 1, "%s", big);
	mrf_warn(FI_LOG_CORE, 1, "%s", big);
	configure_with("info", NULL, NULL);
	mrf_info(FI_LOG_CORE, "%s", big);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 3);
	ck_assert_uint_eq(strlen(cap.text), 3 * 1536);
	ck_assert_int_eq(cap.text[strlen(cap.text) - 1], '\n');
}
END_TEST

START_TEST(log_macros_write_at_their_level_only)
{
	unit_capture(&cap);
	mrf_info(FI_LOG_EQ, "info %d", 1);
	mrf_debug(FI_LOG_EQ, "debug %d", 2);
	configure_with("info", NULL, NULL);
	mrf_info(FI_LOG_EQ, "info %d", 3);
	mrf_debug(FI_LOG_EQ, "debug %d", 4);
	configure_with("debug", NULL, NULL);
	mrf_debug(FI_LOG_EQ, "debug %d", 5);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 2);
	ck_assert_ptr_nonnull(strstr(cap.text, "mrfab:eq<info> info 3\n"));
	ck_assert_ptr_nonnull(strstr(cap.text, "mrfab:eq<debug> debug 5\n"));
}
END_TEST

START_TEST(log_of_others_has_time_function_and_line)
{
	char want[128];
	long long when;
	int at = 0;

	unit_capture(&cap);
	fi_log(&other, FI_LOG_WARN, FI_LOG_AV, "work", 12, "hello %d\n", 3);
	unit_captured(&cap);
	snprintf(want, sizeof(want), "libmrfab:%ld:%%lld::Other:av:work():12<warn> hello 3%%n",
		 (long)getpid());
	ck_assert_int_eq(sscanf(cap.text, want, &when, &at), 1);
	ck_assert_str_eq(cap.text + at, "\n");
	ck_assert_int_le(llabs(when - (long long)time(NULL)), 10);
}
END_TEST

START_TEST(log_of_others_is_not_cut)
{
	static char big[10000];

	memset(big, 'a', sizeof(big) - 1);
	unit_capture(&cap);
	fi_log(NULL, FI_LOG_WARN, FI_LOG_CORE, NULL, 1, "%s\nlast", big);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 2);
	ck_assert_ptr_nonnull(strstr(cap.text, ":core:core:?():1<warn> aaa"));
	ck_assert_ptr_nonnull(strstr(cap.text, "aaa\nlast\n"));
	ck_assert_uint_gt(strlen(cap.text), sizeof(big));
}
END_TEST

START_TEST(log_ready_lets_one_line_through_per_interval)
{
	uint64_t showtime = 0, on = 0, off = 0;

	stop_clock();
	ck_assert(fi_log_ready(&other, FI_LOG_WARN, FI_LOG_MR, &showtime));
	ck_assert_uint_gt(showtime, 0);
	ck_assert(!fi_log_ready(&other, FI_LOG_WARN, FI_LOG_MR, &showtime));
	ck_assert(!fi_log_ready(&other, FI_LOG_INFO, FI_LOG_MR, &off));
	ck_assert_uint_eq(off, 0);
	setenv("FI_LOG_INTERVAL", "0", 1);
	mrf_log_reload();
	ck_assert(fi_log_ready(&other, FI_LOG_WARN, FI_LOG_MR, &on));
	ck_assert(fi_log_ready(&other, FI_LOG_WARN, FI_LOG_MR, &on));
	setenv("FI_LOG_INTERVAL", "20", 1);
	mrf_log_reload();
	on = 0;
	ck_assert(fi_log_ready(&other, FI_LOG_WARN, FI_LOG_MR, &on));
	later(19);
	ck_assert(!fi_log_ready(&other, FI_LOG_WARN, FI_LOG_MR, &on));
	later(1);
	ck_assert(fi_log_ready(&other, FI_LOG_WARN, FI_LOG_MR, &on));
}
END_TEST

#define THREADS 4
#define EACH 200

static void *write_many(void *arg)
{
	int i;

	for (i = 0; i < EACH; i++)
		mrf_warn(FI_LOG_CORE, 1, "thread %c %s", *(char *)arg,
			 "0123456789012345678901234567890123456789");
	return NULL;
}

/* The first line of all comes from several threads at once, too. */
START_TEST(log_lines_of_threads_do_not_mix)
{
	static char names[THREADS + 1] = "abcd";
	static char line[256];
	pthread_t threads[THREADS];
	int fds[2], i, lines = 0, saved = dup(STDERR_FILENO);
	FILE *in;

	interval("0");
	ck_assert_int_eq(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_many, &names[i]), 0);
	in = fdopen(fds[0], "r");
	while (lines < THREADS * EACH && fgets(line, sizeof(line), in)) {
		const char *end = strchr(line, '\n');

		ck_assert(end && !strncmp(end - 41, " 0123456789", 11));
		ck_assert_int_eq(strncmp(line, "libmrfab:", 9), 0);
		lines++;
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	fclose(in);
	ck_assert_int_eq(lines, THREADS * EACH);
}
END_TEST

/* --- lines that repeat ------------------------------------------------------------ */

#define FIRST 10 /* that are logged as they come */

static void refuse_times(unsigned code, int n)
{
	while (n--)
		ck_assert_int_eq(mrf_refuse(FI_EMFILE, FI_LOG_MR, code, "none left"), -FI_EMFILE);
}

/* How often it stands in what was captured. */
static unsigned times(const char *what)
{
	const char *at = cap.text;
	unsigned n = 0;

	while ((at = strstr(at, what))) {
		at++;
		n++;
	}
	return n;
}

START_TEST(flood_is_logged_ten_times_and_then_counted)
{
	interval("60000");
	unit_capture(&cap);
	refuse_times(2012, 46053);
	refuse_times(2015, 3);
	unit_captured(&cap);
	ck_assert_uint_eq(times("MRF-E2012: none left (-24, "), FIRST);
	ck_assert_uint_eq(times("MRF-E2015"), 3); /* another code is another matter */
	ck_assert_uint_eq(unit_lines(cap.text), FIRST + 3);
}
END_TEST

START_TEST(flood_goes_on_with_a_line_an_interval_that_has_the_count)
{
	interval("100");
	stop_clock();
	unit_capture(&cap);
	refuse_times(2012, FIRST + 7);
	later(150); /* pays for one line, not for two */
	refuse_times(2012, 4);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), FIRST + 1);
	ck_assert_ptr_nonnull(strstr(cap.text,
				     "MRF-E2012: none left (-24, Too many open files); 7 more "
				     "lines like it were left out before\n"));
}
END_TEST

START_TEST(flood_that_ended_long_ago_is_forgotten)
{
	interval("20");
	stop_clock();
	unit_capture(&cap);
	refuse_times(2012, FIRST);
	later(20 * (FIRST + 2));
	refuse_times(2012, FIRST);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 2 * FIRST);
	ck_assert_uint_eq(times("left out"), 0);
}
END_TEST

START_TEST(flood_is_counted_behind_a_line_of_another_code)
{
	interval("50");
	stop_clock();
	unit_capture(&cap);
	refuse_times(2012, FIRST + 5);
	mrf_warn(FI_LOG_CQ, 4020, "too early");
	later(60);
	mrf_warn(FI_LOG_CQ, 4020, "in time");
	mrf_warn(FI_LOG_CQ, 4020, "nothing to tell");
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), FIRST + 4);
	ck_assert_uint_eq(times("left out"), 1);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W4020: in time\n"
					       "libmrfab:"));
	ck_assert_ptr_nonnull(
		strstr(cap.text, ":mr<warn> MRF-E2012: 5 more lines like it were left out\n"));
}
END_TEST

START_TEST(flood_of_one_line_too_many_is_one_line)
{
	interval("50");
	stop_clock();
	unit_capture(&cap);
	refuse_times(2012, FIRST + 1);
	later(60);
	mrf_warn(FI_LOG_CQ, 4020, "in time");
	unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E2012: 1 more line like it was left out\n"));
}
END_TEST

/* Runs body in a child that ends as programs do. */
static void in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		body();
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void flood_and_end(void)
{
	refuse_times(2012, 1000);
}

START_TEST(flood_is_counted_when_the_process_ends)
{
	interval("60000");
	unit_capture(&cap);
	in_child(flood_and_end);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), FIRST + 1);
	ck_assert_ptr_nonnull(
		strstr(cap.text, "MRF-E2012: 990 more lines like it were left out\n"));
}
END_TEST

static void log_once(void)
{
	mrf_warn(FI_LOG_CQ, 4020, "a child's own");
}

START_TEST(flood_of_a_parent_is_not_the_childs_to_tell)
{
	interval("60000");
	unit_capture(&cap);
	refuse_times(2012, FIRST + 1);
	in_child(log_once);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), FIRST + 1);
	ck_assert_uint_eq(times("left out"), 0);
}
END_TEST

START_TEST(flood_leaves_no_caller_without_its_text)
{
	char buf[32];
	int i;

	interval("60000");
	unit_capture(&cap);
	for (i = 0; i < 3 * FIRST; i++) {
		memset(buf, 0, sizeof(buf));
		mrf_refuse_text(buf, sizeof(buf), FI_EACCES, FI_LOG_EP_DATA, 4001, "n=%d", i);
		ck_assert_int_eq(atoi(buf + sizeof("MRF-E4001: n=") - 1), i);
	}
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), FIRST);
}
END_TEST

START_TEST(flood_without_an_interval_is_logged_whole)
{
	interval("0");
	unit_capture(&cap);
	refuse_times(2012, 100);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 100);
	ck_assert_uint_eq(times("left out"), 0);
}
END_TEST

static void *flood_thread(void *arg)
{
	(void)arg;
	refuse_times(2012, 2000);
	return NULL;
}

static void flood_from_threads(void)
{
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, flood_thread, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* What "N more lines" and "1 more line" say, all together. */
static unsigned long counted(void)
{
	const char *at = cap.text;
	unsigned long sum = 0;

	while ((at = strstr(at, " more line"))) {
		const char *digit = at;

		while (digit[-1] >= '0' && digit[-1] <= '9')
			digit--;
		sum += strtoul(digit, NULL, 10);
		at++;
	}
	return sum;
}

START_TEST(flood_of_threads_loses_no_line_and_counts_none_twice)
{
	interval("5");
	unit_capture(&cap);
	in_child(flood_from_threads);
	unit_captured(&cap);
	ck_assert_uint_eq(times("none left") + counted(), THREADS * 2000);
	ck_assert_uint_gt(counted(), 0);
}
END_TEST

START_TEST(decline_is_a_refusal_that_is_told_at_level_info)
{
	struct mrf_refusal caught;

	unit_capture(&cap);
	mrf_refuse_catch(&caught);
	ck_assert_int_eq(mrf_decline(FI_ENODATA, FI_LOG_FABRIC, 1020, "at most %d", 7),
			 -FI_ENODATA);
	mrf_refuse_catch(NULL);
	configure_with("info", NULL, NULL);
	mrf_decline(FI_ENODATA, FI_LOG_FABRIC, 1020, "at most %d", 8);
	unit_captured(&cap);
	ck_assert_str_eq(caught.text, "MRF-E1020: at most 7");
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	ck_assert_ptr_nonnull(strstr(cap.text, "fabric<info> MRF-E1020: at most 8 (-61, No data"));
}
END_TEST

static TCase *tcase_floods(void)
{
	TCase *tcase = tcase_create("floods");

	tcase_add_checked_fixture(tcase, setup, setup);
	tcase_add_test(tcase, flood_is_logged_ten_times_and_then_counted);
	tcase_add_test(tcase, flood_goes_on_with_a_line_an_interval_that_has_the_count);
	tcase_add_test(tcase, flood_that_ended_long_ago_is_forgotten);
	tcase_add_test(tcase, flood_is_counted_behind_a_line_of_another_code);
	tcase_add_test(tcase, flood_of_one_line_too_many_is_one_line);
	tcase_add_test(tcase, flood_is_counted_when_the_process_ends);
	tcase_add_test(tcase, flood_of_a_parent_is_not_the_childs_to_tell);
	tcase_add_test(tcase, flood_leaves_no_caller_without_its_text);
	tcase_add_test(tcase, flood_without_an_interval_is_logged_whole);
	tcase_add_test(tcase, flood_of_threads_loses_no_line_and_counts_none_twice);
	tcase_add_test(tcase, decline_is_a_refusal_that_is_told_at_level_info);
	return tcase;
}

static TCase *tcase_config(void)
{
	TCase *tcase = tcase_create("config");

	tcase_add_checked_fixture(tcase, setup, setup);
	tcase_add_test(tcase, log_level_is_warn_unless_set);
	tcase_add_test(tcase, log_level_follows_the_environment_whatever_the_case);
	tcase_add_test(tcase, log_level_that_is_none_says_so_once_and_stays_warn);
	tcase_add_test(tcase, log_subsys_is_a_list_or_its_contrary);
	tcase_add_test(tcase, log_subsys_that_names_none_says_so);
	tcase_add_test(tcase, log_interval_that_is_wrong_is_said_once_and_not_used);
	tcase_add_test(tcase, log_prov_filters_by_name);
	tcase_add_test(tcase, log_enabled_refuses_what_is_no_level_or_subsystem);
	return tcase;
}

static TCase *tcase_lines(void)
{
	TCase *tcase = tcase_create("lines");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, setup);
	tcase_add_test(tcase, log_refuse_writes_one_line_and_returns_the_error);
	tcase_add_test(tcase, log_refuse_that_is_off_returns_the_error_in_silence);
	tcase_add_test(tcase, log_refuse_text_leaves_the_text_cut_to_the_buffer);
	tcase_add_test(tcase, log_keeps_the_first_refusal_for_who_catches_it);
	tcase_add_test(tcase, log_leaves_errno_alone);
	tcase_add_test(tcase, log_of_a_text_with_newlines_stays_one_line);
	tcase_add_test(tcase, log_of_an_endless_text_is_cut_and_ends_its_line);
	tcase_add_test(tcase, log_macros_write_at_their_level_only);
	tcase_add_test(tcase, log_of_others_has_time_function_and_line);
	tcase_add_test(tcase, log_of_others_is_not_cut);
	tcase_add_test(tcase, log_ready_lets_one_line_through_per_interval);
	tcase_add_test(tcase, log_lines_of_threads_do_not_mix);
	return tcase;
}

UNIT_MAIN("log", tcase_config, tcase_lines, tcase_floods)
