/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's own environment variables: rows of one table in env.c (name, type,
 * default, help), so that the parser, fi_getparams and the manual always agree. They are
 * read once, at first use, except FI_MRFAB_MR_MODE and FI_MRFAB_PROFILE, which a program may change
 * from one fi_getinfo to the next. Nothing here logs, because the log itself reads variables for
 * its first line; code that can log reads numbers with mrf_param_int and its like
 * (base/param.h).
 * Thread-safe as far as the environment is.
 */
#ifndef MRF_BASE_ENV_H
#define MRF_BASE_ENV_H

#include <stdbool.h>
#include <rdma/providers/fi_prov.h>

enum mrf_param {
	MRF_PARAM_LOG_INTERVAL,	    /* FI_LOG_INTERVAL: ms between repeated lines */
	MRF_PARAM_LOG_LEVEL,	    /* FI_LOG_LEVEL */
	MRF_PARAM_LOG_PROV,	    /* FI_LOG_PROV */
	MRF_PARAM_LOG_SUBSYS,	    /* FI_LOG_SUBSYS */
	MRF_PARAM_PROVIDER,	    /* FI_PROVIDER */
	MRF_PARAM_IFACE,	    /* FI_MRFAB_IFACE: only this rxe device or net device */
	MRF_PARAM_ACK_TIMEOUT,	    /* FI_MRFAB_ACK_TIMEOUT: IB exponent, 4.096 us * 2^n */
	MRF_PARAM_RETRY,	    /* FI_MRFAB_RETRY_COUNT: 1..6 */
	MRF_PARAM_CONN_TIMEOUT,	    /* FI_MRFAB_CONN_TIMEOUT: ms for one connection attempt */
	MRF_PARAM_INBOUND,	    /* FI_MRFAB_INBOUND: connections from peers, per domain */
	MRF_PARAM_ANSWER_TIMEOUT,   /* FI_MRFAB_ANSWER_TIMEOUT: ms for the peer's agent */
	MRF_PARAM_MR_MODE,	    /* FI_MRFAB_MR_MODE: required bits; read at each use */
	MRF_PARAM_PROFILE,	    /* FI_MRFAB_PROFILE: whose contract; likewise */
	MRF_PARAM_MONITOR,	    /* FI_MR_CACHE_MONITOR: userfaultfd, memhooks, disabled */
	MRF_PARAM_BOUNCE_MAX,	    /* FI_MRFAB_BOUNCE_MAX: bytes that are copied, not registered */
	MRF_PARAM_CACHE_SIZE,	    /* FI_MR_CACHE_MAX_SIZE: bytes; SIZE_MAX: unlimited */
	MRF_PARAM_CACHE_COUNT,	    /* FI_MR_CACHE_MAX_COUNT: regions; 0: no cache */
	MRF_PARAM_CACHE_MERGE,	    /* FI_MR_CACHE_MERGE_REGIONS: neighbours become one */
	MRF_PARAM_CUDA_MONITOR,	    /* FI_MR_CUDA_CACHE_MONITOR_ENABLED */
	MRF_PARAM_ROCR_MONITOR,	    /* FI_MR_ROCR_CACHE_MONITOR_ENABLED */
	MRF_PARAM_ZE_MONITOR,	    /* FI_MR_ZE_CACHE_MONITOR_ENABLED */
	MRF_PARAM_STRICT,	    /* FI_MRFAB_STRICT: off, on, warn, abort; contract/rules.h */
	MRF_PARAM_RX_SLOTS,	    /* FI_MRFAB_RX_SLOTS: shared receives of an endpoint */
	MRF_PARAM_UNEXPECTED,	    /* FI_MRFAB_UNEXPECTED: KiB of messages that nobody receives */
	MRF_PARAM_UNEXPECTED_COUNT, /* FI_MRFAB_UNEXPECTED_COUNT: how many of these */
	MRF_PARAM_FAULT,	    /* FI_MRFAB_FAULT: base/fault.h */
	MRF_PARAM_LEAKS,	    /* FI_MRFAB_LEAKS: report or fail; domain/leaks.h */
	MRF_PARAM_LINGER,	    /* FI_MRFAB_LINGER: ms that fi_close gives to messages */
	MRF_PARAM_COUNT
};

struct mrf_env_row {
	const char *name;
	enum fi_param_type type;
	const char *help;
	int value;    /* default, 0 for text; a size that is -1 is the greatest one */
	int min, max; /* of FI_PARAM_INT */
};

const struct mrf_env_row *mrf_env_row(enum mrf_param which);

/*
 * Value of a text variable. NULL: it is unset, or empty and no list of providers or subsystems. For
 * FI_MRFAB_MR_MODE and FI_MRFAB_PROFILE it is the present value, which belongs to the environment.
 */
const char *mrf_env_str(enum mrf_param which);

/*
 * Value of a number (of a size: its bits; of a truth value: 0 or 1), or its default when
 * unset, malformed or out of range.
 */
long mrf_env_int(enum mrf_param which);

/*
 * The text of a number that is malformed or out of range, at the first call only; NULL at
 * later calls and for all other variables.
 */
const char *mrf_env_complaint(enum mrf_param which);

/*
 * Converts text to a value of this type. Numbers may be decimal, 0x... or 0...; "-1" as a
 * size_t is the greatest size_t. -FI_EINVAL when text is not such a value or does not
 * fit. Pure.
 */
int mrf_env_parse(enum fi_param_type type, const char *text, void *value);

/* Reads the variables again, for tests; texts that mrf_env_str returned are freed. */
void mrf_env_reload(void);

/*
 * Is name in "a,b" (or not in "^a,b")? Case does not matter. NULL matches every name and "" none, as
 * in libfabric.
 */
bool mrf_env_listed(const char *list, const char *name);
/* Why no provider can have this name, to stand behind "a name with". NULL: one can. Pure. */
const char *mrf_env_bad_name(const char *name);

#endif
