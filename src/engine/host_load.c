#include "engine/host_load.h"

#include <stdio.h>

void host_load_init(struct host_load *h, bool starter, bool several, struct mono now)
{
	*h = (struct host_load){ .starter = starter, .several = several, .checked = now, .disk_at = now };
}

void host_load_peer(struct host_load *h, const struct wire_load *f, struct mono now)
{
	h->peer = *f;
	h->peer_at = now;
}

void host_load_disk(struct host_load *h, bool waits, struct mono now)
{
	if (h->on_disk)
		h->disk_ns += mono_diff_ns(now, h->disk_at);
	h->on_disk = waits;
	h->disk_at = now;
}

void host_load_waited(struct host_load *h, uint64_t ns) { h->waited_ns = ns; }

static unsigned permille(uint64_t part, uint64_t whole)
{
	return part < whole ? (unsigned)(1000 * part / whole) : 1000;
}

/* Of the least loaded thread: idle time on any thread leaves room for more streams. */
static unsigned cpu_permille(struct host_load *h, const uint64_t *idle_ns, unsigned workers, uint64_t elapsed_ns)
{
	uint64_t max = 0;
	unsigned i;

	for (i = 0; i < workers; i++) {
		if (idle_ns[i] - h->idle_ns[i] > max)
			max = idle_ns[i] - h->idle_ns[i];
		h->idle_ns[i] = idle_ns[i];
	}
	return 1000 - permille(max, elapsed_ns);
}

static enum host_load_cause largest(const unsigned *of)
{
	enum host_load_cause max = HOST_LOAD_OUR_CPU, i;

	for (i = HOST_LOAD_OUR_DISK; i < HOST_LOAD_CAUSES; i++)
		if (of[i] > of[max])
			max = i;
	return max;
}

static bool is_full(const struct wire_load *l)
{
	return l->busy_permille >= HOST_LOAD_FULL_PERMILLE || l->disk_permille >= HOST_LOAD_FULL_PERMILLE;
}

struct wire_load host_load_of_peer(const struct host_load *h, struct mono now)
{
	return mono_diff_ns(now, h->peer_at) < 2 * HOST_LOAD_INTERVAL_NS ? h->peer : (struct wire_load){ 0, 0 };
}

/* Of no use for the user. */
static bool is_idle(const struct wire_load *l) { return l->busy_permille < 100 && l->disk_permille < 100; }

static enum host_load_action judge(struct host_load *h, bool throttled, struct mono now)
{
	struct wire_load peer = host_load_of_peer(h, now);

	if (throttled || (!is_full(&h->ours) && !is_full(&peer))) {
		h->full -= h->full > 0;
		return HOST_LOAD_NOTHING;
	}
	h->full_by[largest((unsigned[]){ h->ours.busy_permille, h->ours.disk_permille, peer.busy_permille,
	    peer.disk_permille })]++;
	if (++h->full != HOST_LOAD_INTERVALS || h->warned || !h->several)
		return HOST_LOAD_NOTHING;
	h->warned = true;
	return HOST_LOAD_WARN;
}

bool host_load_due(const struct host_load *h, struct mono now)
{
	return mono_diff_ns(now, h->checked) >= HOST_LOAD_INTERVAL_NS;
}

enum host_load_action host_load_check(struct host_load *h, const uint64_t *idle_ns, unsigned workers, bool throttled,
    struct mono now)
{
	uint64_t elapsed_ns = mono_diff_ns(now, h->checked);

	h->ours.busy_permille = (uint16_t)cpu_permille(h, idle_ns, workers, elapsed_ns);
	h->ours.disk_permille = (uint16_t)permille(h->disk_ns > h->waited_ns ? h->disk_ns : h->waited_ns,
	    elapsed_ns);
	h->disk_ns = h->waited_ns = 0;
	h->checked = now;
	if (h->starter)
		return judge(h, throttled, now);
	return is_idle(&h->ours) ? HOST_LOAD_NOTHING : HOST_LOAD_REPORT;
}

void host_load_warning(const struct host_load *h, char *text, size_t cap)
{
	static const char *const name[HOST_LOAD_CAUSES] = { "this host's processor", "this host's disk",
		"the peer's processor", "the peer's disk" };

	snprintf(text, cap, "the bottleneck is %s, not the network: more paths do not increase throughput (check for "
	    "other load there)", name[largest(h->full_by)]);
}

struct mono host_load_deadline(const struct host_load *h)
{
	return mono_add_ns(h->checked, HOST_LOAD_INTERVAL_NS);
}
