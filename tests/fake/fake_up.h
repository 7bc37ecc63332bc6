/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_fabric for programs without endpoints: what is above domains is fake_up, which a test
 * changes as it likes. Without a change fi_endpoint answers -FI_ENOSYS.
 */
#ifndef MRF_TESTS_FAKE_UP_H
#define MRF_TESTS_FAKE_UP_H

#include "domain/domain.h"

extern struct mrf_domain_up fake_up;

#endif
