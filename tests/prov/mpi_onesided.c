/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided MPI between two ranks. A case fills both windows, has each rank change the other's,
 * and compares every element with a model, so that the neighbours of what was written count too.
 * Prints "ok NAME" or "not ok NAME: why" for each group of checks, from rank 0, and at the end how
 * many packets all that takes at least. The exit status is 0 if all held on both ranks.
 *
 * Usage: mpi_onesided [--every-operation] [--spoil]
 * --every-operation: also those that Open MPI 4.1 can do only without network atomics
 *	(--mca osc_rdma_acc_use_amo 0; with them it ends the program)
 * --spoil: rank 1 changes one element behind MPI's back wherever one is checked, and unmaps memory
 *	behind that of whoever watches: each group has to fail
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <malloc.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOTS 16 /* elements of a window */
#define FIRST 5	 /* the first one that is changed */
#define COUNT 6	 /* how many are */

static int me, peer;
static bool spoil;
static bool all_held = true;
static long packets; /* that this rank's calls take at least */

/* --- results -------------------------------------------------------------------------- */

static char why[160]; /* the first thing that did not hold in this group; "" if all did */

__attribute__((format(printf, 1, 2))) static void differs(const char *format, ...)
{
	va_list ap;

	if (*why)
		return;
	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
}

/* Ends a group of checks: rank 0 prints what both ranks found. */
__attribute__((format(printf, 1, 2))) static void group_ends(const char *format, ...)
{
	char whys[2][sizeof(why)], name[128];
	va_list ap;
	int bad;

	MPI_Allgather(why, sizeof(why), MPI_CHAR, whys, sizeof(why), MPI_CHAR, MPI_COMM_WORLD);
	*why = '\0';
	bad = *whys[0] ? 0 : 1;
	if (*whys[bad])
		all_held = false;
	va_start(ap, format);
	vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);
	if (me != 0)
		return;
	if (*whys[bad])
		printf("not ok %s: rank %d: %s\n", name, bad, whys[bad]);
	else
		printf("ok %s\n", name);
	fflush(stdout);
}

/* --- types ---------------------------------------------------------------------------- */

/* Values of all types are whole numbers that an int64_t holds exactly. */
struct kind {
	const char *name;
	MPI_Datatype type;
	size_t size;
	int64_t scale; /* so that values fill the type */
};

#define INT64 (&kinds[0])
#define INT32 (&kinds[1])
#define DOUBLE (&kinds[2])

static struct kind kinds[3];

/* MPI's types need not be constants. */
static void name_kinds(void)
{
	*INT64 = (struct kind){ "int64", MPI_INT64_T, sizeof(int64_t), 0x100000001 };
	*INT32 = (struct kind){ "int32", MPI_INT32_T, sizeof(int32_t), 0x1001 };
	*DOUBLE = (struct kind){ "double", MPI_DOUBLE, sizeof(double), 0x100001 };
}

static void set(const struct kind *kind, void *array, int i, int64_t value)
{
	if (kind == INT64)
		((int64_t *)array)[i] = value;
	else if (kind == INT32)
		((int32_t *)array)[i] = (int32_t)value;
	else
		((double *)array)[i] = (double)value;
}

static int64_t get(const struct kind *kind, const void *array, int i)
{
	if (kind == INT64)
		return ((const int64_t *)array)[i];
	if (kind == INT32)
		return ((const int32_t *)array)[i];
	return (int64_t)((const double *)array)[i];
}

/* --- windows -------------------------------------------------------------------------- */

struct window {
	const struct kind *kind;
	MPI_Win win;
	void *slots;
	void *ours; /* NULL if MPI allocated the memory */
};

static struct window window_open(const struct kind *kind, bool allocated_by_mpi)
{
	struct window w = { .kind = kind };
	MPI_Aint size = (MPI_Aint)(SLOTS * kind->size);
	int unit = (int)kind->size;

	if (allocated_by_mpi) {
		MPI_Win_allocate(size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &w.slots, &w.win);
		return w;
	}
	/* Not at the beginning of a page. */
	w.ours = malloc((size_t)size + 256);
	if (!w.ours)
		MPI_Abort(MPI_COMM_WORLD, 2);
	w.slots = (char *)w.ours + 192;
	MPI_Win_create(w.slots, size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &w.win);
	return w;
}

