/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration that goes on after its call has returned: mr/worker.h. */
#include <pthread.h>
#include <semaphore.h>
#include <rdma/fi_eq.h>
#include "back_fixture.h"
#include "mr_right.h"
#include "mr/worker.h"
#include "obj/cntr.h"
#include "obj/eq.h"

#define PINNED FI_MR_ALLOCATED
#define ASYNC_TIMEOUT 10000 /* ms */

static struct unit_capture cap;
static struct fid_fabric fabric;
static struct mrf_obj fabric_obj;
static struct fid_eq *eq;
static int context; /* its address */

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static int no_thread;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	return no_thread ? no_thread : __real_pthread_create(thread, attr, start, arg);
}

static void eq_open(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	fabric.fid.fclass = FI_CLASS_FABRIC;
	fabric.api_version = FI_VERSION(1, 17);
	mrf_obj_init(&fabric_obj, &fabric.fid, NULL);
	ck_assert_int_eq(mrf_eq_open(&fabric_obj, &attr, &eq, NULL), 0);
}

static void eq_close(void)
{
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	mrf_obj_fini(&fabric_obj);
}

static int bind_eq(void)
{
	int ret;

	library_enter();
	ret = mrf_mr_space_report_to(&env.space, mrf_eq_from_fid(&eq->fid));
	library_leave();
	return ret;
}

static void open_async(uint64_t mode)
{
	back_open(mode);
	eq_open();
	ck_assert_int_eq(bind_eq(), 0);
}

static void close_async(void)
{
	back_close();
	eq_close();
}

/* --- holding the kernel up -------------------------------------------------------- */

static atomic_int hold_nth; /* the nth registration from now on waits; 0: none */
static sem_t arrived, go_on;

static void hold_up(void *addr, size_t len)
{
	(void)addr, (void)len;
	/* What the worker allocates from here on can be made to fail, see fail_alloc. */
	library_enter();
	if (!atomic_load(&hold_nth) || atomic_fetch_sub(&hold_nth, 1) != 1)
		return;
	sem_post(&arrived);
	while (sem_wait(&go_on))
		;
}

static void hold(int nth)
{
	sem_init(&arrived, 0, 0);
	sem_init(&go_on, 0, 0);
	atomic_store(&hold_nth, nth);
	fake_verbs.on_reg = hold_up;
}

static void await_hold(void)
{
	while (sem_wait(&arrived))
		;
}

static void let_go(void)
{
	sem_post(&go_on);
}

/* --- regions and events ----------------------------------------------------------- */

static const char *auth_key; /* of the regions of a test; NULL: none */

static int reg_flags(void *addr, size_t len, uint64_t key, uint64_t flags, struct fid_mr **mr)
{
	struct iovec iov = { addr, len };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = RW | FI_READ,
				   .requested_key = key,
				   .context = &context,
				   .auth_key = (uint8_t *)auth_key,
				   .auth_key_size = auth_key ? strlen(auth_key) : 0 };
	int ret;

	library_enter();
	ret = fi_mr_regattr(&env.domain, &attr, flags, mr);
	library_leave();
	return ret;
}

static int reg(void *addr, size_t len, uint64_t key, struct fid_mr **mr)
{
	return reg_flags(addr, len, key, 0, mr);
}

static struct fid_mr *must_reg(void *addr, uint64_t key)
{
	struct fid_mr *mr = NULL;

	ck_assert_int_eq(reg(addr, PAGE, key, &mr), 0);
	ck_assert_ptr_nonnull(mr);
	return mr;
}

/* A region whose registration waits for the kernel. */
static struct fid_mr *must_hang(uint64_t key)
{
	struct fid_mr *mr;

	hold(1);
	mr = must_reg(mem, key);
	await_hold();
	return mr;
}

static void must_complete(const struct fid_mr *mr)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event = 0;

	ck_assert_int_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), ASYNC_TIMEOUT, 0),
			 sizeof(entry));
	ck_assert_uint_eq(event, FI_MR_COMPLETE);
	ck_assert_ptr_eq(entry.fid, &mr->fid);
	ck_assert_ptr_eq(entry.context, &context);
	ck_assert_uint_eq(entry.data, 0);
}

