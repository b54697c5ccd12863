#include "session/endpoints.h"

#include <string.h>

#include "mover/deal.h"
#include "net/identity.h"
#include "net/reach.h"

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
	n->relays_only = fewer;
	n->told = false;
	strcpy(n->host, host);
	identity_digest_text(n->fingerprint, f->peer);
	return NULL;
}

bool endpoints_told(const struct endpoints *e)
{
	unsigned i;

	for (i = 0; i < e->n; i++)
		if (e->of[i].told)
			return true;
	return false;
}

bool endpoints_deal(const struct endpoints *e, uint32_t *place, unsigned n, const uint8_t *path)
{
	uint32_t id[ENDPOINTS_MAX];
	unsigned i;

	for (i = 0; i < e->n; i++)
		id[i] = e->of[i].id;
	return deal_streams(place, n, path, id, e->n);
}
