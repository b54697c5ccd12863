/* A server started through ssh: a script plays ssh and the remote host, by their lines and exit statuses. The sentences
 * for the user, the copy of this program, and the order of modes. The server of the fixture is the one that was
 * "started". against: injection */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "api/fixture.h"
#include "client/ssh_start_impl.h"

#define OTHER "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static struct ptcp_permission permission;
static struct cf_events events;
static char logged[8192], config[256], ssh[256], sys[256], server_port[8];
static const char *executable;   /* the answer to ptcp_install_fn; NULL: no copy */
static unsigned installs;

static int setup(void **state)
{
	struct ptcp_server_opts o;
	struct utsname u;
	FILE *f;

	(void)state;
	ptcp_server_opts_init(&o);
	ptcp_permission_init(&permission);
	if (lf_make_dir() < 0 || mkdir(lf_path("root"), 0755) != 0 || uname(&u) != 0 ||
	    (f = fopen(lf_path("file"), "w")) == NULL || fputs("content\n", f) == EOF || fclose(f) != 0)
		return -1;
	o.root = lf_path("root");
	snprintf(ssh, sizeof ssh, "%s", lf_path("ssh"));
	snprintf(config, sizeof config, "%s", lf_path("client"));
	snprintf(sys, sizeof sys, "%s %s", u.sysname, u.machine);
	if (lf_serve(&o, &permission) < 0)
		return -1;
	snprintf(server_port, sizeof server_port, "%u", ptcp_server_port(lf_server));
	return 0;
}

/* ssh becomes this script of a shell; FP, PORT, OTHER, SYS, DIR stand for the server and the place. -G prints HOST. */
static void plays(const char *script)
{
	FILE *f = fopen(ssh, "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/bash\nFP=%s PORT=%s OTHER=%s SYS='%s' DIR='%s'\n"
	    "case \" $* \" in *' -G '*) echo >>$DIR/asked; [ ! -e $DIR/name ] || cat $DIR/name; exit;; esac\n"
	    "hello() { read -r line; }\nanswer() { hello; echo ptcp-ssh 1 0.1.0 \"$@\"; }\n%s\n",
	    ptcp_server_fingerprint(lf_server), server_port, OTHER, sys, lf_path(""), script);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(ssh, 0755), 0);
	remove(lf_path("asked"));
	remove(lf_path("root/there"));
}

static void on_log(void *arg, enum ptcp_log_level level, const char *component, const char *line)
{
	size_t n = strlen(logged);

	(void)arg; (void)level; (void)component;
	snprintf(logged + n, sizeof logged - n, "%s\n", line);
}

static int on_install(void *arg, const char *host, const char **path, struct ptcp_err *e)
{
	(void)arg; (void)e;
	assert_string_equal(host, "box");
	installs++;
	*path = executable;
	return executable != NULL;
}

static struct ptcp_transfer_opts opts(void)
{
	struct ptcp_transfer_opts o = cf_opts();

	o.config_dir = config;
	o.ssh = ssh;
	o.log = on_log;
	o.log_level = PTCP_LOG_INFO;
	o.remote.install = on_install;
	o.retry_for_s = 0;
	return o;
}

/* Sends the file to `dest`; the result of the task. */
static int runs(struct ptcp_transfer_opts *o, const char *dest, struct ptcp_err *e)
{
	const char *const source[] = { lf_path("file") };
	struct ptcp_task *t;
	int r;

	logged[0] = '\0';
	installs = 0;
	cf_record(o, &events);
	memset(e, 0, sizeof *e);
	if ((r = ptcp_send_new(&t, o, source, 1, dest, e)) < 0)
		return r;
	r = ptcp_task_run(t, e);
	ptcp_task_free(t);
	return r;
}

