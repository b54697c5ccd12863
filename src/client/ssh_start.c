#include "client/ssh_start_impl.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/start_args.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/units.h"

#define NOISE_BYTES (64u << 10)     /* a login shell may print before ptcp starts */
#define LEAVE_NS (2 * NS_PER_S)     /* time between the end of ssh's output and ssh's exit */

void ssh_start_fail(struct ssh_start *f, const struct ptcp_err *why)
{
	if (f->state == REACHED || f->state == FAILED)
		return;
	f->state = FAILED;
	timer_set(f->timer, MONO_NEVER);
	f->o.ops->failed(f->o.arg, why);
}

void ssh_start_fail_as(struct ssh_start *f, const char *fmt, ...)
{
	char text[sizeof ((struct ptcp_err *)0)->msg];
	struct ptcp_err why;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	err_set(&why, PTCP_ECONNECT, "%s: %s", f->name, text);
	ssh_start_fail(f, &why);
}

/* ---- ssh ended before the transfer began ---- */

#define STATUS_USAGE 2 /* exit status of a ptcp that does not know the options */

static void fail_ended(struct ssh_start *f)
{
	const char *ptcp = f->o.remote_ptcp != NULL ? f->o.remote_ptcp : "ptcp";
	char shown[TEXT_NAME_BYTES];

	if (f->o.launch != NULL)
		ssh_start_fail_as(f,
		    "no ptcp answered, but \"%s\"; the command that starts it (%s) ended with status %d (see its "
		    "output)",
		    f->noise, text_escape(shown, sizeof shown, f->o.launch),
		    f->signal != 0 ? 128 + f->signal : f->status);
	else if (!f->exited)
		ssh_start_fail_as(f, "the remote command closed its output (is it ptcp?)");
	else if (f->signal != 0)
		ssh_start_fail_as(f, "ssh was ended by signal %d (run the same command again)", f->signal);
	else if (f->status == 255)
		ssh_start_fail_as(f, "ssh could not connect, or was cut off (see its output; \"ssh %s\" must work)",
		    f->name);
	else if (f->install.phase == INSTALL_OFFERED || f->install.phase == INSTALL_SENDING)
		ssh_start_fail_as(f, "copying ptcp there: ended with status %d (see the output of ssh)", f->status);
	else if (f->state != AWAIT_ANSWER)
		ssh_start_fail_as(f, "the remote ptcp ended before the transfer began, with status %d (see its output)",
		    f->status);
	else if (f->status == 127 || f->status == 126)
		ssh_start_fail_as(f,
		    "%s there: %s (install ptcp there, or give its path with --remote-ptcp /PATH/ptcp)",
		    text_escape(shown, sizeof shown, ptcp), f->status == 127 ? "not found" : "cannot be run");
	else if (f->noise_bytes > 0)
		ssh_start_fail_as(f,
		    "no ptcp answered there, but \"%s\" (is this user allowed to run commands through ssh?)", f->noise);
	else if (f->status == STATUS_USAGE)
		ssh_start_fail_as(f, "the remote ptcp ended with status %d, without an answer (if it is too old, "
		    "update it, or name another with --remote-ptcp)", f->status);
	else
		ssh_start_fail_as(f, "the remote command ended with status %d, without an answer (\"ssh %s %s "
		    "version\" must print a version)", f->status, f->name, text_escape(shown, sizeof shown, ptcp));
}

/* Only once its output is read to the end: the reason may be there. */
static void fail_if_over(struct ssh_start *f)
{
	if (f->state == REACHED || f->state == FAILED)
		return;
	if (f->exited && f->closed)
		fail_ended(f);
	else
		timer_set(f->timer, mono_add_ns(mono_now(), LEAVE_NS));
}

static void on_ssh_start_ended(void *arg, int status, int signal)
{
	struct ssh_start *f = arg;

	f->exited = true;
	f->status = status;
	f->signal = signal;
	fail_if_over(f);
}

/* ---- Lines from the far end ---- */

