/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libfabric's acceptance rules against a table of what libfabric 1.17 itself answered
 * (tests/data/mr_mode-1.17.csv, its first line names the columns). Our own contract on
 * top is in t_mr_offer.c.
 */
#include "contract/mr_mode.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include "contract/limits.h"
#include "unit.h"

#define ALL_MODERN                                                                      \
	(FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | \
	 FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT)
#define VAK (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define PROVIDER_CAPS (FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ | FI_WRITE | REMOTE)
#define COLUMNS 9
#define V1_4 FI_VERSION(1, 4)
#define V1_5 FI_VERSION(1, 5)

struct word {
	const char *text;
	uint64_t value;
};

static const struct word tables[] = {
	{ "tcp/sockets/shm/rxd: BASIC|SCALABLE", FI_MR_BASIC | FI_MR_SCALABLE },
	{ "verbs: BASIC|V|A|K|L", FI_MR_BASIC | VAK | FI_MR_LOCAL },
	{ "efa-rdm: BASIC|V|A|K", FI_MR_BASIC | VAK },
	{ "cxi: E|A (1.5+ only)", FI_MR_ENDPOINT | FI_MR_ALLOCATED },
	{ "gni-scalable: BASIC|MMU", FI_MR_BASIC | FI_MR_MMU_NOTIFY },
	{ "usnic: BASIC|A|L", FI_MR_BASIC | FI_MR_ALLOCATED | FI_MR_LOCAL },
	{ "ucx: BASIC|V|A|K|RAW", FI_MR_BASIC | VAK | FI_MR_RAW },
	{ "RMAEV only", FI_MR_RMA_EVENT },
	{ "SCALABLE only", FI_MR_SCALABLE },
	{ NULL, 0 }
};

static const struct word modes[] = { { "UNSPEC(0)", 0 },
				     { "0", 0 },
				     { "BASIC", FI_MR_BASIC },
				     { "SCALABLE", FI_MR_SCALABLE },
				     { "BASIC|LOCAL", FI_MR_BASIC | FI_MR_LOCAL },
				     { "BASIC|SCALABLE", FI_MR_BASIC | FI_MR_SCALABLE },
				     { "E|A", FI_MR_ENDPOINT | FI_MR_ALLOCATED },
				     { "LOCAL", FI_MR_LOCAL },
				     { "V|A|K", VAK },
				     { "V|A|K|L", VAK | FI_MR_LOCAL },
				     { "all modern", ALL_MODERN },
				     { "(hints NULL)", 0 },
				     { "(domain_attr NULL)", 0 },
				     { "ALLOC", FI_MR_ALLOCATED },
				     { "ALLOC|EP", FI_MR_ALLOCATED | FI_MR_ENDPOINT },
				     { "LOCAL|ALLOC", FI_MR_LOCAL | FI_MR_ALLOCATED },
				     { "LOCAL|VADDR|ALLOC|PKEY", FI_MR_LOCAL | VAK },
				     { "MMU", FI_MR_MMU_NOTIFY },
				     { "RAW|VADDR|ALLOC|PKEY", FI_MR_RAW | VAK },
				     { "RMAEV", FI_MR_RMA_EVENT },
				     { "VADDR|ALLOC|PKEY", VAK },
				     { NULL, 0 } };

static const struct word caps_words[] = { { "", FI_MSG | FI_RMA },
					  { "0", 0 },
					  { "MSG", FI_MSG },
					  { "MSG|RMA", FI_MSG | FI_RMA },
					  { "MSG|RMA|READ|WRITE(initiator)",
					    FI_MSG | FI_RMA | FI_READ | FI_WRITE },
					  { NULL, 0 } };

static const struct word versions[] = { { "1.4", FI_VERSION(1, 4) },
					{ "1.5", FI_VERSION(1, 5) },
					{ "1.13", FI_VERSION(1, 13) },
					{ NULL, 0 } };

static uint64_t value_of(const struct word *words, const char *text)
{
	for (; words->text; words++) {
		if (!strcmp(words->text, text))
			return words->value;
	}
	ck_abort_msg("the table has an unknown word: \"%s\"", text);
	return 0;
}

