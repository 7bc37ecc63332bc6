/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "base/env.h"
#include "base/names.h"
#include <rdma/fi_errno.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The library's own variables. The help text repeats a default that is a number. */
static const struct mrf_env_row rows[MRF_PARAM_COUNT] = {
	[MRF_PARAM_LOG_INTERVAL] = { "FI_LOG_INTERVAL", FI_PARAM_INT,
				     "Milliseconds between log lines that come in floods; 0 "
				     "logs all of them (default: 2000)",
				     2000, 0, INT_MAX },
	[MRF_PARAM_LOG_LEVEL] = { "FI_LOG_LEVEL", FI_PARAM_STRING,
				  "What to log: none, warn, trace, info or debug (default: warn)",
				  0, 0, 0 },
	[MRF_PARAM_LOG_PROV] = { "FI_LOG_PROV", FI_PARAM_STRING,
				 "Names of the providers to log, or after a ^ those not "
				 "to log (default: all)",
				 0, 0, 0 },
	[MRF_PARAM_LOG_SUBSYS] = { "FI_LOG_SUBSYS", FI_PARAM_STRING,
				   "Subsystems to log, or after a ^ those not to log: "
				   "core, fabric, domain, ep_ctrl, ep_data, av, cq, eq, "
				   "mr, cntr (default: all)",
				   0, 0, 0 },
	[MRF_PARAM_PROVIDER] = { "FI_PROVIDER", FI_PARAM_STRING,
				 "Names of the providers to offer, or after a ^ those "
				 "not to offer (default: all)",
				 0, 0, 0 },
	[MRF_PARAM_IFACE] = { "FI_MRFAB_IFACE", FI_PARAM_STRING,
			      "mrfab: Only this device, named as an RDMA link (rxe0) or "
			      "as a network interface (eth0) (default: all)",
			      0, 0, 0 },
	[MRF_PARAM_ACK_TIMEOUT] = { "FI_MRFAB_ACK_TIMEOUT", FI_PARAM_INT,
				    "mrfab: How long to wait for a peer's "
				    "acknowledgement before a packet is sent again: "
				    "4.096 microseconds times 2 to the power of this (default: 17)",
				    17, 8, 31 },
	[MRF_PARAM_RETRY] = { "FI_MRFAB_RETRY_COUNT", FI_PARAM_INT,
			      "mrfab: How often a packet is sent again before the peer "
			      "counts as gone, 1 to 6 (default: 6)",
			      6, 1, 6 },
	[MRF_PARAM_CONN_TIMEOUT] = { "FI_MRFAB_CONN_TIMEOUT", FI_PARAM_INT,
				     "mrfab: Milliseconds for one attempt to connect to "
				     "a peer (default: 5000)",
				     5000, 1, INT_MAX },
	[MRF_PARAM_INBOUND] = { "FI_MRFAB_INBOUND", FI_PARAM_INT,
				"mrfab: The most connections that peers may have to the "
				"endpoints of one domain (default: 4096)",
				4096, 1, 1000000 },
	[MRF_PARAM_ANSWER_TIMEOUT] = { "FI_MRFAB_ANSWER_TIMEOUT", FI_PARAM_INT,
				       "mrfab: Milliseconds for which an operation waits "
				       "for a connected peer's process to answer before "
				       "it fails (default: 15000)",
				       15000, 1, INT_MAX },
	[MRF_PARAM_RX_SLOTS] = { "FI_MRFAB_RX_SLOTS", FI_PARAM_INT,
				 "mrfab: The most receives of 16 KiB that an endpoint has "
				 "for messages from all its peers (default: 512)",
				 512, 32, 512 },
	[MRF_PARAM_UNEXPECTED] = { "FI_MRFAB_UNEXPECTED", FI_PARAM_INT,
				   "mrfab: KiB of messages for which no receive is posted "
				   "that an endpoint keeps before the bytes of others have "
				   "to wait at their senders (default: 65536)",
				   65536, 1, INT_MAX },
	[MRF_PARAM_UNEXPECTED_COUNT] = { "FI_MRFAB_UNEXPECTED_COUNT", FI_PARAM_INT,
					 "mrfab: Messages for which no receive is posted that "
					 "an endpoint keeps, with their bytes or without, "
					 "before its peers have to wait (default: 1048576)",
					 1048576, 1, INT_MAX },
	[MRF_PARAM_LINGER] = { "FI_MRFAB_LINGER", FI_PARAM_INT,
			       "mrfab: Milliseconds for which fi_close waits for messages "
			       "of the endpoint to arrive (default: 2000)",
			       2000, 0, INT_MAX },
	[MRF_PARAM_FAULT] = { "FI_MRFAB_FAULT", FI_PARAM_STRING,
			      "mrfab: Calls that fail or take long, and limits, to try what a "
			      "program does then, as in reg:3=ENOMEM,cq:late=5ms,mr_cnt=100 "
			      "(default: none)",
			      0, 0, 0 },
	[MRF_PARAM_LEAKS] = { "FI_MRFAB_LEAKS", FI_PARAM_STRING,
			      "mrfab: Whether objects that are still open when the process ends "
			      "are named in the log (report), and the process then ends with "
			      "status 99 (fail); a file may follow behind a colon, which gets "
			      "the same as JSON (default: neither)",
			      0, 0, 0 },
	[MRF_PARAM_MR_MODE] = { "FI_MRFAB_MR_MODE", FI_PARAM_STRING,
				"mrfab: Registration modes that an application must "
				"offer and that are then the only ones in force: names "
				"joined by + as in LOCAL+PROV_KEY, or a number (default: "
				"nothing is required)",
				0, 0, 0 },
	[MRF_PARAM_PROFILE] = { "FI_MRFAB_PROFILE", FI_PARAM_STRING,
				"mrfab: The provider whose contract is in force, such as "
				"verbs, efa or cxi-client; mrfab_run --profile=list has "
				"all (default: none)",
				0, 0, 0 },
	[MRF_PARAM_MONITOR] = { "FI_MR_CACHE_MONITOR", FI_PARAM_STRING,
				"How changes to memory that is not pinned for good are "
				"noticed: userfaultfd, memhooks (intercepted calls) or "
				"disabled (default: memhooks and userfaultfd)",
				0, 0, 0 },
	[MRF_PARAM_BOUNCE_MAX] = { "FI_MRFAB_BOUNCE_MAX", FI_PARAM_INT,
				   "Bytes up to which a local buffer that is not registered is "
				   "copied, at most 16384; a larger one is registered "
				   "and kept so (default: 16384)",
				   16384, 0, 16384 },
	[MRF_PARAM_CACHE_SIZE] = { "FI_MR_CACHE_MAX_SIZE", FI_PARAM_SIZE_T,
				   "The most bytes of unregistered local buffers that stay "
				   "registered for later transfers of a domain; 0 keeps none "
				   "(default: unlimited)",
				   -1, 0, 0 },
	[MRF_PARAM_CACHE_COUNT] = { "FI_MR_CACHE_MAX_COUNT", FI_PARAM_SIZE_T,
				    "The most registrations of such buffers that a domain "
				    "keeps; 0 turns the cache off (default: 1024)",
				    1024, 0, 0 },
	[MRF_PARAM_CACHE_MERGE] = { "FI_MR_CACHE_MERGE_REGIONS", FI_PARAM_BOOL,
				    "Whether a buffer that overlaps or touches cached ones is "
				    "registered together with them, as one (default: no)",
				    0, 0, 0 },
	[MRF_PARAM_CUDA_MONITOR] = { "FI_MR_CUDA_CACHE_MONITOR_ENABLED", FI_PARAM_BOOL,
				     "Whether it is noticed that registered CUDA memory was "
				     "freed and another allocation has its place (default: yes)",
				     1, 0, 0 },
	[MRF_PARAM_ROCR_MONITOR] = { "FI_MR_ROCR_CACHE_MONITOR_ENABLED", FI_PARAM_BOOL,
				     "Whether it is noticed that registered ROCR memory was "
				     "freed and another allocation has its place (default: yes)",
				     1, 0, 0 },
	[MRF_PARAM_ZE_MONITOR] = { "FI_MR_ZE_CACHE_MONITOR_ENABLED", FI_PARAM_BOOL,
				   "Whether it is noticed that registered Level Zero memory was "
				   "freed and another allocation has its place (default: yes)",
				   1, 0, 0 },
	[MRF_PARAM_STRICT] = { "FI_MRFAB_STRICT", FI_PARAM_STRING,
			       "mrfab: Whether rules of fi_mr(3) that other providers do "
			       "not enforce are only warned about (off) or enforced (on), "
			       "whether what other providers do not take is warned about, too "
			       "(warn), and whether mistakes end the process (abort) "
			       "(default: on)",
			       0, 0, 0 },
};

