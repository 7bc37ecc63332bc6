/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A forked child has one thread. A lock that another thread of the parent had at the time of
 * the fork is locked for ever there, and other libraries have such locks without a handler of
 * fork(3). So calls that take one are made inside a gate, by one thread at a time, and a fork
 * waits until all gates are empty. Entering may take long, because another thread may be
 * inside: no endpoint's lock is held (mrf_slow_call). A thread that is inside may fork, and may
 * enter again.
 */
#ifndef MRF_BASE_GATE_H
#define MRF_BASE_GATE_H

/* In the order in which a thread enters several. */
enum mrf_gate {
	MRF_GATE_RDMACM, /* calls of librdmacm that may take its locks */
	MRF_GATE_PARAMS, /* the variables that applications and providers define */
	MRF_GATE_LOADER, /* dl_iterate_phdr(3): the loader calls nothing of ours under its own lock */
	MRF_GATES
};

void mrf_gate_enter(enum mrf_gate gate);
/* Leaves errno alone. */
void mrf_gate_leave(enum mrf_gate gate);

/* Makes a call of librdmacm inside its gate and returns its value. */
#define MRF_GATED(call)                          \
	__extension__({                          \
		__typeof__(call) gated_value;    \
                                                 \
		mrf_gate_enter(MRF_GATE_RDMACM); \
		gated_value = (call);            \
		mrf_gate_leave(MRF_GATE_RDMACM); \
		gated_value;                     \
	})

#endif
