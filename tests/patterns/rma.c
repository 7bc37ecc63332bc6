/* SPDX-License-Identifier: BSD-2-Clause */
/* Accesses whose keys travel in messages. */
#include <sched.h>
#include "side.h"

#define WINDOW 64
#define LONG 65536
#define DATA 0xbeef

static const size_t sizes[] = { 8, 4096, LONG };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

enum way { WRITE, WRITEDATA, READ };

static ssize_t access_post(struct side *s, enum way way, size_t len)
{
	const struct fi_rma_iov *to = &s->there;

	switch (way) {
	case WRITE:
		return fi_write(s->ep, s->out, len, s->desc, s->peer, to->addr, to->key,
				&s->tx.ctx);
	case WRITEDATA:
		return fi_writedata(s->ep, s->out, len, s->desc, DATA, s->peer, to->addr, to->key,
				    &s->tx.ctx);
	default:
		return fi_read(s->ep, s->out, len, s->desc, s->peer, to->addr, to->key, &s->tx.ctx);
	}
}

/* --- fi_rma_bw -------------------------------------------------------------------------------------- */

static void bw_client(struct side *s, enum way way, size_t len)
{
	if (way == READ)
		oob_sync(s);
	else
		fill(s->out, len, (unsigned)len);
	for (unsigned i = 0; i < WINDOW; i++)
		POST(s, &s->tx, access_post(s, way, len));
	queue_wait(s, &s->tx, s->tx.posted);
	if (way == READ)
		same(s->out, len, (unsigned)len);
	oob_sync(s);
	rx(s);
}

/* Each write with data has an entry, and takes no receive. */
static void data_wait(struct side *s, size_t len)
{
	const struct fi_cq_data_entry *e = (void *)&s->rx.last;

	s->rx.posted += WINDOW;
	queue_wait(s, &s->rx, s->rx.posted - 1);
	must(e->data == DATA && e->len == len, "data 0x%llx, %zu bytes",
	     (unsigned long long)e->data, e->len);
	must((e->flags & (FI_REMOTE_CQ_DATA | FI_RMA | FI_REMOTE_WRITE)) ==
		     (FI_REMOTE_CQ_DATA | FI_RMA | FI_REMOTE_WRITE),
	     "flags 0x%llx", (unsigned long long)e->flags);
}

static void bw_server(struct side *s, enum way way, size_t len)
{
	if (way == READ) {
		fill(s->in, len, (unsigned)len);
		oob_sync(s);
	}
	if (way == WRITEDATA)
		data_wait(s, len);
	oob_sync(s);
	same(s->in, len, (unsigned)len);
	tx(s, 4);
}

static void bw(struct side *s, enum way way)
{
	uint64_t rights = way == READ ? FI_READ | FI_REMOTE_READ : FI_WRITE | FI_REMOTE_WRITE;

	s->size = LONG;
	s->format = FI_CQ_FORMAT_DATA;
	side_hints(s, FI_MSG | FI_RMA | rights);
	s->hints->mode |= FI_RX_CQ_DATA;
	s->hints->tx_attr->tclass = FI_TC_BULK_DATA;
	s->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	s->hints->domain_attr->cq_data_size = 4;
	side_start(s, 0);
	side_keys(s);
	for (unsigned i = 0; i < SIZES; i++)
		(s->client ? bw_client : bw_server)(s, way, sizes[i]);
	side_end(s);
}

static void bw_write(struct side *s)
{
	bw(s, WRITE);
}

static void bw_writedata(struct side *s)
{
	bw(s, WRITEDATA);
}

static void bw_read(struct side *s)
{
	bw(s, READ);
}

/* --- fi_rma_pingpong ---------------------------------------------------------------------------------- */

static void hit(struct side *s, size_t len, char mark)
{
	memset(s->out, mark, len);
	POST(s, &s->tx, access_post(s, WRITE, len));
	queue_wait(s, &s->tx, s->tx.posted);
}

/* The last byte is the last to come. */
static void await(struct side *s, size_t len, char mark)
{
	volatile char *last = s->in + len - 1;

	while (*last != mark)
		sched_yield();
	must(s->in[0] == mark, "the first byte comes after the last");
}

static void rma_pingpong(struct side *s)
{
	s->size = LONG;
	side_start(s, FI_MSG | FI_RMA | FI_WRITE | FI_REMOTE_WRITE);
	side_keys(s);
	oob_sync(s);
	for (unsigned i = 0; i < SIZES * 10; i++) {
		char mark = (char)(i + 1);

		if (s->client)
			hit(s, sizes[i / 10], mark);
		await(s, sizes[i / 10], mark);
		if (!s->client)
			hit(s, sizes[i / 10], mark);
	}
	/* The last message would come to where the last write went. */
	oob_sync(s);
	side_end(s);
}

/* --- fi_rdm_rma_event ------------------------------------------------------------------------------------ */

