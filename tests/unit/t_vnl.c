/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <infiniband/verbs.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>
#include "../fake/fake_vnl.h"
#include "unit.h"
#include "base/compiler.h"
#include "verbs/vnl_kept.h"

/* --- what the kernel is made to say ---------------------------------------- */

static struct {
	struct mrf_vnl_dev devs[4];
	size_t ndevs;
	struct mrf_vnl_ifaddr addrs[8];
	size_t naddrs;
	int devs_err, addrs_err;
	size_t asked_only; /* interfaces; SIZE_MAX: any */
	uint32_t asked_first;
} world;

static int copy_out(void **out, size_t *count, const void *from, size_t n, size_t size)
{
	*out = n ? malloc(n * size) : NULL;
	if (n)
		memcpy(*out, from, n * size);
	*count = n;
	return 0;
}

static int fake_devs(struct mrf_vnl_dev **devs, size_t *count)
{
	const struct mrf_vnl_netdevs *only = fake_vnl.only;
	void *out;

	world.asked_only = only ? only->count : SIZE_MAX;
	world.asked_first = world.asked_only - 1 < SIZE_MAX - 1 ? only->ifindex[0] : 0;

	if (world.devs_err)
		return world.devs_err;
	copy_out(&out, count, world.devs, world.ndevs, sizeof(**devs));
	*devs = out;
	return 0;
}

static int fake_ifaddrs(struct mrf_vnl_ifaddr **addrs, size_t *count)
{
	void *out;

	if (world.addrs_err)
		return world.addrs_err;
	copy_out(&out, count, world.addrs, world.naddrs, sizeof(**addrs));
	*addrs = out;
	return 0;
}

static void setup(void)
{
	memset(&world, 0, sizeof(world));
	fake_vnl.devs = fake_devs;
	fake_vnl.ifaddrs = fake_ifaddrs;
}

static struct mrf_vnl_dev *add_dev(const char *name, const char *netdev)
{
	struct mrf_vnl_dev *dev = &world.devs[world.ndevs++];

	snprintf(dev->name, sizeof(dev->name), "%s", name);
	snprintf(dev->netdev, sizeof(dev->netdev), "%s", netdev);
	dev->has_driver = true;
	dev->driver = RDMA_DRIVER_RXE;
	dev->port_state = IBV_PORT_ACTIVE;
	return dev;
}

static struct mrf_vnl_ifaddr *add_addr(const char *netdev, const char *text, unsigned prefix)
{
	struct mrf_vnl_ifaddr *addr = &world.addrs[world.naddrs++];

	snprintf(addr->netdev, sizeof(addr->netdev), "%s", netdev);
	addr->prefix = prefix;
	addr->addr.sa.sa_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (addr->addr.sa.sa_family == AF_INET)
		ck_assert_int_eq(inet_pton(AF_INET, text, &addr->addr.in.sin_addr), 1);
	else
		ck_assert_int_eq(inet_pton(AF_INET6, text, &addr->addr.in6.sin6_addr), 1);
	return addr;
}

/* The only path there is. */
static enum mrf_vnl_state only_state(void)
{
	struct mrf_vnl_path *paths;
	enum mrf_vnl_state state;
	size_t count;

	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, true, NULL), 0);
	ck_assert_uint_eq(count, 1);
	state = paths[0].state;
	free(paths);
	return state;
}

/* --- paths ----------------------------------------------------------------- */

START_TEST(vnl_gives_one_path_for_each_address_of_a_device)
{
	struct mrf_vnl_path *paths;
	size_t count;

	add_dev("rxe0", "dummy0");
	add_addr("lo", "127.0.0.1", 8)->loopback = true;
	add_addr("dummy0", "10.99.1.1", 24);
	add_addr("eth0", "192.0.2.7", 24);
	add_addr("dummy0", "10.99.1.2", 32);
	add_addr("dummy0", "fd00:99::1", 64);
	add_addr("dummy0", "fe80::1", 64);
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, true, NULL), 0);
	ck_assert_uint_eq(count, 3);
	ck_assert_int_eq(paths[0].state, MRF_VNL_USABLE);
	ck_assert_str_eq(paths[0].dev.name, "rxe0");
	ck_assert_uint_eq(paths[0].addr.in.sin_addr.s_addr, htonl(0x0a630101));
	ck_assert_uint_eq(paths[0].prefix, 24);
	ck_assert_uint_eq(paths[1].prefix, 32);
	ck_assert_int_eq(paths[2].addr.sa.sa_family, AF_INET6);
	ck_assert_uint_eq(paths[2].prefix, 64);
	free(paths);
}
END_TEST

