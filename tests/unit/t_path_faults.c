/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything fails once, on the paths that are not plain accesses: atomic operations, by the
 * device and by the agent, committed writes, messages, authorization keys, counters, registration by
 * the worker. In round n of a walk the nth call of one kind - allocations and the like, or
 * what is asked of the device - fails, in whichever thread. It is told with the error that it
 * was, what was asked for is done exactly or not at all, everything works when it is done again,
 * and nothing is left. Each walk knows by name the calls of the device that it has to meet.
 *
 * An operation that fails may have been done, one that is reported done has been
 * done, and none is done twice.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <rdma/fi_atomic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include "contract/limits.h"
#include "ep/model/atomics.h"
#include "fail_walk.h"

static struct pair p;

/* --- completions ---------------------------------------------------------------------- */

/* What one failure may end an operation with, here or at the peer. */
static void may_end(const char *what, const struct fi_cq_err_entry *err)
{
	static const int known[] = { FI_ENOMEM,	    FI_EIO,	  FI_ECONNREFUSED,
				     FI_ECONNRESET, FI_ETIMEDOUT, FI_EREMOTEIO };
	const char *text = err->err_data ? err->err_data : "";

	if (!met())
		ck_abort_msg("%s, failure %u: %s: %d before anything failed: %s", where, nth, what,
			     err->err, text);
	for (size_t i = 0; i < MRF_ARRAY_SIZE(known); i++) {
		if (err->err == known[i] || (device_err && err->err == device_err))
			return;
	}
	ck_abort_msg("%s, failure %u: %s: completion: %d (%s), %s", where, nth, what, err->err,
		     fi_strerror(err->err), text);
}

/* Whose it is that has failed. */
static void *completion_failed(const char *what)
{
	struct fi_cq_err_entry err = { 0 };

	ck_assert_int_eq(LIBRARY(fi_cq_readerr(p.a.cq, &err, 0)), 1);
	may_end(what, &err);
	return err.op_context;
}

static bool lost; /* an injected operation has failed */

static bool complete(const char *what, const void *context)
{
	struct fi_cq_data_entry e;
	void *whose = NULL;
	ssize_t ret;

	/* Of an injected operation that was done one may still hear that it failed. */
	do {
		DO(ret = fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS));
		if (ret == -FI_EAVAIL)
			lost |= !(whose = completion_failed(what));
		else if (ret == 1)
			whose = e.op_context;
		else
			ck_abort_msg("%s, failure %u: %s: no completion: %zd", where, nth, what,
				     ret);
	} while (ret == -FI_EAVAIL && !whose);
	ck_assert_msg(whose == context, "%s, failure %u: %s: another's", where, nth, what);
	return ret == 1;
}

/* --- memory, in which something that failed may still land --------------------------------- */

static void zero(void *to, size_t len)
{
	fake_freeze(true);
	memset(to, 0, len);
	fake_freeze(false);
}

static bool equal(const void *one, const void *two, size_t len)
{
	bool same;

	fake_freeze(true);
	same = !memcmp(one, two, len);
	fake_freeze(false);
	return same;
}

static void copy(void *to, const void *from, size_t len)
{
	fake_freeze(true);
	memcpy(to, from, len);
	fake_freeze(false);
}

/* --- one walk ------------------------------------------------------------------------- */

/* Met in a round in which nothing fails, of all that may. */
static bool met_call[FAKE_CALLS];

struct path {
	const char *name;
	int mr_mode;
	bool keys; /* authorization keys keep regions apart, not endpoints */
	void (*live)(void);
	const char *calls; /* of the device, that it has to meet, and no others */
};

/* In the order of enum fake_call. */
static void must_have_met(const char *want)
{
	char list[512] = "";

	for (int i = 0; i < FAKE_CALLS; i++) {
		if (!met_call[i])
			continue;
		strcat(list, list[0] ? " " : "");
		strcat(list, fake_call_name(i));
	}
	ck_assert_str_eq(list, want);
}

static void note_calls(const unsigned *before)
{
	for (int i = 0; i < FAKE_CALLS; i++)
		met_call[i] = fake_calls(i) > before[i];
}

