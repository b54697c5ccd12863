#include "store/named_acl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"

/* An entry on the wire, without its name. */
enum { PACKED_BYTES = 7 };

/* Room for the longest list that the kernel has: each entry with a name. */
enum { VALUE_MAX = 65536, PACKED_MAX = XATTRS_MAX_BYTES };

/* ---- At the source ---- */

/* The entry becomes that of the destination. The result is valid until *is changes. */
static const char *name_of(const struct acl_names *names, struct owner *is, struct acl_entry *entry)
{
	const bool user = entry->tag == ACL_USER;

	if (!user && entry->tag != ACL_GROUP)
		return "";
	owners_describe(names->owners, user ? entry->id : 0, user ? 0 : entry->id, is);
	attr_map_owner(names->map, is);
	entry->id = user ? is->uid : is->gid;
	return user ? is->user : is->group;
}

/* The permissions of the entry, by the changed mode for entries that are part of the mode. */
static uint16_t perm_of(const struct acl_entry *entry, bool masked, mode_t mode)
{
	switch (entry->tag) {
	case ACL_USER_OBJ: return mode >> 6 & 7;
	case ACL_MASK: return mode >> 3 & 7;
	case ACL_GROUP_OBJ: return masked ? entry->perm : mode >> 3 & 7;
	case ACL_OTHER: return mode & 7;
	default: return entry->perm;
	}
}

static bool has_mask(const void *acl, size_t n)
{
	struct acl_entry entry;
	size_t at = 0;

	while (acl_next(acl, n, &at, &entry))
		if (entry.tag == ACL_MASK)
			return true;
	return false;
}

struct source_acl {
	const void *value;
	size_t n;
	bool changes; /* its permissions are those of the mode: */
	mode_t mode;
};

/* The number of bytes; more than PACKED_MAX: too large. */
static size_t pack(const struct acl_names *names, const struct source_acl *a, uint8_t out[PACKED_MAX])
{
	const bool masked = has_mask(a->value, a->n);
	struct acl_entry entry;
	size_t at = 0, used = 0, name_n;
	struct owner is;
	const char *name;

	while (acl_next(a->value, a->n, &at, &entry)) {
		name = name_of(names, &is, &entry);
		name_n = strlen(name);
		if (PACKED_MAX - used < PACKED_BYTES + name_n)
			return PACKED_MAX + 1;
		out[used] = (uint8_t)entry.tag;
		out[used + 1] = (uint8_t)(a->changes ? perm_of(&entry, masked, a->mode) : entry.perm);
		put_u32(out + used + 2, entry.id);
		out[used + 6] = (uint8_t)name_n;
		memcpy(out + used + PACKED_BYTES, name, name_n);
		used += PACKED_BYTES + name_n;
	}
	return used;
}

/* Copies the attribute. */
static int describe_one(struct xattrs *to, const struct xattr *a, const struct acl_names *names, bool is_dir,
    mode_t *mode, uint8_t *packed, struct ptcp_err *e)
{
	struct source_acl acl = { .value = a->value, .n = a->n };
	size_t n;

	if (!acl_is_name(a->name))
		return xattrs_add(to, a->name, a->name_n, a->value, a->n, e);
	if (strcmp(a->name, ACL_ACCESS) == 0 && (acl.changes = acl_mode(a->value, a->n, &acl.mode))) {
		acl.mode = attr_map_mode(names->map, acl.mode, is_dir);
		*mode = acl_group_mode(a->value, a->n, *mode);
	}
	n = pack(names, &acl, packed);
	return n > PACKED_MAX ? PTCP_ERANGE : xattrs_add(to, a->name, a->name_n, packed, n, e);
}

static bool has_acl(const struct xattrs *x)
{
	struct xattr a;
	size_t at = 0;

	while (xattrs_next(x, &at, &a))
		if (acl_is_name(a.name))
			return true;
	return false;
}

int acls_describe(struct xattrs *x, const struct acl_names *names, const struct dir *d, const char *name,
    bool is_dir, mode_t *mode, struct ptcp_err *e)
{
	struct xattrs to = { .packed = { .memory = x->packed.memory } };
	struct xattr a;
	size_t at = 0;
	int r = 0, left_out = 0;
	uint8_t *packed;

	if (!has_acl(x))
		return 0;
	if ((packed = malloc(PACKED_MAX)) == NULL)
		return err_nomem(e);
	while (r == 0 && xattrs_next(x, &at, &a))
		if ((r = describe_one(&to, &a, names, is_dir, mode, packed, e)) == PTCP_ERANGE) {
			fs_err_set(e, PTCP_ERANGE, 0, d, name, "ACL: too large: not sent");
			left_out = 1;
			r = 0;
		}
	free(packed);
	xattrs_fini(x);
	*x = to;
	return r < 0 ? r : left_out;
}

mode_t acls_narrowed(struct dir *d, const char *name, mode_t mode)
{
	uint8_t acl[ACL_HEADER_BYTES + 64 * ACL_ENTRY_BYTES], *large;
	const struct sys *sys = dir_sys(d);
	ssize_t n;
	int at;

	if ((mode & S_IRWXG) == 0 || (at = dir_fd(d, NULL)) < 0)
		return mode;
	n = sys->getxattrat(at, name, ACL_ACCESS, acl, sizeof acl);
	if (n > 0) {
		mode = acl_group_mode(acl, (size_t)n, mode);
	} else if (n < 0 && errno == ERANGE) {
		if ((large = malloc(VALUE_MAX)) == NULL ||
		    (n = sys->getxattrat(at, name, ACL_ACCESS, large, VALUE_MAX)) < 0)
			mode &= ~(mode_t)S_IRWXG;
		else
			mode = acl_group_mode(large, (size_t)n, mode);
		free(large);
	}
	dir_fd_done(d);
	return mode;
}