START_TEST(vnl_keeps_the_devices_apart)
{
	struct mrf_vnl_path *paths;
	size_t count;

	add_dev("rxe0", "dummy0");
	add_dev("mlx5_0", "eth1")->driver = RDMA_DRIVER_MLX5;
	add_dev("rxe1", "eth0");
	add_addr("eth0", "192.0.2.7", 24);
	add_addr("eth1", "192.0.2.8", 24);
	add_addr("dummy0", "10.99.1.1", 24);
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, true, NULL), 0);
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(paths[0].addr.in.sin_addr.s_addr, htonl(0x0a630101));
	ck_assert_int_eq(paths[1].state, MRF_VNL_NOT_RXE);
	ck_assert_str_eq(paths[2].dev.name, "rxe1");
	ck_assert_uint_eq(paths[2].addr.in.sin_addr.s_addr, htonl(0xc0000207));
	free(paths);
}
END_TEST

START_TEST(vnl_says_why_a_device_cannot_be_used)
{
	struct mrf_vnl_dev *dev = add_dev("rxe0", "dummy0");
	struct mrf_vnl_ifaddr *addr = add_addr("dummy0", "10.99.1.1", 24);

	ck_assert_int_eq(only_state(), MRF_VNL_USABLE);
	addr->loopback = true;
	ck_assert_int_eq(only_state(), MRF_VNL_LOOPBACK);
	dev->port_state = IBV_PORT_DOWN;
	ck_assert_int_eq(only_state(), MRF_VNL_PORT_DOWN);
	dev->netdev[0] = '\0';
	ck_assert_int_eq(only_state(), MRF_VNL_NO_NETDEV);
	dev->driver = RDMA_DRIVER_SIW;
	ck_assert_int_eq(only_state(), MRF_VNL_NOT_RXE);
	dev->has_driver = false;
	ck_assert_int_eq(only_state(), MRF_VNL_NO_DRIVER);
}
END_TEST

START_TEST(vnl_leaves_out_link_local_addresses)
{
	add_dev("rxe0", "dummy0");
	ck_assert_int_eq(only_state(), MRF_VNL_NO_ADDRESS);
	add_addr("dummy0", "fe80::1", 64);
	ck_assert_int_eq(only_state(), MRF_VNL_NO_ADDRESS);
	add_addr("dummy0", "fd00::1", 64);
	ck_assert_int_eq(only_state(), MRF_VNL_USABLE);
}
END_TEST

/* The kernel makes a GID for the peer's address, and none for this one. */
START_TEST(vnl_does_not_offer_an_address_with_a_peer)
{
	struct mrf_vnl_path *paths;
	size_t count;

	add_dev("rxe0", "dummy0");
	add_addr("dummy0", "10.7.7.7", 32)->peer = true;
	ck_assert_int_eq(only_state(), MRF_VNL_PEER);
	add_addr("dummy0", "10.99.1.1", 24);
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, true, NULL), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(paths[0].state, MRF_VNL_PEER);
	ck_assert_uint_eq(paths[0].addr.in.sin_addr.s_addr, htonl(0x0a070707));
	ck_assert_int_eq(paths[1].state, MRF_VNL_USABLE);
	free(paths);
}
END_TEST

static const char *upper; /* dummy0 is below it */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
	char there[64];

	if (strncmp(path, "/sys/class/net/", 15))
		return __real_access(path, mode);
	snprintf(there, sizeof(there), "/sys/class/net/%s/lower_dummy0", upper ? upper : "");
	return strcmp(path, there) ? -1 : 0;
}

