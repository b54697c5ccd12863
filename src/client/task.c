/* A task: options, attempts, run, result. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/task_impl.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "mover/movers.h"
#include "net/child.h"
#include "net/trust/known_hosts.h"
#include "store/attr_map.h"

#define PATHS_USUAL 2

/* ---- Options ---- */

static int check_relays(const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	if (o->n_candidates == 0)
		return o->path.n_selected == 0 ? 0 : err_set(e, PTCP_EUSAGE, "--paths: only with --relays (name some)");
	if (o->n_paths > 0)
		return err_set(e, PTCP_EUSAGE,
		    "--relays: not with --via (write direct among the relays for the direct path)");
	if (o->n_candidates > PTCP_PATHS_MAX)
		return err_set(e, PTCP_EUSAGE, "--relays: more than %d (leave some out)", PTCP_PATHS_MAX);
	if (o->path.n_selected > o->n_candidates)
		return err_set(e, PTCP_EUSAGE, "--paths %u: only %zu relays are named (name more, or take fewer)",
		    o->path.n_selected, o->n_candidates);
	return 0;
}

static int check_opts(const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	if (options_check(o, e) < 0)
		return PTCP_EUSAGE;
	if (o->streams == 0 && o->impact_percent <= 0 && o->congestion != NULL && strcmp(o->congestion, "auto") != 0)
		return err_set(e, PTCP_EUSAGE,
		    "--congestion %s: not with --impact 0, which paces the stream itself (leave it out)",
		    o->congestion);
	if (o->checksum && (o->no_verify || o->ignore_times || o->size_only))
		return err_set(e, PTCP_EUSAGE, "--checksum: not with %s (leave one out)", o->no_verify ? "--no-verify" :
		    o->ignore_times ? "--ignore-times" : "--size-only");
	if (o->remove_sources && (o->no_verify || o->fsync == PTCP_FSYNC_NONE))
		return err_set(e, PTCP_EUSAGE, "--remove-source-files: not with %s (leave one out)",
		    o->no_verify ? "--no-verify" : "--fsync none");
	return check_relays(o, e);
}

/* An older caller's options are a prefix of ours. */
static int take_opts(struct ptcp_task *t, const struct ptcp_transfer_opts *from, struct ptcp_err *e)
{
	struct ptcp_transfer_opts o;
	int r;

	ptcp_transfer_opts_init(&o);
	if (opts_copy(&o, sizeof o, from, "ptcp_transfer_opts_init", e) < 0)
		return PTCP_EUSAGE;
	if (check_opts(&o, e) < 0 || pacing_parse(&t->rate, o.rate, e) < 0)
		return PTCP_EUSAGE;
	if (o.n_candidates > 0) { /* candidates: paths of one relay each */
		o.paths = o.candidates;
		o.n_paths = o.n_candidates;
	}
	r = options_copy(&o, e);
	t->o = o;
	return r;
}

static int check_shares(const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	size_t i;

	for (i = 0; o->path.shares != NULL && i < o->n_paths; i++)
		if (!(o->path.shares[i] >= 0 && o->path.shares[i] <= DBL_MAX))
			return err_set(e, PTCP_EUSAGE, "the share of path %zu: %g (must be 0 or more)", i,
			    o->path.shares[i]);
	for (i = 0; o->path.spool_bytes != NULL && i < o->n_paths; i++)
		if (o->path.spool_bytes[i] > 0 && o->cipher == PTCP_CIPHER_NONE)
			return err_set(e, PTCP_EUSAGE, "--cipher none: relays would store the data in plaintext "
			    "(choose another cipher, or no spooling)");
	return 0;
}

