/* The inside of a transfer from the client's side, for client_new.c (what was asked for), ask_trust.c (who
 * answers), connect.c (the way to the other side), client_session.c (what a party does for it),
 * client_measure.c (those that measure), remote_job.c (between two other hosts, client/remote_job_impl.h) and client.c
 * (running it). */
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
#include "session/stream_count.h"

#define RATE_SAMPLES 16

/* An identity that has been accepted in this run. */
struct met {
	bool relay;                     /* else the other side */
	char name[SOCK_HOST_BYTES + 10], fingerprint[PTCP_FINGERPRINT_BYTES];
};
#define MET_MAX (PTCP_PATHS_MAX * CONNECT_RELAYS_MAX + 1)

struct remote_job;

/* What uses the control connection instead of a session of this host: jobs and queries of other hosts. */
struct client_remote_ops {
	void (*aim)(struct ptcp_transfer *t);    /* before connecting: the next host, into t->target */
	void (*opened)(struct ptcp_transfer *t); /* t->chan is connected, and its host trusted */
	void (*silent)(struct ptcp_transfer *t); /* t->timer fired */
	struct session_progress (*progress)(const struct remote_job *h); /* as last reported */
	const struct ptcp_err *(*cause)(const struct ptcp_transfer *t, const struct ptcp_err *why); /* the error to report for `why` */
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
	struct remote target;           /* the other side, without paths */
	char known_as[REMOTE_USER_BYTES + SOCK_HOST_BYTES];
	char *ssh, *remote_ptcp, *launch;
	char launched[PTCP_FINGERPRINT_BYTES]; /* who has been started for this transfer */
	char **vias;                    /* o.n_vias of them */
	struct paths ways;
	struct met met[MET_MAX];
	unsigned n_met;
	uint8_t *paths;                 /* encoded, for OPEN */
	size_t paths_bytes;
	uint16_t n_paths;
	size_t n_remote;                /* of the paths; the others are rules */
	struct prober *prober;          /* it measures, and has no paths; or NULL */
	struct remote_job *third;       /* between two other hosts: paths and target are the sender's; or NULL */
	const struct client_remote_ops *remote; /* of `third` */
	/* while it runs */
	struct context host;
	struct loop *loop;              /* as long as the handle, so that cancel finds it */
	atomic_bool cancelled;
	_Atomic uint64_t path_bps[PTCP_PATHS_MAX]; /* as ptcp_transfer_set_path_rate() */
	atomic_bool paced;              /* one of them has changed */
	struct ssh_start *ssh_start;    /* through ssh, or --launch; else or then: */
	struct connect *connect;
	unsigned path;                  /* the one that is tried, then the control connection's */
	unsigned n_tried;
	struct ptcp_err path_why;       /* of the first that led nowhere */
	struct chan *chan;              /* to a server that another host's job is requested of */
	struct session *session;
	struct timer *timer;
	struct mono started, deadline;
	bool over, announced;
	int result;
	struct ptcp_err why;
	char peer[REMOTE_USER_BYTES + SOCK_HOST_BYTES], fingerprint[PTCP_FINGERPRINT_BYTES];
	bool unknown;                   /* a host is not known: ask, then connect again */
	char asked_name[SOCK_HOST_BYTES + 10], asked_fingerprint[PTCP_FINGERPRINT_BYTES];
	uint64_t warnings;
	struct { struct mono at; uint64_t bytes, resumed_bytes, path_bytes[PTCP_PATHS_MAX]; } sample[RATE_SAMPLES];
	struct ptcp_path figures[PTCP_PATHS_MAX];
	unsigned n_samples;
	struct session_progress last;
	struct history_key key;         /* of the way there; congestion "": not known yet */
	bool adaptive;                 /* the session finds out how many streams are best */
	struct stream_control steered;           /* at the end; advised: false: it came to nothing */
	double seconds;
};

/* Seconds without progress from the peer after which it is given up. */
static inline uint64_t client_timeout_ns(const struct ptcp_transfer *t)
{
	return (uint64_t)(t->o.timeout_s * 1e9);
}

/* The most to have: what was said, or may be chosen. */
static inline unsigned client_streams(const struct ptcp_transfer *t)
{
	return t->o.streams > 0 ? t->o.streams : t->o.max_streams;
}

/* Has the party keep to the rates of paths that were asked for. */
void client_pace(struct ptcp_transfer *t);

/* The transfer is over, for this attempt; the first outcome counts. `why` NULL: done. */
void client_finish(struct ptcp_transfer *t, const struct ptcp_err *why);

/* ---- client_new.c ---- */

/* One that knows its options, but not yet where to and what. */
int client_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, struct ptcp_err *e);
/* Once `target` is known: its name, and the paths to it. */
int client_name_target(struct ptcp_transfer *t, struct ptcp_err *e);
/* Copies of n strings, NULL-terminated; NULL: out of memory. */
char **client_copy_list(const char *const *in, size_t n);
/* Frees it; it is not at work. */
void client_fini(struct ptcp_transfer *t);

/* ---- ask_trust.c ---- */

/* As connect_opts.check: is this the expected host or relay, whose identity has no other part in this run? With
 * t->unknown the user may be asked. */
int client_trust(void *arg, const struct connect_hop *hop, bool relay, const char *fingerprint, struct ptcp_err *e);
/* The fingerprint that t->target must have, if the user has named just one for it, or known_hosts has; else
 * it has to be asked for its own. */
bool client_knows_host(const struct ptcp_transfer *t, char fingerprint[PTCP_FINGERPRINT_BYTES]);

/* ---- connect.c ---- */

/* Starts connecting; ends in a party, or in client_finish(). */
int client_connect(struct ptcp_transfer *t, struct ptcp_err *e);
/* Once more, to t->target. */
int client_dial(struct ptcp_transfer *t, struct ptcp_err *e);
/* What OPEN says of the options. */
uint32_t client_open_flags(const struct ptcp_transfer *t);
uint8_t client_fsync(const struct ptcp_transfer *t);
/* Lets go of what connecting has left. */
void client_disconnect(struct ptcp_transfer *t);

/* ---- path_history.c: what is known of the way there ---- */

/* `fd`: of the control connection. */
void client_name_path(struct ptcp_transfer *t, int fd);
/* Steers the streams where that has been agreed, from what is known. */
int client_steer(struct ptcp_transfer *t, struct session *sess, struct ptcp_err *e);
/* At the end: keeps what has been learnt. */
void client_remember(struct ptcp_transfer *t);
/* Of a handle that measures: true if it needs not, for the way is known. */
bool client_recall_advice(struct ptcp_transfer *t);
void client_remember_advice(struct ptcp_transfer *t);

/* ---- client_session.c ---- */

extern const struct session_ops client_session_ops;
void client_emit(struct ptcp_transfer *t, const struct ptcp_event *ev);
/* Agreed: the caller hears of it. */
void client_started(struct ptcp_transfer *t);
/* What a transfer that got so far has come to, if not all is well. */
bool client_failed(struct ptcp_err *out, const struct session_progress *g, const struct ptcp_err *why);
/* All is over, `why` NULL: in good order; files may have failed. */
void client_outcome(struct ptcp_transfer *t, const struct ptcp_err *why);
void client_warn(struct ptcp_transfer *t, const char *text);
void client_show_progress(struct ptcp_transfer *t);

#endif
