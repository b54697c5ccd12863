/* libptcp: files and trees between hosts over parallel TLS streams.
 *
 * Handles are opaque; options are plain structs filled by an _init() function
 * and copied by what takes them. Errors: see <ptcp/err.h>. Unless said otherwise
 * a function may be called from any thread, a handle by one thread at a time, and
 * different handles by different threads at once. The library never exits,
 * prints, or touches signal handlers, and keeps no state between handles. Its host should ignore
 * SIGPIPE. Sizes are bytes, rates bits per second, times seconds. */
#ifndef PTCP_PTCP_H
#define PTCP_PTCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ptcp/err.h>
#include <ptcp/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PTCP_PORT 7811
#define PTCP_STREAMS_MAX 128
#define PTCP_SESSIONS_MAX 4096   /* of a server at a time */
#define PTCP_STARTUPS_MAX 65536

/* "0.1.0"; static. */
PTCP_API const char *ptcp_version(void);

/* ---- Identity and trust ------------------------------------------------- */

/* "SHA256:" and 43 characters of unpadded base64: the SHA-256 of the DER
 * SubjectPublicKeyInfo of an identity key. */
#define PTCP_FINGERPRINT_BYTES 51

/* Wherever a config_dir is asked for, NULL means $XDG_CONFIG_HOME/ptcp, else
 * ~/.config/ptcp. It holds identity.pem, known_hosts and authorized_clients. */

/* That directory. PTCP_ECONFIG when neither says, or when it is longer than `cap`, for which PTCP_PATH_BYTES
 * are always enough. */
#define PTCP_PATH_BYTES 4096
PTCP_API int ptcp_config_dir(char *out, size_t cap, struct ptcp_err *e);

/* The fingerprint of this host's identity; the identity is made if there is none.
 * PTCP_ECONFIG for a key that others can read or that is damaged. */
PTCP_API int ptcp_key_show(const char *config_dir, char fingerprint[PTCP_FINGERPRINT_BYTES],
    struct ptcp_err *e);

/* Makes the identity; PTCP_EUSAGE if there is one already. */
PTCP_API int ptcp_key_generate(const char *config_dir, char fingerprint[PTCP_FINGERPRINT_BYTES],
    struct ptcp_err *e);

/* What a client may do at this host's daemon. Strings are borrowed. */
struct ptcp_permission {
	size_t size;
	const char *fingerprint;
	bool read_only; /* it may recv, not send */
	bool no_relay;
	const char *root; /* its own root, absolute, or NULL for the daemon's */
	const char *name; /* for people: one word for logs, or NULL */
};
PTCP_API void ptcp_permission_init(struct ptcp_permission *p);

/* Adds or replaces the client's line in authorized_clients, atomically; holds from the next connection on; a
 * session that it no longer allows ends within a second. PTCP_EUSAGE for a malformed fingerprint, root or
 * name. */
PTCP_API int ptcp_authorize(const char *config_dir, const struct ptcp_permission *p,
    struct ptcp_err *e);
/* Removes it; PTCP_EUSAGE if it is not there. */
PTCP_API int ptcp_revoke(const char *config_dir, const char *fingerprint, struct ptcp_err *e);

/* ---- What a transfer or server tells while it runs ----------------------- */

enum ptcp_log_level { PTCP_LOG_ERROR, PTCP_LOG_WARN, PTCP_LOG_INFO, PTCP_LOG_DEBUG };

/* One line "key=value ..", without a newline, names escaped. May come from any of the
 * library's threads; must not call back into the library. */
typedef void ptcp_log_fn(void *arg, enum ptcp_log_level level, const char *component,
    const char *msg);

enum ptcp_event_type {
	PTCP_EVENT_START,    /* connected, authenticated, agreed */
	PTCP_EVENT_PROGRESS, /* about five a second, from START on */
	PTCP_EVENT_STREAMS,  /* their number changed: from, to, text = reason */
	PTCP_EVENT_FILE,     /* a regular file or link is done, skipped or failed */
	PTCP_EVENT_WARNING,  /* text */
	PTCP_EVENT_DETACHED, /* it goes on without us: text = its name, for ptcp_status_new() */
	PTCP_EVENT_STATUS,   /* of a transfer that does: left */
	PTCP_EVENT_PATHS,    /* of candidates others are in use: paths, text = reason */
};

struct ptcp_status;

enum ptcp_file_status { PTCP_FILE_DONE, PTCP_FILE_SKIPPED, PTCP_FILE_FAILED };

