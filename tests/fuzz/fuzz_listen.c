/* libFuzzer target: the environment of a service manager. The first line is LISTEN_PID, "$" for the ID of this process;
 * the second is LISTEN_FDS. */
#include <fcntl.h>
#include <unistd.h>

#include "cli/process.h"
#include "core/err.h"
#include "fuzz.h"

#define MOST 8

/* A variable of the environment, without setenv(3), which keeps all values. */
struct variable {
	char text[10000];
};

/* Takes the value. Whether it is the ID of this process. */
static bool set(struct variable *v, const char *name, char *value)
{
	char pid[24];
	bool own;

	snprintf(pid, sizeof pid, "%ld", (long)getpid());
	snprintf(v->text, sizeof v->text, "%s=%s", name, strcmp(value, "$") == 0 ? pid : value);
	own = strcmp(value, "$") == 0 || atol(value) == (long)getpid();
	free(value);
	MUST(putenv(v->text) == 0);
	return own;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct variable pid, count, names;
	struct input in = { data, n };
	struct ptcp_err e = { 0 };
	int passed[MOST], r;
	size_t n_passed = MOST + 1, i;
	bool own = set(&pid, "LISTEN_PID", take_line(&in));

	set(&count, "LISTEN_FDS", take_line(&in));
	set(&names, "LISTEN_FDNAMES", take_line(&in));
	r = systemd_sockets(passed, MOST, &n_passed, &e);
	MUST(getenv("LISTEN_PID") == NULL && getenv("LISTEN_FDS") == NULL && getenv("LISTEN_FDNAMES") == NULL);
	MUST(r == 0 || (r == PTCP_ECONFIG && r == e.code && e.msg[0] != '\0' && n_passed == 0));
	MUST(n_passed <= MOST && (n_passed == 0 || own));
	for (i = 0; i < n_passed; i++)
		MUST(passed[i] == 3 + (int)i && (fcntl(passed[i], F_GETFD) & FD_CLOEXEC) != 0);
	return 0;
}
