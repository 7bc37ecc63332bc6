/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/query.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include "base/log.h"
#include "base/param.h"
#include "contract/limits.h"
#include "contract/mr_offer.h"
#include "domain/domain.h"
#include "proto/proto.h"
#include "../fake/fake_vnl.h"
#include "unit.h"

#define V17 FI_VERSION(1, 17)
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define COMM (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define MESSAGES (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV)
/* What is offered beside FI_RMA and its directions. */
#define NOT_RMA (FI_ATOMIC | MESSAGES)

/* --- a machine with two devices and four addresses ------------------------- */

static size_t ndevs;
static int devs_err;
static unsigned port_state;
static bool one_network; /* of both devices */

static void set_dev(struct mrf_vnl_dev *dev, const char *name, const char *netdev)
{
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	snprintf(dev->netdev, sizeof(dev->netdev), "%s", netdev);
	dev->has_driver = true;
	dev->driver = RDMA_DRIVER_RXE;
	dev->port_state = port_state;
}

static int fake_devs(struct mrf_vnl_dev **devs, size_t *count)
{
	if (devs_err)
		return devs_err;
	*devs = calloc(2, sizeof(**devs));
	set_dev(&(*devs)[0], "rxe0", "dummy0");
	set_dev(&(*devs)[1], "rxe1", "eth1");
	/* As of devices that the process has seen before, of which no interface is asked for. */
	*count = fake_vnl.only && !fake_vnl.only->count ? 0 : ndevs;
	return 0;
}

static void set_addr(struct mrf_vnl_ifaddr *addr, const char *netdev, const char *text,
		     unsigned prefix)
{
	bool ip4 = !strchr(text, ':');

	snprintf(addr->netdev, sizeof(addr->netdev), "%s", netdev);
	addr->prefix = prefix;
	addr->addr.sa.sa_family = ip4 ? AF_INET : AF_INET6;
	inet_pton(addr->addr.sa.sa_family, text,
		  ip4 ? (void *)&addr->addr.in.sin_addr : (void *)&addr->addr.in6.sin6_addr);
}

static int fake_ifaddrs(struct mrf_vnl_ifaddr **addrs, size_t *count)
{
	*addrs = calloc(4, sizeof(**addrs));
	set_addr(&(*addrs)[0], "dummy0", "10.99.1.1", 24);
	if (one_network)
		set_addr(&(*addrs)[1], "eth1", "10.99.1.9", 24);
	else
		set_addr(&(*addrs)[1], "eth1", "172.16.77.9", 21);
	set_addr(&(*addrs)[2], "dummy0", "10.99.1.2", 24);
	set_addr(&(*addrs)[3], "dummy0", "fd00:99::1", 64);
	*count = 4;
	return 0;
}

static struct fi_info *hints, *info;
static struct unit_capture capture;
static const char *text; /* what the last call logged */

static void log_level(const char *level)
{
	setenv("FI_LOG_LEVEL", level, 1);
	mrf_log_reload();
}

static void setup(void)
{
	ndevs = 2;
	devs_err = 0;
	port_state = IBV_PORT_ACTIVE;
	fake_vnl.devs = fake_devs;
	fake_vnl.ifaddrs = fake_ifaddrs;
	info = NULL;
	text = "";
	hints = fi_allocinfo();
	ck_assert_ptr_nonnull(hints);
	log_level("info"); /* where the reason stands why nothing matches */
}

static void teardown(void)
{
	fi_freeinfo(hints);
	fi_freeinfo(info);
	hints = info = NULL;
	unsetenv("FI_PROVIDER");
	unsetenv("FI_MRFAB_IFACE");
	unsetenv("FI_MRFAB_MR_MODE");
	unsetenv("FI_LOG_LEVEL");
	mrf_log_reload();
}

static int get(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *use)
{
	int ret;

	fi_freeinfo(info);
	info = (void *)1; /* must be overwritten */
	unit_capture(&capture);
	ret = fi_getinfo(version, node, service, flags, use, &info);
	text = unit_captured(&capture);
	if (info == (void *)1)
		info = NULL;
	if (ret)
		ck_assert_ptr_null(info);
	return ret;
}

static int get_hints(void)
{
	return get(V17, NULL, NULL, 0, hints);
}

static unsigned count_infos(void)
{
	const struct fi_info *i;
	unsigned n = 0;

	for (i = info; i; i = i->next)
		n++;
	return n;
}

static const char *addr_of(const void *addr)
{
	static char buf[2][64];
	static unsigned turn;

	return mrf_addr_text(addr, buf[turn++ % 2], sizeof(buf[0]));
}

static void ck_has(const char *code, const char *words)
{
	ck_assert_msg(strstr(text, code) && strstr(text, words), "no %s with \"%s\" in: %s", code,
		      words, text);
}

static uint8_t *key(const char *bytes)
{
	return (uint8_t *)strdup(bytes);
}

/* --- what is offered ------------------------------------------------------- */

START_TEST(getinfo_without_hints_lists_every_usable_address)
{
	ck_assert_int_eq(get(V17, NULL, NULL, 0, NULL), 0);
	ck_assert_uint_eq(count_infos(), 4);
	ck_assert_str_eq(text, "");
	ck_assert_str_eq(info->fabric_attr->name, "10.99.1.0/24");
	ck_assert_str_eq(info->domain_attr->name, "rxe0");
	ck_assert_str_eq(addr_of(info->src_addr), "10.99.1.1:0");
	ck_assert_uint_eq(info->addr_format, FI_SOCKADDR_IN);
	ck_assert_uint_eq(info->src_addrlen, sizeof(struct sockaddr_in));
	ck_assert_ptr_null(info->dest_addr);
	ck_assert_str_eq(addr_of(info->next->src_addr), "10.99.1.2:0");
	ck_assert_str_eq(info->next->next->fabric_attr->name, "fd00:99::/64");
	ck_assert_uint_eq(info->next->next->addr_format, FI_SOCKADDR_IN6);
	ck_assert_uint_eq(info->next->next->src_addrlen, sizeof(struct sockaddr_in6));
	ck_assert_str_eq(info->next->next->next->fabric_attr->name, "172.16.72.0/21");
	ck_assert_str_eq(info->next->next->next->domain_attr->name, "rxe1");
}
END_TEST

START_TEST(getinfo_tells_its_names_and_versions)
{
	ck_assert_int_eq(get(FI_VERSION(1, 9), NULL, NULL, 0, NULL), 0);
	ck_assert_str_eq(info->fabric_attr->prov_name, "mrfab");
	ck_assert_uint_eq(info->fabric_attr->prov_version, mrf_info_prov_version());
	ck_assert_uint_eq(info->fabric_attr->api_version, FI_VERSION(1, 9));
	ck_assert_int_eq(info->ep_attr->type, FI_EP_RDM);
	ck_assert_uint_eq(info->ep_attr->protocol, MRF_PROTOCOL);
	ck_assert_str_eq(info->nic->device_attr->name, "rxe0");
	ck_assert_str_eq(info->nic->link_attr->address, "10.99.1.1");
	ck_assert_int_eq(info->nic->link_attr->state, FI_LINK_UP);
	ck_assert_uint_eq(info->nic->fid.fclass, FI_CLASS_NIC);
}
END_TEST

START_TEST(getinfo_promises_the_contract_s_limits)
{
	ck_assert_int_eq(get(V17, NULL, NULL, 0, NULL), 0);
	ck_assert_uint_eq(info->mode, 0);
	ck_assert_uint_eq(info->tx_attr->inject_size, MRF_LIMIT_INJECT);
	ck_assert_uint_eq(info->tx_attr->size, MRF_LIMIT_TX_SIZE);
	ck_assert_uint_eq(info->tx_attr->iov_limit, MRF_LIMIT_IOV);
	ck_assert_uint_eq(info->tx_attr->rma_iov_limit, MRF_LIMIT_RMA_IOV);
	ck_assert_uint_eq(info->tx_attr->msg_order, MRF_MSG_ORDER);
	ck_assert_uint_eq(info->tx_attr->comp_order, FI_ORDER_NONE);
	ck_assert_uint_eq(info->tx_attr->op_flags, 0);
	ck_assert_uint_eq(info->rx_attr->size, MRF_LIMIT_RX_SIZE);
	ck_assert_uint_eq(info->ep_attr->max_msg_size, MRF_LIMIT_MSG_SIZE);
	ck_assert_uint_eq(info->ep_attr->max_order_war_size, 0);
	ck_assert_uint_eq(info->ep_attr->tx_ctx_cnt, 1);
	ck_assert_uint_eq(info->domain_attr->mr_key_size, 8);
	ck_assert_uint_eq(info->domain_attr->mr_iov_limit, MRF_LIMIT_MR_IOV);
	ck_assert_uint_eq(info->domain_attr->mr_cnt, MRF_LIMIT_MR_CNT);
	ck_assert_uint_eq(info->domain_attr->cq_data_size, 4);
	ck_assert_uint_eq(info->domain_attr->max_ep_tx_ctx, 1);
	ck_assert_uint_eq(info->domain_attr->max_ep_stx_ctx, 0);
	ck_assert_int_eq(info->domain_attr->threading, FI_THREAD_SAFE);
	ck_assert_int_eq(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	ck_assert_int_eq(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
	ck_assert_int_eq(info->domain_attr->av_type, FI_AV_UNSPEC);
}
END_TEST

START_TEST(getinfo_caps_follow_what_is_asked)
{
	static const struct {
		uint64_t asked, caps, tx, rx;
	} cases[] = {
		{ 0, MRF_CAPS, MRF_CAPS_TX, MRF_CAPS_RX },
		{ FI_RMA, MRF_CAPS & ~NOT_RMA, MRF_CAPS_TX & ~NOT_RMA, MRF_CAPS_RX & ~NOT_RMA },
		{ FI_ATOMIC, MRF_CAPS & ~(FI_RMA | MESSAGES), MRF_CAPS_TX & ~(FI_RMA | MESSAGES),
		  MRF_CAPS_RX & ~(FI_RMA | MESSAGES) },
		{ FI_RMA | FI_ATOMIC, MRF_CAPS & ~MESSAGES, MRF_CAPS_TX & ~MESSAGES,
		  MRF_CAPS_RX & ~MESSAGES },
		{ FI_RMA | FI_ATOMIC | FI_MSG | FI_TAGGED, MRF_CAPS & ~FI_MULTI_RECV, MRF_CAPS_TX,
		  MRF_CAPS_RX & ~FI_MULTI_RECV },
		{ FI_RMA | FI_ATOMIC | FI_MSG | FI_TAGGED | FI_MULTI_RECV, MRF_CAPS, MRF_CAPS_TX,
		  MRF_CAPS_RX },
		{ FI_RMA | FI_ATOMIC | FI_TAGGED, MRF_CAPS & ~(FI_MSG | FI_MULTI_RECV),
		  MRF_CAPS_TX & ~FI_MSG, MRF_CAPS_RX & ~(FI_MSG | FI_MULTI_RECV) },
		{ FI_RMA | FI_ATOMIC | FI_WRITE, FI_RMA | FI_ATOMIC | FI_WRITE | COMM,
		  FI_RMA | FI_ATOMIC | FI_WRITE, 0 },
		{ FI_RMA | FI_READ, FI_RMA | FI_READ | COMM, FI_RMA | FI_READ, 0 },
		{ FI_RMA | REMOTE, FI_RMA | REMOTE | COMM, 0, FI_RMA | REMOTE },
		{ FI_RMA | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_COMM,
		  FI_RMA | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_COMM, FI_RMA | FI_WRITE,
		  FI_RMA | FI_REMOTE_READ },
		{ FI_LOCAL_COMM, FI_LOCAL_COMM, 0, 0 },
		{ FI_MSG, (MESSAGES & ~(FI_TAGGED | FI_MULTI_RECV)) | COMM, FI_MSG | FI_SEND,
		  FI_MSG | FI_RECV },
		{ FI_TAGGED, (MESSAGES & ~(FI_MSG | FI_MULTI_RECV)) | COMM, FI_TAGGED | FI_SEND,
		  FI_TAGGED | FI_RECV },
		{ FI_TAGGED | FI_RECV | FI_SOURCE | FI_DIRECTED_RECV,
		  FI_TAGGED | FI_RECV | FI_SOURCE | FI_DIRECTED_RECV | COMM, 0,
		  FI_TAGGED | FI_RECV | FI_SOURCE | FI_DIRECTED_RECV },
		{ FI_MSG | FI_SEND, FI_MSG | FI_SEND | COMM, FI_MSG | FI_SEND, 0 },
		{ FI_MSG | FI_RECV, FI_MSG | FI_RECV | COMM, 0, FI_MSG | FI_RECV },
		/* One without a direction has all of its own. */
		{ FI_MSG | FI_RMA | FI_READ,
		  (MESSAGES & ~(FI_TAGGED | FI_MULTI_RECV)) | FI_RMA | FI_READ | COMM,
		  FI_MSG | FI_SEND | FI_RMA | FI_READ, FI_MSG | FI_RECV },
		{ FI_MSG | FI_RMA | FI_SEND, FI_MSG | FI_SEND | (MRF_CAPS & ~NOT_RMA),
		  FI_MSG | FI_SEND | (MRF_CAPS_TX & ~NOT_RMA), MRF_CAPS_RX & ~NOT_RMA },
		/* Directions of messages without messages are nothing. */
		{ FI_RMA | FI_READ | FI_RECV, FI_RMA | FI_READ | COMM, FI_RMA | FI_READ, 0 },
		{ FI_SEND | FI_RECV, COMM, 0, 0 },
		/* What costs something has to be named. */
		{ FI_RMA | FI_RMA_EVENT, (MRF_CAPS & ~NOT_RMA) | FI_RMA_EVENT,
		  MRF_CAPS_TX & ~NOT_RMA, (MRF_CAPS_RX & ~NOT_RMA) | FI_RMA_EVENT },
		{ FI_RMA | FI_REMOTE_WRITE | FI_RMA_EVENT,
		  FI_RMA | FI_REMOTE_WRITE | FI_RMA_EVENT | COMM, 0,
		  FI_RMA | FI_REMOTE_WRITE | FI_RMA_EVENT },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hints->caps = cases[i].asked;
		ck_assert_int_eq(get_hints(), 0);
		ck_assert_uint_eq(info->caps, cases[i].caps);
		ck_assert_uint_eq(info->tx_attr->caps, cases[i].tx);
		ck_assert_uint_eq(info->rx_attr->caps, cases[i].rx);
		ck_assert_uint_eq(info->domain_attr->caps, cases[i].caps & COMM);
	}
}
END_TEST

START_TEST(getinfo_returns_attributes_as_hinted)
{
	hints->mode = ~UINT64_C(0);
	hints->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	hints->tx_attr->caps = FI_RMA | FI_WRITE;
	hints->tx_attr->inject_size = 16;
	hints->tx_attr->size = 7;
	hints->tx_attr->iov_limit = 1;
	hints->tx_attr->rma_iov_limit = 2;
	hints->rx_attr->size = 5;
	hints->rx_attr->iov_limit = 3;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_DISABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->mode, 0);
	ck_assert_uint_eq(info->tx_attr->op_flags, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	ck_assert_uint_eq(info->tx_attr->caps, FI_RMA | FI_WRITE);
	hints->tx_attr->caps = FI_RMA;
	hints->rx_attr->caps = FI_RMA;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->tx_attr->caps, MRF_CAPS_TX & ~NOT_RMA);
	ck_assert_uint_eq(info->rx_attr->caps, MRF_CAPS_RX & ~NOT_RMA);
	ck_assert_uint_eq(info->tx_attr->inject_size, 16);
	ck_assert_uint_eq(info->tx_attr->size, 7);
	ck_assert_uint_eq(info->tx_attr->iov_limit, 1);
	ck_assert_uint_eq(info->tx_attr->rma_iov_limit, 2);
	ck_assert_uint_eq(info->rx_attr->size, 5);
	ck_assert_uint_eq(info->rx_attr->iov_limit, 3);
	ck_assert_uint_eq(info->rx_attr->op_flags, FI_COMPLETION);
	ck_assert_int_eq(info->domain_attr->threading, FI_THREAD_DOMAIN);
	ck_assert_int_eq(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	ck_assert_int_eq(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	ck_assert_int_eq(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
	ck_assert_int_eq(info->domain_attr->av_type, FI_AV_TABLE);
}
END_TEST

START_TEST(getinfo_takes_hints_without_any_attributes)
{
	struct fi_info bare = { .caps = FI_RMA };

	ck_assert_int_eq(get(V17, NULL, NULL, 0, &bare), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, 0);
	ck_assert_int_eq(get(FI_VERSION(1, 4), NULL, NULL, 0, &bare), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_BASIC);
}
END_TEST

START_TEST(getinfo_answers_what_it_answered)
{
	struct fi_info *again;

	ck_assert_int_eq(get(V17, NULL, NULL, 0, NULL), 0);
	ck_assert_int_eq(fi_getinfo(V17, NULL, NULL, 0, info, &again), 0);
	ck_assert_str_eq(addr_of(again->src_addr), addr_of(info->src_addr));
	ck_assert_uint_eq(again->caps, info->caps);
	ck_assert_ptr_null(again->next);
	fi_freeinfo(again);
}
END_TEST

/* --- mr_mode through the whole call ---------------------------------------- */

START_TEST(getinfo_keeps_the_mr_mode_bits_that_are_offered)
{
	hints->domain_attr->mr_mode =
		FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_RAW | FI_MR_ENDPOINT | FI_MR_HMEM;
	log_level("warn");
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(getinfo_answers_the_legacy_models_as_asked)
{
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_BASIC);
	hints->domain_attr->mr_mode = FI_MR_SCALABLE;
	ck_assert_int_eq(get(0, NULL, NULL, 0, hints), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_SCALABLE);
	hints->domain_attr->mr_mode = FI_MR_UNSPEC;
	ck_assert_int_eq(get(0, NULL, NULL, 0, hints), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_BASIC);
	ck_assert_uint_eq(info->mode, 0);
}
END_TEST

START_TEST(getinfo_refuses_basic_with_another_bit)
{
	hints->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_LOCAL;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1030", "FI_MR_BASIC must be set alone");
	ck_assert_uint_eq(unit_lines(text), 1);
}
END_TEST

START_TEST(getinfo_refuses_mode_bits_before_1_5)
{
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	ck_assert_int_eq(get(FI_VERSION(1, 4), NULL, NULL, 0, hints), -FI_ENODATA);
	ck_has("MRF-E1030", "version 1.4");
}
END_TEST

/* --- hints that ask for more than is offered ------------------------------- */

/*
 * One refusal with a line that names the field; then the greatest value that is
 * offered.
 */
#define CK_FIELD(member, refused, granted)                                \
	do {                                                              \
		hints->member = refused;                                  \
		ck_assert_msg(get_hints() == -FI_ENODATA, "%s", #member); \
		ck_has("MRF-E102", "hints->" #member "=");                \
		ck_assert_uint_eq(unit_lines(text), 1);                   \
		hints->member = granted;                                  \
		ck_assert_msg(get_hints() == 0, "%s: %s", #member, text); \
		hints->member = 0;                                        \
	} while (0)

START_TEST(getinfo_refuses_capabilities_that_are_not_offered)
{
	uint64_t bit;

	for (bit = 1; bit; bit <<= 1) {
		hints->caps = bit;
		ck_assert_int_eq(get_hints(),
				 bit & MRF_CAPS_ALL && bit != FI_HMEM ? 0 : -FI_ENODATA);
		/* Not because it is not offered: mr_mode lacks its bit. */
		if (bit == FI_HMEM)
			ck_has("MRF-E1033", "FI_HMEM");
	}
	hints->caps = FI_MULTICAST | FI_RECV;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1021",
	       "not offered: FI_MULTICAST; offered: FI_MSG, FI_RMA, FI_TAGGED, FI_ATOMIC");
	hints->caps = FI_RMA | FI_MSG | FI_COLLECTIVE;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1021", "not offered: FI_COLLECTIVE; offered: FI_MSG");
	hints->caps = FI_MSG | FI_MULTI_RECV | FI_NAMED_RX_CTX | FI_SOURCE;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1021", "not offered: FI_NAMED_RX_CTX; offered");
}
END_TEST

/* What a program would like to have, not what it needs. */
START_TEST(getinfo_takes_any_traffic_class_for_a_wish)
{
	static const uint32_t wishes[] = { FI_TC_UNSPEC,      FI_TC_BULK_DATA,
					   FI_TC_LOW_LATENCY, FI_TC_DEDICATED_ACCESS,
					   FI_TC_SCAVENGER,   FI_TC_NETWORK_CTRL,
					   UINT32_MAX };
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(wishes); i++) {
		hints->tx_attr->tclass = wishes[i];
		hints->domain_attr->tclass = wishes[i];
		ck_assert_int_eq(get_hints(), 0);
		/* None is promised. */
		ck_assert_uint_eq(info->tx_attr->tclass, FI_TC_UNSPEC);
		ck_assert_uint_eq(info->domain_attr->tclass, FI_TC_UNSPEC);
	}
}
END_TEST

START_TEST(getinfo_does_not_look_at_the_size_of_keys_in_hints)
{
	hints->domain_attr->mr_key_size = 1000;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->domain_attr->mr_key_size, 8);
	hints->domain_attr->mr_key_size = 1;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->domain_attr->mr_key_size, 8);
}
END_TEST

START_TEST(getinfo_checks_every_endpoint_hint)
{
	CK_FIELD(ep_attr->type, FI_EP_MSG, FI_EP_RDM);
	CK_FIELD(ep_attr->protocol, FI_PROTO_RXM, MRF_PROTOCOL);
	CK_FIELD(ep_attr->protocol_version, MRF_PROTO_VERSION + 1, MRF_PROTO_VERSION);
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->ep_attr->protocol_version, MRF_PROTO_VERSION);
	CK_FIELD(ep_attr->max_msg_size, MRF_LIMIT_MSG_SIZE + 1, MRF_LIMIT_MSG_SIZE);
	CK_FIELD(ep_attr->max_order_raw_size, MRF_LIMIT_MSG_SIZE + 1, MRF_LIMIT_MSG_SIZE);
	CK_FIELD(ep_attr->max_order_war_size, 1, 0);
	CK_FIELD(ep_attr->max_order_waw_size, MRF_LIMIT_MSG_SIZE + 1, MRF_LIMIT_MSG_SIZE);
	CK_FIELD(ep_attr->tx_ctx_cnt, 2, 1);
	CK_FIELD(ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT, 0);
	CK_FIELD(ep_attr->rx_ctx_cnt, 2, 1);
	CK_FIELD(ep_attr->auth_key_size, MRF_LIMIT_AUTH_KEY + 1, 0);
}
END_TEST

/* Operations of who has them in force wait for others. */
START_TEST(getinfo_grants_orders_of_messages_and_accesses_to_who_asks)
{
	hints->tx_attr->msg_order = FI_ORDER_SAW | FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_WAS;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->tx_attr->msg_order, MRF_MSG_ORDER | FI_ORDER_SAW);
	ck_assert_uint_eq(info->rx_attr->msg_order, MRF_MSG_ORDER | FI_ORDER_WAS);
}
END_TEST

START_TEST(getinfo_checks_every_transmit_hint)
{
	CK_FIELD(tx_attr->caps, FI_MULTICAST, FI_RMA);
	CK_FIELD(tx_attr->caps, FI_MSG | FI_RECV, FI_MSG | FI_SEND);
	CK_FIELD(tx_attr->caps, FI_REMOTE_READ, FI_READ);
	CK_FIELD(tx_attr->op_flags, FI_FENCE, MRF_OP_FLAGS_TX);
	CK_FIELD(tx_attr->msg_order, FI_ORDER_WAR, MRF_MSG_ORDER | MRF_MSG_ORDER_EXTRA);
	CK_FIELD(tx_attr->comp_order, FI_ORDER_STRICT, FI_ORDER_NONE);
	CK_FIELD(tx_attr->inject_size, MRF_LIMIT_INJECT + 1, MRF_LIMIT_INJECT);
	CK_FIELD(tx_attr->size, MRF_LIMIT_SIZE + 1, MRF_LIMIT_SIZE);
	CK_FIELD(tx_attr->iov_limit, MRF_LIMIT_IOV + 1, MRF_LIMIT_IOV);
	CK_FIELD(tx_attr->rma_iov_limit, MRF_LIMIT_RMA_IOV + 1, MRF_LIMIT_RMA_IOV);
}
END_TEST

START_TEST(getinfo_checks_every_receive_hint)
{
	CK_FIELD(rx_attr->caps, FI_MULTICAST | FI_RECV, FI_REMOTE_READ);
	CK_FIELD(rx_attr->caps, FI_MSG | FI_SEND, FI_MSG | FI_RECV);
	CK_FIELD(rx_attr->caps, FI_MULTICAST | FI_RECV, FI_RECV);
	CK_FIELD(rx_attr->op_flags, FI_INJECT, FI_COMPLETION);
	CK_FIELD(rx_attr->msg_order, FI_ORDER_WAR, MRF_MSG_ORDER | MRF_MSG_ORDER_EXTRA);
	CK_FIELD(rx_attr->comp_order, FI_ORDER_DATA, FI_ORDER_NONE);
	CK_FIELD(rx_attr->total_buffered_recv, 1, 0);
	CK_FIELD(rx_attr->size, MRF_LIMIT_SIZE + 1, MRF_LIMIT_SIZE);
	CK_FIELD(rx_attr->iov_limit, MRF_LIMIT_IOV + 1, MRF_LIMIT_IOV);
}
END_TEST

START_TEST(getinfo_checks_every_domain_hint)
{
	CK_FIELD(domain_attr->threading, FI_THREAD_ENDPOINT + 1, FI_THREAD_ENDPOINT);
	CK_FIELD(domain_attr->control_progress, FI_PROGRESS_MANUAL + 1, FI_PROGRESS_MANUAL);
	CK_FIELD(domain_attr->data_progress, FI_PROGRESS_MANUAL + 1, FI_PROGRESS_AUTO);
	CK_FIELD(domain_attr->resource_mgmt, FI_RM_ENABLED + 1, FI_RM_ENABLED);
	CK_FIELD(domain_attr->av_type, FI_AV_TABLE + 1, FI_AV_MAP);
	CK_FIELD(domain_attr->cq_data_size, 5, 4);
	CK_FIELD(domain_attr->max_ep_tx_ctx, 2, 1);
	CK_FIELD(domain_attr->max_ep_rx_ctx, 2, 1);
	CK_FIELD(domain_attr->max_ep_stx_ctx, 1, 0);
	CK_FIELD(domain_attr->max_ep_srx_ctx, 1, 0);
	CK_FIELD(domain_attr->mr_iov_limit, MRF_LIMIT_MR_IOV + 1, MRF_LIMIT_MR_IOV);
	CK_FIELD(domain_attr->caps, FI_SHARED_AV, COMM);
	CK_FIELD(domain_attr->auth_key_size, MRF_LIMIT_AUTH_KEY + 1, 0);
	CK_FIELD(domain_attr->max_err_data, MRF_LIMIT_ERR_DATA + 1, MRF_LIMIT_ERR_DATA);
	CK_FIELD(domain_attr->mr_cnt, MRF_LIMIT_MR_CNT + 1, MRF_LIMIT_MR_CNT);
}
END_TEST

START_TEST(getinfo_answers_with_the_keys_that_it_was_hinted)
{
	hints->ep_attr->auth_key_size = 7;
	ck_assert_int_eq(get_hints(), -FI_EINVAL);
	ck_has("MRF-E1025", "ep_attr->auth_key must not be NULL");
	hints->ep_attr->auth_key = key("ep-key!");
	hints->domain_attr->auth_key_size = MRF_LIMIT_AUTH_KEY;
	ck_assert_int_eq(get_hints(), -FI_EINVAL);
	ck_has("MRF-E1025", "domain_attr->auth_key must not be NULL");
	hints->domain_attr->auth_key = calloc(1, MRF_LIMIT_AUTH_KEY);
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->ep_attr->auth_key_size, 7);
	ck_assert_ptr_ne(info->ep_attr->auth_key, hints->ep_attr->auth_key);
	ck_assert_mem_eq(info->ep_attr->auth_key, "ep-key!", 7);
	ck_assert_uint_eq(info->domain_attr->auth_key_size, MRF_LIMIT_AUTH_KEY);
	ck_assert_mem_eq(info->domain_attr->auth_key, hints->domain_attr->auth_key,
			 MRF_LIMIT_AUTH_KEY);
	/* Before 1.5 there were none. */
	ck_assert_int_eq(get(FI_VERSION(1, 4), NULL, NULL, 0, hints), 0);
	ck_assert_uint_eq(info->ep_attr->auth_key_size, 0);
	ck_assert_ptr_null(info->ep_attr->auth_key);
	ck_assert_uint_eq(info->domain_attr->auth_key_size, 0);
	ck_assert_ptr_null(info->domain_attr->auth_key);
}
END_TEST

START_TEST(getinfo_ignores_fields_younger_than_the_version)
{
	hints->domain_attr->mr_cnt = SIZE_MAX;
	hints->domain_attr->mr_iov_limit = SIZE_MAX;
	hints->domain_attr->max_err_data = SIZE_MAX;
	hints->domain_attr->auth_key_size = SIZE_MAX;
	hints->ep_attr->auth_key_size = SIZE_MAX;
	ck_assert_int_eq(get(FI_VERSION(1, 4), NULL, NULL, 0, hints), 0);
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_assert_uint_eq(unit_lines(text), 5);
	hints->domain_attr->auth_key_size = 0;
	hints->ep_attr->auth_key_size = 0;
}
END_TEST

START_TEST(getinfo_says_all_that_is_wrong_at_once)
{
	hints->caps = FI_MULTICAST;
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->domain_attr->mr_mode = FI_MR_SCALABLE | FI_MR_LOCAL;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_assert_uint_eq(unit_lines(text), 3);
	ck_has("MRF-E1021", "FI_MULTICAST");
	ck_has("MRF-E1022", "FI_EP_DGRAM");
	hints->ep_attr->protocol = FI_PROTO_RXM;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1022: hints->ep_attr->protocol=0xb (FI_PROTO_RXM): only libmrfab's own is offered",
	       "FI_MRFAB_PROVIDER_NAME");
	hints->ep_attr->protocol = 0;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1030", "FI_MR_SCALABLE must be set alone");
}
END_TEST

