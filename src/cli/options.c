#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/timetable.h"
#include "core/units.h"

/* Where parsing stands: the next argument to read and the next place for an operand. */
struct parse {
	const struct command *c;
	int argc;
	char **argv;
	int next;
	void *args;
	struct options_given *given;
	struct ptcp_err *e;
};

static const struct opt *find(const struct command *c, const char *name, size_t len, char letter)
{
	const struct opt *const *t;
	const struct opt *o;

	for (t = c->options; t != NULL && *t != NULL; t++)
		for (o = *t; o->name != NULL; o++)
			if (letter != 0 ? o->letter == letter
			                : strlen(o->name) == len && memcmp(o->name, name, len) == 0)
				return o;
	return NULL;
}

static int unknown(const struct parse *p, const char *arg)
{
	char shown[TEXT_NAME_BYTES];

	return err_set(p->e, PTCP_EUSAGE, "%s: no such option (ptcp help %s lists them)",
	    text_escape(shown, sizeof shown, arg), p->c->name);
}

const struct opt *options_find(const struct command *c, const char *name)
{
	return find(c, name, strlen(name), 0);
}

bool options_is_given(const struct options_given *given, const struct opt *o)
{
	size_t i;

	for (i = 0; i < given->n; i++)
		if (given->of[i] == o)
			return true;
	return false;
}

static int set(const struct parse *p, const struct opt *o, const char *text)
{
	struct options_given *g = p->given;

	if (o->set == NULL)
		return err_set(p->e, PTCP_ENOTYET, "--%s: not available yet (leave it out)", o->name);
	if (!options_is_given(g, o) && g->n < sizeof g->of / sizeof *g->of)
		g->of[g->n++] = o;
	return o->set(p->args, o, text, p->e);
}

/* arg is "--name" or "--name=value" */
static int parse_long(struct parse *p, const char *arg)
{
	const char *name = arg + 2, *eq = strchr(name, '=');
	size_t len = eq != NULL ? (size_t)(eq - name) : strlen(name);
	const struct opt *o = find(p->c, name, len, 0);

	if (o == NULL)
		return unknown(p, arg);
	if (o->set == NULL)
		return set(p, o, NULL);
	if (o->value == NULL) {
		if (eq != NULL)
			return opt_reject(o, eq + 1, p->e, "takes no value (leave it out)");
		return set(p, o, NULL);
	}
	if (eq != NULL)
		return set(p, o, eq + 1);
	if (p->next == p->argc)
		return err_set(p->e, PTCP_EUSAGE, "--%s: needs a value (--%s %s)", o->name, o->name,
		    o->value);
	return set(p, o, p->argv[p->next++]);
}

/* arg is "-x" or several letters of flags; the value of one that takes one is the rest, or comes next */
static int parse_letters(struct parse *p, const char *arg)
{
	const char *l;
	const struct opt *o;
	int r;

	for (l = arg + 1; *l != '\0'; l++) {
		if (*l == 'h')
			return OPTIONS_HELP;
		if ((o = find(p->c, NULL, 0, *l)) == NULL)
			return unknown(p, arg);
		if (o->value != NULL && l[1] != '\0')
			return set(p, o, l + 1);
		if (o->value != NULL && p->next == p->argc)
			return err_set(p->e, PTCP_EUSAGE, "-%c: needs a value (-%c %s)", *l, *l, o->value);
		if ((r = set(p, o, o->value != NULL ? p->argv[p->next++] : NULL)) != 0)
			return r;
	}
	return 0;
}

int options_parse(const struct command *c, int argc, char **argv, void *args, int *operands,
    struct ptcp_err *e)
{
	struct options_given unused;

	return options_parse_noting(c, argc, argv, args, operands, &unused, e);
}

int options_parse_noting(const struct command *c, int argc, char **argv, void *args, int *operands,
    struct options_given *given, struct ptcp_err *e)
{
	struct parse p = { .c = c, .argc = argc, .argv = argv, .args = args, .given = given, .e = e };
	int n = 0, r;

	given->n = 0;
	while (p.next < argc) {
		char *arg = argv[p.next++];

		if (strcmp(arg, "--") == 0) {
			while (p.next < argc)
				argv[n++] = argv[p.next++];
		} else if (strcmp(arg, "--help") == 0) {
			return OPTIONS_HELP;
		} else if (arg[0] == '-' && arg[1] == '-') {
			if ((r = parse_long(&p, arg)) != 0)
				return r;
		} else if (arg[0] == '-' && arg[1] != '\0') {
			if ((r = parse_letters(&p, arg)) != 0)
				return r;
		} else {
			argv[n++] = arg;
		}
	}
	*operands = n;
	return 0;
}

