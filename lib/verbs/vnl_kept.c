/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/vnl_kept.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <infiniband/verbs.h>
#include "base/compiler.h"
#include "base/renew.h"
#include "verbs/vnl.h"

/* A device has the one place that its index leads to. */
static struct kept_dev {
	struct mrf_vnl_dev dev; /* has_driver: the place is taken */
	uint32_t speed;
	uint64_t netns; /* the network namespace that its interface's index is of */
} kept_devs[64];

static struct mrf_static_lock kept_lock = MRF_STATIC_LOCK(NULL);

static struct kept_dev *dev_place(const struct mrf_vnl_dev *dev)
{
	return &kept_devs[dev->index % MRF_ARRAY_SIZE(kept_devs)];
}

/* In Mbit/s; 0: the interface does not say, or is not visible here. */
static uint32_t speed_of(int fd, const char *netdev)
{
	struct ethtool_cmd cmd = { .cmd = ETHTOOL_GSET };
	struct ifreq ifr = { .ifr_data = (void *)&cmd };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", netdev);
	return ioctl(fd, SIOCETHTOOL, &ifr) ? 0 : ethtool_cmd_speed(&cmd);
}

/* The network namespace of the socket; 0: the kernel does not say. */
static uint64_t netns_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) ? 0 : cookie;
}

/* From the kernel's text ("2.5 Gb/sec (1X SDR)"). */
static size_t read_rate(const char *device)
{
	char path[128], line[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/rate", device);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return (size_t)(strtod(line, NULL) * 1e9);
}

static bool is_this_dev(int fd, const struct kept_dev *kept, const struct mrf_vnl_dev *dev)
{
	return kept->dev.has_driver && kept->dev.index == dev->index &&
	       kept->dev.guid == dev->guid && !strcmp(kept->dev.name, dev->name) &&
	       kept->netns == netns_of(fd);
}

static struct kept_dev kept_at(const struct mrf_vnl_dev *dev)
{
	struct kept_dev kept;

	mrf_static_take(&kept_lock);
	kept = *dev_place(dev);
	mrf_static_release(&kept_lock);
	return kept;
}

/* Sets the name that the interface has now. False: it is gone, or down, or has no carrier. */
static bool is_running(int fd, struct mrf_vnl_dev *dev)
{
	struct ifreq ifr = { .ifr_ifindex = (int)dev->ifindex };

	if (ioctl(fd, SIOCGIFNAME, &ifr))
		return false;
	memcpy(dev->netdev, ifr.ifr_name, sizeof(dev->netdev));
	return !ioctl(fd, SIOCGIFFLAGS, &ifr) && ifr.ifr_flags & IFF_UP &&
	       ifr.ifr_flags & IFF_RUNNING;
}

bool mrf_vnl_kept_find(int fd, struct mrf_vnl_dev *dev)
{
	struct kept_dev kept = kept_at(dev);

	if (!is_this_dev(fd, &kept, dev) || !is_running(fd, &kept.dev) ||
	    speed_of(fd, kept.dev.netdev) != kept.speed)
		return false;
	*dev = kept.dev;
	dev->port_state = IBV_PORT_ACTIVE;
	return true;
}

void mrf_vnl_kept_add(int fd, struct mrf_vnl_dev *dev)
{
	uint32_t speed = speed_of(fd, dev->netdev);
	uint64_t netns = netns_of(fd);

	dev->rate = read_rate(dev->name);
	if (!dev->has_driver || !netns)
		return;
	mrf_static_take(&kept_lock);
	*dev_place(dev) = (struct kept_dev){ *dev, speed, netns };
	mrf_static_release(&kept_lock);
}

uint32_t mrf_vnl_kept_ifindex(int fd, const struct mrf_vnl_dev *dev)
{
	const struct kept_dev kept = kept_at(dev);

	return is_this_dev(fd, &kept, dev) ? kept.dev.ifindex : 0;
}
