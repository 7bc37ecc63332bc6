/* SPDX-License-Identifier: BSD-2-Clause */
/* What endpoints do not offer: every slot is there, refuses, and says which call it was. */
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "ep/ep_ops.h"
#include "unit.h"

static struct fid_ep ep;

static void setup(void)
{
	ep.msg = &mrf_no_msg;
	ep.tagged = &mrf_no_tagged;
	ep.atomic = &mrf_no_atomic;
	ep.collective = &mrf_no_collective;
}

/* A table is its size and nothing but functions; an empty one would be a crash in a program. */
static void no_slot_is_empty(const void *ops, size_t size)
{
	void (*const *slot)(void) = (void (*const *)(void))((const char *)ops + sizeof(size_t));
	size_t i, n = (size - sizeof(size_t)) / sizeof(*slot);

	ck_assert_uint_eq(*(const size_t *)ops, size);
	for (i = 0; i < n; i++)
		ck_assert_msg(slot[i] != NULL, "slot %zu of %zu is empty", i, n);
}

START_TEST(every_call_that_an_endpoint_lacks_has_a_function)
{
	no_slot_is_empty(&mrf_no_msg, sizeof(mrf_no_msg));
	no_slot_is_empty(&mrf_no_tagged, sizeof(mrf_no_tagged));
	no_slot_is_empty(&mrf_no_atomic, sizeof(mrf_no_atomic));
	no_slot_is_empty(&mrf_no_collective, sizeof(mrf_no_collective));
}
END_TEST

#define REFUSED(name, cap, call)                                                     \
	do {                                                                         \
		struct unit_capture cap_;                                            \
		const char *text_;                                                   \
		ssize_t ret_;                                                        \
                                                                                     \
		unit_capture(&cap_);                                                 \
		ret_ = (call);                                                       \
		text_ = unit_captured(&cap_);                                        \
		ck_assert_int_eq(ret_, -FI_ENOSYS);                                  \
		ck_assert_uint_eq(unit_lines(text_), 1);                             \
		ck_assert_msg(strstr(text_, name " needs " cap), "said: %s", text_); \
	} while (0)

START_TEST(messages_are_refused_by_name)
{
	struct fi_msg msg = { 0 };

	REFUSED("fi_recv", "FI_MSG", fi_recv(&ep, NULL, 0, NULL, 0, NULL));
	REFUSED("fi_recvv", "FI_MSG", fi_recvv(&ep, NULL, NULL, 0, 0, NULL));
	REFUSED("fi_recvmsg", "FI_MSG", fi_recvmsg(&ep, &msg, 0));
	REFUSED("fi_send", "FI_MSG", fi_send(&ep, NULL, 0, NULL, 0, NULL));
	REFUSED("fi_sendv", "FI_MSG", fi_sendv(&ep, NULL, NULL, 0, 0, NULL));
	REFUSED("fi_sendmsg", "FI_MSG", fi_sendmsg(&ep, &msg, 0));
	REFUSED("fi_inject", "FI_MSG", fi_inject(&ep, NULL, 0, 0));
	REFUSED("fi_senddata", "FI_MSG", fi_senddata(&ep, NULL, 0, NULL, 0, 0, NULL));
	REFUSED("fi_injectdata", "FI_MSG", fi_injectdata(&ep, NULL, 0, 0, 0));
}
END_TEST

START_TEST(tagged_messages_are_refused_by_name)
{
	struct fi_msg_tagged msg = { 0 };

	REFUSED("fi_trecv", "FI_TAGGED", fi_trecv(&ep, NULL, 0, NULL, 0, 0, 0, NULL));
	REFUSED("fi_trecvv", "FI_TAGGED", fi_trecvv(&ep, NULL, NULL, 0, 0, 0, 0, NULL));
	REFUSED("fi_trecvmsg", "FI_TAGGED", fi_trecvmsg(&ep, &msg, 0));
	REFUSED("fi_tsend", "FI_TAGGED", fi_tsend(&ep, NULL, 0, NULL, 0, 0, NULL));
	REFUSED("fi_tsendv", "FI_TAGGED", fi_tsendv(&ep, NULL, NULL, 0, 0, 0, NULL));
	REFUSED("fi_tsendmsg", "FI_TAGGED", fi_tsendmsg(&ep, &msg, 0));
	REFUSED("fi_tinject", "FI_TAGGED", fi_tinject(&ep, NULL, 0, 0, 0));
	REFUSED("fi_tsenddata", "FI_TAGGED", fi_tsenddata(&ep, NULL, 0, NULL, 0, 0, 0, NULL));
	REFUSED("fi_tinjectdata", "FI_TAGGED", fi_tinjectdata(&ep, NULL, 0, 0, 0, 0));
}
END_TEST

#define SUM FI_UINT64, FI_SUM