static int check_pins(struct ptcp_task *t, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	const char *eq;
	size_t i;

	for (i = 0; i < t->o.n_fingerprints; i++) {
		eq = strrchr(t->o.fingerprints[i], '=');
		if (!identity_fingerprint_ok(eq != NULL ? eq + 1 : t->o.fingerprints[i]))
			return err_set(e, PTCP_EUSAGE, "--fingerprint %s: not SHA256:.. or HOST[:PORT]=SHA256:.. "
			    "(ptcp key show prints the fingerprint on the server)",
			    text_escape(shown, sizeof shown, t->o.fingerprints[i]));
	}
	return 0;
}

/* Frees a task that does not run. */
static void task_fini(struct ptcp_task *t)
{
	if (t->prober != NULL)
		t->prober->ops->free(t->prober);
	if (t->remote_job != NULL)
		t->job_ops->free(t->remote_job);
	movers_free(t->movers);
	timer_free(t->stop.timer);
	loop_free(t->loop);
	task_free_list(t->files.local, t->files.n_local);
	options_free(&t->o);
	paths_fini(&t->paths);
	pipe_source_free(t->files.input);
	pipe_sink_free(t->files.output);
	published_fini(&t->files.published);
	filter_free(t->files.filter);
	attr_map_free(t->files.map);
	selection_free(t->files.selection);
	free(t->files.open_paths);
	pthread_mutex_destroy(&t->new_rate.lock);
	free(t);
}

int task_made(struct ptcp_task **out, struct ptcp_task *t, int r)
{
	if (r < 0)
		task_fini(t);
	else
		*out = t;
	return r;
}

int task_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	struct ptcp_task *t = calloc(1, sizeof *t);
	int r;

	if (t == NULL)
		return err_nomem(e);
	atomic_init(&t->canceled, false);
	atomic_init(&t->path_rates.changed, false);
	pthread_mutex_init(&t->new_rate.lock, NULL);
	if ((r = context_check_fds(0, e)) == 0 && (r = loop_new(&t->loop, e)) == 0 && (r = take_opts(t, o, e)) == 0 &&
	    (r = check_pins(t, e)) == 0)
		r = check_shares(&t->o, e);
	atomic_init(&t->new_impact.percent, t->o.impact_percent);
	return task_made(out, t, r);
}

static int choose(struct ptcp_task *t, struct ptcp_err *e)
{
	unsigned usual = t->paths.n < PATHS_USUAL ? t->paths.n : PATHS_USUAL;
	uint8_t seed[8];
	int r;

	if ((r = tls_random(seed, sizeof seed, e)) == 0)
		r = paths_choose(&t->paths, t->o.path.n_selected > 0 ? t->o.path.n_selected : usual,
		    t->o.path.candidate_bps,
		    get_u64(seed), e);
	t->o.path.candidate_bps = NULL; /* the caller's */
	return r;
}

int task_add_path(struct ptcp_task *t, uint8_t flags, const char *path, struct ptcp_err *e)
{
	struct span s = { (const uint8_t *)path, strlen(path) };
	uint8_t *p;

	if (s.n > WIRE_PATH_MAX || t->files.n_open_paths == WIRE_PATHS_MAX ||
	    t->files.open_paths_bytes + s.n + 3 > WIRE_CONTROL_MAX - 64)
		return err_set(e, PTCP_EUSAGE, "too many or too long remote paths for one transfer (name "
		    "their directory)");
	if ((p = realloc(t->files.open_paths, t->files.open_paths_bytes + s.n + 3)) == NULL)
		return err_nomem(e);
	t->files.open_paths = p;
	t->files.open_paths_bytes += wire_path_encode(p + t->files.open_paths_bytes, flags, s);
	t->files.n_open_paths++;
	return 0;
}

