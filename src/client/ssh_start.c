#include "client/ssh_start_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/launch_args.h"
#include "client/ssh_args.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define NOISE_BYTES (64u << 10)     /* what a shell may print at login before it starts us */
#define LEAVE_NS (2 * NS_PER_S)     /* between the end of ssh's output and its own */

void ssh_start_fail(struct ssh_start *f, const struct ptcp_err *why)
{
	if (f->state == REACHED || f->state == FAILED)
		return;
	f->state = FAILED;
	timer_set(f->timer, MONO_NEVER);
	f->o.ops->failed(f->o.arg, why);
}

/* ---- ssh has ended before the transfer began ---- */

static void say_why(const struct ssh_start *f, struct ptcp_err *e)
{
	const char *ptcp = f->o.remote_ptcp != NULL ? f->o.remote_ptcp : "ptcp";
	char shown[TEXT_NAME_BYTES];

	if (f->o.launch != NULL)
		err_set(e, PTCP_ECONNECT, "%s: no ptcp answered there, but \"%s\"; what was to start it (%s) ended with status %d "
		    "(see what it said)", f->name, f->noise, text_escape(shown, sizeof shown, f->o.launch),
		    f->signal != 0 ? 128 + f->signal : f->status);
	else if (!f->exited)
		err_set(e, PTCP_ECONNECT, "%s: the command there has closed its output (is it ptcp?)", f->name);
	else if (f->signal != 0)
		err_set(e, PTCP_ECONNECT, "%s: ssh was ended by signal %d (run it again)", f->name, f->signal);
	else if (f->status == 255)
		err_set(e, PTCP_ECONNECT, "%s: ssh could not connect, or was cut off (see what it said; \"ssh %s\" has to "
		    "work)", f->name, f->name);
	else if (f->state != ASKING)
		err_set(e, PTCP_ECONNECT, "%s: the ptcp there ended before the transfer began, with status %d (see what it "
		    "said)", f->name, f->status);
	else if (f->status == 127 || f->status == 126)
		err_set(e, PTCP_ECONNECT, "%s: %s there: %s (install ptcp there, or say where it is with --remote-ptcp "
		    "/PATH/ptcp)", f->name, text_escape(shown, sizeof shown, ptcp),
		    f->status == 127 ? "not found" : "cannot be run");
	else if (f->noise_bytes > 0)
		err_set(e, PTCP_ECONNECT, "%s: no ptcp answered there, but \"%s\" (may this user run commands "
		    "through ssh?)", f->name, f->noise);
	else
		err_set(e, PTCP_ECONNECT, "%s: the ptcp there did not answer, it ended with status %d (it may be too "
		    "old: update it, or name another with --remote-ptcp)", f->name, f->status);
}

/* Its output is read to the end first: the reason may be in it. */
static void look_whether_over(struct ssh_start *f)
{
	struct ptcp_err why;

	if (f->state == REACHED || f->state == FAILED)
		return;
	if (!f->exited || !f->closed) {
		timer_set(f->timer, mono_add_ns(mono_now(), LEAVE_NS));
		return;
	}
	say_why(f, &why);
	ssh_start_fail(f, &why);
}

static void on_ended(void *arg, int status, int signal)
{
	struct ssh_start *f = arg;

	f->exited = true;
	f->status = status;
	f->signal = signal;
	look_whether_over(f);
}

/* ---- The conversation ---- */

static void on_noise(struct ssh_start *f, const char *line)
{
	struct ptcp_err why;

	if (f->noise_bytes == 0)
		text_escape_quoted(f->noise, sizeof f->noise, line);
	f->noise_bytes += strlen(line) + 1;
	if (f->noise_bytes <= NOISE_BYTES)
		return;
	err_set(&why, PTCP_ECONNECT, "%s: no ptcp answered there, but much else, from \"%s\" on (its shell "
	    "should print nothing for commands: \"ssh %s true\")", f->name, f->noise, f->name);
	ssh_start_fail(f, &why);
}

static void on_answer(struct ssh_start *f, const char *line)
{
	struct ptcp_err why;

	if (ssh_hello_answer_parse(&f->answer, line, &why) < 0) {
		err_while(&why, why.code = PTCP_ECONNECT, "%s", f->name);
		ssh_start_fail(f, &why);
		return;
	}
	log_at(&f->o.host->log, LOG_INFO, "ssh", "event=answer version=%s port=%u address=%s",
	    text_escape((char[64]){ "" }, 64, f->answer.software), f->answer.port, f->answer.address);
	if (f->o.launch == NULL) {
		ssh_connect_begin(f);
		return;
	}
	f->state = REACHED;
	timer_set(f->timer, MONO_NEVER);
	f->o.ops->launched(f->o.arg, f->answer.port, f->answer.fingerprint);
}

