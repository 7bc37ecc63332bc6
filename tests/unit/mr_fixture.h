/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key space on a fake device, without a domain, and allocation that fails on order:
 * what every test of lib/mr starts from.
 */
#ifndef MR_FIXTURE_H
#define MR_FIXTURE_H

#include <errno.h>
#include <check.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "mr/desc.h"
#include "mr/mr.h"
#include "mr/pool.h"
#include "../fake/fake_verbs.h"
#include "unit.h"

#define PAGE 4096u
#define ALL_ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

struct mr_env {
	struct fid_domain domain;
	struct mrf_obj obj;
	struct mrf_vdev *dev;
	struct mrf_mr_space space;
};

extern struct mr_env env;
/* Another one, for env_second_*. */
extern struct mr_env second;
/* 64 pages of real memory, page-aligned. */
extern unsigned char *mem;

/* Resets the fake; API version 1.17. */
void env_open(uint64_t mode);
void env_open_api(uint64_t mode, uint32_t api_version);
/* Asserts that no region is left, in the space or in the kernel. */
void env_close(void);

#define GIB (1ul << 30)
/* So much address space, without memory. */
unsigned char *env_reserve(size_t len);

/* A second domain on the same device, while the first one is open. */
void env_second_open(uint64_t mode);
void env_second_close(void);

/* Regions with everything in order but what the arguments say. */
int env_reg(const void *buf, size_t len, uint64_t access, uint64_t key, struct fid_mr **mr);
struct fid_mr *env_must_reg(const void *buf, size_t len, uint64_t access, uint64_t key);
struct fid_mr *env_must_regv(const struct iovec *iov, size_t count, uint64_t access, uint64_t key);
void env_must_close(struct fid_mr *mr);

/* What a peer is told that asks for the region behind key, without asking for bytes. */
void env_look(uint64_t key, struct mrf_mr_view *view);

/*
 * The nth malloc or calloc from now on (1: the next) fails; 0: none. Only those count
 * that this thread makes between library_enter and library_leave, as env_reg does: the
 * test framework allocates too.
 */
void fail_alloc(unsigned nth);
/* Allocations counted since the last fail_alloc. */
unsigned allocs(void);
void library_enter(void);
void library_leave(void);

#endif
