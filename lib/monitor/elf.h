/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a loaded ELF object says of itself: which of its words the loader fills with the
 * addresses of functions of other objects (slots), and where it may be written. Pure
 * reading, without allocation; the object must stay loaded meanwhile, as it does in a
 * callback of dl_iterate_phdr(3).
 *
 * 64-bit x86 and ARM only; on others no object can be read.
 */
#ifndef MRF_MONITOR_ELF_H
#define MRF_MONITOR_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrf_elf {
	uintptr_t base; /* what addresses in the file are relative to */
	const ElfW(Phdr) * phdr;
	unsigned phnum;
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Rela) * calls; /* DT_JMPREL */
	size_t ncalls;
	const ElfW(Rela) * others; /* DT_RELA */
	size_t nothers;
	bool runpath; /* has a path of its own for the objects that it loads */
	bool rpath;   /* has such a path, also for the objects that these load */
};

/* A word that holds, or will hold, the address of a named function. */
struct mrf_elf_slot {
	_Atomic uintptr_t *at;
	const char *name;
	bool defined;	/* by this object itself */
	bool data;	/* an initialised variable, which the program may change */
	uintptr_t stub; /* the executable's substitute address of the function; or 0 */
};

/* False: the object has no slots that can be read. */
bool mrf_elf_read(struct mrf_elf *elf, const struct dl_phdr_info *info);
/* Calls found for each slot that refers to a symbol by name. */
void mrf_elf_slots(const struct mrf_elf *elf,
		   void (*found)(const struct mrf_elf_slot *slot, void *arg), void *arg);
/* Does an executable segment of the object contain the address? Any segment? */
bool mrf_elf_has_code(const struct mrf_elf *elf, uintptr_t at);
bool mrf_elf_contains(const struct mrf_elf *elf, uintptr_t at);
/* Did the loader make it read-only when it had filled it in (RELRO)? */
bool mrf_elf_sealed(const struct mrf_elf *elf, uintptr_t at);
/* Is it meant to be written otherwise? */
bool mrf_elf_writable(const struct mrf_elf *elf, uintptr_t at);

#endif