/* Splits a line in place; the number of columns. */
static int split(char *line, char *column[COLUMNS])
{
	int n = 0;

	line[strcspn(line, "\r\n")] = '\0';
	while (line && n < COLUMNS)
		column[n++] = strsep(&line, ";");
	return line ? COLUMNS + 1 : n;
}

static FILE *open_table(void)
{
	const char *dir = getenv("srcdir");
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/data/mr_mode-1.17.csv", dir ? dir : ".");
	file = fopen(path, "r");
	ck_assert_msg(file, "%s cannot be read", path);
	return file;
}

static struct mrf_mr_mode_hints ask_of(char *column[COLUMNS])
{
	struct mrf_mr_mode_hints ask = { .library = MRF_API_VERSION };

	ask.api = (uint32_t)value_of(versions, column[1]);
	ask.hints = strcmp(column[2], "(hints NULL)");
	ask.domain_attr = ask.hints && strcmp(column[2], "(domain_attr NULL)");
	if (!ask.hints)
		return ask;
	ask.mr_mode = value_of(modes, column[2]);
	ask.caps = value_of(caps_words, column[3]);
	ask.mode = strcmp(column[4], "LOCAL_MR") ? 0 : FI_LOCAL_MR;
	return ask;
}

/* What a provider that can do everything would grant if registration did not matter. */
static uint64_t caps_granted(const struct mrf_mr_mode_hints *ask)
{
	uint64_t caps = ask->hints && ask->caps ? ask->caps : PROVIDER_CAPS;

	if ((caps & FI_RMA) && !(caps & (FI_READ | FI_WRITE | REMOTE)))
		caps |= FI_READ | FI_WRITE | REMOTE;
	return caps;
}

static void check_line(char *column[COLUMNS], unsigned line)
{
	struct mrf_mr_mode_hints ask = ask_of(column);
	uint64_t table = value_of(tables, column[0]), caps, mode;
	bool accepted = mrf_mr_mode_check(table, &ask) == MRF_MR_ACCEPTED;

	if (strcmp(column[5], "n/a"))
		ck_assert_msg(accepted == !strcmp(column[5], "ok"), "line %u: accepted %d", line,
			      accepted);
	else
		ck_assert(accepted);
	caps = mrf_mr_mode_answer_caps(table, &ask, caps_granted(&ask));
	ck_assert_msg(!!(caps & REMOTE) == !strcmp(column[8], "yes"), "line %u: caps %#lx", line,
		      caps);
	mode = mrf_mr_mode_answer(table, &ask, caps);
	ck_assert_msg(mode == value_of(modes, column[6]), "line %u: mr_mode %#lx", line, mode);
	ck_assert_msg(!!mrf_mr_mode_answer_flag(table, &ask) == !strcmp(column[7], "set"),
		      "line %u: FI_LOCAL_MR", line);
}

START_TEST(mr_mode_answers_as_libfabric_in_every_measured_case)
{
	FILE *file = open_table();
	char line[512], *column[COLUMNS];
	unsigned count = 0, number = 0;

	while (fgets(line, sizeof(line), file)) {
		number++;
		if (*line == '#')
			continue;
		ck_assert_int_eq(split(line, column), COLUMNS);
		check_line(column, number);
		count++;
	}
	fclose(file);
	ck_assert_uint_eq(count, 2214);
}
END_TEST

/* --- rules that the table does not cover ------------------------------------------ */

static struct mrf_mr_mode_hints ask_for(uint32_t api, uint64_t mr_mode)
{
	return (struct mrf_mr_mode_hints){ .api = api,
					   .library = MRF_API_VERSION,
					   .hints = true,
					   .domain_attr = true,
					   .mr_mode = mr_mode,
					   .caps = FI_RMA };
}

START_TEST(mr_mode_zero_was_refused_by_libraries_up_to_1_15)
{
	struct mrf_mr_mode_hints ask = ask_for(V1_5, 0);
	uint64_t table = FI_MR_BASIC | VAK;

	ask.library = FI_VERSION(1, 15);
	ck_assert_int_eq(mrf_mr_mode_check(table, &ask), MRF_MR_UNSPEC);
	ask.caps = FI_MSG;
	ck_assert_int_eq(mrf_mr_mode_check(table, &ask), MRF_MR_ACCEPTED);
	ask.caps = FI_RMA;
	ask.library = FI_VERSION(1, 16);
	ck_assert_int_eq(mrf_mr_mode_check(table, &ask), MRF_MR_ACCEPTED);
}
END_TEST

