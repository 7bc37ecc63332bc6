/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/addr.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/lock.h"
#include "fake_fabric.h"

#define MAX_MRS 4096
#define MAX_SGE 32
#define MAX_INLINE 512
#define PAGE 4096u
/* enum ibv_wc_status, for raw_status */
#define RAW_LOC_QP_OP 2
#define RAW_LOC_PROT 4
#define RAW_FLUSH 5
#define RAW_REM_ACCESS 10
#define RAW_REM_OP 11
#define RAW_RETRY_EXC 12
#define RAW_GENERAL 21

struct fake_fabric fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct mr {
	struct mrf_vpd *pd; /* NULL: free */
	struct mrf_vdev *dev;
	uintptr_t addr;
	size_t len;
	uint64_t iova;
	unsigned rights;
	uint32_t key;
	bool kept; /* was to go, but that failed */
};

struct mrf_vdev {
	struct mrf_vdev_limits limits;
	int event_fd;
	struct mrf_vdev_event events[8];
	unsigned nevents;
};

struct mrf_vpd {
	struct mrf_vdev *dev;
};

struct mrf_vcq {
	struct mrf_vdev *dev;
	struct mrf_wc *ring;
	size_t depth, head, tail;
	int fd;
	bool armed, stopped, deaf, spoilt;
	bool rearmed;	       /* and nothing was polled since */
	bool told;	       /* there is an event of this queue on fd */
	struct mrf_list of_fd; /* all queues that share fd */
};

struct event {
	struct mrf_list node;
	struct mrf_cm_event e;
};

struct mrf_vcm {
	int fd;
	bool dead, stopped;
	bool denied; /* every call ends in EACCES */
	bool abandoned;
	unsigned asked; /* calls of mrf_vcm_next */
	struct mrf_list events;
};

enum state { IDLE, LISTENING, RESOLVED, CONNECTING, REQUESTED, CONNECTED, GONE };
enum qp_state { QP_NONE, QP_INIT, QP_RTS, QP_ERR, QP_DEAD };

struct wr {
	struct mrf_list node;
	struct mrf_vwr wr;
	struct mrf_sge sge[MAX_SGE];
	uint8_t data[MAX_INLINE];
	uint64_t len;
	bool ran; /* and was not acknowledged: it is sent again */
};

struct recv {
	struct mrf_list node;
	uint64_t wr_id;
	int nsge;
	struct mrf_sge sge[];
};

struct mrf_vsrq {
	struct mrf_list node; /* in srqs */
	struct mrf_vpd *pd;
	struct mrf_list rq;
	unsigned nrq, depth;
};

struct mrf_vconn {
	struct mrf_list node; /* in conns */
	struct mrf_vcm *cm;
	void *owner;
	enum state state;
	bool passive;
	uint32_t qpn;
	struct mrf_vconn *peer; /* CONNECTING, REQUESTED, CONNECTED */
	struct mrf_vcm *orphan; /* its peer was of this one, which could not tell it */
	uint16_t port, dst_port;
	struct sockaddr_storage dst, src;
	struct mrf_vqp_attr attr;
	enum qp_state qp;
	struct mrf_list sq, rq;
	unsigned nsq, nrq;
	struct recv *begun; /* by a message that broke off */
	uint32_t taken;	    /* passive: packets carried out */
	bool is_pair;	    /* it is the queue pair of a pair, and no connection */
	bool unanswered;    /* the other end of the pair is gone */
};

/* The other end of the pair is the peer of this one as soon as each names the other. */
struct mrf_vpair {
	struct mrf_list node; /* in pairs */
	struct mrf_vconn end; /* not in conns */
	unsigned recv_sge;
	struct mrf_vpair_name name, other; /* other: as from connecting */
};

#define FIRST_PSN 0xfffffdu /* few are left before they begin again */

/* A message on its way. */
struct kept {
	struct mrf_list node;
	struct mrf_vconn *to;
	bool has_imm;
	uint32_t imm;
	size_t len;
	uint8_t data[];
};

static struct {
	struct mrf_list conns, pairs, kept, srqs;
	struct mr mrs[MAX_MRS];
	unsigned next_mr;
	uint8_t low;
	uint16_t next_port;
	uint32_t last_qpn;
	unsigned live[FAKE_CALLS];
	unsigned calls[FAKE_CALLS];
	unsigned forgotten;
	unsigned fail_nth[FAKE_CALLS];
	int fail_err[FAKE_CALLS];
	bool fail_always[FAKE_CALLS];
	unsigned any_nth;
	int any_err;
	bool failed;
	unsigned probes;
	enum mrf_wc_status probe_status; /* of the next one */
	struct broken {
		unsigned nth, times;
		enum mrf_wc_status status;
		bool ran;
	} access, frame, pair;
	unsigned break_send_nth;
	unsigned unreachable_nth;
	int unreachable_err;
	unsigned unresolved;
	unsigned lost; /* connection requests to be */
	bool hold, hold_messages, hold_frames, hold_pairs, run_on_arm, run_on_disconnect;
} f = { .conns = { &f.conns, &f.conns },
	.pairs = { &f.pairs, &f.pairs },
	.kept = { &f.kept, &f.kept },
	.srqs = { &f.srqs, &f.srqs },
	.next_port = 40000 };

static void enter(void)
{
	pthread_mutex_lock(&lock);
}

static void leave(void)
{
	pthread_mutex_unlock(&lock);
}

/* 0, or the error that was ordered for this call. */
static int refused(enum fake_call call)
{
	f.calls[call]++;
	if (f.any_nth && !--f.any_nth) {
		f.failed = true;
		return -f.any_err;
	}
	if (f.fail_always[call] || (f.fail_nth[call] && !--f.fail_nth[call])) {
		f.failed = true;
		return -f.fail_err[call];
	}
	return 0;
}

/* As in lib/verbs: of what can be ordered to fail only posting is quick. */
static int ordered(enum fake_call call)
{
	switch (call) {
	case FAKE_POST:
	case FAKE_POST_RECV:
	case FAKE_VSRQ_POST:
	case FAKE_VPAIR_SEND:
	case FAKE_VPAIR_RECV:
		break;
	default:
		mrf_slow_call();
	}
	return refused(call);
}

/* For what the kernel has: not by a call that tests make fail. */
static void *must_alloc(size_t size)
{
	void *p = reallocarray(NULL, 1, size);

	if (!p)
		abort();
	return memset(p, 0, size);
}

/* --- for tests ------------------------------------------------------------------------
 */

void fake_copy(void *to, const void *from, size_t len)
{
	enter();
	memcpy(to, from, len);
	leave();
}

void fake_heal(void)
{
	enter();
	memset(f.fail_nth, 0, sizeof(f.fail_nth));
	memset(f.fail_always, 0, sizeof(f.fail_always));
	f.any_nth = 0;
	f.failed = false;
	f.probe_status = MRF_WC_OK;
	f.access.nth = f.frame.nth = f.pair.nth = f.break_send_nth = 0;
	f.unreachable_nth = 0;
	f.unresolved = f.lost = 0;
	leave();
}

void fake_reset(void)
{
	fake_heal();
	enter();
	memset(&fake, 0, sizeof(fake));
	fake.max_msg_size = 8u << 20;
	f.hold = f.hold_messages = f.hold_frames = f.hold_pairs = false;
	f.run_on_arm = f.run_on_disconnect = false;
	memset(f.calls, 0, sizeof(f.calls));
	f.forgotten = f.probes = 0;
	leave();
	if (fake_live()) {
		fprintf(stderr, "fake_fabric: %u things left over\n", fake_live());
		abort();
	}
}

static unsigned number(const unsigned *what)
{
	unsigned n;

	enter();
	n = *what;
	leave();
	return n;
}

unsigned fake_calls(enum fake_call call)
{
	return number(&f.calls[call]);
}

unsigned fake_stops(void)
{
	return number(&fake.stops);
}

unsigned fake_forgotten(void)
{
	return number(&f.forgotten);
}

const char *fake_call_name(enum fake_call call)
{
	static const char *const name[FAKE_CALLS] = {
		[FAKE_VDEV_OPEN] = "vdev_open",
		[FAKE_VPD_ALLOC] = "vpd_alloc",
		[FAKE_VMR_REG] = "vmr_reg",
		[FAKE_VMR_DEREG] = "vmr_dereg",
		[FAKE_VCQ_OPEN] = "vcq_open",
		[FAKE_VCQ_GROW] = "vcq_grow",
		[FAKE_VCM_OPEN] = "vcm_open",
		[FAKE_VCONN_OPEN] = "vconn_open",
		[FAKE_BIND] = "bind",
		[FAKE_LISTEN] = "listen",
		[FAKE_RESOLVE] = "resolve",
		[FAKE_ROUTE] = "route",
		[FAKE_VSRQ_OPEN] = "vsrq_open",
		[FAKE_VSRQ_POST] = "vsrq_post",
		[FAKE_CREATE_QP] = "create_qp",
		[FAKE_CONNECT] = "connect",
		[FAKE_ACCEPT] = "accept",
		[FAKE_ESTABLISH] = "establish",
		[FAKE_TUNE] = "tune",
		[FAKE_POST] = "post",
		[FAKE_POST_RECV] = "post_recv",
		[FAKE_VLOOP_OPEN] = "vloop_open",
		[FAKE_VLOOP_RUN] = "vloop_run",
		[FAKE_VPAIR_OPEN] = "vpair_open",
		[FAKE_VPAIR_CONNECT] = "vpair_connect",
		[FAKE_VPAIR_SEND] = "vpair_send",
		[FAKE_VPAIR_RECV] = "vpair_recv",
	};

	return name[call];
}

unsigned fake_live_of(enum fake_call call)
{
	unsigned n;

	enter();
	n = f.live[call];
	leave();
	return n;
}

unsigned fake_live(void)
{
	unsigned call, n = 0;

	for (call = 0; call < FAKE_CALLS; call++)
		n += fake_live_of(call);
	return n;
}

size_t fake_nlog(void)
{
	size_t n;

	enter();
	n = fake.nlog;
	leave();
	return n;
}

unsigned fake_connects(void)
{
	unsigned n;

	enter();
	n = fake.connects;
	leave();
	return n;
}

unsigned fake_asks(void)
{
	unsigned n;

	enter();
	n = fake.asks;
	leave();
	return n;
}

void fake_fail(enum fake_call call, unsigned nth, int err)
{
	enter();
	f.fail_nth[call] = nth;
	f.fail_err[call] = err;
	f.failed = false;
	leave();
}

