/* SPDX-License-Identifier: BSD-2-Clause */
/* How a side waits, and what it sends and receives. */
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "side.h"

long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

/* --- waiting -------------------------------------------------------------------------------------- */

static ssize_t wait_fd(struct side *s, struct queue *q)
{
	struct fid *fids[] = { &q->cq->fid };
	struct pollfd p = { .events = POLLIN };

	must_ok(fi_control(&q->cq->fid, FI_GETWAIT, &p.fd));
	if (!fi_trywait(s->fabric, fids, 1))
		must(poll(&p, 1, WAIT_MS) == 1, "the descriptor of the queue is silent");
	return fi_cq_read(q->cq, &q->last, 1);
}

static ssize_t entry_take(struct side *s, struct queue *q)
{
	switch (s->wait) {
	case FI_WAIT_UNSPEC:
		return fi_cq_sread(q->cq, &q->last, 1, NULL, WAIT_MS);
	case FI_WAIT_FD:
		return wait_fd(s, q);
	default:
		return fi_cq_read(q->cq, &q->last, 1);
	}
}

static void complain(struct queue *q)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_readerr(q->cq, &err, 0);

	must(ret == 1, "fi_cq_readerr: %zd", ret);
	fail("completion %llu in error: %d, %s", (unsigned long long)q->done, err.err,
	     fi_cq_strerror(q->cq, err.prov_errno, err.err_data, NULL, 0));
}

struct fi_cq_tagged_entry entry_next(struct side *s, fi_addr_t *source)
{
	struct fi_cq_tagged_entry entry = { 0 };
	long end = now_ms() + WAIT_MS;
	fi_addr_t from;
	ssize_t ret;

	while ((ret = fi_cq_readfrom(s->tx.cq, &entry, 1, &from)) == -FI_EAGAIN)
		must(now_ms() < end, "no completion");
	if (ret == -FI_EAVAIL)
		complain(&s->tx);
	must(ret == 1, "fi_cq_readfrom: %zd", ret);
	if (source)
		*source = from;
	return entry;
}

bool queue_read(struct side *s, struct queue *q)
{
	ssize_t ret = fi_cq_read(s->one_queue ? s->tx.cq : q->cq, &q->last, 1);

	if (ret == -FI_EAVAIL)
		complain(q);
	must(ret == 1 || ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
	q->done += ret == 1;
	return ret == 1;
}

static void wait_entries(struct side *s, struct queue *q, uint64_t done)
{
	long end = now_ms() + WAIT_MS;
	ssize_t ret;

	while (q->done < done) {
		ret = entry_take(s, q);
		if (ret == -FI_EAVAIL)
			complain(q);
		must(ret == 1 || (ret == -FI_EAGAIN && now_ms() < end),
		     "%s: %zd; %llu of %llu completions", q == &s->tx ? "sends" : "receives", ret,
		     (unsigned long long)q->done, (unsigned long long)done);
		q->done += ret == 1;
	}
}

/* By reading it, or asleep. */
static void wait_counter(struct side *s, struct queue *q, uint64_t done)
{
	long end = now_ms() + WAIT_MS;

	if (s->wait != FI_WAIT_NONE)
		must_ok(fi_cntr_wait(q->cntr, done, WAIT_MS));
	while (fi_cntr_read(q->cntr) < done)
		must(now_ms() < end, "%s: %llu of %llu counted", q == &s->tx ? "sends" : "receives",
		     (unsigned long long)fi_cntr_read(q->cntr), (unsigned long long)done);
	must(!fi_cntr_readerr(q->cntr), "%llu errors",
	     (unsigned long long)fi_cntr_readerr(q->cntr));
}

void queue_wait(struct side *s, struct queue *q, uint64_t done)
{
	if (s->by_counter)
		wait_counter(s, q, done);
	else
		wait_entries(s, q, done);
}

struct fi_cq_err_entry queue_error(struct side *s, struct queue *q)
{
	struct fi_cq_err_entry err = { 0 };
	long end = now_ms() + WAIT_MS;
	ssize_t ret;

	while ((ret = entry_take(s, q)) == -FI_EAGAIN)
		must(now_ms() < end, "no error is reported");
	must(ret == -FI_EAVAIL, "%zd instead of an error", ret);
	must(fi_cq_readerr(q->cq, &err, 0) == 1, "fi_cq_readerr");
	return err;
}

/* --- messages ----------------------------------------------------------------------------------- */

void post_recv(struct side *s, size_t len)
{
	struct queue *q = &s->rx;

	if (side_is_tagged(s))
		POST(s, q, fi_trecv(s->ep, s->in, len, s->desc, s->peer, q->tag, 0, &q->ctx));
	else
		POST(s, q, fi_recv(s->ep, s->in, len, s->desc, 0, &q->ctx));
	q->tag++;
}

void post_send(struct side *s, size_t len)
{
	struct queue *q = &s->tx;

	if (side_is_tagged(s))
		POST(s, q, fi_tsend(s->ep, s->out, len, s->desc, s->peer, q->tag, &q->ctx));
	else
		POST(s, q, fi_send(s->ep, s->out, len, s->desc, s->peer, &q->ctx));
	q->tag++;
}

void tx(struct side *s, size_t len)
{
	post_send(s, len);
	queue_wait(s, &s->tx, s->tx.posted);
}

/* No completion comes, but counters count it. */
void inject(struct side *s, size_t len)
{
	struct queue *q = &s->tx;

	if (side_is_tagged(s))
		POST(s, q, fi_tinject(s->ep, s->out, len, s->peer, q->tag));
	else
		POST(s, q, fi_inject(s->ep, s->out, len, s->peer));
	q->tag++;
	q->done++;
}

void rx(struct side *s)
{
	queue_wait(s, &s->rx, s->rx.posted);
	post_recv(s, side_room(s));
}

void sync_sides(struct side *s)
{
	if (s->client) {
		tx(s, 1);
		rx(s);
	} else {
		rx(s);
		tx(s, 1);
	}
}

void oob_sync(struct side *s)
{
	char byte = 0;

	must(write(s->oob, &byte, 1) == 1 && read(s->oob, &byte, 1) == 1, "the other side is gone");
}

void fill(char *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (char)(i * 7 + seed + i / 251);
}

void same(const char *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		must(buf[i] == (char)(i * 7 + seed + i / 251), "byte %zu of %zu is another one", i,
		     len);
}
