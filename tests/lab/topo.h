/* Topology files: hosts, routers and links between them. README.md explains the
 * format by example. Errors read FILE:LINE:COLUMN: what is wrong. */
#ifndef LAB_TOPO_H
#define LAB_TOPO_H

#include <ptcp/err.h>
#include <stdint.h>

#include "link.h"

#define TOPO_NAME_BYTES 32
#define TOPO_MAX_NODES 600
#define TOPO_MAX_LINKS 2000
#define TOPO_MAX_SYSCTLS 16

struct topo_sysctl {
	char name[64], value[128]; /* name without "net." */
};

struct topo_node {
	char name[TOPO_NAME_BYTES];
	int is_host;               /* else a router: no namespace, only a place */
	uint32_t address;          /* IPv4, host byte order; hosts only */
	uint32_t mtu;
	uint64_t window_bytes;     /* largest TCP window it advertises; 0: no limit */
	struct topo_sysctl sysctl[TOPO_MAX_SYSCTLS];
	int sysctls;
};

/* Both directions of a link or, with conf[1] unused, one. */
struct topo_link {
	char name[TOPO_NAME_BYTES];
	int ends[2];               /* nodes; direction 0 goes from ends[0] to ends[1] */
	int both;
	struct link_conf conf[2];
};

struct topo {
	struct topo_node node[TOPO_MAX_NODES]; /* hosts first */
	int nodes, hosts;
	struct topo_link link[TOPO_MAX_LINKS];
	int links;
	uint64_t seed;             /* of losses and jitter; 0: a new one each time */
};

/* A heap object for topo_free(). 0, PTCP_ECONFIG, PTCP_EIO or PTCP_ENOMEM. */
int topo_load(struct topo **out, const char *path, struct ptcp_err *e);
void topo_free(struct topo *t);

/* Index of a node or host by name, -1. */
int topo_node(const struct topo *t, const char *name);
int topo_host(const struct topo *t, const char *name);

#endif