START_TEST(getinfo_refuses_to_inherit_from_a_handle)
{
	struct fid fid = { .fclass = FI_CLASS_PEP };

	hints->handle = &fid;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1024", "hints->handle=");
	hints->handle = NULL;
}
END_TEST

/* --- names ----------------------------------------------------------------- */

START_TEST(getinfo_lists_name_or_leave_out)
{
	ck_assert(mrf_env_listed(NULL, "mrfab"));
	ck_assert(!mrf_env_listed("", "mrfab"));
	ck_assert(!mrf_env_listed(",", "mrfab"));
	ck_assert(mrf_env_listed("mrfab", "mrfab"));
	ck_assert(mrf_env_listed("MRFab", "mrfab"));
	ck_assert(mrf_env_listed("tcp,mrfab", "mrfab"));
	ck_assert(mrf_env_listed("tcp,,mrfab,", "mrfab"));
	ck_assert(!mrf_env_listed("tcp,verbs", "mrfab"));
	ck_assert(!mrf_env_listed("mrfab2", "mrfab"));
	ck_assert(!mrf_env_listed("mrfa", "mrfab"));
	ck_assert(!mrf_env_listed("mrfab;ofi_rxm", "mrfab"));
	ck_assert(!mrf_env_listed("^mrfab", "mrfab"));
	ck_assert(!mrf_env_listed("^tcp,mrfab", "mrfab"));
	ck_assert(mrf_env_listed("^tcp,verbs", "mrfab"));
	ck_assert(mrf_env_listed("^", "mrfab"));
}
END_TEST

