/* SPDX-License-Identifier: BSD-2-Clause */
/* What the unit tests of libfabric call: queues and counters alone, and fi_getinfo. */
#include "side.h"

/* --- fi_cq_test ---------------------------------------------------------------------------------------- */

static struct fid_cq *cq_make(struct side *s, size_t size, enum fi_cq_format format,
			      enum fi_wait_obj wait)
{
	struct fi_cq_attr attr = { .size = size, .format = format, .wait_obj = wait };
	struct fid_cq *cq;

	must_ok(fi_cq_open(s->domain, &attr, &cq, NULL));
	return cq;
}

static void cq_sizes(struct side *s)
{
	for (size_t size = 0; size <= 65536; size = size ? 4 * size : 1)
		must_ok(fi_close(&cq_make(s, size, FI_CQ_FORMAT_UNSPEC, FI_WAIT_UNSPEC)->fid));
}

static void cq_many(struct side *s)
{
	size_t count = s->info->domain_attr->cq_cnt < 100 ? s->info->domain_attr->cq_cnt : 100;
	struct fid_cq *all[100];

	for (size_t i = 0; i < count; i++)
		all[i] = cq_make(s, 16, FI_CQ_FORMAT_UNSPEC, FI_WAIT_UNSPEC);
	while (count--)
		must_ok(fi_close(&all[count]->fid));
}

/* A time-out is over in its time; a signal that came before ends the next wait at once. */
static void cq_signals(struct side *s)
{
	struct fid_cq *cq = cq_make(s, 1, FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	long began = now_ms();

	must(fi_cq_sread(cq, &entry, 1, NULL, 200) == -FI_EAGAIN, "something was there");
	must(now_ms() - began >= 199, "200 ms took %ld ms", now_ms() - began);
	must(fi_cq_sread(cq, &entry, 1, NULL, 0) == -FI_EAGAIN, "something was there");
	began = now_ms();
	must_ok(fi_cq_signal(cq));
	must(fi_cq_sread(cq, &entry, 1, NULL, WAIT_MS) == -FI_EAGAIN, "something was there");
	must(now_ms() - began < WAIT_MS / 2, "the signal was lost");
	must(fi_cq_readerr(cq, &err, 0) == -FI_EAGAIN, "an error was there");
	must(fi_cq_read(cq, NULL, 0) == -FI_EAGAIN, "something was there");
	must_ok(fi_close(&cq->fid));
}

static void cq_test(struct side *s)
{
	side_hints(s, FI_MSG);
	side_open(s);
	cq_sizes(s);
	cq_many(s);
	cq_signals(s);
	side_close(s);
}

/* --- fi_cntr_test ----------------------------------------------------------------------------------------- */

static void cntr_values(struct fid_cntr *cntr)
{
	must_ok(fi_cntr_set(cntr, 5));
	must_ok(fi_cntr_add(cntr, 37));
	must(fi_cntr_read(cntr) == 42, "the counter is %llu",
	     (unsigned long long)fi_cntr_read(cntr));
	must_ok(fi_cntr_wait(cntr, 42, 0));
	must(fi_cntr_wait(cntr, 43, 100) == -FI_ETIMEDOUT, "it waits for what does not come");
	must_ok(fi_cntr_seterr(cntr, 3));
	must_ok(fi_cntr_adderr(cntr, 4));
	must(fi_cntr_readerr(cntr) == 7, "%llu errors", (unsigned long long)fi_cntr_readerr(cntr));
	must_ok(fi_cntr_wait(cntr, 42, 0));
}

static void cntr_test(struct side *s)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *all[100];

	side_hints(s, FI_MSG);
	side_open(s);
	for (unsigned i = 0; i < 100; i++)
		must_ok(fi_cntr_open(s->domain, &attr, &all[i], NULL));
	for (unsigned i = 0; i < 100; i++) {
		if (!i)
			cntr_values(all[i]);
		must_ok(fi_close(&all[i]->fid));
	}
	side_close(s);
}

/* --- fi_getinfo_test ---------------------------------------------------------------------------------------- */

/* What the first answer to these hints has. */
static struct fi_info *answer(struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);

	must(!ret && info, "fi_getinfo: %d, %s", ret, fi_strerror(-ret));
	fi_freeinfo(hints);
	return info;
}

static struct fi_info *hints_of(struct side *s, uint64_t caps)
{
	struct fi_info *hints;

	side_hints(s, caps);
	hints = s->hints;
	s->hints = NULL;
	return hints;
}

