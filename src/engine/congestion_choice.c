#include "engine/congestion_choice.h"

#include <string.h>

#define WHY_FAIR "it shares links with competing flows"
#define WHY_DENIED "the kernel permits the sender neither cubic nor reno (net.ipv4.tcp_allowed_congestion_control)"
#define WHY_REQUESTED "requested"
#define WHY_SYSTEM "the system's setting"

const char congestion_denied_warning[] = "the sender's kernel permits neither cubic nor reno, so no number of streams "
    "keeps an impact budget: with --streams auto one stream yields to competing flows (add cubic to "
    "net.ipv4.tcp_allowed_congestion_control there)";

static const char *const fair[] = { "cubic", "reno" };

/* Whether one of several streams takes its share of a link. */
static bool is_fair(const char *name) { return strcmp(name, fair[0]) == 0 || strcmp(name, fair[1]) == 0; }

static bool is_transfer(const struct wire_open *o)
{
	return o->role == WIRE_ACCEPTOR_RECEIVES || o->role == WIRE_ACCEPTOR_SENDS;
}

void congestion_choose(struct congestion_choice *c, const struct wire_open *o, bool (*permits)(const char *name))
{
	static const char *const names[] = { [WIRE_CC_CUBIC] = "cubic", [WIRE_CC_BBR] = "bbr",
		[WIRE_CC_RENO] = "reno" };

	switch (o->congestion) {
	case WIRE_CC_AUTO:
	case WIRE_CC_YIELD:
	case WIRE_CC_FAIR:
		c->name = permits(fair[0]) ? fair[0] : permits(fair[1]) ? fair[1] : NULL;
		c->why = c->name != NULL ? WHY_FAIR : WHY_DENIED;
		break;
	case WIRE_CC_SYSTEM:
		c->name = NULL;
		c->why = WHY_SYSTEM;
		break;
	default:
		c->name = names[o->congestion];
		c->why = WHY_REQUESTED;
	}
	c->judges = o->congestion == WIRE_CC_AUTO && is_transfer(o) && c->name != NULL;
}

const char *congestion_peer_why(const struct wire_open *o, const char *from, const char *name)
{
	switch (o->congestion) {
	case WIRE_CC_AUTO:
	case WIRE_CC_YIELD:
	case WIRE_CC_FAIR:
		if (from[0] != '\0')
			return is_fair(name) ? CONGESTION_OTHERS : CONGESTION_LOSS;
		return is_fair(name) ? WHY_FAIR : WHY_DENIED;
	case WIRE_CC_SYSTEM:
		return WHY_SYSTEM;
	default:
		return WHY_REQUESTED;
	}
}

bool congestion_is_denied(const struct wire_open *o, const char *why)
{
	return o->congestion == WIRE_CC_AUTO && why != NULL && strcmp(why, WHY_DENIED) == 0;
}

bool congestion_yields(const struct wire_open *o, const char *why, bool striped)
{
	return congestion_is_denied(o, why) && is_transfer(o) && !striped;
}