static void rma_event(struct side *s)
{
	uint64_t before;

	s->counted = true;
	s->wait = FI_WAIT_UNSPEC;
	side_start(s, FI_MSG | FI_RMA | FI_RMA_EVENT);
	side_keys(s);
	before = fi_cntr_read(s->rx.cntr);
	oob_sync(s);
	if (s->client) {
		fill(s->out, 1000, 5);
		POST(s, &s->tx, access_post(s, WRITE, 1000));
		queue_wait(s, &s->tx, s->tx.posted);
	} else {
		must_ok(fi_cntr_wait(s->rx.cntr, before + 1, WAIT_MS));
		same(s->in, 1000, 5);
	}
	oob_sync(s);
	side_end(s);
}

static void none_offered(struct side *s, uint64_t caps)
{
	struct fi_info *info = NULL;
	int ret;

	side_hints(s, caps);
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, s->hints, &info);
	must(ret == -FI_ENODATA && !info, "fi_getinfo: %d", ret);
	fi_freeinfo(s->hints);
	s->hints = NULL;
}

/* Tests of these skip themselves when they hear so. */
static void not_offered(struct side *s)
{
	const uint64_t variable_msg = FI_VARIABLE_MSG; /* 0 in libfabric 2 */

	none_offered(s, FI_MSG | FI_RMA | FI_TRIGGER | FI_RMA_EVENT);
	none_offered(s, FI_MSG | FI_SHARED_AV);
	none_offered(s, FI_MSG | FI_NAMED_RX_CTX);
	none_offered(s, FI_COLLECTIVE);
	none_offered(s, FI_MSG | FI_MULTICAST);
	if (variable_msg)
		none_offered(s, FI_MSG | variable_msg);
}

/* --- fi_rdm_atomic ------------------------------------------------------------------------------------------- */

struct operands {
	char value[64], compare[64], result[64];
};

static void base(struct side *s, struct operands *o, enum fi_datatype type, enum fi_op op)
{
	size_t count = 0;
	uint64_t at = s->there.addr + 1024;

	if (fi_atomicvalid(s->ep, type, op, &count))
		return;
	must(count, "fi_atomicvalid allows none");
	POST(s, &s->tx,
	     fi_atomic(s->ep, o->value, 1, s->desc, s->peer, at, s->there.key, type, op,
		       &s->tx.ctx));
	POST(s, &s->tx, fi_inject_atomic(s->ep, o->value, 1, s->peer, at, s->there.key, type, op));
	s->tx.done++;
}

static void fetch(struct side *s, struct operands *o, enum fi_datatype type, enum fi_op op)
{
	size_t count = 0;

	if (fi_fetch_atomicvalid(s->ep, type, op, &count))
		return;
	must(count, "fi_fetch_atomicvalid allows none");
	POST(s, &s->tx,
	     fi_fetch_atomic(s->ep, o->value, 1, s->desc, o->result, s->desc, s->peer,
			     s->there.addr + 1024, s->there.key, type, op, &s->tx.ctx));
}

static void compare(struct side *s, struct operands *o, enum fi_datatype type, enum fi_op op)
{
	size_t count = 0;

	if (fi_compare_atomicvalid(s->ep, type, op, &count))
		return;
	must(count, "fi_compare_atomicvalid allows none");
	POST(s, &s->tx,
	     fi_compare_atomic(s->ep, o->value, 1, s->desc, o->compare, s->desc, o->result, s->desc,
			       s->peer, s->there.addr + 1024, s->there.key, type, op, &s->tx.ctx));
}

static void query(struct side *s, enum fi_datatype type, enum fi_op op)
{
	struct fi_atomic_attr attr = { 0 };
	size_t count = 0;

	if (!fi_query_atomic(s->domain, type, op, &attr, 0))
		must(attr.count && attr.size && !fi_atomicvalid(s->ep, type, op, &count) &&
			     count == attr.count,
		     "fi_query_atomic says another number than fi_atomicvalid");
}

/* What is left of a sum that was added to in three ways. */
static void sums(struct side *s, struct operands *o)
{
	uint64_t *value = (void *)o->value, *result = (void *)o->result;
	uint64_t at = s->there.addr + 2048;

	*value = 5;
	POST(s, &s->tx,
	     fi_atomic(s->ep, value, 1, s->desc, s->peer, at, s->there.key, FI_UINT64, FI_SUM,
		       &s->tx.ctx));
	queue_wait(s, &s->tx, s->tx.posted);
	POST(s, &s->tx,
	     fi_fetch_atomic(s->ep, value, 1, s->desc, result, s->desc, s->peer, at, s->there.key,
			     FI_UINT64, FI_SUM, &s->tx.ctx));
	queue_wait(s, &s->tx, s->tx.posted);
	must(*result == 5, "it was %llu", (unsigned long long)*result);
}

