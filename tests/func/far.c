/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include "far.h"

/* --- system calls ------------------------------------------------------------------ */

int far_sys(struct peer *p, uint64_t *result, const char *text, const uint64_t call[7])
{
	struct ctl m = { .cmd = CTL_SYS };

	memcpy(m.a, call, 7 * sizeof(*call));
	snprintf(m.text, sizeof(m.text), "%s", text ? text : "");
	peer_ask(p, &m);
	if (result)
		*result = m.a[0];
	return m.rc;
}

uint64_t far_call_(struct peer *p, const char *what, const uint64_t call[7])
{
	uint64_t result;
	int err = far_sys(p, &result, NULL, call);

	if (err)
		case_fail("at the target: %s: %s", what, strerror(err));
	return result;
}

/* Each on its own, with room around. */
static uint64_t new_place(size_t len)
{
	static uint64_t next = 1ull << 44;
	uint64_t at = next;

	next += (len + (1ull << 32)) & ~((1ull << 32) - 1);
	return at;
}

uint64_t far_map(struct peer *p, uint64_t at, size_t len, int prot, int flags)
{
	flags |= at ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	at = at ? at : new_place(len);
	return far_call(p, SYS_mmap, at, len, (uint64_t)prot, (uint64_t)flags, (uint64_t)-1, 0);
}

uint64_t far_map_fd(struct peer *p, uint64_t at, size_t len, int prot, int flags, int fd)
{
	flags |= at ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	at = at ? at : new_place(len);
	return far_call(p, SYS_mmap, at, len, (uint64_t)prot, (uint64_t)flags, (uint64_t)fd, 0);
}

uint64_t far_hole(size_t len)
{
	return new_place(len);
}

void far_unmap(struct peer *p, uint64_t at, size_t len)
{
	far_call(p, SYS_munmap, at, len);
}

void far_advise(struct peer *p, uint64_t at, size_t len, int advice)
{
	far_call(p, SYS_madvise, at, len, (uint64_t)advice);
}

