/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices and addresses that are added, renamed and out of the ordinary, as root on a machine that
 * nobody else uses:
 *
 *	scripts/with-rxe build/main/tests/func/changes
 *
 * Makes two interfaces with a device each. Prints "ok NAME" or "not ok NAME: why".
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define API FI_VERSION(1, 17)

static char why[200];

static bool fails(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return false;
}

static bool sh(const char *command)
{
	return system(command) == 0 || fails("%s", command);
}

/* What is offered on the device (NULL: on any) for that destination (NULL: none). */
static struct fi_info *offered(const char *device, const char *dest)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->name = device ? strdup(device) : NULL;
	if (fi_getinfo(API, dest, dest ? "7" : NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

/* Can everything that is offered on the device be opened? */
static bool opens(const char *device)
{
	struct fi_info *all = offered(device, NULL), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	int ret = all ? 0 : -FI_ENODATA;

	for (info = all; info && !ret; info = info->next) {
		ret = fi_fabric(info->fabric_attr, &fabric, NULL);
		if (ret)
			break;
		ret = fi_domain(fabric, info, &domain, NULL);
		if (!ret)
			fi_close(&domain->fid);
		fi_close(&fabric->fid);
	}
	fi_freeinfo(all);
	return !ret || fails("%s: %s", device, fi_strerror(-ret));
}

/* --- cases, in this order ------------------------------------------------------------------ */

static bool made(void)
{
	return sh(
		"ip link add mrfa type dummy && ip link set mrfa up && "
		"ip link add mrfb type dummy && ip link set mrfb up && "
		"rdma link add rxea type rxe netdev mrfa && rdma link add rxeb type rxe netdev mrfb");
}

static bool address_with_a_peer_is_not_offered(void)
{
	struct fi_info *info;

	if (!sh("ip addr add 10.71.9.1 peer 10.71.9.2 dev mrfa"))
		return false;
	info = offered("rxea", NULL);
	if (info) {
		fi_freeinfo(info);
		return fails("it is offered");
	}
	return sh("ip addr add 10.71.1.1/24 dev mrfa && ip addr add 10.71.1.2/24 dev mrfb") &&
	       opens("rxea") && opens("rxeb");
}

static bool device_of_the_destination_comes_first(void)
{
	static const char *const dest[] = { "10.71.1.1", "10.71.1.2" }, *const name[] = { "rxea",
											  "rxeb" };
	struct fi_info *info;
	bool right;

	for (int i = 0; i < 2; i++) {
		info = offered(NULL, dest[i]);
		right = info && !strcmp(info->domain_attr->name, name[i]);
		fi_freeinfo(info);
		if (!right)
			return fails("to %s: another device is first", dest[i]);
	}
	return true;
}

static bool renamed_device_is_opened(void)
{
	struct fi_info *info = offered("rxea", NULL);
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	bool right;

	if (!info || fi_fabric(info->fabric_attr, &fabric, NULL) ||
	    fi_domain(fabric, info, &domain, NULL))
		return fails("cannot be opened before");
	right = sh("rdma dev set rxea name rxez") && opens("rxez");
	if (offered("rxea", NULL))
		right = fails("the old name is offered");
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	return right;
}

int main(void)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} cases[] = {
		{ "devices_are_made", made },
		{ "address_with_a_peer_is_not_offered", address_with_a_peer_is_not_offered },
		{ "device_of_the_destination_comes_first", device_of_the_destination_comes_first },
		{ "renamed_device_is_opened", renamed_device_is_opened },
	};
	int failed = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool ok = cases[i].run();

		if (ok)
			printf("ok %s\n", cases[i].name);
		else
			printf("not ok %s: %s\n", cases[i].name, why);
		fflush(stdout);
		failed += !ok;
	}
	printf("changes: %d passed, %d failed, 0 skipped\n", 4 - failed, failed);
	return failed != 0;
}
