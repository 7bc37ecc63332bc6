/* SPDX-License-Identifier: BSD-2-Clause */
/* The key space: requested keys, provider keys, and what a closed key is afterwards. */
#include <string.h>
#include "contract/mr_offer.h"
#include "mr_fixture.h"

#define RR FI_REMOTE_READ
#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct unit_capture cap;

static enum mrf_mr_status status_of(uint64_t key)
{
	struct mrf_mr_view view;

	env_look(key, &view);
	return view.status;
}

START_TEST(key_requested_is_the_key_over_the_whole_64_bits)
{
	static const uint64_t keys[] = { 0,	     1,		 0xc0de,     UINT32_MAX,
					 1ull << 32, 1ull << 62, 1ull << 63, UINT64_MAX - 1 };
	struct fid_mr *mr[8];
	size_t i;

	env_open(FI_MR_ALLOCATED);
	for (i = 0; i < 8; i++) {
		mr[i] = env_must_reg(mem, PAGE, RW, keys[i]);
		ck_assert_uint_eq(fi_mr_key(mr[i]), keys[i]);
	}
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(status_of(keys[i]), MRF_MR_OK);
	for (i = 0; i < 8; i++)
		env_must_close(mr[i]);
	env_close();
}
END_TEST

START_TEST(key_notavail_cannot_be_requested)
{
	struct fid_mr *untouched = (void *)&cap;

	env_open(FI_MR_ALLOCATED);
	unit_capture(&cap);
	ck_assert_int_eq(env_reg(mem, PAGE, RR, FI_KEY_NOTAVAIL, &untouched), -FI_EKEYREJECTED);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3023"));
	ck_assert_ptr_eq(untouched, (void *)&cap);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 0);
	/* A region that takes no key may name it. */
	env_must_close(env_must_reg(mem, PAGE, FI_SEND, FI_KEY_NOTAVAIL));
	env_close();
}
END_TEST

