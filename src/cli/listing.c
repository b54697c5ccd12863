#include "cli/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

void listing_print(const char *action, uint64_t bytes, const char *path)
{
	char shown[4 * 4096 + 1];

	text_escape(shown, sizeof shown, path);
	if (bytes == UINT64_MAX)
		printf("%-6s %12s %s\n", action, "-", shown);
	else
		printf("%-6s %12llu %s\n", action, (unsigned long long)bytes, shown);
}

void listing_add(struct listing *l, const char *action, uint64_t bytes, const char *path)
{
	size_t room = l->room > 0 ? 2 * l->room : 64;
	struct listing_line *more = l->n < l->room ? l->line : realloc(l->line, room * sizeof *more);
	char *copy = strdup(path);

	if (more != NULL && l->n == l->room)
		l->room = room;
	if (more != NULL)
		l->line = more;
	if (more == NULL || copy == NULL) {
		free(copy);
		listing_print(action, bytes, path);
		return;
	}
	l->line[l->n++] = (struct listing_line){ action, bytes, copy };
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct listing_line *)a)->path, ((const struct listing_line *)b)->path);
}

void listing_end(struct listing *l)
{
	size_t i;

	if (l->n > 0)
		qsort(l->line, l->n, sizeof *l->line, by_path);
	for (i = 0; i < l->n; i++) {
		listing_print(l->line[i].action, l->line[i].bytes, l->line[i].path);
		free(l->line[i].path);
	}
	free(l->line);
	*l = (struct listing){ 0 };
}
