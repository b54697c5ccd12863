/* Outages: times in which no stream delivers, although all have data to send. From the last delivery until the streams
 * have recovered, rates and losses are no evidence of the path. After an outage each stream waits for its next
 * retransmission, which backoff places at most as long after the latest as the outage has lasted; slow start
 * follows. */
#ifndef MODEL_OUTAGE_H
#define MODEL_OUTAGE_H

#include "model/evidence.h"
#include "model/parameters.h"

/* Zero-initialize. */
struct outage {
	struct evidence_sample held; /* sum of the latest samples, which deliver nothing */
	double recovery_s;           /* time until the samples count again, as of the latest; 0: no outage */
};

enum outage_verdict {
	OUTAGE_NONE,   /* the sample counts */
	OUTAGE_HELD,   /* the sample is a part of the next one that delivers, unless an outage has begun */
	OUTAGE_LASTS,  /* neither this sample nor those held count */
};

/* Adds a sample of all streams. silent: nothing was delivered, and nothing else than the path is the cause. If the
 * sample counts, adds those held before. */
enum outage_verdict outage_add(struct outage *o, struct evidence_sample *s, bool silent);

#endif
