/* A client's handle: options, attempts, run, result. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_impl.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "core/text.h"
#include "net/trust.h"

#define PATHS_USUAL 2

/* ---- Options ---- */

void ptcp_transfer_opts_init(struct ptcp_transfer_opts *o)
{
	*o = (struct ptcp_transfer_opts){
		.size = sizeof *o, .cipher = PTCP_CIPHER_AES128GCM, .preserve_times = true,
		.preserve_mode = true, .preserve_links = true, .timeout_s = 30,
		.log_level = PTCP_LOG_WARN, .impact_percent = 10, .max_streams = 32
	};
}

char **client_copy_list(const char *const *in, size_t n)
{
	char **out = calloc(n + 1, sizeof *out);
	size_t i;

	for (i = 0; out != NULL && i < n; i++)
		if ((out[i] = strdup(in[i])) == NULL) {
			while (i > 0)
				free(out[--i]);
			free(out);
			out = NULL;
		}
	return out;
}

static void free_list(char **list, size_t n)
{
	while (list != NULL && n > 0)
		free(list[--n]);
	free(list);
}

static int check_relays(const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	if (o->n_candidates == 0)
		return o->n_selected == 0 ? 0 : err_set(e, PTCP_EUSAGE, "--paths: only with --relays (name some)");
	if (o->n_paths > 0)
		return err_set(e, PTCP_EUSAGE, "--relays: not with --via (write direct among the relays for the direct path)");
	if (o->n_candidates > PTCP_PATHS_MAX)
		return err_set(e, PTCP_EUSAGE, "--relays: more than %d (leave some out)", PTCP_PATHS_MAX);
	if (o->n_selected > o->n_candidates)
		return err_set(e, PTCP_EUSAGE, "--paths %u: only %zu relays are named (name more, or take fewer)", o->n_selected,
		    o->n_candidates);
	return 0;
}

/* An older caller's options are a prefix of ours. */
static int take_opts(struct ptcp_transfer *t, const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	ptcp_transfer_opts_init(&t->o);
	if (o != NULL) {
		if (o->size == 0 || o->size > sizeof t->o)
			return err_set(e, PTCP_EUSAGE, "options that ptcp_transfer_opts_init() has not filled in");
		memcpy(&t->o, o, o->size);
	}
	if (t->o.streams > PTCP_STREAMS_MAX || (unsigned)t->o.cipher >= PTCP_CIPHERS ||
	    (unsigned)t->o.fsync > PTCP_FSYNC_FILE ||
	    !(t->o.timeout_s >= 0.5 && t->o.timeout_s <= 86400) ||
	    t->o.remote_port > 65535 || (t->o.family != 0 && t->o.family != 4 && t->o.family != 6))
		return err_set(e, PTCP_EUSAGE, "streams over %d, or a cipher, timeout (0.5s to 24h), port, "
		    "address family or sync mode out of range", PTCP_STREAMS_MAX);
	if (pacing_parse(&t->rate, t->o.rate, e) < 0)
		return PTCP_EUSAGE;
	if (!(t->o.impact_percent >= 0 && t->o.impact_percent <= 100) || t->o.max_streams < 1 ||
	    t->o.max_streams > PTCP_STREAMS_MAX)
		return err_set(e, PTCP_EUSAGE, "an impact budget out of range (0 to 100 %%), or of a maximum of streams "
		    "(1 to %d)", PTCP_STREAMS_MAX);
	if (check_relays(&t->o, e) < 0)
		return PTCP_EUSAGE;
	if (t->o.n_candidates > 0) { /* candidates: paths of one relay each */
		t->o.paths = t->o.candidates;
		t->o.n_paths = t->o.n_candidates;
	}
	t->n_pins = t->o.n_fingerprints;
	if ((t->pins = client_copy_list(t->o.fingerprints, t->n_pins)) == NULL ||
	    (t->path_names = client_copy_list(t->o.paths, t->o.n_paths)) == NULL ||
	    (t->o.config_dir != NULL && (t->config_dir = strdup(t->o.config_dir)) == NULL) ||
	    (t->o.state_dir != NULL && (t->state_dir = strdup(t->o.state_dir)) == NULL) ||
	    (t->o.congestion != NULL && (t->congestion = strdup(t->o.congestion)) == NULL) ||
	    (t->o.ssh != NULL && (t->ssh = strdup(t->o.ssh)) == NULL) ||
	    (t->o.launch != NULL && (t->launch = strdup(t->o.launch)) == NULL) ||
	    (t->o.remote_ptcp != NULL && (t->remote_ptcp = strdup(t->o.remote_ptcp)) == NULL))
		return err_nomem(e);
	return 0;
}

