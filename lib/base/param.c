/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/param.h"
#include "base/compiler.h"
#include "base/log.h"
#include <rdma/fi_errno.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The library's own variables. A default that is a number is also what help must say. */
static const struct own_row {
	const char *env;
	enum fi_param_type type;
	const char *help;
	int value, min, max; /* of FI_PARAM_INT: default and range */
} own[MRF_PARAM_COUNT] = {
	[MRF_PARAM_LOG_INTERVAL] = { "FI_LOG_INTERVAL", FI_PARAM_INT,
				     "Milliseconds between log lines that come in floods; 0 "
				     "logs all of them (default: 2000)",
				     2000, 0, INT_MAX },
	[MRF_PARAM_LOG_LEVEL] = { "FI_LOG_LEVEL", FI_PARAM_STRING,
				  "What to log: none, warn, trace, info or debug "
				  "(default: warn)",
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
				    "4.096 microseconds times 2 to the power of this "
				    "(default: 17)",
				    17, 8, 31 },
	[MRF_PARAM_RETRY] = { "FI_MRFAB_RETRY_COUNT", FI_PARAM_INT,
			      "mrfab: How often a packet is sent again before the peer "
			      "counts as gone, 1 to 6 (default: 6)",
			      6, 1, 6 },
	[MRF_PARAM_CONN_TIMEOUT] = { "FI_MRFAB_CONN_TIMEOUT", FI_PARAM_INT,
				     "mrfab: Milliseconds for one attempt to connect to "
				     "a peer (default: 5000)",
				     5000, 1, INT_MAX },
	[MRF_PARAM_ANSWER_TIMEOUT] = { "FI_MRFAB_ANSWER_TIMEOUT", FI_PARAM_INT,
				       "mrfab: Milliseconds after which an operation fails "
				       "that a connected peer's process does not answer "
				       "(default: 15000)",
				       15000, 1, INT_MAX },
	[MRF_PARAM_MR_MODE] = { "FI_MRFAB_MR_MODE", FI_PARAM_STRING,
				"mrfab: Registration modes that an application must "
				"offer and that then run, no others: names joined by + "
				"as in LOCAL+PROV_KEY, or a number (default: nothing "
				"is required)",
				0, 0, 0 },
	[MRF_PARAM_MONITOR] = { "FI_MRFAB_MONITOR", FI_PARAM_STRING,
				"mrfab: What tells of changes to memory that is pinned "
				"on demand: userfaultfd (with intercepted calls), memhooks "
				"(these alone) or none (default: userfaultfd)",
				0, 0, 0 },
	[MRF_PARAM_STRICT] = { "FI_MRFAB_STRICT", FI_PARAM_STRING,
			       "mrfab: Whether rules of fi_mr(3) that other providers do not "
			       "enforce are enforced, on, or only warned of, off (default: "
			       "on)",
			       0, 0, 0 },
};

/* Read whenever it is asked for, so that a program can try one value after the other. */
static bool is_live(enum mrf_param which)
{
	return which == MRF_PARAM_MR_MODE;
}

/* What the environment said about the others. Written once (or by a test). */
static struct {
	pthread_once_t once;
	char *text[MRF_PARAM_COUNT]; /* NULL: not set */
	int number[MRF_PARAM_COUNT];
	bool bad[MRF_PARAM_COUNT];	   /* set, but not used */
	atomic_bool told[MRF_PARAM_COUNT]; /* and said so */
} now = { .once = PTHREAD_ONCE_INIT };

/* Those of applications and providers. */
struct param {
	struct param *next;
	enum fi_param_type type;
	char *help;
	char env[];
};

/* Guards the list; a leaf: nothing is logged or locked under it. */
static pthread_mutex_t params_lock = PTHREAD_MUTEX_INITIALIZER;
static struct param *params_head;

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

int mrf_param_parse(enum fi_param_type type, const char *text, void *value)
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

static void own_load(void)
{
	const char *text;
	int i, v;

	for (i = 0; i < MRF_PARAM_COUNT; i++) {
		text = is_live((enum mrf_param)i) ? NULL : getenv(own[i].env);
		/* The environment may change; without memory the default is as good. */
		now.text[i] = text ? strdup(text) : NULL;
		now.number[i] = own[i].value;
		if (!now.text[i] || own[i].type != FI_PARAM_INT)
			continue;
		now.bad[i] = mrf_param_parse(FI_PARAM_INT, text, &v) || v < own[i].min ||
			     v > own[i].max;
		if (!now.bad[i])
			now.number[i] = v;
	}
}

