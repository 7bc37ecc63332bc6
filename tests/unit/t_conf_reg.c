/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sentences of fi_mr(3) about registration that docs/CONFORMANCE.md lists and no other
 * test shows: the three calls alike, what is read of the arguments, and keys.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include "mr_fixture.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CALLS 3

static struct unit_capture cap;
static struct fid_mr *const untouched = (void *)&cap;

/* The same request through fi_mr_reg, fi_mr_regv or fi_mr_regattr; one buffer. */
static int call_reg(int call, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	struct fid_domain *domain = &env.domain;

	switch (call) {
	case 0:
		return fi_mr_reg(domain, attr->mr_iov->iov_base, attr->mr_iov->iov_len,
				 attr->access, attr->offset, attr->requested_key, flags, mr,
				 attr->context);
	case 1:
		return fi_mr_regv(domain, attr->mr_iov, attr->iov_count, attr->access, attr->offset,
				  attr->requested_key, flags, mr, attr->context);
	default:
		return fi_mr_regattr(domain, attr, flags, mr);
	}
}

static void all_refuse(const struct fi_mr_attr *attr, uint64_t flags, int err, const char *code)
{
	struct fid_mr *mr = untouched;
	const char *text;
	int call, ret;

	for (call = 0; call < CALLS; call++) {
		unit_capture(&cap);
		ret = call_reg(call, attr, flags, &mr);
		text = unit_captured(&cap);
		ck_assert_msg(ret == err, "call %d: %d instead of %d", call, ret, err);
		ck_assert_msg(strstr(text, code), "call %d: %s not in: %s", call, code, text);
		ck_assert_uint_eq(unit_lines(text), 1);
		ck_assert_ptr_eq(mr, untouched);
	}
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
}

START_TEST(conf_the_three_calls_refuse_the_same_with_the_same_error)
{
	struct iovec iov;
	struct fi_mr_attr good = { .mr_iov = &iov, .iov_count = 1, .access = RW }, bad;
	unsigned bit;

	env_open(FI_MR_ALLOCATED);
	iov = (struct iovec){ mem, 8 };
	bad = good;
	bad.offset = 1;
	all_refuse(&bad, 0, -FI_EINVAL, "MRF-E3007");
	bad.offset = UINT64_MAX;
	all_refuse(&bad, 0, -FI_EINVAL, "MRF-E3007");
	bad = good;
	bad.access = RW | 1ull << 63;
	all_refuse(&bad, 0, -FI_EINVAL, "MRF-E3005");
	bad = good;
	bad.requested_key = FI_KEY_NOTAVAIL;
	all_refuse(&bad, 0, -FI_EKEYREJECTED, "MRF-E3023");
	for (bit = 0; bit < 64; bit++) {
		if (!(1ull << bit & (FI_RMA_EVENT | FI_RMA_PMEM)))
			all_refuse(&good, 1ull << bit, -FI_EBADFLAGS, "MRF-E30");
	}
	iov.iov_len = SIZE_MAX;
	all_refuse(&good, 0, -FI_EINVAL, "MRF-E3003");
	iov.iov_len = 0;
	all_refuse(&good, 0, -FI_EINVAL, "MRF-E3004");
	iov = (struct iovec){ NULL, PAGE };
	all_refuse(&good, 0, -FI_EFAULT, "MRF-E3014");
	env_close();
}
END_TEST

START_TEST(conf_a_count_of_zero_is_refused_by_both_calls_that_have_one)
{
	struct iovec iov;
	struct fid_mr *mr = untouched;
	const char *text;

	env_open(FI_MR_ALLOCATED);
	iov = (struct iovec){ mem, 8 };
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_regv(&env.domain, &iov, 0, RW, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_regv(&env.domain, NULL, 1, RW, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3002"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3001"));
	ck_assert_uint_eq(unit_lines(text), 2);
	ck_assert_ptr_eq(mr, untouched);
	env_close();
}
END_TEST

