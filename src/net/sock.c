#include "net/sock.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/tcp.h> /* glibc's netinet/tcp.h lacks the newer fields */
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/text.h"
#include "core/units.h"

#define US_PER_S 1e6
#define MS_PER_S 1e3
#define KEEPALIVE_MAX_S 20 /* a NAT forgets an idle connection after 30 s at the earliest */

int sock_split(const char *text, char host[SOCK_HOST_BYTES], unsigned *port, unsigned default_port,
    struct ptcp_err *e)
{
	const char *colon = strrchr(text, ':'), *start = text, *end = text + strlen(text);
	const char *digits = NULL;
	unsigned long n = default_port;
	char shown[TEXT_NAME_BYTES];
	char *stop;

	if (text[0] == '[') {
		start = text + 1;
		end = strchr(text, ']');
		if (end == NULL || (end[1] != '\0' && end[1] != ':'))
			goto bad;
		digits = end[1] == ':' ? end + 2 : NULL;
	} else if (colon != NULL && strchr(text, ':') == colon) {
		end = colon;
		digits = colon + 1;
	} /* otherwise a name without a port, or a bare IPv6 address */
	if (digits != NULL) {
		n = strtoul(digits, &stop, 10);
		if (digits[0] < '0' || digits[0] > '9' || *stop != '\0' || n > 65535)
			goto bad;
	}
	if ((size_t)(end - start) >= SOCK_HOST_BYTES)
		goto bad;
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = '\0';
	*port = (unsigned)n;
	return 0;
bad:
	return err_set(e, PTCP_EUSAGE, "%s: not a host and port (write HOST, HOST:PORT or [IPV6]:PORT)",
	    text_escape(shown, sizeof shown, text));
}

void sock_join(char *out, size_t cap, const char *host, unsigned port)
{
	snprintf(out, cap, strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host, port);
}

void sock_address_text(char out[SOCK_TEXT_BYTES], const struct sockaddr *sa, socklen_t n)
{
	char host[INET6_ADDRSTRLEN + 20], port[8];

	if (getnameinfo(sa, n, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(out, SOCK_TEXT_BYTES, "?");
	else
		sock_join(out, SOCK_TEXT_BYTES, host, (unsigned)atoi(port));
}

static bool is_link_local(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 &&
	    IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
}

unsigned sock_local(char out[][SOCK_HOST_BYTES], unsigned max)
{
	struct ifaddrs *all, *i;
	unsigned n = 0;
	socklen_t len;

	if (getifaddrs(&all) < 0)
		return 0;
	for (i = all; i != NULL && n < max; i = i->ifa_next) {
		if (i->ifa_addr == NULL || (i->ifa_flags & IFF_LOOPBACK) != 0 || (i->ifa_flags & IFF_UP) == 0 ||
		    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) ||
		    is_link_local(i->ifa_addr))
			continue;
		len = i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
		    sizeof(struct sockaddr_in6);
		if (getnameinfo(i->ifa_addr, len, out[n], SOCK_HOST_BYTES, NULL, 0, NI_NUMERICHOST) == 0)
			n++;
	}
	freeifaddrs(all);
	return n;
}

int sock_set_congestion(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) < 0 ? errno : 0;
}

bool sock_permits_congestion(const char *name)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool permitted;

	if (fd < 0)
		return false;
	permitted = sock_set_congestion(fd, name) == 0;
	fd_close(&fd);
	return permitted;
}

int sock_dscp(const char *text)
{
	static const struct {
		const char *name;
		int dscp;
	} names[] = { { "le", SOCK_DSCP_LE }, { "df", SOCK_DSCP_DF },
		{ "va", SOCK_DSCP_VA }, { "ef", SOCK_DSCP_EF } };
	unsigned i, a, b;
	char end;

	for (i = 0; i < sizeof names / sizeof *names; i++)
		if (strcasecmp(text, names[i].name) == 0)
			return names[i].dscp;
	if (strncasecmp(text, "cs", 2) == 0 && strlen(text) == 3 && text[2] >= '0' && text[2] <= '7')
		return 8 * (text[2] - '0');
	if (strncasecmp(text, "af", 2) == 0 && strlen(text) == 4) {
		a = (unsigned)(text[2] - '0');
		b = (unsigned)(text[3] - '0');
		return a >= 1 && a <= 4 && b >= 1 && b <= 3 ? (int)(8 * a + 2 * b) : -1;
	}
	return text[0] >= '0' && text[0] <= '9' && strlen(text) <= 2 && sscanf(text, "%u%c", &a, &end) == 1 &&
	    a <= SOCK_DSCP_MAX ? (int)a : -1;
}

void sock_mark(int fd, unsigned dscp)
{
	int tos = (int)dscp << 2; /* the kernel keeps the two bits of ECN for TCP */

	/* A socket of IPv6 may carry IPv4. */
	setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
	setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
}

void sock_keep_marks(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_SAVE_SYN, &on, sizeof on);
}

unsigned sock_answer_mark(int fd)
{
	uint8_t syn[128]; /* the headers of IP and TCP; what does not fit is an error */
	socklen_t n = sizeof syn;

	if (getsockopt(fd, IPPROTO_TCP, TCP_SAVED_SYN, syn, &n) < 0 || n < 2)
		return SOCK_DSCP_DF;
	return (syn[0] >> 4 == 6 ? (syn[0] & 15) << 2 | syn[1] >> 6 : syn[1] >> 2) ==
	    SOCK_DSCP_LE ? SOCK_DSCP_LE : SOCK_DSCP_DF;
}

