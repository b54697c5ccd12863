/* What a transfer recalls of its path and records: only what it has learned, under the name of the path. */
#include "fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

static char dir[64];
static struct ptcp_task *t;

static int setup(void **state)
{
	static const char *const via[] = { "127.0.0.1:2", "direct" };
	const struct cf_files f = { true, { "a" }, CF_NO_HOST "b" };
	struct ptcp_transfer_opts o = cf_opts();

	(void)state;
	strcpy(dir, "/tmp/ptcp-path-history.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	o.no_history = false;
	o.state_dir = dir;
	o.paths = via;
	o.n_paths = 2;
	t = cf_accepted(&o, &f);
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	ptcp_task_free(t);
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return system(command);
}

/* A socket that has this address. */
static int socket_at(int family, const char *address)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	int fd = socket(family, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	if (family == AF_INET) {
		assert_int_equal(inet_pton(AF_INET, address, &four.sin_addr), 1);
		assert_int_equal(bind(fd, (struct sockaddr *)&four, sizeof four), 0);
	} else {
		assert_int_equal(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
		assert_int_equal(bind(fd, (struct sockaddr *)&six, sizeof six), 0);
	}
	return fd;
}

/* The direction, the name that the user gave, the relays, and the address of this host, whatever its port. */
static void named(void **state)
{
	int fd = socket_at(AF_INET, "127.0.0.1"), p[2];

	(void)state;
	t->tries.path = 1;
	task_name_path(t, fd);
	assert_true(t->history.key.sends);
	assert_string_equal(t->history.key.peer, "127.0.0.1:1");
	assert_string_equal(t->history.key.local, "127.0.0.1");
	assert_string_equal(t->history.key.congestion, "");
	t->tries.path = 0;
	task_name_path(t, fd);
	assert_string_equal(t->history.key.peer, "127.0.0.1:1 via 127.0.0.1:2");
	close(fd);
	t->files.sends = false;
	fd = socket_at(AF_INET6, "::");
	task_name_path(t, fd);
	assert_false(t->history.key.sends);
	assert_string_equal(t->history.key.local, "::");
	close(fd);
	assert_int_equal(pipe(p), 0); /* ssh's pipe is no path */
	task_name_path(t, p[0]);
	assert_string_equal(t->history.key.local, "");
	close(p[0]);
	close(p[1]);
}

/* The controller has found an answer by its own probes. */
static void learns(void)
{
	static const struct probe probe[] = { { 4, 40e6, 1e6 }, { 12, 60e6, 1e6 } };
	struct stream_control *m = &t->history.control;
	int fd = socket_at(AF_INET, "127.0.0.1");

	memset(m, 0, sizeof *m);
	t->tries.path = 1;
	task_name_path(t, fd);
	close(fd);
	strcpy(t->history.key.congestion, "cubic");
	m->advised = true;
	m->answer = 12;
	m->profile.n = 2;
	memcpy(m->profile.probe, probe, sizeof probe);
}

static bool finds(struct history_entry *h)
{
	int r = history_find(dir, &t->history.key, h, NULL);

	assert_true(r >= 0);
	return r == 1;
}

static void recorded(void **state)
{
	struct history_entry h;

	(void)state;
	learns();
	assert_false(finds(&h));
	task_remember(t);
	assert_true(finds(&h));
	assert_int_equal(h.n_probes, 2);
	assert_int_equal(h.probe[1].streams, 12);
	assert_true(h.probe[1].throughput_bps == 60e6);
	assert_false(h.partly_limited);
	learns();
	t->history.control.profile.host_limited[1] = true;
	task_remember(t);
	assert_true(finds(&h));
	assert_true(h.partly_limited);
}

/* Without an answer, or with one that is recorded already, there is nothing to record. */
static void nothing_new(void **state)
{
	struct history_entry h;

	(void)state;
	learns();
	t->history.control.advised = false;
	task_remember(t);
	assert_false(finds(&h));
	learns();
	t->history.control.answer = 0;
	task_remember(t);
	assert_false(finds(&h));
	learns();
	t->history.control.recalled = true;
	task_remember(t);
	assert_false(finds(&h));
	learns();
	t->history.striped = true; /* movers are other hosts */
	task_remember(t);
	assert_false(finds(&h));
	t->history.striped = false;
	t->o.no_history = true;
	task_remember(t);
	assert_false(finds(&h));
	t->o.no_history = false;
	t->history.key.congestion[0] = '\0'; /* the session never ran */
	task_remember(t);
	assert_false(finds(&h));
	learns();
	task_remember(t);
	assert_true(finds(&h));
}

/* What the transfer disproves is not recalled again. */
static void contradicted(void **state)
{
	struct history_entry h;

	(void)state;
	learns();
	task_remember(t);
	assert_true(finds(&h));
	learns();
	t->history.control.advised = false;
	t->history.control.contradicted = true;
	task_remember(t);
	assert_false(finds(&h));
}

/* A history that cannot be written does not fail the transfer, and is logged. */
static unsigned n_logged;

static void on_log(void *arg, enum ptcp_log_level level, const char *component, const char *line)
{
	(void)arg; (void)line;
	n_logged += level == PTCP_LOG_WARN && strcmp(component, "history") == 0;
}

static void unwritable(void **state)
{
	(void)state;
	learns();
	free((char *)(uintptr_t)t->o.state_dir);
	assert_non_null(t->o.state_dir = strdup("/dev/null/x"));
	n_logged = 0;
	context_log(&t->context, on_log, NULL, PTCP_LOG_WARN);
	task_remember(t);
	assert_int_equal(n_logged, 1);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(named),
		test(recorded),
		test(nothing_new),
		test(contradicted),
		test(unwritable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
