/* What has been found of links, written into an overlay file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/edit.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "plan/overlay.h"

/* "47.6Mbit/s": no space, as people write it. */
static void rate_text(char out[CONF_CHANGE_BYTES], uint64_t bps)
{
	char *space;

	units_rate_text(out, (double)bps);
	if ((space = strchr(out, ' ')) != NULL)
		memmove(space, space + 1, strlen(space));
}

static struct conf_change change_of(const struct ptcp_overlay_found *f)
{
	struct conf_change c = { .link = (int)f->link };

	if (f->rate_bps != PTCP_UNKNOWN)
		rate_text(c.rate, f->rate_bps);
	if (f->delay_ns != PTCP_UNKNOWN)
		snprintf(c.delay, sizeof c.delay, "%.3fms", (double)f->delay_ns / (double)NS_PER_MS);
	return c;
}

static int make_changes(struct conf_change **out, const struct ptcp_overlay_found *found, size_t n, size_t links,
    struct ptcp_err *e)
{
	struct conf_change *c = calloc(n + 1, sizeof *c);
	size_t i;

	if (c == NULL)
		return err_nomem(e);
	for (i = 0; i < n; i++) {
		if (found[i].link >= links || (i > 0 && found[i].link <= found[i - 1].link)) {
			free(c);
			return err_set(e, PTCP_EUSAGE, "links to write: must be links, ascending");
		}
		c[i] = change_of(&found[i]);
	}
	*out = c;
	return 0;
}

int ptcp_overlay_save(const char *from, const char *to, const struct ptcp_overlay_found *found, size_t n,
    struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *text = NULL, *now = NULL;
	struct conf_overlay *was = NULL;
	struct conf_change *changes = NULL;
	size_t bytes, now_bytes;
	int r;

	text_escape(shown, sizeof shown, from);
	if ((r = conf_read_file(&text, &bytes, from, shown, e)) < 0)
		return r;
	if ((r = conf_overlay_parse(&was, text, bytes, shown, e)) == 0 &&
	    (r = make_changes(&changes, found, n, was->nlinks, e)) == 0 &&
	    (r = conf_overlay_edit(&now, &now_bytes, text, bytes, shown, changes, n, e)) == 0)
		r = conf_save(to, now, now_bytes, e);
	conf_overlay_free(was);
	free(changes);
	free(text);
	free(now);
	return r;
}
