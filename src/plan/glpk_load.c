#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "plan/glpk_calls.h"

#define LIBRARY "libglpk.so.40" /* GLPK 4.60 to 5.0 */

struct glpk_calls glpk;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char failed[160];

static void *call(void *library, const char *name)
{
	void *found = library != NULL ? dlsym(library, name) : NULL;

	const char *why = found == NULL ? dlerror() : NULL;

	if (found == NULL && failed[0] == '\0')
		snprintf(failed, sizeof failed, "%s", why != NULL ? why : name);
	return found;
}

static void load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *found;

	/* POSIX has no cast of dlsym()'s result to a function. */
#define X(name) found = call(library, "glp_" #name), memcpy(&glpk.name, &found, sizeof found);
	GLPK_CALLS(X)
#undef X
}

int glpk_load(struct ptcp_err *e)
{
	pthread_once(&once, load);
	return failed[0] == '\0' ? 0 : err_set(e, PTCP_ECONFIG, "planning: cannot load the solver GLPK: %s (install "
	    "GLPK, package libglpk40 or glpk)", failed);
}
