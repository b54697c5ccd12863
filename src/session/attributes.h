/* Attributes of entries: attributes of a session, and attributes accepted here. */
#ifndef SESSION_ATTRIBUTES_H
#define SESSION_ATTRIBUTES_H

#include "session/receive_impl.h"
#include "store/attr_map.h"
#include "wire/attrs.h"

/* Kinds of extended attributes (fs/xattr.h) that a sender reads. A server accepts no privileged ones, and is not
 * offered any. Constant during the session. */
unsigned attributes_sent(const struct session *sess);

/* Mode and times of the entry. */
void attributes_take_meta(struct session *sess, struct meta *m, const struct wire_entry *f);
/* Copies the attributes of the entry that the session preserves and this end accepts. */
bool attributes_take(struct session *sess, struct receive_entry *t, const struct wire_attrs *a, struct ptcp_err *e);

#endif
