/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections break at random, in every way, under operations of every kind, and what an
 * operation does is counted at the target: once if it says that it succeeded, at most once if
 * it says that it failed.
 *
 * In a round, operations are started while the fabric holds what is posted; something happens to
 * their connection; and then all of them have to end. Each has a part of the region to itself.
 */
#include <rdma/fi_atomic.h>
#include "breaks.h"

#define CAPS (MRF_CAPS | FI_RMA_EVENT)
#define PARTS 8
#define PART (PAIR_LEN / PARTS)
#define PAIRS 50 /* settings, each with its share of the rounds */
#define START 5u /* what the words of atomic operations hold at first */

enum kind {
	READ,
	WRITE,
	WRITE_DATA,
	INJECT,
	ADD,	   /* the device's own, of one or more elements */
	FETCH_ADD, /* ... that says what was there */
	SWAP,	   /* ... that compares */
	ADD_32,	   /* the agent's */
	PROD,	   /* of 8 bytes: by compare-and-swap where it is alone, else the agent's */
	FETCH_PROD,
	SWAP_32,
	KINDS
};

static const char *const names[KINDS] = { "read",
					  "write",
					  "write with data",
					  "inject",
					  "add",
					  "fetch and add",
					  "compare and swap",
					  "add 32 bits",
					  "multiply",
					  "fetch and multiply",
					  "compare and swap 32 bits" };

struct deed {
	enum kind kind;
	unsigned number; /* which part, and the data that it carries */
	size_t len;
	bool ended;
	int err;
	unsigned done; /* how often, at the target */
	unsigned data; /* how often its data came there */
	uint64_t operand[8], compare[8], result[8];
	char text[200];
};

static struct pair p;
static struct fid_cntr *cntr; /* of the region, or NULL */
static struct deed deeds[PARTS];
static unsigned ndeeds;
static char setting[200]; /* what failures say of it */
static unsigned late;	  /* writes with data that have failed and whose data may still come */
static uint64_t counted;  /* what cntr has to be by what was done until now */
static unsigned unnamed;  /* errors of operations without a context */

/* --- one setting ------------------------------------------------------------------------- */

/* The target forgets where its queue pair stopped. */
static void untell(uint8_t *welcome, size_t len)
{
	ck_assert_uint_ge(len, MRF_PROTO_WELCOME_LEN);
	welcome[28] &= (uint8_t)~MRF_WELCOME_STOPPED;
}

