/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/query.h"

#include <stdio.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "base/env.h"
#include "base/log.h"
#include "base/names.h"
#include "contract/limits.h"
#include "contract/rules.h"
#include "info/decline.h"
#include "obj/obj.h"

/* How a requested value is compared with the offer. 0 always accepts any value. */
enum kind {
	AT_MOST, /* a number: not more than offered */
	BITS,	 /* a set: every bit is in the offer */
	EQUAL,	 /* this one value */
	KNOWN,	 /* an enum of which everything up to the last value is offered */
	ANY	 /* not compared: what comes back does not depend on it */
};

#define WHOLE SIZE_MAX

struct row {
	const char *field;
	size_t part; /* where fi_info has the pointer to it; WHOLE: the field is fi_info's own */
	size_t offset;
	size_t offer; /* where struct mrf_info_offer has it */
	size_t size;
	enum kind kind;
	const struct mrf_names *names; /* of the values, or NULL: a number */
	uint32_t since; /* before this version an application does not know the field */
};

#define ROW(name, part_, type_, field_, offer_, kind_, names_, since_)                           \
	{                                                                                        \
		.field = name, .part = (part_), .offset = offsetof(struct type_, field_),        \
		.offer = offsetof(struct mrf_info_offer, offer_),                                \
		.size = sizeof(((struct type_ *)0)->field_), .kind = (kind_), .names = (names_), \
		.since = (since_),                                                               \
	}
#define INFO(field, ...) ROW(#field, WHOLE, fi_info, field, field, __VA_ARGS__, 0)
#define PART(part, side, field, ...)                                                         \
	ROW(#part "->" #field, offsetof(struct fi_info, part), fi_##part, field, side.field, \
	    __VA_ARGS__)
#define TX(...) PART(tx_attr, tx, __VA_ARGS__)
#define RX(...) PART(rx_attr, rx, __VA_ARGS__, 0)
#define EP(...) PART(ep_attr, ep, __VA_ARGS__)
#define DOMAIN(...) PART(domain_attr, domain, __VA_ARGS__)

#define V1_5 FI_VERSION(1, 5)

/* Traffic classes are wishes that need not be granted: any value is accepted. */
static const struct row rows[] = {
	INFO(caps, BITS, &mrf_names_caps),
	EP(type, EQUAL, &mrf_names_ep_type, 0),
	EP(protocol, EQUAL, &mrf_names_protocol, 0),
	EP(protocol_version, AT_MOST, NULL, 0),
	EP(max_msg_size, AT_MOST, NULL, 0),
	EP(max_order_raw_size, AT_MOST, NULL, 0),
	EP(max_order_war_size, AT_MOST, NULL, 0),
	EP(max_order_waw_size, AT_MOST, NULL, 0),
	EP(tx_ctx_cnt, AT_MOST, NULL, 0),
	EP(rx_ctx_cnt, AT_MOST, NULL, 0),
	EP(auth_key_size, AT_MOST, NULL, V1_5),
	TX(caps, BITS, &mrf_names_caps, 0),
	TX(op_flags, BITS, &mrf_names_op_flags, 0),
	TX(msg_order, BITS, &mrf_names_msg_order, 0),
	TX(comp_order, BITS, &mrf_names_comp_order, 0),
	TX(inject_size, AT_MOST, NULL, 0),
	TX(size, AT_MOST, NULL, 0),
	TX(iov_limit, AT_MOST, NULL, 0),
	TX(rma_iov_limit, AT_MOST, NULL, 0),
	RX(caps, BITS, &mrf_names_caps),
	RX(op_flags, BITS, &mrf_names_op_flags),
	RX(msg_order, BITS, &mrf_names_msg_order),
	RX(comp_order, BITS, &mrf_names_comp_order),
	RX(total_buffered_recv, AT_MOST, NULL),
	RX(size, AT_MOST, NULL),
	RX(iov_limit, AT_MOST, NULL),
	DOMAIN(threading, KNOWN, NULL, 0),
	DOMAIN(control_progress, KNOWN, NULL, 0),
	DOMAIN(data_progress, KNOWN, NULL, 0),
	DOMAIN(resource_mgmt, KNOWN, NULL, 0),
	DOMAIN(av_type, KNOWN, NULL, 0),
	DOMAIN(mr_key_size, ANY, NULL, 0),
	DOMAIN(cq_data_size, AT_MOST, NULL, 0),
	DOMAIN(cq_cnt, ANY, NULL, 0),
	DOMAIN(ep_cnt, ANY, NULL, 0),
	DOMAIN(tx_ctx_cnt, ANY, NULL, 0),
	DOMAIN(rx_ctx_cnt, ANY, NULL, 0),
	DOMAIN(cntr_cnt, ANY, NULL, 0),
	DOMAIN(max_ep_tx_ctx, AT_MOST, NULL, 0),
	DOMAIN(max_ep_rx_ctx, AT_MOST, NULL, 0),
	DOMAIN(max_ep_stx_ctx, AT_MOST, NULL, 0),
	DOMAIN(max_ep_srx_ctx, AT_MOST, NULL, 0),
	DOMAIN(mr_iov_limit, AT_MOST, NULL, V1_5),
	DOMAIN(caps, BITS, &mrf_names_caps, V1_5),
	DOMAIN(auth_key_size, AT_MOST, NULL, V1_5),
	DOMAIN(max_err_data, AT_MOST, NULL, V1_5),
	DOMAIN(mr_cnt, AT_MOST, NULL, V1_5),
};

