/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrfab_run: runs a program that is linked with the libfabric of the system over libmrfab, its
 * module, by the environment only. Not linked with libmrfab, so that libtool puts no script in its
 * place in the build folder: it looks for the module from where it is itself (run_module.h).
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "base/env.h"
#include "contract/mr_offer.h"
#include "contract/profile.h"
#include "run_list.h"
#include "run_module.h"
#include "run_watch.h"

#define FAILED 2
#define CANNOT_RUN 126
#define NOT_FOUND 127

struct options {
	const char *mode, *profile;
	const char *strict;
	const char *log;
	const char *runtime;
	bool explain;
	struct run_watch watch;
};

enum {
	OPT_MODE = 256,
	OPT_PROFILE,
	OPT_STRICT,
	OPT_LOG,
	OPT_RUNTIME,
	OPT_EXPLAIN,
	OPT_FAIL_ON,
	OPT_LOG_FILE
};

static const struct option long_options[] = { { "mode", required_argument, NULL, OPT_MODE },
					      { "profile", required_argument, NULL, OPT_PROFILE },
					      { "strict", required_argument, NULL, OPT_STRICT },
					      { "log", required_argument, NULL, OPT_LOG },
					      { "runtime", required_argument, NULL, OPT_RUNTIME },
					      { "explain", no_argument, NULL, OPT_EXPLAIN },
					      { "fail-on", required_argument, NULL, OPT_FAIL_ON },
					      { "log-file", required_argument, NULL, OPT_LOG_FILE },
					      { "version", no_argument, NULL, 'V' },
					      { "help", no_argument, NULL, 'h' },
					      { NULL, 0, NULL, 0 } };

static const char usage_text[] =
	"Usage: mrfab_run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"Run a program that is linked with the system's libfabric over libmrfab.\n"
	"\n"
	"      --mode=MODE      registration modes that the program must offer and that are\n"
	"                       then in force, such as RAW+ENDPOINT (FI_MRFAB_MR_MODE);\n"
	"                       0: no modes, for example for a program that offers\n"
	"                       FI_MR_LOCAL but passes no descriptors\n"
	"      --profile=NAME   the provider whose contract is in force, such as verbs,\n"
	"                       efa+lenient or file:PATH (FI_MRFAB_PROFILE); list: print\n"
	"                       them all\n"
	"      --strict=HOW     off: only warn about rules that other providers do not\n"
	"                       enforce; on: enforce them; warn: also warn about what other\n"
	"                       providers do not take; abort: end the program at a mistake\n"
	"                       (FI_MRFAB_STRICT)\n"
	"      --log=LEVEL      what to log: none, warn, trace, info or debug\n"
	"                       (FI_LOG_LEVEL; default: warn)\n"
	"      --runtime=NAME   put a stand-in device runtime, cuda, rocr or ze, under the\n"
	"                       program (LD_LIBRARY_PATH)\n"
	"      --explain        log what fi_getinfo leaves out, and why\n"
	"      --fail-on=E|W    exit with status 99 if the library logged an error (MRF-E) or\n"
	"                       a warning (MRF-W); EW: either of them\n"
	"      --log-file=FILE  also append the library's lines with such codes to FILE\n"
	"  -V, --version        print the version and exit\n"
	"  -h, --help           print this text and exit\n";