void fake_fail_always(enum fake_call call, int err)
{
	enter();
	f.fail_always[call] = true;
	f.fail_err[call] = err;
	f.failed = false;
	leave();
}

void fake_fail_any(unsigned nth, int err)
{
	enter();
	f.any_nth = nth;
	f.any_err = err;
	f.failed = false;
	leave();
}

bool fake_fail_none(void)
{
	bool failed;

	enter();
	f.any_nth = 0;
	failed = f.failed;
	leave();
	return failed;
}

bool fake_failed(void)
{
	bool failed;

	enter();
	failed = f.failed;
	leave();
	return failed;
}

static void break_one(struct broken *which, struct broken how)
{
	enter();
	*which = how;
	leave();
}

void fake_break(unsigned nth, unsigned times, enum mrf_wc_status status, bool ran)
{
	break_one(&f.access, (struct broken){ nth, times, status, ran });
}

void fake_break_frame(unsigned nth, unsigned times, enum mrf_wc_status status, bool ran)
{
	break_one(&f.frame, (struct broken){ nth, times, status, ran });
}

void fake_break_pair(unsigned nth, unsigned times, enum mrf_wc_status status, bool ran)
{
	break_one(&f.pair, (struct broken){ nth, times, status, ran });
}

void fake_break_send(unsigned nth)
{
	enter();
	f.break_send_nth = nth;
	leave();
}

void fake_unreachable(unsigned nth, int err)
{
	enter();
	f.unreachable_nth = nth;
	f.unreachable_err = err;
	leave();
}

void fake_break_probe(enum mrf_wc_status status)
{
	enter();
	f.probe_status = status;
	leave();
}

unsigned fake_probes(void)
{
	return number(&f.probes);
}

void fake_lose_requests(unsigned times)
{
	enter();
	f.lost = times;
	leave();
}

void fake_unresolved(unsigned times)
{
	enter();
	f.unresolved = times;
	leave();
}

static void ring_fd(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n;
}

static void silence_fd(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n;
}

/* --- vdev, vpd, vmr -------------------------------------------------------------------
 */

/* An object of size bytes that counts as alive, or NULL with the error in *ret. */
static void *make(enum fake_call call, size_t size, int *ret)
{
	void *object = NULL;

	enter();
	*ret = ordered(call);
	if (!*ret) {
		object = calloc(1, size);
		if (object)
			f.live[call]++;
		else
			*ret = -FI_ENOMEM;
	}
	leave();
	return object;
}

static void unmake(enum fake_call call, void *object)
{
	mrf_slow_call();
	enter();
	f.live[call]--;
	leave();
	free(object);
}

static void mr_end(struct mr *mr)
{
	mr->pd = NULL;
	mr->kept = false;
	f.live[FAKE_VMR_REG]--;
}

int mrf_vdev_open(const struct sockaddr *addr, struct mrf_vdev **out)
{
	struct mrf_vdev *dev;
	int ret;

	if (addr->sa_family != AF_INET)
		return -FI_ENODEV;
	dev = make(FAKE_VDEV_OPEN, sizeof(*dev), &ret);
	if (!dev)
		return ret;
	dev->limits = (struct mrf_vdev_limits){ .max_mr = MAX_MRS,
						.max_sge = MAX_SGE,
						.max_qp_wr = 16384,
						.max_cqe = 32767,
						.max_rd_atomic = 128,
						.max_inline = MAX_INLINE,
						.max_msg_size = fake.max_msg_size };
	dev->event_fd = mrf_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (dev->event_fd < 0) {
		unmake(FAKE_VDEV_OPEN, dev);
		return -FI_ENOMEM;
	}
	*out = dev;
	return 0;
}

int mrf_vdev_event_fd(const struct mrf_vdev *dev)
{
	return dev->event_fd;
}

int mrf_vdev_next_event(struct mrf_vdev *dev, struct mrf_vdev_event *event)
{
	int ret = -FI_EAGAIN;

	enter();
	if (dev->nevents) {
		*event = dev->events[--dev->nevents];
		ret = 0;
	}
	if (!dev->nevents)
		silence_fd(dev->event_fd);
	leave();
	return ret;
}

static void dev_tell(struct mrf_vdev *dev, struct mrf_vdev_event event)
{
	if (dev->nevents == MRF_ARRAY_SIZE(dev->events))
		abort();
	event.text = event.text ? event.text : "something";
	dev->events[dev->nevents++] = event;
	ring_fd(dev->event_fd);
}

void fake_tell(struct mrf_vcq *cq, struct mrf_vdev_event event)
{
	enter();
	dev_tell(cq->dev, event);
	leave();
}

bool fake_tells(const struct mrf_vcq *cq)
{
	bool tells;

	enter();
	tells = cq->dev->nevents;
	leave();
	return tells;
}

void fake_hang_up(struct mrf_vcq *cq)
{
	struct mrf_vdev_event event = { .type = MRF_VDEV_QP_ERR };

	enter();
	mrf_list_each (node, &f.conns) {
		struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->passive && conn->qp != QP_NONE && conn->qp != QP_DEAD &&
		    conn->attr.recv_cq->dev == cq->dev)
			event.owner = conn->owner;
	}
	if (event.owner)
		dev_tell(cq->dev, event);
	leave();
}

void mrf_vdev_close(struct mrf_vdev *dev)
{
	unsigned i;

	close(dev->event_fd);

	enter();
	for (i = 0; i < MAX_MRS; i++) {
		if (f.mrs[i].kept && f.mrs[i].dev == dev) {
			mr_end(&f.mrs[i]);
			f.forgotten++;
		}
	}
	leave();
	unmake(FAKE_VDEV_OPEN, dev);
}

void mrf_vdev_retries(struct mrf_vdev *dev, struct mrf_vdev_retries *now)
{
	(void)dev;
	enter();
	*now = (struct mrf_vdev_retries){ !fake.retries_unknown, fake.retries };
	leave();
}

bool mrf_vdev_sent_again(struct mrf_vdev *dev, const struct mrf_vdev_retries *since)
{
	struct mrf_vdev_retries now;

	mrf_vdev_retries(dev, &now);
	return !since->known || !now.known || now.count != since->count;
}

const struct mrf_vdev_limits *mrf_vdev_limits(const struct mrf_vdev *dev)
{
	return &dev->limits;
}

const char *mrf_vdev_name(const struct mrf_vdev *dev)
{
	(void)dev;
	return FAKE_DEVICE;
}

void mrf_vdev_name_now(const struct mrf_vdev *dev, char *name, size_t len)
{
	snprintf(name, len, "%s", mrf_vdev_name(dev));
}

int mrf_vpd_alloc(struct mrf_vdev *dev, struct mrf_vpd **out)
{
	int ret;
	struct mrf_vpd *pd = make(FAKE_VPD_ALLOC, sizeof(*pd), &ret);

	if (!pd)
		return ret;
	pd->dev = dev;
	*out = pd;
	return 0;
}

/* The kernel would not let go of it, and it would leak. */
static void must_be_unused(const struct mrf_vpd *pd)
{
	unsigned i;

	enter();
	for (i = 0; i < MAX_MRS; i++) {
		if (f.mrs[i].pd == pd && !f.mrs[i].kept)
			abort();
	}
	mrf_list_each (node, &f.conns) {
		const struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->qp != QP_NONE && conn->attr.pd == pd)
			abort();
	}
	mrf_list_each (node, &f.pairs) {
		if (mrf_list_entry(node, struct mrf_vpair, node)->end.attr.pd == pd)
			abort();
	}
	mrf_list_each (node, &f.srqs) {
		if (mrf_list_entry(node, struct mrf_vsrq, node)->pd == pd)
			abort();
	}
	leave();
}

void mrf_vpd_free(struct mrf_vpd *pd)
{
	must_be_unused(pd);
	unmake(FAKE_VPD_ALLOC, pd);
}

static struct mr *mr_take(void)
{
	unsigned i;

	/* As rxe: numbers go round, so that an old key is not met again soon. */
	for (i = 0; i < MAX_MRS; i++) {
		struct mr *mr = &f.mrs[f.next_mr++ % MAX_MRS];

		if (!mr->pd)
			return mr;
	}
	return NULL;
}

int mrf_vmr_reg(struct mrf_vpd *pd, const void *addr, size_t len, uint64_t iova, unsigned rights,
		struct mrf_vmr *vmr)
{
	struct mr *mr = NULL;
	int ret;

	if (!len || (((uintptr_t)addr ^ iova) & (PAGE - 1)))
		return -FI_EINVAL;
	if (fake.is_there && !fake.is_there(addr, len))
		return -FI_EFAULT;
	enter();
	ret = ordered(FAKE_VMR_REG);
	if (!ret) {
		mr = mr_take();
		ret = mr ? 0 : -FI_ENOMEM;
	}
	if (!ret) {
		if (rights & (MRF_RIGHT_REMOTE_WRITE | MRF_RIGHT_REMOTE_ATOMIC))
			rights |= MRF_RIGHT_LOCAL_WRITE;
		*mr = (struct mr){ .pd = pd,
				   .dev = pd->dev,
				   .addr = (uintptr_t)addr,
				   .len = len,
				   .iova = iova,
				   .rights = rights,
				   .key = ((uint32_t)(mr - f.mrs) + 1) << 8 | f.low++ };
		*vmr = (struct mrf_vmr){ .handle = mr, .lkey = mr->key, .rkey = mr->key };
		f.live[FAKE_VMR_REG]++;
	}
	leave();
	return ret;
}

int mrf_vmr_revoke(struct mrf_vmr *vmr)
{
	struct mr *mr = vmr->handle;
	int ret;

	if (fake.on_dereg)
		fake.on_dereg();
	enter();
	ret = refused(FAKE_VMR_DEREG);
	if (ret)
		mr->kept = true;
	else
		mr_end(mr);
	leave();
	if (!ret)
		vmr->handle = NULL;
	return ret;
}

int mrf_vmr_dereg(struct mrf_vmr *vmr)
{
	mrf_slow_call();
	return vmr->handle ? mrf_vmr_revoke(vmr) : 0;
}

void mrf_vmr_free(struct mrf_vmr *vmr)
{
	(void)vmr;
}

/* Where [iova, iova + len) of a key is; NULL: not to be had with these rights. */
static uint8_t *reach(struct mrf_vpd *pd, uint32_t key, uint64_t iova, uint64_t len, unsigned right)
{
	unsigned index = (key >> 8) - 1;
	struct mr *mr = index < MAX_MRS ? &f.mrs[index] : NULL;

	if (!mr || mr->pd != pd || mr->key != key || (mr->rights & right) != right)
		return NULL;
	if (iova < mr->iova || len > mr->len || iova - mr->iova > mr->len - len)
		return NULL;
	return (uint8_t *)(mr->addr + (iova - mr->iova));
}

