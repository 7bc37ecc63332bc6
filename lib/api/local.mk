include lib/api/basic.mk
include lib/api/info.mk
libmrfab_internal_la_SOURCES += lib/api/fabric_open.c lib/api/init.c
