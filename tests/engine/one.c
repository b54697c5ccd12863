#include "one.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "wire/attrs.h"

/* ---- What the session decides ---- */

static void on_open(void *arg, const struct wire_open *f)
{
	struct one *o = arg;

	assert_int_equal(f->n_paths, f->role == WIRE_ACCEPTOR_RECEIVES || f->role == WIRE_ACCEPTOR_SENDS);
	o->opened++;
}

static void on_running(void *arg, const struct wire_opened *f)
{
	struct one *o = arg;

	assert_int_equal(f->streams, 3);
	o->running++;
}

static void on_note(void *arg, const struct wire_warning *n)
{
	(void)n;
	((struct one *)arg)->notes++;
}

static bool on_paced(void *arg) { return ((struct one *)arg)->paced; }

static enum wire_busy on_busy(void *arg) { return ((struct one *)arg)->busy; }

static void on_ended(void *arg, const struct ptcp_err *why)
{
	struct one *o = arg;

	o->ended++;
	o->why = why != NULL ? *why : (struct ptcp_err){ 0 };
}

static void on_snd_ended(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why)
{
	struct one *o = arg;

	free(cookie);
	o->fates[fate]++;
	if (why != NULL)
		o->fate_why = *why;
}

static void on_check(void *arg, void *cookie, uint64_t id)
{
	(void)cookie;
	(void)id;
	((struct one *)arg)->checks++;
}

static void on_compare(void *arg, void *cookie, uint64_t id)
{
	(void)cookie;
	(void)id;
	((struct one *)arg)->compares++;
}

static void on_hash(void *arg, void *cookie, uint64_t id, uint32_t first, uint32_t count)
{
	struct one *o = arg;

	(void)cookie;
	(void)id;
	o->hashes++;
	o->hash_first = first;
	o->hash_count = count;
}

static void on_pieces(void *arg, void *cookie, uint64_t id, uint32_t block)
{
	struct one *o = arg;

	(void)cookie;
	(void)id;
	o->splits++;
	o->hash_first = block;
}

static void on_map(void *arg, void *cookie, uint64_t id)
{
	(void)cookie;
	(void)id;
	((struct one *)arg)->maps++;
}

static void on_stalled(void *arg, unsigned stream) { ((struct one *)arg)->stalled |= 1u << stream; }

static void on_release(void *arg, void *cookie, uint32_t block)
{
	(void)cookie;
	(void)block;
	((struct one *)arg)->released++;
}

static void on_again(void *arg, void *cookie, uint64_t id)
{
	(void)cookie;
	((struct one *)arg)->again = id;
}

static enum rcv_prep on_prepare(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
    void **cookie, uint64_t **claimed, struct ptcp_err *e)
{
	struct one *o = arg;

	(void)id;
	(void)f;
	(void)parent;
	o->cookies++;
	*cookie = o;
	*claimed = o->claimed;
	o->claimed = NULL;
	err_set(e, PTCP_EIO, "refused");
	return o->prep;
}

static void on_differs(void *arg, uint64_t id, void *cookie)
{
	(void)id;
	(void)cookie;
	((struct one *)arg)->differs++;
}

static void on_same(void *arg, uint64_t id, void *cookie)
{
	(void)id;
	(void)cookie;
	((struct one *)arg)->same++;
}

static void on_accepted(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts)
{
	struct one *o = arg;

	(void)id;
	(void)cookie;
	(void)size_bytes;
	o->accepted++;
	o->accepted_parts += parts;
}

static void on_hole(void *arg, uint64_t id, void *cookie, uint32_t first, uint32_t count)
{
	(void)id;
	(void)cookie;
	(void)first;
	((struct one *)arg)->holes += count;
}

static void on_hashes(void *arg, uint64_t id, void *cookie, uint32_t first, struct span hashes)
{
	struct one *o = arg;

	(void)id;
	(void)cookie;
	assert_int_equal(hashes.n % WIRE_HASH_BYTES, 0);
	o->hashes++;
	o->hash_first = first;
	o->hash_count = (uint32_t)(hashes.n / WIRE_HASH_BYTES);
}

static void on_pieces_of(void *arg, uint64_t id, void *cookie, uint32_t block, struct span hashes)
{
	struct one *o = arg;

	(void)id;
	(void)cookie;
	o->splits++;
	o->hash_first = block;
	o->hash_count = (uint32_t)(hashes.n / WIRE_HASH_BYTES);
}

static void on_commit(void *arg, uint64_t id, void *cookie, const struct wire_entry *end)
{
	(void)id;
	(void)cookie;
	(void)end;
	((struct one *)arg)->commits++;
}

