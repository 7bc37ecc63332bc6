/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of devices, as the stand-ins for the runtimes have it (tests/runtime), on the driver's
 * side. Peers are ordinary ones. A case runs for each runtime, as name_cuda, name_rocr and
 * name_ze, in workers that use no other one; in all of its modes for the first, and in one for the
 * others: what modes change is the same for all.
 */
#ifndef FUNC_DEVICE_H
#define FUNC_DEVICE_H

#include "harness.h"
#include "../runtime/rig.h"

#define DEVICE 1 /* not the first, which a number that is forgotten would be */
#define KIB 1024ul
#define MIB (1024 * KIB)

/* In most cases: nothing is asked for, all that devices want, and regions that are bound. */
#define DEVICE_MODES (MODE(0) | MODE(15) | MODE(MODE_ENDPOINT))

#define DEVICE_CASE(name)                                         \
	static void name(struct env *e);                          \
	static void run_##name(struct env *e)                     \
	{                                                         \
		device_load();                                    \
		name(e);                                          \
	}                                                         \
	static void __attribute__((constructor)) add_##name(void) \
	{                                                         \
		device_cases(#name, __FILE__, run_##name);        \
	}                                                         \
	static void name(struct env *e)

void device_cases(const char *name, const char *file, void (*run)(struct env *));

/* The runtime of the case, before the library looks for it. */
void device_load(void);
extern const struct rig *rig;
extern struct rig_control control;

/*
 * An allocation, registered as a whole for local use. b.mem is where the device has it: what
 * harness.h does with buffers can be done with it, except that it is closed, filled and
 * compared with the functions here.
 */
struct dev {
	struct buf b;
	enum rt_kind kind;
};

void dev_open(struct fab *f, struct dev *d, enum rt_kind kind, size_t size, uint64_t seed);
void dev_close(struct dev *d);
void dev_fill(struct dev *d, uint64_t seed);
/* The runtime says that every byte is as wanted. */
void dev_same(const struct dev *d);
void dev_same_outside(const struct dev *d, size_t off, size_t len);
/* These bytes go there, and are wanted from now on. */
void dev_put(struct dev *d, size_t off, const void *bytes, size_t len);

/* One by one. Registering does what the mode demands, when it succeeds. */
void *dev_alloc(enum rt_kind kind, size_t size);
struct fi_mr_attr dev_attr(const struct iovec *iov, uint64_t access);
int dev_reg(struct fab *f, void *mem, size_t len, uint64_t access, uint64_t flags,
	    struct fid_mr **mr);
int dev_regattr(struct fab *f, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr);

/* Device memory here, and as much at the target, in a region that begins at an odd address. */
struct scene {
	struct env *e;
	struct fab *f;
	struct peer *t;
	struct dev d;
	struct region r;
};

#define MARGIN 4099ul /* of the target's buffer, before and behind the region */

void scene_open(struct scene *s, struct env *e, size_t size);
/* Every byte at both ends is as wanted, and no completion is left. */
void scene_close(struct scene *s);
/* It is not compared any more. */
void scene_drop(struct scene *s);

/* How a call is made: the six that move a single buffer. */
enum { CALLS = 6, FIRST_READ = 3 };
extern const char *const call_names[CALLS];
ssize_t scene_call(struct scene *s, unsigned which, void *p, size_t len, void *desc, size_t at);
/* Both ends are filled anew, and bytes go there and come back. */
void scene_works(struct scene *s);

#define dev_open(...) AT(dev_open(__VA_ARGS__))
#define dev_close(...) AT(dev_close(__VA_ARGS__))
#define dev_same(...) AT(dev_same(__VA_ARGS__))
#define dev_same_outside(...) AT(dev_same_outside(__VA_ARGS__))
#define dev_reg(...) AT(dev_reg(__VA_ARGS__))
#define scene_open(...) AT(scene_open(__VA_ARGS__))
#define scene_close(...) AT(scene_close(__VA_ARGS__))
#define scene_drop(...) AT(scene_drop(__VA_ARGS__))
#define scene_works(...) AT(scene_works(__VA_ARGS__))

#endif
