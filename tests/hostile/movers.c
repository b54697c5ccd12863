/* Movers and engines that misuse each other, and clients that misuse the keys of movers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "hostile.h"
#include "mover/invitation.h"
#include "session.h"
#include "wire/block.h"
#include "wire/mover.h"

#define PUT(p, x, X, ...) \
	do { \
		uint8_t out_[WIRE_##X##_MAX_BYTES]; \
		peer_send((p), out_, wire_##x##_encode(out_, __VA_ARGS__)); \
	} while (0)

/* ---- Towards an engine, with its invitation ---- */

static struct invitation invited(const char *file)
{
	struct invitation v;
	struct ptcp_err e;

	if (invitation_read(&v, file, 0, &e) < 0)
		die("%s", e.msg);
	return v;
}

static unsigned port_of(const struct invitation *v) { return (unsigned)atoi(strrchr(v->address[0], ':') + 1); }

static struct wire_join mover_join(const struct invitation *v, struct peer *p)
{
	struct wire_join f = { .stream = 0 };
	uint8_t exporter[32];

	memcpy(f.session, v->run, sizeof f.session);
	if (tls_export(p->ssl, exporter, NULL) < 0 || tls_join_mac(f.mac, v->key, exporter, f.session, f.stream) < 0)
		die("no exporter");
	return f;
}

static struct peer *dial(const struct invitation *v)
{
	struct peer *p = peer_connect(port_of(v), "ptcp-mover/1");

	if (p == NULL)
		die("no handshake with the engine");
	return p;
}

static struct peer *joined(const struct invitation *v, bool introduced)
{
	struct peer *p = dial(v);
	struct wire_join f = mover_join(v, p);

	send_join(p, &f);
	expect(p, WIRE_JOINED);
	if (introduced)
		PUT(p, mover, MOVER, (&(struct wire_mover){ { (const uint8_t *)"bad", 3 } }));
	return p;
}

static void refused(struct peer *p, const struct wire_join *f, const char *what)
{
	const struct frame *a;

	send_join(p, f);
	if ((a = peer_frame(p))->type != WIRE_ERROR || get_u16(a->payload) != 5)
		die("%s: not refused (%s came)", what, frame_name(a->type));
	expect_end(p);
	peer_close(p);
}

/* INVITATION: joins with everything but the right proof. */
static void forged(unsigned port, char **arguments)
{
	struct invitation v = invited(arguments[0]);
	struct wire_join f, replayed;
	struct peer *p;

	(void)port;
	p = dial(&v);
	replayed = f = mover_join(&v, p);
	f.mac[31] ^= 1;
	refused(p, &f, "a wrong mac");
	p = dial(&v);
	refused(p, &replayed, "the mac of another connection");
	p = dial(&v);
	v.run[0] ^= 1;
	f = mover_join(&v, p);
	v.run[0] ^= 1;
	refused(p, &f, "another run");
	p = dial(&v);
	f = mover_join(&v, p);
	f.stream = 1;
	refused(p, &f, "another number");
	/* No session is served there. */
	p = peer_connect(port_of(&v), "ptcp/1");
	if (p != NULL)
		expect_end(p);
	p = peer_connect(port_of(&v), "ptcp-data/1");
	if (p != NULL)
		expect_end(p);
	p = dial(&v);
	PUT(p, mover, MOVER, (&(struct wire_mover){ { (const uint8_t *)"bad", 3 } }));
	expect_end(p);
}

/* At once, not only for its silence. */
static void cast_out(struct peer *p, const char *what)
{
	uint64_t until = mono_now().ns + patience_s(5) * UINT64_C(1000000000);
	const struct frame *f;

	while ((f = peer_frame(p))->type >= 0 && (f->type == WIRE_PACE || f->type == WIRE_STREAM ||
	    f->type == WIRE_STOP))
		;
	if ((f->type != END_CLOSED && f->type != END_CUT) || mono_now().ns > until)
		die("%s: %s came, or too late", what, frame_name(f->type));
	peer_close(p);
}

