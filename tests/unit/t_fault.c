/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_MRFAB_FAULT: plans as they are read, and what they do to the calls of a domain. */
#include "base/env.h"
#include "base/compiler.h"
#include "base/fault.h"
#include "ep_fixture.h"

#define VAR "FI_MRFAB_FAULT"

static struct unit_capture cap;
static uint8_t memory[64];

static void set_plan(const char *text)
{
	ck_assert_int_eq(setenv(VAR, text, 1), 0);
	fixture_setup();
}

static void setup(void)
{
	fixture_setup();
}

static void teardown(void)
{
	unsetenv(VAR);
	fixture_teardown();
}

/* --- plans ----------------------------------------------------------------------------- */

/* What the first 8 calls of a kind return, as digits: 0 is done, 1 fails with -FI_ENOMEM. */
static const char *first_calls(const char *text, enum mrf_fault_call call)
{
	static char done[9];
	struct mrf_fault_plan plan;
	char why[192] = "";
	uint64_t n;
	int i, ret;

	ck_assert_msg(!mrf_fault_parse(text, &plan, why, sizeof(why)), "%s: %s", text, why);
	for (i = 0; i < 8; i++) {
		ret = mrf_fault_now(&plan, call, &n);
		ck_assert_uint_eq(n, (unsigned)i + 1);
		ck_assert(!ret || ret == -FI_ENOMEM);
		done[i] = ret ? '1' : '0';
	}
	return done;
}

START_TEST(plan_says_which_calls_fail)
{
	ck_assert_str_eq(first_calls("", MRF_FAULT_REG), "00000000");
	ck_assert_str_eq(first_calls("reg:3=ENOMEM", MRF_FAULT_REG), "00100000");
	ck_assert_str_eq(first_calls("reg:3=ENOMEM", MRF_FAULT_ENABLE), "00000000");
	ck_assert_str_eq(first_calls("reg:2-4=FI_ENOMEM,", MRF_FAULT_REG), "01110000");
	ck_assert_str_eq(first_calls("Enable:6-=enomem", MRF_FAULT_ENABLE), "00000111");
	ck_assert_str_eq(first_calls("reg:1=ENOMEM,reg:8=ENOMEM", MRF_FAULT_REG), "10000001");
	ck_assert_str_eq(first_calls("reg:1/1=ENOMEM", MRF_FAULT_REG), "11111111");
	ck_assert_str_eq(first_calls(" bind:1=EIO , reg:3=ENOMEM\t", MRF_FAULT_REG), "00100000");
}
END_TEST

START_TEST(plan_with_a_seed_repeats_itself)
{
	char one[9], two[9];
	unsigned i, same = 0;

	for (i = 1; i <= 16; i++) {
		char text[64];

		snprintf(text, sizeof(text), "reg:1/2=ENOMEM,seed=%u", i);
		snprintf(one, sizeof(one), "%s", first_calls(text, MRF_FAULT_REG));
		snprintf(two, sizeof(two), "%s", first_calls(text, MRF_FAULT_REG));
		ck_assert_str_eq(one, two);
		same += !strcmp(first_calls("reg:1/2=ENOMEM,seed=99", MRF_FAULT_REG), one);
	}
	ck_assert_uint_lt(same, 4);
}
END_TEST

