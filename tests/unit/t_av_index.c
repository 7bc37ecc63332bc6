/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of an address vector by address, which has to say what a walk over a plain list says,
 * whatever was inserted, removed and out of memory before.
 */
#include <arpa/inet.h>
#include <stdatomic.h>
#include "base/random.h"
#include "every.h"
#include "obj/av_int.h"
#include "fail_alloc.h"
#include "obj_fixture.h"

/* --- hashes and random numbers as a test wants them ------------------------------------------ */

uint64_t __real_mrf_addr_hash(const union mrf_addr *addr, const uint64_t seed[2]);
uint64_t __wrap_mrf_addr_hash(const union mrf_addr *addr, const uint64_t seed[2]);
bool __real_mrf_random(void *buf, size_t len);
bool __wrap_mrf_random(void *buf, size_t len);

static bool alike;	 /* many addresses have one hash */
static bool dull;	 /* there are no random numbers */
static atomic_uint made; /* indices, or attempts */

uint64_t __wrap_mrf_addr_hash(const union mrf_addr *addr, const uint64_t seed[2])
{
	uint64_t hash = __real_mrf_addr_hash(addr, seed);

	return alike ? hash % 3 : hash;
}

bool __wrap_mrf_random(void *buf, size_t len)
{
	atomic_fetch_add(&made, 1);
	return !dull && __real_mrf_random(buf, len);
}

/* --- a vector of either kind and family -------------------------------------------------------- */

static struct parent parent;
static struct fid_av *av;
static bool six;

static void setup(void)
{
	alike = dull = six = false;
	atomic_store(&made, 0);
}

static void open_av(enum fi_av_type type)
{
	struct fi_av_attr attr = { .type = type };

	parent_init(&parent, 0);
	ck_quiet(0, mrf_av_open(&parent.obj, six ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN, &attr, &av,
				&parent));
}

static void close_av(void)
{
	ck_quiet(0, fi_close(&av->fid));
	parent_fini(&parent);
}

static struct mrf_av *inner(void)
{
	return mrf_av_from_fid(&av->fid);
}

/* Two hosts at each port, and several ports at each host. */
static union mrf_addr nth(uint32_t n)
{
	union mrf_addr addr = { 0 };

	if (six) {
		addr.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						  .sin6_port = htons((uint16_t)(1 + n / 2)) };
		inet_pton(AF_INET6, n & 1 ? "fd00::1" : "fd00:1::1", &addr.in6.sin6_addr);
	} else {
		addr.in = (struct sockaddr_in){ .sin_family = AF_INET,
						.sin_port = htons((uint16_t)(1 + n / 2)),
						.sin_addr.s_addr = htonl(0x0a000001 + (n & 1)) };
	}
	return addr;
}

/* Also where an assertion would find no memory. */
static fi_addr_t add(uint32_t n)
{
	union mrf_addr addr = nth(n);
	fi_addr_t name = FI_ADDR_NOTAVAIL;

	fi_av_insert(av, &addr, 1, &name, 0, NULL);
	return name;
}

static void drop(fi_addr_t name)
{
	ck_assert_int_eq(fi_av_remove(av, &name, 1, 0), 0);
}

static fi_addr_t find(uint32_t n)
{
	union mrf_addr addr = nth(n);

	return mrf_av_find(inner(), &addr);
}

/* --- what is found ------------------------------------------------------------------------------ */

START_TEST(index_finds_what_was_inserted_before_and_after_it_was_made)
{
	six = _i;
	open_av(FI_AV_MAP);
	ck_assert_uint_eq(find(1), FI_ADDR_NOTAVAIL);
	close_av();
	open_av(FI_AV_MAP);
	ck_assert_uint_eq(add(0), 0);
	ck_assert_uint_eq(add(1), 1);
	ck_assert_uint_eq(add(2), 2);
	ck_assert_uint_eq(find(0), 0);
	ck_assert_uint_eq(find(1), 1);
	ck_assert_uint_eq(find(2), 2);
	/* The host and the port are there, but not together. */
	ck_assert_uint_eq(find(3), FI_ADDR_NOTAVAIL);
	ck_assert_uint_eq(add(3), 3);
	ck_assert_uint_eq(find(3), 3);
	ck_assert_uint_eq(atomic_load(&made), 2);
	close_av();
}
END_TEST

START_TEST(index_compares_host_and_port_and_nothing_else)
{
	union mrf_addr addr;

	six = true;
	open_av(FI_AV_TABLE);
	add(0);
	addr = nth(0);
	addr.in6.sin6_scope_id = 7;
	addr.in6.sin6_flowinfo = 9;
	ck_assert_uint_eq(mrf_av_find(inner(), &addr), 0);
	/* Of the other family, and of none. */
	six = false;
	ck_assert_uint_eq(find(0), FI_ADDR_NOTAVAIL);
	addr.sa.sa_family = AF_UNSPEC;
	ck_assert_uint_eq(mrf_av_find(inner(), &addr), FI_ADDR_NOTAVAIL);
	close_av();
}
END_TEST

