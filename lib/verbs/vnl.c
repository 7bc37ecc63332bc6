/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "base/lock.h"
#include "base/page.h"
#include "verbs/vnl.h"
#include "verbs/vnl_kept.h"

#include <stdlib.h>
#include <string.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/fi_errno.h>
#include <rdma/rdma_netlink.h>

#define NLDEV_TYPE(command) RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, (command))

/* --- asking the kernel for devices ----------------------------------------- */

/* A growing array of devices; err remembers the first failure inside a callback. */
struct dev_list {
	struct mrf_vnl_dev *devs;
	size_t count;
	int err;
};

static void read_string(struct nlattr *attr, char *buf, size_t len)
{
	if (attr)
		nla_strlcpy(buf, attr, len);
}

static void read_u32(struct nlattr *attr, uint32_t *value)
{
	if (attr && nla_len(attr) >= (int)sizeof(*value))
		*value = nla_get_u32(attr);
}

static void read_u64(struct nlattr *attr, uint64_t *value)
{
	if (attr && nla_len(attr) >= (int)sizeof(*value))
		*value = nla_get_u64(attr);
}

/* The kernel sends 32 bits where its header says 64. */
static void read_driver(struct nlattr *attr, struct mrf_vnl_dev *dev)
{
	if (!attr || nla_len(attr) < (int)sizeof(uint32_t))
		return;
	dev->has_driver = true;
	dev->driver =
		nla_len(attr) >= (int)sizeof(uint64_t) ? nla_get_u64(attr) : nla_get_u32(attr);
}

bool mrf_vnl_parse(const void *attrs, size_t len, struct mrf_vnl_dev *dev)
{
	struct nlattr *tb[RDMA_NLDEV_ATTR_MAX];

	if (nla_parse(tb, RDMA_NLDEV_ATTR_MAX - 1, (struct nlattr *)attrs, (int)len, NULL))
		return false;
	read_u32(tb[RDMA_NLDEV_ATTR_DEV_INDEX], &dev->index);
	read_string(tb[RDMA_NLDEV_ATTR_DEV_NAME], dev->name, sizeof(dev->name));
	read_u64(tb[RDMA_NLDEV_ATTR_NODE_GUID], &dev->guid);
	read_u32(tb[RDMA_NLDEV_ATTR_NDEV_INDEX], &dev->ifindex);
	read_string(tb[RDMA_NLDEV_ATTR_NDEV_NAME], dev->netdev, sizeof(dev->netdev));
	read_driver(tb[RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID], dev);
	if (tb[RDMA_NLDEV_ATTR_PORT_STATE] && nla_len(tb[RDMA_NLDEV_ATTR_PORT_STATE]) >= 1)
		dev->port_state = nla_get_u8(tb[RDMA_NLDEV_ATTR_PORT_STATE]);
	return true;
}

static bool parse_msg(struct nl_msg *msg, struct mrf_vnl_dev *dev)
{
	struct nlmsghdr *hdr = nlmsg_hdr(msg);

	return mrf_vnl_parse(nlmsg_data(hdr), (size_t)nlmsg_datalen(hdr), dev);
}

static int on_dev(struct nl_msg *msg, void *arg)
{
	struct dev_list *list = arg;
	struct mrf_vnl_dev *devs;

	devs = realloc(list->devs, (list->count + 1) * sizeof(*devs));
	if (!devs) {
		list->err = -FI_ENOMEM;
		return NL_STOP;
	}
	list->devs = devs;
	memset(&devs[list->count], 0, sizeof(*devs));
	if (parse_msg(msg, &devs[list->count]))
		list->count++;
	return NL_OK;
}

static int on_detail(struct nl_msg *msg, void *arg)
{
	parse_msg(msg, arg);
	return NL_OK;
}

int mrf_vnl_ask(struct nl_sock *sk, struct nl_msg *msg, nl_recvmsg_msg_cb_t visit, void *arg)
{
	int ret;

	nl_socket_modify_cb(sk, NL_CB_VALID, NL_CB_CUSTOM, visit, arg);
	ret = nl_send_auto(sk, msg);
	nlmsg_free(msg);
	if (ret >= 0)
		ret = nl_recvmsgs_default(sk);
	/* Something changed during the answer, which is whole, and could be as old without that. */
	return ret < 0 && ret != -NLE_DUMP_INTR ? -FI_EIO : 0;
}

