/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "obj/wait.h"
#include "obj_fixture.h"

/*
 * --- descriptors that fail on order --------------------------------------------------
 */

static int fds_until_failure = -1; /* -1: never */

static bool fd_fails(void)
{
	if (fds_until_failure < 0 || fds_until_failure--)
		return false;
	errno = EMFILE;
	return true;
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
	return fd_fails() ? -1 : __real_eventfd(count, flags);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
	return fd_fails() ? -1 : __real_epoll_create1(flags);
}

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return fd_fails() ? -1 : __real_epoll_ctl(epfd, op, fd, event);
}

/*
 * --- a thread that is slow between two of its steps ------------------------------------
 */

static atomic_bool hold_write; /* a write does not happen while this is set */
static atomic_bool writing;

ssize_t __real_write(int fd, const void *buf, size_t count);
ssize_t __wrap_write(int fd, const void *buf, size_t count);
ssize_t __wrap_write(int fd, const void *buf, size_t count)
{
	atomic_store(&writing, true);
	while (atomic_load(&hold_write))
		sleep_ms(1);
	return __real_write(fd, buf, count);
}

/*
 * --- a source: an eventfd that becomes progress --------------------------------------
 */

struct fake {
	struct mrf_source source;
	atomic_int polled;
	atomic_int armed;
	atomic_int fired; /* of these, after an event */
	atomic_int work;  /* what a poll turned into progress */
	atomic_bool hang; /* a poll or finish does not return while this is set */
	atomic_int finished;
};

static void fake_poll(struct mrf_source *source)
{
	struct fake *fake = mrf_container_of(source, struct fake, source);
	uint64_t n;

	atomic_fetch_add(&fake->polled, 1);
	while (atomic_load(&fake->hang))
		sleep_ms(1);
	if (source->fd >= 0 && read(source->fd, &n, sizeof(n)) == sizeof(n))
		atomic_fetch_add(&fake->work, (int)n);
}

static void fake_arm(struct mrf_source *source, bool fired)
{
	struct fake *fake = mrf_container_of(source, struct fake, source);

	atomic_fetch_add(&fake->armed, 1);
	atomic_fetch_add(&fake->fired, fired);
}

static void fake_finish(struct mrf_source *source)
{
	struct fake *fake = mrf_container_of(source, struct fake, source);

	atomic_store(&source->left, false);
	atomic_fetch_add(&fake->finished, 1);
	while (atomic_load(&fake->hang))
		sleep_ms(1);
}

static void fake_init(struct fake *fake, bool with_fd)
{
	memset(fake, 0, sizeof(*fake));
	fake->source.poll = fake_poll;
	fake->source.arm = fake_arm;
	fake->source.finish = fake_finish;
	fake->source.fd = with_fd ? __real_eventfd(0, EFD_NONBLOCK) : -1;
}

static void fake_event(struct fake *fake)
{
	const uint64_t one = 1;

	ck_assert_int_eq(write(fake->source.fd, &one, sizeof(one)), sizeof(one));
}

static void fake_fini(struct fake *fake)
{
	if (fake->source.fd >= 0)
		close(fake->source.fd);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static ssize_t never(void *arg)
{
	(void)arg;
	return -FI_EAGAIN;
}

static ssize_t when_set(void *arg)
{
	return atomic_load((atomic_int *)arg) ? 7 : -FI_EAGAIN;
}

/*
 * --- kinds ---------------------------------------------------------------------------
 */

START_TEST(wait_offers_none_unspec_and_fd_only)
{
	static const enum fi_wait_obj no[] = { FI_WAIT_SET, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD,
					       FI_WAIT_POLLFD };
	struct mrf_wait wait;
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(no); i++)
		ck_refused(FI_ENOSYS, 2011, mrf_wait_init(&wait, no[i]));
	ck_refused(FI_EINVAL, 2010, mrf_wait_init(&wait, (enum fi_wait_obj)77));
	ck_refused(FI_EINVAL, 2010, mrf_wait_init(&wait, (enum fi_wait_obj) - 1));
	ck_quiet(0, mrf_wait_init(&wait, FI_WAIT_NONE));
	ck_assert_int_eq(wait.epoll_fd, -1);
	mrf_wait_fini(&wait);
	ck_quiet(0, mrf_wait_init(&wait, FI_WAIT_UNSPEC));
	ck_assert_int_eq(wait.epoll_fd, -1);
	mrf_wait_fini(&wait);
	ck_quiet(0, mrf_wait_init(&wait, FI_WAIT_FD));
	ck_assert_int_ge(wait.epoll_fd, 0);
	mrf_wait_fini(&wait);
}
END_TEST

