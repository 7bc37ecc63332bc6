/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that Sandia OpenSHMEM 1.5.2 makes of libfabric, between two processes. This is a client of
 * the same calls, and not that library, which Debian does not have: it follows a trace of it. As there,
 * what depends on the registration mode is decided by how it was built, which here is an argument. What
 * processes tell one another by PMI goes over a pair of sockets; barriers and locks go over the fabric.
 * Prints "ok NAME" or "not ok NAME: why" for each group of checks. The exit status is 0 if all held.
 *
 * Usage: shmem_calls BUILD [--spoil]
 * BUILD: basic, scalable or rma-event, as in --enable-ofi-mr=BUILD, and any of these behind it:
 *	+endpoint	--enable-mr-endpoint
 *	+av-map		--enable-av-map: address vectors are maps, and not tables
 *	+hard-polling	--enable-hard-polling: memory is polled, and no counter is bound to it
 * --spoil: process 1 changes whatever it checks: each group has to fail
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shmem.h"

#include <sys/mman.h>
#include <sys/wait.h>

#define ROUNDS 10
#define PATIENCE 60 /* seconds, for all */

/* --- results -------------------------------------------------------------------------- */

static bool spoil;
static char why[160]; /* the first thing that did not hold in this group; "" if all did */

static void expect_number(const char *what, uint64_t is, uint64_t due)
{
	if (spoil)
		is++;
	if (is != due && !*why)
		snprintf(why, sizeof(why), "%s is %#llx, not %#llx", what, (unsigned long long)is,
			 (unsigned long long)due);
}

static void expect_bytes(const char *what, unsigned char *is, const unsigned char *due, size_t len)
{
	size_t i;

	if (spoil)
		is[len / 2]++;
	for (i = 0; i < len; i++) {
		if (is[i] == due[i])
			continue;
		if (!*why)
			snprintf(why, sizeof(why), "byte %zu of %s is %#x, not %#x", i, what, is[i],
				 due[i]);
		return;
	}
}

/* Process 0 prints what both found. */
static bool group_ends(const char *name)
{
	char whys[PES][sizeof(why)];
	int bad;

	memcpy(whys[me], why, sizeof(why));
	tell(why, sizeof(why));
	hear(whys[peer], sizeof(why));
	*why = '\0';
	bad = *whys[0] ? 0 : 1;
	if (me == 0 && *whys[bad])
		printf("not ok %s: process %d: %s\n", name, bad, whys[bad]);
	else if (me == 0)
		printf("ok %s\n", name);
	return !*whys[bad];
}

/* --- the groups of checks ------------------------------------------------------------- */

static unsigned char ours[BYTES], model[BYTES];

static void fill(unsigned char *bytes, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = (unsigned char)(i * 7 + i / 256 + seed);
}

/* Pieces of ours go to the same places there, and the bytes between them stay. */
static void pieces_put(void (*how)(void *, const void *, size_t, int), unsigned char *to,
		       size_t room, const size_t *lens, size_t n)
{
	unsigned char *theirs = calloc(1, room);
	size_t i, at = 1;

	fill(ours, room, 1 + (unsigned int)me);
	fill(theirs, room, 1 + (unsigned int)peer);
	memset(model, 0xee, room);
	memset(to, 0xee, room);
	barrier();
	for (i = 0; i < n; at += lens[i++] + 3) {
		how(to + at, ours + at, lens[i], peer);
		memcpy(model + at, theirs + at, lens[i]);
	}
	barrier();
	expect_bytes("memory", to, model, room);
	free(theirs);
}

static void puts_to_heap(void)
{
	const size_t most = info->tx_attr->inject_size;
	const size_t lens[] = { 1, 8, most, most + 1, 4096, 50000 };

	pieces_put(put, heap->bytes, BYTES, lens, COUNT(lens));
}

static void puts_to_data(void)
{
	const size_t lens[] = { 1, 4, 8, 16, 100 };

	pieces_put(put, data, DATA_LEN, lens, COUNT(lens));
}

