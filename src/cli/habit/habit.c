#include "cli/habit/habit.h"

#include <ptcp/ptcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"

int habit_add(struct habit *p, struct ptcp_err *e, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0)
		return err_nomem(e);
	r = opt_append_copy(&p->arg, &p->n, text, e);
	free(text);
	return r;
}

int habit_same(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return habit_add(args, e, "--%s%s%s", o->name, text != NULL ? "=" : "", text != NULL ? text : "");
}

int habit_as(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return habit_add(args, e, "%.*s%s%s", (int)strcspn(o->help, " "), o->help, text != NULL ? "=" : "",
	    text != NULL ? text : "");
}

int habit_refuse(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	const struct habit *p = args;

	(void)text;
	if (*o->name != '\0')
		return err_set(e, PTCP_EUSAGE, "--%s: not as by %s (%s)", o->name, p->name, o->help);
	return err_set(e, PTCP_EUSAGE, "-%c: not as by %s (%s)", o->letter, p->name, o->help);
}

int habit_keep(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	((struct habit *)args)->preserved |= (unsigned)o->at;
	return 0;
}

int habit_drop(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	((struct habit *)args)->preserved &= ~(unsigned)o->at;
	return 0;
}

int habit_add_preserved(struct habit *p, struct ptcp_err *e)
{
	static const struct {
		unsigned bits;
		const char *word;
	} words[] = {
		{ HABIT_TIMES, "times" }, { HABIT_MODE, "mode" }, { HABIT_LINKS, "links" }, { HABIT_USER, "owner" },
		{ HABIT_XATTR, "xattr" }, { HABIT_MODE | HABIT_ACL, "acl" }, { HABIT_MODE | HABIT_SETID, "setid" },
	};
	char list[64] = "";
	size_t i;

	if (((p->preserved & HABIT_USER) != 0) != ((p->preserved & HABIT_GROUP) != 0))
		return err_set(e, PTCP_EUSAGE,
		    "-%c: ptcp preserves user and group together (give both -o and -g, or none)",
		    (p->preserved & HABIT_USER) != 0 ? 'o' : 'g');
	for (i = 0; i < sizeof words / sizeof *words; i++)
		if ((p->preserved & words[i].bits) == words[i].bits)
			snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list != '\0' ? "," : "",
			    words[i].word);
	return habit_add(p, e, "--preserve=%s", *list != '\0' ? list : "none");
}

int habit_way(const struct habit *p, char **operand, int n, enum habit_way *way, struct ptcp_err *e)
{
	bool remote, to_remote = ptcp_is_remote(operand[n - 1]);
	char shown[TEXT_NAME_BYTES];
	const char *colon;
	int i;

	for (i = 0; i < n; i++) {
		text_escape(shown, sizeof shown, operand[i]);
		colon = strchr(operand[i], ':');
		if (strncmp(operand[i], "rsync://", 8) == 0 ||
		    (colon != NULL && colon[1] == ':' && ptcp_is_remote(operand[i])))
			return err_set(e, PTCP_EUSAGE,
			    "%s: an rsync daemon is no ptcp server (ptcp://HOST/PATH names one)",
			    shown);
		if (strncmp(operand[i], "scp://", 6) == 0)
			return err_set(e, PTCP_EUSAGE, "%s: no address of ptcp (write ssh://HOST:PORT/~/PATH)",
			    shown);
		remote = ptcp_is_remote(operand[i]);
		if (i < n - 1 && remote && to_remote)
			return err_set(e, PTCP_EUSAGE,
			    "%s: the destination is remote, too (ptcp send copies from one server to another)",
			    shown);
		if (i < n - 1 && !remote && !to_remote)
			return err_set(e, PTCP_EUSAGE, "%s: no host is named (%s or cp copies on this host)", shown,
			    p->name);
	}
	*way = to_remote ? HABIT_SENDS : HABIT_RECEIVES;
	return 0;
}

int habit_run(struct habit *p, const struct command *c, char **operand, int n)
{
	char **argv = calloc(p->n + (size_t)n + 2, sizeof *argv), dash[] = "./-", end[] = "--";
	struct ptcp_err e;
	int i, r;

	if (argv == NULL) {
		err_nomem(&e);
		return exit_fail(&e);
	}
	if (p->n > 0)
		memcpy(argv, p->arg, p->n * sizeof *argv); /* commands change the order only */
	argv[p->n] = end;
	for (i = 0; i < n; i++) /* a file of this name; ptcp send - reads standard input */
		argv[p->n + 1 + (size_t)i] = text_is_stdio(operand[i]) ? dash : operand[i];
	r = c->run(c, (int)p->n + 1 + n, argv);
	free(argv);
	return r;
}
