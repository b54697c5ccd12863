/* Remote hosts and paths as users write them. */
#ifndef CONN_REMOTE_H
#define CONN_REMOTE_H

#include "net/sock.h"

#define REMOTE_USER_BYTES 128
#define HOME_PATH_BYTES 8192

struct remote {
	bool ssh;                     /* ephemeral server through ssh; else a server */
	char user[REMOTE_USER_BYTES]; /* ssh only; "": ssh decides */
	char host[SOCK_HOST_BYTES];   /* without brackets; with ssh a name for ssh to resolve */
	unsigned port;                /* port of the server, or of sshd; 0: ssh decides */
	char path[4096];              /* decoded; below the server's root, or for home_path() */
};

/* 1: remote, `out` filled; 0: a local path; PTCP_EUSAGE for malformed text.
 *
 *   ptcp://HOST[:PORT]/PATH          a server
 *   [USER@]HOST:PATH                 through ssh; PATH is literal
 *   ssh://[USER@]HOST[:PORT]/PATH    the same, PATH absolute (/~/x: below the home directory) and %-decoded
 *
 * An IPv6 address is in brackets. A local path with a colon before its first slash needs a slash before the colon, as
 * for scp: ./a:b. Names that ssh could take for an option, or a shell for more than a word, are refused. */
int remote_parse(struct remote *out, const char *text, struct ptcp_err *e);

/* A host without a path: HOST[:PORT] or ptcp://HOST[:PORT], a server; USER@HOST or ssh://[USER@]HOST[:PORT], through
 * ssh; errors as above. */
int remote_parse_host(struct remote *out, const char *text, struct ptcp_err *e);

/* The name in sentences and known_hosts: "HOST:PORT", or "USER@HOST" through ssh. */
void remote_name(const struct remote *t, char *out, size_t cap);
/* As remote_parse() reads it: ptcp://HOST:PORT/PATH, or ssh://USER@HOST:PORT/PATH. No character is special to a
 * shell. False: `cap` is too small, or a name contains such a character. */
bool remote_url(const struct remote *t, char *out, size_t cap);
bool remote_same_host(const struct remote *a, const struct remote *b);
/* Whether the path, as a source, means the contents of a directory: PATH/, or a home directory. */
bool remote_is_contents(const struct remote *t);

/* At the remote end of ssh: the absolute path. "~" and "~USER" at the start (alone or before a slash) become a home
 * directory; a relative path is below this user's. No other character is special; a final slash stays. PTCP_EUSAGE
 * for a result that is too long, or without a home directory. May query name services. */
int home_path(char out[HOME_PATH_BYTES], const char *path, struct ptcp_err *e);

#endif
