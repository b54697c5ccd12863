/* The path to a target: interface, round-trip time, packet size, required buffers; and the identity of the
 * server. */
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h> /* glibc's header lacks newer fields */
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/client_opts.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/units.h"

#define MTU_ETHERNET 1500
#define TRIES 3            /* connections; the minimum round-trip time counts */
#define ASSUMED_BPS 1e9    /* rate of a path of unknown speed */
#define STREAMS_FEW 32     /* a path that needs more streams is a problem */

#define CLOSED_PORT 33434        /* traceroute's first: hardly any service listens there */
#define WAIT_MIN_S 1.0           /* hosts send few ICMP errors a second */
#define WAIT_RTTS 3
#define MTU_TRIES 3
#define SMALL_BYTES 128u
#define LARGE_MAX_BYTES 9000u    /* limit for interfaces with a larger MTU, such as lo */
#define MIN_BYTES 1280u          /* minimum of IPv6; IPv4 paths below are rare */
#define STEP_BYTES 20u

/* ---- Interface ---- */

struct doctor_queue {
	char root[32], below[32]; /* kinds; below: first of several children */
};

static void note_queue(struct doctor_queue *q, const struct nlmsghdr *h, int index)
{
	const struct tcmsg *t = NLMSG_DATA(h);
	const struct rtattr *a = TCA_RTA(t);
	int left = (int)TCA_PAYLOAD(h);
	char *to = t->tcm_parent == TC_H_ROOT ? q->root : q->below;

	if (t->tcm_ifindex != index || t->tcm_parent == TC_H_INGRESS || to[0] != '\0')
		return;
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == TCA_KIND)
			snprintf(to, sizeof q->root, "%.*s", (int)RTA_PAYLOAD(a), (const char *)RTA_DATA(a));
}

/* Requests all queueing disciplines from the kernel, and notes those of the interface. */
static bool find_queue(struct doctor_queue *q, int index)
{
	struct {
		struct nlmsghdr h;
		struct tcmsg t;
	} request = { .h = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_GETQDISC,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	_Alignas(struct nlmsghdr) char buf[32768];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), left;
	bool over = false;

	*q = (struct doctor_queue){ "", "" };
	if (fd < 0 || send(fd, &request, sizeof request, 0) < 0)
		over = true;
	while (!over && (left = (int)recv(fd, buf, sizeof buf, 0)) > 0) {
		const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)buf;

		for (; NLMSG_OK(h, (unsigned)left); h = NLMSG_NEXT(h, left))
			if (h->nlmsg_type == RTM_NEWQDISC)
				note_queue(q, h, index);
			else
				over = true; /* end or error */
	}
	fd_close(&fd);
	return q->root[0] != '\0';
}

static void examine_queue(struct doctor *d, const char *name)
{
	static const char *const good[] = { "fq", "fq_codel", "cake", "noqueue" };
	struct doctor_queue q;
	const char *kind;
	struct finding *f;
	size_t i;

	if (!find_queue(&q, (int)if_nametoindex(name)))
		return;
	kind = strncmp(q.root, "mq", 2) == 0 && q.below[0] != '\0' ? q.below : q.root;
	f = doctor_add(d, "qdisc", VERDICT_WARN, 0, NULL, "%s%s%s on %s", kind, kind == q.below ? " below " : "",
	    kind == q.below ? q.root : "", name);
	for (i = 0; i < sizeof good / sizeof *good; i++)
		if (strcmp(kind, good[i]) == 0)
			f->verdict = VERDICT_OK;
	if (f->verdict != VERDICT_OK)
		doctor_fix(f, "tc qdisc replace dev %s root fq", name);
}

void doctor_interface(struct doctor *d, const char *name, double *speed_bps)
{
	char line[64], rate[UNITS_TEXT_BYTES];
	struct finding *f;
	long mtu, mbits;

	*speed_bps = 0;
	if (doctor_read(d, line, sizeof line, "/sys/class/net/%s/speed", name) && (mbits = atol(line)) > 0) {
		*speed_bps = (double)mbits * 1e6;
		doctor_add(d, "interface", VERDICT_OK, *speed_bps, "bps", "%s of %s", units_rate_text(rate, *speed_bps),
		    name);
	} else {
		doctor_add(d, "interface", VERDICT_OK, 0, NULL, "%s, of unknown speed", name);
	}
	if (doctor_read(d, line, sizeof line, "/sys/class/net/%s/mtu", name) && (mtu = atol(line)) > 0) {
		f = doctor_add(d, "mtu", VERDICT_OK, (double)mtu, "bytes", "%ld on %s", mtu, name);
		/* Less than 1500 is usual in tunnels and clouds, where more would be dropped. */
		if (mtu == MTU_ETHERNET && *speed_bps >= 10e9) {
			f->verdict = VERDICT_WARN;
			doctor_fix(f, "ip link set dev %s mtu 9000 (if every hop supports this size)", name);
		}
		if (mtu > MTU_ETHERNET && doctor_read(d, line, sizeof line, "/proc/sys/net/ipv4/tcp_mtu_probing") &&
		    line[0] == '0' && strcmp(name, "lo") != 0) {
			f = doctor_add(d, "mtu-probing", VERDICT_WARN, 0, NULL,
			    "off: connections stall if a hop drops jumbo frames");
			doctor_fix(f, "sysctl -w net.ipv4.tcp_mtu_probing=1");
		}
	}
	examine_queue(d, name);
}

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

