/* SPDX-License-Identifier: BSD-2-Clause */
/* A process's part of the fabric, and the peer that reaches what another has registered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include "exec.h"

unsigned patience_ms = SOON_MS;

const char *auth_key(unsigned auth)
{
	static const char *const keys[] = { "", "the first key", "another one" };

	return keys[auth];
}

static void with_key(struct fi_info *info, unsigned auth)
{
	info->ep_attr->auth_key = (uint8_t *)strdup(auth_key(auth));
	info->ep_attr->auth_key_size = strlen(auth_key(auth));
}

void endpoint_open(struct side *side, struct fid_cq *cq, unsigned auth, struct endpoint *ep)
{
	struct fi_info *info = fi_dupinfo(side->info);
	size_t len = sizeof(ep->name);

	if (auth)
		with_key(info, auth);
	must(fi_endpoint(side->domain, info, &ep->ep, NULL));
	fi_freeinfo(info);
	must(fi_ep_bind(ep->ep, &side->av->fid, 0));
	must(fi_ep_bind(ep->ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	if (side->writes)
		must(fi_ep_bind(ep->ep, &side->writes->fid, FI_WRITE));
	if (side->conf->messages) {
		ep->sends = cntr_open(side);
		must(fi_ep_bind(ep->ep, &ep->sends->fid, FI_SEND));
	}
	must(fi_enable(ep->ep));
	memset(ep->name, 0, sizeof(ep->name));
	must(fi_getname(&ep->ep->fid, ep->name, &len));
	if (side->conf->messages)
		must_be(fi_av_insert(side->av, ep->name, 1, &ep->addr, 0, NULL), 1);
}

void endpoint_closed(struct endpoint *ep)
{
	if (ep->sends)
		must(fi_close(&ep->sends->fid));
	ep->sends = NULL;
	ep->ep = NULL;
}

void endpoint_close(struct endpoint *ep)
{
	must(fi_close(&ep->ep->fid));
	endpoint_closed(ep);
}

struct fid_cntr *cntr_open(struct side *side)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr = NULL;

	must(fi_cntr_open(side->domain, &attr, &cntr, NULL));
	return cntr;
}

void cntr_check(struct fid_cntr *cntr, const struct tally *tally)
{
	unsigned least = atomic_load(&tally->least), most = atomic_load(&tally->most);
	int64_t end = clock_ms() + patience_ms;
	uint64_t count;

	while ((count = fi_cntr_read(cntr)) < least && clock_ms() < end)
		fi_cntr_wait(cntr, least, 100);
	if (count < least || count > most)
		model_fail("count", "fi_cntr_read: %llu instead of %u to %u",
			   (unsigned long long)count, least, most);
	must_be(fi_cntr_readerr(cntr), 0);
}

void side_open(struct side *side, const struct backend *backend, const struct conf *conf,
	       unsigned endpoints)
{
	struct fi_cq_attr cq = { .format = endpoints == SHARED_EPS ? FI_CQ_FORMAT_TAGGED
								   : FI_CQ_FORMAT_DATA,
				 .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	memset(side, 0, sizeof(*side));
	side->backend = backend;
	side->conf = conf;
	side->info = backend->info(conf);
	side->info->fabric_attr->api_version = conf->api;
	must(fi_fabric(side->info->fabric_attr, &side->fabric, NULL));
	must(fi_domain(side->fabric, side->info, &side->domain, NULL));
	if (endpoints == SHARED_EPS)
		async_open(side);
	else
		side->writes = cntr_open(side);
	must(fi_av_open(side->domain, &av, &side->av, NULL));
	must(fi_cq_open(side->domain, &cq, &side->cq, NULL));
	for (unsigned i = 0; i < endpoints; i++)
		endpoint_open(side, side->cq, 0, &side->shared[i]);
	for (unsigned i = 0; i < SHARED_CNTRS; i++)
		side->cntrs[i] = cntr_open(side);
}

void side_close(struct side *side)
{
	for (unsigned i = 0; i < SHARED_EPS; i++) {
		if (side->shared[i].ep)
			endpoint_close(&side->shared[i]);
	}
	for (unsigned i = 0; i < SHARED_CNTRS; i++) {
		if (side->cntrs[i])
			must(fi_close(&side->cntrs[i]->fid));
	}
	if (side->writes)
		must(fi_close(&side->writes->fid));
	must(fi_close(&side->cq->fid));
	must(fi_close(&side->av->fid));
	must(fi_close(&side->domain->fid));
	async_close(side);
	must(fi_close(&side->fabric->fid));
	fi_freeinfo(side->info);
}

/* --- the peer ---------------------------------------------------------------------- */