START_TEST(plan_that_is_wrong_is_refused_with_the_word)
{
	static const char *const wrong[][2] = {
		{ "reg", "\"reg\": it must be" },
		{ "read:1=ENOMEM", "\"read:1=ENOMEM\": the call must be reg, bind" },
		{ "reg:0=ENOMEM", "which calls fail is" },
		{ "reg:3", "which calls fail is" },
		{ "reg:4-3=ENOMEM", "which calls fail is" },
		{ "reg:2/3=ENOMEM", "which calls fail is" },
		{ "reg:1=ENOMEMORY", "fi_errno(3) has no such error" },
		{ "mr_cnt=3,reg:late=5", "\"reg:late=5\": a time is" },
		{ "reg:late=101s", "a time is" },
		{ "cq:full=0", "a full queue is cq:full, or cq:full=N" },
		{ "cq:full=x", "a full queue is" },
		{ "cq:full=3x", "a full queue is" },
		{ "cq:fuller", "a full queue is" },
		{ "cq:1=EAVAIL", "there would be no entry in error" },
		{ "reg:full", "which calls fail is" },
		{ "mr_cnt=0", "must be a number greater than 0" },
		{ "key_bits=65", "\"key_bits=65\": its value must be a number from 1 to 64" },
		{ "reg=ENOMEM", "\"reg=ENOMEM\": it must be CALL:N=ERROR" },
		{ "mr_cnt", "\"mr_cnt\": it must be" },
		{ ",,,", "\",\": a word is missing" },
		{ "reg:3=ENOMEM,  ,seed=1", "a word is missing" },
		{ "seed=x", "must be a number" },
		{ "reg:1=ENOMEM,reg:1=EIO", "\"reg:1=EIO\": rules before it fail all these calls" },
		{ "reg:1-=EIO,tx:1=EIO,reg:late=1ms,reg:1/9=EIO", "\"reg:1/9=EIO\": rules before" },
		{ "reg:1/3=EIO,reg:1/6=EBUSY", "\"reg:1/6=EBUSY\": rules before" },
		{ "reg:4-=EIO,reg:1-3=EBUSY,reg:2-9=EIO", "\"reg:2-9=EIO\": rules before" },
		{ "reg:1=ENOMEM reg:2=ENOMEM", "fi_errno(3) has no such error" },
	};
	struct mrf_fault_plan plan;
	char why[192];
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_int_eq(mrf_fault_parse(wrong[i][0], &plan, why, sizeof(why)), -FI_EINVAL);
		ck_assert_msg(strstr(why, wrong[i][1]), "%s: %s", wrong[i][0], why);
	}
}
END_TEST

/* "FI_ENOMEM", of a line of fi_errno.h that gives it a number. Empty: it is no such line. */
static void read_name(const char *line, char *name, size_t len)
{
	line += strspn(line, "\t");
	if (!strncmp(line, "#define ", 8))
		line += 8;
	*name = '\0';
	if (!strncmp(line, "FI_E", 4) && strncmp(line, "FI_ERRNO_", 9) != 0)
		snprintf(name, len, "%.*s", (int)strcspn(line, " ,\n"), line);
}

static int fault_named(const char *name)
{
	struct mrf_fault_plan plan;
	char why[192], text[64];
	uint64_t n;

	snprintf(text, sizeof(text), "bind:1=%s", name);
	ck_assert_msg(!mrf_fault_parse(text, &plan, why, sizeof(why)), "%s: %s", text, why);
	return -mrf_fault_now(&plan, MRF_FAULT_BIND, &n);
}

START_TEST(plan_can_name_every_error)
{
	const char *dir = getenv("srcdir");
	char path[4096], line[256], name[64];
	unsigned count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/include/rdma/fi_errno.h", dir ? dir : ".");
	file = fopen(path, "r");
	ck_assert_msg(file, "%s cannot be read", path);
	while (fgets(line, sizeof(line), file)) {
		read_name(line, name, sizeof(name));
		if (!*name)
			continue;
		ck_assert_int_gt(fault_named(name), 0);
		count++;
	}
	fclose(file);
	ck_assert_uint_eq(count, 56);
	ck_assert_int_eq(fault_named("EAVAIL"), FI_EAVAIL);
	ck_assert_int_eq(fault_named("eother"), FI_EOTHER);
	ck_assert_int_eq(fault_named("EWOULDBLOCK"), FI_EAGAIN);
}
END_TEST

START_TEST(late_calls_take_longer)
{
	struct mrf_fault_plan plan;
	int64_t begun = mrf_now_ms();
	char why[192];
	uint64_t n;

	ck_assert_int_eq(mrf_fault_parse("enable:late=20ms", &plan, why, sizeof(why)), 0);
	ck_assert_int_eq(mrf_fault_now(&plan, MRF_FAULT_ENABLE, &n), 0);
	ck_assert_int_ge(mrf_now_ms() - begun, 20);
}
END_TEST

