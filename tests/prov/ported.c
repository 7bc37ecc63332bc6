/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mistakes that real programs had, each as a small program that was written and tried with one provider
 * and then meets another one. It knows libfabric only, is linked with the one that is installed, and is
 * its own peer. docs/MISTAKES.md says where they come from.
 *
 * Usage: ported NAME    exit status: 0 it saw no mistake, 1 it was told of an error, 2 it did not come so
 * far
 */
#include "own_peer.h"

#define KEY 7

/* --- what all of them do, and do right ------------------------------------------------- */

static struct fi_info *make_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		must("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	return hints;
}

static void enable(struct fid_mr *mr)
{
	if (!(info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return;
	must("fi_mr_bind", fi_mr_bind(mr, &ep->fid, 0));
	must("fi_mr_enable", fi_mr_enable(mr));
}

static struct fid_mr *register_disabled(void *memory, uint64_t access, uint64_t key)
{
	struct fid_mr *mr;

	must("fi_mr_reg", fi_mr_reg(domain, memory, LEN, access, 0, key, 0, &mr, NULL));
	return mr;
}

static struct fid_mr *register_memory(void *memory, uint64_t access, uint64_t key)
{
	struct fid_mr *mr = register_disabled(memory, access, key);

	enable(mr);
	return mr;
}

static uint64_t base(const void *memory)
{
	return info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0;
}

static int write_to(uint64_t addr, uint64_t key)
{
	void *desc = NULL;
	ssize_t ret;

	if (info->domain_attr->mr_mode & FI_MR_LOCAL)
		desc = fi_mr_desc(register_memory(source, FI_WRITE, KEY + 1));
	do {
		ret = fi_write(ep, source, 64, desc, self, addr, key, NULL);
		fi_cq_read(cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	must("fi_write", ret);
	return take_completion();
}

/* --- the mistakes --------------------------------------------------------------------- */

/* The key is read, to be sent to peers, before the region is enabled. */
static int key_before_enable(void)
{
	struct fid_mr *mr = register_disabled(window, FI_REMOTE_WRITE, KEY);
	uint64_t key = fi_mr_key(mr);

	enable(mr);
	return write_to(base(window), key);
}

/* The place in the window is what a peer is told, whatever the provider asks for. */
static int offset_for_address(void)
{
	struct fid_mr *mr = register_memory(window, FI_REMOTE_WRITE, KEY);

	return write_to(800, fi_mr_key(mr));
}

/* The message that tells a peer of the window has 32 bits for the key. */
static int key_in_32_bits(void)
{
	struct fid_mr *mr = register_memory(window, FI_REMOTE_WRITE, KEY);
	uint32_t sent = (uint32_t)fi_mr_key(mr);

	return write_to(base(window), sent);
}

/* The window moves, but not its key, and a peer that has not heard of it writes to the old one. */
static int key_used_again(void)
{
	static char other[LEN];
	struct fid_mr *mr = register_memory(window, FI_REMOTE_WRITE, KEY);
	uint64_t key = fi_mr_key(mr);

	must("fi_close", fi_close(&mr->fid));
	register_memory(other, FI_REMOTE_WRITE, KEY);
	return write_to(base(other), key);
}

/* One region is forgotten; what fi_close says of the domain, nobody looks at. */
static int domain_is_busy(void)
{
	register_memory(window, FI_REMOTE_WRITE, KEY);
	fi_close(&ep->fid);
	fi_close(&av->fid);
	fi_close(&cq->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} programs[] = { { "key_before_enable", key_before_enable },
		 { "offset_for_address", offset_for_address },
		 { "key_in_32_bits", key_in_32_bits },
		 { "key_used_again", key_used_again },
		 { "domain_is_busy", domain_is_busy } };

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc == 2 && i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (strcmp(argv[1], programs[i].name))
			continue;
		open_all(make_hints());
		return programs[i].run();
	}
	fputs("usage: ported NAME\n", stderr);
	return 2;
}