START_TEST(wait_without_descriptors_fails_and_leaves_none_open)
{
	int before = open_fds(), n, failed = 0;
	struct mrf_wait wait;
	struct unit_capture cap;
	int ret;

	for (n = 0;; n++) {
		fds_until_failure = n;
		unit_capture(&cap);
		ret = mrf_wait_init(&wait, FI_WAIT_FD);
		fds_until_failure = -1;
		unit_captured(&cap);
		if (!ret)
			break;
		failed++;
		ck_assert_int_eq(ret, -FI_EMFILE);
		ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E2012"));
		ck_assert_int_eq(open_fds(), before);
	}
	ck_assert_int_eq(failed, 5);
	mrf_wait_fini(&wait);
	ck_assert_int_eq(open_fds(), before);
}
END_TEST

/* A source that is linked before there are descriptors, twice. */
START_TEST(wait_unspec_needs_no_descriptor_until_somebody_waits)
{
	struct mrf_wait_link la = { .wait = NULL }, lb = { .wait = NULL };
	struct mrf_wait wait;
	struct fake a;
	int before;

	fake_init(&a, true);
	before = open_fds();
	ck_quiet(0, mrf_wait_init(&wait, FI_WAIT_UNSPEC));
	ck_quiet(0, mrf_wait_link(&wait, &la, &a.source));
	ck_quiet(0, mrf_wait_link(&wait, &lb, &a.source));
	mrf_wait_poll(&wait);
	mrf_wait_signal(&wait);
	ck_assert_int_eq(open_fds(), before);
	ck_quiet(0, mrf_wait_try(&wait));
	ck_assert_int_ge(wait.epoll_fd, 0);
	ck_assert(!readable(wait.epoll_fd));
	fake_event(&a);
	ck_assert(readable(wait.epoll_fd));
	mrf_wait_unlink(&la);
	ck_assert(readable(wait.epoll_fd));
	mrf_wait_unlink(&lb);
	ck_assert(!readable(wait.epoll_fd));
	mrf_wait_fini(&wait);
	ck_assert_int_eq(open_fds(), before);
	fake_fini(&a);
}
END_TEST

static int wait_in_vain(struct mrf_wait *wait)
{
	return (int)mrf_wait_until(wait, 1, never, NULL);
}

static int ask_for_fd(struct mrf_wait *wait)
{
	int fd = -2, ret = mrf_wait_control(wait, NULL, FI_GETWAIT, &fd);

	ck_assert(ret ? fd == -2 : fd >= 0);
	return ret;
}

/* Whichever way somebody waits, and whichever descriptor is missing. */
START_TEST(wait_that_gets_no_descriptor_says_so_and_works_later)
{
	static const struct {
		int (*wait)(struct mrf_wait *wait);
		int works;
	} ways[] = { { wait_in_vain, -FI_ETIMEDOUT }, { mrf_wait_try, 0 }, { ask_for_fd, 0 } };
	struct mrf_wait_link link = { .wait = NULL };
	struct mrf_wait wait;
	struct fake a;
	int before, n;
	size_t i;

	fake_init(&a, true);
	before = open_fds();
	for (i = 0; i < MRF_ARRAY_SIZE(ways); i++) {
		ck_quiet(0, mrf_wait_init(&wait, FI_WAIT_UNSPEC));
		ck_quiet(0, mrf_wait_link(&wait, &link, &a.source));
		for (n = 0; n < 6; n++) {
			fds_until_failure = n;
			ck_refused(FI_EMFILE, 2012, ways[i].wait(&wait));
			ck_assert_int_eq(open_fds(), before);
		}
		fds_until_failure = -1;
		ck_quiet(ways[i].works, ways[i].wait(&wait));
		mrf_wait_unlink(&link);
		mrf_wait_fini(&wait);
		ck_assert_int_eq(open_fds(), before);
	}
	fake_fini(&a);
}
END_TEST

