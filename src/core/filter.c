#include "core/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "core/glob.h"
#include "core/text.h"

enum { FILES_MAX = 16, LINE_MAX_BYTES = GLOB_PATTERN_MAX + 20 };

/* ---- A rule as text ---- */

static const struct {
	const char *name;
	char letter;
	enum filter_kind kind;
	unsigned sides;
} kinds[] = {
	{ "exclude", '-', FILTER_EXCLUDE, 0 }, { "include", '+', FILTER_INCLUDE, 0 },
	{ "hide", 'H', FILTER_EXCLUDE, FILTER_SENDER }, { "show", 'S', FILTER_INCLUDE, FILTER_SENDER },
	{ "protect", 'P', FILTER_EXCLUDE, FILTER_RECEIVER }, { "risk", 'R', FILTER_INCLUDE, FILTER_RECEIVER },
	{ "merge", '.', FILTER_MERGE, 0 }, { "dir-merge", ':', FILTER_DIR_MERGE, 0 }, { "clear", '!', FILTER_CLEAR, 0 },
};

static bool names_file(const struct filter_rule *r) { return r->kind == FILTER_MERGE || r->kind == FILTER_DIR_MERGE; }

static bool is_end(char c) { return c == '\0' || c == ' ' || c == '_'; }

/* The kind at the beginning of the line; returns what follows, or NULL. */
static const char *parse_kind(struct filter_rule *out, const char *line)
{
	const char *p = NULL;
	size_t i, n;

	for (i = 0; i < sizeof kinds / sizeof *kinds && p == NULL; i++) {
		n = strlen(kinds[i].name);
		if (strncmp(line, kinds[i].name, n) == 0 && (is_end(line[n]) || line[n] == ','))
			p = line + n;
		else if (line[0] == kinds[i].letter)
			p = line + 1;
		if (p != NULL) {
			out->kind = kinds[i].kind;
			out->sides = kinds[i].sides;
		}
	}
	return p != NULL && *p == ',' ? p + 1 : p;
}

static bool take_file_modifier(struct filter_rule *r, char c)
{
	switch (c) {
	case '-':
	case '+':
		r->includes = c == '+';
		return !r->patterns && (r->patterns = true);
	case 'e': return r->itself = true;
	case 'n': return r->own = true;
	case 'w': return r->words = true;
	case 'd': return r->hides = true;
	case 'C': return r->cvs = r->own = r->words = r->patterns = true;
	default: return false;
	}
}

static bool take_modifier(struct filter_rule *r, char c)
{
	switch (c) {
	case 's': r->sides |= FILTER_SENDER; return true;
	case 'r': r->sides |= FILTER_RECEIVER; return true;
	case 'p': return r->perishable = true;
	case '!': return !names_file(r) && (r->negated = true);
	default: return names_file(r) && take_file_modifier(r, c);
	}
}

static int refuse(struct ptcp_err *e, int code, const char *line, const char *why)
{
	char shown[TEXT_NAME_BYTES];

	return err_set(e, code, "'%s': %s", text_escape(shown, sizeof shown, line), why);
}

/* Modifiers behind the kind; returns the pattern or name, or NULL with the error. */
static const char *parse_modifiers(struct filter_rule *r, const char *line, const char *p, struct ptcp_err *e)
{
	const unsigned given = r->sides;

	for (; !is_end(*p); p++) {
		if (*p == '/' || *p == 'x' || (*p == 'C' && !names_file(r))) {
			refuse(e, PTCP_ENOTYET, line, *p == '/' ?
			    "rules about absolute paths are not available yet (write the path below the source)" :
			    *p == 'x' ?
			    "rules about extended attributes are not available yet (leave it out)" :
			    "the patterns of CVS are not available yet (write the patterns)");
			return NULL;
		}
		if ((given != 0 && (*p == 's' || *p == 'r')) || !take_modifier(r, *p)) {
			refuse(e, PTCP_EUSAGE, line, "unknown modifier (write a space behind the kind of rule)");
			return NULL;
		}
	}
	return *p != '\0' ? p + 1 : p;
}

static int check_file(const struct filter_rule *r, const char *line, struct ptcp_err *e)
{
	const char *name = r->text + (r->text[0] == '/');

	if (r->words && !r->patterns)
		return refuse(e, PTCP_ENOTYET, line, "words with kinds are not available yet (add the modifier -)");
	if (r->kind == FILTER_DIR_MERGE && !text_name_ok(name, strlen(name)))
		return refuse(e, PTCP_EUSAGE, line, "no name of files in directories (write it without slashes)");
	return 0;
}

