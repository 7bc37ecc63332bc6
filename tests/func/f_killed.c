/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that are killed at some moment (victims.h) transfer in both directions with one that
 * survives. Whatever the survivor had begun with one ends in time, the next one finds it in
 * order, and in the end it has the kernel objects that it had before the first.
 *
 * Beside reads and writes there are, in some of the parts, atomic operations, a counter
 * of what modifies the survivor's region, an authorization key, and committed writes.
 * What victims knew to be done is in sums and count then, and nothing that they never
 * began. In the last parts what all of them register is memory of a device; in some of these there
 * are also writes with data of which half goes to the device and half to the host.
 *
 * 26 moments a case, 10 with devices, 238 in all, or fewer of them (moments).
 */
#include <fcntl.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include "harness.h"
#include "victims.h"
#include "../runtime/rig.h"

#define HEAP_SLACK 32768 /* less than what a single connection takes */
#define MOMENTS 26u
#define DEVICE_MOMENTS 10u
#define AREA 16384ul
#define PIECE 512ul
#define FLYING 8
#define HALF (AREA / 2)	    /* peers read the first half and write the second */
#define SUM AREA	    /* behind it: 8 bytes that the device adds 1 to */
#define PART_SUM (AREA + 8) /* 4 bytes that the agent adds 1 to */
#define WHOLE (AREA + PAGE) /* what is registered */
#define SIDE HALF	    /* bytes of the host that are registered beside a device's */
#define DEVICE_NUMBER 1	    /* not the first, which a number that is forgotten would be */

#define SURVIVOR_SEED 11
#define VICTIM_SEED 22
/* Words that victim number n writes. */
#define WORD(n) (0xdeadull << 48 | (uint64_t)(n))

/* What there is beside reads and writes. */
enum { ATOMICS = 1, COUNTED = 2, KEYED = 4, COMMITTED = 8, DEVICE = 16, MIXED = 32 };
static const unsigned extras[] = { [1] = 0,
				   [2] = ATOMICS,
				   [3] = COUNTED,
				   [4] = KEYED,
				   [5] = ATOMICS | COUNTED,
				   [6] = ATOMICS | KEYED | COMMITTED,
				   [7] = COUNTED | COMMITTED,
				   [8] = ATOMICS | COUNTED | KEYED | COMMITTED,
				   [9] = DEVICE | MIXED,
				   [10] = DEVICE | ATOMICS | COUNTED | KEYED,
				   [11] = DEVICE | MIXED | ATOMICS | COUNTED };
static unsigned extra;	 /* of the part that runs */
static unsigned runtime; /* likewise, of the device: number of its rig */

/* Operations, and which of them modify. */
enum kind { READS, WRITES, COMMITS, SUMS, PART_SUMS, MIXES, KINDS };

/* What peers need to know of a process. */
struct card {
	bool commits;  /* the region is persistent */
	char file[64]; /* that it is in, if it can be */
	char name[NAME_LEN];
	uint64_t key, base;
	uint64_t side_key, side_base;
};

struct shared {
	struct victims v;
	struct card survivor;
	struct card victim;
	/* Of each kind: all that victims began, and what they had completions of. */
	atomic_ulong begun[KINDS], known[KINDS];
};

static struct shared *sh;

/* --- one process's side ------------------------------------------------------------- */

struct self {
	struct fab fab;
	uint8_t *area;	       /* of WHOLE bytes, registered for the others */
	const struct rig *rig; /* it is memory of a device; or NULL */
	struct fid_mr *mr;
	uint8_t *side; /* of SIDE bytes of the host, likewise; or NULL */
	struct fid_mr *side_mr;
	unsigned long data;    /* that came with writes */
	struct fid_cntr *cntr; /* of the survivor's region, or NULL */
	bool victim;
	struct buf buf; /* what comes and goes; PIECE bytes for each in flight */
	bool busy[FLYING];
	enum kind kind[FLYING];
	unsigned flying;
	uint64_t state; /* of rnd */
};

static uint8_t *map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *mem = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, WHOLE))
		mem = mmap(NULL, WHOLE, RW, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return mem == MAP_FAILED ? NULL : mem;
}

static int reg(struct self *s, uint64_t flags)
{
	const struct iovec iov = { s->area, WHOLE };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = REMOTE_RW, .requested_key = 7
	};

	if (s->rig)
		rig_attr(s->rig, DEVICE_NUMBER, &attr);
	return fi_mr_regattr(s->fab.domain, &attr, flags, &s->mr);
}

