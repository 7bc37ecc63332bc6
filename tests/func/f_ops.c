/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of fi_rma(3), their flags, and what their completions say. */
#include <poll.h>
#include <sched.h>
#include "harness.h"

#define SIZE (64 * 1024ul)

/* An endpoint of the case's own, a buffer, and SIZE bytes at the target behind two keys.
 */
struct own {
	struct env *e;
	struct fab f;
	struct buf b;
	struct peer *t;
	fi_addr_t to;
	struct region r, r2; /* first and second half of the target's slot 0 */
};

static void own_open(struct own *o, struct env *e, const struct fab_opt *opt)
{
	*o = (struct own){ .e = e, .t = target(e) };
	fab_open(&o->f, e->mode, opt);
	o->to = fab_insert(&o->f, o->t->name);
	fab_buf(&o->f, &o->b, SIZE, 1);
	peer_alloc(o->t, 0, SIZE, 2);
	o->r = peer_reg(o->t, 0, 33, SIZE / 2 - 33, REMOTE_RW, 11);
	o->r2 = peer_reg(o->t, 0, SIZE / 2, SIZE / 2, REMOTE_RW, 12);
}

static void own_close(struct own *o)
{
	fab_quiet(&o->f);
	buf_same(&o->b);
	peer_same(o->t, 0);
	peer_unreg(&o->r);
	peer_unreg(&o->r2);
	fab_buf_close(&o->b);
	fab_close(&o->f);
}

static void want_written(struct own *o, const struct region *r, size_t at, size_t off, size_t len)
{
	peer_want(o->t, 0, r->off + at, len, o->b.seed, off);
}

static void want_read(struct own *o, size_t off, size_t len, const struct region *r, size_t at)
{
	buf_want(&o->b, off, len, 2, r->off + at);
}

/* A message of one piece. */
struct msg {
	struct iovec iov;
	struct fi_rma_iov rma;
	struct fi_msg_rma m;
};

static struct fi_msg_rma *msg(struct msg *s, struct own *o, size_t off, size_t len,
			      const struct region *r, size_t at)
{
	s->iov = (struct iovec){ o->b.mem + off, len };
	s->rma = (struct fi_rma_iov){ r->base + at, len, r->key };
	s->m = (struct fi_msg_rma){ &s->iov, &o->b.desc, 1, o->to, &s->rma, 1, s, 0 };
	return &s->m;
}

static struct done next(struct own *o)
{
	struct done d;

	must(fab_done(&o->f, &d, SOON), "no completion");
	must(!d.err, "err %d (%s), %s", d.err, fi_strerror(d.err), d.text);
	return d;
}

/* A write whose completion means that everything posted before it is done. */
static void settle(struct own *o)
{
	struct msg s;
	struct done d;

	must_ok(fi_writemsg(o->f.ep, msg(&s, o, 0, 1, &o->r, 0),
			    FI_COMPLETION | FI_DELIVERY_COMPLETE));
	want_written(o, &o->r, 0, 0, 1);
	d = next(o);
	must(d.ctx == &s, "context of the last write");
}

/* --- vectors
 * ---------------------------------------------------------------------------- */

#define MOST 128 /* iov_limit */

struct pieces {
	struct iovec iov[MOST + 1];
	void *desc[MOST + 1];
	struct fi_rma_iov rma[9];
	size_t off[MOST + 1], at[9];
	struct fi_msg_rma m;
};

/*
 * n local pieces and nr remote ones, of different lengths but the same sum, the remote
 * ones in both regions by turns.
 */
