/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw keys, and regions that are bound to an endpoint. With FI_MR_RAW a key is some hundred bytes
 * which the peer maps to a key of 64 bits before it uses it. With FI_MR_ENDPOINT a region can only
 * be reached through the endpoints to which it was bound before it was enabled.
 *
 *	mrfab_with_rxe -- ./rawkey
 *
 * libmrfab needs neither, so the program asks for both. Without them, or with others:
 * FI_MRFAB_MR_MODE=0 or FI_MRFAB_MR_MODE=RAW+VIRT_ADDR+LOCAL
 */
#include "common.h"

#define LEN 1000
#define RAW_MAX 1024

/* What the initiator has to know. The raw key follows it, if there is one. */
struct offer {
	char bound[64]; /* name of the endpoint that the region is bound to */
	char other[64]; /* name of another endpoint of the same domain */
	uint64_t base;	/* address of the first byte, as peers name it */
	uint64_t key;
	uint64_t raw_size; /* 0: no raw key, but key */
};

static char buf[LEN];

static struct fi_info *hints_of_both(void)
{
	return make_hints(FI_RMA, FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
					  FI_MR_PROV_KEY | FI_MR_ENDPOINT);
}

/* A region that has to be bound is disabled at first: it has no key, and nobody reaches it. */
static void register_buf(struct node *n, uint64_t access)
{
	must(fi_mr_reg(n->domain, buf, LEN, access, 0, 7, 0, &n->mr, NULL));
	if (node_has(n, FI_MR_ENDPOINT)) {
		must(fi_mr_bind(n->mr, &n->ep->fid, 0));
		must(fi_mr_enable(n->mr));
	}
}

/* Fills in base, and either raw and raw_size or key. */
static void key_get(struct node *n, struct offer *offer, uint8_t *raw)
{
	size_t size = RAW_MAX;

	offer->base = node_has(n, FI_MR_VIRT_ADDR) ? (uintptr_t)buf : 0;
	if (!node_has(n, FI_MR_RAW)) {
		offer->key = fi_mr_key(n->mr);
		say("target: has the key %#lx", (unsigned long)offer->key);
		return;
	}
	if (n->info->domain_attr->mr_key_size > RAW_MAX)
		die("raw keys of %zu bytes", n->info->domain_attr->mr_key_size);
	must(fi_mr_raw_attr(n->mr, &offer->base, raw, &size, 0));
	offer->raw_size = size;
	say("target: has a raw key of %zu bytes", size);
}

static void target(int fd)
{
	struct offer offer = { .raw_size = 0 };
	uint8_t raw[RAW_MAX];
	size_t len = sizeof(offer.bound);
	struct fid_ep *other;
	struct node n;
	char done;

	node_open(&n, NULL, hints_of_both());
	must(fi_enable(n.ep));
	other = open_endpoint(&n);
	must(fi_enable(other));
	strcpy(buf, "read with a raw key");
	register_buf(&n, FI_REMOTE_READ);

	must(fi_getname(&n.ep->fid, offer.bound, &len));
	len = sizeof(offer.other);
	must(fi_getname(&other->fid, offer.other, &len));
	key_get(&n, &offer, raw);
	tell(fd, &offer, sizeof(offer));
	tell(fd, raw, offer.raw_size);
	hear(fd, &done, 1);
	must(fi_close(&other->fid));
	node_close(&n);
}

/* The key that operations take. */
static uint64_t key_use(struct node *n, const struct offer *offer, int fd)
{
	uint8_t raw[RAW_MAX];
	uint64_t key;

	if (!offer->raw_size)
		return offer->key;
	hear(fd, raw, offer->raw_size);
	must(fi_mr_map_raw(n->domain, offer->base, raw, offer->raw_size, &key, 0));
	say("initiator: maps it to %#lx", (unsigned long)key);
	return key;
}

static void initiator(int fd)
{
	void *desc = NULL;
	struct offer offer;
	uint64_t key;
	struct node n;

	node_open(&n, NULL, hints_of_both());
	must(fi_enable(n.ep));
	if (node_has(&n, FI_MR_LOCAL)) {
		register_buf(&n, FI_READ);
		desc = fi_mr_desc(n.mr);
	}
	hear(fd, &offer, sizeof(offer));
	key = key_use(&n, &offer, fd);

	post(fi_read(n.ep, buf, LEN, desc, node_insert(&n, offer.bound), offer.base, key, NULL));
	if (node_wait(&n) || strcmp(buf, "read with a raw key"))
		die("initiator: did not read what the target has");
	say("initiator: reads \"%s\" through the endpoint of the region", buf);

	post(fi_read(n.ep, buf, LEN, desc, node_insert(&n, offer.other), offer.base, key, NULL));
	if (!node_wait(&n) != !node_has(&n, FI_MR_ENDPOINT))
		die("initiator: the other endpoint should %s", "reach it only if none is bound");
	say("initiator: through another endpoint %s",
	    node_has(&n, FI_MR_ENDPOINT) ? "the region cannot be reached" : "it does so, too");

	if (offer.raw_size)
		must(fi_mr_unmap_key(n.domain, key)); /* before the domain is closed */
	tell(fd, "", 1);
	node_close(&n);
}

int main(void)
{
	setenv("FI_MRFAB_MR_MODE", "RAW+ENDPOINT+ALLOCATED", 0);
	return run_both(target, initiator);
}
