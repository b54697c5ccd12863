/* Addresses as text, socket options, TCP statistics. Any thread. */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/err.h"

#define SOCK_TEXT_BYTES 72 /* "[v6%scope]:port" */
#define SOCK_HOST_BYTES 256

struct sock_opts {
	int family;             /* 0, 4 or 6 */
	uint64_t timeout_ns;    /* limit for connecting, for unacknowledged data, and for a silent peer */
	const char *congestion; /* congestion control; NULL: the system's default */
	unsigned segment_bytes; /* maximum, of connections made; 0: the path's */
	unsigned dscp;          /* class of service of the packets, 0 to 63 */
	const char *local;      /* address or interface to connect from, as for sock_leave_from(); NULL: as routed */
};

/* Splits "HOST", "HOST:PORT", "[V6]:PORT", ":PORT", or a bare IPv6 address; PTCP_EUSAGE. */
int sock_split(const char *text, char host[SOCK_HOST_BYTES], unsigned *port, unsigned default_port,
    struct ptcp_err *e);
/* "HOST:PORT", an IPv6 address bracketed. */
void sock_join(char *out, size_t cap, const char *host, unsigned port);
/* "ADDRESS:PORT" of a socket address, numeric. */
void sock_address_text(char out[SOCK_TEXT_BYTES], const struct sockaddr *sa, socklen_t n);

/* Up to `max` numeric addresses of this host, except loopback and link-local; returns the number. */
unsigned sock_local(char out[][SOCK_HOST_BYTES], unsigned max);

/* Sets the options of a connected or accepted socket, as far as the kernel supports them. PTCP_EUSAGE for a
 * congestion control that the kernel lacks or does not allow. */
int sock_tune(int fd, const struct sock_opts *o, struct ptcp_err *e);
/* Classes of service with names of their own. LE, lower effort, needs no share of the network beside other traffic
 * (RFC 8622). */
enum sock_dscp { SOCK_DSCP_DF = 0, SOCK_DSCP_LE = 1, SOCK_DSCP_VA = 44, SOCK_DSCP_EF = 46, SOCK_DSCP_MAX = 63 };
/* The number of a class of service, by its name or number; -1: unknown. */
int sock_dscp(const char *text);
void sock_mark(int fd, unsigned dscp);
/* Has the kernel keep the first packet of each connection that the listening socket accepts, for sock_answer_mark(). */
void sock_keep_marks(int fd);
/* The class for the answers on an accepted connection: SOCK_DSCP_LE if the peer has asked for that, else SOCK_DSCP_DF:
 * others need a permission of the network, and are not the peer's to choose. Once for each connection. */
unsigned sock_answer_mark(int fd);

/* Address family of a numeric address, 4 or 6; 0: `local` is an interface of this host; PTCP_EUSAGE for neither. */
int sock_local_family(const char *local, struct ptcp_err *e);
/* Before connect(): 0, or an errno. */
int sock_leave_from(int fd, const char *local);

/* 0, or an errno: the kernel lacks the congestion control, or does not permit it to this process. */
int sock_set_congestion(int fd, const char *name);
/* Whether sock_set_congestion() would succeed, by a socket of its own. */
bool sock_permits_congestion(const char *name);
/* Removes the limit on unacknowledged data: a live peer may keep its receive window closed for any time (the
 * kernel counts a closed window as unacknowledged data). A dead peer is then detected much later. */
void sock_no_user_timeout(int fd);
/* Its close sends a reset at once: a regular close waits for the data before it, is repeated until it arrives, and
 * tells a peer that returns after an outage that this end has left. */
void sock_reset_on_close(int fd);

#define TCPINFO_CC_BYTES 16

/* TCP_INFO of a connection, totals since it began; mostly about sending. */
struct tcpinfo {
	uint64_t acked_bytes;     /* acknowledged by the peer's kernel, TLS overhead included */
	uint64_t received_bytes;  /* bytes that this kernel has received in order */
	uint64_t sacked_bytes;    /* beyond acked_bytes, acknowledged out of order; multiples of the segment size */
	uint64_t delivered_bytes; /* acknowledged out of order, too; multiples of the segment size */
	uint64_t sent_segments;   /* data segments, with retransmits */
	uint64_t retransmits;     /* segments */
	double rtt_s;             /* smoothed */
	double min_rtt_s;         /* recent minimum; 0: none yet */
	double silent_s;          /* time since the last segment of the peer; keepalives are answered, too */
	double no_data_s;         /* time since the last segment with data, in order */
	unsigned timeouts;        /* retransmissions in a row without an acknowledgment */
	bool unacked;             /* segments wait for an acknowledgment */
	double busy_s;            /* time with data to send or unacknowledged; includes the next two */
	double window_s;          /* limited by the receive window */
	double buffer_s;          /* limited by the send buffer */
	char congestion[TCPINFO_CC_BYTES]; /* congestion control, "cubic" ..; "" if unknown */
};

/* At the part `ratio` (0 to 1) of the time between two reports of a connection: counters in proportion, the rest of the
 * later report. */
void tcpinfo_between(struct tcpinfo *out, const struct tcpinfo *earlier, const struct tcpinfo *later, double ratio);

/* 0, or -1 where the kernel does not report all fields (no TCP socket, or Linux before 4.18). */
int tcpinfo_read(struct tcpinfo *out, int fd);

#endif
