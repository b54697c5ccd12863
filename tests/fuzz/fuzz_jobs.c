/* libFuzzer target: several delegated jobs at once, each a connection with both ends (engine/job_frames.h), and the
 * grants of their requests at the audience (conn/grants.h). The script interleaves the connections: requests, reports,
 * bytes carried in pieces or injected by an attacker, time, and sessions under the grants. No connection may deliver
 * bytes of another, and no grant may permit more than its issuer signed. */
#include "../wire/recode.h"
#include "conn/grants.h"
#include "core/err.h"
#include "core/units.h"
#include "engine/job_frames.h"
#include "fuzz.h"

#define MOVES_MAX 400
#define CONNS 4
#define MESSAGES 3
#define HEARD_BYTES 4096
#define TIMEOUT_NS (10 * NS_PER_S)
#define NOW_S UINT64_C(1700000000)

enum kind { JOB, TIMING, STATUS, LINKS, CLEANING, MANAGING, READING, WRITING, SUMMING, KINDS };

struct end {
	struct job_frames j;
	struct world *w;
	unsigned conn;               /* its number */
	bool server, over, gone;
	bool injected;               /* an attacker has added bytes */
	enum kind kind;              /* client: the request */
	bool started;                /* client: has STARTED; server: has a request */
	unsigned samples, listed;
	uint64_t files;              /* client: of the last PROGRESS */
	uint8_t heard[HEARD_BYTES];  /* server: all bytes received */
	size_t n_heard;
	bool has_grant, intact;      /* server: of a request; `intact`: as signed */
	uint8_t grant[WIRE_GRANT_MAX_BYTES];
	size_t n_grant;
};

/* A grant as the audience has to remember it. */
struct use {
	bool known, spent;
	uint64_t expiry_s;
};

struct world {
	struct input in;
	struct mono now;
	uint64_t now_s;
	struct end client[CONNS], server[CONNS];
	bool flipped[CONNS];         /* the client's grant was altered after signing */
	struct grants grants;
	struct use use[2][256];      /* by issuer and first byte of the nonce */
};

static struct identity issuer[2];
static char host[3][PTCP_FINGERPRINT_BYTES]; /* the audience, two grantees */

static void make_identities(void)
{
	uint8_t bytes[32];
	unsigned i;

	for (i = 0; i < 2; i++) {
		memset(bytes, (int)i + 1, sizeof bytes);
		MUST((issuer[i].key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, bytes,
		    sizeof bytes)) != NULL);
		MUST(identity_key(bytes, &issuer[i], NULL) == 0);
		MUST(identity_key_fingerprint(issuer[i].fingerprint, bytes, NULL) == 0);
	}
	for (i = 0; i < 3; i++) {
		memset(bytes, (int)i + 0x40, sizeof bytes);
		identity_digest_text(host[i], bytes);
	}
}

/* ---- What the owners get ---- */

/* The next frame of a known type. */
static struct span next_known(struct span *rest, unsigned *type)
{
	struct wire_header h;
	struct span payload, frame;

	do {
		MUST(wire_frame_next(&h, &payload, *rest, NULL) == 1);
		frame = (struct span){ rest->p, WIRE_HEADER_BYTES + payload.n };
		rest->p += frame.n;
		rest->n -= frame.n;
	} while (!wire_type_known(h.type));
	*type = h.type;
	return frame;
}

static bool same_span(struct span a, struct span b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }

