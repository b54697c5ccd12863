#include "engine/connecting.h"

static uint64_t min_ns(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Short: an attempt started on a cut path would notice the recovery late, as the pauses between its SYNs grow. */
uint64_t connecting_patience_ns(const struct connecting *c, uint64_t timeout_ns)
{
	bool only = c->n_paths <= 1 && (c->by_name || !c->has_name);
	uint64_t most = c->slow ? CONNECTING_SLOW_NS : only ? CONNECTING_ONLY_PATH_NS : CONNECTING_PATH_NS;

	if (c->to_endpoint && c->n_endpoints > 1 && c->endpoint_failures == 0)
		most = CONNECTING_ENDPOINT_NS;
	return min_ns(timeout_ns, most);
}

bool connecting_sends_ahead(const struct connecting *c) { return !c->control && c->retries == 0; }

bool connecting_blames_path(const struct connecting *c, const struct connecting_failure *f)
{
	bool refuses_mover = c->by_mover && c->n_relays > 0 && f->refused;

	if (c->n_paths == 0 || (c->n_paths == 1 && !refuses_mover) || !c->starter || c->path_reported ||
	    c->path_streams > 0)
		return false;
	return !f->slow || c->slow; /* a slow host has another attempt first */
}

enum connecting_blame connecting_blame(const struct connecting *c, const struct connecting_failure *f)
{
	if (!c->to_endpoint || (c->n_relays > 0 && c->n_paths > 1))
		return connecting_blames_path(c, f) ? CONNECTING_PATH : CONNECTING_NOBODY;
	return f->hop >= c->n_relays ? CONNECTING_ENDPOINT : CONNECTING_NOBODY; /* behind all relays */
}

uint64_t connecting_none_ns(bool awaits_movers, bool ever_connected, uint64_t linger_ns, uint64_t timeout_ns)
{
	if (awaits_movers)
		return min_ns(timeout_ns / 3, CONNECTING_ONLY_PATH_NS);
	return ever_connected && linger_ns > timeout_ns ? linger_ns : timeout_ns;
}