static void on_noise(struct ssh_start *f, const char *line)
{
	if (f->noise_bytes == 0)
		text_escape_quoted(f->noise, sizeof f->noise, line);
	f->noise_bytes += strlen(line) + 1;
	if (f->noise_bytes > NOISE_BYTES)
		ssh_start_fail_as(f, "no ptcp answered there, but other output, from \"%s\" on (its shell must print "
		    "nothing for commands: \"ssh %s true\")", f->noise, f->name);
}

static void on_answer(struct ssh_start *f, const char *line)
{
	struct ptcp_err why;

	if (ssh_hello_answer_parse(&f->answer, line, &why) < 0) {
		ssh_start_fail_as(f, "%s", why.msg);
		return;
	}
	if (f->o.remote_port != 0 && f->answer.port != f->o.remote_port && !f->answer.final)
		return; /* sent before the server has read of the port */
	if (f->o.remote_port != 0 && !f->o.remote_port_or_any) { /* the user requested that port, and no other */
		f->answer.share_port = 0;
		f->answer.label[0] = '\0';
	}
	log_at(&f->o.context->log, LOG_INFO, "ssh", "event=answer version=%s port=%u shared-port=%u address=%s",
	    text_escape((char[64]){ "" }, 64, f->answer.software), f->answer.port, f->answer.share_port,
	    f->answer.address);
	if (f->o.launch == NULL && !f->o.routed) {
		ssh_connect_begin(f);
		return;
	}
	f->state = REACHED;
	timer_set(f->timer, MONO_NEVER);
	f->o.ops->launched(f->o.arg, &f->answer);
}

/* A login shell may print text without a newline (echo -n, a prompt): the answer ends its line. */
static const char *behind_noise(const char *line)
{
	struct ssh_hello_answer ignored;
	const char *at;

	for (at = line; (at = strstr(at, SSH_HELLO_WORD)) != NULL; at++)
		if (ssh_hello_answer_parse(&ignored, at, NULL) == 0 ||
		    strncmp(at, SSH_HELLO_ERROR " ", strlen(SSH_HELLO_ERROR " ")) == 0)
			return at;
	return line;
}

static void on_line(void *arg, const char *line)
{
	struct ssh_start *f = arg;
	char shown[TEXT_NAME_BYTES];
	size_t n = strlen(SSH_HELLO_ERROR " ");

	if (f->state == AWAIT_ANSWER)
		line = behind_noise(line);
	if (f->state != AWAIT_ANSWER)
		ssh_connect_line(f, line);
	else if (f->scripted && ssh_install_line(f, line))
		return;
	else if (ssh_hello_is_greeting(line))
		on_answer(f, line);
	else if (strncmp(line, SSH_HELLO_ERROR " ", n) == 0)
		ssh_start_fail_as(f, "%s", text_escape(shown, sizeof shown, line + n));
	else
		on_noise(f, line);
}

static void on_ssh_start_closed(void *arg, bool broken)
{
	struct ssh_start *f = arg;

	f->closed = true;
	if (!broken)
		fail_if_over(f);
	else
		ssh_start_fail_as(f, "no ptcp answered there, but a line without end%s%s%s (its shell must print "
		    "nothing for commands: \"ssh %s true\")", f->noise_bytes > 0 ? ", after \"" : "", f->noise,
		    f->noise_bytes > 0 ? "\"" : "", f->name);
}

static void on_sent(void *arg, size_t left)
{
	(void)left;
	ssh_install_sent(arg);
}

static const struct line_reader_ops line_reader_ops = { .line = on_line, .closed = on_ssh_start_closed,
	.sent = on_sent };

static void on_ssh_start_timer(void *arg)
{
	struct ssh_start *f = arg;
	char after[UNITS_TEXT_BYTES];

	units_time_text(after, (double)f->o.sock.timeout_ns / 1e9);
	if (f->closed || f->exited)
		fail_ended(f);
	else if (f->state != AWAIT_ANSWER)
		ssh_connect_timeout(f);
	else if (f->install.phase == INSTALL_OFFERED || f->install.phase == INSTALL_SENDING)
		ssh_start_fail_as(f, "copying ptcp there: no progress for %s (run the same command again)", after);
	else if (f->o.launch != NULL)
		ssh_start_fail_as(f, "no ptcp was started there within %s (see the output of the launch command, or "
		    "allow more time with --timeout)", after);
	else
		ssh_start_fail_as(f, "ssh reached no ptcp there within %s (check that \"ssh %s\" works without "
		    "questions, or allow more time with --timeout)", after, f->name);
}