/* What a file gives its rules. */
static int inherit(struct filter_rule *r, const struct filter_rule *file, const char *line, struct ptcp_err *e)
{
	if (r->kind == FILTER_CLEAR)
		return 0;
	if (file->sides != 0 && r->sides != 0)
		return refuse(e, PTCP_EUSAGE, line,
		    "the rule that names the file gives the side already (leave it out)");
	if (r->sides == 0)
		r->sides = file->sides != 0 ? file->sides : file->hides ? FILTER_SENDER : 0;
	r->perishable |= file->perishable;
	return 0;
}

int filter_rule_parse(struct filter_rule *out, const char *line, const struct filter_rule *file, struct ptcp_err *e)
{
	struct filter_rule r = { 0 };
	const char *p = line;
	int err;

	if (file != NULL && file->patterns) {
		r.kind = file->includes ? FILTER_INCLUDE : FILTER_EXCLUDE;
		if (file->cvs && strcmp(line, "!") == 0) {
			r.kind = FILTER_CLEAR;
			p = "";
		}
	} else if ((p = parse_kind(&r, line)) == NULL) {
		return refuse(e, PTCP_EUSAGE, line, "unknown rule (begin it with + or -, or another kind of rule)");
	} else if ((p = parse_modifiers(&r, line, p, e)) == NULL) {
		return e != NULL && e->code == PTCP_ENOTYET ? PTCP_ENOTYET : PTCP_EUSAGE;
	}
	r.text = r.kind == FILTER_DIR_MERGE && r.cvs && *p == '\0' ? ".cvsignore" : p;
	if ((r.text[0] == '\0') != (r.kind == FILTER_CLEAR))
		return refuse(e, PTCP_EUSAGE, line, r.kind == FILTER_CLEAR ? "clear takes no pattern (leave it out)" :
		    "lacks a pattern, or the name of a file (add it)");
	if (file != NULL && file->kind == FILTER_DIR_MERGE && names_file(&r))
		return refuse(e, PTCP_ENOTYET, line,
		    "a file of a directory names no further file (name it by --filter)");
	if ((names_file(&r) && (err = check_file(&r, line, e)) < 0) ||
	    (file != NULL && (err = inherit(&r, file, line, e)) < 0))
		return err;
	*out = r;
	return 0;
}

void filter_rule_text(char *out, size_t cap, const struct filter_rule *r)
{
	static const char letters[] = { [FILTER_EXCLUDE] = '-', [FILTER_INCLUDE] = '+', [FILTER_MERGE] = '.',
		[FILTER_DIR_MERGE] = ':', [FILTER_CLEAR] = '!' };
	char mods[16];
	int n = 0;

	if (r->sides & FILTER_SENDER)
		mods[n++] = 's';
	if (r->sides & FILTER_RECEIVER)
		mods[n++] = 'r';
	if (r->perishable)
		mods[n++] = 'p';
	if (r->negated)
		mods[n++] = '!';
	if (r->patterns && !r->cvs)
		mods[n++] = r->includes ? '+' : '-';
	if (r->cvs)
		mods[n++] = 'C';
	if (r->itself)
		mods[n++] = 'e';
	if (r->own && !r->cvs)
		mods[n++] = 'n';
	if (r->words && !r->cvs)
		mods[n++] = 'w';
	if (r->hides)
		mods[n++] = 'd';
	snprintf(out, cap, "%c%.*s%s%s", letters[r->kind], n, mods, r->kind != FILTER_CLEAR ? " " : "", r->text);
}

char *filter_line(char **rest, const struct filter_rule *file)
{
	const char *ends = file->words ? " \t\n\v\f\r" : "\n\r";
	char *line = *rest;
	size_t n;

	for (;;) {
		line += strspn(line, ends);
		if (*line == '\0')
			return NULL;
		n = strcspn(line, ends);
		*rest = line + n + (line[n] != '\0');
		line[n] = '\0';
		if (file->words || (*line != '#' && *line != ';'))
			return line;
		line = *rest;
	}
}

/* ---- Lists of rules ---- */

