/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/obj.h"
#include "unit.h"
#include "base/compiler.h"
#include "base/names.h"
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

static char buf[8192];

static const char *bits(enum fi_type type, uint64_t value)
{
	return fi_tostr_r(buf, sizeof(buf), &value, type);
}

static const char *number(enum fi_type type, uint32_t value)
{
	return fi_tostr_r(buf, sizeof(buf), &value, type);
}

/* --- constants -------------------------------------------------------------------- */

START_TEST(tostr_of_bits_lists_their_names)
{
	ck_assert_str_eq(bits(FI_TYPE_CAPS, FI_MSG | FI_RMA), "FI_MSG, FI_RMA");
	ck_assert_str_eq(bits(FI_TYPE_CAPS, FI_HMEM | FI_READ), "FI_READ, FI_HMEM");
	ck_assert_str_eq(bits(FI_TYPE_CAPS, 0), "");
	ck_assert_str_eq(bits(FI_TYPE_OP_FLAGS, FI_INJECT | FI_DELIVERY_COMPLETE),
			 "FI_INJECT, FI_DELIVERY_COMPLETE");
	ck_assert_str_eq(bits(FI_TYPE_OP_FLAGS, FI_COMMIT_COMPLETE), "FI_COMMIT_COMPLETE");
	ck_assert_str_eq(bits(FI_TYPE_MODE, FI_CONTEXT | FI_CONTEXT2), "FI_CONTEXT, FI_CONTEXT2");
	ck_assert_str_eq(bits(FI_TYPE_MSG_ORDER, FI_ORDER_RAW | FI_ORDER_RMA_WAW),
			 "FI_ORDER_RAW, FI_ORDER_RMA_WAW");
	ck_assert_str_eq(bits(FI_TYPE_CQ_EVENT_FLAGS, FI_RMA | FI_WRITE), "FI_RMA, FI_WRITE");
	ck_assert_str_eq(number(FI_TYPE_MR_MODE, FI_MR_BASIC), "FI_MR_BASIC");
	ck_assert_str_eq(number(FI_TYPE_MR_MODE, FI_MR_SCALABLE), "FI_MR_SCALABLE");
	ck_assert_str_eq(number(FI_TYPE_MR_MODE, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY),
			 "FI_MR_VIRT_ADDR, FI_MR_PROV_KEY");
	ck_assert_str_eq(number(FI_TYPE_MR_MODE, FI_MR_COLLECTIVE), "FI_MR_COLLECTIVE");
}
END_TEST

START_TEST(tostr_of_bits_without_a_name_shows_them_in_hex)
{
	ck_assert_str_eq(bits(FI_TYPE_CAPS, 1ull << 63), "0x8000000000000000");
	ck_assert_str_eq(bits(FI_TYPE_CAPS, FI_MSG | 1), "FI_MSG, 0x1");
	ck_assert_str_eq(number(FI_TYPE_MR_MODE, 1u << 31), "0x80000000");
}
END_TEST

/* An int is read as an int: what follows it in memory does not count. */
START_TEST(tostr_of_mr_mode_reads_no_more_than_an_int)
{
	int mode[2] = { FI_MR_LOCAL, -1 };

	ck_assert_str_eq(fi_tostr_r(buf, sizeof(buf), mode, FI_TYPE_MR_MODE), "FI_MR_LOCAL");
	ck_assert_str_eq(fi_tostr_r(buf, sizeof(buf), mode, FI_TYPE_EP_TYPE), "FI_EP_SOCK_STREAM");
}
END_TEST

