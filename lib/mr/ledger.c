/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr/ledger.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/fd.h"

_Static_assert(sizeof(struct mrf_ledger_entry) == 64, "64 fill a page");

/* A file that grows beyond the process's limit would end the process. */
static bool may_have(size_t size)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && size <= limit.rlim_cur;
}

/* Zeros; of the file, or private memory if that cannot grow. MAP_FAILED. */
static void *map_at(int fd, size_t at, size_t size)
{
	if (fd >= 0 && may_have(at + size) && !ftruncate(fd, (off_t)(at + size)))
		return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int mrf_ledger_open(struct mrf_ledger *ledger, const char *domain)
{
	int fd = mrf_fd_high(memfd_create(MRF_LEDGER_NAME, MFD_CLOEXEC));
	struct mrf_ledger_head *head = map_at(fd, 0, MRF_LEDGER_HEAD);

	if (head == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return -FI_ENOMEM;
	}
	head->pid = getpid();
	snprintf(head->domain, sizeof(head->domain), "%s", domain);
	head->magic = MRF_LEDGER_MAGIC;
	*ledger = (struct mrf_ledger){ .fd = fd, .head = head };
	return 0;
}

void mrf_ledger_close(struct mrf_ledger *ledger)
{
	munmap(ledger->head, MRF_LEDGER_HEAD);
	if (ledger->fd >= 0)
		close(ledger->fd);
}

struct mrf_ledger_entry *mrf_ledger_map(struct mrf_ledger *ledger, size_t first, size_t count)
{
	size_t size = sizeof(struct mrf_ledger_entry);
	void *entries = map_at(ledger->fd, MRF_LEDGER_HEAD + first * size, count * size);

	return entries == MAP_FAILED ? NULL : entries;
}

void mrf_ledger_read(const struct mrf_ledger_entry *entry, struct mrf_ledger_entry *copy)
{
	*copy = (struct mrf_ledger_entry){
		.serial = atomic_load(&entry->serial),
		.addr = entry->addr,
		.len = entry->len,
		.key = entry->key,
		.access = entry->access,
		.caller = atomic_load(&entry->caller),
		.since = entry->since,
		.segments = entry->segments,
		.bound = entry->bound,
	};
}

void mrf_ledger_unmap(struct mrf_ledger_entry *entries, size_t count)
{
	munmap(entries, count * sizeof(*entries));
}
