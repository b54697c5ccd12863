/* libptcp: transfers files and trees between hosts over parallel TLS streams.
 *
 * Handles are opaque. Options are plain structs, initialized by an _init() function and copied by the function that
 * takes them; NULL stands for the options that _init() makes. Errors: see <ptcp/err.h>. Unless stated otherwise,
 * functions may be called from any thread, a handle by one thread at a time, and different handles by different
 * threads at once. The library never exits, prints or touches signal handlers, and keeps no state between handles.
 * The host program should ignore SIGPIPE.
 *
 * Sizes are bytes, rates bits per second, times seconds. Rates that a caller sets are uint64_t, measured and
 * predicted rates are double. Unknown numbers are NAN, or PTCP_UNKNOWN (<ptcp/plan.h>) for integers. */
#ifndef PTCP_PTCP_H
#define PTCP_PTCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ptcp/err.h>
#include <ptcp/options.h>
#include <ptcp/progress.h>
#include <ptcp/spent.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PTCP_PORT 7811
#define PTCP_STREAMS_MAX 128
#define PTCP_SESSIONS_MAX 4096   /* max concurrent sessions of a server */
#define PTCP_STARTUPS_MAX 65536

/* "0.1.0"; static. */
PTCP_API const char *ptcp_version(void);

/* ---- Identity and trust ------------------------------------------------- */

/* "SHA256:" and 43 characters of unpadded base64: the SHA-256 of the DER
 * SubjectPublicKeyInfo of an identity key. */
#define PTCP_FINGERPRINT_BYTES 51

/* A config_dir of NULL means $XDG_CONFIG_HOME/ptcp, else ~/.config/ptcp. The directory contains identity.pem,
 * known_hosts, authorized_clients, revoked and certificates. */

/* The default config_dir. PTCP_ECONFIG: neither variable is set, or the path is longer than `cap` (PTCP_PATH_BYTES
 * always suffices). */
#define PTCP_PATH_BYTES 4096
PTCP_API int ptcp_config_dir(char *out, size_t cap, struct ptcp_err *e);

/* The fingerprint of this host's identity; generates a missing identity. PTCP_ECONFIG: the key is damaged or readable
 * by other users. */
PTCP_API int ptcp_key_show(const char *config_dir, char fingerprint[PTCP_FINGERPRINT_BYTES],
    struct ptcp_err *e);

/* Generates the identity; PTCP_EUSAGE if the identity exists. */
PTCP_API int ptcp_key_generate(const char *config_dir, char fingerprint[PTCP_FINGERPRINT_BYTES],
    struct ptcp_err *e);

/* Permissions of a client at this host's server. Strings are borrowed. */
struct ptcp_permission {
	size_t size;
	const char *fingerprint;
	bool read_only;   /* the client may receive, not send */
	bool no_relay;
	const char *root; /* root directory of the client, absolute; NULL: the server's */
	const char *name; /* one word for logs, or NULL */
	bool write_once;  /* the client may add files, not read, list, replace or remove them */
	bool authority;   /* a certificate authority: the permissions are the most that its certificates can give */
	uint64_t quota_bytes; /* limit of the space used beneath the client's directory; 0: none */
};
PTCP_API void ptcp_permission_init(struct ptcp_permission *p);

/* Adds or replaces the client's line in authorized_clients, atomically. Applies from the next connection on; sessions
 * that are no longer permitted end within a second. PTCP_EUSAGE: malformed fingerprint, root or name. */
PTCP_API int ptcp_authorize(const char *config_dir, const struct ptcp_permission *p,
    struct ptcp_err *e);
/* Removes the client's line, and the line of an authority. A host that trusts an authority also remembers the key as
 * revoked, of a client or server, until it is authorized again. PTCP_EUSAGE: neither. */
PTCP_API int ptcp_revoke(const char *config_dir, const char *fingerprint, struct ptcp_err *e);
/* Calls `each` on this thread for every authorized client, in the order of the file; the permission and its strings are
 * valid during the call. Malformed lines authorize nobody and are left out. PTCP_ECONFIG: the file cannot be read, or
 * other users can change it. */
typedef void ptcp_permission_fn(void *arg, const struct ptcp_permission *p);
PTCP_API int ptcp_authorized_each(const char *config_dir, ptcp_permission_fn *each, void *arg, struct ptcp_err *e);

/* Trusts a server, "HOST[:PORT]", by its fingerprint, in place of earlier ones; with `authority` all hosts of these
 * patterns, "NAME,*.SITE", that have a certificate of the authority with the fingerprint. A line of known_hosts.
 * PTCP_EUSAGE: malformed; PTCP_EREFUSED: the key is revoked. */
PTCP_API int ptcp_host_trust(const char *config_dir, const char *host, const char *fingerprint, bool authority,
    struct ptcp_err *e);
/* Removes all lines of the server, or of authorities for exactly these patterns. PTCP_EUSAGE: there is none. */
PTCP_API int ptcp_host_forget(const char *config_dir, const char *host, struct ptcp_err *e);

/* A certificate: an authority, an Ed25519 key, states who a client is and what it may do at servers that trust the
 * authority (ptcp_authorize()), or for which hosts a server answers (@cert-authority in known_hosts). Strings are
 * borrowed. */
struct ptcp_certificate {
	size_t size;
	const char *fingerprint; /* fingerprint of the certified identity */
	const char *name;        /* name of a client, one word; NULL: */
	const char *hosts;       /* hosts of a server: names or patterns, separated by commas; or NULL */
	const char *root;        /* directory of a client beneath the root of the authority; or NULL */
	bool read_only, no_relay, write_once;
	int64_t from_s, until_s; /* validity, since 1970, UTC */
	uint64_t quota_bytes;    /* quota of a client; 0: none of its own */
	/* Set by ptcp_certificates_each(). */
	const char *authority;   /* fingerprint */
	char serial[17];         /* 16 hexadecimal digits */
};
PTCP_API void ptcp_certificate_init(struct ptcp_certificate *c);
/* Makes the key of a certificate authority, a file with mode 0600; PTCP_EUSAGE: the file exists. */
PTCP_API int ptcp_authority_generate(const char *path, char fingerprint[PTCP_FINGERPRINT_BYTES], struct ptcp_err *e);
/* The fingerprint of an existing authority. */
PTCP_API int ptcp_authority_show(const char *path, char fingerprint[PTCP_FINGERPRINT_BYTES], struct ptcp_err *e);
/* Signs a certificate with that key and writes it as a line of text. PTCP_EUSAGE: malformed. */
#define PTCP_CERTIFICATE_BYTES 1024
PTCP_API int ptcp_certificate_sign(const char *key_path, const struct ptcp_certificate *c,
    char line[PTCP_CERTIFICATE_BYTES], struct ptcp_err *e);
/* Adds a certificate to those that this host presents, in the place of an earlier one of this authority.
 * PTCP_EUSAGE: for another identity, damaged, or no room. */
PTCP_API int ptcp_certificate_install(const char *config_dir, const char *line, struct ptcp_err *e);
/* Calls `each` on this thread for every certificate of this host. */
typedef void ptcp_certificate_fn(void *arg, const struct ptcp_certificate *c);
PTCP_API int ptcp_certificates_each(const char *config_dir, ptcp_certificate_fn *each, void *arg, struct ptcp_err *e);
/* Calls `each` for the certificate of a line. PTCP_EUSAGE: it is none, or its signature is invalid. */
PTCP_API int ptcp_certificate_read(const char *line, ptcp_certificate_fn *each, void *arg, struct ptcp_err *e);
/* Accepts the certificate with this serial number no longer. */
PTCP_API int ptcp_certificate_revoke(const char *config_dir, const char *serial, struct ptcp_err *e);

/* ---- Logs and events ------------------------------------------------------ */

enum ptcp_log_level { PTCP_LOG_ERROR, PTCP_LOG_WARN, PTCP_LOG_INFO, PTCP_LOG_DEBUG, PTCP_LOG_TRACE };

/* One line "key=value ..", without a newline, names escaped. Called from any thread of the library; must not call the
 * library. */
typedef void ptcp_log_fn(void *arg, enum ptcp_log_level level, const char *component,
    const char *msg);

enum ptcp_event_type {
	PTCP_EVENT_START,    /* connected, authenticated, agreed */
	PTCP_EVENT_PROGRESS, /* about five times a second, from START on */
	PTCP_EVENT_STREAMS,  /* the number of streams changed: from, to, text = reason */
	PTCP_EVENT_FILE,     /* a regular file or link is done, skipped or failed */
	PTCP_EVENT_WARNING,  /* text */
	PTCP_EVENT_DETACHED, /* the servers continue the transfer alone: text = name of the job, for ptcp_status_new() */
	PTCP_EVENT_STATUS,   /* state of a job: left */
	PTCP_EVENT_PATHS,    /* selected candidate paths changed: paths, text = reason */
	PTCP_EVENT_RECONNECTING, /* the connection is lost: attempt, in_s, text = reason; until PROGRESS has more bytes */
	PTCP_EVENT_WAITING,  /* before START: the server or a relay is busy: ahead, text = reason or NULL */
	PTCP_EVENT_MOVERS,   /* a mover has joined or is lost, or the command of movers has printed a line: to = number of
	                      * movers now, text */
	PTCP_EVENT_CONGESTION, /* congestion control of the sender's streams, at the start and after a change: congestion,
	                          text = reason */
	PTCP_EVENT_DEADLINE, /* the choice for limits.deadline, at first and when it changes: deadline, text = sentence */
	PTCP_EVENT_ADVICE,   /* answer so far of ptcp_advise_new(), after 20 s of probing, then every 5 s: advice */
};

struct ptcp_status;
struct ptcp_advice;

enum ptcp_file_status { PTCP_FILE_DONE, PTCP_FILE_SKIPPED, PTCP_FILE_FAILED,
	PTCP_FILE_DELETED, /* removed at the destination; the path is that of the destination */
	PTCP_FILE_VANISHED /* removed at the source between listing and sending: no failure */ };

/* One of the paths of a transfer, in the order of ptcp_transfer_opts.paths, or .candidates. */
struct ptcp_path {
	const char *candidate;        /* as in the options; "" without paths */
	uint64_t bytes;               /* file data carried in this run */
	double rate_bps;              /* mean over the last seconds */
	unsigned streams;             /* connected */
	/* Receiving from a server: as the kernel of the sending host has it, for the first hop of the path; 0:
	 * unknown */
	double rtt_s, min_rtt_s;      /* smallest of the streams that send */
	uint64_t segments, retransmits; /* sent, with retransmits; of all streams */
};

