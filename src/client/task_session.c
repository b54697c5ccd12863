/* The callbacks of a client's session, and the events and results of its caller. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/file_digests.h"
#include "client/task_impl.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "core/units.h"
#include "store/destination.h"
#include "wire/outbox.h"

#define PROGRESS_NS (200 * NS_PER_MS)

/* ---- Events ---- */

void task_emit(struct ptcp_task *t, const struct ptcp_event *ev)
{
	if (t->o.event != NULL)
		t->o.event(t->o.arg, ev);
}

/* The rate counts transferred bytes; resumed bytes shorten the remaining time, too. */
static void measure_rate(struct ptcp_task *t, struct ptcp_event *ev)
{
	struct mono now = mono_now();
	unsigned i = t->report.n_samples % RATE_SAMPLES, first = t->report.n_samples < RATE_SAMPLES ? 0 : i, k;
	const struct ptcp_progress *g = &t->report.last;
	double s = (double)mono_diff_ns(now, t->report.sample[first].at) / 1e9, all, resumed;

	ev->eta_s = NAN;
	if (t->report.n_samples > 0 && s > 0) {
		all = (double)(g->bytes - t->report.sample[first].bytes) / s;
		resumed = (double)(g->resumed_bytes - t->report.sample[first].resumed_bytes) / s;
		ev->rate_bps = 8.0 * (all > resumed ? all - resumed : 0);
		/* The peer may send any total. */
		if (g->total_known && all > 0 && g->total_bytes >= g->bytes)
			ev->eta_s = (double)(g->total_bytes - g->bytes) / all;
	}
	t->report.sample[i].at = now;
	t->report.sample[i].bytes = g->bytes;
	t->report.sample[i].resumed_bytes = g->resumed_bytes;
	for (k = 0; k < t->paths.n; k++) {
		if (t->report.n_samples > 0 && s > 0)
			t->report.path_stats[k].rate_bps =
			    8 * (double)(t->report.path_stats[k].bytes - t->report.sample[first].path_bytes[k]) / s;
		t->report.sample[i].path_bytes[k] = t->report.path_stats[k].bytes;
	}
	t->report.n_samples++;
}

static void show_paths(struct ptcp_task *t, struct ptcp_event *ev)
{
	struct session_path g;
	unsigned i;

	for (i = 0; i < t->paths.n; i++) {
		g = t->session != NULL ? session_path(t->session, i) : (struct session_path){
			.bytes = t->report.last.wire_bytes + t->report.last.saved_bytes };
		t->report.path_stats[i].candidate = t->paths.at[i].candidate;
		t->report.path_stats[i].bytes = g.bytes;
		t->report.path_stats[i].streams = g.streams;
		t->report.path_stats[i].rtt_s = g.rtt_s;
		t->report.path_stats[i].min_rtt_s = g.min_rtt_s;
		t->report.path_stats[i].segments = g.segments;
		t->report.path_stats[i].retransmits = g.lost;
		if (g.streams > 0)
			t->report.failed_paths &= ~(UINT64_C(1) << i);
	}
	ev->paths = t->report.path_stats;
	ev->n_paths = t->paths.n;
}

static uint64_t without(uint64_t n, uint64_t part) { return part < n ? n - part : 0; }

/* Of this session: what was sent is at the destination, or was sent in vain. */
static uint64_t copied_bytes(const struct ptcp_progress *p)
{
	return without(p->wire_bytes + p->saved_bytes, without(p->bytes, p->resumed_bytes));
}

static void measure(struct ptcp_task *t, struct ptcp_event *ev)
{
	t->report.last = t->remote_job != NULL ? t->job_ops->progress(t->remote_job) : session_progress(t->session);
	retry_moved(t, t->report.last.bytes);
	t->report.copied_bytes = t->retry.copied_bytes + copied_bytes(&t->report.last);
	t->report.last.wire_bytes += t->retry.wire_bytes;
	t->report.last.saved_bytes += t->retry.saved_bytes;
	ev->progress = t->report.last;
	show_paths(t, ev);
	striping_show(t, ev);
	measure_rate(t, ev);
}

static void emit_deadline(struct ptcp_task *t)
{
	char text[sizeof ((struct ptcp_err *)0)->msg];
	const struct ptcp_event ev = { .type = PTCP_EVENT_DEADLINE, .deadline = &t->deadline.now,
		.text = deadline_text(t, text, sizeof text) };

	log_at(&t->context.log, LOG_INFO, "deadline", "streams=%u floor_bps=%.0f why=\"%s\"", ev.deadline->streams,
	    ev.deadline->floor_bps, text);
	task_emit(t, &ev);
}

