/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fd.h"
#include "buf/gauge.h"

/* -1: private memory has to do. */
static int make_file(void)
{
	int fd = mrf_fd_high(memfd_create(MRF_GAUGE_NAME, MFD_CLOEXEC));

	if (fd >= 0 && ftruncate(fd, sizeof(struct mrf_gauge))) {
		close(fd);
		return -1;
	}
	return fd;
}

struct mrf_gauge *mrf_gauge_open(const char *domain, int *fd)
{
	struct mrf_gauge *gauge;

	*fd = make_file();
	gauge = mmap(NULL, sizeof(*gauge), PROT_READ | PROT_WRITE,
		     *fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, *fd, 0);
	if (gauge == MAP_FAILED) {
		if (*fd >= 0)
			close(*fd);
		return NULL;
	}
	gauge->pid = getpid();
	snprintf(gauge->domain, sizeof(gauge->domain), "%s", domain);
	gauge->magic = MRF_GAUGE_MAGIC;
	return gauge;
}

void mrf_gauge_close(struct mrf_gauge *gauge, int fd)
{
	munmap(gauge, sizeof(*gauge));
	if (fd >= 0)
		close(fd);
}

uint64_t mrf_gauge_hits(const struct mrf_gauge *gauge)
{
	uint64_t hits = 0;
	unsigned i;

	for (i = 0; i < MRF_GAUGE_STRIPES; i++)
		hits += mrf_gauge_get(&gauge->stripe[i].hits);
	return hits;
}