static void reg_counted(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	uint64_t mode = node_ep(&p.b)->domain->space.mode;
	uint64_t flags = mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0;

	must_close(&p.mr->fid);
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(
		fi_mr_reg(p.b.domain, p.dst, PAIR_LEN, REMOTE_RW, 0, PAIR_KEY, flags, &p.mr, NULL),
		0);
	ck_assert_int_eq(fi_mr_bind(p.mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	if (flags)
		ck_assert_int_eq(fi_mr_enable(p.mr), 0);
	p.key = fi_mr_key(p.mr);
}

static void setting_open(void)
{
	static const int modes[] = { FI_MR_ALLOCATED, 0,
				     FI_MR_BASIC,     FI_MR_LOCAL | FI_MR_ALLOCATED,
				     FI_MR_RMA_EVENT, FI_MR_RMA_EVENT | FI_MR_ALLOCATED };
	struct node_opt opt = { .mr_mode = modes[any(6)], .caps = CAPS };
	bool events = opt.mr_mode & FI_MR_RMA_EVENT || one_in(3);

	if (!events)
		opt.caps = MRF_CAPS;
	fake.packets = !one_in(4);
	fake.retries_unknown = one_in(6);
	fake.flush_local = one_in(3);
	fake.max_msg_size = one_in(3) ? 4096 : 8u << 20;
	fake.on_accept = one_in(6) ? untell : NULL;
	fake.on_send = on_send;
	snprintf(setting, sizeof(setting),
		 "seed %u (mode 0x%x, %sevents, %spackets, %sretries, %s, messages of %zu, %s)",
		 seed, opt.mr_mode, events ? "" : "no ", fake.packets ? "" : "no ",
		 fake.retries_unknown ? "no " : "", fake.flush_local ? "6.12" : "6.1",
		 fake.max_msg_size, fake.on_accept ? "untold" : "told");
	pair_open(&p, &opt);
	cntr = NULL;
	if (events)
		reg_counted();
	counted = 0;
	pair_write(&p, 0, 8);
	want_ok(&p.a, NULL);
	counted += events;
}

static void setting_close(void)
{
	if (cntr)
		must_close(&cntr->fid);
	pair_close(&p);
}

/* --- what is done ---------------------------------------------------------------------- */

static uint8_t *part(const struct deed *deed)
{
	return p.dst + deed->number * PART;
}

static uint64_t remote(const struct deed *deed)
{
	return p.base + deed->number * PART;
}

static size_t elements(const struct deed *deed)
{
	return deed->len / (deed->kind == ADD_32 || deed->kind == SWAP_32 ? 4 : 8);
}

static void values(void *buf, const struct deed *deed, unsigned value)
{
	size_t i;

	for (i = 0; i < elements(deed); i++) {
		if (deed->kind == ADD_32 || deed->kind == SWAP_32)
			((uint32_t *)buf)[i] = value;
		else
			((uint64_t *)buf)[i] = value;
	}
}

static bool is_atomic(const struct deed *deed)
{
	return deed->kind >= ADD;
}

static bool fetches(const struct deed *deed)
{
	return deed->kind == FETCH_ADD || deed->kind == SWAP || deed->kind == FETCH_PROD ||
	       deed->kind == SWAP_32;
}

static void prepare(struct deed *deed)
{
	uint8_t words[64];

	if (deed->kind == READ) {
		memset(p.src + deed->number * PART, 0, PART);
		fill(part(deed), PART, seed + round_no);
		return;
	}
	fill(p.src + deed->number * PART, PART, round_no);
	memset(part(deed), 0, PART);
	if (!is_atomic(deed))
		return;
	values(words, deed, START);
	memcpy(part(deed), words, deed->len);
	values(deed->operand, deed,
	       deed->kind == PROD || deed->kind == FETCH_PROD ? 3
	       : deed->kind == SWAP || deed->kind == SWAP_32  ? 9
							      : 1);
	values(deed->compare, deed, START);
}

static ssize_t start_access(struct deed *deed)
{
	uint8_t *here = p.src + deed->number * PART;

	switch (deed->kind) {
	case READ:
		return fi_read(p.a.ep, here, deed->len, p.desc, p.to, remote(deed), p.key, deed);
	case WRITE:
		return fi_write(p.a.ep, here, deed->len, p.desc, p.to, remote(deed), p.key, deed);
	case WRITE_DATA:
		return fi_writedata(p.a.ep, here, deed->len, p.desc,
				    round_no * PARTS + deed->number, p.to, remote(deed), p.key,
				    deed);
	default:
		return fi_inject_write(p.a.ep, here, deed->len, p.to, remote(deed), p.key);
	}
}

/* Buffers of atomic operations are registered where the mode wants it: src has them. */
static void *lend(struct deed *deed, const void *from, size_t at)
{
	uint8_t *buf = p.src + deed->number * PART + at;

	memcpy(buf, from, deed->len);
	return buf;
}

static ssize_t start_atomic(struct deed *deed)
{
	void *operand = lend(deed, deed->operand, 0), *compare = lend(deed, deed->compare, 64);
	void *result = lend(deed, deed->result, 128);
	size_t n = elements(deed);
	uint64_t at = remote(deed);

	switch (deed->kind) {
	case ADD:
	case ADD_32:
		return fi_atomic(p.a.ep, operand, n, p.desc, p.to, at, p.key,
				 deed->kind == ADD ? FI_UINT64 : FI_UINT32, FI_SUM, deed);
	case FETCH_ADD:
		return fi_fetch_atomic(p.a.ep, operand, n, p.desc, result, p.desc, p.to, at, p.key,
				       FI_UINT64, FI_SUM, deed);
	case PROD:
		return fi_atomic(p.a.ep, operand, n, p.desc, p.to, at, p.key, FI_UINT64, FI_PROD,
				 deed);
	case FETCH_PROD:
		return fi_fetch_atomic(p.a.ep, operand, n, p.desc, result, p.desc, p.to, at, p.key,
				       FI_UINT64, FI_PROD, deed);
	default:
		return fi_compare_atomic(
			p.a.ep, operand, n, p.desc, compare, p.desc, result, p.desc, p.to, at,
			p.key, deed->kind == SWAP ? FI_UINT64 : FI_UINT32, FI_CSWAP, deed);
	}
}

static void start(unsigned number)
{
	struct deed *deed = &deeds[number];
	size_t len = 8 + 8 * any(4);
	ssize_t ret;

	*deed = (struct deed){ .kind = any(KINDS), .number = number };
	if (!is_atomic(deed))
		len = deed->kind == INJECT ? 1 + any(256)
		      : one_in(2)	   ? 1 + any(300)
					   : 1 + any(PART);
	deed->len = one_in(2) && is_atomic(deed) ? 8 : len;
	prepare(deed);
	ret = is_atomic(deed) ? start_atomic(deed) : start_access(deed);
	ck_assert_msg(!ret, "%s, round %u: %s: %zd", setting, round_no, names[deed->kind], ret);
}

/* --- what became of it ----------------------------------------------------------------- */

static struct deed *deed_of(const void *context)
{
	const struct deed *deed = context;

	ck_assert(deed >= deeds && deed < deeds + ndeeds && !deed->ended);
	return &deeds[deed - deeds];
}

static void take_error(void)
{
	struct fi_cq_err_entry e = { 0 };
	struct deed *deed;

	ck_assert_int_eq(fi_cq_readerr(p.a.cq, &e, 0), 1);
	if (!e.op_context) {
		unnamed++;
		return;
	}
	deed = deed_of(e.op_context);
	deed->ended = true;
	deed->err = e.err;
	snprintf(deed->text, sizeof(deed->text), "%s", e.err_data ? (char *)e.err_data : "");
}

/* Of injected writes only errors are told. */
static bool drained(void)
{
	bool idle = node_idle(&p.a);
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(p.a.cq, &entry, 1)) == -FI_EAVAIL)
		take_error();
	ck_assert_int_eq(ret, -FI_EAGAIN);
	return idle;
}

