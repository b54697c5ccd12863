#include "input/lists.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "core/filter.h"
#include "core/text.h"

/* Takes a line of a file. */
typedef int line_fn(void *arg, char *line, struct ptcp_err *e);

static bool is_comment(const char *line) { return line[0] == '\0' || line[0] == '#' || line[0] == ';'; }

/* Each line but comments; with `nul`, each text up to a NUL. */
static int read_lines(FILE *f, bool nul, line_fn *take, void *arg, struct ptcp_err *e)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int code = 0;

	while (code == 0 && (errno = 0, n = getdelim(&line, &cap, nul ? '\0' : '\n', f)) >= 0) {
		if (!nul && n > 0 && line[n - 1] == '\n')
			line[--n] = '\0';
		if (!nul && n > 0 && line[n - 1] == '\r')
			line[--n] = '\0';
		if (!nul && strlen(line) != (size_t)n) {
			code = err_set(e, PTCP_EUSAGE, "a NUL byte in a line (write one per line, or give paths that "
			    "end with NULs to --files-from with -0)");
			break;
		}
		if (nul ? line[0] == '\0' : is_comment(line))
			continue;
		code = take(arg, line, e);
		line = NULL;
		cap = 0;
	}
	if (code == 0 && ferror(f))
		code = err_set(e, PTCP_EUSAGE, "%s (name a readable file)", strerror(errno));
	free(line);
	return code;
}

static int read_file(const char *file, bool nul, line_fn *take, void *arg, struct ptcp_err *e)
{
	FILE *f = text_is_stdio(file) ? stdin : fopen(file, "re");
	int code;

	if (f == NULL)
		return err_set(e, PTCP_EUSAGE, "%s (name a readable file)", strerror(errno));
	code = read_lines(f, nul, take, arg, e);
	if (f != stdin)
		fclose(f);
	return code;
}

static void free_texts(char **text, size_t n)
{
	while (n > 0)
		free(text[--n]);
	free(text);
}

/* ---- Patterns ---- */

int rules_add(struct rules *r, bool include, const char *pattern, struct ptcp_err *e)
{
	struct ptcp_rule *more = realloc(r->rule, (r->n + 1) * sizeof *more);

	if (more == NULL)
		return err_nomem(e);
	r->rule = more;
	more[r->n++] = (struct ptcp_rule){ .include = include, .pattern = pattern };
	return 0;
}

/* Takes the text, also on failure. */
static int own_text(struct rules *r, char *text, struct ptcp_err *e)
{
	char **more = text != NULL ? realloc(r->text, (r->n_text + 1) * sizeof *more) : NULL;

	if (more == NULL) {
		free(text);
		return err_nomem(e);
	}
	r->text = more;
	more[r->n_text++] = text;
	return 0;
}

static int add_pattern(void *arg, char *line, struct ptcp_err *e)
{
	struct rules *r = arg;
	bool marked = (line[0] == '+' || line[0] == '-') && line[1] == ' ';

	if (own_text(r, line, e) < 0)
		return PTCP_ENOMEM;
	return rules_add(r, marked && line[0] == '+', line + (marked ? 2 : 0), e);
}

int rules_read(struct rules *r, const char *file, struct ptcp_err *e)
{
	return read_file(file, false, add_pattern, r, e);
}

/* ---- Rules of --filter ---- */

enum { MERGES_MAX = 16 }; /* files that name files */

static int add_parsed(struct rules *r, const struct filter_rule *rule, int depth, struct ptcp_err *e);

static int add_line(struct rules *r, const char *line, const struct filter_rule *file, int depth, struct ptcp_err *e)
{
	struct filter_rule rule;
	int code = filter_rule_parse(&rule, line, file, e);

	return code < 0 ? code : add_parsed(r, &rule, depth, e);
}