START_TEST(getinfo_honours_the_provider_name)
{
	hints->fabric_attr->prov_name = strdup("mrfab");
	ck_assert_int_eq(get_hints(), 0);
	strcpy(hints->fabric_attr->prov_name, "verbs");
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1010", "\"verbs\"");
	strcpy(hints->fabric_attr->prov_name, "^tcp");
	ck_assert_int_eq(get_hints(), 0);
	hints->fabric_attr->prov_version = mrf_info_prov_version() + 1;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1020", "prov_version");
	hints->fabric_attr->prov_version = mrf_info_prov_version();
	ck_assert_int_eq(get_hints(), 0);
}
END_TEST

START_TEST(getinfo_honours_the_environment)
{
	setenv("FI_PROVIDER", "^mrfab", 1);
	mrf_env_reload();
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1011", "FI_PROVIDER=^mrfab");
	setenv("FI_PROVIDER", "mrfab,tcp", 1);
	setenv("FI_MRFAB_IFACE", "rxe1", 1);
	mrf_env_reload();
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 1);
	ck_assert_str_eq(info->domain_attr->name, "rxe1");
	setenv("FI_MRFAB_IFACE", "dummy0", 1);
	mrf_env_reload();
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 3);
	setenv("FI_MRFAB_IFACE", "rxe7", 1);
	mrf_env_reload();
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1055", "FI_MRFAB_IFACE=rxe7");
}
END_TEST