/* --- vcq -------------------------------------------------------------------------------
 */

static int open_cq(struct mrf_vdev *dev, size_t depth, struct mrf_vcq *beside, struct mrf_vcq **out)
{
	struct mrf_vcq *cq;
	int ret;

	if (!depth || depth > dev->limits.max_cqe)
		return -FI_EINVAL;
	cq = make(FAKE_VCQ_OPEN, sizeof(*cq), &ret);
	if (!cq)
		return ret;
	cq->ring = calloc(depth, sizeof(*cq->ring));
	cq->fd = beside ? beside->fd : mrf_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (!cq->ring || cq->fd < 0) {
		if (cq->fd >= 0 && !beside)
			close(cq->fd);
		free(cq->ring);
		unmake(FAKE_VCQ_OPEN, cq);
		return -FI_ENOMEM;
	}
	cq->depth = depth;
	cq->dev = dev;
	enter();
	mrf_list_init(&cq->of_fd);
	if (beside)
		mrf_list_add_tail(&cq->of_fd, &beside->of_fd);
	leave();
	*out = cq;
	return 0;
}

int mrf_vcq_open(struct mrf_vdev *dev, size_t depth, struct mrf_vcq **cq)
{
	return open_cq(dev, depth, NULL, cq);
}

int mrf_vcq_open_beside(struct mrf_vcq *first, size_t depth, struct mrf_vcq **cq)
{
	return open_cq(first->dev, depth, first, cq);
}

/* What is in it is put where it belongs in the longer ring. */
int mrf_vcq_grow(struct mrf_vcq *cq, size_t depth)
{
	struct mrf_wc *ring = calloc(depth, sizeof(*ring)), *old = ring;
	int ret;

	if (!ring)
		return -FI_ENOMEM;
	enter();
	ret = ordered(FAKE_VCQ_GROW);
	if (!ret && (depth < cq->depth || depth > cq->dev->limits.max_cqe))
		ret = -FI_EINVAL;
	if (!ret) {
		for (size_t i = cq->head; i != cq->tail; i++)
			ring[i % depth] = cq->ring[i % cq->depth];
		old = cq->ring;
		cq->ring = ring;
		cq->depth = depth;
	}
	leave();
	free(old);
	return ret;
}

/* The kernel would not let go of it. */
static void must_complete_no_pair(const struct mrf_vcq *cq)
{
	mrf_list_each (node, &f.pairs) {
		const struct mrf_vconn *end = &mrf_list_entry(node, struct mrf_vpair, node)->end;

		if (end->attr.send_cq == cq || end->attr.recv_cq == cq)
			abort();
	}
}

void mrf_vcq_close(struct mrf_vcq *cq)
{
	bool last;

	enter();
	must_complete_no_pair(cq);
	last = mrf_list_empty(&cq->of_fd);
	mrf_list_del(&cq->of_fd);
	leave();
	if (last)
		close(cq->fd);
	free(cq->ring);
	unmake(FAKE_VCQ_OPEN, cq);
}

int mrf_vcq_poll_from(struct mrf_vcq *cq, struct mrf_wc *wc, int n)
{
	int got = 0;
	bool late;

	enter();
	late = cq->stopped || (fake.is_late && fake.is_late(cq));
	while (!late && got < n && cq->head != cq->tail)
		wc[got++] = cq->ring[cq->head++ % cq->depth];
	while (cq->spoilt && got < n)
		wc[got++] = (struct mrf_wc){ .wr_id = UINT64_MAX };
	cq->rearmed &= !got;
	leave();
	return got;
}

/* The number of the queue pair is not what it says here. */
int mrf_vcq_poll(struct mrf_vcq *cq, struct mrf_wc *wc, int n)
{
	int i, got = mrf_vcq_poll_from(cq, wc, n);

	for (i = 0; i < got; i++)
		wc[i].qpn = UINT32_MAX;
	return got;
}

static void ring_cq(struct mrf_vcq *cq)
{
	cq->told = true;
	ring_fd(cq->fd);
}

struct mrf_vcq *mrf_vcq_ack_one(struct mrf_vcq *cq)
{
	struct mrf_vcq *from = NULL, *at = cq;

	enter();
	silence_fd(cq->fd);
	do {
		if (at->told && from)
			ring_fd(at->fd);
		else if (at->told)
			from = at;
		at = mrf_list_entry(at->of_fd.next, struct mrf_vcq, of_fd);
	} while (at != cq);
	if (from)
		from->told = from->rearmed = false;
	leave();
	return from;
}

void mrf_vcq_ack(struct mrf_vcq *cq)
{
	while (mrf_vcq_ack_one(cq))
		;
}

int mrf_vcq_fd(const struct mrf_vcq *cq)
{
	return cq->fd;
}

const char *mrf_wc_status_text(int raw_status)
{
	return raw_status == RAW_FLUSH ? "flushed" : "failed";
}

static int raw_of(enum mrf_wc_status status)
{
	switch (status) {
	case MRF_WC_OK:
		return 0;
	case MRF_WC_FLUSHED:
		return RAW_FLUSH;
	case MRF_WC_REFUSED:
		return RAW_REM_ACCESS;
	case MRF_WC_LOCAL:
		return RAW_LOC_PROT;
	case MRF_WC_TIMEOUT:
		return RAW_RETRY_EXC;
	default:
		return RAW_GENERAL;
	}
}

static void complete(struct mrf_vcq *cq, struct mrf_wc wc)
{
	if (cq->tail - cq->head == cq->depth) {
		fake.overflows++;
		return;
	}
	if (!wc.raw_status)
		wc.raw_status = raw_of(wc.status);
	cq->ring[cq->tail++ % cq->depth] = wc;
	if (cq->armed && !cq->stopped && !cq->deaf) {
		cq->armed = false;
		ring_cq(cq);
	}
}

/* --- vcm: events
 * ------------------------------------------------------------------------ */

int mrf_vcm_open(struct mrf_vcm **out)
{
	int ret;
	struct mrf_vcm *cm = make(FAKE_VCM_OPEN, sizeof(*cm), &ret);

	if (!cm)
		return ret;
	mrf_list_init(&cm->events);
	cm->fd = mrf_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (cm->fd < 0) {
		unmake(FAKE_VCM_OPEN, cm);
		return -FI_ENOMEM;
	}
	*out = cm;
	return 0;
}

static void event_free(struct mrf_list *node)
{
	mrf_list_del(node);
	free(mrf_list_entry(node, struct event, node));
}

void mrf_vcm_close(struct mrf_vcm *cm)
{
	mrf_list_each_safe (node, &cm->events)
		event_free(node);
	close(cm->fd);
	unmake(FAKE_VCM_OPEN, cm);
}

int mrf_vcm_fd(const struct mrf_vcm *cm)
{
	return cm->fd;
}

/*
 * Queues an event of conn; padded: what rdma_cm makes of the length. What it returns may
 * be filled in further.
 */
static struct mrf_cm_event *tell(struct mrf_vconn *conn, enum mrf_cm_type type, const void *data,
				 size_t len, size_t padded)
{
	static struct mrf_cm_event unheard;
	struct event *event;

	if (conn->cm->dead)
		return &unheard;
	event = must_alloc(sizeof(*event));
	event->e.type = type;
	event->e.conn = conn;
	event->e.len = padded;
	if (len)
		memcpy(event->e.data, data, len);
	mrf_list_add_tail(&event->node, &conn->cm->events);
	if (!conn->cm->stopped)
		ring_fd(conn->cm->fd);
	return &event->e;
}

/* --- queue pairs
 * ------------------------------------------------------------------------- */

static void send_ended(struct mrf_vconn *conn, struct wr *wr, enum mrf_wc_status status,
		       int raw_status)
{
	complete(conn->attr.send_cq, (struct mrf_wc){ .wr_id = wr->wr.wr_id,
						      .status = status,
						      .raw_status = raw_status,
						      .kind = MRF_WC_SENT,
						      .qpn = conn->qpn });
	mrf_list_del(&wr->node);
	free(wr);
	conn->nsq--;
}

static void send_done(struct mrf_vconn *conn, struct wr *wr, enum mrf_wc_status status)
{
	send_ended(conn, wr, status, 0);
}

/* The next receive of this queue pair; NULL: none is posted. */
static struct recv *recv_next(const struct mrf_vconn *conn)
{
	struct mrf_list *node = mrf_list_first(conn->attr.srq ? &conn->attr.srq->rq : &conn->rq);

	return node ? mrf_list_entry(node, struct recv, node) : NULL;
}

static struct recv *recv_take(struct mrf_vconn *conn)
{
	struct recv *recv = recv_next(conn);

	mrf_list_del(&recv->node);
	if (conn->attr.srq)
		conn->attr.srq->nrq--;
	else
		conn->nrq--;
	return recv;
}

static void recv_ended(struct mrf_vconn *conn, struct recv *recv, struct mrf_wc wc)
{
	wc.wr_id = recv->wr_id;
	wc.qpn = conn->qpn;
	complete(conn->attr.recv_cq, wc);
	free(recv);
}

static void recv_done(struct mrf_vconn *conn, enum mrf_wc_status status, enum mrf_wc_kind kind,
		      size_t len, uint32_t imm)
{
	recv_ended(conn, recv_take(conn),
		   (struct mrf_wc){
			   .status = status, .kind = kind, .byte_len = (uint32_t)len, .imm = imm });
}

static const struct mrf_wc flushed_recv = { .status = MRF_WC_FLUSHED, .kind = MRF_WC_RECV };

/* All but shared ones. */
static void flush_recvs(struct mrf_vconn *conn)
{
	if (conn->begun)
		recv_ended(conn, conn->begun, flushed_recv);
	conn->begun = NULL;
	while (!mrf_list_empty(&conn->rq))
		recv_done(conn, MRF_WC_FLUSHED, MRF_WC_RECV, 0, 0);
}

static void flush_sends(struct mrf_vconn *conn)
{
	struct mrf_list *node;

	while ((node = mrf_list_first(&conn->sq)))
		send_done(conn, mrf_list_entry(node, struct wr, node), MRF_WC_FLUSHED);
}

static void qp_error(struct mrf_vconn *conn)
{
	if (conn->qp != QP_INIT && conn->qp != QP_RTS)
		return;
	conn->qp = QP_ERR;
	flush_sends(conn);
	flush_recvs(conn);
}

