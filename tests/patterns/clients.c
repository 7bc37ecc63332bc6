/* SPDX-License-Identifier: BSD-2-Clause */
/* As libraries for remote calls and for one-sided access do it. */
#include <poll.h>
#include <unistd.h>
#include <netinet/in.h>
#include "side.h"

/* --- Mercury ------------------------------------------------------------------------------------------------ */

static void mercury_open(struct side *s)
{
	side_hints(s, FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_SOURCE | FI_SOURCE_ERR);
	s->hints->mode = FI_ASYNC_IOV | FI_CONTEXT | FI_CONTEXT2;
	s->hints->addr_format = FI_SOCKADDR_IN;
	s->hints->tx_attr->op_flags = FI_INJECT_COMPLETE;
	s->hints->tx_attr->size = s->hints->rx_attr->size = 512;
	s->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	s->hints->domain_attr->threading = FI_THREAD_SAFE;
	s->wait = FI_WAIT_FD;
	s->one_queue = s->nothing_posted = true;
	s->format = FI_CQ_FORMAT_TAGGED;
	side_open(s);
	oob_sync(s);
}

/* Asleep on the descriptor; 1, or the error of fi_cq_readfrom. */
static ssize_t mercury_next(struct side *s, struct fi_cq_tagged_entry *e, fi_addr_t *source)
{
	struct fid *fids[] = { &s->tx.cq->fid };
	struct pollfd p = { .events = POLLIN };
	ssize_t ret;

	must_ok(fi_control(&s->tx.cq->fid, FI_GETWAIT, &p.fd));
	while ((ret = fi_cq_readfrom(s->tx.cq, e, 1, source)) == -FI_EAGAIN) {
		if (!fi_trywait(s->fabric, fids, 1))
			must(poll(&p, 1, WAIT_MS) == 1, "the descriptor is silent");
	}
	return ret;
}

static void mercury_done(struct side *s, const void *ctx)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t source;
	ssize_t ret = mercury_next(s, &e, &source);

	must(ret == 1 && e.op_context == ctx, "fi_cq_readfrom: %zd", ret);
}

/* A request of somebody unknown: its address is in the error, the request in the buffer. */
static void mercury_unknown(struct side *s, struct fi_context2 *ctx)
{
	struct sockaddr_in addr;
	struct fi_cq_err_entry err = { .err_data = &addr, .err_data_size = sizeof(addr) };
	struct fi_cq_tagged_entry e;
	fi_addr_t source;
	ssize_t ret = mercury_next(s, &e, &source);

	must(ret == -FI_EAVAIL && fi_cq_readerr(s->tx.cq, &err, 0) == 1, "fi_cq_readfrom: %zd",
	     ret);
	must(err.err == FI_EADDRNOTAVAIL && err.op_context == ctx && err.len == 200 &&
		     err.err_data_size == sizeof(addr) && addr.sin_family == AF_INET,
	     "err %d, %zu bytes", err.err, err.len);
	must(fi_av_insert(s->av, &addr, 1, &s->peer, 0, NULL) == 1, "fi_av_insert");
	same(s->in, 200, 2);
}

static void mercury_server(struct side *s)
{
	struct fi_cq_tagged_entry e;
	struct fi_context2 ctx[2];
	fi_addr_t source;

	for (unsigned i = 0; i < 5; i++) {
		POST(s, &s->rx, fi_recv(s->ep, s->in, 4096, s->desc, FI_ADDR_UNSPEC, &ctx[0]));
		if (!i) {
			mercury_unknown(s, &ctx[0]);
		} else {
			must(mercury_next(s, &e, &source) == 1 && e.op_context == &ctx[0] &&
				     source == s->peer,
			     "it is not known who sent it");
			same(s->in, 200, 2 + i);
		}
		fill(s->out, 300, i);
		POST(s, &s->tx, fi_tsend(s->ep, s->out, 300, s->desc, s->peer, 100 + i, &ctx[1]));
		mercury_done(s, &ctx[1]);
	}
}

/*
 * The answer is expected before the request is sent, from that source alone. It may complete before the request
 * does: that one was received is one thing, and that the other was acknowledged is another.
 */
