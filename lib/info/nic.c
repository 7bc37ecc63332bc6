/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/query.h"

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

/*
 * The MTU that rxe derives from the interface's: the next of 256, 512 ... 4096 below it.
 * 0: unknown.
 */
static size_t link_mtu(size_t frame)
{
	size_t mtu = 4096;

	if (!frame)
		return 0;
	while (mtu > 256 && mtu + RXE_HEADERS > frame)
		mtu /= 2;
	return mtu;
}

struct fid_nic *mrf_info_nic_make(const struct mrf_vnl_path *path, const char *address)
{
	struct fi_device_attr device_attr = {
		.name = (char *)path->dev.name,
		.driver = (char *)"rdma_rxe",
	};
	struct fi_link_attr link_attr = {
		.address = (char *)address,
		.mtu = link_mtu(path->mtu),
		.speed = path->dev.rate,
		.state = FI_LINK_UP,
		.network_type = (char *)"Ethernet",
	};
	const struct fid_nic nic = { .device_attr = &device_attr, .link_attr = &link_attr };

	return mrf_info_nic_dup(&nic);
}