static void area_of_device(struct self *s)
{
	static const uint8_t zero[WHOLE];
	struct rig_control control;

	s->rig = rig_load((int)runtime, &control);
	s->area = s->rig->make(RT_DEVICE, DEVICE_NUMBER, WHOLE);
	must(s->area, "the device has no memory");
	s->rig->put(s->area, zero, WHOLE);
	must_ok(reg(s, 0));
}

/* In a file, if files can be registered so that writes to them are committed. */
static void area_of_host(struct self *s, struct card *card)
{
	s->area = extra & COMMITTED ? map_file(card->file) : NULL;
	if (s->area && !reg(s, FI_RMA_PMEM)) {
		card->commits = true;
		return;
	}
	s->area = mmap(NULL, WHOLE, RW, ANON, -1, 0);
	must(s->area != MAP_FAILED, "no memory");
	must_ok(reg(s, 0));
}

static void area_open(struct self *s, struct card *card)
{
	card->commits = false;
	if (extra & DEVICE)
		area_of_device(s);
	else
		area_of_host(s, card);
}

static void side_open(struct self *s, struct card *card)
{
	s->side = mmap(NULL, SIDE, RW, ANON, -1, 0);
	must(s->side != MAP_FAILED, "no memory");
	must_ok(fi_mr_reg(s->fab.domain, s->side, SIDE, REMOTE_RW, 0, 8, 0, &s->side_mr, NULL));
	fab_ready(&s->fab, s->side_mr);
	card->side_key = fi_mr_key(s->side_mr);
	card->side_base = s->fab.virt ? (uint64_t)(uintptr_t)s->side : 0;
}

static void area_fill(struct self *s, uint64_t seed)
{
	uint8_t half[HALF];

	pattern(half, seed, 0, HALF);
	if (s->rig)
		s->rig->put(s->area, half, HALF);
	else
		memcpy(s->area, half, HALF);
}

/* Of a device's memory a copy, as it is now. */
static const uint8_t *area_bytes(const struct self *s)
{
	static uint64_t copy[WHOLE / 8];

	if (!s->rig)
		return s->area;
	s->rig->get(copy, s->area, WHOLE);
	return (const uint8_t *)copy;
}

static void self_open(struct self *s, const struct mode *mode, uint64_t seed, struct card *card)
{
	struct fab_opt opt = { .hmem = extra & DEVICE };

	if (extra & KEYED)
		snprintf(opt.auth_key, sizeof(opt.auth_key), "known to all of them");
	fab_open(&s->fab, mode, &opt);
	area_open(s, card);
	area_fill(s, seed);
	fab_ready(&s->fab, s->mr);
	if (extra & MIXED)
		side_open(s, card);
	fab_buf(&s->fab, &s->buf, FLYING * PIECE, 3);
	memcpy(card->name, s->fab.name, sizeof(card->name));
	card->key = fi_mr_key(s->mr);
	card->base = s->fab.virt ? (uint64_t)(uintptr_t)s->area : 0;
}

static void self_close(struct self *s)
{
	fab_buf_close(&s->buf);
	if (s->cntr)
		must_ok(fi_close(&s->cntr->fid));
	must_ok(fab_mr_close(&s->fab, s->mr));
	if (s->side_mr)
		must_ok(fab_mr_close(&s->fab, s->side_mr));
	fab_close(&s->fab);
}

static enum kind choose(struct self *s, const struct card *other)
{
	uint64_t n = rnd(&s->state);

	if (extra & ATOMICS && n % 3 == 0)
		return n >> 8 & 1 ? SUMS : PART_SUMS;
	if (n >> 9 & 1)
		return READS;
	if (extra & MIXED && n >> 11 & 1)
		return MIXES;
	return other->commits && n >> 10 & 1 ? COMMITS : WRITES;
}

static ssize_t write_to(struct self *s, const struct op *op, const struct fi_rma_iov *to, size_t n,
			uint64_t flags)
{
	struct iovec iov = { op->buf->mem + op->off, op->len };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &op->buf->desc,
				  .iov_count = 1,
				  .addr = op->to,
				  .rma_iov = to,
				  .rma_iov_count = n,
				  .data = *(const uint32_t *)iov.iov_base,
				  .context = op->ctx };

	return fi_writemsg(s->fab.ep, &msg, FI_COMPLETION | flags);
}

static ssize_t commit(struct self *s, const struct op *op)
{
	const struct fi_rma_iov to = { op->addr, op->len, op->key };

	return write_to(s, op, &to, 1, FI_COMMIT_COMPLETE);
}