/* ---- Start and end ---- */

/* Whether ssh can ask a user for a password, which has no time limit. A launch command has no terminal. */
static bool user_can_answer(bool terminal)
{
	static const char *const askers[] = { "SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY" };
	int fd = terminal ? open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
	size_t i;

	if (fd >= 0) {
		fd_close(&fd);
		return true;
	}
	for (i = 0; i < sizeof askers / sizeof *askers; i++)
		if (getenv(askers[i]) != NULL)
			return true;
	return false;
}

void ssh_start_greet(struct ssh_start *f)
{
	line_reader_send(f->lines, SSH_HELLO_WORD " %d %s %u%s%s", SSH_HELLO_VERSION,
	    f->o.context->identity.fingerprint,
	    f->o.remote_port, f->o.remote_port_or_any ? " " SSH_HELLO_OR_ANY : "", f->o.direct_io ? " "
	    SSH_HELLO_DIRECT : "");
}

static int ssh_start_start(struct ssh_start *f, struct ptcp_err *e)
{
	struct child_opts co = { .apart = f->o.launch != NULL, .ended = on_ssh_start_ended, .arg = f };
	struct start_args args;
	char remote[SSH_INSTALL_COMMAND_BYTES];
	int fd, r;

	/* The same for all transfers: their options travel in the protocol. */
	f->scripted = f->o.launch == NULL && f->o.remote_ptcp == NULL;
	if (f->scripted)
		ssh_install_command(remote);
	else if ((size_t)snprintf(remote, sizeof remote, "%s serve --ephemeral", f->o.remote_ptcp != NULL ?
	    f->o.remote_ptcp : "ptcp") >= sizeof remote)
		return err_set(e, PTCP_EUSAGE, "--remote-ptcp: longer than %zu bytes (put it into a script)",
		    sizeof remote - sizeof " serve --ephemeral");
	if (f->o.launch != NULL)
		r = launch_args(&args, f->o.launch, f->o.target->host, f->o.remote_ptcp, e);
	else
		r = ssh_args(&args, f->o.ssh, f->o.target, &f->o.sock, remote, e);
	if (r < 0)
		return r;
	co.argv = args.at;
	if ((r = timer_new(&f->timer, f->o.context->control, on_ssh_start_timer, f, e)) < 0 ||
	    (r = child_start(&f->ssh, f->o.context->control, &co, &fd, e)) < 0 ||
	    (r = line_reader_new(&f->lines, f->o.context->control, &fd, &line_reader_ops, f, e)) < 0)
		return r;
	ssh_start_greet(f);
	if (!user_can_answer(f->o.launch == NULL))
		timer_set(f->timer, mono_add_ns(mono_now(), f->o.sock.timeout_ns));
	return 0;
}

int ssh_start_new(struct ssh_start **out, const struct ssh_start_opts *o, struct ptcp_err *e)
{
	struct ssh_start *f = calloc(1, sizeof *f);
	int r;

	if (f == NULL)
		return err_nomem(e);
	f->o = *o;
	remote_name(o->target, f->name, sizeof f->name);
	if ((r = ssh_connect_init(f, e)) < 0 || (r = ssh_start_start(f, e)) < 0) {
		ssh_start_free(f);
		return r;
	}
	*out = f;
	return 0;
}

void ssh_start_free(struct ssh_start *f)
{
	if (f == NULL)
		return;
	ssh_connect_end(f);
	line_reader_free(f->lines);
	child_free(f->ssh);
	timer_free(f->timer);
	pending_fini(&f->pending);
	ssh_install_end(f);
	free(f);
}
