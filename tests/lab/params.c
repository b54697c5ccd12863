#include "params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

#define DEFAULT_QUEUE_PACKETS 1000
#define DEFAULT_RED_WEIGHT 0.002 /* Floyd and Jacobson, and ns-2 */

static int parse_rate(struct link_conf *c, const char *v)
{
	if (strcmp(v, "unlimited") == 0)
		c->rate_bps = 0;
	else if (units_parse_rate(v, &c->rate_bps) < 0 || c->rate_bps == 0)
		return -1;
	return 0;
}

static int parse_delay(struct link_conf *c, const char *v)
{
	return units_parse_time(v, &c->delay_ns);
}

static int parse_jitter(struct link_conf *c, const char *v)
{
	return units_parse_time(v, &c->jitter_ns);
}

static int parse_loss(struct link_conf *c, const char *v)
{
	char *end;
	double x = strtod(v, &end);

	if (end == v || v[0] == '-' || (strcmp(end, "%") != 0 && *end != '\0'))
		return -1;
	if (*end == '%')
		x /= 100;
	if (!(x >= 0 && x <= 1))
		return -1;
	c->loss_ratio = x;
	return 0;
}

static int parse_queue(struct link_conf *c, const char *v)
{
	uint64_t bytes = 0;
	unsigned long packets;
	char unit[16], more;

	if (strcmp(v, "unlimited") == 0) {
		c->queue_packets = c->queue_bytes = 0;
		return 0;
	}
	if (sscanf(v, "%8lu %15s%c", &packets, unit, &more) == 2 && v[0] != '-' &&
	    (strcmp(unit, "packets") == 0 || strcmp(unit, "p") == 0) && packets > 0) {
		c->queue_packets = packets;
		c->queue_bytes = 0;
		return 0;
	}
	if (units_parse_size(v, &bytes) < 0 || bytes == 0)
		return -1;
	c->queue_bytes = bytes;
	c->queue_packets = 0;
	return 0;
}

static int parse_reorder(struct link_conf *c, const char *v)
{
	if (strcmp(v, "yes") != 0 && strcmp(v, "no") != 0)
		return -1;
	c->reorder = v[0] == 'y';
	return 0;
}

static int parse_red(struct link_conf *c, const char *v)
{
	struct red_conf r = { .weight = DEFAULT_RED_WEIGHT };
	char more;
	int n;

	if (strcmp(v, "off") == 0) {
		c->red = (struct red_conf){ 0 };
		return 0;
	}
	n = sscanf(v, "%lf %lf %lf %lf%c", &r.min_packets, &r.max_packets,
	    &r.max_ratio, &r.weight, &more);
	if ((n != 3 && n != 4) || !(r.min_packets >= 0 && r.max_packets > r.min_packets &&
	    r.max_ratio > 0 && r.max_ratio <= 1 && r.weight > 0 && r.weight <= 1))
		return -1;
	c->red = r;
	return 0;
}

static int parse_police(struct link_conf *c, const char *v)
{
	char rate[40], burst[40], more;
	uint64_t bps, bytes;

	if (strcmp(v, "off") == 0) {
		c->police_bps = c->police_bytes = 0;
		return 0;
	}
	if (sscanf(v, "%39s %39s%c", rate, burst, &more) != 2 || units_parse_rate(rate, &bps) < 0 || bps == 0 ||
	    units_parse_size(burst, &bytes) < 0 || bytes == 0)
		return -1;
	c->police_bps = bps;
	c->police_bytes = bytes;
	return 0;
}

static const struct {
	const char *key, *form;
	int (*parse)(struct link_conf *, const char *);
} params[] = {
	{ "rate", "like 100Mbit/s, or unlimited", parse_rate },
	{ "delay", "like 20ms", parse_delay },
	{ "jitter", "like 5ms", parse_jitter },
	{ "loss", "like 0.1% or 0.001, at most 1", parse_loss },
	{ "queue", "like \"25 packets\" or 64kB, or unlimited", parse_queue },
	{ "reorder", "yes or no", parse_reorder },
	{ "police", "a rate and a burst like \"20Mbit/s 250kB\", or off", parse_police },
	{ "red", "\"MIN MAX PROBABILITY [WEIGHT]\" with MIN < MAX packets, or off", parse_red },
};
#define PARAMS (sizeof params / sizeof *params)

int params_set(struct link_conf *c, const char *key, const char *value, struct ptcp_err *e)
{
	struct link_conf next = *c;

	for (size_t i = 0; i < PARAMS; i++) {
		if (strcmp(params[i].key, key) != 0)
			continue;
		if (params[i].parse(&next, value) < 0)
			return err_set(e, PTCP_ECONFIG, "%s is \"%s\", should be %s", key,
			    value, params[i].form);
		*c = next;
		return 0;
	}
	return err_set(e, PTCP_ECONFIG, "unknown key \"%s\" (there are rate, delay, jitter, "
	    "loss, queue, reorder, police, red)", key);
}

void params_default(struct link_conf *c)
{
	*c = (struct link_conf){ .queue_packets = DEFAULT_QUEUE_PACKETS };
}

void params_text(char *buf, size_t size, const struct link_conf *c)
{
	char rate[40] = "unlimited", queue[40] = "unlimited", red[100] = "off", police[60] = "off";

	if (c->rate_bps > 0)
		snprintf(rate, sizeof rate, "%.6gMbit/s", (double)c->rate_bps / 1e6);
	if (c->queue_packets > 0)
		snprintf(queue, sizeof queue, "%llup", (unsigned long long)c->queue_packets);
	else if (c->queue_bytes > 0)
		snprintf(queue, sizeof queue, "%lluB", (unsigned long long)c->queue_bytes);
	if (c->red.max_packets > 0)
		snprintf(red, sizeof red, "\"%g %g %g %g\"", c->red.min_packets,
		    c->red.max_packets, c->red.max_ratio, c->red.weight);
	if (c->police_bps > 0)
		snprintf(police, sizeof police, "\"%.6gMbit/s %lluB\"", (double)c->police_bps / 1e6,
		    (unsigned long long)c->police_bytes);
	snprintf(buf, size, "rate=%s delay=%gms jitter=%gms loss=%g queue=%s reorder=%s police=%s red=%s",
	    rate, (double)c->delay_ns / 1e6, (double)c->jitter_ns / 1e6, c->loss_ratio,
	    queue, c->reorder ? "yes" : "no", police, red);
}