/* The second half to the same place of the other one's host memory. */
static ssize_t mix(struct self *s, const struct op *op, const struct card *other)
{
	uint64_t place = op->addr - other->base - HALF, half = op->len / 2;
	const struct fi_rma_iov to[] = { { op->addr, half, op->key },
					 { other->side_base + place, half, other->side_key } };

	return write_to(s, op, to, 2, FI_REMOTE_CQ_DATA);
}

static ssize_t add_one(struct self *s, const struct op *op, bool part)
{
	return fi_atomic(s->fab.ep, op->buf->mem + op->off, 1, op->buf->desc, op->to, op->addr,
			 op->key, part ? FI_UINT32 : FI_UINT64, FI_SUM, op->ctx);
}

static ssize_t try_kind(struct self *s, const struct op *op, const struct card *other,
			enum kind kind)
{
	switch (kind) {
	case COMMITS:
		return commit(s, op);
	case MIXES:
		return mix(s, op, other);
	case SUMS:
	case PART_SUMS:
		return add_one(s, op, kind == PART_SUMS);
	case READS:
	case WRITES:
	case KINDS:
		break;
	}
	return op_post(&s->fab, op);
}

static ssize_t post_kind(struct self *s, const struct op *op, const struct card *other,
			 enum kind kind)
{
	long end = now_ms() + SOON;
	ssize_t rc;

	do {
		rc = try_kind(s, op, other, kind);
	} while (rc == -FI_EAGAIN && !fi_cq_read(s->fab.cq, NULL, 0) && now_ms() < end);
	return rc;
}

/* Where in the other one's area, what at the place of ours. */
static void prepare(struct self *s, struct op *op, enum kind kind, uint64_t number)
{
	uint64_t *words = (uint64_t *)(s->buf.mem + op->off);
	uint64_t piece = rnd(&s->state) % (HALF / PIECE) * PIECE;

	op->read = kind == READS;
	if (kind == SUMS || kind == PART_SUMS) {
		op->addr += kind == SUMS ? SUM : PART_SUM;
		words[0] = 1;
		return;
	}
	op->addr += piece + (op->read ? 0 : HALF);
	for (size_t i = 0; i < PIECE / 8; i++)
		words[i] = op->read ? 0 : number;
}

/* One more in flight; number fills what is written. */
static void post_one(struct self *s, fi_addr_t to, const struct card *other, uint64_t number,
		     enum kind kind)
{
	unsigned slot = 0;
	struct op op = {
		.buf = &s->buf, .len = PIECE, .to = to, .addr = other->base, .key = other->key
	};

	while (s->busy[slot])
		slot++;
	op.off = slot * PIECE;
	op.ctx = &s->busy[slot];
	prepare(s, &op, kind, number);
	if (s->victim)
		atomic_fetch_add(&sh->begun[kind], 1);
	must_ok(post_kind(s, &op, other, kind));
	s->busy[slot] = true;
	s->kind[slot] = kind;
	s->flying++;
}

static void post(struct self *s, fi_addr_t to, const struct card *other, uint64_t number)
{
	post_one(s, to, other, number, choose(s, other));
}

/* What was read is the other one's pattern, at one place or another. */
static bool is_pattern(const uint8_t *got, uint64_t seed)
{
	uint8_t want[PIECE];

	for (uint64_t at = 0; at < HALF; at += PIECE) {
		pattern(want, seed, at, PIECE);
		if (!memcmp(want, got, PIECE))
			return true;
	}
	return false;
}

/* True when one has ended; *err tells how. */
static bool take(struct self *s, uint64_t seed, int *err)
{
	unsigned slot;
	struct done d;

	if (!fab_poll(&s->fab, &d))
		return false;
	if (d.flags & FI_REMOTE_CQ_DATA) {
		must(s->victim ? !d.data : d.data && d.data <= atomic_load(&sh->v.current),
		     "data are 0x%llx, which nobody sent", (unsigned long long)d.data);
		s->data++;
		return false;
	}
	slot = (unsigned)((bool *)d.ctx - s->busy);
	must(slot < FLYING && s->busy[slot], "a completion of nothing: %p", d.ctx);
	s->busy[slot] = false;
	s->flying--;
	*err = d.err;
	if (!d.err && s->victim)
		atomic_fetch_add(&sh->known[s->kind[slot]], 1);
	if (!d.err && s->kind[slot] == READS)
		must(is_pattern(s->buf.mem + slot * PIECE, seed),
		     "a read brought what is not there");
	return true;
}

/* --- the victim --------------------------------------------------------------------- */

