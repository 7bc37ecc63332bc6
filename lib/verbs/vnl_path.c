/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/fi_errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include "verbs/vnl.h"
#include "verbs/vnl_path.h"

/* Those that name no interface. */
static const char *const state_texts[MRF_VNL_STATES] = {
	[MRF_VNL_USABLE] = "usable",
	[MRF_VNL_NO_DRIVER] = "the kernel does not name its driver: modprobe ib_uverbs",
	[MRF_VNL_NOT_RXE] = "not a soft-RoCE (rdma_rxe) device",
	[MRF_VNL_NO_NETDEV] = "its network interface is in another network namespace, "
			      "where rxe does not work",
	[MRF_VNL_PEER] = "this address has a peer address beside it (ip address show), for which "
			 "the kernel makes the device's GID: add the address without a peer",
	[MRF_VNL_LOOPBACK] = "it is on a loopback interface, where rdma_cm does not work: "
			     "put the rxe link on another one (a dummy will do)",
};

unsigned mrf_vnl_code(enum mrf_vnl_state state)
{
	static const unsigned codes[MRF_VNL_STATES] = {
		[MRF_VNL_USABLE] = 1040,     [MRF_VNL_NO_DRIVER] = 1041, [MRF_VNL_NOT_RXE] = 1042,
		[MRF_VNL_NO_NETDEV] = 1043,  [MRF_VNL_LOOPBACK] = 1044,	 [MRF_VNL_PORT_DOWN] = 1045,
		[MRF_VNL_NO_ADDRESS] = 1046, [MRF_VNL_PEER] = 1047,	 [MRF_VNL_ABOVE] = 1049,
	};

	return codes[state];
}

void mrf_vnl_why(const struct mrf_vnl_path *path, char *why, size_t len)
{
	const char *netdev = path->dev.netdev;

	switch (path->state) {
	case MRF_VNL_PORT_DOWN:
		snprintf(why, len,
			 "its port is not active: ip link set dev %s up; if it is up, it has no "
			 "carrier",
			 netdev);
		return;
	case MRF_VNL_ABOVE:
		snprintf(why, len,
			 "this address belongs to %s, and the device to %s: rdma link add ... "
			 "netdev %s",
			 path->above, netdev, path->above);
		return;
	case MRF_VNL_NO_ADDRESS:
		snprintf(why, len,
			 "%s has no IP address but link-local ones: ip address add "
			 "ADDRESS/PREFIX dev %s",
			 netdev, netdev);
		return;
	default:
		snprintf(why, len, "%s", state_texts[path->state]);
	}
}

struct path_list {
	struct mrf_vnl_path *paths;
	size_t count, max;
	bool full; /* there was no memory for one more */
};

static bool addr_usable(const union mrf_addr *addr)
{
	return addr->sa.sa_family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr);
}

static enum mrf_vnl_state dev_state(const struct mrf_vnl_dev *dev)
{
	if (!dev->has_driver)
		return MRF_VNL_NO_DRIVER;
	if (dev->driver != RDMA_DRIVER_RXE)
		return MRF_VNL_NOT_RXE;
	if (!dev->netdev[0])
		return MRF_VNL_NO_NETDEV;
	if (dev->port_state != IBV_PORT_ACTIVE)
		return MRF_VNL_PORT_DOWN;
	return MRF_VNL_USABLE;
}

static bool has_place(struct path_list *list)
{
	size_t max = list->max ? 2 * list->max : 4;
	struct mrf_vnl_path *paths;

	if (list->count < list->max)
		return true;
	paths = realloc(list->paths, max * sizeof(*paths));
	if (!paths) {
		list->full = true;
		return false;
	}
	list->paths = paths;
	list->max = max;
	return true;
}

static void add_path(struct path_list *list, const struct mrf_vnl_path *path)
{
	if (has_place(list))
		list->paths[list->count++] = *path;
}

/* Is netdev an interface above the device's? */
static bool is_above(const char *netdev, const struct mrf_vnl_dev *dev)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/class/net/%.15s/lower_%.15s", netdev, dev->netdev);
	return !access(path, F_OK);
}

static void add_addr(struct path_list *list, const struct mrf_vnl_dev *dev,
		     const struct mrf_vnl_ifaddr *addr, enum mrf_vnl_state state)
{
	struct mrf_vnl_path path = {
		.state = state,
		.dev = *dev,
		.addr = addr->addr,
		.prefix = addr->prefix,
		.mtu = addr->mtu,
	};

	if (state == MRF_VNL_ABOVE)
		snprintf(path.above, sizeof(path.above), "%s", addr->netdev);
	add_path(list, &path);
}