/*
 * --- sources -------------------------------------------------------------------------
 */

START_TEST(wait_poll_polls_each_linked_source_once)
{
	struct mrf_wait_link la = { .wait = NULL }, lb = { .wait = NULL };
	struct mrf_wait wait;
	struct fake a, b;

	fake_init(&a, true);
	fake_init(&b, false);
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_NONE), 0);
	mrf_wait_poll(&wait);
	ck_assert_int_eq(mrf_wait_link(&wait, &la, &a.source), 0);
	ck_assert_int_eq(mrf_wait_link(&wait, &lb, &b.source), 0);
	mrf_wait_poll(&wait);
	ck_assert_int_eq(a.polled, 1);
	ck_assert_int_eq(b.polled, 1);
	mrf_wait_unlink(&la);
	mrf_wait_unlink(&la);
	ck_assert_ptr_null(la.wait);
	mrf_wait_poll(&wait);
	ck_assert_int_eq(a.polled, 1);
	ck_assert_int_eq(b.polled, 2);
	mrf_wait_unlink(&lb);
	mrf_wait_fini(&wait);
	fake_fini(&a);
}
END_TEST

START_TEST(wait_source_linked_twice_wakes_until_both_are_gone)
{
	struct mrf_wait_link la = { .wait = NULL }, lb = { .wait = NULL };
	struct mrf_wait wait;
	struct fake a;

	fake_init(&a, true);
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_FD), 0);
	ck_assert_int_eq(mrf_wait_link(&wait, &la, &a.source), 0);
	ck_assert_int_eq(mrf_wait_link(&wait, &lb, &a.source), 0);
	fake_event(&a);
	ck_assert(readable(wait.epoll_fd));
	mrf_wait_unlink(&la);
	ck_assert(readable(wait.epoll_fd));
	mrf_wait_unlink(&lb);
	ck_assert(!readable(wait.epoll_fd));
	mrf_wait_fini(&wait);
	fake_fini(&a);
}
END_TEST

START_TEST(wait_link_fails_when_the_descriptor_cannot_be_watched)
{
	struct mrf_wait_link link = { .wait = NULL };
	struct mrf_wait wait;
	struct fake a;

	fake_init(&a, true);
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_FD), 0);
	fds_until_failure = 0;
	ck_refused(FI_EMFILE, 2014, mrf_wait_link(&wait, &link, &a.source));
	fds_until_failure = -1;
	ck_assert_ptr_null(link.wait);
	mrf_wait_poll(&wait);
	ck_assert_int_eq(a.polled, 0);
	mrf_wait_unlink(&link);
	mrf_wait_fini(&wait);
	fake_fini(&a);
}
END_TEST

static void *poll_once(void *arg)
{
	mrf_wait_poll(arg);
	return NULL;
}

struct unlinking {
	struct mrf_wait_link *link;
	atomic_bool done;
};

static void *unlink_thread(void *arg)
{
	struct unlinking *u = arg;

	mrf_wait_unlink(u->link);
	atomic_store(&u->done, true);
	return NULL;
}