static void bounced_puts(void)
{
	const size_t lens[] = { 1, 64, 1000, 2048, 2048 };

	pieces_put(put_bounced, heap->bytes, BYTES, lens, COUNT(lens));
}

static void gets_of_bytes(void)
{
	fill(heap->bytes, BYTES, 3 + (unsigned int)me);
	fill(data, DATA_LEN, 5 + (unsigned int)me);
	barrier();
	memset(ours, 0, BYTES);
	get(ours + 1, heap->bytes + 1, 1, peer);
	get(ours + 2, heap->bytes + 2, 1000, peer);
	get(ours + 1002, heap->bytes + 1002, BYTES - 1003, peer);
	fill(model, BYTES, 3 + (unsigned int)peer);
	expect_bytes("the heap", ours + 1, model + 1, BYTES - 2);
	get(ours, data, DATA_LEN, peer);
	fill(model, DATA_LEN, 5 + (unsigned int)peer);
	expect_bytes("the data segment", ours, model, DATA_LEN);
	barrier();
}

static void injected_atomics(void)
{
	static const struct {
		enum fi_op op;
		int32_t before, operand, after;
	} rows[] = {
		{ FI_SUM, 100, 5, 105 },	{ FI_BAND, 0x3c, 0x0f, 0x0c },
		{ FI_BOR, 0x30, 3, 0x33 },	{ FI_BXOR, 0x3c, 0x0f, 0x33 },
		{ FI_ATOMIC_WRITE, 1, -7, -7 },
	};
	int64_t operand;
	double half = 0.5;
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		heap->longs[i] = heap->ints[i] = rows[i].before;
	heap->doubles[0] = 0;
	barrier();
	for (i = 0; i < COUNT(rows); i++) {
		operand = rows[i].operand;
		atomic(&heap->longs[i], &operand, FI_INT64, rows[i].op, peer);
		atomic(&heap->ints[i], &rows[i].operand, FI_INT32, rows[i].op, peer);
	}
	atomic(&heap->doubles[0], &half, FI_DOUBLE, FI_ATOMIC_WRITE, peer);
	barrier();
	for (i = 0; i < COUNT(rows); i++) {
		expect_number("an int64", (uint64_t)heap->longs[i], (uint64_t)rows[i].after);
		expect_number("an int32", (uint64_t)heap->ints[i], (uint64_t)rows[i].after);
	}
	expect_number("twice the double", (uint64_t)(heap->doubles[0] * 2), 1);
}

static void fetching_atomics(void)
{
	int64_t *cell = &heap->longs[0];

	*cell = 40;
	barrier();
	expect_number("what is fetched and added to", (uint64_t)fetch(cell, 2, FI_SUM, peer), 40);
	expect_number("what is read", (uint64_t)fetch(cell, 0, FI_ATOMIC_READ, peer), 42);
	expect_number("what is swapped", (uint64_t)fetch(cell, 0x3c, FI_ATOMIC_WRITE, peer), 42);
	expect_number("what is masked", (uint64_t)fetch(cell, 0x0f, FI_BAND, peer), 0x3c);
	barrier();
	expect_number("what is left", (uint64_t)*cell, 0x0c);
}

static void comparing_atomics(void)
{
	int64_t *cell = &heap->longs[0];

	*cell = 0x1234;
	barrier();
	expect_number("what is compared", (uint64_t)compare(cell, 1, 2, FI_CSWAP, peer), 0x1234);
	expect_number("what is the same", (uint64_t)compare(cell, 0x1234, 0x5678, FI_CSWAP, peer),
		      0x1234);
	expect_number("what has a mask", (uint64_t)compare(cell, 0xff, 0xabcd, FI_MSWAP, peer),
		      0x5678);
	barrier();
	expect_number("what is left", (uint64_t)*cell, 0x56cd);
}

