/* Inside a client's handle: client.c (options, attempts, run), transfer.c (sources and destination), trust.c
 * (identities), connect.c (connecting), client_session.c (a session's callbacks), path_history.c, client_measure.c, and
 * remote_job_impl.h for jobs of other hosts. */
#ifndef CLIENT_CLIENT_IMPL_H
#define CLIENT_CLIENT_IMPL_H

#include <ptcp/ptcp.h>
#include <stdatomic.h>

#include "client/history_file.h"
#include "client/ssh_start.h"
#include "conn/paths.h"
#include "conn/remote.h"
#include "core/buf.h"
#include "core/glob.h"
#include "measure/prober.h"

#define RATE_SAMPLES 16

/* An identity accepted in this run. */
struct trusted {
	bool relay;                     /* else the target */
	char name[SOCK_HOST_BYTES + 10], fingerprint[PTCP_FINGERPRINT_BYTES];
};
#define TRUSTED_MAX (PTCP_PATHS_MAX * CONNECT_RELAYS_MAX + 1)

struct remote_job;

/* Jobs and queries of remote hosts: they use the control connection instead of a session. */
struct client_remote_ops {
	void (*aim)(struct ptcp_transfer *t);    /* before connecting: the next host, into t->target */
	void (*opened)(struct ptcp_transfer *t); /* t->chan is connected, and its host trusted */
	void (*silent)(struct ptcp_transfer *t); /* t->timer fired */
	struct ptcp_progress (*progress)(const struct remote_job *h); /* as last reported */
	const struct ptcp_err *(*cause)(const struct ptcp_transfer *t, const struct ptcp_err *why); /* to report for `why` */
	void (*free)(struct remote_job *h);
};

struct ptcp_transfer {
	struct ptcp_transfer_opts o;
	bool sends, ran, running;
	char **local, **pins;
	size_t n_local, n_pins;
	struct filter *filter;          /* NULL: no rules */
	char *config_dir, *state_dir, *congestion;
	struct timetable rate;
	struct remote target;           /* without paths */
	char known_as[REMOTE_USER_BYTES + SOCK_HOST_BYTES]; /* target, in sentences and known_hosts */
	char *ssh, *remote_ptcp, *launch;
	char launched[PTCP_FINGERPRINT_BYTES]; /* of the server started by `launch` */
	char **path_names;              /* o.n_paths of them */
	struct paths ways;
	struct trusted trusted[TRUSTED_MAX];
	unsigned n_trusted;
	uint8_t *paths;                 /* of the remote files and rules, encoded for OPEN */
	size_t paths_bytes;
	uint16_t n_paths;
	size_t n_remote;                /* of these, files */
	struct prober *prober;          /* of a handle that measures, without paths; or NULL */
	struct remote_job *third;       /* between two other hosts: paths and target are the sender's; or NULL */
	const struct client_remote_ops *remote; /* of `third` */
	/* while it runs */
	struct context host;
	struct loop *loop;              /* lives as long as the handle, for ptcp_transfer_cancel() */
	atomic_bool cancelled;
	_Atomic uint64_t path_bps[PTCP_PATHS_MAX]; /* from ptcp_transfer_set_path_rate() */
	atomic_bool paced;              /* path_bps has changed */
	struct ssh_start *ssh_start;    /* through ssh, or --launch; else or then: */
	struct connect *connect;
	unsigned path;                  /* of the present attempt, then of the control connection */
	unsigned n_tried;
	struct ptcp_err path_why;       /* the first path's error */
	struct chan *chan;              /* of t->remote, to the present server */
	struct session *session;
	struct timer *timer;
	struct mono started;
	bool over, announced;
	int result;
	struct ptcp_err why;
	char peer[REMOTE_USER_BYTES + SOCK_HOST_BYTES], fingerprint[PTCP_FINGERPRINT_BYTES];
	bool unknown;                   /* a host's identity is unknown: ask the user, then connect again */
	char asked_name[SOCK_HOST_BYTES + 10], asked_fingerprint[PTCP_FINGERPRINT_BYTES];
	uint64_t warnings;
	struct { struct mono at; uint64_t bytes, resumed_bytes, path_bytes[PTCP_PATHS_MAX]; } sample[RATE_SAMPLES];
	struct ptcp_path figures[PTCP_PATHS_MAX];
	unsigned n_samples;
	struct ptcp_progress last;
	struct history_key key;         /* of the path; congestion "": unknown */
	bool adaptive;                  /* the session determines the number of streams */
	struct stream_control control;  /* at the end; advised: false: no result */
	double seconds;
};

