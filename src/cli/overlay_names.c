#include "cli/overlay_names.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define SCHEME "ptcp://"
#define PATHS_DEFAULT 2
#define LARGE_BYTES 1000000000000 /* for more bytes delays no longer matter */
#define ENTRIES_MAX 100000        /* sources with more entries count as large */

/* ---- Names ---- */

const char *host_name(const struct ptcp_overlay *o, int host)
{
	struct ptcp_overlay_host h;

	ptcp_overlay_host(o, (size_t)host, &h);
	return h.name;
}

const char *link_name(char out[LINK_NAME_BYTES], const struct ptcp_overlay *o, int from, int to)
{
	snprintf(out, LINK_NAME_BYTES, "%s>%s", host_name(o, from), host_name(o, to));
	return out;
}

const char *link_name_of(char out[LINK_NAME_BYTES], const struct ptcp_overlay *o, size_t link)
{
	struct ptcp_overlay_link l;

	ptcp_overlay_link(o, link, &l);
	return link_name(out, o, l.from, l.to);
}

/* ---- Paths ---- */

/* Approximate bytes of the sources; ignores filters and data already transferred. */
static uint64_t size_of(const char *const *srcs, size_t n)
{
	uint64_t bytes = 0;
	size_t i, entries = 0;
	FTSENT *f;
	FTS *t;

	for (i = 0; i < n; i++) {
		char *const roots[] = { (char *)(uintptr_t)srcs[i], NULL };

		if ((t = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, NULL)) == NULL)
			continue;
		while (bytes < LARGE_BYTES && (f = fts_read(t)) != NULL) {
			if (f->fts_info == FTS_F)
				bytes += (uint64_t)f->fts_statp->st_size;
			if (++entries == ENTRIES_MAX)
				bytes = LARGE_BYTES;
		}
		fts_close(t);
	}
	return bytes > 0 ? bytes : 1;
}

/* HOST[:PORT] of ptcp://HOST[:PORT]/PATH, to be freed. */
static int authority(char **out, const char *url, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	if (strncasecmp(url, SCHEME, strlen(SCHEME)) != 0)
		return err_set(e, PTCP_EUSAGE, "%s: paths of an overlay end at servers (write ptcp://HOST/PATH)",
		    text_escape(shown, sizeof shown, url));
	url += strlen(SCHEME);
	return (*out = strndup(url, strcspn(url, "/"))) != NULL ? 0 : err_nomem(e);
}

/* "A,B" or "direct", to be freed. */
static int relays_text(char **out, const struct ptcp_overlay *o, const struct ptcp_quickest *q, struct ptcp_err *e)
{
	struct ptcp_overlay_host h;
	size_t i, len = sizeof "direct";
	char *text;

	for (i = 0; i < q->n_relays; i++) {
		ptcp_overlay_host(o, (size_t)q->relays[i], &h);
		if (h.address == NULL)
			return err_set(e, PTCP_EUSAGE,
			    "--overlay: %s, a relay of the quickest paths, has no address (add an address)", h.name);
		len += strlen(h.address) + 1;
	}
	if ((text = malloc(len)) == NULL)
		return err_nomem(e);
	strcpy(text, q->n_relays == 0 ? "direct" : "");
	for (i = 0; i < q->n_relays; i++) {
		ptcp_overlay_host(o, (size_t)q->relays[i], &h);
		strcat(strcat(text, i > 0 ? "," : ""), h.address);
	}
	*out = text;
	return 0;
}

static int copy_paths(struct overlay_paths *r, const struct ptcp_overlay *o, const struct ptcp_paths *p, bool verbose,
    struct ptcp_err *e)
{
	char rate[UNITS_TEXT_BYTES];
	struct ptcp_quickest q;
	uint64_t all = 0;
	size_t i, n = ptcp_paths_count(p);
	int code;

