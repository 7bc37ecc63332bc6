/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes land where fi_mr(3) says: addressing, keys, alignment, lengths, in every mode. */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include "mr/ledger.h"
#include "harness.h"

#define GUARD BUF_GUARD
#define MIB (1024 * 1024ul)

static const size_t lengths[] = { 1, 2, 3, 7, 8, 63, 64, 255, 4095, 4096, 4097, 8193 };
#define NLENGTHS (sizeof(lengths) / sizeof(*lengths))

/* All lengths from one local offset, one after the other into the region from at on. */
static size_t all_lengths(struct env *e, bool read, struct buf *b, size_t off,
			  const struct region *r, size_t at)
{
	for (size_t i = 0; i < NLENGTHS; i++) {
		start(e, read, b, off, lengths[i], r, at);
		off += read ? lengths[i] : 0;
		at += lengths[i];
	}
	fab_wait_ok(me(e), NLENGTHS);
	return at;
}

/* Regions that begin at first in their page, accessed from several local offsets. */
static void alignments(struct env *e, bool read, const size_t *first, size_t n)
{
	static const size_t local[] = { 0, 1, 2047, 4095 };
	struct peer *p = target(e);
	struct buf *b = buf(e, 64 * 1024, 7);

	for (size_t i = 0; i < n; i++) {
		size_t at = 0;
		struct region r;

		peer_alloc(p, 0, 256 * 1024, 100 + i);
		r = peer_reg(p, 0, GUARD + first[i], 200 * 1024, REMOTE_RW, i);
		for (size_t j = 0; j < 4; j++) {
			at = all_lengths(e, read, b, GUARD + local[j], &r, at);
			if (read)
				buf_same(b);
		}
		peer_same(p, 0);
		peer_unreg(&r);
	}
	buf_same(b);
}

IN_MODES(MODES_ALL)

CASE(region_of_each_call_is_reached)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 4096, 1);
	struct region r;

	for (int call = REG_PLAIN; call <= REG_ATTR; call++) {
		peer_alloc(p, 0, 4096, 2 + (uint64_t)call);
		must_ok(peer_try_reg(p, 0, 100, 3000, REMOTE_RW, 5, call, &r));
		access_ok(e, WRITE, b, 0, 64, &r, 0);
		access_ok(e, READ, b, 200, 64, &r, 1000);
		peer_same(p, 0);
		buf_same(b);
		buf_fill(b, 1);
		peer_unreg(&r);
	}
}

CASE(first_and_last_byte_are_where_the_mode_says)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 4096, 3);
	struct region r;

	peer_alloc(p, 0, 4 * 4096, 4);
	r = peer_reg(p, 0, 4096 + 5, 6000, REMOTE_RW, 9);
	must(me(e)->virt == (r.base != 0), "base 0x%lx", (unsigned long)r.base);
	access_ok(e, WRITE, b, 17, 1, &r, 0);
	access_ok(e, WRITE, b, 18, 1, &r, 5999);
	peer_same(p, 0);
	access_ok(e, READ, b, 100, 1, &r, 1);
	access_ok(e, READ, b, 101, 1, &r, 5998);
	buf_same(b);
}

CASE(write_lands_at_some_alignments)
{
	static const size_t first[] = { 0, 291 };

	alignments(e, WRITE, first, 2);
}

CASE(read_brings_from_some_alignments)
{
	static const size_t first[] = { 0, 291 };

	alignments(e, READ, first, 2);
}

CASE(granted_mode_is_the_asked_one)
{
	int got = me(e)->info->domain_attr->mr_mode & ~fab_placed;

	must(got == e->mode->hint, "asked mr_mode 0x%x, got 0x%x", e->mode->hint, got);
	must(me(e)->local == ((mode_bits(e->mode) & FI_MR_LOCAL) != 0), "local differs");
	must(target(e)->virt == me(e)->virt, "the peer was granted another mode");
}

IN_MODES(modes_without(FI_MR_PROV_KEY))

