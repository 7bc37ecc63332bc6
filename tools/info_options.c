/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "info_hints.h"
#include "info_options.h"
#include "info_words.h"

static const struct info_words cap_words = { FI_TYPE_CAPS, true, sizeof(uint64_t) };
static const struct info_words mode_words = { FI_TYPE_MODE, true, sizeof(uint64_t) };
static const struct info_words mr_words = { FI_TYPE_MR_MODE, true, sizeof(int) };
static const struct info_words ep_words = { FI_TYPE_EP_TYPE, false, sizeof(uint32_t) };
static const struct info_words format_words = { FI_TYPE_ADDR_FORMAT, false, sizeof(uint32_t) };

enum { OPT_EXPLAIN = 256, OPT_HINTS, OPT_NUMERIC, OPT_PID, OPT_CODE, OPT_JSON };

static const struct option long_options[] = { { "caps", required_argument, NULL, 'c' },
					      { "mode", required_argument, NULL, 'm' },
					      { "mr-mode", required_argument, NULL, 'r' },
					      { "ep-type", required_argument, NULL, 't' },
					      { "addr-format", required_argument, NULL, 'a' },
					      { "provider", required_argument, NULL, 'p' },
					      { "domain", required_argument, NULL, 'd' },
					      { "fabric", required_argument, NULL, 'f' },
					      { "node", required_argument, NULL, 'n' },
					      { "port", required_argument, NULL, 'P' },
					      { "source", no_argument, NULL, 's' },
					      { "numeric", no_argument, NULL, OPT_NUMERIC },
					      { "api", required_argument, NULL, 'A' },
					      { "env", no_argument, NULL, 'e' },
					      { "list", no_argument, NULL, 'l' },
					      { "verbose", no_argument, NULL, 'v' },
					      { "pid", required_argument, NULL, OPT_PID },
					      { "code", required_argument, NULL, OPT_CODE },
					      { "hints", required_argument, NULL, OPT_HINTS },
					      { "json", no_argument, NULL, OPT_JSON },
					      { "explain", no_argument, NULL, OPT_EXPLAIN },
					      { "version", no_argument, NULL, 'V' },
					      { "help", no_argument, NULL, 'h' },
					      { NULL, 0, NULL, 0 } };

static const char usage_text[] =
	"Usage: mrfab_info [OPTION]...\n"
	"List what libmrfab offers on this machine; --explain says why not more.\n"
	"\n"
	"Hints (sets are written FI_A|FI_B):\n"
	"  -c, --caps=CAPS            capabilities\n"
	"  -m, --mode=MODE            modes that the application supports\n"
	"  -r, --mr-mode=MODE         registration modes (FI_MR_LOCAL or LOCAL), or a number\n"
	"  -t, --ep-type=TYPE         endpoint type\n"
	"  -a, --addr-format=FORMAT   address format\n"
	"  -p, --provider=NAMES       provider names\n"
	"  -d, --domain=NAME          domain: an RDMA device such as rxe0\n"
	"  -f, --fabric=NAME          fabric: a network such as 10.99.1.0/24\n"
	"      --hints=FILE           all hints, as fi_tostr printed them; -: standard input\n"
	"Arguments of fi_getinfo:\n"
	"  -n, --node=NODE            host name or address of the peer\n"
	"  -P, --port=SERVICE         service name or port number of the peer\n"
	"  -s, --source               node and port are those of the local end\n"
	"      --numeric              node is an address, not a name\n"
	"  -A, --api=MAJOR.MINOR      interface version to ask for\n"
	"Output:\n"
	"  -v, --verbose              print everything that is offered\n"
	"      --json                 print the same as a JSON array\n"
	"      --explain              log what was looked at and what was left out\n"
	"      --code=CODE            instead, explain a message code such as MRF-E4105\n"
	"  -e, --env                  instead, list the environment variables\n"
	"      --pid=PID              instead, print what the library did in process PID\n"
	"  -l, --list                 name the provider, even if no device can be used\n"
	"  -V, --version              print the versions and exit\n"
	"  -h, --help                 print this text and exit\n"
	"\n"
	"If the environment variable FI_MRFAB_MR_MODE requires modes, these are offered\n"
	"unless --mr-mode says otherwise.\n";

static int fail_usage(const char *what, const char *value)
{
	fprintf(stderr, "mrfab_info: %s: %s\nTry 'mrfab_info --help'.\n", what, value);
	return -EINVAL;
}

/* "FI_A|FI_B", "FI_A+FI_B", "FI_A,FI_B", "0x30" or "0" */
static int parse_set(const struct info_words *words, const char *what, const char *text,
		     uint64_t *set)
{
	uint64_t value, all = 0;
	const char *at = text;
	size_t len;
	char *end;

	value = strtoull(text, &end, 0);
	if (*text && !*end) {
		*set = value;
		return 0;
	}
	for (;; at += len + 1) {
		len = strcspn(at, "|,+");
		if (!info_words_find(words, at, len, &value))
			return fail_usage(what, text);
		all |= value;
		if (!at[len])
			break;
	}
	*set = all;
	return 0;
}