static void must_fail(const struct fid_mr *mr, int err, int code, const char *why)
{
	struct fi_eq_err_entry entry = { 0 };
	struct fi_eq_entry none;
	uint32_t event = 0;

	ck_assert_int_eq(fi_eq_sread(eq, &event, &none, sizeof(none), ASYNC_TIMEOUT, 0),
			 -FI_EAVAIL);
	ck_assert_int_eq(fi_eq_readerr(eq, &entry, 0), sizeof(entry));
	ck_assert_ptr_eq(entry.fid, &mr->fid);
	ck_assert_ptr_eq(entry.context, &context);
	ck_assert_int_eq(entry.err, err);
	ck_assert_int_eq(entry.prov_errno, code);
	ck_assert_msg(strstr(entry.err_data, why) != NULL, "%s not in %s", why,
		      (char *)entry.err_data);
	ck_assert_uint_eq(entry.err_data_size, strlen(entry.err_data) + 1);
}

static void must_be_silent(void)
{
	struct fi_eq_entry entry;
	uint32_t event;

	ck_assert_int_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
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

/* --- completing ------------------------------------------------------------------- */

START_TEST(the_call_returns_before_the_kernel_is_done)
{
	struct fid_mr *mr;

	open_async(PINNED);
	mr = must_hang(KEY);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert_ptr_null(fi_mr_desc(mr));
	ck_assert_int_eq(state_of(mr), MRF_STATE_PENDING);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_DISABLED);
	must_be_silent();
	let_go();
	must_complete(mr);
	ck_assert_int_eq(state_of(mr), MRF_STATE_ENABLED);
	ck_assert_uint_eq(fi_mr_key(mr), KEY);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_OK);
	ck_assert_uint_eq(fake_verbs.live_mrs, 1);
	must_be_silent();
	env_must_close(mr);
	close_async();
}
END_TEST

START_TEST(regions_complete_in_the_order_of_the_calls)
{
	struct fid_mr *mr[5];
	unsigned i;

	open_async(PINNED);
	hold(1);
	for (i = 0; i < 5; i++)
		mr[i] = must_reg(mem + i * PAGE, i);
	await_hold();
	let_go();
	for (i = 0; i < 5; i++)
		must_complete(mr[i]);
	for (i = 0; i < 5; i++)
		env_must_close(mr[i]);
	close_async();
}
END_TEST

START_TEST(several_segments_complete_as_one_region)
{
	struct fid_mr *mr = NULL;
	struct mrf_desc desc;
	struct iovec iov[3];
	unsigned i;

	open_async(PINNED);
	for (i = 0; i < 3; i++)
		iov[i] = (struct iovec){ mem + 2 * i * PAGE + i, 100 };
	ck_assert_int_eq(fi_mr_regv(&env.domain, iov, 3, RW | FI_READ, 0, KEY, 0, &mr, &context),
			 0);
	/* The list was the call's. */
	memset(iov, 0, sizeof(iov));
	must_complete(mr);
	ck_assert_uint_eq(fake_verbs.live_mrs, 3);
	ck_assert_int_eq(reach(KEY, 0, 300), MRF_MR_OK);
	ck_assert_uint_eq(reached(0), 300);
	ck_assert_ptr_eq(byte_at(201), mem + 4 * PAGE + 2 + 1);
	ck_assert(mrf_desc_get(&env.space, fi_mr_desc(mr), &desc));
	ck_assert_uint_eq(desc.nseg, 3);
	env_must_close(mr);
	close_async();
}
END_TEST

START_TEST(a_provider_key_carries_the_rkey_once_it_is_there)
{
	struct mrf_key_direct direct;
	struct fid_mr *mr;

	open_async(PINNED | FI_MR_PROV_KEY | (_i ? FI_MR_VIRT_ADDR : 0));
	mr = must_hang(0);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert_int_eq(state_of(mr), MRF_STATE_PENDING);
	let_go();
	must_complete(mr);
	ck_assert(mrf_key_unpack(env.space.mode, fi_mr_key(mr), &direct));
	ck_assert_ptr_eq(fake_verbs_find(direct.rkey)->mr.addr, mem);
	ck_assert_int_eq(state_of(mr), MRF_STATE_ENABLED);
	env_must_close(mr);
	close_async();
}
END_TEST

/* An endpoint as far as regions know it. */
static struct fid ep_fid = { .fclass = FI_CLASS_EP };