/* Said, because it looks as if it were the device's. */
START_TEST(vnl_does_not_offer_an_address_of_a_vlan_above)
{
	struct mrf_vnl_path *paths;
	size_t count;
	char why[200];

	upper = "dummy0.5";
	add_dev("rxe0", "dummy0");
	add_addr("dummy0", "10.99.1.1", 24);
	add_addr("eth1", "192.0.2.1", 24);
	add_addr("dummy0.5", "10.5.5.5", 24);
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, true, NULL), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(paths[0].state, MRF_VNL_USABLE);
	ck_assert_int_eq(paths[1].state, MRF_VNL_ABOVE);
	ck_assert_uint_eq(paths[1].addr.in.sin_addr.s_addr, htonl(0x0a050505));
	mrf_vnl_why(&paths[1], why, sizeof(why));
	ck_assert_ptr_nonnull(strstr(why, "belongs to dummy0.5"));
	free(paths);
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, false, NULL), 0);
	ck_assert_uint_eq(count, 1);
	free(paths);
	upper = NULL;
}
END_TEST

START_TEST(vnl_without_devices_gives_no_paths)
{
	struct mrf_vnl_path *paths;
	size_t count = 7;

	world.addrs_err = -FI_EIO; /* not even asked */
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, true, NULL), 0);
	ck_assert_uint_eq(count, 0);
	free(paths);
}
END_TEST

START_TEST(vnl_passes_on_what_a_look_up_answers)
{
	struct mrf_vnl_path *paths = NULL;
	size_t count = 7;

	world.devs_err = -FI_ENOSYS;
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, true, NULL), -FI_ENOSYS);
	world.devs_err = 0;
	world.addrs_err = -FI_ENOMEM;
	add_dev("rxe0", "dummy0");
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, true, NULL), -FI_ENOMEM);
	ck_assert_ptr_null(paths);
	ck_assert_uint_eq(count, 7);
}
END_TEST

START_TEST(vnl_has_a_sentence_for_every_state)
{
	struct mrf_vnl_path path = { .dev.netdev = "eth7" };
	char why[160];
	int state;

	for (state = 0; state < MRF_VNL_STATES; state++) {
		path.state = state;
		why[0] = '\0';
		mrf_vnl_why(&path, why, sizeof(why));
		ck_assert_uint_gt(strlen(why), 0);
		ck_assert_ptr_null(strstr(why, "INTERFACE"));
		if (state == MRF_VNL_PORT_DOWN || state == MRF_VNL_NO_ADDRESS)
			ck_assert_ptr_nonnull(strstr(why, "dev eth7"));
	}
}
END_TEST

/* --- reading the kernel's answers ------------------------------------------ */

static bool parse(struct nl_msg *msg, struct mrf_vnl_dev *dev)
{
	struct nlmsghdr *hdr = nlmsg_hdr(msg);
	bool ok = mrf_vnl_parse(nlmsg_data(hdr), (size_t)nlmsg_datalen(hdr), dev);

	nlmsg_free(msg);
	return ok;
}

/* A counter as the kernel tells it; wide: 64 bits, as it should. */
static void put_counter(struct nl_msg *msg, const char *name, uint64_t value, bool wide)
{
	struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);

	nla_put_string(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
	if (wide)
		nla_put_u64(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, value);
	else
		nla_put_u32(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, (uint32_t)value);
	nla_nest_end(msg, entry);
}

static bool parse_retries(const char *name, bool wide, uint64_t *count)
{
	struct nl_msg *msg = nlmsg_alloc_simple(1, 0);
	struct nlmsghdr *hdr = nlmsg_hdr(msg);
	struct nlattr *all;
	bool ok;

	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	if (name) {
		all = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
		put_counter(msg, "sent_pkts", 1, true);
		put_counter(msg, name, 1ull << 40 | 7, wide);
		put_counter(msg, "link_downed", 2, true);
		nla_nest_end(msg, all);
	}
	ok = mrf_vnl_parse_retries(nlmsg_data(hdr), (size_t)nlmsg_datalen(hdr), count);
	nlmsg_free(msg);
	return ok;
}

