/* Filter rules of the command line: --exclude, --include, and files of patterns. */
#ifndef CLI_RULES_H
#define CLI_RULES_H

#include <ptcp/ptcp.h>

struct rules {
	struct ptcp_rule *rule;
	size_t n;
	char **text; /* patterns read from files */
	size_t n_text;
};

/* Appends a rule; borrows the pattern. */
int rules_add(struct rules *r, bool include, const char *pattern, struct ptcp_err *e);

/* Appends the rules of a file ("-": standard input) of one pattern per line: "+ PATTERN" includes, "- PATTERN" and
 * PATTERN exclude; empty lines and lines that begin with # or ; are comments, as in rsync. PTCP_EUSAGE with a sentence
 * without the name of the file. */
int rules_read(struct rules *r, const char *file, struct ptcp_err *e);
void rules_fini(struct rules *r);

#endif
