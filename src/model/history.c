#include "model/history.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "model/advice.h"
#include "model/parameters.h"

#define RATE_MAX_BPS 1000000000000000u /* bit/s accepted */
#define CLOCKS_DIFFER_S 60

bool history_same(const struct history_key *a, const struct history_key *b)
{
	return a->sends == b->sends && strcmp(a->peer, b->peer) == 0 &&
	    (a->congestion[0] == '\0' || b->congestion[0] == '\0' || strcmp(a->congestion, b->congestion) == 0) &&
	    strcmp(a->local, b->local) == 0;
}

bool history_learn(struct history_entry *h, const struct stream_control *s)
{
	size_t i;

	if (!s->advised || s->answer == 0 || s->recalled)
		return false;
	h->limit = LIMIT_NETWORK;
	h->evidence = s->evidence;
	h->n_probes = s->profile.n;
	memcpy(h->probe, s->profile.probe, s->profile.n * sizeof *h->probe);
	for (i = 0; i < s->profile.n; i++)
		h->partly_limited |= s->profile.host_limited[i];
	return true;
}

/* ---- Writing ---- */

/* One word; unprintable bytes and '%' as %XX. */
static bool put_word(char *out, size_t cap, size_t *n, const char *s)
{
	if (*s == '\0')
		return false;
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		if (*n + 4 >= cap)
			return false;
		if (isgraph(c) && c < 0x7f && c != '%')
			out[(*n)++] = *s;
		else
			*n += (size_t)snprintf(out + *n, cap - *n, "%%%02X", c);
	}
	out[(*n)++] = ' ';
	return true;
}

/* Microseconds and millionths, rounded; unknown values are 0. */
static uint64_t millionths(double x)
{
	return x > 0 ? (uint64_t)(x * 1e6 + 0.5) : 0;
}

static const struct evidence_level *level_of(const struct history_entry *h, unsigned streams)
{
	size_t i;

	for (i = 0; i < h->evidence.n; i++)
		if (h->evidence.level[i].probe.streams == streams)
			return &h->evidence.level[i];
	return NULL;
}

/* The limit, with a + if windows or buffers limited part of the time, and what all levels have in common. */
static size_t put_path(char *out, size_t cap, const struct history_entry *h)
{
	const struct evidence *e = &h->evidence;

	return (size_t)snprintf(out, cap, "%s%s %" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%.0f ", limit_name(h->limit),
	    h->partly_limited ? "+" : "", millionths(e->base_rtt_s), millionths(e->peak_rtt_s),
	    millionths(e->idle_rtt_s), e->burst_bps);
}

static size_t put_level(char *out, size_t cap, const struct evidence_level *l)
{
	return (size_t)snprintf(out, cap, ":%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%.0f:%" PRIu64 ":%" PRIu64,
	    millionths(l->lag_ratio), millionths(l->rtt_s), millionths(l->low_rtt_s), millionths(l->loss_ratio),
	    fmax(l->segments, 0), millionths(l->window_ratio), millionths(l->time_s));
}

size_t history_format(char out[HISTORY_LINE_BYTES], const struct history_entry *h)
{
	const size_t cap = HISTORY_LINE_BYTES - 240; /* room for a probe */
	const struct evidence_level *l;
	size_t n, i;

	n = (size_t)snprintf(out, cap, "%s ", h->key.sends ? "send" : "recv");
	if (!put_word(out, cap, &n, h->key.peer) || !put_word(out, cap, &n, h->key.congestion) ||
	    !put_word(out, cap, &n, h->key.local) || n + 32 >= cap)
		return 0;
	n += (size_t)snprintf(out + n, cap - n, "%" PRId64 " ", h->when_s);
	n += put_path(out + n, HISTORY_LINE_BYTES - n, h);
	for (i = 0; i < h->n_probes; i++) {
		const struct probe *p = &h->probe[i];

		if (n >= cap || !(p->throughput_bps >= 1 && p->throughput_bps <= RATE_MAX_BPS &&
		    p->error_bps <= RATE_MAX_BPS))
			return 0;
		n += (size_t)snprintf(out + n, HISTORY_LINE_BYTES - n, "%s%u:%.0f:%.0f", i > 0 ? "," : "", p->streams,
		    p->throughput_bps, ceil(p->error_bps));
		if ((l = level_of(h, p->streams)) != NULL)
			n += put_level(out + n, HISTORY_LINE_BYTES - n, l);
	}
	out[n++] = '\n';
	out[n] = '\0';
	return i > 0 ? n : 0;
}

/* ---- Reading ---- */

/* Removes and decodes the next word; false for a word missing, malformed or too long. */
static bool get_word(const char **at, char *out, size_t cap)
{
	char raw[3 * HISTORY_PEER_BYTES];
	size_t n = strcspn(*at, " \n");

	if (n == 0 || n >= sizeof raw || (*at)[n] != ' ')
		return false;
	memcpy(raw, *at, n);
	raw[n] = '\0';
	*at += n + 1;
	return text_percent_decode(out, cap, raw);
}

