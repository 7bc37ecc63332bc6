/* SPDX-License-Identifier: BSD-2-Clause */
/* Many clients, endpoints and messages. */
#include "side.h"

/* --- fi_rdm_multi_client --------------------------------------------------------------------------- */

#define CLIENTS 5

static void talk(struct side *s, unsigned seed)
{
	for (unsigned i = 0; i < 10; i++) {
		if (!s->client)
			queue_wait(s, &s->rx, s->rx.posted);
		if (!s->client)
			post_recv(s, LARGEST);
		fill(s->out, 500, seed + i);
		tx(s, 500);
		if (s->client) {
			queue_wait(s, &s->rx, s->rx.posted);
			same(s->in, 500, seed + i);
			post_recv(s, LARGEST);
		}
	}
}

/* To the server, a client that has the port of the one before is at its address, and another endpoint. */
enum port { ANY, OF_INFO, BY_NAME };

struct name {
	struct sockaddr_storage addr;
	size_t len; /* 0: not known yet */
};

static void note_name(struct side *s, struct name *name)
{
	if (name->len)
		return;
	name->len = sizeof(name->addr);
	must_ok(fi_getname(&s->ep->fid, &name->addr, &name->len));
}

/* From now on, what is opened has this port. */
static void ask_for_port(struct side *s, const struct name *name)
{
	if (s->hints->src_addr)
		return;
	s->hints->src_addr = malloc(name->len);
	must(s->hints->src_addr, "no memory");
	memcpy(s->hints->src_addr, &name->addr, name->len);
	s->hints->src_addrlen = name->len;
}

/* Everything is opened anew for each client, and closed. */
static void clients(struct side *s, enum port port)
{
	struct name name = { .len = 0 };

	for (unsigned i = 0; i < CLIENTS; i++) {
		side_info(s);
		side_open_domain(s);
		side_open_endpoint_at(s, port == BY_NAME && name.len ? &name.addr : NULL, name.len);
		note_name(s, &name);
		if (port == OF_INFO)
			ask_for_port(s, &name);
		side_meet(s);
		talk(s, i);
		side_last(s);
		side_close(s);
	}
}

static void server_of_clients(struct side *s)
{
	side_open(s);
	for (unsigned i = 0; i < CLIENTS; i++) {
		side_meet(s);
		talk(s, i);
		side_last(s);
		must_ok(fi_av_remove(s->av, &s->peer, 1, 0));
		s->peer = FI_ADDR_UNSPEC;
		post_recv(s, LARGEST);
	}
	side_close(s);
}

static void multi_client_at(struct side *s, enum port port)
{
	side_hints(s, FI_MSG);
	if (s->client)
		clients(s, port);
	else
		server_of_clients(s);
}

static void multi_client(struct side *s)
{
	multi_client_at(s, ANY);
}

static void multi_client_again(struct side *s)
{
	multi_client_at(s, OF_INFO);
}

static void multi_client_by_name(struct side *s)
{
	multi_client_at(s, BY_NAME);
}

/* --- fi_multi_ep ---------------------------------------------------------------------------------------- */

#define ENDPOINTS 3

/* One endpoint, and what it does not share with the side's own. */
static void member_open(struct side *s, struct side *m, bool own)
{
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };

	*m = *s;
	m->tx.posted = m->tx.done = m->rx.posted = m->rx.done = 0;
	m->mem_size = 2 * LARGEST;
	must(!posix_memalign((void **)&m->mem, 4096, m->mem_size), "no memory");
	m->in = m->mem;
	m->out = m->mem + LARGEST;
	if (own) {
		struct fi_cq_attr attr = { .format = s->format, .size = 16 };

		must_ok(fi_cq_open(s->domain, &attr, &m->tx.cq, NULL));
		must_ok(fi_cq_open(s->domain, &attr, &m->rx.cq, NULL));
		must_ok(fi_av_open(s->domain, &av_attr, &m->av, NULL));
	}
	must_ok(fi_endpoint(s->domain, s->info, &m->ep, NULL));
	must_ok(fi_ep_bind(m->ep, &m->av->fid, 0));
	must_ok(fi_ep_bind(m->ep, &m->tx.cq->fid, FI_TRANSMIT));
	must_ok(fi_ep_bind(m->ep, &m->rx.cq->fid, FI_RECV));
	must_ok(fi_enable(m->ep));
}

