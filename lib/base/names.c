/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/names.h"
#include "base/compiler.h"
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>
#include <stdio.h>

#define ROW(constant)                           \
	{                                       \
		(uint64_t)(constant), #constant \
	}

/* The rows of a table. */
#define ROWS(...)                                         \
	.rows = (const struct mrf_name[]){ __VA_ARGS__ }, \
	.count = sizeof((const struct mrf_name[]){ __VA_ARGS__ }) / sizeof(struct mrf_name)

/* --- sets of bits ----------------------------------------------------------------- */

const struct mrf_names mrf_names_caps = {
	ROWS(ROW(FI_MSG), ROW(FI_RMA), ROW(FI_TAGGED), ROW(FI_ATOMIC), ROW(FI_MULTICAST),
	     ROW(FI_COLLECTIVE), ROW(FI_READ), ROW(FI_WRITE), ROW(FI_RECV), ROW(FI_SEND),
	     ROW(FI_REMOTE_READ), ROW(FI_REMOTE_WRITE), ROW(FI_MULTI_RECV), ROW(FI_REMOTE_CQ_DATA),
	     ROW(FI_TRIGGER), ROW(FI_FENCE), ROW(FI_VARIABLE_MSG), ROW(FI_RMA_PMEM),
	     ROW(FI_SOURCE_ERR), ROW(FI_LOCAL_COMM), ROW(FI_REMOTE_COMM), ROW(FI_SHARED_AV),
	     ROW(FI_RMA_EVENT), ROW(FI_SOURCE), ROW(FI_NAMED_RX_CTX), ROW(FI_DIRECTED_RECV),
	     ROW(FI_HMEM), ROW(FI_AV_USER_ID), ROW(FI_PEER), ROW(FI_XPU_TRIGGER)),
};

const struct mrf_names mrf_names_op_flags = {
	ROWS(ROW(FI_MULTICAST), ROW(FI_MULTI_RECV), ROW(FI_REMOTE_CQ_DATA), ROW(FI_MORE),
	     ROW(FI_PEEK), ROW(FI_TRIGGER), ROW(FI_FENCE), ROW(FI_PRIORITY), ROW(FI_COMPLETION),
	     ROW(FI_INJECT), ROW(FI_INJECT_COMPLETE), ROW(FI_TRANSMIT_COMPLETE),
	     ROW(FI_DELIVERY_COMPLETE), ROW(FI_MATCH_COMPLETE), ROW(FI_COMMIT_COMPLETE),
	     ROW(FI_AFFINITY), ROW(FI_XPU_TRIGGER), ROW(FI_CLAIM), ROW(FI_DISCARD)),
};

const struct mrf_names mrf_names_cq_flags = {
	ROWS(ROW(FI_SEND), ROW(FI_RECV), ROW(FI_RMA), ROW(FI_ATOMIC), ROW(FI_MSG), ROW(FI_TAGGED),
	     ROW(FI_READ), ROW(FI_WRITE), ROW(FI_REMOTE_READ), ROW(FI_REMOTE_WRITE),
	     ROW(FI_REMOTE_CQ_DATA), ROW(FI_MULTI_RECV), ROW(FI_MORE), ROW(FI_CLAIM)),
};

const struct mrf_names mrf_names_msg_order = {
	ROWS(ROW(FI_ORDER_RAR), ROW(FI_ORDER_RAW), ROW(FI_ORDER_RAS), ROW(FI_ORDER_WAR),
	     ROW(FI_ORDER_WAW), ROW(FI_ORDER_WAS), ROW(FI_ORDER_SAR), ROW(FI_ORDER_SAW),
	     ROW(FI_ORDER_SAS), ROW(FI_ORDER_RMA_RAR), ROW(FI_ORDER_RMA_RAW), ROW(FI_ORDER_RMA_WAR),
	     ROW(FI_ORDER_RMA_WAW), ROW(FI_ORDER_ATOMIC_RAR), ROW(FI_ORDER_ATOMIC_RAW),
	     ROW(FI_ORDER_ATOMIC_WAR), ROW(FI_ORDER_ATOMIC_WAW)),
};

const struct mrf_names mrf_names_comp_order = {
	ROWS(ROW(FI_ORDER_STRICT), ROW(FI_ORDER_DATA)),
	.zero = "FI_ORDER_NONE",
};

const struct mrf_names mrf_names_mode = {
	ROWS(ROW(FI_CONTEXT), ROW(FI_MSG_PREFIX), ROW(FI_ASYNC_IOV), ROW(FI_RX_CQ_DATA),
	     ROW(FI_LOCAL_MR), ROW(FI_NOTIFY_FLAGS_ONLY), ROW(FI_RESTRICTED_COMP), ROW(FI_CONTEXT2),
	     ROW(FI_BUFFERED_RECV), ROW(FI_PEER_TRANSFER)),
};

