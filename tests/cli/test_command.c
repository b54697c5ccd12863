/* Commands, from arguments to exit status and output, with the fake library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture.h"
#include "cli/command.h"
#include "cli/process.h"
#include "fake_ptcp.h"

#define FP "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static const struct command *const commands[] = {
	&command_send, &command_recv, &command_serve, &command_key, &command_advise, &command_measure,
	&command_clean, &command_ls, &command_du, &command_mkdir, &command_rm, &command_mv,
};
static struct capture cap;

static int command(const char *line)
{
	char words[512], *rest = words, *argv[16];
	int argc = 0, status = -1;
	size_t i;

	strcpy(words, line);
	while (rest != NULL)
		argv[argc++] = strsep(&rest, " ");
	capture_begin(&cap);
	for (i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(commands[i]->name, argv[0]) == 0)
			status = commands[i]->run(commands[i], argc - 1, argv + 1);
	capture_end(&cap);
	return status;
}

static int setup(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

/* The last line of the output must be an end object with `status`. */
static void assert_end(int status)
{
	char *last = cap.out, *p;
	json_t *j;

	assert_true(lines_of(cap.out) >= 1);
	for (p = cap.out; *p != '\0'; p++)
		if (*p == '\n' && p[1] != '\0')
			last = p + 1;
	j = json_loads(last, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(j, "event")), "end");
	assert_int_equal(json_integer_value(json_object_get(j, "exit")), status);
	assert_int_equal(json_is_true(json_object_get(j, "ok")), status == 0);
	if (status == 0)
		assert_true(json_is_null(json_object_get(j, "error")));
	else
		assert_true(strlen(json_string_value(json_object_get(j, "error"))) > 0);
	json_decref(j);
}

static void sends_and_receives(void **state)
{
	(void)state;
	fake.result = (struct ptcp_result){ .progress = { .files = 1, .file_bytes = 10, .max_streams = 4 },
		.seconds = 1 };
	assert_int_equal(command("send a b/ ptcp://h/x"), 0);
	assert_int_equal(fake.sends, 1);
	assert_string_equal(fake.srcs, "a|b/");
	assert_string_equal(fake.dest, "ptcp://h/x");
	assert_int_equal(fake.frees, 1);
	assert_string_equal(cap.out, "");
	assert_string_equal(cap.err, "sent 1 file, 10 B in 1.00 s, 4 streams\n");
	assert_int_equal(command("recv -q ptcp://h/x y"), 0);
	assert_int_equal(fake.recvs, 1);
	assert_string_equal(fake.srcs, "ptcp://h/x");
	assert_string_equal(cap.err, "");
}

/* Every failure prints a line on stderr, and with --json an end object. */
static void failures(void **state)
{
	(void)state;
	assert_int_equal(command("send a"), 2);
	assert_int_equal(lines_of(cap.err), 1);
	assert_string_equal(cap.out, "");
	assert_int_equal(command("send a --json"), 2);
	assert_int_equal(lines_of(cap.err), 1);
	assert_end(2);
	assert_int_equal(command("recv --streams nine --json a b"), 2);
	assert_end(2);
	assert_int_equal(command("send --overlay x a b --json"), 2);
	assert_end(2);
	assert_int_equal(command("send a -- --json"), 0); /* a file of that name */
	assert_string_equal(fake.dest, "--json");
	assert_string_equal(cap.out, "");

	fake.new_code = PTCP_ENOTYET;
	fake.sentence = "u@h:p: not available yet (use ptcp://)";
	assert_int_equal(command("send --json a u@h:p"), 2);
	assert_string_equal(cap.err, "ptcp: u@h:p: not available yet (use ptcp://)\n");
	assert_end(2);
	assert_int_equal(fake.runs, 1);
	fake.new_code = 0;
	fake.run_code = PTCP_EBUSY;
	fake.sentence = "too busy: the server has 64 sessions, its limit (try again later)";
	assert_int_equal(command("send --wait 90s --json a ptcp://h/"), 4);
	assert_end(4);
	fake.run_code = PTCP_EREFUSED;
	fake.sentence = "h: unknown (add it)";
	assert_int_equal(command("send --json a ptcp://h/"), 4);
	assert_string_equal(cap.err, "ptcp: h: unknown (add it)\n");
	assert_end(4);
}