START_TEST(mr_mode_hmem_counts_only_with_the_capability)
{
	uint64_t mode = FI_MR_HMEM | FI_MR_VIRT_ADDR;

	ck_assert_uint_eq(mrf_mr_mode_for(FI_RMA, mode), FI_MR_VIRT_ADDR);
	ck_assert_uint_eq(mrf_mr_mode_for(FI_RMA | FI_HMEM, mode), mode);
	ck_assert_uint_eq(mrf_mr_mode_for(FI_MSG | FI_HMEM, mode), FI_MR_HMEM);
	ck_assert_uint_eq(mrf_mr_mode_for(FI_MSG, mode), 0);
}
END_TEST

START_TEST(mr_mode_of_an_initiator_keeps_what_is_local)
{
	uint64_t initiator = FI_RMA | FI_READ;

	ck_assert_uint_eq(mrf_mr_mode_for(initiator, FI_MR_LOCAL | FI_MR_RAW | VAK),
			  FI_MR_LOCAL | FI_MR_ALLOCATED);
	ck_assert_uint_eq(mrf_mr_mode_for(initiator, VAK), 0);
	ck_assert_uint_eq(mrf_mr_mode_for(FI_RMA, VAK | FI_MR_BASIC), VAK);
}
END_TEST

START_TEST(mr_mode_knows_who_is_a_target)
{
	ck_assert(mrf_mr_mode_is_target(FI_RMA));
	ck_assert(mrf_mr_mode_is_target(FI_ATOMIC));
	ck_assert(mrf_mr_mode_is_target(FI_RMA | FI_READ | FI_REMOTE_WRITE));
	ck_assert(!mrf_mr_mode_is_target(FI_RMA | FI_READ));
	ck_assert(!mrf_mr_mode_is_target(FI_ATOMIC | FI_WRITE));
	ck_assert(!mrf_mr_mode_is_target(FI_MSG));
	ck_assert(!mrf_mr_mode_is_target(FI_REMOTE_READ));
}
END_TEST

START_TEST(mr_mode_tells_who_registers_local_buffers)
{
	struct mrf_mr_mode_hints ask = ask_for(V1_5, FI_MR_LOCAL);

	ck_assert(mrf_mr_mode_is_local(&ask));
	ask.mr_mode = FI_MR_VIRT_ADDR;
	ask.mode = FI_LOCAL_MR;
	ck_assert(!mrf_mr_mode_is_local(&ask));
	ask.mr_mode = FI_MR_BASIC;
	ck_assert(mrf_mr_mode_is_local(&ask));
	ask.mode = 0;
	ck_assert(!mrf_mr_mode_is_local(&ask));
	ask.domain_attr = false;
	ask.mode = FI_LOCAL_MR;
	ck_assert(mrf_mr_mode_is_local(&ask));
}
END_TEST

START_TEST(mr_mode_needs_the_old_local_flag_where_the_bit_is_not_offered)
{
	struct mrf_mr_mode_hints ask = ask_for(V1_5, FI_MR_VIRT_ADDR);
	uint64_t table = FI_MR_BASIC | FI_MR_LOCAL;

	ck_assert_uint_eq(mrf_mr_mode_flag_needed(table, &ask), FI_LOCAL_MR);
	ask.mr_mode = FI_MR_LOCAL;
	ck_assert_uint_eq(mrf_mr_mode_flag_needed(table, &ask), 0);
	ask.api = V1_4;
	ck_assert_uint_eq(mrf_mr_mode_flag_needed(table, &ask), FI_LOCAL_MR);
	ck_assert_uint_eq(mrf_mr_mode_flag_needed(FI_MR_BASIC, &ask), 0);
	ask.api = V1_5;
	ask.domain_attr = false;
	ck_assert_uint_eq(mrf_mr_mode_flag_needed(table, &ask), 0);
}
END_TEST

