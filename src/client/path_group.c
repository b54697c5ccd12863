#include "client/path_group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/userdir.h"
#include "store/hash.h"

#define PLACES STREAM_GROUP_MAX
#define LEADER PLACES /* byte of the leader's lock */

struct record {
	uint64_t begin;
	struct stream_member member;
	uint64_t end;
};

struct order {
	uint64_t begin;
	uint64_t id[PLACES];    /* members addressed; 0: none */
	struct stream_share share[PLACES];
	char known[HISTORY_LINE_BYTES]; /* "": nothing yet */
	uint64_t end;
};

struct path_group {
	int file;               /* descriptor that holds the locks */
	char path[USERDIR_BYTES + 32];
	struct history_key key;
	unsigned place, others;
	bool leads;
	struct record own;
	struct order order;     /* the latest: read, or written by the leader */
	struct stream_group group;
	unsigned recorded;      /* levels that order.known has */
};

/* ---- The file ---- */

/* Another version of the structs is another group; so is the network namespace of a container. */
static void name_file(struct path_group *g, const char *dir)
{
	char text[HISTORY_PEER_BYTES + HISTORY_LOCAL_BYTES + 96];
	struct stat net;
	int n;

	if (stat("/proc/self/ns/net", &net) < 0)
		net.st_ino = 0;
	n = snprintf(text, sizeof text, "%zu %zu %ju %d %s %s", sizeof(struct record), sizeof(struct order),
	    (uintmax_t)net.st_ino, g->key.sends, g->key.peer, g->key.local);
	snprintf(g->path, sizeof g->path, "%s/%016" PRIx64 ".path", dir, hash_content(text, (size_t)n));
}

static bool lock_byte(int file, unsigned byte)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(file, F_OFD_SETLK, &l) == 0;
}

