/* A group: transfers of one user between the same two hosts, in one direction, at the same time. One of them, the
 * leader, controls the streams of all members as if they were one transfer: samples are sums, and each member has an
 * equal share of the streams. So the group probes once, keeps one budget, and takes no stream of a member for a
 * competing flow.
 *
 * Each member publishes sums of its samples since it joined (struct stream_member); the leader reads them, and orders a
 * share for each member (client/path_group.h carries both). A member that its host or disk limits for long has a share,
 * but does not count, as its rate says nothing about the path. While a member measures the path, no sample counts. */
#ifndef MODEL_STREAM_GROUP_H
#define MODEL_STREAM_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "model/history.h"
#include "model/parameters.h"
#include "model/stream_control.h"

enum { STREAM_GROUP_MAX = 64 }; /* members; further transfers control their streams alone */

enum stream_member_kind {
	STREAM_MEMBER_SHARES,   /* has a share of the group's streams */
	STREAM_MEMBER_FIXED,    /* has the number of streams that the user has given */
	STREAM_MEMBER_MEASURES, /* probes the path for advice, or measures it */
};

struct stream_member {
	uint64_t id;            /* number of the transfer; 0: no member */
	enum stream_member_kind kind;
	char congestion[HISTORY_CC_BYTES]; /* only members with the leader's congestion control have shares */
	double budget_ratio;
	unsigned streams;       /* share, as far as the member has followed the order */
	unsigned unconnected;   /* streams without a connection */
	/* Sums since the member joined: */
	double elapsed_s, unsteady_s, starved_s, host_limited_s;
	double bits;
	struct evidence_sample kernel; /* sums, and the latest RTTs */
};

/* What a member is to have. */
struct stream_share {
	unsigned streams;
	bool settled;           /* else another number follows, as streams leave one after the other */
	unsigned transfers;     /* members, of any kind */
	char reason[STREAM_CONTROL_REASON_BYTES]; /* "" at the start */
};

/* All streams, of a transfer without a group. */
void stream_share_all(struct stream_share *out, const struct stream_control *s);

/* Adds a sample of the member's streams. */
void stream_member_add(struct stream_member *m, const struct stream_control_sample *x);

/* The view of the leader; zero-initialize. */
struct stream_group {
	struct stream_member last[STREAM_GROUP_MAX];           /* as read last */
	struct stream_control_sample sample[STREAM_GROUP_MAX]; /* the latest interval of each; interval_s 0: none */
	double idle_s[STREAM_GROUP_MAX]; /* grows while the member is limited by itself, else falls */
	bool counts[STREAM_GROUP_MAX];
	unsigned members;       /* number of members that count */
	unsigned transfers;     /* number of all members */
};

/* Adds one interval of all members to the control. now: what they have published, one for each place; own: the place of
 * the leader, which is a member. True: orders may have changed. */
bool stream_group_add(struct stream_group *g, struct stream_control *s,
    const struct stream_member now[STREAM_GROUP_MAX], unsigned own, double interval_s);
/* The share of the member at this place: one stream at least. */
void stream_group_share(struct stream_share *out, const struct stream_group *g, const struct stream_control *s,
    unsigned place);

#endif
