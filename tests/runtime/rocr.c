/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for libhsa-runtime64.so.1: agents, pools, copies, what an address is, without a
 * device (memory.h). What a program of this library needs is here, not all of the runtime.
 * Names of the exported functions and numbers are ROCR's. Agent 1 is the processor; GPUs begin
 * with 2.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	SUCCESS = 0,
	INFO_BREAK = 1,
	ERROR = 0x1000,
	INVALID_ARGUMENT = 0x1001,
	INVALID_ALLOCATION = 0x1003,
	INVALID_AGENT = 0x1004,
	OUT_OF_RESOURCES = 0x1008,
	NOT_INITIALIZED = 0x100b
};

#define PROCESSOR 1u
#define FIRST_GPU 2u

struct agent {
	uint64_t handle;
};

struct pool {
	uint64_t handle; /* its agent's */
};

/* Called when an allocation is freed. */
struct note {
	struct note *next;
	void *ptr;
	void (*freed)(void *ptr, void *arg);
	void *arg;
};

static atomic_bool ready;
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct note *notes;

#define BEGIN()                                  \
	do {                                     \
		int error_ = rt_begin(__func__); \
		if (error_)                      \
			return error_;           \
		if (!ready)                      \
			return NOT_INITIALIZED;  \
	} while (0)

EXPORT int hsa_init(void)
{
	int error = rt_begin(__func__);

	if (!error)
		atomic_store(&ready, true);
	return error;
}

EXPORT int hsa_shut_down(void)
{
	return rt_begin(__func__);
}

EXPORT int hsa_status_string(int status, const char **text)
{
	switch (status) {
	case INVALID_ARGUMENT:
		*text = "HSA_STATUS_ERROR_INVALID_ARGUMENT: one of the arguments does not fit";
		return SUCCESS;
	case INVALID_ALLOCATION:
		*text = "HSA_STATUS_ERROR_INVALID_ALLOCATION: no such allocation";
		return SUCCESS;
	case ERROR:
		*text = "HSA_STATUS_ERROR: an error";
		return SUCCESS;
	default:
		return INVALID_ARGUMENT;
	}
}

/* --- agents and pools -------------------------------------------------------------------- */

static bool is_agent(uint64_t handle)
{
	return handle >= PROCESSOR && handle < FIRST_GPU + (uint64_t)rt_devices();
}

EXPORT int hsa_iterate_agents(int (*found)(struct agent agent, void *arg), void *arg)
{
	struct agent agent;
	int ret = SUCCESS;

	BEGIN();
	for (agent.handle = PROCESSOR; is_agent(agent.handle) && !ret; agent.handle++)
		ret = found(agent, arg);
	return ret;
}

enum { AGENT_DEVICE = 17 };

EXPORT int hsa_agent_get_info(struct agent agent, int attribute, void *value)
{
	BEGIN();
	if (!is_agent(agent.handle))
		return INVALID_AGENT;
	if (attribute != AGENT_DEVICE)
		return INVALID_ARGUMENT;
	*(int *)value = agent.handle >= FIRST_GPU;
	return SUCCESS;
}

/* Each agent has one pool. */
EXPORT int hsa_amd_agent_iterate_memory_pools(struct agent agent,
					      int (*found)(struct pool pool, void *arg), void *arg)
{
	BEGIN();
	return is_agent(agent.handle) ? found((struct pool){ agent.handle }, arg) : INVALID_AGENT;
}

/* --- what memory is said to be -------------------------------------------------------------- */

enum { TYPE_UNKNOWN, TYPE_HSA, TYPE_LOCKED };

/* Devices have another address for memory of the host that was locked. */
#define ALIAS 0x100000000000u

/* Of one allocation: what it is said to be in place of memory of this process's own. */
static struct {
	const void *front;
	int type;
} other;

EXPORT void mrfab_runtime_type(const void *ptr, int type)
{
	other.front = ptr;
	other.type = type;
}

static int type_of(const struct rt_alloc *found)
{
	if (other.front == found->front)
		return other.type;
	/* Memory that was locked has no device of its own. */
	return found->kind == RT_HOST && found->device == 0 ? TYPE_LOCKED : TYPE_HSA;
}

/* --- memory ------------------------------------------------------------------------------ */

EXPORT int hsa_amd_memory_pool_allocate(struct pool pool, size_t len, uint32_t flags, void **ptr)
{
	bool device = pool.handle >= FIRST_GPU;

	(void)flags;
	BEGIN();
	if (!is_agent(pool.handle) || !len)
		return INVALID_ARGUMENT;
	*ptr = rt_new(device ? RT_DEVICE : RT_HOST, device ? (int)(pool.handle - FIRST_GPU) : -1,
		      NULL, len);
	return *ptr ? SUCCESS : OUT_OF_RESOURCES;
}

