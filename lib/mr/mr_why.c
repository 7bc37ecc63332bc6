/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/page.h"
#include "mr/mr_int.h"

#define TEXT 256
#define WRITES (MRF_RIGHT_LOCAL_WRITE | MRF_RIGHT_REMOTE_WRITE | MRF_RIGHT_REMOTE_ATOMIC)

static int why_fault(const void *addr, size_t len, unsigned rights, int err)
{
	bool write = rights & WRITES;
	char read_text[TEXT], write_text[TEXT];

	if (!addr)
		return mrf_refuse(
			-err, FI_LOG_MR, 3014,
			"buf=NULL, len=%zu: memory must be there when it is registered",
			len);
	mrf_page_explain(addr, len, true, write_text, sizeof(write_text));
	if (write)
		return mrf_refuse(-err, FI_LOG_MR, 3015,
				  "%p + %zu bytes cannot be pinned for writing: %s", addr,
				  len, write_text);
	mrf_page_explain(addr, len, false, read_text, sizeof(read_text));
	if (!strcmp(read_text, write_text))
		return mrf_refuse(-err, FI_LOG_MR, 3016,
				  "%p + %zu bytes cannot be pinned for reading: %s", addr,
				  len, read_text);
	/*
	 * Linux 6.1 pins writable whatever the rights, 6.12 does not; private mappings
	 * get by.
	 */
	return mrf_refuse(
		-err, FI_LOG_MR, 3017,
		"%p + %zu bytes cannot be pinned for reading: %s; but %s, and some "
		"kernels pin shared mappings for writing even so: map it writable",
		addr, len, read_text, write_text);
}

static int why_memory(const struct mrf_mr_space *space, const void *addr, size_t len,
		      int err)
{
	char limit[64] = "";
	char text[TEXT];

	mrf_page_explain_memlock(len, text, sizeof(text));
	if (space->max_mr)
		snprintf(limit, sizeof(limit), "; the device's limit is %zu regions",
			 space->max_mr);
	return mrf_refuse(-err, FI_LOG_MR, 3018, "%p + %zu bytes cannot be pinned: %s%s",
			  addr, len, text, limit);
}

int mrf_mr_why(const struct mrf_mr_space *space, const void *addr, size_t len,
	       unsigned rights, int err)
{
	switch (err) {
	case -FI_EFAULT:
		return why_fault(addr, len, rights, err);
	case -FI_ENOMEM:
	case -FI_EPERM:
		return why_memory(space, addr, len, err);
	case -FI_EINVAL:
		return mrf_refuse(
			FI_EINVAL, FI_LOG_MR, 3019,
			"%p + %zu bytes: the device refuses a region of this address "
			"and length",
			addr, len);
	default:
		return mrf_refuse(-err, FI_LOG_MR, 3020,
				  "%p + %zu bytes: the device failed to register", addr,
				  len);
	}
}
