/* Who uses grants that are not for this, and asks for jobs as nobody should. */
#include <string.h>
#include <time.h>

#include "conn/grants.h"
#include "hostile.h"
#include "net/identity.h"
#include "wire/jobs.h"

static struct identity issuer;
static uint8_t kept[WIRE_GRANT_MAX_BYTES]; /* what the last grant's path points into */

static void load(struct identity *id, const char *config_dir)
{
	struct ptcp_err e;

	if (identity_load(id, config_dir, false, &e) < 0)
		die("%s", e.msg);
}

/* From the issuer to us, for "/granted" there. */
static struct wire_grant granted(const char *audience, enum wire_grant_mode mode)
{
	const struct grant_terms terms = { self.fingerprint, audience, mode,
		mode != WIRE_GRANT_PROBE ? "/granted" : "" };
	struct wire_grant g;
	struct ptcp_err e;
	size_t n;

	if (grant_make(kept, &n, &issuer, &terms, (uint64_t)time(NULL), &e) < 0 ||
	    wire_grant_decode(&g, (struct span){ kept + 8, n - 8 }, &e) < 0)
		die("%s", e.msg);
	return g;
}

static void sign(struct wire_grant *g, const struct identity *id)
{
	uint8_t text[WIRE_GRANT_TEXT_MAX_BYTES];

	if (identity_sign(g->signature, id, text, wire_grant_text(text, g), NULL) < 0)
		die("no signature");
}

static void send_grant(struct peer *p, const struct wire_grant *g)
{
	uint8_t out[WIRE_GRANT_MAX_BYTES];

	peer_send(p, out, wire_grant_encode(out, g));
}

static struct peer *use(unsigned port, const struct wire_grant *g)
{
	struct peer *p = peer_connect(port, ALPN_GRANT);

	if (p == NULL)
		die("no handshake");
	send_grant(p, g);
	send_hello(p);
	return p;
}

static void expect_refused(unsigned port, const struct wire_grant *g)
{
	struct peer *p = use(port, g);

	expect_error(p, 5);
	peer_close(p);
}

static void ask_with(struct peer *p, uint8_t role, const char *path, uint32_t flags)
{
	uint8_t paths[200], out[WIRE_OPEN_BYTES(sizeof paths)];
	struct wire_open o = { .role = role, .flags = role == WIRE_ACCEPTOR_DISCARDS ? 0 : WIRE_OPEN_VERIFY | flags,
		.streams = 1, .max_delete = (flags & WIRE_OPEN_DELETE) != 0 ? 1000 : 0 };

	if (role != WIRE_ACCEPTOR_DISCARDS) {
		o.n_paths = 1;
		o.paths.p = paths;
		o.paths.n = wire_path_encode(paths, 0, (struct span){ (const uint8_t *)path, strlen(path) });
	}
	peer_send(p, out, wire_open_encode(out, &o));
}

static void ask(struct peer *p, uint8_t role, const char *path) { ask_with(p, role, path, 0); }

/* A session by virtue of it, up to OPENED. */
static struct peer *opened(unsigned port, const struct wire_grant *g, uint8_t role, const char *path)
{
	struct peer *p = use(port, g);

	expect(p, WIRE_HELLO);
	ask(p, role, path);
	expect(p, WIRE_OPENED);
	return p;
}

static void expect_not(unsigned port, const struct wire_grant *g, uint8_t role, const char *path)
{
	struct peer *p = use(port, g);

	expect(p, WIRE_HELLO);
	ask(p, role, path);
	expect_error(p, 5);
	peer_close(p);
}

/* Who holds a grant may neither remove files of the server, nor let a receiver remove files there. */
static void expect_no_removal(unsigned port, const struct wire_grant *g, uint8_t role)
{
	static const uint32_t flags[] = { WIRE_OPEN_DELETE, WIRE_OPEN_REMOVE_SOURCES, WIRE_OPEN_SELECTED };
	struct peer *p;
	size_t i;

	for (i = 0; i < sizeof flags / sizeof *flags; i++) {
		p = use(port, g);
		expect(p, WIRE_HELLO);
		ask_with(p, role, "/granted", flags[i]);
		expect_error(p, 5);
		peer_close(p);
	}
}

