/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An object that another thread is loading is in the loader's list before the loader has
 * filled in its slots. Such slots hold addresses of the file, not yet of memory, or they
 * lie on pages that are not sealed yet; they are left to a later call. If that state
 * lasts, nobody is loading: somebody has unsealed the pages for good.
 *
 * A thread that is resolving a call at the moment stores the function over the hook, whatever
 * another thread has resolved before. It does so once. Slots that are resolved at the first call
 * are looked at again and again.
 */
#include <dlfcn.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/compiler.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/page.h"
#include "monitor/elf.h"
#include "monitor/slots.h"

#define LAZY_SLOTS 1024	 /* that are looked at again */
#define LAZY_A_TIME 64	 /* at each call */
#define LOADING_MS 2000	 /* by then an object that is loaded is filled in */
#define LOADING_PAUSE 10 /* ms: how often an unfinished object is looked at */
#define OWN_SLOTS 64

struct filled {
	_Atomic uintptr_t *at;
	const struct mrf_hook *hook;
};

/* Inside MRF_GATE_LOADER, which functions that end in _locked are in. */
static struct group {
	struct mrf_hook *hooks;
	unsigned n;
} groups[MRF_SLOTS_GROUPS];
static unsigned long long seen_adds, seen_subs; /* of the loader, when all was done; 0: never */
static int64_t loading_since, looked_at;	/* ms; loading_since 0: all was finished */
static struct filled lazy[LAZY_SLOTS];
static unsigned nlazy, next_lazy;
static unsigned sealed_for_good; /* slots that the kernel does not let us write */
static bool said;

static struct filled own[OWN_SLOTS];
static atomic_uint nown;
static atomic_uint foreign;
static atomic_bool runpath, rpath; /* of any object */

/* One look at all objects. */
struct look {
	struct mrf_elf elf; /* the object at the moment */
	bool out;	    /* take the hooks out */
	bool first;	    /* no object has been looked at yet */
	bool libc;
	bool loading; /* an object is unfinished */
	bool patient; /* such objects are left alone */
	unsigned foreign;
	unsigned refused;
	bool runpath;
	bool rpath;
	unsigned long long adds, subs;
};

/* --- one slot ----------------------------------------------------------------------- */

/*
 * Adds 0 to a word: fails where the page must not be written, and changes nothing.
 */
static bool may_write(_Atomic uintptr_t *at)
{
	unsigned nobody = 0;

	return syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, NULL, at,
		       FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
}

/* Makes the system call directly: the function of the C library is hooked itself. */
static bool protect_page(_Atomic uintptr_t *at, int prot)
{
	uintptr_t page = (uintptr_t)at & ~(uintptr_t)(mrf_page_size() - 1);

	return !syscall(SYS_mprotect, page, mrf_page_size(), prot);
}

static bool exchange(_Atomic uintptr_t *at, uintptr_t from, uintptr_t to)
{
	return atomic_compare_exchange_strong(at, &from, to);
}

static bool exchange_sealed(struct look *look, _Atomic uintptr_t *at, uintptr_t from, uintptr_t to)
{
	bool done;

	if (may_write(at)) {
		look->loading |= look->patient;
		return !look->patient && exchange(at, from, to);
	}
	if (!protect_page(at, PROT_READ | PROT_WRITE)) {
		look->refused++;
		return false;
	}
	done = exchange(at, from, to);
	(void)protect_page(at, PROT_READ);
	return done;
}

static bool store_slot(struct look *look, _Atomic uintptr_t *at, uintptr_t from, uintptr_t to)
{
	if (mrf_elf_sealed(&look->elf, (uintptr_t)at))
		return exchange_sealed(look, at, from, to);
	if (mrf_elf_writable(&look->elf, (uintptr_t)at))
		return exchange(at, from, to);
	look->refused++;
	return false;
}

static struct mrf_hook *hook_of(const char *name)
{
	unsigned i, k;

	for (i = 0; i < MRF_SLOTS_GROUPS; i++) {
		for (k = 0; k < groups[i].n; k++) {
			if (!strcmp(groups[i].hooks[k].name, name))
				return &groups[i].hooks[k];
		}
	}
	return NULL;
}

/* The loader has not filled in the slot yet. */
static bool is_unfinished(const struct mrf_elf *elf, uintptr_t value)
{
	return !value || (value < elf->base && mrf_elf_contains(elf, elf->base + value));
}

static void remember_lazy(_Atomic uintptr_t *at, const struct mrf_hook *hook)
{
	if (nlazy < LAZY_SLOTS)
		lazy[nlazy++] = (struct filled){ at, hook };
}

