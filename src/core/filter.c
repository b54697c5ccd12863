#include "core/filter.h"

#include <stdlib.h>

struct filter {
	unsigned n;
	struct rule {
		struct glob *glob;
		bool include;
	} *rule;
};

int filter_new(struct filter **out, struct ptcp_err *e)
{
	struct filter *f = calloc(1, sizeof *f);

	if (f == NULL)
		return err_nomem(e);
	*out = f;
	return 0;
}

void filter_free(struct filter *f)
{
	if (f == NULL)
		return;
	while (f->n > 0)
		glob_free(f->rule[--f->n].glob);
	free(f->rule);
	free(f);
}

int filter_add(struct filter *f, bool include, const char *pattern, struct ptcp_err *e)
{
	struct rule *more;
	struct glob *g;
	int r;

	if (f->n == FILTER_RULES_MAX)
		return err_set(e, PTCP_EUSAGE, "more than %d patterns (use wildcards)", FILTER_RULES_MAX);
	if ((more = realloc(f->rule, (f->n + 1) * sizeof *more)) == NULL)
		return err_nomem(e);
	f->rule = more;
	if ((r = glob_new(&g, pattern, e)) < 0)
		return r;
	f->rule[f->n++] = (struct rule){ g, include };
	return 0;
}

bool filter_keeps(const struct filter *f, const char *path, bool is_dir)
{
	unsigned i;

	for (i = 0; i < f->n; i++)
		if (glob_match(f->rule[i].glob, path, is_dir))
			return f->rule[i].include;
	return true;
}