static void mercury_call(struct side *s, unsigned i)
{
	struct fi_cq_tagged_entry e;
	struct fi_context2 ctx[2];
	unsigned done[2] = { 0 };
	fi_addr_t source;
	ssize_t ret;

	POST(s, &s->rx, fi_trecv(s->ep, s->in, 4096, s->desc, s->peer, 100 + i, 0, &ctx[0]));
	fill(s->out, 200, 2 + i);
	POST(s, &s->tx, fi_send(s->ep, s->out, 200, s->desc, s->peer, &ctx[1]));
	while (!done[0] || !done[1]) {
		ret = mercury_next(s, &e, &source);
		must(ret == 1, "fi_cq_readfrom: %zd", ret);
		done[e.op_context == &ctx[1]]++;
		must(e.op_context == &ctx[1] || (e.op_context == &ctx[0] && e.tag == 100 + i &&
						 e.len == 300 && source == s->peer),
		     "another answer");
	}
	must(done[0] == 1 && done[1] == 1, "a completion too many");
	same(s->in, 300, i);
}

/* An answer that does not come is given up. */
static void mercury_time_out(struct side *s)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	struct fi_context2 ctx;
	fi_addr_t source;

	POST(s, &s->rx, fi_trecv(s->ep, s->in, 4096, s->desc, s->peer, 999, 0, &ctx));
	must_ok(fi_cancel(&s->ep->fid, &ctx));
	must(mercury_next(s, &e, &source) == -FI_EAVAIL && fi_cq_readerr(s->tx.cq, &err, 0) == 1 &&
		     err.err == FI_ECANCELED && err.op_context == &ctx,
	     "err %d", err.err);
}

static void mercury_client(struct side *s)
{
	must(fi_av_insert(s->av, s->info->dest_addr, 1, &s->peer, 0, NULL) == 1, "fi_av_insert");
	for (unsigned i = 0; i < 5; i++)
		mercury_call(s, i);
	mercury_time_out(s);
}

static void mercury(struct side *s)
{
	mercury_open(s);
	(s->client ? mercury_client : mercury_server)(s);
	oob_sync(s);
	side_close(s);
}

/* --- GASNet-EX ------------------------------------------------------------------------------------------------ */

enum { REQUESTS, REPLIES, ACCESSES, KINDS };

struct member {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fi_context2 ctx;
};

