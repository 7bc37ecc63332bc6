/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that runs clean without a profile and has a mistake for each of six contracts: README.md runs
 * it under them. It knows libfabric only, is linked with the one that is installed, and is its own peer.
 *
 * Exit status: 0 it saw no mistake, 1 its write failed, 2 it did not come so far.
 */
#include "own_peer.h"

static struct fid_mr *mr;

static struct fi_info *make_hints(void)
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
	return hints;
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

	open_all(make_hints());
	status = write_to(open_window());
	if (!status)
		close_all();
	return status;
}
