/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/fd.h"
#include "base/page.h"
#include "monitor/uffds.h"

#define NONE (-1)
#define STOP MRF_UFFDS /* what epoll calls stop_fd */

static struct {
	int fd;		/* NONE: not opened yet */
	unsigned alias; /* the one that is used for it */
} uffds[MRF_UFFDS];
static unsigned count; /* of those that chunks are dealt out to; 0: none is open */
static int poll_fd = NONE, stop_fd = NONE;

/* --- opening ------------------------------------------------------------------------ */

static int add_to_poll(int fd, unsigned which)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .u32 = which } };

	return epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_uffd(unsigned which)
{
	int fd = mrf_uffd_open(), ret;

	if (fd < 0)
		return fd;
	ret = add_to_poll(fd, which);
	if (ret) {
		close(fd);
		return ret;
	}
	uffds[which].fd = fd;
	return 0;
}

/* The one that cannot be opened shares the first one's from now on. */
static unsigned descriptor(unsigned which)
{
	if (mrf_unlikely(uffds[which].fd == NONE && uffds[which].alias == which) &&
	    open_uffd(which))
		uffds[which].alias = 0;
	return uffds[which].alias;
}

static unsigned how_many(void)
{
	struct rlimit limit;
	rlim_t share;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	share = limit.rlim_cur / MRF_UFFDS_SHARE;
	return (unsigned)mrf_max(1, mrf_min(share, MRF_UFFDS));
}

static int open_uffd_poll(void)
{
	poll_fd = mrf_fd_high(epoll_create1(EPOLL_CLOEXEC));
	if (poll_fd < 0)
		return -errno;
	stop_fd = mrf_fd_high(eventfd(0, EFD_CLOEXEC));
	if (stop_fd < 0)
		return -errno;
	return add_to_poll(stop_fd, STOP);
}

int mrf_uffds_open(void)
{
	unsigned i;
	int ret;

	for (i = 0; i < MRF_UFFDS; i++) {
		uffds[i].fd = NONE;
		uffds[i].alias = i;
	}
	ret = open_uffd_poll();
	if (!ret)
		ret = open_uffd(0);
	if (ret)
		mrf_uffds_close();
	else
		count = how_many();
	return ret;
}

static void close_uffd(int *fd)
{
	if (*fd != NONE)
		close(*fd);
	*fd = NONE;
}

void mrf_uffds_close(void)
{
	unsigned i;

	for (i = 0; i < count; i++)
		close_uffd(&uffds[i].fd);
	close_uffd(&poll_fd);
	close_uffd(&stop_fd);
	count = 0;
}

bool mrf_uffds_opened(void)
{
	return count;
}

/* --- pieces ------------------------------------------------------------------------- */

static unsigned at(uintptr_t addr)
{
	return descriptor((unsigned)(addr / MRF_UFFD_CHUNK % count));
}

uintptr_t mrf_uffds_piece(uintptr_t start, uintptr_t end)
{
	uintptr_t next = (start | (MRF_UFFD_CHUNK - 1)) + 1;

	return next && next < end ? next : end;
}

static int register_piece(uintptr_t start, uintptr_t end, uintptr_t *end_of_all)
{
	int fd = uffds[at(start)].fd;
	int ret = mrf_uffd_register(fd, start, end - start);

	if (ret)
		return ret == -FI_EBUSY ? ret : -FI_EINVAL;
	*end_of_all = end;
	return mrf_uffd_verify(fd, start, end - start);
}

/* The first page goes first: mrf_uffd_unregister. */
int mrf_uffds_join(uintptr_t start, uintptr_t end, uintptr_t *end_of_all)
{
	uintptr_t page = mrf_page_size();
	int fd = uffds[at(start)].fd;

	*end_of_all = start;
	if (end - start > page && !mrf_uffd_register(fd, start, page))
		*end_of_all = start + page;
	return register_piece(start, end, end_of_all);
}

int mrf_uffds_register(uintptr_t start, uintptr_t end, uintptr_t *end_of_all)
{
	uintptr_t next;
	int ret = 0;

	*end_of_all = start;
	for (; !ret && start < end; start = next) {
		next = mrf_uffds_piece(start, end);
		ret = register_piece(start, next, end_of_all);
	}
	return ret;
}

bool mrf_uffds_quiet(uintptr_t addr)
{
	return mrf_uffd_quiet(uffds[at(addr)].fd);
}

void mrf_uffds_unregister(uintptr_t start, uintptr_t end)
{
	uintptr_t next;

	for (; start < end; start = next) {
		next = mrf_uffds_piece(start, end);
		mrf_uffd_unregister(uffds[at(start)].fd, start, next - start);
	}
}

void mrf_uffds_moved(unsigned which, uintptr_t to, size_t len)
{
	mrf_uffd_unregister(uffds[which].fd, to, len);
}

unsigned mrf_uffds_of(uintptr_t start, uintptr_t end)
{
	if (mrf_uffds_piece(start, end) < end)
		return count > 1 ? MRF_UFFDS_WIDE : 0;
	return at(start);
}

bool mrf_uffds_has(unsigned which, uintptr_t start, uintptr_t end)
{
	unsigned left = count;

	for (; left-- && start < end; start = mrf_uffds_piece(start, end)) {
		if (at(start) == which)
			return true;
	}
	return false;
}

/* --- events ------------------------------------------------------------------------- */

int mrf_uffds_wait(void)
{
	struct epoll_event event;

	while (epoll_wait(poll_fd, &event, 1, -1) != 1)
		;
	return event.data.u32 == STOP ? -1 : (int)event.data.u32;
}

void mrf_uffds_stop(void)
{
	uint64_t one = 1;

	(void)!write(stop_fd, &one, sizeof(one));
}

bool mrf_uffds_read(unsigned which, struct mrf_uffd_event *event)
{
	return mrf_uffd_read(uffds[which].fd, event);
}