static int merge(struct rules *r, const struct filter_rule *file, int depth, struct ptcp_err *e)
{
	char *all = NULL, *rest, *line, shown[TEXT_NAME_BYTES];
	FILE *f = text_is_stdio(file->text) ? stdin : fopen(file->text, "re");
	size_t cap = 0;
	int code = 0;

	if (f == NULL || depth == MERGES_MAX)
		code = err_set(e, PTCP_EUSAGE, "%s (name a readable file)", strerror(f == NULL ? errno : ELOOP));
	else if ((errno = 0, getdelim(&all, &cap, '\0', f)) < 0 && !feof(f))
		code = err_set(e, PTCP_EUSAGE, "%s (name a readable file)", strerror(errno));
	if (f != NULL && f != stdin)
		fclose(f);
	for (rest = all; code == 0 && rest != NULL && (line = filter_line(&rest, file)) != NULL;)
		code = add_line(r, line, file, depth + 1, e);
	free(all);
	return code < 0 ? err_while(e, code, "%s", text_escape(shown, sizeof shown, file->text)) : 0;
}

static int add_parsed(struct rules *r, const struct filter_rule *rule, int depth, struct ptcp_err *e)
{
	size_t cap = strlen(rule->text) + 32;
	char *text;

	if (rule->kind == FILTER_MERGE)
		return merge(r, rule, depth, e);
	if ((text = malloc(cap)) != NULL)
		filter_rule_text(text, cap, rule);
	if (own_text(r, text, e) < 0 || rules_add(r, false, NULL, e) < 0)
		return PTCP_ENOMEM;
	r->rule[r->n - 1].filter = text;
	return 0;
}

int rules_add_filter(struct rules *r, const char *line, struct ptcp_err *e)
{
	return add_line(r, line, NULL, 0, e);
}

static int add_words(struct rules *r, const char *words, const struct filter_rule *how, struct ptcp_err *e)
{
	char *copy = strdup(words), *rest = copy, *word;
	int code = copy != NULL ? 0 : err_nomem(e);

	while (code == 0 && (word = filter_line(&rest, how)) != NULL)
		code = add_line(r, word, how, 0, e);
	free(copy);
	return code;
}

int rules_add_cvs(struct rules *r, struct ptcp_err *e)
{
	static const char usual[] = /* those of rsync */
	    "RCS SCCS CVS CVS.adm RCSLOG cvslog.* tags TAGS .make.state .nse_depinfo *~ #* .#* ,* _$* *$ *.old *.bak "
	    "*.BAK *.orig *.rej .del-* *.a *.olb *.o *.obj *.so *.exe *.Z *.elc *.ln core .svn/ .git/ .hg/ .bzr/";
	const char *home = getenv("HOME"), *more = getenv("CVSIGNORE");
	char file[PATH_MAX];
	struct filter_rule how = { .kind = FILTER_MERGE, .patterns = true, .words = true, .cvs = true,
		.perishable = true, .text = file };
	int code;

	if ((code = add_line(r, ":C", NULL, 0, e)) < 0 || (code = add_words(r, usual, &how, e)) < 0)
		return code;
	how.perishable = false; /* as rsync */
	if (home != NULL && (size_t)snprintf(file, sizeof file, "%s/.cvsignore", home) < sizeof file &&
	    access(file, R_OK) == 0 && (code = merge(r, &how, 0, e)) < 0)
		return code;
	return more != NULL ? add_words(r, more, &how, e) : 0;
}

void rules_fini(struct rules *r)
{
	free_texts(r->text, r->n_text);
	free(r->rule);
	*r = (struct rules){ 0 };
}

/* ---- Paths ---- */

static int add_path(void *arg, char *line, struct ptcp_err *e)
{
	struct path_list *l = arg;
	char **more;

	if ((l->n & (l->n - 1)) == 0) { /* room doubles at powers of two */
		if ((more = realloc(l->path, (l->n > 0 ? 2 * l->n : 1) * sizeof *more)) == NULL) {
			free(line);
			return err_nomem(e);
		}
		l->path = more;
	}
	l->path[l->n++] = line;
	return 0;
}

int path_list_read(struct path_list *l, const char *file, bool nul, struct ptcp_err *e)
{
	if (l->path == NULL && (l->path = malloc(sizeof *l->path)) == NULL)
		return err_nomem(e);
	return read_file(file, nul, add_path, l, e);
}

void path_list_fini(struct path_list *l)
{
	free_texts(l->path, l->n);
	*l = (struct path_list){ 0 };
}
