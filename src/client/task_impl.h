/* Inside a task: task.c (options, attempts, run), task_transfer.c (sources and destination), task_trust.c (identities),
 * task_connect.c (connecting), task_session.c (a session's callbacks), path_history.c, measure_task.c, and
 * remote_job_impl.h for jobs of other hosts. */
#ifndef CLIENT_TASK_IMPL_H
#define CLIENT_TASK_IMPL_H

#include <ptcp/ptcp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "client/history_file.h"
#include "client/path_group.h"
#include "client/path_tries.h"
#include "client/ssh_start.h"
#include "conn/remote.h"
#include "core/buf.h"
#include "core/filter.h"
#include "measure/prober.h"
#include "model/deadline.h"
#include "mover/movers.h"
#include "session/paths.h"
#include "store/backup.h"
#include "store/pipe_sink.h"
#include "store/pipe_source.h"
#include "sums/sums.h"

#define RATE_SAMPLES 16
#define TRUSTED_MAX (PTCP_PATHS_MAX * CONNECT_RELAYS_MAX + 1)

struct remote_job;

/* Jobs and queries of remote hosts: they use the control connection instead of a session. */
struct remote_job_ops {
	void (*aim)(struct ptcp_task *t);    /* writes the next host into t->target, before connecting */
	void (*opened)(struct ptcp_task *t); /* t->chan is connected, and its host trusted */
	void (*silent)(struct ptcp_task *t); /* t->timer fired */
	struct ptcp_progress (*progress)(const struct remote_job *h); /* progress that the server reported last */
	const struct ptcp_err *(*cause)(const struct ptcp_task *t, const struct ptcp_err *why); /* error to report for `why` */
	void (*free)(struct remote_job *h);
};

/* task_transfer.c: a transfer's files. */
/* Directories with older copies; borrowed from the options. */
struct task_references {
	enum reference_kind kind;
	const char *const *dir;
	size_t n;
};

struct task_files {
	unsigned digests;               /* digests of sent files, for the events; 0: none */
	struct sums_expected expected;  /* wire.expect, one of these */
	bool sends;
	const char *const *local;       /* sources, or the destination */
	size_t n_local, n_remote;
	struct filter *filter;          /* NULL: no rules */
	struct attr_map *map;           /* changes of attributes; NULL: none */
	struct task_references references; /* n 0: none */
	struct backup_opts backup;      /* backups at a receiving end; zeroed: none */
	int64_t newer_s, older_s;       /* --newer-than and --older-than as times; 0: none */
	struct selection *selection;    /* entries of the source; NULL: all */
	uint8_t *open_paths;            /* remote files and rules, encoded for OPEN */
	size_t open_paths_bytes;
	uint16_t n_open_paths;
	bool added;                     /* the sources, to the session */
	struct published published;     /* files or paths of all sessions, as their sources are removed */
	struct pipe_source *input;      /* input instead of local sources; or NULL */
	struct pipe_sink *output;       /* output instead of the local destination; or NULL */
};

/* task_trust.c: identities accepted in this attempt, and the unknown identity. */
struct task_trust {
	struct trusted {
		bool relay;             /* the host is a relay; else the target */
		char name[SOCK_HOST_BYTES + 10], fingerprint[PTCP_FINGERPRINT_BYTES];
	} accepted[TRUSTED_MAX];
	unsigned n_accepted;
	bool unknown;                   /* ask the user about `name` and `fingerprint`, then connect again */
	char name[SOCK_HOST_BYTES + 10], fingerprint[PTCP_FINGERPRINT_BYTES];
	char launched[PTCP_FINGERPRINT_BYTES]; /* the server started by o.launch, or through ssh for paths with relays */
};

