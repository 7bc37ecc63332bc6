/* SPDX-License-Identifier: BSD-2-Clause */
/* Domains: what can be opened, on which device, what they offer, closing. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_mrfab.h>
#include "auth/auth.h"
#include "base/random.h"
#include "contract/limits.h"
#include "domain/domain.h"
#include "mr/desc.h"
#include "proto/rawkey.h"
#include "obj/cq.h"
#include "../fake/fake_vnl.h"
#include "../fake/fake_up.h"
#include "../fake/fake_verbs.h"
#include "unit.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

bool __real_mrf_random(void *buf, size_t len);
bool __wrap_mrf_random(void *buf, size_t len);
static bool no_random;

bool __wrap_mrf_random(void *buf, size_t len)
{
	errno = EPERM;
	return !no_random && __real_mrf_random(buf, len);
}

static struct unit_capture cap;
static struct fid_fabric *fabric;
static struct fi_info *info;
static unsigned char mem[4096];

static void set_src(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(4711) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(4711) };
	int v6 = strchr(text, ':') != NULL;

	free(info->src_addr);
	info->src_addrlen = v6 ? sizeof(in6) : sizeof(in);
	info->src_addr = malloc(info->src_addrlen);
	ck_assert_int_eq(inet_pton(v6 ? AF_INET6 : AF_INET, text,
				   v6 ? (void *)&in6.sin6_addr : (void *)&in.sin_addr),
			 1);
	memcpy(info->src_addr, v6 ? (void *)&in6 : (void *)&in, info->src_addrlen);
	info->addr_format = v6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

static void drop_src(void)
{
	free(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
}

static void setup_api(uint32_t api_version)
{
	struct fi_fabric_attr attr = { .name = (char *)"10.99.1.0/24",
				       .prov_name = (char *)"mrfab",
				       .api_version = api_version };

	fake_verbs_reset();
	ck_assert_int_eq(fi_fabric(&attr, &fabric, NULL), 0);
	info = fi_allocinfo();
	ck_assert_ptr_nonnull(info);
	info->fabric_attr->name = strdup("10.99.1.0/24");
	info->domain_attr->name = strdup(FAKE_DEVICE);
	set_src("10.99.1.1");
}

static void setup(void)
{
	setup_api(FI_VERSION(1, 17));
}

static void teardown(void)
{
	fi_freeinfo(info);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	ck_assert_uint_eq(fake_verbs_live(), 0);
}

static struct fid_domain *must_open(void)
{
	struct fid_domain *domain = NULL;

	ck_assert_int_eq(fi_domain(fabric, info, &domain, &cap), 0);
	ck_assert_ptr_nonnull(domain);
	return domain;
}

static void must_close(struct fid_domain *domain)
{
	ck_assert_int_eq(fi_close(&domain->fid), 0);
}

static void refused(int err, const char *code)
{
	struct fid_domain *domain = (void *)&cap;
	const char *text;
	int ret;

	unit_capture(&cap);
	ret = fi_domain(fabric, info, &domain, NULL);
	text = unit_captured(&cap);
	ck_assert_int_eq(ret, err);
	ck_assert_msg(strstr(text, code), "%s not in: %s", code, text);
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_ptr_eq(domain, (void *)&cap);
	ck_assert_uint_eq(fake_verbs_live(), 0);
}

START_TEST(domain_open_fills_in_the_fid)
{
	struct fid_domain *domain;
	struct mrf_domain *priv;

	info->domain_attr->mr_mode = FI_MR_ALLOCATED;
	domain = must_open();
	priv = mrf_domain_from_fid(domain);
	ck_assert_uint_eq(domain->fid.fclass, FI_CLASS_DOMAIN);
	ck_assert_ptr_eq(domain->fid.context, &cap);
	ck_assert_uint_eq(domain->fid.ops->size, sizeof(struct fi_ops));
	ck_assert_uint_eq(domain->ops->size, sizeof(struct fi_ops_domain));
	ck_assert_uint_eq(domain->mr->size, sizeof(struct fi_ops_mr));
	ck_assert_ptr_eq(mrf_domain_mr_space(&domain->fid), &priv->space);
	ck_assert_uint_eq(priv->space.api_version, FI_VERSION(1, 17));
	ck_assert_uint_eq(priv->space.max_mr, FAKE_MAX_MR);
	ck_assert_int_eq(priv->mr_mode, FI_MR_ALLOCATED);
	ck_assert_ptr_null(priv->eps);
	must_close(domain);
}
END_TEST

START_TEST(domain_open_takes_the_address_without_its_port)
{
	struct fid_domain *domain = must_open();
	struct mrf_domain *priv = mrf_domain_from_fid(domain);

	ck_assert_uint_eq(priv->addr.in.sin_port, 0);
	ck_assert_uint_eq(ntohl(priv->addr.in.sin_addr.s_addr), 0x0a630101);
	must_close(domain);

	set_src("fd00::1");
	domain = must_open();
	priv = mrf_domain_from_fid(domain);
	ck_assert_uint_eq(priv->addr.sa.sa_family, AF_INET6);
	ck_assert_uint_eq(priv->addr.in6.sin6_port, 0);
	must_close(domain);
}
END_TEST

START_TEST(domain_open_resolves_every_mode_it_runs)
{
	static const struct {
		int mr_mode;
		uint64_t runs;
	} mode[] = {
		{ 0, 0 },
		{ FI_MR_SCALABLE, 0 },
		{ FI_MR_BASIC, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY },
		{ FI_MR_LOCAL, FI_MR_LOCAL },
		{ FI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR },
		{ FI_MR_ALLOCATED | FI_MR_PROV_KEY, FI_MR_ALLOCATED | FI_MR_PROV_KEY },
		{ FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
		  FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY },
	};
	struct fid_domain *domain;
	size_t i;

	for (i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
		info->domain_attr->mr_mode = mode[i].mr_mode;
		domain = must_open();
		ck_assert_uint_eq(mrf_domain_from_fid(domain)->space.mode, mode[i].runs);
		must_close(domain);
	}
}
END_TEST

/* FI_MR_RAW | ... | FI_MR_ENDPOINT, in every combination. */
START_TEST(domain_open_runs_every_set_of_modes)
{
	struct fid_domain *domain;
	int mode;

	for (mode = 0; mode < FI_MR_ENDPOINT << 1; mode += FI_MR_LOCAL) {
		info->domain_attr->mr_mode = mode;
		domain = must_open();
		ck_assert_uint_eq(mrf_domain_from_fid(domain)->space.mode, (uint64_t)mode);
		must_close(domain);
	}
}
END_TEST