static void member_reg(struct side *m, unsigned i)
{
	m->mr = side_reg(m, m->mem, m->mem_size, side_access(m), 0xC0DE + 10 + i);
	m->desc = m->mr ? side_desc(m, m->mr) : NULL;
	side_meet_oob(m);
}

static void member_close(struct side *m, bool own)
{
	must_ok(fi_close(&m->ep->fid));
	if (m->mr)
		must_ok(fi_close(&m->mr->fid));
	if (own) {
		must_ok(fi_close(&m->tx.cq->fid));
		must_ok(fi_close(&m->rx.cq->fid));
		must_ok(fi_close(&m->av->fid));
	}
	free(m->mem);
}

/* From queues that are shared come entries of any of them. */
static void all_done(struct side *s, struct side *all, bool own)
{
	for (unsigned i = 0; own && i < ENDPOINTS; i++) {
		queue_wait(&all[i], &all[i].rx, all[i].rx.posted);
		queue_wait(&all[i], &all[i].tx, all[i].tx.posted);
	}
	if (!own) {
		s->rx.posted += ENDPOINTS;
		s->tx.posted += ENDPOINTS;
		queue_wait(s, &s->rx, s->rx.posted - 1);
		queue_wait(s, &s->tx, s->tx.posted);
	}
	for (unsigned i = 0; i < ENDPOINTS; i++)
		same(all[i].in, 5000, i);
}

static void transfers(struct side *s, struct side *all, bool own)
{
	for (unsigned i = 0; i < ENDPOINTS; i++)
		post_recv(&all[i], LARGEST);
	oob_sync(s);
	for (unsigned i = 0; i < ENDPOINTS; i++) {
		fill(all[i].out, 5000, i);
		post_send(&all[i], 5000);
	}
	all_done(s, all, own);
	oob_sync(s);
}

static void multi_ep_of(struct side *s, bool own)
{
	struct side all[ENDPOINTS];

	/* The server's port is that of its first endpoint; the others take any. */
	side_hints(s, FI_MSG);
	side_open(s);
	side_meet(s);
	((struct sockaddr_in *)s->info->src_addr)->sin_port = 0;
	for (unsigned i = 0; i < ENDPOINTS; i++) {
		member_open(s, &all[i], own);
		member_reg(&all[i], i);
	}
	for (unsigned i = 0; i < 3; i++)
		transfers(s, all, own);
	for (unsigned i = 0; i < ENDPOINTS; i++)
		member_close(&all[i], own);
	side_end(s);
}

static void multi_ep(struct side *s)
{
	multi_ep_of(s, true);
}

static void multi_ep_shared(struct side *s)
{
	multi_ep_of(s, false);
}

/* --- fi_bw, fi_rdm_tagged_bw ------------------------------------------------------------------------------ */

#define WINDOW 64
#define WINDOWS 2

static const size_t sizes[] = { 64, 1024, 8192, LARGEST };

static void window_send(struct side *s, size_t len)
{
	for (unsigned i = 0; i < WINDOW; i++) {
		if (len < s->info->tx_attr->inject_size)
			inject(s, len);
		else
			post_send(s, len);
	}
	queue_wait(s, &s->tx, s->tx.posted);
	rx(s);
}

/* The last receive is for the next window. */
static void window_recv(struct side *s)
{
	for (unsigned i = 0; i < WINDOW; i++)
		post_recv(s, LARGEST);
	queue_wait(s, &s->rx, s->rx.posted - 1);
	tx(s, 4);
}