bool options_ask_help(const char *arg)
{
	return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

bool options_has_flag(int argc, char **argv, const char *flag)
{
	int i;

	for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], flag) == 0)
			return true;
	return false;
}

static void help_line(FILE *f, const struct opt *o)
{
	char left[80];
	int n;

	n = snprintf(left, sizeof left, "  %c%c%c --%s%s%s", o->letter != 0 ? '-' : ' ',
	    o->letter != 0 ? o->letter : ' ', o->letter != 0 ? ',' : ' ', o->name,
	    o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
	if (n <= 31)
		fprintf(f, "%-31s  %s\n", left, o->help);
	else
		fprintf(f, "%s\n%33s%s\n", left, "", o->help);
}

void options_help(FILE *f, const struct opt *const *tables)
{
	const struct opt *o;

	for (; *tables != NULL; tables++)
		for (o = *tables; o->name != NULL; o++)
			if (o->set != NULL)
				help_line(f, o);
}

int opt_reject(const struct opt *o, const char *text, struct ptcp_err *e, const char *why)
{
	char shown[TEXT_NAME_BYTES];

	return err_set(e, PTCP_EUSAGE, "--%s '%s': %s", o->name,
	    text_escape(shown, sizeof shown, text), why);
}

int opt_each(void *args, const struct opt *o, const char *text, struct ptcp_err *e,
    int (*one)(void *args, const struct opt *o, const char *part, struct ptcp_err *e))
{
	char *copy = strdup(text), *p = copy, *comma;
	int r = 0;

	if (copy == NULL)
		return err_nomem(e);
	while (r == 0 && p != NULL) {
		if ((comma = strchr(p, ',')) != NULL)
			*comma++ = '\0';
		r = *p != '\0' ? one(args, o, p, e)
		               : opt_reject(o, text, e, "an empty word in the list (separate words by one comma)");
		p = comma;
	}
	free(copy);
	return r;
}

int opt_number(const char *text, unsigned min, unsigned max, unsigned *out)
{
	unsigned long n;

	if (*text == '\0' || text[strspn(text, "0123456789")] != '\0')
		return -1;
	errno = 0;
	n = strtoul(text, NULL, 10);
	if (errno != 0 || n < min || n > max)
		return -1;
	*out = (unsigned)n;
	return 0;
}

int opt_decimal(const char *text, double max, double *out)
{
	double v;
	char *end;

	if (text[strspn(text, "0123456789.")] != '\0') /* strtod() would take "1e3", "inf" */
		return -1;
	v = strtod(text, &end);
	if (end == text || *end != '\0' || v > max)
		return -1;
	*out = v;
	return 0;
}

int opt_list_add(const char ***list, size_t *n, const char *text, struct ptcp_err *e)
{
	const char **more = realloc(*list, (*n + 1) * sizeof *more);

	if (more == NULL)
		return err_nomem(e);
	*list = more;
	more[(*n)++] = text;
	return 0;
}

int opt_true(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	*(bool *)(void *)((char *)args + o->at) = true;
	return 0;
}

int opt_count(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	++*(unsigned *)(void *)((char *)args + o->at);
	return 0;
}

int opt_text(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)e;
	*(const char **)(void *)((char *)args + o->at) = text;
	return 0;
}

int opt_patience(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	uint64_t ns;

	if (units_parse_time(text, &ns) < 0 || ns < NS_PER_S / 2 || ns > 86400 * NS_PER_S)
		return opt_reject(o, text, e, "not a time from 0.5s to 24h (such as 30s, 500ms or 2m)");
	*(double *)(void *)((char *)args + o->at) = (double)ns / (double)NS_PER_S;
	return 0;
}

int opt_rate(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], quoted[TEXT_NAME_BYTES + 4];
	struct timetable unused;
	struct ptcp_err why;
	int n;

	if (timetable_parse(&unused, text, &why) == 0)
		return opt_text(args, o, text, e);
	/* It begins with the part that is wrong, which may be all there is. */
	n = snprintf(quoted, sizeof quoted, "'%s': ", text_escape(shown, sizeof shown, text));
	return opt_reject(o, text, e, strncmp(why.msg, quoted, (size_t)n) == 0 ? why.msg + n : why.msg);
}
