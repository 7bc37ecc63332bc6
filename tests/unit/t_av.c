/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <limits.h>
#include <netdb.h>
#include "every.h"
#include "obj/av.h"
#include "obj/eq.h"
#include "fail_alloc.h"
#include "obj_fixture.h"

/* Host names without a name service: "hostN" is 10.0.0.N, others do not exist. */
int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);

static bool by_number(const char *node)
{
	return node[strspn(node, "0123456789.")] == '\0' || strchr(node, ':');
}

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	struct addrinfo numeric = *hints;
	char address[32];
	unsigned n;

	numeric.ai_flags |= AI_NUMERICHOST;
	if ((hints->ai_flags & AI_NUMERICHOST) || by_number(node))
		return __real_getaddrinfo(node, service, &numeric, list);
	if (sscanf(node, "host%u", &n) != 1)
		return EAI_NONAME;
	snprintf(address, sizeof(address), "10.0.0.%u", n);
	return __real_getaddrinfo(address, service, &numeric, list);
}

static struct parent parent;
static struct parent fabric;
static struct fid_av *av;
static struct fid_eq *eq;

static void open_av(enum fi_av_type type, uint32_t format, uint64_t flags)
{
	struct fi_av_attr attr = { .type = type, .flags = flags };

	parent_init(&parent, 0);
	ck_quiet(0, mrf_av_open(&parent.obj, format, &attr, &av, &parent));
}

static void close_av(void)
{
	ck_quiet(0, fi_close(&av->fid));
	parent_fini(&parent);
}

static void open_async_av(void)
{
	struct fi_eq_attr attr = { 0 };

	parent_init(&fabric, 0);
	ck_quiet(0, mrf_eq_open(&fabric.obj, &attr, &eq, NULL));
	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, FI_EVENT);
	ck_quiet(0, fi_av_bind(av, &eq->fid, 0));
}

static void close_async_av(void)
{
	close_av();
	ck_quiet(0, fi_close(&eq->fid));
	parent_fini(&fabric);
}

static struct mrf_av *inner(void)
{
	return mrf_av_from_fid(&av->fid);
}

static struct sockaddr_in in_nr(uint32_t n)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)(1 + n % 60000)),
				     .sin_addr.s_addr = htonl(0x0a000001 + n) };
}

/* Inserts one address and returns its fi_addr. */
static fi_addr_t add(uint32_t n)
{
	struct sockaddr_in in = in_nr(n);
	fi_addr_t name = FI_ADDR_NOTAVAIL;

	ck_assert_int_eq(fi_av_insert(av, &in, 1, &name, 0, NULL), 1);
	return name;
}

static void ck_entry(fi_addr_t name, const char *want)
{
	union mrf_addr addr;
	char text[MRF_ADDR_TEXT];

	ck_assert_int_eq(mrf_av_get(inner(), name, &addr), 0);
	ck_assert_str_eq(mrf_addr_text(&addr, text, sizeof(text)), want);
}

/*
 * --- opening -------------------------------------------------------------------------
 */

START_TEST(av_open_refuses_bad_attributes)
{
	struct fi_av_attr attr = { 0 };
	struct fid_av *none = NULL;

	parent_init(&parent, 0);
#define OPEN() mrf_av_open(&parent.obj, FI_SOCKADDR_IN, &attr, &none, NULL)
	ck_refused(FI_EINVAL, 2226, mrf_av_open(&parent.obj, FI_SOCKADDR_IN, NULL, &none, NULL));
	ck_refused(FI_EINVAL, 2226, mrf_av_open(&parent.obj, FI_SOCKADDR_IN, &attr, NULL, NULL));
	ck_refused(FI_EINVAL, 2231, mrf_av_open(&parent.obj, FI_SOCKADDR_IB, &attr, &none, NULL));
	attr.type = (enum fi_av_type)9;
	ck_refused(FI_EINVAL, 2227, OPEN());
	attr.type = FI_AV_MAP;
	attr.rx_ctx_bits = 1;
	ck_refused(FI_EINVAL, 2228, OPEN());
	attr.rx_ctx_bits = -1;
	ck_refused(FI_EINVAL, 2228, OPEN());
	attr.rx_ctx_bits = 0;
	attr.name = "shared";
	ck_refused(FI_ENOSYS, 2229, OPEN());
	attr.name = NULL;
	attr.flags = FI_READ;
	ck_refused(FI_ENOSYS, 2229, OPEN());
	attr.flags = FI_AV_USER_ID;
	ck_refused(FI_EBADFLAGS, 2230, OPEN());
	attr.flags = 0;
	ck_refused(FI_ENOMEM, 2232, failing_after(0, OPEN()));
	ck_assert_ptr_null(none);
#undef OPEN
	parent_fini(&parent);
}
END_TEST

