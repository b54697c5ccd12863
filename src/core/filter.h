/* Filters: which paths are transferred, and which ones deletion retains, by rules in the given order, as in rsync.
 *
 * A rule is a line: a kind, modifiers, a space or '_', and a pattern (core/glob.h) or the name of a file.
 *
 *   - exclude, + include    for the sender and for deletion
 *   H hide, S show          for the sender
 *   P protect, R risk       for deletion
 *   . merge                 the rules of a file take the place of this one; the reader of options does that
 *   : dir-merge             the rules of files of this name, for their directory and the directories below
 *   ! clear                 forgets the rules so far
 *
 * Modifiers of patterns: s and r as hide and protect; p: not in directories that are being removed; !: where the
 * pattern does not match. Of files: - and +: lines are patterns; n: not for directories below; e: the file is left
 * out itself; w: words instead of lines; C: as CVS; s, r, p: of all rules in it; d: rules in it without a side are
 * the sender's. */
#ifndef CORE_FILTER_H
#define CORE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/memory_budget.h"

#define FILTER_RULES_MAX 1000 /* each path is compared with every rule of a filter, or of a file */

enum filter_side { FILTER_SENDER = 1, FILTER_RECEIVER = 2 };
enum filter_kind { FILTER_EXCLUDE, FILTER_INCLUDE, FILTER_MERGE, FILTER_DIR_MERGE, FILTER_CLEAR };

struct filter_rule {
	enum filter_kind kind;
	unsigned sides; /* enum filter_side; 0: both */
	bool negated, perishable;
	/* Of files: */
	bool patterns, includes; /* lines are patterns, to include */
	bool itself, own, words, cvs, hides;
	const char *text; /* pattern or name: the end of the parsed line; "" of FILTER_CLEAR */
};

/* `file`: the rule that names the file of the line; NULL: no file. PTCP_EUSAGE with a sentence that names the rule;
 * PTCP_ENOTYET for a rule of rsync that is not available. */
int filter_rule_parse(struct filter_rule *out, const char *line, const struct filter_rule *file, struct ptcp_err *e);
/* The same as a line of at most `cap` bytes. */
void filter_rule_text(char *out, size_t cap, const struct filter_rule *r);
/* The next line of a file in *rest, without comments, NUL-terminated in place; NULL: none. */
char *filter_line(char **rest, const struct filter_rule *file);

struct filter;

/* Takes its memory from the account, which outlives the filter. */
int filter_new(struct filter **out, struct memory_account *memory, struct ptcp_err *e);
void filter_free(struct filter *f); /* NULL is fine */
/* As filter_rule_parse(); PTCP_ENOMEM as memory_charge(); f is unchanged. A merge rule is refused. */
int filter_add(struct filter *f, const char *line, struct ptcp_err *e);
/* The pattern without a side. */
int filter_add_pattern(struct filter *f, bool include, const char *pattern, struct ptcp_err *e);

/* The names of files of dir-merge rules: NULL behind the last one. */
const char *filter_file_name(const struct filter *f, unsigned file);
/* Whether directories above the transfer have such files, too. */
bool filter_file_is_above(const struct filter *f, unsigned file);

/* Rules of the files in one directory, `at` bytes behind the beginning of paths; `up`: those of directories above,
 * which outlive it, or NULL. */
struct filter_scope;
int filter_scope_new(struct filter_scope **out, const struct filter *f, const struct filter_scope *up, size_t at,
    struct ptcp_err *e);
/* Adds the content, which is changed, of n bytes and a NUL. The error names the line. */
int filter_scope_read(struct filter_scope *s, unsigned file, char *content, struct ptcp_err *e);
void filter_scope_free(struct filter_scope *s); /* NULL is fine */

/* The first matching rule decides; without a match the path is included. An excluded directory is not entered, so a
 * rule cannot include paths below it. `top`, `at`: where the path below the transfer, and the name, begin in the path.
 * `removed`: without perishable rules. Any thread. */
bool filter_includes(const struct filter *f, const struct filter_scope *s, enum filter_side side, const char *path,
    size_t top, size_t at, bool is_dir, bool removed);

#endif