static void events_in_order(void **state)
{
	static const struct ptcp_event events[] = {
		{ .type = PTCP_EVENT_START, .peer = "[::1]:1", .peer_fingerprint = FP, .eta_s = NAN },
		{ .type = PTCP_EVENT_STREAMS, .from = 0, .to = 4, .text = "start" },
		{ .type = PTCP_EVENT_FILE, .path = "good", .status = PTCP_FILE_DONE },
		{ .type = PTCP_EVENT_FILE, .path = "bad", .status = PTCP_FILE_FAILED,
		    .text = "changed", .code = PTCP_ECHANGED },
		{ .type = PTCP_EVENT_WARNING, .text = "p: skipped" },
		{ .type = PTCP_EVENT_PROGRESS, .progress = { .bytes = 1, .total_bytes = 2 }, .eta_s = 1 },
	};
	static const char *const want[] = { "start", "streams", "file", "file", "warning", "progress", "end" };
	char *line, *rest = cap.out;
	size_t i = 0;
	json_t *j;

	(void)state;
	fake.events = events;
	fake.n_events = sizeof events / sizeof *events;
	fake.run_code = PTCP_EPARTIAL;
	fake.sentence = "1 of 2 files failed (see above)";
	assert_int_equal(command("send --json --cipher none a ptcp://h/"), 6);
	assert_true(fake.opts.file_events);
	assert_end(6);
	assert_non_null(strstr(cap.out, "\"cipher\":\"none\""));
	assert_string_equal(cap.err,
	    "ptcp: bad: changed\nptcp: warning: p: skipped\nptcp: 1 of 2 files failed (see above)\n");
	for (; (line = strsep(&rest, "\n")) != NULL && *line != '\0'; i++) {
		j = json_loads(line, 0, NULL);
		assert_true(i < sizeof want / sizeof *want);
		assert_string_equal(json_string_value(json_object_get(j, "event")), want[i]);
		json_decref(j);
	}
	assert_int_equal(i, sizeof want / sizeof *want);
}