/* By another member. */
static bool is_locked(int file, unsigned byte)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(file, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

static off_t place_offset(unsigned place)
{
	return (off_t)(sizeof(struct order) + place * sizeof(struct record));
}

static void publish(struct path_group *g)
{
	ssize_t n;

	g->own.end = ++g->own.begin;
	n = pwrite(g->file, &g->own, sizeof g->own, place_offset(g->place));
	(void)n; /* a full disk: the leader waits for this member, then leaves it aside */
}

static void write_order(struct path_group *g)
{
	ssize_t n;

	g->order.end = ++g->order.begin;
	n = pwrite(g->file, &g->order, sizeof g->order, 0);
	(void)n;
}

static void read_order(struct path_group *g)
{
	struct order o;

	if (pread(g->file, &o, sizeof o, 0) != sizeof o || o.begin != o.end)
		return;
	g->order = o;
	g->order.known[sizeof g->order.known - 1] = '\0';
}

/* A record that is being written is read the next time. */
static void read_members(struct path_group *g, struct stream_member now[PLACES])
{
	struct record r[PLACES];
	ssize_t n = pread(g->file, r, sizeof r, place_offset(0));
	unsigned i;

	memset(now, 0, PLACES * sizeof *now);
	for (i = 0; i < PLACES && (ssize_t)((i + 1) * sizeof *r) <= n; i++) {
		if (r[i].member.id == 0 || (i != g->place && !is_locked(g->file, i)))
			continue;
		now[i] = r[i].begin == r[i].end ? r[i].member : g->group.last[i];
		now[i].congestion[sizeof now[i].congestion - 1] = '\0';
	}
}

/* ---- Members ---- */

static unsigned count_others(const struct path_group *g)
{
	unsigned i, n = 0;

	for (i = 0; i < PLACES; i++)
		n += i != g->place && is_locked(g->file, i);
	return n;
}

/* In a directory that is locked. */
static int take_place(struct path_group *g, struct ptcp_err *e)
{
	if ((g->file = open(g->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600)) < 0)
		return err_sys(e, PTCP_ECONFIG, "opening %s", g->path);
	while (g->place < PLACES && !lock_byte(g->file, g->place))
		g->place++;
	if (g->place == PLACES)
		return err_set(e, PTCP_ECONFIG, "%s: no lock (at most %u transfers share a path)", g->path, PLACES);
	g->others = count_others(g);
	if (g->others == 0 && ftruncate(g->file, 0) < 0) /* left by members that died */
		return err_sys(e, PTCP_ECONFIG, "writing %s", g->path);
	return 0;
}

static int join_in(struct path_group *g, const char *dir, struct ptcp_err *e)
{
	int lock = userdir_private(dir, true, e), r;

	if (lock < 0)
		return lock;
	name_file(g, dir);
	g->place = 0;
	if ((r = take_place(g, e)) < 0)
		fd_close(&g->file);
	else
		publish(g);
	fd_close(&lock);
	return r;
}

static int join_anywhere(struct path_group *g, const char *dir, struct ptcp_err *e)
{
	char runtime[USERDIR_RUNTIME][USERDIR_RUNTIME_BYTES], own[USERDIR_BYTES];
	unsigned n, i;
	int r;

	if (dir != NULL) {
		if (snprintf(own, sizeof own, "%s/run", dir) >= (int)sizeof own)
			return err_set(e, PTCP_ECONFIG, "the directory %s: too long (choose a shorter one)", dir);
		return join_in(g, own, e);
	}
	n = userdir_runtime(runtime);
	for (i = 0, r = PTCP_ECONFIG; i < n && r < 0; i++)
		r = join_in(g, runtime[i], e);
	return r;
}

struct path_group *path_group_join(const char *dir, const struct history_key *key, enum stream_member_kind kind,
    double budget_ratio, struct ptcp_err *e)
{
	struct path_group *g = calloc(1, sizeof *g);

	if (g == NULL) {
		err_nomem(e);
		return NULL;
	}
	g->file = -1;
	g->key = *key;
	g->own.member = (struct stream_member){ .id = mono_now().ns ^ (uint64_t)getpid() << 44, .kind = kind,
		.budget_ratio = budget_ratio, .streams = 1 };
	if (join_anywhere(g, dir, e) == 0)
		return g;
	free(g);
	return NULL;
}

unsigned path_group_others(const struct path_group *g) { return g->others; }

bool path_group_begin(struct path_group *g, const char *congestion)
{
	snprintf(g->own.member.congestion, sizeof g->own.member.congestion, "%s", congestion);
	strcpy(g->key.congestion, g->own.member.congestion);
	publish(g);
	g->leads = lock_byte(g->file, LEADER);
	return g->leads;
}

void path_group_budget(void *arg, double ratio)
{
	((struct path_group *)arg)->own.member.budget_ratio = ratio; /* published with the next sample */
}

void path_group_leave(struct path_group *g)
{
	char *slash;
	int lock;

	if (g == NULL)
		return;
	slash = strrchr(g->path, '/');
	*slash = '\0';
	lock = userdir_private(g->path, false, NULL);
	*slash = '/';
	if (lock >= 0 && count_others(g) == 0)
		unlink(g->path);
	fd_close(&g->file);
	fd_close(&lock);
	*slash = '\0';
	userdir_private_remove(g->path);
	free(g);
}

/* ---- Samples ---- */

/* What the leader knew of the path. */
static void take_over(struct path_group *g, struct stream_control *model)
{
	struct history_entry h;

	g->leads = true;
	read_order(g);
	if (history_parse(&h, g->order.known))
		stream_control_recall(model, h.probe, h.n_probes, &h.evidence);
}

static void keep_known(struct path_group *g, const struct stream_control *model)
{
	struct history_entry h = { .key = g->key, .when_s = (int64_t)time(NULL) };

	if (model->recorded == g->recorded)
		return;
	g->recorded = model->recorded;
	if (!history_learn(&h, model) || history_format(g->order.known, &h) == 0)
		g->order.known[0] = '\0';
}

static void lead(struct path_group *g, struct stream_control *model, double interval_s)
{
	struct stream_member now[PLACES];
	unsigned i, transfers = g->group.transfers, recorded = g->recorded;
	bool changed;

	read_members(g, now);
	changed = stream_group_add(&g->group, model, now, g->place, interval_s);
	keep_known(g, model);
	if (!changed && g->group.transfers == transfers && g->recorded == recorded)
		return;
	for (i = 0; i < PLACES; i++) {
		g->order.id[i] = now[i].id;
		stream_group_share(&g->order.share[i], &g->group, model, i);
	}
	write_order(g);
}

bool path_group_add(void *arg, struct stream_control *model, const struct stream_control_sample *x,
    struct stream_share *out)
{
	struct path_group *g = arg;
	const struct stream_share *s = &g->order.share[g->place];
	bool changed;

	stream_member_add(&g->own.member, x);
	publish(g);
	if (!g->leads && lock_byte(g->file, LEADER))
		take_over(g, model);
	if (g->leads)
		lead(g, model, x->interval_s);
	else
		read_order(g);
	if (g->order.id[g->place] != g->own.member.id || s->streams == 0)
		return false;
	changed = s->streams != out->streams || s->settled != out->settled ||
	    strncmp(s->reason, out->reason, sizeof out->reason) != 0;
	*out = *s;
	out->reason[sizeof out->reason - 1] = '\0';
	g->own.member.streams = out->streams;
	return changed;
}
