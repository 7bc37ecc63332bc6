/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that comes and goes under a region. The program does not offer FI_MR_ALLOCATED, so it may
 * register addresses at which there is no memory yet, and put memory there, replace it and take it
 * away while the region and its key stay. Under FI_MR_MMU_NOTIFY it has to say so each time, by
 * fi_mr_refresh; otherwise the library notices by itself.
 *
 *	mrfab_with_rxe -- ./refresh
 *
 * libmrfab does not need FI_MR_MMU_NOTIFY, so the program asks for it. Without it, or with others:
 * FI_MRFAB_MR_MODE=0 or FI_MRFAB_MR_MODE=MMU_NOTIFY+VIRT_ADDR+PROV_KEY
 */
#include <sys/mman.h>
#include "common.h"

#define LEN 65536

struct offer {
	char name[64];
	uint64_t addr, key;
};

static struct fi_info *hints_of_both(void)
{
	return make_hints(FI_RMA, FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
					  FI_MR_MMU_NOTIFY | FI_MR_ENDPOINT);
}

static void register_range(struct node *n, void *start, uint64_t access)
{
	must(fi_mr_reg(n->domain, start, LEN, access, 0, 3, 0, &n->mr, NULL));
	if (node_has(n, FI_MR_ENDPOINT)) {
		must(fi_mr_bind(n->mr, &n->ep->fid, 0));
		must(fi_mr_enable(n->mr));
	}
}

/* After each change, before peers are to find what is there now. */
static void changed(struct node *n, char *start)
{
	struct iovec range = { start, LEN };

	if (node_has(n, FI_MR_MMU_NOTIFY))
		must(fi_mr_refresh(n->mr, &range, 1, 0));
}

/* Puts other memory at the same addresses; text NULL: none. */
static void replace(struct node *n, char *start, const char *text)
{
	int prot = text ? PROT_READ | PROT_WRITE : PROT_NONE;

	if (mmap(start, LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != start)
		die("mmap: %s", strerror(errno));
	if (text)
		strcpy(start, text);
	changed(n, start);
}

/* The initiator has read, and goes on when something has changed. */
static void next(int fd, struct node *n, char *start, const char *text)
{
	char turn;

	hear(fd, &turn, 1);
	replace(n, start, text);
	say("target: %s", text ? text : "no memory");
	tell(fd, "", 1);
}

static void target(int fd)
{
	struct offer offer;
	size_t len = sizeof(offer.name);
	struct node n;
	char *start = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), end;

	if (start == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	node_open(&n, NULL, hints_of_both());
	must(fi_enable(n.ep));
	register_range(&n, start, FI_REMOTE_READ);
	say("target: registers %d bytes at %p, without memory%s", LEN, (void *)start,
	    node_has(&n, FI_MR_MMU_NOTIFY) ? "; fi_mr_refresh tells of changes" : "");

	must(fi_getname(&n.ep->fid, offer.name, &len));
	offer.key = fi_mr_key(n.mr);
	offer.addr = node_has(&n, FI_MR_VIRT_ADDR) ? (uintptr_t)start : 0;
	tell(fd, &offer, sizeof(offer));
	next(fd, &n, start, "the first memory");
	next(fd, &n, start, "other memory");
	next(fd, &n, start, NULL);
	hear(fd, &end, 1);
	node_close(&n);
}

static char buf[LEN];

/* text NULL: is to be refused, because there is no memory. */
static void read_again(struct node *n, fi_addr_t peer, const struct offer *offer, const char *text)
{
	int err;

	memset(buf, 0, LEN);
	post(fi_read(n->ep, buf, LEN, n->mr ? fi_mr_desc(n->mr) : NULL, peer, offer->addr,
		     offer->key, NULL));
	err = node_wait(n);
	if (text ? err || strcmp(buf, text) : !err)
		die("initiator: reads \"%s\", error %d", buf, err);
	say("initiator: reads %s", text ? buf : "nothing");
}

static void next_turn(int fd)
{
	char turn;

	tell(fd, "", 1);
	hear(fd, &turn, 1);
}

static void initiator(int fd)
{
	struct offer offer;
	fi_addr_t peer;
	struct node n;

	node_open(&n, NULL, hints_of_both());
	must(fi_enable(n.ep));
	if (node_has(&n, FI_MR_LOCAL))
		register_range(&n, buf, FI_READ);
	hear(fd, &offer, sizeof(offer));
	peer = node_insert(&n, offer.name);

	read_again(&n, peer, &offer, NULL);
	next_turn(fd);
	read_again(&n, peer, &offer, "the first memory");
	next_turn(fd);
	read_again(&n, peer, &offer, "other memory");
	next_turn(fd);
	read_again(&n, peer, &offer, NULL);
	tell(fd, "", 1);
	node_close(&n);
}

int main(void)
{
	setenv("FI_MRFAB_MR_MODE", "MMU_NOTIFY", 0);
	return run_both(target, initiator);
}
