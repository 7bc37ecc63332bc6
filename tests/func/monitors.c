/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application's own memory monitor decides alone what is kept of local buffers, until it is
 * closed. In a process of its own, because there is one monitor per process. Prints "ok
 * monitors" or "not ok monitors: WHY".
 */
#define CASE_HELPER
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_ext.h>
#include "fab.h"

#define LEN (128ul << 10) /* more than is copied */
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

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
	printf("not ok monitors: ");
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
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- memory ---------------------------------------------------------------------------- */

static uint8_t *map_at(void *at)
{
	uint8_t *p = mmap(at, LEN, RW, ANON | (at ? MAP_FIXED : 0), -1, 0);

	must(p != MAP_FAILED, "no memory");
	return p;
}

/* Other pages in the same place, all bytes this one. */
static void renew(uint8_t *at, int byte)
{
	must(!munmap(at, LEN), "munmap");
	map_at(at);
	memset(at, byte, LEN);
}

static struct fid *mr_cache(void)
{
	struct fid *cache;

	must_ok(fi_open(FI_VERSION(1, 17), "mr_cache", NULL, 0, 0, &cache, NULL));
	return cache;
}

static const uint8_t *watched;

/* --- import ------------------------------------------------------------------------------ */

static atomic_int starts;
static atomic_bool is_valid = true;
static atomic_int of_it; /* subscriptions that cover it */

static int app_start(struct fid_mem_monitor *monitor)
{
	(void)monitor;
	atomic_fetch_add(&starts, 1);
	return 0;
}

static void app_stop(struct fid_mem_monitor *monitor)
{
	(void)monitor;
	atomic_fetch_sub(&starts, 1);
}

static bool covers(const void *addr, size_t len)
{
	return (uintptr_t)addr <= (uintptr_t)watched &&
	       (uintptr_t)addr + len >= (uintptr_t)watched + LEN;
}

static int app_subscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	if (covers(addr, len))
		atomic_fetch_add(&of_it, 1);
	return 0;
}

static void app_unsubscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
}

static bool app_valid(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void)monitor;
	(void)addr;
	(void)len;
	return atomic_load(&is_valid);
}

static struct fi_ops_mem_monitor app_ops = { sizeof(app_ops), app_start,       app_stop,
					     app_subscribe,   app_unsubscribe, app_valid };
static struct fid_mem_monitor app = { .fid = { .fclass = FI_CLASS_MEM_MONITOR },
				      .export_ops = &app_ops };

static struct fab fab;
static struct fid_mr *region;
static uint8_t *from, *to;
static fi_addr_t self;

/* One write of all of from; is every byte at the other end this one? */
static bool arrives(int byte)
{
	struct done d;

	memset(to, 0xee, LEN);
	must_ok(fi_write(fab.ep, from, LEN, NULL, self, fab.virt ? (uintptr_t)to : 0,
			 fi_mr_key(region), NULL));
	must(fab_done(&fab, &d, SOON), "no completion");
	must(!d.err, "the write failed: %s", d.text);
	for (size_t i = 0; i < LEN; i++) {
		if (to[i] != byte)
			return false;
	}
	return true;
}

static void notify(void)
{
	app.import_ops->notify(&app, from, LEN);
}

static void what_it_tells_is_noticed(void)
{
	int before = atomic_load(&of_it);

	must(arrives(1) && atomic_load(&of_it) == before + 1, "the buffer is not subscribed");
	must(arrives(1) && atomic_load(&of_it) == before + 1, "it is not kept");
	notify();
	renew(from, 2);
	must(arrives(2), "stale, although it was told");
	must(atomic_load(&of_it) == before + 2, "it is not subscribed again");
	atomic_store(&is_valid, false);
	renew(from, 3);
	must(arrives(3), "stale, although it was not valid");
	atomic_store(&is_valid, true);
}

/* The old pages are what the device has: nobody has said that they are not from's any more. */
static void what_it_keeps_to_itself_is_not(void)
{
	must(arrives(3), "other bytes");
	renew(from, 4);
	must(!arrives(4), "a change was noticed of which nobody told");
	notify();
	must(arrives(4), "stale, although it was told");
}

static void ours_is_back(void)
{
	must_ok(fi_close(&app.fid));
	must(!atomic_load(&starts), "it was not stopped");
	must(arrives(4), "other bytes");
	renew(from, 5);
	must(arrives(5), "stale: ours is not back");
}

static void import(void)
{
	static const struct mode mode = { .name = "0" };
	static const struct fab_opt usual;
	struct fid *cache = mr_cache();

	must_ok(fi_import_fid(cache, &app.fid, 0));
	fab_open(&fab, &mode, &usual);
	watched = from = map_at(NULL);
	to = map_at(NULL);
	memset(from, 1, LEN);
	must_ok(fi_mr_reg(fab.domain, to, LEN, FI_REMOTE_WRITE, 0, 1, 0, &region, NULL));
	self = fab_insert(&fab, fab.name);
	what_it_tells_is_noticed();
	what_it_keeps_to_itself_is_not();
	ours_is_back();
	must_ok(fi_close(&region->fid));
	fab_close(&fab);
	must_ok(fi_close(cache));
}

int main(void)
{
	alarm(60);
	import();
	printf("ok monitors\n");
	fflush(stdout);
	_exit(0);
}
