#include "cli/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"

int rules_add(struct rules *r, bool include, const char *pattern, struct ptcp_err *e)
{
	struct ptcp_rule *more = realloc(r->rule, (r->n + 1) * sizeof *more);

	if (more == NULL)
		return err_nomem(e);
	r->rule = more;
	more[r->n++] = (struct ptcp_rule){ include, pattern };
	return 0;
}

/* Takes the line. */
static int add_line(struct rules *r, char *line, struct ptcp_err *e)
{
	char **more = realloc(r->text, (r->n_text + 1) * sizeof *more);
	bool marked = (line[0] == '+' || line[0] == '-') && line[1] == ' ';

	if (more == NULL) {
		free(line);
		return err_nomem(e);
	}
	r->text = more;
	more[r->n_text++] = line;
	return rules_add(r, marked && line[0] == '+', line + (marked ? 2 : 0), e);
}

static int read_lines(struct rules *r, FILE *f, struct ptcp_err *e)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int code = 0;

	while (code == 0 && (errno = 0, n = getline(&line, &cap, f)) >= 0) {
		if (n > 0 && line[n - 1] == '\n')
			line[--n] = '\0';
		if (n > 0 && line[n - 1] == '\r')
			line[--n] = '\0';
		if (strlen(line) != (size_t)n) {
			code = err_set(e, PTCP_EUSAGE, "a NUL byte in a pattern (write one pattern per line)");
			break;
		}
		if (n == 0 || line[0] == '#' || line[0] == ';')
			continue;
		code = add_line(r, line, e);
		line = NULL;
		cap = 0;
	}
	if (code == 0 && ferror(f))
		code = err_set(e, PTCP_EUSAGE, "%s (name a readable file)", strerror(errno));
	free(line);
	return code;
}

int rules_read(struct rules *r, const char *file, struct ptcp_err *e)
{
	FILE *f = strcmp(file, "-") == 0 ? stdin : fopen(file, "re");
	int code;

	if (f == NULL)
		return err_set(e, PTCP_EUSAGE, "%s (name a readable file)", strerror(errno));
	code = read_lines(r, f, e);
	if (f != stdin)
		fclose(f);
	return code;
}

void rules_fini(struct rules *r)
{
	while (r->n_text > 0)
		free(r->text[--r->n_text]);
	free(r->text);
	free(r->rule);
	*r = (struct rules){ 0 };
}