/* Digits only, terminated by `end`. */
static bool get_number(const char **at, uint64_t least, uint64_t most, char end, uint64_t *out)
{
	size_t n = strspn(*at, "0123456789");
	uint64_t v;

	if (n == 0 || n > 18 || (*at)[n] != end)
		return false;
	v = strtoull(*at, NULL, 10);
	*at += n + (end != '\0');
	*out = v;
	return v >= least && v <= most;
}

#define RTT_MAX_US 1000000000u
#define TIME_MAX_US 4000000000u

static bool get_millionths(const char **at, uint64_t most, char end, double *out)
{
	uint64_t v;

	if (!get_number(at, 0, most, end, &v))
		return false;
	*out = (double)v / 1e6;
	return true;
}

/* The limit, and base:peak:idle:burst. */
static bool get_path(const char **at, struct history_entry *h)
{
	struct evidence *e = &h->evidence;
	char limit[32];
	uint64_t burst;
	size_t n;

	if (!get_word(at, limit, sizeof limit))
		return false;
	n = strlen(limit);
	h->partly_limited = n > 0 && limit[n - 1] == '+';
	if (h->partly_limited)
		limit[n - 1] = '\0';
	if (limit_by_name(&h->limit, limit) < 0 || !get_millionths(at, RTT_MAX_US, ':', &e->base_rtt_s) ||
	    !get_millionths(at, RTT_MAX_US, ':', &e->peak_rtt_s) || !get_millionths(at, RTT_MAX_US, ':',
	    &e->idle_rtt_s) || !get_number(at, 0, RATE_MAX_BPS, ' ', &burst))
		return false;
	e->burst_bps = (double)burst;
	return true;
}

static bool get_level(const char **at, char end, struct evidence_level *l, const struct probe *p)
{
	uint64_t segments;

	*l = (struct evidence_level){ .probe = { p->streams, p->throughput_bps,
		HISTORY_RUN_ERROR * p->throughput_bps } };
	if (!get_millionths(at, 1000000000u, ':', &l->lag_ratio) || !get_millionths(at, RTT_MAX_US, ':', &l->rtt_s) ||
	    !get_millionths(at, RTT_MAX_US, ':', &l->low_rtt_s) || !get_millionths(at, 1000000u, ':', &l->loss_ratio) ||
	    !get_number(at, 0, RATE_MAX_BPS, ':', &segments) || !get_millionths(at, 1000000u, ':', &l->window_ratio) ||
	    !get_millionths(at, TIME_MAX_US, end, &l->time_s))
		return false;
	l->segments = (double)segments;
	return true;
}

/* With or without evidence. */
static bool get_probe(const char **at, struct probe *p, struct evidence *e)
{
	uint64_t streams, rate, error;
	const char *rest = *at + strcspn(*at, ",");
	char end = *rest, after;

	if (!get_number(at, 1, 100000, ':', &streams) || !get_number(at, 1, RATE_MAX_BPS, ':', &rate) ||
	    strspn(*at, "0123456789") == 0)
		return false;
	after = (*at)[strspn(*at, "0123456789")];
	if (!get_number(at, 1, RATE_MAX_BPS, after == ':' ? ':' : end, &error))
		return false;
	*p = (struct probe){ (unsigned)streams, (double)rate, (double)error };
	return after != ':' || get_level(at, end, &e->level[e->n++], p);
}

bool history_parse(struct history_entry *out, const char *line)
{
	char copy[HISTORY_LINE_BYTES], direction[8];
	size_t n = strcspn(line, "\n");
	const char *at = copy;
	uint64_t when;

	if (n >= sizeof copy || (line[n] == '\n' && line[n + 1] != '\0'))
		return false;
	memcpy(copy, line, n);
	copy[n] = '\0';
	memset(out, 0, sizeof *out);
	if (!get_word(&at, direction, sizeof direction) ||
	    (strcmp(direction, "send") != 0 && strcmp(direction, "recv") != 0) ||
	    !get_word(&at, out->key.peer, sizeof out->key.peer) ||
	    !get_word(&at, out->key.congestion, sizeof out->key.congestion) ||
	    !get_word(&at, out->key.local, sizeof out->key.local) ||
	    !get_number(&at, 0, INT64_MAX, ' ', &when))
		return false;
	out->key.sends = direction[0] == 's';
	out->when_s = (int64_t)when;
	if (!get_path(&at, out))
		return false;
	while (*at != '\0') {
		if (out->n_probes == HISTORY_PROBES_MAX || !get_probe(&at, &out->probe[out->n_probes], &out->evidence))
			return false;
		out->n_probes++;
		if (*at == '\0' && at[-1] == ',')
			return false;
	}
	return out->n_probes > 0;
}

bool history_is_valid(const struct history_entry *h, int64_t now_s)
{
	return h->when_s <= now_s + CLOCKS_DIFFER_S && now_s - h->when_s <= HISTORY_MAX_S;
}

double history_doubt(double age_s)
{
	return exp(ADVICE_RANGE_SD * HISTORY_HOUR_RATIO * sqrt(fmax(age_s, 0) / 3600));
}