static uint32_t first_stream(struct peer *p)
{
	struct wire_stream s;
	const struct frame *f;

	while ((f = peer_frame(p))->type != WIRE_STREAM ||
	    wire_stream_decode(&s, (struct span){ f->payload, f->n }, NULL) < 0)
		if (f->type < 0)
			die("no stream");
	return s.handle;
}

/* INVITATION, RELAY: fingerprint of the only relay of all streams. Asks for grants beyond those that its streams
 * need. */
static void wants_grants(unsigned port, char **arguments)
{
	struct invitation v = invited(arguments[0]);
	struct wire_hop hop = { .hop = 1 };
	struct wire_pass pass;
	const struct frame *f;
	struct peer *p;

	(void)port;
	identity_digest(hop.peer, arguments[1]);
	p = joined(&v, true);
	hop.handle = first_stream(p);
	PUT(p, hop, HOP, &hop);
	cast_out(p, "a relay that the stream does not have");
	p = joined(&v, true);
	hop.handle = first_stream(p);
	hop.hop = 0;
	PUT(p, hop, HOP, &hop);
	while ((f = peer_frame(p))->type != WIRE_PASS ||
	    wire_pass_decode(&pass, (struct span){ f->payload, f->n }, NULL) < 0 || pass.handle != hop.handle)
		if (f->type < 0)
			die("no grant for the relay");
	PUT(p, hop, HOP, &hop);
	cast_out(p, "the same relay again");
	/* One that the user does not know: the stream is stopped. */
	p = joined(&v, true);
	hop.handle = first_stream(p);
	hop.peer[0] ^= 1;
	PUT(p, hop, HOP, &hop);
	while ((f = peer_frame(p))->type != WIRE_STOP)
		if (f->type < 0 || f->type == WIRE_PASS)
			die("%s came for an unknown relay", frame_name(f->type));
	peer_close(p);
}

/* INVITATION: reports what nobody has asked for. */
static void babbling(unsigned port, char **arguments)
{
	struct invitation v = invited(arguments[0]);
	const struct wire_traffic traffic = { .handle = 99999, .congestion = { NULL, 0 } };
	const struct wire_sent sent = { 1, 1, { (const uint8_t *)"0123456789abcdef", 16 } };
	struct peer *p;

	(void)port;
	p = joined(&v, false);
	PUT(p, traffic, TRAFFIC, &traffic);
	cast_out(p, "a report before MOVER");
	p = joined(&v, true);
	PUT(p, mover, MOVER, (&(struct wire_mover){ { (const uint8_t *)"bad", 3 } }));
	cast_out(p, "a second MOVER");
	p = joined(&v, true);
	PUT(p, traffic, TRAFFIC, &traffic);
	cast_out(p, "traffic of an unknown stream");
	p = joined(&v, true);
	PUT(p, connected, CONNECTED, (&(struct wire_connected){ 99999 }));
	cast_out(p, "an unknown stream");
	p = joined(&v, true);
	PUT(p, hop, HOP, (&(struct wire_hop){ .handle = 99999 }));
	cast_out(p, "a relay of an unknown stream");
	p = joined(&v, true);
	PUT(p, hop, HOP, (&(struct wire_hop){ .handle = first_stream(p) }));
	cast_out(p, "a relay of a stream without relays");
	p = joined(&v, true);
	PUT(p, gone, GONE, (&(struct wire_gone){ 1 }));
	cast_out(p, "a stream that was not stopped");
	p = joined(&v, true);
	PUT(p, sent, SENT, &sent);
	cast_out(p, "a job that was never given");
	p = joined(&v, true);
	PUT(p, forget, FORGET, (&(struct wire_forget){ 0x10000 }));
	cast_out(p, "a frame of an engine");
	p = joined(&v, true);
	peer_send_raw(p, WIRE_MOVER, 1, NULL, 1u << 30);
	cast_out(p, "a frame of 1 GiB");
}