/* The script's remote host leads to this error, in one printable line. */
static void fails(struct ptcp_transfer_opts *o, const char *script, int code, const char *text)
{
	struct ptcp_err e;
	int r;
	const char *p;

	plays(script);
	if ((r = runs(o, "box:there", &e)) >= 0)
		fail_msg("not refused: %s", script);
	cf_says(&e, text);
	assert_int_equal(r, code);
	assert_int_equal(events.n[PTCP_EVENT_START], 0);
	for (p = e.msg; *p != '\0'; p++)
		assert_true((unsigned char)*p >= ' ');
}

static void logs(const char *text)
{
	if (strstr(logged, text) == NULL)
		fail_msg("\"%s\" is not logged: %s", text, logged);
}

/* The content of a file of the test, without the last newline. */
static const char *content(const char *name)
{
	static char text[4096];
	size_t n = 0;
	FILE *f = fopen(lf_path(name), "r");

	if (f != NULL) {
		n = fread(text, 1, sizeof text - 1, f);
		fclose(f);
	}
	text[n > 0 && text[n - 1] == '\n' ? n - 1 : n] = '\0';
	return text;
}

/* ---- The end of ssh, or other output than an answer ---- */

static void ends(void **state)
{
	struct ptcp_transfer_opts o = opts();

	(void)state;
	fails(&o, "exit 255", PTCP_ECONNECT,
	    "box: ssh could not connect, or was cut off (see its output; \"ssh box\" must work)");
	fails(&o, "exit 127", PTCP_ECONNECT, "box: ptcp there: not found (install ptcp there");
	fails(&o, "exit 126", PTCP_ECONNECT, "box: ptcp there: cannot be run (");
	fails(&o, "exit 2", PTCP_ECONNECT, "ended with status 2, without an answer (if it is too old");
	fails(&o, "exit 5", PTCP_ECONNECT,
	    "ended with status 5, without an answer (\"ssh box ptcp version\" must print a version");
	fails(&o, "kill -9 $$", PTCP_ECONNECT, "box: ssh was ended by signal 9");
	fails(&o, "exec >&- <&-; sleep 60", PTCP_ECONNECT, "the remote command closed its output (is it ptcp?)");
	o.remote.ptcp = "/my/ptcp";
	fails(&o, "exit 127", PTCP_ECONNECT, "box: /my/ptcp there: not found");
	fails(&o, "exit 5", PTCP_ECONNECT, "\"ssh box /my/ptcp version\"");
}

static void noise(void **state)
{
	struct ptcp_transfer_opts o = opts();

	(void)state;
	fails(&o, "echo 'This account is not available.'; echo second; exit 1", PTCP_ECONNECT,
	    "no ptcp answered there, but \"This account is not available.\" (is this user allowed");
	fails(&o, "printf '\\033[31m\\a\\r\\n'; exit 0", PTCP_ECONNECT, "\\033[31m");
	fails(&o, "yes", PTCP_ECONNECT, "no ptcp answered there, but other output, from \"y\" on");
	fails(&o, "yes | tr -d '\\n'", PTCP_ECONNECT, "no ptcp answered there, but a line without end (");
	fails(&o, "echo first; yes | tr -d '\\n'", PTCP_ECONNECT, "a line without end, after \"first\" (");
	fails(&o, "echo ptcp-ssh-error no '\033[31m'room; exit 3", PTCP_ECONNECT, "box: no \\033[31mroom");
}

static void noise_without_newline(void **state)
{
	struct ptcp_transfer_opts o = opts();
	struct ptcp_err e;

	(void)state;
	fails(&o, "printf '$ '; echo ptcp-ssh-error no room; exit 3", PTCP_ECONNECT, "box: no room");
	fails(&o, "printf '$ '; echo ptcp-ssh 1 and more; exit 1", PTCP_ECONNECT, "no ptcp answered there, but");
	plays("printf 'ptcp-ssh here$ '; answer $FP $PORT 127.0.0.1\ncat >/dev/null");
	if (runs(&o, "box:there", &e) < 0)
		fail_msg("%s", e.msg);
}

