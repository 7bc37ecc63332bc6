/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * closer LIBRARY: loads the library, uses it, and lets go of it by dlclose, several times; goes on
 * with changes of mappings in between. Linked with no part of it. For f_deadlock.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#define LEN (1ul << 20)

#define must(ok)                                                        \
	do {                                                            \
		if (!(ok)) {                                            \
			fprintf(stderr, "closer: %s is not so\n", #ok); \
			exit(1);                                        \
		}                                                       \
	} while (0)

static void change_mappings(void)
{
	for (int i = 0; i < 100; i++) {
		void *p =
			mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		must(p != MAP_FAILED);
		*(volatile char *)p = 1;
		madvise(p, LEN, MADV_DONTNEED);
		must(!munmap(p, LEN));
		free(malloc(LEN));
	}
}

static void use(void *lib)
{
	int (*get)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
		   struct fi_info **);
	int (*open_fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	void (*free_info)(struct fi_info *);
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *info;
	struct fid_mr *mr;

	*(void **)&get = dlsym(lib, "fi_getinfo");
	*(void **)&open_fabric = dlsym(lib, "fi_fabric");
	*(void **)&free_info = dlsym(lib, "fi_freeinfo");
	must(get && open_fabric && free_info);
	must(!get(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info));
	must(!open_fabric(info->fabric_attr, &fabric, NULL));
	must(!fi_domain(fabric, info, &domain, NULL));
	must(!fi_mr_reg(domain, NULL, UINT64_MAX, FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	change_mappings();
	must(!fi_close(&mr->fid) && !fi_close(&domain->fid) && !fi_close(&fabric->fid));
	free_info(info);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	alarm(60);
	for (int i = 0; i < 3; i++) {
		void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

		if (!lib) {
			fprintf(stderr, "closer: %s\n", dlerror());
			return 1;
		}
		use(lib);
		must(!dlclose(lib));
		change_mappings();
	}
	return 0;
}
