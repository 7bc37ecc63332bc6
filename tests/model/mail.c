/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_tagged.h>
#include "exec.h"

#define ROOM (MESSAGE_MAX + 64u) /* of one operation: a little is left behind each message */
#define BEHIND 32u
#define UNTOUCHED 0xee
#define AREA (MAIL_OPS * ROOM)

static uint8_t *buffer_of(const struct mail *mail, const struct mail_op *op)
{
	return mail->area + (size_t)(op - mail->ops) * ROOM;
}

/* --- opening and closing -------------------------------------------------------------- */

static struct fid_mr *area_reg(const struct mail *mail, size_t len, uint64_t access)
{
	uint64_t mode = mail->side->conf->mode;
	struct fid_mr *mr = NULL;

	must(fi_mr_reg(mail->side->domain, mail->area, len, access, 0, 0, 0, &mr, NULL));
	if (mode & FI_MR_ENDPOINT) {
		must(fi_mr_bind(mr, &mail->side->shared[0].ep->fid, 0));
		must(fi_mr_enable(mr));
	}
	if (mode & FI_MR_MMU_NOTIFY)
		must(fi_mr_refresh(mr, NULL, 0, 0));
	return mr;
}

void mail_open(struct mail *mail, const struct side *side, struct fid_cq *cq)
{
	memset(mail, 0, sizeof(*mail));
	mail->side = side;
	mail->cq = cq;
	if (!side->conf->messages)
		return;
	mail->area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mail->area == MAP_FAILED)
		model_fail("harness", "no memory");
	mail->mr = area_reg(mail, AREA, FI_SEND | FI_RECV);
	mail->useless = area_reg(mail, 1, FI_READ | FI_WRITE);
	mail->desc = fi_mr_desc(mail->mr);
	mail->useless_desc = fi_mr_desc(mail->useless);
}

void mail_close(struct mail *mail)
{
	if (mail->mr && !fi_close(&mail->mr->fid)) {
		must(fi_close(&mail->useless->fid));
		munmap(mail->area, AREA);
		mail->mr = NULL;
	}
}

/* --- completions ---------------------------------------------------------------------- */

static void note(void *context, const struct mail_op *what)
{
	struct mail_op *op = context;

	if (!op)
		model_fail(MAIL_WRONG, "an injected message failed: %d", what->err);
	if (!op->busy || atomic_load(&op->ended))
		model_fail(MAIL_WRONG, "an operation that has none to come has a completion");
	op->err = what->err;
	op->flags = what->flags;
	op->len = what->len;
	op->olen = what->olen;
	op->tag = what->tag;
	op->data = what->data;
	op->source = what->source;
	atomic_store(&op->ended, true);
}

static void note_error(struct fid_cq *cq)
{
	struct fi_cq_err_entry e = { 0 };
	ssize_t rc = fi_cq_readerr(cq, &e, 0);

	/* Another thread has read it. */
	if (rc == -FI_EAGAIN)
		return;
	must_be(rc, 1);
	note(e.op_context, &(struct mail_op){ .err = e.err,
					      .flags = e.flags,
					      .len = e.len,
					      .olen = e.olen,
					      .tag = e.tag,
					      .data = e.data,
					      .source = FI_ADDR_NOTAVAIL });
}

/* False: nothing is there, after so many ms. */
static bool read_one(struct fid_cq *cq, int ms)
{
	struct fi_cq_tagged_entry e = { 0 };
	fi_addr_t source = FI_ADDR_NOTAVAIL;
	ssize_t rc = ms ? fi_cq_sreadfrom(cq, &e, 1, &source, NULL, ms)
			: fi_cq_readfrom(cq, &e, 1, &source);

	if (rc == -FI_EAGAIN)
		return false;
	if (rc == -FI_EAVAIL) {
		note_error(cq);
		return true;
	}
	must_be(rc, 1);
	note(e.op_context, &(struct mail_op){ .flags = e.flags,
					      .len = e.len,
					      .tag = e.tag,
					      .data = e.data,
					      .source = source });
	return true;
}

/* The thread's own queue is read, too: the messages may be to itself. */
static void turn(struct mail *mail, struct fid_cq *cq)
{
	if (!read_one(cq, 0) && (cq == mail->cq || !read_one(mail->cq, 0)))
		read_one(cq, 2);
}

void mail_await(struct mail *mail, struct fid_cq *cq, struct mail_op *op)
{
	int64_t end = clock_ms() + patience_ms;

	while (!atomic_load(&op->ended)) {
		if (clock_ms() > end)
			model_fail(MAIL_WRONG, "an operation has no completion");
		turn(mail, cq);
	}
	op->busy = false;
}

static void begin(struct mail_op *op)
{
	atomic_store(&op->ended, false);
	op->busy = true;
}

/* --- bytes ---------------------------------------------------------------------------- */

static uint64_t sum_more(uint64_t sum, uint8_t byte)
{
	return (sum ^ byte) * 0x100000001b3ull;
}

uint64_t mail_sum(uint64_t seed, uint32_t len)
{
	uint64_t sum = 1;

	for (uint32_t i = 0; i < len; i++)
		sum = sum_more(sum, byte_of(seed, i));
	return sum;
}

