/* Records of what clients have done, for the log of a server and for its owner (ptcp_server_opts.record). Control
 * thread. */
#ifndef SERVER_RECORD_H
#define SERVER_RECORD_H

#include <ptcp/ptcp.h>

#include "core/log.h"

/* Completes the record with its end, `why` (NULL: done), logs one line, and passes the record to the owner. */
void record_end(const struct log *log, const struct ptcp_server_opts *o, struct ptcp_server_record *r,
    const struct ptcp_err *why);

#endif
