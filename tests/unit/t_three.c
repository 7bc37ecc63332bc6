/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three endpoints on one domain, one address vector and one completion queue, as GASNet-EX opens them,
 * on the fake fabric: each has connections, lines and a name of its own, and ends alone.
 */
#include <rdma/fi_tagged.h>
#include "ep_fixture.h"
#include "ep/msg/inbox.h"

#define THREE 3
#define LEN 64u
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_DIRECTED_RECV)

static struct node a, b; /* a has two endpoints more */
static struct fid_ep *ep[THREE];
static fi_addr_t to, from[THREE]; /* b, as a names it; what b calls them */
static uint8_t *out, *in;	  /* LEN bytes for each */
static struct fid_mr *mr;	  /* of in, at b */

static fi_addr_t insert(struct node *n, struct fid_ep *whom)
{
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	ck_assert_int_eq(fi_getname(&whom->fid, &addr, &len), 0);
	return node_insert_port(n, ntohs(addr.sin_port));
}

static void setup(void)
{
	static const struct node_opt opt = { .caps = CAPS };

	fixture_setup();
	node_open(&a, &opt);
	node_open(&b, &opt);
	ep[0] = a.ep;
	for (int i = 1; i < THREE; i++)
		ck_assert_int_eq(node_try_ep(&a, &opt, &ep[i]), 0);
	to = node_insert(&a, &b);
	/* Not in the order in which they were opened. */
	for (int i = THREE - 1; i >= 0; i--)
		from[i] = insert(&b, ep[i]);
	out = pages(THREE * LEN);
	in = pages(THREE * LEN);
	for (int i = 0; i < THREE; i++)
		fill(out + i * LEN, LEN, (unsigned)(7 + i));
	memset(in, 0, THREE * LEN);
	mr = node_reg(&b, in, THREE * LEN, REMOTE_RW, 9);
}

static void ep_close(int i)
{
	if (ep[i])
		must_close(&ep[i]->fid);
	ep[i] = NULL;
}

static void teardown(void)
{
	must_close(&mr->fid);
	for (int i = 1; i < THREE; i++)
		ep_close(i);
	a.ep = ep[0];
	node_close(&a);
	node_close(&b);
	fixture_teardown();
}

static uint8_t *out_of(int i)
{
	return out + i * LEN;
}

static uint8_t *in_of(int i)
{
	return in + i * LEN;
}

static void post_send(int i)
{
	ck_assert_int_eq(fi_send(ep[i], out_of(i), LEN, NULL, to, out_of(i)), 0);
}

static void post_write(int i)
{
	ck_assert_int_eq(fi_write(ep[i], out_of(i), LEN, NULL, to, (uint64_t)i * LEN, 9, out_of(i)),
			 0);
}

/* What b receives is endpoint i's, and b knows by which name. */
static void receive_from(int i, fi_addr_t from_whom)
{
	struct fi_cq_data_entry entry;
	fi_addr_t source = FI_ADDR_UNSPEC;

	memset(in_of(i), 0, LEN);
	ck_assert_int_eq(fi_recv(b.ep, in_of(i), LEN, NULL, from_whom, in_of(i)), 0);
	ck_assert_int_eq(fi_cq_sreadfrom(b.cq, &entry, 1, &source, NULL, LONG_MS), 1);
	ck_assert_ptr_eq(entry.op_context, in_of(i));
	ck_assert_uint_eq(source, from[i]);
	ck_assert(filled(in_of(i), LEN, (unsigned)(7 + i)));
}

/* A message and a write of endpoint i arrive. */
static void works(int i)
{
	memset(in_of(i), 0, LEN);
	post_write(i);
	want_ok(&a, out_of(i));
	ck_assert(filled(in_of(i), LEN, (unsigned)(7 + i)));
	post_send(i);
	want_ok(&a, out_of(i));
	receive_from(i, from[i]);
}

static uint64_t ticket_of(int i, enum mrf_conn_kind kind)
{
	struct mrf_ep *one = mrf_container_of(ep[i], struct mrf_ep, fid);
	uint64_t ticket;

	mrf_lock_take(&one->lock);
	ticket = one->peers[kind].of[to]->target.ticket;
	mrf_lock_release(&one->lock);
	return ticket;
}

