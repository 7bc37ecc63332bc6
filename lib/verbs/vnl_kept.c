/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/vnl_kept.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <infiniband/verbs.h>
#include "base/compiler.h"
#include "base/renew.h"
#include "verbs/vnl.h"

/* A device has the one place that its index leads to. */
static struct kept_dev {
	struct mrf_vnl_dev dev; /* has_driver: the place is taken */
	uint32_t speed;
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

static bool is_this_dev(const struct mrf_vnl_dev *kept, const struct mrf_vnl_dev *dev)
{
	return kept->has_driver && kept->index == dev->index && kept->guid == dev->guid &&
	       !strcmp(kept->name, dev->name);
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

	if (!is_this_dev(&kept.dev, dev) || !is_running(fd, &kept.dev) ||
	    speed_of(fd, kept.dev.netdev) != kept.speed)
		return false;
	*dev = kept.dev;
	dev->port_state = IBV_PORT_ACTIVE;
	return true;
}

void mrf_vnl_kept_add(int fd, struct mrf_vnl_dev *dev)
{
	uint32_t speed = speed_of(fd, dev->netdev);

	dev->rate = read_rate(dev->name);
	if (!dev->has_driver)
		return;
	mrf_static_take(&kept_lock);
	*dev_place(dev) = (struct kept_dev){ *dev, speed };
	mrf_static_release(&kept_lock);
}

uint32_t mrf_vnl_kept_ifindex(const struct mrf_vnl_dev *dev)
{
	const struct kept_dev kept = kept_at(dev);

	return is_this_dev(&kept.dev, dev) ? kept.dev.ifindex : 0;
}
