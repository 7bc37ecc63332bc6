/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include "base/log.h"
#include "base/param.h"
#include "ep/msg/inbox.h"
#include "ep/resolve/remote.h"
#include "ep_fixture.h"

static void set_env(const char *name, const char *value)
{
	ck_assert_int_eq(setenv(name, value, 1), 0);
}

static void reload(const char *level)
{
	set_env("FI_LOG_LEVEL", level);
	set_env("FI_MRFAB_CONN_TIMEOUT", "15000");
	mrf_env_reload();
	mrf_log_reload();
}

void fixture_setup(void)
{
	fake_reset();
	reload("none");
}

void fixture_impatient(void)
{
	set_env("FI_MRFAB_CONN_TIMEOUT", "1000");
	mrf_env_reload();
}

void fixture_setup_impatient(void)
{
	fixture_setup();
	fixture_impatient();
}

void fixture_log(void)
{
	reload("warn");
}

static void set_variable(const char *name, const char *value)
{
	if (value)
		ck_assert_int_eq(setenv(name, value, 1), 0);
	else
		ck_assert_int_eq(unsetenv(name), 0);
	mrf_env_reload();
}

void fixture_unexpected(const char *kib)
{
	set_variable("FI_MRFAB_UNEXPECTED", kib);
}

void fixture_unexpected_count(const char *count)
{
	set_variable("FI_MRFAB_UNEXPECTED_COUNT", count);
}

void fixture_teardown(void)
{
	ck_assert_uint_eq(fake.overflows, 0);
	ck_assert_uint_eq(fake_live(), 0);
}

/* No ck_assert where all is well: it allocates, and allocations are made to fail. */
void must_close(struct fid *fid)
{
	int ret = fi_close(fid);

	if (ret)
		ck_abort_msg("fi_close: %d", ret);
}

/* The info's own copy; what was there goes. NULL: none. */
static int set_key(uint8_t **key, size_t *size, const char *text)
{
	free(*key);
	*key = text ? (uint8_t *)strdup(text) : NULL;
	*size = *key ? strlen(text) : 0;
	return text && !*key ? -FI_ENOMEM : 0;
}

static int open_domain(struct node *n, const struct node_opt *opt)
{
	uint32_t api = opt->api ? opt->api : FI_VERSION(1, 17);
	struct fi_fabric_attr attr = { .name = (char *)"f",
				       .prov_name = (char *)"mrfab",
				       .api_version = api };
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(opt->port),
				    .sin_addr.s_addr = htonl(0x0a630101) };
	int ret = fi_fabric(&attr, &n->fabric, NULL);

	if (ret)
		return ret;
	n->info = fi_allocinfo();
	if (!n->info)
		return -FI_ENOMEM;
	n->info->domain_attr->mr_mode = opt->mr_mode;
	if (set_key(&n->info->domain_attr->auth_key, &n->info->domain_attr->auth_key_size,
		    opt->auth_key))
		return -FI_ENOMEM;
	n->info->addr_format = FI_SOCKADDR_IN;
	n->info->tx_attr->op_flags = opt->op_flags;
	if (opt->tx_size)
		n->info->tx_attr->size = opt->tx_size;
	n->info->tx_attr->msg_order |= opt->order;
	n->info->caps = opt->caps;
	n->info->src_addr = malloc(sizeof(addr));
	if (!n->info->src_addr)
		return -FI_ENOMEM;
	memcpy(n->info->src_addr, &addr, sizeof(addr));
	n->info->src_addrlen = sizeof(addr);
	return fi_domain(n->fabric, n->info, &n->domain, NULL);
}

static int open_queues(struct node *n, const struct node_opt *opt)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cntr_attr cntr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av = { .type = FI_AV_UNSPEC }; /* a table, but for some profiles */
	int ret = fi_av_open(n->domain, &av, &n->av, NULL);

	if (opt->format)
		cq.format = opt->format;

	if (!ret && !opt->no_cq)
		ret = fi_cq_open(n->domain, &cq, &n->cq, NULL);
	if (!ret && opt->counters)
		ret = fi_cntr_open(n->domain, &cntr, &n->wr, NULL);
	if (!ret && opt->counters)
		ret = fi_cntr_open(n->domain, &cntr, &n->rd, NULL);
	return ret;
}

static int bind_all(struct node *n, const struct node_opt *opt, struct fid_ep *ep)
{
	uint64_t flags = FI_TRANSMIT | FI_RECV;
	int ret = fi_ep_bind(ep, &n->av->fid, 0);

	if (opt->selective)
		flags |= FI_SELECTIVE_COMPLETION;
	if (!ret && n->cq)
		ret = fi_ep_bind(ep, &n->cq->fid, flags);
	if (!ret && n->wr)
		ret = fi_ep_bind(ep, &n->wr->fid, FI_WRITE | (n->cq ? 0 : FI_SEND));
	if (!ret && n->rd)
		ret = fi_ep_bind(ep, &n->rd->fid, FI_READ | (n->cq ? 0 : FI_RECV));
	return ret;
}