static int check_shares(const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	size_t i;

	for (i = 0; o->path_shares != NULL && i < o->n_paths; i++)
		if (!(o->path_shares[i] >= 0 && o->path_shares[i] <= DBL_MAX))
			return err_set(e, PTCP_EUSAGE, "the share of path %zu: %g (must be 0 or more)", i,
			    o->path_shares[i]);
	for (i = 0; o->relay_spool_bytes != NULL && i < o->n_paths; i++)
		if (o->relay_spool_bytes[i] > 0 && o->cipher == PTCP_CIPHER_NONE)
			return err_set(e, PTCP_EUSAGE, "--cipher none: relays would store the data in plaintext (choose another "
			    "cipher, or no spooling)");
	return 0;
}

static int check_pins(struct ptcp_transfer *t, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	const char *eq;
	size_t i;

	for (i = 0; i < t->n_pins; i++) {
		eq = strrchr(t->pins[i], '=');
		if (!identity_fingerprint_ok(eq != NULL ? eq + 1 : t->pins[i]))
			return err_set(e, PTCP_EUSAGE, "--fingerprint %s: not SHA256:.. or HOST[:PORT]=SHA256:.. (ptcp key show prints it there)",
			    text_escape(shown, sizeof shown, t->pins[i]));
	}
	return 0;
}

void client_fini(struct ptcp_transfer *t)
{
	if (t->prober != NULL)
		t->prober->ops->free(t->prober);
	if (t->third != NULL)
		t->remote->free(t->third);
	loop_free(t->loop);
	free_list(t->local, t->n_local);
	free_list(t->pins, t->n_pins);
	free_list(t->path_names, t->o.n_paths);
	paths_fini(&t->ways);
	free(t->config_dir);
	free(t->state_dir);
	free(t->congestion);
	free(t->ssh);
	free(t->remote_ptcp);
	free(t->launch);
	filter_free(t->filter);
	free(t->paths);
	free(t);
}

int client_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	struct ptcp_transfer *t = calloc(1, sizeof *t);
	int r;

	if (t == NULL)
		return err_nomem(e);
	atomic_init(&t->cancelled, false);
	atomic_init(&t->paced, false);
	if ((r = loop_new(&t->loop, e)) < 0 || (r = take_opts(t, o, e)) < 0 || (r = check_pins(t, e)) < 0 ||
	    (r = check_shares(&t->o, e)) < 0) {
		client_fini(t);
		return r;
	}
	*out = t;
	return 0;
}

static int choose(struct ptcp_transfer *t, struct ptcp_err *e)
{
	unsigned usual = t->ways.n < PATHS_USUAL ? t->ways.n : PATHS_USUAL;
	uint8_t seed[8];
	int r;

	if ((r = tls_random(seed, sizeof seed, e)) == 0)
		paths_choose(&t->ways, t->o.n_selected > 0 ? t->o.n_selected : usual, get_u64(seed));
	return r;
}