static void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("mrfab_run: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

static _Noreturn void fail(const char *what)
{
	complain("%s", what);
	exit(FAILED);
}

/* --- the command line ----------------------------------------------------------------- */

static const char *one_of(const char *option, const char *value, const char *const *words,
			  const char *rule)
{
	for (; *words; words++) {
		if (!strcasecmp(*words, value))
			return *words;
	}
	complain("%s=%s: the value must be %s", option, value, rule);
	exit(FAILED);
}

/* As fi_getinfo would find it, but before the program has run for an hour. from: the option or variable. */
static const char *checked_mode(const char *from, const char *value)
{
	struct mrf_mr_offer offer;
	char why[160];

	if (mrf_mr_offer_parse(value, &offer, why, sizeof(why)))
		return value;
	complain("%s=%s: %s", from, value, why);
	exit(FAILED);
}

/* The library reads the file again, and the program may be in another folder by then. */
static const char *with_whole_path(const char *value)
{
	static const char kind[] = "file:";
	const char *path = value + sizeof(kind) - 1;
	char folder[PATH_MAX], *whole;

	if (strncasecmp(value, kind, sizeof(kind) - 1) != 0 || *path == '/')
		return value;
	if (!getcwd(folder, sizeof(folder)) || asprintf(&whole, "%s%s/%s", kind, folder, path) < 0)
		fail(strerror(errno));
	return whole;
}

static const char *checked_profile(const char *from, const char *value)
{
	char why[192];

	if (mrf_profile_find(value, why, sizeof(why)))
		return with_whole_path(value);
	complain("%s=%s: %s", from, value, why);
	exit(FAILED);
}

static const char *profile_or_list(const char *value)
{
	if (strcmp(value, "list") != 0)
		return checked_profile("--profile", value);
	run_list_profiles();
	exit(EXIT_SUCCESS);
}

static const char *checked_strict(const char *from, const char *value)
{
	static const char *const switches[] = { "off", "on", "warn", "abort", NULL };

	return one_of(from, value, switches, "off, on, warn or abort");
}

static void parse_kinds(struct run_watch *watch, const char *kinds)
{
	const char *k;

	for (k = kinds; *k; k++) {
		watch->errors |= *k == 'E';
		watch->warnings |= *k == 'W';
	}
	if (k != kinds && strspn(kinds, "EW") == strlen(kinds))
		return;
	complain("--fail-on=%s: the value must be E, W or EW", kinds);
	exit(FAILED);
}

static void parse_option(struct options *opt, int c, const char *arg)
{
	static const char *const runtimes[] = { "cuda", "rocr", "ze", NULL };
	static const char *const levels[] = { "none", "warn", "trace", "info", "debug", NULL };

	switch (c) {
	case OPT_MODE:
		opt->mode = checked_mode("--mode", arg);
		return;
	case OPT_PROFILE:
		opt->profile = profile_or_list(arg);
		return;
	case OPT_STRICT:
		opt->strict = checked_strict("--strict", arg);
		return;
	case OPT_RUNTIME:
		opt->runtime = one_of("--runtime", arg, runtimes, "cuda, rocr or ze");
		return;
	case OPT_LOG:
		opt->log = one_of("--log", arg, levels, "none, warn, trace, info or debug");
		return;
	case OPT_FAIL_ON:
		parse_kinds(&opt->watch, arg);
		return;
	case OPT_LOG_FILE:
		opt->watch.log_file = arg;
		return;
	default:
		opt->explain = true;
		return;
	}
}

/* A variable that is empty counts as not set, as in the library. */
static const char *inherited(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* What no option says may be in the environment. */
static void inherit(struct options *opt)
{
	const char *mode = inherited("FI_MRFAB_MR_MODE"), *profile = inherited("FI_MRFAB_PROFILE");
	const char *strict = inherited("FI_MRFAB_STRICT");

	if (!opt->mode && mode)
		opt->mode = checked_mode("FI_MRFAB_MR_MODE", mode);
	if (!opt->profile && profile)
		opt->profile = checked_profile("FI_MRFAB_PROFILE", profile);
	if (!opt->strict && strict)
		opt->strict = checked_strict("FI_MRFAB_STRICT", strict);
}

/* As fi_getinfo would refuse both. */
static void check_contract(const struct options *opt)
{
	if (!opt->mode || !opt->profile)
		return;
	complain("FI_MRFAB_MR_MODE=%s (--mode) and FI_MRFAB_PROFILE=%s (--profile) exclude each "
		 "other: a profile has its own modes",
		 opt->mode, opt->profile);
	exit(FAILED);
}

static bool is_watched(const struct options *opt)
{
	return opt->watch.errors || opt->watch.warnings || opt->watch.log_file;
}

/* Returns the index of the program. What stands behind that belongs to the program. */
static int parse_all(struct options *opt, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "+hV", long_options, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			fputs(c == 'h' ? usage_text : "mrfab_run (libmrfab) " PACKAGE_VERSION "\n",
			      stdout);
			exit(EXIT_SUCCESS);
		}
		if (c == '?')
			exit(FAILED);
		parse_option(opt, c, optarg);
	}
	if (optind == argc)
		fail("no program is named; see --help");
	if (is_watched(opt) && opt->log && !strcmp(opt->log, "none"))
		fail("--log=none leaves --fail-on and --log-file nothing to look at");
	inherit(opt);
	check_contract(opt);
	return optind;
}

/* --- the environment ------------------------------------------------------------------ */

/* And adds it to the line that says what is done. */
static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		fail(strerror(errno));
	fprintf(stderr, " %s=%s", name, value);
}

/* And so does what the program gets in any case. */
static void show(const char *name)
{
	const char *value = inherited(name);

	if (value)
		fprintf(stderr, " %s=%s", name, value);
}

static void set_unless_set(const char *name, const char *value)
{
	if (!getenv(name))
		set(name, value);
}