int node_try_ep(struct node *n, const struct node_opt *opt, struct fid_ep **out)
{
	struct fid_ep *ep;
	int ret;

	if (set_key(&n->info->ep_attr->auth_key, &n->info->ep_attr->auth_key_size, opt->ep_key))
		return -FI_ENOMEM;
	ret = fi_endpoint(n->domain, n->info, &ep, NULL);
	if (ret)
		return ret;
	ret = bind_all(n, opt, ep);
	if (!ret)
		ret = fi_enable(ep);
	if (ret)
		must_close(&ep->fid);
	else
		*out = ep;
	return ret;
}

void node_heard(struct node *n)
{
	struct fid_ep *ep;

	want_soon(!fake_tells(node_agent(n)->cq));
	/* The agent opens it after all that. */
	ck_assert_int_eq(node_try_ep(n, &(struct node_opt){ .caps = MRF_CAPS }, &ep), 0);
	must_close(&ep->fid);
}

int node_try_open(struct node *n, const struct node_opt *opt)
{
	static const struct node_opt none;
	int ret;

	memset(n, 0, sizeof(*n));
	opt = opt ? opt : &none;
	ret = open_domain(n, opt);
	if (!ret)
		ret = open_queues(n, opt);
	if (!ret)
		ret = node_try_ep(n, opt, &n->ep);
	if (ret)
		node_close(n);
	return ret;
}

void node_open(struct node *n, const struct node_opt *opt)
{
	ck_assert_int_eq(node_try_open(n, opt), 0);
}

static void close_if(struct fid *fid)
{
	if (fid)
		must_close(fid);
}

#define CLOSE(object)                                       \
	do {                                                \
		close_if((object) ? &(object)->fid : NULL); \
		(object) = NULL;                            \
	} while (0)

void node_close(struct node *n)
{
	CLOSE(n->ep);
	CLOSE(n->rd);
	CLOSE(n->wr);
	CLOSE(n->cq);
	CLOSE(n->av);
	CLOSE(n->domain);
	CLOSE(n->fabric);
	fi_freeinfo(n->info);
	n->info = NULL;
}

struct mrf_agent *node_agent(const struct node *n)
{
	return &mrf_domain_from_fid(n->domain)->eps->agent;
}

struct mrf_ep *node_ep(const struct node *n)
{
	return mrf_container_of(n->ep, struct mrf_ep, fid);
}

unsigned node_lines(const struct node *n)
{
	struct mrf_ep *ep = node_ep(n);
	unsigned count = 0;

	mrf_lock_take(&ep->lock);
	mrf_list_each (node, &ep->inbox->inlets)
		count++;
	mrf_lock_release(&ep->lock);
	return count;
}

uint16_t node_port(const struct node *n)
{
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	ck_assert_int_eq(fi_getname(&n->ep->fid, &addr, &len), 0);
	return ntohs(addr.sin_port);
}

fi_addr_t node_insert_port(struct node *from, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(0x0a630101) };
	fi_addr_t fi_addr = FI_ADDR_NOTAVAIL;

	ck_assert_int_eq(fi_av_insert(from->av, &addr, 1, &fi_addr, 0, NULL), 1);
	return fi_addr;
}

fi_addr_t node_insert(struct node *from, const struct node *to)
{
	return node_insert_port(from, node_port(to));
}

struct fid_mr *node_reg(struct node *n, void *buf, size_t len, uint64_t access, uint64_t key)
{
	struct fid_mr *mr = NULL;

	ck_assert_int_eq(fi_mr_reg(n->domain, buf, len, access, 0, key, 0, &mr, NULL), 0);
	return mr;
}

struct fid_mr *node_regv(struct node *n, const struct iovec *iov, size_t count, uint64_t access,
			 uint64_t key)
{
	struct fid_mr *mr = NULL;

	ck_assert_int_eq(fi_mr_regv(n->domain, iov, count, access, 0, key, 0, &mr, NULL), 0);
	return mr;
}

static void unexpected_error(struct node *n)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_readerr(n->cq, &err, 0);

	ck_abort_msg("a completion in error came: %zd, context %p: %d, code %d, \"%s\"", ret,
		     err.op_context, err.err, err.prov_errno,
		     err.err_data ? (char *)err.err_data : "");
}

struct fi_cq_data_entry want_ok(struct node *n, const void *context)
{
	struct fi_cq_data_entry entry = { 0 };
	ssize_t ret = fi_cq_sread(n->cq, &entry, 1, NULL, LONG_MS);

	if (ret == -FI_EAVAIL)
		unexpected_error(n);
	ck_assert_msg(ret == 1, "no completion: %zd", ret);
	if (context)
		ck_assert_ptr_eq(entry.op_context, context);
	return entry;
}

