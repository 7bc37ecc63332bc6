/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations at the target, by the agent, for what peers cannot do themselves.
 *
 * rxe's atomic operations are plain loads and stores under a lock of its own: atomic with
 * each other, not with the CPU. So the agent changes memory with the device's operations,
 * too, through two queue pairs of its own that are connected with each other
 * (verbs/vloop.h), in the protection domain of the endpoint, with the rkeys that peers
 * use. Rights, bounds, closed regions, memory pinned on demand and leases are thereby
 * checked as they are for peers (mrf_mr_reach).
 *
 * An element inside one of the 8-byte words that peers reach with the device's operations
 * is changed with these, too: the processor looks at what the word holds, the element is
 * replaced in that, and a compare-and-swap stores it unless the word holds something
 * else; then the swap has told what, and is repeated with that. So it is atomic with
 * whatever peers do to the word. The look goes by way of the kernel (process_vm_readv),
 * because that costs much less than asking the device. What it sees may be wrong, for the
 * application may have mapped other memory there by now; the swap, which is done even
 * where nothing changes, corrects it.
 *
 * Any other element - longer than a word, across words, or in a word that the region has
 * only a part of - is copied by RDMA between the region's local keys and a scratch
 * buffer, exactly its bytes, changed, and copied back, by one agent of the process at a
 * time. Peers cannot reach such a word as a whole natively through this region, and bytes
 * outside the region are never touched. (Through another region that has all of the word
 * they can; fi_atomic(3mrfab) says so.)
 *
 * After MRF_SWAPS swaps and copies other peers get their turn, and the agent carries on in the next
 * one of this peer. For regions with an event number it counts an operation once, with the last
 * request that goes to the region.
 *
 * Either way goes through the kernel regions that peers use: an element of a region that
 * is closed meanwhile is out of reach for the agent as it is for them. Agent thread.
 */
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/renew.h"
#include "contract/budget.h"
#include "ep/model/atomics.h"
#include "ep/rx/atomic_serve.h"
#include "mr/demand/backs.h"
#include "verbs/vloop.h"

struct mrf_atomic_loop {
	struct mrf_vloop *vloop; /* NULL: to be opened (again) */
	struct mrf_vmr mr;	 /* of what follows */
	union {
		uint64_t word; /* what a device operation found */
		uint8_t element[MRF_ATOMIC_MAX_SIZE];
	};
};

/* --- the loop ------------------------------------------------------------------------- */

static struct mrf_vpd *pd_of(const struct mrf_ep *ep)
{
	return mrf_mr_port_pd(&ep->domain->space, &ep->port);
}

static int loop_new(struct mrf_ep *ep, struct mrf_atomic_loop **out)
{
	struct mrf_atomic_loop *loop = calloc(1, sizeof(*loop));
	int ret;

	if (!loop)
		return -FI_ENOMEM;
	ret = mrf_room_reg(
		pd_of(ep), loop->element, sizeof(loop->element), (uintptr_t)loop->element,
		MRF_RIGHT_LOCAL_WRITE | MRF_RIGHT_REMOTE_READ | MRF_RIGHT_REMOTE_WRITE, &loop->mr);
	if (ret)
		free(loop);
	else
		*out = loop;
	return ret;
}

static int loop_get(struct mrf_ep *ep)
{
	int ret = ep->loop ? 0 : loop_new(ep, &ep->loop);

	if (!ret && !ep->loop->vloop)
		ret = mrf_vloop_open(ep->domain->vdev, &ep->domain->addr.sa, pd_of(ep),
				     &ep->loop->vloop);
	if (ret)
		mrf_warn(FI_LOG_EP_DATA, 4262,
			 "there are no queue pairs or no memory for a peer's atomic "
			 "operation: error %d",
			 ret);
	return ret;
}

static void loop_drop(struct mrf_atomic_loop *loop)
{
	if (loop->vloop)
		mrf_vloop_close(loop->vloop);
	loop->vloop = NULL;
}

void mrf_atomic_loop_close(struct mrf_ep *ep)
{
	if (!ep->loop)
		return;
	loop_drop(ep->loop);
	/* Peers of the endpoint's class have a right to its element. */
	if (mrf_vmr_drop(&ep->loop->mr))
		free(ep->loop);
	ep->loop = NULL;
}

/* --- a request that is being carried out ---------------------------------------------- */

