/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions that are created disabled: FI_MR_ENDPOINT, FI_RMA_EVENT, fi_mr_bind,
 * fi_mr_enable. */
#include <pthread.h>
#include "back_fixture.h"

static struct unit_capture cap;

/* Endpoints as far as regions know them. */
static struct endpoint {
	struct fid fid;
	struct mrf_obj obj;
	struct mrf_mr_port port;
} one, two;

static void describe(const struct fid *fid, char *buf, size_t len)
{
	snprintf(buf, len, "number %d", fid == &one.fid ? 1 : 2);
}

static void ep_open(struct endpoint *ep)
{
	ep->fid.fclass = FI_CLASS_EP;
	mrf_obj_init(&ep->obj, &ep->fid, describe);
	ck_assert_int_eq(mrf_mr_port_open(&env.space, &ep->port, &ep->obj, true, NULL, 0), 0);
}

static void ep_close(struct endpoint *ep)
{
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &ep->port), 0);
	mrf_mr_port_free(&ep->port);
	mrf_obj_fini(&ep->obj);
}

#define PLAIN (FI_MR_ALLOCATED | FI_MR_ENDPOINT)
static const uint64_t modes[] = { PLAIN, FI_MR_ENDPOINT, PLAIN | FI_MR_MMU_NOTIFY };

static void open_with(uint64_t mode, uint32_t api)
{
	back_open(mode);
	env.space.api_version = api;
	ep_open(&one);
	ep_open(&two);
}

static void open_mode(uint64_t mode)
{
	open_with(mode, FI_VERSION(1, 17));
}

static void close_all(void)
{
	ep_close(&one);
	ep_close(&two);
	back_close();
}

static enum mrf_mr_status reach_by(struct endpoint *ep, uint64_t key)
{
	struct mrf_mr_query ask = { .key = key, .len = 1, .port = &ep->port };

	mrf_mr_reach(&env.space, &ask, &lease, &view);
	return view.status;
}

static void must_refuse(int ret, int err, const char *code)
{
	const char *text = unit_captured(&cap);

	ck_assert_int_eq(ret, err);
	ck_assert_msg(strstr(text, code) != NULL, "%s not in %s", code, text);
	ck_assert_uint_eq(unit_lines(text), 1);
}

#define refused(call, err, code)              \
	do {                                  \
		unit_capture(&cap);           \
		must_refuse(call, err, code); \
	} while (0)

static void must_bind(struct fid_mr *mr, struct endpoint *ep)
{
	ck_assert_int_eq(fi_mr_bind(mr, &ep->fid, 0), 0);
}

static int enable(struct fid_mr *mr)
{
	int ret;

	library_enter();
	ret = fi_mr_enable(mr);
	library_leave();
	return ret;
}

START_TEST(a_region_of_an_endpoint_is_created_disabled)
{
	struct fid_mr *mr;
	unsigned calls;

	open_mode(modes[_i]);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert_ptr_null(fi_mr_desc(mr));
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_DISABLED);
	must_bind(mr, &one);
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_DISABLED);
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_uint_eq(fi_mr_key(mr), KEY);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_OK);
	ck_assert_int_eq(view.complete, _i == 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	/* Again does no harm. */
	calls = fake_verbs.calls[FAKE_REG_MR];
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], calls);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	ep_close(&one);
	env_must_close(mr);
	ck_assert_int_eq(reach_by(&two, KEY), MRF_MR_CLOSED);
	ep_open(&one);
	close_all();
}
END_TEST

START_TEST(a_region_answers_only_through_the_endpoints_it_is_bound_to)
{
	struct fid_mr *mr;

	open_mode(PLAIN);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	must_bind(mr, &one);
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_OK);
	ck_assert_int_eq(reach_by(&two, KEY), MRF_MR_NOT_BOUND);
	ck_assert_uint_eq(view.nseg, 0);
	ep_close(&one);
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_NOT_BOUND);
	env_must_close(mr);
	ep_open(&one);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	must_bind(mr, &one);
	must_bind(mr, &two);
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_OK);
	ck_assert_int_eq(reach_by(&two, KEY), MRF_MR_OK);
	ep_close(&one);
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_NOT_BOUND);
	ck_assert_int_eq(reach_by(&two, KEY), MRF_MR_OK);
	ep_close(&two);
	env_must_close(mr);
	ep_open(&one);
	ep_open(&two);
	close_all();
}
END_TEST

