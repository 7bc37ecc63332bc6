/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/back.h"
#include "mr/face.h"

static struct mrf_mr_face *face_at(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_mr_face, node);
}

struct mrf_mr_face *mrf_mr_face_of(const struct mrf_mr *mr,
				   const struct mrf_mr_class *class)
{
	mrf_list_each (node, &mr->faces) {
		if (face_at(node)->class == class)
			return face_at(node);
	}
	return NULL;
}

struct mrf_mr_face *mrf_mr_face_sole(const struct mrf_mr *mr)
{
	struct mrf_list *first = mrf_list_first(&mr->faces);

	return first && first->next == &mr->faces ? face_at(first) : NULL;
}

/* --- making ----------------------------------------------------------------------- */

static int plan_one(const struct mrf_mr *mr, struct mrf_mr_class *class,
		    struct mrf_list *faces)
{
	unsigned nseg = mr->back ? 0 : mr->nseg;
	struct mrf_mr_face *face = calloc(1, sizeof(*face) + nseg * sizeof(face->vmr[0]));

	if (!face)
		return -FI_ENOMEM;
	mrf_mr_class_get(class);
	face->class = class;
	face->nseg = nseg;
	mrf_list_add_tail(&face->node, faces);
	return 0;
}

int mrf_mr_faces_plan(struct mrf_mr *mr, struct mrf_list *faces)
{
	int ret = 0;

	if (!mrf_mr_faced(mr))
		return 0;
	if (mrf_list_empty(&mr->bonds))
		return -FI_EINVAL;
	if (!(mr->access & MRF_MR_REMOTE))
		return 0;
	mrf_list_each (node, &mr->bonds) {
		struct mrf_mr_bond *bond =
			mrf_list_entry(node, struct mrf_mr_bond, mine);

		ret = ret ? ret : plan_one(mr, bond->port->class, faces);
	}
	return ret;
}

static int pin_plain(const struct mrf_mr *mr, struct mrf_mr_face *face)
{
	unsigned rights = mrf_mr_access_kernel(mr->space, mr->access & MRF_MR_REMOTE);
	struct mrf_mr_pins pins;
	int ret;

	ret = mrf_mr_pin(mr->space, face->class->pd, mr->segs, mr->nseg, rights, &pins);
	if (ret)
		return ret;
	memcpy(face->vmr, pins.vmr, face->nseg * sizeof(face->vmr[0]));
	return 0;
}

static int pin_one(const struct mrf_mr *mr, struct mrf_mr_face *face)
{
	if (!mr->back)
		return pin_plain(mr, face);
	face->back = mrf_mr_back_face(mr->back, face->class,
				      mrf_mr_access_kernel(mr->space, mr->access & MRF_MR_REMOTE));
	if (face->back)
		return 0;
	return mrf_refuse(FI_ENOMEM, FI_LOG_MR, 3022, "no memory for a region");
}

int mrf_mr_faces_pin(struct mrf_mr *mr, struct mrf_list *faces)
{
	int ret;

	mrf_list_each (node, faces) {
		ret = pin_one(mr, face_at(node));
		if (ret)
			return ret;
	}
	return 0;
}

static struct mrf_mr_face *find(struct mrf_list *faces, const struct mrf_mr_class *class)
{
	mrf_list_each (node, faces) {
		if (face_at(node)->class == class)
			return face_at(node);
	}
	return NULL;
}

bool mrf_mr_faces_take(struct mrf_mr *mr, struct mrf_list *faces)
{
	struct mrf_list taken;
	struct mrf_list *node;
	bool all = true;

	if (!mrf_mr_faced(mr))
		return true;
	if (mrf_list_empty(&mr->bonds))
		return false;
	mrf_list_init(&taken);
	mrf_list_each (bond, &mr->bonds) {
		struct mrf_mr_port *port =
			mrf_list_entry(bond, struct mrf_mr_bond, mine)->port;
		struct mrf_mr_face *face = find(faces, port->class);

		if (!face) {
			all = !(mr->access & MRF_MR_REMOTE);
			break;
		}
		mrf_list_del(&face->node);
		mrf_list_add_tail(&face->node, &taken);
	}
	while ((node = mrf_list_pop(&taken)))
		mrf_list_add_tail(node, all ? &mr->faces : faces);
	return all;
}

/* --- ending ----------------------------------------------------------------------- */

/* Peers are let through no more; memory is not given back. */
static int end(struct mrf_mr_face *face)
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

int mrf_mr_faces_drop(struct mrf_list *faces)
{
	int first = 0, ret;

	mrf_list_each_safe (node, faces) {
		ret = end(face_at(node));
		first = first ? first : ret;
		if (ret)
			continue;
		mrf_list_del(node);
		face_free(face_at(node));
	}
	return first;
}

void mrf_mr_face_end(struct mrf_mr *mr, const struct mrf_mr_class *class,
		     struct mrf_list *done)
{
	struct mrf_mr_face *face = mrf_mr_face_of(mr, class);

	if (!face || end(face))
		return;
	mrf_list_del(&face->node);
	mrf_list_add_tail(&face->node, done);
}
