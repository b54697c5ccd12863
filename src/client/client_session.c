/* The callbacks of a client's session, and the events of its caller. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/client_impl.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "store/destination.h"

#define PROGRESS_NS (200 * NS_PER_MS)

/* ---- Events ---- */

void client_emit(struct ptcp_transfer *t, const struct ptcp_event *ev)
{
	if (t->o.event != NULL)
		t->o.event(t->o.arg, ev);
}

/* The rate counts transferred bytes; resumed bytes shorten the remaining time, too. */
static void measure_rate(struct ptcp_transfer *t, struct ptcp_event *ev)
{
	struct mono now = mono_now();
	unsigned i = t->n_samples % RATE_SAMPLES, first = t->n_samples < RATE_SAMPLES ? 0 : i, k;
	const struct ptcp_progress *g = &t->last;
	double s = (double)mono_diff_ns(now, t->sample[first].at) / 1e9, all, resumed;

	ev->eta_s = NAN;
	if (t->n_samples > 0 && s > 0) {
		all = (double)(g->bytes - t->sample[first].bytes) / s;
		resumed = (double)(g->resumed_bytes - t->sample[first].resumed_bytes) / s;
		ev->rate_bps = 8.0 * (all > resumed ? all - resumed : 0);
		/* The peer may send any total. */
		if (g->total_known && all > 0 && g->total_bytes >= g->bytes)
			ev->eta_s = (double)(g->total_bytes - g->bytes) / all;
	}
	t->sample[i].at = now;
	t->sample[i].bytes = g->bytes;
	t->sample[i].resumed_bytes = g->resumed_bytes;
	for (k = 0; k < t->ways.n; k++) {
		if (t->n_samples > 0 && s > 0)
			t->figures[k].rate_bps =
			    8 * (double)(t->figures[k].bytes - t->sample[first].path_bytes[k]) / s;
		t->sample[i].path_bytes[k] = t->figures[k].bytes;
	}
	t->n_samples++;
}

static void show_paths(struct ptcp_transfer *t, struct ptcp_event *ev)
{
	struct session_path g;
	unsigned i;

	for (i = 0; i < t->ways.n; i++) {
		g = t->session != NULL ? session_path(t->session, i) : (struct session_path){ t->last.wire_bytes, 0 };
		t->figures[i].candidate = t->ways.at[i].candidate;
		t->figures[i].bytes = g.bytes;
		t->figures[i].streams = g.streams;
	}
	ev->paths = t->figures;
	ev->n_paths = t->ways.n;
}

static void measure(struct ptcp_transfer *t, struct ptcp_event *ev)
{
	t->last = t->third != NULL ? t->remote->progress(t->third) : session_progress(t->session);
	ev->progress = t->last;
	show_paths(t, ev);
	measure_rate(t, ev);
}

void client_show_progress(struct ptcp_transfer *t)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS };

	measure(t, &ev);
	client_emit(t, &ev);
	timer_set(t->timer, mono_add_ns(mono_now(), PROGRESS_NS));
}

static void on_file(void *arg, const char *path, enum ptcp_file_status status,
    const struct ptcp_err *why)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_FILE, .path = path, .status = status };

	if (status != PTCP_FILE_FAILED && !t->o.file_events)
		return;
	if (why != NULL) {
		ev.text = why->msg;
		ev.code = why->code;
	}
	client_emit(t, &ev);
}

static void on_warning(void *arg, const char *path, const char *text)
{
	struct ptcp_transfer *t = arg;
	char shown[TEXT_NAME_BYTES], line[TEXT_NAME_BYTES + 520];
	struct ptcp_event ev = { .type = PTCP_EVENT_WARNING, .text = text };

	if (path != NULL) {
		snprintf(line, sizeof line, "%s: %s", text_escape(shown, sizeof shown, path), text);
		ev.text = line;
	}
	t->warnings++;
	client_emit(t, &ev);
}

void client_warn(struct ptcp_transfer *t, const char *text) { on_warning(t, NULL, text); }

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_STREAMS, .from = from, .to = to, .text = why };

	client_emit(t, &ev);
}

static void on_paths(void *arg, const char *why)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_PATHS, .text = why };

	show_paths(t, &ev);
	client_emit(t, &ev);
}

/* ---- Sources and destination ---- */

/* Whether an earlier source has the same name at the destination. */
static bool named_before(const struct ptcp_transfer *t, size_t source, const char *name)
{
	size_t i, n, len = strlen(name);
	const char *s;

	for (i = 0; i < source; i++) {
		s = t->local[i];
		n = strlen(s);
		if (!destination_is_contents(s) && n >= len && strcmp(s + n - len, name) == 0 &&
		    (n == len || s[n - len - 1] == '/'))
			return true;
	}
	return false;
}

