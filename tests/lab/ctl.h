/* The control socket: a request of several words, an answer of text. One client at
 * a time; a slow one never holds the emulator up. */
#ifndef LAB_CTL_H
#define LAB_CTL_H

#include <ptcp/err.h>
#include <stddef.h>

#define CTL_MAX_WORDS 20

struct ctl {
	int listen_fd, fd;      /* fd: the client, -1 */
	int epoll_fd;           /* where both are registered */
	char in[4096];
	size_t in_bytes;
	char *out;              /* answer being written */
	size_t out_bytes, out_done;
	/* Answer `words` in a malloc'ed text; the first line is "ok" or "error: why". */
	char *(*answer)(void *arg, int n, char **words);
	void *arg;
};

/* A listening socket at path. */
int ctl_listen(const char *path, struct ptcp_err *e);

/* Serve listen_fd as part of a loop around epoll_fd. */
int ctl_init(struct ctl *c, int listen_fd, int epoll_fd,
    char *(*answer)(void *, int, char **), void *arg);

/* Something happened on `fd`; nothing if it is not one of ours. */
void ctl_event(struct ctl *c, int fd);

/* The client's side: ask, wait up to 5 s, and return the malloc'ed answer in *text,
 * without its "ok" line; an "error:" answer becomes PTCP_EREFUSED. */
int ctl_ask(const char *path, int n, char *const *words, char **text, struct ptcp_err *e);

#endif