START_TEST(mr_mode_says_which_rule_refuses)
{
	static const struct {
		uint64_t table, mr_mode;
		uint32_t api;
		enum mrf_mr_mode_verdict verdict;
	} cases[] = {
		{ FI_MR_BASIC | FI_MR_LOCAL, 0, V1_5, MRF_MR_LOCAL_NEEDED },
		{ FI_MR_ENDPOINT, 0, V1_4, MRF_MR_NO_LEGACY },
		{ FI_MR_SCALABLE, FI_MR_BASIC, V1_4, MRF_MR_NO_BASIC },
		{ FI_MR_SCALABLE, FI_MR_BASIC, V1_5, MRF_MR_NO_BASIC },
		{ FI_MR_BASIC, FI_MR_SCALABLE, V1_4, MRF_MR_NO_SCALABLE },
		{ FI_MR_BASIC, FI_MR_SCALABLE, V1_5, MRF_MR_NO_SCALABLE },
		{ FI_MR_BASIC, FI_MR_VIRT_ADDR, V1_4, MRF_MR_NOT_LEGACY },
		{ FI_MR_BASIC, FI_MR_BASIC | FI_MR_LOCAL, V1_5, MRF_MR_BASIC_NOT_ALONE },
		{ FI_MR_BASIC, FI_MR_SCALABLE | FI_MR_RAW, V1_5, MRF_MR_SCALABLE_NOT_ALONE },
		{ VAK, FI_MR_VIRT_ADDR, V1_5, MRF_MR_BITS_MISSING },
	};
	struct mrf_mr_mode_hints ask;
	size_t i;

	for (i = 0; i < MRF_MR_VERDICTS; i++)
		ck_assert_ptr_nonnull(mrf_mr_mode_verdict_text(i));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ask = ask_for(cases[i].api, cases[i].mr_mode);
		ck_assert_int_eq(mrf_mr_mode_check(cases[i].table, &ask), cases[i].verdict);
	}
}
END_TEST

START_TEST(mr_mode_hmem_is_needed_with_the_capability_only)
{
	static const struct {
		uint64_t caps, mr_mode;
		enum mrf_mr_mode_verdict verdict;
	} cases[] = {
		{ FI_RMA, VAK, MRF_MR_ACCEPTED },
		{ FI_RMA | FI_HMEM, VAK, MRF_MR_BITS_MISSING },
		{ FI_RMA | FI_HMEM, VAK | FI_MR_HMEM, MRF_MR_ACCEPTED },
		{ FI_MSG | FI_HMEM, VAK, MRF_MR_BITS_MISSING },
		{ FI_MSG | FI_HMEM, FI_MR_HMEM | FI_MR_ALLOCATED, MRF_MR_ACCEPTED },
		{ FI_MSG, FI_MR_LOCAL, MRF_MR_ACCEPTED },
	};
	struct mrf_mr_mode_hints ask;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ask = ask_for(FI_VERSION(1, 17), cases[i].mr_mode);
		ask.caps = cases[i].caps;
		ck_assert_int_eq(mrf_mr_mode_check(VAK | FI_MR_HMEM, &ask), cases[i].verdict);
	}
}
END_TEST

/* Atomics make a target as RMA does. */
START_TEST(mr_mode_of_atomics_alone_is_that_of_rma)
{
	static const uint64_t directions[] = { 0,	 FI_READ,
					       FI_WRITE, FI_REMOTE_READ,
					       REMOTE,	 FI_READ | FI_REMOTE_WRITE };
	struct mrf_mr_mode_hints rma, atomic;
	uint64_t bits, caps;
	size_t i;

	for (i = 0; i < sizeof(directions) / sizeof(directions[0]); i++) {
		for (bits = 0; bits <= ALL_MODERN; bits += FI_MR_LOCAL) {
			rma = ask_for(V1_5, bits);
			rma.caps = FI_RMA | directions[i];
			atomic = rma;
			atomic.caps = FI_ATOMIC | directions[i];
			ck_assert_int_eq(mrf_mr_mode_check(VAK | FI_MR_RAW, &rma),
					 mrf_mr_mode_check(VAK | FI_MR_RAW, &atomic));
			caps = mrf_mr_mode_answer_caps(VAK, &atomic, atomic.caps);
			ck_assert_uint_eq(caps & ~FI_ATOMIC,
					  mrf_mr_mode_answer_caps(VAK, &rma, rma.caps) & ~FI_RMA);
		}
	}
}
END_TEST

/* --- what a domain runs ------------------------------------------------------------ */