/* A mover of a striped transfer. */
struct ptcp_mover_stats {
	const char *host;    /* as reported by the mover: escape before printing */
	uint64_t bytes;      /* bytes of file data */
	double rate_bps;     /* mean over the last second */
	unsigned streams;
};
struct ptcp_file_digest;
/* How a transfer keeps its deadline. */
struct ptcp_deadline {
	int64_t at_s;              /* since 1970; 0: no deadline */
	bool possible;             /* is to be met, as far as known; at the end: was met */
	unsigned streams;          /* at most; 0: as many as the impact permits */
	double floor_bps;          /* rate down to which the streams yield to competing flows; INFINITY: they do not yield */
	double impact_percent;     /* predicted impact of these streams, if they do not yield; NAN: not known */
	double end_s;              /* time of the end, since 1970: expected at the latest; NAN: not known */
	/* The deadline cannot be met: a larger impact that would meet it, or that comes nearest, and its end; NAN: not
	 * known */
	double larger_impact_percent, larger_end_s;
};
struct ptcp_event {
	enum ptcp_event_type type;
	/* START */
	const char *peer;             /* "ADDR:PORT" */
	const char *peer_fingerprint;
	/* PROGRESS (also valid at START) */
	struct ptcp_progress progress;
	double rate_bps;              /* mean over the last seconds */
	double eta_s;                 /* estimated time left, or NAN */
	/* STREAMS; MOVERS has only `to` */
	unsigned from, to;
	/* FILE */
	const char *path;             /* raw bytes, relative to the named source; escape before printing */
	enum ptcp_file_status status;
	/* WARNING: a sentence; FILE: reason of failing, vanishing or skipping, or NULL; STREAMS, PATHS: reason */
	const char *text;
	int code;                     /* FILE failed or vanished: a PTCP_E* */
	int sys;                      /* its cause, as in struct ptcp_err */
	const struct ptcp_status *left; /* STATUS */
	const struct ptcp_path *paths; /* at least one; at START all numbers are 0 */
	size_t n_paths;
	/* WARNING that a path has no connection: the path, one of `paths`, and the hop that cannot be reached,
	 * counted from 0 on the client's side; the last one is the server. Once a path, until it connects. Else NULL */
	const struct ptcp_path *failed_path;
	unsigned failed_hop;
	/* RECONNECTING */
	unsigned attempt;             /* counted from 1 */
	double in_s;                  /* pause before the attempt */
	/* FILE */
	uint64_t size_bytes;          /* 0 for a link; UINT64_MAX: unknown, of a failed file and between two servers */
	bool is_link;                 /* symbolic or hard; false if unknown */
	const struct ptcp_file_digest *digest; /* those of wire.digest, of a file that was sent; else NULL */
	unsigned n_digests;
	/* WAITING: number of sessions before this one in the server's queue. PTCP_AHEAD_UNKNOWN: the queue, or a
	 * relay, is full; the task connects again later */
	unsigned ahead;
	const char *congestion;       /* CONGESTION: "cubic" .. */
	const struct ptcp_advice *advice; /* ADVICE: its ranges narrow while probing goes on */
	/* START, PROGRESS and MOVERS of a striped transfer: the movers now */
	const struct ptcp_mover_stats *movers;
	size_t n_movers;
	const struct ptcp_deadline *deadline; /* DEADLINE */
};
#define PTCP_AHEAD_UNKNOWN UINT32_MAX

/* Called on the thread that runs the task; contents of ev are valid during the call only. May call
 * ptcp_task_cancel(). */
typedef void ptcp_event_fn(void *arg, const struct ptcp_event *ev);

/* ---- Tasks: work of a client ------------------------------------------------ */

/* A transfer, query, advice, measurement or timing, created by a function ptcp_*_new(struct ptcp_task **out, ..),
 * which copies all arguments and does not connect. Results are returned by functions named after the kind of task. */
struct ptcp_task;

/* Blocks until the task is done, failed or canceled; once per task. Returns 0 or the task's error. PTCP_ECANCELED:
 * interrupted. */
PTCP_API int ptcp_task_run(struct ptcp_task *t, struct ptcp_err *e);

/* Runs the task from an event loop of the host program: start the task; whenever the descriptor is readable or the
 * timeout has passed, step and query the timeout again. poll(), epoll, libuv (uv_poll_t and uv_timer_t) and glib all
 * have these two primitives, so this header depends on no event loop; contrib/examples/receive.c is an example in 30
 * lines. Threads of the library do the bulk work. A step makes decisions and calls the callbacks; no step blocks
 * except the last, which joins the threads. A task ends after the programs that it has started (ssh, a launch command),
 * which are killed if they go on for 2.5 seconds. */
PTCP_API int ptcp_task_start(struct ptcp_task *t, struct ptcp_err *e);
/* The descriptor to watch, for reading only; constant for the lifetime of the task. */
PTCP_API int ptcp_task_fd(const struct ptcp_task *t);
/* Milliseconds until the next step is due; 0: now; -1: no timeout, wait for the descriptor. */
PTCP_API int ptcp_task_timeout_ms(const struct ptcp_task *t);
/* 1: continue. 0 or negative: the task has ended, with the return value of ptcp_task_run(). */
PTCP_API int ptcp_task_step(struct ptcp_task *t, struct ptcp_err *e);
/* Any thread and signal handlers; idempotent; also before the run. */
PTCP_API void ptcp_task_cancel(struct ptcp_task *t);
/* NULL is fine. Cancels a running task and waits for its end. May wait for the resolver, which cannot be
 * interrupted. */
PTCP_API void ptcp_task_free(struct ptcp_task *t);

/* ---- Transfers ------------------------------------------------------------ */

/* Values as on the wire. */
enum ptcp_cipher {
	PTCP_CIPHER_AES128GCM = 0,
	PTCP_CIPHER_AES256GCM = 1,
	PTCP_CIPHER_CHACHA20 = 2,
	PTCP_CIPHER_NONE = 3, /* data streams unencrypted after an authenticated start; control frames stay in TLS */
	PTCP_CIPHERS
};
/* "aes128gcm" ..; NULL for an unknown value; parse returns false for an unknown name. */
PTCP_API const char *ptcp_cipher_name(enum ptcp_cipher c);
PTCP_API bool ptcp_cipher_parse(const char *name, enum ptcp_cipher *out);

/* Speed of one core of this host, encrypting with a cipher, or hashing as in a transfer: bit/s, measured for
 * `seconds`, above 0 and at most 60. PTCP_EUSAGE for PTCP_CIPHER_NONE. */
PTCP_API int ptcp_cipher_speed(enum ptcp_cipher c, double seconds, double *bps, struct ptcp_err *e);
PTCP_API int ptcp_hash_speed(double seconds, double *bps, struct ptcp_err *e);
/* The OpenSSL that encrypts, such as "3.0.22". */
PTCP_API const char *ptcp_openssl_version(void);

/* What the file system of a directory keeps of files, tried with hidden files that are removed again. */
struct ptcp_file_system {
	char type[32];     /* "ext4"; "": unknown */
	char lacks[200];   /* "no modes or hard links, times to 10 ms"; "": nothing */
	double time_s;     /* times are multiples; 0: none are kept */
	uint32_t name_max; /* longest name in bytes */
	char refused[16];  /* characters forbidden in names */
};
PTCP_API int ptcp_file_system_try(const char *dir, struct ptcp_file_system *out, struct ptcp_err *e);

/* Leftovers: part files, journals, unfinished links and marks of interrupted transfers. */
struct ptcp_leftover {
	const char *path;    /* below the directory; valid, like `why`, during the call only */
	uint64_t bytes;
	double age_s;        /* time since the last change */
	const char *why;     /* why it cannot be removed; NULL: removed, or would be in a dry run */
	int sys;             /* cause, as in struct ptcp_err; 0 without `why` */
};
struct ptcp_clean_opts {
	size_t size;
	double older_s;      /* min age; default: 86400 */
	bool dry_run;        /* remove nothing */
	/* Each leftover, on the thread that runs ptcp_clean() or the task; or NULL */
	void (*found)(void *arg, const struct ptcp_leftover *l);
	void *arg;
};
struct ptcp_clean_result {
	size_t size;
	uint64_t files, bytes;   /* removed */
	uint64_t in_use, recent; /* retained: of running transfers; younger than older_s */
	uint64_t failed;         /* not removed */
	uint64_t unlisted;       /* part of `files` and `failed` without paths: a server lists the first 10,000 */
};
PTCP_API void ptcp_clean_opts_init(struct ptcp_clean_opts *o);
PTCP_API void ptcp_clean_result_init(struct ptcp_clean_result *r);
/* Removes the leftovers of this user in a local directory and below, without following links. Files of running
 * transfers, which are locked, and final files are never removed. Blocks on disk. PTCP_EPARTIAL if some leftovers
 * cannot be removed. For a directory on another host: ptcp_clean_new(). */
PTCP_API int ptcp_clean(const char *dir, const struct ptcp_clean_opts *o, struct ptcp_clean_result *r,
    struct ptcp_err *e);

/* An unknown host: return true to trust the fingerprint from now on (it is added to known_hosts). Called while no
 * connection is open; may block, for example to ask the user. */
typedef bool ptcp_trust_fn(void *arg, const char *host, const char *fingerprint);

/* Through SSH, no ptcp is found on the host: returns 1 and a static executable of this version in *path (valid until
 * the next call), to be copied to ~/.cache/ptcp/VERSION/ there, for example after asking the user; 0: nothing is
 * copied; or a negative PTCP_E*. The host has the same system and architecture as this one. Called on the thread
 * that runs the task; may block. */
typedef int ptcp_install_fn(void *arg, const char *host, const char **path, struct ptcp_err *e);

/* Filter rule. Patterns as in rsync, see ptcp-filter(7). The first rule that matches a path decides; a path without a
 * matching rule is transferred. Excluding a directory excludes its contents. */
struct ptcp_rule {
	bool include;
	const char *pattern;
	const char *filter; /* instead of both: a rule as of ptcp send --filter, such as ": .rules"; NULL: none */
};

/* When received files are synced to disk. */
enum ptcp_fsync {
	PTCP_FSYNC_GROUP = 0, /* flushed in groups, before the files get their names */
	PTCP_FSYNC_NONE,      /* left to the system */
	PTCP_FSYNC_FILE,      /* file by file */
};

/* Whether blocks of an existing file, of another content than the source, are compared by hash, and only those that
 * differ transferred. */
enum ptcp_delta {
	PTCP_DELTA_AUTO = 0, /* while that takes less time than to transfer the equal blocks */
	PTCP_DELTA_ON,
	PTCP_DELTA_OFF       /* files are transferred whole */
};

