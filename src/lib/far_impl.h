/* The inside of the far side, for far.c (ssh and the conversation) and far_ways.c (connecting). */
#ifndef LIB_FAR_IMPL_H
#define LIB_FAR_IMPL_H

#include "lib/far.h"
#include "lib/greet.h"
#include "lib/lobby.h"
#include "net/child.h"
#include "net/dial.h"
#include "net/lines.h"
#include "net/listen.h"

#define FAR_NAME_BYTES (TARGET_USER_BYTES + SOCK_HOST_BYTES)

/* An attempt to reach it at one address. */
struct probe {
	struct far *far;
	struct dial *dial;
	struct chan *chan;
	char address[SOCK_TEXT_BYTES];
	bool over;
};

struct far {
	struct far_opts o;
	char name[FAR_NAME_BYTES];
	struct child *ssh;
	struct lines *lines;            /* NULL once the pipe carries the session */
	struct timer *timer;
	/* ASKING, its answer has not come; then one way after the other until one has led there */
	enum { ASKING, DIRECT, BACK, PIPE, REACHED, FAILED } state;
	struct greet_answer answer;
	size_t noise_bytes;
	char noise[80];                 /* the first of it */
	bool exited, closed;            /* ssh; its output */
	int status, signal;
	/* directly: where ssh's connection ended, and what ssh names */
	struct probe probe[2];
	unsigned n_probes;
	struct child *names;
	struct lines *names_lines;
	struct timer *hurry;            /* until the second is tried */
	bool asked_names;
	/* from there */
	struct listener *listener;
	struct lobby lobby;
	/* through ssh */
	struct chan *chan;
};

void far_fail(struct far *f, const struct ptcp_err *why);

/* ---- far_ways.c ---- */

int far_ways_init(struct far *f, struct ptcp_err *e);
/* The answer is here. */
void far_ways_begin(struct far *f);
/* A line after the answer. */
void far_ways_line(struct far *f, const char *line);
void far_ways_timeout(struct far *f);
void far_ways_end(struct far *f);

#endif