/* Key, rights, range and context arrive whichever call carries them. */
START_TEST(conf_the_three_calls_make_the_same_region)
{
	static const uint64_t modes[] = { 0, FI_MR_VIRT_ADDR, FI_MR_LOCAL | FI_MR_ALLOCATED };
	struct iovec iov;
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_READ | FI_WRITE, .context = &iov
	};
	struct mrf_mr_view view;
	struct fid_mr *mr;
	size_t m;
	int call;

	for (m = 0; m < 3; m++) {
		env_open(FI_MR_ALLOCATED | modes[m]);
		iov = (struct iovec){ mem + 77, 1000 };
		for (call = 0; call < CALLS; call++) {
			attr.requested_key = 100 + (uint64_t)call;
			ck_assert_int_eq(call_reg(call, &attr, 0, &mr), 0);
			env_look(attr.requested_key, &view);
			ck_assert_int_eq(view.status, MRF_MR_OK);
			ck_assert_uint_eq(view.access, FI_REMOTE_READ);
			ck_assert_uint_eq(view.base, (uintptr_t)mem + 77);
			ck_assert_uint_eq(view.len, 1000);
			ck_assert_uint_eq(fake_verbs.last.access, IBV_ACCESS_REMOTE_READ);
			ck_assert_uint_eq(fi_mr_key(mr), attr.requested_key);
			ck_assert_ptr_eq(mr->fid.context, &iov);
			ck_assert_uint_eq(mr->fid.fclass, FI_CLASS_MR);
			env_must_close(mr);
		}
		env_close();
	}
}
END_TEST

/* What the caller does with its list after the call is its own business. */
START_TEST(conf_the_list_of_buffers_is_read_during_the_call_only)
{
	struct iovec iov[2];
	struct mrf_mr_view view;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	iov[0] = (struct iovec){ mem + PAGE, 10 };
	iov[1] = (struct iovec){ mem, 20 };
	mr = env_must_regv(iov, 2, RW, 4);
	memset(iov, 0xee, sizeof(iov));
	env_look(4, &view);
	ck_assert_uint_eq(view.nseg, 2);
	ck_assert_uint_eq(view.len, 30);
	ck_assert_ptr_eq(fake_verbs_find(view.seg[0].rkey)->mr.addr, mem + PAGE);
	ck_assert_ptr_eq(fake_verbs_find(view.seg[1].rkey)->mr.addr, mem);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(conf_every_region_has_a_descriptor)
{
	static const uint64_t right[] = { FI_SEND,  FI_RECV,	    FI_READ,
					  FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	struct fid_mr *mr, *other;
	struct mrf_desc out;
	unsigned set, bit;
	uint64_t access;

	env_open(FI_MR_ALLOCATED | FI_MR_LOCAL);
	for (set = 1; set < 64; set++) {
		access = 0;
		for (bit = 0; bit < 6; bit++)
			access |= set >> bit & 1 ? right[bit] : 0;
		mr = env_must_reg(mem, PAGE, access, 1);
		other = env_must_reg(mem, PAGE, access, 2);
		ck_assert_ptr_nonnull(fi_mr_desc(mr));
		ck_assert_ptr_ne(fi_mr_desc(mr), fi_mr_desc(other));
		ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &out));
		ck_assert_uint_eq(out.access, access);
		env_must_close(other);
		env_must_close(mr);
	}
	env_close();
}
END_TEST

/* --- what is read of fi_mr_attr --- */

/* So much of attr at the very end of a page that nothing can be read behind. */
static struct fi_mr_attr *at_the_edge(unsigned char **page, const struct fi_mr_attr *attr,
				      size_t size)
{
	unsigned char *p =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(munmap(p + PAGE, PAGE), 0);
	*page = p;
	return memcpy(p + PAGE - size, attr, size);
}

/* The structure of 1.7 and 1.8 ends with auth_key. */
START_TEST(conf_attr_of_an_old_program_is_not_read_beyond_auth_key)
{
	static const uint32_t apis[] = { FI_VERSION(1, 4), FI_VERSION(1, 7), FI_VERSION(1, 8),
					 FI_VERSION(1, 17) };
	struct iovec iov;
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = RW,
				   .requested_key = 3 },
			  *edge;
	unsigned char *page;
	struct fid_mr *mr;
	size_t i;

	for (i = 0; i < sizeof(apis) / sizeof(apis[0]); i++) {
		env_open_api(FI_MR_ALLOCATED, apis[i]);
		iov = (struct iovec){ mem, 8 };
		edge = at_the_edge(&page, &attr, offsetof(struct fi_mr_attr, iface));
		ck_assert_int_eq(fi_mr_regattr(&env.domain, edge, 0, &mr), 0);
		ck_assert_uint_eq(fi_mr_key(mr), 3);
		env_must_close(mr);
		munmap(page, PAGE);
		env_close();
	}
}
END_TEST

