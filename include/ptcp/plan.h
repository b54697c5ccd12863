/* Overlays, paths and plans: which piece of the data of many hosts goes over which
 * path, when, so that the last byte reaches the destination soonest.
 *
 * Rates are bit/s, times seconds from the start of the collection, data bytes.
 * Functions that can fail return 0 or a negative PTCP_E* (<ptcp/err.h>); results
 * leave through out-parameters, untouched on failure. A handle may be used by
 * one thread at a time; different handles by different threads. Nothing is
 * printed, and no state is kept outside the handles: GLPK runs in a thread of
 * its own, so that a caller's own use of it is not disturbed. */
#ifndef PTCP_PLAN_H
#define PTCP_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include <ptcp/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PTCP_PLAN_API __attribute__((visibility("default")))
#else
#define PTCP_PLAN_API
#endif

/* ---- Overlays: hosts, links, limits (the file is described in ptcp-overlay(5)) */

struct ptcp_overlay;

#define PTCP_UNKNOWN UINT64_MAX /* bytes or a rate that was not given */

/* Reads an overlay file, or the `n` bytes of `text` (`name` stands for the file
 * in errors). PTCP_ECONFIG with a message that begins "FILE:LINE:COLUMN:";
 * PTCP_EIO if the file cannot be read. */
PTCP_PLAN_API int ptcp_overlay_load(struct ptcp_overlay **out, const char *path,
    struct ptcp_err *e);
PTCP_PLAN_API int ptcp_overlay_parse(struct ptcp_overlay **out, const char *text, size_t n,
    const char *name, struct ptcp_err *e);
PTCP_PLAN_API void ptcp_overlay_free(struct ptcp_overlay *o); /* NULL is fine */

struct ptcp_overlay_host {
	const char *name, *address, *path; /* the overlay's; address and path may be NULL */
	uint64_t data_bytes;    /* PTCP_UNKNOWN: to be measured; 0: none */
	uint64_t storage_bytes; /* PTCP_UNKNOWN: no limit */
	uint64_t ingress_bps, egress_bps; /* PTCP_UNKNOWN: no limit */
	int relay;
};
struct ptcp_overlay_link {
	int from, to; /* indices of hosts */
	uint64_t rate_bps, delay_ns; /* PTCP_UNKNOWN: not given */
};

PTCP_PLAN_API size_t ptcp_overlay_hosts(const struct ptcp_overlay *o);
PTCP_PLAN_API size_t ptcp_overlay_links(const struct ptcp_overlay *o);
PTCP_PLAN_API int ptcp_overlay_destination(const struct ptcp_overlay *o);
PTCP_PLAN_API const char *ptcp_overlay_launch(const struct ptcp_overlay *o); /* or NULL */
PTCP_PLAN_API double ptcp_overlay_deadline_s(const struct ptcp_overlay *o);  /* 0: none */
/* `i` must be in range. What the structs point to lives until the overlay is
 * freed. */
PTCP_PLAN_API void ptcp_overlay_host(const struct ptcp_overlay *o, size_t i,
    struct ptcp_overlay_host *out);
PTCP_PLAN_API void ptcp_overlay_link(const struct ptcp_overlay *o, size_t i,
    struct ptcp_overlay_link *out);
/* Index of a host, or -1. */
PTCP_PLAN_API int ptcp_overlay_find_host(const struct ptcp_overlay *o, const char *name);

/* The host that this one is: of that name, or (NULL) the one whose address is one of this host's; and the one that
 * "HOST[:PORT]" leads to: by its address as written, its name, or another name of its address. PTCP_EUSAGE: there
 * is none, or more than one is here. They wait for the resolver. */
PTCP_PLAN_API int ptcp_overlay_here(const struct ptcp_overlay *o, const char *name, int *host,
    struct ptcp_err *e);
PTCP_PLAN_API int ptcp_overlay_there(const struct ptcp_overlay *o, const char *address, int *host,
    struct ptcp_err *e);