/* --- domains --------------------------------------------------------------------------- */

static const struct node_opt plain = { .mr_mode = FI_MR_ALLOCATED };

static int reg(struct node *n, uint64_t key, struct fid_mr **mr)
{
	return fi_mr_reg(n->domain, memory, sizeof(memory), REMOTE_RW, 0, key, 0, mr, NULL);
}

START_TEST(domain_with_a_wrong_plan_is_refused)
{
	struct node n;

	set_plan("reg:1=NOTHING");
	fixture_log();
	unit_capture(&cap);
	ck_assert_int_eq(node_try_open(&n, &plain), -FI_EINVAL);
	unit_captured(&cap);
	ck_assert_msg(strstr(cap.text,
			     "MRF-E2165: fi_domain: FI_MRFAB_FAULT: \"reg:1=NOTHING\": fi_errno(3) "
			     "has no such error"),
		      "%s", cap.text);
}
END_TEST

START_TEST(nth_registration_fails_and_the_next_one_does_not)
{
	struct fid_mr *mr[2];
	struct node n;

	set_plan("reg:2=ENOSPC");
	node_open(&n, &plain);
	fixture_log();
	ck_assert_int_eq(reg(&n, 1, &mr[0]), 0);
	unit_capture(&cap);
	ck_assert_int_eq(reg(&n, 2, &mr[1]), -FI_ENOSPC);
	unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-E3090: fi_mr_reg: call 2 fails"));
	ck_assert_int_eq(reg(&n, 2, &mr[1]), 0);
	must_close(&mr[0]->fid);
	must_close(&mr[1]->fid);
	node_close(&n);
}
END_TEST

/* What comes after another rule but has calls of its own, or only delays them. */
START_TEST(rules_that_overlap_are_taken)
{
	static const char *const right[] = {
		"reg:1=ENOMEM,reg:1-2=EIO",   "reg:1=ENOMEM,reg:1-=EIO",
		"reg:1=ENOMEM,tx:1=EIO",      "reg:1=ENOMEM,reg:late=1ms",
		"reg:late=1ms,reg:1=EIO",     "reg:late=1s,reg:late=1s",
		"reg:1/6=ENOMEM,reg:1/3=EIO", "reg:1/2=ENOMEM,reg:1=EIO",
		"reg:1/2=EIO,reg:1/3=EIO",    "reg:1=EIO,reg:3=EIO,reg:1-3=EIO",
	};
	struct mrf_fault_plan plan;
	char why[192];
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(right); i++)
		ck_assert_msg(!mrf_fault_parse(right[i], &plan, why, sizeof(why)), "%s: %s",
			      right[i], why);
}
END_TEST

START_TEST(plan_with_chance_says_what_repeats_it)
{
	struct node n;

	set_plan("reg:3=EIO,reg:1/2=ENOMEM,seed=7");
	fixture_log();
	unit_capture(&cap);
	node_open(&n, &plain);
	unit_captured(&cap);
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W2166: FI_MRFAB_FAULT is in force in this "
					       "domain; seed=7 repeats it"));
	node_close(&n);
}
END_TEST

START_TEST(regions_and_keys_have_limits)
{
	struct fid_mr *mr[3];
	struct node n;

	set_plan("mr_cnt=2,key_bits=8,seed=7");
	fixture_log();
	unit_capture(&cap);
	node_open(&n, &plain);
	unit_captured(&cap);
	/* The seed is of no use where nothing is random. */
	ck_assert_ptr_nonnull(strstr(cap.text, "MRF-W2166: FI_MRFAB_FAULT is in force in this "
					       "domain\n"));
	ck_assert_int_eq(reg(&n, 0x100, &mr[0]), -FI_EKEYREJECTED);
	ck_assert_int_eq(reg(&n, 0xff, &mr[0]), 0);
	ck_assert_int_eq(reg(&n, 0xfe, &mr[1]), 0);
	ck_assert_int_eq(reg(&n, 0xfd, &mr[2]), -FI_ENOMEM);
	must_close(&mr[0]->fid);
	ck_assert_int_eq(reg(&n, 0xfd, &mr[2]), 0);
	must_close(&mr[1]->fid);
	must_close(&mr[2]->fid);
	node_close(&n);
}
END_TEST