static const void *part_of(const struct fi_info *hints, size_t part)
{
	return part == WHOLE ? hints
			     : *(const void *const *)(const void *)((const char *)hints + part);
}

uint64_t mrf_info_number(const void *at, size_t size)
{
	switch (size) {
	case sizeof(uint8_t):
		return *(const uint8_t *)at;
	case sizeof(uint16_t):
		return *(const uint16_t *)at;
	case sizeof(uint32_t):
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static uint64_t offer_of(const struct row *row, const struct mrf_info_query *query)
{
	return mrf_info_number((const char *)query->has + row->offer, row->size);
}

static bool row_fits(const struct row *row, uint64_t offered, uint64_t asked)
{
	switch (row->kind) {
	case BITS:
		return !(asked & ~offered);
	case EQUAL:
		return asked == offered;
	case ANY:
		return true;
	case AT_MOST:
	case KNOWN:
		break;
	}
	return asked <= offered;
}

static const char *row_text(const struct row *row, uint64_t value, char *buf, size_t len)
{
	return value ? mrf_names_bits(row->names, value, buf, len) : "nothing";
}

static int refuse_bits(const struct row *row, const struct mrf_info_query *query, uint64_t asked)
{
	char missing[256], offered[256];

	return mrf_info_decline(
		1021, row->field, "hints->%s=%#lx: these bits are not offered: %s; offered: %s",
		row->field, asked,
		row_text(row, asked & ~offer_of(row, query), missing, sizeof(missing)),
		row_text(row, offer_of(row, query), offered, sizeof(offered)));
}

/* Programs that know one provider demand its protocol. */
static int refuse_protocol(const struct row *row, uint64_t asked, uint64_t own)
{
	return mrf_info_decline(1022, row->field,
				"hints->%s=%#lx (%s): only libmrfab's own is offered, which is "
				"%#lx; leave the field 0, or run the program with mrfab_run and "
				"FI_MRFAB_PROVIDER_NAME",
				row->field, asked, mrf_names_enum(row->names, asked), own);
}

static int refuse_value(const struct row *row, const struct mrf_info_query *query, uint64_t asked)
{
	if (row->names == &mrf_names_protocol)
		return refuse_protocol(row, asked, offer_of(row, query));
	return mrf_info_decline(1022, row->field, "hints->%s=%lu (%s): only %s is offered",
				row->field, asked, mrf_names_enum(row->names, asked),
				mrf_names_enum(row->names, offer_of(row, query)));
}

/* As with a registration mode, the result of a test: said each time. */
static int refuse_profile(const struct row *row, const struct mrf_info_query *query, uint64_t asked)
{
	uint64_t offered = offer_of(row, query);
	char text[256], value[32];

	if (row->kind == BITS) {
		row_text(row, asked & ~offered, text, sizeof(text));
		snprintf(value, sizeof(value), "%#lx", asked);
	} else {
		snprintf(text, sizeof(text), "more than %lu", offered);
		snprintf(value, sizeof(value), "%lu", asked);
	}
	return mrf_refuse(FI_ENODATA, FI_LOG_FABRIC, 1037,
			  "hints->%s=%s: FI_MRFAB_PROFILE=%s (%s) does not offer %s", row->field,
			  value, query->profile->name, query->profile->what, text);
}

static int refuse_row(const struct row *row, const struct mrf_info_query *query, uint64_t asked)
{
	const char *all = (const char *)&mrf_info_offer;

	if (row_fits(row, mrf_info_number(all + row->offer, row->size), asked))
		return refuse_profile(row, query, asked);
	switch (row->kind) {
	case BITS:
		return refuse_bits(row, query, asked);
	case EQUAL:
		return refuse_value(row, query, asked);
	case KNOWN:
		return mrf_info_decline(1023, row->field, "hints->%s=%lu: there is no such value",
					row->field, asked);
	case AT_MOST:
	case ANY:
		break;
	}
	return mrf_info_decline(1020, row->field, "hints->%s=%lu: at most %lu is offered",
				row->field, asked, offer_of(row, query));
}

/* What the application has set; false: nothing, or in a field that its version does not have. */
static bool hinted(const struct row *row, const struct mrf_info_query *query, uint64_t *asked)
{
	const void *part = part_of(query->hints, row->part);

	*asked = part ? mrf_info_number((const char *)part + row->offset, row->size) : 0;
	return *asked && FI_VERSION_GE(query->version, row->since);
}

static int check_rows(const struct mrf_info_query *query)
{
	uint64_t asked;
	int ret = 0;
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(rows); i++) {
		if (!hinted(&rows[i], query, &asked))
			continue;
		if (rows[i].names == &mrf_names_caps)
			asked = mrf_info_asked_caps(asked);
		if (!row_fits(&rows[i], offer_of(&rows[i], query), asked))
			ret = refuse_row(&rows[i], query, asked);
	}
	return ret;
}

/* An endpoint has device memory on either side only if it has the capability as a whole. */
static int check_hmem_sides(const struct fi_info *hints)
{
	bool tx = hints->tx_attr && hints->tx_attr->caps & FI_HMEM;
	bool rx = hints->rx_attr && hints->rx_attr->caps & FI_HMEM;

	if (hints->caps & FI_HMEM || !(tx || rx))
		return 0;
	return mrf_info_decline(
		1026, NULL,
		"hints->%s->caps has FI_HMEM, but hints->caps does not: set it there, "
		"too",
		tx ? "tx_attr" : "rx_attr");
}

/* What an address vector cannot be, of which fi_getinfo knows already. */
static int check_av_type(const struct mrf_info_query *query)
{
	const struct fi_domain_attr *hint = query->hints->domain_attr;
	const struct mrf_profile *profile = query->profile;

	if (!hint || hint->av_type != FI_AV_TABLE || !profile || profile->av != MRF_AV_MAPS_ONLY)
		return 0;
	return mrf_refuse(FI_ENODATA, FI_LOG_FABRIC, 1037,
			  "hints->domain_attr->av_type=FI_AV_TABLE: FI_MRFAB_PROFILE=%s (%s) has "
			  "only FI_AV_MAP",
			  profile->name, profile->what);
}

static int check_provider(const struct fi_fabric_attr *attr)
{
	if (attr->prov_name && *attr->prov_name && !mrf_env_listed(attr->prov_name, MRF_PROV_NAME))
		return mrf_info_decline(1010, NULL,
					"hints->fabric_attr->prov_name=\"%s\" leaves out \"%s\"",
					attr->prov_name, MRF_PROV_NAME);
	if (attr->prov_version > mrf_info_prov_version())
		return mrf_info_decline(
			1020, "prov_version",
			"hints->fabric_attr->prov_version=%u.%u: this library is %u.%u",
			FI_MAJOR(attr->prov_version), FI_MINOR(attr->prov_version),
			FI_MAJOR(mrf_info_prov_version()), FI_MINOR(mrf_info_prov_version()));
	return 0;
}

/*
 * Objects that the application passes in have to be of the class that the field is for.
 */
static int check_objects(const struct fi_info *hints)
{
	const struct fid_fabric *fabric = hints->fabric_attr ? hints->fabric_attr->fabric : NULL;
	const struct fid_domain *domain = hints->domain_attr ? hints->domain_attr->domain : NULL;

	if (fabric && fabric->fid.fclass != FI_CLASS_FABRIC)
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 1006,
				  "hints->fabric_attr->fabric is not a fabric, but of class \"%s\"",
				  mrf_obj_class_name(fabric->fid.fclass));
	if (domain && domain->fid.fclass != FI_CLASS_DOMAIN)
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 1006,
				  "hints->domain_attr->domain is not a domain, but of class \"%s\"",
				  mrf_obj_class_name(domain->fid.fclass));
	if (hints->handle)
		return mrf_info_decline(1024, NULL,
					"hints->handle=%p: only endpoints of type FI_EP_RDM are "
					"offered, which inherit from no other object",
					(void *)hints->handle);
	return 0;
}

