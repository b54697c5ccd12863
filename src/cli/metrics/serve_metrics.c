#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/serve.h"
#include "core/prometheus.h"

void metrics_update(struct metrics *m, struct ptcp_server *s)
{
	struct ptcp_server_stats old = m->stats;
	struct mono now = mono_now();
	double seconds = (double)mono_diff_ns(now, m->when) / 1e9;

	ptcp_server_stats_init(&m->stats);
	ptcp_server_stats(s, &m->stats);
	if (seconds > 0) {
		m->received_bps = (double)(m->stats.received_bytes - old.received_bytes) * 8 / seconds;
		m->sent_bps = (double)(m->stats.sent_bytes - old.sent_bytes) * 8 / seconds;
	}
	m->when = now;
	m->server = s;
}

void metrics_log_state(const struct metrics *m)
{
	const struct ptcp_server_stats *n = &m->stats;

	serve_log(PTCP_LOG_INFO, "event=state sessions=%u waiting=%u streams=%u relayed=%u shared=%u stored_bytes=%llu "
	    "received_bytes=%llu sent_bytes=%llu received_bps=%.0f sent_bps=%.0f sessions_total=%llu failed=%llu "
	    "refused=%llu retransmits=%llu links_known=%u memory_bytes=%llu", n->sessions_now, n->waiting_now,
	    n->streams_now, n->relayed_now, n->shared_now,
	    (unsigned long long)n->stored_bytes, (unsigned long long)n->received_bytes,
	    (unsigned long long)n->sent_bytes,
	    m->received_bps, m->sent_bps, (unsigned long long)n->sessions, (unsigned long long)n->sessions_failed,
	    (unsigned long long)n->refused, (unsigned long long)n->retransmits, n->links_known,
	    (unsigned long long)n->memory_bytes);
}

/* ---- File ---- */

#define COUNTER(name, member, help) { name, help, offsetof(struct ptcp_server_stats, member) }

static const struct counter {
	const char *name, *help;
	size_t at;
} counters[] = {
	COUNTER("connections_total", connections, "Accepted connections."),
	COUNTER("refused_total", refused, "Refused clients, connections and requests."),
	COUNTER("sessions_total", sessions, "Started sessions."),
	COUNTER("sessions_failed_total", sessions_failed, "Failed sessions."),
	COUNTER("received_bytes_total", received_bytes, "File data received."),
	COUNTER("sent_bytes_total", sent_bytes, "File data sent."),
	COUNTER("received_files_total", received_files, "Files received."),
	COUNTER("sent_files_total", sent_files, "Files sent."),
	COUNTER("failed_files_total", failed_files, "Failed files."),
	COUNTER("retransmitted_segments_total", retransmits, "TCP segments retransmitted by data connections."),
	COUNTER("shared_registrations_total", shared, "Registrations of ephemeral servers, which share the port."),
	COUNTER("quota_ends_total", quota_ends, "Sessions ended by a quota."),
	COUNTER("shared_refused_total", shared_refused, "Refused registrations of ephemeral servers."),
};

/* ---- Quotas ---- */

struct quota_lines {
	FILE *f;
	bool limits; /* lines of the quotas, not of the space used */
};

static void print_quota(void *arg, const struct ptcp_server_quota *q)
{
	const struct quota_lines *l = arg;

	prometheus_sample(l->f, l->limits ? "quota_bytes" : "quota_used_bytes", "directory", q->directory,
	    (double)(l->limits ? q->quota_bytes : q->used_bytes));
}

static void print_memory(void *arg, const struct ptcp_server_memory *m)
{
	fprintf(arg, "ptcp_client_memory_bytes{client=\"%s\"} %llu\n", m->client, (unsigned long long)m->bytes);
}

static void print_quotas(FILE *f, struct ptcp_server *s)
{
	prometheus_head(f, "quota_bytes", "gauge", "Quota of a client's directory.");
	ptcp_server_quotas_each(s, print_quota, &(struct quota_lines){ f, true });
	prometheus_head(f, "quota_used_bytes", "gauge", "Space used beneath the directory.");
	ptcp_server_quotas_each(s, print_quota, &(struct quota_lines){ f, false });
}

/* ---- Movers ---- */

#define HOSTS_MAX 128 /* equals the maximum of movers */

/* Several movers of a host count together. */
struct mover_hosts {
	struct { char name[256]; uint64_t bytes; double rate_bps; unsigned streams, movers; } of[HOSTS_MAX];
	unsigned n;
};

static void add_mover(void *arg, const struct ptcp_mover_stats *m)
{
	struct mover_hosts *h = arg;
	unsigned i = 0;

	while (i < h->n && strcmp(h->of[i].name, m->host) != 0)
		i++;
	if (i == HOSTS_MAX)
		return;
	if (i == h->n) {
		memset(&h->of[h->n++], 0, sizeof h->of[0]);
		snprintf(h->of[i].name, sizeof h->of[i].name, "%s", m->host);
	}
	h->of[i].bytes += m->bytes;
	h->of[i].rate_bps += m->rate_bps;
	h->of[i].streams += m->streams;
	h->of[i].movers++;
}

