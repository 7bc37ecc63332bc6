/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "memory.h"

/* A place at which allocations of a size come and go. */
struct place {
	struct place *next;
	struct rt_alloc alloc;
	size_t room; /* whole pages; 0: not ours */
	bool used;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places;
static uint64_t last_id;

static size_t pages(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) & ~(page - 1);
}

/* --- allocations ----------------------------------------------------------------------- */

static uint8_t *map(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The place that was given back last. */
static struct place *find_free(enum rt_kind kind, size_t room)
{
	struct place *p;

	for (p = places; p; p = p->next) {
		if (!p->used && p->room == room && p->alloc.kind == kind)
			return p;
	}
	return NULL;
}

static struct place *add_place(enum rt_kind kind, size_t room)
{
	struct place *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->room = room;
	p->alloc.kind = kind;
	p->alloc.front = map(room, kind == RT_DEVICE ? PROT_NONE : PROT_READ | PROT_WRITE);
	p->alloc.bytes = kind == RT_DEVICE ? map(room, PROT_READ | PROT_WRITE) : p->alloc.front;
	if (!p->alloc.front || !p->alloc.bytes) {
		free(p); /* The process is out of memory; a mapping may be lost. */
		return NULL;
	}
	p->next = places;
	places = p;
	return p;
}

void *rt_new(enum rt_kind kind, int device, void *owner, size_t len)
{
	void *addr = NULL;
	struct place *p;

	if (!len)
		return NULL;
	pthread_mutex_lock(&lock);
	p = find_free(kind, pages(len));
	if (!p)
		p = add_place(kind, pages(len));
	if (p) {
		p->used = true;
		p->alloc.device = device;
		p->alloc.owner = owner;
		p->alloc.len = len;
		p->alloc.id = ++last_id;
		/* Nobody may rely on what was there. */
		memset(p->alloc.bytes, 0xdb, p->room);
		addr = p->alloc.front;
	}
	pthread_mutex_unlock(&lock);
	return addr;
}

static struct place *place_of(uintptr_t addr)
{
	struct place *p;

	for (p = places; p; p = p->next) {
		if (p->used && addr - (uintptr_t)p->alloc.front < p->alloc.len)
			return p;
	}
	return NULL;
}

bool rt_adopt(void *addr, size_t len, void *owner)
{
	struct place *p = calloc(1, sizeof(*p));
	bool known;

	if (!p)
		return false;
	*p = (struct place){ .used = true,
			     .alloc = { .kind = RT_HOST,
					.owner = owner,
					.front = addr,
					.bytes = addr,
					.len = len } };
	pthread_mutex_lock(&lock);
	known = place_of((uintptr_t)addr) || place_of((uintptr_t)addr + len - 1);
	if (!known) {
		p->alloc.id = ++last_id;
		p->next = places;
		places = p;
	}
	pthread_mutex_unlock(&lock);
	if (known)
		free(p);
	return !known;
}

/* A place of ours waits for the next allocation; the host's is forgotten. */
static void leave_place(struct place *p)
{
	struct place **at = &places;

	p->used = false;
	if (p->room)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

bool rt_free(void *addr, unsigned kinds)
{
	struct place *p;
	bool ok;

	pthread_mutex_lock(&lock);
	p = place_of((uintptr_t)addr);
	ok = p && p->alloc.front == addr && kinds >> p->alloc.kind & 1;
	if (ok)
		leave_place(p);
	pthread_mutex_unlock(&lock);
	return ok;
}

void rt_free_of(const void *owner)
{
	struct place *p, *next;

	pthread_mutex_lock(&lock);
	for (p = places; p; p = next) {
		next = p->next;
		if (p->used && p->alloc.owner == owner)
			leave_place(p);
	}
	pthread_mutex_unlock(&lock);
}

bool rt_find(uintptr_t addr, struct rt_alloc *alloc)
{
	struct place *p;

	pthread_mutex_lock(&lock);
	p = place_of(addr);
	if (p)
		*alloc = p->alloc;
	pthread_mutex_unlock(&lock);
	return p;
}

uint8_t *rt_bytes(uintptr_t addr, size_t len)
{
	struct rt_alloc alloc;
	size_t off;

	if (!rt_find(addr, &alloc))
		return NULL;
	off = addr - (uintptr_t)alloc.front;
	return len <= alloc.len - off ? alloc.bytes + off : NULL;
}

int rt_devices(void)
{
	const char *text = getenv("MRFAB_RUNTIME_DEVICES");

	return text ? atoi(text) : 2;
}

/* --- copies ---------------------------------------------------------------------------- */

static void sleep_ns(uint64_t ns)
{
	struct timespec left = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

/* By the system call itself: hooks of mremap would learn of it. */
void rt_move(uintptr_t addr)
{
	struct rt_alloc alloc;
	size_t len;
	void *copy;

	if (!rt_find(addr, &alloc) || alloc.kind != RT_MANAGED)
		return;
	len = pages(alloc.len);
	copy = map(len, PROT_READ | PROT_WRITE);
	memcpy(copy, alloc.front, alloc.len);
	syscall(SYS_mremap, copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, alloc.front);
}

void rt_copy(void *to, const void *from, size_t len)
{
	const char *text = getenv("MRFAB_RUNTIME_US_PER_MIB");
	uint64_t us = text ? strtoull(text, NULL, 10) : 0;

	memcpy(to, from, len);
	if (us)
		sleep_ns(us * 1000 * len >> 20);
}

/* --- calls ----------------------------------------------------------------------------- */

struct call {
	const char *name;
	unsigned long times;
};

static struct {
	char name[64];
	unsigned left;
	int error;
} failing;
static struct call calls[128];

static struct call *call_of(const char *name)
{
	unsigned i;

	for (i = 0; i < 127 && calls[i].name && strcmp(calls[i].name, name) != 0; i++)
		;
	calls[i].name = name;
	return &calls[i];
}

int rt_begin(const char *name)
{
	int error = 0;

	pthread_mutex_lock(&lock);
	call_of(name)->times++;
	if (failing.left && (!strcmp(failing.name, "*") || !strcmp(failing.name, name)) &&
	    !--failing.left)
		error = failing.error;
	pthread_mutex_unlock(&lock);
	return error;
}

void rt_fail_next(const char *name, unsigned nth, int error)
{
	pthread_mutex_lock(&lock);
	strncpy(failing.name, name, sizeof(failing.name) - 1);
	failing.left = nth;
	failing.error = error;
	pthread_mutex_unlock(&lock);
}

unsigned rt_fails_left(void)
{
	unsigned left;

	pthread_mutex_lock(&lock);
	left = failing.left;
	pthread_mutex_unlock(&lock);
	return left;
}

unsigned long rt_calls(const char *name)
{
	unsigned long times = 0;
	unsigned i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < 128 && calls[i].name; i++)
		times += !name || !strcmp(calls[i].name, name) ? calls[i].times : 0;
	pthread_mutex_unlock(&lock);
	return times;
}
