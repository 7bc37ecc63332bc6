libmrfab_internal_la_SOURCES += \
	lib/loop/agent.c \
	lib/loop/agent.h \
	lib/loop/agent_calls.c \
	lib/loop/agent_calls.h \
	lib/loop/agent_cq.c \
	lib/loop/agent_cq.h \
	lib/loop/job.c \
	lib/loop/job.h
