/* SPDX-License-Identifier: BSD-2-Clause */
#define CASE_HELPER
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "serve.h"

const char *peer_control;

static bool ctl_move(int fd, void *buf, size_t len, bool out)
{
	char *p = buf;

	while (len) {
		ssize_t n = out ? send(fd, p, len, MSG_NOSIGNAL) : recv(fd, p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

bool ctl_send(int fd, const struct ctl *m)
{
	return ctl_move(fd, (void *)m, sizeof(*m), true);
}

bool ctl_recv(int fd, struct ctl *m)
{
	return ctl_move(fd, m, sizeof(*m), false);
}

/* --- starting and ending
 * ---------------------------------------------------------------- */

#define MAX_READY 8
static struct peer ready[MAX_READY]; /* forked, not yet in use */
static int nready;

static void child_exec(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fd, 3) < 0)
		_exit(126);
	execl("/proc/self/exe", "target", "--control-fd", "3", (char *)NULL);
	_exit(127);
}

static void child_serve(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	case_child();
	exit(serve(fd));
}

static void child_start(struct peer *p, void (*run)(int fd))
{
	int s[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s))
		case_fail("socketpair: %s", strerror(errno));
	p->pid = fork();
	if (p->pid < 0)
		case_fail("fork: %s", strerror(errno));
	if (p->pid == 0) {
		close(s[0]);
		run(s[1]);
	}
	close(s[1]);
	p->fd = s[0];
}

void peers_prepare(int n)
{
	while (!peer_control && nready < n && nready < MAX_READY)
		child_start(&ready[nready++], child_serve);
}

static void remote_start(struct peer *p)
{
	struct addrinfo *ai = addr_resolve(peer_control, 0);

	if (!ai)
		case_fail("--control %s: no such address", peer_control);
	p->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0 || connect(p->fd, ai->ai_addr, ai->ai_addrlen))
		case_fail("--control %s: %s", peer_control, strerror(errno));
	freeaddrinfo(ai);
	p->pid = 0;
}

