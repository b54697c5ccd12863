#include "cli/running.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/local_sock.h"
#include "core/thread.h"
#include "core/timetable.h"
#include "core/units.h"
#include "core/userdir.h"

#define REQUEST_MS 1000        /* limit from the connection to the request */
#define CHECK_MS 5000          /* time between checks of the socket's file */
#define SUFFIXES 9             /* max suffixes of a default name: containers may share a directory, and process IDs */
#define SOCKET_BYTES (USERDIR_RUNTIME_BYTES + RUNNING_NAME_BYTES + 8)

struct running {
	struct running_opts o;
	char name[RUNNING_NAME_BYTES], path[SOCKET_BYTES];
	struct stat file;              /* status of the socket */
	int listener;                  /* -1: no socket */
	int wake;                      /* process_wake_fd(): the end, or SIGUSR2 */
	char limit[TIMETABLE_BYTES];   /* "": none */
	bool lifted;                   /* no limit, by SIGUSR2 or "rate none"; SIGUSR2 sets the limit again */
	struct mono started;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;          /* guards the next two */
	json_t *fields;
	bool over;
};

bool running_name_ok(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strspn(name, letters);

	return n > 0 && n < RUNNING_NAME_BYTES && name[n] == '\0' && strchr("._-", name[0]) == NULL;
}

int running_set_name(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	if (!running_name_ok(text))
		return opt_reject(o, text, e, "no name (1 to %d letters, digits, '.', '_' and '-', beginning with a "
		    "letter or a digit)", RUNNING_NAME_BYTES - 1);
	return opt_text(args, o, text, e);
}

/* ---- The socket ---- */

/* In one directory. */
static int listen_in(struct running *r, const char *dir, struct ptcp_err *e)
{
	int lock = userdir_private(dir, true, e), result;

	if (lock < 0)
		return lock;
	snprintf(r->path, sizeof r->path, "%s/%s.sock", dir, r->name);
	if ((result = local_sock_listen(&r->listener, r->path, 0600, e)) < 0)
		r->listener = -1;
	else if (lstat(r->path, &r->file) < 0)
		memset(&r->file, 0, sizeof r->file);
	fd_close(&lock);
	return result;
}

/* As r->name, in the first directory that can be used; an error is the first directory's. *taken: a running command has
 * this name. */
static int listen_anywhere(struct running *r, bool *taken, struct ptcp_err *e)
{
	char dir[USERDIR_RUNTIME][USERDIR_RUNTIME_BYTES];
	unsigned n = userdir_runtime(dir), i;
	struct ptcp_err why;
	int result = PTCP_ECONFIG;

	*taken = running_exists(r->name);
	for (i = 0; i < n && result < 0 && !*taken; i++) {
		result = listen_in(r, dir[i], &why);
		*taken = result < 0 && why.sys == EADDRINUSE; /* a simultaneous command has the name */
		if (i == 0)
			*e = why;
	}
	return *taken ? err_set(e, PTCP_ECONFIG, "--name %s: a running transfer has this name (choose another name)",
	    r->name) : result;
}

static const char *preferred; /* NULL: none */

void running_prefer(const char *name) { preferred = name; }

/* Another user can take /tmp/ptcp-UID, but not prevent the command. */
static int open_socket(struct running *r, struct ptcp_err *e)
{
	bool taken = false;
	int result = PTCP_ECONFIG, i;

	for (i = preferred == NULL; result < 0 && i <= SUFFIXES; i++) {
		if (r->o.name != NULL)
			snprintf(r->name, sizeof r->name, "%s", r->o.name);
		else if (i == 0)
			snprintf(r->name, sizeof r->name, "%s", preferred);
		else if (i == 1)
			snprintf(r->name, sizeof r->name, "%s-%ld", r->o.command, (long)getpid());
		else
			snprintf(r->name, sizeof r->name, "%s-%ld-%d", r->o.command, (long)getpid(), i);
		result = listen_anywhere(r, &taken, e);
		if (result < 0 && taken && r->o.name != NULL)
			return result;
		if (!taken)
			break;
	}
	if (result < 0 && !r->o.quiet)
		terminal_line("ptcp: warning: %s: no other command can find this one as %s (ptcp status and ptcp rate)",
		    e->msg, r->name);
	return 0;
}

