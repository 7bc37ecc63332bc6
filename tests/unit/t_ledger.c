/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is said of objects that are still open: by fi_close of their domain, to other processes, and when
 * the process ends.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "base/env.h"
#include "mr/ledger.h"
#include "mr/region.h"
#include "../fake/fake_verbs.h"
#include "one_device.h"
#include "unit.h"

#define VAR "FI_MRFAB_LEAKS"
#define V17 FI_VERSION(1, 17)
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct unit_capture cap;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static uint8_t memory[4096];

static void open_domain(uint64_t caps, int mode)
{
	struct fi_info *hints = fi_allocinfo();

	ck_assert_ptr_nonnull(hints);
	hints->caps = FI_RMA | caps;
	hints->domain_attr->mr_mode = mode;
	ck_assert_int_eq(fi_getinfo(V17, NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
}

static void setup(void)
{
	fake_verbs_reset();
	one_device_use();
	unsetenv(VAR);
}

static void teardown(void)
{
	unsetenv(VAR);
}

static void close_domain(void)
{
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}

/* Not inline, so that the call is in it. */
static __attribute__((noinline)) struct fid_mr *reg(size_t len, uint64_t access, uint64_t key,
						    uint64_t flags)
{
	struct fid_mr *mr;

	ck_assert_int_eq(fi_mr_reg(domain, memory, len, access, 0, key, flags, &mr, NULL), 0);
	return mr;
}

static void must_have(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part), "\"%s\" is not in: %s", part, text);
}

/* --- fi_close of the domain ------------------------------------------------------------ */

START_TEST(busy_domain_names_its_regions_and_who_registered_them)
{
	char whole[64];
	unsigned long offset, place;
	const char *text, *by;
	struct fid_mr *mr;
	Dl_info self;

	open_domain(0, FI_MR_ALLOCATED);
	mr = reg(100, REMOTE, 0x1f, 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	text = unit_captured(&cap);
	snprintf(whole, sizeof(whole), "still open: memory region %p (%p, 100 bytes, key 0x1f)",
		 (void *)mr, (void *)memory);
	must_have(text, "MRF-W3080");
	must_have(text, whole);
	must_have(text, "FI_REMOTE_READ, FI_REMOTE_WRITE, 0.");
	by = strstr(text, "registered by ");
	ck_assert_msg(by, "%s", text);
	/* This program's own functions have no names for the loader; the place is in the caller. */
	ck_assert_msg(sscanf(strchr(by, '+'), "+%lx", &offset) == 1, "%s", text);
	ck_assert(dladdr((void *)reg, &self));
	place = (uintptr_t)reg - (uintptr_t)self.dli_fbase;
	ck_assert_msg(offset > place && offset < place + 1024, "%#lx is not in reg() at %#lx: %s",
		      offset, place, text);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	close_domain();
}
END_TEST

START_TEST(region_whose_registration_is_not_over_is_named_too)
{
	struct fid_mr *mr;

	open_domain(0, FI_MR_ALLOCATED);
	mr = reg(100, REMOTE, 0x1f, 0);
	mrf_ledger_set_caller(mrf_mr_from_fid(&mr->fid)->entry, NULL);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	must_have(unit_captured(&cap), ", registered by a call that has not returned\n");
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	close_domain();
}
END_TEST

static _Atomic unsigned busy; /* how often the domain was not closed for its regions */

static void *register_again_and_again(void *arg)
{
	struct fid_mr *mr;

	(void)arg;
	while (busy < 200) {
		mr = reg(100, REMOTE, 1, 0);
		fi_close(&mr->fid);
	}
	return NULL;
}

/* What one thread says of the regions while another registers them is for TSan to see. */
START_TEST(regions_are_named_while_they_come_and_go)
{
	struct fid_mr *stays;
	pthread_t thread;

	busy = 0;
	open_domain(0, FI_MR_ALLOCATED);
	stays = reg(100, REMOTE, 2, 0);
	unit_capture(&cap);
	ck_assert_int_eq(pthread_create(&thread, NULL, register_again_and_again, NULL), 0);
	for (; busy < 200; busy++)
		ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	must_have(unit_captured(&cap), "key 0x2), FI_REMOTE_READ, FI_REMOTE_WRITE");
	ck_assert_int_eq(fi_close(&stays->fid), 0);
	close_domain();
}
END_TEST

START_TEST(busy_domain_says_what_a_region_is_bound_to)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_cntr *cntr;
	const char *text;
	struct fid_mr *mr;
	char bound[64];

	open_domain(FI_RMA_EVENT, FI_MR_ALLOCATED);
	ck_assert_int_eq(fi_cntr_open(domain, &attr, &cntr, NULL), 0);
	mr = reg(100, REMOTE, 1, 0);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	text = unit_captured(&cap);
	snprintf(bound, sizeof(bound), "bound to counter %p, registered by", (void *)cntr);
	must_have(text, bound);
	must_have(text, "MRF-W2048: still open: counter");
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	close_domain();
}
END_TEST

