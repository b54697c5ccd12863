/* ptcp log: what clients of a server have done. */
#include <errno.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/log_opts.h"
#include "cli/session_log.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "core/userdir.h"

struct log_args {
	bool json;
	int64_t since_s;    /* 0: all */
	const char *client; /* NULL: all */
};

static const struct opt log_opts[] = {
	{ "since", 0, "TIME", "from this time on: an age (2h, 7d), today, yesterday, or a date (YYYY-MM-DD)", opt_since,
	    offsetof(struct log_args, since_s), 0, 0 },
	{ "client", 0, "NAME", "of this client: its name, or its fingerprint", opt_text,
	    offsetof(struct log_args, client), 0, 0 },
	{ "json", 0, NULL, "print JSON objects on standard output, one per line", opt_true,
	    offsetof(struct log_args, json), 0, 0 },
	{ .name = NULL },
};

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s != NULL ? s : "";
}

static uint64_t count_of(const json_t *j, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(j, key));

	return v > 0 ? (uint64_t)v : 0;
}

static bool is_wanted(const struct log_args *a, const json_t *j)
{
	return (int64_t)json_integer_value(json_object_get(j, "time_s")) >= a->since_s && (a->client == NULL ||
	    strcmp(a->client, text_of(j, "name")) == 0 || strcmp(a->client, text_of(j, "client")) == 0);
}

/* Words for each kind of work, as the manual lists them; numbers of entries, if there are some (`one`), and
 * whether their bytes are told. */
static const struct {
	const char *work, *done, *one, *many;
	bool bytes;
} works[] = {
	{ "receive", "received", "file", "files", true },
	{ "send", "sent", "file", "files", true },
	{ "read", "sent parts of", "file", "files", true },
	{ "write", "wrote", "file", "files", true },
	{ "clean", "cleaned", "leftover", "leftovers", true },
	{ "remove", "removed", "entry", "entries", false },
	{ "rename", "renamed", "entry", "entries", false },
	{ "mkdir", "made", "directory", "directories", false },
	{ "rmdir", "removed", "directory", "directories", false },
	{ "touch", "touched", "entry", "entries", false },
	{ "list", "listed", "entry", "entries", false },
	{ "count", "counted", "entry", "entries", true },
	{ "sum", "computed digests of", "file", "files", true },
	{ "measure", "measured", NULL, NULL, false },
	{ "none", "got no request", NULL, NULL, false },
};

static void print_work(const json_t *j)
{
	const char *work = text_of(j, "work");
	uint64_t n = count_of(j, "files");
	char size[UNITS_TEXT_BYTES], shown[TEXT_NAME_BYTES];
	size_t i;

	for (i = 0; i < sizeof works / sizeof *works; i++)
		if (strcmp(work, works[i].work) == 0)
			break;
	if (i == sizeof works / sizeof *works) { /* a word of another version */
		printf("%s", text_escape(shown, sizeof shown, work));
		return;
	}
	printf("%s", works[i].done);
	if (works[i].one != NULL)
		printf(" %llu %s", (unsigned long long)n, n == 1 ? works[i].one : works[i].many);
	if (works[i].bytes)
		printf(", %s", units_size_text(size, count_of(j, "bytes")));
}

static void print_text(const json_t *j)
{
	const char *name = text_of(j, "name"), *error = text_of(j, "error"), *third = text_of(j, "third");
	char shown[TEXT_NAME_BYTES], took[UNITS_TEXT_BYTES], when[40] = "";
	time_t at = (time_t)json_integer_value(json_object_get(j, "time_s"));
	uint64_t failed = count_of(j, "failed");
	struct tm tm;

	if (localtime_r(&at, &tm) != NULL)
		strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s  %s  ", when, text_escape(shown, sizeof shown, *name != '\0' ? name : text_of(j, "client")));
	print_work(j);
	printf(" in %s", units_time_text(took, json_number_value(json_object_get(j, "seconds"))));
	if (*third != '\0')
		printf(", %s %s", strcmp(text_of(j, "work"), "receive") == 0 ? "from" : "to",
		    text_escape(shown, sizeof shown, third));
	if (text_of(j, "path")[0] != '\0')
		printf("  %s", text_escape(shown, sizeof shown, text_of(j, "path")));
	if (failed > 0)
		printf("; %llu failed", (unsigned long long)failed);
	if (*error != '\0')
		printf("; %s", text_escape(shown, sizeof shown, error));
	putchar('\n');
}

static void on_record(void *arg, json_t *j)
{
	const struct log_args *a = arg;

	if (!is_wanted(a, j))
		return;
	if (a->json)
		json_line(json_incref(j));
	else
		print_text(j);
}

/* The file of this user's servers, else that of the service. */
static int find(char path[PTCP_PATH_BYTES], struct ptcp_err *e)
{
	char dir[USERDIR_BYTES];

	if (userdir_state(dir, NULL, NULL) == 0) {
		snprintf(path, PTCP_PATH_BYTES, "%s/" SESSION_LOG_NAME, dir);
		if (access(path, F_OK) == 0)
			return 0;
	}
	strcpy(path, SESSION_LOG_SYSTEM);
	if (access(path, F_OK) == 0 || errno == EACCES)
		return 0;
	return err_because(e, PTCP_EIO, ENOENT, "no server of this user, and no service of this host, has logged "
	    "sessions (name the file of --session-log)");
}

static int run_log(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct log_args a = { .client = NULL };
	char path[PTCP_PATH_BYTES];
	uint64_t skipped = 0;
	int n, r;

	if ((r = options_parse(c, argc, argv, &a, &n, NULL, &e)) == 0) {
		if (n == 0)
			r = find(path, &e);
		else
			snprintf(path, sizeof path, "%s", argv[0]);
		if (r == 0)
			r = session_log_read(path, on_record, &a, &skipped, &e);
	}
	if (skipped > 0)
		terminal_line("ptcp: warning: %llu line%s of the log left out, since they are no records (a crash may "
		    "have cut them)", (unsigned long long)skipped, plural(skipped));
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(log_opts), GROUP_END };

const struct command command_log = { "log", "[options] [FILE]", "list what clients of a server have done", run_log,
	tables, 0, 1, "takes the file of the server's --session-log" };
