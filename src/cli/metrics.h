/* Counters of a daemon as Prometheus reads them (text format 0.0.4), in a file for node exporter's textfile
 * collector. Counters end in _total and are since the start; the others are of now. */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include <time.h>

#include <ptcp/ptcp.h>

struct metrics {
	time_t started;                  /* of the daemon */
	struct ptcp_server_stats now;
	double received_bps, sent_bps;   /* over the last interval; bit/s */
};

/* Into a file that is replaced whole, readable by all. PTCP_ECONFIG when that cannot be. */
int metrics_write(const char *path, const struct metrics *m, struct ptcp_err *e);

#endif
