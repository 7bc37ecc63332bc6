/* SPDX-License-Identifier: BSD-2-Clause */
#include "run_module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULE "libmrfab-fi.so"

/* Which folder this program is in. */
static bool find_own(char own[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", own, PATH_MAX - 1);

	if (len <= 0)
		return false;
	own[len] = '\0';
	*strrchr(own, '/') = '\0';
	return true;
}

/*
 * The way from BINDIR to another folder, as they were configured: it is the same where the whole
 * tree was installed with DESTDIR or has moved since.
 */
static void way_to(const char *to, char *way, size_t size)
{
	const char *from = BINDIR;
	size_t same = 0, i, used = 0;

	for (i = 0; from[i] && from[i] == to[i]; i++) {
		if (from[i] == '/')
			same = i;
	}
	for (from += same; *from && used + 4 < size; from++) {
		if (*from == '/')
			used += (size_t)snprintf(way + used, size - used, "/..");
	}
	snprintf(way + used, size - used, "%s", to + same);
}

static bool is_file_in(const char *start, const char *way, const char *file, char folder[PATH_MAX])
{
	char path[2 * PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s%s/%s", start, way, file);
	if (access(path, R_OK))
		return false;
	*strrchr(path, '/') = '\0';
	return realpath(path, folder);
}

/*
 * Where file is: installed, beside what was built with this program, or where it was configured to
 * be.
 */
static bool find_folder(const char *configured, const char *built, const char *file,
			char folder[PATH_MAX], char why[RUN_MODULE_WHY])
{
	char own[PATH_MAX], way[PATH_MAX];

	if (!find_own(own)) {
		snprintf(why, RUN_MODULE_WHY, "/proc/self/exe: %s", strerror(errno));
		return false;
	}
	way_to(configured, way, sizeof(way));
	if (is_file_in(own, way, file, folder) || is_file_in(own, built, file, folder) ||
	    is_file_in(configured, "", file, folder))
		return true;
	snprintf(why, RUN_MODULE_WHY, "%s is neither in %s%s nor in %s", file, own, way,
		 configured);
	return false;
}

bool run_module_find(char folder[PATH_MAX], char why[RUN_MODULE_WHY])
{
	if (!find_folder(PROVIDERDIR, "/../.libs", MODULE, folder, why))
		return false;
	if (!strchr(folder, ':'))
		return true;
	snprintf(why, RUN_MODULE_WHY, "%s: FI_PROVIDER_PATH takes no folder with a colon", folder);
	return false;
}

bool run_module_runtime(const char *name, char folder[PATH_MAX], char why[RUN_MODULE_WHY])
{
	const char *file = !strcmp(name, "cuda")   ? "libcuda.so.1"
			   : !strcmp(name, "rocr") ? "libhsa-runtime64.so.1"
						   : "libze_loader.so.1";
	char configured[PATH_MAX], built[64];

	snprintf(configured, sizeof(configured), RUNTIMEDIR "/%s", name);
	snprintf(built, sizeof(built), "/../tests/runtime/%s/.libs", name);
	return find_folder(configured, built, file, folder, why);
}