/* Attributes to preserve at the destination. */
struct ptcp_preserve {
	bool times, mode, links; /* true */
	bool owner;              /* user and group, by name or else by number, where permitted */
	bool xattr;              /* extended attributes; of root, who receives, not only user.* */
	bool acl;                /* with mode: POSIX ACLs, users and groups by name or else by number */
	bool setid;              /* with mode: also the setuid, setgid and sticky bits */
	/* Changes on the way, as by ptcp-send(1); NULL, the default: none. Not between two servers */
	const char *chmod;       /* with mode: "D755,F644", "go-w" */
	const char *chown;       /* with owner: "USER", "USER:GROUP" or ":GROUP", for all that the next two do not name */
	const char *user_map, *group_map; /* with owner: "FROM:TO,..", the first match counts */
	bool numeric_ids;        /* owners and ACLs by number, not by name */
};

/* Numbers of paths. */
struct ptcp_path_opts {
	/* For each of n_paths: shares, in any unit, not negative: streams are divided in proportion, at least one
	 * for each path; a free stream takes the next block. NULL: equal shares */
	const double *shares;
	/* For each of n_paths: bytes that each relay of the path may spool while the next hop accepts less than
	 * arrives, if the relay has storage (ptcp_server_opts.relay_storage_bytes): divided among the streams of the
	 * path, in whole MiB each. If any value is not 0, the transfer, and likewise a silent path, fails only after
	 * 120 timeouts of the peer (an hour) without progress, and `streams` of 0 does not adapt to throughput.
	 * NULL: no spooling */
	const uint64_t *spool_bytes;
	unsigned n_selected; /* candidates in use at a time; 0: 2 */
	/* For each of n_candidates: the bandwidth as known in advance, in bit/s (0: unknown): the first paths are
	 * drawn in proportion. NULL: all unknown */
	const double *candidate_bps;
};

/* In the place of a file. */
struct ptcp_pipe {
	/* Not below 0: the descriptor that ptcp_send_new() reads for its only source "-", or ptcp_recv_new() writes
	 * for the destination "-": a pipe, socket, terminal or file, from its position on. Borrowed until the task
	 * is freed; used by a thread of the task from PTCP_EVENT_START on. A send reads to the end, at most 32 TiB,
	 * and keeps up to 64 MiB in memory until they are verified; `dest` must name the file, which gets its name
	 * at the end, with the mode of a new file. A receive writes one regular file in order, and ends after its
	 * last byte is written. -1: "-" is a path */
	int fd;
	/* Of a send, at the end of the input, on a thread of the task: may block; for example, waits for the program
	 * that wrote the input. A negative PTCP_E* fails the file: nothing gets the name. NULL: the end of the input
	 * is the end of the file */
	int (*ended)(void *arg, struct ptcp_err *e);
};

/* Entries that are left out; neither delete_extra nor remove_sources touches them. 0, NULL and false, the defaults:
 * none. The times are ages before the call, such as "7d", dates, such as "2026-11-30" or "2026-11-30T18:00", or "@"
 * and seconds since 1970. */
struct ptcp_limits {
	uint64_t min_size, max_size;          /* smaller and larger files, in bytes */
	const char *newer_than, *older_than;  /* files last changed before, and since, the time */
	uint32_t max_depth;                   /* entries more levels below a source */
	/* The transfer ends with PTCP_ESTOPPED, unless it is complete before: so many seconds after its start (0: none), or
	 * at a time, a date as above, or "06:00" by the local clock, the next one (NULL: none). The same transfer resumes.
	 * Not with pipe.fd or detach */
	double stop_after_s;
	const char *stop_at;
	/* The transfer ends by this time, if it can: written as stop_at, or a duration from the start, such as "2h". Its streams
	 * yield to competing flows, down to the rate that the rest needs, and are as few as that permits; impact_percent is
	 * the limit, with 0 they only yield. NULL: none. Not with pipe.fd, movers, a congestion control, or between two
	 * servers */
	const char *deadline;
};

/* What happens to older files and links of the destination. */
struct ptcp_older {
	uint32_t max_delete;     /* limit of delete_extra; PTCP_MAX_DELETE_CAREFUL */
	/* Times whose whole seconds differ by no more are equal: such a file is up to date, if its size is the source's, and
	 * keeps its time; `update` skips no such file. 0: times are equal to the nanosecond */
	uint32_t modify_window_s;
	bool delete_excluded;    /* with delete_extra: removes also what `rules` leave out of the sources */
	/* What is replaced or removed stays, as a backup: its name gets `suffix`, or, in the directory backup_dir, the
	 * path that it has below the destination. A backup replaces an earlier one of its name; delete_extra retains
	 * backups. Directories have no backups. Not between two servers */
	bool backup;
	const char *backup_dir;  /* implies backup; relative to the destination; made if missing. NULL: beside the file */
	const char *suffix;      /* without "/"; NULL: "~", or with backup_dir none */
	/* Directories with older copies, relative to the destination, at most 20, of one kind. A file that is missing at the
	 * destination, or differs there, and has the size, time and attributes of a file of the same path in one of these,
	 * becomes a hard link of that file (link_dest), is left out, and removed where it exists (compare_dest), or, only if
	 * it is missing, is copied at the destination (copy_dest). So is with each a missing file that has only size and
	 * time, and gets its own attributes. With link_dest, files and links that have several names are replaced rather than
	 * changed: older copies stay as they are. Symbolic links are linked and left out likewise. Not with remove_sources or
	 * wire.inplace, nor between two servers; with checksum only link_dest */
	const char *const *link_dest;
	size_t n_link_dest;
	const char *const *compare_dest;
	size_t n_compare_dest;
	const char *const *copy_dest;
	size_t n_copy_dest;
	/* Files and links whose names exist fail: PTCP_EREFUSED. The receiver decides while it names a complete file, so that
	 * of several clients that create a file one succeeds; a link is examined before it is made */
	bool exclusive;
	/* The destination, a file, is replaced only if it has this version, SIZE@SECONDS.NANOSECONDS with its time of change:
	 * else PTCP_EREFUSED with ESTALE. The receiver decides while it names the complete file, and ptcp writes the file
	 * from nowhere else meanwhile; programs that write it without ptcp may. With one source, a file, or standard input;
	 * not between two servers, nor with inplace, delete_extra or exclusive */
	const char *if_match;
};

/* How the data is sent, and how much of it. */
struct ptcp_wire_opts {
	/* The sender compresses blocks by this level of zstd, 1 (fastest) to PTCP_COMPRESS_MAX, except for blocks
	 * that do not shrink. PTCP_COMPRESS_AUTO: by the level with which most data arrives per second, as measured,
	 * or not at all. 0: not at all, as with movers */
	int compress;
	enum ptcp_delta delta; /* PTCP_DELTA_AUTO; off where movers write the files */
	/* Files that the destination lacks are made from files that it has under other names, if their content is the
	 * same. Always with delete_extra; never with PTCP_DELTA_OFF or no_resume */
	bool detect_renames;
	/* Send although files do not fit into the free space, inodes are too few, or the destination takes no new
	 * names; otherwise PTCP_ENOSPC or PTCP_EIO. What is mounted below the destination is not examined */
	bool no_preflight;
	/* Existing files are written to instead of being replaced: inode and hard links stay, and no space is needed twice.
	 * A file is not whole meanwhile, nor after an interruption, until the same transfer has completed it. Not where
	 * movers write the files */
	bool inplace;
	/* Digests for the FILE events of sent files, such as "sha256,md5", computed while the files are sent, of the bytes that
	 * were sent. PTCP_ENOTYET: of a receiving transfer, of pipe.fd and between two servers. NULL: none */
	const char *digest;
	/* The digest of the only source, a file, such as "sha256:2c26..", all digits: a file with another digest fails
	 * by PTCP_EVERIFY, and is not published. The FILE event has the digest, too. Not with inplace, pipe.fd and
	 * movers, nor where `digest` is not available. NULL: any digest */
	const char *expect;
	/* Of connections that this host makes, but not its movers, relays and ssh: they leave from this numeric address, or
	 * through this network interface. NULL: as routed */
	const char *bind;
	/* Of the same connections the class of service (DSCP): "le", "df", "cs0" to "cs7", "af11" to "af43", "va", "ef", or
	 * 0 to 63. A server answers "le" alike. NULL: "le" with impact_percent 0, else none */
	const char *dscp;
};

/* The ephemeral server on the remote host. */
struct ptcp_remote_start {
	const char *ptcp;           /* with SSH: command on the remote host; NULL: "ptcp", or the copy of `install` */
	unsigned port;              /* where that command listens; 0: any; */
	bool port_or_any;           /* any free port will do if the port is taken there */
	ptcp_install_fn *install;   /* asks, with SSH and without `ptcp`; NULL: nothing is copied */
	/* For a transfer with one remote side, "ptcp://HOST/PATH": command line, split into words, {host} expanded
	 * to HOST, that starts an ephemeral server (`ptcp` serve --ephemeral) instead of a permanent one. The server
	 * serves this transfer only, at `port`, with any absolute PATH of its user, and proves its identity through
	 * the command. It runs in its own session, without a terminal, and its process group ends with the transfer.
	 * Relays are permanent servers all the same. NULL: a permanent server */
	const char *launch;
};

/* A striped transfer: movers, processes on other hosts with the file system of the sources or of the destination,
 * read and send, or receive and write, the data; this process decides, and no block passes through it. Not with
 * pipe.fd or impact_percent 0. Movers may join and leave at any time. */
struct ptcp_mover_start {
	/* Command line, split into words, to which " PTCP mover --join FILE" is added; without hosts run once (srun,
	 * mpirun: one command, many movers), else once per host, {host} expanded. NULL: no movers, or with `file`
	 * started by the user */
	const char *command;
	const char *const *hosts;
	size_t n_hosts;
	const char *ptcp;           /* program on those hosts; NULL: "ptcp" */
	/* The invitation for movers, which the task writes (mode 0600) and removes, on a file system that they
	 * share; "-": they read it from the standard input of the command. NULL: a file in config_dir */
	const char *file;
	const char *listen;         /* where movers connect to, as ptcp_server_opts.listen; NULL: every address, a free port */
	double wait_s;              /* wait for the first mover, and after the loss of the last one; 10, at least 0.5 */
	/* Stripe of the movers' file system, a multiple of 4 KiB up to 1 GiB: movers share a file at multiples of
	 * it. 0: any size that divides 64 MiB */
	uint64_t stripe_bytes;
};

