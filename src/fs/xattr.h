/* Extended attributes of files and directories, by kinds of names: user.*, which everybody may set; trusted.* and
 * security.*, which carry privilege, hence only root sets them, of a transfer that root requests; ACLs. Labels and
 * signatures (SELinux, Smack, AppArmor, IMA, EVM) belong to the rules of one system, and are not sent. Links have no
 * user.* attributes. */
#ifndef FS_XATTR_H
#define FS_XATTR_H

#include "core/buf.h"
#include "fs/dir.h"

/* Limit per file: names, values, and 8 bytes per attribute. Attributes beyond are not sent. */
#define XATTRS_MAX_BYTES 57344

enum xattr_kind {
	XATTR_USER = 1 << 0,
	XATTR_PRIVILEGED = 1 << 1, /* trusted.* and security.*, except for the next kind */
	XATTR_CAPABILITY = 1 << 2, /* security.capability, which gives a program rights as setuid does */
	XATTR_ACL = 1 << 3         /* ACLs, see fs/acl.h */
};

struct xattr {
	const char *name; /* name, with a NUL */
	size_t name_n;    /* without the NUL */
	const void *value;
	size_t n;
};

/* The attributes of one file, owned by the caller. */
struct xattrs {
	struct buf packed;
	unsigned n;
};

#define XATTRS_INIT ((struct xattrs){ .packed = BUF_INIT })

void xattrs_fini(struct xattrs *x);

/* Whether the name is of one of the kinds: a prefix and at least one byte, up to 255 bytes, without a NUL. */
bool xattr_name_ok(const char *name, size_t n, unsigned kinds);

/* Adds a copy. xattr_name_ok() accepts the name for all kinds together (asserted). PTCP_ERANGE, without a message,
 * above the limit. */
int xattrs_add(struct xattrs *x, const char *name, size_t name_n, const void *value, size_t n,
    struct ptcp_err *e);

/* Iterates, starting with *at = 0; false after the last. *out is valid until x changes. */
bool xattrs_next(const struct xattrs *x, size_t *at, struct xattr *out);

/* Whether both have the same attributes of these kinds. */
bool xattrs_same(const struct xattrs *a, const struct xattrs *b, unsigned kinds);

/* As xattrs_read(), of an open file. */
int xattrs_read_open(struct xattrs *x, const struct dir *d, const char *name, int fd, unsigned kinds,
    struct ptcp_err *e);

/* Adds the attributes, of these kinds, of the file or directory `name` in d, not following a link. Returns the
 * number left out as too large; `e` names the first. 0 where the file system has no attributes. I/O threads only. */
int xattrs_read(struct xattrs *x, struct dir *d, const char *name, unsigned kinds, struct ptcp_err *e);

/* Sets the attributes of these kinds on fd; `d` and `name` name the file in errors. Before the mode, which may forbid
 * it. Returns the number of attributes that the file system refused (unsupported, or too many or too large); `e`
 * names the first. */
int xattrs_set(const struct xattrs *x, const struct dir *d, const char *name, int fd, unsigned kinds,
    struct ptcp_err *e);

#endif
