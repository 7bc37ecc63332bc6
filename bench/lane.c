/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lane.h"

/* What the target tells of one lane. */
struct offer {
	char name[FAB_NAME_LEN];
	struct work_remote remote;
};

void lanes_tell(struct lanes *lanes, const void *what, size_t len)
{
	bench_must_errno("send", send(lanes->socket, what, len, MSG_NOSIGNAL) == (ssize_t)len);
}

void lanes_hear(struct lanes *lanes, void *what, size_t len)
{
	bench_must_errno("recv", recv(lanes->socket, what, len, MSG_WAITALL) == (ssize_t)len);
}

static int is_fab(enum lane_id id)
{
	return id == LANE_DEFAULT || id == LANE_NATIVE || id == LANE_OTHER;
}

/* --- both sides ------------------------------------------------------------------ */

static void open_fab(struct lanes *lanes, enum lane_id id)
{
	const struct fab_lib *lib = id == LANE_OTHER ? &lanes->other : &fab_ours;
	struct fab *fab = &lanes->fab[id];
	int ret;

	if (id == LANE_OTHER && !fab_find_other(&lanes->other))
		return;
	ret = fab_open(fab, lib, id == LANE_DEFAULT ? 0 : FAB_NATIVE,
		       id == LANE_OTHER ? 0 : FI_ATOMIC, lanes->buf, BENCH_MAX_LEN);
	if (id == LANE_OTHER && ret) {
		fprintf(stderr, "bench: without libfabric: it gives error %d\n", -ret);
		return;
	}
	bench_must(lib->provider, ret);
	lanes->lane[id].fab = fab;
}

void lanes_open(struct lanes *lanes)
{
	lanes->buf = bench_alloc(BENCH_MAX_LEN);
	raw_open(&lanes->raw);
	lanes->lane[LANE_RAW].raw = lanes->lane[LANE_AGAIN].raw = &lanes->raw;
	for (enum lane_id id = 0; id < LANES; id++) {
		if (is_fab(id))
			open_fab(lanes, id);
	}
	lanes->lane[LANE_UNREGISTERED].fab = lanes->lane[LANE_DEFAULT].fab;
}

/* --- the target ------------------------------------------------------------------ */

void lanes_serve_raw(struct lanes *lanes, struct raw *raw)
{
	struct work_remote remote;
	uint16_t port = raw_listen(raw);

	lanes_tell(lanes, &port, sizeof(port));
	raw_accept(raw, lanes->buf, BENCH_MAX_LEN);
	remote.addr = (uintptr_t)lanes->buf;
	remote.key = raw->mr->rkey;
	lanes_tell(lanes, &remote, sizeof(remote));
}

void lanes_serve_fab(struct lanes *lanes, struct fab *fab)
{
	struct pollfd socket = { .fd = lanes->socket, .events = POLLIN };
	struct offer offer;
	char connected;

	fab_name(fab, offer.name);
	fab_remote(fab, lanes->buf, &offer.remote);
	lanes_tell(lanes, &offer, sizeof(offer));
	while (!poll(&socket, 1, 1))
		fab_progress(fab);
	lanes_hear(lanes, &connected, sizeof(connected));
}

static void target(struct lanes *lanes)
{
	char go;

	lanes_hear(lanes, &go, sizeof(go));
	lanes_open(lanes);
	lanes_serve_raw(lanes, &lanes->raw);
	for (enum lane_id id = 0; id < LANES; id++) {
		if (is_fab(id) && lanes->lane[id].fab)
			lanes_serve_fab(lanes, lanes->lane[id].fab);
	}
	device_serve(lanes);
	event_serve(lanes);
	agent_serve(lanes);
	peers_serve(lanes);
	lanes_hear(lanes, &go, sizeof(go));
	_exit(0);
}

