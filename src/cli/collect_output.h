/* What ptcp collect shows: text, a status line on stderr while it runs and lines at the end; or JSON, an object a
 * line on stdout, described in ptcp-collect(1). In both, warnings and what failed are lines on stderr. */
#ifndef CLI_COLLECT_OUTPUT_H
#define CLI_COLLECT_OUTPUT_H

#include <stdbool.h>

#include "cli/overlay_names.h"

struct collect_shown;

struct collect_ops {
	void (*plan)(struct collect_shown *s, const struct ptcp_collect_event *ev);
	void (*progress)(struct collect_shown *s, const struct ptcp_collect_event *ev);
	void (*source)(struct collect_shown *s, const struct ptcp_collect_event *ev);
	void (*file)(struct collect_shown *s, const struct ptcp_collect_event *ev);
	/* Always last, once; c NULL: it never came to a collection. `failure` is the sentence, NULL when all is well. */
	void (*end)(struct collect_shown *s, const struct ptcp_collect *c, int status, const char *failure);
};

extern const struct collect_ops collect_text, collect_json;

struct collect_shown {
	const struct collect_ops *ops;
	const struct ptcp_overlay *overlay; /* NULL until it is read */
	bool quiet, verbose;
	bool status; /* draw the status line */
};

#endif
