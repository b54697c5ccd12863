/* libFuzzer target: patterns of --exclude and --include, which peers send, too. Of a line each: a pattern, and
 * a path that it is compared with. Where fnmatch(3) means the same by the pattern, both must agree. */
#include <fnmatch.h>

#include "core/filter.h"
#include "core/glob.h"
#include "fuzz.h"

/* Anchored, no "**", no set, which ours never lets match a '/' and fnmatch reads by locale. */
static bool same_meaning(const char *pattern)
{
	return pattern[0] == '/' && pattern[1] != '\0' && strstr(pattern, "**") == NULL &&
	    strpbrk(pattern, "[]\\") == NULL && pattern[strlen(pattern) - 1] != '/';
}

static void one(const char *pattern, const char *path)
{
	struct glob *g;
	bool file, dir;

	if (glob_new(&g, pattern, NULL) < 0)
		return;
	MUST(strlen(pattern) > 0 && strlen(pattern) <= GLOB_PATTERN_MAX);
	file = glob_match(g, path, false);
	dir = glob_match(g, path, true);
	MUST(!file || dir); /* only a slash behind it tells them apart */
	if (same_meaning(pattern))
		MUST(file == (fnmatch(pattern + 1, path, FNM_PATHNAME | FNM_NOESCAPE) == 0));
	glob_free(g);
}

/* The line of a rule means the same once it was parsed and written. */
static void rule(struct filter *f, const char *line)
{
	struct filter_rule r, again;
	char text[2 * GLOB_PATTERN_MAX];

	if (strlen(line) > GLOB_PATTERN_MAX || filter_rule_parse(&r, line, NULL, NULL) < 0)
		return;
	filter_rule_text(text, sizeof text, &r);
	MUST(filter_rule_parse(&again, text, NULL, NULL) == 0);
	MUST(again.kind == r.kind && again.sides == r.sides && again.negated == r.negated);
	MUST(again.patterns == r.patterns && again.includes == r.includes && again.perishable == r.perishable);
	MUST(again.own == r.own && again.itself == r.itself);
	MUST(strcmp(again.text, r.text) == 0);
	filter_add(f, line, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	struct filter *f;
	unsigned lines = 0;

	MUST(filter_new(&f, NULL, NULL) == 0);
	while (in.n > 0 && lines++ < 8) {
		char *pattern = take_line(&in), *path = take_line(&in);

		/* A path is what a walk finds. */
		if (path[0] != '\0' && path[0] != '/' && path[strlen(path) - 1] != '/' && strstr(path, "//") == NULL) {
			one(pattern, path);
			if (filter_add_pattern(f, (lines & 1) != 0, pattern, NULL) == 0)
				filter_includes(f, NULL, FILTER_SENDER, path, 0, 0, false, false);
			rule(f, pattern);
		}
		free(pattern);
		free(path);
	}
	filter_free(f);
	return 0;
}
