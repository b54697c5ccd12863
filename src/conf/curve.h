/* What a link or shared bottleneck brings over the number of streams, as an overlay file has it:
 *
 *     curve: {1: 94Mbit/s, 4: {rate: 260Mbit/s, impact: 6}, ..}
 *
 * What has been read was checked: points ascend, none brings less than the one before, each stream
 * brings at most as much as those before it (concave, from 0 at no stream), and impacts are given
 * at all points or at none. */
#ifndef CONF_CURVE_H
#define CONF_CURVE_H

#include <stddef.h>
#include <stdint.h>

#include "conf/yaml.h"

#define CONF_POINTS_MAX 64
#define CONF_STREAMS_MAX 1000

struct conf_point {
	unsigned streams;
	uint64_t rate_bps;   /* of them together */
	double impact_ratio; /* what they take from each other flow; NAN: not given */
};

struct conf_curve {
	struct conf_point *point;
	size_t n;
	unsigned most; /* streams that the budget allows: plan/curve.h finds out; 0 until then */
	struct conf_mark mark;
};

/* `what` names it in errors ("link"). */
int conf_read_curve(struct conf_curve **out, const struct conf_doc *d, int node, const char *what,
    struct ptcp_err *e);
void conf_curve_free(struct conf_curve *c); /* NULL is fine */

#endif
