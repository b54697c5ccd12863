/* Looks into JSON lines, for the end-to-end scripts.
 *
 *   jsonget FILE check                      every line is one object with an "event"
 *   jsonget FILE count KEY=VALUE            how many lines have it
 *   jsonget FILE get KEY [KEY=VALUE]        KEY of each (matching) line, one a line
 *   jsonget FILE last KEY                   KEY of the last line
 *
 * KEY may be a path as in "paths.0.bytes". A missing key is "missing", a string is printed
 * raw, anything else as JSON. Exit 1 for what is not JSON lines. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *lookup(json_t *j, const char *path)
{
	char part[128];
	size_t n;

	while (j != NULL && *path != '\0') {
		n = strcspn(path, ".");
		snprintf(part, sizeof part, "%.*s", (int)n, path);
		j = json_is_array(j) ? json_array_get(j, strtoul(part, NULL, 10)) :
		                       json_object_get(j, part);
		path += n + (path[n] == '.');
	}
	return j;
}

/* The text of a value; the caller frees it. */
static char *text(const json_t *j)
{
	if (j == NULL)
		return strdup("missing");
	if (json_is_string(j))
		return strdup(json_string_value(j));
	return json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT);
}

static int matches(json_t *line, const char *condition)
{
	const char *eq = condition != NULL ? strchr(condition, '=') : NULL;
	char key[128], *got;
	int same;

	if (eq == NULL)
		return 1;
	snprintf(key, sizeof key, "%.*s", (int)(eq - condition), condition);
	got = text(lookup(line, key));
	same = strcmp(got, eq + 1) == 0;
	free(got);
	return same;
}

static void print(json_t *line, const char *key)
{
	char *s = text(lookup(line, key));

	puts(s);
	free(s);
}

int main(int argc, char **argv)
{
	FILE *f = argc >= 3 ? fopen(argv[1], "r") : NULL;
	const char *what = argc >= 3 ? argv[2] : "", *arg = argc > 3 ? argv[3] : NULL;
	const char *condition = strcmp(what, "count") == 0 ? arg : argc > 4 ? argv[4] : NULL;
	char *line = NULL;
	size_t cap = 0;
	unsigned n = 0, count = 0;
	json_t *j = NULL, *last = NULL;
	json_error_t why;

	if (f == NULL) {
		fprintf(stderr, "jsonget: cannot read the file, or no command\n");
		return 2;
	}
	for (; getline(&line, &cap, f) > 0; json_decref(j)) {
		n++;
		j = json_loads(line, JSON_REJECT_DUPLICATES, &why);
		if (!json_is_object(j) || strchr(line, '\n') == NULL ||
		    (strcmp(what, "check") == 0 && !json_is_string(json_object_get(j, "event")))) {
			fprintf(stderr, "jsonget: line %u: %s: %s\n", n,
			    j == NULL ? why.text : "no object, no event, or cut off", line);
			return 1;
		}
		if (matches(j, condition)) {
			count++;
			if (strcmp(what, "get") == 0)
				print(j, arg);
		}
		json_decref(last);
		last = json_incref(j);
	}
	if (strcmp(what, "count") == 0)
		printf("%u\n", count);
	if (strcmp(what, "last") == 0)
		print(last, arg);
	json_decref(last);
	free(line);
	fclose(f);
	return n > 0 ? 0 : 1;
}
