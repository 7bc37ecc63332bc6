/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Test cases: a program in this folder is a set of CASE(name)s and this runner.
 *
 * Every case runs in each mode of its IN_MODES line, as name[mode]. One worker process per mode
 * (and group) runs the cases in order; it is the initiator, and starts the target processes
 * (peer.h). A case that fails ends its worker; the next case gets a fresh one, so a crash, a hang
 * or a leak in one case does not reach the others. No process calls the library before it forks.
 */
#ifndef FUNC_CASE_H
#define FUNC_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct env;

/*
 * A way to ask for memory registration: FI_MR_* bits in the hints, the API version,
 * what FI_MRFAB_MR_MODE says is required, or behind MODE_PROFILE what FI_MRFAB_PROFILE says; NULL:
 * neither is set. And capabilities beside FI_RMA.
 */
#define MODE_PROFILE "profile:"
struct mode {
	const char *name;
	uint32_t api;
	int hint;
	const char *required;
	uint64_t caps;
};

/* First those that an application gets by asking, then those that need the variable. */
#define NASKED 18
enum {
	MODE_RAW = NASKED,
	MODE_RAW_NATIVE,
	MODE_NOTIFY,
	MODE_NOTIFY_VIRT,
	MODE_NOTIFY_ALLOC,
	MODE_ENDPOINT,
	MODE_EVERYTHING,
	/* With the capability FI_RMA_EVENT. */
	MODE_EVENT,
	MODE_EVENT_NATIVE,
	MODE_EVENT_FLAG,
	MODE_EVENT_NOTIFY,
	MODE_EVENT_ENDPOINT,
	MODE_EVENT_2_3,
	NMODES
};
extern const struct mode modes[NMODES];

/* The bits that an application can offer; HMEM is not among them. */
#define MR_BITS                                                                         \
	(FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | \
	 FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT)

/* The FI_MR_* bits that are in force when this mode is granted; BASIC is spelt out. */
int mode_bits(const struct mode *mode);
/* Sets of modes, a bit each. */
#define MODES_ALL ((1u << NASKED) - 1)
#define MODES_TWO ((1u << 0) | (1u << 15)) /* mode0 and native */
/* mode0, and the name of the case has no suffix */
#define MODES_ONE 0u
#define MODE(i) (1u << (i))
/* Of MODES_ALL. */
unsigned modes_with(int bits);
unsigned modes_without(int bits);

/* For the cases that are added next; returns the set before. */
unsigned case_modes(unsigned set);
void case_add(const char *name, const char *file, void (*run)(struct env *));
/* The same for a case of many: number comes back in case_number while it runs. */
void case_add_number(const char *name, const char *file, void (*run)(struct env *),
		     unsigned number);
extern unsigned case_number;
/* For the cases that are added next: other groups, numbered from 0 on, have other workers. */
#define CASE_GROUPS 4u
void case_group(unsigned group);

#define CASE_JOIN(a, b) a##b
#define CASE_NAME(a, b) CASE_JOIN(a, b)

/* For the cases below this line; without one, MODES_TWO. */
#define IN_MODES(set)                                                                 \
	static void __attribute__((constructor)) CASE_NAME(in_modes_, __LINE__)(void) \
	{                                                                             \
		case_modes(set);                                                      \
	}

#define CASE(name)                                                \
	static void name(struct env *e);                          \
	static void __attribute__((constructor)) add_##name(void) \
	{                                                         \
		case_add(#name, __FILE__, name);                  \
	}                                                         \
	static void name(struct env *e)

/* Where a case is, for the message when something that it called fails. */
void case_at(const char *file, int line);
/* Which variant it is at, for the same; NULL: none. Kept until the case ends. */
void case_note(const char *note);
/* A failure ends the worker, or the target process; a skip ends the case. */
void case_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void case_skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Who takes the text of a failure instead of the worker's report: a target process. */
extern void (*case_fail_hook)(const char *text);
/* Called when a case fails, before it is reported; for what else it has to say. */
extern void (*at_failure)(void);

/* A failure inside a helper is reported at the line of the case that called it. */
#ifdef CASE_HELPER
#define CASE_AT() ((void)0)
#else
#define CASE_AT() case_at(__FILE__, __LINE__)
#endif

#define must(cond, ...)                         \
	do {                                    \
		CASE_AT();                      \
		if (!(cond))                    \
			case_fail(__VA_ARGS__); \
	} while (0)

/* In a process that a worker has forked: it is not the worker. */
void case_child(void);

/* For calls that return 0 or -FI_E*. */
#define must_be(call, expected)                                     \
	do {                                                        \
		CASE_AT();                                          \
		case_expect(#call, (long)(call), (long)(expected)); \
	} while (0)
#define must_ok(call) must_be(call, 0)
void case_expect(const char *call, long got, long expected);

/* What this process and its targets wrote to stderr since the case began. */
bool log_has(const char *text);
/* From here on only. */
void log_mark(void);

long now_ms(void);
void nap(long ms);

#endif
