/* SPDX-License-Identifier: BSD-2-Clause */
/* Access within one process, other addresses, kinds of address vectors. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/mman.h>
#include "harness.h"

/* A region of f over all of b, as its own process names it. */
struct own {
	struct fid_mr *mr;
	uint64_t addr, key;
};

static struct own own_reg(struct fab *f, struct buf *b, uint64_t access, uint64_t key)
{
	struct own o;

	must_ok(fi_mr_reg(f->domain, b->mem, b->size, access, 0, key, 0, &o.mr, NULL));
	o.key = fi_mr_key(o.mr);
	o.addr = f->virt ? (uintptr_t)b->mem : 0;
	return o;
}

static void move(struct fab *f, bool read, struct buf *b, size_t off, size_t len, fi_addr_t to,
		 const struct own *o, size_t at)
{
	struct op op = { read, b, off, len, to, o->addr + at, o->key, b };
	struct done d;

	op_run(f, &op, &d);
	must(!d.err, "err %d (%s), %s", d.err, fi_strerror(d.err), d.text);
}

/* Writes and reads from f to what g has registered. */
static void exchange(struct fab *f, struct fab *g)
{
	struct buf here, there;
	struct own o;
	fi_addr_t to = fab_insert(f, g->name);

	fab_buf(f, &here, 8192, 1);
	fab_buf(g, &there, 8192, 2);
	o = own_reg(g, &there, REMOTE_RW, 3);
	move(f, WRITE, &here, 10, 3000, to, &o, 77);
	buf_want(&there, 77, 3000, 1, 10);
	move(f, READ, &here, 4000, 3000, to, &o, 4500);
	buf_want(&here, 4000, 3000, 2, 4500);
	buf_same(&here);
	buf_same(&there);
	must_ok(fi_close(&o.mr->fid));
	fab_buf_close(&here);
	fab_buf_close(&there);
}

CASE(endpoint_reaches_its_own_process)
{
	exchange(me(e), me(e));
}

CASE(refused_access_to_itself)
{
	struct buf *b = buf(e, 4096, 1);
	struct op op = { false, b, 0, 8, 0, 0, 0x999999, b };
	struct done d;

	op.to = fab_insert(me(e), me(e)->name);
	op_run(me(e), &op, &d);
	must(d.err == FI_EKEYREJECTED, "err %d, %s", d.err, d.text);
	exchange(me(e), me(e));
}

#define GIB (1ul << 30)
#define SAME (16ul << 20)

