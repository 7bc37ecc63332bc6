/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/known.h"
#include "base/page.h"
#include "base/proc.h"
#include "base/thread.h"

_Atomic uint64_t mrf_known_counter;

static bool (*_Atomic hooks_in_force)(void);
static void (*_Atomic hooks_refresh)(void);

static atomic_bool distrusted;

void mrf_known_trust(bool (*in_force)(void), void (*refresh)(void))
{
	if (atomic_load(&distrusted))
		return;
	atomic_store(&hooks_refresh, refresh);
	atomic_store(&hooks_in_force, in_force);
}

void mrf_known_distrust(void)
{
	atomic_store(&distrusted, true);
	atomic_store(&hooks_in_force, NULL);
}

static bool in_force(void)
{
	bool (*ask)(void) = atomic_load_explicit(&hooks_in_force, memory_order_acquire);

	return ask && ask();
}

static bool trusted(void)
{
	return atomic_load_explicit(&hooks_in_force, memory_order_relaxed);
}

static atomic_bool any; /* from before the first page was found out about */

bool mrf_known_any(void)
{
	return atomic_load_explicit(&any, memory_order_relaxed) && trusted();
}

/* --- places ----------------------------------------------------------------------------- */

/*
 * The thread that copies, times MRF_KNOWN_CHANGE, and how often the place was taken. One
 * word, so that a signal handler never finds a place of its own thread without its name.
 */
static struct place {
	_Alignas(64) _Atomic uint64_t word;
	_Atomic uint64_t stuck; /* a word that was waited for in vain */
} places[MRF_KNOWN_PLACES];

#define TAKEN(word) ((word) / MRF_KNOWN_CHANGE)
#define TIMES(word) ((word) % MRF_KNOWN_CHANGE)

static uint64_t me(void)
{
	return (uint64_t)(uintptr_t)pthread_self() * MRF_KNOWN_CHANGE;
}

unsigned mrf_known_enter(void)
{
	uint64_t self = me(), word;
	unsigned i, at = mrf_thread_place(MRF_KNOWN_PLACES);

	for (i = 0; i < MRF_KNOWN_PLACES; i++, at = (at + 1) % MRF_KNOWN_PLACES) {
		word = atomic_load_explicit(&places[at].word, memory_order_relaxed);
		if (!TAKEN(word) &&
		    atomic_compare_exchange_strong(&places[at].word, &word, self | TIMES(word + 1)))
			return at;
	}
	return MRF_KNOWN_NO_PLACE;
}

void mrf_known_leave(unsigned at)
{
	uint64_t word = atomic_load_explicit(&places[at].word, memory_order_relaxed);

	atomic_store_explicit(&places[at].word, TIMES(word), memory_order_release);
}

#define SPINS 100
#define NAPS 5000 /* of 100 us or a little more */

static __attribute__((noinline)) void await_copier(struct place *place, uint64_t word)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	int i, err = errno;

	for (i = 0; i < SPINS + NAPS; i++) {
		if (atomic_load(&place->word) != word)
			break;
		/* The C library's nanosleep would be where a thread can be canceled. */
		if (i >= SPINS)
			(void)syscall(SYS_nanosleep, &nap, NULL);
	}
	if (i == SPINS + NAPS)
		atomic_store(&place->stuck, word);
	errno = err;
}

static void await_copiers(void)
{
	unsigned i;

	for (i = 0; i < MRF_KNOWN_PLACES; i++) {
		uint64_t word = atomic_load(&places[i].word);

		if (mrf_unlikely(TAKEN(word)) && TAKEN(word) != TAKEN(me()) &&
		    atomic_load(&places[i].stuck) != word)
			await_copier(&places[i], word);
	}
}

/*
 * While no page was ever known, no copier relies on one: the thread that finds the first page
 * sets `any`, and then checks whether the counter has moved.
 */
void mrf_known_change(void)
{
	atomic_fetch_add(&mrf_known_counter, MRF_KNOWN_CHANGE + 1);
	if (atomic_load(&any))
		await_copiers();
}

void mrf_known_changed(void)
{
	/* In a child of a fork out of a signal handler, inside a change. */
	if (mrf_unlikely(!(atomic_load_explicit(&mrf_known_counter, memory_order_relaxed) &
			   MRF_KNOWN_UNDER_WAY)))
		return;
	atomic_fetch_add(&mrf_known_counter, MRF_KNOWN_CHANGE - 1);
}

/* --- pages ------------------------------------------------------------------------------ */

/*
 * Direct-mapped; only pages that were found out about are in it. page is 0 while the others
 * are set, which one thread does at a time. Who reads page, then since, then the same page
 * again, and then finds that since is the counter, may trust this: had the entry been
 * another's meanwhile, it would have come back with a later counter, or the same.
 */
static struct entry {
	_Atomic uintptr_t page; /* its first byte */
	_Atomic uint64_t since;
} entries[256];

static atomic_flag setting = ATOMIC_FLAG_INIT;

/*
 * Pages that the kernel copied to since some change: those that come often are found out about, once.
 * Nothing is wrong if they are mixed up.
 */
static struct candidate {
	_Atomic uintptr_t page;
	_Atomic uint64_t since;
	atomic_uint uses;
} candidates[256];