START_TEST(vnl_finds_how_often_a_device_sent_again)
{
	uint64_t count = 5;

	ck_assert(!parse_retries(NULL, true, &count));
	ck_assert(!parse_retries("retry_exceeded_err", true, &count));
	ck_assert(!parse_retries("completer_retry_err", false, &count));
	ck_assert_uint_eq(count, 5);
	ck_assert(parse_retries("completer_retry_err", true, &count));
	ck_assert_uint_eq(count, 1ull << 40 | 7);
	ck_assert_int_ne(mrf_vnl_retries("no such device", &count), 0);
}
END_TEST

START_TEST(vnl_reads_a_device)
{
	struct nl_msg *msg = nlmsg_alloc_simple(0, 0);
	struct mrf_vnl_dev dev = { .port_state = 9 };

	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, "rxe3");
	nla_put_u64(msg, RDMA_NLDEV_ATTR_NODE_GUID, UINT64_C(3) << 40);
	nla_put_string(msg, 500, "an attribute of a newer kernel");
	ck_assert(parse(msg, &dev));
	ck_assert_uint_eq(dev.index, 3);
	ck_assert_str_eq(dev.name, "rxe3");
	ck_assert_uint_eq(dev.guid, UINT64_C(3) << 40);
	ck_assert(!dev.has_driver);
	ck_assert_uint_eq(dev.port_state, 9);
}
END_TEST

START_TEST(vnl_reads_a_port)
{
	struct nl_msg *msg = nlmsg_alloc_simple(0, 0);
	struct mrf_vnl_dev dev = { .index = 3 };

	nla_put_u8(msg, RDMA_NLDEV_ATTR_PORT_STATE, IBV_PORT_ACTIVE);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_NDEV_INDEX, 17);
	nla_put_string(msg, RDMA_NLDEV_ATTR_NDEV_NAME, "dummy0");
	ck_assert(parse(msg, &dev));
	ck_assert_uint_eq(dev.port_state, IBV_PORT_ACTIVE);
	ck_assert_uint_eq(dev.ifindex, 17);
	ck_assert_str_eq(dev.netdev, "dummy0");
	ck_assert_uint_eq(dev.index, 3);
}
END_TEST

/* What is read of an answer to RTM_GETADDR. local may be NULL. */
static bool read_addr(int family, const char *local, const char *address,
		      struct mrf_vnl_ifaddr *out)
{
	const struct ifaddrmsg head = { .ifa_family = (uint8_t)family,
					.ifa_prefixlen = 20,
					.ifa_index = 7 };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWADDR, 0);
	int len = family == AF_INET ? 4 : 16;
	uint8_t bytes[16];
	bool read;

	nlmsg_append(msg, (void *)&head, sizeof(head), NLMSG_ALIGNTO);
	ck_assert_int_eq(inet_pton(family, address, bytes), 1);
	nla_put(msg, IFA_ADDRESS, len, bytes);
	if (local) {
		ck_assert_int_eq(inet_pton(family, local, bytes), 1);
		nla_put(msg, IFA_LOCAL, len, bytes);
	}
	read = mrf_vnl_parse_addr(nlmsg_hdr(msg), out);
	nlmsg_free(msg);
	return read;
}

static void want_addr(const struct mrf_vnl_ifaddr *addr, const char *text)
{
	char got[MRF_ADDR_TEXT];

	ck_assert_str_eq(mrf_addr_text(&addr->addr, got, sizeof(got)), text);
	ck_assert_uint_eq(addr->prefix, 20);
	ck_assert_uint_eq(addr->ifindex, 7);
}

START_TEST(vnl_tells_an_address_with_a_peer_from_others)
{
	struct mrf_vnl_ifaddr addr;

	ck_assert(read_addr(AF_INET, "10.7.7.7", "10.7.7.8", &addr));
	want_addr(&addr, "10.7.7.7:0");
	ck_assert(addr.peer);
	ck_assert(read_addr(AF_INET, "10.7.7.7", "10.7.7.7", &addr));
	ck_assert(!addr.peer);
	ck_assert(read_addr(AF_INET, NULL, "10.7.7.9", &addr));
	want_addr(&addr, "10.7.7.9:0");
	ck_assert(!addr.peer);
}
END_TEST