/* What if: the rate of a link outside its windows ("A>B"; with a curve that of all the
 * streams that the budget allows it, and fewer bring less as before), and what a host has
 * to deliver (as measured, or what is left when a collection is planned anew).
 * PTCP_EUSAGE if there is no such link or host, or data at the destination. */
PTCP_PLAN_API int ptcp_overlay_set_rate(struct ptcp_overlay *o, const char *link,
    uint64_t rate_bps, struct ptcp_err *e);
PTCP_PLAN_API int ptcp_overlay_set_data(struct ptcp_overlay *o, const char *host,
    uint64_t bytes, struct ptcp_err *e);

/* What has been found of a link; PTCP_UNKNOWN stays as it was. */
struct ptcp_overlay_found {
	size_t link; /* index */
	uint64_t rate_bps, delay_ns;
};
/* Reads the overlay file `from` and writes it to `to`, which may be the same, with these rates and delays in
 * place of what is there, or added where nothing is; rates to three digits, delays to a microsecond. All else,
 * comments, order and formatting, stays byte for byte. `found` is ascending by link. At any time there is the
 * old file whole or the new one. PTCP_ECONFIG: no overlay, or a value that is a YAML alias; PTCP_EIO. */
PTCP_PLAN_API int ptcp_overlay_save(const char *from, const char *to,
    const struct ptcp_overlay_found *found, size_t n, struct ptcp_err *e);

/* ---- Measuring links, by messages from this host, or from the daemon where they begin, to the daemons where they end */

struct ptcp_links;
struct ptcp_transfer_opts; /* <ptcp/ptcp.h> */
#define PTCP_LINKS_BUDGET_MAX 1000000

struct ptcp_links_opts {
	size_t size;
	const char *local_host; /* the host that this is; NULL: the one whose address is one of this host's */
	unsigned budget;    /* messages in all; 0: 16 a link */
	unsigned streams;   /* 4; that messages are divided among */
	void (*begin)(void *arg, size_t link); /* before each; or NULL */
	void *arg;
	int local_only;      /* leave out those that begin elsewhere */
	uint64_t most_bytes; /* of a message from here, at least 256 KiB; 0: what takes about a second */
};
PTCP_PLAN_API void ptcp_links_opts_init(struct ptcp_links_opts *o);

enum ptcp_link_state {
	PTCP_LINK_MEASURED,
	PTCP_LINK_FAILED,    /* `why` */
	PTCP_LINK_ELSEWHERE, /* left out: `why` */
};
/* Numbers that are not known are NAN. */
struct ptcp_link_estimate {
	enum ptcp_link_state state;
	const char *why;             /* not measured, or not when it was last tried; the links'; or NULL */
	const char *result;          /* of the regression: "ok", "one-size", "no-slope" or "no-intercept"; NULL: was told */
	double rate_bps, rate_error_bps; /* of those streams together, and one standard error */
	double delay_s, delay_error_s;   /* one way; no error where it is */
	int delay_from_round_trip;       /* half of the least round trip, as the intercept says too little */
	double r2_ratio;             /* how much of the delays' variance the line explains */
	unsigned messages, streams;
	double messages_bound;       /* so many would give the rate to 10 % in 95 of 100 cases, whatever the distribution of
					delays, if none strays further than these */
	double age_s;                /* measured: since then */
};

/* The overlay must outlive them, and what the options of the connections point to. PTCP_EUSAGE: `local_host` is none of
 * the hosts, or there is no link to be measured. Connects nowhere, but waits for the resolver. */
PTCP_PLAN_API int ptcp_links_new(struct ptcp_links **out, const struct ptcp_overlay *o,
    const struct ptcp_transfer_opts *connect, const struct ptcp_links_opts *opts, struct ptcp_err *e);
/* Blocks until all have been tried, link after link: a few messages each, then the rest of the budget where
 * rates are least sure, by their standard errors. Once. PTCP_EPARTIAL: some failed; when all did, the code of
 * the first; PTCP_ECANCELED. What has been measured is there in any case. */
