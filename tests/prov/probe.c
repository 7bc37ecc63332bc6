/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a provider answers to calls of fi_mr(3) and fi_av(3): one line "NAME OUTCOME" for each of them. It
 * knows libfabric only, and run-peers runs it over providers of libfabric and over libmrfab in the profile
 * of the same name: the lines should agree. Outcomes have no addresses and no sizes of a machine in them.
 *
 * The cases run in a process of their own, which goes on after a case that ended it or took too long.
 *
 * Usage: probe PROVIDER msg|rdm MR_MODE    the bits that the application offers, a number
 */
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define V1_4 FI_VERSION(1, 4)
#define V17 FI_VERSION(1, 17)
#define LEN 4096
#define KEY 0x123
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ALL_RIGHTS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | REMOTE)
#define SECONDS 20 /* of a case */

static const char *provider;
static enum fi_ep_type type;
static int offered;

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static uint8_t memory[2 * LEN];

/* --- outcomes --------------------------------------------------------------------------- */

static char outcome[256];

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
	size_t used = strlen(outcome);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(outcome + used, sizeof(outcome) - used, fmt, ap);
	va_end(ap);
}

static const char *error_name(int err)
{
	static const struct {
		int err;
		const char *name;
	} names[] = {
		{ FI_EINVAL, "FI_EINVAL" },
		{ FI_ENOSYS, "FI_ENOSYS" },
		{ FI_ENOKEY, "FI_ENOKEY" },
		{ FI_EKEYREJECTED, "FI_EKEYREJECTED" },
		{ FI_ENOMEM, "FI_ENOMEM" },
		{ FI_EFAULT, "FI_EFAULT" },
		{ FI_EBADFLAGS, "FI_EBADFLAGS" },
		{ FI_EOPNOTSUPP, "FI_EOPNOTSUPP" },
		{ FI_EBUSY, "FI_EBUSY" },
		{ FI_ETOOSMALL, "FI_ETOOSMALL" },
		{ FI_ENODATA, "FI_ENODATA" },
		{ FI_EAGAIN, "FI_EAGAIN" },
		{ FI_EACCES, "FI_EACCES" },
		{ FI_EPERM, "FI_EPERM" },
		{ FI_EOPBADSTATE, "FI_EOPBADSTATE" },
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].err == err)
			return names[i].name;
	}
	return NULL;
}

static void say_result(int ret)
{
	const char *name = error_name(-ret);

	if (!ret)
		say("0");
	else if (name)
		say("-%s", name);
	else
		say("%d", ret);
}

static void say_mr_mode(int mr_mode)
{
	static const char *const names[] = { "BASIC",	  "SCALABLE",  "LOCAL",	   "RAW",
					     "VIRT_ADDR", "ALLOCATED", "PROV_KEY", "MMU_NOTIFY",
					     "RMA_EVENT", "ENDPOINT",  "HMEM" };
	const char *separator = "";
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (mr_mode & 1 << i) {
			say("%s%s", separator, names[i]);
			separator = "+";
		}
	}
	if (!mr_mode)
		say("0");
}

static void must(const char *call, int ret)
{
	if (!ret)
		return;
	say("%s: ", call);
	say_result(ret);
	printf("! %s\n", outcome);
	fflush(stdout);
	_exit(1);
}

/* --- a domain --------------------------------------------------------------------------- */

static struct fi_info *make_hints(int mr_mode)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		must("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
	hints->ep_attr->type = type;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->domain_attr->mr_mode = mr_mode;
	return hints;
}

static int get(uint32_t version, struct fi_info *hints, struct fi_info **answer)
{
	int ret = fi_getinfo(version, NULL, NULL, 0, hints, answer);

	fi_freeinfo(hints);
	return ret;
}

/* Regions count writes only if the provider has that, and is asked for it. */
static void find_info(void)
{
	struct fi_info *hints = make_hints(offered);

	hints->caps |= FI_RMA_EVENT;
	if (get(V17, hints, &info))
		must("fi_getinfo", get(V17, make_hints(offered), &info));
}

static void open_domain(void)
{
	find_info();
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
}

/* --- fi_getinfo -------------------------------------------------------------------------- */

