/* The inside of links, for links.c (measured once, by a budget), links_watch.c (again and again), links_ask.c (told by
 * others) and links_kept.c (from one run to the next). */
#ifndef COLLECT_LINKS_IMPL_H
#define COLLECT_LINKS_IMPL_H

#include <ptcp/plan.h>
#include <ptcp/ptcp.h>
#include <stdatomic.h>

#include "core/clock.h"
#include "model/stats.h"
#include "model/history.h"

struct link {
	struct ptcp_overlay_link of;
	bool out;                /* not to be measured: `why` */
	char why[300];           /* it could not be measured, the last time; "": it could, or has yet to be */
	int code;
	struct ptcp_message *message;
	size_t n;
	double round_trip_s;
	struct ptcp_link_estimate estimate;
	struct mono seen;        /* when that had estimate.age_s */
	struct ewma rate, delay; /* over the rounds of watching, bit/s and seconds */
};

struct ptcp_links {
	const struct ptcp_overlay *overlay;
	struct ptcp_links_opts o;
	struct ptcp_transfer_opts connect;
	struct link *link;
	size_t n;
	int local_host;
	atomic_bool cancelled;
};

/* How often a flag is looked at that any thread may set. */
#define LINKS_CANCEL_MS 100

#define LINKS_OLD_S HISTORY_MAX_S /* what is older says nothing of now */

/* ---- links.c ---- */

/* Sends so many messages more, and estimates from all that there are. */
int links_measure_link(struct ptcp_links *s, struct link *l, unsigned messages, struct ptcp_err *e);
/* Runs it, until it is over or the links are cancelled. */
int links_run(struct ptcp_links *s, struct ptcp_transfer *t, struct ptcp_err *e);
/* It could not be measured, for that reason. */
void links_fail(struct link *l, const struct ptcp_err *why);
/* What has come of all. */
int links_outcome(const struct ptcp_links *s, bool asked, struct ptcp_err *e);
/* Seconds since it was measured. */
double links_age_s(const struct link *l);

#endif