START_TEST(index_forgets_what_was_removed)
{
	open_av(FI_AV_MAP);
	add(0);
	add(1);
	ck_assert_uint_eq(find(0), 0);
	drop(0);
	ck_assert_uint_eq(find(0), FI_ADDR_NOTAVAIL);
	ck_assert_uint_eq(find(1), 1);
	/* The index 0 is another peer's now. */
	ck_assert_uint_eq(add(5), 0);
	ck_assert_uint_eq(find(5), 0);
	ck_assert_uint_eq(find(0), FI_ADDR_NOTAVAIL);
	ck_assert_uint_eq(add(0), 2);
	ck_assert_uint_eq(find(0), 2);
	close_av();
}
END_TEST

/* early: the index is there all the time; else it is made when all is done. */
static void ck_twins(bool early)
{
	open_av(FI_AV_TABLE);
	if (early)
		find(0);
	add(0);
	add(1);
	add(0);
	add(0);
	drop(0);
	/* A table hands out its lowest free index: lower, but later. */
	ck_assert_uint_eq(add(0), 0);
	ck_assert_uint_eq(find(0), 2);
	drop(3);
	ck_assert_uint_eq(find(0), 2);
	drop(2);
	ck_assert_uint_eq(find(0), 0);
	drop(0);
	ck_assert_uint_eq(find(0), FI_ADDR_NOTAVAIL);
	ck_assert_uint_eq(find(1), 1);
	close_av();
}

START_TEST(index_finds_the_twin_that_was_inserted_first)
{
	ck_twins(true);
	ck_twins(false);
	dull = true;
	ck_twins(false);
}
END_TEST

START_TEST(index_keeps_addresses_of_one_hash_apart)
{
	uint32_t n;

	alike = true;
	open_av(FI_AV_MAP);
	for (n = 0; n < 100; n++) {
		add(n);
		ck_assert_uint_eq(find(n), n);
	}
	for (n = 0; n < 100; n += 2)
		drop(n);
	for (n = 0; n < 100; n++)
		ck_assert_uint_eq(find(n), n % 2 ? n : FI_ADDR_NOTAVAIL);
	ck_assert_uint_eq(find(100), FI_ADDR_NOTAVAIL);
	close_av();
}
END_TEST

/* --- changes -------------------------------------------------------------------------------------- */

START_TEST(index_counts_insertions_and_removals_alone)
{
	union mrf_addr bad = nth(0);
	fi_addr_t name = 7;
	uint64_t before;

	open_av(FI_AV_TABLE);
	before = mrf_av_changes(inner());
	find(0);
	ck_assert_uint_eq(mrf_av_changes(inner()), before);
	add(0);
	ck_assert_uint_gt(mrf_av_changes(inner()), before);
	before = mrf_av_changes(inner());
	bad.in.sin_port = 0;
	ck_refused(0, 2206, fi_av_insert(av, &bad, 1, &name, 0, NULL));
	name = 7;
	ck_refused(FI_EINVAL, 2216, fi_av_remove(av, &name, 1, 0));
	find(0);
	ck_assert_uint_eq(mrf_av_changes(inner()), before);
	drop(0);
	ck_assert_uint_gt(mrf_av_changes(inner()), before);
	close_av();
}
END_TEST

enum { MANY = 3000 };

static void *insert_many(void *arg)
{
	(void)arg;
	for (uint32_t n = 0; n < MANY; n++) {
		if (add(n) != n)
			return (void *)1;
	}
	return NULL;
}

/* As whoever has a message of a sender that is not known yet. */
START_TEST(index_finds_whoever_is_inserted_by_another_thread)
{
	uint64_t seen = 0, now;
	pthread_t thread;
	uint32_t n = 0;
	void *failed;

	open_av(FI_AV_TABLE);
	ck_assert_int_eq(pthread_create(&thread, NULL, insert_many, NULL), 0);
	while (n < MANY) {
		now = mrf_av_changes(inner());
		if (now == seen)
			continue;
		seen = now;
		/* Whatever has been counted is there. */
		for (; n < now; n++)
			ck_assert_uint_eq(find(n), n);
	}
	pthread_join(thread, &failed);
	ck_assert_ptr_null(failed);
	close_av();
}
END_TEST

/* --- no memory -------------------------------------------------------------------------------------- */

START_TEST(index_is_not_made_unless_somebody_asks)
{
	uint32_t n;
	fi_addr_t all[64];

	open_av(FI_AV_MAP);
	/* One allocation is for the first 64 entries. */
	for (n = 0; n < 64; n++) {
		all[n] = failing_after(n ? 0 : 1, add(n));
		ck_assert_uint_eq(all[n], n);
	}
	for (n = 0; n < 64; n++)
		drop(all[n]);
	ck_assert_uint_eq(atomic_load(&made), 0);
	close_av();
}
END_TEST

