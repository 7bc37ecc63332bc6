/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A write that is persistent when it completes, between two hosts (MRFAB_HOST); the test is
 * tests/runner/t_commit.sh, which kills host 1 when host 0 has written "committed".
 *
 *	commit FILE         host 1 registers the file with FI_RMA_PMEM, host 0 writes to it:
 *	                    first some bytes as usual, then others with FI_COMMIT_COMPLETE
 *	commit --check FILE these are there; the former are not, so that it shows that a write
 *	                    is not persistent by itself
 */
#define CASE_HELPER
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "fab.h"

#define PAGE 4096ul
#define SIZE (16 * PAGE)
#define USUAL (2 * PAGE)	   /* where the usual write goes, a page */
#define COMMITTED (5 * PAGE + 100) /* and the other one */
#define COMMITTED_LEN (3 * PAGE)
#define PORT 7460
#define PATIENCE 60000 /* ms */

/* --- what fab.c wants of the runner of cases (case.h) ------------------------------- */

void case_at(const char *file, int line)
{
	(void)file;
	(void)line;
}

void case_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("# failed: ", stdout);
	vprintf(fmt, ap);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

void case_expect(const char *call, long got, long expected)
{
	if (got != expected)
		case_fail("%s: %ld (%s), expected %ld", call, got,
			  got < 0 ? fi_strerror((int)-got) : "", expected);
}

long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

/* --- both sides --------------------------------------------------------------------- */

static const struct mode mode = {
	.name = "commit", .api = FI_VERSION(1, 17), .hint = FI_MR_ALLOCATED, .caps = FI_RMA_PMEM
};

struct told {
	char name[NAME_LEN];
	uint64_t key;
};

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 251 + 1);
}

static struct sockaddr_in at(const char *host)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	must(host && inet_pton(AF_INET, host, &addr.sin_addr) == 1, "no address");
	return addr;
}

/* --- host 1 -------------------------------------------------------------------------- */

static uint8_t *map_file(const char *path)
{
	static const uint8_t zeros[SIZE];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	void *mem;

	must(fd >= 0 && write(fd, zeros, SIZE) == SIZE && !fsync(fd), "%s: %s", path,
	     strerror(errno));
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(mem != MAP_FAILED, "mmap: %s", strerror(errno));
	return mem;
}

static void tell(const struct told *told)
{
	struct sockaddr_in addr = at(getenv("MRFAB_HOST_ADDR"));
	int s = socket(AF_INET, SOCK_STREAM, 0), c, one = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(s, (struct sockaddr *)&addr, sizeof(addr)) && !listen(s, 1), "bind: %s",
	     strerror(errno));
	c = accept(s, NULL, NULL);
	must(c >= 0 && write(c, told, sizeof(*told)) == sizeof(*told), "the other host: %s",
	     strerror(errno));
}

static void be_target(const char *path)
{
	static const struct fab_opt usual;
	uint8_t *mem = map_file(path);
	struct iovec iov = { mem, SIZE };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				   .requested_key = 7 };
	struct told told = { .key = 7 };
	struct fid_mr *mr;
	struct fab f;
	int rc;

	fab_open(&f, &mode, &usual);
	rc = fi_mr_regattr(f.domain, &attr, FI_RMA_PMEM, &mr);
	if (rc == -FI_EFAULT) {
		puts("refused");
		fflush(stdout);
		_exit(0);
	}
	must_ok(rc);
	/* Pinning made all pages dirty: from here on nothing is but what peers write. */
	must(!msync(mem, SIZE, MS_SYNC), "msync: %s", strerror(errno));
	memcpy(told.name, f.name, sizeof(told.name));
	tell(&told);
	sleep(PATIENCE / 1000);
	case_fail("nobody killed this host");
}

/* --- host 0 -------------------------------------------------------------------------- */

static struct told hear(void)
{
	struct sockaddr_in addr = at(getenv("MRFAB_PEER_ADDR"));
	long end = now_ms() + PATIENCE;
	struct told told;
	int s;

	for (;;) {
		s = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(s, (struct sockaddr *)&addr, sizeof(addr)))
			break;
		close(s);
		must(now_ms() < end, "the other host is not there");
		usleep(100000);
	}
	must(recv(s, &told, sizeof(told), MSG_WAITALL) == sizeof(told), "nothing heard");
	close(s);
	return told;
}

static int write_there(struct fab *f, uint8_t *from, const struct fi_rma_iov *rma, fi_addr_t to,
		       uint64_t flags)
{
	struct iovec iov = { from + rma->addr, rma->len };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .rma_iov = rma, .rma_iov_count = 1
	};
	struct done d;

	must_ok((int)fi_writemsg(f->ep, &msg, flags));
	must(fab_done(f, &d, PATIENCE), "a completion never comes");
	return d.err;
}

static void be_initiator(void)
{
	static const struct fab_opt usual;
	static uint8_t mem[SIZE];
	struct told told = hear();
	struct fi_rma_iov rma = { USUAL, PAGE, told.key };
	long end = now_ms() + PATIENCE;
	struct fab f;
	fi_addr_t to;

	for (size_t i = 0; i < SIZE; i++)
		mem[i] = byte_at(i);
	fab_open(&f, &mode, &usual);
	to = fab_insert(&f, told.name);
	must_ok(write_there(&f, mem, &rma, to, 0));
	rma = (struct fi_rma_iov){ COMMITTED, COMMITTED_LEN, told.key };
	must_ok(write_there(&f, mem, &rma, to, FI_COMMIT_COMPLETE));
	puts("committed");
	fflush(stdout);
	/* Until the other machine is gone, which is an error in bounded time. */
	rma = (struct fi_rma_iov){ USUAL, 8, told.key };
	while (!write_there(&f, mem, &rma, to, 0))
		must(now_ms() < end, "the other host lives");
	puts("gone");
	fab_close(&f);
}

/* --- afterwards ------------------------------------------------------------------------ */

static int check(const char *path)
{
	static uint8_t mem[SIZE];
	int fd = open(path, O_RDONLY);
	size_t bad = 0, there = 0;

	must(fd >= 0 && read(fd, mem, SIZE) == SIZE, "%s: %s", path, strerror(errno));
	for (size_t i = 0; i < COMMITTED_LEN; i++)
		bad += mem[COMMITTED + i] != byte_at(COMMITTED + i);
	for (size_t i = 0; i < PAGE; i++)
		there += mem[USUAL + i] != 0;
	printf("%sok committed_bytes_outlive_the_machine (%zu of %lu are wrong)\n",
	       bad ? "not " : "", bad, COMMITTED_LEN);
	printf("%sok other_bytes_do_not (%zu are there)\n", there ? "not " : "", there);
	return bad || there;
}

int main(int argc, char **argv)
{
	const char *host = getenv("MRFAB_HOST");

	if (argc == 3 && !strcmp(argv[1], "--check"))
		return check(argv[2]);
	must(argc == 2 && host, "Usage: commit [--check] FILE, on two hosts");
	if (*host == '1')
		be_target(argv[1]);
	be_initiator();
	return 0;
}
