/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <grp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "atomics.h"
#include "far.h"
#include "placed.h"
#include "serve.h"

#define MAX_REGIONS 16384
#define WINDOW 32 /* operations in flight */
#define STACK_AREA (64 * 1024)

static struct fab fab;
static struct buf slots[SLOTS];
static struct fid_mr *regions[MAX_REGIONS];
static unsigned nregions;
static int control;

/* A failure here is a failure of the case: the driver hears the text and reports it. */
static void tell_failure(const char *text)
{
	struct ctl m = { .cmd = CTL_QUIT, .rc = -1 };

	snprintf(m.text, sizeof(m.text), "%s", text);
	ctl_send(control, &m);
	_exit(1);
}

/* What cannot be taken back comes before anything of the library. */
static void become(const struct ctl *m, const struct ctl_open *o)
{
	struct rlimit lock = { m->a[5], m->a[5] };

	if (o->monitor[0])
		setenv("FI_MR_CACHE_MONITOR", o->monitor, 1);
	if (m->a[5])
		must(!setrlimit(RLIMIT_MEMLOCK, &lock), "setrlimit: %s", strerror(errno));
	if (m->a[4])
		must(!setgroups(0, NULL) && !setgid((gid_t)m->a[4]) && !setuid((uid_t)m->a[4]),
		     "cannot become user %lu: %s", (unsigned long)m->a[4], strerror(errno));
	for (int fd = 0; fd < 3 && m->a[7]; fd++)
		close(fd);
	/* Both are reset with the user, and an ordinary program of his has them. */
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void do_open(struct ctl *m)
{
	static struct mode mode;
	static struct ctl_open o;
	struct fab_opt opt = { .addr_format = (uint32_t)m->a[3] };

	memcpy(&o, m->text, sizeof(o));
	opt.av = o.av;
	memcpy(opt.node, o.node, sizeof(opt.node));
	memcpy(opt.auth_key, o.auth_key, sizeof(opt.auth_key));
	mode = (struct mode){ "served", (uint32_t)m->a[0], (int)m->a[1],
			      m->a[2] ? o.required : NULL, m->a[6] };
	become(m, &o);
	fab_open(&fab, &mode, &opt);
	m->a[0] = fab.name_len;
	m->a[1] = (uint64_t)getpid();
	m->a[2] = fab.bits;
	memcpy(m->text, fab.name, sizeof(fab.name));
}

static void do_close(struct ctl *m)
{
	struct fid_mr **mr = &regions[m->a[0]];

	m->rc = fab_mr_close(&fab, *mr);
	if (!m->rc)
		*mr = NULL;
	while (nregions && !regions[nregions - 1])
		nregions--;
}

static void do_reset(struct ctl *m)
{
	struct done d;

	for (unsigned i = 0; i < nregions; i++) {
		if (regions[i])
			must_ok(fab_mr_close(&fab, regions[i]));
		regions[i] = NULL;
	}
	nregions = 0;
	for (int i = 0; i < SLOTS; i++)
		fab_buf_close(&slots[i]);
	m->a[0] = 0;
	while (fab.cq && fab_poll(&fab, &d))
		m->a[0]++;
}

static void do_alloc(struct ctl *m)
{
	fab_buf_close(&slots[m->a[0]]);
	fab_buf(&fab, &slots[m->a[0]], m->a[1], m->a[2]);
}

static void do_diff(struct ctl *m)
{
	const char *text = buf_diff_outside(&slots[m->a[0]], m->a[1], m->a[2]);

	snprintf(m->text, sizeof(m->text), "%s", text ? text : "");
}

static int reg(const struct ctl *m, struct iovec *iov, struct fid_mr **mr)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 1, .access = m->a[3], .requested_key = m->a[4]
	};

	if (slots[m->a[0]].rig)
		return fab_reg(&fab, &slots[m->a[0]], iov, m->a[3], m->a[4], mr);
	if (m->a[5] == REG_V)
		return fi_mr_regv(fab.domain, iov, 1, m->a[3], 0, m->a[4], 0, mr, NULL);
	if (m->a[5] == REG_ATTR)
		return fi_mr_regattr(fab.domain, &attr, 0, mr);
	return fi_mr_reg(fab.domain, iov->iov_base, iov->iov_len, m->a[3], 0, m->a[4], 0, mr, NULL);
}

