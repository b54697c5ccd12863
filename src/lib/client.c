/* A transfer from the client's side: connects, checks who answers, and lets a party do the work. */
#include <ptcp/ptcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/err.h"
#include "core/filter.h"
#include "core/text.h"
#include "core/units.h"
#include "lib/party.h"
#include "lib/target.h"
#include "net/dial.h"
#include "net/trust.h"
#include "store/place.h"

#define STREAMS_DEFAULT 4
#define PROGRESS_NS (200 * NS_PER_MS)
#define RATE_SAMPLES 16

struct ptcp_transfer {
	struct ptcp_transfer_opts o;
	bool sends, ran;
	char **local, **pins;
	size_t n_local, n_pins;
	struct filter *filter;          /* NULL: no rules */
	char *config_dir, *congestion;
	struct target target;           /* the other side, without paths */
	char known_as[SOCK_HOST_BYTES + 10];
	uint8_t *paths;                 /* encoded, for OPEN */
	size_t paths_bytes;
	uint16_t n_paths;
	/* while it runs */
	struct host host;
	struct loop *loop;              /* as long as the handle, so that cancel finds it */
	atomic_bool cancelled;
	struct dial *dial;
	struct chan *chan;
	struct party *party;
	struct timer *timer;
	struct mono started, deadline;
	bool over, announced;
	int result;
	struct ptcp_err why;
	char peer[SOCK_TEXT_BYTES], fingerprint[PTCP_FINGERPRINT_BYTES];
	bool unknown;                   /* the host is not known: ask, then connect again */
	uint64_t warnings;
	struct { struct mono at; uint64_t bytes; } sample[RATE_SAMPLES];
	unsigned n_samples;
	struct party_progress last;
	double seconds;
};

/* ---- What was asked for ---- */

static char **copy_list(const char *const *in, size_t n)
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

/* Options of a caller built against an older header are a prefix of ours. */
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
	    (t->o.family != 0 && t->o.family != 4 && t->o.family != 6))
		return err_set(e, PTCP_EUSAGE, "streams over %d, or a cipher, timeout (0.5s to 24h), address "
		    "family or way to sync out of range", PTCP_STREAMS_MAX);
	t->n_pins = t->o.n_fingerprints;
	if ((t->pins = copy_list(t->o.fingerprints, t->n_pins)) == NULL ||
	    (t->o.config_dir != NULL && (t->config_dir = strdup(t->o.config_dir)) == NULL) ||
	    (t->o.congestion != NULL && (t->congestion = strdup(t->o.congestion)) == NULL))
		return err_nomem(e);
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
			return err_set(e, PTCP_EUSAGE, "--fingerprint %s: not SHA256:.. or HOST[:PORT]=SHA256:..",
			    text_escape(shown, sizeof shown, t->pins[i]));
	}
	return 0;
}

static int take_rules(struct ptcp_transfer *t, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	const struct ptcp_rule *rule;
	size_t i;
	int r = 0;

	if (t->o.n_rules > 0 && (r = filter_new(&t->filter, e)) < 0)
		return r;
	for (i = 0; i < t->o.n_rules; i++) {
		rule = &t->o.rules[i];
		if ((r = filter_add(t->filter, rule->include, rule->pattern, e)) < 0)
			return err_while(e, r, "--%s '%s'", rule->include ? "include" : "exclude",
			    text_escape(shown, sizeof shown, rule->pattern));
	}
	return 0;
}

/* What the options promise and is yet to come. */
static int check_not_yet(const struct ptcp_transfer *t, struct ptcp_err *e)
{
	const struct ptcp_transfer_opts *o = &t->o;
	const char *what = !t->sends && o->n_rules > 0 ? "--exclude and --include for recv" :
	    o->preserve_owner ? "--preserve 'owner'" :
	    o->preserve_xattr ? "--preserve 'xattr'" :
	    o->preserve_setid ? "--preserve 'setid'" :
	    o->no_resume ? "--no-resume" :
	    o->fsync != PTCP_FSYNC_GROUP ? "--fsync other than group" :
	    o->dry_run ? "--dry-run" : NULL;

	return what == NULL ? 0 : err_set(e, PTCP_ENOTYET, "%s: not available yet (leave it out)", what);
}

