/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "base/compiler.h"
#include "ep/msg/multi.h"
#include "ep/msg/report.h"

/* Its buffer is the application's again from now on, which has to be told in any case. */
static bool is_released(const struct mrf_recv *recv)
{
	return recv->multi && recv->multi->over && !recv->multi->canceled;
}

static uint64_t comp_flags(const struct mrf_recv *recv)
{
	return (recv->tagged ? FI_TAGGED : FI_MSG) | FI_RECV | (recv->claims ? FI_CLAIM : 0) |
	       (is_released(recv) ? FI_MULTI_RECV : 0);
}

static void *told_place(const struct mrf_recv *recv, const struct mrf_message *message)
{
	return mrf_unlikely(recv->multi != NULL) ? message->late.part.iov_base : NULL;
}

fi_addr_t mrf_report_source(const struct mrf_ep *ep, const struct mrf_message *message)
{
	uint64_t source = message->origin->source;

	return ep->caps & FI_SOURCE && source != MRF_MATCH_UNKNOWN ? source : FI_ADDR_NOTAVAIL;
}

static void report_ok_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
			     const struct mrf_message *message)
{
	struct mrf_comp comp = { .op_context = recv->context,
				 .flags = comp_flags(recv),
				 .len = message->len,
				 .buf = told_place(recv, message),
				 .tag = message->tag,
				 .src_addr = mrf_report_source(ep, message) };

	if (message->has_cq_data) {
		comp.flags |= FI_REMOTE_CQ_DATA;
		comp.data = message->cq_data;
	}
	if (ep->rx_cq && (!recv->silent || is_released(recv)))
		mrf_cq_write(ep->rx_cq, &comp);
	if (ep->rcv_cntr)
		mrf_cntr_add(ep->rcv_cntr, 1);
}

/* Also what of the message is there, and not, if it has one. */
static void fill_error(const struct mrf_ep *ep, struct mrf_comp_err *entry,
		       const struct mrf_recv *recv, const struct mrf_message *message, int err,
		       int code)
{
	*entry = (struct mrf_comp_err){ .comp = { .op_context = recv->context,
						  .flags = comp_flags(recv),
						  .src_addr = FI_ADDR_NOTAVAIL },
					.err = err,
					.prov_errno = code };
	if (!message)
		return;
	entry->comp.len = mrf_min(message->len, mrf_deliver_room(recv, message).iov_len);
	entry->comp.buf = told_place(recv, message);
	entry->olen = message->len - entry->comp.len;
	entry->comp.tag = message->tag;
	entry->comp.src_addr = mrf_report_source(ep, message);
	entry->comp.data = message->cq_data;
	entry->comp.flags |= message->has_cq_data ? FI_REMOTE_CQ_DATA : 0;
}

static void tell_error_entry_locked(struct mrf_ep *ep, const struct mrf_comp_err *entry)
{
	if (ep->rx_cq)
		mrf_cq_write_err(ep->rx_cq, entry);
	if (ep->rcv_cntr)
		mrf_cntr_adderr(ep->rcv_cntr, 1);
}

void mrf_report_error_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
			     const struct mrf_message *message, int err, int code, const char *text)
{
	struct mrf_comp_err entry;

	mrf_lock_held(&ep->lock);
	fill_error(ep, &entry, recv, message, err, code);
	snprintf(entry.text, sizeof(entry.text), "%s", text);
	tell_error_entry_locked(ep, &entry);
}

static void report_cut_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
			      const struct mrf_message *message)
{
	char text[MRF_ERR_TEXT];

	snprintf(text, sizeof(text), "the message has %zu byte%s, and the receive room for %zu",
		 message->len, MRF_S(message->len), mrf_deliver_room(recv, message).iov_len);
	mrf_report_error_locked(ep, recv, message, FI_ETRUNC, 4320, text);
}

_Static_assert(MRF_UNKNOWN_SOURCE == 4329, "the code that is in the manual");

/* With FI_SOURCE_ERR: is its sender not in the address vector? */
static bool is_stranger(const struct mrf_ep *ep, const struct mrf_message *message)
{
	return ep->caps & FI_SOURCE_ERR && message->origin->source == MRF_MATCH_UNKNOWN;
}

/* The message is where it belongs; err_data is the address of its sender. */
static void report_stranger_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
				   const struct mrf_message *message)
{
	const union mrf_addr *addr = &message->origin->addr;
	struct mrf_comp_err entry;

	fill_error(ep, &entry, recv, message, FI_EADDRNOTAVAIL, 4329);
	entry.addr_len = mrf_form_put(ep->domain->form, addr, entry.text, sizeof(entry.text));
	tell_error_entry_locked(ep, &entry);
}

void mrf_report_end_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
			   const struct mrf_message *message, const struct mrf_why *why)
{
	mrf_lock_held(&ep->lock);
	if (mrf_unlikely(why != NULL))
		mrf_report_error_locked(ep, recv, NULL, why->err, why->code, why->text);
	else if (mrf_unlikely(message->len > mrf_deliver_room(recv, message).iov_len))
		report_cut_locked(ep, recv, message);
	else if (mrf_unlikely(is_stranger(ep, message)))
		report_stranger_locked(ep, recv, message);
	else
		report_ok_locked(ep, recv, message);
}
