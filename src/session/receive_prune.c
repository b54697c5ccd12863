/* The end of a receiving session. --delete: the receiver removes what the source does not have from the directories
 * that were received whole. Then it reports leftovers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "core/units.h"
#include "fs/fs_err.h"
#include "session/receive_impl.h"
#include "store/hash.h"
#include "store/manage.h"

#define STEP_ENTRIES 4096           /* other sessions' work on the I/O threads comes between two steps */
#define STEP_REPORTS 256
#define OUTBOX_BYTES (1u << 20)     /* reports wait for a slow peer above this */

struct report {
	char *path, *why; /* why: not removed; NULL: removed */
};

struct receive_prune {
	struct name_set names;
	struct prune *prune;
	const struct filter *filter;
	bool own;                        /* see walk_filter() */
	uint64_t entries;                /* entries that the source has below the directories that are pruned */
	unsigned closed;                 /* directories without removals, as entries below failed */
	bool lacks_names;                /* no memory for a name */
	/* Waiting for the outbox, or for directories that make way for earlier ones: files and links whose names
	 * directories have, and at the end an entry of its own, for all further deletion. */
	struct list waiting;
	struct receive_entry *making_way; /* the file or link for which a directory makes way at present; NULL: none */
	bool stepping;                   /* a step is on its way through the queue */
	struct ptcp_err failure;         /* with a code: ends the session, once the base has its attributes */
	struct report report[STEP_REPORTS]; /* reports of one step */
	unsigned n_reports;
	unsigned warnings;
};

int receive_prune_new(struct session *sess, struct ptcp_err *e)
{
	struct receive_prune *p = sess->receive->prune = memory_calloc(sess->o.memory, sizeof *p, e);

	if (p == NULL)
		return PTCP_ENOMEM;
	p->names.memory = sess->o.memory;
	list_init(&p->waiting);
	return 0;
}

static void forget_reports(struct receive_prune *p)
{
	while (p->n_reports > 0) {
		p->n_reports--;
		free(p->report[p->n_reports].path);
		free(p->report[p->n_reports].why);
	}
}

void receive_prune_free(struct receive_side *r)
{
	if (r->prune == NULL)
		return;
	forget_reports(r->prune);
	prune_free(r->prune->prune);
	name_set_fini(&r->prune->names);
	memory_free(r->session->o.memory, r->prune, sizeof *r->prune);
	r->prune = NULL;
}

void session_receive_filtered(struct session *sess, const struct filter *f, bool own)
{
	if (sess->receive->prune == NULL)
		return;
	sess->receive->prune->filter = f;
	sess->receive->prune->own = own;
}

/* ---- The names of the source ---- */

/* On an I/O thread. */
static void on_entry(void *arg, const char *path, const struct ptcp_err *why)
{
	struct receive_prune *p = arg;
	struct report *r = &p->report[p->n_reports++];

	r->path = strdup(path);
	r->why = why != NULL ? strdup(why->msg) : NULL;
}

static int new_prune(struct session *sess, struct ptcp_err *e)
{
	const struct wire_open *open = engine_open(sess->engine);
	struct receive_prune *p = sess->receive->prune;
	const struct prune_opts o = { .names = &p->names, .published = sess->receive->published,
		.backup = sess->receive->backup, .filter = p->filter, .own = p->own,
		.links = (open->preserve & WIRE_PRESERVE_LINKS) != 0, .dry_run = (open->flags & WIRE_OPEN_DRY_RUN) != 0,
		.lists_ways = (open->flags & (WIRE_OPEN_DRY_RUN | WIRE_OPEN_IGNORE_EXISTING)) == WIRE_OPEN_DRY_RUN,
		.memory = sess->o.memory,
		.max = wire_max_delete(open), .source_entries = &p->entries,
		.max_depth = open->max_depth, .careful = open->max_delete == PTCP_MAX_DELETE_CAREFUL,
		.times = (open->preserve & WIRE_PRESERVE_TIMES) != 0, .entry = on_entry, .arg = p };
	int r = prune_new(&p->prune, &o, e);

	if (r == 0 && sess->receive->place.contents)
		r = prune_add(p->prune, sess->receive->place.base, 0, "", e);
	return r;
}

int receive_prune_note(struct receive_side *r, struct receive_entry *t, const struct receive_entry *in,
    struct ptcp_err *e)
{
	struct receive_prune *p = r->prune;
	int err;

	if (p == NULL)
		return 0;
	if (p->prune == NULL && (err = new_prune(r->session, e)) < 0)
		return err;
	t->hash = hash_name(in != NULL ? in->hash : 0, t->name);
	p->entries += in != NULL || r->place.contents;
	if (p->names.n >= (r->session->o.open != NULL ? SESSION_NAMES_MAX : SESSION_CLIENT_NAMES_MAX))
		err = err_set(e, PTCP_ENOMEM, "too many files for --delete (transfer parts of the tree one by one)");
	else if ((err = name_set_add(&p->names, t->hash, e)) == 0 && t->type == WIRE_DIR)
		err = name_set_add(&p->names, prune_dir_hash(t->hash), e);
	if (err < 0) {
		p->lacks_names = true;
		return err;
	}
	if (in != NULL || t->type != WIRE_DIR || r->place.contents)
		return 0;
	return prune_add(p->prune, t->self, t->hash, t->source != NULL ? t->source : t->name, e);
}

