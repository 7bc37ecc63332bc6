/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What discovery offers, in one place: the most that hints may ask for of each attribute
 * (hints.c), from which an answer begins (make.c). Immutable.
 */
#ifndef MRF_INFO_OFFER_H
#define MRF_INFO_OFFER_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

struct mrf_info_offer {
	uint64_t caps;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	struct fi_domain_attr domain; /* of an enumeration, the last value there is */
};

extern const struct mrf_info_offer mrf_info_offer;

#endif