/* Runs a command in a child process, since signals and descriptors belong to a process. */
static int in_child(const char *line, const char *out)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const struct command *c;
		int argc = 0;
		char words[256], *rest = words, *argv[16];

		strcpy(words, line);
		while (rest != NULL)
			argv[argc++] = strsep(&rest, " ");
		if (freopen(out, "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
			_exit(99);
		process_prepare();
		c = strcmp(argv[0], "serve") == 0 ? &command_serve : &command_send;
		status = exit_checked(c->run(c, argc - 1, argv + 1));
		_exit(status + (int)(fake.cancels + fake.stops) * 100);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void interrupted(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		fake_reset();
		fake.raise = signals[i];
		fake.run_code = PTCP_ECANCELED;
		/* the signal reached ptcp_task_cancel (+100), and the status is 8 */
		assert_int_equal(in_child("send a ptcp://h/", "/dev/null"), 108);
		fake.run_code = 0;
		assert_int_equal(in_child("serve", "/dev/null"), 100);
	}
	fake.raise = SIGPIPE;
	assert_int_equal(in_child("send a ptcp://h/", "/dev/null"), 0);
}

/* The first signal requests to stop, the second ends the process. */
static void interrupted_twice(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if ((pid = fork()) == 0) {
		if (freopen("/dev/null", "w", stderr) == NULL)
			_exit(99);
		process_catch(EXIT_INTERRUPTED, "bye\n");
		raise(SIGINT);
		if (!process_stopping())
			_exit(98);
		raise(SIGTERM);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 8);
}

static void stop_with_status(void *handle)
{
	_exit(*(int *)handle);
}

/* A signal before the start of a transfer takes effect. */
static void interrupted_early(void **state)
{
	int status, seven = 7;
	pid_t pid;

	(void)state;
	if ((pid = fork()) == 0) {
		process_catch(EXIT_INTERRUPTED, NULL);
		raise(SIGINT);
		process_set_stop(stop_with_status, &seven);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 7);
}

/* SIGUSR2 wakes one reader, once. */
static void toggled(void **state)
{
	uint64_t n;
	int status;
	pid_t pid;

	(void)state;
	if ((pid = fork()) == 0) {
		process_catch(EXIT_INTERRUPTED, NULL);
		raise(SIGUSR2);
		if (read(process_wake_fd(), &n, sizeof n) != sizeof n || !process_toggle_requested())
			_exit(99);
		if (process_toggle_requested() || read(process_wake_fd(), &n, sizeof n) >= 0)
			_exit(98);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 97);
}

static void output_that_fails(void **state)
{
	(void)state;
	assert_int_equal(in_child("send --json a ptcp://h/", "/dev/full"), 1);
	fake.run_code = PTCP_EREFUSED; /* the first failure determines the status */
	assert_int_equal(in_child("send --json a ptcp://h/", "/dev/full"), 4);
}

static void serves(void **state)
{
	(void)state;
	assert_int_equal(command("serve --listen [::1]:0 --root /srv"), 0);
	assert_string_equal(cap.out, "listening [::1]:4711 " FP "\n");
	assert_string_equal(fake.listen, "[::1]:0");
	assert_string_equal(fake.root, "/srv");
	assert_int_equal(fake.server.log_level, PTCP_LOG_WARN);
	assert_non_null(strstr(cap.err, "event=nobody-authorized"));
	assert_null(strstr(cap.err, "event=no-root"));
	fake.n_clients = 2;
	assert_int_equal(command("serve --listen :1 --listen :2"), 0);
	assert_string_equal(cap.err, "");
	assert_string_equal(cap.out, "listening [::1]:4711 " FP "\nlistening [::1]:4712 " FP "\n");
	assert_int_equal(command("serve --json"), 0);
	assert_string_equal(cap.out, "{\"event\":\"listening\",\"address\":\"::1\",\"port\":4711,\"fingerprint\":\"" FP
	    "\"}\n");
	assert_int_equal(command("serve --max-sessions 9 --max-client-sessions=3 --max-streams 128 --max-startups "
	    "65536"), 0);
	assert_int_equal(fake.server.max_sessions, 9);
	assert_int_equal(fake.server.max_client_sessions, 3);
	assert_int_equal(fake.server.max_streams, 128);
	assert_int_equal(fake.server.max_startups, 65536);
	assert_int_equal(command("serve --max-waiting 7"), 0);
	assert_int_equal(fake.server.max_waiting, 7);
	assert_int_equal(command("serve --max-waiting 0"), 2);
	assert_int_equal(command("serve --max-streams 129"), 2);
	assert_string_equal(cap.err, "ptcp: --max-streams '129': not a number from 1 to 128\n");
	assert_int_equal(command("serve --max-memory 64MiB"), 0);
	assert_true(fake.server.max_memory_bytes == 64u << 20);
	assert_int_equal(command("serve --max-memory 1MiB"), 2);
	assert_string_equal(cap.err, "ptcp: --max-memory '1MiB': not a size of at least 16MiB\n");
	assert_int_equal(command("serve --max-sessions 0"), 2);
	assert_int_equal(command("serve --max-startups -1"), 2);
	assert_int_equal(command("serve --max-client-sessions 4097"), 2);
	fake.new_code = PTCP_ECONFIG;
	fake.sentence = "/srv: no such directory (make it)";
	assert_int_equal(command("serve --json"), 2);
	assert_string_equal(cap.out, "");
	assert_string_equal(cap.err, "ptcp: /srv: no such directory (make it)\n");
}

/* SIGHUP reloads the file, SIGUSR1 logs the state; the server continues. */
static void reloads(void **state)
{
	char path[64], line[128];
	FILE *f;
	int fd;

	(void)state;
	snprintf(path, sizeof path, "%s/ptcp-reload.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_true((fd = mkstemp(path)) >= 0);
	assert_non_null(f = fdopen(fd, "w"));
	fputs("max-streams: 7\ntimeout: 5s\nlog-level: debug\n", f);
	assert_int_equal(fclose(f), 0);
	snprintf(line, sizeof line, "serve --max-sessions 3 --config %s", path);
	fake.raise = SIGHUP;
	assert_int_equal(command(line), 0);
	assert_int_equal(fake.changes, 1);
	assert_int_equal(fake.changed.max_sessions, 3);
	assert_int_equal(fake.changed.max_streams, 7);
	assert_true(fake.changed.timeout_s == 5);
	assert_int_equal(fake.changed.log_level, PTCP_LOG_DEBUG);
	assert_non_null(strstr(cap.err, "event=reloaded"));
	fake.steps = 0;
	fake.raise = SIGUSR1;
	fake.stats.sessions_now = 2;
	assert_int_equal(command(line), 0);
	assert_non_null(strstr(cap.err, "event=state sessions=2 "));
	assert_int_equal(fake.changes, 1);
	unlink(path);
}

static void keys(void **state)
{
	static const char *const bad[] = {
		"key", "key frob", "key show x", "key generate x", "key authorize", "key revoke",
		"key authorize a b", "key revoke a b", "key show --read-only", "key revoke a --root /",
		"key authorize a --shiny", "key show --name x", "key list x", "key list --read-only", "key show --json",
		"key sign x", "key sign --ca f", "key install", "key generate --name x", "key authorize --ca " FP " x",
		"key sign --ca f --expires 0 " FP, "key sign --ca f --expires soon " FP, "key list --certificates",
		"key authorize " FP " --quota 0", "key authorize " FP " --quota much", "key list --quota 1GB",
		"key trust", "key trust a", "key trust a " FP " x", "key trust *.x --ca " FP " x", "key trust --ca " FP,
		"key trust a " FP " --json", "key forget", "key forget a b", "key forget a --ca " FP,
		"key show --ca f --json",
		"key show --ca f --certificates", "key show --ca f --certificate g", "key list --certificate g",
		"key show --certificate g --certificates", "key show --certificate /dev/null",
		"key show --certificate /no/x",
	};
	char here[512];

	(void)state;
	assert_int_equal(command("key show"), 0);
	assert_string_equal(cap.out, FP "\n");
	assert_int_equal(command("key generate"), 0);
	assert_string_equal(fake.called, "generate");
	assert_int_equal(command("key authorize " FP " --read-only --root /a/b --name lab"), 0);
	assert_string_equal(fake.fingerprint, FP);
	assert_true(fake.perm_read_only);
	assert_false(fake.perm_no_relay);
	assert_string_equal(fake.perm_root, "/a/b");
	assert_string_equal(fake.perm_name, "lab");
	assert_string_equal(cap.out, "");
	assert_int_equal(command("key authorize --no-relay --root ./d --quota 10TB " FP), 0);
	assert_int_equal(fake.perm_quota, 10000000000000);
	assert_false(fake.perm_read_only);
	assert_true(fake.perm_no_relay);
	assert_non_null(getcwd(here, sizeof here - 3));
	strcat(here, "/d");
	assert_string_equal(fake.perm_root, here);
	assert_string_equal(fake.perm_name, "-");
	assert_int_equal(command("key list"), 0);
	assert_string_equal(cap.out, "");
	fake.n_clients = 2;
	assert_int_equal(command("key list"), 0);
	assert_string_equal(cap.out, FP "  read-only   relay     lab           /a b  quota 10.0 TB\n" FP
	    "  read-write  no-relay  -             -\n");
	assert_int_equal(command("key list --json"), 0);
	assert_string_equal(cap.out, "{\"fingerprint\":\"" FP
	    "\",\"name\":\"lab\",\"read_only\":true,\"write_once\":false,\"relay\":true,\"root\":\"/a "
	    "b\",\"quota_bytes\":10000000000000,\"authority\":false}\n{\"fingerprint\":\"" FP
	    "\",\"name\":null,\"read_only\":false,\"write_once\":false,\"relay\":false,\"root\":null,\"quota_bytes\":null,\"authority\":false}\n");
	assert_int_equal(command("key revoke " FP), 0);
	assert_string_equal(fake.called, "revoke");
	assert_int_equal(command("key trust host:1 " FP), 0);
	assert_string_equal(fake.called, "trust");
	assert_string_equal(fake.perm_name, "host:1");
	assert_string_equal(fake.fingerprint, FP);
	assert_false(fake.perm_authority);
	assert_int_equal(command("key trust *.x,y --ca " FP), 0);
	assert_string_equal(fake.perm_name, "*.x,y");
	assert_string_equal(fake.fingerprint, FP);
	assert_true(fake.perm_authority);
	assert_int_equal(command("key forget *.x,y"), 0);
	assert_string_equal(fake.called, "forget");
	assert_string_equal(fake.perm_name, "*.x,y");
	assert_string_equal(cap.out, "");
	fake.key_code = PTCP_ECONFIG;
	fake.sentence = "identity.pem: others can read it (chmod 600)";
	assert_int_equal(command("key show"), 2);
	assert_string_equal(cap.err, "ptcp: identity.pem: others can read it (chmod 600)\n");
	assert_string_equal(cap.out, "");
	fake.called = NULL;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(command(bad[i]), 2);
		assert_int_equal(lines_of(cap.err), 1);
		assert_null(fake.called);
	}
}

static void certificates(void **state)
{
	char path[] = "/tmp/ptcp-test-XXXXXX", line[100];
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "ptcp-certificate AAAA\n", 22), 22);
	close(fd);
	snprintf(line, sizeof line, "key show --certificate %s", path);
	assert_int_equal(command(line), 0);
	assert_string_equal(fake.called, "read");
	assert_string_equal(fake.perm_name, "ptcp-certificate AAAA\n");
	assert_string_equal(cap.out, FP "  00000000000000a1  " FP "  client ann  read-only  relay  a b  "
	    "1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z  expired\n");
	strcat(line, " --json");
	assert_int_equal(command(line), 0);
	assert_non_null(strstr(cap.out, "\"for\":\"client\",\"name\":\"ann\""));
	unlink(path);
	assert_int_equal(command("key show --ca ca.pem"), 0);
	assert_string_equal(fake.called, "show-authority");
	assert_string_equal(fake.ca, "ca.pem");
	assert_string_equal(cap.out, FP "\n");
	assert_int_equal(command("key generate --ca ca.pem"), 0);
	assert_string_equal(fake.called, "authority");
	assert_string_equal(fake.ca, "ca.pem");
	assert_string_equal(cap.out, FP "\n");
	assert_int_equal(command("key authorize --ca " FP " --root /srv"), 0);
	assert_true(fake.perm_authority);
	assert_string_equal(fake.fingerprint, FP);
	assert_int_equal(command("key sign --ca ca.pem --name ann --root a/b --read-only --expires 8h " FP), 0);
	assert_string_equal(fake.called, "sign");
	assert_string_equal(cap.out, "ptcp-certificate AAAA\n");
	assert_string_equal(fake.perm_root, "a/b");
	assert_string_equal(fake.perm_name, "ann");
	assert_true(fake.perm_read_only && !fake.perm_no_relay);
	assert_int_equal(fake.valid_s, 8 * 3600 + 300);
	assert_int_equal(command("key sign --ca ca.pem --hosts *.x " FP), 0);
	assert_string_equal(fake.perm_name, "*.x");
	assert_int_equal(fake.valid_s, 90 * 86400 + 300);
	assert_int_equal(command("key show --certificates"), 0);
	assert_string_equal(cap.out, "00000000000000a1  " FP "  client ann  read-only  relay  a b  "
	    "1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z  expired\n00000000000000a1  " FP "  server *.x  read-only  "
	    "relay  -  2100-01-01T00:00:00Z to 2100-01-01T00:00:01Z  not yet valid\n");
	assert_int_equal(command("key show --certificates --json"), 0);
	assert_non_null(strstr(cap.out, "\"for\":\"client\",\"name\":\"ann\",\"from\":\"1970-01-01T00:00:00Z\""));
	assert_int_equal(command("key revoke 00000000000000a1"), 0);
	assert_string_equal(fake.called, "revoke-certificate");
	assert_int_equal(command("key install /dev/null"), 2);
	assert_int_equal(command("key install /nowhere/x"), 2);
}