static void calls_now(unsigned *calls)
{
	for (int i = 0; i < FAKE_CALLS; i++)
		calls[i] = fake_calls(i);
}

static const struct path *path;
static unsigned before[FAKE_CALLS];

/* From here to the end of the walk's part of a life everything may fail. */
static void begin_failing(void)
{
	calls_now(before);
	order();
}

static bool failed;

static void end_failing(void)
{
	note_calls(before);
	failed = met();
	heal();
}

static void walk(const struct path *which, int err)
{
	path = which;
	where = which->name;
	device_err = err;
	outside = 1;
	nth = 1 + every_first();
	for (;;) {
		unsigned forgotten = fake_forgotten();

		path->live();
		if (fake_live())
			ck_abort_msg("%s, failure %u: %u things of the device are left", where, nth,
				     fake_live());
		ck_assert_uint_le(fake_forgotten() - forgotten, 1);
		if (!failed)
			break;
		nth += every();
	}
	must_have_met(path->calls);
	ck_assert_uint_gt(nth, err ? 5u : 3u);
}

/* --- atomic operations ---------------------------------------------------------------- */

struct kind {
	const char *name;
	enum fi_datatype type;
	size_t count;
	size_t at;
	enum { ADD, FETCH, COMPARE, VECTOR, INJECT } call;
};

static const struct kind kinds[] = {
	{ "device, add", FI_UINT64, 1, 0, ADD },
	{ "device, fetch", FI_UINT64, 1, 512, FETCH },
	{ "device, compare", FI_UINT64, 1, 1024, COMPARE },
	{ "device, vector", FI_UINT64, 40, 1536, VECTOR },
	{ "device, inject", FI_INT64, 1, 2048, INJECT },
	{ "agent, add", FI_UINT32, 1, 2560, ADD },
	{ "agent, fetch", FI_UINT16, 3, 3072, FETCH },
	{ "agent, compare", FI_UINT128, 2, 3584, COMPARE },
	{ "agent, vector", FI_INT32, 100, 4100, VECTOR },
	{ "agent, inject", FI_UINT64, 1, 4612, INJECT },
};

#define KINDS MRF_ARRAY_SIZE(kinds)

static unsigned sure[KINDS], maybe[KINDS]; /* times that it was done, or may have been */
static struct fid_cntr *cntr;

static size_t size_of(const struct kind *k)
{
	return mrf_atomic_size(k->type);
}

/* Nothing here gets beyond a byte. */
static unsigned element(const struct kind *k, size_t i)
{
	uint8_t value;

	copy(&value, p.dst + k->at + i * size_of(k), 1);
	return value;
}

static void put_ones(uint8_t *to, const struct kind *k)
{
	memset(to, 0, k->count * size_of(k));
	for (size_t i = 0; i < k->count; i++)
		to[i * size_of(k)] = 1;
}

#define OPERAND (p.src)
#define COMPARAND (p.src + PAGE)
#define RESULT (p.src + 2 * PAGE)

/* Adds one to each element, in whatever way. */
static ssize_t call_atomic(const struct kind *k)
{
	uint64_t to = p.base + k->at;
	struct fi_ioc iov[2] = { { OPERAND, 1 }, { OPERAND + size_of(k), k->count - 1 } };
	struct fi_ioc res[2] = { { RESULT, 1 }, { RESULT + size_of(k), k->count - 1 } };
	void *desc[2] = { p.desc, p.desc };

	put_ones(OPERAND, k);
	switch (k->call) {
	case ADD:
		return fi_atomic(p.a.ep, OPERAND, k->count, p.desc, p.to, to, p.key, k->type,
				 FI_SUM, (void *)(uintptr_t)k);
	case FETCH:
		return fi_fetch_atomic(p.a.ep, OPERAND, k->count, p.desc, RESULT, p.desc, p.to, to,
				       p.key, k->type, FI_SUM, (void *)(uintptr_t)k);
	case COMPARE:
		copy(COMPARAND, p.dst + k->at, k->count * size_of(k));
		memcpy(OPERAND, COMPARAND, k->count * size_of(k));
		for (size_t i = 0; i < k->count; i++)
			OPERAND[i * size_of(k)]++;
		return fi_compare_atomic(p.a.ep, OPERAND, k->count, p.desc, COMPARAND, p.desc,
					 RESULT, p.desc, p.to, to, p.key, k->type, FI_CSWAP,
					 (void *)(uintptr_t)k);
	case VECTOR:
		return fi_fetch_atomicv(p.a.ep, iov, desc, 2, res, desc, 2, p.to, to, p.key,
					k->type, FI_SUM, (void *)(uintptr_t)k);
	default:
		return fi_inject_atomic(p.a.ep, OPERAND, k->count, p.to, to, p.key, k->type,
					FI_SUM);
	}
}