/* Nobody hears of a queue pair that is gone. */
static void forget_events(struct mrf_vdev *dev, const struct mrf_vconn *conn)
{
	unsigned i, n = 0;

	for (i = 0; i < dev->nevents; i++) {
		if (dev->events[i].owner != conn->owner)
			dev->events[n++] = dev->events[i];
	}
	dev->nevents = n;
}

/* Without a trace, as when its process dies or destroys it. */
static void qp_drop(struct mrf_vconn *conn)
{
	struct mrf_list *node;

	while ((node = mrf_list_pop(&conn->sq)))
		free(mrf_list_entry(node, struct wr, node));
	while ((node = mrf_list_pop(&conn->rq)))
		free(mrf_list_entry(node, struct recv, node));
	free(conn->begun);
	conn->begun = NULL;
	conn->nsq = conn->nrq = 0;
	if (conn->qp != QP_NONE) {
		conn->qp = QP_DEAD;
		if (!conn->is_pair)
			forget_events(conn->attr.recv_cq->dev, conn);
	}
}

static bool is_atomic(enum mrf_vwr_op op)
{
	return op == MRF_VWR_FETCH_ADD || op == MRF_VWR_CMP_SWP;
}

/* Does something come back into the local buffer? */
static bool lands(enum mrf_vwr_op op)
{
	return op == MRF_VWR_READ || is_atomic(op);
}

static bool local_ok(const struct mrf_vconn *conn, const struct wr *wr)
{
	unsigned right = lands(wr->wr.op) ? MRF_RIGHT_LOCAL_WRITE : 0;
	int i;

	if (wr->wr.is_inline)
		return true;
	for (i = 0; i < wr->wr.nsge; i++) {
		const struct mrf_sge *sge = &wr->sge[i];

		if (sge->len && !reach(conn->attr.pd, sge->lkey, sge->addr, sge->len, right))
			return false;
	}
	return true;
}

static void do_atomic(const struct mrf_vwr *wr, void *there, void *here)
{
	uint64_t old, new;

	memcpy(&old, there, sizeof(old));
	new = wr->op == MRF_VWR_FETCH_ADD ? old + wr->operand
	      : old == wr->compare	  ? wr->operand
					  : old;
	memcpy(there, &new, sizeof(new));
	memcpy(here, &old, sizeof(old));
}

/* Moves the bytes between the local pieces and one remote place. */
static void move(const struct mrf_vconn *conn, struct wr *wr, uint8_t *there)
{
	int i;

	if (wr->wr.is_inline) {
		if (wr->len)
			memcpy(there, wr->data, wr->len);
		return;
	}
	if (is_atomic(wr->wr.op)) {
		do_atomic(&wr->wr, there,
			  reach(conn->attr.pd, wr->sge[0].lkey, wr->sge[0].addr, 8, 0));
		return;
	}
	for (i = 0; i < wr->wr.nsge; i++) {
		const struct mrf_sge *sge = &wr->sge[i];
		uint8_t *here;

		if (!sge->len)
			continue;
		here = reach(conn->attr.pd, sge->lkey, sge->addr, sge->len, 0);
		if (wr->wr.op == MRF_VWR_READ)
			memcpy(here, there, sge->len);
		else
			memcpy(there, here, sge->len);
		there += sge->len;
	}
}

/* How an initiator asks whether the peer is there; applications' accesses have bytes. */
static bool is_probe(const struct wr *wr)
{
	return wr->wr.op == MRF_VWR_WRITE && !wr->len;
}

static void remember(const struct wr *wr, const uint8_t *there)
{
	if (is_probe(wr)) {
		f.probes++;
		return;
	}
	if (fake.nlog == FAKE_LOG)
		return;
	fake.log[fake.nlog++] = (struct fake_done){ .op = wr->wr.op,
						    .addr = (uintptr_t)there,
						    .len = wr->len,
						    .imm = wr->wr.imm,
						    .first = wr->len ? *there : 0 };
}

/* Into the pieces of a receive. False: it does not fit, or the memory is gone. */
static bool spread(const struct mrf_vconn *to, const struct recv *recv, const uint8_t *msg,
		   size_t len)
{
	int i;

	for (i = 0; len && i < recv->nsge; i++) {
		const struct mrf_sge *sge = &recv->sge[i];
		size_t n = mrf_min(len, (size_t)sge->len);
		uint8_t *slot = reach(to->attr.pd, sge->lkey, sge->addr, n, MRF_RIGHT_LOCAL_WRITE);

		if (n && !slot)
			return false;
		if (n)
			memcpy(slot, msg, n);
		msg += n;
		len -= n;
	}
	return !len;
}

static bool is_send(const struct wr *wr)
{
	return wr->wr.op == MRF_VWR_SEND || wr->wr.op == MRF_VWR_SEND_IMM;
}

/* False: it does not fit, or the memory of the receive is gone; the queue pair is broken. */
static bool arrive(struct mrf_vconn *to, const uint8_t *msg, size_t len, const uint32_t *imm)
{
	struct recv *recv = to->qp == QP_RTS ? recv_next(to) : NULL;

	if (!recv)
		return true;
	if (!spread(to, recv, msg, len)) {
		recv_ended(to, recv_take(to),
			   (struct mrf_wc){ .status = MRF_WC_UNSENT,
					    .raw_status = RAW_LOC_QP_OP,
					    .kind = MRF_WC_RECV });
		qp_error(to);
		return false;
	}
	recv_done(to, MRF_WC_OK, imm ? MRF_WC_RECV_SEND_IMM : MRF_WC_RECV, len, imm ? *imm : 0);
	return true;
}

static void keep(struct mrf_vconn *to, const uint8_t *msg, size_t len, const uint32_t *imm)
{
	struct kept *kept = must_alloc(sizeof(*kept) + len);

	kept->to = to;
	kept->len = len;
	kept->has_imm = imm;
	kept->imm = imm ? *imm : 0;
	memcpy(kept->data, msg, len);
	mrf_list_add_tail(&kept->node, &f.kept);
}

/* False: the target does not take it. */
static bool meet_fate(struct mrf_vconn *conn, uint8_t *msg, size_t len, uint32_t *imm)
{
	enum fake_fate fate = FAKE_DELIVER;
	bool taken = true;

	fake.imm = imm;
	if (fake.on_send && !conn->is_pair)
		fate = fake.on_send(msg, &len, conn->passive);
	if (fate == FAKE_REFUSE)
		return false;
	if (fate == FAKE_KEEP)
		keep(conn->peer, msg, len, imm);
	else if (fate != FAKE_DROP)
		taken = arrive(conn->peer, msg, len, imm);
	if (fate == FAKE_TWICE)
		arrive(conn->peer, msg, len, imm);
	return taken;
}

/* False: there is no RECV, wait. *refused: the target does not take it. */
static bool deliver(struct mrf_vconn *conn, struct wr *wr, bool *refused)
{
	/* Room for what on_send makes of it, too. */
	uint8_t *msg;
	uint32_t imm = wr->wr.imm;

	if (!recv_next(conn->peer))
		return false;
	msg = must_alloc(mrf_max(wr->len, (size_t)4 * MAX_INLINE));
	fake.asks += !conn->passive && !conn->is_pair;
	conn->peer->taken++;
	move(conn, wr, msg);
	*refused = !meet_fate(conn, msg, wr->len, wr->wr.op == MRF_VWR_SEND_IMM ? &imm : NULL);
	free(msg);
	return true;
}

static void break_both(struct mrf_vconn *conn, struct wr *wr, enum mrf_wc_status status);
static void run_queue(struct mrf_vconn *conn);

/* This end of a pair is broken: the other gets no answer to what it has sent. */
static void leave_unanswered(struct mrf_vconn *conn)
{
	if (conn->is_pair && conn->peer)
		run_queue(conn->peer);
}

/* It ends here, and has only begun there. */
static void break_off(struct mrf_vconn *conn, struct wr *wr)
{
	struct mrf_vconn *peer = conn->peer;
	struct recv *recv = recv_take(peer);

	if (peer->attr.srq && fake.loses_recvs)
		free(recv);
	else
		peer->begun = recv;
	break_both(conn, wr, MRF_WC_LOCAL);
}

/* Does it end before it is all there? */
static bool breaks_off(struct mrf_vconn *conn, struct wr *wr)
{
	if (wr->ran)
		return false;
	if (!local_ok(conn, wr)) {
		break_both(conn, wr, MRF_WC_LOCAL);
		return true;
	}
	if (conn->is_pair || wr->wr.is_inline || !recv_next(conn->peer) || !f.break_send_nth ||
	    --f.break_send_nth)
		return false;
	break_off(conn, wr);
	return true;
}

/* A target does not look again at what it has done, except for a read: it refuses nothing then. */
static bool may_break(const struct wr *wr, const struct broken *how)
{
	return how->status != MRF_WC_REFUSED || !wr->ran || wr->wr.op == MRF_VWR_READ;
}

/* Is its end ordered? */
static bool breaks(const struct wr *wr, struct broken *how)
{
	if (!may_break(wr, how) || !how->nth || --how->nth)
		return false;
	how->nth = --how->times ? 1 : 0;
	return true;
}

/* The kernel of 6.12: everything comes back as a flush, the messages first. */
static void flush_all(struct mrf_vconn *conn)
{
	conn->qp = QP_ERR;
	flush_recvs(conn);
	flush_sends(conn);
}

/* Is it an initiator's end, for frames, whose other end is still there? */
static bool is_line(const struct mrf_vconn *conn)
{
	return !conn->passive && conn->peer && conn->peer->attr.sends_only;
}

/* On 6.12, as run_flushed: what is ahead of a bad local buffer arrives, and is flushed. */
static bool frames_flushed(struct mrf_vconn *conn)
{
	bool refused, bad = false;

	if (!fake.flush_local || !(conn->is_pair || is_line(conn)))
		return false;
	mrf_list_each (node, &conn->sq)
		bad |= !local_ok(conn, mrf_list_entry(node, struct wr, node));
	if (!bad)
		return false;
	mrf_list_each (node, &conn->sq) {
		struct wr *wr = mrf_list_entry(node, struct wr, node);

		if (!local_ok(conn, wr) || (!wr->ran && !deliver(conn, wr, &refused)))
			break;
	}
	flush_all(conn);
	leave_unanswered(conn);
	return true;
}

/* Is the end of this frame, or SEND of a pair, ordered? There is a receive for it. */
static bool breaks_frame(struct mrf_vconn *conn, struct wr *wr)
{
	struct broken *how = conn->is_pair ? &f.pair : &f.frame;
	bool refused;

	if (!(conn->is_pair || is_line(conn)) || !breaks(wr, how))
		return false;
	if (how->ran && !wr->ran)
		deliver(conn, wr, &refused);
	break_both(conn, wr, how->status);
	return true;
}