void receive_prune_close(struct receive_side *r, const struct receive_entry *t, bool failed)
{
	struct receive_prune *p = r->prune;

	if (p == NULL)
		return;
	p->closed += failed;
	p->lacks_names |= name_set_add(&p->names, prune_closed_hash(t->hash), NULL) < 0;
}

/* ---- Deletion ---- */

static void warn_all(struct session *sess, const struct ptcp_err *why)
{
	engine_warn(sess->engine, WIRE_WARNING_ONLY, "", why);
	sess->o.ops->warning(sess->o.arg, NULL, why->msg);
}

static void append(struct receive_prune *p, struct receive_entry *t)
{
	t->prune = p;
	list_append(&p->waiting, &t->waiting);
}

/* The entry of all further deletion has no name. */
static bool makes_way(const struct receive_entry *t) { return t->name != NULL; }

bool receive_prune_begin(struct session *sess)
{
	struct receive_prune *p = sess->receive->prune;
	struct receive_entry *t;
	struct ptcp_err why;

	if (p == NULL)
		return false;
	if (engine_failed_unplaced(sess->engine) || p->lacks_names) {
		err_set(&why, PTCP_EIO, "nothing is deleted at the destination, as a source failed (fix the "
		    "cause and run the same command again)");
		warn_all(sess, &why);
		return false;
	}
	if (p->closed > 0) {
		err_set(&why, PTCP_EIO, "nothing is deleted in %u director%s that failed in part (fix the cause and "
		    "run the same command again)", p->closed, p->closed == 1 ? "y" : "ies");
		warn_all(sess, &why);
	}
	/* An empty source has no entry. */
	if ((p->prune == NULL && new_prune(sess, &why) < 0) || (t = receive_entry_calloc(sess, &why)) == NULL) {
		engine_fail(sess->engine, &why);
		return true;
	}
	append(p, t);
	return true;
}

bool receive_prune_make_way(struct session *sess, struct receive_entry *t)
{
	struct receive_prune *p = sess->receive->prune;

	if (p == NULL || t->prune != NULL || t->why.sys != EISDIR)
		return false;
	append(p, t);
	return true;
}

/* Room for the reports of one step: an entry examined is reported once at most. */
void receive_prune_step(struct receive_entry *t)
{
	unsigned n = STEP_ENTRIES;

	t->result = 1;
	while (t->result > 0 && n-- > 0 && t->prune->n_reports < STEP_REPORTS)
		t->result = prune_step(t->prune->prune, 1, &t->why);
}

static void report(struct session *sess, const struct report *r)
{
	struct receive_prune *p = sess->receive->prune;
	struct ptcp_err why;

	if (r->path == NULL)
		return; /* no memory for the report */
	if (r->why == NULL) {
		engine_report_deleted(sess->engine, r->path);
		sess->o.ops->file(sess->o.arg, &(struct session_file){ .path = r->path, .status = PTCP_FILE_DELETED,
		    .size_bytes = UINT64_MAX });
	} else if (p->warnings++ < RECEIVE_WARNINGS) {
		err_set(&why, PTCP_EIO, "not deleted: %s", r->why);
		warn_all(sess, &why);
	}
}

/* The base has its attributes. */
static void conclude(struct session *sess)
{
	const struct receive_prune *p = sess->receive->prune;

	if (p != NULL && p->failure.code != 0)
		engine_fail(sess->engine, &p->failure);
	else
		engine_finished(sess->engine);
}

static void finish(struct session *sess, const struct ptcp_err *failure)
{
	struct receive_prune *p = sess->receive->prune;
	uint64_t failed = prune_failed(p->prune);

	if (failure != NULL) {
		p->failure = *failure;
		err_while(&p->failure, failure->code, "destination");
	} else if (failed > 0) {
		err_set(&p->failure, PTCP_EIO, "destination: %llu file%s or director%s not deleted (see above; fix the "
		    "cause and run the same command again)", (unsigned long long)failed, failed == 1 ? "" : "s",
		    failed == 1 ? "y" : "ies");
	}
	if (receive_end(sess))
		conclude(sess);
}

/* Nothing more is removed for the entry; a file or link may take the name. */
static void prune_ended(struct session *sess, struct receive_entry *t)
{
	struct receive_prune *p = sess->receive->prune;

	if (!makes_way(t)) {
		if (!sess->end.over)
			finish(sess, t->result < 0 ? &t->why : NULL);
		receive_entry_free(sess, t);
		return;
	}
	if (p->making_way == t) {
		prune_made_way(p->prune);
		p->making_way = NULL;
	}
	receive_retry(sess, t, t->result < 0);
}