/* Finds the interface with this address. */
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

/* Finds the interface toward `to`: connecting a datagram socket selects a route without sending a packet. */
static bool route_to(const struct sockaddr *to, socklen_t n, char name[IF_NAMESIZE])
{
	struct sockaddr_storage local;
	socklen_t m = sizeof local;
	int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found = fd >= 0 && connect(fd, to, n) == 0 && getsockname(fd, (struct sockaddr *)&local, &m) == 0 &&
	    find_interface((struct sockaddr *)&local, name);

	fd_close(&fd);
	return found;
}

struct doctor_path {
	double rtt_s;
	unsigned mss, mtu;
};

/* Splits HOST[:PORT] or [V6]:PORT, with an optional ptcp:// and path. */
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
		return err_set(e, PTCP_EUSAGE, "%s: not a target (HOST[:PORT] or ptcp://HOST[:PORT]; for SSH servers "
		    "HOST:22)", text_escape(shown, sizeof shown, target));
	memcpy(host, p, n);
	host[n] = '\0';
	snprintf(port, 8, "%u", number);
	return 0;
}

static int read_path(int fd, struct doctor_path *w)
{
	struct tcp_info i;
	socklen_t n = sizeof i;

	memset(&i, 0, sizeof i);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n) < 0)
		return -1;
	*w = (struct doctor_path){ (double)i.tcpi_rtt / 1e6, i.tcpi_snd_mss, i.tcpi_pmtu };
	return 0;
}

/* Connects once; the handshake measures the round-trip time. */
static int connect_once(const struct addrinfo *ai, double timeout_s, struct doctor_path *w)
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
		r = read_path(fd, w);
	fd_close(&fd);
	if (error != 0)
		errno = error;
	return r;
}

/* ---- Large packets ---- */

/* A host answers a datagram to a closed port by an ICMP error; a path that drops large packets without a word (an MTU
 * black hole) leaves only the large datagrams without an answer. */
struct target {
	const struct sockaddr *address;
	socklen_t address_bytes;
	double rtt_s;
	unsigned mtu;    /* MTU of the path as the kernel knows it */
};

enum answer { ANSWERED, SIGNALED, SILENT };

/* One datagram of that size with all headers, never fragmented. SIGNALED: this host or a router says that the packet is
 * too large. */
static enum answer ask(const struct target *to, unsigned packet_bytes)
{
	bool v6 = to->address->sa_family == AF_INET6;
	int probe = v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE, error = 0;
	static const char data[LARGE_MAX_BYTES];
	struct sockaddr_storage address;
	socklen_t n = sizeof error;
	enum answer answer = SILENT;
	struct pollfd p;

	memcpy(&address, to->address, to->address_bytes);
	if (v6)
		((struct sockaddr_in6 *)(void *)&address)->sin6_port = htons(CLOSED_PORT);
	else
		((struct sockaddr_in *)(void *)&address)->sin_port = htons(CLOSED_PORT);
	p = (struct pollfd){ .fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), .events = POLLIN };
	if (p.fd < 0)
		return SILENT;
	setsockopt(p.fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
	    &probe, sizeof probe);
	if (connect(p.fd, (struct sockaddr *)&address, to->address_bytes) < 0 ||
	    send(p.fd, data, packet_bytes - (v6 ? 48 : 28), 0) < 0)
		error = errno;
	else if (poll(&p, 1, (int)(1e3 * (WAIT_RTTS * to->rtt_s > WAIT_MIN_S ? WAIT_RTTS * to->rtt_s : WAIT_MIN_S))) >
	    0 && getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0)
		answer = ANSWERED; /* the port is open after all */
	if (error == ECONNREFUSED)
		answer = ANSWERED;
	else if (error == EMSGSIZE)
		answer = SIGNALED;
	fd_close(&p.fd);
	return answer;
}

static enum answer ask_again(const struct target *to, unsigned packet_bytes)
{
	enum answer answer = SILENT;
	int i;