static int add_path(struct ptcp_transfer *t, uint8_t flags, const char *path, struct ptcp_err *e)
{
	struct span s = { (const uint8_t *)path, strlen(path) };
	uint8_t *p;

	if (s.n > WIRE_PATH_MAX || t->n_paths == WIRE_PATHS_MAX ||
	    t->paths_bytes + s.n + 3 > WIRE_CONTROL_MAX - 64)
		return err_set(e, PTCP_EUSAGE, "too many or too long remote paths for one transfer (name "
		    "their directory)");
	if ((p = realloc(t->paths, t->paths_bytes + s.n + 3)) == NULL)
		return err_nomem(e);
	t->paths = p;
	t->paths_bytes += wire_path_encode(p + t->paths_bytes, flags, s);
	t->n_paths++;
	return 0;
}

static int remote(struct target *out, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int r = target_parse(out, text, e);

	return r != 0 ? r : err_set(e, PTCP_EUSAGE, "%s: not a remote place (write ptcp://HOST/PATH)",
	    text_escape(shown, sizeof shown, text));
}

static int local(const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct target ignored;
	int r = target_parse(&ignored, text, e);

	if (r > 0)
		return err_set(e, PTCP_ENOTYET, "%s: between two remote hosts: not available yet (one side "
		    "must be local)", text_escape(shown, sizeof shown, text));
	if (r == 0 && text[0] == '\0')
		return err_set(e, PTCP_EUSAGE, "an empty path");
	return r;
}

static int take_remote_sources(struct ptcp_transfer *t, const char *const *srcs, size_t n,
    struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct target each;
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		if ((r = remote(&each, srcs[i], e)) < 0)
			return r;
		if (i == 0)
			t->target = each;
		else if (strcasecmp(each.host, t->target.host) != 0 || each.port != t->target.port)
			return err_set(e, PTCP_ENOTYET, "%s: sources on several hosts: not available yet (run "
			    "one ptcp recv for each)", text_escape(shown, sizeof shown, srcs[i]));
		if ((r = add_path(t, place_is_contents(each.path) ? WIRE_PATH_CONTENTS : 0, each.path, e)) < 0)
			return r;
	}
	return 0;
}

static int transfer_new(struct ptcp_transfer **out, bool sends, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e)
{
	struct ptcp_transfer *t = calloc(1, sizeof *t);
	struct ptcp_err scratch;
	size_t i;
	int r;

	if (e == NULL)
		e = &scratch;
	if (t == NULL)
		return err_nomem(e);
	t->sends = sends;
	atomic_init(&t->cancelled, false);
	if ((r = loop_new(&t->loop, e)) < 0)
		goto out;
	if (n_srcs == 0) {
		r = err_set(e, PTCP_EUSAGE, "no source");
		goto out;
	}
	if ((r = take_opts(t, o, e)) < 0 || (r = check_pins(t, e)) < 0 ||
	    (r = take_rules(t, e)) < 0 || (r = check_not_yet(t, e)) < 0)
		goto out;
	if (sends) {
		for (i = 0, r = 0; i < n_srcs && r == 0; i++)
			r = local(srcs[i], e);
		if (r < 0 || (r = remote(&t->target, dest, e)) < 0 ||
		    (r = add_path(t, 0, t->target.path, e)) < 0)
			goto out;
		t->n_local = n_srcs;
	} else {
		if ((r = local(dest, e)) < 0 || (r = take_remote_sources(t, srcs, n_srcs, e)) < 0)
			goto out;
		t->n_local = 1;
	}
	if ((t->local = copy_list(sends ? srcs : &dest, t->n_local)) == NULL) {
		r = err_nomem(e);
		goto out;
	}
	sock_join(t->known_as, sizeof t->known_as, t->target.host, t->target.port);
	*out = t;
	return 0;
out:
	ptcp_transfer_free(t);
	return r;
}

int ptcp_send_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e)
{
	return transfer_new(out, true, o, srcs, n_srcs, dest, e);
}

int ptcp_recv_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e)
{
	return transfer_new(out, false, o, srcs, n_srcs, dest, e);
}