/* Read at each use, so that a program can try one value after another. */
static bool is_live(enum mrf_param which)
{
	return which == MRF_PARAM_MR_MODE || which == MRF_PARAM_PROFILE;
}

/* The values of the others in the environment. Written once (or by a test). */
static struct {
	pthread_once_t once;
	char *text[MRF_PARAM_COUNT];	   /* NULL: not set */
	long number[MRF_PARAM_COUNT];	   /* of a size: its bits */
	bool bad[MRF_PARAM_COUNT];	   /* set, but not used */
	atomic_bool told[MRF_PARAM_COUNT]; /* and said so */
} now = { .once = PTHREAD_ONCE_INIT };

/* --- values ----------------------------------------------------------------------- */

static int parse_bool(const char *text, int *value)
{
	static const char *const words[2][4] = { { "0", "no", "off", "false" },
						 { "1", "yes", "on", "true" } };
	size_t i;
	int v;

	for (v = 0; v < 2; v++) {
		for (i = 0; i < MRF_ARRAY_SIZE(words[v]); i++) {
			if (strcasecmp(text, words[v][i]))
				continue;
			*value = v;
			return 0;
		}
	}
	return -FI_EINVAL;
}

/* A number and nothing else but white space is in the text that strto* left at end. */
static bool parsed_all(const char *text, const char *end)
{
	if (end == text)
		return false;
	while (isspace((unsigned char)*end))
		end++;
	return !*end;
}