START_TEST(av_open_tells_the_type_it_chose)
{
	struct fi_av_attr attr = {
		.type = FI_AV_UNSPEC, .flags = FI_SYMMETRIC, .count = SIZE_MAX, .ep_per_node = 4
	};

	parent_init(&parent, 0);
	ck_quiet(0, mrf_av_open(&parent.obj, FI_SOCKADDR_IN, &attr, &av, NULL));
	ck_assert_int_eq(attr.type, FI_AV_TABLE);
	ck_quiet(0, fi_close(&av->fid));
	attr.type = FI_AV_MAP;
	ck_quiet(0, mrf_av_open(&parent.obj, FI_SOCKADDR_IN, &attr, &av, NULL));
	ck_assert_int_eq(attr.type, FI_AV_MAP);
	close_av();
}
END_TEST

START_TEST(av_operation_tables_are_complete)
{
	struct fid other = { .fclass = FI_CLASS_CQ };
	struct fid_av_set *set;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	ck_assert_uint_eq(av->fid.ops->size, sizeof(struct fi_ops));
	ck_assert_uint_eq(av->ops->size, sizeof(struct fi_ops_av));
	ck_assert(av->fid.ops->close && av->fid.ops->bind && av->fid.ops->control &&
		  av->fid.ops->ops_open && av->fid.ops->tostr && av->fid.ops->ops_set);
	ck_assert(av->ops->insert && av->ops->insertsvc && av->ops->insertsym && av->ops->remove &&
		  av->ops->lookup && av->ops->straddr && av->ops->av_set);
	ck_assert_uint_eq(av->fid.fclass, FI_CLASS_AV);
	ck_assert_ptr_eq(av->fid.context, &parent);
	ck_assert_ptr_null(mrf_av_from_fid(NULL));
	ck_assert_ptr_null(mrf_av_from_fid(&other));
	ck_assert_ptr_eq(mrf_av_obj(inner())->parent.target, &parent.obj);
	ck_refused(FI_ENOSYS, 2221, av->ops->av_set(av, NULL, &set, NULL));
	ck_refused(FI_ENOSYS, 2003, fi_control(&av->fid, FI_ENABLE, NULL));
	close_av();
}
END_TEST

START_TEST(av_close_is_refused_while_an_endpoint_uses_it)
{
	struct fid ep = { .fclass = FI_CLASS_EP };
	struct mrf_hold hold;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	add(1);
	mrf_obj_hold(&hold, mrf_av_obj(inner()), &ep, NULL);
	ck_refused(FI_EBUSY, 2001, fi_close(&av->fid));
	mrf_obj_drop(&hold);
	close_av();
}
END_TEST

/*
 * --- inserting -----------------------------------------------------------------------
 */

START_TEST(av_insert_hands_out_indices_in_order)
{
	struct sockaddr_in in[3] = { in_nr(0), in_nr(1), in_nr(0) };
	fi_addr_t name[3];
	int type;

	for (type = FI_AV_MAP; type <= FI_AV_TABLE; type++) {
		open_av((enum fi_av_type)type, FI_SOCKADDR_IN, 0);
		ck_quiet(3, fi_av_insert(av, in, 3, name, 0, NULL));
		ck_assert_uint_eq(name[0], 0);
		ck_assert_uint_eq(name[1], 1);
		/* An address may be there twice. */
		ck_assert_uint_eq(name[2], 2);
		ck_assert_uint_eq(add(7), 3);
		ck_entry(0, "10.0.0.1:1");
		ck_entry(1, "10.0.0.2:2");
		ck_entry(2, "10.0.0.1:1");
		ck_entry(3, "10.0.0.8:8");
		close_av();
	}
}
END_TEST

START_TEST(av_insert_takes_ipv6)
{
	struct sockaddr_in6 in6[2] = { { .sin6_family = AF_INET6, .sin6_port = htons(1) },
				       { .sin6_family = AF_INET6, .sin6_port = htons(2) } };
	fi_addr_t name[2];

	inet_pton(AF_INET6, "fd00::1", &in6[0].sin6_addr);
	inet_pton(AF_INET6, "fd00::2", &in6[1].sin6_addr);
	open_av(FI_AV_MAP, FI_SOCKADDR_IN6, 0);
	ck_quiet(2, fi_av_insert(av, in6, 2, name, 0, NULL));
	ck_entry(name[0], "[fd00::1]:1");
	ck_entry(name[1], "[fd00::2]:2");
	ck_quiet(1, fi_av_insertsvc(av, "fd00::3", "3", name, 0, NULL));
	ck_entry(name[0], "[fd00::3]:3");
	ck_quiet(1, fi_av_insertsvc(av, "fi_sockaddr_in6://[fd00::4]:4", NULL, name, 0, NULL));
	ck_entry(name[0], "[fd00::4]:4");
	close_av();
}
END_TEST