/* Three endpoints with one table of addresses: in it are the peer's three, one after another. */
static void member_open(struct side *s, struct member *m)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA };
	char name[64];
	size_t len = sizeof(name);
	size_t min = 512;
	fi_addr_t at;

	must_ok(fi_cq_open(s->domain, &attr, &m->cq, NULL));
	must_ok(fi_endpoint(s->domain, s->info, &m->ep, NULL));
	must_ok(fi_ep_bind(m->ep, &s->av->fid, 0));
	must_ok(fi_ep_bind(m->ep, &m->cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
	must_ok(fi_setopt(&m->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	must_ok(fi_enable(m->ep));
	must_ok(fi_getname(&m->ep->fid, name, &len));
	must(write(s->oob, name, len) == (ssize_t)len && read(s->oob, name, len) == (ssize_t)len,
	     "the other side is gone");
	must(fi_av_insert(s->av, name, 1, &at, 0, NULL) == 1, "fi_av_insert");
}

static void member_recv(struct side *s, struct member *m)
{
	struct iovec iov = { s->in, 4096 };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &m->ctx
	};

	must_ok(fi_recvmsg(m->ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
}

static void member_got(struct side *s, struct member *m, unsigned seed)
{
	struct fi_cq_data_entry e;
	ssize_t ret;

	while ((ret = fi_cq_read(m->cq, &e, 1)) == -FI_EAGAIN)
		;
	must(ret == 1 && e.op_context == &m->ctx && e.len == 512, "fi_cq_read: %zd", ret);
	same(e.buf, 512, seed);
	if (e.flags & FI_MULTI_RECV)
		member_recv(s, m);
}

/* Without a completion: only receives are told of. */
static void member_send(struct side *s, struct member *m, fi_addr_t to, unsigned seed)
{
	struct iovec iov = { s->out, 512 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to, .context = &m->ctx };
	ssize_t ret;

	fill(s->out, 512, seed);
	while ((ret = fi_sendmsg(m->ep, &msg, FI_DELIVERY_COMPLETE)) == -FI_EAGAIN)
		fi_cq_read(m->cq, NULL, 0);
	must(!ret, "fi_sendmsg: %zd", ret);
}

static void gasnet_rounds(struct side *s, struct member *all)
{
	for (unsigned i = 0; i < 30; i++) {
		if (s->client) {
			member_send(s, &all[REQUESTS], REQUESTS, i);
			member_got(s, &all[REPLIES], i + 1);
		} else {
			member_got(s, &all[REQUESTS], i);
			member_send(s, &all[REPLIES], REPLIES, i + 1);
		}
	}
}

static void gasnet(struct side *s)
{
	struct member all[KINDS];

	side_hints(s, FI_RMA | FI_MSG | FI_MULTI_RECV);
	s->hints->domain_attr->mr_mode = BASIC;
	s->hints->domain_attr->av_type = FI_AV_TABLE;
	s->hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	side_info(s);
	side_open_domain(s);
	((struct sockaddr_in *)s->info->src_addr)->sin_port = 0;
	for (unsigned i = 0; i < KINDS; i++)
		member_open(s, &all[i]);
	member_recv(s, &all[s->client ? REPLIES : REQUESTS]);
	oob_sync(s);
	gasnet_rounds(s, all);
	oob_sync(s);
	for (unsigned i = 0; i < KINDS; i++) {
		/* Only what was received has entries. */
		must(fi_cq_read(all[i].cq, NULL, 0) == -FI_EAGAIN, "a send has an entry");
		must_ok(fi_close(&all[i].ep->fid));
		must_ok(fi_close(&all[i].cq->fid));
	}
	side_close(s);
}

/* --- LCI and NIXL -------------------------------------------------------------------------------------------------- */

#define POOL 64
#define PACKET 200

/* A pool of receives from anybody, each with its own buffer, which is posted again when it is read. */
struct pool {
	struct fi_context2 ctx[POOL];
};

static void pool_post(struct side *s, struct pool *p, unsigned i)
{
	must_ok(fi_recv(s->ep, s->in + i * PACKET, PACKET, s->desc, FI_ADDR_UNSPEC, &p->ctx[i]));
}

/* The next packet; sends that complete meanwhile are passed over. */
static void pool_next(struct side *s, struct pool *p, uint64_t data, unsigned seed)
{
	struct fi_cq_data_entry *e;
	struct fi_cq_tagged_entry entry;
	size_t i;

	do {
		entry = entry_next(s, NULL);
		e = (void *)&entry;
	} while (e->flags & FI_SEND);
	i = (size_t)((struct fi_context2 *)e->op_context - p->ctx);
	must(i < POOL && e->flags & FI_REMOTE_CQ_DATA && e->data == data, "data 0x%llx for 0x%llx",
	     (unsigned long long)e->data, (unsigned long long)data);
	same(s->in + i * PACKET, PACKET, seed);
	pool_post(s, p, (unsigned)i);
}

static void pool_hints(struct side *s)
{
	side_hints(s, FI_MSG | FI_RMA);
	s->hints->mode = 0;
	s->hints->domain_attr->mr_mode = BASIC | FI_MR_LOCAL | FI_MR_ENDPOINT;
	s->format = FI_CQ_FORMAT_DATA;
	s->one_queue = s->nothing_posted = true;
}

static void pool_start(struct side *s, struct pool *p)
{
	side_open(s);
	side_meet_oob(s);
	for (unsigned i = 0; i < POOL; i++)
		pool_post(s, p, i);
	oob_sync(s);
}

static ssize_t lci_inject(struct side *s, uint64_t data)
{
	struct iovec iov = { s->out, PACKET };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = s->peer, .data = data, .context = s
	};

	return fi_sendmsg(s->ep, &msg, FI_INJECT | FI_COMPLETION | FI_REMOTE_CQ_DATA);
}

static void lci(struct side *s)
{
	struct pool p;

	pool_hints(s);
	s->hints->domain_attr->threading = FI_THREAD_SAFE;
	s->hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	s->hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	s->hints->tx_attr->inject_size = PACKET;
	s->version = FI_VERSION(1, 6);
	s->cq_size = 65536;
	pool_start(s, &p);
	for (unsigned i = 0; i < 3 * POOL; i++) {
		fill(s->out, PACKET, i);
		POST(s, &s->tx, lci_inject(s, i));
		memset(s->out, 0, PACKET);
		pool_next(s, &p, i, i);
	}
	oob_sync(s);
	side_close(s);
}

/* Names the domain; a notification is a message with data, and so is each write. */
static void nixl(struct side *s)
{
	struct fi_info *found = NULL;
	struct pool p;

	must_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &found));
	pool_hints(s);
	s->hints->domain_attr->name = strdup(found->domain_attr->name);
	s->hints->domain_attr->threading = FI_THREAD_COMPLETION;
	fi_freeinfo(found);
	pool_start(s, &p);
	for (unsigned i = 0; i < 3 * POOL; i++) {
		/* What the other one sends next says that it has the one before. */
		char *out = s->out + i % 2 * PACKET;

		fill(out, PACKET, i);
		POST(s, &s->tx, fi_senddata(s->ep, out, PACKET, s->desc, i, s->peer, s));
		pool_next(s, &p, i, i);
	}
	oob_sync(s);
	side_close(s);
}

/* --- ps-lite, DGL ---------------------------------------------------------------------------------------------------- */

/* The format that tags have is compared with the one that is usual; who sent is an index of a table. */
static void ps_lite(struct side *s)
{
	struct fi_context2 ctx[2];
	fi_addr_t source = 99;

	side_hints(s, FI_TAGGED | FI_MSG | FI_DIRECTED_RECV | FI_SOURCE);
	s->hints->mode = FI_CONTEXT;
	s->hints->domain_attr->av_type = FI_AV_TABLE;
	s->hints->domain_attr->mr_mode = 0;
	s->hints->tx_attr->msg_order = s->hints->rx_attr->msg_order = FI_ORDER_SAS;
	s->one_queue = s->nothing_posted = true;
	s->format = FI_CQ_FORMAT_TAGGED;
	side_open(s);
	must(s->info->ep_attr->mem_tag_format == 0xaaaaaaaaaaaaaaaa, "mem_tag_format 0x%llx",
	     (unsigned long long)s->info->ep_attr->mem_tag_format);
	side_meet_oob(s);
	if (s->client) {
		fill(s->out, 700, 6);
		POST(s, &s->tx, fi_tsend(s->ep, s->out, 700, NULL, 0, 1ULL << 63 | 5, &ctx[0]));
		must(entry_next(s, NULL).op_context == &ctx[0], "another context");
	} else {
		must_ok(fi_trecv(s->ep, s->in, 700, NULL, FI_ADDR_UNSPEC, 1ULL << 63, 0xffff,
				 &ctx[1]));
		must(entry_next(s, &source).op_context == &ctx[1], "another context");
		must(source == 0, "it comes from %llu", (unsigned long long)source);
		same(s->in, 700, 6);
	}
	oob_sync(s);
	side_close(s);
}

/* --- Realm ----------------------------------------------------------------------------------------------------------- */

/* Written for the first version of the interface: FI_MR_BASIC, and fi_mr_reg. */
static void realm(struct side *s)
{
	struct fi_context2 ctx;

	side_hints(s, FI_MSG);
	s->hints->mode = FI_CONTEXT | FI_LOCAL_MR;
	s->hints->domain_attr->mr_mode = FI_MR_BASIC;
	s->version = FI_VERSION(1, 0);
	s->one_queue = s->nothing_posted = true;
	s->format = FI_CQ_FORMAT_MSG;
	side_open(s);
	must(s->info->domain_attr->mr_mode == FI_MR_BASIC, "mr_mode 0x%x",
	     (unsigned)s->info->domain_attr->mr_mode);
	side_meet_oob(s);
	must_ok(fi_mr_reg(s->domain, s->mem, s->mem_size, FI_SEND | FI_RECV, 0, 1, 0, &s->mr,
			  NULL));
	if (s->client)
		POST(s, &s->tx, fi_send(s->ep, s->out, 64, fi_mr_desc(s->mr), s->peer, &ctx));
	else
		must_ok(fi_recv(s->ep, s->in, 64, fi_mr_desc(s->mr), FI_ADDR_UNSPEC, &ctx));
	must(entry_next(s, NULL).op_context == &ctx, "another context");
	oob_sync(s);
	side_close(s);
}

const struct pattern client_patterns[] = {
	{ "mercury", mercury, mercury, true },
	{ "gasnet", gasnet, gasnet, false },
	{ "lci", lci, lci, false },
	{ "nixl", nixl, nixl, false },
	{ "ps_lite", ps_lite, ps_lite, false },
	{ "realm", realm, realm, false },
	{ NULL, NULL, NULL, false },
};
