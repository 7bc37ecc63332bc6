/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_MRFAB_PROFILE=custom: and file:, up to the profile that they describe. */
#include <string.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "contract/limits.h"
#include "contract/profile.h"
#include "unit.h"

static char why[192];

static const struct mrf_profile *find(const char *name)
{
	return mrf_profile_find(name, why, sizeof(why));
}

START_TEST(custom_profile_is_what_its_words_say)
{
	const struct mrf_profile *profile = find(
		"custom:mr_mode=LOCAL+PROV_KEY,key_size=4,iov_limit=2,mr_cnt=9,lacks=raw+queue");

	ck_assert_msg(profile, "%s", why);
	ck_assert_uint_eq(profile->table, FI_MR_LOCAL | FI_MR_PROV_KEY);
	ck_assert_uint_eq(profile->key_size, 4);
	ck_assert_uint_eq(profile->max_key, UINT32_MAX);
	ck_assert_uint_eq(profile->iov_limit, 2);
	ck_assert_uint_eq(profile->mr_cnt, 9);
	ck_assert_uint_eq(find("custom:key_size=4")->mr_cnt, MRF_LIMIT_MR_CNT);
	ck_assert_int_eq(profile->error[MRF_PROFILE_MAP_RAW], FI_ENOSYS);
	ck_assert_int_eq(profile->error[MRF_PROFILE_REG_MR], FI_ENOSYS);
	ck_assert_int_eq(profile->error[MRF_PROFILE_ENABLE], 0);
	/* Messages have it behind the name, but no more than they have room for. */
	ck_assert_str_eq(profile->name, "custom");
	ck_assert_str_eq(profile->what, "mr_mode=LOCAL+PROV_KEY,key_size=4,iov_limit=2,mr_cnt=9,"
					"lacks=raw+queue");
	ck_assert_str_eq(find("custom:lacks=raw+cntr+ep+enable+refresh+queue+ATOMIC+HMEM+FENCE+"
			      "RMA_PMEM+SOURCE_ERR+RMA_EVENT+SOURCE+FENCE")
				 ->what,
			 "lacks=raw+cntr+ep+enable+refresh+queue+ATOMIC+HMEM+FENCE+RMA_PMEM+"
			 "SOURCE_ERR+RMA_EVENT+SOURC...");
	/* Domains keep it. */
	ck_assert_ptr_eq(find("Custom:mr_cnt=9"), find("custom:mr_cnt=9"));
	ck_assert_uint_eq(find("custom:mr_cnt=9")->max_key, UINT64_MAX);
	/* In any order. */
	ck_assert_uint_eq(find("custom:max_key=0xff,key_size=4")->max_key, 0xff);
	ck_assert_uint_eq(find("custom:key_size=2")->max_key, 0xffff);
	ck_assert_uint_eq(find("custom:key_size=8,max_key=0x1ffff")->max_key, 0x1ffff);
}
END_TEST

START_TEST(long_words_are_read_to_their_end)
{
	char name[512] = "custom:lacks=queue";

	while (strlen(name) < 280)
		strcat(name, "+raw");
	strcat(name, "+ATOMIC");
	ck_assert_msg(find(name), "%s", why);
	ck_assert(!(find(name)->promise->caps & FI_ATOMIC));
	while (strlen(name) < 400)
		strcat(name, "+raw");
	ck_assert_ptr_null(find(name));
	ck_assert_str_eq(why, "\"lacks=queue+raw+raw+raw+raw+raw+...\": it is too long");
}
END_TEST

START_TEST(custom_profile_limits_endpoints)
{
	const struct mrf_promise *promise =
		find("custom:inject_size=0,max_msg_size=4096,lacks=ATOMIC+fi_hmem+raw")->promise;

	ck_assert_uint_eq(promise->inject, 0);
	ck_assert_uint_eq(promise->msg_size, 4096);
	ck_assert_uint_eq(promise->caps, mrf_promise_all.caps & ~(FI_ATOMIC | FI_HMEM));
	ck_assert_uint_eq(promise->tx_iov, mrf_promise_all.tx_iov);
	/* Directions of nothing are no capabilities. */
	ck_assert_uint_eq(find("custom:lacks=RMA+ATOMIC")->promise->caps &
				  (FI_RMA | FI_ATOMIC | FI_READ | FI_REMOTE_WRITE | FI_RMA_EVENT),
			  0);
	ck_assert_uint_eq(
		find("custom:lacks=MSG+TAGGED")->promise->caps &
			(FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_SOURCE),
		0);
	ck_assert_uint_ne(find("custom:lacks=MSG")->promise->caps & FI_SEND, 0);
}
END_TEST

/* --- the same in a file ---------------------------------------------------------------- */

static char path[64], in_file[80];