START_TEST(av_insert_fails_bad_entries_one_by_one)
{
	struct sockaddr_in in[5] = { in_nr(0), in_nr(1), in_nr(2), in_nr(3), in_nr(4) };
	fi_addr_t name[5] = { 77, 77, 77, 77, 77 };
	int errs[5] = { 9, 9, 9, 9, 9 };
	struct unit_capture cap;
	int i, ret;

	in[1].sin_family = AF_INET6;
	in[2].sin_port = 0;
	in[3].sin_addr.s_addr = htonl(INADDR_ANY);
	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, 0);
	unit_capture(&cap);
	ret = fi_av_insert(av, in, 5, name, FI_SYNC_ERR | FI_MORE, errs);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 3);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E2206: address 1 ("));
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E2206: address 2 ("));
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E2206: address 3 ("));
	ck_assert_int_eq(ret, 2);
	for (i = 0; i < 5; i++) {
		bool bad = i >= 1 && i <= 3;

		ck_assert_int_eq(errs[i], bad ? FI_EINVAL : 0);
		if (bad)
			ck_assert_uint_eq(name[i], FI_ADDR_NOTAVAIL);
	}
	ck_assert_uint_eq(name[0], 0);
	ck_assert_uint_eq(name[4], 1);
	close_av();
}
END_TEST

START_TEST(av_insert_refuses_bad_arguments)
{
	struct sockaddr_in in = in_nr(0);
	fi_addr_t name = 77;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	ck_refused(FI_EINVAL, 2208, fi_av_insert(av, NULL, 1, &name, 0, NULL));
	ck_refused(FI_EBADFLAGS, 2200, fi_av_insert(av, &in, 1, &name, FI_READ, NULL));
	ck_refused(FI_EBADFLAGS, 2200, fi_av_insert(av, &in, 1, &name, FI_AV_USER_ID, NULL));
	ck_refused(FI_EINVAL, 2202, fi_av_insert(av, &in, 1, &name, FI_SYNC_ERR, NULL));
	ck_refused(FI_EINVAL, 2203, fi_av_insert(av, &in, 1, NULL, 0, NULL));
	ck_refused(FI_EINVAL, 2204, fi_av_insert(av, &in, (size_t)INT_MAX + 1, &name, 0, NULL));
	ck_assert_uint_eq(name, 77);
	ck_quiet(0, fi_av_insert(av, NULL, 0, NULL, 0, NULL));
	close_av();
}
END_TEST

START_TEST(av_table_may_be_filled_without_fi_addr)
{
	struct sockaddr_in in[2] = { in_nr(0), in_nr(1) };

	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, 0);
	ck_quiet(2, fi_av_insert(av, in, 2, NULL, 0, NULL));
	ck_entry(1, "10.0.0.2:2");
	close_av();
}
END_TEST

START_TEST(av_insert_without_memory_fails_that_entry)
{
	static struct sockaddr_in in[65];
	static fi_addr_t name[65];
	static int errs[65];
	struct unit_capture cap;
	uint32_t n;
	int ret;

	for (n = 0; n < 65; n++)
		in[n] = in_nr(n);
	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	/* The first 64 fit into one chunk. */
	unit_capture(&cap);
	ret = failing_after(1, fi_av_insert(av, in, 65, name, FI_SYNC_ERR, errs));
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E2207: address 64 ("));
	ck_assert_int_eq(ret, 64);
	ck_assert_int_eq(errs[63], 0);
	ck_assert_int_eq(errs[64], FI_ENOMEM);
	ck_assert_uint_eq(name[64], FI_ADDR_NOTAVAIL);
	ck_assert_uint_eq(add(64), 64);
	close_av();
}
END_TEST

START_TEST(av_holds_a_hundred_thousand_addresses)
{
	const uint32_t count = 100000 / every();
	union mrf_addr addr;
	uint64_t gen, last = 0;
	uint32_t n;

	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, 0);
	for (n = 0; n < count; n++)
		ck_assert_uint_eq(add(n), n);
	for (n = 0; n < count; n++) {
		ck_assert_int_eq(mrf_av_get(inner(), n, &addr), 0);
		ck_assert_uint_eq(ntohl(addr.in.sin_addr.s_addr), 0x0a000001 + n);
		gen = mrf_av_gen(inner(), n);
		ck_assert_uint_gt(gen, last);
		last = gen;
	}
	ck_assert_uint_eq(mrf_av_gen(inner(), count), 0);
	close_av();
}
END_TEST

/*
 * --- by name -------------------------------------------------------------------------
 */

START_TEST(av_insertsvc_resolves_node_and_service)
{
	fi_addr_t name;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	ck_quiet(1, fi_av_insertsvc(av, "10.1.1.1", "5000", &name, 0, NULL));
	ck_entry(name, "10.1.1.1:5000");
	ck_quiet(1, fi_av_insertsvc(av, "host7", "5001", &name, 0, NULL));
	ck_entry(name, "10.0.0.7:5001");
	ck_quiet(1, fi_av_insertsvc(av, "fi_sockaddr_in://10.99.1.1:4711", NULL, &name, 0, NULL));
	ck_entry(name, "10.99.1.1:4711");
	close_av();
}
END_TEST

static int logged; /* lines of the last insertsvc */

static int insertsvc(const char *node, const char *service, fi_addr_t *name, int *err)
{
	struct unit_capture cap;
	int ret;

	unit_capture(&cap);
	ret = fi_av_insertsvc(av, node, service, name, err ? FI_SYNC_ERR : 0, err);
	logged = (int)unit_lines(unit_captured(&cap));
	return ret;
}

START_TEST(av_insertsvc_that_does_not_resolve_inserts_nothing)
{
	fi_addr_t name = 77;
	int err = 0;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	ck_assert_int_eq(insertsvc("nowhere", "5000", &name, &err), 0);
	ck_assert_int_eq(err, FI_EADDRNOTAVAIL);
	ck_assert_uint_eq(name, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(logged, 1);
	name = 77;
	ck_assert_int_eq(insertsvc("10.1.1.1", "0", &name, &err), 0);
	ck_assert_int_eq(err, FI_EINVAL);
	ck_assert_uint_eq(name, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(logged, 1);
	ck_assert_int_eq(insertsvc("fd00::1", "5000", &name, NULL), 0);
	ck_assert_int_eq(logged, 1);
	close_av();
}
END_TEST

START_TEST(av_insert_by_service_takes_no_port_above_the_highest)
{
	static const char *const bad[] = { "70000", "65536", "4294967376", " 70000", "-1" };
	fi_addr_t name = 77;
	int err = 0;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	ck_assert_int_eq(insertsvc("10.1.1.1", bad[_i], &name, &err), 0);
	ck_assert_int_eq(err, FI_EADDRNOTAVAIL);
	ck_assert_uint_eq(name, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(logged, 1);
	ck_refused(0, 2211, fi_av_insertsym(av, "10.1.1.1", 1, bad[_i], 1, &name, 0, NULL));
	ck_assert_uint_eq(name, FI_ADDR_NOTAVAIL);
	ck_quiet(1, fi_av_insertsvc(av, "10.1.1.1", "65535", &name, 0, NULL));
	close_av();
}
END_TEST

START_TEST(av_insertsvc_refuses_bad_arguments)
{
	fi_addr_t name = 77;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	ck_refused(FI_EINVAL, 2209, fi_av_insertsvc(av, NULL, "1", &name, 0, NULL));
	ck_refused(FI_EINVAL, 2210, fi_av_insertsvc(av, "10.1.1.1", NULL, &name, 0, NULL));
	ck_refused(FI_EINVAL, 2210,
		   fi_av_insertsvc(av, "fi_sockaddr_in://10.1.1.1", NULL, &name, 0, NULL));
	ck_refused(FI_EINVAL, 2210,
		   fi_av_insertsvc(av, "fi_sockaddr_in://10.1.1.1:5x", NULL, &name, 0, NULL));
	ck_refused(FI_EBADFLAGS, 2200, fi_av_insertsvc(av, "10.1.1.1", "1", &name, FI_WRITE, NULL));
	ck_refused(FI_EINVAL, 2203, fi_av_insertsvc(av, "10.1.1.1", "1", NULL, 0, NULL));
	ck_assert_uint_eq(name, 77);
	close_av();
}
END_TEST

START_TEST(av_insertsym_inserts_all_services_of_a_node_before_the_next)
{
	fi_addr_t name[4];

	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, 0);
	ck_quiet(4, fi_av_insertsym(av, "10.1.1.255", 2, "5000", 2, name, 0, NULL));
	ck_entry(0, "10.1.1.255:5000");
	ck_entry(1, "10.1.1.255:5001");
	ck_entry(2, "10.1.2.0:5000");
	ck_entry(3, "10.1.2.0:5001");
	ck_assert_uint_eq(name[3], 3);
	close_av();
}
END_TEST

START_TEST(av_insertsym_counts_on_the_number_in_a_name)
{
	fi_addr_t name[4];

	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, 0);
	ck_quiet(2, fi_av_insertsym(av, "host09", 2, "5000", 1, name, 0, NULL));
	ck_entry(0, "10.0.0.9:5000");
	ck_entry(1, "10.0.0.10:5000");
	close_av();
}
END_TEST

START_TEST(av_insertsym_fails_what_lies_beyond_the_last_port_or_host)
{
	fi_addr_t name[4];
	int errs[4], ret;
	struct unit_capture cap;

	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, 0);
	unit_capture(&cap);
	ret = fi_av_insertsym(av, "10.1.1.1", 1, "65534", 4, name, FI_SYNC_ERR, errs);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 2);
	ck_assert_int_eq(ret, 2);
	ck_assert_int_eq(errs[1], 0);
	ck_assert_int_eq(errs[2], FI_EINVAL);
	ck_assert_uint_eq(name[3], FI_ADDR_NOTAVAIL);
	unit_capture(&cap);
	ret = fi_av_insertsym(av, "host1", 2, "700", 1, name, FI_SYNC_ERR, errs);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 0);
	ck_assert_int_eq(ret, 2);
	unit_capture(&cap);
	ret = fi_av_insertsym(av, "host255", 2, "700", 2, name, FI_SYNC_ERR, errs);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 2);
	ck_assert_int_eq(ret, 2);
	ck_assert_int_eq(errs[1], 0);
	ck_assert_int_eq(errs[2], FI_EADDRNOTAVAIL);
	ck_assert_int_eq(errs[3], FI_EADDRNOTAVAIL);
	close_av();
}
END_TEST

