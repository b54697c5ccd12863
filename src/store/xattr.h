/* Extended attributes of files and directories. Only those named "user.*" travel: security.*,
 * trusted.* and system.* (capabilities, labels, access lists) carry privilege or belong to the system
 * they are on, and links have none of ours. */
#ifndef STORE_XATTR_H
#define STORE_XATTR_H

#include "core/buf.h"
#include "store/dir.h"

/* Of one file's attributes: their names, values, and 8 bytes for each. What is beyond does not travel. */
#define XATTRS_MAX_BYTES 57344

struct xattr {
	const char *name; /* with a NUL */
	size_t name_n;    /* without it */
	const void *value;
	size_t n;
};

/* The attributes of one file; the caller's. */
struct xattrs {
	struct buf packed;
	unsigned n;
};

#define XATTRS_INIT ((struct xattrs){ .packed = BUF_INIT })

void xattrs_fini(struct xattrs *x);

/* "user." and something, up to 255 bytes without a NUL: whatever a peer says, nothing else is set. */
bool xattr_name_ok(const char *name, size_t n);

/* Adds a copy. The name is one that xattr_name_ok() accepts (asserted). PTCP_ERANGE, without a sentence,
 * if it does not fit. */
int xattrs_add(struct xattrs *x, const char *name, size_t name_n, const void *value, size_t n,
    struct ptcp_err *e);

/* Each in turn, from *at = 0; false behind the last. *out is valid until x changes. */
bool xattrs_next(const struct xattrs *x, size_t *at, struct xattr *out);

/* Adds those of the file or directory `name` in d, a link not followed. Returns how many were left
 * out because they do not fit; `e` names the first. 0 where the file system has none. I/O threads only. */
int xattrs_read(struct xattrs *x, struct dir *d, const char *name, struct ptcp_err *e);

/* Sets them on fd; `d` and `name` are for sentences. Before the mode, which may forbid it. Returns how many
 * this file system did not take (it has none, or no room for so many or so large ones); `e` names the first. */
int xattrs_set(const struct xattrs *x, const struct dir *d, const char *name, int fd, struct ptcp_err *e);

#endif