/* The request is made of the three frames that this connection received, and of nothing else. */
static void check_request(struct end *e, unsigned type, const struct job_request *q)
{
	struct span rest = { e->heard, e->n_heard }, frame;
	struct wire_job job;
	unsigned got;

	if (e->n_heard == HEARD_BYTES)
		return; /* not all were recorded */
	frame = next_known(&rest, &got);
	MUST(got == WIRE_JOB);
	MUST(wire_job_decode(&job, (struct span){ frame.p + WIRE_HEADER_BYTES, frame.n - WIRE_HEADER_BYTES },
	    NULL) == 0);
	MUST(job.port == q->job.port && job.flags == q->job.flags && job.timeout_ms == q->job.timeout_ms &&
	    job.rate_bps == q->job.rate_bps && same_span(job.host, q->job.host));
	frame = next_known(&rest, &got);
	MUST(got == WIRE_GRANT && same_span(frame, q->grant_frame));
	next_known(&rest, &got);
	MUST(got == type && (q->messages > 0) == (type == WIRE_PROBE) && rest.n == 0);
	MUST(e->injected || (q->job.port == 1000 + e->conn && q->open.wait_ms == 60 + e->conn));
}

static int on_request(struct end *e, unsigned type, const union job_frame *f, struct ptcp_err *err)
{
	MUST(type == WIRE_OPEN || type == WIRE_PROBE || type == WIRE_STATUS || type == WIRE_LINKS ||
	    type == WIRE_CLEAN || type == WIRE_MANAGE || type == WIRE_READ || type == WIRE_SUM ||
	    type == WIRE_WRITE || type == WIRE_BLOCK);
	MUST(!e->started && !e->over);
	MUST(type != WIRE_BLOCK || (f->piece.data.n > 0 && f->piece.block.offset + f->piece.data.n == e->j.written));
	/* A WRITE starts with the last byte of its file. */
	e->started = (type != WIRE_WRITE && type != WIRE_BLOCK) || e->j.written == e->j.to_write;
	if (type == WIRE_OPEN || type == WIRE_PROBE) {
		check_request(e, type, &f->request);
		e->has_grant = true;
		e->intact = !e->injected && !e->w->flipped[e->conn];
		e->n_grant = f->request.grant_frame.n;
		memcpy(e->grant, f->request.grant_frame.p, e->n_grant);
	}
	return take_byte(&e->w->in) == 0xff ? err_set(err, PTCP_EREFUSED, "the script says so") : 0;
}

static int on_report(struct end *e, unsigned type, const union job_frame *f)
{
	bool job = e->kind == JOB || e->kind == TIMING;

	MUST(!e->over);
	switch (type) {
	case WIRE_WAITING:
		MUST(job && !e->started);
		break;
	case WIRE_STARTED:
		MUST(job && !e->started && (e->injected || f->started.id == e->conn + 1));
		e->started = true;
		break;
	case WIRE_PROGRESS:
		MUST(job);
		e->files = f->progress.files;
		break;
	case WIRE_EVENT:
		MUST(job && e->started);
		break;
	case WIRE_SAMPLE:
		MUST(e->kind == TIMING && e->started && ++e->samples <= MESSAGES);
		MUST(f->sample.delay_ns <= mono_diff_ns(e->w->now, e->j.requested));
		break;
	case WIRE_STATE:
		MUST(e->kind == STATUS);
		break;
	case WIRE_LINK:
		MUST(e->kind == LINKS);
		break;
	case WIRE_LEFTOVER:
		MUST(e->kind == CLEANING && ++e->listed <= WIRE_LEFTOVERS_MAX);
		break;
	case WIRE_CLEANED:
		MUST(e->kind == CLEANING && f->cleaned.files + f->cleaned.failed >= e->listed);
		e->over = f->cleaned.final;
		break;
	case WIRE_BLOCK:
		MUST(e->kind == READING && f->piece.data.n == f->piece.block.length_bytes && f->piece.data.n > 0);
		break;
	case WIRE_LISTED:
		MUST((e->kind == MANAGING || e->kind == READING || e->kind == WRITING ||
		    e->kind == SUMMING) &&
		    ++e->listed <= WIRE_LISTED_FRAMES_MAX);
		break;
	case WIRE_MANAGED:
		MUST((e->kind == MANAGING || e->kind == READING || e->kind == WRITING ||
		    e->kind == SUMMING) &&
		    f->managed.entries + f->managed.failed >= e->listed);
		e->over = f->managed.final;
		break;
	case WIRE_END:
		MUST(job && e->started && f->end.files == e->files);
		e->over = true;
		break;
	default:
		MUST(type == WIRE_ERROR);
		e->over = true;
	}
	return 0;
}