PTCP_PLAN_API int ptcp_links_measure(struct ptcp_links *l, struct ptcp_err *e);

struct ptcp_links_watch {
	size_t size;
	double pause_s;     /* 60; before each link's turn */
	/* After it: `why` not NULL, it could not be measured this time. Not 0, with a sentence: that is the end. */
	int (*seen)(void *arg, size_t link, const char *why, struct ptcp_err *e);
	void *arg;
	double jitter_ratio; /* 0; pauses are longer or shorter by chance, by at most so much of themselves; below 1 */
	int (*busy)(void *arg); /* a turn waits as long as this says so, but an hour at most; NULL: never */
};
PTCP_PLAN_API void ptcp_links_watch_init(struct ptcp_links_watch *w);
/* Then, or instead: goes on for ever, link after link, a few messages each. Estimates are means from then on in which
 * each new one has a weight of a quarter, with standard errors from how they scatter, and one that is over an hour old
 * has none; of a link that fails, what is known stands. A link that was not tried before has a tenth of the pause.
 * Returns what `seen` did, PTCP_EUSAGE when there is no link that can be measured, PTCP_ECANCELED or PTCP_ENOMEM. */
PTCP_PLAN_API int ptcp_links_watch(struct ptcp_links *l, const struct ptcp_links_watch *w, struct ptcp_err *e);
/* Instead of measuring: asks the daemons where links begin what they have learnt of them (ptcp_known_new()), and
 * takes what is at most three hours old. Blocks; once. Returns as ptcp_links_measure(). */
PTCP_PLAN_API int ptcp_links_ask(struct ptcp_links *l, struct ptcp_err *e);
/* Any thread and signal handlers; idempotent. */
PTCP_PLAN_API void ptcp_links_cancel(struct ptcp_links *l);
/* Writes what is known of the links that begin here to that file, which is there whole at any time; and takes from it what
 * is at most three hours old, was measured over as many streams, and is not known better. PTCP_ECONFIG; that the
 * file is not there is none. Not while they are measured, but from `seen`. */
PTCP_PLAN_API int ptcp_links_keep(const struct ptcp_links *l, const char *file, struct ptcp_err *e);
PTCP_PLAN_API int ptcp_links_recall(struct ptcp_links *l, const char *file, struct ptcp_err *e);
/* Of the overlay's i-th link. */
PTCP_PLAN_API void ptcp_links_get(const struct ptcp_links *l, size_t i, struct ptcp_link_estimate *out);
PTCP_PLAN_API int ptcp_links_here(const struct ptcp_links *l); /* index of the host, or -1: none of them */
PTCP_PLAN_API void ptcp_links_free(struct ptcp_links *l);      /* NULL is fine */

/* ---- Quickest paths */

/* The paths by which so many bytes get from one host to another soonest, and what to send over each
 * so that all end together. */
struct ptcp_paths;
#define PTCP_QUICKEST_MAX 64

/* At most `most` paths, each the quickest in what those before it have left of links, shared
 * bottlenecks, ingress and egress; hosts on the way pass on as they receive, and may. Rates are those
 * outside windows; a link without a rate is left out, a delay that is not given counts as 0. Paths that
 * would get nothing are left out, too. Each path is exact; that no other set of paths is quicker is not
 * promised. PTCP_EINFEASIBLE: no path; PTCP_EUSAGE: not two hosts, 0 bytes, or `most` out of 1 to
 * PTCP_QUICKEST_MAX. CPU time only. Any thread. */
PTCP_PLAN_API int ptcp_paths_find(struct ptcp_paths **out, const struct ptcp_overlay *o, int from,
    int to, uint64_t bytes, size_t most, struct ptcp_err *e);
PTCP_PLAN_API void ptcp_paths_free(struct ptcp_paths *p); /* NULL is fine */

