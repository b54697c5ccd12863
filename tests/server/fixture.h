/* What the tests of server share: a real context with its I/O threads, a root with files, the server's own directories,
 * the log, and requests of a client. The files are those of store/fixture.h, beneath the directory "root". */
#ifndef TESTS_SERVER_FIXTURE_H
#define TESTS_SERVER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/own_dirs.h"
#include "server/request.h"
#include "store/fixture.h"

struct vf {
	struct loop *control;
	struct context context;
	struct ptcp_server_opts o;
	struct own_dirs own_dirs; /* "config" and "state/ptcp" */
	char root[300];
	char log[4096];           /* the lines, of all levels, since vf_forget_log() */
	uint8_t paths[4096];
	size_t paths_bytes;       /* of vf_path() */
	unsigned n_paths;
	/* of vf_find() */
	struct request request;
	unsigned n_found;
	struct ptcp_err why;      /* code 0: found */
};
extern struct vf vf;

/* cmocka setup and teardown; afterwards no descriptor stays open. */
int vf_setup(void **state);
int vf_teardown(void **state);
#define vf_test(f) cmocka_unit_test_setup_teardown(f, vf_setup, vf_teardown)

void vf_forget_log(void);
bool vf_logged(const char *text);
/* Runs the control loop until the counter is n. A test that waits in vain is ended by a signal. */
void vf_wait(const unsigned *count, unsigned n);
/* Adds a path, with flags of enum wire_path_flags, to those of the next request. */
void vf_path(uint8_t flags, const char *path);
/* A request of a client with all rights, in vf.request; its paths are those of vf_path() since. */
void vf_begin(void);
struct span vf_paths(void);
/* Takes vf.request as OPEN with that role, and finds the paths; returns 0 or the code of vf.why. */
int vf_find(uint8_t role, uint32_t flags);
/* As vf_find(), of a request that was taken. */
int vf_find_taken(void);

#endif