static int on_frame(void *arg, unsigned type, const union job_frame *f, struct ptcp_err *e)
{
	struct end *at = arg;

	return at->server ? on_request(at, type, f, e) : on_report(at, type, f);
}

/* ---- Bytes ---- */

/* The peer decodes each frame that was put behind the first `before` bytes. */
static void check_output(const struct end *e, size_t before)
{
	static uint8_t out[RECODE_MAX_BYTES];
	const struct buf *b = &e->j.conn.out.b;
	struct span rest = { NULL, buf_len(b) - before }, payload;
	struct wire_header h;
	size_t n;

	if (rest.n > 0)
		rest.p = buf_head(b) + before;
	while (rest.n > 0) {
		MUST(wire_frame_next(&h, &payload, rest, NULL) == 1);
		MUST(recode(rest.p, WIRE_HEADER_BYTES + payload.n, out, &n, NULL) == 0);
		rest.p += WIRE_HEADER_BYTES + payload.n;
		rest.n -= WIRE_HEADER_BYTES + payload.n;
	}
}

static void finish(struct end *e, const struct ptcp_err *why)
{
	size_t before = buf_len(&e->j.conn.out.b);

	if (e->over)
		return;
	e->over = true;
	if (e->server)
		job_frames_end(&e->j, why, NULL, e->w->now);
	else
		job_frames_close(&e->j);
	check_output(e, before);
}

static void input(struct end *e, const uint8_t *p, size_t n)
{
	uint8_t *exact;
	size_t room = HEARD_BYTES - e->n_heard;
	bool closed = e->j.state == JOB_FRAMES_CLOSED;
	struct ptcp_err why;
	int r;

	if (e->gone)
		return;
	MUST((exact = malloc(n + (n == 0))) != NULL); /* so that a sanitizer detects one byte too many */
	if (n > 0) {
		memcpy(exact, p, n);
		memcpy(e->heard + e->n_heard, p, n < room ? n : room);
		e->n_heard += n < room ? n : room;
	}
	r = job_frames_input(&e->j, exact, n, e->w->now, &why);
	free(exact);
	MUST(r <= 0 && (!closed || r == 0));
	if (r < 0) {
		MUST(why.code == r && why.msg[0] != '\0');
		finish(e, &why);
	}
}

static void carry(struct world *w, struct end *from, struct end *to)
{
	struct buf *b = &from->j.conn.out.b;
	size_t n = take_byte(&w->in), have = buf_len(b);

	n = n >= 0xf0 || n > have ? have : n;
	if (n == 0)
		return;
	input(to, buf_head(b), n);
	buf_consume(b, n);
}

static void inject(struct world *w, struct end *to)
{
	struct wire_header h = { .type = take_byte(&w->in) };
	struct input part = take_bytes(&w->in, take_byte(&w->in));
	uint8_t header[WIRE_HEADER_BYTES];

	to->injected = true;
	h.length = (uint32_t)part.n;
	if (h.type <= WIRE_SUM) {
		wire_header_encode(header, &h);
		input(to, header, sizeof header);
	}
	input(to, part.p, part.n);
}

/* ---- Requests ---- */

static void flip(struct world *w, struct wire_grant *g)
{
	uint8_t *const bytes[] = { g->issuer, g->grantee, g->audience, g->nonce, g->signature };
	uint8_t what = take_byte(&w->in), bit = take_byte(&w->in);

	if (what % 7 < 5)
		bytes[what % 7][bit / 8 % 16] ^= (uint8_t)(1 << bit % 8);
	else if (what % 7 == 5)
		g->expiry_s ^= UINT64_C(1) << bit % 24;
	else
		g->mode = g->mode % 3 + 1;
	if (g->mode == WIRE_GRANT_PROBE)
		g->path.n = 0;
}

