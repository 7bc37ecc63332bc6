/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair of nodes and memory of a device, whose copies can be held. For the tests of such memory at
 * either end; each includes it once, wraps what copies, and calls pass() there.
 */
#ifndef DEVICE_FIXTURE_H
#define DEVICE_FIXTURE_H

#include <stdatomic.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include "mr/device.h"
#include "runtime/rig.h"
#include "ep_fixture.h"

#define CAPS (FI_RMA | FI_ATOMIC | FI_HMEM)

static const struct rig *rig;
static struct rig_control control;
static struct pair p;

/* --- copies that are held --------------------------------------------------------------- */

static atomic_uint hold_nth; /* copy, from now on; 0: none */
static atomic_uint copies;
static atomic_bool inside, may_go;

/* It counts its turns: a test may set the clock forward while a copy is held. */
static void pass(void)
{
	unsigned turns = LONG_MS * 5;

	if (atomic_fetch_add(&copies, 1) + 1 != atomic_load(&hold_nth))
		return;
	atomic_store(&inside, true);
	while (!atomic_load(&may_go) && turns--)
		usleep(200);
}

static inline void hold(unsigned nth)
{
	atomic_store(&copies, 0);
	atomic_store(&inside, false);
	atomic_store(&may_go, false);
	atomic_store(&hold_nth, nth);
}

static inline void let_go(void)
{
	atomic_store(&may_go, true);
}

/* --- the first node's queue, which nobody else reads ---------------------------------------- */

static inline void nothing_completed(void)
{
	struct fi_cq_data_entry entry;

	ck_assert_int_eq(fi_cq_read(p.a.cq, &entry, 1), -FI_EAGAIN);
}

static inline bool is_inside(void)
{
	nothing_completed();
	return atomic_load(&inside);
}

static inline bool is_idle(void)
{
	nothing_completed();
	return node_idle(&p.a);
}

/* False: there is an error to be read. */
static inline bool ends_well(void)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_sread(p.a.cq, &entry, 1, NULL, 100)) == -FI_EAGAIN)
		;
	ck_assert_int_eq(ret, ret == 1 ? 1 : -FI_EAVAIL);
	return ret == 1;
}

/* --- memory of device 0 ---------------------------------------------------------------------- */

static inline struct fid_mr *reg_device(struct node *n, void *addr, size_t len, uint64_t access,
					uint64_t key)
{
	const struct iovec iov = { addr, len };
	const struct fi_mr_attr attr = { .mr_iov = &iov,
					 .iov_count = 1,
					 .access = access,
					 .requested_key = key,
					 .iface = rig->iface };
	struct fid_mr *mr;

	ck_assert_int_eq(fi_mr_regattr(n->domain, &attr, 0, &mr), 0);
	return mr;
}

static uint32_t api; /* 0: the usual version */

/* Of the runtime with this number, both ends in a domain that has FI_HMEM. */
static void open_pair(int runtime, int mode, uint64_t caps)
{
	hold_nth = 0;
	rig = rig_load(runtime, &control);
	pair_open(&p, &(struct node_opt){ .mr_mode = mode | FI_MR_HMEM, .caps = caps, .api = api });
}

#endif
