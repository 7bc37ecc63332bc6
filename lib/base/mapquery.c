/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <rdma/fi_errno.h>
#include "base/mapquery.h"
#include "base/maps.h"

/* The kernel's interface, which headers older than Linux 6.11 do not have. */
struct query {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t start;
	uint64_t end;
	uint64_t is; /* flags of the mapping */
	uint64_t page_size;
	uint64_t offset;
	uint64_t inode;
	uint32_t major;
	uint32_t minor;
	uint32_t name_size; /* room for the name, then its size */
	uint32_t build_id_size;
	uint64_t name;
	uint64_t build_id;
};

#define QUERY _IOWR('f', 17, struct query)
#define COVERING_OR_NEXT 0x10
#define READABLE 0x01
#define WRITABLE 0x02
#define EXECUTABLE 0x04
#define SHARED 0x08

static int put_query(int fd, struct query *query, uint64_t addr)
{
	query->size = sizeof(*query);
	query->flags = COVERING_OR_NEXT;
	query->addr = addr;
	if (!ioctl(fd, QUERY, query))
		return 0;
	return errno == ENOENT ? -FI_ENOENT : -FI_ENOSYS;
}

/* Only files have names that matter here. */
static bool is_rdma(int fd, const struct query *known)
{
	char name[PATH_MAX] = "";
	struct query query = { .name = (uintptr_t)name, .name_size = sizeof(name) };

	return known->inode && !put_query(fd, &query, known->start) &&
	       !strncmp(name, "/dev/infiniband/", strlen("/dev/infiniband/"));
}

int mrf_mapquery(int fd, uint64_t addr, struct mrf_mapping *mapping)
{
	struct query query = { 0 };
	int ret = put_query(fd, &query, addr);

	if (ret)
		return ret;
	mapping->start = query.start;
	mapping->end = query.end;
	mapping->inode = query.inode;
	mapping->perms[0] = query.is & READABLE ? 'r' : '-';
	mapping->perms[1] = query.is & WRITABLE ? 'w' : '-';
	mapping->perms[2] = query.is & EXECUTABLE ? 'x' : '-';
	mapping->perms[3] = query.is & SHARED ? 's' : 'p';
	mapping->perms[4] = '\0';
	mapping->rdma = is_rdma(fd, &query);
	return 0;
}
