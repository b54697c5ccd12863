#include "fs/xattr.h"

#include <assert.h>
#include <errno.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "core/text.h"
#include "fs/acl.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"

#define KINDS_ALL (XATTR_USER | XATTR_PRIVILEGED | XATTR_CAPABILITY | XATTR_ACL)

/* The first row decides. */
static const struct {
	const char *prefix;
	unsigned kind;
	bool whole; /* the name, not a prefix */
} rows[] = {
	{ "user.", XATTR_USER, false }, { "trusted.", XATTR_PRIVILEGED, false },
	{ "security.capability", XATTR_CAPABILITY, true }, { "security.selinux", 0, false },
	{ "security.SMACK64", 0, false }, { "security.apparmor", 0, false }, { "security.ima", 0, true },
	{ "security.evm", 0, true }, { "security.", XATTR_PRIVILEGED, false }, { ACL_ACCESS, XATTR_ACL, true },
	{ ACL_DEFAULT, XATTR_ACL, true }
};

/* A record is be32(n), the name with its NUL, the value. */
#define RECORD_BYTES(name_n, n) (4 + (name_n) + 1 + (n))

void xattrs_fini(struct xattrs *x)
{
	buf_fini(&x->packed);
	x->n = 0;
}

static unsigned kind_of(const char *name, size_t n)
{
	size_t i, prefix;

	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		prefix = strlen(rows[i].prefix);
		if (n >= prefix && memcmp(name, rows[i].prefix, prefix) == 0 && (!rows[i].whole || n == prefix))
			return rows[i].whole || n > prefix ? rows[i].kind : 0;
	}
	return 0;
}

bool xattr_name_ok(const char *name, size_t n, unsigned kinds)
{
	return n <= XATTR_NAME_MAX && memchr(name, '\0', n) == NULL && (kind_of(name, n) & kinds) != 0;
}

int xattrs_add(struct xattrs *x, const char *name, size_t name_n, const void *value, size_t n,
    struct ptcp_err *e)
{
	uint8_t *p;

	assert(xattr_name_ok(name, name_n, KINDS_ALL));
	/* A record has 5 of the 8 bytes per attribute (XATTRS_MAX_BYTES). */
	if (n > XATTRS_MAX_BYTES ||
	    buf_len(&x->packed) + RECORD_BYTES(name_n, n) + 3 * (x->n + 1) > XATTRS_MAX_BYTES)
		return PTCP_ERANGE;
	if ((p = buf_reserve(&x->packed, RECORD_BYTES(name_n, n), e)) == NULL)
		return PTCP_ENOMEM;
	put_u32(p, (uint32_t)n);
	memcpy(p + 4, name, name_n);
	p[4 + name_n] = '\0';
	if (n > 0)
		memcpy(p + 4 + name_n + 1, value, n);
	buf_added(&x->packed, RECORD_BYTES(name_n, n));
	x->n++;
	return 0;
}

bool xattrs_next(const struct xattrs *x, size_t *at, struct xattr *out)
{
	const uint8_t *p;

	if (*at == buf_len(&x->packed))
		return false;
	p = buf_head(&x->packed) + *at;
	out->n = get_u32(p);
	out->name = (const char *)p + 4;
	out->name_n = strlen(out->name);
	out->value = p + 4 + out->name_n + 1;
	*at += RECORD_BYTES(out->name_n, out->n);
	return true;
}

/* Whether `of` has each attribute of x of these kinds; *n is their number. */
static bool has_each(const struct xattrs *of, const struct xattrs *x, unsigned kinds, unsigned *n)
{
	struct xattr a, b;
	size_t at = 0, other;
	bool found;

	for (*n = 0; xattrs_next(x, &at, &a);) {
		if ((kind_of(a.name, a.name_n) & kinds) == 0)
			continue;
		for (found = false, other = 0; !found && xattrs_next(of, &other, &b);)
			found = a.name_n == b.name_n && a.n == b.n && memcmp(a.name, b.name, a.name_n) == 0 &&
			    (a.n == 0 || memcmp(a.value, b.value, a.n) == 0);
		if (!found)
			return false;
		(*n)++;
	}
	return true;
}

bool xattrs_same(const struct xattrs *a, const struct xattrs *b, unsigned kinds)
{
	unsigned of_a, of_b;

	return has_each(a, b, kinds, &of_b) && has_each(b, a, kinds, &of_a) && of_a == of_b;
}