void mrf_param_reload(void)
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

/* Never logs: the log itself asks this at its first line. */
const char *mrf_param_str(enum mrf_param which)
{
	if (is_live(which))
		return getenv(own[which].env);
	pthread_once(&now.once, own_load);
	return now.text[which];
}

long mrf_param_int(enum mrf_param which)
{
	const struct own_row *row = &own[which];

	pthread_once(&now.once, own_load);
	if (mrf_unlikely(now.bad[which]) && !atomic_exchange(&now.told[which], true))
		mrf_warn(FI_LOG_CORE, 5903,
			 "%s=\"%s\": must be a number from %d to %d; %d is in force",
			 row->env, now.text[which], row->min, row->max, row->value);
	return now.number[which];
}

/* --- those of others --------------------------------------------------------------- */

/* FI_NAME or FI_PROV_NAME; -1 when it does not fit. */
static int env_name(char *env, size_t len, const char *prov, const char *name)
{
	int n = snprintf(env, len, "FI_%s%s%s", prov ? prov : "", prov ? "_" : "", name);

	if (n < 0 || (size_t)n >= len)
		return -1;
	for (; *env; env++)
		*env = (char)toupper((unsigned char)*env);
	return 0;
}

static int own_find(const char *env)
{
	int i;

	for (i = 0; i < MRF_PARAM_COUNT; i++) {
		if (!strcmp(own[i].env, env))
			return i;
	}
	return -1;
}

/* The place in the list that points at the variable, or its end. Lock held. */
static struct param **find_locked(const char *env)
{
	struct param **at = &params_head;

	while (*at && strcmp((*at)->env, env))
		at = &(*at)->next;
	return at;
}

/* Takes help over on success. */
static int define_locked(const char *env, enum fi_param_type type, char *help)
{
	struct param **at = find_locked(env), *param = *at;
	size_t len = strlen(env) + 1;

	if (param) {
		if (param->type != type)
			return -FI_EINVAL;
		free(param->help);
		param->help = help;
		return 0;
	}
	param = malloc(sizeof(*param) + len);
	if (!param)
		return -FI_ENOMEM;
	memcpy(param->env, env, len);
	param->next = NULL;
	param->type = type;
	param->help = help;
	*at = param;
	return 0;
}

static char *make_help(const char *prov, const char *fmt, va_list ap) MRF_PRINTF(2, 0);

/* "prov: help"; NULL without memory. */
static char *make_help(const char *prov, const char *fmt, va_list ap)
{
	char *text, *help;
	int n;

	if (vasprintf(&text, fmt, ap) < 0)
		return NULL;
	if (!prov)
		return text;
	n = asprintf(&help, "%s: %s", prov, text);
	free(text);
	return n < 0 ? NULL : help;
}

static int define_check(const char *prov, const char *name, enum fi_param_type type,
			const char *fmt, char *env, size_t len)
{
	if (!name || !*name || !fmt)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 5911,
				  "fi_param_define: name=%s, help=%s: both must be given",
				  name ? name : "NULL", fmt ? fmt : "NULL");
	if ((unsigned)type > FI_PARAM_SIZE_T)
		return mrf_refuse(
			FI_EINVAL, FI_LOG_CORE, 5912,
			"fi_param_define(%s): type=%d: must be one of FI_PARAM_*", name,
			(int)type);
	if (env_name(env, len, prov, name))
		return mrf_refuse(
			FI_EINVAL, FI_LOG_CORE, 5913,
			"fi_param_define(%.64s...): name is longer than %zu bytes", name,
			len - 1);
	if (own_find(env) >= 0)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 5914,
				  "fi_param_define(%s): %s is the library's own", name,
				  env);
	return 0;
}

int mrf_param_define(const char *prov, const char *name, enum fi_param_type type,
		     const char *fmt, va_list ap)
{
	char env[FI_PATH_MAX], *help;
	int ret;

	ret = define_check(prov, name, type, fmt, env, sizeof(env));
	if (ret)
		return ret;
	help = make_help(prov, fmt, ap);
	if (!help)
		return mrf_refuse(FI_ENOMEM, FI_LOG_CORE, 5915,
				  "fi_param_define(%s): out of memory", name);
	pthread_mutex_lock(&params_lock);
	ret = define_locked(env, type, help);
	pthread_mutex_unlock(&params_lock);
	if (!ret)
		return 0;
	free(help);
	return mrf_refuse(ret, FI_LOG_CORE, 5916, "fi_param_define(%s): %s", name,
			  ret == -FI_ENOMEM ? "out of memory"
					    : "is defined already, with another type");
}