void task_show_progress(struct ptcp_task *t)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS };

	measure(t, &ev);
	task_emit(t, &ev);
	if (deadline_pump(t))
		emit_deadline(t);
	timer_set(t->timer, mono_add_ns(mono_now(), PROGRESS_NS));
}

/* The first failure: the outcome if there is no other. Its cause is that of all, or 0. */
static void note_failure(struct ptcp_task *t, const char *path, const struct ptcp_event *ev, bool from_peer)
{
	char shown[TEXT_NAME_BYTES];

	if (t->report.failures++ == 0) {
		err_set(&t->report.first, ev->code, "%s: %s", text_escape(shown, sizeof shown, path),
		    ev->text != NULL ? ev->text : ptcp_err_text(ev->code));
		t->report.first.sys = ev->sys;
		t->report.first.from_peer = from_peer;
	} else if (t->report.first.sys != ev->sys) {
		t->report.first.sys = 0;
	}
}

static void count_file(struct ptcp_task *t, const struct session_file *f)
{
	struct report_files *of = f->status == PTCP_FILE_DONE ? &t->report.sent :
	    f->status == PTCP_FILE_SKIPPED ? &t->report.same : NULL;

	if (of == NULL || f->is_link)
		return;
	of->n++;
	of->bytes += f->size_bytes;
}

static void on_file(void *arg, const struct session_file *f)
{
	struct ptcp_task *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_FILE, .path = f->path, .status = f->status,
		.size_bytes = f->size_bytes, .is_link = f->is_link };
	const struct ptcp_err *why = f->why;
	struct file_digests digests;
	struct ptcp_entry sent;
	struct ptcp_err named;

	t->report.deleted += f->status == PTCP_FILE_DELETED;
	t->report.vanished += f->status == PTCP_FILE_VANISHED;
	count_file(t, f);
	if (f->status != PTCP_FILE_FAILED && f->status != PTCP_FILE_VANISHED && !t->o.file_events &&
	    f->digests == NULL)
		return;
	if (f->digests != NULL && file_digests(&digests, t->files.digests, f->digests, &sent)) {
		ev.digest = sent.digest;
		ev.n_digests = sent.n_digests;
	}
	t->report.refused += why != NULL && why->code == PTCP_EREFUSED;
	if (why != NULL) {
		named = *why;
		if (why->from_peer)
			err_while(&named, why->code, "%s", t->known_as);
		ev.text = named.msg;
		ev.code = named.code;
		ev.sys = err_cause(&named);
	}
	if (f->status == PTCP_FILE_FAILED)
		note_failure(t, f->path, &ev, why != NULL && why->from_peer);
	task_emit(t, &ev);
}

static void on_warning(void *arg, const char *path, const char *text)
{
	struct ptcp_task *t = arg;
	char shown[TEXT_NAME_BYTES], line[TEXT_NAME_BYTES + 520];
	struct ptcp_event ev = { .type = PTCP_EVENT_WARNING, .text = text };

	if (path != NULL && path[0] != '\0') {
		snprintf(line, sizeof line, "%s: %s", text_escape(shown, sizeof shown, path), text);
		ev.text = line;
	}
	t->report.warnings++;
	task_emit(t, &ev);
}

/* A local path as a word for a shell. DIRECTORY if display would change the path: nobody should type a wrong path. */
static void local_word(const char *path, char *out, size_t cap)
{
	char shown[TEXT_NAME_BYTES];

	if (strcmp(text_escape(shown, sizeof shown, path), path) == 0 && strchr(path, '\'') == NULL)
		snprintf(out, cap, "%s'%s'", path[0] == '-' ? "./" : "", path);
	else
		snprintf(out, cap, "DIRECTORY");
}

static void on_leftovers(void *arg, const struct wire_leftovers *f)
{
	char where[SESSION_LEFTOVERS_BYTES - 200], text[SESSION_LEFTOVERS_BYTES];
	struct ptcp_task *t = arg;

	if (!t->files.sends)
		local_word(t->files.local[0], where, sizeof where);
	else if (!remote_url(&t->target, where, sizeof where))
		snprintf(where, sizeof where, "URL");
	on_warning(t, NULL, session_leftovers_text(text, f, where));
}

