/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As t_breaks, with memory of a device at the target: connections break at random, copies fail or
 * take long, and local regions are closed, under operations that go to a device or to a device and
 * the host. What each does is counted at the target: once if it says that it succeeded, at most once
 * if it failed, and nothing lands after its operation has succeeded.
 *
 * A plain write that nobody counts may be put into the device more than once, as long as the last
 * time is before its end.
 */
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include "ep/link/passive.h"
#include "loop/agent_calls.h"
#include "proto/proto.h"
#include "breaks.h"
#include "device_fixture.h"

#define PARTS 6
#define FAR                                   \
	(MRF_PROTO_STAGES * MRF_PROTO_STAGE + \
	 70000ul)   /* bytes of the device that an operation has */
#define HOST 8192ul /* bytes of the host */
#define PART (FAR + HOST)
#define SETTINGS 50
#define KEY 5
#define START 5u
#define PUTS 4096

enum kind {
	READ,
	WRITE,
	DATA,
	INJECT,
	READ_BOTH, /* from the device and the host */
	WRITE_BOTH,
	ADD,
	FETCH_ADD,
	SWAP,
	KINDS
};

static const char *const names[KINDS] = { "read",   "write",	     "write with data",
					  "inject", "read both",     "write both",
					  "add",    "fetch and add", "compare and swap" };

struct deed {
	enum kind kind;
	unsigned number;
	size_t far, host; /* bytes of the device and of the host */
	bool host_first;
	struct fid_mr *mr; /* of its local buffer alone, or NULL */
	bool ended;
	int err;
	unsigned data;
	char text[200];
};

static uint8_t *dev, *mem; /* PARTS parts each */
static struct fid_mr *dev_mr, *mem_mr;
static uint64_t key, base;
static struct fid_cntr *far_cntr, *host_cntr; /* of the regions; NULL: nothing is counted */
static uint64_t far_before, host_before;
static struct deed deeds[PARTS];
static unsigned ndeeds, unnamed;
static unsigned late; /* writes with data that have failed and whose data may still come */
static char setting[200];
static uint8_t seen[FAR + 1]; /* a part of the device, as it is */

#define SAYS "%s, round %u: %s of %zu + %zu bytes that ended with %d (%s): "
#define SAID(deed) \
	setting, round_no, names[(deed)->kind], (deed)->far, (deed)->host, (deed)->err, (deed)->text

/* --- what is put into the device ---------------------------------------------------------- */

static pthread_mutex_t puts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t from, end;
} puts_done[PUTS];
static unsigned nputs;

static void note_put(uint64_t addr, uint64_t len)
{
	pthread_mutex_lock(&puts_lock);
	ck_assert_uint_lt(nputs, PUTS);
	puts_done[nputs].from = addr;
	puts_done[nputs++].end = addr + len;
	pthread_mutex_unlock(&puts_lock);
}

#define STORED note_put
#include "held_copy.h"

/* How often this byte was put there. */
static unsigned puts_of(const uint8_t *byte)
{
	uint64_t addr = (uintptr_t)byte;
	unsigned n = 0, i;

	pthread_mutex_lock(&puts_lock);
	for (i = 0; i < nputs; i++)
		n += puts_done[i].from <= addr && addr < puts_done[i].end;
	pthread_mutex_unlock(&puts_lock);
	return n;
}

/* --- one setting ------------------------------------------------------------------------- */

static struct fid_cntr *count(struct fid_mr *mr)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;

	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	return cntr;
}

static void setting_open(void)
{
	static const int modes[] = { 0, FI_MR_ALLOCATED, FI_MR_ALLOCATED | FI_MR_LOCAL,
				     FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY,
				     FI_MR_PROV_KEY | FI_MR_ALLOCATED };
	int mode = modes[any(5)], runtime = (int)any(RIGS);
	bool events = one_in(2);

	fake.packets = !one_in(4);
	fake.retries_unknown = one_in(6);
	fake.flush_local = one_in(3);
	fake.max_msg_size = one_in(3) ? 4096 : 8u << 20;
	fake.on_send = on_send;
	snprintf(setting, sizeof(setting),
		 "seed %u (mode 0x%x, runtime %d, %sevents, %spackets, %s)", seed, mode, runtime,
		 events ? "" : "no ", fake.packets ? "" : "no ", fake.flush_local ? "6.12" : "6.1");
	open_pair(runtime, mode, events ? CAPS | FI_RMA_EVENT : CAPS);
	dev = rig->make(RT_DEVICE, 0, PARTS * FAR);
	dev_mr = reg_device(&p.b, dev, PARTS * FAR, REMOTE_RW, KEY);
	key = fi_mr_key(dev_mr);
	base = mode & FI_MR_VIRT_ADDR ? (uintptr_t)dev : 0;
	mem = pages(PARTS * PART);
	mem_mr = node_reg(&p.a, mem, PARTS * PART, FI_READ | FI_WRITE, 8);
	far_cntr = events ? count(dev_mr) : NULL;
	host_cntr = events ? count(p.mr) : NULL;
	late = 0;
}

