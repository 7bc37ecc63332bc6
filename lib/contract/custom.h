/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles that a user describes: FI_MRFAB_PROFILE=custom: and words, separated by commas:
 *
 *	mr_mode=A+B	the modes that are required and in force, as in FI_MRFAB_MR_MODE
 *	key_size=N	bytes of a key, 1 to 8; an application's keys are not greater
 *	max_key=N	or not greater than this, if that is less
 *	iov_limit=N	segments of a region
 *	mr_cnt=N	as fi_getinfo says it
 *	inject_size=N	bytes that are injected
 *	max_msg_size=N	bytes of a message or an access
 *	lacks=A+B	calls that do not exist (-FI_ENOSYS): raw, cntr, ep, enable, refresh, queue;
 *			and capabilities, with FI_ or without
 *
 * Without mr_mode no mode is in force; all else that is not named is as without a profile. A word that would
 * have no effect is refused: one that is given twice (but for lacks), key_size with FI_MR_RAW, max_key with
 * FI_MR_PROV_KEY, or no word at all. So is a lack of calls to which a mode obliges: raw with FI_MR_RAW, refresh
 * with FI_MR_MMU_NOTIFY, ep or enable with FI_MR_ENDPOINT. Blanks may be around a "=".
 *
 * FI_MRFAB_PROFILE=file: and a path is the same in a file, on any number of lines; # begins a comment.
 * The file is read each time that a profile is looked for. Any thread.
 */
#ifndef MRF_CONTRACT_CUSTOM_H
#define MRF_CONTRACT_CUSTOM_H

#include <stddef.h>

struct mrf_profile;

/*
 * The profile for what stands behind "custom:"; the same one for the same text, and it stays. NULL: why
 * says which word is wrong, or that there is no memory.
 */
const struct mrf_profile *mrf_custom_profile(const char *text, char *why, size_t len);
/* The profile in a file. NULL: why says which line is wrong, or why the file cannot be read. */
const struct mrf_profile *mrf_custom_file(const char *path, char *why, size_t len);

#endif
