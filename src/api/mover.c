/* A mover of a striped transfer. */
#include <ptcp/ptcp.h>

#include "core/err.h"
#include "core/opts.h"
#include "work/work.h"

void ptcp_mover_opts_init(struct ptcp_mover_opts *o)
{
	*o = (struct ptcp_mover_opts){ .size = sizeof *o, .log_level = PTCP_LOG_WARN };
}

int ptcp_mover(const struct ptcp_mover_opts *opts, struct ptcp_err *e)
{
	struct ptcp_mover_opts o;
	int r;

	ptcp_mover_opts_init(&o);
	if ((r = opts_copy(&o, sizeof o, opts, "ptcp_mover_opts_init", e)) < 0)
		return r;
	if (o.join == NULL)
		return err_set(e, PTCP_EUSAGE, "mover: no invitation (name the file that ptcp send --movers wrote)");
	return mover_work(&o, e);
}
