/* The way to a target: which interface, how long, how large its packets, and what that asks of buffers. */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/tcp.h> /* glibc's own lacks the newer fields */
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define TRIES 3            /* connections, of which the fastest counts */
#define ASSUMED_BPS 1e9    /* what the way could carry, when nothing says */
#define STREAMS_FEW 32     /* more than these to fill a path are too many */

struct way {
	double rtt_s;
	unsigned mss, mtu;
};

/* ---- Interface ---- */

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a == NULL || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		    ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 && memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
	    &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* The interface that has this address. */
static bool find_interface(const struct sockaddr *local, char name[IF_NAMESIZE])
{
	struct ifaddrs *all, *i;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (i = all; i != NULL && !found; i = i->ifa_next)
		if ((found = same_address(i->ifa_addr, local)))
			snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	freeifaddrs(all);
	return found;
}

/* Connecting a datagram socket sends nothing, but says which way it would go. */
static bool route_to(const struct sockaddr *to, socklen_t n, char name[IF_NAMESIZE])
{
	struct sockaddr_storage local;
	socklen_t m = sizeof local;
	int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found = fd >= 0 && connect(fd, to, n) == 0 && getsockname(fd, (struct sockaddr *)&local, &m) == 0 &&
	    find_interface((struct sockaddr *)&local, name);

	if (fd >= 0)
		close(fd);
	return found;
}

/* ---- Target ---- */

/* HOST[:PORT], [V6]:PORT, with or without ptcp:// before and a path behind. */
static int split(const char *target, char host[256], char port[8], struct ptcp_err *e)
{
	const char *p = strncmp(target, "ptcp://", 7) == 0 ? target + 7 : target, *end = p + strcspn(p, "/"), *colon;
	char shown[TEXT_NAME_BYTES];
	size_t n, skip = 0;
	unsigned number = PTCP_PORT;

	if (*p == '[') {
		skip = 1;
		n = strcspn(++p, "]");
		colon = p[n] == ']' && p[n + 1] == ':' ? p + n + 1 : NULL;
	} else {
		n = strcspn(p, ":/");
		colon = p[n] == ':' ? p + n : NULL;
	}
	if (colon != NULL)
		number = (unsigned)strtoul(colon + 1, NULL, 10);
	if (n == 0 || n >= 256 || (p == target && *end != '\0') || strchr(target, '@') != NULL ||
	    (skip && p[n] != ']') || number == 0 || number > 65535 ||
	    (colon != NULL && strspn(colon + 1, "0123456789") != (size_t)(end - colon - 1)))
		return err_set(e, PTCP_EUSAGE, "%s: not a target (HOST[:PORT] or ptcp://HOST[:PORT]; for one behind ssh "
		    "HOST:22)", text_escape(shown, sizeof shown, target));
	memcpy(host, p, n);
	host[n] = '\0';
	snprintf(port, 8, "%u", number);
	return 0;
}

static int read_way(int fd, struct way *w)
{
	struct tcp_info i;
	socklen_t n = sizeof i;

	memset(&i, 0, sizeof i);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n) < 0)
		return -1;
	*w = (struct way){ (double)i.tcpi_rtt / 1e6, i.tcpi_snd_mss, i.tcpi_pmtu };
	return 0;
}

/* Connects once; the handshake is what measures. */
static int connect_once(const struct addrinfo *ai, double timeout_s, struct way *w)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0, r = -1;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t n = sizeof error;

	if (fd < 0)
		return -1;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 && errno != EINPROGRESS)
		error = errno;
	else if (poll(&p, 1, (int)(timeout_s * 1000)) <= 0)
		error = ETIMEDOUT;
	else
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
	if (error == 0)
		r = read_way(fd, w);
	close(fd);
	if (error != 0)
		errno = error;
	return r;
}

/* ---- Findings ---- */

static uint64_t largest(const struct doctor *d, const char *sysctl)
{
	char line[128];
	uint64_t most = 0;

	if (!doctor_read(d, line, sizeof line, "/proc/sys/net/ipv4/%s", sysctl) ||
	    sscanf(line, "%*u %*u %" SCNu64, &most) != 1)
		return 0;
	return most;
}

/* What is in flight, against what a stream may have: half of a receive buffer is the window, the rest is the
 * kernel's for bookkeeping (tcp_adv_win_scale). The other side's buffers are not seen from here. */
