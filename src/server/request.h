/* What a client asks a daemon for by OPEN: judged by what it is authorised to, its paths found beneath its
 * root, then given to the party that carries it out. Control thread. */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include "core/glob.h"
#include "net/trust.h"
#include "session/session.h"

/* Failed files of a session or an errand that are logged one by one: a client must not fill the log. */
#define LOGGED_FAILURES 1000u

struct request_path;

struct request {
	/* the owner's to fill in */
	struct context *host;
	const char *root;              /* of the daemon; NULL: none */
	const char *const *roots;      /* no others are opened; ended by NULL. NULL: any may be */
	const struct ptcp_server_opts *o;
	bool own;                      /* the client is this user: all paths are its own */
	struct authorization auth;
	/* once taken */
	bool sends;                    /* we do */
	bool measures;                 /* no files: blocks of none are dropped, */
	bool floods;                   /* or sent */
	unsigned streams;
	enum ptcp_cipher cipher;
	/* looked up on an I/O thread */
	int flags;
	struct request_path *path;
	unsigned n_paths;
	struct filter *filter;         /* of what we send; NULL: no rules */
	struct destination place;            /* where we receive */
	bool finding;
	struct ptcp_err why;
	int result;
	struct io_job io;
	struct msg msg;
	void (*found)(struct request *a, const struct ptcp_err *why);
};

/* Takes what is asked for, if it may be; else a sentence for the client. */
int request_take(struct request *a, const struct wire_open *o, struct ptcp_err *e);
/* Looks for the places; `found` follows, `why` NULL if they can be had. A source that is not there is a failed
 * file of the transfer. Not freed before. */
void request_find(struct request *a, void (*found)(struct request *a, const struct ptcp_err *why));
/* The party begins to send, receive or drop. */
int request_begin(struct request *a, struct session *sess, struct ptcp_err *e);
/* The first of its paths as it was written, "" without any. */
const char *request_first(const struct request *a);
void request_fini(struct request *a); /* zeroed memory is fine; not while it is looked for */

#endif
