/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_MRFAB_PROFILE: addresses and address vectors are the provider's, wherever an application sees them,
 * from fi_getinfo on; on one fake device.
 */
#include <rdma/fi_cm.h>
#include "base/compiler.h"
#include "contract/mr_offer.h"
#include "contract/profile.h"
#include "ep_fixture.h"
#include "one_device.h"

#define VAR "FI_MRFAB_PROFILE"
#define V17 FI_VERSION(1, 17)
#define ALL_MODES ((int)MRF_MR_REQUIRABLE)
#define PROFILES 25
#define NAME_MAX_LEN 64
#define LEN 8

/* Written down a second time; shm has texts with their NUL, of 10.99.1.1:0. */
static const struct row {
	const char *name;
	uint32_t format;
	size_t len;
	const char *scheme;
} rows[] = {
	{ "efa", FI_ADDR_EFA, 32, "fi_addr_efa://" },
	{ "efa-direct", FI_ADDR_EFA, 32, "fi_addr_efa://" },
	{ "cxi-client", FI_ADDR_CXI, 8, "fi_addr_cxi://" },
	{ "cxi-prov", FI_ADDR_CXI, 8, "fi_addr_cxi://" },
	{ "cxi-odp", FI_ADDR_CXI, 8, "fi_addr_cxi://" },
	{ "psm2", FI_ADDR_PSMX2, 16, "fi_addr_psmx2://" },
	{ "psm3", FI_ADDR_PSMX3, 32, "fi_addr_psmx3://" },
	{ "opx", FI_ADDR_OPX, 8, "fi_addr_opx://" },
	{ "shm", FI_ADDR_STR, sizeof("fi_shm://10.99.1.1:0"), "fi_shm://" },
	{ "shm-fast", FI_ADDR_STR, sizeof("fi_shm://10.99.1.1:0"), "fi_shm://" },
};
#define ROWS ((int)MRF_ARRAY_SIZE(rows))

static const struct row *row;
static struct unit_capture cap;
static const char *text; /* what the last fi_getinfo logged */
static struct fi_info *hints, *info;
static struct node a, b;

static void setup(void)
{
	fixture_setup();
	one_device_use();
	fixture_log();
	hints = fi_allocinfo();
	ck_assert_ptr_nonnull(hints);
	hints->domain_attr->mr_mode = ALL_MODES;
	info = NULL;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	unsetenv(VAR);
	fixture_teardown();
}

static void use(const char *name)
{
	ck_assert_int_eq(setenv(VAR, name, 1), 0);
}

static int get(const char *node, const char *service)
{
	int ret;

	fi_freeinfo(info);
	info = NULL;
	unit_capture(&cap);
	ret = fi_getinfo(V17, node, service, 0, hints, &info);
	text = unit_captured(&cap);
	return ret;
}

static void use_row(int i)
{
	row = &rows[i];
	use(row->name);
	ck_assert_int_eq(get(NULL, NULL), 0);
}

