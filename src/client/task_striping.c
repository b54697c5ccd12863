/* Starts the movers of a transfer: writes the invitation, and runs the commands. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/task_impl.h"
#include "core/err.h"
#include "core/text.h"
#include "core/userdir.h"
#include "mover/invitation.h"
#include "mover/movers.h"
#include "store/destination.h"

static bool is_striped(const struct ptcp_task *t)
{
	return t->o.mover.command != NULL || t->o.mover.file != NULL;
}

int striping_check(const struct ptcp_task *t, struct ptcp_err *e)
{
	const struct ptcp_transfer_opts *o = &t->o;
	int r = movers_check(o->mover.command, o->mover.n_hosts, o->mover.file, o->mover.ptcp, o->mover.listen, e);

	if (r < 0 || (r = movers_check_stripe(o->mover.stripe_bytes, is_striped(t), e)) < 0 || !is_striped(t))
		return r;
	if (t->remote_job != NULL)
		return err_set(e, PTCP_ENOTYET, "--movers: between two other hosts: not available yet (run ptcp send "
		    "or recv on one of them)");
	if (o->pipe.fd >= 0)
		return err_set(e, PTCP_EUSAGE, "--movers: not with standard input or output, which other hosts do not "
		    "have (name a file)");
	if (o->streams == 0 && o->impact_percent <= 0)
		return err_set(e, PTCP_ENOTYET, "--movers: with --impact 0: not available yet (leave one out)");
	return 0;
}

/* ---- What movers may read or write ---- */

/* Absolute paths: of the directories as the walk names them, and of what movers may read. */
struct places {
	struct movers_base *base;
	size_t n_bases, n_roots;
	char *root[INVITATION_ROOTS_MAX];
};

static void places_fini(struct places *p)
{
	while (p->n_bases > 0) {
		free(p->base[--p->n_bases].given);
		free(p->base[p->n_bases].absolute);
	}
	free(p->base);
	while (p->n_roots > 0)
		free(p->root[--p->n_roots]);
}

/* The base of the directory, perhaps new; NULL: an error. */
static const struct movers_base *add_base(struct places *p, const char *given, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct movers_base *b;
	size_t i;

	for (i = 0; i < p->n_bases; i++)
		if (strcmp(p->base[i].given, given) == 0)
			return &p->base[i];
	if ((b = realloc(p->base, (p->n_bases + 1) * sizeof *b)) == NULL) {
		err_nomem(e);
		return NULL;
	}
	p->base = b;
	b = &p->base[p->n_bases++];
	b->given = strdup(given);
	if ((b->absolute = realpath(given, NULL)) == NULL)
		err_sys(e, PTCP_EUSAGE, "source %s", text_escape(shown, sizeof shown, given));
	return b->given != NULL && b->absolute != NULL ? b : NULL;
}

static int add_root(struct places *p, const char *path, struct ptcp_err *e)
{
	size_t i;

	for (i = 0; i < p->n_roots; i++)
		if (strcmp(p->root[i], path) == 0)
			return 0;
	if (p->n_roots == INVITATION_ROOTS_MAX)
		return err_set(e, PTCP_EUSAGE,
		    "--movers: sources in more than %d directories (send their parent, or fewer at a time)",
		    INVITATION_ROOTS_MAX);
	if ((p->root[p->n_roots] = strdup(path)) == NULL)
		return err_nomem(e);
	p->n_roots++;
	return 0;
}

/* The source itself is a root, or of many sources their directories are. */
static int add_source(struct places *p, const struct ptcp_task *t, const char *path, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES], all[PATH_MAX + DESTINATION_NAME_BYTES];
	const struct movers_base *b;
	struct ptcp_err why;
	struct dir *dir;

	if (destination_source(NULL, path, t->files.selection != NULL, &dir, name, &why) < 0)
		return 0; /* a missing source is reported by the session */
	b = add_base(p, dir_root_path(dir), e);
	dir_unref(dir);
	if (b == NULL)
		return e->code;
	snprintf(all, sizeof all, "%s/%s", strcmp(b->absolute, "/") == 0 ? "" : b->absolute, name);
	return add_root(p, name[0] == '\0' || t->files.n_local > INVITATION_ROOTS_MAX / 2 ? b->absolute : all, e);
}