START_TEST(vnl_reads_addresses_of_ipv6)
{
	struct mrf_vnl_ifaddr addr;

	ck_assert(read_addr(AF_INET6, NULL, "fd00::1", &addr));
	want_addr(&addr, "[fd00::1]:0");
	ck_assert_uint_eq(addr.addr.in6.sin6_scope_id, 0);
	ck_assert(read_addr(AF_INET6, "fd00::2", "fd00::3", &addr));
	want_addr(&addr, "[fd00::2]:0");
	ck_assert(!addr.peer);
	ck_assert(read_addr(AF_INET6, NULL, "fe80::1", &addr));
	ck_assert_uint_eq(addr.addr.in6.sin6_scope_id, 7);
}
END_TEST

START_TEST(vnl_passes_over_what_is_no_address_of_ip)
{
	struct ifaddrmsg head = { .ifa_family = AF_INET, .ifa_index = 7 };
	struct mrf_vnl_ifaddr addr;
	struct nl_msg *msg;
	int i;

	for (i = 0; i < 3; i++) {
		head.ifa_family = i ? AF_INET : AF_UNIX;
		msg = nlmsg_alloc_simple(RTM_NEWADDR, 0);
		nlmsg_append(msg, &head, sizeof(head), NLMSG_ALIGNTO);
		if (i < 2)
			nla_put(msg, IFA_LOCAL, i ? 3 : 4, "abc");
		ck_assert(!mrf_vnl_parse_addr(nlmsg_hdr(msg), &addr));
		nlmsg_free(msg);
	}
}
END_TEST

START_TEST(vnl_reads_the_driver_in_either_width)
{
	struct nl_msg *msg = nlmsg_alloc_simple(0, 0);
	struct mrf_vnl_dev dev = { 0 };

	nla_put_u32(msg, RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, RDMA_DRIVER_RXE);
	ck_assert(parse(msg, &dev));
	ck_assert(dev.has_driver);
	ck_assert_uint_eq(dev.driver, RDMA_DRIVER_RXE);
	ck_assert_uint_eq(RDMA_DRIVER_RXE, 14);
	msg = nlmsg_alloc_simple(0, 0);
	nla_put_u64(msg, RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, UINT64_C(1) << 33);
	ck_assert(parse(msg, &dev));
	ck_assert_uint_eq(dev.driver, UINT64_C(1) << 33);
}
END_TEST

START_TEST(vnl_passes_over_attributes_of_a_wrong_size)
{
	struct nl_msg *msg = nlmsg_alloc_simple(0, 0);
	struct mrf_vnl_dev dev = { .index = 5, .ifindex = 6, .port_state = 1 };

	nla_put_u8(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 1);
	nla_put_u16(msg, RDMA_NLDEV_ATTR_NDEV_INDEX, 1);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_NODE_GUID, 1);
	nla_put_u16(msg, RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, 14);
	nla_put(msg, RDMA_NLDEV_ATTR_PORT_STATE, 0, NULL);
	ck_assert(parse(msg, &dev));
	ck_assert_uint_eq(dev.index, 5);
	ck_assert_uint_eq(dev.ifindex, 6);
	ck_assert_uint_eq(dev.guid, 0);
	ck_assert_uint_eq(dev.port_state, 1);
	ck_assert(!dev.has_driver);
}
END_TEST

START_TEST(vnl_cuts_names_that_are_too_long)
{
	struct nl_msg *msg = nlmsg_alloc_simple(0, 0);
	struct mrf_vnl_dev dev = { 0 };
	char name[200];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	ck_assert(parse(msg, &dev));
	ck_assert_uint_eq(strlen(dev.name), sizeof(dev.name) - 1);
}
END_TEST

/* --- the machine that the test runs on ------------------------------------- */