/* ISSUER_CONFIG AUDIENCE: what is signed by who may, but not for this. */
static void not_for_this(unsigned port, char **arguments)
{
	struct wire_grant good, g;
	struct peer *p;

	load(&issuer, arguments[0]);
	good = granted(arguments[1], WIRE_GRANT_WRITE);
	g = good;
	g.expiry_s = (uint64_t)time(NULL) - 1;
	sign(&g, &issuer);
	expect_refused(port, &g);
	g.expiry_s = (uint64_t)time(NULL) + 2 * GRANT_LIFE_MAX_S;
	sign(&g, &issuer);
	expect_refused(port, &g);
	g = good;
	g.audience[31] ^= 1;
	sign(&g, &issuer);
	expect_refused(port, &g);
	g = good;
	g.grantee[0] ^= 1;
	sign(&g, &issuer);
	expect_refused(port, &g);
	expect_not(port, &good, WIRE_ACCEPTOR_RECEIVES, "/other");
	expect_not(port, &good, WIRE_ACCEPTOR_RECEIVES, "/granted/x");
	expect_not(port, &good, WIRE_ACCEPTOR_RECEIVES, "granted");
	expect_not(port, &good, WIRE_ACCEPTOR_RECEIVES, "/grantee");
	expect_not(port, &good, WIRE_ACCEPTOR_SENDS, "/granted");
	expect_not(port, &good, WIRE_ACCEPTOR_DISCARDS, "");
	expect_no_removal(port, &good, WIRE_ACCEPTOR_RECEIVES);
	g = granted(arguments[1], WIRE_GRANT_READ);
	expect_no_removal(port, &g, WIRE_ACCEPTOR_SENDS);
	expect_not(port, &g, WIRE_ACCEPTOR_RECEIVES, "/granted");
	g = granted(arguments[1], WIRE_GRANT_PROBE);
	expect_not(port, &g, WIRE_ACCEPTOR_RECEIVES, "");
	p = opened(port, &g, WIRE_ACCEPTOR_DISCARDS, "");
	peer_close(p);
}

/* The same, and CONFIG of another: what nobody has signed who may. */
static void forged(unsigned port, char **arguments)
{
	struct wire_grant good, g;
	struct peer *p;

	load(&issuer, arguments[0]);
	g = good = granted(arguments[1], WIRE_GRANT_WRITE);
	g.signature[7] ^= 1;
	expect_refused(port, &g);
	g = good;
	g.expiry_s++;
	expect_refused(port, &g);
	g = good;
	sign(&g, &self);
	expect_refused(port, &g);
	if (identity_key(g.issuer, &self, NULL) < 0)
		die("no key");
	sign(&g, &self); /* our own, who are not authorised */
	expect_refused(port, &g);
	memset(g.issuer, 0xff, sizeof g.issuer);
	expect_refused(port, &g);
	/* Something else first. */
	if ((p = peer_connect(port, ALPN_GRANT)) == NULL)
		die("no handshake");
	send_hello(p);
	expect_end(p);
	peer_close(p);
	/* Stolen: the very bytes, by another. */
	peer_init(arguments[2]);
	expect_refused(port, &good);
}

/* ISSUER_CONFIG AUDIENCE: one session and its resumptions, one at a time. */
static void once(unsigned port, char **arguments)
{
	struct peer *p, *q;
	struct wire_grant g;

	load(&issuer, arguments[0]);
	g = granted(arguments[1], WIRE_GRANT_WRITE);
	p = opened(port, &g, WIRE_ACCEPTOR_RECEIVES, "/granted");
	peer_close(p);
	p = opened(port, &g, WIRE_ACCEPTOR_RECEIVES, "/granted"); /* resumed */
	q = opened(port, &g, WIRE_ACCEPTOR_RECEIVES, "/granted");
	if (get_u16(expect(p, WIRE_ERROR)->payload) != -PTCP_ESUPERSEDED) /* the older one has ended */
		die("the older session ends otherwise");
	expect_end(p);
	send_end(q, 0, 0);
	expect(q, WIRE_END);
	peer_close(q);
	peer_close(p);
	expect_refused(port, &g);
}