static bool run_send(struct mrf_vconn *conn, struct wr *wr)
{
	struct mrf_vconn *peer = conn->peer;
	bool refused = false;

	if (frames_flushed(conn) || breaks_off(conn, wr) ||
	    (recv_next(peer) && breaks_frame(conn, wr)))
		return true;
	if (!wr->ran && !deliver(conn, wr, &refused))
		return false;
	if (refused) {
		send_ended(conn, wr, MRF_WC_REFUSED, RAW_REM_OP);
		qp_error(conn);
		qp_error(peer);
	} else {
		send_done(conn, wr, MRF_WC_OK);
	}
	return true;
}

static unsigned remote_right(enum mrf_vwr_op op)
{
	if (is_atomic(op))
		return MRF_RIGHT_REMOTE_ATOMIC;
	return op == MRF_VWR_READ ? MRF_RIGHT_REMOTE_READ : MRF_RIGHT_REMOTE_WRITE;
}

/* What the work request of an access would meet at the target. */
static enum mrf_wc_status check_remote(const struct mrf_vconn *conn, const struct wr *wr,
				       uint8_t **there)
{
	unsigned right = remote_right(wr->wr.op);

	*there = NULL;
	/* An initiator lets nobody through. */
	if (conn->passive || conn->peer->attr.sends_only)
		return MRF_WC_REFUSED;
	/* What was done is acknowledged again; a read is done again. */
	if (!wr->len || (wr->ran && wr->wr.op != MRF_VWR_READ))
		return MRF_WC_OK;
	*there = reach(conn->peer->attr.pd, wr->wr.rkey, wr->wr.remote_addr, wr->len, right);
	return *there ? MRF_WC_OK : MRF_WC_REFUSED;
}

static void do_access(struct mrf_vconn *conn, struct wr *wr, uint8_t *there)
{
	if (wr->ran)
		return;
	if (is_atomic(wr->wr.op) && fake.on_atomic)
		fake.on_atomic(wr->wr.op, there);
	if (wr->len)
		move(conn, wr, there);
	remember(wr, there);
	conn->peer->taken +=
		wr->len > FAKE_MTU ? (uint32_t)((wr->len + FAKE_MTU - 1) / FAKE_MTU) : 1;
	if (wr->wr.op == MRF_VWR_WRITE_IMM)
		recv_done(conn->peer, MRF_WC_OK, MRF_WC_RECV_IMM, wr->len, wr->wr.imm);
}

static void break_both(struct mrf_vconn *conn, struct wr *wr, enum mrf_wc_status status)
{
	struct mrf_vconn *peer = conn->peer;

	send_done(conn, wr, status);
	qp_error(conn);
	if (status == MRF_WC_REFUSED)
		qp_error(peer);
	leave_unanswered(conn);
}

/* A bad local buffer somewhere in the queue: what is ahead of it runs, and is flushed. */
static bool run_flushed(struct mrf_vconn *conn)
{
	struct wr *bad = NULL;

	mrf_list_each (node, &conn->sq) {
		struct wr *wr = mrf_list_entry(node, struct wr, node);

		if (!is_send(wr) && !local_ok(conn, wr)) {
			bad = wr;
			break;
		}
	}
	if (!bad)
		return false;
	mrf_list_each (node, &conn->sq) {
		struct wr *wr = mrf_list_entry(node, struct wr, node);
		uint8_t *there;

		if (wr == bad)
			break;
		if (!is_send(wr) && check_remote(conn, wr, &there) == MRF_WC_OK)
			do_access(conn, wr, there);
	}
	flush_all(conn);
	return true;
}

/* False: it has to wait. */
static bool run_access(struct mrf_vconn *conn, struct wr *wr)
{
	enum mrf_wc_status status;
	uint8_t *there;

	if (fake.flush_local && run_flushed(conn))
		return true;
	if (!local_ok(conn, wr)) {
		break_both(conn, wr, MRF_WC_LOCAL);
		return true;
	}
	status = check_remote(conn, wr, &there);
	if (status == MRF_WC_OK && wr->wr.op == MRF_VWR_WRITE_IMM && !recv_next(conn->peer))
		return false;
	if (status == MRF_WC_OK && is_probe(wr)) {
		status = f.probe_status;
		f.probe_status = MRF_WC_OK;
	} else if (status == MRF_WC_OK && breaks(wr, &f.access)) {
		if (f.access.ran)
			do_access(conn, wr, there);
		status = f.access.status;
	}
	if (status != MRF_WC_OK) {
		break_both(conn, wr, status);
		return true;
	}
	do_access(conn, wr, there);
	send_done(conn, wr, MRF_WC_OK);
	return true;
}

static bool is_held(const struct mrf_vconn *conn, const struct wr *wr)
{
	if (!is_send(wr))
		return f.hold;
	if (conn->is_pair)
		return f.hold_messages || f.hold_pairs;
	return f.hold_messages || (f.hold_frames && is_line(conn));
}

/* Nobody acknowledges what goes over this pair any more, however often it is sent. */
static bool is_unanswered(const struct mrf_vconn *conn)
{
	return conn->unanswered || (conn->is_pair && conn->peer && conn->peer->qp == QP_ERR);
}

static void time_out(struct mrf_vconn *conn)
{
	struct mrf_list *node = mrf_list_first(&conn->sq);
	struct wr *wr = node ? mrf_list_entry(node, struct wr, node) : NULL;

	if (conn->qp == QP_RTS && wr && !is_held(conn, wr) && is_unanswered(conn))
		break_both(conn, wr, MRF_WC_TIMEOUT);
}

static void run_queue(struct mrf_vconn *conn)
{
	struct mrf_list *node;

	time_out(conn);
	while (conn->qp == QP_RTS && conn->peer && conn->peer->qp == QP_RTS &&
	       (node = mrf_list_first(&conn->sq))) {
		struct wr *wr = mrf_list_entry(node, struct wr, node);

		if (is_held(conn, wr) || !(is_send(wr) ? run_send(conn, wr) : run_access(conn, wr)))
			return;
	}
}

static void run_all(void)
{
	mrf_list_each (node, &f.conns)
		run_queue(mrf_list_entry(node, struct mrf_vconn, node));
	mrf_list_each (node, &f.pairs)
		run_queue(&mrf_list_entry(node, struct mrf_vpair, node)->end);
}

static void hold_some(bool hold, bool messages)
{
	enter();
	f.hold = hold;
	f.hold_messages = messages;
	if (!hold)
		run_all();
	leave();
}

void fake_hold(bool hold)
{
	hold_some(hold, false);
}

void fake_hold_all(bool hold)
{
	hold_some(hold, hold);
}

void fake_hold_frames(bool hold)
{
	enter();
	f.hold_frames = hold;
	if (!hold)
		run_all();
	leave();
}

void fake_hold_pairs(bool hold)
{
	enter();
	f.hold_pairs = hold;
	if (!hold)
		run_all();
	leave();
}

static void run_unacknowledged(struct mrf_vconn *conn)
{
	uint8_t *there;
	bool refused;

	if (conn->qp != QP_RTS || !conn->peer || conn->peer->qp != QP_RTS)
		return;
	mrf_list_each (node, &conn->sq) {
		struct wr *wr = mrf_list_entry(node, struct wr, node);

		if (is_send(wr)) {
			if (!wr->ran &&
			    (!local_ok(conn, wr) || !deliver(conn, wr, &refused) || refused))
				return;
		} else {
			if (!local_ok(conn, wr) || check_remote(conn, wr, &there) != MRF_WC_OK)
				return;
			do_access(conn, wr, there);
		}
		wr->ran = true;
	}
}

void fake_run_unacknowledged(void)
{
	enter();
	mrf_list_each (node, &f.conns)
		run_unacknowledged(mrf_list_entry(node, struct mrf_vconn, node));
	mrf_list_each (node, &f.pairs)
		run_unacknowledged(&mrf_list_entry(node, struct mrf_vpair, node)->end);
	fake.retries++;
	leave();
}

void fake_run_on_arm(void)
{
	enter();
	f.run_on_arm = true;
	leave();
}

void fake_run_on_disconnect(void)
{
	enter();
	f.run_on_disconnect = true;
	leave();
}

static void run_one(struct mrf_vcq *cq)
{
	mrf_list_each (node, &f.conns) {
		struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->attr.send_cq != cq || !conn->nsq)
			continue;
		f.run_on_arm = false;
		run_access(conn, mrf_list_entry(mrf_list_first(&conn->sq), struct wr, node));
		return;
	}
}

void mrf_vcq_arm(struct mrf_vcq *cq)
{
	enter();
	cq->armed = cq->rearmed = true;
	if (f.run_on_arm)
		run_one(cq);
	leave();
}

void mrf_vcq_rearm(struct mrf_vcq *cq, bool fired)
{
	bool rearmed;

	enter();
	rearmed = cq->rearmed;
	leave();
	if (rearmed && !fired)
		return;
	mrf_vcq_ack(cq);
	mrf_vcq_arm(cq);
}

void fake_freeze(bool freeze)
{
	if (freeze)
		enter();
	else
		leave();
}

unsigned fake_queued(void)
{
	unsigned n = 0;

	enter();
	mrf_list_each (node, &f.conns)
		n += mrf_list_entry(node, struct mrf_vconn, node)->nsq;
	mrf_list_each (node, &f.pairs)
		n += mrf_list_entry(node, struct mrf_vpair, node)->end.nsq;
	leave();
	return n;
}

/* False: the first one that is left waits for a receive. */
static bool deliver_kept(void)
{
	struct mrf_list *node;

	while ((node = mrf_list_first(&f.kept))) {
		struct kept *kept = mrf_list_entry(node, struct kept, node);

		if (kept->to->qp == QP_RTS && !recv_next(kept->to))
			return false;
		arrive(kept->to, kept->data, kept->len, kept->has_imm ? &kept->imm : NULL);
		mrf_list_del(node);
		free(kept);
	}
	return true;
}

#define RECEIVE_MS 20000 /* until a receive is posted */

void fake_deliver(void)
{
	int64_t end = mrf_now_ms() + RECEIVE_MS;
	bool done;

	do {
		enter();
		done = deliver_kept();
		leave();
	} while (!done && mrf_now_ms() < end && !usleep(100));
	if (!done)
		abort();
}

