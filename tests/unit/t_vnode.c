/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that lead to a device, in folders of the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "unit.h"
#include "verbs/vnode.h"

static char top[64], nodes[96], devices[96], why[512];
static struct mrf_vnode_dirs dirs;

static void make(const char *path, mode_t mode, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	ck_assert_int_eq(chmod(path, mode), 0);
}

static void make_node(const char *name, mode_t mode)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", nodes, name);
	make(path, mode, "");
}

static void make_device(const char *uverbs, const char *device)
{
	char path[160], text[32];

	snprintf(path, sizeof(path), "%s/%s", devices, uverbs);
	ck_assert(!mkdir(path, 0755) || errno == EEXIST);
	strcat(path, "/ibdev");
	snprintf(text, sizeof(text), "%s\n", device);
	make(path, 0644, text);
}

static void setup(void)
{
	strcpy(top, "/tmp/t_vnode.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chmod(top, 0755), 0);
	snprintf(nodes, sizeof(nodes), "%s/infiniband", top);
	snprintf(devices, sizeof(devices), "%s/verbs", top);
	ck_assert_int_eq(mkdir(nodes, 0755), 0);
	ck_assert_int_eq(mkdir(devices, 0755), 0);
	dirs = (struct mrf_vnode_dirs){ nodes, devices };
	why[0] = '\0';
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	ck_assert_int_eq(system(command), 0);
}

/* As another user, when we are root, whom no mode keeps out. */
static bool bars(const char *device)
{
	int pipes[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		if (!geteuid() && (setgid(65534) || setuid(65534)))
			_exit(2);
		status = mrf_vnode_bars(&dirs, device, why, sizeof(why));
		if (write(pipes[1], why, sizeof(why)) != (ssize_t)sizeof(why))
			_exit(2);
		_exit(status);
	}
	ck_assert_int_eq(read(pipes[0], why, sizeof(why)), (ssize_t)sizeof(why));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_ne(WEXITSTATUS(status), 2);
	close(pipes[0]);
	close(pipes[1]);
	return WEXITSTATUS(status);
}

static void ck_why(const char *words)
{
	ck_assert_msg(strstr(why, words) != NULL, "no \"%s\" in: %s", words, why);
}

START_TEST(vnode_that_lets_in_is_no_reason)
{
	make_device("uverbs0", "rxe0");
	make_node("uverbs0", 0666);
	make_node("rdma_cm", 0666);
	ck_assert(!bars(NULL));
	ck_assert(!bars("rxe0"));
}
END_TEST

START_TEST(vnode_without_permission_is_named_with_the_user)
{
	make_device("uverbs0", "rxe0");
	make_node("uverbs0", 0666);
	make_node("rdma_cm", 0600);
	ck_assert(bars("rxe0"));
	ck_why("/infiniband/rdma_cm: Permission denied");
	ck_why(geteuid() ? "user " : "user 65534");
	ck_why("chmod 666");
	make_node("rdma_cm", 0666);
	make_node("uverbs0", 0600);
	ck_assert(bars("rxe0"));
	ck_why("/infiniband/uverbs0: Permission denied");
	ck_assert(bars(NULL));
	/* Reading alone is not enough. */
	make_node("uverbs0", 0444);
	ck_assert(bars("rxe0"));
}
END_TEST

START_TEST(vnode_that_is_missing_is_named_with_its_module)
{
	ck_assert(bars("rxe0"));
	ck_why("modprobe ib_uverbs");
	make_device("uverbs0", "rxe0");
	ck_assert(bars("rxe0"));
	ck_why("/infiniband/uverbs0 does not exist");
	ck_why("modprobe ib_uverbs");
	ck_why("container");
	make_node("uverbs0", 0666);
	ck_assert(bars("rxe0"));
	ck_why("/infiniband/rdma_cm does not exist");
	ck_why("modprobe rdma_ucm");
}
END_TEST

START_TEST(vnode_of_another_device_is_none_of_its_business)
{
	make_device("uverbs0", "rxe0");
	make_device("uverbs1", "rxe1");
	make_node("uverbs0", 0600);
	make_node("uverbs1", 0666);
	make_node("rdma_cm", 0666);
	ck_assert(bars("rxe0"));
	ck_assert(!bars("rxe1"));
	ck_assert(!bars(NULL));
	ck_assert(bars("rxe2"));
	ck_why("no device rxe2");
}
END_TEST

START_TEST(vnode_knows_the_name_of_its_device_now)
{
	char name[64] = "unchanged";

	ck_assert(!mrf_vnode_device(&dirs, "uverbs0", name, sizeof(name)));
	ck_assert_str_eq(name, "unchanged");
	make_device("uverbs0", "rxe0");
	ck_assert(mrf_vnode_device(&dirs, "uverbs0", name, sizeof(name)));
	ck_assert_str_eq(name, "rxe0");
	make_device("uverbs0", "other0");
	ck_assert(mrf_vnode_device(&dirs, "uverbs0", name, sizeof(name)));
	ck_assert_str_eq(name, "other0");
}
END_TEST

static TCase *tcase_bars(void)
{
	TCase *tc = tcase_create("bars");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, vnode_that_lets_in_is_no_reason);
	tcase_add_test(tc, vnode_without_permission_is_named_with_the_user);
	tcase_add_test(tc, vnode_that_is_missing_is_named_with_its_module);
	tcase_add_test(tc, vnode_of_another_device_is_none_of_its_business);
	tcase_add_test(tc, vnode_knows_the_name_of_its_device_now);
	return tc;
}

UNIT_MAIN("vnode", tcase_bars)