/* A source that cannot be found is a failed file; the transfer goes on. */
static int add_sources(struct ptcp_transfer *t, struct session *sess, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES];
	struct ptcp_err why;
	struct dir *dir;
	size_t i;
	int r = t->filter != NULL ? session_send_filtered(sess, t->filter, e) : 0;

	for (i = 0; i < t->n_local && r == 0; i++) {
		if (destination_source(NULL, t->local[i], false, &dir, name, &why) < 0) {
			r = session_send_missing(sess, t->local[i], &why);
			continue;
		}
		if (name[0] != '\0' && named_before(t, i, name)) {
			err_set(&why, PTCP_EUSAGE, "another source has the same name (send it separately, or to another directory)");
			r = session_send_missing(sess, t->local[i], &why);
		} else {
			r = session_send_from(sess, dir, name[0] != '\0' ? name : NULL, e);
		}
		dir_unref(dir);
	}
	return r;
}

static int add_target(struct ptcp_transfer *t, struct session *sess, struct ptcp_err *e)
{
	int flags = (t->n_remote > 1 ? DESTINATION_INTO_DIR : 0) | (t->o.dry_run ? DESTINATION_DRY_RUN : 0);
	struct span rest = { t->paths, t->paths_bytes }, path;
	char shown[TEXT_NAME_BYTES];
	uint8_t path_flags = 0;
	struct destination place;
	int r;

	if (t->n_remote == 1 && wire_path_next(&rest, &path_flags, &path) &&
	    (path_flags & WIRE_PATH_CONTENTS) != 0)
		flags |= DESTINATION_CONTENTS;
	if ((r = destination_target(&place, NULL, t->local[0], flags, e)) < 0)
		return err_while(e, r, "destination %s", text_escape(shown, sizeof shown, t->local[0]));
	return session_receive_into(sess, &place, e);
}

void client_started(struct ptcp_transfer *t)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_START, .peer = t->peer,
		.peer_fingerprint = t->fingerprint, .eta_s = NAN };

	t->announced = true;
	t->sample[0].at = mono_now();
	t->n_samples = 1;
	show_paths(t, &ev);
	client_emit(t, &ev);
}

static void on_running(void *arg, struct session *sess)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	client_started(t);
	if (t->prober != NULL) {
		if (client_recall_advice(t))
			engine_finish(session_engine(sess));
		else
			t->prober->ops->running(t->prober, sess);
		return;
	}
	timer_set(t->timer, mono_add_ns(mono_now(), PROGRESS_NS));
	client_adapt_streams(t, sess);
	if ((t->sends ? add_sources(t, sess, &why) : add_target(t, sess, &why)) < 0)
		engine_fail(session_engine(sess), &why);
}

/* ---- The end ---- */

bool client_failed(struct ptcp_err *out, const struct ptcp_progress *g, const struct ptcp_err *why)
{
	if (why != NULL) {
		*out = *why;
		return true;
	}
	if (g->failed == 0)
		return false;
	/* Without any success it is a failure, not a partial success. */
	err_set(out, g->files > 0 || g->file_bytes > 0 || g->others > 0 ? PTCP_EPARTIAL : PTCP_EIO,
	    "transfer: %llu %s failed, the rest is done (see above; fix the cause and run it again)",
	    (unsigned long long)g->failed, g->failed == 1 ? "file" : "files");
	if (out->code == PTCP_EIO)
		err_set(out, PTCP_EIO, "transfer: all sources failed (see above)");
	return true;
}

void client_outcome(struct ptcp_transfer *t, const struct ptcp_err *why)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS };
	struct ptcp_err outcome;
	bool failed;

	measure(t, &ev);
	if (t->announced)
		client_emit(t, &ev);
	failed = client_failed(&outcome, &t->last, why);
	client_finish(t, failed ? &outcome : NULL);
}

static void on_gone(void *arg, struct session *sess, const struct ptcp_err *why)
{
	struct ptcp_transfer *t = arg;

	if (session_stream_control(sess) != NULL) {
		t->control = *session_stream_control(sess);
		client_remember(t);
	}
	if (t->prober != NULL && why == NULL)
		client_remember_advice(t);
	client_outcome(t, why);
	session_free(sess); /* frees `why` */
	t->session = NULL;
}

const struct session_ops client_session_ops = {
	.running = on_running, .file = on_file, .warning = on_warning, .streams = on_streams,
	.paths = on_paths, .check = client_trust, .gone = on_gone
};
