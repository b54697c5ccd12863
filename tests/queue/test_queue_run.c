/* Queues in a simulated world: jobs, processes and clocks, killed at any moment. Each job is done exactly once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/err.h"
#include "queue/queue_journal.h"
#include "queue/queue_run.h"

enum { JOBS_MAX = 500, HOSTS = 8, DISKS = 3, AT_ONCE = 2, DEAD_HOST = 3, DAY_S = 86400 };

struct sim_job {
	unsigned host, disk, takes_s, fails; /* fails: how many processes fail first */
	bool running, complete;
	int64_t ends_s;   /* in true time */
	unsigned sent;    /* processes that brought the content */
	unsigned starts;
};

struct sim {
	uint64_t seed;
	char dir[64];
	struct job_queue q;
	struct queue_journal journal;
	struct queue_run *run;
	unsigned n;
	struct sim_job job[JOBS_MAX];
	int64_t true_s, shift_s;   /* the clock shows their sum */
	int64_t alive_s;           /* from then on the dead host answers */
	int64_t full_until_s;      /* the disk of the journal is full until then */
	unsigned kill_in, kills;   /* calls of the world until the kill; 0: none */
	bool killed, told;
	unsigned troubles, begun_while_full;
};

static unsigned draw(struct sim *s, unsigned below)
{
	s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(s->seed >> 33) % below;
}

static int64_t clock_s(const struct sim *s) { return s->true_s + s->shift_s; }
static bool is_full(const struct sim *s) { return s->true_s < s->full_until_s; }

/* Whether the run still lives. */
static bool lives(struct sim *s)
{
	if (!s->killed && s->kill_in > 0 && --s->kill_in == 0)
		s->killed = true;
	return !s->killed;
}

static struct sim_job *sim_of(struct sim *s, const struct queue_job *j) { return &s->job[atoi(j->name + 1)]; }

static int sim_prepare(void *arg, struct queue_job *j, struct ptcp_err *e)
{
	struct sim *s = arg;
	const struct sim_job *m = sim_of(s, j);

	(void)e;
	free(j->hosts);
	assert_int_not_equal(asprintf(&j->hosts, "here>host%u", m->host), -1);
	j->disk = m->disk;
	return 0;
}

static void check_limits(const struct sim *s, const struct sim_job *m)
{
	unsigned host = 0, disk = 0, i;

	for (i = 0; i < s->n; i++) {
		host += s->job[i].running && s->job[i].host == m->host;
		disk += s->job[i].running && s->job[i].disk == m->disk;
	}
	assert_true(host <= AT_ONCE);
	assert_true(m->disk == 0 || disk <= AT_ONCE);
}

static int sim_start(void *arg, struct queue_job *j, struct ptcp_err *e)
{
	struct sim *s = arg;
	struct sim_job *m = sim_of(s, j);
	size_t i;

	if (!lives(s))
		return err_set(e, PTCP_EIO, "killed");
	assert_false(m->running);
	assert_int_equal(j->state, QUEUE_RUNNING);
	assert_true(j->task.start_s <= clock_s(s));
	assert_false(queue_blackout(&s->q, j, clock_s(s)).closed);
	for (i = 0; i < j->task.after.n; i++)
		assert_true(sim_of(s, queue_find(&s->q, j->task.after.of[i]))->complete);
	s->begun_while_full += is_full(s);
	m->running = true;
	m->starts++;
	m->ends_s = s->true_s + (m->complete ? 1 : m->takes_s);
	check_limits(s, m);
	return 0;
}

static void sim_stop(void *arg, struct queue_job *j) { sim_of(arg, j)->ends_s = ((struct sim *)arg)->true_s; }

static int sim_lock(void *arg, struct ptcp_err *e)
{
	struct sim *s = arg;

	return !lives(s) ? err_set(e, PTCP_EIO, "killed") : queue_journal_lock(&s->journal, &s->q, -1, e);
}

