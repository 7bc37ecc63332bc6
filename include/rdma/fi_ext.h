/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extensions: objects that an application or a peer provider lends to the library
 * (memory monitor, log sink, shared queues) and those that the library lends out.
 * An export or import holds until the object is closed; the lender keeps it alive
 * that long.
 */
#ifndef FI_EXT_H
#define FI_EXT_H

#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#ifdef __cplusplus
extern "C" {
#endif

/* bases of the option numbers that single providers define; used negated */
#define FI_PROV_SPECIFIC_EFA (0xefa << 16)
#define FI_PROV_SPECIFIC_TCP (0x7cb << 16)

enum {
	FI_OPT_EFA_RNR_RETRY = -FI_PROV_SPECIFIC_EFA,
};

struct fi_fid_export {
	struct fid **fid; /* out */
	uint64_t flags;
	void *context;
};

static inline int fi_export_fid(struct fid *fid, uint64_t flags, struct fid **expfid, void *context)
{
	struct fi_fid_export arg;

	arg.fid = expfid;
	arg.flags = flags;
	arg.context = context;
	return fi_control(fid, FI_EXPORT_FID, &arg);
}

static inline int fi_import_fid(struct fid *fid, struct fid *expfid, uint64_t flags)
{
	return fid->ops->bind(fid, expfid, flags);
}

/* Opens the library object `name`, lends it `fid`, and closes the opened one. */
static inline int fi_import(uint32_t version, const char *name, void *attr, size_t attr_len,
			    uint64_t flags, struct fid *fid, void *context)
{
	struct fid *opened;
	int ret;

	ret = fi_open(version, name, attr, attr_len, flags, &opened, context);
	if (ret)
		return ret;
	ret = fi_import_fid(opened, fid, flags);
	fi_close(opened);
	return ret;
}

/*
 * Memory monitor, for fi_open("mr_cache"). The lender of export_ops watches what it
 * is told to with subscribe(), and calls import_ops->notify() when the mapping of
 * such a range goes away; it may do so from inside munmap().
 */
struct fid_mem_monitor;

struct fi_ops_mem_monitor {
	size_t size;
	int (*start)(struct fid_mem_monitor *monitor);
	void (*stop)(struct fid_mem_monitor *monitor);
	int (*subscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	void (*unsubscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	/* false: the range is not what it was when it was subscribed */
	bool (*valid)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
};

struct fi_ops_mem_notify {
	size_t size;
	void (*notify)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
};

struct fid_mem_monitor {
	struct fid fid;
	struct fi_ops_mem_monitor *export_ops;
	struct fi_ops_mem_notify *import_ops;
};

/* Log sink, for fi_open("logging"). Texts are valid during the call only. */
#define FI_LOG_PROV_FILTERED (1ULL << 0)

struct fi_ops_log {
	size_t size;
	int (*enabled)(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, uint64_t flags);
	int (*ready)(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime);
	void (*log)(const struct fi_provider *prov, enum fi_log_level level,
		    enum fi_log_subsys subsys, const char *func, int line, const char *msg);
};

struct fid_logging {
	struct fid fid;
	struct fi_ops_log *ops;
};

static inline int fi_import_log(uint32_t version, uint64_t flags, struct fid_logging *log_fid)
{
	log_fid->fid.fclass = FI_CLASS_LOG;
	log_fid->ops->size = sizeof(struct fi_ops_log);
	return fi_import(version, "logging", NULL, 0, flags, &log_fid->fid, log_fid);
}

/*
 * Objects that a provider shares with a peer provider (FI_PEER). "owner" is the
 * side whose object the application sees; owner_ops are called by the peer,
 * peer_ops by the owner.
 */
struct fid_peer_av;
struct fid_peer_av_set;
struct fid_peer_cq;
struct fid_peer_srx;

struct fi_ops_av_owner {
	size_t size;
	int (*query)(struct fid_peer_av *av, struct fi_av_attr *attr);
	fi_addr_t (*ep_addr)(struct fid_peer_av *av, struct fid_ep *ep);
};

struct fid_peer_av {
	struct fid fid;
	struct fi_ops_av_owner *owner_ops;
};

/* the pointer's tag is not fid_peer_av: so it stands in the interface */
struct fi_peer_av_context {
	size_t size;
	struct fi_peer_av *av;
};

struct fi_ops_av_set_owner {
	size_t size;
	int (*members)(struct fid_peer_av_set *av, fi_addr_t *addr, size_t *count);
};

struct fid_peer_av_set {
	struct fid fid;
	struct fi_ops_av_set_owner *owner_ops;
};

struct fi_peer_av_set_context {
	size_t size;
	struct fi_peer_av_set *av_set;
};

struct fi_ops_cq_owner {
	size_t size;
	ssize_t (*write)(struct fid_peer_cq *cq, void *context, uint64_t flags, size_t len,
			 void *buf, uint64_t data, uint64_t tag, fi_addr_t src);
	ssize_t (*writeerr)(struct fid_peer_cq *cq, const struct fi_cq_err_entry *err_entry);
};

struct fid_peer_cq {
	struct fid fid;
	struct fi_ops_cq_owner *owner_ops;
};

struct fi_peer_cq_context {
	size_t size;
	struct fid_peer_cq *cq;
};

struct fi_peer_domain_context {
	size_t size;
	struct fid_domain *domain;
};

struct fi_peer_eq_context {
	size_t size;
	struct fid_eq *eq;
};

/* a posted receive: allocated by the owner, in the peer's hands while it matches */
struct fi_peer_rx_entry {
	struct fi_peer_rx_entry *next;
	struct fi_peer_rx_entry *prev;
	struct fid_peer_srx *srx;
	fi_addr_t addr;
	size_t size;
	uint64_t tag;
	uint64_t flags;
	void *context;
	size_t count;
	void **desc;
	void *peer_context;
	void *owner_context;
	struct iovec *iov;
};

struct fi_ops_srx_owner {
	size_t size;
	int (*get_msg)(struct fid_peer_srx *srx, fi_addr_t addr, size_t size,
		       struct fi_peer_rx_entry **entry);
	int (*get_tag)(struct fid_peer_srx *srx, fi_addr_t addr, uint64_t tag,
		       struct fi_peer_rx_entry **entry);
	int (*queue_msg)(struct fi_peer_rx_entry *entry);
	int (*queue_tag)(struct fi_peer_rx_entry *entry);
	void (*free_entry)(struct fi_peer_rx_entry *entry);
};

struct fi_ops_srx_peer {
	size_t size;
	int (*start_msg)(struct fi_peer_rx_entry *entry);
	int (*start_tag)(struct fi_peer_rx_entry *entry);
	int (*discard_msg)(struct fi_peer_rx_entry *entry);
	int (*discard_tag)(struct fi_peer_rx_entry *entry);
};

struct fid_peer_srx {
	struct fid_ep ep_fid;
	struct fi_ops_srx_owner *owner_ops;
	struct fi_ops_srx_peer *peer_ops;
};

struct fi_peer_srx_context {
	size_t size;
	struct fid_peer_srx *srx;
};

/* FI_PEER_TRANSFER: the peer moves data on behalf of the owner's endpoint */
struct fi_ops_transfer_peer {
	size_t size;
	ssize_t (*complete)(struct fid_ep *ep, struct fi_cq_tagged_entry *buf, fi_addr_t *src_addr);
	ssize_t (*comperr)(struct fid_ep *ep, struct fi_cq_err_entry *buf);
};

struct fi_peer_transfer_context {
	size_t size;
	struct fi_info *info;
	struct fid_ep *ep;
	struct fi_ops_transfer_peer *peer_ops;
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_H */