START_TEST(domain_open_with_the_old_local_flag_runs_local)
{
	struct fid_domain *domain;

	info->mode = FI_LOCAL_MR;
	info->domain_attr->mr_mode = FI_MR_BASIC;
	domain = must_open();
	ck_assert_uint_eq(mrf_domain_from_fid(domain)->space.mode,
			  FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	must_close(domain);
}
END_TEST

START_TEST(domain_open_refuses_modes_it_does_not_run)
{
	static const int mode[] = { FI_MR_COLLECTIVE,
				    1 << 20,
				    INT32_MIN,
				    FI_MR_BASIC | FI_MR_LOCAL,
				    FI_MR_BASIC | FI_MR_RAW,
				    FI_MR_SCALABLE | FI_MR_LOCAL,
				    FI_MR_BASIC | FI_MR_SCALABLE };
	size_t i;

	for (i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
		info->domain_attr->mr_mode = mode[i];
		refused(-FI_EINVAL, "MRF-E2121");
	}
}
END_TEST

/* The capability and the bit come together, beside every other set of bits. */
START_TEST(domain_open_runs_device_memory_with_every_set_of_modes)
{
	struct fid_domain *domain;
	int mode;

	for (mode = 0; mode < FI_MR_ENDPOINT << 1; mode += FI_MR_LOCAL) {
		info->caps = FI_RMA | FI_HMEM;
		info->domain_attr->mr_mode = mode | FI_MR_HMEM;
		domain = must_open();
		ck_assert_uint_eq(mrf_domain_from_fid(domain)->space.mode,
				  (uint64_t)mode | FI_MR_HMEM);
		must_close(domain);
		info->domain_attr->mr_mode = mode;
		refused(-FI_EINVAL, "MRF-E2128");
		ck_assert_ptr_nonnull(strstr(cap.text, "has no FI_MR_HMEM"));
		info->caps = FI_RMA;
		info->domain_attr->mr_mode = mode | FI_MR_HMEM;
		refused(-FI_EINVAL, "MRF-E2127");
		ck_assert_ptr_nonnull(strstr(cap.text, "has no FI_HMEM"));
	}
}
END_TEST

/* No capabilities at all stand for those that need not be named. */
START_TEST(domain_open_without_capabilities_has_no_device_memory)
{
	info->caps = 0;
	info->domain_attr->mr_mode = FI_MR_HMEM;
	refused(-FI_EINVAL, "MRF-E2127");
	info->caps = FI_HMEM;
	must_close(must_open());
	info->domain_attr->mr_mode = FI_MR_BASIC;
	refused(-FI_EINVAL, "MRF-E2128");
	info->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_HMEM;
	refused(-FI_EINVAL, "MRF-E2121");
}
END_TEST

START_TEST(domain_open_refuses_null_arguments)
{
	struct fid_domain *domain = (void *)&cap;
	struct fi_domain_attr *attr = info->domain_attr;
	const char *text;

	unit_capture(&cap);
	ck_assert_int_eq(fi_domain(fabric, NULL, &domain, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_domain(fabric, info, NULL, NULL), -FI_EINVAL);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "info must not be NULL"));
	ck_assert_ptr_nonnull(strstr(text, "domain must not be NULL"));
	info->domain_attr = NULL;
	refused(-FI_EINVAL, "MRF-E2124");
	info->domain_attr = attr;
}
END_TEST

