/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model of fi_mr(3) and of messages (tests/model) against the library on the fake fabric:
 * worlds of several threads, each with a peer in the same process.
 *
 * It breaks the fake library on purpose, too: the failing sequence has to come again with
 * its seed, shortened to one call.
 *
 *	MRFAB_SEED		another run (1)
 *	MRFAB_MODEL_STEPS	how many steps (100000; in worlds with messages, 20000)
 */
#include <arpa/inet.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <sys/vfs.h>
#include <time.h>
#include "contract/limits.h"
#include "ep_fixture.h"
#include "../model/run.h"

#define STEPS_OF_A_WORLD 1000

static struct fi_info *info(const struct conf *conf)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a630101) };
	struct fi_info *info = fi_allocinfo();

	info->fabric_attr->name = strdup("f");
	info->fabric_attr->prov_name = strdup("mrfab");
	info->domain_attr->mr_mode = (int)conf->mode | (conf->device ? FI_MR_HMEM : 0);
	if (conf->auth) {
		info->domain_attr->auth_key = (uint8_t *)strdup(auth_key(1));
		info->domain_attr->auth_key_size = strlen(auth_key(1));
	}
	info->caps = MRF_CAPS | (conf->event ? FI_RMA_EVENT : 0) | (conf->device ? FI_HMEM : 0) |
		     (conf->directed ? FI_DIRECTED_RECV : 0) | (conf->source ? FI_SOURCE : 0);
	info->addr_format = FI_SOCKADDR_IN;
	info->src_addr = malloc(sizeof(addr));
	memcpy(info->src_addr, &addr, sizeof(addr));
	info->src_addrlen = sizeof(addr);
	return info;
}

static const struct backend backend;

static void *open_peer(const struct conf *conf, unsigned thread)
{
	(void)thread;
	return mate_new(&backend, conf);
}

static void start(void *peer, const struct peer_ask *ask)
{
	mate_start(peer, ask);
}

static void end(void *peer, struct peer_answer *answer)
{
	mate_end(peer, answer);
}

static void close_peer(void *peer)
{
	mate_free(peer);
}

static const char *leftovers(void)
{
	static char text[80];
	unsigned live = fake_live();

	snprintf(text, sizeof(text), "%u things of the device are left", live);
	return live ? text : NULL;
}

static const struct backend backend = {
	.info = info,
	.peer_open = open_peer,
	.start = start,
	.end = end,
	.peer_close = close_peer,
	.leftovers = leftovers,
};

/* As pinning takes: so that what registers asynchronously is met while it does. */
static bool look_slowly(const void *addr, size_t len)
{
	static atomic_uint n;
	struct timespec t = { 0, 20000 };

	if (atomic_fetch_add(&n, 1) % 4 == 0)
		nanosleep(&t, NULL);
	return model_memory_there(addr, len);
}

/* Is there a file system here that keeps something? */
static bool kept_here(void)
{
	struct statfs fs;

	return !statfs(".", &fs) && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC;
}

static void run_worlds(unsigned steps, bool messages)
{
	struct plan plan = { .backend = &backend,
			     .seed = plan_seed(1),
			     .worlds = (steps + STEPS_OF_A_WORLD - 1) / STEPS_OF_A_WORLD,
			     .steps = STEPS_OF_A_WORLD,
			     .threads = 3,
			     .seconds = 120,
			     .budget = 120,
			     .files = kept_here(),
			     .messages = messages,
			     .out = stdout };

	fake.is_there = look_slowly;
	ck_assert_msg(model_run(&plan), "see above");
}

START_TEST(model_library_does_what_the_manual_says_in_any_order_of_calls)
{
	run_worlds(plan_number("MRFAB_MODEL_STEPS", 100000), false);
}
END_TEST

START_TEST(model_messages_match_receives_as_the_manual_says)
{
	run_worlds(plan_number("MRFAB_MODEL_STEPS", 20000), true);
}
END_TEST

/* As a library would be that cannot register some memory. */
static bool some_is_gone(const void *addr, size_t len)
{
	return model_memory_there(addr, len) && len % 8 != 5;
}

/* What a run that fails says: in a mode in which registering says so at once. */
static void fail_run(char *said, size_t size)
{
	FILE *out = tmpfile();
	struct plan plan = { .backend = &backend,
			     .seed = 12,
			     .first = 3,
			     .worlds = 1,
			     .steps = 300,
			     .threads = 1,
			     .seconds = 60,
			     .budget = 60,
			     .out = out };

	fake.is_there = some_is_gone;
	ck_assert(!model_run(&plan));
	rewind(out);
	said[fread(said, 1, size - 1, out)] = 0;
	fclose(out);
}

START_TEST(model_failing_sequence_is_shortened_and_comes_again_with_its_seed)
{
	static char said[4000], again[4000];
	unsigned after, enough;
	const char *text;

	fail_run(said, sizeof(said));
	text = strstr(said, "after ");
	ck_assert_msg(text && sscanf(text, "after %u steps", &after) == 1, "%s", said);
	text = strstr(said, "these ");
	ck_assert_msg(text && sscanf(text, "these %u steps are enough", &enough) == 1, "%s", said);
	ck_assert_msg(after > 1 && enough == 1, "%s", said);
	ck_assert_msg(strstr(said, "fi_mr_reg") && strstr(said, "MRFAB_SEED=12 "), "%s", said);
	fail_run(again, sizeof(again));
	text = strstr(again, "these ");
	ck_assert_msg(text && !strncmp(said, again, (size_t)(text - again)), "%s%s", said, again);
}
END_TEST

static TCase *tcase_model(void)
{
	TCase *tc = tcase_create("model");

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, model_library_does_what_the_manual_says_in_any_order_of_calls);
	tcase_add_test(tc, model_messages_match_receives_as_the_manual_says);
	tcase_add_test(tc, model_failing_sequence_is_shortened_and_comes_again_with_its_seed);
	return tc;
}

UNIT_MAIN("model", tcase_model)
