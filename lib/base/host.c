/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/host.h"

const struct mrf_host *mrf_host;
