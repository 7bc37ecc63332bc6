libmrfab_internal_la_SOURCES += \
	lib/verbs/vagain.c \
	lib/verbs/vcm.c \
	lib/verbs/vcm.h \
	lib/verbs/vcq.c \
	lib/verbs/vcq.h \
	lib/verbs/vdev.c \
	lib/verbs/vdev.h \
	lib/verbs/verbs.h \
	lib/verbs/verbs_int.h \
	lib/verbs/vevent.c \
	lib/verbs/vloop.c \
	lib/verbs/vloop.h \
	lib/verbs/vmr.c \
	lib/verbs/vmr.h \
	lib/verbs/vmr_drop.c \
	lib/verbs/vnl.c \
	lib/verbs/vnl.h \
	lib/verbs/vnl_addr.c \
	lib/verbs/vnl_addr.h \
	lib/verbs/vnl_kept.c \
	lib/verbs/vnl_kept.h \
	lib/verbs/vnl_path.c \
	lib/verbs/vnl_path.h \
	lib/verbs/vnode.c \
	lib/verbs/vnode.h \
	lib/verbs/vqp.c \
	lib/verbs/vqp.h
