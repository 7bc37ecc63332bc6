/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr/still_open.h"

#include <stdio.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/names.h"
#include "base/where.h"
#include "mr/bind.h"
#include "mr/binding.h"
#include "mr/event.h"
#include "mr/region.h"
#include "obj/cntr.h"

#define LINES 100

/* What is said of a region, copied under the lock: the loader, which knows callers, has locks of its own. */
struct seen {
	struct mrf_ledger_entry entry;
	char name[128];
	char bound[96];
};

static size_t add_bound(const struct fid *fid, char *buf, size_t len)
{
	int n = snprintf(buf, len, ", bound to %s %p", mrf_obj_class_name(fid->fclass),
			 (const void *)fid);

	return n > 0 && (size_t)n < len ? (size_t)n : 0;
}

static void name_bound_locked(const struct mrf_mr *mr, char *buf, size_t len)
{
	const struct mrf_mr_binding *binding;
	size_t used = 0;

	mrf_lock_held(&mr->space->lock);
	*buf = '\0';
	mrf_list_each (node, &mr->bindings) {
		binding = mrf_list_entry(node, struct mrf_mr_binding, mine);
		used += add_bound(binding->port->ep->fid, buf + used, len - used);
	}
	if (!mr->event)
		return;
	mrf_list_each (node, &mr->event->counters) {
		binding = mrf_list_entry(node, struct mrf_mr_binding, mine);
		used += add_bound(mrf_cntr_obj(binding->cntr)->fid, buf + used, len - used);
	}
}

/* The first region that was registered after serial, if there is room for it. False: there is none. */
static bool next_region(struct mrf_mr_space *space, uint64_t serial, struct seen *seen)
{
	bool found = false;

	mrf_lock_take(&space->lock);
	mrf_list_each (node, &space->regions.holds) {
		const struct mrf_mr *mr = mrf_container_of(node, struct mrf_mr, held);

		if (mr->serial <= serial)
			continue;
		mrf_ledger_read(mr->entry, &seen->entry);
		mrf_mr_name(mr, seen->name, sizeof(seen->name));
		name_bound_locked(mr, seen->bound, sizeof(seen->bound));
		found = true;
		break;
	}
	mrf_lock_release(&space->lock);
	return found;
}

static void name_caller(const struct mrf_ledger_entry *entry, char *buf, size_t len)
{
	if (entry->caller)
		mrf_where_text((void *)(uintptr_t)entry->caller, buf, len);
	else
		snprintf(buf, len, "a call that has not returned");
}

static void tell_region(const struct seen *seen)
{
	int64_t age = mrf_now_ms() - seen->entry.since;
	char rights[128], where[160];

	mrf_names_bits(&mrf_names_caps, seen->entry.access & MRF_MR_RIGHTS, rights, sizeof(rights));
	name_caller(&seen->entry, where, sizeof(where));
	mrf_log(FI_LOG_WARN, FI_LOG_MR,
		"MRF-W3080: still open: memory region %s, %s, %ld.%ld s old%s, registered by %s",
		seen->name, rights, age / 1000, age / 100 % 10, seen->bound, where);
}

static void write_key(const struct mrf_ledger_entry *entry, struct mrf_json *json)
{
	if (entry->key == FI_KEY_NOTAVAIL)
		mrf_json_null(json, "key");
	else
		mrf_json_hex(json, "key", entry->key);
}

/* As mrfab_info --pid --json does. */
static void write_region(const struct mrf_ledger_entry *entry, const char *domain,
			 struct mrf_json *json)
{
	const void *caller = (void *)(uintptr_t)entry->caller;
	struct mrf_where where;
	char path[PATH_MAX];

	mrf_where_find(caller, &where);
	mrf_where_path(caller, path);
	mrf_json_begin(json, "region");
	mrf_json_text(json, "domain", domain);
	mrf_json_hex(json, "address", entry->addr);
	mrf_json_number(json, "length", entry->len);
	write_key(entry, json);
	mrf_json_set(json, "access", &mrf_names_caps, entry->access & MRF_MR_RIGHTS);
	mrf_json_number(json, "segments", entry->segments);
	mrf_json_number(json, "bound", entry->bound);
	mrf_json_number(json, "age_ms", (uint64_t)(mrf_now_ms() - entry->since));
	mrf_json_text(json, "object", path);
	if (entry->caller)
		mrf_json_hex(json, "place", where.place);
	else
		mrf_json_null(json, "place");
	mrf_json_text(json, "function", where.function);
	mrf_json_end(json);
}

static void write_more(unsigned n, const char *domain, struct mrf_json *json)
{
	mrf_json_begin(json, "more_regions");
	mrf_json_text(json, "domain", domain);
	mrf_json_number(json, "count", n);
	mrf_json_end(json);
}

static unsigned count_regions(struct mrf_mr_space *space)
{
	unsigned n = 0;

	mrf_lock_take(&space->lock);
	mrf_list_each (node, &space->regions.holds)
		n++;
	mrf_lock_release(&space->lock);
	return n;
}

unsigned mrf_mr_still_open_tell(struct mrf_mr_space *space, struct mrf_json *json)
{
	unsigned told = 0, all = count_regions(space);
	const char *domain = space->ledger.head->domain;
	struct seen seen = { .entry.serial = 0 };

	while (told < LINES && next_region(space, seen.entry.serial, &seen)) {
		tell_region(&seen);
		write_region(&seen.entry, domain, json);
		told++;
	}
	if (all <= told || told < LINES)
		return all;
	mrf_log(FI_LOG_WARN, FI_LOG_MR,
		"MRF-W3081: still open: %u more memory regions; mrfab_info --pid=%d lists them",
		all - told, (int)getpid());
	write_more(all - told, domain, json);
	return all;
}