/* Every mode that there is: pending first, then what it is when the call waits. */
/* Whatever the worker finds. */
START_TEST(memory_counts_as_it_is_when_the_registration_begins)
{
	struct fid_mr *mr = NULL;

	open_async(FI_MR_MMU_NOTIFY);
	mem[0] = 1;
	ck_assert_int_eq(reg(mem, 2 * PAGE, KEY, &mr), 0);
	mem[PAGE] = 1;
	must_complete(mr);
	must_reach(KEY, 0, PAGE);
	ck_assert_int_eq(reach(KEY, PAGE, 1), MRF_MR_NOT_REFRESHED);
	env_must_close(mr);
	close_async();
}
END_TEST

/* Sixteen in a process: starting one takes longer than the test. */
#define MODES_AT_A_TIME 16

static void serves_a_region_in(uint64_t mode, const char *key)
{
	static struct mrf_mr_port port;
	struct mrf_mr_query ask = { .len = PAGE, .port = &port };
	bool deferred = mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT);
	struct mrf_obj obj;
	struct fid_mr *mr;

	open_async(mode);
	mrf_obj_init(&obj, &ep_fid, NULL);
	auth_key = key;
	ck_assert_int_eq(mrf_mr_port_open(&env.space, &port, &obj, true, auth_key,
					  auth_key ? strlen(auth_key) : 0),
			 0);
	ck_assert_int_eq(reg_flags(mem, PAGE, KEY, mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0, &mr),
			 0);
	if (mode & FI_MR_ENDPOINT)
		ck_assert_int_eq(fi_mr_bind(mr, &ep_fid, 0), 0);
	must_complete(mr);
	ck_assert_int_eq(state_of(mr), deferred ? MRF_STATE_DISABLED : MRF_STATE_ENABLED);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	if (mode & FI_MR_MMU_NOTIFY)
		ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	ask.key = mrf_mr_from_fid(&mr->fid)->key;
	ask.addr = mode & FI_MR_VIRT_ADDR ? (uintptr_t)mem : 0;
	mrf_mr_reach(&env.space, &ask, &lease, &view);
	ck_assert_int_eq(view.status, MRF_MR_OK);
	ck_assert_ptr_eq(byte_at(ask.addr + 7), mem + 7);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	ck_assert_int_eq(state_of(mr), MRF_STATE_ENABLED);
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &port), 0);
	mrf_mr_port_free(&port);
	env_must_close(mr);
	mrf_obj_fini(&obj);
	auth_key = NULL;
	close_async();
}

START_TEST(all_256_modes_serve_a_region_that_was_registered_asynchronously)
{
	for (uint64_t i = 0; i < MODES_AT_A_TIME; i++) {
		uint64_t mode = ((uint64_t)_i * MODES_AT_A_TIME + i) * FI_MR_LOCAL;

		serves_a_region_in(mode, NULL);
		serves_a_region_in(mode, "sesame");
	}
}
END_TEST

/* --- the mr parameter ------------------------------------------------------------- */

int __real_sem_post(sem_t *sem);
int __wrap_sem_post(sem_t *sem);

static _Thread_local bool stays_in_call;
static sem_t event_read;

/* The worker has its job: the call does not return before the event has been read. */
int __wrap_sem_post(sem_t *sem)
{
	int ret = __real_sem_post(sem);

	if (stays_in_call) {
		while (sem_wait(&event_read))
			;
	}
	return ret;
}

static struct fid_mr *shown;

static void *read_event(void *arg)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event;

	(void)arg;
	ck_assert_int_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), ASYNC_TIMEOUT, 0),
			 sizeof(entry));
	ck_assert_ptr_eq(entry.fid, &shown->fid);
	sem_post(&event_read);
	return NULL;
}

START_TEST(mr_is_written_before_the_event_can_be_read)
{
	pthread_t reader;

	open_async(_i ? PINNED : 0);
	sem_init(&event_read, 0, 0);
	pthread_create(&reader, NULL, read_event, NULL);
	stays_in_call = true;
	ck_assert_int_eq(reg(mem, PAGE, KEY, &shown), 0);
	stays_in_call = false;
	pthread_join(reader, NULL);
	env_must_close(shown);
	close_async();
}
END_TEST

