/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "verbs/vnode.h"

const struct mrf_vnode_dirs mrf_vnode_dirs = { "/dev/infiniband", "/sys/class/infiniband_verbs" };

#define PATH_BYTES 512

static bool is_missing(int err)
{
	return err == ENOENT || err == ENOTDIR;
}

/* module: what makes the file. */
static void explain(const char *path, const char *module, int err, char *why, size_t len)
{
	if (is_missing(err))
		snprintf(why, len,
			 "%s does not exist: load the module (modprobe %s); in a container, "
			 "pass the file in",
			 path, module);
	else
		snprintf(why, len,
			 "%s: %s: user %u must be allowed to read and write it (chmod 666, or "
			 "a rule of udev)",
			 path, strerror(err), (unsigned)geteuid());
}

static bool node_bars(const struct mrf_vnode_dirs *dirs, const char *node, const char *module,
		      char *why, size_t len)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", dirs->nodes, node);
	if (!faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS))
		return false;
	explain(path, module, errno, why, len);
	return true;
}

bool mrf_vnode_device(const struct mrf_vnode_dirs *dirs, const char *uverbs, char *name, size_t len)
{
	char path[PATH_BYTES];
	FILE *file;
	bool got;

	snprintf(path, sizeof(path), "%s/%s/ibdev", dirs->devices, uverbs);
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fgets(name, (int)len, file);
	fclose(file);
	if (got)
		name[strcspn(name, "\n")] = '\0';
	return got;
}

/* Is uverbsN the one of the device? */
static bool is_of(const struct mrf_vnode_dirs *dirs, const char *uverbs, const char *device)
{
	char name[64];

	return mrf_vnode_device(dirs, uverbs, name, sizeof(name)) && !strcmp(name, device);
}

/* One file that this process may open is enough, unless a device is named. */
static bool uverbs_bars(const struct mrf_vnode_dirs *dirs, const char *device, char *why,
			size_t len)
{
	DIR *dir = opendir(dirs->devices);
	const struct dirent *entry;
	bool bars = false, found = false;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "uverbs", 6) ||
		    (device && !is_of(dirs, entry->d_name, device)))
			continue;
		found = true;
		bars = node_bars(dirs, entry->d_name, "ib_uverbs", why, len);
		if (!bars)
			break;
	}
	if (dir)
		closedir(dir);
	if (!found)
		snprintf(why, len, "%s has no device%s%s: load the module (modprobe ib_uverbs)",
			 dirs->devices, device ? " " : "", device ? device : "");
	return bars || !found;
}

bool mrf_vnode_bars(const struct mrf_vnode_dirs *dirs, const char *device, char *why, size_t len)
{
	return uverbs_bars(dirs, device, why, len) ||
	       node_bars(dirs, "rdma_cm", "rdma_ucm", why, len);
}
