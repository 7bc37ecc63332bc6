/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_tagged.h>
#include "../runtime/rig.h"
#include "fab.h"

uint64_t func_caps, func_order;
int fab_placed;

const char *provider(void)
{
	const char *name = getenv("MRFAB_FUNC_PROVIDER");

	return name && *name ? name : "mrfab";
}

struct fi_info *hints_new(const struct mode *mode, const struct fab_opt *opt)
{
	struct fi_info *h = fi_allocinfo();
	bool hmem = opt->hmem || fab_placed;

	if (!h)
		case_fail("fi_allocinfo: no memory");
	h->caps = FI_RMA | mode->caps | func_caps | (hmem ? FI_HMEM : 0);
	h->addr_format = opt->addr_format ? opt->addr_format : FI_SOCKADDR_IN;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->mr_mode = mode->hint | (hmem ? FI_MR_HMEM : 0);
	h->domain_attr->av_type = opt->av;
	h->tx_attr->op_flags = opt->tx_flags;
	h->tx_attr->msg_order = h->rx_attr->msg_order = func_order;
	h->fabric_attr->prov_name = strdup(provider());
	if (opt->auth_key[0]) {
		h->domain_attr->auth_key = (uint8_t *)strdup(opt->auth_key);
		h->domain_attr->auth_key_size = strlen(opt->auth_key);
	}
	return h;
}

static void set_or_not(const char *variable, const char *value)
{
	if (value)
		setenv(variable, value, 1);
	else
		unsetenv(variable);
}

static void require(const char *what)
{
	bool profile = what && !strncmp(what, MODE_PROFILE, strlen(MODE_PROFILE));

	set_or_not("FI_MRFAB_MR_MODE", profile ? NULL : what);
	set_or_not("FI_MRFAB_PROFILE", profile ? what + strlen(MODE_PROFILE) : NULL);
}

int fab_info(const struct mode *mode, const struct fab_opt *opt, struct fi_info **info)
{
	const char *node = opt->node[0] ? opt->node : getenv("MRFAB_FUNC_NODE");
	struct fi_info *hints = hints_new(mode, opt);
	int rc;

	require(mode->required);
	*info = NULL;
	rc = fi_getinfo(mode->api, node, opt->service[0] ? opt->service : NULL,
			node ? FI_SOURCE : 0, hints, info);
	fi_freeinfo(hints);
	return rc;
}

static void mode_take(struct fab *f)
{
	int bits = f->info->domain_attr->mr_mode;

	if (bits == FI_MR_BASIC)
		bits = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	else if (bits == FI_MR_SCALABLE)
		bits = 0;
	f->bits = (uint64_t)bits;
	f->local = (bits & FI_MR_LOCAL) || (f->info->mode & FI_LOCAL_MR);
	f->virt = bits & FI_MR_VIRT_ADDR;
	f->prov_key = bits & FI_MR_PROV_KEY;
}

void fab_open_domain(struct fab *f, const struct mode *mode, const struct fab_opt *opt)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };

	*f = (struct fab){ .mode = mode };
	must_ok(fab_info(mode, opt, &f->info));
	mode_take(f);
	must_ok(fi_fabric(f->info->fabric_attr, &f->fabric, NULL));
	must_ok(fi_domain(f->fabric, f->info, &f->domain, NULL));
	if (!opt->async)
		return;
	must_ok(fi_eq_open(f->fabric, &eq, &f->eq, NULL));
	must_ok(fi_domain_bind(f->domain, &f->eq->fid, FI_REG_MR));
}

static void queues_open(struct fab *f, const struct fab_opt *opt)
{
	struct fi_cq_attr cq = { .format = opt->format ? opt->format : FI_CQ_FORMAT_DATA,
				 .wait_obj = opt->wait };
	struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av = { .type = opt->av ? opt->av : FI_AV_MAP };

	must_ok(fi_av_open(f->domain, &av, &f->av, NULL));
	must_ok(fi_cq_open(f->domain, &cq, &f->cq, NULL));
	if (!opt->counters)
		return;
	must_ok(fi_cntr_open(f->domain, &cntr, &f->wrote, NULL));
	must_ok(fi_cntr_open(f->domain, &cntr, &f->did_read, NULL));
}

