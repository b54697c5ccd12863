/* What users write for the other side: ptcp://HOST[:PORT]/PATH. */
#ifndef LIB_TARGET_H
#define LIB_TARGET_H

#include "net/sock.h"

struct target {
	char host[SOCK_HOST_BYTES];
	unsigned port;
	char path[4096]; /* decoded; below the server's root */
};

/* 1: a remote target, `out` filled; 0: a local path. PTCP_EUSAGE for what cannot be parsed, PTCP_ENOTYET
 * for ssh forms (user@host:path, host:path, ssh://..). A local path with a colon before its first slash is
 * written with a slash in front, as for scp: ./a:b. */
int target_parse(struct target *out, const char *text, struct ptcp_err *e);

/* A host alone, without a path: HOST[:PORT] or ptcp://HOST[:PORT]; errors as above. */
int target_parse_host(struct target *out, const char *text, struct ptcp_err *e);

#endif
