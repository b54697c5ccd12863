#include "cli/connect.h"

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

static int add_fingerprint(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct ptcp_transfer_opts *t = &((struct connect_opts *)args)->transfer;
	const char *fp = strstr(text, "SHA256:");

	/* the library checks the characters */
	if (fp == NULL || (fp != text && fp[-1] != '=') || strlen(fp) != PTCP_FINGERPRINT_BYTES - 1)
		return opt_reject(o, text, e, "not a fingerprint (SHA256: and 43 characters, or HOST=SHA256:..; "
		    "ptcp key show prints it on the server)");
	return opt_append(&t->fingerprints, &t->n_fingerprints, text, e);
}

static int set_family(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	((struct connect_opts *)args)->transfer.family = o->letter - '0';
	return 0;
}

static int set_congestion(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	static const char *const known[] = { "auto", "system", "cubic", "bbr", "reno" };
	size_t i;

	for (i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(text, known[i]) == 0) {
			((struct connect_opts *)args)->transfer.congestion = i > 0 ? known[i] : NULL;
			return 0;
		}
	return opt_reject(o, text, e, "no such congestion control (auto, system, cubic, bbr or reno)");
}

static int set_install(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)o;
	(void)text;
	(void)e;
	((struct connect_opts *)args)->transfer.install = install_requested;
	return 0;
}

#define AT(member) offsetof(struct connect_opts, transfer.member)

const struct opt connect_options[] = {
	{ "fingerprint", 0, "[HOST[:PORT]=]FP", "trust this server identity in this run; repeatable", add_fingerprint,
	    0, 0, 0 },
	{ "timeout", 0, "TIME", "give up after this time without progress of the peer (default: 30s)", opt_seconds,
	    AT(timeout_s), OPT_PATIENCE },
	{ "wait", 0, "TIME", "how long to wait for a busy server or relay; 0: fail at once (default: 1m)", opt_seconds,
	    AT(wait_s), 0, 86400 },
	{ "ipv4", '4', NULL, "use IPv4 only", set_family, 0, 0, 0 },
	{ "ipv6", '6', NULL, "use IPv6 only", set_family, 0, 0, 0 },
	{ "congestion", 0, "NAME", "congestion control of the sender: auto, system, cubic, bbr or reno (default: auto)",
	    set_congestion, 0, 0, 0 },
	{ .name = NULL },
};

const struct opt ssh_options[] = {
	{ "ssh", 0, "CMD", "ssh command, with its options (default: ssh)", opt_text, AT(ssh), 0, 0 },
	{ "remote-ptcp", 0, "CMD", "command that starts ptcp on the remote host (default: ptcp)", opt_text,
	    AT(remote_ptcp), 0, 0 },
	{ "install", 0, NULL, "copy this ptcp to a remote host without ptcp, below ~/.cache/ptcp there", set_install,
	    0, 0, 0 },
	{ "remote-port", 0, "PORT", "port for the ephemeral server on the remote host (default: any free port)",
	    opt_unsigned, AT(remote_port), 1, 65535 },
	{ .name = NULL },
};

int connect_parse(struct connect_opts *a, const struct command *c, int argc, char **argv, int *operands,
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
	if (t->install != NULL && t->remote_ptcp != NULL)
		return err_set(e, PTCP_EUSAGE, "--install: not with --remote-ptcp (leave one out)");
	if (terminal_is(STDIN_FILENO) && terminal_is(STDERR_FILENO)) {
		t->trust = ask_trust;
		if (t->install == NULL)
			t->install = install_after_asking;
	}
	if ((level = log_opts_level(&a->log, LOG_NONE)) != LOG_NONE) {
		t->log = log_print;
		t->log_level = (enum ptcp_log_level)level;
	}
	return 0;
}

void connect_opts_fini(struct connect_opts *a)
{
	opt_list_free(&a->transfer.fingerprints, &a->transfer.n_fingerprints);
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

static void show_streams(void *arg, const struct ptcp_event *ev)
{
	char line[256];

	(void)arg;
	if (ev->type == PTCP_EVENT_WAITING)
		terminal_status(connect_waiting_text(line, sizeof line, ev));
	if (ev->type != PTCP_EVENT_STREAMS)
		return;
	snprintf(line, sizeof line, "probing with %u stream%s", ev->to, plural(ev->to));
	terminal_status(line);
}

void connect_show_streams(struct connect_opts *a)
{
	if (log_opts_status(&a->log))
		a->transfer.event = show_streams;
}

static void cancel(void *handle)
{
	ptcp_task_cancel(handle);
}

int connect_run(struct ptcp_task *t, struct ptcp_err *e)
{
	int r;

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
