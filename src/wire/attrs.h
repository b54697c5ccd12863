/* Optional attributes of an ENTRY: tag u16, length u16, value, in ascending order of tags, each at most once. No I/O,
 * no allocation; any thread. */
#ifndef WIRE_ATTRS_H
#define WIRE_ATTRS_H

#include "wire/frame.h"

enum wire_attr {
	WIRE_ATTR_VERSION = 1, /* FILE: 16 opaque bytes */
	WIRE_ATTR_SPARSE = 2,  /* FILE: no value */
	WIRE_ATTR_LINK_ID = 3, /* HARDLINK, mandatory */
	WIRE_ATTR_OWNER = 4,   /* FILE, DIR, SYMLINK */
	WIRE_ATTR_XATTRS = 5,  /* FILE, DIR, SYMLINK */
	WIRE_ATTR_LINKED = 6,  /* FILE, SYMLINK: no value */
	WIRE_ATTR_CRITICAL = 0x8000, /* unknown tags from here on are malformed */
	WIRE_ATTR_UNSIZED = 0x8001 /* FILE: no value */
};

#define WIRE_VERSION_BYTES 16
/* The receiver remembers the name of each LINKED entry of a session: the costs of all of them may not exceed this sum.
 * `path`: length of the entry's path below the destination, made of the names in ENTRY frames. */
#define WIRE_LINKED_MAX_BYTES (32u << 20)
#define WIRE_LINKED_COST(path) (64 + (uint64_t)(path))
#define WIRE_OWNER_NAME_MAX 255
#define WIRE_XATTR_NAME_MAX 255
/* All extended attributes of an entry, as wire_xattr_encode() writes them. */
#define WIRE_XATTRS_MAX_BYTES 60000

/* Absent attributes are zero. Spans point into the decoded frame. */
struct wire_attrs {
	bool has_version;
	uint8_t version[WIRE_VERSION_BYTES]; /* differs if the content may have changed */
	bool sparse;                         /* the file has holes */
	uint64_t link_id;                    /* the LINKED entry; 0: none */
	bool has_owner;
	uint32_t uid, gid;
	struct span user, group;             /* without NUL; may be empty */
	struct span xattrs;                  /* wire_xattr_next() */
	bool linked;                         /* hard links to the entry may follow */
	bool unsized;                        /* SIZE states the size, once it is known */
};

/* Whether entries of the type may have several names. */
static inline bool wire_may_be_linked(uint8_t type) { return type == WIRE_FILE || type == WIRE_SYMLINK; }

size_t wire_attrs_bytes(const struct wire_attrs *a);
/* Writes and returns wire_attrs_bytes(). */
size_t wire_attrs_encode(uint8_t *out, const struct wire_attrs *a);
/* Decodes the attributes of `f` for its type and id. Skips unknown tags; PTCP_EPROTO for a malformed value, a tag of
 * another entry type, and tags out of order. Succeeds for every entry from wire_entry_decode(). */
int wire_attrs_decode(struct wire_attrs *a, const struct wire_entry *f, struct ptcp_err *e);

/* One extended attribute: length u8, name without NUL, length u16, value. */
#define WIRE_XATTR_BYTES(name, value) (3 + (name) + (value))
size_t wire_xattr_encode(uint8_t *out, struct span name, struct span value);
/* Takes the first attribute off the list; false at the end. */
bool wire_xattr_next(struct span *xattrs, struct span *name, struct span *value);

#endif
