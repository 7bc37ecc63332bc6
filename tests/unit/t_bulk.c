/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many connections go at a time, and the device takes long for each: the agent turns to the peers
 * of another endpoint in between.
 */
#include <pthread.h>
#include <sched.h>
#include <rdma/fi_atomic.h>
#include "ep_fixture.h"
#include "verbs/verbs.h"

enum { MANY = 30, CLOSE_MS = 10 };

/* a has the endpoint that goes, and serves b meanwhile; c has its peers. */
static struct node a, b, c;
static atomic_bool slow;
static atomic_uint closed; /* by a's agent */

void __real_mrf_vconn_close(struct mrf_vconn *conn);
void __wrap_mrf_vconn_close(struct mrf_vconn *conn);
void __wrap_mrf_vconn_close(struct mrf_vconn *conn)
{
	if (atomic_load(&slow) && pthread_equal(pthread_self(), node_agent(&a)->thread)) {
		usleep(CLOSE_MS * 1000);
		atomic_fetch_add(&closed, 1);
	}
	__real_mrf_vconn_close(conn);
}

static struct fid_ep *big, *far[MANY];
static fi_addr_t to[MANY], to_a;
static uint32_t mem[MANY + 1], one = 1;
static struct fid_mr *mr, *far_mr;
static unsigned served;

/* The port of an endpoint beside the first one of its node. */
static fi_addr_t insert(struct node *from, struct fid_ep *ep)
{
	char name[64];
	size_t len = sizeof(name);
	fi_addr_t addr;

	ck_assert_int_eq(fi_getname(&ep->fid, name, &len), 0);
	ck_assert_int_eq(fi_av_insert(from->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

/* Only the agent of a can do it. */
static void be_served(void)
{
	ck_assert_int_eq(fi_atomic(b.ep, &one, 1, NULL, to_a, 0, 1, FI_UINT32, FI_BXOR, NULL), 0);
	want_ok(&b, NULL);
	served++;
}

static void open_all(bool inbound)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED };
	unsigned i;

	node_open(&a, &opt);
	node_open(&b, &opt);
	node_open(&c, &opt);
	mr = node_reg(&a, mem, sizeof(mem), REMOTE_RW, 1);
	far_mr = node_reg(&c, mem, sizeof(mem), REMOTE_RW, 1);
	to_a = node_insert(&b, &a);
	ck_assert_int_eq(node_try_ep(&a, &opt, &big), 0);
	for (i = 0; i < MANY; i++) {
		ck_assert_int_eq(node_try_ep(&c, &opt, &far[i]), 0);
		to[i] = inbound ? insert(&c, big) : insert(&a, far[i]);
		ck_assert_int_eq(fi_write(inbound ? far[i] : big, &one, 4, NULL, to[i], 4 * (i + 1),
					  1, NULL),
				 0);
		want_ok(inbound ? &c : &a, NULL);
	}
	be_served();
	served = 0;
	atomic_store(&closed, 0);
}

static void close_all(void)
{
	unsigned i;

	must_close(&mr->fid);
	must_close(&far_mr->fid);
	for (i = 0; i < MANY; i++)
		must_close(&far[i]->fid);
	node_close(&a);
	node_close(&b);
	node_close(&c);
}

/* One at the beginning and one at the end are served in any case; a busy machine takes its time. */
static void want_served(void)
{
	ck_assert_uint_ge(atomic_load(&closed), MANY);
	ck_assert_msg(served >= MANY / 10, "%u operations while %u connections were closed", served,
		      atomic_load(&closed));
}

static void *close_big(void *arg)
{
	(void)arg;
	atomic_store(&slow, true);
	must_close(&big->fid);
	atomic_store(&slow, false);
	return NULL;
}

/* _i: those of its peers, or its own. */
START_TEST(bulk_closing_an_endpoint_leaves_turns_to_others)
{
	pthread_t closer;

	open_all(_i);
	ck_assert_int_eq(pthread_create(&closer, NULL, close_big, NULL), 0);
	while (!atomic_load(&slow))
		sched_yield();
	while (atomic_load(&slow))
		be_served();
	pthread_join(closer, NULL);
	want_served();
	close_all();
}
END_TEST

START_TEST(bulk_removing_addresses_leaves_turns_to_others)
{
	open_all(false);
	atomic_store(&slow, true);
	ck_assert_int_eq(fi_av_remove(a.av, to, MANY, 0), 0);
	while (atomic_load(&closed) < MANY)
		be_served();
	atomic_store(&slow, false);
	want_served();
	must_close(&big->fid);
	close_all();
}
END_TEST

static TCase *bulk(void)
{
	TCase *tc = tcase_create("bulk");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, bulk_closing_an_endpoint_leaves_turns_to_others, 0, 2);
	tcase_add_test(tc, bulk_removing_addresses_leaves_turns_to_others);
	return tc;
}

UNIT_MAIN("bulk", bulk)