static void window_close(struct window *w)
{
	MPI_Win_free(&w->win);
	free(w->ours);
}

static int64_t ground(const struct kind *kind, int rank, int i)
{
	return ((rank + 1) * 1000 + i) * kind->scale;
}

static void window_fill(const struct window *w)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, w->win);
	for (int i = 0; i < SLOTS; i++)
		set(w->kind, w->slots, i, ground(w->kind, me, i));
	MPI_Win_unlock(me, w->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* --- epochs --------------------------------------------------------------------------- */

enum sync { FENCE, START, LOCK, LOCK_ALL, SYNCS };

static const char *const sync_names[SYNCS] = { "fence", "post_start", "lock", "lock_all" };

static MPI_Group peer_group(void)
{
	MPI_Group world, group;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &peer, &group);
	MPI_Group_free(&world);
	return group;
}

static void epoch_begin(enum sync sync, int target, MPI_Win win)
{
	MPI_Group group;

	switch (sync) {
	case FENCE:
		MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
		return;
	case START:
		group = peer_group();
		MPI_Win_post(group, 0, win);
		MPI_Win_start(group, 0, win);
		MPI_Group_free(&group);
		return;
	case LOCK:
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
		return;
	default:
		MPI_Win_lock_all(0, win);
	}
}

static void epoch_end(enum sync sync, int target, MPI_Win win)
{
	switch (sync) {
	case FENCE:
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
		return;
	case START:
		MPI_Win_complete(win);
		MPI_Win_wait(win);
		return;
	case LOCK:
		MPI_Win_unlock(target, win);
		return;
	default:
		MPI_Win_flush(target, win);
		MPI_Win_unlock_all(win);
	}
}

/* --- operations ----------------------------------------------------------------------- */

enum op { REPLACE, SUM, MIN, MAX, BXOR, OPS };

static const char *const op_names[OPS] = { "replace", "sum", "min", "max", "bxor" };

static MPI_Op mpi_op(enum op op)
{
	switch (op) {
	case REPLACE:
		return MPI_REPLACE;
	case SUM:
		return MPI_SUM;
	case MIN:
		return MPI_MIN;
	case MAX:
		return MPI_MAX;
	default:
		return MPI_BXOR;
	}
}

static int64_t combined(enum op op, int64_t old, int64_t operand)
{
	switch (op) {
	case REPLACE:
		return operand;
	case SUM:
		return old + operand;
	case MIN:
		return old < operand ? old : operand;
	case MAX:
		return old > operand ? old : operand;
	default:
		return old ^ operand;
	}
}

enum call { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, CALLS };

static const char *const call_names[CALLS] = {
	"put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap",
};

static bool changes(enum call call)
{
	return call != GET;
}

static bool returns(enum call call)
{
	return call != PUT && call != ACCUMULATE;
}

/* Both below and above what is there. */
static int64_t operand(const struct kind *kind, int rank, int i)
{
	return (i % 2 ? -1 : 3) * (rank * 100 + i + 907) * kind->scale;
}

/* Every other one finds what it compares with. */
static int64_t comparand(const struct kind *kind, int rank, int i)
{
	return ground(kind, rank, i) + i % 2;
}

/* The buffers of one call; results have a neighbour at each end. */
struct buffers {
	int64_t operands[COUNT];
	int64_t comparands[COUNT];
	int64_t results[COUNT + 2];
};

#define UNTOUCHED 77

static void buffers_fill(struct buffers *b, const struct kind *kind, int target)
{
	for (int i = 0; i < COUNT; i++) {
		set(kind, b->operands, i, operand(kind, me, FIRST + i));
		set(kind, b->comparands, i, comparand(kind, target, FIRST + i));
	}
	for (int i = 0; i < COUNT + 2; i++)
		set(kind, b->results, i, UNTOUCHED);
}

static void *at(void *array, const struct kind *kind, int i)
{
	return (char *)array + (size_t)i * kind->size;
}