START_TEST(without_an_endpoint_a_region_cannot_be_enabled)
{
	struct fid_mr *mr;

	open_mode(modes[_i]);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	refused(enable(mr), -FI_EINVAL, "MRF-E3057");
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	must_bind(mr, &one);
	ep_close(&one);
	refused(enable(mr), -FI_EINVAL, "MRF-E3057");
	must_bind(mr, &two);
	ck_assert_int_eq(enable(mr), 0);
	ep_close(&two);
	env_must_close(mr);
	ep_open(&one);
	ep_open(&two);
	close_all();
}
END_TEST

START_TEST(wrong_bindings_are_refused)
{
	struct fid elsewhere = { .fclass = FI_CLASS_EP };
	struct fid_mr *mr;
	int ret;

	open_mode(PLAIN);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	refused(fi_mr_bind(mr, &one.fid, FI_REMOTE_WRITE), -FI_EBADFLAGS, "MRF-E3052");
	refused(fi_mr_bind(mr, &elsewhere, 0), -FI_EDOMAIN, "MRF-E3053");
	must_bind(mr, &one);
	refused(fi_mr_bind(mr, &one.fid, 0), -FI_EINVAL, "MRF-E3055");
	unit_capture(&cap);
	fail_alloc(1);
	library_enter();
	ret = fi_mr_bind(mr, &two.fid, 0);
	library_leave();
	fail_alloc(0);
	must_refuse(ret, -FI_ENOMEM, "MRF-E3022");
	ck_assert_int_eq(enable(mr), 0);
	refused(fi_mr_bind(mr, &two.fid, 0), -FI_EOPBADSTATE, "MRF-E3054");
	ck_assert_int_eq(reach_by(&two, KEY), MRF_MR_NOT_BOUND);
	ep_close(&one);
	env_must_close(mr);
	ep_open(&one);
	close_all();
}
END_TEST

START_TEST(before_api_2_3_the_endpoint_is_closed_first)
{
	struct fid_mr *mr;
	const char *text;

	open_with(modes[_i], FI_VERSION(2, 2));
	mr = env_must_reg(mem, PAGE, RW, KEY);
	must_bind(mr, &one);
	ck_assert_int_eq(enable(mr), 0);
	unit_capture(&cap);
	ck_assert_int_eq(fi_close(&mr->fid), -FI_EBUSY);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3063"));
	ck_assert_ptr_nonnull(strstr(text, "number 1"));
	/* It goes on as before. */
	ck_assert_int_ne(reach_by(&one, KEY), MRF_MR_CLOSED);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	ep_close(&one);
	env_must_close(mr);
	ep_open(&one);
	close_all();
}
END_TEST

