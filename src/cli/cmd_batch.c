/* ptcp batch: commands of sftp from a file or standard input, on files of one host. Each line runs a command of ptcp,
 * with the options of ptcp batch added, and these commands share connections. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/client_opts.h"
#include "cli/habit/habit.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "input/command_lines.h"
#include "input/remote_dir.h"

struct batch_args {
	struct client_opts connect; /* first */
	const char *file;           /* NULL: standard input */
	struct options_given given; /* passed to each command */
	struct remote_dir dir;
	struct command_lines lines;
	bool asks;                  /* a user types the commands */
	bool ended;                 /* a command has ended the batch */
	unsigned long n, failed;    /* commands */
};

/* ---- Commands ---- */

enum operand_kind {
	AT_HOST,         /* remote names */
	AT_HOST_MATCHES, /* remote patterns, which the server expands */
	FROM_HOST,       /* remote patterns; of several operands, the last is a local name */
	TO_HOST          /* local patterns; of several operands, the last is a remote name */
};

struct verb {
	const char *name;
	const struct command *command;
	enum operand_kind operands;
	bool here; /* takes the remote directory for a missing operand; without `command`: takes an operand */
	/* Without `command`: the function, with the operand or NULL. */
	int (*run)(struct batch_args *b, const char *operand, struct ptcp_err *e);
	int min_operands;
};

static int run_cd(struct batch_args *b, const char *operand, struct ptcp_err *e);
static int run_lcd(struct batch_args *b, const char *operand, struct ptcp_err *e);
static int run_pwd(struct batch_args *b, const char *operand, struct ptcp_err *e);
static int run_lpwd(struct batch_args *b, const char *operand, struct ptcp_err *e);
static int run_help(struct batch_args *b, const char *operand, struct ptcp_err *e);
static int run_exit(struct batch_args *b, const char *operand, struct ptcp_err *e);

static const struct verb verbs[] = {
	{ "get", &command_recv, FROM_HOST, false, NULL, 1 }, { "put", &command_send, TO_HOST, false, NULL, 1 },
	{ "reget", &command_recv, FROM_HOST, false, NULL, 1 }, { "reput", &command_send, TO_HOST, false, NULL, 1 },
	{ "ls", &command_ls, AT_HOST_MATCHES, true, NULL, 0 }, { "dir", &command_ls, AT_HOST_MATCHES, true, NULL, 0 },
	{ "du", &command_du, AT_HOST_MATCHES, true, NULL, 0 }, { "stat", &command_stat, AT_HOST, true, NULL, 0 },
	{ "cat", &command_cat, AT_HOST, false, NULL, 1 }, { "sum", &command_sum, AT_HOST, false, NULL, 1 },
	{ "mkdir", &command_mkdir, AT_HOST, false, NULL, 1 }, { "rmdir", &command_rmdir, AT_HOST, false, NULL, 1 },
	{ "rm", &command_rm, AT_HOST_MATCHES, false, NULL, 1 }, { "mv", &command_mv, AT_HOST, false, NULL, 2 },
	{ "rename", &command_mv, AT_HOST, false, NULL, 2 },
	{ "cd", NULL, AT_HOST, true, run_cd, 1 }, { "chdir", NULL, AT_HOST, true, run_cd, 1 },
	{ "lcd", NULL, AT_HOST, true, run_lcd, 1 }, { "lchdir", NULL, AT_HOST, true, run_lcd, 1 },
	{ "pwd", NULL, AT_HOST, false, run_pwd, 0 }, { "lpwd", NULL, AT_HOST, false, run_lpwd, 0 },
	{ "help", NULL, AT_HOST, false, run_help, 0 }, { "?", NULL, AT_HOST, false, run_help, 0 },
	{ "exit", NULL, AT_HOST, false, run_exit, 0 }, { "quit", NULL, AT_HOST, false, run_exit, 0 },
	{ "bye", NULL, AT_HOST, false, run_exit, 0 },
};
#define N_VERBS (sizeof verbs / sizeof *verbs)