static void take_ends(void)
{
	struct fi_cq_data_entry entry;
	unsigned left = 0, i;
	ssize_t ret;

	for (i = 0; i < ndeeds; i++)
		left += deeds[i].kind != INJECT;
	while (left) {
		unsigned before = unnamed;

		ret = fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS);
		ck_assert_msg(ret == 1 || ret == -FI_EAVAIL,
			      "%s, round %u: %u operations never end (%zd)", setting, round_no,
			      left, ret);
		if (ret == 1)
			deed_of(entry.op_context)->ended = true;
		else
			take_error();
		left -= unnamed == before;
	}
	want_soon(drained());
}

/* Of a write in several parts the last one counts: what was not whole may be begun again. */
static unsigned writes(const struct deed *deed)
{
	uintptr_t from = (uintptr_t)part(deed), end = from + deed->len;
	unsigned n = 0;

	for (size_t i = 0; i < fake_nlog(); i++) {
		const struct fake_done *done = &fake.log[i];

		n += (done->op == MRF_VWR_WRITE || done->op == MRF_VWR_WRITE_IMM) &&
		     done->addr >= from && done->addr + done->len == end;
	}
	return n;
}

/* Of one element; UINT_MAX: it holds something that it never should. */
static unsigned changes(const struct deed *deed, uint64_t value)
{
	unsigned n = 0;

	if (deed->kind == SWAP || deed->kind == SWAP_32)
		return value == START ? 0 : value == 9 ? 1 : UINT32_MAX;
	if (deed->kind != PROD && deed->kind != FETCH_PROD)
		return (unsigned)(value - START);
	for (; value != START && value % 3 == 0; value /= 3)
		n++;
	return value == START ? n : UINT32_MAX;
}

/* Elements are done one by one: as often as the last one; none was done twice. */
static unsigned atomics(const struct deed *deed)
{
	uint8_t words[64];
	unsigned n = 0;
	size_t i;

	fake_copy(words, part(deed), deed->len);
	for (i = 0; i < elements(deed); i++) {
		uint64_t value = deed->kind == ADD_32 || deed->kind == SWAP_32
					 ? ((uint32_t *)words)[i]
					 : ((uint64_t *)words)[i];

		n = changes(deed, value);
		ck_assert_msg(n <= 1, "%s, round %u: %s: element %zu was done %u times: %s",
			      setting, round_no, names[deed->kind], i, n, deed->text);
	}
	return n;
}

static void check_bytes(struct deed *deed)
{
	const uint8_t *here = p.src + deed->number * PART;
	uint64_t was[8];

	if (deed->err)
		return;
	if (!is_atomic(deed)) {
		ck_assert_msg(!memcmp(here, part(deed), deed->len), "%s, round %u: %s: bytes",
			      setting, round_no, names[deed->kind]);
	} else if (fetches(deed)) {
		values(was, deed, START);
		ck_assert_msg(!memcmp(here + 128, was, deed->len), "%s, round %u: %s: results",
			      setting, round_no, names[deed->kind]);
	}
}

