/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of mrfab_info. */
#ifndef INFO_OPTIONS_H
#define INFO_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>

struct info_options {
	uint32_t version;
	const char *node;
	const char *service;
	uint64_t flags;
	struct fi_info *hints;
	bool use_hints; /* any option set one */
	bool mr_mode;	/* --mr-mode did */
	bool verbose;
	bool explain;
	bool variables;
	bool json;
	const char *code; /* of a message, or NULL */
	const char *pid;  /* of another process, or NULL */
};

/*
 * Fills opt, whose hints and version are set. 0: go on; 1: done, as after --help; negative:
 * wrong usage, of which standard error has a line.
 */
int info_options_parse(struct info_options *opt, int argc, char **argv);
/*
 * Offers the registration modes that the environment requires, unless --mr-mode says what to
 * offer: a program that only lists what there is can have any mode.
 */
void info_options_offer_modes(struct info_options *opt);
/* The variable of the environment that requires registration modes, or NULL. */
const char *info_options_required(void);

#endif
