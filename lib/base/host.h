/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This library inside another one, libfabric, as one of its providers (prov/prov.c). What the
 * host has of its own, it decides: which providers a program may see, and the log.
 */
#ifndef MRF_BASE_HOST_H
#define MRF_BASE_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/providers/fi_log.h>

struct mrf_host {
	/* Is such a line wanted? Any thread. */
	bool (*log_enabled)(enum fi_log_level level, enum fi_log_subsys subsys);
	/* Writes a line that is wanted. Any thread. */
	void (*log)(enum fi_log_level level, enum fi_log_subsys subsys, const char *text);
	/* What the host says to itself in the flags of a registration: not looked at here. */
	uint64_t mr_flags;
};

/* NULL: there is none. Set before anything else is called, and never again. */
extern __attribute__((visibility("hidden"))) const struct mrf_host *mrf_host;

/* The flags of a registration without those of the host. */
static inline uint64_t mrf_host_strip(uint64_t flags)
{
	return mrf_host ? flags & ~mrf_host->mr_flags : flags;
}

#endif
