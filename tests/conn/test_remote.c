/* What users write for the other side, how ssh is called for it, what both sides say through it, and what
 * a path means there.
 * against: paths */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ptcp/ptcp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/ssh_hello.h"
#include "conn/start_args.h"
#include "core/units.h"

/* ---- Targets */

static void targets(void **state)
{
	static const struct {
		const char *text;
		int result;
		bool ssh;
		const char *user, *host;
		unsigned port;
		const char *path, *name;
	} cases[] = {
		{ "ptcp://h/x", 1, false, "", "h", 7811, "/x", "h:7811" },
		{ "ptcp://h:1/%20", 1, false, "", "h", 1, "/ ", "h:1" },
		{ "ptcp://[::1]:1/", 1, false, "", "::1", 1, "/", "[::1]:1" },
		/* RFC 6874 */
		{ "ptcp://[fe80::1%25eth0]:1/", 1, false, "", "fe80::1%eth0", 1, "/", "[fe80::1%eth0]:1" },
		{ "ptcp://[fe80::1%eth0]:1/", 1, false, "", "fe80::1%eth0", 1, "/", "[fe80::1%eth0]:1" },
		{ "h:x", 1, true, "", "h", 0, "x", "h" },
		{ "h:", 1, true, "", "h", 0, "", "h" },
		{ "u@h:/a/b c", 1, true, "u", "h", 0, "/a/b c", "u@h" },
		{ "u@h:a:b", 1, true, "u", "h", 0, "a:b", "u@h" },
		{ "u@h:$(id)", 1, true, "u", "h", 0, "$(id)", "u@h" },
		{ "u@h:%41", 1, true, "u", "h", 0, "%41", "u@h" },
		{ "u@h:-rf", 1, true, "u", "h", 0, "-rf", "u@h" },
		{ "u@h:x/", 1, true, "u", "h", 0, "x/", "u@h" },
		{ "h:~/x", 1, true, "", "h", 0, "~/x", "h" },
		{ "u@d.org@h:x", 1, true, "u@d.org", "h", 0, "x", "u@d.org@h" },
		{ "DOM\\u@h:x", 1, true, "DOM\\u", "h", 0, "x", "DOM\\u@h" },
		{ "[::1]:x", 1, true, "", "::1", 0, "x", "::1" },
		{ "u@[fe80::1%eth0]:/x", 1, true, "u", "fe80::1%eth0", 0, "/x", "u@fe80::1%eth0" },
		{ "ssh://h/x", 1, true, "", "h", 0, "/x", "h" },
		{ "ssh://u@h:22/a%20b/", 1, true, "u", "h", 22, "/a b/", "u@h" },
		{ "SSH://h/~/x", 1, true, "", "h", 0, "~/x", "h" },
		{ "ssh://h", 1, true, "", "h", 0, "", "h" },
		{ "ssh://[::1]:22/x", 1, true, "", "::1", 22, "/x", "::1" },
		{ "x", 0, 0, 0, 0, 0, 0, 0 },
		{ "./a:b", 0, 0, 0, 0, 0, 0, 0 },
		{ "/a:b", 0, 0, 0, 0, 0, 0, 0 },
		{ "d/u@h:x", 0, 0, 0, 0, 0, 0, 0 },
		{ ":x", 0, 0, 0, 0, 0, 0, 0 },
		{ "", 0, 0, 0, 0, 0, 0, 0 },
		{ "user@host", 0, 0, 0, 0, 0, 0, 0 }, /* no colon: a file, as for scp */
		{ "ftp://h/x", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "-oProxyCommand=x:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "u@-oProxyCommand=x:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "-l@h:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "a b@h:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "u@h\xc2\x9b:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "\xff@h:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "a\nb@h:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "$(id)@h:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "u@h;id:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "u@`id`:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "@h:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "u@:y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "[::1:x", 0, 0, 0, 0, 0, 0, 0 },
		{ "ssh:///x", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "ssh://h:x/x", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "ssh://h/%zz", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "ssh://-x/y", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "ptcp://u@h/x", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "ptcp:/h/x", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "ptcp:/h\n/x", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "ptcp://h:7811:/x", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
		{ "ssh://h:/x", PTCP_EUSAGE, 0, 0, 0, 0, 0, 0 },
	};
	char name[256];
	struct remote t;
	struct ptcp_err e;
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		r = remote_parse(&t, cases[i].text, &e);
		if (r != cases[i].result)
			fail_msg("%s: %d %s", cases[i].text, r, r < 0 ? e.msg : "");
		if (r < 0 && strchr(e.msg, '(') == NULL)
			fail_msg("%s: does not say what to do: %s", cases[i].text, e.msg);
		if (r <= 0)
			continue;
		assert_int_equal(t.ssh, cases[i].ssh);
		assert_string_equal(t.user, cases[i].user);
		assert_string_equal(t.host, cases[i].host);
		assert_int_equal(t.port, cases[i].port);
		assert_string_equal(t.path, cases[i].path);
		remote_name(&t, name, sizeof name);
		assert_string_equal(name, cases[i].name);
	}
}

