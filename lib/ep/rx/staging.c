/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/page.h"
#include "ep/rx/staging.h"
#include "mr/demand/backs.h"

#define PLACES (2 * MRF_PROTO_STAGES) /* in the agent's queue: for what comes, and what goes */

static struct mrf_eps *eps_of(const struct mrf_staging *staging)
{
	return mrf_eps_of(staging->passive->ep->agent);
}

/* --- those that nobody uses ---------------------------------------------------------------- */

void mrf_staging_touch(struct mrf_passive *passive)
{
	struct mrf_staging *staging = passive->staging;

	if (!staging)
		return;
	mrf_list_del(&staging->node);
	mrf_list_add_tail(&staging->node, &eps_of(staging)->stagings);
	staging->used = mrf_now_ms();
}

/*
 * Is the target to do something for the peer? Not if nothing can be told to the peer: its queue
 * pair is in error, or it takes in no answers.
 */
static bool is_busy(const struct mrf_staging *staging)
{
	const struct mrf_passive *passive = staging->passive;

	return passive->state == MRF_PASSIVE_UP && passive->first != passive->last &&
	       !staging->waits && (passive->away || mrf_passive_has_room(passive));
}

static struct mrf_staging *staging_at(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_staging, node);
}

/* NULL: there is none. */
static struct mrf_staging *least_used(const struct mrf_eps *eps)
{
	struct mrf_list *node = mrf_list_first(&eps->stagings);

	return node ? staging_at(node) : NULL;
}

static int64_t unused_for(const struct mrf_staging *staging)
{
	return mrf_now_ms() - staging->used;
}

static void give_up(struct mrf_staging *staging)
{
	struct mrf_passive *passive = staging->passive;

	mrf_info(FI_LOG_EP_CTRL,
		 "a peer that has not used device memory for %lld ms loses its connection",
		 (long long)unused_for(staging));
	mrf_passive_disconnect(passive);
	mrf_staging_leave(passive);
}

static void look_at_stagings(struct mrf_timer *timer)
{
	struct mrf_eps *eps = mrf_container_of(timer, struct mrf_eps, staging_look);
	struct mrf_staging *staging;

	while ((staging = least_used(eps)) && unused_for(staging) >= MRF_STAGING_MS) {
		if (is_busy(staging))
			mrf_staging_touch(staging->passive);
		else
			give_up(staging);
	}
	if (staging)
		mrf_timer_set(&eps->agent, timer, MRF_STAGING_MS - unused_for(staging));
}

/* --- room for one more ------------------------------------------------------------------------ */

static bool is_from(const struct mrf_staging *staging, const union mrf_addr *addr)
{
	return mrf_addr_same_host(&addr->sa, &staging->passive->addr.sa);
}

static unsigned count_from(const struct mrf_eps *eps, const union mrf_addr *addr)
{
	unsigned n = 0;

	mrf_list_each (node, &eps->stagings)
		n += is_from(staging_at(node), addr);
	return n;
}

/*
 * Takes one away that has been left alone for long enough, and with addr is of a peer there. False:
 * there is none.
 */
static bool make_room(struct mrf_eps *eps, const union mrf_addr *addr)
{
	mrf_list_each (node, &eps->stagings) {
		struct mrf_staging *staging = staging_at(node);

		if (unused_for(staging) < MRF_STAGING_GRACE_MS)
			return false;
		if (is_busy(staging) || (addr && !is_from(staging, addr)))
			continue;
		give_up(staging);
		return true;
	}
	return false;
}

static bool within_quota_of_stagings(struct mrf_eps *eps, const union mrf_addr *addr)
{
	char text[MRF_ADDR_TEXT];

	if (count_from(eps, addr) < MRF_STAGINGS_PER_ADDR || make_room(eps, addr))
		return true;
	mrf_warn(FI_LOG_EP_CTRL, 4170,
		 "%d peers at %s are using device memory, so another one there is refused",
		 MRF_STAGINGS_PER_ADDR, mrf_addr_text(addr, text, sizeof(text)));
	return false;
}

static bool is_room(struct mrf_eps *eps)
{
	if (eps->nstagings < MRF_STAGINGS || make_room(eps, NULL))
		return true;
	mrf_warn(FI_LOG_EP_CTRL, 4169,
		 "%d peers are using device memory, so another one is refused", MRF_STAGINGS);
	return false;
}

/* --- their lives --------------------------------------------------------------------------- */

#define PLACES_LEN (MRF_PROTO_STAGES * MRF_PROTO_STAGE)

static struct mrf_staging *staging_new(const struct mrf_ep *ep)
{
	const struct mrf_mr_space *space = &ep->domain->space;
	struct mrf_staging *staging = calloc(1, sizeof(*staging));
	void *memory;

	if (!staging)
		return NULL;
	if (posix_memalign(&memory, mrf_page_size(), 2 * PLACES_LEN))
		goto err_free;
	staging->memory = memory;
	staging->holds = 1;
	if (!mrf_room_reg(mrf_mr_port_pd(space, &ep->port), memory, 2 * PLACES_LEN,
			  (uintptr_t)memory, MRF_RIGHT_LOCAL_WRITE, &staging->mr))
		return staging;
	free(memory);

err_free:
	free(staging);
	return NULL;
}

static void staging_make(struct mrf_passive *passive)
{
	struct mrf_eps *eps = mrf_eps_of(passive->ep->agent);

	if (!within_quota_of_stagings(eps, &passive->addr) || !is_room(eps))
		return;
	passive->staging = staging_new(passive->ep);
	if (!passive->staging)
		return;
	passive->staging->passive = passive;
	mrf_list_init(&passive->staging->node);
	eps->nstagings++;
	eps->staging_look.over = look_at_stagings;
	if (!mrf_timer_runs(&eps->staging_look))
		mrf_timer_set(&eps->agent, &eps->staging_look, MRF_STAGING_MS);
}

