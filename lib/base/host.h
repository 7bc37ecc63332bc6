/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host: another libfabric, of which this library is a provider (prov/prov.c). The host
 * decides which providers a program may see, and writes the log.
 */
#ifndef MRF_BASE_HOST_H
#define MRF_BASE_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/providers/fi_log.h>

struct mrf_host {
	/* Does the host want such a line? Any thread. */
	bool (*log_enabled)(enum fi_log_level level, enum fi_log_subsys subsys);
	/* Writes a line that the host wants. Any thread. */
	void (*log)(enum fi_log_level level, enum fi_log_subsys subsys, const char *text);
	/*
	 * Bits that the host uses for itself in the flags of a registration; the library
	 * ignores them.
	 */
	uint64_t mr_flags;
};

/* NULL: there is no host. Set before anything else is called, and never again. */
extern __attribute__((visibility("hidden"))) const struct mrf_host *mrf_host;

/* The flags of a registration without those of the host. */
static inline uint64_t mrf_host_strip(uint64_t flags)
{
	return mrf_host ? flags & ~mrf_host->mr_flags : flags;
}

#endif