int mrf_vcm_next(struct mrf_vcm *cm, struct mrf_cm_event *out)
{
	struct mrf_list *node;
	int ret = -FI_EAGAIN;

	mrf_slow_call();
	enter();
	cm->asked++;
	node = cm->stopped ? NULL : mrf_list_first(&cm->events);
	if (cm->denied) {
		ret = -FI_EACCES;
	} else if (node) {
		*out = mrf_list_entry(node, struct event, node)->e;
		event_free(node);
		/* librdmacm breaks the queue pair of a request that was turned down. */
		if (out->type == MRF_CM_REJECTED || out->type == MRF_CM_FAILED)
			qp_error(out->conn);
		ret = 0;
	} else {
		silence_fd(cm->fd);
	}
	leave();
	return ret;
}

int mrf_vconn_create_qp(struct mrf_vconn *conn, const struct mrf_vqp_attr *attr)
{
	int ret;

	if (attr->send_sge > MAX_SGE || attr->max_inline > MAX_INLINE ||
	    (attr->srq && attr->srq->pd->dev != attr->pd->dev))
		return -FI_EINVAL;
	enter();
	ret = ordered(FAKE_CREATE_QP);
	if (!ret) {
		conn->attr = *attr;
		conn->qp = QP_INIT;
		conn->qpn = ++f.last_qpn;
		f.live[FAKE_CREATE_QP]++;
	}
	leave();
	return ret;
}

void mrf_vconn_destroy_qp(struct mrf_vconn *conn)
{
	mrf_slow_call();
	enter();
	if (conn->qp != QP_NONE)
		f.live[FAKE_CREATE_QP]--;
	qp_drop(conn);
	conn->qp = QP_NONE;
	leave();
}

int mrf_vconn_psn(const struct mrf_vconn *conn, uint32_t *psn, uint32_t *mtu)
{
	(void)conn;
	if (!fake.packets)
		return -FI_ENOSYS;
	*psn = FIRST_PSN;
	*mtu = FAKE_MTU;
	return 0;
}

int mrf_vconn_stopped(const struct mrf_vconn *conn, uint32_t *psn)
{
	if (!fake.packets)
		return -FI_ENOSYS;
	enter();
	fake.stops++;
	*psn = (FIRST_PSN + conn->taken + fake.overtaken) & 0xffffff;
	leave();
	return 0;
}

uint32_t mrf_vconn_qpn(const struct mrf_vconn *conn)
{
	return conn->qpn;
}

int mrf_vconn_tune(struct mrf_vconn *conn)
{
	int ret;

	(void)conn;
	enter();
	ret = ordered(FAKE_TUNE);
	leave();
	return ret;
}

static int wr_copy(const struct mrf_vwr *from, struct wr *to)
{
	uint8_t *p = to->data;
	int i;

	to->wr = *from;
	to->wr.sge = NULL;
	for (i = 0; i < from->nsge; i++) {
		to->sge[i] = from->sge[i];
		to->len += from->sge[i].len;
	}
	if (!from->is_inline)
		return 0;
	if (to->len > MAX_INLINE)
		return -FI_EINVAL;
	for (i = 0; i < from->nsge; i++) {
		if (from->sge[i].len)
			memcpy(p, (void *)(uintptr_t)from->sge[i].addr, from->sge[i].len);
		p += from->sge[i].len;
	}
	return 0;
}

static int post_locked(struct mrf_vconn *conn, struct wr *wr)
{
	enum fake_call call = conn->is_pair ? FAKE_VPAIR_SEND : FAKE_POST;
	int ret = conn->cm->denied ? -FI_EACCES : ordered(call);

	if (ret && ret != -FI_EACCES)
		return ret;
	if (conn->qp == QP_NONE || conn->qp == QP_INIT)
		return -FI_EINVAL;
	if (conn->nsq == conn->attr.send_depth)
		return -FI_EAGAIN;
	mrf_list_add_tail(&wr->node, &conn->sq);
	conn->nsq++;
	fake.denied += ret != 0;
	if (conn->qp == QP_ERR)
		flush_sends(conn);
	else if (!ret)
		run_queue(conn);
	/* If not, it lies in the queue, but nobody told the kernel. */
	return ret;
}

static bool atomic_fits(const struct mrf_vwr *wr)
{
	if (wr->op != MRF_VWR_FETCH_ADD && wr->op != MRF_VWR_CMP_SWP)
		return true;
	return !(wr->remote_addr & 7) && wr->nsge == 1 && wr->sge->len == 8;
}

int mrf_vconn_post(struct mrf_vconn *conn, const struct mrf_vwr *vwr)
{
	struct wr *wr;
	int ret;

	if ((unsigned)vwr->nsge > conn->attr.send_sge || !atomic_fits(vwr))
		return -FI_EINVAL;
	wr = calloc(1, sizeof(*wr));
	if (!wr)
		return -FI_ENOMEM;
	ret = wr_copy(vwr, wr);
	if (!ret) {
		enter();
		ret = post_locked(conn, wr);
		leave();
	}
	if (ret && ret != -FI_EACCES)
		free(wr);
	return ret;
}

int mrf_vconn_send(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
		   bool is_inline)
{
	const struct mrf_vwr wr = {
		.wr_id = wr_id, .op = MRF_VWR_SEND, .nsge = nsge, .sge = sge, .is_inline = is_inline
	};

	return mrf_vconn_post(conn, &wr);
}

int mrf_vconn_send_imm(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge, int nsge,
		       bool is_inline, uint32_t imm)
{
	const struct mrf_vwr wr = { .wr_id = wr_id,
				    .op = MRF_VWR_SEND_IMM,
				    .nsge = nsge,
				    .sge = sge,
				    .is_inline = is_inline,
				    .imm = imm };

	return mrf_vconn_post(conn, &wr);
}

int mrf_vconn_access(struct mrf_vconn *conn, uint64_t wr_id, enum mrf_vwr_op op, bool is_inline,
		     struct mrf_sge *sge, uint64_t remote_addr, uint32_t rkey, uint32_t imm)
{
	struct mrf_vwr wr = { .wr_id = wr_id,
			      .op = op,
			      .is_inline = is_inline,
			      .nsge = 1,
			      .sge = sge,
			      .remote_addr = remote_addr,
			      .rkey = rkey,
			      .imm = imm };

	return mrf_vconn_post(conn, &wr);
}

int mrf_vconn_fetch_add(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge,
			uint64_t remote_addr, uint32_t rkey, uint64_t add)
{
	struct mrf_vwr wr = { .wr_id = wr_id,
			      .op = MRF_VWR_FETCH_ADD,
			      .nsge = 1,
			      .sge = sge,
			      .remote_addr = remote_addr,
			      .rkey = rkey,
			      .operand = add };

	return mrf_vconn_post(conn, &wr);
}

static struct recv *recv_new(uint64_t wr_id, const struct mrf_sge *sge, int nsge)
{
	struct recv *recv = calloc(1, sizeof(*recv) + (size_t)nsge * sizeof(*sge));

	if (recv) {
		recv->wr_id = wr_id;
		recv->nsge = nsge;
		memcpy(recv->sge, sge, (size_t)nsge * sizeof(*sge));
	}
	return recv;
}

static int post_recv(struct mrf_vconn *conn, uint64_t wr_id, const struct mrf_sge *sge, int nsge)
{
	struct recv *recv = recv_new(wr_id, sge, nsge);
	int ret;

	if (!recv)
		return -FI_ENOMEM;
	enter();
	ret = ordered(conn->is_pair ? FAKE_VPAIR_RECV : FAKE_POST_RECV);
	if (!ret && conn->attr.srq)
		ret = -FI_EINVAL;
	if (!ret && conn->nrq == conn->attr.recv_depth)
		ret = -FI_EAGAIN;
	if (!ret) {
		mrf_list_add_tail(&recv->node, &conn->rq);
		conn->nrq++;
		/* rxe does not look at receives that are posted to a broken queue pair. */
		if (conn->qp == QP_ERR && !conn->is_pair)
			flush_recvs(conn);
		else if (conn->peer)
			run_queue(conn->peer);
	}
	leave();
	if (ret)
		free(recv);
	return ret;
}

int mrf_vconn_post_recv(struct mrf_vconn *conn, uint64_t wr_id, struct mrf_sge *sge)
{
	return post_recv(conn, wr_id, sge, 1);
}

/* --- pairs ----------------------------------------------------------------------------
 */

static bool are_same(struct mrf_vpair_name a, struct mrf_vpair_name b)
{
	return a.qpn == b.qpn && a.psn == b.psn;
}

/* No number is like another one soon, and each is the same whenever the test runs. */
static uint32_t some_psn(uint32_t qpn)
{
	return qpn * 2654435761u >> 8;
}

/* That of a connection which is no more, or will be none. */
static int conn_refuses(const struct mrf_vconn *conn, enum fake_call call)
{
	int ret = conn->cm->denied ? -FI_EACCES : ordered(call);

	if (ret)
		return ret;
	return conn->state == CONNECTED ? 0 : -FI_ECONNRESET;
}

static struct mrf_vpair *pair_new(struct mrf_vconn *conn, const struct mrf_vpair_attr *attr)
{
	struct mrf_vpair *pair = calloc(1, sizeof(*pair));

	if (!pair)
		return NULL;
	pair->end.cm = conn->cm;
	pair->end.is_pair = true;
	pair->end.qp = QP_INIT;
	pair->end.qpn = ++f.last_qpn;
	pair->end.attr = (struct mrf_vqp_attr){ .pd = attr->pd,
						.send_cq = attr->send_cq,
						.recv_cq = attr->recv_cq,
						.send_depth = attr->send_depth,
						.recv_depth = attr->recv_depth,
						.send_sge = attr->send_sge,
						.max_inline = attr->max_inline };
	mrf_list_init(&pair->end.sq);
	mrf_list_init(&pair->end.rq);
	pair->recv_sge = attr->recv_sge;
	pair->name = (struct mrf_vpair_name){ pair->end.qpn, some_psn(pair->end.qpn) };
	mrf_list_add_tail(&pair->node, &f.pairs);
	f.live[FAKE_VPAIR_OPEN]++;
	return pair;
}

int mrf_vpair_open(struct mrf_vconn *conn, const struct mrf_vpair_attr *attr,
		   struct mrf_vpair **out)
{
	struct mrf_vpair *pair = NULL;
	int ret;

	if (attr->send_sge > MAX_SGE || attr->recv_sge > MAX_SGE || attr->max_inline > MAX_INLINE)
		return -FI_EINVAL;
	enter();
	ret = conn_refuses(conn, FAKE_VPAIR_OPEN);
	if (!ret) {
		pair = pair_new(conn, attr);
		ret = pair ? 0 : -FI_ENOMEM;
	}
	leave();
	if (!ret)
		*out = pair;
	return ret;
}

