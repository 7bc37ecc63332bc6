/* SPDX-License-Identifier: BSD-2-Clause */
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "apart.h"
#include "mr_fixture.h"

struct mr_env env, second;
unsigned char *mem;

static unsigned fail_at;
static atomic_uint nallocs;
static _Thread_local bool in_library;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static bool fails(void)
{
	return in_library && atomic_fetch_add(&nallocs, 1) + 1 == fail_at;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void fail_alloc(unsigned nth)
{
	atomic_store(&nallocs, 0);
	fail_at = nth;
}

void library_enter(void)
{
	in_library = true;
}

void library_leave(void)
{
	in_library = false;
}

unsigned allocs(void)
{
	return atomic_load(&nallocs);
}

static void open_space(struct mr_env *e, uint64_t mode, uint32_t api_version)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a630101) };

	memset(e, 0, sizeof(*e));
	e->domain.fid.fclass = FI_CLASS_DOMAIN;
	e->domain.mr = &e->space.ops;
	mrf_obj_init(&e->obj, &e->domain.fid, NULL);
	ck_assert_int_eq(mrf_vdev_open((struct sockaddr *)&addr, &e->dev), 0);
	ck_assert_int_eq(mrf_vpd_alloc(e->dev, &e->space.pd), 0);
	e->space.vdev = e->dev;
	e->space.obj = &e->obj;
	e->space.mode = mode;
	e->space.api_version = api_version;
	e->space.max_mr = mrf_vdev_limits(e->dev)->max_mr;
	ck_assert_int_eq(mrf_mr_space_init(&e->space), 0);
}

void env_open_api(uint64_t mode, uint32_t api_version)
{
	fake_verbs_reset();
	fail_alloc(0);
	mem = map_apart(64 * PAGE);
	open_space(&env, mode, api_version);
}

void env_open(uint64_t mode)
{
	env_open_api(mode, FI_VERSION(1, 17));
}

unsigned char *env_reserve(size_t len)
{
	void *there = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(there, MAP_FAILED);
	return there;
}

static void close_space(struct mr_env *e)
{
	ck_assert_uint_eq(e->space.keys.count, 0);
	ck_assert_int_eq(mrf_mr_space_busy(&e->space), 0);
	mrf_mr_space_fini(&e->space);
	mrf_vpd_free(e->space.pd);
	mrf_vdev_close(e->dev);
	mrf_obj_fini(&e->obj);
}

void env_second_open(uint64_t mode)
{
	open_space(&second, mode, FI_VERSION(1, 17));
}

void env_second_close(void)
{
	close_space(&second);
}

void env_close(void)
{
	fail_alloc(0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	close_space(&env);
	ck_assert_uint_eq(fake_verbs_live(), 0);
	munmap(mem, 64 * PAGE);
}

int env_reg(const void *buf, size_t len, uint64_t access, uint64_t key, struct fid_mr **mr)
{
	int ret;

	library_enter();
	ret = fi_mr_reg(&env.domain, buf, len, access, 0, key, 0, mr, NULL);
	library_leave();
	return ret;
}

struct fid_mr *env_must_reg(const void *buf, size_t len, uint64_t access, uint64_t key)
{
	struct fid_mr *mr = NULL;

	ck_assert_int_eq(env_reg(buf, len, access, key, &mr), 0);
	ck_assert_ptr_nonnull(mr);
	return mr;
}

struct fid_mr *env_must_regv(const struct iovec *iov, size_t count, uint64_t access, uint64_t key)
{
	struct fid_mr *mr = NULL;

	ck_assert_int_eq(fi_mr_regv(&env.domain, iov, count, access, 0, key, 0, &mr, NULL), 0);
	ck_assert_ptr_nonnull(mr);
	return mr;
}

void env_look(uint64_t key, struct mrf_mr_view *view)
{
	struct mrf_mr_query ask = { .key = key };
	struct mrf_mr_lease lease;

	mrf_mr_lease_init(&lease);
	mrf_mr_reach(&env.space, &ask, &lease, view);
	mrf_mr_lease_end(&lease);
}

void env_must_close(struct fid_mr *mr)
{
	ck_assert_int_eq(fi_close(&mr->fid), 0);
}
