/* The inside of what is asked of other hosts, for remote_job.c (asking and hearing), remote_job_request.c (what is
 * asked), remote_timing.c (measurements between them), job_status.c and link_query.c. */
#ifndef CLIENT_REMOTE_JOB_IMPL_H
#define CLIENT_REMOTE_JOB_IMPL_H

#include "client/client_impl.h"
#include "wire/grant.h"
#include "wire/job.h"
#include "wire/job.h"

/* Only asks, and has no errand done. */
struct remote_job_asks {
	enum wire_type answer;          /* STATE: how one is doing, or LINK: what is known of links; each to: */
	int (*heard)(struct ptcp_transfer *t, struct span in, struct ptcp_err *e);
	struct wire_status status;      /* with STATE */
	struct ptcp_known_link *known;  /* with LINK: PTCP_KNOWN_MAX, texts to be freed, */
	size_t n_known;                 /* of which so many have come */
};

struct remote_job {
	struct remote_job_asks *asks;        /* NULL: it is an errand: */
	struct remote doer, other;      /* who is asked for it, with whom */
	enum wire_grant_mode mode;      /* what that lets the doer do: WRITE, READ (which is then the source), PROBE */
	char audience[PTCP_FINGERPRINT_BYTES]; /* that identity; "": not known yet */
	struct mono asked_at, moved;    /* when it last came any further, by its own word */
	bool turning;                   /* the other is to be asked to fetch it, as soon as it is convenient: */
	struct ptcp_err first;          /* as this is why the sender does not; code 0: it was not asked yet */
	struct buf in;
	struct outbox out;
	struct wire_progress progress;
	/* with PROBE */
	struct ptcp_timing_opts timing;
	struct ptcp_message *message;   /* timing.messages of them, */
	size_t n_messages;              /* of which so many have come, */
	uint64_t messages_ns;           /* and took so long together */
	double round_trip_s;
};

/* t->target sends to the other. */
int remote_job_new(struct ptcp_transfer *t, const struct remote *to, struct ptcp_err *e);
/* As client_remote_ops has them. */
void remote_job_aim(struct ptcp_transfer *t);
const struct ptcp_err *remote_job_cause(const struct ptcp_transfer *t, const struct ptcp_err *why);
/* As timing_messages(), of a measurement between two other hosts. */
size_t remote_job_messages(const struct remote_job *h, struct ptcp_message *out, size_t most, double *round_trip_s);

#define REMOTE_JOB_ID_DIGITS 16
#define REMOTE_JOB_NAME_BYTES (REMOTE_JOB_ID_DIGITS + 1 + REMOTE_USER_BYTES + SOCK_HOST_BYTES)
/* "ID@HOST:PORT" of the errand with this id at t->target. */
void remote_job_name(const struct ptcp_transfer *t, uint64_t id, char out[REMOTE_JOB_NAME_BYTES]);
/* What a code and sentence about an errand mean here. */
void remote_job_reason(struct ptcp_err *out, uint16_t code, struct span text);
struct session_progress remote_job_progress(const struct wire_progress *f);

/* ---- remote_job_request.c ---- */

/* Puts the frames that ask for it, of the doer, t->fingerprint. */
int remote_job_put(struct ptcp_transfer *t, struct ptcp_err *e);
/* What the sender does not do for that reason, the receiver may: whether it can be asked to fetch it. */
bool remote_job_can_turn(const struct ptcp_transfer *t, const struct ptcp_err *why);
/* It is next, t->fingerprint being the sender's. Not from within t->chan's callbacks, but at their end. */
void remote_job_turn(struct ptcp_transfer *t);

/* ---- remote_timing.c ---- */

int remote_job_sampled(struct remote_job *h, struct span in, struct ptcp_err *e); /* a SAMPLE */

#endif
