/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/fd.h"
#include "base/page.h"
#include "monitor/ground.h"
#include "monitor/uffd.h"

#define FLAGS (O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)
#define FEATURES (UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP)
#define UNREGISTER_TRIES 64

static int uffd = -1, stop_fd = -1;

static int handshake(int fd)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	int ret;

	if (!ioctl(fd, UFFDIO_API, &api))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static int open_uffd_device(void)
{
	int dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	int fd, err;

	if (dev < 0)
		return -errno;
	fd = ioctl(dev, USERFAULTFD_IOC_NEW, FLAGS);
	err = errno;
	close(dev);
	return fd < 0 ? -err : fd;
}

bool mrf_under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "/vgpreload_");
}

int mrf_uffd_open(void)
{
	int fd;

	if (mrf_under_valgrind())
		return -FI_ENOSYS;
	fd = (int)syscall(SYS_userfaultfd, FLAGS);
	if (fd < 0)
		fd = open_uffd_device();
	if (fd < 0)
		return fd;
	fd = mrf_fd_high(fd);
	return fd < 0 ? -errno : handshake(fd);
}

int mrf_uffd_register(int fd, uintptr_t start, size_t len)
{
	struct uffdio_register reg = {
		.range = { .start = start, .len = len },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg) ? -errno : 0;
}

/*
 * Registering passes over holes in silence, and what is mapped there later is not
 * registered; and it takes memory that is shared, too. The one question that the kernel
 * answers with "one mapping, registered, no change under way, private anonymous memory",
 * under its own lock, is UFFDIO_CONTINUE: it is for shared memory only, and looks at that
 * last (EINVAL). Of shared memory it maps the pages that are there, or says why not.
 */
int mrf_uffd_verify(int fd, uintptr_t start, size_t len)
{
	struct uffdio_continue question = { .range = { .start = start, .len = len } };
	int ret = ioctl(fd, UFFDIO_CONTINUE, &question) ? errno : 0;

	switch (ret) {
	case EINVAL:
		return 0;
	case ENOENT:
	case EAGAIN:
		return -FI_EAGAIN;
	default:
		return -FI_EINVAL;
	}
}

/* The kernel looks for changes that are under way first (EAGAIN), and then at the range. */
bool mrf_uffd_quiet(void)
{
	struct uffdio_writeprotect nothing = { .range = { .len = 0 } };

	return ioctl(uffd, UFFDIO_WRITEPROTECT, &nothing) && errno == EINVAL;
}

static int unregister(uintptr_t start, size_t len)
{
	struct uffdio_range range = { .start = start, .len = len };

	return ioctl(uffd, UFFDIO_UNREGISTER, &range) ? -errno : 0;
}

/*
 * The kernel refuses the whole range if one mapping in it is of another kind, so that one is left
 * out.
 */
static void unregister_parts(uintptr_t start, size_t len, unsigned *tries)
{
	size_t page = mrf_page_size();
	size_t half = len / 2 & ~(page - 1);

	if (!*tries || unregister(start, len) != -EINVAL)
		return;
	--*tries;
	if (!half)
		return;
	unregister_parts(start, half, tries);
	unregister_parts(start + half, len - half, tries);
}

/*
 * Before Linux 6.4 what begins inside a mapping is not joined with what is behind it. So the
 * first page goes first, and the rest begins where a mapping does.
 */
static void unregister_range(uintptr_t start, size_t len)
{
	size_t page = mrf_page_size();
	unsigned tries = UNREGISTER_TRIES;

	/* A huge page cannot be cut. */
	if (len > page && !unregister(start, page)) {
		start += page;
		len -= page;
	}
	unregister_parts(start, len, &tries);
}

/* --- the process's own ------------------------------------------------------------- */

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

int mrf_uffd_begin(void)
{
	int ret = open_stop();

	if (ret)
		return ret;
	uffd = mrf_uffd_open();
	if (uffd >= 0)
		return 0;
	ret = uffd;
	mrf_uffd_end();
	return ret;
}

void mrf_uffd_end(void)
{
	close_fd(&uffd);
	close_fd(&stop_fd);
}

bool mrf_uffd_begun(void)
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

/* The first page goes first: unregister_range. */
int mrf_uffd_join(uintptr_t start, uintptr_t end, uintptr_t *end_of_all)
{
	uintptr_t page = mrf_page_size();

	*end_of_all = start;
	if (end - start > page && !mrf_uffd_register(uffd, start, page))
		*end_of_all = start + page;
	return add_piece_to(start, end, end_of_all);
}

int mrf_uffd_add(uintptr_t start, uintptr_t end, uintptr_t *end_of_all)
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

void mrf_uffd_remove(uintptr_t start, uintptr_t end)
{
	uintptr_t next;

	for (; start < end; start = next) {
		next = mrf_chunk_end(start, end);
		unregister_range(start, next - start);
	}
}

bool mrf_uffd_wait(void)
{
	struct pollfd fds[] = { { .fd = uffd, .events = POLLIN },
				{ .fd = stop_fd, .events = POLLIN } };

	while (poll(fds, 2, -1) < 1)
		;
	return !fds[1].revents;
}

void mrf_uffd_stop(void)
{
	uint64_t one = 1;

	(void)!write(stop_fd, &one, sizeof(one));
}

static void decode(const struct uffd_msg *msg, struct mrf_uffd_event *event)
{
	memset(event, 0, sizeof(*event));
	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		event->kind = msg->event == UFFD_EVENT_UNMAP ? MRF_UFFD_UNMAP : MRF_UFFD_REMOVE;
		event->start = msg->arg.remove.start;
		event->end = msg->arg.remove.end;
		break;
	case UFFD_EVENT_REMAP:
		event->kind = MRF_UFFD_REMAP;
		event->start = msg->arg.remap.from;
		event->end = msg->arg.remap.from + msg->arg.remap.len;
		event->to = msg->arg.remap.to;
		break;
	default:
		break;
	}
}

bool mrf_uffd_read(struct mrf_uffd_event *event)
{
	struct uffd_msg msg;
	ssize_t n;

	do
		n = read(uffd, &msg, sizeof(msg));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(msg))
		return false;
	decode(&msg, event);
	return true;
}
