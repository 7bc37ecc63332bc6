/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/denied.h"
#include "verbs/vqp.h"

void mrf_agent_suspect(struct mrf_agent *agent)
{
	if (!agent->suspect_said)
		mrf_warn(FI_LOG_EP_CTRL, 5205,
			 "the credentials of this process have changed since it opened "
			 "the domain: the kernel takes no more of its work requests, "
			 "and its connections end (open fabric, domain and endpoints "
			 "after such changes)");
	agent->suspect_said = true;
	agent->suspect = true;
}

/* --- letting go ----------------------------------------------------------------------- */

/* One that is not done with yet; what it takes may change the map. */
static void search_one(void *value, void *arg)
{
	struct mrf_owner *owner = value, **found = arg;

	if (!*found && owner->calls->going(owner))
		*found = owner;
}

void mrf_agent_denied(struct mrf_agent *agent)
{
	struct mrf_owner *found;

	if (atomic_exchange(&agent->denied, true))
		return;
	mrf_agent_suspect(agent);
	epoll_ctl(agent->epoll_fd, EPOLL_CTL_DEL, mrf_vcm_fd(agent->cm), NULL);
	mrf_vcm_abandon(agent->cm);
	do {
		found = NULL;
		mrf_idmap_each(&agent->owners, search_one, &found);
		if (found)
			found->calls->end(found);
	} while (found);
}

int mrf_agent_refuse(void)
{
	return mrf_refuse(FI_EACCES, FI_LOG_EP_CTRL, 5204, "%s", MRF_DENIED_TEXT);
}
