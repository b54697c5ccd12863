#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/serve.h"
#include "cli/transfer.h"
#include "fake_ptcp.h"

#define FP "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define MAX_ARGS 32

/* Splits at '|', since names may contain spaces; `words` must outlive the result of parsing. */
static int split(char *words, char **argv)
{
	int n = 0;

	while (words != NULL)
		argv[n++] = strsep(&words, "|");
	return n;
}

static char words[1024];
static char *argv_[MAX_ARGS];

static int parse_send(struct transfer_args *a, const char *text, struct ptcp_err *e)
{
	strcpy(words, text);
	memset(e, 0, sizeof *e);
	return transfer_parse(a, &command_send, split(words, argv_), argv_, e);
}

static int parse_serve(struct serve_args *a, const char *text, struct ptcp_err *e)
{
	strcpy(words, text);
	memset(e, 0, sizeof *e);
	return serve_parse(a, &command_serve, text[0] != '\0' ? split(words, argv_) : 0, argv_, e);
}

static void defaults(void **state)
{
	struct transfer_args a;
	struct ptcp_transfer_opts o;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(parse_send(&a, "x|ptcp://h/y", &e), 0);
	o = a.connect.transfer;
	assert_int_equal(o.streams, 0);
	assert_int_equal(o.cipher, PTCP_CIPHER_AES128GCM);
	assert_false(o.no_verify);
	assert_true(o.preserve.times && o.preserve.mode && o.preserve.links);
	assert_int_equal(o.family, 0);
	assert_true(o.timeout_s == 30);
	assert_null(o.congestion);
	assert_int_equal(o.n_fingerprints, 0);
	assert_null(o.log);
	assert_null(o.trust); /* a test has no terminal */
	assert_false(o.file_events);
	assert_false(o.preserve.owner || o.preserve.xattr || o.preserve.setid);
	assert_int_equal(o.n_rules, 0);
	assert_int_equal(o.fsync, PTCP_FSYNC_GROUP);
	assert_false(o.no_resume || o.dry_run);
	assert_int_equal(a.n_srcs, 1);
	assert_string_equal(a.dest, "ptcp://h/y");
	transfer_args_fini(&a);
}

static void every_option(void **state)
{
	struct transfer_args a;
	struct ptcp_transfer_opts o;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(parse_send(&a,
	    "--streams=7|one|--cipher|none|--no-verify|-6q|--timeout|750ms|--json|two|"
	    "--preserve=mode|--congestion|reno|--fingerprint|" FP "|three|"
	    "--fingerprint=h:12=" FP "|--log-level|debug", &e), 0);
	o = a.connect.transfer;
	assert_int_equal(o.streams, 7);
	assert_int_equal(o.cipher, PTCP_CIPHER_NONE);
	assert_true(o.no_verify);
	assert_int_equal(o.family, 6);
	assert_true(o.timeout_s == 0.75);
	assert_true(o.preserve.mode);
	assert_false(o.preserve.times || o.preserve.links);
	assert_string_equal(o.congestion, "reno");
	assert_int_equal(o.n_fingerprints, 2);
	assert_string_equal(o.fingerprints[0], FP);
	assert_string_equal(o.fingerprints[1], "h:12=" FP);
	assert_non_null(o.log);
	assert_int_equal(o.log_level, PTCP_LOG_DEBUG);
	assert_true(o.file_events);
	assert_true(a.connect.log.json && a.connect.log.quiet);
	assert_int_equal(a.n_srcs, 2);
	assert_string_equal(a.srcs[0], "one");
	assert_string_equal(a.srcs[1], "two");
	assert_string_equal(a.dest, "three");
	transfer_args_fini(&a);
}