static void atomic_client(struct side *s)
{
	struct operands *o = (void *)(s->out + ADDRESS);

	memset(o, 1, sizeof(*o));
	for (int type = 0; type < FI_DATATYPE_LAST; type++) {
		for (int op = 0; op < FI_ATOMIC_OP_LAST; op++) {
			base(s, o, (enum fi_datatype)type, (enum fi_op)op);
			fetch(s, o, (enum fi_datatype)type, (enum fi_op)op);
			compare(s, o, (enum fi_datatype)type, (enum fi_op)op);
			query(s, (enum fi_datatype)type, (enum fi_op)op);
			queue_wait(s, &s->tx, s->tx.posted);
		}
	}
	must(s->tx.posted > 400, "only %llu operations are valid",
	     (unsigned long long)s->tx.posted);
	sums(s, o);
}

static void rdm_atomic(struct side *s)
{
	side_start(s, FI_MSG | FI_ATOMIC);
	side_keys(s);
	if (s->client)
		atomic_client(s);
	sync_sides(s);
	must(s->client || *(uint64_t *)(void *)(s->in + 2048) == 10, "another sum");
	side_end(s);
}

/* --- fi_multi_mr ---------------------------------------------------------------------------------------------- */

#define REGIONS 3

struct one {
	char *mem;
	struct fid_mr *mr;
	struct fid_cntr *cntr;
	struct fi_rma_iov there;
};

static void one_open(struct side *s, struct one *o, unsigned i)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct iovec iov;
	struct fi_mr_attr mr_attr = { .mr_iov = &iov,
				      .iov_count = 1,
				      .access = side_access(s),
				      .requested_key = 0xC0DE + 1 + i };
	bool event = s->info->domain_attr->mr_mode & FI_MR_RMA_EVENT;

	must(!posix_memalign((void **)&o->mem, 4096, 4096), "no memory");
	memset(o->mem, 0, 4096);
	iov = (struct iovec){ o->mem, 4096 };
	must_ok(fi_mr_regattr(s->domain, &mr_attr, event ? FI_RMA_EVENT : 0, &o->mr));
	must_ok(fi_cntr_open(s->domain, &attr, &o->cntr, NULL));
	must_ok(fi_mr_bind(o->mr, &o->cntr->fid, FI_REMOTE_WRITE));
	if (s->info->domain_attr->mr_mode & FI_MR_ENDPOINT)
		must_ok(fi_mr_bind(o->mr, &s->ep->fid, 0));
	if (event || s->info->domain_attr->mr_mode & FI_MR_ENDPOINT)
		must_ok(fi_mr_enable(o->mr));
}

static void one_tell(struct side *s, struct one *o)
{
	struct fi_rma_iov *at = (void *)s->out;
	bool virt = s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;

	at->addr = virt ? (uintptr_t)o->mem : 0;
	at->len = 4096;
	at->key = fi_mr_key(o->mr);
	tx(s, sizeof(*at));
	queue_wait(s, &s->rx, s->rx.posted);
	memcpy(&o->there, s->in, sizeof(o->there));
	post_recv(s, LARGEST);
}

static void one_write(struct side *s, struct one *o, unsigned i)
{
	fill(s->out, 500, i);
	POST(s, &s->tx,
	     fi_write(s->ep, s->out, 500, s->desc, s->peer, o->there.addr + 100, o->there.key,
		      &s->tx.ctx));
	queue_wait(s, &s->tx, s->tx.posted);
	must_ok(fi_cntr_wait(o->cntr, 1, WAIT_MS));
	same(o->mem + 100, 500, i);
}

static void one_close(struct one *o)
{
	must_ok(fi_close(&o->cntr->fid));
	must_ok(fi_close(&o->mr->fid));
	free(o->mem);
}

static void multi_mr(struct side *s)
{
	struct one all[REGIONS];

	side_start(s, FI_MSG | FI_RMA | FI_RMA_EVENT);
	for (unsigned i = 0; i < REGIONS; i++) {
		one_open(s, &all[i], i);
		sync_sides(s);
		one_tell(s, &all[i]);
	}
	for (unsigned i = 0; i < REGIONS; i++)
		one_write(s, &all[i], i);
	sync_sides(s);
	for (unsigned i = 0; i < REGIONS; i++)
		one_close(&all[i]);
	side_end(s);
}

const struct pattern rma_patterns[] = {
	{ "rma_bw_write", bw_write, bw_write, true },
	{ "rma_bw_writedata", bw_writedata, bw_writedata, true },
	{ "rma_bw_read", bw_read, bw_read, false },
	{ "rma_pingpong", rma_pingpong, rma_pingpong, false },
	{ "rdm_rma_event", rma_event, rma_event, true },
	{ "rdm_atomic", rdm_atomic, rdm_atomic, false },
	{ "multi_mr", multi_mr, multi_mr, false },
	{ "what_is_not_offered", not_offered, NULL, false },
	{ NULL, NULL, NULL, false },
};
