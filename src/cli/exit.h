/* Exit statuses, and the one line that goes with each that is not 0. */
#ifndef CLI_EXIT_H
#define CLI_EXIT_H

#include <ptcp/err.h>

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_CONNECT = 3,
	EXIT_REFUSED = 4,
	EXIT_VERIFY = 5,
	EXIT_PARTIAL = 6,
	EXIT_INFEASIBLE = 7,
	EXIT_INTERRUPTED = 8,
};

/* The status of a PTCP_E*, or of 0; EXIT_FAILED for a code that is not known. */
enum exit_status exit_status(int code);

/* Prints "ptcp: SENTENCE" on stderr and returns the status. */
enum exit_status exit_fail(const struct ptcp_err *e);

/* `status`, unless what went to stdout could not be written: then EXIT_FAILED, with its
 * line if there was none yet. */
int exit_checked(int status);

#endif