START_TEST(av_insertsym_refuses_bad_arguments)
{
	fi_addr_t name = 77;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	ck_refused(FI_EINVAL, 2213, fi_av_insertsym(av, NULL, 1, "1", 1, &name, 0, NULL));
	ck_refused(FI_EINVAL, 2213, fi_av_insertsym(av, "10.1.1.1", 1, NULL, 1, &name, 0, NULL));
	ck_refused(FI_EINVAL, 2214, fi_av_insertsym(av, "10.1.1.1", 0, "1", 1, &name, 0, NULL));
	ck_refused(FI_EINVAL, 2214, fi_av_insertsym(av, "10.1.1.1", 1, "1", 0, &name, 0, NULL));
	ck_refused(FI_EINVAL, 2214,
		   fi_av_insertsym(av, "10.1.1.1", SIZE_MAX, "1", 2, &name, 0, NULL));
	ck_refused(FI_EINVAL, 2204,
		   fi_av_insertsym(av, "10.1.1.1", 1u << 31, "1", 1, &name, 0, NULL));
	ck_refused(FI_EINVAL, 2215, fi_av_insertsym(av, "hostess", 2, "1", 1, &name, 0, NULL));
	ck_refused(FI_EINVAL, 2215,
		   fi_av_insertsym(av, "host1234567890", 2, "1", 1, &name, 0, NULL));
	ck_assert_uint_eq(name, 77);
	close_av();
}
END_TEST