static void write_file(const char *lines, size_t len)
{
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/t_custom.%d", (int)getpid());
	snprintf(in_file, sizeof(in_file), "file:%s", path);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(lines, 1, len, file), len);
	ck_assert_int_eq(fclose(file), 0);
}

START_TEST(profile_is_read_from_a_file)
{
	static const char lines[] = "# a NIC that we do not have\n"
				    "mr_mode=LOCAL+PROV_KEY  # both\n"
				    "\n"
				    "\tkey_size=4, iov_limit=2\r\n"
				    "lacks=raw+ATOMIC";
	const struct mrf_profile *profile, *again;

	write_file(lines, strlen(lines));
	profile = find(in_file);
	ck_assert_msg(profile, "%s", why);
	ck_assert_str_eq(profile->name, in_file);
	ck_assert_str_eq(profile->what, "words in a file");
	ck_assert_uint_eq(profile->table, FI_MR_LOCAL | FI_MR_PROV_KEY);
	ck_assert_uint_eq(profile->key_size, 4);
	ck_assert_uint_eq(profile->iov_limit, 2);
	ck_assert_int_eq(profile->error[MRF_PROFILE_RAW_ATTR], FI_ENOSYS);
	ck_assert(!(profile->promise->caps & FI_ATOMIC));
	ck_assert_ptr_eq(find(in_file), profile);
	/* A domain keeps what it was opened with. */
	write_file("key_size=2", 10);
	again = find(in_file);
	ck_assert_uint_eq(again->key_size, 2);
	ck_assert_uint_eq(profile->key_size, 4);
	unlink(path);
}
END_TEST

/* The last word is read, and one byte more is refused. */
START_TEST(file_of_a_profile_has_a_greatest_length)
{
	static char lines[65537];
	static const char last[] = "\nkey_size=4";
	const struct mrf_profile *profile;

	memset(lines, '#', sizeof(lines));
	memcpy(lines + 65536 - strlen(last), last, strlen(last));
	write_file(lines, 65536);
	profile = find(in_file);
	ck_assert_msg(profile, "%s", why);
	ck_assert_uint_eq(profile->key_size, 4);
	write_file(lines, 65537);
	ck_assert_ptr_null(find(in_file));
	ck_assert_ptr_nonnull(strstr(why, "it must be text of at most 65536 bytes"));
	unlink(path);
}
END_TEST

START_TEST(blanks_may_be_around_an_equals_sign)
{
	static const char lines[] =
		"key_size = 4\n\tmr_mode\t=LOCAL , iov_limit= 2#mr_cnt=1\nmr_cnt=9 #1";
	const struct mrf_profile *profile;

	write_file(lines, strlen(lines));
	profile = find(in_file);
	ck_assert_msg(profile, "%s", why);
	ck_assert_uint_eq(profile->key_size, 4);
	ck_assert_uint_eq(profile->table & FI_MR_LOCAL, FI_MR_LOCAL);
	ck_assert_uint_eq(profile->iov_limit, 2);
	ck_assert_uint_eq(profile->mr_cnt, 9);
	write_file("key_size = \nmr_cnt=1", 20);
	ck_assert_ptr_null(find(in_file));
	ck_assert_ptr_nonnull(strstr(why, "line 1: \"key_size=\": it must be a number"));
	write_file("key_size 4", 10);
	ck_assert_ptr_null(find(in_file));
	ck_assert_ptr_nonnull(strstr(why, "line 1: \"key_size\": it must be mr_mode="));
	unlink(path);
}
END_TEST

START_TEST(file_that_is_wrong_is_refused_with_the_line)
{
	static const char wrong[] = "mr_cnt=4\n# key_size=5\n\nkey_size=9 # of 8\nkey_size=1";
	char expected[128];

	write_file(wrong, strlen(wrong));
	ck_assert_ptr_null(find(in_file));
	snprintf(expected, sizeof(expected),
		 "%s, line 4: \"key_size=9\": it must be a number from 1 to 8", path);
	ck_assert_str_eq(why, expected);
	write_file("key_size=4\0", 11);
	ck_assert_ptr_null(find(in_file));
	ck_assert_ptr_nonnull(strstr(why, "it must be text"));
	write_file("# mr_cnt=1\n,\n", 13);
	ck_assert_ptr_null(find(in_file));
	snprintf(expected, sizeof(expected), "%s: there are no words, such as key_size=4", path);
	ck_assert_str_eq(why, expected);
	unlink(path);
	ck_assert_ptr_null(find("file:/tmp"));
	ck_assert_str_eq(why, "/tmp cannot be read: Is a directory");
	ck_assert_ptr_null(find("file:"));
	ck_assert_str_eq(why, "the name of a file must follow");
	ck_assert_ptr_null(find(in_file));
	ck_assert_ptr_nonnull(strstr(why, "cannot be opened: No such file"));
}
END_TEST

