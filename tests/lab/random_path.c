#include "random_path.h"

#include <math.h>
#include <string.h>

#include "rng.h"

#define PACKET_BITS (1500 * 8)
#define RED_QUEUE_MIN_PACKETS 45 /* with fewer packets RED would have no room between its thresholds */

/* ---- Drawing ---- */

static double log_uniform(struct rng *r, double from, double to)
{
	return from * pow(to / from, rng_unit(r));
}

/* Rounded to three significant digits, so that printed numbers are exact. */
static double three_digits(double x)
{
	double unit = pow(10, floor(log10(x)) - 2);

	return round(x / unit) * unit;
}

/* Each draw takes its random number whatever the outcome of earlier draws: the maximum rate changes the rate and the
 * queue of a seed, nothing else. */
static bool chance(struct rng *r, double probability)
{
	return rng_unit(r) < probability;
}

static const char *draw_congestion(struct rng *r)
{
	double x = rng_unit(r);

	return x < 0.3 ? "reno" : x < 0.8 ? "cubic" : "bbr";
}

static unsigned draw_others(struct rng *r)
{
	bool none = chance(r, 0.2);
	unsigned n = (unsigned)log_uniform(r, 1, RANDOM_OTHERS_MAX + 1);

	return none ? 0 : n;
}

/* Divides the other flows into groups: one kind, or two or three that differ in congestion control and RTT. */
static void draw_groups(struct random_path *p, struct rng *r)
{
	unsigned others = draw_others(r), groups = chance(r, 0.5) ? 1 : chance(r, 0.7) ? 2 : 3, i;
	bool same_rtt = chance(r, 0.5);

	p->groups = groups < others ? groups : others;
	for (i = 0; i < RANDOM_GROUPS_MAX; i++) {
		struct random_group *g = &p->group[i];
		double rtt_ms = three_digits(fmin(RANDOM_RTT_MAX_MS, fmax(RANDOM_RTT_MIN_MS,
		    p->rtt_ms * log_uniform(r, 0.4, 2.5))));
		bool comes_and_goes = chance(r, 0.3);

		g->congestion = draw_congestion(r);
		g->rtt_ms = same_rtt ? p->rtt_ms : rtt_ms;
		g->on_s = three_digits(log_uniform(r, 3, 30));
		g->off_s = three_digits(log_uniform(r, 3, 30));
		if (!comes_and_goes)
			g->on_s = g->off_s = 0;
		g->flows = i < p->groups ? others / p->groups + (i < others % p->groups) : 0;
	}
}

static void draw_queue(struct random_path *p, struct rng *r)
{
	double max = fmax(2 * RANDOM_QUEUE_MIN_PACKETS, 2 * random_path_bdp_packets(p));
	bool red = chance(r, 0.25);

	p->queue_packets = (unsigned)round(log_uniform(r, RANDOM_QUEUE_MIN_PACKETS, max));
	p->red = red && p->queue_packets >= RED_QUEUE_MIN_PACKETS;
}

void random_path_draw(struct random_path *p, uint64_t seed, double max_rate_mbps)
{
	struct rng r;
	double loss_percent, window;

	memset(p, 0, sizeof *p);
	rng_init(&r, seed);
	p->seed = seed;
	p->rate_mbps = three_digits(log_uniform(&r, RANDOM_RATE_MIN_MBPS, max_rate_mbps));
	p->rtt_ms = three_digits(log_uniform(&r, RANDOM_RTT_MIN_MS, RANDOM_RTT_MAX_MS));
	draw_queue(p, &r);
	loss_percent = three_digits(log_uniform(&r, 0.01, 0.5));
	p->loss_percent = chance(&r, 0.4) ? loss_percent : 0;
	window = round(log_uniform(&r, 16e3, 1e6) / 1e3) * 1e3;
	p->window_bytes = chance(&r, 0.3) ? (unsigned)window : 0;
	p->all_windows = chance(&r, 0.5) && p->window_bytes > 0;
	p->congestion = chance(&r, 0.5) ? "cubic" : draw_congestion(&r);
	draw_groups(p, &r);
}

unsigned random_path_others(const struct random_path *p)
{
	unsigned n = 0, i;

	for (i = 0; i < p->groups; i++)
		n += p->group[i].flows;
	return n;
}

double random_path_bdp_packets(const struct random_path *p)
{
	return p->rate_mbps * 1e6 * p->rtt_ms / 1e3 / PACKET_BITS;
}

/* ---- Printing ---- */

/* A quarter of the shortest RTT is the delay of the bottleneck; access links add the rest. */
static double bottleneck_delay_ms(const struct random_path *p)
{
	double rtt_ms = p->rtt_ms;
	unsigned i;

	for (i = 0; i < p->groups; i++)
		rtt_ms = fmin(rtt_ms, p->group[i].rtt_ms);
	return rtt_ms / 4;
}

