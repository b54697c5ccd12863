#include "red.h"

#include <math.h>

void red_init(struct red *r)
{
	*r = (struct red){ .since_drop = -1 };
}

void red_idle(struct red *r, uint64_t now_ns)
{
	r->idle_since_ns = now_ns;
}

static void age(struct red *r, const struct red_conf *c, uint64_t waiting,
    uint64_t now_ns, uint64_t service_ns)
{
	double samples;

	if (waiting > 0) {
		r->avg += c->weight * ((double)waiting - r->avg);
		return;
	}
	samples = now_ns > r->idle_since_ns && service_ns > 0 ?
	    (double)(now_ns - r->idle_since_ns) / (double)service_ns : 0;
	r->avg *= pow(1 - c->weight, samples + 1);
	r->idle_since_ns = now_ns;
}

int red_drop(struct red *r, const struct red_conf *c, uint64_t waiting,
    uint64_t now_ns, uint64_t service_ns, struct rng *rng)
{
	double p;

	age(r, c, waiting, now_ns, service_ns);
	if (r->avg < c->min_packets) {
		r->since_drop = -1;
		return 0;
	}
	if (r->avg >= 2 * c->max_packets) {
		r->since_drop = 0;
		return 1;
	}
	if (r->avg < c->max_packets)
		p = c->max_ratio * (r->avg - c->min_packets) /
		    (c->max_packets - c->min_packets);
	else
		p = c->max_ratio + (1 - c->max_ratio) *
		    (r->avg - c->max_packets) / c->max_packets;
	/* Spread drops evenly: the paper's p_a = p_b / (1 - count * p_b). */
	r->since_drop++;
	if (r->since_drop * p < 1)
		p /= 1 - r->since_drop * p;
	else
		p = 1;
	if (rng_unit(rng) >= p)
		return 0;
	r->since_drop = 0;
	return 1;
}
