/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrfab_info lists what fi_getinfo offers on this machine, and says why it is not more. It uses
 * the public interface only, and checks whether this user may open the devices.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "info_code.h"
#include "info_json.h"
#include "info_options.h"
#include "info_pid.h"
#include "verbs/vnode.h"

/* What fi_tostr has in the line that begins with field, but "10.99.1.1:0" for a socket address. */
static const char *addr_text(const struct fi_info *info, const char *field, char *buf, size_t len)
{
	const char *text = strstr(fi_tostr(info, FI_TYPE_INFO), field), *host;

	if (!text)
		return "(unknown)";
	snprintf(buf, len, "%s", text + strlen(field));
	buf[strcspn(buf, "\n")] = '\0';
	host = strncmp(buf, "fi_sockaddr_in", strlen("fi_sockaddr_in")) ? NULL : strstr(buf, "://");
	return host ? host + strlen("://") : buf;
}

/* The modes of registration, and the variable that requires some of them. */
static void print_modes(const struct fi_info *info)
{
	const char *required = info_options_required();

	printf("    mr_mode: [ %s ]\n", fi_tostr(&info->domain_attr->mr_mode, FI_TYPE_MR_MODE));
	if (info->mode)
		printf("    mode: [ %s ]\n", fi_tostr(&info->mode, FI_TYPE_MODE));
	if (required)
		printf("    required: %s=%s\n", required, getenv(required));
}

static void print_short(const struct fi_info *info)
{
	uint32_t version = info->fabric_attr->prov_version;
	char addr[128];

	printf("provider: %s\n", info->fabric_attr->prov_name);
	if (info->fabric_attr->name)
		printf("    fabric: %s\n", info->fabric_attr->name);
	if (info->domain_attr->name)
		printf("    domain: %s\n", info->domain_attr->name);
	printf("    version: %u.%u\n", FI_MAJOR(version), FI_MINOR(version));
	if (info->src_addr) {
		printf("    type: %s\n", fi_tostr(&info->ep_attr->type, FI_TYPE_EP_TYPE));
		printf("    address: %s\n", addr_text(info, "src_addr: ", addr, sizeof(addr)));
		print_modes(info);
	}
	if (info->dest_addr)
		printf("    destination: %s\n", addr_text(info, "dest_addr: ", addr, sizeof(addr)));
}

/* The GIDs of the device's port, under which raw verbs know its addresses. */
static void print_gids(const char *device)
{
	char path[160], gid[64];
	FILE *file;
	int i;

	for (i = 0; i < 256; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gids/%d", device, i);
		file = fopen(path, "re");
		if (!file)
			return;
		if (fgets(gid, sizeof(gid), file) && strspn(gid, "0:\n") < strlen(gid))
			printf("    gid %d: %s", i, gid);
		fclose(file);
	}
}

static void print_link(const struct fi_info *info)
{
	const struct fi_link_attr *link = info->nic ? info->nic->link_attr : NULL;

	if (link)
		printf("link: %s\n    mtu: %zu bytes\n    speed: %.1f Gb/s\n",
		       info->domain_attr->name, link->mtu, (double)link->speed / 1e9);
	print_gids(info->domain_attr->name);
}

static void print_all(const struct fi_info *info, bool verbose)
{
	for (; info; info = info->next) {
		if (verbose) {
			printf("---\n%s", fi_tostr(info, FI_TYPE_INFO));
			if (info->domain_attr->name)
				print_link(info);
		} else
			print_short(info);
	}
}

/* This user may lack access to a device that is offered. Say so here, before fi_domain does. */
static void tell_barred(const struct fi_info *info)
{
	const char *name, *last = "";
	char why[320];

	for (; info; info = info->next) {
		name = info->domain_attr->name;
		if (!name || !strcmp(name, last))
			continue;
		last = name;
		if (mrf_vnode_bars(&mrf_vnode_dirs, name, why, sizeof(why)))
			fprintf(stderr, "mrfab_info: fi_domain of %s will fail: %s\n", name, why);
	}
}

static int print_variables(void)
{
	struct fi_param *params;
	int count, i, ret;

	ret = fi_getparams(&params, &count);
	if (ret)
		return ret;
	for (i = 0; i < count; i++)
		printf("# %s\n%s%s%s\n\n", params[i].help_string, params[i].name,
		       params[i].value ? "=" : "", params[i].value ? params[i].value : "");
	fi_freeparams(params);
	return 0;
}

static int print_infos(const struct info_options *opt)
{
	struct fi_info *info = NULL;
	int ret;

	ret = fi_getinfo(opt->version, opt->node, opt->service, opt->flags,
			 opt->use_hints ? opt->hints : NULL, &info);
	if (ret)
		return ret;
	if (opt->json)
		info_json_print(info);
	else
		print_all(info, opt->verbose);
	fflush(stdout);
	tell_barred(info);
	fi_freeinfo(info);
	return 0;
}

/* The library reads these at the first call that logs, which is yet to come. */
static void log_reasons(void)
{
	setenv("FI_LOG_LEVEL", "info", 1);
	unsetenv("FI_LOG_PROV");
	unsetenv("FI_LOG_SUBSYS");
}

int main(int argc, char **argv)
{
	struct info_options opt = { .version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) };
	int ret;

	opt.hints = fi_allocinfo();
	if (!opt.hints) {
		fputs("mrfab_info: out of memory\n", stderr);
		return EXIT_FAILURE;
	}
	/* A program that only lists what there is can have any mode. */
	opt.hints->mode = ~UINT64_C(0);
	ret = info_options_parse(&opt, argc, argv);
	if (ret) {
		fi_freeinfo(opt.hints);
		return ret < 0 ? 2 : EXIT_SUCCESS;
	}
	if (opt.code) {
		fi_freeinfo(opt.hints);
		return info_code_print(opt.code) ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	if (opt.pid) {
		fi_freeinfo(opt.hints);
		return info_pid_print(opt.pid, opt.json) ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	info_options_offer_modes(&opt);
	if (opt.explain)
		log_reasons();
	ret = opt.variables ? print_variables() : print_infos(&opt);
	fi_freeinfo(opt.hints);
	if (ret)
		fprintf(stderr, "mrfab_info: %s%s\n", fi_strerror(-ret),
			ret == -FI_ENODATA && !opt.explain ? "; --explain says why" : "");
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
