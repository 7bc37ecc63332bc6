/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning of error numbers in words: the texts of fi_strerror(). Nothing can fail. */
#ifndef MRF_BASE_ERRTEXT_H
#define MRF_BASE_ERRTEXT_H

/*
 * The text for err, never NULL. err may be positive (as in fi_errno(3)) or negative (as
 * calls return it). Numbers below 256 are the system's own and get the system's text. The
 * text for a number that the system does not know is valid until the thread's next call.
 */
const char *mrf_errtext(int err);
/* As mrf_errtext, for messages: names the process's limit that an error stands for. */
const char *mrf_limit_text(int err);

#endif