/* Each of its allocations may fail, also when it is made for entries of several chunks. */
START_TEST(index_without_memory_finds_all_the_same)
{
	const uint32_t count = 200;
	unsigned before;
	int left;

	open_av(FI_AV_MAP);
	for (uint32_t n = 0; n < count; n++)
		add(n % 190);
	before = atomic_load(&made);
	for (left = 0; left < 12; left++) {
		for (uint32_t n = 0; n < count; n += 7)
			ck_assert_uint_eq(failing_after(left, find(n)),
					  n < 190 ? n : FI_ADDR_NOTAVAIL);
		if (left == 3)
			ck_assert_uint_gt(atomic_load(&made), before);
	}
	/* The last time there was enough, and it was made once. */
	before = atomic_load(&made);
	find(0);
	ck_assert_uint_eq(atomic_load(&made), before);
	close_av();
}
END_TEST

/* An index that cannot grow is no reason to refuse an address. */
START_TEST(index_that_cannot_grow_is_made_again)
{
	unsigned before;

	open_av(FI_AV_MAP);
	add(0);
	find(0);
	before = atomic_load(&made);
	for (uint32_t n = 1; n < 64; n++)
		ck_assert_uint_eq(failing_after(0, add(n)), n);
	ck_assert_uint_eq(find(40), 40);
	ck_assert_uint_gt(atomic_load(&made), before);
	close_av();
}
END_TEST

/* --- against a plain list ------------------------------------------------------------------------- */

enum { WORLD = 48, ROOM = 400 };

static struct {
	fi_addr_t name;
	uint32_t n;
} list[ROOM]; /* in the order of insertion */
static unsigned listed;

/* xorshift: the same steps everywhere. */
static uint32_t chance(uint32_t below)
{
	static uint32_t x = 2463534242;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x % below;
}

static fi_addr_t listed_as(uint32_t n)
{
	for (unsigned i = 0; i < listed; i++) {
		if (list[i].n == n)
			return list[i].name;
	}
	return FI_ADDR_NOTAVAIL;
}

static void step_insert(void)
{
	uint32_t n = chance(WORLD);

	if (listed == ROOM)
		return;
	list[listed].n = n;
	list[listed].name = add(n);
	ck_assert_uint_ne(list[listed].name, FI_ADDR_NOTAVAIL);
	listed++;
}

static void step_remove(void)
{
	unsigned at;

	if (!listed)
		return;
	at = chance(listed);
	drop(list[at].name);
	listed--;
	memmove(&list[at], &list[at + 1], (listed - at) * sizeof(list[0]));
}

static void step_find(void)
{
	uint32_t n = chance(WORLD + 4);

	ck_assert_uint_eq(find(n), listed_as(n));
}

/* Without memory for it, the index goes, and is made again from the entries in any order. */
static void step_find_in_need(void)
{
	uint32_t n = chance(WORLD);

	mrf_lock_take(&inner()->lock);
	mrf_av_index_drop(inner());
	mrf_lock_release(&inner()->lock);
	ck_assert_uint_eq(failing_after((int)chance(6), find(n)), listed_as(n));
}

static void walk(unsigned steps)
{
	/* It fills up, and is emptied, in turns. */
	for (unsigned i = 0; i < steps; i++) {
		uint32_t kind = chance(100), insert = i / 700 % 2 ? 20 : 40;

		if (kind < insert)
			step_insert();
		else if (kind < 60)
			step_remove();
		else if (kind < 98)
			step_find();
		else
			step_find_in_need();
	}
	for (uint32_t n = 0; n < WORLD; n++)
		ck_assert_uint_eq(find(n), listed_as(n));
}

START_TEST(index_says_what_a_plain_list_says)
{
	six = _i & 1;
	alike = _i & 4;
	listed = 0;
	open_av(_i & 2 ? FI_AV_TABLE : FI_AV_MAP);
	walk(40000 / every());
	close_av();
}
END_TEST

static TCase *tcase_found(void)
{
	TCase *tc = tcase_create("found");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, index_finds_what_was_inserted_before_and_after_it_was_made, 0, 2);
	tcase_add_test(tc, index_compares_host_and_port_and_nothing_else);
	tcase_add_test(tc, index_forgets_what_was_removed);
	tcase_add_test(tc, index_finds_the_twin_that_was_inserted_first);
	tcase_add_test(tc, index_keeps_addresses_of_one_hash_apart);
	tcase_add_test(tc, index_counts_insertions_and_removals_alone);
	tcase_add_test(tc, index_finds_whoever_is_inserted_by_another_thread);
	return tc;
}

static TCase *tcase_need(void)
{
	TCase *tc = tcase_create("need");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, index_is_not_made_unless_somebody_asks);
	tcase_add_test(tc, index_without_memory_finds_all_the_same);
	tcase_add_test(tc, index_that_cannot_grow_is_made_again);
	tcase_add_loop_test(tc, index_says_what_a_plain_list_says, 0, 8);
	return tc;
}

UNIT_MAIN("av_index", tcase_found, tcase_need)
