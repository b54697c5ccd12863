/* Limits of an overlay: the rates of links, of shared bottlenecks, and of each host's ingress and
 * egress.
 *
 * Limit i is link i; the shared bottlenecks follow, then the ingress of each host, then the egress.
 * Rates are in bit/s, INFINITY if not given. A collection also updates the rates, and the time, of its
 * overlay. */
#ifndef PLAN_RATE_LIMITS_H
#define PLAN_RATE_LIMITS_H

#include "conf/overlay.h"

enum limits_kind { LIMITS_LINK, LIMITS_SHARED, LIMITS_INGRESS, LIMITS_EGRESS };

size_t limits_count(const struct ptcp_overlay *o);

/* Kind of a limit, and *index of the link, bottleneck or host. */
enum limits_kind limits_kind(const struct ptcp_overlay *o, size_t i, int *index);

/* Whether the limit is the ingress or egress of a host, which only its owner can raise. */
bool limits_is_host(const struct ptcp_overlay *o, size_t i);

/* The limit's curve of rate over streams, of which the impact budget allows a part; or NULL. */
const struct conf_curve *limits_curve(const struct ptcp_overlay *o, size_t i);

/* Limits crossed by each link: limit[first[link]] to limit[first[link + 1] - 1], ascending, the link itself
 * first. `first` has room for a number per link and one more, `limit` for limits_crossings(). */
size_t limits_crossings(const struct ptcp_overlay *o);
void limits_index(const struct ptcp_overlay *o, size_t *first, size_t *limit);

/* Limits of one link, as limits_index(). Writes at most `max`, returns the number written;
 * limits_max_of_link() is the largest number for any link. */
size_t limits_of_link(const struct ptcp_overlay *o, int link, size_t *out, size_t max);
size_t limits_max_of_link(const struct ptcp_overlay *o);

/* Index of the link between two hosts, or -1. */
int limits_link(const struct ptcp_overlay *o, int from, int to);

/* Whether the link has another rate part of the time. */
bool limits_windowed(const struct ptcp_overlay *o, int link);

/* The rate outside windows, and the rate in force at the overlay's time 0. Setting changes the rate of the
 * window in force, or else the rate outside windows. */
double limits_outside_bps(const struct ptcp_overlay *o, size_t i);
double limits_bps(const struct ptcp_overlay *o, size_t i);
void limits_set_bps(struct ptcp_overlay *o, size_t i, double bps);

/* "S1>D", "S1>D + S2>D", "all to K" or "all from K". Returns buf. */
const char *limits_name(const struct ptcp_overlay *o, size_t i, char *buf, size_t cap);

/* Moves time 0 forward; removes windows in the past. */
void limits_pass(struct ptcp_overlay *o, double seconds);

#endif
