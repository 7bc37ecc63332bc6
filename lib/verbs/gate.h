/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm has locks of its own, and no handler of fork(3) for them: a child that was
 * forked while another thread was inside would find them taken for ever. So every call
 * that may take one is made between mrf_gate_enter and mrf_gate_leave, and a fork waits
 * until nobody is there. A leaf: nothing else is locked inside.
 */
#ifndef MRF_VERBS_GATE_H
#define MRF_VERBS_GATE_H

void mrf_gate_enter(void);
/* Leaves errno alone. */
void mrf_gate_leave(void);

/* The value of a call, made inside. */
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