static void pieces_make(struct pieces *p, struct own *o, size_t n, size_t nr)
{
	size_t sum = 0, left;

	for (size_t i = 0; i < n; i++) {
		p->off[i] = 100 + i * 3000;
		p->iov[i] = (struct iovec){ o->b.mem + p->off[i], 1000 + i * 37 };
		p->desc[i] = o->b.desc;
		sum += p->iov[i].iov_len;
	}
	left = sum;
	for (size_t i = 0; i < nr; i++) {
		const struct region *r = i % 2 ? &o->r2 : &o->r;
		size_t len = i == nr - 1 ? left : sum / nr - 5 * i;

		p->at[i] = 7 + i / 2 * 9000;
		p->rma[i] = (struct fi_rma_iov){ r->base + p->at[i], len, r->key };
		left -= len;
	}
	p->m = (struct fi_msg_rma){ p->iov, p->desc, n, o->to, p->rma, nr, p, 0 };
}

/* n small ones into one: too many to be within the device's reach at a time. */
static void pieces_make_many(struct pieces *p, struct own *o, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		p->off[i] = 64 + i * 150;
		p->iov[i] = (struct iovec){ o->b.mem + p->off[i], 50 + i * 37 % 101 };
		p->desc[i] = o->b.desc;
		sum += p->iov[i].iov_len;
	}
	p->at[0] = 7;
	p->rma[0] = (struct fi_rma_iov){ o->r.base + 7, sum, o->r.key };
	p->m = (struct fi_msg_rma){ p->iov, p->desc, n, o->to, p->rma, 1, p, 0 };
}

/* Walks both lists side by side and notes what goes where. */
static void pieces_want(struct pieces *p, struct own *o, bool read)
{
	size_t i = 0, j = 0, di = 0, dj = 0;

	while (i < p->m.iov_count && j < p->m.rma_iov_count) {
		const struct region *r = j % 2 ? &o->r2 : &o->r;
		size_t li = p->iov[i].iov_len - di, lj = p->rma[j].len - dj;
		size_t len = li < lj ? li : lj;

		if (read)
			want_read(o, p->off[i] + di, len, r, p->at[j] + dj);
		else
			want_written(o, r, p->at[j] + dj, p->off[i] + di, len);
		di = len == li ? 0 : di + len;
		dj = len == lj ? 0 : dj + len;
		i += len == li;
		j += len == lj;
	}
}

CASE(writev_gathers_and_readv_scatters)
{
	static const struct fab_opt opt;
	struct pieces p;
	struct own o;

	for (size_t n = 1; n <= 8; n += n < 3 ? 1 : 5) {
		own_open(&o, e, &opt);
		pieces_make(&p, &o, n, 1);
		must_ok(fi_readv(o.f.ep, p.iov, p.desc, n, o.to, p.rma[0].addr, p.rma[0].key, &p));
		must(next(&o).ctx == &p, "context");
		pieces_want(&p, &o, READ);
		buf_same(&o.b);
		buf_fill(&o.b, 1);
		must_ok(fi_writev(o.f.ep, p.iov, p.desc, n, o.to, p.rma[0].addr, p.rma[0].key, &p));
		must(next(&o).ctx == &p, "context");
		pieces_want(&p, &o, WRITE);
		own_close(&o);
	}
}

/* Read and written, each byte in its place. */
static void pieces_there_and_back(struct pieces *p, struct own *o)
{
	must_ok(fi_readmsg(o->f.ep, &p->m, FI_COMPLETION));
	must(next(o).ctx == p, "context");
	pieces_want(p, o, READ);
	buf_same(&o->b);
	buf_fill(&o->b, 1);
	must_ok(fi_writemsg(o->f.ep, &p->m, FI_COMPLETION));
	must(next(o).ctx == p, "context");
	pieces_want(p, o, WRITE);
}

CASE(transfers_from_and_to_as_many_pieces_as_there_may_be)
{
	static const struct fab_opt opt;
	static const size_t counts[] = { 9, 100, MOST };
	struct pieces p;
	struct own o;

	for (unsigned i = 0; i < 3; i++) {
		own_open(&o, e, &opt);
		pieces_make_many(&p, &o, counts[i]);
		pieces_there_and_back(&p, &o);
		own_close(&o);
	}
}

