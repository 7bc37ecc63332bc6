/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_tostr: each structure has a table of its fields, each type of constant a table in
 * base/names; the layout is close to libfabric's, so that scripts can read both.
 */
#include "info/api.h"

#include <rdma/fi_domain.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/compiler.h"
#include "base/names.h"
#include "info/query.h"

#define TOSTR_BYTES 8192 /* of fi_tostr's own buffer */

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

struct out {
	char *buf;
	size_t len;  /* > 0 */
	size_t used; /* < len; buf[used] is the terminating 0 */
};

static void print(struct out *out, const char *fmt, ...) MRF_PRINTF(2, 3);

static void print(struct out *out, const char *fmt, ...)
{
	size_t room = out->len - out->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out->buf + out->used, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		out->used += mrf_min((uint64_t)n, room - 1);
}

static void put_bits(struct out *out, const struct mrf_names *names, uint64_t value)
{
	mrf_names_bits(names, value, out->buf + out->used, out->len - out->used);
	out->used += strlen(out->buf + out->used);
}

/* --- structures ------------------------------------------------------------------- */

enum kind {
	KIND_BITS, /* in brackets */
	KIND_ENUM, /* by its name */
	KIND_NUM,
	KIND_HEX,
	KIND_TAG, /* hexadecimal, all its digits */
	KIND_STR,
	KIND_VERSION, /* FI_VERSION() */
	KIND_PTR,
};

struct field {
	const char *name;
	size_t offset;
	size_t size;
	enum kind kind;
	const struct mrf_names *names;
};

struct layout {
	const char *name;
	const struct field *fields;
	size_t count;
};

#define ROW(type, member, kind, names)                                                            \
	{                                                                                         \
#member, offsetof(struct type, member), sizeof(((struct type *)0)->member), kind, \
			names                                                                     \
	}