static void say_answer(uint32_t version, struct fi_info *hints)
{
	struct fi_info *answer;
	int ret = get(version, hints, &answer);

	if (ret) {
		say_result(ret);
		return;
	}
	say_mr_mode(answer->domain_attr->mr_mode);
	if (answer->mode & FI_LOCAL_MR)
		say(", FI_LOCAL_MR");
	if (!(answer->caps & (FI_REMOTE_READ | FI_REMOTE_WRITE)))
		say(", no target");
	fi_freeinfo(answer);
}

/* As an application that registers local buffers, or one that does not. */
static void say_mode(uint32_t version, int mr_mode, uint64_t mode)
{
	struct fi_info *hints = make_hints(mr_mode);

	hints->mode |= mode;
	hints->caps |= FI_READ | FI_WRITE | REMOTE;
	say_answer(version, hints);
}

static void info_unspec(void)
{
	say_mode(V17, 0, FI_LOCAL_MR);
}

static void info_basic(void)
{
	say_mode(V17, FI_MR_BASIC, FI_LOCAL_MR);
}

static void info_basic_without_local(void)
{
	say_mode(V17, FI_MR_BASIC, 0);
}

static void info_scalable(void)
{
	say_mode(V17, FI_MR_SCALABLE, FI_LOCAL_MR);
}

static void info_basic_and_local(void)
{
	say_mode(V17, FI_MR_BASIC | FI_MR_LOCAL, FI_LOCAL_MR);
}

static void info_local_only(void)
{
	say_mode(V17, FI_MR_LOCAL, 0);
}

static void info_offered(void)
{
	say_mode(V17, offered, 0);
}

static void info_offered_without_local(void)
{
	say_mode(V17, offered & ~FI_MR_LOCAL, 0);
}

static void info_old_unspec(void)
{
	say_mode(V1_4, 0, FI_LOCAL_MR);
}

static void info_old_basic(void)
{
	say_mode(V1_4, FI_MR_BASIC, FI_LOCAL_MR);
}

static void info_old_scalable(void)
{
	say_mode(V1_4, FI_MR_SCALABLE, FI_LOCAL_MR);
}

static void info_old_bits(void)
{
	say_mode(V1_4, FI_MR_LOCAL | FI_MR_VIRT_ADDR, FI_LOCAL_MR);
}

static void info_initiator(void)
{
	struct fi_info *hints = make_hints(FI_MR_LOCAL);

	hints->caps |= FI_READ | FI_WRITE;
	say_answer(V17, hints);
}

/* A message endpoint needs nothing for its peers; what is offered comes back all the same. */
static void info_messages(void)
{
	struct fi_info *hints = make_hints(offered);

	hints->caps = FI_MSG;
	say_answer(V17, hints);
}

static void info_mr_iov_limit(void)
{
	say("%zu", info->domain_attr->mr_iov_limit);
}

static void info_mr_key_size(void)
{
	say("%zu", info->domain_attr->mr_key_size);
}

static void info_mr_iov_limit_too_great(void)
{
	struct fi_info *hints = make_hints(offered);

	hints->domain_attr->mr_iov_limit = info->domain_attr->mr_iov_limit + 1;
	say_answer(V17, hints);
}

static void info_mr_cnt(void)
{
	say("%zu", info->domain_attr->mr_cnt);
}

static void info_mr_cnt_of_one(void)
{
	struct fi_info *hints = make_hints(offered);

	hints->domain_attr->mr_cnt = 1;
	say_answer(V17, hints);
}

static void info_mr_cnt_too_great(void)
{
	struct fi_info *hints = make_hints(offered);

	hints->domain_attr->mr_cnt = SIZE_MAX;
	say_answer(V17, hints);
}

static void info_mr_key_size_too_great(void)
{
	struct fi_info *hints = make_hints(offered);

	hints->domain_attr->mr_key_size = 4000;
	say_answer(V17, hints);
}

/* Of the first answer, whose address is that of an interface. */
static void info_addr_format(void)
{
	switch (info->addr_format) {
	case FI_SOCKADDR_IN:
		say("FI_SOCKADDR_IN");
		break;
	case FI_SOCKADDR_IN6:
		say("FI_SOCKADDR_IN6");
		break;
	case FI_ADDR_STR:
		say("FI_ADDR_STR");
		break;
	default:
		say("%u", info->addr_format);
	}
}