START_TEST(domain_open_refuses_an_info_of_another_fabric)
{
	info->fabric_attr->name[0] = '2';
	refused(-FI_EINVAL, "MRF-E2123");
	free(info->fabric_attr->name);
	info->fabric_attr->name = NULL;
	must_close(must_open());
}
END_TEST

START_TEST(domain_open_takes_an_authorization_key_from_api_1_5)
{
	struct fid_domain *opened;

	info->domain_attr->auth_key_size = 8;
	refused(-FI_EINVAL, "MRF-E2154");
	info->domain_attr->auth_key = calloc(1, MRF_LIMIT_AUTH_KEY + 1);
	info->domain_attr->auth_key_size = MRF_LIMIT_AUTH_KEY + 1;
	refused(-FI_EINVAL, "MRF-E2155");
	info->domain_attr->auth_key_size = 8;
	opened = must_open();
	ck_assert(mrf_auth_is(mrf_domain_from_fid(opened)->space.auth, info->domain_attr->auth_key,
			      8));
	/* The application keeps its own. */
	ck_assert_ptr_nonnull(info->domain_attr->auth_key);
	must_close(opened);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);

	setup_api(FI_VERSION(1, 4));
	info->domain_attr->auth_key = calloc(1, 8);
	info->domain_attr->auth_key_size = 8;
	opened = must_open();
	ck_assert_ptr_null(mrf_domain_from_fid(opened)->space.auth);
	must_close(opened);
}
END_TEST

START_TEST(domain_open_refuses_bad_addresses)
{
	info->src_addrlen = 1;
	refused(-FI_EINVAL, "MRF-E2125");
	info->src_addrlen = sizeof(struct sockaddr_in) - 1;
	refused(-FI_EINVAL, "MRF-E2126");
	info->src_addrlen = sizeof(struct sockaddr_in);
	((struct sockaddr *)info->src_addr)->sa_family = AF_UNIX;
	refused(-FI_EINVAL, "MRF-E2126");
	set_src("192.0.2.1");
	refused(-FI_EADDRNOTAVAIL, "MRF-E5101");
	set_src("0.0.0.0");
	refused(-FI_ENODEV, "MRF-E5101");
}
END_TEST

/* libibverbs has the name by which it saw the device first. */
START_TEST(domain_opens_a_device_whose_name_was_changed)
{
	struct fid_domain *domain;

	fake_verbs.renamed = "other0";
	refused(-FI_EINVAL, "MRF-E2151");
	free(info->domain_attr->name);
	info->domain_attr->name = strdup("other0");
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
}
END_TEST

START_TEST(domain_open_refuses_the_name_of_another_device)
{
	free(info->domain_attr->name);
	info->domain_attr->name = strdup("rxe7");
	refused(-FI_EINVAL, "MRF-E2151");
	free(info->domain_attr->name);
	info->domain_attr->name = NULL;
	must_close(must_open());
}
END_TEST

