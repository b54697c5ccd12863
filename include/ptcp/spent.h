/* Where the time of a transfer went. */
#ifndef PTCP_SPENT_H
#define PTCP_SPENT_H

/* Disk: reads of a source, writes and syncs of a destination. PATH: the network delivered as much as it could. WINDOW,
 * BUFFER: the receiver's window, or the sender's buffer, was too small for the path. IMPACT: more streams would have
 * been faster, beyond ptcp_transfer_opts.impact_percent. LIMIT: a rate limit. IDLE: round trips between small files,
 * and the rest. */
enum ptcp_spent {
	PTCP_SPENT_OUR_DISK, PTCP_SPENT_PEER_DISK, PTCP_SPENT_OUR_PROCESSOR, PTCP_SPENT_PEER_PROCESSOR,
	PTCP_SPENT_VERIFYING, PTCP_SPENT_PATH, PTCP_SPENT_WINDOW, PTCP_SPENT_BUFFER, PTCP_SPENT_IMPACT,
	PTCP_SPENT_LIMIT, PTCP_SPENT_IDLE
};
#define PTCP_SPENT_CAUSES (PTCP_SPENT_IDLE + 1)

#endif