struct mrf_vpair_name mrf_vpair_name(const struct mrf_vpair *pair)
{
	return pair->name;
}

static struct mrf_vpair *pair_at(uint32_t qpn)
{
	mrf_list_each (node, &f.pairs) {
		struct mrf_vpair *pair = mrf_list_entry(node, struct mrf_vpair, node);

		if (pair->name.qpn == qpn && pair->end.qp != QP_DEAD)
			return pair;
	}
	return NULL;
}

/* Each end is connected to the other; if not, what is sent waits, as between other names. */
static void join(struct mrf_vpair *pair)
{
	struct mrf_vpair *other = pair_at(pair->other.qpn);

	pair->end.unanswered = !other;
	if (!other || !are_same(pair->other, other->name) || !are_same(other->other, pair->name))
		return;
	pair->end.peer = &other->end;
	other->end.peer = &pair->end;
	run_queue(&other->end);
}

int mrf_vpair_connect(struct mrf_vpair *pair, struct mrf_vconn *conn,
		      const struct mrf_vpair_name *other)
{
	int ret;

	enter();
	ret = conn_refuses(conn, FAKE_VPAIR_CONNECT);
	if (!ret && pair->end.qp != QP_INIT)
		ret = -FI_EINVAL;
	if (!ret) {
		pair->other = *other;
		pair->end.qp = QP_RTS;
		join(pair);
	}
	leave();
	return ret;
}

/* Without a completion. What the other end sends and has sent is not acknowledged any more. */
static void pair_end(struct mrf_vpair *pair)
{
	qp_drop(&pair->end);
	pair->end.peer = NULL;
	mrf_list_each (node, &f.pairs) {
		struct mrf_vconn *end = &mrf_list_entry(node, struct mrf_vpair, node)->end;

		if (mrf_list_entry(node, struct mrf_vpair, node)->other.qpn != pair->name.qpn)
			continue;
		end->peer = NULL;
		end->unanswered = true;
		run_queue(end);
	}
}

/* All of the process at the same time: between them nothing times out. */
static void kill_pairs(const struct mrf_vcm *cm)
{
	mrf_list_each (node, &f.pairs) {
		struct mrf_vpair *pair = mrf_list_entry(node, struct mrf_vpair, node);

		if (pair->end.cm == cm)
			qp_drop(&pair->end);
	}
	mrf_list_each (node, &f.pairs) {
		struct mrf_vpair *pair = mrf_list_entry(node, struct mrf_vpair, node);

		if (pair->end.cm == cm)
			pair_end(pair);
	}
}

void mrf_vpair_close(struct mrf_vpair *pair)
{
	mrf_slow_call();
	enter();
	pair_end(pair);
	mrf_list_del(&pair->node);
	f.live[FAKE_VPAIR_OPEN]--;
	leave();
	free(pair);
}

int mrf_vpair_send(struct mrf_vpair *pair, uint64_t wr_id, struct mrf_sge *sge, int nsge,
		   bool is_inline)
{
	return mrf_vconn_send(&pair->end, wr_id, sge, nsge, is_inline);
}

int mrf_vpair_recv(struct mrf_vpair *pair, uint64_t wr_id, struct mrf_sge *sge, int nsge)
{
	return (unsigned)nsge > pair->recv_sge ? -FI_EINVAL
					       : post_recv(&pair->end, wr_id, sge, nsge);
}

/* --- shared receives ------------------------------------------------------------------
 */

int mrf_vsrq_open(struct mrf_vpd *pd, uint32_t depth, struct mrf_vsrq **out)
{
	struct mrf_vsrq *srq;
	int ret;

	if (!depth)
		return -FI_EINVAL;
	srq = make(FAKE_VSRQ_OPEN, sizeof(*srq), &ret);
	if (!srq)
		return ret;
	srq->pd = pd;
	srq->depth = depth;
	mrf_list_init(&srq->rq);
	enter();
	mrf_list_add_tail(&srq->node, &f.srqs);
	leave();
	*out = srq;
	return 0;
}

unsigned fake_shared_recvs(void)
{
	unsigned n = 0;

	enter();
	mrf_list_each (node, &f.srqs)
		n += mrf_list_entry(node, struct mrf_vsrq, node)->nrq;
	leave();
	return n;
}

/* The kernel would not let go of it. */
static void must_have_no_user(const struct mrf_vsrq *srq)
{
	mrf_list_each (node, &f.conns) {
		const struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->qp != QP_NONE && conn->attr.srq == srq)
			abort();
	}
}

void mrf_vsrq_close(struct mrf_vsrq *srq)
{
	struct mrf_list *node;

	enter();
	must_have_no_user(srq);
	while ((node = mrf_list_pop(&srq->rq)))
		free(mrf_list_entry(node, struct recv, node));
	mrf_list_del(&srq->node);
	leave();
	unmake(FAKE_VSRQ_OPEN, srq);
}

/* Whoever waits for it. */
static void run_users(const struct mrf_vsrq *srq)
{
	mrf_list_each (node, &f.conns) {
		struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->qp == QP_RTS && conn->attr.srq == srq && conn->peer)
			run_queue(conn->peer);
	}
}

int mrf_vsrq_post(struct mrf_vsrq *srq, uint64_t wr_id, struct mrf_sge *sge)
{
	struct recv *recv = recv_new(wr_id, sge, 1);
	int ret;

	if (!recv)
		return -FI_ENOMEM;
	enter();
	ret = ordered(FAKE_VSRQ_POST);
	if (!ret && srq->nrq == srq->depth)
		ret = -FI_EAGAIN;
	if (!ret) {
		mrf_list_add_tail(&recv->node, &srq->rq);
		srq->nrq++;
		run_users(srq);
	}
	leave();
	if (ret)
		free(recv);
	return ret;
}

/* --- vloop ----------------------------------------------------------------------------
 */

struct mrf_vloop {
	struct mrf_vpd *pd;
	bool broken;
};

int mrf_vloop_open(struct mrf_vdev *dev, const struct sockaddr *addr, struct mrf_vpd *pd,
		   struct mrf_vloop **out)
{
	struct mrf_vloop *loop;
	int ret;

	if (addr->sa_family != AF_INET || pd->dev != dev)
		return -FI_EINVAL;
	loop = make(FAKE_VLOOP_OPEN, sizeof(*loop), &ret);
	if (!loop)
		return ret;
	loop->pd = pd;
	*out = loop;
	return 0;
}

void mrf_vloop_close(struct mrf_vloop *loop)
{
	unmake(FAKE_VLOOP_OPEN, loop);
}

static uint64_t sge_total(const struct mrf_vwr *wr)
{
	uint64_t len = 0;
	int i;

	for (i = 0; i < wr->nsge; i++)
		len += wr->sge[i].len;
	return len;
}

static int loop_run(struct mrf_vloop *loop, const struct mrf_vwr *wr)
{
	uint8_t *there =
		reach(loop->pd, wr->rkey, wr->remote_addr, sge_total(wr), remote_right(wr->op));
	uint8_t *here[MRF_VLOOP_SGE];
	int i;

	if (fake.on_loop)
		fake.on_loop(wr->op, there);
	if (!there)
		return -FI_EACCES;
	for (i = 0; i < wr->nsge; i++) {
		here[i] = reach(loop->pd, wr->sge[i].lkey, wr->sge[i].addr, wr->sge[i].len,
				lands(wr->op) ? MRF_RIGHT_LOCAL_WRITE : 0);
		if (!here[i])
			return -FI_EACCES;
	}
	if (is_atomic(wr->op)) {
		do_atomic(wr, there, here[0]);
		return 0;
	}
	for (i = 0; i < wr->nsge; there += wr->sge[i++].len) {
		if (wr->op == MRF_VWR_READ)
			memcpy(here[i], there, wr->sge[i].len);
		else
			memcpy(there, here[i], wr->sge[i].len);
	}
	return 0;
}

int mrf_vloop_run(struct mrf_vloop *loop, const struct mrf_vwr *wr)
{
	int ret;

	if (loop->broken || wr->nsge < 1 || wr->nsge > MRF_VLOOP_SGE || wr->is_inline)
		abort();
	if (is_atomic(wr->op) && ((wr->remote_addr & 7) || wr->nsge != 1))
		abort();
	enter();
	ret = ordered(FAKE_VLOOP_RUN);
	if (!ret)
		ret = loop_run(loop, wr);
	fake.loops += !ret;
	loop->broken = ret;
	leave();
	return ret;
}

/* --- connections
 * ------------------------------------------------------------------------- */

static struct mrf_vconn *conn_new(struct mrf_vcm *cm, int *ret)
{
	struct mrf_vconn *conn = calloc(1, sizeof(*conn));

	*ret = conn ? 0 : -FI_ENOMEM;
	if (!conn)
		return NULL;
	conn->cm = cm;
	mrf_list_init(&conn->sq);
	mrf_list_init(&conn->rq);
	mrf_list_add_tail(&conn->node, &f.conns);
	f.live[FAKE_VCONN_OPEN]++;
	return conn;
}

int mrf_vconn_open(struct mrf_vcm *cm, void *owner, struct mrf_vconn **out)
{
	struct mrf_vconn *conn = NULL;
	int ret;

	enter();
	ret = cm->denied ? -FI_EACCES : ordered(FAKE_VCONN_OPEN);
	if (!ret)
		conn = conn_new(cm, &ret);
	leave();
	if (!conn)
		return ret;
	conn->owner = owner;
	*out = conn;
	return 0;
}

/* The other end learns that this one is not there any more. */
static void part(struct mrf_vconn *conn)
{
	struct mrf_vconn *peer = conn->peer;

	if (!peer)
		return;
	conn->peer = NULL;
	peer->peer = NULL;
	if (conn->cm->denied && !conn->cm->abandoned) {
		peer->orphan = conn->cm;
		return;
	}
	if (conn->state == REQUESTED)
		tell(peer, MRF_CM_REJECTED, NULL, 0, 148);
	else if (conn->state == CONNECTED)
		tell(peer, MRF_CM_DISCONNECTED, NULL, 0, 0);
	peer->state = GONE;
}

static void conn_free(struct mrf_vconn *conn)
{
	part(conn);
	if (conn->qp != QP_NONE)
		f.live[FAKE_CREATE_QP]--;
	qp_drop(conn);
	mrf_list_each_safe (node, &f.kept) {
		if (mrf_list_entry(node, struct kept, node)->to == conn) {
			mrf_list_del(node);
			free(mrf_list_entry(node, struct kept, node));
		}
	}
	mrf_list_del(&conn->node);
	f.live[FAKE_VCONN_OPEN]--;
	free(conn);
}

