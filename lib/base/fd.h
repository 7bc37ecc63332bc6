/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program may have been started with stdin, stdout or stderr closed. A descriptor of the
 * library with such a number would receive what the program prints. So each descriptor that
 * stays open gets a number above 2.
 */
#ifndef MRF_BASE_FD_H
#define MRF_BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/*
 * Returns fd, or a descriptor above 2 in its place. -1 with errno: fd is -1, or no descriptor
 * is left.
 */
static inline int mrf_fd_high(int fd)
{
	int high, err;

	if (fd < 0 || fd > 2)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	err = errno;
	close(fd);
	errno = err;
	return high;
}

#endif
