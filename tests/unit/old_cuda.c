/* SPDX-License-Identifier: BSD-2-Clause */
/* A libcuda.so.1 that is too old: for t_hmem. */
int cuInit(unsigned flags);

int cuInit(unsigned flags)
{
	return (int)flags;
}