struct serving {
	struct mrf_ep *ep;
	struct mrf_atomic_loop *loop;
	const struct mrf_request *request;
	unsigned family, datatype, op;
	size_t size; /* of an element */
	struct mrf_mr_lease lease;
	struct mrf_mr_view view; /* of some of the bytes from the next one on */
	unsigned *swaps;	 /* and copies, of this turn */
	uint32_t event;		 /* number of the region, if it counts */
	bool stored;		 /* something was */
	unsigned refused;	 /* times that the kernel said no */
};

/* An operation of the loop that failed leaves none. */
static int run(struct serving *serving, const struct mrf_vwr *wr)
{
	int ret = mrf_vloop_run(serving->loop->vloop, wr);

	++*serving->swaps;
	if (ret)
		loop_drop(serving->loop);
	return ret;
}

/* Returns the status of the bytes from pos on; serving->view shows as many of them as it can. */
static uint32_t look(struct serving *serving, uint64_t pos)
{
	const struct mrf_request *request = serving->request;
	struct mrf_mr_query query = { .key = request->key,
				      .serial = request->serial,
				      .addr = pos,
				      .len = request->len - (pos - request->addr),
				      .port = &serving->ep->port };

	mrf_mr_reach(&serving->ep->domain->space, &query, &serving->lease, &serving->view);
	if (serving->view.status != MRF_MR_OK)
		return serving->view.status;
	serving->event = serving->view.event;
	if (!(serving->view.access & FI_REMOTE_WRITE) || !(serving->view.access & FI_ATOMIC))
		return MRF_REPLY_RIGHT;
	return MRF_REPLY_DONE;
}

/* --- where an element is -------------------------------------------------------------- */

/* Bytes that are together in one kernel region. */
struct spot {
	uint64_t iova;
	uint64_t len;
	uint64_t before; /* bytes that the region has before and behind them */
	uint64_t behind;
	uint32_t lkey;
	uint32_t rkey;
};

static bool in_view(const struct serving *serving, uint64_t pos, uint64_t len, struct spot *spot)
{
	const struct mrf_mr_seg *seg;
	uint64_t n, offset;
	unsigned i;

	n = mrf_mr_locate(serving->view.seg, serving->view.nseg, true, pos, len, &i, &offset);
	if (!n)
		return false;
	seg = &serving->view.seg[i];
	*spot = (struct spot){ .iova = seg->iova + offset,
			       .len = n,
			       .before = offset,
			       .behind = seg->len - offset - n,
			       .lkey = seg->lkey,
			       .rkey = seg->rkey };
	return true;
}

/* Finds the first piece of at most len bytes from pos on. Returns a status. */
static uint32_t find(struct serving *serving, uint64_t pos, uint64_t len, struct spot *spot)
{
	uint32_t status;

	if (in_view(serving, pos, len, spot))
		return MRF_REPLY_DONE;
	if (serving->view.complete)
		return MRF_MR_OUTSIDE;
	status = look(serving, pos);
	if (status)
		return status;
	return in_view(serving, pos, len, spot) ? MRF_REPLY_DONE : MRF_MR_OUTSIDE;
}

/* Is the element in a word that peers can reach as a whole? */
static bool in_word(const struct spot *spot, size_t size)
{
	uint64_t head = spot->iova % sizeof(uint64_t);

	return spot->len == size && head + size <= sizeof(uint64_t) && spot->before >= head &&
	       spot->behind >= sizeof(uint64_t) - head - size;
}

/* --- one element ---------------------------------------------------------------------- */

/* Operand, comparand, and where the old value goes. */
struct values {
	const uint8_t *operand;
	const uint8_t *compare; /* NULL: there is none */
	uint8_t *result;
};

/*
 * Guesses the value of the word that contains byte pos. A wrong guess does no harm: the memory may
 * be unmapped or replaced by now or, in a region of several segments, lie elsewhere.
 */
static uint64_t guess(const struct serving *serving, uint64_t pos, uint64_t head)
{
	bool virt = serving->ep->domain->space.mode & FI_MR_VIRT_ADDR;
	uint64_t addr = (virt ? pos : serving->view.base + pos) - head, word = 0;
	struct iovec here = { .iov_base = &word, .iov_len = sizeof(word) };
	struct iovec there = { .iov_base = (void *)(uintptr_t)addr, .iov_len = sizeof(word) };
	/* The kernel reads it, so that unmapped memory is an error and no SIGSEGV. */
	ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

	(void)n;
	return word;
}

