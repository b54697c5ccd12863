/* Files of --exclude-from and --files-from. */
#ifndef INPUT_LISTS_H
#define INPUT_LISTS_H

#include <ptcp/ptcp.h>

/* --exclude, --include, --exclude-from, --filter, -F and --cvs-exclude. */
struct rules {
	struct ptcp_rule *rule;
	size_t n;
	char **text; /* patterns read from files */
	size_t n_text;
};

/* Appends a rule; borrows the pattern. */
int rules_add(struct rules *r, bool include, const char *pattern, struct ptcp_err *e);
/* Appends a rule of --filter; a merge rule adds those of the file that it names ("-": standard input). */
int rules_add_filter(struct rules *r, const char *line, struct ptcp_err *e);
/* Appends the rules of a file ("-": standard input) of one pattern per line: "+ PATTERN" includes, "- PATTERN" and
 * PATTERN exclude; empty lines and lines that begin with # or ; are comments, as in rsync. PTCP_EUSAGE with a sentence
 * without the name of the file. */
int rules_read(struct rules *r, const char *file, struct ptcp_err *e);
/* Appends the rules of --cvs-exclude: files .cvsignore of directories, usual patterns, ~/.cvsignore, CVSIGNORE. */
int rules_add_cvs(struct rules *r, struct ptcp_err *e);
void rules_fini(struct rules *r);

/* --files-from */
struct path_list {
	char **path; /* never NULL once read */
	size_t n;
};

/* Reads the paths of a file ("-": standard input), one per line; empty lines and lines that begin with # or ; are
 * comments, as in rsync. `nul`: a NUL ends each path, and every byte counts. As rules_read(). */
int path_list_read(struct path_list *l, const char *file, bool nul, struct ptcp_err *e);
void path_list_fini(struct path_list *l);

#endif
