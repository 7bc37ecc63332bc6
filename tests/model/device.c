/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "device.h"
#include "run.h"

/* A process that serves one thread. */
struct child {
	int fd;
	pid_t pid;
};

static bool (*are_left)(void);

static struct fi_info *hints_make(const struct conf *conf)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		abort();
	hints->caps = FI_RMA | FI_ATOMIC | (conf->event ? FI_RMA_EVENT : 0) |
		      (conf->device ? FI_HMEM : 0) | (conf->messages ? FI_MSG | FI_TAGGED : 0) |
		      (conf->directed ? FI_DIRECTED_RECV : 0) | (conf->source ? FI_SOURCE : 0);
	hints->addr_format = FI_SOCKADDR_IN;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT |
				      FI_MR_ENDPOINT | (conf->device ? FI_MR_HMEM : 0);
	if (conf->auth) {
		hints->domain_attr->auth_key = (uint8_t *)strdup(auth_key(1));
		hints->domain_attr->auth_key_size = strlen(auth_key(1));
	}
	hints->fabric_attr->prov_name = strdup("mrfab");
	return hints;
}

static struct fi_info *info(const struct conf *conf)
{
	const char *node = getenv("MRFAB_FUNC_NODE");
	struct fi_info *hints = hints_make(conf), *info = NULL;
	char mode[128];

	mode_print(conf->mode, mode, sizeof(mode));
	setenv("FI_MRFAB_MR_MODE", mode, 1);
	setenv("FI_LOG_LEVEL", "none", 1);
	must(fi_getinfo(conf->api, node, NULL, node ? FI_SOURCE : 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

/* False: the other end is gone. */
static bool move(int fd, void *buf, size_t len, bool out)
{
	char *p = buf;

	while (len) {
		ssize_t n = out ? send(fd, p, len, MSG_NOSIGNAL) : recv(fd, p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static const struct backend backend;

static void __attribute__((noreturn)) serve(int fd, const struct conf *conf)
{
	static struct peer_answer answer;
	struct mate *mate = NULL;
	struct peer_ask ask;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mate = mate_new(&backend, conf);
	while (move(fd, &ask, sizeof(ask), false) && ask.what != PEER_CLOSE) {
		mate_start(mate, &ask);
		mate_end(mate, &answer);
		if (!move(fd, &answer, sizeof(answer), true))
			break;
	}
	mate_free(mate);
	exit(0);
}

static void *open_peer(const struct conf *conf, unsigned thread)
{
	static struct child children[THREADS];
	struct child *child = &children[thread];
	int s[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	child->pid = fork();
	if (!child->pid) {
		close(s[0]);
		serve(s[1], conf);
	}
	close(s[1]);
	child->fd = s[0];
	return child;
}

static void gone(void)
{
	model_fail("peer", "a peer is gone");
}

static void start(void *peer, const struct peer_ask *ask)
{
	struct child *child = peer;

	if (!move(child->fd, (void *)ask, sizeof(*ask), true))
		gone();
}

static void end(void *peer, struct peer_answer *answer)
{
	struct child *child = peer;

	if (!move(child->fd, answer, sizeof(*answer), false))
		gone();
}

static void close_peer(void *peer)
{
	struct peer_ask ask = { .what = PEER_CLOSE };
	struct child *child = peer;
	int status;

	start(peer, &ask);
	close(child->fd);
	must_be(waitpid(child->pid, &status, 0), child->pid);
	must_be(status, 0);
}

static const char *leftovers(void)
{
	return are_left() ? "kernel objects are left" : NULL;
}

static const struct backend backend = {
	.info = info,
	.peer_open = open_peer,
	.start = start,
	.end = end,
	.peer_close = close_peer,
	.memory = 1ul << 44, /* where the kernel puts nothing by itself */
	.leftovers = leftovers,
};

bool model_on_device(unsigned first, unsigned worlds, unsigned steps, unsigned threads,
		     unsigned budget, bool messages, bool (*left)(void))
{
	struct plan plan = { .backend = &backend,
			     .seed = plan_seed(1),
			     .first = first,
			     .worlds = worlds,
			     .steps = steps,
			     .threads = threads,
			     .seconds = budget,
			     .budget = budget,
			     .messages = messages,
			     .out = stdout };

	are_left = left;
	return model_run(&plan);
}
