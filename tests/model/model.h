/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model of fi_mr(3), and of fi_msg(3) and fi_tagged(3): what each call must answer, what peers
 * may then do, and which receive takes which message, as plain data and without the library. A run is a list of steps; each is carried out by the
 * library (exec.h) and by the model, and the two have to agree.
 *
 * A world is one domain in one mode. It has a few threads, each with memory, regions,
 * mapped keys and endpoints of its own, and a peer that reaches them; what threads share
 * are the domain, its key space, two endpoints, and some keys that all of them ask for. A
 * step names things by small numbers, so that any part of a list is a list, too: a step
 * that finds nothing to work on is left out.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#define THREADS 4
#define REGIONS 8  /* of a thread */
#define MAPPINGS 4 /* of a thread: keys that its peer has mapped */
#define EPS 4	   /* as a thread numbers them; the first two are everybody's */
#define SHARED_EPS 2
#define CNTRS 3 /* as a thread numbers them; the first is everybody's */
#define SHARED_CNTRS 1
#define SEGS 4	      /* of a region */
#define SHARED_KEYS 2 /* all threads ask for them */
#define PRIVATE_KEYS 6
#define RAW_MAX 512
#define AUTH_KEYS 2 /* authorization keys */

/*
 * Endpoints that send messages, as a thread numbers them: the EPS, and two more. All but the shared
 * ones receive, too.
 */
#define HAND EPS       /* the thread's own, with which it also reaches its peer's memory */
#define MATE (EPS + 1) /* its peer's */
#define SENDERS (EPS + 2)
#define ANYBODY SENDERS		 /* as the source of a receive */
#define RECEIVES 12		 /* of an endpoint */
#define WAITING 40		 /* messages at an endpoint that no receive has taken */
#define SENDS 16		 /* of a thread, or its peer, that may not have ended yet */
#define BURST 14		 /* calls of one step; more than a new line may have under way */
#define MESSAGE_MAX 16384u	 /* of those that it sends; longer ones end later, */
#define MESSAGE_LIMIT (1u << 30) /* but not those that are refused */
#define INJECTED_MAX 256u

/*
 * A thread's memory: pages, one of which is a hole that cannot be accessed; the last are
 * of a file, where there is one. Or all of them are one allocation of a device.
 */
#define PAGE 4096u
#define PAGES 9u
#define HOLE 4u /* number of the page */
#define MEM (PAGES * PAGE)
#define KEPT 7u		 /* number of the first that is of the file */
#define MAX_ACCESS 6000u /* bytes of one access */

struct conf {
	uint64_t seed;
	uint64_t mode; /* FI_MR_* */
	uint32_t api;
	bool event;    /* opened with the capability FI_RMA_EVENT */
	bool auth;     /* the domains have the first authorization key */
	bool files;    /* there is a file */
	bool async;    /* bound to an event queue with FI_REG_MR */
	bool device;   /* the memory is a device's; FI_HMEM */
	bool far;      /* so is that of the peers themselves */
	bool messages; /* FI_MSG and FI_TAGGED, too */
	bool directed; /* with FI_DIRECTED_RECV */
	bool source;   /* with FI_SOURCE */
	unsigned threads;
	unsigned steps; /* of all threads together */
};

/* --- steps ------------------------------------------------------------------------ */

enum kind {
	REG,
	CLOSE,
	BIND,
	ENABLE,
	REFRESH,
	SHOW, /* fi_mr_key, fi_mr_desc */
	RAW,
	MAP,
	UNMAP,
	WRITE,
	COMMIT, /* writes what is persistent when it is done */
	READ,
	ATOMIC,	 /* fetching: like a write, and brings what was there */
	CHANGE,	 /* an atomic operation that brings nothing */
	INJECT,	 /* such a one of which no completion tells */
	COMPARE, /* brings what was there; stores where a comparison holds */
	PUT,	 /* the thread writes to its peer, from a region by its descriptor */
	GET,	 /* reads, likewise */
	BIND_CNTR,
	CNTR,	/* opens or closes a counter of the thread */
	COUNT,	/* looks at one */
	AWAIT,	/* the event that says what became of a registration */
	EP,	/* opens or closes an endpoint of the thread */
	DOMAIN, /* tries to close the domain */
	SEND,	/* of messages, as all that follow */
	RECEIVE,
	PEEK,	 /* looks for a message; may set it aside or drop it */
	CLAIM,	 /* takes or drops one that was set aside */
	CANCEL,	 /* a receive */
	COLLECT, /* looks at all that must have ended */
	KINDS
};