/* task_session.c: events, and the numbers in them. */
struct task_report {
	bool announced;                 /* PTCP_EVENT_START */
	uint64_t deleted, vanished;
	/* Regular files: sent by this session; found at the destination; sent by earlier sessions. */
	struct report_files { uint64_t n, bytes; } sent, same, sent_before;
	struct spent spent;             /* time of earlier sessions */
	uint64_t warnings, refused; /* refused: files failed by a refusal */
	uint64_t failures;              /* files failed */
	struct ptcp_err first;          /* first failure */
	uint64_t failed_paths;          /* paths with a warning that have not connected since */
	struct { struct mono at; uint64_t bytes, resumed_bytes, path_bytes[PTCP_PATHS_MAX]; } sample[RATE_SAMPLES];
	unsigned n_samples;
	struct ptcp_path path_stats[PTCP_PATHS_MAX];
	struct ptcp_mover_stats mover_stats[MOVERS_MAX];
	struct ptcp_progress last;
	uint64_t copied_bytes;          /* sent in vain or again, in all sessions */
	struct session_spared spared;   /* sums over all sessions, and the last level */
};

/* path_history.c: of transfers and advice. */
struct task_history {
	struct history_key key;         /* key of the path; congestion "": unknown */
	bool adaptive;                  /* the session determines the number of streams */
	bool striped;                   /* movers carry the streams */
	struct path_group *group;       /* other transfers of this user; NULL: none, or unknown */
	struct stream_control control;  /* state at the end; advised false: no result */
};

/* retry.c */
struct task_retry {
	bool worked;                    /* a session has run */
	struct mono moved;              /* time when data last moved */
	uint64_t bytes;
	unsigned attempts;              /* number of attempts since `moved` */
	struct timer *timer;            /* timer of the next attempt */
	uint64_t wire_bytes, saved_bytes, copied_bytes; /* bytes of earlier sessions */
};

/* --stop-after and --stop-at */
struct task_stop {
	struct mono after;              /* 0: none */
	int64_t at_s;                   /* since 1970; 0: none */
	struct timer *timer;            /* NULL: neither */
	struct ptcp_err why;            /* once the time has come: its sentence; else code 0 */
};

/* task_deadline.c */
struct task_deadline {
	int64_t at_s;                   /* since 1970; 0: none */
	bool begun;                     /* `model` */
	struct deadline model;
	unsigned most;                  /* streams that the budget permits, as last known */
	struct mono stepped;            /* time of the last step, when as much had been transferred: */
	uint64_t bytes;
	struct ptcp_deadline now;       /* the choice, as last reported */
	double largest_percent;         /* impact */
	struct mono reported;
};

struct ptcp_task {
	struct ptcp_transfer_opts o;    /* texts, fingerprints and paths are copies */
	struct timetable rate;
	struct remote target;           /* host and port, without paths */
	char known_as[REMOTE_USER_BYTES + SOCK_HOST_BYTES]; /* target, in sentences and known_hosts */
	struct paths paths;
	struct task_files files;        /* files of a transfer */
	struct movers *movers;          /* movers of a striped transfer, for all attempts; or NULL */
	struct prober *prober;          /* prober of a measurement by this host; or NULL */
	struct remote_job *remote_job;  /* a query, or work between other hosts (target: the sender); or NULL */
	const struct remote_job_ops *job_ops;
	struct {                        /* ptcp_transfer_set_path_rate() */
		_Atomic uint64_t bps[PTCP_PATHS_MAX];
		atomic_bool changed;
	} path_rates;
	struct {                        /* ptcp_transfer_set_rate() */
		pthread_mutex_t lock;
		struct timetable table;     /* copied to `rate` by the task's thread */
		bool changed;
	} new_rate;
	struct {                        /* ptcp_transfer_set_impact() */
		_Atomic double percent;     /* also of later attempts */
		atomic_bool changed;
	} new_impact;
	/* the run, of one attempt or more: */
	struct context context;
	struct loop *loop;              /* lives as long as the task, for ptcp_task_cancel() */
	atomic_bool canceled;
	struct task_stop stop;
	struct task_deadline deadline;
	bool ran, running, over;
	bool ending;                    /* over, but for child processes */
	int result;
	struct ptcp_err why;
	struct mono started;
	double seconds;
	struct task_trust trust;
	struct task_report report;
	struct task_history history;
	struct task_retry retry;
	/* task_connect.c: */
	struct ssh_start *ssh_start;    /* the server that ssh or --launch starts; else, and afterwards: */
	char label[CLIENT_HELLO_LABEL_BYTES]; /* label of the target's shared port; "": none */
	unsigned own_port;              /* port of a launched server, if the shared port does not lead there; 0: tried */
	struct connect *connect;
	bool avoids_movers;             /* the movers of the server could not be reached */
	struct path_tries tries;        /* attempts to connect; then tries.path is the path of the control connection */
	uint64_t route_session;         /* random number for the connections through relays, see connect_opts */
	struct {                        /* Waiting for a busy server: */
		struct mono until, until_closed;
		bool pausing;               /* the task pauses before the next connection */
		bool waited;
		bool has_answered;          /* the server: that it is busy */
		bool unanswered;            /* the last attempt lost its connection before the server's HELLO */
		uint32_t ahead;             /* number of sessions ahead that was reported last */
		unsigned pauses;
	} wait;
	struct chan *chan;              /* connection of a remote_job to the present server */
	struct session *session;        /* session of all other tasks */
	struct timer *timer;
	char peer[REMOTE_USER_BYTES + SOCK_HOST_BYTES], fingerprint[PTCP_FINGERPRINT_BYTES];
};