START_TEST(wait_unlink_returns_after_the_poll_in_progress)
{
	struct mrf_wait_link link = { .wait = NULL };
	struct unlinking u = { .link = &link };
	pthread_t poller, unlinker;
	struct mrf_wait wait;
	struct fake a;

	fake_init(&a, false);
	a.hang = true;
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_NONE), 0);
	ck_assert_int_eq(mrf_wait_link(&wait, &link, &a.source), 0);
	ck_assert_int_eq(pthread_create(&poller, NULL, poll_once, &wait), 0);
	while (!atomic_load(&a.polled))
		sleep_ms(1);
	ck_assert_int_eq(pthread_create(&unlinker, NULL, unlink_thread, &u), 0);
	sleep_ms(50);
	ck_assert(!atomic_load(&u.done));
	atomic_store(&a.hang, false);
	pthread_join(unlinker, NULL);
	pthread_join(poller, NULL);
	ck_assert(atomic_load(&u.done));
	mrf_wait_fini(&wait);
}
END_TEST

/* Finishes, which hangs; polls do not. */
static void *finish_once(void *arg)
{
	mrf_wait_finish(arg);
	return NULL;
}

START_TEST(wait_what_one_source_finishes_keeps_no_other_from_it)
{
	struct mrf_wait_link la = { .wait = NULL }, lb = { .wait = NULL };
	struct mrf_wait wait;
	struct fake a, b;
	pthread_t thread;

	fake_init(&a, false);
	fake_init(&b, false);
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_NONE), 0);
	ck_assert_int_eq(mrf_wait_link(&wait, &la, &a.source), 0);
	ck_assert_int_eq(mrf_wait_link(&wait, &lb, &b.source), 0);
	a.source.left = true;
	b.source.left = true;
	a.hang = true;
	ck_assert_int_eq(pthread_create(&thread, NULL, finish_once, &wait), 0);
	while (!atomic_load(&a.finished))
		sleep_ms(1);
	mrf_wait_finish(&wait);
	ck_assert_int_eq(b.finished, 1);
	atomic_store(&a.hang, false);
	pthread_join(thread, NULL);
	mrf_wait_poll(&wait);
	ck_assert_int_eq(a.finished, 1);
	ck_assert_int_eq(b.finished, 1);
	b.source.left = true;
	mrf_wait_poll(&wait);
	ck_assert_int_eq(a.finished, 1);
	ck_assert_int_eq(b.finished, 2);
	mrf_wait_unlink(&la);
	mrf_wait_unlink(&lb);
	mrf_wait_fini(&wait);
}
END_TEST

/*
 * --- blocking ------------------------------------------------------------------------
 */

START_TEST(wait_timeout_is_neither_early_nor_endless)
{
	struct mrf_wait wait;
	double start;

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_UNSPEC), 0);
	ck_assert_int_eq(mrf_wait_until(&wait, 0, never, NULL), -FI_ETIMEDOUT);
	start = now_ms();
	ck_assert_int_eq(mrf_wait_until(&wait, 60, never, NULL), -FI_ETIMEDOUT);
	ck_took(start, 60);
	ck_assert_int_eq(atomic_load(&wait.waiters), 0);
	mrf_wait_fini(&wait);
}
END_TEST

static ssize_t ring_again(void *arg)
{
	mrf_wait_signal(arg);
	return -FI_EAGAIN;
}

START_TEST(wait_that_is_woken_all_the_time_ends_in_time)
{
	struct mrf_wait wait;

	ck_quiet(0, mrf_wait_init(&wait, FI_WAIT_UNSPEC));
	ck_assert_int_eq(mrf_wait_until(&wait, 30, ring_again, &wait), -FI_ETIMEDOUT);
	mrf_wait_fini(&wait);
}
END_TEST

static atomic_int tries;

/* It has come when the thread that slept runs again, though nothing woke that. */
static ssize_t comes_late(void *arg)
{
	(void)arg;
	return ++tries == 2 ? 7 : -FI_EAGAIN;
}