const struct mrf_names mrf_names_mr_mode = {
	ROWS(ROW(FI_MR_BASIC), ROW(FI_MR_SCALABLE), ROW(FI_MR_LOCAL), ROW(FI_MR_RAW),
	     ROW(FI_MR_VIRT_ADDR), ROW(FI_MR_ALLOCATED), ROW(FI_MR_PROV_KEY), ROW(FI_MR_MMU_NOTIFY),
	     ROW(FI_MR_RMA_EVENT), ROW(FI_MR_ENDPOINT), ROW(FI_MR_HMEM), ROW(FI_MR_COLLECTIVE)),
};

/* --- enumerations ----------------------------------------------------------------- */

const struct mrf_names mrf_names_addr_format = {
	ROWS(ROW(FI_FORMAT_UNSPEC), ROW(FI_SOCKADDR), ROW(FI_SOCKADDR_IN), ROW(FI_SOCKADDR_IN6),
	     ROW(FI_SOCKADDR_IB), ROW(FI_ADDR_PSMX), ROW(FI_ADDR_GNI), ROW(FI_ADDR_BGQ),
	     ROW(FI_ADDR_MLX), ROW(FI_ADDR_STR), ROW(FI_ADDR_PSMX2), ROW(FI_ADDR_IB_UD),
	     ROW(FI_ADDR_EFA), ROW(FI_ADDR_PSMX3), ROW(FI_ADDR_OPX), ROW(FI_ADDR_CXI)),
	.prov = true,
};

const struct mrf_names mrf_names_atomic_op = {
	ROWS(ROW(FI_MIN), ROW(FI_MAX), ROW(FI_SUM), ROW(FI_PROD), ROW(FI_LOR), ROW(FI_LAND),
	     ROW(FI_BOR), ROW(FI_BAND), ROW(FI_LXOR), ROW(FI_BXOR), ROW(FI_ATOMIC_READ),
	     ROW(FI_ATOMIC_WRITE), ROW(FI_CSWAP), ROW(FI_CSWAP_NE), ROW(FI_CSWAP_LE),
	     ROW(FI_CSWAP_LT), ROW(FI_CSWAP_GE), ROW(FI_CSWAP_GT), ROW(FI_MSWAP), ROW(FI_NOOP)),
};

const struct mrf_names mrf_names_atomic_type = {
	ROWS(ROW(FI_INT8), ROW(FI_UINT8), ROW(FI_INT16), ROW(FI_UINT16), ROW(FI_INT32),
	     ROW(FI_UINT32), ROW(FI_INT64), ROW(FI_UINT64), ROW(FI_FLOAT), ROW(FI_DOUBLE),
	     ROW(FI_FLOAT_COMPLEX), ROW(FI_DOUBLE_COMPLEX), ROW(FI_LONG_DOUBLE),
	     ROW(FI_LONG_DOUBLE_COMPLEX), ROW(FI_INT128), ROW(FI_UINT128), ROW(FI_VOID)),
};

const struct mrf_names mrf_names_av_type = {
	ROWS(ROW(FI_AV_UNSPEC), ROW(FI_AV_MAP), ROW(FI_AV_TABLE)),
};

const struct mrf_names mrf_names_bus_type = {
	ROWS(ROW(FI_BUS_UNKNOWN), ROW(FI_BUS_PCI)),
};

const struct mrf_names mrf_names_class = {
	ROWS(ROW(FI_CLASS_UNSPEC), ROW(FI_CLASS_FABRIC), ROW(FI_CLASS_DOMAIN), ROW(FI_CLASS_EP),
	     ROW(FI_CLASS_SEP), ROW(FI_CLASS_RX_CTX), ROW(FI_CLASS_SRX_CTX), ROW(FI_CLASS_TX_CTX),
	     ROW(FI_CLASS_STX_CTX), ROW(FI_CLASS_PEP), ROW(FI_CLASS_INTERFACE), ROW(FI_CLASS_AV),
	     ROW(FI_CLASS_MR), ROW(FI_CLASS_EQ), ROW(FI_CLASS_CQ), ROW(FI_CLASS_CNTR),
	     ROW(FI_CLASS_WAIT), ROW(FI_CLASS_POLL), ROW(FI_CLASS_CONNREQ), ROW(FI_CLASS_MC),
	     ROW(FI_CLASS_NIC), ROW(FI_CLASS_AV_SET), ROW(FI_CLASS_MR_CACHE),
	     ROW(FI_CLASS_MEM_MONITOR), ROW(FI_CLASS_PEER_CQ), ROW(FI_CLASS_PEER_SRX),
	     ROW(FI_CLASS_LOG), ROW(FI_CLASS_PEER_AV), ROW(FI_CLASS_PEER_AV_SET)),
};