/* One of the paths of a transfer, in the order of ptcp_transfer_opts.vias, or .relays. */
struct ptcp_path {
	const char *candidate;              /* as it was given there; "" for the direct one */
	uint64_t bytes;               /* file data that it has carried in this run */
	double rate_bps;              /* over the last seconds */
	unsigned streams;             /* in use now */
};

struct ptcp_event {
	enum ptcp_event_type type;
	/* START */
	const char *peer;             /* "ADDR:PORT" */
	const char *peer_fingerprint;
	/* PROGRESS (also valid at START) */
	struct ptcp_progress progress;
	double rate_bps;              /* over the last seconds */
	double eta_s;                 /* negative: not known */
	/* STREAMS */
	unsigned from, to;
	/* FILE */
	const char *path;             /* raw bytes, relative to what was named; escape before showing */
	enum ptcp_file_status status;
	/* WARNING: sentence; FILE: why it failed or was skipped, or NULL; STREAMS: reason */
	const char *text;
	int code;                     /* FILE failed: a PTCP_E* */
	const struct ptcp_status *left; /* STATUS */
	const struct ptcp_path *paths; /* at least one; at START all is 0 */
	size_t n_paths;
};

/* Called on the thread that runs the transfer; everything in ev is valid only during
 * the call. May call ptcp_transfer_cancel(). */
typedef void ptcp_event_fn(void *arg, const struct ptcp_event *ev);

/* ---- Transfers ------------------------------------------------------------ */

/* The values are those on the wire. */
enum ptcp_cipher {
	PTCP_CIPHER_AES128GCM = 0,
	PTCP_CIPHER_AES256GCM = 1,
	PTCP_CIPHER_CHACHA20 = 2,
	PTCP_CIPHER_NONE = 3, /* data in clear after an authenticated start; control stays TLS */
	PTCP_CIPHERS
};
/* "aes128gcm" ..; NULL for an unknown value. And back: 0, or -1. */
PTCP_API const char *ptcp_cipher_name(enum ptcp_cipher c);
PTCP_API int ptcp_cipher_parse(const char *name, enum ptcp_cipher *out);

/* How fast one core of this host encrypts with a cipher, or hashes as transfers do: bit/s, measured for so
 * many seconds, more than 0 and at most 60. PTCP_EUSAGE for PTCP_CIPHER_NONE. */
PTCP_API int ptcp_cipher_speed(enum ptcp_cipher c, double seconds, double *bps, struct ptcp_err *e);
PTCP_API int ptcp_hash_speed(double seconds, double *bps, struct ptcp_err *e);

/* An unknown host: return true to trust this fingerprint from now on (it is written to
 * known_hosts). Asked while no connection is open; may take its time. */
typedef bool ptcp_trust_fn(void *arg, const char *host, const char *fingerprint);

/* What is left out of a transfer. Patterns are rsync's, see ptcp-send(1); of several rules
 * the first that matches a path decides, without one it is transferred. What is in a
 * directory that is left out is, too. */
struct ptcp_rule {
	bool include;
	const char *pattern;
};

/* When received files are safe from a power failure. */
enum ptcp_fsync {
	PTCP_FSYNC_GROUP = 0, /* synced in groups, before they get their names */
	PTCP_FSYNC_NONE,      /* when the system pleases */
	PTCP_FSYNC_FILE,      /* each file by itself */
};

