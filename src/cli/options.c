#include "cli/options.h"

#include <errno.h>
#include <ptcp/options.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/err.h"
#include "core/text.h"
#include "core/timetable.h"
#include "core/units.h"

struct parse {
	const struct command *c;
	int argc;
	char **argv;
	int next; /* index of the next argument */
	void *args;
	struct options_given *given;
	struct ptcp_err *e;
};

/* Among the command's options, or among the hints for options of other programs. */
static const struct opt *find(const struct command *c, bool hints, const char *name, size_t len, char letter)
{
	const struct opt_group *g;
	const struct opt *o;

	for (g = c->options; g != NULL && g->options != NULL; g++)
		for (o = g->options; (g->title == NULL) == hints && o->name != NULL; o++)
			if (letter != 0 ? o->letter == letter : len > 0 && strlen(o->name) == len &&
			    memcmp(o->name, name, len) == 0)
				return o;
	return NULL;
}

const struct opt *options_find(const struct command *c, const char *name)
{
	return find(c, false, name, strlen(name), 0);
}

bool options_is_given(const struct options_given *given, const struct opt *o)
{
	size_t i;

	for (i = 0; i < given->n; i++)
		if (given->at[i].of == o)
			return true;
	return false;
}

void options_given_free(struct options_given *given)
{
	free(given->at);
	*given = (struct options_given){ 0 };
}

/* The hint for a long option of another program, n bytes, or for its letter; or NULL. */
static const char *hint(const struct command *c, const char *name, size_t n, char letter)
{
	const struct opt *o = find(c, true, name, n, letter);
	const char *other = letter == 0 && find(c, false, "streams", strlen("streams"), 0) != NULL ?
	    suggest_option(name, n) : NULL;

	return other != NULL ? other : o != NULL && *o->help != '\0' ? o->help : NULL;
}

/* `arg` has an unknown long option, n bytes at `name`, or the unknown `letter`. */
static int unknown(const struct parse *p, const char *arg, const char *name, size_t n, char letter)
{
	const char *habit = hint(p->c, name, n, letter);
	char shown[TEXT_NAME_BYTES], which[16] = "";
	const struct opt_group *g;
	const struct opt *o;
	struct suggest near;

	suggest_init(&near, name, n);
	for (g = p->c->options; letter == 0 && g != NULL && g->options != NULL; g++)
		for (o = g->options; g->title != NULL && o->name != NULL; o++)
			if (!suggest_is_dangerous(o))
				suggest_offer(&near, o->name);
	text_escape(shown, sizeof shown, arg);
	if (letter != 0 && arg[2] != '\0') /* one of several */
		snprintf(which, sizeof which, "-%c: ", letter > ' ' && letter < 127 ? letter : '?');
	if (habit != NULL)
		return err_set(p->e, PTCP_EUSAGE, "%s: %sno such option (%s)", shown, which, habit);
	if (near.best != NULL)
		return err_set(p->e, PTCP_EUSAGE, "%s: no such option (did you mean --%s?)", shown, near.best);
	return err_set(p->e, PTCP_EUSAGE, "%s: %sno such option (ptcp help %s lists them)", shown, which, p->c->name);
}

static int set(const struct parse *p, const struct opt *o, const char *text)
{
	struct options_given *g = p->given;
	struct option_given *more;

	if (g != NULL) {
		if ((more = realloc(g->at, (g->n + 1) * sizeof *more)) == NULL)
			return err_nomem(p->e);
		g->at = more;
		g->at[g->n++] = (struct option_given){ o, text };
	}
	return p->args != NULL ? o->set(p->args, o, text, p->e) : 0;
}

/* `arg` is "--name" or "--name=value". */
static int parse_long(struct parse *p, const char *arg)
{
	const char *name = arg + 2, *eq = strchr(name, '=');
	size_t n = eq != NULL ? (size_t)(eq - name) : strlen(name);
	const struct opt *o = find(p->c, false, name, n, 0);

	if (o == NULL)
		return unknown(p, arg, name, n, 0);
	if (o->value == NULL && eq != NULL)
		return opt_reject(o, eq + 1, p->e, "takes no value (leave it out)");
	if (o->value == NULL || eq != NULL)
		return set(p, o, eq != NULL ? eq + 1 : NULL);
	if (p->next == p->argc)
		return err_set(p->e, PTCP_EUSAGE, "--%s: needs a value (--%s %s)", o->name, o->name, o->value);
	return set(p, o, p->argv[p->next++]);
}