static void endpoint_open(struct fab *f, const struct fab_opt *opt)
{
	must_ok(fi_endpoint(f->domain, f->info, &f->ep, NULL));
	must_ok(fi_ep_bind(f->ep, &f->av->fid, 0));
	must_ok(fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV | opt->cq_flags));
	if (f->wrote) {
		must_ok(fi_ep_bind(f->ep, &f->wrote->fid, FI_WRITE));
		must_ok(fi_ep_bind(f->ep, &f->did_read->fid, FI_READ));
	}
	must_ok(fi_enable(f->ep));
	f->name_len = sizeof(f->name);
	must_ok(fi_getname(&f->ep->fid, f->name, &f->name_len));
}

void fab_open(struct fab *f, const struct mode *mode, const struct fab_opt *opt)
{
	fab_open_domain(f, mode, opt);
	queues_open(f, opt);
	endpoint_open(f, opt);
}

static void close_fid(struct fid *fid, const char *what)
{
	int rc = fid ? fi_close(fid) : 0;

	if (rc)
		case_fail("fi_close of the %s: %d (%s)", what, rc, fi_strerror(-rc));
}

void fab_ready(struct fab *f, struct fid_mr *mr)
{
	if (f->bits & FI_MR_ENDPOINT) {
		must_ok(fi_mr_bind(mr, &f->ep->fid, 0));
		must_ok(fi_mr_enable(mr));
	}
	if (f->bits & FI_MR_MMU_NOTIFY)
		must_ok(fi_mr_refresh(mr, NULL, 0, 0));
}

int fab_mr_close(struct fab *f, struct fid_mr *mr)
{
	int rc = fi_close(&mr->fid);

	if (rc != -FI_EBUSY || !(f->bits & FI_MR_ENDPOINT))
		return rc;
	f->left = realloc(f->left, (f->nleft + 1) * sizeof(struct fid_mr *));
	must(f->left, "no memory");
	f->left[f->nleft++] = mr;
	return 0;
}

static void close_left(struct fab *f)
{
	while (f->nleft)
		close_fid(&f->left[--f->nleft]->fid, "region of the endpoint");
	free(f->left);
}

uint64_t fab_map(struct fab *f, uint64_t base, const void *raw, size_t size)
{
	uint8_t copy[1024];
	uint64_t key = FI_KEY_NOTAVAIL;

	if (!f->mapped)
		f->mapped = calloc(MAPPED, sizeof(*f->mapped));
	if (!f->mapped || f->nmapped == MAPPED || size > sizeof(copy))
		case_fail("too many mapped keys for the harness, or too large ones");
	memcpy(copy, raw, size);
	must_ok(fi_mr_map_raw(f->domain, base, copy, size, &key, 0));
	f->mapped[f->nmapped++] = key;
	return key;
}

void fab_unmap_all(struct fab *f)
{
	while (f->nmapped)
		must_ok(fi_mr_unmap_key(f->domain, f->mapped[--f->nmapped]));
}

void fab_close(struct fab *f)
{
	fab_unmap_all(f);
	free(f->mapped);
	close_fid(f->ep ? &f->ep->fid : NULL, "endpoint");
	close_left(f);
	close_fid(f->wrote ? &f->wrote->fid : NULL, "counter of writes");
	close_fid(f->did_read ? &f->did_read->fid : NULL, "counter of reads");
	close_fid(f->cq ? &f->cq->fid : NULL, "CQ");
	close_fid(f->av ? &f->av->fid : NULL, "AV");
	close_fid(f->domain ? &f->domain->fid : NULL, "domain");
	close_fid(f->eq ? &f->eq->fid : NULL, "event queue");
	close_fid(f->fabric ? &f->fabric->fid : NULL, "fabric");
	if (f->info)
		fi_freeinfo(f->info);
	*f = (struct fab){ 0 };
}