START_TEST(mr_is_not_written_once_the_call_has_returned)
{
	struct fid_mr **place, *mr;

	open_async(PINNED);
	place = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hold(1);
	ck_assert_int_eq(reg(mem, PAGE, KEY, place), 0);
	mr = *place;
	ck_assert_int_eq(munmap(place, PAGE), 0);
	await_hold();
	let_go();
	must_complete(mr);
	env_must_close(mr);
	close_async();
}
END_TEST

/* --- failing ---------------------------------------------------------------------- */

/* What is wrong with the call itself is said by the call, and by no event. */
START_TEST(a_refused_call_makes_no_event)
{
	struct fid_mr *mr = (void *)&cap, *first;

	open_async(PINNED);
	unit_capture(&cap);
	ck_assert_int_eq(reg(mem, 0, KEY, &mr), -FI_EINVAL);
	ck_assert_int_eq(reg(mem, PAGE, FI_KEY_NOTAVAIL, &mr), -FI_EKEYREJECTED);
	ck_assert_int_eq(fi_mr_reg(&env.domain, mem, PAGE, RW, 1, KEY, 0, &mr, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_reg(&env.domain, mem, PAGE, RW, 0, KEY, 1, &mr, NULL),
			 -FI_EBADFLAGS);
	hold(1);
	first = must_reg(mem, KEY);
	await_hold();
	/* A pending region has the key that it asked for. */
	ck_assert_int_eq(reg(mem, PAGE, KEY, &mr), -FI_ENOKEY);
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 5);
	ck_assert_ptr_eq(mr, (void *)&cap);
	must_be_silent();
	let_go();
	must_complete(first);
	must_be_silent();
	env_must_close(first);
	close_async();
}
END_TEST

START_TEST(memory_that_is_not_there_is_an_error_event)
{
	struct fid_mr *mr, *other;

	open_async(PINNED | (_i ? FI_MR_MMU_NOTIFY : 0));
	munmap(mem + PAGE, PAGE);
	unit_capture(&cap);
	ck_assert_int_eq(reg(mem, 3 * PAGE, KEY, &mr), 0);
	must_fail(mr, FI_EFAULT, 3015, "MRF-E3015: ");
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "bytes 4096..8191 of it are not mapped"));
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	must_be_silent();
	ck_assert_int_eq(state_of(mr), MRF_STATE_FAILED);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert_ptr_null(fi_mr_desc(mr));
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_CLOSED);
	/* It keeps the key from nobody. */
	other = must_reg(mem, KEY);
	must_complete(other);
	env_must_close(mr);
	ck_assert_int_eq(reach(KEY, 0, 1), MRF_MR_OK);
	env_must_close(other);
	close_async();
}
END_TEST

START_TEST(the_reason_goes_into_the_buffer_of_the_reader)
{
	char buf[16];
	struct fi_eq_err_entry entry = { .err_data = buf, .err_data_size = sizeof(buf) };
	struct fi_eq_entry none;
	struct fid_mr *mr;
	uint32_t event;

	open_async(PINNED);
	fake_verbs_fail(FAKE_REG_MR, 1, ENOMEM);
	unit_capture(&cap);
	mr = must_reg(mem, KEY);
	ck_assert_int_eq(fi_eq_sread(eq, &event, &none, sizeof(none), ASYNC_TIMEOUT, 0),
			 -FI_EAVAIL);
	unit_captured(&cap);
	ck_assert_int_eq(fi_eq_readerr(eq, &entry, 0), sizeof(entry));
	ck_assert_ptr_eq(entry.err_data, buf);
	ck_assert_int_eq(strncmp(buf, "MRF-E3018: 0x", 13), 0);
	ck_assert_uint_eq(strlen(buf), sizeof(buf) - 1);
	env_must_close(mr);
	close_async();
}
END_TEST

static const struct {
	int kernel, err, code;
} kernel_says[] = {
	{ ENOMEM, FI_ENOMEM, 3018 }, { EPERM, FI_EPERM, 3018 }, { EFAULT, FI_EFAULT, 3015 },
	{ EINVAL, FI_EINVAL, 3019 }, { EIO, FI_EIO, 3020 },
};

