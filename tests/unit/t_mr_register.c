/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registering and closing: every argument, every refusal, exactly the rights asked for.
 */
#include <string.h>
#include <sys/mman.h>
#include "mr/mr_ops.h"
#include "mr_fixture.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define API_1_4 FI_VERSION(1, 4)
#define API_1_12 FI_VERSION(1, 12)
#define API_1_13 FI_VERSION(1, 13)

static struct unit_capture cap;
static struct fid_mr *const untouched = (void *)&cap;

/* Registers with attr and flags; the refusal is one line with this code. */
static void refused(const struct fi_mr_attr *attr, uint64_t flags, int err, const char *code)
{
	unsigned calls = fake_verbs.calls[FAKE_REG_MR];
	struct fid_mr *mr = untouched;
	const char *text;
	int ret;

	unit_capture(&cap);
	ret = fi_mr_regattr(&env.domain, attr, flags, &mr);
	text = unit_captured(&cap);
	ck_assert_int_eq(ret, err);
	ck_assert_msg(strstr(text, code), "%s not in: %s", code, text);
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_ptr_eq(mr, untouched);
	/* What is wrong with the arguments is found before anything is pinned. */
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], calls);
	ck_assert_uint_eq(env.space.keys.count, 0);
}

static void refused_by_kernel(const void *buf, size_t len, uint64_t access, int err,
			      const char *code, const char *word)
{
	struct fid_mr *mr = untouched;
	const char *text;
	int ret;

	unit_capture(&cap);
	ret = env_reg(buf, len, access, 7, &mr);
	text = unit_captured(&cap);
	ck_assert_int_eq(ret, err);
	ck_assert_msg(strstr(text, code), "%s not in: %s", code, text);
	ck_assert_msg(strstr(text, word), "%s not in: %s", word, text);
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_ptr_eq(mr, untouched);
	ck_assert_uint_eq(env.space.keys.count, 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
}

/* --- more than the kernel takes at a time -------------------------------------------- */

static void want_pieces(const struct fid_mr *fid, const unsigned char *buf, size_t len)
{
	const struct mrf_mr *mr = mrf_mr_from_fid(&fid->fid);
	uint64_t at = (uintptr_t)buf;
	unsigned i;

	ck_assert_uint_gt(mr->nseg, 1);
	ck_assert_uint_eq(mr->len, len);
	for (i = 0; i < mr->nseg; i++) {
		ck_assert_uint_eq(mr->segs[i].addr, at);
		ck_assert_uint_eq(mr->segs[i].iova,
				  env.space.mode & FI_MR_VIRT_ADDR ? at : at % PAGE);
		at += mr->segs[i].len;
	}
	ck_assert_uint_eq(at, (uintptr_t)buf + len);
}

START_TEST(reg_of_more_than_the_kernel_takes_is_of_several_pieces)
{
	static const uint64_t mode[] = { 0, FI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY,
					 FI_MR_RAW, FI_MR_ENDPOINT };
	unsigned char *there = env_reserve(3 * GIB);
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED | mode[_i]);
	mr = env_must_reg(there + 32, GIB - 32, RW, 7);
	ck_assert_uint_eq(mrf_mr_from_fid(&mr->fid)->nseg, 1);
	env_must_close(mr);
	mr = env_must_reg(there + 32, GIB, RW, 7);
	want_pieces(mr, there + 32, GIB);
	ck_assert_uint_eq(fake_verbs.live_mrs, mode[_i] == FI_MR_ENDPOINT ? 0 : 2);
	env_must_close(mr);
	mr = env_must_reg(there, 3 * GIB, RW, 7);
	want_pieces(mr, there, 3 * GIB);
	env_must_close(mr);
	env_close();
	munmap(there, 3 * GIB);
}
END_TEST

START_TEST(reg_on_demand_of_more_than_the_kernel_takes_checks_it_by_pieces)
{
	unsigned char *there = env_reserve(GIB + PAGE);
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED | FI_MR_MMU_NOTIFY);
	mr = env_must_reg(there, GIB + PAGE, RW, 7);
	ck_assert_uint_eq(mrf_mr_from_fid(&mr->fid)->nseg, 1);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	env_must_close(mr);
	env_close();
	munmap(there, GIB + PAGE);
}
END_TEST