/*
 * --- removing and asking -------------------------------------------------------------
 */

START_TEST(av_remove_ends_the_generation)
{
	union mrf_addr addr;
	fi_addr_t name;
	uint64_t gen;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	name = add(1);
	gen = mrf_av_gen(inner(), name);
	ck_assert_uint_ne(gen, 0);
	ck_quiet(0, fi_av_remove(av, &name, 1, 0));
	ck_assert_uint_eq(mrf_av_gen(inner(), name), 0);
	ck_assert_int_eq(mrf_av_get(inner(), name, &addr), -FI_EADDRNOTAVAIL);
	ck_assert_uint_eq(add(1), name);
	ck_assert_uint_gt(mrf_av_gen(inner(), name), gen);
	close_av();
}
END_TEST

START_TEST(av_map_uses_removed_indices_oldest_first)
{
	fi_addr_t gone[3] = { 3, 0, 2 };
	uint32_t n;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	for (n = 0; n < 5; n++)
		add(n);
	ck_quiet(0, fi_av_remove(av, gone, 3, 0));
	ck_assert_uint_eq(add(5), 3);
	ck_assert_uint_eq(add(6), 0);
	ck_quiet(0, fi_av_remove(av, &gone[0], 1, 0));
	ck_assert_uint_eq(add(7), 2);
	ck_assert_uint_eq(add(8), 3);
	ck_assert_uint_eq(add(9), 5);
	close_av();
}
END_TEST

START_TEST(av_table_uses_the_lowest_removed_index_first)
{
	fi_addr_t gone[3] = { 3, 0, 2 };
	uint32_t n;

	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, 0);
	for (n = 0; n < 5; n++)
		add(n);
	ck_quiet(0, fi_av_remove(av, gone, 3, 0));
	ck_assert_uint_eq(add(5), 0);
	ck_assert_uint_eq(add(6), 2);
	ck_assert_uint_eq(add(7), 3);
	ck_assert_uint_eq(add(8), 5);
	close_av();
}
END_TEST

