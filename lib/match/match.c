/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/random.h"
#include "match/match.h"

/* The offset of a node is that from the beginning of its structure. */
_Static_assert(!offsetof(struct mrf_match_recv, item), "an item begins its structure");
_Static_assert(!offsetof(struct mrf_match_msg, item), "an item begins its structure");

#define ALL_BITS UINT64_MAX

static struct mrf_match_msg *msg_of(struct mrf_queues_item *item)
{
	return mrf_container_of(item, struct mrf_match_msg, item);
}

static struct mrf_match_msg *msg_in_all(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_match_msg, all);
}

/* --- the instance ------------------------------------------------------------------- */

static void init_recvs(struct mrf_match *match)
{
	unsigned i;

	mrf_list_init(&match->all_recvs);
	mrf_list_init(&match->rest);
	for (i = 0; i < MRF_MATCH_FAMILIES; i++)
		mrf_queues_init(&match->family[i].queues, &match->salt, ALL_BITS, ALL_BITS,
				offsetof(struct mrf_match_recv, at));
}

static void init_msgs(struct mrf_match *match)
{
	const struct mrf_queues_salt *salt = &match->salt;

	mrf_list_init(&match->all_msgs);
	mrf_queues_init(&match->exact, salt, ALL_BITS, ALL_BITS,
			offsetof(struct mrf_match_msg, exact));
	mrf_queues_init(&match->of_source, salt, ALL_BITS, 0,
			offsetof(struct mrf_match_msg, of_source));
	mrf_queues_init(&match->of_tag, salt, 0, ALL_BITS, offsetof(struct mrf_match_msg, of_tag));
}

int mrf_match_init(struct mrf_match *match)
{
	*match = (struct mrf_match){ .recvs = 0 };
	if (!mrf_random(&match->salt, sizeof(match->salt)))
		return -FI_EIO;
	init_recvs(match);
	init_msgs(match);
	return 0;
}

static void drop_views(struct mrf_match *match)
{
	while (match->views)
		mrf_queues_fini(&match->view[--match->views].queues);
	match->walked = 0;
}

void mrf_match_fini(struct mrf_match *match)
{
	unsigned i;

	assert(!match->recvs && !match->msgs);
	for (i = 0; i < MRF_MATCH_FAMILIES; i++)
		mrf_queues_fini(&match->family[i].queues);
	mrf_queues_fini(&match->exact);
	mrf_queues_fini(&match->of_source);
	mrf_queues_fini(&match->of_tag);
	drop_views(match);
}

/* --- families of receives ----------------------------------------------------------- */

static bool has_none(const struct mrf_match_family *family)
{
	return !family->queues.queues;
}

/*
 * An empty family stays as long as there are unused ones, because programs post and match
 * in turn. NULL: all have receives.
 */
static struct mrf_match_family *family_for(struct mrf_match *match, uint64_t ignore, bool directed)
{
	struct mrf_match_family *family, *end = match->family + match->used, *empty = NULL;

	for (family = match->family; family < end; family++) {
		if (family->ignore == ignore && family->directed == directed)
			return family;
		if (has_none(family))
			empty = family;
	}
	if (match->used < MRF_MATCH_FAMILIES)
		empty = &match->family[match->used++];
	if (empty) {
		empty->ignore = ignore;
		empty->directed = directed;
	}
	return empty;
}

/* --- which one takes a message ------------------------------------------------------ */

struct hit {
	struct mrf_match_recv *recv; /* NULL: none */
	struct mrf_queues_node **at; /* where it hangs in its family */
};

static bool is_older(const struct mrf_match_recv *recv, const struct mrf_match_recv *than)
{
	return !than || recv->item.serial < than->item.serial;
}

static void look_in_family(const struct mrf_match_family *family, struct hit *best, uint64_t source,
			   uint64_t tag)
{
	struct mrf_queues_node **at = mrf_queues_find(
		&family->queues, family->directed ? source : MRF_MATCH_ANY, tag & ~family->ignore);
	struct mrf_match_recv *recv;

	if (!*at)
		return;
	recv = mrf_container_of(*at, struct mrf_match_recv, at);
	if (is_older(recv, best->recv))
		*best = (struct hit){ recv, at };
}

static bool recv_takes(const struct mrf_match_recv *recv, uint64_t source, uint64_t tag)
{
	return recv->item.tag == (tag & ~recv->ignore) &&
	       (recv->item.source == MRF_MATCH_ANY || recv->item.source == source);
}

static void look_in_rest(const struct mrf_match *match, struct hit *best, uint64_t source,
			 uint64_t tag)
{
	mrf_list_each (node, &match->rest) {
		struct mrf_match_recv *recv = mrf_list_entry(node, struct mrf_match_recv, at.line);

		if (!is_older(recv, best->recv))
			return;
		if (recv_takes(recv, source, tag)) {
			best->recv = recv;
			return;
		}
	}
}