/* Calls that take one element only are made for each. */
static void call_each(const struct window *w, enum call call, enum op op, int target,
		      struct buffers *b)
{
	const struct kind *k = w->kind;

	for (int i = 0; i < COUNT; i++) {
		void *from = at(b->operands, k, i), *result = at(b->results, k, 1 + i);

		packets++;
		if (call == FETCH_AND_OP)
			MPI_Fetch_and_op(from, result, k->type, target, FIRST + i, mpi_op(op),
					 w->win);
		else
			MPI_Compare_and_swap(from, at(b->comparands, k, i), result, k->type, target,
					     FIRST + i, w->win);
	}
}

static void call_once(const struct window *w, enum call call, enum op op, int target,
		      struct buffers *b)
{
	MPI_Datatype type = w->kind->type;
	void *results = at(b->results, w->kind, 1);

	packets++;
	switch (call) {
	case PUT:
		MPI_Put(b->operands, COUNT, type, target, FIRST, COUNT, type, w->win);
		return;
	case GET:
		MPI_Get(results, COUNT, type, target, FIRST, COUNT, type, w->win);
		return;
	case ACCUMULATE:
		MPI_Accumulate(b->operands, COUNT, type, target, FIRST, COUNT, type, mpi_op(op),
			       w->win);
		return;
	case GET_ACCUMULATE:
		MPI_Get_accumulate(b->operands, COUNT, type, results, COUNT, type, target, FIRST,
				   COUNT, type, mpi_op(op), w->win);
		return;
	default:
		call_each(w, call, op, target, b);
	}
}

/* What the element i of a rank's window holds after the call of the rank that changed it. */
static int64_t expected(const struct kind *kind, enum call call, enum op op, int rank, int by,
			int i)
{
	int64_t old = ground(kind, rank, i), by_value = operand(kind, by, i);

	if (i < FIRST || i >= FIRST + COUNT || !changes(call))
		return old;
	if (call == PUT)
		return by_value;
	if (call == COMPARE_AND_SWAP)
		return comparand(kind, rank, i) == old ? by_value : old;
	return combined(op, old, by_value);
}

static void window_check(const struct window *w, enum call call, enum op op, int by)
{
	int64_t found, due;

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, w->win);
	if (spoil && me == 1)
		set(w->kind, w->slots, SLOTS - 1, 1);
	for (int i = 0; i < SLOTS; i++) {
		found = get(w->kind, w->slots, i);
		due = expected(w->kind, call, op, me, by, i);
		if (found != due)
			differs("element %d is %jd, not %jd", i, (intmax_t)found, (intmax_t)due);
	}
	MPI_Win_unlock(me, w->win);
}

static void results_check(const struct kind *kind, enum call call, int target, const void *results)
{
	for (int i = 0; i < COUNT + 2; i++) {
		bool returned = returns(call) && i >= 1 && i <= COUNT;
		int64_t due = returned ? ground(kind, target, FIRST + i - 1) : UNTOUCHED;
		int64_t found = get(kind, results, i);

		if (found != due)
			differs("result %d is %jd, not %jd", i - 1, (intmax_t)found, (intmax_t)due);
	}
}