START_TEST(reg_of_more_pieces_than_a_region_has_is_refused_with_the_limit)
{
	unsigned char *there = env_reserve(16 * GIB + PAGE);
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(there, 16 * GIB, RW, 7);
	ck_assert_uint_eq(fake_verbs.live_mrs, 16);
	env_must_close(mr);
	refused_by_kernel(
		there, 16 * GIB + PAGE, RW, -FI_ENOMEM, "MRF-E3018",
		"at most 262144 pages at a time, and a region is of at most 16 such pieces");
	env_close();
	munmap(there, 16 * GIB + PAGE);
}
END_TEST

/* --- what comes back -------------------------------------------------------------- */

START_TEST(reg_fills_in_the_fid)
{
	struct fid_mr *mr = NULL;
	int context;

	env_open(FI_MR_ALLOCATED);
	ck_assert_int_eq(fi_mr_reg(&env.domain, mem, PAGE, RW, 0, 9, 0, &mr, &context), 0);
	ck_assert_uint_eq(mr->fid.fclass, FI_CLASS_MR);
	ck_assert_ptr_eq(mr->fid.context, &context);
	ck_assert_uint_eq(mr->fid.ops->size, sizeof(struct fi_ops));
	ck_assert_uint_eq(fi_mr_key(mr), 9);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(reg_regv_and_regattr_do_the_same)
{
	struct iovec iov;
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = RW, .requested_key = 9, .context = &iov
	};
	struct fid_mr *mr;
	int call, ret;

	for (call = 0; call < 3; call++) {
		env_open(FI_MR_ALLOCATED);
		iov = (struct iovec){ mem + 8, 100 };
		if (call == 0)
			ret = fi_mr_reg(&env.domain, mem + 8, 100, RW, 0, 9, 0, &mr, &iov);
		else if (call == 1)
			ret = fi_mr_regv(&env.domain, &iov, 1, RW, 0, 9, 0, &mr, &iov);
		else
			ret = fi_mr_regattr(&env.domain, &attr, 0, &mr);
		ck_assert_int_eq(ret, 0);
		ck_assert_uint_eq(fi_mr_key(mr), 9);
		ck_assert_ptr_eq(mr->fid.context, &iov);
		ck_assert_ptr_eq(fake_verbs.last.mr.addr, mem + 8);
		ck_assert_uint_eq(fake_verbs.last.mr.length, 100);
		ck_assert_uint_eq(fake_verbs.last.access, IBV_ACCESS_LOCAL_WRITE |
								  IBV_ACCESS_REMOTE_READ |
								  IBV_ACCESS_REMOTE_WRITE);
		env_must_close(mr);
		env_close();
	}
}
END_TEST

/* All 64 sets of rights: the kernel is asked for what they need and nothing more. */
START_TEST(reg_gives_exactly_the_rights_asked_for)
{
	static const uint64_t right[] = { FI_SEND,  FI_RECV,	    FI_READ,
					  FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	uint64_t modes[] = { 0, FI_MR_VIRT_ADDR, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR };
	unsigned set, bit, want;
	uint64_t access;
	struct fid_mr *mr;
	size_t m;

	for (m = 0; m < 3; m++) {
		env_open(FI_MR_ALLOCATED | modes[m]);
		for (set = 0; set < 64; set++) {
			access = 0;
			for (bit = 0; bit < 6; bit++)
				access |= set >> bit & 1 ? right[bit] : 0;
			want = 0;
			if (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE))
				want |= IBV_ACCESS_LOCAL_WRITE;
			if (access & FI_REMOTE_READ)
				want |= IBV_ACCESS_REMOTE_READ;
			if (access & FI_REMOTE_WRITE)
				want |= IBV_ACCESS_REMOTE_WRITE;
			if (!access)
				unit_capture(&cap);
			mr = env_must_reg(mem, PAGE, access, set);
			if (!access)
				unit_captured(&cap);
			ck_assert_uint_eq(fake_verbs.last.access, want);
			ck_assert_uint_eq(env.space.keys.count, access & RW ? 1 : 0);
			env_must_close(mr);
		}
		env_close();
	}
}
END_TEST

START_TEST(reg_uses_the_address_as_iova_only_with_virtual_addresses)
{
	static const unsigned offset[] = { 0, 1, 0x123, PAGE - 1 };
	size_t i;

	env_open(FI_MR_ALLOCATED | FI_MR_VIRT_ADDR);
	for (i = 0; i < 4; i++) {
		env_must_close(env_must_reg(mem + PAGE + offset[i], 5, RW, 1));
		ck_assert_uint_eq(fake_verbs.last.iova, (uintptr_t)mem + PAGE + offset[i]);
	}
	env_close();
	env_open(FI_MR_ALLOCATED);
	for (i = 0; i < 4; i++) {
		env_must_close(env_must_reg(mem + PAGE + offset[i], 5, RW, 1));
		ck_assert_uint_eq(fake_verbs.last.iova, offset[i]);
	}
	env_close();
}
END_TEST

