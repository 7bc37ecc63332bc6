/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/vnl_addr.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/fi_errno.h>
#include "base/lock.h"
#include "verbs/vnl.h"

/* --- one address ----------------------------------------------------------------------- */

static bool set_ip4(struct sockaddr_in *in, const struct nlattr *own)
{
	if (nla_len(own) != sizeof(in->sin_addr))
		return false;
	memcpy(&in->sin_addr, nla_data(own), sizeof(in->sin_addr));
	return true;
}

static bool set_ip6(struct sockaddr_in6 *in6, const struct nlattr *own, unsigned ifindex)
{
	if (nla_len(own) != sizeof(in6->sin6_addr))
		return false;
	memcpy(&in6->sin6_addr, nla_data(own), sizeof(in6->sin6_addr));
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		in6->sin6_scope_id = ifindex;
	return true;
}

static bool set_own(union mrf_addr *addr, const struct ifaddrmsg *head, const struct nlattr *own)
{
	*addr = (union mrf_addr){ .sa.sa_family = head->ifa_family };
	switch (head->ifa_family) {
	case AF_INET:
		return set_ip4(&addr->in, own);
	case AF_INET6:
		return set_ip6(&addr->in6, own, head->ifa_index);
	default:
		return false;
	}
}

static bool differ(const struct nlattr *a, const struct nlattr *b)
{
	return a && b && (nla_len(a) != nla_len(b) || memcmp(nla_data(a), nla_data(b), nla_len(a)));
}

bool mrf_vnl_parse_addr(struct nlmsghdr *hdr, struct mrf_vnl_ifaddr *out)
{
	const struct ifaddrmsg *head = nlmsg_data(hdr);
	struct nlattr *tb[IFA_MAX + 1], *own;

	if (nlmsg_parse(hdr, sizeof(*head), tb, IFA_MAX, NULL))
		return false;
	/* IFA_ADDRESS is the peer's where both are there and differ. */
	own = tb[IFA_LOCAL] ? tb[IFA_LOCAL] : tb[IFA_ADDRESS];
	memset(out, 0, sizeof(*out));
	if (!own || !set_own(&out->addr, head, own))
		return false;
	out->prefix = head->ifa_prefixlen;
	out->peer = head->ifa_family == AF_INET && differ(tb[IFA_LOCAL], tb[IFA_ADDRESS]);
	out->ifindex = head->ifa_index;
	return true;
}

/* --- its interface ---------------------------------------------------------------------- */

/* False: it is gone. fd: a socket of any kind. */
static bool look_at_netdev(int fd, struct mrf_vnl_ifaddr *out)
{
	struct ifreq ifr = { .ifr_ifindex = (int)out->ifindex };

	if (ioctl(fd, SIOCGIFNAME, &ifr))
		return false;
	memcpy(out->netdev, ifr.ifr_name, sizeof(out->netdev));
	if (!ioctl(fd, SIOCGIFFLAGS, &ifr))
		out->loopback = ifr.ifr_flags & IFF_LOOPBACK;
	if (!ioctl(fd, SIOCGIFMTU, &ifr))
		out->mtu = (unsigned)ifr.ifr_mtu;
	return true;
}

/* --- all of them ------------------------------------------------------------------------ */

/* A growing array of addresses; err remembers the first failure inside a callback. */
struct addr_list {
	struct mrf_vnl_ifaddr *addrs;
	size_t count, max;
	int fd; /* a socket */
	int err;
};

/* Makes room for one more. */
static bool has_room(struct addr_list *list)
{
	struct mrf_vnl_ifaddr *addrs;
	size_t max = list->max ? 2 * list->max : 16;

	if (list->count < list->max)
		return true;
	addrs = realloc(list->addrs, max * sizeof(*addrs));
	if (!addrs)
		return false;
	list->addrs = addrs;
	list->max = max;
	return true;
}

/* Copies what is about the interface from another address of it. */
static bool copy_netdev(const struct addr_list *list, struct mrf_vnl_ifaddr *out)
{
	const struct mrf_vnl_ifaddr *other = list->addrs, *end = list->addrs + list->count;

	while (other < end && other->ifindex != out->ifindex)
		other++;
	if (other == end)
		return false;
	memcpy(out->netdev, other->netdev, sizeof(out->netdev));
	out->loopback = other->loopback;
	out->mtu = other->mtu;
	return true;
}

static int on_address(struct nl_msg *msg, void *arg)
{
	struct addr_list *list = arg;
	struct mrf_vnl_ifaddr *addr;

	if (!has_room(list)) {
		list->err = -FI_ENOMEM;
		return NL_STOP;
	}
	addr = &list->addrs[list->count];
	if (mrf_vnl_parse_addr(nlmsg_hdr(msg), addr) &&
	    (copy_netdev(list, addr) || look_at_netdev(list->fd, addr)))
		list->count++;
	return NL_OK;
}

static int ask_addresses(struct nl_sock *sk, struct addr_list *list)
{
	const struct ifaddrmsg all = { .ifa_family = AF_UNSPEC };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETADDR, NLM_F_DUMP);
	int ret;

	if (!msg || !has_room(list) ||
	    nlmsg_append(msg, (void *)&all, sizeof(all), NLMSG_ALIGNTO)) {
		nlmsg_free(msg);
		return -FI_ENOMEM;
	}
	list->fd = nl_socket_get_fd(sk);
	ret = mrf_vnl_ask(sk, msg, on_address, list);
	return ret ? ret : list->err;
}

int mrf_vnl_ifaddrs(struct mrf_vnl_ifaddr **addrs, size_t *count)
{
	struct addr_list list = { 0 };
	int ret;
	struct nl_sock *sk = mrf_vnl_connect(NETLINK_ROUTE, -FI_EIO, &ret);

	mrf_slow_call();
	if (!sk)
		return ret;
	ret = ask_addresses(sk, &list);
	nl_socket_free(sk);
	if (ret) {
		free(list.addrs);
		return ret;
	}
	*addrs = list.addrs;
	*count = list.count;
	return 0;
}