/* Something to name the region by in an answer. */
static void region_keep(struct ctl *m, struct fid_mr *mr, const struct iovec *iov)
{
	regions[nregions] = mr;
	m->a[0] = nregions++;
	m->a[1] = fi_mr_key(mr);
	m->a[2] = fab.virt ? (uint64_t)(uintptr_t)iov->iov_base : 0;
}

/* The size, 0 when there is none: a region without remote rights. */
static size_t raw_get(struct ctl *m, struct fid_mr *mr)
{
	size_t size = sizeof(m->text);
	uint64_t base;

	return fi_mr_raw_attr(mr, &base, (uint8_t *)m->text, &size, 0) ? 0 : size;
}

/* Ready to be accessed, whatever the mode asks for. */
static void do_reg(struct ctl *m)
{
	struct iovec iov = { slots[m->a[0]].mem + m->a[1], m->a[2] };
	struct fid_mr *mr = NULL;

	must(nregions < MAX_REGIONS, "too many regions for the harness");
	m->rc = reg(m, &iov, &mr);
	if (m->rc)
		return;
	fab_ready(&fab, mr);
	region_keep(m, mr, &iov);
	m->a[3] = fab.bits & FI_MR_RAW ? raw_get(m, mr) : 0;
}

/* --- step by step, and by address: far.h -------------------------------------- */

/* As it is after fi_mr_regv. */
static void do_regv(struct ctl *m)
{
	struct iovec iov[sizeof(m->text) / sizeof(struct iovec)];
	struct fid_mr *mr = NULL;

	must(nregions < MAX_REGIONS, "too many regions for the harness");
	memcpy(iov, m->text, m->a[0] * sizeof(*iov));
	if (m->a[0] == 1)
		m->rc = fi_mr_reg(fab.domain, iov->iov_base, iov->iov_len, m->a[1], 0, m->a[2],
				  m->a[3], &mr, NULL);
	else
		m->rc = fi_mr_regv(fab.domain, iov, m->a[0], m->a[1], 0, m->a[2], m->a[3], &mr,
				   NULL);
	if (!m->rc)
		region_keep(m, mr, iov);
}

static void do_refresh(struct ctl *m)
{
	struct iovec iov[sizeof(m->text) / sizeof(struct iovec)];

	memcpy(iov, m->text, sizeof(iov));
	m->rc = fi_mr_refresh(regions[m->a[0]], m->a[3] ? iov : NULL, m->a[1], m->a[2]);
}

static void do_key(struct ctl *m)
{
	struct fid_mr *mr = regions[m->a[0]];

	m->a[0] = fi_mr_key(mr);
	m->a[1] = (uint64_t)(uintptr_t)fi_mr_desc(mr);
}

static void do_raw(struct ctl *m)
{
	size_t size = m->a[1];
	uint64_t base = 0;

	m->rc = fi_mr_raw_attr(regions[m->a[0]], &base, size ? (uint8_t *)m->text : NULL, &size, 0);
	m->a[0] = size;
	m->a[1] = base;
}

/* An argument that is FAR_TEXT stands for the text of the message. */
static void do_sys(struct ctl *m)
{
	long rc;

	for (int i = 1; i < 7; i++) {
		if (m->a[i] == FAR_TEXT)
			m->a[i] = (uint64_t)(uintptr_t)m->text;
	}
	errno = 0;
	rc = syscall((long)m->a[0], m->a[1], m->a[2], m->a[3], m->a[4], m->a[5], m->a[6]);
	m->rc = rc == -1 ? errno : 0;
	m->a[0] = (uint64_t)rc;
}

/* In pieces: the memory may be all that there is. */
static void do_poke(struct ctl *m)
{
	pattern((void *)m->a[0], m->a[2], m->a[3], m->a[1]);
}

static void do_peek(struct ctl *m)
{
	const uint8_t *at = (const uint8_t *)m->a[0];
	uint8_t want[4096];

	m->text[0] = 0;
	for (uint64_t i = 0; i < m->a[1]; i += sizeof(want)) {
		size_t n = m->a[1] - i < sizeof(want) ? m->a[1] - i : sizeof(want);

		if (m->a[2])
			pattern(want, m->a[2], m->a[3] + i, n);
		else
			memset(want, 0, n);
		for (size_t j = 0; j < n; j++) {
			if (at[i + j] == want[j])
				continue;
			snprintf(m->text, sizeof(m->text),
				 "byte %lu of %lu at %p is 0x%02x instead of 0x%02x",
				 (unsigned long)(i + j), (unsigned long)m->a[1], at, at[i + j],
				 want[j]);
			return;
		}
	}
}

