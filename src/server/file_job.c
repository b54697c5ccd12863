#include "server/file_job.h"

#include <string.h>
#include <sys/stat.h>

#include "core/err.h"
#include "core/units.h"
#include "server/record.h"

#define REPORT_NS (1 * NS_PER_S)

void file_job_fini(struct file_job *j)
{
	request_fini(&j->request);
	buf_fini(&j->found.b);
	memory_account_free(j->memory);
	j->memory = NULL;
}

static void job_free(struct file_job *j)
{
	struct memory_account *memory = j->memory;
	struct job_set *t = j->set;
	bool started = j->started;

	j->memory = NULL; /* its lists have memory of the account until the end */
	timer_free(j->timer);
	file_job_fini(j);
	j->ops->free(j);
	memory_account_free(memory);
	if (!started)
		return;
	t->n_file_jobs--;
	t->gone(t->arg);
}

static void over(struct file_job *j, const struct ptcp_err *why)
{
	struct ptcp_server_record r = { .client = j->client, .name = j->request.auth.name, .address = j->address,
		.third = "", .path = request_first(&j->request),
		.seconds = (double)mono_diff_ns(mono_now(), j->since) / 1e9,
		.why = j->conn == NULL ? "the client has left" : "done" };

	j->ops->record(j, &r);
	record_end(&j->set->context->log, j->set->o, &r, why);
	if (j->conn != NULL)
		j->reports.over(j->conn, why);
	job_free(j);
}

struct span file_job_cut(const char *s, size_t max)
{
	size_t n = strlen(s);

	return (struct span){ (const uint8_t *)s, n < max ? n : max };
}

uint8_t file_job_type(uint32_t format)
{
	switch (format) {
	case S_IFREG: return WIRE_LISTED_FILE;
	case S_IFDIR: return WIRE_LISTED_DIR;
	case S_IFLNK: return WIRE_LISTED_SYMLINK;
	case S_IFIFO: return WIRE_LISTED_FIFO;
	case S_IFSOCK: return WIRE_LISTED_SOCKET;
	case S_IFCHR: return WIRE_LISTED_CHAR_DEVICE;
	default: return WIRE_LISTED_BLOCK_DEVICE;
	}
}

void file_job_fail(struct file_job *j, const char *path, const struct ptcp_err *why)
{
	struct wire_listed f = { .path = file_job_cut(path, WIRE_PATH_MAX), .why = outbox_why(why) };

	OUTBOX_PUT(&j->found, listed, LISTED, &f);
}

/* ---- Steps ---- */

static void step(struct io_call *k)
{
	struct file_job *j = CONTAINER_OF(k, struct file_job, call);

	k->result = j->ops->step(j, &k->why);
}

static void on_step(struct io_call *k);

/* Half of the processors stay with transfers. */
static unsigned turns_max(const struct job_set *t)
{
	return t->context->n_workers > 1 ? t->context->n_workers / 2 : 1;
}

static void start_step(struct file_job *j)
{
	j->set->n_turns += j->ops->takes_turns;
	io_call_start(&j->call, j->set->context, step, on_step);
}

static void next_step(struct file_job *j)
{
	if (j->ops->takes_turns && j->set->n_turns >= turns_max(j->set)) {
		list_append(&j->set->turns, &j->turn);
		j->queued = true;
		return;
	}
	start_step(j);
}

static void leave_queue(struct file_job *j)
{
	list_remove(&j->turn);
	j->queued = false;
}

/* A step that counted is over: the next one may begin, before the next step of the same job. */
static void end_turn(struct job_set *t)
{
	struct file_job *first;

	t->n_turns--;
	if (list_empty(&t->turns))
		return;
	first = CONTAINER_OF(t->turns.next, struct file_job, turn);
	leave_queue(first);
	start_step(first);
}

static void put_found(struct file_job *j)
{
	size_t n = buf_len(&j->found.b);
	uint8_t *p;

	if (n == 0 || (p = outbox_room(j->reports.out, n)) == NULL)
		return; /* full: the connection ends */
	memcpy(p, buf_head(&j->found.b), n);
	outbox_added(j->reports.out, n);
	buf_consume(&j->found.b, n);
}

static void on_timer(void *arg);
static void go_on(struct file_job *j);

static void put_totals_when_due(struct file_job *j, bool final)
{
	if (!final && mono_diff_ns(mono_now(), j->reported) < REPORT_NS)
		return;
	j->ops->put_totals(j, j->reports.out, final);
	j->reported = mono_now();
}

