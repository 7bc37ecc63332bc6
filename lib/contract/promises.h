/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the providers promise of endpoints, as far as this library has it: capabilities and orders that it
 * lacks are left out, and its own limits stand for greater ones. For contract/profile.c. Constants only.
 */
#ifndef MRF_CONTRACT_PROMISES_H
#define MRF_CONTRACT_PROMISES_H

#include "contract/promise.h"

extern const struct mrf_promise mrf_promise_verbs, mrf_promise_rxm, mrf_promise_efa,
	mrf_promise_efa_direct, mrf_promise_cxi, mrf_promise_ucx, mrf_promise_mrail,
	mrf_promise_tcp, mrf_promise_tcp_rxm, mrf_promise_sockets, mrf_promise_rxd, mrf_promise_shm,
	mrf_promise_shm_fast, mrf_promise_psm2, mrf_promise_psm3, mrf_promise_opx, mrf_promise_lpp,
	mrf_promise_usnic;

#endif
