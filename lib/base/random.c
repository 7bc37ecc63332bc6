/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>
#include <sys/random.h>
#include "base/random.h"

static bool from_device(void *buf, size_t len)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC), err;
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, len);
	err = n < 0 ? errno : EIO;
	close(fd);
	errno = err;
	return n == (ssize_t)len;
}

bool mrf_random(void *buf, size_t len)
{
	ssize_t n;
	int err;

	do
		n = getrandom(buf, len, 0);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len)
		return true;
	err = errno;
	if (from_device(buf, len))
		return true;
	errno = err;
	return false;
}