/* ISSUER_CONFIG AUDIENCE: the grants that let fetch and measure, for anything else; and when they were used. */
static void other_modes(unsigned port, char **arguments)
{
	static const enum wire_grant_mode modes[] = { WIRE_GRANT_READ, WIRE_GRANT_PROBE };
	const struct wire_end end = { 0, 0 };
	uint8_t out[WIRE_END_MAX_BYTES];
	struct wire_grant good, g;
	struct peer *p;
	unsigned i;

	load(&issuer, arguments[0]);
	for (i = 0; i < 2; i++) {
		good = granted(arguments[1], modes[i]);
		g = good;
		g.expiry_s = (uint64_t)time(NULL) - 1;
		sign(&g, &issuer);
		expect_refused(port, &g);
		g = good;
		g.audience[0] ^= 1;
		sign(&g, &issuer);
		expect_refused(port, &g);
		g = good;
		g.grantee[31] ^= 1;
		sign(&g, &issuer);
		expect_refused(port, &g);
		g = granted(arguments[1], WIRE_GRANT_READ);
		g.mode = WIRE_GRANT_WRITE; /* as it is not signed */
		expect_refused(port, &g);
		expect_not(port, &good, WIRE_ACCEPTOR_RECEIVES, "/granted");
		expect_not(port, &good, modes[i] == WIRE_GRANT_READ ? WIRE_ACCEPTOR_DISCARDS : WIRE_ACCEPTOR_SENDS,
		    "/granted");
	}
	g = granted(arguments[1], WIRE_GRANT_READ);
	expect_not(port, &g, WIRE_ACCEPTOR_SENDS, "/");
	expect_not(port, &g, WIRE_ACCEPTOR_SENDS, "/granted/../other");
	g = granted(arguments[1], WIRE_GRANT_PROBE);
	p = opened(port, &g, WIRE_ACCEPTOR_DISCARDS, "");
	peer_send(p, out, wire_end_encode(out, &end));
	expect(p, WIRE_END);
	peer_close(p);
	expect_refused(port, &g);
}

/* ---- Relays */

/* From the issuer to us, for connections through the relay to that port of this host. */
static struct wire_grant relay_grant(const char *audience, unsigned port)
{
	struct grant_terms terms = { self.fingerprint, audience, WIRE_GRANT_RELAY, "" };
	char hop[GRANT_HOP_BYTES];
	struct wire_grant g;
	struct ptcp_err e;
	size_t n;

	grant_hop(hop, "127.0.0.1", port);
	terms.path = hop;
	if (grant_make(kept, &n, &issuer, &terms, (uint64_t)time(NULL), &e) < 0 ||
	    wire_grant_decode(&g, (struct span){ kept + 8, n - 8 }, &e) < 0)
		die("%s", e.msg);
	return g;
}

static struct peer *ask_route(unsigned relay, const struct wire_grant *g, unsigned port)
{
	const struct wire_route f = { .port = (uint16_t)port, .host = { (const uint8_t *)"127.0.0.1", 9 } };
	struct peer *p = peer_connect(relay, ALPN_ROUTE);
	uint8_t out[WIRE_ROUTE_MAX_BYTES];

	if (p == NULL)
		die("no handshake");
	if (g != NULL)
		send_grant(p, g);
	peer_send(p, out, wire_route_encode(out, &f));
	return p;
}

static void expect_no_route(unsigned relay, const struct wire_grant *g, unsigned port, const char *what)
{
	struct peer *p = ask_route(relay, g, port);
	const struct frame *f = peer_frame(p);

	if (f->type != WIRE_ERROR || get_u16(f->payload) != 5)
		die("%s: %s came", what, frame_name(f->type));
	peer_close(p);
}

/* ISSUER_CONFIG RELAY PORT UNRELAYED_CONFIG THIEF_CONFIG: relayed without a grant, or with one for anything else; PORT:
 * of the next hop; UNRELAYED may not be relayed. */
