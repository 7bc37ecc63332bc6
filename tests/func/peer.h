/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other processes of a case, seen from the driver. A peer opens the fabric in the
 * driver's mode and does what the messages on its control channel, a stream socket, tell
 * it: it is mostly a target that owns registered memory, but may be told to read and
 * write too.
 */
#ifndef FUNC_PEER_H
#define FUNC_PEER_H

#include <sys/types.h>
#include "fab.h"

#define SLOTS 8 /* buffers of a peer */

enum ctl_cmd {
	/* a: api, hint, is required, addr_format, uid, memlock, caps; text: struct ctl_open
	 * -> a: name_len, pid, bits; text: name */
	CTL_OPEN,
	CTL_SHUT,    /* closes everything, and may be opened again */
	CTL_CASE,    /* a: timeout in seconds */
	CTL_RESET,   /* closes regions and buffers -> a: completions nobody took */
	CTL_ALLOC,   /* a: slot, size, seed */
	CTL_FILL,    /* a: slot, seed */
	CTL_WANT,    /* a: slot, off, len, seed, from; no answer */
	CTL_DIFF,    /* a: slot, off, len to leave out -> text when different */
	CTL_REG,     /* a: slot, off, len, access, key, call -> rc; a: id, key, address */
	CTL_REGV,    /* a: count, access, key, flags; text: iovec -> rc; a: id, key, base */
	CTL_BIND,    /* a: id -> rc */
	CTL_ENABLE,  /* a: id -> rc */
	CTL_REFRESH, /* a: id, count, flags, with iov; text: iovec -> rc */
	CTL_KEY,     /* a: id -> a: key, desc, base */
	CTL_RAW,     /* a: id, room -> rc; a: size, base; text: raw key */
	CTL_SYS,     /* a: number, arguments -> rc: errno; a: result */
	CTL_POKE,    /* a: address, len, seed, from */
	CTL_PEEK,    /* a: address, len, seed, from -> text when different */
	CTL_PINNED,  /* -> a: kB, by the kernel's count */
	CTL_HEAP,    /* -> a: bytes that malloc has given out */
	CTL_STACK,   /* -> a: address, size */
	CTL_CLOSE,   /* a: id -> rc */
	CTL_INSERT,  /* text: name -> a: fi_addr */
	CTL_RMA,     /* a: read, slot, off, len, fi_addr, addr, key, count -> a: err; text */
	CTL_ATOMIC,  /* text: struct peer_atomic -> a: err, what was fetched; text */
	CTL_SEND,    /* a: slot, off, len, fi_addr, count, is tagged, tag -> a: err; text */
	CTL_RECV,    /* a: slot, off, len, count; they complete by CTL_CQ */
	CTL_CQ,	     /* a: ms -> rc 0 or -FI_EAGAIN; a: flags, len, data, err */
	CTL_DIE,     /* a: ms from now; no answer */
	CTL_MAIN,    /* its main() ends, another thread goes on */
	CTL_QUIT     /* closes everything */
};

struct ctl {
	uint32_t cmd;
	int32_t rc;
	uint64_t a[8];
	char text[600];
};

/* Whole messages; false when the other side is gone. */
bool ctl_send(int fd, const struct ctl *m);
bool ctl_recv(int fd, struct ctl *m);

struct ctl_open {
	char node[NAME_LEN], required[128], monitor[16], auth_key[32];
	enum fi_av_type av;
};

struct peer {
	int fd;
	pid_t pid;	 /* of a child; 0 for one on another host */
	uint64_t os_pid; /* as the peer itself says */
	bool up;
	fi_addr_t addr; /* in the AV of the driver's endpoint */
	char name[NAME_LEN];
	size_t name_len;
	uint64_t bits; /* of the mode as granted */
	bool virt, prov_key;
	struct fab *mapper; /* where raw keys are mapped: the driver's */
	uint64_t seed[SLOTS];
};

/* Memory of a peer as the driver may name it. */
struct region {
	struct peer *peer;
	unsigned slot, id;
	size_t off, len; /* within the slot's buffer */
	uint64_t key;
	uint64_t base; /* what the peer's first byte is called in fi_read and fi_write */
};