void ptcp_transfer_free(struct ptcp_transfer *t)
{
	if (t == NULL)
		return;
	loop_free(t->loop);
	free_list(t->local, t->n_local);
	free_list(t->pins, t->n_pins);
	free(t->config_dir);
	free(t->congestion);
	filter_free(t->filter);
	free(t->paths);
	free(t);
}

/* ---- Telling ---- */

static void emit(struct ptcp_transfer *t, struct ptcp_event *ev)
{
	if (t->o.event != NULL)
		t->o.event(t->o.arg, ev);
}

static void measure(struct ptcp_transfer *t, struct ptcp_event *ev)
{
	struct mono now = mono_now();
	unsigned i = t->n_samples % RATE_SAMPLES, first;
	double s;

	t->last = party_progress(t->party);
	ev->bytes = t->last.bytes;
	ev->total_bytes = t->last.total_bytes;
	ev->total_known = t->last.total_known;
	ev->files = t->last.files;
	ev->total_files = t->last.total_files;
	ev->streams = t->last.streams;
	first = t->n_samples < RATE_SAMPLES ? 0 : i;
	s = (double)mono_diff_ns(now, t->sample[first].at) / 1e9;
	if (t->n_samples > 0 && s > 0)
		ev->rate_bps = 8.0 * (double)(ev->bytes - t->sample[first].bytes) / s;
	t->sample[i].at = now;
	t->sample[i].bytes = ev->bytes;
	t->n_samples++;
	/* The peer's total may be anything. */
	ev->eta_s = ev->total_known && ev->rate_bps > 0 && ev->total_bytes >= ev->bytes ?
	    8.0 * (double)(ev->total_bytes - ev->bytes) / ev->rate_bps : -1;
}

static void on_timer(void *arg)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS };

	if (t->party == NULL)
		return;
	measure(t, &ev);
	emit(t, &ev);
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
	emit(t, &ev);
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
	emit(t, &ev);
}

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_STREAMS, .from = from, .to = to, .text = why };

	emit(t, &ev);
}

/* ---- Where from, where to ---- */

/* Whether one of the sources before this one would land under the same name. */
static bool named_before(const struct ptcp_transfer *t, size_t source, const char *name)
{
	size_t i, n, len = strlen(name);
	const char *s;

	for (i = 0; i < source; i++) {
		s = t->local[i];
		n = strlen(s);
		if (!place_is_contents(s) && n >= len && strcmp(s + n - len, name) == 0 &&
		    (n == len || s[n - len - 1] == '/'))
			return true;
	}
	return false;
}

/* The user's own sources; one that cannot be found is a failed file, not the end. */
static int add_sources(struct ptcp_transfer *t, struct party *p, struct ptcp_err *e)
{
	char name[PLACE_NAME_BYTES];
	struct ptcp_err why;
	struct dir *dir;
	size_t i;
	int r = t->filter != NULL ? party_send_filtered(p, t->filter, e) : 0;

	for (i = 0; i < t->n_local && r == 0; i++) {
		if (place_source(NULL, t->local[i], false, &dir, name, &why) < 0) {
			r = party_send_missing(p, t->local[i], &why);
			continue;
		}
		if (name[0] != '\0' && named_before(t, i, name)) {
			err_set(&why, PTCP_EUSAGE, "another source has the same name (send it apart, or to another place)");
			r = party_send_missing(p, t->local[i], &why);
		} else {
			r = party_send_from(p, dir, name[0] != '\0' ? name : NULL, e);
		}
		dir_unref(dir);
	}
	return r;
}

static int add_target(struct ptcp_transfer *t, struct party *p, struct ptcp_err *e)
{
	int flags = t->n_paths > 1 ? PLACE_INTO_DIR : 0;
	struct span rest = { t->paths, t->paths_bytes }, path;
	char shown[TEXT_NAME_BYTES];
	uint8_t path_flags = 0;
	struct place place;
	int r;

	if (t->n_paths == 1 && wire_path_next(&rest, &path_flags, &path) &&
	    (path_flags & WIRE_PATH_CONTENTS) != 0)
		flags |= PLACE_CONTENTS;
	if ((r = place_target(&place, NULL, t->local[0], flags, e)) < 0)
		return err_while(e, r, "destination %s", text_escape(shown, sizeof shown, t->local[0]));
	return party_receive_into(p, &place, e);
}