START_TEST(getinfo_honours_domain_and_fabric_names)
{
	hints->domain_attr->name = strdup("rxe1");
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 1);
	hints->fabric_attr->name = strdup("10.99.1.0/24");
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_assert_uint_eq(unit_lines(text), 4); /* one a path */
	ck_has("MRF-E1051", "asks for \"10.99.1.0/24\", but this is \"172.16.72.0/21\"");
	ck_has("MRF-E1050", "asks for \"rxe1\", but this is \"rxe0\"");
	strcpy(hints->domain_attr->name, "rxe0");
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 2);
}
END_TEST

START_TEST(getinfo_honours_an_open_fabric)
{
	struct mrf_fabric fabric = { .fid.fid.fclass = FI_CLASS_FABRIC };

	fabric.name = (char *)"fd00:99::/64";
	hints->fabric_attr->fabric = &fabric.fid;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 1);
	ck_assert_ptr_eq(info->fabric_attr->fabric, &fabric.fid);
	ck_assert_uint_eq(info->addr_format, FI_SOCKADDR_IN6);
	fabric.fid.fid.fclass = FI_CLASS_DOMAIN;
	ck_assert_int_eq(get_hints(), -FI_EINVAL);
	ck_has("MRF-E1006", "fabric_attr->fabric");
}
END_TEST