/* A URL means what it was made of, and is one word for a shell. */
static void urls(void **state)
{
	static const struct { const char *text, *url; } cases[] = {
		{ "ptcp://h/x", "ptcp://h:7811/x" },
		{ "ptcp://[::1]:1/a%20b/%27$(id)", "ptcp://[::1]:1/a%20b/%27%24%28id%29" },
		{ "u@h:x/", "ssh://u@h/~/x/" },
		{ "h:", "ssh://h/~/" },
		{ "h:/a;b", "ssh://h/a%3Bb" },
		{ "h:~/x", "ssh://h/~/x" },
		{ "ssh://u@[::1]:22/%ff", "ssh://u@[::1]:22/%FF" },
		{ "DOM\\u@h:x", NULL },
	};
	char out[200], *again;
	struct remote t, back;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(remote_parse(&t, cases[i].text, NULL), 1);
		if (cases[i].url == NULL) {
			assert_false(remote_url(&t, out, sizeof out));
			continue;
		}
		assert_true(remote_url(&t, out, sizeof out));
		assert_string_equal(out, cases[i].url);
		assert_int_equal(remote_parse(&back, out, NULL), 1);
		assert_true(remote_same_host(&t, &back));
		again = t.ssh && t.path[0] != '/' && t.path[0] != '~' ? back.path + 2 : back.path;
		assert_string_equal(again, t.path);
		assert_false(remote_url(&t, out, strlen(out) - 2));
	}
}

static void contents(void **state)
{
	static const char *const itself[] = { "h:x", "h:/x", "h:~/x", "h:a/~", "ptcp://h/~" };
	static const char *const inside[] = { "h:", "h:x/", "h:.", "h:~", "h:~u", "h:~/", "h:/", "h:a/.." };
	struct remote t;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof itself / sizeof *itself; i++) {
		assert_int_equal(remote_parse(&t, itself[i], NULL), 1);
		assert_false(remote_is_contents(&t));
	}
	for (i = 0; i < sizeof inside / sizeof *inside; i++) {
		assert_int_equal(remote_parse(&t, inside[i], NULL), 1);
		assert_true(remote_is_contents(&t));
	}
}

/* ---- ssh's command line */

