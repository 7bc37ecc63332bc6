/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel compares the credentials of the process that writes to a uverbs or rdma_cm
 * descriptor with those of the process that opened it. Registering is an ioctl, for which it
 * compares nothing, and goes on.
 *
 * A work request that is refused stays in the queue, which is shared memory, and runs
 * when something else moves the queue on. So it counts as posted, its connection is
 * marked (MRF_WC_DENIED), the agent puts the queue pair into error, and everything that
 * was posted comes back. Those operations fail with FI_EACCES, "may or may not have been
 * done"; the ones that were not posted fail with "nothing was done".
 *
 * When the agent's thread is refused as well, rdma_cm is lost: reading its events fails,
 * and its descriptor stays readable. mrf_vcm_abandon puts the end of a pipe in its place,
 * which makes the kernel end all connections and listeners and tell the peers. The agent
 * then ends its own connections and remains for closing. The memory that librdmacm has
 * allocated for the ids is lost. Where only the credentials of the application's thread
 * have changed (capset), the connection is made anew and everything else goes on.
 */
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "loop/denied.h"
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

/* Finds an owner that has something to end, which may change the map. */
static void search_one(void *value, void *arg)
{
	struct mrf_owner *owner = value, **found = arg;

	if (!*found && (!owner->calls->going || owner->calls->going(owner)))
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