/* Both processes, of which one is its own peer then, add to one number. */
static void one_number(void)
{
	uint64_t sum = 0, all[PES];
	int i;

	heap->longs[1] = 0;
	barrier();
	for (i = 0; i < ROUNDS; i++)
		sum += (uint64_t)fetch(&heap->longs[1], 1, FI_SUM, 0);
	put(&heap->taken[me], &sum, sizeof(sum), 0);
	barrier();
	get(all, heap->taken, sizeof(all), 0);
	expect_number("the sum of all that was fetched", all[0] + all[1],
		      PES * ROUNDS * (PES * ROUNDS - 1) / 2);
	expect_number("the number", (uint64_t)fetch(&heap->longs[1], 0, FI_ATOMIC_READ, 0),
		      PES * ROUNDS);
	barrier();
}

static void locks(void)
{
	int64_t *lock = (int64_t *)&heap->lock;
	uint64_t value;
	int i;

	barrier();
	for (i = 0; i < ROUNDS; i++) {
		while (compare(lock, 0, me + 1, FI_CSWAP, 0) != 0)
			sched_yield();
		get(&value, &heap->guarded, sizeof(value), 0);
		value++;
		put(&heap->guarded, &value, sizeof(value), 0);
		quiet();
		expect_number("the holder", (uint64_t)fetch(lock, 0, FI_ATOMIC_WRITE, 0),
			      (uint64_t)me + 1);
	}
	barrier();
	get(&value, &heap->guarded, sizeof(value), 0);
	expect_number("the number under the lock", value, PES * ROUNDS);
}

/* The flag comes behind the bytes. */
static void flags_behind_bytes(void)
{
	uint64_t round;

	for (round = 1; round <= 2 * ROUNDS; round++) {
		fill(ours, 200, (unsigned int)round);
		if (round % PES == (uint64_t)me) {
			put(heap->bytes, ours, 200, peer);
			quiet();
			put(&heap->flag, &round, sizeof(round), peer);
			quiet();
		} else {
			wait_until(&heap->flag, round);
			expect_bytes("what the flag is for", heap->bytes, ours, 200);
		}
	}
}

/* As in a reduction: in pieces of as many elements as go together. */
static void vector_sums(void)
{
	const double add[CELLS] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct place at = place_of(heap->doubles, peer);
	size_t i, count = 0;

	for (i = 0; i < CELLS; i++)
		heap->doubles[i] = 10;
	barrier();
	must("fi_atomicvalid", fi_atomicvalid(ep, FI_DOUBLE, FI_SUM, &count));
	count = count < CELLS ? count : CELLS;
	for (i = 0; i < CELLS; i += count, puts_due++) {
		while (again("fi_atomic",
			     fi_atomic(ep, add + i, count < CELLS - i ? count : CELLS - i, NULL,
				       addr_of(peer), at.addr + i * sizeof(*add), at.key, FI_DOUBLE,
				       FI_SUM, NULL)))
			;
	}
	barrier();
	for (i = 0; i < CELLS; i++)
		expect_number("a sum", (uint64_t)heap->doubles[i], 11 + i);
}

/* Each access is counted once by the regions that it changes. */
static void counted_regions(void)
{
	const uint64_t one = 1;
	uint64_t before;
	int i;

	barrier();
	/* What the barrier added may be counted only after it was seen: not without quiet(). */
	quiet();
	tell(&one, sizeof(one));
	hear(&before, sizeof(before));
	before = fi_cntr_read(target_cntr);
	tell(&one, sizeof(one));
	hear(&heap->taken[me], sizeof(one));
	for (i = 0; i < ROUNDS; i++) {
		put(data + i, &one, 1, peer);
		put(heap->bytes, ours, 4096, peer);
		atomic(&heap->longs[2], &one, FI_INT64, FI_SUM, peer);
	}
	quiet();
	tell(&one, sizeof(one));
	hear(&heap->taken[me], sizeof(one));
	expect_number("how many were counted", fi_cntr_read(target_cntr) - before, 3 * ROUNDS);
	expect_number("how many failed", fi_cntr_readerr(target_cntr), 0);
}

/* --- all of it ------------------------------------------------------------------------ */

