/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages whose bytes are asked for, on the fake fabric. */
#include <stdatomic.h>
#include <string.h>
#include <rdma/fi_tagged.h>
#include "ep_fixture.h"
#include "contract/budget.h"
#include "ep/msg/inbox.h"
#include "proto/frame.h"

#define SHORT 16384u
#define LONG (64u << 10)
#define ROOM (8u << 20)
#define CAPS (FI_MSG | FI_TAGGED | FI_MULTI_RECV)

static struct node a, b;
static fi_addr_t to;
static uint8_t *out, *in;
static struct fid_mr *out_mr, *in_mr; /* with FI_MR_LOCAL */

static void open_with(int mr_mode)
{
	const struct node_opt opt = { .mr_mode = mr_mode, .caps = CAPS };

	node_open(&a, &opt);
	node_open(&b, &opt);
	to = node_insert(&a, &b);
	out = pages(ROOM);
	in = pages(ROOM);
	out_mr = in_mr = NULL;
	fill(out, ROOM, 3);
	memset(in, 0, ROOM);
	if (mr_mode & FI_MR_LOCAL) {
		out_mr = node_reg(&a, out, ROOM, FI_SEND, 1);
		in_mr = node_reg(&b, in, ROOM, FI_RECV, 2);
	}
}

static void close_all(void)
{
	if (out_mr)
		must_close(&out_mr->fid);
	if (in_mr)
		must_close(&in_mr->fid);
	node_close(&a);
	node_close(&b);
}

static void *desc_of(struct fid_mr *mr)
{
	return mr ? fi_mr_desc(mr) : NULL;
}

static void send_at(size_t at, size_t len)
{
	ck_assert_int_eq(fi_send(a.ep, out + at, len, desc_of(out_mr), to, out + at), 0);
}

static void recv_at(size_t at, size_t len)
{
	ck_assert_int_eq(fi_recv(b.ep, in + at, len, desc_of(in_mr), FI_ADDR_UNSPEC, in + at), 0);
}

static void want_sent(size_t at)
{
	struct fi_cq_data_entry entry = want_ok(&a, out + at);

	ck_assert_uint_eq(entry.flags, FI_MSG | FI_SEND);
}

static void want_got(size_t at, size_t len)
{
	struct fi_cq_data_entry entry = want_ok(&b, in + at);

	ck_assert_uint_eq(entry.flags, FI_MSG | FI_RECV);
	ck_assert_uint_eq(entry.len, len);
	ck_assert(!memcmp(in + at, out + at, len));
}

/* --- what arrives --------------------------------------------------------------------- */

static const int modes[] = { 0, FI_MR_ALLOCATED, FI_MR_LOCAL | FI_MR_ALLOCATED };
static const size_t sizes[] = { SHORT + 1, LONG, MRF_GRANT_BYTES, MRF_GRANT_BYTES + 1,
				3 * MRF_GRANT_BYTES };

START_TEST(a_posted_receive_gets_it)
{
	size_t i;

	open_with(modes[_i]);
	for (i = 0; i < MRF_ARRAY_SIZE(sizes); i++) {
		memset(in, 0, ROOM);
		recv_at(0, sizes[i]);
		send_at(0, sizes[i]);
		want_got(0, sizes[i]);
		want_sent(0);
	}
	close_all();
}
END_TEST

START_TEST(it_waits_for_its_receive)
{
	size_t i, at = 0;

	open_with(modes[_i]);
	for (i = 0; i < 3; i++, at += sizes[i])
		send_at(at, sizes[i]);
	want_none(&a);
	ck_assert_uint_lt(node_ep(&b)->inbox->kept, SHORT);
	for (i = 0, at = 0; i < 3; i++, at += sizes[i]) {
		recv_at(at, sizes[i]);
		want_got(at, sizes[i]);
		want_sent(at);
	}
	ck_assert_uint_eq(node_ep(&b)->inbox->kept, 0);
	close_all();
}
END_TEST

static TCase *tcase_long(void)
{
	TCase *tc = tcase_create("long messages");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, a_posted_receive_gets_it, 0, MRF_ARRAY_SIZE(modes));
	tcase_add_loop_test(tc, it_waits_for_its_receive, 0, MRF_ARRAY_SIZE(modes));
	return tc;
}

UNIT_MAIN("long messages", tcase_long)
