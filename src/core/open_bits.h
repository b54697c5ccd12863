/* Numbers of the flags of OPEN: those of the options of a transfer (<ptcp/options.h>), and those that describe its
 * paths and hosts. The wire, the destination and the rules for existing files have the same bits, and no layer
 * translates. */
#ifndef CORE_OPEN_BITS_H
#define CORE_OPEN_BITS_H

#include <ptcp/options.h>

/* X(FLAG, bit) */
#define OPEN_BITS_OF_PATHS(X) \
	X(INTO_DIR, 1)  /* the destination is, or becomes, a directory */ \
	X(CONTENTS, 2)  /* the only source is the content of a directory */ \
	X(SPOOLED, 11)  /* relays spool: data connections may stand still for long */ \
	X(SELECTED, 17) /* SELECT names the entries of the source */ \
	X(MOVERS, 23)   /* the starter can connect to movers of the acceptor */

/* Of --delta, if it is not auto. */
#define OPEN_BITS_OF_DELTA(X) \
	X(WHOLE, 29) /* off: blocks of existing files are not used */ \
	X(DELTA, 30) /* on: all of them are compared, whether or not that pays */

#define OPEN_BIT_SENT(member, bit, FLAG, ...) OPEN_BIT_##FLAG = bit,
#define OPEN_BIT_OF_PATH(FLAG, bit) OPEN_BIT_##FLAG = bit,
enum open_bit {
	PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, OPEN_BIT_SENT, PTCP_NO_ROW, PTCP_NO_ROW)
	OPEN_BITS_OF_PATHS(OPEN_BIT_OF_PATH)
	OPEN_BITS_OF_DELTA(OPEN_BIT_OF_PATH)
};

#endif