START_TEST(enabling_fails_and_the_region_stays_disabled)
{
	struct node_opt opt = { .mr_mode = FI_MR_ALLOCATED | FI_MR_ENDPOINT };
	struct fid_mr *mr;
	struct node n;

	set_plan("bind:1=EINVAL,enable:1=ENOMEM");
	node_open(&n, &opt);
	ck_assert_int_eq(reg(&n, 1, &mr), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &n.ep->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_bind(mr, &n.ep->fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(mr), -FI_ENOMEM);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	ck_assert_uint_eq(fi_mr_key(mr), 1);
	ck_assert_int_eq(fi_close(&n.ep->fid), 0);
	n.ep = NULL;
	must_close(&mr->fid);
	node_close(&n);
}
END_TEST

START_TEST(operations_and_completions_have_to_be_tried_again)
{
	struct fi_cq_data_entry done;
	const char *text;
	struct pair p;

	set_plan("tx:1=EAGAIN,tx:3=ENOMEM,cq:1-2=EIO");
	pair_open(&p, &plain);
	fixture_log();
	ck_assert_int_eq(fi_write(p.a.ep, p.src, 8, NULL, p.to, p.base, p.key, p.src), -FI_EAGAIN);
	pair_write(&p, 0, 8);
	unit_capture(&cap);
	ck_assert_int_eq(fi_read(p.a.ep, p.src, 8, NULL, p.to, p.base, p.key, p.src), -FI_ENOMEM);
	ck_assert_int_eq(fi_cq_read(p.a.cq, &done, 1), -FI_EIO);
	text = unit_captured(&cap);
	ck_assert_msg(strstr(text, "MRF-E3090: an operation, or a message: call 3 fails"), "%s",
		      text);
	ck_assert_ptr_nonnull(strstr(text, "MRF-E3090: reading a completion queue: call 1 fails"));
	ck_assert_uint_eq(unit_lines(text), 2);
	ck_assert_int_eq(fi_cq_sread(p.a.cq, &done, 1, NULL, 0), -FI_EIO);
	want_ok(&p.a, pair_ctx(&p, 0));
	pair_close(&p);
}
END_TEST

/* --- full queues ----------------------------------------------------------------------- */

/* The queue of p->a, of which it knows that it is overrun: for ever, and with an error that says so. */
static void want_overrun(struct pair *p, const char *words)
{
	struct fi_cq_data_entry done;
	struct fi_cq_err_entry err;
	int i;

	for (i = 0; i < 3; i++) {
		err = (struct fi_cq_err_entry){ 0 };
		ck_assert_int_eq(fi_cq_read(p->a.cq, &done, 1), -FI_EAVAIL);
		ck_assert_int_eq(fi_cq_readerr(p->a.cq, &err, 0), 1);
		ck_assert_int_eq(err.err, FI_EOVERRUN);
		ck_assert_int_eq(err.prov_errno, 2020);
		ck_assert_msg(strstr(err.err_data, words), "%s", (char *)err.err_data);
	}
}

/* As programs poll memory that a peer writes: nothing but the byte itself says that it has come. */
static __attribute__((no_sanitize("thread"))) bool has_come(const struct pair *p, size_t i)
{
	const volatile uint8_t *there = p->dst;

	return there[8 * i] == i + 1;
}

/* Writes of 8 bytes, each of which is done when its bytes are there; no completion is read. */
static void write_unread(struct pair *p, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++) {
		p->src[8 * i] = (uint8_t)(i + 1);
		pair_write(p, 8 * i, 8);
		while (!has_come(p, i))
			usleep(100);
	}
	node_heard(&p->a);
}

