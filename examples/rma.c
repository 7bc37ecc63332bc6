/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server lets peers read and write a buffer; a client does so. What the client has to know (the
 * server's name, the address and the key of its region) goes over TCP, as in a real program.
 *
 *	mrfab_with_rxe -- ./rma		both sides, on this host
 *	./rma server [ADDRESS]		on one host; ADDRESS: its own, if it has several networks
 *	./rma client ADDRESS		on another, or on the same one
 *
 * Other registration modes: FI_MRFAB_MR_MODE=LOCAL+ENDPOINT mrfab_with_rxe -- ./rma
 */
#include <netdb.h>
#include "common.h"

#define PORT "7471"
#define LEN 4096

/* Sent as it lies in memory: both hosts have the same processor here. */
struct offer {
	char name[64]; /* of the endpoint */
	uint64_t name_len;
	uint32_t addr_format; /* of the name */
	uint64_t addr, key;   /* of the region */
};

static const char greeting[] = "these bytes were in the server's memory";
static const char answer[] = "and these came from the client";
static char buf[LEN];

static int tcp_open(const char *host, bool listening)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
	int fd, on = 1, ret = getaddrinfo(host, PORT, &hints, &found);

	if (ret)
		die("%s: %s", host ? host : "any address", gai_strerror(ret));
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (listening ? bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1)
		      : connect(fd, found->ai_addr, found->ai_addrlen))
		die("port " PORT " of %s: %s", host ? host : "this host", strerror(errno));
	freeaddrinfo(found);
	return fd;
}

/* What fi_getinfo leaves of these bits in mr_mode, the program has to do. */
static struct fi_info *hints_of_both(void)
{
	return make_hints(FI_RMA, FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
					  FI_MR_ENDPOINT);
}

/* The requested key, 42, counts unless the provider makes the keys (FI_MR_PROV_KEY). */
static void register_buf(struct node *n, uint64_t access)
{
	must(fi_mr_reg(n->domain, buf, LEN, access, 0, 42, 0, &n->mr, NULL));
	if (node_has(n, FI_MR_ENDPOINT)) {
		must(fi_mr_bind(n->mr, &n->ep->fid, 0));
		must(fi_mr_enable(n->mr));
	}
}

static void server(int fd, const char *own)
{
	struct offer offer = { .name_len = sizeof(offer.name) };
	struct node n;
	char done;

	node_open(&n, own, hints_of_both());
	must(fi_enable(n.ep));
	strcpy(buf, greeting);
	register_buf(&n, FI_REMOTE_READ | FI_REMOTE_WRITE);

	must(fi_getname(&n.ep->fid, offer.name, &offer.name_len));
	offer.addr_format = n.info->addr_format;
	offer.key = fi_mr_key(n.mr);
	/* Peers count from the region's first byte, or use this process's addresses. */
	offer.addr = node_has(&n, FI_MR_VIRT_ADDR) ? (uintptr_t)buf : 0;
	say("server: %d bytes at %p: key %#lx, first byte at %#lx for peers", LEN, (void *)buf,
	    (unsigned long)offer.key, (unsigned long)offer.addr);
	tell(fd, &offer, sizeof(offer));

	hear(fd, &done, 1); /* what the client does meanwhile takes no call here */
	if (strcmp(buf, answer))
		die("server: finds \"%s\"", buf);
	say("server: finds \"%s\"", buf);
	node_close(&n);
}

static void client(int fd)
{
	struct fi_info *hints = hints_of_both();
	void *desc = NULL;
	struct offer offer;
	fi_addr_t peer;
	struct node n;

	hear(fd, &offer, sizeof(offer));
	hints->addr_format = offer.addr_format; /* so that what is found has a path there */
	hints->dest_addr = memcpy(malloc(sizeof(offer.name)), offer.name, sizeof(offer.name));
	hints->dest_addrlen = offer.name_len;
	node_open(&n, NULL, hints);
	must(fi_enable(n.ep));
	peer = node_insert(&n, offer.name);
	if (node_has(&n, FI_MR_LOCAL)) {
		register_buf(&n, FI_READ | FI_WRITE);
		desc = fi_mr_desc(n.mr);
	}

	post(fi_read(n.ep, buf, LEN, desc, peer, offer.addr, offer.key, NULL));
	if (node_wait(&n) || strcmp(buf, greeting))
		die("client: did not read what the server has");
	say("client: reads \"%s\"", buf);
	strcpy(buf, answer);
	post(fi_write(n.ep, buf, sizeof(answer), desc, peer, offer.addr, offer.key, NULL));
	if (node_wait(&n))
		die("client: cannot write");
	tell(fd, "", 1);
	node_close(&n);
}

static int tcp; /* of the run without arguments: where the server listens */

static void server_here(int unused)
{
	(void)unused;
	server(accept(tcp, NULL, NULL), NULL);
}

static void client_here(int unused)
{
	(void)unused;
	client(tcp_open("127.0.0.1", false));
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "client")) {
		client(tcp_open(argv[2], false));
	} else if ((argc == 2 || argc == 3) && !strcmp(argv[1], "server")) {
		tcp = tcp_open(argv[2], true);
		server(accept(tcp, NULL, NULL), argv[2]);
	} else if (argc == 1) {
		tcp = tcp_open("127.0.0.1", true);
		return run_both(server_here, client_here);
	} else {
		die("usage: rma [server [ADDRESS] | client ADDRESS]");
	}
	return 0;
}
