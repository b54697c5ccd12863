#include "emu.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/units.h"

#define IPV4_HEADER_BYTES 20
#define READ_AT_ONCE 64
#define ACTIVE_NS 100000000u /* after the last packet */
/* Sleeps while active, from m->sleep_ns to twice that: the former bounds how late a packet leaves by our doing; the
 * latter, how late a stall is seen and a packet read. Long delays and slow links permit longer sleeps. */
#define SLEEP_MIN_NS 100000u
#define SLEEP_MAX_NS 250000u
#define SLEEP_DELAYS 16       /* m->sleep_ns is at most this part of the shortest delay of a link, .. */
#define SLEEP_PACKETS 2       /* .. and the time of so many packets on the slowest link */
#define TURNS_PER_LOOK 16 /* at commands, while active */

/* A packet of the model with the frame it stands for. */
struct carried {
	struct packet p;
	int device;            /* of its destination */
	uint32_t frame_bytes;
	unsigned char frame[];
};

void emu_peer_name(char *buf, int host)
{
	snprintf(buf, EMU_PEER_NAME_BYTES, "v%d", host);
}

int emu_link(const struct topo *t, int i, int d)
{
	int at = d;

	for (int k = 0; k < i; k++)
		at += 1 + t->link[k].both;
	return at;
}

/* --------------------------------------------------------------- packets */

static void release(void *arg, struct packet *p)
{
	struct emu *m = arg;

	p->next = m->unused;
	m->unused = p;
}

static struct packet *unused_packet(struct emu *m)
{
	struct packet *p = m->unused;

	if (p == NULL)
		return malloc(sizeof(struct carried) + m->room_bytes);
	m->unused = p->next;
	return p;
}

static void flush(struct emu *m)
{
	if (m->batched == 0)
		return;
	m->refused += (uint64_t)packetio_send(m->io, m->batch, m->batched);
	for (int i = 0; i < m->batched; i++)
		release(m, m->batch_packet[i]);
	m->batched = 0;
}

static void deliver(void *arg, struct packet *p)
{
	struct emu *m = arg;
	struct carried *c = (struct carried *)(void *)p;
	uint64_t due_ns = vclock_real(&m->clock, p->due_ns);
	uint64_t late_ns = m->clock.seen_ns > due_ns ? m->clock.seen_ns - due_ns : 0;

	m->delivered++;
	m->late_sum_ns += late_ns;
	m->late_1ms += late_ns > NS_PER_MS;
	if (late_ns > m->late_max_ns)
		m->late_max_ns = late_ns;
	m->batch[m->batched] = (struct frame){ c->frame, c->frame_bytes, c->device, 0 };
	m->batch_packet[m->batched] = p;
	if (++m->batched == PACKETIO_BATCH)
		flush(m);
}

/* The host with this address, -1. Hosts' addresses are consecutive. */
static int host_at(const struct emu *m, const unsigned char *ip)
{
	uint32_t a;

	memcpy(&a, ip, sizeof a);
	a = ntohl(a) - m->topo->node[0].address;
	return a < (uint32_t)m->topo->hosts ? (int)a : -1;
}

static void take_frame(struct emu *m, const struct frame *f, uint64_t now_ns)
{
	const unsigned char *ip = f->data + PACKETIO_HEADER_BYTES;
	int from = f->device < m->devices ? m->host_of_device[f->device] : -1;
	int to = f->bytes >= PACKETIO_HEADER_BYTES + IPV4_HEADER_BYTES ? host_at(m, ip + 16) : -1;
	struct packet *p;
	struct carried *c;

	p = from >= 0 && to >= 0 && f->bytes <= m->room_bytes ? unused_packet(m) : NULL;
	if (p == NULL) {
		m->strange++;
		return;
	}
	c = (struct carried *)(void *)p;
	c->frame_bytes = f->bytes;
	c->device = m->device_of_host[to];
	memcpy(c->frame, f->data, f->bytes);
	p->bytes = f->bytes - PACKETIO_HEADER_BYTES;
	p->to = (uint16_t)to;
	net_inject(&m->net, p, from, now_ns);
}

/* When a frame came in by the virtual clock: not before what is already settled,
 * not after now. */