START_TEST(reg_of_the_same_memory_makes_independent_regions)
{
	struct fid_mr *a, *b;

	env_open(FI_MR_ALLOCATED);
	a = env_must_reg(mem, PAGE, RW, 1);
	b = env_must_reg(mem, PAGE, FI_REMOTE_READ, 2);
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_ne(fi_mr_desc(a), fi_mr_desc(b));
	ck_assert_uint_eq(fake_verbs.live_mrs, 2);
	env_must_close(a);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ck_assert_uint_eq(fake_verbs.last.access, IBV_ACCESS_REMOTE_READ);
	env_must_close(b);
	env_close();
}
END_TEST

/* --- arguments -------------------------------------------------------------------- */

START_TEST(reg_refuses_null_arguments)
{
	struct iovec iov = { &cap, 8 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = RW };
	struct fid_mr *mr = untouched;

	env_open(FI_MR_ALLOCATED);
	refused(NULL, 0, -FI_EINVAL, "MRF-E3001");
	attr.mr_iov = NULL;
	refused(&attr, 0, -FI_EINVAL, "MRF-E3001");
	attr.mr_iov = &iov;
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, 0, NULL), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "mr must not be NULL"));
	unit_capture(&cap);
	ck_assert_int_eq(mrf_mr_ops.regattr(NULL, &attr, 0, &mr), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "domain must not be NULL"));
	unit_capture(&cap);
	ck_assert_int_eq(mrf_mr_ops.reg(NULL, mem, 8, RW, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	ck_assert_int_eq(mrf_mr_ops.regv(NULL, &iov, 1, RW, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	unit_captured(&cap);
	ck_assert_ptr_eq(mr, untouched);
	env_close();
}
END_TEST

START_TEST(reg_refuses_counts_outside_the_limit)
{
	struct iovec iov[MRF_MR_IOV_LIMIT + 1];
	struct fi_mr_attr attr = { .mr_iov = iov, .access = RW };
	struct fid_mr *mr;
	size_t i;

	env_open(FI_MR_ALLOCATED);
	for (i = 0; i < MRF_MR_IOV_LIMIT + 1; i++)
		iov[i] = (struct iovec){ mem + i * PAGE, 8 };
	refused(&attr, 0, -FI_EINVAL, "MRF-E3002");
	attr.iov_count = MRF_MR_IOV_LIMIT + 1;
	refused(&attr, 0, -FI_EINVAL, "MRF-E3002");
	attr.iov_count = SIZE_MAX;
	refused(&attr, 0, -FI_EINVAL, "MRF-E3002");
	for (i = 1; i <= MRF_MR_IOV_LIMIT; i++) {
		mr = env_must_regv(iov, i, RW, 0);
		ck_assert_uint_eq(fake_verbs.live_mrs, i);
		env_must_close(mr);
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	}
	env_close();
}
END_TEST

START_TEST(reg_refuses_an_offset)
{
	static const uint64_t offset[] = { 1, 0x1000, UINT64_MAX };
	struct iovec iov;
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = RW };
	size_t i;

	env_open(FI_MR_ALLOCATED);
	iov = (struct iovec){ mem, 8 };
	for (i = 0; i < 3; i++) {
		attr.offset = offset[i];
		refused(&attr, 0, -FI_EINVAL, "MRF-E3007");
	}
	env_close();
}
END_TEST

START_TEST(reg_refuses_every_flag)
{
	struct iovec iov;
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = RW };
	unsigned bit;

	env_open(FI_MR_ALLOCATED);
	iov = (struct iovec){ mem, 8 };
	for (bit = 0; bit < 64; bit++) {
		uint64_t flag = 1ull << bit;
		const char *code = flag == FI_HMEM_DEVICE_ONLY ? "MRF-E3012" : "MRF-E3009";

		if (!(flag & (FI_RMA_EVENT | FI_RMA_PMEM)))
			refused(&attr, flag, -FI_EBADFLAGS, code);
	}
	env_close();
}
END_TEST

/* Each bit of access alone: a right, a capability that is let pass, or refused. */
START_TEST(reg_refuses_unknown_access_bits)
{
	const uint64_t caps = FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST |
			      FI_COLLECTIVE | FI_MULTI_RECV | FI_TRIGGER | FI_FENCE |
			      FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SOURCE | FI_SOURCE_ERR |
			      FI_DIRECTED_RECV | FI_NAMED_RX_CTX;
	struct iovec iov;
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1 };
	unsigned bit, unknown = 0;

	env_open(FI_MR_ALLOCATED);
	iov = (struct iovec){ mem, 8 };
	for (bit = 0; bit < 64; bit++) {
		attr.access = 1ull << bit | FI_SEND;
		if ((1ull << bit) & (caps | ALL_ACCESS))
			continue;
		refused(&attr, 0, -FI_EINVAL, "MRF-E3005");
		unknown++;
	}
	ck_assert_uint_eq(unknown, 64 - 6 - 15);
	env_close();
}
END_TEST

