/* How fast this processor encrypts. Any thread. */
#ifndef NET_CIPHER_SPEED_H
#define NET_CIPHER_SPEED_H

#include <ptcp/ptcp.h>

#include "core/err.h"

/* Bit/s of one core that encrypts records of 16 KiB, measured for `seconds`; PTCP_CIPHER_NONE is PTCP_EUSAGE. */
int cipher_speed(enum ptcp_cipher c, double seconds, double *bps, struct ptcp_err *e);

#endif
