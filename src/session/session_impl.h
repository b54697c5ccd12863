/* The inside of a session. session.c makes a session and drives its parts. Each part has a header, with a struct of its
 * own that the part writes; the parts without a header follow below. Calls go in one direction:
 *
 *   ground      slot.c, mux.c, endpoints.c, paths.c < control.c < peer.c < stream_set.c < join.c, stream_connect.c, striping.c
 *   payload     send*.c, receive*.c, probe_session.c < progress.c, stalls.c
 *   adaptation  tcp_report.c, yielding.c < spending.c < adapt.c < congestion.c
 *   top         engine_ops.c < session.c
 *
 * The ground calls the payload through payload_ops. Only session_pump() leads back up. tests/layers checks the rooms. */
#ifndef SESSION_SESSION_IMPL_H
#define SESSION_SESSION_IMPL_H

#include "core/units.h"
#include "session/adapt.h"
#include "session/congestion.h"
#include "session/control.h"
#include "session/peer.h"
#include "session/probe_session.h"
#include "session/session.h"
#include "session/slot.h"
#include "session/stalls.h"
#include "session/stream_connect.h"
#include "session/stream_set.h"
#include "session/striping.h"
#include "session/tcp_report.h"
#include "session/yielding.h"

/* The end of a session, of which the engine decides. */
struct session_end {
	bool over;
	bool failed;                /* the session has failed, see `why` */
	struct ptcp_err why;
	struct mono give_up;        /* deadline for the peer to close */
	bool gone_posted;
	struct msg gone;
};

/* Files of the transfer that a session remembers, and with --delete names of the source, 16 bytes each: of this user's transfer,
 * or of a client's. */
#define SESSION_NAMES_MAX (16u << 20)
#define SESSION_CLIENT_NAMES_MAX (4u << 20)

struct session {
	struct session_opts o;      /* options of the caller, const after session_new() */
	void (*pump)(struct session *sess); /* see session_pump() */
	struct engine *engine;
	struct timer *timer;
	uint8_t id[WIRE_SESSION_BYTES], key[32];
	enum ptcp_cipher cipher;
	bool sources_expanded;
	bool running, pumping, due_posted;
	struct msg due;             /* see session_reported() */
	struct mono began;          /* start of RUNNING */
	struct session_end end;
	struct control control;
	/* data streams */
	struct slot slot[SLOTS];    /* one for each stream number */
	struct stream_set streams;
	struct session_peer peer;
	struct striping striping;
	struct stalls stalls;
	uint64_t carried[PTCP_PATHS_MAX]; /* bytes of file data, by path */
	/* their payload: one of */
	const struct payload_ops *payload;
	struct send_side *send;
	struct receive_side *receive;
	struct probe_session *probe;
	struct direct_io direct_io; /* state of o.direct_io */
	/* adaptation */
	struct adaptation adapt;
	struct tcp_report tcp;
	struct session_congestion congestion;
	struct yielding *yielding;  /* NULL: does not */
};

/* Reports an event: the session does all work that is possible now, and ends when all is done. */
static inline void session_pump(struct session *sess) { sess->pump(sess); }

/* The same after a report of a stream. A turn of the loop brings many reports of movers, and the work that they permit
 * takes time for each stream: it is done once, after them. */
static inline void session_reported(struct session *sess, const struct stream *s)
{
	if (stream_kind_of(s) == NULL) {
		session_pump(sess);
	} else if (!sess->due_posted) {
		sess->due_posted = true;
		loop_post(sess->o.context->control, &sess->due);
	}
}

static inline unsigned session_path_of(const struct session *sess, unsigned stream)
{
	return sess->o.paths != NULL ? paths_of_stream(sess->o.paths, stream) : 0;
}

/* Rate limit of all sessions of the handle, in the direction of this session's data. */
static inline const struct pacer *session_pacer(const struct session *sess)
{
	return sess->send != NULL ? &sess->o.context->pacing.out : &sess->o.context->pacing.in;
}

/* A receiving starter: the peer enforces the rate limits. */
static inline bool session_reports_rates(const struct session *sess)
{
	return sess->running && sess->o.open != NULL && sess->probe == NULL && engine_rcv(sess->engine) != NULL;
}

/* For the session's files; NULL: they use the page cache. */
static inline struct direct_io *session_direct_io(struct session *sess)
{
	return sess->o.direct_io ? &sess->direct_io : NULL;
}

/* ---- engine_ops.c: operations for the engine ---- */

extern const struct engine_ops session_engine_ops;

/* ---- progress.c ---- */

/* Activity of this end's disk or CPU; a rate limit or spooling counts as disk. */
enum wire_busy session_busy(const struct session *sess);
/* The session is slow because of rate limits only. */
bool session_is_paced(const struct session *sess);
/* A stream waits for a disk. */
bool session_waits_for_disk(const struct session *sess);
/* Warns the users of both sides, once, if a file system has no direct I/O. */
void progress_pump(struct session *sess, struct mono now);

/* ---- send.c ---- */

void send_free(struct session *sess);
/* Continues the listing, and fills the streams' free jobs. */
void send_pump(struct session *sess, struct mono now);
/* Replaces a stream without acknowledgments, unless it still takes bytes. */
void send_stream_stalled(struct session *sess, unsigned number);
/* Before the peer has accepted the session: begins the listing. */
void send_early(struct session *sess);
/* As engine_ops.select; select.c. */
int send_select(struct session *sess, const struct wire_select *f, struct ptcp_err *e);
bool send_idle(const struct session *sess); /* no job on an I/O thread */
/* Number of streams that have something to send, at most: 0 before the first sources are listed, PTCP_STREAMS_MAX before
 * all are. */
unsigned send_streams(const struct session *sess);
enum wire_busy send_busy(const struct session *sess);
extern const struct snd_ops send_snd_ops;

/* ---- receive.c, receive_io.c ---- */

void receive_free(struct session *sess);
void receive_pump(struct session *sess, struct mono now);
struct mono receive_deadline(const struct session *sess);
bool receive_idle(const struct session *sess); /* no job queued or on an I/O thread */
enum wire_busy receive_busy(const struct session *sess);
/* As engine_ops.finish. */
bool receive_finish(struct session *sess);
extern const struct rcv_ops receive_rcv_ops;
void receive_blocks(struct session *sess, struct stream *s, struct stream_results *results);

/* ---- probe_session.c ---- */

void probe_session_free(struct session *sess);
void probe_session_pump(struct session *sess, struct mono now);
struct mono probe_session_deadline(const struct session *sess);
/* Acceptor: a level starts or ends; session_generate() sends stream_bytes bytes on each stream. */
void probe_session_on_set_streams(struct session *sess, uint64_t stream_bytes);
/* Starter: the sending end's report. */
void probe_session_on_report(struct session *sess, const struct wire_tcp_report *f);

/* The user of this process has started the session: errors may name the path of the root, which a peer must not
 * learn. */
static inline bool session_is_users(const struct session *sess)
{
	return sess->o.open != NULL && sess->o.client == NULL;
}

static inline void session_file_failed(struct session *sess, const char *path, const struct ptcp_err *why)
{
	sess->o.ops->file(sess->o.arg, &(struct session_file){ .path = path,
	    .status = outbox_is_failure(why->code) ? PTCP_FILE_FAILED : PTCP_FILE_VANISHED, .size_bytes = SESSION_SIZE_UNKNOWN, .why = why });
}

#endif