static int parse_int(const char *text, int *value)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 0);
	if (!parsed_all(text, end) || errno || v < INT_MIN || v > INT_MAX)
		return -FI_EINVAL;
	*value = (int)v;
	return 0;
}

static int parse_size(const char *text, size_t *value)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (!parsed_all(text, end) || errno || v > SIZE_MAX)
		return -FI_EINVAL;
	/* strtoull takes any "-n" for 2^64 - n; only "-1" is meant as "without a limit".
	 */
	if (strchr(text, '-') && v != ULLONG_MAX)
		return -FI_EINVAL;
	*value = (size_t)v;
	return 0;
}

int mrf_env_parse(enum fi_param_type type, const char *text, void *value)
{
	int saved = errno, ret = -FI_EINVAL;

	switch (type) {
	case FI_PARAM_STRING:
		*(const char **)value = text;
		return 0;
	case FI_PARAM_INT:
		ret = parse_int(text, value);
		break;
	case FI_PARAM_BOOL:
		ret = parse_bool(text, value);
		break;
	case FI_PARAM_SIZE_T:
		ret = parse_size(text, value);
		break;
	}
	errno = saved;
	return ret;
}

/* --- our own ---------------------------------------------------------------------- */

/* False: malformed or out of range; *number is as before. */
static bool own_number(const struct mrf_env_row *row, const char *text, long *number)
{
	union {
		const char *text;
		int number;
		size_t size;
	} value;

	if (mrf_env_parse(row->type, text, &value) ||
	    (row->type == FI_PARAM_INT && (value.number < row->min || value.number > row->max)))
		return false;
	if (row->type == FI_PARAM_SIZE_T)
		*number = (long)value.size;
	else if (row->type != FI_PARAM_STRING)
		*number = value.number;
	return true;
}

/* An empty list of names is a value: libfabric takes it for a list of none. */
static bool is_list(enum mrf_param which)
{
	return which == MRF_PARAM_PROVIDER || which == MRF_PARAM_LOG_PROV ||
	       which == MRF_PARAM_LOG_SUBSYS;
}

/* NULL: not set, or to nothing, as scripts do that pass on a variable which they do not have. */
static const char *own_text(enum mrf_param which)
{
	const char *text = getenv(rows[which].name);

	return text && (*text || is_list(which)) ? text : NULL;
}

static void own_load(void)
{
	const char *text;
	int i;

	for (i = 0; i < MRF_PARAM_COUNT; i++) {
		text = is_live((enum mrf_param)i) ? NULL : own_text((enum mrf_param)i);
		/*
		 * The environment may change, so the text is copied; without memory the
		 * default is used.
		 */
		now.text[i] = text ? strdup(text) : NULL;
		now.number[i] = rows[i].value;
		if (now.text[i])
			now.bad[i] = !own_number(&rows[i], now.text[i], &now.number[i]);
	}
}

void mrf_env_reload(void)
{
	static const pthread_once_t fresh = PTHREAD_ONCE_INIT;
	int i;

	for (i = 0; i < MRF_PARAM_COUNT; i++) {
		free(now.text[i]);
		now.text[i] = NULL;
		now.bad[i] = false;
		atomic_store(&now.told[i], false);
	}
	now.once = fresh;
}

const char *mrf_env_str(enum mrf_param which)
{
	if (is_live(which))
		return own_text(which);
	pthread_once(&now.once, own_load);
	return now.text[which];
}

long mrf_env_int(enum mrf_param which)
{
	pthread_once(&now.once, own_load);
	return now.number[which];
}

const char *mrf_env_complaint(enum mrf_param which)
{
	pthread_once(&now.once, own_load);
	if (mrf_likely(!now.bad[which]) || atomic_exchange(&now.told[which], true))
		return NULL;
	return now.text[which];
}

const struct mrf_env_row *mrf_env_row(enum mrf_param which)
{
	return &rows[which];
}

bool mrf_env_listed(const char *list, const char *name)
{
	bool negated, found = false;
	size_t len;

	if (!list)
		return true;
	negated = *list == '^';
	for (list += negated; *list && !found; list += len) {
		list += strspn(list, ",");
		len = strcspn(list, ",");
		found = mrf_names_is(list, len, name);
	}
	return found != negated;
}

const char *mrf_env_bad_name(const char *name)
{
	if (strchr(name, ';'))
		return "a semicolon, under which libfabric stacks providers of its own";
	if (strchr(name, ','))
		return "a comma, which stands between names";
	return strpbrk(name, " \t\r\n") ? "a blank" : NULL;
}