START_TEST(wait_looks_once_more_when_its_time_is_over)
{
	struct mrf_wait wait;

	ck_quiet(0, mrf_wait_init(&wait, FI_WAIT_UNSPEC));
	tries = 0;
	ck_assert_int_eq(mrf_wait_until(&wait, 10, comes_late, NULL), 7);
	mrf_wait_fini(&wait);
}
END_TEST

START_TEST(wait_arms_and_polls_before_it_tries)
{
	struct mrf_wait_link link = { .wait = NULL };
	struct mrf_wait wait;
	struct fake a;

	fake_init(&a, true);
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_UNSPEC), 0);
	ck_assert_int_eq(mrf_wait_link(&wait, &link, &a.source), 0);
	fake_event(&a);
	ck_assert_int_eq(mrf_wait_until(&wait, -1, when_set, &a.work), 7);
	ck_assert_int_eq(a.armed, 1);
	ck_assert_int_eq(a.polled, 1);
	mrf_wait_unlink(&link);
	mrf_wait_fini(&wait);
	fake_fini(&a);
}
END_TEST

struct blocked {
	struct mrf_wait *wait;
	ssize_t (*attempt)(void *arg);
	void *arg;
	ssize_t ret;
};

static void *block_thread(void *arg)
{
	struct blocked *b = arg;

	b->ret = mrf_wait_until(b->wait, 30000, b->attempt, b->arg);
	return NULL;
}

static void await_waiters(struct mrf_wait *wait, int n)
{
	while (atomic_load(&wait->waiters) < n)
		sleep_ms(1);
	/* They are counted before they block: let them get there, most of the time. */
	sleep_ms(20);
}

START_TEST(wait_source_event_wakes_a_blocked_thread)
{
	struct mrf_wait_link link = { .wait = NULL };
	struct mrf_wait wait;
	struct blocked b = { .wait = &wait, .attempt = when_set };
	pthread_t thread;
	struct fake a;

	fake_init(&a, true);
	b.arg = &a.work;
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_UNSPEC), 0);
	ck_assert_int_eq(mrf_wait_link(&wait, &link, &a.source), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, block_thread, &b), 0);
	await_waiters(&wait, 1);
	ck_assert_int_eq(a.fired, 0);
	fake_event(&a);
	pthread_join(thread, NULL);
	ck_assert_int_eq(b.ret, 7);
	/* Armed before it slept, and after the event, by which it may have to sleep again. */
	ck_assert_int_eq(a.armed, 2);
	ck_assert_int_eq(a.fired, 1);
	mrf_wait_unlink(&link);
	mrf_wait_fini(&wait);
	fake_fini(&a);
}
END_TEST

START_TEST(wait_source_linked_while_a_thread_blocks_wakes_it_too)
{
	struct mrf_wait_link link = { .wait = NULL };
	struct mrf_wait wait;
	struct blocked b = { .wait = &wait, .attempt = when_set };
	pthread_t thread;
	struct fake a;

	fake_init(&a, true);
	fake_event(&a);
	b.arg = &a.work;
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_UNSPEC), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, block_thread, &b), 0);
	await_waiters(&wait, 1);
	ck_assert_int_eq(mrf_wait_link(&wait, &link, &a.source), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(b.ret, 7);
	mrf_wait_unlink(&link);
	mrf_wait_fini(&wait);
	fake_fini(&a);
}
END_TEST

START_TEST(wait_one_signal_wakes_every_blocked_thread)
{
	enum { N = 5 };
	struct blocked b[N];
	pthread_t thread[N];
	struct mrf_wait wait;
	atomic_int set = 0;
	int i;

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_FD), 0);
	for (i = 0; i < N; i++) {
		b[i] = (struct blocked){ .wait = &wait, .attempt = when_set, .arg = &set };
		ck_assert_int_eq(pthread_create(&thread[i], NULL, block_thread, &b[i]), 0);
	}
	await_waiters(&wait, N);
	atomic_store(&set, 1);
	mrf_wait_signal(&wait);
	for (i = 0; i < N; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_int_eq(b[i].ret, 7);
	}
	mrf_wait_fini(&wait);
}
END_TEST

