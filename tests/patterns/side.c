/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>
#include "side.h"

#define PORT "9228"
#define KEY 0xC0DE

size_t side_room(const struct side *s)
{
	size_t size = s->size ? s->size : LARGEST;

	return size < ADDRESS ? ADDRESS : size;
}

bool side_is_tagged(const struct side *s)
{
	return s->hints->caps & FI_TAGGED;
}

/* --- fi_getinfo ----------------------------------------------------------------------------- */

void side_hints(struct side *s, uint64_t caps)
{
	s->hints = fi_allocinfo();
	must(s->hints, "fi_allocinfo");
	s->hints->caps = caps;
	s->hints->mode = FI_CONTEXT;
	s->hints->ep_attr->type = FI_EP_RDM;
	s->hints->domain_attr->mr_mode = OFFERED;
	s->hints->domain_attr->threading = FI_THREAD_DOMAIN;
	s->hints->tx_attr->tclass = FI_TC_LOW_LATENCY;
	s->hints->addr_format = FI_SOCKADDR;
	/* These are not what tests offer, but what the library may be told to require. */
	if (getenv("FI_MRFAB_MR_MODE"))
		s->hints->domain_attr->mr_mode |= FI_MR_RAW | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT;
}

static void node_tell(struct side *s)
{
	const struct sockaddr_in *in = s->info->src_addr;

	must(s->info->addr_format == FI_SOCKADDR_IN && ntohs(in->sin_port) == atoi(PORT),
	     "the source is of format %u, port %u", s->info->addr_format, ntohs(in->sin_port));
	inet_ntop(AF_INET, &in->sin_addr, s->node, sizeof(s->node));
	must(write(s->oob, s->node, sizeof(s->node)) == sizeof(s->node), "the client is gone");
}

static void node_hear(struct side *s)
{
	must(read(s->oob, s->node, sizeof(s->node)) == sizeof(s->node), "the server is gone");
}

/* Whose port is known already is found again, as by a program that has several endpoints. */
void side_info(struct side *s)
{
	if (s->client && !s->node[0])
		node_hear(s);
	must_ok(fi_getinfo(s->version ? s->version : FI_VERSION(1, 17), s->client ? s->node : NULL,
			   PORT, s->client ? 0 : FI_SOURCE, s->hints, &s->info));
	must(!(s->hints->caps & ~s->info->caps), "caps 0x%llx", (unsigned long long)s->info->caps);
	must(!(s->info->mode & ~s->hints->mode), "mode 0x%llx", (unsigned long long)s->info->mode);
	must(s->info->ep_attr->max_msg_size >= LARGEST && s->info->domain_attr->cq_data_size >= 4,
	     "sizes");
	if (!s->client && !s->node[0] && s->oob >= 0)
		node_tell(s);
}

/* --- opening ---------------------------------------------------------------------------------- */

static struct fid_cq *cq_open(struct side *s, size_t size)
{
	struct fi_cq_attr attr = { .size = size, .wait_obj = s->wait, .format = s->format };
	struct fid_cq *cq;

	if (!attr.format)
		attr.format = side_is_tagged(s) ? FI_CQ_FORMAT_TAGGED : FI_CQ_FORMAT_CONTEXT;
	s->format = attr.format;
	must_ok(fi_cq_open(s->domain, &attr, &cq, &s->tx));
	return cq;
}

static struct fid_cntr *cntr_open(struct side *s)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = s->wait };
	struct fid_cntr *cntr;

	must_ok(fi_cntr_open(s->domain, &attr, &cntr, &s->tx));
	return cntr;
}

static void mem_make(struct side *s)
{
	s->mem_size = 2 * side_room(s);
	must(!posix_memalign((void **)&s->mem, 4096, s->mem_size), "no memory");
	memset(s->mem, 0, s->mem_size);
	s->in = s->mem;
	s->out = s->mem + side_room(s);
}

void side_open_domain(struct side *s)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };

	must_ok(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	must_ok(fi_eq_open(s->fabric, &eq_attr, &s->eq, NULL));
	must_ok(fi_domain(s->fabric, s->info, &s->domain, NULL));
	s->tx.cq = cq_open(s, s->cq_size ? s->cq_size : s->info->tx_attr->size);
	if (s->by_counter || s->counted)
		s->tx.cntr = cntr_open(s);
	if (!s->one_queue)
		s->rx.cq = cq_open(s, s->cq_size ? s->cq_size : s->info->rx_attr->size);
	if (s->by_counter || s->counted)
		s->rx.cntr = cntr_open(s);
	if (s->info->domain_attr->av_type != FI_AV_UNSPEC)
		av_attr.type = s->info->domain_attr->av_type;
	must_ok(fi_av_open(s->domain, &av_attr, &s->av, NULL));
	s->peer = FI_ADDR_UNSPEC;
	mem_make(s);
}

static uint64_t cntr_flags(const struct side *s, uint64_t way, uint64_t accesses)
{
	uint64_t asked = s->hints->caps & accesses;

	if (!asked && s->hints->caps & FI_RMA)
		asked = accesses;
	/* Counting what peers write needs a capability of its own. */
	if (way == FI_RECV && !(s->hints->caps & FI_RMA_EVENT))
		asked = 0;
	return way | asked;
}

