/* What the kernel knows of a TCP connection, most of it of one that sends. Any thread. */
#ifndef NET_TCPINFO_H
#define NET_TCPINFO_H

#include <stdbool.h>
#include <stdint.h>

#define TCPINFO_CC_BYTES 16

/* Since the connection began. */
struct tcpinfo {
	uint64_t acked_bytes;     /* that the peer's kernel has, our TLS included */
	uint64_t received_bytes;  /* by our kernel, in order */
	uint64_t retransmits;     /* segments */
	double rtt_s;             /* smoothed */
	double min_rtt_s;         /* the least, lately; 0: none yet */
	bool quiet;               /* all that was given to it has been sent and acknowledged */
	double busy_s;            /* with data to send or unacknowledged; includes the next two */
	double window_s;          /* held up by the receiver's window */
	double buffer_s;          /* held up by the sender's buffer */
	char congestion[TCPINFO_CC_BYTES]; /* "cubic" ..; "" if it is not known */
};

/* 0, or -1 where the kernel does not tell all of it (no TCP socket, or Linux before 4.10). */
int tcpinfo_read(struct tcpinfo *out, int fd);

#endif