START_TEST(getinfo_honours_an_open_domain)
{
	struct mrf_domain domain = { .fid.fid.fclass = FI_CLASS_DOMAIN };

	domain.addr.in.sin_family = AF_INET;
	inet_pton(AF_INET, "10.99.1.2", &domain.addr.in.sin_addr);
	hints->domain_attr->domain = &domain.fid;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 1);
	ck_assert_ptr_eq(info->domain_attr->domain, &domain.fid);
	ck_assert_str_eq(addr_of(info->src_addr), "10.99.1.2:0");
	/* Its mode is fixed, so the offer has to cover it. */
	domain.mr_mode = FI_MR_PROV_KEY;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1056", "runs with mr_mode");
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_PROV_KEY);
	ck_assert_uint_eq(info->domain_attr->mr_key_size, 8);
	/* The bits that are only kept on request as well. */
	domain.mr_mode = FI_MR_RAW | FI_MR_ENDPOINT;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	hints->domain_attr->mr_mode = FI_MR_RAW | FI_MR_ENDPOINT;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_RAW | FI_MR_ENDPOINT);
	ck_assert_uint_gt(info->domain_attr->mr_key_size, 8);
	domain.fid.fid.fclass = FI_CLASS_FABRIC;
	ck_assert_int_eq(get_hints(), -FI_EINVAL);
	ck_has("MRF-E1006", "domain_attr->domain");
}
END_TEST

/* --- FI_HMEM --------------------------------------------------------------- */

static const uint32_t bit_versions[] = { FI_VERSION(1, 5),  FI_VERSION(1, 8),
					 FI_VERSION(1, 13), V17,
					 FI_VERSION(1, 20), FI_VERSION(2, 3) };

/* Every subset of the other bits, in every version that has bits. */
START_TEST(getinfo_offers_device_memory_to_those_who_offer_its_bit)
{
	const int kept = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	int bits;
	size_t i;

	hints->caps = FI_RMA | FI_HMEM;
	for (i = 0; i < MRF_ARRAY_SIZE(bit_versions); i++) {
		for (bits = 0; bits <= MRF_MR_REQUIRABLE; bits += FI_MR_LOCAL) {
			hints->domain_attr->mr_mode = bits | FI_MR_HMEM;
			ck_assert_int_eq(get(bit_versions[i], NULL, NULL, 0, hints), 0);
			ck_assert_int_eq(info->domain_attr->mr_mode, (bits & kept) | FI_MR_HMEM);
			ck_assert_uint_eq(info->caps, (MRF_CAPS & ~NOT_RMA) | FI_HMEM);
			hints->domain_attr->mr_mode = bits;
			ck_assert_int_eq(get(bit_versions[i], NULL, NULL, 0, hints), -FI_ENODATA);
			ck_has("MRF-E1033", "FI_HMEM needs FI_MR_HMEM: set it in mr_mode");
			ck_assert_uint_eq(unit_lines(text), 1);
		}
	}
}
END_TEST

START_TEST(getinfo_gives_device_memory_to_those_only_who_ask_for_it)
{
	struct fi_info bare = { .caps = FI_RMA };

	log_level("warn");
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_VIRT_ADDR;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->caps, MRF_CAPS);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_VIRT_ADDR);
	hints->caps = FI_RMA;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_VIRT_ADDR);
	ck_assert_int_eq(get(V17, NULL, NULL, 0, NULL), 0);
	ck_assert_uint_eq(info->caps, MRF_CAPS);
	ck_assert_int_eq(info->domain_attr->mr_mode, 0);
	ck_assert_int_eq(get(V17, NULL, NULL, 0, &bare), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, 0);
	ck_assert_str_eq(text, "");
	/* Who says nothing of modes is told what is needed. */
	bare.caps |= FI_HMEM;
	ck_assert_int_eq(get(V17, NULL, NULL, 0, &bare), 0);
	ck_assert_uint_eq(info->caps, (MRF_CAPS & ~NOT_RMA) | FI_HMEM);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_HMEM);
}
END_TEST

/* With words about what to set, at a level where a question is no mistake. */
START_TEST(getinfo_refuses_device_memory_without_bits)
{
	static const int legacy[] = { FI_MR_BASIC, FI_MR_SCALABLE, FI_MR_BASIC | FI_MR_HMEM };
	size_t i;

	hints->caps = FI_RMA | FI_HMEM;
	for (i = 0; i < MRF_ARRAY_SIZE(legacy); i++) {
		hints->domain_attr->mr_mode = legacy[i];
		ck_assert_int_eq(get_hints(), -FI_ENODATA);
		ck_has("MRF-E1033", "do not include: set bits in mr_mode instead");
		ck_assert_int_eq(get(FI_VERSION(1, 4), NULL, NULL, 0, hints), -FI_ENODATA);
		ck_has("MRF-E1033", "before version 1.5: ask for a later version");
		ck_assert_uint_eq(unit_lines(text), 1);
	}
	log_level("warn");
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(getinfo_takes_device_memory_of_either_side_and_of_both)
{
	hints->caps = FI_RMA | FI_HMEM;
	hints->domain_attr->mr_mode = FI_MR_HMEM;
	hints->tx_attr->caps = FI_RMA | FI_WRITE | FI_HMEM;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->tx_attr->caps, FI_RMA | FI_WRITE | FI_HMEM);
	ck_assert_uint_eq(info->rx_attr->caps, (MRF_CAPS_RX & ~NOT_RMA) | FI_HMEM);
	hints->tx_attr->caps = FI_RMA | FI_WRITE;
	hints->rx_attr->caps = FI_HMEM;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->tx_attr->caps, FI_RMA | FI_WRITE);
	ck_assert_uint_eq(info->rx_attr->caps, FI_HMEM);
	/* As programs do that do not know better. */
	hints->tx_attr->caps = hints->rx_attr->caps = hints->caps;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->tx_attr->caps, (MRF_CAPS_TX & ~NOT_RMA) | FI_HMEM);
	ck_assert_uint_eq(info->rx_attr->caps, (MRF_CAPS_RX & ~NOT_RMA) | FI_HMEM);
}
END_TEST

START_TEST(getinfo_refuses_device_memory_of_a_side_that_the_whole_lacks)
{
	hints->domain_attr->mr_mode = FI_MR_HMEM;
	hints->tx_attr->caps = FI_RMA | FI_HMEM;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1026", "hints->tx_attr->caps has FI_HMEM, but hints->caps does not");
	hints->caps = FI_RMA;
	hints->tx_attr->caps = 0;
	hints->rx_attr->caps = FI_HMEM;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1026", "hints->rx_attr->caps has FI_HMEM, but hints->caps does not");
	hints->caps |= FI_HMEM;
	ck_assert_int_eq(get_hints(), 0);
	hints->domain_attr->caps = FI_HMEM;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1021", "hints->domain_attr->caps");
}
END_TEST

START_TEST(getinfo_answers_what_it_answered_of_device_memory)
{
	struct fi_info *again;

	hints->caps = FI_RMA | FI_READ | FI_HMEM;
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_LOCAL;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_int_eq(fi_getinfo(V17, NULL, NULL, 0, info, &again), 0);
	ck_assert_uint_eq(again->caps, FI_RMA | FI_READ | FI_HMEM | COMM);
	ck_assert_uint_eq(again->tx_attr->caps, FI_RMA | FI_READ | FI_HMEM);
	ck_assert_uint_eq(again->rx_attr->caps, FI_HMEM);
	ck_assert_int_eq(again->domain_attr->mr_mode, FI_MR_HMEM | FI_MR_LOCAL);
	fi_freeinfo(again);
}
END_TEST

/* Its mode is fixed; an endpoint in it may do without the capability. */
START_TEST(getinfo_of_an_open_domain_has_device_memory_if_the_domain_has)
{
	struct mrf_domain domain = { .fid.fid.fclass = FI_CLASS_DOMAIN };

	domain.addr.in.sin_family = AF_INET;
	inet_pton(AF_INET, "10.99.1.2", &domain.addr.in.sin_addr);
	hints->domain_attr->domain = &domain.fid;
	hints->domain_attr->mr_mode = FI_MR_HMEM;
	hints->caps = FI_RMA | FI_HMEM;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1057", "domain was opened without it");
	domain.mr_mode = FI_MR_HMEM;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_HMEM);
	hints->caps = FI_RMA;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(info->caps & FI_HMEM, 0);
	ck_assert_int_eq(info->domain_attr->mr_mode, FI_MR_HMEM);
	hints->domain_attr->mr_mode = FI_MR_LOCAL;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1056", "runs with mr_mode 0x400");
}
END_TEST

/* --- addresses ------------------------------------------------------------- */

static void hint_addr(void **addr, size_t *len, const char *host, uint16_t port)
{
	struct sockaddr_in *in = calloc(1, sizeof(*in));

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	ck_assert_int_eq(inet_pton(AF_INET, host, &in->sin_addr), 1);
	free(*addr);
	*addr = in;
	*len = sizeof(*in);
}

START_TEST(getinfo_honours_the_address_format)
{
	hints->addr_format = FI_SOCKADDR_IN;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 3);
	hints->addr_format = FI_SOCKADDR_IN6;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 1);
	hints->addr_format = FI_SOCKADDR;
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 4);
	hints->addr_format = FI_ADDR_STR;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1009", "FI_ADDR_STR");
	hints->addr_format = FI_SOCKADDR_IN6;
	ndevs = 0;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
}
END_TEST