START_TEST(reg_tolerates_capabilities_in_access_with_one_warning)
{
	const char *text;
	struct fid_mr *mr;
	struct mrf_desc out;

	env_open(FI_MR_ALLOCATED);
	unit_capture(&cap);
	mr = env_must_reg(mem, PAGE, FI_RMA | FI_MSG | FI_READ, 1);
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &out));
	ck_assert_uint_eq(out.access, FI_READ);
	ck_assert_uint_eq(fake_verbs.last.access, IBV_ACCESS_LOCAL_WRITE);
	env_must_close(mr);
	env_must_close(env_must_reg(mem, PAGE, FI_RMA | FI_WRITE, 1));
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-W3008"));
	ck_assert_uint_eq(unit_lines(text), 1);
	env_close();
}
END_TEST

START_TEST(reg_accepts_no_access_at_all_with_one_warning)
{
	const char *text;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	unit_capture(&cap);
	mr = env_must_reg(mem, PAGE, 0, 1);
	ck_assert_uint_eq(fake_verbs.last.access, 0);
	ck_assert_uint_eq(env.space.keys.count, 0);
	env_must_close(mr);
	env_must_close(env_must_reg(mem, PAGE, 0, 1));
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-W3006"));
	ck_assert_uint_eq(unit_lines(text), 1);
	env_close();
}
END_TEST

START_TEST(reg_refuses_ranges_that_wrap)
{
	struct iovec iov[2];
	struct fi_mr_attr attr = { .mr_iov = iov, .iov_count = 1, .access = RW };

	env_open(FI_MR_ALLOCATED);
	iov[0] = (struct iovec){ mem, SIZE_MAX };
	refused(&attr, 0, -FI_EINVAL, "MRF-E3003");
	iov[0] = (struct iovec){ (void *)UINTPTR_MAX, 1 };
	refused(&attr, 0, -FI_EINVAL, "MRF-E3003");
	iov[0] = (struct iovec){ mem, SIZE_MAX - (uintptr_t)mem + 1 };
	refused(&attr, 0, -FI_EINVAL, "MRF-E3003");
	/* Each fits, their sum does not. */
	iov[0] = (struct iovec){ (void *)1, SIZE_MAX - 1 };
	iov[1] = (struct iovec){ (void *)1, SIZE_MAX - 1 };
	attr.iov_count = 2;
	refused(&attr, 0, -FI_EINVAL, "MRF-E3003");
	env_close();
}
END_TEST

START_TEST(reg_refuses_zero_length_from_api_1_13)
{
	struct iovec iov[2];
	struct fi_mr_attr attr = { .mr_iov = iov, .iov_count = 1, .access = RW };

	env_open_api(FI_MR_ALLOCATED, API_1_13);
	iov[0] = (struct iovec){ mem, 0 };
	iov[1] = (struct iovec){ NULL, 0 };
	refused(&attr, 0, -FI_EINVAL, "MRF-E3004");
	attr.iov_count = 2;
	refused(&attr, 0, -FI_EINVAL, "MRF-E3004");
	env_close();
}
END_TEST

START_TEST(reg_of_zero_length_before_api_1_13_reaches_nothing_and_keeps_its_key)
{
	struct mrf_mr_view view;
	struct fid_mr *mr, *other = untouched;
	struct mrf_desc out;
	uint64_t offset;
	unsigned seg;

	env_open_api(FI_MR_ALLOCATED, API_1_12);
	mr = env_must_reg(mem + 5, 0, RW, 9);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 0);
	ck_assert_uint_eq(fi_mr_key(mr), 9);
	env_look(9, &view);
	ck_assert_int_eq(view.status, MRF_MR_OK);
	ck_assert_uint_eq(view.len, 0);
	ck_assert_uint_eq(view.base, (uintptr_t)mem + 5);
	ck_assert_uint_eq(view.nseg, 1);
	ck_assert_uint_eq(view.seg[0].rkey, 0);
	ck_assert_uint_eq(mrf_mr_locate(view.seg, view.nseg, false, 0, 1, &seg, &offset), 0);
	ck_assert_uint_eq(mrf_mr_locate(view.seg, view.nseg, false, 0, 0, &seg, &offset), 1);
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &out));
	ck_assert_uint_eq(out.seg.len, 0);
	unit_capture(&cap);
	ck_assert_int_eq(env_reg(mem, 8, RW, 9, &other), -FI_ENOKEY);
	unit_captured(&cap);
	env_must_close(mr);
	/* NULL is as good as any place for no bytes. */
	env_must_close(env_must_reg(NULL, 0, RW, 9));
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	env_close();
}
END_TEST