static int sim_record(void *arg, const struct queue_record *r, struct ptcp_err *e)
{
	struct sim *s = arg;
	int result = 0;

	if (s->killed)
		return err_set(e, PTCP_EIO, "killed");
	if (r == NULL)
		result = 0;
	else if (is_full(s))
		result = err_set(e, PTCP_ENOSPC, "full");
	else if (lives(s))
		result = queue_journal_append(&s->journal, &s->q, r, e);
	else if (draw(s, 2) == 0) /* killed within a write */
		assert_true(ftruncate(s->journal.fd, s->journal.done) == 0 && write(s->journal.fd, r->text,
		    r->n / 2) >= 0);
	queue_journal_unlock(&s->journal);
	return !lives(s) ? err_set(e, PTCP_EIO, "killed") : result; /* or behind one */
}

static void sim_changed(void *arg, const struct queue_job *j) { (void)arg, (void)j; }

static void sim_trouble(void *arg, const struct ptcp_err *e)
{
	struct sim *s = arg;

	if (!s->killed)
		s->told = e != NULL;
	s->troubles += e != NULL && !s->killed;
}

/* Ends processes whose time has come: the content is there first, and the record of that later. */
static void end_processes(struct sim *s)
{
	char name[16];
	unsigned i;

	for (i = 0; i < s->n && !s->killed; i++) {
		struct sim_job *m = &s->job[i];
		struct queue_process p = { .verdict = QUEUE_FINE, .alone = true };

		if (!m->running || m->ends_s > s->true_s)
			continue;
		m->running = false;
		if (m->host == DEAD_HOST && s->true_s < s->alive_s)
			p.verdict = QUEUE_NO_HOST;
		else if (m->fails > 0)
			m->fails--, p.verdict = QUEUE_FAILS;
		else
			m->sent += !m->complete, m->complete = true;
		if (p.verdict != QUEUE_FINE)
			p.error = "fails", p.exit = 1;
		snprintf(name, sizeof name, "j%u", i);
		if (lives(s))
			queue_run_ended(s->run, queue_find(&s->q, name), &p, clock_s(s));
	}
}

/* The next moment at which something happens. */
static void advance(struct sim *s, int64_t wake_s)
{
	int64_t to_s = s->true_s + 10; /* as jobs_run() rests at most so long */
	unsigned i;

	if (wake_s < INT64_MAX && wake_s - s->shift_s < to_s)
		to_s = wake_s - s->shift_s;
	for (i = 0; i < s->n; i++)
		if (s->job[i].running && s->job[i].ends_s < to_s)
			to_s = s->job[i].ends_s;
	s->true_s = to_s > s->true_s ? to_s : s->true_s + 1;
	if (draw(s, 300) == 0) /* somebody sets the clock */
		s->shift_s += (int64_t)draw(s, 2 * DAY_S) - DAY_S;
	if (draw(s, 100) == 0)
		s->full_until_s = s->true_s + 60;
}

