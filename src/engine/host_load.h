/* Detects a host as the bottleneck: each end measures the idle time of its worker threads and how long its disk
 * blocked streams; the acceptor reports its load to the starter, which warns once of a high load. While the network is
 * the bottleneck, both ends have idle time. */
#ifndef ENGINE_HOST_LOAD_H
#define ENGINE_HOST_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/clock.h"
#include "wire/frame.h"

#define HOST_LOAD_WORKERS_MAX 64
#define HOST_LOAD_INTERVAL_NS (UINT64_C(1) * 1000000000)
#define HOST_LOAD_FULL_PERMILLE 800u    /* a resource is saturated if busy for this part of an interval */
#define HOST_LOAD_INTERVALS 4u          /* saturated minus unsaturated intervals before the warning */

enum host_load_cause { HOST_LOAD_OUR_CPU, HOST_LOAD_OUR_DISK, HOST_LOAD_PEER_CPU, HOST_LOAD_PEER_DISK,
    HOST_LOAD_CAUSES };
enum host_load_action { HOST_LOAD_NOTHING, HOST_LOAD_WARN, HOST_LOAD_REPORT };

struct host_load {
	bool starter;                           /* warns, if there are several paths; else reports */
	bool several, warned;
	struct mono checked;                    /* start of the interval */
	uint64_t idle_ns[HOST_LOAD_WORKERS_MAX]; /* counters at that time */
	struct mono disk_at;                    /* time of the last call of host_load_disk() */
	bool on_disk;                           /* argument of the last call of host_load_disk() */
	uint64_t disk_ns;                       /* blocked, in this interval */
	uint64_t waited_ns;                     /* argument of host_load_waited(), in this interval */
	struct wire_load ours, peer;            /* load of this end in the last interval; latest report of the peer */
	struct mono peer_at;                    /* time of the report */
	unsigned full, full_by[HOST_LOAD_CAUSES]; /* saturated intervals; by the largest cause */
};

/* The starter warns if there are several paths, the acceptor reports. */
void host_load_init(struct host_load *h, bool starter, bool several, struct mono now);
/* The acceptor's report. */
void host_load_peer(struct host_load *h, const struct wire_load *f, struct mono now);
/* Call at every event: whether a stream waits for a disk from now on. */
void host_load_disk(struct host_load *h, bool waits, struct mono now);
/* The same as streams count it, on average, in this interval: sampling misses waits between two events. */
void host_load_waited(struct host_load *h, uint64_t ns);
bool host_load_due(const struct host_load *h, struct mono now);
/* Ends the interval. idle_ns: idle time of each worker thread since its start. throttled: a rate limit, spooling
 * relays or verification make the session slow on purpose. REPORT: send `ours`; WARN: host_load_warning(). */
enum host_load_action host_load_check(struct host_load *h, const uint64_t *idle_ns, unsigned workers, bool throttled,
    struct mono now);
void host_load_warning(const struct host_load *h, char *text, size_t cap);
/* The latest report of the peer, unless it is too old: then zeros. */
struct wire_load host_load_of_peer(const struct host_load *h, struct mono now);
struct mono host_load_deadline(const struct host_load *h);

#endif
