/* Flags of OPEN, as in PROTOCOL.md, section 4. */
#ifndef WIRE_OPEN_FLAGS_H
#define WIRE_OPEN_FLAGS_H

#include "core/open_bits.h"

#define WIRE_OPEN_SENT(member, bit, FLAG, ...) WIRE_OPEN_##FLAG = 1 << bit,
#define WIRE_OPEN_OF_PATH(FLAG, bit) WIRE_OPEN_##FLAG = 1 << bit,
#define WIRE_OPEN_OR_SENT(member, bit, FLAG, ...) | 1 << bit
#define WIRE_OPEN_OR_OF_PATH(FLAG, bit) | 1 << bit
enum wire_open_flags {
	PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, WIRE_OPEN_SENT, PTCP_NO_ROW, PTCP_NO_ROW)
	OPEN_BITS_OF_PATHS(WIRE_OPEN_OF_PATH)
	OPEN_BITS_OF_DELTA(WIRE_OPEN_OF_PATH)
	WIRE_OPEN_FLAGS = 0 PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, WIRE_OPEN_OR_SENT, PTCP_NO_ROW, PTCP_NO_ROW)
	    OPEN_BITS_OF_PATHS(WIRE_OPEN_OR_OF_PATH)
	    OPEN_BITS_OF_DELTA(WIRE_OPEN_OR_OF_PATH),
	/* Not in a job, nor with a grant, which permits no removal. */
	WIRE_OPEN_UNGRANTED = WIRE_OPEN_SELECTED | WIRE_OPEN_DELETE | WIRE_OPEN_REMOVE_SOURCES
};

#define WIRE_OPEN_ADD_SENT(member, bit, FLAG, ...) + (1 << bit)
#define WIRE_OPEN_ADD_OF_PATH(FLAG, bit) + (1 << bit)
_Static_assert((0 PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, WIRE_OPEN_ADD_SENT, PTCP_NO_ROW, PTCP_NO_ROW)
    OPEN_BITS_OF_PATHS(WIRE_OPEN_ADD_OF_PATH)
    OPEN_BITS_OF_DELTA(WIRE_OPEN_ADD_OF_PATH)) == WIRE_OPEN_FLAGS,
    "each flag has a bit of its own");

/* Attributes to preserve, likewise. */
#define WIRE_PRESERVED(member, bit, FLAG, ...) WIRE_PRESERVE_##FLAG = 1 << bit,
enum wire_preserve {
	PTCP_OPTIONS_PRESERVE(WIRE_PRESERVED)
	WIRE_PRESERVE_ALL = 0 PTCP_OPTIONS_PRESERVE(WIRE_OPEN_OR_SENT)
};

#endif
