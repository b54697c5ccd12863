/* Choice of the congestion control of a sender, from its kernel's view of its streams (evidence.h).
 *
 * Loss-driven congestion control shares a link with competing flows in proportion to the number of streams, so that an
 * impact budget can be kept; random loss limits each such stream to a fraction of an idle link. BBR fills the link with
 * one stream despite the loss, and takes far more than its share beside competing flows. Therefore: loss-driven until
 * random loss is found and no competing flows, then BBR, and loss-driven for good once competing flows are seen.
 *
 * Flows that random loss limits like our streams leave no trace while the link is not full. Therefore a count has to
 * fill the link; or, if about as many streams as permitted do not, BBR is tried, as it fills the link. One BBR stream
 * beside a queue that does not empty within a level has competing flows.
 *
 * Two stream counts are required, LEVER apart: the kernel's view of one count is the same with random loss and beside
 * competing flows behind a short queue. */
#ifndef MODEL_CONGESTION_JUDGE_H
#define MODEL_CONGESTION_JUDGE_H

#include "model/evidence.h"
#include "model/outage.h"
#include "model/parameters.h"
#include "model/stats.h"

enum congestion_verdict {
	CONGESTION_KEEP,
	CONGESTION_TO_BBR,      /* random loss on an idle path */
	CONGESTION_FROM_BBR,    /* competing flows */
};

struct congestion_judge {
	struct evidence evidence;
	struct outage outage;
	unsigned max_streams;
	/* this level */
	unsigned streams;
	struct evidence_watch watch;
	struct steady settle;
	double level_s;
};

/* Restarts without evidence, but knows of an outage still. growth: of the streams from now on; max_streams: permitted.
 * Zero-initialize first. */
void congestion_judge_init(struct congestion_judge *j, enum evidence_growth growth, unsigned max_streams);
/* Adds an interval of STREAM_CONTROL_SAMPLE_S; streams 0: not all were connected, and the level begins again, as after
 * an outage. usable: all streams had data to send. */
enum congestion_verdict congestion_judge_add(struct congestion_judge *j, unsigned streams,
    const struct evidence_sample *s, bool usable);

/* Whether the evidence of at least two counts shows random loss on an idle path. b: of that evidence; max_streams:
 * permitted. */
bool congestion_is_random_loss(const struct evidence *e, const struct belief *b, unsigned max_streams);

#endif