#define F(type, member, kind) ROW(type, member, kind, NULL)
#define N(type, member, kind, names) ROW(type, member, kind, &mrf_names_##names)
#define LAYOUT(type) \
	static const struct layout type = { #type, type##_fields, MRF_ARRAY_SIZE(type##_fields) }

static const struct field fi_tx_attr_fields[] = {
	N(fi_tx_attr, caps, KIND_BITS, caps),
	N(fi_tx_attr, mode, KIND_BITS, mode),
	N(fi_tx_attr, op_flags, KIND_BITS, op_flags),
	N(fi_tx_attr, msg_order, KIND_BITS, msg_order),
	N(fi_tx_attr, comp_order, KIND_BITS, comp_order),
	F(fi_tx_attr, inject_size, KIND_NUM),
	F(fi_tx_attr, size, KIND_NUM),
	F(fi_tx_attr, iov_limit, KIND_NUM),
	F(fi_tx_attr, rma_iov_limit, KIND_NUM),
	F(fi_tx_attr, tclass, KIND_HEX),
};
LAYOUT(fi_tx_attr);

static const struct field fi_rx_attr_fields[] = {
	N(fi_rx_attr, caps, KIND_BITS, caps),
	N(fi_rx_attr, mode, KIND_BITS, mode),
	N(fi_rx_attr, op_flags, KIND_BITS, op_flags),
	N(fi_rx_attr, msg_order, KIND_BITS, msg_order),
	N(fi_rx_attr, comp_order, KIND_BITS, comp_order),
	F(fi_rx_attr, total_buffered_recv, KIND_NUM),
	F(fi_rx_attr, size, KIND_NUM),
	F(fi_rx_attr, iov_limit, KIND_NUM),
};
LAYOUT(fi_rx_attr);

static const struct field fi_ep_attr_fields[] = {
	N(fi_ep_attr, type, KIND_ENUM, ep_type),     N(fi_ep_attr, protocol, KIND_ENUM, protocol),
	F(fi_ep_attr, protocol_version, KIND_NUM),   F(fi_ep_attr, max_msg_size, KIND_NUM),
	F(fi_ep_attr, msg_prefix_size, KIND_NUM),    F(fi_ep_attr, max_order_raw_size, KIND_NUM),
	F(fi_ep_attr, max_order_war_size, KIND_NUM), F(fi_ep_attr, max_order_waw_size, KIND_NUM),
	F(fi_ep_attr, mem_tag_format, KIND_TAG),     F(fi_ep_attr, tx_ctx_cnt, KIND_NUM),
	F(fi_ep_attr, rx_ctx_cnt, KIND_NUM),	     F(fi_ep_attr, auth_key_size, KIND_NUM),
};
LAYOUT(fi_ep_attr);

static const struct field fi_domain_attr_fields[] = {
	F(fi_domain_attr, domain, KIND_HEX),
	F(fi_domain_attr, name, KIND_STR),
	N(fi_domain_attr, threading, KIND_ENUM, threading),
	N(fi_domain_attr, control_progress, KIND_ENUM, progress),
	N(fi_domain_attr, data_progress, KIND_ENUM, progress),
	N(fi_domain_attr, resource_mgmt, KIND_ENUM, resource_mgmt),
	N(fi_domain_attr, av_type, KIND_ENUM, av_type),
	N(fi_domain_attr, mr_mode, KIND_BITS, mr_mode),
	F(fi_domain_attr, mr_key_size, KIND_NUM),
	F(fi_domain_attr, cq_data_size, KIND_NUM),
	F(fi_domain_attr, cq_cnt, KIND_NUM),
	F(fi_domain_attr, ep_cnt, KIND_NUM),
	F(fi_domain_attr, tx_ctx_cnt, KIND_NUM),
	F(fi_domain_attr, rx_ctx_cnt, KIND_NUM),
	F(fi_domain_attr, max_ep_tx_ctx, KIND_NUM),
	F(fi_domain_attr, max_ep_rx_ctx, KIND_NUM),
	F(fi_domain_attr, max_ep_stx_ctx, KIND_NUM),
	F(fi_domain_attr, max_ep_srx_ctx, KIND_NUM),
	F(fi_domain_attr, cntr_cnt, KIND_NUM),
	F(fi_domain_attr, mr_iov_limit, KIND_NUM),
	N(fi_domain_attr, caps, KIND_BITS, caps),
	N(fi_domain_attr, mode, KIND_BITS, mode),
	F(fi_domain_attr, auth_key_size, KIND_NUM),
	F(fi_domain_attr, max_err_data, KIND_NUM),
	F(fi_domain_attr, mr_cnt, KIND_NUM),
	F(fi_domain_attr, tclass, KIND_HEX),
};
LAYOUT(fi_domain_attr);

static const struct field fi_fabric_attr_fields[] = {
	F(fi_fabric_attr, name, KIND_STR),
	F(fi_fabric_attr, prov_name, KIND_STR),
	F(fi_fabric_attr, prov_version, KIND_VERSION),
	F(fi_fabric_attr, api_version, KIND_VERSION),
};
LAYOUT(fi_fabric_attr);

static const struct field fi_device_attr_fields[] = {
	F(fi_device_attr, name, KIND_STR),	     F(fi_device_attr, device_id, KIND_STR),
	F(fi_device_attr, device_version, KIND_STR), F(fi_device_attr, vendor_id, KIND_STR),
	F(fi_device_attr, driver, KIND_STR),	     F(fi_device_attr, firmware, KIND_STR),
};
LAYOUT(fi_device_attr);

static const struct field fi_bus_attr_fields[] = {
	N(fi_bus_attr, bus_type, KIND_ENUM, bus_type),
};
LAYOUT(fi_bus_attr);

static const struct field fi_pci_attr_fields[] = {
	F(fi_pci_attr, domain_id, KIND_NUM),
	F(fi_pci_attr, bus_id, KIND_NUM),
	F(fi_pci_attr, device_id, KIND_NUM),
	F(fi_pci_attr, function_id, KIND_NUM),
};
LAYOUT(fi_pci_attr);

static const struct field fi_link_attr_fields[] = {
	F(fi_link_attr, address, KIND_STR),	 F(fi_link_attr, mtu, KIND_NUM),
	F(fi_link_attr, speed, KIND_NUM),	 N(fi_link_attr, state, KIND_ENUM, link_state),
	F(fi_link_attr, network_type, KIND_STR),
};
LAYOUT(fi_link_attr);

static void put_indent(struct out *out, unsigned depth)
{
	print(out, "%*s", (int)(depth * 4), "");
}

static void put_list(struct out *out, const struct mrf_names *names, uint64_t value)
{
	print(out, "[ ");
	put_bits(out, names, value);
	print(out, " ]");
}

static void put_str(struct out *out, const char *str)
{
	print(out, "%s", str ? str : "(null)");
}

static void put_value(struct out *out, const struct field *field, const void *at)
{
	uint64_t number = mrf_info_number(at, field->size);

	switch (field->kind) {
	case KIND_BITS:
		return put_list(out, field->names, number);
	case KIND_ENUM:
		return put_str(out, mrf_names_enum(field->names, number));
	case KIND_NUM:
		return print(out, "%lu", number);
	case KIND_HEX:
		return print(out, "0x%lx", number);
	case KIND_TAG:
		return print(out, "0x%016lx", number);
	case KIND_STR:
		return put_str(out, *(char *const *)at);
	case KIND_VERSION:
		return print(out, "%u.%u", FI_MAJOR((uint32_t)number), FI_MINOR((uint32_t)number));
	case KIND_PTR:
		return print(out, "%p", *(void *const *)at);
	}
}

static void put_field(struct out *out, const struct field *field, const void *base, unsigned depth)
{
	put_indent(out, depth);
	print(out, "%s: ", field->name);
	put_value(out, field, (const char *)base + field->offset);
	print(out, "\n");
}

static void put_struct(struct out *out, const struct layout *layout, const void *base,
		       unsigned depth)
{
	size_t i;

	put_indent(out, depth);
	if (!base) {
		print(out, "%s: (null)\n", layout->name);
		return;
	}
	print(out, "%s:\n", layout->name);
	for (i = 0; i < layout->count; i++)
		put_field(out, &layout->fields[i], base, depth + 1);
}

/* --- fi_info ---------------------------------------------------------------------- */

static const struct field info_head[] = {
	N(fi_info, caps, KIND_BITS, caps),
	N(fi_info, mode, KIND_BITS, mode),
	N(fi_info, addr_format, KIND_ENUM, addr_format),
	F(fi_info, src_addrlen, KIND_NUM),
	F(fi_info, dest_addrlen, KIND_NUM),
};

static const struct field info_handle = F(fi_info, handle, KIND_PTR);

/* False: not an address of a form known here. */
static bool put_known(struct out *out, uint32_t format, const void *bytes, size_t len)
{
	const struct mrf_form *form = mrf_form_of(format);
	union mrf_addr addr;
	char text[MRF_FORM_MAX];

	if (!mrf_form_take(form, bytes, len, &addr))
		return false;
	if (addr.sa.sa_family == AF_INET6)
		addr.in6.sin6_scope_id = 0;
	print(out, "%s", mrf_form_text(form, &addr, text));
	return true;
}

/* Of those that have names here. */
static bool is_known(uint32_t format)
{
	return format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR || format == FI_SOCKADDR_IN ||
	       format == FI_SOCKADDR_IN6 || mrf_form_of(format)->kind == MRF_FORM_BYTES;
}

static void put_addr(struct out *out, uint32_t format, const void *addr, size_t len)
{
	const unsigned char *bytes = addr;
	size_t i;

	if (!addr) {
		print(out, "(null)");
		return;
	}
	if (format == FI_ADDR_STR) {
		print(out, "%.*s", (int)mrf_min(len, TOSTR_BYTES), (const char *)addr);
		return;
	}
	if (is_known(format) && put_known(out, format, addr, len))
		return;
	print(out, "0x");
	for (i = 0; i < len && out->used + 1 < out->len; i++)
		print(out, "%02x", bytes[i]);
}

static void put_info_addr(struct out *out, const char *name, uint32_t format, const void *addr,
			  size_t len)
{
	put_indent(out, 1);
	print(out, "%s: ", name);
	put_addr(out, format, addr, len);
	print(out, "\n");
}

static void put_nic(struct out *out, const struct fid_nic *nic, unsigned depth)
{
	put_indent(out, depth);
	if (!nic) {
		print(out, "nic: %p\n", NULL);
		return;
	}
	print(out, "nic:\n");
	put_struct(out, &fi_device_attr, nic->device_attr, depth + 1);
	put_struct(out, &fi_bus_attr, nic->bus_attr, depth + 1);
	if (nic->bus_attr && nic->bus_attr->bus_type == FI_BUS_PCI)
		put_struct(out, &fi_pci_attr, &nic->bus_attr->attr.pci, depth + 2);
	put_struct(out, &fi_link_attr, nic->link_attr, depth + 1);
}

static void put_info(struct out *out, const struct fi_info *info)
{
	size_t i;

	print(out, "fi_info:\n");
	for (i = 0; i < MRF_ARRAY_SIZE(info_head); i++)
		put_field(out, &info_head[i], info, 1);
	put_info_addr(out, "src_addr", info->addr_format, info->src_addr, info->src_addrlen);
	put_info_addr(out, "dest_addr", info->addr_format, info->dest_addr, info->dest_addrlen);
	put_field(out, &info_handle, info, 1);
	put_struct(out, &fi_tx_attr, info->tx_attr, 1);
	put_struct(out, &fi_rx_attr, info->rx_attr, 1);
	put_struct(out, &fi_ep_attr, info->ep_attr, 1);
	put_struct(out, &fi_domain_attr, info->domain_attr, 1);
	put_struct(out, &fi_fabric_attr, info->fabric_attr, 1);
	put_nic(out, info->nic, 1);
}

/* Objects say what they are themselves if they can. */
static void put_fid(struct out *out, const struct fid *fid)
{
	if (FI_CHECK_OP(fid->ops, struct fi_ops, tostr) &&
	    !fid->ops->tostr(fid, out->buf, out->len)) {
		out->buf[out->len - 1] = '\0';
		return;
	}
	out->buf[0] = '\0';
	if (fid->fclass == FI_CLASS_NIC)
		put_nic(out, mrf_container_of(fid, struct fid_nic, fid), 0);
	else
		print(out, "%s %p", mrf_names_enum(&mrf_names_class, fid->fclass),
		      (const void *)fid);
}

/* --- by type ---------------------------------------------------------------------- */

/* The names of plain constants, and their widths. */
static const struct {
	const struct mrf_names *names;
	enum kind kind;
	size_t size;
} constants[] = {
	[FI_TYPE_EP_TYPE] = { &mrf_names_ep_type, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_CAPS] = { &mrf_names_caps, KIND_BITS, sizeof(uint64_t) },
	[FI_TYPE_OP_FLAGS] = { &mrf_names_op_flags, KIND_BITS, sizeof(uint64_t) },
	[FI_TYPE_ADDR_FORMAT] = { &mrf_names_addr_format, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_THREADING] = { &mrf_names_threading, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_PROGRESS] = { &mrf_names_progress, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_PROTOCOL] = { &mrf_names_protocol, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_MSG_ORDER] = { &mrf_names_msg_order, KIND_BITS, sizeof(uint64_t) },
	[FI_TYPE_MODE] = { &mrf_names_mode, KIND_BITS, sizeof(uint64_t) },
	[FI_TYPE_AV_TYPE] = { &mrf_names_av_type, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_ATOMIC_TYPE] = { &mrf_names_atomic_type, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_ATOMIC_OP] = { &mrf_names_atomic_op, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_EQ_EVENT] = { &mrf_names_eq_event, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_CQ_EVENT_FLAGS] = { &mrf_names_cq_flags, KIND_BITS, sizeof(uint64_t) },
	[FI_TYPE_MR_MODE] = { &mrf_names_mr_mode, KIND_BITS, sizeof(int) },
	[FI_TYPE_OP_TYPE] = { &mrf_names_op_type, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_COLLECTIVE_OP] = { &mrf_names_collective_op, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_HMEM_IFACE] = { &mrf_names_hmem_iface, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_CQ_FORMAT] = { &mrf_names_cq_format, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_LOG_LEVEL] = { &mrf_names_log_level, KIND_ENUM, sizeof(uint32_t) },
	[FI_TYPE_LOG_SUBSYS] = { &mrf_names_log_subsys, KIND_ENUM, sizeof(uint32_t) },
};

static void put_constant(struct out *out, enum fi_type type, const void *data)
{
	const struct mrf_names *names = NULL;
	uint64_t value;

	if ((unsigned)type < MRF_ARRAY_SIZE(constants))
		names = constants[type].names;
	if (!names)
		return print(out, "Unknown type");
	value = mrf_info_number(data, constants[type].size);
	if (constants[type].kind == KIND_BITS)
		put_bits(out, names, value);
	else
		put_str(out, mrf_names_enum(names, value));
}

static void put_data(struct out *out, enum fi_type type, const void *data)
{
	switch (type) {
	case FI_TYPE_INFO:
		return put_info(out, data);
	case FI_TYPE_TX_ATTR:
		return put_struct(out, &fi_tx_attr, data, 0);
	case FI_TYPE_RX_ATTR:
		return put_struct(out, &fi_rx_attr, data, 0);
	case FI_TYPE_EP_ATTR:
		return put_struct(out, &fi_ep_attr, data, 0);
	case FI_TYPE_DOMAIN_ATTR:
		return put_struct(out, &fi_domain_attr, data, 0);
	case FI_TYPE_FABRIC_ATTR:
		return put_struct(out, &fi_fabric_attr, data, 0);
	case FI_TYPE_FID:
		return put_fid(out, data);
	case FI_TYPE_VERSION:
		/* The API level first: that is what programs look for in it. */
		return print(out, "%d.%d.%d (libmrfab " PACKAGE_VERSION ")", FI_MAJOR_VERSION,
			     FI_MINOR_VERSION, FI_REVISION_VERSION);
	default:
		return put_constant(out, type, data);
	}
}

char *mrf_info_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	struct out out = { .buf = buf, .len = len };

	if (!buf || !len || (!data && datatype != FI_TYPE_VERSION))
		return NULL;
	buf[0] = '\0';
	put_data(&out, datatype, data);
	return buf;
}

char *mrf_info_tostr(const void *data, enum fi_type datatype)
{
	static _Thread_local char buf[TOSTR_BYTES];

	return mrf_info_tostr_r(buf, sizeof(buf), data, datatype);
}
