libmrfab_internal_la_SOURCES += \
	lib/ep/agent.c \
	lib/ep/agent.h \
	lib/ep/agent_calls.c \
	lib/ep/agent_int.h \
	lib/ep/ask.c \
	lib/ep/conn.c \
	lib/ep/ep.c \
	lib/ep/ep.h \
	lib/ep/ep_bind.c \
	lib/ep/ep_calls.c \
	lib/ep/msg.c \
	lib/ep/msg.h \
	lib/ep/none.c \
	lib/ep/none.h \
	lib/ep/op.c \
	lib/ep/op.h \
	lib/ep/peer.c \
	lib/ep/peer.h \
	lib/ep/peer_fail.c \
	lib/ep/peer_int.h \
	lib/ep/remote.c \
	lib/ep/remote.h \
	lib/ep/request.c \
	lib/ep/resolve.c \
	lib/ep/rma.c \
	lib/ep/short.c \
	lib/ep/target.c
