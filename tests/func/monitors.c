/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * monitors import: the application's own memory monitor decides alone what is kept of local
 * buffers, until it is closed. monitors lend: an installed libfabric, loaded beside the library,
 * keeps registrations in its own cache and learns from our monitor which of them to give up.
 * Each in a process of its own, because there is one monitor per process. Prints "ok NAME",
 * "skip NAME: WHY" or "not ok NAME".
 */
#define CASE_HELPER
#include <dlfcn.h>
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

static const char *role;

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
	printf("not ok monitors %s: ", role);
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

static long pinned_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long kb = -1;

	must(f != NULL, "no /proc/self/status");
	while (kb < 0 && fgets(line, sizeof(line), f))
		(void)sscanf(line, "VmPin: %ld", &kb);
	fclose(f);
	must(kb >= 0, "the kernel does not count pinned memory");
	return kb;
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

static int import(void)
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
	return 0;
}

/* --- lend -------------------------------------------------------------------------------- */

struct other {
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
		       struct fi_info **);
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	int (*open)(uint32_t, const char *, void *, size_t, uint64_t, struct fid **, void *);
	struct fi_info *(*dupinfo)(const struct fi_info *);
	struct fid_domain *domain;
};

static void find(void *so, const char *name, void *function)
{
	*(void **)function = dlsym(so, name);
	must(*(void **)function != NULL, "libfabric has no %s", name);
}

/* Its own symbols first: the names are the same as ours. */
static bool load(struct other *o)
{
	void *so;

	setenv("FI_UNIVERSE_SIZE", "2", 1);
	setenv("FI_VERBS_MR_CACHE_ENABLE", "1", 1);
	so = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!so)
		return false;
	find(so, "fi_getinfo", &o->getinfo);
	find(so, "fi_fabric", &o->fabric);
	find(so, "fi_open", &o->open);
	find(so, "fi_dupinfo", &o->dupinfo);
	return true;
}

static void open_domain(struct other *o)
{
	struct fi_info *hints = o->dupinfo(NULL), *info;
	struct fid_fabric *fabric;

	hints->caps = FI_RMA | FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("verbs");
	must_ok(o->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	must_ok(o->fabric(info->fabric_attr, &fabric, NULL));
	must_ok(fi_domain(fabric, info, &o->domain, NULL));
}

static void register_and_close(const struct other *o, void *mem, size_t len)
{
	struct fid_mr *mr;

	must_ok(fi_mr_reg(o->domain, mem, len, FI_WRITE | FI_REMOTE_READ, 0, 0, 0, &mr, NULL));
	must_ok(fi_close(&mr->fid));
}

/* What the borrower hears goes through here. */
static struct fi_ops_mem_notify *its_ops, through;
static atomic_int heard;

static void listen_in(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	if ((uintptr_t)addr < (uintptr_t)watched + LEN &&
	    (uintptr_t)addr + len > (uintptr_t)watched)
		atomic_fetch_add(&heard, 1);
	its_ops->notify(monitor, addr, len);
}

static void lend_to(const struct other *o, struct fid *lent)
{
	struct fid_mem_monitor *monitor = (struct fid_mem_monitor *)lent;
	struct fid *cache;

	must_ok(o->open(FI_VERSION(1, 17), "mr_cache", NULL, 0, 0, &cache, NULL));
	must_ok(fi_import_fid(cache, lent, 0));
	its_ops = monitor->import_ops;
	through = *its_ops;
	through.notify = listen_in;
	monitor->import_ops = &through;
}

/* Its cache keeps a closed region, until our monitor says that the memory has gone. */
static int lend(void)
{
	struct other other;
	struct fid *cache = mr_cache(), *lent;
	uint8_t *mem = map_at(NULL);
	long before, kept;

	if (!load(&other)) {
		printf("skip monitors lend: no libfabric here\n");
		return 77;
	}
	watched = mem;
	must_ok(fi_export_fid(cache, 0, &lent, NULL));
	lend_to(&other, lent);
	open_domain(&other);
	memset(mem, 1, LEN);
	before = pinned_kb();
	register_and_close(&other, mem, LEN);
	kept = pinned_kb() - before;
	must(kept >= (long)(LEN >> 10), "%ld kB are kept: it has no cache", kept);
	must(!atomic_load(&heard), "told of a change that nobody made");
	must(!munmap(mem, LEN), "munmap");
	must(atomic_load(&heard), "not told of the change");
	/* Now, or with its next registration. */
	register_and_close(&other, map_at(NULL), 4096);
	kept = pinned_kb() - before;
	must(kept < (long)(LEN >> 10), "%ld kB are still pinned", kept);
	return 0;
}

int main(int argc, char **argv)
{
	int ret;

	if (argc != 2 || (strcmp(argv[1], "import") && strcmp(argv[1], "lend"))) {
		fprintf(stderr, "usage: monitors import | lend\n");
		return 2;
	}
	role = argv[1];
	alarm(60);
	ret = strcmp(role, "lend") ? import() : lend();
	if (!ret)
		printf("ok monitors %s\n", role);
	fflush(stdout);
	_exit(ret);
}