START_TEST(av_remove_refuses_what_is_not_there_and_removes_the_rest)
{
	fi_addr_t gone[3] = { 0, 0, 1 }, far = 100000, none = FI_ADDR_NOTAVAIL;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	add(0);
	add(1);
	ck_refused(FI_EBADFLAGS, 2217, fi_av_remove(av, gone, 1, FI_MORE));
	ck_refused(FI_EINVAL, 2218, fi_av_remove(av, NULL, 1, 0));
	ck_refused(FI_EINVAL, 2216, fi_av_remove(av, &far, 1, 0));
	ck_refused(FI_EINVAL, 2216, fi_av_remove(av, &none, 1, 0));
	ck_refused(FI_EINVAL, 2216, fi_av_remove(av, gone, 3, 0));
	ck_assert_uint_eq(mrf_av_gen(inner(), 1), 0);
	ck_quiet(0, fi_av_remove(av, NULL, 0, 0));
	close_av();
}
END_TEST

START_TEST(av_lookup_copies_what_fits_and_tells_the_size)
{
	struct sockaddr_in in = in_nr(4);
	unsigned char buf[32];
	size_t len = sizeof(buf);
	fi_addr_t name;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	name = add(4);
	memset(buf, 0xaa, sizeof(buf));
	ck_quiet(0, fi_av_lookup(av, name, buf, &len));
	ck_assert_uint_eq(len, sizeof(in));
	ck_assert_mem_eq(buf, &in, sizeof(in));
	ck_assert_uint_eq(buf[16], 0xaa);
	len = 4;
	memset(buf, 0xaa, sizeof(buf));
	ck_quiet(0, fi_av_lookup(av, name, buf, &len));
	ck_assert_uint_eq(len, sizeof(in));
	ck_assert_mem_eq(buf, &in, 4);
	ck_assert_uint_eq(buf[4], 0xaa);
	len = 0;
	ck_quiet(0, fi_av_lookup(av, name, NULL, &len));
	ck_assert_uint_eq(len, sizeof(in));
	len = 7;
	ck_refused(FI_EINVAL, 2216, fi_av_lookup(av, name + 1, buf, &len));
	ck_assert_uint_eq(len, 7);
	ck_refused(FI_EINVAL, 2219, fi_av_lookup(av, name, NULL, &len));
	ck_refused(FI_EINVAL, 2219, fi_av_lookup(av, name, buf, NULL));
	close_av();
}
END_TEST

START_TEST(av_straddr_writes_fi_addr_str)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(4711) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(4711) };
	char buf[64];
	size_t len = sizeof(buf);

	inet_pton(AF_INET, "10.99.1.1", &in.sin_addr);
	inet_pton(AF_INET6, "fd00::1", &in6.sin6_addr);
	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	ck_assert_ptr_eq(fi_av_straddr(av, &in, buf, &len), buf);
	ck_assert_str_eq(buf, "fi_sockaddr_in://10.99.1.1:4711");
	ck_assert_uint_eq(len, strlen(buf) + 1);
	len = 6;
	ck_assert_ptr_eq(fi_av_straddr(av, &in, buf, &len), buf);
	ck_assert_str_eq(buf, "fi_so");
	ck_assert_uint_eq(len, sizeof("fi_sockaddr_in://10.99.1.1:4711"));
	ck_refused(0, 2220, fi_av_straddr(av, NULL, buf, &len));
	ck_refused(0, 2220, fi_av_straddr(av, &in, buf, NULL));
	close_av();
	open_av(FI_AV_MAP, FI_SOCKADDR_IN6, 0);
	len = sizeof(buf);
	ck_assert_ptr_eq(fi_av_straddr(av, &in6, buf, &len), buf);
	ck_assert_str_eq(buf, "fi_sockaddr_in6://[fd00::1]:4711");
	close_av();
}
END_TEST

/*
 * --- asynchronous --------------------------------------------------------------------
 */

START_TEST(av_async_needs_an_event_queue_first)
{
	struct sockaddr_in in = in_nr(0);
	fi_addr_t name = 77;
	int err;

	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, FI_EVENT);
	ck_refused(FI_ENOEQ, 2205, fi_av_insert(av, &in, 1, &name, 0, NULL));
	ck_refused(FI_ENOEQ, 2205, fi_av_insertsvc(av, "10.0.0.1", "1", &name, 0, NULL));
	ck_refused(FI_ENOEQ, 2205, fi_av_insertsym(av, "10.0.0.1", 1, "1", 1, &name, 0, NULL));
	ck_refused(FI_EBADFLAGS, 2201, fi_av_insert(av, &in, 1, &name, FI_SYNC_ERR, &err));
	ck_assert_uint_eq(name, 77);
	close_av();
}
END_TEST

