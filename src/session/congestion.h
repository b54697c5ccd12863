/* Congestion control of the sender's data streams: as OPEN requests, then as model/congestion_judge.h decides. */
#ifndef SESSION_CONGESTION_H
#define SESSION_CONGESTION_H

#include "engine/congestion_choice.h"
#include "model/congestion_judge.h"
#include "session/tcp_report.h"

struct session_congestion {
	char name[TCPINFO_CC_BYTES]; /* "": unknown yet */
	bool sets;                  /* the sender: sets `name` on its streams */
	const char *why;            /* reason for `name` */
	bool yields;                /* one stream yields, instead of several that keep the impact budget */
	bool announced;             /* changes are reported to the user */
	/* the sender, which may change it: */
	bool judges;
	char fair[TCPINFO_CC_BYTES]; /* congestion control before bbr */
	bool excluded;              /* bbr: not permitted, or competing flows were seen beside it */
	struct congestion_judge judge;
	struct tcp_stats stats;
	struct limit_times recent;
	struct mono sampled;
};

/* Once the session runs: chooses the congestion control of a sender. PTCP_EUSAGE: not permitted by the kernel. */
int congestion_start(struct session *sess, struct ptcp_err *e);
/* Takes a name into use, or notes that of a sending peer, and reports a change to the user. `why` NULL: the peer's. */
void congestion_use(struct session *sess, const char *name, const char *why);
/* Reports the name, if known, and changes from now on. */
void congestion_announce(struct session *sess);
void congestion_pump(struct session *sess, struct mono now);
struct mono congestion_deadline(const struct session *sess);

#endif
