/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported functions of fi_mr(3) pass every argument on, unchanged and in its place.
 */
#include "export/mr_symbols.h"
#include "unit.h"

/* What arrived; the fakes return 1, 2, ... so that the return value counts, too. */
static struct {
	struct fid *fid, *other;
	const void *buf;
	uint64_t numbers[5];
	struct fid_mr **mr;
	void *context;
	int command;
	struct inline_fi_mr_raw_attr raw;
	struct inline_fi_mr_map_raw map;
	struct fi_mr_modify modify;
} seen;

static int take_close(struct fid *fid)
{
	seen.fid = fid;
	return 1;
}

static int take_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	seen.fid = fid;
	seen.other = bfid;
	seen.numbers[0] = flags;
	return 2;
}

static int take_control(struct fid *fid, int command, void *arg)
{
	seen.fid = fid;
	seen.command = command;
	seen.context = arg;
	if (command == FI_GET_RAW_MR)
		seen.raw = *(struct inline_fi_mr_raw_attr *)arg;
	else if (command == FI_MAP_RAW_MR)
		seen.map = *(struct inline_fi_mr_map_raw *)arg;
	else if (command == FI_UNMAP_KEY)
		seen.numbers[0] = *(uint64_t *)arg;
	else if (command == FI_REFRESH)
		seen.modify = *(struct fi_mr_modify *)arg;
	return 3;
}

static int take_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		    uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const uint64_t numbers[] = { len, access, offset, requested_key, flags };

	seen.fid = fid;
	seen.buf = buf;
	memcpy(seen.numbers, numbers, sizeof(numbers));
	seen.mr = mr;
	seen.context = context;
	return 4;
}

static int take_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		     uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		     void *context)
{
	take_reg(fid, iov, count, access, offset, requested_key, flags, mr, context);
	return 5;
}

static int take_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			struct fid_mr **mr)
{
	take_reg(fid, attr, 0, 0, 0, 0, flags, mr, NULL);
	return 6;
}

static struct fi_ops ops = {
	.size = sizeof(ops), .close = take_close, .bind = take_bind, .control = take_control
};
static struct fi_ops_mr mr_ops = {
	.size = sizeof(mr_ops), .reg = take_reg, .regv = take_regv, .regattr = take_regattr
};
static struct fid_domain domain = { .fid.ops = &ops, .mr = &mr_ops };
static struct fid_mr mr = { .fid.ops = &ops, .mem_desc = &seen, .key = 77 };
static struct fid_mr *out;
static struct unit_capture cap;

static void setup(void)
{
	memset(&seen, 0, sizeof(seen));
}

static void registered(const struct fid *fid, const void *buf, uint64_t first)
{
	uint64_t i;

	ck_assert_ptr_eq(seen.fid, fid);
	ck_assert_ptr_eq(seen.buf, buf);
	for (i = 0; i < 5; i++)
		ck_assert_uint_eq(seen.numbers[i], first + i);
	ck_assert_ptr_eq(seen.mr, &out);
	ck_assert_ptr_eq(seen.context, &cap);
}

START_TEST(mr_symbols_register_with_every_argument)
{
	struct fi_mr_attr attr = { .iov_count = 1 };
	struct iovec iov = { NULL, 0 };

	ck_assert_int_eq(fi_mr_reg(&domain, &seen, 11, 12, 13, 14, 15, &out, &cap), 4);
	registered(&domain.fid, &seen, 11);
	ck_assert_int_eq(fi_mr_regv(&domain, &iov, 21, 22, 23, 24, 25, &out, &cap), 5);
	registered(&domain.fid, &iov, 21);
	ck_assert_int_eq(fi_mr_regattr(&domain, &attr, 31, &out), 6);
	ck_assert_ptr_eq(seen.buf, &attr);
	ck_assert_uint_eq(seen.numbers[4], 31);
	ck_assert_ptr_eq(seen.mr, &out);
}
END_TEST

START_TEST(mr_symbols_read_the_region)
{
	ck_assert_ptr_eq(fi_mr_desc(&mr), &seen);
	ck_assert_uint_eq(fi_mr_key(&mr), 77);
}
END_TEST

START_TEST(mr_symbols_control_with_every_argument)
{
	uint64_t base, key;
	struct iovec iov = { 0 };
	uint8_t raw[4];
	size_t size;

	ck_assert_int_eq(fi_mr_raw_attr(&mr, &base, raw, &size, 5), 3);
	ck_assert_ptr_eq(seen.fid, &mr.fid);
	ck_assert(seen.command == FI_GET_RAW_MR && seen.raw.flags == 5 &&
		  seen.raw.base_addr == &base && seen.raw.raw_key == raw &&
		  seen.raw.key_size == &size);
	ck_assert_int_eq(fi_mr_map_raw(&domain, 6, raw, 4, &key, 7), 3);
	ck_assert_ptr_eq(seen.fid, &domain.fid);
	ck_assert(seen.command == FI_MAP_RAW_MR && seen.map.flags == 7 && seen.map.base_addr == 6 &&
		  seen.map.raw_key == raw && seen.map.key_size == 4 && seen.map.key == &key);
	ck_assert_int_eq(fi_mr_unmap_key(&domain, 8), 3);
	ck_assert(seen.command == FI_UNMAP_KEY && seen.numbers[0] == 8);
	ck_assert_int_eq(fi_mr_refresh(&mr, &iov, 9, 10), 3);
	ck_assert(seen.command == FI_REFRESH && seen.modify.flags == 10 &&
		  seen.modify.attr.mr_iov == &iov && seen.modify.attr.iov_count == 9);
	ck_assert_int_eq(fi_mr_enable(&mr), 3);
	ck_assert(seen.command == FI_ENABLE && seen.context == NULL);
}
END_TEST

START_TEST(mr_symbols_bind_and_close)
{
	ck_assert_int_eq(fi_mr_bind(&mr, &domain.fid, 4), 2);
	ck_assert(seen.fid == &mr.fid && seen.other == &domain.fid && seen.numbers[0] == 4);
	ck_assert_int_eq(fi_close(&domain.fid), 1);
	ck_assert_ptr_eq(seen.fid, &domain.fid);
}
END_TEST

START_TEST(mr_symbols_without_an_object_refuse_with_one_line_each)
{
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_reg(NULL, NULL, 0, 0, 0, 0, 0, &out, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_regv(NULL, NULL, 0, 0, 0, 0, 0, &out, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_regattr(NULL, NULL, 0, &out), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_raw_attr(NULL, NULL, NULL, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_map_raw(NULL, 0, NULL, 0, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_unmap_key(NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_bind(NULL, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_refresh(NULL, NULL, 0, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_enable(NULL), -FI_EINVAL);
	unit_captured(&cap);
	ck_assert_uint_eq(unit_lines(cap.text), 10);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E3901: fi_mr_regattr: domain is NULL"));
	ck_assert_ptr_null(fi_mr_desc(NULL));
	ck_assert_uint_eq(fi_mr_key(NULL), FI_KEY_NOTAVAIL);
}
END_TEST

static TCase *tcase_mr_symbols(void)
{
	TCase *tcase = tcase_create("mr_symbols");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, mr_symbols_register_with_every_argument);
	tcase_add_test(tcase, mr_symbols_read_the_region);
	tcase_add_test(tcase, mr_symbols_control_with_every_argument);
	tcase_add_test(tcase, mr_symbols_bind_and_close);
	tcase_add_test(tcase, mr_symbols_without_an_object_refuse_with_one_line_each);
	return tcase;
}

UNIT_MAIN("mr_symbols", tcase_mr_symbols)