static void do_heap(struct ctl *m)
{
	m->a[0] = heap_used();
}

static void do_pinned(struct ctl *m)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long kb;
	char line[256];

	m->a[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmPin: %lu", &kb) == 1)
			m->a[0] = kb;
	}
	if (f)
		fclose(f);
}

static void take(uint64_t *flying, struct ctl *m, int wait)
{
	struct done d;

	must(fab_done(&fab, &d, wait), "no completion after %d ms", wait);
	(*flying)--;
	if (!d.err || m->a[0])
		return;
	m->a[0] = (uint64_t)d.err;
	snprintf(m->text, sizeof(m->text), "%s", d.text);
}

static void do_rma(struct ctl *m)
{
	struct op op = {
		m->a[0], &slots[m->a[1]], m->a[2], m->a[3], m->a[4], m->a[5], m->a[6], NULL
	};
	uint64_t count = m->a[7], flying = 0;
	int wait = op_patience(&op);
	ssize_t rc;

	m->a[0] = 0;
	for (uint64_t i = 0; i < count && !m->a[0]; i++) {
		rc = op_post(&fab, &op);
		must(rc == 0, "posting: %zd (%s)", rc, fi_strerror((int)-rc));
		if (++flying == WINDOW)
			take(&flying, m, wait);
		op.off += op.len;
		op.addr += op.len;
		if (op.off + op.len > op.buf->size)
			op.off = 0;
	}
	while (flying)
		take(&flying, m, wait);
}

static void do_atomic(struct ctl *m)
{
	atomics_serve(&fab, &slots[SLOTS - 1], m);
}

static void do_send(struct ctl *m)
{
	struct msg_part msg = { .buf = &slots[m->a[0]],
				.off = m->a[1],
				.len = m->a[2],
				.to = m->a[3],
				.tagged = m->a[5],
				.tag = m->a[6] };
	uint64_t count = m->a[4], flying = 0;

	m->a[0] = 0;
	for (uint64_t i = 0; i < count && !m->a[0]; i++, msg.off += msg.len) {
		ssize_t rc = msg_send(&fab, &msg);

		must(rc == 0, "sending: %zd (%s)", rc, fi_strerror((int)-rc));
		if (++flying == WINDOW)
			take(&flying, m, SOON);
	}
	while (flying)
		take(&flying, m, SOON);
}

static void do_recv(struct ctl *m)
{
	struct msg_part msg = {
		.buf = &slots[m->a[0]], .off = m->a[1], .len = m->a[2], .to = FI_ADDR_UNSPEC
	};

	for (uint64_t i = 0; i < m->a[3]; i++, msg.off += msg.len)
		must_ok(msg_recv(&fab, &msg));
}

static void do_cq(struct ctl *m)
{
	struct done d = { 0 };

	m->rc = fab_done(&fab, &d, (long)m->a[0]) ? 0 : -FI_EAGAIN;
	m->a[0] = d.flags;
	m->a[1] = d.len;
	m->a[2] = d.data;
	m->a[3] = (uint64_t)d.err;
}

static void do_die(struct ctl *m)
{
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct itimerspec when = { .it_value = { (time_t)(m->a[0] / 1000),
						 (long)(m->a[0] % 1000) * 1000000 } };
	timer_t t;

	if (!m->a[0])
		raise(SIGKILL);
	must(!timer_create(CLOCK_MONOTONIC, &e, &t) && !timer_settime(t, 0, &when, NULL),
	     "timer: %s", strerror(errno));
}

static void do_quit(struct ctl *m)
{
	struct done d;

	do_reset(m);
	while (fab.cq && fab_poll(&fab, &d))
		;
	if (fab.fabric)
		fab_close(&fab);
	m->rc = 0;
}

static void do_alarm(struct ctl *m)
{
	alarm((unsigned)m->a[0]);
}

static void do_fill(struct ctl *m)
{
	buf_fill(&slots[m->a[0]], m->a[1]);
}

static void do_want(struct ctl *m)
{
	buf_want(&slots[m->a[0]], m->a[1], m->a[2], m->a[3], m->a[4]);
}

static void do_bind(struct ctl *m)
{
	m->rc = fi_mr_bind(regions[m->a[0]], &fab.ep->fid, 0);
}

