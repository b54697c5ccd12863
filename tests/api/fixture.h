/* What the tests of handles share: a server that admits one client, in a thread of its own; and what is true
 * of every test (no descriptor stays open). Public headers only. */
#ifndef TESTS_LIB_FIXTURE_H
#define TESTS_LIB_FIXTURE_H

#include <ptcp/ptcp.h>

extern struct ptcp_server *lf_server;
extern char lf_address[32]; /* "127.0.0.1:PORT" */

/* "DIR/name", DIR being the tests' own; one of a few buffers used in turn. */
const char *lf_path(const char *name);
/* For cmocka's setup and teardown, 0 or -1. First the directory, then the server in it, with these options and
 * for a client of this permission; what is missing in both is filled in. */
int lf_make_dir(void);
int lf_serve(struct ptcp_server_opts *o, struct ptcp_permission *p);
/* Ends the server and removes the directory; as many descriptors must be open as when it began. */
int lf_teardown(void **state);

/* Those of that client, to whom the server is known. */
void lf_opts(struct ptcp_transfer_opts *o);
int lf_open_fds(void);

#endif
