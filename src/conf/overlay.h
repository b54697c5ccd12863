/* An overlay file as plain structs: hosts, links, shared bottlenecks, windows.
 * What is in the structs has been checked: names are unique and known, no link
 * leads from a host to itself, windows of one link do not overlap; where a link
 * has a curve, so has every bottleneck that it shares. Numbers that were not given
 * are CONF_UNSET. */
#ifndef CONF_OVERLAY_H
#define CONF_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/curve.h"
#include "conf/fields.h"
#include "conf/yaml.h"

#define CONF_HOSTS_MAX 1000
#define CONF_LINKS_MAX 100000
#define CONF_GROUPS_MAX 10000
#define CONF_WINDOWS_MAX 10000
#define CONF_NAME_MAX_BYTES 64
#define CONF_DATA_MAX_BYTES (1ull << 60) /* doubles are exact to 2^53, sums to 1e-15 */

struct conf_host {
	char *name;    /* letters, digits and . _ - : */
	char *address; /* may be NULL */
	char *path;    /* may be NULL */
	uint64_t data_bytes, storage_bytes, ingress_bps, egress_bps;
	bool relay;
	struct conf_mark mark;
};

struct conf_link {
	int from, to; /* indices of hosts */
	uint64_t rate_bps, delay_ns; /* with a curve: the rate of its most streams */
	struct conf_curve *curve;    /* or NULL */
	struct conf_mark mark;
};

struct conf_group { /* links that share one bottleneck */
	uint64_t rate_bps;        /* likewise */
	struct conf_curve *curve; /* or NULL */
	int *links;
	size_t nlinks;
	struct conf_mark mark;
};

struct conf_window { /* the rate of a link from `from_ns` until `until_ns` */
	int link;
	uint64_t from_ns, until_ns, rate_bps; /* until: CONF_UNSET is for ever */
	struct conf_mark mark;
};

struct conf_overlay {
	char *file;
	struct conf_host *hosts;
	struct conf_link *links;
	struct conf_group *groups;
	struct conf_window *windows; /* sorted by link, then by time */
	size_t nhosts, nlinks, ngroups, nwindows;
	int destination;
	uint64_t slot_ns, deadline_ns;
	double impact_ratio; /* the budget of the collection; NAN: not given */
	char *launch; /* may be NULL */
	int *link_of; /* [from * nhosts + to], -1 where there is none */
};

int conf_overlay_load(struct conf_overlay **out, const char *path, struct ptcp_err *e);
int conf_overlay_parse(struct conf_overlay **out, const char *text, size_t n,
    const char *name, struct ptcp_err *e);
void conf_overlay_free(struct conf_overlay *o); /* NULL is fine */

/* Index of a host, or -1. */
int conf_overlay_host(const struct conf_overlay *o, const char *name);

/* Index of the link written "A>B", or -1 with `why` set to a host that does not
 * exist, or to NULL when only the link is missing. `why` points into `text`'s
 * copy `buf`, CONF_LINK_TEXT_BYTES long. */
#define CONF_LINK_TEXT_BYTES (2 * CONF_NAME_MAX_BYTES + 2)
int conf_overlay_link(const struct conf_overlay *o, const char *text,
    char buf[CONF_LINK_TEXT_BYTES], const char **why);

#endif
