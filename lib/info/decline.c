/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "base/host.h"
#include "base/renew.h"
#include "info/decline.h"

/* More than there are hints and reasons. */
#define CAUSES 128

/* Guarded by lock. */
static struct {
	unsigned code;
	const char *what;
} said[CAUSES];
static size_t nsaid;

static struct mrf_static_lock lock = MRF_STATIC_LOCK(NULL);

/* Is this the first time? */
static bool is_new(unsigned code, const char *what)
{
	bool is_new;
	size_t i;

	mrf_static_take(&lock);
	for (i = 0; i < nsaid; i++) {
		if (said[i].code == code && said[i].what == what)
			break;
	}
	is_new = i == nsaid && nsaid < CAUSES;
	if (is_new) {
		said[i].code = code;
		said[i].what = what;
		nsaid++;
	}
	mrf_static_release(&lock);
	return is_new;
}

enum fi_log_level mrf_info_level(unsigned code, const char *what)
{
	return !mrf_host && is_new(code, what) ? FI_LOG_WARN : FI_LOG_INFO;
}