/* Before 1.5 neither its size nor the key itself is looked at. */
START_TEST(conf_authorization_key_is_not_looked_at_before_api_1_5)
{
	struct iovec iov;
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = RW, .auth_key = (uint8_t *)8
	};
	struct fid_mr *mr;
	size_t size;

	env_open_api(FI_MR_ALLOCATED, FI_VERSION(1, 4));
	iov = (struct iovec){ mem, 8 };
	for (size = 1; size; size <<= 8) {
		attr.auth_key_size = size;
		ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, 0, &mr), 0);
		env_must_close(mr);
	}
	attr.auth_key_size = SIZE_MAX;
	ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, 0, &mr), 0);
	env_must_close(mr);
	env_close();
}
END_TEST

/* --- keys --- */

START_TEST(conf_key_zero_is_a_key_like_any_other)
{
	struct fid_mr *mr, *twin = untouched;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(mem, PAGE, RW, 0);
	ck_assert_uint_eq(fi_mr_key(mr), 0);
	unit_capture(&cap);
	ck_assert_int_eq(env_reg(mem, PAGE, RW, 0, &twin), -FI_ENOKEY);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3021"));
	ck_assert_ptr_eq(twin, untouched);
	env_must_close(mr);
	env_close();
	env_open(FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	mr = env_must_reg(mem, PAGE, RW, 0);
	twin = env_must_reg(mem, PAGE, RW, 0);
	ck_assert_uint_ne(fi_mr_key(mr), fi_mr_key(twin));
	env_must_close(twin);
	env_must_close(mr);
	env_close();
}
END_TEST

/* A peer that tries the wish instead of the answer finds nothing. */
START_TEST(conf_requested_key_reaches_nothing_when_the_provider_chooses)
{
	static const uint64_t modes[] = { FI_MR_PROV_KEY, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR };
	static const uint64_t wishes[] = { 0, 0x7777777777777, UINT64_MAX - 1 };
	struct mrf_key_direct direct;
	struct mrf_mr_view view;
	struct fid_mr *mr;
	size_t m, w;

	for (m = 0; m < 2; m++) {
		for (w = 0; w < 3; w++) {
			env_open(FI_MR_ALLOCATED | modes[m]);
			mr = env_must_reg(mem, PAGE, RW, wishes[w]);
			ck_assert_uint_ne(fi_mr_key(mr), wishes[w]);
			env_look(wishes[w], &view);
			ck_assert_int_eq(view.status, MRF_MR_UNKNOWN);
			ck_assert(!mrf_key_unpack(modes[m], wishes[w], &direct));
			env_must_close(mr);
			env_close();
		}
	}
}
END_TEST

static TCase *calls(void)
{
	TCase *tc = tcase_create("calls");

	tcase_add_test(tc, conf_the_three_calls_refuse_the_same_with_the_same_error);
	tcase_add_test(tc, conf_a_count_of_zero_is_refused_by_both_calls_that_have_one);
	tcase_add_test(tc, conf_the_three_calls_make_the_same_region);
	tcase_add_test(tc, conf_the_list_of_buffers_is_read_during_the_call_only);
	tcase_add_test(tc, conf_every_region_has_a_descriptor);
	return tc;
}

static TCase *attributes(void)
{
	TCase *tc = tcase_create("attributes");

	tcase_add_test(tc, conf_attr_of_an_old_program_is_not_read_beyond_auth_key);
	tcase_add_test(tc, conf_authorization_key_is_not_looked_at_before_api_1_5);
	return tc;
}

static TCase *keys(void)
{
	TCase *tc = tcase_create("keys");

	tcase_add_test(tc, conf_key_zero_is_a_key_like_any_other);
	tcase_add_test(tc, conf_requested_key_reaches_nothing_when_the_provider_chooses);
	return tc;
}

UNIT_MAIN("conf_reg", calls, attributes, keys)