int task_name_target(struct ptcp_task *t, struct ptcp_err *e)
{
	int r;

	if (t->o.remote.launch != NULL && (t->target.ssh || t->remote_job != NULL || t->prober != NULL))
		return err_set(e, PTCP_EUSAGE, "launch: only for a transfer with one ptcp://HOST/PATH");
	if (t->target.ssh && t->o.n_paths > 0 && (t->remote_job != NULL || t->prober != NULL))
		return err_set(e, PTCP_EUSAGE, "--via: through ssh for transfers only (run ptcp serve there and write "
		    "ptcp://HOST/PATH)");
	remote_name(&t->target, t->known_as, sizeof t->known_as);
	if ((r = paths_parse(&t->paths, t->o.paths, t->o.n_paths, &t->target, e)) < 0)
		return r;
	if (t->o.n_candidates > 0)
		return choose(t, e);
	if (t->o.n_paths > 0)
		paths_deal(&t->paths, t->o.path.shares);
	paths_spool(&t->paths, t->o.n_paths > 0 ? t->o.path.spool_bytes : NULL);
	t->o.path.shares = NULL; /* the caller's */
	t->o.path.spool_bytes = NULL;
	return 0;
}

/* ---- Running ---- */

static void set_canceled(const struct ptcp_task *t, struct ptcp_err *out)
{
	if (t->stop.why.code != 0) {
		*out = t->stop.why;
		return;
	}
	err_set(out, PTCP_ECANCELED, t->prober != NULL ? "measurement: interrupted (run the same command again)" :
	    t->files.input != NULL ? "transfer: interrupted, the file is not complete (run the whole pipeline again)" :
	    t->files.output != NULL ?
	    "transfer: interrupted, the output is not complete (run the whole pipeline again)" :
	    t->files.n_open_paths == 0 ? "query: interrupted (run the same command again)" :
	    "transfer: interrupted (run the same command again to resume it)");
}

static void check_canceled(struct ptcp_task *t)
{
	struct ptcp_err why;

	if (!atomic_load(&t->canceled) || t->over)
		return;
	set_canceled(t, &why);
	if (t->session == NULL) {
		task_finish(t, &why);
		return;
	}
	why.code = PTCP_ECANCELED; /* for the peer */
	session_cancel(t->session, &why);
}

static void on_wake(void *arg)
{
	check_canceled(arg);
	task_pace(arg);
}

void task_finish(struct ptcp_task *t, const struct ptcp_err *why)
{
	struct ptcp_err canceled;

	if (t->over || (t->wait.pausing && !atomic_load(&t->canceled)))
		return;
	if (why != NULL && wait_after(t, why))
		return;
	t->over = true;
	if (why != NULL && atomic_load(&t->canceled)) { /* ^C on a terminal ends ssh, too, whose end may arrive first */
		set_canceled(t, &canceled);
		why = &canceled;
	}
	if (why != NULL) {
		t->why = t->remote_job != NULL ? *t->job_ops->cause(t, why) : *why;
		t->result = t->why.code;
	}
	loop_stop(t->loop);
}

/* ---- An attempt: until the end, or until the user is asked about an unknown host ---- */

static void attempt_end(struct ptcp_task *t)
{
	task_disconnect(t);
	context_fini(&t->context);
	t->running = false;
}

/* An ephemeral server is told the key of its client: where none can be kept, as in a home that cannot be written, one
 * of its own serves the transfer. */
static int make_identity(struct ptcp_task *t, struct ptcp_err *e)
{
	int r;

	if (!t->target.ssh || (r = identity_load(&t->context.identity, t->o.config_dir, false, e)) == 0)
		return 0;
	return e->sys == EACCES || e->sys == EROFS || e->sys == ENOENT || e->sys == ENOTDIR ?
	    identity_new(&t->context.identity, e) : r;
}

static int attempt_begin(struct ptcp_task *t, struct ptcp_err *e)
{
	unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM |
	    1u << PTCP_CIPHER_CHACHA20;
	int r;

	t->over = t->trust.unknown = false;
	t->trust.n_accepted = 0;
	t->result = 0;
	if (!t->retry.worked)
		t->started = mono_now();
	wait_begin(t);
	context_log(&t->context, t->o.log, t->o.arg, t->o.log_level);
	if ((r = make_identity(t, e)) < 0 || (r = context_init(&t->context, t->loop, t->o.config_dir,
	    task_max_streams(t), ciphers, t->target.ssh ? ciphers : 0, e)) < 0)
		return r;
	t->running = true;
	loop_reset(t->loop);
	loop_on_wake(t->loop, on_wake, t);
	task_take_rate(t);
	if ((r = pacing_set(&t->context.pacing, &t->rate, t->loop, e)) < 0 || (r = task_connect(t, e)) < 0) {
		attempt_end(t);
		return r;
	}
	check_canceled(t);
	return 0;
}

