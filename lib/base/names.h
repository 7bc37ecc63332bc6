/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of the interface's constants, for messages and fi_tostr(): one table per type,
 * one row per value. Immutable; nothing can fail.
 */
#ifndef MRF_BASE_NAMES_H
#define MRF_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrf_name {
	uint64_t value;
	const char *name;
};

struct mrf_names {
	const struct mrf_name *rows;
	size_t count;
	const char *zero; /* for sets of bits: the name of the empty set */
	bool prov;	  /* values with FI_PROV_SPECIFIC are a provider's own */
};

/* Sets of bits. */
extern const struct mrf_names mrf_names_caps;
extern const struct mrf_names mrf_names_op_flags;
extern const struct mrf_names mrf_names_cq_flags;
extern const struct mrf_names mrf_names_msg_order;
extern const struct mrf_names mrf_names_comp_order;
extern const struct mrf_names mrf_names_mode;
extern const struct mrf_names mrf_names_mr_mode;

/* Enumerations. */
extern const struct mrf_names mrf_names_addr_format;
extern const struct mrf_names mrf_names_atomic_op;
extern const struct mrf_names mrf_names_atomic_type;
extern const struct mrf_names mrf_names_av_type;
extern const struct mrf_names mrf_names_bus_type;
extern const struct mrf_names mrf_names_class;
extern const struct mrf_names mrf_names_collective_op;
extern const struct mrf_names mrf_names_cq_format;
extern const struct mrf_names mrf_names_ep_type;
extern const struct mrf_names mrf_names_eq_event;
extern const struct mrf_names mrf_names_errno; /* and FI_EWOULDBLOCK, FI_EAGAIN by another name */
extern const struct mrf_names mrf_names_hmem_iface;
extern const struct mrf_names mrf_names_link_state;
extern const struct mrf_names mrf_names_log_level;
extern const struct mrf_names mrf_names_log_subsys;
extern const struct mrf_names mrf_names_op_type;
extern const struct mrf_names mrf_names_progress;
extern const struct mrf_names mrf_names_protocol;
extern const struct mrf_names mrf_names_resource_mgmt;
extern const struct mrf_names mrf_names_threading;

/* Name of one value; "Unknown" or "Provider specific" when the table has none. */
const char *mrf_names_enum(const struct mrf_names *names, uint64_t value);

/*
 * Names of the bits of a set, "FI_READ, FI_WRITE", followed by the bits without a name in
 * hex; always terminated, cut to len (> 0). Returns buf.
 */
char *mrf_names_bits(const struct mrf_names *names, uint64_t value, char *buf, size_t len);
/* Is this text, of len bytes, the name, in any case? */
bool mrf_names_is(const char *text, size_t len, const char *name);

#endif
