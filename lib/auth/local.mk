# SPDX-License-Identifier: BSD-2-Clause
libmrfab_internal_la_SOURCES += \
	lib/auth/auth.c \
	lib/auth/auth.h
