/* libptcp as its callers see it: several handles at once from several threads, handles stepped in a
 * loop of the caller's, cancelling, and handles used in the wrong order. Public headers only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "patience.h"

#define FILES 30
#define FILE_BYTES 100003
#define LARGE_BYTES (64u << 20)
#define THREADS 4

/* ---- Files to send */

static void fill(const char *name, size_t bytes, unsigned seed)
{
	char block[4096];
	FILE *f = fopen(name, "w");
	size_t i;

	assert_non_null(f);
	for (i = 0; i < sizeof block; i++)
		block[i] = (char)((i * 31 + seed * 7) >> (seed % 3));
	for (; bytes > 0; bytes -= i) {
		i = bytes < sizeof block ? bytes : sizeof block;
		assert_int_equal(fwrite(block, 1, i, f), i);
	}
	assert_int_equal(fclose(f), 0);
}

static void make_source(unsigned seed)
{
	char name[64];
	unsigned i;

	snprintf(name, sizeof name, "src%u", seed);
	assert_int_equal(mkdir(lf_path(name), 0755), 0);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "src%u/%u", seed, i);
		fill(lf_path(name), FILE_BYTES, seed * FILES + i);
	}
}

static int setup(void **state)
{
	struct ptcp_server_opts o;
	struct ptcp_permission p;
	unsigned i;

	(void)state;
	if (lf_make_dir() < 0 || mkdir(lf_path("root"), 0755) < 0)
		return -1;
	for (i = 0; i < THREADS; i++)
		make_source(i);
	fill(lf_path("large"), LARGE_BYTES, 1);
	ptcp_permission_init(&p);
	ptcp_server_opts_init(&o);
	o.root = lf_path("root");
	return lf_serve(&o, &p);
}

/* ---- Transfers */

static struct ptcp_task *sends_to(const char *address, const char *src, const char *dest,
    ptcp_event_fn *event, void *arg)
{
	struct ptcp_transfer_opts o;
	struct ptcp_task *t;
	struct ptcp_err e;
	const char *from = lf_path(src);
	char to[256];

	snprintf(to, sizeof to, "ptcp://%s/%s", address, dest);
	lf_opts(&o);
	o.event = event;
	o.arg = arg;
	if (ptcp_send_new(&t, &o, &from, 1, to, &e) < 0)
		fail_msg("%s", e.msg);
	return t;
}

static struct ptcp_task *sends(const char *src, const char *dest, ptcp_event_fn *event, void *arg)
{
	return sends_to(lf_address, src, dest, event, arg);
}

static void is_there(const char *what, const char *where)
{
	char command[512];

	snprintf(command, sizeof command, "diff -r '%s' '%s' >/dev/null", lf_path(what), lf_path(where));
	assert_int_equal(system(command), 0);
}

struct job {
	pthread_t thread, told_on;
	unsigned number;
	int result;
	struct ptcp_err e;
	unsigned told;
};

static void on_event(void *arg, const struct ptcp_event *ev)
{
	struct job *j = arg;

	(void)ev;
	j->told++;
	j->told_on = pthread_self();
}

static void *job_main(void *arg)
{
	struct job *j = arg;
	char src[16], dest[16];
	struct ptcp_task *t;

	snprintf(src, sizeof src, "src%u", j->number);
	snprintf(dest, sizeof dest, "at-once%u", j->number);
	t = sends(src, dest, on_event, j);
	j->result = ptcp_task_run(t, &j->e);
	ptcp_task_free(t);
	return NULL;
}