struct ptcp_transfer_opts {
	size_t size;
	const char *config_dir;
	unsigned streams;           /* 1 to PTCP_STREAMS_MAX; 0: by what they bring, see impact_percent */
	enum ptcp_cipher cipher;
	bool no_verify;             /* no hashing of blocks and files */
	bool preserve_times, preserve_mode, preserve_links; /* all true */
	int family;                 /* 0, 4 or 6 */
	double timeout_s;           /* no progress from the peer for so long fails; 30, at least 0.5 */
	const char *congestion;     /* "cubic", "bbr", "reno"; NULL: the system's */
	/* "SHA256:.." or "HOST[:PORT]=SHA256:..": trusted for this transfer, never written */
	const char *const *fingerprints;
	size_t n_fingerprints;
	ptcp_trust_fn *trust;       /* NULL: an unknown host is refused */
	ptcp_event_fn *event;       /* NULL: silent */
	bool file_events;           /* PTCP_EVENT_FILE also for what went well */
	ptcp_log_fn *log;           /* NULL: no log */
	enum ptcp_log_level log_level;
	void *arg;                  /* of the callbacks */
	const struct ptcp_rule *rules; /* in order; PTCP_EUSAGE for a malformed pattern */
	size_t n_rules;
	bool preserve_owner;        /* user and group, by name or else number, where permitted */
	bool preserve_xattr;        /* extended attributes, those named user.* */
	bool preserve_setid;        /* with preserve_mode: setuid, setgid and sticky bits, too */
	bool no_resume;             /* begin every file anew */
	enum ptcp_fsync fsync;      /* PTCP_FSYNC_GROUP */
	bool dry_run;               /* tell what would be transferred, and change nothing */
	/* through ssh: */
	const char *ssh;            /* the program and its first arguments, in words; NULL: "ssh" */
	const char *remote_ptcp;    /* the command there; NULL: "ptcp" */
	unsigned remote_port;       /* it listens on there; 0: any */
	/* Paths side by side, daemons only: "HOST[:PORT]" goes through that relay, "A,B" through A, then B,
	 * "direct" through none. None: directly. Streams are divided over the paths, each has at least one. */
	const char *const *vias;
	size_t n_vias;              /* at most PTCP_PATHS_MAX */
	/* The most that all streams of it together send, or receive: "200Mbit/s", or by the local time of
	 * day "08:00-18:00=200Mbit/s,else=0", 0 being no limit (ptcp-send(1)); between two daemons
	 * no timetable. NULL: no limit */
	const char *rate;
	/* between two daemons: */
	bool detach;                /* over once it has begun (PTCP_EVENT_DETACHED), goes on without us */
	/* where the number of streams is chosen: */
	double impact_percent;      /* 10; the most to take from each other flow, against one stream; 0 to 100 */
	unsigned max_streams;       /* 32; 1 to PTCP_STREAMS_MAX */
	/* What is learnt of a path is kept in the file `paths` there, for the next transfer or advice: */
	const char *state_dir;      /* NULL: $XDG_STATE_HOME/ptcp, else ~/.local/state/ptcp */
	bool no_history;            /* neither look there nor write */
	/* Of n_vias paths, what each should carry, in any unit, not negative: streams are divided in proportion (each path
	 * has at least one), and go on with whatever block is next. NULL: evenly */
	const double *via_shares;
	/* Instead of vias: candidates, each as one of these, of which n_paths are in use (0: 2), chosen by chance. One that
	 * brings nothing, or with a rate too little, is replaced by another; with a rate it is divided over them as each
	 * carries it. */
	const char *const *relays;
	size_t n_relays;            /* at most PTCP_PATHS_MAX */
	unsigned n_paths;
	/* Of n_vias paths, what each relay of it may store while the next hop takes less than comes, if it has storage
	 * (ptcp_server_opts.relay_storage_bytes): divided over the path's streams, in whole MiB each. With any that is
	 * not 0 data may stand still for 120 time-outs of the other side's (an hour) before the transfer fails, which a
	 * path that is silent then does no sooner; streams, if 0, are not chosen by what they bring. NULL: nothing */
	const uint64_t *relay_hold_bytes;
	/* Of a transfer with one remote side, "ptcp://HOST/PATH": the words of a command that starts ptcp there, instead of
	 * a daemon; {host} in them stands for HOST. What it starts is `remote_ptcp` serve --one-time, which serves this
	 * transfer alone, at `remote_port`, with any absolute PATH of its user's; who it is, it says to us through the
	 * command. Relays are daemons all the same. NULL: a daemon */
	const char *launch;
};
#define PTCP_PATHS_MAX 16
PTCP_API void ptcp_transfer_opts_init(struct ptcp_transfer_opts *o);

struct ptcp_transfer;

/* Send local paths to a remote `dest`, or paths of one daemon to another; receive `srcs`, remote and on one host,
 * into the local path `dest`. Remote: "ptcp://HOST[:PORT]/PATH", percent-encoded, HOST a name, an IPv4 address
 * or a bracketed IPv6 address, a daemon; "[USER@]HOST:PATH" or "ssh://[USER@]HOST[:PORT]/PATH", through ssh,
 * which is started as a process: its messages go to this one's standard error, and libuv handles SIGCHLD then
 * (it waits for that process only). Where things land is as with cp -r: inside dest when that is a directory,
 * ends with a slash or there are several sources, else the single source becomes dest; a slash at the end of a
 * source directory means its contents. PTCP_EUSAGE for what cannot be parsed, PTCP_ENOTYET for forms that are
 * yet to come: remote sources on several hosts, and ssh between two remote ones. Copies everything; connects
 * nowhere. */
PTCP_API int ptcp_send_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e);
PTCP_API int ptcp_recv_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e);

