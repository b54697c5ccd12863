/* What a transfer is asked for: options, sources, destination. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_impl.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "core/text.h"

#define PATHS_USUAL 2

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

static int check_relays(const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	if (o->n_relays == 0)
		return o->n_paths == 0 ? 0 : err_set(e, PTCP_EUSAGE, "--paths: only of some --relays (name them)");
	if (o->n_vias > 0)
		return err_set(e, PTCP_EUSAGE, "--relays: not with --via (write direct among the relays for the direct path)");
	if (o->n_relays > PTCP_PATHS_MAX)
		return err_set(e, PTCP_EUSAGE, "--relays: more than %d (leave some out)", PTCP_PATHS_MAX);
	if (o->n_paths > o->n_relays)
		return err_set(e, PTCP_EUSAGE, "--paths %u: only %zu relays are named (name more, or take fewer)", o->n_paths,
		    o->n_relays);
	return 0;
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
	    t->o.remote_port > 65535 || (t->o.family != 0 && t->o.family != 4 && t->o.family != 6))
		return err_set(e, PTCP_EUSAGE, "streams over %d, or a cipher, timeout (0.5s to 24h), port, "
		    "address family or way to sync out of range", PTCP_STREAMS_MAX);
	if (pacing_parse(&t->rate, t->o.rate, e) < 0)
		return PTCP_EUSAGE;
	if (!(t->o.impact_percent >= 0 && t->o.impact_percent <= 100) || t->o.max_streams < 1 ||
	    t->o.max_streams > PTCP_STREAMS_MAX)
		return err_set(e, PTCP_EUSAGE, "an impact budget out of range (0 to 100 %%), or of a maximum of streams "
		    "(1 to %d)", PTCP_STREAMS_MAX);
	if (check_relays(&t->o, e) < 0)
		return PTCP_EUSAGE;
	if (t->o.n_relays > 0) { /* are paths that may be used */
		t->o.vias = t->o.relays;
		t->o.n_vias = t->o.n_relays;
	}
	t->n_pins = t->o.n_fingerprints;
	if ((t->pins = copy_list(t->o.fingerprints, t->n_pins)) == NULL ||
	    (t->vias = copy_list(t->o.vias, t->o.n_vias)) == NULL ||
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

	for (i = 0; o->via_shares != NULL && i < o->n_vias; i++)
		if (!(o->via_shares[i] >= 0 && o->via_shares[i] <= DBL_MAX))
			return err_set(e, PTCP_EUSAGE, "the share of path %zu: %g (must be 0 or more)", i,
			    o->via_shares[i]);
	for (i = 0; o->relay_hold_bytes != NULL && i < o->n_vias; i++)
		if (o->relay_hold_bytes[i] > 0 && o->cipher == PTCP_CIPHER_NONE)
			return err_set(e, PTCP_EUSAGE, "--cipher none: relays would store the data in clear (take another, or store "
			    "nothing)");
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

/* Where the other side sends, it is told the rules behind the sources. */
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
		if (!t->sends && (r = add_path(t, rule->include ? WIRE_PATH_INCLUDE : WIRE_PATH_EXCLUDE,
		    rule->pattern, e)) < 0)
			return r;
	}
	return 0;
}

static int remote(struct remote *out, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int r = remote_parse(out, text, e);

	return r != 0 ? r : err_set(e, PTCP_EUSAGE, "%s: not a remote place (write [USER@]HOST:PATH or ptcp://HOST/PATH)",
	    text[0] != '\0' ? text_escape(shown, sizeof shown, text) : "\"\"");
}

static int local(const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct remote ignored;
	int r = remote_parse(&ignored, text, e);

	if (r > 0)
		return err_set(e, PTCP_EUSAGE, "%s: one side must be local (between two daemons: ptcp send "
		    "ptcp://A/PATH ptcp://B/PATH)", text_escape(shown, sizeof shown, text));
	if (r == 0 && text[0] == '\0')
		return err_set(e, PTCP_EUSAGE, "\"\": an empty path (name a file or directory)");
	return r;
}

static int take_remote_sources(struct ptcp_transfer *t, const char *const *srcs, size_t n,
    struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct remote each;
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		if ((r = remote(&each, srcs[i], e)) < 0)
			return r;
		if (i == 0)
			t->target = each;
		else if (!remote_same_host(&each, &t->target))
			return err_set(e, PTCP_ENOTYET, "%s: sources on several hosts: not available yet (run "
			    "one ptcp recv for each)", text_escape(shown, sizeof shown, srcs[i]));
		if ((r = add_path(t, remote_is_contents(&each) ? WIRE_PATH_CONTENTS : 0, each.path, e)) < 0)
			return r;
	}
	return 0;
}