START_TEST(tostr_of_enums_names_first_and_last_and_unknown)
{
	static const struct {
		enum fi_type type;
		uint32_t first, last;
		const char *first_name, *last_name;
	} rows[] = {
		{ FI_TYPE_EP_TYPE, 0, 5, "FI_EP_UNSPEC", "FI_EP_SOCK_DGRAM" },
		{ FI_TYPE_ADDR_FORMAT, 0, 15, "FI_FORMAT_UNSPEC", "FI_ADDR_CXI" },
		{ FI_TYPE_THREADING, 0, 5, "FI_THREAD_UNSPEC", "FI_THREAD_ENDPOINT" },
		{ FI_TYPE_PROGRESS, 0, 2, "FI_PROGRESS_UNSPEC", "FI_PROGRESS_MANUAL" },
		{ FI_TYPE_PROTOCOL, 0, 25, "FI_PROTO_UNSPEC", "FI_PROTO_XNET" },
		{ FI_TYPE_AV_TYPE, 0, 2, "FI_AV_UNSPEC", "FI_AV_TABLE" },
		{ FI_TYPE_ATOMIC_TYPE, 0, 15, "FI_INT8", "FI_UINT128" },
		{ FI_TYPE_ATOMIC_OP, 0, 18, "FI_MIN", "FI_MSWAP" },
		{ FI_TYPE_EQ_EVENT, 0, 6, "FI_NOTIFY", "FI_JOIN_COMPLETE" },
		{ FI_TYPE_OP_TYPE, 0, 10, "FI_OP_RECV", "FI_OP_CNTR_ADD" },
		{ FI_TYPE_COLLECTIVE_OP, 0, 8, "FI_BARRIER", "FI_GATHER" },
		{ FI_TYPE_HMEM_IFACE, 0, 5, "FI_HMEM_SYSTEM", "FI_HMEM_SYNAPSEAI" },
		{ FI_TYPE_CQ_FORMAT, 0, 4, "FI_CQ_FORMAT_UNSPEC", "FI_CQ_FORMAT_TAGGED" },
		{ FI_TYPE_LOG_LEVEL, 0, 3, "warn", "debug" },
		{ FI_TYPE_LOG_SUBSYS, 0, 9, "core", "cntr" },
	};
	uint32_t v;
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(rows); i++) {
		ck_assert_str_eq(number(rows[i].type, rows[i].first), rows[i].first_name);
		ck_assert_str_eq(number(rows[i].type, rows[i].last), rows[i].last_name);
		for (v = rows[i].first; v <= rows[i].last; v++)
			ck_assert_str_ne(number(rows[i].type, v), "Unknown");
		ck_assert_str_eq(number(rows[i].type, rows[i].last + 1), "Unknown");
	}
	ck_assert_str_eq(number(FI_TYPE_EP_TYPE, FI_PROV_SPECIFIC), "Unknown");
	ck_assert_str_eq(number(FI_TYPE_PROTOCOL, FI_PROV_SPECIFIC | 7), "Provider specific");
	ck_assert_str_eq(number(FI_TYPE_ADDR_FORMAT, FI_PROV_SPECIFIC), "Provider specific");
	ck_assert_str_eq(number(FI_TYPE_ATOMIC_OP, FI_NOOP), "FI_NOOP");
	ck_assert_str_eq(number(FI_TYPE_ATOMIC_TYPE, FI_VOID), "FI_VOID");
}
END_TEST

START_TEST(tostr_of_an_object_says_class_and_address_and_logs_nothing)
{
	static struct fi_ops ops = { .size = sizeof(ops), .tostr = mrf_obj_tostr };
	struct fid fid = { .fclass = FI_CLASS_CQ, .ops = &ops };
	struct unit_capture cap;
	char want[64];

	snprintf(want, sizeof(want), "FI_CLASS_CQ %p", (void *)&fid);
	unit_capture(&cap);
	ck_assert_str_eq(fi_tostr(&fid, FI_TYPE_FID), want);
	ck_assert_str_eq(unit_captured(&cap), "");
}
END_TEST

START_TEST(tostr_of_version_starts_with_the_api_level)
{
	ck_assert_int_eq(strncmp(fi_tostr("", FI_TYPE_VERSION), "1.17.", 5), 0);
	ck_assert_ptr_nonnull(strstr(fi_tostr(NULL, FI_TYPE_VERSION), "libmrfab"));
}
END_TEST

/* --- structures ------------------------------------------------------------------- */