void task_path_failed(struct ptcp_task *t, unsigned path, unsigned hop, const char *why)
{
	char text[sizeof ((struct ptcp_err *)0)->msg + TEXT_NAME_BYTES + 20];
	struct ptcp_event ev = { .type = PTCP_EVENT_WARNING, .text = text, .failed_hop = hop };

	if ((t->report.failed_paths >> path & 1) != 0)
		return;
	t->report.failed_paths |= UINT64_C(1) << path;
	show_paths(t, &ev);
	ev.failed_path = &ev.paths[path];
	snprintf(text, sizeof text, "path %.*s: %s", TEXT_NAME_BYTES, paths_name(&t->paths, path), why);
	t->report.warnings++;
	task_emit(t, &ev);
}

static void on_path_failed(void *arg, unsigned path, unsigned hop, const char *why)
{
	task_path_failed(arg, path, hop, why);
}

void task_warn(struct ptcp_task *t, const char *text) { on_warning(t, NULL, text); }

static void on_waiting(void *arg, uint32_t ahead) { wait_report(arg, ahead, NULL); }

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	struct ptcp_task *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_STREAMS, .from = from, .to = to, .text = why };

	task_emit(t, &ev);
}

static void on_congestion(void *arg, const char *name, const char *why)
{
	struct ptcp_task *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_CONGESTION, .congestion = name, .text = why };

	if (t->prober == NULL)
		task_emit(t, &ev);
}

static void on_reconnecting(void *arg, unsigned attempt, uint64_t wait_ns, const char *why)
{
	retry_report(arg, attempt, wait_ns, why);
}

static void on_paths(void *arg, const char *why)
{
	struct ptcp_task *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_PATHS, .text = why };

	show_paths(t, &ev);
	task_emit(t, &ev);
}

/* ---- Sources and destination ---- */

/* Whether both paths lead to one file. */
static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return lstat(a, &x) == 0 && lstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The earlier source with the same name at the destination, or NULL. */
static const char *named_before(const struct ptcp_task *t, size_t source, const char *name)
{
	size_t i, n, len = strlen(name);
	const char *s;

	for (i = 0; i < source; i++) {
		s = t->files.local[i];
		n = strlen(s);
		if (!text_is_contents(s) && n >= len && strcmp(s + n - len, name) == 0 &&
		    (n == len || s[n - len - 1] == '/'))
			return s;
	}
	return NULL;
}

struct place {
	struct dir *dir;
	char name[DESTINATION_NAME_BYTES];
};

