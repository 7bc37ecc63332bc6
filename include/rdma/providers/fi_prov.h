/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a provider offers to the library that loads it, and its parameters. The
 * provider structure and its strings live as long as the provider is loaded.
 */
#ifndef FI_PROV_H
#define FI_PROV_H

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* file names of loadable providers end in FI_LIB_SUFFIX: NAME-fi.so */
#define FI_LIB_EXTENSION "fi"
#define FI_LIB_SUFFIX FI_LIB_EXTENSION ".so"

/* head of a loadable provider's entry point */
#define FI_EXT_INI                                                                      \
	__attribute__((visibility("default"), EXTERNALLY_VISIBLE)) struct fi_provider * \
	fi_prov_ini(void)

struct fi_provider {
	uint32_t version;	   /* its own */
	uint32_t fi_version;	   /* of the API it was written for */
	struct fi_context context; /* the library's */
	const char *name;
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	void (*cleanup)(void);
};

/* Makes parameter FI_<PROVIDER>_<PARAM_NAME> known; the help text is copied. */
int fi_param_define(const struct fi_provider *provider, const char *param_name,
		    enum fi_param_type type, const char *help_string_fmt, ...);

/*
 * Reads a defined parameter as its type; -FI_ENODATA when not set, then *value is
 * left alone, -FI_EINVAL when it cannot be read. A string is not the caller's.
 */
int fi_param_get(struct fi_provider *provider, const char *param_name, void *value);

static inline int fi_param_get_str(struct fi_provider *provider, const char *param_name,
				   char **value)
{
	return fi_param_get(provider, param_name, value);
}

static inline int fi_param_get_int(struct fi_provider *provider, const char *param_name, int *value)
{
	return fi_param_get(provider, param_name, value);
}

static inline int fi_param_get_bool(struct fi_provider *provider, const char *param_name,
				    int *value)
{
	return fi_param_get(provider, param_name, value);
}

static inline int fi_param_get_size_t(struct fi_provider *provider, const char *param_name,
				      size_t *value)
{
	return fi_param_get(provider, param_name, value);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_PROV_H */