/* What has been achieved; valid once it is over, whatever came of it. */
struct ptcp_result {
	size_t size;
	struct ptcp_progress progress; /* at the end */
	uint64_t warnings;
	double seconds;
	/* Where their number was chosen from what they brought; else 0: */
	unsigned advised_streams;
	double predicted_bps;            /* for these, and */
	double predicted_impact_percent; /* what they should have taken from each other flow, against one stream */
	double measured_bps;             /* what they brought while in use; 0: it was too short to say */
	bool from_history;               /* predicted from earlier transfers, and not contradicted */
};

PTCP_API void ptcp_result_init(struct ptcp_result *r);

/* Blocks until all is done, failed or cancelled; once per handle. Success means every
 * file is complete and verified under its name. PTCP_EPARTIAL: some files failed (each
 * had an event), the rest is done. PTCP_ECANCELED: interrupted. */
PTCP_API int ptcp_transfer_run(struct ptcp_transfer *t, struct ptcp_err *e);

/* The same from a loop of the host's own, of whatever make: start it, then whenever the descriptor is
 * readable or the time-out has passed, step it and ask for the time-out again. This is all that poll(),
 * epoll, libuv (uv_poll_t and uv_timer_t) and glib have in common, so no loop's types are in this header
 * and no version of one has to match ours; contrib/examples/receive.c does it in 30 lines. The work
 * itself is done by threads of the library; a step decides, tells (its thread gets the callbacks), and
 * does not wait, but for the last one, which joins these threads. */
PTCP_API int ptcp_transfer_start(struct ptcp_transfer *t, struct ptcp_err *e);
/* The descriptor, one and the same as long as the handle, to be watched for reading only. */
PTCP_API int ptcp_transfer_fd(const struct ptcp_transfer *t);
/* Milliseconds after which a step is due at the latest; 0: now; -1: only the descriptor says. */
PTCP_API int ptcp_transfer_timeout_ms(const struct ptcp_transfer *t);
/* 1: go on. 0 or negative: it is over, as ptcp_transfer_run() would have returned. */
PTCP_API int ptcp_transfer_step(struct ptcp_transfer *t, struct ptcp_err *e);

/* Fills in what the caller's ptcp_result_init() knew of. */
PTCP_API void ptcp_transfer_result(const struct ptcp_transfer *t, struct ptcp_result *r);
/* Any thread and signal handlers; idempotent; before run too. */
PTCP_API void ptcp_transfer_cancel(struct ptcp_transfer *t);
/* What a path carries at most from now on, whichever side sends: bit/s, at least 10,000; 0: no limit, as at first;
 * PTCP_PATH_IDLE: nothing for now, but for what is on its way there already. `path` counts in the order of
 * ptcp_transfer_opts.vias, or .relays; 0 is the only one when there are neither. opts.rate holds beside it. Any thread;
 * before it runs or while it does. PTCP_EUSAGE for a path or rate that cannot be, and where no data goes between this
 * host and another. */
#define PTCP_PATH_IDLE UINT64_MAX
PTCP_API int ptcp_transfer_set_path_rate(struct ptcp_transfer *t, size_t path, uint64_t bps, struct ptcp_err *e);

/* NULL is fine. One that is at work is cancelled first and waited for. May wait for the resolver, which
 * cannot be interrupted. */
PTCP_API void ptcp_transfer_free(struct ptcp_transfer *t);

/* ---- Transfers between two daemons that go on without us --------------------- */

enum ptcp_state { PTCP_STATE_RUNNING, PTCP_STATE_DONE, PTCP_STATE_FAILED };
/* "running", "done", "failed" */
PTCP_API const char *ptcp_state_name(enum ptcp_state s);

struct ptcp_status {
	const char *name;         /* "ID@HOST:PORT" */
	enum ptcp_state state;
	int code;                 /* FAILED: a PTCP_E* .. */
	const char *error;        /* .. and its sentence, else NULL */
	const char *source;       /* its first, raw bytes */
	const char *peer;         /* "HOST:PORT" that it goes to, or with `fetched` comes from; the other end is at the
				     host that is asked */
	const char *dest;         /* the path at the destination, raw bytes */
	struct ptcp_progress progress;
	double age_s, seconds;    /* since it was asked for; of which it ran */
	bool fetched;
};

/* Asks the daemon that does it: about the transfer of that name, or, for "HOST[:PORT]" alone, about all that
 * this identity has left to it. `cancel`: cancels that one first, so that it can be resumed. Run the handle as a
 * transfer: each has its PTCP_EVENT_STATUS. What is over is remembered for a day, the last 64 of all clients,
 * and not over a restart of that daemon. PTCP_EPEER: it knows of none of that name. */
PTCP_API int ptcp_status_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, const char *name,
    bool cancel, struct ptcp_err *e);

/* ---- Advice: how many streams ---------------------------------------------- */

