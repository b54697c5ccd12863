/* Whether a file has the attributes of the source: meta_matches(). */
#include <unistd.h>

#include "fs/file_system.h"
#include "store/named_acl.h"
#include "store/sink_impl.h"

/* As rsync without root: a user gives files to no other user, and to own groups only. */
static bool may_set_group(gid_t gid)
{
	gid_t of[256];
	int i, n = getgroups(sizeof of / sizeof *of, of);

	if (gid == getegid())
		return true;
	for (i = 0; i < n; i++)
		if (of[i] == gid)
			return true;
	return n < 0; /* more groups than there is room for */
}

/* *is: the owner is, or would be, the requested one. */
static bool matches_owner(const struct meta *m, const struct dir *d, const struct stat *st, bool *is)
{
	uint32_t uid, gid;

	*is = true;
	if (m->owner == NULL)
		return true;
	owners_resolve(m->owners, m->owner, &uid, &gid);
	if (uid == ATTR_MAP_BY_NAME)
		uid = st->st_uid;
	if (gid == ATTR_MAP_BY_NAME)
		gid = st->st_gid;
	*is = uid == st->st_uid && gid == st->st_gid;
	if (*is || file_system_known_lacks(d, ABILITY_OWNERS))
		return true;
	return geteuid() != 0 && (gid == st->st_gid || !may_set_group(gid));
}

static bool matches_xattrs(const struct meta *m, const struct dir *d, const char *name, int fd, bool owner_ok)
{
	const struct xattrs none = XATTRS_INIT;
	unsigned kinds = m->xattr_kinds & (owner_ok ? ~0u : (unsigned)XATTR_USER);
	struct xattrs x = XATTRS_INIT;
	bool same;

	if (kinds == 0 || file_system_known_lacks(d, ABILITY_XATTRS))
		return true;
	same = fd >= 0 && xattrs_read_open(&x, d, name, fd, kinds, NULL) == 0 &&
	    xattrs_same(&x, m->xattrs != NULL ? m->xattrs : &none, kinds);
	xattrs_fini(&x);
	return same;
}

bool meta_matches_owner(const struct meta *m, const struct dir *d, const struct stat *st)
{
	bool ignored;

	return matches_owner(m, d, st, &ignored);
}

bool meta_matches(const struct meta *m, struct dir *d, int at, const char *name, int fd, const struct stat *st)
{
	const struct acl_names names = { m->owners, m->map };
	bool owner_ok;
	mode_t mode;

	if (!matches_owner(m, d, st, &owner_ok))
		return false;
	mode = owner_mode(m->mode, m->setid, owner_ok);
	if (m->set_mode && m->acls && !file_system_known_lacks(d, ABILITY_ACLS) &&
	    !acls_match(m->xattrs, &names, d, at, name, &mode))
		return false;
	if (m->set_mode && mode != (st->st_mode & 07777) && !file_system_known_lacks(d, ABILITY_MODES))
		return false;
	return matches_xattrs(m, d, name, fd, owner_ok);
}