static struct note *take_note(const void *ptr)
{
	struct note **at = &notes, *note;

	pthread_mutex_lock(&notes_lock);
	while (*at && (*at)->ptr != ptr)
		at = &(*at)->next;
	note = *at;
	if (note)
		*at = note->next;
	pthread_mutex_unlock(&notes_lock);
	return note;
}

EXPORT int hsa_amd_memory_pool_free(void *ptr)
{
	struct rt_alloc alloc;
	struct note *note;

	BEGIN();
	if (!rt_find((uintptr_t)ptr, &alloc) || alloc.front != ptr)
		return INVALID_ALLOCATION;
	while ((note = take_note(ptr))) {
		note->freed(ptr, note->arg);
		free(note);
	}
	return rt_free(ptr, 1 << RT_DEVICE | 1 << RT_HOST) ? SUCCESS : INVALID_ALLOCATION;
}

EXPORT int hsa_amd_register_deallocation_callback(void *ptr, void (*freed)(void *ptr, void *arg),
						  void *arg)
{
	struct rt_alloc alloc;
	struct note *note;

	BEGIN();
	if (!rt_find((uintptr_t)ptr, &alloc) || alloc.front != ptr)
		return INVALID_ALLOCATION;
	if (type_of(&alloc) != TYPE_HSA)
		return INVALID_ALLOCATION;
	note = malloc(sizeof(*note));
	if (!note)
		return OUT_OF_RESOURCES;
	pthread_mutex_lock(&notes_lock);
	*note = (struct note){ notes, ptr, freed, arg };
	notes = note;
	pthread_mutex_unlock(&notes_lock);
	return SUCCESS;
}

struct pointer_info {
	uint32_t size;
	int type;
	void *agent_base;
	void *host_base;
	size_t len;
	void *user_data;
	struct agent owner;
	uint32_t global_flags;
};

EXPORT int hsa_amd_pointer_info(const void *ptr, struct pointer_info *info, void *(*alloc)(size_t),
				uint32_t *nagents, struct agent **agents)
{
	struct rt_alloc found;

	(void)alloc;
	(void)nagents;
	(void)agents;
	BEGIN();
	if (!ptr || !info || info->size < sizeof(*info))
		return INVALID_ARGUMENT;
	*info = (struct pointer_info){ .size = sizeof(*info) };
	if (!rt_find((uintptr_t)ptr, &found))
		return SUCCESS;
	info->type = type_of(&found);
	info->agent_base = found.front + (info->type == TYPE_LOCKED ? ALIAS : 0);
	info->host_base = found.kind == RT_DEVICE ? NULL : found.front;
	info->len = found.len;
	info->owner.handle =
		found.kind == RT_DEVICE ? FIRST_GPU + (unsigned)found.device : PROCESSOR;
	return SUCCESS;
}

EXPORT int hsa_amd_memory_lock(void *ptr, size_t len, struct agent *agents, int nagents,
			       void **agent_ptr)
{
	(void)agents;
	(void)nagents;
	BEGIN();
	if (!rt_adopt(ptr, len, NULL))
		return ERROR;
	*agent_ptr = (uint8_t *)ptr + ALIAS;
	return SUCCESS;
}

EXPORT int hsa_amd_memory_unlock(void *ptr)
{
	BEGIN();
	return rt_free(ptr, 1 << RT_HOST) ? SUCCESS : INVALID_ARGUMENT;
}

/* A side may be memory that the runtime does not know, of the host. NULL: freed, or too much. */
static void *side(const void *ptr, size_t len, bool *device)
{
	struct rt_alloc alloc;

	if (!rt_find((uintptr_t)ptr, &alloc))
		return (void *)(uintptr_t)ptr;
	*device = *device || alloc.kind == RT_DEVICE;
	return rt_bytes((uintptr_t)ptr, len);
}

/*
 * One side has to be known. Else the memory has been freed, and the real runtime would crash
 * here or not.
 */
EXPORT int hsa_memory_copy(void *to, const void *from, size_t len)
{
	bool device = false;
	void *dst, *src;

	BEGIN();
	dst = side(to, len, &device);
	src = side(from, len, &device);
	if (!dst || !src || !device)
		return INVALID_ARGUMENT;
	rt_copy(dst, src, len);
	return SUCCESS;
}

#include "control.h"