int client_name_target(struct ptcp_transfer *t, struct ptcp_err *e)
{
	int r;

	if (t->launch != NULL && (t->target.ssh || t->third != NULL || t->prober != NULL))
		return err_set(e, PTCP_EUSAGE, "launch: only of a transfer with one ptcp://HOST/PATH");
	remote_name(&t->target, t->known_as, sizeof t->known_as);
	if ((r = paths_parse(&t->ways, (const char *const *)t->path_names, t->o.n_paths, &t->target, e)) < 0)
		return r;
	if (t->o.n_candidates > 0)
		return choose(t, e);
	if (t->o.n_paths > 0)
		paths_deal(&t->ways, t->o.path_shares);
	paths_hold(&t->ways, t->o.n_paths > 0 ? t->o.relay_spool_bytes : NULL);
	t->o.path_shares = NULL; /* the caller's */
	t->o.relay_spool_bytes = NULL;
	return 0;
}

/* ---- Running ---- */

static void set_canceled(const struct ptcp_transfer *t, struct ptcp_err *out)
{
	err_set(out, PTCP_ECANCELED, t->prober != NULL ? "measurement: interrupted (run it again)" :
	    t->n_paths == 0 ? "query: interrupted (run it again)" :
	    "transfer: interrupted (run the same command again to resume it)");
}

static void check_cancelled(struct ptcp_transfer *t)
{
	struct ptcp_err why;

	if (!atomic_load(&t->cancelled) || t->over)
		return;
	set_canceled(t, &why);
	if (t->session != NULL)
		session_cancel(t->session, &why);
	else
		client_finish(t, &why);
}

void client_pace(struct ptcp_transfer *t)
{
	unsigned i;

	if (t->session == NULL || !atomic_exchange(&t->paced, false))
		return;
	for (i = 0; i < t->ways.n; i++)
		session_set_path_rate(t->session, i, atomic_load(&t->path_bps[i]));
}

static void on_wake(void *arg)
{
	check_cancelled(arg);
	client_pace(arg);
}

void client_finish(struct ptcp_transfer *t, const struct ptcp_err *why)
{
	struct ptcp_err canceled;

	if (t->over)
		return;
	t->over = true;
	if (why != NULL && atomic_load(&t->cancelled)) { /* ^C on a terminal ends ssh, too, whose end may arrive first */
		set_canceled(t, &canceled);
		why = &canceled;
	}
	if (why != NULL) {
		t->why = t->third != NULL ? *t->remote->cause(t, why) : *why;
		t->result = t->why.code;
	}
	loop_stop(t->loop);
}

/* ---- An attempt: until the end, or until the user is asked about an unknown host ---- */

static void attempt_end(struct ptcp_transfer *t)
{
	client_disconnect(t);
	context_fini(&t->host);
	t->running = false;
}

static int attempt_begin(struct ptcp_transfer *t, struct ptcp_err *e)
{
	unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM |
	    1u << PTCP_CIPHER_CHACHA20;
	int r;

	t->over = t->unknown = false;
	t->n_trusted = t->n_tried = 0;
	memset(t->figures, 0, sizeof t->figures);
	memset(t->sample, 0, sizeof t->sample);
	t->result = 0;
	t->started = mono_now();
	context_log(&t->host, t->o.log, t->o.arg, t->o.log_level);
	if ((r = context_init(&t->host, t->loop, t->config_dir, client_max_streams(t), ciphers, t->target.ssh ? ciphers : 0,
	    e)) < 0)
		return r;
	t->running = true;
	loop_reset(t->loop);
	loop_on_wake(t->loop, on_wake, t);
	if ((r = pacing_start(&t->host.pacing, &t->rate, t->loop, e)) < 0 || (r = client_connect(t, e)) < 0) {
		attempt_end(t);
		return r;
	}
	check_cancelled(t);
	return 0;
}

