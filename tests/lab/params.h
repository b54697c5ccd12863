/* A link's parameters as text; the same words in topology files and `lab set`. */
#ifndef LAB_PARAMS_H
#define LAB_PARAMS_H

#include <ptcp/err.h>
#include <stddef.h>

#include "link.h"

/* key        value
 * rate       100Mbit/s, or "unlimited"
 * delay      20ms
 * jitter     5ms: adds 0..5ms, uniform
 * loss       0.1%, or a fraction: 0.001
 * queue      25 packets, or a size: 64kB, or "unlimited"
 * reorder    yes, no: whether jitter may reorder
 * police     "20Mbit/s 250kB": a policer's rate and burst, or "off"
 * red        "MIN MAX PROBABILITY [WEIGHT]" in packets, or "off"
 * Sets one field; on error (PTCP_ECONFIG) *c is untouched. */
int params_set(struct link_conf *c, const char *key, const char *value, struct ptcp_err *e);

/* What a link is without any parameter: unlimited rate, no delay, 1000 packets. */
void params_default(struct link_conf *c);

/* "rate=100Mbit/s delay=20ms ...", which params_set() takes back. */
void params_text(char *buf, size_t size, const struct link_conf *c);

#endif