static const char whole_info[] = "fi_info:\n"
				 "    caps: [ FI_RMA, FI_READ ]\n"
				 "    mode: [ FI_CONTEXT ]\n"
				 "    addr_format: FI_SOCKADDR_IN\n"
				 "    src_addrlen: 16\n"
				 "    dest_addrlen: 0\n"
				 "    src_addr: fi_sockaddr_in://10.99.1.1:4711\n"
				 "    dest_addr: (null)\n"
				 "    handle: (nil)\n"
				 "    fi_tx_attr:\n"
				 "        caps: [ FI_RMA ]\n"
				 "        mode: [  ]\n"
				 "        op_flags: [ FI_COMPLETION ]\n"
				 "        msg_order: [ FI_ORDER_RAR, FI_ORDER_RAW ]\n"
				 "        comp_order: [ FI_ORDER_STRICT, FI_ORDER_DATA ]\n"
				 "        inject_size: 256\n"
				 "        size: 128\n"
				 "        iov_limit: 8\n"
				 "        rma_iov_limit: 7\n"
				 "        tclass: 0x202\n"
				 "    fi_rx_attr:\n"
				 "        caps: [ FI_REMOTE_READ ]\n"
				 "        mode: [  ]\n"
				 "        op_flags: [  ]\n"
				 "        msg_order: [  ]\n"
				 "        comp_order: [ FI_ORDER_NONE ]\n"
				 "        total_buffered_recv: 11\n"
				 "        size: 12\n"
				 "        iov_limit: 13\n"
				 "    fi_ep_attr:\n"
				 "        type: FI_EP_RDM\n"
				 "        protocol: Provider specific\n"
				 "        protocol_version: 1\n"
				 "        max_msg_size: 1073741824\n"
				 "        msg_prefix_size: 2\n"
				 "        max_order_raw_size: 3\n"
				 "        max_order_war_size: 4\n"
				 "        max_order_waw_size: 5\n"
				 "        mem_tag_format: 0x0000000000000123\n"
				 "        tx_ctx_cnt: 6\n"
				 "        rx_ctx_cnt: 7\n"
				 "        auth_key_size: 0\n"
				 "    fi_domain_attr:\n"
				 "        domain: 0x0\n"
				 "        name: rxe0\n"
				 "        threading: FI_THREAD_SAFE\n"
				 "        control_progress: FI_PROGRESS_AUTO\n"
				 "        data_progress: FI_PROGRESS_MANUAL\n"
				 "        resource_mgmt: FI_RM_ENABLED\n"
				 "        av_type: FI_AV_TABLE\n"
				 "        mr_mode: [ FI_MR_LOCAL, FI_MR_ALLOCATED ]\n"
				 "        mr_key_size: 8\n"
				 "        cq_data_size: 4\n"
				 "        cq_cnt: 1\n"
				 "        ep_cnt: 2\n"
				 "        tx_ctx_cnt: 3\n"
				 "        rx_ctx_cnt: 4\n"
				 "        max_ep_tx_ctx: 5\n"
				 "        max_ep_rx_ctx: 6\n"
				 "        max_ep_stx_ctx: 7\n"
				 "        max_ep_srx_ctx: 8\n"
				 "        cntr_cnt: 9\n"
				 "        mr_iov_limit: 16\n"
				 "        caps: [ FI_LOCAL_COMM ]\n"
				 "        mode: [  ]\n"
				 "        auth_key_size: 0\n"
				 "        max_err_data: 256\n"
				 "        mr_cnt: 524287\n"
				 "        tclass: 0x0\n"
				 "    fi_fabric_attr:\n"
				 "        name: 10.99.1.0/24\n"
				 "        prov_name: mrfab\n"
				 "        prov_version: 1.2\n"
				 "        api_version: 1.17\n"
				 "    nic:\n"
				 "        fi_device_attr:\n"
				 "            name: rxe0\n"
				 "            device_id: (null)\n"
				 "            device_version: v2\n"
				 "            vendor_id: ven\n"
				 "            driver: rdma_rxe\n"
				 "            firmware: fw\n"
				 "        fi_bus_attr:\n"
				 "            bus_type: FI_BUS_PCI\n"
				 "            fi_pci_attr:\n"
				 "                domain_id: 1\n"
				 "                bus_id: 2\n"
				 "                device_id: 3\n"
				 "                function_id: 4\n"
				 "        fi_link_attr:\n"
				 "            address: 10.99.1.1\n"
				 "            mtu: 4096\n"
				 "            speed: 10\n"
				 "            state: FI_LINK_UP\n"
				 "            network_type: Ethernet\n";

static struct fi_device_attr device = { .name = (char *)"rxe0",
					.device_version = (char *)"v2",
					.vendor_id = (char *)"ven",
					.driver = (char *)"rdma_rxe",
					.firmware = (char *)"fw" };
static struct fi_bus_attr bus = { .bus_type = FI_BUS_PCI, .attr.pci = { 1, 2, 3, 4 } };
static struct fi_link_attr link_attr = { .address = (char *)"10.99.1.1",
					 .mtu = 4096,
					 .speed = 10,
					 .state = FI_LINK_UP,
					 .network_type = (char *)"Ethernet" };
static struct fid_nic nic = { .fid.fclass = FI_CLASS_NIC,
			      .device_attr = &device,
			      .bus_attr = &bus,
			      .link_attr = &link_attr };