static const char *joined(const struct start_args *a)
{
	static char out[4096];
	unsigned i;
	size_t n = 0;

	for (i = 0; i < a->n; i++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", i > 0 ? "|" : "", a->at[i]);
	assert_null(a->at[a->n]);
	return out;
}

#define OURS "-T|-oRemoteCommand=none|-oClearAllForwardings=yes|-oPermitLocalCommand=no"

static void command_lines(void **state)
{
	const struct sock_opts any = { .family = 0 }, v4 = { .family = 4, .timeout_ns = 1500 * NS_PER_MS },
		v6 = { .family = 6, .timeout_ns = NS_PER_S };
	struct start_args a;
	struct remote t;
	char many[2000];

	(void)state;
	assert_int_equal(remote_parse(&t, "h:secret path", NULL), 1);
	assert_int_equal(ssh_args(&a, NULL, &t, &any, "ptcp serve --ephemeral", NULL), 0);
	assert_string_equal(joined(&a), "ssh|" OURS "|h|ptcp serve --ephemeral");
	assert_int_equal(ssh_args(&a, "", &t, &v6, NULL, NULL), 0);
	assert_string_equal(joined(&a), "ssh|-G|" OURS "|-6|h");
	assert_int_equal(remote_parse(&t, "ssh://u@h:22/x", NULL), 1);
	assert_int_equal(ssh_args(&a, " ssh  -i 'a b' \"c'd\" e\\ f x''y '' ", &t, &v4, "c", NULL), 0);
	assert_string_equal(joined(&a), "ssh|-i|a b|c'd|e f|xy||" OURS "|-oConnectTimeout=2|-4|-p|22|-l|u|h|c");
	assert_int_equal(ssh_args(&a, "ssh 'x", &t, &any, "c", NULL), PTCP_EUSAGE);
	memset(many, 'x', sizeof many - 1);
	many[sizeof many - 1] = '\0';
	for (size_t i = 1; i < sizeof many - 1; i += 2)
		many[i] = ' ';
	assert_int_equal(ssh_args(&a, many, &t, &any, "c", NULL), PTCP_EUSAGE);
}

/* The sentence names what is wrong: not characters that ssh could misread. */
static void too_long(void **state)
{
	static const char *const forms[] = { "%s:x", "u@%s:x", "ptcp://%s/x", "ssh://%s/x" };
	char host[SOCK_HOST_BYTES + 1], text[2 * SOCK_HOST_BYTES];
	struct remote t;
	struct ptcp_err e;
	size_t i;

	(void)state;
	memset(host, 'h', sizeof host - 1);
	host[sizeof host - 1] = '\0';
	for (i = 0; i < sizeof forms / sizeof *forms; i++) {
		snprintf(text, sizeof text, forms[i], host);
		assert_int_equal(remote_parse(&t, text, &e), PTCP_EUSAGE);
		if (strstr(e.msg, "malformed or too long") == NULL)
			fail_msg("%s", e.msg);
	}
	snprintf(text, sizeof text, "u@%s", host);
	assert_int_equal(remote_parse_host(&t, text, &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "malformed or too long"));
	assert_int_equal(remote_parse_host(&t, "u@h:22", &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "malformed or too long"));
}

/* ---- What both sides say */

#define FP "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

#define SHARE_LABEL "0123456789abcdef0123456789abcdef"

static void greetings(void **state)
{
	static const char *const bad[] = {
		"ptcp-ssh", "ptcp-ssh 1", "ptcp-ssh 1 0.1.0", "ptcp-ssh x 0.1.0 " FP " 1 -",
		"ptcp-ssh 1 0.1.0 " FP " 0 -",
		"ptcp-ssh 1 0.1.0 " FP " 65536 -", "ptcp-ssh 1 0.1.0 " FP " -1 -", "ptcp-ssh 1 0.1.0 SHA256:x 1 -",
		"ptcp-ssh 1 0.1.0 " FP " 1 host.example", "ptcp-ssh 1 0.1.0 " FP " 1 127.0.0.1%lo",
		"ptcp-ssh 1 0.1.0 " FP " 1", "ptcp-ssh-2 1 0.1.0 " FP " 1 -",
		"ptcp-ssh 1 0.1.0 " FP " 1 - share", "ptcp-ssh 1 0.1.0 " FP " 1 - share 7811",
		"ptcp-ssh 1 0.1.0 " FP " 1 - share 0 " SHARE_LABEL, "ptcp-ssh 1 0.1.0 " FP
		" 1 - share 65536 " SHARE_LABEL,
		"ptcp-ssh 1 0.1.0 " FP " 1 - share 7811 " SHARE_LABEL "0", "ptcp-ssh 1 0.1.0 " FP
		" 1 - final share 7811 x",
	};
	struct ssh_hello_answer a;
	struct ssh_hello_hello h;
	struct ptcp_err e;
	size_t i;

	(void)state;
	assert_true(ssh_hello_is_greeting("ptcp-ssh 1 x"));
	assert_false(ssh_hello_is_greeting("ptcp-ssh-error x"));
	assert_false(ssh_hello_is_greeting("Welcome"));
	assert_int_equal(ssh_hello_answer_parse(&a, "ptcp-ssh 1 0.1.0 " FP " 7811 fe80::1%eth0", &e), 0);
	assert_string_equal(a.software, "0.1.0");
	assert_string_equal(a.fingerprint, FP);
	assert_int_equal(a.port, 7811);
	assert_string_equal(a.address, "fe80::1%eth0");
	assert_int_equal(ssh_hello_answer_parse(&a, "ptcp-ssh 1 0.2 " FP " 1 - and more, later", &e), 0);
	assert_string_equal(a.address, "");
	assert_false(a.final);
	assert_int_equal(ssh_hello_answer_parse(&a, "ptcp-ssh 1 0.2 " FP " 1 - final", &e), 0);
	assert_true(a.final && a.share_port == 0 && a.label[0] == '\0');
	assert_int_equal(ssh_hello_answer_parse(&a, "ptcp-ssh 1 0.2 " FP " 1 - share 7811 " SHARE_LABEL, &e), 0);
	assert_true(!a.final && a.port == 1 && a.share_port == 7811);
	assert_string_equal(a.label, SHARE_LABEL);
	assert_int_equal(ssh_hello_answer_parse(&a, "ptcp-ssh 1 0.2 " FP " 2 ::1 final share 1 " SHARE_LABEL
	    " later", &e), 0);
	assert_true(a.final && a.share_port == 1);
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		if (ssh_hello_answer_parse(&a, bad[i], &e) != PTCP_EPROTO)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(ssh_hello_answer_parse(&a, "ptcp-ssh 2 0.9", &e), PTCP_EPROTO);
	assert_non_null(strstr(e.msg, "version 2"));
	assert_int_equal(ssh_hello_hello_parse(&h, "ptcp-ssh 1 " FP " 0", &e), 0);
	assert_int_equal(h.port, 0);
	assert_false(h.or_any);
	assert_int_equal(ssh_hello_hello_parse(&h, "ptcp-ssh 1 " FP " 7811 or-any", &e), 0);
	assert_true(h.port == 7811 && h.or_any);
	assert_false(h.direct_io);
	assert_int_equal(ssh_hello_hello_parse(&h, "ptcp-ssh 1 " FP " 0 direct", &e), 0);
	assert_true(h.direct_io && !h.or_any);
	assert_int_equal(ssh_hello_hello_parse(&h, "ptcp-ssh 1 " FP " 7 or-any direct", &e), 0);
	assert_true(h.direct_io && h.or_any);
	assert_int_equal(ssh_hello_hello_parse(&h, "ptcp-ssh 1 " FP, &e), PTCP_EPROTO);
	assert_int_equal(ssh_hello_hello_parse(&h, "ptcp-ssh 1 " FP " x", &e), PTCP_EPROTO);
	assert_int_equal(ssh_hello_hello_parse(&h, "ptcp-ssh 1 SHA256:x 0", &e), PTCP_EPROTO);
	assert_int_equal(ssh_hello_hello_parse(&h, "GET / HTTP/1.0", &e), PTCP_EPROTO);
}

static void ways_back(void **state)
{
	struct ssh_hello_back b;
	char many[4000] = "back 1";
	unsigned i;

	(void)state;
	assert_int_equal(ssh_hello_back_parse(&b, "back 80 10.0.0.1 nonsense ::1", NULL), 0);
	assert_int_equal(b.port, 80);
	assert_int_equal(b.n, 2);
	assert_string_equal(b.address[1], "::1");
	assert_int_equal(ssh_hello_back_parse(&b, "back 0 10.0.0.1", NULL), PTCP_EPROTO);
	assert_int_equal(ssh_hello_back_parse(&b, "back", NULL), PTCP_EPROTO);
	b.port = 80;
	assert_int_equal(ssh_hello_back_parse(&b, "back x 10.0.0.1", NULL), PTCP_EPROTO);
	assert_int_equal(ssh_hello_back_parse(&b, "forth 80 10.0.0.1", NULL), PTCP_EPROTO);
	assert_int_equal(ssh_hello_back_parse(&b, "", NULL), PTCP_EPROTO);
	for (i = 0; i < 300; i++)
		strcat(many, " 10.0.0.1");
	assert_int_equal(ssh_hello_back_parse(&b, many, NULL), 0);
	assert_int_equal(b.n, SSH_HELLO_ADDRESSES);
}

/* ---- Paths there */

static void homes(void **state)
{
	struct passwd *pw = getpwuid(getuid());
	char out[HOME_PATH_BYTES], want[HOME_PATH_BYTES], text[600];
	static char huge[HOME_PATH_BYTES];

	(void)state;
	setenv("HOME", "/home of/me", 1);
#define IS(path, result) \
	do { \
		assert_int_equal(home_path(out, path, NULL), 0); \
		assert_string_equal(out, result); \
	} while (0)
	IS("/x/~", "/x/~");
	IS("x", "/home of/me/x");
	IS("x/", "/home of/me/x/");
	IS("", "/home of/me");
	IS("~", "/home of/me");
	IS("~/", "/home of/me/");
	IS("~/a b/$(id)", "/home of/me/a b/$(id)");
	IS("a/~", "/home of/me/a/~");
	IS("~no-such-user-here/x", "/home of/me/~no-such-user-here/x");
	IS("-rf", "/home of/me/-rf");
	if (pw != NULL) {
		snprintf(text, sizeof text, "~%s/x", pw->pw_name);
		snprintf(want, sizeof want, "%s/x", pw->pw_dir);
		IS(text, want);
	}
	memset(huge, 'x', sizeof huge - 1);
	assert_int_equal(home_path(out, huge, NULL), PTCP_EUSAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets),
		cmocka_unit_test(urls),
		cmocka_unit_test(contents),
		cmocka_unit_test(command_lines),
		cmocka_unit_test(too_long), cmocka_unit_test(greetings),
		cmocka_unit_test(ways_back),
		cmocka_unit_test(homes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
