/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/link/passive.h"
#include "ep/rx/cut.h"

static void say_why(const struct mrf_inlet *inlet, const char *text)
{
	if (!inlet->wrong)
		mrf_info(FI_LOG_EP_CTRL,
			 "%s sends nothing, and its connection may hold receives that are wanted: "
			 "the connection is closed",
			 text);
	else if (inlet->wrong == -FI_E2BIG)
		mrf_warn(FI_LOG_EP_CTRL, 4325,
			 "%s sends more messages than it may: its connection is closed", text);
	else
		mrf_warn(FI_LOG_EP_CTRL, 4326,
			 "%s sends what is no message, or not the next one (%d): its connection is "
			 "closed",
			 text, inlet->wrong);
}

void mrf_passive_cut(struct mrf_inlet *inlet)
{
	struct mrf_passive *passive = inlet->owner;
	char text[MRF_ADDR_TEXT];

	say_why(inlet, mrf_addr_text(&passive->addr, text, sizeof(text)));
	mrf_passive_disconnect(passive);
}