/* All of what is said is longer than what unit_capture keeps. */
static unsigned count_lines(const char *with)
{
	char line[1024];
	unsigned n = 0;
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);

	ck_assert(file && saved >= 0);
	dup2(fileno(file), STDERR_FILENO);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, with) != NULL;
	fclose(file);
	return n;
}

START_TEST(busy_domain_names_a_hundred_regions_and_counts_the_rest)
{
	struct fid_mr *mr[103];
	size_t i;

	open_domain(0, FI_MR_ALLOCATED);
	for (i = 0; i < 103; i++)
		mr[i] = reg(100, FI_SEND, 0, 0);
	ck_assert_uint_eq(count_lines("MRF-W3080"), 100);
	ck_assert_uint_eq(count_lines("MRF-W3081: still open: 3 more memory regions"), 1);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(fi_close(&mr[50 + i]->fid), 0);
	ck_assert_uint_eq(count_lines("MRF-W3080"), 100);
	ck_assert_uint_eq(count_lines("MRF-W3081"), 0);
	for (i = 0; i < 103; i++) {
		if (i < 50 || i > 52)
			ck_assert_int_eq(fi_close(&mr[i]->fid), 0);
	}
	close_domain();
}
END_TEST

/* --- other processes ------------------------------------------------------------------- */

/* As mrfab_info finds it. -1: there is none. */
static int find_ledger(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[64];
	int fd = -1;

	ck_assert_ptr_nonnull(dir);
	while (fd < 0 && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		if (!strncmp(target, "/memfd:" MRF_LEDGER_NAME " ", sizeof(MRF_LEDGER_NAME) + 7))
			fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
	}
	closedir(dir);
	return fd;
}

static struct mrf_ledger_entry read_entry(int fd, size_t i)
{
	struct mrf_ledger_entry entry;

	ck_assert_int_eq(
		pread(fd, &entry, sizeof(entry), (off_t)(MRF_LEDGER_HEAD + i * sizeof(entry))),
		sizeof(entry));
	return entry;
}

static uint64_t read_serial(int fd, size_t i)
{
	struct mrf_ledger_entry entry = read_entry(fd, i);

	return atomic_load(&entry.serial);
}

