/* Internals of requests, for request.c (rights, use of the result) and request_find.c (paths below the client's
 * root). */
#ifndef SERVER_REQUEST_IMPL_H
#define SERVER_REQUEST_IMPL_H

#include "server/request.h"

/* A source, or the destination. */
struct request_path {
	struct dir *dir;               /* directory of a source; NULL: missing, see `why` */
	char name[DESTINATION_NAME_BYTES];
	char *path;                    /* path that the client wrote, or a match of the client's pattern */
	bool contents;
	struct ptcp_err why;
};

/* Copies the path; the rest is empty. */
int request_path_init(struct request *a, struct request_path *p, const char *path, bool contents, struct ptcp_err *e);
/* n paths, in an array that has room for `room`. */
void request_paths_free(struct memory_account *memory, struct request_path *path, unsigned n, unsigned room);
/* Reads the paths and patterns as given. */
int request_read(struct request *a, struct ptcp_err *e);
void request_search_free(struct request *a); /* without is fine */

#endif
