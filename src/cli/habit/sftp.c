/* ptcp sftp */
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/habit/habit.h"
#include "core/err.h"
#include "core/text.h"

static int set_file(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)o;
	return habit_add(args, e, "--batch-file=%s", text);
}

#define FLAG(letter, hint, set)         { "", letter, NULL, hint, set, 0, 0, 0 }
#define VALUE(letter, value, hint, set) { "", letter, value, hint, set, 0, 0, 0 }
#define BY_COMMAND "an option of the commands get and put, such as put --rate 10MB/s FILE"

static const struct opt sftp_options[] = {
	VALUE('b', "FILE", "", set_file), FLAG('q', "--quiet", habit_as),
	{ "ipv4", '4', NULL, "", habit_same, 0, 0, 0 }, { "ipv6", '6', NULL, "", habit_same, 0, 0, 0 },
	VALUE('P', "PORT", "", habit_ssh), VALUE('i', "FILE", "", habit_ssh), VALUE('J', "HOST", "", habit_ssh),
	VALUE('F', "FILE", "", habit_ssh), VALUE('o', "OPTION", "", habit_ssh), VALUE('c', "CIPHER", "", habit_ssh),
	FLAG('A', "", habit_ssh),
	FLAG('a', "", opt_ignore), FLAG('C', "", opt_ignore), FLAG('f', "", opt_ignore), FLAG('N', "", opt_ignore),
	FLAG('p', "", opt_ignore), FLAG('r', "", opt_ignore), FLAG('v', "", opt_ignore),
	VALUE('B', "BYTES", "", opt_ignore), VALUE('R', "NUMBER", "", opt_ignore),
	VALUE('l', "KBIT", BY_COMMAND, habit_refuse), VALUE('S', "PROGRAM", "--ssh names the command", habit_refuse),
	VALUE('s', "SUBSYSTEM", "the remote host needs ptcp", habit_refuse),
	VALUE('D', "PATH", "ptcp does not use sftp servers", habit_refuse),
	VALUE('X', "OPTION", "ptcp does not use sftp servers", habit_refuse),
	{ .name = NULL },
};

/* sftp takes [USER@]HOST[:PATH] and sftp://[USER@]HOST[:PORT][/PATH]; to be freed. NULL: without memory. */
static char *address_of(const char *dest)
{
	static const char scheme[] = "sftp://";
	const char *host = dest + sizeof scheme - 1, *colon = strchr(dest, ':');
	size_t n;
	char *out;
	int r;

	if (strncmp(dest, scheme, sizeof scheme - 1) == 0) {
		n = strcspn(host, "/");
		r = asprintf(&out, "ssh://%.*s/~%s", (int)n, host, host + n);
	} else {
		r = asprintf(&out, "%s%s", dest, colon == NULL || (dest[0] == '[' && strstr(dest, "]:") == NULL) ?
		    ":" : "");
	}
	return r >= 0 ? out : NULL;
}

static int run_sftp(const struct command *c, int argc, char **argv)
{
	struct habit p = { .name = "sftp" };
	char *address = NULL;
	struct ptcp_err e;
	int n, r, status;

	if ((r = options_parse(c, argc, argv, &p, &n, NULL, &e)) == 0 && (address = address_of(argv[0])) == NULL)
		r = err_nomem(&e);
	if (r == 0 && p.ssh[0] != '\0')
		r = habit_add(&p, &e, "--ssh=ssh%s", p.ssh);
	status = r != 0 ? command_end(c, r, &e) : habit_run(&p, &command_batch, &address, 1);
	free(address);
	opt_copies_free(&p.arg, &p.n);
	return status;
}

static const struct opt_group sftp_groups[] = { GROUP_BRIEF("Options of sftp", sftp_options), GROUP_END };
const struct command command_sftp = { "sftp", "[options of sftp] [USER@]HOST[:PATH]",
	"run commands of sftp on files of a remote host, with its options", run_sftp, sftp_groups, 1, 1,
	"needs a remote host" };