static void stream(struct side *s, uint64_t caps)
{
	side_hints(s, caps);
	s->hints->tx_attr->tclass = FI_TC_BULK_DATA;
	s->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	side_start(s, caps);
	for (unsigned i = 0; i < 4 * WINDOWS; i++) {
		size_t len = sizes[i / WINDOWS];

		fill(s->out, len, i);
		if (i % WINDOWS == 0)
			sync_sides(s);
		if (s->client)
			window_send(s, len);
		else
			window_recv(s);
		must(s->client || s->rx.last.op_context == &s->rx.ctx, "another context");
	}
	side_end(s);
}

static void bw(struct side *s)
{
	stream(s, FI_MSG);
}

static void tagged_bw(struct side *s)
{
	stream(s, FI_TAGGED);
}

static void bw_asleep(struct side *s)
{
	s->wait = FI_WAIT_UNSPEC;
	bw(s);
}

/* --- fi_resmgmt_test ---------------------------------------------------------------------------------------- */

#define TOO_MANY 3000

/* Nothing is read before all are sent: the queue of sends has a place for one of ten. */
static void overrun_send(struct side *s)
{
	ssize_t ret;

	for (unsigned i = 0; i < TOO_MANY;) {
		fill(s->out, 20, i);
		ret = fi_sendmsg(s->ep,
				 &(struct fi_msg){ .msg_iov = &(struct iovec){ s->out, 20 },
						   .iov_count = 1,
						   .addr = s->peer,
						   .context = &s->tx.ctx },
				 FI_INJECT | FI_COMPLETION);
		must(!ret || ret == -FI_EAGAIN, "fi_sendmsg: %zd", ret);
		i += !ret;
		s->tx.posted += !ret;
	}
	queue_wait(s, &s->tx, s->tx.posted);
}

static void overrun_recv(struct side *s)
{
	for (unsigned i = 0; i < TOO_MANY; i++) {
		queue_wait(s, &s->rx, s->rx.posted);
		same(s->in, 20, i);
		post_recv(s, LARGEST);
	}
}

/* More receives than the queue of receives has entries, all filled before the first is read. */
static void overrun_posted(struct side *s)
{
	unsigned n = 2 * (unsigned)s->info->rx_attr->size;

	oob_sync(s);
	for (unsigned i = 0; !s->client && i < n; i++)
		post_recv(s, LARGEST);
	oob_sync(s);
	for (unsigned i = 0; s->client && i < n; i++) {
		post_send(s, 8);
		queue_wait(s, &s->tx, s->tx.posted);
	}
	oob_sync(s);
	if (!s->client)
		queue_wait(s, &s->rx, s->rx.posted - 1);
}

static void resmgmt(struct side *s)
{
	side_hints(s, FI_MSG);
	s->hints->domain_attr->mr_mode = 0;
	s->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	s->hints->tx_attr->size = 512;
	s->hints->rx_attr->size = 512;
	side_start(s, 0);
	must(s->info->domain_attr->resource_mgmt == FI_RM_ENABLED, "no resource management");
	if (s->client)
		overrun_send(s);
	else
		overrun_recv(s);
	overrun_posted(s);
	side_end(s);
}

/* --- fi_multi_recv ------------------------------------------------------------------------------------------ */

#define EACH 500u
#define PER_BUFFER 8u
#define BUFFERS 2u
#define PACKED (10u * PER_BUFFER * BUFFERS)

static void post_packed(struct side *s, void *buf)
{
	const struct iovec iov = { buf, PER_BUFFER * EACH };
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = &s->desc,
			      .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC,
			      .context = buf };

	must_ok((int)fi_recvmsg(s->ep, &msg, FI_MULTI_RECV));
}

