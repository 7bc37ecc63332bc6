/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of regions, without a peer: numbers, bindings, counting, closing orders. */
#include "back_fixture.h"
#include "obj/cntr.h"
#include "proto/rawkey.h"

#define PLAIN FI_MR_ALLOCATED
#define EVENT (PLAIN | FI_MR_RMA_EVENT)

static struct unit_capture cap;
static struct fid_cntr *one, *two;
static const char *auth_key = ""; /* of the endpoint and the regions; none */

/* The endpoint that peers come through. */
static struct endpoint {
	struct fid fid;
	struct mrf_obj obj;
	struct mrf_mr_port port;
} ep;

static struct fid_cntr *open_cntr(void)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr = NULL;

	ck_assert_int_eq(mrf_cntr_open(&env.obj, &attr, &cntr, NULL), 0);
	return cntr;
}

static void open_port(void)
{
	ep.fid.fclass = FI_CLASS_EP;
	mrf_obj_init(&ep.obj, &ep.fid, NULL);
	ck_assert_int_eq(
		mrf_mr_port_open(&env.space, &ep.port, &ep.obj, true, auth_key, strlen(auth_key)),
		0);
}

static void close_port(void)
{
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &ep.port), 0);
	mrf_mr_port_free(&ep.port);
	mrf_obj_fini(&ep.obj);
}

static void open_with(uint64_t mode, uint32_t api)
{
	back_open(mode);
	env.space.api_version = api;
	open_port();
	one = open_cntr();
	two = open_cntr();
}

static void open_mode(uint64_t mode)
{
	open_with(mode, FI_VERSION(1, 17));
}

static void close_cntr(struct fid_cntr **cntr)
{
	if (*cntr)
		ck_assert_int_eq(fi_close(&(*cntr)->fid), 0);
	*cntr = NULL;
}

static void close_all(void)
{
	close_cntr(&one);
	close_cntr(&two);
	close_port();
	ck_assert_uint_eq(env.space.events.count, 0);
	back_close();
}

static struct fid_mr *reg_key(uint64_t access, uint64_t key, uint64_t flags)
{
	struct iovec iov = { mem, PAGE };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = access,
				   .requested_key = key,
				   .auth_key = (uint8_t *)auth_key,
				   .auth_key_size = strlen(auth_key) };
	struct fid_mr *mr = NULL;

	ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, flags, &mr), 0);
	return mr;
}

static struct fid_mr *reg_event(void)
{
	return reg_key(RW, KEY, FI_RMA_EVENT);
}

static void must_bind(struct fid_mr *mr, struct fid_cntr *cntr)
{
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
}

static uint32_t number_of(struct fid_mr *mr)
{
	struct mrf_mr_query ask = { .key = mrf_mr_from_fid(&mr->fid)->key, .port = &ep.port };

	mrf_mr_reach(&env.space, &ask, &lease, &view);
	return view.event;
}