static uint64_t arrival_ns(const struct emu *m, const struct frame *f, uint64_t now_ns)
{
	uint64_t real_ns = f->at_ns - m->realtime_less_mono_ns;
	uint64_t ns = real_ns > m->clock.stalled_ns ? real_ns - m->clock.stalled_ns : 0;

	if (ns > now_ns)
		ns = now_ns;
	return ns > m->settled_ns ? ns : m->settled_ns;
}

/* Let frames in and packets along, all in the order of time. Frames still in the
 * ring when the turn is over hold the network's time back at the last one read. */
static void carry(struct emu *m, uint64_t now_ns)
{
	struct frame f;
	int more;

	for (int i = 0; (more = packetio_peek(m->io, &f)) && i < READ_AT_ONCE; i++) {
		m->settled_ns = arrival_ns(m, &f, now_ns);
		net_run(&m->net, m->settled_ns);
		take_frame(m, &f, m->settled_ns);
		packetio_done(m->io);
		m->active_until_ns = m->clock.seen_ns + ACTIVE_NS;
	}
	if (!more) {
		m->settled_ns = now_ns;
		net_run(&m->net, now_ns);
	}
}

/* ------------------------------------------------------------------ loop */

/* Real time to wake up at. While packets flow the ring is polled rather than
 * waited for: a wake-up costs more than carrying several packets, and the ring
 * says when each came. */
static uint64_t wake_ns(struct emu *m)
{
	uint64_t ns = vclock_real(&m->clock, net_next_ns(&m->net)), seen_ns = m->clock.seen_ns;
	struct frame f;

	if (seen_ns >= m->active_until_ns)
		return ns;
	if (packetio_peek(m->io, &f))
		return seen_ns;
	if (ns < seen_ns + m->sleep_ns)
		return seen_ns + m->sleep_ns;
	return ns < seen_ns + 2 * m->sleep_ns ? ns : seen_ns + 2 * m->sleep_ns;
}

/* Of the links as they begin. */
static uint64_t sleep_ns(const struct topo *t, uint32_t mtu)
{
	uint64_t ns = SLEEP_MAX_NS, slowest_bps = UINT64_MAX;

	for (int i = 0; i < t->links; i++)
		for (int d = 0; d <= t->link[i].both; d++) {
			const struct link_conf *c = &t->link[i].conf[d];

			ns = c->delay_ns / SLEEP_DELAYS < ns ? c->delay_ns / SLEEP_DELAYS : ns;
			slowest_bps = c->rate_bps > 0 && c->rate_bps < slowest_bps ? c->rate_bps : slowest_bps;
		}
	if ((double)ns > SLEEP_PACKETS * mtu * 8e9 / (double)slowest_bps)
		ns = (uint64_t)(SLEEP_PACKETS * mtu * 8e9 / (double)slowest_bps);
	return ns > SLEEP_MIN_NS ? ns : SLEEP_MIN_NS;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
}

/* Sleep until `until_ns` (real). While active not even for commands, which are
 * looked for once in a while; else until a packet or a command comes, too. */
static int rest(struct emu *m, int ep, struct epoll_event *got, int max, uint64_t until_ns)
{
	uint64_t now_ns = mono_now().ns;
	struct timespec at = timespec_of(until_ns), left =
	    timespec_of(until_ns > now_ns ? until_ns - now_ns : 0);

	if (m->clock.seen_ns >= m->active_until_ns)
		return epoll_pwait2(ep, got, max, until_ns == NEVER_NS ? NULL : &left, NULL);
	if (until_ns > now_ns)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	if (++m->turns % TURNS_PER_LOOK != 0)
		return 0;
	return epoll_pwait2(ep, got, max, &(struct timespec){ 0, 0 }, NULL);
}

static void read_clocks(struct emu *m, uint64_t *real_ns)
{
	struct timespec ts;

	*real_ns = mono_now().ns;
	clock_gettime(CLOCK_REALTIME, &ts);
	m->realtime_less_mono_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec -
	    *real_ns;
}

