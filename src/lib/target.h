/* What users write for the other side. */
#ifndef LIB_TARGET_H
#define LIB_TARGET_H

#include "net/sock.h"

#define TARGET_USER_BYTES 128

struct target {
	bool ssh;                     /* through ssh; else a daemon */
	char user[TARGET_USER_BYTES]; /* ssh only; "": ssh decides */
	char host[SOCK_HOST_BYTES];   /* without brackets; with ssh what it takes for a host */
	unsigned port;                /* with ssh that of sshd, 0: ssh decides */
	char path[4096];              /* decoded; below the server's root, or as home_path() has it */
};

/* 1: a remote target, `out` filled; 0: a local path; PTCP_EUSAGE for what cannot be parsed.
 *
 *   ptcp://HOST[:PORT]/PATH          a daemon
 *   [USER@]HOST:PATH                 through ssh; the path is taken as it is
 *   ssh://[USER@]HOST[:PORT]/PATH    the same, the path absolute (/~/x: below the home) and %-decoded
 *
 * An IPv6 address is in brackets. A local path with a colon before its first slash is written with a
 * slash in front, as for scp: ./a:b. User and host are none that ssh could take for an option or a shell
 * for more than a word. */
int target_parse(struct target *out, const char *text, struct ptcp_err *e);

/* A host alone, without a path: HOST[:PORT] or ptcp://HOST[:PORT], a daemon; USER@HOST or
 * ssh://[USER@]HOST[:PORT], through ssh; errors as above. */
int target_parse_host(struct target *out, const char *text, struct ptcp_err *e);

/* "HOST:PORT", or "USER@HOST" of one through ssh: how it is called in sentences and known_hosts. */
void target_name(const struct target *t, char *out, size_t cap);
bool target_same_host(const struct target *a, const struct target *b);
/* Whether the path, as a source, means the contents of what it names: also a home directory. */
bool target_is_contents(const struct target *t);

#endif