/* What is injected says nothing when it is done: what comes behind it does. */
static bool injected(const struct kind *k)
{
	lost = false;
	do
		DO(fi_read(p.a.ep, RESULT, 8, p.desc, p.to, p.base + k->at, p.key, &p));
	while (!complete(k->name, &p));
	return !lost;
}

static bool do_atomic(size_t i)
{
	const struct kind *k = &kinds[i];
	bool done;

	DO(call_atomic(k));
	done = k->call == INJECT ? injected(k) : complete(k->name, k);
	sure[i] += done;
	maybe[i] += !done;
	/* What comes back is what was there, unless an earlier one came to it after all. */
	if (done && (k->call == FETCH || k->call == VECTOR || k->call == COMPARE))
		ck_assert_msg(RESULT[0] < element(k, 0),
			      "%s, failure %u: %s: %u came back, %u is there", where, nth, k->name,
			      RESULT[0], element(k, 0));
	return done;
}

static void check_elements(void)
{
	for (size_t i = 0; i < KINDS; i++) {
		for (size_t j = 0; j < kinds[i].count; j++) {
			unsigned v = element(&kinds[i], j);

			if (v < sure[i] || v > sure[i] + maybe[i])
				ck_abort_msg("%s, failure %u: %s: element %zu is %u: done %u "
					     "times, perhaps %u more",
					     where, nth, kinds[i].name, j, v, sure[i], maybe[i]);
		}
	}
}

static void check_count(void)
{
	int64_t end = mrf_now_ms() + LONG_MS;
	unsigned least = 0, most = 0;
	uint64_t n;

	for (size_t i = 0; i < KINDS; i++) {
		least += sure[i];
		most += sure[i] + maybe[i];
	}
	do
		n = fi_cntr_read(cntr);
	while (n < least && mrf_now_ms() < end);
	if (n < least || n > most)
		ck_abort_msg("%s, failure %u: counted %u: %u to %u were done", where, nth,
			     (unsigned)n, least, most);
}

/* What broke may show only now, a few times. */
static void must_work(bool (*work)(size_t), size_t i)
{
	int tries = 0;

	while (!work(i)) {
		if (++tries == 4)
			ck_abort_msg("%s, failure %u: %zu does not work any more", where, nth, i);
	}
}