/* A source that the user names, such as <(command), is judged by what it leads to. */
static int check_source(const char *path, struct ptcp_err *why)
{
	struct stat st;

	if (stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return 0;
	return err_set(why, PTCP_EIO, "a device, FIFO or socket (write - to send standard input)");
}

/* 1: an earlier source is the same file. */
static int find_source(const struct ptcp_task *t, size_t i, struct place *out, struct ptcp_err *why)
{
	int r = destination_source(NULL, t->files.local[i], t->files.selection != NULL, &out->dir, out->name, why);
	const char *before;

	if (r == 0 && (r = check_source(t->files.local[i], why)) < 0)
		dir_unref(out->dir);
	if (r < 0 || out->name[0] == '\0' || (before = named_before(t, i, out->name)) == NULL)
		return r;
	dir_unref(out->dir);
	return same_file(before, t->files.local[i]) ? 1 :
	    err_set(why, PTCP_EUSAGE, "another source has the same name (send it separately, or to another directory)");
}

static int add_filter(struct ptcp_task *t, struct session *sess, struct ptcp_err *e)
{
	int r = t->files.filter != NULL ? session_send_filtered(sess, t->files.filter, true, e) : 0;

	return r == 0 && t->files.selection != NULL ? session_send_selected(sess, t->files.selection, e) : r;
}

/* Takes the reference to the directory. */
static int add_source(struct session *sess, struct place *p, struct ptcp_err *e)
{
	const uint32_t links = WIRE_OPEN_COPY_LINKS | WIRE_OPEN_COPY_UNSAFE_LINKS;
	int r;

	if ((engine_open(session_engine(sess))->flags & links) != 0)
		dir_follow(p->dir, DIR_FOLLOW_ANYWHERE);
	r = session_send_from(sess, p->dir, p->name[0] != '\0' ? p->name : NULL, e);
	dir_unref(p->dir);
	return r;
}

/* For a transfer that removes its sources: what earlier sessions have done. */
static struct published *published(struct ptcp_task *t)
{
	published_next(&t->files.published);
	return &t->files.published;
}

/* A source that cannot be found is a failed file; the transfer goes on. */
static int add_sources(struct ptcp_task *t, struct session *sess, struct ptcp_err *e)
{
	struct ptcp_err why;
	struct place place;
	size_t i;
	int r, found;

	if (t->files.input != NULL)
		return session_send_pipe(sess, t->files.input, e);
	if ((r = add_filter(t, sess, e)) == 0 && t->o.remove_sources)
		r = session_send_removed(sess, published(t), e);
	if (r == 0)
		r = session_send_digests(sess, t->files.digests, &t->files.expected, e);
	for (i = 0; i < t->files.n_local && r == 0; i++)
		if ((found = find_source(t, i, &place, &why)) <= 0)
			r = found < 0 ? session_send_missing(sess, t->files.local[i], &why) : add_source(sess, &place, e);
	return r;
}

int task_add_early(struct ptcp_task *t, struct session *sess, struct ptcp_err *e)
{
	struct place place[WIRE_EARLY_ENTRIES];
	struct ptcp_err why;
	size_t n = 0, i;
	int r;

	t->files.added = t->files.input != NULL;
	if (t->files.added)
		return session_send_pipe(sess, t->files.input, e);
	if (!t->files.sends || t->prober != NULL || t->files.n_local > WIRE_EARLY_ENTRIES)
		return 0;
	while (n < t->files.n_local && find_source(t, n, &place[n], &why) == 0)
		n++;
	if (n < t->files.n_local) {
		while (n > 0)
			dir_unref(place[--n].dir);
		return 0;
	}
	t->files.added = true;
	if ((r = add_filter(t, sess, e)) == 0 && t->o.remove_sources)
		r = session_send_removed(sess, published(t), e);
	if (r == 0)
		r = session_send_digests(sess, t->files.digests, &t->files.expected, e);
	for (i = 0; i < n; i++)
		if (r < 0)
			dir_unref(place[i].dir);
		else
			r = add_source(sess, &place[i], e);
	return r;
}

static int add_target(struct ptcp_task *t, struct session *sess, struct ptcp_err *e)
{
	bool several = t->files.n_remote > 1 || session_sources_expanded(sess);
	int flags = (several ? DESTINATION_INTO_DIR : 0) | (int)task_open_flags(t);
	struct span rest = { t->files.open_paths, t->files.open_paths_bytes }, path;
	char shown[TEXT_NAME_BYTES];
	uint8_t path_flags = 0;
	struct destination place;
	size_t i;
	int r;

	if (t->files.output != NULL)
		return session_receive_pipe(sess, t->files.output, e);
	if (!several && wire_path_next(&rest, &path_flags, &path) && (path_flags & WIRE_PATH_CONTENTS) != 0)
		flags |= DESTINATION_CONTENTS;
	if ((r = destination_target(&place, NULL, t->files.local[0], flags, e)) < 0)
		return err_while(e, r, "destination %s", text_escape(shown, sizeof shown, t->files.local[0]));
	if ((r = session_receive_into(sess, &place, e)) < 0)
		return r;
	session_receive_filtered(sess, t->files.filter, true);
	if ((r = session_receive_backup(sess, t->files.backup, e)) < 0 ||
	    (t->o.older.if_match != NULL && (r = session_receive_match(sess, t->o.older.if_match, e)) < 0))
		return r;
	for (i = 0; i < t->files.references.n; i++) {
		const struct session_reference of = { .kind = t->files.references.kind, .own = true,
			.path = t->files.references.dir[i] };

		if ((r = session_receive_reference(sess, &of, e)) < 0)
			return r;
	}
	if (t->o.remove_sources)
		session_receive_published(sess, published(t));
	return 0;
}

void task_started(struct ptcp_task *t)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_START, .peer = t->peer,
		.peer_fingerprint = t->fingerprint, .eta_s = NAN };

	t->report.announced = true;
	if (t->avoids_movers)
		task_warn(t, "the host of the server carries the data, as its movers cannot be reached");
	retry_worked(t);
	if (t->wait.waited)
		t->started = mono_now(); /* the waiting is no part of the transfer */
	t->report.sample[0].at = mono_now();
	t->report.n_samples = 1;
	show_paths(t, &ev);
	task_emit(t, &ev);
}

static void warn_of_transfers(struct ptcp_task *t, unsigned n)
{
	char text[160];

	if (n == 0)
		return;
	snprintf(text, sizeof text, "%u transfer%s of this user use%s the path: the probes take %s for competing flows "
	    "(measure again at another time)", n, plural(n), singular(n), n == 1 ? "it" : "them");
	task_warn(t, text);
}