static void setting_close(void)
{
	if (far_cntr) {
		must_close(&far_cntr->fid);
		must_close(&host_cntr->fid);
	}
	must_close(&mem_mr->fid);
	must_close(&dev_mr->fid);
	rig->unmake(RT_DEVICE, dev);
	pair_close(&p);
}

/* --- the operations ------------------------------------------------------------------------ */

static uint8_t *far_of(const struct deed *deed)
{
	return dev + deed->number * FAR;
}

static uint8_t *host_of(const struct deed *deed)
{
	return p.dst + deed->number * HOST;
}

static uint8_t *here_of(const struct deed *deed)
{
	return mem + deed->number * PART;
}

/* Where the device's, and the host's, bytes are in the local buffer. */
static uint8_t *here_far(const struct deed *deed)
{
	return here_of(deed) + (deed->host_first ? deed->host : 0);
}

static uint8_t *here_host(const struct deed *deed)
{
	return here_of(deed) + (deed->host_first ? 0 : deed->far);
}

static bool is_atomic(const struct deed *deed)
{
	switch (deed->kind) {
	case ADD:
	case FETCH_ADD:
	case SWAP:
		return true;
	default:
		return false;
	}
}

static bool is_read(const struct deed *deed)
{
	return deed->kind == READ || deed->kind == READ_BOTH;
}

static bool is_write(const struct deed *deed)
{
	return !is_read(deed) && !is_atomic(deed);
}

static void put_words(uint8_t *to, uint64_t value, size_t len)
{
	uint64_t words[8];

	for (size_t i = 0; i < 8; i++)
		words[i] = value;
	memcpy(to, words, len);
}

static void prepare(const struct deed *deed)
{
	memset(seen, 0, deed->far);
	if (is_atomic(deed))
		put_words(seen, START, deed->far);
	else if (is_read(deed))
		fill(seen, deed->far, seed + round_no);
	rig->put(far_of(deed), seen, deed->far);
	if (is_read(deed))
		fill(host_of(deed), HOST, round_no);
	else
		memset(host_of(deed), 0, HOST);
	if (is_write(deed))
		fill(here_of(deed), deed->far + deed->host, round_no + deed->number);
	else
		memset(here_of(deed), 0, deed->far + deed->host);
}

static void *desc_of(const struct deed *deed)
{
	return fi_mr_desc(deed->mr ? deed->mr : mem_mr);
}

static ssize_t start_both(struct deed *deed)
{
	const struct iovec iov = { here_of(deed), deed->far + deed->host };
	const struct fi_rma_iov far = { base + deed->number * FAR, deed->far, key };
	const struct fi_rma_iov host = { p.base + deed->number * HOST, deed->host, p.key };
	const struct fi_rma_iov rma[] = { deed->host_first ? host : far,
					  deed->host_first ? far : host };
	void *desc = desc_of(deed);
	const struct fi_msg_rma msg = { .msg_iov = &iov,
					.desc = &desc,
					.iov_count = 1,
					.addr = p.to,
					.rma_iov = rma,
					.rma_iov_count = 2,
					.context = deed };

	return deed->kind == READ_BOTH ? fi_readmsg(p.a.ep, &msg, FI_COMPLETION)
				       : fi_writemsg(p.a.ep, &msg, FI_COMPLETION);
}