static int check_auth_key(const char *part, const uint8_t *key, size_t size)
{
	if (!size || key)
		return 0;
	return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 1025,
			  "hints->%s->auth_key must not be NULL, because auth_key_size is %zu",
			  part, size);
}

static int check_keys(const struct mrf_info_query *query)
{
	const struct fi_domain_attr *domain = query->hints->domain_attr;
	const struct fi_ep_attr *ep = query->hints->ep_attr;
	int ret = 0;

	if (!mrf_rule_auth_key(query->version))
		return 0;
	if (domain)
		ret = check_auth_key("domain_attr", domain->auth_key, domain->auth_key_size);
	if (!ret && ep)
		ret = check_auth_key("ep_attr", ep->auth_key, ep->auth_key_size);
	return ret;
}

int mrf_info_check_hints(const struct mrf_info_query *query)
{
	const struct fi_info *hints = query->hints;
	int ret, hmem_ret, av_ret, mode_ret;

	if (!hints)
		return mrf_info_mode_check(query);
	ret = check_objects(hints);
	if (!ret && hints->fabric_attr)
		ret = check_provider(hints->fabric_attr);
	if (ret)
		return ret;
	/* All faults are reported at once, so that one run shows them. */
	ret = check_rows(query);
	hmem_ret = check_hmem_sides(hints);
	av_ret = check_av_type(query);
	mode_ret = mrf_info_mode_check(query);
	ret = ret ? ret : hmem_ret;
	ret = ret ? ret : av_ret;
	ret = ret ? ret : mode_ret;
	return ret ? ret : check_keys(query);
}

