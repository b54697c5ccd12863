/* What the tests of session share: both ends of a real session in one process. Starter and acceptor have contexts of
 * their own (identity, workers, I/O threads) on one control loop, and connect through TCP on loopback. The files are
 * those of store/fixture.h: the sender sends the content of the directory "from", the receiver writes it to "to". */
#ifndef TESTS_SESSION_FIXTURE_H
#define TESTS_SESSION_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "conn/inbound.h"
#include "core/err.h"
#include "net/listen.h"
#include "session/session_impl.h"
#include "store/fixture.h"

struct sf_end {
	struct context context;
	struct session_opts o;     /* a test may change them before sf_begin(); control and host are the fixture's */
	struct session *session;   /* until sf_end() */
	bool running, gone;
	struct ptcp_err why;       /* code 0: success, or not gone yet */
	/* reports of the session, and the text of the last of each kind */
	unsigned n_files, n_done, n_failed, n_deleted, n_warnings, n_streams, n_reconnecting, n_path_failed, n_paths,
	    n_waiting, n_congestion, n_leftovers;
	char failed[800], warning[800], streams[800], reconnecting[800], path_failed[800], paths[800];
	unsigned connected;        /* active streams, as last reported */
	unsigned failed_path, failed_hop;
	struct ptcp_progress at_end; /* of session_progress() in ops.gone */
};

extern struct sf {
	struct loop *control;
	struct sf_end starter, acceptor;
	struct wire_open open;     /* the request; a test may change it before sf_begin() */
	const char *source;        /* path in the request of a starter that receives; NULL: the
	                              contents of a directory */
	unsigned granted;          /* streams that the acceptor grants at most */
	struct ptcp_err refusal;   /* of the request; code 0: it is granted */
	void (*opens)(struct session *sess); /* in place of granting the request; or NULL */
	struct listener *listener; /* of the acceptor */
	struct pending pending;
	struct connect *first;     /* the attempt to make the control connection */
	unsigned n_joins;          /* data connections that the acceptor has taken */
	unsigned refuses;          /* so many data connections are refused */
	bool forgets;              /* the acceptor knows no session any more */
	void (*takes)(struct chan *c); /* a successor of the control connection, in place of the acceptor; or NULL */
	bool early;                /* the starter adds its files before the acceptor has granted the request */
	void (*starts)(struct session *sess); /* in ops.running of the starter, in place of adding files; or NULL */
	void (*serves)(struct session *sess); /* the same of the acceptor */
	struct tree *from, *to;
	struct sock_opts sock;
} sf;

/* cmocka setup and teardown; sessions that a test has left are canceled, and afterwards no descriptor stays open. A
 * test that waits in vain is ended by a signal. */
int sf_setup(void **state);
int sf_teardown(void **state);
#define sf_test(f) cmocka_unit_test_setup_teardown(f, sf_setup, sf_teardown)

/* Connects, and requests a session of that role with up to `streams` streams. */
void sf_begin(uint8_t role, unsigned streams);
/* Frees both ends, which are gone, and forgets their reports: sf_begin() may follow, with the same options. */
void sf_again(void);
/* Ends and frees both ends, whatever their state. */
void sf_end(void);
/* Runs the loop until it holds. */
void sf_until(bool (*holds)(void));
bool sf_both_run(void);
bool sf_both_gone(void);
/* Runs the loop until both ends are gone. */
void sf_finish(void);
/* The same, and both have succeeded; the files at both ends are equal. */
void sf_finish_well(void);
/* The same, and the end has failed with that code, and a sentence that contains `text`. */
void sf_failed(const struct sf_end *end, int code, const char *text);

/* The session's default in ops.running: adds the files. */
void sf_add_files(struct session *sess);
/* A file in "from" of n bytes, which no compression shortens. */
void sf_file(const char *name, size_t n);
/* The file `name` is in "to" as in "from". */
void sf_same(const char *name);

/* Cuts the connection of a descriptor, in both directions and without an orderly end. */
void sf_cut(int fd);
/* Cuts all data connections; returns their number. */
unsigned sf_cut_streams(void);
/* The acceptor accepts no connection until released. */
void sf_unreachable(bool on);

#endif