static void on_rcv_ended(void *arg, uint64_t id, void *cookie, bool skipped,
    const struct ptcp_err *why)
{
	struct one *o = arg;

	(void)id;
	(void)cookie;
	o->skipped += skipped;
	o->cookies--;
	o->rcv_ended++;
	if (why != NULL)
		o->rcv_why = *why;
}

static void on_totals(void *arg, uint64_t files, uint64_t bytes, bool final)
{
	(void)arg;
	(void)files;
	(void)bytes;
	(void)final;
}

static void on_sized(void *arg, uint64_t id, void *cookie, uint64_t size_bytes)
{
	(void)id;
	(void)cookie;
	((struct one *)arg)->sized_bytes = size_bytes;
}

static void on_beginning(void *arg, uint64_t id, void *cookie, uint64_t bytes)
{
	(void)id;
	(void)cookie;
	((struct one *)arg)->beginning_bytes = bytes;
}

static void on_incomplete(void *arg, void *cookie, bool failed)
{
	(void)cookie;
	((struct one *)arg)->incomplete += failed;
	((struct one *)arg)->closed += !failed;
}

static const struct snd_ops snd_ops = { on_snd_ended, on_check, on_compare, on_hash, on_pieces, on_map, on_stalled,
	on_release, on_again };
static const struct rcv_ops rcv_ops = { on_prepare, on_differs, on_accepted, on_hole, on_hashes, on_pieces_of,
    on_commit,
	on_rcv_ended, on_totals, on_same, on_sized, on_beginning, on_incomplete };
static void on_use(void *arg, const struct wire_set_streams *u)
{
	((struct one *)arg)->used = u->streams;
}

static void on_seen(void *arg, const struct wire_tcp_report *f)
{
	((struct one *)arg)->seen_us += f->elapsed_us;
}

static void on_load(void *arg, const struct wire_load *f)
{
	(void)arg;
	assert_int_equal(f->busy_permille, 900);
}

static void on_leftovers(void *arg, const struct wire_leftovers *f)
{
	((struct one *)arg)->leftovers += f->files;
}

static bool on_finish(void *arg)
{
	struct one *o = arg;
	struct ptcp_err why;

	if (o->finish_fails) {
		err_set(&why, PTCP_ENOSPC, "full");
		engine_fail(o->s, &why);
	}
	return !o->finish_later;
}

static void on_waiting(void *arg, uint32_t ahead)
{
	struct one *o = arg;

	o->waited++;
	o->ahead = ahead;
}

static void on_rate(void *arg, const struct wire_rate *f)
{
	struct one *o = arg;

	o->rates++;
	o->rate = *f;
}

static void on_endpoint(void *arg, const struct wire_endpoint *f)
{
	((struct one *)arg)->endpoints += f->port != 0;
}

static void on_deleted(void *arg, const struct wire_deleted *f)
{
	(void)f;
	((struct one *)arg)->deleted++;
}

static int on_select(void *arg, const struct wire_select *f, struct ptcp_err *e)
{
	((struct one *)arg)->selects++;
	return f->paths.n > 0 && f->paths.p[0] == '!' ? err_set(e, PTCP_EPROTO, "a refused path") : 0;
}

static int on_control_ack(void *arg, uint64_t bytes, struct ptcp_err *e)
{
	(void)arg;
	(void)bytes;
	(void)e;
	return 0;
}

static const struct engine_ops ops = { .control_ack = on_control_ack, .open = on_open, .running = on_running,
	.warning = on_note, .busy = on_busy, .paced = on_paced,
	.ended = on_ended, .snd = &snd_ops, .rcv = &rcv_ops, .set_streams = on_use, .tcp_report = on_seen,
	.rate = on_rate, .select = on_select, .deleted = on_deleted, .endpoint = on_endpoint, .load = on_load,
	.waiting = on_waiting, .finish = on_finish, .leftovers = on_leftovers };

/* ---- From its beginning to RUNNING ---- */

static const uint8_t path[] = { 0, 0, 1, 'p' };

static struct wire_open open_of(bool acceptor_sends, bool verify)
{
	return (struct wire_open){ .role = acceptor_sends ? WIRE_ACCEPTOR_SENDS : WIRE_ACCEPTOR_RECEIVES, .streams = 3,
		.n_paths = 1, .paths = { path, sizeof path }, .flags = verify ? WIRE_OPEN_VERIFY : 0,
		.wait_ms = ONE_WAIT_MS };
}

static struct wire_open open_as(uint8_t role)
{
	bool files = role == WIRE_ACCEPTOR_RECEIVES || role == WIRE_ACCEPTOR_SENDS;