/* A server may choose no names: what lies on top must be one of the sources, by its last component,
 * unless a source's contents were asked for (then nobody knows their names). */
static bool on_wanted(void *arg, const char *name)
{
	struct ptcp_transfer *t = arg;
	struct span rest = { t->paths, t->paths_bytes }, path;
	size_t n = strlen(name);
	uint8_t flags;

	while (wire_path_next(&rest, &flags, &path))
		if ((flags & WIRE_PATH_CONTENTS) != 0 ||
		    (path.n >= n && memcmp(path.p + path.n - n, name, n) == 0 &&
		    (path.n == n || path.p[path.n - n - 1] == '/')))
			return true;
	return false;
}

static void on_running(void *arg, struct party *p)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_START, .peer = t->peer,
		.peer_fingerprint = t->fingerprint, .eta_s = -1 };
	struct ptcp_err why;

	t->announced = true;
	t->sample[0].at = mono_now();
	t->n_samples = 1;
	emit(t, &ev);
	timer_set(t->timer, mono_add_ns(mono_now(), PROGRESS_NS));
	if ((t->sends ? add_sources(t, p, &why) : add_target(t, p, &why)) < 0)
		session_fail(party_session(p), &why);
}

/* ---- The end ---- */

static void finish(struct ptcp_transfer *t, const struct ptcp_err *why)
{
	if (t->over)
		return;
	t->over = true;
	if (why != NULL) {
		t->why = *why;
		t->result = why->code;
	}
	loop_stop(t->host.control);
}

static void on_gone(void *arg, struct party *p, const struct ptcp_err *why)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS };
	struct ptcp_err outcome;
	bool failed = why != NULL;

	if (failed)
		outcome = *why; /* it goes with the party */
	measure(t, &ev);
	if (t->announced)
		emit(t, &ev);
	if (!failed && t->last.failed > 0) {
		failed = true;
		/* In doubt: nothing done at all is a failure, not a partial success. */
		err_set(&outcome, t->last.files > 0 || t->last.file_bytes > 0 ? PTCP_EPARTIAL : PTCP_EIO,
		    "transfer: %llu %s failed, the rest is done (see above; run it again when that is mended)",
		    (unsigned long long)t->last.failed, t->last.failed == 1 ? "file" : "files");
		if (outcome.code == PTCP_EIO)
			err_set(&outcome, PTCP_EIO, "transfer: all that was named failed (see above)");
	}
	party_free(p);
	t->party = NULL;
	finish(t, failed ? &outcome : NULL);
}

static const struct party_ops party_ops = {
	.running = on_running, .wanted = on_wanted, .file = on_file, .warning = on_warning,
	.streams = on_streams, .gone = on_gone
};

/* ---- Connecting ---- */

/* Does a pin of the user's name this host, or every host? */
static bool pin_is_for(const struct ptcp_transfer *t, const char *pin, const char **fingerprint)
{
	const char *eq = strrchr(pin, '=');
	char host[SOCK_HOST_BYTES], where[SOCK_HOST_BYTES];
	unsigned port;

	*fingerprint = eq != NULL ? eq + 1 : pin;
	if (eq == NULL)
		return true;
	if ((size_t)(eq - pin) >= sizeof where)
		return false;
	memcpy(where, pin, (size_t)(eq - pin));
	where[eq - pin] = '\0';
	return sock_split(where, host, &port, t->target.port, NULL) == 0 &&
	    strcasecmp(host, t->target.host) == 0 && port == t->target.port;
}