static struct hit best_for(const struct mrf_match *match, uint64_t source, uint64_t tag)
{
	const struct mrf_match_family *family, *end = match->family + match->used;
	struct hit best = { NULL, NULL };

	for (family = match->family; family < end; family++) {
		if (!has_none(family))
			look_in_family(family, &best, source, tag);
	}
	if (mrf_unlikely(!mrf_list_empty(&match->rest)))
		look_in_rest(match, &best, source, tag);
	return best;
}

/* --- receives ----------------------------------------------------------------------- */

void mrf_match_post(struct mrf_match *match, struct mrf_match_recv *recv, uint64_t tag,
		    uint64_t ignore, uint64_t source)
{
	struct mrf_match_family *family = family_for(match, ignore, source != MRF_MATCH_ANY);

	recv->item.source = source;
	recv->item.tag = tag & ~ignore;
	recv->item.serial = match->serial++;
	recv->ignore = ignore;
	recv->family = family;
	if (mrf_likely(family != NULL))
		mrf_queues_add(&family->queues, &recv->item);
	else
		mrf_list_add_tail(&recv->at.line, &match->rest);
	mrf_list_add_tail(&recv->all, &match->all_recvs);
	match->recvs++;
}

static void unlink_recv(struct mrf_match *match, struct mrf_match_recv *recv)
{
	mrf_list_del(&recv->all);
	match->recvs--;
}

void mrf_match_cancel(struct mrf_match *match, struct mrf_match_recv *recv)
{
	if (mrf_likely(recv->family != NULL))
		mrf_queues_remove(&recv->family->queues, &recv->item);
	else
		mrf_list_del(&recv->at.line);
	unlink_recv(match, recv);
}

struct mrf_match_recv *mrf_match_meet(const struct mrf_match *match, uint64_t source, uint64_t tag)
{
	return best_for(match, source, tag).recv;
}

struct mrf_match_recv *mrf_match_arrive(struct mrf_match *match, uint64_t source, uint64_t tag)
{
	struct hit hit = best_for(match, source, tag);

	if (!hit.recv)
		return NULL;
	if (mrf_likely(hit.recv->family != NULL))
		mrf_queues_remove_first(&hit.recv->family->queues, hit.at);
	else
		mrf_list_del(&hit.recv->at.line);
	unlink_recv(match, hit.recv);
	return hit.recv;
}

static struct mrf_match_recv *recv_at(const struct mrf_match *match, struct mrf_list *node)
{
	return node == &match->all_recvs ? NULL : mrf_list_entry(node, struct mrf_match_recv, all);
}

struct mrf_match_recv *mrf_match_first_recv(const struct mrf_match *match)
{
	return recv_at(match, match->all_recvs.next);
}

struct mrf_match_recv *mrf_match_next_recv(const struct mrf_match *match,
					   const struct mrf_match_recv *recv)
{
	return recv_at(match, recv->all.next);
}

/* --- messages ----------------------------------------------------------------------- */

/*
 * No receive names an unknown source, so nobody looks for messages of one: they are only
 * among all, and those of their tag.
 */
static void add_to_source(struct mrf_match *match, struct mrf_match_msg *msg)
{
	if (msg->item.source == MRF_MATCH_UNKNOWN)
		return;
	mrf_queues_add(&match->exact, &msg->item);
	mrf_queues_add(&match->of_source, &msg->item);
}

static void remove_from_source(struct mrf_match *match, struct mrf_match_msg *msg)
{
	if (msg->item.source == MRF_MATCH_UNKNOWN)
		return;
	mrf_queues_remove(&match->exact, &msg->item);
	mrf_queues_remove(&match->of_source, &msg->item);
}

/* --- views of the messages ----------------------------------------------------------------- */

static bool is_in_view(const struct mrf_match_view *view, const struct mrf_match_msg *msg)
{
	return !view->directed || msg->item.source != MRF_MATCH_UNKNOWN;
}

static void add_to_views(struct mrf_match *match, struct mrf_match_msg *msg)
{
	struct mrf_match_view *view, *end = match->view + match->views;

	for (view = match->view; view < end; view++) {
		if (is_in_view(view, msg))
			mrf_queues_add(&view->queues, &msg->item);
	}
}

static void remove_from_views(struct mrf_match *match, struct mrf_match_msg *msg)
{
	struct mrf_match_view *view, *end = match->view + match->views;

	for (view = match->view; view < end; view++) {
		if (is_in_view(view, msg))
			mrf_queues_remove(&view->queues, &msg->item);
	}
}

static struct mrf_match_view *view_for(struct mrf_match *match, uint64_t ignore, bool directed)
{
	struct mrf_match_view *view, *end = match->view + match->views;

	for (view = match->view; view < end; view++) {
		if (view->ignore == ignore && view->directed == directed)
			return view;
	}
	return NULL;
}

/* A free one, or the one that was used least recently. */
static struct mrf_match_view *place_for_view(struct mrf_match *match)
{
	struct mrf_match_view *view, *end = match->view + MRF_MATCH_VIEWS, *old = match->view;