/* Time without progress of the peer before the client gives up. */
static inline uint64_t task_timeout_ns(const struct ptcp_task *t)
{
	return (uint64_t)(t->o.timeout_s * 1e9);
}

/* Maximum number of streams: as requested, or as the stream controller may choose. */
static inline unsigned task_max_streams(const struct ptcp_task *t)
{
	return t->o.streams > 0 ? t->o.streams : t->o.max_streams;
}

/* Whether the transfer yields: one stream uses the capacity that other flows leave. */
static inline bool task_yields(const struct ptcp_task *t)
{
	return t->prober == NULL && t->o.streams == 0 && t->o.impact_percent <= 0;
}

static inline bool task_has_deadline(const struct ptcp_task *t) { return t->deadline.at_s != 0; }

/* ---- limits.c: --max-size, --newer-than .. ---- */

int limits_take(struct ptcp_task *t, struct ptcp_err *e);
/* Sets the members of OPEN. */
void limits_put(const struct ptcp_task *t, struct wire_open *open);
/* The first given option; NULL: none. */
const char *limits_first(const struct ptcp_task *t);

/* ---- stop.c ---- */

int stop_take(struct ptcp_task *t, struct ptcp_err *e);
/* The task starts. */
int stop_begin(struct ptcp_task *t, struct ptcp_err *e);

/* ---- task_deadline.c: --deadline ---- */

int deadline_take(struct ptcp_task *t, struct ptcp_err *e);
/* A session runs. */
void deadline_start(struct ptcp_task *t);
/* With each progress: chooses once a second. True: t->deadline.now is to be reported. */
bool deadline_pump(struct ptcp_task *t);
/* Its sentence; returns `out`. */
const char *deadline_text(const struct ptcp_task *t, char *out, size_t cap);
void deadline_result(const struct ptcp_task *t, struct ptcp_deadline *out);

/* ---- mapping.c ---- */

/* Makes t->files.map. */
int mapping_take(struct ptcp_task *t, struct ptcp_err *e);

/* older.c: checks --backup and its like, for this end; and adds them to OPEN for a remote receiver. */
int older_take(struct ptcp_task *t, struct ptcp_err *e);
/* The first given option; NULL: none. */
const char *mapping_first(const struct ptcp_task *t);

/* ---- task.c ---- */