START_TEST(atomics_are_refused_by_name)
{
	struct fi_msg_atomic msg = { 0 };
	size_t n;

	REFUSED("fi_atomic", "FI_ATOMIC", fi_atomic(&ep, NULL, 1, NULL, 0, 0, 0, SUM, NULL));
	REFUSED("fi_atomicv", "FI_ATOMIC", fi_atomicv(&ep, NULL, NULL, 1, 0, 0, 0, SUM, NULL));
	REFUSED("fi_atomicmsg", "FI_ATOMIC", fi_atomicmsg(&ep, &msg, 0));
	REFUSED("fi_inject_atomic", "FI_ATOMIC", fi_inject_atomic(&ep, NULL, 1, 0, 0, 0, SUM));
	REFUSED("fi_fetch_atomic", "FI_ATOMIC",
		fi_fetch_atomic(&ep, NULL, 1, NULL, NULL, NULL, 0, 0, 0, SUM, NULL));
	REFUSED("fi_fetch_atomicv", "FI_ATOMIC",
		fi_fetch_atomicv(&ep, NULL, NULL, 1, NULL, NULL, 1, 0, 0, 0, SUM, NULL));
	REFUSED("fi_fetch_atomicmsg", "FI_ATOMIC", fi_fetch_atomicmsg(&ep, &msg, NULL, NULL, 1, 0));
	REFUSED("fi_compare_atomic", "FI_ATOMIC",
		fi_compare_atomic(&ep, NULL, 1, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, SUM, NULL));
	REFUSED("fi_compare_atomicv", "FI_ATOMIC",
		fi_compare_atomicv(&ep, NULL, NULL, 1, NULL, NULL, 1, NULL, NULL, 1, 0, 0, 0, SUM,
				   NULL));
	REFUSED("fi_compare_atomicmsg", "FI_ATOMIC",
		fi_compare_atomicmsg(&ep, &msg, NULL, NULL, 1, NULL, NULL, 1, 0));
	REFUSED("fi_atomicvalid", "FI_ATOMIC", fi_atomicvalid(&ep, SUM, &n));
	REFUSED("fi_fetch_atomicvalid", "FI_ATOMIC", fi_fetch_atomicvalid(&ep, SUM, &n));
	REFUSED("fi_compare_atomicvalid", "FI_ATOMIC", fi_compare_atomicvalid(&ep, SUM, &n));
}
END_TEST

START_TEST(collectives_are_refused_by_name)
{
	struct fi_msg_collective msg = { 0 };
	void *buf = NULL;

	REFUSED("fi_barrier", "FI_COLLECTIVE", fi_barrier(&ep, 0, NULL));
	REFUSED("fi_barrier2", "FI_COLLECTIVE", fi_barrier2(&ep, 0, FI_MORE, NULL));
	REFUSED("fi_broadcast", "FI_COLLECTIVE",
		fi_broadcast(&ep, buf, 1, NULL, 0, 0, FI_UINT8, 0, NULL));
	REFUSED("fi_alltoall", "FI_COLLECTIVE",
		fi_alltoall(&ep, buf, 1, NULL, buf, NULL, 0, FI_UINT8, 0, NULL));
	REFUSED("fi_allreduce", "FI_COLLECTIVE",
		fi_allreduce(&ep, buf, 1, NULL, buf, NULL, 0, SUM, 0, NULL));
	REFUSED("fi_allgather", "FI_COLLECTIVE",
		fi_allgather(&ep, buf, 1, NULL, buf, NULL, 0, FI_UINT8, 0, NULL));
	REFUSED("fi_reduce_scatter", "FI_COLLECTIVE",
		fi_reduce_scatter(&ep, buf, 1, NULL, buf, NULL, 0, SUM, 0, NULL));
	REFUSED("fi_reduce", "FI_COLLECTIVE",
		fi_reduce(&ep, buf, 1, NULL, buf, NULL, 0, 0, SUM, 0, NULL));
	REFUSED("fi_scatter", "FI_COLLECTIVE",
		fi_scatter(&ep, buf, 1, NULL, buf, NULL, 0, 0, FI_UINT8, 0, NULL));
	REFUSED("fi_gather", "FI_COLLECTIVE",
		fi_gather(&ep, buf, 1, NULL, buf, NULL, 0, 0, FI_UINT8, 0, NULL));
	REFUSED("a collective message", "FI_COLLECTIVE",
		ep.collective->msg(&ep, &msg, NULL, NULL, 0, 0));
}
END_TEST

static TCase *tcase_none(void)
{
	TCase *tc = tcase_create("none");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, every_call_that_an_endpoint_lacks_has_a_function);
	tcase_add_test(tc, messages_are_refused_by_name);
	tcase_add_test(tc, tagged_messages_are_refused_by_name);
	tcase_add_test(tc, atomics_are_refused_by_name);
	tcase_add_test(tc, collectives_are_refused_by_name);
	return tc;
}

UNIT_MAIN("none", tcase_none)