/* Switches are members of type bool with the names and meanings of <ptcp/options.h>; each of the others has its
 * range there. A value out of its range is PTCP_EUSAGE. Further meaning of some switches:
 *
 *   size_only, update, ignore_existing: without these, and unless ignore_times, files of the same size and mtime are
 *     up to date, and not read, unless checksum
 *   delete_extra: once all files have ended, removes the entries of received directories that the source does not have,
 *     except excluded ones: of a destination that receives the contents of one directory, and of directories that are
 *     sources themselves. A failed source keeps everything, a directory that failed in part its own entries. With more
 *     than older.max_delete such entries none is removed, and the task fails; with PTCP_MAX_DELETE_CAREFUL also with more
 *     than PTCP_MAX_DELETE, for an empty source, or with more than 100 and more than the source has. Not between two
 *     servers, nor with `files`
 *   checksum: where the hashes match only attributes are set. Not with no_verify, ignore_times or size_only
 *   remove_sources: files and links, once the receiver has verified them and made them durable; directories stay. A
 *     source that changed meanwhile stays, and fails. Not with no_verify or PTCP_FSYNC_NONE, nor between two servers
 *   dest_is_file: an existing directory is refused, instead of receiving the file. With one source, not between two
 *     servers
 *   partial: with pipe.fd of a send: if the file fails or the transfer is cut off, its beginning, as far as verified,
 *     is kept as `dest` + ".partial"
 *   direct_io: by movers, too; with SSH or remote.launch, also on the remote host. A file system without direct I/O
 *     costs one warning, and uses the page cache. Not between two servers
 *   detach: between two servers: return after the start (PTCP_EVENT_DETACHED); the servers continue
 *   file_events: PTCP_EVENT_FILE also for success */
struct ptcp_transfer_opts {
	size_t size;
#define PTCP_SWITCH_MEMBER(member, ...) bool member;
	PTCP_OPTIONS_EXISTING(PTCP_SWITCH_MEMBER, PTCP_SWITCH_MEMBER, PTCP_NO_ROW, PTCP_NO_ROW)
	PTCP_OPTIONS_SELECTION(PTCP_SWITCH_MEMBER, PTCP_SWITCH_MEMBER, PTCP_NO_ROW, PTCP_NO_ROW)
	PTCP_OPTIONS_SYMLINKS(PTCP_SWITCH_MEMBER, PTCP_SWITCH_MEMBER, PTCP_NO_ROW, PTCP_NO_ROW)
	PTCP_OPTIONS_COPYING(PTCP_SWITCH_MEMBER, PTCP_SWITCH_MEMBER, PTCP_NO_ROW, PTCP_NO_ROW)
	PTCP_OPTIONS_WRITING(PTCP_SWITCH_MEMBER, PTCP_SWITCH_MEMBER, PTCP_NO_ROW, PTCP_NO_ROW)
	PTCP_OPTIONS_BETWEEN_SERVERS(PTCP_SWITCH_MEMBER, PTCP_SWITCH_MEMBER, PTCP_NO_ROW, PTCP_NO_ROW)
	PTCP_OPTIONS_SPEED(PTCP_SWITCH_MEMBER, PTCP_SWITCH_MEMBER, PTCP_NO_ROW, PTCP_NO_ROW)
#undef PTCP_SWITCH_MEMBER
	struct ptcp_preserve preserve;
	struct ptcp_remote_start remote;
	struct ptcp_mover_start mover;
	const char *config_dir;
	unsigned streams;           /* 1 to PTCP_STREAMS_MAX; 0: chosen from observed throughput, see impact_percent */
	enum ptcp_cipher cipher;
	int family;                 /* 0, 4 or 6 */
	/* Give up after timeout_s without progress of the peer; 30, at least 0.5. The peer's is used if it is
	 * longer, but at most retry_for_s; once data has moved, retry_for_s is used if it is longer, but at most the
	 * server's max_linger_s */
	double timeout_s;
	/* Congestion control of the sender's streams: "cubic", "bbr", "reno", or "system": the setting of the
	 * sender's host. NULL or "auto": with streams 0, and for measurements and advice, cubic or reno where the
	 * sender's kernel permits; a transfer changes to bbr where random loss and no competing flows are found.
	 * Else as "system" */
	const char *congestion;
	/* "SHA256:.." or "HOST[:PORT]=SHA256:..": trusted for this transfer, not added to known_hosts */
	const char *const *fingerprints;
	size_t n_fingerprints;
	ptcp_trust_fn *trust;       /* NULL: an unknown host is refused */
	ptcp_event_fn *event;       /* NULL: silent */
	ptcp_log_fn *log;           /* NULL: no log */
	enum ptcp_log_level log_level;
	void *arg;                  /* argument of the callbacks */
	const struct ptcp_rule *rules; /* ordered; PTCP_EUSAGE for a malformed pattern */
	size_t n_rules;
	enum ptcp_fsync fsync;      /* PTCP_FSYNC_GROUP */
	const char *ssh;            /* with SSH: program and first arguments, split into words; NULL: "ssh" */
	/* Parallel paths, with servers only: "HOST[:PORT]" through that relay, "A,B" through A, then B, "direct"
	 * through no relay. Without paths: direct. Streams are divided among the paths, at least one for each. */
	const char *const *paths;
	size_t n_paths;             /* at most PTCP_PATHS_MAX */
	/* Rate limit of all streams together, in the direction of the data: "200Mbit/s", or a timetable in local
	 * time "08:00-18:00=200Mbit/s,else=0", where 0 is no limit (ptcp-send(1)); between two servers no timetable.
	 * NULL: no limit */
	const char *rate;
	/* with streams 0: */
	double impact_percent;      /* 10; max slowdown of each competing flow, compared with one stream of ours; 0 to 100 */
	unsigned max_streams;       /* 32; 1 to PTCP_STREAMS_MAX; 4 for each mover, if that is more */
	/* Directory of the path history (file `paths`), used by later transfers and advice, unless no_history: */
	const char *state_dir;      /* NULL: $XDG_STATE_HOME/ptcp, else ~/.local/state/ptcp */
	struct ptcp_path_opts path;
	/* Instead of paths: candidates, written alike, of which path.n_selected are in use at a time. Unless the
	 * transfer ends before, or `rate` is reached, each candidate carries data for a few seconds, and the fastest
	 * remain in use; a path that fails or slows down is replaced. `rate` is divided among the paths in use by
	 * their throughput. */
	const char *const *candidates;
	size_t n_candidates;        /* at most PTCP_PATHS_MAX */
	/* Once data has moved, time to try again after a connection is lost: in the same session, as long as the
	 * server keeps the session; or, in transfers from or to this host, in a new session that resumes the
	 * transfer. 600; 0: not at all; at most 30 days */
	double retry_for_s;
	double wait_s;              /* how long to wait for a busy server or relay; 60, 0: PTCP_EBUSY at once; at most 86400 */
	/* Entries below the only source, a directory, whose contents are otherwise transferred: files, links, and
	 * whole directories, with the directories that lead to them. A path that does not exist is a failed file.
	 * Not between two servers; from a remote source at most 4 MiB of paths. NULL: all */
	const char *const *files;
	size_t n_files;
	struct ptcp_pipe pipe;
	struct ptcp_older older;
	struct ptcp_limits limits;
	struct ptcp_wire_opts wire;
};
#define PTCP_PATHS_MAX 16
PTCP_API void ptcp_transfer_opts_init(struct ptcp_transfer_opts *o);

/* Options of a transfer, for programs that show them, or take them from another language. */
enum ptcp_option_type {
	PTCP_OPTION_SWITCH,   /* bool */
	PTCP_OPTION_WORD,     /* int: number of a word in `value`, separated by | */
	PTCP_OPTION_INT, PTCP_OPTION_UNSIGNED, PTCP_OPTION_UINT32, PTCP_OPTION_UINT64, PTCP_OPTION_DOUBLE,
	PTCP_OPTION_TEXT,     /* const char * */
	PTCP_OPTION_TEXTS,    /* const char *const *, followed by their number, size_t */
	PTCP_OPTION_DOUBLES, PTCP_OPTION_UINT64S, /* one for each text of the list `value` */
	PTCP_OPTION_RULES,    /* const struct ptcp_rule *, followed by their number, size_t */
	PTCP_OPTION_CALLBACK
};
struct ptcp_option {
	const char *member;   /* "update", "preserve.times" */
	enum ptcp_option_type type;
	size_t at;            /* offset in struct ptcp_transfer_opts */
	double initial, min, max; /* ranges of numbers: `initial`, or from min to max */
	const char *name;     /* long option of the command, "": none */
	const char *value;    /* as in <ptcp/options.h>; NULL: a switch */
	const char *help;
};
/* The i-th option, from 0 on; NULL after the last one. Static. */
PTCP_API const struct ptcp_option *ptcp_transfer_option(size_t i);
/* Whether ptcp_manage_new() and ptcp_read_new(), with `writes` ptcp_write_new(), take the option. They refuse others, such
 * as a dry run, that have not their initial value. */
PTCP_API bool ptcp_option_of_files(const struct ptcp_option *option, bool writes);

/* Send: local paths to a remote `dest`, or paths of one server to another server. Receive: remote `srcs`, all on one
 * host, into the local path `dest`. Remote forms: "ptcp://HOST[:PORT]/PATH", percent-encoded, HOST a name, an IPv4
 * address or a bracketed IPv6 address, for a server; "[USER@]HOST:PATH" or "ssh://[USER@]HOST[:PORT]/PATH" through
 * SSH. The ssh process inherits standard error, and libuv handles SIGCHLD meanwhile (and waits for that process
 * only). Destination names are as with cp -r: below dest if dest is a directory, ends with a slash or has several
 * sources; otherwise the single source becomes dest. A slash at the end of a source directory means its contents.
 * PTCP_EUSAGE: malformed arguments; PTCP_ENOTYET: remote sources on several hosts, and SSH between two remote hosts.
 * ptcp_task_run() returns 0 if every file is complete and verified under its name; PTCP_EPARTIAL: files failed (with
 * an event each), the rest is done. */
PTCP_API int ptcp_send_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e);
PTCP_API int ptcp_recv_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e);

/* Result; valid after the end, with any outcome. */
struct ptcp_result {
	size_t size;
	struct ptcp_progress progress; /* progress at the end */
	uint64_t warnings;
	double seconds;
	unsigned advised_streams;        /* streams chosen from observed throughput; 0: not chosen, the next three are NAN */
	double predicted_bps;            /* throughput of these streams */
	double predicted_impact_percent; /* slowdown of each competing flow, compared with one stream */
	double measured_bps;             /* observed throughput of these streams; NAN: used too briefly */
	bool from_history;               /* predicted from earlier transfers, and confirmed */
	/* What the budget cost: streams that would have had the highest throughput; 0: the budget did not limit the
	 * streams. */
	double budget_percent;
	unsigned fastest_streams;
	double fastest_bps, fastest_impact_percent;
	uint64_t deleted;                /* entries removed at the destination */
	uint64_t vanished;               /* sources that vanished before they were sent */
	/* Part of progress.files and file_bytes that this run found complete at the destination, or that a rule kept
	 * there; UINT64_MAX: unknown, between two servers without file_events */
	uint64_t same_files, same_bytes;
	struct ptcp_deadline deadline;   /* impact_percent: the largest, NAN: unknown for a while; end_s: the end */
	double spent_s[PTCP_SPENT_CAUSES]; /* seconds by enum ptcp_spent; all 0: too short, or between two servers */
	/* Part of progress.wire_bytes and saved_bytes that was sent again: copies of late blocks, and blocks of lost
	 * streams, also of files that have failed; UINT64_MAX: unknown, of a receiver, and between two servers */
	uint64_t copied_bytes;
	double probed_s;                 /* seconds in which the number of streams was looked for; 0: it was fixed */
	/* Blocks compared by hash with those of existing files and unfinished copies; progress.resumed_bytes has what
	 * was equal. UINT64_MAX: unknown, between two servers */
	uint64_t compared_bytes;
	int compress_level;              /* level of zstd at the end; 0: none; -1: unknown, of a receiver */
};

