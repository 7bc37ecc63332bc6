/* SPDX-License-Identifier: BSD-2-Clause */
/* Fabrics: opening, what they offer and what not, closing. */
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "domain/domain.h"
#include "unit.h"

static struct unit_capture cap;

static struct fid_fabric *must_open(char *name)
{
	struct fi_fabric_attr attr = { .name = name,
				       .prov_name = (char *)"mrfab",
				       .api_version = FI_VERSION(1, 17) };
	struct fid_fabric *fabric = NULL;

	ck_assert_int_eq(fi_fabric(&attr, &fabric, &cap), 0);
	ck_assert_ptr_nonnull(fabric);
	return fabric;
}

static void must_close(struct fid_fabric *fabric)
{
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
}

static void refused(struct fi_fabric_attr *attr, int err, const char *code)
{
	struct fid_fabric *fabric = (void *)&cap;
	const char *text;
	int ret;

	unit_capture(&cap);
	ret = fi_fabric(attr, &fabric, NULL);
	text = unit_captured(&cap);
	ck_assert_int_eq(ret, err);
	ck_assert_msg(strstr(text, code), "%s not in: %s", code, text);
	ck_assert_uint_eq(unit_lines(text), 1);
	ck_assert_ptr_eq(fabric, (void *)&cap);
}

START_TEST(fabric_open_fills_in_the_fid)
{
	struct fid_fabric *fabric = must_open((char *)"10.99.1.0/24");

	ck_assert_uint_eq(fabric->fid.fclass, FI_CLASS_FABRIC);
	ck_assert_ptr_eq(fabric->fid.context, &cap);
	ck_assert_uint_eq(fabric->fid.ops->size, sizeof(struct fi_ops));
	ck_assert_uint_eq(fabric->ops->size, sizeof(struct fi_ops_fabric));
	ck_assert_uint_eq(fabric->api_version, FI_VERSION(1, 17));
	must_close(fabric);
}
END_TEST

START_TEST(fabric_open_keeps_its_own_copy_of_the_name)
{
	char name[] = "10.99.1.0/24";
	struct fid_fabric *fabric = must_open(name);
	struct mrf_fabric *priv = (struct mrf_fabric *)fabric;

	name[0] = 'x';
	ck_assert_str_eq(priv->name, "10.99.1.0/24");
	must_close(fabric);
}
END_TEST

START_TEST(fabric_open_does_without_a_name)
{
	must_close(must_open(NULL));
}
END_TEST

START_TEST(fabric_open_refuses_bad_attributes)
{
	struct fi_fabric_attr attr = { .name = (char *)"10.99.1.0/24",
				       .api_version = FI_VERSION(1, 17) };

	refused(NULL, -FI_EINVAL, "MRF-E2107");
	refused(&attr, -FI_EINVAL, "MRF-E2108");
	attr.prov_name = (char *)"verbs";
	refused(&attr, -FI_ENODEV, "MRF-E2108");
	attr.prov_name = (char *)"mrfab";
	attr.api_version = FI_VERSION(2, 4);
	refused(&attr, -FI_ENOSYS, "MRF-E2109");
	attr.api_version = FI_VERSION(1, 17);
	unit_capture(&cap);
	ck_assert_int_eq(fi_fabric(&attr, NULL, NULL), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E2107"));
}
END_TEST

START_TEST(fabric_close_is_refused_while_an_event_queue_is_open)
{
	struct fid_fabric *fabric = must_open(NULL);
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_eq *eq;

	ck_assert_int_eq(fi_eq_open(fabric, &attr, &eq, NULL), 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&fabric->fid), -FI_EBUSY);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 1);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	must_close(fabric);
}
END_TEST

START_TEST(fabric_names_what_it_does_not_offer)
{
	struct fid_fabric *fabric = must_open(NULL);
	struct fi_wait_attr wait = { .wait_obj = FI_WAIT_FD };
	struct fid_wait *set;
	struct fid_pep *pep;
	const char *text;
	void *ops;

	unit_capture(&cap);
	ck_assert_int_eq(fi_passive_ep(fabric, NULL, &pep, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_wait_open(fabric, &wait, &set), -FI_ENOSYS);
	ck_assert_int_eq(fi_open_ops(&fabric->fid, "x", 0, &ops, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_control(&fabric->fid, FI_GETWAIT, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fabric->fid.ops->bind(&fabric->fid, NULL, 0), -FI_ENOSYS);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2103"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2104"));
	ck_assert_uint_eq(unit_lines(text), 5);
	must_close(fabric);
}
END_TEST

START_TEST(domain2_refuses_flags)
{
	struct fid_fabric *fabric = must_open(NULL);
	struct fid_domain *domain = (void *)&cap;
	struct fi_info info = { 0 };
	const char *text;

	unit_capture(&cap);
	ck_assert_int_eq(fi_domain2(fabric, &info, &domain, FI_PEER, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_domain2(fabric, &info, &domain, 1, NULL), -FI_EBADFLAGS);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2101"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2102"));
	ck_assert_ptr_eq(domain, (void *)&cap);
	must_close(fabric);
}
END_TEST

START_TEST(trywait_takes_event_queues_and_refuses_the_rest)
{
	struct fid_fabric *fabric = must_open(NULL);
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fid *fids[2];
	struct fid_eq *eq;
	const char *text;

	ck_assert_int_eq(fi_eq_open(fabric, &attr, &eq, NULL), 0);
	fids[0] = &eq->fid;
	fids[1] = &fabric->fid;
	ck_assert_int_eq(fi_trywait(fabric, fids, 1), 0);
	ck_assert_int_eq(fi_trywait(fabric, NULL, 0), 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_trywait(fabric, fids, 2), -FI_EINVAL);
	fids[0] = NULL;
	ck_assert_int_eq(fi_trywait(fabric, fids, 1), -FI_EINVAL);
	ck_assert_int_eq(fi_trywait(fabric, fids, -1), -FI_EINVAL);
	ck_assert_int_eq(fi_trywait(fabric, NULL, 1), -FI_EINVAL);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2105"));
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2106"));
	ck_assert_uint_eq(unit_lines(text), 4);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	must_close(fabric);
}
END_TEST

static TCase *fabric(void)
{
	TCase *tc = tcase_create("fabric");

	tcase_add_test(tc, fabric_open_fills_in_the_fid);
	tcase_add_test(tc, fabric_open_keeps_its_own_copy_of_the_name);
	tcase_add_test(tc, fabric_open_does_without_a_name);
	tcase_add_test(tc, fabric_open_refuses_bad_attributes);
	tcase_add_test(tc, fabric_close_is_refused_while_an_event_queue_is_open);
	tcase_add_test(tc, fabric_names_what_it_does_not_offer);
	tcase_add_test(tc, domain2_refuses_flags);
	tcase_add_test(tc, trywait_takes_event_queues_and_refuses_the_rest);
	return tc;
}

UNIT_MAIN("fabric", fabric)