struct ptcp_quickest {
	const int *candidate;           /* indices of the hosts between, in order; the paths' */
	size_t nvia;              /* 0: direct */
	double rate_bps, delay_s; /* what the path gets, and the sum of its links' delays */
	uint64_t bytes;           /* of all paths they sum to those asked for */
};
PTCP_PLAN_API size_t ptcp_paths_count(const struct ptcp_paths *p);
/* The i-th as it was found, the quickest first. */
PTCP_PLAN_API void ptcp_paths_get(const struct ptcp_paths *p, size_t i, struct ptcp_quickest *out);
/* When all has arrived, from the start; exact, as if bytes could be divided. */
PTCP_PLAN_API double ptcp_paths_finish_s(const struct ptcp_paths *p);

/* ---- Plans */

enum ptcp_plan_method {
	PTCP_PLAN_DIRECT,      /* every source straight to the destination, all at once */
	PTCP_PLAN_BEST_PATH,   /* every source by itself its best path of at most one relay */
	PTCP_PLAN_COORDINATED, /* time slots; what arrives in a slot can go on in the next */
	PTCP_PLAN_PIPELINED,   /* relays pass on as they receive, and hold where it helps */
};
/* "direct", "best-path", "coordinated", "pipelined"; the second returns -1 for
 * any other name. */
PTCP_PLAN_API const char *ptcp_plan_method_name(enum ptcp_plan_method m);
PTCP_PLAN_API int ptcp_plan_method_find(const char *name);

struct ptcp_plan_opts {
	size_t size;       /* set by ptcp_plan_opts_init() */
	enum ptcp_plan_method method;
	double slot_s;     /* coordinated; 0: the overlay's, else 1/100 of the direct makespan */
	double deadline_s; /* 0: the overlay's, if it has one */
	double effort_s;   /* CPU time to look for a proof or a better plan once there is one */
};
/* Pipelined, no slot or deadline of its own, 10 s of effort. */
PTCP_PLAN_API void ptcp_plan_opts_init(struct ptcp_plan_opts *o);

struct ptcp_plan;

/* Makes a plan of least makespan by the method; among those one with least
 * relayed bytes, then least storage (the sum over hosts of the most that each
 * holds for others). The overlay is copied as far as needed. Every plan has
 * passed ptcp_plan_verify().
 * PTCP_EINFEASIBLE: no plan, or none within the deadline; the message says which
 * source cannot reach the destination, which cut is too small, which window.
 * PTCP_ECONFIG: a rate or size needed is unknown. PTCP_ERANGE: too many slots.
 * Blocks; CPU time only. Any thread. */
PTCP_PLAN_API int ptcp_plan_make(struct ptcp_plan **out, const struct ptcp_overlay *o,
    const struct ptcp_plan_opts *opts, struct ptcp_err *e);
PTCP_PLAN_API void ptcp_plan_free(struct ptcp_plan *p); /* NULL is fine */

struct ptcp_plan_info {
	enum ptcp_plan_method method;
	double makespan_s;
	double bound_s;       /* no plan of this method can be shorter; direct and best path:
	                         the makespan */
	double slot_s;        /* coordinated; else 0 */
	double solve_s;       /* wall time spent on this plan */
	double data_bytes;
	double relayed_bytes; /* summed over the relays a byte passes */
	double relayed_bound_bytes; /* no plan of this makespan relays less; for direct and
	                         best path: relayed_bytes */
};
PTCP_PLAN_API void ptcp_plan_info(const struct ptcp_plan *p, struct ptcp_plan_info *out);

/* The plan as pieces: bytes [offset, offset + bytes) of the data of one source
 * travel along `nhops` links; over hop i at the constant rate bytes / (end_s -
 * start_s) from start_s to end_s. The pieces of a source cover its data once. */
struct ptcp_plan_hop {
	int from, to; /* indices of hosts */
	double start_s, end_s;
};
struct ptcp_plan_piece {
	int source;
	uint64_t offset, bytes;
	size_t nhops;
	const struct ptcp_plan_hop *hops; /* the plan's */
};
PTCP_PLAN_API size_t ptcp_plan_pieces(const struct ptcp_plan *p);
PTCP_PLAN_API void ptcp_plan_piece(const struct ptcp_plan *p, size_t i,
    struct ptcp_plan_piece *out);