static void on_line(void *arg, const char *line)
{
	struct ssh_start *f = arg;
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err why;
	size_t n = strlen(SSH_HELLO_ERROR " ");

	if (f->state != ASKING) {
		ssh_connect_line(f, line);
	} else if (ssh_hello_is_meant(line)) {
		on_answer(f, line);
	} else if (strncmp(line, SSH_HELLO_ERROR " ", n) == 0) {
		err_set(&why, PTCP_ECONNECT, "%s: %s", f->name, text_escape(shown, sizeof shown, line + n));
		ssh_start_fail(f, &why);
	} else {
		on_noise(f, line);
	}
}

static void on_closed(void *arg, bool broken)
{
	struct ssh_start *f = arg;
	struct ptcp_err why;

	f->closed = true;
	if (!broken) {
		look_whether_over(f);
		return;
	}
	err_set(&why, PTCP_ECONNECT, "%s: no ptcp answered there, but a line without end%s%s%s (its shell should "
	    "print nothing for commands: \"ssh %s true\")", f->name, f->noise_bytes > 0 ? ", after \"" : "", f->noise,
	    f->noise_bytes > 0 ? "\"" : "", f->name);
	ssh_start_fail(f, &why);
}

static const struct line_reader_ops line_reader_ops = { on_line, on_closed };

static void on_timer(void *arg)
{
	struct ssh_start *f = arg;
	char after[UNITS_TEXT_BYTES];
	struct ptcp_err why;

	if (f->closed || f->exited) {
		say_why(f, &why);
		ssh_start_fail(f, &why);
	} else if (f->state == ASKING && f->o.launch != NULL) {
		err_set(&why, PTCP_ECONNECT, "%s: what was to start ptcp there has not in %s (see what it said; or allow more "
		    "time with --timeout)", f->name, units_time_text(after, (double)f->o.sock.timeout_ns / 1e9));
		ssh_start_fail(f, &why);
	} else if (f->state == ASKING) {
		err_set(&why, PTCP_ECONNECT, "%s: ssh has reached no ptcp there in %s (see whether \"ssh %s\" works, and asks "
		    "for nothing; or allow more time with --timeout)", f->name,
		    units_time_text(after, (double)f->o.sock.timeout_ns / 1e9), f->name);
		ssh_start_fail(f, &why);
	} else {
		ssh_connect_timeout(f);
	}
}

/* ---- Start and end ---- */

/* Whom ssh can ask for a password; that takes its time. */
static bool somebody_is_there(void)
{
	static const char *const ways[] = { "SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY" };
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	size_t i;

	if (fd >= 0)
		close(fd);
	for (i = 0; fd < 0 && i < sizeof ways / sizeof *ways; i++)
		if (getenv(ways[i]) != NULL)
			return true;
	return fd >= 0;
}

static int start(struct ssh_start *f, struct ptcp_err *e)
{
	const char *ptcp = f->o.remote_ptcp != NULL ? f->o.remote_ptcp : "ptcp";
	struct child_opts co = { .ended = on_ended, .arg = f };
	struct launch_args launch;
	struct ssh_args args;
	char remote[4096];
	int fd, r;

	/* A fixed text: what the transfer is about travels in the protocol. */
	if ((size_t)snprintf(remote, sizeof remote, "%s serve --one-time", ptcp) >= sizeof remote)
		return err_set(e, PTCP_EUSAGE, "--remote-ptcp: longer than %zu bytes (put it into a script)",
		    sizeof remote - sizeof " serve --one-time");
	if (f->o.launch != NULL)
		r = launch_args(&launch, f->o.launch, f->o.target->host, f->o.remote_ptcp, e);
	else
		r = ssh_args(&args, f->o.ssh, f->o.target, &f->o.sock, remote, e);
	if (r < 0)
		return r;
	co.argv = f->o.launch != NULL ? launch.at : args.at;
	if ((r = timer_new(&f->timer, f->o.host->control, on_timer, f, e)) < 0 ||
	    (r = child_start(&f->ssh, f->o.host->control, &co, &fd, e)) < 0 ||
	    (r = line_reader_new(&f->lines, f->o.host->control, fd, &line_reader_ops, f, e)) < 0)
		return r;
	line_reader_send(f->lines, SSH_HELLO_WORD " %d %s %u", SSH_HELLO_VERSION, f->o.host->identity.fingerprint,
	    f->o.remote_port);
	if (!somebody_is_there())
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
	if ((r = ssh_connect_init(f, e)) < 0 || (r = start(f, e)) < 0) {
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
	free(f);
}
