/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one endpoint's peers may reach, another's do not: the (fake) kernel says so, also to
 * those that know the rkeys.
 */
#include <arpa/inet.h>
#include "ep_fixture.h"

static struct pair p;
static struct fid_ep *second;
static fi_addr_t to_second;

#define MODE (FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_RAW)

/* The key that the initiator uses for the region. */
static uint64_t map_key(struct fid_mr *mr)
{
	uint8_t raw[1024];
	size_t size = sizeof(raw);
	uint64_t base, key = 0;

	ck_assert_int_eq(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	ck_assert_int_eq(fi_mr_map_raw(p.a.domain, base, raw, size, &key, 0), 0);
	return key;
}

static void setup(void)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	fixture_setup();
	pair_open(&p, &(struct node_opt){ .mr_mode = MODE });
	ck_assert_int_eq(node_try_ep(&p.b, &(struct node_opt){ 0 }, &second), 0);
	ck_assert_int_eq(fi_getname(&second->fid, &name, &len), 0);
	to_second = node_insert_port(&p.a, ntohs(name.sin_port));
}

static void teardown(void)
{
	must_close(&second->fid);
	must_close(&p.b.ep->fid);
	p.b.ep = NULL;
	pair_close(&p);
	fixture_teardown();
}

static void bind_and_enable(struct fid_mr *mr, struct fid_ep *ep)
{
	ck_assert_int_eq(fi_mr_bind(mr, &ep->fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
}

START_TEST(rkeys_of_one_endpoint_are_refused_on_connections_to_another)
{
	uint64_t key;

	bind_and_enable(p.mr, p.b.ep);
	key = map_key(p.mr);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, NULL, p.to, 0, key, p.src), 0);
	want_ok(&p.a, p.src);
	ck_assert(filled(p.dst, 100, 1));
	ck_assert_uint_eq(fake_connects(), 1);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, NULL, to_second, 200, key, p.src), 0);
	ck_assert_int_eq(want_err(&p.a, p.src, FI_EACCES, "not bound"), 4143);
	/* Nobody had been asked: it was the kernel, which broke the connection. */
	ck_assert_uint_eq(fake_connects(), 3);
	ck_assert(p.dst[200] == 0 && p.dst[299] == 0);
	ck_assert_int_eq(fi_mr_unmap_key(p.a.domain, key), 0);
}
END_TEST

START_TEST(a_region_of_two_endpoints_is_reached_through_either)
{
	uint64_t key;

	ck_assert_int_eq(fi_mr_bind(p.mr, &second->fid, 0), 0);
	bind_and_enable(p.mr, p.b.ep);
	key = map_key(p.mr);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, NULL, p.to, 0, key, p.src), 0);
	want_ok(&p.a, p.src);
	ck_assert_int_eq(fi_write(p.a.ep, p.src + 100, 50, NULL, to_second, 100, key, p.src), 0);
	want_ok(&p.a, p.src);
	ck_assert(filled(p.dst, 150, 1));
	/* Each had its own answer, so nothing was refused. */
	ck_assert_uint_eq(fake_connects(), 2);
	ck_assert_int_eq(fi_mr_unmap_key(p.a.domain, key), 0);
}
END_TEST

START_TEST(a_closed_endpoint_leaves_the_other_as_it_was)
{
	struct fid_ep *third;
	uint64_t key;

	ck_assert_int_eq(node_try_ep(&p.b, &(struct node_opt){ 0 }, &third), 0);
	ck_assert_int_eq(fi_mr_bind(p.mr, &third->fid, 0), 0);
	bind_and_enable(p.mr, p.b.ep);
	key = map_key(p.mr);
	must_close(&third->fid);
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 100, NULL, p.to, 0, key, p.src), 0);
	want_ok(&p.a, p.src);
	ck_assert(filled(p.dst, 100, 1));
	ck_assert_int_eq(fi_mr_unmap_key(p.a.domain, key), 0);
}
END_TEST

static TCase *tcase_apart(void)
{
	TCase *tc = tcase_create("apart");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, rkeys_of_one_endpoint_are_refused_on_connections_to_another);
	tcase_add_test(tc, a_region_of_two_endpoints_is_reached_through_either);
	tcase_add_test(tc, a_closed_endpoint_leaves_the_other_as_it_was);
	return tc;
}

UNIT_MAIN("apart", tcase_apart)
