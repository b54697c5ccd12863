/* Adjusts the number of active streams to the observed throughput, as model/stream_control decides. Runs at the
 * starter, whichever end sends: a sending starter samples its own TCP connections, a receiving starter combines its
 * byte counts with the TCP_REPORTs of the sender. */
#ifndef ENGINE_STREAM_COUNT_H
#define ENGINE_STREAM_COUNT_H

#include "core/clock.h"
#include "model/probe.h"
#include "model/stream_control.h"
#include "model/stream_group.h"
#include "wire/frame.h"

#define STREAM_COUNT_SAMPLE_NS ((uint64_t)(STREAM_CONTROL_SAMPLE_S * 1e9))
#define STREAM_COUNT_DECAY 0.8          /* weight of earlier sender times at each sample */
#define STREAM_COUNT_DRAINED_RATIO 0.02 /* inactive streams have drained: max bytes, relative to active streams */

/* Adds a sample to the control of all transfers of a group (model/stream_group.h). *out: the share of this transfer;
 * true: the share has changed. `model` belongs to this transfer, and is in use if the transfer leads the group. */
struct stream_count_group {
	bool (*add)(void *arg, struct stream_control *model, const struct stream_control_sample *x,
	    struct stream_share *out); /* NULL: no group */
	void (*budget)(void *arg, double ratio); /* another impact budget of this transfer */
	void *arg;
};

struct stream_count {
	struct stream_control model;
	struct stream_share share;              /* the decision */
	struct stream_count_group group;
	struct stream_control_sample sample;    /* the last one */
	struct mono sampled;
	struct limit_times recent;              /* what limited the sending TCP connections */
	struct evidence_sample reported;        /* the peer's reports since the last sample, latest RTTs */
	char congestion[WIRE_CONGESTION_MAX + 1]; /* congestion control of the sender; "": not known yet */
};

void stream_count_init(struct stream_count *c, const struct stream_control_opts *o, struct mono now);
/* The decision is that of the model, or, if not 0, this number of streams until the leader of a group decides. */
void stream_count_decide(struct stream_count *c, unsigned streams);
/* Another impact budget, above 0, from now on; a group decides at its next sample. True: share has changed. */
bool stream_count_budget(struct stream_count *c, double ratio);
/* Another maximum of streams; not in a group. True: share has changed. */
bool stream_count_most(struct stream_count *c, unsigned max_streams);
/* True: `congestion` is new. A change starts the probing from scratch: the model may request another number. */
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
/* At the deadline or later. True: share has changed. */
bool stream_count_add(struct stream_count *c, const struct stream_count_input *in, struct mono now);

#endif
