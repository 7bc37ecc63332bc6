/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints on the fake fabric: a node is what one process would open, from the fabric
 * down to an enabled endpoint, with a domain (and so an agent thread) of its own.
 */
#ifndef EP_FIXTURE_H
#define EP_FIXTURE_H

#include <check.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "base/clock.h"
#include "ep/model/peer.h"
#include "unit.h"
#include "../fake/fake_fabric.h"

#define PAGE 4096u
#define REMOTE_RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
/* Nothing here takes longer, under whatever tool, unless it hangs. */
#define LONG_MS 20000

struct node {
	struct fid_fabric *fabric;
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *wr, *rd; /* NULL unless asked for; without cq of messages, too */
	struct fid_ep *ep;
};

struct node_opt {
	int mr_mode;
	bool selective;
	bool counters;
	bool no_cq;
	uint64_t op_flags;
	uint16_t port; /* 0: any */
	/* Authorization keys, of the domain and of the endpoint; NULL: none. */
	const char *auth_key;
	const char *ep_key;
	uint32_t api;		  /* version that was asked for; 0: 1.17 */
	uint64_t caps;		  /* 0: the usual ones */
	size_t tx_size;		  /* 0: what is offered */
	uint64_t order;		  /* beside what is offered without being asked for */
	enum fi_cq_format format; /* 0: FI_CQ_FORMAT_DATA, as want_ok needs */
};

/* Regions pinned for good: what is posted, and when, does not depend on questions. */
#define PLAIN (&(struct node_opt){ .mr_mode = FI_MR_ALLOCATED })

/* Before each test: a fresh fake, no log. After it: nothing is alive. */
void fixture_setup(void);
/* Connecting may take one second only: for tests in which it will not end. No node is open. */
void fixture_impatient(void);
void fixture_setup_impatient(void);
void fixture_teardown(void);
/* Lines of the library reach standard error from here on; no node may be open. */
void fixture_log(void);

/* FI_MRFAB_UNEXPECTED for endpoints that are opened from here on; NULL: as usual. */
void fixture_unexpected(const char *kib);
/* FI_MRFAB_UNEXPECTED_COUNT, likewise. */
void fixture_unexpected_count(const char *count);

/* Each step's error, with everything undone, or 0. */
int node_try_open(struct node *n, const struct node_opt *opt);
void node_open(struct node *n, const struct node_opt *opt);
void node_close(struct node *n);
/* An endpoint more (or again) of the node, enabled. */
int node_try_ep(struct node *n, const struct node_opt *opt, struct fid_ep **ep);
/* Waits until the agent has handled what its device has told, and what came before. */
void node_heard(struct node *n);
struct mrf_agent *node_agent(const struct node *n);
struct mrf_ep *node_ep(const struct node *n);
uint16_t node_port(const struct node *n);
/* How many lines lead to it: peers that send it messages. */
unsigned node_lines(const struct node *n);
/* to, in from's address vector. */
fi_addr_t node_insert(struct node *from, const struct node *to);
fi_addr_t node_insert_port(struct node *from, uint16_t port);
struct fid_mr *node_reg(struct node *n, void *buf, size_t len, uint64_t access, uint64_t key);
struct fid_mr *node_regv(struct node *n, const struct iovec *iov, size_t count, uint64_t access,
			 uint64_t key);
void must_close(struct fid *fid);

/* Two nodes, a region of the second, and what the first needs to reach it. */
struct pair {
	struct node a, b;
	fi_addr_t to;	       /* b, in a's address vector */
	uint8_t *src;	       /* PAIR_LEN bytes of a's, filled with seed 1 */
	struct fid_mr *src_mr; /* of src, in a domain with FI_MR_LOCAL; else NULL */
	void *desc;	       /* its descriptor, or NULL */
	uint8_t *dst;	       /* PAIR_LEN bytes of b's, behind mr, zero */
	struct fid_mr *mr;
	uint64_t key;
	uint64_t base; /* remote address of dst[0] */
};

#define PAIR_LEN (64 * 1024ul)
#define PAIR_KEY 77

void pair_open(struct pair *p, const struct node_opt *opt);
/* Registers dst again (or first) with these rights. */
void pair_reg(struct pair *p, uint64_t access);
void pair_close(struct pair *p);
/* fi_write and fi_read of len bytes at the same offset of src and dst; context is p->src
 * + at. */
void pair_write(struct pair *p, size_t at, size_t len);
void pair_read(struct pair *p, size_t at, size_t len);
void *pair_ctx(struct pair *p, size_t at);

/* The next completion, which must be context's, or of any when context is NULL. */
struct fi_cq_data_entry want_ok(struct node *n, const void *context);
/* The next is an error with err; returns its prov_errno. text may be NULL. */
int want_err(struct node *n, const void *context, int err, const char *text);
/* Nothing is there and nothing comes. */
void want_none(struct node *n);
/* What its endpoint has at this moment, and what it knows of a peer. */
struct node_state {
	unsigned ops;
	unsigned work_requests; /* whose completions were not taken in */
	bool connection;	/* there is one */
};
struct node_state node_state(const struct node *n, fi_addr_t to);
/* How many kept parts of a region it knows and may use. */
unsigned node_parts(const struct node *n, fi_addr_t to, uint64_t key);
/* No operation, no work request. */
bool node_idle(const struct node *n);
/* Waits until cond holds; it is not looked at again then. */
#define want_soon(cond)                                             \
	do {                                                        \
		int64_t end_ = mrf_now_ms() + LONG_MS;              \
		bool true_;                                         \
                                                                    \
		while (!(true_ = (cond)) && mrf_now_ms() < end_)    \
			usleep(500);                                \
		ck_assert_msg(true_, "never came true: %s", #cond); \
	} while (0)

/*
 * Waits until it is idle. Whoever reads completions also takes up those of the agent's requests,
 * such as a lease that was released some ms after its last use.
 */
void want_idle(const struct node *n);

/* Fills with a pattern that tells place and seed. */
void fill(void *buf, size_t len, unsigned seed);
bool filled(const void *buf, size_t len, unsigned seed);
/* Page-aligned, zeroed, freed by the system. */
void *pages(size_t len);

#endif