START_TEST(reg_of_zero_length_gets_a_provider_key)
{
	struct fid_mr *mr;

	env_open_api(FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR, API_1_12);
	mr = env_must_reg(mem, 0, RW, 9);
	ck_assert_uint_eq(fi_mr_key(mr) >> 62, 2);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(regv_leaves_out_empty_segments)
{
	struct iovec iov[4];
	struct mrf_mr_view view;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	iov[0] = (struct iovec){ NULL, 0 };
	iov[1] = (struct iovec){ mem + PAGE, 10 };
	iov[2] = (struct iovec){ mem, 0 };
	iov[3] = (struct iovec){ mem + 3 * PAGE, 20 };
	mr = env_must_regv(iov, 4, RW, 9);
	ck_assert_uint_eq(fake_verbs.live_mrs, 2);
	env_look(9, &view);
	ck_assert_uint_eq(view.nseg, 2);
	ck_assert_uint_eq(view.len, 30);
	ck_assert_uint_eq(view.base, (uintptr_t)mem + PAGE);
	ck_assert_uint_eq(view.seg[1].addr, 10);
	ck_assert_ptr_eq(fake_verbs_find(view.seg[1].rkey)->mr.addr, mem + 3 * PAGE);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(regv_with_one_segment_of_bytes_gets_a_direct_provider_key)
{
	struct iovec iov[2];
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR);
	iov[0] = (struct iovec){ NULL, 0 };
	iov[1] = (struct iovec){ mem, 10 };
	mr = env_must_regv(iov, 2, RW, 0);
	ck_assert_uint_eq(fi_mr_key(mr), fake_verbs.last.mr.rkey);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(regattr_takes_an_authorization_key_from_api_1_5)
{
	struct iovec iov;
	uint8_t key[16] = { 1 };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = RW,
				   .auth_key_size = sizeof(key),
				   .auth_key = key };
	struct fid_mr *mr;

	env_open_api(FI_MR_ALLOCATED, FI_VERSION(1, 5));
	iov = (struct iovec){ mem, 8 };
	ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, 0, &mr), 0);
	ck_assert_uint_eq(fake_verbs.live_pds, 2);
	env_must_close(mr);
	env_close();
	env_open_api(FI_MR_ALLOCATED, API_1_4);
	iov = (struct iovec){ mem, 8 };
	ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, 0, &mr), 0);
	ck_assert_uint_eq(fake_verbs.live_pds, 1);
	env_must_close(mr);
	env_close();
}
END_TEST

/* fi_mr(3) "iface": ignored unless the application has requested FI_HMEM. */
START_TEST(regattr_ignores_the_memory_interface)
{
	struct iovec iov;
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = RW,
				   .iface = FI_HMEM_CUDA,
				   .device.cuda = 3 };
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	iov = (struct iovec){ mem, 8 };
	ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, 0, &mr), 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	env_must_close(mr);
	env_close();
}
END_TEST

/* --- what the kernel refuses ------------------------------------------------------ */

START_TEST(reg_of_null_with_bytes_is_a_fault)
{
	env_open(FI_MR_ALLOCATED);
	refused_by_kernel(NULL, 4096, RW, -FI_EFAULT, "MRF-E3014", "NULL");
	env_close();
}
END_TEST

START_TEST(reg_of_unmapped_memory_says_which_bytes)
{
	env_open(FI_MR_ALLOCATED);
	munmap(mem + 2 * PAGE, PAGE);
	fake_verbs_fail(FAKE_REG_MR, 1, EFAULT);
	refused_by_kernel(mem + PAGE, 3 * PAGE, RW, -FI_EFAULT, "MRF-E3015", "not mapped");
	fake_verbs_fail(FAKE_REG_MR, 1, EFAULT);
	refused_by_kernel(mem + PAGE, 3 * PAGE, FI_REMOTE_READ, -FI_EFAULT, "MRF-E3016",
			  "not mapped");
	env_close();
}
END_TEST