PTCP_API void ptcp_result_init(struct ptcp_result *r);

/* Fills the fields known to the caller's ptcp_result_init(). */
PTCP_API void ptcp_transfer_result(const struct ptcp_task *t, struct ptcp_result *r);
/* Changes ptcp_transfer_opts.rate: "200Mbit/s", a timetable, or NULL for no limit. Applies within half a second, and
 * to later attempts after a lost connection. Any thread, before and during the run. PTCP_EUSAGE: malformed, or the
 * data does not pass this host; the limit is unchanged. */
PTCP_API int ptcp_transfer_set_rate(struct ptcp_task *t, const char *rate, struct ptcp_err *e);
/* Changes ptcp_transfer_opts.impact_percent, above 0 and up to 100, of a transfer with streams 0: the number of streams
 * follows gradually. Any thread, before and during the run. PTCP_EUSAGE: out of range, a transfer that has a fixed number
 * of streams or yields with an impact of 0, or the data does not pass this host; the budget is unchanged. */
PTCP_API int ptcp_transfer_set_impact(struct ptcp_task *t, double percent, struct ptcp_err *e);
/* Checks the text of a rate, without a transfer: 0, or PTCP_EUSAGE if it is malformed. */
PTCP_API int ptcp_rate_check(const char *rate, struct ptcp_err *e);
/* Sets the rate limit of a path, in the direction of the data: bit/s, at least 10,000; 0: no limit (the default);
 * PTCP_PATH_IDLE: no new blocks, blocks in transit arrive. `path` is an index into ptcp_transfer_opts.paths or
 * .candidates; 0 for a transfer without either. opts.rate applies in addition. Any thread, before and during the run.
 * PTCP_EUSAGE: path or rate out of range, or the data does not pass this host. */
#define PTCP_PATH_IDLE UINT64_MAX
PTCP_API int ptcp_transfer_set_path_rate(struct ptcp_task *t, size_t path, uint64_t bps, struct ptcp_err *e);

/* ---- Detached transfers between two servers (jobs) --------------------------- */

enum ptcp_state { PTCP_STATE_RUNNING, PTCP_STATE_DONE, PTCP_STATE_FAILED };
/* "running", "done", "failed" */
PTCP_API const char *ptcp_state_name(enum ptcp_state s);

struct ptcp_status {
	const char *name;         /* "ID@HOST:PORT" */
	enum ptcp_state state;
	int code;                 /* FAILED: a PTCP_E* */
	int sys;                  /* FAILED: its cause, as in struct ptcp_err */
	const char *error;        /* FAILED: sentence of the error; else NULL */
	const char *source;       /* the first source, raw bytes */
	const char *peer;         /* "HOST:PORT" of the destination, or with `fetched` of the source; the queried server is
	                             the opposite end */
	const char *dest;         /* path at the destination, raw bytes */
	struct ptcp_progress progress;
	double age_s, seconds;    /* time since the request; running time */
	bool fetched;
};

/* Queries the server that runs the jobs: the job with that name, or for "HOST[:PORT]" all jobs of this identity.
 * `cancel`: first cancels the job, which can be resumed. Every job has a PTCP_EVENT_STATUS. Servers remember ended
 * jobs for a day, at most 64 of all clients, until restarted. PTCP_EPEER: no job of that name. */
PTCP_API int ptcp_status_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *name,
    bool cancel, struct ptcp_err *e);

/* Whether a path, as written by a user, names another host; false if malformed. */
PTCP_API bool ptcp_is_remote(const char *path);
/* Removes leftovers as ptcp_clean() does, beneath a directory on another host, "ptcp://HOST/PATH", "HOST:PATH" or
 * "ssh://HOST/PATH", with the rights of that server's user. The server must permit this identity to write.
 * ptcp_task_run() calls `found`. */
PTCP_API int ptcp_clean_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *url,
    const struct ptcp_clean_opts *clean, struct ptcp_err *e);
/* Counts at the end, or so far; fills the fields known to the caller's ptcp_clean_result_init(). */
PTCP_API void ptcp_clean_totals(const struct ptcp_task *t, struct ptcp_clean_result *r);

/* Digests that the library computes of files; a set of digests is the sum of its bits. */
enum ptcp_digest {
#define X(NAME, name, bit, bytes) PTCP_##NAME = 1 << (bit),
	PTCP_DIGESTS(X)
#undef X
	PTCP_DIGESTS_ALL = 0
#define X(NAME, name, bit, bytes) | PTCP_##NAME
	PTCP_DIGESTS(X)
#undef X
};
/* The set of these names, separated by commas, such as "sha256,md5"; PTCP_EUSAGE: a name of no digest. */
PTCP_API int ptcp_digests_parse(unsigned *out, const char *names, struct ptcp_err *e);
/* "sha256"; NULL for a number that is no digest. */
PTCP_API const char *ptcp_digest_name(enum ptcp_digest d);
/* One digest of a file: lower-case hexadecimal digits. */
struct ptcp_file_digest {
	enum ptcp_digest kind;
	const char *hex;
};

/* Work on files and directories of another host. */
enum ptcp_manage_op {
	PTCP_LIST = 1,  /* the content of each directory, or the file */
	PTCP_COUNT,     /* the size of each path with all content */
	PTCP_MKDIR,
	PTCP_REMOVE,
	PTCP_RENAME,    /* two URLs: from, to; into `to` if that is a directory */
	PTCP_SUM,       /* digests of files, which the other host computes; links are followed for the paths themselves */
	PTCP_RMDIR,     /* empty directories */
	PTCP_TOUCH      /* the time of change becomes the present; a missing file is made, empty */
};
enum ptcp_entry_type {
	PTCP_ENTRY_UNKNOWN, /* type of a failure */
	PTCP_ENTRY_FILE, PTCP_ENTRY_DIR, PTCP_ENTRY_SYMLINK, PTCP_ENTRY_FIFO, PTCP_ENTRY_SOCKET, PTCP_ENTRY_CHAR_DEVICE,
	PTCP_ENTRY_BLOCK_DEVICE
};
/* Strings are valid during the call only. */
struct ptcp_entry {
	/* Raw bytes. PTCP_LIST of one URL without wildcards: below the directory; else with the path of the URL */
	const char *path;
	enum ptcp_entry_type type;
	unsigned mode;               /* 07777 */
	uint64_t bytes, disk_bytes;  /* size and disk space; PTCP_COUNT: of regular files, and of all */
	uint64_t entries;            /* PTCP_COUNT: files and directories, itself included; else 0 */
	int64_t mtime_s;             /* seconds since 1970-01-01, UTC */
	unsigned mtime_ns;
	const char *target;          /* raw bytes of a symbolic link; NULL: no link */
	int code;                    /* PTCP_E* of a failure, else 0 */
	int sys;                     /* its cause, as in struct ptcp_err */
	const char *why;             /* reason of a failure, escaped; else NULL */
	const struct ptcp_file_digest *digest; /* PTCP_SUM: those requested, of `bytes` bytes; else NULL */
	unsigned n_digests;
	/* PTCP_SUM: number of the URL whose path it is; SIZE_MAX: of none, as below a directory */
	size_t url;
};
struct ptcp_manage_opts {
	size_t size;
	/* PTCP_LIST: whole trees; PTCP_REMOVE: directories with all content, part files included; PTCP_SUM: the files
	 * below directories as well */
	bool recursive;
	bool hidden;    /* PTCP_LIST: names that begin with a dot, part files of transfers included */
	bool itself;    /* PTCP_LIST: directories instead of their content */
	bool parents;   /* PTCP_MKDIR: missing parents as well; an existing directory is no failure */
	bool replace;   /* PTCP_RENAME: replace an existing file */
	unsigned digests; /* PTCP_SUM: bits of enum ptcp_digest; 0: PTCP_SHA256 */
	int64_t start, end; /* PTCP_SUM: of these bytes, as in struct ptcp_range; both 0: of all */
	bool literal;   /* PTCP_LIST, PTCP_COUNT, PTCP_REMOVE: wildcards are characters like others */
	/* Each listed entry, in no order; each sum of PTCP_COUNT; each file of PTCP_SUM; each failure. On the thread that runs the task; or
	 * NULL */
	void (*entry)(void *arg, const struct ptcp_entry *e);
	void *arg;
};
struct ptcp_manage_result {
	size_t size;
	uint64_t entries;           /* listed, counted, made, removed or renamed */
	uint64_t bytes, disk_bytes; /* sums of those listed or counted */
	uint64_t failed;
	uint64_t quota_bytes;       /* result of PTCP_COUNT: the client's quota at the server, 0: none; */
	uint64_t quota_used_bytes;  /* space used beneath the client's directory */
};
PTCP_API void ptcp_manage_opts_init(struct ptcp_manage_opts *o);
PTCP_API void ptcp_manage_result_init(struct ptcp_manage_result *r);
/* A task that works on paths of one host, "ptcp://HOST/PATH", "HOST:PATH" or "ssh://HOST/PATH", with the rights of that
 * server's user; all but PTCP_LIST and PTCP_COUNT need permission to write. Wildcards of PTCP_LIST, PTCP_COUNT and
 * PTCP_REMOVE are expanded by the server (see ptcp-ls(1)), unless `literal`. ptcp_task_run() calls `entry`; its result is PTCP_EPARTIAL
 * if some paths failed. If the only path fails, the task's error has the code, cause and sentence of that failure.
 * PTCP_EUSAGE: several hosts, a local path, or an option of another `op`. */
PTCP_API int ptcp_manage_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, enum ptcp_manage_op op,
    const char *const *urls, size_t n, const struct ptcp_manage_opts *m, struct ptcp_err *e);
/* Counts at the end, or so far; fills the fields known to the caller's ptcp_manage_result_init(). */
PTCP_API void ptcp_manage_totals(const struct ptcp_task *t, struct ptcp_manage_result *r);

/* PTCP_SUM of a file or directory of this host, until it is complete; `result` may be NULL. The result is that of
 * ptcp_task_run(). PTCP_EUSAGE: a path of another host, or an option of another operation. */
