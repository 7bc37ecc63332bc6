/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <string.h>
#include "base/page.h"
#include "monitor/elf.h"

#if defined(__x86_64__)
#define SLOT_CALL R_X86_64_JUMP_SLOT
#define SLOT_ADDRESS R_X86_64_GLOB_DAT
#define SLOT_DATA R_X86_64_64
#elif defined(__aarch64__) && defined(__LP64__)
#define SLOT_CALL R_AARCH64_JUMP_SLOT
#define SLOT_ADDRESS R_AARCH64_GLOB_DAT
#define SLOT_DATA R_AARCH64_ABS64
#else
#define UNKNOWN_MACHINE
#endif

/* The loader may have replaced it by an address, or not (in the vDSO). */
static uintptr_t absolute(const struct mrf_elf *elf, ElfW(Addr) value)
{
	return value < elf->base ? elf->base + value : value;
}

static const void *table_at(const struct mrf_elf *elf, ElfW(Addr) value)
{
	return (const void *)absolute(elf, value);
}

static void read_entry(struct mrf_elf *elf, const ElfW(Dyn) * entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		elf->symbols = table_at(elf, entry->d_un.d_ptr);
		break;
	case DT_STRTAB:
		elf->strings = table_at(elf, entry->d_un.d_ptr);
		break;
	case DT_JMPREL:
		elf->calls = table_at(elf, entry->d_un.d_ptr);
		break;
	case DT_PLTRELSZ:
		elf->ncalls = entry->d_un.d_val / sizeof(ElfW(Rela));
		break;
	case DT_RELA:
		elf->others = table_at(elf, entry->d_un.d_ptr);
		break;
	case DT_RELASZ:
		elf->nothers = entry->d_un.d_val / sizeof(ElfW(Rela));
		break;
	case DT_RPATH:
		elf->rpath = true;
		break;
	case DT_RUNPATH:
		elf->runpath = true;
		break;
	default:
		break;
	}
}

bool mrf_elf_read(struct mrf_elf *elf, const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *entry = NULL;
	unsigned i;

	memset(elf, 0, sizeof(*elf));
	elf->base = info->dlpi_addr;
	elf->phdr = info->dlpi_phdr;
	elf->phnum = info->dlpi_phnum;
	for (i = 0; i < elf->phnum; i++) {
		if (elf->phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(elf->base + elf->phdr[i].p_vaddr);
	}
	for (; entry && entry->d_tag != DT_NULL; entry++)
		read_entry(elf, entry);
	if (!elf->calls)
		elf->ncalls = 0;
	if (!elf->others)
		elf->nothers = 0;
#ifdef UNKNOWN_MACHINE
	return false;
#else
	return elf->symbols && elf->strings;
#endif
}

#ifndef UNKNOWN_MACHINE
static bool is_slot(const ElfW(Rela) * rela)
{
	switch (ELF64_R_TYPE(rela->r_info)) {
	case SLOT_CALL:
	case SLOT_ADDRESS:
		return true;
	case SLOT_DATA:
		return !rela->r_addend && !(rela->r_offset % sizeof(uintptr_t));
	default:
		return false;
	}
}

static void read_slot(const struct mrf_elf *elf, const ElfW(Rela) * rela, struct mrf_elf_slot *slot)
{
	const ElfW(Sym) *symbol = &elf->symbols[ELF64_R_SYM(rela->r_info)];

	slot->at = (_Atomic uintptr_t *)(elf->base + rela->r_offset);
	slot->name = elf->strings + symbol->st_name;
	slot->defined = symbol->st_shndx != SHN_UNDEF;
	slot->data = ELF64_R_TYPE(rela->r_info) == SLOT_DATA;
	slot->stub = slot->defined || !symbol->st_value ? 0 : elf->base + symbol->st_value;
}

static void read_slots(const struct mrf_elf *elf, const ElfW(Rela) * rela, size_t n,
		       void (*found)(const struct mrf_elf_slot *slot, void *arg), void *arg)
{
	struct mrf_elf_slot slot;

	for (; n--; rela++) {
		if (!ELF64_R_SYM(rela->r_info) || !is_slot(rela))
			continue;
		read_slot(elf, rela, &slot);
		found(&slot, arg);
	}
}
#else
static void read_slots(const struct mrf_elf *elf, const ElfW(Rela) * rela, size_t n,
		       void (*found)(const struct mrf_elf_slot *slot, void *arg), void *arg)
{
	(void)elf, (void)rela, (void)n, (void)found, (void)arg;
}
#endif

void mrf_elf_slots(const struct mrf_elf *elf,
		   void (*found)(const struct mrf_elf_slot *slot, void *arg), void *arg)
{
	read_slots(elf, elf->calls, elf->ncalls, found, arg);
	read_slots(elf, elf->others, elf->nothers, found, arg);
}

/* --- segments ---------------------------------------------------------------------- */

static bool in_segment(const struct mrf_elf *elf, uintptr_t at, unsigned flags)
{
	unsigned i;

	for (i = 0; i < elf->phnum; i++) {
		const ElfW(Phdr) *segment = &elf->phdr[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & flags) == flags &&
		    at - elf->base - segment->p_vaddr < segment->p_memsz)
			return true;
	}
	return false;
}

bool mrf_elf_has_code(const struct mrf_elf *elf, uintptr_t at)
{
	return in_segment(elf, at, PF_X);
}

bool mrf_elf_contains(const struct mrf_elf *elf, uintptr_t at)
{
	return in_segment(elf, at, 0);
}

/* The loader protects whole pages only, so not the last one if only a part of it is meant. */
bool mrf_elf_sealed(const struct mrf_elf *elf, uintptr_t at)
{
	uintptr_t mask = ~(uintptr_t)(mrf_page_size() - 1), start, end;
	unsigned i;

	for (i = 0; i < elf->phnum; i++) {
		if (elf->phdr[i].p_type != PT_GNU_RELRO)
			continue;
		start = elf->base + elf->phdr[i].p_vaddr;
		end = start + elf->phdr[i].p_memsz;
		if (at >= (start & mask) && at < (end & mask))
			return true;
	}
	return false;
}

bool mrf_elf_writable(const struct mrf_elf *elf, uintptr_t at)
{
	return !mrf_elf_sealed(elf, at) && in_segment(elf, at, PF_W);
}