START_TEST(vnl_asks_the_real_kernel)
{
	struct mrf_vnl_dev *devs = NULL;
	size_t count = 0, i;
	int ret = __real_mrf_vnl_devs(&devs, &count, NULL);

	/* -FI_ENOSYS is a kernel without RDMA: nothing more can be seen there. */
	ck_assert(ret == 0 || ret == -FI_ENOSYS);
	for (i = 0; i < count; i++)
		ck_assert_uint_gt(strlen(devs[i].name), 0);
	free(devs);
}
END_TEST

int __real_nl_recvmsgs_default(struct nl_sock *sk);
int __wrap_nl_recvmsgs_default(struct nl_sock *sk);

static int answer_ends; /* in this way; 0: as it does */

int __wrap_nl_recvmsgs_default(struct nl_sock *sk)
{
	int ret = __real_nl_recvmsgs_default(sk);

	return answer_ends ? answer_ends : ret;
}

/* As when an address comes or goes meanwhile. */
START_TEST(vnl_takes_an_answer_during_which_something_changed)
{
	struct mrf_vnl_ifaddr *addrs;
	size_t count, again;

	ck_assert_int_eq(__real_mrf_vnl_ifaddrs(&addrs, &count), 0);
	free(addrs);
	answer_ends = -NLE_DUMP_INTR;
	ck_assert_int_eq(__real_mrf_vnl_ifaddrs(&addrs, &again), 0);
	ck_assert_uint_eq(again, count);
	free(addrs);
	answer_ends = -NLE_NOMEM;
	ck_assert_int_eq(__real_mrf_vnl_ifaddrs(&addrs, &again), -FI_EIO);
	answer_ends = 0;
}
END_TEST

START_TEST(vnl_finds_the_loopback_address_of_this_machine)
{
	struct mrf_vnl_ifaddr *addrs;
	bool found = false;
	size_t count, i;

	ck_assert_int_eq(__real_mrf_vnl_ifaddrs(&addrs, &count), 0);
	for (i = 0; i < count; i++) {
		if (addrs[i].addr.sa.sa_family != AF_INET ||
		    addrs[i].addr.in.sin_addr.s_addr != htonl(INADDR_LOOPBACK))
			continue;
		found = true;
		ck_assert(addrs[i].loopback);
		ck_assert_str_eq(addrs[i].netdev, "lo");
		ck_assert_uint_gt(addrs[i].mtu, 1000);
		ck_assert_uint_eq(addrs[i].prefix, 8);
	}
	ck_assert(found);
	free(addrs);
}
END_TEST

/* --- what is kept of a device ------------------------------------------------ */

/* The interface 17. */
static struct {
	const char *name; /* NULL: it is gone */
	short flags;
	uint16_t speed;
} netdev;

int __wrap_ioctl(int fd, unsigned long request, struct ifreq *ifr);

int __wrap_ioctl(int fd, unsigned long request, struct ifreq *ifr)
{
	struct ethtool_cmd *cmd = (void *)ifr->ifr_data;

	if (fd >= 0)
		return (int)syscall(SYS_ioctl, fd, request, ifr);
	if (!netdev.name ||
	    (request == SIOCGIFNAME ? ifr->ifr_ifindex != 17 : strcmp(ifr->ifr_name, netdev.name)))
		return -1;
	if (request == SIOCGIFNAME)
		snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", netdev.name);
	else if (request == SIOCGIFFLAGS)
		ifr->ifr_flags = netdev.flags;
	else
		ethtool_cmd_speed_set(cmd, netdev.speed);
	return 0;
}

static uint64_t netns = 1;

int __wrap_getsockopt(int fd, int level, int name, uint64_t *value, socklen_t *len);

int __wrap_getsockopt(int fd, int level, int name, uint64_t *value, socklen_t *len)
{
	if (fd >= 0 || name != SO_NETNS_COOKIE)
		return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
	*value = netns;
	return netns ? 0 : -1;
}

static struct mrf_vnl_dev bare_dev(uint32_t index, const char *name, uint64_t guid)
{
	struct mrf_vnl_dev dev = { .index = index, .guid = guid };