static void remember_own(const struct look *look, _Atomic uintptr_t *at,
			 const struct mrf_hook *hook)
{
	unsigned n = atomic_load(&nown), i;

	if (n == OWN_SLOTS || !mrf_elf_contains(&look->elf, (uintptr_t)&nown))
		return;
	for (i = 0; i < n; i++) {
		if (own[i].at == at)
			return;
	}
	own[n] = (struct filled){ at, hook };
	atomic_store(&nown, n + 1);
}

static void take_out(struct look *look, const struct mrf_elf_slot *slot,
		     const struct mrf_hook *hook)
{
	uintptr_t from = (uintptr_t)hook->hook;

	if (atomic_load(slot->at) == from)
		store_slot(look, slot->at, from, (uintptr_t)atomic_load(&hook->orig));
}

/* The slot holds neither the hook nor the function that the program would call. */
static void other_value(struct look *look, const struct mrf_elf_slot *slot,
			const struct mrf_hook *hook, uintptr_t value)
{
	if (slot->data || (hook->stub && value == hook->stub))
		return;
	if (!is_unfinished(&look->elf, value))
		look->foreign++;
	else if (look->patient)
		look->loading = true;
}

static void put_in(struct look *look, const struct mrf_elf_slot *slot, const struct mrf_hook *hook)
{
	uintptr_t value = atomic_load(slot->at), to = (uintptr_t)hook->hook;
	bool unresolved = !slot->data && !slot->defined && mrf_elf_has_code(&look->elf, value);

	if (value != to && value != (uintptr_t)atomic_load(&hook->orig) && !unresolved) {
		other_value(look, slot, hook, value);
		return;
	}
	if (value != to && !store_slot(look, slot->at, value, to))
		return;
	if (!slot->data && !slot->defined && !mrf_elf_sealed(&look->elf, (uintptr_t)slot->at))
		remember_lazy(slot->at, hook);
	remember_own(look, slot->at, hook);
}

static void look_at_slot(const struct mrf_elf_slot *slot, void *arg)
{
	struct look *look = arg;
	struct mrf_hook *hook = hook_of(slot->name);

	if (!hook || !atomic_load(&hook->orig) || (slot->defined && !look->libc))
		return;
	if (look->out)
		take_out(look, slot, hook);
	else
		put_in(look, slot, hook);
}

/* --- all objects --------------------------------------------------------------------- */

static void look_again_at_lazy(void)
{
	unsigned i;

	for (i = 0; i < LAZY_A_TIME && i < nlazy; i++) {
		const struct filled *one = &lazy[next_lazy++ % nlazy];
		uintptr_t orig = (uintptr_t)atomic_load(&one->hook->orig);

		if (mrf_unlikely(atomic_load(one->at) == orig))
			(void)exchange(one->at, orig, (uintptr_t)one->hook->hook);
	}
}

/* Slots of objects that are gone must not be touched, so all slots are looked up again. */
static bool nothing_new(struct look *look, const struct dl_phdr_info *info)
{
	look->first = false;
	look->adds = info->dlpi_adds;
	look->subs = info->dlpi_subs;
	if (!look->out && look->adds == seen_adds && look->subs == seen_subs) {
		look_again_at_lazy();
		return true;
	}
	nlazy = 0;
	return false;
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct look *look = arg;
	bool executable = look->first;

	(void)size;
	if (look->first && nothing_new(look, info))
		return 1;
	if (!mrf_elf_read(&look->elf, info))
		return 0;
	look->runpath |= look->elf.runpath;
	look->rpath |= look->elf.rpath && !executable;
	look->libc = info->dlpi_name && strstr(info->dlpi_name, "/libc.so.6");
	mrf_elf_slots(&look->elf, look_at_slot, look);
	return 0;
}

static bool too_soon_locked(int64_t now)
{
	return loading_since && now - looked_at < LOADING_PAUSE;
}

static void note_look_locked(const struct look *look, int64_t now)
{
	atomic_store(&foreign, look->foreign);
	atomic_store(&runpath, look->runpath);
	atomic_store(&rpath, look->rpath);
	sealed_for_good = look->refused;
	looked_at = now;
	if (look->loading) {
		loading_since = loading_since ? loading_since : now;
		return;
	}
	loading_since = 0;
	seen_adds = look->adds;
	seen_subs = look->subs;
}

static void say_locked(void)
{
	unsigned n = atomic_load(&foreign) + sealed_for_good;

	if (said || !n)
		return;
	said = true;
	MRF_TRACE(FI_LOG_INFO, FI_LOG_MR,
		  "%u call%s of functions that change memory cannot be intercepted: %u hooked by "
		  "others, %u on pages that cannot be written",
		  n, MRF_S(n), atomic_load(&foreign), sealed_for_good);
}