/* Claims that streams are connected and stopped, until the engine leaves; `lie` answers the other frames of a
 * stream. */
static void pretend(struct peer *p, void (*lie)(struct peer *p, const struct frame *f, uint32_t stream))
{
	struct wire_stream s = { .handle = 0 };
	const struct frame *f;
	struct wire_stop stop;

	puts("open");
	fflush(stdout);
	while ((f = peer_frame(p))->type >= 0) {
		struct span in = { f->payload, f->n };

		send_ping(p);
		if (f->type == WIRE_STREAM && wire_stream_decode(&s, in, NULL) == 0)
			PUT(p, connected, CONNECTED, (&(struct wire_connected){ s.handle }));
		else if (f->type == WIRE_STOP && wire_stop_decode(&stop, in, NULL) == 0)
			PUT(p, gone, GONE, (&(struct wire_gone){ stop.handle }));
		lie(p, f, s.handle);
	}
}

static void lie_sent(struct peer *p, const struct frame *f, uint32_t stream)
{
	uint8_t terms[64 * WIRE_TERM_BYTES];
	struct wire_send send;

	(void)stream;
	memset(terms, 0xa5, sizeof terms);
	if (f->type == WIRE_SEND && wire_send_decode(&send, (struct span){ f->payload, f->n }, NULL) == 0)
		PUT(p, sent, SENT, (&(struct wire_sent){ send.handle, send.n, { terms, send.n * WIRE_TERM_BYTES } }));
}

/* INVITATION: claims to have sent all blocks, with invented hashes, and sends none. */
static void liar(unsigned port, char **arguments)
{
	struct invitation v = invited(arguments[0]);

	(void)port;
	pretend(joined(&v, true), lie_sent);
}

static void lie_wrote(struct peer *p, const struct frame *f, uint32_t stream)
{
	const struct wire_want want = { stream, ID(0, 1) };
	uint8_t item[WIRE_WRITTEN_BYTES];

	memset(item, 0xa5, sizeof item);
	put_u64(item, want.id);
	put_u32(item + 8, 0);
	item[20] = WIRE_WRITTEN_GOOD;
	if (f->type == WIRE_TARGET)
		PUT(p, wrote, WROTE, (&(struct wire_wrote){ stream, 1, { item, sizeof item } }));
	if (f->type == WIRE_STREAM || f->type == WIRE_CLOSE) {
		usleep(10000);
		PUT(p, want, WANT, &want);
	}
}

/* INVITATION of a receiving side: claims to have written a block, with an invented hash, and receives none. */
static void false_writer(unsigned port, char **arguments)
{
	struct invitation v = invited(arguments[0]);

	(void)port;
	pretend(joined(&v, true), lie_wrote);
}

/* INVITATION of a receiving side: reports blocks that are not its own. */
static void babbling_writer(unsigned port, char **arguments)
{
	struct invitation v = invited(arguments[0]);
	const struct wire_want want = { 99999, ID(0, 1) };
	const struct wire_unwritten unwritten = { 99999, ID(0, 1), 0, { 5, 0, { NULL, 0 } } };
	uint8_t item[WIRE_WRITTEN_BYTES] = { 0 };
	struct wire_wrote wrote = { 99999, 1, { item, sizeof item } };
	struct peer *p;

	(void)port;
	p = joined(&v, true);
	PUT(p, want, WANT, &want);
	cast_out(p, "a want of an unknown stream");
	p = joined(&v, true);
	PUT(p, unwritten, UNWRITTEN, &unwritten);
	cast_out(p, "a block of an unknown stream that was not written");
	p = joined(&v, true);
	PUT(p, wrote, WROTE, &wrote);
	cast_out(p, "a block of an unknown stream");
	p = joined(&v, true);
	wrote.handle = first_stream(p);
	PUT(p, connected, CONNECTED, (&(struct wire_connected){ wrote.handle }));
	put_u64(item, ID(7, 1));
	PUT(p, wrote, WROTE, &wrote);
	cast_out(p, "a block of a file that it has not asked for");
}

