/* SPDX-License-Identifier: BSD-2-Clause */
/* Every state of a region and every call on it: mr/region_state.h. */
#include <pthread.h>
#include <semaphore.h>
#include "mr/worker.h"
#include "back_fixture.h"
#include "mr_right.h"
#include "obj/eq.h"

/*
 * On demand, so that it can be refreshed; with endpoints, so that it starts disabled; the
 * kernel is asked when it is registered, so that it can be held up.
 */
#define MODE (FI_MR_ENDPOINT | FI_MR_MMU_NOTIFY | FI_MR_ALLOCATED)

static struct unit_capture cap;
static struct fid ep_fid = { .fclass = FI_CLASS_EP };
static struct mrf_obj ep_obj;
static struct mrf_mr_port port;
static struct fid_fabric fabric;
static struct mrf_obj fabric_obj;
static struct fid_eq *eq; /* where a region has been pending */
static struct fid_mr *blocker;

static void open_all(void)
{
	back_open(MODE);
	env.space.api_version = FI_VERSION(2, 3);
	mrf_obj_init(&ep_obj, &ep_fid, NULL);
	ck_assert_int_eq(mrf_mr_port_open(&env.space, &port, &ep_obj, true, NULL, 0), 0);
}

static void close_all(void)
{
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &port), 0);
	mrf_mr_port_free(&port);
	mrf_obj_fini(&ep_obj);
	back_close();
	if (!eq)
		return;
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	mrf_obj_fini(&fabric_obj);
	eq = NULL;
}

static enum mrf_mr_state state_of(struct fid_mr *mr)
{
	enum mrf_mr_state state;

	mrf_lock_take(&env.space.lock);
	state = mrf_mr_from_fid(&mr->fid)->state;
	ck_assert(state_is_right_locked(mrf_mr_from_fid(&mr->fid)));
	mrf_lock_release(&env.space.lock);
	return state;
}

/* --- the calls -------------------------------------------------------------------- */

static int call_bind(struct fid_mr *mr)
{
	return fi_mr_bind(mr, &ep_fid, 0);
}

static int call_enable(struct fid_mr *mr)
{
	return fi_mr_enable(mr);
}

static int call_refresh(struct fid_mr *mr)
{
	return fi_mr_refresh(mr, NULL, 0, 0);
}

static int call_raw_attr(struct fid_mr *mr)
{
	uint8_t key[1024];
	size_t size = sizeof(key);
	uint64_t base;

	return fi_mr_raw_attr(mr, &base, key, &size, 0);
}

static int call_close(struct fid_mr *mr)
{
	return fi_close(&mr->fid);
}

static int (*const calls[MRF_CALLS])(struct fid_mr *mr) = {
	[MRF_CALL_BIND] = call_bind,	   [MRF_CALL_ENABLE] = call_enable,
	[MRF_CALL_REFRESH] = call_refresh, [MRF_CALL_RAW_ATTR] = call_raw_attr,
	[MRF_CALL_CLOSE] = call_close,
};

/* --- the states ------------------------------------------------------------------- */

/* The nth call of the kernel from now on says that it is there, and waits. */
static atomic_int hold_nth;
static sem_t arrived, go_on;
static pthread_t refresher;

static void hold_up(const struct ibv_mr *mr)
{
	(void)mr;
	if (atomic_fetch_sub(&hold_nth, 1) != 1)
		return;
	sem_post(&arrived);
	while (sem_wait(&go_on))
		;
}

static void *refresh(void *arg)
{
	return (void *)(intptr_t)call_refresh(arg);
}

static struct fid_mr *make_disabled(void)
{
	return env_must_reg(mem, PAGE, RW, KEY);
}

static struct fid_mr *make_enabled(void)
{
	struct fid_mr *mr = make_disabled();

	ck_assert_int_eq(call_bind(mr), 0);
	ck_assert_int_eq(call_enable(mr), 0);
	return mr;
}

static struct mrf_mr_query ask_for_it(void)
{
	return (struct mrf_mr_query){ .key = KEY, .len = PAGE, .port = &port };
}

static void hold_up_reg(void *addr, size_t len)
{
	(void)addr, (void)len;
	hold_up(NULL);
}

static void hold(int nth)
{
	sem_init(&arrived, 0, 0);
	sem_init(&go_on, 0, 0);
	atomic_store(&hold_nth, nth);
}

