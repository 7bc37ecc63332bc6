/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's side of peer.h: opens the fabric and carries out what it is told. */
#ifndef FUNC_SERVE_H
#define FUNC_SERVE_H

#include <netdb.h>
#include "peer.h"

/* Serves the driver at the other end of fd; the exit status. */
int serve(int fd);
/* Listens at HOST:PORT and serves every driver that comes, in a process of its own each.
 */
int serve_at(const char *control);
/* HOST:PORT or [HOST]:PORT, to be freed with freeaddrinfo; NULL when it is not one. */
struct addrinfo *addr_resolve(const char *control, int flags);

#endif