static struct sockaddr_in src = { .sin_family = AF_INET };
static struct fi_tx_attr tx = { .caps = FI_RMA,
				.op_flags = FI_COMPLETION,
				.msg_order = FI_ORDER_RAR | FI_ORDER_RAW,
				.comp_order = FI_ORDER_STRICT | FI_ORDER_DATA,
				.inject_size = 256,
				.size = 128,
				.iov_limit = 8,
				.rma_iov_limit = 7,
				.tclass = FI_TC_DEDICATED_ACCESS };
static struct fi_rx_attr rx = {
	.caps = FI_REMOTE_READ, .total_buffered_recv = 11, .size = 12, .iov_limit = 13
};
static struct fi_ep_attr ep = { .type = FI_EP_RDM,
				.protocol = FI_PROV_SPECIFIC | 0x6d7266,
				.protocol_version = 1,
				.max_msg_size = 1 << 30,
				.msg_prefix_size = 2,
				.max_order_raw_size = 3,
				.max_order_war_size = 4,
				.max_order_waw_size = 5,
				.mem_tag_format = 0x123,
				.tx_ctx_cnt = 6,
				.rx_ctx_cnt = 7 };
static struct fi_domain_attr domain = { .name = (char *)"rxe0",
					.threading = FI_THREAD_SAFE,
					.control_progress = FI_PROGRESS_AUTO,
					.data_progress = FI_PROGRESS_MANUAL,
					.resource_mgmt = FI_RM_ENABLED,
					.av_type = FI_AV_TABLE,
					.mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED,
					.mr_key_size = 8,
					.cq_data_size = 4,
					.cq_cnt = 1,
					.ep_cnt = 2,
					.tx_ctx_cnt = 3,
					.rx_ctx_cnt = 4,
					.max_ep_tx_ctx = 5,
					.max_ep_rx_ctx = 6,
					.max_ep_stx_ctx = 7,
					.max_ep_srx_ctx = 8,
					.cntr_cnt = 9,
					.mr_iov_limit = 16,
					.caps = FI_LOCAL_COMM,
					.max_err_data = 256,
					.mr_cnt = 524287 };
static struct fi_fabric_attr fabric = { .name = (char *)"10.99.1.0/24",
					.prov_name = (char *)"mrfab",
					.prov_version = FI_VERSION(1, 2),
					.api_version = FI_VERSION(1, 17) };
static struct fi_info info = { .caps = FI_RMA | FI_READ,
			       .mode = FI_CONTEXT,
			       .addr_format = FI_SOCKADDR_IN,
			       .src_addrlen = sizeof(src),
			       .src_addr = &src,
			       .tx_attr = &tx,
			       .rx_attr = &rx,
			       .ep_attr = &ep,
			       .domain_attr = &domain,
			       .fabric_attr = &fabric,
			       .nic = &nic };

static void setup(void)
{
	src.sin_port = htons(4711);
	inet_pton(AF_INET, "10.99.1.1", &src.sin_addr);
}

START_TEST(tostr_of_an_info_shows_every_field)
{
	ck_assert_str_eq(fi_tostr(&info, FI_TYPE_INFO), whole_info);
	ck_assert_ptr_eq(fi_tostr_r(buf, sizeof(buf), &info, FI_TYPE_INFO), buf);
	ck_assert_str_eq(buf, whole_info);
}
END_TEST

START_TEST(tostr_of_an_empty_info_follows_no_pointer)
{
	struct fi_info empty;

	memset(&empty, 0, sizeof(empty));
	ck_assert_str_eq(fi_tostr(&empty, FI_TYPE_INFO), "fi_info:\n"
							 "    caps: [  ]\n"
							 "    mode: [  ]\n"
							 "    addr_format: FI_FORMAT_UNSPEC\n"
							 "    src_addrlen: 0\n"
							 "    dest_addrlen: 0\n"
							 "    src_addr: (null)\n"
							 "    dest_addr: (null)\n"
							 "    handle: (nil)\n"
							 "    fi_tx_attr: (null)\n"
							 "    fi_rx_attr: (null)\n"
							 "    fi_ep_attr: (null)\n"
							 "    fi_domain_attr: (null)\n"
							 "    fi_fabric_attr: (null)\n"
							 "    nic: (nil)\n");
}
END_TEST