enum { OVERTAKEN = 1 };

/* 0, or what the loop says; or OVERTAKEN: others were faster, and it is time to go. */
static int change_word(struct serving *serving, uint64_t pos, const struct spot *spot,
		       const struct values *values)
{
	uint64_t head = spot->iova % sizeof(uint64_t);
	struct mrf_sge sge = { .addr = (uintptr_t)&serving->loop->word,
			       .len = sizeof(uint64_t),
			       .lkey = serving->loop->mr.lkey };
	struct mrf_vwr wr = { .op = MRF_VWR_CMP_SWP,
			      .nsge = 1,
			      .sge = &sge,
			      .remote_addr = spot->iova - head,
			      .rkey = spot->rkey };
	bool store;
	int ret;

	for (wr.compare = guess(serving, pos, head);; wr.compare = serving->loop->word) {
		wr.operand = wr.compare;
		memcpy(values->result, (uint8_t *)&wr.compare + head, serving->size);
		store = mrf_atomic_apply(serving->datatype, serving->op, values->result,
					 values->operand, values->compare,
					 (uint8_t *)&wr.operand + head);
		/* An operation that stores nothing swaps the word for itself. */
		ret = run(serving, &wr);
		if (ret)
			return ret;
		if (serving->loop->word == wr.compare)
			break;
		if (*serving->swaps >= MRF_SWAPS)
			return OVERTAKEN;
	}
	serving->stored |= store;
	return 0;
}

/* Copies an element in pieces: op WRITE takes it out of the region, READ puts it there. */
static int copy(struct serving *serving, enum mrf_vwr_op op, struct mrf_sge *sge, int nsge)
{
	struct mrf_vwr wr = { .op = op,
			      .nsge = nsge,
			      .sge = sge,
			      .remote_addr = (uintptr_t)serving->loop->element,
			      .rkey = serving->loop->mr.rkey };

	return run(serving, &wr);
}

/* One agent of the process at a time: regions of two domains may be the same memory. */
static struct mrf_static_lock copying = MRF_STATIC_LOCK(NULL);

static int change_copy(struct serving *serving, struct mrf_sge *sge, int nsge,
		       const struct values *values)
{
	uint8_t *element = serving->loop->element;
	bool stored;
	int ret;

	mrf_static_take(&copying);
	ret = copy(serving, MRF_VWR_WRITE, sge, nsge);
	if (!ret) {
		memcpy(values->result, element, serving->size);
		stored = mrf_atomic_apply(serving->datatype, serving->op, values->result,
					  values->operand, values->compare, element);
		if (stored)
			ret = copy(serving, MRF_VWR_READ, sge, nsge);
		serving->stored |= !ret && stored;
	}
	mrf_static_release(&copying);
	return ret;
}

/* Finds all pieces of an element whose first piece is known. Returns a status. */
static uint32_t find_all(struct serving *serving, uint64_t pos, struct spot *spot,
			 struct mrf_sge *sge, int *nsge)
{
	uint64_t done = 0;
	uint32_t status;

	for (*nsge = 0; *nsge < MRF_VLOOP_SGE;) {
		sge[(*nsge)++] = (struct mrf_sge){ .addr = spot->iova,
						   .len = (uint32_t)spot->len,
						   .lkey = spot->lkey };
		done += spot->len;
		if (done == serving->size)
			return MRF_REPLY_DONE;
		status = find(serving, pos + done, serving->size - done, spot);
		if (status)
			return status;
	}
	return MRF_MR_OUTSIDE;
}

/* The next attempt starts from scratch, with queue pairs that work. */
static uint32_t refused(struct serving *serving)
{
	enum { TRIES = 8 };

	serving->view.nseg = 0;
	serving->view.complete = false;
	if (++serving->refused > TRIES)
		return MRF_REPLY_RIGHT;
	return loop_get(serving->ep) ? MRF_REPLY_FAILED : MRF_REPLY_DONE;
}