static void print_receiver(const struct random_path *p, const char *name, bool has_window, FILE *to)
{
	fprintf(to, "  %s:", name);
	if (has_window)
		fprintf(to, " { window: %uB }", p->window_bytes);
	fprintf(to, "\n");
}

static void print_access(const struct random_path *p, const char *sender, const char *receiver, double rtt_ms, FILE *to)
{
	double delay_ms = (rtt_ms / 2 - bottleneck_delay_ms(p)) / 2;

	fprintf(to, "  %s: { between: [%s, left], rate: 1Gbit/s, delay: %.3fms }\n", sender, sender, delay_ms);
	fprintf(to, "  %s: { between: [right, %s], rate: 1Gbit/s, delay: %.3fms }\n", receiver, receiver, delay_ms);
}

static void print_groups(const struct random_path *p, FILE *to)
{
	unsigned i;

	for (i = 0; i < p->groups; i++) {
		const struct random_group *g = &p->group[i];

		fprintf(to, "# Other flows from x%u to y%u: %u, %s, RTT %g ms", i + 1, i + 1, g->flows, g->congestion,
		    g->rtt_ms);
		if (g->on_s > 0)
			fprintf(to, ", each for %g s on average, with pauses of %g s", g->on_s, g->off_s);
		fprintf(to, "\n");
	}
}

static void print_bottleneck(const struct random_path *p, FILE *to)
{
	fprintf(to, "  bottleneck:\n    between: [left, right]\n    rate: %gMbit/s\n    delay: %.3fms\n"
	    "    queue: %u packets\n", p->rate_mbps, bottleneck_delay_ms(p), p->queue_packets);
	if (p->red)
		fprintf(to, "    red: %u %u 0.1 0.002\n", p->queue_packets / 9, p->queue_packets / 3);
	if (p->loss_percent > 0)
		fprintf(to, "    fwd: { loss: %g%% }\n", p->loss_percent);
}

void random_path_topology(const struct random_path *p, FILE *to)
{
	char name[16];
	unsigned i;

	fprintf(to, "# Random path %llu. The transfer goes from src to dst: %s, RTT %g ms\n",
	    (unsigned long long)p->seed, p->congestion, p->rtt_ms);
	print_groups(p, to);
	/* Congestion control is a setting of each flow: some kernels allow a namespace no default but their own. */
	fprintf(to, "defaults:\n  host: { rmem: 4096 131072 67108864, wmem: 4096 65536 67108864 }\n"
	    "hosts:\n  src:\n");
	print_receiver(p, "dst", p->window_bytes > 0, to);
	for (i = 0; i < p->groups; i++) {
		fprintf(to, "  x%u:\n", i + 1);
		snprintf(name, sizeof name, "y%u", i + 1);
		print_receiver(p, name, p->all_windows, to);
	}
	fprintf(to, "routers: [left, right]\nlinks:\n");
	print_bottleneck(p, to);
	print_access(p, "src", "dst", p->rtt_ms, to);
	for (i = 0; i < p->groups; i++) {
		char sender[16], receiver[16];

		snprintf(sender, sizeof sender, "x%u", i + 1);
		snprintf(receiver, sizeof receiver, "y%u", i + 1);
		print_access(p, sender, receiver, p->group[i].rtt_ms, to);
	}
}

void random_path_json(const struct random_path *p, FILE *to)
{
	unsigned i;

	fprintf(to, "{\"seed\":%llu,\"rate_mbps\":%g,\"rtt_ms\":%g,\"queue_packets\":%u,\"bdp_packets\":%.1f,\"red\":%s,"
	    "\"loss_percent\":%g,\"window_bytes\":%u,\"all_windows\":%s,\"congestion\":\"%s\",\"others\":%u,\"groups\":[",
	    (unsigned long long)p->seed, p->rate_mbps, p->rtt_ms, p->queue_packets, random_path_bdp_packets(p),
	    p->red ? "true" : "false", p->loss_percent, p->window_bytes, p->all_windows ? "true" : "false",
	    p->congestion, random_path_others(p));
	for (i = 0; i < p->groups; i++) {
		const struct random_group *g = &p->group[i];

		fprintf(to, "%s{\"flows\":%u,\"congestion\":\"%s\",\"rtt_ms\":%g,\"on_s\":%g,\"off_s\":%g}",
		    i > 0 ? "," : "", g->flows, g->congestion, g->rtt_ms, g->on_s, g->off_s);
	}
	fprintf(to, "]}\n");
}