START_TEST(reg_of_read_only_memory_says_so)
{
	void *shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(shared, MAP_FAILED);
	env_open(FI_MR_ALLOCATED);
	mprotect(mem + PAGE, PAGE, PROT_READ);
	fake_verbs_fail(FAKE_REG_MR, 1, EFAULT);
	refused_by_kernel(mem + PAGE, PAGE, FI_REMOTE_WRITE, -FI_EFAULT, "MRF-E3015", "read-only");
	fake_verbs_fail(FAKE_REG_MR, 1, EFAULT);
	refused_by_kernel(shared, PAGE, FI_RECV, -FI_EFAULT, "MRF-E3015", "read-only");
	/* Reading is no more than the mapping allows, and yet some kernels refuse. */
	fake_verbs_fail(FAKE_REG_MR, 1, EFAULT);
	refused_by_kernel(shared, PAGE, FI_REMOTE_READ, -FI_EFAULT, "MRF-E3016",
			  "even for reading");
	env_close();
	munmap(shared, PAGE);
}
END_TEST

START_TEST(reg_beyond_a_limit_names_the_limits)
{
	env_open(FI_MR_ALLOCATED);
	fake_verbs_fail(FAKE_REG_MR, 1, ENOMEM);
	refused_by_kernel(mem, PAGE, RW, -FI_ENOMEM, "MRF-E3018", "524287 regions");
	fake_verbs_fail(FAKE_REG_MR, 1, EPERM);
	refused_by_kernel(mem, PAGE, RW, -FI_EPERM, "MRF-E3018", "524287 regions");
	env.space.max_mr = 0;
	fake_verbs_fail(FAKE_REG_MR, 1, EPERM);
	refused_by_kernel(mem, PAGE, RW, -FI_EPERM, "MRF-E3018", "cannot be pinned");
	env_close();
}
END_TEST

START_TEST(reg_passes_other_kernel_errors_on)
{
	env_open(FI_MR_ALLOCATED);
	fake_verbs_fail(FAKE_REG_MR, 1, EINVAL);
	refused_by_kernel(mem, PAGE, RW, -FI_EINVAL, "MRF-E3019", "refuses");
	fake_verbs_fail(FAKE_REG_MR, 1, ENODEV);
	refused_by_kernel(mem, PAGE, RW, -FI_ENODEV, "MRF-E3020", "failed");
	env_close();
}
END_TEST

/* Each segment in turn cannot be pinned: those before it are released. */
START_TEST(regv_undoes_the_segments_before_the_one_that_fails)
{
	struct iovec iov[MRF_MR_IOV_LIMIT];
	struct fid_mr *mr = untouched;
	unsigned nth, i;

	env_open(FI_MR_ALLOCATED);
	for (i = 0; i < MRF_MR_IOV_LIMIT; i++)
		iov[i] = (struct iovec){ mem + i * PAGE, 8 };
	for (nth = 1; nth <= MRF_MR_IOV_LIMIT; nth++) {
		fake_verbs_fail(FAKE_REG_MR, nth, EFAULT);
		unit_capture(&cap);
		ck_assert_int_eq(
			fi_mr_regv(&env.domain, iov, MRF_MR_IOV_LIMIT, RW, 0, 9, 0, &mr, NULL),
			-FI_EFAULT);
		unit_captured(&cap);
		ck_assert_ptr_eq(mr, untouched);
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
		ck_assert_uint_eq(env.space.keys.count, 0);
	}
	env_must_close(env_must_regv(iov, MRF_MR_IOV_LIMIT, RW, 9));
	env_close();
}
END_TEST

START_TEST(reg_leaves_nothing_behind_when_any_allocation_fails)
{
	struct fid_mr *mr = untouched;
	unsigned nth, needed;

	env_open(FI_MR_ALLOCATED);
	fail_alloc(0);
	env_must_close(env_must_reg(mem, PAGE, RW, 9));
	needed = allocs();
	env_close();
	/* The first regions and the first slots of the key table. */
	ck_assert_uint_ge(needed, 2);
	for (nth = 1; nth <= needed; nth++) {
		env_open(FI_MR_ALLOCATED);
		fail_alloc(nth);
		unit_capture(&cap);
		ck_assert_int_eq(env_reg(mem, PAGE, RW, 9, &mr), -FI_ENOMEM);
		ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3022"));
		ck_assert_ptr_eq(mr, untouched);
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
		ck_assert_uint_eq(env.space.keys.count, 0);
		fail_alloc(0);
		env_must_close(env_must_reg(mem, PAGE, RW, 9));
		env_close();
	}
}
END_TEST

