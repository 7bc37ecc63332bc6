/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_PROFILE on a device: two processes in each profile. The modes come back that the provider
 * requires, a region takes the steps that these demand, its bytes are read and written, and everything
 * else is refused: rights, bounds, keys that are too great, and segments that are too many. What is
 * expected is written down here once more, not taken from the library.
 */
#include "harness.h"

#define LEN 9000ul
#define OFF (PAGE + 77) /* of the region in its slot */
#define KEY 70
#define VAK (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define CXI (FI_MR_ENDPOINT | FI_MR_ALLOCATED)

/* usnic has no accesses, and netdir does not register what the harness does. */
static const struct expected {
	const char *name;
	int bits;
	int segments; /* what two of them are answered with */
	uint64_t too_great;
	uint32_t format; /* of addresses */
	bool no_tables;	 /* address vectors are maps */
} profiles[] = {
	{ "verbs", VAK | FI_MR_LOCAL, -FI_EINVAL, 0, FI_SOCKADDR_IN, false },
	{ "verbs-rxm", VAK | FI_MR_LOCAL, -FI_EINVAL, 0, FI_SOCKADDR_IN, false },
	{ "efa", VAK, -FI_EINVAL, 0, FI_ADDR_EFA, false },
	{ "efa-direct", VAK | FI_MR_LOCAL, -FI_EINVAL, 0, FI_ADDR_EFA, false },
	{ "cxi-client", CXI, -FI_ENOSYS, 1ull << 32, FI_ADDR_CXI, false },
	{ "cxi-prov", CXI | FI_MR_PROV_KEY, -FI_ENOSYS, 0, FI_ADDR_CXI, false },
	{ "cxi-odp", FI_MR_ENDPOINT | FI_MR_PROV_KEY, -FI_ENOSYS, 0, FI_ADDR_CXI, false },
	{ "ucx", VAK | FI_MR_RAW, -FI_EINVAL, 0, FI_SOCKADDR_IN, true },
	{ "mrail", FI_MR_RAW, -FI_EINVAL, 0, FI_SOCKADDR_IN, false },
	{ "tcp", 0, -FI_EINVAL, 0, FI_SOCKADDR_IN, false },
	{ "tcp+lenient", 0, -FI_EINVAL, 0, FI_SOCKADDR_IN, false },
	{ "tcp-rxm", 0, -FI_EINVAL, 0, FI_SOCKADDR_IN, false },
	{ "sockets", 0, 0, 0, FI_SOCKADDR_IN, false },
	{ "rxd", 0, -FI_EINVAL, 0, FI_SOCKADDR_IN, false },
	{ "shm", 0, 0, 0, FI_ADDR_STR, false },
	{ "shm-fast", FI_MR_VIRT_ADDR, 0, 0, FI_ADDR_STR, false },
	{ "psm2", 0, 0, 0, FI_ADDR_PSMX2, false },
	{ "psm3", 0, 0, 0, FI_ADDR_PSMX3, false },
	{ "opx", 0, -FI_EINVAL, 0, FI_ADDR_OPX, false },
	{ "gni", FI_MR_MMU_NOTIFY, -FI_EOPNOTSUPP, 0, FI_SOCKADDR_IN, false },
	{ "gni-basic", VAK, -FI_EOPNOTSUPP, 0, FI_SOCKADDR_IN, false },
	{ "bgq", 0, -FI_ENOSYS, 1ull << 16, FI_SOCKADDR_IN, false },
	{ "lpp", VAK, -FI_EINVAL, 0, FI_SOCKADDR_IN, true },
	{ "rma-event", FI_MR_RMA_EVENT, 0, 0, FI_SOCKADDR_IN, false },
};
#define NPROFILES (sizeof(profiles) / sizeof(profiles[0]))

struct scene {
	struct env *e;
	const struct expected *want;
	struct mode mode;
	struct fab fab;
	struct peer *p;
	struct buf b;
	struct region r;
	uint64_t at; /* of the slot, at the peer */
};

static bool has(const struct scene *s, int bits)
{
	return (s->want->bits & bits) == bits;
}

static void open_both(struct scene *s)
{
	const struct fab_opt opt = { .addr_format = s->want->format,
				     .av = s->want->no_tables ? FI_AV_MAP : FI_AV_TABLE };

	fab_open(&s->fab, &s->mode, &opt);
	must(s->fab.info->addr_format == opt.addr_format, "addr_format %u came back",
	     s->fab.info->addr_format);
	must(s->fab.bits == (uint64_t)s->want->bits, "mr_mode %#lx came back instead of %#x",
	     (unsigned long)s->fab.bits, (unsigned)s->want->bits);
	s->p = &s->e->peer[0];
	if (s->p->up)
		peer_reopen(s->p, &s->mode, &opt);
	else
		peer_start(s->p, &s->mode, &opt);
	must(s->p->bits == (uint64_t)s->want->bits, "the peer was granted %#lx",
	     (unsigned long)s->p->bits);
	s->p->mapper = &s->fab;
	s->p->addr = fab_insert(&s->fab, s->p->name);
	fab_buf(&s->fab, &s->b, 8 * PAGE, 1);
	s->at = far_map(s->p, 0, 4 * PAGE, RW, ANON);
	far_poke(s->p, s->at, 4 * PAGE, 2, 0);
}