static void do_enable(struct ctl *m)
{
	m->rc = fi_mr_enable(regions[m->a[0]]);
}

static void do_insert(struct ctl *m)
{
	m->a[0] = fab_insert(&fab, m->text);
}

static char *stack;
static int serve_on(void);

static void do_stack(struct ctl *m)
{
	m->a[0] = (uint64_t)(uintptr_t)stack;
	m->a[1] = STACK_AREA;
}

/* The file is empty once main() is gone, and not before. */
static void *go_on(void *arg)
{
	struct ctl m = { .cmd = CTL_MAIN };
	FILE *maps;
	int c = 0;

	while (c != EOF) {
		usleep(1000);
		maps = fopen("/proc/self/maps", "re");
		c = maps ? getc(maps) : 0;
		if (maps)
			fclose(maps);
	}
	exit(ctl_send(control, &m) ? serve_on() : 1);
	return arg;
}

static void do_main(struct ctl *m)
{
	pthread_t thread;

	(void)m;
	must(!pthread_create(&thread, NULL, go_on, NULL), "no thread");
	pthread_exit(NULL);
}

static void (*const does[])(struct ctl *m) = {
	[CTL_OPEN] = do_open,	    [CTL_SHUT] = do_quit,     [CTL_CASE] = do_alarm,
	[CTL_ALLOC] = do_alloc,	    [CTL_FILL] = do_fill,     [CTL_WANT] = do_want,
	[CTL_DIFF] = do_diff,	    [CTL_REG] = do_reg,	      [CTL_REGV] = do_regv,
	[CTL_BIND] = do_bind,	    [CTL_ENABLE] = do_enable, [CTL_KEY] = do_key,
	[CTL_REFRESH] = do_refresh, [CTL_RAW] = do_raw,	      [CTL_SYS] = do_sys,
	[CTL_POKE] = do_poke,	    [CTL_PEEK] = do_peek,     [CTL_PINNED] = do_pinned,
	[CTL_HEAP] = do_heap,	    [CTL_STACK] = do_stack,   [CTL_CLOSE] = do_close,
	[CTL_INSERT] = do_insert,   [CTL_RMA] = do_rma,	      [CTL_SEND] = do_send,
	[CTL_RECV] = do_recv,	    [CTL_CQ] = do_cq,	      [CTL_DIE] = do_die,
	[CTL_QUIT] = do_quit,	    [CTL_ATOMIC] = do_atomic, [CTL_MAIN] = do_main,
};

static void carry_out(struct ctl *m)
{
	m->rc = 0;
	if (m->cmd == CTL_RESET) {
		do_reset(m);
		alarm(0);
	} else {
		does[m->cmd](m);
	}
}

static bool has_answer(uint32_t cmd)
{
	return cmd != CTL_WANT && cmd != CTL_DIE;
}

static int serve_on(void)
{
	struct ctl m;

	while (ctl_recv(control, &m)) {
		uint32_t cmd = m.cmd;

		carry_out(&m);
		if (has_answer(cmd) && !ctl_send(control, &m))
			break;
		if (cmd == CTL_QUIT)
			return 0;
	}
	return 1;
}

int serve(int fd)
{
	char area[STACK_AREA];

	control = fd;
	stack = area;
	memset(area, 0, sizeof(area));
	case_fail_hook = tell_failure;
	placed_open(true);
	return serve_on();
}

struct addrinfo *addr_resolve(const char *text, int flags)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	struct addrinfo *ai = NULL;
	char host[256], *colon;

	snprintf(host, sizeof(host), "%s", text + (*text == '['));
	colon = strrchr(host, ':');
	if (!colon)
		return NULL;
	*colon = 0;
	if (*text == '[' && colon > host && colon[-1] == ']')
		colon[-1] = 0;
	return getaddrinfo(host, colon + 1, &hints, &ai) ? NULL : ai;
}

static int listen_at(const char *text)
{
	struct addrinfo *ai = addr_resolve(text, AI_PASSIVE);
	int on = 1, fd = -1;

	if (!ai)
		return -1;
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd >= 0 && (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 8))) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(ai);
	return fd;
}

int serve_at(const char *text)
{
	int fd = listen_at(text);

	if (fd < 0) {
		fprintf(stderr, "cannot listen at %s: %s\n", text, strerror(errno));
		return 1;
	}
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (c >= 0 && fork() == 0)
			exit(serve(c));
		if (c >= 0)
			close(c);
	}
}
