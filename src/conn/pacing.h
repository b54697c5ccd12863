/* The rate that all streams of a handle keep to together, each way by itself. Control thread, but for the
 * pacers. */
#ifndef CONN_PACING_H
#define CONN_PACING_H

#include "core/pacer.h"
#include "core/timetable.h"
#include "net/loop.h"

struct pacing {
	struct pacer out, in;     /* blocks sent and received */
	struct timetable table;
	struct timer *timer;      /* NULL: the rate does not change */
	uint64_t bps;             /* as it is now; 0: no limit */
	bool loose;               /* `in` lets go an eighth more */
};

/* From now on. Zeroed memory, or one that has been stopped, has no limit. */
int pacing_start(struct pacing *p, const struct timetable *t, struct loop *control, struct ptcp_err *e);
/* Who sends keeps to it: what comes is only watched, for what was held up on its way may catch up. */
void pacing_loosen(struct pacing *p);
void pacing_stop(struct pacing *p); /* zeroed memory is fine */

/* What the option says, into *t; NULL: no limit. PTCP_EUSAGE with its name and text. */
int pacing_parse(struct timetable *t, const char *text, struct ptcp_err *e);

#endif
