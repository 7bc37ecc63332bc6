/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What people do wrong who write for libfabric: one mistake for each run, made by a program that
 * knows libfabric only and is linked with the one that is installed. It is its own peer. Prints
 * what the program is told, in the completion queue or by the call.
 *
 * Usage: mistakes NAME    exit status: 0 refused, 1 done as if it were right, 2 did not come so far
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define LEN 4096
#define KEY 0x5eed
#define WAIT_MS 30000

struct self {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t addr;
};

static char target[LEN], source[LEN];

static void must(const char *call, ssize_t ret)
{
	if (!ret)
		return;
	fprintf(stderr, "mistakes: %s: %s\n", call, fi_strerror((int)-ret));
	exit(2);
}

/* --- opening -------------------------------------------------------------------------- */

/* Offers what it can live with; what is in force is for FI_MRFAB_MR_MODE to say. */
static void find_provider(struct self *s)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		must("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
}

static void know_self(struct self *s)
{
	char name[128];
	size_t len = sizeof(name);

	must("fi_getname", fi_getname(&s->ep->fid, name, &len));
	if (fi_av_insert(s->av, name, 1, &s->addr, 0, NULL) != 1)
		must("fi_av_insert", -FI_EADDRNOTAVAIL);
}

static void open_self(struct self *s)
{
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC };

	find_provider(s);
	must("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	must("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
	must("fi_av_open", fi_av_open(s->domain, &av_attr, &s->av, NULL));
	must("fi_cq_open", fi_cq_open(s->domain, &cq_attr, &s->cq, NULL));
	must("fi_endpoint", fi_endpoint(s->domain, s->info, &s->ep, NULL));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(s->ep));
	know_self(s);
}

static struct fid_mr *register_target(struct self *s, uint64_t access)
{
	struct fid_mr *mr;

	must("fi_mr_reg", fi_mr_reg(s->domain, target, LEN, access, 0, KEY, 0, &mr, NULL));
	return mr;
}

/* --- one access ----------------------------------------------------------------------- */

/* 0, or the FI_E* that the program is told. */
static int take_completion(struct self *s)
{
	char text[256] = "";
	struct fi_cq_err_entry err = { .err_data = text, .err_data_size = sizeof(text) - 1 };
	struct fi_cq_entry done;
	ssize_t ret = fi_cq_sread(s->cq, &done, 1, NULL, WAIT_MS);

	if (ret == 1)
		return 0;
	if (ret != -FI_EAVAIL || fi_cq_readerr(s->cq, &err, 0) != 1)
		must("fi_cq_sread", ret < 0 ? ret : -FI_EOTHER);
	printf("err: %s\nerr_data: %s\nfi_cq_strerror: %s\n", fi_strerror(err.err), text,
	       fi_cq_strerror(s->cq, err.prov_errno, err.err_data, NULL, 0));
	return err.err;
}

static int write_to(struct self *s, uint64_t addr, uint64_t key)
{
	ssize_t ret;

	do
		ret = fi_write(s->ep, source, LEN, NULL, s->addr, addr, key, NULL);
	while (ret == -FI_EAGAIN);
	if (ret)
		printf("fi_write: %s\n", fi_strerror((int)-ret));
	return ret ? (int)-ret : take_completion(s);
}

/* Where a peer that makes no mistake finds the first byte. */
static uint64_t base(const struct self *s)
{
	return s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)target : 0;
}

/* --- the mistakes --------------------------------------------------------------------- */

static int none(struct self *s)
{
	struct fid_mr *mr = register_target(s, FI_REMOTE_WRITE);

	return write_to(s, base(s), fi_mr_key(mr));
}

/* FI_MR_VIRT_ADDR is in force. */
static int offset_for_address(struct self *s)
{
	return write_to(s, 0, fi_mr_key(register_target(s, FI_REMOTE_WRITE)));
}

/* It is not. */
static int address_for_offset(struct self *s)
{
	return write_to(s, (uintptr_t)target, fi_mr_key(register_target(s, FI_REMOTE_WRITE)));
}

/* FI_MR_PROV_KEY is in force: the key that was asked for is not the region's. */
static int requested_key(struct self *s)
{
	register_target(s, FI_REMOTE_WRITE);
	return write_to(s, base(s), KEY);
}

/* FI_WRITE is what the initiator may do with a buffer, not what a peer may do with it. */
static int missing_right(struct self *s)
{
	struct fid_mr *mr = register_target(s, FI_REMOTE_READ | FI_WRITE);

	return write_to(s, base(s), fi_mr_key(mr));
}

static int used_after_close(struct self *s)
{
	struct fid_mr *mr = register_target(s, FI_REMOTE_WRITE);
	uint64_t key = fi_mr_key(mr);

	must("fi_write", write_to(s, base(s), key));
	must("fi_close", fi_close(&mr->fid));
	return write_to(s, base(s), key);
}

/* FI_MR_ENDPOINT is in force: neither fi_mr_bind nor fi_mr_enable is called. */
static int not_enabled(struct self *s)
{
	register_target(s, FI_REMOTE_WRITE);
	return write_to(s, base(s), KEY);
}

/* With FI_MR_ENDPOINT and FI_MR_PROV_KEY there is no key before fi_mr_enable. */
static int key_before_enable(struct self *s)
{
	struct fid_mr *mr = register_target(s, FI_REMOTE_WRITE);
	uint64_t key = fi_mr_key(mr);

	must("fi_mr_bind", fi_mr_bind(mr, &s->ep->fid, 0));
	must("fi_mr_enable", fi_mr_enable(mr));
	return write_to(s, base(s), key);
}

/* FI_MR_PROV_KEY is not in force: every region needs a key of its own. */
static int same_key_twice(struct self *s)
{
	struct fid_mr *other;

	register_target(s, FI_REMOTE_WRITE);
	return fi_mr_reg(s->domain, source, LEN, FI_REMOTE_WRITE, 0, KEY, 0, &other, NULL);
}

static int domain_first(struct self *s)
{
	register_target(s, FI_REMOTE_WRITE);
	must("fi_close", fi_close(&s->ep->fid));
	must("fi_close", fi_close(&s->cq->fid));
	must("fi_close", fi_close(&s->av->fid));
	return fi_close(&s->domain->fid);
}

/* FI_MR_LOCAL is in force: the local buffer needs a region, too. */
static int no_descriptor(struct self *s)
{
	return write_to(s, base(s), fi_mr_key(register_target(s, FI_REMOTE_WRITE)));
}

static const struct mistake {
	const char *name;
	int (*make)(struct self *s);
} mistakes[] = {
	{ "none", none },
	{ "offset_for_address", offset_for_address },
	{ "address_for_offset", address_for_offset },
	{ "requested_key", requested_key },
	{ "missing_right", missing_right },
	{ "used_after_close", used_after_close },
	{ "not_enabled", not_enabled },
	{ "key_before_enable", key_before_enable },
	{ "same_key_twice", same_key_twice },
	{ "domain_first", domain_first },
	{ "no_descriptor", no_descriptor },
};

int main(int argc, char **argv)
{
	struct self self;
	size_t i;

	for (i = 0; argc == 2 && i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		if (strcmp(argv[1], mistakes[i].name))
			continue;
		open_self(&self);
		return !mistakes[i].make(&self);
	}
	fputs("usage: mistakes NAME\n", stderr);
	return 2;
}