static void bind_all(struct side *s)
{
	uint64_t flags = s->cq_flags | (s->by_counter ? FI_SELECTIVE_COMPLETION : 0);

	must_ok(fi_ep_bind(s->ep, &s->av->fid, 0));
	must_ok(fi_ep_bind(s->ep, &s->tx.cq->fid,
			   flags | FI_TRANSMIT | (s->one_queue ? FI_RECV : 0)));
	if (!s->one_queue)
		must_ok(fi_ep_bind(s->ep, &s->rx.cq->fid, flags | FI_RECV));
	if (!s->tx.cntr)
		return;
	must_ok(fi_ep_bind(s->ep, &s->tx.cntr->fid, cntr_flags(s, FI_SEND, FI_WRITE | FI_READ)));
	must_ok(fi_ep_bind(s->ep, &s->rx.cntr->fid,
			   cntr_flags(s, FI_RECV, FI_REMOTE_WRITE | FI_REMOTE_READ)));
}

void side_open_endpoint_at(struct side *s, void *name, size_t len)
{
	must_ok(fi_endpoint(s->domain, s->info, &s->ep, NULL));
	if (name)
		must_ok(fi_setname(&s->ep->fid, name, len));
	bind_all(s);
	must_ok(fi_enable(s->ep));
	s->mr = side_reg(s, s->mem, s->mem_size, side_access(s), KEY);
	s->desc = s->mr ? side_desc(s, s->mr) : NULL;
	if (!s->nothing_posted && s->hints->caps & (FI_MSG | FI_TAGGED))
		post_recv(s, side_room(s));
}

void side_open_endpoint(struct side *s)
{
	side_open_endpoint_at(s, NULL, 0);
}

void side_open(struct side *s)
{
	side_info(s);
	side_open_domain(s);
	side_open_endpoint(s);
}

/* --- registering --------------------------------------------------------------------------------- */

uint64_t side_access(const struct side *s)
{
	uint64_t caps = s->info->caps, access = 0;
	bool local = s->info->domain_attr->mr_mode & FI_MR_LOCAL;

	if (local && caps & (FI_MSG | FI_TAGGED))
		access |= FI_SEND | FI_RECV;
	if (caps & (FI_RMA | FI_ATOMIC))
		access |= caps &
			  (FI_REMOTE_READ | FI_REMOTE_WRITE | (local ? FI_READ | FI_WRITE : 0));
	return access;
}

static bool is_reg_needed(const struct side *s)
{
	return s->info->domain_attr->mr_mode & FI_MR_LOCAL || s->info->caps & (FI_RMA | FI_ATOMIC);
}

/* NULL if the mode needs none. */
struct fid_mr *side_reg(struct side *s, void *buf, size_t len, uint64_t access, uint64_t key)
{
	int mode = s->info->domain_attr->mr_mode;
	struct iovec iov = { buf, len };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = access, .requested_key = key
	};
	struct fid_mr *mr;

	if (!is_reg_needed(s))
		return NULL;
	must_ok(fi_mr_regattr(s->domain, &attr, mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0, &mr));
	if (mode & FI_MR_ENDPOINT)
		must_ok(fi_mr_bind(mr, &s->ep->fid, 0));
	if (mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT))
		must_ok(fi_mr_enable(mr));
	if (mode & FI_MR_MMU_NOTIFY)
		must_ok(fi_mr_refresh(mr, &iov, 1, 0));
	return mr;
}

void *side_desc(const struct side *s, struct fid_mr *mr)
{
	return s->info->domain_attr->mr_mode & FI_MR_LOCAL ? fi_mr_desc(mr) : NULL;
}

/* --- meeting -------------------------------------------------------------------------------------- */

static void name_send(struct side *s)
{
	size_t len = ADDRESS;

	must(fi_av_insert(s->av, s->info->dest_addr, 1, &s->peer, 0, NULL) == 1, "fi_av_insert");
	must_ok(fi_getname(&s->ep->fid, s->out, &len));
	tx(s, len);
	rx(s);
}

/* A table's first index need not be asked for. */
static void name_insert(struct side *s)
{
	bool table = s->info->domain_attr->av_type == FI_AV_TABLE;

	queue_wait(s, &s->rx, s->rx.posted);
	must(fi_av_insert(s->av, s->in, 1, table ? NULL : &s->peer, 0, NULL) == 1, "fi_av_insert");
	if (table)
		s->peer = 0;
	post_recv(s, side_room(s));
	tx(s, 1);
}

void side_meet(struct side *s)
{
	oob_sync(s);
	(s->client ? name_send : name_insert)(s);
}

void side_meet_oob(struct side *s)
{
	char name[64];
	size_t len = sizeof(name);

	must_ok(fi_getname(&s->ep->fid, name, &len));
	must(write(s->oob, name, len) == (ssize_t)len && read(s->oob, name, len) == (ssize_t)len,
	     "the other side is gone");
	must(fi_av_insert(s->av, name, 1, &s->peer, 0, NULL) == 1, "fi_av_insert");
}

