/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every unit test shares: main(), and catching what the library writes to standard
 *error. A test file ends with
 *
 *	UNIT_MAIN("cq", tcase_open, tcase_read)
 *
 * where each argument is a function `static TCase *name(void)`. Works with CK_FORK=no.
 */
#ifndef UNIT_H
#define UNIT_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The library reads none of what the tests were started with. */
static inline void unit_forget_env(void)
{
	char name[64];
	size_t i = 0;

	while (environ[i]) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(environ[i], "="), environ[i]);
		if (strncmp(name, "FI_", 3) || unsetenv(name))
			i++;
	}
}

/*
 * Has each test a process of its own? A test of what is said once in a process, or of a variable that
 * is read once, ends at once if not (under valgrind).
 */
static inline bool unit_forks(void)
{
	const char *fork = getenv("CK_FORK");

	return !fork || strcmp(fork, "no");
}

/* Exit status for main(): 0 when every test passed. */
static inline int unit_run(const char *name, TCase *(*const cases[])(void), size_t count)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	size_t i;
	int failures;

	/* Check's 4 s are too few where several builds share a slow machine. */
	setenv("CK_DEFAULT_TIMEOUT", "60", 0);
	unit_forget_env();
	/* Each refusal of a table of many has its line. */
	setenv("FI_LOG_INTERVAL", "0", 1);
	for (i = 0; i < count; i++)
		suite_add_tcase(suite, cases[i]());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failures = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failures != 0;
}

#define UNIT_MAIN(name, ...)                                                    \
	int main(void)                                                          \
	{                                                                       \
		static TCase *(*const cases[])(void) = { __VA_ARGS__ };         \
                                                                                \
		return unit_run(name, cases, sizeof(cases) / sizeof(cases[0])); \
	}

/* Catches file descriptor 2 from unit_capture() to unit_captured(). */
struct unit_capture {
	FILE *file;
	int saved; /* the real standard error */
	char text[16384];
};

static inline void unit_capture(struct unit_capture *cap)
{
	fflush(stderr);
	cap->file = tmpfile();
	cap->saved = dup(STDERR_FILENO);
	ck_assert(cap->file && cap->saved >= 0);
	ck_assert_int_ge(dup2(fileno(cap->file), STDERR_FILENO), 0);
}

/* Puts standard error back. What was written is cut to the size of cap->text. */
static inline const char *unit_captured(struct unit_capture *cap)
{
	size_t n;

	fflush(stderr);
	dup2(cap->saved, STDERR_FILENO);
	close(cap->saved);
	rewind(cap->file);
	n = fread(cap->text, 1, sizeof(cap->text) - 1, cap->file);
	cap->text[n] = '\0';
	fclose(cap->file);
	return cap->text;
}

/* How many lines the text has: a refusal must write exactly one. */
static inline unsigned unit_lines(const char *text)
{
	unsigned lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

#endif
