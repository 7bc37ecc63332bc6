/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/info.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "auth/auth.h"
#include "base/compiler.h"
#include "info/nic.h"

/* *to is NULL already and stays so when there is nothing to copy. */
static bool copy_mem(void **to, const void *from, size_t len)
{
	if (!from || !len)
		return true;
	*to = malloc(len);
	if (*to)
		memcpy(*to, from, len);
	return *to;
}

static bool copy_str(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

static bool copy_auth_key(uint8_t **to, const uint8_t *from, size_t len)
{
	void *copy = NULL;
	bool ok = copy_mem(&copy, from, len);

	*to = copy;
	return ok;
}

/*
 * Overwrites the key before it is freed; a size that is larger than the key does no harm.
 */
static void free_key(uint8_t *key, size_t size)
{
	if (key)
		mrf_auth_wipe(key, mrf_min(size, malloc_usable_size(key)));
	free(key);
}

static void free_ep_attr(struct fi_ep_attr *attr)
{
	if (attr)
		free_key(attr->auth_key, attr->auth_key_size);
	free(attr);
}

static void free_domain_attr(struct fi_domain_attr *attr)
{
	if (attr) {
		free(attr->name);
		free_key(attr->auth_key, attr->auth_key_size);
	}
	free(attr);
}

static void free_fabric_attr(struct fi_fabric_attr *attr)
{
	if (attr) {
		free(attr->name);
		free(attr->prov_name);
	}
	free(attr);
}

static void free_info(struct fi_info *info)
{
	free(info->src_addr);
	free(info->dest_addr);
	free(info->tx_attr);
	free(info->rx_attr);
	free_ep_attr(info->ep_attr);
	free_domain_attr(info->domain_attr);
	free_fabric_attr(info->fabric_attr);
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

static struct fi_info *alloc_info(void)
{
	struct fi_info *info = calloc(1, sizeof(*info));

	if (!info)
		return NULL;
	info->tx_attr = calloc(1, sizeof(*info->tx_attr));
	info->rx_attr = calloc(1, sizeof(*info->rx_attr));
	info->ep_attr = calloc(1, sizeof(*info->ep_attr));
	info->domain_attr = calloc(1, sizeof(*info->domain_attr));
	info->fabric_attr = calloc(1, sizeof(*info->fabric_attr));
	if (info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr &&
	    info->fabric_attr)
		return info;
	free_info(info);
	return NULL;
}

static bool dup_tx_attr(struct fi_info *to, const struct fi_tx_attr *from)
{
	void *copy = NULL;
	bool ok = copy_mem(&copy, from, sizeof(*from));

	to->tx_attr = copy;
	return ok;
}

static bool dup_rx_attr(struct fi_info *to, const struct fi_rx_attr *from)
{
	void *copy = NULL;
	bool ok = copy_mem(&copy, from, sizeof(*from));

	to->rx_attr = copy;
	return ok;
}

static bool dup_ep_attr(struct fi_info *to, const struct fi_ep_attr *from)
{
	if (!from)
		return true;
	to->ep_attr = malloc(sizeof(*from));
	if (!to->ep_attr)
		return false;
	*to->ep_attr = *from;
	return copy_auth_key(&to->ep_attr->auth_key, from->auth_key, from->auth_key_size);
}

static bool dup_domain_attr(struct fi_info *to, const struct fi_domain_attr *from)
{
	struct fi_domain_attr *attr;
	bool ok;

	if (!from)
		return true;
	attr = malloc(sizeof(*attr));
	if (!attr)
		return false;
	*attr = *from;
	ok = copy_auth_key(&attr->auth_key, from->auth_key, from->auth_key_size);
	ok = copy_str(&attr->name, from->name) && ok;
	to->domain_attr = attr;
	return ok;
}

static bool dup_fabric_attr(struct fi_info *to, const struct fi_fabric_attr *from)
{
	struct fi_fabric_attr *attr;
	bool ok;

	if (!from)
		return true;
	attr = malloc(sizeof(*attr));
	if (!attr)
		return false;
	*attr = *from;
	ok = copy_str(&attr->name, from->name);
	ok = copy_str(&attr->prov_name, from->prov_name) && ok;
	to->fabric_attr = attr;
	return ok;
}

static bool dup_nic(struct fi_info *to, const struct fid_nic *from)
{
	to->nic = from ? mrf_info_nic_dup(from) : NULL;
	return to->nic || !from;
}

struct fi_info *mrf_info_dup(const struct fi_info *info)
{
	struct fi_info *dup;

	if (!info)
		return alloc_info();
	dup = calloc(1, sizeof(*dup));
	if (!dup)
		return NULL;
	dup->caps = info->caps;
	dup->mode = info->mode;
	dup->addr_format = info->addr_format;
	dup->src_addrlen = info->src_addrlen;
	dup->dest_addrlen = info->dest_addrlen;
	dup->handle = info->handle;
	if (copy_mem(&dup->src_addr, info->src_addr, info->src_addrlen) &&
	    copy_mem(&dup->dest_addr, info->dest_addr, info->dest_addrlen) &&
	    dup_tx_attr(dup, info->tx_attr) && dup_rx_attr(dup, info->rx_attr) &&
	    dup_ep_attr(dup, info->ep_attr) && dup_domain_attr(dup, info->domain_attr) &&
	    dup_fabric_attr(dup, info->fabric_attr) && dup_nic(dup, info->nic))
		return dup;
	free_info(dup);
	return NULL;
}