START_TEST(whatever_the_kernel_answers_is_an_error_event)
{
	struct fid_mr *mr;

	open_async(PINNED);
	fake_verbs_fail(FAKE_REG_MR, 1, kernel_says[_i].kernel);
	unit_capture(&cap);
	mr = must_reg(mem, KEY);
	must_fail(mr, kernel_says[_i].err, kernel_says[_i].code, "0x");
	ck_assert_uint_eq(unit_lines(unit_captured(&cap)), 1);
	env_must_close(mr);
	/* The next one is none the worse for it. */
	mr = must_reg(mem, KEY);
	must_complete(mr);
	env_must_close(mr);
	close_async();
}
END_TEST

/* The kernel would have nothing to do with such a region. */
START_TEST(memory_of_a_region_without_rights_has_to_be_there_whatever_its_key)
{
	struct iovec iov = { .iov_len = PAGE };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .requested_key = KEY,
				   .context = &context,
				   .auth_key = (uint8_t *)"sesame",
				   .auth_key_size = _i ? 6 : 0 };
	struct fid_mr *mr;

	open_async(PINNED);
	iov.iov_base = mem;
	fake_verbs_fail(FAKE_REG_MR, 1, EFAULT);
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_regattr(&env.domain, &attr, 0, &mr), 0);
	must_fail(mr, FI_EFAULT, 3016, "0x");
	env_must_close(mr);
	close_async();
}
END_TEST

START_TEST(a_segment_that_fails_takes_the_others_with_it)
{
	struct iovec iov[2] = { { mem, PAGE }, { mem + 2 * PAGE, PAGE } };
	struct fid_mr *mr;

	open_async(PINNED);
	iov[0].iov_base = mem;
	iov[1].iov_base = mem + 2 * PAGE;
	fake_verbs_fail(FAKE_REG_MR, 2, ENOMEM);
	unit_capture(&cap);
	ck_assert_int_eq(fi_mr_regv(&env.domain, iov, 2, RW, 0, KEY, 0, &mr, &context), 0);
	must_fail(mr, FI_ENOMEM, 3018, "");
	unit_captured(&cap);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	env_must_close(mr);
	close_async();
}
END_TEST

/* One allocation after the other fails, in the call and in the thread. */
START_TEST(each_allocation_may_fail_once)
{
	static const uint64_t modes[] = { PINNED, PINNED | FI_MR_PROV_KEY, 0,
					  PINNED | FI_MR_MMU_NOTIFY };
	struct iovec iov[2];
	struct fi_eq_err_entry err;
	struct fi_eq_entry entry;
	unsigned nth = 0, failed = 0, events = 0;
	struct fid_mr *mr;
	uint32_t event;
	bool met;
	int ret;

	do {
		open_async(modes[_i]);
		hold(0);
		iov[0] = (struct iovec){ mem, PAGE };
		iov[1] = (struct iovec){ mem + 2 * PAGE, PAGE };
		unit_capture(&cap);
		fail_alloc(++nth);
		library_enter();
		ret = fi_mr_regv(&env.domain, iov, 2, RW, 0, KEY, 0, &mr, &context);
		library_leave();
		err = (struct fi_eq_err_entry){ 0 };
		if (!ret && fi_eq_sread(eq, &event, &entry, sizeof(entry), ASYNC_TIMEOUT, 0) < 0) {
			ck_assert_int_eq(fi_eq_readerr(eq, &err, 0), sizeof(err));
			ck_assert_int_eq(err.err, FI_ENOMEM);
			ck_assert_int_eq(err.prov_errno, 3022);
			/* What was pinned is not anybody's to reach. */
			ck_assert_uint_eq(fake_verbs.live_mrs, 0);
			events++;
		}
		met = allocs() >= nth;
		unit_captured(&cap);
		ck_assert_int_eq(ret || err.err, met);
		if (ret) {
			ck_assert_int_eq(ret, -FI_ENOMEM);
			ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E3022"));
			failed++;
			must_be_silent();
		} else {
			env_must_close(mr);
		}
		fail_alloc(0);
		/* And again, on the same objects. */
		mr = must_reg(mem, KEY);
		must_complete(mr);
		env_must_close(mr);
		close_async();
	} while (met);
	ck_assert_uint_ge(failed, 3);
	/* A provider key is taken by the thread. */
	ck_assert_int_eq(events > 0, _i == 1);
}
END_TEST

/* --- closing ---------------------------------------------------------------------- */