/* As when the library starts: that something is missing is only a warning. */
static void query_atomics(void)
{
	static const enum fi_datatype types[] = {
		FI_INT16, FI_INT32,  FI_INT64,	     FI_UINT32,	       FI_UINT64,
		FI_FLOAT, FI_DOUBLE, FI_LONG_DOUBLE, FI_FLOAT_COMPLEX, FI_DOUBLE_COMPLEX
	};
	static const enum fi_op ops[] = { FI_SUM, FI_PROD, FI_MIN,  FI_MAX,
					  FI_BOR, FI_BAND, FI_BXOR, FI_ATOMIC_WRITE };
	size_t i, j, count, missing[3] = { 0 };

	for (i = 0; i < COUNT(types); i++) {
		for (j = 0; j < COUNT(ops); j++) {
			missing[0] += fi_atomicvalid(ep, types[i], ops[j], &count) != 0;
			missing[1] += fi_fetch_atomicvalid(ep, types[i], ops[j], &count) != 0;
		}
		missing[1] += fi_fetch_atomicvalid(ep, types[i], FI_ATOMIC_READ, &count) != 0;
		missing[2] += fi_compare_atomicvalid(ep, types[i], FI_CSWAP, &count) != 0;
		missing[2] += fi_compare_atomicvalid(ep, types[i], FI_MSWAP, &count) != 0;
	}
	if (me == 0)
		printf("# warning: %zu atomic, %zu fetching and %zu comparing operations are missing\n",
		       missing[0], missing[1], missing[2]);
}

static bool groups_run(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} groups[] = {
		{ "puts_to_the_heap", puts_to_heap },
		{ "puts_to_the_data_segment", puts_to_data },
		{ "puts_from_a_bounce_buffer", bounced_puts },
		{ "gets", gets_of_bytes },
		{ "injected_atomics", injected_atomics },
		{ "fetching_atomics", fetching_atomics },
		{ "comparing_atomics", comparing_atomics },
		{ "both_add_to_one_number", one_number },
		{ "locks", locks },
		{ "flags_behind_bytes", flags_behind_bytes },
		{ "sums_of_vectors", vector_sums },
		{ "regions_count_exactly", counted_regions },
	};
	bool held = true;
	size_t i;

	for (i = 0; i < COUNT(groups); i++) {
		if (groups[i].run == counted_regions && build.hard_polling)
			continue;
		groups[i].run();
		held &= group_ends(groups[i].name);
	}
	return held;
}

static bool build_read(char *words)
{
	char *word, *rest;

	word = strtok_r(words, "+", &rest);
	build.rma_event = word && !strcmp(word, "rma-event");
	build.scalable = build.rma_event || (word && !strcmp(word, "scalable"));
	if (!word || (!build.scalable && strcmp(word, "basic") != 0))
		return false;
	while ((word = strtok_r(NULL, "+", &rest))) {
		if (!strcmp(word, "endpoint"))
			build.endpoint = true;
		else if (!strcmp(word, "av-map"))
			build.av_map = true;
		else if (!strcmp(word, "hard-polling"))
			build.hard_polling = true;
		else
			return false;
	}
	return true;
}

static bool process_run(int number, int socket)
{
	bool held;

	me = number;
	peer = 1 - number;
	out_of_band = socket;
	spoil = spoil && me == 1;
	alarm(PATIENCE);
	open_all();
	query_atomics();
	held = groups_run();
	close_all();
	return held;
}

int main(int argc, char **argv)
{
	int sockets[PES], status;
	pid_t child;
	bool held;

	spoil = argc == 3 && !strcmp(argv[2], "--spoil");
	if (argc != 2 + spoil || !build_read(argv[1])) {
		fprintf(stderr, "usage: shmem_calls BUILD [--spoil]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	heap = mmap(NULL, sizeof(*heap), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (heap == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 2;
	child = fork();
	if (child < 0)
		return 2;
	close(sockets[child ? 1 : 0]);
	if (!child)
		return process_run(1, sockets[1]) ? 0 : 1;
	held = process_run(0, sockets[0]);
	return waitpid(child, &status, 0) == child && status == 0 && held ? 0 : 1;
}
