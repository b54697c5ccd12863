/* An overlay file as plain structs (ptcp_overlay is the public handle): hosts, links, shared
 * bottlenecks, windows. The contents are valid: names are unique and known, links connect two hosts,
 * windows of a link do not overlap, and every bottleneck of a link with a curve has a curve. Missing
 * numbers are CONF_UNSET. */
#ifndef CONF_OVERLAY_H
#define CONF_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/yaml.h"
#include "conf/yaml_fields.h"

#define CONF_HOSTS_MAX 1000
#define CONF_LINKS_MAX 100000
#define CONF_GROUPS_MAX 10000
#define CONF_WINDOWS_MAX 10000
#define CONF_POINTS_MAX 64
#define CONF_STREAMS_MAX 1000
#define CONF_NAME_MAX_BYTES 64
#define CONF_DATA_MAX_BYTES (1ull << 60) /* doubles are exact to 2^53, sums to 1e-15 */

struct conf_host {
	char *name;    /* letters, digits and . _ - : only */
	char *address; /* may be NULL */
	char *path;    /* may be NULL */
	uint64_t data_bytes, storage_bytes, ingress_bps, egress_bps;
	bool relay;
	struct conf_mark mark;
};

/* Throughput over the stream count of a link or shared bottleneck:
 *
 *     curve: {1: 94Mbit/s, 4: {rate: 260Mbit/s, impact: 6}, ..}
 *
 * The points are valid: stream counts ascend, rates do not fall, no stream adds more than the previous ones
 * (concave, from 0 at no stream), and either all points have an impact or none. */
struct conf_point {
	unsigned streams;
	uint64_t rate_bps;   /* rate of all streams together */
	double impact_ratio; /* impact on each competing flow; NAN: not given */
};

struct conf_curve {
	struct conf_point *point;
	size_t n;
	unsigned max_streams; /* within the impact budget, set by curve_budgets(); 0 before */
	struct conf_mark mark;
};

struct conf_link {
	int from, to; /* indices of hosts */
	uint64_t rate_bps, delay_ns; /* the rate of max_streams, if there is a curve */
	struct conf_curve *curve;    /* rates over streams, or NULL */
	struct conf_mark mark;
};

struct conf_group { /* links sharing a bottleneck */
	uint64_t rate_bps;        /* the rate of max_streams, if there is a curve */
	struct conf_curve *curve; /* rates over streams, or NULL */
	int *links;
	size_t nlinks;
	struct conf_mark mark;
};

struct conf_window { /* the rate of a link from `from_ns` until `until_ns` */
	int link;
	uint64_t from_ns, until_ns, rate_bps; /* a window; until CONF_UNSET: forever */
	struct conf_mark mark;
};

struct ptcp_overlay {
	char *file;
	struct conf_host *hosts;
	struct conf_link *links;
	struct conf_group *groups;
	struct conf_window *windows; /* sorted by link, then by time */
	size_t nhosts, nlinks, ngroups, nwindows;
	size_t nlisted; /* links of the list; the others follow from 'all' */
	int destination;
	uint64_t slot_ns, deadline_ns;
	double impact_ratio; /* impact budget of the collection; NAN: not given */
	char *launch; /* may be NULL */
	const char *fault; /* why the file must not be trusted to name commands, see
	                      core/trusted_file.h; NULL: trusted */
	int *link_of; /* [from * nhosts + to], -1 without a link */
};

int conf_overlay_load(struct ptcp_overlay **out, const char *path, struct ptcp_err *e);
int conf_overlay_parse(struct ptcp_overlay **out, const char *text, size_t n,
    const char *name, struct ptcp_err *e);
void conf_overlay_free(struct ptcp_overlay *o); /* NULL is fine */

/* Index of a host, or -1. */
int conf_overlay_host(const struct ptcp_overlay *o, const char *name);

/* Index of the link written "A>B", or -1 with *missing set to an unknown host, or to NULL for a missing
 * link. *missing points into `buf`. */
#define CONF_LINK_TEXT_BYTES (2 * CONF_NAME_MAX_BYTES + 2)
int conf_overlay_link(const struct ptcp_overlay *o, const char *text,
    char buf[CONF_LINK_TEXT_BYTES], const char **missing);

/* ---- overlay_links.c, for overlay.c ---- */

/* Lists of links in an overlay file, read by overlay.c after the hosts. `node` 0: list not given. */
/* With the links of `all` and its defaults; 0: not given. */
int conf_read_links(const struct conf_doc *d, int node, int all, struct ptcp_overlay *o, struct ptcp_err *e);
int conf_read_groups(const struct conf_doc *d, int node, struct ptcp_overlay *o, struct ptcp_err *e);
int conf_read_windows(const struct conf_doc *d, int node, struct ptcp_overlay *o, struct ptcp_err *e);

void conf_free_curve(struct conf_curve *c); /* NULL is fine */

#endif