CASE(messages_split_over_local_and_remote_pieces)
{
	static const struct fab_opt opt;
	static const size_t counts[][2] = { { 1, 8 }, { 8, 1 }, { 8, 8 }, { 3, 5 }, { 5, 3 } };
	struct pieces p;
	struct own o;

	for (int i = 0; i < 5; i++) {
		own_open(&o, e, &opt);
		pieces_make(&p, &o, counts[i][0], counts[i][1]);
		pieces_there_and_back(&p, &o);
		own_close(&o);
	}
}

CASE(bad_vectors_are_refused)
{
	static const struct fab_opt opt;
	struct pieces p;
	struct own o;

	own_open(&o, e, &opt);
	must(o.f.info->tx_attr->iov_limit == MOST && o.f.info->tx_attr->rma_iov_limit == 8,
	     "limits %zu and %zu", o.f.info->tx_attr->iov_limit, o.f.info->tx_attr->rma_iov_limit);
	pieces_make_many(&p, &o, MOST + 1);
	must_be(fi_writemsg(o.f.ep, &p.m, 0), -FI_EINVAL);
	must_be(fi_readv(o.f.ep, p.iov, p.desc, MOST + 1, o.to, p.rma[0].addr, p.rma[0].key, &p),
		-FI_EINVAL);
	pieces_make(&p, &o, 1, 9);
	must_be(fi_readmsg(o.f.ep, &p.m, 0), -FI_EINVAL);
	pieces_make(&p, &o, 2, 2);
	p.rma[1].len++;
	must_be(fi_writemsg(o.f.ep, &p.m, 0), -FI_EINVAL);
	must(log_has("MRF-E"), "no line says why");
	own_close(&o);
}

CASE(unknown_flags_are_refused)
{
	static const struct fab_opt opt;
	struct own o;
	struct msg s;
	ssize_t rc;

	own_open(&o, e, &opt);
	rc = fi_writemsg(o.f.ep, msg(&s, &o, 0, 8, &o.r, 0), 1ull << 63);
	must(rc == -FI_EBADFLAGS || rc == -FI_EINVAL, "bit 63: %zd", rc);
	rc = fi_readmsg(o.f.ep, msg(&s, &o, 0, 8, &o.r, 0), FI_REMOTE_CQ_DATA);
	must(rc == -FI_EBADFLAGS || rc == -FI_EINVAL, "data with a read: %zd", rc);
	own_close(&o);
}

/* --- data for the peer's CQ
 * ------------------------------------------------------------- */

static void data_arrives(struct own *o, uint64_t data)
{
	struct done d;

	must(peer_done(o->t, &d, SOON), "no completion at the target");
	must(!d.err, "err %d at the target", d.err);
	must(d.flags & FI_REMOTE_CQ_DATA, "flags 0x%llx", (unsigned long long)d.flags);
	must(d.data == data, "data 0x%llx instead of 0x%llx", (unsigned long long)d.data,
	     (unsigned long long)data);
}

CASE(writedata_tells_the_target)
{
	static const struct fab_opt opt;
	struct own o;
	struct msg s;

	own_open(&o, e, &opt);
	must(o.f.info->domain_attr->cq_data_size >= 4, "cq_data_size");
	must_ok(fi_writedata(o.f.ep, o.b.mem, 3000, o.b.desc, 0xcafef00d, o.to, o.r.base + 9,
			     o.r.key, &o));
	want_written(&o, &o.r, 9, 0, 3000);
	data_arrives(&o, 0xcafef00d);
	peer_same(o.t, 0);
	must(next(&o).ctx == &o, "context");
	msg(&s, &o, 5000, 9000, &o.r, 4000)->data = 0xffffffff;
	must_ok(fi_writemsg(o.f.ep, &s.m, FI_REMOTE_CQ_DATA | FI_COMPLETION));
	want_written(&o, &o.r, 4000, 5000, 9000);
	data_arrives(&o, 0xffffffff);
	peer_same(o.t, 0);
	must(next(&o).ctx == &s, "context");
	own_close(&o);
}