static void whole_trees(void **state)
{
	static const struct { const char *word; enum ptcp_fsync fsync; } ways[] = {
		{ "none", PTCP_FSYNC_NONE }, { "group", PTCP_FSYNC_GROUP }, { "file", PTCP_FSYNC_FILE },
	};
	struct transfer_args a;
	struct ptcp_transfer_opts o;
	struct ptcp_err e;
	char args[40];

	(void)state;
	assert_int_equal(parse_send(&a,
	    "--exclude|*.o|a|--include=x=y|--exclude=|b|--exclude|-v|--no-resume|-n|"
	    "--preserve|setid,owner,xattr,mode", &e), 0);
	o = a.connect.transfer;
	assert_int_equal(o.n_rules, 4);
	assert_false(o.rules[0].include || o.rules[2].include || o.rules[3].include);
	assert_true(o.rules[1].include);
	assert_string_equal(o.rules[0].pattern, "*.o");
	assert_string_equal(o.rules[1].pattern, "x=y");
	assert_string_equal(o.rules[2].pattern, ""); /* checked by the library */
	assert_string_equal(o.rules[3].pattern, "-v");
	assert_true(o.no_resume && o.dry_run);
	assert_true(o.preserve.mode && o.preserve.owner && o.preserve.xattr && o.preserve.setid);
	assert_false(o.preserve.times || o.preserve.links);
	transfer_args_fini(&a);

	assert_int_equal(parse_send(&a, "--preserve|owner|--preserve|links|a|b|--dry-run", &e), 0);
	assert_false(a.connect.transfer.preserve.owner || a.connect.transfer.preserve.times); /* the last list counts */
	assert_true(a.connect.transfer.preserve.links && a.connect.transfer.dry_run);
	transfer_args_fini(&a);

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		snprintf(args, sizeof args, "a|b|--fsync|%s", ways[i].word);
		assert_int_equal(parse_send(&a, args, &e), 0);
		o = a.connect.transfer;
		assert_int_equal(o.fsync, ways[i].fsync);
		transfer_args_fini(&a);
	}
}

static void order_and_dashes(void **state)
{
	struct transfer_args a;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(parse_send(&a, "-q|--|-v|--streams|-|x", &e), 0);
	assert_int_equal(a.n_srcs, 3);
	assert_string_equal(a.srcs[0], "-v");
	assert_string_equal(a.srcs[1], "--streams");
	assert_string_equal(a.srcs[2], "-");
	assert_string_equal(a.dest, "x");
	assert_int_equal(a.connect.log.verbose, 0);
	transfer_args_fini(&a);

	assert_int_equal(parse_send(&a, "a|b|-4|-6|-4|--streams|1|--streams|128", &e), 0);
	assert_int_equal(a.connect.transfer.family, 4); /* the last one wins */
	assert_int_equal(a.connect.transfer.streams, 128);
	transfer_args_fini(&a);

	assert_int_equal(parse_send(&a, "a|--streams|7|--streams=auto|--preserve|none|b", &e), 0);
	assert_int_equal(a.connect.transfer.streams, 0);
	assert_false(a.connect.transfer.preserve.times || a.connect.transfer.preserve.mode ||
	    a.connect.transfer.preserve.links);
	transfer_args_fini(&a);

	/* habits of users of scp and rsync */
	assert_int_equal(parse_send(&a, "-rvP|-R|--recursive|--progress|--partial|--rate|100MB/s|a|b", &e), 0);
	assert_int_equal(a.n_srcs, 1);
	assert_false(a.connect.transfer.preserve.owner);
	transfer_args_fini(&a);
	assert_int_equal(parse_send(&a, "-a|a|b", &e), 0);
	assert_true(a.connect.transfer.preserve.times && a.connect.transfer.preserve.mode &&
	    a.connect.transfer.preserve.links && a.connect.transfer.preserve.owner && a.connect.transfer.preserve.xattr);
	assert_false(a.connect.transfer.preserve.setid);
	transfer_args_fini(&a);
	assert_int_equal(parse_send(&a, "--preserve|all|a|b", &e), 0);
	assert_true(a.connect.transfer.preserve.times && a.connect.transfer.preserve.mode &&
	    a.connect.transfer.preserve.links && a.connect.transfer.preserve.owner && a.connect.transfer.preserve.xattr &&
	    a.connect.transfer.preserve.acl && a.connect.transfer.preserve.setid);
	transfer_args_fini(&a);

	assert_int_equal(parse_send(&a, "|b", &e), 0); /* the library checks empty operands */
	assert_string_equal(a.srcs[0], "");
	transfer_args_fini(&a);

	assert_int_equal(parse_send(&a, "a|--help", &e), OPTIONS_HELP);
	transfer_args_fini(&a);
	assert_int_equal(parse_send(&a, "-qh", &e), OPTIONS_HELP);
	transfer_args_fini(&a);
}