static void __attribute__((noreturn)) victim(const struct mode *mode, unsigned number)
{
	struct self s = { .state = number, .victim = true };
	enum role role = atomic_load(&sh->v.role);
	fi_addr_t to;
	int err;

	self_open(&s, mode, VICTIM_SEED, &sh->victim);
	atomic_store(&sh->v.victim_there, true);
	to = fab_insert(&s.fab, sh->survivor.name);
	for (;;) {
		while (role != SURVIVOR_ONLY && s.flying < FLYING)
			post(&s, to, &sh->survivor, WORD(number));
		if (!take(&s, SURVIVOR_SEED, &err)) {
			usleep(200);
			continue;
		}
		must(!err, "victim %u: err %d (%s) while both were well", number, err,
		     fi_strerror(err));
		atomic_fetch_add(&sh->v.served_by_victim, 1);
	}
}

/* --- the survivor ------------------------------------------------------------------- */

/* All that victims knew of, and no more than they began. */
static void between(const char *what, uint64_t value, uint64_t known, uint64_t begun)
{
	must(value >= known && value <= begun,
	     "%s is %lu, of %lu that victims began and %lu that they knew to be done", what,
	     (unsigned long)value, (unsigned long)begun, (unsigned long)known);
}

static uint64_t modified(const atomic_ulong *of)
{
	uint64_t n = 0;

	for (int kind = WRITES; kind < KINDS; kind++)
		n += atomic_load(&of[kind]);
	return n;
}

/* What the last one knew to be done may still be on its way to the counter. */
static void look_at_sums(const struct self *s)
{
	const atomic_ulong *begun = sh->begun, *known = sh->known;
	const uint8_t *area = area_bytes(s);
	uint64_t sum;
	uint32_t part;

	memcpy(&sum, area + SUM, sizeof(sum));
	memcpy(&part, area + PART_SUM, sizeof(part));
	between("the sum", sum, atomic_load(&known[SUMS]), atomic_load(&begun[SUMS]));
	between("the agent's sum", part, atomic_load(&known[PART_SUMS]),
		atomic_load(&begun[PART_SUMS]));
	if (!s->cntr)
		return;
	must_ok(fi_cntr_wait(s->cntr, modified(known), IN_TIME));
	between("the count", fi_cntr_read(s->cntr), modified(known), modified(begun));
}

/* Likewise, on its way to the queue. */
static void look_at_data(struct self *s)
{
	unsigned long known = atomic_load(&sh->known[MIXES]);
	long end = now_ms() + IN_TIME;
	int err;

	while (s->data < known && now_ms() < end)
		must(!take(s, 0, &err), "a completion too many");
	between("the number of data", s->data, known, atomic_load(&sh->begun[MIXES]));
}

static void look_at_words(const void *half, const char *where, unsigned number)
{
	const uint64_t *words = half;

	for (size_t i = 0; i < HALF / 8; i++)
		must(!words[i] || (words[i] >= WORD(1) && words[i] <= WORD(number)),
		     "word %zu %s is 0x%llx, which nobody wrote", i, where,
		     (unsigned long long)words[i]);
}

/* Only victims up to this one have written, in their half, whole words. */
static void look(const struct self *s, unsigned number)
{
	const uint8_t *area = area_bytes(s);
	uint8_t want[HALF];

	pattern(want, SURVIVOR_SEED, 0, HALF);
	must(!memcmp(want, area, HALF), "what victims may only read has changed");
	look_at_words(area + HALF, "of the area", number);
	if (s->side)
		look_at_words(s->side, "of the host", number);
}

static void finish_in_time(struct self *s, unsigned number)
{
	long killed = now_ms();
	int err;

	while (s->flying) {
		must(now_ms() - killed < IN_TIME,
		     "victim %u: %u operations go on %ld ms "
		     "after its end",
		     number, s->flying, now_ms() - killed);
		if (!take(s, VICTIM_SEED, &err))
			usleep(200);
		else if (err)
			victims_error(number, err);
	}
	victims_ended(killed);
}

/* As long as it lives; then until all that was begun has ended. */
static void deal_with(struct self *s, unsigned number)
{
	enum role role = atomic_load(&sh->v.role);
	fi_addr_t to;
	int err;

	if (!victims_met())
		return;
	to = fab_insert(&s->fab, sh->victim.name);
	while (!atomic_load(&sh->v.killed)) {
		while (role != VICTIM_ONLY && s->flying < FLYING)
			post(s, to, &sh->victim, WORD(0));
		if (!take(s, VICTIM_SEED, &err)) {
			usleep(200);
			continue;
		}
		if (err)
			victims_error(number, err);
		else
			atomic_fetch_add(&sh->v.served_by_survivor, 1);
	}
	/* What is begun after its end has to end as well. */
	if (s->flying < FLYING)
		post(s, to, &sh->victim, WORD(0));
	finish_in_time(s, number);
	must_ok(fi_av_remove(s->fab.av, &to, 1, 0));
}