const struct mrf_names mrf_names_collective_op = {
	ROWS(ROW(FI_BARRIER), ROW(FI_BROADCAST), ROW(FI_ALLTOALL), ROW(FI_ALLREDUCE),
	     ROW(FI_ALLGATHER), ROW(FI_REDUCE_SCATTER), ROW(FI_REDUCE), ROW(FI_SCATTER),
	     ROW(FI_GATHER)),
};

const struct mrf_names mrf_names_cq_format = {
	ROWS(ROW(FI_CQ_FORMAT_UNSPEC), ROW(FI_CQ_FORMAT_CONTEXT), ROW(FI_CQ_FORMAT_MSG),
	     ROW(FI_CQ_FORMAT_DATA), ROW(FI_CQ_FORMAT_TAGGED)),
};

const struct mrf_names mrf_names_ep_type = {
	ROWS(ROW(FI_EP_UNSPEC), ROW(FI_EP_MSG), ROW(FI_EP_DGRAM), ROW(FI_EP_RDM),
	     ROW(FI_EP_SOCK_STREAM), ROW(FI_EP_SOCK_DGRAM)),
};

const struct mrf_names mrf_names_eq_event = {
	ROWS(ROW(FI_NOTIFY), ROW(FI_CONNREQ), ROW(FI_CONNECTED), ROW(FI_SHUTDOWN),
	     ROW(FI_MR_COMPLETE), ROW(FI_AV_COMPLETE), ROW(FI_JOIN_COMPLETE)),
};

const struct mrf_names mrf_names_errno = {
	ROWS(ROW(FI_EPERM), ROW(FI_ENOENT), ROW(FI_EBADF), ROW(FI_EACCES), ROW(FI_EFAULT),
	     ROW(FI_ENODEV), ROW(FI_EINVAL), ROW(FI_ENOSYS), ROW(FI_ENOPROTOOPT),
	     ROW(FI_EOPNOTSUPP), ROW(FI_EKEYREJECTED), ROW(FI_E2BIG), ROW(FI_ENOMEM),
	     ROW(FI_EMFILE), ROW(FI_ENOSPC), ROW(FI_ENOBUFS), ROW(FI_EOVERFLOW), ROW(FI_EMSGSIZE),
	     ROW(FI_EINTR), ROW(FI_EAGAIN), ROW(FI_EBUSY), ROW(FI_ENOMSG), ROW(FI_ENODATA),
	     ROW(FI_EALREADY), ROW(FI_EINPROGRESS), ROW(FI_ETIMEDOUT), ROW(FI_ECANCELED),
	     ROW(FI_EADDRINUSE), ROW(FI_EADDRNOTAVAIL), ROW(FI_ENETDOWN), ROW(FI_ENETUNREACH),
	     ROW(FI_ECONNABORTED), ROW(FI_ECONNRESET), ROW(FI_ECONNREFUSED), ROW(FI_EISCONN),
	     ROW(FI_ENOTCONN), ROW(FI_ESHUTDOWN), ROW(FI_EHOSTDOWN), ROW(FI_EHOSTUNREACH),
	     ROW(FI_EIO), ROW(FI_EREMOTEIO), ROW(FI_EOTHER), ROW(FI_ETOOSMALL), ROW(FI_EOPBADSTATE),
	     ROW(FI_EAVAIL), ROW(FI_EBADFLAGS), ROW(FI_ENOEQ), ROW(FI_EDOMAIN), ROW(FI_ENOCQ),
	     ROW(FI_ECRC), ROW(FI_ETRUNC), ROW(FI_ENOKEY), ROW(FI_ENOAV), ROW(FI_EOVERRUN),
	     ROW(FI_ENORX), ROW(FI_EWOULDBLOCK)),
};

const struct mrf_names mrf_names_hmem_iface = {
	ROWS(ROW(FI_HMEM_SYSTEM), ROW(FI_HMEM_CUDA), ROW(FI_HMEM_ROCR), ROW(FI_HMEM_ZE),
	     ROW(FI_HMEM_NEURON), ROW(FI_HMEM_SYNAPSEAI)),
};

const struct mrf_names mrf_names_link_state = {
	ROWS(ROW(FI_LINK_UNKNOWN), ROW(FI_LINK_DOWN), ROW(FI_LINK_UP)),
};

const struct mrf_names mrf_names_log_level = {
	ROWS({ FI_LOG_WARN, "warn" }, { FI_LOG_TRACE, "trace" }, { FI_LOG_INFO, "info" },
	     { FI_LOG_DEBUG, "debug" }),
};

