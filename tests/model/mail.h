/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of messages, for a thread and for its peer alike: what to call is asked for in plain
 * data, and so is what came of it, because the peer may be another process. It knows nothing of
 * matching.
 */
#ifndef MODEL_MAIL_H
#define MODEL_MAIL_H

#include <stdatomic.h>
#include <rdma/fabric.h>
#include "model.h"

#define NAME_MAX_LEN 64

/*
 * Each operation has a buffer of its own. Those of receives go by the endpoint (the peer has
 * one), those of sends come after them.
 */
#define MAIL_RECEIVERS (SENDERS - 1 - SHARED_EPS)
#define MAIL_SENDS (MAIL_RECEIVERS * RECEIVES)
#define MAIL_OPS (MAIL_SENDS + SENDS)

/*
 * As the kind of a failure: one that is wrong shows itself now as this and now as that, and a
 * part of the steps may show it in another way.
 */
#define MAIL_WRONG "a message"

enum mail_what {
	MAIL_HELLO, /* tells the name of the endpoint */
	MAIL_MEET,  /* the peer gets to know an endpoint that will send to it */
	MAIL_SEND,
	MAIL_RECEIVE,
	MAIL_PEEK,
	MAIL_CLAIM,
	MAIL_CANCEL,
	MAIL_END,  /* waits for the end of an operation */
	MAIL_LOOK, /* has one of these operations ended? op + i for each bit i of seed */
	MAIL_COUNT /* waits until so many sends (seed) are counted */
};

struct mail_ask {
	uint32_t what;
	uint32_t op; /* by number */
	uint32_t len;
	uint8_t form, fault; /* form: enum look of MAIL_PEEK and MAIL_CLAIM */
	bool tagged;
	uint64_t tag, ignore, data;
	uint64_t seed;		 /* of the bytes */
	char name[NAME_MAX_LEN]; /* of the other endpoint; empty: any, or the peer's own */
	fi_addr_t addr;		 /* the same, in the thread's own address vector */
};

struct mail_answer {
	int32_t rc;  /* of the call */
	int32_t err; /* of the completion, positive */
	bool ended;
	bool overrun; /* bytes behind the message were changed */
	uint32_t len, olen;
	uint64_t flags, tag, data;
	uint64_t sum; /* of the bytes */
	uint64_t count;
	fi_addr_t source, expected; /* expected: that of ask.name */
};

struct mail_op {
	bool busy;
	atomic_bool ended; /* written by whoever reads the queue */
	uint32_t room;
	int err;
	uint64_t flags, tag, data;
	size_t len, olen;
	fi_addr_t source;
};

struct endpoint;
struct side;

struct mail {
	const struct side *side;
	struct fid_cq *cq; /* of the endpoints that are nobody else's */
	uint8_t *area;
	struct fid_mr *mr,
		*useless; /* of the area; the second grants neither FI_SEND nor FI_RECV */
	void *desc, *useless_desc;
	struct mail_op ops[MAIL_OPS];
	struct mail_op access; /* one that is no message */
};

void mail_open(struct mail *mail, const struct side *side, struct fid_cq *cq);
/* A region that is bound to an endpoint may have to wait until that is closed: then again. */
void mail_close(struct mail *mail);
/* cq: to which the endpoint's operations complete. */
void mail_do(struct mail *mail, struct endpoint *ep, struct fid_cq *cq, const struct mail_ask *ask,
	     struct mail_answer *answer);
/* Waits for the end of op, which completes to cq. */
void mail_await(struct mail *mail, struct fid_cq *cq, struct mail_op *op);
/* What bytes with this seed sum up to. */
uint64_t mail_sum(uint64_t seed, uint32_t len);

#endif