static void put_grant(struct world *w, struct end *e, bool probe)
{
	static const int64_t life_s[] = { 900, 1, 0, -1, 86400, 86401, 3600, 60 };
	uint8_t how = take_byte(&w->in), text[WIRE_GRANT_TEXT_MAX_BYTES];
	struct input path = take_bytes(&w->in, probe ? 0 : take_byte(&w->in) % 32);
	struct wire_grant g = { .mode = probe ? WIRE_GRANT_PROBE : how % 2 + 1u, .nonce = { take_byte(&w->in) },
		.expiry_s = w->now_s + (uint64_t)life_s[how >> 1 & 7], .path = { path.p, path.n } };

	if (path.n > 0 && memchr(path.p, 0, path.n) != NULL)
		g.path.n = 0;
	identity_digest(g.grantee, host[1 + (how >> 4 & 1)]);
	identity_digest(g.audience, host[(how >> 5 & 3) == 3]); /* rarely another host */
	MUST(identity_key(g.issuer, &issuer[e->conn % 2], NULL) == 0);
	MUST(identity_sign(g.signature, &issuer[e->conn % 2], text, wire_grant_text(text, &g), NULL) == 0);
	w->flipped[e->conn] = (how & 0x80) != 0;
	if (w->flipped[e->conn])
		flip(w, &g);
	OUTBOX_PUT(&e->j.conn.out, grant, GRANT, &g);
}

static void put_job(struct world *w, struct end *e)
{
	static const uint8_t paths[] = { 0, 0, 1, 'p' };
	uint8_t how = take_byte(&w->in);
	struct wire_job job = { .flags = how & WIRE_JOB_FLAGS, .port = (uint16_t)(1000 + e->conn),
		.timeout_ms = 1000u + how, .host = { (const uint8_t *)"third.example", 13 } };
	struct wire_open open = { .role = how >> 2 & 1 ? WIRE_ACCEPTOR_SENDS : WIRE_ACCEPTOR_RECEIVES, .streams = 2,
		.wait_ms = 60 + e->conn, .n_paths = 1, .paths = { paths, sizeof paths } };
	struct wire_probe probe = { .streams = 2, .messages = MESSAGES, .wait_ms = 60 + e->conn };

	OUTBOX_PUT(&e->j.conn.out, job, JOB, &job);
	put_grant(w, e, e->kind == TIMING);
	if (e->kind == TIMING)
		OUTBOX_PUT(&e->j.conn.out, probe, PROBE, &probe);
	else
		OUTBOX_PUT(&e->j.conn.out, open, OPEN, &open);
}

/* A file of up to 255 bytes, rarely with more or less data than it should have. */
static void put_write(struct world *w, struct end *e)
{
	uint8_t n = take_byte(&w->in), how = take_byte(&w->in);
	const struct wire_write f = { .size_bytes = n, .mtime_ns = WIRE_WRITE_NOW,
		.path = { (const uint8_t *)"p", 1 } };
	const struct wire_block b = { .id = wire_range_id(0),
		.length_bytes = how == 0 ? 1u + n : how == 1 && n > 1 ? n - 1u : n };
	const struct wire_block_end end = { WIRE_BLOCK_GOOD, n };
	uint8_t *p;
	size_t at;

	OUTBOX_PUT(&e->j.conn.out, write, WRITE, &f);
	if (b.length_bytes == 0)
		return;
	p = outbox_room(&e->j.conn.out, WIRE_BLOCK_MAX_BYTES);
	at = wire_block_encode(p, &b);
	memset(p + at, n, b.length_bytes);
	at += b.length_bytes;
	outbox_added(&e->j.conn.out, at + wire_block_end_encode(p + at, &end));
}

