libmrfab_internal_la_SOURCES += \
	lib/verbs/verbs.h \
	lib/verbs/vcm.c \
	lib/verbs/vcm.h \
	lib/verbs/vcq.c \
	lib/verbs/vagain.c \
	lib/verbs/vevent.c \
	lib/verbs/vloop.c \
	lib/verbs/vloop.h \
	lib/verbs/vmr_drop.c \
	lib/verbs/vnode.c \
	lib/verbs/vnode.h \
	lib/verbs/vqp.c \
	lib/verbs/vqp.h
include lib/verbs/vdev.mk
include lib/verbs/vnl.mk