/* By which name libfabric looks for the module. */
static const char *provider_name(void)
{
	const char *name = inherited("FI_MRFAB_PROVIDER_NAME");

	if (!name)
		return "mrfab";
	/* libfabric itself would answer, and the program would run, but not over the module. */
	if (!mrf_env_bad_name(name))
		return name;
	complain("FI_MRFAB_PROVIDER_NAME=%s: the module cannot have a name with %s", name,
		 mrf_env_bad_name(name));
	exit(FAILED);
}

static const char *wanted_level(const struct options *opt)
{
	const char *level = opt->log ? opt->log : getenv("FI_LOG_LEVEL");

	if (opt->explain && !(level && (!strcasecmp(level, "info") || !strcasecmp(level, "debug"))))
		return "info";
	return level ? level : "warn";
}

/*
 * Unless a level is set libfabric (1.17) logs nothing at all, whatever its manual says; it has no
 * word for none. In the subsystem core it writes more than a hundred lines about its variables and
 * providers.
 */
static void set_log(const struct options *opt, const char *provider)
{
	const char *level = wanted_level(opt);

	/* What is watched must not be filtered away. */
	if (is_watched(opt)) {
		unsetenv("FI_LOG_PROV");
		unsetenv("FI_LOG_SUBSYS");
	} else if (!opt->log && !opt->explain && getenv("FI_LOG_LEVEL")) {
		return;
	}
	if (!strcmp(level, "none")) {
		unsetenv("FI_LOG_LEVEL");
		return;
	}
	set("FI_LOG_LEVEL", level);
	set_unless_set("FI_LOG_PROV", provider);
	set_unless_set("FI_LOG_SUBSYS", "^core");
}

/* Before what is there, however long that is. */
static void set_runtime(const char *name)
{
	const char *before = getenv("LD_LIBRARY_PATH");
	char folder[PATH_MAX], why[RUN_MODULE_WHY], *value;

	if (!run_module_runtime(name, folder, why))
		fail(why);
	if (strpbrk(folder, ":;")) {
		complain("%s: LD_LIBRARY_PATH takes no folder with a colon or semicolon", folder);
		exit(FAILED);
	}
	if (asprintf(&value, "%s%s%s", folder, before && *before ? ":" : "", before ? before : "") <
	    0)
		fail(strerror(ENOMEM));
	set("LD_LIBRARY_PATH", value);
	free(value);
}

/*
 * libpsm2, which libfabric loads where it is installed, catches SIGABRT and ends the program with status 1, so
 * that there is no core file, unless it is told not to.
 */
static void set_abort(const struct options *opt)
{
	if (opt->strict && !strcasecmp(opt->strict, "abort"))
		set_unless_set("IPATH_NO_BACKTRACE", "1");
}

static void set_all(const struct options *opt, const char *program, const char *folder)
{
	const char *provider = provider_name();

	fprintf(stderr, "mrfab_run: %s:", program);
	set("FI_PROVIDER", provider);
	set("FI_PROVIDER_PATH", folder);
	if (opt->mode)
		set("FI_MRFAB_MR_MODE", opt->mode);
	if (opt->profile)
		set("FI_MRFAB_PROFILE", opt->profile);
	if (opt->strict)
		set("FI_MRFAB_STRICT", opt->strict);
	set_abort(opt);
	show("FI_MRFAB_FAULT");
	show("FI_MRFAB_LEAKS");
	if (opt->runtime)
		set_runtime(opt->runtime);
	set_log(opt, provider);
	fputc('\n', stderr);
}

/* Only returns if it cannot be run; errno says why. */
static void run(const struct options *opt, char **argv)
{
	int status;

	if (!is_watched(opt)) {
		execvp(argv[0], argv);
		return;
	}
	status = run_watched(&opt->watch, argv);
	if (status >= 0)
		exit(status);
	if (status == RUN_WATCH_NO_FILE) {
		complain("--log-file=%s: %s", opt->watch.log_file, strerror(errno));
		exit(FAILED);
	}
}

int main(int argc, char **argv)
{
	struct options opt = { .mode = NULL };
	char folder[PATH_MAX], why[RUN_MODULE_WHY];
	int at, err;

	/* Lines of several processes do not mix. */
	setvbuf(stderr, NULL, _IOLBF, 4 * PATH_MAX);
	at = parse_all(&opt, argc, argv);
	if (!run_module_find(folder, why))
		fail(why);
	set_all(&opt, argv[at], folder);
	run(&opt, argv + at);
	err = errno;
	complain("%s: %s", argv[at], strerror(err));
	return err == ENOENT ? NOT_FOUND : CANNOT_RUN;
}