static void request(struct world *w, struct end *e)
{
	static const enum job_frames_state states[] = { [JOB] = JOB_FRAMES_JOB_REQUESTED,
		[TIMING] = JOB_FRAMES_TIMING_REQUESTED, [STATUS] = JOB_FRAMES_STATUS_REQUESTED,
		[LINKS] = JOB_FRAMES_LINKS_REQUESTED, [CLEANING] = JOB_FRAMES_CLEAN_REQUESTED,
		[MANAGING] = JOB_FRAMES_MANAGE_REQUESTED, [READING] = JOB_FRAMES_READ_REQUESTED,
		[WRITING] = JOB_FRAMES_WRITE_REQUESTED, [SUMMING] = JOB_FRAMES_MANAGE_REQUESTED };
	static const uint8_t paths[] = { 0, 0, 1, 'p' };
	struct wire_status status = { 0, 0 };
	struct wire_clean clean = { 60 + e->conn, 0, { &paths[3], 1 } };
	const uint8_t range[WIRE_RANGE_BYTES] = { 0 };
	struct wire_read parts = { 1, { &paths[3], 1 }, { range, sizeof range } };
	struct wire_sum sum = { 0, WIRE_DIGESTS, 0, WIRE_RANGE_REST, 1, { paths, sizeof paths } };
	struct wire_manage manage = { WIRE_MANAGE_LIST, WIRE_MANAGE_RECURSIVE, 1, { paths, sizeof paths } };

	e->kind = take_byte(&w->in) % KINDS;
	if (e->over && e->kind < CLEANING)
		return; /* work on files alone follows on a connection */
	e->over = false;
	e->listed = 0;
	if (e->kind == STATUS)
		OUTBOX_PUT(&e->j.conn.out, status, STATUS, &status);
	else if (e->kind == LINKS)
		outbox_added(&e->j.conn.out, wire_links_encode(outbox_room(&e->j.conn.out, WIRE_LINKS_MAX_BYTES)));
	else if (e->kind == CLEANING)
		OUTBOX_PUT(&e->j.conn.out, clean, CLEAN, &clean);
	else if (e->kind == MANAGING)
		OUTBOX_PUT(&e->j.conn.out, manage, MANAGE, &manage);
	else if (e->kind == READING)
		OUTBOX_PUT(&e->j.conn.out, read, READ, &parts);
	else if (e->kind == SUMMING)
		OUTBOX_PUT(&e->j.conn.out, sum, SUM, &sum);
	else if (e->kind == WRITING)
		put_write(w, e);
	else
		put_job(w, e);
	job_frames_requested(&e->j, states[e->kind], w->now);
}

/* ---- Reports ---- */

static void put_piece(struct end *e, uint8_t n)
{
	const struct wire_block b = { .id = wire_range_id(n), .offset = n, .length_bytes = 1u + n };
	const struct wire_block_end end = { WIRE_BLOCK_GOOD, n };
	uint8_t *p = outbox_room(&e->j.conn.out, WIRE_BLOCK_MAX_BYTES);
	size_t at = wire_block_encode(p, &b);

	memset(p + at, n, b.length_bytes);
	at += b.length_bytes;
	outbox_added(&e->j.conn.out, at + wire_block_end_encode(p + at, &end));
}

