/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mistakes that real programs had, each as a small program that was written and tried with one provider
 * and then meets another one. It knows libfabric only, is linked with the one that is installed, and is
 * its own peer. docs/MISTAKES.md says where they come from.
 *
 * Usage: ported NAME    exit status: 0 it saw no mistake, 1 it was told of an error, 2 it did not come so
 * far
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define LEN 4096
#define KEY 7
#define WAIT_S 30

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static fi_addr_t self;
static char window[LEN], source[LEN];

static void must(const char *call, ssize_t ret)
{
	if (!ret)
		return;
	fprintf(stderr, "ported: %s: %s\n", call, fi_strerror((int)-ret));
	exit(2);
}

/* --- what all of them do, and do right ------------------------------------------------- */

static void find_provider(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		must("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
}

static void open_all(void)
{
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	char name[128];
	size_t len = sizeof(name);

	find_provider();
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	must("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
	must("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
	must("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	must("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(ep));
	must("fi_getname", fi_getname(&ep->fid, name, &len));
	if (fi_av_insert(av, name, 1, &self, 0, NULL) != 1)
		must("fi_av_insert", -FI_EADDRNOTAVAIL);
}

static void enable(struct fid_mr *mr)
{
	if (!(info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return;
	must("fi_mr_bind", fi_mr_bind(mr, &ep->fid, 0));
	must("fi_mr_enable", fi_mr_enable(mr));
}

static struct fid_mr *register_disabled(void *memory, uint64_t access, uint64_t key)
{
	struct fid_mr *mr;

	must("fi_mr_reg", fi_mr_reg(domain, memory, LEN, access, 0, key, 0, &mr, NULL));
	return mr;
}

static struct fid_mr *register_memory(void *memory, uint64_t access, uint64_t key)
{
	struct fid_mr *mr = register_disabled(memory, access, key);

	enable(mr);
	return mr;
}

static uint64_t base(const void *memory)
{
	return info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0;
}

static int take_completion(void)
{
	time_t end = time(NULL) + WAIT_S;
	struct fi_cq_err_entry err = { .err = 0 };
	struct fi_cq_entry done;
	ssize_t ret;

	do
		ret = fi_cq_read(cq, &done, 1);
	while (ret == -FI_EAGAIN && time(NULL) < end);
	if (ret == 1)
		return 0;
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1)
		printf("a write failed: %s\n", fi_strerror(err.err));
	return 1;
}

static int write_to(uint64_t addr, uint64_t key)
{
	void *desc = NULL;
	ssize_t ret;

	if (info->domain_attr->mr_mode & FI_MR_LOCAL)
		desc = fi_mr_desc(register_memory(source, FI_WRITE, KEY + 1));
	do {
		ret = fi_write(ep, source, 64, desc, self, addr, key, NULL);
		fi_cq_read(cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	must("fi_write", ret);
	return take_completion();
}

/* --- the mistakes --------------------------------------------------------------------- */

/* The key is read, to be sent to peers, before the region is enabled. */
static int key_before_enable(void)
{
	struct fid_mr *mr = register_disabled(window, FI_REMOTE_WRITE, KEY);
	uint64_t key = fi_mr_key(mr);

	enable(mr);
	return write_to(base(window), key);
}

/* The place in the window is what a peer is told, whatever the provider asks for. */
static int offset_for_address(void)
{
	struct fid_mr *mr = register_memory(window, FI_REMOTE_WRITE, KEY);

	return write_to(800, fi_mr_key(mr));
}

/* The message that tells a peer of the window has 32 bits for the key. */
static int key_in_32_bits(void)
{
	struct fid_mr *mr = register_memory(window, FI_REMOTE_WRITE, KEY);
	uint32_t sent = (uint32_t)fi_mr_key(mr);

	return write_to(base(window), sent);
}

/* The window moves, but not its key, and a peer that has not heard of it writes to the old one. */
static int key_used_again(void)
{
	static char other[LEN];
	struct fid_mr *mr = register_memory(window, FI_REMOTE_WRITE, KEY);
	uint64_t key = fi_mr_key(mr);

	must("fi_close", fi_close(&mr->fid));
	register_memory(other, FI_REMOTE_WRITE, KEY);
	return write_to(base(other), key);
}

/* One region is forgotten; what fi_close says of the domain, nobody looks at. */
static int domain_is_busy(void)
{
	register_memory(window, FI_REMOTE_WRITE, KEY);
	fi_close(&ep->fid);
	fi_close(&av->fid);
	fi_close(&cq->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} programs[] = { { "key_before_enable", key_before_enable },
		 { "offset_for_address", offset_for_address },
		 { "key_in_32_bits", key_in_32_bits },
		 { "key_used_again", key_used_again },
		 { "domain_is_busy", domain_is_busy } };

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc == 2 && i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (strcmp(argv[1], programs[i].name))
			continue;
		open_all();
		return programs[i].run();
	}
	fputs("usage: ported NAME\n", stderr);
	return 2;
}