/* The curve through the probes: BW(n) = n / sqrt(a n^2 + b), n / (a n + b),
 * n / sqrt(a n^2 + b n + c), n / sqrt(a n + b), BW in bit/s. AUTO takes what evidence
 * favours. */
enum ptcp_model {
	PTCP_MODEL_AUTO,
	PTCP_MODEL_PARTIAL_QUADRATIC,
	PTCP_MODEL_FAIR_SHARE,
	PTCP_MODEL_QUADRATIC,
	PTCP_MODEL_LINEAR,
	PTCP_MODELS
};
/* "auto", "partial-quadratic" ..; NULL for an unknown value. And back: 0, or -1. */
PTCP_API const char *ptcp_model_name(enum ptcp_model m);
PTCP_API int ptcp_model_parse(const char *name, enum ptcp_model *out);

/* What so many streams brought together. */
struct ptcp_probe {
	unsigned streams;
	double throughput_bps;
	double error_bps; /* standard error of it; 0: not known, that of one short run */
};
#define PTCP_PROBES_MAX 64

struct ptcp_advice_opts {
	size_t size;
	enum ptcp_model model;    /* AUTO */
	double impact_percent;    /* 10; the most to take from each other flow, 0 to 100 */
	double min_gain_percent;  /* 1; what the last stream must bring */
	unsigned max_streams;     /* 32; 1 to PTCP_ADVICE_STREAMS_MAX */
	/* ptcp_advice_from_probes() only: */
	const char *congestion;   /* of the streams probed: "cubic" ..; NULL: not known */
	/* ptcp_advise_new() only: */
	const unsigned *levels;   /* numbers of streams to probe with; none: 4 and 15, or none where the path
				     history knows (unless the handle's options say no_history) */
	size_t n_levels;
	bool receive;             /* streams from there to here */
};
#define PTCP_ADVICE_STREAMS_MAX 100000
PTCP_API void ptcp_advice_opts_init(struct ptcp_advice_opts *o);

/* What one stream more, or too little gain by it, would break. */
enum ptcp_limited_by {
	PTCP_LIMITED_BY_IMPACT,
	PTCP_LIMITED_BY_GAIN,
	PTCP_LIMITED_BY_MAX_STREAMS,
	PTCP_LIMITED_BY_SATURATION, /* more streams bring nothing, or less */
};
/* "impact", "gain", "max-streams", "saturated" */
PTCP_API const char *ptcp_limited_by_name(enum ptcp_limited_by l);

/* What held the probes up. */
enum ptcp_limit {
	PTCP_LIMIT_UNKNOWN,
	PTCP_LIMIT_NETWORK,
	PTCP_LIMIT_SEND_BUFFER,
	PTCP_LIMIT_RECEIVE_WINDOW,
	PTCP_LIMIT_APPLICATION,
};
/* "unknown", "network", "send-buffer", "receive-window", "application" */
PTCP_API const char *ptcp_limit_name(enum ptcp_limit l);

struct ptcp_advice {
	size_t size;
	unsigned streams;
	double throughput_bps;       /* predicted for them, as the next two */
	double impact_percent;       /* taken from each other flow, against one stream of ours */
	double impact_total_percent; /* against no transfer */
	double budget_percent;       /* the options, as used */
	double min_gain_percent;
	unsigned max_streams;
	enum ptcp_limited_by limited_by;
	bool confident;
	unsigned warnings;           /* for ptcp_advice_warning(); any makes it not confident */
	unsigned next_probe;         /* a number of streams to probe that would help most, or 0 */
	char congestion[16];         /* of the streams probed; "": not known */
	const char *congestion_advice; /* a gentler one that may keep the budget, static; or NULL */
	enum ptcp_limit limit;
	const char *limit_advice;    /* what more streams do not mend, and what does, static; or NULL */
	enum ptcp_model model;       /* with its coefficients a, b, c: */
	double raw[3], used[3];      /* as fitted, and after what cannot be was mended */
	struct ptcp_probe probes[PTCP_PROBES_MAX];
	size_t n_probes;
	bool from_history;           /* the probes are those of an earlier transfer or advice, */
	double age_s;                /* so old; errors are wider for that */
};
PTCP_API void ptcp_advice_init(struct ptcp_advice *a);

/* The largest number of streams that keeps the budget and whose last stream brings enough.
 * No network. PTCP_EUSAGE for options out of range, a rate that is not positive and finite, or
 * fewer different numbers of streams than the model has coefficients. */
PTCP_API int ptcp_advice_from_probes(struct ptcp_advice *a, const struct ptcp_probe *p, size_t n,
    const struct ptcp_advice_opts *o, struct ptcp_err *e);