/* -1: no such variable. */
static int type_of(const char *env)
{
	int type = own_find(env);
	struct param *param;

	if (type >= 0)
		return (int)own[type].type;
	pthread_mutex_lock(&params_lock);
	param = *find_locked(env);
	type = param ? (int)param->type : -1;
	pthread_mutex_unlock(&params_lock);
	return type;
}

/* "Not defined" and "not set" are answers, not refusals: asking is how one finds out. */
int mrf_param_get(const char *prov, const char *name, void *value)
{
	char env[FI_PATH_MAX];
	const char *text;
	int type;

	if (!name || !value)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 5917,
				  "fi_param_get: name=%s, value=%s: both must be given",
				  name ? name : "NULL", value ? "given" : "NULL");
	if (env_name(env, sizeof(env), prov, name))
		return -FI_ENOENT;
	type = type_of(env);
	if (type < 0)
		return -FI_ENOENT;
	text = getenv(env);
	if (!text)
		return -FI_ENODATA;
	if (mrf_param_parse((enum fi_param_type)type, text, value))
		return mrf_refuse(
			FI_EINVAL, FI_LOG_CORE, 5918, "%s=\"%s\": must be %s", env, text,
			type == FI_PARAM_BOOL  ? "0, 1, no, yes, off, on, false or true"
			: type == FI_PARAM_INT ? "an int"
					       : "a size in bytes");
	return 0;
}

/* --- the list --------------------------------------------------------------------- */

/* 0 or -1 without memory; what was copied so far is then in *row. */
static int list_row(struct fi_param *row, const char *env, enum fi_param_type type,
		    const char *help, const char *value)
{
	row->name = strdup(env);
	row->type = type;
	row->help_string = strdup(help);
	row->value = value ? strdup(value) : NULL;
	return row->name && row->help_string && (!value || row->value) ? 0 : -1;
}

static int list_fill_locked(struct fi_param *rows)
{
	const struct param *param;
	int i;

	for (i = 0; i < MRF_PARAM_COUNT; i++) {
		if (list_row(rows++, own[i].env, own[i].type, own[i].help,
			     mrf_param_str((enum mrf_param)i)))
			return -1;
	}
	for (param = params_head; param; param = param->next) {
		if (list_row(rows++, param->env, param->type, param->help,
			     getenv(param->env)))
			return -1;
	}
	return 0;
}

/* NULL without memory. */
static struct fi_param *list_make(int *count)
{
	const struct param *param;
	struct fi_param *rows;
	int n = MRF_PARAM_COUNT;
	size_t i;

	pthread_mutex_lock(&params_lock);
	for (param = params_head; param; param = param->next)
		n++;
	rows = calloc((size_t)n + 1, sizeof(*rows));
	if (rows && list_fill_locked(rows)) {
		/* The free below stops at the first name that is missing: leave no gap.
		 */
		for (i = 0; i < (size_t)n; i++) {
			free((char *)rows[i].name);
			free((char *)rows[i].help_string);
			free((char *)rows[i].value);
		}
		free(rows);
		rows = NULL;
	}
	pthread_mutex_unlock(&params_lock);
	*count = n;
	return rows;
}

int mrf_param_list(struct fi_param **params, int *count)
{
	struct fi_param *rows;
	int n;

	if (!params || !count)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 5919,
				  "fi_getparams: params=%p, count=%p: both must be given",
				  (void *)params, (void *)count);
	rows = list_make(&n);
	if (!rows)
		return mrf_refuse(FI_ENOMEM, FI_LOG_CORE, 5920,
				  "fi_getparams: out of memory");
	*params = rows;
	*count = n;
	return 0;
}

void mrf_param_list_free(struct fi_param *params)
{
	struct fi_param *row;

	if (!params)
		return;
	for (row = params; row->name; row++) {
		free((char *)row->name);
		free((char *)row->help_string);
		free((char *)row->value);
	}
	free(params);
}
