/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/ep_name.h"
#include "ep/eps.h"

int mrf_ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	union mrf_addr own;
	size_t room, len;
	int ret = mrf_obj_check(&ep->obj, "fi_getname");

	if (ret)
		return ret;
	if (!addrlen || (!addr && *addrlen))
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4055,
				  "the address or its length is NULL");
	mrf_lock_take(&ep->setup);
	own = ep->addr;
	mrf_lock_release(&ep->setup);
	room = *addrlen;
	*addrlen = len = mrf_form_put(ep->domain->form, &own, addr, room);
	/* Not logged: applications ask with too little room to learn the length. */
	return room < len ? -FI_ETOOSMALL : 0;
}

/* --- fi_setname ----------------------------------------------------------------------- */

static bool names_any_host(const union mrf_addr *addr)
{
	static const uint8_t any[16];
	size_t len;
	const uint8_t *host = mrf_addr_host(&addr->sa, &len);

	return !memcmp(host, any, len);
}

/* Reads the address, and completes it with what it leaves open. */
static int take_addr(const struct mrf_ep *ep, const void *from, size_t len, union mrf_addr *addr)
{
	const struct mrf_form *form = ep->domain->form;
	char text[MRF_ADDR_TEXT], own[MRF_ADDR_TEXT];

	if (!mrf_form_take(form, from, len, addr) ||
	    addr->sa.sa_family != ep->domain->addr.sa.sa_family)
		return mrf_refuse(FI_EINVAL, FI_LOG_EP_CTRL, 4076,
				  "fi_setname: the address is NULL, too short or of another format "
				  "than the endpoint's, which has %zu bytes",
				  mrf_form_put(form, &ep->domain->addr, NULL, 0));
	if (!names_any_host(addr) && !mrf_addr_same_host(&addr->sa, &ep->domain->addr.sa))
		return mrf_refuse(FI_EADDRNOTAVAIL, FI_LOG_EP_CTRL, 4077,
				  "fi_setname: %s is not an address of the endpoint's domain: that "
				  "has %s",
				  mrf_addr_text(addr, text, sizeof(text)),
				  mrf_addr_text(&ep->domain->addr, own, sizeof(own)));
	return 0;
}

static int set_port_locked(struct mrf_ep *ep, uint16_t port)
{
	char text[MRF_ADDR_TEXT];
	union mrf_addr addr = ep->addr;
	int ret;

	mrf_lock_held(&ep->setup);
	if (ep->enabled)
		return mrf_refuse(
			FI_EOPBADSTATE, FI_LOG_EP_CTRL, 4078,
			"fi_setname: the endpoint is enabled, so its address may be known "
			"to peers and stays");
	/* It has a port from the start. */
	if (!port || port == mrf_addr_port(&ep->addr))
		return 0;
	mrf_addr_set_port(&addr, port);
	ret = mrf_eps_move(ep, &addr);
	return ret ? mrf_refuse(-ret, FI_LOG_EP_CTRL, 4060, "the endpoint cannot be bound to %s",
				mrf_addr_text(&addr, text, sizeof(text)))
		   : 0;
}

int mrf_ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct mrf_ep *ep = mrf_ep_of(fid);
	union mrf_addr to;
	int ret = mrf_obj_check(&ep->obj, "fi_setname");

	if (!ret)
		ret = take_addr(ep, addr, addrlen, &to);
	if (ret)
		return ret;
	mrf_lock_take(&ep->setup);
	ret = set_port_locked(ep, mrf_addr_port(&to));
	mrf_lock_release(&ep->setup);
	return ret;
}
