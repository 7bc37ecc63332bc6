/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The patterns in which programs call libfabric for messages, with libfabric that is installed and
 * libmrfab's module, or with libmrfab itself. Each pattern is run by two processes that know each
 * other's address only as the programs do.
 *
 * Usage: patterns [--modes | --hosts] [NAME...]
 * --modes: those that depend on the registration mode, in each of the modes.
 * --hosts: the servers run on host 1, the clients on host 0, as scripts/with-rxe --hosts 2 numbers
 *          them.
 * Prints "ok NAME" or "not ok NAME: why", then a line with the sums.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "side.h"

#define PATIENCE_S 60
#define OOB_PORT 7473 /* with --hosts */

/* What the two processes of a pattern leave here for their parent. */
static struct {
	char why[400];
} * shared;

static const char *role = "?";

void fail(const char *fmt, ...)
{
	char text[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* The first failure is the cause of the other side's. */
	if (!shared->why[0])
		snprintf(shared->why, sizeof(shared->why), "%s: %s", role, text);
	_exit(1);
}

static const struct pattern *const lists[] = { rdm_patterns,  tagged_patterns, rma_patterns,
					       many_patterns, call_patterns,   client_patterns,
					       mpi_patterns };
#define LISTS (sizeof(lists) / sizeof(lists[0]))

static const char *const modes[] = { "LOCAL",	 "RAW",	       "VIRT_ADDR", "ALLOCATED",
				     "PROV_KEY", "MMU_NOTIFY", "RMA_EVENT", "ENDPOINT" };
#define MODES (sizeof(modes) / sizeof(modes[0]))

/* --- where the two meet, to tell each other what programs are told by their users ------------- */

static int meeting = -1; /* on host 1: the socket that listens */

static struct sockaddr_in oob_addr(const char *var)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(OOB_PORT) };
	const char *addr = getenv(var);

	if (!addr || inet_pton(AF_INET, addr, &in.sin_addr) != 1) {
		fprintf(stderr, "patterns: %s is no address\n", var);
		exit(2);
	}
	return in;
}

static void hosts_listen(void)
{
	struct sockaddr_in in = oob_addr("MRFAB_HOST_ADDR");
	int on = 1;

	meeting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(meeting, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(meeting, (struct sockaddr *)&in, sizeof(in)) || listen(meeting, 1)) {
		perror("patterns: listening");
		exit(2);
	}
}

/* -1: the other host does not come. */
static int hosts_accept(void)
{
	struct pollfd p = { .fd = meeting, .events = POLLIN };

	return poll(&p, 1, PATIENCE_S * 1000) == 1 ? accept(meeting, NULL, NULL) : -1;
}

static int hosts_connect(void)
{
	struct sockaddr_in in = oob_addr("MRFAB_PEER_ADDR");

	for (int i = 0; i < PATIENCE_S * 10; i++) {
		int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (!connect(sock, (struct sockaddr *)&in, sizeof(in)))
			return sock;
		close(sock);
		poll(NULL, 0, 100);
	}
	return -1;
}

/* --- running ------------------------------------------------------------------------------------ */

static pid_t side_fork(const struct pattern *p, bool client, int sock, int other)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	close(other);
	role = client ? "client" : "server";
	signal(SIGPIPE, SIG_IGN);
	/* A side whose program hangs must not outlive its parent. */
	alarm(2 * PATIENCE_S);
	(client ? p->client : p->server)(&(struct side){ .client = client, .oob = sock });
	_exit(0);
}

static void said(const char *fmt, int value)
{
	if (!shared->why[0])
		snprintf(shared->why, sizeof(shared->why), fmt, value);
}

/* True: it has ended well. */
static bool reap(pid_t pid, long until)
{
	int status = 0;
	pid_t got;

	while (!(got = waitpid(pid, &status, WNOHANG)) && now_ms() < until)
		poll(NULL, 0, 2);
	if (!got) {
		said("no end after %d s", PATIENCE_S);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	} else if (WIFSIGNALED(status)) {
		said("signal %d", WTERMSIG(status));
	} else if (WEXITSTATUS(status)) {
		said("exit status %d", WEXITSTATUS(status));
	}
	return !status;
}

/* Both on this host. One that has failed closes the socket, at which the other one fails soon. */
static bool run_both(const struct pattern *p, long until)
{
	pid_t server, client;
	int socks[2];
	bool ok;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, socks))
		return false;
	server = side_fork(p, false, socks[0], socks[1]);
	client = side_fork(p, true, socks[1], socks[0]);
	close(socks[0]);
	close(socks[1]);
	ok = reap(client, until);
	return reap(server, until) && ok;
}

/* A process that is both talks to nobody else. */
static bool run_alone(const struct pattern *p, long until)
{
	return reap(side_fork(p, false, -1, -1), until);
}

static bool run_half(const struct pattern *p, long until)
{
	bool client = meeting < 0;
	int sock = client ? hosts_connect() : hosts_accept();
	pid_t pid;

	if (sock < 0) {
		said("no other host within %d s", PATIENCE_S);
		return false;
	}
	pid = side_fork(p, client, sock, -1);
	close(sock);
	return reap(pid, until);
}

static bool two_hosts;

static bool run(const struct pattern *p)
{
	long until = now_ms() + PATIENCE_S * 1000L;

	shared->why[0] = 0;
	if (!p->client)
		return run_alone(p, until);
	return two_hosts ? run_half(p, until) : run_both(p, until);
}

static unsigned passed, failed;

static void run_named(const struct pattern *p, const char *mode)
{
	long began = now_ms();
	char name[80];

	snprintf(name, sizeof(name), mode ? "%s[%s]" : "%s", p->name, mode);
	if (run(p)) {
		printf("ok %s (%ld ms)\n", name, now_ms() - began);
		passed++;
	} else {
		printf("not ok %s: %s\n", name, shared->why);
		failed++;
	}
	fflush(stdout);
}

static bool is_wanted(const char *name, char **names)
{
	for (char **n = names; *n; n++) {
		if (!strcmp(*n, name))
			return true;
	}
	return !*names;
}

static void run_all(const char *mode, char **names)
{
	for (unsigned i = 0; i < LISTS; i++) {
		for (const struct pattern *p = lists[i]; p->name; p++) {
			if ((!mode || p->in_modes) && is_wanted(p->name, names))
				run_named(p, mode);
		}
	}
}

/* So that not every process has to find all providers anew. */
static void warm_up(void)
{
	struct fi_info *info = NULL;

	fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
	fi_freeinfo(info);
}

static void run_modes(char **names)
{
	for (unsigned i = 0; i < MODES; i++) {
		setenv("FI_MRFAB_MR_MODE", modes[i], 1);
		run_all(modes[i], names);
	}
}

int main(int argc, char **argv)
{
	const char *option = argc > 1 && !strncmp(argv[1], "--", 2) ? argv[1] : "";
	char **names = argv + (*option ? 2 : 1);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	warm_up();
	two_hosts = !strcmp(option, "--hosts");
	if (two_hosts && !strcmp(getenv("MRFAB_HOST") ? getenv("MRFAB_HOST") : "", "1"))
		hosts_listen();
	if (!strcmp(option, "--modes"))
		run_modes(names);
	else
		run_all(NULL, names);
	printf("patterns: %u passed, %u failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