START_TEST(each_endpoint_has_connections_of_its_own)
{
	for (int i = 0; i < THREE; i++)
		works(i);
	ck_assert_uint_eq(node_lines(&b), THREE);
	ck_assert_uint_eq(fake_connects(), 2 * THREE);
	for (int i = 0; i < 2 * THREE; i++) {
		for (int k = 0; k < i; k++)
			ck_assert(ticket_of(i / 2, i % 2) != ticket_of(k / 2, k % 2));
	}
}
END_TEST

/* All that they have sent is there before the first receive, which names its source. */
START_TEST(each_endpoint_is_a_source_of_its_own)
{
	for (int i = 0; i < THREE; i++)
		post_send(i);
	for (int i = 0; i < THREE; i++)
		want_ok(&a, NULL);
	for (int i = THREE - 1; i >= 0; i--)
		receive_from(i, from[i]);
	want_none(&b);
}
END_TEST

/* They share the queue, not what arrives. */
START_TEST(each_endpoint_receives_what_was_sent_to_it)
{
	for (int i = 0; i < THREE; i++)
		ck_assert_int_eq(fi_recv(ep[i], in_of(i), LEN, NULL, to, in_of(i)), 0);
	for (int i = THREE - 1; i >= 0; i--) {
		struct fi_cq_data_entry entry;
		fi_addr_t source = FI_ADDR_UNSPEC;

		ck_assert_int_eq(fi_send(b.ep, out_of(i), LEN, NULL, from[i], out_of(i)), 0);
		want_ok(&b, out_of(i));
		ck_assert_int_eq(fi_cq_sreadfrom(a.cq, &entry, 1, &source, NULL, LONG_MS), 1);
		ck_assert_ptr_eq(entry.op_context, in_of(i));
		ck_assert_uint_eq(source, to);
		ck_assert(filled(in_of(i), LEN, (unsigned)(7 + i)));
	}
}
END_TEST

/* With messages that nobody has received, and receives that nothing takes. */
START_TEST(one_closes_while_the_others_go_on)
{
	int gone = 1 + _i;

	for (int i = 0; i < THREE; i++)
		works(i);
	ck_assert_int_eq(fi_recv(ep[gone], in_of(gone), LEN, NULL, to, in_of(gone)), 0);
	post_send(gone);
	want_ok(&a, out_of(gone));
	for (int i = 0; i < THREE; i++) {
		if (i != gone)
			post_send(i);
	}
	ep_close(gone);
	for (int i = 0; i < THREE; i++) {
		if (i != gone)
			want_ok(&a, NULL);
		receive_from(i, from[i]);
	}
	for (int i = 0; i < THREE; i++) {
		if (i != gone)
			works(i);
	}
	want_soon(node_lines(&b) == THREE - 1);
	ck_assert_uint_eq(fake_connects(), 2 * THREE);
}
END_TEST

static void want_refused(int i)
{
	ck_assert_int_eq(fi_send(ep[i], out_of(i), LEN, NULL, to, NULL), -FI_EADDRNOTAVAIL);
	ck_assert_int_eq(fi_write(ep[i], out_of(i), LEN, NULL, to, 0, 9, NULL), -FI_EADDRNOTAVAIL);
}

/*
 * What was sent before arrives. Nothing is sent after that by any of them, and their connections go,
 * until the address is there again.
 */
START_TEST(an_address_is_removed_while_all_use_it)
{
	for (int i = 0; i < THREE; i++)
		works(i);
	for (int i = 0; i < THREE; i++)
		post_send(i);
	for (int i = 0; i < THREE; i++)
		want_ok(&a, NULL);
	ck_assert_int_eq(fi_av_remove(a.av, &to, 1, 0), 0);
	for (int i = 0; i < THREE; i++)
		want_refused(i);
	for (int i = 0; i < THREE; i++)
		receive_from(i, FI_ADDR_UNSPEC);
	want_soon(!node_lines(&b) && !fake_live_of(FAKE_CREATE_QP));
	to = node_insert(&a, &b);
	for (int i = 0; i < THREE; i++)
		works(i);
	ck_assert_uint_eq(fake_connects(), 4 * THREE);
	want_none(&a);
}
END_TEST

static TCase *tcase_three(void)
{
	TCase *tc = tcase_create("three");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, each_endpoint_has_connections_of_its_own);
	tcase_add_test(tc, each_endpoint_is_a_source_of_its_own);
	tcase_add_test(tc, each_endpoint_receives_what_was_sent_to_it);
	tcase_add_loop_test(tc, one_closes_while_the_others_go_on, 0, THREE - 1);
	tcase_add_test(tc, an_address_is_removed_while_all_use_it);
	return tc;
}

UNIT_MAIN("three", tcase_three)