/* ---- Towards a mover ---- */

static struct peer *engine_for(const char *file)
{
	struct peer *p = peer_accept(hostile_listener, "ptcp-mover/1");
	uint8_t out[WIRE_JOINED_MAX_BYTES];

	(void)file;
	expect(p, WIRE_JOIN);
	peer_send(p, out, wire_joined_encode(out));
	expect(p, WIRE_MOVER);
	return p;
}

static void put_source(struct peer *p, uint64_t id, unsigned root, const char *path)
{
	struct wire_source f = { .id = id, .root = (uint16_t)root, .size_bytes = 5, .ino = 1,
		.path = { (const uint8_t *)path, strlen(path) } };

	PUT(p, source, SOURCE, &f);
}

static void mover_leaves(struct peer *p, const char *what)
{
	const struct frame *f;

	while ((f = peer_frame(p))->type == WIRE_TRAFFIC)
		;
	if (f->type != END_CLOSED && f->type != END_CUT)
		die("%s: %s came", what, frame_name(f->type));
	peer_close(p);
}

/* CASE: asks for what no engine asks. */
static void greedy_engine(unsigned port, char **arguments)
{
	struct peer *p = engine_for(NULL);
	struct wire_stream s = { .handle = 1, .cipher = 9, .timeout_ms = 1, .connect_ms = 1, .port = 1,
		.host = { (const uint8_t *)"::1", 3 } };
	uint8_t extent[WIRE_EXTENT_BYTES] = { 0 };
	const char *what = arguments[0];
	struct wire_target t = { .id = 0x10000, .size_bytes = 1, .path = { (const uint8_t *)"secret", 6 } };

	(void)port;
	if (strcmp(what, "outside") == 0)
		put_source(p, 0x10000, 0, "../secret");
	else if (strcmp(what, "root") == 0)
		put_source(p, 0x10000, 7, "secret");
	else if (strcmp(what, "job") == 0)
		PUT(p, send, SEND, (&(struct wire_send){ 5, 1, { extent, sizeof extent } }));
	else if (strcmp(what, "cipher") == 0)
		PUT(p, stream, STREAM, &s);
	else if (strcmp(what, "relays") == 0)
		PUT(p, stream, STREAM, (s.cipher = 0, s.relays = (struct span){ (const uint8_t *)"a:1,,b:2", 8 }, &s));
	else if (strcmp(what, "many-relays") == 0)
		PUT(p, stream, STREAM, (s.cipher = 0, s.relays = (struct span){
		    (const uint8_t *)"a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1", 35 }, &s));
	else if (strcmp(what, "pass") == 0)
		PUT(p, pass, PASS, (&(struct wire_pass){ 5, { (const uint8_t *)"grant", 5 } }));
	else if (strcmp(what, "target") == 0 || strcmp(what, "no-part") == 0)
		PUT(p, target, TARGET, &t);
	else if (strcmp(what, "above") == 0)
		PUT(p, target, TARGET, (t.path = (struct span){ (const uint8_t *)"../.ptcp-0123456789abcdef.part", 30 },
		    &t));
	else if (strcmp(what, "stop") == 0)
		PUT(p, stop, STOP, (&(struct wire_stop){ 5, 1 }));
	else
		PUT(p, mover, MOVER, (&(struct wire_mover){ { (const uint8_t *)"bad", 3 } }));
	mover_leaves(p, what);
}

/* ---- Towards a server: keys of movers ---- */

static struct session with_key_for(const struct session *s, const char *fingerprint)
{
	struct session m = *s;

	if (tls_mover_key(m.key, s->key, fingerprint) < 0)
		die("no key");
	return m;
}

/* A session whose control connection may be replaced. */
static struct session lingering(unsigned port)
{
	struct session s = { .port = port, .control = control(port) };

