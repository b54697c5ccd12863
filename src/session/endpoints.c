#include "session/endpoints.h"

#include <string.h>

#include "core/units.h"
#include "mover/deal.h"
#include "net/identity.h"
#include "net/reach.h"

#define RETRY_FIRST_NS (5 * NS_PER_S)
#define RETRY_DOUBLINGS 4u           /* at most 80 s between two attempts */

struct endpoint *endpoints_find(struct endpoints *e, uint32_t id)
{
	unsigned i;

	for (i = 0; i < e->n; i++)
		if (e->of[i].id == id)
			return &e->of[i];
	return NULL;
}

static void drop(struct endpoints *e, uint32_t id)
{
	struct endpoint *old = endpoints_find(e, id);

	if (old != NULL)
		e->of[old - e->of] = e->of[--e->n];
}

/* A server that everybody reaches names no address of the starter's site, and no server one of the starter's host. */
static const char *fault(const char *host, const struct sockaddr *from, bool *fewer)
{
	struct sockaddr_storage sa;
	enum reach reach, least = reach_of(from);

	if (least == REACH_NOBODY)
		least = REACH_WORLD; /* unknown */
	if (!reach_numeric(&sa, host))
		return "not a numeric address";
	reach = reach_of((struct sockaddr *)&sa);
	if (reach == REACH_NOBODY)
		return "not the address of a host";
	*fewer = reach < least;
	return *fewer ? "fewer hosts reach the address than that of the server" : NULL;
}

const char *endpoints_take(struct endpoints *e, const struct wire_endpoint *f, const struct sockaddr *from, bool relays)
{
	struct endpoint *n;
	const char *why;
	char host[WIRE_HOST_MAX + 1];
	bool fewer = false;

	drop(e, f->id);
	if (f->port == 0)
		return NULL;
	if (f->id == 0 || e->n == ENDPOINTS_MAX)
		return f->id == 0 ? "number 0" : "too many";
	if ((why = fault(span_copy(host, f->host), from, &fewer)) != NULL && !(fewer && relays))
		return why;
	n = &e->of[e->n++];
	n->id = f->id;
	n->port = f->port;
	n->failures = 0;
	n->trial = -1;
	n->relays_only = fewer;
	n->told = false;
	strcpy(n->host, host);
	identity_digest_text(n->fingerprint, f->peer);
	return NULL;
}

/* Marks the streams that try an endpoint again; their number. */
static unsigned mark_trials(const struct endpoints *e, bool tries[PTCP_STREAMS_MAX])
{
	unsigned i, n = 0;

	memset(tries, 0, PTCP_STREAMS_MAX * sizeof *tries);
	for (i = 0; i < e->n; i++)
		if (e->of[i].trial >= 0) {
			tries[e->of[i].trial] = true;
			n++;
		}
	return n;
}

/* The streams that try an endpoint again stay there. */
static bool deal_others(struct endpoints *e, uint32_t *place, unsigned n, const uint8_t *path, const uint32_t *id,
    unsigned n_ids)
{
	uint32_t some[PTCP_STREAMS_MAX];
	uint8_t paths[PTCP_STREAMS_MAX] = { 0 };
	bool tries[PTCP_STREAMS_MAX], changed;
	unsigned i, k = 0;

	mark_trials(e, tries);
	for (i = 0; i < n; i++)
		if (!tries[i]) {
			paths[k] = path != NULL ? path[i] : 0;
			some[k++] = place[i];
		}
	changed = deal_streams(some, k, paths, id, n_ids);
	for (i = k = 0; i < n; i++)
		if (!tries[i])
			place[i] = some[k++];
	return changed;
}

/* The last stream that tries no other endpoint; one stream at least carries data. */
static int stream_for_trial(const struct endpoints *e, unsigned n)
{
	bool tries[PTCP_STREAMS_MAX];
	int last = (int)n - 1;

	if (n <= mark_trials(e, tries) + 1)
		return -1;
	while (tries[last])
		last--;
	return last;
}

bool endpoints_told(const struct endpoints *e)
{
	unsigned i;

	for (i = 0; i < e->n; i++)
		if (e->of[i].told)
			return true;
	return false;
}

bool endpoints_deal(struct endpoints *e, uint32_t *place, unsigned n, const uint8_t *path, struct mono now)
{
	uint32_t id[ENDPOINTS_MAX];
	unsigned i, n_ids = 0;
	bool changed = false;
	struct endpoint *p;

	for (i = 0; i < e->n; i++)
		if (e->of[i].failures == 0)
			id[n_ids++] = e->of[i].id;
	for (p = e->of; p < e->of + e->n; p++) {
		if (p->trial >= (int)n || n_ids == 0)
			p->trial = -1;
		if (p->failures == 0 || p->trial >= 0 || n_ids == 0 || p->retry_at.ns > now.ns ||
		    (p->trial = stream_for_trial(e, n)) < 0)
			continue;
		place[p->trial] = p->id;
		changed = true;
	}
	for (i = 0; n_ids == 0 && i < e->n; i++)
		id[i] = e->of[i].id;
	return deal_others(e, place, n, path, id, n_ids > 0 ? n_ids : e->n) || changed;
}

bool endpoints_failed(struct endpoints *e, uint32_t id, unsigned number, struct mono now)
{
	struct endpoint *p = endpoints_find(e, id);
	bool first;
	unsigned doublings;

	if (p == NULL || (p->failures > 0 && p->trial != (int)number))
		return false;
	doublings = p->failures++ < RETRY_DOUBLINGS ? p->failures - 1 : RETRY_DOUBLINGS;
	p->retry_at = mono_add_ns(now, RETRY_FIRST_NS << doublings);
	p->trial = -1;
	first = !p->told;
	p->told = true;
	return first;
}

void endpoints_reached(struct endpoints *e, uint32_t id)
{
	struct endpoint *p = e != NULL ? endpoints_find(e, id) : NULL;

	if (p == NULL)
		return;
	p->failures = 0;
	p->trial = -1;
}

struct mono endpoints_deadline(const struct endpoints *e)
{
	struct mono at = MONO_NEVER;
	unsigned i;

	for (i = 0; i < e->n; i++)
		if (e->of[i].failures > 0 && e->of[i].trial < 0)
			at = mono_min(at, e->of[i].retry_at);
	return at;
}
