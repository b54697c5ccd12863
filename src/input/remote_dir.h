/* The remote directory to which paths in the commands of ptcp batch are relative. */
#ifndef INPUT_REMOTE_DIR_H
#define INPUT_REMOTE_DIR_H

#include <ptcp/err.h>
#include <stdbool.h>

struct remote_dir {
	char *host;    /* begin of addresses: "ptcp://HOST:PORT/", "USER@HOST:" or "ssh://HOST" */
	char *path;    /* "" or "/" at the top, else without a slash at the end */
	bool is_url;   /* addresses have percent-encoded paths */
	bool has_root; /* a server, whose paths begin at the root of the client */
};

/* Takes the directory of an address. PTCP_EUSAGE: a local path, or malformed. Call remote_dir_fini() after any
 * result. */
int remote_dir_init(struct remote_dir *d, const char *address, struct ptcp_err *e);
void remote_dir_fini(struct remote_dir *d);

/* Returns the path in the directory, or the absolute path, without "." and without ".." behind names. The caller frees
 * the result; NULL: no memory. */
char *remote_dir_path(const struct remote_dir *d, const char *path);
/* Returns the address of such a path, to be freed; NULL: no memory. */
char *remote_dir_address(const struct remote_dir *d, const char *path);

#endif
