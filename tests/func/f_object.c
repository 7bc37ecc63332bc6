/* SPDX-License-Identifier: BSD-2-Clause */
/* Discovery on the real device, and the lives of the objects. */
#include <arpa/inet.h>
#include <unistd.h>
#include "harness.h"

static const struct fab_opt usual;

/* Closing a parent that is in use: refused, and the line names the class of the user. */
static void in_use(struct fid *parent, const char *user)
{
	log_mark();
	must_be(fi_close(parent), -FI_EBUSY);
	must(log_has(user), "the line about it does not name the %s", user);
}

CASE(domain_with_children_does_not_close)
{
	struct fi_cq_attr cqa = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_cntr_attr cna = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr ava = { .type = FI_AV_MAP };
	static char memory[4096];
	struct fid_mr *mr;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fab f;

	fab_open_domain(&f, e->mode, &usual);
	must_ok(fi_mr_reg(f.domain, memory, 4096, REMOTE_RW, 0, 1, 0, &mr, NULL));
	in_use(&f.domain->fid, "memory region");
	must_ok(fi_close(&mr->fid));
	must_ok(fi_cq_open(f.domain, &cqa, &cq, NULL));
	in_use(&f.domain->fid, "completion queue");
	must_ok(fi_close(&cq->fid));
	must_ok(fi_cntr_open(f.domain, &cna, &cntr, NULL));
	in_use(&f.domain->fid, "counter");
	must_ok(fi_close(&cntr->fid));
	must_ok(fi_av_open(f.domain, &ava, &av, NULL));
	in_use(&f.domain->fid, "address vector");
	must_ok(fi_close(&av->fid));
	fab_close(&f);
}

CASE(what_an_endpoint_uses_does_not_close)
{
	struct fab_opt opt = { .counters = true };
	struct fab f;

	fab_open(&f, e->mode, &opt);
	in_use(&f.cq->fid, "endpoint");
	in_use(&f.av->fid, "endpoint");
	in_use(&f.wrote->fid, "endpoint");
	in_use(&f.did_read->fid, "endpoint");
	fab_close(&f);
	fab_open(&f, e->mode, &usual);
	in_use(&f.domain->fid, "endpoint");
	fab_close(&f);
}

CASE(fabric_with_children_does_not_close)
{
	struct fi_eq_attr eqa = { .wait_obj = FI_WAIT_NONE };
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fab f;

	fab_open_domain(&f, e->mode, &usual);
	in_use(&f.fabric->fid, "domain");
	must_ok(fi_fabric(f.info->fabric_attr, &fabric, NULL));
	must_ok(fi_eq_open(fabric, &eqa, &eq, NULL));
	in_use(&fabric->fid, "event queue");
	must_ok(fi_close(&eq->fid));
	must_ok(fi_close(&fabric->fid));
	fab_close(&f);
}

/* An object whose close was refused goes on as before. */
CASE(refused_close_changes_nothing)
{
	struct peer *p = target(e);
	struct buf *b = buf(e, 4096, 1);
	struct region r;

	peer_alloc(p, 0, 8192, 2);
	r = peer_reg(p, 0, 5, 4096, REMOTE_RW, 3);
	access_ok(e, WRITE, b, 0, 100, &r, 0);
	in_use(&me(e)->domain->fid, "endpoint");
	in_use(&me(e)->cq->fid, "endpoint");
	in_use(&me(e)->av->fid, "endpoint");
	access_ok(e, WRITE, b, 100, 100, &r, 100);
	peer_same(p, 0);
}

