/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error numbers. Calls return 0 or a count on success and the negated FI_E* on
 * failure; completions and events carry them as positive values.
 * Numbers below FI_ERRNO_OFFSET are the system's own errno values, the rest exist
 * only here. fi_strerror() takes either, positive.
 */
#ifndef FI_ERRNO_H
#define FI_ERRNO_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_SUCCESS 0

/* wrong arguments, rights and objects */
#define FI_EPERM EPERM
#define FI_ENOENT ENOENT
#define FI_EBADF EBADF
#define FI_EACCES EACCES
#define FI_EFAULT EFAULT
#define FI_ENODEV ENODEV
#define FI_EINVAL EINVAL
#define FI_ENOSYS ENOSYS
#define FI_ENOPROTOOPT ENOPROTOOPT
#define FI_EOPNOTSUPP EOPNOTSUPP
#define FI_EKEYREJECTED EKEYREJECTED

/* not enough of something, or too much */
#define FI_E2BIG E2BIG
#define FI_ENOMEM ENOMEM
#define FI_EMFILE EMFILE
#define FI_ENOSPC ENOSPC
#define FI_ENOBUFS ENOBUFS
#define FI_EOVERFLOW EOVERFLOW
#define FI_EMSGSIZE EMSGSIZE

/* state and progress: try again, wait, or give up */
#define FI_EINTR EINTR
#define FI_EAGAIN EAGAIN
#define FI_EWOULDBLOCK EWOULDBLOCK
#define FI_EBUSY EBUSY
#define FI_ENOMSG ENOMSG
#define FI_ENODATA ENODATA
#define FI_EALREADY EALREADY
#define FI_EINPROGRESS EINPROGRESS
#define FI_ETIMEDOUT ETIMEDOUT
#define FI_ECANCELED ECANCELED

/* addresses, connections and the network below */
#define FI_EADDRINUSE EADDRINUSE
#define FI_EADDRNOTAVAIL EADDRNOTAVAIL
#define FI_ENETDOWN ENETDOWN
#define FI_ENETUNREACH ENETUNREACH
#define FI_ECONNABORTED ECONNABORTED
#define FI_ECONNRESET ECONNRESET
#define FI_ECONNREFUSED ECONNREFUSED
#define FI_EISCONN EISCONN
#define FI_ENOTCONN ENOTCONN
#define FI_ESHUTDOWN ESHUTDOWN
#define FI_EHOSTDOWN EHOSTDOWN
#define FI_EHOSTUNREACH EHOSTUNREACH
#define FI_EIO EIO
#define FI_EREMOTEIO EREMOTEIO

#define FI_ERRNO_OFFSET 256

enum {
	FI_EOTHER = FI_ERRNO_OFFSET,
	FI_ETOOSMALL,	/* the caller's buffer does not hold the answer */
	FI_EOPBADSTATE, /* the object's state does not permit this call */
	FI_EAVAIL,	/* an error entry waits: call the readerr variant */
	FI_EBADFLAGS,
	FI_ENOEQ,   /* nothing bound yet: event queue ... */
	FI_EDOMAIN, /* objects of different domains */
	FI_ENOCQ,   /* ... completion queue */
	FI_ECRC,
	FI_ETRUNC,   /* message longer than the posted buffer */
	FI_ENOKEY,   /* the key is missing, taken, or not valid */
	FI_ENOAV,    /* ... address vector */
	FI_EOVERRUN, /* a queue overflowed */
	FI_ENORX,    /* the receiver is out of buffers */
	FI_ERRNO_MAX /* one past the last */
};

/* A constant text, never NULL, owned by the library. */
const char *fi_strerror(int errnum);

#ifdef __cplusplus
}
#endif

#endif /* FI_ERRNO_H */