static void check(struct deed *deed)
{
	bool must = deed->kind != INJECT && deed->kind != READ && !deed->err;

	if (deed->kind != READ)
		deed->done = is_atomic(deed) ? atomics(deed) : writes(deed);
	if (deed->kind == WRITE_DATA) {
		ck_assert_msg(deed->data == must || (deed->err && deed->data <= 1),
			      "%s, round %u: data came %u times of a write that ended with %d: %s",
			      setting, round_no, deed->data, deed->err, deed->text);
		if (cntr)
			deed->done = deed->done > 1 ? 1 : deed->done;
	}
	ck_assert_msg(deed->done <= 1 && deed->done >= must,
		      "%s, round %u: %s of %zu bytes was done %u times and ended with %d: %s",
		      setting, round_no, names[deed->kind], deed->len, deed->done, deed->err,
		      deed->text);
	if (strstr(deed->text, "was done, but"))
		ck_assert_uint_eq(deed->done, 1);
	if (deed->kind != INJECT)
		check_bytes(deed);
}

/*
 * Immediate data come with the last bytes, or behind them where the target counts: then what has
 * been written without them may be written again.
 */
static void take_data(void)
{
	unsigned must = 0, i;
	struct fi_cq_data_entry entry;
	struct deed *deed;

	for (i = 0; i < ndeeds; i++)
		must += deeds[i].kind == WRITE_DATA && !deeds[i].err;
	while (fi_cq_sread(p.b.cq, &entry, 1, NULL, must ? LONG_MS : 1) == 1) {
		if (entry.data / PARTS < round_no) {
			/* Of a write that had failed, and was on its way nevertheless. */
			ck_assert_uint_gt(late--, 0);
			continue;
		}
		ck_assert_uint_eq(entry.data / PARTS, round_no);
		deed = &deeds[entry.data % PARTS];
		/* Those of a write that failed may come, and nobody waits for them. */
		must -= must && !deed->err;
		deed->data++;
	}
	for (i = 0; i < ndeeds; i++)
		late += deeds[i].kind == WRITE_DATA && !deeds[i].data;
}

/* The region's counter: what was done is in it, and nothing twice. */
static void check_count(void)
{
	int64_t end;
	unsigned i;

	for (i = 0; i < ndeeds; i++)
		counted += deeds[i].done;
	if (!cntr)
		return;
	end = mrf_now_ms() + LONG_MS;
	while (fi_cntr_read(cntr) < counted && mrf_now_ms() < end)
		usleep(500);
	ck_assert_msg(fi_cntr_read(cntr) == counted && !fi_cntr_readerr(cntr),
		      "%s, round %u: %lu counted, %lu done", setting, round_no, fi_cntr_read(cntr),
		      counted);
}

static void check_all(void)
{
	unsigned i, lost = 0;

	take_data();
	for (i = 0; i < ndeeds; i++) {
		check(&deeds[i]);
		lost += deeds[i].kind == INJECT && !deeds[i].done;
	}
	ck_assert_msg(lost <= unnamed, "%s, round %u: %u injected writes were not done, %u said so",
		      setting, round_no, lost, unnamed);
	check_count();
}

/* --- rounds ------------------------------------------------------------------------------- */

static void round_run(void)
{
	unsigned i;

	ndeeds = one_in(3) ? 1 : 1 + any(PARTS);
	unnamed = 0;
	forget_log();
	fake_hold(true);
	if (one_in(3))
		fake_hold_all(true);
	for (i = 0; i < ndeeds; i++)
		start(i);
	break_some(&p.b, true, ndeeds + 1, fake_break);
	fake_hold_all(false);
	take_ends();
	fake_heal();
	refuse(0);
	/* A request that the target has received is done after its operation has failed, too. */
	node_heard(&p.b);
	check_all();
}

START_TEST(what_breaks_is_done_once_or_says_so)
{
	if (!setting_begin((unsigned)_i, PAIRS))
		return;
	setting_open();
	for (round_no = 1; round_no <= rounds_of(PAIRS); round_no++)
		round_run();
	/* What was told last must not come in the middle of what is done next. */
	node_heard(&p.b);
	/* Nothing of all that stays. */
	forget_log();
	pair_write(&p, 0, 8);
	want_ok(&p.a, NULL);
	setting_close();
}
END_TEST

static TCase *tcase_breaks(void)
{
	TCase *tc = tcase_create("breaks");

	tcase_set_timeout(tc, 600);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, what_breaks_is_done_once_or_says_so, 0, PAIRS);
	return tc;
}

UNIT_MAIN("breaks", tcase_breaks)