START_TEST(from_api_2_3_the_region_is_closed_first)
{
	struct fid_mr *mr;
	const char *text;
	char name[96];

	open_with(modes[_i], FI_VERSION(2, 3));
	mr = env_must_reg(mem, PAGE, RW, KEY);
	must_bind(mr, &one);
	must_bind(mr, &two);
	ck_assert_int_eq(enable(mr), 0);
	unit_capture(&cap);
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &one.port), -FI_EBUSY);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3230"));
	snprintf(name, sizeof(name), "region %p (%p, 4096 bytes, key 0x7)", (void *)mr,
		 (void *)mem);
	ck_assert_msg(strstr(text, name) != NULL, "%s not in %s", name, text);
	/* Both go on as before. */
	ck_assert_int_ne(reach_by(&one, KEY), MRF_MR_NOT_BOUND);
	env_must_close(mr);
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_CLOSED);
	/* The slot is used again, by a region that is bound to nothing. */
	mr = env_must_reg(mem, PAGE, RW, KEY);
	refused(enable(mr), -FI_EINVAL, "MRF-E3057");
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(a_disabled_region_reserves_its_key_and_can_be_closed)
{
	struct fid_mr *mr, *other = NULL;

	open_mode(modes[_i]);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	refused(env_reg(mem + PAGE, PAGE, RW, KEY, &other), -FI_ENOKEY, "MRF-E3021");
	env_must_close(mr);
	mr = env_must_reg(mem + PAGE, PAGE, RW, KEY);
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(memory_is_checked_at_registration_and_again_when_it_is_pinned)
{
	struct fid_mr *mr = NULL;
	const char *text;

	open_mode(PLAIN);
	munmap(mem + PAGE, PAGE);
	unit_capture(&cap);
	ck_assert_int_eq(env_reg(mem, 3 * PAGE, RW, KEY, &mr), -FI_EFAULT);
	text = unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(text, "bytes 4096..8191 of it are not mapped"));
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_uint_eq(fake_verbs.calls[FAKE_DEREG_MR], 1);
	must_bind(mr, &one);
	munmap(mem, PAGE);
	refused(enable(mr), -FI_EFAULT, "MRF-E3015");
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert_ptr_null(fi_mr_desc(mr));
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_DISABLED);
	ck_assert_ptr_eq(mmap(mem, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem);
	refused((fake_verbs_fail(FAKE_REG_MR, 1, ENOMEM), enable(mr)), -FI_ENOMEM, "MRF-E3018");
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_OK);
	ep_close(&one);
	env_must_close(mr);
	ep_open(&one);
	close_all();
}
END_TEST

START_TEST(several_segments_are_pinned_when_they_are_enabled)
{
	struct mrf_desc desc;
	struct iovec iov[3];
	struct fid_mr *mr;
	unsigned i;

	open_mode(PLAIN);
	for (i = 0; i < 3; i++)
		iov[i] = (struct iovec){ mem + 2 * i * PAGE + i, 100 };
	mr = env_must_regv(iov, 3, RW | FI_READ, KEY);
	must_bind(mr, &one);
	fake_verbs_fail(FAKE_REG_MR, 2, ENOMEM);
	refused(enable(mr), -FI_ENOMEM, "MRF-E3018");
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ck_assert_int_eq(enable(mr), 0);
	/* For this process, and for peers. */
	ck_assert_uint_eq(fake_verbs.live_mrs, 6);
	ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_OK);
	ck_assert_uint_eq(view.nseg, 3);
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &desc));
	for (i = 0; i < 3; i++) {
		ck_assert_ptr_eq(fake_verbs_find(view.seg[i].rkey)->mr.addr, iov[i].iov_base);
		ck_assert_uint_ne(desc.segs[i].lkey, fake_verbs_find(view.seg[i].rkey)->mr.lkey);
	}
	ep_close(&one);
	env_must_close(mr);
	ep_open(&one);
	close_all();
}
END_TEST

static pthread_barrier_t together;

static void *enable_it(void *mr)
{
	pthread_barrier_wait(&together);
	return (void *)(intptr_t)fi_mr_enable(mr);
}

/* Whoever comes second finds it enabled; what it pinned in vain is let go. */
START_TEST(several_threads_may_enable_a_region_at_once)
{
	struct iovec iov[2];
	pthread_t thread[2];
	struct fid_mr *mr;
	unsigned round, i;
	void *ret;

	open_mode(PLAIN);
	iov[0] = (struct iovec){ mem, PAGE };
	iov[1] = (struct iovec){ mem + 2 * PAGE, PAGE };
	for (round = 0; round < 50; round++) {
		mr = env_must_regv(iov, 1 + round % 2, RW | FI_READ, KEY);
		must_bind(mr, &one);
		pthread_barrier_init(&together, NULL, 2);
		for (i = 0; i < 2; i++)
			pthread_create(&thread[i], NULL, enable_it, mr);
		for (i = 0; i < 2; i++) {
			pthread_join(thread[i], &ret);
			ck_assert_int_eq((int)(intptr_t)ret, 0);
		}
		pthread_barrier_destroy(&together);
		ck_assert_uint_eq(fi_mr_key(mr), KEY);
		ck_assert_int_eq(reach_by(&one, KEY), MRF_MR_OK);
		/* Per segment the process's own and the endpoint's. */
		ck_assert_uint_eq(fake_verbs.live_mrs, 2 * (1 + round % 2));
		ep_close(&one);
		env_must_close(mr);
		ep_open(&one);
	}
	close_all();
}
END_TEST

