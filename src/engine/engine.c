#include "engine/engine_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

const char *const engine_state_names[] = {
#define X(name) #name,
	ENGINE_STATES(X)
#undef X
};

void engine_set_state(struct engine *s, enum engine_state to, const char *event)
{
	log_at(s->o.log, LOG_DEBUG, "session", "state=%s->%s event=%s", engine_state_names[s->state], engine_state_names[to], event);
	s->state = to;
}

int engine_new_sender(struct engine *s, struct ptcp_err *e)
{
	struct snd_opts o = { (s->open.flags & WIRE_OPEN_VERIFY) != 0, (s->open.flags & WIRE_OPEN_DRY_RUN) != 0,
		s->o.ops->snd, s->o.arg, s->o.memory, s->tape };

	return snd_new(&s->snd, &o, &s->conn.out, e);
}

int engine_new(struct engine **out, const struct engine_opts *o, const struct wire_open *open,
    struct mono now, struct ptcp_err *e)
{
	uint64_t quiet_ns = o->quiet_ns > 0 ? o->quiet_ns : o->timeout_ns;
	struct engine *s = calloc(1, sizeof *s);
	struct wire_hello h = {
		.version_min = WIRE_VERSION, .version_max = WIRE_VERSION,
		.timeout_ms = (uint32_t)(o->timeout_ns / NS_PER_MS), .quiet_ms = (uint32_t)(quiet_ns / NS_PER_MS),
		.linger_ms = (uint32_t)(o->linger_ns / NS_PER_MS),
		.max_entries = o->max_entries, .max_streams = o->max_streams,
		.software = { (const uint8_t *)o->software, strlen(o->software) }
	};
	uint8_t *p;
	int r;

	if (s == NULL)
		return err_nomem(e);
	if (o->one_channel)
		h.abilities[h.n_abilities++] = WIRE_ABLE_ONE_CHANNEL;
	s->o = *o;
	s->tape = tape_new(&s->o, open, now);
	frame_conn_init(&s->conn, &engine_table, s, o->memory, now);
	s->early.memory = o->memory;
	s->timeout_ns = o->timeout_ns;
	s->linger_ns = o->linger_ns;
	s->o.quiet_ns = quiet_ns;
	s->ping_ns = quiet_ns / 3;
	s->last_work = now;
	s->due = MONO_NEVER;
	if (open != NULL) {
		s->open = *open;
		if ((p = buf_reserve(&s->open_paths, open->paths.n + 1, e)) == NULL) {
			engine_free(s);
			return PTCP_ENOMEM;
		}
		if (open->paths.n > 0)
			memcpy(p, open->paths.p, open->paths.n);
		s->open.paths.p = p;
		if (open->role == WIRE_ACCEPTOR_RECEIVES && (r = engine_new_sender(s, e)) < 0) {
			engine_free(s);
			return r;
		}
	}
	OUTBOX_PUT(&s->conn.out, hello, HELLO, &h);
	/* At once: no field of OPEN depends on the peer's HELLO. */
	if (open != NULL && (p = outbox_room(&s->conn.out, WIRE_OPEN_BYTES(open->paths.n))) != NULL)
		outbox_added(&s->conn.out, wire_open_encode(p, open));
	*out = s;
	return 0;
}

void engine_free(struct engine *s)
{
	if (s == NULL)
		return;
	snd_free(s->snd);
	rcv_free(s->rcv);
	frame_conn_fini(&s->conn);
	buf_fini(&s->open_paths);
	buf_fini(&s->early);
	tape_free(s->tape);
	free(s);
}

void engine_drop(struct engine *s)
{
	TAPE(s->tape, drop, .u = { 0 });
	if (s->snd != NULL)
		snd_drop(s->snd);
	if (s->rcv != NULL)
		rcv_drop(s->rcv);
}

/* ---- Getters ---- */

struct outbox *engine_outbox(struct engine *s) { return &s->conn.out; }

void engine_sent(struct engine *s, size_t n)
{
	struct buf *b = &s->conn.out.b;

	buf_consume(b, n);
	if (n > 0)
		TAPE(s->tape, sent, .u = { n, buf_len(b) });
}

struct snd *engine_snd(struct engine *s) { return s->snd; }
struct rcv *engine_rcv(struct engine *s) { return s->rcv; }
uint64_t engine_linger_ns(const struct engine *s) { return s->linger_ns; }
struct mono engine_last_input(const struct engine *s) { return s->conn.last_input; }
const struct wire_open *engine_open(const struct engine *s) { return &s->open; }
enum wire_busy engine_peer_busy(const struct engine *s) { return s->peer_busy; }

bool engine_over(const struct engine *s)
{
	return s->state == ENDED || s->state == FAILED;
}

bool engine_ended_by_peer(const struct engine *s) { return s->ended_by_peer; }
bool engine_unanswered(const struct engine *s) { return s->unanswered; }
bool engine_closing(const struct engine *s) { return s->state == CLOSING || engine_over(s); }