/* Each buffer takes as many as fit, and the last of them gives it back. */
static void take_packed(struct side *s, unsigned i)
{
	char *buf = s->in + i / PER_BUFFER % BUFFERS * PER_BUFFER * EACH;
	bool last = i % PER_BUFFER == PER_BUFFER - 1;
	struct fi_cq_data_entry entry;
	long end = now_ms() + WAIT_MS;
	ssize_t ret;

	while ((ret = fi_cq_read(s->rx.cq, &entry, 1)) == -FI_EAGAIN)
		must(now_ms() < end, "message %u does not come", i);
	must(ret == 1 && entry.len == EACH, "message %u: %zd, %zu bytes", i, ret, entry.len);
	must(entry.op_context == buf && entry.buf == buf + i % PER_BUFFER * EACH,
	     "message %u is at another place", i);
	must(!(entry.flags & FI_MULTI_RECV) == !last, "message %u: flags 0x%llx", i,
	     (unsigned long long)entry.flags);
	same(entry.buf, EACH, i);
	if (last)
		post_packed(s, buf);
}

static void multi_recv(struct side *s)
{
	size_t min = EACH;

	side_hints(s, FI_MSG | FI_MULTI_RECV);
	s->format = FI_CQ_FORMAT_DATA;
	s->nothing_posted = true;
	side_open(s);
	must_ok(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	for (unsigned i = 0; !s->client && i < BUFFERS; i++)
		post_packed(s, s->in + i * PER_BUFFER * EACH);
	side_meet_oob(s);
	for (unsigned i = 0; i < PACKED; i++) {
		fill(s->out, EACH, i);
		if (s->client)
			tx(s, EACH);
		else
			take_packed(s, i);
	}
	oob_sync(s);
	side_close(s);
}

/* --- fi_av_xfer ------------------------------------------------------------------------------------------------ */

static void reinsert(struct side *s)
{
	char name[64];
	size_t len = sizeof(name);

	must_ok(fi_av_lookup(s->av, s->peer, name, &len));
	must_ok(fi_av_remove(s->av, &s->peer, 1, 0));
	must(fi_av_insert(s->av, name, 1, &s->peer, 0, NULL) == 1, "fi_av_insert");
}

static void av_xfer_of(struct side *s, uint64_t caps)
{
	side_start(s, caps);
	for (unsigned i = 0; i < 3; i++) {
		talk(s, i);
		sync_sides(s);
		if (i != (s->client ? 1u : 0u))
			reinsert(s);
	}
	/* One side has removed the other: what that one sends arrives all the same. */
	if (!s->client)
		must_ok(fi_av_remove(s->av, &s->peer, 1, 0));
	oob_sync(s);
	if (s->client)
		tx(s, 300);
	else
		queue_wait(s, &s->rx, s->rx.posted);
	oob_sync(s);
	side_close(s);
}

static void av_xfer(struct side *s)
{
	av_xfer_of(s, FI_MSG);
}

static void av_xfer_tagged(struct side *s)
{
	av_xfer_of(s, FI_TAGGED);
}

const struct pattern many_patterns[] = {
	{ "rdm_multi_client", multi_client, multi_client, false },
	{ "rdm_multi_client_again", multi_client_again, multi_client_again, false },
	{ "multi_recv", multi_recv, multi_recv, true },
	{ "rdm_multi_client_by_name", multi_client_by_name, multi_client_by_name, false },
	{ "multi_ep", multi_ep, multi_ep, true },
	{ "multi_ep_shared", multi_ep_shared, multi_ep_shared, false },
	{ "bw", bw, bw, false },
	{ "bw_asleep", bw_asleep, bw_asleep, false },
	{ "rdm_tagged_bw", tagged_bw, tagged_bw, false },
	{ "resmgmt_test", resmgmt, resmgmt, false },
	{ "av_xfer", av_xfer, av_xfer, false },
	{ "av_xfer_tagged", av_xfer_tagged, av_xfer_tagged, false },
	{ NULL, NULL, NULL, false },
};