#define ADDRS 512

struct mate {
	struct side side;
	struct conf conf;      /* device: its own memory is a device's */
	const struct rig *rig; /* whose; or NULL */
	uint8_t *buf, *board;  /* MAX_ACCESS bytes */
	uint8_t *host;	       /* so many, which are never a device's */
	struct fid_mr *mr, *board_mr;
	void *desc;
	struct fid_cq *mail_cq; /* of its messages */
	struct endpoint mail_ep;
	struct mail mail;
	struct endpoint with_key[AUTH_KEYS]; /* opened when they are needed */
	uint64_t written, failed;	     /* by the endpoint, before it injected something */
	unsigned naddrs;
	struct {
		char name[NAME_MAX_LEN];
		fi_addr_t addr;
	} addrs[ADDRS];
	struct peer_ask ask;
	struct peer_answer answer; /* but bytes */
};

static uint8_t *pages(void)
{
	void *p =
		mmap(NULL, MAX_ACCESS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static uint8_t *memory_new(const struct mate *p)
{
	return p->rig ? device_memory(p->rig, MAX_ACCESS) : pages();
}

static void memory_free(const struct mate *p, uint8_t *mem)
{
	if (p->rig)
		p->rig->unmake(RT_DEVICE, mem);
	else
		munmap(mem, MAX_ACCESS);
}

/* To its own memory, and from there. */
static void bytes_put(const struct mate *p, uint8_t *to, const uint8_t *from, size_t len)
{
	if (p->rig)
		p->rig->put(to, from, len);
	else
		memcpy(to, from, len);
}

static void bytes_get(const struct mate *p, uint8_t *to, const uint8_t *from, size_t len)
{
	if (p->rig)
		p->rig->get(to, from, len);
	else
		memcpy(to, from, len);
}

/* As the mode wants it. */
static struct fid_mr *reg(struct mate *p, void *buf, uint64_t access)
{
	const struct iovec iov = { buf, MAX_ACCESS };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = access };
	uint64_t mode = p->side.conf->mode;
	struct fid_mr *mr = NULL;

	if (p->rig)
		device_attr(p->rig, &attr);
	must(fi_mr_regattr(p->side.domain, &attr, 0, &mr));
	if (mode & FI_MR_ENDPOINT) {
		must(fi_mr_bind(mr, &p->side.shared[0].ep->fid, 0));
		must(fi_mr_enable(mr));
	}
	if (mode & FI_MR_MMU_NOTIFY)
		must(fi_mr_refresh(mr, NULL, 0, 0));
	return mr;
}

static void buffers_open(struct mate *p)
{
	p->rig = p->conf.device ? device_rig(&p->conf) : NULL;
	p->buf = memory_new(p);
	p->board = memory_new(p);
	p->host = pages();
	p->board_mr = reg(p, p->board, FI_REMOTE_READ | FI_REMOTE_WRITE);
	if (!(p->side.conf->mode & FI_MR_LOCAL) && !p->rig)
		return;
	p->mr = reg(p, p->buf, FI_READ | FI_WRITE);
	p->desc = fi_mr_desc(p->mr);
}

struct fid_cq *cq_for_messages(const struct side *side)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cq *cq = NULL;

	must(fi_cq_open(side->domain, &attr, &cq, NULL));
	return cq;
}

static void messages_start(struct mate *p)
{
	p->mail_cq = cq_for_messages(&p->side);
	endpoint_open(&p->side, p->mail_cq, 0, &p->mail_ep);
	memcpy(p->addrs[0].name, p->mail_ep.name, NAME_MAX_LEN);
	p->addrs[0].addr = p->mail_ep.addr;
	p->naddrs = 1;
	mail_open(&p->mail, &p->side, p->mail_cq);
}

static void messages_end(struct mate *p)
{
	mail_close(&p->mail);
	if (p->mail_ep.ep)
		endpoint_close(&p->mail_ep);
}

struct mate *mate_new(const struct backend *backend, const struct conf *conf)
{
	struct mate *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->conf = *conf;
	p->conf.device = conf->far;
	side_open(&p->side, backend, &p->conf, 1);
	buffers_open(p);
	if (conf->messages)
		messages_start(p);
	return p;
}

