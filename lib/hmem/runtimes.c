/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <stdatomic.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/names.h"
#include "base/renew.h"
#include "hmem/hmem.h"

static const struct mrf_hmem *const tables[] = { &mrf_hmem_cuda, &mrf_hmem_rocr, &mrf_hmem_ze };

#define TABLES (sizeof(tables) / sizeof(tables[0]))

/* A device may appear later, so an interface that could not be opened is tried again. */
static atomic_bool is_open[TABLES];

/* The child cannot use what the parent's runtime holds: it opens the runtime anew, if it can. */
static void opening_in_child(void)
{
	for (size_t i = 0; i < TABLES; i++)
		atomic_store(&is_open[i], false);
}

/* The runtime's own code runs under it, and may take any lock. */
static struct mrf_static_lock opening = MRF_STATIC_LOCK(opening_in_child);

static int open_once(size_t i, struct mrf_hmem_why *why)
{
	int ret = 0;

	mrf_static_take(&opening);
	if (!is_open[i])
		ret = tables[i]->open(why);
	is_open[i] = !ret;
	mrf_static_release(&opening);
	return ret;
}

int mrf_hmem_open(enum fi_hmem_iface iface, const struct mrf_hmem **hmem)
{
	struct mrf_hmem_why why;
	size_t i;
	int ret;

	for (i = 0; i < TABLES && tables[i]->iface != iface; i++)
		;
	if (i == TABLES)
		return mrf_refuse(FI_ENOSYS, FI_LOG_MR, 3130,
				  "iface=%d (%s): this library knows FI_HMEM_SYSTEM, FI_HMEM_CUDA, "
				  "FI_HMEM_ROCR and FI_HMEM_ZE only",
				  (int)iface, mrf_names_enum(&mrf_names_hmem_iface, iface));
	ret = open_once(i, &why);
	if (ret)
		return mrf_refuse(-ret, FI_LOG_MR, 3131, "%s cannot be used: %s",
				  mrf_names_enum(&mrf_names_hmem_iface, iface), why.text);
	*hmem = tables[i];
	return 0;
}

/* A failure is not reported here: registering such memory will say why. */
void mrf_hmem_notice(void)
{
	struct mrf_hmem_why why;
	size_t i;
	void *so;

	for (i = 0; i < TABLES; i++) {
		so = dlopen(tables[i]->library, RTLD_NOW | RTLD_NOLOAD);
		if (!so)
			continue;
		(void)open_once(i, &why);
		dlclose(so);
	}
}

const struct mrf_hmem *mrf_hmem_whose(uintptr_t addr, struct mrf_hmem_alloc *alloc)
{
	struct mrf_hmem_why why;
	size_t i;

	for (i = 0; i < TABLES; i++) {
		if (atomic_load(&is_open[i]) && !tables[i]->find(addr, alloc, &why) &&
		    alloc->kind != MRF_HMEM_NONE)
			return tables[i];
	}
	return NULL;
}