CASE(writedata_of_no_bytes_tells_the_target)
{
	static const struct fab_opt opt;
	struct own o;

	own_open(&o, e, &opt);
	must_ok(fi_writedata(o.f.ep, o.b.mem, 0, o.b.desc, 77, o.to, o.r.base, o.r.key, &o));
	data_arrives(&o, 77);
	must(next(&o).ctx == &o, "context");
	own_close(&o);
}

CASE(writedata_200_in_a_row)
{
	static const struct fab_opt opt;
	struct own o;

	own_open(&o, e, &opt);
	for (uint64_t i = 0; i < 200; i++) {
		ssize_t rc;

		while ((rc = fi_writedata(o.f.ep, o.b.mem + i, 64, o.b.desc, 0xa0000000 + i, o.to,
					  o.r.base + i * 100, o.r.key, &o)) == -FI_EAGAIN)
			fi_cq_read(o.f.cq, NULL, 0);
		must_ok(rc);
		want_written(&o, &o.r, i * 100, i, 64);
	}
	for (uint64_t i = 0; i < 200; i++)
		data_arrives(&o, 0xa0000000 + i);
	for (int i = 0; i < 200; i++)
		must(next(&o).ctx == &o, "context");
	own_close(&o);
}

CASE(refused_writedata_tells_the_target_nothing)
{
	static const struct fab_opt opt;
	struct own o;
	struct done d;

	own_open(&o, e, &opt);
	must_ok(fi_writedata(o.f.ep, o.b.mem, 10, o.b.desc, 99, o.to, o.r.base + SIZE, o.r.key,
			     &o));
	must(fab_done(&o.f, &d, SOON) && d.err == FI_EACCES, "err %d, %s", d.err, d.text);
	must_ok(fi_writedata(o.f.ep, o.b.mem, 10, o.b.desc, 100, o.to, o.r.base, o.r.key, &o));
	want_written(&o, &o.r, 0, 0, 10);
	data_arrives(&o, 100);
	next(&o);
	own_close(&o);
}

/* --- inject
 * ----------------------------------------------------------------------------- */

CASE(injected_buffer_is_free_at_once)
{
	static const struct fab_opt opt;
	struct own o;
	size_t max;

	own_open(&o, e, &opt);
	max = o.f.info->tx_attr->inject_size;
	must(max >= 64, "inject_size %zu", max);
	for (size_t i = 0; i < 20; i++) {
		uint8_t own[4096];
		size_t len = i == 0 ? max : 1 + i * 3;
		ssize_t rc;

		pattern(own, 1, 500 + i, len);
		while ((rc = fi_inject_write(o.f.ep, own, len, o.to, o.r.base + 300 + i * max,
					     o.r.key)) == -FI_EAGAIN)
			fi_cq_read(o.f.cq, NULL, 0);
		must_ok(rc);
		memset(own, 0xee, sizeof(own));
		want_written(&o, &o.r, 300 + i * max, 500 + i, len);
	}
	settle(&o);
	own_close(&o);
}

CASE(inject_flag_frees_the_buffer_and_completes)
{
	static const struct fab_opt opt;
	uint8_t other[60];
	struct own o;
	struct msg s;

	memset(other, 0xee, sizeof(other));
	own_open(&o, e, &opt);
	must_ok(fi_writemsg(o.f.ep, msg(&s, &o, 100, 60, &o.r, 50), FI_INJECT | FI_COMPLETION));
	buf_put(&o.b, 100, other, sizeof(other));
	want_written(&o, &o.r, 50, 100, 60);
	must(next(&o).ctx == &s, "context");
	buf_put(&o.b, 100, o.b.want + 100, sizeof(other));
	settle(&o);
	own_close(&o);
}