static void relay_grants(unsigned port, char **arguments)
{
	unsigned to = (unsigned)atoi(arguments[2]);
	struct wire_grant good, g;
	enum wire_grant_mode mode;
	struct peer *p;

	load(&issuer, arguments[0]);
	expect_no_route(port, NULL, to, "no grant");
	g = good = relay_grant(arguments[1], to);
	g.signature[63] ^= 1;
	expect_no_route(port, &g, to, "a forged signature");
	g = good;
	g.grantee[0] ^= 1;
	expect_no_route(port, &g, to, "another grantee than the signed one");
	sign(&g, &issuer);
	expect_no_route(port, &g, to, "another grantee");
	g = good;
	g.audience[31] ^= 1;
	sign(&g, &issuer);
	expect_no_route(port, &g, to, "another relay");
	g = good;
	g.expiry_s = (uint64_t)time(NULL) - 1;
	sign(&g, &issuer);
	expect_no_route(port, &g, to, "an expired grant");
	g.expiry_s = (uint64_t)time(NULL) + 2 * GRANT_LIFE_MAX_S;
	sign(&g, &issuer);
	expect_no_route(port, &g, to, "a grant for longer than a day");
	expect_no_route(port, &good, to + 1, "another next hop");
	g = good;
	sign(&g, &self);
	expect_no_route(port, &g, to, "our own signature");
	if (identity_key(g.issuer, &self, NULL) < 0)
		die("no key");
	sign(&g, &self);
	expect_no_route(port, &g, to, "our own grant");
	for (mode = WIRE_GRANT_READ; mode <= WIRE_GRANT_PROBE; mode++) {
		g = granted(arguments[1], mode);
		expect_no_route(port, &g, to, "a grant of another mode");
	}
	good = relay_grant(arguments[1], to);
	expect_refused(port, &good); /* as a session's */
	p = peer_connect(port, ALPN_ROUTE);
	send_grant(p, &good);
	send_grant(p, &good);
	expect_end(p);
	peer_close(p);
	expect(p = ask_route(port, &good, to), WIRE_ROUTED);
	peer_close(p);
	expect(p = ask_route(port, &good, to), WIRE_ROUTED);
	peer_close(p);
	load(&issuer, arguments[3]);
	g = relay_grant(arguments[1], to);
	expect_no_route(port, &g, to, "the grant of one who may not be relayed");
	peer_init(arguments[4]);
	expect_no_route(port, &good, to, "a stolen grant");
}

/* ---- Errands */

static void send_job(struct peer *p, const char *host, unsigned port, unsigned flags, uint64_t rate_bps)
{
	struct wire_job f = { .flags = (uint8_t)flags, .port = (uint16_t)port, .timeout_ms = 5000,
		.host = { (const uint8_t *)host, strlen(host) }, .rate_bps = rate_bps };
	uint8_t out[WIRE_JOB_MAX_BYTES];

	peer_send(p, out, wire_job_encode(out, &f));
}

static struct peer *asking(unsigned port)
{
	struct peer *p = peer_connect(port, ALPN_JOB);

	if (p == NULL)
		die("no handshake");
	return p;
}

static void expect_no_job(unsigned port, const struct wire_grant *g, uint8_t role, unsigned code)
{
	struct peer *p = asking(port);

	send_job(p, "127.0.0.1", 1, 0, 0);
	send_grant(p, g);
	ask(p, role, "/x");
	expect_error(p, code);
	peer_close(p);
}

static void expect_no_probe(unsigned port, const struct wire_grant *g, unsigned flags, uint64_t rate_bps)
{
	const struct wire_probe f = { 1, 1, 0, 0 };
	struct peer *p = asking(port);
	uint8_t out[WIRE_PROBE_MAX_BYTES];

	send_job(p, "127.0.0.1", 1, flags, rate_bps);
	send_grant(p, g);
	peer_send(p, out, wire_probe_encode(out, &f));
	expect_error(p, 5);
	peer_close(p);
}

/* HOST THIRD, fingerprints: a job of each kind to where that host may not go on to, by whatever name: it says so, and
 * does not connect. */
static void goes_nowhere(unsigned port, char **arguments)
{
	static const char *const hosts[] = { "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001",
		"0.0.0.0", "::", "::1",
		"::ffff:127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "fe80::1", "ff02::1",
		"255.255.255.255" };
	static const uint8_t roles[] = { [WIRE_GRANT_READ] = WIRE_ACCEPTOR_RECEIVES,
		[WIRE_GRANT_WRITE] = WIRE_ACCEPTOR_SENDS };
	const struct wire_probe probe = { 1, 1, 0, 0 };
	uint8_t out[WIRE_PROBE_MAX_BYTES];
	const struct frame *f;
	struct wire_grant g;
	struct peer *p;
	unsigned mode;
	size_t i;

	issuer = self;
	strcpy(self.fingerprint, arguments[0]);
	for (i = 0; i < sizeof hosts / sizeof *hosts; i++)
		for (mode = WIRE_GRANT_READ; mode <= WIRE_GRANT_PROBE; mode++) {
			g = granted(arguments[1], mode);
			p = asking(port);
			send_job(p, hosts[i], 22, 0, 0);
			send_grant(p, &g);
			if (mode == WIRE_GRANT_PROBE)
				peer_send(p, out, wire_probe_encode(out, &probe));
			else
				ask(p, roles[mode], "/x");
			do
				f = peer_frame(p);
			while (f->type == WIRE_PROGRESS);
			if (f->type != WIRE_ERROR || memmem(f->payload, f->n, "does not connect", 16) == NULL)
				die("%s, mode %u: %s came: %.*s", hosts[i], mode, frame_name(f->type),
				    (int)f->n, f->payload);
			peer_close(p);
		}
}