/* The same after probing the way to a daemon, "HOST[:PORT]" or "ptcp://HOST[:PORT]", or to "USER@HOST" or
 * "ssh://[USER@]HOST[:PORT]", where one is started through ssh: streams of a
 * transfer that carry nothing, for 5 to 21 seconds, 30 with a further probe. The
 * handle is used like a transfer's: run or stepped, cancelled, freed; of `o` what is about connecting and
 * the cipher counts. */
PTCP_API int ptcp_advise_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_advice_opts *a, struct ptcp_err *e);
/* PTCP_EUSAGE when it has come to nothing, or moves files. */
PTCP_API int ptcp_transfer_advice(const struct ptcp_transfer *t, struct ptcp_advice *a,
    struct ptcp_err *e);

/* What is predicted for any number of streams from 1. */
struct ptcp_advice_point {
	double throughput_bps, impact_percent, impact_total_percent;
};
PTCP_API void ptcp_advice_at(const struct ptcp_advice *a, unsigned streams,
    struct ptcp_advice_point *out);

/* The i-th thing, from 0, that speaks against the answer; static; NULL after the last. */
PTCP_API const char *ptcp_advice_warning(const struct ptcp_advice *a, size_t i);

/* ---- Measuring: what n streams bring, over many rounds ------------------------ */

/* So many streams, started together, sent so many bytes each. */
struct ptcp_round {
	unsigned number;              /* from 1 */
	unsigned streams;
	const char *why;              /* a stream was missing or short; the rest then means nothing. Or NULL */
	double throughput_bps;        /* all bytes over last end minus first start */
	const double *per_stream_bps; /* `streams` of them, each over its own time */
	uint64_t retransmits;         /* segments */
};

struct ptcp_measure_opts {
	size_t size;
	const unsigned *streams;      /* levels; none: 10, 20, 30, 40, 50 */
	size_t n_streams;
	unsigned rounds;              /* 5; with each of them */
	double interval_s;            /* 0; from the start of a round to that of the next, at least */
	uint64_t bytes_per_stream;    /* 2000000 */
	void (*round)(void *arg, const struct ptcp_round *r); /* as each ends; or NULL */
	void *arg;
	bool receive;                 /* from there to here */
};
#define PTCP_LEVELS_MAX 64
PTCP_API void ptcp_measure_opts_init(struct ptcp_measure_opts *o);

/* Rounds on the way to a host; for the handle see ptcp_advise_new(). A round that fails is counted,
 * and the others go on. */
PTCP_API int ptcp_measure_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_measure_opts *m, struct ptcp_err *e);

/* All rounds with one number of streams; rates are of those that did not fail. */
struct ptcp_level {
	unsigned streams;
	unsigned rounds, failed;      /* all, and those that failed */
	double mean_bps, min_bps, max_bps, stddev_bps;
	double per_stream_mean_bps;
	double fairness;              /* Jain's index, averaged over rounds */
	int clusters;                 /* 2: in most rounds streams fell into a slow and a fast group; else 1 */
};

/* Writes at most `most` levels that have had a round, ascending by streams; returns how many there
 * are. *saturates_at: the smallest whose mean no larger one exceeds by 5 %; 0: that is the largest. */
PTCP_API size_t ptcp_transfer_levels(const struct ptcp_transfer *t, struct ptcp_level *out,
    size_t most, unsigned *saturates_at);

/* ---- Timing: how long messages take ----------------------------------------- */

struct ptcp_message {
	uint64_t bytes;
	double delay_s; /* from the first byte given to TCP until all are known to be there */
};
#define PTCP_MESSAGES_MAX 1024

struct ptcp_timing_opts {
	size_t size;
	unsigned streams;  /* 4; a message is divided among them */
	unsigned messages; /* 8; 1 to PTCP_MESSAGES_MAX */
	uint64_t most_bytes; /* of a message, at least 256 KiB; 0: what takes about a second. ptcp_timing_new() only */
};
PTCP_API void ptcp_timing_opts_init(struct ptcp_timing_opts *o);

/* Messages of four sizes in turn on the way to a daemon, over streams that stay open: first some, not
 * counted, that grow until one takes about half a second, so that TCP has found its rate and the sizes can
 * be chosen, the largest to take about a second. For the handle see ptcp_advise_new(). */
PTCP_API int ptcp_timing_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_timing_opts *m, struct ptcp_err *e);

/* The same between two other hosts, daemons at "HOST[:PORT]": `from` measures the way to `to`, by our permission at
 * both, if its operator lets it connect there. PTCP_EREFUSED: not; PTCP_ECONNECT: it cannot. */