void side_start(struct side *s, uint64_t caps)
{
	if (!s->hints)
		side_hints(s, caps);
	side_open(s);
	side_meet(s);
}

static struct fi_rma_iov *own_place(const struct side *s, size_t *len)
{
	bool raw = s->info->domain_attr->mr_mode & FI_MR_RAW;
	struct fi_rma_iov *at = (void *)s->out;
	size_t key_size = 0;

	*len = sizeof(*at);
	at->addr = s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)s->in : 0;
	at->len = s->mem_size;
	at->key = raw ? 0 : fi_mr_key(s->mr);
	if (!raw)
		return at;
	must(fi_mr_raw_attr(s->mr, &at->addr, NULL, &key_size, 0) == -FI_ETOOSMALL && key_size,
	     "fi_mr_raw_attr");
	must_ok(fi_mr_raw_attr(s->mr, &at->addr, (uint8_t *)&at->key, &key_size, 0));
	*len += key_size - sizeof(at->key);
	return at;
}

void side_keys(struct side *s)
{
	const struct fi_rma_iov *told = (void *)s->in;
	size_t len;

	own_place(s, &len);
	tx(s, len);
	queue_wait(s, &s->rx, s->rx.posted);
	s->there = *told;
	if (s->info->domain_attr->mr_mode & FI_MR_RAW)
		must_ok(fi_mr_map_raw(s->domain, told->addr, (uint8_t *)(uintptr_t)&told->key,
				      s->info->domain_attr->mr_key_size, &s->there.key, 0));
	post_recv(s, side_room(s));
	sync_sides(s);
}

/* --- parting -------------------------------------------------------------------------------------- */

/* Each operation has completed once, and what completes without an entry has none. */
static void none_left(struct side *s)
{
	struct fi_cq_tagged_entry entry;

	must(fi_cq_read(s->tx.cq, &entry, 1) == -FI_EAGAIN, "more sends complete than there were");
	must(fi_cq_read(s->rx.cq, &entry, 1) == -FI_EAGAIN,
	     "more receives complete than there were");
	must(s->by_counter || (s->tx.done == s->tx.posted && s->rx.done == s->rx.posted),
	     "%llu of %llu sends, %llu of %llu receives have completed",
	     (unsigned long long)s->tx.done, (unsigned long long)s->tx.posted,
	     (unsigned long long)s->rx.done, (unsigned long long)s->rx.posted);
}

void side_last(struct side *s)
{
	struct iovec iov = { s->out, 4 };
	struct fi_msg msg = { .msg_iov = &iov,
			      .desc = &s->desc,
			      .iov_count = 1,
			      .addr = s->peer,
			      .context = &s->tx.ctx };
	struct fi_msg_tagged tmsg = { .msg_iov = &iov,
				      .desc = &s->desc,
				      .iov_count = 1,
				      .addr = s->peer,
				      .tag = s->tx.tag,
				      .context = &s->tx.ctx };

	memcpy(s->out, "fin", 4);
	if (side_is_tagged(s))
		POST(s, &s->tx, fi_tsendmsg(s->ep, &tmsg, FI_INJECT | FI_TRANSMIT_COMPLETE));
	else
		POST(s, &s->tx, fi_sendmsg(s->ep, &msg, FI_INJECT | FI_TRANSMIT_COMPLETE));
	memset(s->out, 0, 4);
	queue_wait(s, &s->tx, s->tx.posted);
	queue_wait(s, &s->rx, s->rx.posted);
	must(!strcmp(s->in, "fin"), "the last message is other bytes");
	none_left(s);
}

static void close_one(struct fid *fid, const char *what)
{
	int ret = fid ? fi_close(fid) : 0;

	must(!ret, "fi_close of the %s: %d, %s", what, ret, fi_strerror(-ret));
}

#define CLOSE(object, what)                                        \
	do {                                                       \
		close_one((object) ? &(object)->fid : NULL, what); \
		(object) = NULL;                                   \
	} while (0)

void side_close(struct side *s)
{
	if (s->info && s->info->domain_attr->mr_mode & FI_MR_RAW && s->there.key)
		must_ok(fi_mr_unmap_key(s->domain, s->there.key));
	CLOSE(s->ep, "endpoint");
	CLOSE(s->rx.cq, "queue of receives");
	CLOSE(s->tx.cq, "queue of sends");
	CLOSE(s->rx.cntr, "counter of receives");
	CLOSE(s->tx.cntr, "counter of sends");
	CLOSE(s->mr, "region");
	CLOSE(s->av, "address vector");
	CLOSE(s->domain, "domain");
	CLOSE(s->eq, "event queue");
	CLOSE(s->fabric, "fabric");
	fi_freeinfo(s->info);
	s->info = NULL;
	free(s->mem);
	s->tx = s->rx = (struct queue){ 0 };
	s->there = (struct fi_rma_iov){ 0 };
}

void side_end(struct side *s)
{
	side_last(s);
	side_close(s);
	fi_freeinfo(s->hints);
	s->hints = NULL;
}