/* `arg` is "-x" or several flags; an option with a value takes the rest of `arg`, or the next argument. */
static int parse_letters(struct parse *p, const char *arg)
{
	const char *l;
	const struct opt *o;
	int r;

	for (l = arg + 1; *l != '\0'; l++) {
		if ((o = find(p->c, false, NULL, 0, *l)) == NULL && *l == 'h')
			return OPTIONS_HELP;
		if (o == NULL)
			return unknown(p, arg, "", 0, *l);
		if (o->value != NULL && l[1] != '\0')
			return set(p, o, l + 1);
		if (o->value != NULL && p->next == p->argc)
			return err_set(p->e, PTCP_EUSAGE, "-%c: needs a value (-%c %s)", *l, *l, o->value);
		if ((r = set(p, o, o->value != NULL ? p->argv[p->next++] : NULL)) != 0)
			return r;
	}
	return 0;
}

/* Sets *operands, also where parsing ends early. */
static int parse_all(struct parse *p, int *operands)
{
	char *arg, **argv = p->argv;
	int r = 0;

	*operands = 0;
	while (r == 0 && p->next < p->argc) {
		arg = argv[p->next++];
		if (strcmp(arg, "--") == 0) {
			while (p->next < p->argc)
				argv[(*operands)++] = argv[p->next++];
		} else if (strcmp(arg, "--help") == 0) {
			return OPTIONS_HELP;
		} else if (arg[0] == '-' && arg[1] == '-') {
			r = parse_long(p, arg);
		} else if (arg[0] == '-' && arg[1] != '\0') {
			r = parse_letters(p, arg);
		} else {
			argv[(*operands)++] = arg;
		}
	}
	return r;
}

int options_parse(const struct command *c, int argc, char **argv, void *args, int *operands,
    struct options_given *given, struct ptcp_err *e)
{
	struct parse p = { .c = c, .argc = argc, .argv = argv, .args = args, .given = given, .e = e };
	int n, r;

	if (given != NULL)
		*given = (struct options_given){ 0 };
	r = parse_all(&p, &n);
	if (operands != NULL)
		*operands = n;
	if (r == 0 && (args != NULL || given == NULL) && (n < c->min_operands || n > c->max_operands))
		return err_set(e, PTCP_EUSAGE, "%s: %s (ptcp %s --help)", c->name, c->needs, c->name);
	return r;
}

bool options_is_help(const char *arg)
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

#define HELP_COLUMN 33

static int help_left(char *left, size_t cap, const struct opt *o, const char *value)
{
	char letter[4] = "   ";

	if (o->letter != 0)
		memcpy(letter, (const char[]){ '-', o->letter, ',' }, 3);
	return snprintf(left, cap, "  %s --%s%s%s", letter, o->name, value[0] != '\0' ? " " : "", value);
}

static void help_line(FILE *f, const struct opt *o)
{
	const char *value = o->value != NULL ? o->value : "", *list = strstr(value, ",..");
	size_t purpose = strcspn(o->help, "("), n = list != NULL ? (size_t)(list - value) : strlen(value);
	char left[80];

	if (help_left(left, sizeof left, o, value) < HELP_COLUMN - 1) {
		fprintf(f, "%-*s%s\n", HELP_COLUMN, left, o->help);
	} else if (value[0] < 'a') { /* no list of words */
		fprintf(f, "%s\n%*s%s\n", left, HELP_COLUMN, "", o->help);
	} else {
		purpose -= o->help[purpose] != '\0'; /* without the blank */
		help_left(left, sizeof left, o, list != NULL ? "WORD,.." : "WORD");
		fprintf(f, "%-*s%.*s: %.*s%s\n", HELP_COLUMN, left, (int)purpose, o->help, (int)n, value,
		    o->help + purpose);
	}
}

static bool is_listed(const struct opt *o) { return o->name[0] != '\0' && o->help != NULL; }