static void eq_open(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	fabric.fid.fclass = FI_CLASS_FABRIC;
	mrf_obj_init(&fabric_obj, &fabric.fid, NULL);
	ck_assert_int_eq(mrf_eq_open(&fabric_obj, &attr, &eq, NULL), 0);
	ck_assert_int_eq(mrf_mr_space_report_to(&env.space, mrf_eq_from_fid(&eq->fid)), 0);
}

/* It waits behind another one, for which the kernel takes its time until unblock. */
static struct fid_mr *make_pending(void)
{
	eq_open();
	hold(1);
	fake_verbs.on_reg = hold_up_reg;
	blocker = env_must_reg(mem + PAGE, PAGE, RW, KEY + 1);
	while (sem_wait(&arrived))
		;
	return env_must_reg(mem, PAGE, RW, KEY);
}

static void unblock(void)
{
	if (!blocker)
		return;
	sem_post(&go_on);
	env_must_close(blocker);
	blocker = NULL;
}

/* A thread is in the middle of refreshing it, until let_go. */
static struct fid_mr *make_refreshing(void)
{
	struct fid_mr *mr = make_enabled();
	struct mrf_mr_query ask = ask_for_it();

	ck_assert_int_eq(call_refresh(mr), 0);
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	ck_assert_int_eq(view.status, MRF_MR_OK);
	hold(2);
	fake_verbs.on_dereg = hold_up;
	/* The first try is made under a lock, where nobody can be held up. */
	fake_verbs_fail(FAKE_REVOKE_MR, 1, EBUSY);
	fake_verbs_fail(FAKE_DEREG_MR, 1, EBUSY);
	pthread_create(&refresher, NULL, refresh, mr);
	while (sem_wait(&arrived))
		;
	return mr;
}

static void let_go(void)
{
	void *ret;

	sem_post(&go_on);
	pthread_join(refresher, &ret);
	ck_assert_int_eq((int)(intptr_t)ret, 0);
	fake_verbs.on_dereg = NULL;
}

/* The kernel kept it when it was closed. */
static struct fid_mr *make_failed(void)
{
	struct fid_mr *mr = make_enabled();
	struct mrf_mr_query ask = ask_for_it();

	ck_assert_int_eq(call_refresh(mr), 0);
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	ck_assert_int_eq(view.status, MRF_MR_OK);
	fake_verbs_fail_always(FAKE_REVOKE_MR, EBUSY);
	fake_verbs_fail_always(FAKE_DEREG_MR, EBUSY);
	unit_capture(&cap);
	ck_assert_int_eq(call_close(mr), -FI_EBUSY);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E3030"));
	fake_verbs_fail(FAKE_REVOKE_MR, 0, 0);
	fake_verbs_fail(FAKE_DEREG_MR, 0, 0);
	return mr;
}

static struct fid_mr *make_closed(void)
{
	struct fid_mr *mr = make_enabled();

	ck_assert_int_eq(call_close(mr), 0);
	return mr;
}

static struct fid_mr *(*const makers[MRF_STATES])(void) = {
	[MRF_STATE_CLOSED] = make_closed,	  [MRF_STATE_PENDING] = make_pending,
	[MRF_STATE_DISABLED] = make_disabled,	  [MRF_STATE_ENABLED] = make_enabled,
	[MRF_STATE_REFRESHING] = make_refreshing, [MRF_STATE_FAILED] = make_failed,
};

/* --- what has to come of them ----------------------------------------------------- */

struct outcome {
	int err;
	unsigned code;		/* of the line; 0: none */
	enum mrf_mr_state next; /* where the region is then */
};

#define CLOSED MRF_STATE_CLOSED
#define PENDING MRF_STATE_PENDING
#define DISABLED MRF_STATE_DISABLED
#define ENABLED MRF_STATE_ENABLED
#define REFRESHING MRF_STATE_REFRESHING
#define FAILED MRF_STATE_FAILED
#define NOT_NOW FI_EOPBADSTATE