CASE(requested_keys_are_the_keys)
{
	static const uint64_t keys[] = { 0,
					 1,
					 0xfffffffffffffffeull,
					 0x8000000000000000ull,
					 0x123456789abcdef1ull,
					 0xffffffffull };
	struct peer *p = target(e);
	struct buf *b = buf(e, 4096, 3);
	struct region r[6];

	peer_alloc(p, 0, 6 * 4096, 4);
	for (size_t i = 0; i < 6; i++) {
		r[i] = peer_reg(p, 0, i * 4096 + i, 4000, REMOTE_RW, keys[i]);
		must(r[i].key == keys[i], "key %lx", (unsigned long)r[i].key);
	}
	for (size_t i = 0; i < 6; i++)
		access_ok(e, WRITE, b, i * 100, 50, &r[i], 3950);
	peer_same(p, 0);
}

CASE(requested_key_in_use_is_refused)
{
	struct peer *p = target(e);
	struct region r, again;

	peer_alloc(p, 0, 3 * 4096, 4);
	r = peer_reg(p, 0, 0, 4096, REMOTE_RW, 77);
	must_be(peer_try_reg(p, 0, 4096, 4096, REMOTE_RW, 77, REG_PLAIN, &again), -FI_ENOKEY);
	must(log_has("77") || log_has("0x4d"), "the line about it does not name the key");
	peer_unreg(&r);
	must_ok(peer_try_reg(p, 0, 4096, 4096, REMOTE_RW, 77, REG_PLAIN, &again));
}

IN_MODES(modes_with(FI_MR_PROV_KEY))

CASE(provider_keys_are_distinct)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 4096, 3);
	struct region r[8];

	peer_alloc(p, 0, 8 * 4096, 4);
	for (size_t i = 0; i < 8; i++) {
		r[i] = peer_reg(p, 0, i * 4096 + i, 4000, REMOTE_RW, 77);
		must(r[i].key && r[i].key != FI_KEY_NOTAVAIL, "key %zu is not a key", i);
		for (size_t j = 0; j < i; j++)
			must(r[i].key != r[j].key, "regions %zu and %zu share a key", i, j);
	}
	for (size_t i = 0; i < 8; i++)
		access_ok(e, WRITE, b, i * 100, 50, &r[i], 3950);
	peer_same(p, 0);
}

IN_MODES(modes_with(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED))

CASE(key_with_virtual_addresses_is_a_plain_rkey)
{
	struct region r;

	peer_alloc(target(e), 0, 4096, 4);
	r = peer_reg(target(e), 0, 0, 4096, REMOTE_RW, 0);
	must(r.key <= UINT32_MAX, "key 0x%lx", (unsigned long)r.key);
}

IN_MODES(MODES_TWO)

CASE(write_lands_at_every_alignment)
{
	static const size_t first[] = { 0, 1, 63, 291, 2048, 4095 };

	alignments(e, WRITE, first, 6);
}

CASE(read_brings_from_every_alignment)
{
	static const size_t first[] = { 0, 1, 63, 291, 2048, 4095 };

	alignments(e, READ, first, 6);
}

/* Non-overlapping pieces of random lengths from and to random places. */
CASE(random_places_and_lengths)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 512 * 1024, 11);
	uint64_t state = 42;
	struct region r;
	size_t at = 0;

	peer_alloc(p, 0, 512 * 1024, 12);
	r = peer_reg(p, 0, GUARD + 7, 500 * 1024, REMOTE_RW, 3);
	for (int i = 0; i < 200; i++) {
		size_t len = 1 + rnd(&state) % 2300;

		start(e, WRITE, b, GUARD + rnd(&state) % (500 * 1024), len, &r, at);
		at += len + rnd(&state) % 200;
		if (i % 32 == 31)
			fab_wait_ok(me(e), 32);
	}
	fab_wait_ok(me(e), 200 % 32);
	peer_same(p, 0);
	buf_same(b);
}

static void large(struct env *e, size_t len, bool write, bool read)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, len + 3 * GUARD, 21);
	struct region r;

	peer_alloc(p, 0, len + 3 * GUARD, 22);
	r = peer_reg(p, 0, GUARD + 13, len, REMOTE_RW, 1);
	if (read) {
		access_ok(e, READ, b, GUARD + 5, len, &r, 0);
		buf_same(b);
		buf_fill(b, 21);
	}
	if (write) {
		access_ok(e, WRITE, b, GUARD + 1, len, &r, 0);
		buf_same(b);
	}
	peer_same(p, 0);
	peer_unreg(&r);
}

