/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages over libfabric's interface: this library, or an installed one. */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "bench.h"
#include "message.h"

struct fab_end {
	struct fab fab;
	void *buf;
	void *desc;
	struct fi_context2 sends[MESSAGE_DEPTH], recvs[MESSAGE_DEPTH + 1];
	unsigned nsends, nrecvs;
	size_t flying; /* sends whose completion has not been read */
};

static void post(struct message_end *end, size_t len)
{
	struct fab_end *of = end->of;
	void *context = &of->recvs[of->nrecvs++ % (MESSAGE_DEPTH + 1)];

	if (end->tag)
		bench_must("fi_trecv", fi_trecv(of->fab.ep, of->buf, len, of->desc, FI_ADDR_UNSPEC,
						end->tag, 0, context));
	else
		bench_must("fi_recv",
			   fi_recv(of->fab.ep, of->buf, len, of->desc, FI_ADDR_UNSPEC, context));
}

static int send_one(struct message_end *end, size_t len)
{
	struct fab_end *of = end->of;
	void *context = &of->sends[of->nsends % MESSAGE_DEPTH];
	ssize_t ret;

	/* Its context is in use until its completion has been read. */
	if (of->flying == MESSAGE_DEPTH)
		return 0;
	ret = end->tag ? fi_tsend(of->fab.ep, of->buf, len, of->desc, of->fab.peer, end->tag,
				  context)
		       : fi_send(of->fab.ep, of->buf, len, of->desc, of->fab.peer, context);
	if (ret == -FI_EAGAIN)
		return 0;
	bench_must("fi_send", ret);
	of->nsends++;
	of->flying++;
	return 1;
}

static int is_send(const struct fab_end *of, const void *context)
{
	return context >= (const void *)of->sends &&
	       context < (const void *)(of->sends + MESSAGE_DEPTH);
}

static unsigned poll_one(struct message_end *end)
{
	struct fab_end *of = end->of;
	struct fi_cq_entry entry[WORK_DEPTH];
	struct fi_cq_err_entry err = { 0 };
	ssize_t n = fi_cq_read(of->fab.cq, entry, WORK_DEPTH);
	unsigned come = 0;

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL && fi_cq_readerr(of->fab.cq, &err, 0) == 1)
		bench_must("completion", err.err);
	bench_must_errno("fi_cq_read", n > 0);
	for (ssize_t i = 0; i < n; i++) {
		if (is_send(of, entry[i].op_context))
			of->flying--;
		else
			come++;
	}
	return come;
}

static int open_end(struct fab_end *of, const struct fab_lib *lib, int mr_mode)
{
	struct fid_mr *mr;
	int ret;

	of->buf = bench_alloc(MESSAGE_MAX);
	ret = fab_open(&of->fab, lib, mr_mode, FI_MSG | FI_TAGGED, of->buf, MESSAGE_MAX);
	if (!ret)
		ret = fi_mr_reg(of->fab.domain, of->buf, MESSAGE_MAX, FI_SEND | FI_RECV, 0,
				of->fab.next_key++, 0, &mr, NULL);
	if (!ret)
		of->desc = fi_mr_desc(mr);
	return ret;
}

int message_open_fab(struct message_end end[2], const struct fab_lib *lib, int mr_mode)
{
	struct fab_end *of = calloc(2, sizeof(*of));
	char name[FAB_NAME_LEN];
	int ret = 0;

	bench_must_errno("calloc", !!of);
	for (int i = 0; i < 2 && !ret; i++)
		ret = open_end(&of[i], lib, mr_mode);
	for (int i = 0; i < 2 && !ret; i++) {
		fab_name(&of[!i].fab, name);
		fab_insert(&of[i].fab, name);
		end[i] = (struct message_end){
			.of = &of[i], .post = post, .send = send_one, .poll = poll_one
		};
	}
	return ret;
}

void message_post_others(struct message_end *end, uint64_t first, unsigned n)
{
	struct fab_end *of = end->of;
	static struct fi_context2 context;

	for (unsigned i = 0; i < n; i++)
		bench_must("fi_trecv", fi_trecv(of->fab.ep, of->buf, 8, of->desc, FI_ADDR_UNSPEC,
						first + i, 0, &context));
}