static void open_counted(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	must_close(&p.mr->fid);
	ck_assert_int_eq(fi_cntr_open(p.b.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_mr_reg(p.b.domain, p.dst, PAIR_LEN, REMOTE_RW, 0, PAIR_KEY,
				   FI_RMA_EVENT, &p.mr, NULL),
			 0);
	ck_assert_int_eq(fi_mr_bind(p.mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(fi_mr_enable(p.mr), 0);
	p.key = fi_mr_key(p.mr);
}

/* All that reaches a peer or is reached by one. Counters go before their regions. */
static void close_all(struct fid_cntr *counted, struct fid_mr **mr)
{
	if (counted)
		DO(fi_close(&counted->fid));
	DO(fi_close(&(*mr)->fid));
	*mr = NULL;
	DO(fi_close(&p.a.ep->fid));
	p.a.ep = NULL;
	DO(fi_close(&p.b.ep->fid));
	p.b.ep = NULL;
}

static void live_atomics(void)
{
	struct node_opt opt = { .mr_mode = path->mr_mode };
	bool counted = path->mr_mode & FI_MR_RMA_EVENT;

	opt.caps = counted ? MRF_CAPS | FI_RMA_EVENT : 0;
	pair_open(&p, &opt);
	if (counted)
		open_counted();
	memset(sure, 0, sizeof(sure));
	memset(maybe, 0, sizeof(maybe));
	begin_failing();
	for (size_t i = 0; i < KINDS; i++)
		do_atomic(i);
	for (size_t i = 0; met() && i < KINDS; i++)
		must_work(do_atomic, i);
	check_elements();
	if (counted)
		check_count();
	close_all(counted ? cntr : NULL, &p.mr);
	end_failing();
	pair_close(&p);
}

/* --- many local buffers ----------------------------------------------------------------- */

#define BUFFERS 30u /* as many are within reach one after the other, in several parts */

static ssize_t call_many(bool read)
{
	struct iovec iov[BUFFERS];
	void *desc[BUFFERS];

	for (unsigned i = 0; i < BUFFERS; i++) {
		iov[i] = (struct iovec){ p.src + 2000 * i, 1000 };
		desc[i] = p.desc;
	}
	return read ? fi_readv(p.a.ep, iov, desc, BUFFERS, p.to, p.base, p.key, &p)
		    : fi_writev(p.a.ep, iov, desc, BUFFERS, p.to, p.base, p.key, &p);
}

static bool do_many(size_t read)
{
	bool done;

	if (!read)
		zero(p.dst, 1000 * BUFFERS);
	DO(call_many(read));
	done = complete("many buffers", &p);
	for (unsigned i = 0; done && i < BUFFERS; i++)
		ck_assert(equal(p.dst + 1000 * i, p.src + 2000 * i, 1000));
	return done;
}

static void live_many(void)
{
	struct node_opt opt = { .mr_mode = path->mr_mode };

	ck_assert_int_eq(setenv("FI_MR_CACHE_MONITOR", "disabled", 1), 0);
	pair_open(&p, &opt);
	begin_failing();
	for (size_t i = 0; i < 2; i++)
		do_many(i);
	for (size_t i = 0; met() && i < 2; i++)
		must_work(do_many, i);
	close_all(NULL, &p.mr);
	end_failing();
	pair_close(&p);
	unsetenv("FI_MR_CACHE_MONITOR");
}

/* --- committed writes ----------------------------------------------------------------- */

#define FILE_NAME "t_path_faults.tmp"
#define FILE_LEN (4 * PAGE)
#define FILE_KEY 9

static int file;
static uint8_t *mem;
static struct fid_mr *mem_mr;

static bool kept_here(void)
{
	struct statfs fs;

	return !statfs(".", &fs) && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC;
}

static void file_open(void)
{
	file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(ftruncate(file, FILE_LEN), 0);
	mem = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
}

static void file_close(void)
{
	munmap(mem, FILE_LEN);
	close(file);
	unlink(FILE_NAME);
}

static int reg_file(void)
{
	struct iovec iov = { mem, FILE_LEN };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = REMOTE_RW, .requested_key = FILE_KEY
	};

	return fi_mr_regattr(p.b.domain, &attr, FI_RMA_PMEM, &mem_mr);
}

static const size_t commit_len[] = { 8, 600, 5000 };

static ssize_t call_commit(size_t len)
{
	struct iovec iov = { p.src, len };
	struct fi_rma_iov there = { p.base ? (uintptr_t)mem : 0, len, fi_mr_key(mem_mr) };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &p.desc,
				  .iov_count = 1,
				  .addr = p.to,
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .context = &p };

	return fi_writemsg(p.a.ep, &msg, FI_COMMIT_COMPLETE);
}

static bool do_commit(size_t i)
{
	bool done;

	zero(mem, commit_len[i]);
	DO(call_commit(commit_len[i]));
	done = complete("committed write", &p);
	ck_assert(!done || equal(mem, p.src, commit_len[i]));
	return done;
}

static void live_commits(void)
{
	struct node_opt opt = { .mr_mode = path->mr_mode };

	file_open();
	pair_open(&p, &opt);
	begin_failing();
	DO(reg_file());
	for (size_t i = 0; i < MRF_ARRAY_SIZE(commit_len); i++)
		do_commit(i);
	for (size_t i = 0; met() && i < MRF_ARRAY_SIZE(commit_len); i++)
		must_work(do_commit, i);
	close_all(NULL, &mem_mr);
	end_failing();
	pair_close(&p);
	file_close();
}

/* --- keys or endpoints, counters, the worker ------------------------------------------ */

#define SECRET "Open, sesame"
#define OTHER "Open, wheat"
#define REGIONS 2

/*
 * Region and endpoints 0 have the domain's key, 1 their own. Without keys, region 0 is bound to
 * both endpoints of the target, region 1 to the second.
 */
static struct fid_ep *eps_a[2], *eps_b[2];
static struct fid_mr *mr[REGIONS];
static fi_addr_t to[2];
static struct fid_eq *eq;

static uint8_t *bytes_of(size_t i)
{
	return p.dst + i * 4 * PAGE;
}

static int reg_apart(size_t i)
{
	struct iovec iov[2] = { { bytes_of(i), PAGE }, { bytes_of(i) + 2 * PAGE, PAGE } };
	struct fi_mr_attr attr = { .mr_iov = iov,
				   .iov_count = 2,
				   .access = REMOTE_RW | FI_WRITE,
				   .requested_key = PAIR_KEY + i };

	if (path->keys) {
		attr.auth_key = (uint8_t *)(i ? OTHER : SECRET);
		attr.auth_key_size = strlen(i ? OTHER : SECRET);
	}
	return fi_mr_regattr(p.b.domain, &attr, FI_RMA_EVENT, &mr[i]);
}

/* False: the event says that it failed. */
static bool registered(size_t i)
{
	struct fi_eq_entry entry;
	struct fi_eq_err_entry err = { 0 };
	uint32_t event;
	ssize_t ret;

	DO(ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), LONG_MS, 0));
	if (ret == sizeof(entry)) {
		ck_assert(event == FI_MR_COMPLETE && entry.fid == &mr[i]->fid);
		return true;
	}
	ck_assert_int_eq(ret, -FI_EAVAIL);
	ck_assert_int_gt(LIBRARY(fi_eq_readerr(eq, &err, 0)), 0);
	ck_assert_ptr_eq(err.fid, &mr[i]->fid);
	may_fail("FI_MR_COMPLETE", err.err);
	return false;
}