/* The same summed up: what of one source crosses one link at one time; by start,
 * then from, to, source. */
struct ptcp_plan_step {
	int from, to, source; /* indices of hosts */
	double start_s, end_s;
	uint64_t bytes;
};
PTCP_PLAN_API size_t ptcp_plan_steps(const struct ptcp_plan *p);
PTCP_PLAN_API void ptcp_plan_step(const struct ptcp_plan *p, size_t i,
    struct ptcp_plan_step *out);

/* The streams of the link from a host to another, from beginning to end; 0 where the
 * overlay has no curve by which they are counted, or the plan does not use the link. */
PTCP_PLAN_API unsigned ptcp_plan_streams(const struct ptcp_plan *p, int from, int to);

/* The most that a host holds for others (coordinated: at the end of a slot). */
PTCP_PLAN_API double ptcp_plan_storage_bytes(const struct ptcp_plan *p, int host);

/* Checks a plan against an overlay from nothing but the pieces: all data of all
 * sources arrives once, over links that exist and relays that may; no link,
 * shared bottleneck, ingress, egress or storage is exceeded at any time (by more
 * than a part in a million and the rounding to whole bytes); no host passes on
 * what it does not have; where curves count streams, no link carries more than its
 * streams bring, and no bottleneck has more of them than the budget allows.
 * PTCP_EVERIFY with the first thing that is wrong. */
PTCP_PLAN_API int ptcp_plan_verify(const struct ptcp_plan *p, const struct ptcp_overlay *o,
    struct ptcp_err *e);

/* ---- Collecting: a plan carried out, at the destination, with the daemons of the other hosts */

struct ptcp_collect;

enum ptcp_collect_state {
	PTCP_COLLECT_WAITING, /* has yet to begin, or to answer again */
	PTCP_COLLECT_RUNNING,
	PTCP_COLLECT_DONE,
	PTCP_COLLECT_FAILED,  /* `why` */
};
/* "waiting", "running", "done", "failed" */
PTCP_PLAN_API const char *ptcp_collect_state_name(enum ptcp_collect_state s);

/* One that has, or had, something to collect. */
struct ptcp_collect_source {
	int host;
	enum ptcp_collect_state state;
	uint64_t bytes, total_bytes;  /* verified and written at the destination; of what is known of it so far */
	int total_known;
	uint64_t wire_bytes, resumed_bytes; /* file data sent in this run; what was there before it */
	uint64_t files, failed;       /* regular files completed; what failed */
	double rate_bps;              /* over the last seconds */
	int code;                     /* PTCP_E* of the last failure, and its sentence; 0 and NULL */
	const char *why;
};

/* A link of the overlay, by which it is found; what it carries is known from the paths that cross it. */
struct ptcp_collect_link {
	uint64_t bytes;               /* in this run */
	double rate_bps;              /* over the last seconds */
	double planned_bps;           /* what the plan has it carry now */
	double estimate_bps;          /* what it is taken for now */
};

enum ptcp_collect_event_type {
	PTCP_COLLECT_PLAN,     /* there is one: plan, text NULL; or, with text = reason, another one from now on */
	PTCP_COLLECT_PROGRESS, /* about two a second */
	PTCP_COLLECT_SOURCE,   /* the state of `source` has changed */
	PTCP_COLLECT_FILE,     /* of `source`: path, text, code; only what failed */
	PTCP_COLLECT_WARNING,  /* text; of `source`, unless that is -1 */
};