START_TEST(getinfo_node_and_service_are_the_destination)
{
	ck_assert_int_eq(get(V17, "10.99.1.77", "4711", 0, hints), 0);
	ck_assert_uint_eq(count_infos(), 3);
	ck_assert_str_eq(addr_of(info->dest_addr), "10.99.1.77:4711");
	ck_assert_uint_eq(info->dest_addrlen, sizeof(struct sockaddr_in));
	ck_assert_str_eq(addr_of(info->src_addr), "10.99.1.1:0");
	ck_assert_int_eq(get(V17, "fd00:99::77", "1", FI_NUMERICHOST, hints), 0);
	ck_assert_uint_eq(count_infos(), 1);
	ck_assert_str_eq(addr_of(info->dest_addr), "[fd00:99::77]:1");
}
END_TEST

START_TEST(getinfo_paths_into_the_destination_s_network_come_first)
{
	ck_assert_int_eq(get(V17, "172.16.79.1", NULL, 0, hints), 0);
	ck_assert_uint_eq(count_infos(), 3);
	ck_assert_str_eq(info->domain_attr->name, "rxe1");
	ck_assert_str_eq(info->next->domain_attr->name, "rxe0");
	ck_assert_int_eq(get(V17, "172.16.80.1", NULL, 0, hints), 0);
	ck_assert_str_eq(info->domain_attr->name, "rxe0");
}
END_TEST

/* No other device of this host reaches it. */
START_TEST(getinfo_the_device_that_has_the_destination_comes_first)
{
	static const char *const dest[] = { "10.99.1.9", "10.99.1.2", "10.99.1.1", "10.99.1.77" };
	static const char *const first[] = { "rxe1", "rxe0", "rxe0", "rxe0" };

	one_network = true;
	ck_assert_int_eq(get(V17, dest[_i], NULL, 0, hints), 0);
	one_network = false;
	ck_assert_uint_eq(count_infos(), 3);
	ck_assert_str_eq(info->domain_attr->name, first[_i]);
	ck_assert(_i != 0 || !strcmp(info->next->domain_attr->name, "rxe0"));
}
END_TEST

START_TEST(getinfo_a_service_alone_is_this_host)
{
	ck_assert_int_eq(get(V17, NULL, "4711", 0, hints), 0);
	ck_assert_uint_eq(count_infos(), 4);
	ck_assert_str_eq(addr_of(info->dest_addr), "10.99.1.1:4711");
	ck_assert_str_eq(addr_of(info->src_addr), "10.99.1.1:0");
}
END_TEST

START_TEST(getinfo_refuses_a_loopback_destination)
{
	ck_assert_int_eq(get(V17, "127.0.0.1", "4711", 0, hints), -FI_ENODATA);
	ck_has("MRF-E1054", "127.0.0.1:4711");
	ck_assert_int_eq(get(V17, "::1", "4711", 0, hints), -FI_ENODATA);
	ck_has("MRF-E1054", "loopback");
}
END_TEST

START_TEST(getinfo_source_names_the_local_address)
{
	ck_assert_int_eq(get(V17, "10.99.1.2", "4711", FI_SOURCE, hints), 0);
	ck_assert_uint_eq(count_infos(), 1);
	ck_assert_str_eq(addr_of(info->src_addr), "10.99.1.2:4711");
	ck_assert_ptr_null(info->dest_addr);
	ck_assert_int_eq(get(V17, NULL, "4711", FI_SOURCE, hints), 0);
	ck_assert_uint_eq(count_infos(), 4);
	ck_assert_str_eq(addr_of(info->src_addr), "10.99.1.1:4711");
	ck_assert_int_eq(get(V17, "10.99.1.3", NULL, FI_SOURCE, hints), -FI_ENODATA);
	ck_has("MRF-E1053", "10.99.1.3:0");
	ck_assert_uint_eq(unit_lines(text), 4);
}
END_TEST

/* Then the kernel is not asked about devices that cannot have the address. */
START_TEST(getinfo_source_that_nobody_has_is_named_at_level_warn)
{
	log_level("warn");
	ck_assert_int_eq(get(V17, "10.99.1.3", NULL, FI_SOURCE, hints), -FI_ENODATA);
	ck_assert_ptr_null(strstr(text, "MRF-E1040"));
	/* Each reason is said once in a process. */
	if (unit_forks())
		ck_has("MRF-E1053", "10.99.1.3:0");
	ck_assert_int_eq(get(V17, "10.99.1.2", NULL, FI_SOURCE, hints), 0);
	ck_assert_uint_eq(count_infos(), 1);
}
END_TEST

START_TEST(getinfo_hints_name_both_addresses)
{
	hint_addr(&hints->src_addr, &hints->src_addrlen, "10.99.1.2", 7);
	hint_addr(&hints->dest_addr, &hints->dest_addrlen, "10.99.1.9", 9);
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 1);
	ck_assert_str_eq(addr_of(info->src_addr), "10.99.1.2:7");
	ck_assert_str_eq(addr_of(info->dest_addr), "10.99.1.9:9");
	/*
	 * node and service come before hints->dest_addr, with FI_SOURCE before
	 * hints->src_addr.
	 */
	ck_assert_int_eq(get(V17, "10.99.1.8", "8", 0, hints), 0);
	ck_assert_str_eq(addr_of(info->dest_addr), "10.99.1.8:8");
	ck_assert_int_eq(get(V17, "10.99.1.1", "8", FI_SOURCE, hints), 0);
	ck_assert_str_eq(addr_of(info->src_addr), "10.99.1.1:8");
	ck_assert_str_eq(addr_of(info->dest_addr), "10.99.1.9:9");
	hint_addr(&hints->src_addr, &hints->src_addrlen, "0.0.0.0", 5);
	ck_assert_int_eq(get_hints(), 0);
	ck_assert_uint_eq(count_infos(), 3);
	ck_assert_str_eq(addr_of(info->src_addr), "10.99.1.1:5");
}
END_TEST

START_TEST(getinfo_checks_the_length_and_family_of_hinted_addresses)
{
	hint_addr(&hints->src_addr, &hints->src_addrlen, "10.99.1.2", 7);
	hints->src_addrlen = 0;
	ck_assert_int_eq(get_hints(), -FI_EINVAL);
	ck_has("MRF-E1007", "hints->src_addrlen=0");
	hints->src_addrlen = sizeof(struct sockaddr_in) - 1;
	ck_assert_int_eq(get_hints(), -FI_EINVAL);
	ck_has("MRF-E1007", "has 16 bytes");
	hints->src_addrlen = sizeof(struct sockaddr_in);
	((struct sockaddr *)hints->src_addr)->sa_family = AF_UNIX;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1008", "hints->src_addr");
}
END_TEST

START_TEST(getinfo_says_what_cannot_be_resolved)
{
	ck_assert_int_eq(get(V17, "localhost", NULL, FI_NUMERICHOST, hints), -FI_ENODATA);
	ck_has("MRF-E1005", "node=localhost service=(none) (FI_NUMERICHOST)");
	ck_assert_int_eq(get(V17, "10.99.1.1", "no-such-service", 0, hints), -FI_ENODATA);
	ck_has("MRF-E1005", "no-such-service");
	ck_assert_int_eq(get(V17, "10.99.1.1", "70000", 0, hints), -FI_ENODATA);
	ck_has("MRF-E1005", "service=70000: the service is a number, but not a port");
	ck_assert_int_eq(get(V17, NULL, "65536", FI_SOURCE, hints), -FI_ENODATA);
	hints->addr_format = FI_SOCKADDR_IN6;
	ck_assert_int_eq(get(V17, "10.99.1.1", NULL, 0, hints), -FI_ENODATA);
}
END_TEST

/* --- arguments, and machines that offer nothing ---------------------------- */

START_TEST(getinfo_accepts_versions_whose_rules_are_known)
{
	static const uint32_t known[] = { FI_VERSION(1, 18), FI_VERSION(1, 22), FI_VERSION(2, 0),
					  FI_VERSION(2, 2), FI_VERSION(2, 3) };

	ck_assert_int_eq(get(known[_i], NULL, NULL, 0, hints), 0);
	ck_assert_uint_eq(info->fabric_attr->api_version, known[_i]);
	/* They are rules; the interface stays what it is. */
	ck_assert_uint_eq(fi_version(), FI_VERSION(1, 17));
}
END_TEST

START_TEST(getinfo_refuses_a_newer_version)
{
	ck_assert_int_eq(get(FI_VERSION(2, 4), NULL, NULL, 0, hints), -FI_ENOSYS);
	ck_has("MRF-E1001", "version=2.4: the newest version that is known here is 2.3");
	ck_assert_int_eq(get(FI_VERSION(3, 0), NULL, NULL, 0, hints), -FI_ENOSYS);
	ck_assert_int_eq(get(0, NULL, NULL, 0, hints), 0);
	ck_assert_uint_eq(info->fabric_attr->api_version, 0);
}
END_TEST