static void reg_all(void)
{
	for (size_t i = 0; i < REGIONS; i++) {
		DO(reg_apart(i));
		if (!registered(i)) {
			DO(fi_close(&mr[i]->fid));
			DO(reg_apart(i));
			if (!registered(i))
				ck_abort_msg("%s, failure %u: twice", where, nth);
		}
		DO(fi_mr_bind(mr[i], &cntr->fid, FI_REMOTE_WRITE));
		if (path->mr_mode & FI_MR_ENDPOINT)
			DO(fi_mr_bind(mr[i], &eps_b[i]->fid, 0));
		if (!path->keys && !i)
			DO(fi_mr_bind(mr[0], &eps_b[1]->fid, 0));
		DO(fi_mr_enable(mr[i]));
	}
}

static void refresh_all(void)
{
	for (size_t i = 0; i < REGIONS; i++) {
		struct iovec iov[2] = { { bytes_of(i), PAGE }, { bytes_of(i) + 2 * PAGE, PAGE } };

		DO(fi_mr_refresh(mr[i], iov, 2, 0));
	}
}

static int insert(size_t i)
{
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	int ret = fi_getname(&eps_b[i]->fid, &addr, &len);

	if (ret)
		return ret;
	ret = fi_av_insert(p.a.av, &addr, 1, &to[i], 0, NULL);
	return ret == 1 ? 0 : ret ? ret : -FI_ENOMEM;
}

static void open_apart(void)
{
	struct node_opt opt = { .mr_mode = path->mr_mode,
				.auth_key = path->keys ? SECRET : NULL,
				.caps = MRF_CAPS | FI_RMA_EVENT };
	struct node_opt own = opt;
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

	own.ep_key = path->keys ? OTHER : NULL;
	DO(node_try_open(&p.a, &opt));
	DO(node_try_open(&p.b, &opt));
	eps_a[0] = p.a.ep;
	eps_b[0] = p.b.ep;
	DO(node_try_ep(&p.a, &own, &eps_a[1]));
	DO(node_try_ep(&p.b, &own, &eps_b[1]));
	DO(fi_cntr_open(p.b.domain, &cntr_attr, &cntr, NULL));
	DO(fi_eq_open(p.b.fabric, &eq_attr, &eq, NULL));
	DO(fi_domain_bind(p.b.domain, &eq->fid, FI_REG_MR));
	DO(insert(0));
	DO(insert(1));
}