/* One that says why there is none. */
static void add_none(struct path_list *list, const struct mrf_vnl_dev *dev,
		     enum mrf_vnl_state state)
{
	const struct mrf_vnl_path path = { .state = state, .dev = *dev };

	add_path(list, &path);
}

/* Those that are not the device's and look as if they were. */
static void add_above(struct path_list *list, const struct mrf_vnl_dev *dev,
		      const struct mrf_vnl_ifaddr *addrs, size_t naddrs)
{
	size_t i;

	for (i = 0; i < naddrs; i++) {
		if (strcmp(addrs[i].netdev, dev->netdev) && addr_usable(&addrs[i].addr) &&
		    is_above(addrs[i].netdev, dev))
			add_addr(list, dev, &addrs[i], MRF_VNL_ABOVE);
	}
}

/* Adds the device's addresses. */
static void add_dev(struct path_list *list, const struct mrf_vnl_dev *dev,
		    const struct mrf_vnl_ifaddr *addrs, size_t naddrs)
{
	enum mrf_vnl_state state = dev_state(dev);
	size_t before = list->count, i;

	for (i = 0; state == MRF_VNL_USABLE && i < naddrs; i++) {
		if (strcmp(addrs[i].netdev, dev->netdev))
			continue;
		if (addrs[i].loopback) {
			state = MRF_VNL_LOOPBACK;
		} else if (addr_usable(&addrs[i].addr)) {
			add_addr(list, dev, &addrs[i],
				 addrs[i].peer ? MRF_VNL_PEER : MRF_VNL_USABLE);
		}
	}
	if (list->count == before)
		add_none(list, dev, state == MRF_VNL_USABLE ? MRF_VNL_NO_ADDRESS : state);
}

/* What paths are made of. */
struct parts {
	struct mrf_vnl_dev *devs;
	struct mrf_vnl_ifaddr *addrs;
	size_t ndevs, naddrs;
};

/* The devices on the interfaces that have a named address; others cost a question each. */
static int find_only(struct parts *parts, const struct mrf_vnl_only *only)
{
	struct mrf_vnl_netdevs netdevs = { 0 };
	size_t i;
	int ret = mrf_vnl_ifaddrs(&parts->addrs, &parts->naddrs);

	if (ret)
		return ret;
	netdevs.ifindex = calloc(parts->naddrs + 1, sizeof(*netdevs.ifindex));
	if (!netdevs.ifindex)
		return -FI_ENOMEM;
	for (i = 0; i < parts->naddrs; i++) {
		if (only->names(only, &parts->addrs[i].addr))
			netdevs.ifindex[netdevs.count++] = parts->addrs[i].ifindex;
	}
	ret = mrf_vnl_devs(&parts->devs, &parts->ndevs, &netdevs);
	free(netdevs.ifindex);
	return ret;
}

static int find_every(struct parts *parts)
{
	int ret = mrf_vnl_devs(&parts->devs, &parts->ndevs, NULL);

	if (!ret && parts->ndevs)
		ret = mrf_vnl_ifaddrs(&parts->addrs, &parts->naddrs);
	return ret;
}

static int make_paths(const struct parts *parts, bool above, struct path_list *list)
{
	const struct mrf_vnl_dev *dev;

	for (dev = parts->devs; dev < parts->devs + parts->ndevs; dev++) {
		add_dev(list, dev, parts->addrs, parts->naddrs);
		if (above && dev_state(dev) == MRF_VNL_USABLE)
			add_above(list, dev, parts->addrs, parts->naddrs);
	}
	return list->full ? -FI_ENOMEM : 0;
}

int mrf_vnl_paths(struct mrf_vnl_path **paths, size_t *count, bool above,
		  const struct mrf_vnl_only *only)
{
	struct path_list list = { 0 };
	struct parts parts = { 0 };
	int ret = only ? find_only(&parts, only) : find_every(&parts);

	if (!ret)
		ret = make_paths(&parts, above, &list);
	if (!ret) {
		*paths = list.paths;
		*count = list.count;
	} else {
		free(list.paths);
	}
	free(parts.addrs);
	free(parts.devs);
	return ret;
}