START_TEST(provider_keys_of_regions_enabled_later_say_nothing)
{
	struct mrf_key_direct direct;
	struct fid_mr *mr;

	open_mode(PLAIN | FI_MR_PROV_KEY | (_i ? FI_MR_VIRT_ADDR : 0));
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	must_bind(mr, &one);
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_uint_ne(fi_mr_key(mr), 0);
	ck_assert_uint_ne(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	/* Else it could be used without asking an endpoint that it is bound to. */
	ck_assert(!mrf_key_unpack(env.space.mode, fi_mr_key(mr), &direct));
	ep_close(&one);
	env_must_close(mr);
	ep_open(&one);
	close_all();
}
END_TEST

START_TEST(raw_keys_stay_hidden_when_a_region_is_enabled)
{
	struct fid_mr *mr;

	open_mode(PLAIN | FI_MR_RAW | (_i ? FI_MR_PROV_KEY : 0));
	mr = env_must_reg(mem, PAGE, RW, KEY);
	must_bind(mr, &one);
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert_int_eq(reach_by(&one, mrf_mr_from_fid(&mr->fid)->key), MRF_MR_OK);
	ep_close(&one);
	env_must_close(mr);
	ep_open(&one);
	close_all();
}
END_TEST

/* --- FI_MR_RMA_EVENT -------------------------------------------------------------- */

static int reg_event(struct fid_mr **mr)
{
	return fi_mr_reg(&env.domain, mem, PAGE, RW, 0, KEY, FI_RMA_EVENT, mr, NULL);
}

START_TEST(only_regions_that_say_rma_event_are_created_disabled)
{
	struct fid_mr *mr = NULL;

	back_open(FI_MR_RMA_EVENT | (_i ? FI_MR_ALLOCATED : 0));
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_OK);
	ck_assert_int_eq(enable(mr), 0);
	env_must_close(mr);
	ck_assert_int_eq(reg_event(&mr), 0);
	ck_assert_ptr_null(fi_mr_desc(mr));
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_DISABLED);
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_uint_eq(fi_mr_key(mr), KEY);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_OK);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(rma_event_alone_leaves_a_region_enabled)
{
	struct fid_mr *mr = NULL;

	back_open(_i ? 0 : FI_MR_ALLOCATED);
	ck_assert_int_eq(reg_event(&mr), 0);
	ck_assert_uint_eq(fi_mr_key(mr), KEY);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_OK);
	env_must_close(mr);
	back_close();
}
END_TEST

START_TEST(a_disabled_region_is_not_refreshed)
{
	struct fid_mr *mr = NULL;

	back_open(FI_MR_RMA_EVENT | FI_MR_MMU_NOTIFY);
	ck_assert_int_eq(reg_event(&mr), 0);
	refused(fi_mr_refresh(mr, NULL, 0, 0), -FI_EOPBADSTATE, "MRF-E3062");
	ck_assert_int_eq(enable(mr), 0);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_NOT_REFRESHED);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	must_reach(KEY, 0, 1);
	env_must_close(mr);
	back_close();
}
END_TEST

/* Between creating and enabling it is a change that has to be told. */
START_TEST(memory_counts_as_it_is_when_a_region_is_created_not_when_it_is_enabled)
{
	struct fid_mr *mr = NULL;

	back_open(FI_MR_RMA_EVENT | FI_MR_MMU_NOTIFY);
	mem[0] = 1;
	ck_assert_int_eq(fi_mr_reg(&env.domain, mem, 2 * PAGE, RW, 0, KEY, FI_RMA_EVENT, &mr, NULL),
			 0);
	mem[PAGE] = 1;
	ck_assert_int_eq(enable(mr), 0);
	must_reach(KEY, 0, PAGE);
	ck_assert_int_eq(reach(KEY, PAGE, 1), MRF_MR_NOT_REFRESHED);
	env_must_close(mr);
	back_close();
}
END_TEST

