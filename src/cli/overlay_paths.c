#include "cli/overlay_paths.h"

#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <ptcp/plan.h>

#include "cli/terminal.h"
#include "cli/transfer.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define SCHEME "ptcp://"
#define PATHS_USUAL 2
#define LARGE_BYTES 1000000000000 /* beyond that only rates count */
#define ENTRIES_MOST 100000       /* who has to look at more of them takes it for large */

/* What is to be sent, about: rules and what is there already are not looked at. */
static uint64_t size_of(const char *const *srcs, size_t n)
{
	uint64_t bytes = 0;
	size_t i, entries = 0;
	FTSENT *f;
	FTS *t;

	for (i = 0; i < n; i++) {
		char *const one[] = { (char *)(uintptr_t)srcs[i], NULL };

		if ((t = fts_open(one, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, NULL)) == NULL)
			continue;
		while (bytes < LARGE_BYTES && (f = fts_read(t)) != NULL) {
			if (f->fts_info == FTS_F)
				bytes += (uint64_t)f->fts_statp->st_size;
			if (++entries == ENTRIES_MOST)
				bytes = LARGE_BYTES;
		}
		fts_close(t);
	}
	return bytes > 0 ? bytes : 1;
}

/* HOST[:PORT] of ptcp://HOST[:PORT]/PATH, to be freed. */
static int authority(char **out, const char *place, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	if (strncasecmp(place, SCHEME, strlen(SCHEME)) != 0)
		return err_set(e, PTCP_EUSAGE, "%s: paths of an overlay lead to daemons (write ptcp://HOST/PATH)",
		    text_escape(shown, sizeof shown, place));
	place += strlen(SCHEME);
	return (*out = strndup(place, strcspn(place, "/"))) != NULL ? 0 : err_nomem(e);
}

/* "A,B", to be freed; "direct". */
static int via_text(char **out, const struct ptcp_overlay *o, const struct ptcp_quickest *q, struct ptcp_err *e)
{
	struct ptcp_overlay_host h;
	size_t i, len = sizeof "direct";
	char *text;

	for (i = 0; i < q->n_relays; i++) {
		ptcp_overlay_host(o, (size_t)q->relays[i], &h);
		if (h.address == NULL)
			return err_set(e, PTCP_EUSAGE, "--overlay: %s, which the quickest paths go through, has no address there (add it)",
			    h.name);
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

static int take(struct overlay_paths *r, const struct ptcp_overlay *o, const struct ptcp_paths *p, bool tell, struct ptcp_err *e)
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
		if ((code = via_text(&r->candidate[i], o, &q, e)) < 0)
			return code;
		r->share[i] = (double)q.bytes;
		r->n++;
		if (tell)
			terminal_line("ptcp: path %s: %s, %.3g ms, %.1f %% of the data", r->candidate[i],
			    units_rate_text(rate, q.rate_bps), 1e3 * q.delay_s, 100 * (double)q.bytes / (double)all);
	}
	return 0;
}

static int find(struct overlay_paths *r, const struct ptcp_overlay *o, const struct transfer_args *a, bool sends,
    const char *there, struct ptcp_err *e)
{
	uint64_t bytes = sends ? size_of(a->srcs, a->n_srcs) : LARGE_BYTES;
	struct ptcp_paths *p;
	int us, them, code;

	if ((code = ptcp_overlay_here(o, a->here, &us, e)) < 0 || (code = ptcp_overlay_there(o, there, &them, e)) < 0)
		return code;
	if (us == them)
		return err_set(e, PTCP_EUSAGE, "%s: is this host in the overlay, too (say which it is with --here)", there);
	if ((code = ptcp_paths_find(&p, o, sends ? us : them, sends ? them : us, bytes,
	    a->n_paths > 0 ? a->n_paths : PATHS_USUAL, e)) < 0)
		return code;
	code = take(r, o, p, a->connect.talk.verbose > 0, e);
	ptcp_paths_free(p);
	return code;
}

int overlay_paths_find(struct overlay_paths *r, const struct transfer_args *a, bool sends, struct ptcp_err *e)
{
	struct ptcp_overlay *o = NULL;
	char *there = NULL;
	int code;

	if ((code = authority(&there, sends ? a->dest : a->srcs[0], e)) == 0 &&
	    (code = ptcp_overlay_load(&o, a->overlay, e)) == 0)
		code = find(r, o, a, sends, there, e);
	ptcp_overlay_free(o);
	free(there);
	return code;
}

void overlay_paths_fini(struct overlay_paths *r)
{
	while (r->n > 0)
		free(r->candidate[--r->n]);
}