/* Returns a status; *changed: the operation has been done. */
static uint32_t change(struct serving *serving, uint64_t pos, const struct values *values,
		       bool *changed)
{
	struct mrf_sge sge[MRF_VLOOP_SGE];
	struct spot spot;
	uint32_t status = find(serving, pos, serving->size, &spot);
	int nsge, ret;

	if (status)
		return status;
	if (in_word(&spot, serving->size)) {
		ret = change_word(serving, pos, &spot, values);
	} else {
		status = find_all(serving, pos, &spot, sge, &nsge);
		if (status)
			return status;
		ret = change_copy(serving, sge, nsge, values);
	}
	*changed = !ret;
	if (ret == -FI_EACCES)
		return refused(serving);
	return ret < 0 ? MRF_REPLY_FAILED : MRF_REPLY_DONE;
}

/* --- all of them ---------------------------------------------------------------------- */

static uint32_t change_all(struct serving *serving, uint64_t *done, uint8_t *results)
{
	const uint8_t *body = serving->request->body;
	bool fetch = serving->family != MRF_ATOMIC_BASE;
	bool compare = serving->family == MRF_ATOMIC_COMPARE;
	uint8_t nowhere[MRF_ATOMIC_MAX_SIZE];
	uint32_t status = MRF_REPLY_DONE;
	uint64_t len = serving->request->len;

	while (!status && *done < len && *serving->swaps < MRF_SWAPS) {
		struct values values = { .operand = body + *done,
					 .compare = compare ? body + len + *done : NULL,
					 .result = fetch ? results + *done : nowhere };
		bool changed = false;

		status = change(serving, serving->request->addr + *done, &values, &changed);
		*done += changed ? serving->size : 0;
	}
	return status;
}

bool mrf_atomic_understood(const struct mrf_request *request)
{
	unsigned family = MRF_ATOMIC_WHAT_FAMILY(request->what);
	unsigned datatype = MRF_ATOMIC_WHAT_DATATYPE(request->what);
	unsigned op = MRF_ATOMIC_WHAT_OP(request->what);
	uint64_t want = op == FI_ATOMIC_READ ? 0 : request->len;

	return mrf_atomic_valid(family, datatype, op) && request->len &&
	       request->len <= MRF_ATOMIC_REQUEST(family) &&
	       !(request->len % mrf_atomic_size(datatype)) &&
	       request->body_len == (family == MRF_ATOMIC_COMPARE ? 2 : 1) * want;
}

/* Counts an operation that changed the region once, with the last of its requests. */
static void count(const struct serving *serving)
{
	uint32_t what = serving->request->what;

	if ((what & MRF_ATOMIC_WHAT_COUNT) &&
	    (serving->stored || (what & MRF_ATOMIC_WHAT_STORED)) && serving->event &&
	    (serving->ep->caps & FI_RMA_EVENT))
		mrf_mr_event(&serving->ep->domain->space, serving->event, &serving->ep->port);
}

int mrf_atomic_serve(struct mrf_work *work, const struct mrf_request *request)
{
	struct mrf_reply *reply = &work->reply;
	struct serving serving = { .ep = work->passive->ep,
				   .request = request,
				   .swaps = &work->swaps,
				   .stored = reply->flags & MRF_REPLY_STORED,
				   .family = MRF_ATOMIC_WHAT_FAMILY(request->what),
				   .datatype = MRF_ATOMIC_WHAT_DATATYPE(request->what),
				   .op = MRF_ATOMIC_WHAT_OP(request->what) };
	int ret;

	if (!mrf_atomic_understood(request))
		return -FI_EINVAL;
	serving.size = mrf_atomic_size(serving.datatype);
	ret = loop_get(serving.ep);
	if (ret) {
		reply->status = MRF_REPLY_FAILED;
		reply->err = (uint32_t)-ret;
		return 0;
	}
	serving.loop = serving.ep->loop;
	mrf_mr_lease_init(&serving.lease);
	reply->status = change_all(&serving, &reply->done, mrf_work_body(work));
	mrf_mr_lease_end(&serving.lease);
	if (serving.family != MRF_ATOMIC_BASE)
		reply->body_len = (uint32_t)reply->done;
	if (reply->status == MRF_REPLY_FAILED)
		reply->err = FI_EIO;
	reply->flags = serving.stored ? MRF_REPLY_STORED : 0;
	if (reply->done == request->len)
		count(&serving);
	return reply->status == MRF_REPLY_DONE && reply->done < request->len ? MRF_SERVE_LATER : 0;
}
