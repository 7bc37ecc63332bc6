/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "case.h"
#include "stranger.h"

/* Beside this program, or, where libtool keeps that one in a folder, above. */
static void find(char *path, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", path, len - 1);
	char *slash;

	must(n > 0, "where is this program: %s", strerror(errno));
	path[n] = '\0';
	slash = strrchr(path, '/');
	*slash = '\0';
	if (!strcmp(strrchr(path, '/'), "/.libs"))
		slash = strrchr(path, '/');
	snprintf(slash, len - (size_t)(slash - path), "/foreign");
}

extern char **environ;

void stranger_start(struct stranger *s)
{
	posix_spawn_file_actions_t files;
	char path[4096], *argv[] = { path, NULL };
	int to[2], from[2], err;

	find(path, sizeof(path));
	must(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC), "pipe");
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, to[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, from[1], STDOUT_FILENO);
	err = posix_spawn(&s->pid, path, &files, NULL, argv, environ);
	must(!err, "%s: %s", path, strerror(err));
	posix_spawn_file_actions_destroy(&files);
	close(to[0]);
	close(from[1]);
	s->in = to[1];
	s->out = from[0];
}

static void tell(struct stranger *s, const char *fmt, va_list ap)
{
	char line[1024];
	int n = vsnprintf(line, sizeof(line) - 1, fmt, ap);

	must(n > 0 && (size_t)n < sizeof(line) - 1, "too long a command");
	line[n++] = '\n';
	must(write(s->in, line, (size_t)n) == n, "the stranger is gone");
}

void stranger_tell(struct stranger *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell(s, fmt, ap);
	va_end(ap);
}

const char *stranger_hear(struct stranger *s)
{
	size_t n = 0;

	while (n < sizeof(s->said) - 1 && read(s->out, s->said + n, 1) == 1 && s->said[n] != '\n')
		n++;
	s->said[n] = '\0';
	must(n && strncmp(s->said, "error", 5), "the stranger: %s", s->said);
	return s->said;
}

const char *stranger_do(struct stranger *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell(s, fmt, ap);
	va_end(ap);
	return stranger_hear(s);
}

void stranger_stop(struct stranger *s)
{
	int status;

	close(s->in);
	must(waitpid(s->pid, &status, 0) == s->pid && !status,
	     "the stranger ended with status 0x%x", (unsigned)status);
	close(s->out);
}

const char *stranger_addr(const void *name)
{
	static char text[64];
	struct sockaddr_in in;

	memcpy(&in, name, sizeof(in));
	inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
	snprintf(text + strlen(text), sizeof(text) - strlen(text), " %u", ntohs(in.sin_port));
	return text;
}