static void stepped(struct session *sess, struct receive_entry *t)
{
	struct receive_prune *p = sess->receive->prune;
	unsigned i;

	p->stepping = false;
	for (i = 0; i < p->n_reports && !sess->end.over; i++)
		report(sess, &p->report[i]);
	forget_reports(p);
	if (t->result > 0)
		list_append(p->waiting.next, &t->waiting); /* before all others */
	else
		prune_ended(sess, t);
}

void receive_end_stepped(struct session *sess, struct receive_entry *t)
{
	struct ptcp_err why;
	bool failed;

	if (t->prune != NULL) {
		stepped(sess, t);
		return;
	}
	why = t->why;
	failed = t->result < 0;
	receive_entry_free(sess, t);
	if (failed) {
		err_while(&why, why.code, "destination");
		engine_fail(sess->engine, &why);
		return;
	}
	if (sess->receive->prune == NULL || sess->receive->prune->failure.code == 0)
		receive_report_leftovers(sess);
	conclude(sess);
}

static bool may_step(struct receive_prune *p, struct receive_entry *t)
{
	if (!makes_way(t) || p->making_way == t)
		return true;
	p->making_way = prune_make_way(p->prune, t->dir, t->name) ? t : NULL;
	return p->making_way != NULL;
}

void receive_prune_pump(struct session *sess)
{
	struct receive_prune *p = sess->receive->prune;
	struct receive_entry *t;
	bool over;

	while (p != NULL && !p->stepping && !list_empty(&p->waiting)) {
		t = CONTAINER_OF(p->waiting.next, struct receive_entry, waiting);
		over = sess->end.over || t->ended;
		if (!over && buf_len(&engine_outbox(sess->engine)->b) > OUTBOX_BYTES)
			return;
		list_remove(&t->waiting);
		p->stepping = !over && may_step(p, t);
		if (p->stepping)
			receive_enqueue(sess, t, WORK_PRUNE);
		else
			prune_ended(sess, t);
	}
}

bool receive_prune_idle(const struct receive_side *r)
{
	return r->prune == NULL || list_empty(&r->prune->waiting);
}

/* ---- The end, behind the last entry and all deletions: leftovers ---- */

void receive_report_leftovers(struct session *sess)
{
	const struct leftover_count *c = &sess->receive->left;
	struct wire_leftovers f = { c->files, c->bytes, (uint64_t)(c->age_s * 1e3) };

	if (c->files == 0 || engine_failed(sess->engine) > 0 || sess->end.over)
		return;
	engine_report_leftovers(sess->engine, &f);
	sess->o.ops->leftovers(sess->o.arg, &f);
}

/* The minimum age that includes the youngest, now and later. */
static const char *older_text(char out[40], uint64_t age_ms)
{
	uint64_t s = age_ms / 1000;

	if (s >= 86400)
		return strcpy(out, ""); /* the default */
	snprintf(out, 40, s >= 7200 ? "--older %lluh " : s >= 120 ? "--older %llum " : "--older %llus ",
	    (unsigned long long)(s >= 7200 ? s / 3600 : s >= 120 ? s / 60 : s));
	return out;
}

const char *session_leftovers_text(char out[SESSION_LEFTOVERS_BYTES], const struct wire_leftovers *f,
    const char *where)
{
	char size[UNITS_TEXT_BYTES], older[40];

	snprintf(out, SESSION_LEFTOVERS_BYTES, "destination: %llu leftover%s of interrupted transfers, %s, without a "
	    "source (remove with: ptcp clean %s%s)", (unsigned long long)f->files, plural(f->files),
	    units_size_text(size, f->bytes), older_text(older, f->age_ms), where);
	return out;
}

/* The directories of the transfer were listed when they ended; the base gets its attributes now, as further sources,
 * and deletions, may have changed it. */
bool receive_end(struct session *sess)
{
	struct receive_side *r = sess->receive;
	struct receive_entry *t;
	struct ptcp_err e;

	if (sess->receive->pipe != NULL)
		return true;
	if ((engine_open(sess->engine)->flags & WIRE_OPEN_DRY_RUN) != 0) {
		receive_report_leftovers(sess);
		return receive_room_suffices(sess);
	}
	if ((t = r->of_base) == NULL && (t = receive_entry_calloc(sess, &e)) == NULL) {
		engine_fail(sess->engine, &e);
		return false;
	}
	r->of_base = NULL;
	dir_unref(t->self);
	t->self = r->place.contents && !r->rules.write_once ? dir_ref(r->place.base) : NULL;
	receive_enqueue(sess, t, WORK_END);
	return false;
}

bool receive_finish(struct session *sess)
{
	return sess->receive == NULL || (!receive_prune_begin(sess) && receive_end(sess));
}
