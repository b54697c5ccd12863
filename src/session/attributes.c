#include "session/attributes.h"

#include <string.h>
#include <unistd.h>

#include "core/charged.h"

static uint16_t preserve_of(const struct session *sess) { return engine_open(sess->engine)->preserve; }

static unsigned plain_kinds(uint16_t preserve)
{
	return ((preserve & WIRE_PRESERVE_XATTR) != 0 ? XATTR_USER : 0) |
	    ((preserve & WIRE_PRESERVE_ACL) != 0 ? XATTR_ACL : 0);
}

static unsigned privileged_kinds(uint16_t preserve)
{
	const unsigned setid = (preserve & WIRE_PRESERVE_SETID) != 0 ? XATTR_CAPABILITY : 0;

	return (preserve & WIRE_PRESERVE_XATTR) != 0 ? XATTR_PRIVILEGED | setid : 0;
}

unsigned attributes_sent(const struct session *sess)
{
	const uint16_t preserve = preserve_of(sess);

	return plain_kinds(preserve) | (sess->o.open == NULL ? privileged_kinds(preserve) : 0);
}

/* A server run by root sets no attributes that give rights: a client could install setuid-root programs. */
static unsigned accepted_kinds(const struct session *sess)
{
	const uint16_t preserve = preserve_of(sess);

	return plain_kinds(preserve) | (sess->o.open != NULL && geteuid() == 0 ? privileged_kinds(preserve) : 0);
}

void attributes_take_meta(struct session *sess, struct meta *m, const struct wire_entry *f)
{
	const uint16_t preserve = preserve_of(sess);

	m->published = sess->receive->published;
	m->backup = sess->receive->backup;
	m->references = sess->receive->references;
	m->xattr_kinds = accepted_kinds(sess) & ~(unsigned)XATTR_ACL;
	m->set_mode = (preserve & WIRE_PRESERVE_MODE) != 0;
	m->set_mtime = (preserve & WIRE_PRESERVE_TIMES) != 0;
	m->setid = (preserve & WIRE_PRESERVE_SETID) != 0 && (sess->o.open != NULL || geteuid() != 0);
	m->acls = (preserve & WIRE_PRESERVE_ACL) != 0;
	m->owners = sess->receive->owners;
	m->map = sess->o.map;
	m->mode = attr_map_mode(sess->o.map, f->mode, f->type == WIRE_DIR || f->type == WIRE_DIR_END);
	m->mtime.tv_sec = f->mtime_s;
	m->mtime.tv_nsec = f->mtime_ns;
}

static bool take_owner(struct session *sess, struct receive_entry *t, const struct wire_attrs *a, struct ptcp_err *e)
{
	if ((t->owner = memory_calloc(sess->o.memory, sizeof *t->owner, e)) == NULL)
		return false;
	t->owner->uid = a->uid;
	t->owner->gid = a->gid;
	span_copy(t->owner->user, a->user);
	span_copy(t->owner->group, a->group);
	attr_map_owner(sess->o.map, t->owner);
	t->meta.owner = t->owner;
	return true;
}

bool attributes_take(struct session *sess, struct receive_entry *t, const struct wire_attrs *a, struct ptcp_err *e)
{
	const unsigned kinds = accepted_kinds(sess);
	struct span rest = a->xattrs, name, value;

	if ((preserve_of(sess) & WIRE_PRESERVE_OWNER) != 0 && a->has_owner && !take_owner(sess, t, a, e))
		return false;
	t->xattrs.packed.memory = sess->o.memory;
	while (wire_xattr_next(&rest, &name, &value))
		if (xattr_name_ok((const char *)name.p, name.n, kinds) &&
		    xattrs_add(&t->xattrs, (const char *)name.p, name.n, value.p, value.n, e) == PTCP_ENOMEM)
			return false;
	if (t->xattrs.n > 0)
		t->meta.xattrs = &t->xattrs;
	return true;
}
