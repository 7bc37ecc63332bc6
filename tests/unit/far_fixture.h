/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair of nodes, memory of a device at the second one and registered memory of the host at the
 * first, for the tests of what a peer does with such memory. As device_fixture.h, which it
 * includes: once for each program. What is marked inline need not be used.
 */
#ifndef FAR_FIXTURE_H
#define FAR_FIXTURE_H

#include "proto/proto.h"
#include "device_fixture.h"
#include "held_copy.h"

/* What is under way at a time in one direction. */
#define PLACES (MRF_PROTO_STAGES * MRF_PROTO_STAGE)
#define LEN (3 * PLACES + 1000)
#define KEY 5

static uint8_t *dev; /* LEN bytes of a device, of the second node */
static struct fid_mr *dev_mr;
static uint8_t *mem; /* and of the first node's, registered */
static struct fid_mr *mem_mr;
static void *desc;
static uint64_t key, base;
static uint8_t want[LEN], got[LEN];

static void reg_target(uint64_t access, int mode)
{
	dev_mr = reg_device(&p.b, dev, LEN, access, KEY);
	key = fi_mr_key(dev_mr);
	base = mode & FI_MR_VIRT_ADDR ? (uintptr_t)dev : 0;
}

static uint64_t caps = CAPS;

static void open_all(int i, int mode)
{
	open_pair(i, mode, caps);
	dev = rig->make(RT_DEVICE, 0, LEN);
	reg_target(REMOTE_RW, mode);
	mem = pages(LEN);
	mem_mr = node_reg(&p.a, mem, LEN, FI_READ | FI_WRITE, 8);
	desc = fi_mr_desc(mem_mr);
	fill(want, LEN, 7);
}

static void close_all(void)
{
	must_close(&mem_mr->fid);
	if (dev_mr)
		must_close(&dev_mr->fid);
	if (dev)
		rig->unmake(RT_DEVICE, dev);
	pair_close(&p);
}

static inline ssize_t write_far(size_t at, size_t len)
{
	return fi_write(p.a.ep, mem + at, len, desc, p.to, base + at, key, &p);
}

static inline ssize_t read_far(size_t at, size_t len)
{
	return fi_read(p.a.ep, mem + at, len, desc, p.to, base + at, key, &p);
}

#endif