START_TEST(tostr_of_attributes_alone_is_not_indented)
{
	ck_assert_str_eq(fi_tostr(&fabric, FI_TYPE_FABRIC_ATTR), "fi_fabric_attr:\n"
								 "    name: 10.99.1.0/24\n"
								 "    prov_name: mrfab\n"
								 "    prov_version: 1.2\n"
								 "    api_version: 1.17\n");
	ck_assert_int_eq(strncmp(fi_tostr(&tx, FI_TYPE_TX_ATTR), "fi_tx_attr:\n    c", 17), 0);
	ck_assert_int_eq(strncmp(fi_tostr(&rx, FI_TYPE_RX_ATTR), "fi_rx_attr:\n    c", 17), 0);
	ck_assert_int_eq(strncmp(fi_tostr(&ep, FI_TYPE_EP_ATTR), "fi_ep_attr:\n    t", 17), 0);
	ck_assert_int_eq(
		strncmp(fi_tostr(&domain, FI_TYPE_DOMAIN_ATTR), "fi_domain_attr:\n    d", 21), 0);
}
END_TEST

static const char *src_addr_of(uint32_t format, void *addr, size_t len)
{
	struct fi_info with = { .addr_format = format, .src_addr = addr, .src_addrlen = len };
	char *at, *end;

	at = strstr(fi_tostr(&with, FI_TYPE_INFO), "src_addr: ") + 10;
	end = strchr(at, '\n');
	*end = '\0';
	return at;
}

START_TEST(tostr_of_an_address_never_reads_past_its_length)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	unsigned char *exact = malloc(3);

	inet_pton(AF_INET6, "fd00:99::1", &in6.sin6_addr);
	ck_assert_str_eq(src_addr_of(FI_SOCKADDR_IN6, &in6, sizeof(in6)),
			 "fi_sockaddr_in6://[fd00:99::1]:9");
	ck_assert_str_eq(src_addr_of(FI_SOCKADDR, &in6, sizeof(in6)),
			 "fi_sockaddr_in6://[fd00:99::1]:9");
	ck_assert_ptr_nonnull(exact);
	memcpy(exact, &in6, 3);
	ck_assert_int_eq(strncmp(src_addr_of(FI_SOCKADDR_IN6, exact, 3), "0x", 2), 0);
	memset(exact, 0xab, 3);
	ck_assert_str_eq(src_addr_of(FI_SOCKADDR, exact, 1), "0xab");
	ck_assert_str_eq(src_addr_of(FI_ADDR_PSMX, exact, 3), "0xababab");
	memcpy(exact, "str", 3);
	ck_assert_str_eq(src_addr_of(FI_ADDR_STR, exact, 3), "str");
	free(exact);
}
END_TEST

/* --- objects ---------------------------------------------------------------------- */

static int says_its_name(const struct fid *fid, char *text, size_t len)
{
	(void)fid;
	snprintf(text, len, "it is I");
	return 0;
}

static int says_nothing(const struct fid *fid, char *text, size_t len)
{
	(void)fid;
	(void)text;
	(void)len;
	return -FI_ENOSYS;
}

START_TEST(tostr_of_a_fid_asks_it_or_names_its_class)
{
	struct fi_ops ops = { .size = sizeof(ops), .tostr = says_its_name };
	struct fid fid = { .fclass = FI_CLASS_MR, .ops = &ops };
	char want[64];

	ck_assert_str_eq(fi_tostr(&fid, FI_TYPE_FID), "it is I");
	snprintf(want, sizeof(want), "FI_CLASS_MR %p", (void *)&fid);
	ops.tostr = says_nothing;
	ck_assert_str_eq(fi_tostr(&fid, FI_TYPE_FID), want);
	ops.tostr = NULL;
	ck_assert_str_eq(fi_tostr(&fid, FI_TYPE_FID), want);
	/* A table that is older than the entry. */
	ops.tostr = says_its_name;
	ops.size = offsetof(struct fi_ops, tostr);
	ck_assert_str_eq(fi_tostr(&fid, FI_TYPE_FID), want);
	fid.ops = NULL;
	ck_assert_str_eq(fi_tostr(&fid, FI_TYPE_FID), want);
	ck_assert_int_eq(strncmp(fi_tostr(&nic.fid, FI_TYPE_FID),
				 "nic:\n    fi_device_attr:\n        name: rxe0\n", 43),
			 0);
}
END_TEST

/* --- limits ----------------------------------------------------------------------- */