struct rule {
	struct glob *glob; /* NULL: the rules of the file */
	uint16_t file;
	uint8_t sides;
	bool include, negated, perishable;
};

struct rule_list {
	unsigned n, room;
	struct rule *rule;
};

struct filter {
	struct memory_account *memory;
	struct rule_list rules;
	unsigned n_files;
	struct filter_file {
		struct filter_rule how; /* without text */
		bool above;
		char name[256];
	} *file[FILES_MAX];
};

static void rules_clear(struct rule_list *l, struct memory_account *memory)
{
	while (l->n > 0)
		if (l->rule[--l->n].glob != NULL) {
			memory_release(memory, glob_bytes(l->rule[l->n].glob));
			glob_free(l->rule[l->n].glob);
		}
	memory_free(memory, l->rule, l->room * sizeof *l->rule);
	*l = (struct rule_list){ 0 };
}

static int make_room(struct rule_list *l, struct memory_account *memory, struct ptcp_err *e)
{
	unsigned room = l->room > 0 ? 2 * l->room : 8;
	struct rule *more;

	if (l->n == FILTER_RULES_MAX)
		return err_set(e, PTCP_EUSAGE, "more than %d patterns (use wildcards)", FILTER_RULES_MAX);
	if (l->n < l->room)
		return 0;
	if ((more = memory_realloc(memory, l->rule, l->room * sizeof *more, room * sizeof *more, e)) == NULL)
		return PTCP_ENOMEM;
	l->rule = more;
	l->room = room;
	return 0;
}

static int put_pattern(struct rule_list *l, struct memory_account *memory, const struct filter_rule *r,
    struct ptcp_err *e)
{
	struct glob *g;
	int err;

	if ((err = make_room(l, memory, e)) < 0 || (err = glob_new(&g, r->text, e)) < 0)
		return err;
	if ((err = memory_charge(memory, glob_bytes(g), e)) < 0) {
		glob_free(g);
		return err;
	}
	l->rule[l->n++] = (struct rule){ .glob = g, .sides = (uint8_t)(r->sides != 0 ? r->sides :
	    FILTER_SENDER | FILTER_RECEIVER), .include = r->kind == FILTER_INCLUDE, .negated = r->negated,
	    .perishable = r->perishable };
	return 0;
}

/* ---- Filters ---- */

int filter_new(struct filter **out, struct memory_account *memory, struct ptcp_err *e)
{
	struct filter *f = calloc(1, sizeof *f);

	if (f == NULL)
		return err_nomem(e);
	f->memory = memory;
	*out = f;
	return 0;
}

static void clear(struct filter *f)
{
	rules_clear(&f->rules, f->memory);
	while (f->n_files > 0)
		memory_free(f->memory, f->file[--f->n_files], sizeof **f->file);
}

void filter_free(struct filter *f)
{
	if (f == NULL)
		return;
	clear(f);
	free(f);
}

static int put_file(struct filter *f, const struct filter_rule *r, struct ptcp_err *e)
{
	const char *name = r->text + (r->text[0] == '/');
	const struct filter_rule itself = { .kind = FILTER_EXCLUDE, .text = name,
		.sides = r->hides ? FILTER_SENDER : 0 };
	struct filter_file *file;
	int err;

	if (f->n_files == FILES_MAX)
		return err_set(e, PTCP_EUSAGE, "more than %d dir-merge rules (put the rules into one file)", FILES_MAX);
	if ((r->itself && (err = put_pattern(&f->rules, f->memory, &itself, e)) < 0) ||
	    (err = make_room(&f->rules, f->memory, e)) < 0)
		return err;
	if ((file = memory_calloc(f->memory, sizeof *file, e)) == NULL)
		return PTCP_ENOMEM;
	file->how = *r;
	file->how.text = NULL;
	file->above = r->text[0] == '/';
	strcpy(file->name, name); /* text_name_ok() */
	f->rules.rule[f->rules.n++] = (struct rule){ .file = (uint16_t)f->n_files };
	f->file[f->n_files++] = file;
	return 0;
}

int filter_add(struct filter *f, const char *line, struct ptcp_err *e)
{
	struct filter_rule r;
	int err = filter_rule_parse(&r, line, NULL, e);

	if (err < 0)
		return err;
	switch (r.kind) {
	case FILTER_CLEAR: clear(f); return 0;
	case FILTER_DIR_MERGE: return put_file(f, &r, e);
	case FILTER_MERGE: return refuse(e, PTCP_EUSAGE, line, "only the command reads files (give their rules)");
	default: return put_pattern(&f->rules, f->memory, &r, e);
	}
}

