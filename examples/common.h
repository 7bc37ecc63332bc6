/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all examples need and none is about: errors, two processes that talk over a socket, and
 * an endpoint with its queues. The other calls of libfabric are in the programs themselves.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define WAIT_MS 30000

#define say(fmt, ...) (printf(fmt "\n", ##__VA_ARGS__), fflush(stdout))
#define die(fmt, ...) (fprintf(stderr, fmt "\n", ##__VA_ARGS__), exit(1))

/* For calls that return 0 or a negative error number. */
#define must(call) check(#call, call)

/* For operations: -FI_EAGAIN says that there is no room just now. */
#define post(call)                                        \
	do {                                              \
		ssize_t post_ret;                         \
                                                          \
		while ((post_ret = (call)) == -FI_EAGAIN) \
			;                                 \
		check(#call, post_ret);                   \
	} while (0)

static inline void check(const char *call, ssize_t ret)
{
	if (ret)
		die("%s: %s", call, fi_strerror((int)-ret));
}

/* --- two processes --------------------------------------------------------------------- */

static inline void tell(int fd, const void *what, size_t len)
{
	if (send(fd, what, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("cannot tell the other process: %s", strerror(errno));
}

static inline void hear(int fd, void *what, size_t len)
{
	if (recv(fd, what, len, MSG_WAITALL) != (ssize_t)len)
		die("the other process is gone");
}

/*
 * Runs both sides of an example, each in a process of its own with a socket to the other. Forks
 * before any call of libfabric: what is open does not survive a fork.
 */
static inline int run_both(void (*target)(int fd), void (*initiator)(int fd))
{
	int fds[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) || (pid = fork()) < 0)
		die("cannot start another process: %s", strerror(errno));
	alarm(2 * WAIT_MS / 1000);
	close(fds[!pid]); /* the other's end, so that its death is noticed */
	if (!pid) {
		target(fds[0]);
		exit(0);
	}
	initiator(fds[1]);
	return waitpid(pid, &status, 0) != pid || status;
}

/* --- an endpoint ----------------------------------------------------------------------- */

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av; /* peers */
	struct fid_cq *cq; /* completions of our own operations */
	struct fid_ep *ep;
	/* NULL unless the program opens them */
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct fid_eq *eq;
};

/*
 * mr_mode: everything that the program can live with. The target of an operation makes no calls,
 * so progress has to be automatic; a completion is to say that the bytes are there.
 */
static inline struct fi_info *make_hints(uint64_t caps, uint64_t mr_mode)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		die("no memory");
	hints->caps = caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = (int)mr_mode;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	return hints;
}

static inline struct fid_ep *open_endpoint(struct node *n)
{
	struct fid_ep *ep;

	must(fi_endpoint(n->domain, n->info, &ep, NULL));
	must(fi_ep_bind(ep, &n->av->fid, 0));
	must(fi_ep_bind(ep, &n->cq->fid, FI_TRANSMIT | FI_RECV));
	return ep;
}

/*
 * All of a node, by the first thing that fi_getinfo finds for hints, which are freed. The endpoint
 * has to be enabled once everything is bound to it.
 */
static inline void node_open(struct node *n, const char *own, struct fi_info *hints)
{
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC };

	*n = (struct node){ .info = NULL };
	must(fi_getinfo(FI_VERSION(1, 17), own, NULL, own ? FI_SOURCE : 0, hints, &n->info));
	fi_freeinfo(hints);
	must(fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	must(fi_domain(n->fabric, n->info, &n->domain, NULL));
	must(fi_av_open(n->domain, &av_attr, &n->av, NULL));
	must(fi_cq_open(n->domain, &cq_attr, &n->cq, NULL));
	n->ep = open_endpoint(n);
}

/* Whether this bit of mr_mode is in force. */
static inline bool node_has(const struct node *n, uint64_t bit)
{
	return n->info->domain_attr->mr_mode & bit;
}

static inline fi_addr_t node_insert(struct node *n, const char *name)
{
	fi_addr_t peer;

	if (fi_av_insert(n->av, name, 1, &peer, 0, NULL) != 1)
		die("fi_av_insert does not take the other endpoint's name");
	return peer;
}

/* Waits for one completion. 0, or the FI_E... with which the operation failed. */
static inline int node_wait(struct node *n)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry done;
	ssize_t ret = fi_cq_sread(n->cq, &done, 1, NULL, WAIT_MS);

	if (ret == 1)
		return 0;
	if (ret != -FI_EAVAIL || fi_cq_readerr(n->cq, &err, 0) != 1)
		die("no completion: %s", fi_strerror((int)-ret));
	say("refused: %s: %s", fi_strerror(err.err),
	    fi_cq_strerror(n->cq, err.prov_errno, err.err_data, NULL, 0));
	return err.err;
}

/*
 * The endpoint goes first, since regions may be bound to it (FI_MR_ENDPOINT), and counters before
 * regions; otherwise children go before their parents.
 */
static inline void node_close(struct node *n)
{
	must(fi_close(&n->ep->fid));
	if (n->cntr)
		must(fi_close(&n->cntr->fid));
	if (n->mr)
		must(fi_close(&n->mr->fid));
	must(fi_close(&n->cq->fid));
	must(fi_close(&n->av->fid));
	must(fi_close(&n->domain->fid));
	if (n->eq)
		must(fi_close(&n->eq->fid));
	must(fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
}