static ssize_t take_token(void *arg)
{
	atomic_int *tokens = arg;
	int n = atomic_load(tokens);

	while (n > 0) {
		if (atomic_compare_exchange_weak(tokens, &n, n - 1))
			return 1;
	}
	return -FI_EAGAIN;
}

struct eater {
	struct mrf_wait *wait;
	atomic_int *tokens;
	int eaten;
};

enum { EATERS = 3, TOKENS = 3000 };

static void *eat(void *arg)
{
	struct eater *e = arg;

	while (e->eaten < TOKENS) {
		if (mrf_wait_until(e->wait, 30000, take_token, e->tokens) != 1)
			break;
		e->eaten++;
	}
	return NULL;
}

START_TEST(wait_no_wakeup_is_lost_between_threads)
{
	atomic_int tokens = 0;
	struct eater e[EATERS];
	pthread_t thread[EATERS];
	struct mrf_wait wait;
	int i;

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_UNSPEC), 0);
	for (i = 0; i < EATERS; i++) {
		e[i] = (struct eater){ .wait = &wait, .tokens = &tokens };
		ck_assert_int_eq(pthread_create(&thread[i], NULL, eat, &e[i]), 0);
	}
	for (i = 0; i < EATERS * TOKENS; i++) {
		atomic_fetch_add(&tokens, 1);
		mrf_wait_signal(&wait);
	}
	for (i = 0; i < EATERS; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_int_eq(e[i].eaten, TOKENS);
	}
	mrf_wait_fini(&wait);
}
END_TEST

static void on_signal(int sig)
{
	(void)sig;
}

START_TEST(wait_signal_handler_interrupts)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct mrf_wait wait;
	struct blocked b = { .wait = &wait, .attempt = never };
	pthread_t thread;

	ck_assert_int_eq(sigaction(SIGUSR1, &act, NULL), 0);
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_UNSPEC), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, block_thread, &b), 0);
	await_waiters(&wait, 1);
	/* Until it hits the thread inside poll(2). */
	while (atomic_load(&wait.waiters)) {
		pthread_kill(thread, SIGUSR1);
		sleep_ms(5);
	}
	pthread_join(thread, NULL);
	ck_assert_int_eq(b.ret, -FI_EINTR);
	mrf_wait_fini(&wait);
}
END_TEST

START_TEST(wait_without_a_descriptor_for_the_thread_does_not_block)
{
	struct mrf_wait wait;

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_FD), 0);
	fds_until_failure = 0;
	ck_refused(FI_EMFILE, 2015, mrf_wait_until(&wait, -1, never, NULL));
	fds_until_failure = -1;
	ck_assert_int_eq(atomic_load(&wait.waiters), 0);
	mrf_wait_fini(&wait);
}
END_TEST

START_TEST(wait_is_busy_while_a_thread_blocks)
{
	struct mrf_wait wait;
	atomic_int set = 0;
	struct blocked b = { .wait = &wait, .attempt = when_set, .arg = &set };
	pthread_t thread;

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_UNSPEC), 0);
	ck_quiet(0, mrf_wait_busy(&wait));
	ck_assert_int_eq(pthread_create(&thread, NULL, block_thread, &b), 0);
	await_waiters(&wait, 1);
	ck_refused(FI_EBUSY, 2013, mrf_wait_busy(&wait));
	atomic_store(&set, 1);
	mrf_wait_signal(&wait);
	pthread_join(thread, NULL);
	ck_quiet(0, mrf_wait_busy(&wait));
	mrf_wait_fini(&wait);
}
END_TEST

/*
 * --- the application's descriptor ----------------------------------------------------
 */

