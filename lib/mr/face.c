/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/access.h"
#include "mr/bind.h"
#include "mr/binding.h"
#include "mr/class.h"
#include "mr/demand/back.h"
#include "mr/demand/unpin.h"
#include "mr/face.h"
#include "mr/pins.h"
#include "mr/region.h"
#include "mr/seg.h"

static void push_face(struct mrf_mr_face **faces, struct mrf_mr_face *face)
{
	face->next = *faces;
	*faces = face;
}

static struct mrf_mr_face *pop_face(struct mrf_mr_face **faces)
{
	struct mrf_mr_face *face = *faces;

	if (face)
		*faces = face->next;
	return face;
}

/* Takes the live face of this class out of the list; NULL: there is none. */
static struct mrf_mr_face *take_face(struct mrf_mr_face **faces, const struct mrf_mr_class *class)
{
	while (*faces && ((*faces)->class != class || (*faces)->dead))
		faces = &(*faces)->next;
	return pop_face(faces);
}

struct mrf_mr_face *mrf_mr_face_of_locked(const struct mrf_mr *mr, const struct mrf_mr_class *class)
{
	struct mrf_mr_face *face = mr->faces;

	mrf_lock_held(&mr->space->lock);
	while (face && (face->class != class || face->dead))
		face = face->next;
	return face;
}

struct mrf_mr_face *mrf_mr_face_sole_locked(const struct mrf_mr *mr)
{
	struct mrf_mr_face *face, *sole = NULL;

	mrf_lock_held(&mr->space->lock);
	for (face = mr->faces; face; face = face->next) {
		if (face->dead)
			continue;
		if (sole)
			return NULL;
		sole = face;
	}
	return sole;
}

/* --- making ----------------------------------------------------------------------- */

static int plan_one_locked(const struct mrf_mr *mr, struct mrf_mr_class *class,
			   struct mrf_mr_face **faces)
{
	unsigned nseg = mr->back || mr->device ? 0 : mr->nseg;
	struct mrf_mr_face *face = calloc(1, sizeof(*face) + nseg * sizeof(face->vmr[0]));

	if (!face)
		return -FI_ENOMEM;
	mrf_mr_class_get_locked(class);
	face->class = class;
	face->nseg = nseg;
	push_face(faces, face);
	return 0;
}

static bool by_endpoint(const struct mrf_mr *mr)
{
	return mr->space->mode & FI_MR_ENDPOINT;
}

int mrf_mr_faces_plan_locked(struct mrf_mr *mr, struct mrf_mr_face **faces)
{
	int ret = 0;

	mrf_lock_held(&mr->space->lock);
	if (by_endpoint(mr) && mrf_list_empty(&mr->bindings))
		return -FI_EINVAL;
	if (!mrf_mr_faced(mr) || !(mr->access & MRF_MR_REMOTE))
		return 0;
	if (!by_endpoint(mr))
		return plan_one_locked(mr, mr->group->class, faces);
	mrf_list_each (node, &mr->bindings) {
		struct mrf_mr_binding *binding = mrf_list_entry(node, struct mrf_mr_binding, mine);

		ret = ret ? ret : plan_one_locked(mr, binding->port->class, faces);
	}
	return ret;
}

static int pin_plain(const struct mrf_mr *mr, const struct mrf_mr_seg *segs,
		     struct mrf_mr_face *face)
{
	unsigned rights = mrf_mr_access_kernel(mr->space, mr->access & MRF_MR_REMOTE);
	struct mrf_mr_pins pins;
	int ret = mrf_mr_pin(mr->space, face->class->pd, segs, mr->nseg, rights, &pins);

	if (ret)
		return ret;
	memcpy(face->vmr, pins.vmr, face->nseg * sizeof(face->vmr[0]));
	return 0;
}

static int pin_one(const struct mrf_mr *mr, const struct mrf_mr_seg *segs, struct mrf_mr_face *face)
{
	/* Nothing of it is pinned: the face only says that peers of the class may reach it. */
	if (mr->device)
		return 0;
	if (!mr->back)
		return pin_plain(mr, segs, face);
	face->back = mrf_mr_back_face(mr->back, face->class,
				      mrf_mr_access_kernel(mr->space, mr->access & MRF_MR_REMOTE));
	if (face->back)
		return 0;
	return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "there is no memory for a region");
}

int mrf_mr_faces_pin(const struct mrf_mr *mr, const struct mrf_mr_seg *segs,
		     struct mrf_mr_face *faces)
{
	int ret = 0;

	for (; faces && !ret; faces = faces->next)
		ret = pin_one(mr, segs, faces);
	return ret;
}

/*
 * Picks from the faces that were made those that the region's bindings need. False: one is
 * missing.
 */
static bool take_bound_locked(const struct mrf_mr *mr, struct mrf_mr_face **faces,
			      struct mrf_mr_face **taken)
{
	mrf_list_each (node, &mr->bindings) {
		const struct mrf_mr_port *port =
			mrf_list_entry(node, struct mrf_mr_binding, mine)->port;
		struct mrf_mr_face *face = take_face(faces, port->class);

		if (!face)
			return !(mr->access & MRF_MR_REMOTE);
		push_face(taken, face);
	}
	return !mrf_list_empty(&mr->bindings);
}

bool mrf_mr_faces_take_locked(struct mrf_mr *mr, struct mrf_mr_face **faces)
{
	struct mrf_mr_face *taken = NULL, *face;
	bool all = true;

	mrf_lock_held(&mr->space->lock);
	if (by_endpoint(mr))
		all = take_bound_locked(mr, faces, &taken);
	else if (*faces)
		push_face(&taken, pop_face(faces));
	while ((face = pop_face(&taken)))
		push_face(all ? &mr->faces : faces, face);
	return all;
}

/* --- ending ----------------------------------------------------------------------- */

/* Deregisters the face, so that no peer gets through it; its memory is not freed. */
static int end_face(struct mrf_mr_face *face)
{
	int first = 0, ret;
	unsigned i;

	if (face->back)
		return mrf_mr_back_close(face->back);
	for (i = 0; i < face->nseg; i++) {
		ret = mrf_vmr_dereg(&face->vmr[i]);
		first = first ? first : ret;
	}
	if (first)
		mrf_refuse(-first, FI_LOG_MR, 3030, "the kernel keeps a region");
	return first;
}

static void face_free(struct mrf_mr_face *face)
{
	if (face->back)
		mrf_mr_back_put(face->back);
	mrf_mr_class_put(face->class);
	free(face);
}

int mrf_mr_faces_drop(struct mrf_mr_face **faces)
{
	int first = 0, ret;

	while (*faces) {
		ret = end_face(*faces);
		if (ret)
			faces = &(*faces)->next;
		else
			face_free(pop_face(faces));
		first = first ? first : ret;
	}
	return first;
}

void mrf_mr_faces_undo(struct mrf_mr *mr, struct mrf_mr_face **faces)
{
	struct mrf_mr_face *face;

	if (!mrf_mr_faces_drop(faces))
		return;
	mrf_lock_take(&mr->space->lock);
	while ((face = pop_face(faces))) {
		face->dead = true;
		push_face(&mr->faces, face);
	}
	mrf_lock_release(&mr->space->lock);
}

void mrf_mr_face_end_locked(struct mrf_mr *mr, const struct mrf_mr_class *class,
			    struct mrf_mr_face **done)
{
	struct mrf_mr_face *face = take_face(&mr->faces, class);

	mrf_lock_held(&mr->space->lock);
	if (!face)
		return;
	face->dead = end_face(face);
	push_face(face->dead ? &mr->faces : done, face);
}