START_TEST(reg_allocates_nothing_once_the_tables_are_there)
{
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	env_must_close(env_must_reg(mem, PAGE, RW, 9));
	fail_alloc(0);
	mr = env_must_reg(mem, PAGE, RW, 9);
	env_must_close(mr);
	ck_assert_uint_eq(allocs(), 0);
	env_close();
}
END_TEST

START_TEST(regv_leaves_nothing_behind_when_any_allocation_fails)
{
	struct fid_mr *mr = untouched;
	struct iovec iov[2];
	int ret;

	env_open(FI_MR_ALLOCATED);
	env_must_close(env_must_reg(mem, PAGE, RW, 9));
	iov[0] = (struct iovec){ mem, 8 };
	iov[1] = (struct iovec){ mem + PAGE, 8 };
	fail_alloc(1);
	unit_capture(&cap);
	library_enter();
	ret = fi_mr_regv(&env.domain, iov, 2, RW, 0, 9, 0, &mr, NULL);
	library_leave();
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3022"));
	ck_assert_int_eq(ret, -FI_ENOMEM);
	ck_assert_ptr_eq(mr, untouched);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	fail_alloc(0);
	env_must_close(env_must_regv(iov, 2, RW, 9));
	env_close();
}
END_TEST

/* --- closing and the other operations --------------------------------------------- */

START_TEST(close_deregisters_every_segment_before_it_returns)
{
	struct iovec iov[3];
	struct fid_mr *mr;
	uint32_t rkey[3];
	struct mrf_mr_view view;
	unsigned i;

	env_open(FI_MR_ALLOCATED);
	for (i = 0; i < 3; i++)
		iov[i] = (struct iovec){ mem + i * PAGE, 8 };
	mr = env_must_regv(iov, 3, RW, 9);
	env_look(9, &view);
	for (i = 0; i < 3; i++) {
		rkey[i] = view.seg[i].rkey;
		ck_assert_ptr_nonnull(fake_verbs_find(rkey[i]));
	}
	env_must_close(mr);
	for (i = 0; i < 3; i++)
		ck_assert_ptr_null(fake_verbs_find(rkey[i]));
	env_close();
}
END_TEST

START_TEST(close_that_the_kernel_refuses_can_be_repeated)
{
	struct iovec iov[2];
	struct mrf_mr_view view;
	struct fid_mr *mr;

	env_open(FI_MR_ALLOCATED);
	iov[0] = (struct iovec){ mem, 8 };
	iov[1] = (struct iovec){ mem + PAGE, 8 };
	mr = env_must_regv(iov, 2, RW, 9);
	fake_verbs_fail(FAKE_DEREG_MR, 1, EBUSY);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&mr->fid), -FI_EBUSY);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3030"));
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	unit_capture(&cap);
	ck_assert_int_eq(mrf_mr_space_busy(&env.space), -FI_EBUSY);
	unit_captured(&cap);
	/* To peers and local operations it is closed already. */
	env_look(9, &view);
	ck_assert_int_eq(view.status, MRF_MR_CLOSED);
	ck_assert_ptr_null(fi_mr_desc(mr));
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(close_twice_is_found_out)
{
	struct fid_mr *mr;
	const char *text;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(mem, PAGE, RW, 9);
	env_must_close(mr);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&mr->fid), -FI_EINVAL);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3031"));
	ck_assert_uint_eq(unit_lines(text), 1);
	env_close();
}
END_TEST

START_TEST(close_of_the_domain_finds_the_region_by_name)
{
	struct fid_mr *mr;
	char want[64];
	const char *text;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(mem, 100, RW, 0x1f);
	snprintf(want, sizeof(want), "%#llx, 100 bytes, key 0x1f",
		 (unsigned long long)(uintptr_t)mem);
	unit_capture(&cap);
	ck_assert_int_eq(mrf_mr_space_busy(&env.space), -FI_EBUSY);
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, want), "%s not in: %s", want, text);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(bind_of_a_region_is_not_offered)
{
	struct fid cntr = { .fclass = FI_CLASS_CNTR }, ep = { .fclass = FI_CLASS_EP },
		   cq = { .fclass = FI_CLASS_CQ };
	struct fid_mr *mr;
	const char *text;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(mem, PAGE, RW, 9);
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr, FI_REMOTE_WRITE), -FI_ENOSYS);
	ck_assert_int_eq(fi_mr_bind(mr, &ep, 0), -FI_ENOSYS);
	ck_assert_int_eq(fi_mr_bind(mr, &cq, 0), -FI_ENOSYS);
	ck_assert_int_eq(fi_mr_bind(mr, NULL, 0), -FI_EINVAL);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3040"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3041"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3042"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3043"));
	ck_assert_uint_eq(unit_lines(text), 4);
	env_must_close(mr);
	env_close();
}
END_TEST

