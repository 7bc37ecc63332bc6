/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of devices, both ways at once, with every flag, fenced writes, and pairs that break. */
#include <stdlib.h>
#include "msg_device.h"

#define N 100u
#define SLOTS 12u

struct side {
	struct node *n;
	struct end end;	 /* sends from the first ROOM bytes of */
	struct end into; /* receives there */
	fi_addr_t other;
	atomic_uint sent, done, got;
	unsigned posted;
	uint64_t key, base;
	struct fid_mr *region;
	uint8_t *host;
};

static struct side s[2];
static atomic_bool stop;
static uint8_t *pattern;
#define INTO (N * LEN)
static atomic_uint fails;

static size_t len_of(unsigned i)
{
	unsigned k = i * 2654435761u >> 8;

	switch (k % 5) {
	case 0:
		return k / 7 % 300;
	case 1:
		return 300 + k / 7 % 16000;
	case 2:
		return 17000 + k / 7 % 100000;
	default:
		return 1 + k / 7 % LEN;
	}
}

static size_t from_of(unsigned i)
{
	return i * 7919u % (ROOM - LEN);
}

static void *poll_side(void *arg)
{
	struct side *x = arg;
	uint8_t *buf = malloc(LEN);

	while (!atomic_load(&stop)) {
		struct fi_cq_data_entry e;
		struct fi_cq_err_entry err = { .err_data_size = 0 };
		ssize_t ret = fi_cq_sread(x->n->cq, &e, 1, NULL, 20);

		if (ret == -FI_EAVAIL && fi_cq_readerr(x->n->cq, &err, 0) == 1) {
			fprintf(stderr, "error %d %s flags %lx context %p\n", err.err,
				err.err_data ? "" : "", (unsigned long)err.flags, err.op_context);
			atomic_fetch_add(&fails, 1);
		}
		if (ret != 1)
			continue;
		if (e.flags & FI_RECV) {
			unsigned r = (unsigned)(uintptr_t)e.op_context, i = r / 3 * 4 + r % 3;

			if (e.len != len_of(i)) {
				fprintf(stderr, "receive %u: %zu, not %zu\n", i, e.len, len_of(i));
				atomic_fetch_add(&fails, 1);
			}
			end_get(&x->into, r * LEN, buf, e.len);
			if (memcmp(buf, pattern + from_of(i), e.len)) {
				fprintf(stderr, "receive %u: other bytes\n", i);
				atomic_fetch_add(&fails, 1);
			}
			atomic_fetch_add(&x->got, 1);
		} else {
			atomic_fetch_add(&x->done, 1);
		}
	}
	free(buf);
	return NULL;
}

static void *break_lines(void *arg)
{
	unsigned seed = 5;

	while (!atomic_load(&stop)) {
		bool ran = rand_r(&seed) % 2;

		fake_break_pair(1 + (unsigned)rand_r(&seed) % 10, 1,
				ran ? MRF_WC_TIMEOUT : MRF_WC_FLUSHED, ran);
		usleep(20000);
	}
	return arg;
}

static void open_side(struct side *x, struct node *n, struct node *other, bool device)
{
	pattern = pages(ROOM);
	memset(x, 0, sizeof(*x));
	x->n = n;
	x->other = n == &p.a ? p.to : node_insert(n, other);
	fill(pattern, ROOM, 7);
	x->end.node = x->into.node = n;
	end_open(&x->end, device, false, FI_SEND);
	end_put(&x->end, 0, pattern, ROOM);
	x->into.device = device;
	x->into.mem = device ? rig->make(RT_DEVICE, 0, INTO) : pages(INTO);
	x->into.mr = device ? reg_device(n, x->into.mem, INTO, FI_RECV, 2000) : NULL;
	x->host = pages(PAGE);
	x->region = node_reg(n, x->host, PAGE, REMOTE_RW, 3000);
}