/* MPICH and LCI look there first. */
static void without_hints(void)
{
	struct fi_info *info = answer(NULL);
	uint64_t want = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_RMA | FI_ATOMIC;

	must((info->caps & want) == want, "caps 0x%llx", (unsigned long long)info->caps);
	must((info->tx_attr->caps & (FI_MSG | FI_TAGGED | FI_SEND)) ==
			     (FI_MSG | FI_TAGGED | FI_SEND) &&
		     (info->rx_attr->caps & (FI_MSG | FI_TAGGED | FI_RECV)) ==
			     (FI_MSG | FI_TAGGED | FI_RECV),
	     "caps of one direction");
	must(info->tx_attr->msg_order & FI_ORDER_SAS && info->rx_attr->msg_order & FI_ORDER_SAS,
	     "sends have no order");
	must(info->ep_attr->mem_tag_format && info->tx_attr->size && info->rx_attr->size &&
		     info->tx_attr->inject_size >= 64 && info->tx_attr->iov_limit,
	     "a limit is 0");
	fi_freeinfo(info);
}

/* Each direction alone; then what is asked for without it is not there. */
static void directions(struct side *s)
{
	struct fi_info *info = answer(hints_of(s, FI_MSG | FI_SEND));

	must(info->caps & FI_SEND && !(info->caps & FI_RECV), "caps 0x%llx",
	     (unsigned long long)info->caps);
	fi_freeinfo(info);
	info = answer(hints_of(s, FI_TAGGED | FI_RECV));
	must(info->caps & FI_RECV && !(info->caps & FI_SEND), "caps 0x%llx",
	     (unsigned long long)info->caps);
	fi_freeinfo(info);
}

static void attributes(struct side *s)
{
	struct fi_info *hints = hints_of(s, FI_TAGGED), *info;

	hints->tx_attr->caps = FI_TAGGED | FI_SEND;
	hints->rx_attr->caps = FI_TAGGED | FI_RECV;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->tx_attr->comp_order = FI_ORDER_NONE;
	hints->tx_attr->op_flags = FI_COMPLETION | FI_INJECT_COMPLETE;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->ep_attr->mem_tag_format = 0xff00ff00ff00ff00;
	hints->ep_attr->max_msg_size = LARGEST;
	info = answer(hints);
	must(info->ep_attr->mem_tag_format == 0xff00ff00ff00ff00, "mem_tag_format 0x%llx",
	     (unsigned long long)info->ep_attr->mem_tag_format);
	must(info->tx_attr->op_flags == (FI_COMPLETION | FI_INJECT_COMPLETE), "op_flags 0x%llx",
	     (unsigned long long)info->tx_attr->op_flags);
	fi_freeinfo(info);
}

/* Any mr_mode that offers all that is needed, which is nothing. */
static void mr_modes(struct side *s)
{
	static const int bits[] = { FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY,
				    FI_MR_ENDPOINT };

	for (unsigned set = 0; set < 32; set++) {
		struct fi_info *hints = hints_of(s, FI_MSG), *info;
		int mode = 0;

		for (unsigned i = 0; i < 5; i++)
			mode |= set & 1u << i ? bits[i] : 0;
		hints->domain_attr->mr_mode = mode;
		info = answer(hints);
		must(!(info->domain_attr->mr_mode & ~mode), "mr_mode 0x%x for 0x%x",
		     info->domain_attr->mr_mode, mode);
		fi_freeinfo(info);
	}
}

static void getinfo_test(struct side *s)
{
	without_hints();
	directions(s);
	attributes(s);
	mr_modes(s);
}

/* --- an endpoint that is not ready, or lacks something ---------------------------------------------------- */

static void ep_test(struct side *s)
{
	side_hints(s, FI_MSG);
	side_info(s);
	side_open_domain(s);
	must_ok(fi_endpoint(s->domain, s->info, &s->ep, NULL));
	must(fi_enable(s->ep) < 0, "it is enabled without an address vector");
	must_ok(fi_ep_bind(s->ep, &s->av->fid, 0));
	must_ok(fi_ep_bind(s->ep, &s->tx.cq->fid, FI_TRANSMIT));
	must(fi_enable(s->ep) == -FI_ENOCQ, "it is enabled without a queue for receives");
	must_ok(fi_ep_bind(s->ep, &s->rx.cq->fid, FI_RECV));
	must(fi_recv(s->ep, s->in, 1, NULL, 0, NULL) < 0, "it receives before it is enabled");
	must_ok(fi_enable(s->ep));
	must(fi_tsend(s->ep, s->out, 1, NULL, 0, 0, NULL) == -FI_ENOSYS,
	     "tagged without FI_TAGGED");
	side_close(s);
}

const struct pattern call_patterns[] = {
	{ "cq_test", cq_test, NULL, false },
	{ "cntr_test", cntr_test, NULL, false },
	{ "getinfo_test", getinfo_test, NULL, false },
	{ "ep_test", ep_test, NULL, false },
	{ NULL, NULL, NULL, false },
};