static void advises(void **state)
{
	static const char *const line = "advise --json --probes 2,9 --impact 20 -6 --congestion bbr h:1";

	(void)state;
	fake.advice = (struct ptcp_advice){ .streams = 3, .throughput_bps = 5e6, .max_streams = 1,
		.model = PTCP_MODEL_FAIR_SHARE, .used = { 1e-7, 1e-7 }, .congestion = "bbr",
		.limit = PTCP_LIMIT_SEND_BUFFER, .limit_advice = "raise it", .path_rate_bps = NAN };
	assert_int_equal(command(line), 0);
	assert_string_equal(cap.err, "");
	assert_int_equal(lines_of(cap.out), 1);
	assert_non_null(strstr(cap.out, "\"warning\":\"raise it\""));
	assert_non_null(strstr(cap.out, "\"congestion\":\"bbr\""));
	assert_non_null(strstr(cap.out, "\"limit\":\"send-buffer\""));
	assert_string_equal(fake.dest, "h:1");
	assert_int_equal(fake.advice_opts.n_levels, 2);
	assert_true(fake.advice_opts.impact_percent == 20);
	assert_int_equal(fake.opts.family, 6);
	assert_string_equal(fake.opts.congestion, "bbr");
	assert_int_equal(fake.frees, 1);
	assert_int_equal(command("advise h"), 0);
	assert_non_null(strstr(cap.out, "  - raise it\n"));
	assert_non_null(strstr(cap.out, "congestion control bbr, limited by: send-buffer\n"));
	assert_non_null(strstr(cap.out, "3 streams: 5.00 Mbit/s; any transfer takes "));
	assert_non_null(strstr(cap.out, "\nrun: ptcp send --streams 3 --congestion bbr ...\n"));
	fake.advice.path_rate_bps = 1234e6;
	assert_int_equal(command("advise h"), 0);
	assert_non_null(strstr(cap.out, " --congestion bbr --rate 1234000kbit/s ...\n"));
	fake.advice.path_rate_bps = NAN;
	fake.advice.yields = true; /* no number of streams keeps a budget */
	assert_int_equal(command("advise h"), 0);
	assert_non_null(strstr(cap.out, ": what competing flows leave: ptcp send --impact 0\nhalf of it "));
	assert_non_null(strstr(cap.out, ": ptcp send --streams 0 --congestion bbr\n\nrun: ptcp send --impact 0 ...\n"));
	assert_null(strstr(cap.out, "cubic"));
	assert_int_equal(command("advise --json h"), 0);
	assert_non_null(strstr(cap.out, "\"streams\":1,\"throughput_bps\":null,\"command\":\"ptcp send --impact 0\""));
	assert_non_null(strstr(cap.out, "\"yields\":true"));
	fake.advice.yields = false;
	fake.advice.limited_by = PTCP_LIMITED_BY_IMPACT;
	assert_int_equal(command("advise h"), 0);
	assert_non_null(strstr(cap.out, "\nAn additional stream would slow competing flows by "));
	assert_null(strstr(cap.out, "if there are any")); /* given probes say nothing about them */
	fake.advice.n_curve = 1;
	assert_int_equal(command("advise h"), 0);
	assert_non_null(strstr(cap.out, " from competing flows, if there are any; 3 streams take "));
	assert_non_null(strstr(cap.out,
	    "\nAn additional stream would slow a flow that the probes cannot see by an expected "));
	fake.advice.n_curve = 0;
	fake.advice.others = PTCP_OTHERS_NONE_SEEN;
	assert_int_equal(command("advise h"), 0);
	assert_non_null(strstr(cap.out,
	    "\nAn additional stream would slow a flow that the probes cannot see by an expected "));
	assert_non_null(strstr(cap.out, "3 streams: 5.00 Mbit/s; no competing flows seen (budget "));
	fake.advice.impact_percent = fake.advice.impact_total_percent = fake.advice.impact_low_percent =
	    fake.advice.impact_high_percent = NAN; /* a host limits */
	fake.advice.n_curve = 1;
	fake.advice.curve[0] = (struct ptcp_advice_point){ 5e6, 4e6, 6e6, NAN, NAN, NAN, NAN };
	assert_int_equal(command("advise h"), 0);
	assert_non_null(strstr(cap.out,
	    "3 streams: 5.00 Mbit/s; a host, not the network, limits: the impact is unknown (budget "));
	assert_null(strstr(cap.out, "nan"));
	assert_null(strstr(cap.out, "additional stream"));
	assert_null(strstr(cap.out, "model "));
	assert_non_null(strstr(cap.out, "\n       1    5.00 Mbit/s        -              -\n"));
	assert_non_null(strstr(cap.out, ", impact unknown: ptcp send --streams "));
	assert_int_equal(command("advise --json h"), 0);
	assert_non_null(strstr(cap.out, "\"impact_percent\":null,\"budget_percent\""));
	assert_non_null(strstr(cap.out, "\"impact_total_percent\":null"));
	assert_non_null(strstr(cap.out, "\"impact_high_percent\":null"));
	fake.run_code = PTCP_ECONNECT;
	fake.sentence = "h: nobody (look)";
	assert_int_equal(command("advise h"), 3);
	assert_string_equal(cap.out, "");
	assert_string_equal(cap.err, "ptcp: h: nobody (look)\n");
	assert_int_equal(command("advise --probes 1,0 h"), 2);
	assert_int_equal(command("advise --probes 1,129 h"), 2);
	assert_int_equal(command("advise h h"), 2);
	assert_int_equal(command("advise"), 2);
}

