/* Inside a start through ssh: ssh_start.c runs the command and reads its lines, ssh_install.c copies this ptcp to a
 * host without ptcp, ssh_connect.c connects. */
#ifndef CLIENT_SSH_START_IMPL_H
#define CLIENT_SSH_START_IMPL_H

#include "client/ssh_start.h"
#include "conn/connect.h"
#include "conn/inbound.h"
#include "conn/ssh_hello.h"
#include "net/child.h"
#include "net/line_reader.h"
#include "net/listen.h"

#define SSH_START_NAME_BYTES (REMOTE_USER_BYTES + SOCK_HOST_BYTES)

/* An attempt to connect to the server at one address. */
struct ssh_attempt {
	struct ssh_start *start;
	struct connect *connect;        /* NULL: over */
	bool shared;                    /* through the port of a service */
};

/* A copy of this ptcp to the remote host. */
struct ssh_install {
	enum { INSTALL_NONE, INSTALL_OFFERED, INSTALL_SENDING, INSTALL_DONE } phase;
	char *data;                     /* content of the executable */
	size_t bytes;
};

struct ssh_start {
	struct ssh_start_opts o;
	char name[SSH_START_NAME_BYTES];
	struct child *ssh;
	struct line_reader *lines;      /* NULL once the pipe carries the session */
	struct timer *timer;
	struct ssh_install install;
	/* The server's answer, modes of connecting in this order, the end */
	enum { AWAIT_ANSWER, DIRECT, BACK, PIPE, REACHED, FAILED } state;
	struct ssh_hello_answer answer;
	bool scripted;                  /* the command is ssh_install_command() */
	size_t noise_bytes;
	char noise[80];                 /* the first line before the answer */
	bool exited, closed;            /* ssh; its output */
	int status, signal;
	/* DIRECT: to the server's address of ssh's connection, and to the host name in ssh's configuration; at both to
	 * the shared port, if there is one, and to the server's own port */
	struct ssh_attempt attempt[4];
	unsigned n_attempts;
	bool deferred_own;              /* the own port at the first address, until the shared port has had its time */
	struct child *names;
	struct line_reader *names_lines;
	struct timer *stagger;          /* timer of the second attempt */
	bool queried_names;
	/* BACK */
	struct listener *listener;
	struct pending pending;
	/* PIPE */
	struct connect *pipe;
};

void ssh_start_fail(struct ssh_start *f, const struct ptcp_err *why);
/* The same, with "NAME: " and a sentence. */
void ssh_start_fail_as(struct ssh_start *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sends the client's line. */
void ssh_start_greet(struct ssh_start *f);

/* ---- ssh_install.c ---- */

/* Command for the remote shell: starts ptcp, or an installed copy, or receives one. Without newlines, single quotes
 * inside the quoted part, and backslashes, which shells treat differently; an exclamation mark, which csh expands,
 * stands before a space or an equals sign only. */
#define SSH_INSTALL_COMMAND_BYTES 4096
void ssh_install_command(char out[SSH_INSTALL_COMMAND_BYTES]);
/* A line before the answer; false: not one of an installation. */
bool ssh_install_line(struct ssh_start *f, const char *line);
void ssh_install_sent(struct ssh_start *f);
void ssh_install_end(struct ssh_start *f);

/* ---- ssh_connect.c ---- */

int ssh_connect_init(struct ssh_start *f, struct ptcp_err *e);
/* After the answer. */
void ssh_connect_begin(struct ssh_start *f);
/* A line after the answer. */
void ssh_connect_line(struct ssh_start *f, const char *line);
void ssh_connect_timeout(struct ssh_start *f);
void ssh_connect_end(struct ssh_start *f);

#endif
