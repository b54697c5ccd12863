/* The order in which a client tries the paths to its server: each once, from the first path on; then those whose host
 * had the connection, but did not answer in time, once more, with more patience. Pure. */
#ifndef CLIENT_PATH_TRIES_H
#define CLIENT_PATH_TRIES_H

#include <ptcp/ptcp.h>

struct path_tries {
	unsigned path;                  /* path of the present attempt */
	unsigned n;                     /* number of paths, at most 64 */
	unsigned n_failed;              /* failed attempts */
	uint64_t slow;                  /* paths to be tried again: they had a connection, but no answer in time */
	bool patient;                   /* the attempt waits longer for answers */
	struct ptcp_err why;            /* the first path's error; or of the first busy path */
};

/* The first of n paths to try is `first`. */
void path_tries_begin(struct path_tries *p, unsigned first, unsigned n);
/* The attempt has failed with `why`; `slow`: for lack of an answer. True: the path counts as failed, and the user
 * should know, if there are several; false: the path will be tried again. */
bool path_tries_failed(struct path_tries *p, bool slow, const struct ptcp_err *why);
/* Whether each path has failed once. */
static inline bool path_tries_all(const struct path_tries *p) { return p->n_failed == p->n; }
/* Chooses p->path for the next attempt. False: none is left. */
bool path_tries_next(struct path_tries *p);

#endif