	return (struct wire_open){ .role = role, .streams = 3, .n_paths = files,
		.paths = { path, files ? sizeof path : 0 }, .wait_ms = ONE_WAIT_MS };
}

static void begin_lingering(struct one *o, bool starter, const struct wire_open *f, uint64_t linger_ns,
    uint64_t quiet_ns)
{
	struct engine_opts so = { .starter = starter, .memory = one_memory, .software = "one",
		.timeout_ns = ONE_TIMEOUT_NS,
		.linger_ns = linger_ns, .quiet_ns = quiet_ns, .max_entries = WIRE_SLOTS, .max_streams = 8,
		.ops = &ops, .arg = o };

	*o = (struct one){ .now_ns = NS_PER_S, .prep = RCV_ACCEPT };
	assert_int_equal(engine_new(&o->s, &so, starter ? f : NULL, (struct mono){ o->now_ns }, NULL), 0);
}

void one_as_open(struct one *o, bool starter, const struct wire_open *f)
{
	begin_lingering(o, starter, f, ONE_TIMEOUT_NS, 0);
}

void one_init_lingering(struct one *o, bool starter, uint64_t linger_ns)
{
	struct wire_open f = open_of(!starter, false);

	begin_lingering(o, starter, &f, linger_ns, ONE_QUIET_NS);
}

void one_run_lingering(struct one *o, bool starter, uint64_t linger_ns, const struct wire_hello *peer)
{
	one_init_lingering(o, starter, linger_ns);
	ONE_PUT(o, hello, peer);
	if (starter) {
		one_opened(o);
	} else {
		one_open(o, true, false);
		one_accept(o);
	}
	one_forget(o);
}

static void init(struct one *o, bool starter, bool sends, uint32_t flags)
{
	struct wire_open f = open_of(!sends, false);

	f.flags = flags;
	one_as_open(o, starter, &f);
}

void one_as(struct one *o, bool starter, uint8_t role)
{
	struct wire_open f = open_as(role);

	one_as_open(o, starter, &f);
}

void one_open_as(struct one *o, uint8_t role)
{
	struct wire_open f = open_as(role);

	ONE_PUT(o, open, &f);
}

void one_init(struct one *o, bool starter, bool sends) { init(o, starter, sends, WIRE_OPEN_VERIFY); }

struct memory_account *one_memory;

void one_fini(struct one *o)
{
	engine_drop(o->s);
	free(o->claimed);
	assert_int_equal(o->cookies, 0);
	engine_free(o->s);
}

void one_input(struct one *o, const uint8_t *p, size_t n)
{
	uint8_t *exact = malloc(n); /* so that a sanitizer sees a byte too many */

	assert_non_null(exact);
	memcpy(exact, p, n);
	engine_input(o->s, exact, n, (struct mono){ o->now_ns });
	free(exact);
}

void one_tick(struct one *o, uint64_t after_ns)
{
	o->now_ns += after_ns;
	engine_tick(o->s, (struct mono){ o->now_ns });
}

void one_hello(struct one *o)
{
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 9000, .quiet_ms = 9000,
		.linger_ms = 9000, .max_entries = WIRE_SLOTS, .max_streams = 8 };

	ONE_PUT(o, hello, &h);
}

void one_open(struct one *o, bool sends, bool verify)
{
	struct wire_open f = open_of(sends, verify);

	ONE_PUT(o, open, &f);
}

static struct wire_opened opened(void)
{
	return (struct wire_opened){ .session = { 1 }, .streams = 3 };
}

void one_opened(struct one *o)
{
	struct wire_opened f = opened();

	ONE_PUT(o, opened, &f);
}

void one_accept(struct one *o)
{
	struct wire_opened f = opened();

	engine_accept(o->s, &f, (struct mono){ o->now_ns });
}

static void run(struct one *o, bool sends, uint32_t flags)
{
	struct wire_open f = open_of(sends, false);

	f.flags = flags;
	init(o, false, sends, 0);
	one_hello(o);
	ONE_PUT(o, open, &f);
	one_accept(o);
	assert_int_equal(o->running, 1);
	assert_true((engine_snd(o->s) != NULL) == sends && (engine_rcv(o->s) != NULL) != sends);
	one_forget(o);
}

void one_run(struct one *o, bool sends, bool verify) { run(o, sends, verify ? WIRE_OPEN_VERIFY : 0); }
void one_run_dry(struct one *o, bool sends) { run(o, sends, WIRE_OPEN_VERIFY | WIRE_OPEN_DRY_RUN); }