CASE(injected_data_tells_the_target)
{
	static const struct fab_opt opt;
	struct own o;

	own_open(&o, e, &opt);
	for (uint64_t i = 0; i < 20; i++) {
		uint8_t own[64];

		pattern(own, 1, 7 * i, 64);
		must_ok(fi_inject_writedata(o.f.ep, own, 64, 0x100 + i, o.to, o.r.base + 200 * i,
					    o.r.key));
		memset(own, 0xee, sizeof(own));
		want_written(&o, &o.r, 200 * i, 7 * i, 64);
		data_arrives(&o, 0x100 + i);
	}
	own_close(&o);
}

CASE(too_large_inject_is_refused)
{
	static const struct fab_opt opt;
	struct own o;
	struct msg s;
	size_t len;
	ssize_t rc;

	own_open(&o, e, &opt);
	len = o.f.info->tx_attr->inject_size + 1;
	rc = fi_inject_write(o.f.ep, o.b.want, len, o.to, o.r.base, o.r.key);
	must(rc == -FI_EINVAL || rc == -FI_EMSGSIZE, "fi_inject_write: %zd", rc);
	rc = fi_inject_writedata(o.f.ep, o.b.want, len, 1, o.to, o.r.base, o.r.key);
	must(rc == -FI_EINVAL || rc == -FI_EMSGSIZE, "fi_inject_writedata: %zd", rc);
	rc = fi_writemsg(o.f.ep, msg(&s, &o, 0, len, &o.r, 0), FI_INJECT);
	must(rc == -FI_EINVAL || rc == -FI_EMSGSIZE, "fi_writemsg: %zd", rc);
	own_close(&o);
}

CASE(refused_inject_is_reported)
{
	static const struct fab_opt opt;
	struct own o;
	struct done d;

	own_open(&o, e, &opt);
	must_ok(fi_inject_write(o.f.ep, o.b.want, 8, o.to, o.r.base + SIZE, o.r.key));
	must(fab_done(&o.f, &d, SOON), "an error without a completion");
	must(d.err == FI_EACCES, "err %d, %s", d.err, d.text);
	settle(&o);
	own_close(&o);
}

/* --- completions
 * ------------------------------------------------------------------------ */

CASE(selective_completion_reports_what_was_asked_for)
{
	struct fab_opt opt = { .cq_flags = FI_SELECTIVE_COMPLETION };
	struct own o;
	struct msg s;
	struct done d;

	own_open(&o, e, &opt);
	must_ok(fi_write(o.f.ep, o.b.mem, 40, o.b.desc, o.to, o.r.base + 100, o.r.key, &o));
	want_written(&o, &o.r, 100, 0, 40);
	must_ok(fi_writemsg(o.f.ep, msg(&s, &o, 40, 40, &o.r, 140), 0));
	want_written(&o, &o.r, 140, 40, 40);
	must_ok(fi_read(o.f.ep, o.b.mem + 900, 40, o.b.desc, o.to, o.r.base + 700, o.r.key, &o));
	want_read(&o, 900, 40, &o.r, 700);
	settle(&o);
	nap(20);
	fab_quiet(&o.f);
	must_ok(fi_write(o.f.ep, o.b.mem, 40, o.b.desc, o.to, o.r.base + SIZE, o.r.key, &d));
	must(fab_done(&o.f, &d, SOON) && d.err == FI_EACCES && d.ctx == &d,
	     "errors are always reported: err %d", d.err);
	own_close(&o);
}

CASE(default_flags_of_the_endpoint_hold_for_plain_calls)
{
	struct fab_opt opt = { .cq_flags = FI_SELECTIVE_COMPLETION, .tx_flags = FI_COMPLETION };
	struct own o;
	struct msg s;

	own_open(&o, e, &opt);
	must_ok(fi_write(o.f.ep, o.b.mem, 40, o.b.desc, o.to, o.r.base + 100, o.r.key, &opt));
	want_written(&o, &o.r, 100, 0, 40);
	must(next(&o).ctx == &opt, "context");
	must_ok(fi_writemsg(o.f.ep, msg(&s, &o, 40, 40, &o.r, 140), 0));
	want_written(&o, &o.r, 140, 40, 40);
	settle(&o);
	nap(20);
	own_close(&o);
}