static void answer_bytes(const struct mail *mail, const struct mail_op *op,
			 struct mail_answer *answer)
{
	const uint8_t *buf = buffer_of(mail, op);
	uint32_t i;

	answer->sum = 1;
	for (i = 0; i < op->len && i < op->room; i++)
		answer->sum = sum_more(answer->sum, buf[i]);
	for (; i < op->room + BEHIND; i++)
		answer->overrun |= buf[i] != UNTOUCHED;
}

/* --- calls ---------------------------------------------------------------------------- */

static void *desc_for(const struct mail *mail, const struct mail_ask *ask)
{
	if (ask->fault == NO_DESC)
		return NULL;
	if (ask->fault == BAD_DESC)
		return (void *)0xdead0000beef;
	if (ask->fault == NO_RIGHT)
		return mail->useless_desc;
	/* Where none is wanted, some have one. */
	return mail->side->conf->mode & FI_MR_LOCAL || ask->seed % 2 ? mail->desc : NULL;
}

struct args {
	struct iovec iov[2];
	void *desc[2];
	fi_addr_t addr;
	struct mail_op *op;
	const struct mail_ask *ask;
};

static struct args args_of(struct mail *mail, const struct mail_ask *ask)
{
	struct mail_op *op = &mail->ops[ask->op];
	void *desc = desc_for(mail, ask);
	uint32_t first = ask->form == TWO_BUFFERS ? ask->len / 3 : ask->len;
	uint8_t *buf = buffer_of(mail, op);

	return (struct args){ .iov = { { buf, first }, { buf + first, ask->len - first } },
			      .desc = { desc, desc },
			      .addr = ask->fault == NO_PEER ? 0x7777 : ask->addr,
			      .op = op,
			      .ask = ask };
}

static ssize_t call_struct(struct fid_ep *ep, const struct args *x, bool send, uint64_t flags)
{
	struct fi_msg_tagged t = { .msg_iov = x->iov,
				   .desc = (void **)x->desc,
				   .iov_count = 1,
				   .addr = x->addr,
				   .tag = x->ask->tag,
				   .ignore = x->ask->ignore,
				   .context = x->op,
				   .data = x->ask->data };
	struct fi_msg m = { .msg_iov = x->iov,
			    .desc = (void **)x->desc,
			    .iov_count = 1,
			    .addr = x->addr,
			    .context = x->op,
			    .data = x->ask->data };

	if (x->ask->tagged)
		return send ? fi_tsendmsg(ep, &t, flags) : fi_trecvmsg(ep, &t, flags);
	return send ? fi_sendmsg(ep, &m, flags) : fi_recvmsg(ep, &m, flags);
}

static ssize_t call_tsend(struct fid_ep *ep, const struct args *x)
{
	const struct mail_ask *ask = x->ask;
	void *buf = x->iov[0].iov_base;

	switch ((enum form)ask->form) {
	case ONE_BUFFER:
		return fi_tsend(ep, buf, ask->len, x->desc[0], x->addr, ask->tag, x->op);
	case TWO_BUFFERS:
		return fi_tsendv(ep, x->iov, (void **)x->desc, 2, x->addr, ask->tag, x->op);
	case STRUCTURE:
		return call_struct(ep, x, true, FI_INJECT | FI_REMOTE_CQ_DATA);
	case WITH_DATA:
		return fi_tsenddata(ep, buf, ask->len, x->desc[0], ask->data, x->addr, ask->tag,
				    x->op);
	case INJECTED:
		return fi_tinject(ep, buf, ask->len, x->addr, ask->tag);
	case INJECTED_WITH_DATA:
		return fi_tinjectdata(ep, buf, ask->len, ask->data, x->addr, ask->tag);
	case FORMS:
		break;
	}
	return -FI_ENOSYS;
}

static ssize_t call_send(struct fid_ep *ep, const struct args *x)
{
	const struct mail_ask *ask = x->ask;
	void *buf = x->iov[0].iov_base;

	switch ((enum form)ask->form) {
	case ONE_BUFFER:
		return fi_send(ep, buf, ask->len, x->desc[0], x->addr, x->op);
	case TWO_BUFFERS:
		return fi_sendv(ep, x->iov, (void **)x->desc, 2, x->addr, x->op);
	case STRUCTURE:
		return call_struct(ep, x, true, FI_INJECT | FI_REMOTE_CQ_DATA);
	case WITH_DATA:
		return fi_senddata(ep, buf, ask->len, x->desc[0], ask->data, x->addr, x->op);
	case INJECTED:
		return fi_inject(ep, buf, ask->len, x->addr);
	case INJECTED_WITH_DATA:
		return fi_injectdata(ep, buf, ask->len, ask->data, x->addr);
	case FORMS:
		break;
	}
	return -FI_ENOSYS;
}