	send_hello_lingering(s.control, 60000);
	expect(s.control, WIRE_HELLO);
	ask(s.control, WIRE_ACCEPTOR_RECEIVES, "/", 1, WIRE_OPEN_VERIFY);
	memcpy(s.id, expect(s.control, WIRE_OPENED)->payload, sizeof s.id);
	if (tls_export(s.control->ssl, s.key, NULL) < 0)
		die("no exporter");
	s.data = join(&s, 1);
	return s;
}

/* CONFIG of a mover, CONFIG of another one: neither is authorized. */
static void keys(unsigned port, char **arguments)
{
	struct session s = lingering(port), m;
	struct identity client = self, mover;
	struct wire_join f;
	struct peer *p;

	peer_init(arguments[1]);
	m = with_key_for(&s, self.fingerprint); /* of the other one */
	peer_init(arguments[0]);
	mover = self;
	p = data(port);
	f = join_frame(&m, p, 0);
	send_join(p, &f);
	expect_no_join(p, "the key of another mover");
	p = data(port);
	f = join_frame(&s, p, 0);
	send_join(p, &f);
	expect_no_join(p, "the key of the session, with another identity");
	m = with_key_for(&s, mover.fingerprint);
	p = data(port);
	f = join_frame(&m, p, WIRE_JOIN_CONTROL);
	send_join(p, &f);
	expect_no_join(p, "a mover in the place of the control connection");
	p = data(port);
	f = join_frame(&m, p, 99);
	send_join(p, &f);
	expect_no_join(p, "a stream that was not granted");
	peer_close(join(&m, 0)); /* the right one */
	self = client;
	if (!file(&s, ID(0, 1), 0, "one"))
		die("refused");
	finish(&s, 1, 0);
}

/* ---- Movers of a server ---- */

/* The mover of the server that ENDPOINT names: the session as it is joined there. */
static struct session at_mover(struct session *s)
{
	struct session m = *s;
	struct wire_endpoint f;
	const struct frame *in = expect(s->control, WIRE_ENDPOINT);
	char fingerprint[PTCP_FINGERPRINT_BYTES];

	if (wire_endpoint_decode(&f, (struct span){ in->payload, in->n }, NULL) < 0)
		die("a malformed ENDPOINT");
	identity_digest_text(fingerprint, f.peer);
	m.port = f.port;
	if (tls_server_mover_key(m.key, s->key, fingerprint) < 0)
		die("no key");
	return m;
}

static void no_join(const struct session *with, unsigned port, unsigned number, const char *what)
{
	struct peer *p = data(port);
	struct wire_join f = join_frame(with, p, number);

	send_join(p, &f);
	expect_no_join(p, what);
}

/* CONFIG of a mover of the client, CONFIG of another one, at a server with a mover. */
static void server_keys(unsigned port, char **arguments)
{
	struct session s = { .port = port, .control = control(port) }, m, wrong;
	struct identity client = self;

	send_hello(s.control);
	expect(s.control, WIRE_HELLO);
	ask(s.control, WIRE_ACCEPTOR_RECEIVES, "/", 1, WIRE_OPEN_VERIFY | WIRE_OPEN_MOVERS);
	memcpy(s.id, expect(s.control, WIRE_OPENED)->payload, sizeof s.id);
	if (tls_export(s.control->ssl, s.key, NULL) < 0)
		die("no exporter");
	m = at_mover(&s);
	no_join(&s, port, 0, "a stream at the server itself");
	no_join(&s, m.port, 0, "the key of the session at a mover");
	wrong = with_key_for(&s, self.fingerprint);
	no_join(&wrong, m.port, 0, "the key of a mover of the client");
	no_join(&m, m.port, 99, "a stream that was not granted");
	no_join(&m, m.port, WIRE_JOIN_CONTROL, "the control connection at a mover");
	wrong = m;
	wrong.id[0] ^= 1;
	no_join(&wrong, m.port, 0, "another session");
	peer_init(arguments[1]);
	wrong = with_key_for(&m, self.fingerprint); /* of the other one */
	peer_init(arguments[0]);
	no_join(&m, m.port, 0, "the key of the server's mover, with another identity");
	no_join(&wrong, m.port, 0, "the key of another mover");
	wrong = with_key_for(&m, self.fingerprint);
	peer_close(join(&wrong, 0)); /* the right one */
	self = client;
	peer_init(arguments[2]);
	s.data = join(&m, 1);
	if (!file(&s, ID(0, 1), 0, "one"))
		die("refused");
	finish(&s, 1, 0);
}

