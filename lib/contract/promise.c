/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/promise.h"

#include "base/compiler.h"
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

int mrf_promise_atomic(const struct mrf_promise *promise, unsigned family, unsigned datatype,
		       unsigned op)
{
	const struct mrf_promise_atomics *atomics = promise->atomics;

	if (!atomics)
		return 0;
	if (!atomics->types[family][op])
		return atomics->op_error;
	return atomics->types[family][op] >> datatype & 1 ? 0 : atomics->type_error;
}

size_t mrf_promise_elements(const struct mrf_promise *promise, size_t most)
{
	const struct mrf_promise_atomics *atomics = promise->atomics;

	return atomics && atomics->elements < most ? atomics->elements : most;
}

unsigned mrf_promise_inject(const struct mrf_promise *promise, const struct fi_tx_attr *tx)
{
	if (!promise->inject_most || !tx || !tx->inject_size)
		return promise->inject;
	return (unsigned)mrf_min(tx->inject_size, promise->inject_most);
}
