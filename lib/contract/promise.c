/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/promise.h"

#include <rdma/fi_endpoint.h>
#include "contract/limits.h"

const struct mrf_promise mrf_promise_all = {
	.caps = MRF_CAPS_ALL,
	.order = MRF_MSG_ORDER | MRF_MSG_ORDER_EXTRA,
	.msg_size = MRF_LIMIT_MSG_SIZE,
	.order_size = MRF_LIMIT_ORDER_SIZE,
	.inject = MRF_LIMIT_INJECT,
	.tx_iov = MRF_LIMIT_IOV,
	.rx_iov = MRF_LIMIT_IOV,
	.rma_iov = MRF_LIMIT_RMA_IOV,
	.cq_data = MRF_LIMIT_CQ_DATA,
};
