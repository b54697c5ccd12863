#include "server/cleaning.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "server/job_conn.h"
#include "server/request.h"
#include "store/leftover.h"

#define STEP_ENTRIES 256          /* other clients' work on the I/O threads comes between two steps */
#define REPORT_NS (1 * NS_PER_S)

struct cleaning {
	struct job_set *set;
	struct job_conn *conn;    /* NULL: closed */
	char client[PTCP_FINGERPRINT_BYTES];
	struct request request;
	struct leftover_opts opts;
	struct leftovers *leftovers;
	struct dir *base;         /* the request's */
	struct outbox found;      /* LEFTOVER frames of a step; of the I/O thread during the step */
	unsigned n_listed;
	int result;               /* of a step */
	struct ptcp_err why;
	struct mono reported;
	struct io_job io;
	struct msg msg;
};

static void cleaning_free(struct cleaning *k)
{
	struct job_set *t = k->set;

	leftovers_free(k->leftovers);
	request_fini(&k->request);
	buf_fini(&k->found.b);
	free(k);
	t->n_cleaning--;
	t->gone(t->arg);
}

static void over(struct cleaning *k, const struct ptcp_err *why)
{
	struct leftover_totals none = { 0 };
	const struct leftover_totals *t = k->leftovers != NULL ? leftovers_totals(k->leftovers) : &none;

	log_at(&k->set->host->log, why != NULL ? LOG_WARN : LOG_INFO, "server", "event=clean-end client=%s files=%llu "
	    "bytes=%llu failed=%llu why=\"%s\"", k->client, (unsigned long long)t->files, (unsigned long long)t->bytes,
	    (unsigned long long)t->failed, why != NULL ? why->msg : k->conn == NULL ? "the client has left" : "done");
	if (k->conn != NULL)
		job_conn_cleaned(k->conn, why);
	cleaning_free(k);
}

/* ---- On an I/O thread ---- */

static struct span cut(const char *s, size_t max)
{
	size_t n = strlen(s);

	return (struct span){ (const uint8_t *)s, n < max ? n : max };
}

static void on_leftover(void *arg, const struct leftover *l)
{
	struct cleaning *k = arg;
	struct wire_leftover f = { .bytes = l->size_bytes, .age_ms = l->age_s > 0 ? (uint64_t)(l->age_s * 1e3) : 0 };
	char *path;

	if (k->n_listed == WIRE_LEFTOVERS_MAX ||
	    (path = dir_path_below(l->dir, k->base, l->name != NULL ? l->name : ".")) == NULL)
		return;
	k->n_listed++;
	f.path = cut(path, WIRE_PATH_MAX);
	if (l->why != NULL)
		f.text = cut(l->why, WIRE_TEXT_MAX);
	OUTBOX_PUT(&k->found, leftover, LEFTOVER, &f);
	free(path);
}

static void on_step(struct msg *m);

static void step(struct io_job *io)
{
	struct cleaning *k = CONTAINER_OF(io, struct cleaning, io);

	k->result = leftovers_step(k->leftovers, STEP_ENTRIES, &k->why);
	k->msg.run = on_step;
	loop_post(k->set->host->control, &k->msg);
}

/* ---- On the control thread ---- */

static void next_step(struct cleaning *k)
{
	k->io.run = step;
	io_submit(k->set->host->io, &k->io);
}

static void put_found(struct cleaning *k)
{
	size_t n = buf_len(&k->found.b);
	uint8_t *p;

	if (n == 0 || (p = outbox_room(job_conn_outbox(k->conn), n)) == NULL)
		return; /* full: the connection ends */
	memcpy(p, buf_head(&k->found.b), n);
	outbox_added(job_conn_outbox(k->conn), n);
	buf_consume(&k->found.b, n);
}

static void put_totals(struct cleaning *k, bool final)
{
	const struct leftover_totals *t = leftovers_totals(k->leftovers);
	struct wire_cleaned f = { t->files, t->bytes, t->in_use, t->recent, t->failed, final };

	OUTBOX_PUT(job_conn_outbox(k->conn), cleaned, CLEANED, &f);
	k->reported = mono_now();
}

static void on_step(struct msg *m)
{
	struct cleaning *k = CONTAINER_OF(m, struct cleaning, msg);
	bool due = k->result == 0 || mono_diff_ns(mono_now(), k->reported) >= REPORT_NS;

	if (k->conn == NULL || k->result < 0) {
		over(k, k->result < 0 ? &k->why : NULL);
		return;
	}
	put_found(k);
	if (due)
		put_totals(k, k->result == 0);
	if (k->result == 0) {
		over(k, NULL);
		return;
	}
	job_conn_flush(k->conn);
	next_step(k);
}

static void on_found(struct request *a, const struct ptcp_err *why)
{
	struct cleaning *k = CONTAINER_OF(a, struct cleaning, request);
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err copy;

	if (why == NULL && (k->base = request_dir(a, &k->why)) == NULL) {
		err_while(&k->why, k->why.code, "%s", text_escape(shown, sizeof shown, request_first(a)));
		why = &k->why;
	}
	if (why == NULL && k->conn != NULL && leftovers_new(&k->leftovers, k->base, &k->opts, &copy) < 0)
		why = &copy;
	if (why != NULL || k->conn == NULL)
		over(k, why);
	else
		next_step(k);
}

/* ---- Requests ---- */

bool cleaning_is_permitted(const struct cleaning *k, const struct authorization *now)
{
	return !now->read_only && strcmp(now->root, k->request.auth.root) == 0;
}

void cleaning_leave(struct cleaning *k) { k->conn = NULL; }

int cleaning_new(struct cleaning **out, struct job_set *t, const struct job_client *c, const struct wire_clean *f,
    struct ptcp_err *e)
{
	struct cleaning *k = calloc(1, sizeof *k);
	char shown[TEXT_NAME_BYTES];
	int r;

	if (k == NULL)
		return err_nomem(e);
	k->set = t;
	k->conn = c->conn;
	strcpy(k->client, c->fingerprint);
	k->request = (struct request){ .host = t->host, .root = t->root, .roots = t->roots,
		.own_dirs = t->own_dirs, .o = t->o, .own = t->ephemeral, .auth = *c->auth };
	k->opts = (struct leftover_opts){ .older_s = (double)f->older_ms / 1e3, .dry_run = f->dry_run, .found = on_leftover,
		.arg = k };
	clock_gettime(CLOCK_REALTIME, &k->opts.now);
	k->reported = mono_now();
	if ((r = request_take_clean(&k->request, f->path, e)) < 0) {
		request_fini(&k->request);
		free(k);
		return r;
	}
	log_at(&t->host->log, LOG_INFO, "server", "event=clean from=%s client=%s path=\"%s\" older_s=%.0f dry_run=%d",
	    c->address, c->fingerprint, text_escape_quoted(shown, sizeof shown, request_first(&k->request)), k->opts.older_s,
	    k->opts.dry_run);
	t->n_cleaning++;
	*out = k;
	request_find(&k->request, on_found);
	return 0;
}