/* More than a GiB of address space, which is the same little memory again and again. */
static uint8_t *map_again(void)
{
	int fd = memfd_create("again", MFD_CLOEXEC);
	uint8_t *m = mmap(NULL, GIB + SAME, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(fd >= 0 && m != MAP_FAILED && !ftruncate(fd, SAME), "memory: %m");
	for (size_t at = 0; at < GIB + SAME; at += SAME)
		must(mmap(m + at, SAME, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
			     MAP_FAILED,
		     "mmap: %m");
	close(fd);
	return m;
}

/* Newer kernels take 262144 pages at a time. */
CASE(a_gib_that_begins_inside_a_page_is_one_region_and_one_message)
{
	struct buf *b = buf(e, 8192, 1), again = { .mem = map_again() + 32, .size = GIB + PAGE };
	fi_addr_t to = fab_insert(me(e), me(e)->name);
	struct own o = own_reg(me(e), &again, REMOTE_RW | FI_READ | FI_WRITE, 3);
	size_t border = GIB - 32 - 1000;
	struct op op = { WRITE, &again, 0, GIB, to, 0, 0x999999, b };
	struct done d;

	move(me(e), WRITE, b, 10, 3000, to, &o, border);
	must(!memcmp(again.mem + border, b->mem + 10, 3000), "written to another place");
	move(me(e), READ, b, 4096, 3000, to, &o, border);
	must(!memcmp(again.mem + border, b->mem + 4096, 3000), "read from another place");
	buf_want(b, 4096, 3000, 1, 10);
	again.desc = fi_mr_desc(o.mr);
	op_run(me(e), &op, &d);
	must(d.err == FI_EKEYREJECTED, "err %d, %s", d.err, d.text);
	must_ok(fi_close(&o.mr->fid));
	munmap(again.mem - 32, GIB + SAME);
}

CASE(two_domains_of_one_process)
{
	static const struct fab_opt opt;
	struct fab other;

	fab_open(&other, e->mode, &opt);
	exchange(me(e), &other);
	exchange(&other, me(e));
	fab_close(&other);
	exchange(me(e), me(e));
}

/* Keys belong to a domain: one of another is unknown. */
CASE(key_of_another_domain_is_unknown)
{
	static const struct fab_opt opt;
	struct buf *b = buf(e, 4096, 1);
	struct own o = own_reg(me(e), b, REMOTE_RW, 0x55aa55);
	struct op op = { false, b, 0, 8, 0, o.addr, o.key, b };
	struct fab other;
	struct done d;

	fab_open(&other, e->mode, &opt);
	op.to = fab_insert(me(e), other.name);
	op_run(me(e), &op, &d);
	must(d.err == FI_EKEYREJECTED, "err %d, %s", d.err, d.text);
	must_ok(fi_close(&o.mr->fid));
	fab_close(&other);
}

CASE(read_only_memory_can_be_read_by_a_peer)
{
	fi_addr_t to = fab_insert(me(e), me(e)->name);
	static const char text[5000] = "constant bytes of the program";
	struct buf *b = buf(e, 8192, 1);
	struct fid_mr *mr;
	struct own o;

	must_ok(fi_mr_reg(me(e)->domain, text, sizeof(text), FI_REMOTE_READ, 0, 3, 0, &mr, NULL));
	o = (struct own){ mr, me(e)->virt ? (uintptr_t)text : 0, fi_mr_key(mr) };
	move(me(e), READ, b, 100, sizeof(text), to, &o, 0);
	must(!memcmp(b->mem + 100, text, sizeof(text)), "other bytes arrived");
	must_ok(fi_close(&mr->fid));
}

/* A region of several buffers: packed by offset, or each at its addresses. */
CASE(region_of_several_buffers)
{
	fi_addr_t to = fab_insert(me(e), me(e)->name);
	struct buf *b = buf(e, 16384, 1), *t = buf(e, 16384, 2);
	struct iovec iov[3] = { { t->mem + 3, 1000 },
				{ t->mem + 5000, 2 },
				{ t->mem + 9001, 5000 } };
	struct own o = { 0 };

	must_ok(fi_mr_regv(me(e)->domain, iov, 3, REMOTE_RW, 0, 3, 0, &o.mr, NULL));
	o.key = fi_mr_key(o.mr);
	if (me(e)->virt) {
		move(me(e), WRITE, b, 0, 4000, to, &o, (uintptr_t)t->mem + 9101);
		buf_want(t, 9101, 4000, 1, 0);
	} else {
		move(me(e), WRITE, b, 0, 4000, to, &o, 900);
		buf_want(t, 903, 100, 1, 0);
		buf_want(t, 5000, 2, 1, 100);
		buf_want(t, 9001, 3898, 1, 102);
	}
	buf_same(t);
	must_ok(fi_close(&o.mr->fid));
}

IN_MODES(MODES_ONE)

CASE(address_vector_table_and_map)
{
	static const enum fi_av_type types[] = { FI_AV_TABLE, FI_AV_MAP };
	struct peer *p = target(e);

	for (int i = 0; i < 2; i++) {
		struct fab_opt opt = { .av = types[i] };
		char name[NAME_LEN];
		size_t len = sizeof(name);
		struct fab f;
		fi_addr_t addr;

		fab_open(&f, e->mode, &opt);
		addr = fab_insert(&f, p->name);
		must(types[i] == FI_AV_MAP || addr == 0, "first index of a table");
		must_ok(fi_av_lookup(f.av, addr, name, &len));
		must(len == p->name_len && !memcmp(name, p->name, len), "another address");
		exchange(&f, &f);
		exchange(&f, me(e));
		fab_close(&f);
	}
}

static bool offered(struct env *e, const struct fab_opt *opt)
{
	struct fi_info *info = NULL;
	int rc = fab_info(e->mode, opt, &info);

	fi_freeinfo(info);
	return rc == 0;
}

/* A peer and this process on other addresses than the usual. */
static void elsewhere(struct env *e, const struct fab_opt *opt)
{
	struct peer p;
	struct fab f;
	struct peer_rma rma = { true, 0, 5, 300, 0, 0, 0, 1 };
	struct buf b;
	struct own o;

	fab_open(&f, e->mode, opt);
	exchange(&f, &f);
	peer_start(&p, e->mode, opt);
	fab_buf(&f, &b, 4096, 2);
	o = own_reg(&f, &b, FI_REMOTE_READ, 7);
	peer_alloc(&p, 0, 4096, 1);
	rma.to = peer_insert(&p, f.name, f.name_len);
	rma.addr = o.addr + 1000;
	rma.key = o.key;
	must_ok(peer_rma(&p, &rma));
	peer_want(&p, 0, 5, 300, 2, 1000);
	peer_same(&p, 0);
	peer_stop(&p);
	must_ok(fi_close(&o.mr->fid));
	fab_buf_close(&b);
	fab_close(&f);
}

/* What a program prints must not go into the library's descriptors. */
CASE(descriptors_0_to_2_stay_the_programs)
{
	static const struct fab_opt opt = { .closed = true };
	struct buf *b = buf(e, 65536, 2);
	struct own o = own_reg(me(e), b, REMOTE_RW, 7);
	struct peer_rma rma = { true, 0, 5, 40000, 0, 0, 0, 1 };
	struct peer p;

	peer_start(&p, e->mode, &opt);
	peer_alloc(&p, 0, 65536, 1);
	rma.to = peer_insert(&p, me(e)->name, me(e)->name_len);
	rma.addr = o.addr + 1000;
	rma.key = o.key;
	must_ok(peer_rma(&p, &rma));
	peer_want(&p, 0, 5, 40000, 2, 1000);
	peer_same(&p, 0);
	for (uint64_t fd = 0; fd < 3; fd++)
		must(far_sys(&p, NULL, NULL, (uint64_t[7]){ SYS_fcntl, fd, F_GETFD }) == EBADF,
		     "the peer has a descriptor %lu", (unsigned long)fd);
	peer_stop(&p);
	must_ok(fi_close(&o.mr->fid));
}

CASE(ipv6_addresses_work)
{
	struct fab_opt opt = { .addr_format = FI_SOCKADDR_IN6 };
	const char *node = getenv("MRFAB_FUNC_NODE6");

	snprintf(opt.node, sizeof(opt.node), "%s", node ? node : "");
	if (!offered(e, &opt))
		case_skip("no IPv6 address on the rxe device");
	elsewhere(e, &opt);
}

CASE(second_address_works)
{
	const char *node = getenv("MRFAB_FUNC_NODE2");
	struct fab_opt opt = { 0 }, usual = { 0 };
	struct fab f, g;

	snprintf(opt.node, sizeof(opt.node), "%s", node ? node : "10.99.1.2");
	if (!offered(e, &opt))
		case_skip("%s is not an address of the rxe device", opt.node);
	elsewhere(e, &opt);
	fab_open(&f, e->mode, &opt);
	fab_open(&g, e->mode, &usual);
	exchange(&f, &g);
	exchange(&g, &f);
	fab_close(&f);
	fab_close(&g);
}
