/* SPDX-License-Identifier: BSD-2-Clause */
/* What each stand-in exports for tests: memory.h. Included at the end of its source. */
EXPORT void mrfab_runtime_fail(const char *name, unsigned nth, int error)
{
	rt_fail_next(name, nth, error);
}

EXPORT unsigned mrfab_runtime_fails_left(void)
{
	return rt_fails_left();
}

EXPORT unsigned long mrfab_runtime_calls(const char *name)
{
	return rt_calls(name);
}