static void say_format(uint32_t format)
{
	struct fi_info *hints = make_hints(offered);

	hints->addr_format = format;
	say_answer(V17, hints);
}

static void info_format_in(void)
{
	say_format(FI_SOCKADDR_IN);
}

static void info_format_str(void)
{
	say_format(FI_ADDR_STR);
}

static void info_format_efa(void)
{
	say_format(FI_ADDR_EFA);
}

static void say_atomics(uint64_t order)
{
	struct fi_info *hints = make_hints(offered);

	hints->caps |= FI_ATOMIC;
	hints->tx_attr->msg_order = order;
	say_answer(V17, hints);
}

static void info_atomics(void)
{
	say_atomics(0);
}

static void info_atomics_in_order(void)
{
	say_atomics(FI_ORDER_WAW);
}

static void say_av_type(enum fi_av_type av_type)
{
	static const char *const names[] = { "FI_AV_UNSPEC", "FI_AV_MAP", "FI_AV_TABLE" };

	say("%s", names[av_type]);
}

static void info_av_type(void)
{
	say_av_type(info->domain_attr->av_type);
}

static void info_atomics_unasked(void)
{
	struct fi_info *hints = make_hints(offered), *answer;

	hints->caps = 0;
	must("fi_getinfo", get(V17, hints, &answer));
	say("%s", answer->caps & FI_ATOMIC ? "yes" : "no");
	fi_freeinfo(answer);
}

/* --- registering -------------------------------------------------------------------------- */

static int reg(void *buf, size_t len, uint64_t access, uint64_t key, struct fid_mr **mr)
{
	*mr = NULL;
	return fi_mr_reg(domain, buf, len, access, 0, key, 0, mr, NULL);
}

static void say_key(struct fid_mr *mr, uint64_t requested)
{
	uint64_t key = fi_mr_key(mr);

	if (key == requested)
		say(", key as requested");
	else if (key == FI_KEY_NOTAVAIL)
		say(", FI_KEY_NOTAVAIL");
	else
		say(", another key");
}

static void close_mr(struct fid_mr *mr)
{
	int ret = mr ? fi_close(&mr->fid) : 0;

	if (ret) {
		say(", fi_close ");
		say_result(ret);
	}
}

/* The result, and of a region that there is, its key. */
static void say_reg(void *buf, size_t len, uint64_t access, uint64_t key)
{
	struct fid_mr *mr;
	int ret = reg(buf, len, access, key, &mr);

	say_result(ret);
	if (ret)
		return;
	say_key(mr, key);
	close_mr(mr);
}

static void reg_all_rights(void)
{
	say_reg(memory, LEN, ALL_RIGHTS, KEY);
}

static void reg_remote_read(void)
{
	say_reg(memory, LEN, FI_REMOTE_READ, KEY);
}

static void reg_key_of_40_bits(void)
{
	say_reg(memory, LEN, REMOTE, 1ull << 40);
}

static void reg_key_of_16_bits(void)
{
	say_reg(memory, LEN, REMOTE, 0xffff);
}

static void reg_key_of_all_bits(void)
{
	say_reg(memory, LEN, REMOTE, UINT64_MAX - 1);
}

/* FI_KEY_NOTAVAIL */
static void reg_key_that_is_none(void)
{
	say_reg(memory, LEN, REMOTE, UINT64_MAX);
}

static void reg_key_taken(void)
{
	struct fid_mr *one, *two;

	must("fi_mr_reg", reg(memory, LEN, REMOTE, KEY, &one));
	say_result(reg(memory + LEN, LEN, REMOTE, KEY, &two));
	close_mr(two);
	close_mr(one);
}

static void reg_key_again_after_close(void)
{
	struct fid_mr *mr;

	must("fi_mr_reg", reg(memory, LEN, REMOTE, KEY, &mr));
	must("fi_close", fi_close(&mr->fid));
	say_reg(memory, LEN, REMOTE, KEY);
}

static void reg_same_memory_twice(void)
{
	struct fid_mr *one, *two;

	must("fi_mr_reg", reg(memory, LEN, ALL_RIGHTS, KEY, &one));
	say_result(reg(memory, LEN, ALL_RIGHTS, KEY + 1, &two));
	if (two)
		say(", %s%s", two == one ? "the same region" : "another region",
		    fi_mr_key(two) == fi_mr_key(one) ? ", the same key" : "");
	close_mr(two);
	close_mr(one);
}

