/* Queries of the servers of a skeleton. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "cli/process.h"
#include "cli/show/terminal.h"
#include "cli/skeleton/skeleton.h"
#include "core/err.h"

#define AT_ONCE 16
#define CANCEL_MS 100 /* longest time between checks for a signal */

/* A request to a server. */
struct ask_request {
	struct ptcp_task *task; /* NULL: ended, or not made */
	size_t host, relay;     /* relay: host of the relay; 0: direct */
	int result;
	struct ptcp_err why;
};

struct asking {
	struct skeleton *skeleton;
	const struct ptcp_transfer_opts *o;
	bool show;
};

/* ---- Requests ---- */

/* Servers answer status queries of every authorized client, also without files or measurements. */
static int make_status(struct ask_request *q, const struct asking *a)
{
	const char *relay = a->skeleton->host[q->relay].address;
	struct ptcp_transfer_opts o = *a->o;

	if (q->relay > 0) {
		o.paths = &relay;
		o.n_paths = 1;
	}
	return ptcp_status_new(&q->task, &o, a->skeleton->host[q->host].address, false, &q->why);
}

/* The URL of a source, freed by the caller; in URLs, % begins an escape. */
static char *url_of(const struct skeleton_host *h)
{
	const char *path = skeleton_path(h);
	char *url = malloc(strlen("ptcp://") + strlen(h->address) + 3 * strlen(path) + 1), *at = url;

	if (url == NULL)
		return NULL;
	at += sprintf(at, "ptcp://%s", h->address);
	for (; *path != '\0'; path++)
		at += sprintf(at, *path == '%' ? "%%25" : "%c", *path);
	return url;
}

static int make_count(struct ask_request *q, const struct asking *a)
{
	char *url = url_of(&a->skeleton->host[q->host]);
	struct ptcp_manage_opts none;
	int r;

	if (url == NULL)
		return err_nomem(&q->why);
	ptcp_manage_opts_init(&none);
	r = ptcp_manage_new(&q->task, a->o, PTCP_COUNT, (const char *const *)&url, 1, &none, &q->why);
	free(url);
	return r;
}

static void end_count(struct skeleton_host *h, const struct ask_request *q)
{
	struct ptcp_manage_result total;

	ptcp_manage_result_init(&total);
	ptcp_manage_totals(q->task, &total);
	h->counted = q->result == 0;
	h->bytes = total.bytes;
}

/* ---- Many at once ---- */

typedef int make_fn(struct ask_request *q, const struct asking *a);
typedef void end_fn(struct skeleton_host *h, const struct ask_request *q);

/* Steps the tasks until all have ended. */
static void run_requests(struct ask_request *q, size_t n, const struct asking *a, end_fn *end)
{
	struct pollfd fd[AT_ONCE];
	size_t i, running;
	int ms, least;

	for (;;) {
		for (i = running = 0, least = CANCEL_MS; i < n; i++) {
			if (q[i].task == NULL)
				continue;
			if (process_stopping())
				ptcp_task_cancel(q[i].task);
			fd[running++] = (struct pollfd){ .fd = ptcp_task_fd(q[i].task), .events = POLLIN };
			ms = ptcp_task_timeout_ms(q[i].task);
			least = ms >= 0 && ms < least ? ms : least;
		}
		if (running == 0)
			return;
		poll(fd, (nfds_t)running, least);
		for (i = 0; i < n; i++)
			if (q[i].task != NULL && (q[i].result = ptcp_task_step(q[i].task, &q[i].why)) <= 0) {
				if (end != NULL)
					end(&a->skeleton->host[q[i].host], &q[i]);
				ptcp_task_free(q[i].task);
				q[i].task = NULL;
			}
	}
}

/* Makes and runs requests, at most `at_once` at a time. PTCP_ECANCELED, PTCP_ENOMEM. */
static int ask_all(struct ask_request *q, size_t n, size_t at_once, const struct asking *a, make_fn *make, end_fn *end,
    struct ptcp_err *e)
{
	char line[100];
	size_t i, k, of;

