/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a device's software allocates: what is behind an address, and copying between
 * there and the host. There is one table of functions per interface of fi_mr_attr.iface. Each
 * runtime is loaded when it is first asked for (dlopen), and stays loaded.
 *
 * Any thread may call the functions. It holds only locks that allow waiting: a copy takes as
 * long as the device takes. The functions leave the thread's current context of the runtime as
 * it was.
 */
#ifndef MRF_HMEM_HMEM_H
#define MRF_HMEM_HMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_domain.h>

enum mrf_hmem_kind {
	MRF_HMEM_NONE,	  /* not this runtime's: memory of the host, or nothing */
	MRF_HMEM_DEVICE,  /* only the device, and the runtime's copies, can touch it */
	MRF_HMEM_MANAGED, /* device and processor share it; pages move between them */
	MRF_HMEM_HOST	  /* the host's, allocated or registered by the runtime */
};

/* Do the bytes have to be copied by the runtime? Otherwise the kernel can pin the pages. */
static inline bool mrf_hmem_is_copied(enum mrf_hmem_kind kind)
{
	switch (kind) {
	case MRF_HMEM_DEVICE:
	case MRF_HMEM_MANAGED:
		return true;
	case MRF_HMEM_NONE:
	case MRF_HMEM_HOST:
		break;
	}
	return false;
}

/* What an address belongs to. NONE: all else is 0. */
struct mrf_hmem_alloc {
	enum mrf_hmem_kind kind;
	int device;	 /* its number, as in fi_mr_attr.device; HOST: unspecified */
	uintptr_t start; /* of the whole allocation: the processor's address if it can touch it */
	size_t len;	 /* bytes */
	/*
	 * The application mapped a range of addresses piece by piece, and this is one of them, with
	 * another behind it, or with room for one.
	 */
	bool more;
	/*
	 * Copies compare this number, which is never used again, even for a new allocation at the
	 * same address. 0: the runtime has no such number, or must not be asked for it
	 * (FI_MR_*_CACHE_MONITOR_ENABLED=0).
	 */
	uint64_t id;
	void *home; /* what the runtime needs for a copy; may be NULL */
};

/* What went wrong, in the runtime's words. */
struct mrf_hmem_why {
	char text[240];
};

/*
 * The functions of an interface; each returns 0, or -FI_E* with *why set:
 *  -FI_ENOSYS  the runtime is not there, or too old (its missing functions are named)
 *  -FI_ENODEV  there is no device, or none of that number
 *  -FI_EINVAL  the runtime calls the address invalid: it has been freed
 *  -FI_EIO     the device or the context of the memory is lost, or something else failed
 *  -FI_ENOMEM
 */
struct mrf_hmem {
	enum fi_hmem_iface iface;
	const char *library;
	int (*open)(struct mrf_hmem_why *why);
	/* How many devices there are. */
	int (*count)(int *devices, struct mrf_hmem_why *why);
	int (*find)(uintptr_t addr, struct mrf_hmem_alloc *alloc, struct mrf_hmem_why *why);
	/*
	 * Both are for kinds DEVICE and MANAGED. The bytes, which lie inside alloc as find gave
	 * it, have been copied when the function returns.
	 */
	int (*get)(const struct mrf_hmem_alloc *alloc, void *to, uintptr_t from, size_t len,
		   struct mrf_hmem_why *why);
	int (*put)(const struct mrf_hmem_alloc *alloc, uintptr_t to, const void *from, size_t len,
		   struct mrf_hmem_why *why);
};

extern const struct mrf_hmem mrf_hmem_cuda;
extern const struct mrf_hmem mrf_hmem_rocr;
extern const struct mrf_hmem mrf_hmem_ze;

/* --- which one --------------------------------------------------------------------------- */

/*
 * Finds the table of an interface other than FI_HMEM_SYSTEM, and loads its runtime. Errors are
 * logged: -FI_ENOSYS (the runtime's, or the interface is not supported), -FI_ENODEV, -FI_EIO.
 */
int mrf_hmem_open(enum fi_hmem_iface iface, const struct mrf_hmem **hmem);
/*
 * Finds the interface that the memory belongs to, and the allocation. It asks the runtimes that
 * are open: by mrf_hmem_open, or by mrf_hmem_notice. NULL: none of them knows the address.
 */
const struct mrf_hmem *mrf_hmem_whose(uintptr_t addr, struct mrf_hmem_alloc *alloc);
/* Opens the runtimes that the application has loaded. */
void mrf_hmem_notice(void);

/* --- for the tables ----------------------------------------------------------------------- */

/* A function of a runtime's library. */
struct mrf_dl_symbol {
	const char *name;
	void *function; /* the pointer to be set */
};

/*
 * -FI_ENOSYS: the library cannot be loaded, or lacks a function; *why says what the loader says,
 * or names each missing function. A library that was loaded stays loaded.
 */
int mrf_dl_load(const char *library, const struct mrf_dl_symbol *symbols, size_t count,
		struct mrf_hmem_why *why);
/* For a function that older runtimes lack: *function is NULL then. */
void mrf_dl_find(const char *library, const char *name, void *function);

#endif
