/* SPDX-License-Identifier: BSD-2-Clause */
#include "domain/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/env.h"
#include "base/fault.h"
#include "base/log.h"
#include "domain/domain.h"
#include "obj/cq_int.h"

/* The seed changes nothing where nothing is random. */
static void tell_plan(const struct mrf_fault_plan *plan)
{
	char again[48] = "";
	unsigned i = 0;

	while (i < plan->nrules && plan->rule[i].one_in == 1)
		i++;
	if (i < plan->nrules)
		snprintf(again, sizeof(again), "; seed=%lu repeats it", (unsigned long)plan->seed);
	mrf_warn(FI_LOG_DOMAIN, 2166, "FI_MRFAB_FAULT is in force in this domain%s", again);
}

int mrf_faults_take(struct mrf_fault_plan **plan)
{
	const char *text = mrf_env_str(MRF_PARAM_FAULT);
	char why[192] = "there are no random bytes for a seed";
	int ret;

	*plan = NULL;
	if (!text || !*text)
		return 0;
	*plan = calloc(1, sizeof(**plan));
	if (!*plan)
		return mrf_refuse(FI_ENOMEM, FI_LOG_DOMAIN, 2152,
				  "fi_domain: there is no memory for the domain");
	ret = mrf_fault_parse(text, *plan, why, sizeof(why));
	if (!ret) {
		tell_plan(*plan);
		return 0;
	}
	free(*plan);
	*plan = NULL;
	return mrf_refuse(-ret, FI_LOG_DOMAIN, 2165, "fi_domain: FI_MRFAB_FAULT: %s", why);
}

/* A read that fails has not looked. */
static ssize_t fault_of_read(struct fid_cq *cq)
{
	struct mrf_obj *domain = mrf_cq_of(cq)->obj.parent.target;

	return mrf_fault_refuse(mrf_container_of(domain, struct mrf_domain, obj)->space.faults,
				MRF_FAULT_CQ, FI_LOG_CQ, "reading a completion queue");
}

static ssize_t faulty_read(struct fid_cq *cq, void *buf, size_t count)
{
	ssize_t ret = fault_of_read(cq);

	return ret ? ret : mrf_cq_ops.read(cq, buf, count);
}

static ssize_t faulty_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	ssize_t ret = fault_of_read(cq);

	return ret ? ret : mrf_cq_ops.readfrom(cq, buf, count, src);
}

static ssize_t faulty_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond,
			    int timeout)
{
	ssize_t ret = fault_of_read(cq);

	return ret ? ret : mrf_cq_ops.sread(cq, buf, count, cond, timeout);
}

static ssize_t faulty_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src,
				const void *cond, int timeout)
{
	ssize_t ret = fault_of_read(cq);

	return ret ? ret : mrf_cq_ops.sreadfrom(cq, buf, count, src, cond, timeout);
}

static ssize_t pass_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	return mrf_cq_ops.readerr(cq, buf, flags);
}

static int pass_signal(struct fid_cq *cq)
{
	return mrf_cq_ops.signal(cq);
}

static const char *pass_strerror(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf,
				 size_t len)
{
	return mrf_cq_ops.strerror(cq, prov_errno, err_data, buf, len);
}

static void count_reads(struct fid_cq *cq)
{
	static struct fi_ops_cq ops = { .size = sizeof(struct fi_ops_cq),
					.read = faulty_read,
					.readfrom = faulty_readfrom,
					.readerr = pass_readerr,
					.sread = faulty_sread,
					.sreadfrom = faulty_sreadfrom,
					.signal = pass_signal,
					.strerror = pass_strerror };

	cq->ops = &ops;
}

void mrf_faults_of_cq(const struct mrf_fault_plan *plan, struct fid_cq *cq)
{
	count_reads(cq);
	if (plan->cq_full)
		mrf_cq_fix(mrf_cq_of(cq), plan->cq_full);
}