/* Each rank calls for the window that is so far away: 1: the other's, 0: its own. */
static void case_run(const struct window *w, enum sync sync, enum call call, enum op op, int away)
{
	int target = away ? peer : me;
	struct buffers b;

	window_fill(w);
	buffers_fill(&b, w->kind, target);
	epoch_begin(sync, target, w->win);
	call_once(w, call, op, target, &b);
	epoch_end(sync, target, w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	results_check(w->kind, call, target, b.results);
	window_check(w, call, op, target);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* --- groups --------------------------------------------------------------------------- */

static void puts_and_gets(const struct window *w)
{
	for (enum sync sync = 0; sync < SYNCS; sync++)
		for (enum call call = PUT; call <= GET; call++) {
			case_run(w, sync, call, REPLACE, 1);
			group_ends("%s_of_%s_under_%s_moves_just_that", call_names[call],
				   w->kind->name, sync_names[sync]);
		}
}

/* Under one way of synchronization each; all of them come up. */
static void accumulates(const struct window *w, enum op op)
{
	for (enum call call = ACCUMULATE; call <= FETCH_AND_OP; call++) {
		case_run(w, (enum sync)((op + call) % SYNCS), call, op, 1);
		case_run(w, LOCK_ALL, call, op, 0);
		group_ends("%s_%s_of_%s_is_exact", call_names[call], op_names[op], w->kind->name);
	}
}

static void swaps(const struct window *w)
{
	for (enum sync sync = 0; sync < SYNCS; sync++)
		case_run(w, sync, COMPARE_AND_SWAP, REPLACE, 1);
	case_run(w, LOCK, COMPARE_AND_SWAP, REPLACE, 0);
	group_ends("compare_and_swap_of_%s_swaps_only_if_equal", w->kind->name);
}

static void operations(const struct kind *kind, bool allocated_by_mpi, bool every)
{
	struct window w = window_open(kind, allocated_by_mpi);

	puts_and_gets(&w);
	for (enum op op = 0; op <= SUM; op++)
		accumulates(&w, op);
	for (enum op op = MIN; op < OPS && every; op++)
		if (op != BXOR || kind != DOUBLE)
			accumulates(&w, op);
	if (kind != DOUBLE)
		swaps(&w);
	window_close(&w);
}

/* Both ranks count in one element of rank 0 at a time: each number comes up once. */
static void count_together(const struct kind *kind)
{
	enum { EACH = 50 };
	struct window w = window_open(kind, true);
	char mine[2 * EACH] = { 0 }, all[2 * EACH];
	int64_t one, old;

	set(kind, &one, 0, 1);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, w.win);
	memset(w.slots, 0, SLOTS * kind->size);
	MPI_Win_unlock(me, w.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, w.win);
	for (int i = 0; i < EACH; i++) {
		packets++;
		MPI_Fetch_and_op(&one, &old, kind->type, 0, FIRST, MPI_SUM, w.win);
		MPI_Win_flush(0, w.win);
		old = get(kind, &old, 0);
		if (old < 0 || old >= 2 * EACH)
			differs("%jd was counted", (intmax_t)old);
		else
			mine[old]++;
	}
	MPI_Win_unlock_all(w.win);
	if (spoil && me == 1)
		mine[0]++;
	MPI_Allreduce(mine, all, sizeof(all), MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < 2 * EACH; i++)
		if (all[i] != 1)
			differs("%d was counted %d times", i, all[i]);
	window_close(&w);
	group_ends("sums_of_%s_from_both_ranks_lose_nothing", kind->name);
}

/* --- bytes ---------------------------------------------------------------------------- */

static unsigned char byte_of(int seed, size_t i)
{
	return (unsigned char)(i * 31 + (i >> 8) * 3 + (i >> 16) * 7 + (size_t)seed * 101 + 1);
}

static void bytes_fill(unsigned char *bytes, size_t size, int seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_of(seed, i);
}

static void bytes_check(const char *what, const unsigned char *bytes, size_t from, size_t to,
			int seed)
{
	for (size_t i = from; i < to; i++)
		if (bytes[i] != byte_of(seed, i)) {
			differs("%s: byte %zu is %d, not %d", what, i, bytes[i], byte_of(seed, i));
			return;
		}
}

static void spoil_byte(unsigned char *byte)
{
	if (spoil && me == 1)
		*byte ^= 1;
}

/* An odd number of bytes at an odd place; the seeds of puts differ from those of windows. */
#define LARGE (1 << 20)
#define MAX_MTU 4096 /* bytes in a packet at most */
#define EDGE 12345
#define SEED_PUT(rank) ((rank) + 2)

static void large_check(const char *what, const unsigned char *bytes, int outer, int inner)
{
	bytes_check(what, bytes, 0, EDGE, outer);
	bytes_check(what, bytes, EDGE, LARGE - EDGE, inner);
	bytes_check(what, bytes, LARGE - EDGE, LARGE, outer);
}

static void put_and_get_large(unsigned char *memory, unsigned char *buffer, MPI_Win win)
{
	const int size = LARGE - 2 * EDGE;

	packets += 2 * size / MAX_MTU;
	bytes_fill(memory, LARGE, me);
	bytes_fill(buffer, LARGE, SEED_PUT(me));
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
	MPI_Put(buffer + EDGE, size, MPI_BYTE, peer, EDGE, size, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	spoil_byte(memory + LARGE - 1);
	large_check("the window", memory, me, SEED_PUT(peer));
	bytes_fill(buffer, LARGE, me);
	MPI_Get(buffer + EDGE, size, MPI_BYTE, peer, EDGE, size, MPI_BYTE, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	large_check("what was got", buffer, me, SEED_PUT(me));
}

static void large_transfers(void)
{
	unsigned char *memory, *buffer = malloc(LARGE);
	MPI_Win win;

	MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	put_and_get_large(memory, buffer, win);
	MPI_Win_free(&win);
	free(buffer);
	group_ends("a_megabyte_at_an_odd_place_arrives_whole");
}

/* Every third byte of a stretch, which takes a transfer for each. */
static void strided_transfers(void)
{
	enum { SIZE = 64, FROM = 7, BLOCKS = 9, STRIDE = 3 };
	unsigned char *memory, buffer[SIZE];
	MPI_Datatype every_third;
	MPI_Win win;

	MPI_Win_allocate(SIZE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_BYTE, &every_third);
	MPI_Type_commit(&every_third);
	bytes_fill(memory, SIZE, me);
	bytes_fill(buffer, SIZE, SEED_PUT(me));
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
	MPI_Put(buffer + FROM, 1, every_third, peer, FROM, 1, every_third, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	spoil_byte(memory + FROM + 1);
	for (size_t i = 0; i < SIZE; i++) {
		bool put = i >= FROM && i < FROM + BLOCKS * STRIDE && (i - FROM) % STRIDE == 0;

		bytes_check("the window", memory, i, i + 1, put ? SEED_PUT(peer) : me);
	}
	MPI_Type_free(&every_third);
	MPI_Win_free(&win);
	group_ends("strided_put_leaves_the_gaps");
}

/* --- windows and their memory --------------------------------------------------------- */

/* Alternately MPI's memory and our own, which then is freed and comes back. */
static void windows_come_and_go(void)
{
	int windows = spoil ? 10 : 100; /* what fails once is enough */

	for (int i = 0; i < windows; i++) {
		struct window w = window_open(&kinds[i % 3], i % 2 == 0);

		case_run(&w, LOCK, i % 4 < 2 ? PUT : GET, REPLACE, 1);
		window_close(&w);
	}
	group_ends("a_hundred_windows_come_and_go");
}

#define PAGE 4096ul
#define MAPPED ((size_t)64 << 10)

/* Neither MPI's nor the library's hooks see such a call. */
static void unmap(unsigned char *memory)
{
	if (spoil)
		syscall(SYS_munmap, memory, MAPPED);
	else
		munmap(memory, MAPPED);
}

static unsigned char *map(void *where)
{
	void *memory = mmap(where, MAPPED, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (memory == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 2);
	return memory;
}

static void put_and_get_mapped(unsigned char *memory, unsigned char *buffer)
{
	MPI_Win win;

	bytes_fill(memory, MAPPED, me);
	bytes_fill(buffer, MAPPED, SEED_PUT(me));
	MPI_Win_create(memory, MAPPED, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
	MPI_Put(buffer, MAPPED / 2, MPI_BYTE, peer, 0, MAPPED / 2, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	bytes_check("the window", memory, 0, MAPPED / 2, SEED_PUT(peer));
	bytes_check("the window", memory, MAPPED / 2, MAPPED, me);
	MPI_Get(buffer, MAPPED, MPI_BYTE, peer, 0, MAPPED, MPI_BYTE, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	bytes_check("what was got", buffer, 0, MAPPED / 2, SEED_PUT(me));
	bytes_check("what was got", buffer, MAPPED / 2, MAPPED, peer);
	MPI_Win_free(&win);
}

/*
 * A registration that outlives the mapping that it was made for has the pages of that one: what
 * is put there never shows. Window and buffer lie where the last ones did.
 */
static void windows_over_new_mappings(void)
{
	unsigned char *memory = map(NULL), *buffer = map(NULL);

	for (int i = 0; i < 4; i++) {
		put_and_get_mapped(memory, buffer);
		unmap(memory);
		unmap(buffer);
		memory = map(memory);
		buffer = map(buffer);
	}
	unmap(memory);
	unmap(buffer);
	group_ends("windows_over_memory_mapped_anew_are_of_the_new_memory");
}

/* So much that the C library maps it and unmaps it, by ways of its own. */
static unsigned char *allocate(void)
{
	unsigned char *memory = malloc((size_t)4 << 20);

	if (!memory)
		MPI_Abort(MPI_COMM_WORLD, 2);
	return memory;
}

/* Behind everybody's back only the pages are others. */
static unsigned char *allocate_anew(unsigned char *memory)
{
	if (spoil) {
		syscall(SYS_madvise, ((uintptr_t)memory | (PAGE - 1)) + 1, MAPPED, MADV_DONTNEED);
		return memory;
	}
	free(memory);
	return allocate();
}

static void windows_over_allocated_memory(void)
{
	unsigned char *memory, *buffer;

	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	memory = allocate();
	buffer = allocate();
	for (int i = 0; i < 4; i++) {
		put_and_get_mapped(memory, buffer);
		memory = allocate_anew(memory);
		buffer = allocate_anew(buffer);
	}
	free(memory);
	free(buffer);
	group_ends("windows_over_memory_allocated_anew_are_of_the_new_memory");
}

/* Closing one of them must not take the other's registration away. */
static void two_windows_over_one_memory(void)
{
	struct window first = window_open(INT64, false), second = first;

	MPI_Win_create(first.slots, SLOTS * (MPI_Aint)INT64->size, (int)INT64->size, MPI_INFO_NULL,
		       MPI_COMM_WORLD, &second.win);
	case_run(&first, LOCK, PUT, REPLACE, 1);
	case_run(&second, LOCK, FETCH_AND_OP, SUM, 1);
	MPI_Win_free(&first.win);
	case_run(&second, FENCE, PUT, REPLACE, 1);
	case_run(&second, LOCK_ALL, GET, REPLACE, 1);
	window_close(&second);
	group_ends("of_two_windows_over_one_memory_one_may_close");
}

/* Rank 0 has nothing to show, and writes to rank 1. */
static void empty_window(void)
{
	int64_t slots[2] = { 1, 2 }, value = 3;
	MPI_Win win;

	MPI_Win_create(me ? slots : NULL, me ? sizeof(slots) : 0, sizeof(*slots), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &win);
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
	if (!me)
		MPI_Put(&value, 1, MPI_INT64_T, 1, 1, 1, MPI_INT64_T, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	if (spoil && me == 1)
		slots[0] = 0;
	if (slots[0] != 1 || slots[1] != (me ? 3 : 2))
		differs("the window has %jd, %jd", (intmax_t)slots[0], (intmax_t)slots[1]);
	MPI_Win_free(&win);
	group_ends("rank_with_an_empty_window_puts_to_the_other");
}

/* --- all ------------------------------------------------------------------------------ */

static bool has_option(char **argv, const char *option)
{
	while (*++argv)
		if (!strcmp(*argv, option))
			return true;
	return false;
}

static void two_ranks_only(void)
{
	int ranks;

	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	peer = 1 - me;
	if (ranks == 2)
		return;
	fprintf(stderr, "mpi_onesided: takes two ranks, not %d\n", ranks);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static void print_packets(void)
{
	long all;

	MPI_Reduce(&packets, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (me == 0)
		printf("# at least %ld packets\n", all);
}

int main(int argc, char **argv)
{
	bool every;

	MPI_Init(&argc, &argv);
	two_ranks_only();
	name_kinds();
	every = has_option(argv, "--every-operation");
	spoil = has_option(argv, "--spoil");
	operations(INT64, true, every);
	operations(INT32, false, every);
	operations(DOUBLE, true, every);
	count_together(INT64);
	count_together(INT32);
	large_transfers();
	strided_transfers();
	windows_come_and_go();
	two_windows_over_one_memory();
	empty_window();
	windows_over_new_mappings();
	windows_over_allocated_memory();
	print_packets();
	MPI_Finalize();
	return all_held ? 0 : 1;
}