CASE(completions_of_every_format)
{
	for (int format = FI_CQ_FORMAT_CONTEXT; format <= FI_CQ_FORMAT_TAGGED; format++) {
		struct fab_opt opt = { .format = (enum fi_cq_format)format };
		struct own o;
		struct done d;

		own_open(&o, e, &opt);
		must_ok(fi_write(o.f.ep, o.b.mem, 40, o.b.desc, o.to, o.r.base, o.r.key, &opt));
		want_written(&o, &o.r, 0, 0, 40);
		d = next(&o);
		must(d.ctx == &opt, "context");
		must(format < FI_CQ_FORMAT_MSG || (d.flags & FI_RMA && d.flags & FI_WRITE),
		     "flags of a write 0x%llx", (unsigned long long)d.flags);
		must_ok(fi_read(o.f.ep, o.b.mem + 99, 40, o.b.desc, o.to, o.r.base + 700, o.r.key,
				&o));
		want_read(&o, 99, 40, &o.r, 700);
		d = next(&o);
		must(d.ctx == &o, "context");
		must(format < FI_CQ_FORMAT_MSG || (d.flags & FI_RMA && d.flags & FI_READ),
		     "flags of a read 0x%llx", (unsigned long long)d.flags);
		own_close(&o);
	}
}

CASE(counters_count_successes_and_errors)
{
	struct fab_opt opt = { .counters = true };
	struct own o;
	struct done d;

	own_open(&o, e, &opt);
	for (size_t i = 0; i < 10; i++) {
		must_ok(fi_write(o.f.ep, o.b.mem, 10, o.b.desc, o.to, o.r.base, o.r.key, NULL));
		must_ok(fi_inject_write(o.f.ep, o.b.want, 10, o.to, o.r.base, o.r.key));
	}
	for (size_t i = 0; i < 5; i++)
		must_ok(fi_read(o.f.ep, o.b.mem + 99, 10, o.b.desc, o.to, o.r.base + 700, o.r.key,
				NULL));
	want_written(&o, &o.r, 0, 0, 10);
	want_read(&o, 99, 10, &o.r, 700);
	must_ok(fi_cntr_wait(o.f.wrote, 20, SOON));
	must_ok(fi_cntr_wait(o.f.did_read, 5, SOON));
	for (int i = 0; i < 15; i++)
		next(&o);
	/* One fails while it is waited for, and one before. */
	for (int i = 0; i < 2; i++) {
		must_ok(fi_write(o.f.ep, o.b.mem, 10, o.b.desc, o.to, o.r.base + SIZE, o.r.key,
				 NULL));
		if (i)
			must(fab_done(&o.f, &d, SOON), "no completion");
		must_be(fi_cntr_wait(o.f.wrote, 21, SOON), -FI_EAVAIL);
		must_be(fi_cntr_wait(o.f.wrote, 21, 10), -FI_ETIMEDOUT);
		if (!i)
			must(fab_done(&o.f, &d, SOON), "no completion");
		must(d.err == FI_EACCES, "err %d, %s", d.err, d.text);
	}
	must(fi_cntr_read(o.f.wrote) == 20, "%lu writes", (unsigned long)fi_cntr_read(o.f.wrote));
	must(fi_cntr_readerr(o.f.wrote) == 2, "%lu failed writes",
	     (unsigned long)fi_cntr_readerr(o.f.wrote));
	must(fi_cntr_read(o.f.did_read) == 5 && fi_cntr_readerr(o.f.did_read) == 0,
	     "counter of reads");
	own_close(&o);
}