static void judge_buffers(struct doctor *d, double rtt_s, double bps)
{
	double flight = bps / 8 * rtt_s, in = (double)largest(d, "tcp_rmem") / 2, out = (double)largest(d, "tcp_wmem");
	double least = in < out ? in : out, streams;
	char a[UNITS_TEXT_BYTES], b[UNITS_TEXT_BYTES], c[UNITS_TEXT_BYTES];
	struct finding *f;

	if (least <= 0)
		return;
	streams = flight <= least ? 1 : (double)((uint64_t)(flight / least) + 1);
	f = doctor_add(d, "buffers-for-path", streams == 1 ? VERDICT_OK : streams <= STREAMS_FEW ? VERDICT_WARN :
	    VERDICT_BAD, streams, "count", "%s are in flight at %s; a stream here holds %s: %.0f fill%s the path",
	    units_size_text(a, (uint64_t)flight), units_rate_text(b, bps), units_size_text(c, (uint64_t)least),
	    streams, streams == 1 ? "s" : "");
	if (streams > 1)
		doctor_mend(f, "sysctl -w net.ipv4.tcp_rmem='4096 131072 %.0f' net.ipv4.tcp_wmem='4096 65536 %.0f'; "
		    "or ptcp send --streams %.0f", 2 * flight, 2 * flight, streams < 128 ? streams : 128);
}

static void judge_way(struct doctor *d, const struct way *w, const char *interface, double bps)
{
	char time[UNITS_TEXT_BYTES], line[32];
	struct finding *f;
	long mtu = 0;

	doctor_add(d, "rtt", VERDICT_OK, w->rtt_s, "s", "%s", units_time_text(time, w->rtt_s));
	if (doctor_read(d, line, sizeof line, "/sys/class/net/%s/mtu", interface))
		mtu = atol(line);
	f = doctor_add(d, "path-mtu", (long)w->mtu < mtu ? VERDICT_WARN : VERDICT_OK, w->mtu, "bytes",
	    "%u as far as the kernel knows, segments of %u", w->mtu, w->mss);
	if (f->verdict != VERDICT_OK)
		doctor_mend(f, "tracepath finds the hop that takes less than the %ld of %s", mtu, interface);
	judge_buffers(d, w->rtt_s, bps);
}

static int look_target(struct doctor *d, const struct addrinfo *ai, const char *target, double rate_bps,
    double timeout_s, struct ptcp_err *e)
{
	struct way w, best = { .rtt_s = 1e9 };
	char name[IF_NAMESIZE] = "lo", shown[TEXT_NAME_BYTES];
	double speed = 0;
	int i;

	if (route_to(ai->ai_addr, ai->ai_addrlen, name))
		doctor_link(d, name, &speed);
	for (i = 0; i < TRIES; i++) {
		if (connect_once(ai, timeout_s, &w) < 0)
			return err_sys(e, PTCP_ECONNECT, "connecting to %s", text_escape(shown, sizeof shown, target));
		if (w.rtt_s < best.rtt_s)
			best = w;
	}
	judge_way(d, &best, name, rate_bps > 0 ? rate_bps : speed > 0 ? speed : ASSUMED_BPS);
	return 0;
}

/* 192.0.2.1 and 2001:db8::1 are nobody's: where they would go is where everything goes. */
static void look_default(struct doctor *d)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xc0000201) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(9),
		.sin6_addr.s6_addr = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } };
	char name[IF_NAMESIZE];
	double speed;

	if (route_to((struct sockaddr *)&v4, sizeof v4, name) || route_to((struct sockaddr *)&v6, sizeof v6, name))
		doctor_link(d, name, &speed);
	else
		doctor_add(d, "interface", VERDICT_OK, 0, NULL, "no default route: name a target to see the way there");
}

int doctor_path(struct doctor *d, const char *target, double rate_bps, const struct connect_args *a, struct ptcp_err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_family = a->family == 4 ? AF_INET : a->family == 6 ? AF_INET6 : AF_UNSPEC }, *ai;
	char host[256], port[8], shown[TEXT_NAME_BYTES];
	int r;

	if (target == NULL) {
		look_default(d);
		return 0;
	}
	if ((r = split(target, host, port, e)) < 0)
		return r;
	if ((r = getaddrinfo(host, port, &hints, &ai)) != 0)
		return err_set(e, PTCP_ECONNECT, "%s: %s (check the name)", text_escape(shown, sizeof shown, host),
		    gai_strerror(r));
	r = look_target(d, ai, target, rate_bps, a->timeout_s, e);
	freeaddrinfo(ai);
	return r;
}
