/* Overlays, paths and plans: which piece of the data of many hosts uses which path, and when, for the
 * earliest completion at the destination.
 *
 * Rates are bit/s, times seconds from the start of the collection, data bytes. Rates of overlays are
 * uint64_t, computed and measured rates are double; unknown numbers are PTCP_UNKNOWN or NAN. Functions that
 * can fail return 0 or a negative PTCP_E* (<ptcp/err.h>); results are stored in out-parameters, unchanged on
 * failure. A handle may be used by one thread at a time, different handles by different threads. The
 * library prints nothing and has no global state: GLPK runs in a separate thread, without effect on the
 * caller's own use of GLPK. */
#ifndef PTCP_PLAN_H
#define PTCP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ptcp/err.h>
#include <ptcp/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Overlays: hosts, links, limits (ptcp-overlay(5) describes the file) ---- */

struct ptcp_overlay;

#define PTCP_UNKNOWN UINT64_MAX /* bytes or a rate not given */

/* Reads an overlay file, or the `n` bytes of `text` (`name` names the file in errors). PTCP_ECONFIG with a
 * message that begins "FILE:LINE:COLUMN:"; PTCP_EIO for an unreadable file. */
PTCP_API int ptcp_overlay_load(struct ptcp_overlay **out, const char *path,
    struct ptcp_err *e);
PTCP_API int ptcp_overlay_parse(struct ptcp_overlay **out, const char *text, size_t n,
    const char *name, struct ptcp_err *e);
PTCP_API void ptcp_overlay_free(struct ptcp_overlay *o); /* NULL is fine */

struct ptcp_overlay_host {
	const char *name, *address, *path; /* owned by the overlay; address and path may be NULL */
	uint64_t data_bytes;    /* PTCP_UNKNOWN: to be measured; 0: no data */
	uint64_t storage_bytes; /* PTCP_UNKNOWN: no limit */
	uint64_t ingress_bps, egress_bps; /* PTCP_UNKNOWN: no limit */
	bool relay;
};
struct ptcp_overlay_link {
	int from, to; /* indices of hosts */
	uint64_t rate_bps, delay_ns; /* PTCP_UNKNOWN: not given */
};

PTCP_API size_t ptcp_overlay_hosts(const struct ptcp_overlay *o);
PTCP_API size_t ptcp_overlay_links(const struct ptcp_overlay *o);
PTCP_API int ptcp_overlay_destination(const struct ptcp_overlay *o);
PTCP_API const char *ptcp_overlay_launch(const struct ptcp_overlay *o); /* may be NULL */
PTCP_API double ptcp_overlay_deadline_s(const struct ptcp_overlay *o);  /* 0: no deadline */
/* `i` must be in range. Pointers in the structs are valid until the overlay is freed. */
PTCP_API void ptcp_overlay_host(const struct ptcp_overlay *o, size_t i,
    struct ptcp_overlay_host *out);
PTCP_API void ptcp_overlay_link(const struct ptcp_overlay *o, size_t i,
    struct ptcp_overlay_link *out);
/* Index of a host, or -1. */
PTCP_API int ptcp_overlay_find_host(const struct ptcp_overlay *o, const char *name);

/* Index of the local host: the host named `name`, or (NULL) the host with a local address; and index of the
 * host that "HOST[:PORT]" denotes: by address as written, by name, or by another name of the address.
 * PTCP_EUSAGE: no such host, or several hosts with local addresses. Both wait for the resolver. */
PTCP_API int ptcp_overlay_local_host(const struct ptcp_overlay *o, const char *name, int *host,
    struct ptcp_err *e);
PTCP_API int ptcp_overlay_remote_host(const struct ptcp_overlay *o, const char *address, int *host,
    struct ptcp_err *e);

/* What-if changes: the rate of a link outside its windows ("A>B"; with a curve the rate of all allowed
 * streams, scaling the curve), and the data of a host (as measured, or remaining when a collection is
 * replanned). PTCP_EUSAGE for an unknown link or host, or data at the destination. */
PTCP_API int ptcp_overlay_set_rate(struct ptcp_overlay *o, const char *link,
    uint64_t rate_bps, struct ptcp_err *e);