/* In the order of the calls: bind, enable, refresh, raw_attr, close. */
static const struct outcome outcomes[MRF_STATES][MRF_CALLS] = {
	[CLOSED] = { { FI_EINVAL, 3252, CLOSED },
		     { FI_EINVAL, 3252, CLOSED },
		     { FI_EINVAL, 3252, CLOSED },
		     { FI_EINVAL, 3101, CLOSED },
		     { FI_EINVAL, 3031, CLOSED } },
	[PENDING] = { { 0, 0, PENDING },
		      { NOT_NOW, 3250, PENDING },
		      { NOT_NOW, 3250, PENDING },
		      { NOT_NOW, 3250, PENDING },
		      { 0, 0, CLOSED } },
	/* Bound to nothing yet: cannot be enabled. */
	[DISABLED] = { { 0, 0, DISABLED },
		       { FI_EINVAL, 3057, DISABLED },
		       { NOT_NOW, 3062, DISABLED },
		       { NOT_NOW, 3103, DISABLED },
		       { 0, 0, CLOSED } },
	[ENABLED] = { { NOT_NOW, 3054, ENABLED },
		      { 0, 0, ENABLED },
		      { 0, 0, ENABLED },
		      { 0, 0, ENABLED },
		      { 0, 0, CLOSED } },
	[REFRESHING] = { { NOT_NOW, 3054, REFRESHING },
			 { 0, 0, REFRESHING },
			 { 0, 0, REFRESHING },
			 { 0, 0, REFRESHING },
			 { 0, 0, CLOSED } },
	[FAILED] = { { NOT_NOW, 3251, FAILED },
		     { NOT_NOW, 3251, FAILED },
		     { NOT_NOW, 3251, FAILED },
		     { NOT_NOW, 3251, FAILED },
		     { 0, 0, CLOSED } },
};

static void must_log(const char *text, unsigned code)
{
	char want[16];

	if (!code) {
		ck_assert_str_eq(text, "");
		return;
	}
	snprintf(want, sizeof(want), "MRF-E%u", code);
	ck_assert_msg(strstr(text, want) != NULL, "%s not in %s", want, text);
	ck_assert_uint_eq(unit_lines(text), 1);
}

/* The key is there when the state says so, and only then; likewise the rest. */
static void must_show(struct fid_mr *mr, enum mrf_mr_state state)
{
	bool serves = state == ENABLED || state == REFRESHING;
	struct mrf_mr_query ask = { .key = KEY, .port = &port };
	static const enum mrf_mr_status told_status[MRF_STATES] = {
		[CLOSED] = MRF_MR_CLOSED, [PENDING] = MRF_MR_DISABLED, [DISABLED] = MRF_MR_DISABLED,
		[ENABLED] = MRF_MR_OK,	  [REFRESHING] = MRF_MR_OK,    [FAILED] = MRF_MR_CLOSED,
	};

	ck_assert_int_eq(state_of(mr), state);
	ck_assert_uint_eq(fi_mr_key(mr), serves ? KEY : FI_KEY_NOTAVAIL);
	ck_assert_int_eq(fi_mr_desc(mr) != NULL, serves);
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	ck_assert_int_eq(view.status, told_status[state]);
}

static void tidy_up(struct fid_mr *mr)
{
	unblock();
	if (state_of(mr) != CLOSED)
		env_must_close(mr);
	close_all();
}

/* The pairs, but for closing one that is being refreshed: see below. */
#define NPAIRS (MRF_STATES * MRF_CALLS)

START_TEST(every_call_in_every_state_does_what_the_table_says)
{
	enum mrf_mr_state state = (enum mrf_mr_state)(_i / MRF_CALLS);
	enum mrf_mr_call call = (enum mrf_mr_call)(_i % MRF_CALLS);
	const struct outcome *want = &outcomes[state][call];
	struct fid_mr *mr;
	int ret;

	if (state == REFRESHING && call == MRF_CALL_CLOSE)
		return;
	open_all();
	mr = makers[state]();
	must_show(mr, state);
	unit_capture(&cap);
	ret = calls[call](mr);
	must_log(unit_captured(&cap), want->code);
	ck_assert_int_eq(ret, -want->err);
	must_show(mr, want->next);
	if (state == REFRESHING) {
		let_go();
		must_show(mr, ENABLED);
	}
	tidy_up(mr);
}
END_TEST

static void *close_it(void *arg)
{
	return (void *)(intptr_t)call_close(arg);
}

static void wait_for(struct fid_mr *mr, enum mrf_mr_state state)
{
	while (state_of(mr) != state)
		usleep(1000);
}