static void look_at_all_locked(bool out, int64_t now)
{
	struct look look = { .out = out, .first = true };

	look.patient = !loading_since || now - loading_since < LOADING_MS;
	if (dl_iterate_phdr(look_at_object, &look) || out)
		return;
	note_look_locked(&look, now);
	say_locked();
}

void mrf_slots_fill(void)
{
	int64_t now = mrf_now_ms();

	mrf_gate_enter(MRF_GATE_LOADER);
	if (!too_soon_locked(now))
		look_at_all_locked(false, now);
	mrf_gate_leave(MRF_GATE_LOADER);
}

void mrf_slots_fill_now(void)
{
	mrf_gate_enter(MRF_GATE_LOADER);
	look_at_all_locked(false, mrf_now_ms());
	mrf_gate_leave(MRF_GATE_LOADER);
}

void mrf_slots_empty(void)
{
	mrf_gate_enter(MRF_GATE_LOADER);
	look_at_all_locked(true, mrf_now_ms());
	seen_adds = 0;
	mrf_gate_leave(MRF_GATE_LOADER);
}

bool mrf_slots_hold(void)
{
	unsigned i, n = atomic_load_explicit(&nown, memory_order_acquire);

	for (i = 0; i < n; i++) {
		if (atomic_load_explicit(own[i].at, memory_order_relaxed) !=
		    (uintptr_t)own[i].hook->hook)
			return false;
	}
	return true;
}

bool mrf_slots_runpath(void)
{
	return atomic_load(&runpath);
}

bool mrf_slots_rpath(void)
{
	return atomic_load(&rpath);
}

unsigned mrf_slots_foreign(void)
{
	return atomic_load(&foreign);
}

void mrf_slots_in_child(void)
{
	seen_adds = 0;
	loading_since = 0;
}

/* --- originals ----------------------------------------------------------------------- */

/*
 * An executable that is not position-independent may have a stub of its own for a
 * function, and the program's lookup gives that stub; it leads through the executable's
 * slot, so it is not the original.
 */
static void note_stub(const struct mrf_elf_slot *slot, void *arg)
{
	struct mrf_hook *hook = hook_of(slot->name);

	(void)arg;
	if (hook && slot->stub)
		hook->stub = slot->stub;
}

static int look_for_stubs(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct mrf_elf elf;

	(void)size;
	if (mrf_elf_read(&elf, info))
		mrf_elf_slots(&elf, note_stub, arg);
	return 1;
}

static void *own_function(const struct link_map *map, const char *name)
{
	void *object = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
	void *found = object ? dlsym(object, name) : NULL;
	Dl_info info;

	/* The objects that it needs have been asked, too. */
	if (found && (!dladdr(found, &info) || info.dli_fbase != (void *)map->l_addr))
		found = NULL;
	if (object)
		dlclose(object);
	return found;
}

/* The function as the first object after the executable defines it. */
static void *behind_stub(const char *name)
{
	struct link_map *map = NULL;
	void *found = NULL;

	if (dlinfo(dlopen(NULL, RTLD_LAZY), RTLD_DI_LINKMAP, &map))
		return NULL;
	while (!found && (map = map->l_next))
		found = own_function(map, name);
	return found;
}

static void *program_function(const struct mrf_hook *hook)
{
	void *found = dlsym(RTLD_DEFAULT, hook->name);

	return hook->stub && found == (void *)hook->stub ? behind_stub(hook->name) : found;
}

/*
 * A name with the hook of an earlier name must be the same function; otherwise it is not
 * hooked.
 */
static void find_original(struct mrf_hook *hooks, unsigned n)
{
	void *found = program_function(&hooks[n]);
	unsigned i;

	for (i = 0; hooks[i].hook != hooks[n].hook;)
		i++;
	if (i < n && atomic_load(&hooks[i].orig) != found)
		found = NULL;
	atomic_store(&hooks[n].orig, found);
}

void mrf_slots_add(struct mrf_hook *hooks, unsigned n)
{
	unsigned i;

	mrf_gate_enter(MRF_GATE_LOADER);
	for (i = 0; i < MRF_SLOTS_GROUPS - 1 && groups[i].n && groups[i].hooks != hooks;)
		i++;
	groups[i] = (struct group){ hooks, n };
	dl_iterate_phdr(look_for_stubs, NULL);
	mrf_gate_leave(MRF_GATE_LOADER);
	for (i = 0; i < n; i++)
		find_original(hooks, i);
}
