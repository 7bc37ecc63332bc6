/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFO_FILES_H
#define INFO_FILES_H

#include <stdbool.h>

/* What the library shows of another process, as text or as JSON. pid is a decimal number. */
struct info_pid {
	const char *pid;
	bool json;
	unsigned shown; /* so far */
};

/*
 * Calls visit for each memfd of this name that the process has open; what is read of it belongs to the
 * process only if it says so, because a forked child has its parent's, too.
 * -1 and errno: the process cannot be looked at.
 */
int info_pid_files(struct info_pid *of, const char *name,
		   void (*visit)(struct info_pid *of, int fd));

#endif