/* A question about one device, with one more attribute. */
struct question {
	int command;
	int attr;
	const void *data;
	int len;
};

static const uint32_t first_port = 1;
static const struct question of_port = { RDMA_NLDEV_CMD_PORT_GET, RDMA_NLDEV_ATTR_PORT_INDEX,
					 &first_port, sizeof(first_port) };
static const struct question of_counters = { RDMA_NLDEV_CMD_STAT_GET, RDMA_NLDEV_ATTR_PORT_INDEX,
					     &first_port, sizeof(first_port) };
/* The kernel sends the driver's number together with the name of the device's uverbs node. */
static const struct question of_driver = { RDMA_NLDEV_CMD_GET_CHARDEV, RDMA_NLDEV_ATTR_CHARDEV_TYPE,
					   "uverbs", sizeof("uverbs") };

static int ask_about(struct nl_sock *sk, uint32_t index, const struct question *question,
		     nl_recvmsg_msg_cb_t visit, void *arg)
{
	struct nl_msg *msg = nlmsg_alloc_simple(NLDEV_TYPE(question->command), 0);

	if (!msg)
		return -FI_ENOMEM;
	if (nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index) ||
	    nla_put(msg, question->attr, question->len, question->data)) {
		nlmsg_free(msg);
		return -FI_ENOMEM;
	}
	return mrf_vnl_ask(sk, msg, visit, arg);
}

/* A value that the kernel does not send stays unset, and the path's state says so. */
static int ask_details(struct nl_sock *sk, struct mrf_vnl_dev *dev)
{
	int ret;

	if (mrf_vnl_kept_find(nl_socket_get_fd(sk), dev))
		return 0;
	ret = ask_about(sk, dev->index, &of_port, on_detail, dev);
	if (ret == -FI_ENOMEM)
		return ret;
	ret = ask_about(sk, dev->index, &of_driver, on_detail, dev);
	mrf_vnl_kept_add(nl_socket_get_fd(sk), dev);
	return ret;
}

static bool is_among(uint32_t ifindex, const struct mrf_vnl_netdevs *netdevs)
{
	size_t i;

	for (i = 0; i < netdevs->count; i++) {
		if (netdevs->ifindex[i] == ifindex)
			return true;
	}
	return false;
}

/* Drops the devices that are known to be elsewhere. */
static void keep_only(int fd, struct dev_list *list, const struct mrf_vnl_netdevs *only)
{
	size_t i, n = 0;
	uint32_t ifindex;

	for (i = 0; i < list->count; i++) {
		ifindex = mrf_vnl_kept_ifindex(fd, &list->devs[i]);
		if (!ifindex || is_among(ifindex, only))
			list->devs[n++] = list->devs[i];
	}
	list->count = n;
}

static int ask_devs(struct nl_sock *sk, struct dev_list *list, const struct mrf_vnl_netdevs *only)
{
	struct nl_msg *msg = nlmsg_alloc_simple(NLDEV_TYPE(RDMA_NLDEV_CMD_GET), NLM_F_DUMP);
	size_t i;
	int ret;

	if (!msg)
		return -FI_ENOMEM;
	ret = mrf_vnl_ask(sk, msg, on_dev, list);
	if (!ret)
		ret = list->err;
	if (!ret && only)
		keep_only(nl_socket_get_fd(sk), list, only);
	for (i = 0; !ret && i < list->count; i++) {
		if (ask_details(sk, &list->devs[i]) == -FI_ENOMEM)
			ret = -FI_ENOMEM;
	}
	return ret;
}

/*
 * The kernel's messages are as long as a page, and at most 8 KiB; libnl's default is 16 KiB. For each
 * message of a list the kernel allocates and clears what the reader has room for, and there is one
 * message for each device.
 */
#define MOST_ROOM 8192