static bool is_present(const struct running *r)
{
	struct stat st;

	return lstat(r->path, &st) == 0 && st.st_dev == r->file.st_dev && st.st_ino == r->file.st_ino;
}

/* The runtime directory of a login is removed at logout, although its processes may continue. */
static void check_socket(struct running *r)
{
	struct ptcp_err e;
	bool taken;

	if (r->listener < 0 || is_present(r))
		return;
	fd_close(&r->listener);
	listen_anywhere(r, &taken, &e);
}

static void close_socket(struct running *r)
{
	char *slash;

	if (r->listener < 0)
		return;
	if (is_present(r))
		unlink(r->path);
	fd_close(&r->listener);
	if ((slash = strrchr(r->path, '/')) != NULL) {
		*slash = '\0';
		userdir_private_remove(r->path);
	}
}

/* ---- The rate limit ---- */

static const char *limit_of(const struct running *r) { return r->lifted || r->limit[0] == '\0' ? NULL : r->limit; }

/* `rate` NULL: lifts the limit. */
static int apply(struct running *r, const char *rate, struct ptcp_err *e)
{
	int result = r->o.set_rate(r->o.arg, rate, e);

	if (result < 0)
		return result;
	r->lifted = rate == NULL;
	if (rate != NULL && rate != r->limit)
		snprintf(r->limit, sizeof r->limit, "%s", rate);
	if (!r->o.quiet)
		terminal_line("ptcp: rate limit: %s", rate != NULL ? rate : "none");
	return 0;
}

static void toggle(struct running *r)
{
	struct ptcp_err e;

	if (r->o.set_rate == NULL)
		return;
	if (r->limit[0] == '\0') {
		terminal_line("ptcp: SIGUSR2: there is no rate limit to lift (ptcp rate %s RATE sets a limit)",
		    r->name);
		return;
	}
	if (apply(r, r->lifted ? r->limit : NULL, &e) < 0)
		terminal_line("ptcp: warning: SIGUSR2: %s", e.msg);
}

static bool is_none(const char *rate)
{
	uint64_t bps;

	return strcmp(rate, "none") == 0 || (units_parse_rate(rate, &bps) == 0 && bps == 0);
}

static int set_rate(struct running *r, const char *rate, struct ptcp_err *e)
{
	if (r->o.set_rate == NULL)
		return err_set(e, PTCP_EUSAGE,
		    "%s: no rate limit that can change (only those of ptcp send and ptcp recv can)", r->name);
	return apply(r, is_none(rate) ? NULL : rate, e);
}

/* ---- Requests ---- */

static json_t *status(struct running *r)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o}", "event", "status", "name", r->name,
	    "command", r->o.command,
	    "pid", (int)getpid(), "seconds", json_seconds((double)mono_diff_ns(mono_now(), r->started) / 1e9), "limit",
	    json_text(limit_of(r)));

	pthread_mutex_lock(&r->lock);
	if (j != NULL && r->fields != NULL)
		json_object_update(j, r->fields);
	pthread_mutex_unlock(&r->lock);
	return j;
}

static json_t *answer(struct running *r, const char *request)
{
	struct ptcp_err e;
	const char *rate;
	int result = 0;

	switch (running_request_parse(request, &rate)) {
	case RUNNING_STATUS:
		break;
	case RUNNING_RATE:
		result = set_rate(r, rate, &e);
		break;
	case RUNNING_CANCEL:
		kill(getpid(), SIGTERM);
		break;
	case RUNNING_UNKNOWN:
		result = err_set(&e, PTCP_EPROTO, "%s: unknown request (both ptcp must have the same version)",
		    r->name);
	}
	return result == 0 ? status(r) : json_pack("{s:o, s:i}", "error", json_text(e.msg), "code", result);
}

/* A process of another user cannot open the directory; still it is refused here. */
static bool is_this_user(int fd)
{
	uid_t user;
	pid_t process;

	return local_sock_peer(fd, &user, &process) && user == geteuid();
}

