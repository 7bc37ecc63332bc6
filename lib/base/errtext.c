/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/errtext.h"
#include "base/compiler.h"
#include <rdma/fi_errno.h>
#include <limits.h>
#include <string.h>

/* Index: error number less FI_ERRNO_OFFSET. */
static const char *const fabric_text[] = {
	[FI_EOTHER - FI_ERRNO_OFFSET] = "Unspecified error",
	[FI_ETOOSMALL - FI_ERRNO_OFFSET] = "Buffer is too small for the result",
	[FI_EOPBADSTATE - FI_ERRNO_OFFSET] = "Operation not possible in the present state",
	[FI_EAVAIL - FI_ERRNO_OFFSET] = "An error entry is waiting to be read",
	[FI_EBADFLAGS - FI_ERRNO_OFFSET] = "Flags not supported",
	[FI_ENOEQ - FI_ERRNO_OFFSET] = "No event queue, or it cannot be used",
	[FI_EDOMAIN - FI_ERRNO_OFFSET] = "Object belongs to another domain",
	[FI_ENOCQ - FI_ERRNO_OFFSET] = "No completion queue, or it cannot be used",
	[FI_ECRC - FI_ERRNO_OFFSET] = "Checksum error",
	[FI_ETRUNC - FI_ERRNO_OFFSET] = "Message was cut short",
	[FI_ENOKEY - FI_ERRNO_OFFSET] = "Key not available",
	[FI_ENOAV - FI_ERRNO_OFFSET] = "No address vector, or it cannot be used",
	[FI_EOVERRUN - FI_ERRNO_OFFSET] = "Queue overran",
	[FI_ENORX - FI_ERRNO_OFFSET] = "Receiver has no buffer posted",
};

_Static_assert(MRF_ARRAY_SIZE(fabric_text) == FI_ERRNO_MAX - FI_ERRNO_OFFSET,
	       "every fabric error needs its text");

const char *mrf_errtext(int err)
{
	if (err < 0)
		err = err == INT_MIN ? INT_MAX : -err;
	if (err < FI_ERRNO_OFFSET)
		return strerror(err);
	if (err >= FI_ERRNO_MAX)
		return fabric_text[0];
	return fabric_text[err - FI_ERRNO_OFFSET];
}

const char *mrf_limit_text(int err)
{
	if (err == FI_EMFILE || err == -FI_EMFILE)
		return "the process may have no more file descriptors (RLIMIT_NOFILE)";
	if (err == FI_EAGAIN || err == -FI_EAGAIN)
		return "there may be no more threads: the limit of the user (RLIMIT_NPROC), of the "
		       "control group (pids.max) or of the system is reached";
	return mrf_errtext(err);
}