/* Not the address is to blame then. */
START_TEST(domain_open_names_the_file_that_keeps_it_from_the_device)
{
	fake_verbs.barred = "/dev/infiniband/uverbs0: Permission denied: do something";
	fake_verbs_fail(FAKE_OPEN_DEVICE, 1, EACCES);
	refused(-FI_EACCES, "MRF-E5105: fi_domain: the RDMA device at 10.99.1.1:0 cannot be "
			    "opened: /dev/infiniband/uverbs0: Permission denied");
	fake_verbs_fail(FAKE_OPEN_DEVICE, 1, EMFILE);
	refused(-FI_EMFILE, "MRF-E5101");
	fake_verbs.barred = NULL;
	fake_verbs_fail(FAKE_OPEN_DEVICE, 1, EACCES);
	refused(-FI_EACCES, "MRF-E5101");
}
END_TEST

START_TEST(domain_open_leaves_nothing_behind_when_a_call_fails)
{
	fake_verbs_fail(FAKE_CREATE_CHANNEL, 1, ENODEV);
	refused(-FI_ENODEV, "MRF-E5101");
	fake_verbs_fail(FAKE_CREATE_ID, 1, ENOMEM);
	refused(-FI_ENOMEM, "MRF-E5101");
	fake_verbs_fail(FAKE_BIND_ADDR, 1, EACCES);
	refused(-FI_EACCES, "MRF-E5101");
	fake_verbs_fail(FAKE_OPEN_DEVICE, 1, EACCES);
	refused(-FI_EACCES, "MRF-E5101");
	fake_verbs_fail(FAKE_QUERY_DEVICE, 1, EIO);
	refused(-FI_EIO, "MRF-E5101");
	fake_verbs_fail(FAKE_ALLOC_PD, 1, ENOMEM);
	refused(-FI_ENOMEM, "MRF-E5102");
	no_random = true;
	refused(-FI_EIO, "MRF-E2156");
	ck_assert_ptr_nonnull(strstr(cap.text, "Operation not permitted"));
	no_random = false;
}
END_TEST

/* --- without src_addr ------------------------------------------------------------- */

static int no_devs(struct mrf_vnl_dev **devs, size_t *count)
{
	(void)devs, (void)count;
	return -FI_ENOSYS;
}

static int one_dev(struct mrf_vnl_dev **devs, size_t *count)
{
	struct mrf_vnl_dev *dev = calloc(1, sizeof(*dev));

	strcpy(dev->name, FAKE_DEVICE);
	strcpy(dev->netdev, "dummy0");
	dev->ifindex = 3;
	dev->has_driver = true;
	dev->driver = 14; /* RDMA_DRIVER_RXE */
	dev->port_state = IBV_PORT_ACTIVE;
	*devs = dev;
	*count = 1;
	return 0;
}

static int two_addrs(struct mrf_vnl_ifaddr **addrs, size_t *count)
{
	struct mrf_vnl_ifaddr *list = calloc(2, sizeof(*list));

	strcpy(list[0].netdev, "dummy0");
	list[0].addr.in.sin_family = AF_INET;
	list[0].addr.in.sin_addr.s_addr = htonl(0x0a630107);
	list[0].prefix = 24;
	strcpy(list[1].netdev, "dummy0");
	list[1].addr.in6.sin6_family = AF_INET6;
	inet_pton(AF_INET6, "fd00::7", &list[1].addr.in6.sin6_addr);
	list[1].prefix = 64;
	*addrs = list;
	*count = 2;
	return 0;
}

START_TEST(domain_open_without_address_finds_one_by_name_and_format)
{
	struct fid_domain *domain;

	fake_vnl.devs = one_dev;
	fake_vnl.ifaddrs = two_addrs;
	drop_src();
	info->addr_format = FI_SOCKADDR_IN6;
	domain = must_open();
	ck_assert_uint_eq(mrf_domain_from_fid(domain)->addr.in6.sin6_addr.s6_addr[15], 7);
	must_close(domain);
	info->addr_format = FI_SOCKADDR_IN;
	domain = must_open();
	ck_assert_uint_eq(mrf_domain_from_fid(domain)->addr.in.sin_addr.s_addr, htonl(0x0a630107));
	must_close(domain);
	info->addr_format = FI_FORMAT_UNSPEC;
	must_close(must_open());
	free(info->domain_attr->name);
	info->domain_attr->name = strdup("rxe7");
	refused(-FI_ENODEV, "MRF-E5104");
	fake_vnl.devs = no_devs;
	refused(-FI_ENOSYS, "MRF-E5103");
	fake_vnl.devs = NULL;
	fake_vnl.ifaddrs = NULL;
}
END_TEST

/* --- what a domain offers --------------------------------------------------------- */

