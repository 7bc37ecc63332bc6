/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters and events. The target registers memory without waiting for the kernel: an event says
 * when that is done. A counter that is bound to the region counts the writes of peers, so the
 * target knows when all data is there and nobody has to send it a message. The initiator counts
 * its own writes, and reads no completion queue.
 *
 *	mrfab_with_rxe -- ./counter
 *
 * Other registration modes: FI_MRFAB_MR_MODE=RMA_EVENT+ENDPOINT mrfab_with_rxe -- ./counter
 */
#include "common.h"

#define WRITES 16
#define PART 100 /* bytes of a write */
#define LEN (WRITES * PART)

struct offer {
	char name[64];
	uint64_t addr, key;
};

static char buf[LEN];

/* FI_RMA_EVENT: peers' writes are counted. It has to be asked for. */
static struct fi_info *hints_of_both(void)
{
	return make_hints(FI_RMA | FI_RMA_EVENT, FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
							 FI_MR_PROV_KEY | FI_MR_RMA_EVENT |
							 FI_MR_ENDPOINT);
}

static void open_counter(struct node *n)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };

	must(fi_cntr_open(n->domain, &attr, &n->cntr, NULL));
}

static void wait_for_registration(struct node *n)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret = fi_eq_sread(n->eq, &event, &entry, sizeof(entry), WAIT_MS, 0);

	if (ret == -FI_EAVAIL && fi_eq_readerr(n->eq, &err, 0) > 0)
		die("not registered: %s: %s", fi_strerror(err.err),
		    fi_eq_strerror(n->eq, err.prov_errno, err.err_data, NULL, 0));
	if (ret != sizeof(entry) || event != FI_MR_COMPLETE || entry.fid != &n->mr->fid)
		die("no event of the registration: %s", ret < 0 ? fi_strerror((int)-ret) : "");
	say("target: the event says that the region is registered");
}

/*
 * What is bound to a region is bound before it is enabled. The mode says whether it has to be
 * enabled: if not, it is open as soon as it is registered.
 */
static void register_counted(struct node *n)
{
	must(fi_mr_reg(n->domain, buf, LEN, FI_REMOTE_WRITE, 0, 1, FI_RMA_EVENT, &n->mr, NULL));
	wait_for_registration(n);
	must(fi_mr_bind(n->mr, &n->cntr->fid, FI_REMOTE_WRITE));
	if (node_has(n, FI_MR_ENDPOINT))
		must(fi_mr_bind(n->mr, &n->ep->fid, 0));
	if (node_has(n, FI_MR_ENDPOINT) || node_has(n, FI_MR_RMA_EVENT))
		must(fi_mr_enable(n->mr));
}

static void target(int fd)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct offer offer;
	size_t len = sizeof(offer.name);
	struct node n;

	node_open(&n, NULL, hints_of_both());
	must(fi_eq_open(n.fabric, &eq_attr, &n.eq, NULL));
	must(fi_domain_bind(n.domain, &n.eq->fid, FI_REG_MR)); /* events tell of registrations */
	must(fi_enable(n.ep));
	open_counter(&n);
	register_counted(&n);

	must(fi_getname(&n.ep->fid, offer.name, &len));
	offer.key = fi_mr_key(n.mr);
	offer.addr = node_has(&n, FI_MR_VIRT_ADDR) ? (uintptr_t)buf : 0;
	tell(fd, &offer, sizeof(offer));

	must(fi_cntr_wait(n.cntr, WRITES, WAIT_MS));
	for (int i = 0; i < LEN; i++)
		if (buf[i] != 'a' + i / PART)
			die("target: byte %d is %d", i, buf[i]);
	say("target: %lu writes have arrived, and all bytes are right",
	    (unsigned long)fi_cntr_read(n.cntr));
	node_close(&n);
}

static void initiator(int fd)
{
	static char data[LEN];
	struct offer offer;
	fi_addr_t peer;
	struct node n;

	node_open(&n, NULL, hints_of_both());
	open_counter(&n);
	must(fi_ep_bind(n.ep, &n.cntr->fid, FI_WRITE));
	must(fi_enable(n.ep));
	if (node_has(&n, FI_MR_LOCAL)) {
		must(fi_mr_reg(n.domain, data, LEN, FI_WRITE, 0, 0, 0, &n.mr, NULL));
		if (node_has(&n, FI_MR_ENDPOINT)) {
			must(fi_mr_bind(n.mr, &n.ep->fid, 0));
			must(fi_mr_enable(n.mr));
		}
	}
	hear(fd, &offer, sizeof(offer));
	peer = node_insert(&n, offer.name);

	for (int i = 0; i < WRITES; i++) {
		memset(data + i * PART, 'a' + i, PART);
		post(fi_write(n.ep, data + i * PART, PART, n.mr ? fi_mr_desc(n.mr) : NULL, peer,
			      offer.addr + i * PART, offer.key, NULL));
	}
	must(fi_cntr_wait(n.cntr, WRITES, WAIT_MS));
	say("initiator: %d writes are done", WRITES);
	node_close(&n);
}

int main(void)
{
	return run_both(target, initiator);
}
