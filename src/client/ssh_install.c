/* Copies this ptcp to a remote host without ptcp, through ssh (see ssh_install.sh). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/ssh_start_impl.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "net/tls.h"

#define EXECUTABLE_MAX (128u << 20)
#define ABSENT "ptcp-absent "
#define CANNOT "ptcp-cannot "

/* ssh_install.sh, which the remote shell runs, as one line. */
static const char script[] =
#include "client/ssh_install_script.h"
;

void ssh_install_command(char out[SSH_INSTALL_COMMAND_BYTES])
{
	static const char format[] = "sh -c '%s' sh %s";

	_Static_assert(sizeof script + sizeof format + sizeof PTCP_VERSION < SSH_INSTALL_COMMAND_BYTES,
	    "the script fits");
	snprintf(out, SSH_INSTALL_COMMAND_BYTES, format, script, PTCP_VERSION);
}

static int read_all(char *to, size_t n, int fd)
{
	ssize_t r;

	for (; n > 0; to += r, n -= (size_t)r)
		if ((r = read(fd, to, n)) <= 0)
			return -1;
	return 0;
}

/* Reads the executable into f->install. */
static int load(struct ssh_start *f, const char *path, struct ptcp_err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;
	char shown[TEXT_NAME_BYTES];
	struct stat st;

	text_escape(shown, sizeof shown, path);
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = err_sys(e, PTCP_EIO, "%s", shown);
	} else if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > (off_t)EXECUTABLE_MAX) {
		r = err_set(e, PTCP_ECONFIG, "%s: not an executable of at most %u MiB", shown, EXECUTABLE_MAX >> 20);
	} else if ((f->install.data = malloc((size_t)st.st_size)) == NULL) {
		r = err_nomem(e);
	} else {
		f->install.bytes = (size_t)st.st_size;
		errno = EIO; /* the file was shortened meanwhile */
		r = read_all(f->install.data, f->install.bytes, fd) == 0 ? 0 : err_sys(e, PTCP_EIO, "%s", shown);
	}
	fd_close(&fd);
	return r;
}

static void expect_progress(struct ssh_start *f)
{
	timer_set(f->timer, mono_add_ns(mono_now(), f->o.sock.timeout_ns));
}

static void offer(struct ssh_start *f, const char *path)
{
	char digest[TLS_DIGEST_BYTES];
	struct ptcp_err why;

	if (load(f, path, &why) < 0 || tls_digest(digest, f->install.data, f->install.bytes, &why) < 0) {
		ssh_start_fail(f, &why);
		return;
	}
	log_at(&f->o.context->log, LOG_INFO, "ssh", "event=install bytes=%zu sha256=%s", f->install.bytes, digest);
	f->install.phase = INSTALL_OFFERED;
	expect_progress(f);
	line_reader_send(f->lines, "install %zu %s", f->install.bytes, digest);
}

/* `system`: output of uname -sm there. */
static void on_absent(struct ssh_start *f, const char *system)
{
	char ours[2 * sizeof ((struct utsname *)0)->sysname], shown[TEXT_NAME_BYTES];
	const char *path = NULL;
	struct ptcp_err why;
	struct utsname u;
	int r;

	snprintf(ours, sizeof ours, "%s %s", uname(&u) == 0 ? u.sysname : "?", uname(&u) == 0 ? u.machine : "?");
	if (strcmp(system, ours) != 0) {
		ssh_start_fail_as(f, "ptcp there: not found, and this ptcp is for %s, not for %s (install ptcp there, "
		    "or give its path with --remote-ptcp /PATH/ptcp)", ours, text_escape(shown, sizeof shown, system));
		return;
	}
	if ((r = f->o.ops->install(f->o.arg, &path, &why)) < 0)
		ssh_start_fail(f, &why);
	else if (r == 0)
		ssh_start_fail_as(f, "ptcp there: not found (install ptcp there, copy this ptcp with --install, or "
		    "give the path with --remote-ptcp /PATH/ptcp)");
	else
		offer(f, path);
}

bool ssh_install_line(struct ssh_start *f, const char *line)
{
	char shown[TEXT_NAME_BYTES];

	if (strncmp(line, CANNOT, strlen(CANNOT)) == 0 && f->install.phase != INSTALL_DONE) {
		ssh_start_fail_as(f, "the host cannot %s", text_escape(shown, sizeof shown, line + strlen(CANNOT)));
	} else if (f->install.phase == INSTALL_NONE && strncmp(line, ABSENT, strlen(ABSENT)) == 0) {
		on_absent(f, line + strlen(ABSENT));
	} else if (f->install.phase == INSTALL_OFFERED && strcmp(line, "ptcp-send") == 0) {
		f->install.phase = INSTALL_SENDING;
		line_reader_send_all(f->lines, f->install.data, f->install.bytes);
	} else if (f->install.phase == INSTALL_SENDING && strcmp(line, "ptcp-installed") == 0) {
		f->install.phase = INSTALL_DONE;
		ssh_start_greet(f);
		expect_progress(f);
	} else {
		return false;
	}
	return true;
}

void ssh_install_sent(struct ssh_start *f)
{
	if (f->state == AWAIT_ANSWER)
		expect_progress(f);
}

void ssh_install_end(struct ssh_start *f)
{
	free(f->install.data);
	f->install.data = NULL;
}
