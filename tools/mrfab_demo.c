/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes and the regions that one of them registers: what fi_mr(3) promises, step
 * by step, through libfabric's public interface only. The target registers memory and makes
 * no call for what follows; the initiator reads and writes that memory, oversteps it, and
 * finds it closed. Every byte is compared, those around the region too.
 *
 * Also an example to start from: open_side(), register_for_peer() and access_peer() are
 * what any program with one-sided access needs. What the two tell each other (names, keys,
 * whose turn it is) goes over a socket pair; a real program has its own channel for that.
 *
 * Usage: mrfab_demo [--native]    exit status 0: every step was as promised
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define LEN 4096    /* bytes of a region */
#define AROUND 1000 /* bytes before and after it that nobody may touch */
#define WAIT_MS 30000
#define GIVE_UP_S 120

static const char *role = "demo";
static int other;	/* socket to the other process */
static size_t verified; /* bytes compared here */

#define say(fmt, ...)                                           \
	do {                                                    \
		printf("%-9s  " fmt "\n", role, ##__VA_ARGS__); \
		fflush(stdout);                                 \
	} while (0)

#define die(fmt, ...)                                                              \
	do {                                                                       \
		fprintf(stderr, "mrfab_demo: %s: " fmt "\n", role, ##__VA_ARGS__); \
		_exit(1);                                                          \
	} while (0)

/* For calls of which the demonstration needs success. */
static void must(const char *call, ssize_t ret)
{
	if (ret)
		die("%s: %s", call, fi_strerror((int)-ret));
}

static void tell(const void *what, size_t len)
{
	if (send(other, what, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("cannot tell the other process: %s", strerror(errno));
}

static void hear(void *what, size_t len)
{
	if (recv(other, what, len, MSG_WAITALL) != (ssize_t)len)
		die("the other process is gone");
}

static void my_turn(void)
{
	char go;

	hear(&go, sizeof(go));
}

static void your_turn(void)
{
	tell("", 1);
}

/* The target does what comes next in its list and says when it is done. */
static void target_turn(void)
{
	your_turn();
	my_turn();
}

/* --- bytes that tell where they belong -------------------------------------------- */

enum { SEED_NONE, SEED_FIRST, SEED_WRITTEN, SEED_OTHER, SEED_REFUSED };

static uint8_t pattern(unsigned seed, size_t i)
{
	return seed ? (uint8_t)(seed * 59 + i * 7 + (i >> 8) * 13) : 0;
}

static void fill(uint8_t *buf, unsigned seed)
{
	for (size_t i = 0; i < LEN; i++)
		buf[i] = pattern(seed, i);
}

static void compare(const char *what, const uint8_t *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] != pattern(seed, i))
			die("%s: byte %zu differs", what, i);
	verified += len;
}

/* --- opening: the same on both sides ---------------------------------------------- */

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

/* mr_mode: what this program can live with. What is left of it in info, it has to do. */
static struct fi_info *find_provider(int mr_mode)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	if (!hints)
		die("no memory");
	hints->caps = FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = mr_mode;
	hints->fabric_attr->prov_name = strdup("mrfab");
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void open_side(struct side *s, int mr_mode)
{
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC };

	s->info = find_provider(mr_mode);
	must("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	must("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
	must("fi_av_open", fi_av_open(s->domain, &av_attr, &s->av, NULL));
	must("fi_cq_open", fi_cq_open(s->domain, &cq_attr, &s->cq, NULL));
	must("fi_endpoint", fi_endpoint(s->domain, s->info, &s->ep, NULL));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(s->ep));
}

/* An endpoint goes before what is bound to it, children before their parents. */
static void close_side(struct side *s)
{
	struct fid *fids[] = { &s->ep->fid, &s->cq->fid, &s->av->fid, &s->domain->fid,
			       &s->fabric->fid };

	for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		must("fi_close", fi_close(fids[i]));
	fi_freeinfo(s->info);
}

/* --- the target ------------------------------------------------------------------- */

/* A region amid bytes that do not belong to it. */
struct area {
	uint8_t before[AROUND];
	uint8_t region[LEN];
	uint8_t after[AROUND];
};

/* What a peer has to know of a region. */
struct offer {
	uint64_t key;
	uint64_t addr; /* of the first byte, as the peer must name it */
};

/* key counts only where keys are ours to choose, that is without FI_MR_PROV_KEY. */
static struct fid_mr *register_for_peer(const struct side *s, uint8_t *buf, uint64_t key)
{
	struct offer offer;
	struct fid_mr *mr;

	must("fi_mr_reg", fi_mr_reg(s->domain, buf, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key,
				    0, &mr, NULL));
	offer.key = fi_mr_key(mr);
	offer.addr = 0;
	if (s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		offer.addr = (uintptr_t)buf;
	say("registers %d bytes at %p: access FI_REMOTE_READ|FI_REMOTE_WRITE, key %#lx, "
	    "first byte at %#lx for peers",
	    LEN, (void *)buf, (unsigned long)offer.key, (unsigned long)offer.addr);
	tell(&offer, sizeof(offer));
	return mr;
}

/* When the initiator says so: compares the region with seed, and what is around it. */
static void look(const struct area *a, unsigned seed, const char *what)
{
	my_turn();
	compare("before the region", a->before, AROUND, SEED_NONE);
	compare("the region", a->region, LEN, seed);
	compare("after the region", a->after, AROUND, SEED_NONE);
	say("%s", what);
	your_turn();
}

static void target_steps(const struct side *s)
{
	static struct area one, two;
	struct fid_mr *mr;

	fill(one.region, SEED_FIRST);
	fill(two.region, SEED_OTHER);
	mr = register_for_peer(s, one.region, 0x5eed);
	look(&one, SEED_WRITTEN,
	     "finds the written bytes in the region, and nothing around it changed");
	look(&one, SEED_WRITTEN, "finds nothing changed in the region or around it");

	my_turn();
	must("fi_close", fi_close(&mr->fid));
	say("closes the region");
	your_turn();
	look(&one, SEED_WRITTEN, "finds nothing changed in what was the region");

	mr = register_for_peer(s, two.region, 0x5eee);
	look(&two, SEED_WRITTEN, "finds the written bytes in the other region");
	must("fi_close", fi_close(&mr->fid));
}

static void target(int mr_mode)
{
	char name[64] = "";
	size_t len = sizeof(name);
	struct side s;

	open_side(&s, mr_mode);
	must("fi_getname", fi_getname(&s.ep->fid, name, &len));
	tell(name, sizeof(name));
	target_steps(&s);
	close_side(&s);
	tell(&verified, sizeof(verified));
}

/* --- the initiator ---------------------------------------------------------------- */

struct initiator {
	struct side side;
	fi_addr_t target;
	struct offer peer;    /* the region that the target offers now */
	uint8_t buf[LEN];     /* bytes go from here or come here */
	struct fid_mr *local; /* of buf; NULL unless FI_MR_LOCAL asks for it */
	void *desc;
	char why[256]; /* reason of the last refusal */
};

enum access { READ, WRITE };

/* Waits for one completion. 0, or the FI_E* with which the access failed. */
static int take_completion(struct initiator *me)
{
	struct fi_cq_err_entry err = { .err_data = me->why, .err_data_size = sizeof(me->why) - 1 };
	struct fi_cq_entry done;
	ssize_t ret = fi_cq_sread(me->side.cq, &done, 1, NULL, WAIT_MS);

	if (ret == 1)
		return 0;
	if (ret != -FI_EAVAIL || fi_cq_readerr(me->side.cq, &err, 0) != 1)
		die("no completion came: %s", fi_strerror((int)-ret));
	me->why[err.err_data_size] = 0;
	return err.err;
}

/* Moves LEN bytes between buf and the peer's region, there from byte `at` on. */
static int access_peer(struct initiator *me, enum access kind, uint64_t at)
{
	uint64_t addr = me->peer.addr + at, key = me->peer.key;
	struct fid_ep *ep = me->side.ep;
	ssize_t ret;

	do {
		ret = kind == READ
			      ? fi_read(ep, me->buf, LEN, me->desc, me->target, addr, key, NULL)
			      : fi_write(ep, me->buf, LEN, me->desc, me->target, addr, key, NULL);
	} while (ret == -FI_EAGAIN); /* no room just now */
	must(kind == READ ? "fi_read" : "fi_write", ret);
	return take_completion(me);
}

static void read_all(struct initiator *me, unsigned seed)
{
	memset(me->buf, 0, LEN);
	if (access_peer(me, READ, 0))
		die("fi_read was refused: %s", me->why);
	compare("what was read", me->buf, LEN, seed);
	say("reads the region with fi_read: all %d bytes match the target's", LEN);
}

static void write_all(struct initiator *me)
{
	fill(me->buf, SEED_WRITTEN);
	if (access_peer(me, WRITE, 0))
		die("fi_write was refused: %s", me->why);
	say("writes %d other bytes with fi_write", LEN);
	target_turn();
}

static void write_refused(struct initiator *me, uint64_t at, int wanted, const char *name)
{
	int err;

	fill(me->buf, SEED_REFUSED);
	me->why[0] = 0;
	err = access_peer(me, WRITE, at);
	if (err != wanted || !me->why[0])
		die("not refused with %s but: %d \"%s\"", name, err, me->why);
	say("is refused: %s \"%s\"", name, me->why);
	target_turn();
}

static void initiator_steps(struct initiator *me)
{
	hear(&me->peer, sizeof(me->peer));
	read_all(me, SEED_FIRST);
	write_all(me);

	say("writes %d bytes from byte 1 on, one byte past the end", LEN);
	write_refused(me, 1, FI_EACCES, "FI_EACCES");
	read_all(me, SEED_WRITTEN);

	target_turn();
	say("writes to the closed region");
	write_refused(me, 0, FI_EKEYREJECTED, "FI_EKEYREJECTED");

	hear(&me->peer, sizeof(me->peer));
	read_all(me, SEED_OTHER);
	write_all(me);
}

static void initiator(int mr_mode)
{
	static struct initiator me;
	size_t theirs;
	char name[64];

	open_side(&me.side, mr_mode);
	hear(name, sizeof(name));
	if (fi_av_insert(me.side.av, name, 1, &me.target, 0, NULL) != 1)
		die("fi_av_insert does not take the target's name");
	if (me.side.info->domain_attr->mr_mode & FI_MR_LOCAL) {
		must("fi_mr_reg", fi_mr_reg(me.side.domain, me.buf, LEN, FI_READ | FI_WRITE, 0, 0,
					    0, &me.local, NULL));
		me.desc = fi_mr_desc(me.local);
	}
	initiator_steps(&me);
	if (me.local)
		must("fi_close", fi_close(&me.local->fid));
	close_side(&me.side);
	hear(&theirs, sizeof(theirs));
	say("all as promised: %zu bytes compared here, %zu at the target", verified, theirs);
}

/* Forks before any call of libfabric: what is open does not survive a fork. */
static pid_t split(void)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || (pid = fork()) < 0)
		die("cannot start another process: %s", strerror(errno));
	role = pid ? "initiator" : "target";
	other = pair[!pid];
	close(pair[!!pid]);
	alarm(GIVE_UP_S);
	say("is process %d", (int)getpid());
	return pid;
}

int main(int argc, char **argv)
{
	int mr_mode = 0, status;
	pid_t pid;

	if (argc > 1 && strcmp(argv[1], "--native"))
		die("usage: mrfab_demo [--native]");
	if (argc > 1)
		mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	pid = split();
	if (pid)
		initiator(mr_mode);
	else
		target(mr_mode);
	if (pid && (waitpid(pid, &status, 0) != pid || status))
		die("the target did not end well");
	return 0;
}