START_TEST(refresh_of_a_region_that_is_pinned_for_good_is_not_offered)
{
	struct fid_mr *mr;
	const char *text;

	env_open(FI_MR_ALLOCATED);
	mr = env_must_reg(mem, PAGE, RW, 9);
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), -FI_ENOSYS);
	ck_assert_int_eq(fi_control(&mr->fid, FI_GETWAIT, NULL), -FI_ENOSYS);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3045"));
	ck_assert_uint_eq(unit_lines(text), 2);
	env_must_close(mr);
	env_close();
}
END_TEST

static TCase *results(void)
{
	TCase *tc = tcase_create("results");

	tcase_add_loop_test(tc, reg_of_more_than_the_kernel_takes_is_of_several_pieces, 0, 5);
	tcase_add_test(tc, reg_on_demand_of_more_than_the_kernel_takes_checks_it_by_pieces);
	tcase_add_test(tc, reg_of_more_pieces_than_a_region_has_is_refused_with_the_limit);
	tcase_add_test(tc, reg_fills_in_the_fid);
	tcase_add_test(tc, reg_regv_and_regattr_do_the_same);
	tcase_add_test(tc, reg_gives_exactly_the_rights_asked_for);
	tcase_add_test(tc, reg_uses_the_address_as_iova_only_with_virtual_addresses);
	tcase_add_test(tc, reg_of_the_same_memory_makes_independent_regions);
	tcase_add_test(tc, reg_allocates_nothing_once_the_tables_are_there);
	return tc;
}

static TCase *arguments(void)
{
	TCase *tc = tcase_create("arguments");

	tcase_add_test(tc, reg_refuses_null_arguments);
	tcase_add_test(tc, reg_refuses_counts_outside_the_limit);
	tcase_add_test(tc, reg_refuses_an_offset);
	tcase_add_test(tc, reg_refuses_every_flag);
	tcase_add_test(tc, reg_refuses_unknown_access_bits);
	tcase_add_test(tc, reg_tolerates_capabilities_in_access_with_one_warning);
	tcase_add_test(tc, reg_accepts_no_access_at_all_with_one_warning);
	tcase_add_test(tc, reg_refuses_ranges_that_wrap);
	tcase_add_test(tc, reg_refuses_zero_length_from_api_1_13);
	tcase_add_test(tc, reg_of_zero_length_before_api_1_13_reaches_nothing_and_keeps_its_key);
	tcase_add_test(tc, reg_of_zero_length_gets_a_provider_key);
	tcase_add_test(tc, regv_leaves_out_empty_segments);
	tcase_add_test(tc, regv_with_one_segment_of_bytes_gets_a_direct_provider_key);
	tcase_add_test(tc, regattr_takes_an_authorization_key_from_api_1_5);
	tcase_add_test(tc, regattr_ignores_the_memory_interface);
	return tc;
}

static TCase *kernel(void)
{
	TCase *tc = tcase_create("kernel");

	tcase_add_test(tc, reg_of_null_with_bytes_is_a_fault);
	tcase_add_test(tc, reg_of_unmapped_memory_says_which_bytes);
	tcase_add_test(tc, reg_of_read_only_memory_says_so);
	tcase_add_test(tc, reg_beyond_a_limit_names_the_limits);
	tcase_add_test(tc, reg_passes_other_kernel_errors_on);
	tcase_add_test(tc, regv_undoes_the_segments_before_the_one_that_fails);
	tcase_add_test(tc, reg_leaves_nothing_behind_when_any_allocation_fails);
	tcase_add_test(tc, regv_leaves_nothing_behind_when_any_allocation_fails);
	return tc;
}

static TCase *closing(void)
{
	TCase *tc = tcase_create("closing");

	tcase_add_test(tc, close_deregisters_every_segment_before_it_returns);
	tcase_add_test(tc, close_that_the_kernel_refuses_can_be_repeated);
	tcase_add_test(tc, close_twice_is_found_out);
	tcase_add_test(tc, close_of_the_domain_finds_the_region_by_name);
	tcase_add_test(tc, bind_of_a_region_is_not_offered);
	tcase_add_test(tc, refresh_of_a_region_that_is_pinned_for_good_is_not_offered);
	return tc;
}

UNIT_MAIN("mr_register", results, arguments, kernel, closing)