void far_move(struct peer *p, uint64_t from, size_t len, uint64_t to)
{
	far_call(p, SYS_mremap, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

int far_memfd(struct peer *p, size_t len, unsigned flags)
{
	uint64_t fd;
	int err = far_sys(p, &fd, "func", (uint64_t[7]){ SYS_memfd_create, FAR_TEXT, flags });

	if (err)
		case_fail("memfd_create at the target: %s", strerror(err));
	far_call(p, SYS_ftruncate, fd, len);
	return (int)fd;
}

void far_poke(struct peer *p, uint64_t at, size_t len, uint64_t seed, uint64_t from)
{
	struct ctl m = { .cmd = CTL_POKE, .a = { at, len, seed, from } };

	peer_ask(p, &m);
}

void far_peek(struct peer *p, uint64_t at, size_t len, uint64_t seed, uint64_t from)
{
	struct ctl m = { .cmd = CTL_PEEK, .a = { at, len, seed, from } };

	peer_ask(p, &m);
	if (m.text[0])
		case_fail("target memory: %s", m.text);
}

uint64_t far_pinned(struct peer *p)
{
	struct ctl m = { .cmd = CTL_PINNED };

	peer_ask(p, &m);
	return m.a[0];
}

uint64_t far_stack(struct peer *p, size_t *size)
{
	struct ctl m = { .cmd = CTL_STACK };

	peer_ask(p, &m);
	*size = m.a[1];
	return m.a[0];
}

/* --- regions ----------------------------------------------------------------------- */

int far_try_regv(struct peer *p, const struct iovec *iov, size_t count, uint64_t access,
		 uint64_t key, uint64_t flags, struct region *r)
{
	struct ctl m = { .cmd = CTL_REGV, .a = { count, access, key, flags } };

	if (count * sizeof(*iov) > sizeof(m.text))
		case_fail("too many segments for the harness");
	memcpy(m.text, iov, count * sizeof(*iov));
	peer_ask(p, &m);
	*r = (struct region){ .peer = p, .id = (unsigned)m.a[0], .key = m.a[1], .base = m.a[2] };
	for (size_t i = 0; i < count; i++)
		r->len += iov[i].iov_len;
	return m.rc;
}

int far_try_reg(struct peer *p, uint64_t at, uint64_t len, uint64_t access, uint64_t key,
		struct region *r)
{
	struct iovec iov = { (void *)at, len };

	return far_try_regv(p, &iov, 1, access, key, 0, r);
}

static void step(const char *call, int rc)
{
	if (rc)
		case_fail("%s at the target: %d (%s)", call, rc, fi_strerror(-rc));
}

struct region far_regv(struct peer *p, const struct iovec *iov, size_t count, uint64_t access,
		       uint64_t key)
{
	struct region r;

	step("fi_mr_regv", far_try_regv(p, iov, count, access, key, 0, &r));
	if (p->bits & FI_MR_ENDPOINT) {
		step("fi_mr_bind", far_bind(&r));
		step("fi_mr_enable", far_enable(&r));
	}
	if (p->bits & FI_MR_MMU_NOTIFY)
		step("fi_mr_refresh", far_refresh(&r, NULL, 0, 0));
	far_take_key(&r);
	return r;
}

struct region far_reg(struct peer *p, uint64_t at, uint64_t len, uint64_t access, uint64_t key)
{
	struct iovec iov = { (void *)at, len };

	return far_regv(p, &iov, 1, access, key);
}

int far_bind(const struct region *r)
{
	struct ctl m = { .cmd = CTL_BIND, .a = { r->id } };

	peer_ask(r->peer, &m);
	return m.rc;
}

int far_enable(const struct region *r)
{
	struct ctl m = { .cmd = CTL_ENABLE, .a = { r->id } };

	peer_ask(r->peer, &m);
	return m.rc;
}

int far_refresh(const struct region *r, const struct iovec *iov, size_t count, uint64_t flags)
{
	struct ctl m = { .cmd = CTL_REFRESH, .a = { r->id, count, flags, iov != NULL } };

	if (iov)
		memcpy(m.text, iov, count * sizeof(*iov));
	peer_ask(r->peer, &m);
	return m.rc;
}

uint64_t far_key(const struct region *r, uint64_t *desc)
{
	struct ctl m = { .cmd = CTL_KEY, .a = { r->id } };

	peer_ask(r->peer, &m);
	if (desc)
		*desc = m.a[1];
	return m.a[0];
}

int far_raw(const struct region *r, struct raw *raw)
{
	struct ctl m = { .cmd = CTL_RAW, .a = { r->id, raw->size } };

	if (raw->size > sizeof(raw->bytes))
		case_fail("too large a raw key for the harness");
	peer_ask(r->peer, &m);
	raw->size = m.a[0];
	raw->base = m.a[1];
	memcpy(raw->bytes, m.text, sizeof(raw->bytes));
	return m.rc;
}

void far_take_key(struct region *r)
{
	struct raw raw = { .size = sizeof(raw.bytes) };

	if (!(r->peer->bits & FI_MR_RAW)) {
		r->key = far_key(r, NULL);
		return;
	}
	step("fi_mr_raw_attr", far_raw(r, &raw));
	r->key = fab_map(r->peer->mapper, raw.base, raw.bytes, raw.size);
}

/* --- accesses ---------------------------------------------------------------------- */

struct done far_access(struct env *e, bool read, struct buf *b, size_t off, size_t len,
		       const struct region *r, uint64_t at)
{
	struct op op = op_make(e, read, b, off, len, r, at);
	struct done d;

	op_run(r->peer->mapper, &op, &d);
	return d;
}

static void went(const struct done *d, const char *what, size_t len, uint64_t at)
{
	if (d->err)
		case_fail("%s of %zu bytes at 0x%lx: err %d (%s), %s", what, len, (unsigned long)at,
			  d->err, fi_strerror(d->err), d->text);
}

void far_lands(struct env *e, struct buf *b, size_t off, size_t len, const struct region *r,
	       uint64_t at, uint64_t addr)
{
	struct done d = far_access(e, WRITE, b, off, len, r, at);

	went(&d, "write", len, at);
	far_peek(r->peer, addr, len, b->seed, off);
}

void far_brings(struct env *e, struct buf *b, size_t off, size_t len, const struct region *r,
		uint64_t at, uint64_t seed, uint64_t from)
{
	struct done d = far_access(e, READ, b, off, len, r, at);

	went(&d, "read", len, at);
	if (seed)
		buf_want(b, off, len, seed, from);
	else
		memset(b->want + off, 0, len);
	buf_same(b);
	buf_fill(b, b->seed);
}

static bool has_word(const char *text, const char *words)
{
	char copy[200], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save)) {
		if (strcasestr(text, w))
			return true;
	}
	return false;
}

void far_refused(struct env *e, bool read, struct buf *b, size_t len, const struct region *r,
		 uint64_t at, int err, const char *words)
{
	struct done d = far_access(e, read, b, 64, len, r, at);

	if (!d.err)
		case_fail("%s of %zu bytes at 0x%lx went through", read ? "a read" : "a write", len,
			  (unsigned long)at);
	if (d.err != err)
		case_fail("err %d (%s) instead of %d (%s); %s", d.err, fi_strerror(d.err), err,
			  fi_strerror(err), d.text);
	if (!has_word(d.text, words))
		case_fail("reason \"%s\" has none of %s", d.text, words);
	buf_same(b);
}
