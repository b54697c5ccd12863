/* Journals: torn and damaged lines, full disks, several writers, and what records say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/queue_journal.h"

struct bench {
	char dir[64], path[80];
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof *b);

	snprintf(b->dir, sizeof b->dir, "%s/journal.XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->path, sizeof b->path, "%s/journal", b->dir);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	unlink(b->path);
	rmdir(b->dir);
	free(b);
	return 0;
}

static void add(struct queue_record *r, const char *name, const char *source)
{
	struct queue_task t = { .retries = 3, .priority = -2, .start_s = 77, .deadline_s = 99 };
	struct ptcp_err e;

	assert_int_equal(queue_texts_add(&t.sources, source, &e), 0);
	assert_non_null(t.destination = strdup("h:/x y%z\n=\377"));
	queue_write_add(r, name, &t, 5);
	queue_task_fini(&t);
}

static int append(struct bench *b, const char *name)
{
	struct queue_record r = { .text = NULL };
	struct queue_journal j;
	struct job_queue q = { .n = 0 };
	struct ptcp_err e = { .code = 0 };
	int result;

	assert_int_equal(queue_journal_open(&j, b->dir, true, &e), 0);
	add(&r, name, "/data/a b");
	if ((result = queue_journal_lock(&j, &q, -1, &e)) == 0) {
		result = queue_journal_append(&j, &q, &r, &e);
		queue_journal_unlock(&j);
	}
	queue_record_free(&r);
	queue_journal_close(&j);
	queue_free(&q);
	return result;
}

/* The names of all jobs, or the error. */
static void holds(struct bench *b, const char *want)
{
	struct queue_journal j;
	struct job_queue q = { .n = 0 };
	struct ptcp_err e;
	char names[1024] = "";
	size_t i;

	assert_int_equal(queue_journal_open(&j, b->dir, false, &e), 0);
	if (queue_journal_follow(&j, &q, &e) < 0)
		snprintf(names, sizeof names, "%s", e.msg + strlen(b->dir) + 1);
	for (i = 0; i < q.n && q.n < 100 && names[0] != 'j'; i++)
		snprintf(names + strlen(names), sizeof names - strlen(names), "%s ", q.job[i]->name);
	assert_string_equal(names, want);
	queue_journal_close(&j);
	queue_free(&q);
}

static void write_at(struct bench *b, long at, const char *text)
{
	FILE *f = fopen(b->path, "r+");

	assert_non_null(f);
	fseek(f, at, at < 0 ? SEEK_END : SEEK_SET);
	fputs(text, f);
	fclose(f);
}

static void whole(void **state)
{
	struct bench *b = *state;
	struct queue_journal j;
	struct job_queue q = { .n = 0 };
	struct ptcp_err e;

	assert_int_equal(append(b, "a"), 0);
	assert_int_equal(append(b, "b"), 0);
	holds(b, "a b ");
	assert_int_equal(queue_journal_open(&j, b->dir, false, &e), 0);
	assert_int_equal(queue_journal_follow(&j, &q, &e), 0);
	assert_string_equal(queue_find(&q, "b")->task.sources.of[0], "/data/a b");
	assert_string_equal(queue_find(&q, "b")->task.destination, "h:/x y%z\n=\377");
	assert_int_equal(queue_find(&q, "b")->task.priority, -2);
	assert_int_equal(queue_find(&q, "b")->task.start_s, 77);
	assert_int_equal(queue_find(&q, "b")->task.deadline_s, 99);
	assert_int_equal(append(b, "c"), 0); /* by another process */
	assert_int_equal(queue_journal_follow(&j, &q, &e), 0);
	assert_non_null(queue_find(&q, "c"));
	queue_journal_close(&j);
	queue_free(&q);
}

/* A file cut at any byte holds the records before, and takes further ones. */
static void torn(void **state)
{
	struct bench *b = *state;
	struct stat st;
	off_t cut, first;

	assert_int_equal(append(b, "a"), 0);
	assert_int_equal(stat(b->path, &st), 0);
	first = st.st_size;
	for (cut = first + 1;; cut++) {
		assert_int_equal(append(b, "b"), 0);
		assert_int_equal(stat(b->path, &st), 0);
		if (cut >= st.st_size)
			break;
		assert_int_equal(truncate(b->path, cut), 0);
		holds(b, "a ");
		assert_int_equal(append(b, "c"), 0);
		holds(b, "a c ");
		assert_int_equal(truncate(b->path, first), 0);
	}
}