static void peer_gone(struct peer *p)
{
	int status = 0;

	p->up = false;
	close(p->fd);
	if (p->pid && waitpid(p->pid, &status, 0) == p->pid && WIFSIGNALED(status))
		case_fail("the target process died: signal %d (%s)", WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	case_fail("the target process is gone, status %d", WEXITSTATUS(status));
}

static void tell(struct peer *p, const struct ctl *m)
{
	if (!ctl_send(p->fd, m))
		peer_gone(p);
}

static void hear(struct peer *p, struct ctl *m)
{
	if (!ctl_recv(p->fd, m))
		peer_gone(p);
	if (m->cmd == CTL_QUIT)
		case_fail("target process: %s", m->text);
}

static void ask(struct peer *p, struct ctl *m)
{
	tell(p, m);
	hear(p, m);
}

void peer_ask(struct peer *p, struct ctl *m)
{
	ask(p, m);
}

void peer_tell(struct peer *p, const struct ctl *m)
{
	tell(p, m);
}

void peer_hear(struct peer *p, struct ctl *m)
{
	hear(p, m);
}

static void peer_open(struct peer *p, const struct mode *mode, const struct fab_opt *opt)
{
	struct ctl m = { .cmd = CTL_OPEN,
			 .a = { mode->api, (uint64_t)mode->hint, mode->required != NULL,
				opt->addr_format, opt->uid, opt->memlock, mode->caps | func_caps,
				opt->closed } };
	struct ctl_open *o = (struct ctl_open *)m.text;

	o->av = opt->av;
	memcpy(o->node, opt->node, sizeof(o->node));
	memcpy(o->monitor, opt->monitor, sizeof(o->monitor));
	memcpy(o->auth_key, opt->auth_key, sizeof(o->auth_key));
	snprintf(o->required, sizeof(o->required), "%s", mode->required ? mode->required : "");
	ask(p, &m);
	p->name_len = m.a[0];
	p->os_pid = p->pid ? m.a[1] : 0;
	p->bits = m.a[2];
	p->virt = p->bits & FI_MR_VIRT_ADDR;
	p->prov_key = p->bits & FI_MR_PROV_KEY;
	memcpy(p->name, m.text, sizeof(p->name));
}

void peer_shut(struct peer *p)
{
	struct ctl m = { .cmd = CTL_SHUT };

	ask(p, &m);
}

void peer_reopen(struct peer *p, const struct mode *mode, const struct fab_opt *opt)
{
	peer_shut(p);
	peer_open(p, mode, opt);
}

void peer_start(struct peer *p, const struct mode *mode, const struct fab_opt *opt)
{
	*p = (struct peer){ 0 };
	if (peer_control)
		remote_start(p);
	else if (nready)
		*p = ready[--nready];
	else
		child_start(p, child_exec);
	p->up = true;
	peer_open(p, mode, opt);
}

void peer_reap(struct peer *p)
{
	close(p->fd);
	if (p->pid)
		waitpid(p->pid, NULL, 0);
	p->up = false;
}

void peer_stop(struct peer *p)
{
	struct ctl m = { .cmd = CTL_QUIT };
	int status = 0;

	if (!p->up)
		return;
	p->up = false;
	if (!ctl_send(p->fd, &m) || !ctl_recv(p->fd, &m))
		peer_gone(p);
	if (m.rc)
		case_fail("target process: %s", m.text);
	close(p->fd);
	if (p->pid && (waitpid(p->pid, &status, 0) != p->pid || status))
		case_fail("the target process ended with status 0x%x", status);
}

void peer_kill(struct peer *p)
{
	struct ctl m;

	if (p->pid)
		kill(p->pid, SIGKILL);
	else
		peer_die_in(p, 0);
	/* On another machine the end of the connection is the sign that it is gone. */
	while (!p->pid && ctl_recv(p->fd, &m))
		;
	peer_reap(p);
}

void peer_end_main(struct peer *p)
{
	struct ctl m = { .cmd = CTL_MAIN };

	ask(p, &m);
}

void peer_die_in(struct peer *p, long ms)
{
	struct ctl m = { .cmd = CTL_DIE, .a = { (uint64_t)ms } };

	tell(p, &m);
}

void peer_case(struct peer *p, int timeout)
{
	struct ctl m = { .cmd = CTL_CASE, .a = { (uint64_t)timeout } };

	ask(p, &m);
}

void peer_reset(struct peer *p)
{
	struct ctl m = { .cmd = CTL_RESET };

	ask(p, &m);
	if (m.a[0])
		case_fail("the target has %llu completions too many", (unsigned long long)m.a[0]);
}

/* --- memory
 * ----------------------------------------------------------------------------- */

void peer_alloc(struct peer *p, unsigned slot, size_t size, uint64_t seed)
{
	struct ctl m = { .cmd = CTL_ALLOC, .a = { slot, size, seed } };

	p->seed[slot] = seed;
	ask(p, &m);
}

void peer_fill(struct peer *p, unsigned slot, uint64_t seed)
{
	struct ctl m = { .cmd = CTL_FILL, .a = { slot, seed } };

	p->seed[slot] = seed;
	ask(p, &m);
}

void peer_want(struct peer *p, unsigned slot, size_t off, size_t len, uint64_t seed, uint64_t from)
{
	struct ctl m = { .cmd = CTL_WANT, .a = { slot, off, len, seed, from } };

	tell(p, &m);
}

void peer_same_outside(struct peer *p, unsigned slot, size_t off, size_t len)
{
	struct ctl m = { .cmd = CTL_DIFF, .a = { slot, off, len } };

	ask(p, &m);
	if (m.text[0])
		case_fail("target memory: %s", m.text);
}

void peer_same(struct peer *p, unsigned slot)
{
	peer_same_outside(p, slot, 0, 0);
}

/* The raw key came with the answer to the registration, if the mode is such. */
static uint64_t raw_take(const struct region *r, const struct ctl *m)
{
	return m->a[3] ? fab_map(r->peer->mapper, r->base, m->text, m->a[3]) : FI_KEY_NOTAVAIL;
}

int peer_try_reg(struct peer *p, unsigned slot, size_t off, size_t len, uint64_t access,
		 uint64_t key, enum reg_call call, struct region *r)
{
	struct ctl m = { .cmd = CTL_REG, .a = { slot, off, len, access, key, call } };

	ask(p, &m);
	*r = (struct region){ p, slot, (unsigned)m.a[0], off, len, m.a[1], m.a[2] };
	if (!m.rc && p->bits & FI_MR_RAW)
		r->key = raw_take(r, &m);
	return m.rc;
}

struct region peer_reg(struct peer *p, unsigned slot, size_t off, size_t len, uint64_t access,
		       uint64_t key)
{
	struct region r;
	int rc = peer_try_reg(p, slot, off, len, access, key, REG_PLAIN, &r);

	if (rc)
		case_fail("fi_mr_reg at the target: %d (%s)", rc, fi_strerror(-rc));
	return r;
}

static void reg_ask(const struct region *r, uint64_t access)
{
	struct ctl m = { .cmd = CTL_REG,
			 .a = { r->slot, r->off, r->len, access, r->key, REG_PLAIN } };

	tell(r->peer, &m);
}

static void reg_take(struct region *r)
{
	struct ctl m;

	hear(r->peer, &m);
	if (m.rc)
		case_fail("fi_mr_reg at the target: %d (%s)", m.rc, fi_strerror(-m.rc));
	r->id = (unsigned)m.a[0];
	r->key = m.a[1];
	r->base = m.a[2];
	if (r->peer->bits & FI_MR_RAW)
		r->key = raw_take(r, &m);
}

/* Without waiting for each answer: a turn of both processes takes long in an emulator. */
void peer_reg_many(struct peer *p, const struct region *like, size_t stride, uint64_t access,
		   struct region *r, unsigned n)
{
	enum { FLYING = 50 };

	for (unsigned i = 0; i < n; i++) {
		r[i] = *like;
		r[i].peer = p;
		r[i].off += i * stride;
		r[i].key += i;
		reg_ask(&r[i], access);
		if (i >= FLYING)
			reg_take(&r[i - FLYING]);
	}
	for (unsigned i = n > FLYING ? n - FLYING : 0; i < n; i++)
		reg_take(&r[i]);
}

void peer_unreg(struct region *r)
{
	struct ctl m = { .cmd = CTL_CLOSE, .a = { r->id } };

	ask(r->peer, &m);
	if (m.rc)
		case_fail("fi_close of the region: %d (%s)", m.rc, fi_strerror(-m.rc));
}

/* --- accesses by the peer
 * --------------------------------------------------------------- */

fi_addr_t peer_insert(struct peer *p, const char *name, size_t len)
{
	struct ctl m = { .cmd = CTL_INSERT };

	memcpy(m.text, name, len);
	ask(p, &m);
	return m.a[0];
}

void peer_rma_start(struct peer *p, const struct peer_rma *r)
{
	struct ctl m = { .cmd = CTL_RMA,
			 .a = { r->read, r->slot, r->off, r->len, r->to, r->addr, r->key,
				r->count } };

	tell(p, &m);
}

int peer_rma_end(struct peer *p)
{
	struct ctl m;

	hear(p, &m);
	return (int)m.a[0];
}

int peer_rma(struct peer *p, const struct peer_rma *r)
{
	peer_rma_start(p, r);
	return peer_rma_end(p);
}

int peer_send(struct peer *p, unsigned slot, size_t off, size_t len, fi_addr_t to, uint64_t count)
{
	struct ctl m = { .cmd = CTL_SEND, .a = { slot, off, len, to, count } };

	ask(p, &m);
	return (int)m.a[0];
}

int peer_tsend(struct peer *p, unsigned slot, size_t off, size_t len, fi_addr_t to, uint64_t tag)
{
	struct ctl m = { .cmd = CTL_SEND, .a = { slot, off, len, to, 1, true, tag } };

	ask(p, &m);
	return (int)m.a[0];
}

void peer_recv(struct peer *p, unsigned slot, size_t off, size_t len, uint64_t count)
{
	struct ctl m = { .cmd = CTL_RECV, .a = { slot, off, len, count } };

	ask(p, &m);
}

bool peer_done(struct peer *p, struct done *d, long ms)
{
	struct ctl m = { .cmd = CTL_CQ, .a = { (uint64_t)ms } };

	ask(p, &m);
	*d = (struct done){ .flags = m.a[0], .len = m.a[1], .data = m.a[2], .err = (int)m.a[3] };
	return m.rc == 0;
}

/* --- kernel objects
 * --------------------------------------------------------------------- */

/* Objects are noted under the thread that made them. */
static bool is_of(const char *line, uint64_t pid)
{
	const char *at = strstr(line, " pid ");
	unsigned long long tid = at ? strtoull(at + 5, NULL, 10) : 0;
	char task[64];

	snprintf(task, sizeof(task), "/proc/%llu/task/%llu", (unsigned long long)pid, tid);
	return tid && (tid == pid || access(task, F_OK) == 0);
}

int kernel_objects(uint64_t pid, const char *kinds)
{
	char command[200], line[512];
	int n = 0;
	FILE *f;

	if (!pid)
		return -1;
	snprintf(command, sizeof(command),
		 "for k in %s; do echo resource show $k; done | rdma -b - 2>/dev/null", kinds);
	f = popen(command, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += is_of(line, pid);
	return pclose(f) == 0 ? n : -1;
}

bool kernel_objects_gone(uint64_t pid, long ms)
{
	long end = now_ms() + ms;

	while (kernel_objects(pid, "mr qp cq pd cm_id") != 0) {
		if (now_ms() > end)
			return false;
		nap(100);
	}
	return true;
}