PTCP_API int ptcp_overlay_set_data(struct ptcp_overlay *o, const char *host,
    uint64_t bytes, struct ptcp_err *e);

/* Measured values of a link; PTCP_UNKNOWN leaves the value unchanged. */
struct ptcp_overlay_found {
	size_t link; /* index */
	uint64_t rate_bps, delay_ns;
};
/* Reads the overlay file `from` and writes it to `to`, possibly the same file, with the given rates (three
 * digits) and delays (to a microsecond) replaced or added. The remaining text, including comments, order
 * and formatting, stays byte for byte the same. `found` is ascending by link. The file is replaced
 * atomically. PTCP_ECONFIG: no overlay, or a value by YAML alias; PTCP_EIO. */
PTCP_API int ptcp_overlay_save(const char *from, const char *to,
    const struct ptcp_overlay_found *found, size_t n, struct ptcp_err *e);

/* Links that share a bottleneck. */
struct ptcp_shared_bottleneck {
	double rate_bps; /* rate of all links together */
	const size_t *links; /* indices, ascending */
	size_t n;
};
/* The same for shared bottlenecks, which are appended as `shared:`. Returns 1, and writes nothing, if the file has
 * shared bottlenecks already. PTCP_ECONFIG: nothing can be appended to the file. */
PTCP_API int ptcp_overlay_save_shared(const char *from, const char *to, const struct ptcp_shared_bottleneck *found,
    size_t n, struct ptcp_err *e);

/* ---- Measuring links, by messages between the servers at their ends, or from the local host ---- */

struct ptcp_links;
struct ptcp_transfer_opts; /* <ptcp/ptcp.h> */
#define PTCP_LINKS_BUDGET_MAX 1000000

struct ptcp_links_opts {
	size_t size;
	const char *local_host; /* name of the local host; NULL: by address, see --local-host of ptcp-links(1) */
	unsigned budget;    /* total messages; 0: 16 per link */
	unsigned streams;   /* 4; streams per message */
	void (*begin)(void *arg, size_t link); /* before each link; or NULL */
	void *arg;
	bool local_only;     /* skip links that begin at remote hosts */
	/* max size of a message from this host, at least 256 KiB; 0: about a second's worth */
	uint64_t most_bytes;
	bool no_shared;      /* omit the search for shared bottlenecks */
	void (*measured)(void *arg, size_t link);    /* after each estimate; or NULL */
	void (*together)(void *arg, size_t n_links); /* before links are measured together; or NULL */
};
PTCP_API void ptcp_links_opts_init(struct ptcp_links_opts *o);

enum ptcp_link_state {
	PTCP_LINK_MEASURED,
	PTCP_LINK_FAILED,    /* `why` */
	PTCP_LINK_ELSEWHERE, /* skipped, see `why` */
};
/* Unknown numbers are NAN. */
struct ptcp_link_estimate {
	enum ptcp_link_state state;
	const char *why;             /* reason of the latest failure, owned by the links; or NULL */
	/* outcome of the regression: "ok", "one-size", "no-slope" or "no-intercept"; NULL: published */
	const char *result;
	double rate_bps, rate_error_bps; /* sum of all streams, and standard error */
	double delay_s, delay_error_s;   /* one way; error NAN if from the RTT */
	bool delay_from_round_trip;      /* half of the minimum RTT, in place of an unusable intercept */
	double r2_ratio;             /* share of the delays' variance explained by the fit */
	unsigned messages, streams;
	/* messages needed for a rate within 10 % in 95 of 100 cases, for any distribution of delays within
	 * the observed spread */
	double messages_bound;
	double age_s;                /* age of a measured estimate */
};

/* The overlay, and the data referenced by the connection options, must outlive the links. PTCP_EUSAGE:
 * `local_host` is unknown, or no link can be measured. Does not connect, but waits for the resolver. */
PTCP_API int ptcp_links_new(struct ptcp_links **out, const struct ptcp_overlay *o,
    const struct ptcp_transfer_opts *connect, const struct ptcp_links_opts *opts, struct ptcp_err *e);