/* Each changed byte within a record is found, but for the last newline, without which the record is torn. */
static void damaged(void **state)
{
	struct bench *b = *state;
	struct stat st;
	long at;
	char old[2] = "", *text;
	FILE *f;

	assert_int_equal(append(b, "a"), 0);
	assert_int_equal(append(b, "b"), 0);
	assert_int_equal(stat(b->path, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(f = fopen(b->path, "r"));
	assert_int_equal(fread(text, 1, (size_t)st.st_size, f), st.st_size);
	fclose(f);
	for (at = 0; at < st.st_size / 2 - 1; at++) {
		old[0] = text[at];
		write_at(b, at, old[0] == '!' ? "?" : "!");
		holds(b, "journal:1: damaged: its checksum differs (restore the file, or remove the line)");
		write_at(b, at, old);
	}
	holds(b, "a b ");
	free(text);
}

/* Who may write into the directory may put links in the places of its files. */
static void of_others(void **state)
{
	static const mode_t modes[] = { 0777, 0770, 01777, 0702 };
	struct bench *b = *state;
	struct queue_journal j;
	struct ptcp_err e;
	size_t i;

	for (i = 0; i < sizeof modes / sizeof *modes; i++) {
		assert_int_equal(chmod(b->dir, modes[i]), 0);
		assert_int_equal(queue_journal_open(&j, b->dir, true, &e), PTCP_ECONFIG);
		assert_non_null(strstr(e.msg, "not a directory of this user alone"));
		queue_journal_close(&j);
	}
	assert_int_equal(chmod(b->dir, 0755), 0);
	assert_int_equal(queue_journal_open(&j, b->dir, true, &e), 0);
	queue_journal_close(&j);
}

/* A full disk: the record is not there, also not a part of it, and one that fits later is. */
static void full(void **state)
{
	struct bench *b = *state;
	struct rlimit old, limit;
	struct stat st;
	unsigned room;

	assert_int_equal(append(b, "a"), 0);
	assert_int_equal(stat(b->path, &st), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	for (room = 0; room < 40; room += 13) {
		limit = (struct rlimit){ (rlim_t)st.st_size + room, old.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_true(append(b, "b") < 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		holds(b, "a ");
	}
	assert_int_equal(append(b, "b"), 0);
	holds(b, "a b ");
}

/* A record longer than the buffer, and many. */
static void large(void **state)
{
	struct bench *b = *state;
	struct queue_record r = { .text = NULL };
	struct queue_journal j;
	struct job_queue q = { .n = 0 };
	struct ptcp_err e;
	char *path = malloc(200001), name[16];
	unsigned i;

	memset(path, 'x', 200000);
	path[200000] = '\0';
	add(&r, "long", path);
	for (i = 0; i < 20000; i++) {
		snprintf(name, sizeof name, "n%u", i);
		add(&r, name, "s");
	}
	assert_int_equal(queue_journal_open(&j, b->dir, true, &e), 0);
	assert_int_equal(queue_journal_lock(&j, &q, -1, &e), 0);
	assert_int_equal(queue_journal_append(&j, &q, &r, &e), 0);
	assert_int_equal(q.n, 20001);
	assert_string_equal(queue_find(&q, "long")->task.sources.of[0], path);
	assert_string_equal(q.job[20000]->name, "n19999");
	queue_journal_close(&j);
	queue_free(&q);
	queue_record_free(&r);
	free(path);
}

static void refused(void **state)
{
	struct bench *b = *state;
	struct queue_record r = { .text = NULL };
	struct queue_journal j;
	struct ptcp_err e;
	FILE *f;

	assert_int_equal(queue_journal_open(&j, b->dir, false, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "no queue of jobs is there"));
	queue_journal_close(&j);
	queue_write_begin(&r, "nobody", 1);
	assert_non_null(f = fopen(b->path, "w"));
	fputs(r.text, f);
	fclose(f);
	holds(b, "journal:1: a record about an unknown job (restore the journal)");
	chmod(b->path, 0666);
	assert_int_equal(queue_journal_open(&j, b->dir, false, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "not a file of this user alone"));
	queue_journal_close(&j);
	queue_record_free(&r);
}

/* Jobs that come after others. */
static void order(void **state)
{
	static const struct { const char *name, *after[3]; } jobs[] = {
		{ "a", { NULL } }, { "b", { "a" } }, { "c", { "a", "b" } },
	};
	struct job_queue q = { .n = 0 };
	struct queue_record r = { .text = NULL };
	struct ptcp_err e;
	char *fields;
	const char *word;
	size_t i, k;

	(void)state;
	for (i = 0; i < 5; i++) {
		struct queue_task t = { .priority = 0 };

		for (k = 0; i < 3 && jobs[i].after[k] != NULL; k++)
			assert_int_equal(queue_texts_add(&t.after, jobs[i].after[k], &e), 0);
		if (i == 3) /* a circle */
			assert_int_equal(queue_texts_add(&t.after, "c", &e), 0);
		if (i == 4)
			assert_int_equal(queue_texts_add(&t.after, "nobody", &e), 0);
		queue_record_clear(&r);
		queue_write_add(&r, i < 3 ? jobs[i].name : "a", &t, 1);
		assert_true(queue_record_read(r.text, r.n - 1, &word, &fields));
		assert_int_equal(queue_apply(&q, word, fields, &e), 0);
		queue_task_fini(&t);
		assert_int_equal(queue_check_order(&q, &e), i < 3 ? 0 : PTCP_ECONFIG);
		if (i >= 3)
			assert_non_null(strstr(e.msg, i == 3 ?
			    "a: comes after itself" : "a: comes after nobody, which is no job"));
	}
	queue_free(&q);
	queue_record_free(&r);
}

static void overdue(void **state)
{
	struct queue_job j = { .task = { .deadline_s = 100 } };

	(void)state;
	for (j.state = QUEUE_WAITING; j.state <= QUEUE_CANCELLED; j.state++) {
		j.ended_s = 90;
		assert_false(queue_is_overdue(&j, 100));
		assert_int_equal(queue_is_overdue(&j, 101), j.state != QUEUE_DONE && j.state != QUEUE_CANCELLED);
		j.ended_s = 101;
		assert_int_equal(queue_is_overdue(&j, 200), j.state != QUEUE_CANCELLED);
	}
	j = (struct queue_job){ .state = QUEUE_WAITING };
	assert_false(queue_is_overdue(&j, 1000));
}

/* Emptied, shortened or removed by another program while in use: said, and nothing is written into the rest. */
static void lost(void **state)
{
	struct bench *b = *state;
	struct queue_record r = { .text = NULL };
	unsigned how;

	for (how = 0; how < 3; how++) {
		struct queue_journal j;
		struct job_queue q = { .n = 0 };
		struct ptcp_err e = { .code = 0 };
		struct stat st;

		assert_int_equal(append(b, "one"), 0);
		assert_int_equal(queue_journal_open(&j, b->dir, true, &e), 0);
		assert_int_equal(queue_journal_follow(&j, &q, &e), 0);
		assert_int_equal(how == 2 ? unlink(b->path) : truncate(b->path, how == 0 ? 0 : j.done - 1), 0);
		r = (struct queue_record){ .text = NULL };
		add(&r, "two", "x");
		assert_int_equal(queue_journal_follow(&j, &q, &e), PTCP_ECONFIG);
		assert_non_null(strstr(e.msg, how == 2 ? "removed while" : "shortened while"));
		assert_int_equal(queue_journal_lock(&j, &q, -1, &e), PTCP_ECONFIG);
		assert_int_equal(queue_journal_append(&j, &q, &r, &e), PTCP_ECONFIG);
		assert_int_equal(fstat(j.fd, &st), 0);
		assert_true(how == 2 || st.st_size == (how == 0 ? 0 : j.done - 1));
		queue_record_free(&r);
		queue_journal_close(&j);
		queue_free(&q);
		unlink(b->path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whole, setup, teardown),
		cmocka_unit_test_setup_teardown(torn, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(full, setup, teardown),
		cmocka_unit_test_setup_teardown(lost, setup, teardown),
		cmocka_unit_test_setup_teardown(large, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test(overdue),
		cmocka_unit_test(order),
	};

	return cmocka_run_group_tests_name("queue/queue_journal", tests, NULL, NULL);
}
