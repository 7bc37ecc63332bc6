/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/names.h"
#include "contract/limits.h"
#include "contract/mr_mode.h"
#include "contract/rules.h"
#include "domain/domain_int.h"
#include "verbs/vnl_path.h"

static int check_mr_mode(uint64_t mode)
{
	char names[256];

	if (mrf_mr_mode_known(mode))
		return 0;
	mrf_names_bits(&mrf_names_mr_mode, mode, names, sizeof(names));
	return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2121,
			  "fi_domain: mr_mode=%#lx (%s), but must be FI_MR_BASIC or "
			  "FI_MR_SCALABLE alone, or a set of FI_MR_LOCAL, _RAW, "
			  "_VIRT_ADDR, _ALLOCATED, _PROV_KEY, _MMU_NOTIFY, _RMA_EVENT, "
			  "_ENDPOINT and _HMEM, as fi_getinfo returns it",
			  mode, names);
}

/* The capability and the bit: both or neither. */
static int check_hmem(uint64_t caps, uint64_t mode)
{
	if (mode & FI_MR_HMEM && !(caps & FI_HMEM))
		return mrf_refuse(
			FI_EINVAL, FI_LOG_DOMAIN, 2127,
			"fi_domain: mr_mode has FI_MR_HMEM, but caps=%#lx has no FI_HMEM: "
			"ask fi_getinfo for the capability",
			caps);
	if (caps & FI_HMEM && !(mode & FI_MR_HMEM))
		return mrf_refuse(
			FI_EINVAL, FI_LOG_DOMAIN, 2128,
			"fi_domain: caps has FI_HMEM, but mr_mode=%#lx has no FI_MR_HMEM: "
			"leave both as fi_getinfo returns them",
			mode);
	return 0;
}

static int check_domain_key(const struct mrf_fabric *fabric, const struct fi_domain_attr *attr)
{
	if (!attr->auth_key_size || !mrf_rule_auth_key(fabric->api_version))
		return 0;
	if (!attr->auth_key)
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2154,
				  "fi_domain: auth_key must not be NULL, because "
				  "auth_key_size is %zu",
				  attr->auth_key_size);
	if (attr->auth_key_size > MRF_LIMIT_AUTH_KEY)
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2155,
				  "fi_domain: auth_key_size=%zu: an authorization key "
				  "has at most %d bytes",
				  attr->auth_key_size, MRF_LIMIT_AUTH_KEY);
	return 0;
}

static int check_fabric(const struct mrf_fabric *fabric, const struct fi_fabric_attr *attr)
{
	if (!attr || !attr->name || !fabric->name || !strcmp(attr->name, fabric->name))
		return 0;
	return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2123,
			  "fi_domain: info is for fabric \"%s\", but this is fabric \"%s\"",
			  attr->name, fabric->name);
}

int mrf_domain_check(const struct mrf_fabric *fabric, const struct fi_info *info)
{
	uint64_t mode;
	int ret;

	if (!info->domain_attr)
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2124,
				  "fi_domain: info->domain_attr must not be NULL");
	ret = check_fabric(fabric, info->fabric_attr);
	if (ret)
		return ret;
	mode = (uint64_t)(unsigned)info->domain_attr->mr_mode;
	ret = check_mr_mode(mode);
	if (!ret)
		ret = check_hmem(info->caps, mode);
	if (ret)
		return ret;
	return check_domain_key(fabric, info->domain_attr);
}

static int refuse_given(const struct fi_info *info, const struct mrf_form *form)
{
	const struct sockaddr *sa = info->src_addr;

	if (form->kind != MRF_FORM_SOCKET)
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2126,
				  "fi_domain: the %zu byte%s of src_addr are no address of "
				  "format %s",
				  info->src_addrlen, MRF_S(info->src_addrlen),
				  mrf_names_enum(&mrf_names_addr_format, form->format));
	return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2126,
			  "fi_domain: src_addr has family %d and %zu byte%s, but must be a "
			  "sockaddr_in or sockaddr_in6",
			  sa->sa_family, info->src_addrlen, MRF_S(info->src_addrlen));
}

static int given_address(const struct fi_info *info, const struct mrf_form *form,
			 union mrf_addr *addr)
{
	if (info->src_addrlen < sizeof(addr->sa.sa_family))
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2125,
				  "fi_domain: src_addrlen=%zu is too short for an address",
				  info->src_addrlen);
	if (!mrf_form_take(form, info->src_addr, info->src_addrlen, addr))
		return refuse_given(info, form);
	mrf_addr_set_port(addr, 0);
	return 0;
}

static bool path_fits(const struct mrf_vnl_path *path, const struct fi_info *info,
		      const struct mrf_form *form)
{
	const char *name = info->domain_attr->name;

	if (path->state != MRF_VNL_USABLE || (name && strcmp(name, path->dev.name)))
		return false;
	switch (info->addr_format) {
	case FI_SOCKADDR_IN:
		return path->addr.sa.sa_family == AF_INET;
	case FI_SOCKADDR_IN6:
		return path->addr.sa.sa_family == AF_INET6;
	default:
		return mrf_form_has(form, path->addr.sa.sa_family);
	}
}

static int found_address(const struct fi_info *info, const struct mrf_form *form,
			 union mrf_addr *addr)
{
	const char *name = info->domain_attr->name;
	struct mrf_vnl_path *paths;
	size_t count, i;
	int ret = mrf_vnl_paths(&paths, &count, false, NULL);

	if (ret)
		return mrf_refuse(-ret, FI_LOG_DOMAIN, 5103,
				  "fi_domain: src_addr=NULL, and RDMA devices cannot be listed");
	for (i = 0; i < count && !path_fits(&paths[i], info, form); i++)
		;
	if (i < count)
		*addr = paths[i].addr;
	free(paths);
	if (i < count)
		return 0;
	return mrf_refuse(FI_ENODEV, FI_LOG_DOMAIN, 5104,
			  "fi_domain: src_addr=NULL, and no usable device named \"%s\" has an "
			  "address of format %u",
			  name ? name : "(any)", info->addr_format);
}

int mrf_domain_address(const struct fi_info *info, const struct mrf_form *form,
		       union mrf_addr *addr)
{
	return info->src_addr ? given_address(info, form, addr) : found_address(info, form, addr);
}