static void *close_it(void *arg)
{
	return (void *)(intptr_t)fi_close(arg);
}

START_TEST(a_region_that_waits_for_its_turn_is_closed_at_once)
{
	struct fid_mr *first, *second, *third;

	open_async(PINNED);
	first = must_hang(KEY);
	second = must_reg(mem + PAGE, KEY + 1);
	third = must_reg(mem + 2 * PAGE, KEY + 2);
	env_must_close(second);
	ck_assert_int_eq(reach(KEY + 1, 0, 1), MRF_MR_CLOSED);
	/* Its key can be taken again, by one behind the third. */
	second = must_reg(mem + PAGE, KEY + 1);
	let_go();
	must_complete(first);
	must_complete(third);
	must_complete(second);
	must_be_silent();
	ck_assert_uint_eq(fake_verbs.calls[FAKE_REG_MR], 3);
	env_must_close(first);
	env_must_close(second);
	env_must_close(third);
	close_async();
}
END_TEST

START_TEST(closing_waits_for_the_kernel_and_leaves_nothing)
{
	struct fid_mr *mr, *other;
	pthread_t closer;
	void *ret;

	open_async(PINNED | (_i ? FI_MR_PROV_KEY : 0));
	mr = must_hang(KEY);
	pthread_create(&closer, NULL, close_it, mr);
	while (state_of(mr) != MRF_STATE_CLOSED)
		usleep(1000);
	usleep(20000);
	ck_assert_int_eq(mr->fid.fclass, FI_CLASS_MR);
	/* The memory of the region is not given out again meanwhile. */
	other = must_reg(mem + PAGE, KEY + 1);
	ck_assert_ptr_ne(other, mr);
	let_go();
	pthread_join(closer, &ret);
	ck_assert_int_eq((int)(intptr_t)ret, 0);
	ck_assert_uint_eq(fake_verbs_covering(mem, PAGE), 0);
	must_complete(other);
	must_be_silent();
	env_must_close(other);
	close_async();
}
END_TEST

START_TEST(what_the_kernel_keeps_of_a_region_closed_meanwhile_is_closed_later)
{
	struct fid_mr *mr;
	pthread_t closer;
	void *ret;

	open_async(PINNED);
	auth_key = _i ? "sesame" : NULL;
	mr = must_hang(KEY);
	unit_capture(&cap);
	pthread_create(&closer, NULL, close_it, mr);
	while (state_of(mr) != MRF_STATE_CLOSED)
		usleep(1000);
	fake_verbs_fail_always(FAKE_DEREG_MR, EBUSY);
	let_go();
	pthread_join(closer, &ret);
	ck_assert_int_eq((int)(intptr_t)ret, -FI_EBUSY);
	unit_captured(&cap);
	ck_assert_int_eq(state_of(mr), MRF_STATE_FAILED);
	ck_assert_uint_eq(fake_verbs.live_mrs, _i + 1);
	fake_verbs_fail(FAKE_DEREG_MR, 0, 0);
	env_must_close(mr);
	ck_assert_uint_eq(fake_verbs.live_mrs, 0);
	must_be_silent();
	auth_key = NULL;
	close_async();
}
END_TEST

/* Of three regions the middle one is closed with its event still unread. */
START_TEST(the_unread_event_of_a_closed_region_is_taken_back)
{
	struct fid_mr *mr[3];
	unsigned i;

	open_async(PINNED);
	unit_capture(&cap);
	for (i = 0; i < 3; i++) {
		if (_i && i == 1)
			munmap(mem + PAGE, PAGE);
		mr[i] = must_reg(mem + i * PAGE, i);
	}
	while (state_of(mr[2]) != MRF_STATE_ENABLED)
		usleep(1000);
	unit_captured(&cap);
	ck_assert_int_eq(state_of(mr[1]), _i ? MRF_STATE_FAILED : MRF_STATE_ENABLED);
	env_must_close(mr[1]);
	must_complete(mr[0]);
	must_complete(mr[2]);
	must_be_silent();
	env_must_close(mr[0]);
	env_must_close(mr[2]);
	close_async();
}
END_TEST

