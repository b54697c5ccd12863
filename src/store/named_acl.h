/* POSIX ACLs on their way: the names of users and groups travel beside their numbers, since hosts number them
 * differently. Lookups of names may block for long: I/O threads only. */
#ifndef STORE_NAMED_ACL_H
#define STORE_NAMED_ACL_H

#include "fs/acl.h"
#include "fs/xattr.h"
#include "store/attr_map.h"
#include "store/owner.h"

/* Of users, groups and permissions. */
struct acl_names {
	struct owners *owners;
	const struct attr_map *map; /* changes; NULL: none */
};

/* At the source: replaces the ACLs in `x`, as the kernel has them, by those of the wire: of each entry tag u8,
 * permissions u8, number u32, name with length u8. Narrows the group's bits of *mode, which are the mask, to the
 * permissions of the owning group: a receiver that cannot keep the list gives no group more than the source. Returns
 * 1 if a list is too large to be sent, named by `e`. */
int acls_describe(struct xattrs *x, const struct acl_names *names, const struct dir *d, const char *name,
    bool is_dir, mode_t *mode, struct ptcp_err *e);
/* The same of the mode alone, of a file or directory whose list is not sent. */
mode_t acls_narrowed(struct dir *d, const char *name, mode_t mode);

/* At the destination: gives the open file or directory the lists in `x` (NULL: none), and no others; `d` and `name`
 * name the file in errors. *mode, which is to be set next, gets the bits of the list. 1: the file system or the
 * kernel refused a list, named by `e`. */
int acls_set(const struct xattrs *x, const struct acl_names *names, const struct dir *d, const char *name, int fd,
    bool is_dir, mode_t *mode, struct ptcp_err *e);
/* Whether `name` in `at`, a file, has the access list in `x` (NULL: none); *mode as of acls_set(). Entries are compared
 * without regard to their order. */
bool acls_match(const struct xattrs *x, const struct acl_names *names, const struct dir *d, int at, const char *name,
    mode_t *mode);
/* Whether `name` in `at` has an access list. */
bool acls_exist(const struct dir *d, int at, const char *name);

#endif