/* "PATH: extended attribute ATTR: WHAT", for the first attribute left out. */
static void xattr_report(struct ptcp_err *e, int sys, const struct dir *d, const char *name, const char *attr,
    const char *what)
{
	char shown[TEXT_NAME_BYTES], text[TEXT_NAME_BYTES + 60];

	snprintf(text, sizeof text, "extended attribute %s: %s", text_escape(shown, sizeof shown, attr), what);
	if (sys != 0)
		fs_err_sys(e, sys, d, name, text);
	else
		fs_err_set(e, PTCP_ERANGE, 0, d, name, text);
}

/* Reads the attributes of these kinds listed in `names` (n bytes); `value` has space for any. */
static int read_each(struct xattrs *x, const struct dir *d, const char *name, int fd, unsigned kinds, const char *names,
    size_t n, char *value, struct ptcp_err *e)
{
	const char *attr;
	ssize_t got;
	int r, left_out = 0;

	for (attr = names; attr < names + n; attr += strlen(attr) + 1) {
		if (!xattr_name_ok(attr, strlen(attr), kinds))
			continue;
		if ((got = dir_sys(d)->fgetxattr(fd, attr, value, XATTR_SIZE_MAX)) < 0) {
			if (errno == ENODATA) /* removed since its listing */
				continue;
			return fs_err_sys(e, errno, d, name, "cannot read extended attributes");
		}
		r = xattrs_add(x, attr, strlen(attr), value, (size_t)got, e);
		if (r == PTCP_ERANGE && left_out++ == 0)
			xattr_report(e, 0, d, name, attr, "too large: not sent");
		else if (r < 0 && r != PTCP_ERANGE)
			return r;
	}
	return left_out;
}

int xattrs_read_open(struct xattrs *x, const struct dir *d, const char *name, int fd, unsigned kinds,
    struct ptcp_err *e)
{
	ssize_t n = dir_sys(d)->flistxattr(fd, NULL, 0);
	char *names;
	int r;

	if (n == 0 || (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)))
		return 0;
	if (n < 0)
		return fs_err_sys(e, errno, d, name, "cannot list extended attributes");
	/* The list may grow meanwhile, up to this limit. */
	if ((names = malloc(XATTR_LIST_MAX + XATTR_SIZE_MAX)) == NULL)
		return err_nomem(e);
	if ((n = dir_sys(d)->flistxattr(fd, names, XATTR_LIST_MAX)) >= 0)
		r = read_each(x, d, name, fd, kinds, names, (size_t)n, names + XATTR_LIST_MAX, e);
	else
		r = fs_err_sys(e, errno, d, name, "cannot list extended attributes");
	free(names);
	return r;
}

int xattrs_read(struct xattrs *x, struct dir *d, const char *name, unsigned kinds, struct ptcp_err *e)
{
	int at, fd, saved, r;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	fd = dir_open_name(d, at, name, SYS_READ_FLAGS, false);
	saved = errno;
	dir_fd_done(d);
	if (fd < 0)
		return fs_err_sys(e, saved, d, name, NULL);
	r = xattrs_read_open(x, d, name, fd, kinds, e);
	dir_sys(d)->close(&fd);
	return r;
}

/* ext4 reports ENOSPC when the block for attributes is full. */
static bool no_room(int sys) { return sys == ENOSPC || sys == E2BIG || sys == ERANGE; }

/* EINVAL: the kernel does not know the meaning of the privileged attribute. */
static bool is_refusal(const struct xattr *a, int sys)
{
	return fs_cannot(ABILITY_XATTRS, sys) || sys == EDQUOT || no_room(sys) ||
	    (sys == EINVAL && kind_of(a->name, a->name_n) != XATTR_USER);
}

int xattrs_set(const struct xattrs *x, const struct dir *d, const char *name, int fd, unsigned kinds,
    struct ptcp_err *e)
{
	struct xattr a;
	size_t at = 0;
	int left_out = 0;

	while (xattrs_next(x, &at, &a)) {
		if ((kind_of(a.name, a.name_n) & kinds) == 0 || dir_sys(d)->fsetxattr(fd, a.name, a.value, a.n, 0) == 0)
			continue;
		if (!is_refusal(&a, errno))
			return fs_err_sys(e, errno, d, name, "cannot set extended attributes");
		if (file_system_known_lacks(d, ABILITY_XATTRS) || left_out++ > 0)
			continue;
		if (no_room(errno)) /* the inode has no room: freeing disk space would not help */
			xattr_report(e, 0, d, name, a.name, "no space for it in this file system, not kept");
		else
			xattr_report(e, errno, d, name, a.name, "not kept");
	}
	return left_out;
}