static void several_at_once(void **state)
{
	struct job j[THREADS];
	char src[16], dest[32];
	unsigned i;

	(void)state;
	memset(j, 0, sizeof j);
	for (i = 0; i < THREADS; i++) {
		j[i].number = i;
		assert_int_equal(pthread_create(&j[i].thread, NULL, job_main, &j[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(j[i].thread, NULL);
		if (j[i].result != 0)
			fail_msg("%s", j[i].e.msg);
		assert_true(j[i].told > 0);
		assert_true(pthread_equal(j[i].told_on, j[i].thread));
		snprintf(src, sizeof src, "src%u", i);
		snprintf(dest, sizeof dest, "root/at-once%u", i);
		is_there(src, dest);
	}
}

/* ---- A loop of ours, made of poll() */

struct stepped {
	struct ptcp_task *t;
	int result;
	struct ptcp_err e;
};

/* Steps all of them until each is over; returns the number of steps. */
static unsigned loop(struct stepped *s, unsigned n)
{
	struct pollfd fd[8];
	unsigned i, live = n, steps = 0;
	int ms, each;

	while (live > 0) {
		for (i = 0, ms = 20000; i < n; i++) {
			each = s[i].result > 0 ? ptcp_task_timeout_ms(s[i].t) : -1;
			fd[i] = (struct pollfd){ s[i].result > 0 ? ptcp_task_fd(s[i].t) : -1, POLLIN, 0 };
			if (each >= 0 && each < ms)
				ms = each;
		}
		assert_true(poll(fd, n, ms) > 0 || ms < 20000); /* else something was to be told and was not */
		for (i = 0; i < n; i++)
			if (s[i].result > 0 && (fd[i].revents != 0 || ptcp_task_timeout_ms(s[i].t) == 0)) {
				steps++;
				if ((s[i].result = ptcp_task_step(s[i].t, &s[i].e)) <= 0)
					live--;
			}
	}
	return steps;
}

static void start(struct stepped *s, struct ptcp_task *t)
{
	s->t = t;
	s->result = 1;
	if (ptcp_task_start(t, &s->e) < 0)
		fail_msg("%s", s->e.msg);
}

static void stepped_side_by_side(void **state)
{
	struct stepped s[3];
	struct job told = { .told = 0 };
	struct ptcp_result r;
	char src[16], dest[32];
	unsigned i;
	int fd;

	(void)state;
	for (i = 0; i < 3; i++) {
		snprintf(src, sizeof src, "src%u", i);
		snprintf(dest, sizeof dest, "stepped%u", i);
		start(&s[i], sends(src, dest, on_event, &told));
	}
	fd = ptcp_task_fd(s[0].t);
	assert_true(loop(s, 3) > 3);
	assert_int_equal(ptcp_task_fd(s[0].t), fd);
	assert_true(told.told > 0 && pthread_equal(told.told_on, pthread_self()));
	for (i = 0; i < 3; i++) {
		if (s[i].result != 0)
			fail_msg("%s", s[i].e.msg);
		ptcp_result_init(&r);
		ptcp_transfer_result(s[i].t, &r);
		assert_int_equal(r.progress.files, FILES);
		assert_true(r.seconds > 0);
		assert_int_equal(ptcp_task_step(s[i].t, NULL), PTCP_EUSAGE);
		ptcp_task_free(s[i].t);
		snprintf(src, sizeof src, "src%u", i);
		snprintf(dest, sizeof dest, "root/stepped%u", i);
		is_there(src, dest);
	}
}

/* ---- A server in the same loop */

static int listening_socket(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

/* Server and client take turns in one thread until the client is done. */
static int take_turns(struct ptcp_server *s, struct ptcp_task *t, struct ptcp_err *e)
{
	struct pollfd fd[2] = { { ptcp_server_fd(s), POLLIN, 0 }, { ptcp_task_fd(t), POLLIN, 0 } };
	int a, b, r;

	do {
		a = ptcp_server_timeout_ms(s);
		b = ptcp_task_timeout_ms(t);
		poll(fd, 2, a < 0 || (b >= 0 && b < a) ? b : a);
		assert_int_equal(ptcp_server_step(s, NULL), 1);
	} while ((r = ptcp_task_step(t, e)) > 0);
	return r;
}

static struct ptcp_server *own_server(const int *socket)
{
	static const char *const also[] = { "127.0.0.1:0" };
	struct ptcp_server_opts o;
	struct ptcp_server *s;
	struct ptcp_err e;

	ptcp_server_opts_init(&o);
	o.config_dir = lf_path("server");
	o.root = lf_path("root");
	o.sockets = socket;
	o.n_sockets = 1;
	o.also_listen = also;
	o.n_also_listen = 1;
	if (ptcp_server_new(&s, &o, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static void serves_in_the_hosts_loop(void **state)
{
	struct ptcp_server_stats st;
	struct ptcp_server_opts o;
	struct ptcp_server *s;
	struct ptcp_task *t;
	struct ptcp_result res;
	struct ptcp_err e;
	const char *address;
	unsigned port, first;
	char own[sizeof lf_address];
	int fd = listening_socket(), r;

	(void)state;
	s = own_server(&fd);
	close(fd); /* it has its own */
	assert_true(ptcp_server_listening(s, 0, &address, &first) && ptcp_server_listening(s, 1, &address, &port));
	assert_false(ptcp_server_listening(s, 2, &address, &port));
	assert_int_equal(ptcp_server_port(s), first);
	assert_int_not_equal(first, port);
	ptcp_server_opts_init(&o);
	o.max_streams = 0;
	assert_int_equal(ptcp_server_change(s, &o, &e), PTCP_EUSAGE);
	o.max_streams = 2;
	assert_int_equal(ptcp_server_change(s, &o, &e), 0);
	assert_int_equal(ptcp_server_step(s, &e), PTCP_EUSAGE); /* not yet at work */
	assert_int_equal(ptcp_server_start(s, &e), 0);
	snprintf(own, sizeof own, "127.0.0.1:%u", first);
	t = sends_to(own, "src0", "own", NULL, NULL);
	assert_int_equal(ptcp_task_start(t, &e), 0);
	if (take_turns(s, t, &e) < 0)
		fail_msg("%s", e.msg);
	ptcp_result_init(&res);
	ptcp_transfer_result(t, &res);
	assert_int_equal(res.progress.max_streams, 2);
	ptcp_task_free(t);
	ptcp_server_stop(s);
	while ((r = ptcp_server_step(s, &e)) > 0)
		;
	assert_int_equal(r, 0);
	ptcp_server_stats_init(&st);
	ptcp_server_stats(s, &st);
	assert_int_equal(st.sessions, 1);
	assert_int_equal(st.received_files, FILES);
	assert_int_equal(st.received_bytes, (uint64_t)FILES * FILE_BYTES);
	assert_int_equal(st.sessions_now, 0);
	assert_true(st.connections >= 3);
	ptcp_server_free(s);
	is_there("src0", "root/own");
}

/* A host that says nothing: only the time-out will tell, and a loop that obeys it hears of it in time. */
static void time_passes_in_the_hosts_loop(void **state)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof sa;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	const char *src = lf_path("large");
	struct ptcp_transfer_opts o;
	struct ptcp_task *t;
	struct timespec from, to;
	struct stepped s;
	struct ptcp_err e;
	char dest[64];

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	snprintf(dest, sizeof dest, "ptcp://127.0.0.1:%d/x", ntohs(sa.sin_port));
	ptcp_transfer_opts_init(&o);
	o.config_dir = lf_path("client");
	o.timeout_s = 0.5;
	assert_int_equal(ptcp_send_new(&t, &o, &src, 1, dest, &e), 0);
	clock_gettime(CLOCK_MONOTONIC, &from);
	start(&s, t);
	loop(&s, 1);
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_int_equal(s.result, PTCP_ECONNECT);
	assert_true(to.tv_sec - from.tv_sec < patience_s(5));
	ptcp_task_free(t);
	close(fd);
}

/* ---- Cancelling */

static void cancel_at_progress(void *arg, const struct ptcp_event *ev)
{
	if (ev->type == PTCP_EVENT_START)
		ptcp_task_cancel(*(struct ptcp_task **)arg);
}

static void *cancel_from_afar(void *arg)
{
	nanosleep(&(struct timespec){ 0, 20 * 1000 * 1000 }, NULL);
	ptcp_task_cancel(arg);
	return NULL;
}

static void canceled(void **state)
{
	struct ptcp_task *t = NULL;
	struct stepped s;
	pthread_t thread;

	(void)state;
	t = sends("large", "canceled", cancel_at_progress, &t);
	assert_int_equal(ptcp_task_run(t, NULL), PTCP_ECANCELED);
	ptcp_task_free(t);

	t = sends("large", "canceled", NULL, NULL);
	ptcp_task_cancel(t);
	start(&s, t);
	assert_int_equal(ptcp_task_timeout_ms(t), 0);
	loop(&s, 1);
	assert_int_equal(s.result, PTCP_ECANCELED);
	ptcp_task_free(t);

	t = sends("large", "canceled", NULL, NULL);
	start(&s, t);
	assert_int_equal(pthread_create(&thread, NULL, cancel_from_afar, t), 0);
	loop(&s, 1);
	pthread_join(thread, NULL);
	assert_true(s.result == PTCP_ECANCELED || s.result == 0); /* it may have been done by then */
	ptcp_task_free(t);
	}

static void freed_while_at_work(void **state)
{
	struct ptcp_task *t;
	struct stepped s;
	unsigned i;

	(void)state;
	t = sends("large", "freed", NULL, NULL);
	start(&s, t);
	ptcp_task_free(t);

	t = sends("large", "freed", NULL, NULL);
	start(&s, t);
	for (i = 0; i < 200 && s.result > 0; i++) {
		poll(&(struct pollfd){ ptcp_task_fd(t), POLLIN, 0 }, 1, 5);
		s.result = ptcp_task_step(t, &s.e);
		if (access(lf_path("root/freed"), F_OK) == 0)
			break;
	}
	ptcp_task_free(t);
}

/* ---- In the wrong order, or from another time */

static void wrong_order(void **state)
{
	struct ptcp_task *t = sends("src0", "order", NULL, NULL);
	struct ptcp_err e;

	(void)state;
	assert_int_equal(ptcp_task_step(t, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_task_run(t, &e), 0);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_task_start(t, &e), PTCP_EUSAGE);
	assert_int_equal(ptcp_task_step(t, &e), PTCP_EUSAGE);
	ptcp_task_free(t);
	ptcp_task_free(NULL);
}

/* Who was built when the structs ended earlier gets no more than it knew of. */
static void older_structs(void **state)
{
	struct ptcp_task *t = sends("src0", "older", NULL, NULL);
	struct ptcp_result r;

	(void)state;
	assert_int_equal(ptcp_task_run(t, NULL), 0);
	memset(&r, 0xaa, sizeof r);
	r.size = offsetof(struct ptcp_result, warnings);
	ptcp_transfer_result(t, &r);
	assert_int_equal(r.progress.file_bytes, FILES * FILE_BYTES);
	assert_int_equal(r.warnings, UINT64_C(0xaaaaaaaaaaaaaaaa));
	ptcp_task_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_at_once),
		cmocka_unit_test(stepped_side_by_side),
		cmocka_unit_test(serves_in_the_hosts_loop),
		cmocka_unit_test(time_passes_in_the_hosts_loop),
		cmocka_unit_test(canceled),
		cmocka_unit_test(freed_while_at_work),
		cmocka_unit_test(wrong_order),
		cmocka_unit_test(older_structs),
	};

	return cmocka_run_group_tests(tests, setup, lf_teardown);
}