static void conn_close(struct mrf_vconn *conn)
{
	mrf_list_each_safe (node, &conn->cm->events) {
		struct mrf_cm_event *e = &mrf_list_entry(node, struct event, node)->e;

		if (e->conn != conn)
			continue;
		/* Requests that nobody took are rejected with their listener. */
		if (e->incoming)
			conn_free(e->incoming);
		event_free(node);
	}
	conn_free(conn);
}

void mrf_vconn_close(struct mrf_vconn *conn)
{
	mrf_slow_call();
	enter();
	conn_close(conn);
	leave();
}

void *mrf_vconn_owner(const struct mrf_vconn *conn)
{
	return conn->owner;
}

void mrf_vconn_set_owner(struct mrf_vconn *conn, void *owner)
{
	conn->owner = owner;
}

static struct mrf_vconn *listener_at(uint16_t port)
{
	mrf_list_each (node, &f.conns) {
		struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->state == LISTENING && conn->port == port && !conn->cm->dead)
			return conn;
	}
	return NULL;
}

static bool port_taken(uint16_t port)
{
	mrf_list_each (node, &f.conns) {
		const struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->port == port && !conn->passive)
			return true;
	}
	return false;
}

int mrf_vconn_bind(struct mrf_vconn *conn, struct sockaddr *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)addr;
	uint16_t port = ntohs(in->sin_port);
	int ret;

	enter();
	ret = conn->cm->denied ? -FI_EACCES : ordered(FAKE_BIND);
	if (!ret && port && port_taken(port))
		ret = -FI_EADDRINUSE;
	while (!ret && (!port || (!in->sin_port && port_taken(port))))
		port = f.next_port = f.next_port == 60000 ? 40000 : f.next_port + 1;
	if (!ret)
		conn->port = port;
	leave();
	if (!ret)
		in->sin_port = htons(port);
	return ret;
}

int mrf_vconn_listen(struct mrf_vconn *conn)
{
	int ret;

	enter();
	ret = conn->cm->denied ? -FI_EACCES : ordered(FAKE_LISTEN);
	if (!ret)
		conn->state = LISTENING;
	leave();
	return ret;
}

static void resolved(struct mrf_vconn *conn)
{
	if (f.unresolved == UINT_MAX)
		return;
	if (f.unresolved && f.unresolved--)
		tell(conn, MRF_CM_UNRESOLVED, NULL, 0, 0);
	else if (f.unreachable_nth && !--f.unreachable_nth)
		tell(conn, MRF_CM_FAILED, NULL, 0, 0)->err = f.unreachable_err;
	else
		tell(conn, MRF_CM_ADDR_RESOLVED, NULL, 0, 0);
}

int mrf_vconn_resolve(struct mrf_vconn *conn, const struct sockaddr *src,
		      const struct sockaddr *dst, int timeout_ms, unsigned ack_timeout)
{
	int ret;

	(void)timeout_ms;
	(void)ack_timeout;
	enter();
	ret = conn->cm->denied ? -FI_EACCES : ordered(FAKE_RESOLVE);
	if (!ret) {
		memcpy(&conn->dst, dst, sizeof(struct sockaddr_in));
		memcpy(&conn->src, src, sizeof(struct sockaddr_in));
		conn->dst_port = ntohs(((const struct sockaddr_in *)(const void *)dst)->sin_port);
		conn->state = RESOLVED;
		resolved(conn);
	}
	leave();
	return ret;
}

int mrf_vconn_route(struct mrf_vconn *conn, int timeout_ms)
{
	int ret;

	(void)timeout_ms;
	enter();
	ret = conn->cm->denied ? -FI_EACCES : ordered(FAKE_ROUTE);
	if (!ret)
		tell(conn, MRF_CM_ROUTE_RESOLVED, NULL, 0, 0);
	leave();
	return ret;
}

static void see(const void *data, size_t len)
{
	if (fake.on_private && len)
		fake.on_private(data, len);
}

static int request(struct mrf_vconn *conn, const void *data, size_t len)
{
	struct mrf_vconn *listener = listener_at(conn->dst_port), *incoming;
	struct mrf_cm_event *event;
	int ret = 0;

	see(data, len);
	if (f.lost && f.lost--)
		return 0;
	if (!listener) {
		tell(conn, MRF_CM_REJECTED, NULL, 0, 148)->status = 28;
		return 0;
	}
	incoming = conn_new(listener->cm, &ret);
	if (!incoming)
		return ret;
	incoming->passive = true;
	incoming->state = REQUESTED;
	incoming->peer = conn;
	incoming->dst = conn->src;
	conn->peer = incoming;
	conn->state = CONNECTING;
	event = tell(listener, MRF_CM_REQUEST, data, len, 56);
	event->incoming = incoming;
	event->qpn = conn->qpn;
	return 0;
}

int mrf_vconn_connect(struct mrf_vconn *conn, const void *data, size_t len, unsigned retry)
{
	int ret;

	if (len > 56 || retry < 1 || retry > 6)
		return -FI_EINVAL;
	enter();
	ret = conn->cm->denied ? -FI_EACCES : ordered(FAKE_CONNECT);
	if (!ret)
		ret = request(conn, data, len);
	leave();
	return ret;
}

int mrf_vconn_accept(struct mrf_vconn *conn, const void *data, size_t len)
{
	uint8_t welcome[196];
	struct mrf_vconn *peer;
	int ret;

	if (len > 196)
		return -FI_EINVAL;
	enter();
	ret = conn->cm->denied ? -FI_EACCES : ordered(FAKE_ACCEPT);
	peer = conn->peer;
	if (!ret && !peer) {
		tell(conn, MRF_CM_DISCONNECTED, NULL, 0, 0);
	} else if (!ret) {
		see(data, len);
		memcpy(welcome, data, len);
		if (fake.on_accept)
			fake.on_accept(welcome, len);
		conn->state = peer->state = CONNECTED;
		conn->qp = QP_RTS;
		tell(peer, MRF_CM_RESPONSE, welcome, len, 196)->qpn = conn->qpn;
	}
	leave();
	return ret;
}

int mrf_vconn_establish(struct mrf_vconn *conn)
{
	int ret;

	enter();
	ret = ordered(FAKE_ESTABLISH);
	if (!ret && conn->qp == QP_INIT)
		conn->qp = QP_RTS;
	/* The other end may have gone meanwhile: an event says so. */
	if (!ret && conn->peer) {
		fake.connects++;
		if (!fake.loses_confirmations)
			tell(conn->peer, MRF_CM_ESTABLISHED, NULL, 0, 0);
		run_queue(conn->peer);
	}
	leave();
	return ret;
}

void mrf_vconn_reject(struct mrf_vconn *conn, const void *data, size_t len)
{
	mrf_slow_call();
	enter();
	/* Also of one that was accepted: so says the kernel while the peer is not heard. */
	if (conn->peer && (conn->state == REQUESTED || conn->state == CONNECTED)) {
		struct mrf_vconn *peer = conn->peer;

		see(data, len);
		conn->peer = peer->peer = NULL;
		conn->state = peer->state = GONE;
		tell(peer, MRF_CM_REJECTED, data, len, 148);
	}
	leave();
}

int mrf_vconn_disconnect(struct mrf_vconn *conn)
{
	int ret;

	mrf_slow_call();
	enter();
	if (f.run_on_disconnect) {
		f.run_on_disconnect = f.hold = f.hold_messages = false;
		if (conn->peer)
			run_queue(conn->peer);
	}
	if (conn->state == CONNECTED && !conn->cm->denied) {
		part(conn);
		conn->state = GONE;
		tell(conn, MRF_CM_DISCONNECTED, NULL, 0, 0);
	}
	ret = conn->cm->denied ? -FI_EACCES : 0;
	qp_error(conn);
	leave();
	return ret;
}

void mrf_vconn_peer_addr(const struct mrf_vconn *conn, union mrf_addr *addr)
{
	memcpy(addr, &conn->dst, sizeof(*addr));
}

void fake_kill(struct mrf_vcm *cm)
{
	enter();
	cm->dead = true;
	mrf_list_each (node, &f.conns) {
		struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->cm != cm)
			continue;
		part(conn);
		conn->state = GONE;
		qp_drop(conn);
	}
	kill_pairs(cm);
	leave();
}

void fake_remove(struct mrf_vcm *cm)
{
	enter();
	mrf_list_each (node, &f.conns) {
		struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->cm == cm)
			tell(conn, MRF_CM_REMOVED, NULL, 0, 0);
	}
	leave();
}

void fake_deny(struct mrf_vcm *cm)
{
	enter();
	cm->denied = true;
	leave();
}

unsigned fake_cm_asked(const struct mrf_vcm *cm)
{
	unsigned n;

	enter();
	n = cm->asked;
	leave();
	return n;
}

static void tell_orphan(struct mrf_vconn *conn)
{
	conn->orphan = NULL;
	conn->state = GONE;
	tell(conn, MRF_CM_DISCONNECTED, NULL, 0, 0);
}

void mrf_vcm_abandon(struct mrf_vcm *cm)
{
	mrf_slow_call();
	enter();
	cm->abandoned = cm->dead = true;
	mrf_list_each (node, &f.conns) {
		struct mrf_vconn *conn = mrf_list_entry(node, struct mrf_vconn, node);

		if (conn->orphan == cm)
			tell_orphan(conn);
		if (conn->cm != cm)
			continue;
		part(conn);
		conn->state = GONE;
	}
	leave();
}

size_t fake_depth(const struct mrf_vcq *cq)
{
	size_t depth;

	enter();
	depth = cq->depth;
	leave();
	return depth;
}

void fake_stop(struct mrf_vcm *cm, struct mrf_vcq *cq, bool stop)
{
	enter();
	if (cm) {
		cm->stopped = stop;
		if (!stop && !mrf_list_empty(&cm->events))
			ring_fd(cm->fd);
	}
	if (cq) {
		cq->stopped = stop;
		if (!stop && cq->head != cq->tail)
			ring_cq(cq);
	}
	leave();
}

void fake_spoil(struct mrf_vcq *cq, bool spoilt)
{
	enter();
	cq->spoilt = spoilt;
	leave();
}

void fake_deafen(struct mrf_vcq *cq, bool deaf)
{
	enter();
	cq->deaf = deaf;
	if (!deaf && cq->head != cq->tail)
		ring_cq(cq);
	leave();
}