START_TEST(getinfo_refuses_bad_arguments)
{
	unit_capture(&capture);
	ck_assert_int_eq(fi_getinfo(V17, NULL, NULL, 0, hints, NULL), -FI_EINVAL);
	text = unit_captured(&capture);
	ck_has("MRF-E1002", "info must not be NULL");
	ck_assert_int_eq(get(V17, NULL, NULL, FI_SOURCE, hints), -FI_EINVAL);
	ck_has("MRF-E1004", "FI_SOURCE");
	ck_assert_int_eq(get(V17, NULL, NULL, 1ULL << 50, hints), -FI_EBADFLAGS);
	ck_has("MRF-E1003", "flags=0x4000000000000");
	ck_assert_int_eq(get(V17, NULL, NULL, FI_NUMERICHOST, hints), 0);
}
END_TEST

START_TEST(getinfo_names_the_provider_even_without_a_device)
{
	ndevs = 0;
	hints->caps = FI_MSG;
	ck_assert_int_eq(get(V17, NULL, NULL, FI_PROV_ATTR_ONLY, hints), 0);
	ck_assert_uint_eq(count_infos(), 1);
	ck_assert_str_eq(info->fabric_attr->prov_name, "mrfab");
	ck_assert_uint_eq(info->fabric_attr->prov_version, mrf_info_prov_version());
	ck_assert_ptr_null(info->fabric_attr->name);
	ck_assert_uint_eq(info->caps, 0);
	ck_assert_ptr_null(info->src_addr);
}
END_TEST

/* What a program ends with is not hidden; what a program probes is said once for each reason. */
START_TEST(getinfo_warns_once_of_each_reason_why_nothing_matches)
{
	if (!unit_forks())
		return;
	log_level("warn");
	hints->caps = FI_COLLECTIVE;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1021", "hints->caps");
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_assert_str_eq(text, "");
	hints->caps = 0;
	hints->mode = 0;
	hints->tx_attr->op_flags = FI_MULTICAST;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1021", "hints->tx_attr->op_flags");
	hints->tx_attr->op_flags = 0;
	ck_assert_int_eq(get(V17, "no.such.host.invalid", NULL, FI_NUMERICHOST, hints),
			 -FI_ENODATA);
	ck_has("MRF-E1005", "no.such.host.invalid");
	log_level("info");
	hints->caps = FI_COLLECTIVE;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1021", "hints->caps");
}
END_TEST

/* One line for each path, or none. */
START_TEST(getinfo_warns_of_all_paths_when_one_of_their_reasons_is_new)
{
	if (!unit_forks())
		return;
	log_level("warn");
	hints->domain_attr->name = strdup("rxe7");
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_assert_uint_eq(unit_lines(text), 4);
	ck_has("rxe0 10.99.1.1", "rxe7");
	ck_has("rxe1 172.16.77.9", "rxe7");
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(getinfo_without_a_device_says_what_to_do)
{
	ndevs = 0;
	log_level("warn");
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1040", "modprobe rdma_rxe; rdma link add");
	ck_has("MRF-E1040", "mrfab_with_rxe");
	devs_err = -FI_ENOSYS;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_has("MRF-E1040", "RDMA is not loaded");
	devs_err = -FI_EIO;
	ck_assert_int_eq(get_hints(), -FI_EIO);
	ck_has("MRF-E1048", "netlink");
}
END_TEST

/* A program that probes asks for many things that are not there, again and again. */
START_TEST(getinfo_that_matches_nothing_is_said_once)
{
	const char *first;
	int i;

	if (!unit_forks())
		return;
	log_level("warn");
	for (i = 0; i < 2; i++) {
		first = i ? "" : "MRF-E10";
		unsetenv("FI_PROVIDER");
		mrf_env_reload();
		fi_freeinfo(hints);
		hints = fi_allocinfo();
		hints->caps = FI_MULTICAST;
		hints->ep_attr->type = FI_EP_DGRAM;
		hints->domain_attr->mr_mode = FI_MR_SCALABLE | FI_MR_LOCAL;
		hints->domain_attr->max_ep_tx_ctx = 1 << 20;
		ck_assert_int_eq(get_hints(), -FI_ENODATA);
		ck_assert_uint_eq(unit_lines(text), i ? 0 : 4);
		fi_freeinfo(hints);
		hints = fi_allocinfo();
		hints->domain_attr->name = strdup("rxe7");
		ck_assert_int_eq(get_hints(), -FI_ENODATA);
		ck_assert(!*first == !*text && strstr(text, first));
		ck_assert_int_eq(get(V17, "no.such.node.invalid", "1", FI_NUMERICHOST, NULL),
				 -FI_ENODATA);
		ck_assert(!*first == !*text && strstr(text, first));
		setenv("FI_PROVIDER", "verbs", 1);
		mrf_env_reload();
		ck_assert_int_eq(get(V17, NULL, NULL, 0, NULL), -FI_ENODATA);
		ck_assert(!*first == !*text && strstr(text, first));
	}
}
END_TEST

/* Nobody gets anything here, whatever is asked for: that is a warning. */
START_TEST(getinfo_with_only_unusable_devices_says_why)
{
	log_level("warn");
	port_state = IBV_PORT_DOWN;
	ck_assert_int_eq(get_hints(), -FI_ENODATA);
	ck_assert_uint_eq(unit_lines(text), 2);
	ck_has("MRF-E1045", "rxe0: its port is not active");
	ck_has("MRF-E1045", "rxe1: ");
}
END_TEST

/* --- copies ---------------------------------------------------------------- */

START_TEST(dupinfo_of_null_is_an_empty_info_with_all_attributes)
{
	struct fi_info *empty = fi_dupinfo(NULL);

	ck_assert_ptr_nonnull(empty);
	ck_assert_ptr_nonnull(empty->tx_attr);
	ck_assert_ptr_nonnull(empty->rx_attr);
	ck_assert_ptr_nonnull(empty->ep_attr);
	ck_assert_ptr_nonnull(empty->domain_attr);
	ck_assert_ptr_nonnull(empty->fabric_attr);
	ck_assert_ptr_null(empty->nic);
	ck_assert_uint_eq(empty->caps, 0);
	fi_freeinfo(empty);
	fi_freeinfo(NULL);
}
END_TEST

START_TEST(dupinfo_copies_deeply_and_one_only)
{
	struct fi_info *dup;

	ck_assert_int_eq(get(V17, "10.99.1.77", "1", 0, hints), 0);
	info->ep_attr->auth_key = key("ep-key!");
	info->ep_attr->auth_key_size = 8;
	info->domain_attr->auth_key = key("dom-key");
	info->domain_attr->auth_key_size = 8;
	dup = fi_dupinfo(info);
	ck_assert_ptr_nonnull(dup);
	ck_assert_ptr_null(dup->next);
	fi_freeinfo(info);
	info = NULL;
	ck_assert_str_eq(addr_of(dup->src_addr), "10.99.1.1:0");
	ck_assert_str_eq(addr_of(dup->dest_addr), "10.99.1.77:1");
	ck_assert_str_eq((char *)dup->ep_attr->auth_key, "ep-key!");
	ck_assert_str_eq((char *)dup->domain_attr->auth_key, "dom-key");
	ck_assert_str_eq(dup->domain_attr->name, "rxe0");
	ck_assert_str_eq(dup->fabric_attr->name, "10.99.1.0/24");
	ck_assert_str_eq(dup->fabric_attr->prov_name, "mrfab");
	ck_assert_str_eq(dup->nic->device_attr->driver, "rdma_rxe");
	ck_assert_uint_eq(dup->tx_attr->inject_size, MRF_LIMIT_INJECT);
	fi_freeinfo(dup);
}
END_TEST

/* What another library does that is given an fi_info of ours. */
START_TEST(a_nic_makes_a_copy_of_itself)
{
	struct fid_nic *copy = NULL, *again = NULL;

	ck_assert_int_eq(get_hints(), 0);
	ck_assert_int_eq(info->nic->bus_attr->bus_type, FI_BUS_UNKNOWN);
	ck_assert_int_eq(fi_control(&info->nic->fid, FI_DUP, &copy), 0);
	ck_assert_ptr_ne(copy, info->nic);
	ck_assert_ptr_ne(copy->bus_attr, info->nic->bus_attr);
	ck_assert_int_eq(fi_control(&copy->fid, FI_DUP, &again), 0);
	ck_assert_int_eq(fi_close(&copy->fid), 0);
	fi_freeinfo(info);
	info = NULL;
	ck_assert_str_eq(again->device_attr->name, "rxe0");
	ck_assert_str_eq(again->link_attr->address, "10.99.1.1");
	ck_assert_int_eq(again->bus_attr->bus_type, FI_BUS_UNKNOWN);
	ck_assert_uint_eq(again->fid.fclass, FI_CLASS_NIC);
	ck_assert_int_eq(fi_control(&again->fid, FI_DUP, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_control(&again->fid, FI_GETWAIT, &copy), -FI_ENOSYS);
	ck_assert_int_eq(fi_close(&again->fid), 0);
}
END_TEST

START_TEST(dupinfo_copies_an_info_with_holes)
{
	struct fi_info bare = { .caps = FI_RMA, .mode = 3, .addr_format = FI_SOCKADDR };
	struct fi_info *dup = fi_dupinfo(&bare);

	ck_assert_ptr_nonnull(dup);
	ck_assert_uint_eq(dup->caps, FI_RMA);
	ck_assert_uint_eq(dup->mode, 3);
	ck_assert_uint_eq(dup->addr_format, FI_SOCKADDR);
	ck_assert_ptr_null(dup->tx_attr);
	ck_assert_ptr_null(dup->domain_attr);
	fi_freeinfo(dup);
}
END_TEST

/* --- allocations that fail ------------------------------------------------- */

static long allocs_left = -1; /* -1: all succeed */

static bool alloc_fails(void)
{
	return allocs_left >= 0 && allocs_left-- == 0;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);

void *__wrap_calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
	return alloc_fails() ? NULL : __real_malloc(size);
}

char *__wrap_strdup(const char *s)
{
	return alloc_fails() ? NULL : __real_strdup(s);
}

static int lean_devs(struct mrf_vnl_dev **devs, size_t *count)
{
	*devs = __real_calloc(1, sizeof(**devs));
	set_dev(&(*devs)[0], "rxe1", "eth1");
	*count = 1;
	return 0;
}

static int lean_ifaddrs(struct mrf_vnl_ifaddr **addrs, size_t *count)
{
	*addrs = __real_calloc(1, sizeof(**addrs));
	set_addr(&(*addrs)[0], "eth1", "172.16.77.9", 21);
	*count = 1;
	return 0;
}

START_TEST(getinfo_survives_every_failing_allocation)
{
	struct fi_info *got = NULL;
	int ret = -FI_ENOMEM, tries;

	fake_vnl.devs = lean_devs;
	fake_vnl.ifaddrs = lean_ifaddrs;
	/* What the process has set is read once, and may fail: then the defaults stand. */
	mrf_env_str(MRF_PARAM_MONITOR);
	unit_capture(&capture);
	for (tries = 0; ret && tries < 100; tries++) {
		allocs_left = tries;
		ret = fi_getinfo(V17, NULL, NULL, 0, hints, &got);
		allocs_left = -1;
		if (ret && (ret != -FI_ENOMEM || got))
			break;
	}
	unit_captured(&capture);
	ck_assert_int_eq(ret, 0);
	ck_assert_int_gt(tries, 10);
	fi_freeinfo(got);
}
END_TEST

START_TEST(dupinfo_survives_every_failing_allocation)
{
	struct fi_info *dup = NULL;
	int tries;

	ck_assert_int_eq(get(V17, "10.99.1.77", "1", 0, hints), 0);
	for (tries = 0; !dup && tries < 100; tries++) {
		allocs_left = tries;
		dup = fi_dupinfo(info);
		allocs_left = -1;
	}
	ck_assert_ptr_nonnull(dup);
	ck_assert_int_gt(tries, 10);
	fi_freeinfo(dup);
}
END_TEST

/* --- suites ---------------------------------------------------------------- */

static TCase *new_tcase(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, setup, teardown);
	return tc;
}