struct ptcp_collect_event {
	enum ptcp_collect_event_type type;
	double elapsed_s;                      /* since the start, as all times here */
	double planned_s;                      /* when all has arrived by the plan in force */
	double eta_s;                          /* how long the rest will take as it goes; negative: not known */
	uint64_t bytes, total_bytes;           /* of all sources together */
	double rate_bps;
	const struct ptcp_plan *plan;          /* the one in force, its time 0 being plan_start_s; or NULL */
	double plan_start_s;
	int source;                            /* index in `sources` */
	const char *path, *text;               /* raw bytes, escape before showing; a sentence */
	int code;
	const struct ptcp_collect_source *sources; /* in the order of the overlay */
	size_t n_sources;
	const struct ptcp_collect_link *links; /* ptcp_overlay_links() of them */
};

/* Called on the thread that runs the collection; everything in ev is valid only during the call. May call
 * ptcp_collect_cancel(). */
typedef void ptcp_collect_event_fn(void *arg, const struct ptcp_collect_event *ev);

struct ptcp_collect_opts {
	size_t size;
	enum ptcp_plan_method method; /* pipelined */
	double deadline_s;            /* 0: the overlay's; of the first plan */
	unsigned streams;             /* 4; of each path that is planned */
	int no_replan;                /* keep to the first plan, however links turn out */
	ptcp_collect_event_fn *event; /* NULL: silent */
	void *arg;
};
PTCP_PLAN_API void ptcp_collect_opts_init(struct ptcp_collect_opts *o);

/* Collects what the hosts of an overlay have into `dest`: a host's `path` into dest/HOST/, as a transfer into a
 * directory has it (<ptcp/ptcp.h>). `connect` is what each transfer gets, but for paths, streams, rates and events.
 * The overlay belongs to the collection until that is freed: its rates become those that are found, its data what is
 * left. PTCP_ECONFIG: a host with data has no path or address. Copies the rest; connects nowhere. */
PTCP_PLAN_API int ptcp_collect_new(struct ptcp_collect **out, struct ptcp_overlay *o,
    const struct ptcp_transfer_opts *connect, const char *dest, const struct ptcp_collect_opts *opts,
    struct ptcp_err *e);
/* Blocks until all is done, failed or cancelled; once. A source that cannot be had, or is lost, is tried again until
 * nothing has come of it for connect's timeout_s. PTCP_EPARTIAL: sources or files failed, the rest is done; when
 * nothing is done, the code of the first that failed. PTCP_EINFEASIBLE and others as ptcp_plan_make(), before
 * anything is collected. PTCP_ECANCELED: interrupted; the same again goes on from there. */
PTCP_PLAN_API int ptcp_collect_run(struct ptcp_collect *c, struct ptcp_err *e);
/* Any thread and signal handlers; idempotent. */
PTCP_PLAN_API void ptcp_collect_cancel(struct ptcp_collect *c);

/* What has been achieved; valid once it is over, whatever came of it. */
struct ptcp_collect_result {
	size_t size;
	uint64_t bytes, wire_bytes, resumed_bytes, files, failed; /* sums over the sources */
	double seconds;               /* from the first transfer's start: the makespan, as executed */
	double planned_s;             /* of the first plan; 0: there was none */
	double last_planned_s;        /* when the last plan had all arrive */
	unsigned replans;
	size_t sources_done, sources_failed;
};
PTCP_PLAN_API void ptcp_collect_result_init(struct ptcp_collect_result *r);
/* Fills in what the caller's ptcp_collect_result_init() knew of. */
PTCP_PLAN_API void ptcp_collect_result(const struct ptcp_collect *c, struct ptcp_collect_result *r);
/* The i-th source and link, as events have them; what they point to lives as long as the handle. */
PTCP_PLAN_API size_t ptcp_collect_sources(const struct ptcp_collect *c);
PTCP_PLAN_API void ptcp_collect_source(const struct ptcp_collect *c, size_t i,
    struct ptcp_collect_source *out);
PTCP_PLAN_API void ptcp_collect_link(const struct ptcp_collect *c, size_t i, struct ptcp_collect_link *out);
PTCP_PLAN_API void ptcp_collect_free(struct ptcp_collect *c); /* NULL is fine; not while it runs */

#ifdef __cplusplus
}
#endif
#endif