static bool write_to(size_t i)
{
	unsigned char *bytes = bytes_of(i);
	bool done;

	zero(bytes, 600);
	DO(fi_write(eps_a[i], p.src, 600, NULL, to[i], 0, PAIR_KEY + i, &p));
	done = complete("write", &p);
	sure[0] += done;
	maybe[0] += !done;
	ck_assert(!done || equal(bytes, p.src, 600));
	return done;
}

/* Region 0 by the second endpoint, where it is bound to that, too. */
static void write_by_second(void)
{
	bool done;

	zero(bytes_of(0), 600);
	DO(fi_write(eps_a[1], p.src, 600, NULL, to[1], 0, PAIR_KEY, &p));
	done = complete("write by the second endpoint", &p);
	sure[0] += done;
	maybe[0] += !done;
	ck_assert(!done || equal(bytes_of(0), p.src, 600));
}

static bool add_to(size_t i)
{
	bool done;

	put_ones(OPERAND, &kinds[0]);
	DO(fi_atomic(eps_a[i], OPERAND, 1, NULL, to[i], 8, PAIR_KEY + i, FI_UINT64, FI_SUM, &p));
	done = complete("atomic", &p);
	sure[0] += done;
	maybe[0] += !done;
	fill(p.src, PAIR_LEN, 1);
	return done;
}

/* Region i by the other's endpoint: never, whatever fails. */
static void must_not_reach(size_t i)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry e;
	uint8_t was = bytes_of(i)[5000 - PAGE];
	ssize_t ret;

	if (!path->keys && !i)
		return;
	DO(fi_write(eps_a[!i], p.src + 77, 8, NULL, to[!i], 5000 - PAGE, PAIR_KEY + i, &p));
	DO(ret = fi_cq_sread(p.a.cq, &e, 1, NULL, LONG_MS));
	ck_assert_int_eq(ret, -FI_EAVAIL);
	ck_assert_int_eq(LIBRARY(fi_cq_readerr(p.a.cq, &err, 0)), 1);
	if (!met() || healed)
		ck_assert_int_eq(err.err, path->keys ? FI_EKEYREJECTED : FI_EACCES);
	ck_assert_uint_eq(bytes_of(i)[5000 - PAGE], was);
}

static void close_apart(void)
{
	struct fid_fabric *fabric = p.b.fabric;

	DO(fi_close(&cntr->fid));
	DO(fi_close(&eps_b[1]->fid));
	DO(fi_close(&p.b.ep->fid));
	p.b.ep = NULL;
	for (size_t i = 0; i < REGIONS; i++)
		DO(fi_close(&mr[i]->fid));
	DO(fi_close(&eps_a[1]->fid));
	end_failing();
	node_close(&p.a);
	p.b.fabric = NULL; /* the queue goes after the domain and before the fabric */
	node_close(&p.b);
	must_close(&eq->fid);
	must_close(&fabric->fid);
}

static void live_apart(void)
{
	memset(&p, 0, sizeof(p));
	memset(sure, 0, sizeof(sure));
	memset(maybe, 0, sizeof(maybe));
	p.src = pages(PAIR_LEN);
	p.dst = pages(PAIR_LEN);
	fill(p.src, PAIR_LEN, 1);
	begin_failing();
	open_apart();
	reg_all();
	if (path->mr_mode & FI_MR_MMU_NOTIFY)
		refresh_all();
	for (size_t i = 0; i < REGIONS; i++) {
		write_to(i);
		add_to(i);
		must_not_reach(i);
	}
	if (!path->keys)
		write_by_second();
	if (!(path->mr_mode & FI_MR_ALLOCATED))
		refresh_all();
	for (size_t i = 0; met() && i < REGIONS; i++) {
		must_work(write_to, i);
		must_work(add_to, i);
		must_not_reach(i);
	}
	check_count();
	close_apart();
	munmap(p.src, PAIR_LEN);
	munmap(p.dst, PAIR_LEN);
}

