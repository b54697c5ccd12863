/* A client's OPEN: checked against the client's rights, the paths resolved below the client's root, then passed to
 * the session. Control thread. */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include "core/filter.h"
#include "net/trust/trust.h"
#include "server/own_dirs.h"
#include "server/quota_table.h"
#include "session/session.h"
#include "wire/jobs.h"

/* Failed files of a session or job to log individually: a client must not fill the log. */
#define LOGGED_FAILURES 1000u

struct request_path;

struct request {
	/* filled in by the owner */
	struct context *context;
	const char *root;              /* root of the server; NULL: none */
	const char *const *roots;      /* the only roots to open; ended by NULL. NULL: any */
	const struct own_dirs *own_dirs; /* beneath no root */
	struct quota_table *quotas;    /* quotas of clients; unused with `own` */
	const struct ptcp_server_opts *o;
	bool own;                      /* the client is this user: any absolute path */
	struct authorization auth;
	const char *client;            /* fingerprint, borrowed */
	struct memory_account *memory; /* account of the session or job; outlives the request */
	/* set by request_take() */
	bool sends;                    /* the server sends files */
	bool measures;                 /* there are no files: the server discards blocks */
	bool generates;                /* there are no files: the server sends generated blocks */
	bool removes;                  /* the server removes its sources */
	bool selected;                 /* SELECT frames follow */
	bool reaches_movers;           /* the client can connect streams to movers of the server */
	bool literal;                  /* a pattern is a name like any other */
	bool manages;                  /* no transfer: request_source() resolves the paths */
	enum quota_need quota_need;
	unsigned n_granted;            /* streams */
	enum ptcp_cipher cipher;
	uint8_t *given;                /* paths and patterns as in the frame: flags, text, NUL each */
	size_t given_bytes;
	unsigned n_given;              /* paths in it */
	/* set by request_find(), on an I/O thread */
	int flags;
	struct request_path *path;
	unsigned n_paths, path_room;
	struct tree *tree;             /* set by request_take_manage(); NULL with `own` */
	struct filter *filter;         /* rules for the sources; NULL: none */
	struct destination place;      /* destination, unless the server sends */
	bool finding;
	unsigned n_useful;             /* streams that have something to send, at most */
	bool expanded;                 /* a source was a pattern; `path` has its matches in place of it */
	struct request_search *search; /* search during request_find(), for sources */
	struct ptcp_err why;
	int result;
	struct io_job io;
	struct msg msg;
	void (*found)(struct request *a, const struct ptcp_err *why);
};

/* Copies the OPEN if it is permitted; else `e` is a sentence for the client. A request that waits keeps the paths and
 * patterns as in the frame: request_find() reads them. */
int request_take(struct request *a, const struct wire_open *o, struct ptcp_err *e);
/* The same for the directory `path`, whose leftovers the client removes; then request_find() and request_dir(). */
int request_take_clean(struct request *a, struct span path, struct ptcp_err *e);
/* The same for work on files: request_find() opens the root only. */
int request_take_manage(struct request *a, const struct wire_manage *f, struct ptcp_err *e);
/* The same for a file that the client reads parts of. */
int request_take_read(struct request *a, struct span path, struct ptcp_err *e);
/* The same for a small file that the client writes. */
int request_take_write(struct request *a, const struct wire_write *f, struct ptcp_err *e);
/* Resolves the paths; `found` follows, with `why` NULL on success. A missing source is a failed file of the transfer.
 * The request must live until then. */
void request_find(struct request *a, void (*found)(struct request *a, const struct ptcp_err *why));
/* Adds the sources or destination to the session, or starts the measurement. */
int request_begin(struct request *a, struct session *sess, struct ptcp_err *e);
/* The directory of request_take_clean(), borrowed; NULL: not found, see `why`. */
struct dir *request_dir(const struct request *a, struct ptcp_err *why);
/* On an I/O thread, after request_take_manage() and request_find(): as destination_source(), for any path as written by
 * a client. */
int request_source(const struct request *a, const char *path, bool contents, struct dir **dir,
    char name[DESTINATION_NAME_BYTES], struct ptcp_err *e);
/* Likewise: as destination_target(). */
int request_target(const struct request *a, const char *path, int flags, struct destination *out, struct ptcp_err *e);
/* An expand_new() callback (store/expand.h), for which a request is the argument: the directory at the path. */
int request_open(void *arg, const char *path, struct dir **out, struct ptcp_err *e);
/* The quota of the client has changed; 0: none. A request that began without a quota stays without. */
void request_change_quota(struct request *a, uint64_t bytes);
/* After request_find(): the path with this number as written by the client. */
const char *request_path(const struct request *a, unsigned i);
/* The first path; "" without paths. */
const char *request_first(const struct request *a);
void request_fini(struct request *a); /* zeros are fine; not between request_find() and `found` */

#endif