/* ---- At the destination ---- */

/* The list as the kernel has it, of *n bytes, to be released with free(); 0: *n is 0 for a malformed list. */
static int unpack(uint8_t **out, size_t *n, const struct xattr *a, const struct acl_names *names,
    struct ptcp_err *e)
{
	const uint8_t *p = a->value, *end = p + a->n;
	struct owner from;
	struct acl_entry entry;
	uint32_t uid, gid;

	if ((*out = malloc(ACL_HEADER_BYTES + a->n / PACKED_BYTES * ACL_ENTRY_BYTES)) == NULL)
		return err_nomem(e);
	for (*n = acl_begin(*out); p != end; p += PACKED_BYTES + p[6]) {
		if (end - p < PACKED_BYTES || end - p - PACKED_BYTES < p[6]) {
			*n = 0;
			return 0;
		}
		entry = (struct acl_entry){ p[0], p[1], ACL_NOBODY };
		if (entry.tag == ACL_USER || entry.tag == ACL_GROUP) {
			from = (struct owner){ .uid = get_u32(p + 2), .gid = get_u32(p + 2) };
			memcpy(entry.tag == ACL_USER ? from.user : from.group, p + PACKED_BYTES, p[6]);
			attr_map_owner(names->map, &from);
			owners_resolve(names->owners, &from, &uid, &gid);
			entry.id = entry.tag == ACL_USER ? uid : gid;
		}
		*n += acl_put(*out + *n, entry);
	}
	return 0;
}

static bool find(const struct xattrs *x, const char *attr, struct xattr *out)
{
	size_t at = 0;

	while (x != NULL && xattrs_next(x, &at, out))
		if (strcmp(out->name, attr) == 0)
			return true;
	return false;
}

static int refused(const struct dir *d, const char *name, int sys, struct ptcp_err *e)
{
	if (!fs_cannot(ABILITY_ACLS, sys) && sys != ENOSPC && sys != E2BIG && sys != ERANGE)
		return fs_err_sys(e, sys, d, name, "cannot set the ACL");
	if (file_system_known_lacks(d, ABILITY_ACLS))
		return 0;
	fs_err_sys(e, sys, d, name, "ACL: not kept");
	return 1;
}

/* The kernel sorts entries of users by number, and refuses duplicates: two names may have one number here. */
static int set_one(const struct xattrs *x, const char *attr, const struct acl_names *names, const struct dir *d,
    const char *name, int fd, bool is_dir, mode_t *mode, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);
	struct xattr a;
	uint8_t *acl;
	mode_t bits;
	size_t n;
	int r;

	if (!find(x, attr, &a)) {
		r = sys->fremovexattr(fd, attr) == 0 || errno == ENODATA || fs_cannot(ABILITY_ACLS, errno);
		return r ? 0 : fs_err_sys(e, errno, d, name, "cannot remove the ACL");
	}
	if ((r = unpack(&acl, &n, &a, names, e)) < 0)
		return r;
	if (n == 0)
		errno = EINVAL;
	if (n > 0 && sys->fsetxattr(fd, attr, acl, n, 0) == 0) {
		if (mode != NULL && acl_mode(acl, n, &bits))
			*mode = attr_map_mode(names->map, (*mode & 07000) | bits, is_dir);
	} else {
		r = refused(d, name, errno, e);
		sys->fremovexattr(fd, attr); /* an inherited list has other entries */
	}
	free(acl);
	return r;
}

int acls_set(const struct xattrs *x, const struct acl_names *names, const struct dir *d, const char *name,
    int fd, bool is_dir, mode_t *mode, struct ptcp_err *e)
{
	int r = set_one(x, ACL_ACCESS, names, d, name, fd, is_dir, mode, e), dropped = r;

	if (r >= 0 && is_dir &&
	    (r = set_one(x, ACL_DEFAULT, names, d, name, fd, true, NULL, dropped > 0 ? NULL : e)) >= 0)
		r |= dropped;
	return r;
}

bool acls_exist(const struct dir *d, int at, const char *name)
{
	return dir_sys(d)->getxattrat(at, name, ACL_ACCESS, NULL, 0) > 0;
}

static bool has_entry(const uint8_t *acl, size_t n, const struct acl_entry *entry)
{
	struct acl_entry other;
	size_t at = 0;

	while (acl_next(acl, n, &at, &other))
		if (other.tag == entry->tag && other.perm == entry->perm && other.id == entry->id)
			return true;
	return false;
}

/* The kernel permits no duplicates. */
static bool same_list(const uint8_t *a, const uint8_t *b, size_t n)
{
	struct acl_entry entry;
	size_t at = 0;

	while (acl_next(a, n, &at, &entry))
		if (!has_entry(b, n, &entry))
			return false;
	return n >= ACL_HEADER_BYTES && memcmp(a, b, ACL_HEADER_BYTES) == 0;
}

bool acls_match(const struct xattrs *x, const struct acl_names *names, const struct dir *d, int at, const char *name,
    mode_t *mode)
{
	uint8_t now[ACL_HEADER_BYTES + 64 * ACL_ENTRY_BYTES], *acl;
	struct xattr a;
	mode_t bits;
	size_t n;
	bool same;

	if (!find(x, ACL_ACCESS, &a))
		return !acls_exist(d, at, name);
	if (unpack(&acl, &n, &a, names, NULL) < 0)
		return false;
	same = n > 0 && n <= sizeof now &&
	    dir_sys(d)->getxattrat(at, name, ACL_ACCESS, now, sizeof now) == (ssize_t)n && same_list(acl, now, n);
	if (same && acl_mode(acl, n, &bits))
		*mode = attr_map_mode(names->map, (*mode & 07000) | bits, false);
	free(acl);
	return same;
}