/* Nobody has been told the number yet. */
START_TEST(a_pending_region_counts_nothing)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid ep = { .fclass = FI_CLASS_EP };
	struct fid_cntr *cntr;
	struct mrf_obj obj;
	struct mrf_mr_port port;
	struct fid_mr *mr;

	open_async(_i ? PINNED | FI_MR_PROV_KEY : PINNED);
	mrf_obj_init(&obj, &ep, NULL);
	ck_assert_int_eq(mrf_mr_port_open(&env.space, &port, &obj, true, NULL, 0), 0);
	ck_assert_int_eq(mrf_cntr_open(&env.obj, &attr, &cntr, NULL), 0);
	hold(1);
	ck_assert_int_eq(reg_flags(mem, PAGE, KEY, FI_RMA_EVENT, &mr), 0);
	await_hold();
	ck_assert_int_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	mrf_mr_event(&env.space, mrf_mr_from_fid(&mr->fid)->event->number, &port);
	ck_assert_uint_eq(fi_cntr_read(cntr), 0);
	let_go();
	must_complete(mr);
	mrf_mr_event(&env.space, mrf_mr_from_fid(&mr->fid)->event->number, &port);
	ck_assert_uint_eq(fi_cntr_read(cntr), 1);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	ck_assert_int_eq(mrf_mr_port_close(&env.space, &port), 0);
	mrf_mr_port_free(&port);
	mrf_obj_fini(&obj);
	env_must_close(mr);
	close_async();
}
END_TEST

START_TEST(the_domain_is_busy_while_a_region_is_pending)
{
	struct fid_mr *mr;

	open_async(PINNED);
	mr = must_hang(KEY);
	unit_capture(&cap);
	ck_assert_int_eq(mrf_mr_space_busy(&env.space), -FI_EBUSY);
	ck_assert_ptr_nonnull(strstr(unit_captured(&cap), "MRF-E2001"));
	let_go();
	must_complete(mr);
	env_must_close(mr);
	close_async();
}
END_TEST

/* --- binding the queue ------------------------------------------------------------ */

START_TEST(the_queue_is_bound_before_the_first_region)
{
	struct fid_mr *mr;

	back_open(PINNED);
	eq_open();
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_int_eq(bind_eq(), -FI_EOPBADSTATE);
	/* It goes on as before. */
	env_must_close(mr);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	must_be_silent();
	env_must_close(mr);
	ck_assert_int_eq(bind_eq(), 0);
	mr = must_reg(mem, KEY);
	must_complete(mr);
	env_must_close(mr);
	close_async();
}
END_TEST

START_TEST(without_a_thread_or_memory_registration_stays_synchronous)
{
	struct fid_mr *mr;

	back_open(PINNED);
	eq_open();
	no_thread = EAGAIN;
	ck_assert_int_eq(bind_eq(), -FI_EAGAIN);
	no_thread = 0;
	fail_alloc(1);
	ck_assert_int_eq(bind_eq(), -FI_ENOMEM);
	fail_alloc(0);
	mr = env_must_reg(mem, PAGE, RW, KEY);
	ck_assert_ptr_nonnull(fi_mr_desc(mr));
	env_must_close(mr);
	close_async();
}
END_TEST

/* --- several threads -------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 150

static atomic_uint told_of, failed_of;

/* Registers; closes some at once, some when the event is there, whoever reads that. */
static void *hammer(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg, seed = me + 1, i;
	unsigned char *addr = mem + (8 * me + 2) * PAGE;
	struct fid_mr *mr;

	for (i = 0; i < ROUNDS; i++) {
		unsigned kind = (unsigned)rand_r(&seed) % 4;

		ck_assert_int_eq(reg(kind == 3 ? NULL : addr, PAGE, me, &mr), 0);
		if (kind)
			while (state_of(mr) == MRF_STATE_PENDING)
				usleep(100);
		if (kind > 1)
			ck_assert_int_eq(state_of(mr), kind == 3 && env.space.mode
							       ? MRF_STATE_FAILED
							       : MRF_STATE_ENABLED);
		ck_assert_int_eq(fi_close(&mr->fid), 0);
	}
	return NULL;
}

static atomic_bool hammering;

