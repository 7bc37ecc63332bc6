/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots in all their states: what others have put there, what the loader has not filled in
 * yet or fills in later, what is sealed. The function that is hooked here is getppid,
 * which nobody else minds.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include "monitor/elf.h"
#include "monitor/slots.h"
#include "hooked.h"

static atomic_uint calls;

static pid_t hook_getppid(void);
static struct mrf_hook hooks[] = { { .name = "getppid", .hook = hook_getppid } };

static pid_t hook_getppid(void)
{
	atomic_fetch_add(&calls, 1);
	return ((pid_t(*)(void))atomic_load(&hooks[0].orig))();
}

static pid_t others_getppid(void)
{
	return 1;
}

static void *handle; /* of the object */
static pid_t (*call)(void);

static void open_object(const char *path)
{
	handle = load(path);
	call = (pid_t(*)(void))function(handle, "hooked_getppid");
}

static void setup_slots(void)
{
	mrf_slots_add(hooks, 1);
	ck_assert_ptr_nonnull(atomic_load(&hooks[0].orig));
}

/* Does a call from the object come to the hook? */
static bool is_hooked(void)
{
	unsigned before = atomic_load(&calls);

	(void)call();
	return atomic_load(&calls) == before + 1;
}

/* --- the object's slot ------------------------------------------------------------------ */

static _Atomic uintptr_t *slot_at;
static struct mrf_elf slot_in;

static void find_slot(const struct mrf_elf_slot *slot, void *arg)
{
	(void)arg;
	if (!strcmp(slot->name, "getppid") && !slot->data)
		slot_at = slot->at;
}

static int look_in_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct mrf_elf elf;

	(void)size;
	if (!mrf_elf_read(&elf, info) || !mrf_elf_contains(&elf, (uintptr_t)call))
		return 0;
	slot_in = elf;
	mrf_elf_slots(&elf, find_slot, arg);
	return 1;
}

static _Atomic uintptr_t *slot(void)
{
	slot_at = NULL;
	dl_iterate_phdr(look_in_object, NULL);
	ck_assert_ptr_nonnull(slot_at);
	return slot_at;
}

static void unseal(void)
{
	uintptr_t page = (uintptr_t)slot() & ~(uintptr_t)(PAGE - 1);

	ck_assert_int_eq(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE), 0);
}

/* --- tests ------------------------------------------------------------------------------ */

START_TEST(a_slot_is_filled_and_emptied)
{
	uintptr_t before;

	open_object(objects[_i]);
	before = atomic_load(slot());
	ck_assert(!is_hooked());
	mrf_slots_fill();
	ck_assert_uint_eq(atomic_load(slot()), (uintptr_t)hook_getppid);
	ck_assert(is_hooked());
	ck_assert(mrf_slots_hold());
	mrf_slots_empty();
	ck_assert(!is_hooked());
	ck_assert(atomic_load(slot()) == before ||
		  atomic_load(slot()) == (uintptr_t)atomic_load(&hooks[0].orig));
}
END_TEST

START_TEST(the_hook_of_another_is_left_and_said_once)
{
	struct unit_capture cap;
	const char *text;

	open_object(objects[_i]);
	unseal();
	atomic_store(slot(), (uintptr_t)others_getppid);
	setenv("FI_LOG_LEVEL", "info", 1);
	unit_capture(&cap);
	mrf_slots_fill();
	dlclose(load(objects[(_i + 1) % 3]));
	mrf_slots_fill();
	text = unit_captured(&cap);
	ck_assert_uint_eq(atomic_load(slot()), (uintptr_t)others_getppid);
	ck_assert_uint_eq(mrf_slots_foreign(), 1);
	ck_assert_ptr_nonnull(strstr(text, "1 hooked by others"));
	ck_assert_uint_eq(unit_lines(text), 1);
}
END_TEST

/* As a thread does that was just resolving it; 1: when another one had done so; 2: later. */
START_TEST(a_slot_that_is_resolved_late_is_filled_again)
{
	open_object(objects[0]);
	if (_i == 1)
		call();
	mrf_slots_fill();
	if (_i == 2)
		dlclose(load(objects[1]));
	mrf_slots_fill();
	atomic_store(slot(), (uintptr_t)atomic_load(&hooks[0].orig));
	ck_assert(!is_hooked());
	mrf_slots_fill();
	ck_assert(is_hooked());
}
END_TEST