/* What is of no use here of msg_device.h, whose functions are static. */
static __attribute__((unused)) void not_needed(void)
{
	open_ends(0, BOTH, 0);
	close_ends();
	(void)send_at(0, 0);
	(void)recv_at(0, 0);
}

static bool step(struct side *x, struct side *y)
{
	bool moved = false;
	unsigned i;

	while (x->posted < N / 4 * 3 && x->posted < atomic_load(&x->got) + SLOTS) {
		i = x->posted;
		if (fi_recv(x->n->ep, x->into.mem + i * LEN, LEN, desc_of(&x->into), FI_ADDR_UNSPEC,
			    (void *)(uintptr_t)i))
			break;
		x->posted++;
		moved = true;
	}
	while ((i = atomic_load(&x->sent)) < N && i < atomic_load(&x->done) + SLOTS) {
		static const uint64_t flags[] = {
			0, FI_MATCH_COMPLETE,		FI_DELIVERY_COMPLETE, FI_FENCE,
			0, FI_FENCE | FI_MATCH_COMPLETE
		};
		struct iovec iov = { x->end.mem + from_of(i), len_of(i) };
		void *desc = desc_of(&x->end);
		struct fi_msg msg = {
			.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = x->other
		};
		uint64_t base =
			x->n->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)y->host : 0;
		struct iovec hiov = { x->host + 2048, 64 };
		struct fi_rma_iov rma = { base, 64, 3000 };
		struct fi_msg_rma w = { .msg_iov = &hiov,
					.iov_count = 1,
					.addr = x->other,
					.rma_iov = &rma,
					.rma_iov_count = 1 };
		ssize_t ret;

		if (i % 4 == 3)
			ret = fi_writemsg(x->n->ep, &w, i % 8 == 3 ? FI_FENCE : 0);
		else
			ret = fi_sendmsg(x->n->ep, &msg, flags[i % 6]);
		if (ret)
			break;
		atomic_fetch_add(&x->sent, 1);
		moved = true;
	}
	return moved;
}

START_TEST(both_ways)
{
	pthread_t thread[5];
	int64_t end;
	unsigned i, messages = 0;

	open_pair(0, FI_MR_ALLOCATED, MSG_CAPS);
	open_side(&s[0], &p.a, &p.b, true);
	open_side(&s[1], &p.b, &p.a, _i % 2);
	atomic_store(&stop, false);
	for (i = 0; i < N; i++)
		messages += i % 4 != 3;
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, poll_side, &s[i % 2]), 0);
	if (_i / 2)
		ck_assert_int_eq(pthread_create(&thread[4], NULL, break_lines, NULL), 0);
	end = mrf_now_ms() + 60000;
	while (mrf_now_ms() < end &&
	       (atomic_load(&s[0].done) < N || atomic_load(&s[1].done) < N ||
		atomic_load(&s[0].got) < messages || atomic_load(&s[1].got) < messages)) {
		if (step(&s[0], &s[1]) + step(&s[1], &s[0]) == 0)
			usleep(200);
	}
	atomic_store(&stop, true);
	for (i = 0; i < (_i / 2 ? 5u : 4u); i++)
		pthread_join(thread[i], NULL);
	fake_heal();
	fprintf(stderr, "%u %u of %u sent; %u %u of %u got; fails %u\n", s[0].done, s[1].done, N,
		s[0].got, s[1].got, messages, fails);
	ck_assert_uint_eq(fails, 0);
	ck_assert(s[0].done == N && s[1].done == N && s[0].got == messages && s[1].got == messages);
	for (i = 0; i < 2; i++) {
		end_close(&s[i].end);
		end_close(&s[i].into);
		must_close(&s[i].region->fid);
	}
	pair_close(&p);
}
END_TEST

static TCase *tcase_stress(void)
{
	TCase *tc = tcase_create("stress");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_add_loop_test(tc, both_ways, 0, 4);
	return tc;
}

UNIT_MAIN("stress", tcase_stress)