	snprintf(dev.name, sizeof(dev.name), "%s", name);
	return dev;
}

/* On interface 17, which is running. */
static void keep_dev(struct mrf_vnl_dev *dev)
{
	netdev.name = "mrf-eth";
	netdev.flags = IFF_UP | IFF_RUNNING;
	netdev.speed = 100;
	dev->has_driver = true;
	dev->driver = 99;
	dev->ifindex = 17;
	snprintf(dev->netdev, sizeof(dev->netdev), "%s", netdev.name);
	mrf_vnl_kept_add(-1, dev);
}

START_TEST(vnl_keeps_what_a_device_does_not_change)
{
	struct mrf_vnl_dev dev = bare_dev(5, "mrf5", 7), again = dev;

	ck_assert(!mrf_vnl_kept_find(-1, &again));
	/* Without a driver there is nothing to keep. */
	dev.ifindex = 17;
	mrf_vnl_kept_add(-1, &dev);
	ck_assert(!mrf_vnl_kept_find(-1, &again));
	keep_dev(&dev);
	ck_assert(mrf_vnl_kept_find(-1, &again));
	ck_assert(again.has_driver);
	ck_assert_uint_eq(again.driver, 99);
	ck_assert_uint_eq(again.ifindex, 17);
	ck_assert_uint_eq(mrf_vnl_kept_ifindex(-1, &again), 17);
}
END_TEST

/* Its port is asked about unless it is certain to be active. */
START_TEST(vnl_knows_a_port_by_its_interface_while_that_is_running)
{
	static const short flags[] = { 0, IFF_UP, IFF_RUNNING };
	struct mrf_vnl_dev dev = bare_dev(5, "mrf5", 7), again = dev, before = dev;
	size_t i;

	keep_dev(&dev);
	for (i = 0; i < MRF_ARRAY_SIZE(flags); i++) {
		netdev.flags = flags[i];
		ck_assert(!mrf_vnl_kept_find(-1, &again));
		ck_assert_mem_eq(&again, &before, sizeof(again));
	}
	netdev.flags = IFF_UP | IFF_RUNNING | IFF_BROADCAST;
	netdev.name = "mrf-new";
	ck_assert(mrf_vnl_kept_find(-1, &again));
	ck_assert_str_eq(again.netdev, "mrf-new");
	ck_assert_uint_eq(again.port_state, IBV_PORT_ACTIVE);
	netdev.speed++;
	ck_assert(!mrf_vnl_kept_find(-1, &again));
	netdev.speed--;
	netdev.name = NULL;
	ck_assert(!mrf_vnl_kept_find(-1, &again));
}
END_TEST

START_TEST(vnl_does_not_mistake_a_device_for_another)
{
	static const struct {
		uint32_t index;
		const char *name;
		uint64_t guid;
	} others[] = { { 5 + 64, "mrf5", 7 }, { 5, "mrf6", 7 }, { 5, "mrf5", 8 } };
	struct mrf_vnl_dev dev = bare_dev(5, "mrf5", 7), other;
	size_t i;

	keep_dev(&dev);
	for (i = 0; i < MRF_ARRAY_SIZE(others); i++) {
		other = bare_dev(others[i].index, others[i].name, others[i].guid);
		ck_assert(!mrf_vnl_kept_find(-1, &other));
		ck_assert_uint_eq(mrf_vnl_kept_ifindex(-1, &other), 0);
	}
	/* The same place: the new one takes it. */
	other = bare_dev(5 + 64, "mrf7", 7);
	keep_dev(&other);
	ck_assert(!mrf_vnl_kept_find(-1, &dev));
	ck_assert(mrf_vnl_kept_find(-1, &other));
}
END_TEST