	for (i = 0; i < n; i += of) {
		of = n - i < at_once ? n - i : at_once;
		snprintf(line, sizeof line, "asking servers: %zu of %zu requests", i, n);
		if (a->show)
			terminal_status(line);
		for (k = i; k < i + of; k++)
			if ((q[k].result = make(&q[k], a)) == 0 &&
			    (q[k].result = ptcp_task_start(q[k].task, &q[k].why)) < 0) {
				ptcp_task_free(q[k].task);
				q[k].task = NULL;
			}
		run_requests(q + i, of, a, end);
		if (a->show)
			terminal_status("");
		if (process_stopping())
			return err_set(e, PTCP_ECANCELED, "interrupted (run the same command again)");
		for (k = i; k < i + of; k++)
			if (q[k].result == PTCP_ENOMEM)
				return err_nomem(e);
	}
	return 0;
}

/* ---- Questions ---- */

/* One server at a time if prompts about unknown servers are possible. */
static int ask_reachable(struct asking *a, struct ask_request *q, struct ptcp_err *e)
{
	struct skeleton *s = a->skeleton;
	size_t i, n = 0;
	int r;

	for (i = 1; i < s->n; i++)
		q[n++] = (struct ask_request){ .host = i };
	if ((r = ask_all(q, n, a->o->trust != NULL ? 1 : AT_ONCE, a, make_status, NULL, e)) < 0)
		return r;
	for (i = 0; i < n; i++)
		if (q[i].result < 0)
			s->host[q[i].host].failed = q[i].why;
	return 0;
}

static int ask_data(struct asking *a, struct ask_request *q, struct ptcp_err *e)
{
	struct skeleton *s = a->skeleton;
	struct skeleton_host *h;
	size_t i, n = 0;
	int r;

	for (i = 1; i < s->n; i++)
		if (skeleton_is_source(s, i) && s->host[i].failed.code == 0)
			q[n++] = (struct ask_request){ .host = i };
	if ((r = ask_all(q, n, AT_ONCE, a, make_count, end_count, e)) < 0)
		return r;
	for (i = 0; i < n; i++) {
		h = &s->host[q[i].host];
		if (q[i].result == PTCP_EREFUSED && h->path == NULL)
			h->relay = true; /* serves us no files */
		else if (q[i].result < 0)
			h->failed = q[i].why;
	}
	return 0;
}

/* Each source through each relay, in the direction that collections use. `q` NULL: counts only. */
static size_t list_routes(const struct skeleton *s, struct ask_request *q)
{
	size_t relay, i, n = 0;

	for (relay = 1; relay < s->n; relay++)
		for (i = 1; i < s->n && s->host[relay].relay && s->host[relay].failed.code == 0; i++) {
			if (i == relay || !skeleton_is_source(s, i) || s->host[i].failed.code != 0)
				continue;
			if (q != NULL)
				q[n] = (struct ask_request){ .host = i, .relay = relay };
			n++;
		}
	return n;
}

static int ask_relays(struct asking *a, struct ptcp_err *e)
{
	struct skeleton *s = a->skeleton;
	size_t i, n = list_routes(s, NULL);
	struct ask_request *q = calloc(n + 1, sizeof *q);
	int r;

	if (q == NULL)
		return err_nomem(e);
	list_routes(s, q);
	r = ask_all(q, n, AT_ONCE, a, make_status, NULL, e);
	for (i = 0; r == 0 && i < n; i++) {
		struct skeleton_host *k = &s->host[q[i].relay];

		if (q[i].result < 0 && k->closed.code == 0) {
			k->closed = q[i].why;
			k->closed_to = s->host[q[i].host].name;
		}
	}
	free(q);
	return r;
}

int skeleton_ask(struct skeleton *s, const struct ptcp_transfer_opts *o, bool show, struct ptcp_err *e)
{
	struct ask_request *q = calloc(s->n, sizeof *q);
	struct asking a = { s, o, show };
	int r;

	if (q == NULL)
		return err_nomem(e);
	if ((r = ask_reachable(&a, q, e)) == 0 && (r = ask_data(&a, q, e)) == 0)
		r = ask_relays(&a, e);
	free(q);
	return r;
}