	for (i = 0; i < MTU_TRIES && answer == SILENT; i++)
		answer = ask(to, packet_bytes);
	return answer;
}

static void judge_large_packets(struct doctor *d, const struct target *to)
{
	unsigned large = to->mtu < LARGE_MAX_BYTES ? to->mtu : LARGE_MAX_BYTES, below = MIN_BYTES,
	    above = large, middle;
	struct finding *f;

	if (large <= MIN_BYTES || ask(to, SMALL_BYTES) != ANSWERED || ask_again(to, large) != SILENT)
		return; /* the host does not answer, or the path works as it should */
	if (ask_again(to, MIN_BYTES) != ANSWERED)
		below = SMALL_BYTES;
	while (below >= MIN_BYTES && above - below > STEP_BYTES) {
		middle = below + (above - below) / 2;
		if (ask(to, middle) == ANSWERED)
			below = middle;
		else
			above = middle;
	}
	f = doctor_add(d, "black-hole", VERDICT_BAD, below, "bytes",
	    "packets of %u bytes vanish on the path without a word, packets of %u arrive", large, below);
	doctor_fix(f, "permit ICMP (fragmentation needed, packet too big) on the path, or lower the MTU of the "
	    "interface; until then sysctl -w net.ipv4.tcp_mtu_probing=1");
}

/* ---- Findings ---- */

/* Compares the bandwidth-delay product with the buffers of a stream. The window is half of the receive buffer;
 * the kernel uses the rest for bookkeeping (tcp_adv_win_scale). The peer's buffers are unknown. */
static void judge_buffers(struct doctor *d, double rtt_s, double bps)
{
	double flight = bps / 8 * rtt_s, streams;
	double in = (double)doctor_max_buffer(d, "tcp_rmem") / 2, out = (double)doctor_max_buffer(d, "tcp_wmem");
	double buffer = in < out ? in : out;
	char a[UNITS_TEXT_BYTES], b[UNITS_TEXT_BYTES], c[UNITS_TEXT_BYTES];
	struct finding *f;

	if (buffer <= 0)
		return;
	streams = flight <= buffer ? 1 : (double)((uint64_t)(flight / buffer) + 1);
	f = doctor_add(d, "buffers-for-path", streams == 1 ? VERDICT_OK : streams <= STREAMS_FEW ? VERDICT_WARN :
	    VERDICT_BAD, streams, "count", "%s in flight at %s; a stream buffers %s: %.0f stream%s fill%s the path",
	    units_size_text(a, (uint64_t)flight), units_rate_text(b, bps), units_size_text(c, (uint64_t)buffer),
	    streams, streams == 1 ? "" : "s", streams == 1 ? "s" : "");
	if (streams > 1)
		doctor_fix(f, "sysctl -w net.ipv4.tcp_rmem='4096 131072 %.0f' net.ipv4.tcp_wmem='4096 65536 %.0f'; "
		    "or ptcp send --streams %.0f", 2 * flight, 2 * flight, streams < 128 ? streams : 128);
}

static void judge_path(struct doctor *d, const struct doctor_path *w, const char *interface, double bps)
{
	struct finding *f;
	char line[32];
	long mtu = 0;

	doctor_add(d, "rtt", VERDICT_OK, w->rtt_s, "s", "%.3g ms", 1e3 * w->rtt_s);
	if (doctor_read(d, line, sizeof line, "/sys/class/net/%s/mtu", interface))
		mtu = atol(line);
	f = doctor_add(d, "path-mtu", (long)w->mtu < mtu ? VERDICT_WARN : VERDICT_OK, w->mtu, "bytes",
	    "%u as known to the kernel, segments of %u", w->mtu, w->mss);
	if (f->verdict != VERDICT_OK)
		doctor_fix(f, "sysctl -w net.ipv4.tcp_mtu_probing=1 (a hop carries less than the %ld bytes of %s)", mtu,
		    interface);
	judge_buffers(d, w->rtt_s, bps);
}

/* No answer is what a firewall does; a refusal is what a host without a server does. */
static int cannot_connect(const char *target, const struct addrinfo *ai, int error, struct ptcp_err *e)
{
	unsigned port = ntohs(ai->ai_family == AF_INET6 ?
	    ((const struct sockaddr_in6 *)(const void *)ai->ai_addr)->sin6_port :
	    ((const struct sockaddr_in *)(const void *)ai->ai_addr)->sin_port);
	char shown[TEXT_NAME_BYTES];

	text_escape(shown, sizeof shown, target);
	switch (error) {
	case ECONNREFUSED:
		return err_set(e, PTCP_ECONNECT, "connecting to %s: %s (run there: ptcp serve --root DIR, or systemctl "
		    "enable --now ptcp)", shown, strerror(error));
	case ETIMEDOUT: case EHOSTUNREACH: case EACCES: case EPERM:
		return err_set(e, PTCP_ECONNECT, "connecting to %s: %s (run there, as root: firewall-cmd "
		    "--add-port=%u/tcp, or ufw allow %u/tcp)", shown, strerror(error), port, port);
	default:
		return err_set(e, PTCP_ECONNECT, "connecting to %s: %s", shown, strerror(error));
	}
}

