/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that runs clean without a profile and has a mistake for each of six contracts: README.md runs
 * it under them. It knows libfabric only, is linked with the one that is installed, and is its own peer.
 *
 * Exit status: 0 it saw no mistake, 1 its write failed, 2 it did not come so far.
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
#define WAIT_S 30

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fid_mr *mr;
static fi_addr_t self;
static char window[LEN], source[LEN];

static void must(const char *call, ssize_t ret)
{
	if (!ret)
		return;
	fprintf(stderr, "contracts: %s: %s\n", call, fi_strerror((int)-ret));
	exit(2);
}

static void find_provider(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		must("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	/* efa and ucx: a flag is written behind the data, and has to arrive behind them. */
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_WAW;
	/* verbs: local buffers are never registered; ucx: keys are never longer than 8 bytes. */
	hints->domain_attr->mr_mode =
		FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
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

/* Returns the key that peers are told. */
static uint64_t open_window(void)
{
	uint64_t key;

	/* cxi-client: the address is the key, which is unique, and longer than 32 bits. */
	must("fi_mr_reg",
	     fi_mr_reg(domain, window, LEN, FI_REMOTE_WRITE, 0, (uintptr_t)window, 0, &mr, NULL));
	/* cxi-prov: the key is not known before the region is enabled. */
	key = fi_mr_key(mr);
	if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		must("fi_mr_bind", fi_mr_bind(mr, &ep->fid, 0));
		must("fi_mr_enable", fi_mr_enable(mr));
	}
	return key;
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
		printf("the write failed: %s\n", fi_strerror(err.err));
	return 1;
}

/* tcp: a peer's memory is always named by its address there. */
static int write_to(uint64_t key)
{
	ssize_t ret;

	memset(source, 7, sizeof(source));
	do {
		ret = fi_write(ep, source, LEN, NULL, self, (uintptr_t)window, key, NULL);
		fi_cq_read(cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	must("fi_write", ret);
	return take_completion() || memcmp(source, window, LEN) != 0;
}

static void close_all(void)
{
	must("fi_close", fi_close(&ep->fid));
	must("fi_close", fi_close(&mr->fid));
	must("fi_close", fi_close(&av->fid));
	must("fi_close", fi_close(&cq->fid));
	must("fi_close", fi_close(&domain->fid));
	must("fi_close", fi_close(&fabric->fid));
	fi_freeinfo(info);
}

int main(void)
{
	int status;

	open_all();
	status = write_to(open_window());
	if (!status)
		close_all();
	return status;
}