static void on_running(void *arg, struct session *sess)
{
	struct ptcp_task *t = arg;
	struct ptcp_err why;

	task_started(t);
	t->report.sent_before.n += t->report.sent.n;
	t->report.sent_before.bytes += t->report.sent.bytes;
	t->report.sent = t->report.same = (struct report_files){ 0, 0 };
	if (t->prober != NULL) {
		warn_of_transfers(t, task_join_group(t));
		task_recall_advice(t);
		t->prober->ops->running(t->prober, sess);
		return;
	}
	timer_set(t->timer, mono_add_ns(mono_now(), PROGRESS_NS));
	task_adapt_streams(t, sess);
	deadline_start(t);
	if (t->files.added)
		return;
	if (!t->files.sends && t->files.selection != NULL)
		session_select(sess, t->files.selection);
	if ((t->files.sends ? add_sources(t, sess, &why) : add_target(t, sess, &why)) < 0)
		engine_fail(session_engine(sess), &why);
}

/* ---- The end ---- */

bool task_failed(struct ptcp_err *out, const struct ptcp_progress *g, const struct ptcp_err *why)
{
	if (why != NULL) {
		*out = *why;
		return true;
	}
	if (g->failed == 0)
		return false;
	/* Without any success it is a failure, not a partial success. */
	err_set(out, g->files > 0 || g->file_bytes > 0 || g->others > 0 ? PTCP_EPARTIAL : PTCP_EIO,
	    "transfer: %llu %s failed, the remaining files are complete (see above; fix the cause and run the same command "
	    "again)",
	    (unsigned long long)g->failed, g->failed == 1 ? "file" : "files");
	if (out->code == PTCP_EIO)
		err_set(out, PTCP_EIO, "transfer: all sources failed (see above)");
	return true;
}

void task_outcome(struct ptcp_task *t, const struct ptcp_err *why)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS };
	struct ptcp_err outcome;
	bool failed;

	measure(t, &ev);
	if (t->report.announced)
		task_emit(t, &ev);
	failed = task_failed(&outcome, &t->report.last, why);
	if (!failed && t->files.output != NULL && t->report.last.files == 0)
		failed = err_set(&outcome, PTCP_EIO, "transfer: the source has no file, nothing was written (name one file)") < 0;
	if (why == NULL && failed && outcome.code == PTCP_EIO && t->report.refused > 0 &&
	    t->report.refused == t->report.last.failed)
		err_set(&outcome, PTCP_EREFUSED, "transfer: all sources were refused (see above)");
	if (why == NULL && failed && outcome.code != PTCP_EPARTIAL && t->report.failures == 1)
		err_set(&outcome, outcome.code, "%s", t->report.first.msg); /* already shown: no second line about it */
	if (why == NULL && t->files.expected.digest != 0 && t->report.failures == 1) {
		outcome = t->report.first; /* the only file, which the destination may have had already */
		failed = true;
	}
	if (failed && why == NULL) {
		outcome.sys = t->report.first.sys;
		outcome.from_peer = t->report.first.from_peer;
	}
	if (!failed && t->report.vanished > 0)
		failed = err_set(&outcome, PTCP_EVANISHED, "transfer: %llu file%s vanished, the remaining files are complete (run the "
		    "same command again)", (unsigned long long)t->report.vanished, t->report.vanished == 1 ? "" : "s") < 0;
	task_finish(t, failed ? &outcome : NULL);
}

/* The log tells what was decided, and by which numbers. */
static void add_spared(struct ptcp_task *t, const struct session *sess)
{
	static const char *const delta[] = { [PTCP_DELTA_AUTO] = "auto", [PTCP_DELTA_ON] = "on", [PTCP_DELTA_OFF] = "off" };
	const struct ptcp_progress g = session_progress(sess);
	const struct session_spared s = session_spared(sess);

	log_at(&t->context.log, LOG_INFO, "bytes",
	    "bytes=%llu wire=%llu equal=%llu saved=%llu delta=%s compared=%llu level=%d",
	    (unsigned long long)g.bytes, (unsigned long long)g.wire_bytes, (unsigned long long)g.resumed_bytes,
	    (unsigned long long)g.saved_bytes, delta[t->o.wire.delta], (unsigned long long)s.compared_bytes,
	    s.compress_level);
	t->report.spared.compared_bytes += s.compared_bytes;
	t->report.spared.compress_level = s.compress_level;
}