START_TEST(wait_signal_leaves_the_descriptor_alone_until_watched)
{
	struct mrf_wait wait;
	int fd = -1;

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_FD), 0);
	mrf_wait_signal(&wait);
	ck_assert(!readable(wait.epoll_fd));
	ck_assert_int_eq(mrf_wait_control(&wait, NULL, FI_GETWAIT, &fd), 0);
	ck_assert_int_eq(fd, wait.epoll_fd);
	mrf_wait_signal(&wait);
	mrf_wait_signal(&wait);
	ck_assert(readable(fd));
	mrf_wait_fini(&wait);
}
END_TEST

START_TEST(wait_try_takes_back_old_signals_arms_and_polls)
{
	struct mrf_wait_link link = { .wait = NULL };
	struct mrf_wait wait;
	struct fake a;

	fake_init(&a, true);
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_FD), 0);
	ck_assert_int_eq(mrf_wait_link(&wait, &link, &a.source), 0);
	fake_event(&a);
	ck_quiet(0, mrf_wait_try(&wait));
	ck_assert_int_eq(a.work, 1);
	ck_assert_int_eq(a.armed, 1);
	ck_assert(!readable(wait.epoll_fd));
	mrf_wait_signal(&wait);
	ck_assert(readable(wait.epoll_fd));
	ck_quiet(0, mrf_wait_try(&wait));
	ck_assert(!readable(wait.epoll_fd));
	fake_event(&a);
	ck_assert(readable(wait.epoll_fd));
	mrf_wait_unlink(&link);
	mrf_wait_fini(&wait);
	fake_fini(&a);
}
END_TEST

static void *signal_once(void *arg)
{
	mrf_wait_signal(arg);
	return NULL;
}

START_TEST(wait_try_that_meets_a_signal_half_given_takes_it_back_later)
{
	struct mrf_wait wait;
	pthread_t thread;
	int fd;

	ck_quiet(0, mrf_wait_init(&wait, FI_WAIT_FD));
	fd = wait.epoll_fd;
	ck_quiet(0, mrf_wait_try(&wait));
	atomic_store(&writing, false);
	atomic_store(&hold_write, true);
	ck_assert_int_eq(pthread_create(&thread, NULL, signal_once, &wait), 0);
	while (!atomic_load(&writing))
		sleep_ms(1);
	ck_quiet(0, mrf_wait_try(&wait));
	ck_assert(!readable(fd));
	atomic_store(&hold_write, false);
	pthread_join(thread, NULL);
	ck_assert(readable(fd));
	ck_quiet(0, mrf_wait_try(&wait));
	ck_assert(!readable(fd));
	mrf_wait_signal(&wait);
	ck_assert(readable(fd));
	mrf_wait_fini(&wait);
}
END_TEST

START_TEST(wait_blocked_thread_does_not_silence_the_descriptor)
{
	struct mrf_wait wait;

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_FD), 0);
	ck_quiet(0, mrf_wait_try(&wait));
	mrf_wait_signal(&wait);
	ck_assert_int_eq(mrf_wait_until(&wait, 10, never, NULL), -FI_ETIMEDOUT);
	ck_assert(readable(wait.epoll_fd));
	mrf_wait_fini(&wait);
}
END_TEST

START_TEST(wait_control_answers_fd_and_kind)
{
	struct fid cq = { .fclass = FI_CLASS_CQ };
	enum fi_wait_obj kind = FI_WAIT_SET;
	struct mrf_wait wait;
	int fd = -2;

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_NONE), 0);
	ck_refused(FI_ENODATA, 2017, mrf_wait_control(&wait, &cq, FI_GETWAIT, &fd));
	ck_assert_int_eq(fd, -2);
	ck_quiet(0, mrf_wait_control(&wait, &cq, FI_GETWAITOBJ, &kind));
	ck_assert_int_eq(kind, FI_WAIT_NONE);
	mrf_wait_fini(&wait);

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_UNSPEC), 0);
	ck_quiet(0, mrf_wait_control(&wait, &cq, FI_GETWAITOBJ, &kind));
	ck_assert_int_eq(kind, FI_WAIT_FD);
	ck_quiet(0, mrf_wait_control(&wait, &cq, FI_GETWAIT, &fd));
	ck_assert_int_eq(fd, wait.epoll_fd);
	ck_refused(FI_EINVAL, 2018, mrf_wait_control(&wait, &cq, FI_GETWAIT, NULL));
	ck_refused(FI_EINVAL, 2018, mrf_wait_control(&wait, &cq, FI_GETWAITOBJ, NULL));
	ck_refused(FI_ENOSYS, 2003, mrf_wait_control(&wait, &cq, FI_ALIAS, &fd));
	mrf_wait_fini(&wait);
}
END_TEST