static void reg_of_no_bytes(void)
{
	say_reg(memory, 0, REMOTE, KEY);
}

static void reg_at_null(void)
{
	say_reg(NULL, LEN, REMOTE, KEY);
}

static void reg_without_rights(void)
{
	say_reg(memory, LEN, 0, KEY);
}

static void reg_for_sending(void)
{
	say_reg(memory, LEN, FI_SEND, KEY);
}

static void reg_with_an_unknown_right(void)
{
	say_reg(memory, LEN, REMOTE | 1ull << 40, KEY);
}

static void reg_with_an_offset(void)
{
	struct fid_mr *mr = NULL;

	say_result(fi_mr_reg(domain, memory, LEN, REMOTE, 0x100, KEY, 0, &mr, NULL));
	close_mr(mr);
}

static void reg_with_unknown_flags(void)
{
	struct fid_mr *mr = NULL;

	say_result(fi_mr_reg(domain, memory, LEN, REMOTE, 0, KEY, 1ull << 62, &mr, NULL));
	close_mr(mr);
}

/* Pages with this protection, or none at all. */
static void say_reg_pages(int protection, uint64_t access, bool unmapped)
{
	void *pages = mmap(NULL, LEN, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		must("mmap", -FI_ENOMEM);
	if (unmapped)
		munmap(pages, LEN);
	say_reg(pages, LEN, access, KEY);
	if (!unmapped)
		munmap(pages, LEN);
}

static void reg_of_unmapped_pages(void)
{
	say_reg_pages(PROT_READ | PROT_WRITE, REMOTE, true);
}

static void reg_of_pages_without_access(void)
{
	say_reg_pages(PROT_NONE, REMOTE, false);
}

static void reg_to_write_read_only_pages(void)
{
	say_reg_pages(PROT_READ, FI_REMOTE_WRITE, false);
}

static void reg_to_read_read_only_pages(void)
{
	say_reg_pages(PROT_READ, FI_REMOTE_READ, false);
}

static void reg_keeps_the_context(void)
{
	struct fid_mr *mr = NULL;
	int ret = fi_mr_reg(domain, memory, LEN, REMOTE, 0, KEY, 0, &mr, memory);

	must("fi_mr_reg", ret);
	say("%s", mr->fid.context == memory ? "yes" : "no");
	close_mr(mr);
}

static void reg_has_a_descriptor(void)
{
	struct fid_mr *mr;

	must("fi_mr_reg", reg(memory, LEN, ALL_RIGHTS, KEY, &mr));
	say("%s", fi_mr_desc(mr) ? "yes" : "no");
	close_mr(mr);
}

static void say_regv(size_t count)
{
	static struct iovec iov[70000];
	struct fid_mr *mr = NULL;
	size_t i;
	int ret;

	for (i = 0; i < count; i++)
		iov[i] = (struct iovec){ memory + 64 * (i % 128), 64 };
	ret = fi_mr_regv(domain, iov, count, REMOTE, 0, KEY, 0, &mr, NULL);
	say_result(ret);
	close_mr(mr);
}

static void regv_of_one(void)
{
	say_regv(1);
}

static void regv_of_none(void)
{
	say_regv(0);
}

static void regv_beyond_the_limit(void)
{
	say_regv(info->domain_attr->mr_iov_limit + 1);
}

static void say_regattr(const struct fi_mr_attr *attr)
{
	struct fid_mr *mr = NULL;

	say_result(fi_mr_regattr(domain, attr, 0, &mr));
	close_mr(mr);
}

static const struct iovec whole = { memory, LEN };

static void regattr_plain(void)
{
	say_regattr(&(struct fi_mr_attr){
		.mr_iov = &whole, .iov_count = 1, .access = REMOTE, .requested_key = KEY });
}

static void regattr_with_an_authorization_key(void)
{
	static uint8_t key[16];

	say_regattr(&(struct fi_mr_attr){ .mr_iov = &whole,
					  .iov_count = 1,
					  .access = REMOTE,
					  .requested_key = KEY,
					  .auth_key = key,
					  .auth_key_size = sizeof(key) });
}

static void regattr_of_device_memory(void)
{
	say_regattr(&(struct fi_mr_attr){ .mr_iov = &whole,
					  .iov_count = 1,
					  .access = REMOTE,
					  .requested_key = KEY,
					  .iface = FI_HMEM_CUDA });
}

/* --- regions ------------------------------------------------------------------------------ */

static struct fid_mr *region(void)
{
	struct fid_mr *mr;

	must("fi_mr_reg", reg(memory, LEN, ALL_RIGHTS, KEY, &mr));
	return mr;
}

static void raw_attr(void)
{
	struct fid_mr *mr = region();
	uint8_t raw[4096];
	size_t size = sizeof(raw);
	uint64_t base;

	say_result(fi_mr_raw_attr(mr, &base, raw, &size, 0));
	close_mr(mr);
}

static void raw_attr_without_room(void)
{
	struct fid_mr *mr = region();
	size_t size = 1;
	uint64_t base;
	uint8_t raw;

	say_result(fi_mr_raw_attr(mr, &base, &raw, &size, 0));
	close_mr(mr);
}

static void raw_key_is_mapped(void)
{
	struct fid_mr *mr = region();
	uint8_t raw[4096] = { 0 };
	size_t size = sizeof(raw);
	uint64_t base = 0, key = 0;

	if (fi_mr_raw_attr(mr, &base, raw, &size, 0))
		size = 8;
	say_result(fi_mr_map_raw(domain, base, raw, size, &key, 0));
	close_mr(mr);
}

static struct fid_cntr *open_cntr(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE };
	struct fid_cntr *cntr;
	int ret = fi_cntr_open(domain, &attr, &cntr, NULL);

	if (!ret)
		return cntr;
	say("fi_cntr_open ");
	say_result(ret);
	return NULL;
}

