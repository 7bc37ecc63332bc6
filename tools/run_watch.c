/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "run_watch.h"

#define LINE_BYTES 4096 /* of a line, its beginning is looked at; the rest is passed on */
#define LOOK_MS 100	/* how often it is looked whether the program has ended */

struct watching {
	const struct run_watch *watch;
	FILE *log;
	char line[LINE_BYTES];
	size_t used;
	unsigned failures;
};

static volatile sig_atomic_t child;

/* Those from the terminal reach the program by themselves. */
static void pass_on(int signal)
{
	if (child > 0)
		kill((pid_t)child, signal);
}

static void take_signals(void)
{
	const struct sigaction forward = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGTERM, &forward, NULL);
	sigaction(SIGHUP, &forward, NULL);
	sigaction(SIGUSR1, &forward, NULL);
	sigaction(SIGUSR2, &forward, NULL);
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGQUIT, &ignore, NULL);
}

/* --- lines ---------------------------------------------------------------------------- */

/* The kind of a line of the library's: behind the level comes the code. 0: it is no such line. */
static char kind_of(const char *line)
{
	const char *code = strstr(line, "> MRF-");
	int i;

	if (!code)
		return 0;
	code += strlen("> MRF-");
	for (i = 1; i <= 4; i++) {
		if (!isdigit((unsigned char)code[i]))
			return 0;
	}
	return *code;
}

static void end_line(struct watching *w)
{
	char kind;

	w->line[w->used] = '\0';
	kind = kind_of(w->line);
	if (kind && w->log)
		fprintf(w->log, "%s\n", w->line);
	w->failures += (kind == 'E' && w->watch->errors) || (kind == 'W' && w->watch->warnings);
	w->used = 0;
}

static void take_in(struct watching *w, const char *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (bytes[i] == '\n')
			end_line(w);
		else if (w->used < LINE_BYTES - 1)
			w->line[w->used++] = bytes[i];
	}
}

/* Everything goes on to our own standard error as it comes. */
static void pass_bytes(const char *bytes, size_t n)
{
	ssize_t done;

	for (; n; bytes += done, n -= (size_t)done) {
		done = write(STDERR_FILENO, bytes, n);
		if (done < 0 && errno == EINTR)
			done = 0;
		if (done < 0)
			return;
	}
}

/* --- the program ---------------------------------------------------------------------- */

/* False: nothing more comes. */
static bool take_some(struct watching *w, int fd)
{
	char bytes[LINE_BYTES];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	pass_bytes(bytes, (size_t)n);
	take_in(w, bytes, (size_t)n);
	return true;
}

/*
 * Until the program has ended and what it wrote is read. What it has started may go on, and keeps
 * the pipe open: that is not waited for.
 */
static int take_all(struct watching *w, int fd, pid_t pid)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	bool open = true, ended = false;
	int status = 0;

	while (!ended || open) {
		int n = open ? poll(&ready, 1, ended ? 0 : LOOK_MS) : 0;

		if (n > 0)
			open = take_some(w, fd);
		else if (ended)
			break;
		if (!ended)
			ended = waitpid(pid, &status, open ? WNOHANG : 0) == pid;
	}
	if (w->used)
		end_line(w);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Leaves in pipe[0] what the program writes to standard error. */
static pid_t start(char **argv, int pipe[2])
{
	int told[2], err = 0;
	pid_t pid;

	/* The errno of execvp comes through a pipe that closes when it succeeds. */
	if (pipe2(pipe, O_CLOEXEC) || pipe2(told, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(pipe[1], STDERR_FILENO);
		execvp(argv[0], argv);
		err = errno;
		(void)!write(told[1], &err, sizeof(err));
		_exit(1);
	}
	close(pipe[1]);
	close(told[1]);
	if (pid > 0 && read(told[0], &err, sizeof(err)) == sizeof(err)) {
		waitpid(pid, NULL, 0);
		pid = -1;
		errno = err;
	}
	err = errno;
	close(told[0]);
	errno = err;
	return pid;
}

int run_watched(const struct run_watch *watch, char **argv)
{
	struct watching w = { .watch = watch };
	int pipe[2], status;
	pid_t pid;

	if (watch->log_file) {
		w.log = fopen(watch->log_file, "ae");
		if (!w.log)
			return RUN_WATCH_NO_FILE;
		setvbuf(w.log, NULL, _IOLBF, 2 * LINE_BYTES);
	}
	pid = start(argv, pipe);
	if (pid < 0)
		return -1;
	child = pid;
	take_signals();
	status = take_all(&w, pipe[0], pid);
	if (w.log && fclose(w.log))
		return RUN_WATCH_NO_FILE;
	if (!w.failures)
		return status;
	fprintf(stderr,
		"mrfab_run: %s: exit status %d because of %u line%s of the log (--fail-on); its own was %d\n",
		argv[0], RUN_WATCH_FAILED, w.failures, w.failures == 1 ? "" : "s", status);
	return RUN_WATCH_FAILED;
}
