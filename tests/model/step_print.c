/* SPDX-License-Identifier: BSD-2-Clause */
/* Telling people what steps are. */
#include <stdarg.h>
#include <stdio.h>
#include <rdma/fabric.h>
#include "model_int.h"

struct text {
	char *at;
	size_t left;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->left)
		n = (int)t->left - 1;
	t->at += n;
	t->left -= (size_t)n;
}

struct bit {
	uint64_t bit;
	const char *name;
};

static void put_bits(struct text *t, const struct bit *bits, size_t n, uint64_t value)
{
	const char *plus = "";

	for (size_t i = 0; i < n; i++) {
		if (!(value & bits[i].bit))
			continue;
		put(t, "%s%s", plus, bits[i].name);
		plus = "+";
	}
	if (!*plus)
		put(t, "0");
}

void mode_print(uint64_t mode, char *buf, size_t size)
{
	static const struct bit bits[] = {
		{ FI_MR_LOCAL, "LOCAL" },	  { FI_MR_RAW, "RAW" },
		{ FI_MR_VIRT_ADDR, "VIRT_ADDR" }, { FI_MR_ALLOCATED, "ALLOCATED" },
		{ FI_MR_PROV_KEY, "PROV_KEY" },	  { FI_MR_MMU_NOTIFY, "MMU_NOTIFY" },
		{ FI_MR_RMA_EVENT, "RMA_EVENT" }, { FI_MR_ENDPOINT, "ENDPOINT" },
	};
	struct text t = { buf, size };

	put_bits(&t, bits, sizeof(bits) / sizeof(bits[0]), mode);
}

static void put_access(struct text *t, uint64_t access)
{
	static const struct bit bits[] = {
		{ FI_SEND, "SEND" },
		{ FI_RECV, "RECV" },
		{ FI_READ, "READ" },
		{ FI_WRITE, "WRITE" },
		{ FI_REMOTE_READ, "REMOTE_READ" },
		{ FI_REMOTE_WRITE, "REMOTE_WRITE" },
		{ FI_RMA, "RMA" },
		{ FI_MSG, "MSG" },
	};

	put_bits(t, bits, sizeof(bits) / sizeof(bits[0]), access);
}

static const char *const fault_names[FAULTS] = {
	[RIGHT] = "",
	[BAD_FLAG] = "an unknown flag",
	[NO_IOV] = "NULL",
	[BAD_COUNT] = "a wrong count",
	[BAD_ACCESS] = "unknown access bits",
	[BAD_OFFSET] = "offset=8",
	[BAD_WRAP] = "a range that wraps",
	[BAD_KEY] = "a wrong key",
	[BAD_BASE] = "a wrong base address",
	[NO_ROOM] = "no room",
	[OTHER_EVENT] = "flags=FI_RMA_EVENT",
	[OTHER_PMEM] = "flags=FI_RMA_PMEM",
	[OTHER_HMEM] = "flags=FI_HMEM_DEVICE_ONLY",
	[NO_DESC] = "no descriptor",
	[BAD_DESC] = "a wrong descriptor",
	[NO_RIGHT] = "a descriptor without FI_SEND and FI_RECV",
	[NO_PEER] = "an unknown address",
};

static void put_ranges(struct text *t, const struct step *step)
{
	for (unsigned i = 0; i < step->n; i++)
		put(t, "%s0x%x + %u", i ? ", " : "", step->off[i], step->len[i]);
}

static void put_auth(struct text *t, const struct step *step)
{
	if (step->auth)
		put(t, ", authorization key %u", step->auth);
}

static void put_atomic(struct text *t, const struct step *step)
{
	static const char *const names[KINDS] = {
		[ATOMIC] = "fetch_", [CHANGE] = "", [INJECT] = "inject_", [COMPARE] = "compare_"
	};

	put(t, "fi_%satomic(endpoint %u, %s %u: 0x%x, %u of datatype %u (%u bytes), op %u)",
	    names[step->kind], step->ep, step->way == BY_KEY ? "key of region" : "mapped key",
	    step->slot, step->off[0], step->n, step->type, atomic_size(step->type), step->op);
	put_auth(t, step);
}

static void put_access_step(struct text *t, const struct step *step)
{
	put(t, "fi_%s(endpoint %u, %s %u: 0x%x + %u bytes)%s",
	    step->kind == READ	  ? "read"
	    : step->kind == WRITE ? "write"
				  : "writemsg with FI_COMMIT_COMPLETE",
	    step->ep, step->way == BY_KEY ? "key of region" : "mapped key", step->slot,
	    step->off[0], step->len[0], step->overlap ? ", during the next step" : "");
	put_auth(t, step);
}

static void put_local(struct text *t, const struct step *step)
{
	put(t, "fi_%s from here(0x%x + %u bytes, descriptor of region %u%s%s)",
	    step->kind == GET ? "read" : "write", step->off[0], step->len[0], step->slot,
	    step->fault ? ", " : "", fault_names[step->fault]);
}