/* A slot that was lazy is not touched when its object is gone. */
START_TEST(slots_of_objects_that_are_gone_are_forgotten)
{
	uintptr_t page;

	open_object(objects[0]);
	mrf_slots_fill();
	page = (uintptr_t)slot() & ~(uintptr_t)(PAGE - 1);
	dlclose(handle);
	ck_assert_ptr_eq(
		mmap((void *)page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		(void *)page);
	mrf_slots_fill();
	mrf_slots_fill();
}
END_TEST

START_TEST(a_slot_that_the_loader_has_not_filled_in_is_left_until_it_has)
{
	uintptr_t now;

	open_object(objects[2]);
	unseal();
	now = atomic_load(slot());
	atomic_store(slot(), _i ? (uintptr_t)call - slot_in.base : 0);
	mrf_slots_fill();
	ck_assert_uint_eq(atomic_load(slot()), _i ? (uintptr_t)call - slot_in.base : 0);
	ck_assert_uint_eq(mrf_slots_foreign(), 0);
	atomic_store(slot(), now);
	mprotect((void *)((uintptr_t)slot() & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ);
	usleep(20000);
	mrf_slots_fill();
	ck_assert(is_hooked());
}
END_TEST

/* Whoever unsealed it is not the loader, if it lasts. */
START_TEST(a_page_that_is_not_sealed_is_waited_for_but_not_for_ever)
{
	open_object(objects[1]);
	unseal();
	mrf_slots_fill();
	ck_assert(!is_hooked());
	sleep(3);
	mrf_slots_fill();
	ck_assert(is_hooked());
}
END_TEST

START_TEST(an_object_that_has_the_function_itself_is_left_alone)
{
	open_object(HOOKED "hooked_own.so");
	mrf_slots_fill();
	ck_assert(!is_hooked());
	ck_assert_uint_eq(mrf_slots_foreign(), 0);
}
END_TEST

START_TEST(a_pointer_that_the_program_has_changed_is_its_own)
{
	pid_t (**pointer)(void);

	open_object(objects[_i]);
	pointer = (pid_t(**)(void))function(handle, "hooked_pointer_too");
	*pointer = others_getppid;
	mrf_slots_fill();
	ck_assert_ptr_eq((void *)*pointer, (void *)others_getppid);
	ck_assert_uint_eq(mrf_slots_foreign(), 0);
}
END_TEST

START_TEST(a_name_that_nobody_has_is_harmless)
{
	static struct mrf_hook none[] = { { .name = "no such function", .hook = hook_getppid } };

	mrf_slots_add(none, 1);
	ck_assert_ptr_null(atomic_load(&none[0].orig));
	mrf_slots_fill();
}
END_TEST

/* Two names of one hook are one function, or the second is left alone. */
START_TEST(a_second_name_must_be_the_same_function)
{
	static struct mrf_hook names[] = { { .name = "getpid", .hook = others_getppid },
					   { .name = "getuid", .hook = others_getppid },
					   { .name = "getpid", .hook = others_getppid } };

	mrf_slots_add(names, 3);
	ck_assert_ptr_nonnull(atomic_load(&names[0].orig));
	ck_assert_ptr_null(atomic_load(&names[1].orig));
	ck_assert_ptr_nonnull(atomic_load(&names[2].orig));
}
END_TEST

static TCase *slots(void)
{
	TCase *tc = tcase_create("slots");

	tcase_add_checked_fixture(tc, setup_slots, NULL);
	tcase_add_loop_test(tc, a_slot_is_filled_and_emptied, 0, 3);
	tcase_add_loop_test(tc, the_hook_of_another_is_left_and_said_once, 0, 3);
	tcase_add_loop_test(tc, a_slot_that_is_resolved_late_is_filled_again, 0, 3);
	tcase_add_test(tc, slots_of_objects_that_are_gone_are_forgotten);
	tcase_add_loop_test(tc, a_slot_that_the_loader_has_not_filled_in_is_left_until_it_has, 0,
			    2);
	tcase_add_test(tc, a_page_that_is_not_sealed_is_waited_for_but_not_for_ever);
	tcase_add_test(tc, an_object_that_has_the_function_itself_is_left_alone);
	tcase_add_loop_test(tc, a_pointer_that_the_program_has_changed_is_its_own, 0, 3);
	tcase_add_test(tc, a_name_that_nobody_has_is_harmless);
	tcase_add_test(tc, a_second_name_must_be_the_same_function);
	return tc;
}

UNIT_MAIN("slots", slots)