/* False: not a numeric address. */
static bool local_address(const char *local, struct sockaddr_storage *out, socklen_t *n)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST }, *ai;

	if (getaddrinfo(local, NULL, &hints, &ai) != 0)
		return false;
	memcpy(out, ai->ai_addr, ai->ai_addrlen);
	*n = ai->ai_addrlen;
	freeaddrinfo(ai);
	return true;
}

int sock_local_family(const char *local, struct ptcp_err *e)
{
	struct sockaddr_storage sa;
	char shown[TEXT_NAME_BYTES];
	socklen_t n;

	if (local_address(local, &sa, &n))
		return sa.ss_family == AF_INET ? 4 : 6;
	return if_nametoindex(local) > 0 ? 0 : err_set(e, PTCP_EUSAGE, "bind: '%s' is neither a numeric address nor a "
	    "network interface of this host (ip address lists them)", text_escape(shown, sizeof shown, local));
}

int sock_leave_from(int fd, const char *local)
{
	struct sockaddr_storage sa;
	socklen_t n;
	int on = 1;

	if (!local_address(local, &sa, &n))
		return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, local, (socklen_t)strlen(local)) < 0 ? errno : 0;
	/* The port is chosen with the destination: many connections may share it. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
	return bind(fd, (struct sockaddr *)&sa, n) < 0 ? errno : 0;
}

int sock_tune(int fd, const struct sock_opts *o, struct ptcp_err *e)
{
	int on = 1, probes = 2, third = (int)(o->timeout_ns / NS_PER_S / 3);
	unsigned ms = (unsigned)(o->timeout_ns / NS_PER_MS);

	if (third == 0)
		third = 1;
	if (third > KEEPALIVE_MAX_S)
		third = KEEPALIVE_MAX_S;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &third, sizeof third);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &third, sizeof third);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
	if (o->dscp != SOCK_DSCP_DF)
		sock_mark(fd, o->dscp);
	if (o->congestion != NULL && (errno = sock_set_congestion(fd, o->congestion)) != 0)
		return err_sys(e, PTCP_EUSAGE, "--congestion %s (see sysctl "
		    "net.ipv4.tcp_allowed_congestion_control)", o->congestion);
	return 0;
}

void sock_no_user_timeout(int fd)
{
	unsigned never = 0;

	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof never);
}

void sock_reset_on_close(int fd)
{
	struct linger now = { 1, 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

int tcpinfo_read(struct tcpinfo *out, int fd)
{
	struct tcp_info i;
	socklen_t n = sizeof i, m = TCPINFO_CC_BYTES - 1;
	struct tcpinfo all = { .acked_bytes = 0 };

	memset(&i, 0, sizeof i);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n) < 0 ||
	    n < offsetof(struct tcp_info, tcpi_delivered) + sizeof i.tcpi_delivered)
		return -1;
	all.acked_bytes = i.tcpi_bytes_acked;
	all.received_bytes = i.tcpi_bytes_received;
	all.sacked_bytes = (uint64_t)i.tcpi_sacked * i.tcpi_snd_mss;
	all.delivered_bytes = (uint64_t)i.tcpi_delivered * i.tcpi_snd_mss;
	all.sent_segments = i.tcpi_data_segs_out;
	all.retransmits = i.tcpi_total_retrans;
	all.rtt_s = i.tcpi_rtt / US_PER_S;
	all.min_rtt_s = i.tcpi_min_rtt == UINT32_MAX ? 0 : i.tcpi_min_rtt / US_PER_S;
	all.silent_s = (i.tcpi_last_ack_recv < i.tcpi_last_data_recv ? i.tcpi_last_ack_recv : i.tcpi_last_data_recv) /
	    MS_PER_S;
	all.no_data_s = i.tcpi_last_data_recv / MS_PER_S;
	all.timeouts = i.tcpi_retransmits;
	all.unacked = i.tcpi_unacked > 0;
	all.busy_s = (double)i.tcpi_busy_time / US_PER_S;
	all.window_s = (double)i.tcpi_rwnd_limited / US_PER_S;
	all.buffer_s = (double)i.tcpi_sndbuf_limited / US_PER_S;
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, all.congestion, &m) < 0)
		all.congestion[0] = '\0';
	*out = all;
	return 0;
}

static uint64_t between(uint64_t earlier, uint64_t later, double ratio)
{
	return later > earlier ? earlier + (uint64_t)((double)(later - earlier) * ratio) : later;
}

void tcpinfo_between(struct tcpinfo *out, const struct tcpinfo *earlier, const struct tcpinfo *later, double ratio)
{
	*out = *later;
	out->acked_bytes = between(earlier->acked_bytes, later->acked_bytes, ratio);
	out->received_bytes = between(earlier->received_bytes, later->received_bytes, ratio);
	out->delivered_bytes = between(earlier->delivered_bytes, later->delivered_bytes, ratio);
	out->sent_segments = between(earlier->sent_segments, later->sent_segments, ratio);
	out->retransmits = between(earlier->retransmits, later->retransmits, ratio);
	out->busy_s = earlier->busy_s + (later->busy_s - earlier->busy_s) * ratio;
	out->window_s = earlier->window_s + (later->window_s - earlier->window_s) * ratio;
	out->buffer_s = earlier->buffer_s + (later->buffer_s - earlier->buffer_s) * ratio;
}