/* The set of a session, as an invitation. */
static struct invitation session_of(struct peer *pool, const struct invitation *v, unsigned *streams)
{
	struct invitation of = *v;
	const struct frame *in;
	struct wire_invite f;

	peer_patience(pool, 20);
	if ((in = expect(pool, WIRE_INVITE)) == NULL ||
	    wire_invite_decode(&f, (struct span){ in->payload, in->n }, NULL) < 0)
		die("a malformed INVITE");
	memcpy(of.run, f.run, sizeof of.run);
	memcpy(of.key, f.key, sizeof of.key);
	*streams = f.streams;
	return of;
}

static void name_endpoint(struct peer *p, const char *host, unsigned port)
{
	PUT(p, endpoint, ENDPOINT, (&(struct wire_endpoint){ .port = (uint16_t)port,
	    .host = { (const uint8_t *)host, strlen(host) } }));
}

/* INVITATION, CONFIG of another identity: a mover of a server. */
static void pool_mover(unsigned port, char **arguments)
{
	struct invitation v = invited(arguments[0]), s;
	const struct wire_sent sent = { 1, 1, { (const uint8_t *)"0123456789abcdef", 16 } };
	struct wire_join f;
	struct identity own = self;
	struct peer *pool = joined(&v, true), *p;
	unsigned streams, i;

	(void)port;
	p = joined(&v, true);
	name_endpoint(p, "127.0.0.1", 1);
	cast_out(p, "an endpoint of no session");
	s = session_of(pool, &v, &streams);
	s.key[0] ^= 1;
	p = dial(&s);
	f = mover_join(&s, p);
	refused(p, &f, "a wrong key of the session");
	s.key[0] ^= 1;
	peer_init(arguments[1]);
	p = dial(&s);
	f = mover_join(&s, p);
	refused(p, &f, "the key of the session, from another identity");
	peer_init(arguments[2]);
	if (strcmp(self.fingerprint, own.fingerprint) != 0)
		die("not the identity as before");
	for (i = 0; i < 5; i++) {
		p = joined(&s, true);
		if (i > 0)
			name_endpoint(p, "127.0.0.1", 1);
		if (i == 1)
			name_endpoint(p, "127.0.0.1", 2);
		else if (i < 4)
			PUT(p, accepted, ACCEPTED, (&(struct wire_accepted){
			    7, (uint16_t)(i == 2 ? streams : 0), { 0 } }));
		if (i == 3)
			PUT(p, accepted, ACCEPTED, (&(struct wire_accepted){ 7 + WIRE_MOVER_HANDLES, 0, { 0 } }));
		if (i == 4)
			PUT(p, sent, SENT, &sent);
		cast_out(p, (const char *[]){ "a stream before the endpoint", "a second endpoint",
		    "a stream that was not granted", "two streams of one handle", "a report of no job" }[i]);
	}
	peer_close(pool);
}

const struct hostile hostile_movers[] = { { "server-mover-keys", server_keys }, { "pool-mover", pool_mover },
	{ "wants-grants", wants_grants }, { "forged-mover", forged }, { "babbling-mover", babbling },
	    { "lying-mover", liar },
	{ "false-writer", false_writer }, { "babbling-writer", babbling_writer },
	{ "mover-keys", keys }, { NULL, NULL } };
const struct hostile hostile_engines[] = { { "greedy-engine", greedy_engine }, { NULL, NULL } };
