#include "flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "rng.h"

#define CHUNK_BYTES (128 * 1024)
#define STATE_SYN_SENT 2 /* TCP_SYN_SENT, which <linux/tcp.h> lacks */

struct stream {
	int fd;               /* -1: not open, or failed */
	int failed;           /* errno */
	struct tcp_info past; /* counters of earlier connections */
	struct tcp_info was;  /* at the start of the measured time */
	struct tcp_info is;   /* at its end */
	struct mono change;   /* next opening or closing of a stream that comes and goes */
};

struct source {
	const struct flow_opts *o;
	struct stream stream[FLOW_STREAMS_MAX];
	int ep;
	int open;      /* streams that should be open, the first ones */
	FILE *trace;
	struct rng rng;
};

/* ---- Streams ---- */

static int open_stream(struct source *f, int index)
{
	const struct flow_opts *o = f->o;
	struct stream *s = &f->stream[index];
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)o->port) };
	struct epoll_event ev = { .events = EPOLLOUT, .data.u32 = (uint32_t)index };
	struct linger none = { 1, 0 }; /* or what is in buffers would go on after the end */

	inet_pton(AF_INET, o->address, &a.sin_addr);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -1;
	setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	if (o->cc && setsockopt(s->fd, IPPROTO_TCP, TCP_CONGESTION, o->cc,
	    (socklen_t)strlen(o->cc)) < 0)
		return -1;
	if (connect(s->fd, (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS)
		return -1;
	return epoll_ctl(f->ep, EPOLL_CTL_ADD, s->fd, &ev);
}

/* Counters include those of the stream's earlier connections. */
static void read_info(const struct stream *s, struct tcp_info *info)
{
	socklen_t len = sizeof *info;

	memset(info, 0, sizeof *info);
	if (s->fd >= 0)
		getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, info, &len);
	info->tcpi_bytes_acked += s->past.tcpi_bytes_acked;
	info->tcpi_bytes_sent += s->past.tcpi_bytes_sent;
	info->tcpi_bytes_retrans += s->past.tcpi_bytes_retrans;
	info->tcpi_total_retrans += s->past.tcpi_total_retrans;
	info->tcpi_segs_out += s->past.tcpi_segs_out;
	info->tcpi_data_segs_out += s->past.tcpi_data_segs_out;
	info->tcpi_busy_time += s->past.tcpi_busy_time;
	info->tcpi_rwnd_limited += s->past.tcpi_rwnd_limited;
	info->tcpi_sndbuf_limited += s->past.tcpi_sndbuf_limited;
}

static void close_stream(struct stream *s)
{
	struct tcp_info last;

	if (s->fd < 0)
		return;
	read_info(s, &last);
	s->past = last;
	close(s->fd);
	s->fd = -1;
}