START_TEST(mr_mode_known_is_what_a_domain_can_run)
{
	uint64_t bits;

	for (bits = 0; bits <= ALL_MODERN; bits += FI_MR_LOCAL) {
		ck_assert(mrf_mr_mode_known(bits));
		ck_assert(mrf_mr_mode_known(bits | FI_MR_HMEM));
		ck_assert(!mrf_mr_mode_known(bits | FI_MR_HMEM | FI_MR_BASIC));
		ck_assert(!mrf_mr_mode_known(bits | FI_MR_HMEM | FI_MR_SCALABLE));
		ck_assert(!mrf_mr_mode_known(bits | UINT64_C(1) << 40));
		ck_assert(!mrf_mr_mode_known(bits | FI_MR_BASIC | FI_MR_SCALABLE));
		ck_assert(mrf_mr_mode_known(bits | FI_MR_BASIC) == !bits);
		ck_assert(mrf_mr_mode_known(bits | FI_MR_SCALABLE) == !bits);
	}
	ck_assert(!mrf_mr_mode_known(FI_MR_COLLECTIVE));
}
END_TEST

START_TEST(mr_mode_resolves_the_legacy_models_to_bits)
{
	ck_assert_uint_eq(mrf_mr_mode_resolve(FI_MR_BASIC), VAK);
	ck_assert_uint_eq(mrf_mr_mode_resolve(FI_MR_SCALABLE), 0);
	ck_assert_uint_eq(mrf_mr_mode_resolve(0), 0);
	ck_assert_uint_eq(mrf_mr_mode_resolve(FI_MR_LOCAL | FI_MR_PROV_KEY),
			  FI_MR_LOCAL | FI_MR_PROV_KEY);
}
END_TEST

START_TEST(mr_mode_runs_local_for_the_old_flag_unless_bits_say_otherwise)
{
	ck_assert_uint_eq(mrf_mr_mode_runs(FI_MR_BASIC, FI_LOCAL_MR), VAK | FI_MR_LOCAL);
	ck_assert_uint_eq(mrf_mr_mode_runs(FI_MR_SCALABLE, FI_LOCAL_MR), FI_MR_LOCAL);
	ck_assert_uint_eq(mrf_mr_mode_runs(FI_MR_BASIC, 0), VAK);
	ck_assert_uint_eq(mrf_mr_mode_runs(FI_MR_BASIC, FI_CONTEXT), VAK);
	ck_assert_uint_eq(mrf_mr_mode_runs(FI_MR_RAW, FI_LOCAL_MR), FI_MR_RAW);
	ck_assert_uint_eq(mrf_mr_mode_runs(FI_MR_LOCAL, 0), FI_MR_LOCAL);
	ck_assert_uint_eq(mrf_mr_mode_runs(FI_MR_HMEM, FI_LOCAL_MR), FI_MR_HMEM);
}
END_TEST

static TCase *tcase_libfabric(void)
{
	TCase *tc = tcase_create("libfabric");

	tcase_add_test(tc, mr_mode_answers_as_libfabric_in_every_measured_case);
	tcase_add_test(tc, mr_mode_zero_was_refused_by_libraries_up_to_1_15);
	tcase_add_test(tc, mr_mode_hmem_counts_only_with_the_capability);
	tcase_add_test(tc, mr_mode_of_an_initiator_keeps_what_is_local);
	tcase_add_test(tc, mr_mode_knows_who_is_a_target);
	tcase_add_test(tc, mr_mode_tells_who_registers_local_buffers);
	tcase_add_test(tc, mr_mode_needs_the_old_local_flag_where_the_bit_is_not_offered);
	tcase_add_test(tc, mr_mode_says_which_rule_refuses);
	tcase_add_test(tc, mr_mode_hmem_is_needed_with_the_capability_only);
	tcase_add_test(tc, mr_mode_of_atomics_alone_is_that_of_rma);
	return tc;
}

static TCase *tcase_domain(void)
{
	TCase *tc = tcase_create("domain");

	tcase_add_test(tc, mr_mode_known_is_what_a_domain_can_run);
	tcase_add_test(tc, mr_mode_resolves_the_legacy_models_to_bits);
	tcase_add_test(tc, mr_mode_runs_local_for_the_old_flag_unless_bits_say_otherwise);
	return tc;
}

UNIT_MAIN("mr_mode", tcase_libfabric, tcase_domain)