START_TEST(closing_waits_for_the_refresh_that_is_under_way)
{
	struct fid_mr *mr, *other;
	pthread_t closer;
	void *ret;

	open_all();
	mr = make_refreshing();
	pthread_create(&closer, NULL, close_it, mr);
	wait_for(mr, CLOSED);
	/* It is not given out again before the refresh has gone. */
	other = env_must_reg(mem, PAGE, RW, KEY + 1);
	ck_assert_ptr_ne(other, mr);
	usleep(20000);
	ck_assert_int_eq(mr->fid.fclass, FI_CLASS_MR);
	let_go();
	pthread_join(closer, &ret);
	ck_assert_int_eq((int)(intptr_t)ret, 0);
	must_show(mr, CLOSED);
	env_must_close(other);
	tidy_up(mr);
}
END_TEST

START_TEST(a_region_that_two_threads_refresh_is_enabled_after_the_last)
{
	struct fid_mr *mr;

	open_all();
	mr = make_refreshing();
	ck_assert_int_eq(call_refresh(mr), 0);
	must_show(mr, REFRESHING);
	let_go();
	must_show(mr, ENABLED);
	tidy_up(mr);
}
END_TEST

START_TEST(a_refresh_with_wrong_ranges_leaves_the_region_enabled)
{
	struct iovec outside = { mem + 2 * PAGE, PAGE };
	struct fid_mr *mr;

	open_all();
	mr = make_enabled();
	outside.iov_base = mem + 2 * PAGE;
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_refresh(mr, &outside, 1, 0), -FI_EINVAL);
	must_log(unit_captured(&cap), 3061);
	must_show(mr, ENABLED);
	tidy_up(mr);
}
END_TEST

/* --- enabling and closing at once ------------------------------------------------- */

static void *enable_it(void *arg)
{
	return (void *)(intptr_t)call_enable(arg);
}

START_TEST(a_region_closed_while_it_is_enabled_is_closed)
{
	pthread_t enabler, closer;
	struct fid_mr *mr;
	void *ret;

	back_open(FI_MR_RMA_EVENT | FI_MR_ALLOCATED);
	ck_assert_int_eq(fi_mr_reg(&env.domain, mem, PAGE, RW, 0, KEY, FI_RMA_EVENT, &mr, NULL), 0);
	hold(1);
	fake_verbs.on_reg = hold_up_reg;
	unit_capture(&cap);
	pthread_create(&enabler, NULL, enable_it, mr);
	while (sem_wait(&arrived))
		;
	pthread_create(&closer, NULL, close_it, mr);
	wait_for(mr, CLOSED);
	sem_post(&go_on);
	pthread_join(enabler, &ret);
	ck_assert_int_eq((int)(intptr_t)ret, -FI_EINVAL);
	pthread_join(closer, &ret);
	must_log(unit_captured(&cap), 3252);
	ck_assert_int_eq((int)(intptr_t)ret, 0);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	back_close();
}
END_TEST

START_TEST(of_several_threads_that_close_a_region_one_succeeds)
{
	pthread_t thread[4];
	struct fid_mr *mr;
	unsigned i, done = 0;
	void *ret;

	open_all();
	mr = make_enabled();
	unit_capture(&cap);
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, close_it, mr);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], &ret);
		done += !ret;
	}
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 3);
	ck_assert_uint_eq(done, 1);
	tidy_up(mr);
}
END_TEST

static TCase *walk(void)
{
	TCase *tc = tcase_create("walk");

	tcase_add_loop_test(tc, every_call_in_every_state_does_what_the_table_says, 0, NPAIRS);
	return tc;
}

static TCase *at_once(void)
{
	TCase *tc = tcase_create("at once");

	tcase_add_test(tc, closing_waits_for_the_refresh_that_is_under_way);
	tcase_add_test(tc, a_region_that_two_threads_refresh_is_enabled_after_the_last);
	tcase_add_test(tc, a_refresh_with_wrong_ranges_leaves_the_region_enabled);
	tcase_add_test(tc, a_region_closed_while_it_is_enabled_is_closed);
	tcase_add_test(tc, of_several_threads_that_close_a_region_one_succeeds);
	return tc;
}

UNIT_MAIN("mr_state", walk, at_once)