PTCP_API int ptcp_sum(const char *path, const struct ptcp_manage_opts *m, struct ptcp_manage_result *result,
    struct ptcp_err *e);

/* Parts of a file on another host, without a transfer: the server sends these bytes alone, over the control connection,
 * and the client verifies each piece. For small parts: a transfer has parallel streams, and resumes. */

/* The bytes from `start` up to, not including, `end`, as far as the file has them; a negative number counts from the
 * end of the file, as in a slice of Python. */
struct ptcp_range {
	int64_t start, end;
};
#define PTCP_RANGE_REST INT64_MAX /* `end`: the end of the file */

/* Verified bytes of a range; `data` is valid during the call only. */
struct ptcp_piece {
	size_t range;      /* number of the range in ptcp_read_opts.ranges, from 0 */
	uint64_t offset;   /* in the file */
	const void *data;
	size_t bytes;      /* not 0 */
};
struct ptcp_read_opts {
	size_t size;
	const struct ptcp_range *ranges; /* in any order, also overlapping; copied */
	size_t n_ranges;                 /* 0: the whole file */
	/* The file, once, before the first piece: path as in the URL, size, mode and time of change. May be NULL. */
	void (*opened)(void *arg, const struct ptcp_entry *file);
	/* The ranges one after the other, each from its beginning to its end; an empty one has no piece. */
	void (*piece)(void *arg, const struct ptcp_piece *p);
	void *arg;
};
PTCP_API void ptcp_read_opts_init(struct ptcp_read_opts *o);
/* A task that reads ranges of one file, "ptcp://HOST/PATH", "HOST:PATH" or "ssh://HOST/PATH". Symbolic links are
 * followed beneath the root of the client. All bytes belong to one version of the file: PTCP_ECHANGED if it changed
 * meanwhile, though it may have grown. ptcp_task_run() calls `opened` and `piece`; ptcp_manage_totals() counts the bytes.
 * PTCP_EUSAGE: a local path, or no function for the pieces. */
PTCP_API int ptcp_read_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *url,
    const struct ptcp_read_opts *r, struct ptcp_err *e);

/* Small files written to another host, without a transfer: name, data and rules travel at once on the control connection,
 * and the server writes the file as any file of a transfer: under a hidden name, verified, and named when complete. */
#define PTCP_WRITE_MAX (1u << 20) /* bytes; larger files are transfers */
struct ptcp_write_opts {
	size_t size;
	const void *data;     /* copied */
	size_t bytes;         /* at most PTCP_WRITE_MAX */
	/* Mode of the file, 0 to 0777. -1: as of cp, an existing file keeps its mode, and a new one has 0666 less the
	 * umask of the server */
	int mode;
	/* Time of change. Without set_mtime the time of writing, and later than that of the replaced file */
	bool set_mtime;
	int64_t mtime_s;
	unsigned mtime_ns;
	/* The file as it was published: path as in the URL, size, mode and time of change. May be NULL */
	void (*written)(void *arg, const struct ptcp_entry *file);
	void *arg;
};
PTCP_API void ptcp_write_opts_init(struct ptcp_write_opts *o);
/* A task that writes the file "ptcp://HOST/PATH", "HOST:PATH" or "ssh://HOST/PATH". Of the transfer's options, beside those
 * of the connection, older.exclusive, older.if_match, no_mkpath and fsync are obeyed. While another transfer writes the
 * file, the task waits. PTCP_EUSAGE: a local path, more data than PTCP_WRITE_MAX, or a rate. */
PTCP_API int ptcp_write_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *url,
    const struct ptcp_write_opts *w, struct ptcp_err *e);

/* Connections that outlive tasks: a task on remote files that ptcp_task_keep() gives a handle takes over a connection to
 * its host, and leaves it to the next task at its end, up to 8 at a time, for 45 s each. Any thread. Tasks with another
 * config_dir, other fingerprints or another family share none. Not through ssh. After fork() the child makes connections
 * of its own. */
struct ptcp_host;
PTCP_API int ptcp_host_open(struct ptcp_host **out, struct ptcp_err *e);
/* After the end of its tasks; NULL is fine. */
PTCP_API void ptcp_host_close(struct ptcp_host *h);
/* Before the task starts. PTCP_EUSAGE: neither of ptcp_manage_new(), ptcp_read_new(), ptcp_write_new() nor
 * ptcp_clean_new(). */
PTCP_API int ptcp_task_keep(struct ptcp_task *t, struct ptcp_host *h, struct ptcp_err *e);

/* The number of URLs, from the first on, that name the same host as the first: at least 1 unless n is 0. */
PTCP_API size_t ptcp_same_host(const char *const *urls, size_t n);

/* ---- Advice: how many streams ---------------------------------------------- */

/* Model of the throughput of n streams: BW(n) = n / sqrt(a n^2 + b), n / (a n + b), n / sqrt(a n^2 + b n + c),
 * n / sqrt(a n + b), BW in bit/s. AUTO selects by evidence. */
enum ptcp_model {
	PTCP_MODEL_AUTO,
	PTCP_MODEL_PARTIAL_QUADRATIC,
	PTCP_MODEL_FAIR_SHARE,
	PTCP_MODEL_QUADRATIC,
	PTCP_MODEL_LINEAR,
	PTCP_MODELS
};
/* "auto", "partial-quadratic" ..; NULL for an unknown value; parse returns false for an unknown name. */
PTCP_API const char *ptcp_model_name(enum ptcp_model m);
PTCP_API bool ptcp_model_parse(const char *name, enum ptcp_model *out);

/* Total throughput observed with a number of streams. */
struct ptcp_probe {
	unsigned streams;
	double throughput_bps;
	double error_bps; /* standard error; NAN: unknown, assumed to be the error of one short run */
};
#define PTCP_PROBES_MAX 64

struct ptcp_advice_opts {
	size_t size;
	enum ptcp_model model;    /* AUTO */
	double impact_percent;    /* 10; max slowdown of each competing flow, 0 to 100 */
	double min_gain_percent;  /* 1; min gain of throughput by the last stream */
	unsigned max_streams;     /* 32; 1 to PTCP_ADVICE_STREAMS_MAX */
	/* ptcp_advice_from_probes() only: */
	const char *congestion;   /* congestion control of the probes: "cubic" ..; NULL: unknown */
	/* ptcp_advise_new() only: */
	const unsigned *levels;   /* numbers of streams to probe; NULL: 1, 4 and 15 */
	size_t n_levels;
	bool receive;             /* data from the remote host to this host */
	double probe_s;           /* max duration of a probe, s, 2.5 to 50; 0: 30 with one stream to 10 with nine and more */
	bool history;             /* answer from the path history, if a probe of 3 s with the recommended number agrees;
	                             without levels and probe_s (see ptcp_transfer_opts.no_history) */
	/* Max duration of all probes, s, connecting apart: probes become shorter, to 2.5 s, and ranges wider. At least 2.5
	 * for each number of streams, and 3 more with history, or PTCP_EUSAGE; 0: no limit */
	double time_s;
};
#define PTCP_ADVICE_STREAMS_MAX 100000
PTCP_API void ptcp_advice_opts_init(struct ptcp_advice_opts *o);

/* Reason against one more stream. */
enum ptcp_limited_by {
	PTCP_LIMITED_BY_IMPACT,
	PTCP_LIMITED_BY_GAIN,
	PTCP_LIMITED_BY_MAX_STREAMS,
	PTCP_LIMITED_BY_SATURATION, /* more streams have no or less throughput */
};
/* "impact", "gain", "max-streams", "saturated" */
PTCP_API const char *ptcp_limited_by_name(enum ptcp_limited_by l);

/* Bottleneck of the probes. */
enum ptcp_limit {
	PTCP_LIMIT_UNKNOWN,
	PTCP_LIMIT_NETWORK,
	PTCP_LIMIT_SEND_BUFFER,
	PTCP_LIMIT_RECEIVE_WINDOW,
	PTCP_LIMIT_APPLICATION,
};
/* "unknown", "network", "send-buffer", "receive-window", "application" */
PTCP_API const char *ptcp_limit_name(enum ptcp_limit l);

/* Whether competing flows share the path. */
enum ptcp_others {
	PTCP_OTHERS_UNKNOWN,   /* not distinguishable from losses of the streams themselves, or given probes */
	PTCP_OTHERS_NONE_SEEN,
	PTCP_OTHERS_SOME,
};
/* "unknown", "none seen", "some" */
PTCP_API const char *ptcp_others_name(enum ptcp_others o);

/* Prediction for a number of streams. low and high: a range that holds 80 % of the truth. */
struct ptcp_advice_point {
	double throughput_bps, throughput_low_bps, throughput_high_bps;
	/* Slowdown of each competing flow, compared with one stream of ours; total: compared with no transfer. */
	double impact_percent, impact_low_percent, impact_high_percent;
	double impact_total_percent;
};

/* Answer for another budget. */
struct ptcp_choice {
	double impact_percent;  /* budget */
	unsigned streams;
	double throughput_bps;
};
#define PTCP_CHOICES 3
#define PTCP_ADVICE_CURVE 128

struct ptcp_advice {
	size_t size;
	unsigned streams;
	double throughput_bps;       /* predicted, as the next two */
	double impact_percent;       /* slowdown of each competing flow, compared with one stream of ours */
	double impact_total_percent; /* compared with no transfer */
	double throughput_low_bps, throughput_high_bps; /* ranges that hold 80 % of the truth */
	double impact_low_percent, impact_high_percent;
	enum ptcp_others others;
	struct ptcp_choice choices[PTCP_CHOICES]; /* this budget, half of it, the fastest */
	struct ptcp_advice_point curve[PTCP_ADVICE_CURVE]; /* points from 1 stream on; use ptcp_advice_at() */
	unsigned n_curve;            /* 0: the model predicts */
	double budget_percent;       /* options in effect: */
	double min_gain_percent;
	unsigned max_streams;
	enum ptcp_limited_by limited_by;
	bool confident;
	unsigned warnings;           /* bits for ptcp_advice_warning(); a warning implies !confident */
	unsigned next_probe;         /* the most useful next number of streams to probe, or 0 */
	char congestion[16];         /* congestion control of the probes; "": unknown */
	/* cubic, which takes less from competing flows; bbr, which random loss does not slow down, on an idle path;
	 * or NULL */
	const char *congestion_advice;
	/* The sender's kernel permits no congestion control that shares links: no number of streams keeps an impact
	 * budget, and a transfer without a fixed number yields to competing flows, as with an impact of 0 */
	bool yields;
	enum ptcp_limit limit;
	/* Remedy for a bottleneck in a host, static; or NULL. With it, the throughputs are the measured ones, max_streams
	 * is at most the largest number probed, and all impacts are NAN: such probes do not show any. */
	const char *limit_advice;
	/* Limit of the path other than its link and competing flows, as seen by live probes: "policer", "shallow-queue",
	 * "random-loss"; or NULL */
	const char *path_limit;
	char path_advice[240];       /* what was seen, and its remedy; "": none */
	double path_rate_bps;        /* rate for a transfer behind a policer that nobody shares; otherwise NAN */
	bool measured;               /* the throughputs are the measured ones, up to the largest number probed */
	enum ptcp_model model;       /* model with coefficients a, b, c: */
	double raw[3], used[3];      /* as fitted, and after the correction of impossible values */
	struct ptcp_probe probes[PTCP_PROBES_MAX];
	size_t n_probes;
	bool from_history;           /* probes of an earlier transfer or advice, */
	double age_s;                /* age of the samples, which widens the ranges; otherwise 0 */
	double check_bps;            /* rate of the recommended number now, in 3 s, with from_history; otherwise NAN */
};
PTCP_API void ptcp_advice_init(struct ptcp_advice *a);