static void boot(struct sim *s)
{
	const struct queue_world w = { sim_prepare, sim_start, sim_stop, NULL, sim_lock, sim_record, sim_changed,
	    sim_changed, sim_trouble, s };
	struct ptcp_err e;

	s->killed = s->told = false;
	s->kill_in = 0;
	assert_int_equal(queue_journal_open(&s->journal, s->dir, true, &e), 0);
	if (queue_journal_follow(&s->journal, &s->q, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(queue_run_new(&s->run, &s->q, AT_ONCE, &w, &e), 0);
	if (s->kills > 0)
		s->kill_in = 1 + draw(s, 60);
}

static void halt(struct sim *s)
{
	unsigned i;

	queue_run_free(s->run);
	queue_journal_close(&s->journal);
	queue_free(&s->q);
	for (i = 0; i < s->n; i++)
		s->job[i].running = false;
}

/* Runs until all is done or the kill. */
static void live(struct sim *s)
{
	int64_t wake_s;

	boot(s);
	while (!s->killed) {
		wake_s = queue_run_step(s->run, clock_s(s));
		if (s->killed || queue_run_idle(s->run, clock_s(s)))
			break;
		advance(s, wake_s);
		end_processes(s);
	}
	if (s->killed)
		s->kills--;
}

static void add_jobs(struct sim *s)
{
	struct queue_record r = { .text = NULL };
	char name[16];
	struct ptcp_err e;
	unsigned i, k;

	for (i = 0; i < s->n; i++) {
		struct queue_task t = { .retries = 100000, .priority = (int)draw(s, 3) };

		s->job[i] = (struct sim_job){ .host = draw(s, HOSTS), .disk = draw(s, DISKS), .takes_s = 1 + draw(s,
		    60),
			.fails = draw(s, 8) == 0 ? 1 + draw(s, 3) : 0 };
		for (k = 0; i > 0 && k < 2 && draw(s, 3) == 0; k++) {
			snprintf(name, sizeof name, "j%u", draw(s, i));
			assert_int_equal(queue_texts_add(&t.after, name, &e), 0);
		}
		if (draw(s, 10) == 0)
			t.start_s = clock_s(s) + draw(s, 3600);
		if (draw(s, 10) == 0)
			assert_non_null(t.blackout = strdup(draw(s, 2) == 0 ? "00:00-12:00" : "Tue-Wed 20:00-06:00"));
		snprintf(name, sizeof name, "j%u", i);
		queue_write_add(&r, name, &t, clock_s(s));
		queue_task_fini(&t);
	}
	assert_int_equal(queue_journal_open(&s->journal, s->dir, true, &e), 0);
	assert_int_equal(queue_journal_lock(&s->journal, &s->q, -1, &e), 0);
	assert_int_equal(queue_journal_append(&s->journal, &s->q, &r, &e), 0);
	queue_record_free(&r);
	halt(s);
}

static void run_world(uint64_t seed, unsigned jobs, unsigned kills)
{
	struct sim *s = calloc(1, sizeof *s);
	char path[80], name[16];
	unsigned i, boots = 0;
	struct ptcp_err e;

	assert_non_null(s);
	s->seed = seed;
	s->n = jobs;
	s->kills = kills;
	s->true_s = 1700000000;
	s->alive_s = s->true_s + 2000;
	snprintf(s->dir, sizeof s->dir, "%s/queue.XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(s->dir));
	add_jobs(s);
	do {
		if (boots++ > 0)
			halt(s);
		live(s);
	} while (s->killed);
	assert_false(s->told); /* the disk is full no more */
	for (i = 0; i < s->n; i++) {
		const struct queue_job *j;

		snprintf(name, sizeof name, "j%u", i);
		assert_non_null(j = queue_find(&s->q, name));
		if (j->state != QUEUE_DONE || s->job[i].sent != 1)
			fail_msg("seed %llu: %s is %s, sent %u times", (unsigned long long)seed, name,
			    queue_state_name(j->state),
			    s->job[i].sent);
	}
	assert_int_equal(s->begun_while_full, 0);
	halt(s);
	snprintf(path, sizeof path, "%s/journal", s->dir);
	assert_int_equal(queue_journal_open(&s->journal, s->dir, false, &e), 0);
	assert_int_equal(queue_journal_follow(&s->journal, &s->q, &e), 0); /* no record is damaged */
	for (i = 0; i < s->n; i++)
		assert_int_equal(s->q.job[i]->state, QUEUE_DONE);
	queue_journal_close(&s->journal);
	queue_free(&s->q);
	unlink(path);
	rmdir(s->dir);
	if (jobs == JOBS_MAX)
		print_message("# %u jobs, %u kills, the disk was full %u times\n", jobs, boots - 1, s->troubles);
	free(s);
}

static void killed_200_times(void **state)
{
	(void)state;
	run_world(1, JOBS_MAX, 200);
}

static void many_worlds(void **state)
{
	const char *more = getenv("SEEDS");
	uint64_t seed, n = more != NULL ? strtoull(more, NULL, 10) : 40;

	(void)state;
	for (seed = 100; seed < 100 + n; seed++)
		run_world(seed, 20, 20);
}

/* ---- Single decisions ---- */

struct desk {
	struct job_queue q;
	struct queue_run *run;
	char log[1024]; /* names of jobs in the order of their beginnings, and "-NAME" for those told to end */
	int prepared;   /* what prepare answers */
	unsigned skipped;
	bool full, lists_full, told; /* the disk of the journal, and that of lists of failed pairs */
};

static int desk_prepare(void *arg, struct queue_job *j, struct ptcp_err *e)
{
	const struct desk *d = arg;

	free(j->hosts);
	assert_non_null(j->hosts = strdup(j->task.destination));
	j->disk = 0;
	return d->prepared < 0 ? err_set(e, PTCP_EIO, "no such list") : d->prepared;
}

static void note(struct desk *d, const char *mark, const char *name)
{
	size_t n = strlen(d->log);

	snprintf(d->log + n, sizeof d->log - n, "%s%s%s", n > 0 ? " " : "", mark, name);
}

static int desk_start(void *arg, struct queue_job *j, struct ptcp_err *e) { (void)e; note(arg, "", j->name); return 0; }
static void desk_stop(void *arg, struct queue_job *j) { note(arg, "-", j->name); }
static int desk_skip(void *arg, struct queue_job *j, struct ptcp_err *e)
{
	struct desk *d = arg;

	(void)j;
	if (d->lists_full)
		return err_set(e, PTCP_ENOSPC, "full");
	d->skipped++;
	return 0;
}
static int desk_lock(void *arg, struct ptcp_err *e) { (void)arg, (void)e; return 0; }

static int apply_record(struct job_queue *q, const struct queue_record *r, struct ptcp_err *e)
{
	char *copy = strdup(r->text), *line = copy, *end, *fields;
	const char *word;
	int result = 0;

	for (; result == 0 && (end = strchr(line, '\n')) != NULL; line = end + 1) {
		assert_true(queue_record_read(line, (size_t)(end - line), &word, &fields));
		result = queue_apply(q, word, fields, e);
	}
	free(copy);
	return result;
}

static int desk_record(void *arg, const struct queue_record *r, struct ptcp_err *e)
{
	struct desk *d = arg;

	if (r == NULL)
		return 0;
	return d->full ? err_set(e, PTCP_ENOSPC, "full") : apply_record(&d->q, r, e);
}

static void desk_trouble(void *arg, const struct ptcp_err *e) { ((struct desk *)arg)->told = e != NULL; }

static void desk_overdue(void *arg, const struct queue_job *j) { note(arg, "!", j->name); }

static void desk_open(struct desk *d, unsigned at_once)
{
	const struct queue_world w = { desk_prepare, desk_start, desk_stop, desk_skip, desk_lock, desk_record,
	    sim_changed, desk_overdue, desk_trouble, d };
	struct ptcp_err e;

	memset(d, 0, sizeof *d);
	assert_int_equal(queue_run_new(&d->run, &d->q, at_once, &w, &e), 0);
}

static void desk_close(struct desk *d)
{
	queue_run_free(d->run);
	queue_free(&d->q);
}

static void desk_add(struct desk *d, const char *name, const char *host, const char *after, int priority, bool pairs)
{
	struct queue_record r = { .text = NULL };
	struct queue_task t = { .retries = 1, .priority = priority };
	struct ptcp_err e;

	assert_non_null(t.destination = strdup(host));
	if (pairs)
		assert_non_null(t.pairs = strdup("list"));
	if (after != NULL)
		assert_int_equal(queue_texts_add(&t.after, after, &e), 0);
	queue_write_add(&r, name, &t, 1);
	assert_int_equal(apply_record(&d->q, &r, &e), 0);
	queue_record_free(&r);
	queue_task_fini(&t);
}

static void desk_order(struct desk *d, const char *word, const char *name)
{
	struct queue_record r = { .text = NULL };
	struct ptcp_err e;

	queue_write_order(&r, word, name, 1);
	assert_int_equal(apply_record(&d->q, &r, &e), 0);
	queue_record_free(&r);
}

static void desk_ended(struct desk *d, const char *name, enum queue_verdict v, uint64_t position, bool alone,
    int64_t now_s)
{
	const struct queue_process p = { .verdict = v, .exit = v == QUEUE_FINE ? 0 : 1, .error = v == QUEUE_FINE ?
	    NULL : "no",
		.counts = { .position = position, .pairs = position / 10 }, .alone = alone };

	queue_run_ended(d->run, queue_find(&d->q, name), &p, now_s);
}

static enum queue_state state_of(const struct desk *d, const char *name) { return queue_find(&d->q, name)->state; }

static void order_of_jobs(void **state)
{
	struct desk d;

	(void)state;
	desk_open(&d, 1);
	desk_add(&d, "a", "h", NULL, 0, false);
	desk_add(&d, "b", "h", NULL, 0, false);
	desk_add(&d, "urgent", "h", NULL, 5, false);
	desk_add(&d, "last", "h", "a", 9, false);
	desk_add(&d, "elsewhere", "k", NULL, -5, false);
	queue_run_step(d.run, 100);
	assert_string_equal(d.log, "urgent elsewhere"); /* one for each pair of hosts */
	desk_ended(&d, "urgent", QUEUE_FINE, 0, true, 100);
	queue_run_step(d.run, 100);
	desk_ended(&d, "a", QUEUE_FINE, 0, true, 100);
	queue_run_step(d.run, 100);
	desk_ended(&d, "last", QUEUE_FINE, 0, true, 100);
	queue_run_step(d.run, 100);
	assert_string_equal(d.log, "urgent elsewhere a last b");
	assert_false(queue_run_idle(d.run, 100));
	desk_ended(&d, "b", QUEUE_FINE, 0, true, 100);
	desk_ended(&d, "elsewhere", QUEUE_FINE, 0, true, 100);
	assert_true(queue_run_idle(d.run, 100));
	desk_close(&d);
}

static void failures(void **state)
{
	struct desk d;
	int64_t again_s;

	(void)state;
	desk_open(&d, 1);
	desk_add(&d, "a", "h", NULL, 0, false);
	queue_run_step(d.run, 100);
	desk_ended(&d, "a", QUEUE_FAILS, 0, true, 100);
	again_s = queue_run_step(d.run, 100);
	assert_in_range(again_s, 107, 113); /* 10 s, a quarter more or less */
	assert_string_equal(queue_held_by(&d.q, d.q.job[0], 100), "retry");
	queue_run_step(d.run, again_s);
	assert_string_equal(d.log, "a a");
	desk_ended(&d, "a", QUEUE_FAILS, 0, true, again_s);
	assert_int_equal(state_of(&d, "a"), QUEUE_FAILED); /* one retry */
	assert_true(queue_run_idle(d.run, again_s));
	desk_order(&d, "retry", "a");
	queue_run_step(d.run, again_s);
	desk_ended(&d, "a", QUEUE_WRONG, 0, true, again_s);
	assert_int_equal(state_of(&d, "a"), QUEUE_FAILED); /* would fail again */
	desk_close(&d);
}

/* Each overdue job is told once, also by the next run, and not if the record cannot be written. */
static void overdue_once(void **state)
{
	struct desk d;

	(void)state;
	desk_open(&d, 1);
	desk_add(&d, "a", "h", NULL, 0, false);
	desk_add(&d, "b", "h", NULL, 0, false);
	desk_add(&d, "c", "k", "b", 0, false);
	d.q.job[0]->task.deadline_s = d.q.job[1]->task.deadline_s = 150;
	assert_int_equal(queue_run_step(d.run, 100), 151);
	assert_string_equal(d.log, "a");
	queue_run_step(d.run, 150);
	assert_string_equal(d.log, "a");
	d.full = true;
	queue_run_step(d.run, 151);
	assert_true(d.told);
	assert_string_equal(d.log, "a");
	d.full = false;
	queue_run_step(d.run, 156);
	assert_false(d.told);
	queue_run_step(d.run, 160);
	assert_string_equal(d.log, "a !a !b");
	desk_ended(&d, "a", QUEUE_FINE, 0, true, 160);
	desk_order(&d, "cancel", "b");
	queue_run_step(d.run, 170);
	assert_string_equal(d.log, "a !a !b");
	assert_true(queue_is_overdue(d.q.job[0], 170) && d.q.job[0]->alerted && !d.q.job[2]->alerted);
	desk_close(&d);
}

static void desk_close_queue(struct desk *d, const char *windows)
{
	struct queue_record r = { .text = NULL };
	struct ptcp_err e;

	queue_write_blackout(&r, windows, 1);
	assert_int_equal(apply_record(&d->q, &r, &e), 0);
	queue_record_free(&r);
}

/* Windows of the queue stop all jobs, those of a job only this job; both continue afterwards. */
static void windows(void **state)
{
	const int64_t day_s = 1700006400; /* midnight */
	struct desk d;

	(void)state;
	setenv("TZ", "UTC0", 1);
	tzset();
	desk_open(&d, 1);
	desk_add(&d, "a", "h", NULL, 0, false);
	desk_add(&d, "b", "k", NULL, 0, false);
	assert_non_null(d.q.job[1]->blackout = calloc(1, sizeof *d.q.job[1]->blackout));
	assert_int_equal(blackout_parse(d.q.job[1]->blackout, "06:00-07:00", &(struct ptcp_err){ 0 }), 0);
	desk_close_queue(&d, "00:00-01:00,06:30-08:00");
	assert_int_equal(queue_run_step(d.run, day_s), day_s + 3600);
	assert_string_equal(queue_held_by(&d.q, d.q.job[0], day_s), "blackout");
	assert_false(queue_run_idle(d.run, day_s));
	assert_int_equal(queue_run_step(d.run, day_s + 3600), day_s + 6 * 3600);
	assert_string_equal(d.log, "a b");
	assert_int_equal(queue_run_step(d.run, day_s + 6 * 3600), day_s + 6 * 3600 + 1800);
	assert_string_equal(d.log, "a b -b");
	desk_ended(&d, "b", QUEUE_FAILS, 0, true, day_s + 6 * 3600 + 1);
	assert_int_equal(state_of(&d, "b"), QUEUE_WAITING); /* no failure */
	assert_int_equal(d.q.job[1]->tries, 0);
	queue_run_step(d.run, day_s + 6 * 3600 + 1800);
	assert_string_equal(d.log, "a b -b -a");
	desk_ended(&d, "a", QUEUE_FINE, 0, true, day_s + 6 * 3600 + 1801); /* at its end anyway */
	assert_int_equal(state_of(&d, "a"), QUEUE_DONE);
	queue_run_step(d.run, day_s + 7 * 3600);
	assert_string_equal(d.log, "a b -b -a");
	/* until 10:00: 08:00 to 10:00; on the next day 06:00 to 08:00 are closed again */
	assert_int_equal(queue_open_s(&d.q, d.q.job[1], day_s + 7 * 3600, day_s + 10 * 3600), 2 * 3600);
	assert_int_equal(queue_open_s(&d.q, d.q.job[1], day_s + 7 * 3600, day_s + 34 * 3600), (16 + 5 + 2) * 3600);
	desk_close_queue(&d, "none");
	queue_run_step(d.run, day_s + 7 * 3600 + 1);
	assert_string_equal(d.log, "a b -b -a b");
	desk_close(&d);
}

/* The sums of all processes, and of those since a time; the largest impact counts. */
static void counts_since_a_time(void **state)
{
	const struct queue_process first = { .verdict = QUEUE_FAILS, .exit = 1, .error = "no", .alone = true,
		.counts = { .bytes = 10, .files = 3, .seconds = 2, .impact_percent = 4.5, .has_impact = true } },
	    second = { .verdict = QUEUE_FINE, .alone = true,
		.counts = { .bytes = 30, .files = 5, .same_files = 3, .same_bytes = 10, .seconds = 1,
		    .impact_percent = 2, .has_impact = true } };
	struct queue_job *j;
	struct desk d;

	(void)state;
	desk_open(&d, 1);
	d.q.since_s = 105;
	desk_add(&d, "a", "h", NULL, 0, false);
	queue_run_step(d.run, 100);
	queue_run_ended(d.run, j = d.q.job[0], &first, 104), queue_run_step(d.run, 1000);
	queue_run_ended(d.run, d.q.job[0], &second, 1001);
	assert_int_equal(j->state, QUEUE_DONE);
	assert_int_equal(j->sum.files, 8);
	assert_int_equal(j->sum.failures, 1);
	assert_true(j->sum.has_impact && j->sum.impact_percent == 4.5 && j->sum.seconds == 3);
	assert_int_equal(j->recent.files - j->recent.same_files, 2);
	assert_int_equal(j->recent.bytes - j->recent.same_bytes, 20);
	assert_int_equal(j->recent.failures, 0);
	assert_true(j->recent.has_impact && j->recent.impact_percent == 2 && j->recent.seconds == 1);
	desk_close(&d);
}

/* A clock that is put back by a year holds nothing for a year. */
static void clock_put_back(void **state)
{
	struct desk d;

	(void)state;
	desk_open(&d, 1);
	desk_add(&d, "a", "h", NULL, 0, false);
	queue_run_step(d.run, 100000000);
	desk_ended(&d, "a", QUEUE_NO_HOST, 0, true, 100000000);
	queue_run_step(d.run, 100000000 - 365 * DAY_S);
	assert_string_equal(d.log, "a a");
	desk_close(&d);
}

/* Other jobs of a host that does not answer wait, those of other hosts do not; one at a time asks again. */
static void dead_host(void **state)
{
	struct desk d;

	(void)state;
	desk_open(&d, 2);
	desk_add(&d, "a", "dead", NULL, 9, false);
	desk_add(&d, "b", "fine", NULL, 0, false);
	queue_run_step(d.run, 100);
	assert_string_equal(d.log, "a b");
	desk_ended(&d, "a", QUEUE_NO_HOST, 0, true, 100);
	desk_add(&d, "c", "dead", NULL, 9, false);
	desk_add(&d, "d", "dead", NULL, 9, false);
	desk_add(&d, "e", "fine", NULL, 0, false);
	queue_run_step(d.run, 101);
	assert_string_equal(d.log, "a b e");
	queue_run_step(d.run, 120);
	assert_string_equal(d.log, "a b e a");
	desk_ended(&d, "a", QUEUE_FINE, 0, true, 121);
	queue_run_step(d.run, 121);
	assert_string_equal(d.log, "a b e a c d");
	desk_close(&d);
}

static void orders(void **state)
{
	struct desk d;

	(void)state;
	desk_open(&d, 2);
	desk_add(&d, "a", "h", NULL, 0, false);
	desk_add(&d, "b", "h", NULL, 0, false);
	desk_add(&d, "c", "h", NULL, 0, false);
	desk_order(&d, "cancel", "c");
	queue_run_step(d.run, 100);
	desk_order(&d, "pause", "a");
	desk_order(&d, "cancel", "b");
	queue_run_step(d.run, 100);
	assert_string_equal(d.log, "a b -a -b");
	desk_order(&d, "retry", "b"); /* while its process still ends: no second process beside it */
	queue_run_step(d.run, 100);
	assert_string_equal(d.log, "a b -a -b");
	desk_ended(&d, "a", QUEUE_FAILS, 0, true, 100);
	desk_ended(&d, "b", QUEUE_FAILS, 0, true, 100);
	assert_int_equal(state_of(&d, "a"), QUEUE_WAITING);
	assert_int_equal(d.q.job[0]->tries, 0); /* told to end: no failure */
	queue_run_step(d.run, 100);
	assert_string_equal(d.log, "a b -a -b b");
	desk_order(&d, "resume", "a");
	queue_run_step(d.run, 100);
	assert_string_equal(d.log, "a b -a -b b a");
	queue_run_stop(d.run);
	assert_string_equal(d.log, "a b -a -b b a -b -a");
	desk_ended(&d, "a", QUEUE_FINE, 0, true, 100); /* it was faster */
	desk_ended(&d, "b", QUEUE_FAILS, 0, true, 100);
	assert_int_equal(state_of(&d, "a"), QUEUE_DONE);
	assert_int_equal(state_of(&d, "b"), QUEUE_WAITING);
	assert_int_equal(state_of(&d, "c"), QUEUE_CANCELLED);
	assert_true(queue_run_idle(d.run, 100));
	desk_close(&d);
}

/* A batch with a pair that fails is repeated pair by pair, and the list goes on behind that pair. */
static void lists_of_pairs(void **state)
{
	const struct queue_job *j;
	struct desk d;

	(void)state;
	desk_open(&d, 1);
	desk_add(&d, "list", "h", NULL, 0, true);
	desk_add(&d, "other", "h", NULL, 0, false);
	j = d.q.job[0];
	queue_run_step(d.run, 100);
	desk_ended(&d, "list", QUEUE_FINE, 1000, false, 100);
	assert_int_equal(j->sum.position, 1000);
	queue_run_step(d.run, 100);
	assert_string_equal(d.log, "list other"); /* in turns */
	desk_ended(&d, "other", QUEUE_FINE, 0, true, 100);
	queue_run_step(d.run, 100);
	desk_ended(&d, "list", QUEUE_FAILS, 2000, false, 100);
	assert_int_equal(j->sum.position, 1000);
	assert_int_equal(j->alone_until, 2000);
	assert_int_equal(d.skipped, 0);
	queue_run_step(d.run, 100);
	desk_ended(&d, "list", QUEUE_FAILS, 1010, true, 100);
	assert_int_equal(d.skipped, 1);
	assert_int_equal(j->sum.position, 1010);
	queue_run_step(d.run, 100);
	desk_ended(&d, "list", QUEUE_NO_HOST, 1020, true, 100);
	assert_int_equal(j->sum.position, 1010); /* the host does not answer: again, later */
	assert_int_equal(d.skipped, 1);
	queue_run_step(d.run, 200);
	desk_ended(&d, "list", QUEUE_FINE, 2000, true, 200);
	d.prepared = 1; /* the end of the list */
	queue_run_step(d.run, 200);
	assert_int_equal(state_of(&d, "list"), QUEUE_FAILED);
	assert_string_equal(j->error, "101 of 401 pairs have failed (failed/list lists them)");
	assert_string_equal(d.log, "list other list list list list");
	desk_close(&d);
}

/* An end waits for room in its list of failed pairs, and nothing begins until then. */
static void full_disk_of_pairs(void **state)
{
	struct desk d;

	(void)state;
	desk_open(&d, 1);
	desk_add(&d, "list", "h", NULL, 0, true);
	desk_add(&d, "other", "k", NULL, 0, false);
	queue_run_step(d.run, 100);
	desk_ended(&d, "other", QUEUE_FINE, 0, true, 100);
	d.lists_full = true;
	desk_ended(&d, "list", QUEUE_WRONG, 10, true, 100);
	assert_int_equal(state_of(&d, "list"), QUEUE_RUNNING);
	assert_true(d.told);
	assert_int_equal(queue_run_step(d.run, 100), 105);
	assert_string_equal(d.log, "list other");
	d.lists_full = false;
	queue_run_step(d.run, 105);
	assert_int_equal(d.skipped, 1);
	assert_false(d.told);
	assert_string_equal(d.log, "list other list");
	desk_close(&d);
}

static void lists_that_cannot_be_read(void **state)
{
	struct desk d;

	(void)state;
	desk_open(&d, 1);
	desk_add(&d, "list", "h", NULL, 0, true);
	d.prepared = -1;
	queue_run_step(d.run, 100);
	assert_string_equal(queue_held_by(&d.q, d.q.job[0], 100), "retry");
	assert_string_equal(d.q.job[0]->error, "no such list");
	queue_run_step(d.run, 200);
	assert_int_equal(state_of(&d, "list"), QUEUE_FAILED);
	assert_string_equal(d.log, "");
	desk_close(&d);
}

/* With a full disk nothing begins, ends are kept, and recorded once there is room. */
static void full_disk(void **state)
{
	struct desk d;

	(void)state;
	desk_open(&d, 1);
	desk_add(&d, "a", "h", NULL, 0, false);
	desk_add(&d, "b", "h", NULL, 0, false);
	queue_run_step(d.run, 100);
	d.full = true;
	desk_ended(&d, "a", QUEUE_FINE, 0, true, 100);
	assert_int_equal(state_of(&d, "a"), QUEUE_RUNNING);
	assert_int_equal(queue_run_step(d.run, 100), 105);
	assert_string_equal(d.log, "a");
	assert_true(d.told);
	assert_false(queue_run_idle(d.run, 100));
	d.full = false;
	queue_run_step(d.run, 105);
	assert_int_equal(state_of(&d, "a"), QUEUE_DONE);
	assert_string_equal(d.log, "a b");
	assert_false(d.told);
	desk_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_of_jobs),
		cmocka_unit_test(failures),
		cmocka_unit_test(counts_since_a_time),
		cmocka_unit_test(overdue_once),
		cmocka_unit_test(windows),
		cmocka_unit_test(clock_put_back),
		cmocka_unit_test(dead_host),
		cmocka_unit_test(orders),
		cmocka_unit_test(lists_of_pairs),
		cmocka_unit_test(lists_that_cannot_be_read),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(full_disk_of_pairs),
		cmocka_unit_test(killed_200_times),
		cmocka_unit_test(many_worlds),
	};

	return cmocka_run_group_tests_name("queue/queue_run", tests, NULL, NULL);
}