/* The operands lie in the first 64 bytes, the comparands behind them, then the results. */
static ssize_t start_atomic(struct deed *deed)
{
	uint8_t *here = here_of(deed);
	void *desc = desc_of(deed);
	uint64_t at = base + deed->number * FAR;
	size_t n = deed->far / 8;

	put_words(here, deed->kind == SWAP ? 9 : 1, 64);
	put_words(here + 64, START, 64);
	switch (deed->kind) {
	case ADD:
		return fi_atomic(p.a.ep, here, n, desc, p.to, at, key, FI_UINT64, FI_SUM, deed);
	case FETCH_ADD:
		return fi_fetch_atomic(p.a.ep, here, n, desc, here + 128, desc, p.to, at, key,
				       FI_UINT64, FI_SUM, deed);
	default:
		return fi_compare_atomic(p.a.ep, here, n, desc, here + 64, desc, here + 128, desc,
					 p.to, at, key, FI_UINT64, FI_CSWAP, deed);
	}
}

static ssize_t start_access(struct deed *deed)
{
	uint64_t at = base + deed->number * FAR;
	uint8_t *here = here_of(deed);
	void *desc = desc_of(deed);

	switch (deed->kind) {
	case READ:
		return fi_read(p.a.ep, here, deed->far, desc, p.to, at, key, deed);
	case WRITE:
		return fi_write(p.a.ep, here, deed->far, desc, p.to, at, key, deed);
	case DATA:
		return fi_writedata(p.a.ep, here, deed->far, desc, round_no * PARTS + deed->number,
				    p.to, at, key, deed);
	case INJECT:
		return fi_inject_write(p.a.ep, here, deed->far, p.to, at, key);
	default:
		return start_both(deed);
	}
}

static void choose_lengths(struct deed *deed)
{
	deed->far = one_in(3) ? 1 + any(FAR) : one_in(2) ? 1 + any(20000) : 1 + any(300);
	if (is_atomic(deed))
		deed->far = 8 + 8 * any(8);
	if (deed->kind == INJECT)
		deed->far = 1 + any(256);
	deed->host = deed->kind == READ_BOTH || deed->kind == WRITE_BOTH ? 1 + any(HOST) : 0;
}

static void start(unsigned number)
{
	struct deed *deed = &deeds[number];
	ssize_t ret;

	*deed = (struct deed){ .kind = any(KINDS), .number = number, .host_first = one_in(2) };
	choose_lengths(deed);
	deed->host_first &= deed->host > 0;
	prepare(deed);
	if (deed->kind != INJECT && one_in(3))
		deed->mr = node_reg(&p.a, here_of(deed), PART, FI_READ | FI_WRITE, 100 + number);
	ret = is_atomic(deed) ? start_atomic(deed) : start_access(deed);
	ck_assert_msg(!ret, SAYS "not begun: %zd", SAID(deed), ret);
}

/* --- what happens to them ------------------------------------------------------------------ */

static void close_local_regions(void)
{
	for (unsigned i = 0; i < ndeeds; i++) {
		if (!deeds[i].mr || !one_in(2))
			continue;
		must_close(&deeds[i].mr->fid);
		deeds[i].mr = NULL;
	}
}

static void harm(void)
{
	if (one_in(3))
		hold(1 + any(6));
	if (one_in(5))
		control.fail_next(one_in(2) ? rig->put_call : rig->get_call, 1 + any(6), rig->lost);
	break_some(&p.b, true, 2 * ndeeds + 2, fake_break);
	if (one_in(3))
		close_local_regions();
	fake_hold_all(false);
	fake_hold(false);
	if (hold_nth && one_in(2))
		usleep(any(20000));
	let_go();
	if (one_in(4))
		close_local_regions();
}

/* --- what became of them ------------------------------------------------------------------- */

static void take_error(void)
{
	struct fi_cq_err_entry e = { 0 };
	struct deed *deed;

	ck_assert_int_eq(fi_cq_readerr(p.a.cq, &e, 0), 1);
	deed = e.op_context;
	if (!deed) {
		unnamed++;
		return;
	}
	ck_assert(deed >= deeds && deed < deeds + ndeeds && !deed->ended);
	deed->ended = true;
	deed->err = e.err;
	snprintf(deed->text, sizeof(deed->text), "%s", e.err_data ? (char *)e.err_data : "");
}

static bool drained(void)
{
	bool idle = node_idle(&p.a);
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(p.a.cq, &entry, 1)) == -FI_EAVAIL)
		take_error();
	ck_assert_msg(ret == -FI_EAGAIN, "%s, round %u: a completion too many", setting, round_no);
	return idle;
}