/* A bound region can be closed before its endpoint, or only after it. */
void mate_free(struct mate *p)
{
	int rc = fi_close(&p->board_mr->fid);

	messages_end(p);
	if (!rc && p->mr)
		must(fi_close(&p->mr->fid));
	endpoint_close(&p->side.shared[0]);
	for (unsigned i = 0; i < AUTH_KEYS; i++) {
		if (p->with_key[i].ep)
			endpoint_close(&p->with_key[i]);
	}
	if (rc) {
		must(fi_close(&p->board_mr->fid));
		if (p->mr)
			must(fi_close(&p->mr->fid));
	}
	mail_close(&p->mail);
	if (p->mail_cq)
		must(fi_close(&p->mail_cq->fid));
	side_close(&p->side);
	memory_free(p, p->buf);
	memory_free(p, p->board);
	munmap(p->host, MAX_ACCESS);
	free(p);
}

static fi_addr_t addr_of(struct mate *p, const char *name)
{
	for (unsigned i = 0; i < p->naddrs; i++) {
		if (!memcmp(p->addrs[i].name, name, NAME_MAX_LEN))
			return p->addrs[i].addr;
	}
	if (p->naddrs == ADDRS)
		model_fail("harness", "more than %d endpoints", ADDRS);
	memcpy(p->addrs[p->naddrs].name, name, NAME_MAX_LEN);
	must_be(fi_av_insert(p->side.av, name, 1, &p->addrs[p->naddrs].addr, 0, NULL), 1);
	return p->addrs[p->naddrs++].addr;
}

/* Its host memory is the same then. */
static void paint(const struct mate *p, uint8_t *at, const struct peer_ask *ask)
{
	for (uint32_t i = 0; i < ask->len; i++)
		p->host[i] = byte_of(ask->seed, i);
	bytes_put(p, at, p->host, ask->len);
}

/* Where they are in the buffer. */
#define RESULTS 1024
#define COMPARANDS 2048

static ssize_t post_atomic(struct mate *p, struct fid_ep *ep, fi_addr_t to)
{
	const struct peer_ask *ask = &p->ask;

	switch (ask->what) {
	case PEER_ATOMIC:
		return fi_atomic(ep, p->buf, ask->count, p->desc, to, ask->addr, ask->key,
				 ask->type, ask->op, p);
	case PEER_INJECT:
		p->written = fi_cntr_read(p->side.writes);
		p->failed = fi_cntr_readerr(p->side.writes);
		return fi_inject_atomic(ep, p->host, ask->count, to, ask->addr, ask->key, ask->type,
					ask->op);
	case PEER_FETCH:
		return fi_fetch_atomic(ep, p->buf, ask->count, p->desc, p->buf + RESULTS, p->desc,
				       to, ask->addr, ask->key, ask->type, ask->op, p);
	default:
		bytes_put(p, p->buf + COMPARANDS, ask->raw, ask->len);
		return fi_compare_atomic(ep, p->buf, ask->count, p->desc, p->buf + COMPARANDS,
					 p->desc, p->buf + RESULTS, p->desc, to, ask->addr,
					 ask->key, ask->type, ask->op, p);
	}
}

static ssize_t post_message(struct mate *p, struct fid_ep *ep, fi_addr_t to)
{
	const struct peer_ask *ask = &p->ask;
	struct iovec iov = { p->buf, ask->len };
	size_t first = ask->len / ask->pieces;
	const struct fi_rma_iov there[] = { { ask->addr, first, ask->key },
					    { ask->addr + first, ask->len - first, ask->key } };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &p->desc,
				  .iov_count = 1,
				  .addr = to,
				  .rma_iov = there,
				  .rma_iov_count = ask->pieces,
				  .context = p };

	return ask->what == PEER_READ ? fi_readmsg(ep, &msg, ask->flags)
				      : fi_writemsg(ep, &msg, ask->flags);
}

static struct fid_ep *ep_with(struct mate *p, unsigned auth)
{
	struct endpoint *ep = auth ? &p->with_key[auth - 1] : &p->side.shared[0];

	if (!ep->ep)
		endpoint_open(&p->side, p->side.cq, auth, ep);
	return ep->ep;
}