CASE(large_transfers)
{
	large(e, 65536, true, true);
	large(e, MIB, true, true);
	large(e, 8 * MIB + 1, true, true);
}

/* Slow where the machine is emulated: each direction in one mode only. */
CASE(very_large_transfer)
{
	large(e, 64 * MIB, me(e)->virt, !me(e)->virt);
}

CASE(zero_length_moves_nothing)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 4096, 3);
	struct region r;

	peer_alloc(p, 0, 3 * 4096, 4);
	r = peer_reg(p, 0, 4096, 4096, REMOTE_RW, 9);
	for (int read = 0; read < 2; read++) {
		access_ok(e, read, b, 10, 0, &r, 0);
		access_ok(e, read, b, 10, 0, &r, 4095);
		access_ok(e, read, b, 10, 0, &r, 4096);
	}
	peer_same(p, 0);
	buf_same(b);
}

CASE(thousand_regions_at_once)
{
	enum { N = 1000, STEP = 257 };
	static struct region r[N];
	struct peer *p = target(e);
	struct buf *b = buf(e, N * 32, 31);
	struct region first = { .len = 100, .key = 0xfffffff0 };

	peer_alloc(p, 0, N * STEP, 32);
	peer_reg_many(p, &first, STEP, REMOTE_RW, r, N);
	for (size_t i = 0; i < N; i++) {
		start(e, WRITE, b, i * 32, 32, &r[i], 68);
		if (i % 50 == 49)
			fab_wait_ok(me(e), 50);
	}
	peer_same(p, 0);
}

/* The initiator knows the key from before; it must not reach the old memory. */
CASE(key_used_again_reaches_the_new_memory)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 4 * 4096, 3);
	struct region r;

	for (unsigned round = 0; round < 20; round++) {
		unsigned slot = round % 2;

		peer_alloc(p, slot, 4 * 4096, 4 + round);
		r = peer_reg(p, slot, GUARD + round, 4096 + 100 * round, REMOTE_RW, 5);
		access_ok(e, WRITE, b, round, 3000, &r, 4096 + 100 * round - 3000);
		peer_same(p, slot);
		if (round)
			peer_same(p, !slot);
		peer_unreg(&r);
	}
}

CASE(several_regions_over_the_same_bytes)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 4096, 3);
	struct region whole, part, same;

	peer_alloc(p, 0, 4 * 4096, 4);
	whole = peer_reg(p, 0, 100, 12000, REMOTE_RW, 1);
	part = peer_reg(p, 0, 5000, 1000, REMOTE_RW, 2);
	same = peer_reg(p, 0, 100, 12000, FI_REMOTE_WRITE, 3);
	access_ok(e, WRITE, b, 0, 50, &whole, 4900);
	access_ok(e, WRITE, b, 50, 50, &part, 50);
	access_ok(e, WRITE, b, 100, 50, &same, 5000);
	peer_same(p, 0);
	peer_unreg(&whole);
	access_ok(e, WRITE, b, 150, 50, &part, 150);
	peer_same(p, 0);
}

