/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/query.h"

#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "contract/limits.h"
#include "contract/rules.h"
#include "domain/domain.h"
#include "info/api.h"
#include "proto/rawkey.h"

uint32_t mrf_info_prov_version(void)
{
	char *rest;
	unsigned long major = strtoul(PACKAGE_VERSION, &rest, 10);

	return FI_VERSION((uint32_t)major, *rest ? (uint32_t)strtoul(rest + 1, NULL, 10) : 0);
}

/* --- capabilities ---------------------------------------------------------- */

/*
 * The capabilities of one side, transmit or receive: those that were asked of it,
 * otherwise its share of the whole; messages, FI_RMA or FI_ATOMIC without a direction would be no
 * share.
 */
static uint64_t part_caps(uint64_t asked, uint64_t info_caps, uint64_t offered)
{
	uint64_t share = info_caps & offered;

	asked = mrf_info_asked_caps(asked);
	if (asked)
		return mrf_info_with_directions(asked, offered);
	if (!(share & MRF_CAPS_RMA_WAYS))
		share &= ~(uint64_t)(FI_RMA | FI_ATOMIC);
	if (!(share & MRF_CAPS_MSG_WAYS))
		share &= ~(uint64_t)(MRF_CAPS_MSG_WHATS | FI_MULTI_RECV);
	return share;
}

/* --- attributes as hinted -------------------------------------------------- */

static size_t or_size(size_t hint, size_t offered)
{
	return hint ? hint : offered;
}

static void make_tx(struct fi_tx_attr *tx, uint64_t caps, const struct fi_tx_attr *has,
		    const struct fi_tx_attr *hint)
{
	*tx = *has;
	tx->op_flags = 0;
	tx->msg_order = has->msg_order & MRF_MSG_ORDER;
	tx->size = MRF_LIMIT_TX_SIZE;
	tx->caps = part_caps(hint ? hint->caps : 0, caps, has->caps & MRF_CAPS_TX);
	if (!hint || !hint->caps)
		tx->caps |= caps & MRF_CAPS_TX_EXTRA;
	if (!hint)
		return;
	tx->op_flags = hint->op_flags;
	tx->msg_order |= hint->msg_order & MRF_MSG_ORDER_EXTRA;
	tx->inject_size = or_size(hint->inject_size, tx->inject_size);
	tx->size = or_size(hint->size, tx->size);
	tx->iov_limit = or_size(hint->iov_limit, tx->iov_limit);
	tx->rma_iov_limit = or_size(hint->rma_iov_limit, tx->rma_iov_limit);
}

static void make_rx(struct fi_rx_attr *rx, uint64_t caps, const struct fi_rx_attr *has,
		    const struct fi_rx_attr *hint)
{
	*rx = *has;
	rx->op_flags = 0;
	rx->msg_order = has->msg_order & MRF_MSG_ORDER;
	rx->size = MRF_LIMIT_RX_SIZE;
	rx->caps = part_caps(hint ? hint->caps : 0, caps, has->caps & MRF_CAPS_RX);
	if (!hint || !hint->caps)
		rx->caps |= caps & MRF_CAPS_RX_EXTRA;
	if (!hint)
		return;
	rx->op_flags = hint->op_flags;
	rx->msg_order |= hint->msg_order & MRF_MSG_ORDER_EXTRA;
	rx->size = or_size(hint->size, rx->size);
	rx->iov_limit = or_size(hint->iov_limit, rx->iov_limit);
}

/*
 * A requirement that may be relaxed is answered as asked; progress is automatic
 * nevertheless.
 */
static void make_domain(struct fi_domain_attr *domain, const struct mrf_info_query *query,
			const struct fi_domain_attr *hint)
{
	*domain = query->has->domain;
	domain->threading = FI_THREAD_SAFE;
	domain->control_progress = domain->data_progress = FI_PROGRESS_AUTO;
	domain->av_type = query->profile ? query->profile->av_type : FI_AV_UNSPEC;
	domain->auth_key_size = 0;
	if (!hint)
		return;
	domain->domain = hint->domain;
	if (hint->threading)
		domain->threading = hint->threading;
	if (hint->control_progress)
		domain->control_progress = hint->control_progress;
	if (hint->data_progress)
		domain->data_progress = hint->data_progress;
	if (hint->av_type && !(query->profile && query->profile->av == MRF_AV_TABLES))
		domain->av_type = hint->av_type;
}

/* --- addresses and names --------------------------------------------------- */

static bool copy_addr(void **to, size_t *len, const struct mrf_form *form,
		      const union mrf_addr *addr)
{
	char whole[MRF_FORM_MAX];

	*len = mrf_form_put(form, addr, whole, sizeof(whole));
	*to = mrf_info_copy(whole, *len);
	return *to;
}