fi_addr_t fab_insert(struct fab *f, const void *name)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	must_be(fi_av_insert(f->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

int fab_reg(struct fab *f, const struct buf *b, const struct iovec *iov, uint64_t access,
	    uint64_t key, struct fid_mr **mr)
{
	struct fi_mr_attr attr = { .mr_iov = iov,
				   .iov_count = 1,
				   .access = access,
				   .requested_key = key,
				   .iface = b->rig ? b->rig->iface : FI_HMEM_SYSTEM };

	return fi_mr_regattr(f->domain, &attr, 0, mr);
}

void fab_buf(struct fab *f, struct buf *b, size_t size, uint64_t seed)
{
	static uint64_t key = 0x10ca1ull << 32; /* apart from the keys that cases choose */
	struct iovec all;

	buf_open(b, size, seed);
	b->fab = f;
	if (!f->local && !b->rig)
		return;
	all = (struct iovec){ b->mem, size };
	must_ok(fab_reg(f, b, &all,
			FI_READ | FI_WRITE | (func_caps & FI_MSG ? FI_SEND | FI_RECV : 0), key++,
			&b->mr));
	fab_ready(f, b->mr);
	b->desc = fi_mr_desc(b->mr);
	must(b->desc, "fi_mr_desc of a local region is NULL");
}

void fab_buf_close(struct buf *b)
{
	if (b->mr)
		must_ok(fab_mr_close(b->fab, b->mr));
	buf_close(b);
}

/* --- completions
 * ------------------------------------------------------------------------ */

static void take_error(struct fab *f, struct done *d)
{
	char data[300] = "", text[200] = "";
	struct fi_cq_err_entry e = { .err_data = data, .err_data_size = sizeof(data) - 1 };
	const char *t;
	bool own;

	must_be(fi_cq_readerr(f->cq, &e, 0), 1);
	*d = (struct done){ e.op_context, e.flags, e.len, e.data, e.err, e.prov_errno, "" };
	must(e.err > 0, "error completion without an error: err %d", e.err);
	own = e.err_data && e.err_data_size && e.err_data_size < sizeof(data);
	t = fi_cq_strerror(f->cq, e.prov_errno, own ? e.err_data : NULL, text, sizeof(text));
	snprintf(d->text, sizeof(d->text), "%.*s | %s", own ? (int)e.err_data_size : 0,
		 own ? (const char *)e.err_data : "", t ? t : "");
}

bool fab_poll(struct fab *f, struct done *d)
{
	struct fi_cq_tagged_entry c = { 0 };
	ssize_t n = fi_cq_read(f->cq, &c, 1);

	if (n == -FI_EAGAIN)
		return false;
	if (n == -FI_EAVAIL) {
		take_error(f, d);
		return true;
	}
	must(n == 1, "fi_cq_read: %zd (%s)", n, n < 0 ? fi_strerror((int)-n) : "not 1");
	*d = (struct done){ .ctx = c.op_context, .flags = c.flags, .len = c.len, .data = c.data };
	return true;
}

/* A machine that stood still, for instance a guest whose host was stopped, gets its time back. */
#define STOOD_MS 1000

bool fab_done(struct fab *f, struct done *d, long ms)
{
	long last = now_ms(), now, passed;

	do {
		if (fab_poll(f, d))
			return true;
		sched_yield();
		now = now_ms();
		passed = now - last;
		last = now;
		ms -= passed < STOOD_MS ? passed : STOOD_MS;
	} while (ms > 0);
	return false;
}

/* --- an operation that does not end ------------------------------------------------ */

#define MORE_MS 3000 /* for which a device is watched */
#define COUNTERS 40

struct counters {
	unsigned n;
	struct {
		char name[40];
		long value;
	} each[COUNTERS];
};

/* Those of all devices. */
static void counters_read(struct counters *c)
{
	glob_t found = { 0 };
	size_t i;

	c->n = 0;
	glob("/sys/class/infiniband/*/ports/1/hw_counters/*", 0, NULL, &found);
	for (i = 0; i < found.gl_pathc && c->n < COUNTERS; i++) {
		FILE *f = fopen(found.gl_pathv[i], "r");

		if (f && fscanf(f, "%ld", &c->each[c->n].value) == 1)
			snprintf(c->each[c->n++].name, sizeof(c->each[0].name), "%s",
				 strrchr(found.gl_pathv[i], '/') + 1);
		if (f)
			fclose(f);
	}
	globfree(&found);
}

/* Does the device work at it, or has somebody forgotten it? The counters say what is going on. */
static void never_done(struct fab *f, int waited)
{
	struct counters before, after;
	char text[600] = "";
	struct done d;
	bool late;
	unsigned i;
	size_t n = 0;

	counters_read(&before);
	late = fab_done(f, &d, MORE_MS);
	counters_read(&after);
	for (i = 0; i < after.n && n < sizeof(text); i++)
		if (after.each[i].value != before.each[i].value)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ", %s %ld+%ld",
					      after.each[i].name, before.each[i].value,
					      after.each[i].value - before.each[i].value);
	case_fail("no completion after %d ms; %s in %d ms more%s", waited, late ? "it came" : "nor",
		  MORE_MS, text);
}

void fab_quiet(struct fab *f)
{
	struct done d;

	must(!fab_poll(f, &d), "a completion too many: context %p, flags 0x%llx, err %d %s", d.ctx,
	     (unsigned long long)d.flags, d.err, d.text);
}

ssize_t op_post(struct fab *f, const struct op *op)
{
	uint8_t *at = op->buf->mem + op->off;
	long end = now_ms() + SOON;
	ssize_t rc;

	do {
		if (op->read)
			rc = fi_read(f->ep, at, op->len, op->buf->desc, op->to, op->addr, op->key,
				     op->ctx);
		else
			rc = fi_write(f->ep, at, op->len, op->buf->desc, op->to, op->addr, op->key,
				      op->ctx);
		if (rc != -FI_EAGAIN)
			return rc;
		fi_cq_read(f->cq, NULL, 0);
		sched_yield();
	} while (now_ms() < end);
	return rc;
}

static ssize_t again_while_full(struct fab *f, const struct msg_part *m,
				ssize_t (*post)(struct fab *f, const struct msg_part *m))
{
	long end = now_ms() + SOON;
	ssize_t rc;

	while ((rc = post(f, m)) == -FI_EAGAIN && now_ms() < end) {
		fi_cq_read(f->cq, NULL, 0);
		sched_yield();
	}
	return rc;
}

static ssize_t send_once(struct fab *f, const struct msg_part *m)
{
	if (m->tagged)
		return fi_tsend(f->ep, m->buf->mem + m->off, m->len, m->buf->desc, m->to, m->tag,
				m->ctx);
	return fi_send(f->ep, m->buf->mem + m->off, m->len, m->buf->desc, m->to, m->ctx);
}

ssize_t msg_send(struct fab *f, const struct msg_part *m)
{
	return again_while_full(f, m, send_once);
}

static ssize_t recv_once(struct fab *f, const struct msg_part *m)
{
	return fi_recv(f->ep, m->buf->mem + m->off, m->len, m->buf->desc, m->to, m->ctx);
}

ssize_t msg_recv(struct fab *f, const struct msg_part *m)
{
	return again_while_full(f, m, recv_once);
}

int op_patience(const struct op *op)
{
	return SOON + (int)(op->len / 1024);
}

void op_run(struct fab *f, const struct op *op, struct done *d)
{
	ssize_t rc = op_post(f, op);
	int wait = op_patience(op);

	if (rc)
		case_fail("posting: %zd (%s)", rc, fi_strerror((int)-rc));
	if (!fab_done(f, d, wait))
		never_done(f, wait);
	if (d->ctx != op->ctx)
		case_fail("completion with context %p instead of %p", d->ctx, op->ctx);
}

void fab_wait_ok(struct fab *f, unsigned n)
{
	struct done d;

	for (unsigned i = 0; i < n; i++) {
		if (!fab_done(f, &d, SOON))
			case_fail("%u of %u completions after %d ms", i, n, SOON);
		if (d.err)
			case_fail("completion %u of %u: err %d (%s), %s", i, n, d.err,
				  fi_strerror(d.err), d.text);
	}
}
