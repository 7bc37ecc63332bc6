/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/limits.h"
#include "info/offer.h"
#include "proto/proto.h"

const struct mrf_info_offer mrf_info_offer = {
	.caps = MRF_CAPS_ALL,
	.tx = {
		.caps = MRF_CAPS_TX | MRF_CAPS_TX_EXTRA,
		.op_flags = MRF_OP_FLAGS_TX,
		.msg_order = MRF_MSG_ORDER | MRF_MSG_ORDER_EXTRA,
		.comp_order = MRF_COMP_ORDER,
		.inject_size = MRF_LIMIT_INJECT,
		.size = MRF_LIMIT_SIZE,
		.iov_limit = MRF_LIMIT_IOV,
		.rma_iov_limit = MRF_LIMIT_RMA_IOV,
	},
	.rx = {
		.caps = MRF_CAPS_RX | MRF_CAPS_RX_EXTRA,
		.op_flags = MRF_OP_FLAGS_RX,
		.msg_order = MRF_MSG_ORDER | MRF_MSG_ORDER_EXTRA,
		.comp_order = MRF_COMP_ORDER,
		.size = MRF_LIMIT_SIZE,
		.iov_limit = MRF_LIMIT_IOV,
	},
	.ep = {
		.type = FI_EP_RDM,
		.protocol = MRF_PROTOCOL,
		.protocol_version = MRF_PROTO_VERSION,
		.max_msg_size = MRF_LIMIT_MSG_SIZE,
		.max_order_raw_size = MRF_LIMIT_ORDER_SIZE,
		.max_order_waw_size = MRF_LIMIT_ORDER_SIZE,
		.mem_tag_format = MRF_LIMIT_TAG_FORMAT,
		.tx_ctx_cnt = MRF_LIMIT_CTX_CNT,
		.rx_ctx_cnt = MRF_LIMIT_CTX_CNT,
		.auth_key_size = MRF_LIMIT_AUTH_KEY,
	},
	.domain = {
		.threading = FI_THREAD_ENDPOINT,
		.control_progress = FI_PROGRESS_MANUAL,
		.data_progress = FI_PROGRESS_MANUAL,
		.resource_mgmt = FI_RM_ENABLED,
		.av_type = FI_AV_TABLE,
		.mr_key_size = MRF_LIMIT_KEY_SIZE,
		.cq_data_size = MRF_LIMIT_CQ_DATA,
		.cq_cnt = MRF_LIMIT_CQ_CNT,
		.ep_cnt = MRF_LIMIT_EP_CNT,
		.tx_ctx_cnt = MRF_LIMIT_EP_CNT,
		.rx_ctx_cnt = MRF_LIMIT_EP_CNT,
		.max_ep_tx_ctx = MRF_LIMIT_CTX_CNT,
		.max_ep_rx_ctx = MRF_LIMIT_CTX_CNT,
		.cntr_cnt = MRF_LIMIT_CNTR_CNT,
		.mr_iov_limit = MRF_LIMIT_MR_IOV,
		.caps = MRF_CAPS_SECONDARY,
		.auth_key_size = MRF_LIMIT_AUTH_KEY,
		.max_err_data = MRF_LIMIT_ERR_DATA,
		.mr_cnt = MRF_LIMIT_MR_CNT,
	},
};
