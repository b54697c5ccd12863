#include "session/paths.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/err.h"
#include "core/text.h"
#include "model/multipath.h"

static bool same_hop(const struct connect_hop *a, const char *host, unsigned port)
{
	return a->port == port && strcasecmp(a->host, host) == 0;
}

static bool same_path(const struct path *a, const struct path *b)
{
	unsigned i;

	for (i = 0; i < a->n_relays && i < b->n_relays; i++)
		if (!same_hop(&a->relay[i], b->relay[i].host, b->relay[i].port))
			return false;
	return a->n_relays == b->n_relays;
}

/* Only such names fit into ROUTE. */
static bool fits_route(const char *host)
{
	const char *p;

	for (p = host; *p != '\0'; p++)
		if (*p <= ' ' || *p > '~')
			return false;
	return host[0] != '\0';
}

static int reject(const char *candidate, const char *why, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	return err_set(e, PTCP_EUSAGE, "--via %s: %s", text_escape(shown, sizeof shown, candidate), why);
}

static int add_relay(struct path *p, const char *text, const struct remote *to, struct ptcp_err *e)
{
	struct connect_hop *h = &p->relay[p->n_relays];
	unsigned i;

	if (p->n_relays == CONNECT_RELAYS_MAX)
		return reject(p->candidate, "too many relays in a row (8 at most)", e);
	if (sock_split(text, h->host, &h->port, PTCP_PORT, e) < 0 || h->port == 0 || !fits_route(h->host))
		return reject(p->candidate, "not a relay (write HOST, HOST:PORT or [IPV6]:PORT; several in a row with "
		    "commas; or direct)", e);
	if (same_hop(h, to->host, to->port))
		return reject(p->candidate, "the target cannot be its own relay (leave it out)", e);
	for (i = 0; i < p->n_relays; i++)
		if (same_hop(&p->relay[i], h->host, h->port))
			return reject(p->candidate, "the same relay twice in a row (name it once)", e);
	p->n_relays++;
	return 0;
}

static int parse_path(struct path *p, const struct remote *to, struct ptcp_err *e)
{
	char *copy = strdup(p->candidate), *part, *rest = copy;
	int r = copy != NULL ? 0 : err_nomem(e);

	while (r == 0 && (part = strsep(&rest, ",")) != NULL)
		r = add_relay(p, part, to, e);
	free(copy);
	if (r == 0 && !fits_route(to->host))
		r = reject(p->candidate, "relays accept only ASCII names of the target (write its address)", e);
	return r;
}

int paths_parse(struct paths *p, const char *const *names, size_t n, const struct remote *to, struct ptcp_err *e)
{
	static const char *const direct = "direct";
	struct path *new;
	unsigned i;
	int r;

	if (n > PTCP_PATHS_MAX)
		return err_set(e, PTCP_EUSAGE, "--via: more than %d paths (leave some out)", PTCP_PATHS_MAX);
	strcpy(p->host, to->host);
	p->port = to->port;
	if (n == 0) {
		names = &direct;
		n = 1;
	}
	while (p->n < n) {
		new = &p->at[p->n];
		if ((new->candidate = strdup(strcmp(names[p->n], direct) == 0 ? "" : names[p->n])) == NULL)
			return err_nomem(e);
		p->n++; /* paths_fini() frees `candidate` from here on */
		if (strcmp(names[p->n - 1], direct) != 0 && (r = parse_path(new, to, e)) < 0)
			return r;
		for (i = 0; i + 1 < p->n; i++)
			if (same_path(&p->at[i], new))
				return reject(names[p->n - 1], "the same path twice (name each once)", e);
	}
	p->n_places = p->n;
	for (i = 0; i < p->n; i++)
		p->place[i] = i;
	paths_deal(p, NULL);
	return 0;
}

int paths_choose(struct paths *p, unsigned places, const double *prior_bps, uint64_t seed, struct ptcp_err *e)
{
	struct rng r = { seed };
	double sum = 0;
	unsigned i, known = 0;

	for (i = 0; prior_bps != NULL && i < p->n; i++) {
		if (!(prior_bps[i] >= 0 && prior_bps[i] <= DBL_MAX))
			return err_set(e, PTCP_EUSAGE, "the bandwidth of candidate %u: %g (must be 0 or more)",
			    i, prior_bps[i]);
		sum += prior_bps[i];
		known += prior_bps[i] > 0;
	}
	for (i = 0; known > 0 && i < p->n; i++)
		p->prior_bps[i] = prior_bps[i] > 0 ? prior_bps[i] : sum / known;
	p->chosen = true;
	p->n_places = places;
	choose_paths(p->place, places, p->prior_bps, p->n, &r);
	paths_deal(p, NULL);
	return 0;
}

void paths_deal(struct paths *p, const double *shares)
{
	unsigned has[PTCP_PATHS_MAX] = { 0 }, i, k, best;
	double next, most;

	for (i = 0; i < PTCP_STREAMS_MAX; i++) {
		best = i % p->n_places;
		most = -1;
		for (k = 0; k < p->n_places && i >= p->n_places; k++) {
			next = (shares != NULL ? shares[k] : 1) / (has[k] + 1);
			if (next > most) {
				most = next;
				best = k;
			}
		}
		has[best]++;
		p->dealt[i] = (uint8_t)best;
	}
}

void paths_spool(struct paths *p, const uint64_t *bytes)
{
	unsigned i;

	for (i = 0; bytes != NULL && i < p->n; i++) {
		p->at[i].spool_bytes = p->at[i].n_relays > 0 ? bytes[i] : 0;
		p->spools = p->spools || p->at[i].spool_bytes > 0;
	}
}

uint64_t paths_stream_spool_bytes(const struct paths *p, unsigned stream, unsigned streams)
{
	unsigned path = paths_of_stream(p, stream), i, n = 0;

	for (i = 0; i < streams; i++)
		n += paths_of_stream(p, i) == path;
	return p->at[path].spool_bytes / (n > 0 ? n : 1);
}

void paths_fini(struct paths *p)
{
	while (p->n > 0)
		free(p->at[--p->n].candidate);
}

const char *paths_name(const struct paths *p, unsigned i)
{
	return p->at[i].n_relays > 0 ? p->at[i].candidate : "direct";
}