/* What is wrong with the arguments of a call. */
enum fault {
	RIGHT,
	BAD_FLAG,
	NO_IOV,
	BAD_COUNT,
	BAD_ACCESS,
	BAD_OFFSET,
	BAD_WRAP,
	BAD_KEY,     /* FI_KEY_NOTAVAIL; of a map: damaged; of an unmap: never mapped;
			of PUT and GET: a descriptor that never was */
	BAD_BASE,    /* of a map */
	NO_ROOM,     /* of RAW */
	OTHER_EVENT, /* FI_RMA_EVENT */
	OTHER_PMEM,
	OTHER_HMEM,
	NO_DESC,  /* of messages, as the next ones */
	BAD_DESC, /* one that never was */
	NO_RIGHT, /* a descriptor without FI_SEND and FI_RECV */
	NO_PEER,  /* an address that is not in the address vector */
	FAULTS
};

/* What step.call says of SEND; of RECEIVE, the first three of these. */
enum form {
	ONE_BUFFER,
	TWO_BUFFERS,
	STRUCTURE, /* fi_sendmsg; sends are injected, and have data */
	WITH_DATA,
	INJECTED,
	INJECTED_WITH_DATA,
	FORMS
};

/* Of PEEK; CLAIM: the last means to drop it, others to take it. */
enum look { LOOK, SET_ASIDE, DROP };

enum way { BY_KEY, BY_MAPPING }; /* of WRITE and READ */

struct step {
	uint8_t kind;
	uint8_t thread;
	uint8_t slot; /* region, mapping or endpoint */
	uint8_t ep;   /* or counter */
	uint8_t fault;
	uint8_t way;
	uint8_t call;	 /* REG: of the three */
	uint8_t overlap; /* WRITE, READ: ends only after the next step */
	uint8_t n;	 /* segments, or ranges to refresh (0: all) */
	uint64_t access;
	uint64_t key;
	uint16_t empty;	  /* REG: pages that are emptied before, a bit each: see emptied */
	uint64_t seed;	  /* of what is written */
	uint8_t auth;	  /* authorization key: 0 none given, 1 to AUTH_KEYS; of REG,
			       EP, and of the peer that makes an access */
	uint8_t op, type; /* atomic: enum fi_op, enum fi_datatype; n elements */
	bool tagged;	  /* SEND, RECEIVE: n messages, each of len[0] bytes */
	uint8_t peer;	  /* to whom SEND sends, from whom RECEIVE receives */
	uint64_t tag, ignore;
	uint32_t off[SEGS]; /* in the thread's memory; of WRITE and READ: in the region */
	uint32_t len[SEGS];
};

/* One line, as a call. */
void step_print(const struct step *step, char *buf, size_t size);

/* --- state ------------------------------------------------------------------------ */

/*
 * Of one whose registration goes on (pending), what it will be. A call then finds it as
 * it is, or as it will be; the latter once one has shown that it is done.
 */
enum state { NONE, DISABLED, ENABLED, FAILED, CLOSED };

/* As a raw key was when it was taken. */
struct raw {
	uint64_t serial; /* of the registration; 0: none was taken */
	unsigned slot;
	uint64_t base;
	size_t size;
	uint8_t bytes[RAW_MAX];
};

struct region {
	enum state state;
	uint64_t serial; /* of the registration, in this thread */
	uint64_t access;
	uint64_t key;	/* as requested */
	unsigned group; /* by its authorization key */
	bool keyed;	/* has one */
	bool pmem;	/* can be written so that it is persistent */
	bool demand;	/* is pinned on demand */
	bool staged;	/* is memory of a device */
	bool pending;	/* may not be registered yet */
	bool claims;	/* is one of struct shared_key.maybe */
	bool unread;	/* the event that it is has not been read */
	unsigned n;
	uint32_t off[SEGS], len[SEGS], total;
	unsigned bound;		/* endpoints, a bit each */
	unsigned counters;	/* likewise */
	bool event;		/* writes to it can be counted */
	unsigned loose;		/* writes that may not have been counted yet */
	uint8_t refreshed[MEM]; /* of the thread's memory */
	unsigned long closed;	/* when */
	/* What the library made of it. */
	struct fid_mr *mr;
	uint64_t told; /* its key; FI_KEY_NOTAVAIL: none so far */
	void *desc;
	struct raw raw;
	struct ticket *ticket; /* exec.h */
};

struct mapping {
	bool mapped, was;
	uint64_t key;
	unsigned slot;	 /* region */
	uint64_t serial; /* its registration then */
};

/*
 * What a counter has to show. A write is counted a moment after it is done, so one that
 * was done before the counter was bound may be among them, and so may one that was cut
 * off.
 */
