#include "plan/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"

/* NULL: without memory. */
static void *copy(const void *from, size_t n, size_t size)
{
	void *to = calloc(n > 0 ? n : 1, size);

	if (to != NULL && n > 0)
		memcpy(to, from, n * size);
	return to;
}

int snapshot_new(struct ptcp_overlay **out, const struct ptcp_overlay *o, struct ptcp_err *e)
{
	const struct conf_overlay *c = o->conf;
	struct ptcp_overlay *new = calloc(1, sizeof *new);
	struct conf_overlay *to;

	if (new == NULL || (new->conf = to = copy(c, 1, sizeof *c)) == NULL) {
		free(new);
		return err_nomem(e);
	}
	to->hosts = copy(c->hosts, c->nhosts, sizeof *c->hosts);
	to->links = copy(c->links, c->nlinks, sizeof *c->links);
	to->groups = copy(c->groups, c->ngroups, sizeof *c->groups);
	to->windows = copy(c->windows, c->nwindows, sizeof *c->windows);
	if (to->hosts == NULL || to->links == NULL || to->groups == NULL || to->windows == NULL) {
		snapshot_free(new);
		return err_nomem(e);
	}
	*out = new;
	return 0;
}

void snapshot_free(struct ptcp_overlay *o)
{
	if (o == NULL)
		return;
	free(o->conf->hosts);
	free(o->conf->links);
	free(o->conf->groups);
	free(o->conf->windows);
	free(o->conf);
	free(o);
}
