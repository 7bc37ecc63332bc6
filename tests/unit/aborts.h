/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the library ends the process, as its own checks do in builds with --enable-lockrank. */
#ifndef ABORTS_H
#define ABORTS_H

#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MRF_LOCKRANK
#define LIBRARY_CHECKS true
#else
#define LIBRARY_CHECKS false
#endif

/* Runs body in a process of its own: true when it was aborted. A body may fail by _exit(1). */
static inline bool aborts(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(2);
		body();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