enum reg_call { REG_PLAIN, REG_V, REG_ATTR };

/* NULL: a child of this process. Else HOST:PORT of a process with --role target. */
extern const char *peer_control;

/* As the driver's messages do it; for far.c and atomics.c. The case fails when the peer is gone. */
void peer_ask(struct peer *p, struct ctl *m);
void peer_tell(struct peer *p, const struct ctl *m);
void peer_hear(struct peer *p, struct ctl *m);

/*
 * Forks n processes that peer_start uses first, which is much faster than executing the
 * program again; possible only before this process has called the library.
 */
void peers_prepare(int n);
void peer_start(struct peer *p, const struct mode *mode, const struct fab_opt *opt);
void peer_stop(struct peer *p);
/* Closes what it has, and opens anew in another mode. */
void peer_reopen(struct peer *p, const struct mode *mode, const struct fab_opt *opt);
void peer_shut(struct peer *p);
/* The peer's main() ends by pthread_exit; another of its threads serves the driver from then on. */
void peer_end_main(struct peer *p);
/* SIGKILL and reap; p may be started again. */
void peer_kill(struct peer *p);
void peer_case(struct peer *p, int timeout);
/* Closes its regions and buffers; fails the case when it had completions left. */
void peer_reset(struct peer *p);

void peer_alloc(struct peer *p, unsigned slot, size_t size, uint64_t seed);
void peer_fill(struct peer *p, unsigned slot, uint64_t seed);
void peer_want(struct peer *p, unsigned slot, size_t off, size_t len, uint64_t seed, uint64_t from);
/* Every byte of the slot is as wanted; the second form leaves a range out. */
void peer_same(struct peer *p, unsigned slot);
void peer_same_outside(struct peer *p, unsigned slot, size_t off, size_t len);

int peer_try_reg(struct peer *p, unsigned slot, size_t off, size_t len, uint64_t access,
		 uint64_t key, enum reg_call call, struct region *r);
struct region peer_reg(struct peer *p, unsigned slot, size_t off, size_t len, uint64_t access,
		       uint64_t key);
void peer_unreg(struct region *r);
/* n regions like r, each begins stride bytes after the one before and asks for the next
 * key. */
void peer_reg_many(struct peer *p, const struct region *like, size_t stride, uint64_t access,
		   struct region *r, unsigned n);

/* The peer's address for name, in its own AV. */
fi_addr_t peer_insert(struct peer *p, const char *name, size_t len);
/*
 * The peer reads or writes count times len bytes, one range after the other from off of
 * its slot and from addr on. Start and end are separate so that peers can work at the
 * same time.
 */
struct peer_rma {
	bool read;
	unsigned slot;
	size_t off, len;
	fi_addr_t to;
	uint64_t addr, key, count;
};
void peer_rma_start(struct peer *p, const struct peer_rma *rma);
/* Returns 0 or the positive FI_E* of the first failure. */
int peer_rma_end(struct peer *p);
int peer_rma(struct peer *p, const struct peer_rma *rma);
/* The peer sends count messages of len bytes, one part of its slot after the other, to `to`. */
int peer_send(struct peer *p, unsigned slot, size_t off, size_t len, fi_addr_t to, uint64_t count);
/* One with a tag. */
int peer_tsend(struct peer *p, unsigned slot, size_t off, size_t len, fi_addr_t to, uint64_t tag);
/* The peer posts count receives likewise. */
void peer_recv(struct peer *p, unsigned slot, size_t off, size_t len, uint64_t count);
/* A completion at the peer. */
bool peer_done(struct peer *p, struct done *d, long ms);
/* The peer kills itself in ms, whatever it does then. */
void peer_die_in(struct peer *p, long ms);
void peer_reap(struct peer *p);

/*
 * Kernel objects (regions, queue pairs, CQs, PDs, connections) of a process, by the rdma
 * tool; -1 when there is no such tool here, or pid is 0: of a peer on another machine.
 */
int kernel_objects(uint64_t pid, const char *kinds);
/* None are left within ms. */
bool kernel_objects_gone(uint64_t pid, long ms);

#endif
