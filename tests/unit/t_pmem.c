/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_RMA_PMEM, and writes that are done when they are persistent (FI_COMMIT_COMPLETE). */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include "mr/filemem.h"
#include "raw.h"

#define LEN (4 * PAGE)

static struct pair p;
static char file_name[64];
static int file;
static uint8_t *mem; /* LEN bytes of the file, mapped shared */
static struct fid_mr *mr;

static void *map(int fd, int prot, int flags)
{
	void *at = mmap(NULL, LEN, prot, flags, fd, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

static int file_new(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	return fd;
}

/* The kind of file system that all files are on, so that it does not matter where this runs. */
static long kind;

int __real_statfs(const char *path, struct statfs *fs);
int __wrap_statfs(const char *path, struct statfs *fs);

int __wrap_statfs(const char *path, struct statfs *fs)
{
	int ret = __real_statfs(path, fs);

	fs->f_type = kind;
	return ret;
}

/* What p.a has posted does not show as completed. */
static atomic_bool late;

static bool is_late(const struct mrf_vcq *cq)
{
	return atomic_load(&late) && cq == node_ep(&p.a)->scq;
}

static void setup(void)
{
	fixture_setup();
	fake.is_late = is_late;
	kind = EXT4_SUPER_MAGIC;
	snprintf(file_name, sizeof(file_name), "t_pmem.%d.tmp", (int)getpid());
	file = file_new(file_name);
	mem = map(file, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void teardown(void)
{
	munmap(mem, LEN);
	close(file);
	unlink(file_name);
	fixture_teardown();
}

/* --- which memory --------------------------------------------------------------------- */

static const char *why(const void *at, uint64_t len)
{
	int err;
	const char *text = mrf_pmem_why_not((uintptr_t)at, len, &err);

	ck_assert_int_eq(err, 0);
	return text;
}

START_TEST(shared_mapping_of_a_file_is_persistent)
{
	ck_assert_ptr_eq(why(mem, LEN), NULL);
	ck_assert_ptr_eq(why(mem + 5, 1), NULL);
	/* Adjacent mappings of it are as good as one. */
	ck_assert_int_eq(mprotect(mem + PAGE, PAGE, PROT_READ), 0);
	ck_assert_str_eq(why(mem, LEN), "is not mapped for writing");
	ck_assert_ptr_eq(why(mem, PAGE), NULL);
	ck_assert_ptr_eq(why(mem + 2 * PAGE, 2 * PAGE), NULL);
}
END_TEST

START_TEST(other_memory_is_not_and_it_is_said_why)
{
	void *private = map(file, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	void *anon = map(-1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
	void *shared = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	int fd = memfd_create("m", MFD_CLOEXEC);
	void *memory;

	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	memory = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	ck_assert_str_eq(why(private, LEN), "is not a shared mapping");
	ck_assert_str_eq(why(anon, LEN), "is not a shared mapping");
	ck_assert_ptr_ne(why(shared, LEN), NULL);
	ck_assert_ptr_ne(why(memory, LEN), NULL);
	munmap(private, LEN);
	ck_assert_str_eq(why(private, LEN), "is not mapped");
	unlink(file_name);
	ck_assert_ptr_ne(why(mem, LEN), NULL);
	munmap(anon, LEN);
	munmap(shared, LEN);
	munmap(memory, LEN);
	close(fd);
}
END_TEST

/* The kernel writes a newline in /proc as "\\012", and a backslash as it is. */
START_TEST(file_of_whatever_name_is_persistent)
{
	static const char *const names[] = { "t_pmem.\\1", "t_pmem.\n.tmp", "t_pmem.\\101",
					     "t_pmem.\\", "t_pmem.\\01" };
	const char *name = names[_i];
	void *at;
	int fd;

	fd = file_new(name);
	at = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	ck_assert_ptr_eq(why(at, LEN), NULL);
	munmap(at, LEN);
	close(fd);
	unlink(name);
}
END_TEST

/* What is written behind the end, in the last page as well, is not the file's. */
START_TEST(bytes_behind_the_end_of_a_file_are_not_persistent)
{
	void *second;

	ck_assert_int_eq(ftruncate(file, LEN - 100), 0);
	ck_assert_ptr_eq(why(mem, LEN - 100), NULL);
	ck_assert_str_eq(why(mem, LEN - 99), "passes the end of its file");
	ck_assert_str_eq(why(mem + LEN - 100, 1), "passes the end of its file");
	second = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 3 * PAGE);
	ck_assert_ptr_ne(second, MAP_FAILED);
	ck_assert_ptr_eq(why(second, PAGE - 100), NULL);
	ck_assert_str_eq(why(second, PAGE - 99), "passes the end of its file");
	munmap(second, PAGE);
}
END_TEST

START_TEST(file_that_is_kept_in_memory_is_not_persistent)
{
	static const long kinds[] = { TMPFS_MAGIC, RAMFS_MAGIC, HUGETLBFS_MAGIC };

	kind = kinds[_i];
	ck_assert_str_eq(why(mem, LEN), "belongs to a file that is kept in memory only");
}
END_TEST

/* --- flushing ------------------------------------------------------------------------- */

int __real_madvise(void *at, size_t len, int advice);
int __wrap_madvise(void *at, size_t len, int advice);
int __real_msync(void *at, size_t len, int flags);
int __wrap_msync(void *at, size_t len, int flags);

/* What the kernel was asked for, and what it answers; all 0 outside of a test. */
static struct {
	bool on;
	int madvise_err, msync_err;
	unsigned calls;
	struct {
		char what;
		void *at;
		size_t len;
	} call[4];
} flushes;

static int flush_call(char what, void *at, size_t len, int err)
{
	ck_assert_uint_lt(flushes.calls, 4);
	flushes.call[flushes.calls].what = what;
	flushes.call[flushes.calls].at = at;
	flushes.call[flushes.calls++].len = len;
	errno = err;
	return err ? -1 : 0;
}

int __wrap_madvise(void *at, size_t len, int advice)
{
	if (!flushes.on)
		return __real_madvise(at, len, advice);
	ck_assert_int_eq(advice, 23); /* MADV_POPULATE_WRITE */
	return flush_call('p', at, len, flushes.madvise_err);
}

int __wrap_msync(void *at, size_t len, int flags)
{
	if (!flushes.on)
		return __real_msync(at, len, flags);
	ck_assert_int_eq(flags, MS_SYNC);
	return flush_call('s', at, len, flushes.msync_err);
}

static int flush(uint64_t addr, uint64_t len)
{
	int err;

	flushes.on = true;
	flushes.calls = 0;
	err = mrf_pmem_flush(addr, len);
	flushes.on = false;
	return err;
}

/*
 * What the device has written is in no page table: without the first call there would be
 * nothing for the second.
 */
START_TEST(flush_makes_the_pages_dirty_and_has_them_written)
{
	static const struct {
		size_t at, len, page, pages;
	} cases[] = { { 0, 1, 0, 1 },	    { PAGE - 1, 1, 0, 1 }, { PAGE - 1, 2, 0, 2 },
		      { PAGE, PAGE, 1, 1 }, { 1, PAGE, 0, 2 },	   { 0, LEN, 0, 4 },
		      { 1, LEN - 1, 0, 4 } };
	size_t i, n;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(flush((uintptr_t)mem + cases[i].at, cases[i].len), 0);
		ck_assert_uint_eq(flushes.calls, 2);
		ck_assert_int_eq(flushes.call[0].what, 'p');
		ck_assert_int_eq(flushes.call[1].what, 's');
		for (n = 0; n < 2; n++) {
			ck_assert_ptr_eq(flushes.call[n].at, mem + cases[i].page * PAGE);
			ck_assert_uint_eq(flushes.call[n].len, cases[i].pages * PAGE);
		}
	}
}
END_TEST

START_TEST(flush_that_fails_says_so)
{
	flushes.madvise_err = EFAULT;
	ck_assert_int_eq(flush((uintptr_t)mem, 8), FI_EFAULT);
	ck_assert_uint_eq(flushes.calls, 1);
	flushes.madvise_err = 0;
	flushes.msync_err = EIO;
	ck_assert_int_eq(flush((uintptr_t)mem, 8), FI_EIO);
	flushes.msync_err = 0;
}
END_TEST

/* --- registering ---------------------------------------------------------------------- */

static int reg_pmem(void *at, size_t len, uint64_t key)
{
	struct iovec iov = { at, len };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = REMOTE_RW, .requested_key = key
	};

	return fi_mr_regattr(p.b.domain, &attr, FI_RMA_PMEM, &mr);
}

START_TEST(region_of_other_memory_is_refused)
{
	static struct unit_capture cap;
	const char *said;

	fixture_log();
	pair_open(&p, PLAIN);
	unit_capture(&cap);
	ck_assert_int_eq(reg_pmem(p.dst, PAIR_LEN, 9), -FI_EINVAL);
	said = unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(said), 1);
	ck_assert(strstr(said, "MRF-E3280") && strstr(said, "shared mapping"));
	pair_close(&p);
}
END_TEST

/* As newer kernels do: they pin no shared mapping of a file for writing. */
START_TEST(kernel_that_does_not_pin_files_is_named_as_the_reason)
{
	static struct unit_capture cap;
	const char *said;

	fixture_log();
	pair_open(&p, PLAIN);
	fake_fail(FAKE_VMR_REG, 1, FI_EFAULT);
	unit_capture(&cap);
	ck_assert_int_eq(reg_pmem(mem, LEN, 9), -FI_EFAULT);
	said = unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(said), 1);
	ck_assert(strstr(said, "MRF-E3281"));
	pair_close(&p);
}
END_TEST

/* --- writing --------------------------------------------------------------------------- */

static void commit_at(size_t at, size_t len, uint64_t key, uint64_t more)
{
	struct iovec iov = { p.src + at, len };
	struct fi_rma_iov there = { at, len, key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = p.to,
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .context = pair_ctx(&p, at) };

	ck_assert_int_eq(fi_writemsg(p.a.ep, &msg, FI_COMMIT_COMPLETE | more), 0);
}

/* One of the three calls that register, with both flags, in a domain that needs them. */
static int reg_by(unsigned call, uint64_t flags)
{
	struct iovec iov = { mem, LEN };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = REMOTE_RW, .requested_key = 9
	};

	switch (call) {
	case 0:
		return fi_mr_reg(p.b.domain, mem, LEN, REMOTE_RW, 0, 9, flags, &mr, NULL);
	case 1:
		return fi_mr_regv(p.b.domain, &iov, 1, REMOTE_RW, 0, 9, flags, &mr, NULL);
	default:
		return fi_mr_regattr(p.b.domain, &attr, flags, &mr);
	}
}

