#include "cli/metrics.h"

#include <stddef.h>
#include <sys/stat.h>

#include "core/atomic_file.h"
#include "core/err.h"
#include "core/text.h"

static const struct counter {
	const char *name, *help;
	size_t at;
} counters[] = {
	{ "connections_total", "Connections taken.", offsetof(struct ptcp_server_stats, connections) },
	{ "refused_total", "Clients, connections and requests refused.",
	    offsetof(struct ptcp_server_stats, refused) },
	{ "sessions_total", "Sessions begun.", offsetof(struct ptcp_server_stats, sessions) },
	{ "sessions_failed_total", "Sessions that ended otherwise than well.",
	    offsetof(struct ptcp_server_stats, sessions_failed) },
	{ "received_bytes_total", "File data received.", offsetof(struct ptcp_server_stats, received_bytes) },
	{ "sent_bytes_total", "File data sent.", offsetof(struct ptcp_server_stats, sent_bytes) },
	{ "received_files_total", "Files received.", offsetof(struct ptcp_server_stats, received_files) },
	{ "sent_files_total", "Files sent.", offsetof(struct ptcp_server_stats, sent_files) },
	{ "failed_files_total", "Files that failed.", offsetof(struct ptcp_server_stats, failed_files) },
	{ "retransmitted_segments_total", "TCP segments that data connections sent again.",
	    offsetof(struct ptcp_server_stats, retransmits) },
};

static void head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP ptcp_%s %s\n# TYPE ptcp_%s %s\n", name, help, name, type);
}

static void gauge(FILE *f, const char *name, const char *help, double value)
{
	head(f, name, "gauge", help);
	fprintf(f, "ptcp_%s %.15g\n", name, value);
}

static void print(FILE *f, const struct metrics *m)
{
	size_t i;

	head(f, "build_info", "gauge", "Always 1; the label says which version runs.");
	fprintf(f, "ptcp_build_info{version=\"%s\"} 1\n", ptcp_version());
	gauge(f, "start_time_seconds", "When the daemon was started, in Unix time.", (double)m->started);
	for (i = 0; i < sizeof counters / sizeof *counters; i++) {
		const struct counter *c = &counters[i];
		const char *at = (const char *)&m->now + c->at;

		head(f, c->name, "counter", c->help);
		fprintf(f, "ptcp_%s %llu\n", c->name,
		    (unsigned long long)*(const uint64_t *)(const void *)at);
	}
	gauge(f, "sessions", "Sessions now.", m->now.sessions_now);
	gauge(f, "streams", "Data connections now.", m->now.streams_now);
	gauge(f, "relayed", "Connections relayed now.", m->now.relayed_now);
	gauge(f, "stored_bytes", "On disk of what is relayed, now.", (double)m->now.stored_bytes);
	gauge(f, "links_known", "Links of --watch of which rate and delay are known.", m->now.links_known);
	gauge(f, "receive_bytes_per_second", "File data received, over the last seconds.", m->received_bps / 8);
	gauge(f, "send_bytes_per_second", "File data sent, over the last seconds.", m->sent_bps / 8);
}

int metrics_write(const char *path, const struct metrics *m, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct atomic_file n;

	text_escape(shown, sizeof shown, path);
	if (!atomic_file_begin(&n, path)) /* beside it: the collector reads what ends in .prom */
		return err_sys(e, PTCP_ECONFIG, "--metrics %s", shown);
	print(n.f, m);
	fchmod(fileno(n.f), 0644);
	return atomic_file_end(&n, true, false) ? 0 : err_sys(e, PTCP_ECONFIG, "--metrics %s", shown);
}