START_TEST(domain_opens_regions_queues_counters_and_vectors_and_they_hold_it)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_domain *domain = must_open();
	struct fid *child[4];
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct fid_cq *cq;
	struct fid_av *av;
	int i;

	ck_assert_int_eq(fi_mr_reg(domain, mem, sizeof(mem), RW, 0, 7, 0, &mr, NULL), 0);
	ck_assert_int_eq(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	ck_assert_int_eq(fi_cntr_open(domain, &cntr_attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_av_open(domain, &av_attr, &av, NULL), 0);
	ck_assert_int_eq(fi_trywait(fabric, (struct fid *[]){ &domain->fid }, 0), 0);
	child[0] = &mr->fid;
	child[1] = &cq->fid;
	child[2] = &cntr->fid;
	child[3] = &av->fid;
	for (i = 0; i < 4; i++) {
		unit_capture(&cap);
		ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
		/* Regions are told apart from the rest, and each object has a line of its own. */
		ck_assert_uint_eq(unit_lines(unit_captured(&cap)),
				  (i ? 1u : 2u) + 4u - (unsigned)i);
		ck_assert_int_eq(fi_close(child[i]), 0);
	}
	must_close(domain);
}
END_TEST

START_TEST(domain_close_is_refused_while_a_region_is_open)
{
	struct fid_domain *domain = must_open();
	struct fid_mr *mr;
	const char *text;

	ck_assert_int_eq(fi_mr_reg(domain, mem, 100, RW, 0, 0x1f, 0, &mr, NULL), 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, "rxe0 at 10.99.1.1"), "%s", text);
	ck_assert_msg(strstr(text, "100 bytes, key 0x1f"), "%s", text);
	ck_assert_uint_eq(unit_lines(text), 2);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	must_close(domain);
}
END_TEST

/* A key of this domain's own is as good as a peer's. */
static uint64_t must_map(struct fid_domain *domain, struct fid_mr *mr)
{
	uint8_t raw[MRF_RAWKEY_MAX];
	size_t size = sizeof(raw);
	uint64_t base, key;

	ck_assert_int_eq(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	ck_assert_int_eq(fi_mr_map_raw(domain, base, raw, size, &key, 0), 0);
	return key;
}

START_TEST(domain_close_is_refused_while_keys_are_mapped)
{
	struct fid_domain *domain = must_open();
	uint64_t one, two;
	struct fid_mr *mr;
	const char *text;

	ck_assert_int_eq(fi_mr_reg(domain, mem, 100, RW, 0, 0x1f, 0, &mr, NULL), 0);
	one = must_map(domain, mr);
	two = must_map(domain, mr);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, "MRF-E3123"), "%s", text);
	ck_assert_msg(strstr(text, "2 raw keys are still mapped"), "%s", text);
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_int_eq(fi_mr_unmap_key(domain, one), 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	unit_captured(&cap);
	ck_assert_int_eq(fi_mr_unmap_key(domain, two), 0);
	must_close(domain);
}
END_TEST

START_TEST(domain_close_names_all_that_is_in_the_way)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_domain *domain = must_open();
	struct fid_cq *cq;
	struct fid_mr *mr;
	uint64_t key;

	ck_assert_int_eq(fi_mr_reg(domain, mem, 100, RW, 0, 0x1f, 0, &mr, NULL), 0);
	ck_assert_int_eq(fi_cq_open(domain, &attr, &cq, NULL), 0);
	key = must_map(domain, mr);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&domain->fid), -FI_EBUSY);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 3 + 2);
	/* No object is counted twice. */
	ck_assert_ptr_nonnull(strstr(cap.text, "cannot be closed: 1 memory region uses it: "));
	ck_assert_ptr_nonnull(strstr(cap.text, "cannot be closed: 1 other object uses it: "));
	ck_assert_int_eq(fi_mr_unmap_key(domain, key), 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
	must_close(domain);
}
END_TEST

START_TEST(domain_maps_no_raw_key_that_is_none)
{
	struct fid_domain *domain = must_open();
	uint64_t key = 5;
	const char *text;

	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_map_raw(domain, 0, (uint8_t *)&key, 8, &key, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_unmap_key(domain, key), -FI_ENOKEY);
	text = unit_captured(&cap);
	ck_assert_uint_eq(key, 5);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3112"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3121"));
	ck_assert_uint_eq(unit_lines(text), 2);
	must_close(domain);
}
END_TEST

