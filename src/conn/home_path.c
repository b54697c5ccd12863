#include "conn/home_path.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The home directory of a user by name, NULL: our own. False: none. */
static bool home_of(char out[HOME_PATH_BYTES], const char *user)
{
	const char *env = user == NULL ? getenv("HOME") : NULL;
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (env != NULL && env[0] == '/')
		return (size_t)snprintf(out, HOME_PATH_BYTES, "%s", env) < HOME_PATH_BYTES;
	if (user != NULL)
		getpwnam_r(user, &pw, buf, sizeof buf, &found);
	else
		getpwuid_r(getuid(), &pw, buf, sizeof buf, &found);
	return found != NULL && pw.pw_dir[0] == '/' &&
	    (size_t)snprintf(out, HOME_PATH_BYTES, "%s", pw.pw_dir) < HOME_PATH_BYTES;
}

int home_path(char out[HOME_PATH_BYTES], const char *path, struct ptcp_err *e)
{
	char home[HOME_PATH_BYTES], user[256];
	const char *rest = path;
	size_t n = strcspn(path, "/");
	bool known = false;

	if (path[0] == '/') {
		home[0] = '\0';
		known = true;
	} else if (path[0] == '~' && n < sizeof user) {
		memcpy(user, path + 1, n);
		user[n - 1] = '\0';
		if ((known = home_of(home, n > 1 ? user : NULL)))
			rest = path[n] == '/' ? path + n : "";
	}
	if (!known) { /* also "~x" where there is no such user, as a shell has it */
		if (!home_of(home, NULL))
			return err_set(e, PTCP_EUSAGE, "this user has no home directory there (give an absolute path)");
	}
	n = (size_t)snprintf(out, HOME_PATH_BYTES, "%s%s%s", home, rest == path && path[0] != '/' &&
	    path[0] != '\0' ? "/" : "", rest);
	return n < HOME_PATH_BYTES ? 0 : err_set(e, PTCP_EUSAGE, "the path is longer than %d bytes there (give a shorter "
	    "one)", HOME_PATH_BYTES - 1);
}