START_TEST(ledger_has_what_is_open_and_nothing_else)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct mrf_ledger_entry entry;
	struct mrf_ledger_head head;
	struct fid_mr *mr, *other;
	struct fid_cntr *cntr;
	int fd;

	open_domain(FI_RMA_EVENT, FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	fd = find_ledger();
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &head, sizeof(head), 0), sizeof(head));
	ck_assert_uint_eq(head.magic, MRF_LEDGER_MAGIC);
	ck_assert_int_eq(head.pid, getpid());
	ck_assert_str_eq(head.domain, ONE_DEVICE);
	mr = reg(100, REMOTE, 0, 0);
	other = reg(200, FI_SEND, 0, 0);
	entry = read_entry(fd, 0);
	ck_assert_uint_ne(entry.serial, 0);
	ck_assert_uint_eq(entry.addr, (uintptr_t)memory);
	ck_assert_uint_eq(entry.len, 100);
	ck_assert_uint_eq(entry.key, fi_mr_key(mr));
	ck_assert_uint_eq(entry.access, REMOTE);
	ck_assert_uint_ne(entry.caller, 0);
	ck_assert_uint_eq(entry.segments, 1);
	ck_assert_uint_eq(entry.bound, 0);
	ck_assert_uint_eq(read_entry(fd, 1).key, FI_KEY_NOTAVAIL);
	ck_assert_int_eq(fi_cntr_open(domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	ck_assert_uint_eq(read_entry(fd, 0).bound, 1);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	ck_assert_uint_eq(read_entry(fd, 0).bound, 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_uint_eq(read_serial(fd, 0), 0);
	ck_assert_uint_ne(read_serial(fd, 1), 0);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	close_domain();
	close(fd);
	ck_assert_int_lt(find_ledger(), 0);
}
END_TEST

#define INFO "tools/mrfab_info"

/* What mrfab_info says of this process; "": it has not been built here. */
static const char *ask_info(const char *options)
{
	static char text[8192];
	char command[128];
	size_t n = 0;
	FILE *pipe;

	text[0] = '\0';
	if (access(INFO, X_OK))
		return text;
	snprintf(command, sizeof(command), INFO " --pid=%d %s 2>&1", (int)getpid(), options);
	pipe = popen(command, "r");
	ck_assert_ptr_nonnull(pipe);
	n = fread(text, 1, sizeof(text) - 1, pipe);
	text[n] = '\0';
	pclose(pipe);
	return text;
}

START_TEST(mrfab_info_shows_what_another_process_has_open)
{
	char line[160];
	const char *text;
	struct fid_mr *mr;

	if (!*ask_info(""))
		return;
	must_have(ask_info(""), "uses no domain");
	open_domain(0, FI_MR_ALLOCATED);
	must_have(ask_info(""), "memory regions that are open: " ONE_DEVICE "\n    none");
	mr = reg(100, REMOTE, 0x1f, 0);
	text = ask_info("");
	snprintf(line, sizeof(line),
		 "    %p, 100 bytes, key 0x1f, FI_REMOTE_READ, FI_REMOTE_WRITE, 0.",
		 (void *)memory);
	must_have(text, line);
	must_have(text, "registered by reg+0x");
	text = ask_info("--json");
	snprintf(line, sizeof(line),
		 "{\"region\": {\"domain\": \"" ONE_DEVICE
		 "\", \"address\": \"%p\", \"length\": 100, \"key\": \"0x1f\", ",
		 (void *)memory);
	must_have(text, line);
	must_have(text, "\"access\": [\"FI_REMOTE_READ\", \"FI_REMOTE_WRITE\"], \"segments\": 1");
	must_have(text, "\"function\": \"reg\"");
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	must_have(ask_info("--json"), "[\n  {\"domain\": \"" ONE_DEVICE "\"}\n]\n");
	close_domain();
}
END_TEST

/* --- the end --------------------------------------------------------------------------- */

static char said[8192];
static pid_t ended; /* the process that said it */

static void open_and_forget(void)
{
	open_domain(0, FI_MR_ALLOCATED);
	reg(100, REMOTE, 0x77, 0);
}

static void open_and_close(void)
{
	open_domain(0, FI_MR_ALLOCATED);
	ck_assert_int_eq(fi_close(&reg(100, REMOTE, 0x77, 0)->fid), 0);
	close_domain();
}

/* What a program that does this says, which goes to said, and how it ends. */
static int ends(const char *how, void (*program)(void))
{
	int p[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	ck_assert_int_eq(pipe(p), 0);
	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		dup2(p[1], STDERR_FILENO);
		dup2(p[1], STDOUT_FILENO);
		close(p[0]);
		close(p[1]);
		if (how)
			setenv(VAR, how, 1);
		mrf_env_reload();
		program();
		printf("not lost");
		exit(7);
	}
	close(p[1]);
	while ((n = read(p[0], said + used, sizeof(said) - 1 - used)) > 0)
		used += (size_t)n;
	said[used] = '\0';
	close(p[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ended = pid;
	ck_assert_msg(WIFEXITED(status), "%s", said);
	return WEXITSTATUS(status);
}

/* Check itself writes to a file, and a write that is too long ends the process. */
static void open_without_files(void)
{
	struct rlimit none = { 0, 0 };
	struct fid_mr *mr;
	int ret;

	open_domain(0, FI_MR_ALLOCATED);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	ret = setrlimit(RLIMIT_FSIZE, &none);
	if (!ret)
		ret = fi_domain(fabric, info, &domain, NULL);
	if (!ret)
		ret = fi_mr_reg(domain, memory, 100, REMOTE, 0, 1, 0, &mr, NULL);
	if (!ret)
		ret = fi_close(&mr->fid);
	if (!ret)
		ret = fi_close(&domain->fid);
	if (ret || fi_close(&fabric->fid))
		_exit(1);
	fi_freeinfo(info);
}

START_TEST(ledger_that_may_not_be_a_file_is_private)
{
	if (unit_forks())
		ck_assert_int_eq(ends(NULL, open_without_files), 7);
}
END_TEST

START_TEST(process_that_leaves_something_open_ends_with_99)
{
	if (!unit_forks())
		return;
	ck_assert_int_eq(ends("fail", open_and_forget), 99);
	must_have(said, "MRF-W2049: still open: fabric 0x");
	must_have(said, "MRF-W2048: still open: domain");
	must_have(said, "100 bytes, key 0x77");
	must_have(said, "MRF-W2050: FI_MRFAB_LEAKS: 3 objects were not closed");
	must_have(said, "not lost");
	ck_assert_int_eq(ends("Report", open_and_forget), 7);
	must_have(said, "100 bytes, key 0x77");
	ck_assert_int_eq(ends(NULL, open_and_forget), 7);
	ck_assert_ptr_null(strstr(said, "still open"));
}
END_TEST

/* What the file has that the process was to write, %p and all. */
static const char *report_of(const char *path)
{
	static char report[4096];
	size_t n;
	FILE *file = fopen(path, "re");

	ck_assert_msg(file, "%s: %s", path, said);
	n = fread(report, 1, sizeof(report) - 1, file);
	report[n] = '\0';
	fclose(file);
	remove(path);
	return report;
}

START_TEST(report_of_what_is_left_open_is_json)
{
	const char *report;
	char path[128], value[160], pid[160], program[PATH_MAX + 16] = "\"object\": \"";
	size_t n = strlen(program);

	if (!unit_forks())
		return;
	snprintf(path, sizeof(path), "leaks.%d \"1\".json", (int)getpid());
	snprintf(value, sizeof(value), "fail:%s", path);
	ck_assert_int_eq(ends(value, open_and_forget), 99);
	report = report_of(path);
	must_have(report, "[\n  {\"object\": {\"name\": \"fabric 0x");
	ck_assert_ptr_null(strstr(report, "0\"}"));
	must_have(report, "{\"object\": {\"name\": \"domain 0x");
	must_have(report, "}},\n  {");
	must_have(report, "{\"region\": {\"domain\": \"rxe0\", \"address\": \"0x");
	must_have(report, "\"length\": 100, \"key\": \"0x77\", \"access\": [\"FI_REMOTE_READ\", "
			  "\"FI_REMOTE_WRITE\"], \"segments\": 1, \"bound\": 0, \"age_ms\": ");
	ck_assert_int_gt(readlink("/proc/self/exe", program + n, PATH_MAX - 1), 0);
	must_have(report, program);
	must_have(report, "t_ledger\", \"place\": \"0x");
	must_have(report, "}}\n]\n");
	/* A file of its own, which says that it has nothing to say. */
	ck_assert_int_eq(ends("report:leaks.%p.json", open_and_close), 7);
	snprintf(pid, sizeof(pid), "leaks.%d.json", (int)ended);
	ck_assert_str_eq(report_of(pid), "[\n]\n");
	ck_assert_str_eq(said, "not lost");
}
END_TEST

static void open_nothing(void)
{
}

START_TEST(process_that_used_nothing_writes_no_report)
{
	char pid[160];

	if (!unit_forks())
		return;
	ck_assert_int_eq(ends("fail:leaks.%p.json", open_nothing), 7);
	snprintf(pid, sizeof(pid), "leaks.%d.json", (int)ended);
	ck_assert_int_ne(access(pid, F_OK), 0);
}
END_TEST

START_TEST(report_that_cannot_be_written_is_named)
{
	if (!unit_forks())
		return;
	ck_assert_int_eq(ends("report:/nowhere/leaks", open_and_forget), 7);
	must_have(said,
		  "MRF-W5922: FI_MRFAB_LEAKS: /nowhere/leaks cannot be written: No such file");
	must_have(said, "100 bytes, key 0x77");
	ck_assert_int_eq(ends("report:/dev/full", open_and_forget), 7);
	must_have(said, "MRF-W5922: FI_MRFAB_LEAKS: /dev/full cannot be written: No space");
}
END_TEST

START_TEST(process_that_closes_everything_ends_as_it_wants)
{
	if (!unit_forks())
		return;
	ck_assert_int_eq(ends("fail", open_and_close), 7);
	ck_assert_str_eq(said, "not lost");
}
END_TEST

START_TEST(process_that_left_its_parents_objects_open_ends_as_it_wants)
{
	/* So that a sanitizer finds them in the child, which opens others. */
	static void *volatile kept[3];

	if (!unit_forks())
		return;
	open_and_forget();
	kept[0] = info;
	kept[1] = fabric;
	kept[2] = domain;
	ck_assert_int_eq(ends("fail", open_and_close), 7);
	ck_assert_str_eq(said, "not lost");
	ck_assert(kept[0] == info && kept[1] == fabric && kept[2] == domain);
}
END_TEST

START_TEST(wrong_value_is_named_and_does_nothing)
{
	if (!unit_forks())
		return;
	ck_assert_int_eq(ends("maybe", open_and_forget), 7);
	must_have(said, "MRF-W5921: FI_MRFAB_LEAKS=\"maybe\": the value must be report or fail");
	ck_assert_ptr_null(strstr(said, "still open"));
}
END_TEST

static TCase *tcase_busy(void)
{
	TCase *tc = tcase_create("busy");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, busy_domain_names_its_regions_and_who_registered_them);
	tcase_add_test(tc, region_whose_registration_is_not_over_is_named_too);
	tcase_add_test(tc, regions_are_named_while_they_come_and_go);
	tcase_add_test(tc, busy_domain_says_what_a_region_is_bound_to);
	tcase_add_test(tc, busy_domain_names_a_hundred_regions_and_counts_the_rest);
	return tc;
}

static TCase *tcase_ledger(void)
{
	TCase *tc = tcase_create("ledger");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, ledger_has_what_is_open_and_nothing_else);
	tcase_add_test(tc, mrfab_info_shows_what_another_process_has_open);
	return tc;
}

static TCase *tcase_end(void)
{
	TCase *tc = tcase_create("end");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, process_that_leaves_something_open_ends_with_99);
	tcase_add_test(tc, report_of_what_is_left_open_is_json);
	tcase_add_test(tc, process_that_used_nothing_writes_no_report);
	tcase_add_test(tc, report_that_cannot_be_written_is_named);
	tcase_add_test(tc, process_that_closes_everything_ends_as_it_wants);
	tcase_add_test(tc, process_that_left_its_parents_objects_open_ends_as_it_wants);
	tcase_add_test(tc, ledger_that_may_not_be_a_file_is_private);
	tcase_add_test(tc, wrong_value_is_named_and_does_nothing);
	return tc;
}

UNIT_MAIN("ledger", tcase_busy, tcase_ledger, tcase_end)
