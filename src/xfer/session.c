#include "xfer/session_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

static const char *const state_names[] = {
#define X(name) #name,
	SESSION_STATES(X)
#undef X
};

void session_set_state(struct session *s, enum session_state to, const char *event)
{
	log_at(s->o.log, LOG_DEBUG, "session", "state=%s->%s event=%s", state_names[s->state],
	    state_names[to], event);
	s->state = to;
}

int session_unexpected(const struct session *s, unsigned type, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame in state %s", wire_type_name(type),
	    state_names[s->state]);
}

int session_new(struct session **out, const struct session_opts *o, const struct wire_open *open,
    struct mono now, struct ptcp_err *e)
{
	struct session *s = calloc(1, sizeof *s);
	struct wire_hello h = {
		.version_min = WIRE_VERSION, .version_max = WIRE_VERSION,
		.timeout_ms = (uint32_t)((o->hello_timeout_ns > 0 ? o->hello_timeout_ns : o->timeout_ns) / NS_PER_MS),
		.max_entries = o->max_entries, .max_streams = o->max_streams,
		.n_abilities = 4,
		.abilities = { WIRE_ABLE_HARDLINK, WIRE_ABLE_STEERED, WIRE_ABLE_HELD, WIRE_ABLE_RATE },
		.software = { (const uint8_t *)o->software, strlen(o->software) }
	};
	uint8_t *p;

	if (s == NULL)
		return err_nomem(e);
	if (o->one_channel)
		h.abilities[h.n_abilities++] = WIRE_ABLE_ONE_CHANNEL;
	if (o->returns)
		h.abilities[h.n_abilities++] = WIRE_ABLE_RETURN;
	s->o = *o;
	s->returns = o->returns;
	s->last_ping = s->last_heard = now;
	session_progress(s, now);
	s->peer_timeout_ns = o->timeout_ns;
	if (open != NULL) {
		s->open = *open;
		if ((p = buf_reserve(&s->wanted_paths, open->paths.n + 1)) == NULL) {
			free(s);
			return err_nomem(e);
		}
		if (open->paths.n > 0)
			memcpy(p, open->paths.p, open->paths.n);
		s->open.paths.p = p;
	}
	OUTBOX_PUT(&s->out, hello, HELLO, &h);
	*out = s;
	return 0;
}

void session_free(struct session *s)
{
	if (s == NULL)
		return;
	snd_free(s->snd);
	rcv_free(s->rcv);
	buf_fini(&s->in);
	buf_fini(&s->out.b);
	buf_fini(&s->wanted_paths);
	free(s);
}

void session_drop(struct session *s)
{
	if (s->snd != NULL)
		snd_drop(s->snd);
	if (s->rcv != NULL)
		rcv_drop(s->rcv);
}

/* ---- What is known of it ---- */

struct outbox *session_outbox(struct session *s) { return &s->out; }
struct snd *session_snd(struct session *s) { return s->snd; }
struct rcv *session_rcv(struct session *s) { return s->rcv; }
bool session_takes_links(const struct session *s) { return s->peer_links; }
bool session_returns(const struct session *s) { return s->returns; }
struct mono session_heard(const struct session *s) { return s->last_heard; }
const struct wire_open *session_open(const struct session *s) { return &s->open; }
enum wire_busy session_peer_busy(const struct session *s) { return s->peer_busy; }

bool session_over(const struct session *s)
{
	return s->state == ENDED || s->state == FAILED;
}

bool session_measures(const struct session *s)
{
	return s->open.role == WIRE_YOU_DROP || s->open.role == WIRE_YOU_FLOOD;
}

bool session_held(const struct session *s)
{
	return (s->open.flags & WIRE_OPEN_HELD) != 0;
}

bool session_steered(const struct session *s)
{
	return (s->open.flags & WIRE_OPEN_STEERED) != 0;
}

bool session_takes_rates(const struct session *s)
{
	return s->peer_rates && s->o.starter && s->rcv != NULL;
}

uint64_t session_failed(const struct session *s)
{
	uint64_t n = s->noted_failures;

	if (s->snd != NULL)
		return n + snd_stats(s->snd).failed;
	if (s->rcv != NULL)
		n += rcv_stats(s->rcv).failed;
	/* More when directories failed: what is in them was never offered. */
	return s->end.failed > n ? s->end.failed : n;
}

uint64_t session_files(const struct session *s)
{
	return s->snd != NULL ? snd_stats(s->snd).files :
	    s->rcv != NULL ? rcv_stats(s->rcv).files : 0;
}

/* ---- What the peer is told ---- */

void session_use(struct session *s, const struct wire_use *u)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->out, use, USE, u);
}

void session_tell_load(struct session *s, const struct wire_load *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->out, load, LOAD, f);
}

void session_tell_seen(struct session *s, const struct wire_seen *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->out, seen, SEEN, f);
}

void session_rate(struct session *s, const struct wire_rate *f)
{
	if (s->state == RUNNING)
		OUTBOX_PUT(&s->out, rate, RATE, f);
}

void session_note(struct session *s, enum wire_note_kind kind, const char *path,
    const struct ptcp_err *why)
{
	size_t path_n = strlen(path), text_n = strlen(why->msg);
	struct wire_note n = {
		.kind = (uint8_t)kind, .code = (uint16_t)-why->code,
		.path = { (const uint8_t *)path, path_n < WIRE_PATH_MAX ? path_n : WIRE_PATH_MAX },
		.text = { (const uint8_t *)why->msg, text_n < WIRE_TEXT_MAX ? text_n : WIRE_TEXT_MAX }
	};

	if (kind == WIRE_NOTE_FAILED)
		s->noted_failures++;
	OUTBOX_PUT(&s->out, note, NOTE, &n);
}

/* ---- The end ---- */

void session_send_end(struct session *s)
{
	struct wire_end end = { session_files(s), session_failed(s) };

	OUTBOX_PUT(&s->out, end, END, &end);
	session_set_state(s, ENDING, "finished");
}

void session_finish(struct session *s)
{
	if (s->state == RUNNING)
		session_send_end(s);
}

void session_end(struct session *s, const struct ptcp_err *why)
{
	if (session_over(s))
		return;
	session_set_state(s, why == NULL ? ENDED : FAILED, why == NULL ? "END" : ptcp_err_name(why->code));
	s->o.ops->ended(s->o.arg, why);
}

void session_fail(struct session *s, const struct ptcp_err *why)
{
	if (session_over(s))
		return;
	s->out.failed = false; /* the last word, whatever went wrong before */
	outbox_put_error(&s->out, why);
	session_end(s, why);
}

void session_closed(struct session *s, const struct ptcp_err *why)
{
	session_end(s, why);
}
