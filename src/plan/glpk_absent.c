/* In place of glpk_load.c in builds without plans. */
#include "core/err.h"
#include "plan/glpk_calls.h"

struct glpk_calls glpk;

int glpk_load(struct ptcp_err *e)
{
	return err_set(e, PTCP_ECONFIG, "planning: this ptcp was built without the solver GLPK (use a package of ptcp, "
	    "or build it without WITHOUT_PLAN=1)");
}