/* Measures the links: a few messages each, links without a common host at the same time unless they disturb
 * each other; then the rest of the budget where the standard errors of the rates are largest. At the end links
 * are measured together, to find shared bottlenecks; at most 64 links. Blocks; once. PTCP_EPARTIAL: some links
 * failed; if all failed, the code of the first; PTCP_ECANCELED. Successful measurements are available in any
 * case. */
PTCP_API int ptcp_links_measure(struct ptcp_links *l, struct ptcp_err *e);

struct ptcp_links_watch {
	size_t size;
	double pause_s;     /* 60; before each link */
	/* After each link: `why` not NULL, the measurement failed. A result other than 0, with a message,
	 * ends watching. */
	int (*seen)(void *arg, size_t link, const char *why, struct ptcp_err *e);
	void *arg;
	double jitter_ratio; /* 0; random variation of pauses, relative; below 1 */
	bool (*busy)(void *arg); /* delays a measurement while true, for an hour at most; or NULL */
};
PTCP_API void ptcp_links_watch_init(struct ptcp_links_watch *w);
/* Measures one link at a time, a few messages each, until canceled; also after ptcp_links_measure(). Links take turns
 * in proportion to the scatter of their rates, relative to the rates. Estimates are moving averages over about seven
 * turns of all links, with standard errors from their scatter; estimates older than an hour lose their weight, and
 * stand while measurements fail. The first pause of a
 * new link is a tenth. Returns the result of `seen`, PTCP_EUSAGE if no link can be measured, PTCP_ECANCELED
 * or PTCP_ENOMEM. */
PTCP_API int ptcp_links_watch(struct ptcp_links *l, const struct ptcp_links_watch *w, struct ptcp_err *e);
/* Queries the servers at the beginning of links for their published estimates, instead of measuring, and
 * accepts estimates up to three hours old. Blocks; once. Returns as ptcp_links_measure(). */
PTCP_API int ptcp_links_query(struct ptcp_links *l, struct ptcp_err *e);
/* Any thread and signal handlers; idempotent. */
PTCP_API void ptcp_links_cancel(struct ptcp_links *l);
/* Keep writes the estimates of links from the local host to a file, atomically. Recall reads estimates up
 * to three hours old with the same number of streams, for links without a better estimate. PTCP_ECONFIG; a
 * missing file is no error. Not during a measurement, except from `seen`. */
PTCP_API int ptcp_links_keep(const struct ptcp_links *l, const char *file, struct ptcp_err *e);
PTCP_API int ptcp_links_recall(struct ptcp_links *l, const char *file, struct ptcp_err *e);
/* Stores at most `most` shared bottlenecks found by ptcp_links_measure(), which carry less together than apart;
 * returns their number. Pointers are valid until the links are freed. */
PTCP_API size_t ptcp_links_shared(const struct ptcp_links *l, struct ptcp_shared_bottleneck *out, size_t most);
/* Estimate of the overlay's i-th link. */
PTCP_API void ptcp_links_get(const struct ptcp_links *l, size_t i, struct ptcp_link_estimate *out);
PTCP_API int ptcp_links_local_host(const struct ptcp_links *l); /* index of the local host, or -1 */
PTCP_API void ptcp_links_free(struct ptcp_links *l);      /* NULL is fine */

/* ---- Quickest paths ---- */

/* The paths with the earliest delivery of a number of bytes between two hosts, and the bytes for each path
 * such that all paths finish together. */
struct ptcp_paths;
#define PTCP_QUICKEST_MAX 64

/* Finds at most `most` paths, each the quickest in the capacity left by the previous paths on links, shared
 * bottlenecks, ingress and egress; relays forward while they receive. Uses the rates outside windows; skips
 * links without a rate, counts a missing delay as 0, and omits paths without bytes. Each path is exact;
 * another set of paths may be quicker. PTCP_EINFEASIBLE: no path; PTCP_EUSAGE: not two hosts, 0 bytes, or
 * `most` not 1 to PTCP_QUICKEST_MAX. CPU time only. Any thread. */
PTCP_API int ptcp_paths_find(struct ptcp_paths **out, const struct ptcp_overlay *o, int from,
    int to, uint64_t bytes, size_t most, struct ptcp_err *e);
