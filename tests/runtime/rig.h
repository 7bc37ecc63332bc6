/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stand-ins for the runtimes as an application uses them: each is loaded from the build
 * tree, where whoever asks for it by its name finds it from then on; memory is allocated, freed,
 * and copied from and to. What ought to work and does not ends the process.
 */
#ifndef RUNTIME_RIG_H
#define RUNTIME_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_domain.h>
#include "memory.h"

struct rig {
	enum fi_hmem_iface iface;
	const char *file;
	void (*load)(void *so);
	/* No context is current afterwards, whether one was before or not. */
	void *(*make)(enum rt_kind kind, int device, size_t len);
	void (*unmake)(enum rt_kind kind, void *addr);
	/* What make returned, or an address in it. */
	void (*put)(void *to, const void *from, size_t len);
	void (*get)(void *to, const void *from, size_t len);
	bool managed;	  /* has it such memory? */
	bool numbered;	  /* is fi_mr_attr.device looked at? */
	const char *says; /* how its refusals begin */
	int lost;	  /* the error of a lost device */
	/* The library's calls that move bytes to the device and from there. */
	const char *put_call, *get_call;
};

/* CUDA, ROCR, Level Zero; RUNTIME is the folder where they were built. */
#define RIGS 3
extern const struct rig rigs[RIGS];

/* What every stand-in exports (memory.h). */
struct rig_control {
	void (*fail_next)(const char *name, unsigned nth, int error);
	unsigned (*fails_left)(void);
	unsigned long (*calls)(const char *name);
};

const struct rig *rig_load(int i, struct rig_control *control);
/* iface and device of memory that make has made there. */
void rig_attr(const struct rig *rig, int device, struct fi_mr_attr *attr);

/* Beyond that, of one runtime each; there once it is loaded. */
struct rig_cuda {
	int (*init)(unsigned flags);
	int (*create)(void **context, unsigned flags, int device);
	int (*get_current)(void **context);
	int (*set_current)(void *context);
	int (*retain)(void **context, int device);
	int (*alloc)(unsigned long long *ptr, size_t len);
	int (*alloc_managed)(unsigned long long *ptr, size_t len, unsigned flags);
	int (*alloc_host)(void **addr, size_t len);
	int (*free)(unsigned long long ptr);
	int (*free_host)(void *addr);
	int (*put)(unsigned long long to, const void *from, size_t len);
	int (*get)(void *to, unsigned long long from, size_t len);
	int (*destroy)(void *context);
	int (*reset)(int device);
	void (*capture)(bool on);
	/* Memory is in pieces from now on, one of which is another than before. */
	void (*pieces)(size_t size, const void *replaced);
};
extern struct rig_cuda cu;
extern void (*rocr_set_type)(const void *ptr, int type);
/* Makes memory of the host known to the runtime. */
void rocr_lock(void *pages, size_t len);
extern bool ze_part; /* memory is a sub-device's */

#endif
