libmrfab_internal_la_SOURCES += \
	lib/contract/budget.h \
	lib/contract/form.c \
	lib/contract/form.h \
	lib/contract/limits.h \
	lib/contract/mr_mode.c \
	lib/contract/mr_mode.h \
	lib/contract/mr_offer.c \
	lib/contract/mr_offer.h \
	lib/contract/mr_remedy.c \
	lib/contract/mr_remedy.h \
	lib/contract/custom.c \
	lib/contract/custom.h \
	lib/contract/custom_text.c \
	lib/contract/custom_text.h \
	lib/contract/profile.c \
	lib/contract/profile.h \
	lib/contract/promise.c \
	lib/contract/promise.h \
	lib/contract/promises.c \
	lib/contract/promises.h \
	lib/contract/rules.c \
	lib/contract/rules.h
