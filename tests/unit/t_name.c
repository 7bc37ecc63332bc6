/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getname and fi_setname of fi_cm(3), on the fake fabric. */
#include <arpa/inet.h>
#include <rdma/fi_cm.h>
#include <string.h>
#include "ep_fixture.h"

#define LEN 8u

static struct node a, b;
static uint8_t *buf; /* the first half is sent, the second received */

static void setup(void)
{
	fixture_setup();
	node_open(&a, NULL);
	node_open(&b, NULL);
	buf = pages(2 * LEN);
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	fixture_teardown();
}

static struct sockaddr_in name_of(struct fid_ep *ep)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	ck_assert_int_eq(fi_getname(&ep->fid, &name, &len), 0);
	ck_assert_uint_eq(len, sizeof(name));
	return name;
}

/* Not enabled, with what it takes to be. */
static struct fid_ep *endpoint(struct node *n)
{
	struct fid_ep *ep;

	ck_assert_int_eq(fi_endpoint(n->domain, n->info, &ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &n->av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &n->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	return ep;
}

static void pass(fi_addr_t to, unsigned seed)
{
	fill(buf, LEN, seed);
	ck_assert_int_eq(fi_recv(b.ep, buf + LEN, LEN, NULL, FI_ADDR_UNSPEC, buf + LEN), 0);
	ck_assert_int_eq(fi_send(a.ep, buf, LEN, NULL, to, buf), 0);
	want_ok(&a, buf);
	want_ok(&b, buf + LEN);
	ck_assert_int_eq(memcmp(buf, buf + LEN, LEN), 0);
}

/* A message over the line to the endpoint before would be in doubt. */
static bool line_is_gone(fi_addr_t to)
{
	struct mrf_ep *ep = node_ep(&a);
	bool gone;

	mrf_lock_take(&ep->lock);
	gone = ep->peers[MRF_CONN_LINE].of[to]->state == MRF_PEER_IDLE;
	mrf_lock_release(&ep->lock);
	return gone;
}

/* As fi_rdm_multi_client does it: to the peer it is one address all the time. */
START_TEST(an_endpoint_takes_the_address_of_one_before)
{
	fi_addr_t to = node_insert(&a, &b);
	struct sockaddr_in name, first = name_of(b.ep);
	unsigned i;

	for (i = 0; i < 3; i++) {
		pass(to, i);
		must_close(&b.ep->fid);
		want_soon(line_is_gone(to));
		b.ep = endpoint(&b);
		ck_assert_int_eq(fi_setname(&b.ep->fid, &first, sizeof(first)), 0);
		name = name_of(b.ep);
		ck_assert_int_eq(memcmp(&name, &first, sizeof(name)), 0);
		ck_assert_int_eq(fi_enable(b.ep), 0);
	}
	pass(to, i);
}
END_TEST

/* Where it was before, nobody listens, and another endpoint may be bound there. */
START_TEST(the_address_before_is_free)
{
	struct fid_ep *one = endpoint(&b), *two = endpoint(&b);
	struct sockaddr_in first = name_of(one), second = name_of(two), third = second;

	third.sin_port = htons((uint16_t)(ntohs(second.sin_port) + 100));
	ck_assert_int_eq(fi_setname(&one->fid, &third, sizeof(third)), 0);
	ck_assert_int_eq(fi_setname(&two->fid, &first, sizeof(first)), 0);
	ck_assert_uint_eq(name_of(one).sin_port, third.sin_port);
	ck_assert_uint_eq(name_of(two).sin_port, first.sin_port);
	must_close(&one->fid);
	must_close(&two->fid);
}
END_TEST

/* Nothing is said, or only what is so anyway. The room may be larger than the address. */
START_TEST(what_is_not_said_stays)
{
	struct fid_ep *ep = endpoint(&b);
	struct sockaddr_in first = name_of(ep), same;
	struct sockaddr_storage any = { .ss_family = AF_INET };

	ck_assert_int_eq(fi_setname(&ep->fid, &any, sizeof(any)), 0);
	ck_assert_int_eq(fi_setname(&ep->fid, &first, sizeof(first)), 0);
	same = name_of(ep);
	ck_assert_int_eq(memcmp(&same, &first, sizeof(same)), 0);
	must_close(&ep->fid);
}
END_TEST

START_TEST(what_cannot_be_is_refused_and_the_address_stays)
{
	struct fid_ep *ep = endpoint(&b);
	struct sockaddr_in first = name_of(ep), taken = name_of(a.ep), other = first, now;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };

	other.sin_addr.s_addr ^= htonl(1);
	ck_assert_int_eq(fi_setname(&ep->fid, NULL, sizeof(first)), -FI_EINVAL);
	ck_assert_int_eq(fi_setname(&ep->fid, &first, sizeof(first) - 1), -FI_EINVAL);
	ck_assert_int_eq(fi_setname(&ep->fid, &first, 1), -FI_EINVAL);
	ck_assert_int_eq(fi_setname(&ep->fid, &six, sizeof(six)), -FI_EINVAL);
	ck_assert_int_eq(fi_setname(&ep->fid, &other, sizeof(other)), -FI_EADDRNOTAVAIL);
	ck_assert_int_eq(fi_setname(&ep->fid, &taken, sizeof(taken)), -FI_EADDRINUSE);
	now = name_of(ep);
	ck_assert_int_eq(memcmp(&now, &first, sizeof(now)), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_int_eq(fi_setname(&ep->fid, &first, sizeof(first)), -FI_EOPBADSTATE);
	must_close(&ep->fid);
}
END_TEST

START_TEST(the_length_of_the_address_is_told)
{
	struct sockaddr_in name, whole = name_of(a.ep);
	size_t len = 0;

	ck_assert_int_eq(fi_getname(&a.ep->fid, NULL, &len), -FI_ETOOSMALL);
	ck_assert_uint_eq(len, sizeof(name));
	len = 4;
	memset(&name, 0, sizeof(name));
	ck_assert_int_eq(fi_getname(&a.ep->fid, &name, &len), -FI_ETOOSMALL);
	ck_assert_uint_eq(len, sizeof(name));
	ck_assert_uint_eq(name.sin_port, whole.sin_port);
	ck_assert_uint_eq(name.sin_addr.s_addr, 0);
	ck_assert_int_eq(fi_getname(&a.ep->fid, &name, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_getname(&a.ep->fid, NULL, &len), -FI_EINVAL);
}
END_TEST

static TCase *tcase_address(void)
{
	TCase *tc = tcase_create("name");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_endpoint_takes_the_address_of_one_before);
	tcase_add_test(tc, the_address_before_is_free);
	tcase_add_test(tc, what_is_not_said_stays);
	tcase_add_test(tc, what_cannot_be_is_refused_and_the_address_stays);
	tcase_add_test(tc, the_length_of_the_address_is_told);
	return tc;
}

UNIT_MAIN("names of endpoints", tcase_address)