/* Measured levels are printed, even if later rounds fail. */
static void measures(void **state)
{
	static const double rates[] = { 1e6, 2e6 };
	static const struct ptcp_round rounds[] = { { 1, 2, NULL, 3e6, rates, 4, "" },
		{ 2, 2, "cut", 0, NULL, 0, "" } };
	static const struct ptcp_level level = { 2, 2, 1, 3e6, 3e6, 3e6, 0, 1.5e6, 0.9, 1, 1e6, 2e6, 7e5 };

	(void)state;
	fake.rounds = rounds;
	fake.n_rounds = 2;
	fake.levels = &level;
	fake.n_levels = 1;
	assert_int_equal(command("measure --streams 2,7 --rounds 3 --interval 1m --bytes-per-stream 1MB h"), 0);
	assert_int_equal(lines_of(cap.out), 7);
	assert_int_equal(fake.measure.n_streams, 2);
	assert_int_equal(fake.measure.rounds, 3);
	assert_true(fake.measure.interval_s == 60);
	assert_int_equal(fake.measure.bytes_per_stream, 1000000);
	fake.run_code = PTCP_EPEER;
	fake.sentence = "h: gone (again)";
	assert_int_equal(command("measure --json h"), 1);
	assert_int_equal(lines_of(cap.out), 3);
	assert_string_equal(cap.err, "ptcp: h: gone (again)\n");
	assert_int_equal(fake.frees, 2);
	fake.run_code = 0;
	assert_int_equal(command("measure --csv /proc/nonexistent/x h"), 1);
	assert_non_null(strstr(cap.err, "ptcp: --csv /proc/nonexistent/x: "));
	errno = ENOENT; /* of an unrelated call */
	assert_int_equal(command("measure --csv /dev/full -q h"), 1);
	assert_null(strstr(cap.err, "No such file"));
	assert_non_null(strstr(cap.err, "ptcp: --csv /dev/full: incomplete"));
	assert_int_equal(lines_of(cap.err), 1);
	assert_int_equal(command("measure --bytes-per-stream 0 h"), 2);
	assert_int_equal(command("measure --interval soon h"), 2);
	assert_int_equal(command("measure --rounds 0 h"), 2);
	assert_int_equal(command("measure"), 2);
}