/* After the end of an attempt or of a pause: whether another one has begun. */
static bool goes_on(struct ptcp_task *t)
{
	int r = t->result;

	if (t->retry.timer != NULL) { /* a pause has ended, or was canceled */
		retry_pause_end(t);
		if (r == 0 && (r = attempt_begin(t, &t->why)) == 0)
			return true;
		t->result = r;
	} else {
		attempt_end(t);
	}
	t->running = retry_is_due(t) && retry_pause(t, &t->why) == 0;
	if (t->running)
		return true;
	retry_give_up(t);
	t->seconds = (double)mono_diff_ns(mono_now(), t->started) / 1e9;
	return false;
}

/* After a turn of the loop: 1: it goes on; else the task's result. Programs that do not end at once have their time
 * here, not in ptcp_task_free(): who runs many tasks waits for all of them at the same time. */
static int settle(struct ptcp_task *t, struct ptcp_err *e)
{
	struct ptcp_err scratch;
	int r;

	if (!t->over || (!t->ending && goes_on(t)))
		return 1;
	t->running = t->ending = children_end(t->loop);
	if (t->ending)
		return 1;
	r = t->result;
	if (e == NULL)
		e = &scratch;
	if (r < 0) {
		*e = t->why;
		e->sys = err_cause(e);
	}
	if (!t->trust.unknown || t->o.trust == NULL || !t->o.trust(t->o.arg, t->trust.name, t->trust.fingerprint))
		return r;
	if ((r = known_hosts_add(t->context.config_dir, t->trust.name, t->trust.fingerprint, e)) < 0 ||
	    (r = attempt_begin(t, e)) < 0)
		return r;
	return 1;
}

int ptcp_task_start(struct ptcp_task *t, struct ptcp_err *e)
{
	struct ptcp_err scratch;
	int r;

	if (t->ran)
		return err_set(e, PTCP_EUSAGE, "a task runs once");
	t->ran = true;
	if (e == NULL)
		e = &scratch;
	context_log(&t->context, t->o.log, t->o.arg, t->o.log_level);
	return (r = stop_begin(t, e)) < 0 || (r = striping_begin(t, e)) < 0 ? r : attempt_begin(t, e);
}

int ptcp_task_fd(const struct ptcp_task *t) { return loop_fd(t->loop); }

int ptcp_task_timeout_ms(const struct ptcp_task *t)
{
	return (t->over && !t->ending) || !t->running ? 0 : loop_timeout_ms(t->loop);
}

int ptcp_task_step(struct ptcp_task *t, struct ptcp_err *e)
{
	if (!t->running)
		return err_set(e, PTCP_EUSAGE, "the task does not run");
	loop_run_once(t->loop, false);
	return settle(t, e);
}

int ptcp_task_run(struct ptcp_task *t, struct ptcp_err *e)
{
	int r;

	if ((r = ptcp_task_start(t, e)) < 0)
		return r;
	do
		loop_run_once(t->loop, true);
	while ((r = settle(t, e)) > 0);
	return r;
}

void ptcp_task_free(struct ptcp_task *t)
{
	if (t == NULL)
		return;
	if (t->running && !t->ending) {
		ptcp_task_cancel(t);
		while (!t->over)
			loop_run_once(t->loop, true);
		if (t->retry.timer != NULL) /* the task waits between two attempts */
			retry_pause_end(t);
		else
			attempt_end(t);
	}
	task_fini(t);
}

