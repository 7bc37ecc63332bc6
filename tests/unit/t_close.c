/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread closes a child, another one closes what it holds, again and again while it is told
 * -FI_EBUSY. Each time the first is about to give something back (memory, a descriptor, an
 * object of the device) it waits until the other one has tried: until only the child's own
 * memory is left, that must not work. Each pair races freely as well, for the sanitizers.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/fi_eq.h>
#include <sys/mman.h>
#include "base/compiler.h"
#include "ep_fixture.h"

#define RACES 20
#define SEGMENTS 3

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fi_info *info;
static struct fid_eq *eq;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_cntr *cntr;
static struct fid_ep *ep;
static struct fid_mr *mr;
static uint64_t raw_key;
static uint8_t *memory;

/* --- the other thread's chance ---------------------------------------------------- */

static struct fid *parent;
static void *own; /* what the child may give back after all else */
static atomic_bool forced, parent_closed, too_early;
static atomic_uint tries;
static __thread bool closes_parent;

void __real_free(void *mem);
void __wrap_free(void *mem);
int __real_close(int fd);
int __wrap_close(int fd);

/* One whole try begins after this has been called. Not for ever: a lock may be held. */
static void give_chance(void)
{
	unsigned seen = atomic_load(&tries), i;

	if (!atomic_load(&forced) || closes_parent)
		return;
	for (i = 0; i < 50 && !atomic_load(&parent_closed); i++) {
		if (atomic_load(&tries) > seen + 1)
			break;
		usleep(100);
	}
	if (atomic_load(&parent_closed))
		atomic_store(&too_early, true);
}

void __wrap_free(void *mem)
{
	if (mem && mem != own)
		give_chance();
	__real_free(mem);
}

int __wrap_close(int fd)
{
	give_chance();
	return __real_close(fd);
}

static void *close_parent(void *arg)
{
	int ret;

	(void)arg;
	closes_parent = true;
	while ((ret = fi_close(parent)) == -FI_EBUSY) {
		atomic_fetch_add(&tries, 1);
		/* Under some tools a thread is not stopped by itself. */
		sched_yield();
	}
	atomic_store(&parent_closed, true);
	return (void *)(intptr_t)ret;
}

/* --- things to close -------------------------------------------------------------- */

struct setting {
	uint64_t mode;
	uint32_t api;
	uint64_t caps;
};

static void open_domain(const struct setting *s)
{
	struct fi_fabric_attr attr = { .prov_name = (char *)"mrfab", .api_version = s->api };
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a630101) };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_FD };

	ck_assert_int_eq(fi_fabric(&attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_eq_open(fabric, &eq_attr, &eq, NULL), 0);
	info = fi_allocinfo();
	ck_assert_ptr_nonnull(info);
	info->domain_attr->mr_mode = (int)s->mode;
	info->addr_format = FI_SOCKADDR_IN;
	info->caps = info->domain_attr->caps = s->caps;
	info->src_addr = malloc(sizeof(addr));
	ck_assert_ptr_nonnull(info->src_addr);
	memcpy(info->src_addr, &addr, sizeof(addr));
	info->src_addrlen = sizeof(addr);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
}

static struct fid *open_av(uint64_t flags)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = flags };
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(7),
				    .sin_addr.s_addr = htonl(0x0a630102) };

	ck_assert_int_eq(fi_av_open(domain, &attr, &av, NULL), 0);
	if (!flags)
		ck_assert_int_eq(fi_av_insert(av, &addr, 1, NULL, 0, NULL), 1);
	return &av->fid;
}

static struct fid *open_cq(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD };

	ck_assert_int_eq(fi_cq_open(domain, &attr, &cq, NULL), 0);
	return &cq->fid;
}

static struct fid *open_cntr(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_FD };

	ck_assert_int_eq(fi_cntr_open(domain, &attr, &cntr, NULL), 0);
	return &cntr->fid;
}

static struct fid *open_ep(void)
{
	open_av(0);
	open_cq();
	open_cntr();
	ck_assert_int_eq(fi_endpoint(domain, info, &ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &cntr->fid, FI_WRITE), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &eq->fid, 0), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	return &ep->fid;
}

static struct fid *reg(size_t segments, const char *key, uint64_t flags)
{
	struct iovec iov[SEGMENTS];
	struct fi_mr_attr attr = { .mr_iov = iov,
				   .iov_count = segments,
				   .access = FI_SEND | REMOTE_RW,
				   .requested_key = 7,
				   .auth_key = (uint8_t *)key,
				   .auth_key_size = key ? strlen(key) : 0 };
	size_t i;

	for (i = 0; i < segments; i++)
		iov[i] = (struct iovec){ memory + i * 2 * PAGE, PAGE };
	ck_assert_int_eq(fi_mr_regattr(domain, &attr, flags, &mr), 0);
	return &mr->fid;
}

/* Nobody but the endpoint holds the domain. */
static struct fid *bare_ep(void)
{
	ck_assert_int_eq(fi_endpoint(domain, info, &ep, NULL), 0);
	return &ep->fid;
}

/* --- kinds of children ------------------------------------------------------------ */

