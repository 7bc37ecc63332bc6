/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr/binding.h"

#include <stdlib.h>
#include "mr/region.h"

struct mrf_mr_binding *mrf_mr_binding_new_locked(struct mrf_mr *mr, struct mrf_list *mine,
						 struct mrf_list *theirs)
{
	struct mrf_mr_binding *binding = malloc(sizeof(*binding));

	mrf_lock_held(&mr->space->lock);
	if (!binding)
		return NULL;
	binding->mr = mr;
	mr->entry->bound++;
	mrf_list_add_tail(&binding->mine, mine);
	mrf_list_add_tail(&binding->theirs, theirs);
	return binding;
}

void mrf_mr_binding_end_locked(struct mrf_mr_binding *binding)
{
	mrf_lock_held(&binding->mr->space->lock);
	binding->mr->entry->bound--;
	mrf_list_del(&binding->mine);
	mrf_list_del(&binding->theirs);
	free(binding);
}
