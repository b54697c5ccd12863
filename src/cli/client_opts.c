#include "cli/client_opts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/install.h"
#include "cli/process.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

/* ---- Question about an unknown server ---- */

enum trust_answer trust_answer(const char *line, const char *fingerprint)
{
	size_t n;

	line += strspn(line, " \t");
	n = strcspn(line, " \t\r\n");
	if (line[n + strspn(line + n, " \t\r\n")] != '\0')
		return TRUST_UNCLEAR;
	if ((n == 3 && strncasecmp(line, "yes", n) == 0) ||
	    (n == strlen(fingerprint) && memcmp(line, fingerprint, n) == 0))
		return TRUST_YES;
	return n == 2 && strncasecmp(line, "no", n) == 0 ? TRUST_NO : TRUST_UNCLEAR;
}

/* The signal may interrupt a different thread, so poll() wakes up regularly. */
bool connect_read_line(char *line, size_t cap)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	size_t n = 0;
	ssize_t r;

	for (;;) {
		if (process_stopping())
			return false;
		if (poll(&in, 1, 100) <= 0)
			continue;
		r = read(STDIN_FILENO, line + n, 1);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		if (line[n] == '\n')
			break;
		if (n < cap - 1) /* a line too long is no valid answer, whatever its end */
			n++;
	}
	line[n] = '\0';
	return true;
}

/* A ptcp_trust_fn. End of input and signals mean no. */
static bool ask_trust(void *arg, const char *host, const char *fingerprint)
{
	char line[256], shown[TEXT_NAME_BYTES];
	enum trust_answer a = TRUST_UNCLEAR;

	(void)arg;
	terminal_line("The host %s is unknown. Its fingerprint is\n    %s\n"
	    "Compare the fingerprint with the output of 'ptcp key show' on the host.",
	    text_escape(shown, sizeof shown, host), fingerprint);
	while (a == TRUST_UNCLEAR) {
		terminal_ask("Trust this host from now on? (yes, no, or type the fingerprint) ");
		if (!connect_read_line(line, sizeof line)) {
			terminal_line("%s", "");
			return false;
		}
		a = trust_answer(line, fingerprint);
	}
	return a == TRUST_YES;
}

/* ---- Options ---- */

static int set_family(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	((struct client_opts *)args)->transfer.family = o->letter - '0';
	return 0;
}

static int set_install(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)o;
	(void)text;
	(void)e;
	((struct client_opts *)args)->transfer.remote.install = install_requested;
	return 0;
}

#define OPT_AT(member) offsetof(struct client_opts, transfer.member)

const struct opt connect_options[] = {
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_CONNECTION)
	{ "ipv4", '4', NULL, "use IPv4 only", set_family, 0, 0, 0 },
	{ "ipv6", '6', NULL, "use IPv6 only", set_family, 0, 0, 0 },
	{ .name = NULL },
};

const struct opt ssh_options[] = {
	OPT_TRANSFER_ROWS(PTCP_OPTIONS_SSH)
	{ "install", 0, NULL, "copy this ptcp to a remote host without ptcp, below ~/.cache/ptcp there", set_install,
	    0, 0, 0 },
	{ .name = NULL },
};

/* Of each --fingerprint its form; the library checks the characters. */
static int check_fingerprints(const struct ptcp_transfer_opts *t, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	size_t i;

	for (i = 0; i < t->n_fingerprints; i++) {
		const char *fp = strstr(t->fingerprints[i], "SHA256:");

		if (fp == NULL || (fp != t->fingerprints[i] && fp[-1] != '=') ||
		    strlen(fp) != PTCP_FINGERPRINT_BYTES - 1)
			return err_set(e, PTCP_EUSAGE, "--fingerprint '%s': not a fingerprint (SHA256: and 43 "
			    "characters, or HOST=SHA256:..; ptcp key show prints it on the server)",
			    text_escape(shown, sizeof shown, t->fingerprints[i]));
	}
	return 0;
}

int connect_parse(struct client_opts *a, const struct command *c, int argc, char **argv, int *operands,
    struct options_given *given, struct ptcp_err *e)
{
	struct ptcp_transfer_opts *t = &a->transfer;
	bool json = options_has_flag(argc, argv, "--json");
	int level, r;

	log_opts_init(&a->log);
	ptcp_transfer_opts_init(t);
	if ((r = options_parse(c, argc, argv, a, operands, given, e)) != 0) {
		a->log.json |= json; /* parsing may fail before --json */
		return r;
	}
	if ((r = check_fingerprints(t, e)) < 0)
		return r;
	if (t->remote.install != NULL && t->remote.ptcp != NULL)
		return err_set(e, PTCP_EUSAGE, "--install: not with --remote-ptcp (leave one out)");
	if (terminal_is(STDIN_FILENO) && terminal_is(STDERR_FILENO)) {
		t->trust = ask_trust;
		if (t->remote.install == NULL)
			t->remote.install = install_after_asking;
	}
	if ((level = log_opts_level(&a->log, LOG_NONE)) != LOG_NONE) {
		t->log = log_print;
		t->log_level = (enum ptcp_log_level)level;
	}
	return 0;
}

