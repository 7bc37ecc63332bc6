/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/vnl_kept.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

static bool is_this_dev_locked(const struct mrf_vnl_dev *dev)
{
	const struct mrf_vnl_dev *kept = &dev_place(dev)->dev;

	return kept->has_driver && kept->index == dev->index && !strcmp(kept->name, dev->name);
}

bool mrf_vnl_kept_find(int fd, struct mrf_vnl_dev *dev)
{
	const struct kept_dev *kept = dev_place(dev);
	uint32_t speed = speed_of(fd, dev->netdev);
	bool found;

	mrf_static_take(&kept_lock);
	found = is_this_dev_locked(dev) && kept->speed == speed &&
		kept->dev.ifindex == dev->ifindex;
	if (found) {
		dev->has_driver = true;
		dev->driver = kept->dev.driver;
		dev->rate = kept->dev.rate;
	}
	mrf_static_release(&kept_lock);
	return found;
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
	uint32_t ifindex;

	mrf_static_take(&kept_lock);
	ifindex = is_this_dev_locked(dev) ? dev_place(dev)->dev.ifindex : 0;
	mrf_static_release(&kept_lock);
	return ifindex;
}