START_TEST(key_in_use_is_refused_and_the_holder_named)
{
	struct fid_mr *mr, *untouched = (void *)&cap;
	char holder[32];
	const char *text;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(mem + PAGE, 1234, RR, 0x77);
	snprintf(holder, sizeof(holder), "%#llx", (unsigned long long)(uintptr_t)mem + PAGE);
	unit_capture(&cap);
	ck_assert_int_eq(env_reg(mem, PAGE, RW, 0x77, &untouched), -FI_ENOKEY);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3021"));
	ck_assert_ptr_nonnull(strstr(text, "0x77"));
	ck_assert_ptr_nonnull(strstr(text, holder));
	ck_assert_ptr_nonnull(strstr(text, "1234 bytes"));
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_ptr_eq(untouched, (void *)&cap);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_uint_eq(env.space.keys.count, 1);
	env_must_close(mr);
	/* Free again. */
	env_must_close(env_must_reg(mem, PAGE, RW, 0x77));
	/* The place of the refused region is free, too. */
	ck_assert_uint_eq(env.space.pool->used, 2);
	mr = env_must_reg(mem, PAGE, RW, 1);
	env_must_close(env_must_reg(mem, PAGE, RW, 2));
	ck_assert_uint_eq(env.space.pool->used, 2);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(key_is_taken_only_by_regions_with_a_remote_right)
{
	uint64_t local = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
	struct fid_mr *a, *b, *c;

	env_open(FI_MR_ALLOCATED);
	a = env_must_reg(mem, PAGE, local, 5);
	b = env_must_reg(mem, PAGE, FI_SEND, 5);
	ck_assert_uint_eq(fi_mr_key(a), 5);
	ck_assert_uint_eq(fi_mr_key(b), 5);
	ck_assert_int_eq(status_of(5), MRF_MR_UNKNOWN);
	c = env_must_reg(mem, PAGE, local | RR, 5);
	ck_assert_int_eq(status_of(5), MRF_MR_OK);
	env_must_close(a);
	env_must_close(b);
	ck_assert_int_eq(status_of(5), MRF_MR_OK);
	env_must_close(c);
	ck_assert_int_eq(status_of(5), MRF_MR_CLOSED);
	env_close();
}
END_TEST

START_TEST(key_of_a_local_region_is_not_available_with_provider_keys)
{
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	mr = env_must_reg(mem, PAGE, FI_SEND | FI_RECV, 5);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(key_of_provider_with_virtual_addresses_is_the_rkey)
{
	struct mrf_key_direct direct;
	struct fid_mr *mr, *twin;

	env_open(FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR);
	mr = env_must_reg(mem + 0x123, PAGE, RW, 5);
	ck_assert_uint_eq(fi_mr_key(mr), fake_verbs.last.mr.rkey);
	ck_assert(mrf_key_unpack(env.space.mode, fi_mr_key(mr), &direct));
	ck_assert_uint_eq(direct.rkey, fake_verbs.last.mr.rkey);
	ck_assert_uint_eq(direct.iova_base, 0);
	ck_assert_int_eq(status_of(fi_mr_key(mr)), MRF_MR_OK);
	/*
	 * The same requested key again is no clash: it is ignored, even when it is no
	 * key.
	 */
	twin = env_must_reg(mem, PAGE, RW, 5);
	ck_assert_uint_ne(fi_mr_key(twin), fi_mr_key(mr));
	env_must_close(env_must_reg(mem, PAGE, RW, FI_KEY_NOTAVAIL));
	env_must_close(twin);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(key_of_provider_zero_based_carries_rkey_and_page_offset)
{
	struct mrf_key_direct direct;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	mr = env_must_reg(mem + 3 * PAGE + 0xfff, PAGE, RW, 5);
	ck_assert_uint_eq(fi_mr_key(mr) >> 62, 1);
	ck_assert(mrf_key_unpack(env.space.mode, fi_mr_key(mr), &direct));
	ck_assert_uint_eq(direct.rkey, fake_verbs.last.mr.rkey);
	ck_assert_uint_eq(direct.iova_base, 0xfff);
	ck_assert_uint_eq(fake_verbs.last.iova, 0xfff);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(key_of_provider_for_several_segments_is_asked_for_and_never_reused)
{
	struct iovec iov[2] = { { NULL, PAGE }, { NULL, PAGE } };
	struct mrf_key_direct direct;
	struct fid_mr *mr;
	uint64_t last = 0;
	int i, virt;

	for (virt = 0; virt < 2; virt++) {
		env_open(FI_MR_ALLOCATED | FI_MR_PROV_KEY | (virt ? FI_MR_VIRT_ADDR : 0));
		iov[0].iov_base = mem;
		iov[1].iov_base = mem + 2 * PAGE;
		for (i = 0; i < 5; i++) {
			mr = env_must_regv(iov, 2, RW, 5);
			ck_assert_uint_eq(fi_mr_key(mr) >> 62, 2);
			ck_assert_uint_ne(fi_mr_key(mr), last);
			ck_assert(!mrf_key_unpack(env.space.mode, fi_mr_key(mr), &direct));
			ck_assert_int_eq(status_of(fi_mr_key(mr)), MRF_MR_OK);
			last = fi_mr_key(mr);
			env_must_close(mr);
			ck_assert_int_eq(status_of(last), MRF_MR_CLOSED);
		}
		env_close();
	}
}
END_TEST

/* Whether the target knows device memory is none of its peers' business. */
START_TEST(key_form_of_every_mode_is_the_same_with_device_memory)
{
	struct mrf_key_form with, without;
	uint64_t mode;

	for (mode = 0; mode <= MRF_MR_REQUIRABLE; mode += FI_MR_LOCAL) {
		without = mrf_key_form(mode);
		with = mrf_key_form(mode | FI_MR_HMEM);
		ck_assert_uint_eq(with.fixed, without.fixed);
		ck_assert_uint_eq(with.want, without.want);
		ck_assert_uint_eq(with.offset, without.offset);
	}
}
END_TEST

/* The device hands out a number that the key space still knows: no reason to fail. */
START_TEST(key_clash_of_provider_keys_is_evaded)
{
	struct mrf_key_direct direct;
	struct fid_mr *a, *b;

	env_open(FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR);
	a = env_must_reg(mem, PAGE, RW, 0);
	fake_verbs.next_key = (uint32_t)fi_mr_key(a);
	b = env_must_reg(mem, PAGE, RW, 0);
	ck_assert_uint_eq(fi_mr_key(b) >> 62, 2);
	ck_assert(!mrf_key_unpack(env.space.mode, fi_mr_key(b), &direct));
	ck_assert_int_eq(status_of(fi_mr_key(b)), MRF_MR_OK);
	env_must_close(a);
	ck_assert_int_eq(status_of(fi_mr_key(b)), MRF_MR_OK);
	env_must_close(b);
	env_close();
}
END_TEST

static enum mrf_mr_status status_in_dereg;

static void look_during_dereg(const struct ibv_mr *mr)
{
	status_in_dereg = status_of(mr->rkey);
}

/* The kernel may hand out the rkey again the moment it is gone: it must be ours before.
 */
START_TEST(key_leaves_the_table_before_the_kernel_region_goes)
{
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR);
	mr = env_must_reg(mem, PAGE, RW, 0);
	fake_verbs.on_dereg = look_during_dereg;
	status_in_dereg = MRF_MR_OK;
	env_must_close(mr);
	ck_assert_int_eq(status_in_dereg, MRF_MR_CLOSED);
	env_close();
}
END_TEST

START_TEST(key_closed_is_told_from_unknown_until_used_again)
{
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	ck_assert_int_eq(status_of(9), MRF_MR_UNKNOWN);
	env_must_close(env_must_reg(mem, PAGE, RW, 9));
	ck_assert_int_eq(status_of(9), MRF_MR_CLOSED);
	ck_assert_int_eq(status_of(0), MRF_MR_UNKNOWN);
	mr = env_must_reg(mem, PAGE, RW, 9);
	ck_assert_int_eq(status_of(9), MRF_MR_OK);
	env_must_close(mr);
	ck_assert_int_eq(status_of(9), MRF_MR_CLOSED);
	/* Key 0 is a key like any other. */
	env_must_close(env_must_reg(mem, PAGE, RW, 0));
	ck_assert_int_eq(status_of(0), MRF_MR_CLOSED);
	env_close();
}
END_TEST

START_TEST(key_memory_of_closed_keys_is_a_ring)
{
	uint64_t key;

	env_open(FI_MR_ALLOCATED);
	for (key = 1; key <= MRF_MR_CLOSED_KEYS; key++)
		env_must_close(env_must_reg(mem, PAGE, RW, key));
	for (key = 1; key <= MRF_MR_CLOSED_KEYS; key++)
		ck_assert_int_eq(status_of(key), MRF_MR_CLOSED);
	env_must_close(env_must_reg(mem, PAGE, RW, 5000));
	ck_assert_int_eq(status_of(1), MRF_MR_UNKNOWN);
	ck_assert_int_eq(status_of(2), MRF_MR_CLOSED);
	ck_assert_int_eq(status_of(5000), MRF_MR_CLOSED);
	env_close();
}
END_TEST

START_TEST(key_pack_and_unpack_are_inverse)
{
	static const uint32_t rkeys[] = { 1, 0x100, 0x7fffffff, UINT32_MAX };
	static const uint64_t offsets[] = { 0, 1, 0x123, 0xfff, 0xffff };
	struct mrf_key_direct direct;
	size_t i, j;

	for (i = 0; i < 4; i++) {
		for (j = 0; j < 5; j++) {
			uint64_t key = mrf_key_pack(FI_MR_PROV_KEY, rkeys[i], offsets[j]);

			ck_assert(mrf_key_unpack(FI_MR_PROV_KEY, key, &direct));
			ck_assert_uint_eq(direct.rkey, rkeys[i]);
			ck_assert_uint_eq(direct.iova_base, offsets[j]);
		}
		ck_assert_uint_eq(mrf_key_pack(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR, rkeys[i], 0x123),
				  rkeys[i]);
	}
}
END_TEST

START_TEST(key_unpack_refuses_what_pack_never_made)
{
	static const uint64_t zero_based[] = { 0,
					       1,
					       UINT32_MAX,
					       1ull << 62,
					       2ull << 62 | 1,
					       3ull << 62 | 1,
					       1ull << 62 | 1ull << 48 | 1,
					       1ull << 62 | 1ull << 61 | 1,
					       FI_KEY_NOTAVAIL };
	static const uint64_t virt[] = { 0, 1ull << 32 | 1, 1ull << 62 | 1, 2ull << 62 | 1,
					 FI_KEY_NOTAVAIL };
	struct mrf_key_direct direct;
	size_t i;

	for (i = 0; i < sizeof(zero_based) / sizeof(zero_based[0]); i++)
		ck_assert(!mrf_key_unpack(FI_MR_PROV_KEY, zero_based[i], &direct));
	for (i = 0; i < sizeof(virt) / sizeof(virt[0]); i++)
		ck_assert(!mrf_key_unpack(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR, virt[i], &direct));
	/* Requested keys never carry anything. */
	ck_assert(!mrf_key_unpack(0, 1ull << 62 | 1, &direct));
	ck_assert(!mrf_key_unpack(FI_MR_VIRT_ADDR, 1, &direct));
}
END_TEST

static TCase *requested(void)
{
	TCase *tc = tcase_create("requested");

	tcase_add_test(tc, key_requested_is_the_key_over_the_whole_64_bits);
	tcase_add_test(tc, key_notavail_cannot_be_requested);
	tcase_add_test(tc, key_in_use_is_refused_and_the_holder_named);
	tcase_add_test(tc, key_is_taken_only_by_regions_with_a_remote_right);
	return tc;
}

static TCase *provider(void)
{
	TCase *tc = tcase_create("provider");

	tcase_add_test(tc, key_of_a_local_region_is_not_available_with_provider_keys);
	tcase_add_test(tc, key_of_provider_with_virtual_addresses_is_the_rkey);
	tcase_add_test(tc, key_of_provider_zero_based_carries_rkey_and_page_offset);
	tcase_add_test(tc, key_of_provider_for_several_segments_is_asked_for_and_never_reused);
	tcase_add_test(tc, key_form_of_every_mode_is_the_same_with_device_memory);
	tcase_add_test(tc, key_clash_of_provider_keys_is_evaded);
	tcase_add_test(tc, key_pack_and_unpack_are_inverse);
	tcase_add_test(tc, key_unpack_refuses_what_pack_never_made);
	return tc;
}

static TCase *closed(void)
{
	TCase *tc = tcase_create("closed");

	tcase_add_test(tc, key_leaves_the_table_before_the_kernel_region_goes);
	tcase_add_test(tc, key_closed_is_told_from_unknown_until_used_again);
	tcase_add_test(tc, key_memory_of_closed_keys_is_a_ring);
	return tc;
}

UNIT_MAIN("mr_key", requested, provider, closed)