START_TEST(each_of_the_three_calls_takes_the_flags)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	struct fid_ep *told;

	pair_open(&p, PLAIN);
	/* An endpoint that can count, in a domain where a region counts only with the flag. */
	p.b.info->caps = MRF_CAPS | FI_RMA_EVENT;
	ck_assert_int_eq(node_try_ep(&p.b, PLAIN, &told), 0);
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(reg_by((unsigned)_i, 0), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
	commit_at(100, 500, 9, 0);
	want_err(&p.a, pair_ctx(&p, 100), FI_EOPNOTSUPP, "without FI_RMA_PMEM");
	must_close(&mr->fid);
	ck_assert_int_eq(reg_by((unsigned)_i, FI_RMA_EVENT | FI_RMA_PMEM), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	commit_at(100, 500, 9, 0);
	want_ok(&p.a, pair_ctx(&p, 100));
	must_close(&cntr->fid);
	must_close(&mr->fid);
	must_close(&told->fid);
	pair_close(&p);
}
END_TEST

/* Requests of type FLUSH as they pass: check or flush, and the bytes written by then. */
static unsigned seen[8], nseen, shared;
static size_t written[8];

static enum fake_fate on_send(uint8_t *msg, size_t *len, bool from_target)
{
	struct mrf_request request;

	if (!from_target && mrf_msg_type(msg, *len) == MRF_MSG_FLUSH &&
	    !mrf_request_decode(msg, *len, &request) && nseen < 8) {
		seen[nseen] = request.what;
		written[nseen++] = fake.nlog;
		shared += mrf_msg_len(msg) < *len;
	}
	return FAKE_DELIVER;
}

static void open_pmem(const struct node_opt *opt)
{
	nseen = shared = 0;
	pair_open(&p, opt);
	fake.on_send = on_send;
	ck_assert_int_eq(reg_pmem(mem, LEN, 9), 0);
}

static void close_pmem(void)
{
	must_close(&mr->fid);
	pair_close(&p);
}

START_TEST(committed_write_is_checked_written_and_flushed_in_this_order)
{
	struct fi_cq_data_entry entry;

	open_pmem(_i ? NULL : PLAIN);
	commit_at(100, 5000, 9, 0);
	entry = want_ok(&p.a, pair_ctx(&p, 100));
	ck_assert_uint_eq(entry.flags, FI_RMA | FI_WRITE);
	ck_assert(!memcmp(mem + 100, p.src + 100, 5000));
	ck_assert_uint_eq(nseen, 2);
	ck_assert_uint_eq(seen[0], MRF_FLUSH_CHECK);
	ck_assert_uint_eq(seen[1], MRF_FLUSH_DO);
	ck_assert_uint_eq(written[1] - written[0], 1);
	/* What comes behind it waits and is done. */
	commit_at(0, 8, 9, FI_INJECT);
	commit_at(200, 8, 9, 0);
	want_ok(&p.a, NULL);
	want_ok(&p.a, NULL);
	want_none(&p.a);
	close_pmem();
}
END_TEST

/* One takes as long as the storage does; the target's agent serves others before the next. */
START_TEST(flushes_of_several_operations_go_one_by_one)
{
	open_pmem(PLAIN);
	atomic_store(&late, true);
	for (size_t i = 0; i < 4; i++)
		commit_at(8 * i, 8, 9, 0);
	/* Acknowledgements that come behind the next reply: all are written before one flush. */
	want_soon(fake_nlog() == 4);
	atomic_store(&late, false);
	for (int i = 0; i < 4; i++)
		want_ok(&p.a, NULL);
	ck_assert(!memcmp(mem, p.src, 32));
	ck_assert_uint_eq(nseen, 8);
	for (int i = 0; i < 8; i++)
		ck_assert_uint_eq(seen[i], i < 4 ? MRF_FLUSH_CHECK : MRF_FLUSH_DO);
	ck_assert_uint_eq(shared, 0);
	close_pmem();
}
END_TEST

/* An initiator that is not this library. */
static struct raw raw;

/* Two requests, one to check and one to flush so many bytes each, in one message. */
static size_t flush_twice(uint64_t key, uint64_t len, uint8_t *msg)
{
	struct mrf_request request = { .type = MRF_MSG_FLUSH, .key = key, .len = len };
	size_t used = mrf_request_encode(&request, msg);

	request.number++;
	request.what = MRF_FLUSH_DO;
	return used + mrf_request_encode(&request, msg + used);
}

static void raw_begin(void)
{
	raw_open(&raw);
	ck_assert_int_eq(raw_greet(&raw, node_port(&p.b)).type, MRF_CM_RESPONSE);
}

static void want_reply(const uint8_t *msg, size_t len, uint32_t status, uint64_t done)
{
	struct mrf_reply reply;

	ck_assert_int_eq(mrf_reply_decode(msg, len, &reply), 0);
	ck_assert_uint_eq(reply.status, status);
	ck_assert_uint_eq(reply.err, 0);
	ck_assert_uint_eq(reply.done, done);
}

START_TEST(flushes_that_come_together_are_done)
{
	uint8_t msg[2 * MRF_PROTO_REQUEST_HEAD];
	const uint8_t *got;
	struct mrf_wc wc;

	open_pmem(PLAIN);
	raw_begin();
	ck_assert_int_eq(raw_send(&raw, msg, flush_twice(9, 100, msg)), 0);
	wc = raw_recv(&raw);
	ck_assert_uint_eq(wc.byte_len, 2 * MRF_PROTO_REPLY_HEAD);
	got = raw.slots[wc.wr_id];
	want_reply(got, wc.byte_len, MRF_REPLY_DONE, 100);
	want_reply(got + MRF_PROTO_REPLY_HEAD, MRF_PROTO_REPLY_HEAD, MRF_REPLY_DONE, 100);
	ck_assert_uint_eq(shared, 1);
	raw_close(&raw);
	close_pmem();
}
END_TEST

/* The initiator asks about the key then, and says what the answer says. */
START_TEST(flush_without_the_right_is_refused_for_that_reason)
{
	const uint64_t access = FI_REMOTE_READ;
	uint8_t msg[2 * MRF_PROTO_REQUEST_HEAD];
	struct mrf_wc wc;

	pair_open(&p, PLAIN);
	ck_assert_int_eq(fi_mr_reg(p.b.domain, mem, LEN, access, 0, 9, FI_RMA_PMEM, &mr, NULL), 0);
	raw_begin();
	ck_assert_int_eq(raw_send(&raw, msg, flush_twice(9, 100, msg) / 2), 0);
	wc = raw_recv(&raw);
	want_reply(raw.slots[wc.wr_id], wc.byte_len, MRF_REPLY_RIGHT, 0);
	raw_close(&raw);
	close_pmem();
}
END_TEST

START_TEST(committed_write_with_a_key_that_carries_its_rkey_needs_the_right)
{
	const struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED | FI_MR_PROV_KEY };
	const uint64_t access = FI_REMOTE_READ;

	pair_open(&p, &opt);
	ck_assert_int_eq(fi_mr_reg(p.b.domain, mem, LEN, access, 0, 0, FI_RMA_PMEM, &mr, NULL), 0);
	commit_at(0, 8, fi_mr_key(mr), 0);
	ck_assert_int_eq(want_err(&p.a, NULL, FI_EACCES, "without FI_REMOTE_WRITE"), 4104);
	close_pmem();
}
END_TEST

