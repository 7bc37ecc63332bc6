/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "serve.h"

#define MAX_REGIONS 4096
#define WINDOW 32 /* operations in flight */

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

static void do_open(struct ctl *m)
{
	struct fab_opt opt = { .addr_format = (uint32_t)m->a[1] };

	memcpy(opt.node, m->text, sizeof(opt.node) - 1);
	fab_open(&fab, &modes[m->a[0]], &opt);
	m->a[0] = fab.name_len;
	m->a[1] = (uint64_t)getpid();
	m->a[2] = fab.virt;
	m->a[3] = fab.prov_key;
	memcpy(m->text, fab.name, sizeof(fab.name));
}

static void do_close(struct ctl *m)
{
	struct fid_mr **mr = &regions[m->a[0]];

	m->rc = fi_close(&(*mr)->fid);
	if (!m->rc)
		*mr = NULL;
}

static void do_reset(struct ctl *m)
{
	struct done d;

	for (unsigned i = 0; i < nregions; i++) {
		if (regions[i])
			must_ok(fi_close(&regions[i]->fid));
		regions[i] = NULL;
	}
	nregions = 0;
	for (int i = 0; i < SLOTS; i++)
		fab_buf_close(&slots[i]);
	m->a[0] = 0;
	while (fab_poll(&fab, &d))
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

	if (m->a[5] == REG_V)
		return fi_mr_regv(fab.domain, iov, 1, m->a[3], 0, m->a[4], 0, mr, NULL);
	if (m->a[5] == REG_ATTR)
		return fi_mr_regattr(fab.domain, &attr, 0, mr);
	return fi_mr_reg(fab.domain, iov->iov_base, iov->iov_len, m->a[3], 0, m->a[4], 0,
			 mr, NULL);
}

static void do_reg(struct ctl *m)
{
	struct iovec iov = { slots[m->a[0]].mem + m->a[1], m->a[2] };
	struct fid_mr *mr = NULL;

	must(nregions < MAX_REGIONS, "too many regions for the harness");
	m->rc = reg(m, &iov, &mr);
	if (m->rc)
		return;
	regions[nregions] = mr;
	m->a[0] = nregions++;
	m->a[1] = fi_mr_key(mr);
	m->a[2] = fab.virt ? (uint64_t)(uintptr_t)iov.iov_base : 0;
}

static void take(uint64_t *flying, struct ctl *m)
{
	struct done d;

	must(fab_done(&fab, &d, SOON), "no completion after %d ms", SOON);
	(*flying)--;
	if (!d.err || m->a[0])
		return;
	m->a[0] = (uint64_t)d.err;
	snprintf(m->text, sizeof(m->text), "%s", d.text);
}

static void do_rma(struct ctl *m)
{
	struct op op = { m->a[0], &slots[m->a[1]], m->a[2], m->a[3],
			 m->a[4], m->a[5],	   m->a[6], NULL };
	uint64_t count = m->a[7], flying = 0;
	ssize_t rc;

	m->a[0] = 0;
	for (uint64_t i = 0; i < count && !m->a[0]; i++) {
		rc = op_post(&fab, &op);
		must(rc == 0, "posting: %zd (%s)", rc, fi_strerror((int)-rc));
		if (++flying == WINDOW)
			take(&flying, m);
		op.off += op.len;
		op.addr += op.len;
		if (op.off + op.len > op.buf->size)
			op.off = 0;
	}
	while (flying)
		take(&flying, m);
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
	fab_close(&fab);
	m->rc = 0;
}

static void carry_out(struct ctl *m)
{
	m->rc = 0;
	switch ((enum ctl_cmd)m->cmd) {
	case CTL_OPEN:
		do_open(m);
		break;
	case CTL_CASE:
		alarm((unsigned)m->a[0]);
		break;
	case CTL_RESET:
		do_reset(m);
		alarm(0);
		break;
	case CTL_ALLOC:
		do_alloc(m);
		break;
	case CTL_FILL:
		buf_fill(&slots[m->a[0]], m->a[1]);
		break;
	case CTL_WANT:
		buf_want(&slots[m->a[0]], m->a[1], m->a[2], m->a[3], m->a[4]);
		break;
	case CTL_DIFF:
		do_diff(m);
		break;
	case CTL_REG:
		do_reg(m);
		break;
	case CTL_CLOSE:
		do_close(m);
		break;
	case CTL_INSERT:
		m->a[0] = fab_insert(&fab, m->text);
		break;
	case CTL_RMA:
		do_rma(m);
		break;
	case CTL_CQ:
		do_cq(m);
		break;
	case CTL_DIE:
		do_die(m);
		break;
	case CTL_QUIT:
		do_quit(m);
		break;
	}
}

static bool has_answer(uint32_t cmd)
{
	return cmd != CTL_WANT && cmd != CTL_DIE;
}

int serve(int fd)
{
	struct ctl m;

	control = fd;
	case_fail_hook = tell_failure;
	while (ctl_recv(fd, &m)) {
		uint32_t cmd = m.cmd;

		carry_out(&m);
		if (has_answer(cmd) && !ctl_send(fd, &m))
			break;
		if (cmd == CTL_QUIT)
			return 0;
	}
	return 1;
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