/* Eight modes in a process: starting one takes longer than the test. */
#define MODES_AT_A_TIME 8

/* What was registered and enabled as the mode says is reached. */
static void serves_a_region_in(uint64_t mode)
{
	uint64_t key;
	struct mrf_mr_query ask = { .len = PAGE, .port = &one.port };
	struct fid_mr *mr = NULL;

	open_mode(mode);
	ck_assert_int_eq(fi_mr_reg(&env.domain, mem, PAGE, RW | FI_READ, 0, KEY,
				   mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0, &mr, NULL),
			 0);
	if (mode & FI_MR_ENDPOINT)
		must_bind(mr, &one);
	ck_assert_int_eq(enable(mr), 0);
	if (mode & FI_MR_MMU_NOTIFY)
		ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	key = fi_mr_key(mr);
	ck_assert_int_eq(key == FI_KEY_NOTAVAIL, (mode & FI_MR_RAW) != 0);
	if (mode & FI_MR_RAW)
		key = mrf_mr_from_fid(&mr->fid)->key;
	else if (!(mode & FI_MR_PROV_KEY))
		ck_assert_uint_eq(key, KEY);
	ask.key = key;
	ask.addr = mode & FI_MR_VIRT_ADDR ? (uintptr_t)mem : 0;
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	ck_assert_int_eq(view.status, MRF_MR_OK);
	ck_assert_uint_eq(reached(ask.addr), PAGE);
	ck_assert_ptr_eq(byte_at(ask.addr + 7), mem + 7);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	ep_close(&one);
	env_must_close(mr);
	ep_open(&one);
	close_all();
}

/* FI_MR_LOCAL is the first of eight bits, FI_MR_ENDPOINT the last. */
START_TEST(all_256_modes_serve_a_region)
{
	for (uint64_t i = 0; i < MODES_AT_A_TIME; i++)
		serves_a_region_in(((uint64_t)_i * MODES_AT_A_TIME + i) * FI_MR_LOCAL);
}
END_TEST

static TCase *endpoints(void)
{
	TCase *tc = tcase_create("endpoints");

	tcase_add_loop_test(tc, a_region_of_an_endpoint_is_created_disabled, 0, 3);
	tcase_add_test(tc, a_region_answers_only_through_the_endpoints_it_is_bound_to);
	tcase_add_loop_test(tc, without_an_endpoint_a_region_cannot_be_enabled, 0, 3);
	tcase_add_test(tc, wrong_bindings_are_refused);
	tcase_add_loop_test(tc, before_api_2_3_the_endpoint_is_closed_first, 0, 3);
	tcase_add_loop_test(tc, from_api_2_3_the_region_is_closed_first, 0, 3);
	tcase_add_loop_test(tc, a_disabled_region_reserves_its_key_and_can_be_closed, 0, 3);
	return tc;
}

static TCase *enabling(void)
{
	TCase *tc = tcase_create("enabling");

	tcase_add_test(tc, memory_is_checked_at_registration_and_again_when_it_is_pinned);
	tcase_add_test(tc, several_segments_are_pinned_when_they_are_enabled);
	tcase_add_test(tc, several_threads_may_enable_a_region_at_once);
	tcase_add_loop_test(tc, provider_keys_of_regions_enabled_later_say_nothing, 0, 2);
	tcase_add_loop_test(tc, raw_keys_stay_hidden_when_a_region_is_enabled, 0, 2);
	tcase_add_loop_test(tc, only_regions_that_say_rma_event_are_created_disabled, 0, 2);
	tcase_add_loop_test(tc, rma_event_alone_leaves_a_region_enabled, 0, 2);
	tcase_add_test(tc, a_disabled_region_is_not_refreshed);
	tcase_add_test(tc, memory_counts_as_it_is_when_a_region_is_created_not_when_it_is_enabled);
	tcase_add_loop_test(tc, all_256_modes_serve_a_region, 0, 256 / MODES_AT_A_TIME);
	return tc;
}

UNIT_MAIN("enable", endpoints, enabling)
