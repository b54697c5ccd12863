/* Attributes of an ENTRY: what not every entry has. Tag u16, length u16, value; the tags rise, so
 * each occurs once. No I/O, no allocation; any thread. */
#ifndef WIRE_ATTRS_H
#define WIRE_ATTRS_H

#include "wire/frame.h"

enum wire_attr {
	WIRE_ATTR_VERSION = 1, /* FILE: 16 opaque bytes */
	WIRE_ATTR_SPARSE = 2,  /* FILE: no value */
	WIRE_ATTR_LINK_ID = 3, /* HARDLINK, which must have it */
	WIRE_ATTR_OWNER = 4,   /* FILE, DIR, SYMLINK */
	WIRE_ATTR_XATTRS = 5,  /* FILE, DIR, SYMLINK */
	WIRE_ATTR_CRITICAL = 0x8000 /* from here on who does not know the tag refuses the frame */
};

#define WIRE_VERSION_BYTES 16
#define WIRE_OWNER_NAME_MAX 255
#define WIRE_XATTR_NAME_MAX 255
/* All extended attributes of an entry, as wire_xattr_encode() writes them. */
#define WIRE_XATTRS_MAX_BYTES 60000

/* What is absent is zero. Spans point into what was decoded. */
struct wire_attrs {
	bool has_version;
	uint8_t version[WIRE_VERSION_BYTES]; /* another one when the content may have changed */
	bool sparse;                         /* it has holes */
	uint64_t link_id;                    /* the entry of this session it is another name of; 0: none */
	bool has_owner;
	uint32_t uid, gid;
	struct span user, group;             /* without NUL; may be empty */
	struct span xattrs;                  /* wire_xattr_next() */
};

size_t wire_attrs_bytes(const struct wire_attrs *a);
/* At `out` is room for wire_attrs_bytes(); returns these. */
size_t wire_attrs_encode(uint8_t *out, const struct wire_attrs *a);
/* Of an entry of that type and id. Unknown tags are skipped; a value that is malformed, a tag that does not
 * belong to the type or that does not rise: PTCP_EPROTO. The attributes of what
 * wire_entry_decode() gave are well-formed. */
int wire_attrs_decode(struct wire_attrs *a, const struct wire_entry *f, struct ptcp_err *e);

/* One extended attribute: length u8, name without NUL, length u16, value. */
#define WIRE_XATTR_BYTES(name, value) (3 + (name) + (value))
size_t wire_xattr_encode(uint8_t *out, struct span name, struct span value);
/* Takes the first off the list; false when there is none. */
bool wire_xattr_next(struct span *xattrs, struct span *name, struct span *value);

#endif