START_TEST(committed_write_without_persistent_memory_writes_nothing)
{
	pair_open(&p, _i ? NULL : PLAIN);
	commit_at(100, 500, p.key, 0);
	ck_assert_int_eq(want_err(&p.a, pair_ctx(&p, 100), FI_EOPNOTSUPP,
				  "without FI_RMA_PMEM; nothing was written"),
			 4270);
	ck_assert_uint_eq(p.dst[100], 0);
	ck_assert_uint_eq(fake_nlog(), 0);
	pair_write(&p, 0, 8);
	want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
}
END_TEST

START_TEST(committed_write_has_the_refusals_of_a_write)
{
	open_pmem(PLAIN);
	commit_at(LEN - 10, 20, 9, 0);
	want_err(&p.a, NULL, FI_EACCES, "past the end");
	commit_at(0, 20, 4711, 0);
	want_err(&p.a, NULL, FI_EKEYREJECTED, NULL);
	ck_assert_uint_eq(fake_nlog(), 0);
	commit_at(0, 20, 9, 0);
	want_ok(&p.a, NULL);
	close_pmem();
}
END_TEST

START_TEST(memory_that_was_replaced_is_found_out)
{
	/* Here the memory need not be the same all the time. */
	open_pmem(NULL);
	ck_assert_ptr_eq(mmap(mem, LEN, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem);
	commit_at(0, 20, 9, 0);
	ck_assert_int_eq(want_err(&p.a, NULL, FI_EFAULT, "no persistent memory"), 4271);
	ck_assert_uint_eq(mem[0], 0);
	close_pmem();
}
END_TEST

START_TEST(commit_by_the_endpoints_flags_and_not_for_reads)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED, .op_flags = FI_COMMIT_COMPLETE };

	open_pmem(&opt);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, 0, 9, NULL), 0);
	want_ok(&p.a, NULL);
	ck_assert_uint_eq(nseen, 2);
	ck_assert_int_eq(fi_read(p.a.ep, p.src, 8, NULL, p.to, 0, 9, NULL), 0);
	want_ok(&p.a, NULL);
	ck_assert_uint_eq(nseen, 2);
	close_pmem();
}
END_TEST

