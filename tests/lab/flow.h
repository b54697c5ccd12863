/* Senders of the program flow. */
#ifndef LAB_FLOW_H
#define LAB_FLOW_H

#define FLOW_STREAMS_MAX 256
#define FLOW_LEVELS_MAX 16

struct flow_opts {
	const char *address, *cc;
	int port, streams;
	double delay_s, spread_s, warm_s, time_s, interval_s; /* interval_s 0: no lines */
	double on_s, off_s;      /* mean times of a stream and of the pause after it; 0: streams stay */
	const char *trace;       /* file, or NULL */
	int level[FLOW_LEVELS_MAX];
	double level_s[FLOW_LEVELS_MAX];
	int levels;              /* 0: `streams` for time_s */
};

int flow_fail(const char *what);

/* Sends and prints. Returns the exit status. */
int flow_source(const struct flow_opts *o);

#endif