static void say_bind_cntr(uint64_t flags)
{
	struct fid_cntr *cntr = open_cntr();
	struct fid_mr *mr;

	if (!cntr)
		return;
	mr = region();
	say_result(fi_mr_bind(mr, &cntr->fid, flags));
	close_mr(mr);
	fi_close(&cntr->fid);
}

static void bind_counter(void)
{
	say_bind_cntr(FI_REMOTE_WRITE);
}

static void bind_counter_without_flags(void)
{
	say_bind_cntr(0);
}

static void bind_queue(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT, .size = 16 };
	struct fid_mr *mr = region();
	struct fid_cq *cq;

	must("fi_cq_open", fi_cq_open(domain, &attr, &cq, NULL));
	say_result(fi_mr_bind(mr, &cq->fid, FI_REMOTE_WRITE));
	close_mr(mr);
	fi_close(&cq->fid);
}

/* ofi_rxm cannot close an endpoint that was never enabled. */
static int enable_ep(struct fid_ep *ep)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .size = 16 };
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct fid_av *av;
	struct fid_cq *cq;

	must("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
	must("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
	must("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	return fi_enable(ep);
}

/* One that needs a connection is not opened: nobody asks for one. */
static void bind_endpoint(void)
{
	struct fid_mr *mr;
	struct fid_ep *ep;

	if (type == FI_EP_MSG) {
		say("not tried");
		return;
	}
	mr = region();
	must("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	must("fi_enable", enable_ep(ep));
	say_result(fi_mr_bind(mr, &ep->fid, 0));
	close_mr(mr);
}

/* Connected endpoints do without address vectors. */
static bool has_no_vectors(void)
{
	if (type == FI_EP_MSG)
		say("not tried");
	return type == FI_EP_MSG;
}

/* What becomes of one of this type. */
static void say_opened(struct fid_domain *in, enum fi_av_type av_type)
{
	struct fi_av_attr attr = { .type = av_type };
	struct fid_av *av;
	int ret = fi_av_open(in, &attr, &av, NULL);

	if (ret) {
		say_result(ret);
		return;
	}
	say_av_type(attr.type);
	fi_close(&av->fid);
}

static void av_map(void)
{
	if (!has_no_vectors())
		say_opened(domain, FI_AV_MAP);
}

/* In a domain for which fi_getinfo was asked for the other type. */
static void av_table_for_map(void)
{
	struct fi_info *hints, *answer;
	struct fid_domain *of_maps;

	if (has_no_vectors())
		return;
	hints = make_hints(offered);
	hints->domain_attr->av_type = FI_AV_MAP;
	must("fi_getinfo", get(V17, hints, &answer));
	must("fi_domain", fi_domain(fabric, answer, &of_maps, NULL));
	say_opened(of_maps, FI_AV_TABLE);
	fi_close(&of_maps->fid);
	fi_freeinfo(answer);
}

static struct fid_av *open_av(void)
{
	struct fi_av_attr attr = { .type = FI_AV_UNSPEC };
	struct fid_av *av;

	if (has_no_vectors())
		return NULL;
	must("fi_av_open", fi_av_open(domain, &attr, &av, NULL));
	return av;
}

static void av_insertsvc(void)
{
	struct fid_av *av = open_av();
	fi_addr_t addr;

	if (!av)
		return;
	say_result(fi_av_insertsvc(av, "127.0.0.1", "7000", &addr, 0, NULL));
	fi_close(&av->fid);
}

static void av_insertsym(void)
{
	struct fid_av *av = open_av();
	fi_addr_t addr;

	if (!av)
		return;
	say_result(fi_av_insertsym(av, "127.0.0.1", 1, "7000", 1, &addr, 0, NULL));
	fi_close(&av->fid);
}

static void enable(void)
{
	struct fid_mr *mr = region();

	say_result(fi_mr_enable(mr));
	close_mr(mr);
}

static void refresh(void)
{
	struct fid_mr *mr = region();

	say_result(fi_mr_refresh(mr, &whole, 1, 0));
	close_mr(mr);
}

static void close_a_bound_counter(void)
{
	struct fid_cntr *cntr = open_cntr();
	struct fid_mr *mr;
	int ret;

	if (!cntr)
		return;
	mr = region();
	ret = fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE);
	if (ret)
		say("not bound");
	else
		say_result(fi_close(&cntr->fid));
}

static void bind_domain_to_events(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_eq *eq;

	must("fi_eq_open", fi_eq_open(fabric, &attr, &eq, NULL));
	say_result(fi_domain_bind(domain, &eq->fid, FI_REG_MR));
}

static void close_a_busy_domain(void)
{
	(void)region();
	say_result(fi_close(&domain->fid));
}

/* --- running ------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "info_unspec", info_unspec },
	{ "info_basic", info_basic },
	{ "info_basic_without_local", info_basic_without_local },
	{ "info_scalable", info_scalable },
	{ "info_basic_and_local", info_basic_and_local },
	{ "info_local_only", info_local_only },
	{ "info_offered", info_offered },
	{ "info_offered_without_local", info_offered_without_local },
	{ "info_1.4_unspec", info_old_unspec },
	{ "info_1.4_basic", info_old_basic },
	{ "info_1.4_scalable", info_old_scalable },
	{ "info_1.4_bits", info_old_bits },
	{ "info_initiator", info_initiator },
	{ "info_messages", info_messages },
	{ "info_mr_iov_limit", info_mr_iov_limit },
	{ "info_mr_key_size", info_mr_key_size },
	{ "info_mr_iov_limit_too_great", info_mr_iov_limit_too_great },
	{ "info_mr_cnt", info_mr_cnt },
	{ "info_mr_cnt_of_one", info_mr_cnt_of_one },
	{ "info_mr_cnt_too_great", info_mr_cnt_too_great },
	{ "info_mr_key_size_too_great", info_mr_key_size_too_great },
	{ "info_addr_format", info_addr_format },
	{ "info_format_in", info_format_in },
	{ "info_format_str", info_format_str },
	{ "info_format_efa", info_format_efa },
	{ "info_av_type", info_av_type },
	{ "info_atomics", info_atomics },
	{ "info_atomics_in_order", info_atomics_in_order },
	{ "info_atomics_unasked", info_atomics_unasked },
	{ "reg_all_rights", reg_all_rights },
	{ "reg_remote_read", reg_remote_read },
	{ "reg_key_of_16_bits", reg_key_of_16_bits },
	{ "reg_key_of_40_bits", reg_key_of_40_bits },
	{ "reg_key_of_all_bits", reg_key_of_all_bits },
	{ "reg_key_that_is_none", reg_key_that_is_none },
	{ "reg_key_taken", reg_key_taken },
	{ "reg_key_again_after_close", reg_key_again_after_close },
	{ "reg_same_memory_twice", reg_same_memory_twice },
	{ "reg_of_no_bytes", reg_of_no_bytes },
	{ "reg_at_null", reg_at_null },
	{ "reg_without_rights", reg_without_rights },
	{ "reg_for_sending", reg_for_sending },
	{ "reg_with_an_unknown_right", reg_with_an_unknown_right },
	{ "reg_with_an_offset", reg_with_an_offset },
	{ "reg_with_unknown_flags", reg_with_unknown_flags },
	{ "reg_of_unmapped_pages", reg_of_unmapped_pages },
	{ "reg_of_pages_without_access", reg_of_pages_without_access },
	{ "reg_to_write_read_only_pages", reg_to_write_read_only_pages },
	{ "reg_to_read_read_only_pages", reg_to_read_read_only_pages },
	{ "reg_keeps_the_context", reg_keeps_the_context },
	{ "reg_has_a_descriptor", reg_has_a_descriptor },
	{ "regv_of_one", regv_of_one },
	{ "regv_of_none", regv_of_none },
	{ "regv_beyond_the_limit", regv_beyond_the_limit },
	{ "regattr_plain", regattr_plain },
	{ "regattr_with_an_authorization_key", regattr_with_an_authorization_key },
	{ "regattr_of_device_memory", regattr_of_device_memory },
	{ "raw_attr", raw_attr },
	{ "raw_attr_without_room", raw_attr_without_room },
	{ "raw_key_is_mapped", raw_key_is_mapped },
	{ "bind_counter", bind_counter },
	{ "bind_counter_without_flags", bind_counter_without_flags },
	{ "bind_queue", bind_queue },
	{ "bind_endpoint", bind_endpoint },
	{ "av_map", av_map },
	{ "av_table_for_map", av_table_for_map },
	{ "av_insertsvc", av_insertsvc },
	{ "av_insertsym", av_insertsym },
	{ "enable", enable },
	{ "refresh", refresh },
	{ "bind_domain_to_events", bind_domain_to_events },
	{ "close_a_bound_counter", close_a_bound_counter },
	{ "close_a_busy_domain", close_a_busy_domain },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))
/* The last three leave a domain behind that cannot be used any more: each has one of its own. */
#define SHARING (CASES - 3)

/* Those from the first on, as far as they can share a domain. */
static void run_cases(size_t first)
{
	size_t i = first;

	open_domain();
	do {
		printf("%s ", cases[i].name);
		fflush(stdout);
		outcome[0] = '\0';
		alarm(SECONDS);
		cases[i].run();
		printf("%s\n", outcome);
		fflush(stdout);
	} while (++i < SHARING);
	_exit(0);
}

/* What the process wrote is passed on; how many cases have begun. *whole: the last one has ended. */
static size_t take_lines(int from, bool *whole)
{
	FILE *lines = fdopen(from, "r");
	size_t begun = 0;
	char line[400];

	*whole = true;

	while (lines && fgets(line, sizeof(line), lines)) {
		fputs(line, stdout);
		*whole = strchr(line, '\n');
		begun++;
	}
	if (lines)
		fclose(lines);
	return begun;
}

/* Returns how many cases are done with. */
static size_t run_some(size_t first)
{
	size_t begun;
	int p[2], status;
	bool whole;
	pid_t pid;

	fflush(stdout);
	if (pipe(p) || (pid = fork()) < 0) {
		perror("probe");
		exit(2);
	}
	if (!pid) {
		dup2(p[1], STDOUT_FILENO);
		close(p[0]);
		close(p[1]);
		run_cases(first);
	}
	close(p[1]);
	begun = take_lines(p[0], &whole);
	waitpid(pid, &status, 0);
	/* Libraries below libfabric catch signals, to end in their own way. */
	if (!whole)
		puts(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "no end"
									: "the process dies");
	if (!begun) {
		fprintf(stderr, "probe: no domain\n");
		exit(2);
	}
	return begun;
}

int main(int argc, char **argv)
{
	size_t done = 0;

	if (argc != 4) {
		fprintf(stderr, "Usage: probe PROVIDER msg|rdm MR_MODE\n");
		return 2;
	}
	provider = argv[1];
	type = strcmp(argv[2], "msg") ? FI_EP_RDM : FI_EP_MSG;
	offered = (int)strtol(argv[3], NULL, 0);
	while (done < CASES)
		done += run_some(done);
	return 0;
}
