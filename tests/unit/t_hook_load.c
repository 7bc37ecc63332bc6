/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that were linked in several ways, and loaded before the hooks or later: their
 * calls are heard, and nothing is changed but slots.
 */
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>
#include "fork_inside.h"
#include "hooked.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_DLOPEN 0
#else
#define OWN_DLOPEN 1
#endif

START_TEST(an_object_that_was_loaded_before_is_heard)
{
	void *handle = load(objects[_i]);

	setup();
	must_hear_from(handle);
}
END_TEST

/* A call that was made before has its slot resolved. */
START_TEST(an_object_that_has_called_before_is_heard)
{
	void *handle = load(objects[_i]);
	int (*unmap)(void *, size_t) = (int (*)(void *, size_t))function(handle, "hooked_munmap");

	ck_assert_int_eq(unmap(map(1), PAGE), 0);
	setup();
	must_hear_from(handle);
}
END_TEST

START_TEST(an_object_that_is_loaded_later_is_heard)
{
	must_hear_from(load(objects[_i]));
}
END_TEST

/* By a pointer that dlsym gave, dlopen is not seen. */
START_TEST(an_object_that_was_loaded_unseen_is_heard_before_something_is_watched)
{
	void *(*unseen)(const char *, int) =
		(void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen");
	void *(*find)(void *, const char *) =
		(void *(*)(void *, const char *))dlsym(RTLD_DEFAULT, "dlsym");
	void *handle = unseen(objects[_i], RTLD_NOW);
	int (*unmap)(void *, size_t) = (int (*)(void *, size_t))find(handle, "hooked_munmap");
	char *mem = map(1);

	watch(mem);
	unmap(mem, PAGE);
	must_not_have_heard();
	mrf_hooks_refresh();
	must_hear_from(handle);
}
END_TEST

START_TEST(an_object_that_was_loaded_again_is_heard)
{
	unsigned i;

	for (i = 0; i < 20; i++) {
		void *handle = load(objects[i % MRF_ARRAY_SIZE(objects)]);

		must_hear_from(handle);
		ck_assert_int_eq(dlclose(handle), 0);
		mrf_hooks_refresh();
	}
}
END_TEST

static void *room;

static void look_at_room(void)
{
	uintptr_t at = (uintptr_t)room;

	ck_assert(!mrf_hooks_quiet(at, at + 1));
}

START_TEST(the_data_of_an_object_is_heard_of_before_it_is_unloaded)
{
	void *handle = load(objects[_i]);

	room = (char *)function(handle, "hooked_room") + 2 * PAGE;
	memset(room, 42, PAGE);
	*(void (**)(void))function(handle, "hooked_at_end") = look_at_room;
	watch(room);
	ck_assert_int_eq(dlclose(handle), 0);
	must_have_heard();
}
END_TEST

/*
 * The path of an object is for what it loads itself, whoever stands in between. With a
 * sanitizer, its own dlopen stands there, which calls the C library's.
 */
START_TEST(an_objects_own_path_finds_what_it_loads)
{
#if OWN_DLOPEN
	void *handle = load(HOOKED "hooked_path.so");
	void *(*by_object)(const char *) =
		(void *(*)(const char *))function(handle, "hooked_dlopen");
	void *found = by_object("hooked_found.so");

	ck_assert_msg(found, "%s", dlerror());
	must_hear_from(found);
#endif
}
END_TEST

/* --- what stays as it was ----------------------------------------------------------------- */

static unsigned compared;

/* All code of the object is what its file has. */
static int compare_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	unsigned i;
	int fd;

	(void)size;
	(void)arg;
	fd = info->dlpi_name[0] ? open(info->dlpi_name, O_RDONLY) : -1;
	for (i = 0; fd >= 0 && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *seg = &info->dlpi_phdr[i];
		void *file;

		if (seg->p_type != PT_LOAD || !(seg->p_flags & PF_X))
			continue;
		file = malloc(seg->p_filesz);
		ck_assert_int_eq(pread(fd, file, seg->p_filesz, (off_t)seg->p_offset),
				 seg->p_filesz);
		ck_assert_msg(!memcmp(file, (char *)info->dlpi_addr + seg->p_vaddr, seg->p_filesz),
			      "%s", info->dlpi_name);
		free(file);
		compared++;
	}
	close(fd);
	return 0;
}

START_TEST(no_code_is_changed)
{
	void *handle = load(objects[0]);

	must_hear_from(handle);
	dl_iterate_phdr(compare_code, NULL);
	/* The C library and the loader at least. */
	ck_assert_uint_ge(compared, 2);
}
END_TEST

static bool writable(uintptr_t at)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512], perms[8];
	bool found = false, ret = false;

	while (!found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) != 3)
			continue;
		found = at >= start && at < end;
		ret = found && perms[1] == 'w';
	}
	fclose(maps);
	ck_assert(found);
	return ret;
}

static unsigned sealed;

