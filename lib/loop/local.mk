libmrfab_internal_la_SOURCES += \
	lib/loop/agent.c \
	lib/loop/agent.h \
	lib/loop/agent_calls.c \
	lib/loop/agent_calls.h \
	lib/loop/agent_cq.c \
	lib/loop/agent_cq.h \
	lib/loop/denied.c \
	lib/loop/denied.h \
	lib/loop/device.c \
	lib/loop/device.h \
	lib/loop/job.c \
	lib/loop/job.h
