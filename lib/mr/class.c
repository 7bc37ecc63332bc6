/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "auth/auth.h"
#include "mr/class.h"
#include "mr/space.h"

int mrf_mr_class_new(struct mrf_mr_space *space, struct mrf_mr_class **out)
{
	struct mrf_mr_class *class = calloc(1, sizeof(*class));
	int ret;

	if (!class)
		return -FI_ENOMEM;
	class->space = space;
	class->refs = 1;
	ret = mrf_vpd_alloc(space->vdev, &class->pd);
	if (ret) {
		free(class);
		return ret;
	}
	*out = class;
	return 0;
}

void mrf_mr_class_get_locked(struct mrf_mr_class *class)
{
	if (!class)
		return;
	mrf_lock_held(&class->space->lock);
	class->refs++;
}

void mrf_mr_class_put(struct mrf_mr_class *class)
{
	bool last;

	if (!class)
		return;
	mrf_lock_take(&class->space->lock);
	last = !--class->refs;
	mrf_lock_release(&class->space->lock);
	if (!last)
		return;
	mrf_vpd_free(class->pd);
	free(class);
}

/* --- groups ----------------------------------------------------------------------- */

static void group_free(struct mrf_mr_group *group)
{
	mrf_mr_class_put(group->class);
	mrf_auth_free(group->auth);
	free(group);
}

static int group_new(struct mrf_mr_space *space, const void *key, size_t size,
		     struct mrf_mr_group **out)
{
	struct mrf_mr_group *group = calloc(1, sizeof(*group));
	int ret;

	if (!group)
		return -FI_ENOMEM;
	group->space = space;
	group->refs = 1;
	ret = mrf_auth_new(key, size, &group->auth);
	if (!ret && !(space->mode & FI_MR_ENDPOINT))
		ret = mrf_mr_class_new(space, &group->class);
	if (ret) {
		group_free(group);
		return ret;
	}
	*out = group;
	return 0;
}

/* Returns the group with a reference, or NULL. */
static struct mrf_mr_group *find_group_locked(struct mrf_mr_space *space, const void *key,
					      size_t size)
{
	mrf_lock_held(&space->lock);
	mrf_list_each (node, &space->groups) {
		struct mrf_mr_group *group = mrf_list_entry(node, struct mrf_mr_group, node);

		if (!mrf_auth_is(group->auth, key, size))
			continue;
		group->refs++;
		return group;
	}
	return NULL;
}

static struct mrf_mr_group *look_for_group(struct mrf_mr_space *space, const void *key, size_t size)
{
	struct mrf_mr_group *group;

	mrf_lock_take(&space->lock);
	group = find_group_locked(space, key, size);
	mrf_lock_release(&space->lock);
	return group;
}

/* Enters the new group, or frees it if another thread entered one with this key first. */
static struct mrf_mr_group *enter_group(struct mrf_mr_space *space, struct mrf_mr_group *new,
					const void *key, size_t size)
{
	struct mrf_mr_group *group;

	mrf_lock_take(&space->lock);
	group = find_group_locked(space, key, size);
	if (!group) {
		new->id = ++space->last_group;
		mrf_list_add_tail(&new->node, &space->groups);
	}
	mrf_lock_release(&space->lock);
	if (!group)
		return new;
	group_free(new);
	return group;
}

int mrf_mr_group_get(struct mrf_mr_space *space, const void *key, size_t size,
		     struct mrf_mr_group **out)
{
	struct mrf_mr_group *group = NULL;
	int ret = 0;

	if (size && !mrf_auth_is(space->auth, key, size)) {
		group = look_for_group(space, key, size);
		if (!group) {
			ret = group_new(space, key, size, &group);
			if (!ret)
				group = enter_group(space, group, key, size);
		}
	}
	if (!ret)
		*out = group;
	return ret;
}

void mrf_mr_group_put(struct mrf_mr_group *group)
{
	bool last;

	if (!group)
		return;
	mrf_lock_take(&group->space->lock);
	last = !--group->refs;
	if (last)
		mrf_list_del(&group->node);
	mrf_lock_release(&group->space->lock);
	if (last)
		group_free(group);
}
