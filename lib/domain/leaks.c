/* SPDX-License-Identifier: BSD-2-Clause */
#include "domain/leaks.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/env.h"
#include "base/errtext.h"
#include "base/json.h"
#include "base/log.h"
#include "base/names.h"
#include "base/renew.h"
#include "mr/still_open.h"
#include "obj/obj.h"

#define STATUS 99 /* as of mrfab_run --fail-on */

enum how { SILENT, REPORT, FAIL };

static void forget_parents(void);

static struct mrf_static_lock lock = MRF_STATIC_LOCK(forget_parents);
static struct mrf_list opened = { &opened, &opened };
static bool used; /* something was opened; guarded by lock */

/* What the parent opened is its own. */
static void forget_parents(void)
{
	mrf_list_init(&opened);
	used = false;
}

/* *file: where the report goes, owned by the environment; NULL: to the log alone. */
static enum how read_how(const char **file)
{
	static atomic_bool said;
	const char *how = mrf_env_str(MRF_PARAM_LEAKS);
	size_t len = how ? strcspn(how, ":") : 0;

	*file = len && how[len] && how[len + 1] ? how + len + 1 : NULL;
	if (!len)
		return SILENT;
	if (mrf_names_is(how, len, "report"))
		return REPORT;
	if (mrf_names_is(how, len, "fail"))
		return FAIL;
	if (!atomic_exchange(&said, true))
		mrf_warn(
			FI_LOG_CORE, 5921,
			"FI_MRFAB_LEAKS=\"%.64s\": the value must be report or fail, and a file may "
			"follow behind a colon; what is left open will not be named",
			how);
	return SILENT;
}

void mrf_leaks_opened(struct mrf_leaks_node *node, struct mrf_obj *obj, struct mrf_mr_space *space)
{
	const char *file;

	node->obj = obj;
	node->space = space;
	node->since = mrf_now_tick();
	/* A wrong value is no news at the end. */
	read_how(&file);
	mrf_static_take(&lock);
	used = true;
	mrf_list_add_tail(&node->node, &opened);
	mrf_static_release(&lock);
}

void mrf_leaks_closed(struct mrf_leaks_node *node)
{
	mrf_static_take(&lock);
	mrf_list_del(&node->node);
	mrf_static_release(&lock);
}

/* --- at the end ------------------------------------------------------------------------ */

static void tell_fabric(const struct mrf_leaks_node *node, struct mrf_json *json)
{
	int64_t age = mrf_now_ms() - node->since;
	char name[64];

	snprintf(name, sizeof(name), "fabric %p", (void *)node->obj->fid);
	mrf_log(FI_LOG_WARN, FI_LOG_FABRIC, "MRF-W2049: still open: %s, %ld.%ld s old", name,
		age / 1000, age / 100 % 10);
	mrf_json_begin(json, "object");
	mrf_json_text(json, "name", name);
	mrf_json_number(json, "age_ms", (uint64_t)age);
	mrf_json_end(json);
}

/* Everything that is open on a fabric or domain, and itself. */
static unsigned tell_node(const struct mrf_leaks_node *node, struct mrf_json *json)
{
	unsigned n = 0;

	if (!mrf_fork_ours(node->obj->owner))
		return 0;
	if (!node->space)
		tell_fabric(node, json);
	else
		n = mrf_mr_still_open_tell(node->space, json);
	return n + mrf_obj_tell_holders(node->obj, json) + !node->space;
}

static unsigned tell_all(struct mrf_json *json)
{
	unsigned n = 0;

	mrf_static_take(&lock);
	mrf_list_each (node, &opened)
		n += tell_node(mrf_list_entry(node, struct mrf_leaks_node, node), json);
	mrf_static_release(&lock);
	return n;
}

static bool was_used(void)
{
	bool was;

	mrf_static_take(&lock);
	was = used;
	mrf_static_release(&lock);
	return was;
}

/* Processes that end at the same time need a file each: %p is the process's number. */
static void path_of(const char *file, char *path, size_t len)
{
	const char *at = strstr(file, "%p");

	if (at)
		snprintf(path, len, "%.*s%d%s", (int)(at - file), file, (int)getpid(), at + 2);
	else
		snprintf(path, len, "%s", file);
}

/* Says what is open, also in the file. */
static unsigned report(const char *file)
{
	struct mrf_json json = { .file = NULL };
	char path[PATH_MAX] = "";
	int err = 0;
	unsigned n;

	if (file)
		path_of(file, path, sizeof(path));
	if (file && !mrf_json_open(&json, path))
		err = errno;
	n = tell_all(&json);
	if (!mrf_json_close(&json))
		err = errno;
	if (err)
		mrf_warn(FI_LOG_CORE, 5922, "FI_MRFAB_LEAKS: %s cannot be written: %s", path,
			 mrf_errtext(err));
	return n;
}

/* What has been printed is not written out yet. */
__attribute__((destructor)) static void look_at_the_end(void)
{
	const char *file;
	enum how how = read_how(&file);
	unsigned n = how != SILENT && was_used() ? report(file) : 0;

	if (!n)
		return;
	mrf_log(FI_LOG_WARN, FI_LOG_CORE, "MRF-W2050: FI_MRFAB_LEAKS: %u object%s not closed", n,
		n == 1 ? " was" : "s were");
	if (how != FAIL)
		return;
	fflush(NULL);
	_exit(STATUS);
}