/* --- messages ---------------------------------------------------------------------------- */

static const struct message {
	size_t at, len;
	bool early;	 /* it comes before its receive is posted */
	size_t pieces;	 /* buffers of the receive, */
	size_t of_sends; /* and of the send */
} messages[] = {
	{ 0, 8, false, 1, 1 },	    { 1000, 300, true, 1, 3 },	   { 2000, 100, false, 3, 1 },
	{ 3000, 5000, true, 2, 1 }, { 16384, 16384, false, 1, 2 },
};

#define MESSAGES MRF_ARRAY_SIZE(messages)

static struct fid_mr *recv_mr, *send_mr; /* with FI_MR_LOCAL */
static unsigned again[MESSAGES];	 /* sends that failed and may have come */

/* len bytes, in n pieces. */
static size_t pieces(uint8_t *at, size_t len, size_t n, struct iovec *iov)
{
	for (size_t i = 0; i < n; i++)
		iov[i] = (struct iovec){ at + i * (len / n),
					 i + 1 < n ? len / n : len - i * (len / n) };
	return n;
}

static ssize_t call_send(const struct message *m)
{
	void *desc = send_mr ? fi_mr_desc(send_mr) : NULL, *descs[3] = { desc, desc, desc };
	struct iovec iov[3];

	return fi_sendv(p.a.ep, iov, descs, pieces(p.src + m->at, m->len, m->of_sends, iov), p.to,
			(void *)(uintptr_t)m);
}

static void do_send(size_t i)
{
	DO(call_send(&messages[i]));
	while (!complete("send", &messages[i])) {
		again[i]++;
		DO(call_send(&messages[i]));
	}
}

/* Without memory it says what a program does again. */
static void do_recv(const struct message *m)
{
	void *desc = recv_mr ? fi_mr_desc(recv_mr) : NULL, *descs[3] = { desc, desc, desc };
	struct iovec iov[3];
	size_t n = pieces(p.dst + m->at, m->len, m->pieces, iov);
	ssize_t ret;

	zero(p.dst + m->at, m->len);
	do {
		ret = LIBRARY(
			fi_recvv(p.b.ep, iov, descs, n, FI_ADDR_UNSPEC, (void *)(uintptr_t)m));
	} while (ret == -FI_EAGAIN && met());
	if (ret)
		ck_abort_msg("%s, failure %u: fi_recvv: %zd", where, nth, ret);
}

/* Whose message has come into it? */
static size_t received(const struct message *m)
{
	struct fi_cq_data_entry e = { 0 };
	ssize_t ret;

	DO(ret = fi_cq_sread(p.b.cq, &e, 1, NULL, LONG_MS));
	if (ret != 1 || e.op_context != m)
		ck_abort_msg("%s, failure %u: message %zu: no receive: %zd", where, nth,
			     (size_t)(m - messages), ret);
	return p.dst[m->at];
}

/* What was sent again may have come twice, and takes a receive more. */
static void must_come(size_t i)
{
	const struct message *m = &messages[i];
	size_t whose;

	while ((whose = received(m)) != i) {
		if (whose >= MESSAGES || !again[whose]--)
			ck_abort_msg("%s, failure %u: %zu came for %zu", where, nth, whose, i);
		do_recv(m);
	}
	if (!equal(p.dst + m->at, p.src + m->at, m->len))
		ck_abort_msg("%s, failure %u: message %zu: bytes", where, nth, i);
}

static void do_message(size_t i)
{
	const struct message *m = &messages[i];

	if (!m->early)
		do_recv(m);
	do_send(i);
	if (m->early)
		do_recv(m);
	must_come(i);
}

static void reg_messages(bool local)
{
	send_mr = local ? node_reg(&p.a, p.src, PAIR_LEN, FI_SEND, 8) : NULL;
	recv_mr = local ? node_reg(&p.b, p.dst, PAIR_LEN, FI_RECV, 9) : NULL;
}

