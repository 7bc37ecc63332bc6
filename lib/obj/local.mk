libmrfab_internal_la_SOURCES += \
	lib/obj/av.c \
	lib/obj/av.h \
	lib/obj/av_index.c \
	lib/obj/av_index.h \
	lib/obj/av_insert.c \
	lib/obj/av_int.h \
	lib/obj/av_table.c \
	lib/obj/av_table.h \
	lib/obj/cntr.c \
	lib/obj/cntr.h \
	lib/obj/cq.c \
	lib/obj/cq.h \
	lib/obj/cq_int.h \
	lib/obj/cq_read.c \
	lib/obj/eq.c \
	lib/obj/eq.h \
	lib/obj/obj.c \
	lib/obj/obj.h \
	lib/obj/sleeper.c \
	lib/obj/sleeper.h \
	lib/obj/wait.c \
	lib/obj/wait.h