/* A task with options, but without a target. */
int task_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, struct ptcp_err *e);
/* Adds a remote path or rule to t->files.open_paths. */
int task_add_path(struct ptcp_task *t, uint8_t flags, const char *path, struct ptcp_err *e);
/* Once t->target is set: its name and paths. */
int task_name_target(struct ptcp_task *t, struct ptcp_err *e);
/* The end of ptcp_*_new(): stores the task, or after an error `r` frees the task. Returns r. */
int task_made(struct ptcp_task **out, struct ptcp_task *t, int r);
/* Ends this attempt; the first outcome counts. If the server is busy, the task waits instead, and connects again.
 * `why` NULL: done. */
void task_finish(struct ptcp_task *t, const struct ptcp_err *why);
/* Copies a requested limit of all streams together to t->rate; false: unchanged. */
bool task_take_rate(struct ptcp_task *t);
/* The impact budget of the present, in percent. */
static inline double task_impact(const struct ptcp_task *t) { return atomic_load(&t->new_impact.percent); }
/* Applies requested rates to the session, if there is one. */
void task_pace(struct ptcp_task *t);

/* ---- transfer_opts.c ---- */

/* Ranges and words of all options. */
int options_check(const struct ptcp_transfer_opts *o, struct ptcp_err *e);
/* Of work on files of another host: refuses options that ptcp_option_of_files() excludes. */
int options_check_files(const struct ptcp_transfer_opts *o, bool writes, struct ptcp_err *e);
/* Replaces the caller's texts and lists by copies, except `files`; options_free() follows, also after a failure. */
int options_copy(struct ptcp_transfer_opts *o, struct ptcp_err *e);
void options_free(struct ptcp_transfer_opts *o);
/* The flags of OPEN that options set. */
uint32_t options_open_flags(const struct ptcp_transfer_opts *o);
uint16_t options_preserve(const struct ptcp_transfer_opts *o);
/* Copies of n strings, NULL-terminated; NULL: out of memory. */
const char *const *task_copy_list(const char *const *in, size_t n);
void task_free_list(const char *const *list, size_t n);

/* ---- task_pipe.c ---- */

/* With opts.fd and "-" as the source or destination: makes t->files.input or .output, once t->target is set. */
int task_take_pipe(struct ptcp_task *t, const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e);

/* ---- task_striping.c ---- */

/* Whether the options of a transfer permit movers, if it has them. */
int striping_check(const struct ptcp_task *t, struct ptcp_err *e);
/* Once, before the first attempt: invites and starts the movers, if any. */
int striping_begin(struct ptcp_task *t, struct ptcp_err *e);
/* Adds the movers to the event. */
void striping_show(struct ptcp_task *t, struct ptcp_event *ev);
/* A mover is there, or may still come; always true without movers. */
static inline bool striping_may_go_on(const struct ptcp_task *t)
{
	return t->movers == NULL || movers_fault(t->movers, mono_now(), NULL) == 0;
}

/* ---- retry.c ---- */

/* An attempt begins. */
void wait_begin(struct ptcp_task *t);
/* Remaining time to wait for a busy server, as OPEN has it. */
uint32_t wait_ms(const struct ptcp_task *t);
/* Reports the position in the server's queue; `why`: or who is busy; may be NULL. */
void wait_report(struct ptcp_task *t, uint32_t ahead, const char *why);
/* After a failure because `why` is busy: true if the task will connect again, when t->timer fires. `until`: no later. */
bool wait_pause(struct ptcp_task *t, struct mono until, const char *why);
/* After an error: as wait_pause(), if the server is busy, or was busy and is lost: it may restart. */
bool wait_after(struct ptcp_task *t, const struct ptcp_err *why);
/* A session runs. */
void retry_worked(struct ptcp_task *t);
/* The transfer has `bytes` bytes; if their number is new, data has moved. */
void retry_moved(struct ptcp_task *t, uint64_t bytes);
/* Emits PTCP_EVENT_RECONNECTING. */
void retry_report(struct ptcp_task *t, unsigned attempt, uint64_t wait_ns, const char *why);
/* Whether another attempt may succeed after an error of this code. */
bool retry_may_help(int code);
/* Whether the task, whose attempt has ended, is to make another one. */
bool retry_is_due(const struct ptcp_task *t);
/* Runs the loop for the pause before the next attempt, instead of an attempt. */
int retry_pause(struct ptcp_task *t, struct ptcp_err *e);
void retry_pause_end(struct ptcp_task *t);
/* No attempt follows: the outcome is that of the transfer, not of the last attempt to connect. */
void retry_give_up(struct ptcp_task *t);

