/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One of the two processes of a pattern, and the calls that nearly all programs make: how they
 * open, how they find each other, how they wait and how they part. The order of the calls is that of
 * the programs. Whatever fails ends the process, and says why.
 *
 * The source compiles with libfabric's headers and with ours: nothing here is of libmrfab.
 */
#ifndef PATTERNS_SIDE_H
#define PATTERNS_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
/* What tests of libfabric offer. */
#define OFFERED (BASIC | FI_MR_LOCAL | FI_MR_ENDPOINT)
#define ADDRESS 1024  /* bytes for what the two need for themselves */
#define LARGEST 16384 /* message that is offered */
#define WAIT_MS 20000

/* Ends the process. */
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *fmt, ...);

#define must(cond, ...)                    \
	do {                               \
		if (!(cond))               \
			fail(__VA_ARGS__); \
	} while (0)
#define must_ok(call)                                                              \
	do {                                                                       \
		long must_ret = (long)(call);                                      \
		must(!must_ret, "line %d: %s: %ld, %s", __LINE__, #call, must_ret, \
		     fi_strerror((int)-must_ret));                                 \
	} while (0)

/* One direction: what was posted, and what has completed. Either may be missing. */
struct queue {
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fi_cq_tagged_entry last;
	uint64_t posted, done;
	uint64_t tag; /* of the next message, if it has one */
	struct fi_context2 ctx;
};

struct side {
	bool client;
	int oob;       /* a socket to the other side */
	char node[64]; /* the server's address, at the client */
	/* What to open; set before side_open. */
	struct fi_info *hints;
	enum fi_wait_obj wait;
	enum fi_cq_format format;
	bool by_counter; /* count, and write no completions */
	bool counted;	 /* count, too */
	bool nothing_posted;
	bool one_queue;	   /* for both directions: tx.cq; rx has none of its own */
	uint64_t cq_flags; /* of fi_ep_bind */
	size_t cq_size;	   /* 0: as many as the attributes say */
	uint32_t version;  /* 0: FI_VERSION(1, 17) */
	size_t size;	   /* the longest message; 0: LARGEST */
	/* What is open. */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_mr *mr;
	void *desc;
	struct queue tx, rx;
	fi_addr_t peer;
	char *mem, *in, *out; /* in and out are parts of mem, of size bytes or ADDRESS */
	size_t mem_size;
	struct fi_rma_iov there; /* the other side's memory */
};

struct pattern {
	const char *name;
	void (*server)(struct side *s);
	void (*client)(struct side *s); /* NULL: one process is both */
	bool in_modes;			/* also with each registration mode */
};

/* The files of patterns; each list ends with a name of NULL. */
extern const struct pattern rdm_patterns[], tagged_patterns[], rma_patterns[], many_patterns[],
	call_patterns[], client_patterns[], mpi_patterns[];

long now_ms(void);

/* --- how they open and part ------------------------------------------------------------- */

/* The usual hints, with these capabilities. */
void side_hints(struct side *s, uint64_t caps);
/* fi_getinfo: the server by its own port, the client by the server's address. */
void side_info(struct side *s);
/* Fabric, domain, queues and address vector; then the endpoint, and a receive. */
void side_open_domain(struct side *s);
void side_open_endpoint(struct side *s);
/* At this address, an fi_setname of which comes before fi_enable; NULL: where the kernel chooses. */
void side_open_endpoint_at(struct side *s, void *name, size_t len);
void side_open(struct side *s);
/* The client sends its name as a message, and the server inserts it. */
void side_meet(struct side *s);
/* As programs that have a socket for it: nothing is posted. */
void side_meet_oob(struct side *s);
/* All four. */
void side_start(struct side *s, uint64_t caps);
/* The last message, whose buffer may be used again at once; then everything is closed. */
void side_last(struct side *s);
void side_close(struct side *s);
void side_end(struct side *s);

/* Bytes of in and of out. */
size_t side_room(const struct side *s);
/* With the key, rights and bindings that the mode wants. */
struct fid_mr *side_reg(struct side *s, void *buf, size_t len, uint64_t access, uint64_t key);
void *side_desc(const struct side *s, struct fid_mr *mr);
uint64_t side_access(const struct side *s);
/* Each side tells the other, by message, where mem may be accessed. */
void side_keys(struct side *s);

/* --- messages ----------------------------------------------------------------------------- */

#define POST(s, q, call)                                                           \
	do {                                                                       \
		ssize_t post_ret;                                                  \
		while ((post_ret = (call)) == -FI_EAGAIN)                          \
			queue_read(s, q);                                          \
		must(!post_ret, "line %d: %s: %zd, %s", __LINE__, #call, post_ret, \
		     fi_strerror((int)-post_ret));                                 \
		(q)->posted++;                                                     \
	} while (0)

bool side_is_tagged(const struct side *s);
/* The next entry of the one queue, and where it came from. */
struct fi_cq_tagged_entry entry_next(struct side *s, fi_addr_t *source);
/* Takes one completion if there is one. */
bool queue_read(struct side *s, struct queue *q);
/* Until so many operations of the queue are done. */
void queue_wait(struct side *s, struct queue *q, uint64_t done);
/* The next entry is an error, which is returned. */
struct fi_cq_err_entry queue_error(struct side *s, struct queue *q);
void post_recv(struct side *s, size_t len);
void post_send(struct side *s, size_t len);
void tx(struct side *s, size_t len);
void inject(struct side *s, size_t len);
/* Waits for the oldest receive, and posts the next one. */
void rx(struct side *s);
/* One byte each way; then one over the socket, of programs that have it. */
void sync_sides(struct side *s);
void oob_sync(struct side *s);

void fill(char *buf, size_t len, unsigned seed);
void same(const char *buf, size_t len, unsigned seed);

#endif
