/* Adjusts the number of active streams to the observed throughput, as model/stream_control decides. Runs at the
 * starter, whichever end sends: a sending starter samples its own TCP connections, a receiving starter combines its
 * byte counts with the TCP_REPORTs of the sender. */
#ifndef ENGINE_STREAM_COUNT_H
#define ENGINE_STREAM_COUNT_H

#include "core/clock.h"
#include "model/probe.h"
#include "model/stream_control.h"
#include "wire/frame.h"

#define STREAM_COUNT_SAMPLE_NS ((uint64_t)(STREAM_CONTROL_SAMPLE_S * 1e9))
#define STREAM_COUNT_DECAY 0.8          /* weight of earlier sender times at each sample */
#define STREAM_COUNT_DRAINED_RATIO 0.02 /* inactive streams have drained: max bytes, relative to active streams */

struct stream_count {
	struct stream_control model;            /* streams and reason are the decision */
	struct stream_control_sample sample;    /* the last one */
	struct mono sampled;
	struct limit_times recent;              /* what limited the sending TCP connections */
	struct evidence_sample reported;        /* the peer's reports since the last sample, latest RTTs */
	char congestion[WIRE_CONGESTION_MAX + 1]; /* congestion control of the sender; "": not known yet */
};

void stream_count_init(struct stream_count *c, const struct stream_control_opts *o, struct mono now);
/* True: `congestion` is new. A change starts the probing from scratch: model.streams may have changed. */
bool stream_count_congestion(struct stream_count *c, const char *name, size_t n);
/* The sending peer's report, without its congestion control. */
void stream_count_report(struct stream_count *c, const struct wire_tcp_report *f);

/* Totals since the last sample. */
struct stream_count_input {
	bool sends;
	uint64_t active_bytes, inactive_bytes;  /* carried by active streams; by inactive ones, which drain */
	struct limit_times times;               /* sender: of active streams */
	struct evidence_sample kernel;          /* sender: the same */
	unsigned unconnected;                   /* active streams without a connection */
	bool disk_busy;                         /* an end waits for a disk */
	bool rate_limited;
};

struct mono stream_count_deadline(const struct stream_count *c);
/* At the deadline or later. True: model.streams has changed. */
bool stream_count_add(struct stream_count *c, const struct stream_count_input *in, struct mono now);

#endif