struct tally {
	atomic_uint least, most;
};

struct message {
	bool tagged, has_data;
	uint8_t from;
	unsigned opened; /* from, when it was sent: struct mailbox */
	uint32_t len;
	uint64_t tag, seed;
};

/*
 * A receive as the model knows it; TAKES: has a message, and its completion has not been looked
 * at. HOLDS: none is posted, but a peek has set a message aside with its context.
 */
enum receive_state { IDLE, POSTED, TAKES, HOLDS };

struct receive {
	enum receive_state state;
	unsigned long order; /* of posting */
	bool tagged, claims;
	uint8_t from;
	unsigned opened; /* from, when it was posted */
	uint32_t len;
	uint64_t tag, ignore;
	struct message message;
};

/*
 * What an endpoint has of messages. The receives are posted, and the messages of one endpoint
 * arrive, in a known order, and then it does not matter how the two orders are interleaved: the
 * oldest receive gets the oldest message that it matches, and so on. Messages of another endpoint
 * are sent only when those of the sender before have arrived; and what does depend on whether
 * a message has arrived, a peek or a cancel, is done only then, too.
 */
struct mailbox {
	struct receive receives[RECEIVES];
	struct message waiting[WAITING];
	unsigned nwaiting;
	unsigned long order;
	uint8_t sender;	 /* whose messages may be under way; ANYBODY: nobody's */
	uint64_t sent;	 /* by this endpoint */
	unsigned opened; /* how often the endpoint was opened or closed: each time it is another */
};

/* A key that several threads want. Exact where only one thread runs. */
struct shared_key {
	atomic_int held;     /* surely, right now: 1 */
	atomic_uint maybe;   /* registrations that have it, or are getting or losing it */
	atomic_uint changes; /* of maybe, upwards */
};

/* What all threads of a world share. */
struct world {
	struct conf conf;
	struct shared_key keys[SHARED_KEYS];
	struct tally tallies[SHARED_CNTRS];
	struct side *side; /* exec.h */
};

/* One thread's part. */
struct actor {
	struct world *world;
	unsigned number;
	uint64_t dice;
	unsigned long clock; /* steps done */
	uint64_t serials;
	struct region regions[REGIONS];
	struct mapping mappings[MAPPINGS];
	bool ep_open[EPS];
	uint8_t ep_group[EPS];
	bool cntr_open[CNTRS];
	struct tally tallies[CNTRS - SHARED_CNTRS];
	uint8_t shadow[MEM]; /* what the memory has to hold */
	struct mailbox mailboxes[SENDERS];
	struct limb *limb; /* exec.h */
};

/* --- what must be answered -------------------------------------------------------- */

/* 0 or -FI_E*; several when several things are wrong, or when it is for others to say. */
struct want {
	unsigned n;
	int rc[12];
};

void want_add(struct want *want, int rc);
bool wanted(const struct want *want, int rc);

/* The next step of a thread, from its own random numbers. */
void step_make(struct actor *a, struct step *step);
/* False: nothing to work on. */
bool step_applies(const struct actor *a, const struct step *step);

void want_reg(const struct actor *a, const struct step *step, struct want *want);
void want_bind(const struct actor *a, const struct step *step, struct want *want);
void want_bind_cntr(const struct actor *a, const struct step *step, struct want *want);
void want_cntr(const struct actor *a, const struct step *step, struct want *want);
void want_enable(const struct actor *a, const struct step *step, struct want *want);
void want_refresh(const struct actor *a, const struct step *step, struct want *want);
void want_close(const struct actor *a, const struct step *step, struct want *want);
void want_raw(const struct actor *a, const struct step *step, struct want *want);
void want_map(const struct actor *a, const struct step *step, struct want *want);
void want_unmap(const struct actor *a, const struct step *step, struct want *want);
void want_await(const struct actor *a, const struct step *step, struct want *want);
void want_ep(const struct actor *a, const struct step *step, struct want *want);
/* Of the call; of what comes after it nothing but success. */
void want_local(const struct actor *a, const struct step *step, struct want *want);
/* Of the completion; negative. */
void want_access(const struct actor *a, const struct step *step, struct want *want);

/* What a success changes. */
void did_reg(struct actor *a, const struct step *step);
void did_bind(struct actor *a, const struct step *step);
void did_bind_cntr(struct actor *a, const struct step *step);
void did_cntr(struct actor *a, const struct step *step);
/* A write to the region was done, which had these counters; sure: it came to its end. */
void did_write(struct actor *a, struct region *r, unsigned counters, const struct step *step,
	       bool sure);