void lanes_fork(struct lanes *lanes)
{
	int pair[2];

	bench_must_errno("socketpair", !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	lanes->target = fork();
	bench_must_errno("fork", lanes->target >= 0);
	lanes->socket = pair[!lanes->target];
	close(pair[!!lanes->target]);
	if (!lanes->target)
		target(lanes);
}

/* --- the initiator --------------------------------------------------------------- */

void lanes_connect_raw(struct lanes *lanes, struct raw *raw, struct work_remote *remote)
{
	uint16_t port;

	lanes_hear(lanes, &port, sizeof(port));
	raw_connect(raw, port, lanes->buf, BENCH_MAX_LEN);
	lanes_hear(lanes, remote, sizeof(*remote));
}

static void connect_raw(struct lanes *lanes)
{
	lanes_connect_raw(lanes, &lanes->raw, &lanes->lane[LANE_RAW].access.remote);
	lanes->lane[LANE_AGAIN].access.remote = lanes->lane[LANE_RAW].access.remote;
}

void lanes_connect_fab(struct lanes *lanes, struct fab *fab, struct work_access *access)
{
	struct offer offer;

	lanes_hear(lanes, &offer, sizeof(offer));
	fab_insert(fab, offer.name);
	*access = (struct work_access){ .buf = lanes->buf,
					.len = 8,
					.depth = 1,
					.times = 1,
					.remote = offer.remote,
					.use_desc = 1 };
	/* The first access connects, and asks for what is to be asked. */
	fab_access(fab, access);
	lanes_tell(lanes, "", 1);
}

void lanes_connect(struct lanes *lanes)
{
	struct lane *unregistered = &lanes->lane[LANE_UNREGISTERED];

	lanes_tell(lanes, "", 1);
	connect_raw(lanes);
	for (enum lane_id id = 0; id < LANES; id++) {
		if (is_fab(id) && lanes->lane[id].fab)
			lanes_connect_fab(lanes, lanes->lane[id].fab, &lanes->lane[id].access);
	}
	unregistered->access = lanes->lane[LANE_DEFAULT].access;
	unregistered->access.use_desc = 0;
}

void lanes_join(struct lanes *lanes, struct fab *fab, int mr_mode, uint64_t caps)
{
	struct fab *native = &lanes->fab[LANE_NATIVE];
	size_t len = FAB_NAME_LEN;
	char name[FAB_NAME_LEN];

	bench_must("fab_open", fab_open(fab, &fab_ours, mr_mode, caps, lanes->buf, BENCH_MAX_LEN));
	bench_must("fi_av_lookup", fi_av_lookup(native->av, native->peer, name, &len));
	fab_insert(fab, name);
}

void lanes_close(struct lanes *lanes)
{
	int status;

	lanes_tell(lanes, "", 1);
	bench_must_errno("waitpid", waitpid(lanes->target, &status, 0) == lanes->target);
	bench_must("the target", status);
}

void lane_register(void *arg)
{
	struct lane *lane = arg;

	if (lane->raw)
		raw_register(lane->raw, &lane->reg);
	else if (lane->fab)
		fab_register(lane->fab, &lane->reg);
}

void lane_access(void *arg)
{
	struct lane *lane = arg;

	if (lane->raw)
		raw_access(lane->raw, &lane->access);
	else if (lane->fab)
		fab_access(lane->fab, &lane->access);
}

void lanes_run(struct lanes *lanes, void (*work)(void *arg), int rounds, double ratio[LANES])
{
	struct bench_series series[LANES];
	double raw;

	for (enum lane_id id = 0; id < LANES; id++)
		series[id] = (struct bench_series){ .work = work, .arg = &lanes->lane[id] };
	bench_rounds(series, LANES, rounds);
	raw = bench_middle(series[LANE_RAW].ns, rounds);
	for (enum lane_id id = 0; id < LANES; id++) {
		int there = lanes->lane[id].raw || lanes->lane[id].fab;

		ratio[id] = there ? bench_middle(series[id].ns, rounds) / raw : NAN;
	}
}

const char *lanes_other_version(const struct lanes *lanes)
{
	static char text[32];
	uint32_t version;

	if (!lanes->lane[LANE_OTHER].fab)
		return "none";
	version = lanes->other.version();
	snprintf(text, sizeof(text), "release %u.%u", FI_MAJOR(version), FI_MINOR(version));
	return text;
}
