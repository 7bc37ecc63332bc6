/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs do, and do right, that are their own peer: contracts.c and ported.c. They know libfabric
 * only.
 */
#ifndef MRF_TESTS_PROV_OWN_PEER_H
#define MRF_TESTS_PROV_OWN_PEER_H

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
static fi_addr_t self;
static char window[LEN], source[LEN];

static void must(const char *call, ssize_t ret)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", call, fi_strerror((int)-ret));
	exit(2);
}

/* Of endpoints whose hints are these, which it frees. */
static void open_all(struct fi_info *hints)
{
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	char name[128];
	size_t len = sizeof(name);

	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
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

/* 0: the write was done; 1: it failed, and the reason was printed, or there is none yet. */
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

#endif