START_TEST(domain_holds_its_fabric)
{
	struct fid_domain *domain = must_open();
	const char *text;

	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&fabric->fid), -FI_EBUSY);
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, "rxe0 at 10.99.1.1"), "%s", text);
	must_close(domain);
}
END_TEST

START_TEST(trywait_of_queues_and_counters_that_can_wait)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD };
	struct fid_domain *domain = must_open();
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid *fids[2];

	ck_assert_int_eq(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	ck_assert_int_eq(fi_cntr_open(domain, &cntr_attr, &cntr, NULL), 0);
	fids[0] = &cntr->fid;
	fids[1] = &cq->fid;
	ck_assert_int_eq(fi_trywait(fabric, fids, 2), 0);
	mrf_cq_write(mrf_cq_from_fid(&cq->fid), &(struct mrf_comp){ .op_context = mem });
	ck_assert_int_eq(fi_trywait(fabric, fids, 2), -FI_EAGAIN);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	must_close(domain);
}
END_TEST

START_TEST(domain_names_what_it_does_not_offer)
{
	struct fid_domain *domain = must_open();
	struct fi_collective_attr coll;
	struct fi_poll_attr poll = { 0 };
	struct fid_poll *pollset;
	struct fid_stx *stx;
	struct fid_ep *ep;
	const char *text;
	void *ops;

	unit_capture(&cap);
	ck_assert_int_eq(fi_scalable_ep(domain, info, &ep, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_poll_open(domain, &poll, &pollset), -FI_ENOSYS);
	ck_assert_int_eq(fi_stx_context(domain, NULL, &stx, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_srx_context(domain, NULL, &ep, NULL), -FI_ENOSYS);
	ck_assert_int_eq(domain->ops->query_collective(domain, FI_BARRIER, &coll, 0), -FI_ENOSYS);
	ck_assert_int_eq(fi_control(&domain->fid, FI_QUEUE_WORK, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_control(&domain->fid, FI_GETWAIT, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_open_ops(&domain->fid, "x", 0, &ops, NULL), -FI_ENOSYS);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2134"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2135"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2136"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2137"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2139"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2146"));
	ck_assert_uint_eq(unit_lines(text), 8);
	must_close(domain);
}
END_TEST

/* --- fi_domain_bind --------------------------------------------------------------- */

static struct fid_eq *open_eq(struct fid_fabric *of)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_eq *eq = NULL;

	ck_assert_int_eq(fi_eq_open(of, &attr, &eq, NULL), 0);
	return eq;
}

static void not_bound(struct fid_domain *domain, struct fid *bfid, uint64_t flags, int err,
		      const char *code)
{
	const char *text;
	int ret;

	unit_capture(&cap);
	ret = fi_domain_bind(domain, bfid, flags);
	text = unit_captured(&cap);
	ck_assert_int_eq(ret, -err);
	ck_assert_msg(strstr(text, code) != NULL, "%s not in %s", code, text);
	ck_assert_uint_eq(unit_lines(text), 1);
}

START_TEST(domain_tells_what_its_cache_has_done)
{
	struct fi_mrfab_cache_stats stats = { .hits = 1 };
	struct fid_domain *domain = must_open();
	struct fi_ops_mrfab_cache *ops = NULL;
	void **to = (void **)&ops;
	const char *text;

	unit_capture(&cap);
	ck_assert_int_eq(fi_open_ops(&domain->fid, FI_MRFAB_CACHE_OPS, 1, to, NULL), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_open_ops(&domain->fid, FI_MRFAB_CACHE_OPS, 0, NULL, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_open_ops(&domain->fid, FI_MRFAB_CACHE_OPS, 0, to, NULL), 0);
	ck_assert_uint_eq(ops->size, sizeof(*ops));
	ck_assert_int_eq(ops->stats(domain, NULL), -FI_EINVAL);
	ck_assert_int_eq(ops->stats(domain, &stats), 0);
	ck_assert_uint_eq(stats.hits, 0);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2180"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2181"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2182"));
	must_close(domain);
}
END_TEST

START_TEST(domain_bind_takes_an_event_queue_of_its_fabric_once)
{
	struct fi_fabric_attr attr = { .prov_name = (char *)"mrfab",
				       .api_version = FI_VERSION(1, 17) };
	struct fid_domain *domain = must_open();
	struct fid_eq *eq = open_eq(fabric), *other;
	struct fid_fabric *theirs;

	ck_assert_int_eq(fi_fabric(&attr, &theirs, NULL), 0);
	other = open_eq(theirs);
	not_bound(domain, NULL, FI_REG_MR, FI_EINVAL, "MRF-E2141");
	not_bound(domain, &fabric->fid, FI_REG_MR, FI_EINVAL, "MRF-E2141");
	not_bound(domain, &eq->fid, FI_REG_MR | 1, FI_EBADFLAGS, "MRF-E2142");
	not_bound(domain, &other->fid, FI_REG_MR, FI_EINVAL, "MRF-E2161");
	ck_assert_int_eq(fi_domain_bind(domain, &eq->fid, _i ? FI_REG_MR : 0), 0);
	not_bound(domain, &eq->fid, FI_REG_MR, FI_EINVAL, "MRF-E2160");
	not_bound(domain, &eq->fid, 0, FI_EINVAL, "MRF-E2160");
	/* The queue is in use until the domain is closed. */
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&eq->fid), -FI_EBUSY);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E2001"));
	must_close(domain);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	ck_assert_int_eq(fi_close(&theirs->fid), 0);
}
END_TEST