static void help(void **state)
{
	(void)state;
	assert_int_equal(command("send --help"), 0);
	assert_non_null(strstr(cap.out, "\nFiles to transfer:\n      --exclude GLOB             leave out "));
	assert_non_null(strstr(cap.out, "\n      --streams N|auto           number "));
	assert_non_null(strstr(cap.out,
	    "\n      --cipher WORD              cipher for data: aes128gcm|aes256gcm|chacha20|none (default: "));
	assert_non_null(strstr(cap.out,
	    "\n      --preserve WORD,..         what to preserve: times|mode|links|owner|xattr|acl|setid|all|none "
	    "(default: "));
	assert_non_null(strstr(cap.out,
	    "\n      --log-level WORD           log messages of this level and above: error|warn|info|debug|trace\n"));
	assert_non_null(strstr(cap.out, "\n  Connection, movers: --fingerprint --timeout --wait --congestion --bind "
	    "--dscp --ipv4 --ipv6 --retry-for --via --relays --paths\n    --overlay --local-host --movers "));
	assert_non_null(strstr(cap.out,
	    "  Files, attributes, SSH: --filter --cvs-exclude --from0 "));
	assert_non_null(strstr(cap.out, " --suffix --link-dest "));
	assert_null(strstr(cap.out, "--mkpath ")); /* a default */
	assert_int_equal(command("key -h"), 0);
	assert_int_equal(fake.runs, 0);
}

