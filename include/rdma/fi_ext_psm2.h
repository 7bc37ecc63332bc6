/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The psm2 provider's one extension, for programs that name it: an fi_control()
 * command that no other provider knows (-FI_ENOSYS). Include fabric.h first.
 */
#ifndef FI_EXT_PSM2_H
#define FI_EXT_PSM2_H

#define FI_PSM2_DISCONNECT (FI_PROV_SPECIFIC | 1U)

#endif /* FI_EXT_PSM2_H */