int want_err(struct node *n, const void *context, int err, const char *text)
{
	struct fi_cq_data_entry entry = { 0 };
	struct fi_cq_err_entry e = { 0 };
	ssize_t ret = fi_cq_sread(n->cq, &entry, 1, NULL, LONG_MS);

	ck_assert_msg(ret == -FI_EAVAIL, "no completion in error: %zd, context %p", ret,
		      ret == 1 ? entry.op_context : NULL);
	ck_assert_int_eq(fi_cq_readerr(n->cq, &e, 0), 1);
	ck_assert_msg(e.err == err, "err %d instead of %d: %s", e.err, err, (char *)e.err_data);
	if (context)
		ck_assert_ptr_eq(e.op_context, context);
	if (text)
		ck_assert_msg(strstr(e.err_data, text), "\"%s\" not in \"%s\"", text,
			      (char *)e.err_data);
	return e.prov_errno;
}

void want_none(struct node *n)
{
	struct fi_cq_data_entry entry;
	ssize_t ret = fi_cq_sread(n->cq, &entry, 1, NULL, 20);

	if (ret == -FI_EAVAIL)
		unexpected_error(n);
	ck_assert_int_eq(ret, -FI_EAGAIN);
}

/* One that is good once, because memory changed while it was asked about, holds as long as its lease. */
static bool holds(const struct mrf_part *part, const struct mrf_peer *peer)
{
	return part->epoch == (part->once ? peer->known.lease_epoch : peer->known.epoch);
}

unsigned node_parts(const struct node *n, fi_addr_t to, uint64_t key)
{
	struct mrf_ep *ep = node_ep(n);
	const struct mrf_remote *remote;
	unsigned i, parts = 0;

	mrf_lock_take(&ep->lock);
	remote = mrf_remote_find_locked(ep->peers[MRF_CONN_ACCESS].of[to], key);
	for (i = 0; remote && i < remote->nparts; i++)
		parts += holds(&remote->parts[i], ep->peers[MRF_CONN_ACCESS].of[to]);
	mrf_lock_release(&ep->lock);
	return parts;
}

struct node_state node_state(const struct node *n, fi_addr_t to)
{
	struct mrf_ep *ep = node_ep(n);
	const struct mrf_peer *peer;
	struct node_state state;

	mrf_lock_take(&ep->lock);
	peer = to < ep->peers[MRF_CONN_ACCESS].n ? ep->peers[MRF_CONN_ACCESS].of[to] : NULL;
	state = (struct node_state){ .ops = ep->nops,
				     .work_requests = ep->scq_used,
				     .connection = peer && peer->conn };
	mrf_lock_release(&ep->lock);
	return state;
}

bool node_idle(const struct node *n)
{
	struct node_state state = node_state(n, 0);

	return !state.ops && !state.work_requests;
}

void want_idle(const struct node *n)
{
	want_soon((fi_cq_read(n->cq, NULL, 0), node_idle(n)));
}

void fill(void *buf, size_t len, unsigned seed)
{
	uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

bool filled(const void *buf, size_t len, unsigned seed)
{
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] != (uint8_t)(i * 7 + i / 251 + seed))
			return false;
	}
	return true;
}

void *pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

void pair_reg(struct pair *p, uint64_t access)
{
	p->mr = node_reg(&p->b, p->dst, PAIR_LEN, access, PAIR_KEY);
	p->key = fi_mr_key(p->mr);
	p->base = node_ep(&p->b)->domain->space.mode & FI_MR_VIRT_ADDR ? (uintptr_t)p->dst : 0;
}

void pair_open(struct pair *p, const struct node_opt *opt)
{
	struct node_opt target = opt ? *opt : (struct node_opt){ 0 };

	/* What the target grants does not ask for descriptors at the initiator. */
	target.selective = false;
	node_open(&p->a, opt);
	node_open(&p->b, &target);
	p->to = node_insert(&p->a, &p->b);
	p->src = pages(PAIR_LEN);
	p->dst = pages(PAIR_LEN);
	fill(p->src, PAIR_LEN, 1);
	p->src_mr = NULL;
	if (target.mr_mode & FI_MR_LOCAL)
		p->src_mr = node_reg(&p->a, p->src, PAIR_LEN, FI_READ | FI_WRITE, 0);
	p->desc = p->src_mr ? fi_mr_desc(p->src_mr) : NULL;
	pair_reg(p, REMOTE_RW);
}

void pair_close(struct pair *p)
{
	if (p->src_mr)
		must_close(&p->src_mr->fid);
	node_close(&p->a);
	if (p->mr)
		must_close(&p->mr->fid);
	node_close(&p->b);
	munmap(p->src, PAIR_LEN);
	munmap(p->dst, PAIR_LEN);
}

void *pair_ctx(struct pair *p, size_t at)
{
	return p->src + at;
}

void pair_write(struct pair *p, size_t at, size_t len)
{
	ck_assert_int_eq(fi_write(p->a.ep, p->src + at, len, p->desc, p->to, p->base + at, p->key,
				  pair_ctx(p, at)),
			 0);
}

void pair_read(struct pair *p, size_t at, size_t len)
{
	ck_assert_int_eq(fi_read(p->a.ep, p->src + at, len, p->desc, p->to, p->base + at, p->key,
				 pair_ctx(p, at)),
			 0);
}
