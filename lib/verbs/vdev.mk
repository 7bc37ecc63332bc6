libmrfab_internal_la_SOURCES += \
	lib/verbs/verbs_int.h \
	lib/verbs/gate.c \
	lib/verbs/gate.h \
	lib/verbs/vdev.c \
	lib/verbs/vpd.c \
	lib/verbs/vmr.c \
	lib/verbs/vmr_revoke.c