CASE(endpoint_needs_its_queue_and_addresses)
{
	struct fi_av_attr ava = { .type = FI_AV_MAP };
	struct fid_ep *ep;
	struct fid_av *av;
	struct fab f;

	fab_open_domain(&f, e->mode, &usual);
	must_ok(fi_endpoint(f.domain, f.info, &ep, NULL));
	must_be(fi_enable(ep), -FI_ENOAV);
	must_ok(fi_av_open(f.domain, &ava, &av, NULL));
	must_ok(fi_ep_bind(ep, &av->fid, 0));
	must_be(fi_enable(ep), -FI_ENOCQ);
	must_be(fi_write(ep, &f, 0, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	must_ok(fi_close(&ep->fid));
	must_ok(fi_close(&av->fid));
	fab_close(&f);
}

CASE(objects_of_another_domain_are_not_bound)
{
	struct fid_ep *ep;
	struct fab f, g;
	int rc;

	fab_open(&f, e->mode, &usual);
	fab_open(&g, e->mode, &usual);
	must_ok(fi_endpoint(f.domain, f.info, &ep, NULL));
	rc = fi_ep_bind(ep, &g.cq->fid, FI_TRANSMIT | FI_RECV);
	must(rc == -FI_EDOMAIN || rc == -FI_EINVAL, "foreign CQ: %d", rc);
	rc = fi_ep_bind(ep, &g.av->fid, 0);
	must(rc == -FI_EDOMAIN || rc == -FI_EINVAL, "foreign AV: %d", rc);
	must_ok(fi_close(&ep->fid));
	fab_close(&g);
	fab_close(&f);
}

CASE(name_of_an_endpoint)
{
	char name[NAME_LEN];
	size_t len = 0;

	must_be(fi_getname(&me(e)->ep->fid, name, &len), -FI_ETOOSMALL);
	must(len == me(e)->name_len, "length %zu", len);
	must_ok(fi_getname(&me(e)->ep->fid, name, &len));
	must(!memcmp(name, me(e)->name, len), "another name");
}

IN_MODES(MODES_ONE)

CASE(info_tells_what_the_device_is)
{
	struct fi_info *info;

	must_ok(fab_info(e->mode, &usual, &info));
	must(!strcmp(info->fabric_attr->prov_name, provider()), "provider %s",
	     info->fabric_attr->prov_name);
	must(info->fabric_attr->name && strchr(info->fabric_attr->name, '/'), "fabric name");
	must(info->domain_attr->name && *info->domain_attr->name, "domain name");
	must(info->src_addr && info->src_addrlen == sizeof(struct sockaddr_in), "address");
	must(info->addr_format == FI_SOCKADDR_IN, "format %u", info->addr_format);
	must(info->ep_attr->type == FI_EP_RDM, "endpoint type");
	must(info->caps & FI_RMA, "caps 0x%llx", (unsigned long long)info->caps);
	must(info->domain_attr->mr_key_size == 8, "mr_key_size");
	fi_freeinfo(info);
}

/* Every entry of an unrestricted list opens, IPv6 ones as well. */
CASE(every_info_opens)
{
	struct fi_info *hints = hints_new(e->mode, &usual), *list, *i;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	int n = 0;

	hints->addr_format = FI_FORMAT_UNSPEC;
	must_ok(fi_getinfo(e->mode->api, NULL, NULL, 0, hints, &list));
	for (i = list; i; i = i->next, n++) {
		must_ok(fi_fabric(i->fabric_attr, &fabric, NULL));
		must_ok(fi_domain(fabric, i, &domain, NULL));
		must_ok(fi_endpoint(domain, i, &ep, NULL));
		must_ok(fi_close(&ep->fid));
		must_ok(fi_close(&domain->fid));
		must_ok(fi_close(&fabric->fid));
	}
	must(n >= 1, "an empty list");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* What fi_getinfo declines is said at this level, which is settled with the first line. */
__attribute__((constructor)) static void log_what_is_declined(void)
{
	setenv("FI_LOG_LEVEL", "info", 0);
}

CASE(source_selects_the_local_address)
{
	char text[INET_ADDRSTRLEN];
	struct fi_info *hints = hints_new(e->mode, &usual), *info, *again;
	struct sockaddr_in *sin;

	must_ok(fab_info(e->mode, &usual, &info));
	sin = info->src_addr;
	inet_ntop(AF_INET, &sin->sin_addr, text, sizeof(text));
	must_ok(fi_getinfo(e->mode->api, text, "4791", FI_SOURCE, hints, &again));
	sin = again->src_addr;
	must(ntohs(sin->sin_port) == 4791, "port %u", ntohs(sin->sin_port));
	fi_freeinfo(again);
	must_ok(fi_getinfo(e->mode->api, text, "4791", FI_NUMERICHOST, hints, &again));
	must(again->dest_addr && again->dest_addrlen, "no dest_addr");
	fi_freeinfo(again);
	log_mark();
	must_be(fi_getinfo(e->mode->api, "192.0.2.77", NULL, FI_SOURCE, hints, &again),
		-FI_ENODATA);
	must(log_has("192.0.2.77"), "the line about it does not name the address");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

CASE(service_of_the_source_is_the_port_of_the_endpoint)
{
	struct fi_info *hints = hints_new(e->mode, &usual), *info;
	char text[INET_ADDRSTRLEN];
	struct sockaddr_in *sin = (struct sockaddr_in *)me(e)->name;
	struct fi_cq_attr cqa = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr ava = { .type = FI_AV_MAP };
	struct sockaddr_in name;
	size_t len = sizeof(name);
	struct fab f = { .mode = e->mode };

	inet_ntop(AF_INET, &sin->sin_addr, text, sizeof(text));
	must_ok(fi_getinfo(e->mode->api, text, "17654", FI_SOURCE, hints, &info));
	f.info = info;
	must_ok(fi_fabric(info->fabric_attr, &f.fabric, NULL));
	must_ok(fi_domain(f.fabric, info, &f.domain, NULL));
	must_ok(fi_av_open(f.domain, &ava, &f.av, NULL));
	must_ok(fi_cq_open(f.domain, &cqa, &f.cq, NULL));
	must_ok(fi_endpoint(f.domain, info, &f.ep, NULL));
	must_ok(fi_ep_bind(f.ep, &f.av->fid, 0));
	must_ok(fi_ep_bind(f.ep, &f.cq->fid, FI_TRANSMIT | FI_RECV));
	must_ok(fi_enable(f.ep));
	must_ok(fi_getname(&f.ep->fid, &name, &len));
	must(ntohs(name.sin_port) == 17654, "port %u", ntohs(name.sin_port));
	fab_close(&f);
	fi_freeinfo(hints);
}

CASE(opening_and_closing_20_times_leaves_nothing)
{
	uint64_t pid = (uint64_t)getpid();
	struct fab f;
	int before, after;

	me(e); /* what stays open with the first domain of a process is open now */
	fab_open(&f, e->mode, &usual);
	fab_close(&f);
	before = kernel_objects(pid, "mr qp cq pd cm_id");
	for (int i = 0; i < 20; i++) {
		struct buf b;

		fab_open(&f, e->mode, &usual);
		fab_buf(&f, &b, 4096, 1);
		fab_buf_close(&b);
		fab_close(&f);
	}
	after = kernel_objects(pid, "mr qp cq pd cm_id");
	must(after <= before, "%d kernel objects before, %d after", before, after);
}