static TCase *tcase_memory(void)
{
	TCase *tc = tcase_create("memory");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, shared_mapping_of_a_file_is_persistent);
	tcase_add_test(tc, other_memory_is_not_and_it_is_said_why);
	tcase_add_loop_test(tc, file_of_whatever_name_is_persistent, 0, 5);
	tcase_add_test(tc, bytes_behind_the_end_of_a_file_are_not_persistent);
	tcase_add_loop_test(tc, file_that_is_kept_in_memory_is_not_persistent, 0, 3);
	tcase_add_test(tc, flush_makes_the_pages_dirty_and_has_them_written);
	tcase_add_test(tc, flush_that_fails_says_so);
	tcase_add_test(tc, region_of_other_memory_is_refused);
	tcase_add_test(tc, kernel_that_does_not_pin_files_is_named_as_the_reason);
	return tc;
}

static TCase *tcase_write(void)
{
	TCase *tc = tcase_create("write");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, committed_write_is_checked_written_and_flushed_in_this_order, 0, 2);
	tcase_add_test(tc, flushes_of_several_operations_go_one_by_one);
	tcase_add_test(tc, flushes_that_come_together_are_done);
	tcase_add_test(tc, flush_without_the_right_is_refused_for_that_reason);
	tcase_add_test(tc, committed_write_with_a_key_that_carries_its_rkey_needs_the_right);
	tcase_add_loop_test(tc, each_of_the_three_calls_takes_the_flags, 0, 3);
	tcase_add_loop_test(tc, committed_write_without_persistent_memory_writes_nothing, 0, 2);
	tcase_add_test(tc, committed_write_has_the_refusals_of_a_write);
	tcase_add_test(tc, memory_that_was_replaced_is_found_out);
	tcase_add_test(tc, commit_by_the_endpoints_flags_and_not_for_reads);
	return tc;
}

UNIT_MAIN("pmem", tcase_memory, tcase_write)