#define FREE_TEXTS_EACH(list, n)   opt_copies_free(&a->transfer.list, &a->transfer.n);
#define FREE_TEXTS_COMMAS(list, n) FREE_TEXTS_EACH(list, n)
#define FREE_TEXTS_ONCE(list, n)
#define FREE_TEXTS(TYPE, member, count, ...) FREE_TEXTS_##TYPE(member, count)

void client_opts_fini(struct client_opts *a)
{
	PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, PTCP_NO_ROW, PTCP_NO_ROW, FREE_TEXTS)
}

int connect_direction(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	bool *receive = (bool *)(void *)((char *)args + o->at);

	*receive = strcmp(text, "recv") == 0;
	return *receive || strcmp(text, "send") == 0 ? 0 :
	    opt_reject(o, text, e, "no such direction (send: to the server, or recv: from the server)");
}

struct counts {
	unsigned *count;
	size_t max, n;
};

static int add_count(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	struct counts *c = args;

	if (c->n == c->max)
		return opt_reject(o, part, e, "more than %zu stream counts (leave some out)", c->max);
	if (opt_number(part, 1, PTCP_STREAMS_MAX, &c->count[c->n]) < 0)
		return opt_reject(o, part, e, "not a number from 1 to %d", PTCP_STREAMS_MAX);
	c->n++;
	return 0;
}

int connect_stream_counts(const struct opt *o, const char *text, unsigned *count, size_t max, size_t *n,
    struct ptcp_err *e)
{
	struct counts c = { count, max, 0 };
	int r = opt_each(&c, o, text, e, add_count);

	*n = c.n;
	return r;
}

const char *connect_congestion(const char *name)
{
	static const char *const option[] = { " --congestion cubic", " --congestion bbr", " --congestion reno" };
	size_t i;

	if (name == NULL || name[0] == '\0')
		return "";
	for (i = 0; i < sizeof option / sizeof *option; i++)
		if (strcmp(strrchr(option[i], ' ') + 1, name) == 0)
			return option[i];
	return " --congestion system"; /* no other is requested by its name */
}

/* ---- Runs ---- */

const char *connect_waiting_text(char *buf, size_t cap, const struct ptcp_event *ev)
{
	if (ev->ahead != PTCP_AHEAD_UNKNOWN)
		snprintf(buf, cap, "waiting: %u ahead", ev->ahead);
	else
		snprintf(buf, cap < terminal_width() ? cap : terminal_width(), "waiting: %s",
		    ev->text != NULL ? ev->text : "the server is busy");
	return buf;
}

static void show_warning(void *arg, const struct ptcp_event *ev)
{
	(void)arg;
	if (ev->type == PTCP_EVENT_WARNING)
		terminal_line("ptcp: warning: %s", ev->text);
}

static void show_answer_so_far(const struct ptcp_advice *a)
{
	char line[256], rate[UNITS_TEXT_BYTES], low[UNITS_TEXT_BYTES], high[UNITS_TEXT_BYTES];

	snprintf(line, sizeof line, "so far: %u stream%s: %s (%s to %s); probing goes on", a->streams,
	    plural(a->streams), units_rate_text(rate, a->throughput_bps),
	    units_rate_text(low, a->throughput_low_bps), units_rate_text(high, a->throughput_high_bps));
	terminal_status(line);
}

static void show_streams(void *arg, const struct ptcp_event *ev)
{
	char line[256];

	show_warning(arg, ev);
	if (ev->type == PTCP_EVENT_WAITING)
		terminal_status(connect_waiting_text(line, sizeof line, ev));
	if (ev->type == PTCP_EVENT_ADVICE)
		show_answer_so_far(ev->advice);
	if (ev->type != PTCP_EVENT_STREAMS)
		return;
	snprintf(line, sizeof line, "probing with %u stream%s", ev->to, plural(ev->to));
	terminal_status(line);
}

void connect_show_streams(struct client_opts *a)
{
	a->transfer.event = log_opts_status(&a->log) ? show_streams : show_warning;
}

static void cancel(void *handle)
{
	ptcp_task_cancel(handle);
}

static struct ptcp_host *kept; /* connections of this process; NULL: none yet */

void connect_end(void)
{
	ptcp_host_close(kept);
	kept = NULL;
}

int connect_run(struct ptcp_task *t, struct ptcp_err *e)
{
	struct ptcp_err other; /* a transfer, for example, keeps no connection */
	int r;

	if (kept != NULL || ptcp_host_open(&kept, &other) == 0)
		ptcp_task_keep(t, kept, &other);
	process_catch(EXIT_INTERRUPTED, INTERRUPTED_TWICE);
	process_set_stop(cancel, t);
	r = ptcp_task_run(t, e);
	process_set_stop(NULL, NULL);
	terminal_status("");
	return process_result(r, e);
}

double connect_throughput_bps(uint64_t bytes, double seconds)
{
	return seconds > 0 ? (double)bytes * 8 / seconds : 0;
}
