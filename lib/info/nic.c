/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/nic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/obj.h"

static void free_device_attr(struct fi_device_attr *attr)
{
	if (attr) {
		free(attr->name);
		free(attr->device_id);
		free(attr->device_version);
		free(attr->vendor_id);
		free(attr->driver);
		free(attr->firmware);
	}
	free(attr);
}

static void free_link_attr(struct fi_link_attr *attr)
{
	if (attr) {
		free(attr->address);
		free(attr->network_type);
	}
	free(attr);
}

static int nic_close(struct fid *fid)
{
	struct fid_nic *nic = mrf_container_of(fid, struct fid_nic, fid);

	free_device_attr(nic->device_attr);
	free_link_attr(nic->link_attr);
	free(nic->bus_attr);
	free(nic);
	return 0;
}

/* Lets other libraries copy an fi_info of ours: they do not know what is in the nic. */
static int nic_control(struct fid *fid, int command, void *arg)
{
	struct fid_nic *copy;

	if (command != FI_DUP)
		return mrf_no_control(fid, command, arg);
	if (!arg)
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 1012,
				  "fi_control(nic, FI_DUP): arg=NULL: must be given");
	copy = mrf_info_nic_dup(mrf_container_of(fid, struct fid_nic, fid));
	if (!copy)
		return mrf_refuse(FI_ENOMEM, FI_LOG_FABRIC, 1013,
				  "fi_control(nic, FI_DUP): there is no memory for the copy");
	*(struct fid_nic **)arg = copy;
	return 0;
}

static struct fi_ops nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = nic_close,
	.bind = mrf_no_bind,
	.control = nic_control,
	.ops_open = mrf_no_ops_open,
};

/* Every attribute there and zeroed. */
static struct fid_nic *nic_alloc(void)
{
	struct fid_nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.ops = &nic_ops;
	nic->device_attr = calloc(1, sizeof(*nic->device_attr));
	nic->bus_attr = calloc(1, sizeof(*nic->bus_attr));
	nic->link_attr = calloc(1, sizeof(*nic->link_attr));
	if (nic->device_attr && nic->bus_attr && nic->link_attr)
		return nic;
	nic_close(&nic->fid);
	return NULL;
}

static bool dup_str(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

static bool dup_device(struct fi_device_attr *to, const struct fi_device_attr *from)
{
	return !from ||
	       (dup_str(&to->name, from->name) && dup_str(&to->device_id, from->device_id) &&
		dup_str(&to->device_version, from->device_version) &&
		dup_str(&to->vendor_id, from->vendor_id) && dup_str(&to->driver, from->driver) &&
		dup_str(&to->firmware, from->firmware));
}

static bool dup_link(struct fi_link_attr *to, const struct fi_link_attr *from)
{
	if (!from)
		return true;
	to->mtu = from->mtu;
	to->speed = from->speed;
	to->state = from->state;
	return dup_str(&to->address, from->address) &&
	       dup_str(&to->network_type, from->network_type);
}

#define RXE_HEADERS 80 /* bytes of a frame that rxe keeps for headers */

/* The first line of a file of sysfs; "" when it cannot be read. */
static void read_line(const char *path, char *line, size_t len)
{
	FILE *file = fopen(path, "re");

	line[0] = '\0';
	if (!file)
		return;
	if (!fgets(line, (int)len, file))
		line[0] = '\0';
	fclose(file);
}

/*
 * The MTU that rxe derives from the interface's: the next of 256, 512 ... 4096 below it.
 * 0: unknown.
 */
static size_t link_mtu(const char *netdev)
{
	char path[96], line[32];
	size_t mtu = 4096, frame;

	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", netdev);
	read_line(path, line, sizeof(line));
	frame = strtoul(line, NULL, 10);
	if (!frame)
		return 0;
	while (mtu > 256 && mtu + RXE_HEADERS > frame)
		mtu /= 2;
	return mtu;
}

/* Bits per second, from the device's text ("2.5 Gb/sec (1X SDR)"). 0: unknown. */
static size_t link_speed(const char *device)
{
	char path[128], line[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/rate", device);
	read_line(path, line, sizeof(line));
	return (size_t)(strtod(line, NULL) * 1e9);
}

struct fid_nic *mrf_info_nic_make(const char *device, const char *netdev, const char *address)
{
	const struct fi_device_attr device_attr = {
		.name = (char *)device,
		.driver = (char *)"rdma_rxe",
	};
	const struct fi_link_attr link_attr = {
		.address = (char *)address,
		.mtu = link_mtu(netdev),
		.speed = link_speed(device),
		.state = FI_LINK_UP,
		.network_type = (char *)"Ethernet",
	};
	struct fid_nic *nic = nic_alloc();

	if (!nic)
		return NULL;
	nic->bus_attr->bus_type = FI_BUS_UNKNOWN;
	if (dup_device(nic->device_attr, &device_attr) && dup_link(nic->link_attr, &link_attr))
		return nic;
	nic_close(&nic->fid);
	return NULL;
}

/* prov_attr is its provider's secret and cannot be copied. */
struct fid_nic *mrf_info_nic_dup(const struct fid_nic *from)
{
	struct fid_nic *nic = nic_alloc();

	if (!nic)
		return NULL;
	if (from->bus_attr)
		*nic->bus_attr = *from->bus_attr;
	if (dup_device(nic->device_attr, from->device_attr) &&
	    dup_link(nic->link_attr, from->link_attr))
		return nic;
	nic_close(&nic->fid);
	return NULL;
}
