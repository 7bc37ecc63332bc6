/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/fd.h"
#include "base/page.h"
#include "monitor/ground.h"
#include "monitor/own_uffd.h"

static int uffd = -1, stop_fd = -1;

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int open_stop(void)
{
	stop_fd = mrf_fd_high(eventfd(0, EFD_CLOEXEC));
	return stop_fd < 0 ? -errno : 0;
}

int mrf_own_uffd_open(void)
{
	int ret = open_stop();

	if (ret)
		return ret;
	uffd = mrf_uffd_open();
	if (uffd >= 0)
		return 0;
	ret = uffd;
	mrf_own_uffd_close();
	return ret;
}

void mrf_own_uffd_close(void)
{
	close_fd(&uffd);
	close_fd(&stop_fd);
}

bool mrf_own_uffd_opened(void)
{
	return uffd >= 0;
}

static int add_piece_to(uintptr_t start, uintptr_t end, uintptr_t *end_of_all)
{
	int ret = mrf_uffd_register(uffd, start, end - start);

	if (ret)
		return ret == -FI_EBUSY ? ret : -FI_EINVAL;
	*end_of_all = end;
	return mrf_uffd_verify(uffd, start, end - start);
}

/* The first page goes first: mrf_uffd_unregister. */
int mrf_own_uffd_join(uintptr_t start, uintptr_t end, uintptr_t *end_of_all)
{
	uintptr_t page = mrf_page_size();

	*end_of_all = start;
	if (end - start > page && !mrf_uffd_register(uffd, start, page))
		*end_of_all = start + page;
	return add_piece_to(start, end, end_of_all);
}

int mrf_own_uffd_add(uintptr_t start, uintptr_t end, uintptr_t *end_of_all)
{
	uintptr_t next;
	int ret = 0;

	*end_of_all = start;
	for (; !ret && start < end; start = next) {
		next = mrf_chunk_end(start, end);
		ret = add_piece_to(start, next, end_of_all);
	}
	return ret;
}

bool mrf_own_uffd_quiet(void)
{
	return mrf_uffd_quiet(uffd);
}

void mrf_own_uffd_remove(uintptr_t start, uintptr_t end)
{
	uintptr_t next;

	for (; start < end; start = next) {
		next = mrf_chunk_end(start, end);
		mrf_uffd_unregister(uffd, start, next - start);
	}
}

bool mrf_own_uffd_wait(void)
{
	struct pollfd fds[] = { { .fd = uffd, .events = POLLIN },
				{ .fd = stop_fd, .events = POLLIN } };

	while (poll(fds, 2, -1) < 1)
		;
	return !fds[1].revents;
}

void mrf_own_uffd_stop(void)
{
	uint64_t one = 1;

	(void)!write(stop_fd, &one, sizeof(one));
}

bool mrf_own_uffd_read(struct mrf_uffd_event *event)
{
	return mrf_uffd_read(uffd, event);
}