void ptcp_task_cancel(struct ptcp_task *t)
{
	atomic_store(&t->canceled, true);
	loop_wake(t->loop);
}

/* ---- Changes of a transfer's rate limits, by any thread ---- */

bool task_take_rate(struct ptcp_task *t)
{
	bool changed;

	pthread_mutex_lock(&t->new_rate.lock);
	changed = t->new_rate.changed;
	t->new_rate.changed = false;
	if (changed)
		t->rate = t->new_rate.table;
	pthread_mutex_unlock(&t->new_rate.lock);
	return changed;
}

static void change_rate(struct ptcp_task *t)
{
	struct ptcp_err why;

	if (pacing_set(&t->context.pacing, &t->rate, t->loop, &why) < 0)
		task_warn(t, why.msg);
	else
		session_rate_changed(t->session);
}

void task_pace(struct ptcp_task *t)
{
	unsigned i;

	if (t->session != NULL && task_take_rate(t))
		change_rate(t);
	if (t->session != NULL && atomic_exchange(&t->new_impact.changed, false))
		session_set_budget(t->session, task_impact(t) / 100);
	if (t->session == NULL || !atomic_exchange(&t->path_rates.changed, false))
		return;
	for (i = 0; i < t->paths.n; i++)
		session_set_path_rate(t->session, i, atomic_load(&t->path_rates.bps[i]));
}

int ptcp_transfer_set_path_rate(struct ptcp_task *t, size_t path, uint64_t bps, struct ptcp_err *e)
{
	if (t->prober != NULL || t->remote_job != NULL || t->paths.n == 0)
		return err_set(e, PTCP_EUSAGE, "path rates: only for transfers from or to this host");
	if (path >= t->paths.n)
		return err_set(e, PTCP_EUSAGE, "the rate of path %zu: there are %u paths, counted from 0",
		    path, t->paths.n);
	if (bps > 0 && bps < TIMETABLE_MIN_BPS)
		return err_set(e, PTCP_EUSAGE, "the rate of a path: below %d bit/s (PTCP_PATH_IDLE stops a path)",
		    TIMETABLE_MIN_BPS);
	atomic_store(&t->path_rates.bps[path], bps);
	atomic_store(&t->path_rates.changed, true);
	loop_wake(t->loop);
	return 0;
}

int ptcp_transfer_set_impact(struct ptcp_task *t, double percent, struct ptcp_err *e)
{
	if (t->prober != NULL || t->remote_job != NULL || t->paths.n == 0)
		return err_set(e, PTCP_EUSAGE, "impact: only for transfers from or to this host");
	if (t->o.streams != 0 || t->o.impact_percent <= 0)
		return err_set(e, PTCP_EUSAGE,
		    "impact: the transfer does not choose the number of streams (only without a number "
		    "of streams, and from an impact above 0)");
	if (!(percent > 0 && percent <= 100))
		return err_set(e, PTCP_EUSAGE, "impact: not a percentage above 0 (up to 100)");
	atomic_store(&t->new_impact.percent, percent);
	atomic_store(&t->new_impact.changed, true);
	loop_wake(t->loop);
	return 0;
}

int ptcp_rate_check(const char *rate, struct ptcp_err *e)
{
	struct timetable table;

	return pacing_parse(&table, rate, e);
}

int ptcp_transfer_set_rate(struct ptcp_task *t, const char *rate, struct ptcp_err *e)
{
	struct timetable table;
	int r;

	if (t->prober != NULL || t->remote_job != NULL || t->paths.n == 0)
		return err_set(e, PTCP_EUSAGE, "rate: only for transfers from or to this host");
	if ((r = pacing_parse(&table, rate, e)) < 0)
		return r;
	pthread_mutex_lock(&t->new_rate.lock);
	t->new_rate.table = table;
	t->new_rate.changed = true;
	pthread_mutex_unlock(&t->new_rate.lock);
	loop_wake(t->loop);
	return 0;
}
