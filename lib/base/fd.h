/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program may have been started with stdin, stdout or stderr closed. A descriptor of the
 * library with such a number would be given what the program prints. So each that stays
 * open gets a number above.
 */
#ifndef MRF_BASE_FD_H
#define MRF_BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* fd, or in its place one above 2. -1 and errno if fd is -1, or if there is none. */
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
