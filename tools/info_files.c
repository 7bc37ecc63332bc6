/* SPDX-License-Identifier: BSD-2-Clause */
#include "info_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_memfd(int dir, const char *file, const char *name)
{
	char target[64], wanted[64];
	ssize_t n = readlinkat(dir, file, target, sizeof(target) - 1);

	target[n > 0 ? n : 0] = '\0';
	snprintf(wanted, sizeof(wanted), "/memfd:%s ", name);
	return !strncmp(target, wanted, strlen(wanted));
}

static void visit_all(struct info_pid *of, DIR *dir, const char *name,
		      void (*visit)(struct info_pid *of, int fd))
{
	struct dirent *entry;
	int fd;

	while ((entry = readdir(dir))) {
		if (!is_memfd(dirfd(dir), entry->d_name, name))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		visit(of, fd);
		close(fd);
	}
}

/* The process's own folder is empty once its main() has ended by pthread_exit: then a thread's. */
static DIR *open_files(const char *pid)
{
	char path[64 + sizeof(((struct dirent *)0)->d_name)];
	struct dirent *task;
	DIR *tasks, *dir = NULL;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	tasks = opendir(path);
	while (tasks && !dir && (task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%s/task/%s/fd", pid, task->d_name);
		dir = task->d_name[0] == '.' ? NULL : opendir(path);
		if (dir && (!readdir(dir) || !readdir(dir) || !readdir(dir))) {
			closedir(dir);
			dir = NULL;
		}
	}
	if (tasks)
		closedir(tasks);
	if (dir)
		rewinddir(dir);
	return dir;
}

int info_pid_files(struct info_pid *of, const char *name,
		   void (*visit)(struct info_pid *of, int fd))
{
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", of->pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	closedir(dir);
	dir = open_files(of->pid);
	if (!dir)
		return 0;
	visit_all(of, dir, name, visit);
	closedir(dir);
	return 0;
}