enum { BRIEF_COLUMNS = 130 };

/* The name in a line of names, or in the next line; returns the column behind it. */
static int help_name(FILE *f, const struct opt *o, int column)
{
	if (column + 3 + (int)strlen(o->name) > BRIEF_COLUMNS)
		column = fprintf(f, "\n   ") - 1;
	return column + fprintf(f, " --%s", o->name);
}

void options_help(FILE *f, const struct command *c)
{
	const struct opt_group *g;
	const struct opt *o;
	bool briefly = false;
	int column = 0;

	for (g = c->options; g != NULL && g->options != NULL && g->title != NULL; g++) {
		if (g->brief && !briefly)
			fprintf(f, "Further options, which ptcp-%s(1) describes:\n", c->name);
		briefly |= g->brief;
		if (g->title[0] != '\0')
			column = fprintf(f, g->brief ? "  %s:" : "%s:\n", g->title);
		for (o = g->options; o->name != NULL; o++)
			if (is_listed(o) && g->brief)
				column = help_name(f, o, column);
			else if (is_listed(o))
				help_line(f, o);
		if (g->brief && (g[1].options == NULL || g[1].title == NULL || g[1].title[0] != '\0'))
			fprintf(f, "\n");
	}
}

/* ---- Values ---- */

int opt_reject(const struct opt *o, const char *text, struct ptcp_err *e, const char *fmt, ...)
{
	char shown[TEXT_NAME_BYTES], why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	return err_set(e, PTCP_EUSAGE, "--%s '%s': %s", o->name, text_escape(shown, sizeof shown, text), why);
}

int opt_each(void *args, const struct opt *o, const char *text, struct ptcp_err *e,
    int (*one)(void *args, const struct opt *o, const char *part, struct ptcp_err *e))
{
	char *copy = strdup(text), *rest = copy, *part;
	int r = 0;

	if (copy == NULL)
		return err_nomem(e);
	while (r == 0 && (part = strsep(&rest, ",")) != NULL)
		r = *part != '\0' ? one(args, o, part, e) :
		    opt_reject(o, text, e, "an empty word in the list (separate words by one comma)");
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

	if (text[strspn(text, "0123456789.")] != '\0') /* strtod() would accept "1e3" and "inf" */
		return -1;
	v = strtod(text, &end);
	if (end == text || *end != '\0' || v > max)
		return -1;
	*out = v;
	return 0;
}

int opt_append(const char *const **list, size_t *n, const char *text, struct ptcp_err *e)
{
	const char **more = realloc((void *)(uintptr_t)*list, (*n + 1) * sizeof *more);

	if (more == NULL)
		return err_nomem(e);
	*list = more;
	more[(*n)++] = text;
	return 0;
}

void opt_list_free(const char *const **list, size_t *n)
{
	free((void *)(uintptr_t)*list);
	*list = NULL;
	*n = 0;
}

int opt_append_copy(const char *const **list, size_t *n, const char *text, struct ptcp_err *e)
{
	char *copy = strdup(text);
	int r;

	if (copy == NULL)
		return err_nomem(e);
	if ((r = opt_append(list, n, copy, e)) < 0)
		free(copy);
	return r;
}

void opt_copies_free(const char *const **list, size_t *n)
{
	while (*n > 0)
		free((char *)(uintptr_t)(*list)[--*n]);
	opt_list_free(list, n);
}

static void *member(void *args, const struct opt *o)
{
	return (char *)args + o->at;
}

int opt_ignore(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)args;
	(void)o;
	(void)text;
	(void)e;
	return 0;
}

int opt_true(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	*(bool *)member(args, o) = true;
	return 0;
}

int opt_false(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	*(bool *)member(args, o) = false;
	return 0;
}

int opt_count(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)text;
	(void)e;
	++*(unsigned *)member(args, o);
	return 0;
}

int opt_text(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)e;
	*(const char **)member(args, o) = text;
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
	/* The sentence begins with the faulty part, which may be the whole text. */
	n = snprintf(quoted, sizeof quoted, "'%s': ", text_escape(shown, sizeof shown, text));
	return opt_reject(o, text, e, "%s", strncmp(why.msg, quoted, (size_t)n) == 0 ? why.msg + n : why.msg);
}