static void *read_all(void *arg)
{
	struct fi_eq_err_entry err;
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	(void)arg;
	while (atomic_load(&hammering)) {
		err = (struct fi_eq_err_entry){ 0 };
		ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
		if (ret == -FI_EAVAIL && fi_eq_readerr(eq, &err, 0) == sizeof(err)) {
			ck_assert_int_eq(err.err, FI_EFAULT);
			ck_assert_ptr_eq(err.context, &context);
			atomic_fetch_add(&failed_of, 1);
		} else if (ret == sizeof(entry)) {
			ck_assert_uint_eq(event, FI_MR_COMPLETE);
			ck_assert_ptr_eq(entry.context, &context);
			atomic_fetch_add(&told_of, 1);
		}
	}
	return NULL;
}

START_TEST(several_threads_register_read_and_close)
{
	pthread_t thread[THREADS], reader;
	struct fid_mr *mr;
	uintptr_t i;

	open_async(_i ? 0 : PINNED);
	atomic_store(&hammering, true);
	unit_capture(&cap);
	pthread_create(&reader, NULL, read_all, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, hammer, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	/* Those may all have been closed before the reader came to their events. */
	ck_assert_int_eq(reg(mem, PAGE, THREADS, &mr), 0);
	while (!atomic_load(&told_of))
		usleep(100);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	atomic_store(&hammering, false);
	pthread_join(reader, NULL);
	unit_captured(&cap);
	/* Nothing is left of the regions, all of which are closed. */
	must_be_silent();
	close_async();
}
END_TEST

static TCase *completing(void)
{
	TCase *tc = tcase_create("completing");

	tcase_add_test(tc, the_call_returns_before_the_kernel_is_done);
	tcase_add_test(tc, regions_complete_in_the_order_of_the_calls);
	tcase_add_test(tc, several_segments_complete_as_one_region);
	tcase_add_loop_test(tc, a_provider_key_carries_the_rkey_once_it_is_there, 0, 2);
	tcase_add_test(tc, memory_counts_as_it_is_when_the_registration_begins);
	tcase_add_loop_test(tc, all_256_modes_serve_a_region_that_was_registered_asynchronously, 0,
			    256 / MODES_AT_A_TIME);
	tcase_add_loop_test(tc, mr_is_written_before_the_event_can_be_read, 0, 2);
	tcase_add_test(tc, mr_is_not_written_once_the_call_has_returned);
	return tc;
}

static TCase *failing(void)
{
	TCase *tc = tcase_create("failing");

	tcase_add_test(tc, a_refused_call_makes_no_event);
	tcase_add_loop_test(tc, memory_that_is_not_there_is_an_error_event, 0, 2);
	tcase_add_test(tc, the_reason_goes_into_the_buffer_of_the_reader);
	tcase_add_loop_test(tc, whatever_the_kernel_answers_is_an_error_event, 0,
			    sizeof(kernel_says) / sizeof(kernel_says[0]));
	tcase_add_loop_test(tc, memory_of_a_region_without_rights_has_to_be_there_whatever_its_key,
			    0, 2);
	tcase_add_test(tc, a_segment_that_fails_takes_the_others_with_it);
	tcase_add_loop_test(tc, each_allocation_may_fail_once, 0, 4);
	return tc;
}

static TCase *closing(void)
{
	TCase *tc = tcase_create("closing");

	tcase_add_test(tc, a_region_that_waits_for_its_turn_is_closed_at_once);
	tcase_add_loop_test(tc, closing_waits_for_the_kernel_and_leaves_nothing, 0, 2);
	tcase_add_loop_test(tc, what_the_kernel_keeps_of_a_region_closed_meanwhile_is_closed_later,
			    0, 2);
	tcase_add_loop_test(tc, the_unread_event_of_a_closed_region_is_taken_back, 0, 2);
	tcase_add_loop_test(tc, a_pending_region_counts_nothing, 0, 2);
	tcase_add_test(tc, the_domain_is_busy_while_a_region_is_pending);
	return tc;
}

static TCase *binding(void)
{
	TCase *tc = tcase_create("binding");

	tcase_add_test(tc, the_queue_is_bound_before_the_first_region);
	tcase_add_test(tc, without_a_thread_or_memory_registration_stays_synchronous);
	return tc;
}

static TCase *threads(void)
{
	TCase *tc = tcase_create("threads");

	tcase_add_loop_test(tc, several_threads_register_read_and_close, 0, 2);
	return tc;
}

UNIT_MAIN("mr_async", completing, failing, closing, binding, threads)
