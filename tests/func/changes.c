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

/* Does FI_SOURCE with this address find the device, and nothing else? */
static bool found_by_source(const char *address, const char *device)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	bool right;

	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	fi_getinfo(API, address, NULL, FI_SOURCE, hints, &info);
	fi_freeinfo(hints);
	right = info && !info->next && !strcmp(info->domain_attr->name, device);
	fi_freeinfo(info);
	return right || fails("%s is not found at %s", address, device);
}

/*
 * Others, with the names that the process has seen, one of them on the other's interface. Before
 * anything is opened: the kernel waits with a device that a process has open.
 */
static bool devices_made_anew_are_found(void)
{
	return sh("ip addr add 10.71.2.1/24 dev mrfa && ip addr add 10.71.2.2/24 dev mrfb") &&
	       found_by_source("10.71.2.1", "rxea") && found_by_source("10.71.2.2", "rxeb") &&
	       sh("rdma link delete rxeb && rdma link add rxeb type rxe netdev mrfb") &&
	       found_by_source("10.71.2.2", "rxeb") &&
	       sh("rdma link delete rxea && rdma link delete rxeb && "
		  "rdma link add rxea type rxe netdev mrfb && "
		  "rdma link add rxeb type rxe netdev mrfa") &&
	       found_by_source("10.71.2.2", "rxea") && found_by_source("10.71.2.1", "rxeb") &&
	       sh("rdma link delete rxea && rdma link delete rxeb && "
		  "rdma link add rxea type rxe netdev mrfa && "
		  "rdma link add rxeb type rxe netdev mrfb") &&
	       found_by_source("10.71.2.1", "rxea") && !found_by_source("10.71.2.3", "rxea") &&
	       sh("ip addr flush dev mrfa && ip addr flush dev mrfb");
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

/* What the process knows of a device by then must not stand in the way of what has changed. */
static bool address_that_moves_is_found_where_it_is(void)
{
	return found_by_source("10.71.1.1", "rxea") && found_by_source("10.71.1.2", "rxeb") &&
	       sh("ip addr del 10.71.1.1/24 dev mrfa && ip addr add 10.71.1.1/24 dev mrfb") &&
	       found_by_source("10.71.1.1", "rxeb") &&
	       sh("ip addr del 10.71.1.1/24 dev mrfb && ip addr add 10.71.1.1/24 dev mrfa") &&
	       found_by_source("10.71.1.1", "rxea");
}

static bool is_offered(const char *device)
{
	struct fi_info *info = offered(device, NULL);

	fi_freeinfo(info);
	return info;
}

/* The kernel takes a moment to tell the device of its interface. */
static bool becomes_offered(const char *device, bool wanted)
{
	for (int i = 0; i < 1000 && is_offered(device) != wanted; i++)
		usleep(10000);
	return is_offered(device) == wanted ||
	       fails("%s is %soffered", device, wanted ? "not " : "");
}

/* The device is known by then, so its port is only asked about where it may have changed. */
static bool device_on_an_interface_that_is_down_is_not_offered(void)
{
	return becomes_offered("rxeb", true) && sh("ip link set mrfb down") &&
	       becomes_offered("rxeb", false) && sh("ip link set mrfb up") &&
	       becomes_offered("rxeb", true) && sh("ip link set mrfb carrier off") &&
	       becomes_offered("rxeb", false) && sh("ip link set mrfb carrier on") &&
	       becomes_offered("rxeb", true);
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
		{ "devices_made_anew_are_found", devices_made_anew_are_found },
		{ "address_with_a_peer_is_not_offered", address_with_a_peer_is_not_offered },
		{ "device_of_the_destination_comes_first", device_of_the_destination_comes_first },
		{ "address_that_moves_is_found_where_it_is",
		  address_that_moves_is_found_where_it_is },
		{ "device_on_an_interface_that_is_down_is_not_offered",
		  device_on_an_interface_that_is_down_is_not_offered },
		{ "renamed_device_is_opened", renamed_device_is_opened },
	};
	const int count = sizeof(cases) / sizeof(cases[0]);
	int failed = 0;

	for (int i = 0; i < count; i++) {
		bool ok = cases[i].run();

		if (ok)
			printf("ok %s\n", cases[i].name);
		else
			printf("not ok %s: %s\n", cases[i].name, why);
		fflush(stdout);
		failed += !ok;
	}
	printf("changes: %d passed, %d failed, 0 skipped\n", count - failed, failed);
	return failed != 0;
}