/* Like a set, but of one value only. */
static int parse_word(const struct info_words *words, const char *what, const char *text,
		      uint64_t *value)
{
	if (info_words_find(words, text, strlen(text), value))
		return 0;
	return fail_usage(what, text);
}

static int parse_version(const char *text, uint32_t *version)
{
	unsigned major, minor;
	char rest;

	if (sscanf(text, "%u.%u%c", &major, &minor, &rest) != 2 || major > 0xffff || minor > 0xffff)
		return fail_usage("not a version", text);
	*version = FI_VERSION(major, minor);
	return 0;
}

static int set_string(char **to, const char *text)
{
	free(*to);
	*to = strdup(text);
	return *to ? 0 : -ENOMEM;
}

static int parse_hint(struct info_options *opt, int c, const char *arg)
{
	struct fi_info *hints = opt->hints;
	uint64_t value = 0;
	int ret;

	switch (c) {
	case 'c':
		return parse_set(&cap_words, "no such capability", arg, &hints->caps);
	case 'm':
		return parse_set(&mode_words, "no such mode", arg, &hints->mode);
	case 'r':
		ret = parse_set(&mr_words, "no such registration mode", arg, &value);
		hints->domain_attr->mr_mode = (int)value;
		return ret;
	case 't':
		ret = parse_word(&ep_words, "no such endpoint type", arg, &value);
		hints->ep_attr->type = (enum fi_ep_type)value;
		return ret;
	case 'a':
		ret = parse_word(&format_words, "no such address format", arg, &value);
		hints->addr_format = (uint32_t)value;
		return ret;
	case 'p':
		return set_string(&hints->fabric_attr->prov_name, arg);
	case 'd':
		return set_string(&hints->domain_attr->name, arg);
	default:
		return set_string(&hints->fabric_attr->name, arg);
	}
}

static int parse_option(struct info_options *opt, int c, const char *arg)
{
	switch (c) {
	case 'n':
		opt->node = arg;
		return 0;
	case 'P':
		opt->service = arg;
		return 0;
	case 's':
		opt->flags |= FI_SOURCE;
		return 0;
	case OPT_NUMERIC:
		opt->flags |= FI_NUMERICHOST;
		return 0;
	case 'l':
		opt->flags |= FI_PROV_ATTR_ONLY;
		return 0;
	case 'A':
		return parse_version(arg, &opt->version);
	case 'e':
		opt->variables = true;
		return 0;
	case 'v':
		opt->verbose = true;
		return 0;
	case OPT_PID:
		opt->pid = arg;
		return arg[strspn(arg, "0123456789")] || !*arg ? fail_usage("not a process", arg)
							       : 0;
	case OPT_CODE:
		opt->code = arg;
		return 0;
	case OPT_JSON:
		opt->json = true;
		return 0;
	case OPT_HINTS:
		opt->use_hints = opt->mr_mode = true;
		opt->hints->mode = 0;
		return info_hints_read(arg, opt->hints);
	case OPT_EXPLAIN:
		opt->explain = true;
		return 0;
	default:
		opt->use_hints = true;
		opt->mr_mode = opt->mr_mode || c == 'r';
		return parse_hint(opt, c, arg);
	}
}

static void print_version(void)
{
	uint32_t version = fi_version();

	printf("mrfab_info (libmrfab) %s\nlibfabric interface %u.%u\n", PACKAGE_VERSION,
	       FI_MAJOR(version), FI_MINOR(version));
}

int info_options_parse(struct info_options *opt, int argc, char **argv)
{
	int c, ret = 0;

	while (!ret && (c = getopt_long(argc, argv, "c:m:r:t:a:p:d:f:n:P:sA:elvVh", long_options,
					NULL)) != -1) {
		if (c == 'h') {
			fputs(usage_text, stdout);
			return 1;
		}
		if (c == 'V') {
			print_version();
			return 1;
		}
		if (c == '?')
			return -EINVAL;
		ret = parse_option(opt, c, optarg);
	}
	if (!ret && optind < argc)
		return fail_usage("unexpected argument", argv[optind]);
	if (!ret && opt->json && (opt->code || opt->variables))
		return fail_usage(
			"--json",
			"this option is only for the list of what is offered and for --pid");
	return ret;
}

/* One that is empty counts as not set, as in the library. */
static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

const char *info_options_required(void)
{
	if (is_set("FI_MRFAB_PROFILE"))
		return "FI_MRFAB_PROFILE";
	return is_set("FI_MRFAB_MR_MODE") ? "FI_MRFAB_MR_MODE" : NULL;
}

void info_options_offer_modes(struct info_options *opt)
{
	uint64_t mode, all = 0;
	unsigned i;

	if (opt->mr_mode || FI_VERSION_LT(opt->version, FI_VERSION(1, 5)))
		return;
	if (opt->hints->caps & FI_HMEM)
		opt->hints->domain_attr->mr_mode = FI_MR_HMEM;
	if (!info_options_required())
		return;
	for (i = 0; i < INFO_WORDS_MAX; i++)
		all |= info_words_name(&mr_words, i, &mode) ? mode : 0;
	opt->hints->domain_attr->mr_mode = (int)all & ~(FI_MR_BASIC | FI_MR_SCALABLE);
}