START_TEST(a_domain_that_has_regions_is_not_bound_any_more)
{
	struct fid_domain *domain = must_open();
	struct fid_eq *eq = open_eq(fabric);
	struct fid_mr *mr;

	ck_assert_int_eq(fi_mr_reg(domain, mem, sizeof(mem), RW, 0, 7, 0, &mr, NULL), 0);
	not_bound(domain, &eq->fid, FI_REG_MR, FI_EOPBADSTATE, "MRF-E2162");
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_int_eq(fi_domain_bind(domain, &eq->fid, FI_REG_MR), 0);
	must_close(domain);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

/* With FI_REG_MR the event tells that the region is there; else it is when the call
 * returns. */
START_TEST(registration_is_asynchronous_where_the_queue_is_bound_with_reg_mr)
{
	struct fid_domain *domain = must_open();
	struct fid_eq *eq = open_eq(fabric);
	struct fi_eq_entry entry;
	struct fid_mr *mr;
	uint32_t event;

	ck_assert_int_eq(fi_domain_bind(domain, &eq->fid, _i ? FI_REG_MR : 0), 0);
	ck_assert_int_eq(fi_mr_reg(domain, mem, sizeof(mem), RW, 0, 7, 0, &mr, &event), 0);
	if (_i) {
		ck_assert_int_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 10000, 0),
				 sizeof(entry));
		ck_assert_uint_eq(event, FI_MR_COMPLETE);
		ck_assert_ptr_eq(entry.fid, &mr->fid);
		ck_assert_ptr_eq(entry.context, &event);
	}
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	ck_assert_uint_eq(fi_mr_key(mr), 7);
	ck_assert_int_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	must_close(domain);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

static struct fid_domain *endpoint_domain;
static struct mrf_eps *stopped;

static int fake_endpoint(struct fid_domain *domain, struct fi_info *ep_info, struct fid_ep **ep,
			 void *context)
{
	(void)ep_info, (void)ep, (void)context;
	endpoint_domain = domain;
	return -FI_EBADF;
}

static void fake_cache_stats(struct mrf_eps *eps, struct fi_mrfab_cache_stats *stats)
{
	ck_assert_ptr_eq(eps, (struct mrf_eps *)&cap);
	stats->hits = 7;
}

static void fake_eps_close(struct mrf_eps *eps)
{
	/* The device is still there for it. */
	ck_assert_uint_eq(fake_verbs.live_pds, 1);
	stopped = eps;
}

START_TEST(domain_passes_endpoints_up_and_stops_the_agent_last)
{
	const struct mrf_domain_up saved = fake_up;
	struct fid_domain *domain = must_open();
	struct fi_mrfab_cache_stats stats = { .bytes = 1 };
	struct fi_ops_mrfab_cache *ops;
	const char *text;
	struct fid_ep *ep;

	fake_up = (struct mrf_domain_up){ .endpoint = fake_endpoint,
					  .cache_stats = fake_cache_stats,
					  .eps_close = fake_eps_close };
	unit_capture(&cap);
	ck_assert_int_eq(fi_endpoint2(domain, info, &ep, FI_PEER, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_endpoint2(domain, info, &ep, 1, NULL), -FI_EBADFLAGS);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2132"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2133"));
	ck_assert_ptr_null(endpoint_domain);
	ck_assert_int_eq(fi_endpoint(domain, info, &ep, NULL), -FI_EBADF);
	ck_assert_ptr_eq(endpoint_domain, domain);

	mrf_domain_from_fid(domain)->eps = (struct mrf_eps *)&cap;
	ck_assert_int_eq(fi_open_ops(&domain->fid, FI_MRFAB_CACHE_OPS, 0, (void **)&ops, NULL), 0);
	ck_assert_int_eq(ops->stats(domain, &stats), 0);
	ck_assert_uint_eq(stats.hits, 7);
	ck_assert_uint_eq(stats.bytes, 0);
	must_close(domain);
	ck_assert_ptr_eq(stopped, (struct mrf_eps *)&cap);
	fake_up = saved;
}
END_TEST