/* As a program of that provider does it, with what fi_getinfo says. */
static void open_node(struct node *n)
{
	static const struct node_opt usual;
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av = { .type = FI_AV_UNSPEC };

	n->info = fi_dupinfo(info);
	ck_assert_int_eq(fi_fabric(n->info->fabric_attr, &n->fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(n->fabric, n->info, &n->domain, NULL), 0);
	ck_assert_int_eq(fi_av_open(n->domain, &av, &n->av, NULL), 0);
	ck_assert_int_eq(fi_cq_open(n->domain, &cq, &n->cq, NULL), 0);
	ck_assert_int_eq(node_try_ep(n, &usual, &n->ep), 0);
}

struct name {
	uint8_t bytes[NAME_MAX_LEN];
	size_t len;
};

static struct name name_of(const struct node *n)
{
	struct name name = { .len = 0 };
	size_t whole;

	ck_assert_int_eq(fi_getname(&n->ep->fid, NULL, &name.len), -FI_ETOOSMALL);
	whole = name.len;
	ck_assert_uint_le(whole, sizeof(name.bytes));
	name.len = whole - 1;
	ck_assert_int_eq(fi_getname(&n->ep->fid, name.bytes, &name.len), -FI_ETOOSMALL);
	ck_assert_uint_eq(name.len, whole);
	ck_assert_int_eq(name.bytes[whole - 1], 0);
	ck_assert_int_eq(fi_getname(&n->ep->fid, name.bytes, &name.len), 0);
	ck_assert_uint_eq(name.len, whole);
	return name;
}

/* --- fi_getinfo ------------------------------------------------------------------------ */

START_TEST(answer_has_addresses_of_the_provider)
{
	char want[80];

	use_row(_i);
	ck_assert_uint_eq(info->addr_format, row->format);
	ck_assert_uint_eq(info->src_addrlen, row->len);
	ck_assert_ptr_null(info->dest_addr);
	snprintf(want, sizeof(want), "src_addr: %s10.99.1.1:0\n", row->scheme);
	ck_assert_ptr_nonnull(strstr(fi_tostr(info, FI_TYPE_INFO), want));
	ck_assert_int_eq(get("10.99.1.7", "4711"), 0);
	snprintf(want, sizeof(want), "dest_addr: %s10.99.1.7:4711\n", row->scheme);
	ck_assert_ptr_nonnull(strstr(fi_tostr(info, FI_TYPE_INFO), want));
	if (strncmp(row->name, "shm", 3))
		ck_assert_uint_eq(info->dest_addrlen, row->len);
}
END_TEST

START_TEST(other_formats_are_refused)
{
	uint32_t format;

	use_row(_i);
	for (format = FI_SOCKADDR; format <= FI_ADDR_CXI; format++) {
		hints->addr_format = format;
		if (format == row->format) {
			ck_assert_int_eq(get(NULL, NULL), 0);
			ck_assert_uint_eq(info->addr_format, format);
			continue;
		}
		ck_assert_int_eq(get(NULL, NULL), -FI_ENODATA);
		ck_assert_ptr_nonnull(strstr(text, "MRF-E1037: hints->addr_format="));
		ck_assert_ptr_nonnull(strstr(text, row->name));
		ck_assert_ptr_nonnull(strstr(text, ") offers only FI_ADDR_"));
	}
}
END_TEST

START_TEST(other_profiles_have_socket_addresses)
{
	const struct mrf_profile *profile = mrf_profile_at((size_t)_i);

	use(profile->name);
	ck_assert_int_eq(get(NULL, NULL), 0);
	if (profile->form)
		return;
	ck_assert_uint_eq(info->addr_format, FI_SOCKADDR_IN);
	ck_assert_uint_eq(info->src_addrlen, sizeof(struct sockaddr_in));
	hints->addr_format = FI_ADDR_EFA;
	ck_assert_int_eq(get(NULL, NULL), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E1009"));
}
END_TEST

START_TEST(hints_have_addresses_of_the_provider)
{
	uint8_t *bytes;

	use_row(_i);
	ck_assert_int_eq(get("10.99.1.7", "4711"), 0);
	hints->addr_format = row->format;
	hints->src_addr = info->src_addr;
	hints->src_addrlen = info->src_addrlen;
	hints->dest_addr = info->dest_addr;
	hints->dest_addrlen = info->dest_addrlen;
	info->src_addr = info->dest_addr = NULL;
	ck_assert_int_eq(get(NULL, NULL), 0);
	ck_assert_uint_eq(info->src_addrlen, hints->src_addrlen);
	ck_assert_uint_eq(info->dest_addrlen, hints->dest_addrlen);
	ck_assert_int_eq(memcmp(info->src_addr, hints->src_addr, info->src_addrlen), 0);
	ck_assert_int_eq(memcmp(info->dest_addr, hints->dest_addr, info->dest_addrlen), 0);
	bytes = hints->dest_addr;
	bytes[0] ^= 0x40;
	ck_assert_int_eq(get(NULL, NULL), -FI_ENODATA);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E1008: hints->dest_addr, of "));
}
END_TEST

static int one_ifaddr6(struct mrf_vnl_ifaddr **addrs, size_t *count)
{
	int ret = one_ifaddr(addrs, count);

	(*addrs)->addr.sa.sa_family = AF_INET6;
	inet_pton(AF_INET6, "fd00::1", &(*addrs)->addr.in6.sin6_addr);
	(*addrs)->prefix = 64;
	return ret;
}

START_TEST(addresses_without_room_for_ipv6_leave_it_out)
{
	bool fits = strcmp(rows[_i].name, "psm2") && strcmp(rows[_i].name, "opx") &&
		    strncmp(rows[_i].name, "cxi", 3);

	fake_vnl.ifaddrs = one_ifaddr6;
	use(rows[_i].name);
	ck_assert_int_eq(get(NULL, NULL), fits ? 0 : -FI_ENODATA);
	if (fits)
		ck_assert_uint_eq(info->addr_format, rows[_i].format);
	else
		ck_assert_ptr_nonnull(strstr(text, "cannot hold an IPv6 address"));
}
END_TEST

/* --- domains and endpoints ------------------------------------------------------------- */

START_TEST(endpoints_are_named_and_found_in_the_form_of_the_provider)
{
	struct name name, found = { .len = NAME_MAX_LEN };
	uint8_t buf[LEN] = "message", in[LEN] = "";
	char shown[96], want[96];
	size_t len = sizeof(shown);
	fi_addr_t to;

	use_row(_i);
	open_node(&a);
	open_node(&b);
	name = name_of(&b);
	if (strncmp(row->name, "shm", 3))
		ck_assert_uint_eq(name.len, row->len);
	ck_assert_int_eq(fi_av_insert(a.av, name.bytes, 1, &to, 0, NULL), 1);
	ck_assert_int_eq(fi_av_lookup(a.av, to, found.bytes, &found.len), 0);
	ck_assert_uint_eq(found.len, name.len);
	ck_assert_int_eq(memcmp(found.bytes, name.bytes, name.len), 0);
	ck_assert_ptr_eq(fi_av_straddr(a.av, name.bytes, shown, &len), shown);
	snprintf(want, sizeof(want), "%s10.99.1.1:%u", row->scheme,
		 mrf_addr_port(&node_ep(&b)->addr));
	ck_assert_str_eq(shown, want);
	/* efa-direct would need descriptors. */
	if (info->domain_attr->mr_mode & FI_MR_LOCAL)
		return;
	ck_assert_int_eq(fi_recv(b.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_send(a.ep, buf, LEN, NULL, to, buf), 0);
	want_ok(&a, buf);
	want_ok(&b, in);
	ck_assert_int_eq(memcmp(buf, in, LEN), 0);
}
END_TEST

/* Whatever their lengths are, and one that is none does not affect the others. */
START_TEST(arrays_of_addresses_are_inserted)
{
	uint8_t all[3 * NAME_MAX_LEN];
	fi_addr_t to[3] = { 0 };
	int errs[3] = { 0 };
	struct name name;

	use_row(_i);
	open_node(&a);
	open_node(&b);
	name = name_of(&b);
	memcpy(all, name.bytes, name.len);
	memcpy(all + name.len, name.bytes, name.len);
	memcpy(all + 2 * name.len, name.bytes, name.len);
	ck_assert_int_eq(fi_av_insert(a.av, all, 3, to, 0, NULL), 3);
	all[name.len] ^= 0x20;
	unit_capture(&cap);
	ck_assert_int_eq(fi_av_insert(a.av, all, 3, to, FI_SYNC_ERR, errs), 2);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E2206: address 1 "));
	ck_assert_ptr_nonnull(strstr(text, "pass on what fi_getname has returned"));
	ck_assert_int_eq(errs[0] | errs[2], 0);
	ck_assert_int_eq(errs[1], FI_EINVAL);
	ck_assert_uint_eq(to[1], FI_ADDR_NOTAVAIL);
}
END_TEST

START_TEST(endpoint_takes_the_port_of_its_info_or_name)
{
	struct name name;

	use_row(_i);
	open_node(&b);
	name = name_of(&b);
	node_close(&b);
	free(info->src_addr);
	info->src_addr = malloc(name.len);
	ck_assert_ptr_nonnull(info->src_addr);
	memcpy(info->src_addr, name.bytes, name.len);
	info->src_addrlen = name.len;
	open_node(&b);
	ck_assert_int_eq(memcmp(name_of(&b).bytes, name.bytes, name.len), 0);
	must_close(&b.ep->fid);
	fi_freeinfo(b.info);
	ck_assert_int_eq(get(NULL, NULL), 0);
	b.info = fi_dupinfo(info);
	ck_assert_int_eq(fi_endpoint(b.domain, b.info, &b.ep, NULL), 0);
	ck_assert_int_eq(fi_setname(&b.ep->fid, name.bytes, name.len), 0);
	ck_assert_int_eq(memcmp(name_of(&b).bytes, name.bytes, name.len), 0);
	ck_assert_int_eq(fi_setname(&b.ep->fid, name.bytes, name.len - 1), -FI_EINVAL);
}
END_TEST

START_TEST(domain_refuses_what_is_no_address_of_its_format)
{
	uint8_t *bytes;

	use_row(_i);
	bytes = info->src_addr;
	bytes[0] ^= 0x40;
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &a.fabric, NULL), 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_domain(a.fabric, info, &a.domain, NULL), -FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E2126"));
	a.domain = NULL;
}
END_TEST

/* Of a sender that is not in the address vector. */
START_TEST(unknown_sources_are_named_in_the_form_of_the_provider)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	uint8_t buf[LEN] = "message", in[LEN] = "";
	struct name name;
	fi_addr_t to;

	hints->caps = FI_MSG | FI_SOURCE | FI_SOURCE_ERR;
	use_row(_i);
	open_node(&a);
	open_node(&b);
	name = name_of(&b);
	ck_assert_int_eq(fi_av_insert(a.av, name.bytes, 1, &to, 0, NULL), 1);
	ck_assert_int_eq(fi_recv(b.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_int_eq(fi_send(a.ep, buf, LEN, NULL, to, buf), 0);
	want_ok(&a, buf);
	ck_assert_int_eq(fi_cq_sread(b.cq, &entry, 1, NULL, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(b.cq, &err, 0), 1);
	ck_assert_int_eq(err.err, FI_EADDRNOTAVAIL);
	name = name_of(&a);
	ck_assert_uint_eq(err.err_data_size, name.len);
	ck_assert_int_eq(memcmp(err.err_data, name.bytes, name.len), 0);
}
END_TEST

/* --- address vectors -------------------------------------------------------------------- */

/* By libfabric 1.17 as measured, and by what is known of the others. */
static bool has_names(const char *name)
{
	return strncmp(name, "cxi", 3) && strcmp(name, "lpp") && strncmp(name, "efa", 3) &&
	       strncmp(name, "shm", 3) && strncmp(name, "psm", 3) && strcmp(name, "opx") &&
	       strcmp(name, "rxd") && strcmp(name, "mrail");
}

START_TEST(calls_with_names_are_those_of_the_provider)
{
	const char *name = mrf_profile_at((size_t)_i)->name;
	bool has = has_names(name);
	fi_addr_t to;

	use(name);
	ck_assert_int_eq(get(NULL, NULL), 0);
	open_node(&a);
	unit_capture(&cap);
	ck_assert_int_eq(fi_av_insertsvc(a.av, "10.99.1.7", "7000", &to, 0, NULL),
			 has ? 1 : -FI_ENOSYS);
	ck_assert_int_eq(fi_av_insertsym(a.av, "10.99.1.7", 1, "7000", 1, &to, 0, NULL),
			 has ? 1 : -FI_ENOSYS);
	text = unit_captured(&cap);
	ck_assert_int_eq(!strstr(text, "MRF-E2234: fi_av_insertsvc: "), has);
	ck_assert_int_eq(!strstr(text, "MRF-E2234: fi_av_insertsym: "), has);
}
END_TEST

/* What an address vector of each type becomes, and in a domain that is for FI_AV_MAP. */
static const struct types {
	const char *name;
	/* By fi_getinfo, if it is asked for each type; -1: it refuses that. */
	int answered[FI_AV_TABLE + 1];
	int plain[FI_AV_TABLE +
		  1]; /* by the type that is asked for; -1: -FI_EINVAL; -2: -FI_ENOSYS */
	int mapped[FI_AV_TABLE + 1];
} types[] = {
	{ "efa", { 2, 2, 2 }, { 2, 2, 2 }, { 2, 2, 2 } },
	{ "efa-direct", { 2, 2, 2 }, { 2, 2, 2 }, { 2, 2, 2 } },
	{ "rxd", { 0, 1, 2 }, { 2, 2, 2 }, { 1, 1, 1 } },
	{ "verbs-rxm", { 0, 1, 2 }, { 2, 1, 2 }, { -1, 1, -1 } },
	{ "tcp-rxm", { 0, 1, 2 }, { 2, 1, 2 }, { -1, 1, -1 } },
	{ "sockets", { 0, 1, 2 }, { 2, 1, 2 }, { -1, 1, -1 } },
	{ "shm", { 0, 1, 2 }, { 2, 1, 2 }, { -1, 1, -1 } },
	{ "shm-fast", { 0, 1, 2 }, { 2, 1, 2 }, { -1, 1, -1 } },
	{ "mrail", { 2, 1, 2 }, { 2, -1, 2 }, { -1, 1, -1 } },
	{ "tcp", { 0, 1, 2 }, { 2, 1, 2 }, { 2, 1, 2 } },
	{ "cxi-client", { 0, 1, 2 }, { 2, 1, 2 }, { 2, 1, 2 } },
	{ "ucx", { 0, 1, 2 }, { 1, 1, -1 }, { 1, 1, -1 } },
	{ "lpp", { 1, 1, -1 }, { 1, 1, -1 }, { 1, 1, -1 } },
	{ "usnic", { 0, 1, -1 }, { 1, 1, -2 }, { 1, 1, -2 } },
};

static void want_type(enum fi_av_type type, int want)
{
	struct fi_av_attr attr = { .type = type };
	struct fid_av *av;
	int ret = fi_av_open(a.domain, &attr, &av, NULL);

	ck_assert_msg(ret == (want == -2 ? -FI_ENOSYS
			      : want < 0 ? -FI_EINVAL
					 : 0),
		      "type %d: %d", type, ret);
	if (ret)
		return;
	ck_assert_int_eq(attr.type, want);
	must_close(&av->fid);
}

START_TEST(types_of_address_vectors_are_those_of_the_provider)
{
	const struct types *want = &types[_i];
	int type;

	use(want->name);
	ck_assert_int_eq(get(NULL, NULL), 0);
	open_node(&a);
	for (type = FI_AV_UNSPEC; type <= FI_AV_TABLE; type++)
		want_type((enum fi_av_type)type, want->plain[type]);
	node_close(&a);
	hints->domain_attr->av_type = FI_AV_MAP;
	ck_assert_int_eq(get(NULL, NULL), 0);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &a.fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(a.fabric, info, &a.domain, NULL), 0);
	unit_capture(&cap);
	for (type = FI_AV_UNSPEC; type <= FI_AV_TABLE; type++)
		want_type((enum fi_av_type)type, want->mapped[type]);
	text = unit_captured(&cap);
	ck_assert_int_eq(!strstr(text, "MRF-E2235") && !strstr(text, "MRF-E2236"),
			 want->mapped[FI_AV_TABLE] >= 0);
}
END_TEST

START_TEST(answers_have_the_types_of_address_vectors_of_the_provider)
{
	const struct types *want = &types[_i];
	int type;

	use(want->name);
	for (type = FI_AV_UNSPEC; type <= FI_AV_TABLE; type++) {
		hints->domain_attr->av_type = (enum fi_av_type)type;
		ck_assert_int_eq(get(NULL, NULL), want->answered[type] < 0 ? -FI_ENODATA : 0);
		ck_assert_int_eq(!strstr(text, "MRF-E1037: hints->domain_attr->av_type"),
				 want->answered[type] >= 0);
		if (want->answered[type] >= 0)
			ck_assert_int_eq((int)info->domain_attr->av_type, want->answered[type]);
	}
}
END_TEST

static TCase *tcase_profile_addr(void)
{
	TCase *tc = tcase_create("profile_addr");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, answer_has_addresses_of_the_provider, 0, ROWS);
	tcase_add_loop_test(tc, other_formats_are_refused, 0, ROWS);
	tcase_add_loop_test(tc, other_profiles_have_socket_addresses, 0, PROFILES);
	tcase_add_loop_test(tc, hints_have_addresses_of_the_provider, 0, ROWS);
	tcase_add_loop_test(tc, addresses_without_room_for_ipv6_leave_it_out, 0, ROWS);
	tcase_add_loop_test(tc, endpoints_are_named_and_found_in_the_form_of_the_provider, 0, ROWS);
	tcase_add_loop_test(tc, arrays_of_addresses_are_inserted, 0, ROWS);
	tcase_add_loop_test(tc, endpoint_takes_the_port_of_its_info_or_name, 0, ROWS);
	tcase_add_loop_test(tc, domain_refuses_what_is_no_address_of_its_format, 0, ROWS);
	tcase_add_loop_test(tc, unknown_sources_are_named_in_the_form_of_the_provider, 2, 7);
	tcase_add_loop_test(tc, calls_with_names_are_those_of_the_provider, 0, PROFILES);
	tcase_add_loop_test(tc, types_of_address_vectors_are_those_of_the_provider, 0,
			    (int)MRF_ARRAY_SIZE(types));
	tcase_add_loop_test(tc, answers_have_the_types_of_address_vectors_of_the_provider, 0,
			    (int)MRF_ARRAY_SIZE(types));
	return tc;
}

UNIT_MAIN("profile_addr", tcase_profile_addr)
