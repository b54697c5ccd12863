/* YAML files read strictly: what a reader does not ask for is an error, as is a
 * key given twice. Shared by all configuration files.
 *
 * A document is a tree of nodes named by small integers. Every failure is
 * PTCP_ECONFIG with a sentence that begins "FILE:LINE:COLUMN: " and says what
 * was expected; a file that cannot be read is PTCP_EIO. */
#ifndef CONF_YAML_H
#define CONF_YAML_H

#include <stddef.h>

#include <ptcp/err.h>

#define CONF_SCALAR_MAX_BYTES 4096
#define CONF_DEPTH_MAX 32
#define CONF_NODES_MAX 2000000

struct conf_doc;

struct conf_mark {
	int line, column; /* from 1 */
};

/* `name` stands for the file in errors. The text is not kept. */
int conf_doc_parse(struct conf_doc **out, const char *text, size_t n, const char *name, struct ptcp_err *e);
int conf_doc_load(struct conf_doc **out, const char *path, struct ptcp_err *e);
void conf_doc_free(struct conf_doc *d); /* NULL is fine */

int conf_doc_root(const struct conf_doc *d);
struct conf_mark conf_doc_mark(const struct conf_doc *d, int node);

/* From its first character to behind its last, counted in characters from the start of the text, a byte
 * order mark apart. An alias has no place of its own: it is that of what it stands for. */
struct conf_extent {
	size_t first, behind;
};
struct conf_extent conf_doc_extent(const struct conf_doc *d, int node);
/* A map within braces. */
int conf_is_flow(const struct conf_doc *d, int map);

/* Fills `e` with "FILE:LINE:COLUMN: fmt" and returns PTCP_ECONFIG. */
int conf_fail(const struct conf_doc *d, int node, struct ptcp_err *e,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* `what` names the thing in errors ("hosts"). Counts are checked against `max`. */
int conf_want_map(const struct conf_doc *d, int node, const char *what, size_t max,
    size_t *n, struct ptcp_err *e);
int conf_want_list(const struct conf_doc *d, int node, const char *what, size_t max,
    size_t *n, struct ptcp_err *e);
/* The i-th key, value or item of a node that the two above accepted. */
int conf_key(const struct conf_doc *d, int map, size_t i);
int conf_value(const struct conf_doc *d, int map, size_t i);
int conf_item(const struct conf_doc *d, int list, size_t i);

/* The text of a scalar, without control characters; lives as long as `d`. */
int conf_want_text(const struct conf_doc *d, int node, const char *what,
    const char **out, struct ptcp_err *e);

/* Text fit for an error message: control and non-ASCII bytes as \xNN, cut with
 * ".." where `buf` ends. Returns buf. */
#define CONF_QUOTED_BYTES 80
const char *conf_quoted(char buf[CONF_QUOTED_BYTES], const char *text);

#endif