static int loop(struct emu *m, int ep, struct ptcp_err *e)
{
	struct epoll_event got[8];

	for (;;) {
		uint64_t until_ns = wake_ns(m), real_ns;
		int n = rest(m, ep, got, 8, until_ns);

		if (n < 0 && errno != EINTR)
			return err_sys(e, PTCP_EIO, "epoll_pwait2");
		read_clocks(m, &real_ns);
		carry(m, vclock_tick(&m->clock, real_ns, until_ns == NEVER_NS ? real_ns : until_ns));
		for (int i = 0; i < n; i++)
			ctl_event(&m->ctl, got[i].data.fd);
		flush(m);
	}
}

/* ----------------------------------------------------------------- set-up */

static int map_devices(struct emu *m, struct ptcp_err *e)
{
	const struct topo *t = m->topo;
	char name[EMU_PEER_NAME_BYTES];

	m->device_of_host = calloc((size_t)t->hosts, sizeof *m->device_of_host);
	if (m->device_of_host == NULL)
		return err_nomem(e);
	for (int i = 0; i < t->hosts; i++) {
		int device;

		emu_peer_name(name, i);
		device = (int)if_nametoindex(name);
		if (device == 0)
			return err_sys(e, PTCP_EIO, "no device %s", name);
		m->device_of_host[i] = device;
		if (device >= m->devices)
			m->devices = device + 1;
	}
	m->host_of_device = malloc((size_t)m->devices * sizeof *m->host_of_device);
	if (m->host_of_device == NULL)
		return err_nomem(e);
	for (int i = 0; i < m->devices; i++)
		m->host_of_device[i] = -1;
	for (int i = 0; i < t->hosts; i++)
		m->host_of_device[m->device_of_host[i]] = i;
	return 0;
}

static int build_net(struct emu *m, struct ptcp_err *e)
{
	const struct topo *t = m->topo;
	uint64_t seed = t->seed;

	if (seed == 0 && getrandom(&seed, sizeof seed, 0) != sizeof seed)
		return err_sys(e, PTCP_EIO, "getrandom");
	if (net_init(&m->net, t->nodes, t->hosts, 2 * t->links) < 0)
		return err_nomem(e);
	m->net.deliver = deliver;
	m->net.release = release;
	m->net.arg = m;
	for (int i = 0; i < t->links; i++)
		for (int d = 0; d <= t->link[i].both; d++)
			net_add_link(&m->net, t->link[i].ends[d], t->link[i].ends[1 - d],
			    &t->link[i].conf[d], seed + (uint64_t)(2 * i + d));
	return net_route(&m->net) < 0 ? err_nomem(e) : 0;
}

/* Punctuality: ahead of the programs in the labs where that is allowed; campaigns run these with realtime priority,
 * too. */
static const char *be_punctual(void)
{
	struct sched_param rr = { .sched_priority = 2 };

	prctl(PR_SET_TIMERSLACK, 1);
	if (sched_setscheduler(0, SCHED_RR, &rr) == 0)
		return "realtime";
	if (setpriority(PRIO_PROCESS, 0, -20) == 0)
		return "nice";
	return "ordinary";
}

int emu_run(const struct topo *t, int ctl_fd, struct ptcp_err *e)
{
	struct emu m = { .topo = t };
	struct epoll_event ev = { .events = EPOLLIN };
	uint32_t mtu = 0;
	int ep = epoll_create1(EPOLL_CLOEXEC), r;

	for (int i = 0; i < t->hosts; i++)
		if (t->node[i].mtu > mtu)
			mtu = t->node[i].mtu;
	m.room_bytes = mtu + PACKETIO_HEADER_BYTES;
	m.sleep_ns = sleep_ns(t, mtu);
	r = map_devices(&m, e);
	if (r == 0)
		r = build_net(&m, e);
	if (r == 0)
		r = packetio_new(&m.io, mtu, e);
	if (r == 0) {
		ev.data.fd = packetio_fd(m.io);
		if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev) < 0 ||
		    ctl_init(&m.ctl, ctl_fd, ep, emu_command, &m) < 0)
			r = err_sys(e, PTCP_EIO, "epoll");
	}
	if (r == 0) {
		m.scheduling = be_punctual();
		vclock_init(&m.clock, mono_now().ns);
		r = loop(&m, ep, e);
	}
	packetio_free(m.io);
	net_fini(&m.net);
	free(m.host_of_device);
	free(m.device_of_host);
	return r;
}