START_TEST(tostr_of_nothing_is_nothing)
{
	uint64_t caps = FI_MSG;
	int type;

	for (type = FI_TYPE_INFO; type <= FI_TYPE_LOG_SUBSYS; type++) {
		if (type != FI_TYPE_VERSION)
			ck_assert_ptr_null(fi_tostr(NULL, (enum fi_type)type));
	}
	ck_assert_ptr_null(fi_tostr_r(NULL, 100, &caps, FI_TYPE_CAPS));
	memset(buf, 'x', 2);
	ck_assert_ptr_null(fi_tostr_r(buf, 0, &caps, FI_TYPE_CAPS));
	ck_assert_int_eq(buf[0], 'x');
	ck_assert_str_eq(fi_tostr(&caps, (enum fi_type)(FI_TYPE_LOG_SUBSYS + 1)), "Unknown type");
	ck_assert_str_eq(fi_tostr(&caps, (enum fi_type) - 1), "Unknown type");
}
END_TEST

/* Whatever the room, the text is its beginning, and not a byte more is written. */
static void check_cut(const void *data, enum fi_type type)
{
	char *whole = strdup(fi_tostr(data, type)), *exact;
	size_t len;

	for (len = 1; len <= strlen(whole) + 2; len++) {
		exact = malloc(len); /* so that valgrind and ASan watch its end */
		ck_assert_ptr_nonnull(exact);
		memset(exact, 'x', len);
		ck_assert_ptr_eq(fi_tostr_r(exact, len, data, type), exact);
		ck_assert_ptr_nonnull(memchr(exact, '\0', len));
		ck_assert_uint_eq(strlen(exact), mrf_min(len - 1, strlen(whole)));
		ck_assert_int_eq(strncmp(exact, whole, strlen(exact)), 0);
		free(exact);
	}
	free(whole);
}

START_TEST(tostr_is_cut_to_the_buffer_and_terminated)
{
	uint64_t caps = FI_MSG | FI_RMA | 1;
	uint32_t type = FI_EP_RDM;

	check_cut(&caps, FI_TYPE_CAPS);
	check_cut(&type, FI_TYPE_EP_TYPE);
	check_cut(&tx, FI_TYPE_TX_ATTR);
	check_cut(&nic, FI_TYPE_FID);
	check_cut(&info, FI_TYPE_INFO);
	check_cut(NULL, FI_TYPE_VERSION);
}
END_TEST

static void *tostr_elsewhere(void *arg)
{
	uint64_t caps = FI_RMA;

	return fi_tostr(&caps, FI_TYPE_CAPS) == arg ? arg : NULL;
}

START_TEST(tostr_buffers_of_threads_are_their_own)
{
	uint64_t caps = FI_MSG;
	char *mine = fi_tostr(&caps, FI_TYPE_CAPS);
	pthread_t thread;
	void *same;

	ck_assert_int_eq(pthread_create(&thread, NULL, tostr_elsewhere, mine), 0);
	pthread_join(thread, &same);
	ck_assert_ptr_null(same);
	ck_assert_str_eq(mine, "FI_MSG");
}
END_TEST

static TCase *tcase_constants(void)
{
	TCase *tcase = tcase_create("constants");

	tcase_add_test(tcase, tostr_of_bits_lists_their_names);
	tcase_add_test(tcase, tostr_of_bits_without_a_name_shows_them_in_hex);
	tcase_add_test(tcase, tostr_of_mr_mode_reads_no_more_than_an_int);
	tcase_add_test(tcase, tostr_of_enums_names_first_and_last_and_unknown);
	tcase_add_test(tcase, tostr_of_an_object_says_class_and_address_and_logs_nothing);
	tcase_add_test(tcase, tostr_of_version_starts_with_the_api_level);
	return tcase;
}

static TCase *tcase_structures(void)
{
	TCase *tcase = tcase_create("structures");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, tostr_of_an_info_shows_every_field);
	tcase_add_test(tcase, tostr_of_an_empty_info_follows_no_pointer);
	tcase_add_test(tcase, tostr_of_attributes_alone_is_not_indented);
	tcase_add_test(tcase, tostr_of_an_address_never_reads_past_its_length);
	tcase_add_test(tcase, tostr_of_a_fid_asks_it_or_names_its_class);
	return tcase;
}

static TCase *tcase_limits(void)
{
	TCase *tcase = tcase_create("limits");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, tostr_of_nothing_is_nothing);
	tcase_add_test(tcase, tostr_is_cut_to_the_buffer_and_terminated);
	tcase_add_test(tcase, tostr_buffers_of_threads_are_their_own);
	return tcase;
}

UNIT_MAIN("tostr", tcase_constants, tcase_structures, tcase_limits)
