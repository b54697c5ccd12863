/* A transfer from the client's side, from its start to its end. */
#include <string.h>

#include "client/client_impl.h"
#include "core/err.h"
#include "net/trust.h"

static void check_cancelled(struct ptcp_transfer *t)
{
	struct ptcp_err why;

	if (!atomic_load(&t->cancelled) || t->over)
		return;
	err_set(&why, PTCP_ECANCELED, t->prober != NULL ? "probing: interrupted (run it again)" :
	    t->n_paths == 0 ? "asking another host: interrupted (run it again)" :
	    "transfer: interrupted (run the same command again: it goes on from here)");
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
	if (t->over)
		return;
	t->over = true;
	if (why != NULL) {
		t->why = *remote_job_cause(t, why);
		t->result = t->why.code;
	}
	loop_stop(t->loop);
}

/* ---- One connection, up to the end of the transfer or to the discovery of an unknown host ---- */

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
	t->n_met = t->n_tried = 0;
	memset(t->figures, 0, sizeof t->figures);
	memset(t->sample, 0, sizeof t->sample);
	t->result = 0;
	t->started = mono_now();
	context_log(&t->host, t->o.log, t->o.arg, t->o.log_level);
	if ((r = context_init(&t->host, t->loop, t->config_dir, client_streams(t), ciphers, t->target.ssh ? ciphers : 0,
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

/* After a turn of the loop: 1 to go on, else what the transfer has come to. */
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

/* ---- Running ---- */

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
		return err_set(e, PTCP_EUSAGE, "a transfer that is not at work");
	loop_turn(t->loop, false);
	return settle(t, e);
}

int ptcp_transfer_run(struct ptcp_transfer *t, struct ptcp_err *e)
{
	int r;

	if ((r = ptcp_transfer_start(t, e)) < 0)
		return r;
	do
		loop_turn(t->loop, true);
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
			loop_turn(t->loop, true);
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
		return err_set(e, PTCP_EUSAGE, "the rate of a path: only of a transfer from or to this host");
	if (path >= t->ways.n)
		return err_set(e, PTCP_EUSAGE, "the rate of path %zu: it has %u (they count from 0)", path, t->ways.n);
	if (bps > 0 && bps < TIMETABLE_MIN_BPS)
		return err_set(e, PTCP_EUSAGE, "the rate of a path: below %d bit/s (PTCP_PATH_IDLE is none at all)",
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
		.warnings = t->warnings, .seconds = t->seconds
	};
	const struct stream_control *m = &t->steered;

	if (m->answer > 0 && m->advised) {
		all.advised_streams = m->answer;
		all.predicted_bps = m->predicted_bps;
		all.predicted_impact_percent = m->predicted_impact_ratio * 100;
		all.measured_bps = m->observed_bps;
		all.from_history = m->recalled;
	}

	memcpy(r, &all, all.size);
}

void ptcp_result_init(struct ptcp_result *r)
{
	*r = (struct ptcp_result){ .size = sizeof *r };
}