PTCP_API int ptcp_timing_between_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *from, const char *to, const struct ptcp_timing_opts *m, struct ptcp_err *e);

/* Writes at most `most`; returns how many there are, fewer than asked for after a failure. *round_trip_s:
 * the least that a packet and its acknowledgement took; 0: not known. */
PTCP_API size_t ptcp_transfer_messages(const struct ptcp_transfer *t, struct ptcp_message *out,
    size_t most, double *round_trip_s);

/* ---- What daemons have learnt of the ways to others ------------------------- */

/* One of them. Numbers that are not known are NAN. */
struct ptcp_published_link {
	const char *to;                  /* "HOST[:PORT]", as ptcp_timing_new() has it */
	const char *why;                 /* it could not be measured when it was last tried; or NULL */
	unsigned messages, streams;      /* that it comes from; 0 messages: nothing is known, and the rest means nothing */
	double rate_bps, rate_error_bps; /* of file data over so many streams together, and one standard error */
	double delay_s, delay_error_s;   /* one way, likewise */
	bool delay_from_round_trip;      /* half of the least round trip of a packet */
	double age_s;                    /* since it was measured last */
};
#define PTCP_PUBLISHED_LINKS_MAX 1024

/* Asks the daemon at "HOST[:PORT]", which tells who may have it connect elsewhere. For the handle see ptcp_advise_new().
 * PTCP_EPEER: it does not measure, or is too old to be asked; PTCP_EREFUSED. */
PTCP_API int ptcp_link_query_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, const char *from,
    struct ptcp_err *e);
/* What it has told, at most `most`; returns how many there are. `to` has the port, an IPv6 address is in brackets;
 * texts are escaped, and the handle's. */
PTCP_API size_t ptcp_transfer_links(const struct ptcp_transfer *t, struct ptcp_published_link *out, size_t most);

/* ---- Server ---------------------------------------------------------------- */

/* What a server still needs of the system once it has started; valid during the call. Beside it, what name
 * services read. */
struct ptcp_server_needs {
	const char *config_dir;     /* its files are read */
	/* All below them is read, made, changed and removed; ended by NULL. "/" where any path may be asked. */
	const char *const *roots;
	bool binds, connects;       /* TCP: will listen once more; connects to others */
	const char *storage_dir;    /* files are made there, used and removed; NULL: none */
};

struct ptcp_server_opts {
	size_t size;
	const char *config_dir;
	/* "ADDR:PORT", "[ADDR]:PORT", ":PORT" or "PORT"; NULL: every address, PTCP_PORT; port 0: a free one */
	const char *listen;
	const char *root;           /* NULL: serves no files, except to clients with a root of their own */
	unsigned ciphers;           /* bits 1 << PTCP_CIPHER_*; all but NONE */
	unsigned max_streams;       /* a session's ceiling; PTCP_STREAMS_MAX */
	unsigned max_sessions;      /* at a time; 64, at most PTCP_SESSIONS_MAX */
	double timeout_s;           /* 30 */
	ptcp_log_fn *log;           /* NULL: no log */
	enum ptcp_log_level log_level;
	void *arg;                  /* of log and confine */
	/* The far side of a transfer through ssh, whose pipes `in` and `out` (0 and 1) are. It listens once
	 * the client has said there who it is, admits nobody else, serves one session with any path of this
	 * user's, and ends with it, with `in`, or when nobody comes for a minute. Its identity is made for it.
	 * listen and root are not used. */
	bool one_time;
	int in, out;
	/* Further addresses, each as in `listen`; and sockets that listen already, which are duplicated. With
	 * sockets and no address there is no default address. Together at most PTCP_LISTEN_MAX. */
	const char *const *also_listen;
	size_t n_also_listen;
	const int *sockets;
	size_t n_sockets;
	/* Next hops that it connects its clients to when they ask: a name, an address or a range, then nothing
	 * (port 7811), ":PORT" or ":*". See ptcp-serve(1). PTCP_EUSAGE for a malformed one. */
	const char *const *relay_to;
	size_t n_relay_to;          /* 0: it relays nothing */
	unsigned max_relayed;       /* connections at one time, half of them for one client; 512 */
	unsigned max_client_sessions; /* of one client at a time; 16 */
	unsigned max_startups;        /* connections that have yet to say who they are; 512 */
	/* Called once by ptcp_server_new(), when identity and address are had and before any thread is
	 * started: the moment for a host that is nothing but a server to give up what `n` does not name
	 * (Landlock, capabilities, another user), for this thread and with it for all to come. A negative
	 * PTCP_E* ends the start. NULL: the library gives nothing up by itself. */
	int (*confine)(void *arg, const struct ptcp_server_needs *n, struct ptcp_err *e);
	/* As in ptcp_transfer_opts: the most that all sessions together send, and as much that they receive. */
	const char *rate;
	/* What a relay may store of connections whose clients ask for it, while their next hop takes less than comes: the
	 * most of all together, of which one client has half; at least 2 MiB, or 0: nothing. */
	uint64_t relay_storage_bytes;
	const char *relay_storage_dir; /* for files without names; NULL: $TMPDIR, else /var/tmp */
};
#define PTCP_LISTEN_MAX 32
PTCP_API void ptcp_server_opts_init(struct ptcp_server_opts *o);

