/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_open("mr_cache") with a real device: the application's monitor in the place of the library's.
 */
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

/* monitors stands beside this program, or above where libtool puts it. */
static void exec_monitors(void)
{
	static const char *const where[] = { "monitors", "../monitors" };
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *name;

	if (len < 0)
		_exit(2);
	path[len] = 0;
	name = strrchr(path, '/') + 1;
	for (unsigned i = 0; i < 2; i++) {
		strcpy(name, where[i]);
		execl(path, path, NULL);
	}
	_exit(3);
}

IN_MODES(MODE(0))

CASE(a_monitor_that_was_imported_decides_alone)
{
	pid_t child = fork();
	int status;

	(void)e;
	if (!child)
		exec_monitors();
	must(waitpid(child, &status, 0) == child, "waitpid");
	must(!status, "monitors ended with status 0x%x", status);
}
