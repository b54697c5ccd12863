#include "veth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <net/route.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"

#define TX_QUEUE_PACKETS 10000
static const unsigned char host_mac[6] = { 2, 'p', 't', 'c', 'p', 1 };
static const unsigned char emu_mac[6] = { 2, 'p', 't', 'c', 'p', 2 };

struct request {
	struct nlmsghdr h;
	char body[1024];
};

static struct rtattr *add(struct request *q, int type, const void *data, size_t bytes)
{
	struct rtattr *a = (struct rtattr *)(void *)((char *)q + NLMSG_ALIGN(q->h.nlmsg_len));

	a->rta_type = (unsigned short)type;
	a->rta_len = (unsigned short)RTA_LENGTH(bytes);
	if (bytes > 0)
		memcpy(RTA_DATA(a), data, bytes);
	q->h.nlmsg_len = NLMSG_ALIGN(q->h.nlmsg_len) + (unsigned)RTA_ALIGN(a->rta_len);
	return a;
}

static void end_nest(struct request *q, struct rtattr *a)
{
	a->rta_len = (unsigned short)((char *)q + q->h.nlmsg_len - (char *)a);
}

static void add_device(struct request *q, const char *name, const unsigned char *mac,
    uint32_t mtu)
{
	uint32_t len = TX_QUEUE_PACKETS;

	add(q, IFLA_IFNAME, name, strlen(name) + 1);
	add(q, IFLA_ADDRESS, mac, 6);
	add(q, IFLA_MTU, &mtu, sizeof mtu);
	add(q, IFLA_TXQLEN, &len, sizeof len);
}

/* 0 or -1 with errno, as the kernel answers. */
static int talk(struct request *q)
{
	struct { struct nlmsghdr h; struct nlmsgerr e; char more[1024]; } answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = send(fd, q, q->h.nlmsg_len, 0);
	if (n > 0)
		n = recv(fd, &answer, sizeof answer, 0);
	close(fd);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof answer.e) || answer.h.nlmsg_type != NLMSG_ERROR)
		return -1;
	errno = -answer.e.error;
	return answer.e.error ? -1 : 0;
}

static int offloads_off(const char *dev)
{
	static const __u32 off[] = { ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = fd < 0 ? -1 : 0;

	for (size_t i = 0; ret == 0 && i < sizeof off / sizeof *off; i++) {
		struct ethtool_value v = { .cmd = off[i], .data = 0 };
		struct ifreq r = { .ifr_data = (void *)&v };

		strncpy(r.ifr_name, dev, IFNAMSIZ - 1);
		ret = ioctl(fd, SIOCETHTOOL, &r);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

int veth_create(const char *peer, int emu_ns, uint32_t mtu, struct ptcp_err *e)
{
	struct request q = { .h = { .nlmsg_type = RTM_NEWLINK,
	    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL } };
	struct ifinfomsg here = { .ifi_flags = IFF_NOARP, .ifi_change = IFF_NOARP };
	struct ifinfomsg there = { .ifi_flags = IFF_NOARP,
	    .ifi_change = IFF_NOARP };
	struct rtattr *info, *data, *other;

	q.h.nlmsg_len = NLMSG_LENGTH(sizeof here);
	memcpy(NLMSG_DATA(&q.h), &here, sizeof here);
	add_device(&q, VETH_HOST_DEV, host_mac, mtu);
	info = add(&q, IFLA_LINKINFO, NULL, 0);
	add(&q, IFLA_INFO_KIND, "veth", 4);
	data = add(&q, IFLA_INFO_DATA, NULL, 0);
	other = add(&q, VETH_INFO_PEER, NULL, 0);
	memcpy((char *)&q + q.h.nlmsg_len, &there, sizeof there);
	q.h.nlmsg_len += (unsigned)NLMSG_ALIGN(sizeof there);
	add_device(&q, peer, emu_mac, mtu);
	add(&q, IFLA_NET_NS_FD, &emu_ns, sizeof emu_ns);
	end_nest(&q, other);
	end_nest(&q, data);
	end_nest(&q, info);
	if (talk(&q) < 0)
		return err_sys(e, PTCP_EIO, "cannot make a veth pair");
	return 0;
}

static void set_address(struct sockaddr *sa, uint32_t address)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };

	memcpy(sa, &a, sizeof a);
}

static int bring_up(int fd, const char *dev)
{
	struct ifreq r = { .ifr_flags = 0 };

	strncpy(r.ifr_name, dev, IFNAMSIZ - 1);
	if (ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return -1;
	r.ifr_flags |= IFF_UP;
	return ioctl(fd, SIOCSIFFLAGS, &r);
}

int veth_configure(uint32_t address, uint64_t window_bytes, struct ptcp_err *e)
{
	char dev[] = VETH_HOST_DEV;
	struct rtentry route = { .rt_flags = RTF_UP, .rt_dev = dev };
	struct ifreq r = { .ifr_name = VETH_HOST_DEV };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ok;

	set_address(&route.rt_dst, 0);
	set_address(&route.rt_genmask, 0);
	if (window_bytes > 0) {
		route.rt_flags |= RTF_WINDOW;
		route.rt_window = window_bytes;
	}
	set_address(&r.ifr_addr, address);
	ok = fd >= 0 && offloads_off(VETH_HOST_DEV) == 0 && ioctl(fd, SIOCSIFADDR, &r) == 0;
	set_address(&r.ifr_addr, 0xffffffffu);
	ok = ok && ioctl(fd, SIOCSIFNETMASK, &r) == 0 && bring_up(fd, "lo") == 0 &&
	    bring_up(fd, VETH_HOST_DEV) == 0 && ioctl(fd, SIOCADDRT, &route) == 0;
	if (!ok)
		err_sys(e, PTCP_EIO, "cannot configure " VETH_HOST_DEV);
	if (fd >= 0)
		close(fd);
	return ok ? 0 : PTCP_EIO;
}

int veth_bring_up(const char *dev, struct ptcp_err *e)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ok = fd >= 0 && offloads_off(dev) == 0 && bring_up(fd, dev) == 0;

	if (!ok)
		err_sys(e, PTCP_EIO, "cannot bring %s up", dev);
	if (fd >= 0)
		close(fd);
	return ok ? 0 : PTCP_EIO;
}
