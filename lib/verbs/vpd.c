/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "base/log.h"
#include "verbs/verbs_int.h"

int mrf_vpd_alloc(struct mrf_vdev *dev, struct mrf_vpd **out)
{
	struct mrf_vpd *vpd;
	int ret;

	vpd = malloc(sizeof(*vpd));
	if (!vpd)
		return -FI_ENOMEM;
	vpd->dev = dev;
	vpd->pd = ibv_alloc_pd(dev->ctx);
	if (!vpd->pd) {
		ret = mrf_verbs_errno();
		free(vpd);
		return ret;
	}
	*out = vpd;
	return 0;
}

void mrf_vpd_free(struct mrf_vpd *vpd)
{
	int ret = mrf_verbs_ret(ibv_dealloc_pd(vpd->pd));

	/* Nobody can do anything about it any more: say it, and let go. */
	if (ret)
		mrf_warn(FI_LOG_DOMAIN, 5201,
			 "protection domain not released by the kernel: error %d", -ret);
	free(vpd);
}