static void answers(void **state)
{
	struct ptcp_transfer_opts o = opts();

	(void)state;
	fails(&o, "hello; echo ptcp-ssh 2 9.9.9 something else; exit 1", PTCP_ECONNECT,
	    "box: the remote ptcp uses version 2 of the SSH start protocol, the local ptcp version 1");
	fails(&o, "answer nonsense 1 -; cat", PTCP_ECONNECT, "box: a malformed greeting");
	fails(&o, "answer $OTHER 99999 127.0.0.1; cat", PTCP_ECONNECT, "a malformed greeting");
	fails(&o, "answer $OTHER 1; cat", PTCP_ECONNECT, "a malformed greeting");
	fails(&o, "echo ptcp-ssh; cat", PTCP_ECONNECT, "a malformed greeting");
}

/* A login shell may print lines, and the answer may follow. */
static void after_noise(void **state)
{
	struct ptcp_transfer_opts o = opts();
	struct ptcp_err e;

	(void)state;
	plays("echo Welcome; echo; seq 1000; echo ptcp-sshd; echo ptcp-absently; echo \"$line\" >$DIR/hello; answer "
	    "$FP $PORT 127.0.0.1\necho \"$line\" >$DIR/hello; cat >/dev/null");
	if (runs(&o, "box:there", &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(access(lf_path("root/there"), F_OK), 0);
	assert_int_equal(strncmp(content("hello"), "ptcp-ssh 1 SHA256:", 18), 0); /* the client introduces itself */
	assert_non_null(strstr(content("hello"), " 0"));
}

static void nothing_for_long(void **state)
{
	struct ptcp_transfer_opts o = opts();

	(void)state;
	setsid(); /* without a terminal, on which ssh could ask */
	unsetenv("DISPLAY");
	unsetenv("WAYLAND_DISPLAY");
	unsetenv("SSH_ASKPASS");
	if (open("/dev/tty", O_RDWR | O_NOCTTY) >= 0)
		skip();
	o.timeout_s = 0.5;
	fails(&o, "echo \"$*\" >$DIR/arguments; exec sleep 60", PTCP_ECONNECT, "box: ssh reached no ptcp there within");
	assert_non_null(strstr(content("arguments"), "-oConnectTimeout=1 "));
}

/* ---- A copy of this program ---- */

/* Without the user's consent, or for another system, nothing is copied. */
static void absent(void **state)
{
	struct ptcp_transfer_opts o = opts();

	(void)state;
	executable = NULL;
	fails(&o, "hello; echo \"ptcp-absent $SYS\"; cat >$DIR/got", PTCP_ECONNECT,
	    "ptcp there: not found (install ptcp there, copy this");
	assert_int_equal(installs, 1);
	executable = ssh;
	fails(&o, "hello; echo \"ptcp-absent Plan9 pdp11\"; cat >$DIR/got", PTCP_ECONNECT, ", not for Plan9 pdp11 (");
	assert_int_equal(installs, 0);
	assert_string_equal(content("got"), "");
	executable = "/no/such/executable";
	fails(&o, "hello; echo \"ptcp-absent $SYS\"; cat", PTCP_EIO, "/no/such/executable: No such file");
	executable = "/dev/null";
	fails(&o, "hello; echo \"ptcp-absent $SYS\"; cat", PTCP_ECONFIG,
	    "/dev/null: not an executable of at most 128 MiB");
	o.remote.ptcp = "/my/ptcp"; /* which the user has named: no copy takes its place */
	executable = ssh;
	fails(&o, "hello; echo \"ptcp-absent $SYS\"; exit 1", PTCP_ECONNECT,
	    "no ptcp answered there, but \"ptcp-absent ");
	assert_int_equal(installs, 0);
}

static void copied(void **state)
{
	char word[16], sum[80], promised[80], command[700];
	struct ptcp_transfer_opts o = opts();
	struct ptcp_err e;
	unsigned long n;

	(void)state;
	executable = ssh;
	plays("hello; echo \"ptcp-absent $SYS\"; read -r word n sum; echo ptcp-send; head -c $n >$DIR/copy\n"
	    "echo $word $n $(sha256sum <$DIR/copy | cut -d' ' -f1) $sum >$DIR/offer; echo ptcp-installed; answer $FP "
	    "$PORT 127.0.0.1\necho \"$line\" >$DIR/again; cat >/dev/null");
	if (runs(&o, "box:there", &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(installs, 1);
	/* the greeting, once more, to the copy */
	assert_int_equal(strncmp(content("again"), "ptcp-ssh 1 SHA256:", 18), 0);
	assert_int_equal(access(lf_path("root/there"), F_OK), 0);
	assert_int_equal(sscanf(content("offer"), "%15s %lu %79s %79s", word, &n, sum, promised), 4);
	assert_string_equal(word, "install");
	assert_string_equal(sum, promised);
	snprintf(command, sizeof command, "cmp -s '%s' '%s'", lf_path("copy"), ssh);
	assert_int_equal(system(command), 0);
}

/* A remote host that lies gets one copy at most. */
static void copies_that_fail(void **state)
{
	struct ptcp_transfer_opts o = opts();

	(void)state;
	executable = ssh;
	fails(&o, "echo ptcp-send; echo ptcp-installed; exit 3", PTCP_ECONNECT,
	    "no ptcp answered there, but \"ptcp-send\"");
	assert_int_equal(installs, 0);
	fails(&o, "hello; echo \"ptcp-absent $SYS\"; read -r l; printf 'ptcp-cannot \\033[31m\\n'; sleep 60",
	    PTCP_ECONNECT, "box: the host cannot \\033[31m");
	fails(&o, "hello; echo \"ptcp-absent $SYS\"; read -r l; echo ptcp-send; head -c 10 >/dev/null; exit 5",
	    PTCP_ECONNECT, "copying ptcp there: ended with status 5");
	fails(&o, "hello; echo \"ptcp-absent $SYS\"; read -r l; echo \"ptcp-absent $SYS\"; exit 6", PTCP_ECONNECT,
	    "copying ptcp there: ended with status 6");
	assert_int_equal(installs, 1);
	fails(&o, "hello; echo \"ptcp-absent $SYS\"; read -r l; echo ptcp-installed; exit 6", PTCP_ECONNECT,
	    "copying ptcp there: ended with status 6");
	o.timeout_s = 0.5;
	fails(&o, "hello; echo \"ptcp-absent $SYS\"; read -r l; echo ptcp-send; exec sleep 60", PTCP_ECONNECT,
	    "copying ptcp there: no progress for");
}

/* ---- Modes, in their order ---- */

/* Direct, at the address that ssh's connection has; the port of the service comes first. */
static void direct(void **state)
{
	struct ptcp_transfer_opts o = opts();
	struct ptcp_err e;

	(void)state;
	plays("answer $FP $PORT 127.0.0.1; cat >/dev/null");
	assert_int_equal(runs(&o, "box:there", &e), 0);
	logs("event=connected through=own-port address=127.0.0.1");
	assert_string_equal(events.peer, lf_address);
	plays("answer $FP $PORT 127.0.0.1 final share 1 0123456789abcdef0123456789abcdef; cat >/dev/null");
	assert_int_equal(runs(&o, "box:there", &e), 0);
	logs("event=direct-failed through=shared-port to=127.0.0.1");
	logs("event=connected through=own-port");
	assert_int_equal(access(lf_path("asked"), F_OK), -1); /* no name was needed */
}

/* Then at the name that the configuration of ssh has. */
static void by_name(void **state)
{
	struct ptcp_transfer_opts o = opts();
	struct ptcp_err e;
	FILE *f = fopen(lf_path("name"), "w");

	(void)state;
	fputs("port 22\nhostname 127.0.0.1\nuser x\n", f);
	fclose(f);
	plays("answer $FP $PORT -; cat >/dev/null");
	if (runs(&o, "box:there", &e) < 0)
		fail_msg("%s", e.msg);
	logs("event=connected through=own-port address=127.0.0.1");
	plays("answer $FP $PORT 127.0.0.2; cat >/dev/null"); /* the server listens at 127.0.0.1 */
	if (runs(&o, "box:there", &e) < 0)
		fail_msg("%s", e.msg);
	logs("event=direct-failed through=own-port to=127.0.0.2");
	assert_int_equal(access(lf_path("asked"), F_OK), 0);
	assert_int_equal(remove(lf_path("name")), 0);
}

/* Another host at the address: the client offers to be connected to, then the pipe, and then gives up. */
static void nobody_there(void **state)
{
	struct ptcp_transfer_opts o = opts();

	(void)state;
	fails(&o, "answer $OTHER $PORT 127.0.0.1; read -r l; echo \"$l\" >$DIR/back; echo cannot; read -r l; echo "
	    "\"$l\" >$DIR/pipe\nexit 7", PTCP_ECONNECT,
	    "box: the remote ptcp ended before the transfer began, with status 7");
	logs("event=direct-failed through=own-port to=127.0.0.1");
	logs("event=reverse-offered");
	assert_true(strtoul(content("back") + 5, NULL, 10) > 0);
	assert_int_equal(strncmp(content("back"), "back ", 5), 0);
	assert_string_equal(content("pipe"), "pipe");
	assert_int_equal(access(lf_path("root/there"), F_OK), -1);
}

/* Words of another mode lead nowhere. The first of them comes in one write with the answer (echo writes each line): a
 * moment later, it could be in its turn. */
static void lines_out_of_turn(void **state)
{
	struct ptcp_transfer_opts o = opts();

	(void)state;
	fails(&o, "hello; env printf '%s\\n' \"ptcp-ssh 1 0.1.0 $OTHER $PORT 127.0.0.1\" cannot; read -r l; "
	    "echo \"$l\" >$DIR/back; echo pipe; echo cannot; read -r l\necho \"$l\" >$DIR/pipe; exit 7", PTCP_ECONNECT,
	    "box: the remote ptcp ended before the transfer began, with status 7");
	assert_int_equal(strncmp(content("back"), "back ", 5), 0);
	assert_string_equal(content("pipe"), "pipe");
}

/* A request on a job connection has few bytes: it takes the pipe at once. */
static void a_query(void **state)
{
	const char *const url[] = { "box:dir" };
	struct ptcp_transfer_opts o = opts();
	struct ptcp_manage_opts m;
	struct ptcp_task *t;
	struct ptcp_err e;

	(void)state;
	plays("answer $FP $PORT 127.0.0.1; read -r l; echo \"$l\" >$DIR/first; exit 7");
	ptcp_manage_opts_init(&m);
	o.no_history = false; /* of transfers */
	cf_record(&o, &events);
	logged[0] = '\0';
	assert_int_equal(ptcp_manage_new(&t, &o, PTCP_LIST, url, 1, &m, &e), 0);
	assert_int_equal(ptcp_task_run(t, &e), PTCP_ECONNECT);
	cf_says(&e, "with status 7");
	assert_string_equal(content("first"), "pipe");
	assert_null(strstr(logged, "event=connected"));
	ptcp_task_free(t);
}

/* The user's port there counts alone: an answer for another port came before the server knew it. */
static void requested_port(void **state)
{
	struct ptcp_transfer_opts o = opts();
	struct ptcp_err e;

	(void)state;
	o.remote.port = ptcp_server_port(lf_server);
	plays("echo ptcp-ssh 1 0.1.0 $OTHER 1 127.0.0.1; answer $FP $PORT 127.0.0.1 final share 1 "
	    "0123456789abcdef0123456789abcdef\necho \"$line\" >$DIR/hello; cat >/dev/null");
	if (runs(&o, "box:there", &e) < 0)
		fail_msg("%s", e.msg);
	logs("event=connected through=own-port");
	assert_null(strstr(logged, "through=shared-port"));
	assert_string_equal(strrchr(content("hello"), ' ') + 1, server_port);
	o.remote.port_or_any = true;
	o.direct_io = true;
	plays("answer $FP $PORT 127.0.0.1 final; echo \"$line\" >$DIR/hello; cat >/dev/null");
	assert_int_equal(runs(&o, "box:there", &e), 0);
	assert_non_null(strstr(content("hello"), " or-any direct"));
}

/* ---- A launch command ---- */

/* The fingerprint that the command prints is trusted, and no other; the address is that of the URL. */
static void launched(void **state)
{
	struct ptcp_transfer_opts o = opts();
	struct ptcp_err e;

	(void)state;
	o.ssh = NULL;
	o.remote.launch = ssh;
	plays("echo \"$*\" >$DIR/arguments; answer $FP $PORT -; cat >/dev/null");
	if (runs(&o, "ptcp://127.0.0.1:1/there", &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(content("arguments"), "ptcp serve --ephemeral");
	assert_string_equal(events.peer, lf_address);
	plays("answer $OTHER $PORT -; cat >/dev/null");
	assert_int_equal(runs(&o, "ptcp://127.0.0.1:1/there", &e), PTCP_EREFUSED);
	cf_says(&e, "not that of the server that ssh has started");
	plays("echo no license; exit 4");
	assert_int_equal(runs(&o, "ptcp://127.0.0.1:1/there", &e), PTCP_ECONNECT);
	cf_says(&e, "no ptcp answered, but \"no license\"");
	cf_says(&e, "ended with status 4");
	/* the shared port first */
	plays("answer $FP 1 - final share $PORT 0123456789abcdef0123456789abcdef; cat >/dev/null");
	assert_int_equal(runs(&o, "ptcp://127.0.0.1:1/there", &e), 0);
	assert_string_equal(events.peer, lf_address);
	/* then the own port */
	plays("answer $FP $PORT - final share 1 0123456789abcdef0123456789abcdef; cat >/dev/null");
	assert_int_equal(runs(&o, "ptcp://127.0.0.1:1/there", &e), 0);
	assert_string_equal(events.peer, lf_address);
}

/* ---- The command for the remote shell ---- */

static void command(void **state)
{
	char text[SSH_INSTALL_COMMAND_BYTES];
	const char *p;

	(void)state;
	ssh_install_command(text);
	assert_int_equal(strncmp(text, "sh -c '", 7), 0);
	p = strchr(text + 7, '\'');
	assert_non_null(p);
	assert_int_equal(strncmp(p, "' sh " PTCP_VERSION, strlen("' sh " PTCP_VERSION)), 0);
	assert_null(strchr(p + 1, '\''));
	assert_null(strpbrk(text, "\n\\"));
	for (p = text; (p = strchr(p, '!')) != NULL; p++)
		assert_true(p[1] == ' ' || p[1] == '=');
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends),
		cmocka_unit_test(noise),
		cmocka_unit_test(noise_without_newline),
		cmocka_unit_test(answers),
		cmocka_unit_test(after_noise),
		cmocka_unit_test(absent),
		cmocka_unit_test(copied),
		cmocka_unit_test(copies_that_fail),
		cmocka_unit_test(direct),
		cmocka_unit_test(by_name),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(lines_out_of_turn),
		cmocka_unit_test(a_query),
		cmocka_unit_test(requested_port),
		cmocka_unit_test(launched),
		cmocka_unit_test(command),
		cmocka_unit_test(nothing_for_long),
	};

	return cmocka_run_group_tests(tests, setup, lf_teardown);
}