static void report(struct world *w, struct end *e)
{
	uint8_t how = take_byte(&w->in), n = take_byte(&w->in);
	size_t before = buf_len(&e->j.conn.out.b);
	struct span text = { (const uint8_t *)"text", 4 };
	struct ptcp_progress p = { .bytes = n, .files = n >> 4, .failed = n & 1, .activity = n % 3 };
	struct wire_end end = { n >> 4, n & 1 };
	struct wire_state state = { .id = 1, .kind = 1, .mode = n % 3 + 1u, .port = 1, .progress = p, .host = text,
		.from = text, .to = text };
	struct ptcp_err why;

	if (e->over || !e->started)
		return;
	switch (how % 14) {
	case 0: OUTBOX_PUT(&e->j.conn.out, started, STARTED, (&(struct wire_started){ e->conn + 1, text })); break;
	case 1: OUTBOX_PUT(&e->j.conn.out, progress, PROGRESS, &p); break;
	case 2: OUTBOX_PUT(&e->j.conn.out, waiting, WAITING, (&(struct wire_waiting){ n })); break;
	case 3:
		OUTBOX_PUT(&e->j.conn.out, event, EVENT, (&(struct wire_event){ n % 5 + 1u, 1, 2, text, { 3, 0,
		    text } }));
		break;
	case 4:
		OUTBOX_PUT(&e->j.conn.out, sample, SAMPLE, (&(struct wire_sample){ n + 1u, n * NS_PER_MS + 1, n }));
		break;
	case 5: OUTBOX_PUT(&e->j.conn.out, state, STATE, &state); break;
	case 6: OUTBOX_PUT(&e->j.conn.out, link, LINK, (&(struct wire_link){ .port = 1, .host = text })); break;
	case 7: OUTBOX_PUT(&e->j.conn.out, leftover, LEFTOVER, (&(struct wire_leftover){ n, n, text, { 13, (uint8_t)n,
	    text } })); break;
	case 8:
		OUTBOX_PUT(&e->j.conn.out, cleaned, CLEANED,
		    (&(struct wire_cleaned){ .files = n >> 1, .final = n & 1 }));
		break;
	case 9:
		OUTBOX_PUT(&e->j.conn.out, listed, LISTED,
		    (&(struct wire_listed){ .type = WIRE_LISTED_FILE, .path = text }));
		break;
	case 10:
		OUTBOX_PUT(&e->j.conn.out, managed, MANAGED,
		    (&(struct wire_managed){ .entries = n >> 1, .final = n & 1 }));
		break;
	case 11: put_piece(e, n); break;
	case 12:
		OUTBOX_PUT(&e->j.conn.out, managed, MANAGED, (&(struct wire_managed){ .entries = n, .final = 1 }));
		job_frames_await_next(&e->j, w->now);
		e->started = false;
		break;
	default:
		err_set(&why, PTCP_EIO, "the script says so");
		e->over = true;
		job_frames_end(&e->j, n & 1 ? &why : NULL, n & 2 ? &end : NULL, w->now);
	}
	check_output(e, before);
}

/* ---- Sessions under the grants, at the audience ---- */

static void forget_expired(struct world *w)
{
	unsigned i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < 256; k++)
			if (w->use[i][k].expiry_s <= w->now_s)
				w->use[i][k] = (struct use){ 0 };
}

static void use_grant(struct world *w, const struct end *e)
{
	uint8_t how = take_byte(&w->in);
	const char *peer = host[1 + (how & 1)];
	char by[PTCP_FINGERPRINT_BYTES];
	struct wire_grant g;
	struct ptcp_err why;
	struct use *u;
	unsigned i;
	bool good;
	int r;

	if (!e->has_grant ||
	    wire_grant_decode(&g, (struct span){ e->grant + WIRE_HEADER_BYTES, e->n_grant - WIRE_HEADER_BYTES },
	    NULL) < 0)
		return;
	r = grant_issuer(by, &g, &why);
	MUST(!e->intact || r == 0);
	MUST(e->injected || !w->flipped[e->conn] || r < 0); /* altered: not what the issuer signed */
	if (r < 0)
		return;
	i = strcmp(by, issuer[1].fingerprint) == 0;
	MUST(strcmp(by, issuer[i].fingerprint) == 0); /* nobody else can sign */
	u = &w->use[i][g.nonce[0]];
	if (how & 2) {
		grants_spend(&w->grants, &g);
		u->spent = u->known;
		return;
	}
	good = grant_is_for(&g, peer, host[0]) && g.expiry_s > w->now_s && g.expiry_s - w->now_s <= GRANT_LIFE_MAX_S;
	if (good)
		forget_expired(w);
	good = good && !u->spent;
	r = grants_take(&w->grants, &g, host[0], peer, w->now_s, &why);
	MUST((r == 0) == good && (r == 0 || why.code == PTCP_EREFUSED));
	if (good && !u->known)
		*u = (struct use){ true, false, g.expiry_s };
}