void did_enable(struct actor *a, const struct step *step);
void did_refresh(struct actor *a, const struct step *step);
void did_close(struct actor *a, const struct step *step);
/* Something has shown that the region is not pending any more. */
void did_register(struct region *r);
void did_ep(struct actor *a, const struct step *step);

struct tally *tally_of(struct actor *a, unsigned cntr);

/* --- messages ---------------------------------------------------------------------- */

bool is_message(const struct step *step);
/* Can it be sent from, or to? Endpoints of several threads only send. */
bool can_send(const struct actor *a, unsigned ep);
bool can_receive(const struct actor *a, unsigned ep);
bool is_injected(const struct step *step);
bool has_cq_data(const struct step *step);
uint64_t cq_data_of(const struct message *message);
/* What a step may be done with; see step_applies. */
bool message_applies(const struct actor *a, const struct step *step);
/* Of the receives of an endpoint that are in this state, the first; -1: there is none. */
int receive_find(const struct mailbox *box, enum receive_state state);
unsigned receives_count(const struct mailbox *box, enum receive_state state);

void want_send(const struct actor *a, const struct step *step, struct want *want);
void want_receive(const struct actor *a, const struct step *step, struct want *want);
void want_claim(const struct actor *a, const struct step *step, struct want *want);
void want_cancel(const struct actor *a, const struct step *step, struct want *want);
/* Message i of the step was sent. */
void did_send(struct actor *a, const struct step *step, unsigned i);
/* A receive was posted, as number slot. */
void did_receive(struct actor *a, const struct step *step, unsigned slot);
/* The message that a peek has to find; it is set aside (slot) or dropped. False: none. */
bool did_peek(struct actor *a, const struct step *step, unsigned slot, struct message *message);
void did_claim(struct actor *a, const struct step *step);
/* An endpoint was opened, or closed: nothing is left of its messages. */
void did_open(struct mailbox *box);

/*
 * One element of an atomic operation in place; compare: of COMPARE. False: nothing may
 * have been stored, or what was there before.
 */
bool atomic_do(enum fi_op op, enum fi_datatype type, uint8_t *at, const uint8_t *operand,
	       const uint8_t *compare);
unsigned atomic_size(enum fi_datatype type);
/* Of these types: is there such an operation? */
bool atomic_exists(enum kind kind, enum fi_datatype type, enum fi_op op);
/* One is as good as another. */
bool atomic_is_nan(enum fi_datatype type, const uint8_t *at);
bool is_atomic(const struct step *step);
/* WRITE or COMMIT. */
bool is_write(const struct step *step);
/*
 * In how many pieces READ or a write names the region's bytes: two now and then. The target may have
 * put the first into a device before it refuses the second.
 */
unsigned pieces_of(const struct step *step);
/* Of a peer: these, READ, or an atomic one. */
bool is_access(const struct step *step);

/* --- questions about the state ----------------------------------------------------- */

/*
 * Of the three that register, which is it? Where an argument is not of every call, one that has it.
 */
unsigned call_of(const struct step *step);
/* Will the registration fail when the call has returned? */
bool is_doomed(const struct actor *a, const struct step *step);
/*
 * Endpoints and regions with one authorization key are a group, and reach nothing of
 * others. No key given: the domain's; none at all is as good as one.
 */
unsigned group_of(const struct conf *conf, unsigned auth);
/* Is it of SHARED_KEYS? Its number, or -1. */
int shared_key(uint64_t key);
/* Where the bytes of an access are: in the thread's memory, or -1: outside. */
long place_of(const struct conf *conf, const struct region *r, uint32_t off, uint32_t i);
/* What peers say for byte off of the step's region. base: of the thread's memory. */
uint64_t address_of(const struct conf *conf, const struct region *r, uint32_t off,
		    const void *base);
/* The region that a step is about; with BY_MAPPING, the one that the mapping is of. */
struct region *region_of(struct actor *a, const struct step *step);
/* Are they all of the file? */
bool is_kept(const struct conf *conf, uint32_t off, uint32_t len);
/* Is the memory of these bytes there? */
bool is_there(const struct conf *conf, uint32_t off, uint32_t len);
/*
 * The pages, a bit each, that have no memory when this region is registered, and are all 0
 * afterwards. Not those that another region has, of which the library would have to be told.
 */
unsigned emptied(const struct actor *a, const struct step *step);
/* Byte i of what is written with this seed. */
uint8_t byte_of(uint64_t seed, uint32_t i);
uint64_t dice(uint64_t *state);
/* "VIRT_ADDR+PROV_KEY", or "0": as FI_MRFAB_MR_MODE takes it. */
void mode_print(uint64_t mode, char *buf, size_t size);

#endif