bool engine_measures(const struct engine *s)
{
	return s->open.role == WIRE_ACCEPTOR_DISCARDS || s->open.role == WIRE_ACCEPTOR_GENERATES;
}

bool engine_spooled(const struct engine *s)
{
	return (s->open.flags & WIRE_OPEN_SPOOLED) != 0;
}

uint64_t engine_failed(const struct engine *s)
{
	uint64_t n = s->warned_failures;

	if (s->snd != NULL)
		return n + snd_stats(s->snd).done.failed;
	if (s->rcv != NULL)
		n += rcv_stats(s->rcv).done.failed;
	/* More than ours where directories failed: their content was never offered. */
	return s->end.failed > n ? s->end.failed : n;
}

bool engine_failed_unplaced(const struct engine *s) { return s->warned_unplaced || rcv_stats(s->rcv).unplaced > 0; }

uint64_t engine_files(const struct engine *s)
{
	return s->snd != NULL ? snd_stats(s->snd).done.files :
	    s->rcv != NULL ? rcv_stats(s->rcv).done.files : 0;
}

/* ---- Outgoing frames ---- */

void engine_set_streams(struct engine *s, const struct wire_set_streams *u)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->conn.out, set_streams, SET_STREAMS, u);
}

void engine_report_load(struct engine *s, const struct wire_load *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->conn.out, load, LOAD, f);
}

void engine_report_tcp(struct engine *s, const struct wire_tcp_report *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->conn.out, tcp_report, TCP_REPORT, f);
}

void engine_set_rates(struct engine *s, const struct wire_rate *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->conn.out, rate, RATE, f);
}

void engine_select(struct engine *s, const struct wire_select *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->conn.out, select, SELECT, f);
}

void engine_warn(struct engine *s, enum wire_warning_kind kind, const char *path, const struct ptcp_err *why)
{
	size_t path_n = strlen(path);
	struct wire_warning n = {
		.kind = (uint8_t)kind, .path = { (const uint8_t *)path, path_n < WIRE_PATH_MAX ? path_n : WIRE_PATH_MAX },
		.why = outbox_why(why)
	};

	TAPE(s->tape, warn, .u = { kind, path_n }, .why = why);
	s->warned_failures += kind != WIRE_WARNING_ONLY && outbox_is_failure(why->code);
	OUTBOX_PUT(&s->conn.out, warning, WARNING, &n);
}

/* ---- The end ---- */

void engine_send_end(struct engine *s)
{
	struct wire_end end = { engine_files(s), engine_failed(s) };

	OUTBOX_PUT(&s->conn.out, end, END, &end);
	engine_set_state(s, CLOSING, "finished");
}

void engine_finish(struct engine *s)
{
	TAPE(s->tape, finish, .u = { 0 });
	if (s->state == RUNNING)
		engine_send_end(s);
}

void engine_report_leftovers(struct engine *s, const struct wire_leftovers *f)
{
	if (!s->o.starter && !engine_over(s))
		OUTBOX_PUT(&s->conn.out, leftovers, LEFTOVERS, f);
}

void engine_report_endpoint(struct engine *s, const struct wire_endpoint *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->conn.out, endpoint, ENDPOINT, f);
}

void engine_report_deleted(struct engine *s, const char *path)
{
	struct wire_deleted f = { { (const uint8_t *)path, strnlen(path, WIRE_PATH_MAX) } };

	if (!s->o.starter && !engine_over(s))
		OUTBOX_PUT(&s->conn.out, deleted, DELETED, &f);
}

void engine_finished(struct engine *s)
{
	TAPE(s->tape, finished, .u = { 0 });
	if (s->state != CLOSING || s->rcv == NULL)
		return;
	OUTBOX_PUT(&s->conn.out, end, END, &s->end);
	engine_end(s, NULL);
}

void engine_end(struct engine *s, const struct ptcp_err *why)
{
	if (engine_over(s))
		return;
	engine_set_state(s, why == NULL ? ENDED : FAILED, why == NULL ? "END" : ptcp_err_name(why->code));
	s->o.ops->ended(s->o.arg, why);
}

void engine_fail(struct engine *s, const struct ptcp_err *why)
{
	TAPE(s->tape, fail, .why = why);
	engine_give_up(s, why);
}

void engine_give_up(struct engine *s, const struct ptcp_err *why)
{
	if (engine_over(s))
		return;
	s->conn.out.failed = false; /* room for ERROR, even when memory was short before */
	outbox_put_error(&s->conn.out, why);
	engine_end(s, why);
}

/* In CLOSING every entry has its verdict, and a starter that receives may leave right behind its END. */
void engine_closed(struct engine *s, const struct ptcp_err *why)
{
	TAPE(s->tape, closed, .why = why);
	s->unanswered = s->state == HELLO;
	engine_end(s, s->state == CLOSING && s->snd != NULL && !s->o.starter ? NULL : why);
}