static int examine_target(struct doctor *d, const struct addrinfo *ai, const char *target, double rate_bps,
    double timeout_s, struct ptcp_err *e)
{
	struct doctor_path w, best = { .rtt_s = 1e9 };
	char name[IF_NAMESIZE] = "lo";
	double speed = 0;
	int i;

	if (route_to(ai->ai_addr, ai->ai_addrlen, name))
		doctor_interface(d, name, &speed);
	for (i = 0; i < TRIES; i++) {
		if (connect_once(ai, timeout_s, &w) < 0)
			return cannot_connect(target, ai, errno, e);
		if (w.rtt_s < best.rtt_s)
			best = w;
	}
	judge_large_packets(d, &(struct target){ ai->ai_addr, ai->ai_addrlen, best.rtt_s, best.mtu });
	judge_path(d, &best, name, rate_bps > 0 ? rate_bps : speed > 0 ? speed : ASSUMED_BPS);
	return 0;
}

/* The interface of the default route, by the documentation addresses 192.0.2.1 and 2001:db8::1. */
static void examine_default(struct doctor *d)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xc0000201) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(9),
		.sin6_addr.s6_addr = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } };
	char name[IF_NAMESIZE];
	double speed;

	if (route_to((struct sockaddr *)&v4, sizeof v4, name) || route_to((struct sockaddr *)&v6, sizeof v6, name))
		doctor_interface(d, name, &speed);
	else
		doctor_add(d, "interface", VERDICT_OK, 0, NULL, "no default route (name a target to examine the path)");
}

int doctor_path(struct doctor *d, const char *target, double rate_bps, const struct ptcp_transfer_opts *o,
    struct ptcp_err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_family = o->family == 4 ? AF_INET : o->family == 6 ? AF_INET6 : AF_UNSPEC }, *ai;
	char host[256], port[8], shown[TEXT_NAME_BYTES];
	int r;

	if (target == NULL) {
		examine_default(d);
		return 0;
	}
	if ((r = split(target, host, port, e)) < 0)
		return r;
	if ((r = getaddrinfo(host, port, &hints, &ai)) != 0)
		return err_set(e, PTCP_ECONNECT, "%s: %s (check the name)", text_escape(shown, sizeof shown, host),
		    gai_strerror(r));
	r = examine_target(d, ai, target, rate_bps, o->timeout_s, e);
	freeaddrinfo(ai);
	return r;
}

/* ---- Identity ---- */

/* Connects by a status query, which every authorized client may send. */
static int query(const char *target, const struct ptcp_transfer_opts *opts, struct ptcp_err *e)
{
	struct ptcp_transfer_opts o = *opts;
	struct ptcp_task *t = NULL;
	int r;

	o.trust = NULL; /* only the given fingerprints count */
	if ((r = ptcp_status_new(&t, &o, target, false, e)) == 0)
		r = connect_run(t, e);
	ptcp_task_free(t);
	return r;
}

/* Cuts the advice off "what: why (advice)"; general advice for a sentence without. */
static const char *cut_advice(char *sentence)
{
	char *at = strstr(sentence, " (");

	if (at == NULL)
		return "compare the fingerprint with the output of ptcp key show on the server";
	*at = '\0';
	at += 2;
	at[strcspn(at, ")")] = '\0';
	return at;
}

int doctor_identity(struct doctor *d, const char *target, const struct ptcp_transfer_opts *o,
    struct ptcp_err *e)
{
	char host[256], port[8];
	const char *advice;
	int r;

	if (target == NULL || (r = split(target, host, port, e)) < 0)
		return target == NULL ? 0 : r;
	if (o->n_fingerprints == 0 && strncmp(target, "ptcp://", 7) != 0 && strtoul(port, NULL, 10) != PTCP_PORT)
		return 0;
	if ((r = query(target, o, e)) == PTCP_ECANCELED)
		return r;
	if (r == 0) {
		doctor_add(d, "identity", VERDICT_OK, 0, NULL, "the server is known and authorizes this client");
		return 0;
	}
	advice = cut_advice(e->msg);
	doctor_fix(doctor_add(d, "identity", VERDICT_BAD, 0, NULL, "%s", e->msg), "%s", advice);
	return 0;
}