/* What is injected may be overwritten at once. */
static ssize_t do_send(struct mail *mail, struct fid_ep *ep, const struct mail_ask *ask)
{
	const struct args x = args_of(mail, ask);
	uint8_t *buf = buffer_of(mail, x.op);
	ssize_t rc;

	/* One that is refused is longer than the memory. */
	for (uint32_t i = 0; i < ask->len && i < ROOM; i++)
		buf[i] = byte_of(ask->seed, i);
	begin(x.op);
	rc = ask->tagged ? call_tsend(ep, &x) : call_send(ep, &x);
	/* If it has ended by now, another thread may have noted that. */
	if (rc || ask->form >= INJECTED)
		x.op->busy = false;
	if (!rc && (ask->form == STRUCTURE || ask->form >= INJECTED))
		memset(buf, 0x77, ask->len);
	return rc;
}

static ssize_t call_recv(struct fid_ep *ep, const struct args *x)
{
	const struct mail_ask *ask = x->ask;
	void *buf = x->iov[0].iov_base, **desc = (void **)x->desc;

	if (ask->form == STRUCTURE)
		return call_struct(ep, x, false, FI_COMPLETION);
	if (ask->tagged && ask->form == TWO_BUFFERS)
		return fi_trecvv(ep, x->iov, desc, 2, x->addr, ask->tag, ask->ignore, x->op);
	if (ask->tagged)
		return fi_trecv(ep, buf, ask->len, *desc, x->addr, ask->tag, ask->ignore, x->op);
	if (ask->form == TWO_BUFFERS)
		return fi_recvv(ep, x->iov, desc, 2, x->addr, x->op);
	return fi_recv(ep, buf, ask->len, *desc, x->addr, x->op);
}

static ssize_t do_recv(struct mail *mail, struct fid_ep *ep, const struct mail_ask *ask)
{
	const struct args x = args_of(mail, ask);
	ssize_t rc;

	x.op->room = ask->len;
	memset(buffer_of(mail, x.op), UNTOUCHED, ask->len + BEHIND);
	begin(x.op);
	if (ask->what == MAIL_CLAIM)
		rc = call_struct(ep, &x, false, FI_CLAIM | (ask->form == DROP ? FI_DISCARD : 0));
	else
		rc = call_recv(ep, &x);
	x.op->busy = !rc;
	return rc;
}

static ssize_t do_peek(struct mail *mail, struct fid_ep *ep, const struct mail_ask *ask)
{
	static const uint64_t flags[] = {
		[LOOK] = FI_PEEK, [SET_ASIDE] = FI_PEEK | FI_CLAIM, [DROP] = FI_PEEK | FI_DISCARD
	};
	const struct args x = args_of(mail, ask);
	ssize_t rc;

	/* Data are never returned. */
	x.op->room = 0;
	begin(x.op);
	rc = call_struct(ep, &x, false, flags[ask->form]);
	x.op->busy = !rc;
	return rc;
}

/* --- answers -------------------------------------------------------------------------- */

static void answer_end(struct mail *mail, const struct mail_op *op, struct mail_answer *answer)
{
	answer->err = op->err;
	answer->len = (uint32_t)op->len;
	answer->olen = (uint32_t)op->olen;
	answer->flags = op->flags;
	answer->tag = op->tag;
	answer->data = op->data;
	answer->source = op->source;
	answer_bytes(mail, op, answer);
}

static uint64_t count_until(struct mail *mail, struct fid_cq *cq, const struct endpoint *ep,
			    uint64_t count)
{
	int64_t end = clock_ms() + patience_ms;

	while (fi_cntr_read(ep->sends) < count && clock_ms() < end)
		turn(mail, cq);
	return fi_cntr_read(ep->sends);
}

static bool any_ended(const struct mail_op *ops, struct fid_cq *cq, uint64_t mask)
{
	bool any = false;

	while (read_one(cq, 0))
		;
	for (unsigned i = 0; i < RECEIVES; i++)
		any |= mask >> i & 1 && atomic_load(&ops[i].ended);
	return any;
}

void mail_do(struct mail *mail, struct endpoint *ep, struct fid_cq *cq, const struct mail_ask *ask,
	     struct mail_answer *answer)
{
	struct mail_op *op = &mail->ops[ask->op];

	memset(answer, 0, sizeof(*answer));
	answer->expected = ask->addr;
	switch ((enum mail_what)ask->what) {
	case MAIL_HELLO:
	case MAIL_MEET:
		break;
	case MAIL_SEND:
		answer->rc = (int32_t)do_send(mail, ep->ep, ask);
		break;
	case MAIL_RECEIVE:
	case MAIL_CLAIM:
		answer->rc = (int32_t)do_recv(mail, ep->ep, ask);
		break;
	case MAIL_PEEK:
		answer->rc = (int32_t)do_peek(mail, ep->ep, ask);
		break;
	case MAIL_CANCEL:
		answer->rc = (int32_t)fi_cancel(&ep->ep->fid, op);
		break;
	case MAIL_END:
		mail_await(mail, cq, op);
		answer_end(mail, op, answer);
		break;
	case MAIL_LOOK:
		answer->ended = any_ended(op, cq, ask->seed);
		break;
	case MAIL_COUNT:
		answer->count = count_until(mail, cq, ep, ask->seed);
		break;
	}
}