static void on_gone(void *arg, struct session *sess, const struct ptcp_err *why)
{
	struct ptcp_task *t = arg;
	struct ptcp_err named;

	if (session_stream_control(sess) != NULL) {
		t->history.control = *session_stream_control(sess);
		task_remember(t);
	}
	task_leave_group(t);
	if (t->prober != NULL && why == NULL)
		task_remember_advice(t);
	if (why != NULL && engine_ended_by_peer(session_engine(sess))) { /* the server does not know its name */
		named = *why;
		err_while(&named, named.code, "%s", t->known_as);
		why = &named;
	}
	t->avoids_movers |= session_lacks_movers(sess);
	t->wait.unanswered = engine_unanswered(session_engine(sess));
	session_spent(sess, &t->report.spent);
	add_spared(t, sess);
	task_outcome(t, why);
	if (t->prober != NULL)
		prober_gone(t->prober);
	session_free(sess); /* frees `why` */
	t->session = NULL;
	t->retry.wire_bytes = t->report.last.wire_bytes;
	t->retry.saved_bytes = t->report.last.saved_bytes;
	t->retry.copied_bytes = t->report.copied_bytes;
}

const struct session_ops task_session_ops = {
	.waiting = on_waiting, .running = on_running, .file = on_file, .warning = on_warning, .leftovers = on_leftovers,
	.streams = on_streams, .congestion = on_congestion,
	.path_failed = on_path_failed, .reconnecting = on_reconnecting, .paths = on_paths, .check = task_trust, .gone = on_gone
};

/* ---- Results ---- */

/* The alternative to the budget, if the budget limited the answer, and not the search for other flows. */
static void fill_fastest(struct ptcp_result *r, const struct stream_control *m)
{
	struct advice_point p;
	unsigned n = advice_fastest(&m->advice, m->o.max_streams, &p);

	if (n <= m->answer || p.impact_ratio <= m->o.budget_ratio || stream_path_tries_one(m))
		return;
	r->budget_percent = m->o.budget_ratio * 100;
	r->fastest_streams = n;
	r->fastest_bps = p.throughput_bps;
	r->fastest_impact_percent = p.impact_ratio * 100;
}

static void fill_same(struct ptcp_result *r, const struct task_report *n, bool unknown)
{
	r->same_files = unknown ? UINT64_MAX : without(n->same.n, n->sent_before.n);
	r->same_bytes = unknown ? UINT64_MAX : without(n->same.bytes, n->sent_before.bytes);
}

/* What the budget cost is a part of the time for which the path was the limit. */
static void fill_spent(struct ptcp_result *r, const struct spent *t)
{
	double cost = r->fastest_streams > 0 && r->fastest_bps > r->predicted_bps ?
	    1 - r->predicted_bps / r->fastest_bps : 0;

	memcpy(r->spent_s, t->s, sizeof r->spent_s);
	r->spent_s[PTCP_SPENT_IMPACT] = cost * t->s[PTCP_SPENT_PATH];
	r->spent_s[PTCP_SPENT_PATH] -= r->spent_s[PTCP_SPENT_IMPACT];
}

void ptcp_transfer_result(const struct ptcp_task *t, struct ptcp_result *r)
{
	struct ptcp_result all = {
		.progress = t->report.last, .warnings = t->report.warnings, .seconds = t->seconds,
		.deleted = t->report.deleted, .vanished = t->report.vanished,
		.copied_bytes = t->files.sends && t->job_ops == NULL ? t->report.copied_bytes : UINT64_MAX,
		.probed_s = t->history.control.probed_s,
		.compared_bytes = t->job_ops == NULL ? t->report.spared.compared_bytes : UINT64_MAX,
		.compress_level = t->job_ops == NULL ? t->report.spared.compress_level : -1,
		.predicted_bps = NAN, .predicted_impact_percent = NAN, .measured_bps = NAN
	};
	const struct stream_control *m = &t->history.control;

	if (m->answer > 0 && m->advised) {
		all.advised_streams = m->answer;
		all.predicted_bps = m->predicted_bps;
		all.predicted_impact_percent = m->predicted_impact_ratio * 100;
		if (m->observed_bps > 0)
			all.measured_bps = m->observed_bps;
		all.from_history = m->recalled;
		fill_fastest(&all, m);
	}
	deadline_result(t, &all.deadline);
	fill_same(&all, &t->report, t->job_ops != NULL && !t->o.file_events);
	fill_spent(&all, &t->report.spent);
	results_copy(r, &all, sizeof all);
}

void ptcp_result_init(struct ptcp_result *r)
{
	*r = (struct ptcp_result){ .size = sizeof *r };
}