/* Each error names the option and the text. */
/* A number may be negative if the range of its option begins below 0. */
static void negative_numbers(void **state)
{
	static const struct opt priority = { "priority", 0, "N", "", opt_int, 0, -1000, 1000 },
		level = { "level", 0, "off|LEVEL", "", opt_int, 0, 1, 19 };
	static const struct { const struct opt *o; const char *text; bool good; int value; } rows[] = {
		{ &priority, "5", true, 5 }, { &priority, "0", true, 0 }, { &priority, "-5", true, -5 },
		{ &priority, "-1000", true, -1000 }, { &priority, "1000", true, 1000 },
		{ &priority, "-1001", false, 0 }, { &priority, "1001", false, 0 }, { &priority, "-", false, 0 },
		{ &priority, "--5", false, 0 }, { &priority, "+5", false, 0 }, { &priority, "", false, 0 },
		{ &level, "19", true, 19 }, { &level, "off", true, 0 }, { &level, "-1", false, 0 },
		{ &level, "0", false, 0 },
	};
	struct ptcp_err e;
	size_t i;
	int v, r;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		v = 77;
		r = opt_int(&v, rows[i].o, rows[i].text, &e);
		if ((r == 0) != rows[i].good || v != (rows[i].good ? rows[i].value : 77))
			fail_msg("'%s': %d, %d", rows[i].text, r, v);
	}
}