/* The largest number of streams within the budget whose last stream has the minimum gain. Uses no network.
 * PTCP_EUSAGE: options out of range, a throughput or error that is not positive and finite, or fewer different
 * numbers of streams than the model has coefficients. */
PTCP_API int ptcp_advice_from_probes(struct ptcp_advice *a, const struct ptcp_probe *p, size_t n,
    const struct ptcp_advice_opts *o, struct ptcp_err *e);

/* Advice from probes of the path to a server, "HOST[:PORT]" or "ptcp://HOST[:PORT]", or to an ephemeral server
 * started through SSH, "USER@HOST" or "ssh://[USER@]HOST[:PORT]": streams with generated data, for 8 to 60 seconds,
 * 85 with a further probe. Of `o` the options for connections and the cipher apply, as in all tasks below. */
PTCP_API int ptcp_advise_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_advice_opts *a, struct ptcp_err *e);
/* PTCP_EUSAGE: the task has no advice. */
PTCP_API int ptcp_advise_result(const struct ptcp_task *t, struct ptcp_advice *a,
    struct ptcp_err *e);

/* Prediction for a number of streams, at least 1. */
PTCP_API void ptcp_advice_at(const struct ptcp_advice *a, unsigned streams,
    struct ptcp_advice_point *out);

/* The i-th warning, from 0; static; NULL after the last. */
PTCP_API const char *ptcp_advice_warning(const struct ptcp_advice *a, size_t i);

/* ---- Measurement: throughput of n streams, in rounds -------------------------- */

/* A round: `streams` streams start together and transfer bytes_per_stream bytes each. */
struct ptcp_round {
	unsigned number;              /* counted from 1 */
	unsigned streams;
	const char *why;              /* a stream was missing or incomplete, the rest is undefined; or NULL */
	double throughput_bps;        /* all bytes, from the first start to the last end */
	const double *per_stream_bps; /* `streams` numbers, each over the time of its stream */
	uint64_t retransmits;         /* TCP segments */
	const char *congestion;       /* congestion control of the streams: "cubic" ..; "": unknown */
};

struct ptcp_measure_opts {
	size_t size;
	const unsigned *streams;      /* levels; NULL: 10, 20, 30, 40, 50 */
	size_t n_streams;
	unsigned rounds;              /* 5; for each level */
	double interval_s;            /* 0; min time between the starts of two rounds */
	uint64_t bytes_per_stream;    /* 2000000 */
	void (*round)(void *arg, const struct ptcp_round *r); /* after each round; or NULL */
	void *arg;
	bool receive;                 /* data from the remote host to this host */
};
#define PTCP_LEVELS_MAX 64
PTCP_API void ptcp_measure_opts_init(struct ptcp_measure_opts *o);

/* Rounds on the path to a host, written as in ptcp_advise_new(). A failed round is counted, and the measurement
 * continues. */
PTCP_API int ptcp_measure_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_measure_opts *m, struct ptcp_err *e);

/* All rounds with one number of streams; rates are of the successful rounds. */
struct ptcp_level {
	unsigned streams;
	unsigned rounds, failed;      /* all, and the failed rounds */
	double mean_bps, min_bps, max_bps, stddev_bps;
	double per_stream_mean_bps;
	double fairness;              /* Jain's index, averaged over rounds */
	unsigned clusters;            /* 2: in most rounds streams formed a slow and a fast group; else 1 */
	double per_stream_min_bps, per_stream_max_bps, per_stream_stddev_bps; /* all rounds */
};

/* Stores at most `most` levels with rounds, ascending by streams; returns the number of levels with rounds.
 * *saturates_at: the smallest level whose mean no larger level exceeds by 5 %; 0: the largest level. */
PTCP_API size_t ptcp_measure_levels(const struct ptcp_task *t, struct ptcp_level *out,
    size_t most, unsigned *saturates_at);

/* ---- Timing: delays of messages ---------------------------------------------- */

struct ptcp_message {
	uint64_t bytes;
	double delay_s; /* from the acknowledgment (to a receiver: the arrival) of the byte before it to that of its last, in a
	                 * flow without pause */
};
#define PTCP_MESSAGES_MAX 1024

struct ptcp_timing_opts {
	size_t size;
	unsigned streams;  /* 4; each message is divided among the streams */
	unsigned messages; /* 8; 1 to PTCP_MESSAGES_MAX */
	uint64_t most_bytes; /* max size of a message, at least 256 KiB; 0: about a second's worth; ptcp_timing_new() only */
	bool receive;      /* data from the remote host to this host; ptcp_timing_new() only */
};
PTCP_API void ptcp_timing_opts_init(struct ptcp_timing_opts *o);

/* Messages of four sizes in turn to a server, over streams that stay open. A warm-up sends growing messages, not
 * counted, until one takes about half a second: TCP reaches its rate, and the sizes are chosen for a second at
 * most. */
PTCP_API int ptcp_timing_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_timing_opts *m, struct ptcp_err *e);

/* Timing between two remote servers, "HOST[:PORT]": `from` measures the path to `to`, with our permissions at both,
 * if its operator allows connections to `to`. PTCP_EREFUSED: not allowed; PTCP_ECONNECT: `from` cannot connect. */
PTCP_API int ptcp_timing_between_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *from, const char *to, const struct ptcp_timing_opts *m, struct ptcp_err *e);

/* Stores at most `most` messages; returns the number of messages, fewer than requested after a failure.
 * *round_trip_s: min RTT of a packet, or NAN. */
PTCP_API size_t ptcp_timing_messages(const struct ptcp_task *t, struct ptcp_message *out,
    size_t most, double *round_trip_s);

/* ---- Links published by servers ---------------------------------------------- */

/* Estimate of a link from a server. Unknown numbers are NAN. */
struct ptcp_published_link {
	const char *to;                  /* "HOST[:PORT]", as in ptcp_timing_new() */
	const char *why;                 /* reason why the last measurement failed; or NULL */
	unsigned messages, streams;      /* numbers of the measurement; 0 messages: no estimate, nor other values */
	double rate_bps, rate_error_bps; /* goodput of file data over all streams, and standard error */
	double delay_s, delay_error_s;   /* one way, and standard error */
	bool delay_from_round_trip;      /* half of the minimum RTT */
	double age_s;                    /* age of the last measurement */
};
#define PTCP_PUBLISHED_LINKS_MAX 1024

/* Queries the server at "HOST[:PORT]" for its links; the server answers clients that may connect through it.
 * PTCP_EPEER: the server does not measure links; PTCP_EREFUSED. */
PTCP_API int ptcp_link_query_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *from,
    struct ptcp_err *e);
/* Stores at most `most` links; returns the number of links. `to` includes the port, an IPv6 address is in brackets;
 * strings are escaped and owned by the task. */
PTCP_API size_t ptcp_link_query_links(const struct ptcp_task *t, struct ptcp_published_link *out, size_t most);

/* ---- Movers of striped transfers ------------------------------------------------ */

struct ptcp_mover_needs {
	const char *const *roots;   /* files, and directories with everything below, are read */
	size_t n_roots;
	bool writes;                /* existing files there are written, too */
};
struct ptcp_mover_opts {
	size_t size;
	const char *join;           /* invitation of the transfer (ptcp_transfer_opts.mover_file); "-": from standard input */
	ptcp_log_fn *log;           /* NULL: no log */
	enum ptcp_log_level log_level;
	void *arg;                  /* argument of log and confine */
	/* Called before the mover connects, while the process has one thread: the host program may restrict the
	 * process to these needs and TCP connections. A negative PTCP_E* ends the mover. NULL: no restriction */
	int (*confine)(void *arg, const struct ptcp_mover_needs *n, struct ptcp_err *e);
};
PTCP_API void ptcp_mover_opts_init(struct ptcp_mover_opts *o);
/* Joins a striped transfer: carries streams that its engine, another ptcp process, requests, until the engine ends
 * (0), is silent for 8 s, or is lost. PTCP_EUSAGE: no valid invitation; PTCP_ECONFIG: the files are not there;
 * PTCP_EREFUSED: the transfer that invited has ended. */
PTCP_API int ptcp_mover(const struct ptcp_mover_opts *o, struct ptcp_err *e);

/* ---- Server ---------------------------------------------------------------- */

/* Files and rights that a started server needs, beside the files of the name services; valid during the call. */
struct ptcp_server_needs {
	const char *config_dir;     /* files are read */
	const char *state_dir;      /* is listed, to be served to nobody; NULL: none */
	/* Everything below is read, created, changed and removed; NULL-terminated. "/": clients may request any path */
	const char *const *roots;
	bool binds, connects;       /* TCP: will listen again; connects to hosts */
	bool signals;               /* ends processes that it has started */
	const char *storage_dir;    /* files are created, used and removed; NULL: none */
};

/* What a client has done, at its end; strings are valid during the call, and may hold any bytes. */
struct ptcp_server_record {
	/* What the server did: "receive", "send", "measure", "list", "count", "mkdir", "remove", "rename", "rmdir",
	 * "touch", "read", "write", "sum" or "clean"; "none": the session ended before its request. */
	const char *work;
	const char *client, *name;  /* fingerprint of the key; name in authorized_clients or the certificate, or "" */
	const char *address;        /* address and port of the client */
	const char *third;          /* "HOST:PORT" of the other server of a delegated transfer; or "" */
	const char *path;           /* first path of the request; or "" */
	uint64_t files, bytes, failed; /* files or entries that were done; their bytes; those that failed */
	double seconds;
	int code;                   /* 0: done; or a PTCP_E* */
	int sys;                    /* errno of the cause; 0: unknown */
	const char *why;            /* sentence; "done" */
	enum ptcp_log_level level;  /* level at which the library logs `text` */
	const char *text;           /* one line of key=value pairs, escaped */
};

