/* libFuzzer target: the environment of a service manager. The first line is LISTEN_PID, "$" for the ID of this process; the
 * second is LISTEN_FDS. */
#include <fcntl.h>
#include <unistd.h>

#include "cli/process.h"
#include "core/err.h"
#include "fuzz.h"

#define MOST 8

/* Takes the text. Whether the text is the ID of this process. */
static bool set(const char *name, char *text)
{
	char pid[24];
	bool own;

	snprintf(pid, sizeof pid, "%ld", (long)getpid());
	setenv(name, strcmp(text, "$") == 0 ? pid : text, 1);
	own = strcmp(text, "$") == 0 || atol(text) == (long)getpid();
	free(text);
	return own;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	struct ptcp_err e = { 0 };
	int passed[MOST], r;
	size_t n_passed = MOST + 1, i;
	bool own = set("LISTEN_PID", take_line(&in));

	set("LISTEN_FDS", take_line(&in));
	setenv("LISTEN_FDNAMES", "x", 1);
	r = systemd_sockets(passed, MOST, &n_passed, &e);
	MUST(getenv("LISTEN_PID") == NULL && getenv("LISTEN_FDS") == NULL && getenv("LISTEN_FDNAMES") == NULL);
	MUST(r == 0 || (r == PTCP_ECONFIG && r == e.code && e.msg[0] != '\0' && n_passed == 0));
	MUST(n_passed <= MOST && (n_passed == 0 || own));
	for (i = 0; i < n_passed; i++)
		MUST(passed[i] == 3 + (int)i && (fcntl(passed[i], F_GETFD) & FD_CLOEXEC) != 0);
	return 0;
}