static void usage_errors(void **state)
{
	static const struct { const char *args; int code; const char *names[2]; } bad[] = {
		{ "a", PTCP_EUSAGE, { "send", "destination" } },
		{ "--relays|a|--paths|0|a|b", PTCP_EUSAGE, { "--paths", "'0'" } },
		{ "--movers|true|--stripe-size|0|a|b", PTCP_EUSAGE, { "--stripe-size", "'0'" } },
		{ "--movers|true|--stripe-size|-4096|a|b", PTCP_EUSAGE, { "--stripe-size", "'-4096'" } },
		{ "--movers|true|--stripe-size|x|a|b", PTCP_EUSAGE, { "--stripe-size", "'x'" } },
		{ "--strems|4|a|b", PTCP_EUSAGE, { "--strems", "no such option (did you mean --streams?)" } },
		{ "--stream=4|a|b", PTCP_EUSAGE, { "--stream=4", "no such option (did you mean --streams?)" } },
		{ "--frobnicate|a|b", PTCP_EUSAGE, { "--frobnicate", "no such option (ptcp help send lists them)" } },
		{ "--=4|a|b", PTCP_EUSAGE, { "--=4", "no such option" } },
		{ "--deleet|a|b", PTCP_EUSAGE, { "--deleet", "no such option (ptcp help send lists them)" } }, /* not --delete */
		{ "--max-depth|0|a|b", PTCP_EUSAGE, { "--max-depth", "'0'" } },
		{ "--max-size|0|a|b", PTCP_EUSAGE, { "--max-size", "'0'" } },
		{ "--list-only|a|b", PTCP_EUSAGE, { "--list-only", "ptcp ls" } },
		{ "-i|a|b", PTCP_EUSAGE, { "-i", "no such option (--ssh names the ssh command" } },
		{ "-qi|a|b", PTCP_EUSAGE, { "-qi: -i", "no such option (--ssh names the ssh command" } },
		{ "-p|4|a|b", PTCP_EUSAGE, { "-p", "--streams N" } },
		{ "-p4|a|b", PTCP_EUSAGE, { "-p4", "--streams N" } },
		{ "--parallel=4|a|b", PTCP_EUSAGE, { "--parallel=4", "--streams N" } },
		{ "--transfers|4|a|b", PTCP_EUSAGE, { "--transfers", "--streams N" } },
		{ "-l|100|a|b", PTCP_EUSAGE, { "-l", "--rate" } },
		{ "--bwlimit=1M|a|b", PTCP_EUSAGE, { "--bwlimit=1M", "--rate" } },
		{ "-C|a|b", PTCP_EUSAGE, { "-C", "--compress sets the level" } },
		{ "-e|ssh|a|b", PTCP_EUSAGE, { "-e", "--ssh" } },
		{ "--port|22|a|b", PTCP_EUSAGE, { "--port", "ssh://HOST:PORT/PATH" } },
		{ "--rate|10M|a|b", PTCP_EUSAGE, { "--rate '10M'", "200Mbit/s or, in bytes, 25MB/s" } },
		{ "--rate|10Mb/s|a|b", PTCP_EUSAGE, { "--rate '10Mb/s'", "25MB/s" } },
		{ "a|b|--streams", PTCP_EUSAGE, { "--streams", "needs a value" } },
		{ "a|b|--fingerprint|SHA256:xyz", PTCP_EUSAGE, { "--fingerprint", "'SHA256:xyz'" } },
		{ "a|b|--fingerprint|h" FP, PTCP_EUSAGE, { "--fingerprint", "'hSHA256:" } },
		{ "a|b|--streams|0", PTCP_EUSAGE, { "--streams", "'0'" } },
		{ "a|b|--streams=129", PTCP_EUSAGE, { "--streams", "'129'" } },
		{ "a|b|--streams=-1", PTCP_EUSAGE, { "--streams", "'-1'" } },
		{ "a|b|--streams=+4", PTCP_EUSAGE, { "--streams", "'+4'" } },
		{ "a|b|--streams= 4", PTCP_EUSAGE, { "--streams", "' 4'" } },
		{ "a|b|--streams=4x", PTCP_EUSAGE, { "--streams", "'4x'" } },
		{ "a|b|--streams=", PTCP_EUSAGE, { "--streams", "''" } },
		{ "a|b|--streams=18446744073709551620", PTCP_EUSAGE,
		    { "--streams", "'18446744073709551620'" } },
		{ "a|b|--streams=4\n\033[2J", PTCP_EUSAGE, { "--streams", "'4\\012\\033[2J'" } },
		{ "a|b|--cipher|des", PTCP_EUSAGE, { "--cipher", "'des'" } },
		{ "a|b|--timeout|soon", PTCP_EUSAGE, { "--timeout", "'soon'" } },
		{ "a|b|--timeout|0", PTCP_EUSAGE, { "--timeout", "'0'" } },
		{ "a|b|--timeout|499ms", PTCP_EUSAGE, { "--timeout", "'499ms'" } },
		{ "a|b|--timeout|25h", PTCP_EUSAGE, { "--timeout", "'25h'" } },
		{ "a|b|--timeout|-1", PTCP_EUSAGE, { "--timeout", "'-1'" } },
		{ "a|b|--congestion|vegas", PTCP_EUSAGE, { "--congestion", "'vegas'" } },
		{ "a|b|--preserve|times,smell", PTCP_EUSAGE, { "--preserve", "'smell'" } },
		{ "a|b|--preserve|times,,mode", PTCP_EUSAGE, { "--preserve", "'times,,mode'" } },
		{ "a|b|--preserve=", PTCP_EUSAGE, { "--preserve", "''" } },
		{ "a|b|--log-level|loud", PTCP_EUSAGE, { "--log-level", "'loud'" } },
		{ "a|b|--json=yes", PTCP_EUSAGE, { "--json", "'yes'" } },
		{ "a|b|--remote-port|0", PTCP_EUSAGE, { "--remote-port", "'0'" } },
		{ "a|b|--remote-port|80x", PTCP_EUSAGE, { "--remote-port", "'80x'" } },
		{ "a|b|--remote-port|65536", PTCP_EUSAGE, { "--remote-port", "'65536'" } },
		{ "a|b|--preserve|times,setid", PTCP_EUSAGE, { "--preserve", "'times,setid'" } },
		{ "a|b|--preserve|owner,none", PTCP_EUSAGE, { "--preserve", "'none'" } },
		{ "a|b|--fsync|always", PTCP_EUSAGE, { "--fsync", "'always'" } },
		{ "a|b|--fsync=", PTCP_EUSAGE, { "--fsync", "''" } },
		{ "a|b|--exclude", PTCP_EUSAGE, { "--exclude", "needs a value" } },
		{ "a|b|--include", PTCP_EUSAGE, { "--include", "needs a value" } },
		{ "a|b|--dry-run=yes", PTCP_EUSAGE, { "--dry-run", "'yes'" } },
		{ "a|b|--no-resume=1", PTCP_EUSAGE, { "--no-resume", "'1'" } },
	};
	struct transfer_args a;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(parse_send(&a, bad[i].args, &e), bad[i].code);
		transfer_args_fini(&a);
		assert_int_equal(exit_status(e.code), EXIT_USAGE);
		if (strstr(e.msg, bad[i].names[0]) == NULL || strstr(e.msg, bad[i].names[1]) == NULL)
			fail_msg("%s: %s", bad[i].args, e.msg);
		if (strchr(e.msg, '\n') != NULL || (strchr(e.msg, '(') == NULL && strstr(e.msg, "not a number from") == NULL))
			fail_msg("%s: not one line with what to do: %s", bad[i].args, e.msg);
	}
}

