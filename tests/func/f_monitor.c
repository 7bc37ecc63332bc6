/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_open("mr_cache") with a real device: another's monitor for us, and ours for another. */
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

/* monitors stands beside this program, or above where libtool puts it. */
static void exec_monitors(const char *role)
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
		execl(path, path, role, NULL);
	}
	_exit(3);
}

static void run(const char *role)
{
	pid_t child = fork();
	int status;

	if (!child)
		exec_monitors(role);
	must(waitpid(child, &status, 0) == child, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		case_skip("no libfabric here");
	must(!status, "monitors %s ended with status 0x%x", role, status);
}

IN_MODES(MODE(0))

CASE(a_monitor_that_was_imported_decides_alone)
{
	(void)e;
	run("import");
}

CASE(an_installed_libfabric_learns_of_changes_from_the_monitor_that_it_was_lent)
{
	(void)e;
	run("lend");
}
