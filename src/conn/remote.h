/* What users write for the other side. */
#ifndef CONN_REMOTE_H
#define CONN_REMOTE_H

#include "net/sock.h"

#define REMOTE_USER_BYTES 128

struct remote {
	bool ssh;                     /* through ssh; else a daemon */
	char user[REMOTE_USER_BYTES]; /* ssh only; "": ssh decides */
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
int remote_parse(struct remote *out, const char *text, struct ptcp_err *e);

/* A host alone, without a path: HOST[:PORT] or ptcp://HOST[:PORT], a daemon; USER@HOST or
 * ssh://[USER@]HOST[:PORT], through ssh; errors as above. */
int remote_parse_host(struct remote *out, const char *text, struct ptcp_err *e);

/* "HOST:PORT", or "USER@HOST" of one through ssh: how it is called in sentences and known_hosts. */
void remote_name(const struct remote *t, char *out, size_t cap);
bool remote_same_host(const struct remote *a, const struct remote *b);
/* Whether the path, as a source, means the contents of what it names: also a home directory. */
bool remote_is_contents(const struct remote *t);

#endif
