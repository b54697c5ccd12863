/* Flags of OPEN, as in PROTOCOL.md, section 4. */
#ifndef WIRE_OPEN_FLAGS_H
#define WIRE_OPEN_FLAGS_H

enum wire_open_flags {
	WIRE_OPEN_VERIFY = 1 << 0,      /* blocks and files carry hashes */
	WIRE_OPEN_INTO_DIR = 1 << 1,    /* the destination is, or becomes, a directory */
	WIRE_OPEN_CONTENTS = 1 << 2,    /* the only source is the content of a directory */
	WIRE_OPEN_TIMES = 1 << 3,       /* what to preserve */
	WIRE_OPEN_MODE = 1 << 4,
	WIRE_OPEN_LINKS = 1 << 5,
	WIRE_OPEN_NO_RESUME = 1 << 6,   /* no data of an earlier session is used */
	WIRE_OPEN_DRY_RUN = 1 << 7,     /* verdicts only */
	WIRE_OPEN_OWNER = 1 << 8,       /* owners are preserved */
	WIRE_OPEN_XATTR = 1 << 9,       /* extended attributes are preserved */
	WIRE_OPEN_SETID = 1 << 10,      /* setuid, setgid and sticky bits of files are preserved */
	WIRE_OPEN_SPOOLED = 1 << 11,    /* relays spool: data connections may stand still for long */
	WIRE_OPEN_MKPATH = 1 << 12,     /* missing parents of the destination are created */
	WIRE_OPEN_SIZE_ONLY = 1 << 13,  /* the receiver keeps existing files of the same size */
	WIRE_OPEN_UPDATE = 1 << 14,     /* the receiver keeps existing files with a later mtime than the source */
	WIRE_OPEN_IGNORE_EXISTING = 1 << 15, /* the receiver keeps all existing files and links */
	WIRE_OPEN_IGNORE_TIMES = 1 << 16, /* complete files are received again */
	WIRE_OPEN_SELECTED = 1 << 17,   /* SELECT names the entries of the source */
	WIRE_OPEN_DELETE = 1 << 18,     /* at the end, the receiver removes what the source does not have */
	WIRE_OPEN_CHECKSUM = 1 << 19,   /* with VERIFY: existing files of the same size are compared, whatever their mtime */
	WIRE_OPEN_REMOVE_SOURCES = 1 << 20, /* the sender removes each source once it is durable at the receiver */
	WIRE_OPEN_FILE = 1 << 21,       /* the destination is the name of a file, never a directory for it */
	WIRE_OPEN_PARTIAL = 1 << 22,    /* the beginning of an UNSIZED file that fails is kept, beside its name */
	WIRE_OPEN_MOVERS = 1 << 23,     /* the starter can connect to movers of the acceptor */
	WIRE_OPEN_FLAGS = (1 << 24) - 1,
	/* Not in a job, nor with a grant, which permits no removal. */
	WIRE_OPEN_UNGRANTED = WIRE_OPEN_SELECTED | WIRE_OPEN_DELETE | WIRE_OPEN_REMOVE_SOURCES
};

#endif