/* A client that has given up, while this process was suspended, has told its user that nothing was changed. */
static bool is_waiting(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 0;
}

static void serve_one(struct running *r)
{
	int fd = local_sock_accept(r->listener), passed = -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char request[TIMETABLE_BYTES + 16], *text = NULL;
	json_t *j = NULL;

	if (fd < 0)
		return;
	if (is_this_user(fd) && poll(&p, 1, REQUEST_MS) == 1 &&
	    local_sock_receive(fd, request, sizeof request, &passed) == 1 && is_waiting(fd) &&
	    (j = answer(r, request)) != NULL &&
	    (text = json_dumps(j, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15))) != NULL)
		local_sock_send(fd, text, -1);
	json_decref(j);
	free(text);
	fd_close(&passed);
	fd_close(&fd);
}

static bool is_over(struct running *r)
{
	bool over;

	pthread_mutex_lock(&r->lock);
	over = r->over;
	pthread_mutex_unlock(&r->lock);
	return over;
}

static void *run(void *arg)
{
	struct running *r = arg;
	uint64_t n;

	while (!is_over(r)) {
		struct pollfd p[2] = { { .fd = r->wake, .events = POLLIN }, { .fd = r->listener, .events = POLLIN } };

		if (poll(p, 2, CHECK_MS) == 0)
			check_socket(r);
		if ((p[1].revents & POLLIN) != 0)
			serve_one(r);
		if ((p[0].revents & POLLIN) != 0 && read(r->wake, &n, sizeof n) == sizeof n &&
		    process_toggle_requested())
			toggle(r);
	}
	return NULL;
}

/* ---- Start and end ---- */

int running_new(struct running **out, const struct running_opts *o, struct ptcp_err *e)
{
	struct running *r = calloc(1, sizeof *r);
	int result;

	if (r == NULL)
		return err_nomem(e);
	r->o = *o;
	r->listener = -1;
	r->started = mono_now();
	pthread_mutex_init(&r->lock, NULL);
	if (o->limit != NULL && !is_none(o->limit))
		snprintf(r->limit, sizeof r->limit, "%s", o->limit);
	if ((r->wake = process_wake_fd()) < 0)
		result = err_set(e, PTCP_ECONFIG, "cannot create an eventfd (raise the limit of open files)");
	else
		result = open_socket(r, e);
	if (result < 0) {
		running_free(r);
		return result;
	}
	*out = r;
	return 0;
}

int running_start(struct running *r, struct ptcp_err *e)
{
	int result = thread_start(&r->thread, run, r, e);

	r->has_thread = result == 0;
	return result;
}

void running_report(struct running *r, json_t *fields)
{
	json_t *old = fields;

	if (r != NULL && fields != NULL) {
		pthread_mutex_lock(&r->lock);
		old = r->fields;
		r->fields = fields;
		pthread_mutex_unlock(&r->lock);
	}
	json_decref(old);
}

void running_report_transfer(struct running *r, const struct running_transfer *t)
{
	const struct ptcp_progress *g = &t->progress;

	running_report(r, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	    "state", t->state,
	    "source", json_text(t->source), "sources", json_count(t->sources), "destination", json_text(t->destination),
	    "bytes", json_count(g->bytes), "total_bytes", g->total_known ? json_count(g->total_bytes) : json_null(),
	    "files", json_count(g->files), "failed", json_count(g->failed), "wire_bytes", json_count(g->wire_bytes),
	    "saved_bytes", json_count(g->saved_bytes), "resumed_bytes", json_count(g->resumed_bytes), "streams",
	    json_count(g->streams), "rate_bps", json_rate(t->rate_bps), "eta_s", json_seconds(t->eta_s), "movers",
	    json_movers(t->movers, t->n_movers)));
}

void running_free(struct running *r)
{
	uint64_t one = 1;

	if (r == NULL)
		return;
	if (r->has_thread) {
		pthread_mutex_lock(&r->lock);
		r->over = true;
		pthread_mutex_unlock(&r->lock);
		(void)!write(r->wake, &one, sizeof one); /* fails only if the thread has been woken already */
		pthread_join(r->thread, NULL);
	}
	close_socket(r);
	json_decref(r->fields);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