int filter_add_pattern(struct filter *f, bool include, const char *pattern, struct ptcp_err *e)
{
	const struct filter_rule r = { .kind = include ? FILTER_INCLUDE : FILTER_EXCLUDE, .text = pattern };

	return put_pattern(&f->rules, f->memory, &r, e);
}

const char *filter_file_name(const struct filter *f, unsigned file)
{
	return file < f->n_files ? f->file[file]->name : NULL;
}

bool filter_file_is_above(const struct filter *f, unsigned file) { return f->file[file]->above; }

/* ---- Files in directories ---- */

struct filter_scope {
	const struct filter_scope *up;
	const struct filter *filter;
	size_t at;
	unsigned n;
	struct {
		struct rule_list rules;
		bool clears; /* what directories above have in their files */
	} of[];
};

static size_t scope_bytes(unsigned n)
{
	const struct filter_scope *s = NULL;
	return sizeof *s + n * sizeof s->of[0];
}

int filter_scope_new(struct filter_scope **out, const struct filter *f, const struct filter_scope *up, size_t at,
    struct ptcp_err *e)
{
	struct filter_scope *s = memory_calloc(f->memory, scope_bytes(f->n_files), e);

	if (s == NULL)
		return PTCP_ENOMEM;
	s->up = up;
	s->filter = f;
	s->at = at;
	s->n = f->n_files;
	*out = s;
	return 0;
}

void filter_scope_free(struct filter_scope *s)
{
	unsigned i;

	if (s == NULL)
		return;
	for (i = 0; i < s->n; i++)
		rules_clear(&s->of[i].rules, s->filter->memory);
	memory_free(s->filter->memory, s, scope_bytes(s->n));
}

int filter_scope_read(struct filter_scope *s, unsigned file, char *content, struct ptcp_err *e)
{
	const struct filter_rule *how = &s->filter->file[file]->how;
	struct rule_list *l = &s->of[file].rules;
	struct filter_rule r;
	char *line;
	int err;

	while ((line = filter_line(&content, how)) != NULL) {
		if ((err = filter_rule_parse(&r, line, how, e)) < 0)
			return err;
		if (r.kind == FILTER_CLEAR) {
			rules_clear(l, s->filter->memory);
			s->of[file].clears = true;
		} else if ((err = put_pattern(l, s->filter->memory, &r, e)) < 0) {
			return err;
		}
	}
	return 0;
}

/* ---- Decisions ---- */

struct question {
	enum filter_side side;
	const char *path;
	size_t top, at;
	bool is_dir, removed;
};

/* A pattern with a leading slash begins `from` bytes behind the beginning of the path. */
static bool matches(const struct rule *r, const struct question *q, size_t from)
{
	return (r->sides & q->side) != 0 && !(r->perishable && q->removed) &&
	    glob_match(r->glob, q->path + (glob_is_anchored(r->glob) ? from : q->top), q->is_dir) != r->negated;
}

static const struct rule *first_match(const struct rule_list *l, const struct question *q, size_t from)
{
	unsigned i;

	for (i = 0; i < l->n; i++)
		if (l->rule[i].glob != NULL && matches(&l->rule[i], q, from))
			return &l->rule[i];
	return NULL;
}

static const struct rule *match_files(const struct filter_scope *s, unsigned file, const struct question *q)
{
	const struct rule *found = NULL;

	for (; s != NULL && found == NULL; s = s->up) {
		if (!s->filter->file[file]->how.own || s->at == q->at)
			found = first_match(&s->of[file].rules, q, s->at);
		if (s->of[file].clears)
			break;
	}
	return found;
}

bool filter_includes(const struct filter *f, const struct filter_scope *s, enum filter_side side, const char *path,
    size_t top, size_t at, bool is_dir, bool removed)
{
	const struct question q = { side, path, top, at, is_dir, removed };
	const struct rule *r, *found = NULL;
	unsigned i;

	for (i = 0; i < f->rules.n && found == NULL; i++) {
		r = &f->rules.rule[i];
		if (r->glob == NULL)
			found = match_files(s, r->file, &q);
		else if (matches(r, &q, top))
			found = r;
	}
	return found == NULL || found->include;
}
