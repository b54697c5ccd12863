/* The log of finished sessions: JSON objects, one per line, in two files of limited size, which a server writes and
 * ptcp log reads. */
#ifndef CLI_SESSION_LOG_H
#define CLI_SESSION_LOG_H

#include <jansson.h>
#include <ptcp/ptcp.h>

#define SESSION_LOG_NAME "sessions.log"         /* in the state directory; the file before it is NAME.1 */
#define SESSION_LOG_SYSTEM "/var/lib/ptcp/" SESSION_LOG_NAME

struct session_log {
	char path[PTCP_PATH_BYTES]; /* "": no log */
	uint64_t max_bytes;         /* a file of this size is renamed, and the one before it removed */
	bool failed;                /* the last record: already reported */
};

/* `file` NULL: in the state directory, if there is one; "none": no log. Creates the file. PTCP_ECONFIG: it cannot be
 * written, or is not a regular file. */
int session_log_open(struct session_log *l, const char *file, uint64_t max_bytes, struct ptcp_err *e);
/* Appends a record, whole or not at all. PTCP_EIO. Several processes may write. */
int session_log_add(struct session_log *l, const struct ptcp_server_record *r, struct ptcp_err *e);

/* Calls `each` for the records of the earlier file, then of the file itself; *skipped: number of other lines. PTCP_EIO:
 * neither can be read. */
int session_log_read(const char *path, void (*each)(void *arg, json_t *record), void *arg, uint64_t *skipped,
    struct ptcp_err *e);

#endif