#define OLD FI_VERSION(1, 17) /* what a region is bound to closes first */
#define NEW FI_VERSION(2, 3)  /* the region does */
#define PINNED FI_MR_ALLOCATED

struct kind {
	const char *name;
	struct setting with;
	struct fid *(*open)(struct fid **parent);
	int (*close)(struct fid *child); /* NULL: fi_close */
	bool used;			 /* by what it holds, which therefore is let go first */
};

#define OF_DOMAIN(name, expr)                        \
	static struct fid *name(struct fid **parent) \
	{                                            \
		struct fid *child_ = (expr);         \
                                                     \
		*parent = &domain->fid;              \
		return child_;                       \
	}

OF_DOMAIN(region, reg(1, NULL, 0))
OF_DOMAIN(vector, reg(SEGMENTS, NULL, 0))
OF_DOMAIN(keyed, reg(1, "another key", 0))
OF_DOMAIN(counted, reg(1, NULL, FI_RMA_EVENT))
OF_DOMAIN(queue, open_cq())
OF_DOMAIN(counter, open_cntr())
OF_DOMAIN(addresses, open_av(0))
OF_DOMAIN(endpoint, bare_ep())

static struct fid *pending(struct fid **out)
{
	ck_assert_int_eq(fi_domain_bind(domain, &eq->fid, FI_REG_MR), 0);
	*out = &domain->fid;
	return reg(1, NULL, 0);
}