static int look_at_seal(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t at, end;
	unsigned i;

	(void)size;
	(void)arg;
	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_GNU_RELRO)
			continue;
		at = (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) & ~(uintptr_t)(PAGE - 1);
		end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
		for (; at + PAGE <= end; at += PAGE) {
			ck_assert_msg(!writable(at), "%s", info->dlpi_name);
			sealed++;
		}
	}
	return 0;
}

START_TEST(what_the_loader_has_sealed_is_sealed_again)
{
	must_hear_from(load(objects[1]));
	dl_iterate_phdr(look_at_seal, NULL);
	ck_assert_uint_ge(sealed, 3);
}
END_TEST

START_TEST(what_an_object_finds_depends_on_who_asks)
{
	void *handle = load(objects[_i]);
	void *(*by_object)(const char *) =
		(void *(*)(const char *))function(handle, "hooked_dlsym");

	ck_assert_ptr_eq(by_object("hooked_munmap"), function(handle, "hooked_munmap"));
	ck_assert_ptr_null(dlsym(RTLD_DEFAULT, "hooked_munmap"));
}
END_TEST

/* --- forks --------------------------------------------------------------------------- */

struct walk {
	int (*found)(struct dl_phdr_info *, size_t, void *);
	void *arg;
};

static int stop_at_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct walk *walk = arg;

	stop_inside();
	return walk->found(info, size, walk->arg);
}

int __real_dl_iterate_phdr(int (*found)(struct dl_phdr_info *, size_t, void *), void *arg);
int __wrap_dl_iterate_phdr(int (*found)(struct dl_phdr_info *, size_t, void *), void *arg);

int __wrap_dl_iterate_phdr(int (*found)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	struct walk walk = { found, arg };

	return __real_dl_iterate_phdr(stop_at_object, &walk);
}

static pthread_t other;
static struct mrf_hooks_listener others = { .changing = changing };

static void *listen_too(void *arg)
{
	ck_assert_int_eq(mrf_hooks_listen(&others), 0);
	return arg;
}

/* The loader holds its lock while this runs, and the other thread waits for that. */
static void listen_at_load(void)
{
	ck_assert_int_eq(pthread_create(&other, NULL, listen_too, NULL), 0);
	usleep(200000);
	setup();
}

START_TEST(hooks_are_installed_by_a_constructor_and_by_another_thread_at_once)
{
	char text[32];

	snprintf(text, sizeof(text), "%p", (void *)(uintptr_t)listen_at_load);
	setenv("HOOKED_AT_LOAD", text, 1);
	load(objects[0]);
	unsetenv("HOOKED_AT_LOAD");
	pthread_join(other, NULL);
	must_hear_from(load(objects[1]));
}
END_TEST

static void *refresh(void *arg)
{
	mrf_hooks_refresh();
	return arg;
}

static void *unload(void *handle)
{
	ck_assert_int_eq(dlclose(handle), 0);
	return NULL;
}

static bool loads(void)
{
	return dlopen(objects[1], RTLD_NOW);
}

static bool looks(void)
{
	return !refresh(NULL);
}

/*
 * The loader's lock of its list is held while its objects are looked at. An application that
 * forks while another thread is inside the C library's own dlclose cannot be helped: so there
 * the child loads nothing, and the object stays.
 */
START_TEST(a_child_that_is_forked_while_objects_are_looked_at_looks_and_loads)
{
	void *handle = load(objects[0]);

	load(objects[0]);
	ck_assert(child_of_fork_inside_ends(_i ? unload : refresh, handle, _i ? looks : loads));
}
END_TEST

static TCase *before(void)
{
	TCase *tc = tcase_create("objects that were loaded before");

	tcase_add_loop_test(tc, an_object_that_was_loaded_before_is_heard, 0,
			    MRF_ARRAY_SIZE(objects));
	tcase_add_loop_test(tc, an_object_that_has_called_before_is_heard, 0,
			    MRF_ARRAY_SIZE(objects));
	tcase_add_test(tc, hooks_are_installed_by_a_constructor_and_by_another_thread_at_once);
	return tc;
}

static TCase *later(void)
{
	TCase *tc = tcase_create("objects");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, an_object_that_is_loaded_later_is_heard, 0,
			    MRF_ARRAY_SIZE(objects));
	tcase_add_loop_test(tc,
			    an_object_that_was_loaded_unseen_is_heard_before_something_is_watched,
			    0, MRF_ARRAY_SIZE(objects));
	tcase_add_test(tc, an_object_that_was_loaded_again_is_heard);
	tcase_add_loop_test(tc, the_data_of_an_object_is_heard_of_before_it_is_unloaded, 0,
			    MRF_ARRAY_SIZE(objects));
	tcase_add_test(tc, an_objects_own_path_finds_what_it_loads);
	tcase_add_loop_test(tc, what_an_object_finds_depends_on_who_asks, 0,
			    MRF_ARRAY_SIZE(objects));
	tcase_add_loop_test(tc, a_child_that_is_forked_while_objects_are_looked_at_looks_and_loads,
			    0, 2);
	tcase_add_test(tc, no_code_is_changed);
	tcase_add_test(tc, what_the_loader_has_sealed_is_sealed_again);
	return tc;
}

UNIT_MAIN("hook_load", before, later)