PTCP_API void ptcp_paths_free(struct ptcp_paths *p); /* NULL is fine */

struct ptcp_quickest {
	const int *relays;        /* indices of the hosts between, in order; owned by the paths */
	size_t n_relays;          /* 0: direct */
	double rate_bps, delay_s; /* rate of the path, and sum of its links' delays */
	uint64_t bytes;           /* sum over all paths: the requested bytes */
};
PTCP_API size_t ptcp_paths_count(const struct ptcp_paths *p);
/* The i-th path in the order found, the quickest first. */
PTCP_API void ptcp_paths_get(const struct ptcp_paths *p, size_t i, struct ptcp_quickest *out);
/* Time of the last arrival, exact, with divisible bytes. */
PTCP_API double ptcp_paths_finish_s(const struct ptcp_paths *p);

/* ---- Plans ---- */

enum ptcp_plan_method {
	PTCP_PLAN_DIRECT,      /* all sources directly to the destination, at once */
	PTCP_PLAN_BEST_PATH,   /* each source over its best path with at most one relay */
	PTCP_PLAN_COORDINATED, /* time slots; relays forward in later slots than they receive */
	PTCP_PLAN_PIPELINED,   /* relays forward while they receive, and store data if useful */
};
/* "direct", "best-path", "coordinated", "pipelined"; find returns -1 for an unknown name. */
PTCP_API const char *ptcp_plan_method_name(enum ptcp_plan_method m);
PTCP_API int ptcp_plan_method_find(const char *name);

struct ptcp_plan_opts {
	size_t size;       /* set by ptcp_plan_opts_init() */
	enum ptcp_plan_method method;
	double slot_s;     /* coordinated; 0: the overlay's, else 1/100 of the direct makespan */
	double deadline_s; /* 0: the overlay's, if any */
	double effort_s;   /* CPU time for a proof or a better plan after the first plan */
	/* While planning, at least once a second or so, on another thread, with the CPU time so far: false ends planning with
	 * PTCP_ECANCELED. NULL: none */
	bool (*go_on)(void *arg, double cpu_s);
	void *arg;
};
/* Pipelined, the overlay's slot and deadline, 10 s of effort. */
PTCP_API void ptcp_plan_opts_init(struct ptcp_plan_opts *o);

struct ptcp_plan;

/* Makes a plan of minimum makespan by the method; among equal plans minimum relayed bytes, then minimum
 * storage (the sum over hosts of their peaks). Copies the overlay as needed. Every plan has passed
 * ptcp_plan_verify(). PTCP_EINFEASIBLE: no plan, or none within the deadline; the message names the source
 * that cannot reach the destination, the insufficient cut, or the window. PTCP_ECONFIG: a required rate or
 * size is unknown. PTCP_ERANGE: too many slots. Blocks; CPU time only. Any thread. */
PTCP_API int ptcp_plan_make(struct ptcp_plan **out, const struct ptcp_overlay *o,
    const struct ptcp_plan_opts *opts, struct ptcp_err *e);
PTCP_API void ptcp_plan_free(struct ptcp_plan *p); /* NULL is fine */

struct ptcp_plan_info {
	enum ptcp_plan_method method;
	double makespan_s;
	double bound_s;       /* lower bound for this method; direct and best path: the makespan */
	double slot_s;        /* coordinated; else 0 */
	double solve_s;       /* wall time of planning */
	double data_bytes;
	double relayed_bytes; /* summed over the relays crossed by each byte */
	double relayed_bound_bytes; /* lower bound for this makespan; direct and best path: relayed_bytes */
};
PTCP_API void ptcp_plan_info(const struct ptcp_plan *p, struct ptcp_plan_info *out);

/* The plan as pieces: bytes [offset, offset + bytes) of one source's data cross `nhops` links, hop i at the
 * constant rate bytes / (end_s - start_s) from start_s to end_s. The pieces of a source cover its data
 * once. */
