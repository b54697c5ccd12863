#include "net/tcpinfo.h"

#include <linux/tcp.h> /* glibc's own lacks the newer fields */
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define US_PER_S 1e6

int tcpinfo_read(struct tcpinfo *out, int fd)
{
	struct tcp_info i;
	socklen_t n = sizeof i, m = TCPINFO_CC_BYTES - 1;
	struct tcpinfo all = { .acked_bytes = 0 };

	memset(&i, 0, sizeof i);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n) < 0 ||
	    n < offsetof(struct tcp_info, tcpi_sndbuf_limited) + sizeof i.tcpi_sndbuf_limited)
		return -1;
	all.acked_bytes = i.tcpi_bytes_acked;
	all.received_bytes = i.tcpi_bytes_received;
	all.retransmits = i.tcpi_total_retrans;
	all.rtt_s = i.tcpi_rtt / US_PER_S;
	all.min_rtt_s = i.tcpi_min_rtt == UINT32_MAX ? 0 : i.tcpi_min_rtt / US_PER_S;
	all.quiet = i.tcpi_unacked == 0 && i.tcpi_notsent_bytes == 0;
	all.busy_s = (double)i.tcpi_busy_time / US_PER_S;
	all.window_s = (double)i.tcpi_rwnd_limited / US_PER_S;
	all.buffer_s = (double)i.tcpi_sndbuf_limited / US_PER_S;
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, all.congestion, &m) < 0)
		all.congestion[0] = '\0';
	*out = all;
	return 0;
}