CASE(completion_levels_and_fence)
{
	static const uint64_t flags[] = { FI_INJECT_COMPLETE,
					  FI_TRANSMIT_COMPLETE,
					  FI_DELIVERY_COMPLETE,
					  FI_FENCE,
					  FI_FENCE | FI_DELIVERY_COMPLETE,
					  FI_MORE,
					  0 };
	static const struct fab_opt opt;
	struct own o;
	struct msg s[7];

	own_open(&o, e, &opt);
	for (size_t i = 0; i < 7; i++) {
		must_ok(fi_writemsg(o.f.ep, msg(&s[i], &o, i * 100, 150, &o.r, i * 80),
				    flags[i] | FI_COMPLETION));
		want_written(&o, &o.r, i * 80, i * 100, 150);
	}
	for (size_t i = 0; i < 7; i++)
		must(next(&o).ctx == &s[i], "completion %zu is another one", i);
	peer_same(o.t, 0);
	must_ok(fi_readmsg(o.f.ep, msg(&s[0], &o, 9000, 70, &o.r2, 80), FI_FENCE | FI_COMPLETION));
	want_read(&o, 9000, 70, &o.r2, 80);
	next(&o);
	own_close(&o);
}

/* A fenced read sees the write before it. */
CASE(fence_waits_for_what_went_before)
{
	static const struct fab_opt opt;
	struct own o;
	struct msg w, r;

	own_open(&o, e, &opt);
	for (size_t i = 0; i < 20; i++) {
		must_ok(fi_writemsg(o.f.ep, msg(&w, &o, i * 500, 400, &o.r, 0), FI_COMPLETION));
		must_ok(fi_readmsg(o.f.ep, msg(&r, &o, 40000 + i * 400, 400, &o.r, 0),
				   FI_FENCE | FI_COMPLETION));
		want_written(&o, &o.r, 0, i * 500, 400);
		buf_want(&o.b, 40000 + i * 400, 400, 1, i * 500);
		next(&o);
		next(&o);
	}
	own_close(&o);
}

/* --- waiting
 * ---------------------------------------------------------------------------- */

CASE(sread_sleeps_until_the_completion_or_the_timeout)
{
	struct fab_opt opt = { .wait = FI_WAIT_UNSPEC };
	struct fi_cq_data_entry c;
	struct own o;
	long start_ms;

	own_open(&o, e, &opt);
	start_ms = now_ms();
	must_be(fi_cq_sread(o.f.cq, &c, 1, NULL, 150), -FI_EAGAIN);
	must(now_ms() - start_ms >= 100 && now_ms() - start_ms < 5000, "%ld ms instead of 150",
	     now_ms() - start_ms);
	for (size_t i = 0; i < 20; i++) {
		must_ok(fi_write(o.f.ep, o.b.mem, 3000, o.b.desc, o.to, o.r.base, o.r.key, &o));
		must_be(fi_cq_sread(o.f.cq, &c, 1, NULL, SOON), 1);
		must(c.op_context == &o, "context");
	}
	want_written(&o, &o.r, 0, 0, 3000);
	own_close(&o);
}

/* Sleeps on the descriptor whenever fi_trywait permits, as fi_cq(3) shows. */
static void fd_wait(struct own *o, int fd, struct fi_cq_data_entry *c)
{
	struct fid *fids[1] = { &o->f.cq->fid };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	long end = now_ms() + SOON;
	ssize_t n;

	while ((n = fi_cq_read(o->f.cq, c, 1)) == -FI_EAGAIN) {
		int rc = fi_trywait(o->f.fabric, fids, 1);

		must(rc == 0 || rc == -FI_EAGAIN, "fi_trywait: %d", rc);
		if (rc == 0)
			must(poll(&p, 1, SOON) == 1, "the descriptor stays silent");
		must(now_ms() < end, "no completion");
	}
	must_be(n, 1);
}