/* --- what has become of the hints -------------------------------------------------- */

static const char *rule_of(const struct row *row, uint64_t left_out)
{
	switch (row->kind) {
	case ANY:
		return "this hint is not compared with the offer";
	case BITS:
		if (row->names != &mrf_names_caps)
			return "these always hold";
		return left_out ? "a direction of messages means nothing without FI_MSG or "
				  "FI_TAGGED"
				: "a capability without a direction has all of them, and "
				  "without a range it has both";
	case AT_MOST:
	case EQUAL:
	case KNOWN:
		break;
	}
	return "this is a limit, and what it really is comes back";
}

static void tell_bits(const struct row *row, uint64_t asked, uint64_t got)
{
	char added[256], left_out[256];

	mrf_info(FI_LOG_FABRIC, "hints->%s=%#lx comes back as %#lx%s%s%s%s: %s", row->field, asked,
		 got, got & ~asked ? ", with " : "",
		 got & ~asked ? row_text(row, got & ~asked, added, sizeof(added)) : "",
		 asked & ~got ? ", without " : "",
		 asked & ~got ? row_text(row, asked & ~got, left_out, sizeof(left_out)) : "",
		 rule_of(row, asked & ~got));
}

static void tell_row(const struct row *row, const struct mrf_info_query *query, uint64_t asked,
		     const struct fi_info *info)
{
	const char *part = part_of(info, row->part);
	uint64_t got = mrf_info_number(part + row->offset, row->size);

	if (FI_VERSION_LT(query->version, row->since))
		mrf_info(FI_LOG_FABRIC,
			 "hints->%s=%lu is ignored: version %u.%u was asked for, and the field is "
			 "known from version %u.%u on",
			 row->field, asked, FI_MAJOR(query->version), FI_MINOR(query->version),
			 FI_MAJOR(row->since), FI_MINOR(row->since));
	else if (got != asked && row->kind == BITS)
		tell_bits(row, asked, got);
	else if (got != asked)
		mrf_info(FI_LOG_FABRIC, "hints->%s=%lu comes back as %lu: %s", row->field, asked,
			 got, rule_of(row, 0));
}

void mrf_info_hints_tell(const struct mrf_info_query *query, const struct fi_info *info)
{
	uint64_t asked;
	size_t i;

	if (!query->hints || !mrf_log_enabled(FI_LOG_INFO, FI_LOG_FABRIC))
		return;
	for (i = 0; i < MRF_ARRAY_SIZE(rows); i++) {
		hinted(&rows[i], query, &asked);
		if (asked)
			tell_row(&rows[i], query, asked, info);
	}
}
