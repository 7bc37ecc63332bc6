/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two-sided MPI between an even number of ranks, each of which has a partner: rank 0 rank 1, rank 2
 * rank 3. Every byte that is received is compared with what its sender sent, and so are the bytes
 * behind the message, which have to be as they were. Prints "ok NAME" or "not ok NAME: why" for
 * each group of checks, from rank 0, and at the end how many packets all that takes at least. The
 * exit status is 0 if all held.
 *
 * Usage: mpi_two_sided [--small] [--short-truncation] [--control] [SET...]
 * --small: no message has more than 1 MiB, and there are fewer of them, which saves time
 * --short-truncation: of the messages that are longer than their buffers, only the short ones (Open
 *	MPI 4.1's ob1 reads a long one to its end, past that of the buffer)
 * --control: all groups a second time, in which one byte of each message is changed before it is
 *	checked, and each group has to notice it
 * SET: modes, matching, unexpected, probes, errors, layouts, collectives (default: these), flood (a
 *	million unexpected messages each way), or threads, which needs MPI_THREAD_MULTIPLE
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEN(array) (int)(sizeof(array) / sizeof(*(array)))
#define RANKS 8 /* at most */
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static int me, partner, ranks;
static bool small, short_truncation, spoil;
static bool all_held = true;
static atomic_long packets; /* that this rank's messages take at least */

/* --- results -------------------------------------------------------------------------- */

static pthread_mutex_t why_lock = PTHREAD_MUTEX_INITIALIZER;
static char why[160]; /* the first thing that did not hold in this group; "" if all did */

__attribute__((format(printf, 1, 2))) static void differs(const char *format, ...)
{
	va_list ap;

	pthread_mutex_lock(&why_lock);
	if (!*why) {
		va_start(ap, format);
		vsnprintf(why, sizeof(why), format, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&why_lock);
}

/* The first rank for which something did not hold; RANKS if there is none. */
static int rank_with_a_reason(char whys[][sizeof(why)])
{
	for (int i = 0; i < ranks; i++)
		if (*whys[i])
			return i;
	return RANKS;
}

static void group_print(const char *name, char whys[][sizeof(why)])
{
	int bad = rank_with_a_reason(whys);

	if (spoil && bad < RANKS)
		printf("ok %s_or_it_is_noticed\n", name);
	else if (spoil)
		printf("not ok %s_or_it_is_noticed: nobody noticed\n", name);
	else if (bad < RANKS)
		printf("not ok %s: rank %d: %s\n", name, bad, whys[bad]);
	else
		printf("ok %s\n", name);
	fflush(stdout);
	if (spoil == (bad == RANKS))
		all_held = false;
}

/* Ends a group of checks: rank 0 prints what the ranks found. */
__attribute__((format(printf, 1, 2))) static void group_ends(const char *format, ...)
{
	char whys[RANKS][sizeof(why)], name[128];
	va_list ap;

	MPI_Gather(why, sizeof(why), MPI_CHAR, whys, sizeof(why), MPI_CHAR, 0, MPI_COMM_WORLD);
	*why = '\0';
	va_start(ap, format);
	vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);
	if (me == 0)
		group_print(name, whys);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		MPI_Abort(MPI_COMM_WORLD, 2);
	return memory;
}

/* --- bytes ---------------------------------------------------------------------------- */

#define GUARD 64 /* bytes behind each buffer, which nothing may change */
#define UNTOUCHED 0xa5

/* Messages differ in their seed: who sent it, and a number. */
static uint64_t seed_of(int rank, int number)
{
	return (uint64_t)rank << 32 | (uint32_t)number;
}

static uint64_t word_at(uint64_t seed, size_t i)
{
	return (seed + 1) * 0x9e3779b97f4a7c15 ^ i * 0xc2b2ae3d27d4eb4f;
}

/* Not at the beginning of a page. */
static unsigned char *buffer_make(size_t size)
{
	unsigned char *buffer = allocate(size + GUARD);

	memset(buffer, UNTOUCHED, size + GUARD);
	return buffer;
}

/* Writes the words of the message, the last of which may be cut. */
static void fill(unsigned char *buffer, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = word_at(seed, i / 8);

		memcpy(buffer + i, &word, size - i < 8 ? size - i : 8);
	}
}

static unsigned char *filled(size_t size, uint64_t seed)
{
	unsigned char *buffer = buffer_make(size);

	fill(buffer, size, seed);
	return buffer;
}

static void guard_check(const unsigned char *buffer, size_t size)
{
	for (size_t i = size; i < size + GUARD; i++)
		if (buffer[i] != UNTOUCHED) {
			differs("the byte %zu behind a message of %zu has changed", i - size, size);
			return;
		}
}

/* That the buffer has exactly the message; afterwards it has none. */
static void bytes_check(unsigned char *buffer, size_t size, uint64_t seed)
{
	if (spoil)
		buffer[size / 2]++;
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = word_at(seed, i / 8);

		if (memcmp(buffer + i, &word, size - i < 8 ? size - i : 8)) {
			differs("message %ju of rank %ju, %zu B: differs at %zu",
				(uintmax_t)(seed & UINT32_MAX), (uintmax_t)(seed >> 32), size, i);
			break;
		}
	}
	guard_check(buffer, size);
	memset(buffer, UNTOUCHED, size + GUARD);
}