struct ptcp_server_opts {
	size_t size;
	const char *config_dir;
	/* "ADDR:PORT", "[ADDR]:PORT", ":PORT" or "PORT"; NULL: every address, PTCP_PORT; port 0: a free one */
	const char *listen;
	const char *root;           /* NULL: serves no files, except to clients with a root of their own */
	unsigned ciphers;           /* bits 1 << PTCP_CIPHER_*; all but NONE */
	unsigned max_streams;       /* per session; PTCP_STREAMS_MAX */
	unsigned max_sessions;      /* concurrent; 64, at most PTCP_SESSIONS_MAX */
	double timeout_s;           /* 30 */
	ptcp_log_fn *log;           /* NULL: no log */
	enum ptcp_log_level log_level;
	void *arg;                  /* argument of log, confine and record */
	/* Ephemeral server at the remote end of SSH, with the pipes `in` and `out` (0 and 1). Listens after the
	 * client has sent its identity through `in`, admits that client only, serves one session with any path of
	 * this user, and ends with the session, at the end of `in`, or after a minute without the client. Has a
	 * temporary identity; ignores listen and root. */
	bool ephemeral;
	int in, out;
	/* Further addresses, written as `listen`, and listening sockets, which are duplicated. With sockets and no
	 * address there is no default address. In all at most PTCP_LISTEN_MAX. */
	const char *const *also_listen;
	size_t n_also_listen;
	const int *sockets;
	size_t n_sockets;
	/* Next hops allowed to clients: a name, an address or a range, followed by ":PORT", ":*" or no port (7811); see
	 * ptcp-serve(1). PTCP_EUSAGE: malformed. */
	const char *const *relay_to;
	size_t n_relay_to;          /* 0: no relaying */
	unsigned max_relayed;       /* concurrent relayed connections, at least 2, of which one client may have half; 512 */
	unsigned max_client_sessions; /* concurrent, per client; 16 */
	unsigned max_startups;        /* unauthenticated connections; 512 */
	unsigned max_waiting;         /* sessions that wait for room, of which one client may have three quarters; 256 */
	/* Called once by ptcp_server_new(), with identity and address present and before any thread starts: lets a
	 * process that is only a server give up all rights not named in `n` (Landlock, capabilities, user), for this
	 * thread and all later threads. A negative PTCP_E* ends the start. NULL: the library gives up no rights by
	 * itself. */
	int (*confine)(void *arg, const struct ptcp_server_needs *n, struct ptcp_err *e);
	/* As in ptcp_transfer_opts: limits the sum of all sessions, for each direction. */
	const char *rate;
	/* Max bytes that a relay spools at the request of clients, while the next hop accepts less than arrives; one
	 * client may use half; at least 2 MiB, or 0: no spooling. */
	uint64_t relay_storage_bytes;
	const char *relay_storage_dir; /* directory for unnamed files; NULL: $TMPDIR, else /var/tmp */
	/* Max time for which a session without connections is kept; a client may request less by its retry_for_s.
	 * 3600; 0: not at all; at most 30 days */
	double max_linger_s;
	/* Max memory that clients can make the server take, of which one client may have half and one session a
	 * quarter; streams beyond that wait in turn, other requests are refused. 256 MiB; at least PTCP_MEMORY_MIN.
	 * Ephemeral servers ignore it. */
	uint64_t max_memory_bytes;
	/* A striped server: movers, processes on other hosts with the file system of the roots, read or write the
	 * data, and clients connect to them. As in ptcp_transfer_opts; the server starts the movers once, and writes
	 * the invitation anew. Not for an ephemeral server. */
	const char *movers;
	const char *const *mover_hosts;
	size_t n_mover_hosts;
	const char *mover_ptcp;
	const char *mover_file;
	const char *movers_listen;
	unsigned mover_port;        /* where movers listen on their hosts; PTCP_PORT; 0: a free port each */
	/* Unix socket, which the server makes, for ephemeral servers of this host that share its first port; NULL:
	 * the port is not shared. Ephemeral: the socket of the service of this host; NULL: a port of its own only. */
	const char *share_socket;
	unsigned share_sessions;    /* ephemeral servers of one user that share the port; 32 */
	double drain_s;             /* max time of ptcp_server_drain(), at most a day; 0 */
	bool direct_io;             /* as in ptcp_transfer_opts, for the server's files */
	uint64_t stripe_bytes;      /* as in ptcp_transfer_opts, of the server's movers */
	/* Called at the end of each session, delegated transfer, measurement and work on files, before the line of the
	 * log; on the thread that runs the server. NULL: not called */
	void (*record)(void *arg, const struct ptcp_server_record *r);
};
#define PTCP_SHARE_SOCKET "/run/ptcp/share.sock"
#define PTCP_LISTEN_MAX 32
#define PTCP_MEMORY_MIN (16u << 20)
PTCP_API void ptcp_server_opts_init(struct ptcp_server_opts *o);

struct ptcp_server;

/* Binds and listens. PTCP_ECONFIG: the address or root is not available. */
PTCP_API int ptcp_server_new(struct ptcp_server **out, const struct ptcp_server_opts *o,
    struct ptcp_err *e);
/* "127.0.0.1" or "::" without brackets, the port, and this host's fingerprint; owned by the handle. */
PTCP_API const char *ptcp_server_address(const struct ptcp_server *s);
PTCP_API unsigned ptcp_server_port(const struct ptcp_server *s);
PTCP_API const char *ptcp_server_fingerprint(const struct ptcp_server *s);
/* Address and port of the i-th listening socket, from 0; false after the last. The functions above return the
 * first. */
PTCP_API bool ptcp_server_listening(const struct ptcp_server *s, size_t i, const char **address,
    unsigned *port);
/* Serves until ptcp_server_stop(); once per handle; 0 when stopped. */
PTCP_API int ptcp_server_run(struct ptcp_server *s, struct ptcp_err *e);
/* Serves from an event loop of the host program; see ptcp_task_start(). A step returns 1 to continue, otherwise the
 * return value of ptcp_server_run(). */
PTCP_API int ptcp_server_start(struct ptcp_server *s, struct ptcp_err *e);
PTCP_API int ptcp_server_fd(const struct ptcp_server *s);
PTCP_API int ptcp_server_timeout_ms(const struct ptcp_server *s);
PTCP_API int ptcp_server_step(struct ptcp_server *s, struct ptcp_err *e);
/* Before serving or between steps: changes max_streams, max_sessions, max_client_sessions, max_waiting, timeout_s,
 * max_linger_s, rate, relay_to, max_relayed, max_memory_bytes, share_sessions, drain_s and log_level to the values
 * of `o`; the remaining fields are ignored. Running sessions keep the agreed values. PTCP_EUSAGE: a value is
 * malformed or out of range, and all values are unchanged. */
PTCP_API int ptcp_server_change(struct ptcp_server *s, const struct ptcp_server_opts *o,
    struct ptcp_err *e);

/* Totals since ptcp_server_new(), except the values "now". */
struct ptcp_server_stats {
	size_t size;
	uint64_t connections;       /* accepted, authenticated or not */
	uint64_t refused;           /* clients, connections and requests */
	uint64_t sessions, sessions_failed; /* started; failed */
	uint64_t received_bytes, sent_bytes; /* file data over connections, as sent */
	uint64_t received_files, sent_files;
	uint64_t failed_files;
	uint64_t retransmits;       /* TCP segments of data connections; open connections lag by one call */
	unsigned sessions_now, streams_now;
	unsigned relayed_now;       /* connections between clients and next hops */
	uint64_t stored_bytes;      /* now, spooled on disk; whole MiB */
	unsigned links_known;       /* now, published links with rate and delay */
	unsigned waiting_now;       /* sessions that wait for room */
	uint64_t memory_bytes;      /* now, of all clients: see max_memory_bytes */
	unsigned shared_now;        /* ephemeral servers that share the port */
	uint64_t shared, shared_refused; /* registrations of ephemeral servers; refused registrations */
	uint64_t quota_ends;        /* sessions ended by a quota */
};
PTCP_API void ptcp_server_stats_init(struct ptcp_server_stats *st);
/* Fills the fields known to the caller's ptcp_server_stats_init(). Before serving or between steps. */
PTCP_API void ptcp_server_stats(struct ptcp_server *s, struct ptcp_server_stats *st);
/* Calls `each` on this thread for the directory of every client with a quota that has connected since the start;
 * strings are valid during the call. Any thread. */
struct ptcp_server_quota {
	const char *directory;      /* control bytes are escaped */
	uint64_t used_bytes;        /* space used, as counted last and changed by transfers since */
	uint64_t quota_bytes;       /* quota of the latest client */
};
typedef void ptcp_server_quota_fn(void *arg, const struct ptcp_server_quota *q);
PTCP_API void ptcp_server_quotas_each(struct ptcp_server *s, ptcp_server_quota_fn *each, void *arg);
/* Calls `each` on this thread for every client that has memory of the server, see max_memory_bytes; strings are
 * valid during the call. Any thread. */
struct ptcp_server_memory {
	const char *client;         /* fingerprint of its key */
	uint64_t bytes;
};
typedef void ptcp_server_memory_fn(void *arg, const struct ptcp_server_memory *m);
PTCP_API void ptcp_server_memory_each(struct ptcp_server *s, ptcp_server_memory_fn *each, void *arg);
/* Calls `each` on this thread for every mover that has joined the server; strings are valid during the call. Before
 * serving or between steps. */
typedef void ptcp_server_mover_fn(void *arg, const struct ptcp_mover_stats *m);
PTCP_API void ptcp_server_movers_each(struct ptcp_server *s, ptcp_server_mover_fn *each, void *arg);
/* Publishes the links measured by this host to clients (ptcp_link_query_new()) that may connect through this server,
 * instead of the previous links; copied, ages increase from now on. `l` NULL: publishes no links. PTCP_EUSAGE: a
 * number is out of range, or more than PTCP_PUBLISHED_LINKS_MAX links, and the links are unchanged. Any thread. */
PTCP_API int ptcp_server_set_links(struct ptcp_server *s, const struct ptcp_published_link *l, size_t n,
    struct ptcp_err *e);
/* Any thread and signal handlers; idempotent. Closes the listening sockets, lets running sessions end for `drain_s`
 * at most, then does the same as ptcp_server_stop(). */
PTCP_API void ptcp_server_drain(struct ptcp_server *s);
/* Any thread and signal handlers; idempotent. Ends running sessions at once, with a message to the peers. */
PTCP_API void ptcp_server_stop(struct ptcp_server *s);
PTCP_API void ptcp_server_free(struct ptcp_server *s); /* NULL is fine; not while serving */

#ifdef __cplusplus
}
#endif
#endif