/* ---- Time ---- */

static void pass_time(struct world *w)
{
	static const uint64_t ns[] = { 0, NS_PER_MS, NS_PER_S, 3 * NS_PER_S, 11 * NS_PER_S, 130 * NS_PER_S };
	static const int64_t s[] = { 0, 1, 60, 900, -30, 3600, 90000, -1000 };
	uint8_t how = take_byte(&w->in);

	w->now.ns += ns[how % 6];
	w->now_s += (uint64_t)s[how >> 4 & 7];
}

/* Ends what is due, as owners do; a fault is due exactly at the deadline. */
static void check_time(struct end *e)
{
	enum frame_fault fault = frame_conn_fault(&e->j.conn, e->w->now);
	struct ptcp_err why;

	MUST((fault != FRAME_ALIVE) == (frame_conn_deadline(&e->j.conn).ns <= e->w->now.ns));
	if (fault == FRAME_ALIVE)
		return;
	e->gone = e->over; /* the last frame was not read in time */
	err_set(&why, PTCP_ETIMEOUT, "late");
	finish(e, &why);
}

static void move(struct world *w)
{
	uint8_t what = take_byte(&w->in);
	struct end *client = &w->client[what >> 6], *server = &w->server[what >> 6];

	switch (what & 15) {
	case 0: case 1:
		if (client->j.requested.ns == 0 || (client->over && client->kind >= CLEANING))
			request(w, client);
		break;
	case 2: case 3: case 4: carry(w, client, server); break;
	case 5: case 6:
		if (client->j.requested.ns != 0)
			carry(w, server, client);
		break;
	case 7: case 8: case 9: report(w, server); break;
	case 10: inject(w, server); break;
	case 11:
		if (client->j.requested.ns != 0)
			inject(w, client);
		break;
	case 12: pass_time(w); break;
	default: use_grant(w, server);
	}
}

static void begin(struct world *w)
{
	unsigned i;

	w->now.ns = NS_PER_S;
	w->now_s = NOW_S;
	for (i = 0; i < CONNS; i++) {
		w->client[i] = (struct end){ .w = w, .conn = i };
		w->server[i] = (struct end){ .w = w, .conn = i, .server = true };
		w->client[i].j = (struct job_frames){ .frame = on_frame, .arg = &w->client[i], .timeout_ns = TIMEOUT_NS,
			.messages = MESSAGES };
		w->server[i].j = (struct job_frames){ .frame = on_frame, .arg = &w->server[i] };
		job_frames_await(&w->server[i].j, w->now);
	}
}

static void check(struct end *e)
{
	if (e->gone || (!e->server && e->j.requested.ns == 0))
		return;
	MUST(e->j.state != JOB_FRAMES_CLOSED || e->over);
	check_time(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct world *w = calloc(1, sizeof *w);
	unsigned moves, i;

	if (issuer[0].key == NULL)
		make_identities();
	MUST(w != NULL);
	w->in = (struct input){ data, n };
	begin(w);
	for (moves = 0; moves < MOVES_MAX && w->in.n > 0; moves++) {
		move(w);
		for (i = 0; i < CONNS; i++) {
			check(&w->client[i]);
			check(&w->server[i]);
		}
	}
	for (i = 0; i < CONNS; i++) {
		job_frames_fini(&w->client[i].j);
		job_frames_fini(&w->server[i].j);
	}
	grants_fini(&w->grants);
	free(w);
	return 0;
}