START_TEST(custom_profile_with_a_wrong_word_is_refused_with_it)
{
	static const char *const wrong[][2] = {
		{ "custom:mr_mode=NONSENSE", "NONSENSE" },
		{ "custom:key_size=9", "\"key_size=9\": it must be a number from 1 to 8" },
		{ "custom:iov_limit=17", "\"iov_limit=17\": it must be a number from 1 to 16" },
		{ "custom:mr_cnt=-1", "\"mr_cnt=-1\": it must be a number" },
		{ "custom:mr_mode=LOCAL,PROV_KEY", "\"PROV_KEY\": it must be mr_mode=A+B" },
		{ "custom:lacks=raw+all", "\"lacks=raw+all\": it must be raw, cntr" },
		{ "custom:lacks=FI_READ", "\"lacks=FI_READ\": directions go with RMA" },
		{ "custom:lacks=send", "\"lacks=send\": directions go with RMA" },
		{ "custom:lacks=MULTICAST", "\"lacks=MULTICAST\": a capability that libmrfab" },
		{ "custom:lacks=MSG+RMA+raw,lacks=TAGGED+ATOMIC",
		  "lacks= leaves neither messages nor accesses" },
		{ "custom:", "there are no words" },
		{ "custom:, ,", "there are no words" },
		{ "custom:key_size=4,KEY_SIZE=4", "\"KEY_SIZE=4\": it is given twice" },
		{ "custom:mr_mode=LOCAL,mr_mode=RAW", "\"mr_mode=RAW\": it is given twice" },
		{ "custom:key_size=4,mr_mode=RAW", "key_size= has no effect with FI_MR_RAW" },
		{ "custom:mr_mode=BASIC,max_key=9", "max_key= has no effect with FI_MR_PROV_KEY" },
		{ "custom:max_key=0x10000,key_size=2", "has more bytes than key_size=" },
		{ "custom:key_size=2,max_key=0x10000", "has more bytes than key_size=" },
		{ "custom:mr_mode=PROV_KEY,key_size=2", "have 4 or 8 bytes" },
		{ "custom:mr_mode=VIRT_ADDR+PROV_KEY,key_size=4", "needs FI_MR_ALLOCATED" },
		{ "custom:mr_mode=VIRT_ADDR+PROV_KEY+ALLOCATED+ENDPOINT,key_size=4",
		  "and no FI_MR_ENDPOINT" },
		{ "custom:mr_mode=BASIC,key_size=4,iov_limit=2", "needs iov_limit=1" },
		{ "custom:inject_size=257",
		  "\"inject_size=257\": it must be a number from 0 to 256" },
		{ "custom:max_msg_size=0",
		  "\"max_msg_size=0\": it must be a number from 1 to 1073741824" },
		{ "custom:mr_cnt=1,keys=4", "\"keys=4\": it must be" },
		{ "custom:key_size", "\"key_size\": it must be" },
		{ "custom", "words must follow behind a colon" },
		{ "custom:mr_mode=ENDPOINT,lacks=ep", "contradicts FI_MR_ENDPOINT" },
		{ "custom:lacks=cntr+enable,mr_mode=ENDPOINT", "contradicts FI_MR_ENDPOINT" },
		{ "custom:mr_mode=RAW+LOCAL,lacks=raw", "lacks=raw contradicts FI_MR_RAW" },
		{ "custom:mr_mode=MMU_NOTIFY,lacks=refresh", "lacks=refresh contradicts" },
		{ "custom:lacks=raw+lenient", "no provider is behind it" },
	};
	size_t i;

	for (i = 0; i < MRF_ARRAY_SIZE(wrong); i++) {
		ck_assert_ptr_null(find(wrong[i][0]));
		ck_assert_msg(strstr(why, wrong[i][1]), "%s: %s", wrong[i][0], why);
	}
}
END_TEST

static TCase *tcase_custom(void)
{
	TCase *tc = tcase_create("custom");

	tcase_add_test(tc, custom_profile_is_what_its_words_say);
	tcase_add_test(tc, long_words_are_read_to_their_end);
	tcase_add_test(tc, custom_profile_limits_endpoints);
	tcase_add_test(tc, profile_is_read_from_a_file);
	tcase_add_test(tc, file_of_a_profile_has_a_greatest_length);
	tcase_add_test(tc, blanks_may_be_around_an_equals_sign);
	tcase_add_test(tc, file_that_is_wrong_is_refused_with_the_line);
	tcase_add_test(tc, custom_profile_with_a_wrong_word_is_refused_with_it);
	return tc;
}

UNIT_MAIN("custom", tcase_custom)
