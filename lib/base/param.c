/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/param.h"
#include "base/compiler.h"
#include "base/gate.h"
#include "base/log.h"
#include <rdma/fi_errno.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The variables of applications and providers. */
struct param {
	struct param *next;
	enum fi_param_type type;
	char *help;
	char env[];
};

static struct param *params_head; /* inside MRF_GATE_PARAMS, where nothing is logged */

long mrf_param_int(enum mrf_param which)
{
	const char *bad = mrf_env_complaint(which);
	const struct mrf_env_row *row;

	if (mrf_unlikely(bad != NULL)) {
		row = mrf_env_row(which);
		mrf_warn(FI_LOG_CORE, 5903,
			 "%s=\"%s\": the value must be a number from %d to %d; %d is in force",
			 row->name, bad, row->min, row->max, row->value);
	}
	return mrf_env_int(which);
}

size_t mrf_param_size(enum mrf_param which)
{
	const char *bad = mrf_env_complaint(which);

	if (mrf_unlikely(bad != NULL))
		mrf_warn(
			FI_LOG_CORE, 5905,
			"%s=\"%s\": the value must be a number of 0 or more; the default is in force",
			mrf_env_row(which)->name, bad);
	return (size_t)mrf_env_int(which);
}

bool mrf_param_bool(enum mrf_param which)
{
	const char *bad = mrf_env_complaint(which);
	const struct mrf_env_row *row = mrf_env_row(which);

	if (mrf_unlikely(bad != NULL))
		mrf_warn(
			FI_LOG_CORE, 5906,
			"%s=\"%s\": the value must be 1, yes, on or true, or 0, no, off or false; %s is "
			"in force",
			row->name, bad, row->value ? "yes" : "no");
	return mrf_env_int(which);
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
		if (!strcmp(mrf_env_row((enum mrf_param)i)->name, env))
			return i;
	}
	return -1;
}

/* The place in the list that points at the variable, or its end. Lock held. */
static struct param **find_param_locked(const char *env)
{
	struct param **at = &params_head;

	while (*at && strcmp((*at)->env, env))
		at = &(*at)->next;
	return at;
}

/* Takes help over on success. */
static int define_locked(const char *env, enum fi_param_type type, char *help)
{
	struct param **at = find_param_locked(env), *param = *at;
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
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 5912,
				  "fi_param_define(%s): type=%d, but must be one of FI_PARAM_*",
				  name, (int)type);
	if (env_name(env, len, prov, name))
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 5913,
				  "fi_param_define(%.64s...): the name is longer than %zu bytes",
				  name, len - 1);
	if (own_find(env) >= 0)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 5914,
				  "fi_param_define(%s): %s is one of the library's own variables",
				  name, env);
	return 0;
}

int mrf_param_define(const char *prov, const char *name, enum fi_param_type type, const char *fmt,
		     va_list ap)
{
	char env[FI_PATH_MAX], *help;
	int ret = define_check(prov, name, type, fmt, env, sizeof(env));

	if (ret)
		return ret;
	help = make_help(prov, fmt, ap);
	if (!help)
		return mrf_refuse(FI_ENOMEM, FI_LOG_CORE, 5915,
				  "fi_param_define(%s): out of memory", name);
	mrf_gate_enter(MRF_GATE_PARAMS);
	ret = define_locked(env, type, help);
	mrf_gate_leave(MRF_GATE_PARAMS);
	if (!ret)
		return 0;
	free(help);
	return mrf_refuse(ret, FI_LOG_CORE, 5916, "fi_param_define(%s): %s", name,
			  ret == -FI_ENOMEM ? "out of memory"
					    : "the variable is already defined, with another type");
}

/* -1: no such variable. */
static int type_of(const char *env)
{
	int type = own_find(env);
	struct param *param;

	if (type >= 0)
		return (int)mrf_env_row((enum mrf_param)type)->type;
	mrf_gate_enter(MRF_GATE_PARAMS);
	param = *find_param_locked(env);
	type = param ? (int)param->type : -1;
	mrf_gate_leave(MRF_GATE_PARAMS);
	return type;
}

/*
 * "Not defined" and "not set" are answers, not refusals: a program asks in order to find
 * out.
 */
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
	if (mrf_env_parse((enum fi_param_type)type, text, value))
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 5918, "%s=\"%s\": the value must be %s",
				  env, text,
				  type == FI_PARAM_BOOL	 ? "0, 1, no, yes, off, on, false or true"
				  : type == FI_PARAM_INT ? "an int"
							 : "a size in bytes");
	return 0;
}

/* --- the list --------------------------------------------------------------------- */

/* Returns 0, or -1 if there is no memory; *row then has what was copied so far. */
static int list_row(struct fi_param *row, const char *env, enum fi_param_type type,
		    const char *help, const char *value)
{
	row->name = strdup(env);
	row->type = type;
	row->help_string = strdup(help);
	row->value = value ? strdup(value) : NULL;
	return row->name && row->help_string && (!value || row->value) ? 0 : -1;
}

static void free_row(struct fi_param *row)
{
	free((char *)row->name);
	free((char *)row->help_string);
	free((char *)row->value);
}

static int list_fill_locked(struct fi_param *rows)
{
	const struct mrf_env_row *row;
	const struct param *param;
	int i;

	for (i = 0; i < MRF_PARAM_COUNT; i++) {
		row = mrf_env_row((enum mrf_param)i);
		if (list_row(rows++, row->name, row->type, row->help,
			     mrf_env_str((enum mrf_param)i)))
			return -1;
	}
	for (param = params_head; param; param = param->next) {
		if (list_row(rows++, param->env, param->type, param->help, getenv(param->env)))
			return -1;
	}
	return 0;
}

/* NULL without memory. */
static struct fi_param *list_make(int *count)
{
	const struct param *param;
	struct fi_param *rows;
	int n = MRF_PARAM_COUNT, i;

	mrf_gate_enter(MRF_GATE_PARAMS);
	for (param = params_head; param; param = param->next)
		n++;
	rows = calloc((size_t)n + 1, sizeof(*rows));
	if (rows && list_fill_locked(rows)) {
		for (i = 0; i < n; i++)
			free_row(&rows[i]);
		free(rows);
		rows = NULL;
	}
	mrf_gate_leave(MRF_GATE_PARAMS);
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
		return mrf_refuse(FI_ENOMEM, FI_LOG_CORE, 5920, "fi_getparams: out of memory");
	*params = rows;
	*count = n;
	return 0;
}

void mrf_param_list_free(struct fi_param *params)
{
	struct fi_param *row;

	if (!params)
		return;
	for (row = params; row->name; row++)
		free_row(row);
	free(params);
}
