/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "obj/obj.h"

static const struct mrf_info_part parts[] = {
	{ MRF_INFO_PART(fid_nic, device_attr), .nstrings = 6,
	  .string = { offsetof(struct fi_device_attr, name),
		      offsetof(struct fi_device_attr, device_id),
		      offsetof(struct fi_device_attr, device_version),
		      offsetof(struct fi_device_attr, vendor_id),
		      offsetof(struct fi_device_attr, driver),
		      offsetof(struct fi_device_attr, firmware) } },
	{ MRF_INFO_PART(fid_nic, bus_attr) },
	{ MRF_INFO_PART(fid_nic, link_attr), .nstrings = 2,
	  .string = { offsetof(struct fi_link_attr, address),
		      offsetof(struct fi_link_attr, network_type) } },
};

static int nic_close(struct fid *fid)
{
	struct fid_nic *nic = mrf_container_of(fid, struct fid_nic, fid);
	unsigned i;

	for (i = 0; i < MRF_ARRAY_SIZE(parts); i++)
		mrf_info_part_free(&parts[i], nic);
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
				  "fi_control(nic, FI_DUP): arg must not be NULL");
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

/* prov_attr is its provider's secret and cannot be copied. */
struct fid_nic *mrf_info_nic_dup(const struct fid_nic *from)
{
	struct fid_nic *nic = calloc(1, sizeof(*nic));
	bool ok = true;
	unsigned i;

	if (!nic)
		return NULL;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.ops = &nic_ops;
	for (i = 0; ok && i < MRF_ARRAY_SIZE(parts); i++)
		ok = mrf_info_part_copy(&parts[i], nic, from) && mrf_info_part_new(&parts[i], nic);
	if (ok)
		return nic;
	nic_close(&nic->fid);
	return NULL;
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
	struct fi_device_attr device_attr = {
		.name = (char *)device,
		.driver = (char *)"rdma_rxe",
	};
	struct fi_link_attr link_attr = {
		.address = (char *)address,
		.mtu = link_mtu(netdev),
		.speed = link_speed(device),
		.state = FI_LINK_UP,
		.network_type = (char *)"Ethernet",
	};
	const struct fid_nic nic = { .device_attr = &device_attr, .link_attr = &link_attr };

	return mrf_info_nic_dup(&nic);
}
