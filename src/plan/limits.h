/* What an overlay says that a collection at work can find to be otherwise: the rates of links, of shared bottlenecks
 * and of what hosts take in and send, as they are now. And time, which goes on: what lies behind falls away.
 *
 * Limit i is link i; behind the links come the shared bottlenecks, then the ingress of each host, then its egress. */
#ifndef PLAN_LIMITS_H
#define PLAN_LIMITS_H

#include "plan/overlay.h"

size_t limits_count(const struct ptcp_overlay *o);

/* Index of the link between two hosts, or -1. */
int limits_link(const struct ptcp_overlay *o, int from, int to);

/* It has another rate part of the time. */
bool limits_windowed(const struct ptcp_overlay *o, int link);

/* Whether it is a host's ingress or egress: where the overlay has one, a word of its owner's. */
bool limits_is_host(const struct ptcp_overlay *o, size_t i);

/* Whether its rate is a curve over streams, of which a budget allows some and no more. */
bool limits_counts_streams(const struct ptcp_overlay *o, size_t i);

/* The limits that what crosses a link meets: itself first. Writes at most `most`, returns their number. */
size_t limits_of_link(const struct ptcp_overlay *o, int link, size_t *out, size_t most);
/* None meets more than that. */
size_t limits_most_of_link(const struct ptcp_overlay *o);

/* The rate in force at the overlay's time 0; bits per second, INFINITY where none was given. Setting it sets that of
 * the window in force, or else that which holds outside windows. */
double limits_bps(const struct ptcp_overlay *o, size_t i);
void limits_set_bps(struct ptcp_overlay *o, size_t i, double bps);

/* "S1>D", "S1>D + S2>D", "all to K" or "all from K". Returns buf. */
const char *limits_name(const struct ptcp_overlay *o, size_t i, char *buf, size_t cap);

/* Time 0 is so much later from now on. */
void limits_pass(struct ptcp_overlay *o, double seconds);

#endif