static void count_from_here(struct self *s)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };

	must_ok(fi_cntr_open(s->fab.domain, &attr, &s->cntr, NULL));
	must_ok(fi_mr_bind(s->mr, &s->cntr->fid, FI_REMOTE_WRITE));
}

/* Its agent has then what it needs for all that is to come, and keeps. */
static void add_to_itself(struct self *s)
{
	fi_addr_t to = fab_insert(&s->fab, s->fab.name);

	s->victim = true;
	post_one(s, to, &sh->survivor, 0, PART_SUMS);
	s->victim = false;
	fab_wait_ok(&s->fab, 1);
	s->flying = 0;
	s->busy[0] = false;
	atomic_fetch_add(&sh->known[PART_SUMS], 1);
}

static void survivor(const struct mode *mode)
{
	struct self s = { .state = 77 };
	unsigned number = 0;

	self_open(&s, mode, SURVIVOR_SEED, &sh->survivor);
	if (extra & COUNTED)
		count_from_here(&s);
	if (extra & ATOMICS)
		add_to_itself(&s);
	atomic_store(&sh->v.survivor_there, true);
	while ((number = victims_next(number))) {
		deal_with(&s, number);
		look(&s, number);
		look_at_sums(&s);
		look_at_data(&s);
		victims_done(number);
	}
	self_close(&s);
}

/* --- the worker --------------------------------------------------------------------- */

/* A few more than WARM, where kernels and other suites share the work. */
static unsigned moments(void)
{
	const char *share = getenv("MRFAB_FUNC_SHARE");
	bool all = !share || !strcmp(share, "all");

	if (extra & DEVICE)
		return all ? DEVICE_MOMENTS : WARM + 1;
	return all ? MOMENTS : WARM + 2;
}

static void files_name(void)
{
	snprintf(sh->survivor.file, sizeof(sh->survivor.file), "/var/tmp/f_killed.%d.survivor",
		 getpid());
	snprintf(sh->victim.file, sizeof(sh->victim.file), "/var/tmp/f_killed.%d.victim", getpid());
}

static void files_remove(void)
{
	unlink(sh->survivor.file);
	unlink(sh->victim.file);
}

static void survivor_outlives(struct env *e, unsigned part)
{
	struct plan plan = {
		.survivor = survivor, .victim = victim, .part = part, .slack = HEAP_SLACK
	};

	sh = victims_open(sizeof(*sh));
	extra = extras[part];
	runtime = part % RIGS;
	func_caps = (extra & ATOMICS ? FI_ATOMIC : 0) | (extra & COUNTED ? FI_RMA_EVENT : 0) |
		    (extra & COMMITTED ? FI_RMA_PMEM : 0);
	plan.moments = moments();
	files_name();
	at_failure = files_remove;
	victims_run(e, &plan);
	if (extra)
		printf("# killed: victims knew of %lu writes, %lu commits, %lu and %lu "
		       "sums, %lu to both\n",
		       atomic_load(&sh->known[WRITES]), atomic_load(&sh->known[COMMITS]),
		       atomic_load(&sh->known[SUMS]), atomic_load(&sh->known[PART_SUMS]),
		       atomic_load(&sh->known[MIXES]));
	at_failure = NULL;
	files_remove();
	victims_close();
}

/* Each once: what a mode changes, the parts have in common. */
IN_MODES(MODE(0))

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_1)
{
	survivor_outlives(e, 1);
}

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_4)
{
	survivor_outlives(e, 4);
}

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_5)
{
	survivor_outlives(e, 5);
}

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_7)
{
	survivor_outlives(e, 7);
}

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_9)
{
	survivor_outlives(e, 9);
}

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_11)
{
	survivor_outlives(e, 11);
}

IN_MODES(MODE(15))

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_2)
{
	survivor_outlives(e, 2);
}

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_3)
{
	survivor_outlives(e, 3);
}

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_6)
{
	survivor_outlives(e, 6);
}

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_8)
{
	survivor_outlives(e, 8);
}

CASE(peers_killed_at_any_moment_leave_the_survivor_in_order_10)
{
	survivor_outlives(e, 10);
}