/* Time without progress of the peer before the client gives up. */
static inline uint64_t client_timeout_ns(const struct ptcp_transfer *t)
{
	return (uint64_t)(t->o.timeout_s * 1e9);
}

/* Maximum number of streams: as requested, or as the stream controller may choose. */
static inline unsigned client_max_streams(const struct ptcp_transfer *t)
{
	return t->o.streams > 0 ? t->o.streams : t->o.max_streams;
}

/* ---- client.c ---- */

/* A handle with options, but without a target. */
int client_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, struct ptcp_err *e);
/* Once t->target is set: its name and paths. */
int client_name_target(struct ptcp_transfer *t, struct ptcp_err *e);
/* Copies of n strings, NULL-terminated; NULL: out of memory. */
char **client_copy_list(const char *const *in, size_t n);
/* Frees a handle that does not run. */
void client_fini(struct ptcp_transfer *t);
/* Applies requested path rates to the session. */
void client_pace(struct ptcp_transfer *t);
/* Ends this attempt; the first outcome counts. `why` NULL: done. */
void client_finish(struct ptcp_transfer *t, const struct ptcp_err *why);

/* ---- trust.c ---- */

/* As connect_opts.check: refuses unexpected identities, and a relay's identity in another role. With t->unknown the user
 * may be asked. */
int client_trust(void *arg, const struct connect_hop *hop, bool relay, const char *fingerprint, struct ptcp_err *e);
/* The fingerprint expected of t->target: the only one of --fingerprint or known_hosts. False: only the host can tell. */
bool client_knows_host(const struct ptcp_transfer *t, char fingerprint[PTCP_FINGERPRINT_BYTES]);

/* ---- connect.c ---- */

/* Starts connecting; a session, t->remote->opened() or client_finish() follows. */
int client_connect(struct ptcp_transfer *t, struct ptcp_err *e);
/* Connects to t->target, from the first path on. */
int client_dial(struct ptcp_transfer *t, struct ptcp_err *e);
/* The options as OPEN has them. */
uint32_t client_open_flags(const struct ptcp_transfer *t);
uint8_t client_fsync(const struct ptcp_transfer *t);
/* Closes all but the session. */
void client_disconnect(struct ptcp_transfer *t);

/* ---- path_history.c ---- */

/* `fd`: of the control connection. */
void client_name_path(struct ptcp_transfer *t, int fd);
/* Adapts the number of streams if t->adaptive, starting from the path's history. */
void client_adapt_streams(struct ptcp_transfer *t, struct session *sess);
/* At the end: records the controller's result. */
void client_remember(struct ptcp_transfer *t);
/* For advice: true if found in the history, so that no measurement is needed. */
bool client_recall_advice(struct ptcp_transfer *t);
void client_remember_advice(struct ptcp_transfer *t);

/* ---- client_session.c ---- */

extern const struct session_ops client_session_ops;
void client_emit(struct ptcp_transfer *t, const struct ptcp_event *ev);
/* Emits PTCP_EVENT_START. */
void client_started(struct ptcp_transfer *t);
/* The error of a transfer with this progress that ended with `why` (NULL: in order); false: none. */
bool client_failed(struct ptcp_err *out, const struct ptcp_progress *g, const struct ptcp_err *why);
/* Ends the transfer, `why` NULL: in order, though files may have failed. */
void client_outcome(struct ptcp_transfer *t, const struct ptcp_err *why);
void client_warn(struct ptcp_transfer *t, const char *text);
void client_show_progress(struct ptcp_transfer *t);

#endif