static void put_reg(struct text *t, const struct step *step)
{
	static const char *const calls[] = { "reg", "regv", "regattr" };

	put(t, "fi_mr_%s(region %u: ", calls[step->call], step->slot);
	put_ranges(t, step);
	put(t, ", access=");
	put_access(t, step->access);
	put(t, ", key=0x%llx", (unsigned long long)step->key);
	if (step->empty)
		put(t, ", without memory: pages 0x%x", step->empty);
	put_auth(t, step);
}

static void put_ep(struct text *t, unsigned ep)
{
	if (ep == MATE)
		put(t, "the peer's endpoint");
	else if (ep == HAND)
		put(t, "the thread's endpoint");
	else if (ep == ANYBODY)
		put(t, "anybody");
	else
		put(t, "endpoint %u", ep);
}

static void put_message_call(struct text *t, const struct step *step)
{
	static const char *const sends[FORMS] = { "send",     "sendv",	"sendmsg",
						  "senddata", "inject", "injectdata" };
	static const char *const receives[] = { "recv", "recvv", "recvmsg" };
	const char *tagged = step->tagged ? "t" : "";

	if (step->kind == SEND)
		put(t, "fi_%s%s", tagged, sends[step->call]);
	else if (step->kind == RECEIVE)
		put(t, "fi_%s%s", tagged, receives[step->call]);
	else if (step->kind == CANCEL)
		put(t, "fi_cancel");
	else if (step->kind == COLLECT)
		put(t, "fi_cq_read");
	else
		put(t, "fi_trecvmsg with %s%s", step->kind == PEEK ? "FI_PEEK" : "FI_CLAIM",
		    step->call == DROP	      ? " and FI_DISCARD"
		    : step->call == SET_ASIDE ? " and FI_CLAIM"
					      : "");
}

static void put_message_args(struct text *t, const struct step *step)
{
	if (step->kind == CANCEL || step->kind == CLAIM)
		put(t, ", receive %u", step->slot);
	if (step->kind == SEND || step->kind == RECEIVE || step->kind == PEEK) {
		put(t, step->kind == SEND ? ", to " : ", from ");
		put_ep(t, step->peer);
	}
	if (step->kind != CANCEL && step->kind != COLLECT && step->kind != PEEK)
		put(t, ", %u bytes", step->len[0]);
	if (step->tagged && step->kind != CLAIM)
		put(t, ", tag 0x%llx", (unsigned long long)step->tag);
	if (step->tagged && (step->kind == RECEIVE || step->kind == PEEK))
		put(t, ", ignore 0x%llx", (unsigned long long)step->ignore);
}

static void put_message(struct text *t, const struct step *step)
{
	put_message_call(t, step);
	put(t, "(");
	put_ep(t, step->ep);
	put_message_args(t, step);
	if (step->fault)
		put(t, ", %s", fault_names[step->fault]);
	put(t, ")");
	if (step->n > 1)
		put(t, ", %u times", step->n);
}

static void put_call(struct text *t, const struct step *step)
{
	static const char *const names[KINDS] = {
		[CLOSE] = "fi_close(region %u",
		[ENABLE] = "fi_mr_enable(region %u",
		[SHOW] = "fi_mr_key(region %u",
		[AWAIT] = "fi_eq_sread(of region %u",
		[RAW] = "fi_mr_raw_attr(region %u",
		[UNMAP] = "fi_mr_unmap_key(%u",
		[REFRESH] = "fi_mr_refresh(region %u: ",
		[BIND] = "fi_mr_bind(region %u, ",
		[BIND_CNTR] = "fi_mr_bind(region %u, ",
		[MAP] = "fi_mr_map_raw(raw key of region %u",
	};

	if (step->kind == REG)
		put_reg(t, step);
	else if (step->kind == EP)
		put(t, "open or close(endpoint %u", step->ep);
	else if (step->kind == CNTR)
		put(t, "open or close(counter %u", step->ep);
	else if (step->kind == COUNT)
		put(t, "fi_cntr_read(counter %u", step->ep);
	else if (step->kind == DOMAIN)
		put(t, "fi_close(domain");
	else
		put(t, names[step->kind], step->slot);
	if (step->kind == EP)
		put_auth(t, step);
	if (step->kind == BIND_CNTR)
		put(t, "counter %u", step->ep);
	if (step->kind == BIND)
		put(t, "endpoint %u", step->ep);
	if (step->kind == MAP)
		put(t, ", to mapped key %u", step->ep);
	if (step->kind == REFRESH && step->n)
		put_ranges(t, step);
	if (step->fault)
		put(t, ", %s", fault_names[step->fault]);
	put(t, ")");
}

void step_print(const struct step *step, char *buf, size_t size)
{
	struct text t = { buf, size };

	put(&t, "thread %u: ", step->thread);
	if (is_message(step))
		put_message(&t, step);
	else if (is_write(step) || step->kind == READ)
		put_access_step(&t, step);
	else if (is_atomic(step))
		put_atomic(&t, step);
	else if (step->kind == PUT || step->kind == GET)
		put_local(&t, step);
	else
		put_call(&t, step);
}
