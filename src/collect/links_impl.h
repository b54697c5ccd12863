/* The inside of links that are measured, for links.c (once, by a budget) and links_watch.c (again and again). */
#ifndef COLLECT_LINKS_IMPL_H
#define COLLECT_LINKS_IMPL_H

#include <ptcp/plan.h>
#include <ptcp/ptcp.h>
#include <stdatomic.h>

#include "model/smooth.h"

struct link {
	struct ptcp_overlay_link of;
	bool out;                /* not to be measured: `why` */
	char why[300];           /* it could not be measured; "": it could, or has yet to be */
	int code;
	struct ptcp_message *message;
	size_t n;
	double round_trip_s;
	struct ptcp_link_estimate estimate;
	struct smooth rate, delay; /* over the rounds of watching, bit/s and seconds */
};

struct ptcp_links {
	const struct ptcp_overlay *overlay;
	struct ptcp_links_opts o;
	struct ptcp_transfer_opts connect;
	struct link *link;
	size_t n;
	int here;
	atomic_bool cancelled;
};

/* How often a flag is looked at that any thread may set. */
#define LINKS_CANCEL_MS 100

/* Sends so many messages more, and estimates from all that there are. */
int links_measure_link(struct ptcp_links *s, struct link *l, unsigned messages, struct ptcp_err *e);

#endif