/* The i-th word of a value such as "N|auto", from 0 on, n bytes; NULL after the last one. Words are in lower case. */
static const char *opt_word_at(const char *value, size_t i, size_t *n)
{
	for (; value != NULL && *value != '\0'; value += *n, value += *value == '|') {
		*n = strcspn(value, "|");
		if (*value >= 'a' && *value <= 'z' && i-- == 0)
			return value;
	}
	return NULL;
}

/* The number of a word of the option's value; -1: no such word. */
static int word_number(const struct opt *o, const char *text)
{
	const char *word;
	size_t n;
	int i;

	for (i = 0; (word = opt_word_at(o->value, (size_t)i, &n)) != NULL; i++)
		if (strlen(text) == n && memcmp(text, word, n) == 0)
			return i;
	return -1;
}

static int no_such_word(const struct opt *o, const char *text, struct ptcp_err *e)
{
	return opt_reject(o, text, e, "no such word (write %s)", o->value);
}

int opt_word(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	int i = word_number(o, text);

	if (i < 0)
		return no_such_word(o, text, e);
	*(int *)member(args, o) = i;
	return 0;
}

int opt_name(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return word_number(o, text) >= 0 ? opt_text(args, o, text, e) : no_such_word(o, text, e);
}

int opt_texts_each(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct opt_texts *list = member(args, o);

	return opt_append_copy(&list->of, &list->n, text, e);
}

int opt_texts_commas(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return opt_each(args, o, text, e, opt_texts_each);
}

int opt_unsigned(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	size_t n;
	const char *word = opt_word_at(o->value, 0, &n);

	if (word != NULL && strcmp(text, word) == 0) {
		*(unsigned *)member(args, o) = 0;
		return 0;
	}
	return opt_number(text, (unsigned)o->min, (unsigned)o->max, member(args, o)) == 0 ? 0 :
	    opt_reject(o, text, e, "not a number from %.0f to %.0f%s%s", o->min, o->max, word != NULL ? ", nor " : "",
	    word != NULL ? word : "");
}

int opt_int(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	bool negative = o->min < 0 && text[0] == '-';
	double min = negative || o->min < 0 ? 0 : o->min, max = negative ? -o->min : o->max;
	int i = word_number(o, text);
	unsigned n;

	if (i < 0 && opt_number(text + negative, (unsigned)min, (unsigned)max, &n) < 0)
		return opt_reject(o, text, e, "neither a number from %.0f to %.0f nor a word (write %s)", o->min,
		    o->max, o->value);
	*(int *)member(args, o) = i >= 0 ? -i : negative ? -(int)n : (int)n;
	return 0;
}

int opt_percent(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return opt_decimal(text, o->max, member(args, o)) == 0 ? 0 :
	    opt_reject(o, text, e, "not a percentage from 0 to %.0f", o->max);
}

int opt_seconds(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	char max[UNITS_TEXT_BYTES];
	uint64_t ns;

	if (units_parse_time(text, &ns) < 0 || (double)ns < o->min * 1e9 || (double)ns > o->max * 1e9)
		return opt_reject(o, text, e, "not a time from %gs to %s (such as 30s, 500ms or 2m)", o->min,
		    units_time_text(max, o->max));
	*(double *)member(args, o) = (double)ns / (double)NS_PER_S;
	return 0;
}

int opt_since(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	if (units_parse_when(text, (int64_t)time(NULL), member(args, o)) == 0)
		return 0;
	return opt_reject(o, text, e, "not a time (an age such as 2h or 7d, or a date such as 2027-01-31)");
}

int opt_bytes(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	char max[UNITS_TEXT_BYTES];
	uint64_t n;

	if (units_parse_size(text, &n) == 0 && (double)n >= o->min && (double)n <= o->max) {
		*(uint64_t *)member(args, o) = n;
		return 0;
	}
	if (o->max >= (double)PTCP_BYTES_UNLIMITED)
		return opt_reject(o, text, e, "not a size of at least %.0fMiB", o->min / (1 << 20));
	return opt_reject(o, text, e, "not a size from %.0f B to %s (such as 10GB)", o->min,
	    units_size_text(max, (uint64_t)o->max));
}
