/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a child process that a test has forked. Check's own handler of SIGALRM is
 * inherited by the child, and a system call that only a fatal signal ends outlasts it: so
 * it is the parent that waits with a limit, and says where each thread of the child is.
 */
#ifndef CHILD_H
#define CHILD_H

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 40

static inline void child_print(pid_t pid, const char *task, const char *what)
{
	char path[96], text[1024];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/%s", (int)pid, task, what);
	file = fopen(path, "r");
	if (!file)
		return;
	n = fread(text, 1, sizeof(text), file);
	fclose(file);
	fprintf(stderr, "%s: %.*s\n", path, (int)n, text);
}

static inline void child_says_where(pid_t pid)
{
	char path[32];
	struct dirent *task;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (task = readdir(dir))) {
		if (task->d_name[0] == '.')
			continue;
		child_print(pid, task->d_name, "syscall");
		child_print(pid, task->d_name, "wchan");
		child_print(pid, task->d_name, "stack");
	}
	if (dir)
		closedir(dir);
}

/* Did it exit with status 0? One that does not end in CHILD_SECONDS is killed. */
static inline bool child_succeeded(pid_t pid)
{
	pid_t got = 0;
	int i, status;

	for (i = 0; !got && i < CHILD_SECONDS * 100; i++) {
		got = waitpid(pid, &status, WNOHANG);
		if (!got)
			usleep(10000);
	}
	if (!got) {
		child_says_where(pid);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	return got == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

#endif
