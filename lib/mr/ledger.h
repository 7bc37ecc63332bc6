/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ledger of a domain: what each of its open regions is, when it was registered, and by which call,
 * in memory that other processes of this user can look at. It is a memfd, which `mrfab_info --pid` finds
 * among the descriptors of the process by its name: one page for the head, then an entry for each region
 * of the pool, in the order of the pool. If no memfd can be made, the ledger is in private memory.
 *
 * An entry is written under space->lock, but for what is atomic in it: its caller is known when the
 * registration is over, and 0 until then. A reader without the lock has a whole entry if its serial is not
 * 0 and the same before and after.
 */
#ifndef MRF_MR_LEDGER_H
#define MRF_MR_LEDGER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define MRF_LEDGER_NAME "mrfab-ledger"
#define MRF_LEDGER_MAGIC 0x3172656764656cull /* of this layout */
#define MRF_LEDGER_HEAD 4096u		     /* bytes before the first entry */

struct mrf_ledger_head {
	uint64_t magic;
	int64_t pid;	 /* of the process whose regions these are */
	char domain[64]; /* name of its device */
};

struct mrf_ledger_entry {
	_Atomic uint64_t serial; /* of the registration; 0: no region is open here */
	uint64_t addr;		 /* of the first segment */
	uint64_t len;		 /* bytes in all */
	uint64_t key;		 /* FI_KEY_NOTAVAIL: it has none, or none yet */
	uint64_t access;
	_Atomic uint64_t
		caller; /* the address that the call which registered it returns to; 0: not yet known */
	int64_t since; /* CLOCK_MONOTONIC, in ms */
	uint16_t segments;
	uint16_t bound; /* to how many endpoints and counters */
	/* Operations of this process in flight with its descriptor; counted in careful domains only. */
	_Atomic uint32_t uses;
};

/* By the call that registered it, whoever reads. */
static inline void mrf_ledger_set_caller(struct mrf_ledger_entry *entry, const void *caller)
{
	atomic_store_explicit(&entry->caller, (uintptr_t)caller, memory_order_relaxed);
}

struct mrf_ledger {
	int fd; /* -1: private memory */
	struct mrf_ledger_head *head;
};

/* -FI_ENOMEM. */
int mrf_ledger_open(struct mrf_ledger *ledger, const char *domain);
/* Whose entries are unmapped. */
void mrf_ledger_close(struct mrf_ledger *ledger);
/* count entries from the one with the number first on, all of them 0; count is a multiple of 64. NULL: no memory. */
struct mrf_ledger_entry *mrf_ledger_map(struct mrf_ledger *ledger, size_t first, size_t count);
/* Who holds space->lock has it whole, but for the uses, which are 0. */
void mrf_ledger_read(const struct mrf_ledger_entry *entry, struct mrf_ledger_entry *copy);
void mrf_ledger_unmap(struct mrf_ledger_entry *entries, size_t count);

#endif