START_TEST(av_bind_takes_one_event_queue_of_an_async_vector)
{
	open_async_av();
	ck_refused(FI_EINVAL, 2225, fi_av_bind(av, &eq->fid, 0));
	ck_refused(FI_EINVAL, 2222, fi_av_bind(av, &av->fid, 0));
	ck_refused(FI_EINVAL, 2222, fi_av_bind(av, NULL, 0));
	ck_refused(FI_EBADFLAGS, 2223, fi_av_bind(av, &eq->fid, FI_WRITE));
	ck_refused(FI_EBUSY, 2001, fi_close(&eq->fid));
	ck_quiet(0, fi_close(&av->fid));
	ck_quiet(0, mrf_obj_busy(&parent.obj));
	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, 0);
	ck_refused(FI_EINVAL, 2224, fi_av_bind(av, &eq->fid, 0));
	close_async_av();
}
END_TEST

START_TEST(av_async_reports_each_failure_and_then_the_count)
{
	struct sockaddr_in in[3] = { in_nr(0), in_nr(1), in_nr(2) };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	struct unit_capture cap;
	fi_addr_t name[3] = { 77, 77, 77 };
	uint32_t event = 0;
	int ret, i;

	in[0].sin_port = in[2].sin_port = 0;
	open_async_av();
	unit_capture(&cap);
	ret = fi_av_insert(av, in, 3, name, 0, &parent);
	unit_captured(&cap);
	ck_assert_int_eq(ret, 0);
	for (i = 0; i < 2; i++) {
		ck_quiet(-FI_EAVAIL, fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
		err = (struct fi_eq_err_entry){ 0 };
		ck_quiet(sizeof(err), fi_eq_readerr(eq, &err, 0));
		ck_assert_ptr_eq(err.fid, &av->fid);
		ck_assert_ptr_eq(err.context, &parent);
		ck_assert_uint_eq(err.data, i ? 2 : 0);
		ck_assert_int_eq(err.err, FI_EINVAL);
		ck_assert_int_eq(err.prov_errno, 2206);
		ck_assert_ptr_nonnull(strstr(err.err_data, "port 0"));
	}
	ck_quiet(sizeof(entry), fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	ck_assert_uint_eq(event, FI_AV_COMPLETE);
	ck_assert_ptr_eq(entry.fid, &av->fid);
	ck_assert_ptr_eq(entry.context, &parent);
	ck_assert_uint_eq(entry.data, 1);
	ck_assert_uint_eq(name[0], FI_ADDR_NOTAVAIL);
	ck_assert_uint_eq(name[1], 0);
	ck_assert_uint_eq(name[2], FI_ADDR_NOTAVAIL);
	ck_quiet(-FI_EAGAIN, fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
	close_async_av();
}
END_TEST

START_TEST(av_async_says_when_it_cannot_report)
{
	struct sockaddr_in in = in_nr(0);
	fi_addr_t name;

	open_async_av();
	ck_quiet(0, fi_av_insert(av, &in, 1, &name, 0, NULL));
	ck_refused(FI_ENOMEM, 2060, failing_after(0, fi_av_insert(av, &in, 1, &name, 0, NULL)));
	close_async_av();
}
END_TEST

/*
 * --- threads -------------------------------------------------------------------------
 */

enum { ROUNDS = 20000, NAMES = 8 };

static atomic_bool reading;

/* An entry is either gone or whole: host and port of one insertion belong together. */
static void *read_names(void *arg)
{
	atomic_long *seen = arg; /* -1: it was half */
	union mrf_addr addr;
	uint32_t n;
	fi_addr_t i;

	while (atomic_load(&reading)) {
		for (i = 0; i < NAMES; i++) {
			if (mrf_av_get(inner(), i, &addr))
				continue;
			n = ntohl(addr.in.sin_addr.s_addr) - 0x0a000001;
			if (ntohs(addr.in.sin_port) != 1 + n % 60000)
				atomic_store(seen, -1);
			else if (atomic_load(seen) >= 0)
				atomic_fetch_add(seen, 1);
		}
	}
	return NULL;
}

START_TEST(av_readers_never_see_half_an_entry)
{
	pthread_t thread[2];
	atomic_long seen[2] = { 0, 0 };
	fi_addr_t name[NAMES];
	uint32_t n;
	int i;

	open_av(FI_AV_MAP, FI_SOCKADDR_IN, 0);
	for (n = 0; n < NAMES; n++)
		name[n] = add(n);
	atomic_store(&reading, true);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, read_names, &seen[i]), 0);
	for (; n < ROUNDS / every(); n++) {
		ck_assert_int_eq(fi_av_remove(av, &name[n % NAMES], 1, 0), 0);
		name[n % NAMES] = add(n);
	}
	while (!atomic_load(&seen[0]) || !atomic_load(&seen[1]))
		sleep_ms(1);
	atomic_store(&reading, false);
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_int_gt(atomic_load(&seen[i]), 0);
	}
	close_av();
}
END_TEST