static unsigned index_of(uintptr_t page)
{
	return (unsigned)(page / 4096 % MRF_ARRAY_SIZE(entries));
}

static uintptr_t page_of(uintptr_t addr)
{
	return addr & ~(uintptr_t)(mrf_page_size() - 1);
}

/* Sequentially consistent, and the last thing: see entries and known.h. */
static bool page_is_known(uintptr_t page)
{
	struct entry *entry = &entries[index_of(page)];
	uint64_t since;

	/* 0 stands for no page. */
	if (!page || atomic_load_explicit(&entry->page, memory_order_acquire) != page)
		return false;
	since = atomic_load_explicit(&entry->since, memory_order_acquire);
	if (atomic_load_explicit(&entry->page, memory_order_acquire) != page ||
	    atomic_load(&mrf_known_counter) != since)
		return false;
	return true;
}

bool mrf_known_is(const void *addr, size_t len)
{
	uintptr_t page = page_of((uintptr_t)addr), end = (uintptr_t)addr + len;

	if (end < (uintptr_t)addr)
		return false;
	for (; page < end; page += mrf_page_size()) {
		if (!page_is_known(page))
			return false;
	}
	return in_force();
}

bool mrf_known_put(void *to, const void *from, size_t len)
{
	unsigned place = mrf_known_any() ? mrf_known_enter() : MRF_KNOWN_NO_PLACE;
	bool known;

	if (place == MRF_KNOWN_NO_PLACE)
		return false;
	known = mrf_known_is(to, len);
	if (known)
		memcpy(to, from, len);
	mrf_known_leave(place);
	return known;
}

/* --- getting to know -------------------------------------------------------------------- */

static void set_known(uintptr_t page, uint64_t since)
{
	struct entry *entry = &entries[index_of(page)];

	if (atomic_flag_test_and_set_explicit(&setting, memory_order_acquire))
		return;
	atomic_store(&entry->page, 0);
	atomic_store(&entry->since, since);
	atomic_store(&entry->page, page);
	atomic_flag_clear_explicit(&setting, memory_order_release);
}

/* Of an entry of a pagemap: Documentation/admin-guide/mm/pagemap.rst of Linux. */
#define WATCHED (1ull << 57) /* userfaultfd waits for writes to it */
#define SHARED (1ull << 61)  /* of a file, or shared: others can take it away */
#define PRESENT (1ull << 63)

static uint64_t pagemap_entry(uintptr_t page)
{
	int fd = open(MRF_PROC_SELF "/pagemap", O_RDONLY | O_CLOEXEC);
	off_t at = (off_t)(page / mrf_page_size() * sizeof(uint64_t));
	uint64_t entry = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &entry, sizeof(entry), at) != sizeof(entry))
		entry = 0;
	close(fd);
	return entry;
}

/*
 * Is it there, nobody else's, and may it be written? The kernel is asked about this page, although it
 * looks at the 2 MiB around it for that: to read all mappings takes the longer the more there are.
 */
static bool is_plain(uintptr_t page)
{
	return (pagemap_entry(page) & (PRESENT | SHARED | WATCHED)) == PRESENT &&
	       !madvise((void *)page, mrf_page_size(), MADV_POPULATE_WRITE);
}

static __attribute__((noinline)) void find_out(uintptr_t page, uint64_t now)
{
	void (*refresh)(void) = atomic_load(&hooks_refresh);
	int err = errno;

	atomic_store(&any, true);
	if (refresh)
		refresh();
	if (is_plain(page) && in_force() && atomic_load(&mrf_known_counter) == now)
		set_known(page, now);
	errno = err;
}

static void page_used(uintptr_t page, uint64_t now)
{
	struct candidate *candidate = &candidates[index_of(page)];
	unsigned uses = atomic_load_explicit(&candidate->uses, memory_order_relaxed) + 1;

	if (atomic_load_explicit(&candidate->page, memory_order_relaxed) != page ||
	    atomic_load_explicit(&candidate->since, memory_order_relaxed) != now) {
		atomic_store_explicit(&candidate->page, page, memory_order_relaxed);
		atomic_store_explicit(&candidate->since, now, memory_order_relaxed);
		uses = 1;
	}
	atomic_store_explicit(&candidate->uses, uses, memory_order_relaxed);
	if (uses == MRF_KNOWN_USES)
		find_out(page, now);
}

void mrf_known_used(const void *addr, size_t len)
{
	uintptr_t page = page_of((uintptr_t)addr), end = (uintptr_t)addr + len;
	uint64_t now = atomic_load(&mrf_known_counter);

	if (!trusted() || now & MRF_KNOWN_UNDER_WAY)
		return;
	for (; page < end; page += mrf_page_size())
		page_used(page, now);
}

void mrf_known_in_child(void)
{
	unsigned i;

	for (i = 0; i < MRF_KNOWN_PLACES; i++) {
		uint64_t word = atomic_load(&places[i].word);

		if (TAKEN(word) != TAKEN(me()))
			atomic_store(&places[i].word, TIMES(word));
	}
	/* The parent's other threads go on with their changes there, not here. */
	atomic_store(&mrf_known_counter,
		     (atomic_load(&mrf_known_counter) | MRF_KNOWN_UNDER_WAY) + 1);
	atomic_flag_clear(&setting);
}