/* Interface 17 is another one there. Where the kernel has no name for namespaces, nothing is kept. */
START_TEST(vnl_knows_nothing_of_another_network_namespace)
{
	struct mrf_vnl_dev dev = bare_dev(5, "mrf5", 7), again = dev;

	keep_dev(&dev);
	netns = 2;
	ck_assert(!mrf_vnl_kept_find(-1, &again));
	ck_assert_uint_eq(mrf_vnl_kept_ifindex(-1, &again), 0);
	netns = 1;
	ck_assert(mrf_vnl_kept_find(-1, &again));
	netns = 0;
	dev = again = bare_dev(6, "mrf6", 8);
	keep_dev(&dev);
	ck_assert(!mrf_vnl_kept_find(-1, &again));
	netns = 1;
}
END_TEST

/* --- with addresses named ------------------------------------------------------ */

static bool names_ten(const struct mrf_vnl_only *only, const union mrf_addr *addr)
{
	(void)only;
	return addr->sa.sa_family == AF_INET && ntohl(addr->in.sin_addr.s_addr) >> 24 == 10;
}

START_TEST(vnl_asks_about_the_interfaces_of_named_addresses)
{
	const struct mrf_vnl_only only = { names_ten };
	struct mrf_vnl_path *paths;
	size_t count;

	add_dev("rxe0", "dummy0");
	add_addr("eth0", "192.0.2.7", 24)->ifindex = 3;
	add_addr("dummy0", "10.99.1.1", 24)->ifindex = 4;
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, false, NULL), 0);
	ck_assert_uint_eq(world.asked_only, SIZE_MAX);
	free(paths);
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, false, &only), 0);
	ck_assert_uint_eq(world.asked_only, 1);
	ck_assert_uint_eq(world.asked_first, 4);
	ck_assert_uint_eq(count, 1);
	free(paths);
	world.addrs_err = -FI_ENOMEM;
	ck_assert_int_eq(mrf_vnl_paths(&paths, &count, false, &only), -FI_ENOMEM);
}
END_TEST

static TCase *tcase_paths(void)
{
	TCase *tc = tcase_create("paths");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, vnl_gives_one_path_for_each_address_of_a_device);
	tcase_add_test(tc, vnl_asks_about_the_interfaces_of_named_addresses);
	tcase_add_test(tc, vnl_keeps_what_a_device_does_not_change);
	tcase_add_test(tc, vnl_knows_a_port_by_its_interface_while_that_is_running);
	tcase_add_test(tc, vnl_does_not_mistake_a_device_for_another);
	tcase_add_test(tc, vnl_knows_nothing_of_another_network_namespace);
	tcase_add_test(tc, vnl_keeps_the_devices_apart);
	tcase_add_test(tc, vnl_says_why_a_device_cannot_be_used);
	tcase_add_test(tc, vnl_leaves_out_link_local_addresses);
	tcase_add_test(tc, vnl_does_not_offer_an_address_with_a_peer);
	tcase_add_test(tc, vnl_does_not_offer_an_address_of_a_vlan_above);
	tcase_add_test(tc, vnl_without_devices_gives_no_paths);
	tcase_add_test(tc, vnl_passes_on_what_a_look_up_answers);
	tcase_add_test(tc, vnl_has_a_sentence_for_every_state);
	return tc;
}

static TCase *tcase_parse(void)
{
	TCase *tc = tcase_create("parse");

	tcase_add_test(tc, vnl_reads_a_device);
	tcase_add_test(tc, vnl_reads_a_port);
	tcase_add_test(tc, vnl_tells_an_address_with_a_peer_from_others);
	tcase_add_test(tc, vnl_reads_addresses_of_ipv6);
	tcase_add_test(tc, vnl_passes_over_what_is_no_address_of_ip);
	tcase_add_test(tc, vnl_reads_the_driver_in_either_width);
	tcase_add_test(tc, vnl_passes_over_attributes_of_a_wrong_size);
	tcase_add_test(tc, vnl_finds_how_often_a_device_sent_again);
	tcase_add_test(tc, vnl_cuts_names_that_are_too_long);
	tcase_add_test(tc, vnl_asks_the_real_kernel);
	tcase_add_test(tc, vnl_finds_the_loopback_address_of_this_machine);
	tcase_add_test(tc, vnl_takes_an_answer_during_which_something_changed);
	return tc;
}

UNIT_MAIN("vnl", tcase_paths, tcase_parse)
