/* Where the time of a transfer goes: each interval is divided among causes, by facts of both ends and of the kernel
 * of the sender. */
#ifndef ENGINE_SPENT_H
#define ENGINE_SPENT_H

#include <ptcp/spent.h>
#include <stdbool.h>

/* What an end did for a part of the interval, 0 to 1 each. */
struct spent_end {
	double disk;      /* a stream waited for the disk */
	double processor; /* part for which the least busy data thread was busy */
};

struct spent_sample {
	double seconds;
	struct spent_end sender, receiver;
	/* Average of the connections: data was unsent or unacknowledged; of this: limited by the receiver's window, by
	 * the sender's buffer. */
	double busy, window, buffer;
	bool tcp_known;   /* else the three above are unknown */
	bool limited;     /* a rate limit was below the demand: the cause of the whole interval */
	bool verifying;   /* an end reads data that was transferred before */
};

struct spent {
	double s[PTCP_SPENT_CAUSES]; /* causes named from the view of this end */
};

/* While the sender has nothing in its connections, it waits for its disk or processor; while the window
 * of the receiver is closed, the receiver waits for its disk or processor, unless the window is just too small for the
 * path. `sends`: this end is the sender. */
void spent_add(struct spent *t, const struct spent_sample *x, bool sends);

#endif
