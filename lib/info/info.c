/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/api.h"

#include <stdlib.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "base/compiler.h"
#include "info/query.h"

#define KEY(type) \
	.key = offsetof(struct type, auth_key), .key_size = offsetof(struct type, auth_key_size)

static const struct mrf_info_part parts[] = {
	{ MRF_INFO_PART(fi_info, tx_attr) },
	{ MRF_INFO_PART(fi_info, rx_attr) },
	{ MRF_INFO_PART(fi_info, ep_attr), KEY(fi_ep_attr) },
	{ MRF_INFO_PART(fi_info, domain_attr), KEY(fi_domain_attr), .nstrings = 1,
	  .string = { offsetof(struct fi_domain_attr, name) } },
	{ MRF_INFO_PART(fi_info, fabric_attr), .nstrings = 2,
	  .string = { offsetof(struct fi_fabric_attr, name),
		      offsetof(struct fi_fabric_attr, prov_name) } },
};

static void free_info(struct fi_info *info)
{
	unsigned i;

	free(info->src_addr);
	free(info->dest_addr);
	for (i = 0; i < MRF_ARRAY_SIZE(parts); i++)
		mrf_info_part_free(&parts[i], info);
	if (info->nic)
		fi_close(&info->nic->fid);
	free(info);
}

void mrf_info_free(struct fi_info *info)
{
	struct fi_info *next;

	for (; info; info = next) {
		next = info->next;
		free_info(info);
	}
}

/* Fills an fi_info that is all 0. */
static bool copy_info(struct fi_info *to, const struct fi_info *from)
{
	bool ok;
	unsigned i;

	to->caps = from->caps;
	to->mode = from->mode;
	to->addr_format = from->addr_format;
	to->src_addrlen = from->src_addrlen;
	to->dest_addrlen = from->dest_addrlen;
	to->src_addr = from->src_addr;
	to->dest_addr = from->dest_addr;
	to->handle = from->handle;
	ok = mrf_info_own(&to->src_addr, to->src_addrlen);
	ok &= mrf_info_own(&to->dest_addr, to->dest_addrlen);
	for (i = 0; ok && i < MRF_ARRAY_SIZE(parts); i++)
		ok = mrf_info_part_copy(&parts[i], to, from);
	if (ok && from->nic)
		to->nic = mrf_info_nic_dup(from->nic);
	return ok && !to->nic == !from->nic;
}

static bool new_parts(struct fi_info *info)
{
	bool ok = true;
	unsigned i;

	for (i = 0; ok && i < MRF_ARRAY_SIZE(parts); i++)
		ok = mrf_info_part_new(&parts[i], info);
	return ok;
}

struct fi_info *mrf_info_dup(const struct fi_info *info)
{
	struct fi_info *dup = calloc(1, sizeof(*dup));

	if (!dup || (info ? copy_info(dup, info) : new_parts(dup)))
		return dup;
	free_info(dup);
	return NULL;
}