static void take_ends(void)
{
	struct fi_cq_data_entry entry;
	unsigned left = 0, i;

	for (i = 0; i < ndeeds; i++)
		left += deeds[i].kind != INJECT;
	while (left) {
		unsigned before = unnamed;
		ssize_t ret = fi_cq_sread(p.a.cq, &entry, 1, NULL, LONG_MS);
		struct deed *deed = entry.op_context;

		ck_assert_msg(ret == 1 || ret == -FI_EAVAIL,
			      "%s, round %u: %u operations never end (%zd)", setting, round_no,
			      left, ret);
		if (ret == 1) {
			ck_assert(deed >= deeds && deed < deeds + ndeeds && !deed->ended);
			deed->ended = true;
		} else {
			take_error();
		}
		left -= unnamed == before;
	}
	want_soon(drained());
}

/* In the target's agent: no request waits, and no job is at one. */
static bool quiet;

static int look(struct mrf_agent *agent, void *arg)
{
	struct mrf_ep *ep = arg;

	quiet = mrf_list_empty(&mrf_eps_of(agent)->orphans);
	mrf_list_each (node, &ep->passive) {
		const struct mrf_passive *passive = mrf_list_entry(node, struct mrf_passive, node);

		quiet &= !passive->away &&
			 (passive->state != MRF_PASSIVE_UP || passive->first == passive->last);
	}
	return 0;
}

static bool target_is_quiet(void)
{
	/* A command goes before what peers have sent. */
	node_heard(&p.b);
	ck_assert_int_eq(mrf_agent_command(node_agent(&p.b), node_ep(&p.b), look), 0);
	return quiet;
}

static void check_word(const struct deed *deed, size_t i)
{
	uint64_t value, once = deed->kind == SWAP ? 9 : START + 1;

	memcpy(&value, seen + i, sizeof(value));
	ck_assert_msg(value == once || (deed->err && value == START), SAYS "element %zu holds %lu",
		      SAID(deed), i / 8, value);
}

/* Each byte is what was there before (0) or what was to be there; after success, the latter. */
static void check_written(const struct deed *deed)
{
	bool may_lack = deed->err || deed->kind == INJECT;
	const uint8_t *after = here_far(deed);
	size_t i = 0;

	while (i < deed->far && (seen[i] == after[i] || (may_lack && !seen[i])))
		i++;
	ck_assert_msg(i == deed->far, SAYS "byte %zu of the device is 0x%02x", SAID(deed), i,
		      seen[i]);
}

/* What a read brings is what is there, and nothing has changed that. */
static void check_read(const struct deed *deed)
{
	static uint8_t before[FAR];

	fill(before, deed->far, seed + round_no);
	ck_assert_msg(!memcmp(seen, before, deed->far), SAYS "the device's bytes", SAID(deed));
	ck_assert_msg(deed->err || !memcmp(seen, here_far(deed), deed->far), SAYS "bytes",
		      SAID(deed));
}

static void check_far(const struct deed *deed)
{
	rig->get(seen, far_of(deed), deed->far);
	if (is_read(deed)) {
		check_read(deed);
		return;
	}
	if (is_write(deed)) {
		check_written(deed);
		return;
	}
	for (size_t i = 0; i < deed->far; i += 8)
		check_word(deed, i);
}

static void check_host(const struct deed *deed)
{
	ck_assert_msg(deed->err || !memcmp(host_of(deed), here_host(deed), deed->host),
		      SAYS "the host's bytes", SAID(deed));
}

static void check_results(const struct deed *deed)
{
	uint8_t was[64];

	if (deed->err || (deed->kind != FETCH_ADD && deed->kind != SWAP))
		return;
	put_words(was, START, deed->far);
	ck_assert_msg(!memcmp(here_of(deed) + 128, was, deed->far), SAYS "results", SAID(deed));
}

/* Whether or not anybody counts: what succeeded was put. */
static void check_puts(const struct deed *deed)
{
	unsigned n = puts_of(far_of(deed) + deed->far - 1);

	if (!is_write(deed))
		return;
	ck_assert_msg(n || deed->err || deed->kind == INJECT, SAYS "was never done", SAID(deed));
	ck_assert_msg(n <= 1 || !far_cntr, SAYS "was counted, and done %u times", SAID(deed), n);
}