START_TEST(wait_none_can_neither_block_nor_be_tried)
{
	struct mrf_wait wait;

	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_NONE), 0);
	ck_refused(FI_EINVAL, 2019, mrf_wait_may_block(&wait, "fi_cq_sread"));
	ck_refused(FI_EINVAL, 2016, mrf_wait_try(&wait));
	mrf_wait_signal(&wait);
	mrf_wait_fini(&wait);
	ck_assert_int_eq(mrf_wait_init(&wait, FI_WAIT_FD), 0);
	ck_quiet(0, mrf_wait_may_block(&wait, "fi_cq_sread"));
	mrf_wait_fini(&wait);
}
END_TEST

static TCase *tcase_sources(void)
{
	TCase *tc = tcase_create("sources");

	tcase_add_test(tc, wait_offers_none_unspec_and_fd_only);
	tcase_add_test(tc, wait_without_descriptors_fails_and_leaves_none_open);
	tcase_add_test(tc, wait_unspec_needs_no_descriptor_until_somebody_waits);
	tcase_add_test(tc, wait_that_gets_no_descriptor_says_so_and_works_later);
	tcase_add_test(tc, wait_poll_polls_each_linked_source_once);
	tcase_add_test(tc, wait_source_linked_twice_wakes_until_both_are_gone);
	tcase_add_test(tc, wait_link_fails_when_the_descriptor_cannot_be_watched);
	tcase_add_test(tc, wait_unlink_returns_after_the_poll_in_progress);
	tcase_add_test(tc, wait_what_one_source_finishes_keeps_no_other_from_it);
	return tc;
}

static TCase *tcase_blocking(void)
{
	TCase *tc = tcase_create("blocking");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, wait_timeout_is_neither_early_nor_endless);
	tcase_add_test(tc, wait_that_is_woken_all_the_time_ends_in_time);
	tcase_add_test(tc, wait_looks_once_more_when_its_time_is_over);
	tcase_add_test(tc, wait_arms_and_polls_before_it_tries);
	tcase_add_test(tc, wait_source_event_wakes_a_blocked_thread);
	tcase_add_test(tc, wait_source_linked_while_a_thread_blocks_wakes_it_too);
	tcase_add_test(tc, wait_one_signal_wakes_every_blocked_thread);
	tcase_add_test(tc, wait_no_wakeup_is_lost_between_threads);
	tcase_add_test(tc, wait_signal_handler_interrupts);
	tcase_add_test(tc, wait_without_a_descriptor_for_the_thread_does_not_block);
	tcase_add_test(tc, wait_is_busy_while_a_thread_blocks);
	return tc;
}

static TCase *tcase_descriptor(void)
{
	TCase *tc = tcase_create("descriptor");

	tcase_add_test(tc, wait_signal_leaves_the_descriptor_alone_until_watched);
	tcase_add_test(tc, wait_try_takes_back_old_signals_arms_and_polls);
	tcase_add_test(tc, wait_try_that_meets_a_signal_half_given_takes_it_back_later);
	tcase_add_test(tc, wait_blocked_thread_does_not_silence_the_descriptor);
	tcase_add_test(tc, wait_control_answers_fd_and_kind);
	tcase_add_test(tc, wait_none_can_neither_block_nor_be_tried);
	return tc;
}

UNIT_MAIN("wait", tcase_sources, tcase_blocking, tcase_descriptor)
