/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread's memory: the host's, or a device's, which only the device's runtime reads and writes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "exec_int.h"

/* --- of the host -------------------------------------------------------------------- */

#define APART (1ul << 44) /* the memory of one thread from that of the next */

/* By the name of the process that forks worlds: the next one takes it again. */
static void file_map(struct actor *a)
{
	size_t len = (PAGES - KEPT) * PAGE;
	char *name = a->limb->file;
	int fd;

	snprintf(name, sizeof(a->limb->file), "t_model.%d.%u.tmp", (int)getppid(), a->number);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(ftruncate(fd, (off_t)len));
	if (mmap(a->limb->mem + KEPT * PAGE, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, 0) == MAP_FAILED)
		model_fail("harness", "no file");
	close(fd);
}

static void host_open(struct actor *a, uintptr_t at)
{
	uint8_t **mem = &a->limb->mem;

	at = at ? at + a->number * APART : 0;
	*mem = mmap((void *)at, MEM, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	if (*mem == MAP_FAILED)
		model_fail("harness", "no memory");
	if (a->world->conf.files)
		file_map(a);
	memcpy(*mem, a->shadow, MEM);
	if (at)
		must(munmap(*mem + HOLE * PAGE, PAGE));
	else
		must(mprotect(*mem + HOLE * PAGE, PAGE, PROT_NONE));
}

/* --- of a device -------------------------------------------------------------------- */

#define DEVICE 1 /* not the first, which a number that is forgotten would be */

const struct rig *device_rig(const struct conf *conf)
{
	struct rig_control control;

	return rig_load((int)(conf->seed % RIGS), &control);
}

uint8_t *device_memory(const struct rig *rig, size_t len)
{
	uint8_t *mem = rig->make(RT_DEVICE, DEVICE, len);

	if (!mem)
		model_fail("harness", "the device has no memory");
	return mem;
}

void device_attr(const struct rig *rig, struct fi_mr_attr *attr)
{
	rig_attr(rig, DEVICE, attr);
}

static void device_open(struct actor *a)
{
	struct limb *limb = a->limb;

	limb->rig = device_rig(&a->world->conf);
	limb->mem = device_memory(limb->rig, MEM);
	limb->rig->put(limb->mem, a->shadow, MEM);
}

void memory_attr(const struct actor *a, struct fi_mr_attr *attr)
{
	if (a->limb->rig)
		device_attr(a->limb->rig, attr);
}

/* --- any ---------------------------------------------------------------------------- */

void memory_open(struct actor *a, uintptr_t at)
{
	for (uint32_t i = 0; i < MEM; i++)
		a->shadow[i] = byte_of(a->number + 77, i);
	if (a->world->conf.device)
		device_open(a);
	else
		host_open(a, at);
}

void memory_close(struct actor *a)
{
	struct limb *limb = a->limb;

	if (limb->rig)
		limb->rig->unmake(RT_DEVICE, limb->mem);
	else
		munmap(limb->mem, MEM);
	if (a->world->conf.files)
		unlink(limb->file);
}

const uint8_t *memory_bytes(const struct actor *a)
{
	struct limb *limb = a->limb;

	if (!limb->rig)
		return limb->mem;
	limb->rig->get(limb->copy, limb->mem, MEM);
	return limb->copy;
}

static void bytes_wrong(const struct actor *a, uint32_t place, uint8_t is)
{
	model_fail("bytes", "byte 0x%x of thread %u's memory is 0x%02x instead of 0x%02x", place,
		   a->number, is, a->shadow[place]);
}

static void check_range(const struct actor *a, const uint8_t *mem, uint32_t from, uint32_t to)
{
	if (!memcmp(mem + from, a->shadow + from, to - from))
		return;
	while (mem[from] == a->shadow[from])
		from++;
	bytes_wrong(a, from, mem[from]);
}

void check_memory(const struct actor *a)
{
	const uint8_t *mem = memory_bytes(a);
	bool hole = !is_there(&a->world->conf, HOLE * PAGE, 1);

	check_range(a, mem, 0, HOLE * PAGE);
	check_range(a, mem, (HOLE + hole) * PAGE, MEM);
}