static void take_data(void)
{
	struct fi_cq_data_entry entry;
	unsigned must = 0, i;

	for (i = 0; i < ndeeds; i++)
		must += deeds[i].kind == DATA && !deeds[i].err;
	while (fi_cq_sread(p.b.cq, &entry, 1, NULL, must ? LONG_MS : 1) == 1) {
		struct deed *deed = &deeds[entry.data % PARTS];

		if (entry.data / PARTS < round_no) {
			ck_assert_uint_gt(late--, 0);
			continue;
		}
		must -= must && !deed->err;
		deed->data++;
	}
	for (i = 0; i < ndeeds; i++) {
		const struct deed *deed = &deeds[i];

		if (deed->kind != DATA)
			continue;
		ck_assert_msg(deed->data == 1 || (deed->err && !deed->data),
			      SAYS "its data came %u times", SAID(deed), deed->data);
		late += !deed->data;
	}
}

/* A region's counter: what succeeded is in it once, and what failed at most once. */
static void check_count(struct fid_cntr *cntr, uint64_t before, bool far)
{
	unsigned least = 0, most = 0, i;

	if (!cntr)
		return;
	for (i = 0; i < ndeeds; i++) {
		const struct deed *deed = &deeds[i];
		unsigned counts = !is_read(deed) && (far || deed->host);

		most += counts;
		least += counts && !deed->err && deed->kind != INJECT;
	}
	want_soon(fi_cntr_read(cntr) >= before + least);
	ck_assert_msg(fi_cntr_read(cntr) <= before + most && !fi_cntr_readerr(cntr),
		      "%s, round %u: %lu counted by the %s of %u to %u", setting, round_no,
		      fi_cntr_read(cntr) - before, far ? "device" : "host", least, most);
}

static void check_all(void)
{
	unsigned lost = 0, i;

	take_data();
	for (i = 0; i < ndeeds; i++) {
		check_far(&deeds[i]);
		check_host(&deeds[i]);
		check_results(&deeds[i]);
		check_puts(&deeds[i]);
		lost += deeds[i].kind == INJECT && !puts_of(far_of(&deeds[i]) + deeds[i].far - 1);
	}
	ck_assert_msg(lost <= unnamed, "%s, round %u: %u injected writes were not done, %u said so",
		      setting, round_no, lost, unnamed);
	check_count(far_cntr, far_before, true);
	check_count(host_cntr, host_before, false);
}

/* --- rounds ------------------------------------------------------------------------------- */

static void round_begin(void)
{
	forget_log();
	nputs = 0;
	unnamed = 0;
	far_before = far_cntr ? fi_cntr_read(far_cntr) : 0;
	host_before = host_cntr ? fi_cntr_read(host_cntr) : 0;
	hold_nth = 0;
	atomic_store(&copies, 0);
	atomic_store(&may_go, false);
}

static void round_run(void)
{
	unsigned i;

	round_begin();
	ndeeds = one_in(3) ? 1 : 1 + any(PARTS);
	fake_hold(true);
	if (one_in(3))
		fake_hold_all(true);
	for (i = 0; i < ndeeds; i++)
		start(i);
	harm();
	take_ends();
	fake_heal();
	refuse(0);
	control.fail_next("*", 0, 0);
	want_soon(target_is_quiet());
	check_all();
	for (i = 0; i < ndeeds; i++) {
		if (deeds[i].mr)
			must_close(&deeds[i].mr->fid);
	}
}

START_TEST(what_breaks_at_a_device_is_done_once_or_says_so)
{
	if (!setting_begin((unsigned)_i, SETTINGS))
		return;
	setting_open();
	for (round_no = 1; round_no <= rounds_of(SETTINGS); round_no++)
		round_run();
	/* Nothing of all that stays. */
	round_begin();
	ndeeds = 1;
	deeds[0] = (struct deed){ .kind = WRITE, .far = 100 };
	prepare(&deeds[0]);
	ck_assert_int_eq(start_access(&deeds[0]), 0);
	want_ok(&p.a, &deeds[0]);
	setting_close();
}
END_TEST

static TCase *tcase_breaks(void)
{
	TCase *tc = tcase_create("breaks");

	tcase_set_timeout(tc, 600);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, what_breaks_at_a_device_is_done_once_or_says_so, 0, SETTINGS);
	return tc;
}

UNIT_MAIN("breaks_device", tcase_breaks)