static struct fid *bound_region(struct fid **out)
{
	*out = open_ep();
	reg(1, NULL, 0);
	ck_assert_int_eq(fi_mr_bind(mr, &ep->fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	return &mr->fid;
}

static struct fid *region_of_counter(struct fid **out)
{
	*out = open_cntr();
	reg(1, NULL, FI_RMA_EVENT);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	return &mr->fid;
}

/* The other way round: the region waits for what it is bound to. */
static struct fid *endpoint_of_region(struct fid **out)
{
	*out = bound_region(out);
	ck_assert_ptr_eq(*out, &mr->fid);
	return &ep->fid;
}

static struct fid *counter_of_region(struct fid **out)
{
	*out = region_of_counter(out);
	ck_assert_ptr_eq(*out, &mr->fid);
	return &cntr->fid;
}

static struct fid *endpoint_of_av(struct fid **out)
{
	struct fid *child = open_ep();

	*out = &av->fid;
	return child;
}

static struct fid *endpoint_of_cq(struct fid **out)
{
	struct fid *child = open_ep();

	*out = &cq->fid;
	return child;
}

static struct fid *endpoint_of_cntr(struct fid **out)
{
	struct fid *child = open_ep();

	*out = &cntr->fid;
	return child;
}

/* Only the endpoint holds the event queue then. */
static struct fid *endpoint_of_eq(struct fid **out)
{
	struct fid *child = open_ep();

	*out = &eq->fid;
	return child;
}

static struct fid *av_of_eq(struct fid **out)
{
	*out = &eq->fid;
	open_av(FI_EVENT);
	ck_assert_int_eq(fi_av_bind(av, &eq->fid, 0), 0);
	return &av->fid;
}

static struct fid *domain_of_eq(struct fid **out)
{
	ck_assert_int_eq(fi_domain_bind(domain, &eq->fid, FI_REG_MR), 0);
	*out = &eq->fid;
	return &domain->fid;
}

static void close_and_forget_eq(void)
{
	must_close(&eq->fid);
	eq = NULL;
}

static struct fid *domain_of_fabric(struct fid **out)
{
	close_and_forget_eq();
	*out = &fabric->fid;
	return &domain->fid;
}

static struct fid *eq_of_fabric(struct fid **out)
{
	must_close(&domain->fid);
	domain = NULL;
	*out = &fabric->fid;
	return &eq->fid;
}

static struct fid *mapped_key(struct fid **out)
{
	uint8_t raw[1024];
	size_t size = sizeof(raw);
	uint64_t base;

	reg(SEGMENTS, NULL, 0);
	ck_assert_int_eq(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	ck_assert_int_eq(fi_mr_map_raw(domain, base, raw, size, &raw_key, 0), 0);
	must_close(&mr->fid);
	mr = NULL;
	*out = &domain->fid;
	return &domain->fid;
}

static int unmap(struct fid *child)
{
	(void)child;
	return fi_mr_unmap_key(domain, raw_key);
}

static const struct kind kinds[] = {
	{ "region, domain", { PINNED, OLD, 0 }, region, NULL, false },
	{ "region of several segments, domain", { PINNED, OLD, 0 }, vector, NULL, false },
	{ "region on demand, domain", { 0, OLD, 0 }, vector, NULL, false },
	{ "region with an authorization key, domain", { PINNED, OLD, 0 }, keyed, NULL, false },
	{ "region whose writes are counted, domain", { PINNED, OLD, 0 }, counted, NULL, false },
	{ "pending region, domain", { PINNED, OLD, 0 }, pending, NULL, false },
	{ "region, endpoint", { PINNED | FI_MR_ENDPOINT, NEW, 0 }, bound_region, NULL, false },
	{ "region, counter", { PINNED, NEW, FI_RMA_EVENT }, region_of_counter, NULL, false },
	{ "endpoint, region", { PINNED | FI_MR_ENDPOINT, OLD, 0 }, endpoint_of_region, NULL, true },
	{ "counter, region", { PINNED, OLD, FI_RMA_EVENT }, counter_of_region, NULL, true },
	{ "endpoint, domain", { PINNED, OLD, 0 }, endpoint, NULL, false },
	{ "endpoint with its own regions, domain",
	  { FI_MR_ENDPOINT, OLD, 0 },
	  endpoint,
	  NULL,
	  false },
	{ "endpoint, address vector", { 0, OLD, 0 }, endpoint_of_av, NULL, false },
	{ "endpoint, completion queue", { 0, OLD, 0 }, endpoint_of_cq, NULL, false },
	{ "endpoint, counter", { 0, OLD, 0 }, endpoint_of_cntr, NULL, false },
	{ "endpoint, event queue", { 0, OLD, 0 }, endpoint_of_eq, NULL, false },
	{ "completion queue, domain", { 0, OLD, 0 }, queue, NULL, false },
	{ "counter, domain", { 0, OLD, 0 }, counter, NULL, false },
	{ "address vector, domain", { 0, OLD, 0 }, addresses, NULL, false },
	{ "address vector, event queue", { 0, OLD, 0 }, av_of_eq, NULL, false },
	{ "domain, event queue", { 0, OLD, 0 }, domain_of_eq, NULL, false },
	{ "domain, fabric", { 0, OLD, 0 }, domain_of_fabric, NULL, false },
	{ "event queue, fabric", { 0, OLD, 0 }, eq_of_fabric, NULL, false },
	{ "mapped raw key, domain", { FI_MR_RAW | PINNED, OLD, 0 }, mapped_key, unmap, true },
};

#define KINDS ((int)MRF_ARRAY_SIZE(kinds))

/* --- closing ---------------------------------------------------------------------- */

static void forget(const struct fid *fid)
{
	if (ep && fid == &ep->fid)
		ep = NULL;
	if (mr && fid == &mr->fid)
		mr = NULL;
	if (cntr && fid == &cntr->fid)
		cntr = NULL;
	if (cq && fid == &cq->fid)
		cq = NULL;
	if (av && fid == &av->fid)
		av = NULL;
	if (domain && fid == &domain->fid)
		domain = NULL;
	if (eq && fid == &eq->fid)
		eq = NULL;
	if (fabric && fid == &fabric->fid)
		fabric = NULL;
}

#define CLOSE_REST(object)                          \
	do {                                        \
		if (object)                         \
			must_close(&(object)->fid); \
		(object) = NULL;                    \
	} while (0)

static void close_rest(void)
{
	CLOSE_REST(mr);
	CLOSE_REST(ep);
	CLOSE_REST(cntr);
	CLOSE_REST(cq);
	CLOSE_REST(av);
	CLOSE_REST(domain);
	CLOSE_REST(eq);
	CLOSE_REST(fabric);
	fi_freeinfo(info);
	info = NULL;
}

static void race(const struct kind *kind, bool force)
{
	struct fid *child;
	pthread_t thread;
	void *ret;
	int done;

	open_domain(&kind->with);
	child = kind->open(&parent);
	ck_assert_msg(fi_close(parent) == -FI_EBUSY, "%s: nothing holds it", kind->name);
	own = kind->close ? NULL : child;
	atomic_store(&tries, 0);
	atomic_store(&parent_closed, false);
	atomic_store(&too_early, false);
	ck_assert_int_eq(pthread_create(&thread, NULL, close_parent, NULL), 0);
	while (!atomic_load(&tries))
		sched_yield();
	atomic_store(&forced, force);
	done = kind->close ? kind->close(child) : fi_close(child);
	atomic_store(&forced, false);
	ck_assert_int_eq(pthread_join(thread, &ret), 0);
	ck_assert_msg(!done && !ret, "%s: %d, %d", kind->name, done, (int)(intptr_t)ret);
	ck_assert_msg(!atomic_load(&too_early), "%s: closed while it was held", kind->name);
	own = NULL;
	forget(child);
	forget(parent);
	close_rest();
}

START_TEST(a_parent_closes_when_nothing_of_its_child_is_left)
{
	race(&kinds[_i], !kinds[_i].used);
}
END_TEST

START_TEST(a_parent_closes_at_any_moment_after_its_child)
{
	int i;

	for (i = 0; i < RACES; i++)
		race(&kinds[_i], false);
}
END_TEST

static void setup(void)
{
	fixture_setup();
	fake.on_dereg = give_chance;
	memory = pages(SEGMENTS * 2 * PAGE);
}

static TCase *tcase_close(void)
{
	TCase *tc = tcase_create("close");

	tcase_add_checked_fixture(tc, setup, fixture_teardown);
	tcase_add_loop_test(tc, a_parent_closes_when_nothing_of_its_child_is_left, 0, KINDS);
	tcase_add_loop_test(tc, a_parent_closes_at_any_moment_after_its_child, 0, KINDS);
	return tc;
}

UNIT_MAIN("close", tcase_close)