static void feed(struct stream *s)
{
	static const char zeros[CHUNK_BYTES];
	ssize_t n = s->fd >= 0 ? send(s->fd, zeros, sizeof zeros, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (n >= 0 || errno == EAGAIN || errno == EINTR)
		return;
	s->failed = errno;
	close_stream(s);
}

/* ---- Streams that come and go ---- */

static struct mono after_mean(struct source *f, struct mono now, double mean_s)
{
	return mono_add_ns(now, (uint64_t)(-log(1 - rng_unit(&f->rng)) * mean_s * 1e9));
}

/* At first, each stream is open with the probability of the long run. */
static int start_changing(struct source *f, int index, struct mono now)
{
	const struct flow_opts *o = f->o;
	int is_open = rng_unit(&f->rng) * (o->on_s + o->off_s) < o->on_s;

	f->stream[index].change = after_mean(f, now, is_open ? o->on_s : o->off_s);
	return is_open ? open_stream(f, index) : 0;
}

/* Opens and closes the streams whose time has come. */
static int change_streams(struct source *f, struct mono now)
{
	int i;

	for (i = 0; f->o->on_s > 0 && i < f->open; i++) {
		struct stream *s = &f->stream[i];

		if (mono_diff_ns(s->change, now) > 0)
			continue;
		if (s->fd >= 0) {
			close_stream(s);
			s->change = after_mean(f, now, f->o->off_s);
		} else {
			if (open_stream(f, i) < 0)
				return -1;
			s->change = after_mean(f, now, f->o->on_s);
		}
	}
	return 0;
}

/* The sooner of `end` and the next change of a stream. */
static struct mono next_change(const struct source *f, struct mono end)
{
	int i;

	for (i = 0; f->o->on_s > 0 && i < f->open; i++)
		if (f->stream[i].change.ns < end.ns)
			end = f->stream[i].change;
	return end;
}

/* ---- Sending ---- */

/* Keeps all open streams full until `end`. */
static int keep_full(struct source *f, struct mono end)
{
	struct epoll_event got[64];

	for (;;) {
		struct mono now = mono_now();
		int n, i;

		if (mono_diff_ns(end, now) == 0)
			return 0;
		if (change_streams(f, now) < 0)
			return -1;
		n = epoll_wait(f->ep, got, 64,
		    (int)((mono_diff_ns(next_change(f, end), now) + NS_PER_MS - 1) / NS_PER_MS));
		if (n < 0 && errno != EINTR)
			return -1;
		for (i = 0; i < n; i++)
			feed(&f->stream[got[i].data.u32]);
	}
}

/* The kernel says UINT64_MAX for no limit. */
static unsigned long long limit_bps(uint64_t bytes_per_s)
{
	return bytes_per_s == UINT64_MAX ? 0 : bytes_per_s * 8;
}

static void print_trace(struct source *f, double at, int index, const struct tcp_info *t)
{
	fprintf(f->trace,
	    "%.3f,%d,%d,%llu,%llu,%llu,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%llu,%llu,%u,%llu,%llu,%llu,%u,%u,%u,%u\n",
	    at, f->open, index, (unsigned long long)t->tcpi_bytes_acked, (unsigned long long)t->tcpi_bytes_sent,
	    (unsigned long long)t->tcpi_bytes_retrans, t->tcpi_data_segs_out, t->tcpi_total_retrans, t->tcpi_delivered,
	    t->tcpi_lost, t->tcpi_unacked, t->tcpi_snd_cwnd, t->tcpi_snd_ssthresh, t->tcpi_rtt, t->tcpi_rttvar,
	    t->tcpi_min_rtt == UINT32_MAX ? 0 : t->tcpi_min_rtt, t->tcpi_ca_state,
	    (unsigned long long)t->tcpi_delivery_rate * 8, limit_bps(t->tcpi_pacing_rate),
	    t->tcpi_delivery_rate_app_limited,
	    (unsigned long long)t->tcpi_busy_time, (unsigned long long)t->tcpi_rwnd_limited,
	    (unsigned long long)t->tcpi_sndbuf_limited, t->tcpi_notsent_bytes, t->tcpi_dsack_dups, t->tcpi_reord_seen,
	    t->tcpi_snd_wnd);
}

static int open_trace(struct source *f)
{
	if (f->o->trace == NULL)
		return 0;
	f->trace = fopen(f->o->trace, "w");
	if (f->trace == NULL)
		return -1;
	fprintf(f->trace,
	    "at_s,streams,stream,acked_bytes,sent_bytes,retrans_bytes,data_segments,retransmits,delivered,lost,unacked,cwnd,ssthresh,rtt_us,rttvar_us,min_rtt_us,ca_state,delivery_bps,pacing_bps,app_limited,"
	    "busy_us,window_us,buffer_us,notsent_bytes,dsack_dups,reorderings,send_window_bytes\n");
	return 0;
}

static void print_acked(struct source *f, struct mono now)
{
	uint64_t busy_us = 0, window_us = 0, buffer_us = 0;
	double at = (double)now.ns / 1e9;
	struct tcp_info info;

	printf("at=%.3f acked=", at);
	for (int i = 0; i < f->o->streams; i++) {
		read_info(&f->stream[i], &info);
		printf("%s%llu", i ? "," : "", (unsigned long long)info.tcpi_bytes_acked);
		busy_us += info.tcpi_busy_time;
		window_us += info.tcpi_rwnd_limited;
		buffer_us += info.tcpi_sndbuf_limited;
		if (f->trace != NULL && f->stream[i].fd >= 0)
			print_trace(f, at, i, &info);
	}
	printf(" busy=%.3f window=%.3f buffer=%.3f\n", (double)busy_us / 1e6, (double)window_us / 1e6,
	    (double)buffer_us / 1e6);
	fflush(stdout);
}

/* The same, with a line at each multiple of the interval after `start`. */
static int pump(struct source *f, struct mono start, struct mono end)
{
	uint64_t interval_ns = (uint64_t)(f->o->interval_s * 1e9);
	struct mono now = mono_now(), next;

	while (interval_ns > 0) {
		next = mono_add_ns(start, (mono_diff_ns(now, start) / interval_ns + 1) * interval_ns);
		if (next.ns > end.ns)
			break;
		if (keep_full(f, next) < 0)
			return -1;
		now = mono_now();
		print_acked(f, now);
	}
	return keep_full(f, end);
}

/* ---- Results ---- */

static double stream_mbps(const struct stream *s, double seconds)
{
	if (s->failed)
		return 0;
	return (double)(s->is.tcpi_bytes_acked - s->was.tcpi_bytes_acked) * 8e-6 / seconds;
}

static int report(const struct flow_opts *o, const struct stream *streams, double seconds)
{
	double sum = 0, squares = 0, rtt = 0;
	unsigned retrans = 0, segments = 0;
	int failed = 0, n = o->streams;

	for (int i = 0; i < n; i++) {
		const struct stream *s = &streams[i];
		double mbps = stream_mbps(s, seconds);
		unsigned re = s->is.tcpi_total_retrans - s->was.tcpi_total_retrans;

		printf("stream=%d mbps=%.4f retrans=%u rtt_ms=%.3f min_rtt_ms=%.3f cwnd=%u",
		    i, mbps, re, s->is.tcpi_rtt / 1e3, s->is.tcpi_min_rtt / 1e3,
		    s->is.tcpi_snd_cwnd);
		if (s->failed)
			printf(" error=\"%s\"", strerror(s->failed));
		putchar('\n');
		sum += mbps;
		squares += mbps * mbps;
		rtt += s->is.tcpi_rtt / 1e3 / n;
		retrans += re;
		segments += s->is.tcpi_data_segs_out - s->was.tcpi_data_segs_out;
		failed += s->failed != 0;
	}
	printf("total streams=%d failed=%d cc=%s seconds=%.3f mbps=%.4f retrans=%u segments=%u "
	    "rtt_ms=%.3f fairness=%.3f\n", n, failed, o->cc ? o->cc : "default",
	    seconds, sum, retrans, segments, rtt, squares > 0 ? sum * sum / (n * squares) : 0);
	return failed > 0;
}

/* ---- From the first stream to the last ---- */

static int start_streams(struct source *f, struct mono start)
{
	const struct flow_opts *o = f->o;
	double gap_s = o->streams > 1 ? o->spread_s / (o->streams - 1) : 0;
	int r;

	for (; f->open < o->streams; f->open++) {
		if (pump(f, start, mono_add_ns(start, (uint64_t)(f->open * gap_s * 1e9))) < 0)
			return flow_fail("epoll_wait");
		r = o->on_s > 0 ? start_changing(f, f->open, mono_now()) : open_stream(f, f->open);
		if (r < 0)
			return flow_fail(o->cc ? o->cc : o->address);
	}
	return 0;
}

/* Opens streams up to the number of each level, or closes the newest ones. */
static int run_levels(struct source *f, struct mono start)
{
	struct mono end = start;

	for (int i = 0; i < f->o->levels; i++) {
		for (; f->open < f->o->level[i]; f->open++)
			if (open_stream(f, f->open) < 0)
				return flow_fail(f->o->cc ? f->o->cc : f->o->address);
		while (f->open > f->o->level[i])
			close_stream(&f->stream[--f->open]);
		end = mono_add_ns(end, (uint64_t)(f->o->level_s[i] * 1e9));
		if (pump(f, start, end) < 0)
			return flow_fail("epoll_wait");
	}
	return 0;
}

static int run(struct source *f, struct mono start, struct mono *measured)
{
	const struct flow_opts *o = f->o;
	int r;

	*measured = start;
	if (o->levels > 0)
		return run_levels(f, start);
	if ((r = start_streams(f, start)) != 0)
		return r;
	if (pump(f, start, mono_add_ns(start, (uint64_t)((o->spread_s + o->warm_s) * 1e9))) < 0)
		return flow_fail("epoll_wait");
	*measured = mono_now();
	for (int i = 0; i < o->streams; i++)
		read_info(&f->stream[i], &f->stream[i].was);
	if (pump(f, start, mono_add_ns(*measured, (uint64_t)(o->time_s * 1e9))) < 0)
		return flow_fail("epoll_wait");
	return 0;
}

int flow_source(const struct flow_opts *o)
{
	static struct source f;
	struct mono start = mono_add_ns(mono_now(), (uint64_t)(o->delay_s * 1e9)), measured;
	int r;

	f.o = o;
	f.ep = epoll_create1(EPOLL_CLOEXEC);
	if (f.ep < 0)
		return flow_fail("epoll_create");
	if (open_trace(&f) < 0)
		return flow_fail(o->trace);
	rng_init(&f.rng, start.ns ^ (uint64_t)getpid() << 32); /* repetitions differ */
	for (int i = 0; i < o->streams; i++)
		f.stream[i].fd = -1;
	if (keep_full(&f, start) < 0)
		return flow_fail("epoll_wait");
	if ((r = run(&f, start, &measured)) != 0)
		return r;
	for (int i = 0; i < o->streams; i++) {
		read_info(&f.stream[i], &f.stream[i].is);
		if (f.stream[i].fd >= 0 && f.stream[i].is.tcpi_state == STATE_SYN_SENT)
			f.stream[i].failed = ETIMEDOUT; /* never connected */
	}
	if (f.trace != NULL && fclose(f.trace) != 0)
		return flow_fail(o->trace);
	return report(o, f.stream, (double)mono_diff_ns(mono_now(), measured) / 1e9);
}