static void live_messages(void)
{
	pair_open(&p, &(struct node_opt){ .mr_mode = path->mr_mode });
	for (size_t i = 0; i < MESSAGES; i++)
		p.src[messages[i].at] = (uint8_t)i;
	memset(again, 0, sizeof(again));
	reg_messages(path->mr_mode & FI_MR_LOCAL);
	begin_failing();
	for (size_t i = 0; i < MESSAGES; i++)
		do_message(i);
	for (size_t i = 0; met() && i < MESSAGES; i++)
		do_message(i);
	close_all(NULL, &p.mr);
	end_failing();
	if (send_mr)
		must_close(&send_mr->fid);
	if (recv_mr)
		must_close(&recv_mr->fid);
	pair_close(&p);
}

/* --- all of them ---------------------------------------------------------------------- */

#define CONNECT "vconn_open resolve route create_qp connect accept establish tune post post_recv"
#define ATOMICS "vmr_reg vmr_dereg vcq_open " CONNECT " vloop_open vloop_run"
#define COMMITS "vmr_reg vmr_dereg vcq_open " CONNECT
#define LINES                                                                                \
	"vmr_reg vmr_dereg vcq_open vconn_open resolve route vsrq_open vsrq_post create_qp " \
	"connect accept establish post post_recv"
#define ALL                                                                            \
	"vdev_open vpd_alloc vmr_reg vmr_dereg vcq_open vcm_open vconn_open bind "     \
	"listen resolve route create_qp connect accept establish tune post post_recv " \
	"vloop_open vloop_run"

static const struct path paths[] = {
	{ "atomics, pinned", FI_MR_ALLOCATED, false, live_atomics, ATOMICS },
	{ "atomics, on demand", 0, false, live_atomics, ATOMICS },
	{ "atomics, with descriptors",
	  FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY, false, live_atomics,
	  ATOMICS },
	{ "atomics, counted", FI_MR_ALLOCATED | FI_MR_RMA_EVENT, false, live_atomics, ATOMICS },
	{ "many buffers", FI_MR_ALLOCATED, false, live_many, COMMITS },
	{ "many buffers with descriptors", FI_MR_ALLOCATED | FI_MR_LOCAL, false, live_many,
	  COMMITS },
	{ "commits, pinned", FI_MR_ALLOCATED, false, live_commits, COMMITS },
	{ "commits, on demand", 0, false, live_commits, COMMITS },
	{ "keys, pinned", FI_MR_ALLOCATED, true, live_apart, ALL },
	{ "keys, on demand", 0, true, live_apart, ALL },
	{ "keys, of endpoints", FI_MR_ALLOCATED | FI_MR_ENDPOINT, true, live_apart, ALL },
	{ "endpoints, pinned", FI_MR_ALLOCATED | FI_MR_ENDPOINT, false, live_apart, ALL },
	{ "endpoints, on demand", FI_MR_ENDPOINT, false, live_apart, ALL },
	{ "messages, pinned", FI_MR_ALLOCATED, false, live_messages, LINES },
	{ "messages, on demand", 0, false, live_messages, LINES },
	{ "messages with descriptors", FI_MR_ALLOCATED | FI_MR_LOCAL, false, live_messages, LINES },
	{ "endpoints, refreshed", FI_MR_ENDPOINT | FI_MR_MMU_NOTIFY, false, live_apart, ALL },
};

#define PATHS ((int)MRF_ARRAY_SIZE(paths))

static void walk_path(int i, int err)
{
	if (paths[i].live == live_commits && !kept_here())
		return;
	walk(&paths[i], err);
}

START_TEST(path_each_allocation_may_fail_once)
{
	walk_path(_i, 0);
}
END_TEST

START_TEST(path_each_call_of_the_device_may_fail_once)
{
	walk_path(_i, _i % 2 ? FI_EIO : FI_ENOMEM);
}
END_TEST

static TCase *tcase_paths(void)
{
	TCase *tc = tcase_create("paths");

	tcase_add_checked_fixture(tc, fixture_setup_impatient, fixture_teardown);
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, path_each_allocation_may_fail_once, 0, PATHS);
	tcase_add_loop_test(tc, path_each_call_of_the_device_may_fail_once, 0, PATHS);
	return tc;
}

UNIT_MAIN("path_faults", tcase_paths)