/* Segments of the regions that the ledgers of a process have (lib/mr/ledger.h); *keys: their keys added up. */
static int in_ledgers(uint64_t pid, uint64_t *keys)
{
	struct mrf_ledger_entry entry;
	char path[300], target[64];
	struct dirent *file;
	int n = 0, fd;
	off_t at;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%lu/fd", (unsigned long)pid);
	dir = opendir(path);
	for (*keys = 0; dir && (file = readdir(dir));) {
		ssize_t len = readlinkat(dirfd(dir), file->d_name, target, sizeof(target) - 1);

		target[len > 0 ? len : 0] = '\0';
		if (!strstr(target, MRF_LEDGER_NAME))
			continue;
		fd = openat(dirfd(dir), file->d_name, O_RDONLY);
		for (at = MRF_LEDGER_HEAD; pread(fd, &entry, sizeof(entry), at) == sizeof(entry);
		     at += (off_t)sizeof(entry)) {
			n += entry.serial ? entry.segments : 0;
			*keys += entry.serial && entry.key != FI_KEY_NOTAVAIL ? entry.key : 0;
		}
		close(fd);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* The process's regions in the kernel, once nothing of other cases goes any more. */
static int settled_regions(uint64_t os_pid)
{
	int n = kernel_objects(os_pid, "mr"), same = 0;

	while (same < 5) {
		int now;

		usleep(20000);
		now = kernel_objects(os_pid, "mr");
		same = now == n ? same + 1 : 0;
		n = now;
	}
	return n;
}

IN_MODES(MODE(4) | MODE(15))

CASE(ledger_has_what_the_kernel_has)
{
	struct peer *p = target(e);
	int kernel = kernel_objects(p->os_pid, "mr"), ledger;
	uint64_t keys, before;
	struct region r[3];
	size_t i;

	if (kernel < 0 || !p->pid)
		case_skip("no rdma tool here, or the target is on another host");
	peer_alloc(p, 0, 8 * 4096, 4);
	kernel = settled_regions(p->os_pid);
	ledger = in_ledgers(p->os_pid, &before);
	for (i = 0; i < 3; i++)
		r[i] = peer_reg(p, 0, i * 4096, 4096, REMOTE_RW, i + 1);
	must(kernel_objects(p->os_pid, "mr") == kernel + 3,
	     "the kernel has not three regions more");
	must(in_ledgers(p->os_pid, &keys) == ledger + 3, "the ledger has not three regions more");
	must(keys == before + r[0].key + r[1].key + r[2].key, "the ledger has other keys");
	for (i = 0; i < 3; i++)
		peer_unreg(&r[i]);
	must(kernel_objects(p->os_pid, "mr") == kernel, "fi_close left a kernel region");
	must(in_ledgers(p->os_pid, &keys) == ledger && keys == before,
	     "the ledger has closed regions");
}

IN_MODES(MODE(4) | MODE(15))

CASE(key_is_known_to_the_kernel_as_one_region)
{
	struct region r;
	struct peer *p = target(e);
	int before = kernel_objects(p->os_pid, "mr");

	if (before < 0 || !p->pid)
		case_skip("no rdma tool here, or the target is on another host");
	peer_alloc(p, 0, 8 * 4096, 4);
	before = settled_regions(p->os_pid);
	r = peer_reg(p, 0, 11, 5000, REMOTE_RW, 1);
	must(kernel_objects(p->os_pid, "mr") == before + 1, "not one more kernel region");
	peer_unreg(&r);
	must(kernel_objects(p->os_pid, "mr") == before, "fi_close left a kernel region");
}

/* Without FI_MR_ALLOCATED: nothing is pinned that no peer has asked for. */
IN_MODES(MODE(0) | MODE(10))

CASE(region_is_unknown_to_the_kernel_until_it_is_accessed)
{
	struct buf *b = buf(e, 4096, 1);
	struct peer *p = target(e);
	struct region r;
	int before;

	if (kernel_objects(p->os_pid, "mr") < 0 || !p->pid)
		case_skip("no rdma tool here, or the target is on another host");
	peer_alloc(p, 0, 8 * 4096, 4);
	/* The connection has regions of its own. */
	r = peer_reg(p, 0, 11, 5000, REMOTE_RW, 1);
	access_ok(e, WRITE, b, 0, 100, &r, 0);
	peer_unreg(&r);
	before = kernel_objects(p->os_pid, "mr");
	r = peer_reg(p, 0, 11, 5000, REMOTE_RW, 1);
	must(kernel_objects(p->os_pid, "mr") == before, "registering made a kernel region");
	access_ok(e, WRITE, b, 0, 100, &r, 0);
	must(kernel_objects(p->os_pid, "mr") > before, "reached without a kernel region");
	peer_unreg(&r);
	must(kernel_objects(p->os_pid, "mr") == before, "fi_close left a kernel region");
}
