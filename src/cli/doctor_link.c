/* An interface: its MTU, its speed, what queues before it. */
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "core/units.h"

#define MTU_ETHERNET 1500

struct queue {
	char root[32], below[32]; /* kinds; below: of the first of several */
};

static void note_queue(struct queue *q, const struct nlmsghdr *h, int index)
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

/* Asks the kernel for all queueing disciplines, and keeps those of the interface. */
static bool find_queue(struct queue *q, int index)
{
	struct {
		struct nlmsghdr h;
		struct tcmsg t;
	} ask = { .h = { .nlmsg_len = sizeof ask, .nlmsg_type = RTM_GETQDISC,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	_Alignas(struct nlmsghdr) char buf[32768];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), left;
	bool over = false;

	*q = (struct queue){ "", "" };
	if (fd < 0 || send(fd, &ask, sizeof ask, 0) < 0)
		over = true;
	while (!over && (left = (int)recv(fd, buf, sizeof buf, 0)) > 0) {
		const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)buf;

		for (; NLMSG_OK(h, (unsigned)left); h = NLMSG_NEXT(h, left))
			if (h->nlmsg_type == RTM_NEWQDISC)
				note_queue(q, h, index);
			else
				over = true; /* done, or an error */
	}
	if (fd >= 0)
		close(fd);
	return q->root[0] != '\0';
}

static void look_queue(struct doctor *d, const char *name)
{
	static const char *const good[] = { "fq", "fq_codel", "cake", "noqueue" };
	struct queue q;
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
		doctor_mend(f, "tc qdisc replace dev %s root fq", name);
}

void doctor_link(struct doctor *d, const char *name, double *speed_bps)
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
		doctor_add(d, "interface", VERDICT_OK, 0, NULL, "%s, which does not tell its speed", name);
	}
	if (doctor_read(d, line, sizeof line, "/sys/class/net/%s/mtu", name) && (mtu = atol(line)) > 0) {
		f = doctor_add(d, "mtu", VERDICT_OK, (double)mtu, "bytes", "%ld on %s", mtu, name);
		if (mtu < MTU_ETHERNET || (mtu == MTU_ETHERNET && *speed_bps >= 10e9)) {
			f->verdict = VERDICT_WARN;
			doctor_mend(f, "ip link set dev %s mtu %d (where every hop of the way has that)", name,
			    *speed_bps >= 10e9 ? 9000 : MTU_ETHERNET);
		}
		if (mtu > MTU_ETHERNET && doctor_read(d, line, sizeof line, "/proc/sys/net/ipv4/tcp_mtu_probing") &&
		    line[0] == '0' && strcmp(name, "lo") != 0) {
			f = doctor_add(d, "mtu-probing", VERDICT_WARN, 0, NULL,
			    "off: jumbo frames that a hop drops stall");
			doctor_mend(f, "sysctl -w net.ipv4.tcp_mtu_probing=1");
		}
	}
	look_queue(d, name);
}