bool mrf_staging_has(struct mrf_passive *passive)
{
	if (!passive->staging)
		staging_make(passive);
	mrf_staging_touch(passive);
	return passive->staging;
}

struct mrf_staging *mrf_staging_get(struct mrf_passive *passive)
{
	passive->staging->holds++;
	return passive->staging;
}

void mrf_staging_put(struct mrf_staging *staging)
{
	if (!staging || --staging->holds)
		return;
	if (!staging->kept)
		free(staging->memory);
	free(staging);
}

static void close_pair(struct mrf_staging *staging)
{
	if (!staging->pair)
		return;
	mrf_vpair_close(staging->pair);
	mrf_agent_cq_owe(staging->cq, PLACES);
	staging->pair = NULL;
}

void mrf_staging_leave(struct mrf_passive *passive)
{
	struct mrf_staging *staging = passive->staging;

	if (!staging)
		return;
	close_pair(staging);
	if (!mrf_vmr_drop(&staging->mr))
		staging->kept = true;
	mrf_list_del(&staging->node);
	eps_of(staging)->nstagings--;
	passive->staging = NULL;
	mrf_staging_put(staging);
}

/* --- the pair -------------------------------------------------------------------------------- */

static int post_place(struct mrf_staging *staging, unsigned i)
{
	struct mrf_sge sge = { .addr = (uintptr_t)mrf_staging_place(staging, true, i),
			       .len = MRF_PROTO_STAGE,
			       .lkey = staging->mr.lkey };
	uint64_t id = staging->passive->owner.id;

	return mrf_passive_own_error(
		mrf_vpair_recv(staging->pair, MRF_WR_ID(id, MRF_STAGING_IN), &sge, 1));
}

static int connect_pair(struct mrf_staging *staging, const struct mrf_vpair_name *other)
{
	unsigned i;
	int ret = 0;

	for (i = 0; !ret && i < MRF_PROTO_STAGES; i++)
		ret = post_place(staging, i);
	return ret ? ret : mrf_vpair_connect(staging->pair, staging->passive->vconn, other);
}

int mrf_staging_open(struct mrf_passive *passive, const struct mrf_vpair_name *other,
		     struct mrf_vpair_name *name)
{
	struct mrf_staging *staging = passive->staging;
	struct mrf_vpair_attr attr = {
		.pd = mrf_mr_port_pd(&passive->ep->domain->space, &passive->ep->port),
		.send_depth = MRF_PROTO_STAGES,
		.recv_depth = MRF_PROTO_STAGES,
		.send_sge = 1,
		.recv_sge = 1,
	};
	int ret = mrf_agent_cq_take(passive->ep->agent, PLACES, true, &staging->cq);

	if (ret)
		return ret;
	attr.send_cq = attr.recv_cq = staging->cq->vcq;
	ret = mrf_vpair_open(passive->vconn, &attr, &staging->pair);
	if (ret) {
		staging->pair = NULL;
		staging->cq->used -= PLACES;
		return ret;
	}
	*name = mrf_vpair_name(staging->pair);
	ret = connect_pair(staging, other);
	if (ret)
		close_pair(staging);
	return ret;
}

/*
 * The agent is woken while a request waits, or bytes are on their way: if they do not arrive, the
 * connection ends.
 */
static void listen_to(struct mrf_staging *staging)
{
	if (staging->waits || staging->posted != staging->sent)
		mrf_agent_cq_listen(staging->passive->ep->agent, staging->cq);
}

/* The request that waited for it has its turn again. */
static void wake_request(struct mrf_staging *staging)
{
	if (!staging->waits)
		return;
	staging->waits = false;
	staging->passive->away = false;
	mrf_passive_take_place(staging->passive);
}

void mrf_staging_completed(struct mrf_passive *passive, unsigned slot, const struct mrf_wc *wc)
{
	struct mrf_staging *staging = passive->staging;

	if (!staging || !staging->pair)
		return;
	if (slot == MRF_STAGING_IN)
		staging->len[staging->came++ % MRF_PROTO_STAGES] = wc->byte_len;
	else
		staging->sent++;
	wake_request(staging);
	listen_to(staging);
}

bool mrf_staging_ready(struct mrf_staging *staging, bool put)
{
	bool ready = put ? staging->came != staging->taken
			 : staging->given - staging->sent < MRF_PROTO_STAGES;

	staging->waits = !ready;
	listen_to(staging);
	return ready;
}

int mrf_staging_take(struct mrf_staging *staging)
{
	return staging->pair ? post_place(staging, staging->taken++) : -FI_ECONNABORTED;
}

int mrf_staging_give(struct mrf_staging *staging, uint64_t len)
{
	if (!staging->pair)
		return -FI_ECONNABORTED;
	staging->out_len[staging->given++ % MRF_PROTO_STAGES] = (uint32_t)len;
	return 0;
}

static int post_given(struct mrf_staging *staging)
{
	unsigned i = staging->posted;
	uint64_t id = MRF_WR_ID(staging->passive->owner.id, MRF_STAGING_OUT);
	struct mrf_sge sge = { .addr = (uintptr_t)mrf_staging_place(staging, false, i),
			       .len = staging->out_len[i % MRF_PROTO_STAGES],
			       .lkey = staging->mr.lkey };

	return mrf_passive_own_error(
		mrf_vpair_send(staging->pair, id, &sge, sge.len ? 1 : 0, false));
}

int mrf_staging_push(struct mrf_staging *staging)
{
	int ret;

	if (!mrf_staging_owes(staging))
		return 0;
	ret = post_given(staging);
	staging->posted += !ret;
	listen_to(staging);
	return ret;
}