CASE(wait_descriptor_wakes)
{
	struct fab_opt opt = { .wait = FI_WAIT_FD };
	struct fi_cq_data_entry c;
	struct own o;
	int fd = -1;

	own_open(&o, e, &opt);
	must_ok(fi_control(&o.f.cq->fid, FI_GETWAIT, &fd));
	must(fd >= 0, "descriptor %d", fd);
	for (size_t i = 0; i < 20; i++) {
		must_ok(fi_write(o.f.ep, o.b.mem, 3000, o.b.desc, o.to, o.r.base, o.r.key, &o));
		fd_wait(&o, fd, &c);
		must(c.op_context == &o, "context");
	}
	want_written(&o, &o.r, 0, 0, 3000);
	own_close(&o);
}

CASE(refusal_wakes_a_sleeper)
{
	struct fab_opt opt = { .wait = FI_WAIT_UNSPEC };
	struct fi_cq_data_entry c;
	struct own o;
	struct done d;

	own_open(&o, e, &opt);
	must_ok(fi_write(o.f.ep, o.b.mem, 3, o.b.desc, o.to, o.r.base + SIZE, o.r.key, &o));
	must_be(fi_cq_sread(o.f.cq, &c, 1, NULL, SOON), -FI_EAVAIL);
	must(fab_done(&o.f, &d, 0) && d.err == FI_EACCES, "err %d, %s", d.err, d.text);
	own_close(&o);
}

/* --- limits
 * ----------------------------------------------------------------------------- */

/*
 * Progress is the library's: posting again succeeds although nobody takes completions.
 * After a second the CQ is read for progress only.
 */
CASE(posting_600_without_reading_the_cq)
{
	static const struct fab_opt opt;
	struct own o;

	own_open(&o, e, &opt);
	for (uintptr_t i = 0; i < 600; i++) {
		long first = now_ms();
		ssize_t rc;

		while ((rc = fi_write(o.f.ep, o.b.mem + i, 40, o.b.desc, o.to, o.r.base + i * 50,
				      o.r.key, (void *)i)) == -FI_EAGAIN) {
			must(now_ms() - first < SOON, "-FI_EAGAIN for ever");
			if (now_ms() - first > 1000)
				fi_cq_read(o.f.cq, NULL, 0);
			sched_yield();
		}
		must_ok(rc);
		want_written(&o, &o.r, i * 50, i, 40);
	}
	for (uintptr_t i = 0; i < 600; i++)
		must(next(&o).ctx == (void *)i, "completion %lu is another one", (unsigned long)i);
	own_close(&o);
}

CASE(endpoint_closes_with_operations_in_flight)
{
	static const struct fab_opt opt;
	struct own o;

	own_open(&o, e, &opt);
	for (size_t i = 0; i < 50; i++)
		must_ok(fi_write(o.f.ep, o.b.mem, 8000, o.b.desc, o.to, o.r.base, o.r.key, NULL));
	must_ok(fi_close(&o.f.ep->fid));
	o.f.ep = NULL;
	peer_same_outside(o.t, 0, 33, 8000);
	peer_fill(o.t, 0, 2);
	fab_buf_close(&o.b);
	fab_close(&o.f);
}

IN_MODES(MODES_ONE)

CASE(message_over_the_limit_is_refused)
{
	static const struct fab_opt opt;
	struct own o;
	size_t max;

	own_open(&o, e, &opt);
	max = o.f.info->ep_attr->max_msg_size;
	must(max >= 64 * 1024 * 1024, "max_msg_size %zu", max);
	must_be(fi_write(o.f.ep, o.b.mem, max + 1, NULL, o.to, o.r.base, o.r.key, NULL),
		-FI_EMSGSIZE);
	must_be(fi_read(o.f.ep, o.b.mem, max + 1, NULL, o.to, o.r.base, o.r.key, NULL),
		-FI_EMSGSIZE);
	own_close(&o);
}
