/* Movers of a server: started with the server, before its confinement, for all sessions. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "core/text.h"
#include "mover/invitation.h"
#include "mover/movers.h"
#include "net/trust/trust.h"
#include "server/server_impl.h"

static bool is_striped(const struct ptcp_server_opts *o) { return o->movers != NULL || o->mover_file != NULL; }

int server_check_movers(const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	int r = movers_check(o->movers, o->n_mover_hosts, o->mover_file, o->mover_ptcp, o->movers_listen, e);

	if (r == 0 && !is_striped(o) && o->mover_port != PTCP_PORT)
		return err_set(e, PTCP_EUSAGE, "--mover-port: without movers (give --movers or --mover-file)");
	if (r < 0 || (r = movers_check_stripe(o->stripe_bytes, is_striped(o), e)) < 0 || !is_striped(o))
		return r;
	if (o->ephemeral)
		return err_set(e, PTCP_EUSAGE, "--movers: not for an ephemeral server (start a server)");
	return 0;
}

/* ---- Roots ---- */

struct roots {
	char *at[INVITATION_ROOTS_MAX];
	size_t n;
	bool full;
};

/* A root that does not exist is not served, nor reached by movers, until a restart. */
static void add(struct roots *r, const char *path)
{
	char *real = realpath(path, NULL);
	size_t i;

	for (i = 0; real != NULL && i < r->n; i++)
		if (strcmp(r->at[i], real) == 0) {
			free(real);
			return;
		}
	if (real == NULL)
		return;
	if (r->n == INVITATION_ROOTS_MAX) {
		r->full = true;
		free(real);
		return;
	}
	r->at[r->n++] = real;
}

static void on_client(void *arg, const char *fingerprint, bool authority, const struct authorization *a)
{
	(void)fingerprint;
	(void)authority;
	if (a->root[0] != '\0')
		add(arg, a->root);
}

/* ---- Starting ---- */

/* The text is logged. */
static void on_notice(void *arg, const char *text)
{
	struct ptcp_server *s = arg;

	(void)text;
	if (s->movers != NULL && movers_count(s->movers) == 0)
		log_at(&s->context.log, LOG_WARN, "movers", "event=none-left why=\"this host carries the data of new "
		    "sessions (start movers again, or restart the server)\"");
}

/* Without --mover-file a file for each port. */
static const char *invitation_of(const struct ptcp_server *s, char own[PATH_MAX])
{
	char suffix[12];

	if (s->o.mover_file != NULL)
		return text_is_stdio(s->o.mover_file) ? NULL : s->o.mover_file;
	snprintf(suffix, sizeof suffix, "%u", s->at[0].port);
	invitation_path(own, s->context.config_dir, suffix);
	return own;
}

static int start(struct ptcp_server *s, const struct roots *roots, struct ptcp_err *e)
{
	char own[PATH_MAX];
	struct movers_opts o = { .control = s->loop, .log = &s->context.log, .listen = s->o.movers_listen,
		.root = roots->at, .n_roots = roots->n, .serves = true, .writes = true, .direct_io = s->o.direct_io,
		.port = s->o.mover_port, .notify = on_notice, .arg = s };
	int r;

	if (roots->n == 0)
		return err_set(e, PTCP_EUSAGE, "--movers: no directory is served (give --root)");
	if (roots->full)
		return err_set(e, PTCP_EUSAGE, "--movers: more than %d roots of clients (authorize them beneath fewer)",
		    INVITATION_ROOTS_MAX);
	/* The invitation of an earlier server that was killed is replaced. */
	if ((o.file = invitation_of(s, own)) != NULL && (r = invitation_remove_own(o.file, e)) < 0)
		return r;
	if ((r = movers_new(&s->movers, &o, e)) < 0 || s->o.movers == NULL)
		return r;
	return movers_start(s->movers, s->o.movers, s->o.mover_hosts, s->o.n_mover_hosts, s->o.mover_ptcp, e);
}

void ptcp_server_movers_each(struct ptcp_server *s, ptcp_server_mover_fn *each, void *arg)
{
	unsigned i, n = s->movers != NULL ? movers_count(s->movers) : 0;
	struct ptcp_mover_stats st;

	for (i = 0; i < n; i++) {
		movers_stats(s->movers, i, &st);
		each(arg, &st);
	}
}

int server_start_movers(struct ptcp_server *s, struct ptcp_err *e)
{
	struct roots roots = { .n = 0 };
	struct ptcp_err why;
	int r;

	if (!is_striped(&s->o))
		return 0;
	if (s->root != NULL)
		add(&roots, s->root);
	(void)authorized_each(s->context.config_dir, on_client, &roots, &why); /* reported by the confinement */
	r = start(s, &roots, e);
	while (roots.n > 0)
		free(roots.at[--roots.n]);
	return r;
}
