/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of a file that describes a profile (custom.h). Any thread. */
#ifndef MRF_CONTRACT_CUSTOM_TEXT_H
#define MRF_CONTRACT_CUSTOM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define MRF_CUSTOM_TEXT 65537 /* bytes of a text, with its NUL */

/* Reads the file into text, of MRF_CUSTOM_TEXT bytes. False: why names it, and says why it cannot be read. */
bool mrf_custom_text(const char *path, char *text, char *why, size_t len);

#endif