static void serve(void **state)
{
	struct serve_args a;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(parse_serve(&a, "", &e), 0);
	assert_int_equal(a.n_listen, 0);
	assert_null(a.server.root);
	assert_null(a.settings);
	assert_false(a.server.ephemeral);
	assert_int_equal(a.ciphers, 0);
	assert_int_equal(a.server.n_relay_to, 0);
	assert_int_equal(a.server.max_relayed, 512);
	assert_int_equal(parse_serve(&a, "--relay-to|h:*|--relay-to=10.0.0.0/8|--max-relayed|9", &e), 0);
	assert_int_equal(a.server.n_relay_to, 2);
	assert_string_equal(a.server.relay_to[0], "h:*");
	assert_string_equal(a.server.relay_to[1], "10.0.0.0/8");
	assert_int_equal(a.server.max_relayed, 9);
	serve_args_fini(&a);
	assert_int_equal(parse_serve(&a, "--max-relayed|1", &e), PTCP_EUSAGE); /* a session takes two */
	assert_int_equal(parse_serve(&a, "--ephemeral", &e), 0);
	assert_true(a.server.ephemeral);
	assert_int_equal(parse_serve(&a, "--listen|[::1]:0|--root=/srv|--cipher|none,chacha20|-v", &e), 0);
	assert_int_equal(a.n_listen, 1);
	assert_string_equal(a.listen[0], "[::1]:0");
	assert_string_equal(a.server.root, "/srv");
	assert_int_equal(a.ciphers, 1u << PTCP_CIPHER_NONE | 1u << PTCP_CIPHER_CHACHA20);
	assert_int_equal(log_opts_level(&a.log, PTCP_LOG_WARN), PTCP_LOG_INFO);
	assert_int_equal(parse_serve(&a, "dir", &e), PTCP_EUSAGE);
	assert_int_equal(parse_serve(&a, "--cipher|aes128gcm,rot13", &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "--cipher 'rot13'"));
	assert_int_equal(parse_serve(&a, "--cipher=", &e), PTCP_EUSAGE);
	assert_int_equal(parse_serve(&a, "--streams|4", &e), PTCP_EUSAGE);
	assert_int_equal(parse_serve(&a, "--max-sessions|0", &e), PTCP_EUSAGE);
	assert_int_equal(parse_serve(&a, "--max-streams=129", &e), PTCP_EUSAGE);
	assert_int_equal(parse_serve(&a, "--timeout|0.1s", &e), PTCP_EUSAGE);
	assert_int_equal(parse_serve(&a, "--listen|:1|--listen=:2|--max-sessions|3|--max-streams|5|--timeout|2m|"
	    "--metrics|m.prom", &e), 0);
	assert_int_equal(a.n_listen, 2);
	assert_int_equal(a.server.max_sessions, 3);
	assert_int_equal(a.server.max_streams, 5);
	assert_true(a.server.timeout_s == 120);
	assert_string_equal(a.metrics, "m.prom");
}

