/* ptcp scp */
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/habit/habit.h"
#include "core/err.h"
#include "core/text.h"

/* Appends an option of ssh, quoted as --ssh reads it. */
static int add_ssh(struct habit *p, const struct opt *o, const char *option, const char *value, struct ptcp_err *e)
{
	size_t used = strlen(p->ssh);
	int n;

	if (strchr(value, '\'') != NULL)
		return opt_reject(o, value, e, "contains a quote (ptcp send --ssh takes the whole command)");
	n = snprintf(p->ssh + used, sizeof p->ssh - used, " %s%s%s%s", option, *value != '\0' ? " '" : "", value,
	    *value != '\0' ? "'" : "");
	if (n < 0 || (size_t)n >= sizeof p->ssh - used)
		return opt_reject(o, value, e, "too long (ssh_config(5) can have it)");
	return 0;
}

int habit_ssh(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	const char option[] = { '-', o->letter == 'P' ? 'p' : o->letter, '\0' };

	return add_ssh(args, o, option, text != NULL ? text : "", e);
}

int habit_ssh_batch(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	return add_ssh(args, o, "-o", "BatchMode=yes", e);
}

static int set_limit(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	unsigned kbit;

	if (opt_number(text, 1, UINT32_MAX, &kbit) < 0)
		return opt_reject(o, text, e, "not a rate in kbit/s (give a number from 1)");
	return habit_add(args, e, "--rate=%ukbit/s", kbit);
}

#define LEAVE_OUT "leave the option out"
#define AT(member) offsetof(struct habit, member)
#define FLAG(letter, hint, set)         { "", letter, NULL, hint, set, 0, 0, 0 }
#define VALUE(letter, value, hint, set) { "", letter, value, hint, set, 0, 0, 0 }

const struct opt scp_options[] = {
	{ "", 'p', NULL, "--streams N sets the number of TCP streams; times and modes are preserved by default",
	    habit_keep,
	    HABIT_TIMES | HABIT_MODE, 0, 0 },
	{ "", 'r', NULL, "", opt_true, AT(recursive), 0, 0 }, { "", 'q', NULL, "", opt_true, AT(quiet), 0, 0 },
	VALUE('l', "KBIT", "--rate limits the rate, such as --rate 100MB/s or 800Mbit/s", set_limit),
	VALUE('P', "PORT", "", habit_ssh),
	VALUE('i', "FILE", "--ssh names the ssh command, such as --ssh 'ssh -i FILE'", habit_ssh),
	VALUE('J', "HOST", "--ssh names the ssh command, such as --ssh 'ssh -J HOST'", habit_ssh),
	VALUE('F', "FILE", "--ssh names the ssh command, such as --ssh 'ssh -F FILE'", habit_ssh),
	VALUE('o', "OPTION", "--ssh names the ssh command, such as --ssh 'ssh -o OPTION'", habit_ssh),
	VALUE('c', "CIPHER", "", habit_ssh),
	FLAG('A', "--ssh names the ssh command, such as --ssh 'ssh -A'", habit_ssh), FLAG('B', "", habit_ssh_batch),
	FLAG('C', "data is compressed where that is faster, --compress sets the level: " LEAVE_OUT, opt_ignore),
	FLAG('O', "", opt_ignore), FLAG('s', "", opt_ignore), FLAG('T', "", opt_ignore),
	{ "", 'v', NULL, "", opt_ignore, 0, 0, 0 },
	{ "ipv4", '4', NULL, "", habit_same, 0, 0, 0 }, { "ipv6", '6', NULL, "", habit_same, 0, 0, 0 },
	FLAG('3', "ptcp send copies from one server to another", habit_refuse),
	FLAG('R', "ptcp send copies from one server to another", habit_refuse),
	VALUE('S', "PROGRAM", "--ssh names the ssh command", habit_refuse),
	VALUE('D', "PATH", "--remote-ptcp names the command on the remote host", habit_refuse),
	VALUE('X', "OPTION", "ptcp does not use sftp", habit_refuse),
	{ .name = NULL },
};

/* scp takes no notice of a slash behind a directory, and without -r copies none. */
static int check_sources(const struct habit *p, char **operand, int n, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct stat st;
	size_t len;
	int i;

	for (i = 0; i < n - 1; i++) {
		len = strlen(operand[i]);
		while (len > 1 && operand[i][len - 1] == '/' && operand[i][len - 2] != ':')
			operand[i][--len] = '\0';
		if (!p->recursive && !ptcp_is_remote(operand[i]) && stat(operand[i], &st) == 0 && S_ISDIR(st.st_mode))
			return err_set(e, PTCP_EUSAGE, "%s: a directory, which scp refuses without -r (add -r)",
			    text_escape(shown, sizeof shown, operand[i]));
	}
	return 0;
}

static int translate(struct habit *p, enum habit_way *way, char **operand, int n, struct ptcp_err *e)
{
	int r;

	if ((r = habit_way(p, operand, n, way, e)) < 0 || (r = check_sources(p, operand, n, e)) < 0 ||
	    (r = habit_add_preserved(p, e)) < 0 || (r = habit_add(p, e, "--copy-links")) < 0 ||
	    (r = habit_add(p, e, "--no-mkpath")) < 0)
		return r;
	if (p->ssh[0] != '\0' && (r = habit_add(p, e, "--ssh=ssh%s", p->ssh)) < 0)
		return r;
	return p->quiet ? habit_add(p, e, "--quiet") : 0;
}

static int run_scp(const struct command *c, int argc, char **argv)
{
	struct habit p = { .name = "scp" };
	enum habit_way way = HABIT_SENDS;
	struct ptcp_err e;
	int n, r, status;

	if ((r = options_parse(c, argc, argv, &p, &n, NULL, &e)) == 0)
		r = translate(&p, &way, argv, n, &e);
	status = r != 0 ? command_end(c, r, &e) :
	    habit_run(&p, way == HABIT_SENDS ? &command_send : &command_recv, argv, n);
	opt_copies_free(&p.arg, &p.n);
	return status;
}

static const struct opt_group scp_groups[] = { GROUP_BRIEF("Options of scp", scp_options), GROUP_END };
const struct command command_scp = { "scp", "[options of scp] SRC... DEST",
    "send or receive as scp would, with its options",
	run_scp, scp_groups, 2, INT_MAX, "needs a source and a destination" };