/* The client hears of a job that waits. */
static void wait_until(struct file_job *j, struct mono at)
{
	struct ptcp_err why;

	if (j->timer == NULL && timer_new(&j->timer, j->set->context->control, on_timer, j, &why) < 0) {
		over(j, &why);
		return;
	}
	j->timed = true;
	timer_set(j->timer, mono_min(at, mono_add_ns(j->reported, REPORT_NS)));
}

/* What the last step has found is the client's. */
static void deliver(struct file_job *j)
{
	bool done = j->call.result == 0;

	put_found(j);
	put_totals_when_due(j, done);
	if (done) {
		over(j, NULL);
		return;
	}
	j->phase = j->again_ns > 0 ? FILE_JOB_AGAIN : FILE_JOB_STEPS;
	j->again = mono_add_ns(mono_now(), j->again_ns);
	j->waits = j->reports.flush(j->conn);
	if (!j->waits)
		go_on(j);
}

static void pace(struct file_job *j)
{
	struct pacing *p = &j->set->context->pacing;
	struct pacer *limit = j->ops->receives ? &p->in : &p->out;
	uint64_t moved = j->ops->moved != NULL ? j->ops->moved(j) : 0;
	struct mono at;
	size_t n;

	j->phase = FILE_JOB_PACED;
	while (j->paced < moved && pacer_limits(limit)) {
		if ((n = pacer_take(limit, &j->limit_turn, mono_now(), &at)) == 0) {
			wait_until(j, at);
			return;
		}
		j->paced += n;
	}
	j->paced = moved;
	deliver(j);
}

static void go_on(struct file_job *j)
{
	if (j->phase == FILE_JOB_PACED) {
		pace(j);
	} else if (j->phase == FILE_JOB_AGAIN && mono_now().ns < j->again.ns) {
		wait_until(j, j->again);
	} else {
		j->again_ns = 0;
		next_step(j);
	}
}

static void on_timer(void *arg)
{
	struct file_job *j = arg;

	j->timed = false;
	put_totals_when_due(j, false);
	j->waits = j->reports.flush(j->conn);
	if (!j->waits)
		go_on(j);
}

static void on_step(struct io_call *k)
{
	struct file_job *j = CONTAINER_OF(k, struct file_job, call);

	if (j->ops->takes_turns)
		end_turn(j->set);
	if (j->conn != NULL && j->found.failed)
		k->result = err_nomem(&k->why);
	if (j->conn == NULL || k->result < 0)
		over(j, k->result < 0 ? &k->why : NULL);
	else
		pace(j);
}

void file_job_resume(struct file_job *j)
{
	if (!j->waits)
		return;
	j->waits = false;
	go_on(j);
}

void file_job_leave(struct file_job *j)
{
	j->conn = NULL;
	if (!j->started) {
		job_free(j);
		return;
	}
	if (j->queued)
		leave_queue(j);
	else if (!j->waits && !j->timed)
		return;
	over(j, NULL);
}

/* ---- The start ---- */

static void on_found(struct request *a, const struct ptcp_err *why)
{
	struct file_job *j = CONTAINER_OF(a, struct file_job, request);

	if (why == NULL && j->conn != NULL && j->ops->begin(j, &j->call.why) < 0)
		why = &j->call.why;
	if (why != NULL || j->conn == NULL)
		over(j, why);
	else
		next_step(j);
}

int file_job_init(struct file_job *j, const struct file_job_ops *ops, struct job_set *t, const struct job_client *c,
    size_t bytes, struct ptcp_err *e)
{
	int r;

	if ((r = memory_account_new(&j->memory, t->memory, c->fingerprint, e)) < 0)
		return r;
	j->ops = ops;
	j->set = t;
	j->conn = c->conn;
	j->reports = c->reports;
	strcpy(j->client, c->fingerprint);
	strncpy(j->address, c->address, sizeof j->address - 1);
	j->request = (struct request){ .context = t->context, .root = t->root, .roots = t->roots,
		.own_dirs = t->own_dirs, .quotas = t->quotas, .o = t->o, .own = t->ephemeral, .auth = *c->auth,
		.memory = j->memory };
	j->found.b.memory = j->memory;
	j->since = j->reported = mono_now();
	return memory_charge(j->memory, bytes, e);
}

void file_job_start(struct file_job *j)
{
	j->set->n_file_jobs++;
	j->started = true;
	request_find(&j->request, on_found);
}