START_TEST(domains_do_not_share_keys_or_descriptors)
{
	struct fid_domain *a = must_open(), *b = must_open();
	struct fid_mr *ma, *mb;
	struct mrf_desc out;

	ck_assert_int_eq(fi_mr_reg(a, mem, 8, RW, 0, 7, 0, &ma, NULL), 0);
	ck_assert_int_eq(fi_mr_reg(b, mem, 8, RW, 0, 7, 0, &mb, NULL), 0);
	ck_assert(mrf_desc_get(mrf_domain_mr_space(&a->fid), fi_mr_desc(ma), &out));
	ck_assert(!mrf_desc_get(mrf_domain_mr_space(&b->fid), fi_mr_desc(ma), &out));
	ck_assert_int_eq(fi_close(&ma->fid), 0);
	ck_assert_int_eq(fi_close(&mb->fid), 0);
	must_close(a);
	must_close(b);
}
END_TEST

static TCase *opening(void)
{
	TCase *tc = tcase_create("opening");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, domain_open_fills_in_the_fid);
	tcase_add_test(tc, domain_tells_what_its_cache_has_done);
	tcase_add_test(tc, domain_open_takes_the_address_without_its_port);
	tcase_add_test(tc, domain_open_resolves_every_mode_it_runs);
	tcase_add_test(tc, domain_open_runs_every_set_of_modes);
	tcase_add_test(tc, domain_open_with_the_old_local_flag_runs_local);
	tcase_add_test(tc, domain_open_refuses_modes_it_does_not_run);
	tcase_add_test(tc, domain_open_runs_device_memory_with_every_set_of_modes);
	tcase_add_test(tc, domain_open_without_capabilities_has_no_device_memory);
	tcase_add_test(tc, domain_open_refuses_null_arguments);
	tcase_add_test(tc, domain_open_refuses_an_info_of_another_fabric);
	tcase_add_test(tc, domain_open_takes_an_authorization_key_from_api_1_5);
	tcase_add_test(tc, domain_open_refuses_bad_addresses);
	tcase_add_test(tc, domain_opens_a_device_whose_name_was_changed);
	tcase_add_test(tc, domain_open_refuses_the_name_of_another_device);
	tcase_add_test(tc, domain_open_names_the_file_that_keeps_it_from_the_device);
	tcase_add_test(tc, domain_open_leaves_nothing_behind_when_a_call_fails);
	tcase_add_test(tc, domain_open_without_address_finds_one_by_name_and_format);
	return tc;
}

static TCase *offer(void)
{
	TCase *tc = tcase_create("offer");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, domain_opens_regions_queues_counters_and_vectors_and_they_hold_it);
	tcase_add_test(tc, domain_close_is_refused_while_a_region_is_open);
	tcase_add_test(tc, domain_close_is_refused_while_keys_are_mapped);
	tcase_add_test(tc, domain_close_names_all_that_is_in_the_way);
	tcase_add_test(tc, domain_maps_no_raw_key_that_is_none);
	tcase_add_test(tc, domain_holds_its_fabric);
	tcase_add_test(tc, trywait_of_queues_and_counters_that_can_wait);
	tcase_add_test(tc, domain_names_what_it_does_not_offer);
	tcase_add_loop_test(tc, domain_bind_takes_an_event_queue_of_its_fabric_once, 0, 2);
	tcase_add_test(tc, a_domain_that_has_regions_is_not_bound_any_more);
	tcase_add_loop_test(tc, registration_is_asynchronous_where_the_queue_is_bound_with_reg_mr,
			    0, 2);
	tcase_add_test(tc, domain_passes_endpoints_up_and_stops_the_agent_last);
	tcase_add_test(tc, domains_do_not_share_keys_or_descriptors);
	return tc;
}

UNIT_MAIN("domain", opening, offer)