/* 0: trusted; PTCP_EREFUSED: not; t->unknown: ask. */
static int check_host(struct ptcp_transfer *t, const char *fingerprint, struct ptcp_err *e)
{
	const char *pin;
	bool pinned = false;
	size_t i;
	int r;

	for (i = 0; i < t->n_pins; i++) {
		if (!pin_is_for(t, t->pins[i], &pin))
			continue;
		if (strcmp(pin, fingerprint) == 0)
			return 0;
		pinned = true;
	}
	if (pinned)
		return err_set(e, PTCP_EREFUSED, "%s: the host's fingerprint is %s, not the one given with "
		    "--fingerprint (somebody may be in between; if its key was replaced, give the new one)",
		    t->known_as, fingerprint);
	if ((r = known_hosts_check(t->host.config_dir, t->known_as, fingerprint, e)) < 0)
		return r;
	if (r == KNOWN_SAME)
		return 0;
	if (r == KNOWN_OTHER)
		return err_set(e, PTCP_EREFUSED, "%s: the host's fingerprint is %s, but known_hosts has another "
		    "(somebody may be in between; if its key was replaced, remove the line from %s/known_hosts)",
		    t->known_as, fingerprint, t->host.config_dir);
	t->unknown = true;
	return err_set(e, PTCP_EREFUSED, "%s: an unknown host with fingerprint %s (compare it with ptcp key "
	    "show there, then give --fingerprint %s, or run this from a terminal)", t->known_as, fingerprint,
	    fingerprint);
}

static int open_flags(const struct ptcp_transfer *t)
{
	const struct ptcp_transfer_opts *o = &t->o;

	return (o->no_verify ? 0 : WIRE_OPEN_VERIFY) | (o->preserve_times ? WIRE_OPEN_TIMES : 0) |
	    (o->preserve_mode ? WIRE_OPEN_MODE : 0) | (o->preserve_links ? WIRE_OPEN_LINKS : 0) |
	    (t->sends && (t->n_local > 1 || place_is_contents(t->target.path)) ? WIRE_OPEN_INTO_DIR : 0) |
	    (t->sends && t->n_local == 1 && place_is_contents(t->local[0]) ? WIRE_OPEN_CONTENTS : 0);
}

static int start_party(struct ptcp_transfer *t, struct ptcp_err *e)
{
	struct wire_open open = {
		.role = t->sends ? WIRE_YOU_RECEIVE : WIRE_YOU_SEND, .cipher = (uint8_t)t->o.cipher,
		.flags = (uint32_t)open_flags(t), .n_paths = t->n_paths,
		.streams = (uint16_t)(t->o.streams > 0 ? t->o.streams : STREAMS_DEFAULT),
		.paths = { t->paths, t->paths_bytes }
	};
	char address[SOCK_HOST_BYTES];
	struct party_opts o = {
		.host = &t->host, .control = t->chan, .connects = true, .address = address,
		.sock = { t->o.family, (uint64_t)(t->o.timeout_s * 1e9), t->congestion },
		.open = &open, .max_streams = PTCP_STREAMS_MAX,
		.timeout_ns = (uint64_t)(t->o.timeout_s * 1e9), .ops = &party_ops, .arg = t
	};
	int r;

	t->chan = NULL;
	if ((r = sock_split(t->peer, address, &o.port, t->target.port, e)) < 0) {
		chan_free(o.control);
		return r;
	}
	return party_new(&t->party, &o, e);
}

static void on_opened(void *arg)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	strcpy(t->fingerprint, chan_fingerprint(t->chan));
	timer_set(t->timer, MONO_NEVER);
	if (check_host(t, t->fingerprint, &why) < 0) {
		finish(t, &why);
	} else if (start_party(t, &why) < 0) {
		finish(t, &why);
	}
}

static void on_nothing(void *arg)
{
	(void)arg;
}

static void on_closed(void *arg, const struct ptcp_err *cause)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	err_set(&why, PTCP_ECONNECT, "connecting to %s: %s (is it a ptcp daemon?)", t->known_as,
	    cause != NULL ? cause->msg : "it closed the connection");
	finish(t, &why);
}

static const struct chan_ops chan_ops = { on_opened, on_nothing, on_nothing, on_closed };

static void on_dialled(void *arg, int fd, const char *address, const struct ptcp_err *cause)
{
	struct ptcp_transfer *t = arg;
	struct chan_opts o = { .fd = fd, .alpn = ALPN_CONTROL, .ops = &chan_ops, .arg = t };
	struct ptcp_err why;

	t->dial = NULL;
	if (fd < 0) {
		finish(t, cause);
		return;
	}
	strcpy(t->peer, address);
	timer_set(t->timer, mono_add_ns(mono_now(), (uint64_t)(t->o.timeout_s * 1e9)));
	if (chan_new(&t->chan, t->host.control, t->host.client, &o, &why) < 0)
		finish(t, &why);
}

