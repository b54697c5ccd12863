/* Internals of requests, for request.c (rights, use of the result) and request_find.c (paths below the client's root). */
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

void request_paths_free(struct request_path *path, unsigned n);
void request_search_free(struct request_search *s); /* NULL is fine */

#endif