static void cleans(void **state)
{
	(void)state;
	assert_int_equal(command("clean x"), 0);
	assert_true(fake.clean.older_s == 86400 && !fake.clean.dry_run);
	assert_string_equal(cap.out, "d/a\\012b  7.00 kB  1 h 00 m\n");
	assert_string_equal(cap.err, "removed 1 leftover, 7.00 kB; retained 2 in use, 0 too recent\n");
	assert_int_equal(command("clean -n -q --older 2h x"), 0);
	assert_true(fake.clean.older_s == 7200 && fake.clean.dry_run);
	assert_string_equal(cap.out, "");
	assert_string_equal(cap.err, "");
	assert_int_equal(command("clean --json --older 0 x"), 0);
	assert_end(0);
	assert_non_null(strstr(cap.out, "\"status\":\"removed\""));
	fake.clean_why = "busy";
	assert_int_equal(command("clean x"), 6);
	assert_string_equal(cap.err, "ptcp: d/a\\012b: busy\nptcp: x: one remains\n");
	assert_int_equal(command("clean --json x"), 6);
	assert_end(6);
	assert_int_equal(command("clean"), 2);
}

static void cleans_elsewhere(void **state)
{
	(void)state;
	assert_int_equal(command("clean --older 2h --timeout 4s ptcp://h/d"), 0);
	assert_string_equal(fake.dest, "ptcp://h/d");
	assert_true(fake.clean.older_s == 7200 && fake.opts.timeout_s == 4 && fake.runs == 1);
	assert_string_equal(cap.err, "10000 more, not listed\n"
	    "removed 20000 leftovers, 0 B; retained 0 in use, 0 too recent\n");
	assert_int_equal(command("clean --json ptcp://h/d"), 0);
	assert_end(0);
	assert_non_null(strstr(cap.out, "\"unlisted\":10000"));
}