/* ---- task_trust.c ---- */

/* As connect_opts.check: refuses unexpected identities, and a relay's identity in another role. With t->trust.unknown
 * the user may be asked. */
int task_trust(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *peer, struct ptcp_err *e);
/* The fingerprint expected of t->target: the only one of --fingerprint or known_hosts. False: only the host can
 * tell. */
bool task_knows_host(const struct ptcp_task *t, char fingerprint[PTCP_FINGERPRINT_BYTES]);

/* ---- task_connect.c ---- */

/* The congestion control to request in OPEN. */
uint8_t task_congestion(const struct ptcp_task *t);
/* The streams of the session to request over a connection of this mode. */
struct task_streams {
	bool fixed;                     /* the user has given the number */
	bool adaptive;                  /* the controller determines the number: it observes the throughput of all streams
	                                 * together, over a single path or over movers */
	bool reaches_movers;            /* streams may connect to movers of the server */
	unsigned few;                   /* streams to begin with, if the number is neither fixed nor adaptive */
	unsigned requested;             /* number in OPEN; the descriptors of this process may permit fewer */
};
struct task_streams task_streams(const struct ptcp_task *t, enum ssh_start_mode mode);
/* Starts connecting; a session, t->job_ops->opened() or task_finish() follows. */
int task_connect(struct ptcp_task *t, struct ptcp_err *e);
/* Connects to t->target, from the first path on. */
int task_dial(struct ptcp_task *t, struct ptcp_err *e);
/* The options as OPEN has them. */
uint32_t task_open_flags(const struct ptcp_task *t);
uint8_t task_fsync(const struct ptcp_task *t);
uint8_t task_compress(const struct ptcp_task *t);
/* Closes all but the session. */
void task_disconnect(struct ptcp_task *t);

/* ---- path_history.c ---- */

/* `fd`: of the control connection. */
void task_name_path(struct ptcp_task *t, int fd);
/* Adapts the number of streams if t->history.adaptive, starting from the path's history, together with other transfers
 * of this user on the path. */
void task_adapt_streams(struct ptcp_task *t, struct session *sess);
/* A measurement begins: other transfers of this user on the path observe nothing meanwhile. Returns their number. */
unsigned task_join_group(struct ptcp_task *t);
/* The session has ended. */
void task_leave_group(struct ptcp_task *t);
/* At the end: records the controller's result. */
void task_remember(struct ptcp_task *t);
/* For advice, before it probes: tells what the history has. */
void task_recall_advice(struct ptcp_task *t);
void task_remember_advice(struct ptcp_task *t);

/* ---- task_session.c ---- */

extern const struct session_ops task_session_ops;
void task_emit(struct ptcp_task *t, const struct ptcp_event *ev);
/* Adds the sources before the server has accepted the session, so that the first entries travel early; not if a source
 * cannot be found: the user is told of it once the session runs. */
int task_add_early(struct ptcp_task *t, struct session *sess, struct ptcp_err *e);
/* Emits PTCP_EVENT_START. */
void task_started(struct ptcp_task *t);
/* The error of a transfer with this progress that ended with `why` (NULL: in order); false: none. */
bool task_failed(struct ptcp_err *out, const struct ptcp_progress *g, const struct ptcp_err *why);
/* Ends the transfer, `why` NULL: in order, though files may have failed. */
void task_outcome(struct ptcp_task *t, const struct ptcp_err *why);
/* Warns that a path has no connection because of that hop (connect_result.hop). */
void task_path_failed(struct ptcp_task *t, unsigned path, unsigned hop, const char *why);
void task_warn(struct ptcp_task *t, const char *text);
void task_show_progress(struct ptcp_task *t);

#endif