/* The file sets options missing from the command line; errors name the place in the file. */
static void serve_file(void **state)
{
	static const struct {
		const char *text, *at, *says;
	} bad[] = {
		{ "rooot: /x\n", ":1:1: ", "unknown key 'rooot'" },
		{ "config: x\n", ":1:1: ", "unknown key 'config'" },
		{ "ephemeral: true\n", ":1:1: ", "unknown key 'ephemeral'" },
		{ "root: /x\ncipher: [aes128gcm, rot13]\n", ":2:21: ", "--cipher 'rot13'" },
		{ "max-streams: many\n", ":1:14: ", "--max-streams 'many'" },
		{ "json: yes\n", ":1:7: ", "true or false" },
	};
	char path[64], args[128];
	struct serve_args a;
	struct ptcp_err e;
	size_t i;
	FILE *f;
	int fd;

	(void)state;
	snprintf(path, sizeof path, "%s/ptcp-serve.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_true((fd = mkstemp(path)) >= 0);
	assert_non_null(f = fdopen(fd, "w"));
	fputs("listen: [\":1\", \":2\"]\nroot: /srv\ncipher: [chacha20, aes256gcm]\nmax-sessions: 9\n"
	    "log-level: debug\njson: true\n", f);
	assert_int_equal(fclose(f), 0);
	snprintf(args, sizeof args, "--config|%s|--listen|:9|--max-streams|2", path);
	assert_int_equal(parse_serve(&a, args, &e), 0);
	assert_int_equal(a.n_listen, 1);
	assert_string_equal(a.listen[0], ":9");
	assert_string_equal(a.server.root, "/srv");
	assert_int_equal(a.ciphers, 1u << PTCP_CIPHER_CHACHA20 | 1u << PTCP_CIPHER_AES256GCM);
	assert_int_equal(a.server.max_sessions, 9);
	assert_int_equal(a.server.max_streams, 2);
	assert_int_equal(a.log.level, PTCP_LOG_DEBUG);
	assert_true(a.log.json);
	serve_args_fini(&a);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_non_null(f = fopen(path, "w"));
		fputs(bad[i].text, f);
		assert_int_equal(fclose(f), 0);
		snprintf(args, sizeof args, "--config|%s", path);
		assert_int_equal(parse_serve(&a, args, &e), PTCP_ECONFIG);
		serve_args_fini(&a);
		if (strncmp(e.msg, path, strlen(path)) != 0 ||
		    strncmp(e.msg + strlen(path), bad[i].at, strlen(bad[i].at)) != 0 ||
		    strstr(e.msg, bad[i].says) == NULL)
			fail_msg("'%s': %s", bad[i].text, e.msg);
	}
	unlink(path); /* a missing file named on the command line is an error */
	assert_int_equal(parse_serve(&a, args, &e), PTCP_ECONFIG);
}