static TCase *tcase_offer(void)
{
	TCase *tc = new_tcase("offer");

	tcase_add_test(tc, getinfo_without_hints_lists_every_usable_address);
	tcase_add_test(tc, getinfo_tells_its_names_and_versions);
	tcase_add_test(tc, getinfo_promises_the_contract_s_limits);
	tcase_add_test(tc, getinfo_caps_follow_what_is_asked);
	tcase_add_test(tc, getinfo_returns_attributes_as_hinted);
	tcase_add_test(tc, getinfo_takes_hints_without_any_attributes);
	tcase_add_test(tc, getinfo_answers_what_it_answered);
	tcase_add_test(tc, getinfo_keeps_the_mr_mode_bits_that_are_offered);
	tcase_add_test(tc, getinfo_answers_the_legacy_models_as_asked);
	tcase_add_test(tc, getinfo_refuses_basic_with_another_bit);
	tcase_add_test(tc, getinfo_refuses_mode_bits_before_1_5);
	return tc;
}

static TCase *tcase_hints(void)
{
	TCase *tc = new_tcase("hints");

	tcase_add_test(tc, getinfo_refuses_capabilities_that_are_not_offered);
	tcase_add_test(tc, getinfo_takes_any_traffic_class_for_a_wish);
	tcase_add_test(tc, getinfo_does_not_look_at_the_size_of_keys_in_hints);
	tcase_add_test(tc, getinfo_checks_every_endpoint_hint);
	tcase_add_test(tc, getinfo_grants_orders_of_messages_and_accesses_to_who_asks);
	tcase_add_test(tc, getinfo_checks_every_transmit_hint);
	tcase_add_test(tc, getinfo_checks_every_receive_hint);
	tcase_add_test(tc, getinfo_checks_every_domain_hint);
	tcase_add_test(tc, getinfo_answers_with_the_keys_that_it_was_hinted);
	tcase_add_test(tc, getinfo_ignores_fields_younger_than_the_version);
	tcase_add_test(tc, getinfo_says_all_that_is_wrong_at_once);
	tcase_add_test(tc, getinfo_refuses_to_inherit_from_a_handle);
	tcase_add_test(tc, getinfo_lists_name_or_leave_out);
	tcase_add_test(tc, getinfo_honours_the_provider_name);
	tcase_add_test(tc, getinfo_honours_the_environment);
	tcase_add_test(tc, getinfo_honours_domain_and_fabric_names);
	tcase_add_test(tc, getinfo_honours_an_open_fabric);
	tcase_add_test(tc, getinfo_honours_an_open_domain);
	return tc;
}

static TCase *tcase_addresses(void)
{
	TCase *tc = new_tcase("addresses");

	tcase_add_test(tc, getinfo_honours_the_address_format);
	tcase_add_test(tc, getinfo_node_and_service_are_the_destination);
	tcase_add_test(tc, getinfo_paths_into_the_destination_s_network_come_first);
	tcase_add_loop_test(tc, getinfo_the_device_that_has_the_destination_comes_first, 0, 4);
	tcase_add_test(tc, getinfo_a_service_alone_is_this_host);
	tcase_add_test(tc, getinfo_refuses_a_loopback_destination);
	tcase_add_test(tc, getinfo_source_names_the_local_address);
	tcase_add_test(tc, getinfo_source_that_nobody_has_is_named_at_level_warn);
	tcase_add_test(tc, getinfo_hints_name_both_addresses);
	tcase_add_test(tc, getinfo_checks_the_length_and_family_of_hinted_addresses);
	tcase_add_test(tc, getinfo_says_what_cannot_be_resolved);
	return tc;
}

static TCase *tcase_arguments(void)
{
	TCase *tc = new_tcase("arguments");

	tcase_add_loop_test(tc, getinfo_accepts_versions_whose_rules_are_known, 0, 5);
	tcase_add_test(tc, getinfo_refuses_a_newer_version);
	tcase_add_test(tc, getinfo_refuses_bad_arguments);
	tcase_add_test(tc, getinfo_names_the_provider_even_without_a_device);
	tcase_add_test(tc, getinfo_warns_once_of_each_reason_why_nothing_matches);
	tcase_add_test(tc, getinfo_warns_of_all_paths_when_one_of_their_reasons_is_new);
	tcase_add_test(tc, getinfo_without_a_device_says_what_to_do);
	tcase_add_test(tc, getinfo_with_only_unusable_devices_says_why);
	tcase_add_test(tc, getinfo_that_matches_nothing_is_said_once);
	tcase_add_test(tc, getinfo_survives_every_failing_allocation);
	tcase_add_test(tc, dupinfo_of_null_is_an_empty_info_with_all_attributes);
	tcase_add_test(tc, dupinfo_copies_deeply_and_one_only);
	tcase_add_test(tc, a_nic_makes_a_copy_of_itself);
	tcase_add_test(tc, dupinfo_copies_an_info_with_holes);
	tcase_add_test(tc, dupinfo_survives_every_failing_allocation);
	return tc;
}

static TCase *tcase_hmem(void)
{
	TCase *tc = new_tcase("hmem");

	tcase_set_timeout(tc, 60); /* under valgrind */
	tcase_add_test(tc, getinfo_offers_device_memory_to_those_who_offer_its_bit);
	tcase_add_test(tc, getinfo_gives_device_memory_to_those_only_who_ask_for_it);
	tcase_add_test(tc, getinfo_refuses_device_memory_without_bits);
	tcase_add_test(tc, getinfo_takes_device_memory_of_either_side_and_of_both);
	tcase_add_test(tc, getinfo_refuses_device_memory_of_a_side_that_the_whole_lacks);
	tcase_add_test(tc, getinfo_answers_what_it_answered_of_device_memory);
	tcase_add_test(tc, getinfo_of_an_open_domain_has_device_memory_if_the_domain_has);
	return tc;
}

UNIT_MAIN("getinfo", tcase_offer, tcase_hints, tcase_hmem, tcase_addresses, tcase_arguments)