void one_run_spooled(struct one *o) { run(o, true, WIRE_OPEN_SPOOLED); }

void one_run_as(struct one *o, bool starter, bool sends)
{
	if (!starter) {
		run(o, sends, 0);
		return;
	}
	init(o, true, sends, 0);
	one_hello(o);
	one_opened(o);
	assert_int_equal(o->running, 1);
	one_forget(o);
}

/* ---- Frames ---- */

unsigned one_said(struct one *o, struct span *payload)
{
	struct buf *b = &engine_outbox(o->s)->b;
	struct wire_header h;

	if (buf_len(b) == 0)
		return 0;
	assert_true(buf_len(b) >= WIRE_HEADER_BYTES);
	assert_int_equal(wire_header_decode(&h, buf_head(b), NULL), 0);
	assert_true(buf_len(b) >= WIRE_HEADER_BYTES + h.length);
	*payload = (struct span){ buf_head(b) + WIRE_HEADER_BYTES, h.length };
	b->start += WIRE_HEADER_BYTES + h.length; /* the bytes stay for the caller */
	return h.type;
}

bool one_found(struct one *o, unsigned type, struct span *payload)
{
	struct span p;
	unsigned said;
	bool found = false;

	while ((said = one_said(o, &p)) != 0)
		if (said == type) {
			found = true;
			*payload = p;
		}
	return found;
}

void one_forget(struct one *o)
{
	buf_consume(&engine_outbox(o->s)->b, buf_len(&engine_outbox(o->s)->b));
}

struct wire_entry one_entry(uint8_t type, uint64_t id, uint64_t parent, uint64_t size_bytes)
{
	struct wire_entry f = { .type = type, .id = id, .parent = parent, .size_bytes = size_bytes,
		.mode = 0644, .mtime_s = 1000, .name = { (const uint8_t *)"name", 4 } };

	if (type == WIRE_DIR_END)
		f.name.n = 0;
	if (type == WIRE_SYMLINK)
		f.target = (struct span){ (const uint8_t *)"target", 6 };
	return f;
}

struct wire_entry one_link(uint64_t id, uint64_t parent, uint64_t link_id)
{
	static uint8_t attrs[16];
	struct wire_attrs a = { .link_id = link_id };
	struct wire_entry f = one_entry(WIRE_HARDLINK, id, parent, 0);

	f.attrs = (struct span){ attrs, wire_attrs_encode(attrs, &a) };
	return f;
}

uint64_t one_offer_as(struct one *o, struct wire_entry *f)
{
	void *cookie = malloc(1);
	uint64_t id;

	assert_non_null(cookie);
	id = snd_offer(engine_snd(o->s), f, cookie);
	assert_int_equal(id, f->id);
	return id;
}

uint64_t one_offer(struct one *o, uint8_t type, uint64_t size_bytes)
{
	struct wire_entry f = one_entry(type, 0, 0, size_bytes);

	return one_offer_as(o, &f);
}

uint64_t one_offer_sparse(struct one *o, uint64_t size_bytes)
{
	static const uint8_t sparse[] = { 0, 2, 0, 0 };
	struct wire_entry f = one_entry(WIRE_FILE, 0, 0, size_bytes);

	f.attrs = (struct span){ sparse, sizeof sparse };
	return one_offer_as(o, &f);
}

void one_answer(struct one *o, uint64_t id, uint8_t verdict)
{
	struct wire_answer f = { id, verdict };

	ONE_PUT(o, answer, &f);
}

void one_ack(struct one *o, uint64_t id, uint32_t block)
{
	struct wire_ack f = { id, block };

	ONE_PUT(o, ack, &f);
}

void one_fail(struct one *o, uint64_t id, int code)
{
	struct wire_fail f = { id, { (uint16_t)-code, 0, { (const uint8_t *)"why", 3 } } };

	ONE_PUT(o, fail, &f);
}

uint64_t one_sending(struct one *o, unsigned streams, uint32_t n_blocks, uint8_t verdict)
{
	uint64_t id;
	unsigned i;

	one_run(o, true, true);
	for (i = 0; i < streams; i++)
		snd_stream_up(one_snd(o), i, one_now(o));
	id = one_offer(o, WIRE_FILE, (uint64_t)n_blocks * ONE_BLOCK);
	snd_listed(one_snd(o), 1, 0, true);
	one_answer(o, id, verdict);
	return id;
}

uint32_t one_take(struct one *o, unsigned stream)
{
	struct snd_job job;

	if (!snd_take(one_snd(o), stream, one_now(o), &job))
		return UINT32_MAX;
	assert_int_equal(job.n, 1);
	return job.extent[0].block;
}