/* The same for a message of another rank; a packet has at most 4 KiB. */
static void received_check(unsigned char *buffer, size_t size, uint64_t seed)
{
	packets += 1 + (long)(size / (4 * KIB));
	bytes_check(buffer, size, seed);
}

static void status_check(const MPI_Status *status, int from, int tag, size_t size)
{
	int count;

	MPI_Get_count(status, MPI_BYTE, &count);
	if (status->MPI_SOURCE != from || status->MPI_TAG != tag || count != (int)size)
		differs("the status says %d B with tag %d of rank %d, not %zu, %d, %d", count,
			status->MPI_TAG, status->MPI_SOURCE, size, tag, from);
}

/* --- calls ---------------------------------------------------------------------------- */

/* Sends message number NUMBER of this rank, with the number as its tag. */
static void send_to(int rank, int number, size_t size)
{
	unsigned char *bytes = filled(size, seed_of(me, number));

	MPI_Send(bytes, (int)size, MPI_BYTE, rank, number, MPI_COMM_WORLD);
	free(bytes);
}

/* Receives and checks it; FROM and TAG may be wildcards. */
static void receive_from(int rank, int number, size_t size, int from, int tag)
{
	unsigned char *bytes = buffer_make(size);
	MPI_Status status;

	MPI_Recv(bytes, (int)size, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
	status_check(&status, rank, number, size);
	received_check(bytes, size, seed_of(rank, number));
	free(bytes);
}

/* Messages that are on the way together. */
struct batch {
	int count;
	unsigned char **bytes;
	size_t *sizes;
	int *numbers;
	MPI_Request *requests;
	MPI_Status *statuses;
};

static struct batch batch_make(int count)
{
	size_t n = (size_t)count;

	return (struct batch){
		.bytes = allocate(n * sizeof(unsigned char *)),
		.sizes = allocate(n * sizeof(size_t)),
		.numbers = allocate(n * sizeof(int)),
		.requests = allocate(n * sizeof(MPI_Request)),
		.statuses = allocate(n * sizeof(MPI_Status)),
	};
}

static int batch_add(struct batch *b, unsigned char *bytes, int number, size_t size)
{
	b->bytes[b->count] = bytes;
	b->sizes[b->count] = size;
	b->numbers[b->count] = number;
	return b->count++;
}

static void batch_send(struct batch *b, int number, int tag, size_t size, MPI_Comm comm)
{
	int i = batch_add(b, filled(size, seed_of(me, number)), number, size);

	MPI_Isend(b->bytes[i], (int)size, MPI_BYTE, partner, tag, comm, &b->requests[i]);
}

static void batch_receive(struct batch *b, int number, int tag, size_t size, MPI_Comm comm)
{
	int i = batch_add(b, buffer_make(size), number, size);

	MPI_Irecv(b->bytes[i], (int)size, MPI_BYTE, partner, tag, comm, &b->requests[i]);
}

static void batch_wait(struct batch *b)
{
	MPI_Waitall(b->count, b->requests, b->statuses);
}

static void batch_check(struct batch *b)
{
	for (int i = 0; i < b->count; i++)
		received_check(b->bytes[i], b->sizes[i], seed_of(partner, b->numbers[i]));
}

static void batch_free(struct batch *b)
{
	for (int i = 0; i < b->count; i++)
		free(b->bytes[i]);
	free(b->bytes);
	free(b->sizes);
	free(b->numbers);
	free(b->requests);
	free(b->statuses);
}

/* --- modes of sending ----------------------------------------------------------------- */

enum mode { STANDARD, SYNCHRONOUS, BUFFERED, READY, PERSISTENT, MODES };

static const char *const mode_names[MODES] = {
	"standard", "synchronous", "buffered", "ready", "persistent",
};

#define GO 1000

static void persistent_send(unsigned char *bytes, int size, int tag)
{
	MPI_Request request;

	MPI_Send_init(bytes, size, MPI_BYTE, partner, tag, MPI_COMM_WORLD, &request);
	for (int i = 0; i < 2; i++) {
		fill(bytes, (size_t)size, seed_of(me, tag + i));
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	MPI_Request_free(&request);
}

static void mode_send(enum mode mode, unsigned char *bytes, int size, int tag)
{
	switch (mode) {
	case STANDARD:
		MPI_Send(bytes, size, MPI_BYTE, partner, tag, MPI_COMM_WORLD);
		return;
	case SYNCHRONOUS:
		MPI_Ssend(bytes, size, MPI_BYTE, partner, tag, MPI_COMM_WORLD);
		return;
	case BUFFERED:
		MPI_Bsend(bytes, size, MPI_BYTE, partner, tag, MPI_COMM_WORLD);
		return;
	case READY:
		MPI_Recv(NULL, 0, MPI_BYTE, partner, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Rsend(bytes, size, MPI_BYTE, partner, tag, MPI_COMM_WORLD);
		return;
	case PERSISTENT:
		persistent_send(bytes, size, tag);
		return;
	case MODES:
		return;
	}
}

static void persistent_receive(unsigned char *bytes, size_t size, int tag)
{
	MPI_Request request;
	MPI_Status status;

	MPI_Recv_init(bytes, (int)size, MPI_BYTE, partner, tag, MPI_COMM_WORLD, &request);
	for (int i = 0; i < 2; i++) {
		MPI_Start(&request);
		MPI_Wait(&request, &status);
		status_check(&status, partner, tag, size);
		received_check(bytes, size, seed_of(partner, tag + i));
	}
	MPI_Request_free(&request);
}

static void mode_receive(enum mode mode, unsigned char *bytes, size_t size, int tag)
{
	MPI_Request request;
	MPI_Status status;

	if (mode == PERSISTENT) {
		persistent_receive(bytes, size, tag);
		return;
	}
	MPI_Irecv(bytes, (int)size, MPI_BYTE, partner, tag, MPI_COMM_WORLD, &request);
	if (mode == READY)
		MPI_Send(NULL, 0, MPI_BYTE, partner, GO, MPI_COMM_WORLD);
	MPI_Wait(&request, &status);
	status_check(&status, partner, tag, size);
	received_check(bytes, size, seed_of(partner, tag));
}

static void mode_exchange(enum mode mode, size_t size, int tag)
{
	unsigned char *out = filled(size, seed_of(me, tag)), *in = buffer_make(size);

	for (int turn = 0; turn < 2; turn++)
		if (me % 2 == turn)
			mode_send(mode, out, (int)size, tag);
		else
			mode_receive(mode, in, size, tag);
	free(out);
	free(in);
}

/* Around the sizes at which the library changes its ways, and between. */
static const size_t sizes[] = {
	0, 1, 8, 200, 4096, 16 * KIB - 64, 16 * KIB, 16 * KIB + 1, 100000, MIB, 8 * MIB,
};

#define UP_TO_1_MIB (LEN(sizes) - 1)

static void every_mode(void)
{
	int room = (int)(2 * MIB);
	void *buffered = allocate((size_t)room);

	MPI_Buffer_attach(buffered, room);
	for (enum mode mode = 0; mode < MODES; mode++) {
		int last = mode == STANDARD && !small ? LEN(sizes) : UP_TO_1_MIB;

		for (int i = 0; i < last; i++)
			mode_exchange(mode, sizes[i], 10 * i);
		group_ends("messages_of_0_B_to_%zu_MiB_arrive_%s", sizes[last - 1] / MIB,
			   mode_names[mode]);
	}
	MPI_Buffer_detach(&buffered, &room);
	free(buffered);
}

/* Not before the partner says that it will post the receive. */
static void synchronous_sender(size_t size)
{
	unsigned char *bytes = filled(size, seed_of(me, 1));
	MPI_Request request;
	int done = 0;

	MPI_Issend(bytes, (int)size, MPI_BYTE, partner, 1, MPI_COMM_WORLD, &request);
	for (int i = 0; i < 1000 && !done; i++)
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	if (done)
		differs("a synchronous send of %zu B has ended before it is received", size);
	MPI_Send(NULL, 0, MPI_BYTE, partner, GO, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	free(bytes);
}

static void synchronous_sends_wait(void)
{
	for (int i = 0; i < UP_TO_1_MIB; i++) {
		if (me % 2 == 0) {
			synchronous_sender(sizes[i]);
			continue;
		}
		MPI_Recv(NULL, 0, MPI_BYTE, partner, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		receive_from(partner, 1, sizes[i], partner, 1);
	}
	group_ends("synchronous_send_ends_after_its_receive_has_begun");
}

/* --- which receive takes which message ------------------------------------------------- */

#define ANYONE 40 /* messages of each rank */

/* In the order of each sender, which the number shows; rank 0 does not know who is next. */
static void receive_of_anyone(int *next)
{
	size_t size = 30000;
	unsigned char *bytes = buffer_make(size);
	MPI_Status status;
	int from, count;

	MPI_Recv(bytes, (int)size, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
	from = status.MPI_SOURCE;
	MPI_Get_count(&status, MPI_BYTE, &count);
	memset(bytes + count, UNTOUCHED, GUARD);
	if (status.MPI_TAG != next[from])
		differs("rank %d's message %d comes as number %d", from, status.MPI_TAG,
			next[from]);
	received_check(bytes, (size_t)count, seed_of(from, next[from]++));
	free(bytes);
}

/* Short ones and long ones. */
static size_t size_of_number(int number)
{
	return number % 8 == 5 ? 20000 + (size_t)number : 8 * (size_t)number;
}

static void any_source_any_tag(void)
{
	int next[RANKS] = { 0 };

	if (me == 0)
		for (int i = 0; i < ANYONE * (ranks - 1); i++)
			receive_of_anyone(next);
	else
		for (int i = 0; i < ANYONE; i++)
			send_to(0, i, size_of_number(i));
	group_ends("any_source_and_any_tag_take_all_in_order_of_each_sender");
}

#define EXACT 20

/* The partner sends even numbers first: those go past the receives before theirs. */
static void wildcards_behind_exact_receives(void)
{
	struct batch in = batch_make(EXACT), out = batch_make(EXACT);

	for (int i = 0; i < EXACT / 2; i++)
		batch_receive(&in, 2 * i, 2 * i, 20000, MPI_COMM_WORLD);
	for (int i = 0; i < EXACT / 2; i++)
		batch_receive(&in, 2 * i + 1, MPI_ANY_TAG, 20000, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < EXACT; i++)
		batch_send(&out, i, i, 20000, MPI_COMM_WORLD);
	batch_wait(&in);
	batch_wait(&out);
	batch_check(&in);
	batch_free(&in);
	batch_free(&out);
	group_ends("wildcards_take_what_exact_receives_before_them_leave");
}

/* The first message with the tag goes to the wildcard, which is older. */
static void exact_receives_behind_wildcards(void)
{
	struct batch in = batch_make(3), out = batch_make(3);

	batch_receive(&in, 0, MPI_ANY_TAG, 8, MPI_COMM_WORLD);
	batch_receive(&in, 2, 7, 20000, MPI_COMM_WORLD);
	batch_receive(&in, 1, MPI_ANY_TAG, 300, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	batch_send(&out, 0, 7, 8, MPI_COMM_WORLD);
	batch_send(&out, 1, 8, 300, MPI_COMM_WORLD);
	batch_send(&out, 2, 7, 20000, MPI_COMM_WORLD);
	batch_wait(&in);
	batch_wait(&out);
	batch_check(&in);
	batch_free(&in);
	batch_free(&out);
	group_ends("the_oldest_receive_that_matches_takes_a_message");
}

#define ORDERED 1000
#define ORDERED_SIZE 40000

/* Every 50th is long, which takes longer: the next ones wait behind it. */
static size_t ordered_size(int number)
{
	return number % 50 == 9 ? ORDERED_SIZE : 8 * (size_t)(1 + number % 64);
}

/* Both ways at once, all with the same tag. */
static void order_of_one_sender(void)
{
	struct batch in = batch_make(ORDERED), out = batch_make(ORDERED);

	for (int i = 0; i < ORDERED; i++) {
		int tag = i % 3 ? 5 : MPI_ANY_TAG;

		batch_receive(&in, i, tag, ordered_size(i), MPI_COMM_WORLD);
		batch_send(&out, i, 5, ordered_size(i), MPI_COMM_WORLD);
	}
	batch_wait(&in);
	batch_wait(&out);
	batch_check(&in);
	batch_free(&in);
	batch_free(&out);
	group_ends("thousand_messages_of_one_sender_keep_their_order");
}

/* --- messages that nobody waits for ---------------------------------------------------- */

/* All have come when the last one has, which is received first. */
static void unexpected(int count, size_t size)
{
	struct batch out = batch_make(count);

	for (int i = 0; i < count; i++)
		batch_send(&out, i, i, size, MPI_COMM_WORLD);
	for (int i = count; i-- > 0;)
		receive_from(partner, i, size, partner, i);
	batch_wait(&out);
	batch_free(&out);
}

static void unexpected_messages(void)
{
	int count = small ? 1000 : 10000;

	unexpected(count, 24);
	group_ends("%d_unexpected_messages_are_received_in_reverse_order", count);
	unexpected(50, 100000);
	group_ends("unexpected_long_messages_are_received_in_reverse_order");
}

/* Bytes of memory that this process has used at the most. */
static size_t most_memory(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	size_t kib = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmHWM: %zu", &kib);
	if (status)
		fclose(status);
	return kib * KIB;
}

static void flood(void)
{
	int count = small ? 100000 : 1000000;
	size_t before = most_memory(), each;

	unexpected(count, 24);
	each = (most_memory() - before) / (size_t)count;
	printf("# %zu bytes of memory for each of %d unexpected messages\n", each, count);
	/* Open MPI's request and this program's buffer among them, at both ends. */
	if (each > 2 * KIB)
		differs("%zu bytes of memory for each message", each);
	group_ends("%d_unexpected_messages_are_received_in_reverse_order", count);
}

/* --- probes ---------------------------------------------------------------------------- */

enum probe { PROBE, IPROBE, MPROBE, IMPROBE, PROBES };

static const char *const probe_names[PROBES] = { "probe", "iprobe", "mprobe", "improbe" };

/* Fills in the message of a matching probe. */
static void probe(enum probe how, int from, int tag, MPI_Message *message, MPI_Status *status)
{
	int found = 0;

	switch (how) {
	case PROBE:
		MPI_Probe(from, tag, MPI_COMM_WORLD, status);
		return;
	case IPROBE:
		while (!found)
			MPI_Iprobe(from, tag, MPI_COMM_WORLD, &found, status);
		return;
	case MPROBE:
		MPI_Mprobe(from, tag, MPI_COMM_WORLD, message, status);
		return;
	case IMPROBE:
		while (!found)
			MPI_Improbe(from, tag, MPI_COMM_WORLD, &found, message, status);
		return;
	case PROBES:
		return;
	}
}

static void receive_probed(enum probe how, unsigned char *bytes, int size, MPI_Message *message,
			   MPI_Status *status)
{
	MPI_Request request;

	switch (how) {
	case PROBE:
	case IPROBE:
		MPI_Recv(bytes, size, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, MPI_COMM_WORLD,
			 status);
		return;
	case MPROBE:
		MPI_Mrecv(bytes, size, MPI_BYTE, message, status);
		return;
	case IMPROBE:
		MPI_Imrecv(bytes, size, MPI_BYTE, message, &request);
		MPI_Wait(&request, status);
		return;
	case PROBES:
		return;
	}
}

static void probe_and_receive(enum probe how, int number, size_t size, int from, int tag)
{
	unsigned char *bytes = buffer_make(size);
	MPI_Message message;
	MPI_Status status;

	probe(how, from, tag, &message, &status);
	status_check(&status, partner, number, size);
	receive_probed(how, bytes, (int)size, &message, &status);
	status_check(&status, partner, number, size);
	received_check(bytes, size, seed_of(partner, number));
	free(bytes);
}

/* The last one first, the others as they come. */
static void probes_in(enum probe how)
{
	struct batch out = batch_make(LEN(sizes));
	int last = UP_TO_1_MIB - 1;

	for (int i = 0; i <= last; i++)
		batch_send(&out, i, i, sizes[i], MPI_COMM_WORLD);
	probe_and_receive(how, last, sizes[last], partner, last);
	for (int i = 0; i < last; i++)
		probe_and_receive(how, i, sizes[i], i % 2 ? MPI_ANY_SOURCE : partner, MPI_ANY_TAG);
	batch_wait(&out);
	batch_free(&out);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void every_probe(void)
{
	for (enum probe how = 0; how < PROBES; how++) {
		probes_in(how);
		group_ends("%s_finds_what_the_next_receive_takes", probe_names[how]);
	}
}

/* Of two messages with the same tag the first is probed, and received last. */
static void probed_message_is_reserved(void)
{
	struct batch out = batch_make(2);
	unsigned char *bytes = buffer_make(MIB);
	MPI_Message message;
	MPI_Status status;

	batch_send(&out, 0, 3, MIB, MPI_COMM_WORLD);
	batch_send(&out, 1, 3, 100, MPI_COMM_WORLD);
	MPI_Mprobe(partner, 3, MPI_COMM_WORLD, &message, &status);
	status_check(&status, partner, 3, MIB);
	MPI_Recv(bytes, 100, MPI_BYTE, partner, 3, MPI_COMM_WORLD, &status);
	status_check(&status, partner, 3, 100);
	received_check(bytes, 100, seed_of(partner, 1));
	MPI_Mrecv(bytes, (int)MIB, MPI_BYTE, &message, &status);
	received_check(bytes, MIB, seed_of(partner, 0));
	batch_wait(&out);
	batch_free(&out);
	free(bytes);
	group_ends("what_mprobe_found_no_other_receive_takes");
}

static void nothing_to_probe(void)
{
	MPI_Status status;
	int found = 0;

	if (spoil)
		send_to(partner, 0, 1);
	for (int i = 0; (i < 100 || spoil) && !found; i++)
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status);
	if (found)
		differs("found a message that nobody has sent");
	if (spoil)
		receive_from(partner, 0, 1, partner, 0);
	group_ends("iprobe_finds_nothing_where_nothing_is");
}

/* --- truncation ------------------------------------------------------------------------ */

/* Into a smaller buffer; the next message is whole. */
static void truncated(size_t size, size_t room, bool posted_before)
{
	struct batch in = batch_make(1), out = batch_make(1);
	int error, class = MPI_SUCCESS;

	if (posted_before)
		batch_receive(&in, 0, 1, room, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	batch_send(&out, 0, 1, size, MPI_COMM_WORLD);
	if (!posted_before) {
		MPI_Probe(partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		batch_receive(&in, 0, 1, room, MPI_COMM_WORLD);
	}
	error = MPI_Wait(&in.requests[0], MPI_STATUS_IGNORE);
	MPI_Error_class(error, &class);
	if (class != MPI_ERR_TRUNCATE)
		differs("%zu B into %zu: error class %d", size, room, class);
	guard_check(in.bytes[0], room);
	batch_wait(&out);
	batch_free(&in);
	batch_free(&out);
}

static void truncation(void)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int before = 0; before < 2; before++) {
		truncated(1, 0, before);
		truncated(1000, 999, before);
		if (short_truncation)
			continue;
		truncated(MIB, 100, before);
		truncated(MIB, MIB - 1, before);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	mode_exchange(STANDARD, 1000, 1);
	group_ends("message_longer_than_its_buffer_is_an_error_and_the_next_one_is_whole");
}

/* --- cancelling ------------------------------------------------------------------------ */

#define CANCELLED 40

static void cancel_half(struct batch *in)
{
	int cancelled;

	for (int i = 0; i < CANCELLED; i += 2)
		MPI_Cancel(&in->requests[i]);
	for (int i = 0; i < CANCELLED; i += 2) {
		MPI_Wait(&in->requests[i], &in->statuses[i]);
		MPI_Test_cancelled(&in->statuses[i], &cancelled);
		if (!cancelled)
			differs("receive %d was not cancelled", i);
		guard_check(in->bytes[i], 0);
	}
}

/* What cancelled receives would have taken, later ones take. */
static void cancelled_receives(void)
{
	struct batch in = batch_make(CANCELLED), out = batch_make(CANCELLED);

	for (int i = 0; i < CANCELLED; i++)
		batch_receive(&in, i, i, size_of_number(i), MPI_COMM_WORLD);
	cancel_half(&in);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < CANCELLED; i++)
		batch_send(&out, i, i, size_of_number(i), MPI_COMM_WORLD);
	for (int i = 0; i < CANCELLED; i += 2)
		MPI_Irecv(in.bytes[i], (int)in.sizes[i], MPI_BYTE, partner, i, MPI_COMM_WORLD,
			  &in.requests[i]);
	batch_wait(&in);
	batch_wait(&out);
	batch_check(&in);
	batch_free(&in);
	batch_free(&out);
	group_ends("cancelled_receive_takes_no_message");
}

/* --- much at once ---------------------------------------------------------------------- */

/* Once by calls that return at once, once by one that waits for both; then less is enough. */
static void large_at_once(size_t size)
{
	struct batch in = batch_make(1), out = batch_make(1);

	batch_receive(&in, 1, 1, size, MPI_COMM_WORLD);
	batch_send(&out, 1, 1, size, MPI_COMM_WORLD);
	batch_wait(&in);
	batch_wait(&out);
	batch_check(&in);
	size /= 8;
	in.sizes[0] = size;
	MPI_Sendrecv(out.bytes[0], (int)size, MPI_BYTE, partner, 2, in.bytes[0], (int)size,
		     MPI_BYTE, partner, 2, MPI_COMM_WORLD, in.statuses);
	status_check(in.statuses, partner, 2, size);
	batch_check(&in);
	batch_free(&in);
	batch_free(&out);
}

static void large_both_ways(void)
{
	int mibs = small ? 1 : 64;

	large_at_once((size_t)mibs * MIB);
	group_ends("%d_MiB_go_both_ways_at_once", mibs);
}

#define COMMS 50

/* The same tag everywhere, and received in the opposite order. */
static void many_communicators(void)
{
	struct batch in = batch_make(COMMS), out = batch_make(COMMS);
	MPI_Comm comms[COMMS];

	for (int i = 0; i < COMMS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	for (int i = 0; i < COMMS; i++)
		batch_send(&out, i, 1, size_of_number(i), comms[i]);
	for (int i = COMMS; i-- > 0;)
		batch_receive(&in, i, MPI_ANY_TAG, size_of_number(i), comms[i]);
	batch_wait(&in);
	batch_wait(&out);
	batch_check(&in);
	for (int i = 0; i < COMMS; i++)
		MPI_Comm_free(&comms[i]);
	batch_free(&in);
	batch_free(&out);
	group_ends("fifty_communicators_do_not_mix_their_messages");
}

/* Before it is posted and after; by way of two communicators. */
static void to_oneself(void)
{
	MPI_Request request;
	MPI_Status status;

	for (int i = 0; i < UP_TO_1_MIB; i++) {
		int size = (int)sizes[i], from = i % 2 ? me : 0;
		MPI_Comm comm = i % 2 ? MPI_COMM_WORLD : MPI_COMM_SELF;
		unsigned char *out = filled(sizes[i], seed_of(me, i)), *in = buffer_make(sizes[i]);

		MPI_Irecv(in, size, MPI_BYTE, from, i, comm, &request);
		MPI_Send(out, size, MPI_BYTE, from, i, comm);
		MPI_Wait(&request, &status);
		status_check(&status, from, i, sizes[i]);
		bytes_check(in, sizes[i], seed_of(me, i));
		MPI_Isend(out, size, MPI_BYTE, from, i, comm, &request);
		MPI_Recv(in, size, MPI_BYTE, MPI_ANY_SOURCE, i, comm, &status);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		status_check(&status, from, i, sizes[i]);
		bytes_check(in, sizes[i], seed_of(me, i));
		free(out);
		free(in);
	}
	group_ends("rank_sends_messages_to_itself");
}

/* --- derived datatypes ----------------------------------------------------------------- */

/* BLOCKS blocks of BLOCK words, STRIDE words apart. */
struct layout {
	int blocks, block, stride;
};

static size_t layout_words(const struct layout *l)
{
	return (size_t)(l->blocks - 1) * (size_t)l->stride + (size_t)l->block;
}

static MPI_Datatype layout_type(const struct layout *l)
{
	MPI_Datatype type;

	MPI_Type_vector(l->blocks, l->block, l->stride, MPI_INT64_T, &type);
	MPI_Type_commit(&type);
	return type;
}

/* The word of the message at a place of the layout; SIZE_MAX between the blocks. */
static size_t layout_at(const struct layout *l, size_t place)
{
	size_t block = place / (size_t)l->stride, within = place % (size_t)l->stride;

	return within < (size_t)l->block ? block * (size_t)l->block + within : SIZE_MAX;
}

static uint64_t layout_word(const struct layout *l, size_t place, uint64_t seed)
{
	size_t i = layout_at(l, place);

	return i == SIZE_MAX ? UNTOUCHED : word_at(seed, i);
}

static uint64_t *layout_make(const struct layout *l, uint64_t seed, bool is_filled)
{
	size_t words = layout_words(l);
	uint64_t *array = allocate(8 * words);

	for (size_t i = 0; i < words; i++)
		array[i] = is_filled ? layout_word(l, i, seed) : UNTOUCHED;
	return array;
}

static void layout_check(const struct layout *l, uint64_t *array, uint64_t seed)
{
	if (spoil)
		array[layout_words(l) / 2]++;
	for (size_t i = 0; i < layout_words(l); i++)
		if (array[i] != layout_word(l, i, seed)) {
			differs("word %zu of %d blocks of %d", i, l->blocks, l->block);
			return;
		}
	packets += 1 + 8 * l->blocks * l->block / 4096;
}

static void layouts_exchange(const struct layout *from, const struct layout *to)
{
	uint64_t *out = layout_make(from, seed_of(me, 0), true);
	uint64_t *in = layout_make(to, 0, false);
	MPI_Datatype out_type = layout_type(from), in_type = layout_type(to);

	MPI_Sendrecv(out, 1, out_type, partner, 0, in, 1, in_type, partner, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	layout_check(to, in, seed_of(partner, 0));
	MPI_Type_free(&out_type);
	MPI_Type_free(&in_type);
	free(out);
	free(in);
}

/* With as many words: a column, a row, small blocks, and one piece. */
static void derived_types(void)
{
	static const struct layout few[] = { { 64, 1, 64 }, { 1, 64, 64 }, { 16, 4, 5 } };
	static const struct layout many[] = { { 16384, 1, 2 },
					      { 1, 16384, 16384 },
					      { 64, 256, 300 } };

	for (int i = 0; i < LEN(few); i++)
		for (int j = 0; j < LEN(few); j++) {
			layouts_exchange(&few[i], &few[j]);
			layouts_exchange(&many[i], &many[j]);
		}
	group_ends("vectors_arrive_as_other_vectors");
}

struct record {
	int8_t kind;
	double value;
	int32_t numbers[3];
};

#define RECORDS 3000

static MPI_Datatype record_type(void)
{
	int lengths[] = { 1, 1, 3 };
	MPI_Aint places[] = { offsetof(struct record, kind), offsetof(struct record, value),
			      offsetof(struct record, numbers) };
	MPI_Datatype types[] = { MPI_INT8_T, MPI_DOUBLE, MPI_INT32_T }, packed, type;

	MPI_Type_create_struct(3, lengths, places, types, &packed);
	MPI_Type_create_resized(packed, 0, sizeof(struct record), &type);
	MPI_Type_free(&packed);
	MPI_Type_commit(&type);
	return type;
}

static struct record record_of(int rank, int i)
{
	return (struct record){ (int8_t)i, rank + i / 8.0, { i, -i, rank } };
}

static void record_check(const struct record *got, int i)
{
	struct record due = record_of(partner, i);

	if (got->kind != due.kind || got->value != due.value ||
	    memcmp(got->numbers, due.numbers, sizeof(due.numbers)))
		differs("record %d", i);
}

static void records(void)
{
	static struct record out[RECORDS], in[RECORDS];
	MPI_Datatype type = record_type();

	for (int i = 0; i < RECORDS; i++)
		out[i] = record_of(me, i);
	for (int count = 1; count <= RECORDS; count *= 10) {
		MPI_Sendrecv(out, count, type, partner, 0, in, count, type, partner, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		in[count / 2].numbers[1] += spoil;
		for (int i = 0; i < count; i++)
			record_check(&in[i], i);
		memset(in, 0, sizeof(in));
	}
	MPI_Type_free(&type);
	group_ends("structures_arrive_member_by_member");
}

/* --- collective operations -------------------------------------------------------------- */

#define SUMMED 20000

static void allreduce(void)
{
	static int64_t in[SUMMED], out[SUMMED];

	for (int count = 1; count <= SUMMED; count = count < 100 ? 100 : count * 200) {
		for (int i = 0; i < count; i++)
			in[i] = (int64_t)(me + 1) << i % 48;
		MPI_Allreduce(in, out, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		out[count / 2] += spoil;
		for (int i = 0; i < count; i++)
			if (out[i] != (int64_t)(ranks * (ranks + 1) / 2) << i % 48)
				differs("element %d of the sum of %d", i, count);
	}
	group_ends("allreduce_sums_each_element");
}

static void alltoall_of(size_t size)
{
	unsigned char *out = allocate((size_t)ranks * size), *in = allocate((size_t)ranks * size);
	unsigned char *one = buffer_make(size);

	for (int i = 0; i < ranks; i++)
		fill(out + (size_t)i * size, size, seed_of(me, i));
	MPI_Alltoall(out, (int)size, MPI_BYTE, in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		memcpy(one, in + (size_t)i * size, size);
		bytes_check(one, size, seed_of(i, me));
	}
	free(out);
	free(in);
	free(one);
}

static void alltoall(void)
{
	for (int i = 1; i < UP_TO_1_MIB; i++)
		alltoall_of(sizes[i]);
	group_ends("alltoall_gives_each_rank_its_own");
}

static void broadcast(void)
{
	for (int root = 0; root < ranks; root++)
		for (int i = 0; i < UP_TO_1_MIB; i++) {
			unsigned char *bytes = buffer_make(sizes[i]);

			if (me == root)
				fill(bytes, sizes[i], seed_of(root, i));
			MPI_Bcast(bytes, (int)sizes[i], MPI_BYTE, root, MPI_COMM_WORLD);
			bytes_check(bytes, sizes[i], seed_of(root, i));
			free(bytes);
		}
	group_ends("broadcast_of_up_to_1_MiB_by_every_rank");
}

/* MPI_Wtime begins anew in each process; this clock is the same for all of a machine. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void barriers(void)
{
	for (int i = 0; i < 20; i++) {
		double came, last, left;

		if (me == i % ranks)
			usleep(2000);
		came = now();
		MPI_Barrier(MPI_COMM_WORLD);
		left = now() - (spoil ? 60 : 0);
		MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		if (left < last)
			differs("barrier %d was left %g s before the last one came", i,
				last - left);
	}
	group_ends("barrier_is_left_when_all_have_come");
}

/* --- threads --------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 20

static void threads_run(void *(*run)(void *))
{
	pthread_t threads[THREADS];
	static int numbers[THREADS];

	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, run, &numbers[i]))
			MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Each exchanges messages with the same thread of the partner. */
static void *exchange_in_thread(void *number)
{
	static const size_t of[] = { 8, 3000, 20000, 0, 100000 };
	int tag = *(int *)number;

	for (int i = 0; i < ROUNDS; i++)
		mode_exchange(i % 2 ? STANDARD : SYNCHRONOUS, of[i % LEN(of)], tag);
	return NULL;
}

static MPI_Comm shared; /* by all threads */
static atomic_int times_received[THREADS * ROUNDS];

static void *send_in_thread(void *number)
{
	for (int i = 0; i < ROUNDS; i++) {
		int n = *(int *)number * ROUNDS + i;
		unsigned char *bytes = filled(size_of_number(n), seed_of(me, n));

		MPI_Send(bytes, (int)size_of_number(n), MPI_BYTE, partner, n, shared);
		free(bytes);
	}
	return NULL;
}

/* Whatever message a thread finds is its own. */
static void *receive_in_thread(void *number)
{
	(void)number;
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Message message;
		MPI_Status status;
		unsigned char *bytes;
		int n;

		MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, shared, &message, &status);
		n = status.MPI_TAG;
		bytes = buffer_make(size_of_number(n));
		MPI_Mrecv(bytes, (int)size_of_number(n), MPI_BYTE, &message, &status);
		status_check(&status, partner, n, size_of_number(n));
		received_check(bytes, size_of_number(n), seed_of(partner, n));
		times_received[n]++;
		free(bytes);
	}
	return NULL;
}

static void threads(void)
{
	threads_run(exchange_in_thread);
	group_ends("four_threads_exchange_messages");
	for (int i = 0; i < LEN(times_received); i++)
		times_received[i] = 0;
	MPI_Comm_dup(MPI_COMM_WORLD, &shared);
	threads_run(me % 2 ? receive_in_thread : send_in_thread);
	for (int i = 0; i < LEN(times_received); i++)
		if (times_received[i] != me % 2)
			differs("message %d was received %d times", i, times_received[i]);
	MPI_Comm_free(&shared);
	group_ends("each_message_is_found_by_one_thread");
}

/* --- all ------------------------------------------------------------------------------ */

static bool has_option(char **argv, const char *option)
{
	while (*++argv)
		if (!strcmp(*argv, option))
			return true;
	return false;
}

static void pairs_only(void)
{
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	partner = me ^ 1;
	if (ranks % 2 == 0 && ranks <= RANKS)
		return;
	fprintf(stderr, "mpi_two_sided: takes an even number of ranks up to %d, not %d\n", RANKS,
		ranks);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static void print_packets(void)
{
	long mine = packets, all;

	MPI_Reduce(&mine, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (me == 0)
		printf("# at least %ld packets\n", all);
}

static void start(int *argc, char ***argv, bool with_threads)
{
	int level = with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, offered;

	MPI_Init_thread(argc, argv, level, &offered);
	if (offered < level)
		differs("this MPI offers no threads");
	pairs_only();
}

static void modes(void)
{
	every_mode();
	synchronous_sends_wait();
	large_both_ways();
	to_oneself();
}

static void matching(void)
{
	any_source_any_tag();
	wildcards_behind_exact_receives();
	exact_receives_behind_wildcards();
	order_of_one_sender();
	many_communicators();
}

static void probes(void)
{
	every_probe();
	probed_message_is_reserved();
	nothing_to_probe();
}

static void errors(void)
{
	truncation();
	cancelled_receives();
}

static void layouts(void)
{
	derived_types();
	records();
}

static void collectives(void)
{
	allreduce();
	alltoall();
	broadcast();
	barriers();
}

static const struct set {
	const char *name;
	void (*run)(void);
} sets[] = {
	{ "modes", modes },
	{ "matching", matching },
	{ "unexpected", unexpected_messages },
	{ "flood", flood },
	{ "probes", probes },
	{ "errors", errors },
	{ "layouts", layouts },
	{ "collectives", collectives },
	{ "threads", threads },
};

static bool none_is_named(char **argv)
{
	for (int i = 0; i < LEN(sets); i++)
		if (has_option(argv, sets[i].name))
			return false;
	return true;
}

static void sets_run(char **argv)
{
	bool usual = none_is_named(argv);

	for (int i = 0; i < LEN(sets); i++)
		if (has_option(argv, sets[i].name) ||
		    (usual && sets[i].run != threads && sets[i].run != flood))
			sets[i].run();
}

int main(int argc, char **argv)
{
	start(&argc, &argv, has_option(argv, "threads"));
	small = has_option(argv, "--small");
	short_truncation = has_option(argv, "--short-truncation");
	sets_run(argv);
	spoil = has_option(argv, "--control");
	if (spoil)
		sets_run(argv);
	print_packets();
	MPI_Finalize();
	return all_held ? 0 : 1;
}
