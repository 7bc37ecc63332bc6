/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carrying out steps: by the library, through its public calls only, and by the model.
 * Where they disagree, the run has failed: model_fail notes what and ends the process.
 */
#ifndef MODEL_EXEC_H
#define MODEL_EXEC_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include "mail.h"
#include "runtime/rig.h"

/* Nothing takes longer, unless it hangs. Less when it is known to fail. */
#define SOON_MS 30000
#define HASTY_MS 1500
extern unsigned patience_ms;

enum peer_what {
	PEER_WRITE,
	PEER_READ,
	PEER_ATOMIC,
	PEER_FETCH,
	PEER_COMPARE,
	PEER_INJECT, /* the last access */
	PEER_MAP,
	PEER_UNMAP,
	PEER_BOARD, /* where its own region is: base and raw key */
	PEER_PAINT, /* fills that with byte_of(seed, i) */
	PEER_SHOW,  /* what is in it */
	PEER_MAIL,  /* a call of messages */
	PEER_CLOSE
};

struct peer_ask {
	uint32_t what;
	uint32_t len;
	uint64_t addr, key, seed;
	char name[NAME_MAX_LEN]; /* of the endpoint */
	uint64_t base;
	uint64_t flags;
	uint64_t size;
	uint32_t auth;
	uint32_t pieces;	  /* of READ and WRITE: 1, or 2 that the target finds one by one */
	uint32_t op, type, count; /* of the atomic ones */
	uint8_t raw[RAW_MAX];	  /* PEER_COMPARE: the comparands */
	struct mail_ask mail;
};

struct peer_answer {
	int32_t rc;  /* of the call */
	int32_t err; /* of the completion, positive */
	uint64_t key;
	uint64_t base, size;
	uint8_t raw[RAW_MAX];
	char name[NAME_MAX_LEN];
	char text[300];
	struct mail_answer mail;
	uint8_t bytes[MAX_ACCESS];
};

/* What differs between a program that has all in one process, and one on a device. */
struct backend {
	/* As fi_getinfo would give it; a program's own fabric comes of it. */
	struct fi_info *(*info)(const struct conf *conf);
	/* The peer of each thread; start is answered by end, one at a time. */
	void *(*peer_open)(const struct conf *conf, unsigned thread);
	void (*start)(void *peer, const struct peer_ask *ask);
	void (*end)(void *peer, struct peer_answer *answer);
	void (*peer_close)(void *peer);
	/* Where the memory of the first thread begins; 0: anywhere. With it, holes are
	 * not mapped at all; they must stay so. */
	uintptr_t memory;
	/* NULL, or what was left behind. */
	const char *(*leftovers)(void);
};

/* The peer itself: opens its own fabric; used by backends. In peer.c. */
struct mate;
struct mate *mate_new(const struct backend *backend, const struct conf *conf);
void mate_start(struct mate *peer, const struct peer_ask *ask);
void mate_end(struct mate *peer, struct peer_answer *answer);
void mate_free(struct mate *peer);

/* A process's fabric, domain and what endpoints need. */
struct side {
	const struct backend *backend;
	const struct conf *conf;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct endpoint {
		struct fid_ep *ep;
		char name[NAME_MAX_LEN];
		/* In worlds with messages. */
		fi_addr_t addr;
		struct fid_cntr *sends;
	} shared[SHARED_EPS];
	struct fid_cntr *cntrs[SHARED_CNTRS];
	struct fid_cntr *writes; /* of a peer's endpoint; or NULL */
	struct fid_eq *eq;	 /* of registrations, see exec_async.c; or NULL */
};

/* The runtime of a world in which memory is a device's, and memory of that device. */
const struct rig *device_rig(const struct conf *conf);
uint8_t *device_memory(const struct rig *rig, size_t len);
/* Its iface and device. */
void device_attr(const struct rig *rig, struct fi_mr_attr *attr);

void side_open(struct side *side, const struct backend *backend, const struct conf *conf,
	       unsigned endpoints);
void side_close(struct side *side);
/* auth: number of its authorization key; 0: none is given. */
void endpoint_open(struct side *side, struct fid_cq *cq, unsigned auth, struct endpoint *ep);
const char *auth_key(unsigned auth);
/* The positive FI_E* of the next completion, or 0; text has room for 300. */
int completion(struct fid_cq *cq, char *text);
void endpoint_close(struct endpoint *ep);
/* It was closed: what belongs to it is. */
void endpoint_closed(struct endpoint *ep);
struct fid_cq *cq_for_messages(const struct side *side);
int64_t clock_ms(void);
struct fid_cntr *cntr_open(struct side *side);
/* Fails unless the counter comes to show what it has to. */
void cntr_check(struct fid_cntr *cntr, const struct tally *tally);

/*
 * What an event has said of a registration: its context. Written by whichever thread
 * reads it.
 */
struct ticket {
	const struct actor *owner;
	unsigned long number; /* of the owner's, upwards */
	struct fid *fid;      /* NULL: nothing was said so far */
	int rc;
	bool over;
};

/* Binds the domain to an event queue, if the world wants it. */
void async_open(struct side *side);
void async_close(struct side *side);

/* What the library has of one thread. */
struct limb {
	uint8_t *mem;
	const struct rig *rig; /* whose device it is of; or NULL */
	uint8_t copy[MEM];     /* see memory_bytes */
	char file[64];	       /* of which some of it is */
	struct endpoint own[EPS - SHARED_EPS];
	struct fid_cntr *cntrs[CNTRS - SHARED_CNTRS];
	void *peer;
	/* With which it reaches its peer's board. */
	struct hand {
		struct fid_cq *cq;
		struct endpoint ep;
		fi_addr_t to;
		uint64_t key;
		uint64_t addr;
	} hand;
	struct mail mail;
	struct {
		char name[NAME_MAX_LEN];
		fi_addr_t addr;
		unsigned met; /* endpoints that it knows, a bit each */
	} mate;		      /* the peer's endpoint for messages */
	/* Sends that may not have ended: of the thread, and of its peer. */
	struct pending_send {
		bool busy, tagged;
		uint8_t from;
	} sends[2][SENDS];
	struct ticket *tickets;	   /* by the thread's clock */
	unsigned long last_ticket; /* of which there was an event */
	bool flying;		   /* an access goes on during this step */
	struct step flight;
	struct region *flight_region;
	unsigned flight_counters; /* that it had when the access began */
	struct want flight_want;
};

/* Its peer is there before anything of a runtime or the library is called, its hand after that. */
void actor_open(struct actor *a, struct world *world, unsigned number);
void memory_open(struct actor *a, uintptr_t at);
void actor_hand(struct actor *a);
/* Closes what can be, and the rest when the shared endpoints are closed. */
void actor_leave(struct actor *a);
void actor_close(struct actor *a);
/* Nothing is done unless step_applies. */
void step_run(struct actor *a, const struct step *step);

/* kind: the same for failures that are the same but for the numbers in them. */
void model_fail(const char *kind, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
extern const char *const kind_names[KINDS];
/* Notes what became of a step; rc: 0 or -FI_E*. */
void model_count(enum kind kind, int rc);
/* For calls that have to succeed. */
#define must(call) must_be(call, 0)
#define must_be(call, expected)                                                                    \
	do {                                                                                       \
		long rc_ = (long)(call);                                                           \
                                                                                                   \
		if (rc_ != (expected))                                                             \
			model_fail(#call, "%s: %ld instead of %ld", #call, rc_, (long)(expected)); \
	} while (0)

#endif
