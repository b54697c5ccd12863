/* libFuzzer target: texts of users, peers and ssh, a line each, through everything that reads one: sizes,
 * rates, timetables and times, targets, addresses, fingerprints, greetings, the command lines of ssh and of launch, a
 * path's history, escapes. */
#include "cli/options.h"
#include "conn/ssh_hello.h"
#include "conn/start_args.h"
#include "core/text.h"
#include "core/timetable.h"
#include "core/units.h"
#include "fuzz.h"
#include "model/history.h"
#include "net/identity.h"
#include "net/line_reader.h"

/* Nothing that a terminal, a log or a line would obey. */
static bool harmless(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

static void escapes(const char *text)
{
	char out[TEXT_NAME_BYTES], plain[64], small[8];

	MUST(harmless(text_escape(out, sizeof out, text)) && strlen(out) < sizeof out);
	MUST(harmless(text_escape(small, sizeof small, text)));
	MUST(harmless(text_escape_quoted(out, sizeof out, text)));
	if (text_percent_decode(plain, sizeof plain, text))
		MUST(strlen(plain) <= strlen(text));
}

static void numbers(const char *text)
{
	uint64_t n;
	unsigned u = 3;
	double d = 0;
	char buf[UNITS_TEXT_BYTES];

	if (units_parse_size(text, &n) == 0)
		MUST(strlen(units_size_text(buf, n)) < sizeof buf);
	if (units_parse_rate(text, &n) == 0)
		MUST(strlen(units_rate_text(buf, (double)n)) < sizeof buf);
	if (units_parse_time(text, &n) == 0)
		MUST(strlen(units_time_text(buf, (double)n / 1e9)) < sizeof buf);
	if (opt_number(text, 2, 100000, &u) == 0)
		MUST(u >= 2 && u <= 100000);
	if (opt_decimal(text, 100, &d) == 0)
		MUST(d >= 0 && d <= 100);
}

/* What ssh is given for a target is words of ours, then names that it takes for nothing else. */
static void ssh(const struct remote *t, const char *command)
{
	static const struct sock_opts so = { .timeout_ns = 1 };
	struct start_args a;
	unsigned i, own = 0;

	if (ssh_args(&a, command, t, &so, "ptcp", NULL) < 0)
		return;
	MUST(a.n < START_ARGS_MAX && a.at[a.n] == NULL && a.n >= 3);
	for (i = 0; i < a.n; i++)
		own += a.at[i][0] == '-' && strcmp(a.at[i], "-T") == 0;
	MUST(own >= 1);
	MUST(strcmp(a.at[a.n - 1], "ptcp") == 0 && strcmp(a.at[a.n - 2], t->host) == 0);
	MUST(t->host[0] != '-' && t->host[0] != '\0' && t->user[0] != '-' && harmless(t->host) && harmless(t->user));
}

static void targets(const char *text)
{
	char name[REMOTE_USER_BYTES + SOCK_HOST_BYTES + 16], host[SOCK_HOST_BYTES];
	struct remote t, again;
	unsigned port;

	if (remote_parse(&t, text, NULL) == 1) {
		MUST(t.port <= 65535 && (t.ssh || t.port > 0));
		remote_name(&t, name, sizeof name);
		if (t.ssh)
			ssh(&t, text);
		MUST(remote_same_host(&t, &t));
		remote_is_contents(&t);
	}
	if (remote_parse_host(&t, text, NULL) == 1) {
		remote_name(&t, name, sizeof name);
		MUST(remote_parse_host(&again, name, NULL) == 1 && remote_same_host(&t, &again));
	}
	if (sock_split(text, host, &port, 7811, NULL) == 0)
		MUST(port <= 65535 && strlen(host) < sizeof host);
}

static void greetings(const char *text)
{
	struct ssh_hello_hello hello;
	struct ssh_hello_answer answer;
	struct ssh_hello_back back;
	unsigned i;

	if (strlen(text) >= LINE_READER_BYTES) /* which is what a line is */
		return;
	if (ssh_hello_hello_parse(&hello, text, NULL) == 0)
		MUST(identity_fingerprint_ok(hello.fingerprint) && hello.port <= 65535 && ssh_hello_is_greeting(text));
	if (ssh_hello_answer_parse(&answer, text, NULL) == 0) {
		MUST(identity_fingerprint_ok(answer.fingerprint) && answer.port >= 1 && answer.port <= 65535);
		MUST((answer.share_port == 0) == (answer.label[0] == '\0') && answer.share_port <= 65535);
		MUST(answer.label[0] == '\0' || client_hello_label_ok(answer.label));
		MUST(answer.address[0] == '\0' || ssh_hello_address_ok(answer.address));
	}
	if (ssh_hello_back_parse(&back, text, NULL) == 0) {
		MUST(back.n <= SSH_HELLO_ADDRESSES && back.port >= 1);
		for (i = 0; i < back.n; i++)
			MUST(ssh_hello_address_ok(back.address[i]));
	}
}

/* The host stays within its words, and no word is anything of a shell's. */
static void launches(const char *text)
{
	static struct start_args a;
	unsigned i;

	if (launch_args(&a, text, "h.example", NULL, NULL) < 0)
		return;
	MUST(a.n > 0 && a.n < START_ARGS_MAX && a.at[a.n] == NULL);
	for (i = 0; i < a.n; i++)
		MUST(a.at[i] != NULL);
}

static void timetables(const char *text)
{
	struct timetable t;
	struct ptcp_err e = { 0 };
	unsigned s;

	if (timetable_parse(&t, text, &e) < 0) {
		MUST(e.msg[0] != '\0');
		return;
	}
	MUST(t.n <= TIMETABLE_RANGES);
	for (s = 0; s < 86400; s += 3599)
		MUST(timetable_bps(&t, s) == 0 || timetable_bps(&t, s) >= TIMETABLE_MIN_BPS);
}

/* What is taken is written as a line that reads the same. */
static void histories(const char *text)
{
	char line[HISTORY_LINE_BYTES];
	struct history_entry h, again;

	if (!history_parse(&h, text))
		return;
	MUST(h.n_probes >= 1 && h.n_probes <= HISTORY_PROBES_MAX);
	MUST(history_format(line, &h) > 0 && history_parse(&again, line));
	MUST(history_same(&h.key, &again.key) && h.when_s == again.when_s && h.n_probes == again.n_probes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	enum ptcp_cipher cipher;
	char *text;

	while (in.n > 0) {
		text = take_line(&in);
		escapes(text);
		numbers(text);
		targets(text);
		greetings(text);
		launches(text);
		timetables(text);
		histories(text);
		if (ptcp_cipher_parse(text, &cipher))
			MUST(strcmp(ptcp_cipher_name(cipher), text) == 0);
		if (identity_fingerprint_ok(text))
			MUST(strlen(text) == PTCP_FINGERPRINT_BYTES - 1);
		free(text);
	}
	return 0;
}