void client_fini(struct ptcp_transfer *t)
{
	if (t->prober != NULL)
		t->prober->ops->free(t->prober);
	remote_job_free(t->third);
	loop_free(t->loop);
	free_list(t->local, t->n_local);
	free_list(t->pins, t->n_pins);
	free_list(t->vias, t->o.n_vias);
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
		paths_choose(&t->ways, t->o.n_paths > 0 ? t->o.n_paths : usual, get_u64(seed));
	return r;
}

int client_name_target(struct ptcp_transfer *t, struct ptcp_err *e)
{
	int r;

	if (t->launch != NULL && (t->target.ssh || t->third != NULL || t->prober != NULL))
		return err_set(e, PTCP_EUSAGE, "launch: only of a transfer with one ptcp://HOST/PATH");
	remote_name(&t->target, t->known_as, sizeof t->known_as);
	if ((r = paths_parse(&t->ways, (const char *const *)t->vias, t->o.n_vias, &t->target, e)) < 0)
		return r;
	if (t->o.n_relays > 0)
		return choose(t, e);
	if (t->o.n_vias > 0)
		paths_deal(&t->ways, t->o.via_shares);
	paths_hold(&t->ways, t->o.n_vias > 0 ? t->o.relay_hold_bytes : NULL);
	t->o.via_shares = NULL; /* the caller's */
	t->o.relay_hold_bytes = NULL;
	return 0;
}

static int take_local_sources(struct ptcp_transfer *t, const char *const *srcs, size_t n,
    const char *dest, struct ptcp_err *e)
{
	size_t i;
	int r;

	for (i = 0; i < n; i++)
		if ((r = local(srcs[i], e)) < 0)
			return r;
	if ((r = remote(&t->target, dest, e)) < 0)
		return r;
	return add_path(t, 0, t->target.path, e);
}

/* From one daemon to another; paths as if we were to receive. */
static int take_third(struct ptcp_transfer *t, const char *const *srcs, size_t n, const char *dest,
    struct ptcp_err *e)
{
	struct remote to;
	int r;

	if ((r = remote(&to, dest, e)) < 0 || (r = take_remote_sources(t, srcs, n, e)) < 0)
		return r;
	if (t->target.ssh || to.ssh)
		return err_set(e, PTCP_ENOTYET, "between two remote hosts: through ssh: not available yet (both must be daemons: "
		    "ptcp://HOST/PATH)");
	if (t->o.n_vias > 0)
		return err_set(e, PTCP_EUSAGE, "--via: between two other hosts only directly (leave it out)");
	if (timetable_varies(&t->rate))
		return err_set(e, PTCP_EUSAGE, "--rate: between two other hosts one rate, not a timetable (their clocks are their "
		    "own: give what holds now)");
	return remote_job_new(t, &to, e);
}

static bool is_remote(const char *text)
{
	struct remote ignored;

	return remote_parse(&ignored, text, NULL) > 0;
}

static int take_paths(struct ptcp_transfer *t, const char *const *srcs, size_t n, const char *dest,
    struct ptcp_err *e)
{
	int r;

	if (t->sends && is_remote(srcs[0]) && is_remote(dest)) {
		t->sends = false;
		t->n_local = 0;
		t->n_remote = n;
		return take_third(t, srcs, n, dest, e);
	}
	if (t->o.detach)
		return err_set(e, PTCP_EUSAGE, "--detach: only a transfer between two other hosts goes on without this one (leave it out)");
	t->n_local = t->sends ? n : 1;
	t->n_remote = t->sends ? 1 : n;
	if (t->sends)
		return take_local_sources(t, srcs, n, dest, e);
	return (r = local(dest, e)) < 0 ? r : take_remote_sources(t, srcs, n, e);
}

static int transfer_new(struct ptcp_transfer **out, bool sends, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e)
{
	struct ptcp_transfer *t;
	struct ptcp_err scratch;
	int r;

	if (e == NULL)
		e = &scratch;
	if (n_srcs == 0)
		return err_set(e, PTCP_EUSAGE, "no source (name what is to be transferred)");
	if ((r = client_new(&t, o, e)) < 0)
		return r;
	t->sends = sends;
	r = take_paths(t, srcs, n_srcs, dest, e);
	if (r == 0)
		r = take_rules(t, e);
	if (r == 0 && (t->local = copy_list(sends ? srcs : &dest, t->n_local)) == NULL)
		r = err_nomem(e);
	if (r == 0)
		r = client_name_target(t, e);
	if (r < 0) {
		client_fini(t);
		return r;
	}
	*out = t;
	return 0;
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

void ptcp_transfer_opts_init(struct ptcp_transfer_opts *o)
{
	*o = (struct ptcp_transfer_opts){
		.size = sizeof *o, .cipher = PTCP_CIPHER_AES128GCM, .preserve_times = true,
		.preserve_mode = true, .preserve_links = true, .timeout_s = 30,
		.log_level = PTCP_LOG_WARN, .impact_percent = 10, .max_streams = 32
	};
}