/* SENDER THIRD ISSUER_CONFIG, fingerprints: we are authorised there ourselves. */
static void jobs(unsigned port, char **arguments)
{
	struct wire_status status = { .id = 12345 };
	struct identity us = self;
	struct wire_grant good, g;
	uint8_t out[64];
	struct peer *p;

	load(&issuer, arguments[2]);
	strcpy(self.fingerprint, arguments[0]);
	g = granted(arguments[1], WIRE_GRANT_WRITE); /* of somebody else */
	expect_no_job(port, &g, WIRE_ACCEPTOR_SENDS, 5);
	issuer = us;
	good = granted(arguments[1], WIRE_GRANT_WRITE);
	expect_no_job(port, &good, WIRE_ACCEPTOR_RECEIVES, 5);
	g = good;
	g.expiry_s++;
	expect_no_job(port, &g, WIRE_ACCEPTOR_SENDS, 5);
	g = granted(arguments[0], WIRE_GRANT_WRITE); /* to itself */
	expect_no_job(port, &g, WIRE_ACCEPTOR_SENDS, 5);
	g = granted(arguments[1], WIRE_GRANT_READ);
	expect_no_job(port, &g, WIRE_ACCEPTOR_SENDS, 5);
	expect_no_job(port, &g, WIRE_ACCEPTOR_DISCARDS, 5);
	expect_no_probe(port, &g, 0, 0);
	expect_no_probe(port, &good, 0, 0);
	g = good;
	g.grantee[5] ^= 1;
	sign(&g, &issuer);
	expect_no_job(port, &g, WIRE_ACCEPTOR_SENDS, 5);
	g = granted(arguments[1], WIRE_GRANT_RELAY);
	expect_no_job(port, &g, WIRE_ACCEPTOR_SENDS, 5);
	expect_no_job(port, &g, WIRE_ACCEPTOR_RECEIVES, 5);
	expect_no_job(port, &g, WIRE_ACCEPTOR_DISCARDS, 5);
	g = granted(arguments[1], WIRE_GRANT_PROBE); /* good's path goes with that */
	expect_no_job(port, &g, WIRE_ACCEPTOR_DISCARDS, 5);
	expect_no_job(port, &g, WIRE_ACCEPTOR_SENDS, 5);
	expect_no_probe(port, &g, WIRE_JOB_DETACH, 0);
	expect_no_probe(port, &g, 0, WIRE_JOB_MIN_BPS);
	p = asking(port);
	send_hello(p);
	expect_error(p, 10);
	peer_close(p);
	p = asking(port);
	send_job(p, "127.0.0.1", 1, 0, 0);
	ask(p, WIRE_ACCEPTOR_SENDS, "/x"); /* without a grant */
	expect_error(p, 10);
	peer_close(p);
	p = asking(port);
	peer_send(p, out, wire_status_encode(out, &status));
	expect_error(p, 11);
	peer_close(p);
	p = asking(port);
	send_job(p, "127.0.0.1", 1, 0, 0);
	peer_close(p); /* in the middle of it */
}

/* ISSUER_CONFIG AUDIENCE: a server for one session of the issuer, who has granted us another. */
static void granted_in_vain(unsigned port, char **arguments)
{
	struct wire_grant g;

	load(&issuer, arguments[0]);
	g = granted(arguments[1], WIRE_GRANT_WRITE);
	expect_refused(port, &g);
}

/* The client of a server for one session. */
static void asks_in_vain(unsigned port, char **arguments)
{
	struct wire_status status = { .id = 0 };
	struct peer *p = asking(port);
	uint8_t out[64];

	(void)arguments;
	peer_send(p, out, wire_status_encode(out, &status));
	expect_error(p, 5);
	peer_close(p);
}

const struct hostile hostile_grants[] = {
	{ "not-for-this", not_for_this }, { "forged", forged }, { "once", once }, { "jobs", jobs },
	{ "other-modes", other_modes }, { "relay-grants", relay_grants }, { "goes-nowhere", goes_nowhere },
	{ "granted-in-vain", granted_in_vain }, { "asks-in-vain", asks_in_vain }, { NULL, NULL }
};