static bool make_names(struct fi_info *info, const struct mrf_vnl_path *path)
{
	char network[INET6_ADDRSTRLEN + 4];

	mrf_info_network(path, network, sizeof(network));
	info->fabric_attr->name = strdup(network);
	info->fabric_attr->prov_name = strdup(MRF_PROV_NAME);
	info->domain_attr->name = strdup(path->dev.name);
	return info->fabric_attr->name && info->fabric_attr->prov_name && info->domain_attr->name;
}

static bool make_addrs(struct fi_info *info, const struct mrf_form *form,
		       const struct mrf_vnl_path *path, const struct mrf_info_match *match)
{
	char text[INET6_ADDRSTRLEN];
	size_t len;

	info->addr_format = mrf_form_format(form, match->src.sa.sa_family);
	inet_ntop(match->src.sa.sa_family, mrf_addr_host(&match->src.sa, &len), text, sizeof(text));
	info->nic = mrf_info_nic_make(path, text);
	if (!info->nic || !copy_addr(&info->src_addr, &info->src_addrlen, form, &match->src))
		return false;
	return !match->has_dest ||
	       copy_addr(&info->dest_addr, &info->dest_addrlen, form, &match->dest);
}

static bool copy_hinted_key(uint8_t **to, size_t *to_size, const uint8_t *from, size_t size)
{
	*to = mrf_info_copy(from, size);
	*to_size = size;
	return *to || !size;
}

/* Authorization keys are answered as hinted, if the version knows them. */
static bool make_keys(struct fi_info *info, const struct mrf_info_query *query)
{
	const struct fi_domain_attr *domain = query->hints ? query->hints->domain_attr : NULL;
	const struct fi_ep_attr *ep = query->hints ? query->hints->ep_attr : NULL;

	if (!mrf_rule_auth_key(query->version))
		return true;
	if (domain &&
	    !copy_hinted_key(&info->domain_attr->auth_key, &info->domain_attr->auth_key_size,
			     domain->auth_key, domain->auth_key_size))
		return false;
	return !ep || copy_hinted_key(&info->ep_attr->auth_key, &info->ep_attr->auth_key_size,
				      ep->auth_key, ep->auth_key_size);
}

/*
 * An open domain has its mode already; mrf_info_match made sure that the offer covers
 * it.
 */
static int mr_mode_for(const struct mrf_info_query *query, const struct fid_domain *open)
{
	if (open)
		return mrf_container_of(open, struct mrf_domain, fid)->mr_mode;
	return (int)mrf_info_mode_answer(query);
}

static void make_mr(struct fi_info *info, const struct mrf_info_query *query)
{
	struct fi_domain_attr *attr = info->domain_attr;

	info->mode = mrf_mr_mode_answer_flag(query->offer.table, &query->mr);
	attr->mr_mode = mr_mode_for(query, attr->domain);
	/* The application needs room for the longest raw key. */
	if (attr->mr_mode & FI_MR_RAW)
		attr->mr_key_size = MRF_RAWKEY_MAX;
}

static void make_attrs(struct fi_info *info, const struct mrf_info_query *query)
{
	const struct fi_info *hints = query->hints;

	info->caps = mrf_info_mode_caps(query);
	make_tx(info->tx_attr, info->caps, &query->has->tx, hints ? hints->tx_attr : NULL);
	make_rx(info->rx_attr, info->caps, &query->has->rx, hints ? hints->rx_attr : NULL);
	if (mrf_info_mode_withheld(query))
		info->rx_attr->caps &= FI_HMEM | MRF_CAPS_MSG_WHATS | FI_RECV | FI_MULTI_RECV |
				       MRF_CAPS_RX_LABELS; /* whatever was asked of it */
	*info->ep_attr = query->has->ep;
	info->ep_attr->auth_key_size = 0;
	if (hints && hints->ep_attr && hints->ep_attr->mem_tag_format)
		info->ep_attr->mem_tag_format = hints->ep_attr->mem_tag_format;
	make_domain(info->domain_attr, query, hints ? hints->domain_attr : NULL);
	info->domain_attr->caps = info->caps & MRF_CAPS_SECONDARY;
	make_mr(info, query);
	if (hints && hints->fabric_attr)
		info->fabric_attr->fabric = hints->fabric_attr->fabric;
	info->fabric_attr->prov_version = mrf_info_prov_version();
	info->fabric_attr->api_version = query->version;
}

struct fi_info *mrf_info_make(const struct mrf_info_query *query, const struct mrf_vnl_path *path,
			      const struct mrf_info_match *match)
{
	struct fi_info *info = mrf_info_dup(NULL);

	if (!info)
		return NULL;
	make_attrs(info, query);
	if (make_names(info, path) && make_addrs(info, query->form, path, match) &&
	    make_keys(info, query))
		return info;
	mrf_info_free(info);
	return NULL;
}