static void print_movers(FILE *f, struct ptcp_server *s)
{
	struct mover_hosts h = { .n = 0 };
	unsigned i;

	ptcp_server_movers_each(s, add_mover, &h);
	prometheus_head(f, "movers", "gauge", "Movers of the server.");
	for (i = 0; i < h.n; i++)
		prometheus_sample(f, "movers", "host", h.of[i].name, h.of[i].movers);
	prometheus_head(f, "mover_bytes_total", "counter", "File data of the movers of a host.");
	for (i = 0; i < h.n; i++)
		prometheus_sample(f, "mover_bytes_total", "host", h.of[i].name, (double)h.of[i].bytes);
	prometheus_head(f, "mover_streams", "gauge", "Data connections of the movers of a host.");
	for (i = 0; i < h.n; i++)
		prometheus_sample(f, "mover_streams", "host", h.of[i].name, h.of[i].streams);
	prometheus_head(f, "mover_bytes_per_second", "gauge",
	    "File data of the movers of a host, over the last seconds.");
	for (i = 0; i < h.n; i++)
		prometheus_sample(f, "mover_bytes_per_second", "host", h.of[i].name, h.of[i].rate_bps / 8);
}

/* ---- Clients ---- */

void metrics_add(struct metrics *m, const struct ptcp_server_record *r)
{
	struct client_metrics *c = m->clients;
	unsigned i = 0;

	while (i < m->n_clients && strcmp(c[i].client, r->client) != 0)
		i++;
	if (i >= METRICS_CLIENTS - 1)
		i = METRICS_CLIENTS - 1;
	if (i == m->n_clients) {
		m->n_clients++;
		snprintf(c[i].client, sizeof c[i].client, "%s", i < METRICS_CLIENTS - 1 ? r->client : "others");
		snprintf(c[i].name, sizeof c[i].name, "%s", i < METRICS_CLIENTS - 1 ? r->name : "");
	}
	c[i].sessions++;
	c[i].failed += r->code != 0;
	if (strcmp(r->work, "receive") == 0 || strcmp(r->work, "write") == 0)
		c[i].received_bytes += r->bytes;
	else if (strcmp(r->work, "send") == 0 || strcmp(r->work, "read") == 0)
		c[i].sent_bytes += r->bytes;
}

static void client_lines(FILE *f, const struct metrics *m, const char *name, size_t at)
{
	const struct client_metrics *c;

	for (c = m->clients; c < m->clients + m->n_clients; c++) {
		fprintf(f, "ptcp_%s{client=\"%s\",name=\"", name, c->client);
		prometheus_text(f, c->name);
		fprintf(f, "\"} %llu\n", (unsigned long long)*(const uint64_t *)(const void *)((const char *)c + at));
	}
}

static void print_clients(FILE *f, const struct metrics *m)
{
	prometheus_head(f, "client_sessions_total", "counter", "Finished sessions of each client.");
	client_lines(f, m, "client_sessions_total", offsetof(struct client_metrics, sessions));
	prometheus_head(f, "client_sessions_failed_total", "counter", "Finished sessions of each client that failed.");
	client_lines(f, m, "client_sessions_failed_total", offsetof(struct client_metrics, failed));
	prometheus_head(f, "client_received_bytes_total", "counter",
	    "File data received in finished sessions of each client.");
	client_lines(f, m, "client_received_bytes_total", offsetof(struct client_metrics, received_bytes));
	prometheus_head(f, "client_sent_bytes_total", "counter", "File data sent in finished sessions of each client.");
	client_lines(f, m, "client_sent_bytes_total", offsetof(struct client_metrics, sent_bytes));
}

void metrics_print(FILE *f, void *arg)
{
	const struct metrics *m = arg;
	size_t i;

	prometheus_head(f, "build_info", "gauge", "Always 1; the label is the version.");
	fprintf(f, "ptcp_build_info{version=\"%s\"} 1\n", ptcp_version());
	prometheus_gauge(f, "start_time_seconds", "Start time of the server, in Unix time.", (double)m->started);
	for (i = 0; i < sizeof counters / sizeof *counters; i++) {
		const struct counter *c = &counters[i];
		const char *at = (const char *)&m->stats + c->at;

		prometheus_head(f, c->name, "counter", c->help);
		fprintf(f, "ptcp_%s %llu\n", c->name, (unsigned long long)*(const uint64_t *)(const void *)at);
	}
	prometheus_gauge(f, "sessions", "Active sessions.", m->stats.sessions_now);
	prometheus_gauge(f, "waiting_sessions", "Sessions that wait for room.", m->stats.waiting_now);
	prometheus_gauge(f, "streams", "Active data connections.", m->stats.streams_now);
	prometheus_gauge(f, "relayed", "Active relayed connections.", m->stats.relayed_now);
	prometheus_gauge(f, "shared_sessions", "Ephemeral servers that share the port.", m->stats.shared_now);
	prometheus_gauge(f, "stored_bytes", "Relayed data on disk.", (double)m->stats.stored_bytes);
	prometheus_gauge(f, "memory_bytes", "Memory in use by clients, see --max-memory.",
	    (double)m->stats.memory_bytes);
	prometheus_head(f, "client_memory_bytes", "gauge", "Memory in use by each client.");
	ptcp_server_memory_each(m->server, print_memory, f);
	prometheus_gauge(f, "links_known", "Links of --watch with known rate and delay.", m->stats.links_known);
	prometheus_gauge(f, "receive_bytes_per_second", "File data received, over the last seconds.",
	    m->received_bps / 8);
	prometheus_gauge(f, "send_bytes_per_second", "File data sent, over the last seconds.", m->sent_bps / 8);
	print_quotas(f, m->server);
	print_movers(f, m->server);
	print_clients(f, m);
}