struct ptcp_server;

/* Binds and listens. PTCP_ECONFIG when the address or root cannot be had. */
PTCP_API int ptcp_server_new(struct ptcp_server **out, const struct ptcp_server_opts *o,
    struct ptcp_err *e);
/* "127.0.0.1" or "::" without brackets, the port, and this host's fingerprint; valid as long as the handle. */
PTCP_API const char *ptcp_server_address(const struct ptcp_server *s);
PTCP_API unsigned ptcp_server_port(const struct ptcp_server *s);
PTCP_API const char *ptcp_server_fingerprint(const struct ptcp_server *s);
/* The same of the i-th place, counted from 0; false behind the last. The first is that of the above. */
PTCP_API bool ptcp_server_listening(const struct ptcp_server *s, size_t i, const char **address,
    unsigned *port);
/* Serves until ptcp_server_stop(); once per handle; 0 when stopped. */
PTCP_API int ptcp_server_run(struct ptcp_server *s, struct ptcp_err *e);
/* The same from a loop of the host's own, as ptcp_transfer_start() and those behind it. A step returns 1 to
 * go on, else what ptcp_server_run() would have. */
PTCP_API int ptcp_server_start(struct ptcp_server *s, struct ptcp_err *e);
PTCP_API int ptcp_server_fd(const struct ptcp_server *s);
PTCP_API int ptcp_server_timeout_ms(const struct ptcp_server *s);
PTCP_API int ptcp_server_step(struct ptcp_server *s, struct ptcp_err *e);
/* Before it serves or between steps: from now on max_streams, max_sessions, max_client_sessions, timeout_s,
 * rate, relay_to, max_relayed and log_level are those of `o`, whose other fields are not looked at. What runs
 * keeps what it has agreed. Names are looked up, for which it may wait. PTCP_EUSAGE, and nothing has changed,
 * when one is malformed or out of range. */
PTCP_API int ptcp_server_change(struct ptcp_server *s, const struct ptcp_server_opts *o,
    struct ptcp_err *e);

/* Since the server was made, unless it says "now". */
struct ptcp_server_stats {
	size_t size;
	uint64_t connections;       /* taken, whoever they were */
	uint64_t refused;           /* clients, connections and requests that are not allowed */
	uint64_t sessions, sessions_failed; /* begun; ended otherwise than well */
	uint64_t received_bytes, sent_bytes; /* data of files that went over connections */
	uint64_t received_files, sent_files;
	uint64_t failed_files;
	uint64_t retransmits;       /* segments, of data connections; those of the present a call late */
	unsigned sessions_now, streams_now;
	unsigned relayed_now;       /* connections between clients and next hops */
	uint64_t stored_bytes;      /* now, on disk, of what is relayed; whole MiB */
	unsigned links_known;       /* now, of which rate and delay can be told */
};
PTCP_API void ptcp_server_stats_init(struct ptcp_server_stats *st);
/* Fills in what the caller's ptcp_server_stats_init() knew of. Before it serves or between steps. */
PTCP_API void ptcp_server_stats(struct ptcp_server *s, struct ptcp_server_stats *st);
/* From now on it tells this to clients who ask (ptcp_link_query_new()) and may have it connect elsewhere: what its host has
 * measured, in place of what it was given before; copied, and growing older. `l` NULL: it has nothing to tell. PTCP_EUSAGE
 * for a number out of range or more than PTCP_PUBLISHED_LINKS_MAX, and nothing has changed. Any thread. */
PTCP_API int ptcp_server_set_links(struct ptcp_server *s, const struct ptcp_published_link *l, size_t n,
    struct ptcp_err *e);
/* Any thread and signal handlers; idempotent. Running sessions end at once, their
 * peers are told. */
PTCP_API void ptcp_server_stop(struct ptcp_server *s);
PTCP_API void ptcp_server_free(struct ptcp_server *s); /* NULL is fine; not while it runs */

#ifdef __cplusplus
}
#endif
#endif