struct ptcp_plan_hop {
	int from, to; /* indices of hosts */
	double start_s, end_s;
};
struct ptcp_plan_piece {
	int source;
	uint64_t offset, bytes;
	size_t nhops;
	const struct ptcp_plan_hop *hops; /* owned by the plan */
};
PTCP_API size_t ptcp_plan_pieces(const struct ptcp_plan *p);
PTCP_API void ptcp_plan_piece(const struct ptcp_plan *p, size_t i,
    struct ptcp_plan_piece *out);

/* The plan as steps: data of one source over one link in one time; by start, then from, to, source. */
struct ptcp_plan_step {
	int from, to, source; /* indices of hosts */
	double start_s, end_s;
	uint64_t bytes;
};
PTCP_API size_t ptcp_plan_steps(const struct ptcp_plan *p);
PTCP_API void ptcp_plan_step(const struct ptcp_plan *p, size_t i,
    struct ptcp_plan_step *out);

/* Streams of a link, constant over time; 0 if the overlay does not count streams by curves, or the plan
 * does not use the link. */
PTCP_API unsigned ptcp_plan_streams(const struct ptcp_plan *p, int from, int to);

/* Peak of the bytes stored by a host for other hosts (coordinated: at the ends of slots). */
PTCP_API double ptcp_plan_storage_bytes(const struct ptcp_plan *p, int host);

/* Verifies a plan against an overlay from the pieces alone: all data of all sources arrives once, over
 * existing links and permitted relays; no link, shared bottleneck, ingress, egress or storage is exceeded
 * at any time (by more than a part in a million and rounding to whole bytes); hosts forward received data
 * only; with curves, no link exceeds the rate of its streams, and no bottleneck the streams of its budget.
 * PTCP_EVERIFY with the first violation. */
PTCP_API int ptcp_plan_verify(const struct ptcp_plan *p, const struct ptcp_overlay *o,
    struct ptcp_err *e);

/* ---- Collecting: a plan carried out, at the destination, with the servers of the other hosts ---- */

struct ptcp_collect;

enum ptcp_collect_state {
	PTCP_COLLECT_WAITING, /* not started, or waiting for a retry */
	PTCP_COLLECT_RUNNING,
	PTCP_COLLECT_DONE,
	PTCP_COLLECT_FAILED,  /* see `why` */
};
/* "waiting", "running", "done", "failed" */
PTCP_API const char *ptcp_collect_state_name(enum ptcp_collect_state s);

/* A host with data to collect. */
struct ptcp_collect_source {
	int host;
	enum ptcp_collect_state state;
	struct ptcp_progress progress; /* sum of all attempts together; without activity and max_streams */
	double rate_bps;              /* mean over the last seconds */
	int code;                     /* PTCP_E* and message of the latest failure; 0 and NULL */
	const char *why;
	int sys;                      /* its cause, as in struct ptcp_err */
};

/* A link of the overlay; its traffic follows from the paths that cross the link. */
struct ptcp_collect_link {
	uint64_t bytes;               /* bytes in this run */
	double rate_bps;              /* mean over the last seconds */
	double planned_bps;           /* planned rate now */
	double estimate_bps;          /* estimated rate now */
};

enum ptcp_collect_event_type {
	PTCP_COLLECT_PLAN,     /* new plan: text NULL for the first, or the reason */
	PTCP_COLLECT_PROGRESS, /* about twice a second */
	PTCP_COLLECT_SOURCE,   /* state of `source` changed */
	PTCP_COLLECT_FILE,     /* failed or (PTCP_EVANISHED) vanished file of `source`: path, text, code, sys */
	PTCP_COLLECT_WARNING,  /* text; `source` or -1 */
};

struct ptcp_collect_event {
	enum ptcp_collect_event_type type;
	double elapsed_s;                      /* time since the start, as all times here */
	double planned_s;                      /* end of the current plan */
	double eta_s;                          /* estimated time left, or NAN */
	uint64_t bytes, total_bytes;           /* sums of all sources */
	double rate_bps;
	const struct ptcp_plan *plan;          /* current plan, starting at plan_start_s; or NULL */
	double plan_start_s;
	int source;                            /* index in `sources` */
	const char *path, *text;               /* raw bytes, escape before printing; a message */
	int code, sys;                         /* FILE, and SOURCE that failed: a PTCP_E* and its cause */
	const struct ptcp_collect_source *sources; /* in the order of the overlay */
	size_t n_sources;
	const struct ptcp_collect_link *links; /* number: ptcp_overlay_links() */
};