static void log_levels(void **state)
{
	struct log_opts a;

	(void)state;
	log_opts_init(&a);
	assert_int_equal(log_opts_level(&a, LOG_NONE), LOG_NONE);
	assert_int_equal(log_opts_level(&a, PTCP_LOG_WARN), PTCP_LOG_WARN);
	a.quiet = true;
	assert_int_equal(log_opts_level(&a, LOG_NONE), LOG_NONE);
	assert_int_equal(log_opts_level(&a, PTCP_LOG_WARN), PTCP_LOG_ERROR);
	a.level = PTCP_LOG_WARN;
	assert_int_equal(log_opts_level(&a, LOG_NONE), PTCP_LOG_WARN);
	a.verbose = 1;
	assert_int_equal(log_opts_level(&a, LOG_NONE), PTCP_LOG_INFO);
	a.verbose = 2;
	assert_int_equal(log_opts_level(&a, LOG_NONE), PTCP_LOG_DEBUG);
	a.verbose = 1;
	a.level = PTCP_LOG_DEBUG; /* -v raises, it does not lower */
	assert_int_equal(log_opts_level(&a, LOG_NONE), PTCP_LOG_DEBUG);
}

static void trust_answers(void **state)
{
	(void)state;
	assert_int_equal(trust_answer("yes", FP), TRUST_YES);
	assert_int_equal(trust_answer("  YES \r", FP), TRUST_YES);
	assert_int_equal(trust_answer(FP, FP), TRUST_YES);
	assert_int_equal(trust_answer("no", FP), TRUST_NO);
	assert_int_equal(trust_answer("No ", FP), TRUST_NO);
	assert_int_equal(trust_answer("", FP), TRUST_UNCLEAR);
	assert_int_equal(trust_answer("y", FP), TRUST_UNCLEAR);
	assert_int_equal(trust_answer("yes please", FP), TRUST_UNCLEAR);
	assert_int_equal(trust_answer("yesterday", FP), TRUST_UNCLEAR);
	assert_int_equal(trust_answer("SHA256:AAAA", FP), TRUST_UNCLEAR);
	assert_int_equal(trust_answer(FP "B", FP), TRUST_UNCLEAR);
}

/* Every code has the documented exit status. */
static void exit_table(void **state)
{
	static const struct { int code; int status; } want[] = {
		{ 0, 0 }, { PTCP_ENOMEM, 1 }, { PTCP_EUSAGE, 2 }, { PTCP_ECONFIG, 2 },
		{ PTCP_ECONNECT, 3 }, { PTCP_EREFUSED, 4 }, { PTCP_EVERIFY, 5 }, { PTCP_EPARTIAL, 6 },
		{ PTCP_EINFEASIBLE, 7 }, { PTCP_ECANCELED, 8 }, { PTCP_EPROTO, 1 }, { PTCP_EPEER, 1 },
		{ PTCP_ETIMEOUT, 1 }, { PTCP_EIO, 1 }, { PTCP_ENOSPC, 1 }, { PTCP_ECHANGED, 1 },
		{ PTCP_ENOTYET, 2 }, { PTCP_ERANGE, 2 }, { PTCP_EBUSY, 4 }, { PTCP_ESUPERSEDED, 1 },
		{ PTCP_EVANISHED, 24 }, { PTCP_EPARENT, 1 }, { PTCP_ESTOPPED, 30 },
	};
	static const int all[] = {
#define X(name, value, text) name,
		PTCP_ERRORS(X)
#undef X
	};
	size_t i;

	(void)state;
	assert_int_equal(sizeof want / sizeof *want, sizeof all / sizeof *all + 1);
	for (i = 0; i < sizeof want / sizeof *want; i++)
		assert_int_equal(exit_status(want[i].code), want[i].status);
	assert_int_equal(exit_status(-9999), 1);
	assert_int_equal(exit_status(1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(every_option),
		cmocka_unit_test(whole_trees),
		cmocka_unit_test(order_and_dashes),
		cmocka_unit_test(negative_numbers),
		cmocka_unit_test(usage_errors),
		cmocka_unit_test(serve),
		cmocka_unit_test(serve_file),
		cmocka_unit_test(log_levels),
		cmocka_unit_test(trust_answers),
		cmocka_unit_test(exit_table),
	};
	return cmocka_run_group_tests_name("cli/options", tests, NULL, NULL);
}
