/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an error number means, in words: the texts behind fi_strerror(). Nothing can fail.
 */
#ifndef MRF_BASE_ERRTEXT_H
#define MRF_BASE_ERRTEXT_H

/*
 * err may be positive (as fi_errno(3) has it) or negative (as the calls return it).
 * Numbers below 256 are the system's own and get the system's text; never NULL. The text
 * of a number that the system does not know lasts until the thread asks again.
 */
const char *mrf_errtext(int err);

#endif