	if (match->views < MRF_MATCH_VIEWS)
		return &match->view[match->views++];
	for (view = match->view; view < end; view++) {
		if (view->used < old->used)
			old = view;
	}
	mrf_queues_fini(&old->queues);
	return old;
}

static struct mrf_match_view *make_view(struct mrf_match *match, uint64_t ignore, bool directed)
{
	struct mrf_match_view *view = place_for_view(match);
	size_t at = offsetof(struct mrf_match_msg, in_view) +
		    (size_t)(view - match->view) * sizeof(struct mrf_queues_node);

	*view = (struct mrf_match_view){ .ignore = ignore,
					 .directed = directed,
					 .used = match->serial };
	mrf_queues_init(&view->queues, &match->salt, directed ? ALL_BITS : 0, ~ignore, at);
	mrf_list_each (node, &match->all_msgs) {
		if (is_in_view(view, msg_in_all(node)))
			mrf_queues_add(&view->queues, &msg_in_all(node)->item);
	}
	match->walked = 0;
	return view;
}

/* --- messages ------------------------------------------------------------------------------ */

void mrf_match_keep(struct mrf_match *match, struct mrf_match_msg *msg, uint64_t source,
		    uint64_t tag)
{
	msg->item.source = source;
	msg->item.tag = tag;
	msg->item.serial = match->serial++;
	add_to_source(match, msg);
	mrf_queues_add(&match->of_tag, &msg->item);
	if (mrf_unlikely(match->views))
		add_to_views(match, msg);
	mrf_list_add_tail(&msg->all, &match->all_msgs);
	match->msgs++;
}

void mrf_match_take(struct mrf_match *match, struct mrf_match_msg *msg)
{
	remove_from_source(match, msg);
	mrf_queues_remove(&match->of_tag, &msg->item);
	if (mrf_unlikely(match->views))
		remove_from_views(match, msg);
	mrf_list_del(&msg->all);
	match->msgs--;
	if (mrf_unlikely(match->views && !match->msgs))
		drop_views(match);
}

void mrf_match_relabel(struct mrf_match *match, struct mrf_match_msg *msg, uint64_t source)
{
	remove_from_source(match, msg);
	remove_from_views(match, msg);
	msg->item.source = source;
	add_to_source(match, msg);
	add_to_views(match, msg);
}

static bool tag_fits(const struct mrf_queues_item *item, uint64_t tag, uint64_t ignore)
{
	return !((item->tag ^ tag) & ~ignore);
}

static struct mrf_match_msg *walk_source(struct mrf_match *match, uint64_t tag, uint64_t ignore,
					 uint64_t source)
{
	struct mrf_queues_item *first = mrf_queues_first(&match->of_source, source, 0), *item;

	for (item = first; item; item = mrf_queues_next(&match->of_source, first, item)) {
		if (tag_fits(item, tag, ignore))
			return msg_of(item);
		match->walked++;
	}
	return NULL;
}

static struct mrf_match_msg *walk_all(struct mrf_match *match, uint64_t tag, uint64_t ignore)
{
	mrf_list_each (node, &match->all_msgs) {
		if (tag_fits(&msg_in_all(node)->item, tag, ignore))
			return msg_in_all(node);
		match->walked++;
	}
	return NULL;
}

/* Bits are ignored. What is walked is worth a view at the latest when it is as much as making one. */
static struct mrf_match_msg *find_by_bits(struct mrf_match *match, uint64_t tag, uint64_t ignore,
					  uint64_t source)
{
	bool directed = source != MRF_MATCH_ANY;
	struct mrf_match_view *view = view_for(match, ignore, directed);
	struct mrf_queues_item *item;

	if (!view && match->walked < match->msgs + MRF_MATCH_WALK)
		return directed ? walk_source(match, tag, ignore, source)
				: walk_all(match, tag, ignore);
	if (!view)
		view = make_view(match, ignore, directed);
	view->used = match->serial;
	item = mrf_queues_first(&view->queues, source, tag);
	return item ? msg_of(item) : NULL;
}

struct mrf_match_msg *mrf_match_find(struct mrf_match *match, uint64_t tag, uint64_t ignore,
				     uint64_t source)
{
	struct mrf_queues_item *item;

	if (!match->msgs)
		return NULL;
	if (ignore)
		return find_by_bits(match, tag, ignore, source);
	item = mrf_queues_first(source != MRF_MATCH_ANY ? &match->exact : &match->of_tag, source,
				tag);
	return item ? msg_of(item) : NULL;
}

static struct mrf_match_msg *msg_at(const struct mrf_match *match, struct mrf_list *node)
{
	return node == &match->all_msgs ? NULL : msg_in_all(node);
}

struct mrf_match_msg *mrf_match_first_msg(const struct mrf_match *match)
{
	return msg_at(match, match->all_msgs.next);
}

struct mrf_match_msg *mrf_match_next_msg(const struct mrf_match *match,
					 const struct mrf_match_msg *msg)
{
	return msg_at(match, msg->all.next);
}