/* As far as a program of that provider goes until it sends the key away. */
static struct region ready(struct scene *s, size_t off, size_t len, uint64_t access, uint64_t key)
{
	struct iovec all = { (void *)(s->at + off), len };
	struct region r;

	must_ok(far_try_reg(s->p, s->at + off, len, access, key, &r));
	if (has(s, FI_MR_ENDPOINT)) {
		bool own = !has(s, FI_MR_PROV_KEY);

		must((far_key(&r, NULL) == FI_KEY_NOTAVAIL) == !own, "key %#lx before fi_mr_enable",
		     (unsigned long)far_key(&r, NULL));
		must_ok(far_bind(&r));
		must_ok(far_enable(&r));
	}
	if (has(s, FI_MR_MMU_NOTIFY))
		must_ok(far_refresh(&r, &all, 1, 0));
	if (!has(s, FI_MR_PROV_KEY) && !has(s, FI_MR_RAW))
		must(far_key(&r, NULL) == key, "key %#lx instead of the requested one",
		     (unsigned long)far_key(&r, NULL));
	far_take_key(&r);
	return r;
}

static void accesses(struct scene *s)
{
	far_lands(s->e, &s->b, 300, 5000, &s->r, 1000, s->at + OFF + 1000);
	far_lands(s->e, &s->b, 0, 1, &s->r, LEN - 1, s->at + OFF + LEN - 1);
	far_brings(s->e, &s->b, PAGE + 5, 5000, &s->r, 1000, 1, 300);
	far_brings(s->e, &s->b, PAGE + 5, 700, &s->r, 0, 2, OFF);
}

static void refusals(struct scene *s)
{
	struct region ro = ready(s, OFF, LEN, FI_REMOTE_READ, KEY + 1), r;
	struct iovec two[2] = { { (void *)s->at, PAGE }, { (void *)(s->at + PAGE), PAGE } };

	far_refused(s->e, WRITE, &s->b, 100, &ro, 0, FI_EACCES, "FI_REMOTE_WRITE");
	far_brings(s->e, &s->b, 9, 90, &ro, 0, 2, OFF);
	peer_unreg(&ro);
	far_refused(s->e, WRITE, &s->b, 100, &s->r, LEN - 99, FI_EACCES, "past|beyond|outside");
	must_be(far_try_regv(s->p, two, 2, REMOTE_RW, KEY + 2, 0, &r), s->want->segments);
	if (!s->want->segments)
		peer_unreg(&r);
	if (s->want->too_great) {
		must_be(far_try_reg(s->p, s->at, PAGE, REMOTE_RW, s->want->too_great, &r),
			-FI_EKEYREJECTED);
		must_ok(far_try_reg(s->p, s->at, PAGE, REMOTE_RW, s->want->too_great - 1, &r));
		peer_unreg(&r);
	}
}

/* No byte beside those of accesses() has changed. */
static void close_both(struct scene *s)
{
	peer_unreg(&s->r);
	far_refused(s->e, READ, &s->b, 100, &s->r, 0, FI_EKEYREJECTED, "closed");
	far_peek(s->p, s->at, OFF + 1000, 2, 0);
	far_peek(s->p, s->at + OFF + 6000, LEN - 6001, 2, OFF + 6000);
	far_peek(s->p, s->at + OFF + LEN, 4 * PAGE - OFF - LEN, 2, OFF + LEN);
	far_unmap(s->p, s->at, 4 * PAGE);
	fab_quiet(&s->fab);
	fab_buf_close(&s->b);
	fab_close(&s->fab);
	peer_shut(s->p);
}

IN_MODES(MODES_ONE)

/* verbs; the others follow under this name and their own. */
CASE(bytes_are_reached_and_mistakes_refused)
{
	static struct scene s;
	static char required[64];

	s = (struct scene){ .e = e, .want = &profiles[case_number] };
	snprintf(required, sizeof(required), "profile:%s", s.want->name);
	s.mode = (struct mode){ s.want->name, FI_VERSION(1, 17), MR_BITS, required, 0 };
	case_note(s.want->name);
	open_both(&s);
	s.r = ready(&s, OFF, LEN, REMOTE_RW, KEY);
	accesses(&s);
	refusals(&s);
	close_both(&s);
}

static void __attribute__((constructor)) add_profiles(void)
{
	static char names[NPROFILES][80];

	/* func-memory-except leaves out the first. */
	if (getenv("MRFAB_FUNC_MEMORY"))
		return;
	case_modes(MODES_ONE);
	for (unsigned i = 1; i < NPROFILES; i++) {
		snprintf(names[i], sizeof(names[i]), "bytes_are_reached_and_mistakes_refused(%s)",
			 profiles[i].name);
		case_add_number(names[i], __FILE__, bytes_are_reached_and_mistakes_refused, i);
	}
}