static const struct verb *find_verb(const char *name)
{
	size_t i;

	for (i = 0; i < N_VERBS; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static void print_path(const struct batch_args *b, const char *path)
{
	char shown[4 * PATH_MAX];

	if (b->connect.log.json)
		json_line(json_pack("{s:s, s:o}", "event", "directory", "path", json_text(path)));
	else
		printf("%s\n", text_escape(shown, sizeof shown, path));
}

static void note_type(void *arg, const struct ptcp_entry *entry)
{
	if (entry->code == 0)
		*(enum ptcp_entry_type *)arg = entry->type;
}

static int check_directory(struct batch_args *b, const char *address, struct ptcp_err *e)
{
	enum ptcp_entry_type type = PTCP_ENTRY_UNKNOWN;
	struct ptcp_manage_opts o;
	char shown[TEXT_NAME_BYTES];
	struct ptcp_task *t;
	int r;

	ptcp_manage_opts_init(&o);
	o.itself = o.literal = true;
	o.entry = note_type;
	o.arg = &type;
	if ((r = ptcp_manage_new(&t, &b->connect.transfer, PTCP_LIST, &address, 1, &o, e)) < 0)
		return r;
	r = connect_run(t, e);
	ptcp_task_free(t);
	if (r < 0 || type == PTCP_ENTRY_DIR || type == PTCP_ENTRY_SYMLINK)
		return r;
	return err_because(e, PTCP_EIO, ENOTDIR, "%s: not a directory (ls -l shows what it is)",
	    text_escape(shown, sizeof shown, address));
}

static int run_cd(struct batch_args *b, const char *operand, struct ptcp_err *e)
{
	char *path = remote_dir_path(&b->dir, operand), *address = remote_dir_address(&b->dir, operand);
	int r = path != NULL && address != NULL ? check_directory(b, address, e) : err_nomem(e);

	free(address);
	if (r < 0) {
		free(path);
		return r;
	}
	free(b->dir.path);
	b->dir.path = path;
	return 0;
}

static int run_lcd(struct batch_args *b, const char *operand, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	(void)b;
	return chdir(operand) == 0 ? 0 : err_sys(e, PTCP_EIO, "%s", text_escape(shown, sizeof shown, operand));
}

static int run_pwd(struct batch_args *b, const char *operand, struct ptcp_err *e)
{
	char *address = remote_dir_address(&b->dir, ".");

	(void)operand;
	if (address == NULL)
		return err_nomem(e);
	print_path(b, address);
	free(address);
	return 0;
}

static int run_lpwd(struct batch_args *b, const char *operand, struct ptcp_err *e)
{
	char here[PATH_MAX];

	(void)operand;
	if (getcwd(here, sizeof here) == NULL)
		return err_sys(e, PTCP_EIO, "the local directory is unknown (choose one by lcd)");
	print_path(b, here);
	return 0;
}

static int run_help(struct batch_args *b, const char *operand, struct ptcp_err *e)
{
	size_t i;

	(void)operand;
	(void)e;
	for (i = 0; !b->connect.log.json && i < N_VERBS; i++)
		printf("%s%s", verbs[i].name, i + 1 < N_VERBS ? " " : "\n");
	return 0;
}

static int run_exit(struct batch_args *b, const char *operand, struct ptcp_err *e)
{
	(void)operand;
	(void)e;
	b->ended = true;
	return 0;
}

/* ---- Operands ---- */

struct operands {
	const char *const *of; /* owned */
	size_t n;
};

static int add_address(struct batch_args *b, struct operands *out, const char *path, struct ptcp_err *e)
{
	char *address = remote_dir_address(&b->dir, path);
	int r = address != NULL ? opt_append_copy(&out->of, &out->n, address, e) : err_nomem(e);

	free(address);
	return r;
}

/* Adds a local name, which may look like an address. */
static int add_local(struct operands *out, const char *path, struct ptcp_err *e)
{
	char *text;
	int r;

	if (!ptcp_is_remote(path))
		return opt_append_copy(&out->of, &out->n, path, e);
	if (asprintf(&text, "./%s", path) < 0)
		return err_nomem(e);
	r = opt_append_copy(&out->of, &out->n, text, e);
	free(text);
	return r;
}

static int add_local_matches(struct operands *out, char *pattern, struct ptcp_err *e)
{
	glob_t found;
	size_t i;
	int r = glob(pattern, 0, NULL, &found);

	if (r == GLOB_NOSPACE)
		return err_nomem(e);
	if (r != 0 || found.gl_pathc == 0) {
		line_plain(pattern);
		r = add_local(out, pattern, e);
	}
	for (i = 0; r == 0 && i < found.gl_pathc; i++)
		r = add_local(out, found.gl_pathv[i], e);
	globfree(&found);
	return r;
}

static int add_matches(struct batch_args *b, struct operands *out, const char *word, struct ptcp_err *e)
{
	char *pattern = line_pattern(word);
	int r = pattern != NULL ? add_address(b, out, pattern, e) : err_nomem(e);

	free(pattern);
	return r;
}

static int add_operand(struct batch_args *b, const struct verb *v, struct operands *out, char *word, bool last,
    struct ptcp_err *e)
{
	if (v->operands == TO_HOST && !last)
		return add_local_matches(out, word, e);
	if (v->operands != AT_HOST && !last)
		return add_matches(b, out, word, e);
	line_plain(word);
	return v->operands == FROM_HOST && last ? add_local(out, word, e) : add_address(b, out, word, e);
}

static int take_operands(struct batch_args *b, const struct verb *v, struct operands *out, char **word, int n,
    struct ptcp_err *e)
{
	int i, r = 0;

	for (i = 0; i < n && r == 0; i++)
		r = add_operand(b, v, out, word[i], v->operands >= FROM_HOST && n > 1 && i == n - 1, e);
	if (r == 0 && n == 1 && v->operands == TO_HOST)
		r = add_address(b, out, "./", e);
	if (r == 0 && n == 0 && v->here)
		r = add_address(b, out, ".", e);
	return r;
}

/* ---- Lines ---- */

static int check_number(const struct verb *v, int n, struct ptcp_err *e)
{
	int max = v->command == NULL ? v->here : v->operands >= FROM_HOST ? INT_MAX : v->command->max_operands;

	if (n < v->min_operands)
		return err_set(e, PTCP_EUSAGE, "%s: a name is missing (it needs %d)", v->name, v->min_operands);
	return n <= max ? 0 : err_set(e, PTCP_EUSAGE, "%s: too many names (write one command for each)", v->name);
}

static int add_given(struct habit *p, const struct options_given *given, struct ptcp_err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < given->n && r == 0; i++) {
		const struct opt *o = given->at[i].of;
		const char *text = given->at[i].text;

		if (*o->name != '\0')
			r = habit_same(p, o, text, e);
		else
			r = habit_add(p, e, "-%c%s", o->letter, text != NULL ? text : "");
	}
	return r;
}

/* Runs a command of ptcp; returns its exit status, or a negative PTCP_E* if it did not begin. */
static int run_command(struct batch_args *b, const struct verb *v, struct line_words *w, struct ptcp_err *e)
{
	struct options_given given = { 0 };
	struct operands operands = { NULL, 0 };
	struct habit p = { .name = v->name };
	int n, r;

	r = options_parse(v->command, (int)w->n - 1, w->word + 1, NULL, &n, &given, e);
	if (r == 0 && (r = check_number(v, n, e)) == 0 && (r = add_given(&p, &b->given, e)) == 0 &&
	    (r = add_given(&p, &given, e)) == 0 && (r = take_operands(b, v, &operands, w->word + 1, n, e)) == 0)
		r = habit_run(&p, v->command, (char **)(uintptr_t)operands.of, (int)operands.n);
	else if (r == OPTIONS_HELP)
		r = command_help(v->command);
	opt_copies_free(&operands.of, &operands.n);
	opt_copies_free(&p.arg, &p.n);
	options_given_free(&given);
	return r;
}

static int run_words(struct batch_args *b, struct line_words *w, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	const struct verb *v;
	int r;

	line_plain(w->word[0]);
	if ((v = find_verb(w->word[0])) == NULL)
		return err_set(e, PTCP_EUSAGE, "%s: no command of ptcp batch (help lists them)",
		    text_escape(shown, sizeof shown, w->word[0]));
	if (v->command != NULL)
		return run_command(b, v, w, e);
	if ((r = check_number(v, (int)w->n - 1, e)) < 0)
		return r;
	if (w->n > 1)
		line_plain(w->word[1]);
	if ((r = v->run(b, w->n > 1 ? w->word[1] : NULL, e)) == 0 && b->connect.log.json)
		json_line(json_end(0, e, json_object()));
	return r;
}

/* Returns the exit status of the command. */
static int run_line(struct batch_args *b, const char *line, struct line_words *w)
{
	struct ptcp_err e = { .code = 0 };
	int r = line_split(w, line, &e);

	if (r == 0 && w->n == 0)
		return 0;
	b->n++;
	if (b->connect.log.json)
		json_line(json_pack("{s:s, s:I, s:o}", "event", "command", "line", (json_int_t)b->lines.number, "text",
		    json_text(line)));
	if (r == 0)
		r = run_words(b, w, &e);
	if (r >= 0)
		return exit_checked(r);
	if (b->connect.log.json)
		json_line(json_end(r, &e, json_object()));
	return (int)exit_fail(&e);
}

static void print_failed(const struct batch_args *b, const char *line, bool goes_on)
{
	char shown[TEXT_NAME_BYTES];

	terminal_line("ptcp: line %lu failed: %s%s", b->lines.number, text_escape(shown, sizeof shown, line),
	    goes_on ? "" : " (later commands are not run; a - in front of a command lets it fail)");
}

/* Returns the exit status of the batch. */
static int run_lines(struct batch_args *b, struct ptcp_err *e)
{
	struct line_words w = { 0 };
	int status = 0, each;
	const char *line;

	while (status == 0 && !b->ended && !process_stopping()) {
		if (b->asks)
			terminal_ask("ptcp> ");
		if ((line = line_next(&b->lines, e)) == NULL)
			break;
		each = run_line(b, line, &w);
		b->failed += each != 0;
		if (each != 0 && !b->asks && !process_stopping())
			print_failed(b, line, w.may_fail);
		if (!w.may_fail && !b->asks)
			status = each;
		line_words_fini(&w);
	}
	if (process_stopping())
		status = EXIT_INTERRUPTED;
	return status;
}

/* ---- The batch ---- */

static const struct opt batch_options[] = {
	{ "batch-file", 'b', "FILE", "read the commands from FILE (default, or -: standard input)", opt_text,
	    offsetof(struct batch_args, file), 0, 0 },
	{ .name = NULL },
};

/* Leaves the options for commands. */
static void drop_own(struct options_given *given)
{
	size_t i, n = 0;

	for (i = 0; i < given->n; i++)
		if (given->at[i].of != &batch_options[0])
			given->at[n++] = given->at[i];
	given->n = n;
}

static int open_commands(struct batch_args *b, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	if (b->file == NULL || text_is_stdio(b->file)) {
		b->lines.fd = STDIN_FILENO;
		b->asks = b->file == NULL && terminal_is(STDIN_FILENO);
		return 0;
	}
	if ((b->lines.fd = open(b->file, O_RDONLY | O_CLOEXEC)) >= 0)
		return 0;
	return err_sys(e, PTCP_EUSAGE, "%s", text_escape(shown, sizeof shown, b->file));
}

static int run_batch(const struct command *c, int argc, char **argv)
{
	struct batch_args b = { .lines = { .fd = -1, .stopping = process_stopping } };
	struct ptcp_err e = { .code = 0 };
	int r, status = 0, n = 0;

	if ((r = connect_parse(&b.connect, c, argc, argv, &n, &b.given, &e)) == 0) {
		drop_own(&b.given);
		connect_show_streams(&b.connect);
		process_catch(EXIT_INTERRUPTED, INTERRUPTED_TWICE);
		if ((r = remote_dir_init(&b.dir, argv[0], &e)) == 0 && (r = open_commands(&b, &e)) == 0)
			status = run_lines(&b, &e);
	}
	if (r == 0 && e.code < 0)
		r = e.code;
	if (r != OPTIONS_HELP && b.connect.log.json)
		json_line(json_pack("{s:s, s:b, s:i, s:I, s:I}", "event", "batch", "ok", r == 0 && status == 0, "exit",
		    r < 0 ? (int)exit_status(r) : status, "commands", (json_int_t)b.n, "failed",
		    (json_int_t)b.failed));
	if (b.lines.fd > STDIN_FILENO)
		fd_close(&b.lines.fd);
	command_lines_fini(&b.lines);
	remote_dir_fini(&b.dir);
	options_given_free(&b.given);
	client_opts_fini(&b.connect);
	return r != 0 ? command_end(c, r, &e) : status;
}

static const struct opt_group batch_tables[] = { GROUP_OWN(batch_options), GROUP_CONNECTION, GROUP_SSH, GROUP_LOG,
	GROUP_END };

const struct command command_batch = { "batch", "[options] URL",
	"run commands of standard input, as sftp has them, on files of a remote host", run_batch, batch_tables, 1, 1,
	"needs a directory on another host" };
