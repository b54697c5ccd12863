/* Internals of links: links.c (selection and estimates), links_measure.c (measurement within a budget),
 * links_watch.c (continuous measurement), links_query.c (queries of servers) and links_file.c (the file). */
#ifndef COLLECT_LINKS_IMPL_H
#define COLLECT_LINKS_IMPL_H

#include <ptcp/plan.h>
#include <ptcp/ptcp.h>
#include <stdatomic.h>

#include "core/clock.h"
#include "model/history.h"
#include "model/shared_bottleneck.h"
#include "model/stats.h"

struct link_state {
	struct ptcp_overlay_link of;
	bool out;                /* the link is not measured, see `why` */
	char why[300];           /* latest failure; "": success, or no attempt yet */
	int code;
	struct ptcp_message *message;
	size_t n;
	double round_trip_s;
	struct ptcp_link_estimate estimate;
	struct mono measured_at;        /* reference time of estimate.age_s */
	struct ewma rate, delay; /* averages over the rounds of watching, bit/s and s */
};

struct ptcp_links {
	const struct ptcp_overlay *overlay;
	struct ptcp_links_opts o;
	struct ptcp_transfer_opts connect;
	struct link_state *link;
	size_t n;
	int local_host;
	atomic_bool canceled;
	struct ptcp_shared_bottleneck shared[SHARED_LINKS_MAX];
	size_t n_shared, shared_links[SHARED_LINKS_MAX]; /* links of all shared bottlenecks */
};

/* Polling interval of the cancel flag, which any thread may set. */
#define LINKS_CANCEL_MS 100

#define LINKS_OLD_S HISTORY_MAX_S /* older estimates are useless */

/* ---- links.c ---- */

/* Begins or ends at this host. */
bool links_is_local(const struct ptcp_links *s, const struct link_state *l);
/* Adds messages, and estimates from all. */
int links_take(struct link_state *l, const struct ptcp_message *message, size_t n, double round_trip_s,
    struct ptcp_err *e);
/* Fills *e; returns PTCP_ECANCELED. */
int links_canceled(struct ptcp_err *e);
/* Records the reason of a failed measurement. */
void links_fail(struct link_state *l, const struct ptcp_err *why);
/* Overall result. */
int links_outcome(const struct ptcp_links *s, bool queried, struct ptcp_err *e);
/* Age of the estimate in seconds. */
double links_age_s(const struct link_state *l);

/* ---- links_measure.c ---- */

/* Runs a transfer until its end, or until the links are canceled. */
int links_run(struct ptcp_links *s, struct ptcp_task *t, struct ptcp_err *e);
/* Sends more messages, and estimates from all. */
int links_measure_link(struct ptcp_links *s, struct link_state *l, unsigned messages, struct ptcp_err *e);

#endif