static ssize_t post(struct mate *p, fi_addr_t to)
{
	struct fid_ep *ep = ep_with(p, p->ask.auth);
	const struct peer_ask *ask = &p->ask;

	if (ask->what != PEER_READ)
		paint(p, p->buf, ask);
	if (ask->what != PEER_READ && ask->what != PEER_WRITE)
		return post_atomic(p, ep, to);
	if (ask->flags || ask->pieces > 1)
		return post_message(p, ep, to);
	if (ask->what == PEER_READ)
		return fi_read(ep, p->buf, ask->len, p->desc, to, ask->addr, ask->key, p);
	return fi_write(ep, p->buf, ask->len, p->desc, to, ask->addr, ask->key, p);
}

static void map(struct mate *p)
{
	struct peer_ask *ask = &p->ask;

	p->answer.rc = fi_mr_map_raw(p->side.domain, ask->base, ask->raw, ask->size, &p->answer.key,
				     ask->flags);
}

static void tell_board(struct mate *p)
{
	struct peer_answer *answer = &p->answer;

	answer->size = sizeof(answer->raw);
	must(fi_mr_raw_attr(p->board_mr, &answer->base, answer->raw, &answer->size, 0));
	memcpy(answer->name, p->side.shared[0].name, sizeof(answer->name));
}

static void do_mail(struct mate *p)
{
	struct mail_ask *ask = &p->ask.mail;

	ask->addr = *ask->name ? addr_of(p, ask->name) : FI_ADDR_UNSPEC;
	mail_do(&p->mail, &p->mail_ep, p->mail_cq, ask, &p->answer.mail);
	memcpy(p->answer.name, p->mail_ep.name, sizeof(p->answer.name));
}

void mate_start(struct mate *p, const struct peer_ask *ask)
{
	p->ask = *ask;
	memset(&p->answer, 0, offsetof(struct peer_answer, bytes));
	switch (ask->what) {
	case PEER_MAP:
		map(p);
		break;
	case PEER_BOARD:
		tell_board(p);
		break;
	case PEER_PAINT:
		paint(p, p->board, ask);
		break;
	case PEER_SHOW:
		break;
	case PEER_MAIL:
		do_mail(p);
		break;
	case PEER_UNMAP:
		p->answer.rc = fi_mr_unmap_key(p->side.domain, ask->key);
		break;
	default:
		p->answer.rc = (int32_t)post(p, addr_of(p, ask->name));
		break;
	}
}

int64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

int completion(struct fid_cq *cq, char *text)
{
	int64_t end = clock_ms() + patience_ms;
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	do
		ret = fi_cq_sread(cq, &entry, 1, NULL, 1000);
	while (ret == -FI_EAGAIN && clock_ms() < end);
	if (ret == 1)
		return 0;
	if (ret != -FI_EAVAIL)
		model_fail("no completion", "an access had no completion: %zd", ret);
	must_be(fi_cq_readerr(cq, &err, 0), 1);
	snprintf(text, 300, "%s", err.err_data ? (const char *)err.err_data : "");
	return err.err;
}

/* A counter tells of a success, the queue of failures only. */
static void await_injected(struct mate *p)
{
	struct fid_cntr *writes = p->side.writes;
	int64_t end = clock_ms() + patience_ms;

	while (fi_cntr_read(writes) == p->written && fi_cntr_readerr(writes) == p->failed) {
		if (clock_ms() > end)
			model_fail("no count", "an injected operation was not counted");
		fi_cntr_wait(writes, p->written + 1, 20);
	}
	if (fi_cntr_read(writes) == p->written)
		p->answer.err = completion(p->side.cq, p->answer.text);
}

void mate_end(struct mate *p, struct peer_answer *answer)
{
	bool access = p->ask.what <= PEER_INJECT;

	if (p->ask.what == PEER_INJECT && !p->answer.rc)
		await_injected(p);
	else if (access && !p->answer.rc)
		p->answer.err = completion(p->side.cq, p->answer.text);
	memcpy(answer, &p->answer, offsetof(struct peer_answer, bytes));
	if (p->ask.what == PEER_READ)
		bytes_get(p, answer->bytes, p->buf, p->ask.len);
	if (p->ask.what == PEER_FETCH || p->ask.what == PEER_COMPARE)
		bytes_get(p, answer->bytes, p->buf + RESULTS, p->ask.len);
	if (p->ask.what == PEER_SHOW)
		bytes_get(p, answer->bytes, p->board, p->ask.len);
}
