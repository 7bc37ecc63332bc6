/* SPDX-License-Identifier: BSD-2-Clause */
#include "info_where.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file as it is, of which nothing is believed. */
struct image {
	const uint8_t *bytes;
	size_t size;
};

/* count things of size bytes at offset, or NULL. */
static const void *at(const struct image *image, uint64_t offset, uint64_t count, uint64_t size)
{
	if (offset > image->size || !size || count > (image->size - offset) / size)
		return NULL;
	return image->bytes + offset;
}

/* The mapping that contains the address. False: no file is mapped there. */
static bool find_mapping(const char *pid, uint64_t address, char *path, size_t len,
			 uint64_t *offset)
{
	uint64_t start, end, from;
	char name[64], line[512];
	bool found = false;
	FILE *maps;
	int n;

	snprintf(name, sizeof(name), "/proc/%s/maps", pid);
	maps = fopen(name, "re");
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		n = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &start, &end,
			   &from, &n) != 3 ||
		    address < start || address >= end || line[n] != '/')
			continue;
		snprintf(path, len, "%.*s", (int)strcspn(line + n, "\n"), line + n);
		*offset = from + (address - start);
		found = true;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* The address that the object's own tables have for what is at this offset of the file. */
static uint64_t own_address(const struct image *image, const Elf64_Ehdr *head, uint64_t offset)
{
	const Elf64_Phdr *part = at(image, head->e_phoff, head->e_phnum, sizeof(*part));
	unsigned i;

	for (i = 0; part && i < head->e_phnum; i++) {
		if (part[i].p_type == PT_LOAD && offset >= part[i].p_offset &&
		    offset - part[i].p_offset < part[i].p_filesz)
			return part[i].p_vaddr + (offset - part[i].p_offset);
	}
	return offset;
}

static const Elf64_Shdr *find_table(const struct image *image, const Elf64_Ehdr *head,
				    uint32_t type)
{
	const Elf64_Shdr *section = at(image, head->e_shoff, head->e_shnum, sizeof(*section));
	unsigned i;

	for (i = 0; section && i < head->e_shnum; i++) {
		if (section[i].sh_type == type && section[i].sh_link < head->e_shnum)
			return &section[i];
	}
	return NULL;
}

static void take_name(const struct image *image, const Elf64_Shdr *names, const Elf64_Sym *symbol,
		      struct info_where *where)
{
	const char *text = at(image, names->sh_offset, names->sh_size, 1);

	if (!text || symbol->st_name >= names->sh_size)
		return;
	where->offset = where->place - symbol->st_value;
	snprintf(where->function, sizeof(where->function), "%.*s",
		 (int)strnlen(text + symbol->st_name, names->sh_size - symbol->st_name),
		 text + symbol->st_name);
}

static void find_function(const struct image *image, const Elf64_Ehdr *head,
			  struct info_where *where)
{
	const Elf64_Shdr *table = find_table(image, head, SHT_SYMTAB);
	const Elf64_Sym *symbol;
	uint64_t i, n;

	if (!table)
		table = find_table(image, head, SHT_DYNSYM);
	if (!table)
		return;
	n = table->sh_size / sizeof(*symbol);
	symbol = at(image, table->sh_offset, n, sizeof(*symbol));
	for (i = 0; symbol && i < n; i++) {
		if (ELF64_ST_TYPE(symbol[i].st_info) != STT_FUNC ||
		    where->place < symbol[i].st_value ||
		    where->place - symbol[i].st_value >= symbol[i].st_size)
			continue;
		take_name(image,
			  (const Elf64_Shdr *)(image->bytes + head->e_shoff) + table->sh_link,
			  &symbol[i], where);
		return;
	}
}

static void look_into(const struct image *image, uint64_t offset, struct info_where *where)
{
	const Elf64_Ehdr *head = at(image, 0, 1, sizeof(*head));

	where->place = offset;
	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64)
		return;
	where->place = own_address(image, head, offset);
	find_function(image, head, where);
}

void info_where_find(const char *pid, uint64_t address, struct info_where *where)
{
	struct image image;
	struct stat st;
	uint64_t offset = 0;
	int fd;

	*where = (struct info_where){ .place = address };
	if (!find_mapping(pid, address, where->object, sizeof(where->object), &offset))
		return;
	where->place = offset;
	fd = open(where->object, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	image.bytes = MAP_FAILED;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size) {
		image.size = (size_t)st.st_size;
		image.bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	if (image.bytes == MAP_FAILED)
		return;
	look_into(&image, offset, where);
	munmap((void *)(uintptr_t)image.bytes, image.size);
}
