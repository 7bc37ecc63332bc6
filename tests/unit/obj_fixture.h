/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of passive objects share: a parent that is neither a real domain nor a
 * real fabric, refusals that must say exactly one line, time, and allocations that fail
 * on order.
 */
#ifndef OBJ_FIXTURE_H
#define OBJ_FIXTURE_H

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "obj/obj.h"
#include "unit.h"

struct parent {
	struct fid_domain domain;
	struct fid_fabric fabric;
	struct mrf_obj obj;
};

static inline void parent_init(struct parent *parent, uint32_t api_version)
{
	memset(parent, 0, sizeof(*parent));
	parent->domain.fid.fclass = FI_CLASS_DOMAIN;
	parent->fabric.fid.fclass = FI_CLASS_FABRIC;
	mrf_obj_init(&parent->obj, &parent->domain.fid, NULL);
	parent->obj.api_version = api_version;
}

/* Fails when a child was not closed. */
static inline void parent_fini(struct parent *parent)
{
	ck_assert_int_eq(mrf_obj_busy(&parent->obj), 0);
	mrf_obj_fini(&parent->obj);
}

/* call must return -err and log exactly one line, which carries the code. */
#define ck_refused(err, code, call)                                                               \
	do {                                                                                      \
		struct unit_capture cap_;                                                         \
		const char *said_;                                                                \
		long ret_;                                                                        \
                                                                                                  \
		unit_capture(&cap_);                                                              \
		ret_ = (long)(call);                                                              \
		said_ = unit_captured(&cap_);                                                     \
		ck_assert_msg(ret_ == -(err), "%s: %ld, not %d", #call, ret_, -(err));            \
		ck_assert_msg(unit_lines(said_) == 1, "%s said: %s", #call, said_);               \
		ck_assert_msg(strstr(said_, "MRF-E" #code) != NULL, "%s said: %s", #call, said_); \
	} while (0)

/* call must return want and say nothing. */
#define ck_quiet(want, call)                                                 \
	do {                                                                 \
		struct unit_capture cap_;                                    \
		const char *said_;                                           \
		long ret_;                                                   \
                                                                             \
		unit_capture(&cap_);                                         \
		ret_ = (long)(call);                                         \
		said_ = unit_captured(&cap_);                                \
		ck_assert_msg(ret_ == (long)(want), "%s: %ld", #call, ret_); \
		ck_assert_msg(!*said_, "%s said: %s", #call, said_);         \
	} while (0)

static inline double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static inline void sleep_ms(long ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* A blocked call may be late on a busy machine, but neither early nor for ever. */
#define ck_took(since, at_least)                                                                 \
	do {                                                                                     \
		double took_ = now_ms() - (since);                                               \
                                                                                                 \
		ck_assert_msg(took_ >= (at_least) && took_ < (at_least) + 20000, "took %.1f ms", \
			      took_);                                                            \
	} while (0)

static inline int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#endif