static void written(uint32_t number)
{
	mrf_mr_event(&env.space, number, &ep.port);
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

/* The line names the culprit. */
#define refused_for(call, err, code, culprit)                                            \
	do {                                                                             \
		char name_[32];                                                          \
                                                                                         \
		refused(call, err, code);                                                \
		snprintf(name_, sizeof(name_), "%p", (void *)(culprit));                 \
		ck_assert_msg(strstr(cap.text, name_), "%s not in %s", name_, cap.text); \
	} while (0)

/* --- numbers ---------------------------------------------------------------------- */

START_TEST(event_number_goes_to_regions_that_say_they_count)
{
	struct fid_mr *plain, *event, *other, *unwritable;

	open_mode(_i ? 0 : PLAIN);
	plain = reg_key(RW, 1, 0);
	event = reg_key(RW, 2, FI_RMA_EVENT);
	other = reg_key(FI_REMOTE_WRITE, 3, FI_RMA_EVENT);
	unwritable = reg_key(FI_REMOTE_READ, 4, FI_RMA_EVENT);
	ck_assert_uint_eq(number_of(plain), 0);
	ck_assert_uint_ne(number_of(event), 0);
	ck_assert_uint_ne(number_of(other), 0);
	ck_assert_uint_ne(number_of(event), number_of(other));
	ck_assert_uint_eq(number_of(unwritable), 0);
	env_must_close(plain);
	env_must_close(event);
	env_must_close(other);
	env_must_close(unwritable);
	close_all();
}
END_TEST

/* What an application gets that asks for FI_RMA_EVENT and does not need the mode bit. */
START_TEST(event_number_goes_to_all_where_all_may_count)
{
	struct fid_mr *mr;

	back_open(PLAIN);
	ck_assert(env.space.plain);
	mrf_mr_space_fini(&env.space);
	env.space.has_events = true;
	ck_assert_int_eq(mrf_mr_space_init(&env.space), 0);
	open_port();
	one = open_cntr();
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_uint_ne(number_of(mr), 0);
	must_bind(mr, one);
	written(number_of(mr));
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	close_cntr(&one);
	env_must_close(mr);
	mr = env_must_reg(mem, PAGE, FI_REMOTE_READ, KEY);
	ck_assert_uint_eq(number_of(mr), 0);
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(event_number_is_not_used_again_soon)
{
	struct fid_mr *mr, *next;
	uint32_t last, number;

	open_mode(PLAIN);
	mr = reg_event();
	last = number_of(mr);
	env_must_close(mr);
	mr = reg_event();
	number = number_of(mr);
	ck_assert_uint_eq(number, last + 1);
	/* 0 is none, and what is in use stays where it is. */
	env.space.last_event = UINT32_MAX - 1;
	env_must_close(mr);
	mr = reg_event();
	ck_assert_uint_eq(number_of(mr), UINT32_MAX);
	env.space.last_event = UINT32_MAX - 1;
	next = reg_key(RW, KEY + 1, FI_RMA_EVENT);
	ck_assert_uint_eq(number_of(next), 1);
	env_must_close(next);
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(event_region_has_no_key_that_says_it_all)
{
	struct mrf_key_direct direct;
	uint8_t raw[MRF_RAWKEY_MAX];
	struct mrf_rawkey key;
	size_t size = sizeof(raw);
	const char *why;
	struct fid_mr *mr;
	uint64_t base;

	open_mode(PLAIN | FI_MR_PROV_KEY | (_i ? FI_MR_VIRT_ADDR : 0));
	mr = reg_event();
	ck_assert(!mrf_key_unpack(env.space.mode, fi_mr_key(mr), &direct));
	ck_assert_int_eq(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	ck_assert_int_eq(mrf_rawkey_decode(raw, size, &key, &why), 0);
	ck_assert(!key.complete);
	env_must_close(mr);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert(mrf_key_unpack(env.space.mode, fi_mr_key(mr), &direct));
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(event_registration_that_fails_leaves_no_number)
{
	struct fid_mr *mr, *none = NULL;
	unsigned i;
	int ret;

	open_mode(PLAIN);
	mr = reg_event();
	refused(fi_mr_reg(&env.domain, mem, PAGE, RW, 0, KEY, FI_RMA_EVENT, &none, NULL),
		-FI_ENOKEY, "MRF-E3021");
	ck_assert_uint_eq(env.space.events.count, 1);
	env_must_close(mr);
	for (i = 1; i < 20; i++) {
		unit_capture(&cap);
		fail_alloc(i);
		library_enter();
		ret = fi_mr_reg(&env.domain, mem, PAGE, RW, 0, KEY, FI_RMA_EVENT, &mr, NULL);
		library_leave();
		fail_alloc(0);
		unit_captured(&cap);
		if (!ret)
			break;
		ck_assert_int_eq(ret, -FI_ENOMEM);
		ck_assert_uint_eq(env.space.events.count, 0);
		ck_assert_uint_eq(env.space.keys.count, 0);
		ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	}
	ck_assert_uint_gt(i, 1);
	ck_assert_int_eq(ret, 0);
	env_must_close(mr);
	close_all();
}
END_TEST

/* --- binding ---------------------------------------------------------------------- */

START_TEST(bind_of_a_counter_with_other_flags_is_refused)
{
	struct fid_mr *mr;
	unsigned bit;

	open_mode(PLAIN);
	mr = reg_event();
	refused(fi_mr_bind(mr, &one->fid, 0), -FI_EBADFLAGS, "MRF-E3234");
	for (bit = 0; bit < 64; bit++) {
		uint64_t flag = 1ull << bit;

		if (flag == FI_REMOTE_WRITE)
			continue;
		refused(fi_mr_bind(mr, &one->fid, flag), -FI_EBADFLAGS, "MRF-E3234");
		refused(fi_mr_bind(mr, &one->fid, flag | FI_REMOTE_WRITE), -FI_EBADFLAGS,
			"MRF-E3234");
	}
	written(number_of(mr));
	ck_assert_uint_eq(fi_cntr_read(one), 0);
	must_bind(mr, one);
	close_cntr(&one);
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(bind_of_a_counter_that_cannot_be_is_refused_with_its_reason)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_domain elsewhere = { .fid.fclass = FI_CLASS_DOMAIN };
	struct mrf_obj elsewhere_obj;
	struct fid_cntr *foreign = NULL;
	struct fid_mr *mr;
	int ret;

	open_mode(PLAIN);
	mrf_obj_init(&elsewhere_obj, &elsewhere.fid, NULL);
	ck_assert_int_eq(mrf_cntr_open(&elsewhere_obj, &attr, &foreign, NULL), 0);
	mr = reg_event();
	refused(fi_mr_bind(mr, &foreign->fid, FI_REMOTE_WRITE), -FI_EDOMAIN, "MRF-E3233");
	must_bind(mr, one);
	refused(fi_mr_bind(mr, &one->fid, FI_REMOTE_WRITE), -FI_EINVAL, "MRF-E3238");
	unit_capture(&cap);
	fail_alloc(1);
	library_enter();
	ret = fi_mr_bind(mr, &two->fid, FI_REMOTE_WRITE);
	library_leave();
	fail_alloc(0);
	must_refuse(ret, -FI_ENOMEM, "MRF-E3022");
	written(number_of(mr));
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	ck_assert_uint_eq(fi_cntr_read(two), 0);
	close_cntr(&one);
	env_must_close(mr);
	mr = reg_key(FI_REMOTE_READ, KEY, FI_RMA_EVENT);
	refused(fi_mr_bind(mr, &foreign->fid, FI_REMOTE_WRITE), -FI_EDOMAIN, "MRF-E3233");
	refused(fi_mr_bind(mr, &two->fid, FI_READ), -FI_EBADFLAGS, "MRF-E3234");
	env_must_close(mr);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	refused(fi_mr_bind(mr, &two->fid, FI_REMOTE_WRITE), -FI_ENOSYS, "MRF-E3041");
	env_must_close(mr);
	refused(fi_mr_bind(mr, &two->fid, FI_REMOTE_WRITE), -FI_EINVAL, "MRF-E3252");
	close_cntr(&foreign);
	mrf_obj_fini(&elsewhere_obj);
	close_all();
}
END_TEST

/* An endpoint that is not told of writes. */
static struct endpoint deaf = { .fid.fclass = FI_CLASS_EP };

static void open_deaf(void)
{
	mrf_obj_init(&deaf.obj, &deaf.fid, NULL);
	ck_assert_int_eq(mrf_mr_port_open(&env.space, &deaf.port, &deaf.obj, false, NULL, 0), 0);
}

static void close_deaf(void)
{
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &deaf.port), 0);
	mrf_mr_port_free(&deaf.port);
	mrf_obj_fini(&deaf.obj);
}

/* It would never count: whatever is written, no endpoint is told of it. */
START_TEST(bind_where_no_endpoint_is_told_of_writes_is_refused)
{
	const uint64_t modes[] = { PLAIN, EVENT, 0, PLAIN | FI_MR_ENDPOINT };
	struct fid_mr *mr;

	back_open(modes[_i]);
	one = open_cntr();
	mr = reg_event();
	refused(fi_mr_bind(mr, &one->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS, "MRF-E3240");
	open_deaf();
	refused(fi_mr_bind(mr, &one->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS, "MRF-E3240");
	/* One that is told is enough. */
	open_port();
	must_bind(mr, one);
	close_cntr(&one);
	env_must_close(mr);
	close_deaf();
	close_all();
}
END_TEST

/* Where regions are bound to endpoints, each of those has to be told; in either order. */
START_TEST(bind_to_an_endpoint_that_is_not_told_and_a_counter_is_refused)
{
	struct fid_mr *mr;

	open_with(PLAIN | FI_MR_ENDPOINT, FI_VERSION(2, 3));
	open_deaf();
	mr = reg_event();
	ck_assert_int_eq(fi_mr_bind(mr, &deaf.fid, 0), 0);
	refused(fi_mr_bind(mr, &one->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS, "MRF-E3241");
	env_must_close(mr);
	mr = reg_event();
	ck_assert_int_eq(fi_mr_bind(mr, &ep.fid, 0), 0);
	must_bind(mr, one);
	refused(fi_mr_bind(mr, &deaf.fid, 0), -FI_EINVAL, "MRF-E3243");
	env_must_close(mr);
	close_deaf();
	close_all();
}
END_TEST

START_TEST(bind_to_a_region_that_no_peer_writes_to_counts_nothing_and_says_so_once)
{
	static const uint64_t access[] = { FI_REMOTE_READ, FI_WRITE, FI_READ | FI_REMOTE_READ };
	struct fid_mr *mr;

	open_mode(PLAIN);
	mr = reg_key(access[_i], KEY, _i ? 0 : FI_RMA_EVENT);
	unit_capture(&cap);
	must_bind(mr, one);
	must_bind(mr, one);
	must_refuse(0, 0, "MRF-W3242");
	/* Neither waits for the other. */
	env_must_close(mr);
	mr = reg_key(access[_i], KEY, 0);
	must_bind(mr, one);
	close_cntr(&one);
	env_must_close(mr);
	close_all();
	/* Nor does it matter that it is enabled from the start. */
	open_mode(EVENT);
	mr = reg_key(access[_i], KEY, 0);
	must_bind(mr, one);
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(bind_where_the_mode_wants_the_flag_wants_it)
{
	struct fid_mr *mr;

	open_mode(EVENT);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	refused(fi_mr_bind(mr, &one->fid, FI_REMOTE_WRITE), -FI_EINVAL, "MRF-E3232");
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(bind_to_a_region_that_starts_disabled_ends_when_it_is_enabled)
{
	struct fid_mr *mr;

	open_mode(_i ? PLAIN | FI_MR_ENDPOINT : EVENT);
	mr = reg_event();
	must_bind(mr, one);
	if (_i)
		ck_assert_int_eq(fi_mr_bind(mr, &ep.fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	refused(fi_mr_bind(mr, &two->fid, FI_REMOTE_WRITE), -FI_EOPBADSTATE, "MRF-E3054");
	written(number_of(mr));
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	ck_assert_uint_eq(fi_cntr_read(two), 0);
	close_cntr(&one);
	close_port();
	env_must_close(mr);
	open_port();
	close_all();
}
END_TEST

START_TEST(bind_to_a_region_that_starts_enabled_may_come_later)
{
	struct fid_mr *mr;

	open_mode(_i ? 0 : PLAIN);
	mr = reg_event();
	written(number_of(mr));
	must_bind(mr, one);
	written(number_of(mr));
	must_bind(mr, two);
	written(number_of(mr));
	ck_assert_uint_eq(fi_cntr_read(one), 2);
	ck_assert_uint_eq(fi_cntr_read(two), 1);
	close_cntr(&one);
	written(number_of(mr));
	ck_assert_uint_eq(fi_cntr_read(two), 2);
	close_cntr(&two);
	env_must_close(mr);
	close_all();
}
END_TEST

/* --- counting --------------------------------------------------------------------- */

START_TEST(count_goes_to_every_counter_of_the_region_and_no_other)
{
	struct fid_cntr *third;
	struct fid_mr *a, *b;
	unsigned i;

	open_mode(PLAIN);
	third = open_cntr();
	a = reg_key(RW, 1, FI_RMA_EVENT);
	b = reg_key(RW, 2, FI_RMA_EVENT);
	must_bind(a, one);
	must_bind(a, two);
	must_bind(b, two);
	for (i = 0; i < 3; i++)
		written(number_of(a));
	for (i = 0; i < 5; i++)
		written(number_of(b));
	ck_assert_uint_eq(fi_cntr_read(one), 3);
	ck_assert_uint_eq(fi_cntr_read(two), 8);
	ck_assert_uint_eq(fi_cntr_read(third), 0);
	ck_assert_uint_eq(fi_cntr_readerr(one), 0);
	close_cntr(&one);
	close_cntr(&two);
	close_cntr(&third);
	env_must_close(a);
	env_must_close(b);
	close_all();
}
END_TEST

START_TEST(count_is_not_moved_by_numbers_that_were_made_up)
{
	struct fid_mr *mr;
	uint32_t number;

	open_mode(EVENT | FI_MR_ENDPOINT);
	mr = reg_event();
	number = mrf_mr_from_fid(&mr->fid)->event->number;
	must_bind(mr, one);
	ck_assert_int_eq(fi_mr_bind(mr, &ep.fid, 0), 0);
	written(0);
	written(number + 1);
	written(number); /* not enabled yet */
	ck_assert_uint_eq(fi_cntr_read(one), 0);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	written(number);
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	{
		struct endpoint other = { .fid.fclass = FI_CLASS_EP };

		/* It is not bound to that one. */
		mrf_obj_init(&other.obj, &other.fid, NULL);
		ck_assert_int_eq(
			mrf_mr_port_open(&env.space, &other.port, &other.obj, true, NULL, 0), 0);
		mrf_mr_event(&env.space, number, &other.port);
		ck_assert_uint_eq(fi_cntr_read(one), 1);
		ck_assert_int_eq(mrf_mr_port_close(&env.space, &other.port), 0);
		mrf_mr_port_free(&other.port);
		mrf_obj_fini(&other.obj);
	}
	close_cntr(&one);
	close_port();
	env_must_close(mr);
	open_port();
	written(number);
	close_all();
}
END_TEST

/* Handled when the endpoint is closing already, but written before. */
START_TEST(count_of_what_came_before_the_endpoint_closed_is_not_lost)
{
	struct fid_mr *mr;
	uint32_t number;

	open_mode(PLAIN | FI_MR_ENDPOINT);
	mr = reg_event();
	must_bind(mr, one);
	ck_assert_int_eq(fi_mr_bind(mr, &ep.fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	number = number_of(mr);
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &ep.port), 0);
	written(number);
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	mrf_mr_port_free(&ep.port);
	mrf_obj_fini(&ep.obj);
	close_cntr(&one);
	env_must_close(mr);
	open_port();
	close_all();
}
END_TEST

/* --- closing ---------------------------------------------------------------------- */

START_TEST(before_api_2_3_the_counter_is_closed_first)
{
	struct fid_mr *mr;

	open_with(PLAIN, _i ? FI_VERSION(2, 2) : FI_VERSION(1, 17));
	mr = reg_event();
	must_bind(mr, one);
	must_bind(mr, two);
	refused_for(fi_close(&mr->fid), -FI_EBUSY, "MRF-E3239", one);
	close_cntr(&one);
	refused_for(fi_close(&mr->fid), -FI_EBUSY, "MRF-E3239", two);
	/* It goes on as before. */
	written(number_of(mr));
	ck_assert_uint_eq(fi_cntr_read(two), 1);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	close_cntr(&two);
	written(number_of(mr));
	env_must_close(mr);
	close_all();
}
END_TEST

START_TEST(from_api_2_3_the_region_is_closed_before_its_counter)
{
	struct fid_mr *a, *b;

	open_with(PLAIN, FI_VERSION(2, 3));
	a = reg_key(RW, 1, FI_RMA_EVENT);
	b = reg_key(RW, 2, FI_RMA_EVENT);
	must_bind(a, one);
	must_bind(b, one);
	refused_for(fi_close(&one->fid), -FI_EBUSY, "MRF-E3231", a);
	written(number_of(a));
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	env_must_close(a);
	refused_for(fi_close(&one->fid), -FI_EBUSY, "MRF-E3231", b);
	env_must_close(b);
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	close_all();
}
END_TEST

static uint32_t late; /* what the agent finds when it is asked to take in everything */
static unsigned settled;

static void take_late(void *arg)
{
	ck_assert_ptr_eq(arg, &late);
	/* Nobody can reach the region any more. */
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	settled++;
	written(late);
}

START_TEST(from_api_2_3_closing_counts_what_was_written_before)
{
	struct fid_mr *mr;

	if (_i & 2)
		auth_key = "sesame";
	open_with(_i & 1 ? PLAIN | FI_MR_ENDPOINT : PLAIN, FI_VERSION(2, 3));
	env.space.settle = take_late;
	env.space.settle_arg = &late;
	settled = 0;
	mr = reg_event();
	must_bind(mr, one);
	if (_i & 1) {
		ck_assert_int_eq(fi_mr_bind(mr, &ep.fid, 0), 0);
		ck_assert_int_eq(fi_mr_enable(mr), 0);
	}
	late = number_of(mr);
	env_must_close(mr);
	ck_assert_uint_eq(settled, 1);
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	/* And nothing later. */
	written(late);
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	/* Without a counter there is nothing to wait for. */
	mr = reg_event();
	env_must_close(mr);
	ck_assert_uint_eq(settled, 1);
	close_all();
	auth_key = "";
}
END_TEST

START_TEST(region_that_the_kernel_keeps_counts_until_it_is_closed)
{
	struct fid_mr *mr;

	open_with(PLAIN, FI_VERSION(2, 3));
	mr = reg_event();
	must_bind(mr, one);
	fake_verbs_fail(FAKE_DEREG_MR, 1, EIO);
	refused(fi_close(&mr->fid), -FI_EIO, "MRF-E3030");
	written(mrf_mr_from_fid(&mr->fid)->event->number);
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	env_must_close(mr);
	close_all();
}
END_TEST

/* It cannot reach the region, whatever number it has heard of, open or closing. */
START_TEST(endpoint_with_another_key_counts_nothing)
{
	struct endpoint other = { .fid.fclass = FI_CLASS_EP };
	struct fid_mr *mr;
	uint32_t number;

	if (_i)
		auth_key = "sesame";
	open_with(PLAIN, FI_VERSION(2, 3));
	mrf_obj_init(&other.obj, &other.fid, NULL);
	ck_assert_int_eq(mrf_mr_port_open(&env.space, &other.port, &other.obj, true, "wheat", 5),
			 0);
	mr = reg_event();
	must_bind(mr, one);
	number = number_of(mr);
	mrf_mr_event(&env.space, number, &other.port);
	ck_assert_uint_eq(fi_cntr_read(one), 0);
	fake_verbs_fail(FAKE_DEREG_MR, 1, EIO);
	refused(fi_close(&mr->fid), -FI_EIO, "MRF-E3030");
	mrf_mr_event(&env.space, number, &other.port);
	ck_assert_uint_eq(fi_cntr_read(one), 0);
	written(number);
	ck_assert_uint_eq(fi_cntr_read(one), 1);
	env_must_close(mr);
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &other.port), 0);
	mrf_mr_port_free(&other.port);
	mrf_obj_fini(&other.obj);
	close_all();
	auth_key = "";
}
END_TEST

static TCase *tcase_numbers(void)
{
	TCase *tc = tcase_create("numbers");

	tcase_add_loop_test(tc, event_number_goes_to_regions_that_say_they_count, 0, 2);
	tcase_add_test(tc, event_number_goes_to_all_where_all_may_count);
	tcase_add_test(tc, event_number_is_not_used_again_soon);
	tcase_add_loop_test(tc, event_region_has_no_key_that_says_it_all, 0, 2);
	tcase_add_test(tc, event_registration_that_fails_leaves_no_number);
	return tc;
}

static TCase *tcase_bind(void)
{
	TCase *tc = tcase_create("bind");

	tcase_add_test(tc, bind_of_a_counter_with_other_flags_is_refused);
	tcase_add_test(tc, bind_of_a_counter_that_cannot_be_is_refused_with_its_reason);
	tcase_add_loop_test(
		tc, bind_to_a_region_that_no_peer_writes_to_counts_nothing_and_says_so_once, 0, 3);
	tcase_add_loop_test(tc, bind_where_no_endpoint_is_told_of_writes_is_refused, 0, 4);
	tcase_add_test(tc, bind_to_an_endpoint_that_is_not_told_and_a_counter_is_refused);
	tcase_add_test(tc, bind_where_the_mode_wants_the_flag_wants_it);
	tcase_add_loop_test(tc, bind_to_a_region_that_starts_disabled_ends_when_it_is_enabled, 0,
			    2);
	tcase_add_loop_test(tc, bind_to_a_region_that_starts_enabled_may_come_later, 0, 2);
	return tc;
}

static TCase *tcase_count(void)
{
	TCase *tc = tcase_create("count");

	tcase_add_test(tc, count_goes_to_every_counter_of_the_region_and_no_other);
	tcase_add_test(tc, count_is_not_moved_by_numbers_that_were_made_up);
	tcase_add_test(tc, count_of_what_came_before_the_endpoint_closed_is_not_lost);
	return tc;
}

static TCase *tcase_close(void)
{
	TCase *tc = tcase_create("close");

	tcase_add_loop_test(tc, before_api_2_3_the_counter_is_closed_first, 0, 2);
	tcase_add_test(tc, from_api_2_3_the_region_is_closed_before_its_counter);
	tcase_add_loop_test(tc, from_api_2_3_closing_counts_what_was_written_before, 0, 4);
	tcase_add_test(tc, region_that_the_kernel_keeps_counts_until_it_is_closed);
	tcase_add_loop_test(tc, endpoint_with_another_key_counts_nothing, 0, 2);
	return tc;
}

UNIT_MAIN("mr_event", tcase_numbers, tcase_bind, tcase_count, tcase_close)