	for (i = 0; i < n; i++) {
		ptcp_paths_get(p, i, &q);
		all += q.bytes;
	}
	for (i = 0; i < n; i++) {
		ptcp_paths_get(p, i, &q);
		if ((code = relays_text(&r->path[i], o, &q, e)) < 0)
			return code;
		r->share[i] = (double)q.bytes;
		r->n++;
		if (verbose)
			terminal_line("ptcp: path %s: %s, %.3g ms, %.1f %% of the data", r->path[i],
			    units_rate_text(rate, q.rate_bps), 1e3 * q.delay_s, 100 * (double)q.bytes / (double)all);
	}
	return 0;
}

/* The overlay, to be freed in any case, and the hosts that send and receive the data. */
static int load(struct ptcp_overlay **o, int *from, int *to, const struct overlay_query *q, struct ptcp_err *e)
{
	char *server = NULL;
	int local, remote, r;

	*o = NULL;
	if ((r = authority(&server, q->sends ? q->dest : q->srcs[0], e)) == 0 &&
	    (r = ptcp_overlay_load(o, q->file, e)) == 0 &&
	    (r = ptcp_overlay_local_host(*o, q->local_host, &local, e)) == 0 &&
	    (r = ptcp_overlay_remote_host(*o, server, &remote, e)) == 0) {
		*from = q->sends ? local : remote;
		*to = q->sends ? remote : local;
		if (local == remote)
			r = err_set(e, PTCP_EUSAGE, "%s: is also the local host in the overlay (name the local host "
			    "with --local-host)", server);
	}
	free(server);
	return r;
}

int overlay_paths_find(struct overlay_paths *r, const struct overlay_query *q, struct ptcp_err *e)
{
	uint64_t bytes = q->sends ? size_of(q->srcs, q->n_srcs) : LARGE_BYTES;
	struct ptcp_paths *p = NULL;
	struct ptcp_overlay *o;
	int from, to, code;

	if ((code = load(&o, &from, &to, q, e)) == 0 &&
	    (code = ptcp_paths_find(&p, o, from, to, bytes, q->n_paths > 0 ? q->n_paths : PATHS_DEFAULT, e)) == 0)
		code = copy_paths(r, o, p, q->verbose, e);
	ptcp_paths_free(p);
	ptcp_overlay_free(o);
	return code;
}

/* ---- Candidates ---- */

/* 0: unknown. */
static double link_bps(const struct ptcp_overlay *o, int from, int to)
{
	struct ptcp_overlay_link l;
	size_t i;

	for (i = 0; i < ptcp_overlay_links(o); i++) {
		ptcp_overlay_link(o, i, &l);
		if (l.from == from && l.to == to && l.rate_bps != PTCP_UNKNOWN)
			return (double)l.rate_bps;
	}
	return 0;
}

static double candidate_bps(const struct ptcp_overlay *o, int from, int to, const char *candidate)
{
	struct ptcp_err ignored;
	double in, out;
	int relay;

	if (strcmp(candidate, "direct") == 0)
		return link_bps(o, from, to);
	if (ptcp_overlay_remote_host(o, candidate, &relay, &ignored) < 0)
		return 0;
	in = link_bps(o, from, relay);
	out = link_bps(o, relay, to);
	return in < out ? in : out;
}

int overlay_candidates(double *bps, const char *const *candidates, size_t n, const struct overlay_query *q,
    struct ptcp_err *e)
{
	char rate[UNITS_TEXT_BYTES];
	struct ptcp_overlay *o;
	int from, to, r;
	size_t i;

	r = load(&o, &from, &to, q, e);
	for (i = 0; r == 0 && i < n; i++) {
		bps[i] = candidate_bps(o, from, to, candidates[i]);
		if (q->verbose)
			terminal_line("ptcp: candidate %s: %s", candidates[i],
			    bps[i] > 0 ? units_rate_text(rate, (uint64_t)bps[i]) : "unknown bandwidth");
	}
	ptcp_overlay_free(o);
	return r;
}

void overlay_paths_fini(struct overlay_paths *r)
{
	while (r->n > 0)
		free(r->path[--r->n]);
}