/* Called on the thread of ptcp_collect_run(); contents of ev are valid during the call only. May call
 * ptcp_collect_cancel(). */
typedef void ptcp_collect_event_fn(void *arg, const struct ptcp_collect_event *ev);

struct ptcp_collect_opts {
	size_t size;
	enum ptcp_plan_method method; /* pipelined */
	double deadline_s;            /* 0: the overlay's; for the first plan */
	unsigned streams;             /* 4; per planned path */
	bool no_replan;               /* keep the first plan, whatever the links deliver */
	/* 10; max slowdown of competing flows at the bottlenecks, beyond that by the method direct with one stream per source;
	 * 100: no limit */
	double impact_percent;
	ptcp_collect_event_fn *event; /* NULL: silent */
	void *arg;
};
PTCP_API void ptcp_collect_opts_init(struct ptcp_collect_opts *o);

/* Collects the data of an overlay's hosts into `dest`: the host's `path` into dest/HOST/, as a transfer
 * into a directory (<ptcp/ptcp.h>). Each transfer uses the options `connect`, except paths, streams, rates
 * and events. The collection uses the overlay until freed, and updates its rates and data. PTCP_ECONFIG: a
 * host with data has no path or address. Copies the other arguments; does not connect. */
PTCP_API int ptcp_collect_new(struct ptcp_collect **out, struct ptcp_overlay *o,
    const struct ptcp_transfer_opts *connect, const char *dest, const struct ptcp_collect_opts *opts,
    struct ptcp_err *e);
/* Blocks until all sources are done, failed or canceled; once. Retries a lost or unreachable source until
 * connect's timeout_s has passed without progress. PTCP_EPARTIAL: sources or files failed, the rest is
 * done; if nothing is done, the code of the first failure. PTCP_EINFEASIBLE and other errors of
 * ptcp_plan_make() before the first transfer. PTCP_ECANCELED: interrupted; a new collection resumes. */
PTCP_API int ptcp_collect_run(struct ptcp_collect *c, struct ptcp_err *e);
/* Any thread and signal handlers; idempotent. */
PTCP_API void ptcp_collect_cancel(struct ptcp_collect *c);

/* Result; valid after the end, with any outcome. */
struct ptcp_collect_result {
	size_t size;
	uint64_t bytes, wire_bytes, resumed_bytes, files, failed; /* sums over the sources */
	double seconds;               /* from the first transfer's start: the actual makespan */
	double planned_s;             /* makespan of the first plan; 0: no plan */
	double last_planned_s;        /* end of the last plan */
	unsigned replans;
	size_t sources_done, sources_failed;
};
PTCP_API void ptcp_collect_result_init(struct ptcp_collect_result *r);
/* Fills the fields known to the caller's ptcp_collect_result_init(). */
PTCP_API void ptcp_collect_result(const struct ptcp_collect *c, struct ptcp_collect_result *r);
/* The i-th source and link, as in events; pointers are valid while the handle is. */
PTCP_API size_t ptcp_collect_sources(const struct ptcp_collect *c);
PTCP_API void ptcp_collect_source(const struct ptcp_collect *c, size_t i,
    struct ptcp_collect_source *out);
PTCP_API void ptcp_collect_link(const struct ptcp_collect *c, size_t i, struct ptcp_collect_link *out);
/* Copies the overlay file `from` to `to` with the rates of links that the collection found to differ, and with the
 * shared bottlenecks that it concluded, except rates that fell while this host lacked processor time; after the end.
 * Returns 1 if the file has shared bottlenecks already, which stay as they are. Errors as ptcp_overlay_save();
 * PTCP_ECONFIG, too: the file has other links than the overlay. */
PTCP_API int ptcp_collect_save(const struct ptcp_collect *c, const char *from, const char *to, struct ptcp_err *e);
PTCP_API void ptcp_collect_free(struct ptcp_collect *c); /* NULL is fine; not while it runs */

#ifdef __cplusplus
}
#endif
#endif