struct nl_sock *mrf_vnl_connect(int protocol, int none, int *err)
{
	struct nl_sock *sk = nl_socket_alloc();

	*err = -FI_ENOMEM;
	if (!sk)
		return NULL;
	nl_socket_disable_auto_ack(sk);
	nl_socket_disable_msg_peek(sk);
	nl_socket_set_msg_buf_size(sk, mrf_min(mrf_page_size(), MOST_ROOM));
	if (!nl_connect(sk, protocol))
		return sk;
	nl_socket_free(sk);
	*err = none;
	return NULL;
}

static struct nl_sock *connect_rdma(int *err)
{
	return mrf_vnl_connect(NETLINK_RDMA, -FI_ENOSYS, err);
}

int mrf_vnl_devs(struct mrf_vnl_dev **devs, size_t *count, const struct mrf_vnl_netdevs *only)
{
	struct dev_list list = { 0 };
	int ret;
	struct nl_sock *sk = connect_rdma(&ret);

	mrf_slow_call();
	if (!sk)
		return ret;
	ret = ask_devs(sk, &list, only);
	nl_socket_free(sk);
	if (ret) {
		free(list.devs);
		return ret;
	}
	*devs = list.devs;
	*count = list.count;
	return 0;
}

/* --- what a device counts --------------------------------------------------- */

#define RETRIES "completer_retry_err"

/* Is this entry of the table of counters that one? */
static bool is_retries(struct nlattr *entry, uint64_t *count)
{
	struct nlattr *tb[RDMA_NLDEV_ATTR_MAX], *name, *value;

	if (nla_parse_nested(tb, RDMA_NLDEV_ATTR_MAX - 1, entry, NULL))
		return false;
	name = tb[RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME];
	value = tb[RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE];
	if (!name || nla_strcmp(name, RETRIES) || !value || nla_len(value) < (int)sizeof(*count))
		return false;
	*count = nla_get_u64(value);
	return true;
}

bool mrf_vnl_parse_retries(const void *attrs, size_t len, uint64_t *count)
{
	struct nlattr *all =
		nla_find((struct nlattr *)attrs, (int)len, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	struct nlattr *entry;
	int rest;

	if (!all)
		return false;
	nla_for_each_nested(entry, all, rest)
	{
		if (is_retries(entry, count))
			return true;
	}
	return false;
}

/* What is looked for, and whether it was found. */
struct search {
	const char *name;
	uint64_t value;
	bool found;
};

static int on_name(struct nl_msg *msg, void *arg)
{
	struct search *search = arg;
	struct mrf_vnl_dev dev = { .index = 0 };

	if (parse_msg(msg, &dev) && !strcmp(dev.name, search->name)) {
		search->value = dev.index;
		search->found = true;
	}
	return NL_OK;
}

static int on_stat(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *hdr = nlmsg_hdr(msg);
	struct search *search = arg;

	search->found =
		mrf_vnl_parse_retries(nlmsg_data(hdr), (size_t)nlmsg_datalen(hdr), &search->value);
	return NL_OK;
}

static int ask_index(struct nl_sock *sk, struct search *dev)
{
	struct nl_msg *msg = nlmsg_alloc_simple(NLDEV_TYPE(RDMA_NLDEV_CMD_GET), NLM_F_DUMP);
	int ret = msg ? mrf_vnl_ask(sk, msg, on_name, dev) : -FI_ENOMEM;

	return ret || dev->found ? ret : -FI_ENODEV;
}

int mrf_vnl_retries(const char *name, uint64_t *count)
{
	struct search dev = { .name = name }, stat = { .name = RETRIES };
	int ret;
	struct nl_sock *sk = connect_rdma(&ret);

	if (!sk)
		return ret;
	ret = ask_index(sk, &dev);
	if (!ret)
		ret = ask_about(sk, (uint32_t)dev.value, &of_counters, on_stat, &stat);
	if (!ret && !stat.found)
		ret = -FI_ENODATA;
	nl_socket_free(sk);
	if (!ret)
		*count = stat.value;
	return ret;
}
