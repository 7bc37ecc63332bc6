/* SPDX-License-Identifier: BSD-2-Clause */
#include "info_ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include "info_json.h"
#include "info_where.h"
#include "mr/ledger.h"

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static const char *rights(const struct mrf_ledger_entry *entry)
{
	return entry->access ? fi_tostr(&entry->access, FI_TYPE_CAPS) : "no right";
}

static void print_key(const struct mrf_ledger_entry *entry)
{
	if (entry->key != FI_KEY_NOTAVAIL)
		printf(", key 0x%" PRIx64, entry->key);
}

static void print_where(const struct info_where *where)
{
	if (*where->function)
		printf("%s+0x%" PRIx64 " (%s+0x%" PRIx64 ")", where->function, where->offset,
		       where->object, where->place);
	else if (*where->object)
		printf("%s+0x%" PRIx64, where->object, where->place);
	else
		printf("0x%" PRIx64, where->place);
}

static void print_text(const struct mrf_ledger_entry *entry, const struct info_where *where)
{
	int64_t age = now_ms() - entry->since;

	printf("    0x%" PRIx64 ", %" PRIu64 " byte%s", entry->addr, entry->len,
	       entry->len == 1 ? "" : "s");
	print_key(entry);
	if (entry->segments > 1)
		printf(", %u segments", entry->segments);
	printf(", %s, %" PRId64 ".%" PRId64 " s old", rights(entry), age / 1000, age / 100 % 10);
	if (entry->bound)
		printf(", bound to %u object%s", entry->bound, entry->bound == 1 ? "" : "s");
	printf("\n        registered by ");
	if (entry->caller)
		print_where(where);
	else
		printf("a call that has not returned");
	putchar('\n');
}

static void print_json(const char *domain, const struct mrf_ledger_entry *entry,
		       const struct info_where *where)
{
	int64_t age = now_ms() - entry->since;
	const char *access = entry->access ? rights(entry) : "";

	printf("\n  {\"region\": {\"domain\": ");
	info_json_string(domain, strlen(domain));
	printf(", \"address\": \"0x%" PRIx64 "\", \"length\": %" PRIu64 ", \"key\": ", entry->addr,
	       entry->len);
	if (entry->key == FI_KEY_NOTAVAIL)
		printf("null");
	else
		printf("\"0x%" PRIx64 "\"", entry->key);
	printf(", \"access\": ");
	info_json_set(access, strlen(access));
	printf(", \"segments\": %u, \"bound\": %u, \"age_ms\": %" PRId64 ", \"object\": ",
	       entry->segments, entry->bound, age);
	info_json_string(where->object, strlen(where->object));
	if (entry->caller)
		printf(", \"place\": \"0x%" PRIx64 "\"", where->place);
	else
		printf(", \"place\": null");
	printf(", \"function\": ");
	info_json_string(where->function, strlen(where->function));
	printf("}}");
}

/* False: no region is open there, or it is being registered or closed at this moment. */
static bool read_entry(int fd, size_t i, struct mrf_ledger_entry *entry)
{
	off_t offset = (off_t)(MRF_LEDGER_HEAD + i * sizeof(*entry));
	uint64_t serial;

	return pread(fd, entry, sizeof(*entry), offset) == (ssize_t)sizeof(*entry) &&
	       entry->serial &&
	       pread(fd, &serial, sizeof(serial), offset) == (ssize_t)sizeof(serial) &&
	       serial == entry->serial;
}

static unsigned print_regions(struct info_pid *of, int fd, const char *domain)
{
	struct mrf_ledger_entry entry;
	struct info_where where;
	unsigned n = 0;
	size_t i, count;
	struct stat st;

	count = fstat(fd, &st) || st.st_size < MRF_LEDGER_HEAD
			? 0
			: ((size_t)st.st_size - MRF_LEDGER_HEAD) / sizeof(entry);
	for (i = 0; i < count; i++) {
		if (!read_entry(fd, i, &entry))
			continue;
		/* The call itself, which is before where it returns to. */
		info_where_find(of->pid, entry.caller ? entry.caller - 1 : 0, &where);
		n++;
		if (!of->json)
			print_text(&entry, &where);
		else {
			fputs(of->shown++ ? "," : "", stdout);
			print_json(domain, &entry, &where);
		}
	}
	return n;
}

static void print_ledger(struct info_pid *of, int fd)
{
	struct mrf_ledger_head head;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    head.magic != MRF_LEDGER_MAGIC || head.pid != atoll(of->pid))
		return;
	head.domain[sizeof(head.domain) - 1] = '\0';
	if (of->json) {
		fputs(of->shown++ ? "," : "", stdout);
		printf("\n  {\"domain\": ");
		info_json_string(head.domain, strlen(head.domain));
		putchar('}');
		print_regions(of, fd, head.domain);
		return;
	}
	printf("memory regions that are open: %s\n", head.domain);
	of->shown++;
	if (!print_regions(of, fd, head.domain))
		printf("    none\n");
}

int info_ledger_print(struct info_pid *of)
{
	return info_pid_files(of, MRF_LEDGER_NAME, print_ledger);
}
