/* Reports the needs of a running server to a program that gives up all further rights. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "net/trust/trust.h"
#include "server/server_impl.h"

struct needed_roots {
	char **at; /* ended by NULL unless n is 0 */
	size_t n;
	bool failed;
};

static void add(struct needed_roots *r, const char *root)
{
	char **more = realloc(r->at, (r->n + 2) * sizeof *more);

	if (more != NULL)
		r->at = more;
	if (more == NULL || (more[r->n] = strdup(root)) == NULL) {
		r->failed = true;
		return;
	}
	more[++r->n] = NULL;
}

static void on_client(void *arg, const char *fingerprint, bool authority, const struct authorization *a)
{
	(void)fingerprint;
	(void)authority;
	if (a->root[0] != '\0')
		add(arg, a->root);
}

int server_confine(struct ptcp_server *s, struct ptcp_err *e)
{
	struct ptcp_server_needs n = { .config_dir = s->context.config_dir,
		.state_dir = s->own_dirs.path[1][0] != '\0' ? s->own_dirs.path[1] : NULL, .binds = s->o.ephemeral,
		.connects = s->o.ephemeral || s->o.n_relay_to > 0, .signals = s->o.movers != NULL,
		.storage_dir = s->storage_dir };
	struct needed_roots r = { 0 };
	struct ptcp_err why;

	if (s->o.confine == NULL)
		return 0;
	if ((s->roots = r.at = calloc(1, sizeof *r.at)) == NULL)
		return err_nomem(e);
	if (s->o.ephemeral)
		add(&r, "/"); /* the client is the same user and names the path later */
	else if (s->root != NULL)
		add(&r, s->root);
	if (!s->o.ephemeral && authorized_each(s->context.config_dir, on_client, &r, &why) < 0)
		log_at(&s->context.log, LOG_ERROR, "trust", "no client is admitted: %s", why.msg);
	s->roots = r.at;
	n.roots = (const char *const *)r.at;
	return r.failed ? err_nomem(e) : s->o.confine(s->o.arg, &n, e);
}

void server_forget_needs(struct ptcp_server *s)
{
	char **at;

	for (at = s->roots; at != NULL && *at != NULL; at++)
		free(*at);
	free(s->roots);
}