const struct mrf_names mrf_names_log_subsys = {
	ROWS({ FI_LOG_CORE, "core" }, { FI_LOG_FABRIC, "fabric" }, { FI_LOG_DOMAIN, "domain" },
	     { FI_LOG_EP_CTRL, "ep_ctrl" }, { FI_LOG_EP_DATA, "ep_data" }, { FI_LOG_AV, "av" },
	     { FI_LOG_CQ, "cq" }, { FI_LOG_EQ, "eq" }, { FI_LOG_MR, "mr" },
	     { FI_LOG_CNTR, "cntr" }),
};

const struct mrf_names mrf_names_op_type = {
	ROWS(ROW(FI_OP_RECV), ROW(FI_OP_SEND), ROW(FI_OP_TRECV), ROW(FI_OP_TSEND), ROW(FI_OP_READ),
	     ROW(FI_OP_WRITE), ROW(FI_OP_ATOMIC), ROW(FI_OP_FETCH_ATOMIC),
	     ROW(FI_OP_COMPARE_ATOMIC), ROW(FI_OP_CNTR_SET), ROW(FI_OP_CNTR_ADD)),
};

const struct mrf_names mrf_names_progress = {
	ROWS(ROW(FI_PROGRESS_UNSPEC), ROW(FI_PROGRESS_AUTO), ROW(FI_PROGRESS_MANUAL)),
};

const struct mrf_names mrf_names_protocol = {
	ROWS(ROW(FI_PROTO_UNSPEC), ROW(FI_PROTO_RDMA_CM_IB_RC), ROW(FI_PROTO_IWARP),
	     ROW(FI_PROTO_IB_UD), ROW(FI_PROTO_PSMX), ROW(FI_PROTO_UDP), ROW(FI_PROTO_SOCK_TCP),
	     ROW(FI_PROTO_MXM), ROW(FI_PROTO_IWARP_RDM), ROW(FI_PROTO_IB_RDM), ROW(FI_PROTO_GNI),
	     ROW(FI_PROTO_RXM), ROW(FI_PROTO_RXD), ROW(FI_PROTO_MLX), ROW(FI_PROTO_NETWORKDIRECT),
	     ROW(FI_PROTO_PSMX2), ROW(FI_PROTO_SHM), ROW(FI_PROTO_MRAIL), ROW(FI_PROTO_RSTREAM),
	     ROW(FI_PROTO_RDMA_CM_IB_XRC), ROW(FI_PROTO_EFA), ROW(FI_PROTO_PSMX3),
	     ROW(FI_PROTO_RXM_TCP), ROW(FI_PROTO_OPX), ROW(FI_PROTO_CXI), ROW(FI_PROTO_XNET)),
	.prov = true,
};

const struct mrf_names mrf_names_resource_mgmt = {
	ROWS(ROW(FI_RM_UNSPEC), ROW(FI_RM_DISABLED), ROW(FI_RM_ENABLED)),
};

const struct mrf_names mrf_names_threading = {
	ROWS(ROW(FI_THREAD_UNSPEC), ROW(FI_THREAD_SAFE), ROW(FI_THREAD_FID), ROW(FI_THREAD_DOMAIN),
	     ROW(FI_THREAD_COMPLETION), ROW(FI_THREAD_ENDPOINT)),
};

/* --- look-up ---------------------------------------------------------------------- */

const char *mrf_names_enum(const struct mrf_names *names, uint64_t value)
{
	size_t i;

	if (names->prov && (value & FI_PROV_SPECIFIC))
		return "Provider specific";
	for (i = 0; i < names->count; i++) {
		if (names->rows[i].value == value)
			return names->rows[i].name;
	}
	return "Unknown";
}

/* Returns the room that is used now: at most len - 1. */
static size_t append_text(char *buf, size_t len, size_t used, const char *text)
{
	int n = snprintf(buf + used, len - used, "%s%s", used ? ", " : "", text);

	return n > 0 ? mrf_min(used + (size_t)n, len - 1) : used;
}

char *mrf_names_bits(const struct mrf_names *names, uint64_t value, char *buf, size_t len)
{
	size_t used = 0, i;
	char rest[24];

	buf[0] = '\0';
	if (!value && names->zero)
		append_text(buf, len, 0, names->zero);
	for (i = 0; i < names->count; i++) {
		if ((value & names->rows[i].value) != names->rows[i].value)
			continue;
		used = append_text(buf, len, used, names->rows[i].name);
		value &= ~names->rows[i].value;
	}
	if (value) {
		snprintf(rest, sizeof(rest), "0x%lx", value);
		append_text(buf, len, used, rest);
	}
	return buf;
}

bool mrf_names_is(const char *text, size_t len, const char *name)
{
	return strlen(name) == len && !strncasecmp(text, name, len);
}