/* After a turn of the loop: 1: it goes on; else the transfer's result. */
static int settle(struct ptcp_transfer *t, struct ptcp_err *e)
{
	struct ptcp_err scratch;
	int r = t->result;

	if (!t->over)
		return 1;
	attempt_end(t);
	t->seconds = (double)mono_diff_ns(mono_now(), t->started) / 1e9;
	if (e == NULL)
		e = &scratch;
	if (r < 0)
		*e = t->why;
	if (!t->unknown || t->o.trust == NULL || !t->o.trust(t->o.arg, t->asked_name, t->asked_fingerprint))
		return r;
	if ((r = known_hosts_add(t->host.config_dir, t->asked_name, t->asked_fingerprint, e)) < 0 ||
	    (r = attempt_begin(t, e)) < 0)
		return r;
	return 1;
}

int ptcp_transfer_start(struct ptcp_transfer *t, struct ptcp_err *e)
{
	struct ptcp_err scratch;

	if (t->ran)
		return err_set(e, PTCP_EUSAGE, "a transfer runs once");
	t->ran = true;
	return attempt_begin(t, e != NULL ? e : &scratch);
}

int ptcp_transfer_fd(const struct ptcp_transfer *t) { return loop_fd(t->loop); }

int ptcp_transfer_timeout_ms(const struct ptcp_transfer *t)
{
	return t->over || !t->running ? 0 : loop_timeout_ms(t->loop);
}

int ptcp_transfer_step(struct ptcp_transfer *t, struct ptcp_err *e)
{
	if (!t->running)
		return err_set(e, PTCP_EUSAGE, "the transfer does not run");
	loop_run_once(t->loop, false);
	return settle(t, e);
}

int ptcp_transfer_run(struct ptcp_transfer *t, struct ptcp_err *e)
{
	int r;

	if ((r = ptcp_transfer_start(t, e)) < 0)
		return r;
	do
		loop_run_once(t->loop, true);
	while ((r = settle(t, e)) > 0);
	return r;
}

void ptcp_transfer_free(struct ptcp_transfer *t)
{
	if (t == NULL)
		return;
	if (t->running) {
		ptcp_transfer_cancel(t);
		while (!t->over)
			loop_run_once(t->loop, true);
		attempt_end(t);
	}
	client_fini(t);
}

void ptcp_transfer_cancel(struct ptcp_transfer *t)
{
	atomic_store(&t->cancelled, true);
	loop_wake(t->loop);
}

int ptcp_transfer_set_path_rate(struct ptcp_transfer *t, size_t path, uint64_t bps, struct ptcp_err *e)
{
	if (t->prober != NULL || t->third != NULL || t->ways.n == 0)
		return err_set(e, PTCP_EUSAGE, "path rates: only of transfers from or to this host");
	if (path >= t->ways.n)
		return err_set(e, PTCP_EUSAGE, "the rate of path %zu: there are %u paths, counted from 0", path, t->ways.n);
	if (bps > 0 && bps < TIMETABLE_MIN_BPS)
		return err_set(e, PTCP_EUSAGE, "the rate of a path: below %d bit/s (PTCP_PATH_IDLE stops a path)",
		    TIMETABLE_MIN_BPS);
	atomic_store(&t->path_bps[path], bps);
	atomic_store(&t->paced, true);
	loop_wake(t->loop);
	return 0;
}

void ptcp_transfer_result(const struct ptcp_transfer *t, struct ptcp_result *r)
{
	struct ptcp_result all = {
		.size = r->size < sizeof all ? r->size : sizeof all, .progress = t->last,
		.warnings = t->warnings, .seconds = t->seconds,
		.predicted_bps = NAN, .predicted_impact_percent = NAN, .measured_bps = NAN
	};
	const struct stream_control *m = &t->control;

	if (m->answer > 0 && m->advised) {
		all.advised_streams = m->answer;
		all.predicted_bps = m->predicted_bps;
		all.predicted_impact_percent = m->predicted_impact_ratio * 100;
		if (m->observed_bps > 0)
			all.measured_bps = m->observed_bps;
		all.from_history = m->recalled;
	}

	memcpy(r, &all, all.size);
}

void ptcp_result_init(struct ptcp_result *r)
{
	*r = (struct ptcp_result){ .size = sizeof *r };
}