START_TEST(full_queue_is_overrun_as_the_page_says)
{
	struct pair p;
	size_t i;

	set_plan("cq:full=4");
	pair_open(&p, &plain);
	fixture_log();
	write_unread(&p, 0, 4);
	for (i = 0; i < 4; i++)
		want_ok(&p.a, pair_ctx(&p, 8 * i));
	unit_capture(&cap);
	write_unread(&p, 4, 10);
	/* "Read operations will continue to return any valid, non-corrupted completions." */
	for (i = 4; i < 8; i++)
		want_ok(&p.a, pair_ctx(&p, 8 * i));
	unit_captured(&cap);
	ck_assert_msg(strstr(cap.text, "was overrun: there is no room for more than 4 entries"),
		      "%s", cap.text);
	ck_assert_uint_eq(unit_lines(cap.text), 1);
	want_overrun(&p, "2 completions lost for want of room");
	/* "... may not be used to report additional completions once the overrun occurs." */
	write_unread(&p, 10, 11);
	want_overrun(&p, "want of room");
	pair_close(&p);
}
END_TEST

START_TEST(full_queue_has_room_for_what_it_was_opened_for)
{
	struct fi_cq_attr attr = { .size = 20, .format = FI_CQ_FORMAT_DATA };
	struct fid_cq *cq;
	struct node n;
	size_t i;

	set_plan("cq:full");
	node_open(&n, &plain);
	ck_assert_int_eq(fi_cq_open(n.domain, &attr, &cq, NULL), 0);
	for (i = 0; i < 33; i++)
		mrf_cq_write_own(mrf_cq_from_fid(&cq->fid), NULL, 0, 0);
	ck_assert_uint_eq(mrf_cq_unread(mrf_cq_from_fid(&cq->fid)), 32 + 1);
	must_close(&cq->fid);
	node_close(&n);
}
END_TEST

START_TEST(queue_that_is_not_full_grows)
{
	struct fi_cq_data_entry done[4];
	struct pair p;
	size_t i;

	set_plan("cq:1=EIO");
	pair_open(&p, &plain);
	write_unread(&p, 0, 40);
	ck_assert_int_eq(fi_cq_read(p.a.cq, done, 4), -FI_EIO);
	for (i = 0; i < 40; i++)
		want_ok(&p.a, pair_ctx(&p, 8 * i));
	pair_close(&p);
}
END_TEST

static TCase *tcase_full(void)
{
	TCase *tc = tcase_create("full");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, full_queue_is_overrun_as_the_page_says);
	tcase_add_test(tc, full_queue_has_room_for_what_it_was_opened_for);
	tcase_add_test(tc, queue_that_is_not_full_grows);
	return tc;
}

static TCase *tcase_plans(void)
{
	TCase *tc = tcase_create("plans");

	tcase_add_test(tc, plan_says_which_calls_fail);
	tcase_add_test(tc, plan_with_a_seed_repeats_itself);
	tcase_add_test(tc, plan_that_is_wrong_is_refused_with_the_word);
	tcase_add_test(tc, plan_can_name_every_error);
	tcase_add_test(tc, late_calls_take_longer);
	return tc;
}

static TCase *tcase_domains(void)
{
	TCase *tc = tcase_create("domains");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, domain_with_a_wrong_plan_is_refused);
	tcase_add_test(tc, nth_registration_fails_and_the_next_one_does_not);
	tcase_add_test(tc, rules_that_overlap_are_taken);
	tcase_add_test(tc, plan_with_chance_says_what_repeats_it);
	tcase_add_test(tc, regions_and_keys_have_limits);
	tcase_add_test(tc, enabling_fails_and_the_region_stays_disabled);
	tcase_add_test(tc, operations_and_completions_have_to_be_tried_again);
	return tc;
}

UNIT_MAIN("fault", tcase_plans, tcase_domains, tcase_full)
