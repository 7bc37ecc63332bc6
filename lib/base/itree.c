/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "base/compiler.h"
#include "base/itree.h"
#include "base/lock.h"
#include "base/renew.h"

#define DEPTH 96 /* no AVL tree of less than 2^64 nodes is deeper */
#define TRIES 4	 /* of a reader, until it gives up */

typedef struct mrf_itree_node *_Atomic link_t;

/*
 * A store that a reader sees makes it see, too, that the counter was odd before: each
 * store releases, each load acquires. (Fences would do, but race detectors do not know
 * them.)
 */
static struct mrf_itree_node *get(const link_t *link)
{
	return atomic_load_explicit(link, memory_order_acquire);
}

static void set(link_t *link, struct mrf_itree_node *node)
{
	if (atomic_load_explicit(link, memory_order_relaxed) != node)
		atomic_store_explicit(link, node, memory_order_release);
}

static uintptr_t get_word(const atomic_uintptr_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

static void set_word(atomic_uintptr_t *word, uintptr_t value)
{
	if (atomic_load_explicit(word, memory_order_relaxed) != value)
		atomic_store_explicit(word, value, memory_order_release);
}

static void change_begins(struct mrf_itree *tree)
{
	unsigned long count = atomic_load_explicit(&tree->count, memory_order_relaxed);

	atomic_store_explicit(&tree->count, count + 1, memory_order_relaxed);
}

/* Sequentially consistent: the writer's next reads come after readers can see this. */
static void change_ends(struct mrf_itree *tree)
{
	unsigned long count = atomic_load_explicit(&tree->count, memory_order_relaxed);

	atomic_store(&tree->count, count + 1);
}

/* --- balance ------------------------------------------------------------------------ */

static unsigned height(const struct mrf_itree_node *node)
{
	return node ? node->height : 0;
}

/* Equal starts are ordered by the nodes' own addresses. */
static bool is_before(uintptr_t start, const struct mrf_itree_node *node,
		      const struct mrf_itree_node *other)
{
	uintptr_t at = get_word(&other->start);

	return start < at || (start == at && (uintptr_t)node < (uintptr_t)other);
}

static void update(struct mrf_itree_node *node)
{
	const struct mrf_itree_node *left = get(&node->kid[0]), *right = get(&node->kid[1]);
	uintptr_t max = get_word(&node->end);

	if (left)
		max = mrf_max(max, get_word(&left->max));
	if (right)
		max = mrf_max(max, get_word(&right->max));
	set_word(&node->max, max);
	node->height = 1 + mrf_max(height(left), height(right));
}

/* Lifts the kid at this side into the node's place. */
static struct mrf_itree_node *rotate(struct mrf_itree_node *node, int side)
{
	struct mrf_itree_node *kid = get(&node->kid[side]);

	set(&node->kid[side], get(&kid->kid[!side]));
	set(&kid->kid[!side], node);
	update(node);
	update(kid);
	return kid;
}

static struct mrf_itree_node *balance(struct mrf_itree_node *node)
{
	unsigned left = height(get(&node->kid[0])), right = height(get(&node->kid[1]));
	int side = right > left;
	struct mrf_itree_node *kid;

	if ((side ? right - left : left - right) < 2) {
		update(node);
		return node;
	}
	kid = get(&node->kid[side]);
	if (height(get(&kid->kid[!side])) > height(get(&kid->kid[side])))
		set(&node->kid[side], rotate(kid, !side));
	return rotate(node, side);
}

/* The links from the root to a node, and where it ends. */
struct path {
	link_t *link[DEPTH];
	unsigned count;
	unsigned changed; /* the place of a node that was put there, or count */
};

/*
 * Balances the subtrees at these links, from the one above the deepest up, until nothing
 * changes: a node depends on the height and the greatest end of those below it.
 */
static void balance_path(struct path *path)
{
	while (--path->count) {
		link_t *link = path->link[path->count - 1];
		struct mrf_itree_node *node = get(link), *top;
		unsigned was = node->height;
		uintptr_t max = get_word(&node->max);

		top = balance(node);
		set(link, top);
		if (top == node && node->height == was && get_word(&node->max) == max &&
		    path->count <= path->changed)
			return;
	}
}

/* To the node, if it is in the tree, or to where it belongs. */
static void find_path(struct mrf_itree *tree, const struct mrf_itree_node *node, uintptr_t start,
		      struct path *path)
{
	link_t *link = &tree->root;
	struct mrf_itree_node *at;

	path->count = 0;
	for (;;) {
		path->link[path->count++] = link;
		path->changed = path->count;
		at = get(link);
		if (!at || at == node)
			return;
		link = &at->kid[!is_before(start, node, at)];
	}
}

/* All nodes on the path, but for the one that is not there yet, reach this end. */
static void reach(const struct path *path, uintptr_t end)
{
	unsigned i;

	for (i = 0; i + 1 < path->count; i++) {
		struct mrf_itree_node *node = get(path->link[i]);

		if (get_word(&node->max) < end)
			atomic_store_explicit(&node->max, end, memory_order_release);
	}
}

/* --- writing ------------------------------------------------------------------------ */

void mrf_itree_insert(struct mrf_itree *tree, struct mrf_itree_node *node, uintptr_t start,
		      uintptr_t end, void *value)
{
	struct path path;

	find_path(tree, node, start, &path);
	change_begins(tree);
	reach(&path, end);
	set_word(&node->start, start);
	set_word(&node->end, end);
	atomic_store_explicit(&node->value, value, memory_order_release);
	set(&node->kid[0], NULL);
	set(&node->kid[1], NULL);
	update(node);
	set(path.link[path.count - 1], node);
	balance_path(&path);
	change_ends(tree);
}

/* Puts the node behind in order, which has no left kid, in the place of a node with two. */
static void replace_by_next(struct mrf_itree_node *node, unsigned height_before, struct path *path)
{
	unsigned at = path->count;
	link_t *link = &node->kid[1];
	struct mrf_itree_node *next;

	path->link[path->count++] = link;
	while (get(&get(link)->kid[0])) {
		link = &get(link)->kid[0];
		path->link[path->count++] = link;
	}
	next = get(link);
	set(link, get(&next->kid[1]));
	set(&next->kid[0], get(&node->kid[0]));
	set(&next->kid[1], get(&node->kid[1]));
	/* The nodes above depend on these two. */
	next->height = height_before;
	set_word(&next->max, get_word(&node->max));
	set(path->link[at - 1], next);
	path->link[at] = &next->kid[1];
}

void mrf_itree_remove(struct mrf_itree *tree, struct mrf_itree_node *node)
{
	struct mrf_itree_node *left = get(&node->kid[0]), *right = get(&node->kid[1]);
	unsigned before = node->height;
	struct path path;

	find_path(tree, node, get_word(&node->start), &path);
	node->height = 0;
	if (get(path.link[path.count - 1]) != node)
		return;
	change_begins(tree);
	if (left && right)
		replace_by_next(node, before, &path);
	else
		set(path.link[path.count - 1], left ? left : right);
	balance_path(&path);
	change_ends(tree);
}

void mrf_itree_forget(struct mrf_itree *tree)
{
	atomic_store(&tree->root, NULL);
	atomic_store(&tree->count, 0);
}

/* --- reading ------------------------------------------------------------------------ */

/*
 * Readers without a lock may walk in a circle, or through nodes of another tree: no walk
 * is longer than a tree is deep.
 */
static struct mrf_itree_node *leftmost(struct mrf_itree_node *node, uintptr_t start, uintptr_t end)
{
	struct mrf_itree_node *kid;
	unsigned steps = DEPTH;

	while (node && --steps) {
		kid = get(&node->kid[0]);
		if (kid && get_word(&kid->max) > start) {
			node = kid;
			continue;
		}
		if (get_word(&node->start) >= end)
			return NULL;
		if (get_word(&node->end) > start)
			return node;
		node = get(&node->kid[1]);
		if (node && get_word(&node->max) <= start)
			return NULL;
	}
	return NULL;
}

struct mrf_itree_node *mrf_itree_first(const struct mrf_itree *tree, uintptr_t start, uintptr_t end)
{
	return leftmost(get(&tree->root), start, end);
}

static struct mrf_itree_node *last_below(struct mrf_itree_node *node, uintptr_t addr)
{
	struct mrf_itree_node *best = NULL;
	unsigned steps = DEPTH;

	while (node && --steps) {
		bool right = get_word(&node->start) <= addr;

		best = right ? node : best;
		node = get(&node->kid[right]);
	}
	return best;
}

struct mrf_itree_node *mrf_itree_below(const struct mrf_itree *tree, uintptr_t addr)
{
	return last_below(get(&tree->root), addr);
}

/* The nodes above this one that come behind it in order, the nearest one last. */
static unsigned find_behind(const struct mrf_itree *tree, const struct mrf_itree_node *node,
			    struct mrf_itree_node **behind)
{
	struct mrf_itree_node *at = get(&tree->root);
	unsigned count = 0;
	bool left;

	while (at != node) {
		left = is_before(get_word(&node->start), node, at);
		if (left)
			behind[count++] = at;
		at = get(&at->kid[!left]);
	}
	return count;
}

struct mrf_itree_node *mrf_itree_next(const struct mrf_itree *tree,
				      const struct mrf_itree_node *node, uintptr_t start,
				      uintptr_t end)
{
	struct mrf_itree_node *behind[DEPTH];
	unsigned count = find_behind(tree, node, behind);
	struct mrf_itree_node *next = leftmost(get(&node->kid[1]), start, end);

	while (!next && count--) {
		if (get_word(&behind[count]->start) >= end)
			return NULL;
		next = get_word(&behind[count]->end) > start
			       ? behind[count]
			       : leftmost(get(&behind[count]->kid[1]), start, end);
	}
	return next;
}

/* --- reading without a lock ----------------------------------------------------------- */

/* The words read from a node are valid if the counter has not moved since. */
static bool read_hit(const struct mrf_itree *tree, const struct mrf_itree_node *node,
		     struct mrf_itree_hit *hit)
{
	if (node) {
		hit->start = get_word(&node->start);
		hit->end = get_word(&node->end);
		hit->value = atomic_load_explicit(&node->value, memory_order_acquire);
	}
	return atomic_load(&tree->count) == hit->count;
}

/* below: the last interval that begins at or before start; otherwise the first in the range. */
static MRF_ALWAYS_INLINE enum mrf_itree_look try_look(const struct mrf_itree *tree, bool below,
						      uintptr_t start, uintptr_t end,
						      struct mrf_itree_hit *hit)
{
	struct mrf_itree_hit found;
	struct mrf_itree_node *node;
	unsigned i;

	for (i = 0; i < TRIES; i++) {
		found.count = atomic_load(&tree->count);
		if (found.count & 1)
			continue;
		node = get(&tree->root);
		node = below ? last_below(node, start) : leftmost(node, start, end);
		if (!read_hit(tree, node, &found))
			continue;
		if (node)
			*hit = found;
		return node ? MRF_ITREE_HIT : MRF_ITREE_NONE;
	}
	return MRF_ITREE_BUSY;
}

enum mrf_itree_look mrf_itree_try_first(const struct mrf_itree *tree, uintptr_t start,
					uintptr_t end, struct mrf_itree_hit *hit)
{
	return try_look(tree, false, start, end, hit);
}

enum mrf_itree_look mrf_itree_try_below(const struct mrf_itree *tree, uintptr_t addr,
					struct mrf_itree_hit *hit)
{
	return try_look(tree, true, addr, 0, hit);
}

/* --- the pool ----------------------------------------------------------------------- */

#define SLAB 63 /* nodes */

struct slab {
	struct slab *next;
	struct mrf_itree_node node[SLAB];
};

static struct mrf_lock lock = {
#ifdef MRF_LOCKRANK
	.rank = MRF_RANK_NODE,
#endif
};
static struct mrf_itree_node *unused; /* lock */
static struct slab *slabs;	      /* lock; never given back */

/* Another thread of the parent may have had it; the lists are whole at every moment. */
static void pool_in_child(struct mrf_renewal *renewal)
{
	(void)renewal;
	mrf_lock_renew(&lock);
}

static struct mrf_itree_node *take_unused(void)
{
	struct mrf_itree_node *node;

	mrf_lock_take(&lock);
	node = unused;
	if (node)
		unused = node->next;
	mrf_lock_release(&lock);
	return node;
}

static bool add_slab(void)
{
	static struct mrf_renewal pool = { .in_child = pool_in_child };
	struct slab *slab = aligned_alloc(_Alignof(struct slab), sizeof(*slab));
	unsigned i;

	if (!slab)
		return false;
	mrf_renewal_add(&pool);
	*slab = (struct slab){ 0 };
	for (i = 0; i + 1 < SLAB; i++)
		slab->node[i].next = &slab->node[i + 1];
	mrf_lock_take(&lock);
	slab->node[SLAB - 1].next = unused;
	unused = &slab->node[0];
	slab->next = slabs;
	slabs = slab;
	mrf_lock_release(&lock);
	return true;
}

struct mrf_itree_node *mrf_itree_node_new(void)
{
	struct mrf_itree_node *node;

	do
		node = take_unused();
	while (!node && add_slab());
	return node;
}

void mrf_itree_node_free(struct mrf_itree_node *node)
{
	if (!node)
		return;
	mrf_lock_take(&lock);
	node->next = unused;
	unused = node;
	mrf_lock_release(&lock);
}