static void lists(void **state)
{
	static const struct ptcp_entry all[] = {
		{ .path = "b-c", .type = PTCP_ENTRY_FILE, .mode = 04711, .bytes = 7000, .mtime_s = 86400 },
		{ .path = "b/\033x", .type = PTCP_ENTRY_SYMLINK, .mode = 0777, .bytes = 3, .target = "a\nb" },
		{ .path = "b", .type = PTCP_ENTRY_DIR, .mode = 01755, .bytes = 4096, .mtime_s = 1e9 },
		{ .path = "d", .code = PTCP_EIO, .sys = ENOENT, .why = "gone" },
	};

	(void)state;
	setenv("TZ", "UTC", 1);
	fake.entries = all;
	fake.n_entries = 3;
	assert_int_equal(command("ls -Ra ptcp://a/d"), 0);
	assert_true(fake.op == PTCP_LIST && fake.manage.recursive && fake.manage.hidden && !fake.manage.itself);
	assert_string_equal(cap.out, "b\nb/\\033x\nb-c\n");
	assert_int_equal(command("ls -ld ptcp://a/d"), 0);
	assert_true(fake.manage.itself);
	assert_string_equal(cap.out, "drwxr-xr-t  4096  2001-09-09 01:46:40  b\n"
	    "lrwxrwxrwx     3  1970-01-01 00:00:00  b/\\033x -> a\\012b\n"
	    "-rws--x--x  7000  1970-01-02 00:00:00  b-c\n");
	assert_int_equal(command("ls --json ptcp://a/d"), 0);
	assert_end(0);
	assert_non_null(strstr(cap.out, "{\"event\":\"entry\",\"path\":\"b-c\",\"type\":\"file\",\"mode\":\"4711\","
	    "\"bytes\":7000,\"mtime_s\":86400.0,\"target\":null,\"version\":\"7000@86400.000000000\"}\n"));
	fake.n_entries = 4;
	fake.failed = 1;
	fake.run_code = PTCP_EPARTIAL;
	fake.sentence = "a: 1 failure (see above)";
	assert_int_equal(command("ls ptcp://a/d"), 6);
	assert_string_equal(cap.err, "ptcp: d: gone\nptcp: a: 1 failure (see above)\n");
	assert_int_equal(command("ls --json ptcp://a/d"), 6);
	assert_end(6);
	assert_non_null(strstr(cap.out,
	    "{\"event\":\"failed\",\"path\":\"d\",\"error\":\"gone\",\"cause\":\"ENOENT\"}\n"));
	assert_int_equal(command("ls"), 2);
}

static void changes_files(void **state)
{
	static const struct ptcp_entry sum = { .path = "d", .type = PTCP_ENTRY_DIR, .bytes = 7000, .disk_bytes = 8192,
		.entries = 3 };

	(void)state;
	assert_int_equal(command("mkdir -p ptcp://a/d ptcp://a/e"), 0);
	assert_true(fake.op == PTCP_MKDIR && fake.manage.parents && fake.runs == 1);
	assert_string_equal(fake.srcs, "ptcp://a/d|ptcp://a/e|");
	assert_int_equal(command("rm -r ptcp://a/d"), 0);
	assert_true(fake.op == PTCP_REMOVE && fake.manage.recursive);
	assert_int_equal(command("mv -f ptcp://a/d ptcp://a/e"), 0);
	assert_true(fake.op == PTCP_RENAME && fake.manage.replace);
	assert_int_equal(command("mv ptcp://a/d"), 2);
	assert_int_equal(command("rm -p ptcp://a/d"), 2);
	fake_reset();
	assert_int_equal(command("rm ptcp://a/d ptcp://a/e ptcp://c/f"), 0);
	assert_string_equal(fake.srcs, "ptcp://a/d|ptcp://a/e|ptcp://c/f|");
	assert_int_equal(fake.runs, 2);
	fake.entries = &sum;
	fake.n_entries = 1;
	assert_int_equal(command("du ptcp://b/d ptcp://a/d"), 6);
	assert_true(fake.op == PTCP_COUNT);
	assert_string_equal(cap.out, "  7.00 kB  d\n");
	assert_string_equal(cap.err, "ptcp: b: no connection\nptcp: 1 host failed (see above)\n");
	assert_int_equal(command("du --json ptcp://a/d"), 0);
	assert_end(0);
	assert_non_null(strstr(cap.out, "\"disk_bytes\":8192,\"entries\":3}"));
	assert_int_equal(command("du ptcp://b/d"), 3);
	assert_string_equal(cap.err, "ptcp: b: no connection\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sends_and_receives, setup),
		cmocka_unit_test_setup(failures, setup),
		cmocka_unit_test_setup(events_in_order, setup),
		cmocka_unit_test_setup(interrupted, setup),
		cmocka_unit_test_setup(interrupted_twice, setup),
		cmocka_unit_test_setup(interrupted_early, setup),
		cmocka_unit_test_setup(toggled, setup),
		cmocka_unit_test_setup(output_that_fails, setup),
		cmocka_unit_test_setup(serves, setup),
		cmocka_unit_test_setup(reloads, setup),
		cmocka_unit_test_setup(cleans, setup),
		cmocka_unit_test_setup(cleans_elsewhere, setup),
		cmocka_unit_test_setup(lists, setup),
		cmocka_unit_test_setup(changes_files, setup),
		cmocka_unit_test_setup(keys, setup), cmocka_unit_test_setup(certificates, setup),
		cmocka_unit_test_setup(advises, setup),
		cmocka_unit_test_setup(measures, setup),
		cmocka_unit_test_setup(help, setup),
	};
	return cmocka_run_group_tests_name("cli/command", tests, NULL, NULL);
}
