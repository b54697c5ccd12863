/* The inside of the far side, for ssh_start.c (ssh and the conversation) and ssh_start_ways.c (connecting). */
#ifndef CLIENT_SSH_START_IMPL_H
#define CLIENT_SSH_START_IMPL_H

#include "client/ssh_start.h"
#include "conn/connect.h"
#include "conn/pending.h"
#include "conn/ssh_hello.h"
#include "net/child.h"
#include "net/line_reader.h"
#include "net/listen.h"

#define SSH_START_NAME_BYTES (REMOTE_USER_BYTES + SOCK_HOST_BYTES)

/* To connect to the server at one address. */
struct ssh_attempt {
	struct ssh_start *start;
	struct connect *connect;        /* NULL: over */
};

struct ssh_start {
	struct ssh_start_opts o;
	char name[SSH_START_NAME_BYTES];
	struct child *ssh;
	struct line_reader *lines;            /* NULL once the pipe carries the session */
	struct timer *timer;
	/* ASKING, its answer has not come; then one way after the other until one has led there */
	enum { ASKING, DIRECT, BACK, PIPE, REACHED, FAILED } state;
	struct ssh_hello_answer answer;
	size_t noise_bytes;
	char noise[80];                 /* the first of it */
	bool exited, closed;            /* ssh; its output */
	int status, signal;
	/* directly: where ssh's connection ended, and what ssh names */
	struct ssh_attempt attempt[2];
	unsigned n_attempts;
	struct child *names;
	struct line_reader *names_lines;
	struct timer *hurry;            /* until the second is tried */
	bool asked_names;
	/* from there */
	struct listener *listener;
	struct pending pending;
	/* through ssh */
	struct connect *pipe;
};

void ssh_start_fail(struct ssh_start *f, const struct ptcp_err *why);

/* ---- ssh_start_ways.c ---- */

int ssh_connect_init(struct ssh_start *f, struct ptcp_err *e);
/* The answer is here. */
void ssh_connect_begin(struct ssh_start *f);
/* A line after the answer. */
void ssh_connect_line(struct ssh_start *f, const char *line);
void ssh_connect_timeout(struct ssh_start *f);
void ssh_connect_end(struct ssh_start *f);

#endif
