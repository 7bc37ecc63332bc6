/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of this process: their size, and explanations why a range cannot be pinned. */
#ifndef MRF_BASE_PAGE_H
#define MRF_BASE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* System page size in bytes; constant for the life of the process. */
size_t mrf_page_size(void);

#define MRF_PAGE_TEXT 256 /* room for any explanation */

/*
 * Explains in one phrase why [addr, addr + len) could not be pinned, from
 * /proc/self/maps and, if nothing is wrong there, by bringing the pages in as the pin
 * would have: "bytes 4096..8191 of it are not mapped", "... are past the end of the mapped
 * file"; or "all of it is mapped" if the reason is another one: then it returns false. write: the
 * pin needed write access. Slow; for error paths.
 */
bool mrf_page_explain(const void *addr, size_t len, bool write, char *buf, size_t buflen);

/*
 * Explains a registration that failed with ENOMEM or EPERM: the locked-memory limit and
 * how much of it is in use (VmPin), or that another limit was reached. Slow; for error
 * paths.
 */
void mrf_page_explain_memlock(size_t len, char *buf, size_t buflen);

/* The two parts of the explanation, reading and wording, separate for tests. */
struct mrf_page_memlock {
	uint64_t limit; /* bytes; UINT64_MAX: none */
	uint64_t used;	/* bytes pinned by this process */
	bool exempt;	/* the process may exceed the limit */
};

void mrf_page_memlock_read(struct mrf_page_memlock *lock);
void mrf_page_memlock_text(const struct mrf_page_memlock *lock, size_t len, char *buf,
			   size_t buflen);

/*
 * Brings the page at addr in, for writing or only for reading. -FI_EFAULT: nothing is
 * mapped there that this process may write or read so. Asks the kernel, which pins memory
 * on the same terms, but notes each failure to pin in its log.
 */
int mrf_page_fault_in(uint64_t addr, bool write);

#endif
