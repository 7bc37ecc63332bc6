/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm has locks of its own and no fork handlers for them: a child that was forked
 * while another thread was inside would find them locked for ever. So every call that may
 * take one is made between mrf_gate_enter and mrf_gate_leave, and a fork waits until no
 * thread is between them. The gate is a leaf: no other lock is taken inside. Such calls
 * may take long, so no endpoint's lock is held at the gate (mrf_slow_call).
 */
#ifndef MRF_VERBS_GATE_H
#define MRF_VERBS_GATE_H

void mrf_gate_enter(void);
/* Leaves errno alone. */
void mrf_gate_leave(void);

/* Makes a call inside the gate and returns its value. */
#define MRF_GATED(call)                       \
	__extension__({                       \
		__typeof__(call) gated_value; \
                                              \
		mrf_gate_enter();             \
		gated_value = (call);         \
		mrf_gate_leave();             \
		gated_value;                  \
	})

#endif
