/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libfabric's interface, used as any program uses it. Only four functions of it are
 * symbols, all else goes through objects: so the same code runs over libmrfab, which
 * the benchmark is linked with, and over an installed libfabric, found at run time.
 */
#ifndef BENCH_FAB_H
#define BENCH_FAB_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include "work.h"

struct fab_lib {
	const char *provider;
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	uint32_t (*version)(void);
};

#define FAB_NATIVE (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define FAB_NAME_LEN 64

struct fab {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;     /* of the buffer that takes part in accesses */
	struct fid_cntr *cntr; /* of writes to mr by peers, with the capability */
	int waits;	       /* set before: threads may sleep in fi_cq_sread */
	struct fid_mr *one;    /* of the operand of atomic operations */
	fi_addr_t peer;
	uint64_t next_key;
};

extern const struct fab_lib fab_ours;
/* An installed libfabric with its verbs provider; 0 when there is none. */
int fab_find_other(struct fab_lib *lib);

/* fi_getinfo, fi_fabric, fi_domain. caps: beside FI_RMA. 0 or a negative FI_E*. */
int fab_open_domain(struct fab *fab, const struct fab_lib *lib, int mr_mode, uint64_t caps);
/*
 * The rest, up to an enabled endpoint, and the buffer registered; with FI_RMA_EVENT a counter
 * counts what peers write there.
 */
int fab_open(struct fab *fab, const struct fab_lib *lib, int mr_mode, uint64_t caps, void *buf,
	     size_t len);
void fab_name(const struct fab *fab, char name[FAB_NAME_LEN]);
void fab_remote(const struct fab *fab, void *buf, struct work_remote *remote);
void fab_insert(struct fab *fab, const char name[FAB_NAME_LEN]);
/* For a library that makes connections only while it is called. */
void fab_progress(struct fab *fab);

/* Each with a key of its own. */
struct fid_mr *fab_register_one(struct fab *fab, void *buf, size_t len);
void fab_register(struct fab *fab, const struct work_register *work);
void fab_access(struct fab *fab, const struct work_access *work);
/* ns for each completion: work.h. */
double fab_completions(struct fab *fab, const struct work_access *work, size_t batch);

#endif