/* The destination, or the nearest directory above it that exists. */
static int add_destination(struct places *p, const char *path, struct ptcp_err *e)
{
	char *copy = strdup(path[0] != '\0' ? path : "."), *real = NULL, *slash;
	struct stat st;
	int r;

	while (copy != NULL && (stat(copy, &st) != 0 || !S_ISDIR(st.st_mode))) {
		for (slash = copy + strlen(copy); slash > copy + 1 && slash[-1] == '/';) /* slashes at the end */
			*--slash = '\0';
		if ((slash = strrchr(copy, '/')) == NULL)
			strcpy(copy, ".");
		else
			slash[slash == copy] = '\0';
	}
	if (copy == NULL || (real = realpath(copy, NULL)) == NULL)
		r = err_sys(e, PTCP_EUSAGE, "destination");
	else
		r = add_root(p, real, e);
	free(real);
	free(copy);
	return r;
}

/* ---- Starting ---- */

void striping_show(struct ptcp_task *t, struct ptcp_event *ev)
{
	unsigned i, n = t->movers != NULL ? movers_count(t->movers) : 0;

	for (i = 0; i < n; i++)
		movers_stats(t->movers, i, &t->report.mover_stats[i]);
	ev->movers = t->report.mover_stats;
	ev->n_movers = n;
}

static void on_notice(void *arg, const char *text)
{
	struct ptcp_task *t = arg;
	struct ptcp_event ev = { .type = PTCP_EVENT_MOVERS, .text = text,
		.to = t->movers != NULL ? movers_count(t->movers) : 0 };

	striping_show(t, &ev);
	if (t->o.event != NULL)
		t->o.event(t->o.arg, &ev);
}

/* A file of this transfer in the configuration directory, which is often shared, and belongs to the user alone. */
static int own_file(const struct ptcp_task *t, char out[PATH_MAX], struct ptcp_err *e)
{
	char dir[USERDIR_BYTES], suffix[48];
	int r;

	if ((r = userdir_config(dir, t->o.config_dir, e)) < 0 || (r = userdir_make(dir, e)) < 0)
		return r;
	snprintf(suffix, sizeof suffix, "%ld-%llx", (long)getpid(), (unsigned long long)mono_now().ns);
	invitation_path(out, dir, suffix);
	return 0;
}

static int invite(struct ptcp_task *t, const struct places *p, struct ptcp_err *e)
{
	struct movers_opts o = { .control = t->loop, .log = &t->context.log,
		.listen = t->o.mover.listen, .base = p->base,
		.n_bases = p->n_bases, .root = p->root, .n_roots = p->n_roots, .writes = !t->files.sends,
		.direct_io = t->o.direct_io,
		.wait_ns = (uint64_t)(t->o.mover.wait_s * 1e9), .notify = on_notice, .arg = t };
	char own[PATH_MAX];
	int r;

	if (t->o.mover.file == NULL && (r = own_file(t, own, e)) < 0)
		return r;
	o.file = t->o.mover.file == NULL ? own : text_is_stdio(t->o.mover.file) ? NULL : t->o.mover.file;
	if ((r = movers_new(&t->movers, &o, e)) < 0 || t->o.mover.command == NULL)
		return r;
	return movers_start(t->movers, t->o.mover.command, t->o.mover.hosts, t->o.mover.n_hosts, t->o.mover.ptcp, e);
}

int striping_begin(struct ptcp_task *t, struct ptcp_err *e)
{
	struct places p = { .n_bases = 0 };
	size_t i;
	int r = 0;

	if (!is_striped(t) || t->o.dry_run)
		return 0;
	for (i = 0; i < t->files.n_local && r == 0; i++)
		r = t->files.sends ? add_source(&p, t, t->files.local[i], e) : add_destination(&p,
		    t->files.local[i], e);
	if (r == 0 && p.n_roots > 0) /* else the session fails, as no source exists */
		r = invite(t, &p, e);
	places_fini(&p);
	return r;
}