static void *add_many(void *arg)
{
	uintptr_t n = (uintptr_t)arg * 1000, i;

	for (i = 0; i < 1000; i++) {
		struct sockaddr_in in = in_nr((uint32_t)(n + i));

		if (fi_av_insert(av, &in, 1, NULL, 0, NULL) != 1)
			return (void *)1;
	}
	return NULL;
}

START_TEST(av_threads_insert_side_by_side)
{
	static bool found[4000];
	pthread_t thread[4];
	union mrf_addr addr;
	uintptr_t t;
	fi_addr_t i;
	void *failed;

	memset(found, 0, sizeof(found));
	open_av(FI_AV_TABLE, FI_SOCKADDR_IN, 0);
	for (t = 0; t < 4; t++)
		ck_assert_int_eq(pthread_create(&thread[t], NULL, add_many, (void *)t), 0);
	for (t = 0; t < 4; t++) {
		pthread_join(thread[t], &failed);
		ck_assert_ptr_null(failed);
	}
	for (i = 0; i < 4000; i++) {
		ck_assert_int_eq(mrf_av_get(inner(), i, &addr), 0);
		found[ntohl(addr.in.sin_addr.s_addr) - 0x0a000001] = true;
	}
	for (i = 0; i < 4000; i++)
		ck_assert(found[i]);
	close_av();
}
END_TEST

static TCase *tcase_open(void)
{
	TCase *tc = tcase_create("open");

	tcase_add_test(tc, av_open_refuses_bad_attributes);
	tcase_add_test(tc, av_open_tells_the_type_it_chose);
	tcase_add_test(tc, av_operation_tables_are_complete);
	tcase_add_test(tc, av_close_is_refused_while_an_endpoint_uses_it);
	return tc;
}

static TCase *tcase_insert(void)
{
	TCase *tc = tcase_create("insert");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, av_insert_hands_out_indices_in_order);
	tcase_add_test(tc, av_insert_takes_ipv6);
	tcase_add_test(tc, av_insert_fails_bad_entries_one_by_one);
	tcase_add_test(tc, av_insert_refuses_bad_arguments);
	tcase_add_test(tc, av_table_may_be_filled_without_fi_addr);
	tcase_add_test(tc, av_insert_without_memory_fails_that_entry);
	tcase_add_test(tc, av_holds_a_hundred_thousand_addresses);
	return tc;
}

static TCase *tcase_names(void)
{
	TCase *tc = tcase_create("names");

	tcase_add_test(tc, av_insertsvc_resolves_node_and_service);
	tcase_add_test(tc, av_insertsvc_that_does_not_resolve_inserts_nothing);
	tcase_add_loop_test(tc, av_insert_by_service_takes_no_port_above_the_highest, 0, 5);
	tcase_add_test(tc, av_insertsvc_refuses_bad_arguments);
	tcase_add_test(tc, av_insertsym_inserts_all_services_of_a_node_before_the_next);
	tcase_add_test(tc, av_insertsym_counts_on_the_number_in_a_name);
	tcase_add_test(tc, av_insertsym_fails_what_lies_beyond_the_last_port_or_host);
	tcase_add_test(tc, av_insertsym_refuses_bad_arguments);
	return tc;
}

static TCase *tcase_remove(void)
{
	TCase *tc = tcase_create("remove");

	tcase_add_test(tc, av_remove_ends_the_generation);
	tcase_add_test(tc, av_map_uses_removed_indices_oldest_first);
	tcase_add_test(tc, av_table_uses_the_lowest_removed_index_first);
	tcase_add_test(tc, av_remove_refuses_what_is_not_there_and_removes_the_rest);
	tcase_add_test(tc, av_lookup_copies_what_fits_and_tells_the_size);
	tcase_add_test(tc, av_straddr_writes_fi_addr_str);
	return tc;
}

static TCase *tcase_async(void)
{
	TCase *tc = tcase_create("async");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, av_async_needs_an_event_queue_first);
	tcase_add_test(tc, av_bind_takes_one_event_queue_of_an_async_vector);
	tcase_add_test(tc, av_async_reports_each_failure_and_then_the_count);
	tcase_add_test(tc, av_async_says_when_it_cannot_report);
	tcase_add_test(tc, av_readers_never_see_half_an_entry);
	tcase_add_test(tc, av_threads_insert_side_by_side);
	return tc;
}

UNIT_MAIN("av", tcase_open, tcase_insert, tcase_names, tcase_remove, tcase_async)