static void on_start_timer(void *arg)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	if (t->party != NULL) {
		on_timer(t);
		return;
	}
	err_set(&why, PTCP_ECONNECT, "connecting to %s: no TLS handshake within %.3g s (is it a ptcp daemon?)",
	    t->known_as, t->o.timeout_s);
	finish(t, &why);
}

/* ---- Running ---- */

static void check_cancelled(struct ptcp_transfer *t)
{
	struct ptcp_err why;

	if (!atomic_load(&t->cancelled) || t->over)
		return;
	err_set(&why, PTCP_ECANCELED, "transfer: interrupted (run it again: it begins anew, resuming is not available yet)");
	if (t->party != NULL)
		party_cancel(t->party, &why);
	else
		finish(t, &why);
}

static void on_cancel(void *arg)
{
	check_cancelled(arg);
}

/* One connection, up to the end of the transfer or to the discovery of an unknown host. */
static int attempt(struct ptcp_transfer *t, struct ptcp_err *e)
{
	unsigned workers = t->o.streams > 0 ? t->o.streams : STREAMS_DEFAULT;
	unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM |
	    1u << PTCP_CIPHER_CHACHA20;
	struct sock_opts so = { t->o.family, (uint64_t)(t->o.timeout_s * 1e9), t->congestion };
	int r;

	t->over = t->unknown = false;
	t->result = 0;
	t->host.log = (struct log){ NULL, t->o.arg, (enum log_level)t->o.log_level };
	if (t->o.log != NULL)
		t->host.log.write = (void (*)(void *, enum log_level, const char *, const char *))t->o.log;
	if ((r = host_init(&t->host, t->loop, t->config_dir, workers, ciphers, 0, e)) < 0)
		return r;
	loop_on_wake(t->host.control, on_cancel, t);
	if ((r = timer_new(&t->timer, t->host.control, on_start_timer, t, e)) < 0 ||
	    (r = dial_start(&t->dial, t->host.control, t->target.host, t->target.port, &so, on_dialled, t,
	    e)) < 0)
		goto out;
	loop_reset(t->loop);
	check_cancelled(t);
	if (!t->over)
		loop_run(t->loop);
	r = t->result;
	if (r < 0 && e != NULL)
		*e = t->why;
out:
	dial_cancel(t->dial);
	t->dial = NULL;
	chan_free(t->chan);
	t->chan = NULL;
	timer_free(t->timer);
	t->timer = NULL;
	host_fini(&t->host);
	return r;
}

int ptcp_transfer_run(struct ptcp_transfer *t, struct ptcp_err *e)
{
	struct ptcp_err scratch;
	int r;

	if (e == NULL)
		e = &scratch;
	if (t->ran)
		return err_set(e, PTCP_EUSAGE, "a transfer runs once");
	t->ran = true;
	t->started = mono_now();
	r = attempt(t, e);
	if (r < 0 && t->unknown && t->o.trust != NULL &&
	    t->o.trust(t->o.arg, t->known_as, t->fingerprint)) {
		if ((r = known_hosts_add(t->host.config_dir, t->known_as, t->fingerprint, e)) == 0) {
			t->started = mono_now();
			r = attempt(t, e);
		}
	}
	t->seconds = (double)mono_diff_ns(mono_now(), t->started) / 1e9;
	return r;
}

void ptcp_transfer_cancel(struct ptcp_transfer *t)
{
	atomic_store(&t->cancelled, true);
	loop_wake(t->loop);
}

void ptcp_transfer_result(const struct ptcp_transfer *t, struct ptcp_result *r)
{
	struct ptcp_result all = {
		.size = r->size < sizeof all ? r->size : sizeof all, .bytes = t->last.file_bytes,
		.wire_bytes = t->last.wire_bytes, .resumed_bytes = t->last.resumed_bytes,
		.files = t->last.files, .failed = t->last.failed, .warnings = t->warnings,
		.seconds = t->seconds, .streams = t->last.streams_most
	};

	memcpy(r, &all, all.size);
}
