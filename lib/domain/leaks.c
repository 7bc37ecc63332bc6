/* SPDX-License-Identifier: BSD-2-Clause */
#include "domain/leaks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>
#include "base/env.h"
#include "base/log.h"
#include "base/renew.h"
#include "mr/still_open.h"
#include "obj/obj.h"

#define STATUS 99 /* as of mrfab_run --fail-on */

enum how { SILENT, REPORT, FAIL };

static void forget_parents(void);

static struct mrf_static_lock lock = MRF_STATIC_LOCK(forget_parents);
static struct mrf_list opened = { &opened, &opened };

/* What the parent opened is its own. */
static void forget_parents(void)
{
	mrf_list_init(&opened);
}

static enum how read_how(void)
{
	static atomic_bool said;
	const char *how = mrf_env_str(MRF_PARAM_LEAKS);

	if (!how || !*how)
		return SILENT;
	if (!strcasecmp(how, "report"))
		return REPORT;
	if (!strcasecmp(how, "fail"))
		return FAIL;
	if (!atomic_exchange(&said, true))
		mrf_warn(FI_LOG_CORE, 5921,
			 "FI_MRFAB_LEAKS=\"%.64s\": the value must be report or fail; what is left "
			 "open will not be named",
			 how);
	return SILENT;
}

void mrf_leaks_opened(struct mrf_leaks_node *node, struct mrf_obj *obj, struct mrf_mr_space *space)
{
	node->obj = obj;
	node->space = space;
	/* A wrong value is no news at the end. */
	read_how();
	mrf_static_take(&lock);
	mrf_list_add_tail(&node->node, &opened);
	mrf_static_release(&lock);
}

void mrf_leaks_closed(struct mrf_leaks_node *node)
{
	mrf_static_take(&lock);
	mrf_list_del(&node->node);
	mrf_static_release(&lock);
}

/* Everything that is open on a fabric or domain, and itself. */
static unsigned tell_node(const struct mrf_leaks_node *node)
{
	unsigned n = 0;

	if (!mrf_fork_ours(node->obj->owner))
		return 0;
	if (!node->space)
		mrf_log(FI_LOG_WARN, FI_LOG_FABRIC, "MRF-W2049: still open: fabric %p",
			(void *)node->obj->fid);
	else
		n = mrf_mr_still_open_tell(node->space);
	return n + mrf_obj_tell_holders(node->obj) + !node->space;
}

static unsigned tell_all(void)
{
	unsigned n = 0;

	mrf_static_take(&lock);
	mrf_list_each (node, &opened)
		n += tell_node(mrf_list_entry(node, struct mrf_leaks_node, node));
	mrf_static_release(&lock);
	return n;
}

/* What has been printed is not written out yet. */
__attribute__((destructor)) static void look_at_the_end(void)
{
	enum how how = read_how();
	unsigned n = how == SILENT ? 0 : tell_all();

	if (!n)
		return;
	mrf_log(FI_LOG_WARN, FI_LOG_CORE, "MRF-W2050: FI_MRFAB_LEAKS: %u object%s not closed", n,
		n == 1 ? " was" : "s were");
	if (how != FAIL)
		return;
	fflush(NULL);
	_exit(STATUS);
}
